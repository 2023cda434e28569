"""The warning that commands give when they are shown trips the model was trained or calibrated on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.trips import Trips


def warn_of_training_trips(model: PowerModel, trips: Trips, so: str) -> None:
    """Say which of these trips (on the model's grid) had a part in the model, and what follows."""
    seen = trips.among(model.fingerprints_)
    if seen:
        named = f"{seen[0]}{', ...' if seen[1:] else ''}"
        print(
            f"evband: warning: {len(seen)} of {len(trips)} trips were in the training or calibration data ({named}), {so}",
            file=sys.stderr,
        )
