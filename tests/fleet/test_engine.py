"""Workers die: what they were at is repeated, and only a car that no worker survives is lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evband.errors import SettingsError
from evband.fleet.engine import run

BATCHES = [["a", "b"], ["once", "c"], ["d", "poison"], ["e", "f"], ["g"]]


def work(folder, batch):
    """A row per car; `once` kills its worker the first time, `poison` every time."""
    for car in batch:
        mark = Path(folder) / car
        if car == "poison" or (car == "once" and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return [{"car": car, "threads": os.environ["OMP_NUM_THREADS"]} for car in batch]


def lost(car, why):
    return [{"car": car, "why": why}]


def check(rows) -> None:
    assert sorted(row["car"] for row in rows) == ["a", "b", "c", "d", "e", "f", "g", "once", "poison"]
    assert [row["car"] for row in rows if "why" in row] == ["poison"]
    assert {row["threads"] for row in rows if "threads" in row} == {"1"}


def test_a_pool_repeats_what_a_killed_worker_was_at(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    rows = [row for batch in run(work, str(tmp_path), BATCHES, lost, workers=2) for row in batch]
    check(rows)
    assert os.environ["OMP_NUM_THREADS"] == "2"


def test_ray_repeats_what_a_killed_worker_was_at(tmp_path) -> None:
    pytest.importorskip("ray")
    code = (
        "from evband.fleet.engine import run\n"
        "from tests.fleet.test_engine import BATCHES, check, lost, work\n"
        f"check([row for batch in run(work, {str(tmp_path)!r}, BATCHES, lost, 2, 'auto') for row in batch])"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parents[1]), *sys.path])
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env={**os.environ, "PYTHONPATH": path})


def test_a_cluster_that_does_not_answer_is_one_sentence(tmp_path) -> None:
    pytest.importorskip("ray")
    with pytest.raises(SettingsError, match="does not answer"):
        list(run(work, str(tmp_path), BATCHES, lost, 2, "127.0.0.1:9"))
    with pytest.raises(SettingsError, match="none of auto, off and HOST:PORT"):
        list(run(work, str(tmp_path), BATCHES, lost, 2, "nonsense"))
