"""Bad input ends with exit status 2, one sentence, and nothing half-written."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

DRIVE = "time_s,speed_kmh,power_kw\n" + "".join(f"{i},{30 + i % 7},{5 + i % 3}\n" for i in range(40))


@pytest.fixture
def run(call, monkeypatch, tmp_path):
    """In a directory of its own."""
    monkeypatch.chdir(tmp_path)
    return call


def write(name, content):
    with open(name, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def is_one_sentence(err):
    assert err.startswith("evband: error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"  \n\n", "empty"),
        (bytes(range(256)) * 40, "binary"),
        ("once upon a time\nthere was a car\n", 'no reader knows this file, which begins "once upon a time"'),
        ("time_s;power_kw\n0;1\n1;2\n", "separated by ';'"),
        ("time_s,velocity\n0,1\n1,2\n", "nearest"),
        ("time_s,speed_kmh\n5,1\n1,2\n", "backwards"),
        ("time_s,speed_kmh\n0,\n1,\n", "missing"),
        ("time_s,speed_kmh\n", "no rows"),
        ("time_s,speed_kmh\n0,999\n1,999\n", "outside -30..350"),
        ("time_s|speed_kmh\n0|1\n1|2\n", "separated by '|'"),
        (b"PAR1 cut short", "cannot be parsed"),
    ],
)
def test_bad_logs(run, content, says):
    write("log.csv", content)
    for words in (("inspect", "log.csv"), ("convert", "log.csv", "-o", "out.parquet")):
        status, out, err = run(*words)
        assert status == 2
        assert out == ""
        assert says in err
        assert "log.csv" in err
        is_one_sentence(err)
    assert os.listdir() == ["log.csv"]


def test_bad_paths(run):
    os.mkdir("logs")
    for source, says in (("logs", "directory"), ("nothing.csv", "no such file"), ("*.csv", "no file matches")):
        status, _, err = run("inspect", source)
        assert status == 2
        assert says in err
        is_one_sentence(err)


def test_no_permission_to_read(run, monkeypatch):
    write("log.csv", DRIVE)
    monkeypatch.setattr("pathlib.Path.open", _raise(PermissionError(errno.EACCES, "Permission denied")))
    status, _, err = run("inspect", "log.csv")
    assert status == 2
    assert "permission" in err


def test_a_directory_that_may_not_be_looked_into_and_names_too_long(run, monkeypatch):
    write("log.csv", DRIVE)
    long = "x" * 300 + ".csv"
    for words in (("inspect", long), ("convert", "log.csv", "-o", long)):
        status, _, err = run(*words)
        assert status == 2
        is_one_sentence(err)
    monkeypatch.setattr("os.stat", _raise(PermissionError(errno.EACCES, "Permission denied")))
    monkeypatch.setattr("pathlib.Path.stat", _raise(PermissionError(errno.EACCES, "Permission denied")))
    monkeypatch.setattr("pathlib.Path.open", _raise(PermissionError(errno.EACCES, "Permission denied")))
    status, _, err = run("inspect", "closed/log.csv")
    assert status == 2
    assert "permission" in err
    is_one_sentence(err)


def _raise(error):
    def raiser(*args, **kwargs):
        raise error

    return raiser


def _os_error(code):
    return OSError(code, os.strerror(code))


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (_os_error(errno.ENOSPC), "disk is full"),
        (
            pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)"),
            "disk is full",
        ),
        (_os_error(errno.EACCES), "permission"),
        (_os_error(errno.EIO), "could not"),
    ],
)
def test_nothing_is_left_when_writing_fails(run, monkeypatch, error, says):
    write("log.csv", DRIVE)
    write("out.parquet", "what was there before")
    monkeypatch.setattr(pl.DataFrame, "write_parquet", _half_written(error))
    status, _, err = run("convert", "log.csv", "-o", "out.parquet")
    assert status == 2
    assert says in err
    is_one_sentence(err)
    assert sorted(os.listdir()) == ["log.csv", "out.parquet"]
    assert Path("out.parquet").read_text() == "what was there before"


def _half_written(error):
    def writer(frame, path):
        write(path, "half")
        raise error

    return writer


@pytest.mark.parametrize(
    ("out", "says"), [("out.xlsx", "must end in"), ("nowhere/out.csv", "does not exist"), ("here.csv", "directory")]
)
def test_bad_output_names(run, out, says):
    write("log.csv", DRIVE)
    os.mkdir("here.csv")
    status, _, err = run("convert", "log.csv", "-o", out)
    assert status == 2
    assert says in err


def test_logs_of_different_rate_need_a_grid(run):
    write("slow.csv", DRIVE)
    rows = "".join(f"{i / 10},{i % 50}\n" for i in range(400))
    write("fast.csv", "time_s,speed_kmh\n" + rows)
    status, _, err = run("convert", "slow.csv", "fast.csv", "-o", "out.parquet")
    assert status == 2
    assert "--hz" in err
    assert not os.path.exists("out.parquet")
    status, out, _ = run("convert", "slow.csv", "fast.csv", "-o", "out.parquet", "--hz", "1")
    assert status == 0
    assert "2 trips" in out
    assert set(pl.read_parquet("out.parquet")["trip_id"]) == {"slow", "fast"}


def test_inspect_json(run):
    write("log.csv", DRIVE)
    status, out, _ = run("inspect", "log.csv", "--json")
    assert status == 0
    (trip,) = json.loads(out)
    assert trip["trip_id"] == "log"
    assert trip["rate_hz"] == pytest.approx(1.0)
    assert [c["name"] for c in trip["channels"]] == ["speed_kmh", "power_kw"]
    assert trip["findings"] == []


def test_inspect_shows_findings_in_the_units_asked_for(run):
    rng = np.random.default_rng(0)
    time = np.arange(3600)
    amps = np.where(time == 1800, -655.36, rng.normal(20, 5, 3600))
    frame = pl.DataFrame({"time_s": time, "speed_kmh": rng.uniform(89, 91, 3600), "battery_current_a": amps})
    frame.write_parquet("log.parquet")
    status, out, _ = run("inspect", "log.parquet", "--units", "mi")
    assert status == 0
    assert "55.9" in out
    assert "mi," in out
    assert "glitch of battery_current_a (dropped)" in out
    _, out, _ = run("inspect", "log.parquet", "--keep", "glitches")
    assert "glitch of battery_current_a (kept)" in out
    _, out, _ = run("inspect", "log.parquet", "--limit", "battery_current_a=-700:700")
    assert "glitch" not in out


@pytest.mark.parametrize(
    "option", [("--limit", "speed_kmh"), ("--limit", "speed_kmh=5:1"), ("--limit", "x=1:2"), ("--alias", "speed_kmh")]
)
def test_bad_options(run, option):
    write("log.csv", DRIVE)
    status, _, err = run("inspect", "log.csv", *option)
    assert status == 2
    is_one_sentence(err)


@pytest.mark.parametrize("hz", ["0", "-1", "nan", "1e9"])
def test_a_grid_rate_that_is_none(run, hz):
    write("log.csv", DRIVE)
    status, _, err = run("convert", "log.csv", "-o", "out.csv", "--hz", hz)
    assert status == 2
    is_one_sentence(err)
    assert not os.path.exists("out.csv")


def test_usage_errors_and_help(run):
    assert run("convert", "log.csv")[0] == 2
    assert run("no-such-command")[0] == 2
    status, out, _ = run("--version")
    assert status == 0
    assert out.startswith("evband ")
    assert "inspect" in run("--help")[1]


def test_ctrl_c_is_130(run, monkeypatch):
    monkeypatch.setattr("evband.logs.reading.read_trips", _raise(KeyboardInterrupt()))
    assert run("inspect", "log.csv")[0] == 130


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_behind_the_standard_output(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(DRIVE)
    for words in (["inspect", log], ["inspect", log, "--json"], ["convert", log, "-o", tmp_path / "out.csv"]):
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-c", "import evband.cli; evband.cli.main()", *map(str, words)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2, done.stderr
        is_one_sentence(done.stderr)


def test_a_console_of_an_old_code_page_does_not_stop_it(tmp_path):
    log = tmp_path / "log.csv"
    header = 'time,"Vehicle speed (km/h)","Ambient temperature (℃)","Скорость ветра (м/с)",\n'
    log.write_text(header + "".join(f"12:00:{i:02}.000,{i},{i / 10},1,\n" for i in range(30)), encoding="utf-8")
    for encoding in ("cp1252", "ascii"):
        command = [sys.executable, "-m", "evband", "inspect", str(log)]
        done = subprocess.run(
            command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": f"{encoding}:strict"}, check=False
        )
        assert done.returncode == 0, done.stderr
        assert b"Vehicle speed" in done.stdout


def test_skip_bad_reads_the_rest_and_lists_the_others_at_the_end(run):
    write("good.csv", DRIVE)
    write("bad.csv", "once upon a time\nthere was a car\n")
    write("empty.csv", "")
    status, out, err = run("convert", "*.csv", "-o", "trips.parquet")
    assert status == 2
    is_one_sentence(err)
    status, out, err = run("convert", "*.csv", "-o", "trips.parquet", "--skip-bad")
    assert status == 0
    assert "trips.parquet: 1 trips" in out
    lines = err.splitlines()
    assert lines[0] == "evband: warning: 2 logs were skipped:"
    assert lines[1].startswith("  bad.csv: ")
    assert lines[2] == "  empty.csv: the file is empty; there is no trip in it."
    status, _, err = run("inspect", "bad.csv", "empty.csv", "--skip-bad")
    assert status == 2
    assert err.splitlines()[-1].startswith("evband: error: None of 2 logs can be read; the first error: bad.csv: ")


def test_a_name_of_the_time_column_goes_into_a_map(run):
    write("a.csv", DRIVE)
    status, _, err = run("inspect", "a.csv", "--alias", "time_s=Zeit")
    assert status == 2
    assert err == (
        'evband: error: --alias time_s=Zeit: time_s is not a measured channel; write "Zeit" = "time_s" under [columns] in '
        "a TOML file and give it with --map.\n"
    )


def test_json_lines_to_a_file_and_to_standard_output(run):
    write("a.csv", DRIVE)
    status, out, err = run("convert", "a.csv", "-o", "-", "--hz", "1")
    assert status == 0
    assert err.startswith("-: 1 trips")
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows[0]["trip_id"] == "a"
    assert rows[3]["speed_kmh"] is not None
    assert run("convert", "a.csv", "-o", "a.jsonl", "--hz", "1")[0] == 0
    assert [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()] == rows


def drive(minutes, kmh, kw, ambient=20):
    rows = (f"{i},{kmh},{kw},{ambient}\n" for i in range(60 * minutes))
    return "time_s,speed_kmh,power_kw,ambient_temp_c\n" + "".join(rows)


def test_many_trips_have_a_line_each_and_their_consumption(run):
    """At 60 km/h and 9 kW a car uses 15 kWh/100 km, at 120 km/h and 24 kW it uses 20; more in the cold."""
    for name, text in {
        "a": drive(4, 60, 9), "b": drive(4, 120, 24), "c": drive(4, 60, 12, -5), "d": drive(4, 120, 30, -5),
    }.items():  # fmt: skip
        write(f"{name}.csv", text)
    status, out, err = run("inspect", "*.csv", "--keep", "fills")
    assert (status, err) == (0, "")
    assert [line.split("│")[6].strip() for line in out.splitlines() if "│" in line] == ["15.0", "20.0", "20.0", "25.0"]
    assert "measured in all: 24.0 km, 5.00 kWh, 20.8 kWh/100 km" in out
    assert "by speed: 60 to 90 km/h 17.5; 120 to 150 km/h 22.5" in out
    assert "by temperature: -10 to 0 C 23.3; 20 to 30 C 18.3" in out
    assert "channel" not in out
    assert "channel" in run("inspect", "*.csv", "--full")[1]
    assert json.loads(run("inspect", "a.csv", "--json", "--keep", "fills")[1])[0]["kwh_100km"] == pytest.approx(15.0)


def test_more_trips_than_a_page_holds_are_counted(run, monkeypatch):
    monkeypatch.setattr("evband.report.inspection.MOST", 2)
    write("a.csv", "trip_id,time_s,speed_kmh\n" + "".join(f"t{i},0,30\nt{i},1,31\n" for i in range(5)))
    status, out, _ = run("inspect", "a.csv")
    assert status == 0
    assert ("t1" in out, "t2" in out, "and 3 more trips; --json lists all" in out) == (True, False, True)


def test_inspect_of_a_log_without_power_has_no_consumption(run):
    write("a.csv", "time_s,speed_kmh\n" + "".join(f"{i},50\n" for i in range(100)))
    status, out, _ = run("inspect", "a.csv")
    assert status == 0
    assert "no consumption" in out
    assert "nan" not in out
    write("b.csv", "time_s,speed_kmh\n0,1e309\n1,2\n")  # one reading is left
    assert "nan" not in run("inspect", "b.csv")[1]


def test_a_damaged_workbook_is_to_be_saved_as_csv(run):
    write("a.xlsx", b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml" + bytes(500))
    status, _, err = run("inspect", "a.xlsx")
    assert status == 2
    assert (
        err
        == "evband: error: a.xlsx: the Excel workbook cannot be read (File is not a zip file); save it again or as CSV.\n"
    )


def test_files_of_one_name_are_told_apart_by_their_folder(run):
    for folder, kmh in (("monday", 50), ("tuesday", 60)):
        Path(folder).mkdir()
        write(f"{folder}/log.csv", drive(2, kmh, 9))
    status, out, _ = run("inspect", "*/log.csv", "--json", "--keep", "fills")
    assert status == 0
    assert [trip["trip_id"] for trip in json.loads(out)] == ["log", "tuesday/log"]


def test_a_first_guess_of_a_map_is_written_and_reads_the_log(run):
    rows = "".join(f"{500 * i};{20 + i % 9};{i % 5};{380 - i % 3};x\n" for i in range(60))
    write("own.csv", "Elapsed (ms);Fahrzeuggeschwindigkeit (mph);Packstrom;HV Battery Voltage (V);note\n" + rows)
    status, out, _ = run("inspect", "own.csv", "--write-map", "map.toml")
    assert status == 0
    assert "--map map.toml" in out
    guess = Path("map.toml").read_text()
    assert '"Elapsed (ms)" = { channel = "time_s", unit = "ms" }' in guess
    assert '# "note" = "..."  # for example x, x, x' in guess
    Path("map.toml").write_text(guess.replace('# "Packstrom" = "..."', '"Packstrom" = "battery_current_a"'))
    status, out, _ = run("inspect", "own.csv", "--map", "map.toml", "--json")
    assert status == 0
    (trip,) = json.loads(out)
    assert trip["duration_s"] == pytest.approx(29.5)
    names = {channel["name"]: channel for channel in trip["channels"]}
    assert names["speed_kmh"]["max"] == pytest.approx(28 * 1.609344)
    assert {"battery_current_a", "battery_voltage_v", "power_kw"} <= set(names)
