"""Data augmentation for compositions of groups whose sizes are private (`dpmix.models.latent_groups`).

Each group has an alpha of its own. In a sweep it and the group's records move as for a release of that group
alone (`dpmix.models.dirichlet.augmentation`), given its size; then records move between groups.

Scores of thresholds are of the records of all groups together. They tell how many records have small entries,
not of which group: the alpha of one may be smaller where that of another is larger, and moves of one group
alone creep along. So two groups move at once, each along a step of what was learnt of its log alpha, one
forth and the other back, their records following.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.laws.every import expect
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.models import latent_groups
from dpmix.models.dirichlet.alpha import (
    AlphaPrior,
    gamma_prior,
    joint_pays,
    matched,
    slice_alpha,
    start_alpha,
    whiten,
)
from dpmix.models.dirichlet.augmentation import FEWEST, REPEATS, SHARE, Compositions, save, sum_up
from dpmix.models.dirichlet.joint import (
    Learnt,
    learn,
    make_learnt,
    make_room,
    move_jointly,
    reach,
    unpack,
    write,
)
from dpmix.models.dirichlet.latent_records import (
    CensoredLogs,
    Scores,
    Shapes,
    draw_logs,
    first_level,
    least_log,
    log_scores,
    scores_without,
    set_shapes,
    sweep_logs,
    sweep_offers,
)
from dpmix.models.dirichlet.model import Composition, CompositionPart, scores_of, settings_of
from dpmix.models.latent_groups import GroupedChain, GroupedSums, GroupsPlan, Slopes
from dpmix.models.sum_augmentation import default_offers
from dpmix.numerics.jit import njit
from dpmix.numerics.special import digamma, trigamma
from dpmix.run.model_protocols import GROUP
from dpmix.spec.model_section import GammaPrior

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]
_LONGEST, _RANGE = 5.0, 3.0  # of steps of two groups; log of how much shorter the shortest are


class GroupedLogs(NamedTuple):
    """What is known.

    sums (G, d): noisy sums of log max(x, a) - centre; sizes (G - 1,): noisy sizes; rate, size_rate: 1 over
    the scales of their noise; floor: log a; the prior of every group's alpha; and the scores of thresholds,
    of the records of all groups together. The sums of a group's records are (d + M,), as those of a part.
    """

    sums: Any
    sizes: Any
    centre: float
    rate: float
    size_rate: float
    floor: float
    prior: AlphaPrior
    scores: Scores


class GroupedState(NamedTuple):
    """What a chain holds, changed in place, and its room.

    shapes, of each group a row of theirs; records (d, N), logarithms, those of group g from ``starts[g]`` to
    ``starts[g + 1]``; sums (G, d + M) of them; root (G, d, d), along whose columns alpha moves; age (1,),
    sweeps done; learnt and slopes, what burn-in finds of alpha and of sizes; rooms of two groups that follow
    alpha; offers (d, most).
    """

    shapes: Shapes
    records: Any
    starts: Any
    sums: Any
    root: Any
    age: Any
    learnt: Learnt
    slopes: Slopes
    rooms: Any
    offers: Any


def build(spec: RunSpec, release: Release) -> GroupedCompositions:
    """Return the model of a spec given a release of groups; see `dpmix.api.task.build`.

    Raises
    ------
    SpecError
        For a prior that takes a part of the release.
    """
    prior = settings_of(spec).prior
    if not isinstance(prior, GammaPrior):
        raise SpecError(
            f"model.prior: {prior} takes the first of two parts of a release, and one of groups is not "
            "split; use a gamma {shape, rate}"
        )
    law = expect(release.mechanism, LogMomentsLaw)
    d = law.components
    sums = latent_groups.grouped_sums(release, d)
    own = gamma_prior(prior.shape, prior.rate, d)
    offers = 0
    if spec.sampler.algorithm == "soma":
        offers = spec.sampler.offers or default_offers(release.n)
    parts = parts_of_groups(sums, latent_groups.draw_sizes(None, sums), law.threshold)
    # single offers move so little, for so long, that a joint move beside them always pays
    # whatever scores say of all groups together, which leave each of them open
    joint = spec.sampler.joint and (offers > 0 or any(joint_pays([part], own) for part in parts if part.size))
    return GroupedCompositions(release, sums, own, offers, joint)


def parts_of_groups(
    release: GroupedSums, sizes: NDArray[np.int64], threshold: float
) -> list[CompositionPart]:
    """Return each group, with a size that it may have, as if it had been released alone."""
    parts = []
    for size, sums in zip(sizes.tolist(), release.sums, strict=True):
        own = max(size, 1)
        parts.append(CompositionPart(size, release.centre + sums / own, release.scale / own, threshold))
    return parts


class GroupedCompositions(Composition):
    """Compositions of groups given noisy sizes and log moments, by data augmentation.

    Parameters
    ----------
    release : Release
    sums : GroupedSums
        The same as numbers.
    prior : AlphaPrior
        Of the alpha of each group.
    offers : int
        Offers of one record to all in a sweep; 0 offers records one of their own each.
    joint : bool
        Whether the alpha of a group and its records are also moved together.
    """

    def __init__(
        self, release: Release, sums: GroupedSums, prior: AlphaPrior, offers: int, joint: bool
    ) -> None:
        scores = scores_of(release, release.n)
        super().__init__(release, {"joint_moves": joint}, scores)
        self.constants = {name: value for name, value in self.constants.items() if name != "n1"}
        found = latent_groups.of_groups(self.parameters)
        self.parameters = (*found[:2], *latent_groups.parameters_of_groups(), *found[2:])
        self.coords = {**self.coords, GROUP: np.array(sums.names)}
        self.sums, self.prior, self.n = sums, prior, release.n
        self.threshold = expect(release.mechanism, LogMomentsLaw).threshold
        self.law = GroupedLogs(
            sums.sums,
            sums.sizes,
            float(sums.centre[0]),
            1.0 / sums.scale,
            1.0 / sums.size_scale,
            math.log(self.threshold),
            prior,
            scores,
        )
        self.plan = GroupsPlan(offers, joint, sums.most)
        if release.epsilon is not None and not release.delta:
            self.acceptance_bound = math.exp(-release.epsilon)

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw the shares of the groups; alpha and E[x | alpha] are drawn where summaries are made."""
        return {"group_share": rng.dirichlet(np.ones(len(self.sums.names)), draws)}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> GroupedCompositionsChain:
        """Return a chain at a start drawn about the release."""
        return GroupedCompositionsChain(self, rng)

    def write_groups(self, rows: slice, out: Mapping[str, Floats], saved: Floats) -> None:
        """Write saved (draws, G, 3, d), as `save` has them, to places of the draws."""
        out["alpha"][rows], out["mean"][rows] = saved[:, :, 0], saved[:, :, 1]
        for j, place in enumerate(self.predictive):
            out[place][rows] = saved[:, :, 2, j]


