"""What commands warn of before they answer: trips the model was trained on, a model that is not calibrated, odd numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evband.calibration.value import Calibration
from evband.cli.show import warn

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.trips import Trips


def warn_if_not_calibrated(model: PowerModel) -> None:
    """Repeat why the fit has none: bands that were never calibrated promise nothing."""
    found = model.calibration_
    if found.how == "none" and model.adaptation_ is None:  # a started model says on its card what its bands rest on
        asked = found.why != Calibration().why
        why = found.why.removeprefix("not calibrated: ") if asked else "fitted with --no-calibrate"
        warn(
            f"this model is not calibrated ({why}), so its bands may be too narrow or too wide; "
            "evband calibrate does it with 9 new trips or more"
        )


def warn_of_training_trips(model: PowerModel, trips: Trips, so: str) -> None:
    """Say which of these trips (on the model's grid) had a part in the model, and what follows."""
    seen = trips.among(model.fingerprints_)
    if seen:
        named = f"{seen[0]}{', ...' if seen[1:] else ''}"
        warn(f"{len(seen)} of {len(trips)} trips were in the training or calibration data ({named}), {so}")


def warn_of_a_share(soc: float) -> None:
    """A state of charge under one percent is more often a share: 0.6 for 60 %."""
    if 0 < soc <= 1:
        meant = f"{100 * soc:g}"
        warn(f"--soc {soc:g} is {soc:g} percent; write --soc {meant} if you mean {meant}")
