"""What an attack came to, and whether that is more than the guarantee allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

__all__ = ["Outcome", "best_accuracy", "guessed", "table"]

SURELY = 1e-6
"""How improbable an accuracy must be at the bound to count as above it."""


@dataclass(frozen=True)
class Outcome:
    """One attack.

    Parameters
    ----------
    what : str
        What was attacked, and how.
    reached : str
        The accuracy, or what the command answered.
    allowed : str
        The best accuracy that the guarantee allows, or what should be answered.
    beaten : bool
        Whether the attack did better than it may.
    """

    what: str
    reached: str
    allowed: str
    beaten: bool = False


def best_accuracy(epsilon: float, delta: float = 0.0) -> float:
    """Return the best accuracy of telling two neighbours apart, equally likely, under (eps, delta)-DP."""
    return (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))


def guessed(
    what: str,
    releases: Sequence[Sequence[Any]],
    second: Callable[[Any], bool],
    bound: float | None,
    note: str = "",
) -> Outcome:
    """Guess of which of two neighbouring tables each release was made.

    Parameters
    ----------
    what : str
    releases : two sequences
        Of what was released of the first table and of the second, as many.
    second : callable
        Whether the attack takes a release for one of the second.
    bound : float or None
        The best accuracy that the guarantee allows; None where there is no guarantee.
    note : str
        Why there is none.
    """
    right = [second(one) is bool(which) for which in (0, 1) for one in releases[which]]
    hits, runs = int(np.sum(right)), len(right)
    beaten = bound is not None and stats.binomtest(hits, runs, bound, "greater").pvalue < SURELY
    return Outcome(what, f"{hits / runs:.3f}", f"{bound:.3f}" if bound is not None else note, beaten)


def table(title: str, heads: tuple[str, str], outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as a table of text."""
    rows = [(title, *heads), *((each.what, each.reached, each.allowed) for each in outcomes)]
    marks = ["", *("  BEATEN" if each.beaten else "" for each in outcomes)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + mark
        for row, mark in zip(rows, marks, strict=True)
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
