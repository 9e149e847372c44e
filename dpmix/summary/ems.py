"""EM with smoothing: a histogram of the records from counts of what was released, without a prior.

The bounds are cut into 1,024 equal cells, in each of which records are taken for uniform. With T the law's
transition from these to the cells of released values (`Law.transition`) and N the counts there, a step of EM

    x_i <- x_i sum_c N_c/n T_ci / (T x)_c

climbs the likelihood of the histogram x, whose maximum is rough where the noise hides what is fine. So each
step is followed by the weights (1, 2, 1)/4 over neighbouring cells, (2, 1)/3 at the ends (methods, section
13). It stops when the log likelihood changes by less than 1e-3 after the second step, when x changes by less
than 1/n in L1 norm, or at 10,000 steps. A point estimate alone: it has no band, and its smoothing is not of
the data's making.

Sources
-------
- Z. Li, T. Wang, M. Lopuhaa-Zwakenberg, B. Skoric and N. Li (2020), Estimating numerical distributions under
  local differential privacy, SIGMOD, 621-635.
- D. Nychka (1990), Some properties of adding a smoothing step to the EM algorithm, Statistics and Probability
  Letters 9, 187-193.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.columns.cells import Counts
from dpmix.errors import DataError
from dpmix.kernels.layout import Floats
from dpmix.laws.additive import Additive
from dpmix.laws.law_base import Law, expect
from dpmix.models.meaning_base import dated_of
from dpmix.release.tallies import count_outputs, edges_of, tally
from dpmix.results.nodes import Array, ResultSection, figure
from dpmix.run.chains_reader import Chains, ChainSet
from dpmix.spec.days import Day
from dpmix.summary.fitted_columns import public_bounds

if TYPE_CHECKING:
    from dpmix.laws.transitions import Transition
    from dpmix.spec.summary_section import SummarySpec

CELLS: Final = 1024
MOST_STEPS: Final = 10_000
CHANGE: Final = 1e-3  # of the log likelihood
_LEAST = 1e-300  # of a probability: a release may have what its law never gives
_FINE = 16.0  # cells of released values to a standard deviation of Gaussian noise


class EmsEstimate(NamedTuple):
    """Masses (M,) of cells, the steps taken, the log likelihood after each, and whether it stopped there."""

    masses: Floats
    steps: int
    log_likelihood: Floats
    settled: bool


@dataclass(frozen=True)
class Ems:
    """What is reported of the estimate.

    Parameters
    ----------
    edges : float64 array (CELLS + 1,)
        In the units of the data.
    masses : float64 array (CELLS,)
    steps : int
    settled : bool
        Whether it stopped before the last step that is allowed.
    levels : sequence of float
        Of the quantiles that are reported.
    date : bool
        Whether records are dates, which words say as such.
    """

    edges: Floats
    masses: Floats
    steps: int
    settled: bool
    levels: Sequence[float]
    date: bool = False

    @property
    def mean(self) -> float:
        """Of a record."""
        return float(self.masses @ self._middles)

    @property
    def sd(self) -> float:
        """Of a record, uniform in its cell."""
        width = (self.edges[-1] - self.edges[0]) / len(self.masses)
        return math.sqrt(float(self.masses @ (self._middles - self.mean) ** 2) + float(width) ** 2 / 12.0)

    @property
    def _middles(self) -> Floats:
        return np.asarray(0.5 * (self.edges[:-1] + self.edges[1:]))

    def quantile(self, level: float) -> float:
        """Return the quantile of a record."""
        return float(np.interp(level, np.concatenate([[0.0], np.cumsum(self.masses)]), self.edges))

    def density(self, grid: Floats) -> Floats:
        """Return the density at each point of a grid; 0 beyond the bounds."""
        place = np.searchsorted(self.edges, grid, side="right") - 1
        place[grid == self.edges[-1]] -= 1
        inside = (place >= 0) & (place < len(self.masses))
        width = np.diff(self.edges)
        heights = self.masses / width
        return np.where(inside, heights[np.clip(place, 0, len(self.masses) - 1)], 0.0)

    def section(self) -> ResultSection:
        """Return what is reported of it."""
        quantiles = {f"quantile[{level:g}]": self.quantile(level) for level in self.levels}
        data = {
            "edges": Array(("edge",), self.edges),
            "masses": Array(("cell",), self.masses),
            "steps": self.steps,
            "mean": self.mean,
            "sd": self.sd,
            **quantiles,
        }
        place = Day if self.date else float
        told = ", ".join(f"{name} {figure(place(value))}" for name, value in quantiles.items())
        words = (
            f"EMS (EM with smoothing on {len(self.masses):,} cells, {self.steps:,} steps): mean "
            f"{figure(place(self.mean))}, sd {figure(self.sd)}{' days' if self.date else ''}, {told}; a "
            "point estimate without an interval"
        )
        if not self.settled:
            words += ", which had not settled"
        return ResultSection("ems", data, "EM with smoothing", text=[[words]])


def estimate(transition: Transition, counts: Floats, cells: int, *, smooth: bool = True) -> EmsEstimate:
    """Return the estimate for counts (B,) of the cells that a transition is to, from equal masses on.

    Parameters
    ----------
    transition : Transition
    counts : float64 array (B,)
        Numbers of released values.
    cells : int
        Number M of the cells of records.
    smooth : bool
        Whether each step is smoothed; else it is plain EM, whose log likelihood never falls.
    """
    n = float(counts.sum())
    masses = np.full(cells, 1.0 / cells)
    likelihoods: list[float] = []
    fitted = np.maximum(transition.forward(masses), _LEAST)
    before = float(counts @ np.log(fitted))
    for step in range(1, MOST_STEPS + 1):
        moved = masses * transition.backward(counts / fitted)
        moved /= moved.sum()
        if smooth:
            moved = smoothed(moved)
        fitted = np.maximum(transition.forward(moved), _LEAST)
        likelihoods.append(float(counts @ np.log(fitted)))
        change = float(np.abs(moved - masses).sum())
        masses = moved
        if (step > 1 and abs(likelihoods[-1] - before) < CHANGE) or change < 1.0 / n:
            return EmsEstimate(masses, step, np.array(likelihoods), True)
        before = likelihoods[-1]
    return EmsEstimate(masses, MOST_STEPS, np.array(likelihoods), False)


def smoothed(masses: Floats) -> Floats:
    """Return masses (M,) averaged over neighbours by (1, 2, 1)/4, by (2, 1)/3 at the ends, adding to 1."""
    found = np.empty_like(masses)
    found[1:-1] = 0.25 * (masses[:-2] + 2.0 * masses[1:-1] + masses[2:])
    found[0] = (2.0 * masses[0] + masses[1]) / 3.0
    found[-1] = (2.0 * masses[-1] + masses[-2]) / 3.0
    return np.asarray(found / found.sum())


def coarse_edges(noise: str, scale: float, lo: float, hi: float) -> Floats:
    """Return finite edges of cells of released values under additive noise, from public quantities alone.

    Under Laplace noise they are as wide as those of records: beyond the bounds its density factorises, so
    that one cell a side loses nothing. Under Gaussian noise they are a sixteenth of its scale where that is
    more, by which 1/3,072 of the information on a place is lost.
    """
    return edges_of(noise, scale, lo, hi, _width(noise, scale, hi - lo), bounded=True)


def _width(noise: str, scale: float, width: float) -> float:
    return max(width / CELLS, scale / _FINE if noise == "gaussian" else 0.0)


def grouped(tally: Counts, noise: str, scale: float, lo: float, hi: float) -> Counts:
    """Return a tally with neighbouring cells put together where they are finer than is of use.

    Cells stay whole, so that a bound may lie within one.
    """
    factor = int(_width(noise, scale, hi - lo) / tally.width * (1.0 + 1e-9))
    if factor < 2:
        return tally
    kept = np.arange(0, len(tally.edges), factor)
    if kept[-1] != len(tally.edges) - 1:
        kept = np.append(kept, len(tally.edges) - 1)
    starts: NDArray[np.int64] = np.concatenate([[0], kept + 1])
    return Counts(np.add.reduceat(tally.counts, starts), tally.edges[kept], factor * tally.width)


# From the release of a fit


def ems_of(chains: ChainSet, options: SummarySpec) -> Ems | None:
    """Return the estimate by EM with smoothing from the release of a fit, where it is asked for.

    Values are counted first, so that its cost does not grow with their number.

    Raises
    ------
    DataError
        When a record does not release one number whose law is known, or public bounds are missing.
    """
    if "ems" not in options.baselines:
        return None
    law = chains.mechanism
    if not isinstance(chains, Chains) or not law.transitional:
        raise DataError(
            f"summary.baseline: ems needs one number a record of which the law is known, and {law.made_by} "
            "does not release that; leave it out"
        )
    if chains.tally is None and chains.observed.ndim > 1 and chains.observed.shape[1] > 1:
        raise DataError(
            f"summary.baseline: ems is for one column, and these chains are of {chains.observed.shape[1]}"
        )
    bounds = public_bounds(chains, 0, 1)
    if bounds is None:
        raise DataError(
            "summary.baseline: ems needs the public bounds of the column, mechanism.domain, which these "
            "chains do not state; leave it out"
        )
    scale = float(chains.constants["noise_scale"]) if law.additive else 0.0
    if chains.tally is None:
        counts = count_values(law, chains.observed.ravel(), scale, *bounds)
    elif law.additive:
        counts = grouped(chains.tally, expect(law, Additive).noise, scale, *bounds)
    else:
        counts = chains.tally
    found = smoothed_histogram(law, counts, scale, *bounds, options.levels)
    return replace(found, date=dated_of(chains).only)


def count_values(law: Law, values: Floats, scale: float, lo: float, hi: float) -> Counts:
    """Count released values (n,) in the law's outputs, or in cells no finer than is of use."""
    if law.outputs is not None:
        return count_outputs(values, law.outputs)
    edges = coarse_edges(expect(law, Additive).noise, scale, lo, hi)
    return tally(values, edges, float(edges[1] - edges[0]))


def smoothed_histogram(
    law: Law, counts: Counts, scale: float, lo: float, hi: float, levels: Sequence[float] = ()
) -> Ems:
    """Return the estimate by EM with smoothing from counts of what a law with a transition released.

    Parameters
    ----------
    law : Law
    counts : Counts
        In the law's outputs, or in cells of released values.
    scale : float
        Scale of the noise, in the units of the data.
    lo, hi : float
        Public bounds.
    levels : sequence of float
        Of the quantiles that are reported.
    """
    edges = np.linspace(lo, hi, CELLS + 1)
    (chosen,) = np.nonzero(counts.counts)
    transition = law.transition(edges, counts.edges, chosen, scale)
    assert transition is not None  # the caller has looked
    found = estimate(transition, counts.counts[chosen].astype(np.float64), CELLS)
    return Ems(edges, found.masses, found.steps, found.settled, levels)
