"""What `evband inspect` shows of a trip, as plain numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from evband.channels import CHANNELS, COORDINATES
from evband.logs.consumption import minutes, total
from evband.trips import Trip
from evband.trips.grid import MAX_GAP_S
from evband.trips.power import gap_of, rate_of
from evband.trips.quality import Finding


def trip_summary(trip: Trip) -> dict[str, Any]:
    """Where a trip came from, how much there is of each channel, and what was found."""
    report = trip.report.to_dict() if trip.report else {"format": "trip", "source": "", "notes": (), "findings": ()}
    time, _ = trip.series("speed_kmh")
    segments = (
        int(trip.table["segment"].n_unique()) if trip.hz else 1 + int(np.sum(np.diff(time) > gap_of(time, MAX_GAP_S)))
    )
    used = total([minutes(trip)])
    return {
        "trip_id": trip.trip_id,
        "format": report["format"],
        "source": report["source"],
        "rows": len(trip),
        "rate_hz": trip.rate_hz,
        "duration_s": trip.duration_s,
        "distance_km": trip.distance_km,
        "segments": segments,
        "energy_kwh": used.energy_kwh if used.distance_km else None,
        "kwh_100km": used.kwh_100km,
        "channels": [_channel_summary(trip, name) for name in (*trip.channels, *COORDINATES) if trip.has(name)],
        "notes": list(report["notes"]),
        "findings": list(report["findings"]),
    }


def _channel_summary(trip: Trip, name: str) -> dict[str, Any]:
    time, value = trip.series(name)
    return {
        "name": name,
        "unit": CHANNELS[name].unit,
        "readings": len(value),
        "rate_hz": rate_of(time),
        "min": float(value.min()),
        "median": float(np.median(value)),
        "max": float(value.max()),
    }


_SEVERE = ("sign", "unit", "rate")  # what changes the meaning of a log: shown in full
_COUNTED = ("glitch", "spike", "jump", "fill", "stuck")


def warnings_of(trips: Iterable[Trip]) -> list[str]:
    """What `fit` repeats of the findings: one sentence per kind and channel, the gravest first."""
    groups: dict[tuple[str, str | None, str], list[tuple[Trip, Finding]]] = {}
    for trip in trips:
        for finding in trip.report.findings if trip.report else ():
            if finding.kind in (*_SEVERE, *_COUNTED):
                groups.setdefault((finding.kind, finding.channel, finding.action), []).append((trip, finding))
    order = {kind: number for number, kind in enumerate((*_SEVERE, *_COUNTED))}
    notes = []
    for (kind, channel, action), found in sorted(groups.items(), key=lambda item: order[item[0][0]]):
        trip, first = found[0]
        of = f" of {channel}" if channel else ""
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        if kind in _SEVERE:
            notes.append(f"{trip.trip_id}: {kind}{of}: {first.text}{more}")
        else:
            what = "stretches" if kind in ("fill", "stuck") else "readings"
            count = sum(finding.count for _, finding in found)
            concerned = len({one.trip_id for one, _ in found})
            where = trip.trip_id if concerned == 1 else f"{concerned} trips, first {trip.trip_id}"
            notes.append(f"{kind}{of}: {count} {what} {action} in {where} (evband inspect shows them)")
    return notes


def summary_json(summaries: Sequence[dict[str, Any]]) -> str:
    """The summaries as JSON; a number that is not one becomes null."""
    return json.dumps(_no_nan(list(summaries)), indent=2)


def _no_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _no_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_no_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
