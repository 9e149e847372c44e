"""What is audited of mechanisms and generators: releases as rows of numbers, and neighbouring databases.

The databases are made of public bounds and categories alone; no confidential value is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.mechanisms.curators.mechanism import Mechanism
from dpmix.mechanisms.curators.neighbours import BEYOND, Loss, Pair, moved
from dpmix.privacy.accounting import Guarantee
from dpmix.release.columns import Cells, Column
from dpmix.release.sanitized import Release
from dpmix.synthesis import records as confidential
from dpmix.synthesis.generator import Generator
from dpmix.synthesis.records import Records

__all__ = ["ENOUGH", "AuditedSubject", "subject_of_generator", "subject_of_mechanism"]

Floats = NDArray[np.float64]

ENOUGH = 1000
"""Records that a database has at most where noise and guarantee do not depend on their number."""


@dataclass(frozen=True)
class AuditedSubject:
    """What is audited.

    Parameters
    ----------
    kind : str
        Of the mechanism or the generator.
    claim : Guarantee
        By its own account.
    pairs : tuple of Pair
        Neighbouring databases.
    draw : callable
        From a database and a number of runs to as many independent releases, shape (runs, q), all that they
        tell as numbers.
    batch : int
        Runs to ask for at once.
    loss : callable, optional
        From a pair to the privacy loss of releases under the claimed law, or None where that is not known.
    fault : str
        What is wrong with `faulty`.
    faulty : callable, optional
        Gives the same subject with a fault that an audit should find.
    strays : callable, optional
        Whether releases have values beyond the public bounds.
    stated : int
        Number of records that the guarantee is stated for; the databases may have fewer.
    """

    kind: str
    claim: Guarantee
    pairs: tuple[Pair, ...]
    draw: Callable[[Floats, int], Floats]
    batch: int = 250
    loss: Callable[[Pair], Loss | None] = lambda pair: None
    fault: str = ""
    faulty: Callable[[], AuditedSubject] | None = None
    strays: Callable[[], bool] | None = None
    stated: int = 0


def subject_of_mechanism(
    mechanism: Mechanism, columns: Sequence[str], n: int, check: Callable[[int, int], None] | None = None
) -> AuditedSubject:
    """Return a mechanism with the neighbouring databases that it is audited by.

    Parameters
    ----------
    mechanism : Mechanism
        Calibrated.
    columns : sequence of str
        Names of its columns.
    n : int
        Number of records of a database; a mechanism that noises each record by itself gets one, and one
        whose noise does not depend on it a thousand at most.
    check : callable, optional
        Called, before databases are made, with the number of records and of numbers that a release goes
        through.
    """
    claim = mechanism.guarantee
    local = claim.trust == "local"
    stated, n = n, min(n, ENOUGH) if mechanism.of_any_number and not local else n
    if n != stated:
        known: Any = mechanism
        mechanism = dataclasses.replace(known, n=n)
    if check is not None:
        check(stated, n * len(columns))
    pairs = tuple(mechanism.neighbours(len(columns), 1 if local else n))

    def draw(database: Floats, runs: int) -> Floats:
        if local:  # records are released independently of each other: one call is as many runs
            release, _ = mechanism.privatize(np.repeat(database, runs, axis=0), columns)
            return np.asarray(release.values, dtype=np.float64)
        return np.array(
            [_values_of_mechanism(mechanism.privatize(database, columns)[0]) for _ in range(runs)]
        )

    def loss(pair: Pair) -> Loss | None:
        return mechanism.loss(pair.one, pair.other)

    fault, changed = mechanism.weakened() or ("", None)
    return AuditedSubject(
        kind=mechanism.kind,
        claim=claim,
        pairs=pairs,
        draw=draw,
        batch=4096 if local else 250,
        loss=loss,
        fault=fault,
        faulty=None if changed is None else lambda: subject_of_mechanism(changed, columns, n),
        stated=stated,
    )


def _values_of_mechanism(release: Release) -> list[float]:
    """Return all numbers that a release tells: its values, and what was chosen with noise."""
    return [*np.ravel(release.values).tolist(), *release.mechanism.told()]


# What is audited of generators of synthetic records, and their neighbouring databases


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
        return np.array([_values_of_records(of.release(given), columns, labels, cells) for _ in range(runs)])

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


def _values_of_records(
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
