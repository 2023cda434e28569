"""The tick engine: all members of an ensemble, one time step at a time."""

from evband.network.tick.engine import COLUMNS, Engine, engine_of

__all__ = ["COLUMNS", "Engine", "engine_of"]
