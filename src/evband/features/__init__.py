"""From channels to the arrays that networks see."""

from evband.features.map import HELD, FeatureMap, Sequence

__all__ = ["HELD", "FeatureMap", "Sequence"]
