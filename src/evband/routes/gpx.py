"""GPX: a track (with times and elevation, perhaps) or a route. A DTD or an entity is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.parsers import expat

import numpy as np

from evband.errors import LogError
from evband.routes.way import MOST_POINTS, Way, from_points

LONGEST_TEXT = 64
DEEPEST = 50
WORDS = {"lat": "latitude", "lon": "longitude", "ele": "elevation"}


class _Reader:
    """Collects the points of tracks and routes; everything else is passed over."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.points: dict[str, list[tuple[float, float, float, float]]] = {"trkpt": [], "rtept": []}
        self.count = {"trk": 0, "rte": 0}
        self.root = ""
        self._depth = 0
        self._point: dict[str, float] | None = None
        self._text: list[str] | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse

    def _refuse(self, *_: object) -> None:
        raise LogError(f"{self.where}: it has a document type or entities, which a GPX does not need; remove them.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(" ")[2]
        self._depth += 1
        self.root = self.root or name
        if self._depth > DEEPEST:
            raise LogError(f"{self.where}: it is nested more than {DEEPEST} deep; this is not a GPX.")
        if name in self.count:
            self.count[name] += 1
        if name in self.points:
            if len(self.points[name]) >= MOST_POINTS:
                raise LogError(
                    f"{self.where}: it has more than {MOST_POINTS // 1_000_000} million points; thin it out."
                )
            self._point = {key: self._number(attributes.get(key), WORDS[key]) for key in ("lat", "lon")}
        elif name in ("ele", "time") and self._point is not None:
            self._text = []

    def _characters(self, text: str) -> None:
        if self._text is not None and len(self._text) < LONGEST_TEXT:
            self._text.append(text[:LONGEST_TEXT])

    def _end(self, name: str) -> None:
        name = name.rpartition(" ")[2]
        self._depth -= 1
        if name in ("ele", "time") and self._point is not None and self._text is not None:
            text = "".join(self._text).strip()
            if text:
                self._point[name] = self._number(text, WORDS[name]) if name == "ele" else _seconds(text)
            self._text = None
        elif name in self.points and self._point is not None:
            p, nan = self._point, float("nan")
            self.points[name].append((p["lat"], p["lon"], p.get("ele", nan), p.get("time", nan)))
            self._point = None

    def _number(self, text: str | None, word: str) -> float:
        line = self.parser.CurrentLineNumber
        if text is None:
            raise LogError(f"{self.where}: a point in line {line} has no {word}; add it or remove the point.")
        try:
            return float(text)
        except ValueError:
            raise LogError(
                f"{self.where}: the {word} {text[:30]!r} in line {line} is not a number; correct or remove it."
            ) from None


def read(data: bytes, path: str) -> Way:
    """The file's only track, else its only route."""
    reader = _Reader(path)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise LogError(f"{path}: its XML is cut short or broken ({error}); export the route again.") from None
    if reader.root != "gpx":
        raise LogError(
            f"{path}: this is XML, but not GPX (it begins with {reader.root[:30]!r}); export the route as GPX."
        )
    kind, name, word = ("trkpt", "trk", "track") if reader.points["trkpt"] else ("rtept", "rte", "route")
    if reader.count[name] > 1:
        raise LogError(f"{path}: it holds {reader.count[name]} {word}s, and a route is one; keep the one to be driven.")
    if not reader.points[kind]:
        raise LogError(f"{path}: it holds neither a track nor a route; export one of them.")
    lat, lon, height, time = np.array(reader.points[kind]).T
    note: tuple[str, ...] = ()
    timed = time if np.isfinite(time).all() and len(time) > 1 else None
    if timed is None and np.isfinite(time).any():
        note = ("some of its points have no time, so its times are not used",)
    if timed is not None and (np.diff(timed) <= 0).any():
        keep = np.append(True, timed[1:] > np.maximum.accumulate(timed)[:-1])
        if keep.mean() < 0.5:
            timed, note = None, ("its times do not increase, so they are not used",)
        else:
            lat, lon, height, timed = lat[keep], lon[keep], height[keep], timed[keep]
            note = (f"{int((~keep).sum())} points whose time does not increase were left out",)
    if timed is not None and len(timed) > 1 and timed[-1] - timed[0] < 1.0:
        timed = None
    return from_points(path, lat, lon, height, timed).noted(*note)


def _seconds(text: str) -> float:
    """Seconds since 1970 of an ISO 8601 instant; NaN where it is not one."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return float("nan")
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
