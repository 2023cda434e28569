"""Simulated drives by name: seeded, called simulated, and with the truth carried along."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastsim")

from evband.channels import VALUES
from evband.errors import MissingPackageError, SettingsError
from evband.logs.reading import read_trips
from evband.logs.writing import write_table
from evband.simulation import NAMES, TRUTH, simulate, simulated_log, summary


def test_all_yields_the_five_and_calls_them_simulated() -> None:
    trips = simulate("all", hz=1)
    assert trips.ids == tuple(f"sim_{name}_000" for name in ("sedan_1", "sedan_2", "truck", "hatchback", "highway"))
    assert tuple(name.removeprefix("sim_").removesuffix("_000") for name in trips.ids) == NAMES


def test_same_seed_same_log_and_other_seed_another() -> None:
    first, again, other = (simulated_log("hatchback", hz=1, seed=seed) for seed in (3, 3, 4))
    assert first.equals(again)
    assert not first.equals(other)


def test_a_trip_does_not_depend_on_how_many_are_made() -> None:
    one, three = simulated_log("truck", hz=1), simulated_log("truck", hz=1, trips=3)
    assert three["trip_id"].unique(maintain_order=True).to_list() == [f"sim_truck_00{k}" for k in range(3)]
    assert three.filter(three["trip_id"] == "sim_truck_000").equals(one)
    assert summary(three)["duration_s"][:2].to_list() == [765.0, 1369.0]  # HWFET, UDDS, then a made-up cycle
    assert summary(three)["distance_km"][1] == pytest.approx(11.99, abs=0.15)


def test_truth_passes_through_the_grid_and_is_no_channel() -> None:
    trip = simulate("sedan_1")[0]
    assert set(TRUTH).isdisjoint(VALUES)
    assert set(TRUTH).isdisjoint(trip.channels)
    grid = trip.on_grid(10)
    for column in ("power_kw", *TRUTH):
        np.testing.assert_allclose(grid.table[column], trip.table[column], atol=1e-9)
    assert grid.table["segment"].n_unique() == 1


def test_written_and_read_it_is_the_same_trips(tmp_path: Path) -> None:
    for name in ("sedan_2", "highway"):
        path = tmp_path / f"{name}.parquet"
        write_table(simulated_log(name, hz=1), path)
        assert read_trips(path)[0].fingerprint == simulate(name, hz=1)[0].fingerprint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "bus"}, "no simulated vehicle 'bus'"),
        ({"name": "truck", "hz": 0.0}, "0.0 Hz"),
        ({"name": "truck", "hz": float("nan")}, "nan Hz"),
        ({"name": "truck", "trips": 0}, "number of simulated trips is 0"),
        ({"name": "truck", "seed": -1}, "seed is -1"),
    ],
)
def test_settings_that_cannot_be(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        simulated_log(**arguments)  # type: ignore[arg-type]


def test_without_fastsim_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastsim", None)
    with pytest.raises(MissingPackageError, match=r"evband\[sim\]"):
        simulated_log("sedan_1")
