"""The goals of release 0.2 beside what the committed result files say, with yes and no: the table of README.md.

A goal whose file lacks what it needs says "not measured"; nothing here is typed by hand but the goal itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl

from tools.docs.written import PENDING, markdown

Row = dict[str, Any]
Read = Callable[[str], pl.DataFrame | None]
Answer = tuple[str, bool]  # what was measured, and whether it meets the goal


def one(frame: pl.DataFrame, **where: object) -> Row:
    """The one row that answers to these values; KeyError where there is none."""
    found = frame.filter(pl.all_horizontal(pl.col(k) == v for k, v in where.items()))
    if not len(found):
        raise KeyError(str(where))
    return found.row(0, named=True)


def within(low: float, value: float, high: float) -> Answer:
    return f"{value:.3f}", low <= value <= high


def by_name(frame: pl.DataFrame) -> Answer:
    row = one(frame, method="sheet", minutes=0)
    return f"{row['ratio']:.2f} x, worst car {row['worst']:.2f} x", row["ratio"] <= 1.9 and row["worst"] <= 2.6


def by_minutes(frame: pl.DataFrame) -> Answer:
    found = [one(frame, method="sheet", minutes=m)["ratio"] for m in (5, 15, 60)]
    return " / ".join(f"{r:.2f}" for r in found), all(
        r <= most for r, most in zip(found, (1.6, 1.4, 1.15), strict=True)
    )


def over_linear(frame: pl.DataFrame) -> Answer:
    lead = [
        1.0 - one(frame, method="sheet", minutes=m)["ratio"] / one(frame, method="linear", minutes=m)["ratio"]
        for m in (0, 5, 15, 60)
    ]
    return f"{100 * min(lead):.1f} to {100 * max(lead):.1f} %", min(lead) >= 0.05


def started_energy(frame: pl.DataFrame) -> Answer:
    error = one(frame, method="sheet", minutes=0)["trip_error"]
    return f"{100 * error:.1f} %", error < 0.15


def started_bands(frame: pl.DataFrame) -> Answer:
    rows = [one(frame, method="sheet", minutes=m) for m in (0, 15, 60)]
    lows, highs = ([round(row[k], 2) for row in rows] for k in ("lowest", "highest"))
    low, high, later_low, later_high = lows[0], highs[0], min(lows[1:]), max(highs[1:])
    good = low >= 0.75 and high <= 0.99 and later_low >= 0.84 and later_high <= 0.97
    return f"{low:.2f}-{high:.2f}, then {later_low:.2f}-{later_high:.2f}", good


def trip_bands(frame: pl.DataFrame) -> Answer:
    row = _trips(frame)
    return f"{row['cover90']:.3f} of {row['trips']} trips", 0.87 <= row["cover90"] <= 0.93


def trip_width(frame: pl.DataFrame) -> Answer:
    ratio = _trips(frame, contender="least squares")["ratio"]
    return f"{ratio:.2f} x", ratio <= 0.90


def trips_later(frame: pl.DataFrame) -> Answer:
    return within(0.85, _trips(frame, split="last third")["cover90"], 0.95)


def stretches(frame: pl.DataFrame) -> Answer:
    said, good = within(0.87, _trips(frame, what="10 km")["cover90"], 0.93)
    later, still = within(0.85, _trips(frame, split="last third", what="10 km")["cover90"], 0.95)
    return f"{said}, then {later}", good and still


def planned(frame: pl.DataFrame) -> Answer:
    return within(0.86, _trips(frame, features="plans", what="planned")["cover90"], 0.94)


def _trips(frame: pl.DataFrame, **other: str) -> Row:
    usual = {"features": "auto", "split": "folds", "what": "trip", "log": "all", "contender": "evband"}
    return one(frame, **{**usual, **other})


def rows_later(frame: pl.DataFrame) -> Answer:
    return within(0.87, one(frame, log="all")["cover90"], 0.93)


def range_bands(frame: pl.DataFrame) -> Answer:
    return within(0.87, _trips(frame, what="range")["cover90"], 0.93)


def so_far(frame: pl.DataFrame) -> Answer:
    """How much narrower range is, given the first 5 km, with the cabin unknown and known ahead."""
    found = [
        1.0 - _trips(frame, what=what, contender="without the drive so far")["ratio"]
        for what in ("after 5 km, cabin unknown", "after 5 km")
    ]
    return f"{found[0]:.0%}, {found[1]:.0%} where the cabin is known ahead", min(found) >= 0.15


def many_cars(frame: pl.DataFrame) -> Answer:
    row = frame.filter(pl.col("cars") >= 10_000).row(-1, named=True)
    said = f"{row['bands_lost']} lost, p99 {row['latency_p99_s']:.2f} s, {row['memory_mb']:.0f} MB"
    return said, row["bands_lost"] == 0 and row["latency_p99_s"] < 1.0 and row["memory_mb"] < 4000


def killed(frame: pl.DataFrame) -> Answer:
    row = one(frame, qos=1)
    off = row["band_difference_60_s_later_kw"]
    good = row["kills"] >= 20 and row["database"] == "ok" and row["seconds_lost_before_a_kill_max"] <= 2 and off <= 0.01
    return f"{row['kills']} kills, {off:.3f} kW off", good


def fleet_gain(frame: pl.DataFrame) -> Answer:
    row = one(frame, kind="simulated")
    return f"{row['change_from_prior_percent']:.0f} %", row["change_from_prior_high"] < 0.0


def fleet_each(frame: pl.DataFrame) -> Answer:
    share = one(frame, kind="simulated")["cars_within_0.80_0.97"]
    return f"{100 * share:.0f} % of cars", share >= 0.95


def fleet_drift(frame: pl.DataFrame) -> Answer:
    found = {roads: one(frame, roads=roads, cars="all", rise=0.3)["found_within_10"] for roads in ("home", "own")}
    said = f"{100 * found['home']:.0f} % there and back, {100 * found['own']:.0f} % on roads of their own"
    return said, min(found.values()) >= 0.8


def fleet_time(frame: pl.DataFrame) -> Answer:
    row = frame.filter((pl.col("cars") == 10_000) & (pl.col("ray") != "")).row(-1, named=True)
    return f"{row['seconds']:.0f} s", row["seconds"] < 600 and row["cars_done"] == row["cars"]


def fuzzed(frame: pl.DataFrame) -> Answer:
    inputs = int(frame["inputs"].sum())
    return f"{inputs:,} inputs", inputs >= 1_000_000


def dirty(frame: pl.DataFrame) -> Answer:
    put_in = frame.filter(pl.col("put_in") > 0)
    found = float(put_in["found"].sum()) / float(put_in["put_in"].sum())
    lost = float(frame["lost"].sum()) / float(frame["good"].sum())
    return f"{100 * found:.1f} %, {100 * lost:.4f} % lost", found >= 0.95 and lost < 0.001


def struck(frame: pl.DataFrame) -> Answer:
    kills, disks = (int(frame.filter(pl.col("kind") == kind)["struck"].sum()) for kind in ("kill", "full disk"))
    wrong = int(frame.select(pl.sum_horizontal("lost", "differing", "faults").sum()).item())
    return f"{kills} kills, {disks} full disks, {wrong} wrong", min(kills, disks) >= 100 and not wrong


def newcomer(frame: pl.DataFrame) -> Answer:
    seconds = float(one(frame, what="all five")["first_s"])
    return f"{seconds:.0f} s", seconds < 120


def commands(frame: pl.DataFrame) -> Answer:
    again = frame.filter(pl.col("again_s").is_not_null())["again_s"].cast(pl.Float64).to_list()
    return f"{sum(t < 1.0 for t in again)} of {len(again)}, slowest {max(again):.2f} s", max(again) < 1.0


GOALS: tuple[tuple[str, str, Callable[[pl.DataFrame], Answer]], ...] = (
    ("a car known by name only: error (CRPS) at most 1.9 x its own fit's, no car over 2.6 x", "cold_start", by_name),
    ("the same after 5 / 15 / 60 minutes of its driving: at most 1.6 / 1.4 / 1.15 x", "cold_start", by_minutes),
    ("5 % better than a linear model with the same prior, at each of these", "cold_start", over_linear),
    ("90 % bands hold 0.75-0.99 on every such car, 0.84-0.97 from 15 minutes on", "cold_start", started_bands),
    ("energy of a trip from the name alone: median error under 15 %", "cold_start", started_energy),
    ("90 % bands of trip energy hold 0.87-0.93 of held-out trips", "trips", trip_bands),
    ("at equal coverage at most 0.90 x as wide as least squares", "trips", trip_width),
    ("on the last third of each car's trips they hold 0.85-0.95", "trips", trips_later),
    ("of stretches of 10 km they hold 0.87-0.93, on that third 0.85-0.95", "trips", stretches),
    ("90 % bands of single seconds hold 0.87-0.93 there", "trips_rows", rows_later),
    ("90 % bands of planned routes hold 0.86-0.94", "trips", planned),
    ("90 % bands of range hold 0.87-0.93", "trips_range", range_bands),
    ("the first 5 km of a drive narrow the band of range by 15 %", "trips_range", so_far),
    ("10,000 live cars on two cores: no band lost, p99 under 1 s, under 4 GB", "live_load", many_cars),
    ("the live service killed 20 times: at most 2 s lost, bands within 0.01 kW a minute later (QoS 1)", "live_kills", killed),
    ("a fleet's car with three trips: lower error than the prior alone", "fleet_quality", fleet_gain),
    ("90 % bands hold 0.80-0.97 on 95 % of such cars", "fleet_quality", fleet_each),
    ("30 % more rolling resistance found within ten trips in 80 % of cars", "fleet_drift", fleet_drift),
    ("10,000 cars adapted in under 600 s, a worker killed on the way", "fleet_scale", fleet_time),
    ("1,000,000 hostile inputs tried (the faults they found are in the file)", "fuzz", fuzzed),
    ("95 % of faults put into logs found, under 0.1 % of good readings lost", "dirty", dirty),
    ("100 kills and 100 full disks under seven commands: nothing finished lost, the same result after", "faults", struck),
    ("from `pip install` to a range band in under 2 minutes", "newcomer", newcomer),
    ("every command of the base install under 1 s once compiled", "newcomer", commands),
)  # fmt: skip


def goal(read: Read, name: str, answer: Callable[[pl.DataFrame], Answer]) -> tuple[str, str]:
    """What a result file says about one goal, and yes or no; "not measured" where the file lacks it."""
    frame = read(name)
    try:
        said, met = (PENDING, None) if frame is None else answer(frame)
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
        said, met = PENDING, None
    return said, "-" if met is None else "yes" if met else "**no**"


def goals(read: Read) -> str:
    """A row for each goal: what was measured, yes or no, and the file."""
    rows = [[text, *goal(read, name, answer), f"`{name}`"] for text, name, answer in GOALS]
    return markdown(["goal", "measured", "met", "result file"], rows)


def values(read: Read) -> dict[str, Callable[[], str]]:
    """The same inside sentences: `goal.by_name` and so on."""
    return {f"goal.{answer.__name__}": partial(_said, read, name, answer) for _, name, answer in GOALS}


def _said(read: Read, name: str, answer: Callable[[pl.DataFrame], Answer]) -> str:
    return goal(read, name, answer)[0]
