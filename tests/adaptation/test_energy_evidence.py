"""A started model learns from energies of trips, of a made-up car whose power is known."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

import evband
from evband.adaptation import adapt_to_energy
from evband.adaptation.energy_evidence import CHARGING, _evidence, is_energy_table, read_energy
from evband.errors import EvbandError, LogError, SettingsError, TripsError
from evband.trips import Trip, Trips
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip

OFF = 0.93  # of the sheet: with the base's usual losses the car then seems to use 15 % more than it does


@pytest.fixture(scope="module")
def started() -> evband.PowerModel:
    return evband.start(mass_kg=OFF * KG, cda_m2=OFF * CDA, crr=CRR)


def whole(seed: int) -> Trip:
    """A drive from rest to rest, on roads that differ from trip to trip."""
    kinds = (("town",), ("town", "rural"), ("rural", "motorway"), ("town", "rural", "motorway"))[seed % 4]
    return trip(seed, seconds=0, stretches=[(kind, 300.0) for kind in kinds])


def driven(drive: Trip) -> tuple[float, float, float]:
    """(km, kWh, mean speed) of a drive at 4 Hz."""
    speed, power = (drive.table[name].to_numpy() for name in ("speed_kmh", "power_kw"))
    hours = len(speed) / 4 / 3600
    return float(speed.mean()) * hours, float(power.mean()) * hours, float(speed.mean())


def rows(seeds: range, path) -> None:
    lines = [",".join(f"{number:.4f}" for number in driven(whole(seed))) for seed in seeds]
    path.write_text("distance_km,energy_kwh,mean_speed_kmh\n" + "\n".join(lines) + "\n")


def test_twenty_rows_bring_the_consumption_near_the_truth(started: evband.PowerModel, tmp_path) -> None:
    path = tmp_path / "trips.csv"
    rows(range(100, 120), path)
    assert is_energy_table(path)
    adapted = adapt_to_energy(started, read_energy(path, started))
    tests = [whole(seed) for seed in range(200, 208)]
    truth = sum(driven(drive)[1] for drive in tests)
    ratio = [sum(band.mean_kwh for band in m.energy(Trips(tests))) / truth for m in (started, adapted)]
    assert ratio[0] == pytest.approx(1.08, abs=0.03), ratio
    assert ratio[1] == pytest.approx(1.0, abs=0.05), ratio
    assert adapted.adaptation_.trips == 20
    with pytest.raises(TripsError, match="already"):
        adapt_to_energy(adapted, read_energy(path, started))


def test_a_bias_that_rows_taught_is_not_learned_again(started: evband.PowerModel, tmp_path) -> None:
    """Energies that are higher by the bias say the same of the car's mean power."""
    path = tmp_path / "trips.csv"
    rows(range(100, 104), path)
    trips, biased = read_energy(path, started), copy(started)
    biased.energy_ = started.energy_ | {"bias": 1.0}
    more = [replace(one, energy_kwh=one.energy_kwh + one.distance_km / one.speed_kmh) for one in trips]
    plain, found = (_evidence(model, some, 0).y for model, some in ((started, trips), (biased, more)))
    np.testing.assert_allclose(found, plain)


def test_energy_is_found_in_every_way(started: evband.PowerModel, tmp_path) -> None:
    path = tmp_path / "trips.csv"
    path.write_text(
        "distance_km,kwh_100km,soc_start,soc_end,charged_kwh,duration_min,ambient_temp_c\n"
        "20,15,,,,30,5\n20,,80,75,,30,\n20,,,,3.5,30,\n"
    )
    found = read_energy(path, started, capacity_kwh=60.0)
    assert [t.energy_kwh for t in found] == pytest.approx([3.0, 3.0, 3.5 * CHARGING])
    assert [t.speed_kmh for t in found] == [40.0] * 3
    assert found[0].ambient_c == 5.0
    assert np.isnan(found[1].ambient_c)
    with pytest.raises(SettingsError, match="--capacity-kwh"):
        read_energy(path, started)
    with_battery = evband.start("Nissan Leaf 40 kWh")
    charge = with_battery.adaptation_.sheet["battery_kwh"]["value"]
    assert read_energy(path, with_battery)[1].energy_kwh == pytest.approx(0.05 * charge)


