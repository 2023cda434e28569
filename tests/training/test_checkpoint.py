"""A run that is interrupted or killed goes on to the same end result, to the bit."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from evband.network.architecture import Architecture
from evband.settings import Settings
from evband.training.checkpoint import Checkpoint, CheckpointMismatch
from evband.training.loop import Trainer, run
from evband.training.windows import Segments
from tiny_car import arrays, dropping, members

ARCH = Architecture(inputs=2, road=2, hidden=8)


def trainer(epochs=6, seed=0, dropout=0.1, trip_effect=0.0, gaps=False):
    settings = Settings(epochs=epochs, window=32, burn_in=8, batch=2, **dropping(dropout), seed=seed)
    plan = [replace(m, trip_effect=trip_effect) for m in members(ARCH, 3)]
    data = arrays(np.random.default_rng(0))
    if gaps:  # short segments share windows
        data = replace(data, start=data.start | (np.arange(len(data.start)) % 13 == 0))
    made = Trainer(ARCH, data, plan, settings)
    made.checks = epochs
    return made


def resumed(path, **how):
    t = trainer(**how)
    assert Checkpoint(path, resume=True).restore(t)
    return t


@pytest.mark.parametrize("at", ["between epochs", "inside an epoch"])
def test_ctrl_c_keeps_finished_epochs(tmp_path, at):
    straight = trainer()
    expected = run(straight)
    t, path = trainer(), tmp_path / "run.checkpoint"
    steps, plain = [], t.step_once

    def step():
        steps.append(0)
        if at == "inside an epoch" and len(steps) == 3 * t.steps + 2:
            raise KeyboardInterrupt
        plain()

    def stop(progress):
        if at == "between epochs" and progress.epoch == 3:
            raise KeyboardInterrupt

    t.step_once = step
    with pytest.raises(KeyboardInterrupt):
        run(t, stop, Checkpoint(path, resume=False, every_s=1e9))
    second = resumed(path)
    assert second.state.epoch == 3
    assert torch.equal(run(second), expected)
    assert second.state.history == straight.state.history


def test_kill_9_then_resume_is_bit_equal(tmp_path):
    path = tmp_path / "run.checkpoint"
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from test_checkpoint import trainer\n"
        "from evband.training.checkpoint import Checkpoint\n"
        "from evband.training.loop import run\n"
        "run(trainer(epochs=5000), None, Checkpoint(Path(sys.argv[1]), resume=False, every_s=0.0))\n"
    )
    here = os.path.dirname(__file__)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(here), *sys.path])}
    child = subprocess.Popen([sys.executable, "-c", code, str(path), here], env=env)
    for _ in range(2000):
        if path.exists() or child.poll() is not None:
            break
        time.sleep(0.05)
    time.sleep(0.1)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    t = resumed(path, epochs=5000)
    done = t.state.epoch
    straight = trainer(epochs=5000)
    for _ in range(done):
        straight.epoch()
        straight.check()
    assert torch.equal(t.theta, straight.theta)
    assert torch.equal(t.state.best, straight.state.best)
    t.epoch(), straight.epoch()
    assert torch.equal(t.theta, straight.theta)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    checkpoint = Checkpoint(path, resume=True)
    t = trainer()
    assert not checkpoint.restore(t)  # there is none yet
    t.epoch()
    checkpoint.save(t)
    checkpoint.flush()
    assert not Checkpoint(path, resume=False).restore(trainer())
    with pytest.raises(CheckpointMismatch, match="another run"):
        Checkpoint(path, resume=True).restore(trainer(seed=1))
    with pytest.raises(CheckpointMismatch, match="another run"):
        Checkpoint(path, resume=True).restore(trainer(trip_effect=0.5))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(CheckpointMismatch, match="not a readable checkpoint"):
        Checkpoint(path, resume=True).restore(trainer())
    checkpoint.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_a_gapped_log_goes_on_unless_its_windows_were_cut_by_another_rule(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"

    def stopped(made):
        made.epoch()
        checkpoint = Checkpoint(path, resume=True)
        checkpoint.save(made)
        checkpoint.flush()

    t = trainer(gaps=True)
    assert t.train_segments[0].few
    stopped(t)
    assert torch.equal(resumed(path, gaps=True).theta, t.theta)
    with monkeypatch.context() as older:  # a first window of any length, in a log full of gaps, too
        older.setattr(Segments, "leads", lambda self, window, burn_in: np.full(len(self.length), max(burn_in, 1)))
        stopped(trainer(gaps=True))
    with pytest.raises(CheckpointMismatch, match=r"another run .*version"):
        resumed(path, gaps=True)


def test_a_checkpoint_is_written_now_and_then_only(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", resume=False, every_s=1e9)
    t = trainer()
    t.epoch()
    checkpoint.save(t)
    assert not checkpoint.path.exists()
    checkpoint.flush()
    assert checkpoint.path.exists()
