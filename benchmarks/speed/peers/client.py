"""Peers of the benchmarks, each a process of its own, asked for one repeat at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ENVIRONMENT = ROOT / ".bench" / "peers-venv"
LOG = ENVIRONMENT.parent / "peers.log"


def python() -> Path:
    """The environment's interpreter; the environment is made where it is missing or its requirements have changed."""
    made, wanted = ENVIRONMENT / "made.txt", (HERE / "requirements.txt").read_text()
    if not made.exists() or made.read_text() != wanted:
        print("making the peers' environment (Keras, TensorFlow, JAX) ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        pip: list[str | Path] = [ENVIRONMENT / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", HERE / "requirements.txt"], check=True)
        made.write_text(wanted)
    return ENVIRONMENT / "bin" / "python"


class Peer:
    """A worker process, idle between requests."""

    def __init__(self, name: str, threads: int, interpreter: str | Path | None = None):
        """``interpreter``: by default that of the peers' environment."""
        self.name, self.version = name, ""
        LOG.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [interpreter or python(), "-m", "benchmarks.speed.peers.worker", name, str(threads)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=LOG.open("a"), text=True,
        )  # fmt: skip

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peer {self.name} has ended; see {LOG}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def prepare(self, work: str, **shape: int) -> Callable[[], None]:
        """Build the work; what comes back does it once."""
        self.version = self._ask(do="prepare", work=work, shape=shape)["version"]

        def once() -> None:
            self.seconds(1)

        return once

    def seconds(self, times: int) -> list[float]:
        """Do the prepared work that often; how long each took."""
        seconds: list[float] = self._ask(do="run", times=times)["seconds"]
        return seconds

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
