"""A chain in memory: builds the state, makes room as it grows, hands out draws. It knows nothing of files.

A `Mixture` makes chains behind the face that those of all models have.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.kernels import (
    draw_posterior,
    draw_prior,
    latent_columns,
    parameter_shapes,
    tally,
    theta_rows,
)
from dpmix.kernels.learned_base import LearnedBase, own_base, with_base
from dpmix.mechanisms.channels.channel_functions import augmented, draw_latent, draw_start, hides, settle
from dpmix.numerics.jit import njit
from dpmix.numerics.mixing import PitmanYor, initial_concentration
from dpmix.run.model_protocols import Arrays, cut_draws, fault_of_mixture, mixture_draws
from dpmix.samplers import conditional, offers, parameters
from dpmix.samplers.collapsed import follow_lambda
from dpmix.samplers.neal2 import Neal2, prior_predictive
from dpmix.samplers.offers import estimates
from dpmix.samplers.private_neal5 import PrivateNeal5
from dpmix.samplers.state import (
    BLOCK,
    CROWDED,
    GROW,
    SERIAL_LIMIT,
    Serial,
    State,
    Threads,
    blank_state,
    block_count,
    grown,
    numbers_of,
    set_numbers,
)
from dpmix.samplers.sweeps import (
    FULL,
    PENDING,
    SAVED,
    SKIP,
    STEP,
    TABLED,
    THIN,
    Algorithm,
    Output,
    builder_of,
    run,
    run_plain,
)

__all__ = ["Algorithm", "Chain", "Mixture"]

_KEPT = ("latent", "estimate", "labels", "counts", "theta", "order", "where")
_PIECE = 1 << 20


def _padded(values: NDArray[np.float64], first: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return `values` (F,), of which draw t has ``first[t]:first[t + 1]``, as a table filled up with NaN."""
    sizes = np.diff(first)
    width = int(sizes.max(initial=0))
    table = np.full((len(sizes), width), np.nan)
    table[np.arange(width) < sizes[:, None]] = values
    return table


@njit
def _start_values(channel, kernel, rng, z, values):
    """Set `values` to latent values to start from."""
    for i in range(len(z)):
        values[i] = draw_start(channel, kernel, rng, z[i])


@njit
def _start(state, kernel, rng, values, m):
    """Draw parameters given labels and latent values, and keep m copies of these."""
    state.stats[:] = 0.0
    for j in range(state.now.occupied):
        draw_prior(kernel, rng, state.theta, state.order[j])
    for i in range(len(state.labels)):
        tally(kernel, state.theta, state.labels[i], values[i], state.stats)
    for j in range(state.now.occupied):
        h = state.order[j]
        draw_posterior(kernel, rng, state.counts[h], state.stats, h, state.theta, state.tuning)
    for i in range(len(state.labels)):
        for a in range(i * m, (i + 1) * m):
            state.latent[a] = values[i]


@njit
def _draw_latents(state, channel, kernel, rng, values):
    for i in range(len(values)):
        values[i] = draw_latent(channel, kernel, rng, state.z[i], state.theta, state.labels[i])


