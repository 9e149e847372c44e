"""Tails, cell masses and draws within an interval, of the normal and the beta kernel."""

from __future__ import annotations

import math
import subprocess
import sys

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from dpmix.kernels import NormalNIG
from dpmix.kernels.beta.kernel import Beta
from dpmix.kernels.intervals import draw_logit_within, draw_normal_within, fill_log_masses
from dpmix.kernels.kernel_functions import draw_within, fill_masses
from dpmix.numerics.betainc import log_beta_tails, log_constant, log_normal_tail
from tests.helpers.parametric import interpreted
from tests.helpers.seeds import rng_of

NORMAL = NormalNIG(0.0, 0.1, 3.0, 3.0)
UNIT = Beta(2.0, 2.0, 2.0, 2.0, 0.0, 1.0)
# each test of draws rejects a correct sampler with this probability; there are about 60, seeds fixed
LEVEL = 1e-5


def beta_tails(a: float, b: float, logit: float) -> tuple[mp.mpf, mp.mpf]:
    """Return logs of both tails by positive series, DLMF 8.17.8, in 40 digits."""
    with mp.workdps(40):
        a, b = mp.mpf(a), mp.mpf(b)
        x, y = 1 / (1 + mp.exp(-mp.mpf(logit))), 1 / (1 + mp.exp(mp.mpf(logit)))
        log_b = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
        front = a * mp.log(x) + b * mp.log(y) - log_b

        def series(a, b, x):
            term = total = 1 / a
            n = 0
            while term > total * mp.mpf(10) ** -25:
                term *= (a + b + n) / (a + 1 + n) * x
                total += term
                n += 1
            return mp.log(total)

        if x < a / (a + b):
            near = front + series(a, b, x)
            return near, mp.log1p(-mp.exp(near))
        near = front + series(b, a, y)
        return mp.log1p(-mp.exp(near)), near


@pytest.mark.parametrize("a", [0.01, 0.3, 1.0, 9.99, 10.0, 40.0, 1e3, 1e5])
@pytest.mark.parametrize("b", [0.01, 0.7, 2.0, 10.0, 60.0, 1e5])
def test_beta_tails_are_good_to_a_hundred_billionth(a, b):
    sd = min(math.sqrt(1 / a + 1 / b), 4.0)
    for step in (-30.0, -6.0, -1.0, -0.1, 0.1, 1.0, 6.0, 30.0):
        logit = math.log(a / b) + step * sd
        if min(a, b) < 100 and abs(logit) > 6:
            continue  # the series of the side near its end is long; the next test goes there
        for found, truth in zip(
            log_beta_tails(a, b, logit, log_constant(a, b)), beta_tails(a, b, logit), strict=True
        ):
            assert abs(found - truth) <= 1e-11 * max(1.0, abs(truth) / 700), (logit, found, truth)


def test_beta_tails_near_the_ends_follow_the_leading_power():
    for a, b in ((0.01, 0.01), (0.01, 3.0), (2.5, 0.4), (50.0, 1e4)):
        for logit in (-60.0, -800.0, -3000.0):
            leading = a * logit - math.log(a) - float(mp.log(mp.beta(a, b)))
            lower, upper = log_beta_tails(a, b, logit, log_constant(a, b))
            assert lower == pytest.approx(leading, rel=1e-13, abs=1e-13)
            assert upper == pytest.approx(float(mp.log1p(-mp.exp(leading))), rel=1e-10, abs=1e-300)
            swapped = log_beta_tails(b, a, -logit, log_constant(b, a))
            assert swapped == (upper, lower)
    assert log_beta_tails(2.0, 3.0, -math.inf, log_constant(2.0, 3.0)) == (-math.inf, 0.0)
    assert log_beta_tails(2.0, 3.0, math.inf, log_constant(2.0, 3.0)) == (0.0, -math.inf)


def test_beta_tails_agree_with_scipy():
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b = np.exp(rng.uniform(np.log(0.01), np.log(1e4), 2))
        logit = -abs(float(special.logit(np.clip(rng.beta(a, b), 1e-12, 1 - 1e-12))))
        found = np.exp(log_beta_tails(a, b, logit, log_constant(a, b)))
        x = special.expit(logit)
        assert found == pytest.approx([special.betainc(a, b, x), special.betaincc(a, b, x)], abs=1e-12)


def test_normal_tail():
    for t in (-40.0, -9.0, -1.0, -1e-3, 0.0, 0.4, 4.999, 5.001, 12.0, 37.0, 40.0, 1e4):
        truth = mp.log(mp.erfc(mp.mpf(t) / mp.sqrt(2)) / 2)
        assert log_normal_tail(t) == pytest.approx(float(truth), rel=3e-13)
    assert log_normal_tail(math.inf) == -math.inf and log_normal_tail(-math.inf) == 0.0


def masses(kernel, first, second, edges):
    """Return masses and their logarithms."""
    theta = np.array([[9.0, first], [9.0, second]])
    out, logs = np.empty((2, len(edges) + 1))
    fill_masses(kernel, theta, 1, edges, out)
    fill_log_masses(kernel, theta, 1, edges, logs)
    return out, logs


