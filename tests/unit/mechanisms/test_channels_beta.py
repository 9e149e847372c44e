"""Beta kernels under noise: log g against quadrature in many digits, and filled densities against log g."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from dpmix.kernels import Beta, draw_posterior, draw_prior, draw_record, make_tuning, propose
from dpmix.mechanisms.channels.channel_functions import draw_latent, draw_start, fill_marginal, log_marginal
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.numerics.jit import njit
from tests.helpers.parametric import interpreted

KERNEL = Beta(2.0, 2.0, 2.0, 2.0, -3.0, 7.0)
SHAPES = [(0.01, 0.01), (0.01, 1e4), (0.1, 3.0), (1.0, 1.0), (2.0, 2.0), (60.0, 7.0), (1e4, 2e3)]
SCALES = [1e-3, 0.02, 0.3, 5.0, 1e3]
KINDS = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}


def made(kind, scale):
    """Channel whose noise is `scale` of the domain."""
    return KINDS[kind](scale * KERNEL.width)


def parameters(a, b):
    return np.array([[9.0, a], [9.0, b]])


def truth(kind, a, b, z, scale):
    """Log g in units of the domain: panels of the logit of u between which the integrand is e^6 apart."""
    x, w = np.polynomial.legendre.leggauss(40)
    points = np.concatenate([-np.logspace(5, -3, 1500), [0.0], np.logspace(-3, 5, 1500)])
    centre = math.log(a / b)
    points = np.append(points, centre + np.linspace(-12, 12, 6001) / math.sqrt(min(a, b) + 0.01))
    inside = 0.0 < z < 1.0
    if inside:
        at = math.log(z) - math.log1p(-z)
        points = np.concatenate([points, [at], at - np.logspace(-7, 1, 900), at + np.logspace(-7, 1, 900)])
    points = np.unique(points)

    def height(y):
        u = special.expit(y)
        gap = np.where(u < 0.5, z - u, special.expit(-y) - (1.0 - z))
        noise = -np.abs(gap) / scale if kind == "laplace" else -0.5 * (gap / scale) ** 2
        return a * special.log_expit(y) + b * special.log_expit(-y) + noise

    values = height(points)
    top = values.max()
    near = np.flatnonzero(values > top - 60.0)
    cuts = [max(near[0] - 1, 0)]
    for i in range(cuts[0] + 1, min(near[-1] + 2, len(points))):
        last = cuts[-1]
        wide = points[i] - points[last] > 2.0 + 0.2 * abs(points[i])
        if abs(values[i] - values[last]) > 6.0 or wide or (inside and points[i] == at):
            cuts.append(i)
    edges = points[np.append(cuts, min(near[-1] + 1, len(points) - 1))]
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    total = np.sum(half[:, None] * w * np.exp(height(middle[:, None] + half[:, None] * x) - top))
    constant = math.log(2 * scale) if kind == "laplace" else math.log(scale * math.sqrt(2 * math.pi))
    with mp.workdps(30):
        beta = float(mp.log(mp.beta(a, b)))
    return top + math.log(total) - beta - constant


def releases(a, b, scale):
    """Places in units of the domain: inside, at and near its ends, and outside."""
    mean = a / (a + b)
    inside = [1e-9, 1e-3, 0.2, 0.5, mean, 0.93, 1.0 - 1e-4]
    return np.array([*inside, 0.0, 1.0, -0.1, 1.4, -3.0 * scale, 1.0 + 6.0 * scale])


@pytest.mark.parametrize(
    "scale", [pytest.param(s, marks=pytest.mark.matrix if s in (0.02, 5.0) else ()) for s in SCALES]
)
@pytest.mark.parametrize("kind", KINDS)
def test_log_g(kind, scale):
    for a, b in SHAPES:
        for z in releases(a, b, scale):
            data = KERNEL.lo + KERNEL.width * z
            back = (data - KERNEL.lo) / KERNEL.width  # the place as the release has it
            found = log_marginal(made(kind, scale), KERNEL, data, parameters(a, b), 1)
            expected = truth(kind, a, b, back, scale) - math.log(KERNEL.width)
            assert found == pytest.approx(expected, rel=1e-12, abs=2e-10), (a, b, z)


@pytest.mark.parametrize("z", [-0.3, 0.02, 0.6, 1.2])
@pytest.mark.parametrize(("a", "b"), [(0.1, 0.1), (2.0, 5.0)])
def test_log_g_in_many_digits(a, b, z):
    """The definition, by mpmath after y = t^(1/a) below and 1 - y = t^(1/b) above a cut."""
    kernel, scale = KERNEL._replace(lo=0.0, width=1.0), 0.07
    for kind in KINDS:
        with mp.workdps(25):

            def noise(gap, kind=kind):
                t = abs(gap) / mp.mpf(scale)
                return mp.exp(-t) / (2 * scale) if kind == "laplace" else mp.npdf(t) / scale

            cut = mp.mpf(z) if 0 < z < 1 else mp.mpf(0.5)
            low = mp.quad(
                lambda t: (1 - t ** (1 / mp.mpf(a))) ** (b - 1) * noise(z - t ** (1 / mp.mpf(a))) / a,
                mp.linspace(0, cut**a, 9),
            )
            high = mp.quad(
                lambda t: (1 - t ** (1 / mp.mpf(b))) ** (a - 1) * noise(z - 1 + t ** (1 / mp.mpf(b))) / b,
                mp.linspace(0, (1 - cut) ** b, 9),
            )
            expected = float(mp.log((low + high) / mp.beta(a, b)))
        found = log_marginal(KINDS[kind](scale), kernel, z, parameters(a, b), 1)
        assert found == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_far_outside_g_falls_as_the_noise_does(kind):
    """No underflow of the logarithm; under Laplace noise exactly linear in z."""
    channel, theta = made(kind, 1e-3), parameters(3.0, 0.4)
    z = KERNEL.lo - KERNEL.width * np.array([1.0, 2.0, 3.0])
    logs = np.array([log_marginal(channel, KERNEL, v, theta, 1) for v in z])
    if kind == "laplace":
        np.testing.assert_allclose(np.diff(logs), -1000.0, rtol=1e-12)
    else:
        assert logs[2] < -4e6 and np.all(np.isfinite(logs))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_filled_densities_are_those_of_log_marginal(kind, scale):
    rng = np.random.default_rng(3)
    channel = made(kind, scale)
    for a, b in [*SHAPES, *(10.0 ** rng.uniform(-2.0, 4.0, (25, 2)))]:
        u = rng.beta(a, b, 30)
        places = np.concatenate([releases(a, b, scale), u + scale * rng.standard_normal(30), u])
        z = KERNEL.lo + KERNEL.width * places
        theta = parameters(a, b)
        logs = np.array([log_marginal(channel, KERNEL, v, theta, 1) for v in z])
        for few in (len(z), 2):
            out = np.full(few, np.nan)
            fill_marginal(channel, KERNEL, theta, 1, z, len(z) - few, len(z), out)
            expected = logs[len(z) - few :]
            seen = expected > math.log(1e-30)  # lower ones are computed again in logarithms
            np.testing.assert_allclose(np.log(out[seen]), expected[seen], atol=3e-9, rtol=0.0)
            assert np.all(out[~seen] < 2e-30) and np.all(out >= 0.0)


@pytest.mark.parametrize("scale", [0.02, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_g_integrates_to_one(kind, scale):
    reach = 30.0 if kind == "laplace" else 9.0
    edges = np.concatenate([np.linspace(-reach * scale, 0, 40), np.linspace(0, 1, 80)[1:-1]])
    edges = np.concatenate([edges, np.linspace(1, 1 + reach * scale, 40)])
    x, w = np.polynomial.legendre.leggauss(8)
    z = (0.5 * (edges[1:] + edges[:-1])[:, None] + 0.5 * np.diff(edges)[:, None] * x).ravel()
    weights = (0.5 * np.diff(edges)[:, None] * w).ravel() * KERNEL.width
    for a, b in [(2.0, 3.0), (5.0, 50.0)]:
        out = np.empty(len(z))
        fill_marginal(
            made(kind, scale), KERNEL, parameters(a, b), 1, KERNEL.lo + KERNEL.width * z, 0, len(z), out
        )
        assert out @ weights == pytest.approx(1.0, abs=1e-7)


def test_without_noise_g_is_the_density_at_a_logit():
    rng = np.random.default_rng(4)
    y = np.concatenate([rng.normal(0.0, 5.0, 50), [-300.0, 300.0]])
    for a, b in [(0.2, 3.0), (40.0, 0.7)]:
        theta = parameters(a, b)
        truth_ = (a - 1) * special.log_expit(y) + (b - 1) * special.log_expit(-y) - special.betaln(a, b)
        truth_ -= math.log(KERNEL.width)
        logs = np.array([log_marginal(NoNoise(), KERNEL, v, theta, 1) for v in y])
        np.testing.assert_allclose(logs, truth_, rtol=1e-12)
        out = np.empty(len(y))
        fill_marginal(NoNoise(), KERNEL, theta, 1, y, 0, len(y), out)
        np.testing.assert_allclose(out, np.exp(np.maximum(truth_, -708.0)), rtol=1e-11)
    theta = parameters(1e-3, 1.0)
    fill_marginal(NoNoise(), KERNEL, theta, 1, np.full(1, -1000.0), 0, 1, out)
    assert out[0] == math.inf
    assert draw_latent(NoNoise(), KERNEL, rng, 1.5, theta, 1) == 1.5
    assert draw_start(NoNoise(), KERNEL, rng, 1.5) == 1.5


@njit
def _starts(channel, kernel, rng, out):
    for i in range(len(out)):
        out[i] = draw_start(channel, kernel, rng, 99.0)


@pytest.mark.parametrize("kind", KINDS)
def test_latent_values_start_uniformly(kind):
    out = np.empty(3000)
    _starts(made(kind, 0.1), KERNEL, np.random.default_rng(5), out)
    assert stats.kstest(out, "logistic").pvalue > 1e-6


def sample():
    """A few densities of both kinds, to be had from the interpreter too."""
    z = np.array([-4.0, -2.9, 0.1, 2.0, 3.99, 7.0])
    found = []
    for kind in KINDS:
        for scale in (0.02, 0.7):
            for a, b in ((0.1, 0.3), (5.0, 50.0)):
                out = np.empty(len(z))
                fill_marginal(made(kind, scale), KERNEL, parameters(a, b), 1, z, 0, len(z), out)
                logs = [log_marginal(made(kind, scale), KERNEL, v, parameters(a, b), 1) for v in z]
                found += [*np.log(out[1:5]), *logs]
    rng = np.random.default_rng(6)
    theta, proposal, tuning = parameters(2.0, 0.3), np.ones((2, 2)), make_tuning(0.05, adapting=1.0)
    sums = np.array([[0.0, -9.0], [0.0, -14.0]])
    for _ in range(20):
        draw_posterior(KERNEL, rng, 7, sums, 1, theta, tuning)
        found += [*theta[:, 1], draw_record(KERNEL, rng, theta, 1)]
        found += [propose(KERNEL, rng, theta, 1, 7, 0.4, proposal), *proposal[:, 1], tuning.step]
        draw_prior(KERNEL, rng, proposal, 0)
        found += [*proposal[:, 0]]
    return np.array(found)


def test_compiled_equals_interpreted():
    found = interpreted(__name__, "sample().tolist()", strict=True)
    np.testing.assert_allclose(found, sample(), rtol=1e-9, atol=1e-11)
