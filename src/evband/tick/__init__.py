"""The tick engine: all members of an ensemble, one time step at a time."""

from evband.tick.engine import COLUMNS, Engine
from evband.tick.from_model import engine_of
from evband.tick.packing import fold_masks

__all__ = ["COLUMNS", "Engine", "engine_of", "fold_masks"]
