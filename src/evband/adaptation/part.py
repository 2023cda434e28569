"""A car's part: how its members differ from the base, in some 25 kB, where a whole model has 2 MB.

Of each member the weights that `adapt` moves, as float16 differences from the base, and what was learned about them:
of the information A = P - P0 that logs added to the prior precision P0 = L L', the `RANK` largest directions of
L^-1 A L^-T. What is left out was hardly known, so that a car that learns on from its part is a little less sure of
itself, never more. Everything else of a model follows from its data sheet and the base, which the part names by digest.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from evband.adaptation.base import Base
from evband.adaptation.location import location, move_location
from evband.adaptation.starting import started
from evband.adaptation.state import read_readings
from evband.calibration.value import Calibration
from evband.errors import ArtifactError
from evband.files import header_json, write_whole

if TYPE_CHECKING:
    from evband.model import PowerModel

KEY = "evband_part"
VERSION = 1
RANK, TURNS = 6, 5  # directions kept; turns of the iteration that finds them
MOST_BYTES = 4 << 20
BASES = ("base.evband", "prior.evband")  # beside a part, or in the folder above

Array = NDArray[np.float64]


def save_part(model: PowerModel, ground: Base, path: Path, traces: list[str], seed: int, **more: Any) -> None:
    """Write the part of an adapted model; `traces` are its trips' fingerprints, `more` is kept as it is."""
    state = model.adaptation_
    assert state.base == ground.digest
    mine, theirs = (model.architecture_.unpack(theta) for theta in (model.theta_, ground.theta))
    found = _factors(state.precision.astype(float), ground)
    tensors = {
        "weights": (location(mine) - location(theirs)).astype(np.float16),
        "level": (mine["head_b"][:, 1] - theirs["head_b"][:, 1]).astype(np.float16),
        "information": found.astype(np.float16),
    }
    meta = {
        "version": VERSION, "base": ground.digest, "sheet": state.sheet, "scale": list(state.scale), "seed": seed,
        "minutes": state.minutes, "trips": state.trips, "notes": list(state.notes), "fingerprints": traces,
        "readings": state.readings, "calibration": model.calibration_.to_dict(), "energy": model.energy_, **more,
    }  # fmt: skip
    data = save_tensors(tensors, {KEY: json.dumps(meta, allow_nan=False)})
    write_whole(path, data)


def part_tensors(data: bytes) -> dict[str, NDArray]:
    """The arrays of a part, whatever they hold."""
    try:
        return dict(load_tensors(data))
    except SafetensorError as problem:
        raise ArtifactError(f"it is not a whole car's part ({problem}); make it again with evband fleet fit.") from None


def part_meta(data: bytes) -> dict[str, Any]:
    """The header of a part."""
    meta = header_json(data if len(data) <= MOST_BYTES else b"", KEY, "a car's part")
    if meta["version"] != VERSION:
        raise ArtifactError(
            f"it has version {meta['version']} of a car's part, this evband reads {VERSION}; update it."
        )
    return meta


def read_part(path: Path, data: bytes, base: Base | None = None) -> PowerModel:
    """The model of a part, on its base; damage is an error that the caller words."""
    from evband.vehicles import Sheet

    meta, tensors = part_meta(data), part_tensors(data)
    ground = base if base is not None and base.digest == meta["base"] else find_base(path, str(meta["base"]))
    model = started(ground, Sheet.from_dict(meta["sheet"]), int(meta["seed"]))
    theta = ground.theta.copy()
    views = model.architecture_.unpack(theta)
    weights, level, factors = (tensors[name].astype(float) for name in ("weights", "level", "information"))
    members, q = ground.spread.shape[:2]
    shapes = (weights.shape, level.shape, factors.shape)
    numbers = [*map(float, meta["scale"]), float(meta["minutes"]), float(meta["trips"])]
    if shapes != ((members, q), (members,), (members, RANK, q)) or len(numbers) != 4:
        raise ArtifactError("the car's part does not fit its base; make it again with evband fleet fit.")
    if not (all(map(math.isfinite, numbers)) and all(np.isfinite(a).all() for a in (weights, level, factors))):
        raise ArtifactError("the car's part holds numbers that are not finite; make it again with evband fleet fit.")
    if numbers[1] <= 0 or abs(numbers[0]) > 10 or min(numbers[2:]) < 0:
        raise ArtifactError("the car's part is out of bounds; make it again with evband fleet fit.")
    move_location(views, weights)
    views["head_b"][:, 1] += level.astype(np.float32)
    half = factors @ ground.precision_root.transpose(0, 2, 1)
    precision = (ground.precision + half.transpose(0, 2, 1) @ half).astype(np.float32)
    model.theta_, model.fingerprints_ = theta, [str(trace) for trace in meta["fingerprints"]]
    model.calibration_, model.energy_ = Calibration.from_dict(meta["calibration"]), meta["energy"]
    model.adaptation_ = replace(
        model.adaptation_, precision=precision, scale=(numbers[0], numbers[1]), minutes=numbers[2],
        trips=int(numbers[3]), notes=tuple(map(str, meta["notes"])), readings=read_readings(meta),
    )  # fmt: skip
    return model


def find_base(path: Path, digest: str) -> Base:
    """The base of that digest: the one that ships with evband, or a file beside the part or in the folder above."""
    if Base.load().digest == digest:
        return Base.load()
    for folder in (path.parent, path.parent.parent):
        for name in BASES:
            file = folder / name
            if file.is_file() and (found := _base_of(file, file.stat().st_mtime_ns)).digest == digest:
                return found
    raise ArtifactError(
        f"its base {digest} is neither beside it nor in the folder above; copy the fleet's {BASES[0]} there."
    )


@lru_cache(maxsize=4)
def _base_of(path: Path, _changed: int) -> Base:
    return Base.load(path)


def _factors(precision: Array, ground: Base) -> Array:
    """[members, RANK, Q]: rows whose outer products sum to the largest part of the whitened information."""
    inverse = ground.precision_inverse_root
    whitened = inverse @ precision @ inverse.transpose(0, 2, 1) - np.eye(precision.shape[1])
    values, vectors = _largest(whitened, RANK)
    return np.swapaxes(vectors * np.sqrt(np.clip(values, 0.0, 1e9))[:, None], 1, 2)


def _largest(matrices: Array, count: int) -> tuple[Array, Array]:
    """Largest eigenvalues [n, count] of symmetric matrices and their vectors [n, Q, count], by subspace iteration: never
    too large, and an eighth of the time of an exact decomposition."""
    space = matrices[..., : 2 * count]
    for _ in range(TURNS):
        space = np.linalg.qr(matrices @ space)[0]
    values, turn = np.linalg.eigh(np.swapaxes(space, 1, 2) @ matrices @ space)
    return values[:, -count:], space @ turn[..., -count:]
