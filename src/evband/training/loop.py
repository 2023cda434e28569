"""The training loop: all members at once, each on its own windows, none aware of the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evband.network.anchors import Prior, draw
from evband.network.architecture import Architecture
from evband.network.dropout import draw_masks
from evband.network.lstm import Masks
from evband.network.streams import ANCHOR, BOOTSTRAP, DROPOUT, START, WINDOWS, stream
from evband.network.threads import cores_for_kernels
from evband.settings import Settings
from evband.training.objective import Batch, Rows, Terms, data_loss, objective
from evband.training.schedule import learning_rate
from evband.training.windows import cut, epoch_batches, epoch_shape, find_segments, share_windows

CHECKS = 25  # of the held-out trips during a run


@dataclass(frozen=True)
class Data:
    """Rows of all trips, end to end."""

    x: NDArray[np.float32]  # [rows, inputs]
    r: NDArray[np.float32]  # [rows, road]
    y: NDArray[np.float64]  # [rows], standardised; nan where power is unknown
    start: NDArray[np.bool_]  # [rows]: the state is reset before this row
    trip: NDArray[np.int64]  # [rows]: 0, 1, 2 ...
    copy: NDArray[np.int64] | None = None  # [rows]: 1, 2 ... in copies with fewer readings, after all trips themselves

    @property
    def original(self) -> NDArray[np.bool_]:
        """Rows of the trips themselves, not of copies."""
        return np.ones(len(self.y), bool) if self.copy is None else np.asarray(self.copy == 0)

    @property
    def own(self) -> NDArray[np.bool_]:
        """Rows of the trips themselves whose power is known; in copies they would count twice."""
        return np.isfinite(self.y) & self.original


@dataclass(frozen=True)
class Member:
    """What one member sees. ``number`` alone fixes its random draws."""

    number: int
    train: NDArray[np.int64]  # trips
    held_out: NDArray[np.int64]  # trips that say which of its weights to keep; may be empty
    prior: Prior
    beta: float  # weight of a row's loss: scale^(2 beta), gradient stopped
    temperature: float  # of the prior term; 0 = no anchor
    trip_effect: float = 0.0  # share of a window's mean error that the location is not fitted to


@dataclass(frozen=True)
class Progress:
    epoch: int
    epochs: int
    loss: float  # mean over members
    log_score: float | None  # on held-out trips, standardised units, mean over members
    seconds_left: float


@dataclass
class RunState:
    """What a run needs to go on beside weights and the optimiser's moments: what a checkpoint holds."""

    best: Tensor  # [members, parameters]: weights at the best held-out score
    best_score: Tensor  # [members]
    epoch: int = 0
    restarts: dict[int, int] = field(default_factory=dict)  # member number -> times it was restarted
    history: list[tuple[int, float, float]] = field(default_factory=list)  # epoch, loss, held-out log score


OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam, "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop,
}  # fmt: skip


