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
from dpmix.models.latent_groups import Slopes, draw_sizes, grouped_sums, make_slopes, parameters_of_groups
from dpmix.models.linear_regression.clamped_predictors import start_within
from dpmix.models.linear_regression.joint import (
    ACTIVE,
    LEARNING,
    carry,
    coordinates,
    given_sums,
    log_prior,
    map_of,
    pack,
    unpack,
)
from dpmix.models.linear_regression.latent_records import (
    Line,
    Moments,
    distance,
    farthest_change,
    make_room,
    size_of,
    subtract,
    sweep_blocks,
)
from dpmix.models.linear_regression.model import LinearRegression, draw_prior
from dpmix.models.linear_regression.truncated import make_learnt
from dpmix.models.model_protocols import GROUP, Parameter, ParametricChain
from dpmix.models.sum_augmentation import (
    REFRESH,
    Tally,
    draw_record,
    draw_records,
    draw_theta,
    recount,
    sweep_bounded_offers,
)
from dpmix.numerics.factors import invert_lower, product
from dpmix.numerics.jit import njit

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


class GroupedRegression(LinearRegression):
    """Linear regressions of groups; see `LinearRegression` for the parameters, `law` being of one group."""

    def __init__(
        self, release: Release, law: Moments, start: Floats, rows: Floats, offers: int, joint: bool
    ) -> None:
        super().__init__(release, law, start, rows, offers, joint)
        self.alone = LinearRegression(release, law, start, rows, offers, joint)
        self.sums = grouped_sums(release, size_of(len(law.columns)))
        self.parameters = (
            *(Parameter(p.name, (GROUP, *p.dims), p.role, p.title, p.column) for p in self.parameters),
            *parameters_of_groups(),
        )
        self.coords = {**self.coords, GROUP: np.array(self.sums.names)}
        self.groups = KnownGroupedMoments(
            law, self.sums.sums, self.sums.centre, self.sums.sizes, 1.0 / self.sums.size_scale
        )

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw the parameters of each group from the prior, which is the same for all, and their shares."""
        count = len(self.sums.names)
        one = LinearRegression.prior_draws(self.alone, rng, draws * count)
        of_groups = {name: values.reshape(draws, count, *values.shape[1:]) for name, values in one.items()}
        return {**of_groups, "group_share": rng.dirichlet(np.ones(count), draws)}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> GroupedRegressionChain:
        """Return a chain at a draw of parameters and records from the prior, and sizes about the release."""
        return GroupedRegressionChain(self, rng)


class GroupedRegressionChain(ParametricChain):
    """A chain over the parameters of all groups and a latent database."""

    model: GroupedRegression

    def __init__(self, model: GroupedRegression, rng: Generator) -> None:
        law, release = model.law, model.sums
        q, groups = len(law.columns), len(release.names)
        sizes = draw_sizes(rng, release)
        self.starts = np.zeros(groups + 1, dtype=np.int64)
        latent_groups.set_starts(self.starts, sizes)
        self.values = np.stack([model.start] * groups)
        self.learnt = np.stack([make_learnt(law)] * groups)
        self.learnt[:, ACTIVE] = float(model.joint)
        self.records = np.zeros((model.n, 2 * q))
        points = np.empty((groups, coordinates(law)))
        for group in range(groups):
            theta = Line(self.values[group], self.learnt[group])
            draw_prior(law, rng, theta.values)
            start_within(law, theta.values)
            draw_records(law, rng, theta, self.records[self.starts[group] : self.starts[group + 1]])
            pack(law, theta.values, points[group])
        self.slopes = make_slopes(sizes, points, np.zeros_like(points), release.size_scale)
        self.rests, self.levels = np.zeros_like(release.sums), np.zeros((groups, 2))
        self.age = np.zeros(1, dtype=np.int64)
        self._scratch = (
            make_room(q),
            np.zeros((1, 2 * q)),
            np.zeros(model.n if model.offers else 0),
            np.zeros((release.most, 2 * q)),
        )
        state: dict[str, NDArray[Any]] = {
            "values": self.values,
            "learnt": self.learnt,
            "records": self.records,
            "starts": self.starts,
            "rests": self.rests,
            "levels": self.levels,
            "age": self.age,
        }
        state |= {f"slopes_{name}": getattr(self.slopes, name) for name in Slopes._fields}
        super().__init__(model, rng, state)

    def sweep(self, count: int) -> None:
        """Sweep over records, parameters and sizes; joint moves learn in burn-in alone."""
        self._run(self.burning_in, 1, count, np.zeros((0, 1, 1)), np.zeros((0, 1, 1)), np.zeros(0))

    def sweep_and_save(self, draws: int, thin: int, first: int, out: Mapping[str, Floats]) -> None:
        """Sweep, and save parameters, shares and sizes, in one call."""
        rows = slice(first, first + draws)
        groups, width = self.values.shape
        saved = np.zeros((draws, groups, width + len(self.model.rows)))
        sizes = np.zeros((draws, 2, groups))
        self._run(False, draws, thin, saved, sizes, out["acceptance_rate"][rows])
        self._write(rows, out, saved, sizes)

    def _run(
        self, learning: bool, draws: int, thin: int, saved: Floats, sizes: Floats, rates: Floats
    ) -> None:
        self.learnt[:, LEARNING] = float(learning)
        model = self.model
        state = (self.values, self.learnt, self.slopes, self.records, self.starts, self.rests, self.levels)
        plan = (model.offers, model.joint, model.sums.most, learning, draws, thin)
        run_grouped_moment_sweeps(
            model.groups, self.rng, *state, self.age, *self._scratch, self.moves, *plan, saved, sizes, rates
        )

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write the parameters, and draw predictions and shares."""
        groups, width = self.values.shape
        saved, sizes = np.zeros((1, groups, width + len(self.model.rows))), np.zeros((1, 2, groups))
        _save(self.rng, self.values, self.starts, saved[0], sizes[0])
        self._write(slice(row, row + 1), out, saved, sizes)

    def _write(self, rows: slice, out: Mapping[str, Floats], saved: Floats, sizes: Floats) -> None:
        for group in range(saved.shape[1]):
            self.model.write((rows, group), out, saved[:, group])
        out["group_share"][rows], out["group_size"][rows] = sizes[:, 0], sizes[:, 1]


