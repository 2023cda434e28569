"""What commands warn of before they answer: trips the model was trained or calibrated on, a model that is not calibrated."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.trips import Trips


def warn_if_not_calibrated(model: PowerModel) -> None:
    """Repeat what the fit said: bands that were never calibrated promise nothing."""
    said = str(model.calibration_)
    if said.startswith("not"):
        why = said.partition(": ")[2] or "fitted with --no-calibrate"
        print(
            f"evband: warning: this model is not calibrated ({why}), so its bands may be too narrow or too wide; "
            "evband calibrate does it with 9 new trips or more.",
            file=sys.stderr,
        )


def warn_of_training_trips(model: PowerModel, trips: Trips, so: str) -> None:
    """Say which of these trips (on the model's grid) had a part in the model, and what follows."""
    seen = trips.among(model.fingerprints_)
    if seen:
        named = f"{seen[0]}{', ...' if seen[1:] else ''}"
        print(
            f"evband: warning: {len(seen)} of {len(trips)} trips were in the training or calibration data ({named}), {so}",
            file=sys.stderr,
        )
