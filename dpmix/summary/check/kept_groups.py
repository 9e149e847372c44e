"""What `fit` keeps for checks: the groups `posterior_predictive` and `log_likelihood` of a chains file.

Both are made from the finished draws alone, by generators that depend on the seed, the chain's id and the
number of the state: a run that was stopped and went on has the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmix.run.chains_reader import ChainSet, read_chains
from dpmix.run.kept_quantities import Predictive
from dpmix.summary.check.public_cells import counted, goes_by_cell, of_all_cells
from dpmix.summary.check.record_likelihoods import MOST_RECORDS, cell_log_likelihoods, log_likelihoods
from dpmix.summary.check.release_check import REPLICATES, replicator_of
from dpmix.summary.check.replicators import Unavailable, places

__all__ = ["LIKELIHOODS", "predictive_of"]

LIKELIHOODS = 1_000
"""Draws of all chains together whose log likelihoods are kept."""
_NUMBERS = 10_000  # of one replicate, at most
_AT_ONCE = 100  # states of each chain


def predictive_of(path: Path, check: Callable[[], None]) -> list[Predictive]:
    """Return what is kept of replicates and log likelihoods of a finished chains file.

    Parameters
    ----------
    path : Path
    check : callable
        Called between pieces of work; may raise to break it off.
    """
    chains = read_chains([path])
    return [*_replicates(chains, check), *_likelihoods(chains, check)]


def _replicates(chains: ChainSet, check: Callable[[], None]) -> list[Predictive]:
    """Return `posterior_predictive`: whole releases; none where they are not replicated, or too large."""
    wanted = places(chains, REPLICATES)
    try:
        many = chains.n > MOST_RECORDS and chains.attrs.get("trust") != "global"
        released = chains.observed if chains.tally is None else chains.tally.counts
        if (many and chains.tally is None) or released.size > _NUMBERS:
            raise Unavailable(f"a release of more than {MOST_RECORDS:,} records")
        replicator = replicator_of(chains)
        replicator.prepare(wanted)
        shape = (len(wanted), wanted[0][1].size, *released.shape)
        out = np.empty(shape, dtype=np.float32 if chains.tally is None else np.int64)
        for at, (chain, _, values) in enumerate(replicator.draws(wanted, whole=True)):
            check()
            out[chain, at % shape[1]] = values.reshape(released.shape)
    except Unavailable:
        return []
    return [Predictive("posterior_predictive", chains.ids, wanted[0][1], out)]


def _likelihoods(chains: ChainSet, check: Callable[[], None]) -> list[Predictive]:
    """Return `log_likelihood`; none where the likelihood does not factorize, or is not known.

    It is of records, of a tally and of many records of cells: of all that are in each together.
    """
    wanted = places(chains, LIKELIHOODS)
    check()
    try:
        if goes_by_cell(chains):
            some = counted(chains)
            assert some.tally is not None  # so counted
            counts, parts = some.tally.counts, []
            for numbers in range(0, wanted[0][1].size, _AT_ONCE):
                check()
                few = [(chain, states[numbers : numbers + _AT_ONCE]) for chain, states in wanted]
                parts.append(of_all_cells(cell_log_likelihoods(some, few), counts).astype(np.float32))
            values = np.concatenate(parts, axis=1)
            return [Predictive("log_likelihood", chains.ids, wanted[0][1], values, some.tally.constants())]
        found: NDArray[np.float64] = log_likelihoods(chains, wanted)
    except Unavailable:
        return []
    return [Predictive("log_likelihood", chains.ids, wanted[0][1], found.astype(np.float32))]
