"""Settings of a training run; `evband.settings` has the presets."""

from __future__ import annotations

from dataclasses import dataclass

OPTIMISERS = ("adam", "sgd", "adagrad", "rmsprop")


@dataclass(frozen=True)
class TrainingSettings:
    epochs: int = 60
    rate: float = 1e-2
    schedule: str = "one_cycle"  # or "constant"
    optimiser: str = "adam"
    window: int = 128
    burn_in: int = 32
    batch: int = 64  # windows a step, of each member
    clip: float = 1.0  # gradient norm, of each member
    nu_pace: float = 1.0  # how many times as fast the degrees of freedom move
    prior_scale: str = "posterior"  # prior term over N; "literal" = as the paper prints it
    resample: str | None = None  # "trips": each member weights trips by a Bayesian bootstrap
    dropout: float = 0.0
    checks: int = 25  # looks at the held-out trips during the run
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (
            ("schedule", ("one_cycle", "constant")),
            ("optimiser", OPTIMISERS),
            ("prior_scale", ("posterior", "literal")),
            ("resample", (None, "trips")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} {getattr(self, name)!r} is not one of {', '.join(map(str, allowed))}")
        if not 0 <= self.burn_in < self.window:
            raise ValueError(f"burn_in {self.burn_in} must lie between 0 and the window of {self.window} steps")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout {self.dropout} must be at least 0 and under 1")
        if min(self.epochs, self.batch, self.checks, self.nu_pace) < 1:
            raise ValueError("epochs, batch, checks and nu_pace must be at least 1")


def learning_rate(settings: TrainingSettings, step: int, steps: int) -> float:
    """One cycle (Smith & Topin 2019): up over the first 30 % of steps, then down, both along a cosine; or constant."""
    from math import cos, pi

    if settings.schedule == "constant":
        return settings.rate
    low, final, peak = settings.rate / 25, settings.rate / 1e4, max(1.0, 0.3 * steps)
    if step < peak:
        return settings.rate + (low - settings.rate) * (1 + cos(pi * step / peak)) / 2
    return final + (settings.rate - final) * (1 + cos(pi * (step - peak) / max(1.0, steps - peak))) / 2
