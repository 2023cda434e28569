"""From what networks say of some rows to the predictive distribution of those rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evband.bands.bands import Bands
from evband.bands.mixtures import LocationScale, Mixture
from evband.bands.quantile_sets import QuantileSet
from evband.network.predict import Prediction

if TYPE_CHECKING:
    from evband.features import FeatureMap, Rows
    from evband.trips import Trips

_PUSH = "acceleration_ms2"  # of which a table may have none: a model takes it from speed


def distribution(predicted: Prediction, levels: tuple[float, ...], mean: float = 0.0, std: float = 1.0) -> Mixture:
    """In kW given power's training mean and deviation, else in standardised units.

    Uses ``predicted`` up: locations and scales are overwritten, since a day of thirty members takes 100 MB for each.
    """
    if predicted.quantiles is not None:
        return QuantileSet(mean + std * predicted.quantiles, levels)
    assert predicted.scale is not None
    assert predicted.standard is not None
    np.multiply(predicted.mu, np.float32(std), out=predicted.mu)
    np.add(predicted.mu, np.float32(mean), out=predicted.mu)
    np.multiply(predicted.scale, np.float32(std), out=predicted.scale)
    return LocationScale(predicted.mu, predicted.scale, predicted.standard)


def of_rows(rows: Rows, members: Mixture, trips: Trips, features: FeatureMap) -> Bands:
    """Bands of these rows of these trips, with what scores and regimes ask for."""
    return Bands(
        trip_id=rows.trip_id,
        time_s=rows.time_s,
        members=members,
        warmup=rows.warmup(features.hz),
        outside=rows.outside,
        power_kw=rows.y,
        speed_kmh=trips.column("speed_kmh"),
        acceleration_ms2=trips.column(_PUSH) if all(_PUSH in trip.table.columns for trip in trips) else None,
        outside_channel=rows.outside_channel(features.channels),
        hz=features.hz,
    )
