"""Mixtures given counts in cells, or information about their masses, behind the face that all chains have.

Draws are those of any mixture.

**Coins** stand for information (methods, section 13). Of masses p of cells a release of n records tells, in
the limit of many, what a normal observation of p with information J does: at the masses p0 of a population
its log-likelihood is -(p - p0)'J(p - p0)/2, but for noise. With J = sum_k l_k v_k v_k', v_k'p0 = 0, that is
the law of coins: coin k falls heads with probability (1 + a_k'p)/2, a_k = c v_k / max|v_k|, and of
N_k = l_k / (c / max|v_k|)^2 throws half are heads. Its Fisher information at p0 is N_k a_k a_k' =
l_k v_k v_k', and the log-likelihood is that above up to (a_k'p)^4 <= c^4.

A head or a tail has a probability under each component, as a cell has: so the sampler on counts takes coins
for cells, and its moves are those that fits are made with.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.columns.cells import Counts
from dpmix.kernels import theta_rows
from dpmix.kernels.beta.kernel import Beta
from dpmix.kernels.learned_base import LearnedBase, own_base, with_base
from dpmix.kernels.normal.kernel import NormalNIG
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.models.counts_mixture.masses import (
    MassCells,
    cells_for,
    fill_rows,
    fill_slopes,
    make_cells,
    pieces_between,
)
from dpmix.models.counts_mixture.mixture_sweep import (
    ACCEPTED,
    FIXED,
    FULL,
    GROW,
    PROPOSED,
    SAVED,
    STEP,
    TAIL,
    CountsOutput,
    make_state,
    make_work,
    run,
    start,
    widened,
)
from dpmix.models.counts_mixture.source import FixedCounts, HistogramCounts, LatentCounts, latent_counts
from dpmix.numerics.loops import dot
from dpmix.numerics.mixing import PitmanYor, truncation_error
from dpmix.run.model_protocols import Arrays, Samples, cut_draws, fault_of_mixture, mixture_draws

__all__ = [
    "Coins",
    "CoinsOfCells",
    "CountsChain",
    "CountsMixture",
    "InformedMixture",
    "cells_for",
    "coins_of",
]

Floats = NDArray[np.float64]
_FEWEST, _LARGEST = 64, 4096  # atoms that there is room for at first
_DRAWS = 64  # saved in one piece of memory
_LEAN = 0.5  # c: the largest lean of a coin under any component


@dataclass(frozen=True, eq=False)
class CountsMixture(Samples):
    """A Dirichlet process mixture given counts in cells.

    Parameters
    ----------
    counts : Counts or HistogramCounts
        Of all cells, from values or from a tally; or of the bins of a histogram, where they are latent.
    channel, kernel : NamedTuples of a mechanism and of `dpmix.kernels`
        The channel is from records to cells: that without noise for the bins of a histogram.
    mixing : PitmanYor
        Of discount 0.
    learned : LearnedBase, optional
        What is learned of the kernel's base measure; nothing where left out.
    """

    counts: Counts | HistogramCounts
    channel: Any
    kernel: Any
    mixing: PitmanYor
    learned: LearnedBase | None = None

    def __post_init__(self) -> None:
        """Check the process."""
        if self.mixing.discount != 0.0:
            raise ValueError("a discount above 0 leaves too many atoms with too much weight")

    def worked(self, rng: Generator) -> tuple[NDArray[Any], Floats, Floats, FixedCounts | LatentCounts]:
        """Return what chains work on: counts, their edges or the outputs, and where the counts come from.

        Empty cells are left out. Latent counts are drawn to start from; they change in place.
        """
        if isinstance(self.counts, HistogramCounts):
            source = latent_counts(self.counts.release, self.counts.n, rng)
            return source.held.counts, self.counts.inner, np.zeros(0), source
        if self.counts.width == 0.0:
            some = np.flatnonzero(self.counts.counts)
            return self.counts.counts[some].astype(np.float64), np.zeros(0), some.astype(np.float64), FIXED
        joined = self.counts.joined()
        return joined.counts.astype(np.float64), np.ascontiguousarray(joined.edges), np.zeros(0), FIXED

    def cells(self, edges: Floats, outputs: Floats) -> MassCells:
        """Return the cells whose masses chains compute."""
        return cells_for(self.channel, self.kernel, edges, outputs)

    @property
    def room(self) -> int:
        """Atoms that there is room for at first: twice as many as are broken off, but for few draws."""
        sticks = 1
        while sticks < _LARGEST and truncation_error(self.mixing, sticks, self.counts.n) > TAIL:
            sticks *= 2
        return max(_FEWEST, 2 * sticks)

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> CountsChain:
        """Return a chain at its start."""
        return CountsChain(self, rng)

    @property
    def bytes_per_draw(self) -> int:
        """About how much one saved draw takes on disk."""
        return 600


class CountsChain:
    """One chain; see `models.model_protocols.ModelChain`, for its draws `samplers.chain.Chain`."""

    def __init__(self, model: CountsMixture, rng: Generator) -> None:
        self.model, self.rng = model, rng
        self._counts, edges, outputs, self._source = model.worked(rng)
        self._cells = model.cells(edges, outputs)
        self._state = make_state(model.kernel, model.room)
        self._learned = own_base(model.kernel, rng, model.learned)
        start(with_base(model.kernel, self._learned.values), model.mixing, rng, model.counts.n, self._state)
        self._plan = np.array([0, 1, 0, 0], dtype=np.int64)
        self._make_room()
        self._taken: list[dict[str, NDArray[Any]]] = []

    def _make_room(self) -> None:
        room, rows = len(self._state.sizes), theta_rows(self.model.kernel)
        self._work = make_work(self.model.kernel, room, len(self._counts), self._source)
        self._output = CountsOutput(
            n_clusters=np.zeros(_DRAWS, dtype=np.int32),
            concentration=np.zeros(_DRAWS),
            acceptance_rate=np.zeros(_DRAWS),
            log_likelihood=np.zeros(_DRAWS),
            left_over=np.zeros(_DRAWS),
            first=np.zeros(_DRAWS + 1, dtype=np.int64),
            weights=np.zeros(_DRAWS * room),
            theta=np.zeros((rows, _DRAWS * room)),
            base=np.zeros((_DRAWS, *self._learned.values.shape)),
        )

    @property
    def sweeps(self) -> int:
        """Sweeps since `keep`."""
        return int(self._plan[STEP])

    @property
    def acceptance_rate(self) -> float:
        """Mean acceptance of the steps of all heavy atoms since the last saved draw; NaN without any."""
        made = float(self._state.floats[PROPOSED])
        return float(self._state.floats[ACCEPTED]) / made if made else float("nan")

    @property
    def note(self) -> str:
        """The number of clusters."""
        return f"{int(self._state.clusters[0])} clusters"

    @property
    def saved_bytes(self) -> int:
        """Memory of the draws that `take` would return."""
        saved = int(self._plan[SAVED])
        pieces = sum(sum(values.nbytes for values in piece.values()) for piece in self._taken)
        return pieces + 48 * saved + 24 * int(self._output.first[saved])

    def keep(self, thin: int, skip: int) -> None:
        """Count sweeps from here; save every `thin`-th state after the first `skip`."""
        self._plan[:] = (0, thin, skip, 0)
        self._taken = []

    def proceed(self, until: int) -> None:
        """Sweep until `until` sweeps have been done since `keep`."""
        model = self.model
        law = model.channel, model.kernel, self._learned, model.mixing
        while True:
            state = self._state, self._cells, self._work, self._counts
            status = run(*law, self.rng, *state, self._plan, until, self._output)
            if status == FULL:
                self._set_aside()
            elif status == GROW:
                self._set_aside()
                self._state = widened(self._state, model.kernel)
                self._make_room()
            else:
                return

    def _set_aside(self) -> None:
        """Take the saved draws out of the room for them."""
        self._taken.append(cut_draws(self._output, int(self._plan[SAVED])))
        self._plan[SAVED] = 0

    def take(self) -> Arrays:
        """Return the draws saved since the last call, and forget them."""
        self._set_aside()
        pieces, self._taken = self._taken, []
        found = {
            name: np.concatenate([piece[name] for piece in pieces], axis=0 if name == "base" else -1)
            for name in pieces[0]
        }
        starts = np.cumsum([0, *(piece["first"][-1] for piece in pieces)])
        shifted = [piece["first"][1:] + start for piece, start in zip(pieces, starts[:-1], strict=True)]
        found["first"] = np.concatenate([[0], *shifted]).astype(np.int64)
        return mixture_draws(found)

    def fault(self, draws: Arrays) -> tuple[str, str] | None:
        """Return what is wrong with draws that are not finite, and what to look for."""
        return fault_of_mixture(draws, ["log_likelihood"])

    def snapshot(self) -> dict[str, Any]:
        """Return what `restore` needs to go on with the same draws; draws not taken are not in it."""
        k = int(self._state.clusters[0])
        return {
            "sizes": self._state.sizes[:k].copy(),
            "theta": self._state.theta[:, :k].copy(),
            "floats": self._state.floats.copy(),
            "damping": self._state.damping.copy(),
            "latent": self._latent.copy(),
            "base": self._learned.values.copy(),
            "base_steps": self._learned.steps.copy(),
            "room": np.array([len(self._state.sizes)]),
            "plan": self._plan[:SAVED].copy(),
            "generators": [self.rng.bit_generator.state],
        }

    @property
    def _latent(self) -> NDArray[Any]:
        """Counts that are latent, changed in place; none where they are known."""
        return self._counts if isinstance(self._source, LatentCounts) else self._counts[:0]

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a `snapshot`."""
        room, k = int(snapshot["room"][0]), len(snapshot["sizes"])
        self._state = make_state(self.model.kernel, room)
        self._state.clusters[0] = k
        self._state.sizes[:k] = snapshot["sizes"]
        self._state.theta[:, :k] = snapshot["theta"]
        self._state.floats[:] = snapshot["floats"]
        self._state.damping[:] = snapshot["damping"]
        self._latent[:] = snapshot["latent"]
        if self._learned.learns:
            self._learned.values[:], self._learned.steps[:] = snapshot["base"], snapshot["base_steps"]
        self._make_room()
        self._plan[:SAVED] = snapshot["plan"]
        self._plan[SAVED] = 0
        self._taken = []
        self.rng.bit_generator.state = snapshot["generators"][0]


