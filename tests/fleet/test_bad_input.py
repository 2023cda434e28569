"""What fleets bring along: each is a row with a warning, or one sentence, and never stops the others."""

import subprocess
import sys

import polars as pl
import pytest

from evband.errors import ArtifactError, LogError, SettingsError, VehicleError
from evband.fleet import fit_fleet, run_fleet
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


def test_a_partition_of_a_car_that_is_cut_short_beside_good_ones_is_named(tmp_path) -> None:
    folder = tmp_path / "lake" / "vehicle_id=a"
    folder.mkdir(parents=True)
    rows(1).write_parquet(folder / "whole.parquet")
    (folder / "cut.parquet").write_bytes((folder / "whole.parquet").read_bytes()[:-1000])
    for _ in range(2):  # again by the part that is there
        table = fit_fleet([str(tmp_path / "lake")], tmp_path / "fleet", **NUMBERS)
        assert table["trips"].to_list() == [1]
        assert "1 of its logs or trips cannot be read" in warnings_of(table)["a"]
        assert "cut.parquet" in warnings_of(table)["a"]
    scores = run_fleet("evaluate", [str(tmp_path / "lake")], tmp_path / "fleet")
    assert "cut.parquet" in warnings_of(scores)["a"]


def test_a_car_with_a_file_of_its_own_and_rows_in_a_shared_one_has_both(tmp_path) -> None:
    both = pl.concat([rows(k).with_columns(vehicle_id=pl.lit(f"car{k}")) for k in (1, 2)])
    both.write_parquet(tmp_path / "all.parquet")
    rows(3).write_parquet(tmp_path / "car1.parquet")
    cars = lakes.find_cars([str(tmp_path)], "vehicle_id")
    found = lakes.read_cars(cars, 1.0, 0.0)
    assert {name: sorted(trips.ids) for name, trips in found.items()} == {"car1": ["t1", "t3"], "car2": ["t2"]}


def test_ids_that_differ_by_a_leading_dot_have_files_of_their_own() -> None:
    names = {lakes.Car(name).file_name for name in ("x", ".x", "..x", "../x", "%2Ex")}
    assert len(names) == 5
    assert not any(name.startswith(".") or "/" in name for name in names)


def test_a_column_that_no_log_has_is_one_sentence(tmp_path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        rows(1).write_parquet(tmp_path / name / "p.parquet")
    with pytest.raises(LogError, match="of the name car_id; correct --by"):
        lakes.find_cars([str(tmp_path)], "car_id")


def test_a_fleet_that_is_not_there_and_a_level_that_is_none_are_one_sentence(tmp_path) -> None:
    rows(1).write_parquet(tmp_path / "a.parquet")
    for kind in ("predict", "energy", "evaluate"):
        with pytest.raises(SettingsError, match="run evband fleet fit first"):
            run_fleet(kind, [str(tmp_path / "a.parquet")], tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(SettingsError, match="between 0 and 1"):
        run_fleet("energy", [str(tmp_path / "a.parquet")], tmp_path / "nowhere", level=1.5)


def test_a_list_of_sheets_whose_names_are_no_texts_is_one_sentence(tmp_path) -> None:
    rows(1).write_parquet(tmp_path / "a.parquet")
    for wrong in ("3", '["i3 60"]'):
        (tmp_path / "sheets.toml").write_text(f"[cars]\na = {wrong}\n")
        with pytest.raises(VehicleError, match=r"a in \[cars\] is"):
            fit_fleet([str(tmp_path / "a.parquet")], tmp_path / "fleet", sheets=tmp_path / "sheets.toml")


def test_an_update_names_a_part_on_another_base_and_a_damaged_table(tmp_path) -> None:
    for k in range(3):
        rows(k, KG * (0.9 + 0.1 * k)).write_parquet(tmp_path / f"car{k}.parquet")
    logs = [str(tmp_path / f"car{k}.parquet") for k in range(3)]
    fit_fleet(logs, tmp_path / "fleet", **NUMBERS)
    fit_fleet(logs[:1], tmp_path / "fleet", base=tmp_path / "fleet" / "prior.evband", **NUMBERS)
    (tmp_path / "new").mkdir()
    for k in range(2):
        rows(10 + k, KG * (0.9 + 0.1 * k)).write_parquet(tmp_path / "new" / f"car{k}.parquet")
    table = run_fleet("update", [str(tmp_path / "new")], tmp_path / "fleet")
    assert "rests on another base" in warnings_of(table)["car1"]
    assert table.filter(vehicle_id="car0")["trips"].to_list() == [2]
    (tmp_path / "fleet" / "cars.parquet").write_bytes(b"PAR1")
    with pytest.raises(ArtifactError, match="the table of the cars is damaged"):
        run_fleet("update", [str(tmp_path / "new")], tmp_path / "fleet")


def test_an_update_of_a_fleet_that_is_not_there_yet_keeps_its_base_beside_the_parts(tmp_path) -> None:
    rows(1).write_parquet(tmp_path / "a.parquet")
    run_fleet("update", [str(tmp_path / "a.parquet")], tmp_path / "fleet", **NUMBERS)
    assert (tmp_path / "fleet" / "base.evband").exists()
