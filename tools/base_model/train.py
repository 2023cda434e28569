"""Train the base ensemble on the simulated population, then learn how cars differ from its mean.

    PYTHONPATH=src python tools/base_model/train.py population.npz -o DIR      # with a GPU: about four minutes
    PYTHONPATH=src python tools/base_model/train.py population.npz -o DIR --start BASE --steps 1500 --rate 2e-3

Needs torch and NumPy only. `--start` goes on from the weights of an earlier base, where the population changed little.
Every member sees four fifths of the vehicles. While the network is trained, each vehicle has weights of its own beside
the shared ones (road-load terms, head, the log scale's offset), held near zero by a ridge so tight that the shared
network learns what a log tells of itself: how often the speed is read says how much of a pedal's work it shows, and
how noisy the log is. Then its own weights are let loose a little, so that what is left to them is easy to learn. Then
empirical Bayes (EM of a normal-normal model, trip effects aside) gives mean and covariance over vehicles of these
weights. `--linear` trains what the network has to beat: a location linear in the road-load terms, and a scale linear in
the present inputs (before the softplus that keeps it positive; power at the wheels by its sign among them).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from evband.adaptation.base import Base
from evband.channels import READINGS, SENSED
from evband.features.road_load import CHANGE, FADE, KINETIC
from evband.features.wheel import CABIN, INPUTS, ROADS, USUAL_KG, SheetMap, wheel_terms
from evband.network.heads.base import SCALE_FLOOR
from evband.network.lstm import LayerWeights, ensemble_lstm
from evband.settings import Settings

SIGNALS = ("speed_kmh", "acceleration_ms2", "elevation_m", "ambient_temp_c", KINETIC, CHANGE, FADE, READINGS, SENSED)
WINDOW, BURN_IN, BATCH, RATE, BETA = 128, 24, 64, 6e-3, 0.5
RIDGE_SCALE = 0.3  # variance that holds the offset of a vehicle's log scale near zero where vehicles are compared
# Those in training, of a vehicle's own weights and of that offset: the network itself is to see what the log shows of the motion.
OWN_WEIGHTS, OWN_SCALE = 1e-5, 5e-4
LATER, LATER_STEPS = 1e-3, 2500  # own weights, once that is learned: what is left to them should be easy to learn
NU_MIN = 3.0
CORRELATED = 15.0  # rows that count as one where vehicles are compared
ROUNDS = 15  # of EM, each time that vehicles are compared
EVERY, THINNED = 3, 4  # rows of which one counts there, and of those one that tells how noisy a log is
# What a cabin draws is the road-load terms' alone: a network that also sees the weather extrapolates summer into winter.
WEATHER = ("cold", "hot", "ambient known")
APART = (("cold", "fade*cold"), ("hot", "fade*hot"))  # terms that tell nothing of the others: one's heater of its motor
SHUT = -20.0  # bias of a gate that is shut; open with the other sign
STRAIGHT = 0.2  # slope at which tanh(tanh(x)) is nearly a line
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Population:
    """Rows of all vehicles, in the units of the network."""

    x: Tensor  # [rows, inputs]
    r: Tensor  # [rows, roads]
    y: Tensor  # [rows], 0 where unknown
    known: Tensor  # [rows] bool
    car: Tensor  # [rows]
    begin: Tensor  # [rows]: first row of the row's segment
    end: Tensor  # [rows]: one beyond its last
    scales: dict[str, Any]

    @property
    def cars(self) -> int:
        return int(self.car.max()) + 1


def load(path: Path, earlier: Base | None = None) -> Population:
    with np.load(path, allow_pickle=False) as file:
        rows, car, sheet = file["rows"].astype(float), file["car"].astype(int), file["sheet"]
    x, r = np.empty((len(rows), len(INPUTS))), np.empty((len(rows), len(ROADS)))
    for c, numbers in enumerate(sheet):
        own = car == c
        inputs, roads = wheel_terms(dict(zip(SIGNALS, rows[own, : len(SIGNALS)].T, strict=True)), tuple(numbers))
        heavy = numbers[0] / USUAL_KG
        x[own] = np.stack([v / heavy if k == "one" else v for k, v in inputs.items()], 1)
        r[own] = np.stack([v / heavy if k in CABIN else v for k, v in roads.items()], 1)
    power, start, trip = rows[:, len(SIGNALS) :].T
    y, known = power / sheet[car, 0] * 1000.0, np.isfinite(power)  # W/kg
    first = start > 0
    first[1:] |= (np.diff(car) != 0) | (np.diff(trip) != 0)
    index = np.arange(len(y))
    begin = np.maximum.accumulate(np.where(first, index, 0))
    end = np.append(np.flatnonzero(first)[1:], len(y))[np.cumsum(first) - 1]
    scales = {
        "x_shift": x.mean(0),
        "x_scale": x.std(0),
        "r_scale": np.maximum(r.std(0), 1e-6),
        "unit": float(np.std(y[known])),
    }
    if earlier is not None:
        scales = {name: getattr(earlier, name) for name in scales}
    x = np.clip((x - scales["x_shift"]) / scales["x_scale"], -SheetMap.farthest, SheetMap.farthest)

    def tensor(a: Any, kind: torch.dtype = torch.float32) -> Tensor:
        return torch.tensor(a, dtype=kind, device=DEVICE)

    return Population(
        tensor(x), tensor(r / scales["r_scale"]), tensor(np.where(known, y, 0.0) / scales["unit"]), tensor(known, torch.bool),
        tensor(car, torch.long), tensor(begin, torch.long), tensor(end, torch.long), scales,
    )  # fmt: skip


class Ensemble:
    """Shared weights of all members, and every vehicle's own."""

    def __init__(self, population: Population, members: int, hidden: int, linear: bool = False) -> None:
        self.linear = linear
        k, inputs, cars = len(ROADS), len(INPUTS), population.cars
        ridge = 1e-4 * len(population.y) * torch.eye(k, device=DEVICE)
        r, y = population.r[population.known], population.y[population.known]
        mean = torch.linalg.solve(r.T @ r + ridge, r.T @ y)

        def drawn(*shape: int, scale: float) -> Tensor:
            return (scale * torch.randn(*shape, device=DEVICE)).requires_grad_()

        self.members, self.hidden = members, hidden
        self.seen = torch.tensor([float(name not in WEATHER) for name in INPUTS], device=DEVICE)
        self.w_ih = drawn(members, 4 * hidden, inputs, scale=inputs**-0.5)
        self.w_hh = drawn(members, 4 * hidden, hidden, scale=hidden**-0.5)
        bias = 0.1 * torch.randn(members, 4 * hidden, device=DEVICE)
        bias[:, hidden : 2 * hidden] += 1.0
        self.bias = bias.requires_grad_()
        self.head_w = drawn(members, 2, hidden, scale=0.3 * hidden**-0.5)
        self.head_b = torch.tensor([0.0, -1.5], device=DEVICE).repeat(members, 1).requires_grad_()
        self.nu_raw = torch.ones(members, device=DEVICE, requires_grad=True)
        self.road_w = mean.repeat(members, 1).requires_grad_()
        self.own_road, self.own_head, self.own_scale = (
            torch.zeros(members, cars, *more, device=DEVICE, requires_grad=True) for more in ((k,), (hidden,), ())
        )

    def go_on(self, start: Base) -> None:
        """From the weights of an earlier base of the same shape."""
        found = Settings(hidden=self.hidden).architecture(len(INPUTS), len(ROADS)).unpack(start.theta)
        weights = {"w_ih.0": self.w_ih, "w_hh.0": self.w_hh, "bias.0": self.bias, "head_w": self.head_w,
                   "head_b": self.head_b, "nu_raw": self.nu_raw, "road_w": self.road_w}  # fmt: skip
        with torch.no_grad():
            for name, tensor in weights.items():
                tensor.copy_(torch.as_tensor(found[name]).reshape(tensor.shape))

    @property
    def shared(self) -> list[Tensor]:
        return [self.w_ih, self.w_hh, self.bias, self.head_w, self.head_b, self.nu_raw, self.road_w]

    @property
    def own(self) -> list[Tensor]:
        return [self.own_road, self.own_head, self.own_scale]

    @property
    def nu(self) -> Tensor:
        return NU_MIN + softplus(self.nu_raw)

    def states(self, x: Tensor) -> Tensor:
        if self.linear:  # what the cells below come to
            nearly = torch.zeros(*x.shape[:-1], self.hidden, device=DEVICE)
            nearly[..., : x.shape[-1]] = torch.tanh(torch.tanh(STRAIGHT * x))
            return nearly.expand(self.members, *nearly.shape[1:])
        return ensemble_lstm(x.contiguous(), [LayerWeights(*self.cells())])[0]

    def cells(self) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of the recurrent layer; where the model is linear, ones that pass the present inputs on, nearly as they are."""
        if not self.linear:
            return self.w_ih * self.seen, self.w_hh, self.bias
        w_ih, bias = torch.zeros_like(self.w_ih), torch.zeros_like(self.bias)
        i, f, g, o = (slice(k * self.hidden, (k + 1) * self.hidden) for k in range(4))
        w_ih[:, g] = STRAIGHT * torch.eye(self.hidden, w_ih.shape[2], device=DEVICE)
        bias[:, i], bias[:, f], bias[:, o] = -SHUT, SHUT, -SHUT
        return w_ih, torch.zeros_like(self.w_hh), bias

    def heads(self) -> Tensor:
        return self.head_w * torch.tensor([[0.0], [1.0]], device=DEVICE) if self.linear else self.head_w

    def raw(self, h: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
        """Location and raw scale [members, time, batch] of the mean car."""
        out = torch.einsum("mtbh,moh->mtbo", h, self.heads()) + self.head_b[:, None, None]
        return out[..., 0] + torch.einsum("mtbk,mk->mtb", r, self.road_w), out[..., 1]

    def ridge(self, rows: float, weights: float) -> Tensor:
        held = zip(self.own, (weights, weights, OWN_SCALE), strict=True)
        near: Any = sum((own.flatten(1) ** 2).sum(1) / (2 * variance) for own, variance in held)
        decay: Any = sum((w.flatten(1) ** 2).sum(1) for w in (*self.cells()[:2], self.head_w))
        return cast(Tensor, 3.0 * near / rows + 1e-5 * decay)


def nll(z: Tensor, scale: Tensor, nu: Tensor) -> Tensor:
    constant = 0.5 * (nu * np.pi).log() + torch.lgamma(nu / 2) - torch.lgamma((nu + 1) / 2)
    return scale.log() + constant + (nu + 1) / 2 * torch.log1p(z**2 / nu)


def train(population: Population, model: Ensemble, mine: Tensor, steps: int, rate: float, own: float) -> None:
    """Train all members side by side, each on the vehicles that are its own, whose own weights have variance `own`."""
    p, members = population, model.members
    optimiser = torch.optim.Adam([*model.shared, *model.own], lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.2)
    weight = torch.cumsum((1.0 / torch.bincount(p.car)[p.car]).double(), 0)  # vehicles weigh alike
    member, time_steps, began = (
        torch.arange(members, device=DEVICE)[:, None],
        torch.arange(WINDOW, device=DEVICE),
        time.time(),
    )
    for step in range(steps):
        at = torch.searchsorted(weight, torch.rand(members, BATCH, device=DEVICE).double() * weight[-1]).clamp(
            max=len(p.y) - 1
        )
        at = torch.maximum(torch.minimum(at, p.end[at] - WINDOW), p.begin[at])
        rows = at[:, None] + time_steps[:, None]  # [members, time, batch]
        first = torch.where(at == p.begin[at], 0, BURN_IN)[:, None]
        counted = (rows < p.end[at][:, None]) & (time_steps[:, None] >= first)
        rows, car = torch.minimum(rows, p.end[at][:, None] - 1), p.car[at]
        counted &= p.known[rows] & mine.gather(1, car)[:, None]
        h, r = model.states(p.x[rows]), p.r[rows]
        mu, raw = model.raw(h, r)
        mu = mu + torch.einsum("mtbk,mbk->mtb", r, model.own_road[member, car])
        if not model.linear:
            mu = mu + torch.einsum("mtbh,mbh->mtb", h, model.own_head[member, car])
        scale = softplus(raw + model.own_scale[member, car][:, None]) + SCALE_FLOOR
        loss = nll((p.y[rows] - mu) / scale, scale, model.nu.view(-1, 1, 1))
        share = counted * scale.detach() ** (2 * BETA)
        total = (loss * share).sum((1, 2)) / share.sum((1, 2)).clamp(min=1e-9)
        optimiser.zero_grad(set_to_none=True)
        (total + model.ridge(0.8 * len(p.y), own)).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.shared, members**0.5)
        optimiser.step()
        schedule.step()
        if step % 200 == 0 or step == steps - 1:
            print(
                f"{step}: loss {total.mean().item():.3f}, nu {model.nu.mean().item():.2f}, {time.time() - began:.0f} s",
                flush=True,
            )


class Batch(NamedTuple):
    """Some segments, one row in `EVERY`, as every member sees them."""

    h: Tensor  # [members, time, batch, hidden]
    rows: Tensor  # [time, batch]
    inside: Tensor  # [time, batch]
    car: Tensor  # [batch]


@torch.no_grad()
def batches(population: Population, model: Ensemble) -> list[Batch]:
    p, found = population, []
    for at in torch.unique(p.begin).split(16):
        longest = int((p.end[at] - at).max())
        rows = at + torch.arange(longest, device=DEVICE)[:, None]
        inside = (rows < p.end[at]) & p.known[torch.minimum(rows, p.end[at] - 1)]
        rows = torch.minimum(rows, p.end[at] - 1)
        h = model.states(p.x[rows][None])[:, ::EVERY].clone()
        found.append(Batch(h, rows[::EVERY], inside[::EVERY], p.car[at]))
    return found


@torch.no_grad()
def statistics(population: Population, model: Ensemble, seen: list[Batch]) -> tuple[Tensor, Tensor]:
    """Information [members, cars, Q, Q] and gain [members, cars, Q] of every vehicle's rows about its own weights; the
    offset of its log scale is set to the likeliest, given the weights that it has."""
    p, q = population, len(ROADS) + model.hidden
    information = torch.zeros(model.members, p.cars, q, q, device=DEVICE)
    gain = torch.zeros(model.members, p.cars, q, device=DEVICE)
    offsets = torch.linspace(-2.5, 2.5, 51, device=DEVICE)
    unlikely = (offsets**2 / (2 * RIDGE_SCALE)).repeat(model.members, p.cars, 1)
    nu = model.nu.view(-1, 1, 1)
    for h, rows, inside, car in seen:
        r = p.r[rows].expand(model.members, -1, -1, -1)
        mu, raw = model.raw(h, r)
        phi, error = torch.cat([r, 0.0 * h if model.linear else h], -1), p.y[rows] - mu
        own = torch.cat([model.own_road[:, car], model.own_head[:, car]], -1)
        scale = softplus(raw + model.own_scale[:, car][:, None]) + SCALE_FLOOR
        left = (error - torch.einsum("mtbq,mbq->mtb", phi, own)) / scale
        few = (slice(None), slice(None, None, THINNED))
        for k, offset in enumerate(offsets):
            s = softplus(raw[few] + offset) + SCALE_FLOOR
            unlikely[:, :, k].index_add_(1, car, (nll(left[few] * scale[few] / s, s, nu) * inside[::THINNED]).sum(1))
        weight = inside * (nu + 1) / (nu + left**2) / scale**2 * (EVERY / CORRELATED)
        for b, c in enumerate(car.tolist()):
            weighted = phi[:, :, b] * weight[:, :, b, None]
            information[:, c] += weighted.transpose(1, 2) @ phi[:, :, b]
            gain[:, c] += (weighted * error[:, :, b, None]).sum(1)
    model.own_scale.copy_(offsets[unlikely.argmin(-1)])
    return information, gain


@torch.no_grad()
def between_cars(
    information: Tensor, gain: Tensor, saw: Tensor, last: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean [members, Q] and covariance [members, Q, Q] over vehicles, by EM, each member from the vehicles it saw; a
    draw of every vehicle's own weights [members, cars, Q], as deviations from the mean in units of the covariance's root;
    and their posterior means. `last` is an earlier mean and covariance to begin with."""
    a, b = (information + information.mT).double() / 2, gain.double()
    members, _, q = b.shape
    wide = 0.01 * torch.eye(q, dtype=torch.double, device=b.device).repeat(members, 1, 1)
    mean, covariance = (b.new_zeros(members, q), wide) if last is None else last
    share = saw.double() / saw.sum(1, keepdim=True)
    group = torch.tensor(
        [next((k for k, names in enumerate(APART, 1) if name in names), 0) for name in ROADS] + [0] * (q - len(ROADS))
    )
    together = (group[:, None] == group).to(b)
    for _ in range(ROUNDS):
        precision = torch.linalg.inv(covariance)
        known = torch.linalg.cholesky(a + precision[:, None])
        posterior = torch.cholesky_inverse(known)
        found = torch.einsum("mcpq,mcq->mcp", posterior, b + (precision @ mean[..., None]).squeeze(-1)[:, None])
        mean = torch.einsum("mc,mcp->mp", share, found)
        away = found - mean[:, None]
        covariance = torch.einsum("mc,mcp,mcq->mpq", share, away, away) + torch.einsum("mc,mcpq->mpq", share, posterior)
        covariance = 0.98 * covariance + 0.02 * torch.diag_embed(torch.diagonal(covariance, dim1=1, dim2=2))
        covariance = covariance * together
    noise = torch.randn_like(found)[..., None]
    drawn = found + torch.linalg.solve_triangular(known.mT, noise, upper=True)[..., 0]
    root = torch.linalg.cholesky(covariance)
    away = torch.linalg.solve(root[:, None], (drawn - mean[:, None])[..., None]).squeeze(-1)
    return mean, covariance, away, found.float()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("population", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--steps", type=int, default=12000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--rounds", type=int, default=3, help="of comparing vehicles")
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--start", type=Path)
    args = parser.parse_args()
    start = None if args.start is None else Base.load(args.start)
    population = load(args.population, start)
    torch.manual_seed(args.seed)
    model = Ensemble(population, args.members, args.hidden, args.linear)
    if start is not None:
        model.go_on(start)
    saw = torch.rand(args.members, population.cars, device=DEVICE) < 0.8
    if args.steps:
        train(population, model, saw, args.steps, args.rate, OWN_WEIGHTS)
        if not args.linear:
            train(population, model, saw, LATER_STEPS, args.rate / 2, LATER)
    seen, last = batches(population, model), None
    print(f"{len(seen)} batches", flush=True)
    for _ in range(args.rounds):
        mean, covariance, cars, own = between_cars(*statistics(population, model, seen), saw, last)
        last = mean, covariance
        print(f"mean {mean.abs().mean():.4f}, spread {covariance.diagonal(dim1=1, dim2=2).mean():.4f}", flush=True)
        with torch.no_grad():
            model.own_road.copy_(own[..., : len(ROADS)])
            model.own_head.copy_(own[..., len(ROADS) :])

    def arrays(tensor: Tensor) -> Any:
        return tensor.detach().float().cpu().numpy()

    w_ih, w_hh, bias = model.cells()
    weights = {
        "w_ih.0": w_ih, "w_hh.0": w_hh, "bias.0": bias, "head_w": model.heads(), "head_b": model.head_b,
        "nu_raw": model.nu_raw, "road_w": model.road_w,
    }  # fmt: skip
    np.savez(
        args.output / ("linear.npz" if args.linear else "network.npz"), mean=arrays(mean), spread=arrays(covariance), cars=arrays(cars),
        own_scale=arrays(model.own_scale), **{name: arrays(w) for name, w in weights.items()}, **population.scales,
    )  # fmt: skip


if __name__ == "__main__":
    main()
