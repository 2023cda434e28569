"""Road-load terms: what they say of a car, how far they count, and what is too little to learn them from."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from evband.features import FeatureMap, road_load
from evband.trips import Trip
from hilly_drives import DRAG_GM, MASS_T, ROLLING_KN, drive


def in_kw(features: FeatureMap, weights: np.ndarray) -> dict[str, float]:
    """Coefficients in kW per unit of each road term, and `constant` in kW, of standardised weights [K]."""
    coefficients = features.y_std * weights / features.r_scale
    constant = features.y_mean - float(coefficients @ features.r_shift)
    return {"constant": constant} | dict(zip(features.road_names, coefficients.tolist(), strict=True))


def test_least_squares_reads_the_car(trips: list[Trip]) -> None:
    features = FeatureMap.fit(trips, "speed_kmh,acceleration_ms2,ambient_temp_c", hinges=False)
    found = in_kw(features, features.least_squares(ridge=1e-12))
    assert found["a*v"] == pytest.approx(MASS_T, rel=1e-3)
    assert found["v"] == pytest.approx(ROLLING_KN, rel=1e-2)
    assert found["v^3"] == pytest.approx(DRAG_GM, rel=1e-2)
    assert found["cold"] == pytest.approx(0.1, rel=1e-3)
    sequence = features.transform(trips[0])
    fitted = features.y_mean + features.y_std * sequence.r @ features.least_squares(ridge=1e-12)
    assert np.max(np.abs(fitted - sequence.y)) < 1e-2


def test_half_a_degree_of_cold_does_not_tell_what_frost_costs() -> None:
    """A drive at 17.5 to 19.5 C: heating is not learned from it, so that 9 C predicts a sane power."""
    trips = [
        drive("a", ambient_temp_c=np.linspace(17.5, 19.5, 600)),
        drive("b", seed=1, ambient_temp_c=np.full(600, 28.0)),
    ]
    features = FeatureMap.fit(trips, "speed_kmh,acceleration_ms2,ambient_temp_c")
    assert "cold" not in {*features.input_names, *features.road_names}
    assert "hot" in features.input_names
    assert "hot" in features.road_names
    winter = features.transform(drive("w", seed=2, ambient_temp_c=np.full(600, 9.0)))
    power = features.y_mean + features.y_std * winter.r @ features.least_squares()
    assert np.abs(power - winter.y).max() < 5
    assert features.transform(trips[0]).r.shape[1] == len(features.road_names)


def test_slope_sees_a_hill_through_metre_steps() -> None:
    distance = np.arange(0, 3000, 12.0)
    grade = road_load.grades(np.floor(0.05 * distance), np.full(len(distance), 12.0), distance < 0, 1.0)
    assert grade[20:].mean() == pytest.approx(0.05, rel=0.05)
    assert np.abs(grade[20:] - 0.05).max() < 0.03


def test_slope_keeps_still_while_standing_and_survives_unknown_elevation() -> None:
    metres = np.arange(0.0, 300.0, 10.0)
    height, moved = np.append(0.04 * metres, [99.0, np.nan, 5.0]), np.append(np.full(30, 10.0), [0.0, 5.0, 10.0])
    grade = road_load.grades(height, moved, np.arange(33) == 32, 1.0)
    assert grade[29] == pytest.approx(0.04, rel=0.05)
    assert grade[30] == grade[29]
    assert grade[31] == pytest.approx(grade[29], rel=0.05)
    assert grade[32] == 0.0


def test_edge_speeds_see_the_past_only_and_lie_on_a_straight_pull() -> None:
    """On a steady pull the extrapolated edge is the truth, whatever the instants of the readings."""
    time = np.cumsum(np.random.default_rng(2).uniform(1.0, 1.4, 400))
    trip = Trip("pull", pl.DataFrame({"time_s": time, "speed_kmh": 0.2 * time})).on_grid(0.5)
    at, end = trip.table["time_s"].to_numpy(), trip.table["speed_end_kmh"].to_numpy()
    np.testing.assert_allclose(end[1:], 0.2 * at[1:], rtol=1e-9)
    np.testing.assert_allclose(trip.table["speed_start_kmh"].to_numpy()[2:], 0.2 * (at[2:] - 2), rtol=1e-9)
    later = np.where(time > time[200], 99.0, 0.2 * time)
    other = Trip("pull", pl.DataFrame({"time_s": time, "speed_kmh": later})).on_grid(0.5)
    past = at <= time[200]
    assert np.array_equal(other.table["speed_end_kmh"].to_numpy()[past], end[past])


def test_a_knot_has_data_on_both_sides():
    """A speed limiter's plateau: a knot a hair below it would make a column of no size, and millions beyond it."""
    rng = np.random.default_rng(0)
    speed = np.minimum(rng.uniform(0, 40, 5000), 30.0000004)
    for name, knot in road_load.hinge_knots({"v": speed, "a": -speed}):
        term = speed if name == "v" else -speed
        for side in (np.maximum(term - knot, 0), np.maximum(knot - term, 0)):
            assert side.std() > 0.003 * term.std()
    values = rng.normal(size=5000)
    names = [name for name, _ in road_load.hinge_knots({"v": values, "a": values})]
    assert (names.count("v"), names.count("a")) == (5, 9)  # speed has no knots in its tails: they extrapolate


