"""Scores of predictive bands, and honest intervals for them."""

from __future__ import annotations

from evband.scores.comparison import Comparison, compare, compare_rows, paired_rows, width_at_coverage
from evband.scores.evaluation import RowScores, Scores, evaluate, measured, score_rows, summarise
from evband.scores.intervals import binomial_interval, coverage_interval, mean_interval
from evband.scores.regimes import REGIMES, regimes

__all__ = [
    "REGIMES",
    "Comparison",
    "RowScores",
    "Scores",
    "binomial_interval",
    "compare",
    "compare_rows",
    "coverage_interval",
    "evaluate",
    "mean_interval",
    "measured",
    "paired_rows",
    "regimes",
    "score_rows",
    "summarise",
    "width_at_coverage",
]
