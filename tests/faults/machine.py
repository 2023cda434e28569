"""Commands on machines that fail: run with little room, without the rights of root, killed, and what they must leave behind."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

EVBAND = [sys.executable, "-m", "evband"]
TIMES = int(os.environ.get("EVBAND_FAULTS", "3"))  # of what is random
_DROP, _RIGHTS = 24, (1, 2)  # PR_CAPBSET_DROP; CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def run(*words: object, cwd: Path, **how: Any) -> subprocess.CompletedProcess[str]:
    command = [*EVBAND, *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=600, **how)


def begin(*words: object, **how: Any) -> subprocess.Popen[bytes]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | how
    return subprocess.Popen([*EVBAND, *map(str, words)], **quiet)


def one_sentence(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2, done.stderr
    errors = [
        line
        for line in done.stderr.splitlines()
        if "warning" not in line
        and not line.startswith("evband: serving")
        and not line.startswith(("cars ", "evband: cars"))
    ]
    assert len(errors) == 1, done.stderr
    assert errors[0].startswith("evband: error: ")


def room(size: int) -> Callable[[], None]:
    """In the child: no file may grow over `size` bytes, as on a disk that is nearly full."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def ordinary() -> None:
    """In the child: root without the right to write and read whatever is closed; anybody else is ordinary already."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for right in _RIGHTS:
            if libc.prctl(_DROP, right, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "rights cannot be dropped")


def leftovers(folder: Path, before: set[str]) -> list[str]:
    return sorted(set(os.listdir(folder)) - before)


def files(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, by its name from there."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