# A mixture given information about the masses of cells, in place of a release


@dataclass(frozen=True, eq=False)
class InformedMixture(CountsMixture):
    """A Dirichlet process mixture given coins; its `counts` are `Coins`, its channel `CoinsOfCells`."""

    def worked(self, rng: Generator) -> tuple[NDArray[Any], Floats, Floats, FixedCounts]:
        """Return heads and tails, with the edges of the cells."""
        coins: Any = self.counts
        return coins.counts, coins.edges, np.zeros(0), FIXED

    def cells(self, edges: Floats, outputs: Floats) -> MassCells:
        """Return the cells that coins lean on; of beta kernels by sums, a fifth of the work of tails."""
        if not isinstance(self.kernel, Beta):
            return super().cells(edges, outputs)
        places = (edges - self.kernel.lo) / self.kernel.width
        return make_cells(edges, outputs, pieces=pieces_between(places))


@dataclass(frozen=True, eq=False)
class Coins:
    """What is known of the masses of cells, as throws of coins.

    Parameters
    ----------
    leans : float64 array (K, B)
    counts : float64 array (2 K,)
        Heads and tails of each coin.
    edges : float64 array (B - 1,)
        Finite edges between the cells.
    """

    leans: Floats
    counts: Floats
    edges: Floats
    width: float = 0.0

    @property
    def n(self) -> int:
        """Number of throws."""
        return max(1, int(self.counts.sum()))

    def thrown(self, noise: Floats) -> Coins:
        """Return the coins with heads that are off their mean by so many standard deviations, (K,)."""
        throws = self.counts[::2] + self.counts[1::2]
        heads = np.clip(0.5 * (throws + np.sqrt(throws) * noise), 0.0, throws)
        return replace(self, counts=np.stack([heads, throws - heads], axis=1).ravel())


