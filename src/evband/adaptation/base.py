"""The base: one ensemble in normalised terms (`evband.features.wheel`), and how cars differ from its mean.

For car c, row t and member m the location is  w_c . phi_t,  phi = (road-load terms, hidden state of the member), and
w_c ~ N(w_m, S_m) over cars; the logarithm of the scale differs by  d_c ~ N(shift, sd^2)  (how noisy a log is differs
more from car to car than the mean does). Cars are not normally distributed about that mean: a clean log shows all of a
pedal and a late one half of it. So `cars` holds the population's own draws, w = w_m + S_m^(1/2) u and d = shift + sd u',
each (u, u') a simulated car. All of it was learned from a population of simulated cars; a fleet's own
logs can take its place (`evband prior`).
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from evband.adaptation.groups import Groups
from evband.calibration.value import Calibration
from evband.errors import ArtifactError
from evband.features.wheel import INPUTS, ROADS
from evband.files import header_json, read_bounded, write_whole
from evband.network.architecture import Architecture
from evband.settings import Settings

SHIPPED = Path(__file__).with_name("base.safetensors")
KEY = "evband_base"
VERSION = 3
LARGEST = 64 << 20  # bytes

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Base:
    """What every started model begins with."""

    hidden: int
    theta: Floats  # [members, parameters], weights of the mean car
    spread: Floats  # [members, Q, Q], covariance between cars of (road_w, head_w of the location)
    cars: Floats  # [members, K, Q + 1], (u, u') of K cars, from the quietest log to the noisiest
    x_shift: NDArray[np.float64]  # [inputs]
    x_scale: NDArray[np.float64]
    r_scale: NDArray[np.float64]  # [roads]
    unit: float  # W/kg per standardised unit of power
    scale_shift: float  # mean and deviation over cars of the log scale's offset
    scale_sd: float
    trip_effect: tuple[float, float, float]  # deviation of a trip's own offset in W/kg, share of drag, of rolling
    errors: dict[str, float]  # of mean power along a trip (`evband.energy.ErrorModel`), in W/kg
    about: str  # what it was learned from
    standing: float = 1.0  # stretch of a started car's bands where it stands (`evband.adaptation.standing`)
    groups: Groups = field(default_factory=Groups)  # how mean cars of bodies, makes and models differ from that of all

    @property
    def members(self) -> int:
        return len(self.theta)

    @cached_property
    def digest(self) -> str:
        """Names this base in the files of cars that rest on it."""
        return hashlib.sha256(self.theta.tobytes() + self.spread.tobytes() + self.groups.bytes).hexdigest()[:16]

    @cached_property
    def covariance(self) -> NDArray[np.float64]:
        """[members, Q, Q] between cars, safely invertible."""
        return self.spread.astype(float) + 1e-8 * np.eye(self.spread.shape[1])

    @cached_property
    def root(self) -> NDArray[np.float64]:
        """Its Cholesky factor."""
        return np.asarray(np.linalg.cholesky(self.covariance), np.float64)

    @cached_property
    def precision(self) -> NDArray[np.float64]:
        """Its inverse: the prior of a car's weights."""
        return np.asarray(np.linalg.inv(self.covariance), np.float64)

    @cached_property
    def precision_root(self) -> NDArray[np.float64]:
        return np.asarray(np.linalg.cholesky(self.precision), np.float64)

    @cached_property
    def precision_inverse_root(self) -> NDArray[np.float64]:
        return np.asarray(np.linalg.inv(self.precision_root), np.float64)

    @cached_property
    def architecture(self) -> Architecture:
        return self.settings(1.0, 0).architecture(len(INPUTS), len(ROADS))

    @property
    def views(self) -> dict[str, Floats]:
        """Its weights by name."""
        return self.architecture.unpack(self.theta)

    def settings(self, hz: float, seed: int) -> Settings:
        """Of a model that starts from it."""
        return Settings(
            members=self.members, hidden=self.hidden, hz=hz, seed=seed, fade=True, edges=True, products=False
        )

    def save(self, path: Path) -> None:
        tensors: dict[str, NDArray] = {"theta": self.theta, "spread": self.spread.astype(np.float16),
                                       "cars": self.cars.astype(np.float16)}  # fmt: skip
        if self.groups.shifts is not None:
            tensors["groups"] = self.groups.shifts.astype(np.float16)
        numbers = {
            "version": VERSION, "hidden": self.hidden, "inputs": INPUTS, "roads": ROADS, "x_shift": self.x_shift.tolist(),
            "x_scale": self.x_scale.tolist(), "r_scale": self.r_scale.tolist(), "unit": self.unit,
            "scale_shift": self.scale_shift, "scale_sd": self.scale_sd, "trip_effect": list(self.trip_effect),
            "errors": self.errors, "about": self.about, "standing": self.standing, "groups": self.groups.names,
        }  # fmt: skip
        data = save_tensors(tensors, {KEY: json.dumps(numbers, allow_nan=False)})
        write_whole(path, data)

    @classmethod
    def load(cls, path: Path | None = None) -> Base:
        """The base that ships with evband, or a fleet's own."""
        return _shipped() if path is None else _load(Path(path))


