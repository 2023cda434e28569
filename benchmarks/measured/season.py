"""From summer into winter: a model of the BMW i3's summer trips meets its winter trips, with and without online calibration.

    python -m benchmarks.measured.season --data ../shared/data [--members 15] [--model .bench/season.evband]

Winter's error is mostly a bias, the heater, which no summer trip shows. The winter trips are streamed in their order: the mean
and the 90 % band of each row are corrected by what the rows before it measured (`evband.calibration.online`). `state` says whether what was
learned is carried from trip to trip or forgotten at each start. Least squares has the plain road-load features, with ambient
temperature, which takes its mean and its scale far beyond what summer showed, and without. The intervals are the honest ones over
trips; `interval_score_less` is the row-paired difference to least squares without ambient and with an offset, the strongest
simple rival, under the same `state`. Rows after 30 s of warm-up. The last row is the uncalibrated model on its own summer
trips, each predicted by the members that never saw it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evband
from benchmarks.common.results_file import Row, show, write
from benchmarks.common.tasks import TASKS, trips_of
from evband.bands import Bands
from evband.calibration.online import OnlineCalibration
from evband.model import PowerModel
from evband.preparing import prepare
from evband.rivals import LeastSquares
from evband.scores import coverage_interval, mean_interval
from evband.scores.metrics import interval_score
from evband.trips import Trips

LEVEL = 0.9
PEER = ("least squares, no ambient", "offset")  # whom the others are paired with
FIRST_S = 600.0
WAYS = {"none": None, "offset": {"gamma": 0.0}, "offset + ACI": {}}  # -> settings of OnlineCalibration
Array = NDArray[np.float64]


def seasons(data: Path) -> tuple[Trips, Trips]:
    """(summer, winter), each in the order driven."""
    trips = trips_of(TASKS["i3_torque"], data)
    summer, winter = (sorted(t for t in trips.ids if t.startswith(start)) for start in ("TripA", "TripB"))
    return trips.subset(summer), trips.subset(winter)


def streamed(bands: Bands, settings: dict[str, float], carry: bool) -> tuple[Array, Array, Array]:
    """Mean, lower and upper end of every row, each corrected before its own power was seen."""
    assert bands.power_kw is not None
    online = OnlineCalibration(LEVEL, **settings)
    lower, upper = bands.interval(LEVEL)
    rows, last = [], None
    for trip, mean, low, high, power in zip(bands.trip_id, bands.mean, lower, upper, bands.power_kw, strict=True):
        if trip != last and not carry:
            online.reset()
        last = trip
        rows.append(online.band(mean, low, high))
        online.observe(power)
    mean, low, high = np.array(rows).T
    return mean, low, high


def since_start(bands: Bands) -> Array:
    """Seconds since each row's trip began."""
    _, trip = np.unique(bands.trip_id, return_inverse=True)
    begin = np.full(trip.max() + 1, np.inf)
    np.minimum.at(begin, trip, bands.time_s)
    return bands.time_s - begin[trip]


def scores(bands: Bands, given: tuple[Array, Array, Array]) -> tuple[Row, Array]:
    """The row of a way to correct, and the interval score of every row that was scored."""
    y = np.asarray(bands.power_kw)
    use = np.isfinite(y) & ~bands.warmup
    y, trip, first = y[use], bands.trip_id[use], since_start(bands)[use] < FIRST_S
    mean, low, high = (values[use] for values in given)
    covered, score = (low <= y) & (y <= high), interval_score(y, low, high, LEVEL)
    between, at_first = coverage_interval(covered, trip), coverage_interval(covered[first], trip[first])
    values = {
        "first_coverage": covered[first].mean(),
        "first_low": at_first[0],
        "first_high": at_first[1],
        "first_interval_score": score[first].mean(),
        "coverage": covered.mean(),
        "low": between[0],
        "high": between[1],
        "interval_score": score.mean(),
        "width_kw": (high - low).mean(),
        "rmse_kw": np.sqrt(np.mean((y - mean) ** 2)),
        "bias_kw": (y - mean).mean(),
        "infinite_or_empty": np.mean(~(np.isfinite(high - low) & (high > low))),
        "epistemic_kw": np.sqrt(np.mean(bands.epistemic[use] ** 2)),
        "outside": bands.outside[use].mean(),
    }
    return {"n": len(y), "trips": len(np.unique(trip))} | {k: f"{v:.4g}" for k, v in values.items()}, score


def table(models: dict[str, Bands]) -> list[Row]:
    """Every model with every way to correct it, with what was learned carried on and forgotten."""
    rows: list[Row] = []
    for carry in (True, False):
        kept: dict[tuple[str, str], tuple[Row, Array]] = {}
        for model, bands in models.items():
            for way, settings in WAYS.items():
                if settings is None:
                    kept[model, way] = scores(bands, (bands.mean, *bands.interval(LEVEL)))
                else:
                    kept[model, way] = scores(bands, streamed(bands, settings, carry))
        peer = kept[PEER][1]
        bands = models["evband"]
        trip = bands.trip_id[np.isfinite(np.asarray(bands.power_kw)) & ~bands.warmup]
        for (model, way), (row, score) in kept.items():
            less, (low, high) = float((score - peer).mean()), mean_interval(score - peer, trip)
            state = {"state": "-" if way == "none" else "carried" if carry else "each trip"}
            paired = {"interval_score_less": f"{less:+.3f}", "less_low": f"{low:+.3f}", "less_high": f"{high:+.3f}"}
            if carry or way != "none":
                rows.append({"season": "winter", "model": model, "online": way, **state, **row, **paired})
    return rows


def fitted(trips: Trips, path: Path | None, **settings: Any) -> PowerModel:
    """A model of these trips, read from `path` if it is there, else fitted (and left there)."""
    if path is not None and path.exists():
        return evband.load(path)
    model = PowerModel(**settings).fit(trips)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--members", type=int, default=15)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/season.csv"))
    given = parser.parse_args()
    summer, winter = seasons(given.data)
    model = fitted(summer, given.model, members=given.members)
    no_ambient = ",".join(c for c in model.feature_map_.channels if c != "ambient_temp_c")
    rows = table(
        {
            "evband": model.predict(winter),
            "least squares": LeastSquares(ours=False).fit(summer).predict(winter),
            "least squares, no ambient": LeastSquares(features=no_ambient, ours=False).fit(summer).predict(winter),
        }
    )
    own = model.out_of_bag(prepare(summer, model.settings_))
    assert own is not None
    row, _ = scores(own, (own.mean, *own.interval(LEVEL)))
    nothing = dict.fromkeys(("interval_score_less", "less_low", "less_high"), "")
    rows.append({"season": "summer", "model": "evband", "online": "none", "state": "-", **row, **nothing})
    show("summer to winter", rows)
    note = (
        f"BMW i3 with torque, 1 Hz: {len(summer)} summer trips to fit, {len(winter)} winter trips to stream; "
        f"{len(model.theta_)} members, temperature {model.settings_.temperature:g}, seed 0"
    )
    write(given.out, rows, note)


if __name__ == "__main__":
    main()
