"""What `fit` computes from its draws and keeps: the quantities of a record that summaries report first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dpmix.run.chains_reader import Chains, read_chains
from dpmix.run.kept_quantities import Recorded
from dpmix.summary.density import BLOCK, draw_block, of_column
from dpmix.summary.families.family_of_fit import columns_of, family_of
from dpmix.summary.quantities import quantiles

__all__ = ["record_quantities"]


def record_quantities(path: Path, levels: Sequence[float], check: Callable[[], None]) -> Recorded:
    """Return mean, sd and quantiles of a record under the P that summaries draw for each saved state.

    P comes from the same generators, so that a chains file and its summary agree; these depend on the seed,
    the chain's id and the place of the state alone, not on how a run was stopped or split.

    Parameters
    ----------
    path : Path
        A chains file of a mixture, finished but for these.
    levels : sequence of float
        Of the quantiles, increasing.
    check : callable
        Called between blocks; may raise to break it off.
    """
    chains = read_chains([path])
    assert isinstance(chains, Chains)  # the caller looks
    source = family_of(chains)
    columns = columns_of(chains, source)
    shape = (*chains.n_clusters.shape, len(columns))
    found = Recorded(tuple(levels), np.empty(shape), np.empty(shape), np.empty((*shape, len(levels))))
    for block in chains.blocks(BLOCK):
        check()
        _, drawn = draw_block(chains, block, source)
        rows = slice(block.start, block.start + block.weights.shape[0])
        for number, column in enumerate(columns):
            part, where = of_column(drawn, column), (block.chain, rows, number)
            found.mean[where], found.sd[where] = part.moments(column.family)
            for i, level in enumerate(levels):
                found.quantile[(*where, i)] = quantiles(part, column.family, level)
    return found
