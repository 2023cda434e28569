"""Whole inputs of every kind, from which mutations start: one small log of each format, a map, a state, a model, routes, lines."""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from drives import made_up_trip, small_model

CASES = Path(__file__).parent / "cases"
_T = range(60)


def _rows(row):
    return "".join(row(i) for i in _T)


def _text_logs() -> dict[str, str]:
    wide = 'time,"Vehicle speed (km/h)","Battery DC Current (A)","Battery DC Voltage (V)","Ambient temperature (℃)",\n'
    return {
        "tidy": "trip_id,time_s,speed_kmh,elevation_m,power_kw\n" + _rows(lambda i: f"{i // 30},{i},{30 + i % 7},{500 + i},{5 + i % 3}\n"),
        "grid": "trip_id,time_s,speed_kmh,power_kw,segment\n" + _rows(lambda i: f"a,{i},{30 + i % 7},{5 + i % 3},{i // 20}\n"),
        "long": '"SECONDS";"PID";"VALUE";"UNITS"\n' + _rows(lambda i: f'"{i}";"Vehicle speed";"{i * i % 61},5";"km/h"\n"{i}.4";"[BMS] Battery Current";"{i}";"A"\n'),
        "wide": wide + _rows(lambda i: f"12:00:{i:02}.100,{i * i % 61},,,,\n12:00:{i:02}.600,,{i},380,4,\n"),
        "torque": "GPS Time,Device Time,Longitude,Latitude,Speed (OBD)(km/h),HV Battery Voltage(V)\n" + _rows(lambda i: f"-,05-Oct-2026 14:22:{i:02}.1,-,-,{i},380\n"),
        "i3": "Time [s];Velocity [km/h];Elevation [m];Battery Voltage [V];Battery Current [A];AirCon Power [kW]\n" + _rows(lambda i: f"{i / 10};{i};500;380;-12;0.3\n"),
        "dynamometer": "Time,Speed_mph,DY_flt_force[N],DY_DriveRef,Battery_Power_kW\n" + _rows(lambda i: f"{i},{i * i % 61},{100 + i % 7},{i},{5}\n"),
        "abrp": _rows(lambda i: json.dumps({"utc": 1.7e9 + i, "speed": i, "power": 5, "hvac_power": 0.4, "tlm": None}) + "\n"),
        "abrp_list": json.dumps([{"utc": i, "speed": i, "current": 5, "voltage": 380} for i in _T]),
        "leaf_spy": "Date/Time,Lat,Long,Elv,Speed,Gids,SOC,Pack Volts,Pack Amps,Odo(km),Ambient,epoch time,Est Pwr Htr(250w)\n"
        + _rows(lambda i: f"11/14/2023 22:13:{i:02},9 54.4,53 30.1,100,{i},200,846000,380,40,{5000 + i},50,{1700000000 + 5 * i},2\n"),
        "teslamate": "date,speed,power,drive_id,outside_temp\n" + _rows(lambda i: f"2024-01-05 11:00:{i:02}.5,{i},{i % 9},{i // 30},4\n"),
        "teslamate_dump": "COPY public.positions (date, speed, power, drive_id) FROM stdin;\n" + _rows(lambda i: f"2024-01-05 11:00:{i:02}\t{i}\t5\t7\n") + "\\.\n",
        "teslafi": "data_id,Date,speed,power,shift_state\n" + _rows(lambda i: f"{i},2024-01-05 11:{i:02}:00,{i},5,D\n"),
        "scan_my_tesla": "Time,Battery voltage,Battery current,Speed,Heating/cooling\n" + _rows(lambda i: f"{100 * i},350,20,{i},1\n"),
        "ovms": "time,v.p.speed,v.b.power,v.e.temp\n" + _rows(lambda i: f"{1.7e9 + i},{i},5,4\n"),
        "ved": "DayNum,VehId,Trip,Timestamp(ms),Vehicle Speed[km/h],Heater Power[Watts],HV Battery Current[A],HV Battery Voltage[V]\n"
        + _rows(lambda i: f"1.5,10,7,{900 * i},{i},250,-24.5,380\n"),
        "chargecar": _rows(lambda i: f"{162900 + i},{2 * i},285,6,6,{i % 20},0.1,-12,-3.3,-10,330\n"),
        "anl": "Time[s]\tDyno_Spd[mph]\tHV_Batt_Volt_U1[V]\tHV_Batt_Curr_I1[A]\n" + _rows(lambda i: f"{i / 10}\t{i}\t360\t30\n"),
    }  # fmt: skip


