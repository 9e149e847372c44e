"""Data augmentation for releases that depend on records through a sum, written once for every model.

The release depends on a database x through T = sum_i t(x_i) alone, and records are independent given theta.
The state holds theta and a whole database. `sweep_records` offers each record a new one, drawn from the
model given theta, and accepts by the ratio of the densities of the release, at O(1) a record (Ju, Awan, Gong
and Rao 2022, Algorithm 1): under eps-DP at least e^-eps of all offers are accepted. `sweep_offers` draws one
record at a time and picks which of the n it may replace, weighted by these densities, at O(n) an offer
(single offer, multiple attempts; Xiong and Ju 2025).

A model is a NamedTuple of what is known, theta another one of arrays (or an array), and these functions are
registered for the model's class, each to be compiled:

    draw_record(model, rng, theta, record)        write one record, drawn given theta, to `record` (width,)
    draw_theta(model, rng, theta, records, tally) change theta, in place, given the records (n, width)
    statistic(model, record, out)                 write t(record) to `out` (size,)
    log_release(model, sums)                      log density of the release given T, up to a constant

and then `by_statistic(Class)`, which holds T for it (`Tally`). A model that knows a change of the density in
fewer steps registers, in place of the last two, its own

    recount(model, records, tally)                set its tally, of any class, from all records
    log_change(model, tally, old, new)            log ratio of densities with `new` in the place of `old`
    replace(model, tally, old, new)               put it there; `log_change` was just called for them

and its own of these, which that makes `sweep_records`, `sweep_offers` and nothing:

    sweep(model, rng, theta, records, tally, room, moves)
    offer_to_all(model, rng, theta, records, tally, offer, weights, moves, offers)
    save(model, rng, theta, saved)                write what is saved of a state by compiled code

`draw_theta` must leave the posterior of theta given the records as it is. It may move the records too, where
it leaves the joint posterior of both as it is, and the tally as `recount` would set it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.numerics.jit import dispatch, njit
from dpmix.run.model_protocols import ParametricChain, ParametricModel

Floats = NDArray[np.float64]

REFRESH = 64  # sweeps after which sums are taken from scratch, so that rounding cannot add up
_MOST_WEIGHTS = 1_000_000


class Tally(NamedTuple):
    """The sum over records, and what it would be after the change that was last weighed.

    sums (size,) T; offered (size,) the other; part (size,) scratch; level (2,) log densities of both.
    """

    sums: Any
    offered: Any
    part: Any
    level: Any


def make_tally(size: int) -> Tally:
    """Return room for a sum of `size` entries."""
    return Tally(np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(2))


@dispatch()
def draw_record(model, rng, theta, record):
    """Write a record drawn given theta to `record` (width,)."""


@dispatch()
def draw_theta(model, rng, theta, records, tally):
    """Change theta in place by a step that leaves the posterior as it is."""


@dispatch()
def statistic(model, record, out):
    """Write t(record) to `out` (size,)."""


@dispatch()
def log_release(model, sums):
    """Return the log density of the release given the sum of statistics (size,), up to a constant."""


@dispatch()
def recount(model, records, tally):
    """Set `tally` from the records (n, width)."""


@dispatch()
def log_change(model, tally, old, new):
    """Return the log ratio of the densities of the release with `new` in the place of `old`, and as it is."""


@dispatch()
def replace(model, tally, old, new):
    """Put `new` in the place of `old`; the last call was `log_change` of the same two."""


@dispatch()
def sweep(model, rng, theta, records, tally, room, moves):
    """Offer every record a new one; add to `moves` (accepted, made)."""


@dispatch()
def offer_to_all(model, rng, theta, records, tally, offer, weights, moves, offers):
    """Make `offers` offers, each of one record to all n; `weights` (n,) is scratch."""


@dispatch()
def save(model, rng, theta, saved):
    """Write theta, and what is drawn given it, to `saved` (width,)."""


def _recount(model, records, tally):
    sums, part = tally.sums, tally.part
    sums[:] = 0.0
    for i in range(len(records)):
        statistic(model, records[i], part)
        for j in range(len(sums)):
            sums[j] += part[j]
    tally.level[0] = log_release(model, tally.sums)


def _log_change(model, tally, old, new):
    sums, offered, part = tally.sums, tally.offered, tally.part
    statistic(model, old, part)
    for j in range(len(sums)):
        offered[j] = sums[j] - part[j]
    statistic(model, new, part)
    for j in range(len(sums)):
        offered[j] += part[j]
    tally.level[1] = log_release(model, tally.offered)
    if tally.level[0] == -math.inf:  # no start for a release: go on until there is one
        return 0.0
    return tally.level[1] - tally.level[0]


def _replace(model, tally, old, new):
    tally.sums[:] = tally.offered
    tally.level[0] = tally.level[1]


def _save_nothing(model, rng, theta, saved):
    pass


def by_statistic(model: type, compiler: Callable[..., Any] = njit) -> None:
    """Hold T in a `Tally` for a class of models with `statistic` and `log_release`, and save by Python."""
    recount.register(compiler(_recount), model, compiled=False)
    log_change.register(compiler(_log_change), model, compiled=False)
    replace.register(compiler(_replace), model, compiled=False)
    sweep.register(sweep_records, model, compiled=False)
    offer_to_all.register(sweep_offers, model, compiled=False)
    save.register(compiler(_save_nothing), model, compiled=False)


@njit
def draw_records(model, rng, theta, records):
    """Draw all records (n, width) given theta, for a start."""
    for i in range(len(records)):
        draw_record(model, rng, theta, records[i])


@njit
def sweep_records(model, rng, theta, records, tally, offer, moves):
    """Do as `sweep`, by one record after the other; `offer` (width,) is scratch.

    An offer that lowers the log density by g is accepted where E > g, for E exponential; E - g is then
    exponential again, and serves the next record. So only what is turned down costs a random number.
    """
    accepted = 0
    left = rng.standard_exponential()
    for i in range(len(records)):
        old = records[i]
        draw_record(model, rng, theta, offer)
        gain = log_change(model, tally, old, offer)
        if gain < 0.0 and left > -gain:
            left += gain
        elif not gain >= 0.0:
            left = rng.standard_exponential()
            continue
        replace(model, tally, old, offer)
        for j in range(len(offer)):
            old[j] = offer[j]
        accepted += 1
    moves[0] += accepted
    moves[1] += len(records)


@njit
def sweep_offers(model, rng, theta, records, tally, offer, weights, moves, offers):
    """Do as `offer_to_all`.

    With w_i the ratio of densities with the offer in the place of record i, W their sum and w_0 = 1, record I
    is picked with probability w_I / W and replaced with probability min(1, W / (W - w_I + w_0)), W over the
    sum from where the same offer would lead back.
    """
    for _ in range(offers):
        draw_record(model, rng, theta, offer)
        moves[1] += 1.0
        top, total = _weigh(model, tally, records, offer, weights)
        if not total > 0.0:
            continue
        chosen = _pick(rng, weights, total)
        back = total - weights[chosen] + math.exp(-top)
        if total >= back or rng.random() * back < total:
            _put(model, tally, records[chosen], offer)
            moves[0] += 1.0


@njit
def sweep_bounded_offers(model, rng, theta, records, tally, offer, weights, moves, offers, bound):
    """Do as `sweep_offers` where no record's place changes the log density by more than `bound`.

    Then a record picked uniformly is kept with probability w_I exp(-bound), else picked anew, and as W is at
    least (n - 1) exp(-bound) + w_I, it is seldom needed to know whether to accept. So an offer takes about
    exp(bound) weights, however large n, and all n only now and then; or always, where n is not much larger.
    """
    n = len(records)
    tries = n if math.exp(bound) < 0.25 * n else 0
    least = math.exp(-bound)
    for _ in range(offers):
        draw_record(model, rng, theta, offer)
        moves[1] += 1.0
        chosen, weight, whole = -1, 0.0, -1.0
        for _ in range(tries):
            i = min(int(rng.random() * n), n - 1)
            weight = math.exp(log_change(model, tally, records[i], offer))
            if rng.random() < weight * least:
                chosen = i
                break
        if chosen < 0:
            top, total = _weigh(model, tally, records, offer, weights)
            if not total > 0.0:
                continue
            chosen = _pick(rng, weights, total)
            weight, whole = weights[chosen] * math.exp(top), total * math.exp(top)
        if weight < 1.0:
            u = rng.random()
            lower = (n - 1) * least + weight
            if u * (lower - weight + 1.0) >= lower:
                if whole < 0.0:
                    top, total = _weigh(model, tally, records, offer, weights)
                    whole = total * math.exp(top)
                if u * (whole - weight + 1.0) >= whole:
                    continue
        _put(model, tally, records[chosen], offer)
        moves[0] += 1.0


@njit
def _weigh(model, tally, records, offer, weights):
    """Set the weights of all records over the largest or 1; return the log of that, and their sum."""
    top = 0.0
    for i in range(len(records)):
        weights[i] = log_change(model, tally, records[i], offer)
        top = max(top, weights[i])
    total = 0.0
    for i in range(len(records)):
        weights[i] = math.exp(weights[i] - top)
        total += weights[i]
    return top, total


@njit
def _pick(rng, weights, total):
    """Return a place drawn with probability proportional to its weight."""
    left = rng.random() * total
    chosen = 0
    for i in range(len(weights)):
        if weights[i] > 0.0:
            chosen = i  # the last of positive weight, where rounding runs past the end
            left -= weights[i]
            if left < 0.0:
                break
    return chosen


@njit
def _put(model, tally, old, offer):
    """Put an offer in the place of a record."""
    log_change(model, tally, old, offer)
    replace(model, tally, old, offer)
    old[:] = offer


@njit
def run_sweeps(model, rng, state, scratch, moves, age, offers, draws, thin, saved, shares):
    """Do `draws` times `thin` sweeps of the records, by `offers` offers or (0) one by one, and of theta.

    state: theta, records and tally; scratch: the room of `sweep`, an offer and its weights. After each, saved
    (draws, width) is written by `save`, and shares (draws,) of those accepted; where these are empty,
    nothing is.
    """
    theta, records, tally = state
    room, offer, weights = scratch
    for draw in range(draws):
        for _ in range(thin):
            if age[0] % REFRESH == 0:
                recount(model, records, tally)
            age[0] += 1
            if offers > 0:
                offer_to_all(model, rng, theta, records, tally, offer, weights, moves, offers)
            else:
                sweep(model, rng, theta, records, tally, room, moves)
            draw_theta(model, rng, theta, records, tally)
        if len(shares) > 0:
            save(model, rng, theta, saved[draw])
            shares[draw] = moves[0] / moves[1]
            moves[:] = 0.0


def default_offers(n: int, bound: float = math.inf) -> int:
    """Return how many offers make a sweep: n, or as many as keep it to about a million weights.

    `bound` is that of `sweep_bounded_offers`, where it is used.
    """
    each = min(n, math.exp(min(bound, 700.0)))
    return max(1, min(n, int(max(_MOST_WEIGHTS, n) // each)))


class AugmentedChain(ParametricChain):
    """A chain over theta and a latent database; a subclass adds `record`.

    Parameters
    ----------
    model : ParametricModel
    rng : Generator
    law : NamedTuple
        What the functions of this module are registered for.
    theta : NamedTuple of arrays, or array
        Where the chain starts.
    records : ndarray, shape (n, width)
        The database that it starts with.
    tally : NamedTuple of arrays
        Room for what `recount` sets.
    offers : int
        Offers of one record to all in a sweep; 0 offers each record one of its own.
    room : NamedTuple of arrays, optional
        Of `sweep`, where it is not `sweep_records`.
    """

    def __init__(
        self,
        model: ParametricModel,
        rng: Generator,
        law: Any,
        theta: Any,
        records: NDArray[Any],
        tally: Any,
        offers: int = 0,
        room: Any = None,
    ) -> None:
        self.law, self.theta, self.records, self.tally = law, theta, records, tally
        offer = np.zeros_like(records[0])
        self._scratch = offer if room is None else room, offer, np.zeros(len(records) if offers else 0)
        self._offers = offers
        self._age = np.zeros(1, dtype=np.int64)
        recount(law, records, tally)
        state = {"records": records, "age": self._age}
        state |= _arrays("theta", theta) | _arrays("tally", tally)
        super().__init__(model, rng, state)

    def sweep(self, count: int) -> None:
        """Sweep over records and theta."""
        self.run_sweeps(1, count, np.zeros((0, 0)), np.zeros(0))

    def run_sweeps(self, draws: int, thin: int, saved: Floats, shares: Floats) -> None:
        """Sweep, and save what `save` does, in one call."""
        state = self.theta, self.records, self.tally
        plan = self._offers, draws, thin
        run_sweeps(self.law, self.rng, state, self._scratch, self.moves, self._age, *plan, saved, shares)


def _arrays(name: str, values: Any) -> dict[str, NDArray[Any]]:
    if isinstance(values, np.ndarray):
        return {name: values}
    return {f"{name}_{field}": getattr(values, field) for field in values._fields}
