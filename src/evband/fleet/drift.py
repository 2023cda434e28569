"""Whether a car rolls harder than it did: tyres, brakes, load, ageing; the car against itself, trip by trip.

Of each trip, before the car learns from it, the errors of the mean are explained by the trip's own effects (an offset
and shares of drag and rolling resistance, `evband.adaptation.update`): the share of rolling resistance is the trip's
reading. Weather and load move it from trip to trip by amounts that nobody knows beforehand, so readings are judged by
the car's own earlier ones: with n of them, mean m and deviation s,

    T = (x - m) / (s sqrt(1 + 1/n)) ~ t with n - 1 degrees,      U = the normal score of T, cut to +-`MOST`

and a sum  S <- max(0, S + U - `SLACK`)  that reaches `LIMIT` is an alarm (a self-starting CUSUM, Hawkins 1987), one sum
upwards and one downwards. Without a change normal readings reach it about once in 10,000 trips, found by drawing them:
one false alarm in ten years of a car with 1,000 trips per year (`benchmarks.fleet.drift` has that of real readings).
While a sum is above `HELD`, readings do not join those that others are judged by; after an alarm
the car is judged by its readings from then on.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri, stdtr

from evband.adaptation.members import CORRELATED, Evidence

if TYPE_CHECKING:
    from evband.model import PowerModel

SLACK, LIMIT = 0.75, 6.0  # k and h, in deviations
MOST = 3.0
FEWEST = 6  # readings that others are judged by
HELD = 3.0  # a sum from which readings wait: after a change they would blur what they are judged by
LATE = 0.2  # weight of the newest reading in the recent change
ALARM = "it rolls"  # how a note of an alarm begins
ROLLING = 2  # column of a trip's effects


@dataclass(frozen=True)
class Drift:
    """Running moments of a car's readings since its last alarm, and the two sums; readings are shares of rolling resistance."""

    count: int = 0
    since: int = 0  # trips since the last alarm
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from the mean
    up: float = 0.0
    down: float = 0.0
    alarm: float = 0.0  # change found by the last alarm, 0 where there was none
    recent: float = 0.0  # mean distance of late readings from the mean

    def after(self, reading: float) -> Drift:
        """With one trip more."""
        n, up, down = self.count, self.up, self.down
        distance = reading - self.mean
        recent = self.recent + (distance - self.recent) * LATE
        if n >= FEWEST and self.squares > 0:
            deviation = math.sqrt(self.squares / (n - 1) * (1.0 + 1.0 / n))
            score = float(np.clip(ndtri(stdtr(n - 1, (reading - self.mean) / deviation)), -MOST, MOST))
            up, down = max(0.0, up + score - SLACK), max(0.0, down - score - SLACK)
        if max(up, down) >= LIMIT:
            return Drift(alarm=recent)
        if max(up, down) > HELD:
            return replace(self, up=up, down=down, since=self.since + 1, recent=recent)
        mean = self.mean + distance / (n + 1)
        return replace(
            self, count=n + 1, mean=mean, squares=self.squares + distance * (reading - mean), up=up, down=down,
            since=self.since + 1, recent=recent,
        )  # fmt: skip

    @property
    def change(self) -> float | None:
        """Share by which rolling resistance has risen: by the last alarm, or of late; None before anything can be told."""
        return self.recent if self.count > FEWEST else self.alarm or None

    def notes(self, trips: int) -> list[str]:
        """A note where the last so many trips raised an alarm."""
        if not self.alarm or self.since >= max(1, trips):
            return []
        way = "harder" if self.alarm > 0 else "more easily"
        share = f"{abs(self.alarm):.0%} of rolling resistance"
        return [f"{ALARM} {way} than before, by about {share}: check tyres, brakes and load"]

    def to_list(self) -> list[float]:
        return [float(number) for number in astuple(self)]

    @classmethod
    def of(cls, saved: Any) -> Drift:
        """Inverse of `to_list`; what a part holds is not to be trusted."""
        numbers = [float(number) for number in saved]
        if len(numbers) != len(fields(cls)) or not all(map(math.isfinite, numbers)) or min(numbers[0], numbers[3]) < 0:
            return cls()
        return cls(int(numbers[0]), int(numbers[1]), *numbers[2:])


def reading(model: PowerModel, rows: Evidence) -> float:
    """Rolling resistance of one trip that the model has not learned from, as a share above what it expects."""
    views = model.architecture_.unpack(model.theta_)
    location, scale = (views["head_w"][:, k] for k in (0, 1))
    mu = (
        (rows.h @ location[..., None])[..., 0].mean(0) + rows.r @ views["road_w"].mean(0) + views["head_b"][:, 0].mean()
    )
    raw = (rows.h @ scale[..., None])[..., 0] + views["head_b"][:, 1:2]
    weight = 1.0 / (np.logaddexp(0.0, raw).mean(0) ** 2 * CORRELATED)
    z = rows.effect
    error = np.clip(rows.y - mu, -3.0 / np.sqrt(weight * CORRELATED), 3.0 / np.sqrt(weight * CORRELATED))
    effects = np.linalg.solve(z.T @ (z * weight[:, None]) + np.eye(z.shape[1]), z.T @ (weight * error))
    return float(effects[ROLLING] * model.adaptation_.trip_effect[ROLLING])
