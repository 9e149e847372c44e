"""Replicates of a release that a mixture was fitted to: records of a drawn density, then the mechanism.

Under additive noise the latent record is on the kernel's own support, as in the model, and is not clamped:
where values pile up at a bound that the kernel knows nothing of, the replicates do not. Under cells, bins and
the binomial mechanism and the square wave, what lies beyond the bounds counts as at them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import Law, expect
from dpmix.models.meaning_base import OfBins, Replicator, Unavailable
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.random_measures import Measures, states_at

if TYPE_CHECKING:
    from dpmix.kernels.layout import Family, Floats
    from dpmix.run.chains_reader import Chains

_MOST = 5_000  # records whose order is random


def draw_records(
    measure: Measures,
    source: Family | NormalInverseWishart,
    n: int,
    rng: Generator,
    *,
    shuffled: bool = True,
) -> Floats:
    """Draw n records from one measure, shape (n,) or (n, d); many, or not `shuffled`, stand atom by atom."""
    shares = np.append(measure.weights, np.maximum(measure.rest, 0.0))
    counts = rng.multinomial(n, shares / shares.sum())
    atoms = measure.atoms[:, np.repeat(np.arange(measure.weights.size), counts[:-1])]
    if counts[-1]:
        atoms = np.concatenate([atoms, source.draw(rng, int(counts[-1]))], axis=1)
    if shuffled and n <= _MOST:
        atoms = atoms[:, rng.permutation(n)]
    return source.sample(atoms, rng)


def cell_masses(measure: Measures, family: Family, edges: Floats) -> Floats:
    """Return each measure's mass of the cells between inner edges (C - 1,), end cells open; shape (D, C).

    What lies on no atom counts by the prior predictive.
    """
    size, points = measure.weights.size, edges.size
    atoms, places = np.repeat(measure.atoms, points, axis=1), np.tile(edges, size)
    below = family.cdf(atoms, places)
    above, high = 1.0 - below, below > 0.25  # where the upper tail may have digits that this has not
    above[high] = family.cdf(atoms[:, high], places[high], upper=True)
    each = _differences(below.reshape(size, points), above.reshape(size, points)) * measure.weights[:, None]
    owner = np.repeat(np.arange(measure.counts.size), measure.counts)
    total = np.zeros((measure.counts.size, points + 1))
    np.add.at(total, owner, each)
    if (measure.rest > 0.0).any():
        prior = family.predictive_cdf(edges)[None]
        total += measure.rest[:, None] * _differences(prior, 1.0 - prior)
    return total


def _differences(below: Floats, above: Floats) -> Floats:
    """Return masses between points from both tails, whichever has the digits."""
    rows = len(below)
    zero, one = np.zeros((rows, 1)), np.ones((rows, 1))
    left = np.diff(np.concatenate([zero, below, one], axis=1), axis=1)
    right = -np.diff(np.concatenate([one, above, zero], axis=1), axis=1)
    middle = np.concatenate([zero, below], axis=1)
    return np.maximum(np.where(middle < 0.5, left, right), 0.0)


# What draws replicates, by what is released


class MixtureReplicator(Replicator):
    """Replicates of releases of records, one by one; subclasses are of cells."""

    chains: Chains

    def __init__(self, chains: Chains) -> None:
        self.chains = chains
        self.size = int(chains.observed.size)
        self.source: Family | NormalInverseWishart = family_of(chains)
        self.law: Law = chains.mechanism
        self._states: dict[tuple[int, int], Measures] = {}

    def prepare(self, wanted: Sequence[tuple[int, NDArray[np.int64]]]) -> None:
        """Draw the densities of these states."""
        self._states = states_at(self.chains, self.source, wanted, spread_rest=True)

    def records(self, chain: int, state: int, rng: Generator, n: int) -> Floats:
        """Draw latent records, shape (n,) or (n, d)."""
        return draw_records(self._states[chain, state], self.source, n, rng)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw latent records, and what would be released of them."""
        return self.released(self.records(chain, state, rng, len(self.chains.observed)), rng)

    def released(self, latent: Floats, rng: Generator) -> Floats:
        """Return what the mechanism releases of latent records, one each."""
        scale = self.chains.arrays.get("noise_scale", self.chains.constants.get("noise_scale", math.nan))
        return self.law.draw(latent, scale, rng)


