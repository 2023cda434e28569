"""What the numbers mean, in a sentence each. `{word}` is measured, or simulated where nothing was measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from evband.channels import BRAKING_MS2, CITY_KMH, MOTORWAY_KMH, STANDING_KMH

Format = Callable[[Any], str]

NBSP = "\u00a0"  # keeps a number and its unit on one line
HUGE = 1e6


def minus(text: str) -> str:
    """A true minus sign instead of a hyphen."""
    return text.replace("-", "−")


def rounded(value: float, digits: int) -> str:
    """So many digits after the point; beyond a million in scientific notation, such as 4.7e26."""
    return minus(f"{value:.{digits}f}" if abs(value) < HUGE else re.sub(r"e\+0*", "e", f"{value:.1e}"))


def kw(value: float) -> str:
    return rounded(value, 2) + NBSP + "kW"


def percent(value: float) -> str:
    return rounded(100 * value, 1) + NBSP + "%"


def significant(value: float, digits: int) -> str:
    """So many digits that count, never with an exponent.

    >>> significant(2571.4, 3), significant(0.6749, 3), significant(254.2, 2)
    ('2570', '0.675', '250')
    """
    return f"{float(f'{value:.{digits}g}'):.10f}".rstrip("0").rstrip(".")


def plain(value: float | None) -> str:
    return "unknown" if value is None else rounded(value, 3)


def asked(level: float) -> str:
    """The share that a band promises, such as 90 %."""
    return f"{100 * level:g}{NBSP}%"


def count(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")  # a thin space


def span(interval: list[float]) -> str:
    """An interval of shares, such as 88.1 to 92.3 %."""
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}{NBSP}%"


def of_ten(level: float) -> str:
    """A level in words: 0.9 is 9 of 10."""
    share = Fraction(level).limit_denominator(20)
    if abs(float(share) - level) < 1e-9:
        share_of = 10 if 10 % share.denominator == 0 else share.denominator
        return f"{share.numerator * share_of // share.denominator} of {share_of}"
    return f"{100 * level:g} of 100"


SCORES: tuple[tuple[str, str, Format, str], ...] = (
    ("coverage", "Coverage", percent, "Share of {word} values inside the {level} band. Right is {level}: less and the band promises too much, more and it is wider than necessary."),
    ("coverage_trips", "Honest 95 % interval of it", span, "Where coverage on many more such trips would lie. Rows of one drive err together, so trips are counted, not rows."),
    ("coverage_binomial", "The same, rows as independent", span, "As papers often give it. Far too narrow, because neighbouring rows are alike."),
    ("width_kw", "Mean width", kw, "How wide the {level} band is on average. Of two models with equal coverage, the narrower knows more."),
    ("rmse_kw", "RMSE", kw, "Root of the mean squared difference between {word} power and the mean. Large errors count most."),
    ("mae_kw", "MAE", kw, "Mean difference between {word} power and the mean, sign left out: the typical miss of the point estimate."),
    ("r2", "R²", plain, "Share of the variation of power that the mean explains; 1 is all of it, 0 no better than a constant."),
    ("explained_variance", "Explained variance", plain, "As R², but forgiving a constant offset; a gap between the two is a bias."),
    ("aleatoric_kw", "Aleatoric part", kw, "Standard deviation of the scatter that the members expect of the data itself. More training trips would not remove it."),
    ("epistemic_kw", "Epistemic part", kw, "Standard deviation of the members' means around each other: what the model does not know. It grows where driving differs from training."),
    ("crps_kw", "CRPS", kw, "Distance between the whole predicted distribution and what came, in kW: rewards sharp and right. For a point estimate it would be the MAE. Lower is better."),
    ("log_score", "Log score", plain, "Mean of −log density at the {word} value, density in 1/kW. Punishes surprise hard. Lower is better."),
    ("interval_score", "Interval score", kw, "Width of the band plus a fine for each value outside it, larger the farther out. Lower is better."),
    ("calibration_error", "Calibration error", plain, "Mean gap between asked-for and found share over levels from 5 to 95 %. Ideal is 0."),
    ("pit_variance", "Variance of normal scores", plain, "Spread of each value's rank in its own distribution, put on a normal scale. Ideal is 1; above, bands are too narrow, below, too wide."),
    ("standardized_variance", "Standardised variance", plain, "Squared error over predicted variance; ideal is 1. A few heavy-tailed rows can swing it, so the line above is the one to trust."),
)  # fmt: skip

REGIMES = {
    "standstill": f"under {STANDING_KMH:g} km/h",
    "braking": f"slowing by more than {BRAKING_MS2:g} m/s²",
    "city": f"under {CITY_KMH:g} km/h",
    "rural": f"{CITY_KMH:g} to {MOTORWAY_KMH:g} km/h",
    "motorway": f"over {MOTORWAY_KMH:g} km/h",
}

TELLING = 0.12  # an honest interval wider than this says little
FEW = 5  # with fewer trips nothing is promised


def verdict(coverage: float, interval: list[float] | None, level: float, trips: int) -> str:
    """Whether the band keeps its promise, judged by the honest interval over this many trips.

    An interval around the coverage is cut at 0 and 1, so it counts as twice its longer arm.
    """
    if interval is None:
        return "There is too little driving here to give an interval for that share."
    low, high = interval
    wide = 2 * max(coverage - low, high - coverage)
    if high < level:
        return f"The band is too narrow here: on more trips like these, coverage would lie in {span(interval)}, short of {asked(level)}."
    if trips < FEW:
        return f"Fewer than {FEW} trips show little: on others coverage may well be different."
    if low > level:
        return f"The band is wider than necessary here: on more trips like these, coverage would lie in {span(interval)}, above {asked(level)}."
    if wide > TELLING:
        return f"These trips are consistent with {asked(level)}, but show little: on more of them coverage could be anywhere in {span(interval)}."
    return f"The band keeps its promise: on more trips like these, coverage would lie in {span(interval)}, and {asked(level)} is in there."
