"""A running router asked for the way between two points: OSRM or Valhalla, whichever answers at the address."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from evband.errors import LogError, SettingsError
from evband.routes import osrm, valhalla
from evband.routes.geo import metres_between, on_earth
from evband.routes.way import Way

TIMEOUT_S = 20.0  # of silence
LONGEST_S = 60.0  # of an answer that trickles in
LARGEST_BYTES = 50_000_000
FARTHEST_ROAD_M = 2000.0  # a router moves a point in the sea to the coast: farther than this is refused
ELEVATION_INTERVAL_M = 30

Point = tuple[float, float]


def parse_point(text: str) -> Point:
    """(lat, lon) of "47.14,9.52"."""
    try:
        lat, lon = (float(part) for part in text.split(","))
    except ValueError:
        raise SettingsError(f"{text!r} is not a point; write latitude and longitude as 47.14,9.52.") from None
    if not on_earth(lat, lon):
        raise SettingsError(
            f"{text!r} is not on the earth; write latitude (-90..90) first, then longitude (-180..180)."
        )
    return lat, lon


def ask(url: str, start: Point, end: Point) -> Way:
    """The way from `start` to `end`; Valhalla also gives elevation, and speeds edge by edge."""
    base = url.rstrip("/")
    if urllib.parse.urlsplit(base).scheme not in ("http", "https"):
        raise SettingsError(f"{url}: a router's address begins with http:// or https://.")
    way = _ask_osrm(base, start, end) or _ask_valhalla(base, start, end)
    if way is None:
        raise LogError(f"{url}: this answers neither as OSRM nor as Valhalla; check the address and port.")
    if way.places is not None:
        _, lat, lon = way.places
        for point, i in ((start, 0), (end, -1)):
            off = metres_between(point, (float(lat[i]), float(lon[i])))
            if off > FARTHEST_ROAD_M:
                raise LogError(
                    f"{url}: the nearest road that the router knows is {off / 1000:.1f} km from {point[0]:g},{point[1]:g} (in "
                    f"the sea, or off its map); give a point on a road."
                )
    return way


def _ask_osrm(base: str, start: Point, end: Point) -> Way | None:
    places = ";".join(f"{lon:.6f},{lat:.6f}" for lat, lon in (start, end))
    query = "annotations=true&overview=full&geometries=geojson&steps=false"
    answer = _fetch(f"{base}/route/v1/driving/{places}?{query}")
    if answer is None or "code" not in answer or "error_code" in answer:
        return None
    return osrm.read(answer, base)


def _ask_valhalla(base: str, start: Point, end: Point) -> Way | None:
    asked: dict[str, Any] = {
        "locations": [{"lat": lat, "lon": lon} for lat, lon in (start, end)],
        "costing": "auto",
        "units": "kilometers",
        "elevation_interval": ELEVATION_INTERVAL_M,
    }
    answer = _fetch(f"{base}/route", asked)
    if answer is None or not ({"trip", "error_code"} & set(answer)):
        return None
    way = valhalla.read(answer, base)
    shapes = [leg["shape"] for leg in answer["trip"]["legs"]]
    trace = _fetch(
        f"{base}/trace_attributes",
        {"encoded_polyline": shapes[0], "costing": "auto", "shape_match": "edge_walk", "units": "kilometers"},
    )
    if len(shapes) != 1 or trace is None or "edges" not in trace:
        return way.noted("speeds are means over manoeuvres, because the router gave none for edges")
    return valhalla.joined(way, valhalla.read_trace(trace, base))


def _whole(answer: Any) -> bytes:
    """Up to a byte more than the largest answer; an OSError where it takes too long."""
    until, text = time.monotonic() + LONGEST_S, bytearray()
    while len(text) <= LARGEST_BYTES and (part := answer.read1(LARGEST_BYTES + 1 - len(text))):
        text += part
        if time.monotonic() > until:
            raise TimeoutError(f"no whole answer in {LONGEST_S:g} s")
    return bytes(text)


def _fetch(url: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The JSON object at `url`, also of an answer that refuses; None where the answer is something else."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", "User-Agent": "evband"})
    try:
        try:
            answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
        except urllib.error.HTTPError as refused:
            answer = refused
        with answer:
            text = _whole(answer)
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as problem:
        why = getattr(problem, "reason", problem)
        raise LogError(f"{url.split('/route')[0]}: the router does not answer ({why}); start it or check the address.") from None  # fmt: skip
    if len(text) > LARGEST_BYTES:
        raise LogError(f"{url.split('/route')[0]}: the router's answer is too large for a route.")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
