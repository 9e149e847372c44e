"""Draws whose probabilities are exact: rational numbers compared with random bits, as many as it takes.

Floating-point uniform draws leave out values and round probabilities, which a guarantee must not rest on.
Random bytes come from a source: `os.urandom` for releases, a seeded generator's `bytes` for simulations.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

Source = Callable[[int], bytes]
Ratio = tuple[int, int]
"""Numerator and positive denominator, not necessarily in lowest terms."""

_BITS = 16  # of the first comparison: one in 2^16 trials needs more
_CHUNK = 1 << 22


def source_of(rng: np.random.Generator | None) -> Source:
    """Return where random bytes come from: the operating system, or for simulations a seeded generator."""
    return os.urandom if rng is None else rng.bytes


def generator_from(source: Source) -> np.random.Generator:
    """Return a generator for what follows from private or public values alone, seeded by a source."""
    return np.random.default_rng(int.from_bytes(source(32), "little"))


def binomial(probabilities: Sequence[Ratio], trials: int, source: Source) -> NDArray[np.int64]:
    """Draw the number of successes in independent trials, exactly, for each probability from 0 to 1.

    A trial compares the binary digits of a uniform number, drawn as needed, with those of the probability.
    """
    heads = np.array([(top << _BITS) // bottom for top, bottom in probabilities], dtype=np.uint32)
    found = np.empty(len(probabilities), dtype=np.int64)
    step = max(1, _CHUNK // trials)
    for start in range(0, len(probabilities), step):
        head = heads[start : start + step, None]
        drawn = np.frombuffer(source(2 * head.size * trials), dtype=np.uint16).reshape(head.size, trials)
        counts = (drawn < head).sum(axis=1, dtype=np.int64)
        for row in np.nonzero(drawn == head)[0]:
            top, bottom = probabilities[start + int(row)]
            counts[row] += _below((top << _BITS) % bottom, bottom, source)
        found[start : start + step] = counts
    return found


def bernoulli(probability: Ratio, count: int, source: Source) -> NDArray[np.bool_]:
    """Draw independent successes of one probability, exactly; see `binomial`."""
    top, bottom = probability
    drawn = np.frombuffer(source(2 * count), dtype=np.uint16)
    head = (top << _BITS) // bottom
    found = drawn < head
    for place in np.nonzero(drawn == head)[0]:
        found[place] = _below((top << _BITS) % bottom, bottom, source)
    return np.asarray(found)


def _below(top: int, bottom: int, source: Source) -> bool:
    """Whether a uniform number is below top/bottom."""
    while top:
        head, top = divmod(top << 64, bottom)
        drawn = int.from_bytes(source(8), "little")
        if drawn != head:
            return drawn < head
    return False


def integers(bound: int, count: int, source: Source) -> NDArray[np.int64]:
    """Draw independent integers 0, .., bound - 1 <= 2^62 - 1, each equally likely, by rejection."""
    mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
    found = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        drawn = np.frombuffer(source(8 * (count - done)), dtype=np.uint64) & mask
        kept = drawn[drawn < bound]
        found[done : done + kept.size] = kept
        done += kept.size
    return found


def below(bound: int, source: Source) -> int:
    """Draw one integer 0, .., bound - 1 of any size, each equally likely, by rejection."""
    bits = (bound - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        drawn = int.from_bytes(source(size), "little") >> (8 * size - bits)
        if drawn < bound:
            return drawn


def digits(precision: int = 120) -> Context:
    """Return the decimal arithmetic that weights and guarantees are computed in."""
    return Context(prec=precision, Emax=MAX_EMAX, Emin=MIN_EMIN)


def round_up(value: Decimal) -> float:
    """Return the smallest double that is not below a positive number known to 100 digits."""
    with localcontext(digits()):
        bound = value * (1 + Decimal(10) ** -100)
        nearest = float(bound)
        return nearest if Decimal(nearest) >= bound else math.nextafter(nearest, math.inf)


def round_down(value: Decimal) -> float:
    """Return the largest double that is not above a positive number known to 100 digits."""
    with localcontext(digits()):
        bound = value * (1 - Decimal(10) ** -100)
        nearest = float(bound)
        return nearest if Decimal(nearest) <= bound else math.nextafter(nearest, -math.inf)


def log1p(value: Decimal) -> Decimal:
    """Return log(1 + value) of a positive number, to about 100 digits or, below 1e-15, from above."""
    with localcontext(digits()):
        if value < Decimal("1e-15"):  # the series alternates, so that it ends above; the error is below x^8
            return sum((-((-value) ** k) / k for k in range(1, 8)), Decimal(0))
        return (1 + value).ln()


def expm1(value: Decimal) -> Decimal:
    """Return exp(value) - 1 of a positive number, to about 100 digits or, below 1e-15, from below."""
    with localcontext(digits()):
        if value < Decimal("1e-15"):
            return sum((value**k / math.factorial(k) for k in range(1, 8)), Decimal(0))
        return value.exp() - 1