def test_what_fades_after_the_start_is_one_at_first_and_falls_by_e_in_five_minutes() -> None:
    trips = [drive(f"t{i}", seed=i, ambient_temp_c=np.full(600, 5.0 + i)) for i in range(5)]
    features = FeatureMap.fit(trips, hinges=False, fade=True)
    assert {"fade", "fade*cold"} <= set(features.road_names)
    r = features.transform(trips[0]).r * features.r_scale + features.r_shift
    fade = r[:, features.road_names.index("fade")]
    np.testing.assert_allclose(fade, np.exp(-np.arange(600) / 300.0), rtol=1e-5)
    np.testing.assert_allclose(r[:, features.road_names.index("fade*cold")], 13.0 * fade, rtol=1e-4)


def test_four_trips_are_too_few_to_tell_what_fades() -> None:
    trips = [drive(f"t{i}", seed=i) for i in range(4)]
    assert "fade" not in FeatureMap.fit(trips, fade=True).road_names


def test_cold_air_is_denser() -> None:
    assert road_load.air_density(-10.0) / road_load.air_density(30.0) == pytest.approx(303.15 / 263.15)


def test_weather_far_from_any_seen_counts_as_nearer() -> None:
    """A summer's model asked in frost: flagged, and not extrapolated from a few cool evenings."""
    trips = [drive(f"t{i}", seed=i, ambient_temp_c=np.linspace(14.0 + i, 30.0, 600)) for i in range(5)]
    features = FeatureMap.fit(trips, fade=True, products=True)
    frost, edge = (features.transform(drive("w", seed=9, ambient_temp_c=np.full(600, c))) for c in (-20.0, 9.0))
    assert np.array_equal(frost.r, edge.r)
    assert frost.outside.all()
    stream = features.stream()
    row = drive("w", seed=9, ambient_temp_c=np.full(600, -20.0)).table.row(0, named=True)
    _, r, outside = stream.tick(row)
    assert outside
    np.testing.assert_allclose(r, frost.r[0], atol=1e-5)


def test_a_log_that_hardly_moves_has_no_knots_and_no_products() -> None:
    speed = np.zeros(600)
    speed[100:120] = 30.0
    trips = [drive(f"t{i}", seed=i, speed_kmh=speed, ambient_temp_c=np.linspace(5.0 + i, 9.0, 600)) for i in range(2)]
    features = FeatureMap.fit(trips, ("speed_kmh", "ambient_temp_c"), hinges=True)
    assert not features.knots
    assert features.transform(trips[0]).r.shape == (600, len(features.road_names))


def test_a_constant_up_to_rounding_is_no_feature() -> None:
    """A flat log's elevation, averaged ten readings a bin, differs in its last digit."""
    flat = [
        drive(f"t{i}", seed=i, elevation_m=596.6 + 1e-13 * np.random.default_rng(i).normal(size=600)) for i in range(2)
    ]
    features = FeatureMap.fit(flat, "speed_kmh,acceleration_ms2,elevation_m")
    assert not {"grade", "climb_ms", "v*grade"} & {*features.input_names, *features.road_names}


