"""Fisher information that a release has about the masses of fine cells of y, at a population.

With p the masses of B cells (sum 1), a release of n records with outputs j of probability g = T p has n T'
diag(1/g) T. Additive noise has its outputs in fine cells of z; those of a wavelet are drawn, for g is a
density over many numbers. A histogram of all records is about normal given p, with mean E p (E adds cells to
bins) and covariance V = sampling plus noise: E'V^-1 E.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpmix.errors import SpecError
from dpmix.mechanisms.binomial.law import BinomialLaw
from dpmix.mechanisms.laws.every import Law
from dpmix.mechanisms.laws.histogram import HistogramLaw
from dpmix.mechanisms.laws.noise_laws import noise_variance
from dpmix.mechanisms.perturbed_histogram.law import PerturbedHistogramLaw
from dpmix.mechanisms.smoothed_histogram.law import SmoothedHistogramLaw
from dpmix.mechanisms.square_wave.law import SquareWaveLaw
from dpmix.mechanisms.wavelet.law import WaveletLaw
from dpmix.numerics.equal_cells import cell_of

__all__ = ["information", "knows", "noise_scale"]

Floats = NDArray[np.float64]

_NODES = 4  # of y within a cell
_FINE = 16.0  # cells of z to a noise scale
_TAILS = {"laplace": 25.0, "gaussian": 8.0}  # noise scales beyond the places of y
_MOST_OUTPUTS = 8_192
_DRAWS = 40_000
_PIECE = 4_000


def knows(law: Law) -> bool:
    """Whether the information of a law's releases is known here."""
    return law.kind in _TAILS or isinstance(law, BinomialLaw | SquareWaveLaw | WaveletLaw | HistogramLaw)


def noise_scale(law: Law) -> float:
    """Return the scale of noise in the units of the data; infinite where there is none of that kind."""
    if law.kind in _TAILS:
        return float(law.scale[0])
    if isinstance(law, SquareWaveLaw):
        lo, hi = law.domain[0]
        return (hi - lo) * max(law.reach, 1) / law.cells
    return math.inf


def information(law: Law, edges: Floats, shares: Floats, n: int, outer: tuple[float, float]) -> Floats:
    """Return the information (B, B) of a release of n records.

    Parameters
    ----------
    law : Law
    edges : float64 array (B - 1,)
        Finite edges of the cells of y.
    shares : float64 array (B,)
        Of the population.
    n : int
        Number of records.
    outer : (lo, hi)
        Where the end cells end: their places, for infinite ones the outermost edge.

    Raises
    ------
    SpecError
        For a law of which it is not known.
    """
    ends = np.concatenate([[min(outer[0], edges[0])], edges, [max(outer[1], edges[-1])]])
    if isinstance(law, HistogramLaw):
        return _of_histogram(law, ends, shares, n)
    places, weights = _places(ends)
    if isinstance(law, WaveletLaw):
        finest = cell_of(places.ravel(), law.edges()).reshape(places.shape)
        spread = np.zeros((law.cells, len(shares)))
        for k in range(places.shape[1]):
            np.add.at(spread, (finest[:, k], np.arange(len(shares))), weights[k])
        return n * (spread.T @ _of_wavelet(law, spread @ shares) @ spread)
    table = _table(law, places, weights)
    # where less than a record is expected, its absence tells as much as its presence would
    return n * ((table / np.maximum(table @ shares, 1.0 / (_FINE * n))[:, None]).T @ table)


