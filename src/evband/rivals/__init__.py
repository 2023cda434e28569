"""The baselines behind the same fit and predict: each a distribution, each tuned on whole trips inside its training data.

`rows`, `student` and `quantile_boosting` are plain numerics that need NumPy, SciPy and scikit-learn only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evband.rivals.base import Rival as Rival
    from evband.rivals.boosting import Boosting as Boosting
    from evband.rivals.boosting import ResidualBoosting as ResidualBoosting
    from evband.rivals.catboost_uncertainty import CatBoost as CatBoost
    from evband.rivals.fastsim_vehicle import FastSim as FastSim
    from evband.rivals.least_squares import LeastSquares as LeastSquares
    from evband.rivals.ngboost_t import NGBoost as NGBoost

_PUBLIC = {
    "Rival": "base",
    "LeastSquares": "least_squares",
    "Boosting": "boosting",
    "ResidualBoosting": "boosting",
    "NGBoost": "ngboost_t",
    "CatBoost": "catboost_uncertainty",
    "FastSim": "fastsim_vehicle",
}
NAMES = {  # as typed on the command line -> class
    "least-squares": "LeastSquares",
    "boosting": "Boosting",
    "residual-boosting": "ResidualBoosting",
    "ngboost": "NGBoost",
    "catboost": "CatBoost",
    "fastsim": "FastSim",
}

__all__ = ["NAMES", "make", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"evband.rivals.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'evband.rivals' has no attribute {name!r}")


def make(name: str, **settings: Any) -> Rival:
    """A rival by its name."""
    from evband.errors import SettingsError

    if name not in NAMES:
        raise SettingsError(f"there is no rival {name!r}; choose one of {', '.join(NAMES)}")
    rival: Rival = __getattr__(NAMES[name])(**settings)
    return rival
