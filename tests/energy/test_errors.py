"""The error model: variance at every horizon, against arch, block resampling and drives whose truth is known."""

import json
from dataclasses import replace

import numpy as np
import pytest
from arch.bootstrap import MovingBlockBootstrap
from arch.covariance.kernel import Bartlett
from scipy.signal import lfilter
from scipy.special import stdtrit

from evband.energy import Drive, ErrorModel, SoFar, TripMean, fit_errors, stretch_energy
from evband.energy.errors import phi
from evband.energy.fitting import steadied, windows
from evband.energy.mean import TripErrors, fit_mean
from evband.errors import ArtifactError, TripsError


def drive(error, name="trip", noise=None, members=None, speed=60.0):
    """Predicted 10 kW everywhere, measured 10 kW + error."""
    n = len(error)
    return Drive(
        name, 1.0, np.full(n, 10.0), np.full((2, n), 10.0) if members is None else members,
        np.ones(n) if noise is None else noise, np.zeros(n, bool), np.full(n, speed), 10.0 + error,
    )  # fmt: skip


def errors_of_drives(rng, count, tau=0.5, slow=0.8, length=80.0, fast=20.0, seconds=1200, bias=0.2):
    rho = np.exp(-1.0 / length)
    out = []
    for _ in range(count):
        n = int(seconds * rng.uniform(0.7, 1.3))
        u = lfilter([np.sqrt(1 - rho**2)], [1, -rho], rng.normal(size=n + 1000))[1000:] * slow
        out.append(bias + tau * rng.normal() + u + np.sqrt(fast) * rng.normal(size=n))
    return out


def test_variance_at_a_horizon_is_the_newey_west_long_run_variance():
    rng = np.random.default_rng(0)
    error = lfilter([1.0], [1.0, -0.9], rng.normal(size=40_000))
    for rows in (20, 80):
        ours = rows * np.mean(windows(drive(error), rows).error ** 2)
        oracle = float(Bartlett(error[:, None], bandwidth=rows - 1, center=False).cov.long_run.squeeze())
        assert ours == pytest.approx(oracle, rel=0.02)


def test_variance_of_a_sum_agrees_with_block_resampling():
    rng = np.random.default_rng(1)
    rho = np.exp(-1 / 20.0)
    error = lfilter([np.sqrt(1 - rho**2)], [1, -rho], rng.normal(size=6000))
    model = ErrorModel(0.0, 0.0, 1.0, 20.0, 0.0, 0.0, 1.0, 1.0, 100)
    sums = MovingBlockBootstrap(200, error, seed=1).apply(np.mean, 400)
    assert np.sqrt(model.of_mean(6000.0)) == pytest.approx(float(np.std(sums)), rel=0.15)


def test_phi_is_the_variance_of_a_mean():
    lag = np.abs(np.subtract.outer(np.arange(500), np.arange(500)))
    assert phi(500 / 60.0) == pytest.approx(np.exp(-lag / 60.0).mean(), rel=1e-3)
    assert phi(0.0) == pytest.approx(1.0, rel=1e-3)
    assert phi(1e6) == pytest.approx(2e-6, rel=1e-3)


def test_parts_are_found():
    rng = np.random.default_rng(2)
    model = fit_errors([drive(e) for e in errors_of_drives(rng, 300)])
    truth = ErrorModel(0.2, 0.25, 0.64, 80.0, 20.0, 0.0, 1.0, 1.0, 300)
    assert model.bias == pytest.approx(0.2, abs=0.1)
    for seconds in (60.0, 300.0, 1200.0):  # the t's 90 % band is as wide as the bell curve's that was drawn from
        half = stdtrit(model.dof, 0.95) * np.sqrt(model.of_mean(seconds))
        assert half == pytest.approx(1.645 * np.sqrt(truth.of_mean(seconds)), rel=0.2)


