"""Data augmentation for compositions: exact draws of alpha together with a latent database.

A sweep offers new compositions to a block of records in turn (`dpmix.models.dirichlet.latent_records`), or
single ones to all records of a part (soma); moves alpha given the database by slice sampling
(`dpmix.models.dirichlet.alpha`); and, with `sampler.joint`, where that pays, moves alpha and the database
together (`dpmix.models.dirichlet.joint`).

Both are given all that was released of the records: the means and, where their threshold was chosen among
several, the scores that this was done by. The threshold follows from these, and says no more.

Given the database, alpha is known to about 1/sqrt(n); given the release, to less where there is more noise:
without joint moves it takes as many sweeps as the variances are apart, which the release tells beforehand
(`dpmix.models.dirichlet.alpha`). With them, blocks of a fraction of the records do: all that the release
tells of alpha are sums, which every move changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.models.dirichlet.alpha import (
    AlphaPrior,
    joint_pays,
    matched,
    prior_of,
    slice_alpha,
    start_alpha,
    whiten,
)
from dpmix.models.dirichlet.joint import Learnt, learn, make_learnt, make_room, move_jointly
from dpmix.models.dirichlet.latent_records import (
    CensoredLogs,
    Scores,
    count_levels,
    draw_logs,
    make_shapes,
    scores_without,
    set_shapes,
    sweep_logs,
    sweep_offers,
)
from dpmix.models.dirichlet.model import Composition, CompositionPart, scores_of, used_parts
from dpmix.models.sum_augmentation import REFRESH, default_offers
from dpmix.numerics.jit import njit
from dpmix.run.model_protocols import ParametricChain

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]

REPEATS = 4  # slice updates of alpha given the database in a sweep
SHARE = 4  # a sweep updates one record in so many
FEWEST = 64  # but so many at least


class Compositions(NamedTuple):
    """What is known.

    released (parts, d): noisy sums of log max(x, a); rate (parts,): 1 over the scale of the noise on these;
    starts (parts + 1,): the first record of each part, and n; floor: log a; the prior; and the scores of
    thresholds, of the records of all parts together.
    """

    released: Any
    rate: Any
    starts: Any
    floor: float
    prior: AlphaPrior
    scores: Scores


class SweepPlan(NamedTuple):
    """What a sweep does: block (parts,), how many records it updates, or offers it makes; soma; joint."""

    block: Any
    soma: bool
    joint: bool


def known_of(parts: list[CompositionPart], prior: AlphaPrior, scores: Scores) -> Compositions:
    """Return parts of records, prior and scores as compiled functions take them."""
    return Compositions(
        np.array([part.released * part.size for part in parts]),
        np.array([1.0 / (part.scale * part.size) for part in parts]),
        np.cumsum([0, *(part.size for part in parts)]),
        math.log(parts[0].threshold),
        prior,
        scores,
    )


def build(spec: RunSpec, release: Release) -> Augmented:
    """Return the model of a spec given a release; see `dpmix.api.task.build`."""
    parts = used_parts(spec, release)
    offers = None
    if spec.sampler.algorithm == "soma":
        offers = spec.sampler.offers or 0
    prior = prior_of(spec, release)
    # single offers move so little, for so long, that a joint move beside them always pays
    scores = scores_of(release, sum(part.size for part in parts))
    joint = spec.sampler.joint and (offers is not None or joint_pays(parts, prior, scores))
    return Augmented(release, parts, prior, offers, joint)


class Augmented(Composition):
    """Compositions given noisy log moments, by data augmentation.

    Parameters
    ----------
    release : Release
    parts : list of Part
        Those that the likelihood is of.
    prior : AlphaPrior
    offers : int or None
        Offers of one record to all in a sweep (0: as many as records, up to a million weights); None offers
        records one of their own each.
    joint : bool
        Whether alpha and the database are also moved together.
    """

    def __init__(
        self,
        release: Release,
        parts: list[CompositionPart],
        prior: AlphaPrior,
        offers: int | None,
        joint: bool,
    ) -> None:
        scores = scores_of(release, sum(part.size for part in parts))
        super().__init__(release, {"joint_moves": joint}, scores)
        self.parts, self.prior = parts, prior
        self.law = known_of(parts, prior, scores)
        sizes = np.array([part.size for part in parts])
        if offers is None:
            block = np.maximum(-(-sizes // SHARE), np.minimum(sizes, FEWEST))
        else:
            whole = offers or default_offers(int(sizes.sum()))
            block = np.maximum(1, np.rint(whole * sizes / sizes.sum()).astype(np.int64))
        self.plan = SweepPlan(block, offers is not None, joint)
        if release.epsilon is not None and not release.delta:
            self.acceptance_bound = math.exp(-release.epsilon)

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> AugmentedDirichlet:
        """Return a chain at a start drawn about the release."""
        return AugmentedDirichlet(self, rng)


class AugmentedDirichlet(ParametricChain):
    """A chain over alpha and a latent database."""

    model: Augmented

    def __init__(self, model: Augmented, rng: Generator) -> None:
        law = model.law
        d, n = law.released.shape[1], int(law.starts[-1])
        shapes = make_shapes(d)
        shapes.alpha[:], means = start_alpha(rng, model.parts)
        set_shapes(shapes)
        records = np.empty((d, n))
        draw_logs(rng, shapes, records, n)
        for part, mean in enumerate(means):
            own = records[:, law.starts[part] : law.starts[part + 1]]
            own[:] = matched(own, mean, law.floor)
        root = np.empty((d, d))
        whiten(shapes.alpha, n, model.prior, root)
        self.shapes, self.records = shapes, records
        self.sums = np.zeros((len(model.parts), d + len(law.scores.noisy)))
        self.learnt = make_learnt(shapes.alpha, root)
        self.root = root
        self.place = np.zeros(1 + len(model.parts), dtype=np.int64)  # sweeps done; next records of parts
        self._spare = make_room(n, d)
        state = {
            "alpha": shapes.alpha,
            "records": records,
            "sums": self.sums,
            "root": root,
            "place": self.place,
        }
        state |= {f"learnt_{name}": getattr(self.learnt, name) for name in Learnt._fields}
        super().__init__(model, rng, state)

    def sweep(self, count: int) -> None:
        """Sweep over records and alpha; the moves of alpha learn in burn-in alone."""
        self._run(self.burning_in, 1, count, np.zeros((0, 3, len(self.shapes.alpha))), np.zeros(0))

    def sweep_and_save(self, draws: int, thin: int, first: int, out: Mapping[str, Floats]) -> None:
        """Sweep, and save alpha and a record each, in one call."""
        rows = slice(first, first + draws)
        saved = np.zeros((draws, 3, len(self.shapes.alpha)))
        self._run(False, draws, thin, saved, out["acceptance_rate"][rows])
        self.model.write_draws(rows, out, saved)

    def _run(self, learning: bool, draws: int, thin: int, saved: Floats, rates: Floats) -> None:
        state = (self.shapes, self.records, self.sums, self.learnt, self.root, self.place, self._spare)
        known = (self.model.law, self.model.plan, self.rng)
        run_sweeps(*known, state, self.moves, learning, draws, thin, saved, rates)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write alpha, and draw a record."""
        saved = np.zeros((1, 3, len(self.shapes.alpha)))
        save(self.rng, self.shapes, saved[0])
        self.model.write_draws(slice(row, row + 1), out, saved)


