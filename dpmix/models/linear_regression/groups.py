"""Linear regressions of groups whose sizes are private, given noisy sizes and clamped moments of them.

Each group has parameters of its own. In a sweep they and the group's records move as for a release of that
group alone (`dpmix.models.linear_regression.model`), given its size; then records move between groups
(`dpmix.models.latent_groups`), alone and with the parameters of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.models import latent_groups
from dpmix.models.latent_groups import GroupedChain, GroupsPlan, Slopes
from dpmix.models.linear_regression.clamped_predictors import start_within
from dpmix.models.linear_regression.joint import (
    ACTIVE,
    LEARNING,
    between,
    carry_all,
    coordinates,
    given_sums,
    log_prior,
    pack,
    subtract_carried,
    unpack,
)
from dpmix.models.linear_regression.latent_records import (
    Line,
    Moments,
    StreamRoom,
    distance,
    make_room,
    size_of,
    subtract,
)
from dpmix.models.linear_regression.model import LinearRegression, draw_prior
from dpmix.models.linear_regression.truncated import make_learnt
from dpmix.models.sum_augmentation import (
    Tally,
    draw_record,
    draw_records,
    draw_theta,
    offer_to_all,
    recount,
    save,
    sweep,
)
from dpmix.numerics.jit import njit
from dpmix.run.model_protocols import GROUP, ParametricModel

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release

Floats = NDArray[np.float64]


class KnownGroupedMoments(NamedTuple):
    """What is known.

    base: prior, bounds and noise, as of one group; sums (G, size): noisy sums of entries less centre (size,);
    sizes (G - 1,): noisy sizes, and size_rate: 1 over the scale of their noise.
    """

    base: Moments
    sums: Any
    centre: Any
    sizes: Any
    size_rate: float


class GroupedMomentsState(NamedTuple):
    """What a chain holds, changed in place, and its room.

    values and learnt (G, ..), of each group as in `Line`; records (N, 2 q), those of group g from
    ``starts[g]`` to ``starts[g + 1]``; rests (G, size) and levels (G, 2), of each as in a `Tally`, of which
    spare (2, size) is the rest; age (1,), sweeps done; slopes; room, offer (2 q,) and weights (N,) of sweeps
    within a group; fresh (most, 2 q), records that come to one.
    """

    values: Any
    learnt: Any
    records: Any
    starts: Any
    rests: Any
    levels: Any
    age: Any
    slopes: Slopes
    spare: Any
    room: StreamRoom
    offer: Any
    weights: Any
    fresh: Any


class GroupedRegression(ParametricModel):
    """Linear regressions of groups, each `alone` as if it had been released by itself."""

    kind = LinearRegression.kind

    def __init__(self, release: Release, alone: LinearRegression) -> None:
        self.alone, self.n, base = alone, alone.n, alone.law
        self.sums = latent_groups.grouped_sums(release, size_of(len(base.columns)))
        self.parameters = (*latent_groups.of_groups(alone.parameters), *latent_groups.parameters_of_groups())
        self.coords = {**alone.coords, GROUP: np.array(self.sums.names)}
        self.constants, self.attrs = alone.constants, alone.attrs
        self.acceptance_bound = alone.acceptance_bound
        sums, sizes = self.sums, self.sums.sizes
        self.law = KnownGroupedMoments(base, sums.sums, sums.centre, sizes, 1.0 / sums.size_scale)
        self.plan = GroupsPlan(alone.offers, alone.joint, sums.most)

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw the parameters of each group from the prior, which is the same for all, and their shares."""
        count = len(self.sums.names)
        one = self.alone.prior_draws(rng, draws * count)
        found = {name: values.reshape(draws, count, *values.shape[1:]) for name, values in one.items()}
        return {**found, "group_share": rng.dirichlet(np.ones(count), draws)}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> GroupedRegressionChain:
        """Return a chain at a draw of parameters and records from the prior, and sizes about the release."""
        return GroupedRegressionChain(self, rng)

    def write_groups(self, rows: slice, out: Mapping[str, Floats], saved: Floats) -> None:
        """Write saved (draws, G, width) to places of the draws."""
        for group in range(saved.shape[1]):
            self.alone.write((rows, group), out, saved[:, group])


