"""What is audited: releases as rows of numbers, and neighbouring databases that are hard to hide.

The databases are made of public bounds and categories alone; no confidential value is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.cells import Column
from dpmix.mechanisms.base import Mechanism
from dpmix.mechanisms.clamped_moments import ClampedMoments
from dpmix.mechanisms.log_moments import LogMoments
from dpmix.mechanisms.noisy_counts import NoisyCounts
from dpmix.mechanisms.posterior import PosteriorRelease
from dpmix.privacy.accounting import Guarantee
from dpmix.release import Release
from dpmix.synthesis.generator import Generator
from dpmix.synthesis.records import Records

__all__ = ["Pair", "Subject", "subject_of_generator", "subject_of_mechanism"]

Floats = NDArray[np.float64]

_BEYOND = 8.0  # widths of the domain by which an input may lie outside
_GRID = 21


@dataclass(frozen=True)
class Pair:
    """Two neighbouring databases.

    Parameters
    ----------
    words : str
        How they differ.
    one, other : ndarray, shape (n, d)
        The same but for one record.
    """

    words: str
    one: Floats
    other: Floats


@dataclass(frozen=True)
class Subject:
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
    """

    kind: str
    claim: Guarantee
    pairs: tuple[Pair, ...]
    draw: Callable[[Floats, int], Floats]
    batch: int = 250


def subject_of_mechanism(mechanism: Mechanism, columns: Sequence[str], n: int) -> Subject:
    """Return a mechanism with the neighbouring databases that it is audited by.

    Parameters
    ----------
    mechanism : Mechanism
        Calibrated.
    columns : sequence of str
        Names of its columns.
    n : int
        Number of records of a database; a mechanism that noises each record by itself gets one.
    """
    claim = mechanism.guarantee
    local = claim.trust == "local"
    pairs = tuple(_mechanism_pairs(mechanism, len(columns), 1 if local else n))

    def draw(database: Floats, runs: int) -> Floats:
        if local:  # records are released independently of each other: one call is as many runs
            release, _ = mechanism.privatize(np.repeat(database, runs, axis=0), columns)
            return np.asarray(release.values, dtype=np.float64)
        return np.array([_told(mechanism.privatize(database, columns)[0]) for _ in range(runs)])

    return Subject(mechanism.kind, claim, pairs, draw, 4096 if local else 250)


def _told(release: Release) -> list[float]:
    """Return all numbers that a release tells: its values, and what was chosen with noise."""
    chosen = [release.mechanism.get("threshold", 0.0), *(release.mechanism.get("scores") or ())]
    return [*np.ravel(release.values).tolist(), *chosen]


