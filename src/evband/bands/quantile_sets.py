"""The predictive distribution of a quantile method: quantiles at fixed levels, averaged over members."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evband.bands.mixtures import Array, Mixture
from evband.errors import SettingsError
from evband.network import heads
from evband.network.quantiles import deviation_weights, mean_weights, pinball, quantile_weights, tail_weights

LEVELS: Array = np.array(heads.quantile.LEVELS)


class QuantileSet(Mixture):
    """Quantiles of M members at `levels`: q [M, levels, n] in kW, averaged over members, then sorted (`crossing` = share of rows that needed it).

    Between and beyond the levels: `evband.network.quantiles`.
    `centre` [M, n] is a method's own estimate of the mean, where it has one; else the mean is that of the distribution.
    Epistemic = variance of the members' medians; aleatoric = (width of the mean 90 % band / (2 z_0.95))^2. No density.
    """

    def __init__(self, q: ArrayLike, levels: ArrayLike = LEVELS, centre: ArrayLike | None = None) -> None:
        self.levels = np.asarray(levels, dtype=np.float64)
        self.q = np.asarray(q)  # [M, levels, n]
        self.centre = None if centre is None else np.asarray(centre)  # [M, n]
        if self.q.ndim != 3 or self.q.shape[1] != len(self.levels):
            raise SettingsError(
                f"A quantile set needs q of shape [members, {len(self.levels)} levels, rows], not {self.q.shape}."
            )
        if len(self.levels) < 3 or np.any(np.diff(self.levels) <= 0) or not 0 < self.levels[0] < self.levels[-1] < 1:
            raise SettingsError("Quantile levels must be three or more, increasing, between 0 and 1.")

    def __len__(self) -> int:
        return int(self.q.shape[2])

    @cached_property
    def _averaged(self) -> Array:
        return np.asarray(self.q.mean(axis=0, dtype=np.float64))  # [levels, n]

    @cached_property
    def crossing(self) -> float:
        """Share of rows whose averaged quantiles were out of order."""
        return float(np.mean(np.any(np.diff(self._averaged, axis=0) < 0, axis=0))) if len(self) else 0.0

    @cached_property
    def sorted(self) -> Array:
        """Quantiles averaged over members, in order: [levels, n]."""
        return np.sort(self._averaged, axis=0)

    @cached_property
    def _tail_scales(self) -> tuple[Array, Array]:
        lower, upper = np.maximum(tail_weights(self.levels) @ self.sorted, 1e-9)  # equal quantiles still leave a tail
        return lower, upper

    @cached_property
    def mean(self) -> Array:
        """The members' own mean where given, else the integral of the quantile function."""
        if self.centre is not None:
            return np.asarray(self.centre.mean(axis=0, dtype=np.float64))
        return np.asarray(mean_weights(self.levels) @ self.sorted)

    @cached_property
    def aleatoric(self) -> Array:
        return np.asarray((deviation_weights(self.levels) @ self.sorted) ** 2)

    @cached_property
    def medians(self) -> Array:
        """[M, n]: each member's own."""
        weights = quantile_weights(self.levels, 0.5)
        return np.asarray(sum(weights[j] * self.q[:, j] for j in np.flatnonzero(weights)))

    @cached_property
    def epistemic(self) -> Array:
        return np.asarray(np.var(self.medians, axis=0))

    def quantile(self, p: float) -> Array:
        return np.asarray(quantile_weights(self.levels, p) @ self.sorted)

    def closed_form(self, level: float) -> Array:
        raise SettingsError(
            "The closed-form band is for Student-t and Gaussian heads; use interval='mixture' with quantiles."
        )

    def tails(self, y: ArrayLike) -> tuple[Array, Array]:
        q, p, (lower, upper) = self.sorted, self.levels, self._tail_scales
        target = np.broadcast_to(np.asarray(y, dtype=np.float64), (len(self),))
        left = np.clip((q <= target).sum(axis=0) - 1, 0, len(p) - 2)  # the interval that holds y
        row = np.arange(len(self))
        low, high = q[left, row], q[left + 1, row]
        share = np.clip((target - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
        below = p[left] + share * (p[left + 1] - p[left])
        above = 1 - below
        under, over = target < q[0], target > q[-1]
        lower_tail = p[0] * np.exp(np.minimum(target - q[0], 0) / lower)
        upper_tail = (1 - p[-1]) * np.exp(np.minimum(q[-1] - target, 0) / upper)
        below = np.where(under, lower_tail, np.where(over, 1 - upper_tail, below))
        above = np.where(under, 1 - lower_tail, np.where(over, upper_tail, above))
        unknown = np.isnan(target)
        return np.where(unknown, np.nan, below), np.where(unknown, np.nan, above)

    def logpdf(self, y: ArrayLike) -> Array:
        """NaN: quantiles have no density to score."""
        return np.full(len(self), np.nan)

    def crps(self, y: ArrayLike) -> Array:
        """Twice the mean pinball loss over the levels (the CRPS is twice its integral over levels; Laio & Tamea 2007)."""
        error = np.asarray(y, dtype=np.float64) - self.sorted  # [levels, n]
        return np.asarray(2 * np.mean(pinball(error, self.levels[:, None]), axis=0))

    def stretched(self, k: float | Array) -> QuantileSet:
        m = self.mean
        centre = None if self.centre is None else (m + k * (self.centre - m)).astype(self.centre.dtype)
        return QuantileSet((m + k * (self.q - m)).astype(self.q.dtype), self.levels, centre)

    def rows(self, which: NDArray) -> QuantileSet:
        return QuantileSet(self.q[:, :, which], self.levels, None if self.centre is None else self.centre[:, which])

    @property
    def count(self) -> int:
        return len(self.q)

    def only(self, members: slice) -> QuantileSet:
        return QuantileSet(self.q[members], self.levels, None if self.centre is None else self.centre[members])

    def columns(self) -> dict[str, Array]:
        out: dict[str, Array] = {}
        for m, member in enumerate(self.q):
            if self.centre is not None:
                out[f"location_{m}"] = self.centre[m].astype(np.float64)
            for level, values in zip(self.levels, member, strict=True):
                out[f"q{level:.3g}_{m}"] = values.astype(np.float64)
        return out
