"""Latent records of groups whose sizes are private: what every model of such a release shares.

A record is a pair (g, x), the groups' shares pi ~ Dirichlet(1, .., 1), and x given g has the parameters of
its group. The total N is public; what is released are noisy sizes of all groups but the last and, for each
group, noisy sums of f(x) - c (methods, section 16). The state holds all records, those of a group side by
side from `starts[g]` to `starts[g + 1]`. Given the sizes, groups are independent, and each is swept as if it
had been released alone, of n_g records, with sums of f. Between sweeps records move from group to group.

With pi integrated out, labelled records have the prior probability (G - 1)! prod_g n_g! / (N + G - 1)!. A
move takes k of the n_a records of one group, each set of k equally likely, and puts k into another, drawn
anew given the parameters there; the move back chooses these k among n_b + k. So prior and proposals are

    (n_a - k)! (n_b + k)! / (n_a! n_b!)   and   C(n_a, k) / C(n_b + k, k),

whose product is 1 for every k: what remains is the ratio of the densities of the release. k is 1, 2, 4, ..
up to about the noise on the sizes. The shares pi are drawn given the sizes where a state is saved.

Where noise is large, a size is tied to the parameters of its group: sums say n_g E f, and not E f. So
records also move together with the parameters of both groups, whose coordinates are shifted by a slope times
the change of log(n_g + 1), learnt in burn-in alone (`Slopes`): a shift by what sizes alone tell has Jacobian
1, and that back undoes it. All other records of the two groups follow as in the models' own joint moves.

A model is two NamedTuples: a law, for whose class it registers what is dispatched here, and a state with
`starts` (G + 1,), `age` (1,) sweeps done, `slopes`, and what is its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.laws.every import expect
from dpmix.laws.statistic_laws import SumsOfGroups
from dpmix.models.sum_augmentation import REFRESH
from dpmix.numerics.jit import dispatch, njit
from dpmix.run.model_protocols import GROUP, Parameter, ParametricChain, ParametricModel

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHARE = 4  # as many records as one in so many are offered to another group in a sweep
FEWEST = 64  # but so many at least
FORGET = 400.0  # states over which averages are taken
FIRST = 100.0  # states that the slopes to begin with count for
STEEPEST = 5.0  # of these


class GroupedSums(NamedTuple):
    """A release of groups as numbers.

    Parameters
    ----------
    names : tuple of str
        The groups, G of them.
    sizes : ndarray, shape (G - 1,)
        Noisy sizes, of all but the last.
    sums : ndarray, shape (G, entries)
        Noisy sums of f - centre.
    centre : ndarray, shape (entries,)
    size_scale, scale : float
        Of the Laplace noise on sizes and sums.
    n : int
        All records.
    """

    names: tuple[str, ...]
    sizes: Floats
    sums: Floats
    centre: Floats
    size_scale: float
    scale: float
    n: int

    @property
    def most(self) -> int:
        """The most records that move together."""
        return int(max(1.0, min(2.0 * self.size_scale, self.n // 2)))


def grouped_sums(release: Release, entries: int) -> GroupedSums:
    """Return a release of groups as numbers.

    Raises
    ------
    DataError
        When it has another number of values than so many groups have.
    """
    law = expect(release.mechanism, SumsOfGroups)
    names = law.group_names
    count = len(names)
    values = np.ascontiguousarray(release.values[:, 0], dtype=np.float64)
    wanted = count - 1 + count * entries
    if len(values) != wanted:
        raise DataError(
            f"the release has {len(values)} values, and {count} groups of {entries} sums, with the sizes of "
            f"all but one, take {wanted}"
        )
    if len(release.scales) != 2:
        raise DataError(
            "the release states no scale of the noise on sizes and sums: mechanism.scale has two numbers"
        )
    size_scale, scale = release.scales
    centre = np.broadcast_to(np.asarray(law.centre, dtype=np.float64), (entries,)).copy()
    sums = values[count - 1 :].reshape(count, entries).copy()
    return GroupedSums(names, values[: count - 1].copy(), sums, centre, size_scale, scale, release.n)


def of_groups(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Return parameters of each group in the place of those of one."""
    return tuple(replace(parameter, dims=(GROUP, *parameter.dims)) for parameter in parameters)


def parameters_of_groups() -> tuple[Parameter, ...]:
    """Return what every model of groups draws of them: shares and sizes."""
    return Parameter("group_share", (GROUP,)), Parameter("group_size", (GROUP,))


def draw_sizes(rng: Generator | None, release: GroupedSums) -> Ints:
    """Return sizes of the groups (G,) for a start: those released, less noise where `rng` draws it."""
    noisy = release.sizes.copy()
    if rng is not None:
        noisy -= rng.laplace(0.0, release.size_scale, len(noisy))
    wanted = np.maximum(np.append(noisy, release.n - noisy.sum()), 0.0)
    ends = np.rint(np.cumsum(wanted) * (release.n / max(wanted.sum(), 1e-300))).astype(np.int64)
    ends[-1] = release.n
    return np.asarray(np.diff(ends, prepend=0), dtype=np.int64)


