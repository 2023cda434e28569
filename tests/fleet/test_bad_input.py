"""What fleets bring along: each is a row with a warning, or one sentence, and never stops the others."""

import subprocess
import sys

import polars as pl
import pytest

from evband.errors import SettingsError
from evband.fleet import fit_fleet
from evband.fleet import lake as lakes
from evband.fleet.engine import run
from evband.fleet.fitting import TRACES, name_twins
from tests.adaptation.test_start_and_adapt import KG
from tests.fleet.test_fleet import NUMBERS, rows


def warnings_of(table: pl.DataFrame) -> dict[str, str]:
    return dict(zip(table["vehicle_id"], table["warning"], strict=True))


def test_a_bus_under_a_car_s_id_is_named(tmp_path) -> None:
    cars = {"good": pl.concat([rows(1), rows(2)]), "bus": pl.concat([rows(k, 8.0 * KG) for k in (3, 4)])}
    pl.concat([table.with_columns(vehicle_id=pl.lit(name)) for name, table in cars.items()]).write_parquet(
        tmp_path / "lake.parquet"
    )
    warnings = warnings_of(fit_fleet([str(tmp_path / "lake.parquet")], tmp_path / "fleet", **NUMBERS))
    assert "another car's" in warnings["bus"]
    assert warnings["good"] == ""


def test_a_car_that_never_moves_and_rows_of_no_car_are_named(tmp_path) -> None:
    still = rows(1).with_columns(speed_kmh=0.0, power_kw=0.3, vehicle_id=pl.lit("still"))
    nobody = rows(2).with_columns(vehicle_id=pl.lit(None, pl.String))
    pl.concat([still, nobody]).write_parquet(tmp_path / "lake.parquet")
    warnings = warnings_of(fit_fleet([str(tmp_path / "lake.parquet")], tmp_path / "fleet", **NUMBERS))
    assert "hardly moves" in warnings["still"]
    assert "rows name no car" in warnings[""]


def test_ten_cars_with_one_trip_are_all_named_and_the_eleventh_is_not() -> None:
    table = [{"vehicle_id": f"car{k}", "warning": "", TRACES: ["shared", f"own {k}"]} for k in range(10)]
    table.append({"vehicle_id": "other", "warning": "", TRACES: ["another"]})
    name_twins(table)
    assert all("9 other cars have, too (" in row["warning"] and "..." in row["warning"] for row in table[:10])
    assert table[10]["warning"] == ""
    assert TRACES not in table[0]


def test_a_shared_partition_with_a_damaged_page_is_a_warning(tmp_path) -> None:
    path = tmp_path / "a.parquet"
    pl.concat([rows(k).head(25).with_columns(vehicle_id=pl.lit(f"car{k}")) for k in (1, 2)]).write_parquet(path)
    cars = lakes.find_cars([str(path)], "vehicle_id")
    path.write_bytes(path.read_bytes().replace(b"\x15\x64\x15", b"\x15\x65\x15"))  # 50 and -51 values
    read = lakes.read_cars(cars, 1.0, 0.0)
    assert all("the partition cannot be read (a page promises -" in str(read[name]) for name in ("car1", "car2"))


def test_a_large_partition_is_streamed_to_the_same_trips(tmp_path, monkeypatch) -> None:
    both = pl.concat([rows(k).with_columns(vehicle_id=pl.lit(f"car{k}")) for k in (1, 2)])
    both.write_parquet(tmp_path / "a.parquet", row_group_size=50)
    cars = lakes.find_cars([str(tmp_path)], "vehicle_id")
    whole = lakes.read_cars(cars[:1], 1.0, 0.0)
    monkeypatch.setattr(lakes, "LARGE_BYTES", 0)
    streamed = lakes.read_cars(cars[:1], 1.0, 0.0)
    assert streamed["car1"].fingerprints == whole["car1"].fingerprints


def test_a_car_with_too_many_rows_and_a_file_too_large_are_named_unread(tmp_path, monkeypatch) -> None:
    pl.concat([rows(k).with_columns(vehicle_id=pl.lit("much" if k else "little")) for k in range(3)]).write_parquet(
        tmp_path / "shared.parquet"
    )
    rows(4).write_csv(tmp_path / "large.csv")
    monkeypatch.setattr(lakes, "MOST_ROWS", len(rows(0)))
    monkeypatch.setattr(lakes, "MOST_BYTES", 1000)
    found = lakes.read_cars(lakes.find_cars([str(tmp_path)], "vehicle_id"), 1.0, 0.0)
    assert "are the most in one run" in str(found["much"])
    assert "cut it into portions" in str(found["large"])
    assert len(found["little"]) == 1


def test_an_object_store_that_is_full_is_one_sentence(monkeypatch) -> None:
    ray = pytest.importorskip("ray")

    def full(_):
        raise ray.exceptions.ObjectStoreFullError("no room")

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "put", full)
    with pytest.raises(SettingsError, match=r"object store does not take the base .*give it more memory"):
        list(run(warnings_of, {}, [["a"]], warnings_of, 1, "auto"))


def test_a_partition_far_larger_than_the_memory_allowed_is_read_car_by_car(tmp_path) -> None:
    """Six million rows of 500 cars."""
    code = f"""
import numpy as np, polars as pl
n = 12_000
part = pl.DataFrame({{"time_s": np.arange(float(n)), "speed_kmh": 30.0 + np.zeros(n), "power_kw": 5.0 + np.zeros(n)}})
parts = [part.with_columns(vehicle_id=pl.lit(f"car{{k:03d}}")) for k in range(500)]
pl.concat(parts).write_parquet({str(tmp_path / "big.parquet")!r}, row_group_size=60_000)
"""
    read = f"""
import resource
from evband.fleet import lake
lake.LARGE_BYTES = 0
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
cars = lake.find_cars([{str(tmp_path / "big.parquet")!r}], "vehicle_id")
assert len(cars) == 500
found = lake.read_cars(cars[:5], 1.0, 0.0)
assert all(len(trips) for trips in found.values())
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    done = subprocess.run([sys.executable, "-c", read], check=True, timeout=120, capture_output=True, text=True)
    assert int(done.stdout) < 60  # MB, where its plain numbers alone are 144