@njit
def _of_group(law, group, size):
    """Return what is known of one group, of this size, as if it had been released alone."""
    base, noisy = law.base, np.empty(len(law.centre))
    for j in range(len(noisy)):
        noisy[j] = law.sums[group, j] + law.centre[j] * size
    return given_sums(base, noisy)


@njit
def _accept(law, rng, starts, rests, levels, source, target, count, new, gain):
    """Accept rests (2, size) of two groups between which records move, or not, by the Metropolis ratio."""
    gain += latent_groups.size_gain(law.sizes, law.size_rate, starts, source, target, count)
    before = levels[source, 0] + levels[target, 0]
    first, second = distance(new[0]), distance(new[1])
    gain += law.base.rate * (before - first - second)
    if not (gain >= 0.0 or rng.random() < math.exp(gain)):
        return False
    for j in range(len(law.centre)):
        rests[source, j], rests[target, j] = new[0, j], new[1, j]
    levels[source, 0], levels[target, 0] = first, second
    return True


@njit
def _transfer(law, rng, values, learnt, records, starts, rests, levels, fresh, source, target, count):
    """Move records of one group to another; return whether they moved."""
    first, last = starts[source], starts[source + 1]
    if last - first < count:
        return False
    left = latent_groups.take_aside(rng, records, first, last, count, target > source)
    size = len(law.centre)
    new, gone = np.empty((2, size)), np.zeros(size)
    for t in range(count):
        subtract(records[left + t], gone)
    for j in range(size):
        new[0, j] = rests[source, j] - count * law.centre[j] - gone[j]
        new[1, j] = rests[target, j] + count * law.centre[j]
    theta = Line(values[target], learnt[target])
    for t in range(count):
        draw_record(law.base, rng, theta, fresh[t])
        subtract(fresh[t], new[1])
    if not _accept(law, rng, starts, rests, levels, source, target, count, new, 0.0):
        return False
    left = latent_groups.open_gap(records, starts, source, target, count)
    for t in range(count):
        records[left + t] = fresh[t]
    return True


@njit
def _shifted(model, slopes, group, size, new_size, old, new, inverse):
    """Set `new` to parameters shifted by what another size makes of them; return the log ratio of priors."""
    point = np.empty(coordinates(model))
    pack(model, old, point)
    latent_groups.shift(slopes, group, size, new_size, point)
    new[:] = old
    unpack(model, point, new)
    return log_prior(model, new, inverse) - log_prior(model, old, inverse)


@njit
def _matrix(model, old, new, work):
    """Return the matrix by which (1, x, y) of records follows the parameters."""
    map_of(model, old, work[0], False)
    invert_lower(work[0], work[1])
    map_of(model, new, work[2], False)
    return product(work[2], work[1])


