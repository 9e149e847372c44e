"""The proved calibration: what any (gamma, scale of the exponent) guarantees, and the pair of least error.

Methods, section 14; the written proof is in docs/posterior-mechanism.md, whose symbols are used here. With
a = c eps/2, c the scale of the exponent, and |R| posteriors, the exponential mechanism on H/S is
(c eps + (e^gamma - 1) log(|R|/delta), delta)-DP. What is drawn from has its distances from tables in fixed
point, its sensitivities in floating point, and whole numbers as weights: `Proof` charges for all three.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from dpmix.errors import PrivacyError
from dpmix.mechanisms.posterior.certificate import can_be_certified, neighbours
from dpmix.mechanisms.posterior.certified_search import least
from dpmix.mechanisms.posterior.expected_errors import mean_errors, some_databases
from dpmix.posteriors.hellinger_law import ROUNDING, ExponentialMechanism, Posteriors, weight_bits

__all__ = ["Proof", "Proved", "proved"]

_WEIGHTS = 2.0**-38
"""u: log of a weight before rounding down, against its exact value. An exponent is at most 700; it and its
exponential are known to 2^-48 (`dpmix.posteriors.weight_loops`)."""
_DELTA = 1 - 2.0**-20
"""Share of delta that is left to the proof: rounding weights down takes 2^-21 of it (`weight_bits`)."""
_FLOATS = 2.0**-44
"""Relative error of sensitivities and rates in doubles, and more."""
_WORST = 2.0**-8
_LOGITS = np.arange(-2.0, 5.1)  # of c


@dataclass(frozen=True)
class Proof:
    """What is proved of the laws on some posteriors at some delta.

    Parameters
    ----------
    posteriors : Posteriors
        All that can be released.
    delta : float
        Of the guarantee.
    """

    posteriors: Posteriors
    delta: float

    @property
    def log_ratio(self) -> float:
        """log(|R|/delta), with what is left of delta."""
        return math.log(self.posteriors.size) - math.log(self.delta * _DELTA)

    @functools.cached_property
    def apart(self) -> tuple[float, float]:
        """How much more than the smooth sensitivity neighbours' distances differ, and what to add to gamma.

        Both come of rounding. A step of the tables is known to `error` units, g of a neighbour to twice that.
        A posterior that is m records away in some category is apart by m^2 `nearest` units at least, known to
        4 (d - 1) m error, which moves its distance by at most 2 (d - 1) error/nearest of any sensitivity.

        Raises
        ------
        PrivacyError
            When the tables do not tell neighbours well enough apart.
        """
        of = self.posteriors
        error = 0.5 + math.ldexp(of.inexact, of.bits)
        nearest = float(np.sort(of.steps.min(axis=1))[1]) - 2 * error
        if nearest <= 0 or (lost := 4 * (of.dimension - 1) * error / nearest) > _WORST:
            raise PrivacyError(
                f"posteriors of {of.n} records in {of.dimension} categories are too close to be told apart "
                "by calibration: proved; use method: geometric"
            )
        wide = (1 + 2 * lost + 2 * error / nearest + _FLOATS) / ROUNDING
        return max(wide, 1.0), 4 * error / nearest + _FLOATS

    def epsilon(self, gamma: float, exponent: float) -> float:
        """Return the epsilon at which a law is proved to have this delta.

        Parameters
        ----------
        gamma : float
            Of the smooth sensitivity.
        exponent : float
            a, half of the epsilon of the exponential mechanism.
        """
        wide, more = self.apart
        found = 2 * exponent * wide + math.expm1(gamma + more) * self.log_ratio + 4 * _WEIGHTS
        return found * (1 + _FLOATS)

    def gamma(self, epsilon: float, scale: float) -> float:
        """Return the largest gamma with which a scale of the exponent meets epsilon; 0 or less for none.

        Parameters
        ----------
        epsilon : float
            Wanted.
        scale : float
            c, between 0 and 1.
        """
        wide, more = self.apart
        left = epsilon * (1 - 2 * _FLOATS) - 4 * _WEIGHTS - scale * epsilon * wide
        return (math.log1p(left / self.log_ratio) - more) * (1 - _FLOATS) if left > 0 else 0.0


@dataclass(frozen=True)
class Proved:
    """A law whose guarantee is proved.

    Parameters
    ----------
    gamma : float
        Of the smooth sensitivity.
    exponent_scale : float
        c; the exponent is c eps/2.
    epsilon : float
        What is proved at the delta asked for; at most what was asked for.
    posteriors : int
        |R|.
    error : float
        Expected Hellinger distance between released and true posterior, the mean over all databases of n
        records, each table of counts counted once; of a sample of them where they are many.
    """

    gamma: float
    exponent_scale: float
    epsilon: float
    posteriors: int
    error: float


@functools.lru_cache(maxsize=16)
def proved(prior: tuple[float, ...], n: int, epsilon: float, delta: float) -> Proved:
    """Return the proved calibration of least expected error; it depends on these public numbers alone.

    Raises
    ------
    PrivacyError
        When none is proved.
    """
    of = Posteriors(prior, n)
    bits = weight_bits(epsilon, delta, of.size)
    proof = Proof(of, delta)
    family = neighbours(of) if can_be_certified(of) else None
    rows = some_databases(of)

    def error_at(logit: float) -> float:
        scale = 1 / (1 + math.exp(-logit))
        gamma = proof.gamma(epsilon, scale)
        if not gamma > 0:
            return math.inf
        law = ExponentialMechanism(of, gamma, scale * epsilon / 2, bits)
        return mean_errors(law, rows) if family is None else family.error(law)

    logit = least(error_at, _LOGITS)
    scale = 1 / (1 + math.exp(-logit))
    gamma, error = proof.gamma(epsilon, scale), error_at(logit)
    if not gamma > 0 or not (actual := proof.epsilon(gamma, scale * epsilon / 2)) <= epsilon:
        raise PrivacyError(
            f"mechanism.calibration: proved meets epsilon = {epsilon:g} and delta = {delta:g} with no scale "
            "of the exponent; use a larger epsilon, or method: geometric"
        )
    return Proved(gamma, scale, actual, of.size, error)
