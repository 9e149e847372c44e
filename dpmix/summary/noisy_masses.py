"""Masses that fitted densities give to the cells of a tally, after the mechanism (methods, section 12)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.models.counts_mixture.masses import fill_rows
from dpmix.models.counts_mixture.model import cells_for
from dpmix.run.chains_reader import Chains
from dpmix.summary.families.family import Floats
from dpmix.summary.fisher import kernel_of
from dpmix.summary.random_measures import Measures

__all__ = ["NoisyMasses"]


class NoisyMasses:
    """Of one released number, given draws of P: shape (cells,).

    Parameters
    ----------
    chains : Chains
        Of a fit to a tally.
    """

    def __init__(self, chains: Chains) -> None:
        assert chains.tally is not None  # the caller has looked
        self._counts, self._kernel = chains.tally, kernel_of(chains)
        seen = chains.mechanism.observe(np.zeros((0, 1)), chains.n, (0,), rows=False)
        self._channel: Any = seen.channel
        finite = self._counts.width == 0.0
        outputs = np.arange(len(self._counts.counts), dtype=np.float64) if finite else np.zeros(0)
        edges = np.zeros(0) if finite else np.ascontiguousarray(self._counts.edges)
        self._cells = cells_for(self._channel, self._kernel, edges, outputs)
        self._normal = chains.layout.kernel == "normal"

    def of(self, measure: Measures) -> Floats:
        """Return the masses under a measure, which add to 1: what is on none of its atoms is left out."""
        found = np.zeros(len(self._counts.counts))
        for weight, mass in zip(measure.weights, self.of_atoms(measure.atoms), strict=True):
            found += weight * mass
        return np.asarray(found / found.sum())

    def of_atoms(self, atoms: Floats) -> Floats:
        """Return the masses (k, cells) under each of the atoms (2, k), as families have them."""
        theta = np.ascontiguousarray(np.stack([atoms[0], atoms[1] ** 2]) if self._normal else atoms)
        rows: NDArray[np.float64] = np.zeros((3, len(self._counts.counts)))
        found = np.empty((theta.shape[1], rows.shape[1]))
        for h in range(theta.shape[1]):
            fill_rows(self._channel, self._kernel, theta, h, self._cells, rows)
            found[h] = rows[0]
        return found
