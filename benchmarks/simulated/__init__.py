"""On simulated vehicles, whose truth is known."""
