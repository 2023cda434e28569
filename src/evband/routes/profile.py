"""Routes: where a drive will go, as a profile in a CSV file or as a log drove it, put on a model's grid.

A profile has `speed_kmh` and either `distance_km` or `time_s`; `elevation_m`, `ambient_temp_c`, `wind_ms` and `stop_s` may join.
By distance, a row's speed is what is driven from there to the next row (a planner's legs), 0 means a halt there, and speed changes
at no more than `RATE_MS2`: a coarse profile asks for steps that no car drives. By time, speed is straight between rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import CHANNELS, DENSE, EDGES, READINGS
from evband.errors import LogError
from evband.logs.tidy import number, parse
from evband.routes.speeds import FASTEST_KMH
from evband.trips import Trip, Trips
from evband.trips.readings import integral

Array = NDArray[np.float64]

RATE_MS2 = 1.2  # speeding up and braking of an unhurried driver
PROFILE = ("speed_kmh", "distance_km", "time_s", "stop_s")
PLACES = ("elevation_m", "ambient_temp_c", "wind_ms", "grade_pct", "hvac_power_kw")
LOG_STEP_S = 2.5  # a time profile sampled more finely than this is a log
# The border of routes: what is beyond is one sentence, and no memory or time is spent on it.
MOST_POINTS = 200_000
LONGEST_S = 14 * 86_400.0  # driving and halts together
LONGEST_KM = 20_000.0
SHORTEST = {"distance_km": 0.1, "time_s": 1.0}
CLOSEST = 1e-9  # between two points, in either: a step of 1e-310 s would be an endless acceleration
MOST_ROWS = 20_000_000  # on a grid


@dataclass(frozen=True, eq=False)
class Route:
    """Speed over time, straight between instants, and what lies along the way; `log` is the drive it repeats, if any.

    >>> import evband, polars as pl
    >>> evband.read_route(pl.DataFrame({"distance_km": [0.0, 10.0], "speed_kmh": [80.0, 80.0]})).channels
    ('speed_kmh', 'acceleration_ms2')
    """

    name: str
    time_s: Array  # [instants], from 0
    speed_kmh: Array  # [instants]
    along: dict[str, tuple[Array, Array]] = field(default_factory=dict)  # channel -> (km, value)
    log: Trip | None = None
    profile: pl.DataFrame | None = field(default=None, repr=False)  # the legs it was made of
    notes: tuple[str, ...] = ()  # what was assumed
    road: tuple[Array, Array] | None = field(
        default=None, repr=False
    )  # (km, km/h) as first planned, where it was retimed

    @property
    def channels(self) -> tuple[str, ...]:
        """What this route can tell a model."""
        own = ("speed_kmh", "acceleration_ms2", *self.along)
        return own if self.log is None else tuple(dict.fromkeys((*own, *self.log.channels)))

    def with_everywhere(self, channel: str, value: float) -> Route:
        """The same route with one value of a channel all along."""
        self._check_value(channel, value)
        log = self.log and replace(self.log, table=self.log.table.with_columns(pl.lit(float(value)).alias(channel)))
        return replace(self, along={**self.along, channel: (np.zeros(1), np.array([value]))}, log=log)

    def shifted(self, channel: str, by: float) -> Route:
        """The same route with a channel changed by a constant."""
        km, value = self.along[channel]
        log = self.log and replace(self.log, table=self.log.table.with_columns(pl.col(channel) + by))
        return replace(self, along={**self.along, channel: (km, value + by)}, log=log)

    def at_pace(self, factor: float) -> Route:
        """The same way at `factor` times the speed."""
        return self._retimed(self.time_s / factor, self.speed_kmh * factor, factor**2)

    def at_most(self, kmh: float) -> Route:
        """The same way, nowhere faster than this."""
        speed = np.minimum(self.speed_kmh, kmh)
        before, after = (v[1:] + v[:-1] for v in (self.speed_kmh, speed))
        step = np.diff(self.time_s) * np.where(after > 0, before / np.where(after > 0, after, 1.0), 1.0)
        return self._retimed(np.concatenate([[self.time_s[0]], self.time_s[0] + np.cumsum(step)]), speed)

    def _retimed(self, time_s: Array, speed_kmh: Array, push: float | None = None) -> Route:
        """The same way at other times; a log's readings move along, of those that say where it is and what weather.

        Measured acceleration is `push` times what it was, or left out: it then follows from speed."""
        log = self.log
        if log is not None and log.hz is None:
            old = log.table["time_s"].to_numpy()
            begin = float(log.series("speed_kmh")[0][0])
            new = begin + np.interp(old - begin, self.time_s, time_s)
            readings = log.table.with_columns(time_s=pl.Series(new)).select(
                "time_s", *(c for c in PLACES if log.has(c))
            )
            speed = pl.Series(np.interp(new - begin, time_s, speed_kmh)).set(log.table["speed_kmh"].is_null(), None)
            readings = readings.with_columns(speed_kmh=speed)
            if push is not None and log.has("acceleration_ms2"):
                readings = readings.with_columns(acceleration_ms2=push * log.table["acceleration_ms2"])
            kept = np.append(True, np.diff(new) > 0) & (old >= begin)
            log = replace(log, table=readings.filter(pl.Series(kept)))
        elif log is not None:
            log = None
        return replace(self, time_s=time_s, speed_kmh=speed_kmh, log=log, road=self._road)

    @property
    def _road(self) -> tuple[Array, Array]:
        return (self.distance_km(self.time_s), self.speed_kmh) if self.road is None else self.road

    def road_kmh(self, km: Array) -> Array:
        """What is planned at these places for the road: driving slowly does not turn a motorway into a town."""
        return np.interp(km, *self._road)

    def on_grid(self, hz: float, bridge_s: float = 0.0) -> Trip:
        """Rows as `evband.trips.grid` makes them: mean speed of each bin, the speeds at its edges, places at its end."""
        if self.log is not None:
            return self.log.on_grid(hz, bridge_s=bridge_s)
        if self.time_s[-1] * hz > MOST_ROWS:
            raise LogError(
                f"The route {self.name} takes {self.time_s[-1] / 3600:.0f} h, over {MOST_ROWS} rows at {hz:g} Hz; plan it in parts."
            )
        rows = max(int(np.floor(self.time_s[-1] * hz + 1e-6)), 1)
        ends = np.arange(rows + 1) / hz
        speed = np.interp(ends, self.time_s, self.speed_kmh)
        driven = self.distance_km(ends)
        table = {
            "time_s": ends[1:],
            "speed_kmh": np.diff(driven) * 3600.0 * hz,
            "acceleration_ms2": np.full(rows, np.nan),  # not measured: a model takes it from the edges
            **dict(zip(EDGES, (speed[:-1], speed[1:]), strict=True)),
            READINGS: np.full(rows, DENSE / hz),
        }
        table |= {name: np.interp(driven[1:], km, value) for name, (km, value) in self.along.items()}
        frame = pl.DataFrame(table, nan_to_null=True).with_columns(segment=pl.lit(0, dtype=pl.Int32))
        return Trip(self.name, frame, float(hz))

    def distance_km(self, at_s: Array) -> Array:
        """The integral of speed up to each instant."""
        step, v = np.diff(self.time_s), self.speed_kmh
        whole = integral((self.time_s, v))
        i = np.clip(np.searchsorted(self.time_s, at_s, side="right") - 1, 0, len(step) - 1)
        x = np.clip(at_s - self.time_s[i], 0.0, step[i])
        slope = (v[i + 1] - v[i]) / np.where(step[i] > 0, step[i], 1.0)
        return np.asarray((whole[i] + x * (v[i] + slope * x / 2)) / 3600.0)

    @staticmethod
    def _check_value(channel: str, value: float) -> None:
        limits = CHANNELS[channel]
        if not limits.low <= value <= limits.high:
            raise LogError(f"{channel} is {value}; give one in {limits.low:g}..{limits.high:g} {limits.unit}.")


def profile_table(path: Path, data: bytes) -> pl.DataFrame | None:
    """The file's table if it is a profile; None if it should be read as a log."""
    header = {_name(name) for name in data[:4096].removeprefix(b"\xef\xbb\xbf").split(b"\n")[0].decode("utf-8", "replace").split(",")}  # fmt: skip
    if not data.strip():
        raise LogError(f"{path}: the route is empty; it needs speed_kmh and distance_km or time_s.")
    if "speed_kmh" not in header or not header & {"distance_km", "time_s"}:
        return None
    table = parse(path, data)
    if "time_s" in header and "stop_s" not in header and table.height > 20:
        time = next(name for name in table.columns if _name(name) == "time_s")
        step = np.median(np.diff(_numbers(table, time, str(path))))
        return None if step <= LOG_STEP_S else table
    return table


