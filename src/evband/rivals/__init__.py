"""The baselines behind the same fit and predict: each a distribution, each tuned on whole trips inside its training data."""

from __future__ import annotations

from evband.rivals.base import Rival as Rival
from evband.rivals.boosting import Boosting as Boosting
from evband.rivals.boosting import ResidualBoosting as ResidualBoosting
from evband.rivals.catboost_uncertainty import CatBoost as CatBoost
from evband.rivals.fastsim_vehicle import FastSim as FastSim
from evband.rivals.least_squares import LeastSquares as LeastSquares
from evband.rivals.ngboost_t import NGBoost as NGBoost

RIVALS: dict[str, type[Rival]] = {
    "least-squares": LeastSquares,
    "boosting": Boosting,
    "residual-boosting": ResidualBoosting,
    "ngboost": NGBoost,
    "catboost": CatBoost,
    "fastsim": FastSim,
}
