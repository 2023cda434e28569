"""What a car's own trips say of its energy bands: the bias and the size of their errors of mean power.

The base says of any car that the mean error of a trip has variance  w = g (tau^2 + s^2 phi(T/L) + R/T)  beside the
members' spread (`evband.energy.errors`). The errors r of a car's own trips, measured minus predicted once it has learned
from them, tell how far that is so of this car:

    r ~ t(bias, v w),   bias ~ N(bias_0, v / kappa),   v ~ scaled Inv-chi^2(nu, 1)

so that with the Student-t's weights  u = (tails + 1) / (tails + d / v)  over n trips

    bias = (kappa bias_0 + sum u r / w) / (kappa + sum u / w),   d = ((r - bias)^2 + k EU) / w
    v    = (nu + sum u d + kappa (bias - bias_0)^2) / (nu + n)

(errors of trips that were learned from are smaller than those of new ones, by about the members' spread k EU) and
tau^2, s^2, R become v times as large; kappa and nu go on from there. The base counts as `PRIOR_TRIPS` trips. Energy has a
bias of its own because the location of a Student-t is not its mean: a log whose speed is late has rare, large errors of
one sign, which have little weight among rows and full weight in an energy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.members import Evidence
from evband.bands.mixtures import StudentMixture
from evband.energy.errors import ErrorModel
from evband.errors import ArtifactError
from evband.network.heads.base import SCALE_FLOOR
from evband.network.inference import degrees_of_freedom, softplus

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

PRIOR_TRIPS = 4.0  # chosen on simulated cars 40,000 to 40,079 of `benchmarks.fleet.simulated`: 1 to 4 are alike there
LEAST_S = 45.0  # of a trip that counts
TURNS = 6  # of reweighting
OWN = "own_trips"  # in a model's energy part: kappa in 1/kW^2, and nu


def ahead(model: PowerModel, rows: Evidence) -> StudentMixture:
    """The distribution of these rows' power in kW."""
    views, features = model.architecture_.unpack(model.theta_), model.feature_map_
    h = rows.states
    mu = (h @ views["head_w"][:, 0, :, None])[..., 0] + views["road_w"] @ rows.r.T + views["head_b"][:, :1]
    raw = (h @ views["head_w"][:, 1, :, None])[..., 0] + views["head_b"][:, 1:2]
    nu = degrees_of_freedom(model.architecture_, views)
    assert nu is not None
    scale = features.y_std * (softplus(raw) + SCALE_FLOOR)
    return StudentMixture(features.y_std * mu + features.y_mean, scale, nu)


def energy_after(model: PowerModel, rows: Evidence, found: StudentMixture) -> dict[str, Any] | None:
    """The energy part of a model that has learned from these rows, of which it says what is `found`."""
    if model.energy_ is None:
        return None
    errors = model.errors_
    error = rows.y * model.feature_map_.y_std + model.feature_map_.y_mean - found.mean
    size, second = errors.size(found.aleatoric, 0.0), rows.every / model.settings_.hz
    trips = [
        (error[g].mean(), size[g].mean(), errors.epistemic(found.mu[:, g].mean(1, dtype=float)), seconds)
        for g in rows.groups
        if (seconds := (g.stop - g.start) * second) >= LEAST_S
    ]
    return (
        model.energy_ if not trips else model.energy_ | with_trips(errors, model.energy_.get(OWN), *np.array(trips).T)
    )


def with_trips(
    errors: ErrorModel, own: Any, error: Array, size: Array, spread: Array, seconds: Array
) -> dict[str, Any]:
    """What trips with these mean errors in kW, mean g, k EU and lengths change in an energy part; `own` is (kappa, nu) so far."""
    w = errors.of_mean(seconds, size)
    kappa, nu = (PRIOR_TRIPS / float(np.median(w)), PRIOR_TRIPS) if own is None else _checked(own)
    u, bias, v = np.ones(len(w)), errors.bias, 1.0
    for _ in range(TURNS):
        known = kappa + float((u / w).sum())
        bias = (kappa * errors.bias + float((u * error / w).sum())) / known
        off = ((error - bias) ** 2 + spread) / w
        v = (nu + float((u * off).sum()) + kappa * (bias - errors.bias) ** 2) / (nu + len(w))
        u = (errors.tails + 1.0) / (errors.tails + off / v)
    grown = {name: v * getattr(errors, name) for name in ("tau2", "slow", "fast")}
    return {"bias": bias, **grown, OWN: [known / v, nu + len(w)]}


def _checked(own: Any) -> tuple[float, float]:
    """A model file is not to be trusted."""
    try:
        kappa, nu = map(float, own)
    except (TypeError, ValueError):
        kappa = nu = np.nan
    if not (0.0 < kappa < 1e12 and 0.0 < nu < 1e12):
        raise ArtifactError("What the model file says of the car's own trips is damaged; start and adapt it again.")
    return kappa, nu
