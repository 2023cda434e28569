"""`make fuzz MINUTES=n`: attack every kind of input for n minutes, and add the counts to benchmarks/results/fuzz.csv.

    python -m benchmarks.checks.fuzz --minutes 10 [--seed S] [--kind log ...] [--out FILE]

Inputs are mutations of the seeds of tests/fuzz. Memory is capped; an input that raises anything but a foreseen EvbandError, takes over 5 s
of processor time (or 15 minutes on the wall), gives an answer that is not finite or drives the process over 1 GB is written to
tests/fuzz/cases/KIND/, where the tests take it up; a time limit that a reader takes for damage, and the memory of processes that it starts, count too. Every kind has its number of inputs in a round; the counts are written after each round,
so that a run may be stopped or killed at any time. Seconds are of processor time.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import random
import re
import resource
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "fuzz.csv"
MOST_MEMORY_KB = 1 << 20
APART = "words"  # commands import all there is, so their memory is counted in a process of their own, for a tenth of the time
FORKING = ("log", "guess", "mf4", APART)  # kinds whose inputs other processes may read
STARTED = time.localtime()
FIELDS = ("date", "version", "kind", "inputs", "taken", "faults", "seconds", "slowest_s", "memory_mb", "seed")
HEAD = "# python -m benchmarks.checks.fuzz --minutes N; every run adds its lines; seconds of processor time (of the clock before 0.2.0)\n"


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    """The options of both engines."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kind", action="append")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the counts are added")
    return parser


def main() -> None:
    options = parser_of(__doc__).parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    warnings.simplefilter("error", RuntimeWarning)  # arithmetic that goes wrong in silence
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    os.environ.setdefault("EVBAND_FUZZ_MODEL", str(seed_model()))
    from fuzz.kinds import KINDS, warm  # type: ignore[import-not-found, unused-ignore]

    seed = options.seed if options.seed is not None else int(time.time())
    until = time.monotonic() + 60.0 * options.minutes
    kinds = options.kind or [kind for kind in KINDS if kind != APART]
    counts = {kind: nothing_yet() for kind in kinds}
    generators = {kind: random.Random(f"{kind} {seed}") for kind in kinds}
    for kind in kinds:
        warm(kind)
    try:
        while time.monotonic() < until:
            for kind in kinds:
                turn(kind, generators[kind], counts[kind], KINDS[kind].round)
            write(counts, str(seed), options.out)
    except (KeyboardInterrupt, MemoryError):
        write(counts, str(seed), options.out)
    if not options.kind:
        words = [
            "--kind",
            APART,
            "--minutes",
            str(options.minutes / 10.0),
            "--seed",
            str(seed),
            "--out",
            str(options.out),
        ]
        subprocess.run([sys.executable, "-m", "benchmarks.checks.fuzz", *words], check=False)
    total, faults = (sum(int(count[name]) for count in counts.values()) for name in ("inputs", "faults"))
    print(f"{total} inputs, {faults} faults; counts added to {os.path.relpath(options.out)}")
    sys.exit(1 if faults else 0)


def seed_model() -> Path:
    """A small model, fitted once by another process: training takes memory that is not to be counted here."""
    path = ROOT / ".bench" / "fuzz.evband"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        code = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); from drives import small_model; small_model().save({str(path)!r})"
        subprocess.run([sys.executable, "-c", code], check=True)
    return path


def nothing_yet() -> dict[str, float]:
    """Counts of a kind."""
    return dict.fromkeys(("inputs", "taken", "faults", "seconds", "slowest_s"), 0.0)


def turn(kind: str, rng: random.Random, count: dict[str, float], calls: int) -> None:
    """One kind, some calls."""
    from fuzz.kinds import KINDS

    for _ in range(calls):
        if not attacked(kind, KINDS[kind].makes(rng), count) and memory_kb() > MOST_MEMORY_KB:
            raise MemoryError


def attacked(kind: str, data: bytes, count: dict[str, float]) -> bool:
    """Attack once and count it; whether nothing broke. What broke something is kept."""
    from fuzz.kinds import KINDS, attack

    each, started, why = KINDS[kind].each, time.process_time(), ""
    try:
        count["taken"] += each * attack(kind, data)
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        why = f"{type(problem).__name__}: {problem}"
    took = time.process_time() - started
    count["inputs"] += each
    count["seconds"] += took
    count["slowest_s"] = max(count["slowest_s"], took)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if own > MOST_MEMORY_KB or (kind in FORKING and memory_kb() > MOST_MEMORY_KB):
        why = why or "memory over 1 GB"
    if why:
        count["faults"] += 1
        keep(kind, data, why)
    return not why


def memory_kb() -> int:
    """The most resident memory that this process, or one that it started, has had."""
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with suppress(OSError):
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{child}/status").read_text())
            most = max(most, int(found.group(1)) if found else 0)
    return most


def keep(kind: str, data: bytes, why: str) -> None:
    name = hashlib.sha256(data).hexdigest()[:12]
    path = ROOT / "tests" / "fuzz" / "cases" / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"{kind} {name}: {why[:300]}", file=sys.stderr, flush=True)


def write(counts: dict[str, dict[str, float]], seed: str, out: Path) -> None:
    """One line per kind among those of other runs, in place of what this run wrote before."""
    from evband import __version__
    from evband.files import whole_file

    mine = {"date": time.strftime("%Y-%m-%d", STARTED), "version": __version__, "seed": seed}
    others: list[dict[str, str]] = []
    if out.exists():
        rows = csv.DictReader(line for line in out.read_text().splitlines() if not line.startswith("#"))
        others = [row for row in rows if not (mine.items() <= row.items() and row["kind"] in counts)]
    memory = memory_kb() // 1024
    with whole_file(out) as path, path.open("w", newline="") as file:
        file.write(HEAD)
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(others)
        for kind, count in counts.items():
            row: dict[str, object] = {name: int(count[name]) for name in ("inputs", "taken", "faults")}
            row |= {"seconds": round(count["seconds"]), "slowest_s": round(count["slowest_s"], 2), "memory_mb": memory}
            writer.writerow({"kind": kind, **mine, **row})


if __name__ == "__main__":
    main()