class Slopes(NamedTuple):
    """What burn-in has found of sizes and parameters.

    mean (G, 1 + k): of log(n_g + 1) and the k coordinates of the parameters; spread (G, 1 + k): its variance,
    and its covariances with these; seen (G,): states.
    """

    mean: Floats
    spread: Floats
    seen: Floats


def make_slopes(sizes: Ints, points: Floats, slopes: Floats, size_scale: float) -> Slopes:
    """Return slopes (G, k) to begin with, at sizes (G,) and coordinates (G, k), as if seen in some states."""
    logs = np.log(sizes + 1.0)[:, None]
    variance = np.minimum(np.sqrt(2.0) * size_scale / (sizes + 1.0), 1.0)[:, None] ** 2
    spread = np.hstack([variance, variance * np.clip(slopes, -STEEPEST, STEEPEST)])
    return Slopes(np.hstack([logs, points]), spread, np.full(len(sizes), FIRST))


@njit
def learn_slopes(slopes, group, size, point):
    """Take one more state, of coordinates (k,), into the averages."""
    slopes.seen[group] += 1.0
    gain = 1.0 / min(slopes.seen[group], FORGET)
    mean, spread = slopes.mean[group], slopes.spread[group]
    own = math.log(size + 1.0) - mean[0]
    for j in range(len(point)):
        spread[1 + j] += gain * ((1.0 - gain) * own * (point[j] - mean[1 + j]) - spread[1 + j])
        mean[1 + j] += gain * (point[j] - mean[1 + j])
    spread[0] += gain * ((1.0 - gain) * own * own - spread[0])
    mean[0] += gain * own


@njit
def shift(slopes, group, size, new_size, point):
    """Shift coordinates (k,) in place by what another size of the group makes of them."""
    spread = slopes.spread[group]
    if spread[0] > 0.0:
        change = (math.log(new_size + 1.0) - math.log(size + 1.0)) / spread[0]
        for j in range(len(point)):
            point[j] += change * spread[1 + j]


def starts_of(sizes: Ints) -> Ints:
    """Return the first records of the groups, and N, (G + 1,)."""
    return np.append(0, np.cumsum(sizes))


@njit
def size_gain(noisy, rate, starts, source, target, count):
    """Return the change of the log density of the noisy sizes with `count` records from source to target."""
    gain = 0.0
    if source < len(noisy):
        gap = noisy[source] - (starts[source + 1] - starts[source])
        gain += abs(gap) - abs(gap + count)
    if target < len(noisy):
        gap = noisy[target] - (starts[target + 1] - starts[target])
        gain += abs(gap) - abs(gap - count)
    return rate * gain


@njit
def next_batch(rng, groups, most):
    """Draw two groups, from and to, and how many records are to move: 1, 2, 4, .. up to `most`."""
    levels = 1
    while 2**levels <= most:
        levels += 1
    count = 2 ** min(int(rng.random() * levels), levels - 1)
    source = min(int(rng.random() * groups), groups - 1)
    target = min(int(rng.random() * (groups - 1)), groups - 2)
    return source, target + (1 if target >= source else 0), count


@njit
def _swap(rows, i, j):
    for k in range(rows.shape[1]):
        kept = rows[i, k]
        rows[i, k] = rows[j, k]
        rows[j, k] = kept


@njit
def take_aside(rng, rows, first, last, count, at_end):
    """Bring `count` of the rows from `first` to `last`, chosen at random, to one end; return their first."""
    size = last - first
    for t in range(count):
        i = first + min(int(rng.random() * (size - t)), size - t - 1)
        if at_end:
            _swap(rows, i, last - 1 - t)
        else:  # those from first + t on are left to choose from
            _swap(rows, i + t, first + t)
    return last - count if at_end else first


@njit
def open_gap(rows, starts, source, target, count):
    """Give the rows set aside by `take_aside` to another group; return the first of them there.

    Rows of the groups between are copied over the gap, from its other side, and `starts` follow.
    """
    step = 1 if target > source else -1
    if step > 0:
        for group in range(source + 1, target + 1):
            first, last = starts[group], starts[group + 1]
            if group < target:
                moved = min(count, last - first)
                for t in range(moved):
                    rows[first - count + t] = rows[last - moved + t]
            starts[group] = first - count
        return starts[target]
    for back in range(source - target):
        group = source - 1 - back
        first, last = starts[group], starts[group + 1]
        if group > target:
            moved = min(count, last - first)
            for t in range(moved):
                rows[last + count - 1 - t] = rows[first + moved - 1 - t]
        starts[group + 1] = last + count
    return starts[target + 1] - count


# Sweeps over all groups, and their chains


class GroupsPlan(NamedTuple):
    """What a sweep does: offers of soma to all records, or 0; joint; the most records that move together."""

    offers: int
    joint: bool
    most: int


@dispatch()
def add_up(law, state, group):
    """Take what is added up over a group's records from scratch."""


