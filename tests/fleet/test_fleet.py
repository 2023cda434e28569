"""A fleet of tiny made-up cars: parts, table, prior, report; the same bytes however it is run."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import evband
from evband.adaptation import Base, base
from evband.errors import ArtifactError, LogError, SettingsError
from evband.fleet import fit_fleet, fleet_prior, learn_prior, run_fleet
from evband.fleet.fitting import _batches
from evband.fleet.lake import find_cars
from tests.adaptation.test_start_and_adapt import KG, trip

NUMBERS = {"mass_kg": 1600.0, "cda_m2": 0.62}


def rows(seed: int, mass: float = KG, **options) -> pl.DataFrame:
    return trip(seed, mass, 240, **options).table.with_columns(trip_id=pl.lit(f"t{seed}"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Four good cars, one whose power has the wrong sign, one without power; a fifth in a file of its own."""
    folder = tmp_path_factory.mktemp("lake")
    cars = {f"car{n}": pl.concat([rows(10 * n + k, KG * (0.9 + 0.05 * n)) for k in range(2)]) for n in range(4)}
    cars["reversed"] = rows(80, sign=-1.0)
    cars["blind"] = rows(90).drop("power_kw")
    tables = [table.with_columns(vehicle_id=pl.lit(name)) for name, table in cars.items()]
    pl.concat(tables, how="diagonal").write_parquet(folder / "all.parquet")
    rows(95).write_csv(folder / "own.csv")
    return folder


