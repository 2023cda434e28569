import os
import stat

import pytest

from evband.errors import SettingsError
from evband.files import whole_file


def test_a_file_appears_whole_with_usual_permissions(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path) as temporary:
        temporary.write_text("done")
        assert not path.exists()
        assert temporary.parent == tmp_path
    assert path.read_text() == "done"
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    assert os.listdir(tmp_path) == ["a.txt"]


def test_nothing_is_left_after_any_failure(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")

    def fail():
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise ValueError("broken off")

    with pytest.raises(ValueError, match="broken off"):
        fail()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_directory_or_a_missing_one(tmp_path):
    for path, says in ((tmp_path, "directory"), (tmp_path / "no" / "a.txt", "does not exist")):
        with pytest.raises(SettingsError, match=says), whole_file(path):
            pass
