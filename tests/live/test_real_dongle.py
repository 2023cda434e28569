"""An emulated dongle on a pty: a drive read, pulled out and plugged in again, and agreement with python-OBD on 1,000 questions."""

import json
import subprocess
import time
from contextlib import contextmanager

import pytest

from evband.live.config import Car
from evband.live.sources.elm327 import Dongle
from evband.live.sources.elm_protocol import Adapter
from live_real import PARTS, ROOT, wait_for

pytestmark = pytest.mark.live

PYTHON = PARTS / "python"
SCRIPT = ROOT / "tests" / "elm_emulated.py"
SPEEDS = [*range(0, 120, 2), *range(120, 0, -3)]
STEADY = ("0100", "0101", "0121", "0146", "0902", "0904", "010D", "0133", "0130", "0142")


@contextmanager
def dongle(folder, port):
    """An emulated dongle behind the name `port`, which outlives it as a plug outlives a cable."""
    (folder / "speeds.json").write_text(json.dumps(SPEEDS))
    process = subprocess.Popen(
        [PYTHON, SCRIPT, "drive", folder / "speeds.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,  # the emulator writes a log where it stands
    )
    try:
        port.unlink(missing_ok=True)
        port.symlink_to(process.stdout.readline().strip())
        yield
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def test_a_drive_is_read_and_the_dongle_may_be_pulled_out(tmp_path):
    port, found = tmp_path / "dongle", []
    with dongle(tmp_path, port):
        feed = Dongle(
            Car(id="c", model="m", source="elm327", port=str(port)), lambda r: found.append((time.monotonic(), r))
        )
        feed.start()
        cycle = len(SPEEDS) * 0.25
        wait_for(lambda: found and time.monotonic() - found[0][0] > cycle + 2.0, 60)
        speeds = [r.value for _, r in found if r.channel == "speed_kmh"]
        assert set(map(float, SPEEDS)) <= set(speeds)  # every speed that was driven arrived
        assert {r.value for _, r in found if r.channel == "ambient_temp_c"} == {20.0}
    wait_for(lambda: feed.problem, 20)
    time.sleep(5.0)
    before = len(found)
    with dongle(tmp_path, port):
        back = time.monotonic()
        wait_for(lambda: len(found) > before, 20)
        assert time.monotonic() - back < 10.0
        assert feed.problem is None
        feed.stop()
        time.sleep(0.5)


def test_own_client_agrees_with_python_obd(tmp_path):
    port = tmp_path / "dongle"
    with dongle(tmp_path, port):
        with Adapter(str(port)) as adapter:
            once = {command: adapter.ask(command) for command in STEADY}
            steady = [
                c for c in STEADY if c != "010D" and once[c] is not None and adapter.ask(c) == once[c] == adapter.ask(c)
            ]
            assert len(steady) >= 4
            commands = (steady * 300)[:1000]
            ours = [adapter.ask(command) for command in commands]
        oracle = subprocess.run(
            [PYTHON, SCRIPT, "ask", port.resolve(), *commands],
            capture_output=True,
            text=True,
            timeout=240,
            cwd=tmp_path,
        )
        theirs = [bytes.fromhex(json.loads(line)) for line in oracle.stdout.splitlines()]
    assert len(ours) == len(theirs) == 1000
    for command, mine, other in zip(commands, ours, theirs, strict=True):
        echo = bytes([int(command[:2], 16) + 0x40]) + bytes.fromhex(command[2:])
        assert echo + mine == other, command
