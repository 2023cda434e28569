"""Car Scanner's exports, by small logs written here in the app's manner."""

from pathlib import Path

import numpy as np
import pytest

from evband.errors import LogError
from evband.logs.formats import car_scanner_long, car_scanner_wide
from evband.trips.readings import Readings, ReadOptions

HEADER = '"SECONDS";"PID";"VALUE";"UNITS";'


def long(
    rows, header=HEADER, tail=";", end="\r\n", name="2026-03-20 18-31-35.csv.gz", encoding="utf-8", **options
) -> Readings:
    body = [header, *(";".join(f'"{cell}"' for cell in row) + tail for row in rows)]
    data = (end.join(body) + end).encode(encoding)
    assert car_scanner_long.detect(data[:65536])
    assert not car_scanner_wide.detect(data[:65536])
    return car_scanner_long.read(Path(name), data, ReadOptions(**options))[0]


def wide(text, name="2023-11-19_12-40-45.csv", encoding="utf-8", **options) -> Readings:
    data = text.encode(encoding)
    assert car_scanner_wide.detect(data[:65536])
    assert not car_scanner_long.detect(data[:65536])
    return car_scanner_wide.read(Path(name), data, ReadOptions(**options))[0]


def test_long_reads_each_channel_at_its_own_instants():
    drive = long(
        [
            (10.0, "Vehicle speed", 36, "km/h"),
            (10.5, "[BMS] Battery Current", 20, "A"),
            (11, "Vehicle speed", 72, "km/h"),
        ]
    )
    assert drive.trip_id == "2026-03-20 18-31-35"
    assert drive.format == "Car Scanner long"
    np.testing.assert_array_equal(drive.series["speed_kmh"], [[10, 11], [36, 72]])
    np.testing.assert_array_equal(drive.series["battery_current_a"], [[10.5], [20]])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("tail", [";", ""])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_long_in_every_dress(encoding, tail, end):
    rows = [
        (1, "Geschwindigkeit", "50,5", "km/h"),
        (2, "[08.HVAC] Außentemperatur", "-3,25", "°C"),
        (3, "Geschwindigkeit", "51", "km/h"),
    ]
    drive = long(rows, tail=tail, end=end, encoding=encoding)
    np.testing.assert_array_equal(drive.series["speed_kmh"][1], [50.5, 51])
    np.testing.assert_array_equal(drive.series["ambient_temp_c"][1], [-3.25])


def test_long_with_places_and_a_header_without_the_trailing_delimiter():
    rows = [(1, "Speed (GPS)", 40, "mph", "45.79", "15.72"), (2, "Altitude (GPS)", 1000, "feet", "45.79", "15.72")]
    drive = long(rows, header='"SECONDS";"PID";"VALUE";"UNITS";"LATITUDE";"LONGTITUDE"')
    assert drive.format == "Car Scanner long with GPS"
    assert drive.series["speed_kmh"][1][0] == pytest.approx(64.37376)
    assert drive.series["elevation_m"][1][0] == pytest.approx(304.8)


def test_units_of_the_phone_are_converted():
    rows = [
        (1, "Vehicle speed", 10, "mph"),
        (2, "Vehicle acceleration", 0.5, "g"),
        (3, "Ambient temperature", 50, "℉"),
        (4, "[MCU] Motor Actual Torque", 100, "N⋅m"),
    ]
    series = long(rows).series
    assert series["speed_kmh"][1][0] == pytest.approx(16.09344)
    assert series["acceleration_ms2"][1][0] == pytest.approx(4.903325)
    assert series["ambient_temp_c"][1][0] == pytest.approx(10)
    assert series["motor_torque_nm"][1][0] == 100


def test_midnight_is_passed():
    rows = [
        (86398.5, "Vehicle speed", 1, "km/h"),
        (86399.5, "Vehicle speed", 2, "km/h"),
        (0.5, "Vehicle speed", 3, "km/h"),
    ]
    drive = long(rows)
    np.testing.assert_array_equal(drive.series["speed_kmh"][0], [86398.5, 86399.5, 86400.5])
    assert any("midnight" in note for note in drive.notes)
    drive = wide('time,"Vehicle speed (km/h)",\n23:59:59.500,1,\n00:00:00.250,2,\n')
    np.testing.assert_array_equal(drive.series["speed_kmh"][0], [86399.5, 86400.25])


def test_readings_repeated_10_ms_later_are_dropped_but_not_equal_ones_later():
    rows = [(t + d, "Vehicle speed", 30, "km/h") for t in (1.0, 2.0, 3.0) for d in (0, 0.01)]
    drive = long(rows)
    np.testing.assert_allclose(drive.series["speed_kmh"][0], [1, 2, 3])
    assert any("3 readings repeated" in note for note in drive.notes)


