"""What `evband fit` says at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evband.card import degrees_of_freedom, on_the_floor
from evband.energy.sanity import REASONS

if TYPE_CHECKING:
    from evband.model import PowerModel


def fit_summary(model: PowerModel) -> list[str]:
    """What the user who fitted it must know: data, training, nu, calibration, and what to expect of new trips."""
    s, summary = model.settings_, model.summary_
    held_out = s.kind != "dropout" and summary.get("held_out_log_score") is not None
    best = ", each member kept as it was at its best epoch" if held_out else ""
    lines = [
        f"{s.method}: {s.members} members of {s.layers} x {s.hidden} on {', '.join(model.feature_map_.channels)} at {s.hz:g} Hz",
        f"trained on {summary['trips']} trips, {summary['rows']} rows, {summary['hours']:.1f} h, for {summary['epochs_run']} epochs{best}",
    ]
    if summary.get("unused"):
        lines.append(f"not used: {', '.join(summary['unused'])}")
    if summary["tuning"]:
        chosen = ", ".join(
            f"{name} {getattr(s, name)}" for name in summary["tuning"][0] if name not in ("score", "trips")
        )
        lines.append(f"tuned over {len(summary['tuning'])} candidates: {chosen}")
    nu, floored = degrees_of_freedom(model), on_the_floor(model)
    if nu is not None:
        lines.append(f"degrees of freedom {nu.mean():.2f} ({nu.min():.2f} to {nu.max():.2f})")
    if floored:
        lines.append(
            f"nu sits on its floor of {s.nu_min:g} in {floored} of {s.members} members: the tails are heavier than it "
            "allows, so read bands and log score rather than the aleatoric part"
        )
    if summary["restarts"]:
        which = ", ".join(f"{number} ({times}x)" for number, times in summary["restarts"].items())
        lines.append(f"members that broke and were restarted from their anchor: {which}")
    lines.append(f"calibration: {model.calibration_.describe()}")
    problems = model.contradictions_
    lines += [f"THIS MODEL CONTRADICTS PHYSICS: {problem}" for problem in problems]
    lines += [REASONS] if problems else []
    return [*lines, _expected(summary.get("out_of_bag"))]


def _expected(scores: dict[str, float] | None) -> str:
    """Accuracy and calibration on trips that members never saw: what new trips of this kind will show."""
    if not scores:
        return "no trip could be left out in turn, so its error on new ones is unknown; evband evaluate measures it"
    return (
        f"expect of new trips like these: RMSE {scores['rmse_kw']:.2f} kW, MAE {scores['mae_kw']:.2f} kW, "
        f"{scores['coverage']:.0%} of values in the 90 % band (from training trips, each left out by the members that predict it)"
    )
