"""On measured logs: every trip held out once."""
