"""A cache of compiled code helps where it can and never stands in the way."""

import importlib.util
import sys

import numpy as np
import pytest
from numba.core import caching

SOURCE = """
from evband.compiled import compiled


@compiled()
def twice(x):
    return 2.0 * x
"""


@pytest.fixture
def module(tmp_path):
    """Import the same file as often as one likes, each time as a new process would."""
    path = tmp_path / "somewhere.py"
    path.write_text(SOURCE)

    def load():
        spec = importlib.util.spec_from_file_location("somewhere", path)
        made = importlib.util.module_from_spec(spec)
        sys.modules["somewhere"] = made
        spec.loader.exec_module(made)
        return made

    yield load
    sys.modules.pop("somewhere", None)


def test_code_is_kept_and_found_again(module):
    assert module().twice(3.0) == 6.0
    again = module().twice
    assert again(3.0) == 6.0
    assert sum(again.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("length", [0, 20])
def test_files_cut_short_are_compiled_anew(module, tmp_path, kind, length):
    module().twice(3.0)
    (kept,) = tmp_path.rglob(f"*.{kind}")
    kept.write_bytes(kept.read_bytes()[:length])
    assert module().twice(4.0) == 8.0
    healed = module().twice
    assert healed(5.0) == 10.0
    assert sum(healed.stats.cache_hits.values()) == 1


def test_without_any_place_for_a_cache_code_still_runs(module, monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert module().twice(np.float64(3.0)) == 6.0


def test_a_disk_that_fills_up_is_no_error(module, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_index", full)
    assert module().twice(3.0) == 6.0