@cache
def logs() -> dict[str, bytes]:
    """Name -> bytes of a whole log."""
    found = {name: text.encode() for name, text in _text_logs().items()}
    frame = pl.DataFrame(
        {"trip_id": ["a"] * 60, "time_s": np.arange(60.0), "speed_kmh": np.arange(60.0), "power_kw": np.ones(60)}
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    found["parquet"] = buffer.getvalue()
    found["gzip"] = gzip.compress(found["tidy"], mtime=0)
    found["excel"] = _workbook()
    found |= {f"mf4_{i}": data for i, data in enumerate(mf4s())}
    return {name: data for name, data in found.items() if data}


def _workbook() -> bytes:
    try:
        import openpyxl
    except ImportError:
        return b""
    book = openpyxl.Workbook()
    for row in [["time_s", "speed_kmh"], *([float(i), 30 + i % 7] for i in range(20))]:
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


@cache
def mf4s() -> list[bytes]:
    """Plain; packed; packed and transposed, with texts; of version 3."""
    try:
        from asammdf import MDF, Signal
    except ImportError:
        return []
    time, found = np.arange(60.0), []
    signals = [Signal(np.arange(60.0), time, unit="km/h", name="VehicleSpeed"), Signal(np.full(60, 380.0), time, unit="V", name="BMS_PackVoltage")]  # fmt: skip
    texts = [Signal(np.array([b"P", b"DRIVE"] * 30), time, name="Gear", encoding="utf-8"), Signal(np.arange(60, dtype=np.uint8), time, name="SOC")]  # fmt: skip
    for version, compression, more in (("4.10", 0, []), ("4.10", 1, []), ("4.10", 2, texts), ("3.30", 0, [])):
        file = MDF(version=version)
        file.append(signals + more)
        with tempfile.TemporaryDirectory() as folder:
            found.append(Path(file.save(Path(folder) / "x.mf4", compression=compression)).read_bytes())
        file.close()
    return found


MAP = b'delimiter = ","\n[columns]\n"time_s" = { channel = "time_s", unit = "s" }\n"speed_kmh" = { channel = "speed_kmh", unit = "mph", sign = 1 }\n'
ROUTES = {
    "legs": b"distance_km,speed_kmh,elevation_m,stop_s\n0,50,100,0\n5,100,150,30\n12,60,120,\n20,0,90,0\n",
    "times": b"time_s,speed_kmh,ambient_temp_c\n0,0,5\n30,50,\n90,80,6\n120,0,7\n",
    "gpx": b'<?xml version="1.0"?><gpx version="1.1"><trk><trkseg><trkpt lat="48.1" lon="11.5"><ele>520</ele></trkpt>'
    b'<trkpt lat="48.2" lon="11.6"><ele>540</ele></trkpt></trkseg></trk></gpx>',
    "geojson": b'{"type": "Feature", "geometry": {"type": "LineString", "coordinates": [[11.5, 48.1, 520], [11.6, 48.2, 540]]}, "properties": {}}',
}
_SHAPE = "_p~iF~ps|U_ulLnnqC_mqNvxq`@"
ROUTERS = {
    "osrm": {"code": "Ok", "routes": [{"distance": 3000.0, "geometry": _SHAPE, "legs": [
        {"annotation": {"distance": [1000.0, 500.0, 1500.0], "duration": [60.0, 30.5, 90.0]}}]}]},
    "osrm_steps": {"code": "Ok", "routes": [{"distance": 900.0, "geometry": {"coordinates": [[11.5, 48.1], [11.51, 48.11]]}, "legs": [
        {"steps": [{"distance": 400.0, "duration": 30.0}, {"distance": 500.0, "duration": 31.0}, {"distance": 0, "duration": 0}]}]}]},
    "valhalla": {"trip": {"units": "kilometers", "summary": {"length": 2.0}, "legs": [{"shape": _SHAPE, "summary": {"length": 2.0},
        "elevation": [100.0, 110.0, 120.0], "elevation_interval": 30.0, "maneuvers": [{"length": 1.5, "time": 90.0}, {"length": 0.5, "time": 40.0}]}]}},
    "trace": {"shape": _SHAPE, "units": "miles", "edges": [{"length": 0.5, "speed": 50, "mean_elevation": 100},
        {"length": 0.2, "speed_limit": 30, "road_class": "primary_link"}]},
    "ors": {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": {"type": "LineString", "coordinates":
        [[11.5, 48.1, 520], [11.52, 48.12, 530], [11.54, 48.14, 525]]}, "properties": {"segments": [{"steps": [
        {"way_points": [0, 1], "distance": 2000.0, "duration": 120.0}, {"way_points": [1, 2], "distance": 2000.0, "duration": 100.0}]}]}}]},
    "multi": {"type": "MultiLineString", "coordinates": [[[11.5, 48.1], [11.51, 48.1]], [[11.51, 48.1], [11.52, 48.1]]]},
}  # fmt: skip
ROUTES |= {name: json.dumps(answer).encode() for name, answer in ROUTERS.items()}
SHEET = b"""name = "Test car"
body = "car"
kerb_kg = [1500, "maker"]
load_kg = 100
cd = [0.28, "maker", 0.05]
area_m2 = 2.3
crr = 0.009
battery_kwh = 60.0
max_power_kw = 150
wltp_kwh_100km = [16.0, "wltp"]
coast_down_n = [110.0, 0.5, 0.03]
coast_down_mass_kg = 1636
heat_pump = true
"""
SHEETS = b'[[vehicle]]\nbase = "Nissan Leaf"\nload_kg = 150\nname = "a"\n[[vehicle]]\nname = "b"\nkerb_kg = 1600\ncda_m2 = 0.65\ncrr = 0.01\n'
ENERGIES = (
    b"distance_km,energy_kwh,mean_speed_kmh,duration_min,ambient_temp_c,kwh_100km,soc_start,soc_end,charged_kwh\n"
    b"12.5,2.1,45,,12,,,,\n30,,,25,-3,18.5,,,\n55,,80,,,,80,65,\n20,,50,,,,,,4.2\n"
)
START = 1_790_000_000.0
LINES = [
    b'{"utc": 1700000000, "speed": 50, "power": 8, "elevation": 500, "ext_temp": 5, "soc": 60}',
    b'{"time_s": 12.5, "speed_kmh": 33, "trip_id": "a"}',
    b'{"tlm": {"utc": 1700000000000, "speed": 0, "current": -3, "voltage": 380}}',
]


