"""How wide a started car's bands are where it stands, which differs from car to car more than on the move.

The base says by how much its bands are stretched there (`Base.standing`): the noise that it was taught holds what
stands apart between cars (pumps, screens, lamps), too, which the car's own trips soon tell. With the errors e of their
rows at a standstill, once the model has learned from them, the variances AU + EU that its members say there, c_0 the
stretch before, k trips that told of it before or are given to the base, and n trips that stood, the stretch c is

    c^2 = (k c_0^2 + sum over trips of the mean of u q) / (k + n),   q = e^2 / (AU + EU) (k + n + 1) / (k + n - 1)
    u = (nu + 1) / (nu - 2 + q / c^2)

the likeliest scale of a Student-t whose variance is c^2 (AU + EU). A trip counts as one however long it stood, since its
heater is on or off; errors about what k + n trips were fitted to are smaller than the next one's by the last factor of q.
A charger's rows tell nothing, nor do those no car can have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evband.adaptation.members import Evidence
from evband.bands.mixtures import StudentMixture
from evband.calibration.value import Calibration
from evband.channels import CHANNELS, CHARGING_KW

if TYPE_CHECKING:
    from evband.model import PowerModel

PRIOR_TRIPS = 2.0
LEAST_S = 30.0  # of standing in a trip that counts
LEAST, MOST = 0.2, 5.0
TURNS = 12  # of reweighting


def standing_after(model: PowerModel, rows: Evidence, said: StudentMixture) -> Calibration:
    """The calibration of a model that says this of the rows it has learned from; one that was fitted to given trips stays."""
    before, features = model.calibration_, model.feature_map_
    power = rows.y * features.y_std + features.y_mean
    halts = ~rows.moving & (power >= CHARGING_KW) & (power <= CHANNELS["power_kw"].high)
    stood = [np.arange(group.start, group.stop)[halts[group]] for group in rows.groups]
    stood = [trip for trip in stood if len(trip) * rows.every / model.settings_.hz >= LEAST_S]
    if before.how != "none" or not stood:
        return before
    nu, first, weight = float(said.nu.mean()), before.standing**2, PRIOR_TRIPS + before.trips
    trips = weight + len(stood)
    size = (power - said.mean) ** 2 / (said.aleatoric + said.epistemic) * (trips + 1.0) / (trips - 1.0)
    found = first
    for _ in range(TURNS):
        counted = (nu + 1.0) / (nu - 2.0 + size / found) * size
        found = (weight * first + sum(float(counted[trip].mean()) for trip in stood)) / trips
    return replace(before, standing=float(np.clip(found**0.5, LEAST, MOST)), trips=before.trips + len(stood))
