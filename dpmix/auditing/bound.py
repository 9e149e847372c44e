"""From counts of an event to a lower bound on epsilon, and the search for the event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["Event", "Score", "learn_event", "lower_bound", "paired_bound"]

Floats = NDArray[np.float64]

_THRESHOLDS = 200


def lower_bound(hits: Any, runs: int, others: Any, other_runs: int, delta: float, confidence: float) -> Any:
    """Bound epsilon from below by how often an event happened under two neighbouring databases.

    Under (epsilon, delta)-DP Pr(E | x) <= e^epsilon Pr(E | x') + delta, so that with Clopper and Pearson's
    bounds, p below Pr(E | x) and p' above Pr(E | x'), epsilon is at least log((p - delta) / p').

    Parameters
    ----------
    hits, others : int or ndarray of int
        How often the event happened in `runs` releases of x, and in `other_runs` of x'.
    runs, other_runs : int
        Numbers of releases.
    delta : float
        At which the guarantee is stated.
    confidence : float
        Of both bounds together.

    Returns
    -------
    float or ndarray
        Zero where the event says nothing.
    """
    error = 0.5 * (1.0 - confidence)
    hits, others = np.asarray(hits, dtype=np.float64), np.asarray(others, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1.0), runs - hits + 1.0, error), 0.0)
        rest = np.maximum(other_runs - others, 1.0)
        most = np.where(others < other_runs, special.betaincinv(others + 1.0, rest, 1.0 - error), 1.0)
        bound = np.log(np.maximum(least - delta, 0.0) / most)
    found = np.maximum(bound, 0.0)
    return float(found) if found.ndim == 0 else found


def paired_bound(hits: Any, others: Any, wins: Any, losses: Any, runs: int, confidence: float) -> Any:
    """Bound epsilon from below as `lower_bound`, at delta = 0, from releases taken in pairs.

    The i-th release of x and the i-th of x' make a pair. Of the pairs in which one alone has the event, it is
    that of x with probability o/(1 + o), o = p (1 - p') / (p' (1 - p)), so that Clopper and Pearson's bound
    of that probability bounds o, and p/p' = o (1 - p)/(1 - p') with bounds of p and p'. Nine tenths of the
    error go to o. One random number decides, not two at their worst together: rare events are bounded the
    sharper for it.

    Parameters
    ----------
    hits, others : int or ndarray of int
        How often the event happened in `runs` releases of x, and in as many of x'.
    wins, losses : int or ndarray of int
        In how many pairs it happened in that of x alone, and in that of x' alone.
    runs : int
        Number of pairs.
    confidence : float
        Of the three bounds together.

    Returns
    -------
    float or ndarray
        Zero where the event says nothing.
    """
    error = 1.0 - confidence
    hits, others, wins, losses = (np.asarray(x, dtype=np.float64) for x in (hits, others, wins, losses))
    share = special.betaincinv(np.maximum(wins, 1.0), losses + 1.0, 0.9 * error)
    share = np.where(wins > 0, share, 0.0)
    most = special.betaincinv(hits + 1.0, np.maximum(runs - hits, 1.0), 1.0 - 0.05 * error)
    most = np.where(hits < runs, most, 1.0)
    least = special.betaincinv(np.maximum(others, 1.0), runs - others + 1.0, 0.05 * error)
    least = np.where(others > 0, least, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log(share / (1.0 - share)) + np.log((1.0 - most) / (1.0 - least))
    found = np.maximum(np.nan_to_num(bound, nan=0.0, neginf=0.0), 0.0)
    return float(found) if found.ndim == 0 else found


@dataclass(frozen=True)
class Score:
    """A number of each release by which events are told: a statistic, and its words."""

    words: str
    of: Callable[[Floats], Floats]


@dataclass(frozen=True)
class Event:
    """The event that a score is at least, or at most, a threshold.

    Parameters
    ----------
    score : Score
    threshold : float
    above : bool
        Whether the score is to be at least the threshold.
    first : bool
        Whether it is the first of the two databases under which the event is the likelier.
    paired : bool
        Whether it is `paired_bound` that is to be taken of it.
    """

    score: Score
    threshold: float
    above: bool
    first: bool
    paired: bool = False

    def happened(self, releases: Floats) -> NDArray[np.bool_]:
        """Return which of the releases, shape (runs, q), have the event."""
        values = self.score.of(releases)
        return np.asarray(values >= self.threshold if self.above else values <= self.threshold)

    def bound(
        self, likely: Floats, other: Floats, delta: float, confidence: float
    ) -> tuple[float, tuple[int, int]]:
        """Return the lower bound on epsilon that releases give, and how often either have the event.

        Parameters
        ----------
        likely, other : ndarray, shape (runs, q)
            Of the database under which the event is the likelier, and of its neighbour.
        """
        one, also = self.happened(likely), self.happened(other)
        runs, counts = len(one), (int(one.sum()), int(also.sum()))
        if not self.paired:
            return lower_bound(counts[0], runs, counts[1], runs, delta, confidence), counts
        wins, losses = int((one & ~also).sum()), int((also & ~one).sum())
        return paired_bound(*counts, wins, losses, runs, confidence), counts

    def __str__(self) -> str:
        """Say the event in words."""
        return f"{self.score.words} {'>=' if self.above else '<='} {self.threshold:.6g}"


def learn_event(
    scores: Sequence[Score], one: Floats, other: Floats, delta: float, confidence: float
) -> tuple[float, Event] | None:
    """Return the event with the largest lower bound on these releases, and the bound.

    The bound is that of a choice among many events on the same draws: it serves to compare them, and is to be
    taken anew from other draws.

    Parameters
    ----------
    scores : sequence of Score
    one, other : ndarray, shape (runs, q)
        Releases of two neighbouring databases.
    delta, confidence : float
        As for `lower_bound`.
    """
    best: tuple[float, Event] | None = None
    for score in scores:
        first, second = np.sort(score.of(one)), np.sort(score.of(other))
        pooled = np.unique(np.concatenate([first, second]))
        if len(pooled) > _THRESHOLDS:  # quantiles, and both tails one by one
            ranks = np.linspace(0, len(pooled) - 1, _THRESHOLDS - 40).astype(np.int64)
            pooled = np.unique(np.concatenate([pooled[:20], pooled[ranks], pooled[-20:]]))
        for above in (True, False):
            counts = [
                len(side) - np.searchsorted(side, pooled, "left")
                if above
                else np.searchsorted(side, pooled, "right")
                for side in (first, second)
            ]
            for is_first in (True, False):
                hits, others = counts if is_first else counts[::-1]
                runs = (len(one), len(other)) if is_first else (len(other), len(one))
                tried = [lower_bound(hits, runs[0], others, runs[1], delta, confidence)]
                if delta == 0 and runs[0] == runs[1]:  # as many pairs as are expected
                    alone = hits * (1 - others / runs[0]), others * (1 - hits / runs[0])
                    tried.append(paired_bound(hits, others, *alone, runs[0], confidence))
                for paired, bounds in enumerate(tried):
                    place = int(np.argmax(bounds))
                    if best is None or bounds[place] > best[0]:
                        event = Event(score, float(pooled[place]), above, is_first, bool(paired))
                        best = float(bounds[place]), event
    return best
