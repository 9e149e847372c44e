"""Normal variables clamped or truncated to [-1, 1], against SciPy and quadrature, however far away."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from dpmix.numerics.bounded_normal import (
    clamped_means,
    log_mass,
    share_above,
    truncated,
    truncated_means,
    upper_tail,
    value_at,
)

RNG = np.random.default_rng(1)
MEANS = np.concatenate([RNG.normal(size=400), RNG.normal(size=400) * np.exp(RNG.uniform(0.0, 5.0, 400))])
SDS = np.exp(RNG.uniform(-4.0, 5.0, 800))
SHARES = RNG.random(800)


def integral(mean: float, sd: float) -> float:
    """Return the mean of a truncated normal variable, by Gauss-Legendre panels that narrow to its mode."""
    best = min(max(mean, -1.0), 1.0)
    steps = np.logspace(-9.0, 0.5, 80)
    edges = np.unique(np.clip(best + np.concatenate([-steps, [0.0], steps]), -1.0, 1.0))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges) / 2
    y = (edges[:-1] + half)[:, None] + half[:, None] * nodes
    log_density = -0.5 * ((y - mean) / sd) ** 2
    density = np.exp(log_density - log_density.max()) * half[:, None] * weights
    return float((density * (y - best)).sum() / density.sum() + best)


def test_tails_and_masses() -> None:
    t = np.linspace(-30.0, 30.0, 401)
    np.testing.assert_allclose([upper_tail(x) for x in t], special.ndtr(-t), rtol=1e-12)
    found = [log_mass(*pair) for pair in zip(MEANS, SDS, strict=True)]
    # the log of the density at the middle, with and without what is cut off
    ends = (-1.0 - MEANS) / SDS, (1.0 - MEANS) / SDS
    wanted = stats.norm.logpdf(0.0, MEANS, SDS) - stats.truncnorm.logpdf(0.0, *ends, loc=MEANS, scale=SDS)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_quantiles_undo_shares() -> None:
    values = np.array([value_at(*row) for row in zip(SHARES, MEANS, SDS, strict=True)])
    back = np.array([share_above(*row) for row in zip(values, MEANS, SDS, strict=True)])
    np.testing.assert_allclose(back, SHARES, atol=1e-7)
    ends = (-1.0 - MEANS) / SDS, (1.0 - MEANS) / SDS
    wanted = stats.truncnorm.isf(SHARES[::8], *(end[::8] for end in ends), loc=MEANS[::8], scale=SDS[::8])
    np.testing.assert_allclose(values[::8], wanted, atol=1e-8)
    assert value_at(0.0, 0.0, 1.0) == 1.0 and value_at(1.0, 0.0, 1.0) == -1.0
    assert -1.0 <= value_at(0.0, -1e6, 0.1) <= 1.0


def test_normals_are_mapped_in_order() -> None:
    normals = np.linspace(-8.0, 8.0, 101)
    out = truncated(np.full(101, 4.2), np.array(2.1), 0.0, 6.0, normals)
    wanted = stats.truncnorm.ppf(special.ndtr(normals), -2.0, 1.8 / 2.1, loc=4.2, scale=2.1)
    np.testing.assert_allclose(out[10:-10], wanted[10:-10], atol=1e-9)
    assert (np.diff(out) >= 0.0).all()


def test_means() -> None:
    out = truncated_means(MEANS, SDS, -1.0, 1.0)
    np.testing.assert_allclose(out, [integral(*pair) for pair in zip(MEANS, SDS, strict=True)], atol=1e-9)
    out = clamped_means(MEANS, SDS, -1.0, 1.0)
    a, b = (-1.0 - MEANS) / SDS, (1.0 - MEANS) / SDS
    inside = MEANS * (special.ndtr(b) - special.ndtr(a)) + SDS * (stats.norm.pdf(a) - stats.norm.pdf(b))
    np.testing.assert_allclose(out, inside - special.ndtr(a) + special.ndtr(-b), atol=1e-11)


@pytest.mark.parametrize("sd", [1e3, 1e5, 1e8])
def test_a_wide_law_is_nearly_uniform(sd: float) -> None:
    out = truncated_means(np.array([0.3, -2.0]), np.full(2, sd), -1.0, 1.0)
    np.testing.assert_allclose(out, np.array([0.3, -2.0]) / (3.0 * sd**2), rtol=1e-3, atol=1e-15)