class GroupedRegressionChain(GroupedChain):
    """A chain over the parameters of all groups and a latent database."""

    def __init__(self, model: GroupedRegression, rng: Generator) -> None:
        base, release = model.law.base, model.sums
        q, (groups, size) = len(base.columns), release.sums.shape
        sizes = latent_groups.draw_sizes(rng, release)
        starts = latent_groups.starts_of(sizes)
        values = np.stack([model.alone.start] * groups)
        learnt = np.stack([make_learnt(base)] * groups)
        learnt[:, ACTIVE] = float(model.plan.joint)
        records = np.zeros((model.n, 2 * q))
        points = np.empty((groups, coordinates(base)))
        for group in range(groups):
            theta = Line(values[group], learnt[group])
            draw_prior(base, rng, theta.values)
            start_within(base, theta.values)
            draw_records(base, rng, theta, records[starts[group] : starts[group + 1]])
            pack(base, theta.values, points[group])
        age = np.zeros(1, dtype=np.int64)
        kept = (values, learnt, records, starts, np.zeros((groups, size)), np.zeros((groups, 2)), age)
        held = GroupedMomentsState(
            *kept,
            slopes=latent_groups.make_slopes(sizes, points, np.zeros_like(points), release.size_scale),
            spare=np.zeros((2, size)),
            room=make_room(q),
            offer=np.zeros(2 * q),
            weights=np.zeros(model.n if model.plan.offers else 0),
            fresh=np.zeros((model.plan.most, 2 * q)),
        )
        named = dict(zip(GroupedMomentsState._fields, kept, strict=False))
        super().__init__(model, rng, held, named, (values.shape[1] + len(model.alone.rows),))


@njit
def _of_group(law, group, size):
    """Return what is known of one group, of this size, as if it had been released alone."""
    base, noisy = law.base, np.empty(len(law.centre))
    for j in range(len(noisy)):
        noisy[j] = law.sums[group, j] + law.centre[j] * size
    return given_sums(base, noisy)


@njit
def _records_of(state, group):
    return state.records[state.starts[group] : state.starts[group + 1]]


@njit
def _tally_of(state, group):
    return Tally(state.rests[group], state.spare[0], state.spare[1], state.levels[group])


@latent_groups.add_up.register
def _add_up(law: KnownGroupedMoments, state, group):
    own = _records_of(state, group)
    recount(_of_group(law, group, len(own)), own, _tally_of(state, group))


