"""From standard input to standard output, line by line, with the state kept on disk."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from evband.errors import SettingsError
from evband.files import read_bounded, write_whole
from evband.streaming.lines import LineStream

KEEP_EVERY_S = 30.0
MOST_STATE = 64 << 20  # bytes of a saved state
LONGEST = 1 << 20  # bytes of a line: more is not telemetry, and must not fill the memory


def resume(lines: LineStream, path: Path) -> None:
    """Go on from the state in `path`, if there is one."""
    if not path.exists():
        return
    try:
        saved = json.loads(read_bounded(path, MOST_STATE, SettingsError, "saved state"))
        if not isinstance(saved, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError) as problem:
        raise SettingsError(f"{path}: this is not a saved state ({problem}); remove it or name another.") from None
    lines.restore(saved)


def keep(lines: LineStream, path: Path) -> None:
    write_whole(path, json.dumps(lines.to_dict()))


class Stopped(SystemExit):
    """A signal asked the stream to end; its status is 128 + the signal's number, as shells have it."""


class _Signals:
    """SIGINT, SIGTERM and SIGHUP end the stream between two lines, never within one: its state is that of whole lines."""

    def __init__(self) -> None:
        self.waiting = False  # for input
        self.asked: int | None = None

    def __enter__(self) -> _Signals:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                if (number := getattr(signal, name, None)) is not None:
                    self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _: object) -> None:
        self.asked = number
        if self.waiting:
            self.waiting = False
            self.check()

    def check(self) -> None:
        if self.asked is not None:
            raise Stopped(128 + self.asked)


def pump(lines: LineStream, source: BinaryIO, sink: TextIO, state: Path | None = None) -> None:
    """Answer every line at once, so that `tail -f log | evband stream car.evband` is live; ends with its input.

    The state is written once before the first line, so that a place where it cannot be is noticed at the start, then every
    `KEEP_EVERY_S`, and at the end, whether the input ends or a signal ends it.
    """
    if state is not None:
        keep(lines, state)
    kept = time.monotonic()
    with _Signals() as signals:
        try:
            while raw := _next_line(source, signals):
                sink.write(lines.line(raw.decode("utf-8", "replace")) + "\n")
                sink.flush()
                for note in lines.notes():
                    print(f"evband: warning: {note}.", file=sys.stderr, flush=True)
                if state is not None and time.monotonic() - kept > KEEP_EVERY_S:
                    keep(lines, state)
                    kept = time.monotonic()
        except BrokenPipeError:  # the reader of the bands has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sink.fileno())
        finally:
            if state is not None:
                keep(lines, state)


def _next_line(source: BinaryIO, signals: _Signals) -> bytes:
    """The next line, or the beginning of an endless one; a signal is heeded here."""
    signals.waiting = True
    signals.check()
    raw = source.readline(LONGEST)
    whole = raw.endswith(b"\n") or len(raw) < LONGEST
    while not whole:
        rest = source.readline(LONGEST)
        whole = rest.endswith(b"\n") or len(rest) < LONGEST
    signals.waiting = False
    return raw