def _parts(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the part of each value: 0, 1, .. as sorted `cuts` (k,) divide the line, empty parts left out.

    Many values are worked in pieces, so that nothing but the result is as long as they are.
    """
    parts = np.empty(len(values), dtype=np.int32)
    for start in range(0, len(values), _PIECE):
        parts[start : start + _PIECE] = np.searchsorted(cuts, values[start : start + _PIECE])
    rank = np.cumsum(_counts(parts, len(cuts) + 1) > 0, dtype=np.int32) - 1
    for start in range(0, len(values), _PIECE):
        parts[start : start + _PIECE] = rank[parts[start : start + _PIECE]]
    return parts


def _counts(labels: NDArray[np.int32], most: int) -> NDArray[np.int64]:
    """Return how often each of 0, .., `most` - 1 is among the labels, shape (most,)."""
    counts = np.zeros(most, dtype=np.int64)
    for start in range(0, len(labels), _PIECE):
        counts += np.bincount(labels[start : start + _PIECE], minlength=most)
    return counts


class Chain:
    """One chain of a sampler for a mixture given a release; see `dpmix.run.model_protocols.ModelChain`.

    Draws are `n_clusters`, `concentration`, `acceptance_rate` and `log_likelihood` (draw,), `weights`
    (component,) and `theta` (parameter, component) of which draw t has ``first[t]:first[t + 1]``, `first`
    (edge,), `base` (draw, hyper, column) where the base measure is learned, and `allocations` (draw, obs) of
    the records that they are kept of, if any.

    Parameters
    ----------
    z : (n,) array of float
        The released values, or the rows of the channel's arrays, kept by reference.
    channel, kernel, mixing : NamedTuples of a mechanism, of `dpmix.kernels` and `dpmix.numerics.mixing`
    algorithm : Algorithm
    rng : Generator
        The chain's own generator.
    pool : Executor, optional
        Threads for large n; the draws are the same without.
    learned : LearnedBase, optional
        What is learned of the kernel's base measure; nothing where left out.
    kept : int64 array (m,), optional
        Places of the records whose allocations are saved; none where left out.

    Raises
    ------
    ValueError
        For a sampler that needs noise when there is none.
    """

    def __init__(
        self,
        z: NDArray[np.float64],
        channel: Any,
        kernel: Any,
        mixing: PitmanYor,
        algorithm: Algorithm,
        rng: Generator,
        pool: Executor | None = None,
        learned: LearnedBase | None = None,
        kept: NDArray[np.int64] | None = None,
    ) -> None:
        for module in (offers, parameters, conditional):  # a law imports its channel as late as it can
            module.complete()
        self.z = z
        own = {name: getattr(channel, name).copy() for name in augmented(channel)}
        self.channel = channel._replace(**own) if own else channel
        build = builder_of(algorithm.kind)
        if algorithm.kind in TABLED and hasattr(kernel, "prepared"):
            kernel = kernel.prepared(len(z))
        self._learned = own_base(kernel, rng, learned)
        self._prior_kernel = kernel
        kernel = self.kernel
        self.mixing = mixing
        self.rng = rng
        self._algorithm: Any
        self._algorithm, self._held, slots, self._block = build(algorithm, kernel, mixing, len(z))
        slots = slots or 2 * (BLOCK + algorithm.auxiliary)
        if self._held and not hides(channel):
            raise ValueError(f"{algorithm.kind} with latent values needs noise")
        blocks = 1 if own else block_count(len(z))  # the channel's own variables depend on all records
        self._executor: Any = Serial() if blocks == 1 else Threads(len(z), rng.spawn(blocks), pool)
        self._state: State = self._blank(z, slots)
        self._kept = np.empty(0, dtype=np.int64) if kept is None else kept
        self._plan = np.array([0, 1, 0, 0, 0])
        self._output = self._new_output(16, 256)
        groups = int(rng.integers(1, min(10, len(z), slots) + 1))
        columns = latent_columns(kernel)
        values = np.empty((len(z), columns)) if columns else self._state.grouped  # scratch, and long enough
        _start_values(channel, kernel, rng, z, values)
        along = values[:, 0] if columns else values
        cuts = np.sort(rng.choice(along, groups - 1))
        self._place(_parts(along, cuts), initial_concentration(mixing))
        _start(self._state, kernel, rng, values, self._held)
        settle(self.channel, kernel, rng, values)
        self._refresh()

    @property
    def kernel(self) -> Any:
        """The kernel with its base measure as it is now."""
        return with_base(self._prior_kernel, self._learned.values)

    @property
    def base(self) -> NDArray[np.float64]:
        """Location and scale, or lambda too, of the base measure as they are now, shape (2 or 3, d)."""
        return self._learned.values.copy()  # type: ignore[no-any-return]  # a NamedTuple of Any

    def _blank(self, z: NDArray[np.float64], slots: int) -> State:
        columns = latent_columns(self.kernel)
        return blank_state(z, theta_rows(self.kernel), slots, self._held, self._block, columns)

    def _place(self, labels: NDArray[np.int32], concentration: float) -> None:
        state = self._state
        k = int(labels.max()) + 1
        while k > len(state.counts):
            self._grow()
            state = self._state
        state.labels[:] = labels
        state.counts[:] = _counts(labels, len(state.counts))
        state.order[:] = np.arange(len(state.counts))
        state.where[:] = np.arange(len(state.counts))
        set_numbers(state, {"ints": [k, 0, 0, 0], "floats": [concentration, 0.0, 0.0, 0.0]})

    def _refresh(self) -> None:
        """Compute anew what is kept of the released values and of the base measure."""
        self._follow_base()
        if isinstance(self._algorithm, PrivateNeal5):
            estimates(self.channel, self.kernel, self._state, self._held)

    def _follow_base(self) -> None:
        if isinstance(self._algorithm, Neal2):
            self._algorithm = Neal2(prior_predictive(self.kernel, self.z))
        if hasattr(self._algorithm, "constants"):
            follow_lambda(self.kernel, self._algorithm.constants)

    def _grow(self) -> None:
        self._state = grown(self._state, 2 * len(self._state.counts))

    def _new_output(self, draws: int, components: int) -> Output:
        n = len(self.z)
        label = np.int16 if n <= np.iinfo(np.int16).max else np.int32
        return Output(
            n_clusters=np.zeros(draws, dtype=np.int32),
            concentration=np.zeros(draws),
            acceptance_rate=np.zeros(draws),
            log_likelihood=np.zeros(draws),
            first=np.zeros(draws + 1, dtype=np.int64),
            weights=np.zeros(components),
            theta=np.zeros((len(self._state.theta), components)),
            base=np.zeros((draws, *self._learned.values.shape)),
            allocations=np.zeros((draws, len(self._kept)), dtype=label),
            kept=self._kept,
        )

    def _enlarge_output(self) -> None:
        old, saved = self._output, int(self._plan[SAVED])
        draws, components = len(old.n_clusters), len(old.weights)
        draws = 2 * draws if saved == draws else draws
        components = 2 * components if 2 * int(old.first[saved]) > components else components
        components = max(components, int(old.first[saved]) + len(self._state.counts))
        new = self._new_output(draws, components)
        for part, source in zip(new[:-1], old[:-1], strict=True):
            size = min(part.shape[-1], source.shape[-1])
            if part.ndim == 1:
                part[:size] = source[:size]
            elif part is new.theta:
                part[:, :size] = source
            else:
                part[: len(source)] = source
        self._output = new

    @property
    def note(self) -> str:
        """The number of occupied components."""
        return f"{self.n_clusters} clusters"

    def keep(self, thin: int, skip: int) -> None:
        """Count sweeps from here; save every `thin`-th state after the first `skip`."""
        self._plan[:] = (0, thin, skip, 0, 0)
        self._output = self._new_output(16, 256)

    @property
    def sweeps(self) -> int:
        """Sweeps since `keep`."""
        return int(self._plan[STEP])

    def proceed(self, until: int) -> None:
        """Sweep until `until` sweeps have been done since `keep`."""
        loop = run if isinstance(self._executor, Serial) else run_plain
        law = self.channel, self._prior_kernel, self._learned, self.mixing
        while True:
            saved = self._output, self._plan, until
            status = loop(self._algorithm, self._executor, self._state, *law, self.rng, *saved)
            if status == GROW:
                self._grow()
            elif status == FULL:
                self._enlarge_output()
            elif status == CROWDED:
                raise RuntimeError(
                    "the slices opened millions of components, as they may from discount 0.5 on; use neal8"
                )
            else:
                return

    def take(self) -> Arrays:
        """Return the draws saved since the last call, and forget them."""
        draws = cut_draws(self._output, int(self._plan[SAVED]))
        self._plan[SAVED] = 0
        del draws["kept"]
        if not len(self._kept):
            del draws["allocations"]
        return mixture_draws(draws)

    def fault(self, draws: Arrays) -> tuple[str, str] | None:
        """Return what is wrong with draws that are not finite, and what to look for."""
        # of a release whose density has no closed form the log-likelihood is always NaN, of others never
        unknown = augmented(self.channel)
        return fault_of_mixture(draws, ["base", *([] if unknown else ["log_likelihood"])])

    @property
    def saved_bytes(self) -> int:
        """Memory of the draws that `take` would return."""
        saved = int(self._plan[SAVED])
        width = len(self._kept) * int(self._output.allocations.itemsize)
        return saved * (40 + width) + 24 * int(self._output.first[saved])

    def advance(self, sweeps: int) -> None:
        """Do `sweeps` sweeps and keep nothing."""
        self.keep(thin=1, skip=sweeps)
        self.proceed(sweeps)

    def run(self, draws: int, thin: int = 1, allocations: bool = False) -> dict[str, NDArray[Any]]:
        """Do ``draws * thin`` sweeps; return `draws` states, arrays over (draw, component) or (draw,)."""
        self._kept = np.arange(len(self.z) if allocations else 0)
        self.keep(thin=thin, skip=0)
        self.proceed(draws * thin)
        result = {name: values for name, (_, values) in self.take().items()}
        first, theta, row = result.pop("first"), result.pop("theta"), 0
        result["weights"] = _padded(result["weights"], first)
        for name, shape in parameter_shapes(self.kernel).items():
            size = math.prod(shape)
            table = np.stack([_padded(entry, first) for entry in theta[row : row + size]], axis=-1)
            result[name] = table.reshape(*table.shape[:2], *shape)
            row += size
        return result

    @property
    def n_clusters(self) -> int:
        """Number of occupied components."""
        return int(self._state.now.occupied)

    @property
    def allocations(self) -> NDArray[np.int32]:
        """Component of each record, 0..n_clusters - 1, shape (n,)."""
        return self._state.where[self._state.labels]  # type: ignore[no-any-return]  # a NamedTuple of Any

    @property
    def theta(self) -> NDArray[np.float64]:
        """Parameters of the occupied components, shape (P, n_clusters)."""
        return self._state.theta[:, self._state.order[: self.n_clusters]]  # type: ignore[no-any-return]

    @property
    def concentration(self) -> float:
        """Concentration of the mixing process."""
        return float(self._state.now.concentration)

    @property
    def latent(self) -> NDArray[np.float64] | None:
        """Latent values that the state holds, shape (n, m), or None where they are integrated out."""
        latent = self._state.latent
        return latent.reshape(len(self.z), self._held, *latent.shape[1:]).copy() if self._held else None

    def draw_latents(self) -> NDArray[np.float64]:
        """Draw latent values of all records from their law given the state, shape (n,) or (n, d).

        Raises
        ------
        TypeError
            Where channel and kernel have no exact draw.
        """
        columns = latent_columns(self.kernel)
        values = np.empty((len(self.z), columns) if columns else len(self.z))
        _draw_latents(self._state, self.channel, self.kernel, self.rng, values)
        return values

    @property
    def acceptance_rate(self) -> float:
        """Share of proposals accepted since the last saved draw; NaN without proposals."""
        proposed = float(self._state.now.proposed)
        return float(self._state.now.accepted) / proposed if proposed else float("nan")

    def set_state(
        self,
        allocations: NDArray[np.integer],
        theta: NDArray[np.float64],
        concentration: float,
        latent: NDArray[np.float64] | None = None,
        base: NDArray[np.float64] | None = None,
    ) -> None:
        """Put the chain in a state: labels 0..k - 1 (n,), parameters (P, k), latent values (n, m).

        And location and scale (2, d) of the base measure. Latent values go where the state holds them, and
        where the channel's own variables depend on them.
        """
        self._place(np.asarray(allocations, dtype=np.int32), concentration)
        self._state.theta[:, : theta.shape[1]] = theta
        if base is not None:
            self._learned.values[:] = base
        if latent is not None:
            if self._held:
                self._state.latent[:] = np.reshape(latent, self._state.latent.shape)
            settle(self.channel, self.kernel, self.rng, np.ascontiguousarray(latent[:, 0]))
        self._refresh()

    def _generators(self) -> list[Generator]:
        return [self.rng, *(self._executor.rngs if isinstance(self._executor, Threads) else [])]

    def snapshot(self) -> dict[str, Any]:
        """Return what `restore` needs to go on with the same draws; draws not taken are not in it."""
        kept = {name: getattr(self._state, name).copy() for name in _KEPT}
        own = {f"channel_{name}": getattr(self.channel, name).copy() for name in augmented(self.channel)}
        return {
            **kept,
            **numbers_of(self._state),
            **own,
            "base": self._learned.values.copy(),
            "base_steps": self._learned.steps.copy(),
            "plan": self._plan[[STEP, THIN, SKIP, PENDING]],
            "generators": [rng.bit_generator.state for rng in self._generators()],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a `snapshot`."""
        slots = len(snapshot["counts"])
        blank = self._blank(self.z, slots)
        stored = {
            name: np.ascontiguousarray(snapshot[name], dtype=getattr(blank, name).dtype) for name in _KEPT
        }
        self._state = blank._replace(**stored)
        set_numbers(self._state, snapshot)
        for name in augmented(self.channel):
            getattr(self.channel, name)[:] = snapshot[f"channel_{name}"]
        if self._learned.learns:
            self._learned.values[:], self._learned.steps[:] = snapshot["base"], snapshot["base_steps"]
            self._follow_base()
        self._output = self._new_output(16, 256)
        self._plan[[STEP, THIN, SKIP, PENDING]] = snapshot["plan"]
        self._plan[SAVED] = 0
        for rng, state in zip(self._generators(), snapshot["generators"], strict=True):
            rng.bit_generator.state = state


@dataclass(frozen=True)
class Mixture:
    """A mixture given a release, of what makes a `Chain`."""

    z: NDArray[np.float64]
    channel: Any
    kernel: Any
    mixing: PitmanYor
    algorithm: Algorithm
    kept: NDArray[np.int64]
    learned: LearnedBase | None = None

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> Chain:
        """Return a chain at its start; `pool` serves blocks of records where there are many."""
        law = self.channel, self.kernel, self.mixing, self.algorithm
        return Chain(self.z, *law, rng, pool, self.learned, self.kept)

    def compile(self, rng: Generator) -> None:
        """Compile everything that a sweep and a saved draw need, on few records that take the same way."""
        chain = replace(self, z=self.z[: SERIAL_LIMIT + 1], kept=self.kept[:0]).make_chain(rng)
        chain.keep(thin=1, skip=0)
        chain.proceed(1)

    @property
    def bytes_per_draw(self) -> int:
        """About how much one saved draw takes on disk."""
        return 400 + 2 * len(self.kept)
