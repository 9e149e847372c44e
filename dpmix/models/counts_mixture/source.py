"""Where the numbers of records in the cells come from: counted, or latent given a histogram of all records.

Given P the counts c of the bins of a histogram are Multinomial(n; p), p the bins' masses, and the release
depends on the records through c alone (methods, section 3). Moves of P are made in two ways, in turn:

- **Given the counts**, by ``prod_j p_j^c_j`` as where they are known. That mixes where the release says
  nearly all of them.
- **Counts along.** From masses p to p' every record follows its measure (`dpmix.models.histogram_mixture.
  sweep`): it stays in bin j with probability min(1, p'_j / p_j), and goes else to a bin l with probability
  proportional to (p'_l - p_l)^+. Records of law p then have law p', and the way back has the same law with p
  and p' exchanged, so that of the acceptance ratio the release's likelihood of c' over that of c is left, in
  the place of prod_j (p'_j / p_j)^c_j. What moves is P alone, how far each count is off its mean stays nearly
  as it was. That mixes where the release says little of the counts, which given P are then about as certain
  as P is given them.

Langevin steps of the second kind go by the release's slopes and information at the counts: with dc = n dp,
sum_j l_j'(c_j) n dp_j for the gradient and sum_j -E l_j'' n^2 dp_j dp_j' for the metric. The counts on the
way back are those that were proposed. Between the two, and after them, the counts move given P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.mechanisms.channels.count_likelihoods import (
    GAUSSIAN,
    GEOMETRIC,
    CountsWithNoise,
    SmoothedDraws,
    log_likelihood,
)
from dpmix.models.counts.cell_counts import couple, log_release
from dpmix.models.counts.latent_counts import group_masses, make_latent, start_counts, sweep_counts
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.loops import LEAST, log, log_ratio

# A histogram of all records as what a mixture on counts is fitted to: its bins are the cells


@dataclass(frozen=True, eq=False)
class HistogramCounts:
    """Numbers of records in all bins, which are latent.

    Parameters
    ----------
    release : NoisyCounts or SmoothedDraws
        Log-likelihoods of the numbers of records in the bins.
    n : int
        Number of records.
    edges : float64 array (B + 1,)
        Of the bins; those at the ends reach to the ends of the kernel's support.
    """

    release: CountsWithNoise | SmoothedDraws
    n: int
    edges: NDArray[np.float64]

    @property
    def inner(self) -> NDArray[np.float64]:
        """Edges between the bins, (B - 1,)."""
        return np.ascontiguousarray(self.edges[1:-1], dtype=np.float64)

    def constants(self) -> dict[str, float]:
        """Return what the chains file says of the cells: a width of 0, for nothing of the release is lost."""
        return {"cells_first": float(self.edges[0]), "cells_last": float(self.edges[-1]), "cells_width": 0.0}


# Where the numbers of records in the cells come from: counted, or latent given a histogram of all records


_ROUNDS = 1  # of moves of counts given P, twice a sweep
_TOLD, _UNTOLD = (5, 1), (1, 3)  # rounds of moves of P given the counts, and with them along, in a sweep


class FixedCounts(NamedTuple):
    """Counts that are known. The field is there because a NamedTuple without one cannot be compiled."""

    power: float = 1.0


class LatentCounts(NamedTuple):
    """Counts of the bins of a histogram.

    release: their log-likelihoods (`dpmix.mechanisms.channels.count_likelihoods`); prior: what the masses of
    the bins say of them; held: as `sweep_counts` takes them, its counts (B,) changed in place; moved, excess
    (B,): of a proposal, and scratch; along (1,): whether moves of P take the counts along; given, following:
    rounds of either kind in a sweep.
    """

    release: Any
    prior: Any
    held: Any
    moved: Any
    excess: Any
    along: Any
    given: int
    following: int


def latent_counts(release: CountsWithNoise | SmoothedDraws, n: int, rng: Generator) -> LatentCounts:
    """Return counts of n records to start from, of probabilities around the release's.

    Moves that mix get more rounds: those given the counts where the release tells more of a bin's count than
    P does, whose law has about its mean for a variance, and else those with counts along.
    """
    bins = len(release.released)
    counts: NDArray[np.int64] = start_counts(rng, np.ones(bins), release.released, n)
    _, information = slope_and_information(release, 0, n / bins)
    rounds = _TOLD if information * n / bins > 1.0 else _UNTOLD
    held, along = make_latent(counts), np.zeros(1, dtype=np.int64)
    return LatentCounts(release, group_masses(1, bins), held, counts.copy(), np.zeros(bins), along, *rounds)


@dispatch()
def log_gain(source, rng, work):
    """Return the log likelihood ratio of what is proposed to what there is."""


@dispatch()
def take_over(source, work):
    """Take over the proposed masses of the cells, and what moved along."""


@dispatch()
def weigh(source, work, mixed, after, factor):
    """Set `factor` (B,) and return pulls (B,), by which gradient and metric in the masses p_c are made.

    The gradient is sum_c factor_c pulls_c dp_c, the metric sum_c factor_c^2 dp_c dp_c'. after: whether at the
    proposal, of masses `mixed`.
    """


@dispatch()
def log_fit(source, value):
    """Return the log likelihood that is saved; `value`: that of the counts given P."""


@dispatch()
def renew(source, rng, work, power):
    """Draw counts given P, to the power of a ladder, where they are latent."""


@njit
def _adopt(work):
    mixed, proposed = work.mixed, work.proposed
    for c in range(len(mixed)):
        mixed[c] = proposed[c]


@njit
def _weigh_counts(work, mixed, factor):
    for c in range(len(mixed)):
        factor[c] = work.roots[c] / mixed[c]
    return work.roots


@log_gain.register
def _log_gain_fixed(source: FixedCounts, rng, work):
    return log_ratio(work.counts, work.mixed, work.proposed, work.terms)


@take_over.register
def _take_over_fixed(source: FixedCounts, work):
    _adopt(work)


@weigh.register
def _weigh_fixed(source: FixedCounts, work, mixed, after, factor):
    return _weigh_counts(work, mixed, factor)


@log_fit.register
def _log_fit_fixed(source: FixedCounts, value):
    return value


@renew.register
def _renew_fixed(source: FixedCounts, rng, work, power):
    """Leave them."""


@log_gain.register
def _log_gain_latent(source: LatentCounts, rng, work):
    if source.along[0] == 0:
        return log_ratio(work.counts, work.mixed, work.proposed, work.terms)
    counts, moved = source.held.counts, source.moved
    if not couple(rng, work.mixed, work.proposed, counts, moved, source.excess):
        return -math.inf
    return log_release(source.release, source.held.noisy, 0, counts, moved)


@take_over.register
def _take_over_latent(source: LatentCounts, work):
    _adopt(work)
    if source.along[0] != 0:
        counts = source.held.counts
        for j in range(len(counts)):
            counts[j] = source.moved[j]


@weigh.register
def _weigh_latent(source: LatentCounts, work, mixed, after, factor):
    if source.along[0] == 0:
        return _weigh_counts(work, mixed, factor)
    counts = source.moved if after else source.held.counts
    n = 0.0
    for j in range(len(counts)):
        n += counts[j]
    for j in range(len(counts)):
        slope, information = slope_and_information(source.release, j, float(counts[j]))
        root = math.sqrt(information)
        factor[j] = n * root
        work.pulls[j] = slope / root
    return work.pulls


@log_fit.register
def _log_fit_latent(source: LatentCounts, value):
    return log_likelihood(source.release, source.held.noisy, source.held.counts)


@renew.register
def _renew_latent(source: LatentCounts, rng, work, power):
    source.prior.tempered[0] = power
    for j in range(len(work.mixed)):
        source.prior.logs[j] = log(max(work.mixed[j], LEAST))
    sweep_counts(source.prior, source.release, rng, source.held, _ROUNDS)
    for j in range(len(work.mixed)):
        work.counts[j] = power * source.held.counts[j]
        work.roots[j] = math.sqrt(work.counts[j])


@dispatch()
def slope_and_information(release, j, c):
    """Return l_j'(c), or what serves for it, and a scale of -l_j''(c) above 0."""


@slope_and_information.register
def _slope_noisy(release: CountsWithNoise, j, c):
    """Return those of normal noise of the same variance."""
    scale = release.scale
    variance = scale * scale
    if release.noise == GEOMETRIC:
        half = math.sinh(0.5 / scale)
        variance = 0.5 / (half * half)
    elif release.noise != GAUSSIAN:
        variance = 2.0 * scale * scale
    return (release.released[j] - c) / variance, 1.0 / variance


@slope_and_information.register
def _slope_smoothed(release: SmoothedDraws, j, c):
    """Return the slope, and the information that is expected of all draws."""
    density = release.slope * c + release.weight
    draws = 0.0
    for i in range(len(release.released)):
        draws += release.released[i]
    per_draw = release.slope * release.slope / (len(release.released) * density)
    return release.released[j] * release.slope / density, max(draws * per_draw, LEAST)