def from_users(table: pl.DataFrame, where: str, start_kmh: float = 0.0) -> Route:
    """A profile as people write it: spaces and capitals in its names do not count, and what it has beyond is noted."""
    names = [_name(name) for name in table.columns]
    if len(set(names)) == len(names):
        table = table.rename(dict(zip(table.columns, names, strict=True)))
    found = from_profile(table, where, start_kmh)
    unused = [name for name in table.columns if name and name not in (*PROFILE, *PLACES)]
    if not unused:
        return found
    note = f"the route's {', '.join(unused[:5])} is not used; beside speed a route has {', '.join((*PROFILE[1:], *PLACES))}"
    return replace(found, notes=(*found.notes, note))


def _name(text: str) -> str:
    return text.strip(' "\r').lower()


def from_profile(table: pl.DataFrame, where: str, start_kmh: float = 0.0) -> Route:
    """Check a profile and drive it."""
    if "speed_kmh" not in table.columns or not {"distance_km", "time_s"} & set(table.columns):
        raise LogError(
            f"{where}: a route needs speed_kmh and distance_km or time_s, and has {', '.join(table.columns)}."
        )
    if table.height > MOST_POINTS:
        raise LogError(f"{where}: a route has at most {MOST_POINTS} points and this one {table.height}; thin it out.")
    if table.height < 2:
        raise LogError(f"{where}: a route needs at least two points and has {table.height}; add where it ends.")
    speed = _numbers(table, "speed_kmh", where)
    if (bad := (speed < 0) | (speed > FASTEST_KMH)).any():
        row = int(np.argmax(bad))
        raise LogError(
            f"{where}: speed_kmh is {speed[row]:g} in row {row + 1}; a route's speeds are 0 to {FASTEST_KMH:g} km/h."
        )
    by = "time_s" if "time_s" in table.columns else "distance_km"
    axis = _numbers(table, by, where)
    if (np.diff(axis) < CLOSEST).any():
        row = int(np.argmax(np.diff(axis) < CLOSEST)) + 1
        raise LogError(
            f"{where}: {by} goes from {axis[row - 1]:g} to {axis[row]:g} in row {row + 1}; it must increase."
        )
    stops = _numbers(table, "stop_s", where, fill=0.0) if "stop_s" in table.columns else np.zeros(len(axis))
    if (stops < 0).any():
        raise LogError(f"{where}: stop_s is negative in row {int(np.argmax(stops < 0)) + 1}; give seconds from 0 on.")
    _check_extent(where, by, axis, speed, stops)
    if not speed.any():
        raise LogError(f"{where}: speed_kmh is 0 everywhere, so this route leads nowhere; give the speeds driven.")
    if by == "time_s":
        time, at = _halts(axis - axis[0], speed, stops)
        route = Route(Path(where).name, time, at)
        km = route.distance_km(axis - axis[0] + np.cumsum(stops))
    else:
        km = axis - axis[0]
        route = Route(Path(where).name, *_legs(1000.0 * km, speed / 3.6, stops, start_kmh / 3.6))
    return replace(
        route, profile=table, along={name: _along(table, name, km, where) for name in PLACES if name in table.columns}
    )


