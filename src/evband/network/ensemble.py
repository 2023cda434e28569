"""A fitted ensemble as plain arrays and numbers: what the tick engine and ONNX graphs are built from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from evband.errors import SettingsError
from evband.network.architecture import Architecture
from evband.network.dropout import draw_masks, fold_masks
from evband.network.heads import HEADS
from evband.network.heads.quantile import LEVELS
from evband.network.inference import standard_of
from evband.network.standard import Standard
from evband.network.steps import UNSTRETCHED, Steps
from evband.network.streams import of_passes

if TYPE_CHECKING:
    from evband.model import PowerModel


@dataclass(frozen=True, eq=False)
class Ensemble:
    """All members' weights, what they give, and how that becomes a distribution in kW."""

    params: Mapping[str, NDArray]  # [members, ...] each, named as in `Architecture.shapes`
    head: str = "t"
    y_mean: float = 0.0  # of the training power, kW
    y_std: float = 1.0
    nu_min: float = 3.0
    nu: float | None = None  # fixed degrees of freedom; None = learned
    levels: tuple[float, ...] = LEVELS  # of a quantile head
    steps: Steps = UNSTRETCHED  # which factor stretches a row about its mean

    def __post_init__(self) -> None:
        known = [name for name, kind in HEADS.items() if kind.runs_as == name]
        if self.head not in known:
            raise SettingsError(f"The head {self.head!r} is not one of {', '.join(known)}.")
        if not all(0 < factor < math.inf for factor in self.steps.factors):
            raise SettingsError(f"A stretch must be a positive number, not {min(self.steps.factors)}.")
        for name, shape in self.arch.shapes.items():
            found = self.params[name].shape if name in self.params else "missing"
            if found != (self.members, *shape):
                raise SettingsError(
                    f"Parameter {name} should have shape {(self.members, *shape)} but is {found}; give those of one model."
                )

    @property
    def members(self) -> int:
        return len(self.params["head_b"])

    @cached_property
    def arch(self) -> Architecture:
        """Read off the parameters."""
        layers = sum(name.startswith("w_hh.") for name in self.params)
        if not layers or "head_w" not in self.params:
            raise SettingsError("The parameters hold no LSTM layer or no head; give those of a fitted model.")
        inputs, road = self.params["w_ih.0"].shape[2], self.params["road_w"].shape[1] if "road_w" in self.params else 0
        hidden = self.params["head_w"].shape[2]
        arch = Architecture(inputs, road, layers, hidden, self.head, self.nu_min, self.nu, tuple(self.levels))
        if arch.outputs != (outputs := self.params["head_w"].shape[1]):
            raise SettingsError(
                f"A {self.head} head does not have {outputs} outputs; give the model's own head and levels."
            )
        return arch

    @cached_property
    def standard(self) -> Standard:
        """The standard distribution of each member."""
        return standard_of(self.arch, self.params)


def ensemble_of(model: PowerModel) -> Ensemble:
    """The members of a fitted model that predict, its calibration included."""
    arch, features = model.architecture_, model.feature_map_
    steps = model.calibration_.steps(features.scaled_input)
    return Ensemble(
        _params(model), arch.distribution.runs_as, features.y_mean, features.y_std, arch.nu_min, arch.nu, arch.levels, steps
    )  # fmt: skip


def _params(model: PowerModel) -> dict[str, Any]:
    """Their weights. With dropout each pass keeps the masks that ``predict`` gives its first trip."""
    params, rate = model.params_, model.settings_.dropout_rate
    if not rate:
        return params
    generators = of_passes(model.settings_.seed, len(params["head_w"]))
    return fold_masks(params, draw_masks(model.architecture_, rate, 1, generators))
