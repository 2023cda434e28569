"""JAX: one member as a scan over time, all members by vmap, compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Shape = dict[str, int]
VERSION = f"jax {jax.__version__}"


def _lstm(layers: list[tuple[Any, Any, Any]], x: Any) -> Any:
    """x [steps, windows, inputs] to h [steps, windows, hidden]; inputs meet their weights outside the scan."""
    for w_ih, w_hh, bias in layers:
        sums = x @ w_ih.T + bias
        zeros = jnp.zeros((x.shape[1], w_hh.shape[1]))

        def cell(state: Any, z: Any, w_hh: Any = w_hh) -> Any:
            h, c = state
            i, f, g, o = jnp.split(z + h @ w_hh.T, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        _, x = jax.lax.scan(cell, (zeros, zeros), sums)
    return x


def step(shape: Shape) -> Callable[[], None]:
    """Forward and backward of every member: the gradient of a weighted sum of all hidden states."""
    members, hidden, keys = shape["members"], shape["hidden"], iter(jax.random.split(jax.random.key(0), 99))
    layers = []
    for k in range(shape["layers"]):
        width = hidden if k else shape["features"]
        sizes = ((members, 4 * hidden, width), (members, 4 * hidden, hidden), (members, 4 * hidden))
        layers.append(tuple(jax.random.uniform(next(keys), size, minval=-1, maxval=1) * hidden**-0.5 for size in sizes))
    x = jax.random.normal(next(keys), (shape["steps"], shape["windows"], shape["features"]))
    dy = jax.random.normal(next(keys), (members, shape["steps"], shape["windows"], hidden))

    def loss(layers: Any, dy: Any) -> Any:
        return jnp.vdot(_lstm(layers, x), dy)

    gradients = jax.jit(jax.vmap(jax.grad(loss)))

    def run() -> None:
        jax.block_until_ready(gradients(layers, dy))

    return run


WORK = {"step": step}
