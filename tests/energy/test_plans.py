"""Plans: how drives differ from them, the cabin nobody knows, doubts and their shares, advice, and answers that are not absurd."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from drives import made_up_trip, made_up_trips, small_model
from evband.energy import Doubts, advice, advice_lines, changes, plan, shares_line, what_ifs
from evband.energy.answers import speed_to_arrive
from evband.energy.cabin import Cabin, fit_cabin
from evband.energy.doubts import load_kw, stops_kw, wind_kw
from evband.energy.drives import Drive
from evband.energy.planned import Planned, fit_planned, router_says
from evband.energy.sanity import of_steady_drives, of_terms
from evband.errors import ArtifactError, SettingsError
from evband.model import PowerModel
from evband.routes import read_route
from evband.trips import Trip, Trips

ROUTE = pl.DataFrame(
    {"distance_km": [0.0, 2, 5, 10], "speed_kmh": [50.0, 80, 110, 0], "elevation_m": [0.0, 10, 50, 0], "ambient_temp_c": [9.0] * 4}
)  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return small_model()


def test_a_router_gives_few_speeds_no_stops_and_the_same_way():
    trip = made_up_trip("drive", 1200, 3).on_grid(1.0)
    table = trip.table.with_columns(
        speed_kmh=pl.when(pl.col("time_s").is_between(500, 600)).then(0.0).otherwise(pl.col("speed_kmh"))
    )
    waiting = Trip("waits", table, 1.0)
    route = router_says(waiting)
    planned = route.on_grid(1.0)
    assert planned.distance_km == pytest.approx(waiting.distance_km, rel=0.01)
    assert len(planned) < len(waiting) - 60
    assert len(np.unique(np.round(route.speed_kmh))) < 30
    assert router_says(Trip("short", table.head(5), 1.0)) is None


def steady(km, kmh):
    """A plan at one speed, on a grid of 1 Hz."""
    return np.full(round(3600 * km / kmh), float(kmh)), 1.0


def test_how_drives_differ_from_plans_is_found_and_survives_the_file():
    rng = np.random.default_rng(0)
    km = rng.uniform(3, 60, 300)
    difference = 0.03 * km + 0.01 * km * rng.normal(size=300) + 0.05 * np.sqrt(km) * rng.normal(size=300)
    found = fit_planned(difference, [steady(x, 50) for x in km])
    counted = 20 * found.counted(np.array([50.0]))[0]
    mean, variance = found.over(20.0, counted)
    assert mean == pytest.approx(0.6, abs=0.06)
    half = 2.015 * np.sqrt(variance)  # the 90 % band of a t with 5 degrees of freedom
    assert half == pytest.approx(1.645 * np.sqrt(0.01**2 * 400 + 0.05**2 * 20), rel=0.2)
    assert Planned.from_dict(found.to_dict()) == found
    assert fit_planned(difference[:4], [steady(x, 50) for x in km[:4]]) is None
    with pytest.raises(ArtifactError, match="plans"):
        Planned.from_dict(found.to_dict() | {"habit": -1.0})
    earlier = {name: value for name, value in found.to_dict().items() if name != "scale_kmh"}
    assert Planned.from_dict(earlier).counted(np.array([130.0]))[0] == pytest.approx(1.0, abs=1e-3)


def test_what_drives_take_beyond_plans_is_counted_in_towns_where_it_is_found_there():
    rng = np.random.default_rng(1)
    town, fast = rng.uniform(2, 10, 60), rng.uniform(0, 60, 60)
    plans = [(np.concatenate([steady(a, 30)[0], steady(b, 120)[0]]), 1.0) for a, b in zip(town, fast, strict=True)]
    of_town = fit_planned(0.05 * town * (1 + 0.1 * rng.normal(size=60)), plans)
    assert of_town.scale_kmh < 40
    of_all = fit_planned(0.03 * (town + fast) * (1 + 0.1 * rng.normal(size=60)), plans)
    assert of_all.scale_kmh == 1e6
    slow, quick = (of_town.shift * of_town.counted_km(*steady(10, kmh)) for kmh in (30, 120))
    assert slow == pytest.approx(0.5, rel=0.1)
    assert quick < 0.02


def test_driving_slowly_does_not_turn_a_motorway_into_a_town(model):
    way = read_route(pl.DataFrame({"distance_km": [0.0, 20], "speed_kmh": [120.0, 120], "elevation_m": [0.0, 0], "ambient_temp_c": [9.0, 9]}))  # fmt: skip
    town = way.at_most(30.0)
    known, slow = plan(model, 80, 60.0, way), plan(model, 80, 60.0, town)
    assert slow.route.counted_km[-1] == pytest.approx(known.route.counted_km[-1], rel=0.02, abs=0.02)
    assert slow.route.seconds[-1] > 3 * known.route.seconds[-1]
    assert way.at_pace(0.9).at_most(60.0).road_kmh(np.array([10.0]))[0] == pytest.approx(120.0)


def test_a_planned_route_is_less_sure_than_the_same_way_as_driven(model):
    trip = made_up_trip("way", 900, 21)
    assert model.energy_["planned"] is not None
    as_driven, as_planned = plan(model, 80, 30.0, trip), plan(model, 80, 30.0, router_says(trip.on_grid(1.0)))
    assert "plan" not in as_driven.shares
    assert as_planned.shares["plan"] > 0.02
    assert sum(as_planned.shares.values()) == pytest.approx(1.0)


def test_the_same_question_has_the_same_answer(model):
    table = made_up_trip("log", 900, 22).table.with_columns(ambient_temp_c=pl.lit(9.0))
    log = Trip("log", table)
    plain = plan(model, 60, 20.0, log)
    assert plan(model, 60, 20.0, log, ambient_c=9.0).energy_kwh(0.5) == pytest.approx(plain.energy_kwh(0.5), rel=1e-9)
    way = read_route(log)
    for same in (way.at_pace(1.0), way.at_most(350.0), way.shifted("ambient_temp_c", 0.0)):
        assert plan(model, 60, 20.0, same).energy_kwh(0.5) == pytest.approx(plain.energy_kwh(0.5), rel=1e-6)
    assert way.at_most(60.0).on_grid(1.0).distance_km == pytest.approx(way.on_grid(1.0).distance_km, rel=0.01)
    assert (
        max(way.at_most(60.0).on_grid(1.0).table["speed_kmh"]) < 61.0
    )  # where slowed readings leave a bin empty, speed goes on for a second


def test_every_doubt_widens_has_its_share_and_a_mean_of_its_own(model):
    sure = plan(model, 60, 20.0, ROUTE)
    sources = {
        "charge": {"soc_sd": 3.0}, "capacity": {"capacity_sd_pct": 5.0}, "load": {"payload_sd_kg": 150.0},
        "weather": {"ambient_sd_c": 4.0}, "wind": {"head_wind_sd_ms": 3.0}, "stops": {"stops_sd_min": 10.0},
    }  # fmt: skip
    for name, doubt in sources.items():
        found = plan(model, 60, 20.0, ROUTE, doubts=Doubts(**doubt))
        assert found.shares[name] > 0.0, name
        assert sum(found.shares.values()) == pytest.approx(1.0)
        width = [p.soc_at_arrival(0.95) - p.soc_at_arrival(0.05) for p in (found, sure)]
        assert width[0] > width[1], name
        assert found.energy_kwh(0.5) == pytest.approx(sure.energy_kwh(0.5))
    more = Doubts(payload_kg=300, head_wind_ms=6, stops_min=20)
    assert plan(model, 60, 20.0, ROUTE, doubts=more).energy_kwh(0.5) > sure.energy_kwh(0.5)
    assert "what no input tells" in shares_line(sure)
    with pytest.raises(SettingsError, match="soc_sd"):
        Doubts(soc_sd=-1.0)
    with pytest.raises(SettingsError, match=r"head_wind_ms is 400\.0; give a number from -60 to 60"):
        Doubts(head_wind_ms=400.0)


def test_a_capacity_that_nobody_knows_matters_by_what_is_taken_from_it(model):
    kwh = plan(model, 100, 30.0, ROUTE, reserve_soc=0).energy_kwh(0.5)
    large = plan(model, 80, 30 * kwh, ROUTE, doubts=Doubts(capacity_sd_pct=10.0))
    assert large.soc_at_arrival(0.95) < 80.0 - 1.0  # nothing was charged on the way
    level = ROUTE.with_columns(elevation_m=pl.lit(0.0))
    aged = Doubts(capacity_sd_pct=15.0)
    again = plan(model, plan(model, 60, 2.5 * kwh, level, doubts=aged).soc_needed(), 2.5 * kwh, level, doubts=aged)
    assert again.arrival_probability == pytest.approx(0.95, abs=1e-6)
    assert plan(model, 90, 8 * kwh, ROUTE, doubts=Doubts(capacity_sd_pct=50.0)).soc_needed(0.999) is None


def test_load_wind_and_stops_are_the_formulas():
    n = 600
    steady = Drive("d", 1.0, np.zeros(n), np.zeros((1, n)), np.ones(n), np.zeros(n, bool), np.full(n, 90.0), np.full(n, np.nan))  # fmt: skip
    assert load_kw(100.0, steady)[5] == pytest.approx(100 * 0.009 * 9.81 * 25 / 1000 / 0.88)
    assert wind_kw(4.0, 0.6, steady)[0] == pytest.approx(1.2 * 0.6 * (25**2 * 4 + 0.5 * 25 * 16) / 1000 / 0.88)
    assert wind_kw(-4.0, 0.6, steady)[0] == pytest.approx(1.2 * 0.6 * (-(25**2) * 4 + 0.5 * 25 * 16) / 1000 / 0.88)
    assert stops_kw(12.0, 0.5, steady, 15.0).sum() / 3600 == pytest.approx(0.5 * 12 / 60)  # 15 km are driven


def test_advice_arrives_at_95_percent(model):
    kwh = plan(model, 100, 30.0, ROUTE, reserve_soc=0).energy_kwh(0.5)
    tight = plan(model, 40, kwh / 0.3, ROUTE)
    assert tight.arrival_probability < 0.95
    found = advice(model, tight, ROUTE)
    enough = plan(model, found["soc_for_95"], kwh / 0.3, ROUTE)
    assert enough.arrival_probability == pytest.approx(0.95, abs=0.01)
    assert found["load_kwh_for_95"] == pytest.approx((found["soc_for_95"] - 40) / 100 * kwh / 0.3)
    assert found["kmh_for_95"] is None or 40 <= found["kmh_for_95"] < 110
    assert len(advice_lines(tight, found)) == 2
    plenty = plan(model, 90, 10 * kwh, ROUTE)
    assert advice(model, plenty, ROUTE)["kmh_for_95"] == pytest.approx(110.0)
    assert plenty.to_load_kwh() == 0.0
    assert plan(model, 90, 0.5 * kwh, ROUTE).soc_needed() is None


@pytest.mark.parametrize(
    ("needed", "draw"),
    [(0.4, 3.0), (0.62, 3.0), (0.81, 3.0), (0.99, 3.0), (0.92, 40.0), (0.98, 40.0), (0.905, 40.0), (0.5, 40.0)],
)
def test_the_advised_speed_is_the_highest_that_arrives_and_takes_few_plans(needed, draw):
    tried = []

    def planned(way):  # what is spare falls as drag rises, and a constant draw hurts the slow
        kmh = float(way.speed_kmh.max())
        tried.append(kmh)
        return SimpleNamespace(
            spare_kwh=lambda: needed - (kmh / 120.0) ** 2 - draw / kmh, battery_kwh=1.0, arrival_probability=0.0
        )

    way = read_route(pl.DataFrame({"distance_km": [0.0, 50.0], "speed_kmh": [120.0, 120.0], "elevation_m": [0.0, 0.0]}))
    found = speed_to_arrive(planned(way), way, planned)
    arrives = [kmh for kmh in range(40, 120) if needed - (kmh / 120.0) ** 2 - draw / kmh >= 0]
    assert found == max(arrives, default=None)
    assert len(tried) <= 6
    assert speed_to_arrive(SimpleNamespace(spare_kwh=lambda: -9.0, battery_kwh=1.0, arrival_probability=0.0), way, lambda slower: SimpleNamespace(spare_kwh=lambda: -5.0)) is None  # fmt: skip


def test_where_slowing_down_only_costs_more_no_speed_is_advised():
    way = read_route(pl.DataFrame({"distance_km": [0.0, 50.0], "speed_kmh": [50.0, 50.0]}))

    def planned(slower):  # the heater draws all the longer
        kmh = float(slower.speed_kmh.max())
        return SimpleNamespace(spare_kwh=lambda: -400.0 / kmh, battery_kwh=1.0, arrival_probability=0.5)

    assert speed_to_arrive(planned(way), way, planned) is None
    given = SimpleNamespace(reserve_soc=10.0, arrival_probability=0.5)
    lines = advice_lines(given, {"kmh_for_95": None, "soc_for_95": 52.0, "load_kwh_for_95": 6.9})
    assert lines[1] == "charge to 52 % before departure (6.9 kWh more) and drive as planned"


def test_a_plan_that_ends_with_its_route_arrives_alike(model):
    whole, short = plan(model, 60, 20.0, ROUTE), plan(model, 60, 20.0, ROUTE, beyond=False)
    assert short.arrival_probability == pytest.approx(whole.arrival_probability, abs=1e-9)
    assert short.distance_km(0.95) <= short.route_km


def test_on_the_way_it_says_why(model):
    driven = made_up_trip("now", 300, 31, heater_kw=2.0)
    found = plan(model, 60, 20.0, ROUTE, so_far=driven)
    why = changes(model, found, ROUTE, driven)
    assert set(why) == {"slope", "temperature", "measured", "speed"}
    on_the_grid = driven.on_grid(1.0)
    so_far = on_the_grid.table["power_kw"].mean() * len(on_the_grid) / 3600 / on_the_grid.distance_km
    assert sum(why.values()) == pytest.approx(found.energy_kwh(0.5) - so_far * found.route_km)


@pytest.fixture(scope="module")
def heated():
    """A car whose trips know their cabin's draw, more of it the colder it is."""
    rng, trips = np.random.default_rng(5), []
    for trip in made_up_trips():
        ambient = trip.table["ambient_temp_c"].to_numpy()
        draw = np.maximum(0.0, 0.15 * np.maximum(0, 18 - ambient) + 0.4 * rng.normal())
        power = trip.table["power_kw"].to_numpy() + draw
        table = trip.table.with_columns(hvac_power_kw=pl.Series(draw), power_kw=pl.Series(power))
        trips.append(Trip(trip.trip_id, table))
    chosen = {"members": 5, "epochs": 3, "hidden": 8, "window": 64, "burn_in": 8, "device": "cpu", "fade": False}
    return PowerModel(**chosen).fit(Trips(trips))