def test_one_plausible_pack_voltage_of_several_that_disagree():
    rows = []
    for t in range(20):
        rows += [
            (t, "Geschwindigkeit", 0, "km/h"),
            (t + 0.1, "[8C.BMS] Batteriespannung (Macan EV, Q6 eTron)", 88.3, "V"),
            (t + 0.2, "Hybrid- / EV-Batteriesystemspannung", 1023.98, "V"),
            (t + 0.3, "[8C.BMS] Batteriespannung", 353.25, "V"),
            (t + 0.4, "[8C.BMS] Batteriezellspannung Zelle 001", 3.68, "V"),
            (t + 0.5, "[19.Gate] 12V Batteriespannung", 14.7, "V"),
            (t + 0.6, "[8C.BMS] Batteriestrom", 2.9, "A"),
            (t + 0.7, "[19.Gate] 12V Batteriestrom", 5.8, "A"),
            (t + 0.8, "Leistung der Hochvolt-Batterie des Elektrofahrzeugs", 9, "kW"),
        ]
    drive = long(rows)
    assert set(drive.series["battery_voltage_v"][1]) == {353.25}
    assert set(drive.series["battery_current_a"][1]) == {2.9}
    assert "power_kw" not in drive.series
    assert any("not plausible" in note and "1023.98" in note for note in drive.notes)
    assert any("app's" in note for note in drive.notes)


def test_the_apps_power_stays_where_there_is_no_current():
    drive = long([(1, "Vehicle speed", 30, "km/h"), (2, "HV EV Battery Power", 12, "kW")])
    assert drive.series["power_kw"][1][0] == 12


def test_a_dead_or_sparse_claim_loses():
    rows = [(t, "Vehicle speed", 0, "km/h") for t in range(30)] + [
        (t + 0.5, "Speed (GPS)", 50, "km/h") for t in range(30)
    ]
    assert long(sorted(rows)).series["speed_kmh"][1][0] == 50
    rows = [(0, "Vehicle speed", 20, "km/h")] + [(t + 0.5, "[HVAC] Real Vehicle Speed", 50, "km/h") for t in range(30)]
    assert long(rows).series["speed_kmh"][1].size == 30


@pytest.mark.parametrize(
    ("speed", "voltage", "current", "ambient"),
    [
        ("Vitesse du véhicule", "Tension batterie HV", "Courant batterie HV", "Température extérieure"),
        ("Velocidad del vehículo", "Tensión de la batería", "Corriente de la batería", "Temperatura exterior"),
        ("Prędkość pojazdu", "Napięcie akumulatora HV", "Prąd baterii HV", "Temperatura zewnętrzna"),
        ("Rychlost vozidla", "Napětí baterie", "Proud baterie", "Venkovní teplota"),
        ("Voertuigsnelheid", "Accuspanning", "Accustroom", "Buitentemperatuur"),
        ("Velocità veicolo", "Tensione batteria HV", "Corrente batteria HV", "Temperatura esterna"),
        ("Velocidade do veículo", "Tensão da bateria", "Corrente da bateria", "Temperatura do ar ambiente"),
        ("Скорость автомобиля", "Напряжение батареи", "Ток батареи", "Температура за бортом"),
        ("Швидкість автомобіля", "Напруга батареї", "Струм батареї", "Зовнішня температура"),
        ("Jármű sebessége", "Akkumulátor feszültség", "Akkumulátor áram", "Külső hőmérséklet"),
        ("Geschwindigkeit des Fahrzeugs", "Spannung HV-Batterie", "Strom HV-Batterie", "Temperatur außen"),
        ("Fahrzeuggeschwindigkeit", "Hochvoltbatterie Spannung", "Hochvoltbatterie Strom", "Außentemperatur"),
        (
            "[HVAC] Real Vehicle Speed",
            "[BMS] Battery DC Voltage",
            "[BMS] Battery Current",
            "[HVAC] Outdoor Temperature",
        ),
        (
            "Vehicle speed",
            "[BECM] High Voltage Battery Voltage",
            "[BECM] High Voltage Battery Current",
            "Ambient air temperature",
        ),
        ("Vehicle speed", "[LBC] HV battery voltage", "[LBC] HV battery current", "Outside Temperature"),
    ],
)
def test_names_of_other_languages_and_makers(speed, voltage, current, ambient):
    rows = [
        (1, speed, 50, "km/h"),
        (2, voltage, 400, "V"),
        (3, current, -7, "A"),
        (4, ambient, 21, "℃"),
        (5, f"Max {voltage}", 440, "V"),
    ]
    series = {name: value[0] for name, (_, value) in long(rows).series.items()}
    assert series == {"speed_kmh": 50, "battery_voltage_v": 400, "battery_current_a": -7, "ambient_temp_c": 21}


def test_the_user_extends_the_aliases():
    rows = [(1, "Fart", 50, "km/h"), (2, "Vehicle speed", 1, "km/h")]
    for name in ("Fart", "fart (km/h)", "[ESP] Fart [km/h]"):
        assert long(rows, aliases={"speed_kmh": [name]}).series["speed_kmh"][1][0] == 50


def test_a_log_without_power_says_which_names_it_has():
    notes = long([(1, "Vehicle speed", 50, "km/h"), (2, "Battery Current", 5, "A"), (3, "Spenning", 400, "V")]).notes
    (note,) = [note for note in notes if note.startswith("no power")]
    assert "no battery_voltage_v" in note
    assert "battery_current_a" not in note
    assert "'Spenning'" in note


