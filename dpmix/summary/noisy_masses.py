"""Masses that fitted densities give to cells of released values, noise included (methods, section 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import Beta, NormalNIG
from dpmix.models.counts_mixture.masses import cells_for, fill_rows
from dpmix.spec.kinds import KERNELS
from dpmix.summary.fitted_columns import family_of, public_bounds

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_reader import Chains
    from dpmix.summary.random_measures import Measures


def kernel_of_fit(chains: Chains) -> Any:
    """Return the kernel of one column as compiled code has it; None of one whose atoms have no `theta`.

    Of those that ship the base measure is arbitrary: no mass or density given parameters depends on it.
    """
    name = chains.layout.kernel
    if name == "beta":
        lo, hi = chains.constants["domain_lo"], chains.constants["domain_hi"]
        return Beta(1.0, 1.0, 1.0, 1.0, lo, hi - lo)
    if name == "normal":
        return NormalNIG(0.0, 1.0, 1.0, 1.0)
    if not KERNELS.has(name, "kernel") or not hasattr(family_of(chains), "theta"):
        return None
    section = KERNELS.section(name).model_validate(chains.spec["model"])
    return KERNELS.part(name, "kernel").of_spec(section, public_bounds(chains, 0, 1))


def theta_of(chains: Chains, atoms: Floats) -> Floats:
    """Return the parameters (rows, k) of atoms (rows, k) as compiled code has them."""
    if chains.layout.kernel == "normal":
        return np.ascontiguousarray(np.stack([atoms[0], atoms[1] ** 2]))
    if chains.layout.kernel == "beta":
        return np.ascontiguousarray(atoms)
    family: Any = family_of(chains)
    return np.ascontiguousarray(family.theta(atoms))


def counted_edges(chains: Chains) -> Floats:
    """Return the inner edges of the cells that chains counted released values in."""
    first, last = chains.constants["cells_first"], chains.constants["cells_last"]
    return np.linspace(first, last, 1 + round((last - first) / chains.constants["cells_width"]))


class ReleasedCells:
    """Cells of released values between inner edges, or finite outputs, and their masses under a kernel."""

    def __init__(self, channel: Any, kernel: Any, edges: Floats, outputs: Floats) -> None:
        self._channel, self._kernel, self._count = channel, kernel, len(outputs) or len(edges) + 1
        self._cells = cells_for(channel, kernel, np.ascontiguousarray(edges), np.ascontiguousarray(outputs))

    def masses(self, theta: Floats) -> Floats:
        """Return the masses (k, cells) under parameters (rows, k)."""
        rows: NDArray[np.float64] = np.zeros((3, self._count))
        found = np.empty((theta.shape[1], self._count))
        for h in range(theta.shape[1]):
            fill_rows(self._channel, self._kernel, theta, h, self._cells, rows)
            found[h] = rows[0]
        return found


class NoisyMasses:
    """Of one released number, given draws of P: shape (cells,).

    Parameters
    ----------
    chains : Chains
        Of a fit to a tally.
    """

    def __init__(self, chains: Chains) -> None:
        assert chains.tally is not None  # the caller has looked
        self._chains, self._counts = chains, chains.tally
        seen = chains.mechanism.observe(np.zeros((0, 1)), chains.n, (0,), rows=False)
        finite = self._counts.width == 0.0
        outputs = np.arange(len(self._counts.counts), dtype=np.float64) if finite else np.zeros(0)
        edges = np.zeros(0) if finite else self._counts.edges
        self._cells = ReleasedCells(seen.channel, kernel_of_fit(chains), edges, outputs)

    def of(self, measure: Measures) -> Floats:
        """Return the masses under a measure, which add to 1: what is on none of its atoms is left out."""
        found = np.zeros(len(self._counts.counts))
        for weight, mass in zip(measure.weights, self.of_atoms(measure.atoms), strict=True):
            found += weight * mass
        return np.asarray(found / found.sum())

    def of_atoms(self, atoms: Floats) -> Floats:
        """Return the masses (k, cells) under each of the atoms (2, k), as families have them."""
        return self._cells.masses(theta_of(self._chains, atoms))
