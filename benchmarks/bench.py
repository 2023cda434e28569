"""The timings that need no data, one after another: reading, a training step, a tick.

    python benchmarks/bench.py        (or: make bench)

Each prints its table and writes it over the committed one in benchmarks/results; `git diff benchmarks/results` shows both.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = ("read_speed.py", "training_step.py", "tick.py")


def main() -> None:
    """Run every script in a process of its own from the repository's root; the first that fails ends it."""
    for script in SCRIPTS:
        print(f"== {script}", flush=True)
        done = subprocess.run([sys.executable, str(HERE / script)], cwd=HERE.parent, check=False)
        if done.returncode:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