def _check_extent(where: str, by: str, axis: Array, speed: Array, stops: Array) -> None:
    """An error for a route that nobody drives: its time, halts and length are added up before anything is built of them."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        length = float(axis[-1] - axis[0])
        leg = leg_speeds(speed)
        moving = leg > 0
        driving = length if by == "time_s" else 3600.0 * float(np.sum(np.diff(axis)[moving] / leg[moving]))
        seconds = driving + float(stops.sum())
    if not length >= SHORTEST[by]:
        raise LogError(f"{where}: the route goes over {length:g} in {by}, {SHORTEST[by]:g} is the least; correct {by}.")
    if by == "distance_km" and not length <= LONGEST_KM:
        raise LogError(f"{where}: the route is {length:g} km long, more than {LONGEST_KM:g}; is distance_km in metres?")
    if not seconds <= LONGEST_S:
        raise LogError(
            f"{where}: the route takes {seconds / 3600:.3g} h with its halts, more than {LONGEST_S / 3600:g}; "
            "correct speed_kmh, stop_s or time_s, or plan it in parts."
        )


def _along(table: pl.DataFrame, name: str, km: Array, where: str) -> tuple[Array, Array]:
    """A channel along the way; a forecast at a few points is enough, straight lines join them."""
    column = number(table, name, where).to_numpy()  # NaN where it has none
    known = np.isfinite(column)
    if not known.any():
        raise LogError(f"{where}: {name} has no value in any row; fill it in or leave the column out.")
    limits = CHANNELS[name]
    bad = known & ~((column >= limits.low) & (column <= limits.high))
    if bad.any():
        row = int(np.argmax(bad))
        raise LogError(f"{where}: {name} is {column[row]:g} in row {row + 1}; it cannot be; correct it.")
    return km[known], column[known]


def _numbers(table: pl.DataFrame, name: str, where: str, fill: float | None = None) -> Array:
    column = number(table, name, where).to_numpy()
    if fill is not None:
        return np.where(np.isfinite(column), column, fill)
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column))) + 1
        raise LogError(f"{where}: {name} is missing in row {row}; a route must have no gaps there, so fill it in.")
    return column


def leg_speeds(speed: Array) -> Array:
    """[points - 1]: what is driven from each point to the next; a halt's leg goes on at the next speed."""
    return np.where(speed[:-1] > 0, speed[:-1], speed[1:])


