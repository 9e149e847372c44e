"""Numbers of n records in J cells given a release of these alone: two samplers, and priors of groups.

With the cell probabilities integrated out, c has a Dirichlet-multinomial prior, ``p(c) = n! Gamma(alpha) /
Gamma(alpha + n) prod_j Gamma(alpha p_j + c_j) / (Gamma(alpha p_j) c_j!)``, and the release a likelihood
``exp(sum_j l_j(c_j))`` (`dpmix.models.counts.cell_counts`). Where the cells are those of several groups of
unknown
sizes, the prior is another, `GroupPrior`.

`sweep_records` holds the cell of each record and offers each a cell from its predictive distribution given
the others, ``(alpha p_j + c_j) / (alpha + n - 1)``, by taking another record's cell or one from the base
measure: O(1) a record whatever J, accepted by the change of two terms l_j (methods, section 7).

`sweep_counts` moves any number of records at once between pairs of cells, given their sum: exactly where that
is small, else by slice sampling (Neal 2003) and exchanges: O(J) a sweep whatever n. Where noisy counts are
latent, a second move of each pair takes these along, the noise staying as it is.

**Groups** (methods, section 16). A record is a pair (g, x): g ~ Categorical(pi), pi ~ Dirichlet(1, .., 1),
and x in one of m cells by the probabilities of its group. With pi integrated out the sizes n_g are uniform
over all that sum to N, whatever else is known of the groups, so that the counts c_gj of cell g m + j have the
prior

    p(c) proportional to prod_g n_g! prod_j p_gj^c_gj / c_gj!        given the probabilities (`GroupMasses`),
    p(c) proportional to prod_g n_g! Gamma(alpha) / Gamma(alpha + n_g)
                         prod_j Gamma(alpha p_j + c_gj) / (Gamma(alpha p_j) c_gj!)

with those of each group integrated out (`GroupPrior`). They are moved by the same samplers:
between any two cells, of one group or of two.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.models.counts.cell_counts import hides_counts, log_count, reach
from dpmix.models.counts.hidden_noise import POSITIVE, SUM, TOTAL, log_shares, refresh, sum_of_others
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.slices import draw_on_slice, log_height

__all__ = [
    "CellPrior",
    "GroupMasses",
    "GroupPrior",
    "Latent",
    "cell_prior",
    "draw_shares",
    "group_masses",
    "group_prior",
    "start_counts",
    "sweep_counts",
    "sweep_records",
]

EXACT = 8  # weighing this many ways costs about as much as a slice


class CellPrior(NamedTuple):
    """Dirichlet prior of the cell probabilities.

    shapes (J,) alpha p_j; cumulative (J,) sums of p_j; active: the cells with p_j > 0; concentration alpha;
    exact: records in two cells up to which all ways to divide them are weighed.
    """

    shapes: Any
    cumulative: Any
    active: Any
    concentration: float
    exact: int


@dispatch()
def log_records(prior, j, x):
    """Return the log prior weight of x records in cell j, up to a constant."""


@dispatch()
def log_across(prior, a, b, step):
    """Return the log prior weight of `step` records more in the group of cell a than now, and less in b's.

    Up to a constant; 0 where there is one group.
    """


@dispatch()
def move_across(prior, a, b, step):
    """Take note of the sizes of the groups that `step` records moved from cell b to cell a leave."""


@dispatch()
def take_sizes(prior, counts):
    """Take note of the sizes of the groups, of counts (J,)."""


class Latent(NamedTuple):
    """What is latent besides the cell probabilities, all changed in place.

    counts (J,) c; labels (n,) cell of each record, or (0,); noisy (J,) h and explained (J,) s, or (0,) each,
    with sums (3,): see `dpmix.models.counts.hidden_noise`.
    """

    counts: Any
    labels: Any
    noisy: Any
    explained: Any
    sums: Any


def cell_prior(concentration: float, probabilities: NDArray[np.float64], exact: int = EXACT) -> CellPrior:
    """Return the prior with the base measure `probabilities` (J,), which need not sum to 1 exactly."""
    share = np.asarray(probabilities, dtype=np.float64) / np.sum(probabilities)
    cumulative = np.cumsum(share)
    active = np.flatnonzero(share > 0.0).astype(np.int64)
    cumulative[active[-1] :] = 1.0
    return CellPrior(concentration * share, cumulative, active, float(concentration), exact)


def start_counts(
    rng: Generator, shapes: NDArray[np.float64], released: NDArray[np.float64], n: int
) -> NDArray[np.int64]:
    """Draw counts (J,) to start from: of probabilities between the prior's and the release's."""
    seen = np.where(shapes > 0.0, np.maximum(released, 0.0), 0.0)
    weights = rng.standard_gamma(shapes + 0.1 * seen)
    if not weights.sum() > 0.0:
        weights = shapes
    return rng.multinomial(n, weights / weights.sum()).astype(np.int64)


@log_records.register
def _log_records(prior: CellPrior, j, x):
    return math.lgamma(prior.shapes[j] + x) - math.lgamma(x + 1.0)


@log_across.register
def _log_across(prior: CellPrior, a, b, step):
    return 0.0


@move_across.register
def _move_across(prior: CellPrior, a, b, step):
    pass


@take_sizes.register
def _take_sizes(prior: CellPrior, counts):
    pass


@njit
def sweep_records(prior, likelihood, rng, state, moves, count):
    """Offer every record a cell once, then draw all else that is latent, `count` times over.

    Adds to `moves` (accepted, made).
    """
    for _ in range(count):
        _sweep_once(prior, likelihood, rng, state, moves)


@njit
def _sweep_once(prior, likelihood, rng, state, moves):
    """Offer every record a cell once, then draw all else that is latent."""
    labels, counts, noisy = state.labels, state.counts, state.noisy
    n = len(labels)
    for i in range(n):
        old = labels[i]
        u = rng.random() * (prior.concentration + (n - 1))
        if u < n - 1:
            other = int(u)
            new = labels[other + 1 if other >= i else other]
        else:
            share = min((u - (n - 1)) / prior.concentration, 1.0)
            new = np.searchsorted(prior.cumulative, share, side="right")
            new = min(new, prior.active[-1])
        moves[1] += 1.0
        if new != old:
            away, here = counts[old], counts[new]
            gain = log_count(likelihood, noisy, new, here + 1) - log_count(likelihood, noisy, new, here)
            loss = log_count(likelihood, noisy, old, away) - log_count(likelihood, noisy, old, away - 1)
            if not (gain >= loss or rng.random() < math.exp(gain - loss)):
                continue
            counts[old] -= 1
            counts[new] += 1
            labels[i] = new
        moves[0] += 1.0
    refresh(likelihood, rng, state)


@njit
def _log_cell(prior, likelihood, noisy, j, x):
    """Return the log weight of x records in cell j, for the noisy count as it is."""
    return log_records(prior, j, x) + log_count(likelihood, noisy, j, float(x))


@njit
def _log_pair(prior, likelihood, state, a, b, x, total):
    """Return the log conditional weight of (c_a, c_b) = (x, total - x)."""
    noisy = state.noisy
    value = _log_cell(prior, likelihood, noisy, a, x) + _log_cell(prior, likelihood, noisy, b, total - x)
    return value + log_across(prior, a, b, x - state.counts[a])


@njit
def _log_pair_along(prior, state, a, b, x, total):
    """Return that weight where the noisy counts move as the counts do, so that the noise stays as it is."""
    noisy, sums, explained = state.noisy, state.sums, state.explained
    value = log_records(prior, a, x) + log_records(prior, b, total - x)
    value += log_across(prior, a, b, x - state.counts[a])
    step = float(x - state.counts[a])
    others = sum_of_others(noisy, sums, a, b)
    positive = sums[POSITIVE] - (1.0 if noisy[a] > 0.0 else 0.0) - (1.0 if noisy[b] > 0.0 else 0.0)
    h, g = noisy[a] + step, noisy[b] - step
    if g > 0.0:
        if positive == 0.0 and explained[a] + explained[b] != sums[TOTAL]:
            return -math.inf  # all others are clipped, and some of them have draws to explain
        # all of M counts with the first cell; the second then adds its own factor
        value += log_shares(explained[a], h, others + g, positive + 1.0, sums[TOTAL], float(len(noisy)))
        return value + explained[b] * math.log(g) if explained[b] > 0.0 else value
    if explained[b] > 0.0 and (h > 0.0 or positive > 0.0):
        return -math.inf
    return value + log_shares(explained[a], h, others, positive, sums[TOTAL], float(len(noisy)))


@njit
def _log_weight(prior, likelihood, state, a, b, x, total, along):
    if along:
        return _log_pair_along(prior, state, a, b, x, total)
    return _log_pair(prior, likelihood, state, a, b, x, total)


@njit
def _drawn(likelihood, state, j):
    """Return how many released records speak of the share of cell j."""
    return state.explained[j] if hides_counts(likelihood) else likelihood.released[j]


@njit
def _width(likelihood, state, a, b, total, along):
    """Return the width that the slice starts from: of what the move leaves as it is alone."""
    if not along:
        far = min(reach(likelihood, a), reach(likelihood, b))
        if far < math.inf:
            return min(far, total + 1.0)
    drawn = max(_drawn(likelihood, state, a) + _drawn(likelihood, state, b), 0.0)
    return 1.0 + 2.0 * total / math.sqrt(1.0 + drawn)


@njit
def _put_pair(prior, state, a, b, new, along):
    """Leave `new` records in cell a, and the rest of both in cell b; the noisy counts follow if `along`."""
    step = new - state.counts[a]
    move_across(prior, a, b, step)
    state.counts[a] += step
    state.counts[b] -= step
    if not along:
        return
    for j, shift in ((a, float(step)), (b, float(-step))):
        before, after = state.noisy[j], state.noisy[j] + shift
        state.noisy[j] = after
        state.sums[SUM] += max(after, 0.0) - max(before, 0.0)
        state.sums[POSITIVE] += (1.0 if after > 0.0 else 0.0) - (1.0 if before > 0.0 else 0.0)


@njit
def _draw_pair(prior, likelihood, rng, state, a, b, along, least, scratch):
    """Draw the counts of two cells given their sum, exactly: all ways to divide it are weighed."""
    total = state.counts[a] + state.counts[b]
    top = -math.inf
    for x in range(least, total + 1 - least):
        scratch[x] = _log_weight(prior, likelihood, state, a, b, x, total, along)
        top = max(top, scratch[x])
    whole = 0.0
    for x in range(least, total + 1 - least):
        scratch[x] = math.exp(scratch[x] - top)
        whole += scratch[x]
    u = rng.random() * whole
    new = least
    while new < total - least:
        u -= scratch[new]
        if u < 0.0:
            break
        new += 1
    while scratch[new] == 0.0:  # the end of the sum, by rounding
        new -= 1
    _put_pair(prior, state, a, b, new, along)


@njit
def _swap_pair(prior, likelihood, rng, state, a, b, along):
    """Offer to exchange the counts of two cells: a prior that is sparse has modes at both ends of a slice."""
    now = state.counts[a]
    total = now + state.counts[b]
    if total == 2 * now:
        return
    gain = _log_weight(prior, likelihood, state, a, b, total - now, total, along)
    gain -= _log_weight(prior, likelihood, state, a, b, now, total, along)
    if -rng.standard_exponential() < gain:
        _put_pair(prior, state, a, b, total - now, along)


class _Pair(NamedTuple):
    """What the count of cell a is drawn given: it and that of b, which sum to `total`; see `_log_weight`."""

    prior: Any
    likelihood: Any
    state: Any
    a: int
    b: int
    now: int
    total: int
    most: int
    along: bool


@log_height.register
def _log_pair_at(curve: _Pair, y):
    """Take the whole number x as the interval [x, x + 1)."""
    x = min(int(y), curve.most)
    if x == curve.now:
        return math.inf
    return _log_weight(
        curve.prior, curve.likelihood, curve.state, curve.a, curve.b, x, curve.total, curve.along
    )


@njit
def _move_pair(prior, likelihood, rng, state, a, b, along, least):
    """Move records between two cells by slice sampling given their sum, noisy counts `along` or not."""
    now = state.counts[a]
    total = now + state.counts[b]
    most = total - least
    width = _width(likelihood, state, a, b, total, along)
    level = _log_weight(prior, likelihood, state, a, b, now, total, along) - rng.standard_exponential()
    curve = _Pair(prior, likelihood, state, a, b, now, total, most, along)
    y, _ = draw_on_slice(rng, curve, now + rng.random(), level, width, float(least), most + 1.0)
    _put_pair(prior, state, a, b, min(int(y), most), along)


@njit
def _sweep_pairs(prior, likelihood, rng, state, cells, least, scratch):
    """Move records between neighbours in a random circle of `cells`, leaving each with at least `least`."""
    order = rng.permutation(cells)
    rounds = 0 if len(order) < 2 else 2 if hides_counts(likelihood) else 1
    for i in range(len(order)):
        a, b = order[i], order[(i + 1) % len(order)]
        total = state.counts[a] + state.counts[b]
        if total <= 2 * least:
            continue
        for turn in range(rounds):
            along = turn == 1
            if total <= prior.exact:
                _draw_pair(prior, likelihood, rng, state, a, b, along, least, scratch)
            else:
                _move_pair(prior, likelihood, rng, state, a, b, along, least)
                _swap_pair(prior, likelihood, rng, state, a, b, along)


@njit
def sweep_counts(prior, likelihood, rng, state, count):
    """Move records between pairs of cells, as many as there are cells, and all else that is latent.

    This `count` times over; each ends with one more round between the cells that hold records, leaving each
    with one at least, so that which cells these are does not change: under a sparse prior they are few, and
    would seldom meet.
    """
    scratch = np.empty(prior.exact + 1)
    take_sizes(prior, state.counts)
    for _ in range(count):
        _sweep_pairs(prior, likelihood, rng, state, prior.active, 0, scratch)
        _sweep_pairs(prior, likelihood, rng, state, np.flatnonzero(state.counts), 1, scratch)
        refresh(likelihood, rng, state)


# Priors of the numbers of records in the cells of several groups, whose sizes are private


class GroupPrior(NamedTuple):
    """Dirichlet priors of the cell probabilities within groups.

    shapes (J,) alpha p_j, the same in each group; active: the cells with p_j > 0; group (J,) of each cell;
    sizes (G,) n_g, taken from the counts as a sweep begins; concentration alpha; exact as in
    `CellPrior`.
    """

    shapes: Any
    active: Any
    group: Any
    sizes: Any
    concentration: float
    exact: int


class GroupMasses(NamedTuple):
    """Known cell probabilities within groups: logs (J,) log p_gj; the rest as in `GroupPrior`.

    tempered (1,) is a power of the whole prior, 1 but for a chain that looks for its start.
    """

    logs: Any
    active: Any
    group: Any
    sizes: Any
    tempered: Any
    exact: int


def group_prior(
    concentration: float, probabilities: NDArray[np.float64], groups: int, exact: int = EXACT
) -> GroupPrior:
    """Return the prior of `groups` groups with the base measure `probabilities` (m,) in each."""
    share = np.asarray(probabilities, dtype=np.float64) / np.sum(probabilities)
    shapes = np.tile(concentration * share, groups)
    active = np.flatnonzero(shapes > 0.0).astype(np.int64)
    return GroupPrior(shapes, active, *_layout(groups, len(share)), float(concentration), exact)


def group_masses(groups: int, cells: int, exact: int = EXACT) -> GroupMasses:
    """Return room for the probabilities of `cells` cells in each of `groups` groups."""
    active = np.arange(groups * cells)
    return GroupMasses(np.zeros(groups * cells), active, *_layout(groups, cells), np.ones(1), exact)


def _layout(groups: int, cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.repeat(np.arange(groups), cells), np.zeros(groups, dtype=np.int64)


@njit
def _log_size(prior, n):
    """Return the log weight of a group of n records, besides those of its cells."""
    return math.lgamma(n + 1.0) - math.lgamma(prior.concentration + n)


@log_records.register
def _log_records_prior(prior: GroupPrior, j, x):
    return math.lgamma(prior.shapes[j] + x) - math.lgamma(x + 1.0)


@log_across.register
def _log_across_prior(prior: GroupPrior, a, b, step):
    g, h = prior.group[a], prior.group[b]
    if g == h:
        return 0.0
    return _log_size(prior, prior.sizes[g] + step) + _log_size(prior, prior.sizes[h] - step)


@log_records.register
def _log_records_masses(prior: GroupMasses, j, x):
    return prior.tempered[0] * (x * prior.logs[j] - math.lgamma(x + 1.0))


@log_across.register
def _log_across_masses(prior: GroupMasses, a, b, step):
    g, h = prior.group[a], prior.group[b]
    if g == h:
        return 0.0
    value = math.lgamma(prior.sizes[g] + step + 1.0) + math.lgamma(prior.sizes[h] - step + 1.0)
    return prior.tempered[0] * value


def _move_across_of_groups(prior, a, b, step):
    prior.sizes[prior.group[a]] += step
    prior.sizes[prior.group[b]] -= step


def _take_sizes_of_groups(prior, counts):
    prior.sizes[:] = 0
    for j in range(len(counts)):
        prior.sizes[prior.group[j]] += counts[j]


for _prior in (GroupPrior, GroupMasses):
    move_across.register(_move_across_of_groups, _prior)
    take_sizes.register(_take_sizes_of_groups, _prior)


def draw_shares(rng: Generator, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw pi (G,) given the sizes of the groups."""
    return rng.dirichlet(1.0 + sizes)