def test_without_a_slow_error_it_is_the_formula_of_the_method():
    rng = np.random.default_rng(3)
    error = errors_of_drives(rng, 200, tau=0.4, slow=0.0, fast=30.0, bias=0.0)
    model = fit_errors([drive(e) for e in error])
    means = np.array([e.mean() for e in error])
    seconds = np.array([len(e) for e in error])
    within = np.mean(30.0 / seconds)
    half = stdtrit(model.dof, 0.95) * np.sqrt([model.tau2, model.of_mean(900.0)])
    assert half[0] == pytest.approx(1.645 * np.sqrt(means.var(ddof=1) - within), rel=0.2)
    assert half[1] == pytest.approx(1.645 * np.sqrt(0.16 + 30.0 / 900), rel=0.15)


def test_bands_cover_new_trips_and_stretches_where_independent_summing_does_not():
    rng = np.random.default_rng(4)
    covered = {"trip": [], "stretch": [], "independent": []}
    for _ in range(20):
        error = errors_of_drives(rng, 30, seconds=600)
        model = fit_errors([drive(e) for e in error[:20]])
        for e in error[20:]:
            d = drive(e)
            for name, which in (("trip", slice(0, len(d))), ("stretch", slice(100, 300))):
                band = stretch_energy(d, which, model)
                lower, upper = band.interval(0.9)
                covered[name].append(lower <= band.energy_kwh <= upper)
            half = 1.645 * np.std(e) * np.sqrt(len(e)) / 3600
            covered["independent"].append(abs(e.sum() / 3600) <= half)
    assert 0.85 <= np.mean(covered["trip"]) <= 0.95
    assert 0.85 <= np.mean(covered["stretch"]) <= 0.95
    assert np.mean(covered["independent"]) < 0.5


def test_errors_that_grow_with_the_noise_are_given_room_where_it_is_noisy():
    rng = np.random.default_rng(5)
    drives = []
    for i in range(60):
        size = 0.2 if i % 2 else 1.8
        drives.append(drive(np.sqrt(size) * (0.5 * rng.normal() + 3 * rng.normal(size=900)), noise=np.full(900, size)))
    model = fit_errors(drives)
    assert model.share >= 0.75
    calm, rough = (stretch_energy(d, slice(0, 900), model).scale_kwh for d in (drives[1], drives[0]))
    assert rough > 2 * calm


def test_members_that_disagree_widen_the_band():
    error = np.random.default_rng(6).normal(size=600)
    model = ErrorModel(0.0, 0.1, 0.0, 20.0, 5.0, 0.0, 1.0, 1.0, 20)
    apart = np.array([np.full(600, 9.0), np.full(600, 11.0)])
    alone, together = (
        stretch_energy(drive(error), slice(0, 600), model),
        stretch_energy(drive(error, members=apart), slice(0, 600), model),
    )
    assert together.scale_kwh**2 - alone.scale_kwh**2 == pytest.approx(2.0 * (600 / 3600) ** 2)  # unbiased


def test_what_members_disagree_about_stays_where_the_linear_path_takes_over():
    rng = np.random.default_rng(8)
    members = 10.0 + rng.normal(size=(5, 1)) + np.zeros((5, 300))
    own = replace(drive(rng.normal(size=300), members=members), linear=np.full(300, 7.0))
    moved = TripMean(1.0).of(own)
    assert moved.mean == pytest.approx(7.0)
    assert moved.members.mean(axis=1).std() == pytest.approx(members.mean(axis=1).std())