@pytest.mark.parametrize("levels", [0, 2, 5])
@pytest.mark.parametrize("mean", [0.5, 3.1, 9.99, 60.0, -400.0])
@pytest.mark.parametrize("sd", [1e-3, 0.1, 1.0, 30.0, 1e5])
def test_normal_masses(levels, mean, sd):
    edges = np.linspace(0.0, 10.0, 2 ** (levels + 1) + 1)[1:-1]
    out, logs = masses(NORMAL, mean, sd * sd, edges)
    sd = math.sqrt(sd * sd)
    with mp.workdps(40):
        bounds = [-mp.inf, *((mp.mpf(e) - mean) / sd for e in edges), mp.inf]
        for c in range(len(out)):
            # the side away from the mean, so that 40 digits do
            t0, t1 = bounds[c], bounds[c + 1]
            if t0 + t1 < 0:
                t0, t1 = -t1, -t0
            truth = (mp.erfc(t0 / mp.sqrt(2)) - (mp.erfc(t1 / mp.sqrt(2)) if t1 < mp.inf else 0)) / 2
            if t0 == -mp.inf:
                truth = 1 - mp.erfc(t1 / mp.sqrt(2)) / 2
            assert abs(logs[c] - mp.log(truth)) <= 1e-11 + 3e-15 * abs(mp.log(truth)), c
            if truth > 1e-300:
                assert abs(out[c] / truth - 1) <= 3e-11, c
            else:
                assert out[c] < 1e-299
    assert np.sum(out) == pytest.approx(1.0, abs=1e-13)


BETAS = [
    (0.01, 0.01),
    (0.01, 50.0),
    (0.5, 3.0),
    (1.0, 1.0),
    (2.0, 2.0),
    (5.0, 50.0),
    (300.0, 40.0),
    (1e4, 2e4),
]


@pytest.mark.parametrize(
    "levels, a, b",
    [
        pytest.param(levels, a, b, marks=pytest.mark.matrix if levels == 5 and max(a, b) > 1e3 else ())
        for a, b in [*BETAS, (1e5, 1e5), (1e5, 0.02)]
        for levels in (0, 2, 5)
    ],
)
def test_beta_masses(levels, a, b):
    kernel = UNIT._replace(lo=-2.0, width=8.0)
    cells = 2 ** (levels + 1)
    out, logs = masses(kernel, a, b, np.linspace(-2.0, 6.0, cells + 1)[1:-1])
    with mp.workdps(40):
        near_mode = min(int(cells * a / (a + b)), cells - 1)
        for c in sorted({*range(0, cells, 9), near_mode, max(near_mode - 1, 0), cells - 1}):
            # powers of two: cell ends are exact. Gauss-Legendre in 40 digits inside, the series at the ends
            if c in (0, cells - 1):
                end = (a, b) if c == 0 else (b, a)
                truth = beta_tails(*end, float(mp.log(mp.mpf(1) / (cells - 1))) if cells > 2 else 0.0)[0]
                slack = max(a, b) * 4e-16 * 5  # the logit is rounded
            else:
                left, right = mp.mpf(c) / cells, mp.mpf(c + 1) / cells
                middle = a * mp.log((left + right) / 2) + b * mp.log(1 - (left + right) / 2)

                def density(x, middle=middle):
                    return mp.exp(a * mp.log(x) + b * mp.log(1 - x) - middle) / (x * (1 - x))

                ends = [left, right]
                if (left < mp.mpf(a) / (a + b) < right) or max(a, b) > 200:
                    ends = mp.linspace(left, right, 17 if max(a, b) > 1e3 else 9)
                truth = mp.log(mp.quad(density, ends, maxdegree=5)) + middle - mp.log(mp.beta(a, b))
                slack = 0.0
            assert abs(logs[c] - truth) <= 2e-11 + slack + 3e-15 * abs(truth), (c, logs[c], truth)
            if truth > -690:
                assert abs(out[c] / mp.exp(truth) - 1) <= 3e-11 + slack, c
    assert np.sum(out) == pytest.approx(1.0, abs=1e-12)


def test_cells_beyond_the_domain_and_a_single_cell():
    out, _ = masses(UNIT, 2.0, 3.0, np.array([-1.0, 0.0, 0.25, 1.0, 4.0]))
    assert out == pytest.approx([0.0, 0.0, stats.beta(2, 3).cdf(0.25), stats.beta(2, 3).sf(0.25), 0.0, 0.0])
    for kernel in (UNIT, NORMAL):
        assert masses(kernel, 2.0, 3.0, np.empty(0))[0] == pytest.approx([1.0])


def check(u: np.ndarray) -> None:
    """Kolmogorov-Smirnov for the probability transform, and the two ends of it."""
    assert np.all((u >= 0) & (u <= 1))
    assert stats.kstest(u, "uniform").pvalue > LEVEL
    for tail in (np.sum(u < 0.01), np.sum(u > 0.99)):
        assert stats.binomtest(int(tail), len(u), 0.01).pvalue > LEVEL


INTERVALS = [(-np.inf, np.inf), (-0.3, 0.4), (0.0, 3.0), (-1.0, np.inf), (2.0, 2.1), (0.01, 4.0), (1.0, 1.5)]


