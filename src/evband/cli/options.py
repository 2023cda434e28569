"""What commands that read logs share: their options, and the reading itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evband.errors import SettingsError

if TYPE_CHECKING:
    from evband.trips import Trips


class Units(StrEnum):
    """What distances are shown in; tables always hold kilometres."""

    KM = "km"
    MI = "mi"

    @property
    def per_km(self) -> float:
        return 1.0 if self is Units.KM else 1.0 / 1.609344


class Fault(StrEnum):
    """What cleaning drops, and --keep keeps."""

    GLITCHES = "glitches"
    FILLS = "fills"
    CHARGING = "charging"
    PARKED = "parked"


Logs = Annotated[list[str], typer.Argument(metavar="LOG...", help="Drive logs: files or globs of any known format.")]
Map = Annotated[
    Path | None, typer.Option("--map", help="TOML file: which column of a table is which channel, unit, sign.")
]
Alias = Annotated[
    list[str] | None, typer.Option("--alias", metavar="CHANNEL=NAME", help="A further name of a channel.")
]
Dbc = Annotated[Path | None, typer.Option("--dbc", help="Bus description for an MF4 log.")]
FlipPower = Annotated[bool, typer.Option("--flip-power", help="Turn the sign of power and current.")]
Keep = Annotated[list[Fault] | None, typer.Option("--keep", help="Report this kind of fault, but do not drop it.")]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit", metavar="CHANNEL=LOW:HIGH", help="Values outside are glitches, instead of the usual limits."
    ),
]
ShowUnits = Annotated[Units, typer.Option("--units", help="Show distances in kilometres or miles.")]


def read_logs(
    logs: Sequence[str],
    map: Path | None = None,
    alias: Sequence[str] | None = None,
    dbc: Path | None = None,
    flip_power: bool = False,
    keep: Sequence[Fault] | None = None,
    limit: Sequence[str] | None = None,
    hz: float | None = None,
) -> Trips:
    """`evband.read_trips` with options as they are typed."""
    from evband.logs.reading import read_trips
    from evband.trips.quality import Cleaning

    kept = set(keep or ())
    cleaning = Cleaning(
        glitches=Fault.GLITCHES not in kept,
        fills=Fault.FILLS not in kept,
        charging=Fault.CHARGING not in kept,
        parked=Fault.PARKED not in kept,
        limits=dict(_limit(text) for text in limit or ()),
    )
    aliases: dict[str, list[str]] = {}
    for text in alias or ():
        channel, name = _channel_and_rest("--alias", text, "CHANNEL=NAME")
        aliases.setdefault(channel, []).append(name)
    return _without_copies(
        read_trips(list(logs), map=map, aliases=aliases, dbc=dbc, hz=hz, cleaning=cleaning, flip_power=flip_power)
    )


def _without_copies(trips: Trips) -> Trips:
    """A log given twice counts once: its copy would pass for a second, independent trip."""
    first: dict[str, str] = {}
    for trip in trips:
        if trip.fingerprint in first:
            told = f"{trip.trip_id} is a copy of {first[trip.fingerprint]} and is left out"
            print(f"evband: warning: {told}", file=sys.stderr)
        first.setdefault(trip.fingerprint, trip.trip_id)
    return trips.subset(first.values()) if len(first) < len(trips) else trips


def _limit(text: str) -> tuple[str, tuple[float, float]]:
    """`power_kw=-100:150` as ("power_kw", (-100, 150))."""
    channel, rest = _channel_and_rest("--limit", text, "CHANNEL=LOW:HIGH")
    try:
        low, high = (float(part) for part in rest.split(":"))
    except ValueError as error:
        raise SettingsError(f"--limit {text}: write it as CHANNEL=LOW:HIGH, for example power_kw=-100:150.") from error
    if not low < high:
        raise SettingsError(f"--limit {text}: its low end is not under its high end; swap them.")
    return channel, (low, high)


def _channel_and_rest(option: str, text: str, form: str) -> tuple[str, str]:
    from evband.channels import VALUES

    channel, equals, rest = text.partition("=")
    if not equals or not rest:
        raise SettingsError(f"{option} {text}: write it as {form}.")
    if channel not in VALUES:
        raise SettingsError(f"{option} {text}: {channel} is no channel; the channels are {', '.join(VALUES)}.")
    return channel, rest