def test_conditioning_equals_the_dense_gaussian_formula():
    model = ErrorModel(0.1, 0.3, 0.5, 60.0, 10.0, 0.0, 1.0, 1.0, 1_000_000)
    rng = np.random.default_rng(7)
    blocks, ahead = 12, 30
    z = rng.normal(size=blocks)
    past = SoFar(model)
    for value in z:
        past.now = past.now.given(value + model.bias, 1.0, 10.0, past.errors)
    lag = 10.0 * np.abs(np.subtract.outer(np.arange(blocks), np.arange(blocks)))
    cov = model.trip_effect + model.slow * np.exp(-lag / 60.0) + np.eye(blocks)  # fast noise of 10 s: 10 / 10
    t = (np.arange(ahead * 100) + 0.5) / 100 * 10.0  # seconds after the last block
    cross = model.trip_effect + model.slow * np.exp(-(t[:, None] + 10.0 * np.arange(blocks)[::-1]) / 60.0).mean(0)
    shift, variance = past.ahead(ahead * 10.0)
    own = model.of_mean(ahead * 10.0)
    assert shift == pytest.approx(model.bias + cross @ np.linalg.solve(cov, z), rel=1e-6, abs=1e-6)
    assert variance == pytest.approx(own - cross @ np.linalg.solve(cov, cross), rel=1e-3)


