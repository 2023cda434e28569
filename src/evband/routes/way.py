"""A way as route files and routers give it, before it is driven: pieces with a speed, elevation, halts, coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.errors import LogError, SettingsError
from evband.routes.geo import check_coordinates, step_metres
from evband.routes.profile import LONGEST_KM, Route, from_profile
from evband.routes.speeds import FASTEST_KMH, SLOWEST_KMH, TYPICAL_KMH, joined
from evband.terrain import Tiles, smoothing, tidy_elevation

Array = NDArray[np.float64]

MOST_POINTS = 2_000_000
WIDEST_GAP_KM = 25.0  # points farther apart leave open which way the road goes
SPARSE_KM = 1.0
STANDING_MS = 0.4  # slower between two fixes of a track is standing; what it moves is the receiver's noise


@dataclass(frozen=True, eq=False)
class Way:
    """Pieces one after the other. Elevation lies on kilometres of its own, coordinates on theirs."""

    where: str
    metres: Array  # [pieces], all above 0
    speed_kmh: Array  # [pieces], NaN where it is not known
    stop_s: Array | None = None  # [pieces + 1] halts before, between and after
    elevation: tuple[Array, Array] | None = None  # (km, m)
    places: tuple[Array, Array, Array] | None = None  # (km, lat, lon)
    notes: tuple[str, ...] = ()
    fill_kmh: float | None = None  # what is driven where the speed is not known; a typical speed unless given

    def noted(self, *notes: str) -> Way:
        return replace(self, notes=(*self.notes, *notes))

    def with_elevation(self, tiles: Tiles) -> Way:
        """Elevation from tiles, in place of the way's own."""
        if self.places is None:
            raise LogError(f"{self.where}: it has no coordinates, so tiles cannot give its elevation; leave --dem out.")
        km, lat, lon = self.places
        fine = np.linspace(
            km[0], km[-1], int(np.clip(1000 * (km[-1] - km[0]) / smoothing.STEP_M, 2, smoothing.MOST_POINTS))
        )
        east = np.interp(fine, km, np.unwrap(lon, period=360.0))  # where the way crosses 180 degrees, so does this
        east = np.where(np.abs(east) > 180.0, (east + 180.0) % 360.0 - 180.0, east)
        height = tiles.elevation_for(np.interp(fine, km, lat), east)
        if not np.isfinite(height).any():
            raise LogError(f"{self.where}: the tiles have no elevation anywhere along it (voids, or the sea).")
        return replace(self, elevation=(fine, height))

    def route(self, start_kmh: float = 0.0) -> Route:
        """This way as a route that starts at `start_kmh`."""
        if self.fill_kmh is not None and not SLOWEST_KMH <= self.fill_kmh <= FASTEST_KMH:
            raise SettingsError(f"The speed is {self.fill_kmh} km/h; give one from {SLOWEST_KMH:g} to {FASTEST_KMH:g}.")
        known = np.isfinite(self.speed_kmh)
        notes = list(self.notes)
        fill = TYPICAL_KMH if self.fill_kmh is None else self.fill_kmh
        if not known.all():
            share = float(self.metres[~known].sum() / self.metres.sum())
            notes.append(
                f"{share:.0%} of the way has no speed and is taken at {fill:g} km/h"
                + ("" if self.fill_kmh else ", give --speed-kmh to set it")
            )
        speed = np.where(known, np.maximum(self.speed_kmh, SLOWEST_KMH), fill)
        km = np.concatenate([[0.0], np.cumsum(self.metres)]) / 1000.0
        table: dict[str, Array] = {"distance_km": km, "speed_kmh": np.append(speed, speed[-1])}
        if self.stop_s is not None and self.stop_s.any():
            table["stop_s"] = self.stop_s
        along = None
        if self.elevation is not None:
            at, height, spikes = tidy_elevation(*self.elevation)
            if spikes:
                notes.append(f"elevation spikes were taken out at {spikes} points")
            if len(at):
                along = (at, height)
                table["elevation_m"] = np.interp(km, at, height)
        route = from_profile(pl.DataFrame(table), self.where, start_kmh)
        if along is not None:
            route = replace(route, along={**route.along, "elevation_m": along})
        return replace(route, name=Path(self.where).name, notes=tuple(notes))


