"""The OpenAPI document of the API."""

from __future__ import annotations

from functools import cache
from typing import Any

from evband import __version__
from evband.energy.range import LEVELS
from evband.live.routes_in import COLUMNS
from evband.live.schema import BAND
from evband.live.states import STATES

_NUMBER = {"type": ["number", "null"]}
_BAND3 = {"type": "object", "properties": dict.fromkeys(("mean", "lower", "upper"), _NUMBER)}
_LEVELS = {"type": "object", "properties": dict.fromkeys(LEVELS, _NUMBER)}
_CAR: dict[str, Any] = {
    "type": "object",
    "required": ["id", "state"],
    "properties": {
        "id": {"type": "string"}, "name": {"type": "string"}, "at": {**_NUMBER, "description": "UTC seconds of the newest band"},
        "state": {"type": "string", "enum": list(STATES)},
        **dict.fromkeys((*BAND, "power_kw"), _NUMBER),
        "energy_kwh": _BAND3, "kwh_100km": _NUMBER, "range_km": _LEVELS,
        "arrival_probability": {**_NUMBER, "description": "to the route's end with the reserve left"},
        "arrival_probability_empty": {**_NUMBER, "description": "to the route's end, using the reserve"},
        "outside": {"type": "boolean"}, "warmup": {"type": "boolean"},
        "degraded": {"type": ["string", "null"], "description": "why bands are worse than they could be"},
        **dict.fromkeys(("speed_kmh", "soc_pct", "distance_km"), _NUMBER),
        "changes": {"type": "array", "items": {"type": "object"}, "description": "of one car only: ranges minutes apart and what they rested on, each [before, after]"},
        "learned": {"type": ["object", "null"], "description": "of one car only: from how many minutes and drives its started model learned, and how much wider (negative: narrower) its band became"},
        "why": {"type": "object", "properties": {name: _NUMBER for name in ("drive_pct", "weather_pct")}, "description": "of one car only: percent of consumption ahead"},
    },
}  # fmt: skip
_TRIP = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "began": _NUMBER, "ended": _NUMBER, "open": {"type": "boolean"}},
}
_ROUTE = {
    "type": "object",
    "required": ["speed_kmh"],
    "properties": {name: {"type": "array", "items": {"type": "number"}} for name in COLUMNS},
}
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_CAR_ID = {"name": "car", "in": "path", "required": True, "schema": {"type": "string"}}
_TRIP_ID = {
    "name": "trip",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "its id, with .csv, .parquet or .json",
}
_SINCE = {"name": "since", "in": "query", "required": False, "schema": {"type": "number"}, "description": "UTC seconds"}
_FAULTS = ("401", "403", "404", "413", "421", "422", "429", "503")


@cache
def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    many = {"type": "array", "items": {"$ref": "#/components/schemas/Car"}}
    lines = {"text/plain": {"schema": {"type": "string", "description": "JSON lines"}}}
    tlm = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("token", "api_key", "tlm")},
        "required": ["token", "tlm"],
    }
    paths: dict[str, Any] = {
        "/api/cars": {"get": _call("All cars", many)},
        "/api/cars/{car}": {
            "get": _call("One car, with its fan, notes and drops", {"$ref": "#/components/schemas/Car"}, _CAR_ID),
            "delete": _call("Delete everything known of a car", {"type": "object"}, _CAR_ID),
        },
        "/api/cars/{car}/route": {
            "put": _call("Set the route ahead", {"type": "object"}, _CAR_ID, {"application/json": {"schema": _ROUTE}, "text/plain": {"schema": {"type": "string", "description": "CSV or GPX"}}}),
            "delete": _call("Forget the route", {"type": "object"}, _CAR_ID),
        },
        "/api/cars/{car}/trips": {"get": _call("Drives, the newest first", {"type": "array", "items": _TRIP}, _CAR_ID)},
        "/api/cars/{car}/trips/{trip}": {"get": _call("One drive's rows", None, _CAR_ID, None, _TRIP_ID, _SINCE)},
        "/api/cars/{car}/in": {"post": _call("JSON lines of one car", {"type": "object"}, _CAR_ID, lines)},
        "/api/in": {"post": _call("JSON lines, each naming its car", {"type": "object"}, None, lines)},
        "/1/tlm/send": {"post": _call("Telemetry as ABRP takes it", {"type": "object"}, None, {"application/x-www-form-urlencoded": {"schema": tlm}}, more=("400",))},
        "/healthz": {"get": _call("Alive?", {"type": "object"})},
        "/openapi.json": {"get": _call("This document", {"type": "object"})},
        "/metrics": {"get": {"summary": "Prometheus metrics", "responses": {"200": {"description": "text", "content": {"text/plain": {"schema": {"type": "string"}}}}}}},
    }  # fmt: skip
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "evband live",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Car": _CAR, "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _call(
    summary: str, answer: dict[str, Any] | None, car: dict[str, Any] | None = None, body: dict[str, Any] | None = None,
    *further: dict[str, Any], more: tuple[str, ...] = (),
) -> dict[str, Any]:  # fmt: skip
    kinds: dict[str, Any] = {kind: {} for kind in ("application/json", "text/csv", "application/vnd.apache.parquet")}
    ok = {"description": "as asked", "content": kinds if answer is None else {"application/json": {"schema": answer}}}
    fault = {"description": "refused, with the reason", "content": {"application/json": {"schema": {"type": "object"}}}}
    found: dict[str, Any] = {"summary": summary, "responses": {"200": ok} | dict.fromkeys((*_FAULTS, *more), fault)}
    parameters = [p for p in (car, *further) if p is not None]
    if parameters:
        found["parameters"] = parameters
    if body is not None:
        found["requestBody"] = {"required": True, "content": body}
    return found
