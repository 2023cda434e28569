"""Torque Pro's log, by small logs written here in the app's manner."""

from pathlib import Path

import numpy as np
import pytest

from evband.errors import LogError
from evband.logs.formats import torque_pro
from evband.trips.readings import ReadOptions

HEADER = "GPS Time, Device Time, Longitude, Latitude,GPS Speed (Meters/second), Altitude, Bearing, G(x),Speed (OBD)(km/h),Battery Current(A),Battery DC Voltage(V)\n"


def read(text):
    data = text.encode()
    assert torque_pro.detect(data[:65536])
    return torque_pro.read(Path("trackLog.csv"), data, ReadOptions())[0]


def row(clock, *values):
    return f"Sun Oct 05 14:22:01 PDT 2026,{clock},-118.1,34.2,10,500,90.0,0.1,{','.join(values)}\n"


def test_dashes_are_missing_and_obd_speed_comes_before_gps():
    drive = read(
        HEADER + row("05-Oct-2026 14:22:01.100", "-", "-", "-") + row("05-Oct-2026 14:22:02.100", "38", "12.5", "390")
    )
    start = 14 * 3600 + 22 * 60 + 1.1
    np.testing.assert_allclose(drive.series["speed_kmh"], [[start + 1], [38]])
    np.testing.assert_allclose(drive.series["elevation_m"], [[start, start + 1], [500, 500]])
    assert drive.trip_id == "trackLog"
    assert "acceleration_ms2" not in drive.series  # the phone's axes are not the car's


@pytest.mark.parametrize("month", ["Oct", "Okt", "okt.", "ott", "paź"])
def test_midnight_by_date_in_any_language(month):
    drive = read(
        HEADER
        + row(f"05-{month}-2026 23:59:59.000", "1", "1", "390")
        + row(f"06-{month}-2026 00:00:01.000", "2", "1", "390")
    )
    np.testing.assert_allclose(np.diff(drive.series["speed_kmh"][0]), [2])


def test_a_new_header_in_the_middle_starts_a_section():
    other = "GPS Time, Device Time, Longitude, Latitude,Battery Current(A),Speed (OBD)(km/h)\n"
    text = HEADER + row("05-Oct-2026 14:00:00.000", "10", "1", "390") + HEADER + other
    drive = read(text + "x,05-Oct-2026 15:00:00.000,1,2,7,20\n")
    np.testing.assert_allclose(drive.series["speed_kmh"], [[50400, 54000], [10, 20]])
    np.testing.assert_allclose(drive.series["battery_current_a"][1], [1, 7])


def test_mph_and_gps_only():
    drive = read("Device Time,Longitude,Latitude,Speed (OBD)(mph)\n2024-01-01 12:00:00.000,1,2,10\n")
    assert drive.series["speed_kmh"][1][0] == pytest.approx(16.09344)
    drive = read("GPS Time, Device Time, Longitude, Latitude,GPS Speed (Meters/second)\na,2024-01-01 12:00:00,1,2,10\n")
    assert drive.series["speed_kmh"][1][0] == pytest.approx(36)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER, "no rows"),
        (HEADER + row("05-Oct-2026 14:00:09.000", "1", "1", "1") + row("05-Oct-2026 14:00:01.000", "1", "1", "1"), "line 3 time runs backwards"),
        (HEADER + row("yesterday", "1", "1", "1"), "cannot be read"),
        ("Device Time,Longitude,Latitude,Sped\n2024-01-01 12:00:00.000,1,2,10\n", "nearest is 'Sped'"),
    ],
)  # fmt: skip
def test_bad_logs(text, words):
    with pytest.raises(LogError, match=words):
        read(text)
