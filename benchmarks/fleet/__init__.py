"""Fleets: time, memory and bytes per car."""
