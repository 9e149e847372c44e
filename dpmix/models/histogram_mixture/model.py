"""The model of grouped mixtures behind the face of all parametric models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.kernels import fill_masses
from dpmix.kernels.beta.kernel import A, B, Beta
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG
from dpmix.mechanisms.channels.count_likelihoods import log_likelihood
from dpmix.models.counts.latent_counts import draw_shares, group_masses, make_latent, start_counts
from dpmix.models.counts_mixture.coordinates import moments
from dpmix.models.histogram_mixture.mixture_sweep import draw_random_measure, make_groups, sweep_groups
from dpmix.models.latent_groups import parameters_of_groups
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.special import log_beta
from dpmix.run.model_protocols import GROUP, Parameter, ParametricChain, ParametricModel

if TYPE_CHECKING:
    from dpmix.numerics.mixing import PitmanYor

# What is kept of a drawn mixture: mean, sd, quantiles, distribution function and density of a record.

MEAN_AT, SD_AT, FIRST = 0, 1, 2  # places in a row of results
_HALVINGS = 100
_EXACT = 1e-12


@dispatch()
def _fill_density(kernel, theta, h, points, out):
    """Set ``out[i]`` to the density f(points[i] | theta[:, h]), in the data's units."""


@dispatch()
def support(kernel):
    """Return where the kernel lives: lowest and highest value, which may be infinite."""


@_fill_density.register
def _fill_density_normal(kernel: NormalNIG, theta, h, points, out):
    mean, sd = theta[MEAN, h], math.sqrt(theta[VARIANCE, h])
    top = 1.0 / (sd * math.sqrt(2.0 * math.pi))
    for i in range(len(points)):
        gap = (points[i] - mean) / sd
        out[i] = top * math.exp(-0.5 * gap * gap)


@_fill_density.register
def _fill_density_beta(kernel: Beta, theta, h, points, out):
    a, b = theta[A, h], theta[B, h]
    constant = log_beta(a, b) + math.log(kernel.width)
    for i in range(len(points)):
        u = (points[i] - kernel.lo) / kernel.width
        out[i] = 0.0
        if 0.0 < u < 1.0:
            out[i] = math.exp((a - 1.0) * math.log(u) + (b - 1.0) * math.log1p(-u) - constant)


@support.register
def _support_normal(kernel: NormalNIG):
    return -math.inf, math.inf


@support.register
def _support_beta(kernel: Beta):
    return kernel.lo, kernel.lo + kernel.width


@njit
def _cdf(kernel, theta, weights, atoms, y, edge, both):
    """Return the mass below y."""
    edge[0] = y
    total = 0.0
    for h in range(atoms):
        fill_masses(kernel, theta, h, edge, both)
        total += weights[h] * both[0]
    return total


@njit
def _quantile(kernel, theta, weights, atoms, q, low, high, edge, both):
    """Return y with mass q below it, from a bracket that is widened where it does not hold y.

    By false position, the end that stays weighed down (the Illinois rule), and halvings where that is slow.
    """
    least, most = support(kernel)
    while low > least and _cdf(kernel, theta, weights, atoms, low, edge, both) > q:
        low = max(low - 2.0 * (high - low), least)
    while high < most and _cdf(kernel, theta, weights, atoms, high, edge, both) < q:
        high = min(high + 2.0 * (high - low), most)
    under = _cdf(kernel, theta, weights, atoms, low, edge, both) - q
    over = _cdf(kernel, theta, weights, atoms, high, edge, both) - q
    middle = 0.5 * (low + high)
    side = 0
    for step in range(_HALVINGS):
        if step % 3 < 2 and under < 0.0 < over:
            middle = low - under * (high - low) / (over - under)
        else:
            middle = 0.5 * (low + high)
        found = _cdf(kernel, theta, weights, atoms, middle, edge, both) - q
        if abs(found) <= _EXACT or high - low <= _EXACT * (1.0 + abs(middle)):
            break
        if found < 0.0:
            low, under = middle, found
            over *= 0.5 if side == -1 else 1.0
            side = -1
        else:
            high, over = middle, found
            under *= 0.5 if side == 1 else 1.0
            side = 1
    return middle