def _places(ends: Floats) -> tuple[Floats, Floats]:
    """Return places within each cell (B, nodes), and their weights (nodes,)."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * np.diff(ends)
    return middle[:, None] + half[:, None] * nodes, 0.5 * weights


def _table(law: Law, places: Floats, weights: Floats) -> Floats:
    """Return probabilities of outputs (outputs, B) given a record in each cell."""
    if law.kind in _TAILS:
        return _of_additive(law, places, weights)
    if isinstance(law, SquareWaveLaw):
        lo, hi = law.domain[0]
        near = np.arange(law.outputs)[:, None]
        table = np.zeros((law.outputs, len(places)))
        for k, weight in enumerate(weights):
            at = np.clip(np.floor((places[:, k] - lo) / (hi - lo) * law.cells), 0, law.cells - 1)[None, :]
            table += weight * np.where((near >= at) & (near <= at + 2 * law.reach), law.odds, 1.0)
        return table / law.total
    if isinstance(law, BinomialLaw):
        lo, hi = law.domain[0]
        successes = np.arange(law.outputs)[:, None, None]
        p = 0.5 + law.weight * (np.clip((places - lo) / (hi - lo), 0.0, 1.0) - 0.5)
        logs = (
            special.gammaln(law.trials + 1)
            - special.gammaln(successes + 1)
            - special.gammaln(law.trials - successes + 1)
            + special.xlogy(successes, p)
            + special.xlog1py(law.trials - successes, -p)
        )
        return np.asarray(np.exp(logs) @ weights)
    raise SpecError(
        f"mechanism.kind: what {law.kind} tells of a density is not known to advise; choose another"
    )


def _of_additive(law: Law, places: Floats, weights: Floats) -> Floats:
    scale, reach = float(law.scale[0]), _TAILS[law.kind] * float(law.scale[0])
    low, high = places.min() - reach, places.max() + reach
    cells = int(min(math.ceil((high - low) / scale * _FINE), _MOST_OUTPUTS))
    edges = np.linspace(low, high, cells + 1)[1:-1]
    cdf = special.ndtr if law.kind == "gaussian" else _laplace_cdf
    found = np.zeros((cells, len(places)))
    for k, weight in enumerate(weights):
        below = cdf((edges[:, None] - places[None, :, k]) / scale)
        found += weight * np.diff(below, axis=0, prepend=0.0, append=1.0)
    return found


def _laplace_cdf(t: Floats) -> Floats:
    tail = 0.5 * np.exp(-np.abs(t))
    return np.where(t < 0.0, tail, 1.0 - tail)


def _of_wavelet(law: WaveletLaw, shares: Floats) -> Floats:
    """Return the information about the masses of the finest cells, of one record.

    Averages over drawn coefficients, always the same ones: E L L'/(p'L)^2, L the densities given each cell.
    """
    size, scale = law.cells, float(law.scale[0])
    waves = np.zeros((law.cells - 1, size))
    place = 0
    for j in range(law.levels + 1):
        length = size >> (j + 1)
        for k in range(2**j):
            start = 2 * k * length
            waves[place, start : start + length] = 2.0 ** (0.5 * j)
            waves[place, start + length : start + 2 * length] = -(2.0 ** (0.5 * j))
            place += 1
    rng = np.random.default_rng(13)
    total = np.zeros((size, size))
    shares = np.maximum(shares, 0.0) / shares.sum()
    for _ in range(_DRAWS // _PIECE):
        cells = rng.choice(size, _PIECE, p=shares)
        z = waves[:, cells].T + rng.laplace(0.0, scale, (_PIECE, size - 1))
        logs = np.zeros((_PIECE, size))
        place = 0
        for j in range(law.levels + 1):
            length = size >> (j + 1)
            height = 2.0 ** (0.5 * j)
            own = z[:, place : place + 2**j]
            still = np.abs(own)
            up, down = (still - np.abs(own - height)) / scale, (still - np.abs(own + height)) / scale
            logs += np.repeat(np.stack([up, down], axis=2).reshape(_PIECE, -1), length, axis=1)
            place += 2**j
        likely = np.exp(logs - logs.max(axis=1, keepdims=True))
        likely /= (likely @ shares)[:, None]
        total += likely.T @ likely
    return total / _DRAWS


def _of_histogram(law: HistogramLaw, ends: Floats, shares: Floats, n: int) -> Floats:
    bins = law.edges()
    inner = np.concatenate([[-math.inf], bins[1:-1], [math.inf]])
    width = np.diff(ends)
    overlap = np.minimum(ends[None, 1:], inner[1:, None]) - np.maximum(ends[None, :-1], inner[:-1, None])
    adds = np.clip(overlap, 0.0, None) / np.where(width > 0.0, width, 1.0)
    adds[cell_of(ends[:-1], bins)[width <= 0.0], np.flatnonzero(width <= 0.0)] = 1.0
    p = adds @ shares
    sampling = (np.diag(p) - np.outer(p, p)) / n
    if isinstance(law, PerturbedHistogramLaw):
        gain, noise = 1.0, noise_variance(law.noise, law.scale[0]) / n**2 * np.eye(len(p))
    else:
        assert isinstance(law, SmoothedHistogramLaw)  # there is no other
        gain = 1.0 - law.weight
        drawn = gain * p + law.weight / len(p)
        noise = (np.diag(drawn) - np.outer(drawn, drawn)) / law.draws
    covariance = gain**2 * sampling + noise
    inverse: Any = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
    return np.asarray(gain**2 * (adds.T @ inverse @ adds))
