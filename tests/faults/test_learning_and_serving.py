"""The same faults for what learns and serves: adapt, fleet and serve."""

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import evband
from drives import made_up_trip, small_model
from evband.live.states import STATES
from faults.machine import EVBAND, TIMES, begin, files, leftovers, one_sentence, ordinary, room, run
from faults.serving import Server
from live_cars import Stepped, config

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")
CARS = ("a", "b", "c")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    (folder / "logs").mkdir()
    evband.start("Nissan Leaf 40 kWh").save(folder / "leaf.evband")
    small_model().save(folder / "car.evband")
    for number, car in enumerate(CARS):
        drives = [made_up_trip(f"{car}{i}", 400, 10 * number + i).table.with_columns(trip_id=pl.lit(f"{car}{i}")) for i in range(2)]  # fmt: skip
        pl.concat(drives).with_columns(vehicle_id=pl.lit(car)).write_parquet(folder / "logs" / f"{car}.parquet")
    (folder / "own").mkdir()
    pl.concat(drives).write_parquet(folder / "own" / "drives.parquet")
    return folder


@pytest.fixture(scope="module")
def words(folder):
    """Command and its output, each of which ends as the same bytes whenever it is run."""
    logs, sizes = folder / "logs", ("--mass-kg", "1600", "--cda-m2", "0.65")
    return {
        "adapt": ("adapt", folder / "leaf.evband", folder / "own" / "drives.parquet", "-o", "out"),
        "fleet": ("fleet", "fit", logs, *sizes, "-o", "out"),
    }


@pytest.fixture(scope="module")
def wanted(words, tmp_path_factory):
    """What an unbroken run leaves."""
    found = {}
    for name, command in words.items():
        place = tmp_path_factory.mktemp(name)
        done = run(*command, cwd=place)
        assert done.returncode == 0, done.stderr
        found[name] = files(place)
    return found


def same(found, wanted):
    """Equal bytes; a model's weights, where its file also holds what it was made with."""
    assert sorted(found) == sorted(wanted)
    for name, data in wanted.items():
        assert found[name] == data or name == "out/report.html", name


@pytest.mark.parametrize("name", ["adapt", "fleet"])
def test_kill_9_loses_nothing_that_was_finished_and_the_next_run_ends_the_same(words, wanted, tmp_path, name):
    for number in range(TIMES):
        place = tmp_path / str(number)
        place.mkdir()
        child = begin(*words[name], cwd=place)
        time.sleep(random.Random(number).uniform(0.5, 4.0))
        child.kill()
        child.wait(60)
        for path, data in files(place).items():
            assert path.rpartition("/")[2].startswith(".") or data == wanted[name][path], path
        assert run(*words[name], cwd=place).returncode == 0
        same({p: d for p, d in files(place).items() if not p.rpartition("/")[2].startswith(".")}, wanted[name])


@pytest.mark.parametrize("name", ["adapt", "fleet"])
def test_a_full_disk_is_one_sentence_and_the_next_run_ends_the_same(words, wanted, tmp_path, name):
    for number in range(TIMES):
        place = tmp_path / str(number)
        place.mkdir()
        done = run(*words[name], cwd=place, preexec_fn=room(random.Random(number).randrange(100, 2000)))
        one_sentence(done)
        assert not [p for p in files(place) if p.rpartition("/")[2].startswith(".")]
        assert run(*words[name], cwd=place).returncode == 0
        same(files(place), wanted[name])


def test_closed_places_are_one_sentence(folder, words, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for command in words.values():
        one_sentence(run(*command[:-1], closed / "out", cwd=folder, preexec_fn=ordinary))
    one_sentence(run("start", "Nissan Leaf 40 kWh", "-o", closed / "x.evband", cwd=folder, preexec_fn=ordinary))
    hidden = tmp_path / "hidden.evband"
    hidden.write_bytes((folder / "leaf.evband").read_bytes())
    hidden.chmod(0)
    done = run("info", hidden, cwd=folder, preexec_fn=ordinary)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    settings = tmp_path / "serve.toml"
    for section in ('[store]\npath = "closed/s.sqlite"', '[server]\nrecord = "closed/r.jsonl"'):
        settings.write_text(f'{section}\n[[car]]\nid = "a"\nmodel = "{folder / "car.evband"}"\n')
        one_sentence(run("serve", settings, cwd=tmp_path, preexec_fn=ordinary))


@pytest.mark.parametrize("name", ["adapt", "fleet"])
def test_two_processes_on_one_output_leave_one_whole_result(words, wanted, tmp_path, name):
    children = [begin(*words[name], cwd=tmp_path) for _ in range(2)]
    assert [child.wait(300) for child in children] == [0, 0]
    same(files(tmp_path), wanted[name])


def test_a_reader_that_goes_away_is_not_an_error(folder):
    for command in (("info", folder / "leaf.evband"), ("vehicles",), ("inspect", folder / "own" / "drives.parquet")):
        with subprocess.Popen([*EVBAND, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            child.stdout.close()
            assert b"Traceback" not in child.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_service_that_is_ended_keeps_its_drives_and_goes_on(folder, tmp_path, number):
    server = Server(folder, tmp_path)
    server.drive(0, 60)
    before = server.wait(server.kept)
    time.sleep(2.5)  # the store writes every second
    status = server.end(number)
    assert status in ((0, -signal.SIGTERM) if number == signal.SIGTERM else (-signal.SIGKILL,))
    with sqlite3.connect(tmp_path / "s.sqlite") as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    again = Server(folder, tmp_path)
    assert [trip["began"] for trip in again.wait(again.kept)] == [trip["began"] for trip in before]
    again.end(signal.SIGTERM)


def test_a_service_on_a_full_disk_goes_on_answering(folder, tmp_path):
    server = Server(folder, tmp_path, preexec_fn=room(100_000))
    for part in range(3):
        server.drive(60 * part, 60)
    server.end(signal.SIGTERM)
    with sqlite3.connect(tmp_path / "s.sqlite") as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_port_that_is_taken_is_one_sentence(folder, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        (tmp_path / "serve.toml").write_text(f'[[car]]\nid = "a"\nmodel = "{folder / "car.evband"}"\n')
        done = run("serve", "serve.toml", "--port", taken.getsockname()[1], cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "evband: error:" in done.stderr


def test_a_services_clock_may_jump(tmp_path):
    one = Stepped(config(tmp_path, {"a": {"calibrate": False}}))
    for jump in (1.0, -3600.0, 1.0, 86400.0 * 400, 1.0, -86400.0 * 500, 0.0, 1.0):
        for _ in range(5):
            one.put("a", one.now, speed_kmh=50.0, power_kw=8.0, soc_pct=50.0)
            one.step(1.0)
        one.step(jump)
        state = json.loads(one.service.latest["a"], parse_constant=pytest.fail)
        assert state["state"] in STATES
    assert np.isfinite(one.service.step_s)
    one.service.stop()
    assert leftovers(tmp_path, set(os.listdir(tmp_path))) == []


def test_a_fleet_on_a_full_disk_does_not_pass_over_it(words, tmp_path):
    """Not as a warning about each car, and not where only the prior has no room."""
    for size in (10_000, 500_000):
        done = run(*words["fleet"], cwd=tmp_path, preexec_fn=room(size))
        one_sentence(done)
        assert "the disk is full" in done.stderr