def coins_of(information: Floats, population: Floats, edges: Floats, told: Floats, least: float) -> Coins:
    """Return coins that tell of the masses of cells what a release does.

    Parameters
    ----------
    information : float64 array (B, B)
        J, positive semidefinite.
    population : float64 array (B,)
        p0.
    edges : float64 array (B - 1,)
    told : float64 array (B, S)
        Masses under components as the prior has them: directions in which these hardly differ are left out.
    least : float
        Of what a direction tells a component from the population, on average, in units of log-likelihood.
    """
    centred = information - np.outer(np.ones(len(population)), population @ information)
    centred = centred - np.outer(centred @ population, np.ones(len(population)))
    values, vectors = np.linalg.eigh(0.5 * (centred + centred.T))
    some = values > 1e-13 * max(float(values[-1]), 0.0)
    root = vectors[:, some] * np.sqrt(values[some])  # J = root root'
    apart = root.T @ (told - population[:, None])
    turn, sizes, _ = np.linalg.svd(apart, full_matrices=False)
    kept = sizes**2 / told.shape[1] > least
    directions = root @ turn[:, kept]
    directions = directions - population @ directions
    top = np.abs(directions).max(axis=0, initial=0.0)
    directions, top = directions[:, top > 0.0], top[top > 0.0]
    throws = (top / _LEAN) ** 2
    return Coins(
        np.ascontiguousarray((_LEAN * directions / top).T),
        np.repeat(0.5 * throws, 2),
        np.ascontiguousarray(edges),
    )


