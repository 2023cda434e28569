"""A library that crashes takes its own process with it, not ours."""

from pathlib import Path

import numpy as np
import pytest

from evband.errors import LogError, SettingsError
from evband.logs.formats import apart
from evband.trips.readings import ReadOptions

READER = """
import os
import numpy as np
from evband.errors import SettingsError
from evband.trips.readings import Readings

def parse(path, data, options):
    if data == b"crash":
        os.abort()
    while data == b"hang":
        pass
    if data == b"refuse":
        raise SettingsError(f"{path}: {options.map['a']} is wrong; correct it.")
    return [Readings("a", {"speed_kmh": (np.arange(3.0), np.frombuffer(data, np.uint8) * 1.0)}, "made up", ("a note",))]
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    (tmp_path / "a_reader.py").write_text(READER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    apart._end()
    yield lambda data: apart.read_apart("a_reader", Path("x.mf4"), data, ReadOptions(map={"a": "b"}))
    apart._end()


def test_a_crash_is_one_sentence_and_the_next_file_is_read(read):
    for _ in range(2):
        with pytest.raises(LogError, match=r"^x.mf4: the library that reads such files crashed"):
            read(b"crash")
        (drive,) = read(b"\1\2\3")
        assert (drive.trip_id, drive.format, drive.notes) == ("a", "made up", ("a note",))
        np.testing.assert_array_equal(drive.series["speed_kmh"], [[0, 1, 2], [1, 2, 3]])


def test_a_reader_that_does_not_end_is_ended(read, monkeypatch):
    monkeypatch.setattr(apart, "LEAST_S", 0.1)
    with pytest.raises(LogError, match="took over 0 s"):
        read(b"hang")


def test_an_error_there_is_the_same_error_here(read):
    with pytest.raises(SettingsError, match=r"^x.mf4: b is wrong; correct it.$"):
        read(b"refuse")
