"""What is audited of mechanisms: releases as rows of numbers, and databases that are hard to tell apart.

The databases are made of public bounds and categories alone; no confidential value is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.mechanisms.curators.mechanism import Mechanism
from dpmix.mechanisms.curators.neighbours import Loss, Pair
from dpmix.privacy.accounting import Guarantee
from dpmix.release.sanitized import Release

__all__ = ["ENOUGH", "AuditedSubject", "subject_of_mechanism"]

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
        return np.array([_told(mechanism.privatize(database, columns)[0]) for _ in range(runs)])

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


def _told(release: Release) -> list[float]:
    """Return all numbers that a release tells: its values, and what was chosen with noise."""
    return [*np.ravel(release.values).tolist(), *release.mechanism.told()]
