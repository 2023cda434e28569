"""Ways driven before: found by their speeds, used for energy, and only where they tell something."""

from dataclasses import replace

import numpy as np
import pytest

from evband.energy import Drive, ErrorModel, TripMean, fit_errors, stretch_energy
from evband.energy.range import on_the_way
from evband.energy.ways import LEAST_KM, NEW, PARTS, Ways, fit_ways, similarity, speeds_along
from evband.errors import ArtifactError

HILL_KW = {0: 1.5, 1: -1.5, 2: 0.5}  # what each way takes beyond what its speeds say


def drive_on(way, rng, error_kw=0.0, name="trip"):
    """A way has speed limits of its own at places of its own; what a driver makes of them differs."""
    limits = np.random.default_rng(way).uniform(30.0, 100.0, 12)
    speed = np.concatenate([np.full(int(rng.uniform(55, 65)), v * rng.uniform(0.97, 1.03)) for v in limits])
    speed = np.insert(speed, rng.integers(0, len(speed), 20), 0.0)  # a red light here and there
    n = len(speed)
    power = 10.0 + error_kw + 0.3 * rng.normal() + 2.0 * rng.normal(size=n)
    return Drive(name, 1.0, np.full(n, 10.0), np.full((2, n), 10.0), np.ones(n), np.zeros(n, bool), speed, power)


def drives_on_ways(rng, count=60):
    return [drive_on(way, rng, HILL_KW[way]) for way in rng.integers(0, len(HILL_KW), count)]


def test_a_way_driven_before_takes_what_it_took_and_its_band_is_narrower():
    rng = np.random.default_rng(0)
    errors = fit_errors(drives_on_ways(rng), TripMean())
    plain = replace(errors, ways=Ways())
    for way, error in HILL_KW.items():
        new = drive_on(way, rng, error)
        known, before = (stretch_energy(new, slice(0, len(new)), e) for e in (errors, plain))
        assert known.mean_kwh - before.mean_kwh == pytest.approx(
            (error - errors.bias) * len(new) / 3600.0, abs=0.5 * len(new) / 3600.0
        )
        assert known.scale_kwh < 0.9 * before.scale_kwh


def test_a_new_way_is_as_uncertain_as_ever():
    rng = np.random.default_rng(1)
    errors = fit_errors(drives_on_ways(rng), TripMean())
    new = drive_on(7, rng)
    whole = slice(0, len(new))
    known, plain = stretch_energy(new, whole, errors), stretch_energy(new, whole, replace(errors, ways=Ways()))
    assert known.mean_kwh == pytest.approx(plain.mean_kwh, rel=0.05)
    assert known.scale_kwh == pytest.approx(plain.scale_kwh, rel=0.05)


def test_nothing_is_learned_where_ways_tell_nothing():
    rng = np.random.default_rng(2)
    drives = [drive_on(way, rng) for way in range(30)]  # no way twice
    ways = fit_ways(drives, 0.0)
    assert max(abs(ways.known(drive_on(way, rng)).kwh_per_km).max() for way in range(100, 110)) < 0.02
    short = drive_on(0, rng)
    assert ways.known(short.rows(slice(0, 20))) is NEW


def test_a_hill_is_found_where_it_is():
    rng = np.random.default_rng(6)
    errors = fit_errors([over_a_hill(rng) for _ in range(30)], TripMean())
    new = over_a_hill(rng)
    half = new.between_km(0.5 * new.distance_km[-1], np.inf)
    drive, left = errors.on_its_way(new)
    assert (drive.mean - new.mean)[: half.start].mean() == pytest.approx(4.0, abs=0.5)
    assert (drive.mean - new.mean)[half].mean() == pytest.approx(-4.0, abs=0.5)
    assert (drive.mean - new.mean).mean() == pytest.approx(0.0, abs=0.3)
    assert left.tau2 < errors.tau2


def over_a_hill(rng, kw=4.0):
    """Up in the first half of the way and down in the second: over the whole way it takes nothing."""
    drive = drive_on(0, rng)
    up = drive.distance_km < 0.5 * drive.distance_km[-1]
    return replace(drive, power_kw=drive.power_kw + np.where(up, kw, -kw))