@njit
def write_functionals(kernel, theta, weights, atoms, points, quantiles, marks, row, cdf, density):
    """Write mean, sd, quantiles and masses below `marks` to `row`, and cdf and density at `points`."""
    size = len(points)
    part, both, edge = np.empty(size + 1), np.empty(2), np.empty(1)
    cdf[:] = 0.0
    density[:] = 0.0
    first = second = whole = 0.0
    for h in range(atoms):
        whole += weights[h]
    centre = 0.5 * (points[0] + points[size - 1])
    for h in range(atoms):
        w = weights[h] / whole
        mean, variance = moments(kernel, theta, h)
        first += w * (mean - centre)
        second += w * (variance + (mean - centre) * (mean - centre))
        fill_masses(kernel, theta, h, points, part)
        below = 0.0
        for i in range(size):
            below += part[i]
            cdf[i] += w * below
        _fill_density(kernel, theta, h, points, part[:size])
        for i in range(size):
            density[i] += w * part[i]
    for i in range(size):
        cdf[i] = min(cdf[i], 1.0)
    row[MEAN_AT] = centre + first
    row[SD_AT] = math.sqrt(max(second - first * first, 0.0))
    for i in range(len(quantiles)):
        q = quantiles[i]
        place = np.searchsorted(cdf, q)
        low = points[max(place - 1, 0)]
        high = points[min(place, size - 1)]
        if not low < high:
            low, high = points[0], points[size - 1]
        row[FIRST + i] = _quantile(kernel, theta, weights, atoms, q, low, high, edge, both)
    for i in range(len(marks)):
        below = _cdf(kernel, theta, weights, atoms, marks[i], edge, both) / whole
        row[FIRST + len(quantiles) + i] = min(below, 1.0)


_FEW = 9  # points of the grid by which quantiles of draws from the prior are found
_TINY = 1e-12  # a concentration that is next to nothing

Floats = NDArray[np.float64]


class Quantities(NamedTuple):
    """What is kept of a record beside mean and sd.

    levels: of its quantiles; tails, points: of which values the probabilities of being above, or up to them;
    all in increasing order.
    """

    levels: tuple[float, ...]
    tails: tuple[float, ...] = ()
    points: tuple[float, ...] = ()


