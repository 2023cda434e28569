"""The example in every command's help runs as it is written, in a folder with files of those names."""

import io
import re
import shlex
import shutil
import sys
from types import SimpleNamespace

import pytest
from test_help import leaves

import evband.cli
from drives import made_up_trip, small_model

ELSEWHERE = {  # commands whose example is not run here, and the tests that type it
    "demo": "tests/cli/test_demo.py, with two vehicles: all five take minutes",
    "serve": "tests/live/test_real_page.py, where Chromium looks at it: it runs until it is stopped",
    "prior": "tests/fleet: it needs a lake of cars",
    "fleet": "tests/fleet: it needs a lake of cars",
    "study": "tests/studies, with tiny models: it takes minutes to hours",
}
GPX = """<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>
<trkpt lat="48.0" lon="11.0"><ele>500</ele></trkpt><trkpt lat="48.05" lon="11.0"><ele>520</ele></trkpt>
<trkpt lat="48.1" lon="11.0"><ele>510</ele></trkpt></trkseg></trk></gpx>"""


def example(command):
    return re.search(r"^Example: evband (.+)$", command.help, flags=re.M)[1]


HERE = [("-".join(words), example(command)) for words, command in leaves() if words[0] not in ELSEWHERE]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("examples")
    small_model().save(path / "car.evband")
    evband.start("Renault Zoe 52 kWh").save(path / "zoe.evband")
    made_up_trip("new", 300, 77).table.write_csv(path / "drive.csv")
    for name, count in (("new", 9), ("drives", 1), ("logs", 2)):
        (path / name).mkdir()
        for k in range(count):
            made_up_trip(f"{name}{k}", 150, 100 + k).table.write_csv(path / name / f"{name}{k}.csv")
    (path / "route.csv").write_text("distance_km,speed_kmh,elevation_m,ambient_temp_c\n0,50,0,9\n5,80,20,9\n12,0,0,9\n")
    (path / "trip.gpx").write_text(GPX)
    (path / "ticks.jsonl").write_text("".join(f'{{"utc": {t}, "speed": {40 + t}}}\n' for t in range(5)))
    return path


@pytest.mark.parametrize(("name", "line"), HERE, ids=[name for name, _ in HERE])
def test_the_example_runs(name, line, folder, tmp_path, monkeypatch, capsys):
    folder = shutil.copytree(folder, tmp_path / "here")  # an example may write over what the next one reads
    monkeypatch.chdir(folder)
    monkeypatch.setattr("evband.export.collapse.STEPS", 20)  # as long as a test may take
    words, _, given = line.partition(" < ")
    if given:
        data = (folder / given.split(" > ")[0]).read_bytes()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    monkeypatch.setattr("sys.argv", ["evband", *shlex.split(words)])
    with pytest.raises(SystemExit) as exit:
        evband.cli.main()
    shown = capsys.readouterr()
    assert not exit.value.code, shown.err
    written = re.search(r"-o (\S+)", words)
    assert written is None or (folder / written[1]).exists()
    if given:
        assert len(shown.out.splitlines()) >= 5


def test_every_command_is_here_or_elsewhere():
    commands = {words[0] for words, _ in leaves()}
    assert set(ELSEWHERE) <= commands
