"""A mixture given information about the masses of cells, in place of a release (methods, section 13).

Of masses p of cells a release of n records tells, in the limit of many, what a normal observation of p with
information J does: at the masses p0 of a population its log-likelihood is -(p - p0)'J(p - p0)/2, but for
noise. With J = sum_k l_k v_k v_k', v_k'p0 = 0, that is the law of coins: coin k falls heads with probability
(1 + a_k'p)/2, a_k = c v_k / max|v_k|, and of N_k = l_k / (c / max|v_k|)^2 throws half are heads. Its Fisher
information at p0 is N_k a_k a_k' = l_k v_k v_k', and the log-likelihood is that above up to (a_k'p)^4 <= c^4.

A head or a tail has a probability under each component, as a cell has: so the sampler on counts takes coins
for cells, and its moves are those that fits are made with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.kernels.beta import Beta
from dpmix.kernels.normal import NormalNIG
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.models.counts_mixture.loops import dot
from dpmix.models.counts_mixture.masses import fill_rows, fill_slopes
from dpmix.models.counts_mixture.model import CountsMixture
from dpmix.models.counts_mixture.source import FixedCounts
from dpmix.models.counts_mixture.state import FIXED

__all__ = ["Coins", "CoinsOfCells", "InformedMixture", "coins_of"]

Floats = NDArray[np.float64]

_LEAN = 0.5  # c: the largest lean of a coin under any component


class CoinsOfCells(NamedTuple):
    """Coins whose lean is linear in the masses of cells.

    leans (K, B): a_k; inner (3, B): scratch for masses and derivatives of a component; clear: the channel
    from records to cells.
    """

    leans: Any
    inner: Any
    clear: NoNoise


@dataclass(frozen=True, eq=False)
class Coins:
    """What is known of the masses of cells, as throws of coins.

    Parameters
    ----------
    leans : float64 array (K, B)
    counts : float64 array (2 K,)
        Heads and tails of each coin.
    edges : float64 array (B - 1,)
        Finite edges between the cells.
    """

    leans: Floats
    counts: Floats
    edges: Floats
    width: float = 0.0

    @property
    def n(self) -> int:
        """Number of throws."""
        return max(1, int(self.counts.sum()))

    def thrown(self, noise: Floats) -> Coins:
        """Return the coins with heads that are off their mean by so many standard deviations, (K,)."""
        throws = self.counts[::2] + self.counts[1::2]
        heads = np.clip(0.5 * (throws + np.sqrt(throws) * noise), 0.0, throws)
        return replace(self, counts=np.stack([heads, throws - heads], axis=1).ravel())


def coins_of(information: Floats, population: Floats, edges: Floats, told: Floats, least: float) -> Coins:
    """Return coins that tell of the masses of cells what a release does.

    Parameters
    ----------
    information : float64 array (B, B)
        J, positive semidefinite.
    population : float64 array (B,)
        p0.
    edges : float64 array (B - 1,)
    told : float64 array (B, S)
        Masses under components as the prior has them: directions in which these hardly differ are left out.
    least : float
        Of what a direction tells a component from the population, on average, in units of log-likelihood.
    """
    centred = information - np.outer(np.ones(len(population)), population @ information)
    centred = centred - np.outer(centred @ population, np.ones(len(population)))
    values, vectors = np.linalg.eigh(0.5 * (centred + centred.T))
    some = values > 1e-13 * max(float(values[-1]), 0.0)
    root = vectors[:, some] * np.sqrt(values[some])  # J = root root'
    apart = root.T @ (told - population[:, None])
    turn, sizes, _ = np.linalg.svd(apart, full_matrices=False)
    kept = sizes**2 / told.shape[1] > least
    directions = root @ turn[:, kept]
    directions = directions - population @ directions
    top = np.abs(directions).max(axis=0, initial=0.0)
    directions, top = directions[:, top > 0.0], top[top > 0.0]
    throws = (top / _LEAN) ** 2
    return Coins(
        np.ascontiguousarray((_LEAN * directions / top).T),
        np.repeat(0.5 * throws, 2),
        np.ascontiguousarray(edges),
    )


@dataclass(frozen=True, eq=False)
class InformedMixture(CountsMixture):
    """A Dirichlet process mixture given coins; its `counts` are `Coins`, its channel `CoinsOfCells`."""

    def worked(self, rng: Generator) -> tuple[NDArray[Any], Floats, Floats, FixedCounts]:
        """Return heads and tails, with the edges of the cells."""
        coins: Any = self.counts
        return coins.counts, coins.edges, np.zeros(0), FIXED


def _fill(channel, kernel, theta, h, cells, rows):
    inner, leans = channel.inner, channel.leans
    found = fill_rows(channel.clear, kernel, theta, h, cells, inner)
    for k in range(len(leans)):
        lean = dot(leans[k], inner[0])
        rows[0, 2 * k], rows[0, 2 * k + 1] = 0.5 * (1.0 + lean), 0.5 * (1.0 - lean)
        if found:
            for i in range(1, 3):
                slope = 0.5 * dot(leans[k], inner[i])
                rows[i, 2 * k], rows[i, 2 * k + 1] = slope, -slope
    return found


def _fill_slopes(channel, kernel, theta, h, cells, rows):
    """Set the derivatives, those of the masses of cells leaning likewise."""
    inner, leans = channel.inner, channel.leans
    fill_rows(channel.clear, kernel, theta, h, cells, inner)
    fill_slopes(channel.clear, kernel, theta, h, cells, inner)
    for k in range(len(leans)):
        for i in range(1, 3):
            slope = 0.5 * dot(leans[k], inner[i])
            rows[i, 2 * k], rows[i, 2 * k + 1] = slope, -slope


for _kernel in (NormalNIG, Beta):
    fill_rows.register(_fill, CoinsOfCells, _kernel)
    fill_slopes.register(_fill_slopes, CoinsOfCells, _kernel)
