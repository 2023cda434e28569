"""Compiled inner loops of a mixture of location-scale members: its CDF, its quantiles and its CRPS, row by row.

A member's standard distribution is the same for all rows, so it is tabulated once: the upper tail G(u) = P(Z > sinh u)
at equally spaced u >= 0 with its slope, read back by cubic Hermite interpolation. asinh spreads nodes evenly over the centre and
logarithmically over the tail. The error is h^4/384 max|G''''|, about 1e-10 at h = 1/128; past the last node the tail is the
power law x^-power (0 where the power is infinite).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evband.compiled import compiled
from evband.network.standard import Standard

NODES_PER_UNIT = 128
LAST_NODE = 8 * NODES_PER_UNIT  # sinh(8) = 1490 scales from the centre

# Nodes and weights of the 7-point Gauss rule inside the 15-point Kronrod rule (QUADPACK, Piessens et al. 1983), by size.
_KRONROD_X = np.array(
    [
        0.991455371120812639206854697526329,
        0.949107912342758524526189684047851,
        0.864864423359769072789712788640926,
        0.741531185599394439863864773280788,
        0.586087235467691130294144691693013,
        0.405845151377397166906606412076961,
        0.207784955007898467600689403773245,
        0.000000000000000000000000000000000,
    ]
)
_KRONROD_W = np.array(
    [
        0.022935322010529224963732008058970,
        0.063092092629978553290700663189204,
        0.104790010322250183839876322541518,
        0.140653259715525918745189590510238,
        0.169004726639267902826583426598550,
        0.190350578064785409913256402421014,
        0.204432940075298892414161999234649,
        0.209482141084727828012999174891714,
    ]
)
_GAUSS_W = np.array(
    [
        0.0,
        0.129484966168869693270611432679082,
        0.0,
        0.279705391489276667901467771423780,
        0.0,
        0.381830050505118944950369775488975,
        0.0,
        0.417959183673469387755102040816327,
    ]
)
Row = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]  # mu, s, power, table
Piece = tuple[float, float, float, bool, bool]  # of an integral: start, side, width; of the upper tail; to infinity
_DEPTH = 40  # intervals that may wait on the stack of the adaptive rule; each split halves one


def tail_table(standard: Standard) -> NDArray[np.float64]:
    """G(u) and h G'(u) of each member at the nodes: [members, nodes, (G, h G')]."""
    u = np.arange(LAST_NODE + 1) / NODES_PER_UNIT
    slope = -np.exp(standard.logpdf(np.sinh(u))) * np.cosh(u) / NODES_PER_UNIT
    return np.stack([standard.survival(np.sinh(u)), slope], axis=-1)


@compiled(inline="always")
def _upper_tail(x: float, power: float, table: NDArray[np.float64], member: int) -> tuple[float, float]:
    """P(Z > x) and the density at x >= 0 of one member's standard distribution."""
    root = math.sqrt(1.0 + x * x)
    place = math.log(x + root) * NODES_PER_UNIT
    node = int(place)
    if node >= LAST_NODE:
        tail = table[member, LAST_NODE, 0] * (math.sinh(LAST_NODE / NODES_PER_UNIT) / x) ** power
        return tail, (tail * power / x if tail > 0.0 else 0.0)
    f = place - node
    g0, d0 = table[member, node, 0], table[member, node, 1]
    g1, d1 = table[member, node + 1, 0], table[member, node + 1, 1]
    rise = g1 - g0
    c2 = 3.0 * rise - 2.0 * d0 - d1
    c3 = d0 + d1 - 2.0 * rise
    tail = g0 + f * (d0 + f * (c2 + f * c3))
    slope = d0 + f * (2.0 * c2 + f * 3.0 * c3)
    return tail, -slope * NODES_PER_UNIT / root


@compiled()
def _mixture(
    x: float, mu: NDArray[np.float64], s: NDArray[np.float64], power: NDArray[np.float64], table: NDArray[np.float64]
) -> tuple[float, float, float]:
    """P(Y <= x), P(Y > x) and the density of one row's equally weighted mixture."""
    below = above = density = 0.0
    for m in range(len(mu)):
        z = (x - mu[m]) / s[m]
        tail, f = _upper_tail(abs(z), power[m], table, m)
        density += f / s[m]
        if z < 0.0:
            below += tail
            above += 1.0 - tail
        else:
            below += 1.0 - tail
            above += tail
    members = len(mu)
    return below / members, above / members, density / members


