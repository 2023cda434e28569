"""The zoomable chart's data: every row of every trip, packed small, unpacked by the page's script.

Sixteen-bit integers in steps of a hundredth of a kW (coarser only beyond 300 kW), gzip, base64: some ten bytes per row. The page
thins what it draws to the rows in view and keeps their peaks, so zooming in always ends at the single rows.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.report.chapter import Chapter
from evband.report.thinning import extreme_rows

MAX_ROWS = 160_000  # of a page; beyond it every trip is thinned alike
UNKNOWN = -32768
SERIES = ("power", "mean", "lower", "upper", "share", "speed")  # as the script unpacks them
UNITS = {"share": 1e-4, "speed": 0.01}  # of the integers; of power it depends on the page


def pack(chapter: Chapter, max_rows: int = MAX_ROWS) -> str:
    """JSON for a script element: what each trip is called and how long it is, and the packed rows."""
    rows, (lower, upper) = chapter.rows, chapter.interval
    largest = max(float(np.nanmax(np.abs(v))) for v in (chapter.power, rows.mean, lower, upper))
    step = max(0.01, largest / 32000.0)
    speed = np.full(len(rows), np.nan) if rows.speed_kmh is None else rows.speed_kmh
    share = min(1.0, max_rows / max(len(rows), 1))
    trips: list[dict[str, Any]] = []
    chunks: list[bytes] = []
    for trip_id in dict.fromkeys(rows.trip_id.tolist()):
        of_trip = np.flatnonzero(rows.trip_id == trip_id)
        if share < 1.0:
            buckets = max(1, int(len(of_trip) * share / 6))
            of_trip = of_trip[extreme_rows([v[of_trip] for v in (chapter.power, lower, upper)], buckets)]
        time = rows.time_s[of_trip]
        counts = np.round((time - time[0]) / chapter.step_s).astype("<i4")
        chunks.append(np.diff(counts, prepend=np.int32(0)).astype("<i4").tobytes())
        columns = (chapter.power, rows.mean, lower, upper, chapter.data_share, speed)
        for name, values in zip(SERIES, columns, strict=True):
            chunks.append(_integers(values[of_trip], UNITS.get(name, step)))
        trips.append({"id": str(trip_id), "rows": len(of_trip), "start": float(time[0])})
    packed = base64.b64encode(gzip.compress(b"".join(chunks), 6, mtime=0)).decode()
    head = {"trips": trips, "step_kw": step, "step_s": chapter.step_s, "level": chapter.level, "word": chapter.word}
    return json.dumps(head | {"thinned": share < 1.0, "data": packed}).replace("<", "\\u003c")


def _integers(values: NDArray[np.float64], unit: float) -> bytes:
    scaled = np.clip(np.round(values / unit), -32767, 32767)
    return np.where(np.isfinite(scaled), scaled, UNKNOWN).astype("<i2").tobytes()