@latent_groups.sweep_group.register
def _sweep_group(law: KnownGroupedMoments, plan, rng, group, state, moves, learning):
    own, tally = _records_of(state, group), _tally_of(state, group)
    known = _of_group(law, group, len(own))
    theta = Line(state.values[group], state.learnt[group])
    theta.learnt[LEARNING] = 1.0 if learning else 0.0
    if plan.offers == 0:
        sweep(known, rng, theta, own, tally, state.room, moves)
    elif len(own) > 0:
        count = max(1, plan.offers * len(own) // len(state.records))
        offer_to_all(known, rng, theta, own, tally, state.offer, state.weights, moves, count)
    draw_theta(known, rng, theta, own, tally)
    if learning:
        point = np.empty(coordinates(known))
        pack(known, theta.values, point)
        latent_groups.learn_slopes(state.slopes, group, len(own), point)


@njit
def _accept(law, rng, state, source, target, count, new, gain):
    """Accept rests (2, size) of two groups between which records move, or not, by the Metropolis ratio."""
    rests, levels = state.rests, state.levels
    gain += latent_groups.size_gain(law.sizes, law.size_rate, state.starts, source, target, count)
    before = levels[source, 0] + levels[target, 0]
    first, second = distance(new[0]), distance(new[1])
    gain += law.base.rate * (before - first - second)
    if not (gain >= 0.0 or rng.random() < math.exp(gain)):
        return False
    rests[source], rests[target] = new[0], new[1]
    levels[source, 0], levels[target, 0] = first, second
    return True


@njit
def _draw_coming(law, rng, theta, state, count, rest):
    """Draw records that come to a group of parameters `theta`; subtract what they add from `rest`."""
    for t in range(count):
        draw_record(law.base, rng, theta, state.fresh[t])
        subtract(state.fresh[t], rest)


@njit
def _put(state, source, target, count):
    """Put the records that were drawn into their group, in the place of those set aside in another."""
    left = latent_groups.open_gap(state.records, state.starts, source, target, count)
    state.records[left : left + count] = state.fresh[:count]


@latent_groups.transfer.register
def _transfer(law: KnownGroupedMoments, rng, state, source, target, count):
    starts, rests = state.starts, state.rests
    first, last = starts[source], starts[source + 1]
    if last - first < count:
        return
    left = latent_groups.take_aside(rng, state.records, first, last, count, target > source)
    size = len(law.centre)
    new, gone = np.empty((2, size)), np.zeros(size)
    for t in range(count):
        subtract(state.records[left + t], gone)
    for j in range(size):
        new[0, j] = rests[source, j] - count * law.centre[j] - gone[j]
        new[1, j] = rests[target, j] + count * law.centre[j]
    _draw_coming(law, rng, Line(state.values[target], state.learnt[target]), state, count, new[1])
    if not _accept(law, rng, state, source, target, count, new, 0.0):
        return
    _put(state, source, target, count)


@njit
def _shifted(model, slopes, group, size, new_size, old, new, inverse):
    """Set `new` to parameters shifted by what another size makes of them; return the log ratio of priors."""
    point = np.empty(coordinates(model))
    pack(model, old, point)
    latent_groups.shift(slopes, group, size, new_size, point)
    new[:] = old
    unpack(model, point, new)
    return log_prior(model, new, inverse) - log_prior(model, old, inverse)


@latent_groups.transfer_jointly.register
def _transfer_jointly(law: KnownGroupedMoments, rng, state, source, target, count):
    base, values, slopes, starts = law.base, state.values, state.slopes, state.starts
    first, last, there = starts[source], starts[source + 1], starts[target + 1] - starts[target]
    here = last - first
    if here < count:
        return
    latent_groups.take_aside(rng, state.records, first, last, count, target > source)
    low = first if target > source else first + count
    staying, own = state.records[low : low + here - count], _records_of(state, target)
    q = len(base.columns)
    inverse, work = np.empty((q - 1, q - 1)), np.empty((3, q + 1, q + 1))
    moved, new = np.empty((2, values.shape[1])), np.empty((2, len(law.centre)))
    gain = _shifted(base, slopes, source, here, here - count, values[source], moved[0], inverse)
    gain += _shifted(base, slopes, target, there, there + count, values[target], moved[1], inverse)
    if not gain > -math.inf:
        return
    matrix = between(base, values[source], moved[0], work)
    other = between(base, values[target], moved[1], work)
    new[0, :] = _of_group(law, source, here - count).released
    new[1, :] = _of_group(law, target, there + count).released
    subtract_carried(base, values[source], moved[0], matrix, staying, new[0])
    subtract_carried(base, values[target], moved[1], other, own, new[1])
    _draw_coming(law, rng, Line(moved[1], state.learnt[target]), state, count, new[1])
    if not _accept(law, rng, state, source, target, count, new, gain):
        return
    carry_all(base, values[source], moved[0], matrix, staying)
    carry_all(base, values[target], moved[1], other, own)
    _put(state, source, target, count)
    values[source], values[target] = moved[0], moved[1]


@latent_groups.save_group.register
def _save_group(law: KnownGroupedMoments, rng, state, group, saved):
    save(law.base, rng, Line(state.values[group], state.learnt[group]), saved)
