"""Cars of one architecture adapted side by side with torch: for a GPU, which one car alone would leave idle.

The formulas are those of `evband.adaptation.update`, `members` and `scale`, in double precision over [trips, members, rows],
trips of all cars together and padded to the longest; sums over a car's trips are a product with a matrix of ones. Hidden
states are one call of the ensemble LSTM, whose weights all cars of a base share. Softplus is computed where the CPU reads it
from a table, and thinned rows are double where the CPU has them single, so answers agree but for rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evband.adaptation.asks import Ask, States, Update, alone
from evband.adaptation.location import location, set_location
from evband.adaptation.members import (
    CORRELATED,
    EFFECTS,
    FARTHEST,
    LAGS,
    MANY_ROWS,
    MOST_CORRELATED,
    ROUNDS,
    TINY,
    Evidence,
    of_next,
    together,
)  # fmt: skip
from evband.adaptation.scale import NEAR, OFFSETS, SCALE_CORRELATED, SQUARE, TRIP_SCALE_SDS, Offsets, ranks_of
from evband.adaptation.update import after, noise_of
from evband.errors import EvbandError
from evband.network.heads.base import SCALE_FLOOR
from evband.network.inference import degrees_of_freedom
from evband.network.lstm import ensemble_lstm

TABLE_BYTES = 1 << 30  # of the rows that go side by side; some four times as much is held at once
AT_ONCE = 11  # offsets of the log scale whose likelihood is taken at once


class SideBySide:
    """Answers the asks of many cars on a device."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)

    @torch.no_grad()
    def __call__(self, asks: list[Ask]) -> list[Any]:
        found: dict[int, Any] = {}
        for some in [*_alike_states(asks), *_alike_updates(asks)]:
            try:
                answer: Any = hidden_states_of if isinstance(asks[some[0]], States) else updated_of
                found |= zip(some, answer([asks[k] for k in some], self.device), strict=True)
            except Exception:  # no memory, or one car's fault: alone, where it is that car's answer
                pass
        return [found[k] if found.get(k) is not None else alone(ask) for k, ask in enumerate(asks)]


# Hidden states --------------------------------------------------------------------------------------------------------


def _alike_states(asks: list[Ask]) -> Iterator[list[int]]:
    """Numbers of asks that share the recurrent weights of the first."""
    every = [(k, ask) for k, ask in enumerate(asks) if isinstance(ask, States)]
    some: list[int] = []
    first: States | None = None
    for k, ask in every:
        if first is not None and not np.array_equal(_recurrent(ask), _recurrent(first)):
            continue  # alone
        first = first or ask
        some.append(k)
    if first is not None:
        yield some


def _recurrent(ask: States) -> NDArray[np.float32]:
    return ask.model.theta_[:, : ask.model.architecture_.slices["head_w"].start]


