"""`import evband` is light."""

import subprocess
import sys

import pytest

import evband


def test_import_touches_no_heavy_module():
    code = "import evband, evband.cli, sys; print([m for m in ('torch', 'polars', 'numba', 'scipy', 'sklearn') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_inspect_needs_no_compiler(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("time_s,speed_kmh\n" + "".join(f"{t},{30 + t % 7}\n" for t in range(99)))
    code = "import sys; from evband.cli import command_line; command_line()(['inspect', sys.argv[1]], standalone_mode=False); print([m for m in ('numba', 'scipy.special') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code, log], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "[]"


def test_public_names_resolve_and_others_do_not():
    for name in evband.__all__:
        assert name in dir(evband)
        assert getattr(evband, name) is not None
    with pytest.raises(AttributeError, match="nothing_here"):
        evband.nothing_here  # noqa: B018


def test_python_m_evband_is_the_command():
    shown = subprocess.run([sys.executable, "-m", "evband", "--help"], capture_output=True, text=True, check=True)
    assert "inspect" in shown.stdout
