"""What the method claims, on small synthetic drives: the printed objective's failure, and doubt that data removes."""

import numpy as np

from evband.model import PowerModel
from tiny_car import TINY, drives


def r2(model, trips):
    bands = model.predict(trips)
    return 1 - np.mean((bands.power_kw - bands.mean) ** 2) / np.var(bands.power_kw)


def test_the_printed_objective_learns_nothing_and_the_posterior_one_does():
    """Without 1/N the prior has variance sigma^2/N, which no data of one drive can move."""
    train, test = drives(4, seconds=400), drives(2, seconds=400, seed=1)
    paper = {**TINY, "preset": "paper", "layers": 1, "members": 2, "epochs": 60, "rate": 2e-2}
    literal = PowerModel(**paper, prior_scale="literal").fit(train)
    posterior = PowerModel(**paper, prior_scale="posterior").fit(train)
    assert abs(r2(literal, test)) < 0.1
    assert r2(posterior, test) > 0.5


def test_epistemic_doubt_shrinks_as_data_grows():
    """1x, 4x and 16x the data, on the same held-out drives."""
    test = drives(2, seconds=300, seed=7)
    doubt = []
    for times in (1, 4, 16):
        model = PowerModel(
            **{**TINY, "members": 6, "epochs": 25, "calibrate": False, "early_stop": False, "hinges": False}
        ).fit(drives(2 * times, seconds=150))
        doubt.append(float(np.sqrt(np.mean(model.predict(test).epistemic ** 2))))
    assert doubt[0] > doubt[1] > doubt[2]


def test_doubt_is_larger_on_roads_never_driven():
    """City training, motorway rows: at least twice the epistemic deviation."""
    model = PowerModel(**{**TINY, "members": 6, "epochs": 10}).fit(drives(9, seconds=150, top_ms=14))
    city = model.predict(drives(2, seconds=200, seed=5, top_ms=14))
    motorway = model.predict(drives(2, seconds=200, seed=5, top_ms=35))
    fast = motorway.speed_kmh > 90
    assert motorway.epistemic[fast].mean() > 2 * city.epistemic.mean()
    assert motorway.outside[fast].all()


def test_calibrated_bands_cover_what_they_say():
    model = PowerModel(**{**TINY, "members": 5, "epochs": 20, "hidden": 16}).fit(drives(15, seconds=200))
    bands = model.predict(drives(12, seconds=200, seed=11))
    lower, upper = bands.interval(0.9)
    inside = ((bands.power_kw >= lower) & (bands.power_kw <= upper))[~bands.warmup]
    assert 0.86 < inside.mean() < 0.97  # tiny members leave much to doubt, which their out-of-bag parts lack


def test_aleatoric_deviation_tracks_noise_that_grows_with_speed():
    """Small twin of benchmarks/simulated/noise.py."""

    def noisy(count, seed):
        from evband.trips import Trip, Trips

        rng, out = np.random.default_rng(seed), []
        for trip in drives(count, seconds=300, seed=seed, noise_kw=0.0):
            scale = 0.2 + 0.05 * trip.table["speed_kmh"].to_numpy() / 3.6
            table = trip.table.with_columns(power_kw=trip.table["power_kw"] + scale * rng.standard_t(5, len(trip)))
            out.append((Trip(trip.trip_id, table, 1.0), scale))
        return Trips(t for t, _ in out), np.concatenate([s for _, s in out])

    train, _ = noisy(12, 0)
    test, scale = noisy(3, 1)
    model = PowerModel(**{**TINY, "members": 4, "epochs": 20, "hidden": 16, "calibrate": False}).fit(train)
    bands = model.predict(test)
    from scipy.stats import spearmanr

    assert spearmanr(bands.aleatoric, scale).statistic > 0.8
    ratio = np.median(bands.members.s.mean(0) / scale)
    assert 0.8 < ratio < 1.25
