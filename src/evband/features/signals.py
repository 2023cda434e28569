"""Signals of a gridded trip: its channels, elevation as the grade of the road just driven, and what is made of both.

An acceleration that is not known (a plan's) is the change of speed, and what the sensor of the training
logs would have felt of the grade: `FeatureMap.tilt`. `evband.features.memory` has the same rules for ticks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.channels import AGE, READINGS, SENSED
from evband.features import road_load
from evband.features.map import HELD
from evband.features.rows import edges_of, starts_of

if TYPE_CHECKING:
    from evband.features.map import FeatureMap
    from evband.trips import Trip

Array = NDArray[np.float64]


def signals_of(features: FeatureMap, trip: Trip) -> dict[str, Array]:
    """[T] each, nan where unknown."""

    def column(name: str, unknown: float = np.nan) -> Array:
        found = trip.table.get_column(name, default=None)
        if found is None:
            return np.full(len(trip), unknown)
        known = (found.forward_fill() if name in HELD else found).fill_null(unknown)
        return np.asarray(known.to_numpy(), dtype=float)

    signals = {c: column(c) for c in features.channels}
    if "elevation_m" in signals:
        speed = trip.column("speed_kmh") / 3.6
        unseen = ~np.maximum.accumulate(np.isfinite(signals["elevation_m"])) if features.optional else False
        grades = road_load.grades(signals["elevation_m"], speed, starts_of(trip), 1.0 / features.hz)
        signals["elevation_m"] = np.where(unseen, np.nan, grades)
    start, end = edges_of(trip)
    sensed = column(SENSED, 0.0)
    if "acceleration_ms2" in signals:
        measured, grade = signals["acceleration_ms2"], np.nan_to_num(signals.get("elevation_m", np.zeros(len(trip))))
        change = road_load.edge_signals(start, end, features.hz)[road_load.CHANGE]
        sensed = sensed * ~np.isnan(measured)
        signals["acceleration_ms2"] = np.where(np.isnan(measured), change + features.tilt * grade, measured)
    rows = np.arange(len(trip), dtype=float)
    return signals | features.made(rows, (start, end), column(AGE, 0.0), column(READINGS, 1.0), sensed)
