"""`evband range`: how far the battery reaches along a route, and whether it arrives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from evband.cli.options import ShowUnits, Units
from evband.cli.seen import warn_if_not_calibrated
from evband.cli.show import console


def range(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A fitted model, car.evband.")],
    soc: Annotated[float, typer.Option(help="State of charge now, in percent.")],
    capacity_kwh: Annotated[float, typer.Option("--capacity-kwh", help="Usable energy of the full battery.")],
    route: Annotated[
        Path | None, typer.Option(help="Route: profile CSV, GPX, GeoJSON, answer of OSRM or Valhalla, or a log.")
    ] = None,
    dem: Annotated[
        Path | None, typer.Option("--dem", metavar="DIR", help="Elevation of the route from the tiles in this folder.")
    ] = None,
    distance_km: Annotated[
        float | None, typer.Option("--distance-km", help="Instead of --route: a flat way so long ...")
    ] = None,
    speed_kmh: Annotated[float | None, typer.Option("--speed-kmh", help="... at this speed.")] = None,
    reserve_soc: Annotated[float, typer.Option("--reserve-soc", help="Charge to arrive with at least.")] = 10.0,
    so_far: Annotated[Path | None, typer.Option("--so-far", help="Log of the drive up to now, with its power.")] = None,
    ambient: Annotated[float | None, typer.Option("--ambient", help="Temperature in C all along the route.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Charge over distance as a fan, .html or .png.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the answer as one JSON object.")] = None,
    soc_spread: Annotated[
        float, typer.Option("--soc-spread", help="Standard deviation of the state of charge, in percent.")
    ] = 0.0,
    capacity_spread: Annotated[
        float, typer.Option("--capacity-spread", help="Standard deviation of the capacity, in percent of it.")
    ] = 0.0,
    payload: Annotated[float, typer.Option("--payload-kg", help="Load beyond that of the training trips.")] = 0.0,
    payload_spread: Annotated[float, typer.Option("--payload-spread-kg", help="Its standard deviation.")] = 0.0,
    ambient_spread: Annotated[
        float, typer.Option("--ambient-spread", help="Standard deviation of the temperature, in C.")
    ] = 0.0,
    head_wind: Annotated[float, typer.Option("--head-wind", help="Wind from ahead all along, in m/s.")] = 0.0,
    head_wind_spread: Annotated[float, typer.Option("--head-wind-spread", help="Its standard deviation.")] = 0.0,
    stops: Annotated[float, typer.Option("--stops-min", help="Minutes of standing beyond the route's.")] = 0.0,
    stops_spread: Annotated[float, typer.Option("--stops-spread-min", help="Their standard deviation.")] = 0.0,
    what_if: Annotated[bool, typer.Option("--what-if", help="Beside it: slower, colder, against the wind.")] = False,
    units: ShowUnits = Units.KM,
) -> None:
    """How far the battery reaches along a route, the chance to arrive, and the charge left, all as distributions.

    Example: evband range car.evband --soc 62 --capacity-kwh 77.4 --route route.csv
    """
    from json import dumps

    from evband.energy import (  # fmt: skip
        Doubts,
        advice,
        advice_lines,
        changes,
        check_battery,
        given,
        range_json,
        range_warnings,
        shares_line,
        what_ifs,
    )
    from evband.energy.fan import check_picture, write_fan
    from evband.files import whole_file
    from evband.model import load
    from evband.report.tables import range_table
    from evband.routes import read_route, route_source

    check_battery(soc, capacity_kwh, reserve_soc)
    if plot:
        check_picture(plot)
    way = route_source([] if route is None else [route], None, distance_km, speed_kmh, dem)
    driven = None if so_far is None else str(so_far)
    fitted = load(model)
    doubts = Doubts(
        soc_spread, capacity_spread, payload, payload_spread, ambient_spread, head_wind, head_wind_spread, stops, stops_spread
    )  # fmt: skip
    options: dict[str, Any] = {"so_far": driven, "ambient_c": ambient}
    found = what_ifs(
        fitted, soc, capacity_kwh, way, reserve_soc=reserve_soc, variants=what_if, doubts=doubts, **options
    )
    warn_if_not_calibrated(fitted)
    for warning in range_warnings(found):
        print(f"evband: warning: {warning}.", file=sys.stderr)
    console().print(range_table(found, units is Units.MI))
    for name, answer in found.items():
        if isinstance(answer, str):
            print(f"{name}: {answer}")
    print(f"doubt comes from: {shares_line(given(found))}")
    more: dict[str, Any] = {}
    if so_far is not None:
        more["because_kwh"] = changes(fitted, given(found), way, driven, ambient)
        told = ", ".join(f"{name} {kwh:+.2f} kWh" for name, kwh in more["because_kwh"].items())
        print(f"the rest against going on as so far: {told}")
    more |= advice(fitted, given(found), way, **options)
    lines = advice_lines(given(found), more, float(max(read_route(way).speed_kmh)))
    print("\n".join(lines))
    if plot:
        write_fan(given(found), plot, lines)
    if json:
        with whole_file(json) as temporary:
            temporary.write_text(dumps(range_json(found, more), indent=2) + "\n")
