"""The paper's way: Keras on TensorFlow, one model per member, member after member."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
import tensorflow as tf

Shape = dict[str, int]
VERSION = f"keras {keras.__version__}, tensorflow {tf.__version__}"
tf.config.threading.set_intra_op_parallelism_threads(len(os.sched_getaffinity(0)))
tf.config.threading.set_inter_op_parallelism_threads(len(os.sched_getaffinity(0)))


def _layers(shape: Shape, all_steps: bool) -> list[Any]:
    last = shape["layers"] - 1
    return [keras.layers.LSTM(shape["hidden"], return_sequences=all_steps or k < last) for k in range(shape["layers"])]


def _inputs(shape: Shape) -> Any:
    rng = np.random.default_rng(0)
    return tf.constant(rng.standard_normal((shape["windows"], shape["steps"], shape["features"]), np.float32))


def step(shape: Shape) -> Callable[[], None]:
    """Forward and backward of every member: the gradient of a weighted sum of all hidden states."""
    x, rng = _inputs(shape), np.random.default_rng(1)
    dy = [
        tf.constant(rng.standard_normal((shape["windows"], shape["steps"], shape["hidden"]), np.float32))
        for _ in range(shape["members"])
    ]

    def gradients_of(model: Any) -> Any:
        @tf.function
        def gradients(x: Any, dy: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(x, training=True) * dy)
            return tape.gradient(loss, model.trainable_variables)

        return gradients

    models = [keras.Sequential(_layers(shape, all_steps=True)) for _ in dy]
    for model in models:
        model.build(x.shape)
    functions = [gradients_of(model) for model in models]

    def run() -> None:
        for gradients, d in zip(functions, dy, strict=True):
            gradients(x, d)[0].numpy()

    return run


def one_target(shape: Shape) -> Callable[[], None]:
    """One optimiser step of one member on windows with one target each: anchored Student-t, Adam."""
    x = _inputs(shape)
    y = tf.constant(np.random.default_rng(1).standard_normal(shape["windows"]).astype(np.float32))
    model = keras.Sequential([*_layers(shape, all_steps=False), keras.layers.Dense(2)])
    model.build(x.shape)
    nu_raw = tf.Variable(0.0)
    weights = [*(w.value for w in model.trainable_variables), nu_raw]
    anchors = [tf.random.normal(w.shape, stddev=0.1) for w in weights]
    optimiser = keras.optimizers.Adam(1e-3)
    optimiser.build(weights)

    @tf.function
    def train() -> Any:
        with tf.GradientTape() as tape:
            location, scale = tf.unstack(model(x, training=True), axis=1)
            scale, nu = tf.nn.softplus(scale) + 1e-4, 3.0 + tf.nn.softplus(nu_raw)
            constant = 0.5 * tf.math.log(nu * math.pi) + tf.math.lgamma(nu / 2) - tf.math.lgamma((nu + 1) / 2)
            nll = tf.math.log(scale) + constant + (nu + 1) / 2 * tf.math.log1p(((y - location) / scale) ** 2 / nu)
            prior = tf.add_n([tf.reduce_sum((w - a) ** 2) for w, a in zip(weights, anchors, strict=True)])
            loss = tf.reduce_mean(nll) + prior / (2 * 0.01 * 7651)
        optimiser.apply(tape.gradient(loss, weights), weights)
        return loss

    def run() -> None:
        train().numpy()

    return run


WORK = {"step": step, "one_target": one_target}
