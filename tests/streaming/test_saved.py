"""A state file goes on as before or is refused in one sentence; nothing in between."""

import contextlib
import copy
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from drives import made_up_trip, small_model
from evband.errors import SettingsError
from evband.streaming import LineStream
from evband.streaming.pump import keep, pump, resume


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def state(model):
    stream = LineStream(model, adapt=True)
    for row in made_up_trip("x", 100, 5).table.iter_rows(named=True):
        stream.line(json.dumps(row))
    return json.loads(json.dumps(stream.to_dict()))


def places(value, path=()):
    """Every place in a JSON object, containers too."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items)[:6]:
        yield from places(item, (*path, key))


def changed(state, path, value):
    state = copy.deepcopy(state)
    inner = state
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return state


def test_a_state_is_taken_as_it_was_kept(model, state):
    stream = LineStream(model, adapt=True)
    stream.restore(state)
    assert json.loads(json.dumps(stream.to_dict())) == state


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -1e18, 1e300, "x", None, [], {}, True, -1, [[0]], 10**400]
)
def test_no_value_anywhere_makes_it_crash_hang_or_answer_what_is_not_finite(model, state, value):
    line = json.dumps({"utc": state["time"] + 1.0, "speed": 50, "power": 8, "elevation": 200})
    for path in places(state):
        stream = LineStream(model, adapt=True)
        started = time.monotonic()
        with contextlib.suppress(SettingsError):
            stream.restore(changed(state, path, value))
            answer = json.loads(stream.line(line), parse_constant=pytest.fail)
            assert "error" not in answer, path
        assert time.monotonic() - started < 5, path


@pytest.mark.parametrize(
    ("path", "value"),
    [(("bins", "open"), -(10**18)), (("bins", "origin"), 0.5e12), (("past", "bb"), -1.0), (("km",), float("nan")),
     (("stream", "features", "w"), -1.0), (("shown",), {}), (("members_kwh",), [0.0])],
)  # fmt: skip
def test_what_would_hang_or_answer_nonsense_is_refused(model, state, path, value):
    with pytest.raises(SettingsError, match="damaged"):
        LineStream(model, adapt=True).restore(changed(state, path, value))


def test_a_state_that_cannot_be_written_is_noticed_before_the_first_line(model, tmp_path):
    class Untouched:
        def readline(self, most):
            pytest.fail("a line was read")

    with pytest.raises(SettingsError, match="does not exist"):
        pump(LineStream(model), Untouched(), sys.stdout, tmp_path / "nowhere" / "state.json")


def test_a_state_file_too_large_is_not_read(model, tmp_path, monkeypatch):
    monkeypatch.setattr("evband.streaming.pump.MOST_STATE", 100)
    keep(LineStream(model), tmp_path / "state.json")
    with pytest.raises(SettingsError, match="more than"):
        resume(LineStream(model), tmp_path / "state.json")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_keeps_the_state_of_whole_lines(model, tmp_path, name):
    number = getattr(signal, name)
    model.save(tmp_path / "car.evband")
    command = [sys.executable, "-m", "evband", "stream", "car.evband", "--state", "state.json"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env=os.environ
    ) as child:
        for i in range(20):
            child.stdin.write(json.dumps({"utc": i, "speed": 30 + i}).encode() + b"\n")
        child.stdin.flush()
        answers = [child.stdout.readline() for _ in range(20)]
        child.send_signal(number)
        child.stdin.close()
        assert child.wait(60) in (128 + number, 0)  # 0 where the input ended first
    assert len(answers) == 20
    assert json.loads((tmp_path / "state.json").read_text())["lines"] == 20
