"""Chapter: one model on some trips, with everything the report's figures and sentences are read off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.bands import Bands
from evband.channels import SIMULATED
from evband.scores import Scores, measured
from evband.scores.regimes import attach, regimes

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.trips import Trips

Array = NDArray[np.float64]

WORST = 8  # moments
APART_S = 30.0  # two worst moments are at least this far apart
LAGS_S = 120.0


@dataclass(frozen=True, eq=False)
class Moment:
    """A row at which the measurement was far outside its band."""

    row: int
    trip_id: str
    time_s: float  # of the log's clock
    since_s: float  # since the trip's first row
    beyond_kw: float  # distance to the nearer end of the band


@dataclass(frozen=True, eq=False)
class Chapter:
    """A model's bands on trips with measured power, and their scores. `name` heads it, `about` is a sentence under that."""

    model: PowerModel
    bands: Bands
    scores: Scores
    trips: Trips
    name: str = ""
    about: str = ""

    @cached_property
    def rows(self) -> Bands:
        """The bands with measured power, speed and acceleration beside them."""
        bands = attach(self.bands, self.trips)
        measured(bands)
        return bands

    @property
    def level(self) -> float:
        return float(self.scores["level"])

    @property
    def simulated(self) -> bool:
        """Whether any of the trips is simulated; their power is then never called measured."""
        return any(trip_id.startswith(SIMULATED) for trip_id in self.trips.ids)

    @property
    def word(self) -> str:
        return "simulated" if self.simulated else "measured"

    @cached_property
    def power(self) -> Array:
        """Measured power, NaN where unknown."""
        return np.asarray(self.rows.power_kw, dtype=np.float64)

    @cached_property
    def interval(self) -> tuple[Array, Array]:
        return self.rows.interval(self.level)

    @cached_property
    def data_share(self) -> Array:
        """aleatoric / total: the part of each half-width that would stay if all members agreed."""
        total = self.rows.total
        return np.divide(self.rows.aleatoric, total, out=np.ones(len(total)), where=total > 0)

    @cached_property
    def scored(self) -> NDArray[np.bool_]:
        """The rows that the headline scores are made of: power known, warm-up over."""
        return np.isfinite(self.power) & ~self.rows.warmup

    @cached_property
    def missed(self) -> NDArray[np.bool_]:
        """Rows whose measured power is outside the band."""
        lower, upper = self.interval
        return np.isfinite(self.power) & ~((lower <= self.power) & (self.power <= upper))

    @cached_property
    def pit(self) -> Array:
        """F(y) of the scored rows, by which rank in its own distribution each measurement came."""
        rows = self.rows.rows(self.scored)
        return np.asarray(rows.members.tails(self.power[self.scored])[0])

    @cached_property
    def regime(self) -> NDArray | None:
        return regimes(self.rows)

    def outside_most(self) -> tuple[float, str]:
        """(share of rows with an input outside its training range, the input that is so most often)."""
        names = self.rows.outside_channel
        known = [] if names is None else [str(name) for name in names[self.rows.outside] if name]
        return float(self.rows.outside.mean()), max(set(known), key=known.count) if known else ""

    @cached_property
    def step_s(self) -> float:
        """Seconds from row to row."""
        if self.rows.hz:
            return 1.0 / self.rows.hz
        steps = np.diff(self.rows.time_s)
        return float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0

    @cached_property
    def unbroken(self) -> NDArray[np.bool_]:
        """Whether each row follows the one before it without a gap, in the same trip."""
        same = self.rows.trip_id[1:] == self.rows.trip_id[:-1]
        return np.concatenate([[False], same & (np.diff(self.rows.time_s) < 1.5 * self.step_s)])

    def typical_stretch(self, seconds: float) -> slice:
        """A stretch of about `seconds` for the first picture: lively, its band easy to see, as wide and covered as often as over all rows.

        The largest mean band width over height of the picture (a quarter is enough), less a penalty for each per cent by which its coverage differs
        from that of all rows and by which its mean band width does, so that the picture flatters no model; power varies at least half as much as it does overall.
        The longest unbroken stretch where none is that long.
        """
        from scipy.ndimage import maximum_filter1d, minimum_filter1d

        length = max(2, round(seconds / self.step_s))
        run = self._longest_run()
        if run.stop - run.start <= length:
            return run

        def over(values: Array) -> Array:
            total = np.concatenate([[0.0], np.cumsum(values)])
            return np.asarray(total[length:] - total[:-length])

        y, (lower, upper) = np.where(np.isfinite(self.power), self.power, self.rows.mean), self.interval
        centre = slice(
            length // 2, length // 2 + len(y) - length + 1
        )  # filters are centred, stretches begin at their start
        height = (
            maximum_filter1d(np.maximum(y, upper), length)[centre]
            - minimum_filter1d(np.minimum(y, lower), length)[centre]
        )
        spread = np.sqrt(np.maximum(over(y**2) / length - (over(y) / length) ** 2, 0.0))
        missing = over(self.missed.astype(float)) / length
        overall = float(self.missed[self.scored].mean())
        lively = np.minimum(spread / (float(np.std(y[self.scored])) or 1.0), 0.5)
        width = over(upper - lower) / length
        visible = np.minimum(width / np.maximum(height, 1e-9), 0.25)
        wider = np.abs(width / (float((upper - lower)[self.scored].mean()) or 1.0) - 1.0)
        merit = visible + lively - wider - 5.0 * np.abs(missing - overall)
        gaps = (~self.unbroken).astype(float)
        gaps_inside = over(gaps) - gaps[: len(merit)]  # the first row of a stretch may follow a gap
        whole = (over((~self.scored).astype(float)) < 0.5) & (gaps_inside < 0.5)
        start = int(np.argmax(np.where(whole, merit, -np.inf)))
        return slice(start, start + length)

    def _longest_run(self) -> slice:
        """The longest stretch of scored rows without a gap."""
        best, start = slice(0, 0), 0
        for row in range(len(self.rows) + 1):
            if row == len(self.rows) or not self.scored[row] or not self.unbroken[row]:
                if row - start > best.stop - best.start:
                    best = slice(start, row)
                start = row if row < len(self.rows) and self.scored[row] else row + 1
        return best

    @cached_property
    def autocorrelation(self) -> tuple[Array, Array]:
        """(lags in s, correlation of the error with itself so much later), up to two minutes, over unbroken stretches.

        Empty where the error does not vary, as in a single row.

        r_k = sum e_t e_(t+k) / sqrt(sum e_t^2 sum e_(t+k)^2) over pairs k rows apart, after the mean error is taken off.
        """
        error = np.where(self.scored, self.power - self.rows.mean, np.nan)
        error = error - np.nanmean(error)
        piece = np.cumsum(~self.unbroken)
        longest = int(min(LAGS_S / self.step_s, max(1, len(error) // 4)))
        lags = np.unique(np.linspace(0, longest, 121).round().astype(int))
        found = []
        for k in lags:
            a, b = error[: len(error) - k], error[k:]
            both = np.isfinite(a) & np.isfinite(b) & (piece[: len(error) - k] == piece[k:])
            scale = np.sqrt(np.sum(a[both] ** 2) * np.sum(b[both] ** 2))
            found.append(np.sum(a[both] * b[both]) / scale if scale > 0 else np.nan)
        known = np.isfinite(found)
        return lags[known] * self.step_s, np.asarray(found)[known]

    @property
    def memory_s(self) -> float | None:
        """Seconds until the error's autocorrelation first falls under 1/e; None if it never does."""
        lags, r = self.autocorrelation
        under = np.flatnonzero(r < np.exp(-1.0))
        return float(lags[under[0]]) if len(under) else None

    def worst_moments(self) -> list[Moment]:
        """The rows farthest outside their bands in kW, `APART_S` apart; none where nothing is outside."""
        lower, upper = self.interval
        beyond = np.where(self.scored, np.maximum(lower - self.power, self.power - upper), -np.inf)
        moments: list[Moment] = []
        for row in np.argsort(-beyond, kind="stable"):
            if not beyond[row] > 0 or len(moments) == WORST:
                break
            trip_id, time_s = str(self.rows.trip_id[row]), float(self.rows.time_s[row])
            if all(m.trip_id != trip_id or abs(m.time_s - time_s) >= APART_S for m in moments):
                first = self.rows.time_s[np.argmax(self.rows.trip_id == trip_id)]
                moments.append(Moment(int(row), trip_id, time_s, time_s - float(first), float(beyond[row])))
        return moments
