"""The model card: how a model was made, on what, how well it did, and the car that can be read off its road-load path.

The path is a function of motion alone, P(v, a) in kW at the battery, on the level, everything else at its training
median. With hinges and products no single weight is a mass, so each term is what P itself does, the way a coast-down
test reads a car, of each member; its spread over members is their standard deviation:

    auxiliary    P(0, 0): power at standstill, in kW
    mass         mean over speeds v of [P(v, +A) - P(v, 0)] / (A v), A = 0.5 m/s2: battery power per acceleration and
                 speed. It holds the drive train's losses and the rotating masses, so it exceeds what a scale shows
    regained     the same for -A, as a share of that mass: how much of the braking power comes back
    rolling      F0 and the drag area of the least-squares fit P(v, 0) - P(0, 0) = F0 v + (rho cdA / 2) v^3
    drag area    over the training range from 20 km/h; losses are in these too
    heating      kW for each degree under 18 C; cooling: for each degree over 22 C

The LSTM's own part comes on top and is not in these. Where torque or forces are inputs too, they carry the load and
the rest of the path alone says nothing about the car: then there is no mass, rolling and drag to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import ArtifactError
from evband.features.physics import LOADS, PUSH_MS2, steady_rows
from evband.vehicles.physics import AIR_DENSITY, COOLING_ABOVE_C, HEATING_BELOW_C

if TYPE_CHECKING:
    from evband.model import PowerModel

SLOWEST_MS = 20 / 3.6
FLOOR_NEAR = 0.05  # nu this near to its floor sits on it

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """One figure of the car, of each member."""

    name: str
    unit: str
    members: Array  # [members]

    @property
    def mean(self) -> float:
        return float(self.members.mean())

    @property
    def spread(self) -> float:
        return float(self.members.std())


def degrees_of_freedom(model: PowerModel) -> Array | None:
    """nu of each member that predicts; None for heads without."""
    from evband.network.inference import degrees_of_freedom

    arch = model.architecture_
    return degrees_of_freedom(arch, arch.unpack(model.theta_[model._networks()]))


def on_the_floor(model: PowerModel) -> int:
    """How many members' learned nu sit on nu_min: there variance is mostly tail, and the aleatoric part means less."""
    nu = degrees_of_freedom(model)
    if nu is None or model.settings_.nu is not None:
        return 0
    return int((nu < model.settings_.nu_min + FLOOR_NEAR).sum())


def effective_terms(model: PowerModel) -> list[Term]:
    """What the road-load path says about the car; empty without such a path or without speed among the inputs."""
    features = model.feature_map_
    if not model.architecture_.road or "speed_kmh" not in features.channels or model.adaptation_ is not None:
        return []  # of a started model the LSTM has too large a share in it; its card has the mass it moves like
    terms = [Term("auxiliary power", "kW", path_power(model, np.zeros(1))[:, 0])]
    if not set(LOADS) & set(features.channels):
        terms += _motion_terms(model)
    slopes = features.y_std * _path(model) / features.r_scale
    labels = {"cold": f"heating below {HEATING_BELOW_C:g} C", "hot": f"cooling above {COOLING_ABOVE_C:g} C"}
    for name, label in labels.items():
        if name in features.road_names:
            terms.append(Term(label, "kW/K", slopes[:, features.road_names.index(name)]))
    return terms


