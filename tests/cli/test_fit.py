"""`evband fit` and what follows it on the command line: predict, calibrate, collapse, info."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from scipy import integrate, stats

import evband
import evband.cli
from tiny_car import TINY, drives

FAST = "".join(f"{k} = {v!r}\n".replace("'", '"') for k, v in {**TINY, "epochs": 2}.items())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Logs of nine drives, nine others, and a fitted model."""
    path = tmp_path_factory.mktemp("fit")
    drives(9, seconds=90).to_polars().drop("segment").write_parquet(path / "train.parquet")
    drives(9, seconds=90, seed=8).to_polars().drop("segment").write_parquet(path / "other.parquet")
    drives(2, seconds=90).to_polars().drop("segment").write_parquet(path / "few.parquet")
    (path / "run.toml").write_text(FAST)
    return path


@pytest.fixture
def run(call, monkeypatch, folder):
    monkeypatch.chdir(folder)
    return call


@pytest.fixture
def car(run, folder):
    if not (folder / "car.evband").exists():
        run("fit", "train.parquet", "-o", "car.evband", "--config", "run.toml")
    return folder / "car.evband"


def test_fit_writes_a_model_and_says_how_it_went(run, folder):
    status, out, err = run("fit", "train.parquet", "-o", "new.evband", "--config", "run.toml", "--members", "5")
    assert status == 0
    assert "epoch 2/2: loss" in err
    assert "held-out log score" in err
    assert "5 members of 1 x 8" in out
    assert "trained on 9 trips" in out
    assert "calibration: stretched by" in out
    assert "each member kept as it was at its best epoch" in out
    assert out.splitlines()[-2].startswith("expect of new trips like these: RMSE ")
    assert not list(folder.glob("*.checkpoint*"))
    model = evband.load(folder / "new.evband")
    assert model.settings_.members == 5  # the command line wins over the file
    assert model.settings_.hidden == 8


def test_evaluate_says_what_the_members_of_predict_say(run, car, folder):
    """Both commands as typed, and NumPy and SciPy between them."""
    assert run("predict", "car.evband", "other.parquet", "-o", "bands.csv", "--members")[0] == 0
    assert run("evaluate", "car.evband", "other.parquet", "--json", "scores.json")[0] == 0
    scores = json.loads((folder / "scores.json").read_text())
    bands = pl.read_csv(folder / "bands.csv").filter(~pl.col("warmup") & pl.col("power_kw").is_not_null())
    count = sum(name.startswith("location_") for name in bands.columns)
    mu, s, nu = (np.stack([bands[f"{k}_{m}"].to_numpy() for m in range(count)]) for k in ("location", "scale", "nu"))
    y = bands["power_kw"].to_numpy()
    density = (stats.t.pdf((y - mu) / s, nu) / s).mean(0)
    t = np.linspace(0, np.arcsinh(1e4), 1001)[:, None]  # both tails, out from the measurement
    away = s.mean(0) * np.sinh(t)
    below, above = (stats.t.cdf((y + sign * away - mu[:, None]) / s[:, None], nu[:, None]).mean(0) for sign in (-1, 1))
    crps = integrate.trapezoid((below**2 + (1 - above) ** 2) * s.mean(0) * np.cosh(t), t, axis=0).mean()
    inside = (bands["lower_kw"].to_numpy() <= y) & (y <= bands["upper_kw"].to_numpy())
    assert scores["n"] == len(y)
    assert scores["rmse_kw"] == pytest.approx(np.sqrt(np.mean((y - mu.mean(0)) ** 2)), rel=1e-6)
    assert scores["log_score"] == pytest.approx(-np.log(density).mean(), rel=1e-6)
    assert scores["crps_kw"] == pytest.approx(crps, rel=1e-4)
    assert scores["coverage"] == pytest.approx(inside.mean(), rel=1e-6)


def test_too_few_trips_are_said_not_to_calibrate(run):
    status, out, _ = run("fit", "few.parquet", "-o", "few.evband", "--config", "run.toml")
    assert status == 0
    assert "not calibrated" in out
    assert "9 are needed" in out


