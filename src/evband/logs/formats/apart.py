"""A reader in a process of its own, for a library whose compiled code may crash on damaged bytes: the crash is then one sentence.

The process stays for the next file, and ends with this one or after a file that it did not survive. What travels is JSON and plain numbers,
never code: a file and its options there, series or one sentence back.
"""

from __future__ import annotations

import atexit
import importlib
import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from evband import errors
from evband.errors import EvbandError, LogError
from evband.trips.readings import Readings, ReadOptions

LEAST_S, S_PER_MB = 60.0, 2.0  # of processor time that a file may take
_FLOAT = np.dtype("<f8")
_LOCK = threading.Lock()
_worker: subprocess.Popen[bytes] | None = None


def read_apart(module: str, path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """What `module.parse(path, data, options)` gives, computed by another process."""
    seconds = LEAST_S + S_PER_MB * len(data) / 1e6
    asked = {"module": module, "path": str(path), "size": len(data), "aliases": dict(options.aliases), "map": options.map, "seconds": seconds,
             "dbc": None if options.dbc is None else str(options.dbc)}  # fmt: skip
    with _LOCK:
        worker = _running()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(json.dumps(asked, default=str).encode() + b"\n")
            worker.stdin.write(data)
            worker.stdin.flush()
            return _answer(worker.stdout)
        except (EOFError, OSError):
            _end()
            raise LogError(f"{path}: the library that reads such files crashed or took over {seconds:.0f} s on it; check that it is whole.") from None  # fmt: skip
        except BaseException as problem:
            if not isinstance(problem, EvbandError):
                _end()  # the rest of its answer is not to be taken for that of the next file
            raise


def _running() -> subprocess.Popen[bytes]:
    global _worker
    if _worker is None or _worker.poll() is not None:
        command = [sys.executable, "-P", "-m", "evband.logs.formats.apart"]
        _worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return _worker


@atexit.register
def _end() -> None:
    global _worker
    if _worker is not None:
        _worker.kill()
        _worker.wait()
        for pipe in (_worker.stdin, _worker.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        _worker = None


def _answer(pipe: IO[bytes]) -> list[Readings]:
    found = _line(pipe)
    if "error" in found:
        raise getattr(errors, found["error"])(found["message"])
    drives = []
    for drive in found["drives"]:
        series = {name: (_numbers(pipe, count), _numbers(pipe, count)) for name, count in drive["series"].items()}
        drives.append(Readings(drive["trip_id"], series, drive["format"], tuple(drive["notes"])))
    return drives


def _line(pipe: IO[bytes]) -> dict[str, Any]:
    line = pipe.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    found: dict[str, Any] = json.loads(line)
    return found


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


def _numbers(pipe: IO[bytes], count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.frombuffer(_exactly(pipe, count * _FLOAT.itemsize), _FLOAT).astype(np.float64)


def _limit(seconds: float) -> None:
    """From now on this process may work so long, and is then ended by the system (where that can be set)."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _serve(asking: IO[bytes], telling: IO[bytes]) -> None:
    """Read one file after the other, until there is nobody who asks."""
    while True:
        try:
            asked = _line(asking)
            data = _exactly(asking, asked["size"])
        except EOFError:
            return
        module = importlib.import_module(asked["module"])
        _limit(asked["seconds"])
        options = ReadOptions(asked["aliases"], asked["map"], Path(asked["dbc"]) if asked["dbc"] else None)
        try:
            drives = module.parse(Path(asked["path"]), data, options)
        except EvbandError as problem:
            telling.write(json.dumps({"error": type(problem).__name__, "message": str(problem)}).encode() + b"\n")
        else:
            described = [{"trip_id": drive.trip_id, "format": drive.format, "notes": drive.notes,
                     "series": {name: len(time) for name, (time, _) in drive.series.items()}} for drive in drives]  # fmt: skip
            telling.write(json.dumps({"drives": described}).encode() + b"\n")
            for drive in drives:
                for time, value in drive.series.values():
                    telling.write(np.asarray(time, _FLOAT).tobytes())
                    telling.write(np.asarray(value, _FLOAT).tobytes())
            del drives
        telling.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
