"""A car against itself: silence without a change, an alarm soon after one."""

import numpy as np
import polars as pl

import evband
from evband.adaptation.update import evidence
from evband.fleet.drift import FEWEST, Drift, reading
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip


def alarms(values) -> list[int]:
    state, found = Drift(), []
    for k, value in enumerate(values):
        state = state.after(float(value))
        if state.alarm and state.since == 0:
            found.append(k)
    return found


def test_without_a_change_alarms_are_as_rare_as_stated() -> None:
    rng = np.random.default_rng(0)
    trips = 40_000  # forty car-years
    assert len(alarms(rng.standard_normal(trips))) <= 10  # four are expected


def test_a_change_of_two_deviations_is_found_within_ten_trips() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(200):
        values = 0.1 * rng.standard_normal(60) + 0.2 * (np.arange(60) >= 40)
        late = [k for k in alarms(values) if k >= 40]
        found.append(bool(late) and late[0] < 50)
    assert np.mean(found) > 0.8


def test_the_state_survives_its_part_and_damage_starts_it_anew() -> None:
    state = Drift()
    for value in np.random.default_rng(2).standard_normal(20):
        state = state.after(float(value))
    assert Drift.of(state.to_list()) == state
    assert state.change is not None
    assert Drift.of([1.0, float("nan")]) == Drift() == Drift.of([-1.0] * 8)
    assert Drift(count=FEWEST, alarm=0.3).notes(3)[0].startswith("it rolls harder")
    assert Drift(alarm=0.3, since=5).notes(3) == []


def test_harder_tyres_are_read_from_a_trip() -> None:
    model = evband.adapt(evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR), evband.Trips([trip(k) for k in range(1, 5)]))
    usual = evband.Trips([trip(9)]).on_grid(1.0)
    table = usual[0].table
    more = 0.3 * CRR * KG * 9.81 * table["speed_kmh"] / 3.6 / 1000.0 / 0.9
    harder = evband.Trips([evband.trips.Trip("harder", table.with_columns(power_kw=pl.col("power_kw") + more), 1.0)])
    before, after = (reading(model, evidence(model, trips)) for trips in (usual, harder))
    assert 0.1 < after - before < 0.45