class _Counted(MixtureReplicator):
    """Releases that depend on the records through their numbers in cells, with these edges."""

    def __init__(self, chains: Chains, cells: int, edges: Floats) -> None:
        super().__init__(chains)
        self.cells, self.edges = cells, edges
        self.size = 2 * cells

    def counts(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw the numbers of records in the cells."""
        assert not isinstance(self.source, NormalInverseWishart)  # the combination is refused
        masses = cell_masses(self._states[chain, state], self.source, self.edges[1:-1])[0]
        return rng.multinomial(self.chains.n, masses / masses.sum()).astype(np.float64)


class CoefficientReplicator(_Counted):
    """Coefficients: compared is the distribution function that their means give at the cells' edges."""

    def __init__(self, chains: Chains) -> None:
        self._rows = chains.mechanism.basis()
        super().__init__(chains, len(self._rows), chains.mechanism.edges())
        # 1[y < edge] = edge + sum of the basis, which is orthonormal on the unit interval
        self._to_cdf = np.cumsum(self._rows, axis=0)[:-1] / self.cells
        self._flat = np.arange(1, self.cells) / self.cells

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw the distribution function of a release, without its records."""
        n = self.chains.n
        means = self.counts(chain, state, rng) @ self._rows / n
        return self._cdf(means + self.law.draw_mean_noise(n, means.size, rng))

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw all coefficients of all records."""
        latent = self.records(chain, state, rng, self.chains.n)
        return self.released(latent, rng)

    def reduce(self, released: Floats) -> Floats:
        """Return the distribution function at the inner edges that the means of the coefficients give."""
        return self._cdf(released.mean(axis=0))

    def _cdf(self, means: Floats) -> Floats:
        return np.asarray(self._flat + self._to_cdf @ means)


class HistogramReplicator(OfBins, _Counted):
    """Counts of bins with noise, or numbers of draws in the bins of a smoothed histogram."""

    law: HistogramLaw

    def __init__(self, chains: Chains) -> None:
        super().__init__(chains, expect(chains.mechanism, HistogramLaw).bins, chains.mechanism.edges())
        self.tell_bins(chains)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw counts of records, and noisy counts or numbers of draws."""
        return self.law.draw_from_counts(self.counts(chain, state, rng), rng)

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """As a release."""
        return self.placed(self.replicate(chain, state, rng), rng)


class TallyReplicator(_Counted):
    """Counts of released numbers in the cells of a tally, at any number of records."""

    def __init__(self, chains: Chains) -> None:
        assert chains.tally is not None  # what it is for
        from dpmix.summary.information import NoisyMasses  # late: numba takes its time

        super().__init__(chains, len(chains.tally.counts), chains.tally.edges)  # those that are finite
        self._masses = NoisyMasses(chains)

    def counts(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw the numbers of released numbers in the cells."""
        masses = self._masses.of(self._states[chain, state])
        return rng.multinomial(self.chains.n, masses).astype(np.float64)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw a tally."""
        return self.counts(chain, state, rng)

    def released(self, latent: Floats, rng: Generator) -> Floats:
        """Return the tally of what the mechanism releases of latent records."""
        values = super().released(latent, rng)
        places = np.searchsorted(self.edges, values, side="right")
        return np.bincount(places, minlength=self.cells).astype(np.float64)


def mixture_replicator(chains: Chains) -> MixtureReplicator:
    """Return what draws replicates of the release that a mixture was fitted to.

    Raises
    ------
    Unavailable
        Where the release is of a kind that is not replicated.
    """
    law = chains.mechanism
    if law.groups:
        raise Unavailable("releases of several groups are not replicated")
    if chains.tally is not None:
        return TallyReplicator(chains)
    if law.provides("basis"):
        return CoefficientReplicator(chains)
    if law.released == "histogram":
        return HistogramReplicator(chains)
    if law.provides("draw"):
        return MixtureReplicator(chains)
    raise Unavailable(f"releases by {law.kind} are not replicated")
