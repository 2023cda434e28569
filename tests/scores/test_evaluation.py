"""Scores against an independent recomputation, known answers, and odd input."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy import integrate, stats

from evband.bands import GaussianMixture, QuantileSet
from evband.errors import SettingsError, TripsError
from evband.scores import evaluate
from evband.trips import Trip, Trips
from forecasters import make_bands, student_bands

KEYS = [
    "n",
    "trips",
    "level",
    "rmse_kw",
    "mae_kw",
    "r2",
    "explained_variance",
    "aleatoric_kw",
    "epistemic_kw",
    "coverage",
    "coverage_binomial",
    "coverage_trips",
    "width_kw",
    "standardized_variance",
    "pit_variance",
    "log_score",
    "crps_kw",
    "interval_score",
    "calibration_error",
]


def recompute(frame: pl.DataFrame, level: float) -> dict[str, float]:
    """Every score from the table `predict --members` writes, with plain NumPy and SciPy."""
    members = sum(name.startswith("location_") for name in frame.columns)
    mu, s, nu = (
        np.stack([frame[f"{name}_{m}"].to_numpy() for m in range(members)]) for name in ("location", "scale", "nu")
    )
    y, lower, upper = (frame[name].to_numpy() for name in ("power_kw", "lower_kw", "upper_kw"))
    e, n = y - mu.mean(0), len(y)
    au, eu = (s**2 * nu / (nu - 2)).mean(0), mu.var(0)
    pit = stats.t.cdf((y - mu) / s, nu).mean(0)
    inside = (lower <= y) & (y <= upper)
    c, z, p = inside.mean(), stats.norm.ppf(0.975), np.arange(1, 20) / 20
    middle, half = (
        (c + z**2 / (2 * n)) / (1 + z**2 / n),
        z / (1 + z**2 / n) * np.sqrt(c * (1 - c) / n + z**2 / (4 * n**2)),
    )
    by_trip = frame.with_columns(inside=pl.Series(inside)).group_by("trip_id").agg(pl.col("inside").mean(), pl.len())
    w, ci = by_trip["len"].to_numpy() / n, by_trip["inside"].to_numpy()
    spread = stats.t.ppf(0.975, 1 / np.sum(w**2) - 1) * np.sqrt(np.sum(w**2 * (ci - c) ** 2 / (1 - w)))
    a = 1 - level
    crps = []
    for i in range(0, n, 50):
        F = lambda x, i=i: stats.t.cdf((x - mu[:, i]) / s[:, i], nu[:, i]).mean()  # noqa: E731
        below, _ = integrate.quad(lambda x, F=F: F(x) ** 2, -np.inf, y[i], epsabs=1e-7)
        above, _ = integrate.quad(lambda x, F=F: (1 - F(x)) ** 2, y[i], np.inf, epsabs=1e-7)
        crps.append(below + above)
    return {
        "n": n,
        "rmse_kw": np.sqrt(np.mean(e**2)),
        "mae_kw": np.mean(np.abs(e)),
        "r2": 1 - np.mean(e**2) / np.var(y),
        "explained_variance": 1 - np.var(e) / np.var(y),
        "aleatoric_kw": np.sqrt(au.mean()),
        "epistemic_kw": np.sqrt(eu.mean()),
        "coverage": c,
        "coverage_binomial": [middle - half, middle + half],
        "coverage_trips": [c - spread, c + spread],
        "width_kw": np.mean(upper - lower),
        "standardized_variance": np.mean(e**2 / (au + eu)),
        "pit_variance": np.var(stats.norm.ppf(pit)),
        "log_score": -np.mean(np.log((stats.t.pdf((y - mu) / s, nu) / s).mean(0))),
        "interval_score": np.mean(
            upper - lower + 2 / a * np.clip(lower - y, 0, None) + 2 / a * np.clip(y - upper, 0, None)
        ),
        "calibration_error": np.mean([abs(np.mean(pit <= q) - q) for q in p]),
        "crps_rows": crps,
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_equal_an_independent_recomputation(dtype):
    bands = student_bands(np.random.default_rng(0), [150, 60, 300, 90])
    for name in ("mu", "s"):
        setattr(bands.members, name, getattr(bands.members, name).astype(dtype))
    bands = bands.stretched(1.1)
    scores, again = evaluate(bands, level=0.8), recompute(bands.to_frame(0.8, members=True), 0.8)
    np.testing.assert_allclose(bands.crps(bands.power_kw)[::50], again.pop("crps_rows"), atol=1e-5)
    assert list(scores)[: len(KEYS)] == KEYS
    for name, value in again.items():
        np.testing.assert_allclose(scores[name], value, rtol=1e-6, err_msg=name)
    json.loads(scores.to_json())


def test_perfect_forecaster_scores_as_it_should():
    bands = student_bands(np.random.default_rng(1), [4000] * 5)
    scores = evaluate(bands)
    assert scores["coverage"] == pytest.approx(0.9, abs=0.01)
    assert scores["pit_variance"] == pytest.approx(1, abs=0.05)
    assert scores["calibration_error"] < 0.01
    assert scores["coverage_trips"][0] < 0.9 < scores["coverage_trips"][1]
    narrow = evaluate(bands.stretched(0.7))
    assert narrow["pit_variance"] > 1.3
    for score in ("log_score", "crps_kw", "interval_score", "calibration_error"):
        assert narrow[score] > scores[score], score


def test_regimes_come_from_inputs_and_absent_ones_are_left_out():
    speed = np.array([0.0, 0.5, 30.0, 30.0, 70.0, 120.0, np.nan])
    acceleration = np.array([0.0, -2.0, -0.5, 0.5, 0.0, 0.0, 0.0])
    members = GaussianMixture(np.zeros((1, 7)), np.ones((1, 7)))
    power = np.array([0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0])
    scores = evaluate(make_bands(members, [7], power, speed_kmh=speed, acceleration_ms2=acceleration))
    assert {name: part["n"] for name, part in scores["by_regime"].items()} == {
        "standstill": 2,
        "braking": 1,
        "city": 1,
        "rural": 1,
        "motorway": 1,
    }
    assert scores["by_regime"]["braking"]["coverage"] == 0
    city = evaluate(make_bands(members, [7], power, speed_kmh=np.full(7, 20.0), acceleration_ms2=np.zeros(7)))
    assert list(city["by_regime"]) == ["city"]
    assert evaluate(make_bands(members, [7], power))["by_regime"] == {}
    assert "braking" in str(scores)


def test_warmup_rows_are_scored_apart_and_unmeasured_rows_not_at_all():
    warmup = np.arange(20) < 5
    power = np.where(warmup, 50.0, 0.1)
    power[-2:] = np.nan
    scores = evaluate(make_bands(GaussianMixture(np.zeros((1, 20)), np.ones((1, 20))), [20], power, warmup=warmup))
    assert (scores["n"], scores["warmup"]["n"]) == (13, 5)
    assert (scores["coverage"], scores["warmup"]["coverage"]) == (1, 0)
    assert scores["by_trip"][0]["trip_id"] == "trip 0"
    assert scores["by_trip"][0]["n"] == 13
    assert scores["coverage_trips"] is None  # 13 rows of one run: too short to tell
    assert scores["r2"] is None
    assert "warm-up" in str(scores)


def test_quantile_methods_have_no_log_score():
    q = np.tile(stats.norm.ppf(np.arange(1, 20) / 20)[None, :, None], (2, 1, 60))
    scores = evaluate(make_bands(QuantileSet(q), [40, 20], np.random.default_rng(2).normal(size=60)))
    assert scores["log_score"] is None
    assert scores["crps_kw"] > 0
    assert json.loads(scores.to_json())["log_score"] is None


def test_single_trip_has_an_interval_from_blocks():
    scores = evaluate(student_bands(np.random.default_rng(3), [600]))
    assert scores["trips"] == 1
    assert 0 < scores["coverage_trips"][0] < scores["coverage"] < scores["coverage_trips"][1] <= 1


def test_no_measured_power_is_said():
    members = GaussianMixture(np.zeros((1, 4)), np.ones((1, 4)))
    for power in (None, np.full(4, np.nan)):
        with pytest.raises(TripsError, match="no power_kw"):
            evaluate(make_bands(members, [4], power))
    with pytest.raises(TripsError, match="warm-up"):
        evaluate(make_bands(members, [4], np.zeros(4), warmup=np.ones(4, bool)))
    with pytest.raises(SettingsError, match="level"):
        evaluate(make_bands(members, [4], np.zeros(4)), level=1.5)


def test_trips_supply_what_bands_lack():
    members = GaussianMixture(np.zeros((1, 4)), np.ones((1, 4)))
    table = pl.DataFrame(
        {"time_s": [1.0, 2.0, 3.0, 4.0], "speed_kmh": [0.0, 20.0, 60.0, 100.0], "power_kw": [0.0, 1.0, None, 2.0]}
    )
    segment = pl.Series("segment", [0] * 4, dtype=pl.Int32)
    trips = Trips([Trip("trip 0", table.with_columns(segment), hz=1.0)])
    scores = evaluate(make_bands(members, [4]), trips)
    assert (scores["n"], scores["mae_kw"]) == (3, 1.0)
    assert list(scores["by_regime"]) == ["standstill", "city", "motorway"]
    other = Trips([Trip("trip 1", table.with_columns(segment), hz=1.0)])
    with pytest.raises(TripsError, match="do not share"):
        evaluate(make_bands(members, [4]), other)
