"""Tables of cars that nobody has measured."""

from __future__ import annotations

import polars as pl

from tools.docs.trips import LOGS, Table
from tools.docs.written import number

METHODS = {
    "sheet": "evband", "linear": "linear, same prior", "alone": "fit on the minutes alone", "squares": "least squares on them",
    "own": "own fit", "climatology": "climatology",
}  # fmt: skip
LAST = ("own", "climatology")  # know more than minutes of the car


def cold_start(frame: pl.DataFrame) -> Table:
    """Means over cars."""
    head = [
        "minutes", "model", "CRPS over own fit's", "worst car", "90 % coverage", "lowest and highest", "epistemic, kW",
        "median trip error", "coverage of trip energy",
    ]  # fmt: skip
    rows = []
    order = sorted(frame.iter_rows(named=True), key=lambda r: (r["minutes"], list(METHODS).index(r["method"])))
    for row in [r for r in order if r["method"] not in LAST] + [r for r in order if r["method"] in LAST]:
        ends = "-" if row["lowest"] is None else f"{number(row['lowest'])} to {number(row['highest'])}"
        error = "-" if row["trip_error"] is None else f"{row['trip_error']:.0%}"
        minutes = "hours" if row["method"] in LAST else str(row["minutes"])
        cells = [number(row[k]) for k in ("ratio", "worst", "coverage")]
        rows.append([
            minutes, METHODS[row["method"]], *cells, ends, number(row["epistemic_kw"]), error, number(row["energy_coverage"])
        ])  # fmt: skip
    return head, rows


def wrong_mass(frame: pl.DataFrame) -> Table:
    """Sheets that are off in mass."""
    head = [
        "mass on the sheet",
        "minutes",
        "moves like",
        "within 5 %",
        "median error",
        "largest",
        "90 % coverage",
        "lowest car",
        "epistemic, kW",
    ]
    names = ("moves_like", "within", "median_error", "largest_error", "coverage", "lowest", "epistemic_kw")
    return head, [
        [f"{row['sheet']:.0%}", str(row["minutes"]), *(f"{row[k]:.0%}" for k in names[:4]), *(number(row[k]) for k in names[4:])]
        for row in frame.iter_rows(named=True)
    ]  # fmt: skip


def learning_curves(frame: pl.DataFrame) -> Table:
    """CRPS and coverage of every car, by minutes."""
    budgets = (0, 5, 15, 60)
    head = ["car", *(f"{m} min" for m in budgets), *(f"alone, {m} min" for m in budgets[1:]), "own fit, kW"]
    rows = []
    for car in frame["car"].unique(maintain_order=True):
        own = frame.filter(pl.col("car") == car)

        def cell(method: str, minutes: int, own: pl.DataFrame = own) -> str:
            row = own.filter((pl.col("method") == method) & (pl.col("minutes") == minutes)).row(0, named=True)
            return f"{number(row['ratio'])} ({number(row['coverage'])})"

        fit = own.filter(pl.col("method") == "own")["crps_kw"][0]
        cells = [*(cell("sheet", m) for m in budgets), *(cell("alone", m) for m in budgets[1:])]
        rows.append([LOGS.get({"i3": "i3_motion"}.get(car, car), car), *cells, number(fit)])
    return head, rows
