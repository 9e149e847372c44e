"""A fault planted on purpose, to see whether an audit would find it: half the noise, or twice the epsilon."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

from dpmix.errors import PrivacyError
from dpmix.mechanisms.binomial.curator import Binomial
from dpmix.mechanisms.curators.mechanism import LocalAdditive, Mechanism
from dpmix.mechanisms.curators.statistic import NoisyStatistic
from dpmix.mechanisms.log_moments.curator import LogMoments
from dpmix.mechanisms.perturbed_histogram.curator import PerturbedHistogram
from dpmix.mechanisms.posterior.curator import NoisyPosterior
from dpmix.mechanisms.randomized_response.curator import RandomizedResponse
from dpmix.mechanisms.smoothed_histogram.curator import SmoothedHistogram
from dpmix.mechanisms.square_wave.curator import SquareWave
from dpmix.mechanisms.wavelet.curator import Wavelet
from dpmix.synthesis.dirichlet_multinomial import DirichletMultinomial
from dpmix.synthesis.generator import Generator
from dpmix.synthesis.histogram_draws import PerturbedSynthesis, SmoothedSynthesis
from dpmix.synthesis.pitman_yor import PitmanYor

__all__ = ["faulty_generator", "faulty_mechanism"]

Faulty = tuple[str, Any]

_HALF = "noise of half the scale"
_TWICE = "twice the epsilon"


def faulty_mechanism(mechanism: Mechanism) -> Faulty:
    """Return what is wrong with a mechanism that gives away twice as much, and it; None where there is none.

    Parameters
    ----------
    mechanism : Mechanism
        Calibrated.
    """
    if isinstance(mechanism, LocalAdditive):
        return _HALF, dataclasses.replace(mechanism, scale=tuple(s / 2 for s in mechanism.scale))
    if isinstance(mechanism, Wavelet | PerturbedHistogram | NoisyStatistic | NoisyPosterior):
        return _HALF, dataclasses.replace(mechanism, s=mechanism.s / 2)
    if isinstance(mechanism, Binomial):
        w = mechanism.weight  # tanh(eps/(2 M)), of twice the epsilon
        return _TWICE, dataclasses.replace(mechanism, weight=2 * w / (1 + w * w))
    if isinstance(mechanism, SquareWave | RandomizedResponse):
        return _TWICE, dataclasses.replace(mechanism, ratio=mechanism.ratio**2)
    if isinstance(mechanism, SmoothedHistogram):
        weight = _weight(mechanism.cells, mechanism.n, mechanism.weight)
        return _TWICE, dataclasses.replace(mechanism, weight=weight)
    if isinstance(mechanism, LogMoments):
        first, second = 2 * mechanism.epsilon1, 2 * mechanism.epsilon2
        return _HALF, dataclasses.replace(mechanism, epsilon1=first, epsilon2=second)
    chosen: Any = mechanism  # by the exponential mechanism, the only one left
    try:
        return _TWICE, dataclasses.replace(chosen, epsilon=2 * chosen.epsilon)
    except PrivacyError:  # beyond what can be drawn
        return "", None


def faulty_generator(generator: Generator) -> Faulty:
    """Return what is wrong with a generator that gives away twice as much, and it.

    Parameters
    ----------
    generator : Generator
        Calibrated.
    """
    if isinstance(generator, PitmanYor):
        return "twice the records", dataclasses.replace(generator, records=2 * generator.records)
    if isinstance(generator, DirichletMultinomial):
        m = generator.records  # eps = log(1 + m/a)
        a = m / ((1 + m / generator.concentration) ** 2 - 1)
        return _TWICE, dataclasses.replace(generator, concentration=Fraction(a).limit_denominator(10**6))
    if isinstance(generator, PerturbedSynthesis | SmoothedSynthesis) and generator.noise is not None:
        half = dataclasses.replace(generator.noise, s=generator.noise.s / 2)
        return _HALF, dataclasses.replace(generator, noise=half)
    assert isinstance(generator, SmoothedSynthesis)  # the only one left
    weight = _weight(generator.cells.count, generator.n, generator.weight)
    return _TWICE, dataclasses.replace(generator, weight=weight)


def _weight(bins: int, n: int, weight: float) -> float:
    """Return the smoothing weight of twice the epsilon: eps = k log(1 + (1 - w) m/(w n))."""
    odds = (1 - weight) * bins / (weight * n)
    return bins / (bins + n * ((1 + odds) ** 2 - 1))