def test_the_drive_so_far_narrows_the_rest_at_the_same_coverage():
    rng = np.random.default_rng(8)
    error = errors_of_drives(rng, 260, tau=0.8, seconds=900)
    model = fit_errors([drive(e) for e in error[:60]])
    covered, width = [], []
    for e in error[60:]:
        d = drive(e)
        bands = [stretch_energy(d, slice(len(d) // 2, len(d)), model, so_far) for so_far in (False, True)]
        covered.append([abs(b.energy_kwh - b.mean_kwh) <= b.interval(0.9)[1] - b.mean_kwh for b in bands])
        width.append([b.scale_kwh for b in bands])
    assert np.all(np.abs(np.mean(covered, axis=0) - 0.9) < 0.08)
    assert np.mean([w[1] for w in width]) < 0.8 * np.mean([w[0] for w in width])  # 330 s of 450 tell


def test_only_as_much_is_learned_on_the_way_as_lasts():
    rng = np.random.default_rng(10)
    turning = []
    for first, rest in zip(errors_of_drives(rng, 80, tau=0.8), errors_of_drives(rng, 80, tau=0.8), strict=True):
        half = min(len(first), len(rest)) // 2
        turning.append(np.concatenate([first[:half], rest[:half]]))  # another trip effect after half the way
    assert fit_errors([drive(e) for e in turning]).lasting <= 0.5
    lasting = fit_errors([drive(e) for e in errors_of_drives(rng, 80, tau=0.8)])
    assert lasting.lasting == 1.0
    past = SoFar(replace(lasting, lasting=0.0))
    for _ in range(60):
        past.now = past.now.given(3.0, 1.0, 10.0, past.errors)
    past.now = past.now.after(1e6, past.errors)
    assert past.ahead(600.0) == pytest.approx(SoFar(lasting).ahead(600.0))


def test_a_gap_lets_the_slow_error_fade_but_not_the_trip_effect():
    past = SoFar(ErrorModel(0.0, 0.3, 0.5, 60.0, 10.0, 0.0, 1.0, 1.0, 30))
    for _ in range(150):
        past.add(2.0, 1.0, 1.0)
    b, u, uu = past.now.b, past.now.u, past.now.uu
    past.add(float("nan"), 1.0, 3600.0)
    assert past.now.b == b
    assert abs(past.now.u) < 1e-6 < abs(u)
    assert past.now.uu == pytest.approx(0.5)
    assert uu < 0.5
    again = SoFar(past.errors)
    again.restore(json.loads(json.dumps(past.to_dict())))
    assert again.ahead(100.0) == past.ahead(100.0)


def test_too_few_trips_and_unmeasured_ones_are_refused():
    error = np.random.default_rng(9).normal(size=300)
    with pytest.raises(TripsError, match="at least 3 trips"):
        fit_errors([drive(error), drive(error), drive(np.full(300, np.nan))])


@pytest.mark.parametrize(
    "change", [{"tau2": -1.0}, {"noise": 0.0}, {"bias": float("nan")}, {"trips": 1}, {"fast": "x"}]
)
def test_a_damaged_calibration_is_an_error(change):
    saved = ErrorModel(0.0, 0.1, 0.1, 20.0, 5.0, 0.5, 1.0, 2.0, 20).to_dict()
    assert ErrorModel.from_dict(json.loads(json.dumps(saved))) == ErrorModel.from_dict(saved)
    with pytest.raises(ArtifactError, match="energy calibration"):
        ErrorModel.from_dict(saved | change)


def mixed(error, linear_error, speed, name="trip"):
    """Measured power, a network that errs by `error` and a linear path that errs by `linear_error`."""
    n = len(speed)
    power = 5.0 + 0.1 * speed
    members = np.stack([power - error - 0.1, power - error + 0.1])
    return Drive(name, 1.0, members.mean(0), members, np.ones(n), np.zeros(n, bool), speed, power, power - linear_error)


def test_the_linear_path_is_weighed_in_where_it_is_better_over_trips():
    rng = np.random.default_rng(11)
    drives = []
    for i in range(30):
        own, shared = rng.normal(size=2)
        drives.append(mixed(0.2 * shared + own, 0.2 * shared - own, np.full(600, 50.0), str(i)))
    found, of_others = fit_mean(drives)
    assert found.weight == 0.5  # what is their own cancels
    assert len(of_others) == len(drives)
    seen = found.of(drives[0])
    assert np.allclose(seen.mean, seen.members.mean(0))
    assert seen.members.mean(axis=1).std() == pytest.approx(drives[0].members.mean(axis=1).std())
    assert TripMean.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert fit_mean(drives[:5])[0].weight == 0.5  # too few to say
    assert fit_mean([replace(d, linear=None) for d in drives[:5]])[0].weight == 0.0


def test_an_error_that_grows_with_speed_is_corrected_between_trips_and_rows_agree_with_drives():
    rng = np.random.default_rng(12)
    drives = []
    for i in range(40):
        speed = np.clip(rng.uniform(20, 110) + 5 * rng.normal(size=900), 0, None)
        drives.append(mixed(0.02 * speed + 0.2 * rng.normal(), 0.02 * speed + 0.2 * rng.normal(), speed, str(i)))
    found, of_others = fit_mean(drives)
    left = [np.mean(found.of(d).mean - d.mean - 0.02 * (d.speed_kmh - 65)) for d in drives]
    assert np.std(left) < 0.15  # instead of 0.5 kW without
    plain = TripErrors.of(drives).without(3).mean()
    assert of_others[3] == replace(plain, apart_kw=found.apart_kw)  # a drive is judged by a mean that never saw it
    d = drives[3]
    some = slice(100, 150)
    rows = found.rows(d.mean[some], d.linear[some], d.speed_kmh[some], None)
    assert np.allclose(rows, (found.of(d).mean - d.mean)[some])


def test_a_member_that_runs_wild_neither_moves_nor_widens_a_trip():
    rng = np.random.default_rng(13)
    drives = []
    for i in range(12):
        members = 10.0 + 0.3 * rng.normal(size=(6, 600))
        drives.append(replace(drive(rng.normal(size=600), str(i), members=members), mean=members.mean(axis=0)))
    found, _ = fit_mean(drives)
    assert 0.5 < found.apart_kw < 2.0
    wild = drives[0].members.copy()
    wild[2, 100:110] += 240.0
    tame = found.of(replace(drives[0], mean=wild.mean(axis=0), members=wild))
    plain = found.of(drives[0])
    assert np.abs(tame.mean - plain.mean).max() < found.apart_kw
    assert tame.members.mean(axis=1).std() < 1.2 * plain.members.mean(axis=1).std()
    row = drives[1].mean[:1], drives[1].members[:, :1]
    assert all(map(np.array_equal, found.tamed(*row), row))


def test_members_that_left_trips_out_alone_do_not_take_the_disagreement_of_all_away():
    rng = np.random.default_rng(15)
    alone = [drive(rng.normal(size=600), str(i), members=10.0 + np.zeros((1, 600))) for i in range(12)]
    found, _ = fit_mean(alone)
    together = drive(rng.normal(size=600), "new", members=10.0 + np.arange(5.0)[:, None] + np.zeros((5, 600)))
    assert found.of(together).members.mean(axis=1).var() == pytest.approx(2.0)


def test_the_disagreement_of_few_members_counts_as_far_as_it_tells_trips_apart():
    rng = np.random.default_rng(21)
    true = np.exp(rng.normal(size=2000))
    few = true * rng.chisquare(5, 2000) / 5  # six members
    better = steadied(few, 6)
    assert np.mean(better) == pytest.approx(np.mean(true), rel=0.1)
    assert np.mean((better - true) ** 2) < 0.8 * np.mean((few - true) ** 2)
    alike = steadied(rng.chisquare(1, 2000), 2)  # trips that differ by chance alone
    assert np.std(alike) < 0.2
    assert np.mean(alike) == pytest.approx(1.0, abs=0.1)
    assert (steadied(np.zeros(3), 1) == 0).all()


def test_disagreement_counts_by_what_trips_told_of_it_and_in_full_beyond():
    model = ErrorModel(0.0, 0.1, 0.0, 20.0, 5.0, 0.0, 1.0, 1.0, 20, spread=0.2, usual=1.0)
    for eu, counts in ((0.5, 0.1), (1.0, 0.2), (4.0, 3.2)):
        members = np.array([-1.0, 1.0]) * np.sqrt(eu / 2.0)
        assert model.epistemic(members) == pytest.approx(counts)
        assert model.epistemic(0.25 * members, 0.25) == pytest.approx(counts * 0.25**2)  # kWh over a quarter of an hour


@pytest.mark.parametrize(("honest", "low", "high"), [(True, 0.5, 2.0), (False, 0.0, 0.05)])
def test_trips_tell_how_much_of_the_disagreement_shows_in_their_errors(honest, low, high):
    rng = np.random.default_rng(14)
    drives = []
    for i in range(120):
        apart = 0.2 if i % 2 else 2.0
        members = 10.0 + apart * np.array([[-1.0], [1.0]]) / np.sqrt(2.0) + np.zeros((2, 300))
        error = (apart if honest else 0.1) * rng.standard_t(5) + 0.1 * rng.normal(size=300)
        drives.append(drive(error, str(i), members=members))
    assert low <= fit_errors(drives, TripMean()).spread <= high


@pytest.mark.parametrize(
    "change", [{"weight": 2.0}, {"slopes": [1.0]}, {"most_kw": float("nan")}, {"apart_kw": -1.0}, {"centres": "x"}]
)
def test_a_damaged_mean_is_an_error(change):
    with pytest.raises(ArtifactError, match="mean over trips"):
        TripMean.from_dict(TripMean().to_dict() | change)


def test_what_an_earlier_version_saved_is_read_as_it_was_meant():
    saved = ErrorModel(0.0, 0.1, 0.1, 20.0, 5.0, 0.5, 1.0, 2.0, 20).to_dict()
    old = ErrorModel.from_dict({k: v for k, v in saved.items() if k not in ("spread", "tails", "usual", "mean")})
    assert old.dof == pytest.approx(19)
    assert old.spread == 1.0
    assert old.mean == TripMean()
    members = np.array([-30.0, 30.0])
    assert old.epistemic(members) == pytest.approx(members.var(ddof=1))
    before = TripMean(0.25).to_dict()
    del before["apart_kw"]
    assert TripMean.from_dict(before) == TripMean(0.25)


def test_one_odd_trip_does_not_widen_all_bands():
    rng = np.random.default_rng(13)
    error = errors_of_drives(rng, 40)
    usual = fit_errors([drive(e) for e in error])
    odd = fit_errors([drive(e) for e in [*error[:-1], error[-1] + 8.0]])
    assert odd.of_mean(1200.0) < 1.5 * usual.of_mean(1200.0)
