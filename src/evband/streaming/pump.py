"""From standard input to standard output, line by line, with the state kept on disk."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import BinaryIO, TextIO

from evband.errors import SettingsError
from evband.files import whole_file
from evband.streaming.lines import LineStream

KEEP_EVERY_S = 30.0
LONGEST = 1 << 20  # bytes of a line: more is no telemetry, and must not fill the memory


def resume(lines: LineStream, path: Path) -> None:
    """Go on from the state in `path`, if there is one."""
    if not path.exists():
        return
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(saved, dict):
            raise ValueError("no object")
    except (OSError, ValueError, RecursionError) as problem:
        raise SettingsError(f"{path}: this is no saved state ({problem}); remove it or name another.") from None
    lines.restore(saved)


def keep(lines: LineStream, path: Path) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(lines.to_dict()), encoding="utf-8")


def pump(lines: LineStream, source: BinaryIO, sink: TextIO, state: Path | None = None) -> None:
    """Answer every line at once, so that `tail -f log | evband stream car.evband` is live; ends with its input."""
    kept = time.monotonic()
    try:
        while raw := source.readline(LONGEST):
            whole = raw.endswith(b"\n") or len(raw) < LONGEST
            while not whole:  # the rest of an endless line
                rest = source.readline(LONGEST)
                whole = rest.endswith(b"\n") or len(rest) < LONGEST
            sink.write(lines.line(raw.decode("utf-8", "replace")) + "\n")
            sink.flush()
            if state is not None and time.monotonic() - kept > KEEP_EVERY_S:
                keep(lines, state)
                kept = time.monotonic()
    except BrokenPipeError:  # whoever read the bands has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sink.fileno())
    finally:
        if state is not None:
            keep(lines, state)
