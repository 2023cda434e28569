"""How long a whole fit takes, reading the log included, and how much memory.

    python -m benchmarks.speed.fit_time [--fits paper fleet] [--data DIR] [--repeats 1] [--epochs N]

- paper: 30 members, preset `paper` (300 epochs), on one simulated dynamometer run of 765 s at 10 Hz;
- fleet: 30 members, preset `default`, on 42 trips at 1 Hz: the BMW i3's where `--data` has them, else simulated ones.

Each fit has a process of its own, which has fitted a little before, so that compiling and loading compiled code is told
apart (`compile_s`: what that little fit took; nearly all of it is compiling where the cache is empty). The peak is VmHWM.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FITS = ("paper", "fleet")


def log_of(fit: str, data: Path | None, folder: Path) -> Path:
    """The log to fit, simulated where there is none."""
    i3 = data / "bmw_i3_road" / "bmw_i3_road_10hz.parquet" if data else None
    if fit == "fleet" and i3 is not None:
        return i3
    from evband.simulation.drives import simulated_log

    path = folder / f"{fit}.parquet"
    if not path.exists():
        made = simulated_log("sedan_1", hz=10, trips=1) if fit == "paper" else simulated_log("sedan_1", hz=1, trips=42)
        made.write_parquet(path)
    return path


def fit_once(fit: str, log: Path, members: int, epochs: int | None) -> dict[str, object]:
    """In this process: a little fit to have everything compiled, then the one that counts."""
    import torch

    import evband

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    how = {"preset": "paper", "hz": 10.0, "features": "S1"} if fit == "paper" else {"hz": 1.0}
    begin = time.perf_counter()
    evband.PowerModel(members=5, epochs=1, device="cpu", **how).fit(evband.read_trips(log))
    compiled = time.perf_counter() - begin
    begin = time.perf_counter()
    trips = evband.read_trips(log)
    read = time.perf_counter() - begin
    model = evband.PowerModel(members=members, epochs=epochs, device="cpu", **how).fit(trips)
    return {
        "fit": fit,
        "log": "BMW i3" if "bmw" in log.name else "simulated",
        "trips": len(trips),
        "rows": model.summary_["rows"],
        "hz": model.settings_.hz,
        "members": members,
        "network": f"{model.settings_.layers}x{model.settings_.hidden}",
        "epochs": model.summary_["epochs_run"],
        "steps": model.summary_["epochs_run"] * model.summary_["steps_per_epoch"],
        "seconds": round(time.perf_counter() - begin, 2),
        "reading_s": round(read, 2),
        "compile_s": round(compiled, 2),
        "peak_mb": peak_mb(),
    }


def peak_mb() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def in_a_process(fit: str, log: Path, members: int, epochs: int | None) -> dict[str, object]:
    once = [sys.executable, "-m", "benchmarks.speed.fit_time", "--once", fit, str(log), "--members", str(members)]
    once += ["--epochs", str(epochs)] if epochs else []
    done = subprocess.run(once, capture_output=True, text=True, check=True)
    row: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fits", nargs="+", choices=FITS, default=FITS)
    parser.add_argument("--data", type=Path, help="folder of the real logs")
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--epochs", type=int, help="fewer, to try this script")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/fit_time.csv"))
    parser.add_argument("--once", nargs=2, metavar=("FIT", "LOG"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        print(json.dumps(fit_once(given.once[0], Path(given.once[1]), given.members, given.epochs)))
        return
    from benchmarks.common.results_file import show, write  # not where memory is measured: it loads torch

    with tempfile.TemporaryDirectory() as folder:
        logs = {fit: log_of(fit, given.data, Path(folder)) for fit in given.fits}
        rows = [
            in_a_process(fit, logs[fit], given.members, given.epochs)
            for _ in range(given.repeats)
            for fit in given.fits
        ]
    write(given.out, rows, "a row per fit; seconds include reading; compile_s is apart")
    show("whole fits", rows)


if __name__ == "__main__":
    main()
