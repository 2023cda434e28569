"""The database: its tables, made and changed by numbered steps (`PRAGMA user_version`)."""

from __future__ import annotations

import sqlite3

from evband.channels import EDGES, VALUES
from evband.errors import SettingsError
from evband.streaming.ticks import NUMBERS

BAND = NUMBERS
INPUTS = (*VALUES, *EDGES)
SECONDS = ("t", "car", "trip", "segment", *INPUTS, *BAND, "warmup", "outside")
TRIP = (
    "car", "began", "ended", "open", "distance_km", "mean_kwh", "lower_kwh", "upper_kwh", "measured_kwh", "soc_start", "soc_end",
)  # fmt: skip
MINUTE = ("speed_kmh", "power_kw", *BAND)

_FIRST = f"""
CREATE TABLE cars (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL);
CREATE TABLE trips ({", ".join(f"{name} REAL" if name != "car" else "car INTEGER NOT NULL" for name in TRIP)},
    PRIMARY KEY (car, began)) WITHOUT ROWID;
CREATE TABLE seconds ({", ".join(f"{n} INTEGER" if n in ("car", "segment", "warmup", "outside") else f"{n} REAL" for n in SECONDS)},
    PRIMARY KEY (t, car)) WITHOUT ROWID;
CREATE TABLE minutes (t REAL, car INTEGER, trip REAL, rows INTEGER, {", ".join(f"{name} REAL" for name in MINUTE)},
    PRIMARY KEY (t, car)) WITHOUT ROWID;
CREATE TABLE snapshots (car INTEGER PRIMARY KEY, at REAL, state BLOB);
CREATE TABLE routes (car INTEGER PRIMARY KEY, at REAL, driven_km REAL, route TEXT);
"""
_LEARNING = """
CREATE TABLE lessons (car INTEGER, n INTEGER, row BLOB, PRIMARY KEY (car, n)) WITHOUT ROWID;
CREATE TABLE learned (car INTEGER PRIMARY KEY, given TEXT, model BLOB);
"""
MIGRATIONS = (_FIRST, _LEARNING)  # step i brings a database from version i to i + 1; add at the end, never change one


def migrate(database: sqlite3.Connection, path: str) -> None:
    """Bring a database to the newest version, each step whole or not at all."""
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise SettingsError(f"{path}: this store was written by a newer evband (version {version}); update evband.")
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        database.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")
