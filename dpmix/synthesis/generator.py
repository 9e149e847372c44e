"""What a generator of synthetic records is, and what an audit is told of their releases."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.laws.every import law_of
from dpmix.mechanisms.curators.mechanism import (
    BEYOND,
    Loss,
    Pair,
    Progress,
    Released,
    Sanitizer,
    Seeded,
    moved,
)
from dpmix.spec.capabilities import counted
from dpmix.synthesis.records import Records, taken

if TYPE_CHECKING:
    from dpmix.columns.cells import Cells, Column
    from dpmix.columns.possible import Possible
    from dpmix.release.sanitized import Release

Floats = NDArray[np.float64]
Labels = tuple[tuple[str, ...] | None, ...]

_LOOKS = 20  # releases that are looked at for values beyond the bounds


@dataclass(frozen=True, kw_only=True)
class Generator(Sanitizer):
    """A way of drawing synthetic records.

    An audit moves a record from a value that all or none share to one that nobody has; numbers lie far beyond
    the public bounds, and go the way of confidential ones: they are clamped by what clamps those. Of a
    release two numbers are told: how many records have, or lie in the cell of, either value.

    Parameters
    ----------
    columns : tuple of Column
        What is public of the columns.
    n : int
        Number of confidential records.
    records : int
        Number of synthetic records m.
    requested : dict
        What was asked for, such as ``{"epsilon": 1.0, "delta": 0.01}``.
    ranges : tuple of dict
        What is stated of possible records, for JSON.
    possible : Possible or None
        The possible part of the cells, or of the space of new values, where ranges are stated.
    """

    columns: tuple[Column, ...]
    n: int
    records: int
    requested: dict[str, float] = field(default_factory=dict)
    ranges: tuple[dict[str, Any], ...] = ()
    possible: Possible | None = None

    @property
    def numbers_a_draw(self) -> int:
        """How many numbers an audit has to reckon one draw as."""
        return 1

    @abc.abstractmethod
    def own(self) -> dict[str, Any]:
        """Return what is public of this kind alone, for JSON."""

    @abc.abstractmethod
    def drawn_in_words(self) -> str:
        """Say what is drawn, in one clause."""

    @abc.abstractmethod
    def draw(self, records: Records, rng: Seeded) -> tuple[Floats, Labels]:
        """Draw synthetic records.

        Parameters
        ----------
        records : Records
            Confidential; n of them.
        rng : Generator or None
            Where simulations draw from; None for the operating system's randomness.

        Returns
        -------
        ndarray of float64, shape (m, d), and labels by column
            Numbers and codes; the text that codes stand for.
        """

    def describe(self) -> dict[str, Any]:
        """Return everything public about the generator, for JSON."""
        return {
            "kind": "synthetic",
            "generator": self.kind,
            "columns": [column.describe() for column in self.columns],
            "records": self.records,
            "requested": dict(self.requested),
            "scale": [],
            **({"ranges": list(self.ranges)} if self.ranges else {}),
        } | self.own()

    def in_words(self, columns: Sequence[str] = ()) -> str:
        """Say what is drawn, and that ranges hold of it."""
        within = f", within {counted(len(self.ranges), 'public range')}" if self.ranges else ""
        return self.drawn_in_words() + within

    @property
    def republished(self) -> str:
        """What an urn gives as it is; see `Sanitizer`."""
        return law_of(self.describe()).republishes(self.n, self.guarantee.delta)

    def release(self, records: Records, progress: Progress | None = None) -> Released:
        """Draw the release; see `Sanitizer`."""
        if records.n != self.n:
            raise PrivacyError(f"the guarantee is for {self.n} records, not {records.n}")
        values, labels = self.draw(records, records.rng)
        release = self.made(
            values,
            [column.name for column in self.columns],
            self.n,
            private=not records.simulated,
            labels=labels if any(names is not None for names in labels) else (),
        )
        return release, records.clamped

    # What an audit asks

    def audited_at(self, n: int) -> Self:
        """Return it for n confidential records, and no more draws from noisy counts; see `Sanitizer`."""
        found = self.of_records(n)
        # draws from what the guarantee is of: as many do
        return found if self.noisy_cells is None else replace(found, records=min(self.records, n))

    def numbers(self, columns: int, n: int) -> int:
        """Return the number of values that are read and drawn; see `Sanitizer`."""
        return (self.n + self.records * self.numbers_a_draw) * columns

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record takes a value that nobody else has; see `Sanitizer`.

        Where the guarantee does not depend on the number of confidential records, databases of two are among
        them: they tell the most.
        """
        low, high = (np.array([_end(column, side) for column in self.columns]) for side in range(2))
        words = "a record takes a value that nobody else has"
        yield moved(words, np.tile(low, (self.n, 1)), low, high)
        if self.of_any_number and self.n > 2:
            yield moved("the second of two records takes another value", np.tile(low, (2, 1)), low, high)
            assert self._cells is not None  # those of any number have cells
            middle = np.array([_middle(column) for column in self.columns])
            if len(set(self._cells.of_values(np.array([low, middle, high])).tolist())) == 3:
                words = "one of two records goes from a value of its own to another"
                yield moved(words, np.tile(middle, (2, 1)), low, high)

    def told_of(self, database: Floats, columns: Sequence[str], runs: int) -> Floats:
        """Draw releases, shape (runs, 2): how many records have either value; see `Sanitizer`."""
        of, given = self.of_records(len(database)), self._recorded(database)
        return np.array([self._told(of.release(given)[0], given) for _ in range(runs)])

    def strays(self, pair: Pair) -> bool:
        """Whether releases have numbers beyond their column's public bounds."""
        return any(
            _beyond(self.of_records(len(database)).release(self._recorded(database))[0], self.columns)
            for database in (pair.one, pair.other)
            for _ in range(_LOOKS)
        )

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of how many records have either value; see `Sanitizer`."""
        counts = (self._counted(self._recorded(database).values) for database in (one, other))
        return self.of_records(len(one)).loss_of_counts(*counts)

    def loss_of_counts(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of releases of two databases with so many records (2,) of either value.

        The others are the same. None where it is not known.
        """
        return None

    @property
    def _cells(self) -> Cells | None:
        """Cells that the records are counted in, of kinds that look at nothing else."""
        return getattr(self, "cells", None)

    def _recorded(self, database: Floats) -> Records:
        """Return a database as records are read."""
        found, clamped = database.copy(), [0] * len(self.columns)
        for i, column in enumerate(self.columns):
            if column.bounds is not None:
                found[:, i], clamped[i], _ = taken(found[:, i], column)
        labels = tuple(("a", "b", "c") if column.free else column.categories for column in self.columns)
        return Records(self.columns, found, labels, tuple(clamped))

    def _counted(self, values: Floats) -> Floats:
        """Return how many records are at the lower, and the upper, ends of all columns, or in their cells."""
        if self._cells is not None:
            found, ends = self._cells.of_values(values), (0, self._cells.count - 1)
            return np.array([np.count_nonzero(found == cell) for cell in ends], dtype=float)
        sides = np.ones((2, len(values)), dtype=bool)
        for i, column in enumerate(self.columns):
            if column.bounds is not None:  # beyond is as good as at
                low, high = column.bounds if column.lattice is None else column.lattice.domain
                sides &= np.array([values[:, i] <= low, values[:, i] >= high])
            else:
                sides &= np.array([values[:, i] == _end(column, side) for side in range(2)])
        return np.asarray(sides.sum(axis=1), dtype=float)

    def _told(self, release: Release, given: Records) -> Floats:
        """Return the same of a release, whose free labels are numbered anew."""
        values = release.values
        if any(column.free for column in self.columns):
            values = values.copy()
            for i, column in enumerate(self.columns):
                if column.free:
                    known, names = (
                        given.labels[i] or (),
                        (release.labels[i] if release.labels else None) or (),
                    )
                    places = np.array([known.index(name) if name in known else -1 for name in names])
                    values[:, i] = places[values[:, i].astype(int)]
        return self._counted(values)


def _end(column: Column, side: int) -> float:
    if column.bounds is not None:
        low, high = column.bounds
        return (low - BEYOND * (high - low), high + BEYOND * (high - low))[side]
    return 0.0 if side == 0 else 1.0 if column.free else len(column.categories or ()) - 1.0


def _middle(column: Column) -> float:
    if column.bounds is not None:
        return 0.5 * (column.bounds[0] + column.bounds[1])
    return 2.0 if column.free else float((len(column.categories or ()) - 1) // 2)


def _beyond(release: Release, columns: Sequence[Column]) -> bool:
    """Whether a release has a number beyond its column's public bounds."""
    for i, column in enumerate(columns):
        if column.bounds is not None:
            (low, high), found = column.bounds, release.values[:, i]
            if ((found < low) | (found > high)).any():
                return True
    return False
