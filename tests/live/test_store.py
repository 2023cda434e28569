"""The store: migrations, roll-up by age and size, a full or damaged disk."""

import sqlite3

import numpy as np
import pytest

from evband.errors import SettingsError
from evband.live.config import Store as Settings
from evband.live.engine import CHANNELS, Advance
from evband.live.schema import MIGRATIONS
from evband.live.store import Store

NOW = 1_790_000_000.0


def rows(count, start=NOW, car=0):
    n = count
    values = np.full((n, len(CHANNELS) + 2), np.nan)
    values[:, 0] = 50.0
    band = np.tile([10.0, 8.0, 12.0, 1.0, 0.5], (n, 1))
    first = np.zeros(n, bool)
    first[0] = True
    none = np.zeros(n, bool)
    return Advance(np.full(n, car), start + np.arange(n), values, first, first, band, none, none)


def test_old_seconds_become_minutes_and_old_minutes_go(tmp_path):
    store = Store(tmp_path / "s.sqlite", Settings(seconds_days=1.0, minutes_days=10.0), ["a"])
    store.rows(rows(600, NOW - 2 * 86400.0))
    store.rows(rows(60, NOW - 60.0))
    database = store._open()
    store._commit(database)
    store.clean(database, NOW)
    assert database.execute("SELECT count(*) FROM seconds").fetchone() == (60,)
    minutes = database.execute("SELECT rows, mean_kw, lower_kw FROM minutes").fetchall()
    assert sum(m[0] for m in minutes) == 600
    assert {m[1:] for m in minutes} == {(10.0, 8.0)}
    store.clean(database, NOW + 20 * 86400.0)
    assert database.execute("SELECT count(*) FROM minutes").fetchone()[0] <= 2
    database.close()


def test_the_size_is_kept_by_keeping_less(tmp_path):
    store = Store(tmp_path / "s.sqlite", Settings(seconds_days=30.0, max_mb=2), ["a"])
    database = store._open()
    for day in range(20):
        store.rows(rows(2000, NOW - day * 86400.0 - 3000.0))
        store._commit(database)
    store.clean(database, NOW)
    pages, free, size = (
        database.execute(f"PRAGMA {n}").fetchone()[0] for n in ("page_count", "freelist_count", "page_size")
    )
    assert (pages - free) * size <= 2e6
    assert database.execute("SELECT count(*) FROM seconds").fetchone()[0] > 0
    database.close()


def test_a_newer_or_damaged_file_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "s.sqlite"
    Store(path, Settings(), ["a"])
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    database.close()
    with pytest.raises(SettingsError, match="newer evband"):
        Store(path, Settings(), ["a"])
    path.write_bytes(b"nonsense" * 1000)
    with pytest.raises(SettingsError, match="cannot be used"):
        Store(path, Settings(), ["a"])


def test_a_write_that_fails_is_counted_and_the_next_goes_on(tmp_path):
    store = Store(tmp_path / "s.sqlite", Settings(), ["a"])
    database = store._open()
    database.execute("PRAGMA max_page_count = 20")  # as a full disk
    store.rows(rows(5000))
    store._commit(database)
    assert store.lost == 1
    assert "full" in store.problem
    database.execute("PRAGMA max_page_count = 1000000")
    store.rows(rows(50))
    store._commit(database)
    assert store.problem is None
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("SELECT count(*) FROM seconds").fetchone() == (50,)
    database.close()


def test_cars_keep_their_numbers_whatever_their_order(tmp_path):
    first = Store(tmp_path / "s.sqlite", Settings(), ["a", "b"])
    second = Store(tmp_path / "s.sqlite", Settings(), ["c", "b", "a"])
    assert second.numbers[2] == first.numbers[0]
    assert second.numbers[1] == first.numbers[1]