@pytest.fixture(scope="module")
def fitted(lake, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    return folder, fit_fleet([str(lake)], folder, **NUMBERS)


def test_every_car_has_a_row_and_a_bad_one_a_warning(fitted) -> None:
    folder, table = fitted
    assert table["vehicle_id"].to_list() == ["blind", "car0", "car1", "car2", "car3", "own", "reversed"]
    first = ["vehicle_id", "trips", "hours", "crps_kw", "coverage", "energy_kwh_100km", "lower", "upper", "warning"]
    assert pl.read_parquet(folder / "cars.parquet").columns[: len(first)] == first
    good = table.filter(pl.col("vehicle_id").str.starts_with("car"))
    assert (good["trips"] == 2).all()
    assert (good["lower"] < good["energy_kwh_100km"]).all()
    assert good["coverage"].mean() > 0.7
    bad = table.filter(pl.col("vehicle_id").is_in(["blind", "reversed"]))
    assert bad["warning"].str.contains("power").all()
    assert not (folder / "cars" / "reversed.evband").exists()
    assert "reversed" in (folder / "report.html").read_text()


def test_the_base_lies_beside_the_parts_for_an_evband_that_ships_another(fitted, lake, monkeypatch, tmp_path) -> None:
    folder, table = fitted
    assert Base.load(folder / "base.evband").digest == Base.load().digest
    shutil.copytree(folder, tmp_path / "fleet")
    other = replace(Base.load(), theta=Base.load().theta + np.float32(1e-3))
    monkeypatch.setattr(base, "_shipped", lambda: other)
    again = run_fleet("update", [str(lake)], tmp_path / "fleet", **NUMBERS)
    assert again["trips"].to_list() == table["trips"].to_list()


def test_a_part_is_small_and_a_model(fitted, lake) -> None:
    folder, _ = fitted
    path = folder / "cars" / "car0.evband"
    assert path.stat().st_size < 32_000
    model = evband.load(path)
    assert model.adaptation_.trips == 2
    (energy,) = model.energy(evband.Trips([trip(300, 0.9 * KG)]))
    assert energy.mean_kwh > 0
    whole = evband.adapt(model, evband.Trips([trip(301, 0.9 * KG)]))
    whole.save(folder / "whole.evband")
    assert evband.load(folder / "whole.evband").adaptation_.trips == 3


def test_a_part_loses_little_of_what_was_learned(tmp_path) -> None:
    from evband.adaptation.part import save_part

    model = evband.adapt(evband.start(**NUMBERS), evband.Trips([trip(1), trip(2)]))
    save_part(model, Base.load(), tmp_path / "car.evband", [], 0)
    test = evband.Trips([trip(3)])
    again = evband.load(tmp_path / "car.evband")
    full, part = (m.predict(test) for m in (model, again))
    np.testing.assert_allclose(part.mean, full.mean, atol=0.05)
    on = [evband.adapt(m, evband.Trips([trip(4)])).predict(test).mean for m in (model, again)]
    assert np.abs(on[1] - on[0]).mean() < 0.3


def test_a_part_without_its_base_is_one_sentence(fitted, lake, tmp_path) -> None:
    folder, _ = fitted
    other = tmp_path / "other"
    run_fleet("fit", [str(lake / "own.csv")], other, base=folder / "prior.evband", **NUMBERS)
    assert evband.load(other / "cars" / "own.evband").adaptation_.trips == 1
    (other / "base.evband").unlink()
    with pytest.raises(ArtifactError, match="neither beside it"):
        evband.load(other / "cars" / "own.evband")
    (other / "cars" / "own.evband").write_bytes((other / "cars" / "own.evband").read_bytes()[:3000])
    with pytest.raises(ArtifactError, match="not a whole"):
        evband.load(other / "cars" / "own.evband")


def test_the_prior_of_a_fleet_starts_its_next_car_better(fitted, tmp_path) -> None:
    folder, _ = fitted
    assert fleet_prior([folder], tmp_path / "fleet.evband") == (5, 0)
    test = evband.Trips([trip(500)])
    shipped, own = (
        evband.evaluate(evband.start(base=base, **NUMBERS).predict(test)) for base in (None, tmp_path / "fleet.evband")
    )
    assert own["crps_kw"] < shipped["crps_kw"]


def test_running_again_goes_on_and_a_pool_writes_the_same_bytes(fitted, lake, tmp_path) -> None:
    folder, table = fitted
    again = fit_fleet([str(lake)], folder, **NUMBERS)
    assert again.equals(table)
    pooled = fit_fleet([str(lake)], tmp_path, workers=2, **NUMBERS)
    assert pooled.equals(table)
    for part in sorted((folder / "cars").glob("*.evband")):
        assert part.read_bytes() == (tmp_path / "cars" / part.name).read_bytes()


def test_cars_with_large_files_of_their_own_are_not_read_at_once(tmp_path) -> None:
    for k in range(6):
        (tmp_path / f"car{k}.csv").touch()
        os.truncate(tmp_path / f"car{k}.csv", 4_000_000 if k < 4 else 0)
    batches = _batches(find_cars([str(tmp_path)], "vehicle_id"), 1)
    assert [len(batch) for batch in batches] == [2, 4]


def test_a_car_whose_sheet_has_a_label_is_not_done_again(tmp_path) -> None:
    rows(1).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "sheets.toml").write_text('[cars]\na = "i3 60"\n')  # the label sharpens its drag and tyres
    times = []
    for _ in range(2):
        fit_fleet([str(tmp_path / "a.parquet")], tmp_path / "fleet", sheets=tmp_path / "sheets.toml")
        times.append((tmp_path / "fleet" / "cars" / "a.evband").stat().st_mtime_ns)
    assert times[0] == times[1]


