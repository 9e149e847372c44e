"""Estimates from mean logarithms, noise within their range, and what censoring does to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from dpmix.models.dirichlet.bootstrap import draw_statistic, make_range_noise
from dpmix.models.dirichlet.latent_records import make_shapes
from dpmix.models.dirichlet.mean_logarithms import (
    dirichlet_mle,
    gamma_mle,
    in_range,
    simulate_means,
)
from dpmix.models.dirichlet.normal_approximation import censored_moments, make_moments

SURE = 1e-6  # of each test of a law: 30 or so are made


def searched(means: np.ndarray) -> np.ndarray:
    """Return the maximum likelihood estimate by SciPy's search, in log alpha."""

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        alpha = np.exp(point)
        value = special.gammaln(alpha.sum()) - special.gammaln(alpha).sum() + (alpha * means).sum()
        slope = special.digamma(alpha.sum()) - special.digamma(alpha) + means
        return -float(value), -slope * alpha

    found = optimize.minimize(loss, np.zeros(len(means)), jac=True, method="BFGS", options={"gtol": 1e-9})
    return np.exp(found.x)


@pytest.mark.parametrize("alpha", [(3.3, 4.4), (0.5, 0.5, 0.5), (2.0, 20.0, 2.0), (0.1, 1.0, 3.0, 0.4, 2.0)])
def test_the_estimate_is_the_one_that_a_search_finds(alpha: tuple[float, ...]) -> None:
    means = np.log(np.random.default_rng(3).dirichlet(alpha, 60)).mean(axis=0)
    found = np.empty(len(alpha))
    assert dirichlet_mle(means, found)
    np.testing.assert_allclose(found, searched(means), rtol=1e-5)


