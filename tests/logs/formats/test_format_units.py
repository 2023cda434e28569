"""Units as apps spell them, headers, aliases and clocks."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evband.channels import VALUES, conversion, from_unit
from evband.errors import ChannelError
from evband.logs.formats import aliases, claims, clock, text, units


@given(
    channel=st.sampled_from(VALUES),
    spelled=st.sampled_from([word for words in units._SPELLINGS.values() for word in words.split()]),
    value=st.floats(-1e6, 1e6),
)
def test_every_spelled_unit_inverts(channel, spelled, value):
    unit = units.unit_for(channel, spelled)
    if unit is not None:
        scale, offset = conversion(channel, unit)
        there = from_unit(channel, np.array([value]), unit)
        np.testing.assert_allclose((there - offset) / scale, [value], rtol=1e-12, atol=1e-9)


def test_every_spelling_means_a_unit_of_some_channel():
    for words in units._SPELLINGS.values():
        for word in words.split():
            assert any(units.unit_for(channel, word) for channel in (*VALUES, "time_s")), word


@pytest.mark.parametrize(
    ("channel", "unit", "theirs", "ours"),
    [
        ("speed_kmh", "MPH", 100, 160.9344), ("speed_kmh", "Meters/second", 10, 36), ("acceleration_ms2", "g", 1, 9.80665),
        ("acceleration_ms2", "m/s²", 2, 2), ("elevation_m", "feet", 1000, 304.8), ("ambient_temp_c", "℉", 212, 100), ("ambient_temp_c", "°C", -5, -5), ("ambient_temp_c", "℃", 21, 21),
        ("motor_torque_nm", "N·m", 3, 3), ("motor_torque_nm", "lb-ft", 1, 1.3558179483), ("power_kw", "W", 1500, 1.5), ("battery_voltage_v", "mV", 1000, 1),
        ("distance_km", "miles", 1, 1.609344), ("motor_rpm", "min⁻¹", 900, 900), ("force_n", "kN", 1, 1000),
    ],
)  # fmt: skip
def test_known_conversions(channel, unit, theirs, ours):
    found = units.unit_for(channel, unit)
    assert found is not None
    np.testing.assert_allclose(from_unit(channel, np.array([float(theirs)]), found), [ours])


@pytest.mark.parametrize(
    ("channel", "unit"), [("speed_kmh", "rpm"), ("battery_voltage_v", "A"), ("speed_kmh", ""), ("speed_kmh", "furlong")]
)
def test_units_of_other_quantities_are_none(channel, unit):
    assert units.unit_for(channel, unit) is None


def test_the_shipped_table_claims_each_of_its_names():
    table = aliases.table({})
    for channel, alias in table.items():
        assert alias.low < alias.high
        for name in (*alias.names, *alias.last):
            assert alias.rank(name) is not None
            assert {c.channel for c in claims.find([("0", name, "")], table)} == {channel}


@pytest.mark.parametrize(
    "name",
    ["Average speed", "Durchschnittsgeschwindigkeit", "[ADAS] Front left wheel speed (High res.)", "[BMS] Cumulative Charge Current", "[BMS] Maximum Cell Voltage",
     "[BMS] Auxillary Battery Voltage", "OBD Module Voltage", "[ICCU] Aux. Battery Current", "[BMS] Available Discharge Power", "Battery DC Max Voltage",
     "[MCU] EOP Torque", "[ADAS] Lateral acceleration", "[BMS] Battery Inlet Temperature", "12V Batteriestrom", "[C6.Charger] Hochspannungsgleichstrom Onboardlader",
     "State of health", "[ICCU] Aux. Battery State of Charge", "PTC heater battery kW", "[MCU] Motor phase current (rms)", "Geschwindigkeit Radsensor Durchschnitt",
     "Макс. ток заряда батареи", "Напряжение ячейки батареи", "Средняя скорость", "Скорость вращения колеса", "Напряжение 12В батареи", "[EVC] 14V battery current",
     "Maksymalny prąd baterii", "Ortalama hız", "单体电池电压", "배터리 충전 전류", "Akun latausvirta"],
)  # fmt: skip
def test_what_only_sounds_alike_claims_nothing(name):
    assert [c for c, alias in aliases.table({}).items() if alias.rank(aliases.plain(name)) is not None] == []


@pytest.mark.parametrize(
    "names",
    [
        ["Kjøretøyets hastighet", "Batteristrøm", "Batterispenning", "Utetemperatur"], ["Køretøjets hastighed", "Batteristrøm", "Batterispænding", "Udetemperatur"],
        ["Ajoneuvon nopeus", "Akun virta", "Akun jännite", "Ulkolämpötila"], ["Araç hızı", "Batarya akımı", "Batarya gerilimi", "Dış sıcaklık"],
        ["车速", "电池电流", "电池电压", "环境温度"], ["차량 속도", "배터리 전류", "배터리 전압", "외기 온도"],
    ],
)  # fmt: skip
def test_names_in_more_languages(names):
    wanted = ["speed_kmh", "battery_current_a", "battery_voltage_v", "ambient_temp_c"]
    columns = zip(map(str, range(4)), names, ["km/h", "A", "V", "℃"], strict=True)
    assert {c.column: c.channel for c in claims.find(columns, aliases.table({}))} == dict(
        zip(map(str, range(4)), wanted, strict=True)
    )


def test_no_word_excludes_itself():
    for channel, alias in aliases.table({}).items():
        words = {word for group in alias.words for word in group}
        assert [(word, no) for word in words for no in alias.exclude if no in f" {word.strip()} "] == [], channel


def test_aliases_for_no_channel_are_refused():
    with pytest.raises(ChannelError, match="spede_kmh"):
        aliases.table({"spede_kmh": ["v"]})
    assert aliases.table({"wind_ms": ["Vent"]})["wind_ms"].rank("vent") is not None


@given(values=st.lists(st.floats(-1e5, 1e5).map(lambda x: round(x, 3)), min_size=1, max_size=20))
def test_decimal_commas_and_points_read_alike(values):
    points = pl.DataFrame({"0": [f"{value:.3f}" for value in values]})
    commas = pl.DataFrame({"0": [f"{value:.3f}".replace(".", ",") for value in values]})
    np.testing.assert_array_equal(text.numbers(points, ["0"]), text.numbers(commas, ["0"]))
    np.testing.assert_allclose(text.numbers(points, ["0"])["0"], values)


def test_thousands_and_blanks():
    column = pl.DataFrame({"0": ["1.234,5", "1,234.5", " 7.5", "1 234,5", "-", None, "n/a"]})
    assert text.numbers(column, ["0"])["0"].to_list() == [1234.5, 1234.5, 7.5, 1234.5, None, None, None]


@given(start=st.floats(0, 86_399), steps=st.lists(st.floats(0, 3600), min_size=1, max_size=50))
def test_unrolling_gives_back_what_midnight_took(start, steps):
    from pathlib import Path

    true = start + np.concatenate([[0.0], np.cumsum(steps)])
    got, _ = clock.unroll(Path("x"), true % clock.DAY_S, 2)
    np.testing.assert_allclose(got, true, atol=1e-6)


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        (["12:41:04.955", "12:41:05.117"], [45664.955, 45665.117]),
        (["11:59:59 AM", "12:00:01 PM"], [43199, 43201]),
        (["Fri May 22 23:59:59 EDT 2015", "Sat May 23 00:00:01 EDT 2015"], [86399, 86401]),
        (["2024-02-28T23:59:59.5Z", "2024-02-29T00:00:00.5Z"], [86399.5, 86400.5]),
        (["31.12.2023 23:59:59", "01.01.2024 00:00:01"], [86399, 86401]),
        (["31-déc.-2023 23:59:59,5", "01-janv.-2024 00:00:01,5"], [86399.5, 86401.5]),
    ],
)
def test_clocks(times, seconds):
    np.testing.assert_allclose(clock.since_first_day(pl.Series(times)), seconds)


def test_headers_split_into_name_and_unit():
    assert claims.split_unit("Speed (OBD)(km/h)") == ("Speed (OBD)", "km/h")
    assert claims.split_unit("Brake light ()") == ("Brake light", "")
    assert claims.split_unit("(x)") == ("(x)", "")
