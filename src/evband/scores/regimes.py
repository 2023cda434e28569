"""Driving regimes, read from the inputs and never from the measured power: a regime chosen by the answer would flatter or condemn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.bands import Bands
from evband.channels import BRAKING_MS2, CITY_KMH, MOTORWAY_KMH, STANDING_KMH
from evband.errors import TripsError
from evband.trips.grid import LONGEST_BRIDGE_S

if TYPE_CHECKING:
    from evband.trips import Trips

REGIMES = ("standstill", "braking", "city", "rural", "motorway")
_CHANNELS = ("power_kw", "speed_kmh", "acceleration_ms2")


def regimes(bands: Bands) -> NDArray | None:
    """The regime of every row, the first that applies: standstill, braking, city, motorway, else rural; "" where speed is
    unknown. None if the bands carry no speed."""
    if bands.speed_kmh is None:
        return None
    speed = bands.speed_kmh
    braking = np.zeros(len(speed), bool) if bands.acceleration_ms2 is None else bands.acceleration_ms2 < -BRAKING_MS2
    conditions = [np.isnan(speed), speed < STANDING_KMH, braking, speed < CITY_KMH, speed > MOTORWAY_KMH]
    return np.select(conditions, ["", "standstill", "braking", "city", "motorway"], default="rural")


def attach(bands: Bands, trips: Trips) -> Bands:
    """Fill what the bands lack of measured power, speed and acceleration from the trips they were predicted on."""
    missing = [n for n in _CHANNELS if (known := getattr(bands, n)) is None or (len(known) and np.isnan(known).all())]
    if not missing:
        return bands
    rows = pl.DataFrame({"trip_id": bands.trip_id.astype(str), "time_s": bands.time_s})
    for bridge_s in (0.0, LONGEST_BRIDGE_S):  # a grid that bridges silences has more rows at the same instants
        frame = (trips if bands.hz is None else trips.on_grid(bands.hz, bridge_s=bridge_s)).to_polars()
        found = [name for name in missing if name in frame.columns]
        part = frame.select("trip_id", "time_s", *found).with_columns(here=True)
        joined = rows.join(part, on=["trip_id", "time_s"], how="left", maintain_order="left")
        if not joined["here"].null_count():
            break
    if joined["here"].null_count():
        raise TripsError(
            "The bands and the trips do not share trip ids and grid times; give the trips that were predicted."
        )
    filled: dict[str, Any] = {name: joined[name].fill_null(float("nan")).to_numpy() for name in found}
    return replace(bands, **filled)