def from_points(
    where: str,
    lat: Array,
    lon: Array,
    elevation_m: Array | None = None,
    time_s: Array | None = None,
    speed_kmh: Array | None = None,
) -> Way:
    """A way through points; with times it is a drive, whose speeds and halts are taken from it.

    `speed_kmh` [points] holds from its point to the next.
    """
    if len(lat) < 2:
        raise LogError(f"{where}: a route needs at least two points and has {len(lat)}; add where it ends.")
    check_coordinates(lat, lon, where)
    step = step_metres(lat, lon)
    if step.max() > 1000.0 * WIDEST_GAP_KM:
        i = int(np.argmax(step))
        raise LogError(
            f"{where}: points {i + 1} and {i + 2} lie {step[i] / 1000:.0f} km apart, which leaves open how the road goes; "
            f"add points between them, or ask a router (evband route --router)."
        )
    notes: tuple[str, ...] = ()
    if np.mean(step) > 1000.0 * SPARSE_KM:
        notes = (f"its points lie {np.mean(step) / 1000:.1f} km apart, so straight lines between them are too short",)
    halts = None
    if time_s is not None:
        seconds = np.diff(time_s)
        halts = np.where(step < STANDING_MS * seconds, seconds, 0.0)
        step = np.where(halts > 0, 0.0, step)
    km = np.concatenate([[0.0], np.cumsum(step)]) / 1000.0
    if km[-1] <= 0:
        raise LogError(f"{where}: all its points are at one place, so this route leads nowhere.")
    if km[-1] > LONGEST_KM:
        raise LogError(f"{where}: it is {km[-1]:.0f} km long; a route may have {LONGEST_KM:g} km, so cut it.")
    height = None if elevation_m is None or not np.isfinite(elevation_m).any() else (km, elevation_m)
    way = Way(where, np.array([1.0]), np.array([np.nan]), elevation=height, places=(km, lat, lon), notes=notes)
    if time_s is not None and halts is not None:
        return _timed(way, step, np.diff(time_s), halts)
    if speed_kmh is None:
        return replace(way, metres=np.array([1000.0 * km[-1]]))
    return from_speeds(way, step, speed_kmh[:-1])


def from_speeds(way: Way, metres: Array, speed_kmh: Array, rounding_s: float = 0.0) -> Way:
    """Pieces with speeds (NaN where not known): joined to at least 50 m where all are known, equal neighbours made one."""
    there = metres > 0
    metres, speed_kmh = metres[there], speed_kmh[there]
    if np.isfinite(speed_kmh).all():
        metres, seconds = joined(metres, 3.6 * metres / np.maximum(speed_kmh, SLOWEST_KMH), rounding_s=rounding_s)
        speed_kmh = 3.6 * metres / seconds
    shown = np.round(np.where(np.isnan(speed_kmh), -1.0, speed_kmh), 3)
    first = np.flatnonzero(np.append(True, shown[1:] != shown[:-1]))
    return replace(way, metres=np.add.reduceat(metres, first), speed_kmh=speed_kmh[first])


def _timed(way: Way, step: Array, seconds: Array, halts: Array) -> Way:
    """A drive's pieces of at least 50 m with their mean speed while moving; halts of 5 s and more stand between them."""
    moving = np.where(halts > 0, 0.0, seconds)
    length, time = joined(step, moving)
    ends = np.cumsum(length)
    at = np.searchsorted(ends, np.concatenate([[0.0], np.cumsum(step)])[:-1], side="right")
    stops = np.bincount(np.minimum(at, len(length)), weights=halts, minlength=len(length) + 1)
    long = np.where(stops >= 5.0, stops, 0.0).astype(np.float64)
    speed = 3.6 * length / np.maximum(time, 1e-9)
    if speed.max() > FASTEST_KMH:
        i = int(np.argmax(speed))
        raise LogError(
            f"{way.where}: its times make {speed[i]:.0f} km/h at {ends[i] / 1000:.1f} km; correct them or drop the times."
        )
    return replace(way, metres=length, speed_kmh=speed, stop_s=long)
