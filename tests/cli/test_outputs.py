"""Outputs that are inputs, and words that are no command line: one sentence, and nothing is written."""

import os

import pytest

from drives import made_up_trip
from evband.cli import run


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_up_trip("a", 60, 1).table.write_csv("drive.csv")
    os.link("drive.csv", "linked.csv")
    return (tmp_path / "drive.csv").read_bytes()


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "drive.csv", "-o", "drive.csv"),
        ("convert", "*ive.csv", "-o", "./drive.csv"),
        ("convert", "drive.csv", "-o", "linked.csv"),
        ("inspect", "drive.csv", "--write-map", "drive.csv"),
        ("fit", "drive.csv", "-o", "drive.csv"),
        ("route", "drive.csv", "-o", "drive.csv"),
    ],
)
def test_a_command_does_not_write_over_what_it_reads(log, tmp_path, capsys, words):
    assert run(list(words)) == 2
    assert "is read by this command, so it is not written over" in capsys.readouterr().err
    assert (tmp_path / "drive.csv").read_bytes() == log


def test_another_output_may_be_written_again(log):
    assert [run(["convert", "drive.csv", "-o", "out.csv"]) for _ in range(2)] == [0, 0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["convert", "drive.csv", "-o", "x.csv", "--hz", "fast"], "--hz"),
        (["range"], "evband range --help"),
        (["ranges"], "evband --help"),
        (["fleet", "fit", "x", "-o", "y", "--workers", "0"], "--workers"),
        (["convert", "drive.csv", "--nothing" * 200], "--help"),
    ],
)
def test_words_that_are_wrong_are_one_line(log, capsys, words, says):
    assert run(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("evband: error: ")
    assert says in line
    assert len(line) <= 420
