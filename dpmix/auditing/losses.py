"""The privacy loss that a release would have under the claimed mechanism: the sharpest statistic if it is so.

By Neyman and Pearson no event of the same probability under one database is less probable under the other
than one told by the log ratio of the two densities. The densities here are those that the mechanism claims,
in real numbers, worked out apart from the code that releases; where the noise is other than claimed, the
ratio still orders releases well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpmix.mechanisms.binomial.curator import Binomial
from dpmix.mechanisms.curators.mechanism import LocalAdditive, Mechanism, clamp
from dpmix.mechanisms.curators.statistic import NoisyStatistic
from dpmix.mechanisms.log_moments.curator import LogMoments, mean_logs
from dpmix.mechanisms.log_moments.grouped_log_moments import GroupedLogMoments
from dpmix.mechanisms.perturbed_histogram.curator import PerturbedHistogram
from dpmix.mechanisms.posterior.curator import NoisyPosterior, PosteriorRelease
from dpmix.mechanisms.randomized_response.curator import RandomizedResponse
from dpmix.mechanisms.smoothed_histogram.curator import SmoothedHistogram
from dpmix.mechanisms.square_wave.curator import SquareWave
from dpmix.mechanisms.wavelet.curator import Wavelet, haar
from dpmix.numerics.equal_cells import cell_of, equal_edges
from dpmix.privacy.near_outputs import NearOutputs
from dpmix.synthesis.dirichlet_multinomial import DirichletMultinomial
from dpmix.synthesis.generator import Generator
from dpmix.synthesis.histogram_draws import SmoothedSynthesis

__all__ = ["Loss", "loss_of_generator", "loss_of_mechanism"]

Floats = NDArray[np.float64]
Loss = Callable[[Floats], Floats]

_MOST = 1e6  # in place of an infinite loss


def loss_of_mechanism(mechanism: Mechanism, one: Floats, other: Floats) -> Loss | None:
    """Return the log ratio of the densities of releases of two databases, as the mechanism claims them.

    Parameters
    ----------
    mechanism : Mechanism
        Calibrated.
    one, other : ndarray, shape (n, d)
        Neighbouring databases.

    Returns
    -------
    callable or None
        From releases, shape (runs, q), as an audit has them told, to their losses, shape (runs,); None where
        the densities are not known in closed form.
    """
    both = one, other
    if isinstance(mechanism, LocalAdditive):
        first, second = (clamp(mechanism.kind, mechanism.domain, x)[0][0] for x in both)
        return _additive(first, second, np.array(mechanism.scale), mechanism.kind)
    if isinstance(mechanism, Wavelet):
        cells = _bins(mechanism, 2 ** (mechanism.levels + 1))
        first, second = (haar(cells(x), mechanism.levels)[0] for x in both)
        return _additive(first, second, mechanism.s, "laplace")
    if isinstance(mechanism, Binomial):
        return _binomial(mechanism, *both)
    if isinstance(mechanism, SquareWave):
        return _near(mechanism.inputs(one)[0][0], mechanism.inputs(other)[0][0], mechanism.response)
    if isinstance(mechanism, RandomizedResponse):
        return _near(one[0], other[0], mechanism.responses[0])
    if isinstance(mechanism, SmoothedHistogram):
        return _smoothed(mechanism, *both)
    if isinstance(mechanism, PerturbedHistogram):
        cells = _bins(mechanism, mechanism.bins)
        first, second = (np.bincount(cells(x), minlength=mechanism.cells).astype(float) for x in both)
        return _additive(first, second, mechanism.s, mechanism.noise)
    if isinstance(mechanism, NoisyStatistic):
        first, second = (mechanism.statistic(x)[0].astype(float) for x in both)
        return _additive(first, second, mechanism.scales, mechanism.noise)
    if isinstance(mechanism, GroupedLogMoments):
        return _grouped_logs(mechanism, *both)
    if isinstance(mechanism, LogMoments):
        return _log_moments(mechanism, *both)
    if isinstance(mechanism, NoisyPosterior):  # the noisy counts are told last
        size = mechanism.noisy_size
        first, second = (np.array(mechanism.counts(x)[:size], dtype=float) for x in both)
        of_counts = _additive(first, second, mechanism.s, mechanism.noise)
        return lambda releases: of_counts(releases[:, -size:])
    return _chosen_posterior(mechanism, *both) if isinstance(mechanism, PosteriorRelease) else None


def loss_of_generator(generator: Generator, counts: tuple[Floats, Floats]) -> Loss | None:
    """Return the same for synthetic records, of which is told how many lie in two cells.

    Parameters
    ----------
    generator : Generator
        Calibrated.
    counts : pair of ndarray, shape (2,)
        How many records of either database lie in the two cells; the others are the same.
    """
    if isinstance(generator, DirichletMultinomial):
        a = float(generator.concentration)

        def of_urn(releases: Floats) -> Floats:
            first, second = (
                special.gammaln(a + c + releases[:, :2]) - special.gammaln(a + c) for c in counts
            )
            return np.asarray((first - second).sum(axis=1))

        return of_urn
    if isinstance(generator, SmoothedSynthesis) and generator.noise is None:
        floor = generator.weight / generator.cells.count
        first, second = (np.log((1 - generator.weight) * c / generator.n + floor) for c in counts)
        return lambda releases: releases[:, :2] @ (first - second)
    return None


def _additive(first: Floats, second: Floats, scale: Any, noise: str) -> Loss:
    """Return the loss of independent noise; whole numbers have the loss of Laplace and Gaussian noise."""
    moved = np.nonzero(first != second)[0]
    a, b = first[moved], second[moved]
    s = np.broadcast_to(np.asarray(scale, dtype=np.float64), first.shape)[moved]
    if noise in ("gaussian", "discrete_gaussian"):
        return lambda y: np.asarray(((y[:, moved] - 0.5 * (a + b)) * ((a - b) / s**2)).sum(axis=1))
    return lambda y: np.asarray(((np.abs(y[:, moved] - b) - np.abs(y[:, moved] - a)) / s).sum(axis=1))


def _bins(mechanism: Any, count: int) -> Callable[[Floats], NDArray[np.int64]]:
    edges = equal_edges(mechanism.domain[0], count)

    def cells(x: Floats) -> NDArray[np.int64]:
        found = cell_of(clamp(mechanism.kind, mechanism.domain, x[:, :1])[0][:, 0], edges)
        return found if mechanism.groups is None else found + count * x[:, 1].astype(np.int64)

    return cells


def _binomial(mechanism: Binomial, one: Floats, other: Floats) -> Loss:
    ratios = [
        mechanism.probabilities(clamp(mechanism.kind, mechanism.domain, x)[0][:1, 0])[0] for x in (one, other)
    ]
    p, q = (top / bottom for top, bottom in ratios)
    all_, none = mechanism.trials * np.log(p / q), mechanism.trials * np.log((1 - p) / (1 - q))
    return lambda releases: none + releases[:, 0] / mechanism.trials * (all_ - none)


def _near(one: Floats, other: Floats, response: NearOutputs) -> Loss:
    """Return the loss of outputs near inputs (d,): log r where near the first alone, -log r the other."""
    log_ratio = float(np.log(float(response.ratio)))

    def near(releases: Floats, inputs: Floats) -> Floats:
        return np.asarray((releases >= inputs) & (releases < inputs + response.near), dtype=np.float64)

    return lambda releases: log_ratio * (near(releases, one) - near(releases, other)).sum(axis=1)


def _smoothed(mechanism: SmoothedHistogram, one: Floats, other: Floats) -> Loss:
    cells = _bins(mechanism, mechanism.bins)
    logs = [
        np.log(
            (1 - mechanism.weight) * np.bincount(cells(x), minlength=mechanism.cells) / mechanism.n
            + mechanism.weight / mechanism.cells
        )
        for x in (one, other)
    ]
    each = logs[0] - logs[1]
    edges = equal_edges(mechanism.domain[0], mechanism.bins)
    k, width = mechanism.draws, 1 if mechanism.groups is None else 2

    def loss(releases: Floats) -> Floats:
        drawn = releases[:, : k * width].reshape(len(releases), k, width)
        found = cell_of(drawn[:, :, 0], edges)
        if width == 2:
            found = found + mechanism.bins * drawn[:, :, 1].astype(np.int64)
        return np.asarray(each[found].sum(axis=1))

    return loss


def _chosen_posterior(mechanism: Any, one: Floats, other: Floats) -> Loss | None:
    """Return the loss of the exponential mechanism, where its weights are listed."""
    from dpmix.posteriors.hellinger_law import LISTED, states  # late: numba, half a second

    of, d = mechanism.posteriors, len(mechanism.prior)
    if d > 2 and of.size > LISTED:
        return None
    weights = [np.asarray(mechanism.law.weights(mechanism.counts(x)), dtype=float) for x in (one, other)]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(w / w.max()) - np.log((w / w.max()).sum()) for w in weights]
        each = np.nan_to_num(logs[0] - logs[1], nan=0.0, posinf=_MOST, neginf=-_MOST)
    least = mechanism.prior[0]
    if d == 2:
        return lambda releases: each[np.clip(np.rint(releases[:, 0] - least).astype(int), 0, len(each) - 1)]
    places = {counts: place for place, counts in enumerate(map(tuple, states(of.n, d).tolist()))}

    def loss(releases: Floats) -> Floats:
        counts = np.rint(releases[:, :d] - mechanism.prior).astype(int)
        return np.array([each[places[row]] if row in places else 0.0 for row in map(tuple, counts.tolist())])

    return loss


def _log_moments(mechanism: LogMoments, one: Floats, other: Floats) -> Loss:
    """Return the loss of the means at the threshold told, over the parts the record may be in, and of scores.

    All records but the first are the same, so that a part has the same means wherever the first is not.
    """
    d, sizes = len(mechanism.columns), mechanism.sizes
    shares = [x / x.sum(axis=1)[:, None] for x in (one, other)]

    def means(x: Floats, part: int, threshold: float, there: bool) -> Floats:
        rows = np.repeat(x[1:2] if mechanism.n > 1 else x[:1], sizes[part], axis=0)
        if there:
            rows[0] = x[0]
        return mean_logs(rows, threshold)

    def of_means(y: Floats, threshold: float) -> Floats:
        sides = []
        for x in shares:
            terms = []
            for holder, size in enumerate(sizes):
                total = np.full(len(y), np.log(size / mechanism.n))
                for part in range(len(sizes)):
                    centre = means(x, part, threshold, part == holder)
                    scale = mechanism.noise(part, threshold).scale
                    total -= np.abs(y[:, part * d : (part + 1) * d] - centre).sum(axis=1) / scale
                terms.append(total)
            sides.append(special.logsumexp(terms, axis=0))
        return np.asarray(sides[0] - sides[1])

    return _at_threshold(mechanism, shares, d * len(sizes), of_means)


def _grouped_logs(mechanism: GroupedLogMoments, one: Floats, other: Floats) -> Loss:
    """Return the loss of sizes and sums of groups at the threshold told, and of scores."""

    def of_sums(y: Floats, threshold: float) -> Floats:
        first, second = (mechanism.statistic(x, threshold) for x in (one, other))
        return _additive(first, second, mechanism.scales(threshold), "laplace")(y)

    shares = [x[:, :-1] / x[:, :-1].sum(axis=1)[:, None] for x in (one, other)]
    return _at_threshold(mechanism, shares, mechanism.size, of_sums)


def _at_threshold(
    mechanism: LogMoments, shares: list[Floats], places: int, of_values: Callable[[Floats, float], Floats]
) -> Loss:
    """Return the loss of what is released at the threshold told after it, and of the scores after that."""
    candidates, choice = mechanism.thresholds, mechanism.choice
    scores = [
        np.diff([(x.min(axis=1) >= a).sum() for a in candidates], prepend=0).astype(float) for x in shares
    ]
    of_scores = None if choice is None else _additive(scores[0], scores[1], choice.scale, "geometric")

    def loss(releases: Floats) -> Floats:
        found = np.zeros(len(releases))
        for threshold in candidates:
            chosen = releases[:, places] == threshold
            if chosen.any():
                found[chosen] = of_values(releases[chosen], threshold)
        return found if of_scores is None else found + of_scores(releases[:, places + 1 :])

    return loss
