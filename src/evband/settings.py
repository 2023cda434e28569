"""Settings of a model: the presets, the methods, and how they become one resolved set."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from evband.errors import SettingsError
from evband.network.architecture import PUBLISHED_LEVELS, QUANTILE_LEVELS, Architecture
from evband.training.settings import TrainingSettings

METHODS = {  # method -> (head, how members come about)
    "t-anchor": ("t", "anchor"),
    "t-dropout": ("t", "dropout"),
    "quantile-anchor": ("quantile", "anchor"),
    "quantile-dropout": ("quantile", "dropout"),
    "t-ensemble": ("t", "ensemble"),
    "gaussian-anchor": ("gaussian", "anchor"),
    "distilled": ("distilled", "distilled"),  # never fitted: `evband collapse` makes it of a fitted model
}


@dataclass(frozen=True)
class Settings:
    """Everything that decides a fit, resolved; the defaults are the preset `default`."""

    method: str = "t-anchor"
    members: int = 30
    features: str = "auto"
    hz: float = 1.0
    road_load: bool = True
    hinges: bool = True
    edges: bool = True  # road-load terms of the speeds at the edges of a grid bin
    fade: bool = True  # and of what is drawn when a trip begins and fades (heating, cooling); takes five trips or more
    products: bool = True  # the network sees the road-load features, too
    scaling: Literal["standard", "minmax"] = "standard"
    layers: int = 1
    hidden: int = 64
    nu_min: float = 3.0
    nu: float | None = None
    as_published: bool = False  # quantile heads: the paper's three levels
    prior: str = "fan_in"
    prior_variance: float = 0.01  # of the flat prior `paper`
    epochs: int = 60
    rate: float = 1e-2
    schedule: str = "one_cycle"
    optimiser: str = "adam"
    window: int = 128
    burn_in: int = 32
    batch: int = 16
    clip: float = 1.0
    nu_pace: float = 10.0  # of one number a member, whose gradient is small beside its noise
    beta: float = 0.5
    temperature: float = 0.1  # of the anchors: thirty members may stray further than one should
    trip_effect: float = 0.5  # share of a window's mean error that is the trip's own: the location is not fitted to it
    prior_scale: str = "posterior"
    resample: str | None = None
    dropout: float = 0.1  # of the dropout methods
    early_stop: bool = True  # keep each member's weights of the epoch that was best on trips it did not train on
    calibrate: bool = True
    seed: int = 0

    @property
    def head(self) -> str:
        return METHODS[self.method][0]

    @property
    def kind(self) -> str:
        return METHODS[self.method][1]

    @property
    def dropout_rate(self) -> float:
        return self.dropout if self.kind == "dropout" else 0.0

    def architecture(self, inputs: int, road: int) -> Architecture:
        levels = PUBLISHED_LEVELS if self.as_published else QUANTILE_LEVELS
        road = road if self.road_load else 0
        return Architecture(inputs, road, self.layers, self.hidden, self.head, self.nu_min, self.nu, levels)

    def training(self) -> TrainingSettings:
        shared = {f.name: getattr(self, f.name) for f in fields(TrainingSettings) if hasattr(self, f.name)}
        shared["dropout"] = self.dropout_rate
        return TrainingSettings(**shared)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


PRESETS = {
    "default": Settings(),
    "paper": Settings(
        road_load=False,
        hinges=False,
        edges=False,
        fade=False,
        products=False,
        scaling="minmax",
        layers=4,
        hidden=32,
        window=160,
        burn_in=16,
        batch=32,
        prior="paper",
        epochs=300,
        rate=1e-3,
        schedule="constant",
        nu_pace=1.0,
        beta=0.0,
        temperature=1.0,
        trip_effect=0.0,
        early_stop=False,
        calibrate=False,
    ),
}


def resolve(preset: str, **chosen: Any) -> Settings:
    """The preset with what the user chose; None means the preset's own value."""
    if preset not in PRESETS:
        raise SettingsError(f"preset {preset!r} is not one of {', '.join(PRESETS)}")
    chosen = {k: v for k, v in chosen.items() if v is not None}
    for name, value in chosen.items():
        _check_type(name, value)
    settings = replace(PRESETS[preset], **chosen)
    if settings.method not in METHODS:
        raise SettingsError(f"method {settings.method!r} is not one of {', '.join(METHODS)}")
    if not 1 <= settings.members <= 1000:
        raise SettingsError(f"members is {settings.members}; choose 1 to 1000")
    if not 0 < settings.hz <= 100:
        raise SettingsError(f"hz is {settings.hz}; choose a grid above 0 and up to 100 rows a second")
    if settings.seed < 0:
        raise SettingsError(f"seed is {settings.seed}; choose a whole number that is not negative")
    if settings.prior not in ("fan_in", "paper"):
        raise SettingsError(f"prior {settings.prior!r} is not fan_in, paper or a fitted model")
    if min(settings.prior_variance, settings.rate, settings.clip) <= 0 or min(settings.beta, settings.temperature) < 0:
        raise SettingsError("prior_variance, rate and clip must be above 0, beta and temperature not under 0")
    if not 0 <= settings.trip_effect < 1:
        raise SettingsError(f"trip_effect is {settings.trip_effect}; choose 0 (none) to under 1")
    try:
        settings.architecture(1, 1)
        settings.training()
    except ValueError as problem:
        raise SettingsError(str(problem)) from None
    return settings


def completed(saved: dict[str, Any]) -> dict[str, Any]:
    """Settings as an earlier version saved them, with what it did where it did not say so."""
    return {"trip_effect": 0.0, "nu_pace": 1.0} | saved


_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "bool": (bool,), "float": (int, float), "str": (str,)}


def _check_type(name: str, value: Any) -> None:
    """Settings come from command lines, TOML and model files too."""
    annotation = {f.name: str(f.type) for f in fields(Settings)}[name]
    wanted = annotation.split(" | ")[0] if "Literal" not in annotation else "str"
    if not isinstance(value, _TYPES[wanted]) or (isinstance(value, bool) and wanted != "bool"):
        raise SettingsError(f"{name} is {value!r}; give a {wanted}")
    if isinstance(value, float) and not math.isfinite(value):
        raise SettingsError(f"{name} is {value!r}; give a finite number")
