"""What is audited of mechanisms: releases as rows of numbers, and databases that are hard to tell apart.

The databases are made of public bounds and categories alone; no confidential value is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.auditing.losses import Loss, loss_of_mechanism
from dpmix.auditing.planted_faults import faulty_mechanism
from dpmix.mechanisms.clamped_moments.curator import ClampedMoments
from dpmix.mechanisms.clamped_moments.grouped_moments import GroupedMoments
from dpmix.mechanisms.curators.mechanism import Mechanism
from dpmix.mechanisms.curators.private_groups import Groups
from dpmix.mechanisms.log_moments.curator import LogMoments
from dpmix.mechanisms.log_moments.grouped_log_moments import GroupedLogMoments
from dpmix.mechanisms.noisy_counts.curator import NoisyCounts
from dpmix.mechanisms.perturbed_histogram.curator import PerturbedHistogram
from dpmix.mechanisms.posterior.curator import PosteriorRelease
from dpmix.mechanisms.randomized_response.curator import RandomizedResponse
from dpmix.privacy.accounting import Guarantee
from dpmix.release.sanitized import Release

__all__ = ["BEYOND", "ENOUGH", "Pair", "Subject", "moved", "smaller", "subject_of_mechanism"]

Floats = NDArray[np.float64]

BEYOND = 8.0
"""Widths of the domain by which an input may lie outside."""
ENOUGH = 1000
"""Records that a database has at most where noise and guarantee do not depend on their number."""
_GRID = 21


@dataclass(frozen=True)
class Pair:
    """Two neighbouring databases.

    Parameters
    ----------
    words : str
        How they differ.
    one, other : ndarray, shape (n, d), or (n, d + 1)
        The same but for one record; codes of groups stand last, where there are groups.
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
    faulty: Callable[[], Subject] | None = None
    strays: Callable[[], bool] | None = None
    stated: int = 0


def subject_of_mechanism(
    mechanism: Mechanism, columns: Sequence[str], n: int, check: Callable[[int, int], None] | None = None
) -> Subject:
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
    stated, n = n, n if local else smaller(mechanism, n)
    if n != stated:
        known: Any = mechanism
        mechanism = dataclasses.replace(known, n=n)
    if check is not None:
        check(stated, n * len(columns))
    pairs = tuple(_mechanism_pairs(mechanism, len(columns), 1 if local else n))

    def draw(database: Floats, runs: int) -> Floats:
        if local:  # records are released independently of each other: one call is as many runs
            release, _ = mechanism.privatize(np.repeat(database, runs, axis=0), columns)
            return np.asarray(release.values, dtype=np.float64)
        return np.array([_told(mechanism.privatize(database, columns)[0]) for _ in range(runs)])

    def loss(pair: Pair) -> Loss | None:
        return loss_of_mechanism(mechanism, pair.one, pair.other)

    fault, changed = faulty_mechanism(mechanism)
    return Subject(
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


def smaller(mechanism: Mechanism, n: int) -> int:
    """Return of how many records databases are, as many or fewer: some noises do not depend on the number."""
    free = isinstance(mechanism, PerturbedHistogram | NoisyCounts | ClampedMoments)
    return min(n, ENOUGH) if free else n


def _told(release: Release) -> list[float]:
    """Return all numbers that a release tells: its values, and what was chosen with noise."""
    return [*np.ravel(release.values).tolist(), *release.mechanism.told()]


def _mechanism_pairs(mechanism: Mechanism, d: int, n: int) -> Iterator[Pair]:
    groups: Groups | None = getattr(mechanism, "groups", None)
    if groups is None:
        yield from _record_pairs(mechanism, d, n)
        return
    far, low, high = _reach(mechanism, d)  # who changes values alone is told apart less
    base = np.tile(np.append(low, 0.0), (n, 1))
    yield moved(f"a record changes its {groups.name}", base, np.append(far, 0.0), np.append(far, 1.0))
    words = f"a record changes its {groups.name} and all values"
    yield moved(words, base, np.append(low, 0.0), np.append(high, 1.0))


def _reach(mechanism: Mechanism, d: int) -> tuple[Floats, Floats, Floats]:
    """Return records of which the first is worst to change its group, the others far apart."""
    if isinstance(mechanism, NoisyCounts):
        high = np.array([*(count - 1 for count in mechanism.levels), mechanism.classes - 1], dtype=np.float64)
        return np.zeros(d), np.zeros(d), high
    if isinstance(mechanism, GroupedLogMoments):
        a = mechanism.thresholds[-1]
        u = mechanism.settings(a).centre - float(np.log(a))
        parts = np.arange(1, d + 1)
        s = int(np.argmax(np.maximum(0.0, -parts * np.log(parts * a)) + (d - 2 * parts) * u)) + 1
        far, spread = np.zeros(d), np.zeros(d)
        far[:s], spread[d // 2 :] = 1.0 / s, 1.0 / (d - d // 2)
        return far, np.eye(d)[0], spread
    low, high = np.array(mechanism.domain, dtype=np.float64).T
    beyond = BEYOND * (high - low)
    return high if isinstance(mechanism, GroupedMoments) else low, low - beyond, high + beyond


def _record_pairs(mechanism: Mechanism, d: int, n: int) -> Iterator[Pair]:
    if isinstance(mechanism, NoisyCounts):
        far = np.array([*(count - 1 for count in mechanism.levels), mechanism.classes - 1], dtype=np.float64)
        yield moved("a record changes class and every level", np.zeros((n, d)), np.zeros(d), far)
    elif isinstance(mechanism, RandomizedResponse):
        ends = np.array([len(names) - 1.0 for names in mechanism.categories])
        yield moved(
            "a record goes from the first categories to the last", np.zeros((n, d)), np.zeros(d), ends
        )
    elif isinstance(mechanism, PosteriorRelease):
        last = float(len(mechanism.prior) - 1)
        for share in (0, n // 2):
            base = np.zeros((n, 1))
            base[1 : 1 + share] = last
            yield moved(f"a count goes from {share} to {share + 1}", base, np.zeros(1), np.full(1, last))
    elif isinstance(mechanism, LogMoments):
        yield from _composition_pairs(mechanism, d, n)
    else:
        low, high = np.array(mechanism.domain, dtype=np.float64).T
        beyond = BEYOND * (high - low)
        if isinstance(mechanism, ClampedMoments):
            one, other = _farthest(lambda record: mechanism.statistic(record[None, :])[0], low, high)
            yield moved("a record moves as far as the moments can", np.tile(low, (n, 1)), one, other)
        yield moved("a record goes from the lower bounds to the upper", np.tile(low, (n, 1)), low, high)
        yield moved(
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
    yield moved(words, middle, one, other)
    yield moved("a record goes from one part to equal parts", middle, np.eye(d)[0], np.full(d, 1.0 / d))


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


def moved(words: str, base: Floats, one: Floats, other: Floats) -> Pair:
    """Return two databases, shape (n, d), that are `base` but for their first record."""
    first, second = base.copy(), base.copy()
    first[0], second[0] = one, other
    return Pair(words, first, second)
