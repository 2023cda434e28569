"""Plans of started cars asked in ways that once ended in a traceback or left something out without a word."""

import numpy as np
import polars as pl
import pytest

import evband
from evband.channels import READINGS
from evband.energy import Doubts, advice, advice_lines, plan, what_ifs
from evband.energy.joining import joined

WAY = pl.DataFrame({"distance_km": [0.0, 120.0], "speed_kmh": [90.0, 90.0]})


@pytest.fixture(scope="module")
def zoe() -> evband.PowerModel:
    return evband.start("Renault Zoe 52 kWh")


def test_a_route_without_temperature_answers_the_other_what_ifs(zoe) -> None:
    found = what_ifs(zoe, 80, 52, WAY)
    assert found["10 C colder"] == "the route does not say how warm it is, so the plan cannot say; give --ambient"
    assert found["10 % slower"].energy_kwh(0.5) < found["as given"].energy_kwh(0.5)
    warm = what_ifs(zoe, 80, 52, WAY, ambient_c=10.0)
    assert warm["10 C colder"].energy_kwh(0.5) > warm["as given"].energy_kwh(0.5)


def test_a_spread_of_an_unknown_temperature_does_not_count_and_says_so(zoe) -> None:
    plain, unsure = (plan(zoe, 60, 52, WAY, doubts=Doubts(ambient_sd_c=sd)) for sd in (0.0, 5.0))
    assert unsure.energy_kwh(0.95) == plain.energy_kwh(0.95)
    assert any("the spread of the temperature does not count" in note for note in unsure.notes)


def test_the_charge_that_is_needed_is_enough_when_asked_again(zoe) -> None:
    for km in (60.0, 120.0, 150.0):
        way = pl.DataFrame({"distance_km": [0.0, km], "speed_kmh": [90.0, 90.0]})
        soc = plan(zoe, 50, 52, way).soc_needed()
        again = plan(zoe, soc, 52, way)
        found = advice(zoe, again, way)
        assert again.arrival_probability == pytest.approx(0.95, abs=1e-6)
        assert found["kmh_for_95"] is not None
        printed = " ".join(advice_lines(plan(zoe, soc - 1.0, 52, way), found | {"load_kwh_for_95": 0.5}))
        assert f"charge to {np.ceil(soc - 1e-6):.0f} %" in printed  # rounded down it would not do


def test_a_plan_is_known_as_closely_as_its_route_says(zoe) -> None:
    way = evband.read_route(WAY).on_grid(1.0)
    assert (
        joined(None, way, zoe.feature_map_.channels).table[READINGS].to_list()[:3] == way.table[READINGS].to_list()[:3]
    )


def test_a_head_wind_pushes_by_the_drag_of_the_cars_sheet() -> None:
    more = {}
    for cda in (0.5, 1.0):
        car = evband.start(mass_kg=2000, cda_m2=cda)
        still, windy = (plan(car, 80, 80, WAY, doubts=Doubts(head_wind_ms=w)).energy_kwh(0.5) for w in (0.0, 5.0))
        more[cda] = windy - still
    assert more[1.0] == pytest.approx(2.0 * more[0.5], rel=0.01)


@pytest.mark.parametrize("spell", ["{}", " {}", "{} "], ids=["plain", "space before", "space after"])
def test_names_of_a_profile_may_have_spaces_and_capitals(tmp_path, spell: str) -> None:
    names = [spell.format(name) for name in ("distance_km", "Speed_kmh", "elevation_m")]
    path = tmp_path / "way.csv"
    path.write_text(",".join(names) + "\n0,90,0\n120,90,2000\n")
    way = evband.read_route(path)
    assert way.along["elevation_m"][1].tolist() == [0.0, 2000.0]
    assert not way.notes


def test_columns_that_a_profile_does_not_have_are_named(tmp_path) -> None:
    path = tmp_path / "way.csv"
    path.write_text("distance_km,speed_kmh,elevation_ft\n0,90,0\n120,90,6000\n")
    (note,) = evband.read_route(path).notes
    assert note.startswith(
        "the route's elevation_ft is not used; beside speed a route has distance_km, time_s, stop_s, elevation_m"
    )


def test_a_truck_may_climb() -> None:
    way = pl.DataFrame({"distance_km": [0.0, 10.0], "speed_kmh": [60.0, 60.0], "elevation_m": [0.0, 400.0]})
    found = plan(evband.start("eActros 600"), 80, None, way, ambient_c=15.0)
    assert 300.0 < 10.0 * found.energy_kwh(0.5) < 900.0  # kWh/100 km; lifting 30 t alone takes 330