@pytest.mark.parametrize(
    "low, high", [*INTERVALS, (8.0, np.inf), (40.0, 41.0), (-40.0, -39.9), (1e5, np.inf)]
)
def test_normal_within(low, high):
    rng = np.random.default_rng(3)
    x = np.array([draw_normal_within(rng, low, high) for _ in range(4000)])
    assert np.all((x >= low) & (x <= high))
    if high < 0:
        x, low, high = -x, -high, -low
    top = log_normal_tail(low)
    gone = np.array([log_normal_tail(v) - top for v in x])
    if low > 1e4:  # there the tail is an exponential of rate `low`
        gone = -low * (x - low)
    check(np.expm1(gone) / np.expm1(log_normal_tail(high) - top))


def test_normal_within_in_data_units():
    rng = np.random.default_rng(4)
    theta = np.array([[0.0, 5.0], [1.0, 4.0]])
    y = np.array([draw_within(NORMAL, rng, theta, 1, 6.0, 9.0) for _ in range(4000)])
    law = stats.norm(5.0, 2.0)
    check((law.cdf(y) - law.cdf(6.0)) / (law.cdf(9.0) - law.cdf(6.0)))


LOGITS = [
    (-np.inf, np.inf),
    (-0.5, 0.2),
    (3.0, np.inf),
    (-np.inf, -4.0),
    (6.0, 6.5),
    (-900.0, -700.0),
    (30.0, np.inf),
]


@pytest.mark.parametrize(
    "a, b", [(0.01, 0.01), (0.02, 30.0), (1.0, 1.0), (3.0, 0.5), (50.0, 50.0), (4e4, 1e3)]
)
def test_logit_within(a, b):
    for low, high in LOGITS:
        rng = rng_of("logit", a, b, low, high)
        logits = np.array([draw_logit_within(rng, a, b, low, high) for _ in range(1500)])
        assert np.all((logits >= low) & (logits <= high))
        constant = log_constant(a, b)
        ends = [log_beta_tails(a, b, v, constant) for v in (low, high)]
        side = 0 if ends[1][0] < ends[0][1] else 1  # measure from the side whose tail is small
        base, top = (ends[0][0], ends[1][0]) if side == 0 else (ends[1][1], ends[0][1])
        values = np.array([log_beta_tails(a, b, v, constant)[side] for v in logits])
        u = (np.exp(values - top) - np.exp(base - top)) / -np.expm1(base - top)
        check(np.clip(u, 0.0, 1.0))


def test_beta_within_in_data_units():
    rng = np.random.default_rng(6)
    kernel = UNIT._replace(lo=-2.0, width=8.0)
    theta = np.array([[0.4], [3.0]])
    for low, high in ((-2.0, -1.0), (1.0, 2.0), (5.0, 6.0), (5.9, np.inf), (-np.inf, 6.0)):
        logits = np.array([draw_within(kernel, rng, theta, 0, low, high) for _ in range(4000)])
        law = stats.beta(0.4, 3.0, loc=-2.0, scale=8.0)
        y = -2.0 + 8.0 * special.expit(logits)
        if high > 5.0 and low > 4.0:
            check((law.sf(y) - law.sf(high)) / (law.sf(low) - law.sf(high)))
        else:
            check((law.cdf(y) - law.cdf(low)) / (law.cdf(high) - law.cdf(low)))


def numbers() -> list[float]:
    """Return some of everything, for the comparison with the interpreter."""
    rng = np.random.default_rng(7)
    edges = np.linspace(0.0, 1.0, 9)[1:-1]
    found: list[float] = []
    for kernel, first, second in (
        (NORMAL, 0.3, 0.04),
        (NORMAL, -30.0, 0.04),
        (UNIT, 0.01, 700.0),
        (UNIT, 3.0, 2.0),
    ):
        out, logs = masses(kernel, first, second, edges)
        found += [*out, *logs]
        theta = np.array([[first], [second]])
        found += [draw_within(kernel, rng, theta, 0, edges[c], edges[c + 1]) for c in range(6)]
        found += [draw_within(kernel, rng, theta, 0, -math.inf, edges[0]) for _ in range(4)]
    return found


def test_the_interpreter_gives_the_same_numbers():
    other = interpreted(__name__, "[float(v) for v in numbers()]")
    assert numbers() == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize(
    "module",
    [
        "dpmix.mechanisms.channels.histograms",
        "dpmix.mechanisms.square_wave.channel",
        "dpmix.mechanisms.wavelet.channel",
        "dpmix.models.counts_mixture.masses",
        "dpmix.models.histogram_mixture.model",
    ],
)
def test_what_asks_for_masses_of_cells_has_them_in_a_process_of_its_own(module: str) -> None:
    """They are registered where they are written, which no other module needs to have imported."""
    code = (
        f"import {module}\n"
        "from dpmix.kernels.kernel_functions import draw_within, fill_masses\n"
        "print(len(fill_masses.registered), len(draw_within.registered))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [int(each) >= 2 for each in found.stdout.split()] == [True, True]
