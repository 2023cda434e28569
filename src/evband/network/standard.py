"""Standard distributions of members: what is left of a location-scale head when location and scale are taken out.

A head gives one to mixtures, ticks and graphs, which take everything from it: tables of tails, quantiles, variances.
All are symmetric about 0. `M` members share a family and may differ in its parameters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy  # its `special` is imported when first used
from numpy.typing import ArrayLike, NDArray

from evband.errors import SettingsError

Array = NDArray[np.float64]


class Standard(ABC):
    """The distributions of M members; arrays in and out are [M, n], or [1, n] where all members have the same z."""

    def __init__(self, **parameters: ArrayLike) -> None:
        self.parameters = {name: np.asarray(value, np.float64) for name, value in parameters.items()}  # [M] each

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def __getitem__(self, members: Any) -> Standard:
        """Some of the members."""
        return type(self)(**{name: value[members] for name, value in self.parameters.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Standard) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[type, tuple[bytes, ...]]:
        return type(self), tuple(value.tobytes() for value in self.parameters.values())

    @property
    @abstractmethod
    def variance(self) -> Array:
        """[M]."""

    @property
    def power(self) -> Array:
        """[M] p of a tail that falls as z^-p; infinite for one that falls faster."""
        return np.full(len(self), np.inf)

    @abstractmethod
    def survival(self, z: Array) -> Array:
        """P(Z > z), accurate where it is small."""

    @abstractmethod
    def logpdf(self, z: Array) -> Array: ...

    @abstractmethod
    def quantile(self, p: ArrayLike) -> Array:
        """[M, n] of probabilities [n]."""

    def typical_quantile(self, p: float) -> float:
        """Of one distribution in place of all, for closed-form bands."""
        return float(self.quantile([p]).mean())

    def crps(self, z: Array) -> Array | None:
        """[n] of a single member by a formula; None where there is none."""
        return None


class Student(Standard):
    """Student-t's with `nu` [M] degrees of freedom; a Gaussian at nu = inf."""

    def __init__(self, nu: ArrayLike) -> None:
        super().__init__(nu=nu)
        self.nu = self.parameters["nu"]
        if not np.all(self.nu > 2):
            raise SettingsError(
                f"Degrees of freedom must be over 2 for a variance to exist; the smallest is {self.nu.min():g}."
            )

    @classmethod
    def gaussian(cls, members: int) -> Student:
        return cls(np.full(members, np.inf))

    @property
    def _finite(self) -> Array:
        return np.where(np.isinf(self.nu), 3.0, self.nu)

    @property
    def variance(self) -> Array:
        """nu / (nu - 2)."""
        return np.where(np.isinf(self.nu), 1.0, self._finite / (self._finite - 2))

    @property
    def power(self) -> Array:
        return self.nu

    def survival(self, z: Array) -> Array:
        return np.asarray(scipy.special.stdtr(self.nu[:, None], -z))

    def logpdf(self, z: Array) -> Array:
        return standard_logpdf(z, self.nu[:, None])

    def quantile(self, p: ArrayLike) -> Array:
        p = np.asarray(p, np.float64)
        return np.where(
            np.isinf(self.nu)[:, None], scipy.special.ndtri(p), scipy.special.stdtrit(self._finite[:, None], p)
        )

    def typical_quantile(self, p: float) -> float:
        """At the mean nu."""
        return float(scipy.special.stdtrit(self.nu.mean(), p))

    def crps(self, z: Array) -> Array:
        """(Jordan, Krueger & Lerch 2019), F the CDF and f the density; the Gaussian's at nu = inf.

        z (2 F(z) - 1) + 2 f(z) (nu + z^2)/(nu - 1) - 2 sqrt(nu)/(nu - 1) B(1/2, nu - 1/2)/B(1/2, nu/2)^2
        z (2 F(z) - 1) + 2 f(z) - 1/sqrt(pi)
        """
        nu = float(self.nu[0])
        density = np.exp(standard_logpdf(z, nu))
        if math.isinf(nu):
            return np.asarray(z * (2 * scipy.special.ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi))
        constant = (
            2
            * math.sqrt(nu)
            / (nu - 1)
            * math.exp(scipy.special.betaln(0.5, nu - 0.5) - 2 * scipy.special.betaln(0.5, nu / 2))
        )
        return np.asarray(z * (2 * scipy.special.stdtr(nu, z) - 1) + 2 * density * (nu + z * z) / (nu - 1) - constant)


def scale_of_deviation(nu: float) -> float:
    """Of a Student-t whose standard deviation is 1."""
    return math.sqrt((nu - 2) / nu)


def standard_logpdf(z: ArrayLike, nu: ArrayLike) -> Array:
    """log Gamma((nu+1)/2) - log Gamma(nu/2) - log(nu pi)/2 - (nu+1)/2 log(1 + z^2/nu); at nu = inf, -(z^2 + log 2 pi)/2."""
    z, nu = np.asarray(z, dtype=np.float64), np.asarray(nu, dtype=np.float64)
    heavy = np.isfinite(nu)
    degrees = np.where(heavy, nu, 1.0)
    constant = (
        scipy.special.gammaln((degrees + 1) / 2) - scipy.special.gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi)
    )
    student = constant - 0.5 * (degrees + 1) * np.log1p(z * z / degrees)
    return np.asarray(np.where(heavy, student, -0.5 * (z * z + np.log(2 * np.pi))))
