"""Whether a car rolls harder than it did: tyres, brakes, load, ageing; the car against itself, trip by trip.

Of each trip, before the car learns from it, the share of rolling resistance above what is expected is read, with its
variance (`evband.fleet.rolling`). Weather and load move it from trip to trip by amounts that nobody knows beforehand, so
readings x of variance v (`BETWEEN` is added) are judged by the car's own n earlier ones: with their mean m, W the sum of
their 1/v, and f = (sum of (x - m)^2 / v + `BEFORE` `USUAL`) / (n - 1 + `BEFORE`), how far readings spread in truth,

    T = (x - m) / sqrt(f (v + 1/W)) ~ t with n - 1 + `BEFORE` degrees,     U = the normal score of T, cut to +-`MOST`

and a sum  S <- max(0, S + d U - d^2 / 2),  d = `CHANGE` / sqrt(f (v + 1/W)),  which is the logarithm of how much likelier
the readings are with a rise by `CHANGE` from some trip on than without (Page's CUSUM, self-starting after Hawkins 1987),
is an alarm where it reaches `RISE`, less log 2 for a reading of two trips, which has half as many chances of a false one
in a year; another goes downwards to `FALL`. `RISE` was set so that simulated cars without a change, others than those
whose alarms are reported, have one alarm in ten years of 1,000 trips each (`benchmarks.fleet.drift`). f rests mostly on
`USUAL`: readings just after a change would widen what they are judged by. d is at most `LARGEST`, or else three readings
far out would be an alarm. While a sum is above `HELD`, readings do not join those that others are judged by; after an alarm
the car is judged by its readings from then on.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtr

from evband.fleet.rolling import Reading

CHANGE, RISE, FALL = 0.3, 8.2, 12.0  # limits of the two sums: false alarms are spent on rises
MOST, LARGEST = 2.3, 1.7  # of scores; of d
BETWEEN = 0.05**2  # of readings: wet roads, load
BEFORE, USUAL = 100.0, 1.2  # readings' spread over what their variances say, and how many readings that is worth
FEWEST = 5  # readings that others are judged by
HELD = 3.85  # a sum from which readings wait: after a change they would blur what they are judged by
LATE = 0.3  # weight of the newest reading in the recent change
ALARM = "it rolls"  # how a note of an alarm begins


@dataclass(frozen=True)
class Drift:
    """Running moments of a car's readings since its last alarm, and the two sums."""

    count: int = 0
    since: int = 0  # readings since the last alarm
    weight: float = 0.0  # sum of 1/v
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from the mean, each over its v
    up: float = 0.0
    down: float = 0.0
    alarm: float = 0.0  # change found by the last alarm, 0 where there was none
    recent: float = 0.0  # mean distance of late readings from the mean

    def after(self, reading: Reading) -> Drift:
        """With one reading more."""
        n, up, down = self.count, self.up, self.down
        variance, distance = reading.variance + BETWEEN, reading.share - self.mean
        late = min(1.0, LATE * reading.trips)
        recent = self.recent + (distance - self.recent) * late if n else 0.0
        if n >= FEWEST:
            degrees = n - 1 + BEFORE
            spread = (self.squares + BEFORE * USUAL) / degrees
            deviation = math.sqrt(spread * (variance + 1.0 / self.weight))
            score = float(np.clip(ndtri(stdtr(degrees, distance / deviation)), -MOST, MOST))
            d = min(CHANGE / deviation, LARGEST)
            up, down = (max(0.0, total + way * d * score - d**2 / 2.0) for total, way in ((up, 1.0), (down, -1.0)))
        sooner = math.log(reading.trips)
        if up >= RISE - sooner or down >= FALL - sooner:
            return Drift(alarm=recent)
        on = replace(self, up=up, down=down, since=self.since + 1, recent=recent)
        if max(up, down) > HELD:
            return on
        weight = self.weight + 1.0 / variance
        mean = self.mean + distance / variance / weight
        squares = self.squares + distance * (reading.share - mean) / variance
        return replace(on, count=n + 1, weight=weight, mean=mean, squares=squares)

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
        if (
            len(numbers) != len(fields(cls))
            or not all(map(math.isfinite, numbers))
            or min(numbers[0], numbers[2], numbers[4]) < 0
        ):
            return cls()
        return cls(int(numbers[0]), int(numbers[1]), *numbers[2:])
