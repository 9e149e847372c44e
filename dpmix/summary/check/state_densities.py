"""Random densities at chosen saved states, and records and masses of cells under them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.kernels.multivariate_family import NormalInverseWishart
from dpmix.run.chains_reader import Chains
from dpmix.summary.density import BLOCK, generator
from dpmix.summary.families.family import Family, Floats
from dpmix.summary.random_measures import Measures, draw_measures, settle_rest, state_measures

__all__ = ["cell_masses", "draw_records", "states_at"]

_STREAM = -(10**9)  # of the generators that a summary derives from the chains' seed
_MOST = 5_000  # records whose order is random


def states_at(
    chains: Chains,
    source: Family | NormalInverseWishart,
    wanted: Sequence[tuple[int, NDArray[np.int64]]],
    *,
    spread_rest: bool,
) -> dict[tuple[int, int], Measures]:
    """Return saved states as single measures, by place of the chain and number of the state.

    Parameters
    ----------
    chains : Chains
    source : Family or NormalInverseWishart
    wanted : sequence of pairs
        Places of chains, and numbers of states of each.
    spread_rest : bool
        Whether to draw where the mass on no component lies; else it stays on the prior predictive, its mean.
    """
    numbers = dict(wanted)
    found = {}
    for block in chains.blocks(BLOCK):
        states = numbers.get(block.chain, np.empty(0, dtype=np.int64))
        inside = states[(states >= block.start) & (states < block.start + len(block.weights))]
        if not inside.size:
            continue
        rows = inside - block.start
        parameters = {name: values[rows] for name, values in block.parameters.items()}
        together = state_measures(block.weights[rows], parameters, source)
        base = None if block.base is None else block.base[rows]
        if spread_rest:
            rng = generator(chains, int(chains.ids[block.chain]), _STREAM - block.start)
            concentration = chains.concentration[block.chain, inside]
            discount = chains.constants["discount"]
            together = draw_measures(together, concentration, discount, source, rng, base)
        elif base is not None:
            together = settle_rest(together, source, base)
        stops = np.cumsum(together.counts)
        for i, state in enumerate(inside.tolist()):
            part = slice(stops[i] - together.counts[i], stops[i])
            found[block.chain, state] = Measures(
                together.counts[i : i + 1],
                together.weights[part],
                together.atoms[:, part],
                together.rest[i : i + 1],
            )
    return found


def draw_records(measure: Measures, source: Family | NormalInverseWishart, n: int, rng: Generator) -> Floats:
    """Draw n records from one measure, shape (n,) or (n, d); many records stand atom by atom."""
    shares = np.append(measure.weights, np.maximum(measure.rest, 0.0))
    counts = rng.multinomial(n, shares / shares.sum())
    owners = np.repeat(np.arange(measure.weights.size), counts[:-1])
    atoms = measure.atoms[:, owners]
    if counts[-1]:
        atoms = np.concatenate([atoms, source.draw(rng, int(counts[-1]))], axis=1)
    if n <= _MOST:
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