def test_a_plan_without_the_cabin_takes_what_is_usual_and_says_its_part(heated):
    assert "hvac_power_kw" in heated.feature_map_.channels
    unknown = plan(heated, 60, 20.0, ROUTE)
    assert unknown.shares["cabin"] > 0.01
    off = what_ifs(heated, 60, 20.0, ROUTE)["heater off"]
    assert off.energy_kwh(0.5) < unknown.energy_kwh(0.5)
    assert "cabin" not in off.shares
    known = plan(heated, 60, 20.0, ROUTE.with_columns(hvac_power_kw=pl.lit(1.35)))
    scale, wider = (plan.route.energy(plan.past)[1][-1] for plan in (known, unknown))
    assert scale < wider  # this toy's lower side is the floor's either way


def test_what_the_cabin_drew_so_far_goes_on(heated):
    driven = made_up_trip("now", 600, 3)

    def given(draw_kw):
        table = driven.table.with_columns(hvac_power_kw=pl.lit(draw_kw)).drop("power_kw")
        return plan(heated, 60, 20.0, ROUTE, so_far=Trip("now", table))

    without = plan(heated, 60, 20.0, ROUTE, so_far=Trip("now", driven.table.drop("power_kw")))
    cold, warm = given(3.0), given(0.0)
    powered = Trip("now", driven.table.with_columns(hvac_power_kw=pl.lit(3.0)))
    off = ROUTE.with_columns(hvac_power_kw=pl.lit(0.0))
    assert changes(heated, plan(heated, 60, 20.0, off, so_far=powered), off, powered)["cabin"] < -0.1
    assert warm.energy_kwh(0.5) < without.energy_kwh(0.5) < cold.energy_kwh(0.5)
    assert cold.shares["cabin"] < 0.5 * without.shares["cabin"]


