"""The alias table: which of our channels a name in a log may mean, and how good the claim is."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

from evband.channels import CHANNELS
from evband.errors import ChannelError
from evband.logs.formats.units import is_unit

_TAG = re.compile(r"^\s*(\[[^\]]*\]\s*)+")
_BRACKET = re.compile(r"^(.+?)\s*[(\[]([^()\[\]]*)[)\]]\s*$", re.DOTALL)
_OTHER = re.compile(r"[\W_]+")
_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i"})


def plain(name: str) -> str:
    """A name as it is compared: no [ECU] tag, case, accents or punctuation.

    >>> plain("[8C.BMS] Außentemperatur (berechnet)")
    'aussentemperatur berechnet'
    """
    return _OTHER.sub(" ", _bare(_TAG.sub("", name))).strip()


def _bare(text: str) -> str:
    """Without case and accents."""
    text = unicodedata.normalize("NFKD", text).casefold().translate(_LETTERS)
    return "".join(c for c in text if not unicodedata.combining(c))


def split_unit(header: str) -> tuple[str, str]:
    """A header's name and its unit, the last bracket: `Speed (OBD)(km/h)` -> `Speed (OBD)`, `km/h`.

    >>> split_unit("[BMS] Battery Current (A)"), split_unit("Velocity [km/h]"), split_unit("Altitude")
    (('[BMS] Battery Current', 'A'), ('Velocity', 'km/h'), ('Altitude', ''))
    """
    match = _BRACKET.match(header)
    if match is None or not match.group(1).strip():
        return header.strip(), ""
    return match.group(1).strip(), match.group(2).strip()


_BY_WORDS, _LAST = 10_000, 20_000  # ranks: listed names, then names by their words, then last resorts


def is_listed(rank: float) -> bool:
    """Whether a claim of this rank rests on a whole name of the table, and not only on words."""
    return not _BY_WORDS <= rank < _LAST


@dataclass(frozen=True)
class Alias:
    """What one channel is called, and where its values must lie to be believed."""

    names: Mapping[str, int]
    words: Sequence[Sequence[str]]
    exclude: Sequence[str]
    last: Mapping[str, int]
    low: float
    high: float
    # of names that the user gave with one, for logs that name none
    units: Mapping[str, str] = field(default_factory=dict)

    def rank(self, name: str) -> float | None:
        """How good the claim of `name` (already plain) is: smaller is better; None: it claims nothing."""
        if name in self.names:
            return self.names[name]
        if name in self.last:
            return _LAST + self.last[name]
        padded = f" {name} "
        if not self.words or any(word in padded for word in self.exclude):
            return None
        if all(any(word in padded for word in group) for group in self.words):
            return _BY_WORDS + len(name) + (500 if " gps " in padded else 0)  # the shorter, the plainer
        return None


@cache
def _shipped() -> dict[str, Alias]:
    table = tomllib.loads(files(__package__).joinpath("aliases.toml").read_text("utf-8"))
    return {channel: _alias(entry) for channel, entry in table.items()}


def _alias(entry: Mapping[str, list]) -> Alias:
    low, high = entry["range"]
    return Alias(
        names=_ranks(entry["names"]),
        words=tuple(tuple(map(_bare, group)) for group in entry.get("words", ())),
        exclude=tuple(map(_bare, entry.get("not", ()))),
        last=_ranks(entry.get("last", ())),
        low=float(low),
        high=float(high),
    )


def _ranks(names: Sequence[str]) -> dict[str, int]:
    ranks: dict[str, int] = {}
    for name in names:
        ranks.setdefault(plain(name), len(ranks))
    return ranks


def table(extra: Mapping[str, Sequence[str]]) -> dict[str, Alias]:
    """The shipped table with the user's own names in front of it."""
    aliases = dict(_shipped())
    for channel, names in extra.items():
        if channel not in CHANNELS or CHANNELS[channel].kind in ("time", "id"):
            raise ChannelError(
                f"aliases: {channel!r} is not a channel that a name can stand for; use one of "
                f"{', '.join(name for name, c in CHANNELS.items() if c.kind not in ('time', 'id'))}."
            )
        names = [names] if isinstance(names, str) else list(names)
        split = [_without_unit(name) for name in names]
        own = {plain(name): i - len(names) for i, (name, _) in enumerate(split)}  # ranks below 0: first of all
        old = aliases.get(channel)
        if old is None:
            old = Alias({}, (), (), {}, CHANNELS[channel].low, CHANNELS[channel].high)
        units = {plain(name): unit for name, unit in split if unit}
        aliases[channel] = replace(old, names={**old.names, **own}, units=units)
    return aliases


def _without_unit(name: str) -> tuple[str, str]:
    """A user copies a name as the log's header shows it, unit and all: `Packstrom (A)` is `Packstrom`, in A."""
    bare, unit = split_unit(name)
    return (bare, unit) if is_unit(unit) else (name, "")


def claims_any(name: str, aliases: Mapping[str, Alias]) -> bool:
    """Whether a name, whatever its unit, may mean any channel."""
    compared = plain(name)
    return any(alias.rank(compared) is not None for alias in aliases.values())
