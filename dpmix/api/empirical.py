"""Mean and variance of the confidential values of a column, as a release estimates them without bias.

Of a local release every record gives u with E u = y and v with E v = y^2; of a histogram the noisy counts do
together. The variance is then estimated by mean(v) - mean(u)^2, with var(u)/n added for the bias of the
square, and the standard error is that of mean(v - 2 mean(u) u) (methods, section 15).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.release import Release

__all__ = ["Moments", "moments_of"]

Floats = NDArray[np.float64]


class Moments(NamedTuple):
    """Estimates of mean and variance of a column, and the standard error of the variance (inf: unknown)."""

    mean: float
    variance: float
    error: float

    @property
    def shows_spread(self) -> bool:
        """Whether the variance is told from nothing: at least twice its standard error."""
        return math.isfinite(self.error) and self.variance >= 2.0 * self.error and self.variance > 0.0


def moments_of(release: Release, column: int, pair: tuple[float, float] | None) -> Moments | None:
    """Return the moments of a released column, in the units of the data.

    Parameters
    ----------
    release : Release
        Of a kind that mixtures are fitted to.
    column : int
        Which of its columns.
    pair : (lo, hi) or None
        Public bounds, which all but additive noise have.

    Returns
    -------
    Moments or None
        None where the release has none that are unbiased, as binomial counts of one trial.
    """
    mechanism, values = release.mechanism, release.values
    if release.kind in ("laplace", "gaussian", "none"):
        scale = release.scales[column] if release.scales else 0.0
        noise = (2.0 if release.kind == "laplace" else 1.0) * scale**2
        z = np.asarray(values[:, column])
        middle = float(np.mean(z))  # squares of large numbers would lose what is looked for
        return _shifted(_per_record(z - middle, (z - middle) ** 2 - noise), middle, 1.0)
    assert pair is not None  # these have their bounds
    lo, width = pair[0], pair[1] - pair[0]
    found: Moments | None
    if release.kind == "binomial":
        found = _binomial(values[:, 0], int(mechanism["trials"]), float(mechanism["weight"]))
    elif release.kind == "wavelet":
        found = _wavelet(values, int(mechanism["levels"]))
    elif release.kind == "smoothed_histogram":
        found = _smoothed((values[:, 0] - lo) / width, float(mechanism["weight"]))
    else:
        found = _perturbed(values[:, 0], release.n, mechanism)
    return None if found is None else _shifted(found, lo, width)


def _shifted(found: Moments, lo: float, width: float) -> Moments:
    return Moments(lo + width * found.mean, width**2 * found.variance, width**2 * found.error)


def _per_record(u: Floats, v: Floats) -> Moments:
    """Return the moments given an unbiased estimate of y and of y^2 for each record."""
    n, mean = len(u), float(np.mean(u))
    if n < 2:
        return Moments(mean, 0.0, math.inf)
    variance = float(np.mean(v)) - mean**2 + float(np.var(u, ddof=1)) / n
    return Moments(mean, variance, float(np.std(v - 2.0 * mean * u, ddof=1)) / math.sqrt(n))


def _binomial(successes: Floats, trials: int, weight: float) -> Moments | None:
    """Return the moments given Z ~ Binomial(M, p), p = 1/2 + w (y - 1/2): E Z (Z - 1)/(M (M - 1)) = p^2."""
    if trials < 2:
        return None
    p = successes / trials
    square = successes * (successes - 1.0) / (trials * (trials - 1.0))
    least = 0.5 * (1.0 - weight)
    return _per_record((p - least) / weight, (square - 2.0 * least * p + least**2) / weight**2)


def _cells(count: int) -> tuple[Floats, Floats]:
    """Return the means of y and y^2 over equal cells of [0, 1]."""
    middle = (np.arange(count) + 0.5) / count
    return middle, middle**2 + 1.0 / (12.0 * count**2)


def _wavelet(values: Floats, levels: int) -> Moments:
    """Return the moments by y and y^2, averaged over the finest cells, as sums of Haar coefficients."""
    cells = 2 ** (levels + 1)
    first, second = _cells(cells)

    def estimate(f: Floats) -> Floats:
        total = np.full(len(values), float(np.mean(f)))
        place = 0
        for j in range(levels + 1):
            halves = f.reshape(2**j, 2, -1).sum(axis=2)
            loadings = 2.0 ** (0.5 * j) * (halves[:, 0] - halves[:, 1]) / cells
            total += values[:, place : place + 2**j] @ loadings
            place += 2**j
        return total

    return _per_record(estimate(first), estimate(second))


def _smoothed(draws: Floats, weight: float) -> Moments:
    """Return the moments given draws that are uniform with probability w, else from the histogram."""
    if weight >= 1.0:
        return Moments(0.5, 0.0, math.inf)
    rest = 1.0 - weight
    return _per_record((draws - 0.5 * weight) / rest, (draws**2 - weight / 3.0) / rest)


def _perturbed(counts: Floats, n: int, mechanism: Any) -> Moments:
    first, second = _cells(len(counts))
    shares = counts / n
    mean = float(first @ shares)
    variance = float(second @ shares) - mean**2
    loadings = second - 2.0 * mean * first
    kurtosis = max(float((first - mean) ** 4 @ shares) - variance**2, 0.0)
    noise = _noise_variance(str(mechanism["noise"]), float(mechanism["scale"][0]))
    error = math.sqrt(kurtosis / n + noise * float(loadings @ loadings) / n**2)
    # the square of a noisy mean is too large by the variance of that noise
    return Moments(mean, variance + noise * float(first @ first) / n**2, error)


def _noise_variance(kind: str, scale: float) -> float:
    if kind == "laplace":
        return 2.0 * scale**2
    if kind == "geometric":
        return 0.5 / math.sinh(0.5 / scale) ** 2 if scale > 1e-3 else 0.0
    return scale**2
