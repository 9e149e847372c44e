"""Synthetic records drawn from the predictive of a Pitman-Yor process or a Dirichlet-multinomial.

The draws are exact, in whole numbers (methods, section 5). Every step takes one whole number, uniform below
the total weight of the urn by rejection, and looks up what it points at: O(1) a draw whatever the number of
distinct values, and no probability is ever rounded. Concentration and discount are fractions; with L their
common denominator,

* each of the n + i records in the urn has L slots. Of the record that brought its value first, the lowest
  d L slots mean a new value, so that a value of count n_j keeps n_j - d, and the k values give up k d;
* theta L further slots mean a new value; a negative theta takes |theta| L slots off the first record's;
* of a Dirichlet-multinomial, each of the K categories has a L further slots.

Values that no confidential record has are drawn of a public base measure, or of a public grid, without
looking at the data, so that their randomness carries no guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpmix.columns.cells import NEW_LABEL, Cells, Column, Grid
from dpmix.columns.possible import Possible, holds
from dpmix.mechanisms.curators.mechanism import TWICE_EPSILON, Floats, Loss, Seeded
from dpmix.numerics.jit import njit
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.budget import upward
from dpmix.privacy.exact import Source, generator_from, source_of
from dpmix.spec.capabilities import counted
from dpmix.spec.fields import HistogramBase
from dpmix.spec.synthesis_section import BaseSpec, BetaOnBounds
from dpmix.synthesis.generator import Generator, Labels
from dpmix.synthesis.urn_guarantee import (
    dm_epsilon,
    global_delta,
    largest_records,
    theorem_delta,
    theorem_records,
)

if TYPE_CHECKING:
    from dpmix.synthesis.records import Records

Ints = NDArray[np.int64]

_LIMIT = 2**62  # of weights in 64 bits
_WORDS = 1 << 20  # random ones drawn at once
_TRIED = 50_000  # draws of a base measure
_MOST_STATED = 100_000_000
"""Points of a grid, which readers of the release hold; more are as good as all reals."""

# The Pitman-Yor process


@dataclass(frozen=True, kw_only=True)
class PitmanYorRecords(Generator):
    """Release m sequential draws from the predictive of PY(d, theta, P0) given the n confidential records.

    A value of count n_j is drawn with weight n_j - d, a new one with weight theta + k d, and what is drawn
    counts from then on. The urns of two neighbouring databases can be coupled so that each step differs with
    probability at most 1/(theta + n + i): the release is (0, m/(theta + n + m - 1))-DP for every discount
    0 <= d < 1, and at d = 0 no smaller delta holds. Values are republished verbatim; epsilon buys nothing.

    Parameters
    ----------
    concentration, discount : Fraction
        theta > -d and 0 <= d < 1, in whole numbers exactly as the spec writes them.
    new_values : tuple of NewValues
        Where new values of each column come from; of no account to the guarantee.
    """

    kind: ClassVar[str] = "pitman_yor"
    concentration: Fraction
    discount: Fraction
    new_values: tuple[NewValues, ...]

    @property
    def guarantee(self) -> Guarantee:
        """(0, delta), delta rounded up."""
        delta = upward(global_delta(self.n, self.concentration, self.records))
        return Guarantee(0.0, delta, None, "global")

    @property
    def numbers_a_draw(self) -> int:
        """Urns of large weights take Python's integers; see `Generator`."""
        unit = math.lcm(self.concentration.denominator, self.discount.denominator)
        return numbers_a_draw(self.n + self.records, unit)

    @property
    def uniform_share(self) -> float | None:
        """Share of new values at least: a discount adds to it what is confidential; see `Sanitizer`."""
        return max(0.0, float(self.concentration / (self.concentration + self.n)))

    @property
    def ignoring(self) -> tuple[str, str]:
        """New values; see `Sanitizer`."""
        return "new values of synthesis.base", "a smaller concentration"

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with as many records again; see `Sanitizer`."""
        return "twice the records", replace(self, records=2 * self.records)

    def own(self) -> dict[str, Any]:
        """Return discount, concentration, base measures and grids."""
        return {
            "discount": float(self.discount),
            "concentration": float(self.concentration),
            "base": [new.describe_base() for new in self.new_values],
            "snap": [
                None if new.grid is None or new.grid.count > _MOST_STATED else new.grid.describe()
                for new in self.new_values
            ],
        }

    def figures(self) -> dict[str, Any]:
        """Return numbers of records and deltas, the paper's theorem (at discount 0) beside the exact ones."""
        found: dict[str, Any] = {"records": self.records, "n": self.n}
        epsilon, delta = (
            Fraction(repr(self.requested[key])) if key in self.requested else None
            for key in ("epsilon", "delta")
        )
        if delta is not None:
            found["records_largest"] = largest_records(self.n, self.concentration, delta)
        if self.discount == 0 and epsilon is not None:
            found["delta_theorem"] = theorem_delta(self.n, self.concentration, self.records, epsilon)
            if delta is not None:
                found["records_theorem"] = theorem_records(self.n, self.concentration, epsilon, delta)
        return found

    def drawn_in_words(self) -> str:
        """Say what is drawn."""
        process = (
            f"Dirichlet process of concentration {float(self.concentration):g}"
            if self.discount == 0
            else f"Pitman-Yor process of discount {float(self.discount):g}, "
            f"concentration {float(self.concentration):g}"
        )
        return f"{counted(self.records, 'draw')} from the posterior predictive of a {process}"

    def draw(self, records: Records, rng: Seeded) -> tuple[Floats, Labels]:
        """Draw synthetic records; see `Generator`."""
        drawn = draw_urn(
            self.n,
            _firsts(records.values) if self.discount else np.ones(self.n, dtype=np.bool_),
            self.concentration,
            self.discount,
            self.records,
            source_of(rng),
        )
        free = generator_from(source_of(rng))
        drawn = self._of_possible(drawn, records)
        old = drawn.source < self.n
        made = self._new(drawn.new, free)
        values = np.empty((self.records, len(self.columns)))
        labels: list[tuple[str, ...] | None] = []
        for i, column in enumerate(self.columns):
            fresh = made[drawn.source[~old] - self.n, i]
            known = records.labels[i]
            part = np.empty(self.records)
            part[old] = records.values[drawn.source[old], i]
            if known is not None and column.free:
                part[~old] = len(known) + fresh
                part, known = _released(part, known)
            else:
                part[~old] = fresh
            values[:, i] = part
            labels.append(known)
        return values, tuple(labels)

    def _new(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw new values, shape (count, columns): of the base measure given that they are possible."""
        made = _drawn(self.new_values, count, rng)
        if self.possible is None:
            return made
        while not (kept := holds(self.possible.rules, made)).all():
            again = _drawn(self.new_values, int((~kept).sum()), rng)
            for i, column in enumerate(self.columns):
                if column.free:  # each new label is its own
                    again[:, i] = made[~kept, i]
            made[~kept] = again
        return made

    def _of_possible(self, drawn: Drawn, records: Records) -> Drawn:
        """Put a new value in the place of each value drawn that is not possible, the same for all its copies.

        It is computed from the values drawn and nothing else, so that the guarantee is that of the urn.
        """
        if self.possible is None:
            return drawn
        source = drawn.source.copy()
        old = np.flatnonzero(source < self.n)
        rows = records.values[source[old]]
        wrong = ~holds(self.possible.rules, rows)
        if not wrong.any():
            return drawn
        places = np.unique(rows[wrong], axis=0, return_inverse=True)[1].ravel()
        source[old[wrong]] = self.n + drawn.new + places
        return Drawn(source, drawn.new + int(places.max()) + 1)


def distinct_counts(values: Floats) -> NDArray[np.int64]:
    """Return the number of records of each distinct value, shape (k,)."""
    rows = values[:, 0] if values.shape[1] == 1 else values
    return np.asarray(np.unique(rows, axis=0, return_counts=True)[1], dtype=np.int64)


def _firsts(values: Floats) -> NDArray[np.bool_]:
    """Mark one record of each distinct value, the first among them; shape (n,)."""
    rows = values[:, 0] if values.shape[1] == 1 else values
    found = np.zeros(len(values), dtype=np.bool_)
    found[np.unique(rows, axis=0, return_index=True)[1]] = True
    return found


def _released(codes: Floats, known: tuple[str, ...]) -> tuple[Floats, tuple[str, ...]]:
    """Return codes and names of the released labels, numbered by first appearance."""
    kept, first, places = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    released = kept[order].astype(np.int64)
    taken = {known[code] for code in released if code < len(known)}  # released anyway
    names: list[str] = []
    fresh = 0
    for code in released:
        if code < len(known):
            names.append(known[code])
            continue
        fresh += 1
        while f"{NEW_LABEL}{fresh}" in taken:
            fresh += 1
        names.append(f"{NEW_LABEL}{fresh}")
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    return rank[places], tuple(names)


# The Dirichlet-multinomial over public cells


@dataclass(frozen=True, kw_only=True)
class DirichletMultinomial(Generator):
    """Release m sequential draws of cells, cell j with weight n_j + a, a number uniform within its cell.

    It is the Pitman-Yor predictive of discount -a and concentration K a over K categories. The release is
    eps-DP with eps = log(1 + m/a), attained by m releases of a cell that only the replaced record is in.

    Where ranges leave J' of the cells possible, it is the urn given that all draws are possible: that of the
    N records in these cells alone. A record that leaves them changes a probability by the factor of its own
    cell, 1 + m/a at most, times (N - 1 + J' a)/(N - 1 + J' a + m) < 1, or by the inverse of the latter: the
    guarantee is the same (methods, section 5).

    Parameters
    ----------
    cells : Cells
        The K public cells.
    concentration : Fraction
        Prior count a of each cell.
    """

    kind: ClassVar[str] = "dirichlet_multinomial"
    cells: Cells
    concentration: Fraction

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon, rounded up."""
        return Guarantee(dm_epsilon(self.concentration, self.records), 0.0, None, "global")

    @property
    def of_any_number(self) -> bool:
        """True; see `Sanitizer`."""
        return True

    @property
    def numbers_a_draw(self) -> int:
        """Urns of large weights take Python's integers; see `Generator`."""
        return numbers_a_draw(self.n + self.records, self.concentration.denominator)

    def loss_of_counts(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of the urn; see `Generator`."""
        a = float(self.concentration)

        def of_urn(releases: Floats) -> Floats:
            first, second = (gammaln(a + c + releases[:, :2]) - gammaln(a + c) for c in (one, other))
            return np.asarray((first - second).sum(axis=1))

        return of_urn

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with the prior count of twice the epsilon, log(1 + m/a); see `Sanitizer`."""
        m = self.records
        a = m / ((1 + m / self.concentration) ** 2 - 1)
        simple = a.limit_denominator(10**6) or Fraction(1, math.ceil(1 / a))
        return TWICE_EPSILON, replace(self, concentration=simple)

    @property
    def uniform_share(self) -> float | None:
        """Share of the prior counts among all; see `Sanitizer`."""
        prior = float(self.cells.count * self.concentration)
        return prior / (prior + self.n)

    def own(self) -> dict[str, Any]:
        """Return cells and prior count."""
        return self.cells.describe() | {"concentration": float(self.concentration)}

    def figures(self) -> dict[str, Any]:
        """Return numbers of records and cells, and the prior count."""
        return {
            "records": self.records,
            "n": self.n,
            "cells": self.cells.count,
            "concentration": float(self.concentration),
        }

    def drawn_in_words(self) -> str:
        """Say what is drawn."""
        return (
            f"{counted(self.records, 'draw')} from the posterior predictive of a Dirichlet-multinomial over "
            f"{self.cells.count} cells, prior count {float(self.concentration):.6g} each"
        )

    def draw(self, records: Records, rng: Seeded) -> tuple[Floats, Labels]:
        """Draw synthetic records; see `Generator`."""
        cells, count = self.cells.of_values(records.values), self.cells.count
        if self.possible is not None:  # an urn of the possible cells alone
            flags = self.possible.flags
            places, numbers = np.flatnonzero(flags), np.cumsum(flags) - 1
            cells, count = numbers[cells[flags[cells]]], len(places)
        drawn = draw_categories(cells, count, self.concentration, self.records, source_of(rng))
        if self.possible is not None:
            drawn = places[drawn]
        values = (self.possible or self.cells).draw_within(drawn, generator_from(source_of(rng)))
        return values, tuple(column.categories for column in self.columns)


# New values


@dataclass(frozen=True)
class NewValues:
    """The distribution of new values of one column.

    Parameters
    ----------
    column : Column
        Numeric, of public categories, or of free labels.
    base : BaseSpec or None
        Of a numeric column.
    grid : Grid or None
        Where new numbers are moved to.
    """

    column: Column
    base: BaseSpec | None = None
    grid: Grid | None = None

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw new values: numbers, or codes of public categories (uniformly).

        Returns
        -------
        ndarray of float64, shape (count,)
            Of free labels 0, 1, ..: a fresh label each.
        """
        if self.column.categories is not None:
            return rng.integers(len(self.column.categories), size=count).astype(np.float64)
        if self.column.bounds is None:
            return np.arange(count, dtype=np.float64)
        low, high = self.column.bounds
        if isinstance(self.base, HistogramBase):
            edges, weights = np.array(self.base.edges), np.array(self.base.weights)
            piece = rng.choice(len(weights), count, p=weights / weights.sum())
            drawn = edges[piece] + rng.random(count) * (edges[piece + 1] - edges[piece])
        else:
            if isinstance(self.base, BetaOnBounds):
                places = rng.beta(self.base.a, self.base.b, count)
            else:
                places = rng.random(count)
            drawn = low + places * (high - low)
        drawn = np.clip(drawn, low, high)
        return drawn if self.grid is None else self.grid.nearest(drawn)

    def describe_base(self) -> dict[str, Any] | None:
        """Return the base measure for JSON, None of labels."""
        if self.column.bounds is None:
            return None
        return {"kind": "uniform"} if self.base is None else self.base.model_dump(mode="json")


def _drawn(new_values: tuple[NewValues, ...], count: int, rng: np.random.Generator) -> Floats:
    return np.column_stack([new.draw(count, rng) for new in new_values])


def accepted(new_values: tuple[NewValues, ...], possible: Possible) -> float:
    """Return about what share of the base measure's draws is possible; the same for the same base."""
    return float(holds(possible.rules, _drawn(new_values, _TRIED, np.random.default_rng(0))).mean())


# The urn


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
    """Return how many numbers a draw takes as long as: urns of large weights take Python's integers."""
    return 1 if records * unit < 2**58 else 50


def draw_urn(
    n: int, first: NDArray[np.bool_], concentration: Fraction, discount: Fraction, draws: int, source: Source
) -> Drawn:
    """Draw from the predictive of PY(discount, concentration) given n records, with bytes of `source`.

    `first` (n,) marks the record that stands for its value: one of each value, the first record among them.
    Of no account at discount 0.

    Raises
    ------
    ValueError
        When the parameters are out of range: 0 <= discount < 1, concentration > -discount.
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
    """Draw categories (draws,) from the predictive of a Dirichlet-multinomial, prior count `concentration`.

    `cells` (n,) are the categories of the records.

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
