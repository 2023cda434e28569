"""The catalogue, and how a vehicle is found in it by a name as people write it."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from evband.errors import SettingsError, VehicleError
from evband.files import read_toml
from evband.vehicles.sheet import Sheet
from evband.vehicles.variants import any_of

LARGEST_BYTES = 4 << 20
SHORT = {"vw": "volkswagen", "mb": "mercedes", "chevy": "chevrolet"}  # makes as people write them


@cache
def catalogue() -> tuple[Sheet, ...]:
    """The sheets that ship with the package, in the order of the file."""
    text = files("evband.vehicles").joinpath("catalogue.toml").read_text("utf-8")
    return _sheets(tomllib.loads(text), "catalogue.toml")


def read_sheets(path: str | Path) -> tuple[Sheet, ...]:
    """The sheets of a user's TOML file: one at its top level, or several as `[[vehicle]]`.

    With `base = "name"` a sheet starts from that vehicle of the catalogue, and needs only what differs.
    """
    return _sheets(read_toml(path, VehicleError, "data sheet", LARGEST_BYTES), str(path))


def find(name: str, own: Sequence[Sheet] = ()) -> Sheet:
    """The one vehicle of that name, among `own` sheets and the catalogue.

    An exact name (case, blanks and signs aside) wins, then the only vehicle that has all words of it. Several of these are
    variants of one model ("Tesla Model 3"), which give one wider sheet (see `evband.vehicles.variants`), or an error that
    lists them; none is an error with the nearest names.
    """
    found = search(name, own)
    if len(found) == 1:
        return found[0]
    if found:
        words = _words(name)
        model = words[len(_words(found[0].make)) :] if words[:1] == _words(found[0].make)[:1] else words
        if not "".join(words).isdigit() and model and all(_words(s.model)[: len(model)] == model for s in found):
            one = any_of(found)
            if one is not None:
                return one
        listed = "; ".join(sheet.title for sheet in found[:12]) + (" ..." if len(found) > 12 else "")
        raise VehicleError(f"{name!r} is {len(found)} vehicles: {listed}; write which one.")
    near = nearest(name, own)
    name = name if len(name) <= 60 else name[:60] + "..."
    raise VehicleError(
        f"There is no vehicle {name!r} in the catalogue; the nearest are {', '.join(near)}; write one of them, "
        f"or give a data sheet of your own (sheet.toml)."
    )


def search(name: str, own: Sequence[Sheet] = ()) -> tuple[Sheet, ...]:
    """Every vehicle of exactly that name, else those that have all its words (each the beginning of a word of theirs)."""
    words = _words(name)
    sheets = _all(own)
    if not words:
        return ()
    exact = [sheet for sheet in sheets if words in (_words(sheet.name), _words(sheet.title))]
    if exact:
        return tuple(exact[:1])  # a user's own sheet stands before the catalogue's of the same name
    found = tuple(sheet for sheet in sheets if _has(words, _words(sheet.title)))
    run = "".join(words)  # 'etron' for e-tron
    return found or tuple(sheet for sheet in sheets if len(run) > 3 and run in "".join(_words(sheet.name)))


def nearest(name: str, own: Sequence[Sheet] = ()) -> list[str]:
    """The five names that look most like this one."""
    names = {" ".join(_words(sheet.name)): sheet.name for sheet in _all(own)}
    wanted = _words(name[:100])[:8]
    score = {key: _likeness(wanted, key) for key in names}
    return [names[key] for key in sorted(score, key=lambda key: (-score[key], key))[:5]]


def _likeness(wanted: tuple[str, ...], key: str) -> float:
    """How well each word is met by some word of the other name, and a little of how alike the names are as a whole."""
    ratio = difflib.SequenceMatcher
    met = sum(max(ratio(None, word, other).ratio() for other in key.split()) for word in wanted)
    return met / max(len(wanted), 1) + 0.2 * ratio(None, " ".join(wanted), key).ratio()


def _sheets(data: dict[str, Any], where: str) -> tuple[Sheet, ...]:
    listed = data.get("vehicle", [data])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise VehicleError(f"{where}: write each vehicle as a table [[vehicle]].")
    if "vehicle" in data and len(data) > 1:
        other = next(key for key in data if key != "vehicle")
        raise VehicleError(f"{where}: {other} stands beside [[vehicle]]; put it into one of them.")
    return tuple(_sheet(one, f"{where}, vehicle {i + 1}" if len(listed) > 1 else where) for i, one in enumerate(listed))  # fmt: skip


def _sheet(data: dict[str, Any], where: str) -> Sheet:
    base = data.get("base")
    if base is None:
        return Sheet.from_dict(data, where)
    if not isinstance(base, str):
        raise VehicleError(f"{where}: base is {base!r}; write the name of a vehicle of the catalogue.")
    own = {key: value for key, value in data.items() if key != "base"}
    start = find(base).to_dict()
    if "cda_m2" in own or {"cd", "area_m2"} & set(own):
        start.pop("cda_m2", None)
    if "cda_m2" in own:
        start = {key: value for key, value in start.items() if key not in ("cd", "area_m2")}
    return Sheet.from_dict({**start, **own}, where)


def _all(own: Sequence[Sheet]) -> tuple[Sheet, ...]:
    return (*own, *catalogue())


def _words(name: str) -> tuple[str, ...]:
    """Lower-case words of letters and digits: 'e-208' is e, 208 as 'e208' is; accents are dropped, short names of makes spelled out."""
    plain = name.lower().translate(str.maketrans("éèëöüäåšč", "eeeouaasc"))
    return tuple(SHORT.get(word, word) for word in re.findall(r"[a-z]+|\d+", plain))


def _has(words: tuple[str, ...], of: tuple[str, ...]) -> bool:
    """Each word begins a word of the other, numbers whole, every word used once."""
    left = list(of)
    for word in words:
        same = next((x for x in left if x == word), None) or next(
            (x for x in left if not word.isdigit() and len(word) > 1 and x.startswith(word)), None
        )
        if same is None:
            return False
        left.remove(same)
    return True


def named_sheet(vehicle: str) -> Sheet:
    """The sheet that a name in the catalogue, or the path of a TOML file with one vehicle, means."""
    if not vehicle.endswith(".toml"):
        return find(vehicle)
    sheets = read_sheets(vehicle)
    if len(sheets) != 1:
        raise SettingsError(
            f"{vehicle} has {len(sheets)} vehicles; give a file with one, or the name of one in the catalogue."
        )
    return sheets[0]
