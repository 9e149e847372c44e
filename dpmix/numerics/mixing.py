"""Dirichlet- and Pitman-Yor-process mixing: predictive weights, draws of the weights, the concentration.

Prior on partitions with block sizes n_1..n_k (Pitman 1995):
``prod_{j=1}^{k-1} (alpha + j d) / (alpha + 1)_{n-1} * prod_h (1 - d)_{n_h - 1}``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.numerics.jit import njit
from dpmix.numerics.slices import draw_on_slice, log_height


class PitmanYor(NamedTuple):
    """Pitman-Yor process; discount 0 is the Dirichlet process.

    `concentration` holds when `shape` and `rate` are 0; otherwise it has a Gamma(shape, rate) prior.
    """

    concentration: float
    discount: float
    shape: float = 0.0
    rate: float = 0.0


def initial_concentration(mixing: PitmanYor) -> float:
    """Return the fixed concentration, or the prior mean where it is random."""
    return mixing.shape / mixing.rate if mixing.shape > 0.0 else mixing.concentration


@njit
def opening_mass(alpha, discount, k):
    """Return the predictive weight alpha + k d of a new component behind k others.

    The first record opens one, whatever the weight: where alpha is not above 0 it is 1.
    """
    mass = alpha + k * discount
    return mass if k > 0 or mass > 0.0 else 1.0


@njit
def draw_measure(rng, alpha, discount, counts, k, weights):
    """Draw (w_1..w_k, w_0) ~ Dirichlet(n_1 - d, .., n_k - d, alpha + k d): P given a partition (Pitman 1996).

    `counts` (>= k,) holds the block sizes; `weights` (>= k,) receives w_1..w_k; the leftover w_0 is returned.
    Without blocks all is left over, also where the concentration is so small that its gamma underflows, or
    not above 0.
    """
    if k == 0 and not alpha > 0.0:
        return 1.0
    total = 0.0
    for h in range(k):
        weights[h] = rng.standard_gamma(counts[h] - discount)
        total += weights[h]
    left = rng.standard_gamma(alpha + k * discount)
    total += left
    for h in range(k):
        weights[h] /= total
    return left / total if total > 0.0 else 1.0


class _LogConcentration(NamedTuple):
    """What the log of the concentration is drawn given: n records in k blocks.

    Where `counts` is not empty: the numbers of records at the sticks of a truncated measure, integrated out.
    """

    mixing: PitmanYor
    n: int
    k: int
    counts: Any


@log_height.register
def _log_density(curve: _LogConcentration, log_alpha):
    mixing, n, counts = curve.mixing, curve.n, curve.counts
    d = mixing.discount
    alpha = math.exp(log_alpha)
    value = mixing.shape * log_alpha - mixing.rate * alpha
    if len(counts) == 0:
        value += math.lgamma(alpha + 1.0) - math.lgamma(alpha + n)
        for j in range(1, curve.k):
            value += math.log(alpha + j * d)
        return value
    after = float(n)
    for h in range(len(counts) - 1):
        if after <= 0.0:
            break
        after -= counts[h]
        b = alpha + (h + 1) * d
        value += math.lgamma(b + after) - math.lgamma(b + after + 1.0 - d + counts[h])
        value += math.lgamma(b + 1.0 - d) - math.lgamma(b)
    return value


@njit
def _slice(rng, mixing, alpha, n, k, counts):
    """Move the concentration by slice sampling of its logarithm, stepping out by 1."""
    curve, x = _LogConcentration(mixing, n, k, counts), math.log(alpha)
    level = log_height(curve, x) - rng.standard_exponential()
    y, _ = draw_on_slice(rng, curve, x, level, 1.0)
    return math.exp(y)


@njit
def draw_concentration(rng, mixing, alpha, n, k):
    """Move the concentration given `k` blocks of `n` records, where it has a Gamma prior.

    Escobar and West (1995) at discount 0; else slice sampling of its logarithm.
    """
    if mixing.shape <= 0.0:
        return alpha
    if mixing.discount > 0.0:
        return _slice(rng, mixing, alpha, n, k, np.empty(0, dtype=np.int64))
    eta = rng.beta(alpha + 1.0, float(n))
    rate = mixing.rate - math.log(eta)
    odds = (mixing.shape + k - 1.0) / (n * rate)
    shape = mixing.shape + k if rng.random() * (1.0 + odds) < odds else mixing.shape + k - 1.0
    return rng.standard_gamma(shape) / rate


@njit
def draw_concentration_truncated(rng, mixing, alpha, n, counts):
    """Move the concentration, where it has a Gamma prior, given the records at each truncated stick."""
    if mixing.shape <= 0.0:
        return alpha
    return _slice(rng, mixing, alpha, n, 0, counts)


def truncation_error(mixing: PitmanYor, truncation: int, n: int) -> float:
    """Bound the expected number of records beyond the first `truncation` - 1 sticks.

    ``n prod_{h<H} (alpha + h d) / (alpha + 1 + (h - 1) d)`` (Ishwaran and James 2001); a random concentration
    is taken at its prior mean plus three standard deviations.
    """
    alpha = mixing.concentration
    if mixing.shape > 0.0:
        alpha = (mixing.shape + 3.0 * math.sqrt(mixing.shape)) / mixing.rate
    h = np.arange(1, truncation)
    d = mixing.discount
    return float(n * np.exp(np.sum(np.log(alpha + h * d) - np.log(alpha + 1.0 + (h - 1) * d))))