def _halts(time: Array, speed: Array, stops: Array) -> tuple[Array, Array]:
    """A time profile with its halts put in: the car stands there `stop_s` longer."""
    before = np.cumsum(stops) - stops
    out_time, out_speed = [time[0] + before[0]], [speed[0]]
    for i in range(len(time)):
        for instant in ([time[i] + before[i]] if i else []) + ([time[i] + before[i] + stops[i]] if stops[i] else []):
            if instant > out_time[-1]:
                out_time.append(instant)
                out_speed.append(speed[i] if not stops[i] else 0.0)
    return np.array(out_time), np.array(out_speed)


def _legs(metres: Array, speed: Array, stops: Array, start: float) -> tuple[Array, Array]:
    """(time_s, speed_kmh) of legs driven at their speed, changing it at `RATE_MS2`: up after a point, down before it."""
    length = np.diff(metres)
    leg = leg_speeds(speed)
    leg = np.where(leg > 0, leg, leg.max())
    node = np.append(np.append(start, np.minimum(leg[:-1], leg[1:])), leg[-1])
    halt = (speed == 0) | (stops > 0)
    halt[0] = halt[0] and start == 0
    node[halt] = 0.0
    reach = 2 * RATE_MS2 * metres
    square = np.minimum.accumulate((node**2 + reach)[::-1])[::-1] - reach  # braking in time for every point ahead
    square = np.maximum(np.minimum.accumulate(square - reach) + reach, 0.0)  # after speeding up from every point behind
    begin, end = square[:-1], square[1:]
    peak = np.minimum(leg**2, (begin + end) / 2 + RATE_MS2 * length)
    peak = np.maximum(peak, np.maximum(begin, end))
    v0, v1, vp = np.sqrt(begin), np.sqrt(end), np.sqrt(peak)
    cruise = np.maximum(length - (2 * peak - begin - end) / (2 * RATE_MS2), 0.0)
    seconds = np.stack([(vp - v0) / RATE_MS2, cruise / vp, (vp - v1) / RATE_MS2, stops[1:]], axis=1).ravel()
    speeds = np.stack([vp, vp, v1, v1], axis=1).ravel()  # at the end of each of these
    kept = seconds > 1e-9
    first = np.array([0.0, stops[0]]) if stops[0] > 0 else np.zeros(1)
    time = np.concatenate([first, first[-1] + np.cumsum(seconds[kept])])
    return time, 3.6 * np.concatenate([np.full(len(first), np.sqrt(square[0])), speeds[kept]])


def from_log(trip: Trip) -> Route:
    """The route as a log drove it: its own rows where nothing is changed, else its speed and places."""
    time, speed = trip.series("speed_kmh")
    if len(time) < 2:
        raise LogError(
            f"Trip {trip.trip_id} has {len(time)} speed reading{'s' * (len(time) != 1)}; a route needs at least two."
        )
    route = Route(trip.trip_id, time - time[0], np.maximum(speed, 0.0), log=trip)
    along = {}
    for name in PLACES:
        if trip.has(name):
            at, value = trip.series(name)
            along[name] = (route.distance_km(np.clip(at - time[0], 0.0, None)), value)
    return replace(route, along=along)


def only_trip(trips: Trips, where: str) -> Trip:
    if len(trips) > 1:
        raise LogError(f"{where}: it holds {len(trips)} trips, and a route is one; cut out the one to be driven.")
    return trips[0]