class GroupedCompositionsChain(GroupedChain):
    """A chain over the alpha of all groups and a latent database."""

    def __init__(self, model: GroupedCompositions, rng: Generator) -> None:
        release, law = model.sums, model.law
        groups, d = release.sums.shape
        sizes = latent_groups.draw_sizes(rng, release)
        starts = latent_groups.starts_of(sizes)
        alpha, mode, spread = np.ones((3, groups, d))
        shapes = Shapes(alpha, mode, spread, np.zeros((groups, d + 1)))
        records, root, learnt = np.empty((d, model.n)), np.empty((groups, d, d)), []
        for group, part in enumerate(parts_of_groups(release, sizes, model.threshold)):
            one = Shapes(*(values[group] for values in shapes))
            one.alpha[:] = np.maximum(rng.gamma(model.prior.shape) / model.prior.rate, 1e-3)
            if part.size:
                one.alpha[:], means = start_alpha(rng, [part])
            set_shapes(one)
            own = np.empty((d, part.size))
            draw_logs(rng, one, own, part.size)
            if part.size:
                own = matched(own, means[0], law.floor)
            records[:, starts[group] : starts[group + 1]] = own
            whiten(one.alpha, part.size, model.prior, root[group])
            learnt.append(make_learnt(one.alpha, root[group]))
        kept = {
            "records": records,
            "starts": starts,
            "sums": np.zeros((groups, d + len(law.scores.noisy))),
            "root": root,
            "age": np.zeros(1, dtype=np.int64),
        }
        held = GroupedState(
            shapes,
            **kept,
            learnt=Learnt(*(np.stack(parts) for parts in zip(*learnt, strict=True))),
            slopes=latent_groups.make_slopes(
                sizes, np.log(shapes.alpha), _slopes(shapes.alpha, law), release.size_scale
            ),
            rooms=(make_room(model.n, d), make_room(model.n, d)),
            offers=np.empty((d, max(model.plan.most, 1))),
        )
        of_learnt = {f"learnt_{name}": values for name, values in held.learnt._asdict().items()}
        super().__init__(model, rng, held, {"alpha": shapes.alpha, **kept, **of_learnt}, (3, d))


