"""Whether this version computes what another one does: same weights, same bands, same scores, side by side.

    python -m benchmarks.checks.same_as_before --old PATH [--data DIR] [--members 5] [--epochs 4] [--fold 0]

PATH is a checkout of the other version (`git worktree add PATH 3f40aa2`), run in a process of its own with the same
packages. Each case is fitted and predicted by both, with the same seed:

- six methods on simulated drives of one car without gaps, held-out drives predicted;
- with `--data`, t-anchor on one fold of each measured log (benchmarks.common.tasks).

The columns are the largest differences: of weights and of calibration factors, of mean and 90 % limits of the rows in kW
(with torch, and on the compiled engine without it), and of the mean CRPS in kW. The log of the e-208 has gaps: there
packed windows change training, and only then.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import numpy as np

METHODS = ("t-anchor", "t-dropout", "t-ensemble", "gaussian-anchor", "quantile-anchor", "quantile-dropout")
TASKS = {  # as in benchmarks.common.tasks, which the other version need not have: files, hz, features, name in splits.csv
    "i3_torque": ("bmw_i3_road/*.parquet", 1.0, "auto", "bmw_i3_road"),
    "i3_motion": (
        "bmw_i3_road/*.parquet",
        1.0,
        "speed_kmh,acceleration_ms2,elevation_m,ambient_temp_c",
        "bmw_i3_road",
    ),
    "tesla_road": ("tesla_model3_road/*.parquet", 1.0, "auto", "tesla_model3_road"),
    "tesla_dyno": ("tesla_model3_dyno/*.parquet", 1.0, "auto", "tesla_model3_dyno"),
    "e208": ("peugeot_e208_carscanner/raw/*.csv.gz", 0.5, "auto", "peugeot_e208_carscanner"),
}


def cases(data: Path | None, fold: int, log: Path) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Name, training trips, test trips, settings."""
    import csv

    import evband

    for method in METHODS:
        trips = evband.read_trips(log).on_grid(1.0)
        yield f"simulated {method}", trips[:10], trips[10:], {"method": method, "layers": 1, "hidden": 16}
    for name, (files, hz, features, splits) in TASKS.items() if data else ():
        assert data is not None
        with (data / "splits.csv").open() as file:
            folds = {row["trip_id"]: int(row["fold"]) for row in csv.DictReader(file) if row["log"] == splits}
        trips = evband.read_trips(str(data / files)).on_grid(hz)
        held = [t for t in trips.ids if folds[t] == fold]
        kept = [t for t in trips.ids if folds[t] != fold]
        yield f"{name} fold {fold}", trips.subset(kept), trips.subset(held), {"features": features, "hz": hz}


def compute(out: Path, data: Path | None, fold: int, members: int, epochs: int, log: Path) -> None:
    """In a process of either version: fit and predict every case."""
    import evband

    chosen: dict[str, Any] = {"members": members, "epochs": epochs, "device": "cpu"}
    if "from_base" in evband.PowerModel().get_params():  # earlier versions know no other start
        chosen["from_base"] = False
    for name, train, test, settings in cases(data, fold, log):
        model = evband.PowerModel(**(chosen | settings)).fit(train)
        calibration: Any = model.calibration_
        factors = (
            [getattr(model, "stretch_", 1.0), getattr(model, "standing_stretch_", 1.0)]
            if isinstance(calibration, str)
            else [calibration.moving, calibration.standing]
        )
        found = {"theta": np.asarray(model.theta_), "factors": np.asarray(factors), "gaps": _gaps([*train, *test])}
        model.save(out / f"{name}.evband")
        np.savez(out / f"{name}.npz", **found, **_bands(model.predict(test)))
        print(name, flush=True)


class _Forbid(MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def without_torch(models: Path, data: Path | None, fold: int, log: Path) -> None:
    """In a process that cannot import torch: predict with the models that were saved beside the results."""
    sys.meta_path.insert(0, _Forbid())
    import evband

    for name, _, test, _ in cases(data, fold, log):
        np.savez(models / f"{name}.bare.npz", **_bands(evband.load(models / f"{name}.evband").predict(test)))


def _gaps(trips: list[Any]) -> Any:
    return np.asarray(sum(trip.table["segment"].n_unique() - 1 for trip in trips))


def _bands(bands: Any) -> dict[str, Any]:
    import evband

    lower, upper = bands.interval(0.9)
    return {
        "mean": bands.mean,
        "lower": lower,
        "upper": upper,
        "aleatoric": bands.aleatoric,
        "epistemic": bands.epistemic,
        "crps": np.asarray(evband.evaluate(bands)["crps_kw"]),
    }


def compare(name: str, old: Any, new: Any, bare: Any) -> dict[str, object]:
    def most(*parts: str, new: Any = new) -> str:
        return f"{max(float(np.abs(old[p] - new[p]).max()) for p in parts):.2g}"

    same = old["theta"].shape == new["theta"].shape
    rows = ("mean", "lower", "upper", "aleatoric", "epistemic")
    return {
        "case": name,
        "gaps": int(new["gaps"]),
        "weights": most("theta") if same else "other shape",
        "factors": most("factors"),
        "rows": len(new["mean"]),
        "bands_kw": most(*rows),
        "bands_kw_without_torch": most(*rows, new=bare),
        "largest_kw": f"{float(np.abs(old['mean']).max()):.3g}",
        "crps_kw": f"{float(old['crps']):.6f}",
        "crps_difference": most("crps"),
        "crps_difference_without_torch": most("crps", new=bare),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fold", type=int, default=0)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/same_as_before.csv"))
    parser.add_argument("--compute", nargs=2, type=Path, metavar=("LOG", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--without-torch", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compute:
        log, out = given.compute
        if given.without_torch:
            without_torch(out, given.data, given.fold, log)
        else:
            compute(out, given.data, given.fold, given.members, given.epochs, log)
        return
    from benchmarks.common.results_file import show, write
    from evband.simulation.drives import simulated_log

    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        simulated_log("sedan_1", hz=1, trips=14).write_parquet(folder / "log.parquet")
        how = ["--fold", str(given.fold), "--members", str(given.members), "--epochs", str(given.epochs)]
        how += ["--data", str(given.data.resolve())] if given.data else []
        trees = {"old": given.old.resolve(), "new": Path(__file__).resolve().parents[2]}
        for side, more in (("old", []), ("new", []), ("new", ["--without-torch"])):
            (folder / side).mkdir(exist_ok=True)
            again = ["--old", text, "--compute", str(folder / "log.parquet"), str(folder / side), *how, *more]
            environment = os.environ | {"PYTHONPATH": str(trees[side] / "src")}
            subprocess.run([sys.executable, __file__, *again], env=environment, check=True)
        names = [file.stem for file in sorted((folder / "new").glob("*.evband"), key=lambda f: f.stat().st_mtime)]
        sides = ("old/{}.npz", "new/{}.npz", "new/{}.bare.npz")
        rows = [compare(name, *(np.load(folder / side.format(name)) for side in sides)) for name in names]
    note = (
        f"{given.members} members, {given.epochs} epochs; largest differences; bands: mean, limits and both deviations"
    )
    write(given.out, rows, note)
    show("same as before", rows)


if __name__ == "__main__":
    main()
