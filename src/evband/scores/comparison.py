"""Two models on the same rows: the difference of a score as a trip-paired interval, and widths at equal coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evband.bands import Bands, check_level
from evband.errors import SettingsError, TripsError
from evband.scores import metrics
from evband.scores.evaluation import RowScores, measured, score_rows
from evband.scores.intervals import mean_interval

Array = NDArray[np.float64]
Score = Literal["crps_kw", "log_score", "interval_score", "rmse_kw", "mae_kw"]


@dataclass(frozen=True)
class Comparison:
    """a - b of one score (lower is better for all of them); `tied` = the 95 % interval over trips contains 0."""

    score: str
    a: float
    b: float
    difference: float
    interval: tuple[float, float]
    n: int
    trips: int

    @property
    def tied(self) -> bool:
        return bool(self.interval[0] <= 0 <= self.interval[1]) or bool(np.isnan(self.interval).any())

    def __str__(self) -> str:
        verdict = "tied" if self.tied else "a is better" if self.difference < 0 else "b is better"
        low, high = self.interval
        return f"{self.score}: a {self.a:.4g}, b {self.b:.4g}, a - b = {self.difference:.4g} [{low:.4g}, {high:.4g}] over {self.trips} trips: {verdict}"


def compare(a: Bands, b: Bands, score: Score = "crps_kw", level: float = 0.9) -> Comparison:
    """Compare two models on the same rows, paired by trip: Student-t over trips' mean differences weighted by length.

    Rows that are warm-up for either are left out. RMSE, which is not a mean over rows, is linearised:
    (e^2/RMSE + RMSE)/2 per row has the RMSE as its mean and its sampling error to first order (delta method).

    >>> import evband, polars as pl
    >>> drive = pl.DataFrame({"time_s": [float(t) for t in range(90)], "speed_kmh": [50.0 + t % 7 for t in range(90)]})
    >>> trips = evband.read_trips(drive.with_columns(power_kw=pl.col("speed_kmh") * 0.2 + 3.0))
    >>> bands = evband.start("Renault Zoe 52 kWh").predict(trips)
    >>> compare(bands, bands).difference
    0.0
    """
    return compare_rows(*paired_rows(a, b, level), score)


def paired_rows(a: Bands, b: Bands, level: float = 0.9) -> tuple[RowScores, RowScores]:
    """Both models' row scores on the rows they share, all of them or an error; without warm-up."""
    if a.hz != b.hz and None not in (a.hz, b.hz):
        raise TripsError(
            f"The two models are on different grids ({a.hz:g} and {b.hz:g} Hz), so their rows do not pair; fit both with one --hz."
        )
    if len(a) != len(b) or not (
        np.array_equal(a.trip_id, b.trip_id) and np.allclose(a.time_s, b.time_s, rtol=0, atol=1e-6)
    ):
        raise TripsError(
            "The two bands are not on the same trips and grid times, so their rows do not pair; predict the same trips with both."
        )
    if a.power_kw is not None and b.power_kw is not None and not np.allclose(a.power_kw, b.power_kw, equal_nan=True):
        raise TripsError(
            "The two bands carry different measured power for the same rows; predict the same trips with both."
        )
    rows_a, rows_b = score_rows(a, level), score_rows(b, level)
    keep = ~(rows_a.warmup | rows_b.warmup)
    return rows_a.where(keep), rows_b.where(keep)


def compare_rows(a: RowScores, b: RowScores, score: Score = "crps_kw") -> Comparison:
    """`compare` for row scores already computed and paired."""
    (value_a, rows_a), (value_b, rows_b) = _influence(a, score), _influence(b, score)
    if np.isnan(value_a) or np.isnan(value_b):
        raise SettingsError(
            f"One of the two methods has no {score} (quantile methods have no density); compare crps_kw."
        )
    interval = mean_interval(rows_a - rows_b, a.trip)
    return Comparison(score, value_a, value_b, value_a - value_b, interval, len(a), len(np.unique(a.trip)))


def _influence(rows: RowScores, score: Score) -> tuple[float, Array]:
    """The score, and per row values whose mean it is and whose spread over trips is its sampling error."""
    error = rows.y - rows.mean
    if score == "rmse_kw":
        root = metrics.rmse(rows.y, rows.mean)
        return root, (error**2 / root + root) / 2 if root else np.zeros_like(error)
    if score not in get_args(Score):
        raise SettingsError(f"Models are compared by one of {', '.join(get_args(Score))}, not {score!r}.")
    values = {
        "crps_kw": rows.crps,
        "log_score": -rows.log_density,
        "interval_score": rows.interval_score,
        "mae_kw": np.abs(error),
    }[score]
    return float(np.mean(values)), values


def width_at_coverage(bands: Bands, coverage: float = 0.9) -> float:
    """Mean width of the band of level `coverage` after stretching it until just that share of rows is covered.

    The only fair way to compare widths; it uses the measured power, so it compares sharpness and is not a forecast.
    """
    check_level(coverage)
    bands = bands.rows(measured(bands) & ~bands.warmup)
    needed = bands.needed_stretch(np.asarray(bands.power_kw), coverage)
    lower, upper = bands.interval(coverage)
    return float(np.quantile(needed, coverage, method="inverted_cdf")) * metrics.width(lower, upper)
