"""Calibration of bands: stretches from trips left out, and the online correction.

Only `Calibration` is imported at once; a model file is read without the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evband.calibration.value import Calibration

if TYPE_CHECKING:
    from evband.calibration.offline import (
        calibration_trips,
        conformal_stretch,
        fit_calibration,
        fit_stretch,
        fit_stretches,
        minimum_trips,
    )  # fmt: skip
    from evband.calibration.online import OnlineCalibration

__all__ = [
    "Calibration", "OnlineCalibration", "calibration_trips", "conformal_stretch", "fit_calibration", "fit_stretch",
    "fit_stretches", "minimum_trips",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = "online" if name == "OnlineCalibration" else "offline"
        return getattr(import_module(f"evband.calibration.{module}"), name)
    raise AttributeError(f"module 'evband.calibration' has no attribute {name!r}")
