"""Other frameworks, each a process of its own."""
