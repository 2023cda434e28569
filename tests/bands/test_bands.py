"""Mixtures and bands against SciPy, scoringrules, plain quadrature and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
import scoringrules
from scipy import stats

from evband.bands import Bands, GaussianMixture, QuantileSet, Stacked, StudentMixture
from evband.errors import SettingsError, TripsError


def random_mixture(rng, members=7, n=40, spread=1.0, scale=0.0, dtype=np.float64):
    centre = rng.normal(0, 15, n)
    mu = centre + spread * rng.normal(size=(members, n))
    s = np.exp(scale + 0.5 * rng.normal(size=(members, n)))
    return StudentMixture(mu.astype(dtype), s.astype(dtype), rng.uniform(3, 12, members))


def bands_of(mixture, **columns):
    n = len(mixture)
    none = np.zeros(n, dtype=bool)
    return Bands(np.repeat("a", n), np.arange(1.0, n + 1), mixture, none, none, **columns)


def reference_cdf(mixture, y):
    mu, s = mixture.mu.astype(float), mixture.s.astype(float)
    return stats.t.cdf((y - mu) / s, mixture.nu[:, None]).mean(axis=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [0.0, 0.3, 30.0])
def test_quantiles_solve_the_mixture_cdf_to_1e7_of_scale(spread, dtype):
    mixture = random_mixture(np.random.default_rng(0), spread=spread, dtype=dtype)
    s = mixture.s.astype(float)
    for p in (0.001, 0.05, 0.3, 0.5, 0.95, 0.999):
        q = mixture.quantile(p)
        density = (stats.t.pdf((q - mixture.mu) / s, mixture.nu[:, None]) / s).mean(axis=0)
        error = (reference_cdf(mixture, q) - p) / density  # kW, to first order
        # where members lie far apart the density between them nearly vanishes, and only the probability is determined
        assert np.all((np.abs(error) < 1e-7 * s.min(axis=0)) | (np.abs(error * density) < 1e-11))


def test_extreme_quantiles_leave_the_table_gracefully():
    mixture = StudentMixture([[0.0], [1.0]], [[1.0], [2.0]], [3.0, 3.0])
    q = mixture.quantile(1e-11)
    assert reference_cdf(mixture, q)[0] == pytest.approx(1e-11, rel=1e-4)
    assert mixture.quantile(0.5)[0] == pytest.approx(-mixture_mirror(mixture).quantile(0.5)[0], abs=1e-9)


def mixture_mirror(mixture):
    return StudentMixture(-mixture.mu, mixture.s, mixture.nu)


def test_one_member_equals_its_member():
    mixture = random_mixture(np.random.default_rng(1), members=1)
    mu, s, nu = mixture.mu[0], mixture.s[0], mixture.nu[0]
    one = stats.t(nu, mu, s)
    y = mu + np.linspace(-6, 6, len(mu))
    np.testing.assert_allclose(mixture.mean, mu)
    np.testing.assert_allclose(mixture.aleatoric, one.var())
    np.testing.assert_array_equal(mixture.epistemic, 0)
    np.testing.assert_allclose(mixture.quantile(0.95), one.ppf(0.95), rtol=1e-12)
    np.testing.assert_allclose(mixture.logpdf(y), one.logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(mixture.tails(y), [one.cdf(y), one.sf(y)], rtol=1e-12)
    np.testing.assert_allclose(mixture.crps(y), scoringrules.crps_t(y, nu, mu, s), rtol=1e-12)
    bands = bands_of(mixture)
    np.testing.assert_allclose(bands.interval(0.8, "closed_form"), bands.interval(0.8, "mixture"), rtol=1e-9)


def test_moments_and_log_density_against_plain_numpy():
    mixture = random_mixture(np.random.default_rng(2))
    mu, s, nu = mixture.mu, mixture.s, mixture.nu[:, None]
    y = mixture.mean + 1.0
    np.testing.assert_allclose(mixture.mean, mu.mean(0))
    np.testing.assert_allclose(mixture.aleatoric, (s**2 * nu / (nu - 2)).mean(0))
    np.testing.assert_allclose(mixture.epistemic, ((mu - mu.mean(0)) ** 2).mean(0))
    np.testing.assert_allclose(mixture.logpdf(y), np.log((stats.t.pdf((y - mu) / s, nu) / s).mean(0)))
    half = np.sqrt((stats.t.ppf(0.95, mixture.nu.mean()) * s.mean(0)) ** 2 + stats.norm.ppf(0.95) ** 2 * mu.var(0))
    np.testing.assert_allclose(mixture.closed_form(0.9), half)


@pytest.mark.parametrize(("spread", "scale"), [(0.3, 0.0), (3.0, -3.0), (0.01, 2.0), (20.0, 0.0)])
def test_crps_against_plain_quadrature(spread, scale):
    """Also where members are spikes far apart, and where the outcome is far out."""
    mixture = random_mixture(np.random.default_rng(3), n=12, spread=spread, scale=scale)
    y = mixture.mean + np.repeat([0.0, 1.0, -4.0, 200.0], 3)
    crps = mixture.crps(y)
    for row in range(12):
        mu, s = mixture.mu[:, row], mixture.s[:, row]
        nodes = np.concatenate([np.sort((mu + s * np.linspace(-30, 30, 241)[:, None]).ravel()), [y[row]]])
        reach = 1e4 * s.max() + np.ptp(nodes)
        edges = np.unique(
            np.concatenate([nodes, y[row] + np.geomspace(1e-3, reach, 400), y[row] - np.geomspace(1e-3, reach, 400)])
        )
        x, w = np.polynomial.legendre.leggauss(6)
        points = (edges[1:, None] + edges[:-1, None]) / 2 + np.diff(edges)[:, None] / 2 * x
        F = stats.t.cdf((points[..., None] - mu) / s, mixture.nu).mean(-1)
        exact = np.sum((F - (points >= y[row])) ** 2 * w * np.diff(edges)[:, None] / 2)
        assert crps[row] == pytest.approx(exact, abs=2e-5)


def test_crps_against_monte_carlo():
    rng = np.random.default_rng(4)
    mixture = random_mixture(rng, members=5, n=3)
    y = mixture.mean + np.array([0.0, 2.0, -5.0])
    member = rng.integers(5, size=400_000)
    draws = mixture.mu[member] + mixture.s[member] * rng.standard_t(mixture.nu[member])[:, None]
    energy = np.abs(draws - y).mean(0) - 0.5 * np.abs(draws - draws[rng.permutation(len(draws))]).mean(0)
    np.testing.assert_allclose(mixture.crps(y), energy, atol=0.02)


def test_gaussian_mixture_against_scoringrules_and_scipy():
    rng = np.random.default_rng(5)
    mu, s = rng.normal(0, 2, (4, 25)), rng.uniform(0.2, 3, (4, 25))
    y = rng.normal(0, 4, 25)
    mixture = GaussianMixture(mu, s)
    np.testing.assert_allclose(mixture.crps(y), scoringrules.crps_mixnorm(y, mu.T, s.T), atol=1e-5)
    np.testing.assert_allclose(mixture.logpdf(y), np.log(stats.norm.pdf(y, mu, s).mean(0)))
    np.testing.assert_allclose(mixture.aleatoric, (s**2).mean(0))
    np.testing.assert_allclose(stats.norm.cdf(mixture.quantile(0.9), mu, s).mean(0), 0.9, atol=1e-9)
    one = GaussianMixture(mu[:1], s[:1])
    np.testing.assert_allclose(one.crps(y), scoringrules.crps_normal(y, mu[0], s[0]))
    np.testing.assert_allclose(one.closed_form(0.9), stats.norm.ppf(0.95) * s[0])


def test_stretch_describes_one_distribution():
    """mean + k (Y - mean): quantiles, CDF, density and CRPS all follow (CRPS scales with the outcome's distance)."""
    mixture = random_mixture(np.random.default_rng(6))
    m, y = mixture.mean, mixture.mean + 1.5
    bands = bands_of(mixture).stretched(1.3)
    np.testing.assert_allclose(bands.mean, m, rtol=1e-12)
    np.testing.assert_allclose(bands.aleatoric**2, 1.3**2 * mixture.aleatoric)
    np.testing.assert_allclose(bands.epistemic**2, 1.3**2 * mixture.epistemic)
    np.testing.assert_allclose(bands.quantile(0.9), m + 1.3 * (mixture.quantile(0.9) - m), rtol=1e-8)
    np.testing.assert_allclose(bands.cdf(m + 1.3 * (y - m)), mixture.tails(y)[0])
    np.testing.assert_allclose(bands.logpdf(m + 1.3 * (y - m)), mixture.logpdf(y) - np.log(1.3))
    np.testing.assert_allclose(bands.crps(m + 1.3 * (y - m)), 1.3 * mixture.crps(y), atol=1e-5)
    assert bands.stretched(2.0).stretch == pytest.approx(2.6)
    for wrong in (0.0, np.where(np.arange(len(bands)) == 1, -1.0, 1.0)):
        with pytest.raises(SettingsError, match="positive"):
            bands.stretched(wrong)


@pytest.mark.parametrize("kind", ["student", "quantiles", "stacked"])
def test_each_row_may_have_a_stretch_of_its_own(kind):
    rng = np.random.default_rng(7)
    mixture = random_mixture(rng)
    if kind == "quantiles":
        mixture = QuantileSet(np.sort(rng.normal(size=(3, 19, 5)), axis=1))
    parts = [bands_of(mixture)] * (2 if kind == "stacked" else 1)
    bands = Bands.concat(parts) if kind == "stacked" else parts[0]
    k = rng.uniform(0.3, 3, len(bands))
    both = bands.stretched(k)
    np.testing.assert_array_equal(both.stretch, k)
    for row in range(len(bands)):
        one = bands.rows(np.arange(len(bands)) == row).stretched(float(k[row]))
        assert both.quantile(0.8)[row] == pytest.approx(one.quantile(0.8)[0])
        assert both.rows(np.arange(len(bands)) == row).stretch == pytest.approx(k[row])


def test_quantile_set_of_a_known_distribution():
    levels = np.arange(1, 20) / 20
    one = stats.logistic(2.0, 0.7)
    q = np.repeat(one.ppf(levels)[None, :, None], 3, axis=2)
    members = np.concatenate([q - 0.4, q + 0.4])
    quantiles = QuantileSet(members)
    np.testing.assert_allclose(quantiles.quantile(0.05), one.ppf(0.05))
    np.testing.assert_allclose(quantiles.quantile(0.5), 2.0)
    np.testing.assert_allclose(quantiles.mean, 2.0, atol=1e-12)
    np.testing.assert_allclose(quantiles.epistemic, 0.16)
    np.testing.assert_allclose(
        np.sqrt(quantiles.aleatoric), np.diff(one.ppf([0.05, 0.95]))[0] / (2 * stats.norm.ppf(0.95))
    )
    y = np.array([1.0, 2.0, 30.0])
    np.testing.assert_allclose(quantiles.crps(y)[:2], scoringrules.crps_logistic(y[:2], 2.0, 0.7), rtol=0.05)
    pinball = np.array(
        [
            np.mean([2 * max(p * (v - a), (p - 1) * (v - a)) for p, a in zip(levels, one.ppf(levels), strict=True)])
            for v in y
        ]
    )
    np.testing.assert_allclose(quantiles.crps(y), pinball)
    assert np.isnan(quantiles.logpdf(y)).all()
    for p in (1e-6, 0.01, 0.07, 0.5, 0.9, 0.999):
        np.testing.assert_allclose(quantiles.tails(quantiles.quantile(p))[0], p, rtol=1e-9)
        np.testing.assert_allclose(
            quantiles.stretched(2.0).quantile(p), 2 + 2 * (quantiles.quantile(p) - 2), rtol=1e-12
        )


def test_quantile_set_sorts_and_reports_crossing():
    q = np.array([[[0.0, 0.0], [2.0, 1.0], [1.0, 2.0]]])
    quantiles = QuantileSet(q, levels=[0.1, 0.5, 0.9], centre=[[1.5, 1.6]])
    assert quantiles.crossing == 0.5
    np.testing.assert_array_equal(quantiles.sorted[:, 0], [0, 1, 2])
    np.testing.assert_array_equal(quantiles.mean, [1.5, 1.6])
    with pytest.raises(SettingsError, match="closed-form"):
        quantiles.closed_form(0.9)


def test_bands_of_folds_stack_and_pick_rows():
    rng = np.random.default_rng(7)
    a, b = random_mixture(rng, members=3, n=10), random_mixture(rng, members=2, n=5)
    y = np.linspace(-20, 20, 15)
    both = Bands.concat([bands_of(a, power_kw=y[:10]), bands_of(b, power_kw=y[10:])])
    assert isinstance(both.members, Stacked)
    np.testing.assert_array_equal(both.crps(y), np.concatenate([a.crps(y[:10]), b.crps(y[10:])]))
    picked = both.rows(np.array([1, 4, 11]))
    np.testing.assert_array_equal(picked.quantile(0.9), both.quantile(0.9)[[1, 4, 11]])
    np.testing.assert_array_equal(both.rows(np.arange(15) < 4).mean, both.mean[:4])
    assert both.to_frame(members=True)["location_2"].is_nan().sum() == 5
    with pytest.raises(SettingsError, match="increasing"):
        both.rows(np.array([4, 1]))
    with pytest.raises(TripsError, match="grids"):
        Bands.concat([bands_of(a, hz=1.0), bands_of(a, hz=10.0)])


def test_frame_has_the_published_columns():
    mixture = random_mixture(np.random.default_rng(8), members=2, n=3, dtype=np.float32)
    plain = [
        "trip_id",
        "time_s",
        "mean_kw",
        "lower_kw",
        "upper_kw",
        "aleatoric_kw",
        "epistemic_kw",
        "warmup",
        "outside",
    ]
    assert bands_of(mixture).to_frame().columns == plain
    power, channel = np.array([1.0, np.nan, 2.0]), np.array(["", "speed_kmh", ""])
    frame = bands_of(mixture, power_kw=power, outside_channel=channel).to_frame(0.8, "closed_form", members=True)
    each = [f"{name}_{m}" for m in range(2) for name in ("location", "scale", "nu")]
    assert frame.columns == [*plain, "power_kw", "outside_channel", *each]
    assert frame["power_kw"].null_count() == 1
    assert frame["location_1"].dtype == frame["scale_0"].dtype == frame["nu_0"].dtype


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 90, float("nan")])
def test_level_outside_the_unit_interval(level):
    with pytest.raises(SettingsError, match=r"between 0 and 1"):
        bands_of(GaussianMixture([[0.0]], [[1.0]])).interval(level)


def test_shapes_and_degrees_of_freedom_are_checked():
    with pytest.raises(SettingsError, match="over 2"):
        StudentMixture([[0.0]], [[1.0]], [2.0])
    with pytest.raises(SettingsError, match="one shape"):
        StudentMixture([[0.0]], [[1.0, 2.0]], [3.0])
    with pytest.raises(SettingsError, match="power_kw"):
        bands_of(GaussianMixture([[0.0]], [[1.0]]), power_kw=np.zeros(2))
    with pytest.raises(SettingsError, match="closed"):
        bands_of(GaussianMixture([[0.0]], [[1.0]])).interval(0.9, "open")
