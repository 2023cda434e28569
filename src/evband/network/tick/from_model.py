"""A fitted model's network as plain arrays and numbers: what the tick engine and the ONNX export are built from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evband.network.tick.engine import Engine, Precision
from evband.network.tick.packing import fold_masks

if TYPE_CHECKING:
    import numpy as np

    from evband.model import PowerModel


def engine_of(model: PowerModel, level: float = 0.9, vehicles: int = 1, precision: Precision = "float32") -> Engine:
    """The tick engine of a fitted model, its calibration included."""
    return Engine(member_params(model), **network_settings(model), level=level, vehicles=vehicles, precision=precision)


def network_settings(model: PowerModel) -> dict[str, Any]:
    """Head, target scale and stretches."""
    arch, features = model.architecture_, model.feature_map_
    return {
        "head": arch.distribution.runs_as,
        "y_mean": features.y_mean,
        "y_std": features.y_std,
        "nu_min": arch.nu_min,
        "nu": arch.nu,
        "levels": arch.levels,
        "steps": model.calibration_.steps(features.standstill),
    }


def member_params(model: PowerModel) -> dict[str, np.ndarray]:
    """Weights of the members that predict. With dropout each pass keeps the masks that ``predict`` gives its first trip."""
    params: dict[str, np.ndarray] = model.params_
    rate = model.settings_.dropout_rate
    if not rate:
        return params
    from evband.network.dropout import draw_masks
    from evband.network.streams import DROPOUT, stream

    passes = len(params["head_w"])
    generators = [stream(model.settings_.seed, p, DROPOUT, 0) for p in range(passes)]
    masks = draw_masks(model.architecture_, rate, 1, generators)
    inputs, recurrent = ([mask[:, 0] for mask in group] for group in (masks.inputs, masks.recurrent))
    return fold_masks(params, inputs, recurrent, masks.output[:, 0])
