"""How the apps of the world spell units. The factors live in `evband.channels`; here a spelling becomes one of its units."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

from evband.channels import known_units

# unit of evband.channels -> other spellings, by language and habit; compared after `_plain`
_SPELLINGS = {
    "km/h": "kmh kph kmph km/hr kmhr km/u km/t kilometers/hour kilometres/hour kilometerperhour км/ч км/год",
    "mph": "mi/h mi/hr miles/h mile/h miles/hour mileperhour mil/h milles/h mijl/u",
    "m/s": "mps meters/second metres/second meter/second meterpersecond м/с",
    "kn": "kt kts knots",
    "m/s2": "m/s/s mps2 m/sec2 meters/second2 м/с2",
    "g": "gs g's gee",
    "m": "meter meters metre metres mètre mètres metro metros metri metr metry м",
    "ft": "foot feet pied pieds piedi pies fuß stopa stopy stóp voet",
    "km": "kilometer kilometers kilometre kilometres км",
    "mi": "mile miles meilen mil mijl millas miglia",
    "c": "°c degc celsius degreescelsius",
    "f": "°f degf fahrenheit degreesfahrenheit",
    "k": "kelvin",
    "nm": "n-m newtonmeter newtonmeters нм",
    "lbft": "lb-ft lbf-ft lbfft ft-lb ftlb ft-lbf ftlbf ft-lbs",
    "rpm": "tr/min obr/min ot/min giri/min omw/min tpm /min об/мин 1/min u/min r/min rev/min min-1 revolutionsperminute",
    "n": "newton newtons",
    "lbf": "lb lbs",
    "v": "volt volts vdc в",
    "a": "amp amps ampere amperes adc а",
    "kw": "kilowatt kilowatts квт",
    "w": "watt watts вт",
    "hp": "bhp",
    "ps": "cv ch pk",
    "%": "percent pct prozent",
    "1": "fraction ratio 0-1",
    "s": "sec secs second seconds sek",
    "ms": "msec millisecond milliseconds",
    "us": "µs microsecond microseconds",
    "min": "minute minutes",
    "h": "hr hour hours",
}


def _plain(unit: str) -> str:
    """NFKC, lower case, without blanks, signs of multiplication and powers: N⋅m, N·m and Nm are one unit."""
    text = unicodedata.normalize("NFKC", unit.replace("º", "°")).casefold()
    for mark in " \t.⋅·•∙*^_":
        text = text.replace(mark, "")
    return text.replace("−", "-")


_UNIT = {_plain(word): unit for unit, words in _SPELLINGS.items() for word in (unit, *words.split())}


@cache
def unit_for(channel: str, unit: str) -> str | None:
    """`unit` as `evband.channels` writes it, or None where it is not a unit of this channel.

    >>> unit_for("speed_kmh", "Meters/second"), unit_for("ambient_temp_c", "℉"), unit_for("speed_kmh", "rpm")
    ('m/s', 'f', None)
    """
    word = _plain(unit)
    for candidate in (_UNIT.get(word), word):
        if candidate is not None and candidate in known_units(channel):
            return candidate
    return None


def units_row(cells: Sequence[str]) -> list[str] | None:
    """A row of units under the names, without brackets; None where the row is not one.

    >>> units_row(["s", "[km/h]", ""]), units_row(["0.0", "50", "n/a"])
    (['s', 'km/h', ''], None)
    """
    units = [cell.strip(" []()") for cell in cells]
    numbers = any(unit.lstrip("-+")[:1].isdigit() and not is_unit(unit) for unit in units)
    return units if not numbers and any(map(is_unit, units)) else None


def is_unit(unit: str) -> bool:
    """Whether this is a unit of anything here, so that a name's last bracket can be told from a unit."""
    return _plain(unit) in _UNIT or _plain(unit) in {"kv", "mv", "ma", "kwh", "wh", "ah", "°", "hz", "knm"}
