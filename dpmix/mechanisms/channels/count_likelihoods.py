"""Releases that depend on the records through their numbers in cells, as log-likelihoods of these numbers.

With c_j of the n records in cell j, the likelihood is exp(sum_j l_j(c_j)) up to a constant, so that moving a
record changes two terms. Where records are drawn from clipped and normalised noisy counts h, these are latent
too: l_j is then the log density of the noise h_j - c_j, and the released numbers r_j depend on h alone, see
`dpmix.models.counts.latent_counts`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.jit import dispatch, njit

LAPLACE, GAUSSIAN, GEOMETRIC = 0, 1, 2
NOISES = {"laplace": LAPLACE, "gaussian": GAUSSIAN, "geometric": GEOMETRIC, "discrete_gaussian": GAUSSIAN}
"""Kinds of noise by their density: given a release, a discrete Gaussian has that of a Gaussian."""


class CountsWithNoise(NamedTuple):
    """Released counts with noise: released (J,) = c + noise of a kind (LAPLACE, ..) and scale.

    The scale is that of Laplace noise, the standard deviation of Gaussian noise, and -1 / log(r) of two-sided
    geometric noise, of probabilities proportional to r^|e|.
    """

    released: Any
    noise: int
    scale: float


class SmoothedDraws(NamedTuple):
    """Draws from the cells with probabilities (1 - w) c_j / n + w / J; released (J,) numbers of them.

    slope is (1 - w) J / n, weight is w (methods, section 3).
    """

    released: Any
    slope: float
    weight: float


class PolyaDraws(NamedTuple):
    """Sequential draws from the predictive of a Dirichlet-multinomial with prior count `prior` in each cell.

    released (J,) numbers of them; p(r | c) is proportional to prod_j Gamma(a + c_j + r_j) / Gamma(a + c_j).
    """

    released: Any
    prior: float


class HiddenCounts(NamedTuple):
    """Draws from the cells with probabilities (1 - w) h_j^+ / sum h^+ + w / J, h = c + noise not released.

    Where no h_j is positive the first term is (1 - w) / J. weight w is 0 for a perturbed histogram; the noise
    is as in `CountsWithNoise`. released (J,) numbers of draws.
    """

    released: Any
    noise: int
    scale: float
    weight: float


def released(cells: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return the numbers of released records in each of `count` cells, from the cell of each (m,)."""
    return np.bincount(cells, minlength=count).astype(np.float64)


@njit
def log_noise(noise, scale, e):
    """Return the log density of the noise `e` up to a constant."""
    gap = abs(e) / scale
    return -0.5 * gap * gap if noise == GAUSSIAN else -gap


@dispatch()
def log_count(likelihood, noisy, j, c):
    """Return l_j(c) up to a constant; `noisy` (J,) are the latent noisy counts, if any."""


@dispatch()
def reach(likelihood, j):
    """Return about how far l_j lets c_j move: a scale for steps, infinite where it says nothing."""


@log_count.register
def _log_count_noisy(likelihood: CountsWithNoise, noisy, j, c):
    return log_noise(likelihood.noise, likelihood.scale, likelihood.released[j] - c)


@log_count.register
def _log_count_smoothed(likelihood: SmoothedDraws, noisy, j, c):
    r = likelihood.released[j]
    if r == 0.0:
        return 0.0
    density = likelihood.slope * c + likelihood.weight
    return r * math.log(density) if density > 0.0 else -math.inf


@log_count.register
def _log_count_polya(likelihood: PolyaDraws, noisy, j, c):
    r, start = likelihood.released[j], likelihood.prior + c
    if r <= 8.0:
        product = 1.0
        for i in range(int(r)):
            product *= start + i
        return math.log(product)
    return math.lgamma(start + r) - math.lgamma(start)


@log_count.register
def _log_count_hidden(likelihood: HiddenCounts, noisy, j, c):
    return log_noise(likelihood.noise, likelihood.scale, noisy[j] - c)


def _reach_of_noise(likelihood, j):
    return 2.0 * likelihood.scale + 1.0


def _reach_of_draws(likelihood, j):
    return math.inf


for _noise in (CountsWithNoise, HiddenCounts):
    reach.register(_reach_of_noise, _noise)
for _draws in (SmoothedDraws, PolyaDraws):
    reach.register(_reach_of_draws, _draws)


@njit
def log_likelihood(likelihood, noisy, counts):
    """Return sum_j l_j(c_j) of counts (J,), up to a constant."""
    total = 0.0
    for j in range(len(counts)):
        total += log_count(likelihood, noisy, j, counts[j])
    return total
