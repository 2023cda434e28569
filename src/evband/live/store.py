"""What is kept: drives, bands per second and later per minute, calibration, what was learned, routes. SQLite in WAL mode, one commit per second (at home: per step).

A process that is killed loses what came after the last commit, under two seconds, and nothing that the broker sends again. A backup is a copy of the file
(`sqlite3 FILE ".backup COPY"` while it runs). A full disk loses rows, which are counted, and nothing else.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from evband.errors import SettingsError
from evband.live.config import Store as Settings
from evband.live.engine import Advance
from evband.live.learning import Lesson
from evband.live.schema import INPUTS, MINUTE, SECONDS, TRIP, migrate

COMMIT_S, HOME_COMMIT_S = 1.0, 0.1  # a home's messages are acknowledged by the commit
CLEAN_S = 600.0
MOST_WAITING = 2000  # steps: some minutes; more means that the disk does not keep up
DAY_S = 86400.0
Work = Callable[[sqlite3.Connection], None]
_PUT_ROW = f"INSERT OR REPLACE INTO seconds ({', '.join(SECONDS)}) VALUES ({', '.join('?' * len(SECONDS))})"
_PUT_TRIP = f"INSERT OR REPLACE INTO trips ({', '.join(TRIP)}) VALUES ({', '.join('?' * len(TRIP))})"


@dataclass(frozen=True)
class _After:
    """Nothing to write; to be called once what was before it is written."""

    call: Callable[[], None]

    def __call__(self, database: sqlite3.Connection) -> None:
        pass


class Store:
    """The database of the cars `ids`; they are numbered in it for ever, whatever their order here."""

    def __init__(self, path: Path, settings: Settings, ids: list[str]) -> None:
        self.path, self._settings = path, settings
        self._queue: queue.Queue[Work] = queue.Queue(MOST_WAITING)
        self._stop = threading.Event()
        self._every_s = HOME_COMMIT_S if len(ids) <= settings.snapshot_cars else COMMIT_S
        self.lost = self.commits = 0
        self.problem: str | None = None
        try:
            with closing(self._open()) as database:
                migrate(database, str(path))
                database.executemany("INSERT OR IGNORE INTO cars (id) VALUES (?)", [(name,) for name in ids])
                known = dict(database.execute("SELECT id, number FROM cars"))
                database.commit()
        except sqlite3.DatabaseError as problem:
            raise SettingsError(
                f"{path}: the store cannot be used ({problem}); repair, move or remove the file."
            ) from None
        self.numbers = np.array([known[name] for name in ids], np.int64)
        self._segments = np.zeros(len(ids), np.int64)
        self._trip = np.full(len(ids), np.nan)
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=10.0)
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        return database

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    # Writing: from the engine's thread, done later by the store's own -------------------------------------------------

    def rows(self, advance: Advance) -> None:
        """Keep rows."""
        cars = advance.cars
        self._trip[cars[advance.first]] = advance.time[advance.first]
        self._segments[cars[advance.first]] = 0
        new = cars[advance.start & ~advance.first]
        self._segments[new] += 1
        columns = np.column_stack(
            [advance.time, self.numbers[cars], self._trip[cars], self._segments[cars], advance.values]
        )
        columns = np.column_stack([columns, advance.band, advance.warmup, advance.outside])
        self._do(lambda database: database.executemany(_PUT_ROW, columns.tolist()), len(cars))

    def resumed(self, car: int, began: float) -> None:
        """A drive goes on after a restart; in the table its rows begin another segment."""
        self._trip[car] = began
        self._segments[car] = int(time.time())

    def trip(self, car: int, values: dict[str, float | None]) -> None:
        """Keep a drive as it stands, or as it ended."""
        row = [int(self.numbers[car]), *(values.get(name) for name in TRIP[1:])]
        self._do(lambda database: database.execute(_PUT_TRIP, row))

    def no_trip(self, car: int, began: float) -> None:
        """Forget a drive in which the car never moved."""
        number = int(self.numbers[car])
        self._do(lambda database: database.execute("DELETE FROM trips WHERE car = ? AND began = ?", (number, began)))

    def snapshots(self, found: Iterable[tuple[int, float, bytes]], lessons: Iterable[tuple[int, Lesson]] = ()) -> None:
        """State of cars: number, time, JSON; and what they learned, with it or not at all."""
        rows = [(int(self.numbers[car]), at, state) for car, at, state in found]
        taught = [(int(self.numbers[car]), lesson) for car, lesson in lessons]

        def work(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", rows)
            for number, lesson in taught:
                if lesson.first == 0:
                    database.execute("DELETE FROM lessons WHERE car = ?", (number,))
                numbered = [(number, n, row) for n, row in enumerate(lesson.rows, lesson.first)]
                database.executemany("INSERT OR REPLACE INTO lessons VALUES (?, ?, ?)", numbered)
                if lesson.model is not None:
                    database.execute("INSERT OR REPLACE INTO learned VALUES (?, ?, ?)", (number, *lesson.model))

        self._do(work)

    def route(self, car: int, at: float, driven_km: float, route: str | None) -> None:
        """Keep a car's route, or that it has none."""
        number = int(self.numbers[car])
        if route is None:
            self._do(lambda database: database.execute("DELETE FROM routes WHERE car = ?", (number,)))
        else:
            row = (number, at, driven_km, route)
            self._do(lambda database: database.execute("INSERT OR REPLACE INTO routes VALUES (?, ?, ?, ?)", row))

    def delete(self, car: int) -> None:
        """Everything of a car."""
        number = int(self.numbers[car])

        def work(database: sqlite3.Connection) -> None:
            for table in ("seconds", "minutes", "trips", "snapshots", "routes", "lessons", "learned"):
                database.execute(f"DELETE FROM {table} WHERE car = ?", (number,))

        self._do(work)
        self._trip[car] = np.nan

    def after(self, work: Callable[[], None]) -> None:
        """Call this once all that was given before is committed, or could not be (a full disk must not stop a feed)."""
        self._do(_After(work), 0)

    def _do(self, work: Callable[[sqlite3.Connection], Any], rows: int = 1) -> None:
        try:
            self._queue.put_nowait(work)
        except queue.Full:
            self.lost += rows

    def _run(self) -> None:
        database, cleaned = self._open(), time.monotonic()
        while not (self._stop.is_set() and self._queue.empty()):
            began = time.monotonic()
            self._commit(database)
            if time.monotonic() - cleaned > CLEAN_S:
                cleaned = time.monotonic()
                self._guarded(lambda: self.clean(database, time.time()))
            if not self._stop.is_set():
                self._stop.wait(max(self._every_s - (time.monotonic() - began), 0.02))
        database.close()

    def _commit(self, database: sqlite3.Connection) -> None:
        waiting = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        if not waiting:
            return

        def all_of_it() -> None:
            with database:
                for work in waiting:
                    work(database)

        if self._guarded(all_of_it):
            self.commits += 1
        else:
            self.lost += len(waiting)
        for work in waiting:
            if isinstance(work, _After):
                work.call()

    def _guarded(self, work: Callable[[], None]) -> bool:
        try:
            work()
            self.problem = None
            return True
        except sqlite3.Error as problem:
            self.problem = str(problem)
            return False

    def clean(self, database: sqlite3.Connection, now: float) -> None:
        """Roll old seconds up into minutes, drop old minutes, and stay under the size by shortening what is kept."""
        s = self._settings
        keep_s, keep_m = s.seconds_days * DAY_S, s.minutes_days * DAY_S
        for _ in range(8):
            with database:
                self._roll(database, now - keep_s)
                database.execute("DELETE FROM minutes WHERE t < ?", (now - keep_m,))
            database.execute("PRAGMA incremental_vacuum")
            pages, free, size = (
                int(database.execute(f"PRAGMA {n}").fetchone()[0])
                for n in ("page_count", "freelist_count", "page_size")
            )
            if (pages - free) * size <= s.max_mb * 1e6:
                break
            keep_s, keep_m = keep_s / 2, keep_m / 2

    def _roll(self, database: sqlite3.Connection, before: float) -> None:
        before -= before % 60.0
        means = ", ".join(f"avg({name})" for name in MINUTE)
        database.execute(
            f"INSERT OR REPLACE INTO minutes (t, car, trip, rows, {', '.join(MINUTE)}) "
            f"SELECT t - mod(t, 60), car, min(trip), count(*), {means} FROM seconds WHERE t < ? GROUP BY car, t - mod(t, 60)",
            (before,),
        )
        database.execute("DELETE FROM seconds WHERE t < ?", (before,))

    # Reading: from any thread ---------------------------------------------------------------------------------------

    def _read(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=10.0)) as database:
            return database.execute(query, values).fetchall()

    def trips(self, car: int, most: int = 1000) -> list[dict[str, Any]]:
        """Drives of a car, the newest first."""
        found = self._read(
            f"SELECT {', '.join(TRIP)} FROM trips WHERE car = ? ORDER BY began DESC LIMIT ?",
            (int(self.numbers[car]), most),
        )
        return [
            {"id": f"{row[1]:.3f}"} | dict(zip(TRIP[1:], row[1:], strict=True)) | {"open": bool(row[3])}
            for row in found
        ]

    def trip_rows(self, car: int, began: float, since: float = 0.0) -> dict[str, list[Any]]:
        """The rows of one drive (`since` a time) as columns: inputs, edges and bands; empty where they were rolled up."""
        rows = self._read(
            f"SELECT {', '.join(SECONDS)} FROM seconds WHERE car = ? AND trip = ? AND t >= ? ORDER BY t",
            (int(self.numbers[car]), began, max(began, since)),
        )
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(SECONDS)
        found = {name: list(column) for name, column in zip(SECONDS, columns, strict=True)}
        kept = {
            name: column for name, column in found.items() if name not in INPUTS or any(v is not None for v in column)
        }
        return kept

    def saved(self) -> dict[int, dict[str, Any]]:
        """The last snapshot of each car that has one, by its number here."""
        return self._by_car("SELECT car, state FROM snapshots", lambda row: orjson.loads(row[1]))

    def taught(self, car: int) -> tuple[list[bytes], tuple[str, bytes] | None]:
        """(rows of the drive under way, of which model it learned and what that has become) of a car."""
        one = (int(self.numbers[car]),)
        rows = [bytes(row) for (row,) in self._read("SELECT row FROM lessons WHERE car = ? ORDER BY n", one)]
        model = self._read("SELECT given, model FROM learned WHERE car = ?", one)
        return rows, (str(model[0][0]), bytes(model[0][1])) if model else None

    def saved_routes(self) -> dict[int, tuple[float, str]]:
        """(distance driven when it was set, route) of each car that has one."""
        return self._by_car("SELECT car, driven_km, route FROM routes", lambda row: (float(row[1]), str(row[2])))

    def close_trips(self, but: dict[int, float]) -> None:
        """Close drives that a crash left open, except those that continue."""
        keep = {(int(self.numbers[car]), began) for car, began in but.items()}

        def work(database: sqlite3.Connection) -> None:
            for row in database.execute("SELECT car, began FROM trips WHERE open = 1").fetchall():
                if row not in keep:
                    database.execute("UPDATE trips SET open = 0 WHERE car = ? AND began = ?", row)

        self._do(work)

    def _by_car(self, query: str, value: Callable[[tuple[Any, ...]], Any]) -> dict[int, Any]:
        here = {int(number): i for i, number in enumerate(self.numbers.tolist())}
        found = {}
        for row in self._read(query, ()):
            if row[0] in here:
                try:
                    found[here[row[0]]] = value(row)
                except (ValueError, TypeError):  # a damaged one: the car starts anew
                    continue
        return found
