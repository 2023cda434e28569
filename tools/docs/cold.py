"""Tables of cars that nobody has measured."""

from __future__ import annotations

import polars as pl

from tools.docs.trips import LOGS, Table
from tools.docs.written import number

METHODS = {"sheet": "evband", "linear": "linear, same prior", "alone": "the minutes alone", "own": "own fit"}


def cold_start(frame: pl.DataFrame) -> Table:
    """Means over cars."""
    head = ["minutes", "model", "CRPS over own fit's", "worst car", "90 % coverage", "lowest and highest", "epistemic, kW", "median trip error"]  # fmt: skip
    rows = []
    for row in sorted(frame.iter_rows(named=True), key=lambda r: (r["minutes"], list(METHODS).index(r["method"]))):
        minutes = "hours" if row["method"] == "own" else str(row["minutes"])
        ends = f"{number(row['lowest'])} to {number(row['highest'])}"
        cells = [number(row[k]) for k in ("ratio", "worst", "coverage")]
        rows.append(
            [minutes, METHODS[row["method"]], *cells, ends, number(row["epistemic_kw"]), f"{row['trip_error']:.0%}"]
        )
    return head, [r for r in rows if r[0] != "hours"] + [r for r in rows if r[0] == "hours"]


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