@cache
def _shipped() -> Base:
    return _load(SHIPPED)


def _load(path: Path) -> Base:
    data = read_bounded(path, LARGEST, ArtifactError, "base")
    try:
        return _checked(header_json(data, KEY, "a base for new cars"), load_tensors(data))
    except ArtifactError as problem:
        raise ArtifactError(f"{path}: {problem}") from None
    except (SafetensorError, LookupError, TypeError, ValueError, RecursionError, OverflowError) as problem:
        raise ArtifactError(
            f"{path} is not a base for new cars ({problem}); give one that evband prior wrote."
        ) from None


def _checked(meta: dict[str, Any], tensors: dict[str, NDArray]) -> Base:
    """The base that a file's numbers and tensors are, or a ValueError, LookupError or TypeError."""
    if meta["version"] != VERSION or tuple(meta["inputs"]) != INPUTS or tuple(meta["roads"]) != ROADS:
        raise ValueError("it has other terms than this evband")
    hidden = int(meta["hidden"])
    theta, spread, cars = (tensors[name].astype(np.float32) for name in ("theta", "spread", "cars"))
    size = Settings(hidden=hidden).architecture(len(INPUTS), len(ROADS)).size
    q = len(ROADS) + hidden
    if theta.ndim != 2 or theta.shape[1] != size or spread.shape != (len(theta), q, q) or cars.ndim != 3:
        raise ValueError("its weights have other shapes than its settings ask for")
    if cars.shape[0] != len(theta) or cars.shape[1] < len(theta) or cars.shape[2] != q + 1:
        raise ValueError("its cars do not fit its weights")
    vectors: dict[str, Any] = {name: np.asarray(meta[name], float) for name in ("x_shift", "x_scale", "r_scale")}
    shapes = {"x_shift": len(INPUTS), "x_scale": len(INPUTS), "r_scale": len(ROADS)}
    numbers: dict[str, Any] = {name: float(meta[name]) for name in ("unit", "scale_shift", "scale_sd")}
    numbers["standing"] = float(meta.get("standing", 1.0))  # bases of evband 0.1 and 0.2 lack it
    effect = [float(number) for number in meta["trip_effect"]]
    errors = {str(name): float(value) for name, value in meta["errors"].items()}
    finite = [*numbers.values(), *effect, *errors.values()]
    arrays = (theta, spread, cars, *vectors.values())
    if not (all(map(math.isfinite, finite)) and all(np.isfinite(a).all() for a in arrays)):
        raise ValueError("it holds numbers that are not finite")
    if any(vectors[name].shape != (count,) for name, count in shapes.items()) or len(effect) != 3:
        raise ValueError("its scales do not fit its terms")
    if min(numbers["unit"], numbers["scale_sd"], vectors["x_scale"].min(), vectors["r_scale"].min()) <= 0:
        raise ValueError("a scale of it is not positive")
    Calibration(standing=numbers["standing"])  # a ValueError where no model could have it
    return Base(
        hidden=hidden, theta=theta, spread=spread, cars=cars, **vectors, **numbers, trip_effect=(effect[0], effect[1], effect[2]),
        errors=errors, about=str(meta["about"]),
        groups=Groups.checked(meta.get("groups", []), tensors.get("groups"), *spread.shape[:2]),
    )  # fmt: skip
