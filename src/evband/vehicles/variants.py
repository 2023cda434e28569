"""A model of which the variant is not known: one sheet with what its variants share, as wide as they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evband.vehicles.sheet import UNITS, Sheet, Source

ALIKE = 0.15  # variants whose mass, drag or tyres lie farther than this from their mean are not one model
_BLENDED = ("kerb_kg", "load_kg", "cda_m2", "crr", "battery_kwh", "regen_limit_kw", "max_power_kw")


def any_of(variants: Sequence[Sheet]) -> Sheet | None:
    """The mean of variants of one make and body, each spread grown by how they differ; None where they differ too much.

    spread^2 = mean of the variants' spread^2 + (standard deviation between variants / mean)^2
    """
    first = variants[0]
    if len({(sheet.make, sheet.body) for sheet in variants}) > 1:
        return None
    numbers: dict[str, float | None] = {}
    spread: dict[str, float] = {}
    for number in _BLENDED:
        known = [(getattr(sheet, number), sheet.uncertainty(number)) for sheet in variants if getattr(sheet, number)]
        if not known:
            continue
        values = np.array([value for value, _ in known])
        mean = float(values.mean())
        if number in ("kerb_kg", "cda_m2", "crr") and np.abs(values / mean - 1).max() > ALIKE:
            return None
        numbers[number] = mean
        spread[number] = min(math.sqrt(np.mean([own**2 for _, own in known]) + float(values.var()) / mean**2), 1.0)
    dropped = dict.fromkeys(set(UNITS) - set(_BLENDED))
    estimate: Source = "estimate"
    heat = {sheet.heat_pump for sheet in variants}
    model = _shared([sheet.model for sheet in variants])
    return replace(
        first,
        name=f"{first.make} {model} (any variant)",
        model=model,
        years="",
        drive="",
        heat_pump=heat.pop() if len(heat) == 1 else None,
        coast_down_n=None,
        coast_down_mass_kg=None,
        source=dict.fromkeys(numbers, estimate),
        spread=spread,
        note="mean of " + ", ".join(sheet.title for sheet in variants),
        **{**dropped, **numbers},  # type: ignore[arg-type]
    )


def _shared(models: Sequence[str]) -> str:
    """What the names begin with alike, in whole words of at least one of them: 'i3' of 'i3 60 Ah' and 'i3s'."""
    length = next((i for i, letters in enumerate(zip(*models, strict=False)) if len(set(letters)) > 1), None)
    start = models[0][:length]
    if length is not None and all(model[length : length + 1].isalnum() for model in models):
        start = start.rpartition(" ")[0]
    return start.strip(" (")
