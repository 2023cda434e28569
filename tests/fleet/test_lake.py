"""Lakes as they are: URLs, partitions that were cut short, one trip under several ids."""

import polars as pl
import pytest

from evband.errors import LogError, SettingsError
from evband.fleet import fit_fleet
from evband.fleet.lake import find_cars, read_cars
from tests.fleet.test_fleet import NUMBERS, rows
from tests.terrain.test_terrain import hgt

fsspec = pytest.importorskip("fsspec")


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_logs_behind_urls_are_those_of_a_folder(scheme, tmp_path) -> None:
    both = pl.concat([rows(k).with_columns(vehicle_id=pl.lit(f"car{k}")) for k in (1, 2)])
    folder = f"{scheme}://{tmp_path}/lake"
    with fsspec.open(f"{folder}/both.parquet", "wb", auto_mkdir=True) as file:
        both.write_parquet(file)
    with fsspec.open(f"{folder}/vehicle_id=x/own.csv", "wb", auto_mkdir=True) as file:
        rows(3).write_csv(file)
    cars = find_cars([folder], "vehicle_id")
    assert [car.vehicle_id for car in cars] == ["car1", "car2", "x"]
    assert len({car.stamp for car in cars}) == 2
    found = read_cars(cars, 1.0, 0.0)
    assert [len(found[car.vehicle_id]) for car in cars] == [1, 1, 1]
    with pytest.raises(LogError, match=r"no log is there|cannot be listed"):
        find_cars([f"{scheme}://{tmp_path}/nowhere"], "vehicle_id")
    with pytest.raises(LogError, match="its scheme needs"):
        find_cars(["nosuch://bucket/lake"], "vehicle_id")


def test_a_broken_partition_and_shared_trips_are_named_and_stop_nobody(tmp_path) -> None:
    good = pl.concat([rows(k).with_columns(vehicle_id=pl.lit(f"car{k}")) for k in (1, 2)])
    twin = rows(1).with_columns(vehicle_id=pl.lit("twin"))
    parked = rows(3).with_columns(vehicle_id=pl.lit("parked"), speed_kmh=0.0, power_kw=None)
    pl.concat([good, twin, parked], how="diagonal_relaxed").write_parquet(tmp_path / "good.parquet")
    whole = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "vehicle_id=cut").mkdir()
    (tmp_path / "vehicle_id=cut" / "x.parquet").write_bytes(whole[:1000])
    table = fit_fleet([str(tmp_path)], tmp_path / "fleet", **NUMBERS)
    warnings = dict(zip(table["vehicle_id"], table["warning"], strict=True))
    assert set(warnings) == {"car1", "car2", "cut", "half", "parked", "twin"}
    assert "twin" in warnings["car1"]
    assert "car1" in warnings["twin"]
    assert all(warnings[name] for name in ("half", "cut", "parked"))
    assert warnings["car2"] == ""


def test_a_partition_that_breaks_after_its_cars_were_found_is_named(tmp_path) -> None:
    pl.concat([rows(k).with_columns(vehicle_id=pl.lit(f"car{k}")) for k in (1, 2)]).write_parquet(
        tmp_path / "a.parquet"
    )
    cars = find_cars([str(tmp_path)], "vehicle_id")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing")
    found = read_cars(cars, 1.0, 0.0)
    assert all(isinstance(problem, LogError) and "a.parquet" in str(problem) for problem in found.values())


def test_elevation_comes_from_tiles_where_a_log_has_coordinates_only(tmp_path) -> None:
    (tmp_path / "tiles").mkdir()
    hgt(tmp_path / "tiles")
    count = len(rows(1))
    lat = 47.3 + 1e-4 * pl.arange(count, eager=True)
    placed = (
        rows(1)
        .drop("elevation_m", strict=False)
        .with_columns(latitude_deg=lat, longitude_deg=9.4, vehicle_id=pl.lit("placed"))
    )
    far = placed.with_columns(latitude_deg=lat + 5.0, vehicle_id=pl.lit("far"))
    pl.concat([placed, far]).write_parquet(tmp_path / "lake.parquet")
    bare, seen = (
        find_cars([str(tmp_path / "lake.parquet")], "vehicle_id", dem=dem) for dem in (None, tmp_path / "tiles")
    )
    without, found = read_cars(bare, 1.0, 0.0), read_cars(seen, 1.0, 0.0)
    assert not without["placed"][0].has("elevation_m")
    assert found["placed"][0].has("elevation_m")
    assert "N52E009.hgt" in str(found["far"])
    assert bare[1].stamp != seen[1].stamp
    with pytest.raises(SettingsError, match="not a folder"):
        find_cars([str(tmp_path / "lake.parquet")], "vehicle_id", dem=tmp_path / "nowhere")
