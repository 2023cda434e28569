"""Mean, parts and band of one row from its members, in the few hundred nanoseconds that a tick can spare.

A mixture's quantile solves mean_m S_m((q - mu_m) / s_m) = 1 - p, S the upper tail of a member's standard distribution,
which does not change from tick to tick: S is tabulated once, as cubics in u = z / (WIDTH + z) over [0, 1): one division a look-up, the
whole half-line covered, and a power tail z^-nu becomes the smooth (1 - u)^nu. Error in probability under 1e-8.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.compiled import compiled
from evband.network.heads import SCALE_FLOOR
from evband.network.quantiles import deviation_weights, mean_weights, quantile_weights
from evband.network.standard import Standard

Array = NDArray[np.float64]
WIDTH = 2.0
CELLS = 128


class Target(NamedTuple):
    """What turns standardised numbers into a band in kW."""

    mean: float  # of the training power, kW
    std: float
    tail: float  # probability beyond each end of the band
    column: int  # input that tells which of the factors stretches about the mean (`Steps`)
    steps: Array  # [factors, 2] of it: the value from which on it counts, and the factor


def tail_cubics(standard: Standard) -> Array:
    """[members, CELLS, 4]: in cell j, S = c0 + t (c1 + t (c2 + t c3)) with t = u CELLS - j (Hermite: exact at the nodes)."""
    u = np.arange(CELLS) / CELLS
    z = WIDTH * u / (1 - u)
    value, slope = np.zeros((2, len(standard), CELLS + 1))  # both vanish at u = 1
    value[:, :-1] = standard.survival(z)
    slope[:, :-1] = -np.exp(standard.logpdf(z)) * WIDTH / (1 - u) ** 2 / CELLS
    rise, left, right = np.diff(value), slope[:, :-1], slope[:, 1:]
    return np.ascontiguousarray(
        np.stack([value[:, :-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise], -1)
    )


@compiled(error_model="numpy", fastmath={"contract", "arcp", "reassoc", "nsz"})
def survival(q: float, mu: Array, inverse: Array, cubics: Array) -> tuple[float, float]:
    """Upper tail and density of the mixture at q, both times the number of members; inverse = 1 / s."""
    tail = density = 0.0
    for m in range(len(mu)):
        z = (q - mu[m]) * inverse[m]
        a = abs(z)
        share = 1.0 / (WIDTH + a)
        place = a * share * CELLS
        j = min(int(place), CELLS - 1)
        t = place - j
        c0, c1, c2, c3 = cubics[m, j, 0], cubics[m, j, 1], cubics[m, j, 2], cubics[m, j, 3]
        s = c0 + t * (c1 + t * (c2 + t * c3))
        tail += s if z >= 0.0 else 1.0 - s
        density -= (c1 + t * (2.0 * c2 + t * 3.0 * c3)) * share * share * inverse[m]
    return tail, density * (WIDTH * CELLS)


@compiled(error_model="numpy")
def quantile(
    above: float, guess: float, smallest: float, mu: Array, s: Array, inverse: Array, standard: Array, cubics: Array
) -> float:
    """The mixture's quantile with probability ``above`` over it: Newton from ``guess``, kept between the members' quantiles.

    A step longer than half of the one before the last is halved out instead: Newton can cross the root for ever.
    """
    low, high = np.inf, -np.inf
    for m in range(len(mu)):
        end = mu[m] + s[m] * standard[m]
        low, high = min(low, end), max(high, end)
    q, goal = min(max(guess, low), high), above * len(mu)
    last = before = high - low
    for _ in range(100):
        tail, density = survival(q, mu, inverse, cubics)
        if tail > goal:
            low = q
        else:
            high = q
        new = q + (tail - goal) / density
        if not (low <= new <= high and 2.0 * abs(new - q) <= before):
            new = 0.5 * (low + high)
        last, before, q = abs(new - q), last, new
        if not last > 1e-5 * smallest:  # Newton is quadratic: what is left is about step^2 / smallest scale
            break
    return q


@compiled(error_model="numpy")
def mixture_row(
    centre: float,  # kW, what a location of 0 means
    std: float,  # kW
    tail: float,  # probability beyond each end of the band
    k: float,  # stretch
    mu: Array,  # [members] standardised location in, kW out
    s: Array,  # [members] raw scale in, kW out
    inverse: Array,  # [members] scratch
    inflation: Array,  # [members] variances of the standard distributions
    standard: Array,  # [2, members] standard quantiles of the band's ends
    cubics: Array,
    warm: Array,  # [2] ends of the last band, in total standard deviations from the mean
    out: Array,  # [5] mean, lower, upper, aleatoric, epistemic
) -> None:
    """One row of a t or Gaussian head; the band starts from where it stood a tick ago."""
    members = len(mu)
    mean = noise = spread = 0.0
    smallest = np.inf
    for m in range(members):
        x = s[m]
        scale = std * (max(x, 0.0) + math.log1p(math.exp(-abs(x))) + SCALE_FLOOR)  # softplus and its floor
        s[m], inverse[m] = scale, 1.0 / scale
        mu[m] = centre + std * mu[m]
        mean += mu[m]
        noise += scale * scale * inflation[m]
        smallest = min(smallest, scale)
    mean /= members
    noise /= members
    for m in range(members):
        spread += (mu[m] - mean) * (mu[m] - mean)
    spread /= members
    total = math.sqrt(noise + spread)
    out[0], out[3], out[4] = mean, k * math.sqrt(noise), k * math.sqrt(spread)
    for end in range(2):
        above = tail if end else 1.0 - tail
        q = quantile(above, mean + warm[end] * total, smallest, mu, s, inverse, standard[end], cubics)
        warm[end] = (q - mean) / total
        out[1 + end] = mean + k * (q - mean)


@compiled()
def quantile_row(
    target: Target, k: float, raw: Array, weights: Array, average: Array, median: Array, out: Array
) -> None:
    """One row of a quantile head as ``predict`` has it: each member sorted, then averaged, then weighted sums of that.

    raw [members, levels] comes standardised and leaves sorted; weights [5, levels] as of ``quantile_sums``; median
    [members] receives each member's own in kW; average is scratch.
    """
    members, count = raw.shape
    average = average[:count]
    for j in range(count):
        average[j] = 0.0
    centre = spread = 0.0
    for m in range(members):
        _sort(raw[m])
        median[m] = target.mean + target.std * _sum(weights[1], raw[m])
        centre += median[m] / members
        for j in range(count):
            average[j] += (target.mean + target.std * raw[m, j]) / members
    for m in range(members):
        spread += (median[m] - centre) ** 2 / members
    mean = _sum(weights[0], average)
    out[0], out[3], out[4] = mean, k * _sum(weights[2], average), k * math.sqrt(spread)
    out[1] = mean + k * (_sum(weights[3], average) - mean)
    out[2] = mean + k * (_sum(weights[4], average) - mean)


def quantile_sums(levels: Array, level: float) -> Array:
    """[5, levels]: weights of mean, median, aleatoric deviation and both ends of the band."""
    ends = (quantile_weights(levels, p) for p in (0.5, 0.5 - level / 2, 0.5 + level / 2))
    median, lower, upper = ends
    return np.stack([mean_weights(levels), median, deviation_weights(levels), lower, upper])


@compiled()
def _sum(weights: Array, values: Array) -> float:
    total = 0.0
    for j in range(len(weights)):
        total += weights[j] * values[j]
    return total


@compiled()
def _sort(values: Array) -> None:
    """Insertion sort: a handful of numbers, mostly in order."""
    for j in range(1, len(values)):
        held, i = values[j], j
        while i > 0 and values[i - 1] > held:
            values[i] = values[i - 1]
            i -= 1
        values[i] = held
