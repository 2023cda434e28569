"""Machines die: kills, full disks, read-only places, no home, broken pipes, clocks that jump, two processes on one output.

Nothing finished is lost, nothing half-written is left, and the next run ends as it would have. `EVBAND_FAULTS=100` repeats what is random.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from drives import made_up_trips, small_model
from evband.model import load
from evband.streaming import LineStream
from faults.machine import EVBAND, TIMES, leftovers, one_sentence, ordinary, room, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")
LINES = [json.dumps({"utc": 1.7e9 + i, "speed": 30 + i % 40, "elevation": 200 + i % 9, "power": 8}) for i in range(400)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    small_model().save(folder / "car.evband")
    made_up_trips(4, 200).to_polars().write_parquet(folder / "trips.parquet")
    return folder


def test_kill_9_of_a_stream_loses_at_most_what_came_since_the_last_kept_state(folder, tmp_path, monkeypatch):
    for number in range(TIMES):
        state = tmp_path / f"state{number}.json"
        command = [*EVBAND, "stream", str(folder / "car.evband"), "--state", str(state)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as child:
            sent = random.Random(number).randrange(5, 200)
            child.stdin.write(("\n".join(LINES[:sent]) + "\n").encode())
            child.stdin.flush()
            for _ in range(sent):
                child.stdout.readline()
            child.kill()
        kept = json.loads(state.read_text())  # whole, whenever it was killed
        stream = LineStream(load(folder / "car.evband"))
        stream.restore(kept)
        assert "mean_kw" in json.loads(stream.line(LINES[sent]))
        assert not [
            name
            for name in os.listdir(tmp_path)
            if name.startswith(f".state{number}") and Path(name).stat().st_size == 0
        ]


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGKILL"])
def test_a_killed_convert_leaves_the_old_output_or_the_new_one(folder, tmp_path, signal_name):
    output = tmp_path / "out.parquet"
    output.write_bytes(b"what was there before")
    for number in range(TIMES):
        child = subprocess.Popen([*EVBAND, "convert", str(folder / "trips.parquet"), "-o", str(output), "--hz", "1"])
        time.sleep(random.Random(number).uniform(0.05, 2.0))
        child.send_signal(getattr(signal, signal_name))
        child.wait(60)
        data = output.read_bytes()
        assert data == b"what was there before" or pl.read_parquet(output).height > 100


@pytest.mark.parametrize(
    "words",
    [("convert", "trips.parquet", "-o", "OUT.parquet"), ("convert", "trips.parquet", "-o", "OUT.csv"), ("predict", "car.evband", "trips.parquet", "-o", "OUT.parquet")],
)  # fmt: skip
def test_a_disk_that_fills_up_leaves_nothing_and_is_one_sentence(folder, words):
    before = set(os.listdir(folder))
    for number in range(TIMES):
        limited = room(random.Random(number).randrange(100, 4000))
        done = run(*words, cwd=folder, preexec_fn=limited, env=os.environ | {"NUMBA_CACHE_DIR": "/nonexistent"})
        one_sentence(done)
        assert leftovers(folder, before) == []


def test_a_full_disk_under_a_streams_state_is_one_sentence_and_keeps_the_old_state(folder, tmp_path):
    state = tmp_path / "state.json"
    run("stream", folder / "car.evband", "--state", state, cwd=tmp_path, input=LINES[0] + "\n")
    old = state.read_text()
    done = run(
        "stream", folder / "car.evband", "--state", state, cwd=tmp_path, input=LINES[1] + "\n", preexec_fn=room(500)
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert state.read_text() == old


def test_read_only_places_are_one_sentence(folder, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    trips, state = folder / "trips.parquet", closed / "s.json"
    one_sentence(run("convert", trips, "-o", closed / "out.csv", cwd=folder, preexec_fn=ordinary))
    one_sentence(run("stream", folder / "car.evband", "--state", state, cwd=folder, input="", preexec_fn=ordinary))


def test_without_a_home_or_a_temporary_folder_it_still_predicts(folder, tmp_path):
    bare = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "PYTHONPATH", "OMP_NUM_THREADS", "LD_LIBRARY_PATH")
    }
    done = run(
        "predict",
        folder / "car.evband",
        folder / "trips.parquet",
        "-o",
        tmp_path / "bands.parquet",
        cwd=tmp_path,
        env=bare | {"HOME": "/nonexistent"},
    )
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(tmp_path / "bands.parquet")["mean_kw"].is_finite().all()


def test_a_reader_that_goes_away_ends_the_stream_and_keeps_its_state(folder, tmp_path):
    state = tmp_path / "state.json"
    command = [*EVBAND, "stream", str(folder / "car.evband"), "--state", str(state)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdin.write((LINES[0] + "\n").encode())
    child.stdin.flush()
    child.stdout.readline()
    child.stdout.close()
    try:
        child.stdin.write(("\n".join(LINES[1:]) + "\n").encode())
        child.stdin.close()
    except BrokenPipeError:
        pass
    assert child.wait(60) == 0
    assert b"Traceback" not in child.stderr.read()
    assert json.loads(state.read_text())["lines"] >= 1
    child.stderr.close()


def test_clocks_that_jump_and_stand_still_stay_answered(folder):
    stream = LineStream(load(folder / "car.evband"), adapt=True)
    times = [1.7e9, 1.7e9 + 1, 1.7e9 - 3600, 0.0, 1e12, -5.0, 1.7e9 + 2, 1.7e9 + 2, 1e300, 1.7e9 + 1e6, 1.7e12]
    for when in times:
        answer = json.loads(stream.line(json.dumps({"utc": when, "speed": 50, "power": 8})), parse_constant=pytest.fail)
        assert "held" in answer


def test_two_processes_on_one_output_leave_one_whole_file(folder, tmp_path):
    output = tmp_path / "out.parquet"
    children = [
        subprocess.Popen([*EVBAND, "convert", str(folder / "trips.parquet"), "-o", str(output), "--hz", hz])
        for hz in ("1", "0.5")
    ]
    assert [child.wait(120) for child in children] == [0, 0]
    assert pl.read_parquet(output).height > 50
    assert os.listdir(tmp_path) == ["out.parquet"]


def test_sigterm_of_a_fit_keeps_finished_epochs_and_resume_goes_on(folder, tmp_path):
    words = [
        "fit",
        str(folder / "trips.parquet"),
        "-o",
        "car.evband",
        "--members",
        "2",
        "--epochs",
        "400",
        "--device",
        "cpu",
        "--no-calibrate",
    ]
    child = subprocess.Popen([*EVBAND, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if (tmp_path / "car.evband.checkpoint").exists() or child.poll() is not None:
            break
        time.sleep(0.1)
    child.terminate()
    child.wait(60)
    if child.returncode == 0:
        pytest.skip("it was done before it could be stopped")
    assert (tmp_path / "car.evband.checkpoint").exists()
    assert not (tmp_path / "car.evband").exists()
