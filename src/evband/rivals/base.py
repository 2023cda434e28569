"""What all rivals share: trips in, arrays through, Bands out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from evband.bands import Bands
from evband.bands.from_network import of_rows
from evband.bands.mixtures import Mixture
from evband.errors import SettingsError, TripsError
from evband.features import FeatureMap
from evband.features import Rows as TripRows
from evband.rivals.rows import Rows
from evband.trips import Trip, Trips


class Rival(BaseEstimator, ABC):  # type: ignore[misc]
    """A baseline with the ensemble's habits: settings in the constructor, `fit(trips)`, `predict(trips) -> Bands`."""

    hinges: bool = False

    def __init__(self, features: str = "auto", hz: float = 1.0, seed: int = 0, ours: bool = True) -> None:
        """`ours`: it sees also what our model adds to the road load, the speeds at a bin's edges and the fading start."""
        self.features, self.hz, self.seed, self.ours = features, hz, seed, ours

    @abstractmethod
    def fit_rows(self, rows: Rows) -> Self:
        """Learn from rows whose power is known; plain arrays only."""

    @abstractmethod
    def predict_rows(self, rows: Rows) -> Mixture:
        """The distribution at every row; plain arrays only."""

    def fit(self, trips: Sequence[Trip]) -> Self:
        """Learn from training trips; scalers and settings are chosen on them alone."""
        gridded = Trips(trips).on_grid(self.hz)
        self.feature_map_ = FeatureMap.fit(gridded, self.features, self.hinges, edges=self.ours, fade=self.ours)
        return self.fit_rows(make_rows(self.feature_map_, self.feature_map_.transform_all(gridded)))

    def predict(self, trips: Sequence[Trip]) -> Bands:
        """Bands of every grid row of these trips."""
        if not hasattr(self, "feature_map_"):
            raise SettingsError(f"{type(self).__name__} has not been fitted; call fit(trips) first.")
        gridded = Trips(trips).on_grid(self.hz)
        found = self.feature_map_.transform_all(gridded)
        members = self.predict_rows(make_rows(self.feature_map_, found))
        return of_rows(found, members, gridded, self.feature_map_)


def make_rows(features: FeatureMap, rows: TripRows) -> Rows:
    """Trips' arrays as a rival takes them."""
    terms = len(features.road_names) - len(features.knots)
    return Rows(rows.x, rows.r.astype(float), rows.y, rows.trip, rows.start, terms, features.hz)


def known(rows: Rows) -> np.ndarray:
    """[n] bool: rows that can teach."""
    mask: np.ndarray = np.isfinite(rows.y)
    if mask.sum() < 100:
        raise TripsError(f"power_kw is known in {int(mask.sum())} rows only; a rival needs at least 100 to learn from.")
    return mask
