"""The anchored loss of all members at once, on one batch of windows.

    J = sum of nll over unmasked targets / their number  +  (temperature / N) sum_g ||W_g - A_g||^2 / (2 sigma_g^2)

Each row's nll may be weighted by scale^(2 beta) with the gradient stopped, the weights normalised per batch
(Seitzer et al. 2022): a plain heteroscedastic likelihood explains hard braking as noise instead of fitting it.

Rows of a drive are not independent: they share what no input tells (heater, wind, load). The location may therefore be
fitted to errors of which a part, ``trip_effect`` times the window's mean error, is taken out (quasi-demeaning, as in
regression with random effects; Fuller & Battese 1973); else it learns by heart which training trip had its heater on.
The scale is fitted to the whole error, since a new trip comes with an effect of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from evband.network.anchors import penalty
from evband.network.apply import negative_log_likelihood
from evband.network.architecture import Architecture
from evband.network.forward import forward
from evband.network.heads import Output
from evband.network.lstm import Masks


@dataclass(frozen=True)
class Rows:
    """All rows of the training data, on the device."""

    x: Tensor  # [rows, inputs]
    r: Tensor  # [rows, road]
    y: Tensor  # [rows], standardised; 0 where unknown
    known: Tensor  # [rows] bool
    trip: Tensor  # [rows] int64
    # [rows] float: 0 where the state is reset before the row; None where no window holds such
    carry: Tensor | None = None


@dataclass(frozen=True)
class Batch:
    """Windows of each member: the row they start at and the steps that are targets."""

    start: Tensor  # [members, batch]
    first: Tensor
    stop: Tensor


@dataclass(frozen=True)
class Terms:
    """What differs between members beside their weights: [members] each, trip weights [members, trips]."""

    beta: Tensor
    prior_weight: Tensor  # temperature / N, or 1 in the literal form
    trip_weight: Tensor | None
    trip_effect: Tensor | None = None


def gather(rows: Rows, batch: Batch, window: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Inputs, road-load features, targets, target mask, row numbers and carry, each ``[members, time, batch, ...]``."""
    t = torch.arange(window, device=rows.y.device).view(1, window, 1)
    index = (batch.start.unsqueeze(1) + t).clamp_(max=len(rows.y) - 1)
    flat = index.flatten()  # rows copied whole: a third of the time that indexing with three axes takes

    def at(values: Tensor) -> Tensor:
        return values.index_select(0, flat).view(*index.shape, *values.shape[1:])

    target = (t >= batch.first.unsqueeze(1)) & (t < batch.stop.unsqueeze(1)) & at(rows.known)
    return at(rows.x), at(rows.r), at(rows.y), target, index, None if rows.carry is None else at(rows.carry)


def data_loss(
    arch: Architecture,
    theta: Tensor,
    rows: Rows,
    batch: Batch,
    window: int,
    terms: Terms | None,
    masks: Masks | None = None,
) -> tuple[Tensor, Tensor]:
    """Sum of (weighted) nll over targets and their number: [members] each. Without ``terms``: unweighted."""
    x, r, y, target, index, carry = gather(rows, batch, window)
    out, _ = forward(arch, theta, x, r, masks=masks, carry=carry)
    count = target.sum((1, 2))
    if terms is None:
        return torch.where(target, negative_log_likelihood(arch, out, y), 0.0).sum((1, 2)), count
    if terms.trip_effect is None or out.scale is None:
        nll = negative_log_likelihood(arch, out, y)
    else:
        nll = nll_apart_from_trip(arch, out, y, target, terms.trip_effect.view(-1, 1, 1))
    weight = target.to(nll.dtype)
    if out.scale is not None:
        weight = weight * out.scale.detach().pow(2 * terms.beta.view(-1, 1, 1))
        weight = weight * (count / weight.sum((1, 2)).clamp(min=1e-30)).view(-1, 1, 1)
    if terms.trip_weight is not None:
        members = torch.arange(len(theta), device=y.device).view(-1, 1, 1)
        weight = weight * terms.trip_weight[members, rows.trip[index]]
    return torch.where(target, weight * nll, 0.0).sum((1, 2)), count


def nll_apart_from_trip(arch: Architecture, out: Output, y: Tensor, target: Tensor, effect: Tensor) -> Tensor:
    """The nll of each row, whose gradient to the location is that of the error less ``effect`` times its window's mean.

    The gradient goes through the mean, too, so an error that a whole window has in common pulls with about
    (1 - effect)^2 of its force. The mean is weighted by precision: what the trip adds shows best at a standstill.
    """
    assert out.scale is not None
    scale, nu = out.scale.detach(), None if out.nu is None else out.nu.detach()
    precision = target / scale.square()
    error = torch.where(target, y - out.mu, 0.0)
    shared = (precision * error).sum(1, keepdim=True) / precision.sum(1, keepdim=True).clamp(min=1e-12)
    whole = negative_log_likelihood(arch, Output(out.mu.detach(), out.scale, out.nu, None), y)
    left = negative_log_likelihood(arch, Output(out.mu + effect * shared, scale, nu, None), y)
    return whole + left - left.detach()


def objective(
    arch: Architecture,
    theta: Tensor,
    anchor: Tensor,
    variance: Tensor,
    rows: Rows,
    batch: Batch,
    window: int,
    terms: Terms,
    masks: Masks | None = None,
) -> Tensor:
    """J of each member: [members]."""
    total, count = data_loss(arch, theta, rows, batch, window, terms, masks)
    return total / count.clamp(min=1) + terms.prior_weight * penalty(theta, anchor, variance)
