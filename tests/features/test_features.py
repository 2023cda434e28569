"""Features: what may enter, what is learned, and that a stream and a file cannot disagree."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from evband.errors import ArtifactError, ChannelError, TripsError
from evband.features import FeatureMap
from evband.features.names import resolve_features
from evband.trips import Trip
from hilly_drives import drive


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
