"""The search: the paper's space, resumed searches equal to uninterrupted ones, pruning, what it writes."""

import tomllib
from importlib import import_module

import polars as pl
import pytest
from typer.testing import CliRunner

from evband.cli import command_line
from evband.errors import SettingsError
from evband.studies import search as searching
from evband.studies.cases import cut
from evband.studies.search import PARAMETERS, Plan, search
from tiny_car import drives

optuna = pytest.importorskip("optuna")
PLAN = {"members": 1, "max_epochs": 2, "device": "cpu"}


@pytest.fixture(scope="module")
def car():
    return cut("car", drives(4, seconds=150), "motion", 1.0)


@pytest.fixture
def small(monkeypatch):
    """The space with its large networks left out, so that tests are quick."""
    real = searching.suggest

    def shrunk(trial, plan):
        return real(trial, plan) | {"layers": 1, "hidden": 8, "window": 32, "burn_in": 8}

    monkeypatch.setattr(searching, "suggest", shrunk)


def test_space_is_the_papers():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    points = [searching.suggest(study.ask(), Plan()) for _ in range(60)]
    assert {p["layers"] for p in points} == {2, 4, 6, 8}
    assert {p["hidden"] for p in points} == {32, 64, 128}
    assert {p["epochs"] for p in points} == {50, 100, 300, 500}
    assert {p["optimiser"] for p in points} == {"adam", "sgd", "adagrad", "rmsprop"}
    assert all(0.001 <= p["prior_variance"] <= 0.1 and 1e-5 <= p["rate"] <= 1e-2 for p in points)
    assert sum(p["rate"] < 10**-3.5 for p in points) == pytest.approx(30, abs=12)  # uniform in its logarithm


def test_stopped_search_ends_where_an_unstopped_one_does(car, small, tmp_path, monkeypatch):
    whole = search(car, Plan(trials=3, **PLAN), tmp_path / "whole")
    real, calls = searching._objective, []

    def interrupted(trial, *rest):
        calls.append(trial.number)
        value = real(trial, *rest)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return value

    monkeypatch.setattr(searching, "_objective", interrupted)
    said = []
    with pytest.raises(KeyboardInterrupt):
        search(car, Plan(trials=3, **PLAN), tmp_path / "parts", say=said.append)
    assert "continues" in said[0]
    assert pl.read_csv(tmp_path / "parts" / "trials.csv").height == 1
    parts = search(car, Plan(trials=3, **PLAN), tmp_path / "parts")
    columns = ["state", "log_score", *PARAMETERS]
    assert parts.select(columns).equals(whole.select(columns))


def test_best_settings_can_be_fitted_with(car, small, tmp_path):
    trials = search(car, Plan(trials=2, sampler="tpe", **PLAN), tmp_path)
    best = tomllib.loads((tmp_path / "best.toml").read_text())
    assert set(best) == {"preset", "features", "hz", *PARAMETERS}
    assert (best["features"], best["hz"]) == ("motion", 1.0)
    assert trials["epochs"].to_list() == [2, 2]
    assert best["epochs"] == 2
    assert trials["log_score"].is_finite().all()
    assert (tmp_path / "search.png").stat().st_size > 1000


def test_hopeless_trials_are_pruned(car, small, tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "REPORT_EVERY", 1)
    monkeypatch.setattr(searching, "STARTUP_TRIALS", 1)
    trials = search(car, Plan(trials=6, members=1, max_epochs=5, device="cpu"), tmp_path)
    pruned = trials.filter(pl.col("state") == "pruned")
    assert len(trials) == 6
    assert len(pruned) > 0
    assert (pruned["last_epoch"] < 5).all()


def test_other_data_or_settings_want_another_folder(car, small, tmp_path):
    search(car, Plan(trials=1, **PLAN), tmp_path)
    with pytest.raises(SettingsError, match="another --out"):
        search(car, Plan(trials=1, seed=1, **PLAN), tmp_path)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"sampler": "grid"}, "random or tpe"),
        ({"trials": 0}, "--trials 0"),
        ({"max_epochs": 0}, "--max-epochs 0"),
        ({"max_epochs": -1}, "--max-epochs -1"),
        ({"members": 0}, "members is 0"),
    ],
)
def test_impossible_plan_is_refused_before_it_is_stored(car, tmp_path, wrong, match):
    with pytest.raises(SettingsError, match=match):
        search(car, Plan(**(PLAN | wrong)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_storage_that_is_no_database_is_an_error(car, tmp_path):
    (tmp_path / "search.db").write_text("no database, but some text\n" * 100)
    with pytest.raises(SettingsError, match="cannot be opened as a search"):
        search(car, Plan(trials=1, **PLAN), tmp_path)


def test_command_line_shows_small_rates(car, monkeypatch, tmp_path):
    table = pl.DataFrame({"trial": [0], "log_score": [1.0], "rate": [1.234e-5]})
    monkeypatch.setattr(searching, "search", lambda *_: table)
    monkeypatch.setattr(import_module("evband.cli.study"), "_cases", lambda *_: [car])
    done = CliRunner().invoke(command_line(), ["study", "search", "--out", str(tmp_path)])
    assert "1.2e-05" in done.output, done.output