def test_a_model_file_that_knows_only_how_far_trips_cabins_differ_goes_on_as_before():
    old = Cabin.from_dict({"weights": [1.0] + [0.0] * 7, "trip_kw": 0.5})
    draw, unsure = old.filled(np.append(np.full(300, 3.0), np.full(600, np.nan)), None, 1.0)
    assert draw[-1] == pytest.approx(1.0)
    assert unsure[-1] == pytest.approx(0.5, rel=1e-2)


def test_the_cabin_is_learned_and_survives_the_file():
    rng, trips = np.random.default_rng(1), []
    for i in range(30):
        trip = made_up_trip(f"t{i}", 600, i).on_grid(1.0)
        ambient = trip.table["ambient_temp_c"].to_numpy()
        draw = np.maximum(0.0, 0.1 * np.maximum(0, 18 - ambient) + 1.0 + 0.3 * rng.normal())
        trips.append(Trip(trip.trip_id, trip.table.with_columns(hvac_power_kw=pl.Series(draw)), 1.0))
    found = fit_cabin(Trips(trips))
    assert found.mean(np.array([-2.0]), np.array([900.0]))[0] == pytest.approx(3.0, abs=0.3)
    assert found.errors.slow**0.5 == pytest.approx(0.3, rel=0.4)
    assert Cabin.from_dict(found.to_dict()) == found
    assert fit_cabin(Trips(trips[:3])) is None
    with pytest.raises(ArtifactError, match="cabin"):
        Cabin.from_dict(found.to_dict() | {"weights": [1.0]})


