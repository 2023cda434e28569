"""The way as one trip: the drive so far, the route, and the route again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from evband.channels import AGE, EDGES, READINGS, SENSED
from evband.energy.doubts import Doubts
from evband.errors import ChannelError, TripsError
from evband.features.names import CABIN
from evband.routes import Route, read_route
from evband.trips import Trip, Trips

if TYPE_CHECKING:
    from evband.model import PowerModel


def check_supplies(model: PowerModel, route: Route) -> None:
    """A ChannelError that names what the route lacks of the model's inputs; the cabin's draw can be filled in."""
    from evband.energy.calibrating import cabin_of

    filled = {*model.feature_map_.optional, *([CABIN] if cabin_of(model) is not None else [])}
    missing = [c for c in model.feature_map_.channels if c not in route.channels and c not in filled]
    if missing:
        known = [c for c in model.feature_map_.channels if c in route.channels]
        could = ",".join(known) if len(known) > 2 else "motion"
        where = "The route" if route.name == "route" else f"The route {route.name}"
        give = "give it with --ambient" if missing == ["ambient_temp_c"] else "add it to the route"
        raise ChannelError(
            f"{where} does not supply {', '.join(missing)}, which this model needs; {give}, or plan with a model fitted with "
            f"--features {could}."
        )


def left_out(model: PowerModel, route: Route, doubts: Doubts) -> list[str]:
    """A warning where a plan brings what the model has no input for; slopes have one of their own (`evband.energy.sanity`)."""
    brought = [*(route.along if route.log is None else ()), *(["ambient_temp_c"] if doubts.ambient_sd_c else [])]
    used = (*model.feature_map_.channels, "elevation_m", "grade_pct")
    unused = [c for c in dict.fromkeys(brought) if c not in used]
    notes = [f"the model does not use {', '.join(unused)}, because its inputs lack it"] if unused else []
    if doubts.ambient_sd_c and "ambient_temp_c" not in (*unused, *route.channels):
        notes.append(
            "the spread of the temperature does not count, since the route does not say how warm it is; give --ambient"
        )
    return notes


def way_ahead(route: Any, driven: Trip | None, ambient_c: float | None = None) -> Route:
    """The route from the speed at which the drive so far ended, at this temperature where one is given."""
    way = read_route(route, 0.0 if driven is None else max(float(driven.table["speed_kmh"][-1]), 0.0))
    return way if ambient_c is None else way.with_everywhere("ambient_temp_c", ambient_c)


def driven_trip(model: PowerModel, so_far: Any) -> Trip | None:
    """The drive so far on the model's grid, if there is one."""
    if so_far is None:
        return None
    if not isinstance(so_far, Trip):
        from evband.logs.reading import read_trips

        trips = so_far if isinstance(so_far, Trips) else read_trips(so_far)
        if len(trips) > 1:
            raise TripsError(f"The drive so far holds {len(trips)} trips; give the one that goes on.")
        so_far = trips[0]
    trip: Trip = so_far.on_grid(model.settings_.hz, bridge_s=model.settings_.bridge_s, lag=model.feature_map_.lag)
    return trip


def joined(driven: Trip | None, route: Trip, channels: tuple[str, ...], again: bool = True) -> Trip:
    """The drive so far, the route, and the route again, as one trip without a break.

    Only slopes matter of elevation, so each part's is shifted to begin where the last one ended. A fall from the route's beginning to
    its end is not there again: no road goes downhill for ever.
    """
    assert route.hz is not None
    names = list(dict.fromkeys(("speed_kmh", "acceleration_ms2", SENSED, *EDGES, *channels)))
    planned = [c for c in (*names, READINGS, AGE) if c in route.table.columns]
    parts = [route.table.select(planned), *([_without_fall(route.table.select(planned))] if again else [])]
    if driven is not None:
        own = [c for c in (*names, "power_kw", READINGS, AGE, "segment") if c in driven.table.columns]
        parts.insert(0, driven.table.select(own))
    if all("elevation_m" in part.columns for part in parts):  # a plan may not know it
        for i in range(len(parts) - 2, -1, -1):
            ends = parts[i]["elevation_m"].drop_nulls()
            begins = parts[i + 1]["elevation_m"].drop_nulls()
            if len(ends) and len(begins):
                parts[i] = parts[i].with_columns(pl.col("elevation_m") + (begins[0] - ends[-1]))
    table = pl.concat(parts, how="diagonal")
    time = (np.arange(table.height) + 1.0) / route.hz
    segment = table["segment"].forward_fill() if "segment" in table.columns else pl.repeat(0, table.height, eager=True)
    table = table.with_columns(time_s=pl.Series(time), segment=segment.cast(pl.Int32))
    return Trip("route", table, route.hz)


def _without_fall(table: pl.DataFrame) -> pl.DataFrame:
    """Rows that end no lower than they begin, what they fall on the whole given back along the way."""
    height = table["elevation_m"].drop_nulls() if "elevation_m" in table.columns else pl.Series()
    driven = table["speed_kmh"].fill_null(0.0).clip(0.0).cum_sum()
    if not len(height) or height[0] <= height[-1] or driven[-1] <= 0:
        return table
    return table.with_columns(pl.col("elevation_m") + (height[0] - height[-1]) * driven / driven[-1])


def outside_channels(model: PowerModel, route: Trip) -> list[str]:
    """Inputs that leave their training range somewhere on the route."""
    rows = model.feature_map_.transform(route)
    return [c for i, c in enumerate(model.feature_map_.channels) if rows.which_outside[:, i].any()]
