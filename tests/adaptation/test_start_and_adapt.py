"""A model from a data sheet, and what logs of the car make of it: on made-up cars whose power is known."""

from copy import copy
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import evband
from evband.adaptation import Base
from evband.adaptation.mass import effective_mass
from evband.adaptation.scale import OFFSETS, TRIP_SCALE_SDS, Offsets
from evband.channels import EDGES, READINGS, SENSED, VALUES
from evband.errors import ArtifactError, SettingsError, TripsError, VehicleError
from evband.features.columns import FeatureColumns
from evband.routes.flat import flat_profile
from evband.simulation.cycles import follow, random_drive
from evband.trips import Trip, Trips
from evband.trips.bin_columns import BinColumns
from evband.trips.bins import Bins
from evband.vehicles import find
from evband.vehicles.physics import GRAVITY

KG, CDA, CRR = 1600.0, 0.62, 0.009


MIXED = (("town", 200.0), ("rural", 200.0), ("motorway", 300.0))


def trip(
    seed: int, mass: float = KG, seconds: int = 600, sign: float = 1.0, unit: float = 1.0, stretches=MIXED
) -> Trip:
    """A drive of a car with plain physics: traction at 90 %, half of braking back, 0.6 kW beside it."""
    rng = np.random.default_rng(seed)
    reference = random_drive(stretches, rng)
    v = follow(reference, 0.25, 4 * (seconds or int(reference[0][-1])), 0.5, rng)
    a = np.gradient(v, 0.25)
    wheel = (1.05 * mass * a + CRR * mass * 9.81 * (v > 0.1) + 0.6 * CDA * v**2) * v / 1000.0
    power = 0.6 + np.where(wheel > 0, wheel / 0.9, 0.6 * wheel) + 0.3 * rng.standard_normal(len(v))
    table = pl.DataFrame({"time_s": 0.25 * np.arange(len(v)), "speed_kmh": 3.6 * v, "power_kw": sign * unit * power})
    return Trip(f"t{seed}", table)


@pytest.fixture(scope="module")
def started() -> evband.PowerModel:
    return evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)


@pytest.fixture(scope="module")
def adapted(started: evband.PowerModel) -> evband.PowerModel:
    return evband.adapt(started, Trips([trip(1), trip(2)]))


def test_a_started_model_covers_a_car_that_nobody_measured(started: evband.PowerModel) -> None:
    scores = evband.evaluate(started.predict(Trips([trip(3), trip(4)])))
    assert scores["coverage"] > 0.8
    assert scores["rmse_kw"] < 6.0


def test_adapting_narrows_the_band_and_lowers_the_error(started: evband.PowerModel, adapted: evband.PowerModel) -> None:
    test = Trips([trip(5), trip(6)])
    before, after = (evband.evaluate(model.predict(test)) for model in (started, adapted))
    assert after["crps_kw"] < 0.7 * before["crps_kw"]
    assert after["width_kw"] < 0.6 * before["width_kw"]
    assert after["epistemic_kw"] < before["epistemic_kw"]
    assert 0.7 < after["coverage"] <= 1.0


def test_it_survives_its_file_and_goes_on(adapted: evband.PowerModel, tmp_path) -> None:
    adapted.save(tmp_path / "car.evband")
    loaded = evband.load(tmp_path / "car.evband")
    test = Trips([trip(7)])
    np.testing.assert_array_equal(loaded.predict(test).mean, adapted.predict(test).mean)
    assert loaded.adaptation_.minutes == adapted.adaptation_.minutes
    again = evband.adapt(loaded, Trips([trip(8)]))
    assert again.adaptation_.trips == 3


def test_the_stream_equals_predict_with_and_without_elevation_and_edges(adapted: evband.PowerModel) -> None:
    drive = trip(9, seconds=200).on_grid(1.0)
    climbing = drive.table.with_columns(elevation_m=pl.Series(np.linspace(100.0, 140.0, len(drive))))
    for table in (drive.table, climbing, drive.table.drop("speed_start_kmh", "speed_end_kmh")):
        bands = adapted.predict(Trips([Trip("x", table, 1.0)]))
        stream = adapted.stream()
        names = [
            n
            for n in (
                "speed_kmh",
                "acceleration_ms2",
                "elevation_m",
                "speed_start_kmh",
                "speed_end_kmh",
                "speed_readings",
                "acceleration_sensed",
            )
            if n in table
        ]
        ticks = [stream.tick(**row) for row in table.select(names).to_dicts()]
        np.testing.assert_allclose([t.mean_kw for t in ticks], bands.mean, atol=2e-4)
        assert not any(t.outside for t in ticks[60:])


