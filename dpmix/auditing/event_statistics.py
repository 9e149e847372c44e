"""The statistics that an audit tells releases apart by, fitted to some of the draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmix.auditing.bound import Score

__all__ = ["fitted_scores", "lowest_bit"]

Floats = NDArray[np.float64]

_FEW = 0.05  # of the draws: distinct releases up to which each is counted by itself
_COLUMNS = 8
_BOXES = {2: 7, 3: 4}  # quantiles of each of so many entries


def fitted_scores(one: Floats, other: Floats) -> list[Score]:
    """Return statistics of releases that may tell two databases apart.

    Where releases repeat, the log ratio of how often each was seen, and for two or three entries that of
    boxes of them; the log likelihood ratios that Laplace
    and Gaussian noise around what was seen would have; the entries that differ most; the largest entry; and
    the lowest bits, which tell on what grid of floating-point numbers a release lies (Mironov 2012).

    Parameters
    ----------
    one, other : ndarray, shape (runs, q)
        Releases of two neighbouring databases.
    """
    both = np.concatenate([one, other])
    kept = both.shape[1] <= 64 and len(np.unique(both, axis=0)) <= max(16, _FEW * len(both))
    found = [_frequencies(one, other)] if kept else []
    if both.shape[1] in (2, 3):
        found.append(_boxes(one, other))
    centres = np.median(one, axis=0), np.median(other, axis=0)
    spread = np.mean(np.abs(np.concatenate([one - centres[0], other - centres[1]])), axis=0)
    spread[spread == 0] = 1.0
    gap = np.abs(centres[1] - centres[0]) / spread
    found += [
        Score("the Laplace log likelihood ratio", _laplace(*centres, spread)),
        Score("the Gaussian log likelihood ratio", _gaussian(one, other)),
        Score("the largest entry", lambda releases: np.abs(releases).max(axis=1)),
        Score("the lowest bit of all entries", lambda releases: lowest_bit(releases).min(axis=1)),
    ]
    order = np.argsort(-gap, kind="stable")[:_COLUMNS]
    found += [Score(f"entry {column + 1}", _entry(int(column))) for column in sorted(order.tolist())]
    if one.shape[1] > 1:
        found += [
            Score(f"the lowest bit of entry {column + 1}", _lowest(int(column)))
            for column in sorted(order.tolist())
        ]
    return found


def lowest_bit(values: Floats) -> Floats:
    """Return the exponent of the lowest bit set in each double; 1100 for zero and what is not finite."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    low = (whole & -whole).astype(np.float64)
    _, place = np.frexp(low)
    return np.where(whole == 0, 1100.0, exponent - 53.0 + place - 1.0)


def _entry(column: int) -> Callable[[Floats], Floats]:
    return lambda releases: releases[:, column]


def _lowest(column: int) -> Callable[[Floats], Floats]:
    return lambda releases: lowest_bit(releases[:, column])


def _laplace(first: Floats, second: Floats, spread: Floats) -> Callable[[Floats], Floats]:
    def score(releases: Floats) -> Floats:
        ratio = (np.abs(releases - first) - np.abs(releases - second)) / spread
        return np.asarray(ratio.sum(axis=1))

    return score


def _gaussian(one: Floats, other: Floats) -> Callable[[Floats], Floats]:
    variance = np.concatenate([one - one.mean(axis=0), other - other.mean(axis=0)]).var(axis=0)
    variance[variance == 0] = 1.0
    slope = (other.mean(axis=0) - one.mean(axis=0)) / variance
    return lambda releases: releases @ slope


def _boxes(one: Floats, other: Floats) -> Score:
    """Return the log ratio of frequencies in boxes of quantiles, the zero of each entry by itself."""
    both = np.concatenate([one, other])
    shares = np.linspace(0.0, 1.0, _BOXES[both.shape[1]] + 1)[1:-1]
    least = np.nextafter(0.0, 1.0)
    edges = [np.unique(np.append(np.quantile(entry, shares), (0.0, least))) for entry in both.T]
    shape = tuple(len(cuts) + 1 for cuts in edges)

    def place(releases: Floats) -> NDArray[np.int64]:
        cells = [np.searchsorted(cuts, entry, "right") for cuts, entry in zip(edges, releases.T, strict=True)]
        return np.asarray(np.ravel_multi_index(tuple(cells), shape), dtype=np.int64)

    size = int(np.prod(shape))
    seen, also = (np.bincount(place(side), minlength=size) + 0.5 for side in (one, other))
    ratio = np.log(seen / also)
    return Score("the log ratio of frequencies of boxes", lambda releases: ratio[place(releases)])


def _frequencies(one: Floats, other: Floats) -> Score:
    rows, place = np.unique(np.concatenate([one, other]), axis=0, return_inverse=True)
    place = place.ravel()
    seen = np.bincount(place[: len(one)], minlength=len(rows)) + 0.5
    also = np.bincount(place[len(one) :], minlength=len(rows)) + 0.5
    table = {row.tobytes(): float(ratio) for row, ratio in zip(rows, np.log(seen / also), strict=True)}

    def score(releases: Floats) -> Floats:
        clean = np.ascontiguousarray(releases + 0.0)
        return np.array([table.get(row.tobytes(), 0.0) for row in clean])

    return Score("the log ratio of frequencies", score)
