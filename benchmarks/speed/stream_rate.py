"""`evband stream` on one core: lines per second, whether its bands are those of `predict`, and what garbage does to it.

    python -m benchmarks.speed.stream_rate [--model car.evband --log drive.parquet] [--lines 40000] [--rounds 3]

By default a model of the default size, trained for one epoch on simulated drives, which costs what a trained one does. Lines
come at the grid's rate, so that each is a tick of all members, and ten times as fast, as loggers send them. Timed from the
first line to the last answer, the start of the process apart. The garbage is 10,000 lines of broken JSON, wrong types and bytes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import evband
from benchmarks.common.results_file import show, write
from evband.channels import EDGES
from evband.simulation.drives import simulated_log

GARBAGE = (b"{", b"[]", b"null", b'"text"', b"\xff\xfe\x00", b'{"utc": "x"}', b'{"speed": 3}', b'{"utc": 1e400}', b'{"utc": 5, "speed": {}}')  # fmt: skip


def lines_of(table: pl.DataFrame, count: int) -> list[bytes]:
    """The trip as JSON lines; over again as other trips until there are enough."""
    rows = [{k: v for k, v in row.items() if v is not None} for row in table.iter_rows(named=True)]
    return [
        json.dumps(
            {"utc": row["time_s"], "trip_id": i // len(rows)} | {k: v for k, v in row.items() if k != "time_s"}
        ).encode()
        for i in range(count)
        for row in [rows[i % len(rows)]]
    ]


def answers(model: Path, lines: list[bytes]) -> tuple[list[dict[str, object]], float]:
    """What a fresh process on one core answers, and the seconds from the first line to the last answer."""
    command: list[str | Path] = ["taskset", "-c", "0", Path(sys.executable).with_name("evband"), "stream", model]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"{}\n")  # an error object says that it is ready
        process.stdin.flush()
        process.stdout.readline()
        with tempfile.TemporaryFile() as data:
            data.write(b"\n".join(lines) + b"\n")
            data.seek(0)
            begin = time.perf_counter()
            with subprocess.Popen(["cat"], stdin=data, stdout=process.stdin):
                process.stdin.close()
                found = [process.stdout.readline() for _ in lines]
            seconds = time.perf_counter() - begin
    assert all(found), (found.index(b""), lines[found.index(b"")][:200])
    return [json.loads(line) for line in found], seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--log", help="a log of that model's channels")
    parser.add_argument("--lines", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.model or Path(folder) / "car.evband"
        trips = evband.read_trips(given.log or simulated_log("sedan_1", hz=10, trips=6))
        if given.model is None:
            evband.PowerModel(epochs=1, features="motion", device="cpu").fit(trips).save(path)
        model = evband.load(path)
        fine, grid = trips[0], trips[0].on_grid(model.settings_.hz)
        rows = []
        for name, table in (("a tick each", grid.table.drop("segment", *EDGES)), ("ten a tick", fine.table)):
            lines = lines_of(table, given.lines)
            rates = sorted(len(lines) / answers(path, lines)[1] for _ in range(given.rounds))
            rows.append({"lines": name, "lines_per_s": round(rates[len(rates) // 2]), "low": round(rates[0]), "high": round(rates[-1])})  # fmt: skip
        found, _ = answers(path, lines_of(fine.table, len(fine.table)))
        worst = difference(found, model.predict(fine))
        rng = np.random.default_rng(0)
        mixed = [GARBAGE[i] for i in rng.integers(0, len(GARBAGE), 10_000)]
        survived = "mean_kw" in answers(path, [*mixed, *lines_of(fine.table, 200)])[0][-1]
    write(
        Path("benchmarks/results/stream_rate.csv"), rows, f"{model.settings_.members} members of {model.settings_.layers}x{model.settings_.hidden}; one core",
        f"largest difference to predict over a whole log: {worst:.1e} kW; goes on after 10,000 lines of garbage: {survived}",
    )  # fmt: skip
    show("evband stream", rows)
    print(f"difference to predict {worst:.1e} kW; survived: {survived}")


def difference(found: list[dict[str, object]], bands: evband.Bands) -> float:
    """The largest between new answers and predicted rows, in kW."""
    new = [a for a in found if a.get("held") is False]
    names = ("mean_kw", "lower_kw", "upper_kw", "aleatoric_kw", "epistemic_kw")
    frame = bands.to_frame(0.9)
    count = min(len(new), len(frame))
    assert count > 0.95 * len(frame), (len(new), len(frame))
    return max(
        float(np.abs(np.array([a[n] for a in new[:count]], float) - frame[n].to_numpy()[:count]).max()) for n in names
    )


if __name__ == "__main__":
    main()
