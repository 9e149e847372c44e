"""What a mixture's posterior will be like given a release: its exact prior, and the release's information.

The release is replaced by what it is like with many records: a normal observation, with its information,
of the masses of fine cells at the population (`dpmix.models.counts_mixture.model`). No record and no
release is drawn; the prior is the one that fits have, by the moves that they are made with. Standard
deviations are means over draws of the observation's noise, for wider and narrower posteriors come by
chance. Compared with fits in `docs/advise.md`.

The information is Fisher's, about the masses of fine cells of y, at a population. With p the masses of B
cells (sum 1), a release of n records with outputs j of probability g = T p has n T' diag(1/g) T, which each
law knows of its own (`Law.information`): additive noise has its outputs in fine cells of z; those of a
wavelet are drawn, for g is a density over many numbers. A histogram of all records is about normal given p,
with mean E p (E adds cells to bins) and covariance V = sampling plus noise: E'V^-1 E.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.advising.population import QUANTITIES, Population, cells_of
from dpmix.kernels.beta.kernel import Beta
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import Law, expect
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.models.counts_mixture.masses import fill_rows, make_cells
from dpmix.models.counts_mixture.model import Coins, CoinsOfCells, InformedMixture, coins_of
from dpmix.numerics.equal_cells import cell_of
from dpmix.summary.quantities import quantiles
from dpmix.summary.random_measures import Measures, draw_measures, draw_prior

if TYPE_CHECKING:
    from dpmix.kernels.learned_base import LearnedBase
    from dpmix.numerics.mixing import PitmanYor

# The information


Floats = NDArray[np.float64]

_NODES = 4  # of y within a cell


def knows(law: Law | type[Law]) -> bool:
    """Whether the information of a law's releases is known."""
    return law.released == "histogram" or law.provides("information")


def information(law: Law, edges: Floats, shares: Floats, n: int, outer: tuple[float, float]) -> Floats:
    """Return the information (B, B) of a release of n records, by a law of which it is known (`knows`).

    `edges` (B - 1,) are the finite ones of the cells of y, and `shares` (B,) those of the population; the end
    cells end at `outer`, their places, for infinite ones the outermost edge.
    """
    ends = np.concatenate([[min(outer[0], edges[0])], edges, [max(outer[1], edges[-1])]])
    if law.released == "histogram":
        return _of_histogram(expect(law, HistogramLaw), ends, shares, n)
    places, weights = _places(ends)
    return law.information(places, weights, shares, n)


