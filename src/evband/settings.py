"""Settings of a model, each written once: type, default of both presets, unit, range, and when to touch it.

From `Settings` come PowerModel's arguments, `get_params`, the choices and help of `evband fit`, the check of its TOML
file, what a .evband file keeps, and the table in docs/reference/settings.md.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from evband.errors import SettingsError
from evband.network.architecture import HIDDEN, LAYERS, Architecture
from evband.network.heads import HEADS
from evband.network.heads.quantile import LEVELS, PUBLISHED_LEVELS

if TYPE_CHECKING:
    from evband.model import PowerModel

MOST_HZ = 100  # rows per second of a model's grid
METHODS = {  # method -> (head, how members come about)
    f"{name}-{kind}": (name, kind) for name, head in HEADS.items() for kind in head.kinds
} | {name: (name, name) for name, head in HEADS.items() if not head.kinds}  # never fitted: `evband collapse` makes it

_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "bool": ((bool,), "true or false"),
    "float": ((int, float), "a number"),
    "str": ((str,), "a text"),
}


def _between(ends: tuple[int, int]) -> str:
    return f"[{ends[0]}, {ends[1]}]"


def _kind(annotation: Any) -> str:
    first = str(annotation).split(" | ")[0]
    return "str" if first.startswith("Literal") else first


def _inside(value: Any, interval: str) -> bool:
    low, high = map(float, interval[1:-1].split(","))
    above = value >= low if interval[0] == "[" else value > low
    return bool(above and (value <= high if interval[-1] == "]" else value < high))


SAME = object()  # the preset `paper` has the default preset's value


@dataclass(frozen=True)
class About:
    """What is known of a setting beside its type and default."""

    what: str
    when: str  # to touch it
    unit: str = ""
    within: str = ""  # interval of a number, such as "(0, 100]"
    choices: tuple[str, ...] = ()
    paper: Any = SAME

    def check(self, name: str, value: Any, kind: str) -> None:
        """Settings come from command lines, TOML and model files too: type, finiteness, range, choices."""
        wanted, word = _TYPES[kind]
        if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool"):
            raise SettingsError(f"{name} is {value!r}; give {word}.")
        if isinstance(value, float) and not math.isfinite(value):
            raise SettingsError(f"{name} is {value!r}; give a finite number.")
        if self.choices and value not in self.choices:
            raise SettingsError(f"{name} {value!r} is not one of {', '.join(self.choices)}; choose one.")
        if self.within and not _inside(value, self.within):
            raise SettingsError(f"{name} is {value!r}; choose a value in {self.within}.")


def _set(default: Any, what: str, when: str, **about: Any) -> Any:
    return field(default=default, metadata={"about": About(what, when, **about)})


@dataclass(frozen=True)
class Settings:
    """Everything that decides a fit, resolved and checked; the defaults are the preset `default`."""

    method: str = _set("t-anchor", "head, and how members come about", "to compare methods", choices=tuple(METHODS))
    members: int = _set(30, "networks in the ensemble; passes of a dropout method",
                        "fewer for a quick look: fit and predict cost in proportion", within="[1, 1000]")  # fmt: skip
    features: str = _set("auto", "input channels: auto, motion, torque, S1..S5, or channels a,b,c",
                         "motion to plan routes with a log that has torque")  # fmt: skip
    vehicle: str | None = _set(None, "a car of `evband vehicles`, or a TOML sheet: its mass and drag narrow what physics allows the "
                               "road-load path", "where logs are few or messy")  # fmt: skip
    hz: float = _set(1.0, "rows per second of the grid", "the log's own rate, where seconds hide what matters",
                     unit="1/s", within=f"(0, {MOST_HZ}]")  # fmt: skip
    bridge_s: float = _set(0.0, "silences in speed up to this are bridged: state carried, their age an input; 0 cuts at 10 s. Not "
                           "set, it is 30 for a log full of silences: over 5 % of its rows in the half minute after one",
                           "30 for feeds of 2 to 15 s per reading (costs rows of dense logs up to 2 %)",
                           unit="s", within="[0, 120]")  # fmt: skip
    thinning: float = _set(1.0, "share of trips of which an epoch has a copy read every 2 to 15 s, too; takes bridge_s",
                           "0 where feeds are as dense as the training log, silences apart: a fit then takes a quarter of the time",
                           within="[0, 1]")  # fmt: skip
    from_base: bool = _set(True, "members start from the base that ships with evband where inputs, network and head allow; then "
                           "17 epochs are the default (34 where silences are bridged)", "False to train from random weights, as earlier "
                           "versions did", paper=False)  # fmt: skip
    epochs: int = _set(60, "maximum passes over the training rows", "more where the held-out score still improves",
                       within="[1, inf)", paper=300)  # fmt: skip
    layers: int = _set(1, "LSTM layers", "to repeat the paper", within=_between(LAYERS), paper=4)
    hidden: int = _set(64, "LSTM units per layer", "fewer for small devices", within=_between(HIDDEN), paper=32)
    beta: float = _set(0.5, "exponent of the likelihood's weight scale^(2 beta)", "let tune choose",
                       within="[0, inf)", paper=0.0)  # fmt: skip
    temperature: float = _set(0.1, "weight of the anchors: thirty members may stray further than one should",
                              "let tune choose", within="[0, inf)", paper=1.0)  # fmt: skip
    trip_effect: float = _set(0.5, "share of a window's mean error that is the trip's own: the location is not fitted to it",
                              "let tune choose", within="[0, 1)", paper=0.0)  # fmt: skip
    rate: float = _set(1e-2, "learning rate, the peak of one_cycle", "lower where members restart",
                       within="(0, inf)", paper=1e-3)  # fmt: skip
    schedule: str = _set("one_cycle", "learning rate over a run", "to repeat the paper",
                         choices=("one_cycle", "constant"), paper="constant")  # fmt: skip
    rise: float = _set(0.3, "share of a run over which the rate of one_cycle rises", "less where members start from what is "
                       "known", within="(0, 1)")  # fmt: skip
    optimiser: str = _set("adam", "optimiser", "to compare", choices=("adam", "sgd", "adagrad", "rmsprop"))
    window: int = _set(128, "rows per training window", "shorter where all trips are short",
                       unit="rows", within="[1, inf)", paper=160)  # fmt: skip
    burn_in: int = _set(32, "rows that warm a window's state before its targets; under window", "with window",
                        unit="rows", within="[0, inf)", paper=16)  # fmt: skip
    batch: int = _set(16, "windows per step of each member", "larger on a GPU with much data", unit="windows",
                      within="[1, inf)", paper=32)  # fmt: skip
    clip: float = _set(1.0, "largest norm of a member's gradient", "lower where members restart", within="(0, inf)")
    nu_pace: float = _set(10.0, "how many times as fast the degrees of freedom move: one number per member, whose gradient "
                          "is small beside its noise", "1 to train as earlier versions did",
                          within="[1, inf)", paper=1.0)  # fmt: skip
    road_load: bool = _set(True, "a linear path of road-load terms beside the LSTM", "to see what it adds", paper=False)
    hinges: bool = _set(
        True, "road-load terms bent at knots, for losses and limits", "to see what it adds", paper=False
    )
    edges: bool = _set(
        True, "road-load terms of the speeds at the edges of a grid bin", "to see what it adds", paper=False
    )
    fade: bool = _set(True, "terms of what is drawn when a trip begins and fades (heating, cooling); takes five trips",
                      "to see what it adds", paper=False)  # fmt: skip
    products: bool = _set(True, "the LSTM sees the road-load terms, too", "to see what it adds", paper=False)
    scaling: Literal["standard", "minmax"] = _set("standard", "scale of the inputs", "to repeat the paper",
                                                  choices=("standard", "minmax"), paper="minmax")  # fmt: skip
    prior: str = _set("fan_in", "variances of the anchors; or a fitted PowerModel to start from",
                      "a model of another car, where this one has little data",
                      choices=("fan_in", "paper"), paper="paper")  # fmt: skip
    prior_variance: float = _set(0.01, "of the flat prior `paper`", "with prior=paper", within="(0, inf)")
    prior_scale: str = _set("posterior", "prior term over the number of rows, or as the paper prints it (literal)",
                            "to repeat the paper's equation", choices=("posterior", "literal"))  # fmt: skip
    resample: str | None = _set(None, "trips: each member weights trips by a Bayesian bootstrap",
                                "for members that differ more", choices=("trips",))  # fmt: skip
    dropout: float = _set(0.1, "rate of the dropout methods", "let tune choose", within="[0, 1)")
    nu: float | None = _set(None, "fixed degrees of freedom; None learns them", "to fix the tails", within="(2, 1e6]")
    nu_min: float = _set(3.0, "floor of learned degrees of freedom: at 2 there is no variance",
                         "lower (2.1) where nu sits on its floor", within="(2, 1e6]")  # fmt: skip
    as_published: bool = _set(False, "quantile heads: the paper's three levels instead of 19", "to repeat the paper")
    early_stop: bool = _set(True, "keep each member's weights of the epoch that was best on trips it did not train on",
                            "to repeat the paper", paper=False)  # fmt: skip
    calibrate: bool = _set(
        True, "stretch the bands on trips left out in turn", "to see the bands as trained", paper=False
    )
    seed: int = _set(0, "the same seed gives the same model", "to see the spread between runs", within="[0, inf)")

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None or "None" not in str(f.type):
                f.metadata["about"].check(f.name, value, _kind(f.type))
        if not self.burn_in < self.window:
            raise SettingsError(f"burn_in {self.burn_in} must lie between 0 and the window of {self.window} steps.")
        try:
            self.architecture(1, 1)
        except ValueError as problem:
            raise SettingsError(str(problem)) from None

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
        levels = PUBLISHED_LEVELS if self.as_published else LEVELS
        road = road if self.road_load else 0
        return Architecture(inputs, road, self.layers, self.hidden, self.head, self.nu_min, self.nu, levels)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Arguments(TypedDict, total=False):
    """PowerModel's arguments after `method`, for type checkers: `Settings` with None for the preset's value, and how to
    run (a test holds the two together)."""

    preset: str
    members: int | None
    features: str | None
    vehicle: str | None
    hz: float | None
    bridge_s: float | None
    thinning: float | None
    from_base: bool | None
    epochs: int | None
    layers: int | None
    hidden: int | None
    beta: float | None
    temperature: float | None
    trip_effect: float | None
    rate: float | None
    schedule: str | None
    rise: float | None
    optimiser: str | None
    window: int | None
    burn_in: int | None
    batch: int | None
    clip: float | None
    nu_pace: float | None
    road_load: bool | None
    hinges: bool | None
    edges: bool | None
    fade: bool | None
    products: bool | None
    scaling: str | None
    prior: str | PowerModel | None
    prior_variance: float | None
    prior_scale: str | None
    resample: str | None
    dropout: float | None
    nu: float | None
    nu_min: float | None
    as_published: bool | None
    early_stop: bool | None
    calibrate: bool | None
    seed: int
    tune: bool
    device: str


RUN = {  # how to run: decides what is resolved, but is not a part of a resolved set; default first
    "preset": ("default", About("where settings that are not given come from", "to repeat the paper",
                                choices=("default", "paper"))),
    "tune": (False, About("choose beta, trip effect and temperature on inner folds of these trips first",
                          "with ten trips or more, and time for about ten short fits")),
    "device": ("auto", About("where to train", "cpu to leave a GPU alone", choices=("auto", "cpu", "cuda"))),
}  # fmt: skip
ABOUT: dict[str, About] = {f.name: f.metadata["about"] for f in fields(Settings)} | {k: a for k, (_, a) in RUN.items()}
DEFAULTS: dict[str, Any] = {  # of PowerModel's arguments; None: the preset's
    f.name: f.default if f.name in ("method", "seed") else None for f in fields(Settings)
} | {name: default for name, (default, _) in RUN.items()}
FROM_BASE: dict[str, Any] = {"epochs": 17, "rise": 0.15}  # of a fit that starts from the base, where they are not given


def when_from_base(settings: Settings) -> dict[str, Any]:
    """`FROM_BASE`, with up to twice the epochs where members learn slow feeds beside the log's own."""
    thinned = settings.thinning if settings.bridge_s else 0.0
    return FROM_BASE | {"epochs": round((1.0 + thinned) * FROM_BASE["epochs"])}


