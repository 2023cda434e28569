"""The ground: elevation from local tiles, and elevation along a way made fit for slopes."""

from evband.terrain.smoothing import tidy_elevation
from evband.terrain.tiles import Tiles

__all__ = ["Tiles", "tidy_elevation"]