def test_a_slope_that_a_sensor_feels_counts_alike_in_files_streams_and_live_feeds(started: evband.PowerModel) -> None:
    drive, features = trip(9, seconds=300), started.feature_map_
    time, speed = (drive.table[name].to_numpy() for name in ("time_s", "speed_kmh"))
    felt = np.where(time < 250.0, np.gradient(speed / 3.6, time) + 0.05 * GRAVITY, np.nan)  # then it falls silent
    uphill = replace(drive, table=drive.table.with_columns(acceleration_ms2=pl.Series(felt, nan_to_null=True)))
    more = started.predict(Trips([uphill])).mean - started.predict(Trips([drive])).mean
    assert more[60:250].mean() > 1.0
    grid = uphill.on_grid(1.0)
    rows = features.transform(grid)
    bins, columns = Bins(1.0), BinColumns(1.0, 1, VALUES)
    stream, live = features.stream(), FeatureColumns(features, 1)
    values = np.stack([uphill.column(name) if uphill.has(name) else np.full(len(time), np.nan) for name in VALUES], 1)
    lines = [dict(zip(VALUES, line, strict=True)) for line in values.tolist()]
    closed = [row for t, line in zip(time.tolist(), lines, strict=True)
              for row in bins.add(t, {name: v for name, v in line.items() if v == v})]  # fmt: skip
    (batch,), _ = columns.take(np.zeros(len(time), np.int64), time, values)
    assert [*grid.table[SENSED]][: len(closed)] == [row.values[SENSED] for row in closed] == batch.sensed.tolist()
    assert {*batch.sensed.tolist()} == {True, False}
    for t, row in enumerate(closed):
        known = dict(zip((*VALUES, *EDGES), batch.values[t : t + 1].T, strict=True))
        known |= {READINGS: batch.readings[t : t + 1].astype(float), SENSED: batch.sensed[t : t + 1].astype(float)}
        for x in (stream.tick(row.values)[0], live.tick(np.zeros(1, np.int64), known)[0][0]):
            np.testing.assert_array_equal(x, rows.x[t])


def test_an_acceleration_given_to_a_tick_is_a_sensors(started: evband.PowerModel) -> None:
    def at(**more: float | None) -> float:
        stream = started.stream()
        return [stream.tick(speed_kmh=50.0, **more).mean_kw for _ in range(30)][-1]

    assert at(acceleration_ms2=0.5) == at(acceleration_ms2=0.5, acceleration_sensed=1.0)
    assert at(acceleration_ms2=0.5) > at(acceleration_ms2=0.5, acceleration_sensed=0.0)
    assert at() == at(acceleration_sensed=1.0) == at(acceleration_ms2=0.0, acceleration_sensed=0.0)


def test_a_sheet_that_is_a_fifth_too_heavy_is_found_out() -> None:
    heavy = evband.start(mass_kg=1.2 * KG, cda_m2=CDA, crr=CRR)
    exact = evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)
    drives = Trips([trip(n) for n in range(20, 24)])
    found = [effective_mass(evband.adapt(model, drives)).mean() for model in (heavy, exact)]
    assert found[0] == pytest.approx(found[1], rel=0.05)


def test_energy_and_range_work_on_a_started_model(started: evband.PowerModel) -> None:
    (energy,) = started.energy(Trips([trip(10)]))
    lower, upper = energy.interval(0.9)
    assert 0 < lower < energy.mean_kwh < upper < 5


@pytest.mark.parametrize(
    ("drive", "words"),
    [
        (trip(11, sign=-1.0), "--flip-power"),
        (trip(12, unit=300.0), "unit"),
        (trip(13, mass=9000.0), "another car's"),
    ],
)
def test_a_log_that_cannot_be_this_cars_is_refused(started: evband.PowerModel, drive: Trip, words: str) -> None:
    with pytest.raises(TripsError, match=words):
        evband.adapt(started, Trips([drive]))


def test_a_trip_counts_once(adapted: evband.PowerModel) -> None:
    with pytest.raises(TripsError, match="already"):
        evband.adapt(adapted, Trips([trip(1)]))
    again = evband.adapt(adapted, Trips([trip(1), trip(14)]))
    assert again.adaptation_.trips == 3
    assert "left out" in again.adaptation_.notes[0]


def test_what_cannot_be_started_or_adapted_says_why(started: evband.PowerModel) -> None:
    with pytest.raises(VehicleError, match="nearest"):
        evband.start("Tesler Modell Drei")
    with pytest.raises(SettingsError, match="mass_kg is missing"):
        evband.start(cda_m2=0.6)
    with pytest.raises(VehicleError, match="CdA of 9 m2 does not go with 1600 kg"):
        evband.start(mass_kg=1600, cda_m2=9)
    with pytest.raises(SettingsError, match="1 Hz"):
        evband.start("BMW i3 60 Ah", hz=10.0)
    with pytest.raises(SettingsError, match="longer log"):
        evband.adapt(started, Trips([trip(15, seconds=20)]))


