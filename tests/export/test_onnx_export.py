"""The exported graph in ONNX Runtime against the tick engine, which is tested against the network itself."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evband
import evband.cli
from evband.bands.quantile_sets import LEVELS, QuantileSet
from evband.errors import MissingPackageError
from evband.export.onnx import ensemble_graph, export_onnx, model_graph
from evband.export.onnx_bands import mean_weights, quantile_weights
from evband.features.road_load import grades
from evband.network.ensemble import Ensemble
from evband.network.steps import Steps
from evband.network.tick import Engine
from tiny_car import TINY, drives

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

TARGET = {"y_mean": 4.0, "y_std": 15.0}


def make_params(members: int, layers: int, features: int, hidden: int, road: int, outputs: int, seed: int) -> Any:
    g = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"head_w": (outputs, hidden), "head_b": (outputs,), "nu_raw": ()}
    for k in range(layers):
        shapes[f"w_ih.{k}"] = (4 * hidden, hidden if k else features)
        shapes[f"w_hh.{k}"] = (4 * hidden, hidden)
        shapes[f"bias.{k}"] = (4 * hidden,)
    if road:
        shapes["road_w"] = (road,)
    return {
        name: (g.standard_normal((members, *shape)) / np.sqrt(shape[-1] if shape else 1.0)).astype(np.float32)
        for name, shape in shapes.items()
    }


class Session:
    """An exported graph with the state that its caller carries."""

    def __init__(self, graph: Any, vehicles: int) -> None:
        self.session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        shape = next(i.shape for i in self.session.get_inputs() if i.name == "h")
        self.state = {name: np.zeros((shape[0], shape[1], vehicles, shape[3]), np.float32) for name in ("h", "c")}
        self.names = [output.name for output in self.session.get_outputs()]

    def tick(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        out = dict(zip(self.names, self.session.run(None, {**inputs, **self.state}), strict=True))
        self.state = {"h": out["h_next"], "c": out["c_next"]}
        return out


@settings(max_examples=25, deadline=None)
@given(
    members=st.integers(1, 6),
    layers=st.integers(1, 4),
    features=st.integers(1, 7),
    hidden=st.sampled_from([8, 16, 31, 32]),
    road=st.integers(0, 5),
    head=st.sampled_from(["t", "gaussian", "quantile"]),
    stretch=st.floats(0.5, 2.0),
    standing=st.sampled_from([None, 0.3]),
    vehicles=st.integers(1, 5),
    seed=st.integers(0, 10_000),
)
def test_the_graph_ticks_like_the_engine(
    members: int,
    layers: int,
    features: int,
    hidden: int,
    road: int,
    head: str,
    stretch: float,
    standing: float | None,
    vehicles: int,
    seed: int,
) -> None:
    params = make_params(members, layers, features, hidden, road, 19 if head == "quantile" else 2, seed)
    how = {
        "head": head,
        "steps": Steps((standing, stretch), (0.0,), features - 1) if standing else Steps((stretch,)),
        **TARGET,
    }
    ensemble = Ensemble(params, **how)
    engine, session = Engine(ensemble, vehicles=vehicles), Session(ensemble_graph(ensemble), vehicles)
    g = np.random.default_rng(seed)
    for _ in range(4):
        x, r = (g.standard_normal((vehicles, width)).astype(np.float32) for width in (features, road))
        bands = engine.tick_many(x, r)
        out = session.tick(x=x, **({"r": r} if road else {}), level=np.float32([0.9]))
        for column, name in enumerate(("mean_kw", "lower_kw", "upper_kw", "aleatoric_kw", "epistemic_kw")):
            np.testing.assert_allclose(out[name], bands[:, column], atol=2e-4, rtol=2e-5)
        if head == "quantile":
            np.testing.assert_allclose(out["quantiles_kw"][:, [0, -1]], bands[:, 1:3], atol=1e-4, rtol=1e-5)
        else:
            centre, k = bands[:, :1], np.where(x[:, -1:] < 0, standing or stretch, stretch)
            np.testing.assert_allclose(
                out["location_kw"].T, centre + k * (engine.location - centre), atol=1e-4, rtol=1e-5
            )
            np.testing.assert_allclose(out["scale_kw"].T, k * engine.scale, atol=1e-4, rtol=1e-5)
    for v in range(vehicles):
        for state, expected in zip(("h", "c"), engine.state(v), strict=True):
            np.testing.assert_allclose(session.state[state][:, :, v], expected, atol=1e-5)


@pytest.mark.parametrize("levels", [LEVELS, np.array([0.1, 0.5, 0.9])])
def test_weights_of_quantiles_are_those_of_the_quantile_set(levels: np.ndarray) -> None:
    q = np.sort(np.random.default_rng(0).standard_normal((len(levels), 6)), axis=0)
    expected = QuantileSet(q[None], levels)
    np.testing.assert_allclose(mean_weights(levels) @ q, expected.mean, atol=1e-12)
    for p in (0.01, 0.05, 0.33, 0.5, 0.95, 0.999):
        np.testing.assert_allclose(quantile_weights(levels, p) @ q, expected.quantile(p), atol=1e-12)


def test_the_published_three_quantiles() -> None:
    params, levels = make_params(3, 1, 2, 8, 2, 3, 0), (0.1, 0.5, 0.9)
    ensemble = Ensemble(params, head="quantile", levels=levels, **TARGET)
    engine, session = Engine(ensemble, level=0.8), Session(ensemble_graph(ensemble, ends=False), 1)
    x, r = np.ones((1, 2), np.float32), np.ones((1, 2), np.float32)
    band, out = engine.tick(x[0], r[0]), session.tick(x=x, r=r)
    np.testing.assert_allclose(out["quantiles_kw"][0, [0, 2]], band[1:3], atol=1e-4)
    np.testing.assert_allclose([out["mean_kw"][0], out["aleatoric_kw"][0]], band[[0, 3]], atol=1e-4)


def test_the_file_says_what_it_needs(tmp_path: Path) -> None:
    params = make_params(2, 1, 3, 8, 1, 2, 0)
    export_onnx(tmp_path / "car.onnx", ensemble_graph(Ensemble(params, **TARGET)))
    session = onnxruntime.InferenceSession(tmp_path / "car.onnx", providers=["CPUExecutionProvider"])
    facts = {key: json.loads(value) for key, value in session.get_modelmeta().custom_metadata_map.items()}
    assert facts["y_std"] == 15.0
    assert len(facts["nu"]) == 2
    assert {i.name: i.shape for i in session.get_inputs()}["x"] == ["vehicles", 3]


def test_without_onnx_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"evband\[onnx\]"):
        ensemble_graph(Ensemble(make_params(1, 1, 1, 8, 0, 2, 0)))


def channels(rng: np.random.Generator, seconds: int) -> dict[str, np.ndarray]:
    """Further channels: hills, weather that drifts and is sometimes unknown, torque."""
    ambient = 8.0 + 20.0 * rng.random() + np.cumsum(0.05 * rng.standard_normal(seconds))
    return {
        "elevation_m": 100 + np.cumsum(0.3 * rng.standard_normal(seconds)),
        "ambient_temp_c": [None if 5 <= t < 9 else float(a) for t, a in enumerate(ambient)],
        "motor_torque_nm": 40.0 * rng.standard_normal(seconds),
    }


def with_edges(trips: evband.Trips) -> evband.Trips:
    def edged(trip: evband.Trip) -> evband.Trip:
        before = pl.col("speed_kmh").shift(1).fill_null(pl.col("speed_kmh"))
        end = pl.col("speed_kmh")
        return replace(trip, table=trip.table.with_columns(speed_start_kmh=before, speed_end_kmh=end))

    return evband.Trips(edged(trip) for trip in trips)


def driven(model: evband.PowerModel, trip: evband.Trip, level: float) -> dict[str, np.ndarray]:
    """A whole drive, tick by tick, as a client without Python would feed it (docs/guides/onnx.md)."""
    session = Session(model_graph(model), 1)
    names = [i.name for i in session.session.get_inputs() if i.name not in ("h", "c", "level")]
    table = trip.table
    given = {name: table[name].to_numpy() for name in names if name in table.columns}
    if "ambient_temp_c" in given:
        given["ambient_temp_c"] = table["ambient_temp_c"].fill_nan(None).forward_fill().to_numpy()
    if "past_grade" in names:
        speed = table["speed_kmh"].to_numpy() / 3.6
        height = table["elevation_m"].to_numpy()
        seen = np.isfinite(height).any()
        given["past_grade"] = (
            grades(height, speed, np.zeros(len(speed), bool), 1.0) if seen else np.full(len(speed), np.nan)
        )
    given["seconds_since_start"] = np.arange(len(table), dtype=float)
    given.setdefault("speed_readings", np.ones(len(table)))
    given.setdefault("acceleration_sensed", np.zeros(len(table)))
    given["age_s"] = np.zeros(len(table)) if "age_s" not in table.columns else given["age_s"]
    ticks = [
        session.tick(level=np.float32([level]), **{name: np.float32([given[name][t]]) for name in names})
        for t in range(len(table))
    ]
    return {name: np.concatenate([tick[name] for tick in ticks]) for name in ticks[0] if name.endswith("_kw")
            and ticks[0][name].shape == (1,)}  # fmt: skip


def same_as_predicted(model: evband.PowerModel, trip: evband.Trip, level: float) -> None:
    out, bands = driven(model, trip, level), model.predict(trip)
    lower, upper = bands.interval(level)
    expected = {"mean_kw": bands.mean, "lower_kw": lower, "upper_kw": upper}
    expected |= {"aleatoric_kw": bands.aleatoric, "epistemic_kw": bands.epistemic}
    for name, values in expected.items():
        np.testing.assert_allclose(out[name], values, atol=1e-3, err_msg=f"{name} at {level}")


@pytest.mark.parametrize("method", ["t-anchor", "gaussian-anchor", "quantile-anchor", "t-dropout"])
def test_a_whole_drive_from_channels_equals_predict(method: str) -> None:
    trips = with_edges(drives(9, seconds=120, extra=channels))
    model = evband.PowerModel(**{**TINY, "method": method}).fit(trips)
    assert model.feature_map_.edges
    assert model.feature_map_.fade
    assert model.feature_map_.products
    (trip,) = with_edges(drives(1, seconds=150, seed=4, extra=channels))
    for level in (0.5, 0.9, 0.99):
        same_as_predicted(model, trip, level)


@pytest.mark.parametrize("known", ["all", "none", "ambient_temp_c"])
def test_a_model_of_a_data_sheet_drives_without_python_too(known: str) -> None:
    model = evband.start("Renault Zoe 52 kWh")
    (trip,) = with_edges(drives(1, seconds=60, extra=channels))
    unknown = {"all": (), "none": ("elevation_m", "ambient_temp_c"), "ambient_temp_c": ("elevation_m",)}[known]
    trip = replace(trip, table=trip.table.with_columns(pl.lit(None, pl.Float64).alias(name) for name in unknown))
    same_as_predicted(model, trip, 0.9)


def test_a_model_that_knows_silences_takes_their_age() -> None:
    model = evband.PowerModel(**{**TINY, "bridge_s": 60.0}).fit(with_edges(drives(3, seconds=100)))
    (trip,) = with_edges(drives(1, seconds=60, seed=4))
    aged = replace(trip, table=trip.table.with_columns(age_s=pl.int_range(pl.len()).cast(float) % 7))
    same_as_predicted(model, aged, 0.9)


def test_members_far_apart_have_a_band_too() -> None:
    params = make_params(5, 1, 2, 8, 3, 2, 1)
    params["road_w"] *= 30.0
    ensemble = Ensemble(params, **TARGET)
    engine, session = Engine(ensemble, level=0.8), Session(ensemble_graph(ensemble), 1)
    x, r = np.ones((1, 2), np.float32), np.ones((1, 3), np.float32)
    band, out = engine.tick(x[0], r[0]), session.tick(x=x, r=r, level=np.float32([0.8]))
    np.testing.assert_allclose([out["lower_kw"][0], out["upper_kw"][0]], band[1:3], rtol=1e-4)


def test_the_command_exports_what_predict_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    model = evband.PowerModel(**TINY).fit(drives(3, seconds=100))
    model.save(tmp_path / "car.evband")
    monkeypatch.setattr(
        "sys.argv", ["evband", "export", str(tmp_path / "car.evband"), "-o", str(tmp_path / "car.onnx")]
    )
    with pytest.raises(SystemExit) as done:
        evband.cli.main()
    assert not done.value.code
    assert "3 members" in capsys.readouterr().out
    graph = onnx.load(tmp_path / "car.onnx")
    assert {"speed_kmh", "acceleration_ms2", "level", "h", "c"} <= {i.name for i in graph.graph.input}
    facts = {entry.key: json.loads(entry.value) for entry in graph.metadata_props}
    assert facts["channels"] == ["speed_kmh", "acceleration_ms2"]
    assert facts["hz"] == 1.0
