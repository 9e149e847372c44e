"""Naive Bayes classes and features given noisy counts of every feature's levels within every class.

`data_augmentation` moves the counts themselves, with all probabilities integrated out, or, where
`latent: metropolis` is asked for, latent records by proposals from the model, as `soma` does
(`dpmix.models.naive_bayes.latent_records`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.laws.additive import WHOLE
from dpmix.laws.every import expect
from dpmix.mechanisms.noisy_counts.law import NoisyCountsLaw
from dpmix.models.latent_groups import parameters_of_groups
from dpmix.models.naive_bayes.latent_records import (
    COUNT,
    FEW,
    KEEP,
    RELEASED,
    ClassCounts,
    draw_probabilities,
    entry,
    make_cell_tally,
    make_class_counts,
    make_probabilities,
    make_tables,
    set_alias,
    start_counts,
    sweep_class_counts,
    weigh_cell,
)
from dpmix.models.naive_bayes.responses import BayesResponses, parameters_of
from dpmix.models.naive_bayes.section import NaiveBayesModel
from dpmix.models.sum_augmentation import (
    AugmentedChain,
    default_offers,
    draw_records,
    offer_to_all,
    recount,
    save,
    sweep,
    sweep_bounded_offers,
)
from dpmix.numerics.jit import njit
from dpmix.numerics.streams import fill_uniforms, make_words, seed
from dpmix.run.model_protocols import GROUP, Parameter, ParametricChain, ParametricModel

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

# The sweep over latent records of naive Bayes, and sweeps whose draws are saved within compiled code.
#
# As `dpmix.models.sum_augmentation.sweep_records`, with random numbers by the block, and of each cell the
# released count less the records in it alone: what an offer changes is then two absolute values a cell.

BLOCK = 64  # records whose offers are drawn at once
MOST_EXACT = 1e12  # differences beyond have no digits left to count in


class ClassRoom(NamedTuple):
    """Scratch: words (4,) of the stream, uniforms (BLOCK,), rest (cells,) released less counted.

    offers ((K + 1) BLOCK,): what is offered to each record of a block, its cell in every feature one feature
    after the other, and then its class.
    """

    words: Any
    uniforms: Any
    rest: Any
    offers: Any


def _make_class_room(model: ClassCounts) -> ClassRoom:
    """Return scratch."""
    rows = len(model.levels) + 1
    room = np.zeros(BLOCK), np.zeros(len(model.released)), np.zeros(rows * BLOCK, dtype=np.int32)
    return ClassRoom(make_words(), *room)


@njit
def _offer(model, theta, room, count):
    """Draw the offers of the first `count` records of a block."""
    features, classes = len(model.levels), model.classes
    alias, uniforms = theta.alias, room.uniforms
    groups = room.offers[features * BLOCK :]
    fill_uniforms(room.words, uniforms, count)
    for b in range(count):
        groups[b] = entry(alias, 0, classes, uniforms[b])
    for k in range(features):
        width, first = model.levels[k], model.start[k]
        here = room.offers[k * BLOCK :]
        fill_uniforms(room.words, uniforms, count)
        if width > FEW:
            for b in range(count):
                at = first + groups[b] * width
                here[b] = at + entry(alias, classes + at, width, uniforms[b])
            continue
        for b in range(count):
            here[b] = first + groups[b] * width
        for j in range(width - 1):  # as `entry`, level by level
            for b in range(count):
                at = classes + first + groups[b] * width + j
                here[b] += int(uniforms[b] >= alias[at, KEEP])


@njit
def _accept(model, rng, room, records, count, left):
    """Put what is accepted in the place of `records`; return how many, and what is left of E."""
    features = len(model.levels)
    rest, offers, rate = room.rest, room.offers, model.rate
    accepted = 0
    for b in range(count):
        further = 0.0
        for k in range(features):
            here, away = offers[k * BLOCK + b], records[b, k]
            more, less = rest[here], rest[away]
            if model.power == 1:
                change = (abs(more - 1.0) - abs(more)) + (abs(less + 1.0) - abs(less))
            else:
                change = (less - more + 1.0) * rate  # times rate below
            further += change if here != away else 0.0
        further = max(further * rate, 0.0)
        if left > further:  # see `dpmix.models.sum_augmentation.sweep_records`
            left -= further
        else:
            left = rng.standard_exponential()
            continue
        accepted += 1
        for k in range(features):
            here, away = offers[k * BLOCK + b], records[b, k]
            rest[away] += 1.0
            rest[here] -= 1.0
            records[b, k] = here
        records[b, features] = offers[features * BLOCK + b]
    return accepted, left


@sweep.register
def _sweep(model: ClassCounts, rng, theta, records, tally, room, moves):
    rest, cells = room.rest, tally.cells
    farthest = 0.0
    for c in range(len(rest)):
        rest[c] = cells[c, RELEASED] - cells[c, COUNT]
        farthest = max(farthest, abs(rest[c]))
    seed(rng, room.words)
    left = rng.standard_exponential()
    accepted = 0
    for first in range(0, len(records), BLOCK):
        part = records[first : first + BLOCK]
        _offer(model, theta, room, len(part))
        more, left = _accept(model, rng, room, part, len(part), left)
        accepted += more
    if farthest < MOST_EXACT:
        for c in range(len(rest)):
            cells[c, COUNT] = math.floor(cells[c, RELEASED] - rest[c] + 0.5)
            weigh_cell(model, cells, c)
    else:
        recount(model, records, tally)
    moves[0] += accepted
    moves[1] += len(records)


@offer_to_all.register
def _offer_to_all(model: ClassCounts, rng, theta, records, tally, offer, weights, moves, offers):
    bound = 2.0 * len(model.levels) * model.rate
    sweep_bounded_offers(model, rng, theta, records, tally, offer, weights, moves, offers, bound)


@save.register
def _save(model: ClassCounts, rng, theta, saved):
    """Write probabilities of classes (I,), then of levels (cells,)."""
    saved[: len(theta.classes)] = theta.classes
    saved[len(theta.classes) :] = theta.levels


@njit
def _run_count_sweeps(model, tables, rng, counts, draws, thin, saved):
    """Sweep the counts `thin` times, and save probabilities drawn given them; `draws` times."""
    for draw in range(draws):
        sweep_class_counts(model, tables, rng, counts, thin)
        draw_probabilities(model, rng, counts, saved[draw, : model.classes], saved[draw, model.classes :])


Floats = NDArray[np.float64]


def build(spec: RunSpec, release: Release) -> NaiveBayes | BayesResponses:
    """Return the model of a spec given a release; see `dpmix.api.task.build`."""
    assert isinstance(spec.model, NaiveBayesModel)  # the registry looks
    if release.mechanism.released == "categories":
        if spec.sampler.algorithm == "soma" or spec.sampler.latent == "metropolis":
            key = "kind: soma" if spec.sampler.algorithm == "soma" else "latent: metropolis"
            raise SpecError(
                f"sampler.{key} is for noisy counts; given randomized responses numbers of records move, use "
                "data_augmentation with latent: exact"
            )
        return BayesResponses(release, spec.model.prior)
    law, released = expect(release.mechanism, NoisyCountsLaw), release.values[:, 0]
    if law.noise in WHOLE and (released != np.floor(released)).any():
        place = int(np.argmax(released != np.floor(released)))
        noise = law.noise.replace("_", " ")
        raise DataError(
            f"the released counts are no whole numbers, as {noise} noise gives: number {place + 1} is "
            f"{released[place]:g}"
        )
    offers = None
    if spec.sampler.algorithm == "soma":
        if law.power != 1:
            raise SpecError(
                "sampler.kind: soma needs noise that bounds the ratio of two records, and discrete Gaussian "
                "noise does not; use data_augmentation"
            )
        bound = 2.0 * len(law.levels) / law.scale[0]
        offers = spec.sampler.offers or default_offers(release.n, bound)
    elif spec.sampler.latent == "metropolis":
        offers = 0
    return NaiveBayes(release, spec.model.prior, offers)


class NaiveBayes(ParametricModel):
    """Naive Bayes given noisy counts.

    Parameters
    ----------
    release : Release
    prior : float
        Parameter of the symmetric Dirichlet priors of p and of each p_i^k.
    offers : int or None
        Offers of one record to all in a sweep; 0 offers each record its own; None moves counts instead.
    """

    kind = "naive_bayes"

    def __init__(self, release: Release, prior: float, offers: int | None) -> None:
        law = expect(release.mechanism, NoisyCountsLaw)
        self.levels, self.groups = law.levels, law.group_names
        classes = max(1, len(self.groups)) * law.classes
        self.n, self.offers = release.n, offers
        self.law = make_class_counts(
            release.values[:, 0], self.levels, classes, law.scale[0], prior, law.power
        )
        self.tables = make_tables(self.law, release.n) if offers is None else None
        self.parameters, self.coords = _parameters(law)
        self.constants = {"n": release.n, "prior": prior}
        if law.power == 1 and offers is not None and release.epsilon is not None and not release.delta:
            self.acceptance_bound = math.exp(-release.epsilon)

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> ParametricChain:
        """Return a chain at its start."""
        return ClassCountsChain(self, rng) if self.offers is None else RecordsChain(self, rng)

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw p and each p_i^k from their Dirichlet distributions."""
        classes, prior = self.law.classes, float(self.constants["prior"])
        parts = [rng.dirichlet(np.full(classes, prior), draws)]
        parts += [
            rng.dirichlet(np.full(count, prior), (draws, classes)).reshape(draws, -1) for count in self.levels
        ]
        out = {p.name: np.full((draws, *self.shape(p)), np.nan) for p in self.parameters}
        self.write(slice(0, draws), out, np.concatenate(parts, axis=1))
        return {name: values for name, values in out.items() if not np.isnan(values).any()}

    def write(self, rows: slice, out: Mapping[str, Floats], saved: Floats) -> None:
        """Write probabilities (draws, I + cells), of classes and then of levels, to places of the draws."""
        classes, start = self.law.classes, self.law.start
        p = saved[:, :classes]
        if self.groups:
            joint = p.reshape(len(saved), len(self.groups), -1)
            share = joint.sum(axis=2)
            out["group_share"][rows] = share
            # a share that underflows says nothing of its classes
            p = joint / np.where(share > 0.0, share, 1.0)[:, :, None]
        out["p"][rows] = p
        for k, count in enumerate(self.levels):
            part = saved[:, classes + start[k] : classes + start[k + 1]]
            found = out[f"p_feature_{k + 1}"]
            found[rows] = part.reshape(len(saved), *found.shape[1:-1], count)

    def write_sizes(self, row: int, out: Mapping[str, Floats], counts: NDArray[Any]) -> None:
        """Write the sizes of the groups, of the counts of all cells, where there are groups."""
        if self.groups:
            first = counts[: self.law.start[1]]  # of the first feature, which counts every record once
            out["group_size"][row] = first.reshape(len(self.groups), -1).sum(axis=1)


