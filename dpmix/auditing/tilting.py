"""Where to cut the privacy loss of the claimed law, from few releases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from dpmix.auditing.bound import Event, Score, lower_bound, paired_bound

__all__ = ["cut_of_loss"]

Floats = NDArray[np.float64]

_THRESHOLDS = 400
_STEEPEST = 64.0
_LARGEST = 40.0  # losses beyond are as good as certain


def cut_of_loss(
    score: Score, one: Floats, other: Floats, delta: float, confidence: float, runs: int
) -> Event | None:
    """Return the event that a loss is beyond a threshold which gives the largest bound in so many releases.

    Of a release with loss L the odds that it is of the first database are exp(L) if the claimed law is right,
    and exp(k L) if, say, Laplace or Gaussian noise has another scale. With k by maximum likelihood, each
    release of either database tells of the probabilities under both, also where few of one lie.

    Parameters
    ----------
    score : Score
        The loss: positive where the first database is the likelier.
    one, other : ndarray, shape (learnt, q)
        Releases of two neighbouring databases, equally many.
    delta, confidence : float
        As for `lower_bound`.
    runs : int
        Releases of each that the bound is to be taken from.
    """
    sides = [np.clip(score.of(side), -_LARGEST, _LARGEST) for side in (one, other)]
    signed = np.concatenate([sides[0], -sides[1]])
    if not signed.any():
        return None
    k = float(
        optimize.minimize_scalar(
            lambda k: -float(special.log_expit(k * signed).sum()), bounds=(0.0, _STEEPEST), method="bounded"
        ).x
    )
    losses = np.sort(np.concatenate(sides))
    of_first = special.expit(k * losses) / len(one)
    of_other = special.expit(-k * losses) / len(one)
    best: tuple[float, Event] | None = None
    for above in (True, False):
        order = slice(None, None, -1) if above else slice(None)
        values = losses[order]
        ends = np.append(np.nonzero(np.diff(values))[0], len(values) - 1)
        ends = ends[np.unique(np.linspace(0, len(ends) - 1, _THRESHOLDS).astype(int))]
        first, second = (np.minimum(np.cumsum(p[order])[ends], 1.0) * runs for p in (of_first, of_other))
        hits, others = (first, second) if above else (second, first)
        tried = [lower_bound(hits, runs, others, runs, delta, confidence)]
        if delta == 0:
            alone = hits * (1 - others / runs), others * (1 - hits / runs)
            tried.append(paired_bound(hits, others, *alone, runs, confidence))
        for paired, bounds in enumerate(tried):
            place = int(np.argmax(bounds))
            if best is None or bounds[place] > best[0]:
                cut = float(values[ends[place]])
                best = float(bounds[place]), Event(score, cut, above, above, bool(paired))
    return None if best is None or best[0] <= 0.0 else best[1]
