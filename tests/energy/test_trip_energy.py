"""Trip energy and range of a fitted model: what they are made of, what narrows and widens them, bad input."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import evband
from drives import made_up_trip, made_up_trips, small_model
from evband.calibration import Calibration
from evband.energy import EnergyBand, predicted_drives, what_ifs
from evband.energy.fan import write_fan
from evband.errors import ChannelError, EvbandError, SettingsError, TripsError
from evband.trips import Trips

ROUTE = pl.DataFrame(
    {"distance_km": [0.0, 2, 5, 10], "speed_kmh": [50.0, 80, 50, 0], "elevation_m": [0.0, 10, 50, 0], "ambient_temp_c": [9.0] * 4}
)  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def trip():
    return made_up_trip("new", 600, 77)


def test_fit_leaves_an_error_model_that_survives_the_file(model, tmp_path):
    assert model.errors_.trips == 12
    model.save(tmp_path / "car.evband")
    assert evband.load(tmp_path / "car.evband").errors_ == model.errors_


def test_energy_of_a_trip_is_the_integral_of_its_bands(model, trip):
    band = model.energy(trip)[0]
    bands, errors = model.predict(trip), model.errors_
    hours = len(bands) / 3600
    seen, _ = errors.on_its_way(predicted_drives(model, Trips([trip]).on_grid(1.0))[0])
    assert band.mean_kwh == pytest.approx((seen.mean.mean() + errors.bias) * hours)
    assert seen.mean == pytest.approx(seen.members.mean(axis=0))
    assert band.energy_kwh == pytest.approx(bands.power_kw.mean() * hours, rel=0.01)
    assert band.distance_km == pytest.approx(trip.distance_km, rel=0.01)
    lower, upper = band.interval(0.9)
    assert band.cdf(upper) - band.cdf(lower) == pytest.approx(0.9)
    assert band.miles_per_kwh(1.0) == pytest.approx(band.distance_km / 1.609344)
    assert band.per_100km(1.0) == pytest.approx(100 / band.distance_km)
    assert set(band.to_dict()) == {
        "trip_id",
        "distance_km",
        "energy_kwh",
        "mean_kwh",
        "lower_kwh",
        "upper_kwh",
        "level",
    }


def test_stretches_add_up_and_errors_do_not_cancel(model, trip):
    whole, first, rest = model.energy(trip)[0], model.energy(trip, to_km=4.0)[0], model.energy(trip, from_km=4.0)[0]
    assert first.mean_kwh + rest.mean_kwh == pytest.approx(whole.mean_kwh)
    assert first.distance_km == pytest.approx(4.0, abs=0.05)
    assert np.hypot(first.scale_kwh, rest.scale_kwh) < whole.scale_kwh < first.scale_kwh + rest.scale_kwh
    assert model.energy(trip, from_km=4.0, so_far=True)[0].scale_kwh < rest.scale_kwh


def test_a_calibration_stretch_of_rows_does_not_touch_energy(model, trip):
    before = model.energy(trip)[0]
    wider = evband.PowerModel()
    wider.__dict__.update(model.__dict__)
    wider.calibration_ = Calibration(3.0, 0.2)
    after = wider.energy(trip)[0]
    assert (after.mean_kwh, after.scale_kwh) == pytest.approx((before.mean_kwh, before.scale_kwh), rel=1e-4)


def test_a_log_without_power_has_energy_without_comparison(model, trip):
    silent = replace(trip, table=trip.table.drop("power_kw"))
    found = model.energy(silent)
    assert found[0].energy_kwh is None
    assert found.coverage is None
    assert json.loads(json.dumps(found.to_dicts()))[0]["energy_kwh"] is None
    assert "measured" not in repr(found)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"from_km": -1.0}, "0 <= from_km"), ({"from_km": 5.0, "to_km": 2.0}, "0 <= from_km"), ({"from_km": 900.0}, "km long"), ({"level": 2.0}, "between 0 and 1")],
)  # fmt: skip
def test_bad_stretches(model, trip, options, says):
    with pytest.raises(EvbandError, match=says):
        model.energy(trip, **options)


def test_without_calibration_there_is_no_energy():
    model = evband.PowerModel(members=1, epochs=1, hidden=8, calibrate=False, device="cpu").fit(made_up_trips(2))
    with pytest.raises(SettingsError, match="no energy calibration"):
        model.energy(made_up_trips(1))


def test_range_is_where_the_energy_passes_the_battery(model):
    plan = model.range(60, 10.0, ROUTE)
    reach = [plan.distance_km(p) for p in (0.05, 0.5, 0.95)]
    assert 0 < reach[0] < reach[1] < reach[2]
    mean, _ = plan.way.energy(plan.past)
    assert np.interp(reach[1], plan.way.km, mean) == pytest.approx(plan.battery_kwh, rel=0.02)
    assert plan.route_km == pytest.approx(10.0, abs=0.05)
    assert plan.beyond_route is (reach[2] > plan.route_km)
    assert plan.soc_at_arrival(0.5) == pytest.approx(60 - 10 * plan.energy_kwh(0.5))
    assert set(plan.to_dict()) == {
        "distance_km", "arrival_probability", "arrival_probability_empty", "reserve_soc", "soc_at_arrival", "energy_kwh", "beyond_route",
        "shares", "soc_for_95", "load_kwh_for_95",
    }  # fmt: skip
    json.dumps(plan.to_dict(), allow_nan=False)


def test_a_battery_just_large_enough_arrives_half_the_time(model):
    kwh = model.range(100, 10.0, ROUTE, reserve_soc=0).energy_kwh(0.5)
    tight = model.range(50, 2 * kwh, ROUTE, reserve_soc=0)
    assert 0.3 < tight.arrival_probability <= 0.501  # the hill on the way asks for more than the end
    assert tight.distance_km(0.5) <= tight.route_km
    assert model.range(50, 4 * kwh, ROUTE, reserve_soc=0).arrival_probability > 0.9
    assert model.range(8, 10.0, ROUTE).to_dict()["distance_km"] == {"p05": 0.0, "p50": 0.0, "p95": 0.0}


def test_the_drive_so_far_narrows_range(model, trip):
    fresh, known = model.range(60, 10.0, ROUTE), model.range(60, 10.0, ROUTE, so_far=trip)
    ahead, ahead_fresh = (plan.route.energy(plan.past)[1][-1] for plan in (known, fresh))
    assert ahead < ahead_fresh  # this toy's lower side is the floor's either way
    silent = model.range(60, 10.0, ROUTE, so_far=replace(trip, table=trip.table.drop("power_kw")))
    assert any("no measured power" in note for note in silent.notes)


def test_a_log_is_a_route_and_its_energy_is_that_of_the_trip(model, trip):
    plan, band = model.range(60, 10.0, trip), model.energy(trip)[0]
    assert plan.energy_kwh(0.5) == pytest.approx(band.mean_kwh, rel=1e-6)
    assert plan.energy_kwh(0.95) == pytest.approx(band.quantile(0.95), rel=1e-6)


def test_leaving_what_the_model_has_seen_warns_and_widens(model):
    inside = model.range(60, 10.0, ROUTE)
    hot = model.range(60, 10.0, ROUTE, ambient_c=50.0)
    assert not any("leaves what" in note for note in inside.notes)
    assert any("leaves what the model has seen (ambient_temp_c)" in note for note in hot.notes)
    size, scale = ([plan.way.size[0], plan.route.energy(plan.past)[1][-1]] for plan in (hot, inside))
    assert size[0] > 1.4 * scale[0]
    assert size[1] > scale[1]


def test_what_ifs_say_what_they_cannot(model):
    found = what_ifs(model, 60, 10.0, ROUTE)
    assert list(found) == ["as given", "10 % slower", "10 C colder", "5 m/s head wind", "heater off"]
    assert "no hvac_power_kw" in found["heater off"]
    assert not isinstance(found["10 % slower"], str)
    assert found["5 m/s head wind"].energy_kwh(0.5) > found["as given"].energy_kwh(0.5)


@pytest.mark.parametrize(
    ("soc", "capacity", "reserve", "says"),
    [(101, 50, 10, "charge is 101"), (-1, 50, 10, "charge is -1"), (float("nan"), 50, 10, "charge is nan"), (50, 0, 10, "capacity is 0"),
     (50, -3, 10, "capacity is -3"), (50, float("inf"), 10, "capacity is inf"), (50, 50, 120, "reserve is 120")],
)  # fmt: skip
def test_bad_batteries(model, soc, capacity, reserve, says):
    with pytest.raises(SettingsError, match=says):
        model.range(soc, capacity, ROUTE, reserve_soc=reserve)


def test_inputs_that_the_route_lacks_are_named(model):
    with pytest.raises(ChannelError, match=r"does not supply elevation_m, ambient_temp_c.*--features motion"):
        model.range(60, 10.0, ROUTE.drop("elevation_m", "ambient_temp_c"))
    with pytest.raises(ChannelError, match="does not supply elevation_m"):
        model.range(60, 10.0, ROUTE.drop("elevation_m", "ambient_temp_c"), ambient_c=9.0)
    with pytest.raises(TripsError, match="2 trips"):
        model.range(60, 10.0, ROUTE, so_far=Trips([made_up_trip("a"), made_up_trip("b", seed=3)]))


@pytest.mark.parametrize("name", ["fan.png", "fan.html"])
def test_the_fan_is_drawn(model, tmp_path, name):
    write_fan(model.range(60, 10.0, ROUTE), tmp_path / name)
    data = (tmp_path / name).read_bytes()
    assert data.startswith(b"\x89PNG") if name.endswith("png") else b"reserve" in data
    with pytest.raises(SettingsError, match=r"\.html or \.png"):
        write_fan(model.range(60, 10.0, ROUTE), tmp_path / "fan.gif")


def test_no_energy_is_no_mileage():
    band = EnergyBand("downhill", 5.0, 600.0, -0.2, 0.1, 10)
    assert np.isnan(band.miles_per_kwh(-0.2))
    assert np.isnan(EnergyBand("standing", 0.0, 600.0, 0.2, 0.1, 10).per_100km(0.2))
