"""How much of the information in a release its cells keep (methods, section 12).

Of the Fisher information about a component's location and the logarithm of its sd, that of the cells, ``sum_c
grad G_c grad G_c' / G_c``, is set beside that of the released value, for which cells far finer than noise and
component stand. Shares are averages over components and draws of the posterior, by weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import Beta, NormalNIG
from dpmix.laws.additive import Additive
from dpmix.laws.every import expect
from dpmix.models.counts_mixture.masses import cells_for, fill_rows, fill_slopes
from dpmix.results.nodes import ResultSection, Tile, percent
from dpmix.spec.kinds import KERNELS
from dpmix.summary.fitted_columns import family_of, public_bounds

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_reader import Chains
    from dpmix.summary.random_measures import Measures


# Masses that fitted densities give to cells of released values, noise included (methods, section 12)


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


_STATES = 40  # of each chain
_SMALL = 0.02  # weight below which a component is left out
_FINE = 16.0  # cells of the finer grid to a cell, a noise scale or a standard deviation
_REACH = 12.0  # standard deviations, and three times as many noise scales, that it covers
_MOST = 20_000


# What cells keep


@dataclass(frozen=True)
class InformationKept:
    """Shares kept by the cells, and what is hidden.

    Parameters
    ----------
    location, log_sd : float
        Shares of the information on a component's mean and on the logarithm of its sd.
    narrow : float
        Expected weight of components whose sd is below the width of a cell.
    width : float
        Of a cell; 0 where outputs are finite, and nothing is lost.
    left_over : float
        Posterior mean of n times the mass that is left over of the process.
    """

    location: float
    log_sd: float
    narrow: float
    width: float
    left_over: float

    def in_words(self) -> str:
        """Say it in a sentence."""
        if self.width == 0.0:
            return "the outputs or bins of the mechanism, which lose nothing of the release."
        if math.isnan(self.location):
            return f"cells of width {self.width:.4g}."
        return (
            f"cells of width {self.width:.4g} keep {100.0 * self.location:.1f}% of what the release says of "
            f"the clusters' means, and {100.0 * self.log_sd:.1f}% of what it says of the logarithms of their "
            "standard deviations."
        )

    def section(self) -> ResultSection:
        """Return what is reported of it; what is not known is None."""
        tiles = []
        if self.width > 0.0:
            note = f"by cells of width {self.width:.3g}; of log sd {percent(self.log_sd)}"
            tiles = [Tile("Information kept on location", percent(self.location), note)]
        text = [[f"Counts: {self.in_words()}"]]
        return ResultSection("information_kept", dict(vars(self)), text=text, page=(), tiles=tiles)


def information_kept(chains: Chains) -> InformationKept | None:
    """Return the shares for chains of ``sampler.kind: counts``; None for others."""
    width = chains.constants.get("cells_width")
    if width is None:
        return None
    left_over = chains.mean_stat("left_over")
    if width == 0.0:
        return InformationKept(1.0, 1.0, 0.0, 0.0, left_over)
    edges = counted_edges(chains)
    law, kernel = expect(chains.mechanism, Additive), kernel_of_fit(chains)
    channel = law.channel(float(chains.constants["noise_scale"]) if law.protects else 0.0)
    total, narrow, kept = 0.0, 0.0, np.zeros(2)
    every = max(1, chains.draws // _STATES)
    for block in chains.blocks(2048):
        for state in range(-block.start % every, len(block.weights), every):
            weights = block.weights[state]
            theta = np.stack([values[state] for values in block.parameters.values()])
            some = np.flatnonzero(np.nan_to_num(weights) >= _SMALL)
            for h in some:
                share, sd = share_kept(channel, kernel, np.ascontiguousarray(theta[:, [h]]), edges)
                kept += weights[h] * share
                narrow += weights[h] * (sd < width)
                total += weights[h]
    if total == 0.0:
        return InformationKept(float("nan"), float("nan"), 0.0, width, left_over)
    location, log_sd = (float(share) for share in kept / total)
    return InformationKept(location, log_sd, float(narrow / total), width, left_over)


def share_kept(channel: Any, kernel: Any, theta: Floats, edges: Floats) -> tuple[Floats, float]:
    """Return the shares (2,) for mean and log sd of the component theta (2, 1), and its sd."""
    mean, variance, turn = _moments(kernel, theta)
    sd = float(np.sqrt(variance))
    noise = float(getattr(channel, "scale", getattr(channel, "sd", 0.0)))
    step = min(float(np.min(np.diff(edges))), sd, *([noise] if noise else [])) / _FINE
    reach = _REACH * sd + 3.0 * _REACH * noise
    if isinstance(kernel, Beta):
        ends = kernel.lo - 3.0 * _REACH * noise, kernel.lo + kernel.width + 3.0 * _REACH * noise
    else:
        ends = mean - reach, mean + reach
    fine = np.linspace(*ends, int(min(max((ends[1] - ends[0]) / step, 64), _MOST)))
    found = [
        np.diagonal(turn.T @ _information(channel, kernel, theta, grid) @ turn) for grid in (edges, fine)
    ]
    return np.minimum(found[0] / found[1], 1.0), sd


def _information(channel: Any, kernel: Any, theta: Floats, edges: Floats) -> Floats:
    """Return the Fisher information of one count, (2, 2), in the coordinates of Langevin steps."""
    cells = cells_for(channel, kernel, np.ascontiguousarray(edges), np.zeros(0))
    rows = np.zeros((3, len(edges) + 1))
    if not fill_rows(channel, kernel, theta, 0, cells, rows):
        fill_slopes(channel, kernel, theta, 0, cells, rows)
    some = rows[0] > 1e-290
    slopes = rows[1:, some]
    return np.asarray((slopes / rows[0, some]) @ slopes.T)


def _moments(kernel: Any, theta: Floats) -> tuple[float, float, Floats]:
    """Return mean and variance in the data's units, and d coordinates / d(mean, log sd), (2, 2)."""
    first, second = float(theta[0, 0]), float(theta[1, 0])
    if isinstance(kernel, NormalNIG):
        return first, second, np.diag([1.0, 2.0])
    total = first + second
    m, rest = first / total, second / total
    v = m * rest / (total + 1.0)
    by_mean = (1.0 - 2.0 * m) / v / total
    by_log = -(total + 1.0) / total
    turn = np.array([[1.0 / m + by_mean, 2.0 * by_log], [-1.0 / rest + by_mean, 2.0 * by_log]])
    turn[:, 0] /= kernel.width
    return kernel.lo + kernel.width * m, kernel.width**2 * v, turn
