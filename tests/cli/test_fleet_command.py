"""`evband fleet` from a folder of logs to tables, as a user runs it."""

import polars as pl
import pytest

from evband.cli import main
from tests.fleet.test_fleet import rows


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[str, str]:
        monkeypatch.setattr("sys.argv", ["evband", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        return capsys.readouterr()

    return command


def test_a_fleet_is_fitted_updated_and_asked(run, tmp_path) -> None:
    pl.concat([rows(k).with_columns(vehicle_id=pl.lit(f"car{k}")) for k in (1, 2)]).write_parquet("lake.parquet")
    numbers = ("--mass-kg", "1600", "--cda-m2", "0.62")
    out, err = run("fleet", "fit", "lake.parquet", "-o", "fleet", *numbers)
    assert "2 cars, 0 with a warning" in out
    assert "cars 2/2" in err
    rows(7).with_columns(vehicle_id=pl.lit("car1")).write_parquet("today.parquet")
    run("fleet", "predict", "today.parquet", "-o", "fleet", "--every", "10")
    thinned = pl.read_parquet("fleet/predict/car1.parquet")
    assert thinned["time_s"].diff().drop_nulls().unique().to_list() == [10.0]
    run("fleet", "update", "today.parquet", "-o", "fleet")
    table = pl.read_parquet("fleet/cars.parquet")
    assert dict(zip(table["vehicle_id"], table["trips"], strict=True)) == {"car1": 2, "car2": 1}
    page = (tmp_path / "fleet" / "report.html").read_text()
    assert "What changed" in page
    assert "Cars against themselves" in page