def test_wide_takes_one_reading_a_row():
    drive = wide(
        'time,"Ambient temperature (℃)","Battery DC Current (A)","Battery DC Voltage (V)","HV EV Battery Power (kW)","Vehicle speed (km/h)",Latitude,Longtitude,\n'
        "12:41:04.955,,,,,12.5,48.1,17.1,\n12:41:05.117,,,394.8125,,,,,\n12:41:05.231,,21.8,,,,,,\n12:41:05.300,,,,8.6,,,,\n12:41:06.000,-2,,,,13,,,\n"
    )
    assert drive.trip_id == "2023-11-19_12-40-45"
    assert drive.format == "Car Scanner wide with GPS"
    electric = {"battery_voltage_v", "battery_current_a"}
    assert set(drive.series) == {"speed_kmh", "ambient_temp_c", "latitude_deg", "longitude_deg", *electric}
    np.testing.assert_allclose(drive.series["speed_kmh"], [[45664.955, 45666.0], [12.5, 13]])


@pytest.mark.parametrize("text", [
    'time;"Geschwindigkeit (km/h)";"[BMS] Battery Current (A)";\r\n10:00:00,5;"50,5";;\r\n10:00:01,5;;"-1,25";\r\n',
    '\ufefftime,"Geschwindigkeit (km/h)","[BMS] Battery Current (A)",\r\n10:00:00.500,"50,5",,\r\n10:00:01.500,,"-1,25",\r\n',
    'time\t"Geschwindigkeit (km/h)"\t"[BMS] Battery Current (A)"\n2026-01-01 10:00:00.5\t50.5\t\n2026-01-01 10:00:01.5\t\t-1.25\n',
])  # fmt: skip
def test_wide_in_other_dresses(text):
    series = wide(text).series
    np.testing.assert_array_equal(series["speed_kmh"], [[36000.5], [50.5]])
    np.testing.assert_array_equal(series["battery_current_a"], [[36001.5], [-1.25]])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(1, "Vehicel sped", 5, "km/h"), (2, "Odometer", 5, "km")], ["no speed", "'Odometer'", "nearest is 'Vehicel sped'"]),
        ([(1, "Vehicle speed", 5, "furlong/h")], ["'furlong/h'", "unknown", "km/h"]),
        ([(1, "Vehicle speed", 5, "")], ["no unit"]),
        ([(1, "Vehicle speed", "", "km/h"), (2, "Vehicle speed", "-", "km/h")], ["all values", "missing"]),
        ([(10, "Vehicle speed", 5, "km/h"), (20, "Vehicle speed", 5, "km/h"), (15, "Vehicle speed", 5, "km/h")], ["line 4", "backwards by 5.0 s"]),
        ([("x", "Vehicle speed", 5, "km/h")], ["all its times are missing"]),
        ([], ["no rows"]),
    ],
)  # fmt: skip
def test_bad_long_logs_are_one_sentence(rows, words):
    with pytest.raises(LogError) as problem:
        long(rows, name="bad.csv")
    message = str(problem.value)
    assert message.startswith("bad.csv: ")
    assert "\n" not in message
    for word in words:
        assert word in message


def test_wrong_delimiters():
    with pytest.raises(LogError, match=r"wrong delimiter"):
        car_scanner_long.read(Path("x.csv"), b"SECONDS|PID|VALUE|UNITS\n1|Vehicle speed|2|km/h\n", ReadOptions())
    text = b'time,"Vehicle speed (km/h)",\n10:00:00.1,5,25,\n10:00:00.2,5,25,\n10:00:00.3,5,25,\n'
    with pytest.raises(LogError, match=r"line 2 .*wrong delimiter"):
        car_scanner_wide.read(Path("x.csv"), text, ReadOptions())


def test_a_little_disorder_is_sorted():
    rows = [(1.0, "Vehicle speed", 1, "km/h"), (2.0, "Vehicle speed", 2, "km/h"), (1.9, "Vehicle speed", 3, "km/h")]
    np.testing.assert_array_equal(long(rows).series["speed_kmh"], [[1, 1.9, 2], [1, 3, 2]])


def test_a_last_line_cut_short_is_left_out_and_told():
    data = (HEADER + '\n"1";"Vehicle speed";"2";"km/h";\n"2";"Vehicle spe').encode()
    drive = car_scanner_long.read(Path("x.csv"), data, ReadOptions())[0]
    np.testing.assert_array_equal(drive.series["speed_kmh"], [[1], [2]])
    assert any("cut short" in note for note in drive.notes)


def test_one_pid_in_two_units_is_two_claims():
    rows = [(1, "Vehicle speed", 10, "mph"), (2, "Vehicle speed", 20, "km/h"), (3, "Vehicle speed", 21, "km/h")]
    drive = long(rows)
    np.testing.assert_array_equal(drive.series["speed_kmh"], [[2, 3], [20, 21]])
    assert any("set aside: 'Vehicle speed (mph)'" in note for note in drive.notes)
