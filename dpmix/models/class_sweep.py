"""The sweep over latent records of naive Bayes, and sweeps whose draws are saved within compiled code.

As `dpmix.models.augmentation.sweep_records`, with random numbers by the block, and of each cell the released
count less the records in it alone: what an offer changes is then two absolute values a cell.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix._jit import njit
from dpmix.models.augmentation import REFRESH, draw_theta, recount, sweep_bounded_offers
from dpmix.models.class_counts import (
    COUNT,
    FEW,
    KEEP,
    RELEASED,
    ClassCounts,
    draw_probabilities,
    entry,
    weigh_cell,
)
from dpmix.models.class_moves import sweep_class_counts
from dpmix.models.streams import fill_uniforms, make_words, seed

__all__ = ["ClassRoom", "make_class_room", "run_class_sweeps", "run_count_sweeps", "sweep_classes"]

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


def make_class_room(model: ClassCounts) -> ClassRoom:
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
            change = (abs(more - 1.0) - abs(more)) + (abs(less + 1.0) - abs(less))
            further += change if here != away else 0.0
        further = max(further * rate, 0.0)
        if left > further:  # see `dpmix.models.augmentation.sweep_records`
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


@njit
def sweep_classes(model, rng, theta, records, tally, room, moves):
    """Offer every record a new one; add to `moves` (accepted, made)."""
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


@njit
def run_class_sweeps(
    model, rng, theta, records, tally, room, offer, weights, moves, age, offers, draws, thin, saved, shares
):
    """Sweep `thin` times, as `dpmix.models.augmentation.run_sweeps`, and save the parameters; `draws` times.

    saved (draws, I + cells): probabilities of classes, then of levels; shares (draws,) of offers accepted.
    With rows in neither, nothing is saved.
    """
    classes, bound = len(theta.classes), 2.0 * len(model.levels) * model.rate
    for draw in range(draws):
        for _ in range(thin):
            if age[0] % REFRESH == 0:
                recount(model, records, tally)
            age[0] += 1
            if offers > 0:
                sweep_bounded_offers(model, rng, theta, records, tally, offer, weights, moves, offers, bound)
            else:
                sweep_classes(model, rng, theta, records, tally, room, moves)
            draw_theta(model, rng, theta, records, tally)
        if len(shares) > 0:
            saved[draw, :classes] = theta.classes
            saved[draw, classes:] = theta.levels
            shares[draw] = moves[0] / moves[1]
            moves[:] = 0.0


@njit
def run_count_sweeps(model, tables, rng, counts, draws, thin, saved):
    """Sweep the counts `thin` times, and save probabilities drawn given them; `draws` times."""
    for draw in range(draws):
        sweep_class_counts(model, tables, rng, counts, thin)
        draw_probabilities(model, rng, counts, saved[draw, : model.classes], saved[draw, model.classes :])
