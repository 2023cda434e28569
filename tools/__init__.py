"""What makes the repository itself: tables and pictures of the docs."""
