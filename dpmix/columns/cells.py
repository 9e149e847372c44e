"""What is public of the columns of records, and partitions of the space of records into cells.

Both sides use it: the curator counts records in cells, the analyst reads releases of such counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.numerics.equal_cells import cell_of, equal_edges
from dpmix.spec.days import day_text
from dpmix.spec.limits import ONE_COLUMN, SEVERAL_COLUMNS

# Points that the numbers of a column are at: a public grid, or all numbers of so many digits


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LARGEST = 2.0**52
_PRECISION = 400


@dataclass(frozen=True)
class Grid:
    """The points lo, lo + step, .., up to hi.

    Parameters
    ----------
    step : float
        Distance of neighbours.
    domain : (lo, hi)
        First point, and the bound of the last.
    """

    step: float
    domain: tuple[float, float]

    @property
    def count(self) -> int:
        """Number of points."""
        low, high = (Decimal(repr(bound)) for bound in self.domain)
        return int((high - low) / Decimal(repr(self.step))) + 1

    @property
    def points(self) -> Floats:
        """The points, shape (count,), each the double nearest to its decimal."""
        return self.at(np.arange(self.count))

    @property
    def edges(self) -> Floats:
        """Edges of the values that are nearest to each point, shape (count + 1,)."""
        points = self.points
        inner = (points[1:] + points[:-1]) / 2
        return np.concatenate(([points[0] - self.step / 2], inner, [points[-1] + self.step / 2]))

    def place(self, values: Floats) -> Ints:
        """Return the number of the point nearest to each value."""
        low = self.domain[0]
        return np.clip(np.rint((values - low) / self.step), 0, self.count - 1).astype(np.int64)

    def nearest(self, values: Floats) -> Floats:
        """Return the point nearest to each value."""
        return self.at(self.place(values))

    def holds(self, other: Grid) -> bool:
        """Whether all points of another grid are points of this one."""
        with localcontext(prec=_PRECISION):
            low, step, theirs, wide = (
                Decimal(repr(number)) for number in (self.domain[0], self.step, other.domain[0], other.step)
            )
            return not (theirs - low) % step and not wide % step

    def describe(self) -> dict[str, Any]:
        """Return the grid for JSON."""
        return {"step": self.step, "domain": list(self.domain)}

    @classmethod
    def described(cls, account: Mapping[str, Any]) -> Grid:
        """Return the grid that `describe` gave this account of."""
        low, high = account["domain"]
        return cls(float(account["step"]), (float(low), float(high)))

    def at(self, places: Ints) -> Floats:
        """Return the points of these numbers."""
        exponents = [Decimal(repr(number)).as_tuple().exponent for number in (self.domain[0], self.step)]
        digits = max(0, *(-int(exponent) for exponent in exponents))
        return np.round(self.domain[0] + self.step * places, digits) + 0.0


def lattice_of(bounds: tuple[float, float], digits: int) -> Grid | None:
    """Return all numbers of so many digits after the decimal point within bounds; None where there are none.

    Raises
    ------
    ValueError
        When doubles of that size do not have so many digits.
    """
    if max(map(abs, bounds)) * 10.0**digits >= _LARGEST:
        raise ValueError("doubles have fewer digits")
    with localcontext(prec=_PRECISION):
        step = Decimal(1).scaleb(-digits)
        low = (Decimal(repr(float(bounds[0]))) / step).to_integral_value(ROUND_CEILING)
        high = (Decimal(repr(float(bounds[1]))) / step).to_integral_value(ROUND_FLOOR)
        return Grid(float(step), (float(low * step), float(high * step))) if low <= high else None


def starts_of_runs(points: int, runs: int) -> Ints:
    """Return where runs of neighbouring points begin that are as equal as whole numbers can be; (runs + 1,).

    Run i holds the points from entry i to before entry i + 1; with at least as many points as runs none is
    empty.
    """
    return np.array([number * points // runs for number in range(runs + 1)], dtype=np.int64)


# What is public of the columns of records, and partitions of the space of records into cells


MOST = 1_000_000
"""Cells at most: each of them takes noise."""
NEW_LABEL = "new_category_"
"""How labels begin that synthesis makes up for new values of a column of free labels; a number follows."""


@dataclass(frozen=True)
class Column:
    """What is public of a column.

    Parameters
    ----------
    name : str
        Its name.
    bounds : (lo, hi) or None
        Of a numeric column.
    categories : tuple of str or None
        Of a column of public categories. A column with neither holds free labels: text as it stands.
    date : bool
        Whether the numbers are days since 1970-01-01, written as dates.
    digits : int or None
        Digits after the decimal point of its numbers, 0 of whole ones; None where they are any real numbers.
    """

    name: str
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None
    date: bool = False
    digits: int | None = None

    @property
    def free(self) -> bool:
        """Whether its values are labels of which nothing is public."""
        return self.bounds is None and self.categories is None

    @property
    def lattice(self) -> Grid | None:
        """The numbers within the bounds that have its digits; None where they are any real numbers.

        Raises
        ------
        SpecError
            When there are none, or doubles of that size have fewer digits.
        """
        if self.bounds is None or self.digits is None:
            return None
        low, high = bounds_in_words({"domain": self.bounds, "date": self.date})
        try:
            found = lattice_of(self.bounds, self.digits)
        except ValueError:
            raise SpecError(
                f"data.types.{self.name}: {self.digits} digits are more than numbers as large as its bounds "
                f"[{low}, {high}] have; take fewer"
            ) from None
        if found is None or found.count < 2:
            kind = f"numbers of {self.digits} digits" if self.digits else "whole numbers"
            raise SpecError(f"data.types.{self.name}: its bounds [{low}, {high}] hold no two {kind}")
        return found

    def describe(self) -> dict[str, Any]:
        """Return what is public, for JSON."""
        return (
            {"name": self.name}
            | ({} if self.bounds is None else {"domain": [float(bound) for bound in self.bounds]})
            | ({"date": True} if self.date else {})
            | ({} if self.digits is None else {"type": {"digits": self.digits} if self.digits else "integer"})
            | ({} if self.categories is None else {"categories": list(self.categories)})
        )


@dataclass(frozen=True)
class Cells:
    """The product of the columns' cells, numbered in C order: the first column varies slowest.

    The cells of a numeric column are equal bins, or the points of a grid; of labels, the categories. Bins of
    a column whose numbers have so many digits are runs of those numbers, as equal as can be.

    Parameters
    ----------
    columns : tuple of Column
        Numeric, or of public categories.
    shape : tuple of int
        Number of cells of each.
    grids : tuple of Grid or None
        Grid of each column, where it has one.
    own_edges : tuple of float
        Of the bins of the only column, where they are not equal.
    """

    columns: tuple[Column, ...]
    shape: tuple[int, ...]
    grids: tuple[Grid | None, ...]
    own_edges: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        bins: int | Sequence[int] | None,
        grids: Sequence[Grid | None] = (),
    ) -> Cells:
        """Return the cells that a spec's `synthesis.bins` and `synthesis.snap` give.

        Bins are of the numeric columns without a grid: of all, or one each. One number for all is at most one
        bin for each value of a column with so many digits, which has its values for a grid then.

        Raises
        ------
        SpecError
            When a column has neither bounds nor categories, the bins are not one number per numeric column,
            or cells are too many or narrower than the numbers there.
        """
        for column in columns:
            if column.free:
                raise SpecError(
                    f"data.domain: missing for {column.name}; a histogram needs public bounds or categories "
                    "of every column"
                )
        grids = tuple(grids) or (None,) * len(columns)
        binned = [i for i, c in enumerate(columns) if c.bounds is not None and grids[i] is None]
        if bins is not None and not binned:
            raise SpecError("synthesis.bins: no numeric column without a grid is there; leave it out")
        if bins is None:
            bins = ONE_COLUMN if len(binned) == 1 else SEVERAL_COLUMNS
        counts = [bins] * len(binned) if isinstance(bins, int) else list(bins)
        if len(counts) != len(binned):
            raise SpecError(
                f"synthesis.bins: has {len(counts)} entries for {len(binned)} numeric columns; give one each"
            )
        given = list(grids)
        for place, i in enumerate(binned):
            lattice = columns[i].lattice
            if lattice is None:
                continue
            if counts[place] > lattice.count and not isinstance(bins, int):
                raise SpecError(
                    f"synthesis.bins: {counts[place]} bins of {columns[i].name} are more than the "
                    f"{lattice.count} values that its type has within the bounds; take at most as many"
                )
            counts[place] = min(counts[place], lattice.count)
            if counts[place] == lattice.count:
                given[i] = lattice
        grids = tuple(given)
        shape = [
            grid.count if grid else len(c.categories or ()) for c, grid in zip(columns, grids, strict=True)
        ]
        for i, count in zip(binned, counts, strict=True):
            shape[i] = count
        if math.prod(shape) > MOST:
            raise SpecError(
                f"synthesis.bins: make {math.prod(shape)} cells of all columns together, more than {MOST}; "
                "take fewer, or a larger synthesis.snap.step"
            )
        made = cls(tuple(columns), tuple(shape), grids)
        for i in binned:
            if columns[i].lattice is None and not (np.diff(made.edges(i)) > 0).all():
                raise SpecError(
                    f"synthesis.bins: {shape[i]} bins of {columns[i].name} are narrower than the "
                    "numbers there; take fewer"
                )
        return made

    @property
    def count(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def edges(self, index: int) -> Floats:
        """Return the edges of a numeric column's cells, shape (cells + 1,); midpoints between runs."""
        grid, bounds = self.grids[index], self.columns[index].bounds
        assert bounds is not None  # numeric
        if self.own_edges:
            return np.array(self.own_edges)
        if grid is not None:
            return grid.edges
        runs = self.runs(index)
        if runs is None:
            return equal_edges(bounds, self.shape[index])
        lattice, starts = runs
        inner = (lattice.at(starts[1:-1]) + lattice.at(starts[1:-1] - 1)) / 2
        return np.concatenate(([bounds[0]], inner, [bounds[1]]))

    def runs(self, index: int) -> tuple[Grid, Ints] | None:
        """Return the points that a column's cells are runs of, and where these start; None of others.

        Points of a grid are runs of one point each.
        """
        grid = self.grids[index]
        if grid is not None:
            return grid, np.arange(self.shape[index] + 1)
        lattice = self.columns[index].lattice
        return None if lattice is None else (lattice, starts_of_runs(lattice.count, self.shape[index]))

    def of_values(self, values: Floats) -> Ints:
        """Return the cell of each row of values and codes, shape (n,)."""
        found = np.zeros(len(values), dtype=np.int64)
        for i, (column, grid) in enumerate(zip(self.columns, self.grids, strict=True)):
            part = values[:, i]
            if column.bounds is None:
                place = part.astype(np.int64)
            elif grid is not None:
                place = grid.place(part)
            elif (runs := self.runs(i)) is None:
                place = cell_of(part, self.edges(i))
            else:
                place = np.searchsorted(runs[1], runs[0].place(part), side="right").astype(np.int64) - 1
            found = found * self.shape[i] + place
        return found

    def counts(self, values: Floats) -> Ints:
        """Return the number of rows in each cell, shape (cells,)."""
        return np.bincount(self.of_values(values), minlength=self.count).astype(np.int64)

    def draw_within(self, cells: Ints, rng: np.random.Generator) -> Floats:
        """Draw a record of each given cell, shape (m, d): numbers uniform in a bin or among its points."""
        places = np.unravel_index(cells, self.shape)
        drawn = np.empty((len(cells), len(self.columns)))
        for i, column in enumerate(self.columns):
            if column.bounds is None:
                drawn[:, i] = places[i]
            elif (runs := self.runs(i)) is not None:
                points, starts = runs
                one = self.grids[i] is not None
                chosen = places[i] if one else rng.integers(starts[places[i]], starts[places[i] + 1])
                drawn[:, i] = points.at(chosen)
            else:
                edges = self.edges(i)
                left, right = edges[places[i]], edges[places[i] + 1]
                inside = np.nextafter(right, -np.inf)
                drawn[:, i] = np.clip(left + rng.random(len(cells)) * (right - left), left, inside)
        return drawn

    def describe(self) -> dict[str, Any]:
        """Return bins and grids for JSON, beside the columns."""
        snaps = [None if grid is None else grid.describe() for grid in self.grids]
        return {"bins": list(self.shape)} | ({"snap": snaps} if any(snaps) else {})