@compiled()
def mixture_quantiles(
    p: float,
    mu: NDArray[np.float64],
    s: NDArray[np.float64],
    power: NDArray[np.float64],
    member_quantile: NDArray[np.float64],
    table: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Root of F(x) = p for every row of mu, s [members, rows]: Newton, kept inside the bracket of the members' quantiles.

    F is increasing, and at the smallest (largest) member quantile it is at most (at least) p, so the root is bracketed from
    the start; each evaluation narrows the bracket, and a Newton step that leaves it is replaced by bisection. So is one
    longer than half of the step before the last: Newton can cross the root for ever (Numerical Recipes, rtsafe).
    """
    members, rows = mu.shape
    mu_row, s_row = np.empty(members), np.empty(members)
    for row in range(rows):
        low, high, guess = np.inf, -np.inf, 0.0
        for m in range(members):
            mu_row[m], s_row[m] = mu[m, row], s[m, row]
            q = mu_row[m] + s_row[m] * member_quantile[m]
            low, high = min(low, q), max(high, q)
            guess += q / members
        tolerance = 1e-13 * max(abs(low), abs(high)) + 1e-11 * (high - low)
        x, last, before = min(max(guess, low), high), high - low, high - low
        for _ in range(200):
            if not high - low > tolerance:  # also ends at once on NaN
                break
            below, above, density = _mixture(x, mu_row, s_row, power, table)
            excess = below - p if p < 0.5 else (1.0 - p) - above
            if excess > 0.0:
                high = x
            else:
                low = x
            step = excess / density if density > 0.0 else np.inf
            new = x - step
            if not (low <= new <= high and 2.0 * abs(step) <= before):
                new = 0.5 * (low + high)
            last, before = abs(new - x), last
            if abs(new - x) <= tolerance:
                x = new
                break
            x = new
        out[row] = x


@compiled()
def _squared_tail(v: float, piece: Piece, row: Row) -> float:
    """F^2 or (1-F)^2 times dx/dv, where x runs from `start` over a finite stretch (v) or to infinity (v/(1-v))."""
    start, side, width, upper, infinite = piece
    if infinite:
        x, jacobian = start + side * width * v / (1.0 - v), width / ((1.0 - v) * (1.0 - v))
    else:
        x, jacobian = start + side * width * v, width
    below, above, _ = _mixture(x, *row)
    return float((above * above if upper else below * below) * jacobian)


@compiled()
def _adaptive(tolerance: float, piece: Piece, row: Row) -> float:
    """Gauss-Kronrod over v in [0, 1], halving every interval whose two rules disagree by more than its share of the tolerance."""
    left, right = np.empty(_DEPTH + 2), np.empty(_DEPTH + 2)
    left[0], right[0] = 0.0, 1.0
    waiting, total = 1, 0.0
    while waiting > 0:
        waiting -= 1
        a, b = left[waiting], right[waiting]
        centre, half = 0.5 * (a + b), 0.5 * (b - a)
        kronrod = gauss = 0.0
        for i in range(8):
            value = _squared_tail(centre + half * _KRONROD_X[i], piece, row)
            if i < 7:
                value += _squared_tail(centre - half * _KRONROD_X[i], piece, row)
            kronrod += _KRONROD_W[i] * value
            gauss += _GAUSS_W[i] * value
        if abs(kronrod - gauss) * half > tolerance * max(b - a, 0.01) and b - a > 1e-6 and waiting < _DEPTH:
            left[waiting], right[waiting] = a, centre
            left[waiting + 1], right[waiting + 1] = centre, b
            waiting += 2
        else:
            total += kronrod * half
    return total


@compiled()
def mixture_crps(
    y: NDArray[np.float64],
    mu: NDArray[np.float64],
    s: NDArray[np.float64],
    power: NDArray[np.float64],
    table: NDArray[np.float64],
    tolerance: float,
    out: NDArray[np.float64],
) -> None:
    """CRPS = integral of (F(x) - 1{x >= y})^2 dx for every row, split at y and at the mixture's mean.

    Three pieces: both outward tails, mapped to [0, 1), and the stretch between y and the mean, long when y is an outlier.
    """
    members, rows = mu.shape
    mu_row, s_row = np.empty(members), np.empty(members)
    for row in range(rows):
        if math.isnan(y[row]):
            out[row] = np.nan
            continue
        mean = second = 0.0
        for m in range(members):
            mu_row[m], s_row[m] = mu[m, row], s[m, row]
            mean += mu_row[m] / members
        for m in range(members):
            second += ((mu_row[m] - mean) ** 2 + s_row[m] ** 2) / members
        spread = math.sqrt(second)
        low, high = min(y[row], mean), max(y[row], mean)
        members_of_row = (mu_row, s_row, power, table)
        total = _adaptive(tolerance, (low, -1.0, spread, False, True), members_of_row)
        total += _adaptive(tolerance, (high, 1.0, spread, True, True), members_of_row)
        if high > low:
            total += _adaptive(tolerance, (low, 1.0, high - low, y[row] <= mean, False), members_of_row)
        out[row] = total
