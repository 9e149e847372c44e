"""One audit: learn an event from some releases, bound its probabilities from others.

First how counts of an event bound epsilon from below, and the search for the event; then the statistics that
events are of; at the end the audit, and whether noise is used twice.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

if TYPE_CHECKING:
    from dpmix.auditing.inputs import AuditedSubject
    from dpmix.mechanisms.curators.mechanism import Pair

Floats = NDArray[np.float64]
Progress = Callable[[int], None]

_CUTS = 200  # of a score that are tried, and of a loss twice as many
_STEEPEST = 64.0
_LARGEST = 40.0  # losses beyond are as good as certain
_FEW = 0.05  # of the draws: distinct releases up to which each is counted by itself
_COLUMNS = 8
_BOXES = {2: 7, 3: 4}  # quantiles of each of so many entries
_SEQUENCES = (16, 64, 256, 1024)
LOOKED_AT = 3 * _SEQUENCES[-1]
"""Releases at most that are compared after forks."""
_CHANCE = 1e-9  # that two processes of independent noise release the same sequence
_STATED = 0.999  # confidence that thresholds of losses are best for
_HINT = 0.9  # confidence of what is looked for, not stated
_CLEARLY = 0.8  # of a bound that may be the luck of many tries
_PATIENCE = 120.0  # seconds
_LOSS = "the privacy loss of the claimed law"

# From counts of an event to a lower bound on epsilon, and the search for the event


def lower_bound(hits: Any, runs: int, others: Any, other_runs: int, delta: float, confidence: float) -> Any:
    """Bound epsilon from below by how often an event happened under two neighbouring databases.

    Under (epsilon, delta)-DP Pr(E | x) <= e^epsilon Pr(E | x') + delta, so that with Clopper and Pearson's
    bounds, p below Pr(E | x) and p' above Pr(E | x'), both together of the confidence, epsilon is at least
    log((p - delta) / p'); zero where the event says nothing.

    Parameters
    ----------
    hits, others : int or ndarray of int
        How often the event happened in `runs` releases of x, and in `other_runs` of x'.
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
        """Return the lower bound on epsilon that releases (runs, q) give, and how often they have the event.

        The first are of the database under which the event is the likelier.
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
    """Return the event with the largest lower bound on these releases (runs, q), and the bound.

    The bound is that of a choice among many events on the same draws: it serves to compare them, and is to be
    taken anew from other draws.
    """
    best: tuple[float, Event] | None = None
    for score in scores:
        first, second = np.sort(score.of(one)), np.sort(score.of(other))
        pooled = np.unique(np.concatenate([first, second]))
        if len(pooled) > _CUTS:  # quantiles, and both tails one by one
            ranks = np.linspace(0, len(pooled) - 1, _CUTS - 40).astype(np.int64)
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
                bound, place, paired = _best_cut(hits, others, *runs, delta, confidence)
                if best is None or bound > best[0]:
                    best = bound, Event(score, float(pooled[place]), above, is_first, paired)
    return best


def _best_cut(
    hits: Any, others: Any, runs: int, other_runs: int, delta: float, confidence: float
) -> tuple[float, int, bool]:
    """Return the largest bound that events so often give, which of them gives it, and whether in pairs."""
    tried = [lower_bound(hits, runs, others, other_runs, delta, confidence)]
    if delta == 0 and runs == other_runs:  # as many pairs as are expected
        alone = hits * (1 - others / runs), others * (1 - hits / runs)
        tried.append(paired_bound(hits, others, *alone, runs, confidence))
    places = [int(np.argmax(bounds)) for bounds in tried]
    paired = int(np.argmax([bounds[place] for bounds, place in zip(tried, places, strict=True)]))
    return float(tried[paired][places[paired]]), places[paired], bool(paired)


def cut_of_loss(
    score: Score, one: Floats, other: Floats, delta: float, confidence: float, runs: int
) -> Event | None:
    """Return the event that a loss is beyond a threshold which gives the largest bound in so many releases.

    Of a release with loss L, positive where the first database is the likelier, the odds that it is of the
    first are exp(L) if the claimed law is right, and exp(k L) if, say, Laplace or Gaussian noise has another
    scale. With k by maximum likelihood, each release of either database, equally many, tells of the
    probabilities under both, also where few of one lie.
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
        ends = ends[np.unique(np.linspace(0, len(ends) - 1, 2 * _CUTS).astype(int))]
        first, second = (np.minimum(np.cumsum(p[order])[ends], 1.0) * runs for p in (of_first, of_other))
        hits, others = (first, second) if above else (second, first)
        bound, place, paired = _best_cut(hits, others, runs, runs, delta, confidence)
        if best is None or bound > best[0]:
            best = bound, Event(score, float(values[ends[place]]), above, above, paired)
    return None if best is None or best[0] <= 0.0 else best[1]


# The statistics that an audit tells releases apart by, fitted to some of the draws


def fitted_scores(one: Floats, other: Floats) -> list[Score]:
    """Return statistics of releases (runs, q) that may tell two databases apart.

    Where releases repeat, the log ratio of how often each was seen, and for two or three entries that of
    boxes of them; the log likelihood ratios that Laplace and Gaussian noise around what was seen would have;
    the entries that differ most; the largest entry; and the lowest bits, which tell on what grid of
    floating-point numbers a release lies (Mironov 2012).
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
    columns = sorted(np.argsort(-gap, kind="stable")[:_COLUMNS].tolist())
    found += [Score(f"entry {c + 1}", _entry(c)) for c in columns]
    if one.shape[1] > 1:
        found += [Score(f"the lowest bit of entry {c + 1}", _lowest(c)) for c in columns]
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


# The audit


@dataclass(frozen=True)
class Trial:
    """What an audit found.

    Parameters
    ----------
    bound : float
        Lower bound on epsilon at `delta`, with the confidence asked for.
    delta : float
    pair : Pair
        The neighbouring databases that were told apart best.
    event : Event or None
        By which; None where no event tells anything.
    counts : (int, int)
        How often it happened under the database where it is likelier, and under the other.
    runs : int
        Releases of each of the two in which it was counted.
    """

    bound: float
    delta: float
    pair: Pair
    event: Event | None
    counts: tuple[int, int]
    runs: int


def try_out(
    subject: AuditedSubject, runs: int, delta: float, confidence: float, progress: Progress | None = None
) -> Trial:
    """Bound epsilon at delta from below, from `runs` releases, 80 at least, of each of two databases.

    An eighth of the runs chooses among the pairs of databases. Where the privacy loss of the claimed law
    tells them apart as well as anything does, only a threshold is to be learnt, from a further eighth; else
    three eighths teach the event. The other runs, which nothing was chosen by, give the bound, which holds
    with `confidence`. `progress` is called with the number of releases drawn since the last call; 2 `runs` of
    them in all, about.
    """

    def draw(database: Floats, count: int) -> Floats:
        parts, left = [], count
        while left > 0:
            size = min(left, subject.batch)
            parts.append(subject.draw(database, size))
            left -= size
            if progress is not None:
                progress(size)
        return np.concatenate(parts)

    first = max(20, runs // 8 // len(subject.pairs))
    best: tuple[float, Pair, Event | None, Floats, Floats] | None = None
    for pair in subject.pairs:
        one, other = draw(pair.one, first), draw(pair.other, first)
        learnt = _learn(subject, pair, one, other, delta, _HINT, runs - runs // 4)
        gain, event = (0.0, None) if learnt is None else learnt
        if best is None or gain > best[0]:  # of equals the first, which is thought the worst
            best = gain, pair, event, one, other
    assert best is not None  # every subject has a pair
    _, pair, event, one, other = best
    held = runs // 2 if event is None or event.score.words != _LOSS else runs - runs // 4
    more = max(20, runs - held - first * len(subject.pairs))
    one = np.concatenate([one, draw(pair.one, more)])
    other = np.concatenate([other, draw(pair.other, more)])
    learnt = _learn(subject, pair, one, other, delta, confidence, held)
    if learnt is None or learnt[0] <= 0.0:
        learnt = _learn(subject, pair, one, other, delta, _HINT, held)
    if learnt is None or learnt[0] <= 0.0:
        return Trial(0.0, delta, pair, None, (0, 0), 0)
    event = learnt[1]
    likely, neighbour = (pair.one, pair.other) if event.first else (pair.other, pair.one)
    bound, counts = event.bound(draw(likely, held), draw(neighbour, held), delta, confidence)
    return Trial(bound, delta, pair, event, counts, held)


def _learn(
    subject: AuditedSubject,
    pair: Pair,
    one: Floats,
    other: Floats,
    delta: float,
    confidence: float,
    held: int,
) -> tuple[float, Event] | None:
    """Return the best event, and its bound here: by the loss of the claimed law, or a score fitted to half.

    The loss, of which nothing but a threshold is learnt, is taken unless something else is clearly better.
    """
    half = len(one) // 2
    scores = fitted_scores(one[:half], other[:half])
    learnt = learn_event(scores, one[half:], other[half:], delta, confidence)
    loss = subject.loss(pair)
    event = None if loss is None else cut_of_loss(Score(_LOSS, loss), one, other, delta, _STATED, held)
    if event is not None:
        bound, _ = event.bound(*((one, other) if event.first else (other, one)), delta, confidence)
        if learnt is None or bound >= _CLEARLY * learnt[0]:
            return bound, event
    return learnt


def repeats_after_fork(subject: AuditedSubject) -> bool | None:
    """Whether two processes forked from this one release the same sequence: noise that is used twice.

    The sequence is long enough that independent ones hardly agree: releases of few values agree often.

    Returns
    -------
    bool or None
        None where it cannot be told: releases hardly vary in one process either, or none can be forked.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        return None
    database = subject.pairs[0].one
    here = subject.draw(database, _SEQUENCES[0])  # what is set up at first use is set up before the fork
    for length in _SEQUENCES:
        if length > len(here):
            here = np.concatenate([here, subject.draw(database, length - len(here))])
        if _log_chance(here) <= np.log(_CHANCE):
            break
    else:
        return None
    context = multiprocessing.get_context("fork")
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: these children draw, and end
        for _ in range(2):
            receiver, sender = context.Pipe(duplex=False)
            given = sender, subject, database, len(here)
            child = context.Process(target=_draw_into, args=given, daemon=True)
            child.start()
            sender.close()
            try:
                found.append(receiver.recv() if receiver.poll(_PATIENCE) else None)
            except EOFError:
                found.append(None)
            if found[-1] is None:
                child.kill()
            child.join()
            receiver.close()
    if any(part is None for part in found):
        return None
    return bool(np.array_equal(found[0], found[1]))


def _log_chance(releases: Floats) -> float:
    """Bound the log probability that as many independent releases are the same one by one.

    Two agree with the sum of squared probabilities, which is at most p^2 + (1 - p) min(p, 1 - p) for the most
    frequent one's, p; that is taken three standard errors, and three releases, above its share.
    """
    runs = len(releases)
    most = float(np.unique(releases, axis=0, return_counts=True)[1].max())
    p = min(1.0, (most + 3.0 * np.sqrt(most * (1.0 - most / runs)) + 3.0) / runs)
    return runs * float(np.log(p * p + (1.0 - p) * min(p, 1.0 - p)))


def _draw_into(sender: Any, subject: AuditedSubject, database: Floats, count: int) -> None:
    sender.send(subject.draw(database, count))
    sender.close()
