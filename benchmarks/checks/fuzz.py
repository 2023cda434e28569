"""`make fuzz MINUTES=n`: attack every kind of input for n minutes, and add the counts to benchmarks/results/fuzz.csv.

    python -m benchmarks.checks.fuzz --minutes 10 [--seed S] [--kind log ...]

Inputs are mutations of the seeds of tests/fuzz. Memory is capped; an input that raises anything but a foreseen EvbandError, takes over 5 s,
gives an answer that is not finite or drives the process over 1 GB is written to tests/fuzz/cases/KIND/, where the tests take it up.
Kinds take turns of some seconds, so that a run may be stopped at any time; the counts of finished turns are kept.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import random
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "fuzz.csv"
MOST_MEMORY_KB = 1 << 20
TURN_S = 10.0
FIELDS = ("date", "version", "kind", "inputs", "taken", "faults", "seconds", "slowest_s", "memory_mb", "seed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kind", action="append")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    warnings.simplefilter("error", RuntimeWarning)  # arithmetic that goes wrong in silence
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    os.environ.setdefault("EVBAND_FUZZ_MODEL", str(seed_model()))
    from fuzz.kinds import KINDS  # type: ignore[import-not-found, unused-ignore]

    seed = options.seed if options.seed is not None else int(time.time())
    until = time.monotonic() + 60.0 * options.minutes
    counts = {
        kind: dict.fromkeys(("inputs", "taken", "faults", "seconds", "slowest_s"), 0.0)
        for kind in options.kind or KINDS
    }
    generators = {kind: random.Random(f"{kind} {seed}") for kind in counts}
    try:
        while time.monotonic() < until:
            for kind, count in counts.items():
                turn(kind, generators[kind], count, min(TURN_S, until - time.monotonic()))
    except KeyboardInterrupt:
        pass
    write(counts, seed)
    sys.exit(1 if any(count["faults"] for count in counts.values()) else 0)


def seed_model() -> Path:
    """A small model, fitted once by another process: training takes memory that is not to be counted here."""
    path = ROOT / ".bench" / "fuzz.evband"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        code = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); from drives import small_model; small_model().save({str(path)!r})"
        subprocess.run([sys.executable, "-c", code], check=True)
    return path


def turn(kind: str, rng: random.Random, count: dict[str, float], seconds: float) -> None:
    """One kind for some seconds."""
    from fuzz.kinds import KINDS, attack

    takes, makes, each = KINDS[kind]
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        data = makes(rng)
        started = time.monotonic()
        try:
            count["taken"] += each * attack(takes, data)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:
            count["faults"] += 1
            keep(kind, data, f"{type(problem).__name__}: {problem}")
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MOST_MEMORY_KB:
            count["faults"] += 1
            keep(kind, data, "memory over 1 GB")
            write({kind: count}, 0)
            sys.exit(1)
        count["inputs"] += each
        count["slowest_s"] = max(count["slowest_s"], time.monotonic() - started)
    count["seconds"] += time.monotonic() - begun


def keep(kind: str, data: bytes, why: str) -> None:
    name = hashlib.sha256(data).hexdigest()[:12]
    path = ROOT / "tests" / "fuzz" / "cases" / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"{kind} {name}: {why[:300]}", file=sys.stderr, flush=True)


def write(counts: dict[str, dict[str, float]], seed: int) -> None:
    """One line per kind, added to those of other runs."""
    from evband import __version__

    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        if fresh:
            file.write("# python -m benchmarks.checks.fuzz --minutes N; every run adds its lines\n")
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        for kind, count in counts.items():
            row: dict[str, float] = {name: int(count[name]) for name in ("inputs", "taken", "faults")}
            row |= {"seconds": round(count["seconds"]), "slowest_s": round(count["slowest_s"], 2), "memory_mb": memory}
            writer.writerow(
                {"date": time.strftime("%Y-%m-%d"), "version": __version__, "kind": kind, "seed": seed, **row}
            )
    total = sum(int(count["inputs"]) for count in counts.values())
    print(
        f"{total} inputs, {sum(int(count['faults']) for count in counts.values())} faults; counts added to {os.path.relpath(RESULTS)}"
    )


if __name__ == "__main__":
    main()