def _places(ends: Floats) -> tuple[Floats, Floats]:
    """Return places within each cell (B, nodes), and their weights (nodes,)."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * np.diff(ends)
    return middle[:, None] + half[:, None] * nodes, 0.5 * weights


def _of_histogram(law: HistogramLaw, ends: Floats, shares: Floats, n: int) -> Floats:
    bins = law.edges()
    inner = np.concatenate([[-math.inf], bins[1:-1], [math.inf]])
    width = np.diff(ends)
    overlap = np.minimum(ends[None, 1:], inner[1:, None]) - np.maximum(ends[None, :-1], inner[:-1, None])
    adds = np.clip(overlap, 0.0, None) / np.where(width > 0.0, width, 1.0)
    adds[cell_of(ends[:-1], bins)[width <= 0.0], np.flatnonzero(width <= 0.0)] = 1.0
    p = adds @ shares
    sampling = (np.diag(p) - np.outer(p, p)) / n
    gain, noise = law.covariance(p, n)
    covariance = gain**2 * sampling + noise
    inverse: Any = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
    return np.asarray(gain**2 * (adds.T @ inverse @ adds))


# The posterior


_LEVELS = (0.5, 0.25, 0.75)

BURN_IN, SWEEPS = 400, 500  # of a chain
_PIECE = 20  # sweeps between which a chain may be stopped
_CHAINS = ((12, 10), (60, 6))  # coins up to which there are so many chains
_OTHERS, _TIMES = 2, 2  # chains of rows with more coins, and how much longer they are
_PRIOR_DRAWS = 2_000
_BANK = 1_500  # components by which directions are weighed
_LEAST = 2e-2  # log-likelihood that a direction may tell and be left out
_SEED = 21


@dataclass(frozen=True)
class Found:
    """Expected posterior standard deviations, the band's integrated width, and contractions."""

    sd: Mapping[str, float]
    band: float | None
    contraction: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class MixtureAdvice:
    """A mixture model, and the population that it will be fitted to.

    Parameters
    ----------
    kernel : NormalNIG or Beta
    learned : LearnedBase or None
    mixing : PitmanYor
        Of discount 0.
    family : Family
        Kernel and base measure as summaries know them.
    population : Population
    grid : float64 array
        Where bands of the density are taken.
    level : float
        Of the bands.
    """

    kernel: Any
    learned: LearnedBase | None
    mixing: PitmanYor
    family: Any
    population: Population
    grid: Floats
    level: float = 0.95

    def of_rows(self, rows: Sequence[tuple[Law, int]], jobs: int, done: Callable[[int], None]) -> list[Found]:
        """Return what is expected of each release (its law, and its number of records).

        What breaks it off, such as an interruption, ends rows that are at work within a piece of theirs.
        """
        prior, stop = self._prior_ranges(), threading.Event()
        found: list[Found | None] = [None] * len(rows)
        if rows:
            found[0] = self._of(*rows[0], prior, stop)  # compiles, where nothing is kept
            done(1)
        with ThreadPoolExecutor(max(1, jobs)) as pool:
            try:
                tasks = {pool.submit(self._of, *row, prior, stop): i for i, row in enumerate(rows) if i}
                for count, task in enumerate(as_completed(tasks), start=2):
                    found[tasks[task]] = task.result()
                    done(count)
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [each for each in found if each is not None]

    def _of(self, law: Law, n: int, prior: Floats, stop: threading.Event) -> Found:
        told, edges = self._told(law, n)
        tails = 0.5 * (1.0 - self.level)
        sds, bands, shrunk = [], [], []
        chains, times = _effort(len(told.leans))
        for chain in range(chains):
            drawn = self._posterior(told, edges, chain, times * SWEEPS, stop)
            values = self._values(drawn)
            lower, upper = np.quantile(drawn.densities(self.grid, self.family), [tails, 1.0 - tails], axis=0)
            sds.append(values.std(axis=1))
            bands.append(float(np.trapezoid(upper - lower, self.grid)))
            shrunk.append(1.0 - (_ranges(values) / prior) ** 2)
        return Found(
            dict(zip(QUANTITIES, np.mean(sds, axis=0).tolist(), strict=True)),
            float(np.mean(bands)),
            dict(zip(QUANTITIES, np.mean(shrunk, axis=0).tolist(), strict=True)),
        )

    def _told(self, law: Law, n: int) -> tuple[Coins, Floats]:
        bounded = isinstance(self.kernel, Beta)
        edges = cells_of(self.population, law.blur, bounded=bounded)
        shares = self.population.masses(edges)
        told = information(law, edges, shares, n, self.population.pair)
        return coins_of(told, shares, edges, self._bank(edges), _LEAST), edges

    def _posterior(
        self, coins: Coins, edges: Floats, chain: int, sweeps: int, stop: threading.Event
    ) -> Measures:
        """Return draws of P given coins whose noise is, by pairs of chains, the opposite."""
        rng, sign = np.random.default_rng([_SEED, chain // 2]), 1.0 - 2.0 * (chain % 2)
        channel = CoinsOfCells(coins.leans, np.zeros((3, len(edges) + 1)), NoNoise())
        counts: Any = coins.thrown(sign * rng.standard_normal(len(coins.leans)))
        model = InformedMixture(counts, channel, self.kernel, self.mixing, self.learned)
        running = model.make_chain(rng)
        running.keep(1, BURN_IN)
        for until in range(_PIECE, BURN_IN + sweeps + _PIECE, _PIECE):  # between which signals are heard
            if stop.is_set():
                raise CancelledError
            running.proceed(min(until, BURN_IN + sweeps))
        return self._measures({name: values for name, (_, values) in running.take().items()})

    def _bank(self, edges: Floats) -> Floats:
        """Return masses of cells (B, S) under components from the base measure."""
        rng = np.random.default_rng(_SEED)
        atoms = self.family.draw(rng, _BANK)
        theta = atoms if isinstance(self.kernel, Beta) else np.stack([atoms[0], atoms[1] ** 2])
        cells, rows = make_cells(edges, np.zeros(0)), np.zeros((3, len(edges) + 1))
        found = np.empty((len(edges) + 1, _BANK))
        for s in range(_BANK):
            fill_rows(NoNoise(), self.kernel, theta, s, cells, rows)
            found[:, s] = rows[0]
        return found

    def _measures(self, draws: Mapping[str, Any]) -> Measures:
        """Draw P given what a chain saved."""
        counts = np.diff(draws["first"])
        parameters = dict(zip(self.kernel.parameters, draws["theta"], strict=True))
        atoms, weights = self.family.atoms(parameters), draws["weights"]
        owner = np.repeat(np.arange(len(counts)), counts)
        rest = np.maximum(1.0 - np.bincount(owner, weights, minlength=len(counts)), 0.0)
        states = Measures(counts, weights, atoms, rest)
        return draw_measures(
            states, draws["concentration"], 0.0, self.family, np.random.default_rng(_SEED), draws.get("base")
        )

    def _prior_ranges(self) -> Floats:
        """Return the interquartile ranges of the quantities under the prior, (4,)."""
        rng = np.random.default_rng(_SEED)
        size, mixing = _PRIOR_DRAWS, self.mixing
        alpha = np.full(size, mixing.concentration)
        if mixing.rate > 0.0:
            alpha = np.maximum(rng.gamma(mixing.shape, 1.0 / mixing.rate, size), 1e-12)
        return _ranges(self._values(draw_prior(self.family, alpha, 0.0, rng)))

    def _values(self, drawn: Measures) -> Floats:
        """Return the quantities of each draw, (4, draws)."""
        return np.stack(
            [drawn.moments(self.family)[0], *(quantiles(drawn, self.family, level) for level in _LEVELS)]
        )


def _effort(coins: int) -> tuple[int, int]:
    """Return the number of chains, each with a noise of its own, and times how many sweeps.

    Where noise leaves few directions it decides how wide a posterior comes out: standard deviations of
    quartiles differ by a quarter from one release to the next, and it takes ten to know their mean to 8%.
    """
    for most, chains in _CHAINS:
        if coins <= most:
            return chains, 1
    return _OTHERS, _TIMES


def _ranges(values: Floats) -> Floats:
    low, high = np.quantile(values, [0.25, 0.75], axis=1)
    return np.asarray(high - low)
