"""The standard Student-t, and the Gaussian as its limit at infinitely many degrees of freedom."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln


def standard_logpdf(z: ArrayLike, nu: ArrayLike) -> NDArray[np.float64]:
    """log Gamma((nu+1)/2) - log Gamma(nu/2) - log(nu pi)/2 - (nu+1)/2 log(1 + z^2/nu); at nu = inf, -(z^2 + log 2 pi)/2."""
    z, nu = np.asarray(z, dtype=np.float64), np.asarray(nu, dtype=np.float64)
    heavy = np.isfinite(nu)
    degrees = np.where(heavy, nu, 1.0)
    constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi)
    student = constant - 0.5 * (degrees + 1) * np.log1p(z * z / degrees)
    return np.asarray(np.where(heavy, student, -0.5 * (z * z + np.log(2 * np.pi))))