class Trainer:
    """Holds the tensors of a run; ``epoch`` advances it by one pass over the data."""

    def __init__(
        self,
        arch: Architecture,
        data: Data,
        members: list[Member],
        settings: Settings,
        device: str = "cpu",
        choices: list[NDArray[np.int64]] | None = None,  # the trips that a member may train on, members' own by default
    ):
        self.arch, self.settings, self.members, self.device = arch, settings, members, torch.device(device)
        self.checks = CHECKS
        known = np.isfinite(data.y)
        segments = find_segments(data.start, data.trip, data.copy)
        stretches = share_windows(segments, settings.window, settings.burn_in)
        shared = len(stretches.begin) < len(segments.begin)
        self.rows = Rows(
            torch.from_numpy(np.ascontiguousarray(data.x)).to(self.device),
            torch.from_numpy(np.ascontiguousarray(data.r)).to(self.device),
            torch.from_numpy(np.where(known, data.y, 0.0).astype(np.float32)).to(self.device),
            torch.from_numpy(known).to(self.device),
            torch.from_numpy(data.trip).to(self.device),
            torch.from_numpy((~data.start).astype(np.float32)).to(self.device) if shared else None,
        )
        self.train_segments = [stretches.of_trips(m.train) for m in members]
        self.held_segments = [stretches.of_trips(m.held_out).with_first() for m in members]
        suited = [stretches.of_trips(trips) for trips in choices] if choices else self.train_segments
        self.window, self.steps, self.batch = epoch_shape(
            suited, settings.window, settings.burn_in, settings.batch, settings.thinning
        )
        self.variance = torch.stack([m.prior.variance for m in members]).to(self.device)
        self.anchor = self._draw(ANCHOR)
        self.terms = self._terms(data)
        self.held_windows = self._held_windows()
        self.theta = self._draw(START).requires_grad_()
        options: dict[str, Any] = {"lr": settings.rate}
        if device != "cpu":
            options["lr"] = torch.tensor(settings.rate, device=self.device)
            options |= {"capturable": True} if settings.optimiser in ("adam", "rmsprop") else {}
        self.optimiser = OPTIMISERS[settings.optimiser]([self.theta], **options)
        self.theta.grad = torch.zeros_like(self.theta)
        no_score = torch.full((len(members),), torch.inf, device=self.device)
        self.state = RunState(self.theta.detach().clone(), no_score)
        self.broken = torch.zeros(len(members), dtype=torch.bool, device=self.device)
        self._loss_sum = torch.zeros(len(members), device=self.device)
        self._batch: Batch | None = None
        self._masks: Masks | None = None
        self._replay: Callable[[], None] | None = None

    def _draw(self, purpose: int) -> Tensor:
        """Anchors or initial weights, each a draw from the member's prior."""
        seed = self.settings.seed
        return torch.cat([draw(m.prior, [m.number], seed, purpose) for m in self.members]).to(self.device)

    def _terms(self, data: Data) -> Terms:
        s, known = self.settings, data.own
        targets = np.array([known[np.isin(data.trip, m.train)].sum() for m in self.members], dtype=np.float64)
        weight = np.ones(len(targets)) if s.prior_scale == "literal" else 1.0 / np.maximum(targets, 1)
        trip_weight = None
        if s.resample == "trips":
            weights = np.stack([self._bootstrap(m, data.trip, known) for m in self.members])
            trip_weight = torch.from_numpy(weights).float().to(self.device)
        effect = torch.tensor([m.trip_effect for m in self.members], device=self.device)
        return Terms(
            torch.tensor([m.beta for m in self.members], device=self.device),
            torch.tensor([m.temperature for m in self.members] * weight, dtype=torch.float32, device=self.device),
            trip_weight,
            effect if effect.any() else None,
        )

    def _bootstrap(self, member: Member, trip: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Bayesian bootstrap: a trip's weight is exponential, scaled so that the mean over training rows is 1."""
        weight = stream(self.settings.seed, member.number, BOOTSTRAP).exponential(size=int(trip.max()) + 1)
        return np.asarray(weight / max(weight[trip[known & np.isin(trip, member.train)]].mean(), 1e-12))

    def _held_windows(self) -> Tensor | None:
        """``[3, chunks, members, batch]``: fixed windows over each member's held-out trips, empty ones as padding."""
        s = self.settings
        cuts = [cut(segments, s.window, s.burn_in) for segments in self.held_segments]
        most = max(len(c) for c in cuts)
        if most == 0:
            return None
        chunks = -(-most // s.batch)
        out = np.zeros((3, len(cuts), chunks * s.batch), np.int64)
        for m, c in enumerate(cuts):
            out[:, m, : len(c)] = c.start, c.first, c.stop
        chunked = out.reshape(3, len(cuts), chunks, s.batch).transpose(0, 2, 1, 3)
        return torch.from_numpy(np.ascontiguousarray(chunked)).to(self.device)

    # One step -------------------------------------------------------------------------------------------------------

    def step_once(self) -> None:
        """One step on the static batch; nothing in it depends on the host, so that it can be captured."""
        assert self._batch is not None
        assert self.theta.grad is not None
        loss = objective(
            self.arch, self.theta, self.anchor, self.variance, self.rows, self._batch, self.window,
            self.terms, self._masks,
        )  # fmt: skip
        self.theta.grad.zero_()
        loss.sum().backward()
        grad = self.theta.grad
        norm = grad.norm(dim=1, keepdim=True)
        bad = ~torch.isfinite(norm)
        self.broken |= bad.squeeze(1)
        grad.mul_((self.settings.clip / norm.clamp(min=1e-12)).clamp(max=1.0))
        grad.copy_(torch.where(bad, 0.0, grad))
        self._loss_sum += torch.nan_to_num(loss.detach(), nan=0.0, posinf=0.0, neginf=0.0)
        nu = self.arch.slices.get("nu_raw", slice(0))
        before = self.theta.detach()[:, nu].clone()
        self.optimiser.step()
        with torch.no_grad():
            self.theta[:, nu] += (self.settings.nu_pace - 1.0) * (self.theta[:, nu] - before)

    def epoch(self) -> float:
        """One pass over the data; returns the mean loss over members."""
        s, number = self.settings, self.state.epoch
        batches = self.epoch_batches(number)
        self._loss_sum.zero_()
        for k, step in enumerate(range(number * self.steps, (number + 1) * self.steps)):
            self.set_batch(batches[:, k], step)
            self._set_rate(learning_rate(s, step, s.epochs * self.steps))
            if self.device.type == "cuda":
                self._run_captured()
            else:
                self.step_once()
        self._restart_broken()
        self.state.epoch += 1
        return float(self._loss_sum.mean()) / self.steps

    def epoch_batches(self, epoch: int) -> Tensor:
        """``[3, steps, members, batch]``: this epoch's windows, cut and shuffled anew for each member."""
        s = self.settings
        out = []
        for member, segments in zip(self.members, self.train_segments, strict=True):
            rng = stream(s.seed, member.number, WINDOWS, epoch)
            segments = segments.drawn(s.thinning, rng)
            out.append(epoch_batches(cut(segments, self.window, s.burn_in, rng), self.steps, self.batch, rng))
        return torch.from_numpy(np.stack(out, axis=2)).to(self.device)

    def set_batch(self, windows: Tensor, step: int) -> Batch:
        """Put windows (and new masks) where `step_once` finds them; the same memory each time, for CUDA graphs."""
        if self._batch is None:
            self._batch = Batch(*(w.clone() for w in windows))
        else:
            for static, new in zip((self._batch.start, self._batch.first, self._batch.stop), windows, strict=True):
                static.copy_(new)
        if self.settings.dropout_rate:
            rngs = [stream(self.settings.seed, m.number, DROPOUT, step) for m in self.members]
            new = draw_masks(self.arch, self.settings.dropout_rate, self.batch, rngs).map(torch.from_numpy)
            if self._masks is None:
                self._masks = new.map(lambda mask: mask.to(self.device))
            else:
                old = (*self._masks.inputs, *self._masks.recurrent, self._masks.output)
                for static, mask in zip(old, (*new.inputs, *new.recurrent, new.output), strict=True):
                    static.copy_(mask)
        return self._batch

    def _set_rate(self, rate: float) -> None:
        group = self.optimiser.param_groups[0]
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate

    def _run_captured(self) -> None:
        """On a GPU the whole step, optimiser included, is one CUDA graph, captured at its first use."""
        if self._replay is None:
            from evband.training.graph import capture

            self._replay = capture(self.step_once, [self.theta, self._loss_sum, *self._moments()], self._moments)
        self._replay()

    def _moments(self) -> list[Tensor]:
        return [v for v in self.optimiser.state[self.theta].values() if isinstance(v, Tensor)]

    def _restart_broken(self) -> None:
        """A member with a non-finite gradient starts again from its anchor; the others never notice."""
        for m in self.broken.nonzero().flatten().tolist():
            number = self.members[m].number
            self.state.restarts[number] = self.state.restarts.get(number, 0) + 1
            with torch.no_grad():
                self.theta[m] = self.anchor[m]
                for moment in self._moments():
                    if moment.shape == self.theta.shape:
                        moment[m] = 0
        self.broken.zero_()

    # Held-out trips -------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def held_out_scores(self) -> Tensor | None:
        """Mean nll (pinball loss for quantiles) of each member on its held-out trips; nan where it has none."""
        if self.held_windows is None:
            return None
        total = torch.zeros(len(self.members), device=self.device)
        count = torch.zeros_like(total)
        for chunk in self.held_windows.unbind(1):
            loss, n = data_loss(self.arch, self.theta, self.rows, Batch(*chunk), self.settings.window, None)
            total += loss
            count += n
        return total / count

    def check(self) -> float | None:
        """Keep each member's weights where its held-out score is best so far.

        The run goes on to the end whatever the scores: while the rate is high they wander for half of the epochs, and a
        member that stopped there would miss the descent.
        """
        scores = self.held_out_scores()
        if scores is None:
            return None
        state = self.state
        gain = scores < state.best_score
        state.best_score = torch.where(gain, scores, state.best_score)
        state.best = torch.where(gain.unsqueeze(1), self.theta.detach(), state.best)
        return float(scores.nanmean())

    def weights(self) -> Tensor:
        """``[members, parameters]``: best on held-out trips where there are any, else the last."""
        has_best = torch.isfinite(self.state.best_score).unsqueeze(1)
        return torch.where(has_best, self.state.best, self.theta.detach()).cpu()


class Keeper(Protocol):
    """Where a run is kept (`evband.training.checkpoint.Checkpoint`)."""

    def save(self, trainer: Trainer) -> None:
        """An epoch has ended."""

    def flush(self) -> None:
        """The run ends or is interrupted: whatever epoch was saved last must be on disk."""


def run(
    trainer: Trainer,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Keeper | None = None,
) -> Tensor:
    """Train to the end (or on from where the trainer stands) and return the members' weights."""
    s, state, began = trainer.settings, trainer.state, time.monotonic()
    first = state.epoch
    every = max(1, s.epochs // trainer.checks)
    score = state.history[-1][2] if state.history and not np.isnan(state.history[-1][2]) else None
    try:
        while state.epoch < s.epochs:
            with cores_for_kernels():
                loss = trainer.epoch()
                if state.epoch % every == 0 or state.epoch == s.epochs:
                    score = trainer.check()
            state.history.append((state.epoch, loss, float("nan") if score is None else score))
            if checkpoint:
                checkpoint.save(trainer)
            if progress:
                left = (time.monotonic() - began) / (state.epoch - first) * (s.epochs - state.epoch)
                progress(Progress(state.epoch, s.epochs, loss, score, left))
    finally:
        if checkpoint:
            checkpoint.flush()
    return trainer.weights()
