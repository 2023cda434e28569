"""One cell of a study's table: a recipe trained on a vehicle and scored on what it never saw."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evband import rivals
from evband.calibration.value import LEVEL
from evband.errors import SettingsError
from evband.settings import METHODS, Settings, resolve
from evband.studies.cases import Case, cut, file_name
from evband.studies.results import Row
from evband.training import tuning

if TYPE_CHECKING:
    from evband.bands import Bands
    from evband.model import PowerModel
    from evband.training.loop import Progress

DROPOUT_RATES = tuning.RATES
PUBLISHED_BAND = 0.8
BATCH = 16  # windows per step: with the paper preset's 32, an epoch over one HWFET run would be two steps
KEY = (
    "vehicle", "method", "preset", "prior", "prior_scale", "features", "hz", "members", "epochs", "batch", "seed", "data",
    "dropout_asked",
)  # fmt: skip
TUNED = "tuned"  # a dropout rate that was not given
NETWORKS = tuple(name for name in METHODS if name != "distilled")


@dataclass(frozen=True)
class Recipe:
    """What to train. None takes the preset's own value; `dropout` None is tuned inside the training trips."""

    method: str = "t-anchor"
    preset: str = "default"
    members: int | None = None
    epochs: int | None = None
    seed: int = 0
    prior_variance: float | None = None
    prior_scale: str | None = None
    batch: int = BATCH
    dropout: float | None = None
    device: str = "auto"

    @property
    def rival(self) -> bool:
        return self.method in rivals.NAMES

    @property
    def as_published(self) -> bool:
        """The paper's quantile networks have three levels, 0.1, 0.5 and 0.9."""
        return self.preset == "paper" and self.method.startswith("quantile")

    @property
    def dropout_asked(self) -> str:
        """The rate of a dropout method as it was asked for."""
        if not self.method.endswith("dropout"):
            return ""
        return TUNED if self.dropout is None else f"{self.dropout:g}"

    def settings(self, case: Case) -> Settings:
        return resolve(self.preset, **self._chosen(case))

    def model(self, case: Case) -> PowerModel:
        from evband.model import PowerModel

        return PowerModel(preset=self.preset, device=self.device, **self._chosen(case))

    def _chosen(self, case: Case) -> dict[str, Any]:
        chosen = {k: v for k, v in asdict(self).items() if k not in ("preset", "device") and v is not None}
        return chosen | {"features": case.features, "hz": case.hz, "as_published": self.as_published}

    def cell(self, case: Case) -> Row:
        """What tells this result from all others."""
        about = {"vehicle": case.name, "method": self.method, "features": case.features, "hz": case.hz}
        about |= {"seed": self.seed, "data": case.fingerprint, "dropout_asked": self.dropout_asked}
        if self.rival:
            return about | {"preset": "rival", "prior": "", "prior_scale": "", "members": 1, "epochs": 0, "batch": 0}
        s = self.settings(case)
        prior = f"flat {s.prior_variance:g}" if s.prior == "paper" else s.prior
        recorded = ("prior_scale", "members", "epochs", "batch")
        return about | {"preset": self.preset, "prior": prior} | {name: getattr(s, name) for name in recorded}


def check_methods(names: list[str]) -> None:
    unknown = [name for name in names if name not in (*NETWORKS, *rivals.NAMES)]
    if unknown or not names:
        known = ", ".join((*NETWORKS, *rivals.NAMES))
        raise SettingsError(f"There is no method {(unknown or [''])[0]!r}; choose from {known}.")


def run(
    case: Case,
    recipe: Recipe,
    work: Path | None = None,
    trained: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> tuple[Row, Bands]:
    """Train (or take weights trained elsewhere), predict the test trips, score: the cell's row, and the bands."""
    began = time.monotonic()
    cell = recipe.cell(case)
    if recipe.rival:
        rival = rivals.make(recipe.method, features=case.features, hz=case.hz, seed=recipe.seed).fit(case.train)
        bands = rival.predict(case.test)
        return scores(bands, case, cell) | {"fit_s": time.monotonic() - began}, bands
    if recipe.dropout_asked == TUNED:
        recipe = replace(recipe, dropout=tuned_dropout(case, recipe, say))
    model = recipe.model(case)
    if trained is not None:
        from evband.studies.remote import collect

        collect(model, case, recipe, trained)
    else:
        _fit(model, case, cell, work, progress)
    bands = model.predict(case.test)
    row = scores(bands, case, cell, published=recipe.as_published)
    return row | {"dropout": model.settings_.dropout_rate, "fit_s": time.monotonic() - began}, bands


def _fit(
    model: PowerModel, case: Case, cell: Row, work: Path | None, progress: Callable[[Progress], None] | None
) -> None:
    """Fit with a checkpoint in the study's folder, so that Ctrl-C loses no finished epoch."""
    from evband.training.checkpoint import Checkpoint

    if work is None:
        model.fit(case.train, progress=progress)
        return
    name = file_name("-".join(str(cell[part]) for part in KEY))
    checkpoint = Checkpoint(work / f".{name}.checkpoint", resume=True)
    model.fit(case.train, progress=progress, checkpoint=checkpoint)
    checkpoint.remove()


def scores(bands: Bands, case: Case, cell: Row, published: bool = False) -> Row:
    """A cell's row. A published quantile method's 80 % band is scored as the paper does, against 90 %."""
    from evband.scores import evaluate, width_at_coverage

    level = PUBLISHED_BAND if published else LEVEL
    s = evaluate(bands, case.test, level=level)
    binomial, honest = s["coverage_binomial"], s["coverage_trips"] or [None, None]
    names = ("n", "trips", "rmse_kw", "mae_kw", "r2", "explained_variance", "coverage", "width_kw")
    more = ("standardized_variance", "pit_variance", "crps_kw", "log_score", "interval_score")
    return (
        cell
        | {name: s[name] for name in names}
        | {"band": level, "au_kw": s["aleatoric_kw"], "eu_kw": s["epistemic_kw"]}
        | {"ci_low": binomial[0], "ci_high": binomial[1], "honest_low": honest[0], "honest_high": honest[1]}
        | {"width_at_90_kw": width_at_coverage(bands, LEVEL)}
        | {name: s[name] for name in more}
    )


def tuned_dropout(case: Case, recipe: Recipe, say: Callable[[str], None] | None = None) -> float:
    """The rate with the best log score (CRPS where there is no density) on a part of the training trips held out."""
    from evband.scores import evaluate

    inner = cut(case.name, case.train, case.features, case.hz, seed=recipe.seed)
    tried: dict[float, float] = {}
    for rate in DROPOUT_RATES:
        model = replace(recipe, dropout=rate).model(inner).set_params(calibrate=False).fit(inner.train)
        found = evaluate(model.predict(inner.test), inner.test)
        tried[rate] = found["crps_kw"] if found["log_score"] is None else found["log_score"]
    best = min(tried, key=tried.__getitem__)
    if say:
        say(
            f"{case.name} {recipe.method}: dropout {best:g} of {', '.join(f'{r:g} ({v:.3f})' for r, v in tried.items())}"
        )
    return best
