"""Normal kernel under Gaussian noise with a base measure that makes the release itself conjugate.

Beraha, Favaro and Rao (2024), section 3.3: with tau2 = sigma2 + eta^2 the variance of a released value within
a component, G0 = N(mu | mu0, tau2 / lam) IG(tau2 | a, b) truncated to tau2 >= eta^2. The release is worked as
if it were the records (`NoNoise`). Theta = (mean, sigma2), the parameters of Y.

``E_a(x) = log(a int_0^1 u^(a-1) e^(-x u) du)`` is, up to constants, the log mass that InverseGamma(a, b) has
above a floor, for x = b / floor. It is ``log Gamma(a+1) - a log x + log P(a, x)``, but smooth and without
cancellation where P is small. Its singularities nearest to the real line are some 2.8 sqrt(a) away from it:
polynomials of degree 9 on pieces of length sqrt(a) / 2 give it to 1e-12. From where 1 - P < 1e-17 on no table
is needed. Shapes that the table does not reach share a small one (`log_ratio_large`), which is slower.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from dpmix.kernels.kernel_functions import (
    draw_posterior,
    draw_prior,
    draw_record,
    log_factor,
    log_integral,
    tally,
    value,
)
from dpmix.kernels.learned_base import keep_fixed
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, add_gap, posterior
from dpmix.numerics.jit import inlined, njit
from dpmix.numerics.special import (
    COEFFICIENTS,
    LARGE,
    draw_gamma_below,
    log_gamma_p,
    log_gamma_p_tabulated,
    log_power,
    log_ratio_large,
    series,
    tabulate,
    tabulate_large,
)

# Integrals of inverse gamma densities that are cut off, tabulated

DEGREE = 9
NO_INTEGRALS: NDArray[np.float64] = np.zeros((1, DEGREE + 1))

_PIECE = 0.5  # length of a piece in units of sqrt(a)
_CERTAIN = 40.0  # 1 - P below exp(-40) is nothing
_START, _PIECES, _WIDTH, _HEAD = 0, 1, 2, 3  # columns of a shape's row


def _interpolation() -> NDArray[np.float64]:
    """Return the matrix (10, 10) from values at the Chebyshev points to coefficients in powers."""
    m = DEGREE + 1
    angles = np.pi * (np.arange(m) + 0.5) / m
    to_series = 2.0 / m * np.cos(np.outer(np.arange(m), angles))
    to_series[0] *= 0.5
    powers = np.zeros((m, m))
    for j in range(m):
        powers[: j + 1, j] = chebyshev.cheb2poly(np.eye(m)[j][: j + 1])
    return np.ascontiguousarray(powers @ to_series)


@njit
def _beyond(a):
    """Return an x from which on 1 - P(a, x) is nothing.

    It is below exp(-a (x/a - 1 - log(x/a))), hence below exp(-(x - a)^2 / (2 x)) = exp(-40) there.
    """
    return a + _CERTAIN + math.sqrt(_CERTAIN * (_CERTAIN + 2.0 * a))


@njit
def log_integral_alone(a, x):
    """Return E_a(x) without a table."""
    if x < a + 1.0:
        return math.log(series(a, x)) - x
    return log_gamma_p(a, x) - log_power(a, x) - x


@njit
def _value_in_piece(remainders, row, a, x):
    """Return E_a(x) from a table of remainders."""
    if x < 0.32 * a:
        return math.log(series(a, x)) - x
    return log_gamma_p_tabulated(remainders, row, a, x) - log_power(a, x) - x


@njit
def _fill(first, count, remainders, interpolation, table):
    m = DEGREE + 1
    values, nodes = np.empty(m), np.empty(m)
    for i in range(m):
        nodes[i] = math.cos(math.pi * (i + 0.5) / m)
    for row in range(count):
        a = first + 0.5 * row
        half = 0.5 / table[row, _WIDTH]
        start = int(table[row, _START])
        for piece in range(int(table[row, _PIECES])):
            for i in range(m):
                values[i] = _value_in_piece(remainders, row, a, half * (2 * piece + 1 + nodes[i]))
            # a straight line apart, so that what is interpolated is small and rounds little
            slope = (values[0] - values[m - 1]) / (nodes[0] - nodes[m - 1])
            middle = 0.5 * (values[0] + values[m - 1])
            for j in range(m):
                total = 0.0
                for i in range(m):
                    total += interpolation[j, i] * (values[i] - middle - slope * nodes[i])
                table[start + piece, j] = total
            table[start + piece, 0] += middle
            table[start + piece, 1] += slope


@functools.lru_cache(maxsize=4)
def integrals(first: float, count: int) -> NDArray[np.float64]:
    """Return a table of E_a for the shapes a = first, first + 1/2, .., `count` of them; shape (rows, 10).

    Its first row holds `count`. The next ones tell of each shape the first row of its pieces, their number,
    the inverse of their length, and log Gamma(a + 1). Then come the pieces: coefficients of the powers of t,
    which goes from -1 to 1 over a piece. The last 16 rows are for all larger shapes.
    """
    a = first + 0.5 * np.arange(count)
    widths = 1.0 / (_PIECE * np.sqrt(a))
    pieces = np.ceil(np.array([_beyond(float(shape)) for shape in a]) * widths)
    table = np.zeros((1 + count + int(pieces.sum()) + COEFFICIENTS, DEGREE + 1))
    heads = table[1 : 1 + count]
    heads[:, _START] = count + np.cumsum(pieces) - pieces
    heads[:, _PIECES], heads[:, _WIDTH] = pieces, widths
    heads[:, _HEAD] = [math.lgamma(shape + 1.0) for shape in a]
    table[0, 0] = count
    _fill(first, count, tabulate(first, count), _interpolation(), table[1:])
    large = tabulate_large()
    table[-COEFFICIENTS:, : large.shape[1]] = large
    return table


@njit
def _beyond_table(table, a, x):
    """Return E_a(x) for a shape that the table does not reach."""
    if a >= LARGE and len(table) > COEFFICIENTS:
        return log_ratio_large(table, len(table) - COEFFICIENTS, a, x)
    return log_integral_alone(a, x)


@inlined
def log_cut_mass(table, row, a, x):
    """Return E_a(x), from row `row` of a table made for shape `a`, if it reaches so far."""
    if row >= table[0, 0]:
        return _beyond_table(table, a, x)
    row += 1
    place = x * table[row, _WIDTH]
    if place >= table[row, _PIECES]:
        return table[row, _HEAD] - a * math.log(x)
    piece = int(place)
    c = 1 + int(table[row, _START]) + piece
    t = 2.0 * (place - piece) - 1.0
    t2 = t * t
    t4 = t2 * t2
    low = (table[c, 0] + t * table[c, 1]) + t2 * (table[c, 2] + t * table[c, 3])
    high = (table[c, 4] + t * table[c, 5]) + t2 * (table[c, 6] + t * table[c, 7])
    return low + t4 * (high + t4 * (table[c, 8] + t * table[c, 9]))


# The kernel

LARGEST = 4096  # values of a component that the table reaches to: 30 MB


class NormalTruncatedNIG(NamedTuple):
    """tau2 ~ InverseGamma(a, b) given tau2 >= floor, mu | tau2 ~ N(mu0, tau2 / lam); floor = eta^2.

    `table` has the shapes a + count / 2 that are to be fast; `prepared` makes it.
    """

    mu0: float
    lam: float
    a: float
    b: float
    floor: float
    table: Any = NO_INTEGRALS

    def prepared(self, n: int) -> NormalTruncatedNIG:
        """Return the kernel with a table for components of up to `n` values, at most 4096."""
        return self._replace(table=integrals(self.a, min(n, LARGEST) + 1))

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a component's parameters."""
        return {"mean": (), "variance": ()}

    @property
    def constants(self) -> dict[str, float]:
        """What a chains file holds of the base measure."""
        return dict(zip(("base_mu0", "base_lambda", "base_a", "base_b"), self[:4], strict=True))


