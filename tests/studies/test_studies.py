"""Studies on tiny settings: the tables' shapes, continuing, tuning, training elsewhere, the command line."""

import json
from dataclasses import replace

import polars as pl
import pytest
from typer.testing import CliRunner

from evband.cli import command_line
from evband.errors import SettingsError
from evband.scores import evaluate
from evband.studies.cases import Case, check_names, cut, file_name, name_of, simulated, simulated_names
from evband.studies.compare import ablation, compare
from evband.studies.remote import prepare_case, train_folder
from evband.studies.results import TABLE_2, Results, table
from evband.studies.runs import KEY, Recipe, check_methods, run, tuned_dropout
from tiny_car import drives

QUICK = {"preset": "paper", "members": 2, "epochs": 2, "device": "cpu"}


@pytest.fixture(scope="module")
def car():
    return cut("car", drives(4, seconds=200), "motion", 1.0)


def test_single_run_is_cut_in_time_with_a_gap():
    case = cut("run", drives(1, seconds=600), "motion", 1.0)
    assert case.test[0].table["time_s"][0] - case.train[0].table["time_s"][-1] >= 60
    assert len(case.test[0]) == pytest.approx(0.3 * 540, abs=2)


def test_fingerprint_tells_data_and_cut_apart(car):
    other = Case("car", car.test, car.train, "motion", 1.0)
    assert car.fingerprint != other.fingerprint
    assert car.fingerprint == cut("car", drives(4, seconds=200), "motion", 1.0).fingerprint


def test_simulated_cases_take_the_papers_features():
    case = simulated("sedan_1", hz=1.0)
    assert (case.features, case.hz, len(case.train)) == ("S1", 1.0, 1)
    assert simulated_names("sedan_1, truck") == ["sedan_1", "truck"]
    assert len(simulated_names("all")) == 5


@pytest.mark.parametrize("text", ["tram", "", "sedan_1,tram"])
def test_unknown_vehicle_is_an_error(text):
    with pytest.raises(SettingsError, match="choose from sedan_1"):
        simulated_names(text)


def test_names_of_logs():
    assert name_of("zoe=logs/*.csv") == ("zoe", "logs/*.csv")
    assert name_of("logs/drive.csv") == ("drive", "logs/drive.csv")
    assert name_of("logs/*.csv") == ("logs", "logs/*.csv")


