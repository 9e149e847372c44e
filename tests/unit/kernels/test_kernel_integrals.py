"""Cut-off gamma integrals and their tables, against quadrature and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from dpmix.kernels.normal.truncated_nig import NO_INTEGRALS, integrals, log_integral_alone
from dpmix.kernels.normal.truncated_nig import log_cut_mass as log_integral
from dpmix.numerics.special import log_gamma_p

FIRST, COUNT = 2.7, 1500
SHARES = (1e-3, 0.05, 0.3, 0.6, 0.9, 0.97, 1.0, 1.03, 1.1, 1.3, 1.9, 4.0, 30.0)  # x / a


def exact(a: float, x: float) -> float:
    """Return E_a(x): with u = e^-v by Gauss-Legendre quadrature on 40 panels, by SciPy where P is safe."""
    if x > a:
        return float(special.gammaln(a + 1.0) - a * math.log(x) + math.log(special.gammainc(a, x)))
    nodes, weights = np.polynomial.legendre.leggauss(80)
    end = 60.0 / max(a - x, 0.2 * math.sqrt(a))
    width = end / 40
    v = (np.arange(40)[:, None] + 0.5 * (nodes + 1.0)) * width
    inside = np.exp(-a * v - x * np.expm1(-v))
    return math.log(a * 0.5 * width * float((inside * weights).sum())) - x


@pytest.mark.parametrize("row", [0, 1, 2, 7, 40, 333, 1499])
def test_integral_is_exact(row: int) -> None:
    """Within rounding of E itself, which is of the size of x or a."""
    table, a = integrals(FIRST, COUNT), FIRST + 0.5 * row
    for share in SHARES:
        right = exact(a, share * a)
        limit = 2e-12 + 4e-15 * abs(right)
        assert abs(log_integral(table, row, a, share * a) - right) < limit, share
        assert abs(log_integral_alone(a, share * a) - right) < limit, share


def test_pieces_meet() -> None:
    """No jump where one piece ends and the next begins, nor where the table ends."""
    table = integrals(FIRST, COUNT)
    for row in (0, 5, 100, 1499):
        a, length = FIRST + 0.5 * row, 1.0 / table[1 + row, 2]
        for piece in range(1, int(table[1 + row, 1]) + 1):
            below, above = (log_integral(table, row, a, piece * length * (1.0 + s)) for s in (-1e-15, 1e-15))
            assert abs(above - below) < 3e-12 + 1e-14 * abs(above), (row, piece)


def test_small_shapes_beyond_the_table_are_computed_alone() -> None:
    table = integrals(FIRST, 3)
    assert log_integral(table, 3, FIRST + 1.5, 2.0) == log_integral_alone(FIRST + 1.5, 2.0)
    for a in (FIRST, 900.0):
        assert log_integral(NO_INTEGRALS, 3000, a, 0.8 * a) == log_integral_alone(a, 0.8 * a)


@pytest.mark.parametrize("a", [64.0, 100.7, 2051.2, 3e4, 4e5])
def test_large_shapes_beyond_the_table_are_exact(a: float) -> None:
    """Within rounding of E, and within 1e-10 of the integral itself where E can be that exact."""
    table = integrals(FIRST, 3)
    root = math.sqrt(a)
    places = [share * a for share in (*SHARES, 0.3199, 0.3201)]
    places += [a + step * root for step in (-9.0, -3.0, -0.5, 0.5, 3.0, 6.0, 12.0, 12.5)]
    for x in (place for place in places if place > 0.0):
        right = exact(a, x)
        error = abs(log_integral(table, 10**9, a, x) - right)
        assert error < 2e-12 + 4e-15 * abs(right), x / a


@pytest.mark.parametrize("a", [0.6, 3.0, 9.9, 10.1, 250.0, 4000.0])
def test_log_gamma_p_is_exact_in_both_tails(a: float) -> None:
    for share in SHARES:
        x = share * a
        right = exact(a, x) + a * math.log(x) - math.lgamma(a + 1.0)
        scale = max(1.0, abs(right), a * 1e-2)
        assert abs(log_gamma_p(a, x) - right) < 1e-12 * scale, share