@njit
def _draw(kernel, rng, mu, lam, a, b, theta, h):
    total = b / draw_gamma_below(rng, a, b / kernel.floor)
    theta[VARIANCE, h] = max(total - kernel.floor, 1e-12 * kernel.floor)
    theta[MEAN, h] = mu + math.sqrt(total / lam) * rng.standard_normal()


@draw_prior.register
def _draw_prior(kernel: NormalTruncatedNIG, rng, theta, h):
    _draw(kernel, rng, kernel.mu0, kernel.lam, kernel.a, kernel.b, theta, h)


@draw_posterior.register
def _draw_posterior(kernel: NormalTruncatedNIG, rng, count, stats, h, theta, tuning):
    mu, lam, a, b = posterior(kernel, count, stats[0, h], stats[1, h], theta[MEAN, h])
    _draw(kernel, rng, mu, lam, a, b, theta, h)


tally.register(add_gap, NormalTruncatedNIG)


@draw_record.register
def _draw_record(kernel: NormalTruncatedNIG, rng, theta, h):
    """Draw a released value: the record that this kernel is the distribution of."""
    return theta[MEAN, h] + math.sqrt(theta[VARIANCE, h] + kernel.floor) * rng.standard_normal()


@value.register
def _value(kernel: NormalTruncatedNIG, y):
    return y


@log_integral.register
def _log_integral(kernel: NormalTruncatedNIG, count, b):
    return log_cut_mass(kernel.table, count, kernel.a + 0.5 * count, b / kernel.floor)


@log_factor.register
def _log_factor(kernel: NormalTruncatedNIG, count):
    a = kernel.a + 0.5 * count
    return -a * math.log(kernel.floor) - math.log(a)


keep_fixed(NormalTruncatedNIG)
