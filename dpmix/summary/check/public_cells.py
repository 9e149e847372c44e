"""Releases of many records as their counts in public cells, for log likelihoods (methods, section 12)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.release.cells import count_outputs, tally
from dpmix.release.tallies import wide_grid
from dpmix.run.chains_reader import Chains, ChainSet
from dpmix.summary.check.record_likelihoods import MOST_RECORDS, check_factorizes
from dpmix.summary.check.replicators import Unavailable

__all__ = ["counted", "goes_by_cell", "of_all_cells"]

MOST_CELLS = 10_000
_KERNELS = ("normal", "beta")  # whose masses of cells are known


def goes_by_cell(chains: ChainSet) -> bool:
    """Whether log likelihoods are of cells: of a tally, and of more records than are kept one by one."""
    return chains.tally is not None or chains.n > MOST_RECORDS


def counted(chains: ChainSet) -> Chains:
    """Return chains with a tally of their release: its own, or its counts in the cells of `dpmix tally`.

    The width is that which the chains counted by, where they did.

    Raises
    ------
    Unavailable
        Where the likelihood does not factorize over records, or no cells follow from public quantities.
    """
    check_factorizes(chains)
    assert isinstance(chains, Chains)  # checked
    law = chains.mechanism
    if chains.layout.kernel not in _KERNELS or chains.observed.ndim > 1 or len(law.domain or ()) > 1:
        raise Unavailable(f"there are more than {MOST_RECORDS:,} records, and cells are of one column")
    if chains.tally is None:
        what = f"there are more than {MOST_RECORDS:,} records, and no public cells of releases by"
        if not law.countable:
            raise Unavailable(f"{what} {law.kind}")
        try:
            edges, width = wide_grid(law, chains.constants.get("cells_width") or "auto")
        except SpecError:
            raise Unavailable(f"{what} {law.kind}") from None
        z = chains.observed
        found = tally(z, edges, width) if law.outputs is None else count_outputs(z, law.outputs)
        chains = replace(chains, tally=found)
    assert chains.tally is not None  # set
    if chains.tally.counts.size > MOST_CELLS:
        raise Unavailable(f"there are more than {MOST_CELLS:,} cells")
    return chains


def of_all_cells(logs: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log likelihoods of all records of each cell, 0 of those without.

    Parameters
    ----------
    logs : float64 array (chains, states, cells)
        Of one record.
    counts : int64 array (cells,)
    """
    return np.where(counts > 0, counts * np.where(counts > 0, logs, 0.0), 0.0)
