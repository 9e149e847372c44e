"""Expected Hellinger errors of released posteriors, by sums over all outputs or by quadrature."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpmix.mechanisms.posterior.calibrations import largest
from dpmix.mechanisms.posterior.certificate import neighbours
from dpmix.mechanisms.posterior.curator import HellingerPosterior
from dpmix.mechanisms.posterior.released_posterior import (
    GeometricPosterior,
    LaplacePosterior,
    PosteriorRelease,
)
from dpmix.posteriors.hellinger_law import ExponentialMechanism

__all__ = ["by_scale", "distances", "expected", "expected_of_law"]

Floats = NDArray[np.float64]
Counts = Sequence[int]

LARGEST_THREE = 5000
"""Records of three categories up to which all posteriors are summed over: 12.5 million."""
_NODES = 400
_FAR = 60.0  # scales of Laplace noise beyond which nothing is left


def distances(prior: Sequence[float], counts: Counts, others: Floats) -> Floats:
    """Return the Hellinger distances of posteriors given other counts, shape (k, d), real numbers allowed."""
    a, b = np.add(prior, counts), np.add(prior, others)
    overlap = (gammaln((a + b) / 2) - gammaln(a) / 2 - gammaln(b) / 2).sum(axis=-1)
    found: Floats = np.sqrt(np.maximum(-np.expm1(overlap), 0.0))
    return found


def expected(made: PosteriorRelease, counts: Counts) -> float | None:
    """Return the expected error of a release at some counts; None where it takes too many outputs."""
    if isinstance(made, HellingerPosterior):
        return expected_of_law(made.law, counts)
    if len(counts) > 2:
        return None
    if isinstance(made, GeometricPosterior):
        return _geometric(made, counts)
    assert isinstance(made, LaplacePosterior)  # there are no others
    return _laplace(made, counts)


def expected_of_law(law: ExponentialMechanism, counts: Counts) -> float | None:
    """Return the expected error of the exponential mechanism; None beyond 5000 records or 3 categories."""
    of = law.posteriors
    n, d = of.n, of.dimension
    if d == 2:
        first = np.arange(n + 1.0)
        weights = law.weights(counts)
        return float(weights @ distances(of.prior, counts, np.stack([first, n - first], 1)) / weights.sum())
    if d > 3 or n > LARGEST_THREE:
        return None
    parts = []
    for entry, c in zip(of.prior, counts, strict=True):
        a, b = entry + c, entry + np.arange(n + 1)
        parts.append(gammaln(a) / 2 + gammaln(b) / 2 - gammaln((a + b) / 2))
    rate, total, error = law.rate(counts), 0.0, 0.0
    for r in range(n + 1):
        apart = parts[0][r] + parts[1][: n - r + 1] + parts[2][: n - r + 1][::-1]
        far = np.sqrt(np.maximum(-np.expm1(-apart), 0.0))
        weights = np.exp(-rate * far)
        total += float(weights.sum())
        error += float(weights @ far)
    return error / total


def by_scale(made: HellingerPosterior) -> ExponentialMechanism:
    """Return the theorem's law with the largest scale of its exponent that is certified, gamma left alone."""
    family = neighbours(made.posteriors)
    assert family is not None  # only asked for where there is a certificate

    def law(scale: float) -> ExponentialMechanism:
        return dataclasses.replace(made.law, exponent=scale * made.epsilon / 2)

    def meets(scale: float) -> bool:
        return bool(family.certified(law(scale), made.epsilon)[0] <= made.delta)

    scale = largest(meets, 0.5, 4.0, start=1.9, tolerance=1e-4)
    assert scale is not None  # the theorem's own scale meets it
    return law(scale)


def _geometric(made: GeometricPosterior, counts: Counts) -> float:
    n, x, fall = made.n, counts[0], math.exp(-1 / made.s)
    first = np.arange(n + 1.0)
    shares = (1 - fall) / (1 + fall) * fall ** np.abs(first - x)
    shares[0], shares[-1] = fall**x / (1 + fall), fall ** (n - x) / (1 + fall)  # clipped
    return float(shares @ distances(made.prior, counts, np.stack([first, n - first], 1)))


def _laplace(made: LaplacePosterior, counts: Counts) -> float:
    n, x, s = made.n, counts[0], made.s
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    total = 0.0
    for way, room in ((-1, x), (1, n - x)):
        reach = min(room, _FAR * s)
        far = (nodes + 1) / 2 * reach
        first = x + way * far
        density = np.exp(-far / s) / (2 * s) * weights * reach / 2
        total += float(density @ distances(made.prior, counts, np.stack([first, n - first], 1)))
        end = np.array([[float(x + way * room), float(n - x - way * room)]])
        total += math.exp(-room / s) / 2 * float(distances(made.prior, counts, end)[0])  # clipped
    return total
