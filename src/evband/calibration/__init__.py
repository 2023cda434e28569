"""Calibration of bands: stretches from trips left out, and the online correction."""

from evband.calibration.offline import calibration_trips, conformal_stretch, fit_stretch, fit_stretches, minimum_trips
from evband.calibration.online import OnlineCalibration

__all__ = [
    "OnlineCalibration", "calibration_trips", "conformal_stretch", "fit_stretch", "fit_stretches", "minimum_trips",
]  # fmt: skip
