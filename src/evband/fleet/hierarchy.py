"""How much kinds of cars differ, and what of it to believe: random effects of body, make and model, by empirical Bayes.

Levels are taken from the coarsest to the finest, each on what the ones above leave. With u_c a car's weights in units of
the spread between cars, n_g the cars of group g (each counts as far as it is trusted), N their sum, G the groups and m_g
a group's mean, the variances are those of a one-way analysis (Searle), averaged over members, for each direction,

    within  s2 = sum_c (u_c - m_g)^2 / (N - G)        between  t2 = (sum_g n_g m_g^2 - (G - 1) s2) / (N - sum_g n_g^2 / N)

(none below 0), and a group's shift is its posterior mean  n_g t2 / (n_g t2 + s2) m_g: that of one car hardly moves, that
of a hundred is nearly its mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Array = NDArray[np.float64]
Floats = NDArray[np.float32]


class Shifts(NamedTuple):
    """What groups differ by."""

    names: tuple[str, ...]
    shifts: Floats  # [groups, members, Q]
    fitted: Floats  # [cars, members, Q], the sum of a car's groups


def shrunk(u: Floats, trust: Array, kinds: Sequence[Sequence[str]]) -> Shifts:
    """Of cars u [cars, members, Q] about their mean, each of one of the kinds of every level, or of "", none."""
    fitted, names, shifts = np.zeros_like(u), list[str](), list[Floats]()
    for level in zip(*kinds, strict=True):
        known = np.flatnonzero([kind != "" for kind in level])
        labels, group = np.unique(np.array(level, str)[known], return_inverse=True)
        found = _level(u[known] - fitted[known], trust[known], group, len(labels))
        fitted[known] += found[group]
        moved = [k for k in range(len(labels)) if found[k].any()]
        names += [str(labels[k]) for k in moved]
        shifts += [found[k] for k in moved]
    return Shifts(tuple(names), np.array(shifts, np.float32).reshape(-1, *u.shape[1:]), fitted)


def _level(u: Floats, trust: Array, group: NDArray[np.int64], count: int) -> Floats:
    """[groups, members, Q]: posterior means of one level's groups."""
    size = np.bincount(group, trust, count)  # n_g
    total, groups, members = float(size.sum()), int((size > 0).sum()), u.shape[1]
    mean = np.zeros((count, *u.shape[1:]))
    if groups < 2 or total <= groups:
        return mean.astype(np.float32)
    sums = csr_matrix((trust, (group, np.arange(len(u)))), (count, len(u)))
    within, spread = np.zeros(u.shape[2]), np.zeros(u.shape[2])
    for m in range(members):
        mean[:, m] = (sums @ u[:, m]) / np.maximum(size, 1e-12)[:, None]
        within += trust @ (u[:, m] - mean[group, m]) ** 2 / (total - groups) / members
        spread += size @ mean[:, m] ** 2 / members
    between = np.maximum(0.0, (spread - (groups - 1) * within) / (total - float(size @ size) / total))
    gain = size[:, None] * between / np.maximum(size[:, None] * between + within, 1e-300)  # [groups, Q]
    return np.asarray(gain[:, None] * mean, np.float32)
