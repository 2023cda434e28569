"""Predictive distributions of n rows, one per kind of head: mixtures of location-scale members, and sets of quantiles.

Each knows its mean, its aleatoric and epistemic variance, quantiles, CDF, log density, CRPS, and how to be stretched about its
mean. Members are kept as they come (float32 is enough and halves the memory); every computation is in float64, in chunks of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
import scipy  # its `special` is imported when first used
from numpy.typing import ArrayLike, NDArray

from evband.bands.kernels import mixture_crps, mixture_quantiles, tail_table
from evband.errors import SettingsError
from evband.network.standard import Standard, Student

Array = NDArray[np.float64]
_CHUNK = 1 << 20  # numbers of one [members, rows] block: 8 MB in float64


class Mixture(ABC):
    """The predictive distribution of n rows, in kW."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def mean(self) -> Array: ...

    @property
    @abstractmethod
    def aleatoric(self) -> Array:
        """Variance of the data around the members, [n] in kW^2."""

    @property
    @abstractmethod
    def epistemic(self) -> Array:
        """Variance of the members around their mean, [n] in kW^2."""

    @abstractmethod
    def quantile(self, p: float) -> Array: ...

    @abstractmethod
    def closed_form(self, level: float) -> Array:
        """Half-width of the closed-form band, [n]."""

    @abstractmethod
    def tails(self, y: ArrayLike) -> tuple[Array, Array]:
        """P(Y <= y) and P(Y > y), each accurate where it is small."""

    @abstractmethod
    def logpdf(self, y: ArrayLike) -> Array:
        """Log density in 1/kW; NaN where the distribution has none."""

    @abstractmethod
    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score in kW, integral of (F(x) - 1{x >= y})^2 dx (Gneiting & Raftery 2007)."""

    @abstractmethod
    def stretched(self, k: float | Array) -> Mixture:
        """The distribution of mean + k (Y - mean); k may differ from row to row."""

    @abstractmethod
    def rows(self, which: NDArray) -> Mixture:
        """The same for some rows: a mask or indices."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many members there are (where rows differ in that, the fewest)."""

    @abstractmethod
    def only(self, members: slice) -> Mixture:
        """The same rows by some of the members."""

    @abstractmethod
    def columns(self) -> dict[str, Array]:
        """Every member's parameters as columns of n float64 numbers."""


@lru_cache(maxsize=4)
def _tail_table(standard: Standard) -> Array:
    """Kept, since a fleet's cars have the same degrees of freedom."""
    return tail_table(standard)