@njit
def _part(law, part, sums):
    """Return what is known of one part, given the sums of the others."""
    return CensoredLogs(law.released[part], law.rate[part], law.floor, scores_without(law.scores, sums, part))


@njit
def _update_block(law, plan, part, rng, shapes, records, sums, place, moves):
    """Update the next records of a part, around its end."""
    known = _part(law, part, sums)
    first, last = law.starts[part], law.starts[part + 1]
    if plan.soma:
        sweep_offers(known, rng, shapes, records[:, first:last], sums[part], moves, plan.block[part])
        return
    start = first + place[1 + part]
    stop = start + plan.block[part]
    sweep_logs(known, rng, shapes, records[:, start : min(stop, last)], sums[part], moves)
    if stop > last:
        stop = first + stop - last
        sweep_logs(known, rng, shapes, records[:, first:stop], sums[part], moves)
    place[1 + part] = stop - first


@njit
def sum_up(law, records, sums):
    """Take the sums (d + M,) of records (d, n) from scratch."""
    for j in range(len(records)):
        total = 0.0
        for i in range(records.shape[1]):
            total += max(records[j, i], law.floor)
        sums[j] = total
    count_levels(law.scores, records, sums)


@njit
def save(rng, shapes, saved):
    """Write alpha, E[x | alpha] and a record drawn given alpha to `saved` (3, d)."""
    d = len(shapes.alpha)
    logs, whole = np.empty((d, 1)), 0.0
    draw_logs(rng, shapes, logs, logs.shape[1])
    for j in range(d):
        whole += shapes.alpha[j]
    for j in range(d):
        saved[0, j] = shapes.alpha[j]
        saved[1, j] = shapes.alpha[j] / whole
        saved[2, j] = math.exp(logs[j, 0])


@njit
def run_sweeps(law, plan, rng, state, moves, learning, draws, thin, saved, rates):
    """Do `draws` times `thin` sweeps; write what is saved after each to saved (draws, 3, d) by `save`.

    Where saved is empty nothing is, and rates (draws,), of acceptance, are not set.
    """
    shapes, records, sums, learnt, root, place, room = state
    d, n = records.shape
    totals = np.empty(d)
    set_shapes(shapes)
    for row in range(draws):
        for _ in range(thin):
            if place[0] % REFRESH == 0:
                for part in range(len(sums)):
                    sum_up(law, records[:, law.starts[part] : law.starts[part + 1]], sums[part])
            place[0] += 1
            for part in range(len(sums)):
                _update_block(law, plan, part, rng, shapes, records, sums, place, moves)
            for j in range(d):
                totals[j] = records[j].sum()
            slice_alpha(rng, shapes.alpha, n, totals, law.prior, root, REPEATS)
            if plan.joint:
                move_jointly(rng, law, learnt, room, shapes.alpha, records, sums)
            set_shapes(shapes)
            if learning:
                learn(learnt, shapes.alpha)
                whiten(np.exp(learnt.centre), n, law.prior, root)
        if len(saved) > 0:
            rates[row] = moves[0] / moves[1]
            moves[:] = 0.0
            save(rng, shapes, saved[row])
