"""The posterior of the random density: mean, bands, moments, and Hellinger distance from the prior's."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.kernels.normal.family import levels_of_nodes
from dpmix.laws.additive import Noisy
from dpmix.models.meaning_base import BAND_DRAWS
from dpmix.numerics.equal_cells import spread
from dpmix.run.chains_reader import Block, Chains, read_chains
from dpmix.run.kept_quantities import Recorded
from dpmix.summary.fitted_columns import (
    FittedColumn,
    columns_of,
    density_points,
    family_of,
    labels,
    public_bounds,
)
from dpmix.summary.quantities import (
    PILED,
    HiddenPile,
    Wanted,
    cdf,
    hidden_pile,
    outside,
    piled_up,
    quantiles,
    quantities,
)
from dpmix.summary.random_measures import BLOCK, Measures, draw_measures, join, settle_rest, state_measures
from dpmix.summary.within_cells import gaps_within, looked_at

if TYPE_CHECKING:
    from dpmix.kernels.layout import Family, Floats

_LEVELS = 500
_HELLINGER_SAMPLE = 20_000
_NEAR = 1e4
_SAMPLE = 4_000
_STATES = 1_000
_FEW = 40  # draws that tell which cell of a release has most
_HALVED = 1000  # runs of cells, in looking for it
_OFF = 0.02  # by which the trapezoid's mass of the posterior may be off 1


def hellinger(nodes: Floats, first: Floats, second: Floats) -> float:
    """Hellinger distance H, H^2 = 1 - integral of sqrt(f g), of two densities given at increasing `nodes`.

    The integral is the trapezoid's; the nodes must reach beyond all but a negligible mass of f or g.

    Returns
    -------
    float
        Between 0 (equal) and 1 (disjoint).
    """
    affinity = float(np.trapezoid(np.sqrt(first * second), nodes))
    return float(np.sqrt(max(0.0, 1.0 - affinity)))


def nodes_for(measures: Measures, family: Family, rng: np.random.Generator) -> Floats:
    """Points dense where the prior predictive or the mean of `measures` has mass, and far into both tails.

    Returns
    -------
    float64 array
        About a thousand increasing points: those of the prior predictive, and quantiles of the posterior at
        levels evenly spaced in logit, as far as a sample of 20,000 shows them.
    """
    parts = [family.nodes()]
    mass = measures.weights.sum()
    if mass > 0.0:
        chosen = rng.choice(measures.weights.size, size=_HELLINGER_SAMPLE, p=measures.weights / mass)
        sample = family.sample(measures.atoms[:, chosen], rng)
        parts.append(np.quantile(sample, levels_of_nodes(_NEAR, _LEVELS)))
        width = sample.max() - sample.min()
        parts.append(sample.min() - width * np.linspace(0.5, 0.01, 20))
        parts.append(sample.max() + width * np.linspace(0.01, 0.5, 20))
    return np.unique(np.concatenate(parts))


def distance_from_prior(
    batches: list[Measures], family: Family, rng: np.random.Generator
) -> tuple[float, float]:
    """Hellinger distance of the batches' mean density from the prior predictive, and its Monte Carlo bias.

    By the trapezoid over `nodes_for`, or by draws where these do not hold the posterior's mass: of records
    that are all but certain it has spikes far narrower than the gap of two nodes.

    Parameters
    ----------
    batches : list of Measures
        Stretches of chains, long enough to be nearly independent of each other; at least one.
    family : Family
        Kernel and base measure.
    rng : numpy.random.Generator
        For the choice of nodes, and for the points where it is by draws.

    Returns
    -------
    distance : float
        H of the estimated mean density.
    bias : float
        What Monte Carlo error adds to H^2 on average where H is small: to second order the integral of
        Var(f) / (8 f), estimated from the spread of the batches; 0 with one batch.
    """
    sizes = np.asarray([batch.counts.size for batch in batches], dtype=np.float64)
    family = family.for_distance()
    nodes = nodes_for(join(batches), family, rng)
    each = np.stack([b.total(nodes, family) for b in batches]) / sizes[:, None]
    mean = (sizes @ each) / sizes.sum()
    if not abs(float(np.trapezoid(mean, nodes)) - 1.0) <= _OFF:
        points = family.sample(family.draw(rng, _SAMPLE), rng)

        def density(batch: Measures, y: Floats) -> Floats:
            return batch.total(y, family) / batch.counts.size

        return _distance_by_draws(batches, points, family.sample, density, family.predictive, rng)
    distance = hellinger(nodes, mean, family.predictive(nodes))
    if len(batches) == 1:
        return distance, 0.0
    variance = each.var(axis=0, ddof=1) / len(batches)
    bias = float(np.trapezoid(variance / np.maximum(mean, 1e-300), nodes)) / 8.0
    return distance, bias


def _distance_by_draws(
    batches: list[Measures],
    points: Floats,
    sample: Callable[[Floats, np.random.Generator], Floats],
    density: Callable[[Measures, Floats], Floats],
    predictive: Callable[[Floats], Floats],
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Hellinger distance of the mean density f from the prior predictive g, and its bias, by Monte Carlo.

    With x drawn from (f + g) / 2, 1 - H^2 is the mean of sqrt(f g) / ((f + g) / 2), which is between 0 and 1.
    Where f = g the estimate has no error.

    Parameters
    ----------
    batches : list of Measures
        Each is thinned evenly, to at most 1,000 states in all.
    points : float64 array (size,) or (size, d)
        Draws from the prior predictive; the first half is replaced by draws from f.
    sample, density, predictive : callable
        Give a record of each atom, the mean density of a batch at points, and g there.
    rng : numpy.random.Generator
    """
    most = max(1, _STATES // len(batches))
    batches = [batch.take(spread(batch.counts.size, most)) for batch in batches]
    whole = join(batches)
    # a state, then one of its atoms or what lies on none
    shares = np.concatenate([whole.weights, whole.rest])
    chosen = rng.choice(shares.size, size=len(points) // 2, p=shares / shares.sum())
    drawn = chosen[chosen < whole.weights.size]
    points[: drawn.size] = sample(whole.atoms[:, drawn], rng)
    each = np.stack([density(batch, points) for batch in batches])
    sizes = np.asarray([batch.counts.size for batch in batches], dtype=np.float64)
    mean, prior = (sizes @ each) / sizes.sum(), predictive(points)
    middle = 0.5 * (mean + prior)
    square = 1.0 - float(np.mean(np.sqrt(mean * prior) / middle))
    distance = float(np.sqrt(max(square, 0.0)))
    if len(batches) == 1:
        return distance, 0.0
    variance = each.var(axis=0, ddof=1) / len(batches)
    return distance, float(np.mean(variance / np.maximum(mean, 1e-300) / middle)) / 8.0


# What concerns several columns together: correlations, distance from the prior, the density of two


POINTS = 61
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Joint:
    """Posterior mean density of two columns together.

    Parameters
    ----------
    columns : tuple of str
        Their names.
    grids : tuple of float64 arrays (points,)
        Where it is evaluated.
    mean : float64 array (points of the first, points of the second)
        From at most 1,000 evenly spaced states.
    """

    columns: tuple[str, str]
    grids: tuple[Floats, Floats]
    mean: Floats


def mean_density(measures: Measures, family: NormalInverseWishart, y: Floats) -> Floats:
    """Mean density of the draws at points `y` (points, d), their leftover mass on the prior predictive."""
    out = measures.rest.sum() * np.exp(family.log_predictive(y))
    size = max(1, _BLOCK // max(1, len(y)))
    for start in range(0, measures.weights.size, size):
        inside = slice(start, start + size)
        out += family.densities(measures.weights[inside], measures.atoms[:, inside], y).sum(axis=0)
    return np.asarray(out / measures.counts.size)


def joint_density(
    states: Measures, family: NormalInverseWishart, names: tuple[str, str], grids: tuple[Floats, Floats]
) -> Joint:
    """Evaluate the posterior mean density of two columns on a grid over the ranges of `grids`."""
    axes = tuple(np.linspace(grid[0], grid[-1], POINTS) for grid in grids)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    chosen = states.take(spread(states.counts.size, _STATES))
    return Joint(names, (axes[0], axes[1]), mean_density(chosen, family, points).reshape(POINTS, POINTS))


def joint_distance(
    batches: list[Measures], family: NormalInverseWishart, rng: np.random.Generator
) -> tuple[float, float]:
    """Hellinger distance of the mean density of all columns from the prior predictive, by 4,000 draws.

    Parameters
    ----------
    batches : list of Measures
        Stretches of chains; each is thinned evenly, to at most 1,000 states in all.
    family : NormalInverseWishart
    rng : numpy.random.Generator
        Source of the points.

    Returns
    -------
    distance, bias : float
        As in `distance_from_prior`.
    """
    return _distance_by_draws(
        batches,
        family.draw_predictive(rng, _SAMPLE),
        family.sample,
        lambda batch, y: mean_density(batch, family, y),
        lambda y: np.asarray(np.exp(family.log_predictive(y))),
        rng,
    )


def correlations(measures: Measures, family: NormalInverseWishart) -> Floats:
    """Correlations of the columns of a record under each draw, pairs (0, 1), (0, 2), .. (1, 2), ..

    Mass on no atom is left out: it is little, and the prior predictive may have no variance.

    Returns
    -------
    float64 array (D, d (d - 1) / 2)
        0 where a draw has no atom.
    """
    d = family.size
    owner = np.repeat(np.arange(measures.counts.size), measures.counts)

    def sums(values: Floats) -> Floats:
        total = np.bincount(owner, measures.weights * values, minlength=measures.counts.size)
        return np.asarray(total, dtype=np.float64)

    mass = np.maximum(sums(np.ones(owner.size)), 1e-300)
    apart = [measures.atoms[j] - family.mu0[j] for j in range(d)]
    apart = [one - (sums(one) / mass)[owner] for one in apart]  # about the draw's own mean

    def covariance(j: int, k: int) -> Floats:
        return np.asarray(sums(apart[j] * apart[k] + measures.atoms[d + j * d + k]) / mass)

    variances = [np.maximum(covariance(j, j), 1e-300) for j in range(d)]
    pairs = [
        covariance(j, k) / np.sqrt(variances[j] * variances[k]) for j in range(d) for k in range(j + 1, d)
    ]
    return np.stack(pairs, axis=1)


# One pass over the components of all chains


DISTANCE_DRAWS = 4_000
_COLUMNS = 256


@dataclass(frozen=True)
class Density:
    """The density of a record Y, in the data's units.

    Parameters
    ----------
    grid : float64 array (points,)
        Where it is evaluated.
    mean : float64 array (points,)
        Posterior mean, which is the posterior predictive density.
    lower, upper : float64 arrays (points,)
        Equal-tailed pointwise band of the random density.
    prior : float64 array (points,) or None
        Prior predictive density, where the prior is not made of the release.
    hellinger_from_prior : float or None
        Hellinger distance between `mean` and `prior` over the whole line.
    baselines : mapping of str to float64 array (points,)
        Estimates without a model that were asked for, by name: `dpmix.summary.deconvolution`,
        `dpmix.summary.ems`.
    baseline_bandwidth : float, optional
        Bandwidth of the kernel estimate among them.
    group : str
        The group of records that it is of; empty where there is only one.
    resolved : bool
        Whether the grid shows it: else it has spikes between the points, or all but lies beyond them.
    """

    grid: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    prior: Floats | None
    hellinger_from_prior: float | None
    baselines: Mapping[str, Floats] = field(default_factory=dict)
    baseline_bandwidth: float | None = None
    group: str = ""
    resolved: bool = True

    @property
    def baseline(self) -> Floats | None:
        """The baseline that was asked for first, which mostly is the only one."""
        return next(iter(self.baselines.values()), None)


@dataclass(frozen=True)
class DensityPosterior:
    """What one pass over the components of all chains gives.

    Parameters
    ----------
    densities : mapping of str to Density
        By column, under "" where there is only one. Means are from all saved states, bands from `band_draws`
        evenly spaced ones.
    hellinger : float
        Hellinger distance of the density of a record, of all columns together, from the prior predictive.
    hellinger_bias : float
        What Monte Carlo error adds to its square, on average.
    series : mapping of str to float64 array (C, D)
        Scalars of the random density at each saved state: `mean` and `sd` of a record, what else is wanted
        (`quantile[0.5]`, ..), and the density at three points (keys such as `density[3.5]`); by column where
        there are several, and the correlations.
    band_draws : int
        Number of draws behind the bands.
    beyond : mapping of str to float
        Posterior mean of the share of records beyond the public bounds, by column, where those are known and
        the kernel has mass beyond them.
    cells : triple of float or None
        Of a release of cells: posterior means of the shares of records in the first and last, or beyond, in
        the cell that has most, and in the one where most are piled up (these two from a few draws).
    joint : Joint or None
        Density of both columns, where there are two.
    hidden : mapping of str to HiddenPile
        Of columns that have one.
    within : mapping of str to float
        Of a release of cells, what a smooth curve with the same share in each cell adds to a figure.
    """

    densities: Mapping[str, Density]
    hellinger: float
    hellinger_bias: float
    series: Mapping[str, Floats]
    band_draws: int
    beyond: Mapping[str, float]
    cells: tuple[float, float, float] | None = None
    joint: Joint | None = None
    hidden: Mapping[str, HiddenPile] = field(default_factory=dict)
    within: Mapping[str, float] = field(default_factory=dict)

    @property
    def density(self) -> Density:
        """The density of the first column, which mostly is the only one."""
        return next(iter(self.densities.values()))


def posterior_density(
    chains: Chains, grids: Sequence[Floats], level: float, wanted: Sequence[Wanted] | None = None
) -> DensityPosterior:
    """Go once through the components of all chains.

    For each saved state one P is drawn (`dpmix.summary.random_measures`), its leftover mass w_0 from a
    generator derived from the chains' seed, so that the same files always give the same result. The mean uses
    w_0 times the prior predictive, its exact mean. Methods, section 4, "Reported".

    Parameters
    ----------
    chains : Chains
        What `read_chains` gives.
    grids : sequence of float64 array (points,)
        Increasing points, for each column.
    level : float
        Pointwise probability of the band.
    wanted : sequence of Wanted, optional
        What else is wanted of each column; nothing where left out.
    """
    source = family_of(chains)
    several = source if isinstance(source, NormalInverseWishart) else None
    columns = columns_of(chains, source)
    asked = [Wanted()] * len(columns) if wanted is None else wanted
    works = [
        _Work(number, columns, grid, chains, want)
        for number, (grid, want) in enumerate(zip(grids, asked, strict=True))
    ]
    related = {name: np.empty(chains.n_clusters.shape) for name in correlation_names(columns)}
    count, draws = chains.n_clusters.shape
    some = spread(draws, max(1, BAND_DRAWS // count))
    kept: list[Measures] = []
    states: list[tuple[int, Measures]] = []
    for block in chains.blocks(BLOCK):
        rows = slice(block.start, block.start + block.weights.shape[0])
        where = block.chain, rows
        state, drawn = draw_block(chains, block, source)
        for work in works:
            work.add(where, of_column(state, work.column), of_column(drawn, work.column))
        if several is not None:
            for values, found in zip(related.values(), correlations(drawn, several).T, strict=True):
                values[where] = found
        chosen = some[(some >= rows.start) & (some < rows.stop)] - rows.start
        kept.append(drawn.take(chosen))
        states.append((block.chain, state.take(chosen)))
    last, batches = join(kept), _batches(states)
    densities, bias = {}, 0.0
    for number, work in enumerate(works):
        parts = [of_column(batch, work.column) for batch in batches]
        rng = chains.generator(-1 - number, 0)
        densities[work.column.name], bias = work.finish(of_column(last, work.column), parts, level, rng)
    series = {name: values for work in works for name, values in work.series.items()}
    beyond = {work.column.name: work.beyond for work in works if work.beyond is not None}
    hidden = {work.column.name: work.hidden for work in works if work.hidden is not None}
    if several is None:
        only = densities[""].hellinger_from_prior
        assert only is not None  # a mixture's prior is proper
        cells, within, size = works[0].cells, works[0].within, some.size * count
        return DensityPosterior(
            densities, only, bias, series, size, beyond, cells, hidden=hidden, within=within
        )
    distance, bias = joint_distance(batches, several, chains.generator(0, -1))
    joint = None
    if len(columns) == 2:
        names, axes = (columns[0].name, columns[1].name), (works[0].grid, works[1].grid)
        joint = joint_density(join([part for _, part in states]), several, names, axes)
    series |= related
    return DensityPosterior(
        densities, distance, bias, series, some.size * count, beyond, joint=joint, hidden=hidden
    )


def draw_block(
    chains: Chains, block: Block, source: Family | NormalInverseWishart
) -> tuple[Measures, Measures]:
    """Return the states of a block of `BLOCK` states, and the one draw of P given each that is reported."""
    rows = slice(block.start, block.start + block.weights.shape[0])
    state = state_measures(block.weights, block.parameters, source)
    rng = chains.generator(int(chains.ids[block.chain]), block.start)
    concentration = chains.concentration[block.chain, rows]
    drawn = draw_measures(state, concentration, chains.constants["discount"], source, rng, block.base)
    return (state if block.base is None else settle_rest(state, source, block.base)), drawn


def names_of(column: FittedColumn, wanted: Wanted, points: Floats) -> list[str]:
    """Names of the scalars of a column: those of `scalars_of`, in their order."""
    moments = [column.label("mean"), column.label("sd")]
    return [*moments, *wanted.labels(column), *labels(points, column.name)]


def scalars_of(
    drawn: Measures,
    column: FittedColumn,
    wanted: Wanted,
    points: Floats,
    known: Mapping[float, Floats] | None = None,
) -> list[Floats]:
    """Return the scalars of each draw of P, with the atoms of the column; shapes (D,)."""
    found = [*drawn.moments(column.family), *quantities(drawn, column, wanted, known)]
    return [*found, *drawn.densities(points, column.family).T]


class _Work:
    """The sums and series of one column."""

    def __init__(
        self, number: int, columns: Sequence[FittedColumn], grid: Floats, chains: Chains, wanted: Wanted
    ) -> None:
        self.column, self.grid, self.wanted = columns[number], grid, wanted
        self.points = density_points(grid)
        names = names_of(self.column, wanted, self.points)
        self.series = {name: np.empty(chains.n_clusters.shape) for name in names}
        self.total, self.states = np.zeros(grid.size), chains.n_clusters.size
        self.kept = {} if chains.recorded is None else chains.recorded.quantiles_of(number)
        bounded = chains.layout.kernel == "beta"
        self.bounds = None if bounded else public_bounds(chains, number, len(columns))
        law = chains.mechanism
        self.all_edges = law.edges() if law.provides("edges") else np.empty(0)
        self.edges = self.all_edges[1:-1]
        self.within: Mapping[str, float] = {}
        self.noisy = (law, chains.n, _scale_of(chains, number)) if isinstance(law, Noisy) else None
        self.hidden: HiddenPile | None = None
        self.mass_beyond = self.mass_outer = self.fullest = self.piled = 0.0

    @property
    def cells(self) -> tuple[float, float, float] | None:
        """Of a release of cells, shares of records in the outermost ones, in the fullest, and piled up."""
        return (self.mass_outer / self.states, self.fullest, self.piled) if self.edges.size else None

    @property
    def beyond(self) -> float | None:
        """Posterior mean of the share of records beyond the bounds."""
        return None if self.bounds is None else self.mass_beyond / self.states

    def add(self, where: tuple[int, slice], state: Measures, drawn: Measures) -> None:
        """Add a block of states, and the draws of P given them."""
        family = self.column.family
        self.total += state.total(self.grid, family)
        known = {level: values[where] for level, values in self.kept.items()}
        values = scalars_of(drawn, self.column, self.wanted, self.points, known)
        for name, value in zip(self.series, values, strict=True):
            self.series[name][where] = value
        if self.bounds is not None:
            self.mass_beyond += float(outside(state, family, *self.bounds).sum())
        if self.edges.size:
            self.mass_outer += float(outside(state, family, *self.edges[[0, -1]]).sum())

    def finish(
        self, drawn: Measures, batches: list[Measures], level: float, rng: np.random.Generator
    ) -> tuple[Density, float]:
        """Return the density with its bands, and the bias of its squared distance from the prior."""
        family, few = self.column.family, drawn.take(spread(drawn.counts.size, _FEW))

        def below(place: float) -> float:
            return float(cdf(few, family, np.full(few.counts.size, place)).mean())

        if self.edges.size:
            self.fullest, self.piled = fullest_shares(self.edges, below)
            self.within = self._within(few, below) if looked_at(self.edges.size + 1) else {}
        if self.noisy is not None:
            law, n, scale = self.noisy
            ends = self.bounds or (float(self.grid[0]), float(self.grid[-1]))
            own = float(self.series[self.column.label("sd")].mean())
            of_noise = math.sqrt(law.variance_of_unit) * scale
            if own > of_noise:  # else the shape's contraction says what is hidden
                self.hidden = hidden_pile(*ends, below, lambda share: law.hidden_sd(n * share, scale), scale)
        lower, upper = bands(drawn, self.grid, level, family)
        distance, bias = distance_from_prior(batches, family, rng)
        prior, mean = family.predictive(self.grid), self.total / self.states
        shown = is_resolved(self.grid, mean, join(batches), family)
        return Density(self.grid, mean, lower, upper, prior, distance, resolved=shown), bias

    def _within(self, few: Measures, below: Callable[[float], float]) -> dict[str, float]:
        """Return what a smooth curve with the shares of a few draws adds to their figures, by name."""
        means, sds = few.moments(self.column.family)
        mean = float(means.mean())
        sd = math.sqrt(max(float((sds**2 + means**2).mean()) - mean**2, 0.0))
        more = [float(each.mean()) for each in quantities(few, self.column, self.wanted)]
        shares = np.array([below(float(edge)) for edge in self.edges])
        gaps = gaps_within(self.all_edges, shares, np.array([mean, sd, *more]), self.wanted)
        return dict(zip(self.series, gaps.tolist(), strict=False))  # densities follow


def _scale_of(chains: Chains, number: int) -> float:
    """Return the scale of the noise on a fitted column, NaN where the chains do not have it."""
    scales = chains.arrays.get("noise_scale", chains.constants.get("noise_scale", math.nan))
    return float(np.ravel(scales)[number])


def fullest_shares(edges: Floats, below: Callable[[float], float]) -> tuple[float, float]:
    """Return the largest probability of a cell, and that of one where records pile up, of cells maybe many.

    Runs of cells are halved, the most probable first, until that is a single cell: no other has more. So all
    cells are met that have a share worth telling, of which there are few. Where a thousand halvings do not
    do, no cell has such a share, and that of the run is returned.

    Parameters
    ----------
    edges : float64 array (cells - 1,)
        Between the cells, in increasing order.
    below : callable
        The distribution function.
    """
    runs = [(-1.0, 0, edges.size + 1, 0.0, 1.0)]
    fullest = piled = 0.0
    for _ in range(_HALVED):
        share, first, last, low, high = runs[0]
        if fullest and -share <= PILED:
            break
        heapq.heappop(runs)
        if last - first > 1:
            middle = (first + last) // 2
            parted = below(float(edges[middle - 1]))
            heapq.heappush(runs, (low - parted, first, middle, low, parted))
            heapq.heappush(runs, (parted - high, middle, last, parted, high))
            continue
        fullest = max(fullest, -share)
        beside = [low - (below(float(edges[first - 2])) if first > 1 else 0.0)] if first else []
        if last <= edges.size:
            beside.append((below(float(edges[last])) if last < edges.size else 1.0) - high)
        piled = max(piled, piled_up(-share, beside))
        if not runs:
            break
    return fullest or -runs[0][0], piled


def is_resolved(grid: Floats, density: Floats, measures: Measures, family: Family) -> bool:
    """Whether the trapezoid of the mean density over a grid is within a tenth of the mass that lies there."""
    ends = [cdf(measures, family, np.full(measures.counts.size, end)).mean() for end in grid[[0, -1]]]
    mass = float(ends[1] - ends[0])
    return bool(abs(float(np.trapezoid(density, grid)) - mass) < 0.1 * mass)


def correlation_names(columns: Sequence[FittedColumn]) -> list[str]:
    """Names of the correlations of all pairs of columns."""
    names = [column.name for column in columns]
    return [f"correlation[{a},{b}]" for i, a in enumerate(names) for b in names[i + 1 :]]


def of_column(measures: Measures, column: FittedColumn) -> Measures:
    """Return the marginal mixtures of one column."""
    return Measures(measures.counts, measures.weights, column.atoms(measures.atoms), measures.rest)


def bands(measures: Measures, grid: Floats, level: float, family: Family) -> tuple[Floats, Floats]:
    """Equal-tailed pointwise band of the densities of `measures`, shapes (points,)."""
    tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)]
    parts = [
        np.quantile(measures.densities(grid[start : start + _COLUMNS], family), tails, axis=0)
        for start in range(0, grid.size, _COLUMNS)
    ]
    lower, upper = np.concatenate(parts, axis=1)
    return lower, upper


def _batches(states: list[tuple[int, Measures]]) -> list[Measures]:
    """Four consecutive stretches of each chain (fewer where it is short), at most DISTANCE_DRAWS in all."""
    batches: list[Measures] = []
    chains = sorted({chain for chain, _ in states})
    for number in chains:
        whole = join([part for chain, part in states if chain == number])
        whole = whole.take(spread(whole.counts.size, max(1, DISTANCE_DRAWS // len(chains))))
        parts = np.array_split(np.arange(whole.counts.size), 4)
        batches.extend(whole.take(part) for part in parts if part.size)
    return batches


# What `fit` computes from its draws and keeps


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
