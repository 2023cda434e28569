"""`evband route`: what a route file, a router or a distance becomes, as a table of legs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evband.cli.options import ShowUnits
from evband.cli.show import console, say
from evband.report.units import Units


def route(
    places: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE | A B", help="A route file, or two points lat,lon with --router."),
    ] = None,
    router: Annotated[
        str | None, typer.Option(metavar="URL", help="A running OSRM or Valhalla, asked for the route from A to B.")
    ] = None,
    distance_km: Annotated[
        float | None, typer.Option(help="Instead of a file: a flat route of this length at --speed-kmh.")
    ] = None,
    speed_kmh: Annotated[float | None, typer.Option(help="Speed where the route has none.")] = None,
    dem: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Elevation from the .hgt or .tif tiles in this folder.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the profile as CSV.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    units: ShowUnits = Units.KM,
) -> None:
    """A route as it will be driven: profile CSV, GPX, GeoJSON, answers of OSRM or Valhalla, a log, or a router's way.

    Example: evband route trip.gpx --speed-kmh 80 -o profile.csv
    """
    from json import dumps

    from evband.files import whole_file
    from evband.routes import read_route, route_source
    from evband.routes.legs import profile_of, summary

    way = read_route(route_source(places or [], router, distance_km, speed_kmh, dem))
    for note in way.notes:
        say(f"note: {note}.")
    if output:
        with whole_file(output) as temporary:
            profile_of(way).write_csv(temporary, float_precision=6)
    if json:
        print(dumps(summary(way), indent=2))
    else:
        _show(summary(way), units)


def _show(found: dict[str, Any], units: Units) -> None:
    from rich.table import Table

    name, per = units.value, units.per_km
    table = Table(f"from, {name}", f"to, {name}", f"mean {name}/h", f"top {name}/h", "climb, m", "descent, m", "stops")
    for leg in found["legs"]:
        table.add_row(
            f"{leg['from_km'] * per:.1f}", f"{leg['to_km'] * per:.1f}", f"{leg['speed_kmh'] * per:.0f}",
            f"{leg['fastest_kmh'] * per:.0f}",
            *("-" if leg[key] is None else f"{leg[key]:.0f}" for key in ("climb_m", "descent_m")),
            f"{leg['stops']} ({leg['stopped_s']:.0f} s)" if leg["stops"] else "",
        )  # fmt: skip
    console().print(table)
    climb = "elevation not known" if found["climb_m"] is None else f"{found['climb_m']:.0f} m up, {found['descent_m']:.0f} m down"  # fmt: skip
    print(f"{found['name']}: {found['distance_km'] * per:.1f} {name}, {found['duration_s'] / 60:.0f} min, {climb}")
