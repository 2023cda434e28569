"""Predictive distributions of power, row by row."""

from evband.bands.bands import Bands
from evband.bands.mixtures import GaussianMixture, LocationScale, Mixture, Stacked, StudentMixture
from evband.bands.quantile_sets import QuantileSet
from evband.network.quantiles import check_level

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
