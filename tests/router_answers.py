"""Answers of OSRM and Valhalla in small: a straight way of 40 thousandths of a degree to the north."""

import numpy as np

STEP = 111.195  # metres in a thousandth of a degree of latitude


def encoded(lat, lon, digits):
    """An encoded polyline, by the published recipe, one number at a time."""
    text, last = "", [0, 0]
    for pair in zip(lat, lon, strict=True):
        for k, x in enumerate(pair):
            now = round(x * 10**digits)
            value, last[k] = (now - last[k]) << 1, now
            value = ~value if value < 0 else value
            while value >= 32:
                text += chr((32 | (value & 31)) + 63)
                value >>= 5
            text += chr(value + 63)
    return text


LAT, LON = 47 + np.arange(41) / 1000, np.full(41, 9.5)


def osrm(distance=STEP, seconds=8.0, pieces=40, **route):
    note = {"distance": [distance] * pieces, "duration": [seconds] * pieces}
    body = {"legs": [{"annotation": note, "steps": []}], "distance": distance * pieces, "duration": seconds * pieces}
    return {"code": "Ok", "routes": [{**body, **route}], "waypoints": []}


def valhalla(shape=None, **leg):
    manoeuvres = [{"length": 2.0, "time": 100.0}, {"length": 2.448, "time": 200.0}, {"length": 0.0, "time": 0.0}]
    shape = shape or encoded(LAT, LON, 6)
    body = {"maneuvers": manoeuvres, "shape": shape, "summary": {"length": 4.448, "time": 300.0}, **leg}
    return {"trip": {"legs": [body], "summary": {"length": 4.448, "time": 300.0}, "units": "kilometers"}}
