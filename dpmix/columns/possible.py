"""What records are possible by public ranges: rules, the possible part of each cell, and draws within it.

A rule says what holds of some columns, of all records or of those of which something holds of others. Where
all rules hold a record is possible. Rules are about one column at a time, so that cells fall into pieces,
products of intervals, points or categories, each of which is possible or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.columns.cells import Cells, Column, Grid
from dpmix.columns.column_units import Categories
from dpmix.errors import SpecError
from dpmix.spec.days import day_of, day_text
from dpmix.spec.fields import shown

if TYPE_CHECKING:
    from dpmix.spec.synthesis_section import RangeSpec

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_MOST_PIECES = 20_000_000


class Span(NamedTuple):
    """The numbers from `low` to `high`, both of them too."""

    low: float
    high: float


Condition = Span | frozenset[int]
"""What holds of a column: numbers of a span, or codes of categories."""


class Rule(NamedTuple):
    """What holds of a record: where all of `when` does, all of `then`. Both by number of column."""

    when: Mapping[int, Condition]
    then: Mapping[int, Condition]


def holds(rules: Sequence[Rule], values: Floats) -> Flags:
    """Return whether each record is possible: rows of numbers and codes, shape (m, d)."""
    found = np.ones(len(values), dtype=np.bool_)
    for rule in rules:
        asked = np.ones(len(values), dtype=np.bool_)
        for i, condition in rule.when.items():
            asked &= _meets(condition, values[:, i])
        for i, condition in rule.then.items():
            found &= ~asked | _meets(condition, values[:, i])
    return found


def _meets(condition: Condition, values: Floats) -> Flags:
    if isinstance(condition, Span):
        return np.asarray((values >= condition.low) & (values <= condition.high))
    return np.isin(values, np.array(sorted(condition), dtype=np.float64))


def rules_of(
    ranges: Sequence[RangeSpec],
    columns: Sequence[Column],
    grids: Sequence[Grid | None] = (),
    *,
    numbers: bool = False,
) -> tuple[Rule, ...]:
    """Return the rules that a spec states of these columns.

    Grids are of the points that the numbers of a column are at, where there are such beside those of its
    digits; `numbers` says whether a column without bounds and categories is of numbers, as those of a
    posterior are, and not of free labels.

    Raises
    ------
    SpecError
        When a rule names a column that is not there or a value that it cannot have.
    """
    places = {column.name: i for i, column in enumerate(columns)}
    grids = tuple(grids) or (None,) * len(columns)
    found = []
    for number, rule in enumerate(ranges):
        key = f"synthesis.ranges[{number}]"
        parts: list[dict[int, Condition]] = []
        for prefix, stated in ((f"{key}.when", rule.when or {}), (key, rule.then)):
            part: dict[int, Condition] = {}
            for name, value in stated.items():
                at = f"{prefix}.{name}"
                if name not in places:
                    raise SpecError(f"{at}: no such column; the columns are {', '.join(places)}")
                i = places[name]
                if columns[i].free and not numbers:
                    raise SpecError(
                        f"{at}: {name} has free labels, of which nothing is public; list its categories "
                        "under data.categories"
                    )
                part[i] = _condition(at, value, columns[i], grids[i] or columns[i].lattice)
            parts.append(part)
        found.append(Rule(*parts))
    return tuple(found)


def _condition(key: str, value: Any, column: Column, points: Grid | None) -> Condition:
    """Return what is said of one column."""
    several = value if isinstance(value, tuple) else (value,)
    if column.categories is not None:
        known = Categories(column.categories)
        codes = [known.code(str(item)) for item in several]
        for item, code in zip(several, codes, strict=True):
            if code < 0:
                listed = ", ".join(column.categories[:20])
                raise SpecError(f"{key}: {shown(item)} is no category of {column.name}; it has {listed}")
        return frozenset(codes)
    numbers = [_number(key, item, column) for item in several]
    if len(numbers) > 2:
        raise SpecError(f"{key}: must be [lo, hi] of {column.name}, which is of numbers")
    low, high = numbers[0], numbers[-1]
    what = f"[{_text(low, column)}, {_text(high, column)}]"
    if low > high:
        raise SpecError(f"{key}: {what} must have its lower end first")
    if column.bounds is not None and not (column.bounds[0] <= low and high <= column.bounds[1]):
        ends = ", ".join(_text(bound, column) for bound in column.bounds)
        raise SpecError(f"{key}: {what} must lie within the bounds [{ends}] of {column.name}")
    if points is not None:
        first, last = _between(points, Span(low, high))
        if first >= last:
            raise SpecError(f"{key}: {what} holds no value that {column.name} can have")
    elif low == high and column.digits is None:
        raise SpecError(
            f"{key}: {_text(low, column)} is one number, which a column of real numbers is never equal to; "
            f"give [lo, hi], or data.types.{column.name}: integer, category or digits"
        )
    return Span(low, high)


def _number(key: str, item: Any, column: Column) -> float:
    if column.date:
        day = day_of(item)
        if day is None:
            raise SpecError(f"{key}: {shown(item)} is no date such as 2024-12-31")
        return float(day)
    if isinstance(item, str):
        raise SpecError(f"{key}: {shown(item)} is no number, and {column.name} is of numbers")
    return float(item)


def _text(number: float, column: Column) -> str:
    return day_text(number) if column.date else f"{number:.12g}"


def _between(points: Grid, span: Span) -> tuple[int, int]:
    """Return the numbers of the first point within a span, and of the first one after it."""
    count = points.count
    guess = points.place(np.array(span))
    first, after = int(guess[0]), int(guess[1])
    near = points.at(np.array([first, after]))
    first += bool(near[0] < span.low)
    after += bool(near[1] <= span.high)
    return max(0, min(first, count)), max(0, min(after, count))


class _Axis(NamedTuple):
    """Pieces of a column's cells, in order.

    Parameters
    ----------
    cell : ndarray of int64, shape (pieces,)
        The cell that each is of.
    share : ndarray of float64, shape (pieces,)
        Its share of the cell.
    ends : ndarray, shape (pieces + 1,)
        Numbers of points, codes or edges: piece i is from entry i to before entry i + 1.
    points : Grid or None
        Whose points they are, where they are points.
    """

    cell: Ints
    share: Floats
    ends: NDArray[Any]
    points: Grid | None

    def meets(self, condition: Condition) -> Flags:
        """Return of which pieces a condition holds."""
        if not isinstance(condition, Span):
            return np.isin(self.ends[:-1], sorted(condition))
        low, high = (
            (condition.low, condition.high) if self.points is None else _between(self.points, condition)
        )
        return np.asarray((self.ends[:-1] >= low) & (self.ends[1:] <= high))


def _axis(cells: Cells, index: int, conditions: Sequence[Condition], grid: Grid | None) -> _Axis:
    """Cut the cells of a column where conditions begin and end; of one cell, whose numbers are on a grid."""
    column = cells.columns[index]
    if column.bounds is None:
        count = cells.shape[index]
        return _Axis(np.arange(count), np.ones(count), np.arange(count + 1), None)
    spans = [condition for condition in conditions if isinstance(condition, Span)]
    runs = cells.runs(index)
    if runs is None and grid is not None:
        runs = grid, np.array([0, grid.count])
    if runs is None:
        whole: NDArray[Any] = cells.edges(index)
        cuts = np.array([end for span in spans for end in span], dtype=np.float64)
        points = None
    else:
        points, whole = runs
        cuts = np.array([end for span in spans for end in _between(points, span)], dtype=np.int64)
    ends = np.union1d(whole, cuts)
    ends = ends[(ends >= whole[0]) & (ends <= whole[-1])]
    cell = np.searchsorted(whole, ends[:-1], side="right").astype(np.int64) - 1
    share = np.diff(ends) / np.diff(whole)[cell]
    return _Axis(cell, share, ends, points)


@dataclass(frozen=True, eq=False)
class Possible:
    """The possible part of cells.

    Parameters
    ----------
    cells : Cells
    rules : tuple of Rule
    grids : tuple of Grid or None
        Points that the numbers of columns with one cell are at; empty where there are no such.
    """

    cells: Cells
    rules: tuple[Rule, ...]
    grids: tuple[Grid | None, ...] = ()

    @cached_property
    def _axes(self) -> tuple[_Axis, ...]:
        found = []
        for i in range(len(self.cells.columns)):
            own = [part[i] for rule in self.rules for part in rule if i in part]
            grid = self.grids[i] if self.grids and self.cells.shape[i] == 1 else None
            found.append(_axis(self.cells, i, own, grid))
        return tuple(found)

    @cached_property
    def _flags(self) -> Flags:
        """Which pieces are possible, an axis a column."""
        shape = tuple(len(axis.cell) for axis in self._axes)
        if np.prod([float(size) for size in shape]) > _MOST_PIECES:
            raise SpecError(
                f"synthesis.ranges: cut the cells into more than {_MOST_PIECES} pieces; take fewer "
                "synthesis.bins"
            )
        found = np.ones(shape, dtype=np.bool_)
        for rule in self.rules:
            asked = self._where(rule.when)
            for i, condition in rule.then.items():
                found &= ~asked | self._along(i, self._axes[i].meets(condition))
        return found

    def _where(self, conditions: Mapping[int, Condition]) -> Flags:
        """Return of which pieces all conditions hold; of shape one along columns that they are not about."""
        found = np.ones((1,) * len(self._axes), dtype=np.bool_)
        for i, condition in conditions.items():
            found = found & self._along(i, self._axes[i].meets(condition))
        return found

    def _along(self, index: int, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape([-1 if i == index else 1 for i in range(len(self._axes))])

    @cached_property
    def shares(self) -> Floats:
        """Share of each cell that is possible, shape (cells,)."""
        found = self._flags.astype(np.float64)
        for i, axis in enumerate(self._axes):
            found *= self._along(i, axis.share)
            starts = np.flatnonzero(np.diff(axis.cell, prepend=-1))
            found = np.add.reduceat(found, starts, axis=i)
        return np.asarray(found.ravel())

    @cached_property
    def flags(self) -> Flags:
        """Whether anything of each cell is possible, shape (cells,)."""
        return np.asarray(self.shares > 0.0)

    def check(self) -> None:
        """Refuse rules by which nothing is possible, or nothing of which a rule's own condition holds.

        Raises
        ------
        SpecError
            Naming the rule.
        """
        for number, rule in enumerate(self.rules):
            if not (self._flags & self._where(rule.when)).any():
                where = " of which its when holds" if rule.when else ""
                raise SpecError(
                    f"synthesis.ranges[{number}]: no record{where} is possible by all ranges together; "
                    "correct the ranges that contradict one another"
                )

    def draw_within(self, chosen: Ints, rng: np.random.Generator) -> Floats:
        """Draw a possible record of each given cell (m,), uniformly; shape (m, d)."""
        if self._flags.all():
            return self.cells.draw_within(chosen, rng)
        owner, weight, numbers = self._pieces
        starts = np.searchsorted(owner, chosen, side="left")
        stops = np.searchsorted(owner, chosen, side="right")
        below = np.concatenate(([0.0], np.cumsum(weight)))
        aim = below[starts] + rng.random(len(chosen)) * (below[stops] - below[starts])
        piece = np.clip(np.searchsorted(below, aim, side="right") - 1, starts, stops - 1)
        places = np.unravel_index(numbers[piece], self._flags.shape)
        return np.column_stack(
            [_within(axis, place, rng) for axis, place in zip(self._axes, places, strict=True)]
        )

    @cached_property
    def _pieces(self) -> tuple[Ints, Floats, Ints]:
        """Cell, share of all cells and number of each possible piece, by cell."""
        numbers = np.flatnonzero(self._flags)
        places = np.unravel_index(numbers, self._flags.shape)
        owner = np.zeros(len(numbers), dtype=np.int64)
        weight = np.ones(len(numbers))
        for i, axis in enumerate(self._axes):
            owner = owner * self.cells.shape[i] + axis.cell[places[i]]
            weight *= axis.share[places[i]]
        order = np.argsort(owner, kind="stable")
        return owner[order], weight[order], numbers[order].astype(np.int64)


def _within(axis: _Axis, place: NDArray[np.intp], rng: np.random.Generator) -> Floats:
    """Draw values of these pieces of a column."""
    left, right = axis.ends[place], axis.ends[place + 1]
    if axis.points is not None:
        chosen: Ints = rng.integers(left, right)
        return axis.points.at(chosen)
    if left.dtype.kind == "i":  # codes
        return left.astype(np.float64)
    # a piece may stand open to the next one, which a rule tells from it
    first, last = np.nextafter(left, np.inf), np.nextafter(right, -np.inf)
    aim = left + rng.random(len(place)) * (right - left)
    return np.asarray(np.clip(aim, first, np.maximum(first, last)), dtype=np.float64)


def possible_of(
    ranges: Sequence[RangeSpec] | None, cells: Cells, grids: Sequence[Grid | None] = ()
) -> Possible | None:
    """Return the possible part of cells by the ranges of a spec, None where it states none.

    Raises
    ------
    SpecError
        As `rules_of`, and when ranges contradict one another.
    """
    if not ranges:
        return None
    found = Possible(cells, rules_of(ranges, cells.columns, tuple(grids) or cells.grids), tuple(grids))
    found.check()
    return found