def test_wind_that_never_changed_tells_nothing_of_wind() -> None:
    calm = [drive(f"t{i}", seed=i, wind_ms=np.full(600, 0.1 + 0.01 * i)) for i in range(3)]
    features = FeatureMap.fit(calm, "speed_kmh,acceleration_ms2,wind_ms")
    assert "v^2*wind" not in features.road_names
    windy = [drive(f"t{i}", seed=i, wind_ms=np.full(600, 2.0 * i)) for i in range(3)]
    assert "v^2*wind" in FeatureMap.fit(windy, "speed_kmh,acceleration_ms2,wind_ms").road_names


@pytest.mark.parametrize(("trips", "reach"), [(2, 1.0), (9, 3.5)])
def test_a_road_term_counts_so_far_beyond_training_and_no_further(trips: int, reach: float) -> None:
    features = FeatureMap.fit([drive(f"t{i}", seed=i) for i in range(trips)], "speed_kmh,acceleration_ms2")
    seen = np.concatenate([features.transform(drive(f"t{i}", seed=i)).r for i in range(trips)]).astype(float)
    low, high = seen.min(0), seen.max(0)
    wild = drive("w", acceleration_ms2=np.tile([-60.0, 60.0], 300))
    r = features.transform(wild).r
    tolerance = 1e-3 * (high - low)
    assert (r >= low - reach * (high - low) - tolerance).all()
    assert (r <= high + reach * (high - low) + tolerance).all()
    assert (r.max(0) > high + 0.9 * reach * (high - low)).any()
    stream = features.stream()
    row = wild.table.row(0, named=True)
    np.testing.assert_allclose(stream.tick(row)[1], r[0], rtol=1e-4, atol=1e-4)


def test_the_cabins_draw_is_an_input_and_counts_once_in_the_path() -> None:
    rng = np.random.default_rng(5)
    draws = [np.repeat(rng.uniform(0, 4, 6), 100) for _ in range(6)]
    heated = []
    for i, draw in enumerate(draws):
        trip = drive(f"t{i}", seed=i, hvac_power_kw=draw)
        power = trip.table["power_kw"].to_numpy() + draw
        heated.append(Trip(trip.trip_id, trip.table.with_columns(power_kw=pl.Series(power)), trip.hz))
    features = FeatureMap.fit(heated, "auto")
    assert "hvac_power_kw" in features.channels
    assert in_kw(features, features.least_squares())["hvac"] == pytest.approx(1.0, abs=0.05)
    without = [*heated[:5], drive("bare", seed=9)]
    assert "hvac_power_kw" not in FeatureMap.fit(without, "auto").channels


def test_the_grade_is_a_weighted_regression_of_elevation_on_distance() -> None:
    """Each reading weighs the metres before it, faded by those since; the first one metre."""
    rng = np.random.default_rng(3)
    elevation, moved = np.cumsum(rng.normal(0.0, 0.3, 60)), rng.uniform(0.0, 30.0, 60) * (rng.random(60) > 0.2)
    elevation[rng.random(60) < 0.1] = np.nan
    elevation[0], moved[0] = 3.0, 0.0
    found = road_load.grades(elevation, moved, np.zeros(60, bool), 1.0)
    at = np.cumsum(moved)
    for t in range(1, 60):
        known = np.isfinite(elevation[: t + 1])
        weight = np.where(np.arange(t + 1) == 0, 1.0, moved[: t + 1]) * np.exp((at[: t + 1] - at[t]) / 25.0)
        weight, s, e = weight[known], at[: t + 1][known], elevation[: t + 1][known]
        ds, de = s - np.average(s, weights=weight), e - np.average(e, weights=weight)
        expected = (weight * ds * de).sum() / ((weight * ds * ds).sum() + 10.0 * weight.sum())
        assert found[t] == pytest.approx(expected, rel=1e-9, abs=1e-12)