def test_no_calibrate_and_nu_on_its_floor_are_in_the_summary(run, folder, monkeypatch):
    monkeypatch.setattr("evband.card.FLOOR_NEAR", 100.0)
    (folder / "floor.toml").write_text(FAST + "nu_min = 4.0\n")
    _, out, _ = run("fit", "few.parquet", "-o", "floor.evband", "--config", "floor.toml", "--no-calibrate")
    assert "calibration: not asked for" in out
    assert "nu sits on its floor of 4 in 3 of 3 members" in out


def test_restarted_members_are_in_the_summary(run, monkeypatch):
    from evband.training.loop import Trainer

    plain = Trainer._restart_broken

    def restart(self):
        self.broken[1] |= self.state.epoch == 0
        plain(self)

    monkeypatch.setattr(Trainer, "_restart_broken", restart)
    _, out, _ = run("fit", "few.parquet", "-o", "broken.evband", "--config", "run.toml")
    assert "restarted from their anchor: 1 (1x)" in out


def test_ctrl_c_keeps_epochs_and_resume_ends_alike(run, folder, monkeypatch):
    from evband.training.loop import Trainer

    words = ("fit", "few.parquet", "-o", "stopped.evband", "--config", "run.toml", "--epochs", "4")
    plain = Trainer.epoch

    def interrupted(self):
        if self.state.epoch == 2:
            raise KeyboardInterrupt
        return plain(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "epoch", interrupted)
        status, _, err = run(*words)
    assert status == 130
    assert "--resume continues" in err
    assert (folder / "stopped.evband.checkpoint").exists()
    status, _, err = run(*words, "--resume", "--seed", "1")
    assert status == 2
    assert "another run" in err
    status, _, err = run(*words, "--resume")
    assert status == 0
    assert "epoch 3/4" in err
    assert "epoch 1/4" not in err
    run(*(w.replace("stopped", "straight") for w in words))
    a, b = (evband.load(folder / name) for name in ("stopped.evband", "straight.evband"))
    np.testing.assert_array_equal(a.theta_, b.theta_)


def test_kill_9_then_resume_ends_alike(folder, run):
    (folder / "long.toml").write_text(FAST.replace("epochs = 2", "epochs = 40"))
    words = ["fit", "few.parquet", "-o", "killed.evband", "--config", "long.toml"]
    code = "import evband.training.checkpoint as c; c.Checkpoint.__init__.__defaults__ = (0.0,); import evband.cli; evband.cli.main()"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen([sys.executable, "-c", code, *words], cwd=folder, env=env, stderr=subprocess.DEVNULL)
    for _ in range(3000):
        if (folder / "killed.evband.checkpoint").exists() or child.poll() is not None:
            break
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    status, _, _ = run(*words, "--resume")
    assert status == 0
    run(*(w.replace("killed", "unharmed") for w in words))
    a, b = (evband.load(folder / name) for name in ("killed.evband", "unharmed.evband"))
    np.testing.assert_array_equal(a.theta_, b.theta_)