def _motion_terms(model: PowerModel) -> list[Term]:
    features = model.feature_map_
    fastest = float(features.high[features.channels.index("speed_kmh")]) / 3.6
    speed = np.linspace(min(SLOWEST_MS, 0.5 * fastest), 0.95 * fastest, 30)
    level = path_power(model, speed)
    load = level - path_power(model, np.zeros(1))
    (rolling, drag), *_ = np.linalg.lstsq(np.stack([speed, speed**3], 1), load.T, rcond=None)
    terms = []
    if "acceleration_ms2" in features.channels:
        middle = speed[len(speed) // 6 : -len(speed) // 6]  # hard pulls at the ends of the range are rare
        level = level[:, len(speed) // 6 : -len(speed) // 6]
        push = ((path_power(model, middle, PUSH_MS2) - level) / (PUSH_MS2 * middle)).mean(1)
        pull = ((level - path_power(model, middle, -PUSH_MS2)) / (PUSH_MS2 * middle)).mean(1)
        terms = [Term("effective mass", "kg", 1000 * push), Term("regained in braking", "share", pull / push)]
    return [
        *terms,
        Term("rolling resistance", "N", 1000 * rolling),
        Term("drag area", "m2", 2 * 1000 * drag / AIR_DENSITY),
    ]


def _path(model: PowerModel) -> Array:
    """[members, road]: the weights of the path, which the two components of a distilled network share."""
    weights = model.params_["road_w"].astype(np.float64)
    return weights[:1] if model.settings_.head == "distilled" else weights


def path_power(model: PowerModel, speed_ms: Array, acceleration: float = 0.0) -> Array:
    """[members, speeds]: the path's power on the level, other channels at their training median."""
    features = model.feature_map_
    r = steady_rows(features, 3.6 * speed_ms, acceleration_ms2=acceleration)
    return np.asarray(features.y_mean + features.y_std * _path(model) @ r.T)


def card(model: PowerModel) -> dict[str, Any]:
    """Everything on the card, as plain numbers and text."""
    s, features, summary = model.settings_, model.feature_map_, model.summary_
    nu = degrees_of_freedom(model)
    try:
        return {
            "method": s.method,
            "members": int(s.members),
            "network": f"{s.layers} x {s.hidden}",
            "inputs": list(features.channels),
            "grid_hz": float(s.hz),
            "road_load_terms": model.architecture_.road,
            "trained_on": {k: summary.get(k) for k in ("trips", "rows", "hours", "simulated")},
            "ranges": dict(
                zip(features.channels, zip(features.low.tolist(), features.high.tolist(), strict=True), strict=True)
            ),
            "made_with": summary.get("made_with", {}),
            "epochs_run": summary.get("epochs_run"),
            "restarts": dict(summary.get("restarts") or {}),
            "held_out_log_score": _in_kw(summary.get("held_out_log_score"), features.y_std),
            "out_of_bag": dict(summary.get("out_of_bag") or {}),
            "collapsed": summary.get("collapsed"),
            "nu": None if nu is None else {"mean": float(nu.mean()), "low": float(nu.min()), "high": float(nu.max())},
            "nu_on_floor": on_the_floor(model),
            "stretch": model.calibration_.moving,
            "standing_stretch": model.calibration_.standing,
            "calibration": model.calibration_.describe(),
            "energy": _energy(model),
            "started": _started(model),
            "settings": s.to_dict(),
            "car": {
                t.name: {"unit": t.unit, "mean": t.mean, "spread": t.spread, "members": t.members.tolist()}
                for t in effective_terms(model)
            },
        }
    except (TypeError, ValueError) as problem:
        raise ArtifactError(f"the model's own account of its training is damaged ({problem}); fit it again.") from None


def _in_kw(log_score: Any, y_std: float) -> float | None:
    """From standardised units to 1/kW."""
    return None if log_score is None else float(log_score) + float(np.log(y_std))


def _started(model: PowerModel) -> dict[str, Any] | None:
    """Of a model that began with a data sheet: the sheet, what it has learned from, and the mass it moves like."""
    state = model.adaptation_
    if state is None:
        return None
    from evband.adaptation.mass import effective_mass
    from evband.features.wheel import SheetMap

    assert isinstance(model.feature_map_, SheetMap)
    masses = effective_mass(model)
    return {
        "vehicle": state.sheet["name"],
        "sheet_mass_kg": model.feature_map_.wheel[0],
        "moves_like_kg": {"mean": float(masses.mean()), "spread": float(masses.std())},
        "minutes": state.minutes,
        "trips": state.trips,
        "base": state.about,
    }


def _energy(model: PowerModel) -> dict[str, Any] | None:
    """What bands of trip energy rest on and assume, read off the model file's own words: `info` must not wait for more."""
    saved = model.energy_
    if saved is None:
        return None
    started = model.adaptation_ is not None
    return {
        "trips": int(saved.get("trips", 0)),
        "linear_path_weight": float(dict(saved.get("mean") or {}).get("weight", 0.0)),
        "of": "simulated trips of other cars" if started else "trips",
        "assumed": "a new car's trips err as simulated cars' do; its own trips correct that"
        if started
        else "the next trip is drawn like the calibration trips; a season that none of them had is not in the band",
        "plans": int(dict(saved.get("planned") or {}).get("trips", 0)),
        "contradictions": model.contradictions_,
    }
