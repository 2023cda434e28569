"""A base install: no torch, no scikit-learn, no plotting; a fitted model is still loaded, shown, run and streamed."""

import json
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from evband.model import PowerModel, load
from tiny_car import TINY, drives

WITHOUT = """
import sys

EXTRAS = ("torch", "sklearn", "matplotlib", "plotly", "scoringrules", "pandas", "onnx", "triton")


class Forbid:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Forbid())
from evband.cli import main

main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    PowerModel(**TINY).fit(drives(10, seconds=200)).save(folder / "car.evband")
    PowerModel(**{**TINY, "method": "t-dropout"}).fit(drives(3, seconds=100)).save(folder / "dropout.evband")
    for trip in drives(2, seconds=150, seed=3):
        trip.table.drop("segment").write_csv(folder / f"{trip.trip_id.replace(' ', '_')}.csv")
    return folder


def run(folder, *arguments, given=""):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], cwd=folder, input=given, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_a_fitted_model_runs_on_the_base_install(folder):
    status, shown, problem = run(folder, "info", "car.evband", "--json")
    assert (status, problem) == (0, "")
    assert json.loads(shown)["members"] == 3
    assert run(folder, "predict", "car.evband", "drive_0.csv", "-o", "bands.csv")[0] == 0
    assert run(folder, "energy", "car.evband", "drive_0.csv", "drive_1.csv", "--json", "energy.json")[0] == 0
    assert json.loads((folder / "energy.json").read_text())[0]["mean_kwh"] > 0
    asked = ("--soc", "80", "--capacity-kwh", "40", "--route", "drive_1.csv", "--json", "range.json")
    assert run(folder, "range", "car.evband", *asked)[0] == 0
    assert json.loads((folder / "range.json").read_text())["arrival_probability"] > 0
    told = "".join(json.dumps({"utc": t, "speed_kmh": 50.0 + t}) + "\n" for t in range(4))
    status, shown, problem = run(folder, "stream", "car.evband", given=told)
    assert (status, problem) == (0, "")
    assert len(shown.splitlines()) >= 3


@pytest.mark.parametrize("name", ["car", "dropout"])
def test_its_bands_are_those_of_an_install_with_torch(folder, name):
    import torch

    from evband.network.forward import forward
    from evband.network.predict import predict

    assert run(folder, "predict", f"{name}.evband", "drive_1.csv", "-o", "bands.csv")[0] == 0
    base = pl.read_csv(folder / "bands.csv")
    model = load(folder / f"{name}.evband")
    log = pl.read_csv(folder / "drive_1.csv").with_columns(segment=pl.lit(0, pl.Int32), trip_id=pl.lit("drive 1"))
    here = model.predict(log)
    np.testing.assert_allclose(base["mean_kw"].to_numpy(), here.mean, rtol=1e-5, atol=1e-5)
    if name == "dropout":
        return
    rng = np.random.default_rng(0)
    arch = model.architecture_
    x, r = (rng.normal(size=(40, n)).astype(np.float32) for n in (arch.inputs, arch.road))
    with torch.no_grad():
        rows = (torch.from_numpy(a)[None, :, None] for a in (x, r))
        out, _ = forward(arch, torch.from_numpy(model.theta_), *rows, backend="reference")
    said = predict(arch, model.theta_, x, r, np.arange(40) == 0)
    np.testing.assert_allclose(said.mu, out.mu[:, :, 0], atol=1e-5)
    np.testing.assert_allclose(said.scale, out.scale[:, :, 0], atol=1e-5)
    np.testing.assert_allclose(said.standard.nu, out.nu, rtol=1e-5)


def test_what_needs_more_says_what_to_install(folder):
    for arguments, extra in (
        (("fit", "drive_0.csv", "-o", "new.evband"), "fit"),
        (("collapse", "car.evband", "drive_0.csv", "-o", "one.evband"), "fit"),
        (("export", "car.evband", "-o", "car.onnx"), "onnx"),
    ):
        status, _, problem = run(folder, *arguments)
        assert status == 2
        assert f'pip install "evband[{extra}]"' in problem
        assert len(problem.splitlines()) == 1


def test_info_and_the_import_are_quick(folder):
    """In processor time, since the machine may be busy; neither waits for anything else."""

    def cost(*command):
        before = os.times()
        subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(cost("-m", "evband", "info", "car.evband") for _ in range(3)) < 1.0
    started = min(cost("-c", "pass") for _ in range(3))
    assert min(cost("-c", "import evband") for _ in range(3)) < started + 0.05
    code = "import sys, evband.card, evband.model; print([m for m in ('numba', 'polars', 'scipy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
