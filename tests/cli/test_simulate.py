"""`evband simulate` as it is typed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

pytest.importorskip("fastsim")

import evband
from evband.cli import command_line, main


def run(*arguments: object) -> str:
    result = CliRunner().invoke(command_line(), ["simulate", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_same_command_same_bytes_and_called_simulated(tmp_path: Path) -> None:
    paths = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for path in paths:
        output = run("all", "-o", path, "--hz", 1, "--seed", 7)
        assert "simulated and not measured" in output
        assert "sim_truck_000" in output
    assert paths[0].read_bytes() == paths[1].read_bytes()
    table = pl.read_parquet(paths[0])
    assert table["trip_id"].str.starts_with("sim_").all()
    assert table["trip_id"].n_unique() == 5


def test_trips_and_csv_and_miles(tmp_path: Path) -> None:
    output = run("hatchback", "-o", tmp_path / "cars.csv", "--hz", 1, "--trips", 2, "--units", "mi")
    assert "10.2" in output  # HWFET's 16.5 km
    assert "Wh/mi" in output
    trips = evband.read_trips(tmp_path / "cars.csv")
    assert trips.ids == ("sim_hatchback_000", "sim_hatchback_001")
    assert trips.fingerprints == evband.simulate("hatchback", hz=1, trips=2).fingerprints


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bus", "-o", "bus.parquet"], "no simulated vehicle 'bus'"),
        (["truck", "-o", "truck.xlsx"], "must end in .parquet, .csv or .jsonl"),
        (["truck", "-o", "nowhere/truck.parquet", "--hz", "1"], "directory does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["evband", "simulate", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
