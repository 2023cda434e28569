"""Every reading that was taken, as JSON lines that `evband predict` and `source = "replay"` read: a feed to look into."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson

from evband.errors import SettingsError
from evband.live.assemble import Batch
from evband.live.reading import COLUMNS


class Record:
    """A file that grows."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("ab")
        except OSError as problem:
            raise SettingsError(f"{path}: readings cannot be recorded there ({problem.strerror}).") from None
        self.lost = 0

    def write(self, ids: list[str], batch: Batch) -> None:
        lines = []
        for car, time, row in zip(batch.cars.tolist(), batch.times.tolist(), batch.values, strict=True):
            known = {COLUMNS[j]: float(row[j]) for j in np.flatnonzero(~np.isnan(row)).tolist()}
            lines.append(orjson.dumps({"utc": time, "vehicle_id": ids[car]} | known) + b"\n")
        try:
            self._file.write(b"".join(lines))
            self._file.flush()
        except OSError:  # a full disk must not stop the service
            self.lost += len(lines)

    def close(self) -> None:
        self._file.close()
