"""The tick engine against the reference network in float64 and quantiles found by SciPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.runtime import _nrt_python, rtsys
from scipy.optimize import brentq
from scipy.special import stdtr, stdtrit

import evband
from evband.bands.mixtures import GaussianMixture, LocationScale, Mixture, StudentMixture
from evband.bands.quantile_sets import QuantileSet
from evband.calibration import Calibration
from evband.errors import SettingsError
from evband.network.dropout import fold_masks
from evband.network.ensemble import Ensemble
from evband.network.kernels.vector import LANES, load, store, tanh_ratio
from evband.network.lstm import LayerWeights, Masks, ensemble_lstm
from evband.network.standard import Student
from evband.network.steps import Steps
from evband.network.tick import Engine, engine_of
from evband.network.tick.mixture import quantile, survival, tail_cubics

Y_MEAN, Y_STD = 4.0, 15.0


def make_params(
    members: int = 5,
    layers: int = 2,
    features: int = 4,
    hidden: int = 12,
    road: int = 3,
    outputs: int = 2,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    g = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {}
    for k in range(layers):
        shapes[f"w_ih.{k}"] = (4 * hidden, hidden if k else features)
        shapes[f"w_hh.{k}"] = (4 * hidden, hidden)
        shapes[f"bias.{k}"] = (4 * hidden,)
    shapes |= {"head_w": (outputs, hidden), "head_b": (outputs,), "nu_raw": ()}
    if road:
        shapes["road_w"] = (road,)
    return {
        name: (g.standard_normal((members, *shape)) / np.sqrt(shape[-1] if shape else 1.0)).astype(np.float32)
        for name, shape in shapes.items()
    }


def whole_trip(
    params: dict[str, np.ndarray], head: str, x: np.ndarray, r: np.ndarray, masks: Masks | None = None
) -> Mixture:
    """The predictive distribution of a trip in one pass, in float64."""
    p = {name: torch.tensor(value, dtype=torch.float64) for name, value in params.items()}
    layers = [LayerWeights(p[f"w_ih.{k}"], p[f"w_hh.{k}"], p[f"bias.{k}"]) for k in range(10) if f"w_ih.{k}" in p]
    inputs = torch.tensor(x, dtype=torch.float64)[None, :, None]
    h, _ = ensemble_lstm(inputs, layers, masks=masks, backend="reference")
    raw = torch.einsum("mth,moh->mto", h[:, :, 0], p["head_w"]) + p["head_b"][:, None]
    path = (torch.tensor(r, dtype=torch.float64) @ p["road_w"].T).T.numpy() if "road_w" in p else 0.0
    if head == "quantile":
        path = path[:, None] if isinstance(path, np.ndarray) else path
        return QuantileSet(Y_MEAN + Y_STD * (np.sort(raw.numpy().transpose(0, 2, 1), axis=1) + path))
    mu = Y_MEAN + Y_STD * (raw[..., 0].numpy() + path)
    s = Y_STD * (np.logaddexp(0, raw[..., 1].numpy()) + 1e-4)
    return GaussianMixture(mu, s) if head == "gaussian" else StudentMixture(mu, s, degrees(params))


def degrees(params: dict[str, np.ndarray]) -> np.ndarray:
    return 3.0 + np.logaddexp(0, params["nu_raw"].astype(np.float64))


def bands_of(mixture: Mixture, level: float = 0.9) -> np.ndarray:
    """[time, 5], the band by bisection on SciPy's CDF where the distribution is a mixture of t's."""
    ends = []
    for p in (0.5 - level / 2, 0.5 + level / 2):
        if isinstance(mixture, LocationScale):
            nu = mixture.standard.parameters["nu"]
            ends.append([scipy_quantile(p, mixture.mu[:, t], mixture.s[:, t], nu) for t in range(len(mixture))])
        else:
            ends.append(mixture.quantile(p))
    return np.stack([mixture.mean, *ends, np.sqrt(mixture.aleatoric), np.sqrt(mixture.epistemic)], 1)


def scipy_quantile(p: float, mu: np.ndarray, s: np.ndarray, nu: np.ndarray) -> float:
    ends = mu + s * stdtrit(nu, p)
    if ends.max() - ends.min() < 1e-12:
        return float(ends[0])
    return float(brentq(lambda q: stdtr(nu, (q - mu) / s).mean() - p, ends.min() - 1e-9, ends.max() + 1e-9, xtol=1e-12))


def drive(steps: int, features: int, road: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    g = np.random.default_rng(seed)
    return g.standard_normal((steps, features)).astype(np.float32), g.standard_normal((steps, road)).astype(np.float32)


def ticks(engine: Engine, x: np.ndarray, r: np.ndarray, vehicle: int = 0) -> np.ndarray:
    return np.array([engine.tick(a, b, vehicle).copy() for a, b in zip(x, r, strict=True)])


def make_engine(params: dict[str, np.ndarray], **settings: Any) -> Engine:
    run = {name: settings.pop(name) for name in ("level", "vehicles", "precision") if name in settings}
    return Engine(Ensemble(params, y_mean=Y_MEAN, y_std=Y_STD, **settings), **run)


@settings(max_examples=40, deadline=None)
@given(
    members=st.integers(1, 7),
    layers=st.integers(1, 4),
    features=st.integers(1, 9),
    hidden=st.sampled_from([8, 12, 16, 31, 32, 48, 128]),
    road=st.integers(0, 6),
    head=st.sampled_from(["t", "gaussian", "quantile"]),
    level=st.sampled_from([0.5, 0.9, 0.99]),
    stretch=st.floats(0.5, 2.0),
    seed=st.integers(0, 10_000),
)
def test_ticks_equal_the_whole_trip(
    members: int, layers: int, features: int, hidden: int, road: int, head: str, level: float, stretch: float, seed: int
) -> None:
    params = make_params(members, layers, features, hidden, road, 19 if head == "quantile" else 2, seed)
    x, r = drive(6, features, road, seed + 1)
    expected = bands_of(whole_trip(params, head, x, r).stretched(stretch), level)
    got = ticks(make_engine(params, head=head, level=level, steps=Steps((stretch,))), x, r)
    np.testing.assert_allclose(got, expected, atol=1e-5 * Y_STD, rtol=0)


@settings(max_examples=20, deadline=None)
@given(
    vehicles=st.integers(1, 120),
    hidden=st.sampled_from([8, 32, 40]),
    head=st.sampled_from(["t", "quantile"]),
    seed=st.integers(0, 10_000),
)
def test_a_fleet_equals_its_vehicles_one_by_one(vehicles: int, hidden: int, head: str, seed: int) -> None:
    params = make_params(hidden=hidden, outputs=19 if head == "quantile" else 2, seed=seed)
    fleet, single = (make_engine(params, head=head, vehicles=vehicles) for _ in range(2))
    g = np.random.default_rng(seed)
    for step in range(3):
        who = g.permutation(vehicles)[: g.integers(1, vehicles + 1)]  # some of them, in any order
        x, r = drive(len(who), 4, 3, seed + step)
        got = fleet.tick_many(x, r, np.empty((len(who), 5)), who)
        expected = np.array([single.tick(a, b, v).copy() for a, b, v in zip(x, r, who, strict=True)])
        np.testing.assert_allclose(got, expected, atol=1e-6 * Y_STD, rtol=0)
    for v in range(vehicles):
        np.testing.assert_allclose(fleet.state(v), single.state(v), atol=1e-6)
        np.testing.assert_allclose(fleet.location[v], single.location[v], atol=1e-6 * Y_STD)


def test_all_vehicles_by_default() -> None:
    params = make_params()
    engine, (x, r) = make_engine(params, vehicles=20), drive(20, 4, 3)
    bands = engine.tick_many(x, r)
    assert bands.shape == (20, 5)
    np.testing.assert_allclose(bands[11], make_engine(params).tick(x[11], r[11]), atol=1e-5)


def test_a_state_resumes_and_a_reset_begins_anew() -> None:
    params, (x, r) = make_params(), drive(12, 4, 3)
    engine = make_engine(params, vehicles=2)
    straight = ticks(engine, x, r)
    other = make_engine(params)
    ticks(other, x[:5], r[:5])
    engine.set_state(1, *other.state(0))
    np.testing.assert_allclose(ticks(engine, x[5:], r[5:], vehicle=1), straight[5:], atol=1e-9)
    engine.reset(0)
    np.testing.assert_allclose(ticks(engine, x, r), straight, atol=1e-9)


def test_dropout_masks_fold_into_the_weights() -> None:
    params, (x, r) = make_params(layers=2), drive(5, 4, 3)
    g = np.random.default_rng(3)
    draws = {n: (g.random((5, n)) < 0.8) / 0.8 for n in (4,)} | {
        "h": [(g.random((5, 12)) < 0.8) / 0.8 for _ in range(4)]
    }
    enter, past, output = [draws[4], draws["h"][0]], draws["h"][1:3], draws["h"][3]
    masks = Masks(
        *(tuple(torch.tensor(m)[:, None] for m in group) for group in (enter, past)), torch.tensor(output)[:, None]
    )
    expected = bands_of(whole_trip(params, "t", x, r, masks))
    got = ticks(make_engine(fold_masks(params, masks.map(np.asarray))), x, r)
    np.testing.assert_allclose(got, expected, atol=1e-5 * Y_STD)


def logged(trip_id: str, seed: int, rows: int = 200) -> pl.DataFrame:
    g = np.random.default_rng(seed)
    speed = np.where(np.arange(rows) % 60 < 10, 0.0, np.clip(50 + np.cumsum(g.standard_normal(rows)), 0, 130))
    acceleration = np.gradient(speed / 3.6)
    power = 0.1 * speed + 1.6 * acceleration * speed / 3.6 + g.standard_normal(rows)
    return pl.DataFrame(
        {
            "trip_id": [trip_id] * rows,
            "time_s": np.arange(rows, dtype=float),
            "speed_kmh": speed,
            "acceleration_ms2": acceleration,
            "power_kw": power,
        }
    )


@pytest.mark.parametrize("road", [True, False])
@pytest.mark.parametrize("method", ["t-anchor", "gaussian-anchor", "quantile-anchor", "t-dropout"])
def test_the_engine_of_a_fitted_model_agrees_with_its_predict(method: str, road: bool) -> None:
    shape = {"members": 3, "layers": 2, "hidden": 12, "road_load": road}
    model = evband.PowerModel(method, epochs=1, calibrate=False, device="cpu", **shape)
    model.fit(pl.concat([logged("a", 0), logged("b", 1)]))
    model.calibration_ = Calibration(1.3, 0.4)
    trips = evband.Trips.from_frame(logged("c", 2)).on_grid(model.settings_.hz)
    bands, rows = model.predict(trips), model.feature_map_.transform(trips[0])
    assert set(bands.stretch) == {1.3, 0.4}
    expected = np.stack([bands.mean, *bands.interval(0.8), bands.aleatoric, bands.epistemic], 1)
    got = ticks(engine_of(model, level=0.8), rows.x, rows.r)
    np.testing.assert_allclose(got, expected, atol=1e-5 * model.feature_map_.y_std)


@pytest.mark.parametrize("head", ["t", "quantile"])
def test_a_standing_vehicle_has_a_stretch_of_its_own(head: str) -> None:
    params, (x, r) = make_params(outputs=19 if head == "quantile" else 2), drive(12, 4, 3)
    stands = x[:, 2] < 0.25
    assert 0 < stands.sum() < len(x)
    engine = make_engine(params, head=head, steps=Steps((0.3, 1.2), (0.25,), 2))
    expected = bands_of(whole_trip(params, head, x, r).stretched(np.where(stands, 0.3, 1.2)))
    np.testing.assert_allclose(ticks(engine, x, r), expected, atol=1e-5 * Y_STD)


def test_a_fixed_nu_and_a_new_level() -> None:
    params, (x, r) = make_params(), drive(4, 4, 3)
    engine = make_engine(params, nu=5.0)
    mixture = whole_trip(params, "t", x, r)
    assert isinstance(mixture, StudentMixture)
    mixture = StudentMixture(mixture.mu, mixture.s, np.full(5, 5.0))
    np.testing.assert_allclose(ticks(engine, x, r), bands_of(mixture), atol=1e-5 * Y_STD)
    engine = make_engine(params, nu=5.0, steps=Steps((1.5,)))
    engine.level = 0.6
    np.testing.assert_allclose(ticks(engine, x, r), bands_of(mixture.stretched(1.5), 0.6), atol=1e-5 * Y_STD)


def test_reduced_precision_costs_under_a_thousandth_of_the_error() -> None:
    params, (x, r) = make_params(members=10, layers=4, hidden=32), drive(400, 4, 3)
    full, reduced = ticks(make_engine(params), x, r), ticks(make_engine(params, precision="reduced"), x, r)
    assert np.abs(full - reduced).max() < 1e-3 * Y_STD
    power = full[:, 0] + 0.1 * Y_STD * np.random.default_rng(0).standard_normal(
        400
    )  # a model far better than real ones
    error = [np.sqrt(np.mean((power - bands[:, 0]) ** 2)) for bands in (full, reduced)]
    assert abs(error[1] / error[0] - 1) < 1e-3


def test_inputs_that_are_not_numbers_leave_a_vehicle_as_it_was() -> None:
    engine, (x, r) = make_engine(make_params(), vehicles=3), drive(3, 4, 3)
    engine.tick_many(x, r)
    before = engine.state(1)
    x[1, 2] = np.nan
    bands = engine.tick_many(x, r)
    assert np.isnan(bands[1]).all()
    assert np.isfinite(bands[[0, 2]]).all()
    np.testing.assert_array_equal(engine.state(1), before)
    r[2, 0] = np.inf
    assert np.isnan(engine.tick(x[2], r[2], 2)).all()


def test_a_tick_allocates_no_working_memory() -> None:
    """Numba wraps each array argument of a call; nothing else is allocated, however many vehicles tick."""
    engine, (x, r) = make_engine(make_params(), vehicles=99), drive(99, 4, 3)
    engine.tick(x[0], r[0])
    _nrt_python.memsys_enable_stats()
    counts = [rtsys.get_allocation_stats().alloc]
    for tick in (lambda: engine.tick(x[0], r[0]), lambda: engine.tick_many(x, r)):
        tick()
        counts.append(rtsys.get_allocation_stats().alloc)
    assert counts[1] - counts[0] == counts[2] - counts[1] < 32


@pytest.mark.parametrize("nu", [2.05, 3.0, 4.7, 30.0, np.inf])
def test_the_tabulated_tail(nu: float) -> None:
    cubics = tail_cubics(Student([nu]))
    z = np.concatenate([np.linspace(-12, 12, 2001), np.geomspace(12, 1e6, 200)])
    found = np.array([survival(q, np.zeros(1), np.ones(1), cubics) for q in z])
    np.testing.assert_allclose(found[:, 0], stdtr(nu, -z), atol=2e-8)
    slope = (stdtr(nu, z + 1e-5) - stdtr(nu, z - 1e-5)) / 2e-5
    np.testing.assert_allclose(found[:, 1], slope, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    members=st.integers(1, 30),
    apart=st.sampled_from([0.0, 0.1, 3.0, 1e3]),
    level=st.sampled_from([0.2, 0.9, 0.98]),
    guess=st.floats(-1e4, 1e4),
)
def test_quantiles_from_any_guess(seed: int, members: int, apart: float, level: float, guess: float) -> None:
    g = np.random.default_rng(seed)
    nu, mu, s = 3 + g.exponential(3, members), apart * g.standard_normal(members), np.exp(g.standard_normal(members))
    standard, cubics = Student(nu).quantile([0.5 - level / 2, 0.5 + level / 2]).T, tail_cubics(Student(nu))
    for end, p in enumerate((0.5 - level / 2, 0.5 + level / 2)):
        q = quantile(1 - p, guess, s.min(), mu, s, 1 / s, standard[end].copy(), cubics)
        assert abs(stdtr(nu, (q - mu) / s).mean() - p) < 5e-8
        if apart < 1e3:  # between modes a thousand scales apart the quantile itself is undetermined
            assert abs(q - scipy_quantile(p, mu, s, nu)) < 1e-5 * s.mean()


@pytest.mark.parametrize(
    ("mu", "s"),
    [
        ([-6.0, -24.0, -1.0, 5.0, -11.0], [5.0, 6.0, 1.0, 8.0, 7.0]),
        ([16.0, -13.0, -25.0, 11.0, -5.0, 6.0], [5.0, 7.0, 6.0, 1.0, 7.0, 5.0]),
    ],
)
def test_newton_does_not_cross_the_root_for_ever(mu: list[float], s: list[float]) -> None:
    """One sharp member among wide ones: plain Newton jumps to and fro between two points, the bracket around both."""
    m, scale, nu = np.array(mu), np.array(s), np.full(len(mu), 4.0)
    standard = Student(nu)
    ends = standard.quantile([0.75])[:, 0].copy()
    found = quantile(0.25, m.mean(), 1.0, m, scale, 1 / scale, ends, tail_cubics(standard))
    assert abs(stdtr(nu, (found - m) / scale).mean() - 0.75) < 1e-7
    for p in np.linspace(0.02, 0.98, 25):
        exact = StudentMixture(m[:, None], scale[:, None], nu).quantile(p)[0]
        assert abs(stdtr(nu, (exact - m) / scale).mean() - p) < 1e-9


@njit
def _tanh(x: np.ndarray, out: np.ndarray) -> None:
    for j in range(0, len(x), LANES):
        top, bottom = tanh_ratio(load(x, j))
        store(out, j, top / bottom)


def test_tanh_to_float32_rounding() -> None:
    x = np.concatenate([np.linspace(-12, 12, 16 * 4000), np.array([-1e30, 1e30, 0, 1e-30] * 4)]).astype(np.float32)
    out = np.empty_like(x)
    _tanh(x, out)
    assert np.abs(out - np.tanh(x.astype(np.float64))).max() < 4e-7


def test_code_is_compiled_anew_when_a_neighbour_changes(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(
        "import inner\nfrom evband.compiled import compiled\n@compiled()\ndef call():\n    return inner.value()\n"
    )
    for value in (1, 22):
        (tmp_path / "inner.py").write_text(
            f"from evband.compiled import compiled\n@compiled()\ndef value():\n    return {value}\n"
        )
        command = [sys.executable, "-c", "import caller; print(caller.call())"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert int(done.stdout) == value


def test_torch_stays_out() -> None:
    code = "import sys, evband.network.tick; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_errors_say_what_is_wrong() -> None:
    params, (x, r) = make_params(), drive(2, 4, 3)
    with pytest.raises(SettingsError, match="precision"):
        make_engine(params, precision="half")
    with pytest.raises(SettingsError, match="head"):
        make_engine(params, head="normal")
    with pytest.raises(SettingsError, match="outputs"):
        make_engine(params, head="quantile")
    with pytest.raises(SettingsError, match="at least one vehicle"):
        make_engine(params, vehicles=0)
    with pytest.raises(SettingsError, match="level"):
        make_engine(params, level=1.0)
    with pytest.raises(SettingsError, match=r"w_hh\.1"):
        make_engine({**params, "w_hh.1": params["w_hh.1"][:, :, :-1]})
    with pytest.raises(SettingsError, match="no LSTM"):
        make_engine({})
    engine = make_engine(params, vehicles=2)
    with pytest.raises(SettingsError, match="4 inputs and 3 road-load"):
        engine.tick(x[0, :1], r[0])
    with pytest.raises(SettingsError, match="numbered 0 to 1"):
        engine.tick(x[0], r[0], 2)
    with pytest.raises(SettingsError, match="appears once"):
        engine.tick_many(x, r, vehicles=[0, 0])
    with pytest.raises(SettingsError, match="numbered 0 to 1"):
        engine.tick_many(x, r, vehicles=[0, 2])
    with pytest.raises(SettingsError, match=r"x \[2, 4\]"):
        engine.tick_many(x[:1], r)
    with pytest.raises(SettingsError, match="contiguous"):
        engine.tick_many(x, r, np.empty((2, 4)))
    with pytest.raises(SettingsError, match="stretch"):
        make_engine(params, steps=Steps((0.0,)))
    with pytest.raises(SettingsError, match="state"):
        engine.set_state(0, np.zeros((1, 1, 1)), np.zeros((1, 1, 1)))
