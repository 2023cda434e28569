"""Kinds of cars: posterior means as in the textbook, none where there is nothing to learn, and no harm from a broken log."""

import numpy as np
import pytest

import evband
from evband.adaptation import Base
from evband.adaptation.groups import kinds_of
from evband.features.wheel import ROADS
from evband.fleet.hierarchy import shrunk
from evband.fleet.prior import Facts, between
from evband.vehicles import Sheet, find


def cars_of(groups: list[np.ndarray], each: int, rng: np.random.Generator) -> tuple[np.ndarray, list[tuple[str]]]:
    """Cars of unit variance about their group's mean, and their kinds."""
    u = np.concatenate([mean + rng.standard_normal((each, *mean.shape)) for mean in groups]).astype(np.float32)
    return u, [(f"make {g}",) for g in range(len(groups)) for _ in range(each)]


def test_a_group_s_shift_is_the_posterior_mean_of_a_normal_model() -> None:
    rng = np.random.default_rng(0)
    t2, each = 0.25, 6
    truth = [t2**0.5 * rng.standard_normal((2, 3)) for _ in range(400)]
    u, kinds = cars_of(truth, each, rng)
    found = shrunk(u, np.ones(len(u)), kinds)
    assert len(found.names) == 400
    raw = u.reshape(400, each, 2, 3).mean(1)
    order = [int(name.split()[1]) for name in found.names]
    gain = (found.shifts * raw[order]).sum() / (raw**2).sum()
    assert gain == pytest.approx(each * t2 / (each * t2 + 1.0), abs=0.05)
    error = ((found.shifts - np.array(truth)[order]) ** 2).mean()
    assert error == pytest.approx(
        t2 / (each * t2 + 1.0), rel=0.1
    )  # the posterior variance, below 1/6 of the plain mean
    np.testing.assert_allclose(found.fitted.reshape(400, each, 2, 3)[order, 0], found.shifts, rtol=1e-6)


def test_groups_that_do_not_differ_hardly_move_and_few_cars_move_less_than_many() -> None:
    rng = np.random.default_rng(1)
    u, kinds = cars_of([np.zeros((4, 5))] * 40, 5, rng)
    assert (shrunk(u, np.ones(len(u)), kinds).fitted ** 2).mean() < 0.02  # a tenth of the means' own 1/5
    sizes = [1, 100, 30, 30]
    u = np.concatenate([np.full((n, 1, 1), value, np.float32) for n, value in zip(sizes, (1, 1, -1, -1), strict=True)])
    u = u + 0.5 * rng.standard_normal(u.shape).astype(np.float32)
    kinds = [(f"model {k}",) for k, n in enumerate(sizes) for _ in range(n)]
    found = dict(zip((s := shrunk(u, np.ones(len(u)), kinds)).names, s.shifts.ravel(), strict=True))
    assert abs(found["model 0"] / u[0, 0, 0]) < found["model 1"] / u[1:101].mean() < 1.0


def test_a_finer_level_learns_what_the_coarser_left() -> None:
    rng = np.random.default_rng(2)
    body = {"suv": 1.0, "car": -1.0}
    kinds = [(f"body {b}", f"make {b}{m}") for b in body for m in range(8) for _ in range(20)]
    u = np.array([body[b.split()[1]] + (0.5 if m.endswith("0") else 0.0) for b, m in kinds], np.float32)[:, None, None]
    found = shrunk(u + 0.3 * rng.standard_normal(u.shape).astype(np.float32), np.ones(len(u)), kinds)
    shifts = dict(zip(found.names, found.shifts.ravel(), strict=True))
    assert shifts["body suv"] == pytest.approx(1.06, abs=0.1)
    assert shifts["make suv0"] == pytest.approx(0.44, abs=0.12)
    assert abs(shifts["make suv3"]) < 0.15


def fleet(ground: Base, shift: np.ndarray, rng: np.random.Generator) -> list[Facts]:
    """Twenty cars each of two makes, one of them off by `shift` in units of the spread."""
    views = ground.views
    mean = np.concatenate([views["road_w"], views["head_w"][:, 0]], 1)
    found = []
    for k in range(40):
        u = rng.standard_normal(mean.shape) + (shift if k % 2 else 0.0)
        w = mean + np.einsum("mpq,mq->mp", ground.root, u)
        found.append(Facts(w.astype(np.float32), 0.0, 0.3, ("body car", f"make {k % 2}", "")))
    return found


def test_a_broken_car_moves_neither_the_prior_nor_its_group() -> None:
    ground = Base.load()
    shift = np.zeros(ground.root.shape[-1])
    shift[:4] = 3.0
    cars = fleet(ground, shift, np.random.default_rng(3))
    broken = cars.copy()
    broken[3] = broken[3]._replace(weights=broken[3].weights + 100.0 * (cars[3].weights - cars[1].weights))
    good, bad = between(ground, cars), between(ground, broken)
    assert good.groups.names == bad.groups.names == ("make 0", "make 1")
    np.testing.assert_allclose(np.trace(bad.spread[0]), np.trace(good.spread[0]), rtol=0.3)
    np.testing.assert_allclose(np.trace(good.spread[0]), np.trace(ground.spread[0]), rtol=0.3)
    off = np.linalg.solve(ground.root, (bad.groups.shifts - good.groups.shifts)[..., None])[..., 0]
    assert np.abs(off[:, :, :4].mean(1)).max() < 0.2
    apart = np.linalg.solve(ground.root, (good.groups.shifts[1] - good.groups.shifts[0])[..., None])[..., 0].mean(0)
    assert apart[:4] == pytest.approx(3.0, abs=0.6)
    assert np.abs(apart[4:]).mean() < 0.3


def test_a_car_starts_as_its_kind_does_and_a_base_keeps_its_groups(tmp_path) -> None:
    ground, zoe = Base.load(), find("Renault Zoe 52 kWh")
    assert kinds_of(zoe) == ("body car", "make Renault", f"model Renault {zoe.model}")
    rng, cars = np.random.default_rng(4), []
    for k, facts in enumerate(fleet(ground, np.eye(ground.root.shape[-1])[0] * 3.0, rng)):
        cars.append(facts._replace(kinds=("body car", "make Renault" if k % 2 else "make Other", "")))
    own = between(ground, cars)
    own.save(tmp_path / "own.evband")
    again = Base.load(tmp_path / "own.evband")
    assert again.groups.names == own.groups.names == ("make Other", "make Renault")
    np.testing.assert_allclose(again.groups.shifts, own.groups.shifts, atol=2e-3)
    assert again.digest != ground.digest
    other = Sheet.from_dict(zoe.to_dict() | {"make": "Nobody"})
    a, b = (evband.start(sheet, base=tmp_path / "own.evband") for sheet in (zoe, other))
    first = a.architecture_.unpack(a.theta_)["road_w"] - b.architecture_.unpack(b.theta_)["road_w"]
    np.testing.assert_allclose(first, again.groups.shifts[1][:, : len(ROADS)], atol=1e-4)
