"""Without rights on a read-only root (bubblewrap), and with a disk that is full: the service runs, says what it cannot do, and goes on."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evband.live.run import DEMO
from live_real import Served, wait_for

pytestmark = pytest.mark.live

BWRAP = shutil.which("bwrap")
ROOT = str(Path(__file__).parents[2])  # to be seen in the jail even where it lies under /tmp
SMALL = 1_500_000  # bytes of the disk that fills up


def jailed(folder):
    """Everything read-only but `folder/data`, another user, no capability, no way to gain one; `folder/small` is a small disk."""
    cache = str(folder.parent / "cache")  # compiled code of both tests, as systemd's CacheDirectory
    own = [
        "--bind",
        str(folder / "data"),
        str(folder / "data"),
        "--bind",
        cache,
        cache,
        "--size",
        str(SMALL),
        "--tmpfs",
        str(folder / "small"),
    ]
    return [
        BWRAP, "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--ro-bind", ROOT, ROOT, "--ro-bind", sys.prefix, sys.prefix,
        "--ro-bind", str(folder), str(folder), *own, "--dev", "/dev", "--proc", "/proc",
        "--unshare-user", "--uid", "65534", "--gid", "65534", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL",
        "--new-session", "--die-with-parent", "--setenv", "NUMBA_CACHE_DIR", cache, "--chdir", str(folder),
    ]  # fmt: skip


class Jailed(Served):
    def command(self):
        return [*jailed(self.folder), *super().command()]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path.parent / "cache").mkdir(exist_ok=True)
    (tmp_path / "small").mkdir()
    made = None if BWRAP is None else subprocess.run([*jailed(tmp_path), "true"], capture_output=True)
    if made is None or made.returncode:
        pytest.skip("bubblewrap cannot make a jail here")
    return tmp_path


def config(store):
    car = f'[[car]]\nid = "demo"\nsource = "replay"\nspeed = 20.0\nfile = "{DEMO / "drive.csv"}"\nmodel = "{DEMO / "demo.evband"}"\n'
    return f'{car}capacity_kwh = 60\n[store]\npath = "{store}"\n'


def test_no_rights_and_a_read_only_root(folder):
    wrote = subprocess.run(
        [*jailed(folder), sys.executable, "-c", "open('x', 'w')"], capture_output=True, text=True, check=False
    )
    assert "Read-only file system" in wrote.stderr
    served = Jailed(folder, config("data/s.sqlite"))
    try:
        wait_for(lambda: served.get("/api/cars/demo")["mean_kw"] is not None, 120)
        (trip, *_) = wait_for(lambda: served.get("/api/cars/demo/trips"), 60)
        assert served.get(f"/api/cars/demo/trips/{trip['id']}")["time_s"]
        assert served.get("/healthz") == {"status": "ok", "problems": [], "version": served.get("/healthz")["version"]}
        assert (folder / "data" / "s.sqlite").stat().st_size > 0
    finally:
        served.stop()


def test_a_full_disk_is_said_and_bands_go_on(folder):
    served = Jailed(folder, config("small/s.sqlite"))
    try:
        wait_for(lambda: served.metric("evband_store_lost_total") > 0, 180)
        assert "Nothing is kept" in wait_for(lambda: served.get("/healthz")["problems"])[0]
        bands = served.metric("evband_bands_total")
        wait_for(lambda: served.metric("evband_bands_total") > bands + 20)
        assert served.process.poll() is None
    finally:
        served.stop()
