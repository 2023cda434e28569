"""`evband fit` from the base: members begin as networks that know vehicles, in the terms of the car's own log.

The inputs x' of the base's LSTMs (`evband.features.wheel`) are nearly linear in those of a fit, x, which hold the
road-load terms: least squares gives  x' = A x + b, and an LSTM of the base runs on x with the weights  W A  and the bias
W b + bias. As many LSTMs as fill a member's units stand side by side. The road-load path and the head of the location
begin as the ridge solution of power on the road-load terms and these units' states, over the trips that the member trains
on. Everything is trained from there, about the same anchors as from scratch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.base import Base
from evband.adaptation.starting import PER_WHEEL, sheet_map
from evband.features.wheel import INPUTS, USUAL, USUAL_KG, wheel_terms
from evband.network.heads import HEADS
from evband.settings import Settings, when_from_base

if TYPE_CHECKING:
    from evband.features import FeatureMap
    from evband.network.architecture import Architecture
    from evband.preparing import Prepared
    from evband.training.plan import Job

Array = NDArray[np.float64]
Floats = NDArray[np.float32]

HZ = (0.5, 2.0)  # grids on which an LSTM of 1 Hz is worth starting from
PULLING = 2.0  # W/kg at the wheels
MASSES = (500.0, 40000.0)  # kg
ALIKE = 0.8  # of the variance of the power at the wheels that the inputs must tell
RIDGE_INPUTS, RIDGE_STATES = 1e-6, 1e-3
WINDOWS, AT_ONCE = 256, 5  # windows that the heads are solved on; members
PRECISE = 0.017  # deviations of power: a log that is told more closely at once (a bench) has more to teach than few epochs learn


def suits(features: FeatureMap, settings: Settings, ground: Base) -> bool:
    """Whether a fit with these inputs can start from the base."""
    network = settings.layers == 1 and settings.hidden % ground.hidden == 0 and settings.road_load
    kind = HEADS[settings.head]
    head = kind.scaled and kind.components == 1 and settings.kind != "dropout"
    inputs = (
        {"speed_kmh", "acceleration_ms2"} <= set(features.channels) and features.edges and bool(features.road_names)
    )
    return network and head and inputs and settings.scaling == "standard" and HZ[0] <= features.hz <= HZ[1]


def from_base(prepared: Prepared, settings: Settings, given: Sequence[str]) -> tuple[Settings, Floats | None]:
    """(settings of the fit, where its members start): the base's, with what that changes but for what is `given`; or random
    weights, None, where that is wanted or the base does not suit."""
    ground, start, features = Base.load(), None, prepared.features
    if settings.from_base and suits(features, settings, ground):
        sheet = sheet_map(ground, USUAL, features.hz)
        found = [sheet.signals_of(trip) for trip in prepared.trips]
        signals = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        start = start_weights(ground, features, signals, prepared.job, settings)
    if start is None:
        return replace(settings, from_base=False), None
    chosen: dict[str, Any] = {name: value for name, value in when_from_base(settings).items() if name not in given}
    return replace(settings, **chosen), start


def start_weights(
    ground: Base, features: FeatureMap, signals: dict[str, Array], job: Job, settings: Settings
) -> Floats | None:
    """``[members, parameters]``: where members start, NaN where they are drawn as from scratch; None where the inputs do not
    tell the power at the wheels, or too well. `signals` are those of a `SheetMap`, of the job's rows but for thinned copies."""
    rows = len(signals["speed_kmh"])
    found = _in_terms_of(job.data.x[:rows], _base_inputs(ground, features, signals, job.data.y[:rows]))
    if found is None:
        return None
    arch = job.architecture(settings)
    theta = np.full((settings.members, arch.size), np.nan, np.float32)
    _carry_over(ground, arch.hidden, *found, arch.unpack(theta))
    errors: list[float] = []
    for first in range(0, settings.members, AT_ONCE):
        some = range(first, min(first + AT_ONCE, settings.members))
        errors += _solve_heads(arch, job, settings, some, theta[some.start : some.stop])
    return theta if float(np.median(errors)) > PRECISE else None