PRESETS = {
    "default": Settings(),
    "paper": Settings(**{k: about.paper for k, about in ABOUT.items() if about.paper is not SAME}),
}


def signature() -> inspect.Signature:
    """Of PowerModel, for `help` and editors."""
    kinds = {"method": inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return inspect.Signature(
        [inspect.Parameter(k, kinds.get(k, inspect.Parameter.KEYWORD_ONLY), default=v) for k, v in DEFAULTS.items()]
    )


def check_names(names: Iterable[str], where: str) -> None:
    """Refuse an argument that PowerModel does not have."""
    unknown = sorted(set(names) - set(DEFAULTS))
    if unknown:
        raise SettingsError(f"{where}: {unknown[0]} is not a setting; the settings are {', '.join(sorted(DEFAULTS))}")


def check_run(arguments: Mapping[str, Any]) -> None:
    """Refuse a wrong preset, tune or device."""
    for name, (default, about) in RUN.items():
        about.check(name, arguments.get(name, default), type(default).__name__)


def resolve(preset: str, **chosen: Any) -> Settings:
    """The preset with what the user chose; None means the preset's own value."""
    check_run({"preset": preset})
    return replace(PRESETS[preset], **{k: v for k, v in chosen.items() if v is not None})


def completed(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as an earlier version saved them, with what it did where it did not say so."""
    return {"trip_effect": 0.0, "nu_pace": 1.0, "from_base": False, "vehicle": None} | dict(saved)


def described() -> list[str]:
    """The list in docs/reference/settings.md, as Markdown lines."""
    lines = []
    for name, about in ABOUT.items():
        ours = RUN[name][0] if name in RUN else getattr(PRESETS["default"], name)
        theirs = ours if name in RUN else getattr(PRESETS["paper"], name)
        default = f"default {ours}" if theirs == ours else f"default {ours}, paper {theirs}"
        facts = "; ".join(filter(None, (default, about.unit, about.within, " or ".join(about.choices))))
        text = f"- **`{name}`** ({facts}): {about.what}. Touch it: {about.when}."
        lines += textwrap.wrap(text, 118, subsequent_indent="  ", break_on_hyphens=False)
    return lines
