"""`evband.trips.between` of single numbers, compiled: for rows that are made one at a time."""

from __future__ import annotations

from evband.compiled import compiled
from evband.trips import between

start_speed, end_speed, slope_of, speed_at, mean_speed, sureness = (
    compiled()(rule)
    for rule in (
        between.start_speed,
        between.end_speed,
        between.slope_of,
        between.speed_at,
        between.mean_speed,
        between.sureness,
    )
)
