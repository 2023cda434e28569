"""Fixtures of the live tests."""

from live_cars import drive, stepped

__all__ = ["drive", "stepped"]
