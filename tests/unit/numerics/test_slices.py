"""The slice sampler leaves the law of its curve as it is, and ends where there is nothing to find."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from dpmix.numerics.jit import njit
from dpmix.numerics.slices import draw_in_box, draw_on_slice, log_height
from tests.helpers.seeds import rng_of

LEVEL = 1e-5


class _Gamma(NamedTuple):
    """Gamma(shape, 1) on [0, inf); its whole numbers where `whole`, by exp(log_height) as weights."""

    shape: float
    whole: bool
    now: float


@log_height.register
def _log_gamma(curve: _Gamma, x):
    if curve.whole:
        x = math.floor(x) + 0.5
        if x == curve.now + 0.5:
            return math.inf
    return (curve.shape - 1.0) * math.log(x) - x if x > 0.0 else -math.inf


class _Cone(NamedTuple):
    """Independent exponential variables, a NamedTuple of their rates."""

    rates: np.ndarray


@log_height.register
def _log_cone(curve: _Cone, x):
    total = 0.0
    for j in range(len(x)):
        if x[j] < 0.0:
            return -math.inf
        total -= curve.rates[j] * x[j]
    return total


@njit
def _numbers(rng, shape, width, most, steps, out):
    x = 1.0
    for i in range(len(out)):
        for _ in range(10):
            curve = _Gamma(shape, False, 0.0)
            level = log_height(curve, x) - rng.standard_exponential()
            x, height = draw_on_slice(rng, curve, x, level, width, 0.0, most, steps)
            if not height > level or height != log_height(curve, x):
                return False
        out[i] = x
    return True


@njit
def _whole_numbers(rng, shape, width, most, out):
    now = 1.0
    for i in range(len(out)):
        for _ in range(10):
            height = (shape - 1.0) * math.log(now + 0.5) - now - 0.5
            level = height - rng.standard_exponential()
            curve = _Gamma(shape, True, now)
            x, _ = draw_on_slice(rng, curve, now + rng.random(), level, width, 0.0, most)
            now = math.floor(x)
        out[i] = now


@njit
def _vectors(rng, rates, root, out):
    point = np.ones(len(rates))
    for i in range(len(out)):
        draw_in_box(rng, _Cone(rates), point, root, 12)
        out[i] = point


@pytest.mark.parametrize(
    ("shape", "width", "most", "steps"),
    [
        (2.5, 1.0, math.inf, math.inf),
        (2.5, 30.0, 3.0, math.inf),
        (0.7, 0.2, 2.0, math.inf),
        (2.5, 0.5, math.inf, 2.0),
    ],
)
def test_numbers_have_the_law_of_their_curve(shape: float, width: float, most: float, steps: float) -> None:
    out = np.empty(4000)
    assert _numbers(rng_of("slices", shape, width), shape, width, most, steps, out)
    law = stats.gamma(shape)
    assert stats.kstest(law.cdf(out) / law.cdf(most), "uniform").pvalue > LEVEL


@pytest.mark.parametrize("width", [0.7, 9.0])
def test_whole_numbers_have_the_law_of_their_curve(width: float) -> None:
    out = np.empty(4000)
    _whole_numbers(rng_of("whole slices", width), 3.0, width, 6.0, out)
    x = np.arange(6) + 0.5
    weights = x**2 * np.exp(-x)
    found = np.bincount(out.astype(int), minlength=6)
    assert len(found) == 6
    assert stats.chisquare(found, 4000 * weights / weights.sum()).pvalue > LEVEL


def test_vectors_have_the_law_of_their_curve() -> None:
    out, root = np.empty((3000, 2)), np.array([[0.5, 0.0], [-0.4, 0.3]])
    _vectors(rng_of("boxes"), np.array([1.0, 3.0]), root, out)
    assert stats.kstest(out[:, 0], "expon").pvalue > LEVEL
    assert stats.kstest(3.0 * out[:, 1], "expon").pvalue > LEVEL


def test_a_slice_that_holds_nothing_else_leaves_the_point() -> None:
    curve, rng = _Gamma(2.0, False, 0.0), rng_of("nothing")
    assert draw_on_slice(rng, curve, 1.0, math.inf, 1.0, 0.0, math.inf) == (1.0, math.inf)
    point = np.array([1.0, 2.0])  # of a height that is no number: a box shrinks and ends too
    draw_in_box(rng, _Cone(np.array([1.0, math.nan])), point, np.eye(2), 1)
    np.testing.assert_array_equal(point, [1.0, 2.0])