def test_commutes_that_differ_only_in_the_charge_at_their_start_all_count(started: evband.PowerModel, tmp_path) -> None:
    path = tmp_path / "trips.csv"
    lines = [f"20,25,{soc},{soc - 6}" for soc in range(90, 80, -1)]
    path.write_text("\n".join(["distance_km,duration_min,soc_start,soc_end", *lines]) + "\n")
    found = adapt_to_energy(started, read_energy(path, started, capacity_kwh=50.0))
    assert found.adaptation_.trips == 10


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("0,3,40", "row 1: distance_km is 0"),
        ("10,40,40", "400 kWh/100 km"),
        ("10,-2,40", "-20 kWh/100 km"),
        ("10,2,900", "900 km/h"),
        ("10,x,40", "'x', which is not a number"),
        ("10,,40", "no energy"),
        ("10,2,", "row 1: mean_speed_kmh is missing"),
        (",2,40", "row 1: distance_km is missing"),
    ],
)
def test_a_bad_row_is_one_sentence(started: evband.PowerModel, tmp_path, row: str, words: str) -> None:
    path = tmp_path / "trips.csv"
    path.write_text(f"distance_km,energy_kwh,mean_speed_kmh\n{row}\n")
    with pytest.raises(EvbandError, match=words):
        read_energy(path, started)


def test_shares_of_the_charge_are_no_per_cent(started: evband.PowerModel, tmp_path) -> None:
    path = tmp_path / "trips.csv"
    path.write_text("distance_km,duration_min,soc_start,soc_end\n20,30,0.8,0.6\n")
    with pytest.raises(LogError, match="look like shares"):
        read_energy(path, started, capacity_kwh=60.0)


def test_a_table_of_another_country_with_a_blank_line_or_without_distances_is_read(started, tmp_path) -> None:
    plain, other, rates = (tmp_path / f"{name}.csv" for name in ("plain", "other", "rates"))
    plain.write_text("distance_km,energy_kwh,mean_speed_kmh\n20.5,3.5,40\n\n30,4.5,50\n")
    other.write_text("distance_km;energy_kwh;mean_speed_kmh\n20,5;3,5;40\n30;4,5;50\n")
    rates.write_text("kwh_100km,mean_speed_kmh,ambient_temp_c\n15,40,10\n")
    assert all(map(is_energy_table, (plain, other, rates)))
    assert [replace(t, ambient_c=0.0) for t in read_energy(plain, started)] == [
        replace(t, ambient_c=0.0) for t in read_energy(other, started)
    ]
    (one,) = read_energy(rates, started)
    assert one.kw == pytest.approx(0.15 * 40)


def test_rows_table_by_table_weigh_as_those_of_one(started: evband.PowerModel, tmp_path) -> None:
    """Their common error does not average out by being given in portions."""
    path = tmp_path / "trips.csv"
    rows(range(100, 112), path)
    trips = read_energy(path, started)
    whole_table, parts = adapt_to_energy(started, trips), started
    for k in range(0, 12, 3):
        parts = adapt_to_energy(parts, trips[k : k + 3])
    before, at_once, in_turn = (
        np.trace(m.adaptation_.precision, axis1=1, axis2=2).sum() for m in (started, whole_table, parts)
    )
    assert in_turn - before == pytest.approx(at_once - before, rel=0.15)


def test_energies_of_quite_another_car_get_a_note_and_rows_that_are_there_twice(started, tmp_path) -> None:
    path = tmp_path / "trips.csv"
    rows(range(100, 108), path)
    trips = read_energy(path, started)
    assert adapt_to_energy(started, trips).adaptation_.notes == ()
    twice, left = adapt_to_energy(
        started, [replace(one, energy_kwh=2.5 * one.energy_kwh) for one in [*trips, trips[0]]]
    ).adaptation_.notes
    assert "times what was expected of the car" in twice
    assert left.startswith("1 of 9 trips are left out: they are there twice")
