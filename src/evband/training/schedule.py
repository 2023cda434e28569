"""Learning rate over a run."""

from __future__ import annotations

from math import cos, pi

from evband.settings import Settings


def learning_rate(settings: Settings, step: int, steps: int) -> float:
    """One cycle (Smith & Topin 2019): up over the first steps, then down, both along a cosine; or constant."""
    if settings.schedule == "constant":
        return settings.rate
    low, final, peak = (
        settings.rate / 25,
        settings.rate / 1e4,
        max(1.0, settings.rise * steps),
    )
    if step < peak:
        return settings.rate + (low - settings.rate) * (1 + cos(pi * step / peak)) / 2
    return final + (settings.rate - final) * (1 + cos(pi * (step - peak) / max(1.0, steps - peak))) / 2