@njit
def _transfer_jointly(
    law, rng, values, learnt, slopes, records, starts, rests, levels, fresh, source, target, count
):
    """Move records of one group to another, with the parameters of both; return whether they moved.

    Those that stay follow the parameters, and those that come are drawn given the new ones.
    """
    first, last, there = starts[source], starts[source + 1], starts[target + 1] - starts[target]
    here = last - first
    if here < count:
        return False
    latent_groups.take_aside(rng, records, first, last, count, target > source)
    low = first if target > source else first + count
    staying = records[low : low + here - count]
    own = records[starts[target] : starts[target + 1]]
    q = len(law.base.columns)
    inverse, work = np.empty((q - 1, q - 1)), np.empty((3, q + 1, q + 1))
    moved, new = np.empty((2, values.shape[1])), np.empty((2, len(law.centre)))
    gain = _shifted(law.base, slopes, source, here, here - count, values[source], moved[0], inverse)
    gain += _shifted(law.base, slopes, target, there, there + count, values[target], moved[1], inverse)
    if not gain > -math.inf:
        return False
    first_matrix = _matrix(law.base, values[source], moved[0], work)
    second_matrix = _matrix(law.base, values[target], moved[1], work)
    offer = np.empty(records.shape[1])
    new[0, :] = _of_group(law, source, here - count).released
    new[1, :] = _of_group(law, target, there + count).released
    for i in range(len(staying)):
        carry(law.base, values[source], moved[0], first_matrix, staying[i], offer)
        subtract(offer, new[0])
    for i in range(len(own)):
        carry(law.base, values[target], moved[1], second_matrix, own[i], offer)
        subtract(offer, new[1])
    theta = Line(moved[1], learnt[target])
    for t in range(count):
        draw_record(law.base, rng, theta, fresh[t])
        subtract(fresh[t], new[1])
    if not _accept(law, rng, starts, rests, levels, source, target, count, new, gain):
        return False
    for i in range(len(staying)):
        carry(law.base, values[source], moved[0], first_matrix, staying[i], offer)
        staying[i] = offer
    for i in range(len(own)):
        carry(law.base, values[target], moved[1], second_matrix, own[i], offer)
        own[i] = offer
    left = latent_groups.open_gap(records, starts, source, target, count)
    for t in range(count):
        records[left + t] = fresh[t]
    values[source], values[target] = moved[0], moved[1]
    return True


@njit
def _save(rng, values, starts, saved, sizes):
    """Write parameters and normals for predictions to saved (G, width), shares and sizes to sizes (2, G)."""
    width = values.shape[1]
    for group in range(len(values)):
        saved[group, :width] = values[group]
        for j in range(width, saved.shape[1]):
            saved[group, j] = rng.standard_normal()
    latent_groups.save_sizes(rng, starts, sizes)


@njit
def run_grouped_moment_sweeps(
    law,
    rng,
    values,
    learnt,
    slopes,
    records,
    starts,
    rests,
    levels,
    age,
    room,
    offer,
    weights,
    fresh,
    moves,
    offers,
    joint,
    most,
    learning,
    draws,
    thin,
    saved,
    sizes,
    rates,
):
    """Do `draws` times `thin` sweeps; write what is saved after each by `_save`.

    saved (draws, G, width); sizes (draws, 2, G); rates (draws,), of acceptance of single records within their
    group. Where saved is empty nothing is.
    """
    groups, size = rests.shape
    bound = farthest_change(len(law.base.columns)) * law.base.rate
    budget = latent_groups.offers_of_sweep(starts[-1], groups)
    part, offered_sums, point = np.empty(size), np.empty(size), np.empty(coordinates(law.base))
    for row in range(draws):
        for _ in range(thin):
            for group in range(groups):
                own = records[starts[group] : starts[group + 1]]
                known = _of_group(law, group, len(own))
                theta = Line(values[group], learnt[group])
                tally = Tally(rests[group], offered_sums, part, levels[group])
                if age[0] % REFRESH == 0:
                    recount(known, own, tally)
                if offers == 0:
                    sweep_blocks(known, rng, theta, own, tally, room, moves)
                elif len(own) > 0:
                    count = max(1, offers * len(own) // starts[-1])
                    sweep_bounded_offers(
                        known, rng, theta, own, tally, offer[0], weights, moves, count, bound
                    )
                draw_theta(known, rng, theta, own, tally)
                if learning:
                    pack(law.base, values[group], point)
                    latent_groups.learn_slopes(slopes, group, len(own), point)
            age[0] += 1
            offered = 0
            while offered < budget:
                source, target, count = latent_groups.next_batch(rng, groups, most)
                offered += count
                _transfer(
                    law, rng, values, learnt, records, starts, rests, levels, fresh, source, target, count
                )
            if joint and groups > 1:
                source, target, count = latent_groups.next_batch(rng, groups, most)
                _transfer_jointly(
                    law,
                    rng,
                    values,
                    learnt,
                    slopes,
                    records,
                    starts,
                    rests,
                    levels,
                    fresh,
                    source,
                    target,
                    count,
                )
        if len(saved) > 0:
            rates[row] = moves[0] / moves[1]
            moves[:] = 0.0
            _save(rng, values, starts, saved[row], sizes[row])
