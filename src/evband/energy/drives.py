"""What energy needs of predicted trips: mean power, members, noise and measured power of every grid row, trip by trip."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from evband.bands import Bands, LocationScale, Mixture, QuantileSet, Stacked
from evband.errors import TripsError

Array = NDArray[np.float64]
OUTSIDE = 1.5  # an error's variance is taken as so many times as large where an input left the training range


@dataclass(frozen=True, eq=False)
class Drive:
    """One trip's rows. Members and noise are as trained: a stretch that calibrates single rows says nothing about sums."""

    trip_id: str
    hz: float
    mean: Array  # [T] kW
    members: Array  # [M, T] kW, location of every member
    noise: Array  # [T] kW^2, aleatoric variance
    outside: NDArray[np.bool_]  # [T]
    speed_kmh: Array  # [T]
    power_kw: Array  # [T] as measured, NaN where unknown
    linear: Array | None = None  # [T] kW, least squares on the road-load features
    climb_ms: Array | None = None  # [T], where elevation is an input

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def seconds(self) -> float:
        return len(self) / self.hz

    @property
    def hours(self) -> float:
        return self.seconds / 3600.0

    @property
    def distance_km(self) -> Array:
        """[T] driven by the end of each row."""
        return np.asarray(np.cumsum(self.speed_kmh) / self.hz / 3600.0)

    def rows(self, which: slice) -> Drive:
        """A stretch of the trip."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)[2:]}
        return replace(self, **{name: a[..., which] for name, a in arrays.items() if a is not None})

    def between_km(self, start: float, end: float) -> slice:
        """The rows that end after `start` and up to `end` kilometres."""
        return slice(*np.searchsorted(self.distance_km, [start, end], side="right").tolist())


def drives_of(bands: Bands, linear: Array | None = None, climb_ms: Array | None = None) -> list[Drive]:
    """Predicted trips as drives, in the order of the bands; `linear` and `climb_ms` are per row of all of them."""
    if bands.hz is None or bands.speed_kmh is None:
        raise TripsError("These bands lack their grid rate or speed, which energy needs; take them from predict.")
    ids = bands.trip_id.tolist()
    starts = [i for i, name in enumerate(ids) if i == 0 or name != ids[i - 1]]
    return [_drive(bands, a, b, linear, climb_ms) for a, b in zip(starts, [*starts[1:], len(ids)], strict=True)]


def _drive(bands: Bands, a: int, b: int, linear: Array | None, climb_ms: Array | None) -> Drive:
    part = bands.members.rows(np.arange(a, b))
    mean, stretch = part.mean, np.asarray(bands.stretch)[a:b]
    speed, power = bands.speed_kmh, bands.power_kw
    assert speed is not None
    assert bands.hz is not None
    return Drive(
        trip_id=str(bands.trip_id[a]),
        hz=bands.hz,
        mean=mean,
        members=mean + (_locations(part) - mean) / stretch,
        noise=np.asarray(part.aleatoric) / stretch**2,
        outside=np.asarray(bands.outside[a:b], bool),
        speed_kmh=np.nan_to_num(np.maximum(speed[a:b], 0.0)),
        power_kw=np.full(b - a, np.nan) if power is None else np.asarray(power[a:b], float),
        linear=None if linear is None else linear[a:b],
        climb_ms=None if climb_ms is None else climb_ms[a:b],
    )


def _locations(part: Mixture) -> Array:
    """[M, n]: where each member puts the power; a quantile member its median, moved so that all average to the mean."""
    if isinstance(part, Stacked) and len(part.parts) == 1:
        return _locations(part.parts[0])
    if isinstance(part, LocationScale):
        return part.mu.astype(np.float64)
    if isinstance(part, QuantileSet):
        medians = part.medians.astype(part.q.dtype)  # as members are kept
        return np.asarray(medians - medians.mean(0) + part.mean, dtype=np.float64)
    raise TripsError("Energy needs the members of one model per trip; predict each trip with a single model.")
