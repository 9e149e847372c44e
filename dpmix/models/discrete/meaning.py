"""What chains of the discrete model mean: replicates, variances of the mean, what is left to the prior.

Chains hold of each P its distribution function on a grid, or the probabilities of the categories, column by
column. Records of a generator that continues the sequence of the confidential ones (`pitman_yor`, and
`dirichlet_multinomial` under its own prior) are independent draws of the P that the chains are of. Else the
confidential records are drawn from P, and the generator from these; between the points of the grid P is taken
for linear, as the model knows no more within a cell than its base measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.columns.dated import bins_in_words
from dpmix.laws.additive import draw_noise, noise_sd
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import expect
from dpmix.laws.synthetic import SyntheticLaw
from dpmix.models.meaning_base import (
    GroupedHistogram,
    Meaning,
    OfBins,
    OwnAccount,
    StatisticReplicator,
    Unavailable,
    dated_of,
)
from dpmix.numerics.equal_cells import among
from dpmix.results.nodes import Remark, percent

if TYPE_CHECKING:
    from dpmix.columns.cells import Column
    from dpmix.laws.every import Law
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import ChainSet, NamedChains
    from dpmix.spec.summary_section import SummarySpec

Floats = NDArray[np.float64]
_SAME = 1e-9  # of a range
_MOST = 64  # cells of a column whose shares are compared; of more, the distribution function at so many edges


class DiscreteMarginals(StatisticReplicator):
    """Shares of released records in the cells of each column by itself."""

    what = "shares of records in cells"
    unit = "of the released records"

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.per = 1.0 + 1e-9  # entries are shares already
        self.law: SyntheticLaw = expect(chains.mechanism, SyntheticLaw)
        self.columns = stated = self.law.columns
        self.released = len(chains.observed)
        counted = self.law.counted
        self.cells = self.law.cells if counted else None
        self.parameters = [_of_column(chains, column, len(stated)) for column in stated]
        self.needed = tuple(parameter.name for parameter in self.parameters)
        self.shared = not counted or float(str(chains.attrs.get("variance_ratio", "1"))) != 1.0
        self.edges = [self._edges(i) for i in range(len(stated))]
        self.size = sum(map(len, self.edges))
        if self.law.noise and len(stated) > 1:
            raise Unavailable("records of several columns drawn from noisy counts are not replicated")

    @property
    def names(self) -> list[str]:
        """Cells by column: labels, or half-open intervals."""
        found = []
        for column, parameter, edges in zip(self.columns, self.parameters, self.edges, strict=True):
            if column.bounds is None:
                words = [str(name) for name in parameter.coords[parameter.dims[0]]]
            else:
                words = bins_in_words(edges, date=column.date, ends="(]")
            found += [f"{column.name} {word}" for word in words]
        return found

    def _edges(self, i: int) -> Floats:
        """Return the edges of what is compared of a column; of labels places between their codes."""
        parameter, column = self.parameters[i], self.columns[i]
        if column.bounds is None:
            return np.asarray(np.arange(len(parameter.coords[parameter.dims[0]]) + 1) - 0.5, dtype=np.float64)
        if self.cells is None or self.shared:
            grid = np.asarray(parameter.coords[parameter.dims[0]], dtype=np.float64)
            return np.asarray(grid[:: max(1, (grid.size - 1) // 25)])
        edges = self.cells.edges(i)
        noise, snap = self.law.noise, self.cells.grids[i]
        if snap is not None:
            known = np.asarray(parameter.coords[parameter.dims[0]], dtype=np.float64)
            apart = np.abs(snap.points[:, None] - known).min(axis=1)
            if (apart <= _SAME * (known[-1] - known[0])).all():
                return edges
            if noise:
                raise Unavailable("the chains hold the distribution at fewer points than carry noise")
            return known  # P is a step function, and known at these steps
        if not noise:  # else each cell has noise of its own
            edges = edges[_known(edges, parameter)]
            if edges.size > _MOST + 1:
                edges = np.append(edges[: -1 : -(-edges.size // _MOST)], edges[-1])
        return edges

    def reduce(self, released: Floats) -> Floats:
        """Return the shares of the released records."""
        table, parts = released.reshape(len(released), -1), []
        for values, edges in zip(table.T, self.edges, strict=True):
            # P(X <= edge) is what the model gives; the first cell holds its lower edge too
            same = _SAME * (edges[-1] - edges[0])  # values may differ from edges in their last digits
            place = np.clip(np.searchsorted(edges + same, values) - 1, 0, edges.size - 2)
            parts.append(np.bincount(place, minlength=edges.size - 1) / len(table))
        return np.concatenate(parts)

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Refuse: records of several columns are not drawn together."""
        raise Unavailable("synthetic records are replicated column by column only")

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw the shares of a release."""
        parts = []
        for i, (column, parameter, edges) in enumerate(
            zip(self.columns, self.parameters, self.edges, strict=True)
        ):
            drawn = self.values[parameter.name][chain, state]
            grid = parameter.coords[parameter.dims[0]]
            steps = self.cells is not None and self.cells.grids[i] is not None
            shares = drawn if column.bounds is None else cell_probabilities(grid, drawn, edges, steps=steps)
            counts = self._draw(i, shares / shares.sum(), rng)
            parts.append(counts / self.released)
        return np.concatenate(parts)

    def _draw(self, i: int, shares: Floats, rng: Generator) -> Floats:
        """Draw how many released records fall into each cell of a column."""
        m, n = self.released, self.chains.n
        if self.shared:
            return rng.multinomial(m, shares).astype(np.float64)
        counts = rng.multinomial(n, shares).astype(np.float64)
        assert self.cells is not None  # of the other generators
        sizes = self._sizes(i)
        if self.law.generator == "dirichlet_multinomial":
            weights = counts + float(self.law.concentration) * self.cells.count * sizes
            drawn = rng.standard_gamma(np.maximum(weights, 1e-300))
            return rng.multinomial(m, drawn / drawn.sum()).astype(np.float64)
        if self.law.noise:
            noise = draw_noise(self.law.noise, self.law.scale[0], counts.size, rng)
            counts = np.maximum(counts + noise, 0.0)
            counts = counts if counts.sum() > 0.0 else np.ones(counts.size)
        weight = float(self.law.weight or 0.0)
        mixed = (1.0 - weight) * counts / counts.sum() + weight * sizes
        return rng.multinomial(m, mixed / mixed.sum()).astype(np.float64)

    def _sizes(self, i: int) -> Floats:
        """Return the share of all cells that each place of a column stands for."""
        assert self.cells is not None  # of generators of cells
        edges, snap = self.edges[i], self.cells.grids[i]
        if self.columns[i].bounds is None:
            return np.full(edges.size - 1, 1.0 / (edges.size - 1))
        if snap is not None:
            same = _SAME * (edges[-1] - edges[0])
            place = np.clip(np.searchsorted(edges + same, snap.points) - 1, 0, edges.size - 2)
            return np.asarray(np.bincount(place, minlength=edges.size - 1) / snap.count)
        whole = self.cells.edges(i)
        return np.asarray(np.diff(np.searchsorted(whole, edges)) / (whole.size - 1))


class DiscreteHistogram(OfBins, StatisticReplicator):
    """Noisy counts of a histogram's bins, or numbers of draws in them."""

    law: HistogramLaw

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.tell_bins(chains)
        self.parameter = cdf_of(chains)
        self.runs, self.bins = _runs(self.edges, self.parameter, chains)
        self.needed, self.size = (self.parameter.name,), 2 * self.edges.size

    def reduce(self, released: Floats) -> Floats:
        """Return the entries of the bins, of runs of them where the chains say no more."""
        return np.add.reduceat(super().reduce(released), self.runs)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw what is released, in the entries of `reduce`."""
        return np.add.reduceat(self._released(chain, state, rng), self.runs)

    def _released(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw counts of records, and what is released of them."""
        grid = self.parameter.coords[self.parameter.dims[0]]
        shares = cell_probabilities(grid, self.values[self.parameter.name][chain, state], self.edges)
        counts = rng.multinomial(self.chains.n, shares / shares.sum()).astype(np.float64)
        return self.law.draw_from_counts(counts, rng)

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Return noisy counts; numbers of draws are not placed in their bins."""
        if self.of_draws:
            raise Unavailable("draws of a smoothed histogram are replicated as numbers in bins only")
        return self._released(chain, state, rng)[:, None]


def _known(edges: Floats, parameter: Stored) -> NDArray[np.bool_]:
    """Return at which edges of cells the chains hold the distribution function; it ends at the outermost."""
    found = among(edges, np.asarray(parameter.coords[parameter.dims[-1]], dtype=np.float64))
    found[[0, -1]] = True
    return found


def _runs(edges: Floats, parameter: Stored, chains: NamedChains) -> tuple[NDArray[np.intp], list[str]]:
    """Return the first bins of runs between edges at which the distribution function is held, and names.

    Within a run a draw of P is not known bin by bin, and taking it for linear would give replicates that no
    P of the posterior has.

    Raises
    ------
    Unavailable
        Where there is one run of all bins, as in files of earlier versions.
    """
    known = _known(edges, parameter)
    runs = np.flatnonzero(known)[:-1]
    if runs.size < min(2, edges.size - 1):
        raise Unavailable("the chains hold the distribution at none of the edges between bins; fit again")
    return runs, bins_in_words(edges[known], date=dated_of(chains).only)


def cdf_of(chains: NamedChains) -> Stored:
    """Return the distribution function of the one column of a histogram."""
    return _of_column(chains, None, 1)


def _of_column(chains: NamedChains, column: Column | None, count: int) -> Stored:
    """Return the parameter that the distribution of a column's records is in."""
    if column is not None and column.free:
        raise Unavailable(
            f"the labels of {column.name} are free, and those that are known are the released ones themselves"
        )
    title = "probability" if column is not None and column.bounds is None else "cdf"
    for parameter in chains.parameters:
        own = count == 1 or (column is not None and parameter.column == column.name)
        if parameter.title == title and parameter.role in ("curve", "shares") and own:
            return parameter
    raise Unavailable("the chains do not hold the distribution of a record")


