import os
import stat
import threading
from types import SimpleNamespace

import pytest

from evband import files
from evband.errors import LogError, SettingsError
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


@pytest.mark.parametrize(
    ("said", "free", "says"),
    [
        ("Invalid thrift: transport error", 0, "the disk is full"),
        ("Invalid thrift: transport error", 1 << 30, "could not be written"),
        ("write failed (os error 28)", 1 << 30, "the disk is full"),
    ],
)
def test_what_a_library_makes_of_a_full_disk_is_one_sentence(said, free, says, tmp_path, monkeypatch):
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    with pytest.raises(SettingsError, match=says), whole_file(tmp_path / "a.parquet"):
        raise RuntimeError(said)
    assert os.listdir(tmp_path) == []


def test_a_directory_or_a_missing_one(tmp_path):
    for path, says in ((tmp_path, "directory"), (tmp_path / "no" / "a.txt", "does not exist")):
        with pytest.raises(SettingsError, match=says), whole_file(path):
            pass


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
def test_pipes_and_devices_are_read_only_where_they_end(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE_S", 0.2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(LogError, match="nothing has been written to this pipe"):
        files.read_bounded(pipe, 100, LogError)
    with pytest.raises(LogError, match="it is a device"):
        files.read_bounded("/dev/zero", 100, LogError)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"ab" * 20,))
    writer.start()
    assert files.read_bounded(pipe, 40, LogError) == b"ab" * 20
    writer.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes and links of POSIX")
def test_pipes_are_not_replaced_by_files_and_links_stay_links(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="a device or a pipe"), files.whole_file(tmp_path / "pipe"):
        pass
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with files.whole_file(tmp_path / "link") as path:
        path.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
