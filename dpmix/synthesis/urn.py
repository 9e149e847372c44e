"""Exact draws from the predictive of a Pitman-Yor process or a Dirichlet-multinomial, in whole numbers.

Every step takes one whole number, uniform below the total weight of the urn by rejection, and looks up what
it points at: O(1) a draw whatever the number of distinct values, and no probability is ever rounded.
Concentration and discount are fractions; with L their common denominator,

* each of the n + i records in the urn has L slots. Of the record that brought its value first, the lowest
  d L slots mean a new value, so that a value of count n_j keeps n_j - d, and the k values give up k d;
* theta L further slots mean a new value; a negative theta takes |theta| L slots off the first record's;
* of a Dirichlet-multinomial, each of the K categories has a L further slots.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.jit import njit
from dpmix.privacy.exact import Source

__all__ = ["Drawn", "draw_categories", "draw_urn", "numbers_a_draw"]

Ints = NDArray[np.int64]
_LIMIT = 2**62
_WORDS = 1 << 20


class Drawn(NamedTuple):
    """Draws from an urn.

    Parameters
    ----------
    source : ndarray of int64, shape (m,)
        For each draw the record 0, .., n - 1 whose value it repeats, or n + g for the g-th new value.
    new : int
        Number of new values.
    """

    source: Ints
    new: int


def numbers_a_draw(records: int, unit: int) -> int:
    """Return how many numbers a draw takes as long as: urns of large weights take Python's integers.

    Parameters
    ----------
    records : int
        In the urn at the end.
    unit : int
        Slots of each.
    """
    return 1 if records * unit < 2**58 else 50


def draw_urn(
    n: int, first: NDArray[np.bool_], concentration: Fraction, discount: Fraction, draws: int, source: Source
) -> Drawn:
    """Draw from the predictive of PY(discount, concentration) given n records.

    Parameters
    ----------
    n : int
        Number of records.
    first : ndarray of bool, shape (n,)
        Whether a record is the one that stands for its value: one of each value, the first record among
        them. Of no account at discount 0.
    concentration, discount : Fraction
        0 <= discount < 1, concentration > -discount.
    draws : int
        Number of draws m.
    source : callable
        Gives this many random bytes.

    Raises
    ------
    ValueError
        When the parameters are out of range.
    """
    if not 0 <= discount < 1 or not concentration > -discount or n < 1 or not first[0]:
        raise ValueError("an urn needs records, 0 <= discount < 1 and concentration > -discount")
    unit = math.lcm(concentration.denominator, discount.denominator)
    extra, off = int(concentration * unit), int(discount * unit)
    found = _draw(n, np.ascontiguousarray(first), unit, extra, off, 0, draws, source)
    return Drawn(found, int(max(0, found.max() - n + 1)))


def draw_categories(
    cells: Ints, categories: int, concentration: Fraction, draws: int, source: Source
) -> Ints:
    """Draw from the predictive of a Dirichlet-multinomial.

    Parameters
    ----------
    cells : ndarray of int64, shape (n,)
        Category of each record.
    categories : int
        Number of categories K.
    concentration : Fraction
        Prior count a > 0 of each category.
    draws : int
        Number of draws m.
    source : callable
        Gives this many random bytes.

    Returns
    -------
    ndarray of int64, shape (m,)
        Categories.

    Raises
    ------
    ValueError
        When the concentration is not positive.
    """
    if not concentration > 0 or categories < 1:
        raise ValueError("a Dirichlet-multinomial needs a positive concentration and categories")
    n, unit = len(cells), concentration.denominator
    each = concentration.numerator
    none = np.zeros(n, dtype=np.bool_)
    found = _draw(n, none, unit, each * categories, 0, each, draws, source)
    old = found >= 0
    found[old] = cells[found[old]]
    found[~old] = -1 - found[~old]
    return found


def _draw(
    n: int,
    first: NDArray[np.bool_],
    unit: int,
    extra: int,
    off: int,
    each: int,
    draws: int,
    source: Source,
) -> Ints:
    """Draw by the fast way where the weights fit into 62 bits, else in Python's own integers."""
    found = np.empty(draws, dtype=np.int64)
    opened = np.zeros(draws, dtype=np.bool_)
    if (n + draws) * unit + abs(extra) >= _LIMIT:
        return _draw_big(n, first, unit, extra, off, each, found, source)
    done, new = 0, 0
    while done < draws:
        words = np.frombuffer(source(8 * min(2 * (draws - done) + 64, _WORDS)), dtype=np.uint64)
        done, new = _fill(words, n, first, unit, extra, off, each, found, opened, done, new)
    return found


@njit
def _fill(words, n, first, unit, extra, off, each, found, opened, done, new):
    """Draw until `words` are used up; return the numbers of draws and of new values so far.

    `found` holds records, n + g for new values, or -1 - j for categories; `opened` marks the draws that
    brought a value.
    """
    at = 0
    short = 0 if extra >= 0 else -extra
    while done < len(found):
        size = n + done
        total = size * unit + extra
        mask = total - 1
        for shift in (1, 2, 4, 8, 16, 32):
            mask |= mask >> shift
        while at < len(words):
            drawn = np.int64(words[at] & np.uint64(mask))
            at += 1
            if drawn < total:
                break
        else:
            return done, new
        place = drawn // unit
        rest = drawn - place * unit
        low = off
        if short > 0:  # the first record stands last, with fewer slots
            if place == size - 1:
                place = 0
                low = off - short
            else:
                place += 1
        if place >= size:
            if each > 0:
                found[done] = -1 - (drawn - size * unit) // each
            else:
                found[done] = n + new
                opened[done] = True
                new += 1
        elif place < n:
            if first[place] and rest < low:
                found[done] = n + new
                opened[done] = True
                new += 1
            else:
                found[done] = place
        elif opened[place - n] and rest < low:
            found[done] = n + new
            opened[done] = True
            new += 1
        else:
            found[done] = found[place - n]
        done += 1
    return done, new


def _draw_big(
    n: int,
    first: NDArray[np.bool_],
    unit: int,
    extra: int,
    off: int,
    each: int,
    found: Ints,
    source: Source,
) -> Ints:
    """Draw as `_fill` does, with weights of any size."""
    new, short = 0, max(0, -extra)
    opened = [False] * len(found)
    for done in range(len(found)):
        size = n + done
        drawn = _below(size * unit + extra, source)
        place, rest = divmod(drawn, unit)
        low = off
        if short:
            if place == size - 1:
                place, low = 0, off - short
            else:
                place += 1
        inside = place < size
        stands = inside and (bool(first[place]) if place < n else opened[place - n])
        if not inside and each:
            found[done] = -1 - (drawn - size * unit) // each
        elif not inside or (stands and rest < low):
            found[done] = n + new
            opened[done] = True
            new += 1
        else:
            found[done] = place if place < n else found[place - n]
    return found


def _below(bound: int, source: Source) -> int:
    """Draw a whole number 0, .., bound - 1, each equally likely, by rejection."""
    bits = (bound - 1).bit_length()
    size = max(1, (bits + 7) // 8)
    while True:
        drawn = int.from_bytes(source(size), "little") & ((1 << bits) - 1)
        if drawn < bound:
            return drawn
