"""`evband range`: how far the battery reaches along a route, and whether it arrives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evband.cli.options import Model, ShowUnits, grouped
from evband.cli.seen import warn_if_not_calibrated, warn_of_a_share
from evband.cli.show import console, tell, warn, write_json
from evband.report.units import Units

if TYPE_CHECKING:
    from evband.energy import Range
    from evband.model import PowerModel
    from evband.trips import Trips


@dataclass(frozen=True)
class Asked:
    """What a range is asked for with."""

    model: Model
    soc: Annotated[float, typer.Option(help="State of charge now, in percent.")]
    capacity_kwh: Annotated[
        float | None,
        typer.Option(help="Usable energy of the full battery; a started model takes its data sheet's."),
    ] = None
    route: Annotated[
        Path | None, typer.Option(help="Route: profile CSV, GPX, GeoJSON, answer of OSRM or Valhalla, or a log.")
    ] = None
    router: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Instead of --route: a running OSRM or Valhalla, asked ..."),
    ] = None
    start: Annotated[str | None, typer.Option("--from", metavar="LAT,LON", help="... for the route from here ...")] = (
        None
    )
    end: Annotated[str | None, typer.Option("--to", metavar="LAT,LON", help="... to here.")] = None
    dem: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Elevation of the route from the tiles in this folder.")
    ] = None
    distance_km: Annotated[float | None, typer.Option(help="Instead of --route: a flat route of this length ...")] = (
        None
    )
    speed_kmh: Annotated[float | None, typer.Option(help="... at this speed.")] = None
    reserve_soc: Annotated[float, typer.Option(help="Charge to arrive with at least.")] = 10.0
    so_far: Annotated[Path | None, typer.Option(help="Log of the drive up to now, with its power.")] = None
    ambient: Annotated[float | None, typer.Option(help="Ambient temperature along the whole route, in C.")] = None
    plot: Annotated[Path | None, typer.Option(help="Charge over distance as a fan, .html or .png.")] = None
    json: Annotated[Path | None, typer.Option(help="Write the answer as one JSON object; - is standard output.")] = None
    soc_spread: Annotated[float, typer.Option(help="Standard deviation of the state of charge, in percent.")] = 0.0
    capacity_spread: Annotated[float, typer.Option(help="Standard deviation of the capacity, in percent of it.")] = 0.0
    payload: Annotated[float, typer.Option("--payload-kg", help="Load beyond that of the training trips.")] = 0.0
    payload_spread: Annotated[float, typer.Option("--payload-spread-kg", help="Its standard deviation.")] = 0.0
    ambient_spread: Annotated[float, typer.Option(help="Standard deviation of the temperature, in C.")] = 0.0
    head_wind: Annotated[float, typer.Option(help="Head wind along the whole route, in m/s.")] = 0.0
    head_wind_spread: Annotated[float, typer.Option(help="Its standard deviation.")] = 0.0
    stops: Annotated[float, typer.Option("--stops-min", help="Minutes of standing beyond the route's.")] = 0.0
    stops_spread: Annotated[float, typer.Option("--stops-spread-min", help="Their standard deviation.")] = 0.0
    what_if: Annotated[bool, typer.Option("--what-if", help="Also show: slower, colder, with a head wind.")] = False
    units: ShowUnits = Units.KM


@grouped
def range(asked: Asked) -> None:
    """How far the battery reaches along a route, the chance to arrive, and the charge left, all as distributions.

    Example: evband range car.evband --soc 62 --capacity-kwh 77.4 --route route.csv
    """
    from evband.energy import Doubts, check_battery, known_battery, range_warnings, what_ifs
    from evband.energy.fan import check_picture
    from evband.model import load
    from evband.report.tables import range_table
    from evband.routes import route_source

    a = asked
    if a.plot:
        check_picture(a.plot)
    places = [place for place in (a.route, a.start, a.end) if place is not None]
    way = route_source(places, a.router, a.distance_km, a.speed_kmh, a.dem)
    driven = a.so_far if a.so_far is None or a.dem is None else _with_elevation(a.so_far, a.dem)
    fitted = load(a.model)
    doubts = Doubts(
        a.soc_spread, a.capacity_spread, a.payload, a.payload_spread, a.ambient_spread, a.head_wind, a.head_wind_spread, a.stops,
        a.stops_spread,
    )  # fmt: skip
    full_kwh, doubts = known_battery(fitted, a.capacity_kwh, doubts)
    check_battery(a.soc, full_kwh, a.reserve_soc)
    warn_of_a_share(a.soc)
    options: dict[str, Any] = {"so_far": driven, "ambient_c": a.ambient}
    found = what_ifs(
        fitted, a.soc, full_kwh, way, reserve_soc=a.reserve_soc, variants=a.what_if, doubts=doubts, **options
    )
    warn_if_not_calibrated(fitted)
    for warning in range_warnings(found):
        warn(warning)
    console(a.json).print(range_table(found, a.units))
    if a.capacity_kwh is None:
        tell(f"usable battery: {full_kwh:g} kWh (+- {doubts.capacity_sd_pct:.0f} %), from the data sheet", a.json)
    _answer(fitted, found, way, options, a.plot, a.json)


def _with_elevation(so_far: Path, dem: Path) -> Trips:
    from evband.logs.reading import read_trips

    return read_trips(so_far, dem=dem)


def _answer(
    fitted: PowerModel,
    found: dict[str, Range | str],
    way: Any,
    options: dict[str, Any],
    plot: Path | None,
    json: Path | None,
) -> None:
    """What the doubt comes from, why the rest takes what it takes, what to do; the picture and the file."""
    from json import dumps

    from evband.energy import advice, advice_lines, changes, given, range_json, shares_line
    from evband.energy.fan import write_fan

    for name, answer in found.items():
        if isinstance(answer, str):
            tell(f"{name}: {answer}", json)
    tell(f"doubt comes from: {shares_line(given(found))}", json)
    more: dict[str, Any] = {}
    if options["so_far"] is not None:
        more["because_kwh"] = changes(fitted, given(found), way, options["so_far"], options["ambient_c"])
        parts = ", ".join(f"{name} {kwh:+.2f} kWh" for name, kwh in more["because_kwh"].items())
        tell(f"the rest, compared with continuing as so far: {parts}", json)
    more |= advice(fitted, given(found), way, **options)
    lines = advice_lines(given(found), more)
    tell("\n".join(lines), json)
    if plot:
        write_fan(given(found), plot, lines)
    write_json(dumps(range_json(found, more), indent=2), json)
