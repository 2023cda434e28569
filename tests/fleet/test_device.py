"""A task's cars side by side, as on a GPU: the same table as one by one; and logs too long to be learned from at once."""

import shutil

import numpy as np
import polars as pl
import pytest

import evband
from evband.adaptation.trip_errors import OWN, PRIOR_TRIPS
from evband.errors import SettingsError
from evband.fleet import cars, fit_fleet, learning, run_fleet
from evband.fleet.engine import run
from evband.trips import Trip, Trips
from tests.adaptation.test_start_and_adapt import CDA, KG, trip
from tests.fleet.test_fleet import NUMBERS, rows


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Two good cars, one whose power has the wrong sign."""
    logs = {"a": pl.concat([rows(1), rows(2)]), "b": rows(3, 1.2 * KG), "reversed": rows(4, sign=-1.0)}
    path = tmp_path_factory.mktemp("lake") / "all.parquet"
    pl.concat([log.with_columns(vehicle_id=pl.lit(name)) for name, log in logs.items()]).write_parquet(path)
    return path


def assert_same(ours: pl.DataFrame, theirs: pl.DataFrame) -> None:
    assert ours["warning"].to_list() == theirs["warning"].to_list()
    for name in ("trips", "crps_kw", "coverage", "energy_kwh_100km", "lower", "upper"):
        np.testing.assert_allclose(*(t[name].cast(pl.Float64).to_numpy() for t in (ours, theirs)), rtol=1e-5)


def test_a_fleet_side_by_side_has_the_table_of_one_by_one(lake, tmp_path, monkeypatch) -> None:
    """The update begins with the same parts: their float16 may round another way after the two fits."""
    pytest.importorskip("torch")
    from evband.adaptation.side_by_side import SideBySide

    one = fit_fleet([str(lake)], tmp_path / "one", device="cpu", **NUMBERS)
    shutil.copytree(tmp_path / "one", tmp_path / "same")
    rows(5).with_columns(vehicle_id=pl.lit("a")).write_parquet(tmp_path / "new.parquet")
    later = run_fleet("update", [str(tmp_path / "new.parquet")], tmp_path / "one", device="cpu")
    monkeypatch.setattr(cars, "gpu", lambda device: SideBySide("cpu"))
    assert_same(fit_fleet([str(lake)], tmp_path / "many", **NUMBERS), one)
    assert_same(run_fleet("update", [str(tmp_path / "new.parquet")], tmp_path / "same"), later)


def test_a_gpu_that_is_not_there_and_a_device_that_is_none_are_one_sentence(lake, tmp_path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        with pytest.raises(SettingsError, match="no GPU is usable here"):
            fit_fleet([str(lake)], tmp_path / "fleet", device="cuda", **NUMBERS)
    with pytest.raises(SettingsError, match="'tpu' is none of auto, cpu, cuda"):
        fit_fleet([str(lake)], tmp_path / "fleet", device="tpu", **NUMBERS)


def test_a_cluster_without_a_gpu_is_one_sentence_where_one_is_asked_for(monkeypatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0})
    with pytest.raises(SettingsError, match="Ray has no GPU"):
        list(run(assert_same, {}, [["a"]], assert_same, 1, "auto", gpus=0.25))


def test_a_long_log_is_learned_from_in_portions_and_says_nearly_the_same(monkeypatch) -> None:
    """Six trips, one of them longer than a portion, and one without power."""
    model = evband.start(mass_kg=KG, cda_m2=CDA)
    blind = Trip("blind", trip(9).table.drop("power_kw"))
    log = Trips([trip(1, seconds=300), trip(2, seconds=900), blind, *(trip(k, seconds=200) for k in (3, 4, 5))])
    log = log.on_grid(1.0)
    whole = learning.learned(model, log, 0, 0.9)
    monkeypatch.setattr(learning, "PORTION", 500)
    parts = learning.portions(log)
    assert [sum(map(len, some)) for some, _ in parts] == [300, 500, 400, 400, 200]
    assert all(len(some) == len(traces) for some, traces in parts)
    found = learning.learned(model, log, 0, 0.9)
    assert set(log.fingerprints) <= set(found.model.fingerprints_)  # an update with this log finds nothing new
    assert found.model.adaptation_.trips == 5  # a trip in two pieces is one
    assert found.model.energy_[OWN][1] == PRIOR_TRIPS + 5
    assert found.model.adaptation_.minutes == whole.model.adaptation_.minutes
    test = Trips([trip(20), trip(21)])
    ours, theirs = (evband.evaluate(one.model.predict(test)) for one in (found, whole))
    assert ours["crps_kw"] < 1.1 * theirs["crps_kw"]
    assert ours["coverage"] > theirs["coverage"] - 0.05


def test_a_long_log_without_power_is_refused_unread(monkeypatch) -> None:
    monkeypatch.setattr(learning, "PORTION", 100)
    blind = Trips([Trip("blind", trip(9).table.drop("power_kw"))]).on_grid(1.0)
    with pytest.raises(evband.EvbandError, match="has measured power"):
        learning.learned(evband.start(mass_kg=KG, cda_m2=CDA), blind, 0, 0.9)
