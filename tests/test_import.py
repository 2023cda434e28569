"""`import evband` is light."""

import subprocess
import sys

import pytest

import evband


def test_import_touches_no_heavy_module():
    code = "import evband, evband.cli, sys; print([m for m in ('torch', 'polars', 'numba', 'scipy', 'sklearn') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_public_names_resolve_and_others_do_not():
    for name in evband.__all__:
        assert name in dir(evband)
        assert getattr(evband, name) is not None
    with pytest.raises(AttributeError, match="nothing_here"):
        evband.nothing_here  # noqa: B018


def test_python_m_evband_is_the_command():
    shown = subprocess.run([sys.executable, "-m", "evband", "--help"], capture_output=True, text=True, check=True)
    assert "inspect" in shown.stdout