def _slopes(alpha: Floats, law: GroupedLogs) -> Floats:
    """Return the derivatives (G, d) of log alpha by log n_g where n_g E(log x - centre) does not change."""
    found = np.empty_like(alpha)
    for own, slopes in zip(alpha, found, strict=True):
        whole = own.sum()
        means = np.array([digamma(a) for a in own]) - digamma(whole)
        moved = law.centre - np.maximum(means, law.floor)
        inverse = np.array([1.0 / trigamma(a) for a in own])
        shared = trigamma(whole) / (1.0 - trigamma(whole) * inverse.sum())
        # of diag(trigamma) - trigamma(whole), by Sherman and Morrison
        slopes[:] = (inverse * moved + shared * inverse * (inverse @ moved)) / own
    return found


@njit
def _shapes_of(shapes, group):
    """Return the shapes of one group."""
    return Shapes(shapes.alpha[group], shapes.mode[group], shapes.spread[group], shapes.boost[group])


@latent_groups.add_up.register
def _add_up(law: GroupedLogs, state, group):
    starts = state.starts
    sum_up(law, state.records[:, starts[group] : starts[group + 1]], state.sums[group])


@latent_groups.sweep_group.register
def _sweep_group(law: GroupedLogs, plan, rng, group, state, moves, learning):
    records, starts, sums, learnt, root = state.records, state.starts, state.sums, state.learnt, state.root
    own = _shapes_of(state.shapes, group)
    set_shapes(own)  # of an alpha that may have been restored
    d, alpha = len(records), own.alpha
    first, last = starts[group], starts[group + 1]
    size = last - first
    noisy, own_sums = np.empty((1, d)), sums[group : group + 1]
    for j in range(d):
        noisy[0, j] = law.sums[group, j] + law.centre * size
    scores = scores_without(law.scores, sums, group)
    known = CensoredLogs(noisy[0], law.rate, law.floor, scores)
    if plan.offers > 0:
        if size > 0:
            offers = max(1, plan.offers * size // starts[-1])
            sweep_offers(known, rng, own, records[:, first:last], sums[group], moves, offers)
    else:
        block = max(-(-size // SHARE), min(size, FEWEST))
        # from anywhere, whatever sizes have been: a place that went on from the last would remember them
        start = first + min(int(rng.random() * size), max(size - 1, 0))
        stop = start + block
        sweep_logs(known, rng, own, records[:, start : min(stop, last)], sums[group], moves)
        if stop > last:
            sweep_logs(known, rng, own, records[:, first : first + stop - last], sums[group], moves)
    totals = np.zeros(d)
    for j in range(d):
        for i in range(first, last):
            totals[j] += records[j, i]
    slice_alpha(rng, alpha, size, totals, law.prior, root[group], REPEATS)
    learned = Learnt(
        learnt.centre[group],
        learnt.covariance[group],
        learnt.root[group],
        learnt.small[group],
        learnt.counts[group],
    )
    if plan.joint and size > 0:
        both = Compositions(noisy, np.full(1, law.rate), np.array([0, size]), law.floor, law.prior, scores)
        move_jointly(rng, both, learned, state.rooms[0], alpha, records[:, first:last], own_sums)
    set_shapes(own)
    if learning:
        learn(learned, alpha)
        whiten(np.exp(learned.centre), size, law.prior, root[group])
        latent_groups.learn_slopes(state.slopes, group, size, np.log(alpha))


@njit
def _gap(law, group, size, j, value):
    """Return how far a noisy sum is from that of a group of this size, `value`."""
    return abs(law.sums[group, j] + law.centre * size - value)


@njit
def _count(scores, columns, first, count, sign, sums):
    """Add `sign` to the numbers of levels in sums (d + M,), for each of `count` columns from the first on."""
    for i in range(first, first + count):
        m = first_level(scores, least_log(columns, i))
        if m < len(scores.noisy):
            sums[len(columns) + m] += sign


@njit
def _release_gain(law, state, source, target, count, first, second, gain):
    """Add to `gain` the log ratio of releases, where records move and two groups have other sums (d + M,)."""
    starts, sums = state.starts, state.sums
    here, there = starts[source + 1] - starts[source], starts[target + 1] - starts[target]
    for j in range(len(state.records)):
        before = _gap(law, source, here, j, sums[source, j]) + _gap(law, target, there, j, sums[target, j])
        after = _gap(law, source, here - count, j, first[j])
        after += _gap(law, target, there + count, j, second[j])
        gain += law.rate * (before - after)
    if len(law.scores.noisy) > 0:
        moved = sums.copy()
        moved[source], moved[target] = first, second
        gain += log_scores(law.scores, moved) - log_scores(law.scores, sums)
    return gain


@njit
def _put(state, source, target, count, first, second):
    """Put offers into a group, in the place of records set aside in another; take over the sums of both."""
    left = latent_groups.open_gap(state.records.T, state.starts, source, target, count)
    state.records[:, left : left + count] = state.offers[:, :count]
    state.sums[source], state.sums[target] = first, second


@latent_groups.transfer.register
def _transfer(law: GroupedLogs, rng, state, source, target, count):
    records, starts, sums, offers = state.records, state.starts, state.sums, state.offers
    first, last = starts[source], starts[source + 1]
    if last - first < count:
        return
    left = latent_groups.take_aside(rng, records.T, first, last, count, target > source)
    draw_logs(rng, _shapes_of(state.shapes, target), offers, count)
    gain = latent_groups.size_gain(law.sizes, law.size_rate, starts, source, target, count)
    change = np.zeros((2, sums.shape[1]))
    for j in range(len(records)):
        for t in range(count):
            change[0, j] -= max(records[j, left + t], law.floor)
            change[1, j] += max(offers[j, t], law.floor)
    if len(law.scores.noisy) > 0:
        _count(law.scores, records, left, count, -1.0, change[0])
        _count(law.scores, offers, 0, count, 1.0, change[1])
    change[0] += sums[source]
    change[1] += sums[target]
    gain = _release_gain(law, state, source, target, count, change[0], change[1], gain)
    if not (gain >= 0.0 or rng.random() < math.exp(gain)):
        return
    _put(state, source, target, count, change[0], change[1])


@njit
def _follow(law, rng, alpha, new, records, small, room, maps, sums):
    """Let the records of a group follow its alpha in `room`; return the log ratio of all but the release.

    maps (3, d) and sums (1, d + M) are set. -inf where there is no such move.
    """
    d, n = records.shape
    scores = Scores(law.scores.levels, law.scores.noisy, 0.0)
    silent = Compositions(np.zeros((1, d)), np.zeros(1), np.array([0, n]), law.floor, law.prior, scores)
    logs, cubes = np.empty(d), np.empty(d)
    unpack(rng, alpha, records, small, room)
    before = reach(silent, room, alpha, alpha, small, n, maps, sums, logs, cubes)
    if before == -math.inf:
        return -math.inf
    return reach(silent, room, alpha, new, small, n, maps, sums, logs, cubes) - before


@njit
def move_with_records(law, rng, state, source, target, count):
    """Move records of one group to another, with the alpha of both."""
    shapes, records, starts, offers = state.shapes, state.records, state.starts, state.offers
    small, slopes, rooms = state.learnt.small, state.slopes, state.rooms
    d = len(records)
    first, last, there = starts[source], starts[source + 1], starts[target + 1] - starts[target]
    here = last - first
    if here < count:
        return
    latent_groups.take_aside(rng, records.T, first, last, count, target > source)
    low = first if target > source else first + count
    staying = records[:, low : low + here - count]
    own = records[:, starts[target] : starts[target + 1]]
    gain = latent_groups.size_gain(law.sizes, law.size_rate, starts, source, target, count)
    new, maps, found = np.empty((2, d)), np.empty((2, 3, d)), np.zeros((2, 1, state.sums.shape[1]))
    for j in range(d):
        new[0, j], new[1, j] = math.log(shapes.alpha[source, j]), math.log(shapes.alpha[target, j])
    latent_groups.shift(slopes, source, here, here - count, new[0])
    latent_groups.shift(slopes, target, there, there + count, new[1])
    for j in range(d):
        if not max(abs(new[0, j]), abs(new[1, j])) < 300.0:
            return
        new[0, j], new[1, j] = math.exp(new[0, j]), math.exp(new[1, j])
    gain += _follow(
        law, rng, shapes.alpha[source], new[0], staying, small[source], rooms[0], maps[0], found[0]
    )
    gain += _follow(law, rng, shapes.alpha[target], new[1], own, small[target], rooms[1], maps[1], found[1])
    if gain == -math.inf:
        return
    coming = Shapes(new[1], np.empty(d), np.empty(d), np.empty(d + 1))
    set_shapes(coming)
    draw_logs(rng, coming, offers, count)
    for j in range(d):
        for t in range(count):
            found[1, 0, j] += max(offers[j, t], law.floor)
    if len(law.scores.noisy) > 0:
        _count(law.scores, offers, 0, count, 1.0, found[1, 0])
    gain = _release_gain(law, state, source, target, count, found[0, 0], found[1, 0], gain)
    if not (gain >= 0.0 or rng.random() < math.exp(gain)):
        return
    write(rooms[0], maps[0], small[source], staying)
    write(rooms[1], maps[1], small[target], own)
    _put(state, source, target, count, found[0, 0], found[1, 0])
    shapes.alpha[source], shapes.alpha[target] = new[0], new[1]
    set_shapes(_shapes_of(shapes, source))
    set_shapes(_shapes_of(shapes, target))


@njit
def move_apart(law, rng, state):
    """Move the alpha of two groups, one forth and the other back, with their records.

    The step is symmetric in log alpha, of a random length; half of the steps are of all entries together, as
    they go with the first.
    """
    records, starts, sums, learnt, rooms = state.records, state.starts, state.sums, state.learnt, state.rooms
    shapes, d, groups = state.shapes, len(records), len(sums)
    pair = np.empty(2, dtype=np.int64)
    pair[0] = int(groups * rng.random())
    pair[1] = (pair[0] + 1 + int((groups - 1) * rng.random())) % groups
    length = _LONGEST * math.exp(-_RANGE * rng.random())
    noise, new, maps = np.empty(d), np.empty((2, d)), np.empty((2, 3, d))
    found, moved = np.zeros((2, 1, sums.shape[1])), sums.copy()
    some = 1 if rng.random() < 0.5 else d
    for k in range(d):
        noise[k] = length * rng.standard_normal() if k < some else 0.0
    gain = 0.0
    for side in range(2):
        group = pair[side]
        first, last = starts[group], starts[group + 1]
        for j in range(d):
            step = 0.0
            for k in range(j + 1):
                step += learnt.root[group, j, k] * noise[k]
            at = math.log(shapes.alpha[group, j]) + (step if side == 0 else -step)
            if not abs(at) < 300.0:
                return
            new[side, j] = math.exp(at)
        own, small = records[:, first:last], learnt.small[group]
        gain += _follow(
            law, rng, shapes.alpha[group], new[side], own, small, rooms[side], maps[side], found[side]
        )
        if gain == -math.inf:
            return
        for j in range(d):
            before = _gap(law, group, last - first, j, sums[group, j])
            gain += law.rate * (before - _gap(law, group, last - first, j, found[side, 0, j]))
        moved[group] = found[side, 0]
    gain += log_scores(law.scores, moved) - log_scores(law.scores, sums)
    if not (gain >= 0.0 or rng.random() < math.exp(gain)):
        return
    for side in range(2):
        group = pair[side]
        write(rooms[side], maps[side], learnt.small[group], records[:, starts[group] : starts[group + 1]])
        shapes.alpha[group] = new[side]
        sums[group] = found[side, 0]
        set_shapes(_shapes_of(shapes, group))


@latent_groups.transfer_jointly.register
def _transfer_jointly(law: GroupedLogs, rng, state, source, target, count):
    move_with_records(law, rng, state, source, target, count)
    if len(law.scores.noisy) > 0:
        move_apart(law, rng, state)


@latent_groups.save_group.register
def _save_group(law: GroupedLogs, rng, state, group, saved):
    """Write alpha, E[x | alpha] and a record to saved (3, d)."""
    own = _shapes_of(state.shapes, group)
    set_shapes(own)
    save(rng, own, saved)