def test_existing_path_with_equals_is_not_split(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hive=1").mkdir()
    (tmp_path / "hive=1" / "log.parquet").touch()
    assert name_of("hive=1/log.parquet") == ("log", "hive=1/log.parquet")
    assert name_of("hive=1/*.parquet") == ("hive=1", "hive=1/*.parquet")


def test_any_name_can_name_a_file():
    assert file_name("a/b-S1") == "a_b-S1"
    long = [file_name("x," * 300 + end) for end in "ab"]
    assert long[0] != long[1]
    assert max(map(len, long)) < 200


@pytest.mark.parametrize("hz", [0.0, -1.0, float("nan"), 101.0])
def test_grid_outside_the_possible_is_an_error(hz):
    with pytest.raises(SettingsError, match="above 0"):
        simulated("sedan_1", hz=hz)
    with pytest.raises(SettingsError, match="above 0"):
        cut("car", drives(2, seconds=150), "motion", hz)


def test_two_vehicles_of_one_name_are_an_error(car):
    with pytest.raises(SettingsError, match="Two logs are called 'car'"):
        check_names([car, car])


def test_compare_writes_the_papers_tables_and_continues(car, tmp_path):
    recipes = [Recipe("t-anchor", **QUICK), Recipe("least-squares"), Recipe("quantile-anchor", **QUICK)]
    accuracy, calibration = compare([car], recipes[:2], tmp_path)
    before = (tmp_path / "runs.csv").read_text()
    said = []
    accuracy, calibration = compare([car], recipes, tmp_path, say=said.append)
    assert len([line for line in said if "kept" in line]) == 2
    assert set(before.splitlines()[1:]) <= set((tmp_path / "runs.csv").read_text().splitlines())
    paper = ["method", "vehicle", "rmse_kw", "mae_kw", "au_kw", "eu_kw", "r2", "explained_variance"]
    assert [c for c in accuracy.columns if c in paper] == paper
    assert {"coverage", "ci_low", "ci_high", "honest_low", "honest_high", "width_kw", "standardized_variance"} <= set(
        calibration.columns
    )
    assert accuracy["method"].to_list() == ["least-squares", "quantile-anchor", "t-anchor"]
    assert {"table2.csv", "table3.csv", "accuracy.png", "calibration.png", "band-car-t-anchor-paper-motion.png"} <= {
        p.name for p in tmp_path.iterdir()
    }
    assert not list(tmp_path.glob(".*.checkpoint"))


def test_row_is_what_evaluate_says(car):
    row, bands = run(car, Recipe("t-anchor", **QUICK))
    scores = evaluate(bands, car.test)
    assert row["rmse_kw"] == scores["rmse_kw"]
    assert (row["ci_low"], row["ci_high"]) == tuple(scores["coverage_binomial"])
    assert row["au_kw"] == scores["aleatoric_kw"]


def test_published_quantiles_are_an_80_percent_band_held_against_90(car):
    row, bands = run(car, Recipe("quantile-anchor", **QUICK))
    assert row["band"] == 0.8
    assert row["width_kw"] == pytest.approx(evaluate(bands, car.test, 0.8)["width_kw"])
    assert bands.members.q.shape[1] == 3
    default = Recipe("quantile-anchor", members=1, epochs=1, device="cpu")
    assert not default.as_published


def test_seeds_are_averaged(car, tmp_path):
    recipes = [Recipe("t-anchor", seed=s, **QUICK) for s in (0, 1)]
    accuracy, _ = compare([car], recipes, tmp_path)
    runs = Results(tmp_path / "runs.csv", KEY).rows()
    assert accuracy["seeds"].to_list() == [2]
    assert accuracy["rmse_kw"][0] == pytest.approx(sum(r["rmse_kw"] for r in runs) / 2, abs=1e-5)


def cell(**other):
    about = {"vehicle": "2024", "method": "t-anchor", "preset": "paper", "prior": "fan_in", "prior_scale": "posterior"}
    about |= {"features": "S1", "hz": 1.0, "members": 2, "epochs": 2, "batch": 16, "seed": 0, "data": "12e456789012"}
    return about | {"dropout_asked": "", "rmse_kw": 1.0} | other


def test_unlike_runs_are_lines_of_their_own(tmp_path):
    results = Results(tmp_path / "runs.csv", KEY)
    for row in (cell(), cell(seed=1, rmse_kw=2.0), cell(epochs=20, rmse_kw=5.0), cell(vehicle="2025", data="1")):
        results.add(row)
    shaped = table(results.rows(), TABLE_2, KEY)
    assert shaped.select("vehicle", "epochs", "rmse_kw", "seeds").rows() == [
        ("2024", 2, 1.5, 2), ("2024", 20, 5.0, 1), ("2025", 2, 1.0, 1),
    ]  # fmt: skip
    assert not {"data", "hz", "members"} & set(shaped.columns)
    assert results.rows()[0]["data"] == "12e456789012"


def test_kept_result_is_found_on_a_fractional_grid(tmp_path):
    results = Results(tmp_path / "runs.csv", KEY)
    results.add(cell(hz=1 / 3))
    assert results.has(cell(hz=1 / 3))
    assert not results.has(cell(hz=0.334))
    assert not results.has(cell(hz=1 / 3, seed=1))


def test_results_without_a_key_column_are_an_error_unless_it_is_a_later_one(tmp_path):
    path = tmp_path / "runs.csv"
    results = Results(path, KEY)
    results.add(cell())
    whole = pl.read_csv(path, infer_schema=False)
    whole.drop("dropout_asked").write_csv(path)
    assert results.has(cell())
    assert not results.has(cell(dropout_asked="tuned"))
    whole.drop("epochs").write_csv(path)
    with pytest.raises(SettingsError, match="no column epochs"):
        results.rows()


def test_dropout_rate_tells_cells_apart(car):
    asked = [Recipe(m, dropout=d).cell(car)["dropout_asked"] for m in ("t-anchor", "t-dropout") for d in (None, 0.5)]
    assert asked == ["", "", "tuned", "0.5"]


def test_interrupted_fit_goes_on(car, tmp_path):
    recipe = Recipe("t-anchor", **(QUICK | {"epochs": 4}))

    def stop(now):
        if now.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(car, recipe, work=tmp_path, progress=stop)
    assert len(list(tmp_path.glob(".*.checkpoint"))) == 1
    seen = []
    row, _ = run(car, recipe, work=tmp_path, progress=lambda now: seen.append(now.epoch))
    assert seen[0] > 2
    whole, _ = run(car, recipe)
    assert row["rmse_kw"] == pytest.approx(whole["rmse_kw"], rel=1e-6)


def test_dropout_rate_is_tuned_inside_the_training_trips(car, monkeypatch):
    monkeypatch.setattr("evband.studies.runs.DROPOUT_RATES", (0.1, 0.3))
    said = []
    assert tuned_dropout(car, Recipe("t-dropout", **QUICK), said.append) in (0.1, 0.3)
    assert "0.1 (" in said[0]
    row, _ = run(car, Recipe("t-dropout", dropout=0.25, **QUICK))
    assert row["dropout"] == 0.25


def test_ablation_gives_a_line_a_feature_set(tmp_path):
    trips = drives(2, seconds=200, extra=lambda rng, n: {"motor_torque_nm": rng.normal(size=n)})
    case = cut("car", trips, "auto", 1.0)
    table = ablation([case], ["motion", "speed_kmh+motor_torque_nm"], [Recipe("t-anchor", **QUICK)], tmp_path)
    assert table["features"].to_list() == ["motion", "speed_kmh,motor_torque_nm"]
    assert table["channels"].to_list()[0] == "speed_kmh acceleration_ms2"
    assert (tmp_path / "features.png").stat().st_size > 1000
    assert pl.read_csv(tmp_path / "table1.csv").height == 2
    assert sorted(p.name for p in tmp_path.glob("band-*")) == [
        "band-car-t-anchor-paper-motion.png", "band-car-t-anchor-paper-speed_kmh+motor_torque_nm.png",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sets", "match"), [([], "names no feature set"), (["S9"], "S9: it is not a known set or channel")]
)
def test_unknown_feature_set_is_an_error(car, tmp_path, sets, match):
    with pytest.raises(SettingsError, match=match):
        ablation([car], sets, [Recipe("t-anchor", **QUICK)], tmp_path)


def test_weights_trained_elsewhere_give_the_same_scores(car, tmp_path):
    recipe = Recipe("t-anchor", **QUICK)
    prepare_case(car, recipe, tmp_path / "jobs")
    with pytest.raises(SettingsError, match=r"evband\.studies\.remote"):
        run(car, recipe, trained=tmp_path / "jobs")
    assert len(train_folder(tmp_path / "jobs", "cpu")) == 1
    assert train_folder(tmp_path / "jobs", "cpu") == []
    there, _ = run(car, recipe, trained=tmp_path / "jobs")
    here, _ = run(car, recipe)
    assert there["rmse_kw"] == pytest.approx(here["rmse_kw"], rel=1e-6)


def test_weights_of_other_settings_are_refused(car, tmp_path):
    recipe = Recipe("t-anchor", preset="paper", members=1, epochs=1, device="cpu")
    path = prepare_case(car, recipe, tmp_path)
    description = path.with_suffix(".json")
    saved = json.loads(description.read_text())
    description.write_text(json.dumps({k: v for k, v in saved.items() if k != "trip_effect"}))
    assert len(train_folder(tmp_path, "cpu")) == 1
    run(car, recipe, trained=tmp_path)
    for other in (replace(car, features="speed_kmh"), replace(car, hz=2.0)):
        with pytest.raises(SettingsError, match="no such weights"):
            run(other, recipe, trained=tmp_path)
    description.write_text(json.dumps(saved | {"features": "S1", "rate": 0.5}))
    with pytest.raises(SettingsError, match=r"features S1 \(now motion\), rate 0.5"):
        run(car, recipe, trained=tmp_path)
    prepare_case(car, recipe, tmp_path)
    assert not list(tmp_path.glob("*.theta.npz"))


def test_dropout_cannot_be_tuned_before_training(car, tmp_path):
    with pytest.raises(SettingsError, match="--dropout"):
        prepare_case(car, Recipe("t-dropout", **QUICK), tmp_path)


def test_unknown_method_is_an_error():
    with pytest.raises(SettingsError, match="no method 'magic'"):
        check_methods(["t-anchor", "magic"])


def test_damaged_results_are_an_error(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text('a,b\n1,2\n3,4,5\n"')
    with pytest.raises(SettingsError, match="cannot be read as results"):
        Results(path, ("a",)).rows()


def test_command_line_on_a_log(tmp_path):
    log = tmp_path / "log.csv"
    cut("x", drives(4, seconds=200), "motion", 1.0).train.to_polars().drop("segment").write_csv(log)
    quick = ["--members", "1", "--epochs", "1", "--device", "cpu", "--features", "motion"]
    done = CliRunner().invoke(
        command_line(),
        ["study", "compare", "--logs", f"a/b={log}", "--methods", "t-anchor", "--out", str(tmp_path / "s"), *quick],
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "s" / "table3.csv").exists()
    assert (tmp_path / "s" / "band-a_b-t-anchor-paper-motion.png").exists()
    missing = CliRunner().invoke(command_line(), ["study", "compare", "--logs", str(log)])
    assert "--out DIR" in str(missing.exception)


def test_command_line_wants_whole_seeds(tmp_path):
    done = CliRunner().invoke(
        command_line(), ["study", "ablation", "--out", str(tmp_path), "--seeds", "a", "--vehicles", "tram"]
    )
    assert isinstance(done.exception, SettingsError)