@dispatch()
def sweep_group(law, plan, rng, group, state, moves, learning):
    """Move the records of a group, and its parameters, given its size; add to `moves` (accepted, made)."""


@dispatch()
def transfer(law, rng, state, source, target, count):
    """Move records of one group to another, or leave all as it is."""


@dispatch()
def transfer_jointly(law, rng, state, source, target, count):
    """Move records of one group to another, with the parameters of both, or leave all as it is.

    Those that stay follow the parameters, and those that come are drawn given the new ones.
    """


@dispatch()
def save_group(law, rng, state, group, saved):
    """Write the parameters of a group, and what is drawn given them, to `saved`."""


@njit
def save_groups(law, rng, state, saved, sizes):
    """Write each group to saved (G, ..), and to sizes (2, G) shares, drawn given the sizes, and sizes."""
    starts = state.starts
    groups = len(starts) - 1
    for group in range(groups):
        save_group(law, rng, state, group, saved[group])
    total = 0.0
    for group in range(groups):
        sizes[1, group] = starts[group + 1] - starts[group]
        sizes[0, group] = rng.standard_gamma(1.0 + sizes[1, group])
        total += sizes[0, group]
    for group in range(groups):
        sizes[0, group] /= total


@njit
def run_grouped_sweeps(law, plan, rng, state, moves, learning, draws, thin, saved, sizes, rates):
    """Do `draws` times `thin` sweeps; write what is saved after each by `save_groups`.

    saved (draws, G, ..); sizes (draws, 2, G); rates (draws,), of acceptance of single records within their
    group. Where saved is empty nothing is.
    """
    starts = state.starts
    groups = len(starts) - 1
    budget = max(starts[-1] // SHARE, min(starts[-1], FEWEST)) if groups > 1 else 0
    for row in range(draws):
        for _ in range(thin):
            if state.age[0] % REFRESH == 0:
                for group in range(groups):
                    add_up(law, state, group)
            state.age[0] += 1
            for group in range(groups):
                sweep_group(law, plan, rng, group, state, moves, learning)
            offered = 0
            while offered < budget:
                source, target, count = next_batch(rng, groups, plan.most)
                offered += count
                transfer(law, rng, state, source, target, count)
            if plan.joint and groups > 1:
                source, target, count = next_batch(rng, groups, plan.most)
                transfer_jointly(law, rng, state, source, target, count)
        if len(saved) > 0:
            rates[row] = moves[0] / moves[1]
            moves[:] = 0.0
            save_groups(law, rng, state, saved[row], sizes[row])


class GroupedChain(ParametricChain):
    """A chain over the parameters of all groups and a latent database.

    Parameters
    ----------
    model : ParametricModel
        With `law` and `plan`, as `run_grouped_sweeps` takes them, and `write_groups(rows, out, saved)`, which
        writes saved (draws, G, ..) to places of the draws.
    rng : Generator
    held : NamedTuple
        The state, with its room.
    kept : mapping of str to array
        What a snapshot has of it, beside the slopes.
    width : tuple of int
        Shape of what is saved of a group.
    """

    model: Any

    def __init__(
        self,
        model: ParametricModel,
        rng: Generator,
        held: Any,
        kept: Mapping[str, NDArray[Any]],
        width: tuple[int, ...],
    ) -> None:
        self.held, self._width = held, width
        slopes = {f"slopes_{name}": values for name, values in held.slopes._asdict().items()}
        super().__init__(model, rng, {**kept, **slopes})

    def sweep(self, count: int) -> None:
        """Sweep over records, parameters and sizes; moves learn in burn-in alone."""
        self._run(self.burning_in, 1, count, *self._to_save(0), np.zeros(0))

    def sweep_and_save(self, draws: int, thin: int, first: int, out: Mapping[str, Floats]) -> None:
        """Sweep, and save groups, shares and sizes, in one call."""
        rows, room = slice(first, first + draws), self._to_save(draws)
        self._run(False, draws, thin, *room, out["acceptance_rate"][rows])
        self._write(rows, out, *room)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write the groups, and draw shares and what follows from parameters."""
        saved, sizes = self._to_save(1)
        save_groups(self.model.law, self.rng, self.held, saved[0], sizes[0])
        self._write(slice(row, row + 1), out, saved, sizes)

    def _to_save(self, draws: int) -> tuple[Floats, Floats]:
        groups = len(self.held.starts) - 1
        return np.zeros((draws, groups, *self._width)), np.zeros((draws, 2, groups))

    def _run(
        self, learning: bool, draws: int, thin: int, saved: Floats, sizes: Floats, rates: Floats
    ) -> None:
        known = (self.model.law, self.model.plan, self.rng)
        run_grouped_sweeps(*known, self.held, self.moves, learning, draws, thin, saved, sizes, rates)

    def _write(self, rows: slice, out: Mapping[str, Floats], saved: Floats, sizes: Floats) -> None:
        self.model.write_groups(rows, out, saved)
        out["group_share"][rows], out["group_size"][rows] = sizes[:, 0], sizes[:, 1]