def test_a_route_goes_on_with_what_its_way_takes():
    rng = np.random.default_rng(7)
    errors = fit_errors([over_a_hill(rng) for _ in range(30)], TripMean())
    way = over_a_hill(rng)
    n, cut = len(way), len(way) // 3
    again = [a if a is None or a.ndim == 0 else np.concatenate([a, a[..., cut:]], axis=-1) for a in (way.mean, way.members, way.noise, way.outside, way.speed_kmh, way.power_kw)]  # fmt: skip
    drive, own = on_the_way(errors, Drive("route", 1.0, *again), cut, n)
    alone, left = errors.on_its_way(way)
    np.testing.assert_allclose(drive.mean[:n], alone.mean)
    np.testing.assert_allclose(drive.mean[n:], alone.mean[cut:])
    assert own == left


def test_what_is_left_is_the_posterior_variance_of_a_gaussian_process():
    km, speeds, rng = (10.0, 10.1, 30.0), np.full((3, PARTS), 50.0), np.random.default_rng(3)
    ways = Ways(km, tuple(map(tuple, speeds.tolist())), tuple((e,) * PARTS for e in (0.5, 0.6, -2.0)), 2.0)
    n = 720
    way = Drive("trip", 1.0, np.zeros(n), np.zeros((2, n)), np.ones(n), np.zeros(n, bool), np.full(n, 50.0), rng.normal(size=n))  # fmt: skip
    k = similarity(np.array([10.0]), speeds[:1], np.array(km), speeds)[0]
    joint = np.linalg.inv(similarity(np.array(km), speeds, np.array(km), speeds) + 2.0 * np.eye(3))
    found = ways.known(way)
    assert found.kwh_per_km == pytest.approx(
        [k @ joint @ np.array([0.5, 0.6, -2.0]) * np.sqrt(0.2) / (10.0 / PARTS)] * PARTS
    )
    assert found.left == pytest.approx((3.0 - k @ joint @ k) / 3.0)


def test_speeds_leave_red_lights_out():
    rng = np.random.default_rng(4)
    one = drive_on(0, rng)
    waited = replace_speed(one, np.insert(one.speed_kmh, 300, np.zeros(120)))
    np.testing.assert_allclose(speeds_along(waited), speeds_along(one))


def replace_speed(drive, speed):
    n = len(speed)
    return Drive("trip", 1.0, np.zeros(n), np.zeros((2, n)), np.ones(n), np.zeros(n, bool), speed, np.zeros(n))


def test_a_drive_that_only_crawls_has_a_speed():
    n = 8000
    crawl = Drive("d", 1.0, np.zeros(n), np.zeros((2, n)), np.ones(n), np.zeros(n, bool), np.full(n, 0.8), np.zeros(n))
    assert speeds_along(crawl) == pytest.approx(0.8)


def test_ways_are_saved_with_the_errors_and_earlier_files_know_none():
    errors = fit_errors(drives_on_ways(np.random.default_rng(5)), TripMean())
    saved = errors.to_dict()
    assert errors.ways.km
    assert min(errors.ways.km) >= LEAST_KM
    assert ErrorModel.from_dict(saved) == errors
    del saved["ways"]
    assert ErrorModel.from_dict(saved).ways == Ways()


@pytest.mark.parametrize(
    "change",
    [
        {"km": [1.0]},
        {"km": [0.0, 2.0]},
        {"noise": float("nan")},
        {"noise": 0.0},
        {"speeds": [[1.0], [2.0]]},
        {"errors": None},
        {"errors": [[0.1], [0.2]]},
    ],
)
def test_damaged_ways_are_an_error(change):
    ways = Ways((2.0, 3.0), ((50.0,) * PARTS,) * 2, ((0.1,) * PARTS, (0.2,) * PARTS), 1.0)
    assert Ways.from_dict(ways.to_dict()) == ways
    with pytest.raises(ArtifactError):
        Ways.from_dict(ways.to_dict() | change)


def test_errors_of_whole_trips_in_earlier_files_are_spread_evenly():
    saved = {"km": [2.0], "speeds": [[50.0] * PARTS], "errors": [0.4], "noise": 1.0}
    assert Ways.from_dict(saved).errors == ((0.4 / PARTS,) * PARTS,)
