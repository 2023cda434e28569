"""Logs on the command line: each field of `Logs` is an option of every command that reads logs.

A command takes one parameter `logs: Logs` under the decorator `reads_logs`; a new option is a field here and nothing else.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evband.cli.options import grouped
from evband.cli.show import say, warn
from evband.errors import EvbandError, SettingsError

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.trips import Trips


class Fault(StrEnum):
    """What cleaning drops, and --keep keeps."""

    GLITCHES = "glitches"
    SPIKES = "spikes"
    JUMPS = "jumps"
    FILLS = "fills"
    CHARGING = "charging"
    PARKED = "parked"
    COPIES = "copies"


@dataclass(frozen=True)
class Logs:
    """Logs as named on the command line, and how to read them."""

    names: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Drive logs: files or globs of any known format.")
    ]
    map: Annotated[
        Path | None, typer.Option(help="TOML file: which column of a table is which channel, unit, sign.")
    ] = None
    alias: Annotated[list[str] | None, typer.Option(metavar="CHANNEL=NAME", help="Another name of a channel.")] = None
    dbc: Annotated[Path | None, typer.Option(help="Bus description for an MF4 log.")] = None
    flip_power: Annotated[bool, typer.Option("--flip-power", help="Invert the sign of power and current.")] = False
    dem: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Elevation tiles (.hgt, .tif) for logs with coordinates but no elevation."),
    ] = None
    keep: Annotated[list[Fault] | None, typer.Option(help="Report this kind of fault, but do not drop it.")] = None
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="CHANNEL=LOW:HIGH", help="Values outside are glitches (replaces the default)."),
    ] = None
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out files that cannot be read; they are listed at the end.")
    ] = False
    skipped: list[EvbandError] = field(default_factory=list, init=False)

    def read_for(self, model: PowerModel) -> Trips:
        """`read`, on the model's grid."""
        return self.read(model.settings_.hz, model.settings_.bridge_s, model.feature_map_.lag)

    def read(self, hz: float | None = None, bridge_s: float = 0.0, lag: float = 0.0) -> Trips:
        """The trips of all logs, each trip once; on the grid `hz` if given, with silences of `bridge_s` bridged."""
        from evband.logs.reading import read_trips

        trips = read_trips(
            self.names,
            map=self.map,
            aliases=_aliases(self.alias or ()),
            dbc=self.dbc,
            hz=hz,
            bridge_s=bridge_s,
            lag=lag,
            cleaning=_cleaning(self.keep or (), self.limit or ()),
            flip_power=self.flip_power,
            dem=self.dem,
            skipped=self.skipped if self.skip_bad else None,
        )
        for trip in trips:
            for copy in trip.report.of("copy") if trip.report else ():
                warn(f"{trip.trip_id}: {copy.text}")
        return trips

    def warn_of_faults(self, trips: Trips) -> None:
        """Repeat what `evband inspect` calls wrong: nothing is trained on in silence."""
        from evband.logs.summary import warnings_of

        for text in warnings_of(trips):
            warn(text)

    def list_skipped(self) -> None:
        """Name what --skip-bad left out, on standard error."""
        if self.skipped:
            count = len(self.skipped)
            say(f"warning: {count} {'log was' if count == 1 else 'logs were'} skipped:")
            for problem in self.skipped:
                print(f"  {problem}", file=sys.stderr)


def reads_logs(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of `Logs` as its arguments, in place of the parameter `logs`."""

    @functools.wraps(command)
    def run(logs: Logs, **given: Any) -> None:
        try:
            command(logs=logs, **given)
        finally:
            logs.list_skipped()

    return grouped(run)


def _cleaning(keep: list[Fault] | tuple[()], limit: list[str] | tuple[()]) -> Any:
    from evband.trips.quality import Cleaning

    return Cleaning(
        **{fault.value: fault not in keep for fault in Fault},
        limits=dict(_limit(text) for text in limit),
    )


def _aliases(texts: list[str] | tuple[()]) -> dict[str, list[str]]:
    from evband.channels import VALUES

    found: dict[str, list[str]] = {}
    for text in texts:
        channel, name = _channel_and_rest("--alias", text, "CHANNEL=NAME", VALUES)
        found.setdefault(channel, []).append(name)
    return found


def _limit(text: str) -> tuple[str, tuple[float, float]]:
    """`power_kw=-100:150` as ("power_kw", (-100, 150))."""
    from evband.channels import VALUES

    channel, rest = _channel_and_rest("--limit", text, "CHANNEL=LOW:HIGH", VALUES)
    try:
        low, high = (float(part) for part in rest.split(":"))
    except ValueError as error:
        raise SettingsError(f"--limit {text}: write it as CHANNEL=LOW:HIGH, for example power_kw=-100:150.") from error
    if not low < high:
        raise SettingsError(f"--limit {text}: its low end is not under its high end; swap them.")
    return channel, (low, high)


def _channel_and_rest(option: str, text: str, form: str, known: tuple[str, ...]) -> tuple[str, str]:
    channel, equals, rest = text.partition("=")
    if not equals or not rest:
        raise SettingsError(f"{option} {text}: write it as {form}.")
    if channel in ("time_s", "trip_id", "vehicle_id"):
        raise SettingsError(
            f'{option} {text}: {channel} is not a measured channel; write "{rest}" = "{channel}" under [columns] in a TOML '
            "file and give it with --map."
        )
    if channel not in known:
        raise SettingsError(f"{option} {text}: {channel} is not a channel; the channels are {', '.join(known)}.")
    return channel, rest
