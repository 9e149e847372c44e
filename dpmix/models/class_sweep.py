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
    RELEASED,
    ClassCounts,
    draw_probabilities,
    entry,
    weigh_cell,
)
from dpmix.models.class_moves import sweep_class_counts
from dpmix.models.streams import fill_uniforms, make_words, seed

__all__ = ["ClassRoom", "make_class_room", "run_class_sweeps", "run_count_sweeps", "sweep_classes"]

BLOCK = 64  # records whose uniforms are drawn at once
MOST_EXACT = 1e12  # differences beyond have no digits left to count in


class ClassRoom(NamedTuple):
    """Scratch: words (4,) of the stream, uniforms (BLOCK (K + 1),), rest (cells,) released less counted."""

    words: Any
    uniforms: Any
    rest: Any


def make_class_room(model: ClassCounts) -> ClassRoom:
    """Return scratch."""
    return ClassRoom(make_words(), np.zeros(BLOCK * (len(model.levels) + 1)), np.zeros(len(model.released)))


@njit
def sweep_classes(model, rng, theta, records, tally, room, offer, moves):
    """Offer every record a new one; add to `moves` (accepted, made). `offer` (K + 1,) is scratch."""
    features, classes, cells = len(model.levels), model.classes, tally.cells
    alias, levels, start = theta.alias, model.levels, model.start
    rest, uniforms, rate = room.rest, room.uniforms, model.rate
    farthest = 0.0
    for c in range(len(rest)):
        rest[c] = cells[c, RELEASED] - cells[c, COUNT]
        farthest = max(farthest, abs(rest[c]))
    seed(rng, room.words)
    left = rng.standard_exponential()
    accepted = 0
    at = len(uniforms)
    for i in range(len(records)):
        if at == len(uniforms):
            rows = min(BLOCK, len(records) - i)
            at = len(uniforms) - rows * (features + 1)
            fill_uniforms(room.words, uniforms[at:], rows * (features + 1))
        group = entry(alias, 0, classes, uniforms[at])
        further = 0.0
        for k in range(features):
            width = levels[k]
            first = start[k] + group * width
            here = first + entry(alias, classes + first, width, uniforms[at + 1 + k])
            away = records[i, k]
            offer[k] = here
            more, less = rest[here], rest[away]
            change = (abs(more - 1.0) - abs(more)) + (abs(less + 1.0) - abs(less))
            further += change if here != away else 0.0
        at += features + 1
        further = max(further * rate, 0.0)
        if left > further:  # see `dpmix.models.augmentation.sweep_records`
            left -= further
        else:
            left = rng.standard_exponential()
            continue
        accepted += 1
        for k in range(features):
            away, here = records[i, k], offer[k]
            rest[away] += 1.0
            rest[here] -= 1.0
            records[i, k] = here
        records[i, features] = group
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
                sweep_classes(model, rng, theta, records, tally, room, offer, moves)
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
