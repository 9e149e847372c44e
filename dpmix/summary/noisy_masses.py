"""Masses that fitted densities give to the cells of a tally, after the mechanism (methods, section 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import Beta, NormalNIG
from dpmix.mechanisms.laws.additive import Additive
from dpmix.mechanisms.laws.every import expect
from dpmix.models.counts_mixture.masses import cells_for, fill_rows, fill_slopes
from dpmix.spec.kinds import KERNELS
from dpmix.summary.families.family_of_fit import family_of
from dpmix.summary.grids import public_bounds

if TYPE_CHECKING:
    from dpmix.run.chains_reader import Chains
    from dpmix.summary.random_measures import Measures

__all__ = ["NoisyMasses", "channel_of", "kernel_of_fit", "share_kept", "theta_of"]

# Fisher information of counts about one component, beside that of released values


_FINE = 16.0  # cells of the finer grid to a cell, a noise scale or a standard deviation
_REACH = 12.0  # standard deviations, and three times as many noise scales, that it covers
_MOST = 20_000

Floats = NDArray[np.float64]


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


def channel_of(chains: Chains) -> Any:
    """Return the channel of a release with noise on each number, or without noise."""
    law = expect(chains.mechanism, Additive)
    return law.channel(float(chains.constants["noise_scale"]) if law.protects else 0.0)


# Masses that fitted densities give to the cells of a tally, after the mechanism (methods, section 12)


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


class NoisyMasses:
    """Of one released number, given draws of P: shape (cells,).

    Parameters
    ----------
    chains : Chains
        Of a fit to a tally.
    """

    def __init__(self, chains: Chains) -> None:
        assert chains.tally is not None  # the caller has looked
        self._chains, self._counts, self._kernel = chains, chains.tally, kernel_of_fit(chains)
        seen = chains.mechanism.observe(np.zeros((0, 1)), chains.n, (0,), rows=False)
        self._channel: Any = seen.channel
        finite = self._counts.width == 0.0
        outputs = np.arange(len(self._counts.counts), dtype=np.float64) if finite else np.zeros(0)
        edges = np.zeros(0) if finite else np.ascontiguousarray(self._counts.edges)
        self._cells = cells_for(self._channel, self._kernel, edges, outputs)

    def of(self, measure: Measures) -> Floats:
        """Return the masses under a measure, which add to 1: what is on none of its atoms is left out."""
        found = np.zeros(len(self._counts.counts))
        for weight, mass in zip(measure.weights, self.of_atoms(measure.atoms), strict=True):
            found += weight * mass
        return np.asarray(found / found.sum())

    def of_atoms(self, atoms: Floats) -> Floats:
        """Return the masses (k, cells) under each of the atoms (2, k), as families have them."""
        theta = theta_of(self._chains, atoms)
        rows: NDArray[np.float64] = np.zeros((3, len(self._counts.counts)))
        found = np.empty((theta.shape[1], rows.shape[1]))
        for h in range(theta.shape[1]):
            fill_rows(self._channel, self._kernel, theta, h, self._cells, rows)
            found[h] = rows[0]
        return found
