"""A user's TOML of a maker's PIDs and CAN frames: which answer holds which channel, by a formula.

[[pid]]
header = "7E4"                       # the control unit that is asked; 7DF (all) by default
command = "220101"
every_s = 1.0
speed_kmh = "..."                    # channel = formula over the answer's bytes, see `formula`
battery_current_a = "signed(K*256+L, 16)/10"
battery_voltage_v = "(M*256+N)/10"

[[can]]                              # WiCAN's can/rx
id = 0x3B4
soc_pct = "[1]/2"

[names]                              # WiCAN's own decoded objects
HV_SOC = "soc_pct"
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evband.errors import SettingsError
from evband.files import read_toml
from evband.live.reading import COLUMNS
from evband.live.sources.formula import Formula, compiled


@dataclass(frozen=True)
class Pid:
    """One question and what its answer holds."""

    command: str
    header: str = "7DF"
    every_s: float = 1.0
    channels: dict[str, Formula] = field(default_factory=dict)


@dataclass(frozen=True)
class PidList:
    """All of a file."""

    pids: tuple[Pid, ...] = ()
    frames: dict[int, dict[str, Formula]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


SAE = (
    Pid("010D", every_s=0.0, channels={"speed_kmh": compiled("A")}),
    Pid("0146", every_s=60.0, channels={"ambient_temp_c": compiled("A-40")}),
    Pid("015B", every_s=30.0, channels={"soc_pct": compiled("A*100/255")}),
)
"""Questions that every car must answer or refuse: speed as often as possible, temperature and charge now and then."""


def read_pids(path: Path) -> PidList:
    """The file, checked; its formulas are parsed, never executed."""
    table = read_toml(path, SettingsError, "list of PIDs")
    names, pids, frames = table.get("names", {}), table.get("pid", []), table.get("can", [])
    if not isinstance(names, dict) or not all(isinstance(each, list) for each in (pids, frames)):
        raise SettingsError(f"{path}: write PIDs as [[pid]], frames as [[can]] and names as [names].")
    if not all(isinstance(entry, dict) for entry in [*pids, *frames]):
        raise SettingsError(f"{path}: each [[pid]] and [[can]] is a table; write command or id and formulas in it.")
    for name, channel in names.items():
        _channel(channel, f"{path}: [names] {name}")
    return PidList(
        tuple(_pid(entry, f"{path}: pid {i + 1}") for i, entry in enumerate(pids)),
        {_id(e, path): _formulas(e, f"{path}: can {e.get('id')}", ("id",)) for e in frames},
        dict(names),
    )


def _pid(entry: dict[str, Any], where: str) -> Pid:
    command, header = str(entry.get("command", "")).upper(), str(entry.get("header", "7DF")).upper()
    if not re.fullmatch(r"(?:[0-9A-F]{2}){1,7}", command) or not re.fullmatch(
        r"[0-9A-F]{3}|[0-9A-F]{6}|[0-9A-F]{8}", header
    ):
        raise SettingsError(f"{where}: command and header must be hexadecimal, such as 220101 and 7E4; correct them.")
    every = entry.get("every_s", 1.0)
    if isinstance(every, bool) or not isinstance(every, int | float) or not 0 <= every <= 86400:
        raise SettingsError(f"{where}: every_s is {every!r}; give seconds.")
    return Pid(command, header, float(every), _formulas(entry, where, ("command", "header", "every_s")))


def _formulas(entry: dict[str, Any], where: str, others: tuple[str, ...]) -> dict[str, Formula]:
    found = {}
    for name, text in entry.items():
        if name not in others:
            _channel(name, where)
            if not isinstance(text, str):
                raise SettingsError(f'{where}: {name} must be a formula in quotes, such as "A*256+B".')
            found[name] = compiled(text)
    return found


def _channel(name: Any, where: str) -> None:
    if not isinstance(name, str) or name not in COLUMNS:
        raise SettingsError(f"{where}: {name!r} is not a channel; the channels are {', '.join(COLUMNS)}.")


def _id(entry: dict[str, Any], path: Path) -> int:
    number = entry.get("id")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 29:
        raise SettingsError(f"{path}: a [[can]] entry needs its id as a number, such as id = 0x3B4.")
    return number