def _base_inputs(ground: Base, features: FeatureMap, signals: dict[str, Array], y: Array) -> Floats:
    """[rows, inputs of the base]: as of a car whose mass is that which pulls like this one, and whose body is usual."""
    wheel = np.asarray(wheel_terms(signals, USUAL)[1]["wheel"])  # W/kg
    power = y * features.y_std + features.y_mean  # kW
    pulls = (wheel > PULLING) & np.isfinite(power)
    slope = float(power[pulls] @ wheel[pulls] / max(1e-9, float(wheel[pulls] @ wheel[pulls])))
    mass = float(np.clip(1000.0 * slope / PER_WHEEL, *MASSES))
    drag = USUAL[1] * (mass / USUAL_KG) ** (2.0 / 3.0)  # an area grows so
    return np.asarray(sheet_map(ground, (mass, drag, USUAL[2]), features.hz).arrays(signals)[0])


def _in_terms_of(x: Floats, theirs: Floats) -> tuple[Array, Array] | None:
    """A [inputs of the base, inputs], b: theirs = A x + b; None where power at the wheels cannot be told from x."""
    design = np.append(x, np.ones((len(x), 1), x.dtype), 1).astype(float)
    gram = design.T @ design / len(x) + RIDGE_INPUTS * np.eye(design.shape[1])
    solved = np.linalg.solve(gram, design.T @ theirs / len(x))
    k = INPUTS.index("wheel")
    left = float(np.mean((design @ solved[:, k] - theirs[:, k]) ** 2)) / max(1e-9, float(theirs[:, k].var()))
    return (solved[:-1].T, solved[-1]) if left < 1.0 - ALIKE else None


def _carry_over(ground: Base, hidden: int, a: Array, b: Array, blocks: dict[str, Floats]) -> None:
    """LSTMs of the base, side by side, into the members' blocks; another choice of them for each member."""
    theirs = ground.views
    inside, bias = theirs["w_ih.0"] @ a, theirs["bias.0"] + theirs["w_ih.0"] @ b
    units, beside = ground.hidden, hidden // ground.hidden
    blocks["w_hh.0"][:] = 0.0
    for m in range(len(blocks["bias.0"])):
        for place in range(beside):
            which = (m + place * (ground.members // beside + 1)) % ground.members
            here = slice(place * units, (place + 1) * units)
            for gate in range(4):
                to = slice(gate * hidden + here.start, gate * hidden + here.stop)
                of = slice(gate * units, (gate + 1) * units)
                blocks["w_ih.0"][m, to], blocks["bias.0"][m, to] = inside[which, of], bias[which, of]
                blocks["w_hh.0"][m, to, here] = theirs["w_hh.0"][which, of]
            blocks["head_w"][m, 1, here] = theirs["head_w"][which, 1] / beside


def _solve_heads(arch: Architecture, job: Job, settings: Settings, numbers: range, theta: Floats) -> list[float]:
    """Road-load path and head of some members, on windows of their own trips; the median error of each."""
    from evband.network.kernels import cpu
    from evband.training.plan import left_out, ridge_of
    from evband.training.windows import cut, find_segments

    data, blocks = job.data, arch.unpack(theta)
    windows = cut(find_segments(data.start, data.trip, data.copy).with_first(), settings.window, settings.burn_in)
    some = np.unique(np.linspace(0, len(windows) - 1, WINDOWS).astype(int))
    steps = np.arange(settings.window)[:, None]
    at = np.minimum(windows.start[some] + steps, len(data.x) - 1)  # [time, windows]
    h, _ = cpu.run(np.ascontiguousarray(data.x[at])[None], arch.lstm_layers(blocks), None, None)
    target = (windows.first[some] <= steps) & (steps < windows.stop[some]) & np.isfinite(data.y[at])
    fold, errors = left_out(job, settings), []
    for k, number in enumerate(numbers):
        own = target & (job.fold[data.trip[at]] != fold[number])
        r, states, y = data.r[at[own]], h[k][own], data.y[at[own]]
        phi = np.concatenate([r, states, np.ones((len(y), 1), np.float32)], 1)
        light = ridge_of(int((job.fold != fold[number]).sum()))
        ridge = np.diag([light] * arch.road + [max(RIDGE_STATES, light)] * arch.hidden + [light])
        w = np.linalg.solve(phi.T @ phi / max(1, len(y)) + ridge, phi.T @ y / max(1, len(y)))
        error = float(np.median(np.abs(y - phi @ w))) if len(y) else 1.0
        blocks["road_w"][k], blocks["head_w"][k, 0] = w[: arch.road], w[arch.road : -1]
        raw = float(np.median(states @ blocks["head_w"][k, 1])) if len(y) else 0.0
        blocks["head_b"][k] = w[-1], np.log(np.expm1(max(error, 1e-3))) - raw
        errors.append(error)
    return errors
