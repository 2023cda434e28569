"""From channels to the arrays that networks see."""

from evband.features.map import HELD, FeatureMap
from evband.features.rows import WARMUP_S, Rows

__all__ = ["HELD", "WARMUP_S", "FeatureMap", "Rows"]
