"""What is audited of generators of synthetic records, and their neighbouring databases."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmix.auditing.inputs import ENOUGH, AuditedSubject
from dpmix.mechanisms.curators.neighbours import BEYOND, Loss, Pair, moved
from dpmix.release.columns import Cells, Column
from dpmix.release.sanitized import Release
from dpmix.synthesis import records as confidential
from dpmix.synthesis.generator import Generator
from dpmix.synthesis.records import Records

__all__ = ["subject_of_generator"]

Floats = NDArray[np.float64]

_LOOKS = 20  # releases that are looked at for values beyond the bounds


def subject_of_generator(
    generator: Generator, check: Callable[[int, int], None] | None = None
) -> AuditedSubject:
    """Return a generator of synthetic records with the neighbouring databases that it is audited by.

    A record goes from a value that all or none share to one that nobody has; numbers lie far beyond the
    public bounds, and go the way of confidential ones: they are clamped by what clamps those. Of a release
    two numbers are told: how many records have, or lie in the cell of, either value. Where the guarantee does
    not depend on the number of confidential records, databases of two are audited, too: they tell the most.

    Parameters
    ----------
    generator : Generator
        Calibrated.
    check : callable, optional
        Called, before databases are made, with the number of records and of numbers that a release goes
        through.
    """
    columns = generator.columns
    labels = tuple(("a", "b", "c") if c.free else c.categories for c in columns)
    stated = generator.n
    if generator.of_any_number and stated > ENOUGH:
        generator = generator.of_records(ENOUGH)
        records = min(generator.records, ENOUGH)
        if generator.noisy_cells is not None:  # draws from what the guarantee is of: as many do
            generator = dataclasses.replace(generator, records=records)
    if check is not None:
        check(stated, (generator.n + generator.records * generator.numbers_a_draw) * len(columns))
    cells = getattr(generator, "cells", None)

    def taken(database: Floats) -> Records:
        found = database.copy()
        clamped = [0] * len(columns)
        for i, column in enumerate(columns):
            if column.bounds is not None:
                bounded, clamped[i] = confidential._clamped(found[:, i], column.bounds)
                found[:, i] = confidential._rounded(bounded, column)[0]
        return Records(columns, found, labels, tuple(clamped))

    def draw(database: Floats, runs: int) -> Floats:
        of = generator.of_records(len(database))
        given = taken(database)
        return np.array([_told(of.release(given), columns, labels, cells) for _ in range(runs)])

    def loss(pair: Pair) -> Loss | None:
        counts = [_counted(taken(x).values, columns, cells) for x in (pair.one, pair.other)]
        return generator.of_records(len(pair.one)).loss(counts[0], counts[1])

    def strays() -> bool:
        return any(
            _beyond(generator.of_records(len(x)).release(taken(x)), columns)
            for x in (pairs[0].one, pairs[0].other)
            for _ in range(_LOOKS)
        )

    pairs = tuple(_pairs(generator))
    fault, changed = generator.weakened()
    return AuditedSubject(
        kind=generator.kind,
        claim=generator.guarantee,
        pairs=pairs,
        draw=draw,
        loss=loss,
        fault=fault,
        faulty=lambda: subject_of_generator(changed),
        strays=strays,
        stated=stated,
    )


def _pairs(generator: Generator) -> Iterator[Pair]:
    columns, n = generator.columns, generator.n
    low, high = (np.array([_end(column, side) for column in columns]) for side in range(2))
    words = "a record takes a value that nobody else has"
    yield moved(words, np.tile(low, (n, 1)), low, high)
    middle = np.array([_middle(column) for column in columns])
    if generator.of_any_number and n > 2:
        yield moved("the second of two records takes another value", np.tile(low, (2, 1)), low, high)
        cells: Cells = generator.cells  # type: ignore[attr-defined]  # those of any number have cells
        if len(set(cells.of_values(np.array([low, middle, high])).tolist())) == 3:
            words = "one of two records goes from a value of its own to another"
            yield moved(words, np.tile(middle, (2, 1)), low, high)


def _end(column: Column, side: int) -> float:
    if column.bounds is not None:
        low, high = column.bounds
        return (low - BEYOND * (high - low), high + BEYOND * (high - low))[side]
    return 0.0 if side == 0 else 1.0 if column.free else len(column.categories or ()) - 1.0


def _middle(column: Column) -> float:
    if column.bounds is not None:
        return 0.5 * (column.bounds[0] + column.bounds[1])
    return 2.0 if column.free else float((len(column.categories or ()) - 1) // 2)


def _counted(values: Floats, columns: Sequence[Column], cells: Cells | None) -> Floats:
    """Return how many records are at the lower, and at the upper, ends of all columns, or in their cells."""
    if cells is not None:
        found = cells.of_values(values)
        return np.array([np.count_nonzero(found == cell) for cell in (0, cells.count - 1)], dtype=float)
    sides = np.ones((2, len(values)), dtype=bool)
    for i, column in enumerate(columns):
        if column.bounds is not None:  # beyond is as good as at
            low, high = column.bounds if column.lattice is None else column.lattice.domain
            sides &= np.array([values[:, i] <= low, values[:, i] >= high])
        else:
            sides &= np.array([values[:, i] == _end(column, side) for side in range(2)])
    return np.asarray(sides.sum(axis=1), dtype=float)


def _told(
    release: Release,
    columns: Sequence[Column],
    labels: Sequence[tuple[str, ...] | None],
    cells: Cells | None,
) -> Floats:
    """Return the same of a release, whose free labels are numbered anew."""
    values = release.values
    if any(column.free for column in columns):
        values = values.copy()
        for i, column in enumerate(columns):
            if column.free:
                known, names = labels[i] or (), (release.labels[i] if release.labels else None) or ()
                places = np.array([known.index(name) if name in known else -1 for name in names])
                values[:, i] = places[values[:, i].astype(int)]
    return _counted(values, columns, cells)


def _beyond(release: Release, columns: Sequence[Column]) -> bool:
    """Whether a release has a number beyond its column's public bounds."""
    for i, column in enumerate(columns):
        if column.bounds is not None:
            (low, high), found = column.bounds, release.values[:, i]
            if ((found < low) | (found > high)).any():
                return True
    return False
