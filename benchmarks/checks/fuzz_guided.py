"""`make fuzz` with coverage: atheris (libFuzzer) changes inputs of one kind after another towards lines that no input has reached yet.

    python -m benchmarks.checks.fuzz_guided --minutes 10 [--seed S] [--kind log ...] [--out FILE]

Needs atheris, which has wheels for Linux. Each kind has its share of the minutes in a process of its own (libFuzzer ends it), begins with
seeds of tests/fuzz, and is judged as in `benchmarks.checks.fuzz`, which keeps what breaks something and adds up the counts; lines of these
runs have `atheris` before their seed. Compiled code (Numba's) and libraries are not looked into. A process ends with its first fault.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from benchmarks.checks.fuzz import ROOT, attacked, nothing_yet, parser_of, seed_model, write

LOOKED_INTO = ("evband.logs", "evband.routes", "evband.vehicles", "evband.artifact", "evband.settings", "evband.streaming.lines", "evband.streaming.saved",
               "evband.live.config", "evband.live.mqtt", "evband.live.reading", "evband.live.http", "evband.live.sources", "evband.adaptation.energy_evidence")  # fmt: skip
SEEDS = 50
WRITE_EVERY_S = 5.0


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--here", action="store_true", help="one kind in this process")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    os.environ.setdefault("EVBAND_FUZZ_MODEL", str(seed_model()))
    seed = options.seed if options.seed is not None else int(time.time())
    if options.here:
        guided(options.kind[0], options.minutes, seed, options.out)
    from fuzz.kinds import KINDS  # type: ignore[import-not-found, unused-ignore]

    kinds, broken = options.kind or list(KINDS), []
    for kind in kinds:
        words = ["--here", "--kind", kind, "--minutes", str(options.minutes / len(kinds)), "--seed", str(seed), "--out", str(options.out)]  # fmt: skip
        done = subprocess.run([sys.executable, "-m", "benchmarks.checks.fuzz_guided", *words], capture_output=True, check=False)  # fmt: skip
        if done.returncode:
            broken.append(kind)
            print(done.stderr.decode("utf-8", "replace")[-3000:], file=sys.stderr)
    print(f"{len(kinds)} kinds, {len(broken)} with a fault {' '.join(broken)}; counts added to {options.out}")
    sys.exit(1 if broken else 0)


def guided(kind: str, minutes: float, seed: int, out: Path) -> None:
    """Attack one kind; libFuzzer ends the process."""
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with atheris.instrument_imports(include=list(LOOKED_INTO), enable_loader_override=False):
        from fuzz.kinds import KINDS, warm

        rng = random.Random(f"{kind} {seed} atheris")
        for _ in range(3):
            warm(kind)
    warnings.simplefilter("error", RuntimeWarning)
    count, written = nothing_yet(), time.monotonic()

    def one(data: bytes) -> None:
        nonlocal written
        fine = attacked(kind, data, count)
        if not fine or time.monotonic() - written > WRITE_EVERY_S:
            write({kind: count}, f"atheris {seed}", out)
            written = time.monotonic()
        if not fine:
            raise AssertionError("a fault, kept in tests/fuzz/cases")

    with tempfile.TemporaryDirectory() as corpus:
        for number in range(SEEDS):
            Path(corpus, str(number)).write_bytes(KINDS[kind].makes(rng))
        limits = [f"-max_total_time={max(1, round(60 * minutes))}", f"-seed={seed % 2**31}", "-timeout=900", "-rss_limit_mb=0", "-max_len=20000", "-verbosity=0"]  # fmt: skip
        atheris.Setup([sys.argv[0], corpus, *limits], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