def cell_probabilities(
    grid: NDArray[np.generic] | Sequence[float], cdf: Floats, edges: Floats, *, steps: bool = False
) -> Floats:
    """Return the mass of each cell (a, b] between edges; what lies beyond the ends counts to the end cells.

    Between the points of the grid the distribution function is linear, or with `steps` constant.
    """
    places = np.asarray(grid, dtype=np.float64)
    if steps:
        at = cdf[np.maximum(np.searchsorted(places, edges, side="right") - 1, 0)]
    else:
        at = np.interp(edges, places, cdf)
    at[0], at[-1] = 0.0, 1.0
    return np.maximum(np.diff(at), 0.0)


class GroupedDiscrete(GroupedHistogram):
    """Releases of histograms of groups."""

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self._cdf = cdf_of(chains)
        self.needed = (self._cdf.name,)
        self._runs, self.bins = _runs(self.edges, self._cdf, chains)

    def reduce(self, released: Floats) -> Floats:
        """Return the entries of the bins of each group, of runs of them where the chains say no more."""
        return self._joined(super().reduce(released))

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw what is released, in the entries of `reduce`."""
        return self._joined(super().replicate(chain, state, rng))

    def _joined(self, entries: Floats) -> Floats:
        by_group = entries.reshape(len(self.groups), -1)
        return np.add.reduceat(by_group, self._runs, axis=1).ravel()

    def shares(self, chain: int, state: int) -> Floats:
        """Return the probabilities of the bins (groups, bins) under a state."""
        grid = self._cdf.coords[self._cdf.dims[-1]]
        every = self.values[self._cdf.name][chain, state]
        return np.stack([cell_probabilities(grid, own, self.edges) for own in every])


def clean_variance_of_mean(
    mean: Floats, sd: Floats, prior_mean: Floats, prior_sd: Floats, concentration: float, n: int
) -> float:
    """Return E V_clean of the mean of P ~ DP(alpha, G0) given n records of P, expected over the posterior.

    Given records the mean of P has the variance of H = (alpha G0 + sum of them) / (alpha + n) over
    alpha + n + 1. Of H both moments are expected given P.

    Parameters
    ----------
    mean, sd : float64 arrays
        Of records under draws of P from the posterior.
    prior_mean, prior_sd : float64 arrays (draws,)
        The same from the prior, which tell the moments of G0.
    concentration : float
        alpha.
    n : int
    """
    weight = n / (n + concentration)
    base = float(prior_mean.mean())  # squares are about it: nothing is lost where records lie far from 0
    base_square = float((prior_sd**2 + (prior_mean - base) ** 2).mean())
    apart = mean - base
    square = weight * (sd**2 + apart**2) + (1.0 - weight) * base_square
    first = weight**2 * (apart**2 + sd**2 / n)
    return float((square - first).mean() / (concentration + n + 1.0))


# How much a release leaves to the prior


HIDDEN = 0.02
"""Noise of all cells together, as a share of the records, from which on the prior is said to place them.