def test_ray_writes_the_same_bytes(fitted, lake, tmp_path) -> None:
    pytest.importorskip("ray")
    folder, _ = fitted
    code = (
        "from evband.fleet import fit_fleet\n"
        f"fit_fleet([{str(lake)!r}], {str(tmp_path)!r}, workers=2, ray='auto', mass_kg=1600.0, cda_m2=0.62)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, capture_output=True)
    for part in sorted((folder / "cars").glob("*.evband")):
        assert part.read_bytes() == (tmp_path / "cars" / part.name).read_bytes()


def test_update_skips_known_trips_and_the_other_commands_use_the_parts(fitted, lake, tmp_path) -> None:
    folder, _ = fitted
    new = pl.concat([rows(0, 0.9 * KG), rows(7, 0.9 * KG)]).with_columns(vehicle_id=pl.lit("car0"))
    new.write_parquet(tmp_path / "new.parquet")
    logs = [str(tmp_path / "new.parquet")]
    energies = run_fleet("energy", logs, folder)
    assert energies["trip_id"].to_list() == ["t0", "t7"]
    scores = run_fleet("evaluate", logs, folder)
    assert "1 of 2 trips" in scores["warning"][0]
    run_fleet("predict", logs, folder)
    assert {"mean_kw", "lower_kw"} <= set(pl.read_parquet(folder / "predict" / "car0.parquet").columns)
    table = run_fleet("update", logs, folder)
    assert dict(zip(table["vehicle_id"], table["trips"], strict=True))["car0"] == 3
    assert len(table) == 7


def test_cars_are_told_apart_by_folders_columns_and_files(tmp_path) -> None:
    (tmp_path / "vehicle_id=a b").mkdir()
    rows(1).write_csv(tmp_path / "vehicle_id=a b" / "x.csv")
    rows(2).write_csv(tmp_path / "c.csv")
    rows(3).with_columns(vehicle_id=pl.lit("../d")).write_parquet(tmp_path / "e.parquet")
    cars = {car.vehicle_id: car for car in find_cars([str(tmp_path)], "vehicle_id")}
    assert set(cars) == {"a b", "c", "../d"}
    assert "/" not in cars["../d"].file_name
    with pytest.raises(LogError, match="check the path"):
        find_cars([str(tmp_path / "nowhere")], "vehicle_id")


def test_raw_logs_of_cars_in_folders_of_their_own_make_a_prior(tmp_path, capsys) -> None:
    from evband.cli import command_line

    sheets, mild = [], pl.lit(20.0)  # no heater explains what they draw
    for n in range(4):  # two kinds of body, all of which draw 3 kW more than the base expects
        heavy, name = 1.0 + 0.3 * (n % 2), f"car {n}"
        (tmp_path / "lake" / name).mkdir(parents=True)
        for k in range(2):
            table = rows(10 * n + k, heavy * KG).with_columns(power_kw=pl.col("power_kw") + 3.0, ambient_temp_c=mild)
            table.write_csv(tmp_path / "lake" / name / f"{k}.csv")
        number = f"kerb_kg = {heavy * KG - 100}\nload_kg = 100\ncda_m2 = 0.62\ncrr = 0.009\nbody = 'suv'"
        sheets.append(f"[[vehicle]]\nname = '{name}'\n{number}\n")
    (tmp_path / "sheets.toml").write_text("\n".join(sheets))
    output = tmp_path / "fleet.evband"
    command_line()(["prior", str(tmp_path / "lake"), "--sheets", str(tmp_path / "sheets.toml"), "-o", str(output)],
        standalone_mode=False)  # fmt: skip
    assert "learned from 4 cars" in capsys.readouterr().out
    drive = trip(600, seconds=600)
    table = drive.table.with_columns(power_kw=pl.col("power_kw") + 3.0, ambient_temp_c=mild)
    test = evband.Trips([evband.trips.Trip("x", table)])
    shipped, own = (
        evband.evaluate(evband.start(base=base, **NUMBERS).predict(test)) for base in (None, output)
    )  # fmt: skip
    assert own["crps_kw"] < 0.9 * shipped["crps_kw"]
    assert own["width_kw"] < shipped["width_kw"]
    assert own["coverage"] > 0.8


def test_cars_without_a_sheet_make_no_prior(tmp_path) -> None:
    rows(1).write_csv(tmp_path / "a.csv")
    with pytest.raises(SettingsError, match="no data sheet; name it in --sheets"):
        learn_prior([tmp_path], tmp_path / "fleet.evband")