def test_a_sane_model_does_not_contradict_physics(model):
    assert model.contradictions_ == of_steady_drives(model) == []
    assert of_terms({"drag area": -0.69}) == ["its drag area is -0.69 m2, and cars have 0.1 to 15"]


def test_a_log_that_contradicts_physics_is_found_and_range_shouts_or_refuses():
    """An engine takes over the faster the car goes."""
    trips = []
    for trip in made_up_trips():
        v = trip.table["speed_kmh"].to_numpy() / 3.6
        power = trip.table["power_kw"].to_numpy() - 0.35 * v - 0.0012 * v**3
        trips.append(Trip(trip.trip_id, trip.table.with_columns(power_kw=pl.Series(power))))
    chosen = {"members": 5, "epochs": 3, "hidden": 8, "window": 64, "burn_in": 8, "device": "cpu", "fade": False}
    hybrid = PowerModel(**chosen).fit(Trips(trips))
    problems = hybrid.contradictions_
    assert any("drag area" in problem for problem in problems)
    assert any("takes less energy per km" in problem for problem in problems)
    with pytest.raises(SettingsError, match="which no car does"):
        plan(hybrid, 60, 20.0, ROUTE)
    hybrid.energy_ = {**hybrid.energy_, "bias": 20.0}
    assert "CONTRADICTS PHYSICS" in plan(hybrid, 60, 20.0, ROUTE).notes[0]


