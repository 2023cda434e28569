"""Features: what may enter, what is learned, and that a stream and a file cannot disagree."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from evband.errors import ArtifactError, ChannelError, TripsError
from evband.features import FeatureMap, road_load
from evband.features.names import resolve_features
from evband.trips import Trip

MASS_T, ROLLING_KN, DRAG_GM, GRAVITY = 1.6, 0.15, 0.4e-3, 9.81


def drive(name: str = "a", seed: int = 0, rows: int = 600, hz: float = 1.0, **drop_or_replace: object) -> Trip:
    """A drive over gentle hills whose power is exactly a road load."""
    rng = np.random.default_rng(seed)
    t = np.arange(1, rows + 1) / hz
    v = 12 + 8 * np.sin(t / 37 + rng.uniform(0, 6)) + 3 * np.sin(t / 9)
    a = np.gradient(v, 1 / hz)
    elevation = 300 + 20 * np.sin(np.cumsum(v) / hz / 700)
    ambient = 15 + 10 * np.sin(t / 200 + seed)
    power = MASS_T * a * v + ROLLING_KN * v + DRAG_GM * v**3 + 0.1 * np.maximum(0, 18 - ambient) + 0.5
    columns = {
        "time_s": t,
        "speed_kmh": 3.6 * v,
        "acceleration_ms2": a,
        "motor_torque_nm": 60 * a + 5 + rng.normal(0, 1, rows),
        "elevation_m": elevation,
        "ambient_temp_c": ambient,
        "battery_current_a": power * 3,
        "power_kw": power,
    } | drop_or_replace
    table = pl.DataFrame({k: c for k, c in columns.items() if c is not None})
    segment = (np.arange(rows) >= rows // 2).astype(np.int32)
    return Trip(name, table.with_columns(segment=pl.Series(segment, dtype=pl.Int32)), hz=hz)


@pytest.fixture
def trips() -> list[Trip]:
    return [drive(f"t{i}", seed=i) for i in range(4)]


def test_auto_takes_only_what_every_trip_has(trips: list[Trip]) -> None:
    without = [*trips, drive("x", seed=9, motor_torque_nm=None)]
    assert resolve_features("auto", trips)[:3] == ("speed_kmh", "acceleration_ms2", "motor_torque_nm")
    assert "motor_torque_nm" not in resolve_features("auto", without)
    assert not {"battery_current_a", "power_kw"} & set(resolve_features("auto", trips))


def test_sets_and_lists_resolve(trips: list[Trip]) -> None:
    assert resolve_features("motion", trips) == ("speed_kmh", "acceleration_ms2")
    assert resolve_features("speed_kmh, elevation_m", trips) == ("speed_kmh", "elevation_m")


@pytest.mark.parametrize("name", ["battery_current_a", "power_kw", "soc_pct", "heating_power_kw"])
def test_electrical_inputs_are_refused_with_the_reason(name: str, trips: list[Trip]) -> None:
    with pytest.raises(ChannelError, match=f"{name}.*answer"):
        resolve_features(f"speed_kmh,{name}", trips)


def test_missing_channel_is_named(trips: list[Trip]) -> None:
    with pytest.raises(ChannelError, match=r"trip t0 has no motor_rpm"):
        resolve_features("speed_kmh,motor_rpm", trips)
    features = FeatureMap.fit(trips)
    with pytest.raises(ChannelError, match=r"trip x has no motor_torque_nm"):
        features.transform(drive("x", motor_torque_nm=None))


@pytest.mark.parametrize("spec", ["time_s", "trip_id", "speed_kmh,speed_kmh", ","])
def test_what_is_no_channel_is_refused(spec: str, trips: list[Trip]) -> None:
    with pytest.raises(ChannelError):
        resolve_features(spec, trips)


def test_least_squares_reads_the_car(trips: list[Trip]) -> None:
    features = FeatureMap.fit(trips, "speed_kmh,acceleration_ms2,ambient_temp_c", hinges=False)
    found = features.physical(features.least_squares(ridge=1e-12))
    assert found["a*v"] == pytest.approx(MASS_T, rel=1e-3)
    assert found["v"] == pytest.approx(ROLLING_KN, rel=1e-2)
    assert found["v^3"] == pytest.approx(DRAG_GM, rel=1e-2)
    assert found["cold"] == pytest.approx(0.1, rel=1e-3)
    sequence = features.transform(trips[0])
    fitted = features.y_mean + features.y_std * sequence.r @ features.least_squares(ridge=1e-12)
    assert np.max(np.abs(fitted - sequence.y)) < 1e-2


def test_training_rows_are_standardised(trips: list[Trip]) -> None:
    features = FeatureMap.fit(trips)
    x = np.concatenate([features.transform(t).x for t in trips])
    r = np.concatenate([features.transform(t).r for t in trips])
    for columns in (x, r):
        assert np.abs(columns.mean(0)).max() < 1e-3
        assert columns.std(0) == pytest.approx(1, abs=1e-3)
    unit = FeatureMap.fit(trips, scaling="minmax")
    x = np.concatenate([unit.transform(t).x for t in trips])
    assert x.min(0) == pytest.approx(0, abs=1e-6)
    assert x.max(0) == pytest.approx(1, abs=1e-6)


def test_constant_columns_are_dropped() -> None:
    trips = [drive("a", ambient_temp_c=np.full(600, 20.0))]  # never cold, never hot
    features = FeatureMap.fit(trips)
    assert not {"cold", "hot"} & {*features.input_names, *features.road_names}


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


def test_elevation_never_enters_raw_nor_from_the_future(trips: list[Trip]) -> None:
    features = FeatureMap.fit(trips)
    trip = trips[0]
    here = features.transform(trip)
    lifted = features.transform(Trip("up", trip.table.with_columns(pl.col("elevation_m") + 500), hz=1.0))
    np.testing.assert_allclose(lifted.x, here.x, atol=1e-4)
    later = trip.table.with_columns(pl.when(pl.col("time_s") > 200).then(0.0).otherwise(pl.col("elevation_m")).alias("elevation_m"))  # fmt: skip
    changed = features.transform(Trip("later", later, hz=1.0))
    np.testing.assert_array_equal(changed.x[:200], here.x[:200])
    assert not np.array_equal(changed.x[200:], here.x[200:])


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


@pytest.mark.parametrize("hinges", [False, True])
def test_ticks_equal_whole_trips(hinges: bool, trips: list[Trip]) -> None:
    features = FeatureMap.fit(trips[:2], hinges=hinges)
    ambient = trips[3].table["ambient_temp_c"].to_numpy().copy()
    gaps = trips[3].table.with_columns(
        ambient_temp_c=pl.Series(np.where(np.arange(600) % 7 == 0, ambient, np.nan)).fill_nan(None),
        motor_torque_nm=pl.when(pl.col("time_s").is_between(50, 60)).then(None).otherwise(pl.col("motor_torque_nm")),
        elevation_m=pl.when(pl.col("time_s").is_between(90, 99)).then(None).otherwise(pl.col("elevation_m")),
    )
    trip = Trip("gaps", gaps, hz=1.0)
    whole, stream = features.transform(trip), features.stream()
    for t, row in enumerate(trip.table.iter_rows(named=True)):
        if t and whole.start[t]:
            stream.gap()
        x, r, outside = stream.tick(row)
        np.testing.assert_allclose(x, whole.x[t], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(r, whole.r[t], rtol=1e-5, atol=1e-6)
        assert outside == whole.outside[t]
    assert whole.outside[50:59].all()  # torque unknown
    assert whole.start.sum() == 2


def test_tick_derives_acceleration_from_speed(trips: list[Trip]) -> None:
    features = FeatureMap.fit(trips, "motion", hinges=False)
    stream = features.stream()
    stream.tick({"speed_kmh": 36.0})
    _, r, _ = stream.tick({"speed_kmh": 39.6})
    at = features.road_names.index("a")
    assert r[at] * features.r_scale[at] + features.r_shift[at] == pytest.approx(1.0, rel=1e-5)


def test_outside_says_which_channel(trips: list[Trip]) -> None:
    features = FeatureMap.fit(trips)
    fast = trips[0].table.with_columns(pl.when(pl.col("time_s") == 100).then(400.0).otherwise(pl.col("speed_kmh")).alias("speed_kmh"))  # fmt: skip
    sequence = features.transform(Trip("fast", fast, hz=1.0))
    assert np.flatnonzero(sequence.which_outside[:, features.channels.index("speed_kmh")]).tolist() == [99]
    assert not features.transform(trips[0]).outside.any()


def test_json_round_trip_is_exact(trips: list[Trip]) -> None:
    features = FeatureMap.fit(trips)
    again = FeatureMap.from_dict(json.loads(json.dumps(features.to_dict())))
    np.testing.assert_array_equal(again.transform(trips[1]).r, features.transform(trips[1]).r)
    np.testing.assert_array_equal(again.least_squares(), features.least_squares())


def test_damaged_map_is_refused(trips: list[Trip]) -> None:
    saved = FeatureMap.fit(trips).to_dict()
    for damage in ({"low": [0.0]}, {"y_std": 0.0}, {"r_scale": [float("nan")] * len(saved["r_scale"])}):
        with pytest.raises(ArtifactError):
            FeatureMap.from_dict(saved | damage)


def test_trips_that_cannot_teach_are_refused(trips: list[Trip]) -> None:
    with pytest.raises(TripsError, match="power_kw"):
        FeatureMap.fit([drive("flat", power_kw=np.full(600, 3.0))])
    with pytest.raises(TripsError, match="power_kw"):
        FeatureMap.fit([drive("none", power_kw=None)])
    with pytest.raises(TripsError, match="one grid"):
        FeatureMap.fit([drive("a"), drive("b", hz=2.0)])
    with pytest.raises(TripsError, match=r"2\.0 Hz"):
        FeatureMap.fit(trips).transform(drive("b", hz=2.0))


@pytest.mark.parametrize("spec", ["acceleration_ms2", "motor_torque_nm", "elevation_m"])
def test_sets_without_speed_work(spec: str, trips: list[Trip]) -> None:
    features = FeatureMap.fit(trips, spec)
    assert features.transform(trips[0]).r.shape == (600, len(features.road_names))


def test_edge_terms_and_products_stream_as_they_transform() -> None:
    """Ticks that carry the grid's edge speeds give the rows of the whole trip, with and without hinges."""
    rng = np.random.default_rng(5)
    time = np.cumsum(rng.uniform(0.9, 1.5, 900))
    speed = 40 + 30 * np.sin(time / 40) + 5 * np.sin(time / 7)
    table = pl.DataFrame({"time_s": time, "speed_kmh": speed, "power_kw": 0.2 * speed + rng.normal(size=900)})
    trip = Trip("async", table).on_grid(0.5)
    for hinges in (False, True):
        features = FeatureMap.fit([trip], "motion", hinges=hinges, edges=True, products=True)
        assert {"k", "min(k,0)", "dv"} <= set(features.road_names)
        rows, stream = features.transform(trip), features.stream()
        assert rows.x.shape[1] == len(features.input_names) == 2 + len(features.road_names)
        for i, row in enumerate(trip.table.iter_rows(named=True)):
            if rows.start[i] and i:
                stream.gap()
            x, r, _ = stream.tick(row)
            np.testing.assert_allclose(x, rows.x[i], atol=1e-5)
            np.testing.assert_allclose(r, rows.r[i], atol=1e-5)


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