# What is public of a column, in words


_CATEGORIES = 8  # that are listed


def bounds_in_words(column: Mapping[str, Any]) -> tuple[str, str]:
    """Return the ends of the bounds of such a column: dates as dates."""
    write = day_text if column.get("date") else lambda value: f"{value:.12g}"
    low, high = column["domain"]
    return write(float(low)), write(float(high))


def column_in_words(column: Mapping[str, Any]) -> str:
    """Say what is public of such a column, as in "when in [2020-01-01, 2024-12-31]"."""
    unit = f" {column['unit']}" if "unit" in column else ""
    if "domain" in column:
        return f"{column['name']} in [{', '.join(bounds_in_words(column))}]{unit}"
    if "categories" in column:
        return f"{column['name']} ({listed_briefly(column['categories'])})"
    return f"{column['name']}{f' in{unit}' if unit else ''}"


def listed_briefly(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - _CATEGORIES
    return ", ".join(names[:_CATEGORIES]) + (f", and {more} more" if more > 0 else "")


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of records in all cells.

    Parameters
    ----------
    counts : int64 array (B,)
    edges : float64 array (B - 1,)
        Finite edges between the cells, increasing; where outputs are finite .5, 1.5, ..
    width : float
        Of an inner cell; 0 where outputs are finite.
    """

    counts: NDArray[np.int64]
    edges: Floats
    width: float

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    def constants(self) -> dict[str, float]:
        """Return what the chains file says of the cells: the ends of the inner ones, and their width."""
        first, last = float(self.edges[0]), float(self.edges[-1])
        return {"cells_first": first, "cells_last": last, "cells_width": self.width}

    def joined(self) -> Counts:
        """Return the counts with neighbouring cells of no records put together; not of finite outputs."""
        some = np.flatnonzero(self.counts)
        used = np.unique(np.concatenate([some - 1, some]))
        used = used[(used >= 0) & (used < len(self.edges))]
        starts = np.concatenate([[0], used + 1])
        return Counts(np.add.reduceat(self.counts, starts), self.edges[used], self.width)