def test_a_model_of_an_evband_with_other_terms_predicts_but_learns_no_more(started: evband.PowerModel) -> None:
    features = started.feature_map_
    earlier = copy(started)
    earlier.feature_map_ = replace(features, road_names=tuple(name for name in features.road_names if name != "felt"))
    with pytest.raises(SettingsError, match="make it anew with evband start"):
        evband.adapt(earlier, Trips([trip(1)]))
    with pytest.raises(SettingsError, match="make it anew with evband start"):
        earlier.stream(adapt=True)


def test_a_damaged_base_is_one_sentence(tmp_path) -> None:
    path = tmp_path / "fleet.evband"
    Base.load().save(path)
    assert Base.load(path).digest
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ArtifactError, match="is not a base"):
        Base.load(path)


def test_the_posterior_of_a_linear_car_is_the_textbooks() -> None:
    """With Gaussian rows and no trip effects, members after the update have the mean and covariance of Bayes' rule."""
    from evband.adaptation.members import CORRELATED

    rng = np.random.default_rng(0)
    q, rows, members, noise = 3, 60, 4000, 0.5
    prior = np.diag([1.0, 0.5, 0.2])
    phi, truth = rng.standard_normal((rows, q)), np.array([0.7, -0.3, 0.2])
    y = phi @ truth + noise * rng.standard_normal(rows)
    information = phi.T @ phi / noise**2 / CORRELATED
    drawn = rng.multivariate_normal(np.zeros(q), prior, members)
    root = np.linalg.cholesky(information)
    gain = (phi.T @ (y[:, None] - phi @ drawn.T) / noise**2 / CORRELATED).T + rng.standard_normal((members, q)) @ root.T
    after = drawn + np.linalg.solve(information + np.linalg.inv(prior), gain.T).T
    covariance = np.linalg.inv(information + np.linalg.inv(prior))
    mean = covariance @ (phi.T @ y) / noise**2 / CORRELATED
    np.testing.assert_allclose(after.mean(0), mean, atol=4 * np.sqrt(np.diag(covariance) / members).max())
    np.testing.assert_allclose(np.cov(after.T), covariance, atol=0.05)


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.8])
def test_rows_count_as_one_as_long_as_their_errors_are_alike(rho: float) -> None:
    """Errors of an AR(1) process are worth (1 - rho) / (1 + rho) of as many independent ones."""
    from scipy.signal import lfilter

    from evband.adaptation.members import CORRELATED, Members

    rng, trips, rows = np.random.default_rng(0), 4, 20_000
    error = lfilter([1.0], [1.0, -rho], rng.standard_normal((1, trips * rows)))
    members = object.__new__(Members)
    members.groups, members.every = [slice(k * rows, (k + 1) * rows) for k in range(trips)], 1
    expected = max(CORRELATED, (1 + rho) / (1 - rho))
    assert members.correlated(error / error.std()) == pytest.approx(expected, rel=0.1)


def test_a_log_that_is_alike_from_trip_to_trip_has_narrower_bands_than_one_that_is_not() -> None:
    from evband.adaptation.scale import ScalePrior

    rng = np.random.default_rng(0)
    raw, nu, ranks = np.full((1, 12_000), 0.5), np.array([8.0]), np.array([0.95])
    trips = [np.arange(k * 1000, (k + 1) * 1000) for k in range(12)]
    noise = rng.standard_t(8.0, raw.shape)
    spread = np.repeat(np.exp(0.5 * rng.standard_normal(12)), 1000)  # as far apart as trips of a car are taken to be
    alike, unlike = (ScalePrior(0.0, 0.6).posterior(raw, noise * s, nu, trips) for s in (1.0, spread))
    above = [float(found.of_a_trip(ranks)[0]) - found.moments[0] for found in (alike, unlike)]
    assert above[0] < 0.3 < 0.6 < above[1]