class LocationScale(Mixture):
    """M members with equal weights: locations and scales [M, n] in kW of standard distributions with variances v_m.

    Mean = mean of mu_m; aleatoric = mean of s_m^2 v_m; epistemic = variance of mu_m, divided by M.
    """

    def __init__(self, mu: ArrayLike, s: ArrayLike, standard: Standard) -> None:
        self.mu, self.s, self.standard = _floats(mu), _floats(s), standard  # [M, n]
        if self.mu.ndim != 2 or self.s.shape != self.mu.shape or len(standard) != len(self.mu):
            raise SettingsError(
                f"A mixture needs mu and s of one shape [members, rows] and nu [members], not {self.mu.shape}, {self.s.shape} "
                f"and {len(standard)} members."
            )

    def _like(self, mu: NDArray, s: NDArray, standard: Standard | None = None) -> Self:
        made = object.__new__(type(self))
        LocationScale.__init__(made, mu, s, self.standard if standard is None else standard)
        return made

    def __len__(self) -> int:
        return int(self.mu.shape[1])

    def _by_chunk(self, compute: Callable[[Array, Array, slice], Array]) -> Array:
        """Run `compute(mu, s, rows)` in float64 on chunks of rows."""
        out = np.empty(len(self))
        for rows in _slices(len(self), max(1, _CHUNK // self.count)):
            out[rows] = compute(self.mu[:, rows].astype(np.float64), self.s[:, rows].astype(np.float64), rows)
        return out

    @cached_property
    def _table(self) -> Array:
        return _tail_table(self.standard)

    @cached_property
    def mean(self) -> Array:
        return self._by_chunk(lambda mu, s, _: mu.mean(axis=0))

    @cached_property
    def aleatoric(self) -> Array:
        inflation = self.standard.variance[:, None]
        return self._by_chunk(lambda mu, s, _: (s * s * inflation).mean(axis=0))

    @cached_property
    def epistemic(self) -> Array:
        return self._by_chunk(lambda mu, s, _: mu.var(axis=0))

    def quantile(self, p: float) -> Array:
        """Exact: the root of the mixture's CDF, between the smallest and the largest member quantile."""
        standard = self.standard.quantile([p])[:, 0]

        def solve(mu: Array, s: Array, _: slice) -> Array:
            out = np.empty(mu.shape[1])
            mixture_quantiles(p, mu, s, self.standard.power, standard, self._table, out)
            return out

        return self._by_chunk(solve)

    def closed_form(self, level: float) -> Array:
        """sqrt((t_nu s)^2 + z^2 EU) with the mean scale and the mean nu."""
        t, z = self.standard.typical_quantile(0.5 + level / 2), scipy.special.ndtri(0.5 + level / 2)
        scale = self._by_chunk(lambda mu, s, _: s.mean(axis=0))
        return np.asarray(np.sqrt((t * scale) ** 2 + z**2 * self.epistemic))

    def tails(self, y: ArrayLike) -> tuple[Array, Array]:
        target, above = self._target(y), np.empty(len(self))

        def both(mu: Array, s: Array, rows: slice) -> Array:
            z = (target[rows] - mu) / s
            tail = self.standard.survival(np.abs(z))
            above[rows] = np.where(z < 0, 1 - tail, tail).mean(axis=0)
            return np.asarray(np.where(z < 0, tail, 1 - tail).mean(axis=0))

        below = self._by_chunk(both)
        return below, above

    def logpdf(self, y: ArrayLike) -> Array:
        target = self._target(y)

        def log_density(mu: Array, s: Array, rows: slice) -> Array:
            each = self.standard.logpdf((target[rows] - mu) / s) - np.log(s)
            return np.asarray(scipy.special.logsumexp(each, axis=0) - np.log(self.count))

        return self._by_chunk(log_density)

    def crps(self, y: ArrayLike, tolerance: float = 1e-6) -> Array:
        """The exact formula at one member, if it has one, else adaptive quadrature to about so much of the spread."""
        target = self._target(y)
        if self.count == 1:
            mu, s = self.mu[0].astype(np.float64), self.s[0].astype(np.float64)
            exact = self.standard.crps((target - mu) / s)
            if exact is not None:
                return np.asarray(s * exact)

        def integrate(mu: Array, s: Array, rows: slice) -> Array:
            out = np.empty(mu.shape[1])
            mixture_crps(target[rows], mu, s, self.standard.power, self._table, tolerance, out)
            return out

        return self._by_chunk(integrate)

    def stretched(self, k: float | Array) -> Self:
        """mu_m' = mean + k (mu_m - mean), s_m' = k s_m: both variances grow by k^2, the mean stays."""
        mu, s, each = np.empty_like(self.mu), np.empty_like(self.s), self._target(k)
        for rows in _slices(len(self), max(1, _CHUNK // self.count)):
            mu[:, rows] = self.mean[rows] + each[rows] * (self.mu[:, rows] - self.mean[rows])
            s[:, rows] = each[rows] * self.s[:, rows].astype(np.float64)
        return self._like(mu, s)

    def rows(self, which: NDArray) -> Self:
        return self._like(self.mu[:, which], self.s[:, which])

    @property
    def count(self) -> int:
        return len(self.standard)

    def only(self, members: slice) -> Self:
        return self._like(self.mu[members], self.s[members], self.standard[members])

    def columns(self) -> dict[str, Array]:
        out: dict[str, Array] = {}
        for m in range(self.count):
            out[f"location_{m}"] = self.mu[m].astype(np.float64)
            out[f"scale_{m}"] = self.s[m].astype(np.float64)
            out |= {f"{name}_{m}": np.full(len(self), each[m]) for name, each in self.standard.parameters.items()}
        return out

    def _target(self, y: ArrayLike) -> Array:
        return np.broadcast_to(np.asarray(y, dtype=np.float64), (len(self),))


class StudentMixture(LocationScale):
    """M Student-t's with degrees of freedom `nu` [M] (inf = Gaussian)."""

    def __init__(self, mu: ArrayLike, s: ArrayLike, nu: ArrayLike) -> None:
        super().__init__(mu, s, Student(nu))

    @property
    def nu(self) -> Array:
        return self.standard.parameters["nu"]


class GaussianMixture(LocationScale):
    """M Gaussians: the Student-t mixture at nu = inf."""

    def __init__(self, mu: ArrayLike, s: ArrayLike) -> None:
        mu = np.asarray(mu)
        super().__init__(mu, s, Student.gaussian(len(mu)))


class Stacked(Mixture):
    """Distributions of different models, one after the other: the held-out trips of every fold as one."""

    def __init__(self, parts: list[Mixture]) -> None:
        self.parts = [part for part in parts if len(part)] or parts[:1]
        self._ends = np.cumsum([len(part) for part in self.parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    @cached_property
    def mean(self) -> Array:
        return np.concatenate([part.mean for part in self.parts])

    @cached_property
    def aleatoric(self) -> Array:
        return np.concatenate([part.aleatoric for part in self.parts])

    @cached_property
    def epistemic(self) -> Array:
        return np.concatenate([part.epistemic for part in self.parts])

    def quantile(self, p: float) -> Array:
        return np.concatenate([part.quantile(p) for part in self.parts])

    def closed_form(self, level: float) -> Array:
        return np.concatenate([part.closed_form(level) for part in self.parts])

    def tails(self, y: ArrayLike) -> tuple[Array, Array]:
        both = [part.tails(target) for part, target in self._with(y)]
        return np.concatenate([below for below, _ in both]), np.concatenate([above for _, above in both])

    def logpdf(self, y: ArrayLike) -> Array:
        return np.concatenate([part.logpdf(target) for part, target in self._with(y)])

    def crps(self, y: ArrayLike) -> Array:
        return np.concatenate([part.crps(target) for part, target in self._with(y)])

    def stretched(self, k: float | Array) -> Stacked:
        return Stacked([part.stretched(own) for part, own in self._with(k)])

    def rows(self, which: NDArray) -> Stacked:
        """Some rows, in the order they have here; indices must be increasing."""
        picked = np.flatnonzero(which) if which.dtype == bool else np.asarray(which)
        if np.any(np.diff(picked) <= 0):
            raise SettingsError(
                "Rows of distributions stacked from several models can only be picked in increasing order."
            )
        starts = self._ends - [len(part) for part in self.parts]
        inside = [picked[(picked >= a) & (picked < b)] - a for a, b in zip(starts, self._ends, strict=True)]
        return Stacked([part.rows(index) for part, index in zip(self.parts, inside, strict=True)])

    def columns(self) -> dict[str, Array]:
        """Columns of all parts; a member that a part does not have is NaN there."""
        tables = [part.columns() for part in self.parts]
        names = list(dict.fromkeys(name for table in tables for name in table))
        return {
            name: np.concatenate(
                [table.get(name, np.full(len(part), np.nan)) for table, part in zip(tables, self.parts, strict=True)]
            )
            for name in names
        }

    @property
    def count(self) -> int:
        return min(part.count for part in self.parts)

    def only(self, members: slice) -> Stacked:
        return Stacked([part.only(members) for part in self.parts])

    def _with(self, y: ArrayLike) -> Iterator[tuple[Mixture, Array]]:
        target = np.broadcast_to(np.asarray(y, dtype=np.float64), (len(self),))
        yield from zip(self.parts, np.split(target, self._ends[:-1]), strict=True)


def _slices(n: int, step: int) -> Iterator[slice]:
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def _floats(values: ArrayLike) -> NDArray[np.floating]:
    array = np.asarray(values)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