At 6% (21 cells, noise of standard deviation 2.8, 1,000 records) 90% intervals of the mean held it in
7, 11 and 7 of 12 releases under a concentration of 1, and of a half and one record a cell. Of many records a
smaller share is more than the sampling error of a number of them, sqrt(n), which intervals are as narrow as:
of 64 cells with that noise 95% intervals of the sd held it in 4 of 10 releases at n = 10,000 (181 records,
1.8%), in 12 of 16 at 18,000 and in 14 of 16 at 36,000; of 1,024 cells in 2 of 6 at 1,000,000 (0.29%).
"""


def discrete_remarks(chains: ChainSet) -> list[Remark]:
    """Say where records that nobody sees are placed by the prior, however much the release has taught."""
    law, n = chains.mechanism, chains.n
    if law.released == "synthetic" and not expect(law, SyntheticLaw).counted:
        return _new_values(expect(law, SyntheticLaw))
    found = _noise_of_cells(law, n)
    concentration = chains.constants.get("concentration")
    if found is None or concentration is None:
        return []
    cells, sd = found
    hidden = cells * sd / n
    if hidden <= HIDDEN and cells * sd <= math.sqrt(n):
        return []
    text = (
        f"What the release leaves open of {cells:,} cells, a standard deviation of {sd:.2g} records in "
        f"an empty one, comes to {percent(min(1.0, hidden))} of the records: whether so many are in cells "
        f"that look empty is said by the prior, of concentration {concentration:.4g}, which mean, sd and "
        f"tails may hang on; see what model.concentration: {_half(cells, concentration):.4g} gives."
    )
    return [Remark(text, convergence=False, grave=False)]


def _half(cells: int, concentration: float) -> float:
    """Return half a record a cell, or where that was taken what prefers empty cells."""
    half = 0.5 * cells
    return 1.0 if math.isclose(concentration, half, rel_tol=0.1) else half


def _noise_of_cells(law: Law, n: int) -> tuple[int, float] | None:
    """Return the number of cells, and how well the release tells the records of an empty one."""
    if law.released == "histogram":
        histogram = expect(law, HistogramLaw)
        shares = np.zeros(max(2, histogram.bins))
        shares[0] = 1.0
        gain, covariance = histogram.covariance(shares, n)
        cells = histogram.bins * max(1, len(histogram.group_names))
        return cells, n * math.sqrt(float(covariance[1, 1])) / gain if gain > 0 else math.inf
    if law.released != "synthetic":
        return None
    synthetic = expect(law, SyntheticLaw)
    cells = math.prod(map(int, synthetic.bins))
    if synthetic.noise is not None:
        return cells, noise_sd(str(synthetic.noise), synthetic.scale[0])
    draws = synthetic.records
    if not draws:
        return None
    if synthetic.generator == "dirichlet_multinomial":
        prior = float(synthetic.concentration)
        return cells, math.sqrt((n + cells * prior) * prior / draws)
    weight = float(synthetic.weight)
    return cells, n * math.sqrt(weight / cells / draws) / (1.0 - weight) if weight < 1.0 else math.inf


def _new_values(law: SyntheticLaw) -> list[Remark]:
    """Say of an urn with a discount that new numbers cannot be told from those of people."""
    if law.generator != "pitman_yor" or not (law.discount or 0.0) > 0.0:
        return []
    free = [
        part.name
        for part, grid in zip(law.columns, law.snaps, strict=True)
        if part.bounds is not None and not grid
    ]
    if not free:
        return []
    text = (
        f"New values of {', '.join(free)}, which the base of the release made up, cannot be told from those "
        f"of confidential records, and under a discount of {law.discount:g} there are the more of them the "
        f"more values these have, up to {percent(float(law.discount))} of the release: the fit takes the "
        "base for where values that nobody has seen lie, and mean, sd and quantiles lean to it where that "
        "is not so."
    )
    return [Remark(text, convergence=False, grave=False)]


class DiscreteMeaning(Meaning):
    """Of the discrete model, whose chains hold functionals of P."""

    replicators = {"histogram": DiscreteHistogram, "synthetic": DiscreteMarginals}
    of_groups = {"histogram": GroupedDiscrete}

    def log_prior(self) -> Floats:
        """Refuse."""
        raise Unavailable(
            "the chains of the discrete model hold functionals of P, and not P, whose prior it is"
        )

    def account(self, options: SummarySpec) -> OwnAccount:
        """Return what is left to the prior."""
        return OwnAccount(last=discrete_remarks(self.chains))

    def variances_of_mean(self) -> tuple[Mapping[str, tuple[float, float, float]], str]:
        """Return those of each column's mean, in closed form of records whose mean and sd are known."""
        chains = self.chains
        held = {(p.title, p.column): p for p in chains.parameters if p.role == "scalar" and not p.groups}
        columns = [column for title, column in held if title == "mean" and ("sd", column) in held]
        if not columns:
            raise Unavailable("the chains hold no mean and standard deviation of one number a record")
        if chains.constants.get("discount", 0.0) > 0.0:
            raise Unavailable("under a discount the variance given clean records has no closed form")
        found = {}
        for column in columns:
            of_mean, of_sd = held["mean", column], held["sd", column]
            before, before_sd = chains.prior(of_mean), chains.prior(of_sd)
            if before is None or before_sd is None:
                raise Unavailable("the chains file keeps no draws from the prior; fit again")
            mean, sd = chains.read(of_mean), chains.read(of_sd)
            concentration = float(chains.constants["concentration"])
            clean = clean_variance_of_mean(mean, sd, before, before_sd, concentration, chains.n)
            found[column] = (float(np.var(mean, ddof=1)), float(np.var(before, ddof=1)), clean)
        return found, "of the discrete model the mean's alone is known, in closed form"


MEANING = DiscreteMeaning
