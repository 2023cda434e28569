"""The tick engine: all members of an ensemble, one time step at a time."""

from evband.network.tick.engine import COLUMNS, Engine
from evband.network.tick.from_model import engine_of
from evband.network.tick.packing import fold_masks

__all__ = ["COLUMNS", "Engine", "engine_of", "fold_masks"]