@cache
def model():
    """A small fitted model; `EVBAND_FUZZ_MODEL` names a file to load it from, which spares a long run the training and its memory."""
    from evband.model import load

    return load(os.environ["EVBAND_FUZZ_MODEL"]) if "EVBAND_FUZZ_MODEL" in os.environ else small_model()


@cache
def artifact(folder: Path) -> bytes:
    model().save(folder / "seed.evband")
    return (folder / "seed.evband").read_bytes()


@cache
def started_model(folder: Path):
    """A model from the data sheet alone."""
    from evband.adaptation import Base
    from evband.adaptation.starting import started
    from evband.vehicles import read_sheets

    (folder / "sheet.toml").write_bytes(SHEET)
    return started(Base.load(), read_sheets(folder / "sheet.toml")[0], 1)


@cache
def part(folder: Path) -> bytes:
    """A car's part, as a fleet's fit writes it."""
    from evband.adaptation import Base
    from evband.adaptation.part import save_part

    row = {"vehicle_id": "a", "trips": 3, "crps_kw": 1.5, "warning": ""}
    save_part(started_model(folder), Base.load(), folder / "part.evband", ["ab12"], 1, stamp="x", row=row)
    return (folder / "part.evband").read_bytes()


@cache
def state() -> bytes:
    from evband.streaming import LineStream

    stream = LineStream(model(), adapt=True)
    for row in made_up_trip("x", 60, 5).table.iter_rows(named=True):
        stream.line(json.dumps(row))
    return json.dumps(stream.to_dict()).encode()