def _mechanism_pairs(mechanism: Mechanism, d: int, n: int) -> Iterator[Pair]:
    if isinstance(mechanism, NoisyCounts):
        far = np.array([*(count - 1 for count in mechanism.levels), mechanism.classes - 1], dtype=np.float64)
        yield _moved("a record changes class and every level", np.zeros((n, d)), np.zeros(d), far)
    elif isinstance(mechanism, PosteriorRelease):
        last = float(len(mechanism.prior) - 1)
        for share in (0, n // 2):
            base = np.zeros((n, 1))
            base[1 : 1 + share] = last
            yield _moved(f"a count goes from {share} to {share + 1}", base, np.zeros(1), np.full(1, last))
    elif isinstance(mechanism, LogMoments):
        yield from _composition_pairs(mechanism, d, n)
    else:
        low, high = np.array(mechanism.domain, dtype=np.float64).T
        beyond = _BEYOND * (high - low)
        if isinstance(mechanism, ClampedMoments):
            one, other = _farthest(lambda record: mechanism.statistic(record[None, :])[0], low, high)
            yield _moved("a record moves as far as the moments can", np.tile(low, (n, 1)), one, other)
        yield _moved("a record goes from the lower bounds to the upper", np.tile(low, (n, 1)), low, high)
        yield _moved(
            "a record goes from far below the bounds to far above",
            np.tile(low, (n, 1)),
            low - beyond,
            high + beyond,
        )


def _composition_pairs(mechanism: LogMoments, d: int, n: int) -> Iterator[Pair]:
    """Uniform points on disjoint sets of parts move the means farthest (methods, section 8)."""
    middle = np.full((n, d), 1.0 / d)
    a = mechanism.thresholds[-1]

    def side(count: int) -> float:
        return max(0.0, -count * float(np.log(count * a)))

    sizes = [(s, t) for s in range(1, d) for t in range(1, d - s + 1)]
    s, t = max(sizes, key=lambda pair: side(pair[0]) + side(pair[1]))
    one, other = np.zeros(d), np.zeros(d)
    one[:s], other[s : s + t] = 1.0 / s, 1.0 / t
    words = f"a record goes from {s} equal part{'s' * (s > 1)} to {t} other{'s' * (t > 1)}"
    yield _moved(words, middle, one, other)
    yield _moved("a record goes from one part to equal parts", middle, np.eye(d)[0], np.full(d, 1.0 / d))


def _farthest(statistic: Callable[[Floats], Any], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return two records between the bounds whose statistics are far apart in L1, by coordinate ascent."""
    q = len(low)
    rng = np.random.default_rng(0)
    best, found = -1.0, (low, high)
    for _ in range(8):
        place = rng.random((2, q))
        gain = -1.0
        while True:
            before = gain
            for side in range(2):
                for column in range(q):
                    tried = []
                    for step in np.linspace(0.0, 1.0, _GRID):
                        place[side, column] = step
                        records = low + place * (high - low)
                        tried.append(float(np.abs(statistic(records[0]) - statistic(records[1])).sum()))
                    place[side, column] = np.argmax(tried) / (_GRID - 1)
                    gain = max(tried)
            if gain <= before:
                break
        if gain > best:
            records = low + place * (high - low)
            best, found = gain, (records[0].copy(), records[1].copy())
    return found


def _moved(words: str, base: Floats, one: Floats, other: Floats) -> Pair:
    first, second = base.copy(), base.copy()
    first[0], second[0] = one, other
    return Pair(words, first, second)


def subject_of_generator(generator: Generator) -> Subject:
    """Return a generator of synthetic records with the neighbouring databases that it is audited by.

    A record goes from a value that all share to one that nobody has. Of a release two numbers are told: how
    many records have, or lie in the cell of, either value.
    """
    columns, n = generator.columns, generator.n
    ends = [_ends(column) for column in columns]
    low, high = (np.array(side, dtype=np.float64) for side in zip(*ends, strict=True))
    cells = generator.describe().get("bins") or [0] * len(columns)
    reach = np.array(
        [
            (h - x) / count if column.bounds is not None and count else 0.0
            for column, count, x, h in zip(columns, cells, low, high, strict=True)
        ]
    )
    labels = tuple(("a", "b") if c.free else c.categories for c in columns)
    pair = _moved("a record takes a value that nobody else has", np.tile(low, (n, 1)), low, high)

    def draw(database: Floats, runs: int) -> Floats:
        records = Records(columns, database, labels, (0,) * len(columns))
        found = np.empty((runs, 2))
        for run in range(runs):
            release = generator.release(records)
            for place, value in enumerate((low, high)):
                wanted = _in_release(value, columns, labels, release)
                near = np.abs(release.values - wanted) <= reach
                found[run, place] = np.count_nonzero(near.all(axis=1))
        return found

    return Subject(generator.kind, generator.guarantee, (pair,), draw)


def _ends(column: Column) -> tuple[float, float]:
    if column.bounds is not None:
        return column.bounds
    return 0.0, 1.0 if column.free else len(column.categories or ()) - 1.0


def _in_release(
    value: Floats, columns: Sequence[Column], labels: Sequence[tuple[str, ...] | None], release: Release
) -> Floats:
    """Return a record in the codes of a release, whose free labels are numbered anew; -1 where not there."""
    found = value.copy()
    for i, column in enumerate(columns):
        if column.free:
            names = (release.labels[i] if release.labels else None) or ()
            text = (labels[i] or ())[int(value[i])]
            found[i] = names.index(text) if text in names else -1.0
    return found
