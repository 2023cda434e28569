"""Write docs/reference/scikit-learn.md: scikit-learn's own checks of an estimator, what passes, what cannot and why.

    python -m tools.docs.estimator

`sklearn.utils.estimator_checks.check_estimator` runs every check on a small `PowerModel`.
"""

from __future__ import annotations

import pickle
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evband import Trips, read_trips
from evband.model import PowerModel

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scikit-learn.md"
SMALL: dict[str, Any] = {"members": 2, "epochs": 1, "hidden": 8, "window": 32, "burn_in": 8, "device": "cpu"}
HEAD = """# With scikit-learn

`PowerModel` keeps scikit-learn's habits: every setting is an argument of the constructor, `fit` returns the model,
what is learned ends in `_`, `get_params`, `set_params`, `clone`, `score`, `cross_val_score` and `GridSearchCV` work
([in a notebook](../guides/notebook.md)). It is fitted to trips, not to a matrix `X` and a vector `y`: rows of a drive
are not exchangeable, and channels are known by their names. So of scikit-learn's own list (`check_estimator`), the
checks of settings pass, and those that fit a random matrix cannot; where what they ask has a meaning for trips, it is
asked of trips instead.

Made by `python -m tools.docs.estimator` with scikit-learn {version}: {passed} of {all} checks pass.
"""


def results() -> list[dict[str, Any]]:
    """What every check said."""
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: list[dict[str, Any]] = check_estimator(PowerModel(**SMALL), on_fail=None, on_skip=None)
    return found


def why(result: dict[str, Any]) -> str:
    """What the check ran into."""
    if result["status"] == "skipped":
        return "skipped by scikit-learn itself"
    said = " ".join(str(result["exception"]).split())
    return textwrap.shorten(said.split(";")[0].split(". ")[0].replace("|", "/"), 110, placeholder=" ...")


def drives() -> Trips:
    """Two short made-up drives."""
    time_s = np.arange(120.0)
    tables = [pl.DataFrame({"time_s": time_s, "speed_kmh": 40 + 15 * np.sin(time_s / (7 + k))}) for k in range(2)]
    powered = [
        t.with_columns(power_kw=pl.col("speed_kmh") * 0.1 + pl.col("speed_kmh").diff().fill_null(0.0)) for t in tables
    ]
    return Trips(
        [trip for k, t in enumerate(powered) for trip in read_trips(t.with_columns(trip_id=pl.lit(f"drive {k}")))]
    )


def on_trips() -> dict[str, bool]:
    """What the checks ask, asked of trips."""
    trips, model = drives(), PowerModel(**SMALL)
    before = model.get_params()
    try:
        model.predict(trips)
        unfitted = False
    except ValueError as problem:  # as scikit-learn's NotFittedError is
        unfitted = "not fitted" in str(problem)
    returned = model.fit(trips) is model
    first, state = model.predict(trips).mean, sorted(vars(model))
    again = PowerModel(**SMALL).fit(trips).predict(trips).mean
    restored = pickle.loads(pickle.dumps(model)).predict(trips).mean
    return {
        "check_estimators_unfitted": unfitted,
        "check_estimators_fit_returns_self": returned,
        "check_estimators_overwrite_params, check_dont_overwrite_parameters": model.get_params() == before,
        "check_dict_unchanged": sorted(vars(model)) == state,
        "check_fit_idempotent": bool(np.array_equal(first, again)),
        "check_estimators_pickle": bool(np.array_equal(first, restored)),
        "check_fit_score_takes_y": np.isfinite(model.score(trips, None)),
    }


def page() -> str:
    import sklearn

    found = results()
    names = sorted({r["check_name"] for r in found})
    status = {name: [r for r in found if r["check_name"] == name] for name in names}
    passed = [name for name in names if all(r["status"] == "passed" for r in status[name])]
    lines = [HEAD.format(version=sklearn.__version__, passed=len(passed), all=len(names)), "## What passes", ""]
    lines += [f"- `{name}`" for name in passed]
    asked = on_trips()
    lines += ["", "## The same, asked of trips", "", "| what the check asks | on trips |", "|---|---|"]
    lines += [
        f"| `{name.replace(', ', '`, `')}` | {'holds' if holds else '**fails**'} |" for name, holds in asked.items()
    ]
    lines += ["", "## What cannot pass, and what it ran into", "", "| check | ran into |", "|---|---|"]
    for name in names:
        if name not in passed:
            first = next(r for r in status[name] if r["status"] != "passed")
            lines.append(f"| `{name}` | {why(first)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
