"""One network taught what an ensemble gives: mean, aleatoric and epistemic deviation of every row (`evband.export.collapse`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evband.network.anchors import draw, make_prior
from evband.network.architecture import Architecture
from evband.network.forward import forward
from evband.network.standard import scale_of_deviation
from evband.network.streams import START, WINDOWS, stream
from evband.settings import Settings
from evband.training import objective
from evband.training.schedule import learning_rate
from evband.training.windows import Segments, cut, epoch_batches


@dataclass(frozen=True)
class Lesson:
    """What the ensemble says of every row, in standardised units."""

    x: NDArray[np.float32]  # [rows, inputs]
    r: NDArray[np.float32]  # [rows, road]
    mean: NDArray[np.float32]  # [rows]
    aleatoric: NDArray[np.float32]  # [rows]
    epistemic: NDArray[np.float32]  # [rows]
    segments: Segments


def _start(arch: Architecture, lesson: Lesson, road: NDArray[np.float32] | None, seed: int) -> Tensor:
    """A draw from the prior, with the given road-load path and typical deviations."""
    theta = draw(make_prior(arch), [0], seed, START)
    if road is not None:
        theta[:, arch.slices["road_w"]] = torch.from_numpy(road)
    weights = arch.unpack(theta)
    weights["head_w"].mul_(0.3)
    weights["head_b"][0] = torch.stack(
        [
            torch.zeros(()),
            torch.log(torch.expm1(_scale(arch, lesson).median())),
            torch.from_numpy(lesson.epistemic).median(),
        ]
    )
    return theta


def _scale(arch: Architecture, lesson: Lesson) -> Tensor:
    """The Student-t scale whose variance is the aleatoric part: AU = s^2 nu/(nu - 2)."""
    assert arch.nu is not None
    return torch.from_numpy(lesson.aleatoric) * scale_of_deviation(arch.nu)


def teach(
    arch: Architecture,
    lesson: Lesson,
    road: NDArray[np.float32] | None,  # [road]: weights of the road-load path to begin with
    settings: Settings,
    steps: int,  # per epoch
    progress: Callable[[int, int, float], None] | None,
) -> NDArray[np.float32]:
    """Weights ``[1, parameters]`` that minimise, over rows: (mean error / total)^2 + (log scale error)^2 + the epistemic part's gamma deviance."""
    theta = _start(arch, lesson, road, settings.seed).requires_grad_()
    optimiser = torch.optim.Adam([theta], lr=settings.rate)
    inputs, terms, taught, aleatoric, epistemic = map(
        torch.from_numpy, (lesson.x, lesson.r, lesson.mean, lesson.aleatoric, lesson.epistemic)
    )
    count = len(inputs)
    known, trip = torch.ones(count, dtype=torch.bool), torch.zeros(count, dtype=torch.int64)
    rows = objective.Rows(inputs, terms, taught, known, trip)
    log_scale, total = _scale(arch, lesson).log(), (aleatoric**2 + epistemic**2).sqrt()
    for epoch in range(settings.epochs):
        rng, summed = stream(settings.seed, 0, WINDOWS, epoch), 0.0
        windows = cut(lesson.segments, settings.window, settings.burn_in, rng)
        for k, chosen in enumerate(epoch_batches(windows, steps, settings.batch, rng).transpose(1, 0, 2)):
            batch = objective.Batch(*(torch.from_numpy(part).unsqueeze(0) for part in chosen))
            x, r, mean, target, index, _ = objective.gather(rows, batch, settings.window)
            out, _ = forward(arch, theta, x, r)
            assert out.scale is not None
            location, spread = (out.mu[1] + out.mu[0]) / 2, (out.mu[1] - out.mu[0]) / 2
            where = index[0]
            error = ((location - mean[0]) / total[where]).square()
            error = error + (out.scale[0].log() - log_scale[where]).square()
            error = error + _gamma_deviance(spread / epistemic[where])
            loss = torch.where(target[0], error, 0.0).sum() / target.sum().clamp(min=1)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_([theta], settings.clip)
            optimiser.param_groups[0]["lr"] = learning_rate(settings, epoch * steps + k, settings.epochs * steps)
            optimiser.step()
            summed += float(loss.detach())
        if progress:
            progress(epoch + 1, settings.epochs, summed / steps)
    trained: NDArray[np.float32] = theta.detach().numpy()
    return trained


def _gamma_deviance(ratio: Tensor) -> Tensor:
    """2 (1/q + log q - 1), q = taught/true: least at the conditional mean, about (log q)^2 near 1; a tangent below q = 0.2."""
    least = 0.2
    q = ratio.clamp(min=least)
    return 2 * (1 / q + q.log() - 1 + (1 / least - 1 / least**2) * (ratio - q))