class CoinsOfCells(NamedTuple):
    """Coins whose lean is linear in the masses of cells.

    leans (K, B): a_k; inner (3, B): scratch for masses and derivatives of a component; clear: the channel
    from records to cells.
    """

    leans: Any
    inner: Any
    clear: NoNoise


def _fill(channel, kernel, theta, h, cells, rows):
    inner, leans = channel.inner, channel.leans
    found = fill_rows(channel.clear, kernel, theta, h, cells, inner)
    for k in range(len(leans)):
        lean = dot(leans[k], inner[0])
        rows[0, 2 * k], rows[0, 2 * k + 1] = 0.5 * (1.0 + lean), 0.5 * (1.0 - lean)
        if found:
            for i in range(1, 3):
                slope = 0.5 * dot(leans[k], inner[i])
                rows[i, 2 * k], rows[i, 2 * k + 1] = slope, -slope
    return found


def _fill_slopes(channel, kernel, theta, h, cells, rows):
    """Set the derivatives, those of the masses of cells leaning likewise."""
    inner, leans = channel.inner, channel.leans
    fill_rows(channel.clear, kernel, theta, h, cells, inner)
    fill_slopes(channel.clear, kernel, theta, h, cells, inner)
    for k in range(len(leans)):
        for i in range(1, 3):
            slope = 0.5 * dot(leans[k], inner[i])
            rows[i, 2 * k], rows[i, 2 * k + 1] = slope, -slope


for _kernel in (NormalNIG, Beta):
    fill_rows.register(_fill, CoinsOfCells, _kernel)
    fill_slopes.register(_fill_slopes, CoinsOfCells, _kernel)