def hidden_states_of(asks: list[States], device: torch.device) -> list[Tensor]:
    """[members, rows, hidden] of each."""
    arch, theta = asks[0].model.architecture_, asks[0].model.theta_
    x, start = (np.concatenate([getattr(ask, name) for ask in asks]) for name in ("x", "start"))
    layers = arch.lstm_layers(arch.unpack(torch.from_numpy(theta).to(device)))
    inputs = torch.from_numpy(x).to(device)
    states = torch.empty(len(theta), len(x), arch.hidden, device=device)
    begin = np.flatnonzero(start)
    length = np.diff(np.append(begin, len(x)))
    order, most = np.argsort(-length, kind="stable"), TABLE_BYTES // (4 * len(theta) * arch.hidden)
    while len(order):
        group, order = np.split(order, [max(1, most // int(length[order[0]]))])
        steps = np.arange(int(length[group[0]]))[:, None]  # [time, batch]
        index, inside = begin[group] + steps, steps < length[group]
        h, _ = ensemble_lstm(inputs[np.minimum(index, len(x) - 1)][None], layers)
        states[:, index[inside]] = h[:, inside]
    return list(states.split([len(ask.x) for ask in asks], 1))


# Updates --------------------------------------------------------------------------------------------------------------


def _alike_updates(asks: list[Ask]) -> Iterator[list[int]]:
    """Numbers of asks whose tables have one shape and fit on the device, those with trips of like length together."""
    every = [(k, ask) for k, ask in enumerate(asks) if isinstance(ask, Update)]
    key = {k: (len(ask.rows.y) >= MANY_ROWS, ask.model.theta_.shape, _longest(ask.rows)) for k, ask in every}
    some: list[int] = []
    trips = 0
    for k, ask in sorted(every, key=lambda each: key[each[0]]):
        members, width = ask.model.adaptation_.precision.shape[:2]
        most = TABLE_BYTES // (8 * members * (width + EFFECTS + 1) * _longest(ask.rows))
        if len(ask.rows.groups) > most:
            continue  # alone
        trips += len(ask.rows.groups)
        if some and (trips > most or key[k][:2] != key[some[0]][:2]):
            yield some
            some, trips = [], len(ask.rows.groups)
        some.append(k)
    if some:
        yield some


def _longest(rows: Evidence) -> int:
    return max(int(group.stop - group.start) for group in rows.groups)


@dataclass(frozen=True)
class Cars:
    """What cars knew before: [cars, members, ...]."""

    prior: Tensor  # [., ., Q]
    precision: Tensor  # [., ., Q, Q]
    bias: Tensor  # of the location
    scale_w: Tensor  # [., ., hidden]
    neutral: Tensor
    nu: Tensor
    log_prior: Tensor  # [cars, offsets] of the log scale's offset
    alike: Tensor  # [cars, members, members] 1 where two count correlated rows together
    known: Tensor  # [cars, 1, 1] trips

    @classmethod
    def of(cls, asks: Sequence[Update], device: torch.device) -> Cars:
        found = []
        for ask in asks:
            state, arch = ask.model.adaptation_, ask.model.architecture_
            views = arch.unpack(ask.model.theta_)
            alike = np.zeros((len(ask.model.theta_),) * 2)
            for some in together(len(alike), len(ask.rows.y), state.precision.shape[1]):
                alike[some, some] = 1.0
            mean, sd = state.scale
            found.append((
                location(views), state.precision, views["head_b"][:, 0], views["head_w"][:, 1], state.neutral,
                degrees_of_freedom(arch, views), -((OFFSETS - mean) ** 2) / (2 * sd**2), alike, np.full((1, 1), state.trips),
            ))  # fmt: skip
        return cls(*(_tensor(np.stack(each), device) for each in zip(*found, strict=True)))


@dataclass(frozen=True)
class Normal:
    """Information [cars, members, Q, Q] and gain [cars, members, Q]; of trips what their effects need."""

    information: Tensor
    gain: Tensor
    covariance: Tensor  # [trips, members, 3, 3]
    cross: Tensor  # [trips, members, Q, 3]
    moment: Tensor  # [trips, members, 3]

    def step(self, precision: Tensor, more: Tensor | float = 0.0) -> Tensor:
        step: Tensor = torch.linalg.solve_ex(self.information + precision, (self.gain + more)[..., None])[0]
        return step[..., 0]

    def drawn(self, precision: Tensor, noise: Tensor) -> Tensor:
        size = self.gain.shape[-1]
        tiny = TINY * self.information.diagonal(dim1=-2, dim2=-1).sum(-1) / size + 1e-30
        eye = torch.eye(size, dtype=tiny.dtype, device=tiny.device)
        root, failed = torch.linalg.cholesky_ex(self.information + tiny[..., None, None] * eye)
        drawn = self.step(precision, _times(root, noise))
        return torch.where(failed[..., None] > 0, torch.nan, drawn)


class Batch:
    """The rows of cars, trip by trip: tables [trips, members, rows, phi and z and the error of the prior's weights]."""

    def __init__(self, parts: Sequence[Evidence], cars: Cars, device: torch.device) -> None:
        self.cars, self.every = cars, parts[0].every
        first = np.cumsum([0, *(len(part.y) for part in parts)])
        groups = [(first[k] + group.start, group.stop - group.start) for k, p in enumerate(parts) for group in p.groups]
        begin, length = np.array(groups).T
        steps = np.arange(length.max())
        inside = steps < length[:, None]
        index = np.where(inside, begin[:, None] + steps, 0)
        moving = np.zeros(first[-1], bool)
        for k, part in enumerate(parts):
            for group in part.moving_rows:
                moving[first[k] + group] = True
        self.moving = _tensor(moving[index] & inside, device)
        self.inside, self.length = _tensor(inside, device), _tensor(length, device)
        owner = np.repeat(np.arange(len(parts)), [len(part.groups) for part in parts])
        self.owner = torch.from_numpy(owner).to(device)
        self.shares = _tensor(owner == np.arange(len(parts))[:, None], device)  # [cars, trips]
        r, y, effect = (np.concatenate([getattr(p, name) for p in parts])[index] for name in ("r", "y", "effect"))
        h = torch.cat([torch.as_tensor(part.h).to(device) for part in parts], 1)[:, index].transpose(0, 1)
        roads, self.size = r.shape[-1], cars.prior.shape[-1]
        table = torch.empty(*h.shape[:3], self.size + EFFECTS + 1, dtype=torch.float64, device=device)
        table[..., :roads], table[..., roads : self.size] = _tensor(r, device)[:, None], h
        table[..., self.size : -1] = _tensor(effect, device)[:, None]
        mean = _times(table[..., : self.size], cars.prior[self.owner]) + cars.bias[self.owner][..., None]
        table[..., -1] = _tensor(y, device)[:, None] - mean
        self.table = table
        self.raw = _times(table[..., roads : self.size], cars.scale_w[self.owner]) + cars.neutral[self.owner][..., None]
        self.nu = cars.nu[self.owner][..., None]

    def by_car(self, of_trips: Tensor) -> Tensor:
        """[cars, ...], sums over trips."""
        return (self.shares @ of_trips.flatten(1)).view(len(self.shares), *of_trips.shape[1:])

    def reweighted(self, error: Tensor) -> tuple[Normal, Tensor]:
        """As `Members.reweighted`; of offsets the densities [cars, members, deviations, offsets]."""
        offsets = self.offsets(error)
        likeliest = _tensor(OFFSETS, error.device)[offsets.sum(2).argmax(-1)]
        s = _softplus(self.raw + likeliest[self.owner][..., None]) + SCALE_FLOOR
        count = (self.correlated(error / s) / self.every).clamp(min=1.0)
        weight = (self.nu + 1) / (self.nu * s**2 + error**2) / count[self.owner][..., None]
        return self.normal(weight * self.inside[:, None]), offsets

    def offsets(self, error: Tensor) -> Tensor:
        """As `ScalePrior.posterior`."""
        fit = torch.cat([self._likelihood(error, some) for some in _tensor(OFFSETS, error.device).split(AT_ONCE)], -1)
        fit = fit * self.every / SCALE_CORRELATED
        near = torch.exp(fit - fit.amax(-1, keepdim=True)) @ _tensor(NEAR.reshape(-1, len(OFFSETS)).T, error.device)
        of_trips = torch.log(near + 1e-300) * (self.moving.sum(1) > 0)[:, None, None]
        log = self.by_car(of_trips.unflatten(-1, (len(TRIP_SCALE_SDS), -1))) + self.cars.log_prior[:, None, None]
        density = torch.exp(log - log.amax((2, 3), keepdim=True))
        return density / density.sum((2, 3), keepdim=True)

    def _likelihood(self, error: Tensor, offsets: Tensor) -> Tensor:
        """[trips, members, offsets], as `scale.add_log_likelihood`."""
        s = _softplus(self.raw[..., None] + offsets) + SCALE_FLOOR
        square = ((error**2).clamp(max=SQUARE) / self.nu)[..., None]
        nu = self.nu[..., None]
        log = nu * s.log() - 0.5 * (nu + 1) * (s**2 + square).log()
        return (log * self.moving[:, None, :, None]).sum(2)

    def correlated(self, error: Tensor) -> Tensor:
        """[cars, members], as `Members.correlated`."""
        inside = self.inside[:, None]
        error = error.clamp(-FARTHEST, FARTHEST) * inside
        error = (error - error.sum(-1, keepdim=True) / self.length[:, None, None]) * inside
        rows = error.shape[-1]
        lags = range(min(LAGS // self.every + 1, rows))
        sums = torch.stack([(error[..., : rows - k] * error[..., k:]).sum(-1) for k in lags], -1)
        total = self.cars.alike @ self.by_car(sums)
        found = self.every * (1.0 + 2.0 * total[..., 1:].sum(-1) / total[..., 0].clamp(min=1e-12))
        return found.clamp(CORRELATED, MOST_CORRELATED)

    def normal(self, weight: Tensor) -> Normal:
        """As `Members.normal`."""
        size = self.size
        scaled = self.table * weight.sqrt()[..., None]
        gram = scaled.mT @ scaled
        cross, moment = gram[..., :size, size:-1], gram[..., size:-1, -1]
        eye = torch.eye(EFFECTS, dtype=gram.dtype, device=gram.device)
        covariance = torch.linalg.inv_ex(gram[..., size:-1, size:-1] + eye)[0]
        half = cross @ covariance
        information = self.by_car(gram[..., :size, :size] - half @ cross.mT)
        gain = self.by_car(gram[..., :size, -1] - _times(half, moment))
        return Normal((information + information.mT) / 2, gain, covariance, cross, moment)

    def errors(self, normal: Normal) -> tuple[Tensor, Tensor]:
        """As `Members.errors`: [trips, members, rows], and [trips, members, 3]."""
        step = normal.step(self.cars.precision)[self.owner]
        effects = _times(normal.covariance, normal.moment - _times(normal.cross.mT, step))
        moved = torch.cat([-step, -effects, torch.ones_like(step[..., :1])], -1)
        return _times(self.table, moved), effects

    def ahead(self, error: Tensor, effects: Tensor) -> Tensor:
        """As `Members.ahead`."""
        count = self.shares.sum(1)[:, None, None]
        variance = of_next(self.by_car(effects), self.by_car(effects**2), count, self.cars.known)[self.owner]
        more = _times(self.table[..., self.size : -1] ** 2, variance)
        return torch.copysign((error**2 + more).sqrt(), error)


def updated_of(asks: list[Update], device: torch.device) -> list[Any]:
    """The model of each after its rows, as `update.updated`; None where a matrix could not be factored, or the model is damaged."""
    cars = Cars.of(asks, device)
    first = Batch([ask.rows.thinned for ask in asks], cars, device)
    error = first.table[..., -1]
    for _ in range(ROUNDS - 1):
        normal, _ = first.reweighted(error)
        error, _ = first.errors(normal)
    del first
    batch = Batch([ask.rows for ask in asks], cars, device)
    normal, offsets = batch.reweighted(batch.ahead(*batch.errors(normal)))
    noise = _tensor(np.stack([noise_of(ask.model, ask.seed) for ask in asks]), device)
    weights = (cars.prior + normal.drawn(cars.precision, noise)).cpu().numpy()
    precision = (cars.precision + normal.information).float().cpu().numpy()
    likely = offsets.cpu().numpy()
    return [_after(ask, *each) for ask, *each in zip(asks, weights, precision, map(Offsets, likely), strict=True)]


def _after(ask: Update, weights: Any, precision: Any, offsets: Offsets) -> Any:
    if not (np.isfinite(weights).all() and np.isfinite(precision).all()):
        return None
    theta, neutral = ask.model.theta_.copy(), ask.model.adaptation_.neutral
    views = ask.model.architecture_.unpack(theta)
    ranks = ranks_of(views["head_b"][:, 1] - neutral)
    set_location(views, weights)
    views["head_b"][:, 1] = neutral + offsets.of_a_trip(ranks)
    try:
        return after(ask.model, theta, precision, offsets, ask.rows, ask.trips, ask.traces)
    except EvbandError:
        return None


def _tensor(array: Any, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device).double()  # widened there: less travels


def _times(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Products of stacked matrices with vectors."""
    return (matrices @ vectors[..., None])[..., 0]


def _softplus(x: Tensor) -> Tensor:
    return torch.nn.functional.softplus(x)