class HistogramMixture(ParametricModel):
    """Mixtures of groups, a priori independent, given a histogram of all their records.

    Parameters
    ----------
    likelihood : NamedTuple
        Of the numbers of records in the G m bins (`dpmix.mechanisms.channels.count_likelihoods`).
    n : int
        Number of records of all groups together.
    edges : array (m + 1,)
        Of the bins; those at the ends reach to the ends of the kernel's support.
    groups : sequence of str
    kernel : NamedTuple
        Of `dpmix.kernels`, for one column.
    mixing : PitmanYor
    sticks : int
        As `dpmix.models.histogram_mixture.mixture_sweep.sticks_for` gives them.
    grid : array (points,)
        Where distribution function and density are kept.
    wanted : Quantities
        What is kept of a record.
    attrs : mapping of str to str
        What the chains file says of the model.
    constants : mapping of str to number
        Likewise.
    """

    kind = "mixture"
    has_log_likelihood = True

    def __init__(
        self,
        likelihood: Any,
        n: int,
        edges: Floats,
        groups: Sequence[str],
        kernel: Any,
        mixing: PitmanYor,
        sticks: int,
        grid: Floats,
        wanted: Quantities,
        attrs: Mapping[str, str],
        constants: Mapping[str, float],
    ) -> None:
        self.likelihood, self.n, self.kernel, self.mixing = likelihood, n, kernel, mixing
        self.groups, self.sticks, self.grid = tuple(groups), sticks, np.ascontiguousarray(grid)
        self.wanted = wanted
        self.levels = np.array(wanted.levels, dtype=np.float64)
        self.edges = np.ascontiguousarray(edges[1:-1], dtype=np.float64)
        self.marks = np.array((*wanted.tails, *wanted.points, *self.edges), dtype=np.float64)
        width = float(edges[-1] - edges[0]) / (len(edges) - 1)
        self.spread = width * width / 12.0
        random = (Parameter("concentration", (GROUP,)),) if mixing.shape > 0.0 else ()
        self.parameters = (
            Parameter("record_mean", (GROUP,), title="mean"),
            Parameter("record_sd", (GROUP,), title="sd"),
            Parameter("record_quantile", (GROUP, "quantile"), title="quantile"),
            *([Parameter("record_tail", (GROUP, "threshold"), title="tail")] if wanted.tails else ()),
            *([Parameter("record_cdf", (GROUP, "point"), title="cdf")] if wanted.points else ()),
            *parameters_of_groups(),
            Parameter("n_clusters", (GROUP,)),
            *random,
            Parameter("cdf", (GROUP, "grid"), "curve"),
            Parameter("density", (GROUP, "grid"), "density"),
            Parameter("bin_probability", (GROUP, "bin"), "draw"),
        )
        self.coords = {GROUP: np.array(self.groups), "quantile": self.levels, "grid": self.grid}
        self.coords |= {"threshold": np.array(wanted.tails)} if wanted.tails else {}
        self.coords |= {"point": np.array(wanted.points)} if wanted.points else {}
        self.coords["bin"] = np.arange(1, len(self.edges) + 2)
        self.attrs = dict(attrs)
        self.constants = {"n": n, "discount": mixing.discount, **constants}

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw P from its prior, for all groups the same, and the shares of the groups."""
        groups, mixing = len(self.groups), self.mixing
        own = [p for p in self.parameters if p.name.startswith("record_") or p.name == "concentration"]
        out = {p.name: np.empty((draws, *self.shape(p))) for p in own}
        empty = make_groups(self.kernel, mixing, np.zeros(1, dtype=np.int64), 1, self.sticks)
        marks = self.marks[: len(self.wanted.tails) + len(self.wanted.points)]  # not the edges
        weights, row = np.zeros(empty.members.shape[1]), np.zeros(FIRST + len(self.levels) + len(marks))
        few = np.linspace(self.grid[0], self.grid[-1], _FEW)
        cdf, density = np.empty(_FEW), np.empty(_FEW)
        for draw in range(draws):
            if mixing.shape > 0.0:
                empty.concentration[0] = max(rng.gamma(mixing.shape, 1.0 / mixing.rate), _TINY)
            atoms = draw_random_measure(self.kernel, mixing, rng, empty, 0, self.n, weights)
            write_functionals(
                self.kernel, empty.theta[0], weights, atoms, few, self.levels, marks, row, cdf, density
            )
            self.write(row, draw, slice(None), out)
            if mixing.shape > 0.0:
                out["concentration"][draw] = empty.concentration[0]
        return {**out, "group_share": rng.dirichlet(np.ones(groups), draws)}

    def write(self, row: Floats, draw: int, group: int | slice, out: Mapping[str, Floats]) -> None:
        """Write what `write_functionals` found of one P to a draw of each array, of one group or of all."""
        above = FIRST + len(self.levels)
        below = above + len(self.wanted.tails)
        last = below + len(self.wanted.points)
        out["record_mean"][draw, group], out["record_sd"][draw, group] = row[MEAN_AT], row[SD_AT]
        out["record_quantile"][draw, group] = row[FIRST:above]
        if "record_tail" in out:
            out["record_tail"][draw, group] = 1.0 - row[above:below]
        if "record_cdf" in out:
            out["record_cdf"][draw, group] = row[below:last]
        if "bin_probability" in out:
            out["bin_probability"][draw, group] = np.diff(row[last:], prepend=0.0, append=1.0)

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> HistogramMixtureChain:
        """Return a chain at its start."""
        return HistogramMixtureChain(self, rng)


class HistogramMixtureChain(ParametricChain):
    """A chain over counts, clusters and parameters of all groups; P is drawn for each saved state."""

    model: HistogramMixture

    def __init__(self, model: HistogramMixture, rng: Generator) -> None:
        groups, bins = len(model.groups), len(model.edges) + 1
        counts = start_counts(rng, np.full(groups * bins, 1.0), model.likelihood.released, model.n)
        self._groups = make_groups(model.kernel, model.mixing, counts, groups, model.sticks)
        self._prior = group_masses(groups, bins)
        self._latent = make_latent(counts)
        self._weights = np.zeros(self._groups.members.shape[1])
        self._row = np.zeros(FIRST + len(model.levels) + len(model.marks))
        super().__init__(model, rng, self._groups._asdict())

    @property
    def note(self) -> str:
        """The number of occupied components of each group."""
        return "/".join(str(k) for k in self._groups.clusters.tolist()) + " clusters"

    def sweep(self, count: int) -> None:
        """Move everything."""
        model, skip = self.model, int(self._plan[2])
        law = model.kernel, model.mixing, model.likelihood, self._prior
        state = self._groups, self._latent, model.edges, model.spread
        sweep_groups(*law, self.rng, *state, self.moves, count, skip)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw P of each group, and write its functionals."""
        model, state, values = self.model, self._groups, self._row
        for g in range(len(model.groups)):
            atoms = draw_random_measure(
                model.kernel, model.mixing, self.rng, state, g, model.n, self._weights
            )
            wanted, curves = (
                (model.grid, model.levels, model.marks),
                (out["cdf"][row, g], out["density"][row, g]),
            )
            write_functionals(model.kernel, state.theta[g], self._weights, atoms, *wanted, values, *curves)
            model.write(values, row, g, out)
        sizes = state.counts.reshape(len(model.groups), -1).sum(axis=1)
        out["group_share"][row], out["group_size"][row] = draw_shares(self.rng, sizes), sizes
        out["n_clusters"][row] = state.clusters
        if "concentration" in out:
            out["concentration"][row] = state.concentration
        out["log_likelihood"][row] = log_likelihood(model.likelihood, self._latent.noisy, state.counts)
