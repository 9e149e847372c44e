"""What noise on counts costs, and discrete Gaussian noise as mechanisms state and calibrate it."""

from __future__ import annotations

import math

from dpmix.mechanisms.curators.statistic import ROUNDED_UP
from dpmix.mechanisms.noisy_counts.section import NoisyCountsMechanism
from dpmix.mechanisms.perturbed_histogram.section import PerturbedHistogramMechanism
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.conversions import laplace_rho, response_rho
from dpmix.privacy.discrete_gaussian_cost import discrete_gaussian_epsilon, discrete_gaussian_sigma
from dpmix.privacy.noise import DiscreteGaussianNoise

__all__ = ["noise_rho", "of_discrete_gaussian", "sigma_for", "stated_discrete_gaussian"]


def noise_rho(noise: str, scale: float, features: int = 1, granularity: float = 0.0) -> float:
    """Return the zCDP of noise on the counts of some features, rounded up.

    Parameters
    ----------
    noise : {"laplace", "geometric"}
        Distribution of the noise.
    scale : float
        Its scale.
    features : int
        Number of features K.
    granularity : float
        By how much rounding to a grid may add to a change.
    """
    each = (1 + granularity) / scale
    return 2 * features * (response_rho(each) if noise == "geometric" else laplace_rho(each)) * ROUNDED_UP


def of_discrete_gaussian(noise: DiscreteGaussianNoise, moved: int, delta: float | None) -> Guarantee:
    """Return rho by the noise library's own privacy map, and epsilon at a delta where one is wanted.

    Parameters
    ----------
    noise : DiscreteGaussianNoise
    moved : int
        How many counts a replaced record moves by one.
    delta : float or None
    """
    return _guarantee(noise.scale, noise.rho, moved, delta)


def stated_discrete_gaussian(sigma: float, moved: int, delta: float | None) -> Guarantee:
    """Return the guarantee of noise drawn elsewhere, by formula."""
    return _guarantee(sigma, moved / (2 * sigma * sigma) * ROUNDED_UP, moved, delta)


def _guarantee(sigma: float, rho: float, moved: int, delta: float | None) -> Guarantee:
    if delta is None:
        return Guarantee(None, None, rho, "global")
    return Guarantee(discrete_gaussian_epsilon(sigma, moved, delta), delta, rho, "global")


def sigma_for(spec: PerturbedHistogramMechanism | NoisyCountsMechanism, moved: int) -> float:
    """Return the sigma that a spec asks for, by its scale, its rho or its (epsilon, delta).

    Raises
    ------
    PrivacyError
        When it cannot be met.
    """
    if spec.scale is not None:
        return spec.scale
    if spec.rho is not None:
        return math.sqrt(0.5 * moved / spec.rho)
    assert spec.epsilon is not None  # the spec states one of the three
    assert spec.delta is not None
    return discrete_gaussian_sigma(spec.epsilon, spec.delta, moved)
