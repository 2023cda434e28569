"""A car against itself: silence without a change, an alarm soon after one, and hills that no log has seen."""

import numpy as np
import polars as pl
import pytest

import evband
from evband.adaptation.update import evidence
from evband.fleet.drift import FEWEST, Drift
from evband.fleet.rolling import ALIKE, Reading, readings
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip


def alarms(values, variance: float = 0.02) -> list[int]:
    state, found = Drift(), []
    for k, value in enumerate(values):
        state = state.after(Reading(float(value), variance, 2))
        if state.alarm and state.since == 0:
            found.append(k)
    return found


def test_without_a_change_alarms_are_as_rare_as_stated() -> None:
    rng = np.random.default_rng(0)
    count = 30_000  # ways there and back: sixty car-years
    assert len(alarms(0.18 * rng.standard_normal(count))) <= 12  # six are expected


def test_a_change_of_three_deviations_is_found_within_five_readings() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(100):
        values = 0.13 * rng.standard_normal(30) + 0.39 * (np.arange(30) >= 20)
        late = [k for k in alarms(values, 0.01) if k >= 20]
        found.append(bool(late) and late[0] < 25)
    assert np.mean(found) > 0.8


def test_a_car_whose_readings_spread_more_than_they_say_is_judged_by_its_own_spread() -> None:
    rng = np.random.default_rng(3)
    values = 0.5 * rng.standard_normal(4000)
    assert len([k for k in alarms(values, 0.02) if k > 200]) <= 4


def test_a_reading_that_is_less_sure_counts_less() -> None:
    state = Drift()
    for value in 0.1 * np.random.default_rng(2).standard_normal(20):
        state = state.after(Reading(float(value), 0.01))
    vague, sure = (state.after(Reading(0.5, variance)) for variance in (1.0, 0.01))
    assert vague.up < 0.3 * sure.up
    assert abs(vague.mean - state.mean) < abs(0.5 - state.mean) / 20


def test_the_state_survives_its_part_and_damage_starts_it_anew() -> None:
    state = Drift()
    for value in np.random.default_rng(2).standard_normal(20):
        state = state.after(Reading(float(value), 0.1))
    assert Drift.of(state.to_list()) == state
    assert state.change is not None
    assert Drift.of([1.0, float("nan")]) == Drift() == Drift.of([-1.0] * 9)
    assert Drift(count=FEWEST, alarm=0.3).notes(3)[0].startswith("it rolls harder")
    assert Drift(alarm=0.3, since=5).notes(3) == []


@pytest.fixture(scope="module")
def model():
    return evband.adapt(evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR), evband.Trips([trip(k) for k in range(1, 5)]))


def with_force(drive, newtons):
    """The drive with so much more force (an array or a number) at the wheels."""
    more = newtons * drive.table["speed_kmh"].to_numpy() / 3.6 / 1000.0 / 0.9
    return evband.trips.Trip(
        drive.trip_id, drive.table.with_columns(power_kw=pl.col("power_kw") + pl.Series(more)), drive.hz
    )


def read(model, *drives) -> list[Reading]:
    return readings(model, evidence(model, evband.Trips(list(drives))))


def test_harder_tyres_are_read_from_a_trip(model) -> None:
    usual = evband.Trips([trip(9)]).on_grid(1.0)[0]
    (before,), (after,) = read(model, usual), read(model, with_force(usual, 0.3 * CRR * KG * 9.81))
    assert after.share - before.share == pytest.approx(0.3, abs=0.1)
    assert after.variance == pytest.approx(before.variance, rel=0.3)


def test_hills_cancel_on_the_way_back(model) -> None:
    there = evband.Trips([trip(9)]).on_grid(1.0)[0]
    place = np.cumsum(there.table["speed_kmh"].to_numpy() / 3.6)
    slope = 0.008 * np.sin(np.pi * place / place[-1])  # up all the way
    force = KG * 9.81 * slope
    back = evband.trips.Trip("back", there.table.clone(), there.hz)
    home = np.interp(place[-1] - place, place, -force)
    (alone,) = read(model, with_force(there, force))
    (both,) = read(model, with_force(there, force), with_force(back, home))
    (flat,) = read(model, there, back)
    assert alone.share - flat.share > 0.25  # uphill looks like bad tyres
    assert both.trips == 2
    assert abs(both.share - flat.share) < 0.1
    assert both.variance < 0.5 * alone.variance


def test_a_longer_trip_is_no_way_back(model) -> None:
    drives = [evband.Trips([trip(k, seconds=seconds)]).on_grid(1.0)[0] for k, seconds in ((9, 240), (10, 500))]
    assert [reading.trips for reading in read(model, *drives)] == [1, 1]
    assert ALIKE < 0.05


@pytest.mark.parametrize("part", [1.0, 0.6])
def test_of_trips_that_are_no_longer_than_the_one_before_hills_tell_which_are_its_way_back(model, part) -> None:
    one = evband.Trips([trip(9)]).on_grid(1.0)[0]
    place = np.cumsum(one.table["speed_kmh"].to_numpy() / 3.6)
    first, second = (KG * 9.81 * 0.02 * np.sin(2.0 * np.pi * place / length) for length in (2300.0, 1500.0))
    home = np.interp(place[-1] - place, place, -first)

    def then(force) -> evband.trips.Trip:
        whole = with_force(evband.trips.Trip("then", one.table.clone(), one.hz), force)
        return evband.trips.Trip("then", whole.table.head(int(part * len(place))), one.hz)

    assert [found.trips for found in read(model, with_force(one, first), then(home))] == [2]
    assert [found.trips for found in read(model, with_force(one, first), then(second))] == [1, 1]


def test_a_heater_that_draws_far_more_than_expected_is_not_taken_for_tyres(model) -> None:
    mild = evband.Trips([trip(9)]).on_grid(1.0)[0]
    assert (mild.table["speed_kmh"] < 1.0).any()  # at rest errors are small, and one of kilowatts is strange
    hot = evband.trips.Trip(mild.trip_id, mild.table.with_columns(power_kw=pl.col("power_kw") + 4.0), mild.hz)
    (before,), (after,) = read(model, mild), read(model, hot)
    assert abs(after.share - before.share) < 0.12


def test_wind_is_hardly_taken_for_tyres(model) -> None:
    calm = evband.Trips([trip(9)]).on_grid(1.0)[0]
    speed = calm.table["speed_kmh"].to_numpy() / 3.6
    gusts = 2.0 * np.sin(2.0 * np.pi * np.arange(len(speed)) / 150.0)  # m/s along the road
    (before,), (after,) = read(model, calm), read(model, with_force(calm, 1.2 * CDA * speed * gusts))
    assert abs(after.share - before.share) < 0.12