def test_energy_rises_with_speed_climb_wind_and_load(model):
    def kwh(speed, climb=0.0, **doubts):
        way = pl.DataFrame({"distance_km": [0.0, 10.0], "speed_kmh": [speed, 0.0], "elevation_m": [0.0, climb], "ambient_temp_c": [15.0] * 2})  # fmt: skip
        return plan(model, 60, 20.0, way, doubts=Doubts(**doubts)).energy_kwh(0.5)

    speeds = [kwh(v) for v in (60.0, 80.0, 100.0, 115.0)]
    assert speeds == sorted(speeds)
    assert kwh(80.0, 150.0) > kwh(80.0) < kwh(80.0, head_wind_ms=5.0)
    assert kwh(80.0, payload_kg=200.0) > kwh(80.0)


def test_a_pass_is_gone_down_and_not_for_ever(model):
    way = pl.DataFrame({"distance_km": [0.0, 20.0], "speed_kmh": [60.0, 60.0], "elevation_m": [2000.0, 800.0], "ambient_temp_c": [15.0] * 2})  # fmt: skip
    level = way.with_columns(elevation_m=pl.lit(800.0))
    down, flat = (plan(model, 60, 20.0, one) for one in (way, level))
    assert down.energy_kwh(0.5) < flat.energy_kwh(0.5)
    assert down.distance_km(0.5) < flat.distance_km(0.5) + 60.0