def test_a_prior_model_is_taken_and_another_architecture_refused(run, car):
    status, _, _ = run("fit", "few.parquet", "-o", "next.evband", "--config", "run.toml", "--prior", car)
    assert status == 0
    status, _, err = run("fit", "few.parquet", "-o", "next.evband", "--prior", car)  # the default's own width
    assert status == 2
    assert "the prior model is 1x8" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("train.parquet", "-o", "x.evband", "--members", "0"), "members"),
        (("train.parquet", "-o", "x.evband", "--hz", "0"), "hz"),
        (("train.parquet", "-o", "x.evband", "--features", "speed_kmh,soc_pct"), "soc_pct cannot be a feature"),
        (("train.parquet", "-o", "x.evband", "--features", "speed_kmh,wind_ms"), "has no wind_ms"),
        (("train.parquet", "-o", "nowhere/x.evband"), "directory does not exist"),
        (("train.parquet", "-o", "x.evband", "--config", "none.toml"), "no such file"),
        (("train.parquet", "-o", "x.evband", "--config", "train.parquet"), "not valid TOML"),
        (("train.parquet", "-o", "x.evband", "--config", "wrong.toml"), "magic is not a setting"),
        (("train.parquet", "-o", "x.evband", "--prior", "train.parquet.evband"), "no such file"),
        (("none.parquet", "-o", "x.evband"), "none.parquet"),
        (("train.parquet", "-o", "x.evband", "--device", "cuda"), "no CUDA GPU"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(run, folder, monkeypatch, words, says):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    (folder / "wrong.toml").write_text("magic = 1\n")
    status, _, err = run("fit", *words)
    assert status == 2
    assert err.startswith("evband: error: ")
    assert err.count("\n") == 1
    assert says in err


def test_predict_writes_a_band_for_every_row(run, car, folder):
    status, out, _ = run("predict", car, "other.parquet", "-o", "bands.parquet", "--level", "0.8")
    assert status == 0
    assert "9 trips" in out
    table = pl.read_parquet(folder / "bands.parquet")
    columns = ["trip_id", "time_s", "mean_kw", "lower_kw", "upper_kw", "aleatoric_kw", "epistemic_kw", "warmup", "outside", "power_kw"]  # fmt: skip
    assert table.columns == columns
    assert (table["lower_kw"] < table["mean_kw"]).all()
    run("predict", car, "other.parquet", "-o", "members.csv", "--members", "--interval", "closed_form")
    wide = pl.read_csv(folder / "members.csv")
    assert {"outside_channel", "location_2", "scale_2", "nu_2"} <= set(wide.columns)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("other.parquet", "-o", "b.parquet", "--level", "90"), "between 0 and 1"),
        (("other.parquet", "-o", "b.xlsx"), ".parquet, .csv or .jsonl"),
        (("none.csv", "-o", "b.csv"), "none.csv"),
    ],
)
def test_predict_refuses(run, car, words, says):
    status, _, err = run("predict", car, *words)
    assert status == 2
    assert err.count("\n") == 1
    assert says in err


def test_a_log_is_not_a_model(run):
    status, _, err = run("predict", "train.parquet", "other.parquet", "-o", "b.csv")
    assert status == 2
    assert "not a .evband file" in err


def test_calibrate_stretches_on_given_trips_and_warns_of_training_ones(run, car, folder):
    status, out, err = run("calibrate", car, "other.parquet", "-o", "cal.evband")
    assert (status, err) == (0, "")
    assert "on 9 trips given for it" in out
    assert evband.load(folder / "cal.evband").calibration_.moving != evband.load(car).calibration_.moving
    status, _, err = run("calibrate", car, "train.parquet", "-o", "cal.evband")
    assert status == 0
    assert "9 of 9 trips were in the training or calibration data" in err
    status, _, err = run("calibrate", car, "few.parquet", "-o", "cal.evband")
    assert status == 2
    assert "at least 9 trips" in err


def test_collapse_makes_one_network_and_tells_the_cost(run, car, folder, monkeypatch):
    monkeypatch.setattr(
        "evband.export.collapse.distill.__kwdefaults__", {"steps": 3, "hidden": 8, "seed": 0, "progress": None}
    )
    status, out, _ = run("collapse", car, "other.parquet", "-o", "one.evband")
    assert status == 0
    assert "CRPS" in out
    assert evband.load(folder / "one.evband").settings_.method == "distilled"
    status, out, err = run("collapse", car, "other.parquet", "-o", "mean.evband", "--how", "average")
    assert status == 0
    assert "meaningless in general" in err
    assert "CRPS" in err
    status, _, err = run("collapse", "one.evband", "other.parquet", "-o", "two.evband")
    assert status == 2
    assert "distilled already" in err


def test_info_is_the_model_card(run, car, folder):
    status, out, _ = run("info", car)
    assert status == 0
    for word in ("t-anchor, 3 members", "9 trips", "effective mass", "drag area", "degrees of freedom", "calibration"):
        assert word in out
    status, out, _ = run("info", car, "--json")
    assert json.loads(out)["car"]["effective mass"]["unit"] == "kg"
    (folder / "cut.evband").write_bytes(car.read_bytes()[:1000])
    status, _, err = run("info", "cut.evband")
    assert status == 2
    assert "cut.evband" in err


def test_a_bar_is_drawn_on_a_terminal(monkeypatch, capsys):
    from evband.cli.progress import duration, reporting

    monkeypatch.setenv("FORCE_COLOR", "1")
    with reporting("epoch") as report:
        report(1, 2, "loss 1.0")
    assert "epoch 1/2" not in capsys.readouterr().err
    assert (duration(45.2), duration(200)) == ("45 s", "3 min 20 s")