def test_the_weather_tells_how_far_a_trip_may_have_an_offset_of_its_own(started) -> None:
    """0.6 W/kg where nothing is heated; sqrt(0.6^2 + (0.8 x 100 W/C x degrees / mass)^2) in the cold, with 3.0 x 1500 kg /
    mass in place of that where the temperature is not logged."""
    from evband.adaptation.cabin import COLD
    from evband.adaptation.update import CABIN_SHARE, CABIN_W_KG, evidence
    from evband.features.wheel import USUAL_KG
    from evband.vehicles.physics import HEATING_BELOW_C

    drive = trip(1)
    logged = [Trip("known", drive.table.with_columns(ambient_temp_c=pl.lit(celsius))) for celsius in (20.0, -5.0)]
    mild, cold, unknown = (evidence(started, started.on_grid(Trips([one]))).effect for one in (*logged, drive))
    unit = started.feature_map_.y_std / KG * 1000.0
    offset = started.adaptation_.trip_effect[0]
    heater = CABIN_SHARE * COLD * (HEATING_BELOW_C + 5.0) / KG
    np.testing.assert_allclose(mild[:, 0] * unit, offset, rtol=1e-6)
    np.testing.assert_allclose(cold[:, 0] * unit, np.hypot(offset, heater), rtol=1e-6)
    np.testing.assert_allclose(unknown[:, 0] * unit, np.hypot(offset, CABIN_W_KG * USUAL_KG / KG), rtol=1e-6)
    np.testing.assert_allclose(unknown[:, 2], mild[:, 2])  # tyres know nothing of it


def test_the_band_holds_on_a_drive_with_a_heater_that_the_drives_before_did_not_have(adapted) -> None:
    """Without a temperature in the log two drives that are alike say nothing of the next: 2 kW more are still inside."""
    heated = Trip("heated", trip(5).table.with_columns(pl.col("power_kw") + 2.0))
    assert evband.evaluate(adapted.predict(Trips([heated])))["coverage"] > 0.85


def test_a_label_sharpens_what_a_start_knows() -> None:
    """A car whose label asks for more than its drag and tyres explain is taken to have more of both."""
    sheet = find("Renault Zoe 52 kWh")
    plain = replace(sheet, epa_kwh_100km=None, wltp_kwh_100km=None, coast_down_n=None)
    thirsty, usual = (evband.start(replace(plain, epa_kwh_100km=label)).feature_map_.wheel for label in (26.0, None))
    assert thirsty[0] == usual[0]
    assert min(thirsty[1] - usual[1], thirsty[2] - usual[2]) > 0


def test_a_plan_without_elevation_is_a_plan(tmp_path):
    (tmp_path / "way.csv").write_text("distance_km,speed_kmh\n0,50\n5,80\n20,80\n")
    plan = evband.start("Renault Zoe 52 kWh").range(80, 52, str(tmp_path / "way.csv"))
    assert 0 < plan.energy_kwh(0.05) < plan.energy_kwh(0.95) < 20


def test_the_data_sheet_brings_the_battery_and_its_doubt(started: evband.PowerModel) -> None:
    route = flat_profile(120.0, 100.0)
    zoe = evband.start("Renault Zoe")
    battery = zoe.adaptation_.sheet["battery_kwh"]
    plan = zoe.range(80.0, None, route)
    assert plan.capacity_kwh == battery["value"]
    assert plan.doubts.capacity_sd_pct == pytest.approx(100 * battery["spread"])
    assert zoe.range(80.0, 40.0, route).doubts.capacity_sd_pct == 0.0
    with pytest.raises(SettingsError, match="give --capacity-kwh"):
        started.range(80.0, None, route)


def test_a_log_that_reads_the_speed_often_gets_a_narrower_band_before_any_minutes(started: evband.PowerModel) -> None:
    drive = trip(11, seconds=300).on_grid(1.0)

    def width(readings: float | None) -> float:
        known = drive.table.with_columns(speed_readings=pl.lit(readings, pl.Float64))
        lower, upper = started.predict(Trips([Trip("x", known, 1.0)])).interval(0.9)
        return float((upper - lower).mean())

    assert width(10.0) < 0.8 * width(1.0)
    assert width(None) == width(1.0)  # unknown is one per second


def test_what_is_kept_of_the_scale_does_not_depend_on_the_last_digits_of_a_product() -> None:
    """They do on how many threads make it: parts of a fleet have the same bytes with one and with two."""
    rng = np.random.default_rng(3)
    both = rng.random((30, len(TRIP_SCALE_SDS), len(OFFSETS)))
    both /= both.sum((1, 2), keepdims=True)
    nearly = both * (1.0 + 2e-16 * rng.standard_normal(both.shape))
    assert not (both == nearly).all()
    assert Offsets(both).moments == Offsets(nearly).moments


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 1e30])
def test_a_number_that_is_none_is_refused_by_the_name_it_was_given_by(wrong: float) -> None:
    with pytest.raises(SettingsError, match="mass_kg is "):
        evband.start(mass_kg=wrong, cda_m2=CDA)


def test_the_card_of_a_started_model_claims_no_calibration_trips_of_its_own() -> None:
    energy = evband.start(mass_kg=KG, cda_m2=CDA).card()["energy"]
    assert energy["of"] == "simulated trips of other cars"
    assert "calibration trips" not in energy["assumed"]
