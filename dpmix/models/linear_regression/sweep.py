"""The sweep over the records of a linear regression, by the block: what can be done at once for many is.

Offers do not depend on what became of earlier ones. So those of a block are drawn together, and how each
would change the sums, in loops over records that the compiler turns into vector instructions. What remains to
be done in order is to accept. An offer that lowers the log density by g is accepted where E > g, for E
exponential. Now g is at most h, what the absolute changes of the sums come to. Where E > h the offer is
accepted whatever g, and E - h is exponential again, for the next record; only where E <= h are the densities
looked at, and E drawn anew. That is as exact, and under much noise seldom needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmix.models.linear_regression.latent_records import (
    BLOCK,
    Moments,
    clip,
    distance,
    farthest_change,
    size_of,
)
from dpmix.models.sum_augmentation import REFRESH, draw_theta, recount, sweep_bounded_offers
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.streams import fill_normals, make_words, seed

__all__ = ["StreamRoom", "make_room", "offer_block", "run_moment_sweeps", "sweep_blocks"]


class StreamRoom(NamedTuple):
    """Scratch: words (4,) of the stream; block, rows of BLOCK numbers one after the other.

    The rows are what was offered, as records are; the clamped values that it would replace (q,); the changes
    of the sums (size,); and how far these might lower the log density.
    """

    words: Any
    block: Any


def make_room(q: int) -> StreamRoom:
    """Return scratch for q - 1 predictors and a response."""
    return StreamRoom(make_words(), np.zeros((3 * q + size_of(q) + 1) * BLOCK))


@dispatch()
def offer_block(model, values, block, count):
    """Turn normals in the first q rows into records, on the rescaled variables and clamped."""


@offer_block.register
def _offer_block(model: Moments, values, block, count):
    q = len(model.columns)
    p = q - 1
    bounds = model.bounds
    for b in range(count):
        y = values[0] + values[q] * block[p * BLOCK + b]
        for back in range(p):  # from the last, so that a normal is read before its place is taken
            i = p - 1 - back
            x = values[q + 1 + i]
            for j in range(i + 1):
                x += values[q + 1 + p + i * p + j] * block[j * BLOCK + b]
            block[i * BLOCK + b] = x
            block[(q + i) * BLOCK + b] = clip((x - bounds[i]) * bounds[q + i] - 1.0)
            y += values[i + 1] * x
        block[p * BLOCK + b] = y
        block[(q + p) * BLOCK + b] = clip((y - bounds[p]) * bounds[q + p] - 1.0)


@njit
def _change(model, block, count):
    """Set the rows of changes, and of how far they might lower the log density."""
    q = len(model.columns)
    p = q - 1
    size = q + 1 + q * (q + 1) // 2 - 1
    new, old, row = q * BLOCK, 2 * q * BLOCK, 3 * q * BLOCK
    for b in range(count):
        v, y = block[old + p * BLOCK + b], block[new + p * BLOCK + b]
        block[row + b] = v - y
        block[row + q * BLOCK + b] = v * v - y * y
        at = row + (q + 1) * BLOCK + b
        for i in range(p):
            a, x = block[old + i * BLOCK + b], block[new + i * BLOCK + b]
            block[row + (1 + i) * BLOCK + b] = a * v - x * y
            block[at + i * BLOCK] = a - x
        at += p * BLOCK
        for i in range(p):
            a, x = block[old + i * BLOCK + b], block[new + i * BLOCK + b]
            for j in range(i, p):
                block[at] = a * block[old + j * BLOCK + b] - x * block[new + j * BLOCK + b]
                at += BLOCK
    for b in range(count):
        total = 0.0
        for k in range(size):
            total += abs(block[row + k * BLOCK + b])
        block[row + size * BLOCK + b] = total * model.rate


@njit
def _accept(model, rng, block, records, sums, count, left):
    """Put what is accepted in the place of `records` (count, 2 q); return how many, and what is left of E."""
    q = len(model.columns)
    size = q + 1 + q * (q + 1) // 2 - 1
    row = 3 * q * BLOCK
    accepted = 0
    for b in range(count):
        bound = block[row + size * BLOCK + b]
        if left > bound:
            left -= bound
        else:
            before = after = 0.0
            for k in range(size):
                before += abs(sums[k])
                after += abs(sums[k] + block[row + k * BLOCK + b])
            stays = left <= (after - before) * model.rate
            left = rng.standard_exponential()
            if stays:
                continue
        accepted += 1
        for k in range(size):
            sums[k] += block[row + k * BLOCK + b]
        for j in range(2 * q):
            records[b, j] = block[j * BLOCK + b]
    return accepted, left


@njit
def sweep_blocks(model, rng, theta, records, tally, room, moves):
    """Offer every record a new one; add to `moves` (accepted, made)."""
    q = len(model.columns)
    block = room.block
    seed(rng, room.words)
    left = rng.standard_exponential()
    accepted = 0
    for first in range(0, len(records), BLOCK):
        part = records[first : first + BLOCK]
        count = len(part)
        fill_normals(room.words, block, q * BLOCK if count == BLOCK else 0)
        if count < BLOCK:
            for j in range(q):
                fill_normals(room.words, block[j * BLOCK :], count)
        for b in range(count):
            for j in range(q):
                block[(2 * q + j) * BLOCK + b] = part[b, q + j]
        offer_block(model, theta.values, block, count)
        _change(model, block, count)
        more, left = _accept(model, rng, block, part, tally.sums, count, left)
        accepted += more
    tally.level[0] = distance(tally.sums)
    moves[0] += accepted
    moves[1] += len(records)


@njit
def run_moment_sweeps(
    model, rng, theta, records, tally, room, offer, weights, moves, age, offers, draws, thin, saved, shares
):
    """Sweep `thin` times, as `models.sum_augmentation.run_sweeps`, and save the parameters; `draws` times.

    saved (draws, width): `Line.values` and then normals for predictions; shares (draws,) of offers accepted.
    With rows in neither, nothing is saved.
    """
    width, bound = len(theta.values), farthest_change(len(model.columns)) * model.rate
    for draw in range(draws):
        for _ in range(thin):
            if age[0] % REFRESH == 0:
                recount(model, records, tally)
            age[0] += 1
            if offers > 0:
                sweep_bounded_offers(model, rng, theta, records, tally, offer, weights, moves, offers, bound)
            else:
                sweep_blocks(model, rng, theta, records, tally, room, moves)
            draw_theta(model, rng, theta, records, tally)
        if len(shares) > 0:
            saved[draw, :width] = theta.values
            for j in range(width, saved.shape[1]):
                saved[draw, j] = rng.standard_normal()
            shares[draw] = moves[0] / moves[1]
            moves[:] = 0.0