def test_slopes_that_the_energy_leaves_out_are_named(model):
    up = pl.DataFrame({"distance_km": [0.0, 20.0], "speed_kmh": [60.0, 60.0], "elevation_m": [300.0, 1300.0], "ambient_temp_c": [15.0] * 2})  # fmt: skip
    assert not any("heights" in note for note in plan(model, 90, 40.0, up).notes)
    blind = small_model(features="speed_kmh,acceleration_ms2,ambient_temp_c")
    assert any("over 100 m, and this model has no slopes" in note for note in plan(blind, 90, 40.0, up).notes)
    assert not any("heights" in note for note in plan(blind, 90, 40.0, ROUTE).notes)
    rng = np.random.default_rng(0)
    noisy = [
        Trip(t.trip_id, t.table.with_columns(elevation_m=pl.Series(60.0 * rng.standard_normal(len(t)))))
        for t in made_up_trips()
    ]
    chosen = {"members": 5, "epochs": 3, "hidden": 8, "window": 64, "burn_in": 8, "device": "cpu", "fade": False}
    rough = PowerModel(**chosen).fit(Trips(noisy))
    assert any("than lifting" in note for note in plan(rough, 90, 40.0, up).notes)


def test_a_forecast_that_the_model_does_not_use_is_named(model):
    windy = ROUTE.with_columns(wind_ms=pl.lit(8.0))
    assert any("does not use wind_ms, because" in note for note in plan(model, 60, 20.0, windy).notes)
    assert not any("does not use" in note for note in plan(model, 60, 20.0, ROUTE).notes)
    mild = small_model(features="speed_kmh,acceleration_ms2,elevation_m")
    unsure = plan(mild, 60, 20.0, ROUTE.drop("ambient_temp_c"), doubts=Doubts(ambient_sd_c=5.0))
    assert any("does not use ambient_temp_c" in note for note in unsure.notes)


def test_models_without_these_parts_still_plan(model):
    before = {k: v for k, v in model.energy_.items() if k not in ("planned", "cabin", "contradictions")}
    old = PowerModel()
    old.__dict__.update(model.__dict__)
    old.energy_ = before
    assert "plan" not in plan(old, 60, 20.0, ROUTE).shares
    assert replace(plan(old, 60, 20.0, ROUTE), soc=0.0).arrival_probability == 0.0