def _parameters(law: NoisyCountsLaw) -> tuple[tuple[Parameter, ...], dict[str, NDArray[Any]]]:
    """Return the parameters with their coordinates: categories where the release tells them, else 1, 2, ..

    Of groups, p is that of the classes within each.
    """
    sizes, groups = (*law.levels, law.classes), law.group_names
    names = law.columns if len(law.columns) == len(sizes) else ("",) * len(sizes)
    labels = [(law.categories or {}).get(name, ()) for name in names]
    places = [
        np.array(own) if len(own) == size else np.arange(1, size + 1)
        for own, size in zip(labels, sizes, strict=True)
    ]
    if not groups:
        return parameters_of(places, names)
    found, coords = parameters_of(places, names, (GROUP,))
    return (*found, *parameters_of_groups()), {GROUP: np.array(groups), **coords}


class ClassCountsChain(ParametricChain):
    """A chain over the counts of all cells, probabilities integrated out and drawn for each saved state."""

    model: NaiveBayes

    def __init__(self, model: NaiveBayes, rng: Generator) -> None:
        counts = start_counts(rng, model.levels, model.law.classes, model.n)
        super().__init__(model, rng, {"counts": counts})

    def sweep(self, count: int) -> None:
        """Move records between cells."""
        sweep_class_counts(self.model.law, self.model.tables, self.rng, self.state["counts"], count)

    def sweep_and_save(self, draws: int, thin: int, first: int, out: Mapping[str, Floats]) -> None:
        """Sweep, and draw the probabilities, in one call; of groups in one each, for the sizes in between."""
        if self.model.groups:
            super().sweep_and_save(draws, thin, first, out)
            return
        saved, counts = self._saved_room(draws), self.state["counts"]
        _run_count_sweeps(self.model.law, self.model.tables, self.rng, counts, draws, thin, saved)
        self.model.write(slice(first, first + draws), out, saved)
        out["acceptance_rate"][first : first + draws] = self.acceptance_rate

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw the probabilities given the counts."""
        saved, classes = self._saved_room(1), self.model.law.classes
        draw_probabilities(
            self.model.law, self.rng, self.state["counts"], saved[0, :classes], saved[0, classes:]
        )
        self.model.write(slice(row, row + 1), out, saved)
        self.model.write_sizes(row, out, self.state["counts"])

    def _saved_room(self, draws: int) -> Floats:
        return np.empty((draws, self.model.law.classes + len(self.state["counts"])))


class RecordsChain(AugmentedChain):
    """A chain over latent records and the probabilities."""

    model: NaiveBayes

    def __init__(self, model: NaiveBayes, rng: Generator) -> None:
        law: ClassCounts = model.law
        theta = make_probabilities(law)
        draw_probabilities(law, rng, np.zeros(len(law.released)), theta.classes, theta.levels)
        set_alias(law, theta)
        records = np.zeros((model.n, len(model.levels) + 1), dtype=np.int32)
        draw_records(law, rng, theta, records)
        assert model.offers is not None  # the model looks
        room = _make_class_room(law)
        super().__init__(model, rng, law, theta, records, make_cell_tally(law), model.offers, room)

    def sweep_and_save(self, draws: int, thin: int, first: int, out: Mapping[str, Floats]) -> None:
        """Sweep, and save the probabilities, in one call; of groups in one each, for the sizes in between."""
        if self.model.groups:
            super().sweep_and_save(draws, thin, first, out)
            return
        saved = np.empty((draws, len(self.theta.classes) + len(self.theta.levels)))
        self.run_sweeps(draws, thin, saved, out["acceptance_rate"][first : first + draws])
        self.model.write(slice(first, first + draws), out, saved)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write the probabilities."""
        saved = np.concatenate([self.theta.classes, self.theta.levels])[None]
        self.model.write(slice(row, row + 1), out, saved)
        self.model.write_sizes(row, out, self.tally.cells[:, COUNT])