def test_a_stream_fades_as_a_whole_trip_does_over_gaps_and_restarts() -> None:
    trips = [drive(f"t{i}", seed=i) for i in range(5)]
    features = FeatureMap.fit(trips, "motion", fade=True, products=True)
    rows, stream = features.transform(trips[0]), features.stream()
    for i, row in enumerate(trips[0].table.iter_rows(named=True)):
        if rows.start[i] and i:
            stream.gap()
        if i == 100:
            saved, stream = json.loads(json.dumps(stream.to_dict())), features.stream()
            stream.restore(saved)
        x, r, _ = stream.tick(row)
        np.testing.assert_allclose(r, rows.r[i], atol=1e-5)
        np.testing.assert_allclose(x, rows.x[i], atol=1e-5)
    stream.reset()
    fade = features.road_names.index("fade")
    assert stream.tick({"speed_kmh": 0.0})[1][fade] == pytest.approx(rows.r[0, fade])


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


def test_features_taken_over_hold_the_new_trips_unlimited() -> None:
    mild, wild = [drive("m", speed_kmh=np.linspace(20, 40, 600))], [drive("w", speed_kmh=np.linspace(0, 180, 600))]
    features = FeatureMap.fit(mild, "speed_kmh,acceleration_ms2")
    wider = features.also_on(wild, FeatureMap.fit(wild, "speed_kmh,acceleration_ms2"))
    at = wider.road_names.index("v^3")
    cubes = (np.asarray(wild[0].table["speed_kmh"]) / 3.6) ** 3
    r = wider.transform(wild[0]).r[:, at] * wider.r_scale[at] + wider.r_shift[at]
    np.testing.assert_allclose(r, cubes, rtol=1e-3, atol=1.0)
    assert not wider.transform(wild[0]).outside.any()
    assert features.transform(wild[0]).r[:, at].max() < wider.transform(wild[0]).r[:, at].max()


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
    assert features.physical(features.least_squares())["hvac"] == pytest.approx(1.0, abs=0.05)
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
