"""`evband range`: how far the battery reaches along a route, and whether it arrives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evband.cli.options import ShowUnits, Units
from evband.cli.seen import warn_if_not_calibrated, warn_of_a_share
from evband.cli.show import console

if TYPE_CHECKING:
    from evband.energy import Range
    from evband.model import PowerModel
    from evband.trips import Trips


ModelOption = Annotated[Path, typer.Argument(metavar="MODEL", help="A fitted model, car.evband.")]
SocOption = Annotated[float, typer.Option(help="State of charge now, in percent.")]
CapacityKwhOption = Annotated[
    float | None,
    typer.Option("--capacity-kwh", help="Usable energy of the full battery; a started model takes its data sheet's."),
]
RouteOption = Annotated[
    Path | None, typer.Option(help="Route: profile CSV, GPX, GeoJSON, answer of OSRM or Valhalla, or a log.")
]
RouterOption = Annotated[
    str | None,
    typer.Option("--router", metavar="URL", help="Instead of --route: a running OSRM or Valhalla, asked ..."),
]
FromOption = Annotated[str | None, typer.Option("--from", metavar="LAT,LON", help="... for the route from here ...")]
ToOption = Annotated[str | None, typer.Option("--to", metavar="LAT,LON", help="... to here.")]
DemOption = Annotated[
    Path | None, typer.Option("--dem", metavar="DIR", help="Elevation of the route from the tiles in this folder.")
]
DistanceKmOption = Annotated[
    float | None, typer.Option("--distance-km", help="Instead of --route: a flat route of this length ...")
]
SpeedKmhOption = Annotated[float | None, typer.Option("--speed-kmh", help="... at this speed.")]
ReserveSocOption = Annotated[float, typer.Option("--reserve-soc", help="Charge to arrive with at least.")]
SoFarOption = Annotated[Path | None, typer.Option("--so-far", help="Log of the drive up to now, with its power.")]
AmbientOption = Annotated[
    float | None, typer.Option("--ambient", help="Ambient temperature along the whole route, in C.")
]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="Charge over distance as a fan, .html or .png.")]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the answer as one JSON object.")]
SocSpreadOption = Annotated[
    float, typer.Option("--soc-spread", help="Standard deviation of the state of charge, in percent.")
]
CapacitySpreadOption = Annotated[
    float, typer.Option("--capacity-spread", help="Standard deviation of the capacity, in percent of it.")
]
PayloadOption = Annotated[float, typer.Option("--payload-kg", help="Load beyond that of the training trips.")]
PayloadSpreadOption = Annotated[float, typer.Option("--payload-spread-kg", help="Its standard deviation.")]
AmbientSpreadOption = Annotated[
    float, typer.Option("--ambient-spread", help="Standard deviation of the temperature, in C.")
]
HeadWindOption = Annotated[float, typer.Option("--head-wind", help="Head wind along the whole route, in m/s.")]
HeadWindSpreadOption = Annotated[float, typer.Option("--head-wind-spread", help="Its standard deviation.")]
StopsOption = Annotated[float, typer.Option("--stops-min", help="Minutes of standing beyond the route's.")]
StopsSpreadOption = Annotated[float, typer.Option("--stops-spread-min", help="Their standard deviation.")]
WhatIfOption = Annotated[bool, typer.Option("--what-if", help="Also show: slower, colder, with a head wind.")]


def range(
    model: ModelOption,
    soc: SocOption,
    capacity_kwh: CapacityKwhOption = None,
    route: RouteOption = None,
    router: RouterOption = None,
    start: FromOption = None,
    end: ToOption = None,
    dem: DemOption = None,
    distance_km: DistanceKmOption = None,
    speed_kmh: SpeedKmhOption = None,
    reserve_soc: ReserveSocOption = 10.0,
    so_far: SoFarOption = None,
    ambient: AmbientOption = None,
    plot: PlotOption = None,
    json: JsonOption = None,
    soc_spread: SocSpreadOption = 0.0,
    capacity_spread: CapacitySpreadOption = 0.0,
    payload: PayloadOption = 0.0,
    payload_spread: PayloadSpreadOption = 0.0,
    ambient_spread: AmbientSpreadOption = 0.0,
    head_wind: HeadWindOption = 0.0,
    head_wind_spread: HeadWindSpreadOption = 0.0,
    stops: StopsOption = 0.0,
    stops_spread: StopsSpreadOption = 0.0,
    what_if: WhatIfOption = False,
    units: ShowUnits = Units.KM,
) -> None:
    """How far the battery reaches along a route, the chance to arrive, and the charge left, all as distributions.

    Example: evband range car.evband --soc 62 --capacity-kwh 77.4 --route route.csv
    """
    from evband.energy import Doubts, check_battery, known_battery, range_warnings, what_ifs
    from evband.energy.fan import check_picture
    from evband.model import load
    from evband.report.tables import range_table
    from evband.routes import route_source

    if plot:
        check_picture(plot)
    places = [place for place in (route, start, end) if place is not None]
    way = route_source(places, router, distance_km, speed_kmh, dem)
    driven = so_far if so_far is None or dem is None else _with_elevation(so_far, dem)
    fitted = load(model)
    doubts = Doubts(
        soc_spread, capacity_spread, payload, payload_spread, ambient_spread, head_wind, head_wind_spread, stops, stops_spread
    )  # fmt: skip
    full_kwh, doubts = known_battery(fitted, capacity_kwh, doubts)
    check_battery(soc, full_kwh, reserve_soc)
    warn_of_a_share(soc)
    options: dict[str, Any] = {"so_far": driven, "ambient_c": ambient}
    found = what_ifs(fitted, soc, full_kwh, way, reserve_soc=reserve_soc, variants=what_if, doubts=doubts, **options)
    warn_if_not_calibrated(fitted)
    for warning in range_warnings(found):
        print(f"evband: warning: {warning}.", file=sys.stderr)
    console().print(range_table(found, units is Units.MI))
    if capacity_kwh is None:
        print(f"usable battery: {full_kwh:g} kWh (+- {doubts.capacity_sd_pct:.0f} %), from the data sheet")
    _answer(fitted, found, way, options, plot, json)


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
    from evband.files import whole_file
    from evband.routes import read_route

    for name, answer in found.items():
        if isinstance(answer, str):
            print(f"{name}: {answer}")
    print(f"doubt comes from: {shares_line(given(found))}")
    more: dict[str, Any] = {}
    if options["so_far"] is not None:
        more["because_kwh"] = changes(fitted, given(found), way, options["so_far"], options["ambient_c"])
        parts = ", ".join(f"{name} {kwh:+.2f} kWh" for name, kwh in more["because_kwh"].items())
        print(f"the rest, compared with continuing as so far: {parts}")
    more |= advice(fitted, given(found), way, **options)
    lines = advice_lines(given(found), more, float(max(read_route(way).speed_kmh)))
    print("\n".join(lines))
    if plot:
        write_fan(given(found), plot, lines)
    if json:
        with whole_file(json) as temporary:
            temporary.write_text(dumps(range_json(found, more), indent=2) + "\n")
