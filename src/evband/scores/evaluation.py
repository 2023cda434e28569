"""evaluate: all scores of some bands, together, by regime, by trip, and for warm-up rows apart."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.bands import Bands, check_level
from evband.errors import TripsError
from evband.scores import metrics
from evband.scores.intervals import binomial_interval, coverage_interval
from evband.scores.regimes import REGIMES, attach, regimes

if TYPE_CHECKING:
    from evband.trips import Trips

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RowScores:
    """What the scores are averages of, one value per row with measured power."""

    trip: NDArray
    warmup: NDArray[np.bool_]
    regime: NDArray
    y: Array
    mean: Array
    lower: Array
    upper: Array
    aleatoric: Array  # variances
    epistemic: Array
    log_density: Array
    crps: Array
    interval_score: Array
    pit: Array
    normal_score: Array

    @property
    def covered(self) -> NDArray[np.bool_]:
        return metrics.covered(self.y, self.lower, self.upper)

    def __len__(self) -> int:
        return len(self.y)

    def where(self, mask: NDArray[np.bool_]) -> RowScores:
        return RowScores(**{field.name: getattr(self, field.name)[mask] for field in fields(self)})


def measured(bands: Bands) -> NDArray[np.bool_]:
    """Which rows have measured power; an error if none has."""
    known = np.zeros(len(bands), bool) if bands.power_kw is None else np.isfinite(bands.power_kw)
    if not known.any():
        raise TripsError(
            "Scores need measured power, and these trips have no power_kw; give logs with power, or current and voltage."
        )
    return known


def score_rows(bands: Bands, level: float = 0.9) -> RowScores:
    """Score every row whose power was measured."""
    check_level(level)
    known = measured(bands)
    bands = bands if known.all() else bands.rows(known)
    y = np.asarray(bands.power_kw, dtype=np.float64)
    lower, upper = bands.interval(level)
    below, above = bands.members.tails(y)
    regime = regimes(bands)
    return RowScores(
        trip=bands.trip_id,
        warmup=bands.warmup,
        regime=np.full(len(y), "") if regime is None else regime,
        y=y,
        mean=bands.mean,
        lower=lower,
        upper=upper,
        aleatoric=bands.members.aleatoric,
        epistemic=bands.members.epistemic,
        log_density=bands.logpdf(y),
        crps=bands.crps(y),
        interval_score=metrics.interval_score(y, lower, upper, level),
        pit=below,
        normal_score=metrics.normal_score(below, above),
    )


def summarise(rows: RowScores, level: float) -> dict[str, Any]:
    """Every score over some rows; a score that does not exist there is None, no rows give only n = 0."""
    if not len(rows):
        return {"n": 0}
    covered = rows.covered
    scores: dict[str, Any] = {
        "n": len(rows),
        "trips": len(np.unique(rows.trip)),
        "level": level,
        "rmse_kw": metrics.rmse(rows.y, rows.mean),
        "mae_kw": metrics.mae(rows.y, rows.mean),
        "r2": metrics.r2(rows.y, rows.mean),
        "explained_variance": metrics.explained_variance(rows.y, rows.mean),
        "aleatoric_kw": metrics.root_mean(rows.aleatoric),
        "epistemic_kw": metrics.root_mean(rows.epistemic),
        "coverage": float(np.mean(covered)),
        "coverage_binomial": binomial_interval(int(covered.sum()), len(rows)),
        "coverage_trips": coverage_interval(covered, rows.trip),
        "width_kw": metrics.width(rows.lower, rows.upper),
        "standardized_variance": metrics.standardized_variance(rows.y, rows.mean, rows.aleatoric + rows.epistemic),
        "pit_variance": metrics.pit_variance(rows.normal_score),
        "log_score": metrics.log_score(rows.log_density),
        "crps_kw": float(np.mean(rows.crps)),
        "interval_score": float(np.mean(rows.interval_score)),
        "calibration_error": metrics.calibration_error(rows.pit),
    }
    return {name: _plain(value) for name, value in scores.items()}


class Scores(Mapping[str, Any]):
    """The object `evband evaluate --json` writes: read it as a dict, print it as a table."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def to_json(self) -> str:
        return json.dumps(self._values, indent=2, allow_nan=False)

    def __str__(self) -> str:
        lines = [
            f"{name:24}{_text(value)}"
            for name, value in self.items()
            if not isinstance(value, dict) and name != "by_trip"
        ]
        head = f"{'':12}{'n':>8}{'rmse_kw':>9}{'crps_kw':>9}{'coverage':>10}{'width_kw':>10}"
        parts = {**self["by_regime"], **({"warm-up": self["warmup"]} if self["warmup"]["n"] else {})}
        table = [
            f"{name:12}{part['n']:8d}{part['rmse_kw']:9.3f}{part['crps_kw']:9.3f}{part['coverage']:10.3f}{part['width_kw']:10.3f}"
            for name, part in parts.items()
        ]
        return "\n".join([*lines, *(["", head, *table] if table else [])])

    __repr__ = __str__


def evaluate(bands: Bands, trips: Trips | None = None, level: float = 0.9) -> Scores:
    """Score bands against measured power. `trips` supply power, speed and acceleration where the bands do not carry them.

    Warm-up rows (the first seconds after a reset) are scored only in `warmup`; a regime that no row is in is left out.

    >>> import evband, polars as pl
    >>> drive = pl.DataFrame({"time_s": [float(t) for t in range(90)], "speed_kmh": [50.0 + t % 7 for t in range(90)]})
    >>> trips = evband.read_trips(drive.with_columns(power_kw=pl.col("speed_kmh") * 0.2 + 3.0))
    >>> bands = evband.start("Renault Zoe 52 kWh").predict(trips)
    >>> 0.0 <= evaluate(bands)["coverage"] <= 1.0
    True
    """
    rows = score_rows(bands if trips is None else attach(bands, trips), level)
    warm, rows = rows.where(rows.warmup), rows.where(~rows.warmup)
    if not len(rows):
        raise TripsError("Every row with measured power is warm-up; scores need longer trips.")
    present = [name for name in REGIMES if np.any(rows.regime == name)]
    ids = dict.fromkeys(rows.trip.tolist())
    return Scores(
        summarise(rows, level)
        | {
            "by_regime": {name: summarise(rows.where(rows.regime == name), level) for name in present},
            "by_trip": [{"trip_id": str(name)} | summarise(rows.where(rows.trip == name), level) for name in ids],
            "warmup": summarise(warm, level),
        }
    )


def _plain(value: Any) -> Any:
    """Numbers as JSON has them: what is not finite is null, an interval is a list."""
    if isinstance(value, tuple):
        plain = [_plain(item) for item in value]
        return None if None in plain else plain
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return " .. ".join(_text(item) for item in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
