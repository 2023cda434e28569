"""Coordinates of logs: kept with readings as logged, never on a grid, and elevation along them from tiles."""

import numpy as np
import polars as pl
import pytest

import evband
from evband.errors import LogError

ROWS = 601
LAT = 47.1 + np.arange(ROWS) * 2e-4  # 22 m per second to the north


def drive(**columns):
    time = np.arange(float(ROWS))
    own = {"speed_kmh": np.full(ROWS, 80.06), "latitude_deg": LAT, "longitude_deg": np.full(ROWS, 9.5)}
    return pl.DataFrame({"time_s": time, **own, **columns})


@pytest.fixture
def hills(tmp_path):
    """A tile that rises by 400 m per degree to the north, with 3 m of noise and one absurd pixel."""
    side = 1201
    rng = np.random.default_rng(0)
    raster = np.linspace(900.0, 500.0, side)[:, None] + rng.normal(0.0, 3.0, (side, side))
    raster[1020, 590:610] = 8000.0
    raster.astype(">i2").tofile(tmp_path / "N47E009.hgt")
    return tmp_path


def test_elevation_comes_from_tiles_where_a_log_has_none(hills):
    (trip,) = evband.read_trips(drive(), dem=hills)
    height = trip.table["elevation_m"].to_numpy()
    assert height == pytest.approx(500.0 + 400.0 * (LAT - 47.0), abs=6.0)
    assert np.abs(np.diff(height)).max() / 22.24 < 0.05, "slopes of tile noise are smoothed away"
    assert "tiles" in " ".join(trip.report.notes)
    (own,) = evband.read_trips(drive(elevation_m=np.zeros(ROWS)), dem=hills)
    assert not own.table["elevation_m"].to_numpy().any()


def test_coordinates_stay_with_readings_and_leave_the_grid_alone():
    lost = LAT.copy()
    lost[200:400] = 0.0  # no fix
    east = np.where(lost == 0.0, 0.0, 9.5)
    (trip,) = evband.read_trips(drive(latitude_deg=lost, longitude_deg=east))
    (plain,) = evband.read_trips(drive().drop("latitude_deg", "longitude_deg"))
    assert trip.table["latitude_deg"].null_count() == 200
    assert trip.on_grid(1.0).table.equals(plain.on_grid(1.0).table)
    again = evband.Trips([trip]).to_polars()
    (read,) = evband.read_trips(again)
    assert read.table.equals(trip.table)


def test_what_tiles_cannot_do_is_one_sentence(hills):
    with pytest.raises(LogError, match="neither elevation nor coordinates"):
        evband.read_trips(drive().drop("latitude_deg"), dem=hills)
    with pytest.raises(LogError, match=r"add N48E009\.hgt"):
        evband.read_trips(drive(latitude_deg=LAT + 1.0), dem=hills)
