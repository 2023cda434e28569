"""Heads: one file each, and a line in `HEADS`; methods such as t-anchor are a head and a way to make members."""

from evband.network.heads.base import SCALE_FLOOR, Head, Output
from evband.network.heads.distilled import Distilled
from evband.network.heads.gaussian import Gaussian
from evband.network.heads.quantile import Quantiles
from evband.network.heads.student_t import StudentT

HEADS: dict[str, Head] = {head.name: head for head in (StudentT(), Quantiles(), Gaussian(), Distilled())}

__all__ = ["HEADS", "SCALE_FLOOR", "Head", "Output"]
