"""Predictive distributions of power, row by row."""

from evband.bands.bands import Bands, check_level
from evband.bands.mixtures import GaussianMixture, LocationScale, Mixture, Stacked, StudentMixture
from evband.bands.quantile_sets import QuantileSet

__all__ = [
    "Bands",
    "GaussianMixture",
    "LocationScale",
    "Mixture",
    "QuantileSet",
    "Stacked",
    "StudentMixture",
    "check_level",
]