@pytest.mark.parametrize("size", [1e-4, 0.01, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("d", [2, 6])
def test_the_estimate_has_the_mean_logarithms_it_was_made_from(size: float, d: int) -> None:
    alpha = size * np.random.default_rng(d).gamma(2.0, size=d)
    means = special.digamma(alpha) - special.digamma(alpha.sum())
    found = np.empty(d)
    assert dirichlet_mle(means, found)
    np.testing.assert_allclose(found, alpha, rtol=1e-12 * max(1.0, 100.0 * size))


def test_there_is_an_estimate_within_the_range_alone() -> None:
    left = np.full(2, 7.0)
    for means in ([-0.5, -0.5], [-0.1, 0.0], [-1.0, 0.2], [math.log(0.5), math.log(0.5)], [np.nan, -1.0]):
        assert not in_range(np.array(means))
        assert not dirichlet_mle(np.array(means), left)
    assert (left == 7.0).all()
    # near the corners of the range
    for means in ([-1e5, -1e-6], [-1e5, -1e5], [-700.0, -0.1], [math.log(0.5) - 1e-9, math.log(0.5)]):
        assert dirichlet_mle(np.array(means), left)
        back = special.digamma(left) - special.digamma(left.sum())
        np.testing.assert_allclose(back, means, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [0.05, 1.0, 4.0, 300.0])
def test_gamma_estimates_are_those_of_scipy(shape: float) -> None:
    values = np.random.default_rng(1).gamma(shape, 3.0, 200) + 1e-200
    fitted = stats.gamma.fit(values, floc=0.0)
    assert gamma_mle(values) == pytest.approx((fitted[0], 1.0 / fitted[2]), rel=1e-6)


def drawn(released: list[float], scale: float, count: int, seed: int) -> tuple[np.ndarray, int]:
    """Return draws (count, d) of the statistic, and how many points they took."""
    noise, rng = make_range_noise(np.array(released), scale), np.random.default_rng(seed)
    draws = np.empty((count, len(released)))
    tries = sum(draw_statistic(noise, rng, row) for row in draws)
    return draws, tries


def density(s: np.ndarray, center: float, scale: float) -> np.ndarray:
    """Return the density of the Laplace distribution."""
    return np.exp(-np.abs(s - center) / scale) / (2.0 * scale)


def below(s: np.ndarray, center: float, scale: float) -> np.ndarray:
    """Return its distribution function."""
    z = (s - center) / scale
    return np.where(z < 0.0, 0.5 * np.exp(np.minimum(z, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(z, 0.0)))


def cell_chances(released: list[float], scale: float, edges: np.ndarray) -> np.ndarray:
    """Return the chances of the first entry's cells, all others integrated out, d = 2 or 3."""
    across = np.concatenate([-np.geomspace(60.0, 1e-4, 1500), np.linspace(0.0, 60.0, 1501)]) * scale

    def room(left: float) -> float:
        """Return the chance that the entries after the first leave exp(s) summing to less than `left`."""
        top = math.log(left)
        if len(released) == 2:
            return float(below(np.array(top), released[1], scale))
        grid = np.concatenate([across + min(released[1], top), across[:1500] + top])
        grid = np.unique(np.append(grid[grid < top], top))
        rest = np.log(np.maximum(left - np.exp(grid), 1e-300))
        inside = density(grid, released[1], scale) * below(rest, released[2], scale)
        return float(np.trapezoid(inside, grid))

    nodes, weights = np.polynomial.legendre.leggauss(24)
    kinks = [*released, *(math.log(-math.expm1(s)) for s in released if s < 0.0)]
    masses = np.zeros(len(edges) - 1)
    for cell, (low, high) in enumerate(zip(edges, edges[1:], strict=False)):
        steps = np.linspace(low, high, 2 + int((high - low) / (4.0 * scale)))
        ends = sorted([*steps, *(k for k in kinks if low < k < high)])
        for start, stop in zip(ends, ends[1:], strict=False):
            points = start + 0.5 * (stop - start) * (1.0 + nodes)
            values = density(points, released[0], scale) * [room(-math.expm1(s)) for s in points]
            masses[cell] += 0.5 * (stop - start) * float(weights @ values)
    return masses / masses.sum()


@pytest.mark.parametrize(
    ("released", "scale"),
    [
        ([-0.8, -0.9], 0.3),  # within the range, about the edge of it
        ([math.log(0.5), math.log(0.5)], 0.01),  # on the edge
        ([-0.2, -0.3], 0.1),  # outside
        ([3.0, 0.5], 0.2),  # far outside
        ([-2.0, -0.2], 2.0),  # more noise than range
        ([-1.0, -1.2, -1.1], 0.1),
        ([0.5, -0.5, -3.0], 0.3),
    ],
)
def test_noise_within_the_range_has_exact_chances(released: list[float], scale: float) -> None:
    draws, _ = drawn(released, scale, 10_000, seed=5)
    assert (np.exp(draws).sum(axis=1) < 1.0 + 1e-14).all()
    for first in (0, len(released) - 1):
        order = [first, *(j for j in range(len(released)) if j != first)]
        cut = np.quantile(draws[:1000, first], np.linspace(0, 1, 9)[1:-1])
        edges = np.array([cut[0] - 40.0 * scale, *cut, min(0.0, cut[-1] + 40.0 * scale)])
        chances = cell_chances([released[j] for j in order], scale, edges)
        counts = np.histogram(draws[1000:, first], edges)[0]
        assert stats.chisquare(counts, chances * counts.sum()).pvalue > SURE


def test_noise_within_the_range_is_joint() -> None:
    """Given s_1, the last entry is a Laplace variable cut off: its chance below is uniform."""
    released, scale = [-0.6, -0.9], 0.2
    draws, _ = drawn(released, scale, 20_000, seed=8)
    room = below(np.log(-np.expm1(draws[:, 0])), released[1], scale)
    chances = below(draws[:, 1], released[1], scale) / room
    assert stats.kstest(chances, "uniform").pvalue > SURE
    assert abs(stats.spearmanr(chances, draws[:, 0]).statistic) < 5.0 / math.sqrt(len(draws))


@pytest.mark.parametrize("d", [2, 5, 12])
@pytest.mark.parametrize("scale", [1e-12, 1e-4, 0.05, 1.0, 30.0])
def test_noise_takes_few_tries_wherever_the_release_is(d: int, scale: float) -> None:
    even = -math.log(d)
    places = [[even + shift] * d for shift in (-1.0, -3 * scale, 0.0, 3 * scale, 5.0)]
    places += [list(np.linspace(-5.0, 0.5, d)), [*[-8.0] * (d - 1), 3.0], list(np.linspace(-30.0, 200.0, d))]
    for released in places:
        draws, tries = drawn(released, scale, 100, seed=1)
        assert np.isfinite(draws).all()
        assert tries < 100 * 4 * math.sqrt(d)


def test_simulated_means_have_the_moments_of_censored_logarithms() -> None:
    rng, moments, means = np.random.default_rng(2), make_moments(3), np.empty(3)
    for alpha in ([2.0, 5.0, 1.2], [0.3, 2.0, 0.02], [0.004, 0.003, 0.002]):
        shapes, draws = make_shapes(3), np.empty((3000, 3))
        shapes.alpha[:] = alpha
        for row in draws:
            simulate_means(rng, shapes, 5, math.log(0.05), means)
            row[:] = means
        censored_moments(np.array(alpha), 0.05, moments)
        errors = draws.mean(axis=0) - moments.mean
        spread = moments.covariance / 5
        assert stats.chi2(3).sf(3000 * errors @ np.linalg.solve(spread, errors)) > SURE
        np.testing.assert_allclose(np.cov(draws.T), spread, atol=0.15 * spread.max())


def integrated(alpha: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return means and variances of log max(x, a), and the covariance of the first two, by quadrature."""
    whole, top = alpha.sum(), -math.log(threshold)

    def above(a: float, b: float, threshold: float, power: int = 1) -> float:
        """Return E (log max(x, a) - log a)^power for x ~ Beta(a, b)."""
        deep = -math.log(threshold)
        weight = [None, lambda u: 1.0, lambda u: 2.0 * (deep - u)][power]
        return integrate.quad(lambda u: weight(u) * special.betaincc(a, b, math.exp(-u)), 0.0, deep)[0]

    mean = np.array([above(a, whole - a, threshold) for a in alpha])
    squares = [above(a, whole - a, threshold, 2) for a in alpha]
    rest = whole - alpha[0] - alpha[1]

    def given(x: float) -> float:
        """Return E log max(x_2, a) - log a given x_1 = x."""
        if threshold >= 1.0 - x:
            return 0.0
        return above(alpha[1], rest, threshold / (1.0 - x)) if rest > 0.0 else math.log((1.0 - x) / threshold)

    constant = special.betaln(alpha[0], whole - alpha[0])

    def density_of(x: float) -> float:
        return math.exp((alpha[0] - 1) * math.log(x) + (whole - alpha[0] - 1) * math.log1p(-x) - constant)

    both = (
        integrate.quad(
            lambda x: density_of(x) * math.log(x / threshold) * given(x), threshold, 1.0 - threshold
        )[0]
        if threshold < 0.5
        else 0.0
    )
    return mean - top, np.array(squares) - mean**2, both - mean[0] * mean[1]


@pytest.mark.parametrize(
    ("alpha", "threshold"),
    [
        ((3.3, 4.4), 0.1),
        ((3.3, 1.3), 0.45),
        ((2.2, 3.3, 4.4, 5.5, 6.6), 0.1),
        ((0.5, 0.5, 1.5), 0.01),
        ((0.5, 0.7, 1.5), 0.6),
        ((20.0, 30.0, 50.0), 0.2),
    ],
)
def test_moments_of_censored_logarithms_are_exact(alpha: tuple[float, ...], threshold: float) -> None:
    moments, shapes = make_moments(len(alpha)), np.array(alpha)
    censored_moments(shapes, threshold, moments)
    mean, variance, covariance = integrated(shapes, threshold)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(np.diag(moments.covariance), variance, rtol=1e-7)
    assert moments.covariance[0, 1] == pytest.approx(
        covariance, abs=1e-7 * math.sqrt(variance[0] * variance[1])
    )
    np.testing.assert_allclose(
        moments.share, stats.beta.cdf(threshold, shapes, shapes.sum() - shapes), atol=1e-10
    )
    plain = special.digamma(shapes) - special.digamma(shapes.sum())
    np.testing.assert_allclose(moments.bias, mean - plain, atol=1e-9)


def test_without_censoring_moments_are_digammas_and_trigammas() -> None:
    alpha, moments = np.array([2.2, 3.3, 4.4]), make_moments(3)
    censored_moments(alpha, 1e-30, moments)
    np.testing.assert_allclose(moments.mean, special.digamma(alpha) - special.digamma(9.9), rtol=1e-12)
    wanted = np.diag(special.polygamma(1, alpha)) - special.polygamma(1, 9.9)
    np.testing.assert_allclose(moments.covariance, wanted, rtol=1e-12)
