"""evband: an electric car's battery power from its motion, with calibrated bands."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evband.adaptation import adapt as adapt
    from evband.adaptation import start as start
    from evband.bands import Bands as Bands
    from evband.calibration import Calibration as Calibration
    from evband.calibration.online import OnlineCalibration as OnlineCalibration
    from evband.energy import what_ifs as what_ifs
    from evband.errors import EvbandError as EvbandError
    from evband.export.collapse import distill as distill
    from evband.logs.reading import read_trips as read_trips
    from evband.model import PowerModel as PowerModel
    from evband.model import load as load
    from evband.report.page import write_report as write_report
    from evband.routes import Route as Route
    from evband.routes import read_route as read_route
    from evband.scores import compare as compare
    from evband.scores import evaluate as evaluate
    from evband.simulation.drives import simulate as simulate
    from evband.trips import Trip as Trip
    from evband.trips import Trips as Trips
    from evband.trips.quality import Cleaning as Cleaning

__version__ = "0.2.0"

# Public name -> the module that has it. Each is imported when first touched, so that `import evband` is light.
_PUBLIC = {
    "Bands": "evband.bands",
    "Calibration": "evband.calibration",
    "Cleaning": "evband.trips.quality",
    "EvbandError": "evband.errors",
    "OnlineCalibration": "evband.calibration.online",
    "PowerModel": "evband.model",
    "Route": "evband.routes",
    "adapt": "evband.adaptation",
    "compare": "evband.scores",
    "distill": "evband.export.collapse",
    "evaluate": "evband.scores",
    "load": "evband.model",
    "Trip": "evband.trips",
    "Trips": "evband.trips",
    "read_route": "evband.routes",
    "read_trips": "evband.logs.reading",
    "simulate": "evband.simulation.drives",
    "start": "evband.adaptation",
    "what_ifs": "evband.energy",
    "write_report": "evband.report.page",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'evband' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
