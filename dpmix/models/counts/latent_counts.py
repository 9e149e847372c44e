"""Numbers of n records in J cells given a release of these alone: their priors, and two samplers.

With the cell probabilities integrated out, c has a Dirichlet-multinomial prior, ``p(c) = n! Gamma(alpha) /
Gamma(alpha + n) prod_j Gamma(alpha p_j + c_j) / (Gamma(alpha p_j) c_j!)``, and the release a likelihood
``exp(sum_j l_j(c_j))`` (`dpmix.mechanisms.channels.count_likelihoods`). Where the cells are those of several
groups of unknown sizes, the prior has these, too.

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

with those of each group integrated out (`CellPrior`). They are moved by the same samplers: between any two
cells, of one group or of two.

**Hidden noise.** Noisy counts h = c + noise that were not released, but records drawn of them clipped and
normalised, are latent too. With S = sum_j h_j^+ and s_j of the released draws explained by the counts (all of
them for a perturbed histogram, w = 0; else a binomial share of each cell's, drawn anew in every sweep),
M = sum_j s_j::

    p(s | h) = prod_j (h_j^+ / S)^s_j,  and J^-M where no h_j is positive,

so that given all else h_j has a density proportional to (h_j^+)^s_j (S_-j + h_j^+)^-M q(h_j - c_j): O(1)
each, moved by slice sampling (Neal 2003), geometric noise on the integers. A cell with s_j > 0 needs h_j > 0
unless all counts are clipped; between those two cases a joint move of all h_j is made.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.kernels.intervals import draw_normal_within
from dpmix.mechanisms.channels.count_likelihoods import (
    GAUSSIAN,
    GEOMETRIC,
    CountsWithNoise,
    HiddenCounts,
    PolyaDraws,
    SmoothedDraws,
    log_count,
    log_noise,
    reach,
)
from dpmix.numerics.jit import dispatch, njit, shuffled
from dpmix.numerics.slices import draw_on_slice, log_height

SUM, POSITIVE, TOTAL = 0, 1, 2  # of `Latent.sums`
EXACT = 8  # records in two cells: weighing this many ways costs about as much as a slice

# What is latent, and the priors of the counts


class Latent(NamedTuple):
    """What is latent besides the cell probabilities, all changed in place.

    counts (J,) c; labels (n,) cell of each record, or (0,); noisy (J,) h and explained (J,) s, or (0,) each,
    with sums (3,): S, the number of positive h_j, and M, at `SUM`, `POSITIVE` and `TOTAL`.
    """

    counts: Any
    labels: Any
    noisy: Any
    explained: Any
    sums: Any


def make_latent(counts: NDArray[np.int64], labelled: bool = False, hidden: bool = False) -> Latent:
    """Return counts (J,), by reference, with labels of as many records and room for noisy counts if asked."""
    labels = np.repeat(np.arange(len(counts)), counts) if labelled else np.empty(0, dtype=np.int64)
    noisy, explained = np.zeros((2, len(counts) if hidden else 0))
    return Latent(counts, labels, noisy, explained, np.zeros(3))


class CellPrior(NamedTuple):
    """Dirichlet priors of the cell probabilities within groups, or of all records, as one group.

    shapes (J,) alpha p_j, the same in each group; cumulative (m,) sums of p_j in a group; active: the cells
    with p_j > 0; group (J,) of each cell; sizes (G,) n_g, taken from the counts as a sweep begins;
    concentration alpha; exact: records in two cells up to which all ways to divide them are weighed.
    """

    shapes: Any
    cumulative: Any
    active: Any
    group: Any
    sizes: Any
    concentration: float
    exact: int


class GroupMasses(NamedTuple):
    """Known cell probabilities within groups: logs (J,) log p_gj; the rest as in `CellPrior`.

    tempered (1,) is a power of the whole prior, 1 but for a chain that looks for its start.
    """

    logs: Any
    active: Any
    group: Any
    sizes: Any
    tempered: Any
    exact: int


def cell_prior(concentration: float, probabilities: NDArray[np.float64], groups: int = 1) -> CellPrior:
    """Return the prior of groups with the base measure `probabilities` (m,), of a sum of about 1."""
    share = np.asarray(probabilities, dtype=np.float64) / np.sum(probabilities)
    cumulative = np.cumsum(share)
    cumulative[np.flatnonzero(share > 0.0)[-1] :] = 1.0
    shapes = np.tile(concentration * share, groups)
    active = np.flatnonzero(np.tile(share > 0.0, groups)).astype(np.int64)
    return CellPrior(shapes, cumulative, active, *_layout(groups, len(share)), float(concentration), EXACT)


def group_masses(groups: int, cells: int) -> GroupMasses:
    """Return room for the probabilities of `cells` cells in each of `groups` groups."""
    active = np.arange(groups * cells)
    return GroupMasses(np.zeros(groups * cells), active, *_layout(groups, cells), np.ones(1), EXACT)


def _layout(groups: int, cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.repeat(np.arange(groups), cells), np.zeros(groups, dtype=np.int64)


def start_counts(
    rng: Generator, shapes: NDArray[np.float64], released: NDArray[np.float64], n: int
) -> NDArray[np.int64]:
    """Draw counts (J,) to start from: of probabilities between the prior's and the release's."""
    seen = np.where(shapes > 0.0, np.maximum(released, 0.0), 0.0)
    weights = rng.standard_gamma(shapes + 0.1 * seen)
    if not weights.sum() > 0.0:
        weights = shapes
    return rng.multinomial(n, weights / weights.sum()).astype(np.int64)


def draw_shares(rng: Generator, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw pi (G,) given the sizes of the groups."""
    return rng.dirichlet(1.0 + sizes)


@dispatch()
def log_records(prior, j, x):
    """Return the log prior weight of x records in cell j, up to a constant."""


@dispatch()
def log_across(prior, a, b, step):
    """Return the log prior weight of `step` records more in the group of cell a than now, and less in b's.

    Up to a constant; 0 where there is one group.
    """


@log_records.register
def _log_records(prior: CellPrior, j, x):
    return math.lgamma(prior.shapes[j] + x) - math.lgamma(x + 1.0)


@njit
def _log_size(prior, n):
    """Return the log weight of a group of n records, besides those of its cells."""
    return math.lgamma(n + 1.0) - math.lgamma(prior.concentration + n)


@log_across.register
def _log_across(prior: CellPrior, a, b, step):
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


# Moves of records, one by one


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


# Moves of any number of records between two cells, given their sum


@njit
def sweep_counts(prior, likelihood, rng, state, count):
    """Move records between pairs of cells, as many as there are cells, and all else that is latent.

    This `count` times over; each ends with one more round between the cells that hold records, leaving each
    with one at least, so that which cells these are does not change: under a sparse prior they are few, and
    would seldom meet.
    """
    scratch = np.empty(prior.exact + 1)
    prior.sizes[:] = 0
    for j in range(len(state.counts)):
        prior.sizes[prior.group[j]] += state.counts[j]
    for _ in range(count):
        _sweep_pairs(prior, likelihood, rng, state, prior.active, 0, scratch)
        _sweep_pairs(prior, likelihood, rng, state, np.flatnonzero(state.counts), 1, scratch)
        refresh(likelihood, rng, state)


@njit
def _sweep_pairs(prior, likelihood, rng, state, cells, least, scratch):
    """Move records between neighbours in a random circle of `cells`, leaving each with at least `least`."""
    order = shuffled(rng, cells)
    rounds = 0 if len(order) < 2 else 2 if len(state.noisy) > 0 else 1
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
def _put_pair(prior, state, a, b, new, along):
    """Leave `new` records in cell a, and the rest of both in cell b; the noisy counts follow if `along`."""
    step = new - state.counts[a]
    prior.sizes[prior.group[a]] += step
    prior.sizes[prior.group[b]] -= step
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
def _width(likelihood, state, a, b, total, along):
    """Return the width that the slice starts from: of what the move leaves as it is alone."""
    if not along:
        far = min(reach(likelihood, a), reach(likelihood, b))
        if far < math.inf:
            return min(far, total + 1.0)
    drawn = max(_drawn(likelihood, state, a) + _drawn(likelihood, state, b), 0.0)
    return 1.0 + 2.0 * total / math.sqrt(1.0 + drawn)


@njit
def _drawn(likelihood, state, j):
    """Return how many released records speak of the share of cell j."""
    return state.explained[j] if len(state.noisy) > 0 else likelihood.released[j]


@njit
def _log_weight(prior, likelihood, state, a, b, x, total, along):
    if along:
        return _log_pair_along(prior, state, a, b, x, total)
    return _log_pair(prior, likelihood, state, a, b, x, total)


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
def _log_cell(prior, likelihood, noisy, j, x):
    """Return the log weight of x records in cell j, for the noisy count as it is."""
    return log_records(prior, j, x) + log_count(likelihood, noisy, j, float(x))


# All else that is latent: noisy counts that were not released


@dispatch()
def refresh(likelihood, rng, state):
    """Draw everything latent besides the counts, given these."""


@dispatch()
def start_noisy(likelihood, rng, state):
    """Set latent noisy counts to values of positive density, given the counts."""


def _nothing(likelihood, rng, state):
    return


for _known in (CountsWithNoise, SmoothedDraws, PolyaDraws):
    refresh.register(_nothing, _known)
    start_noisy.register(_nothing, _known)


@refresh.register
def _refresh_hidden(likelihood: HiddenCounts, rng, state):
    tally(state.noisy, state.explained, state.sums)  # sums lose their last digits in time
    _explain(likelihood, rng, state)
    _flip(likelihood, rng, state)
    for j in range(len(state.noisy)):
        _move(likelihood, rng, state, j)


@start_noisy.register
def _start_hidden(likelihood: HiddenCounts, rng, state):
    for j in range(len(state.noisy)):
        state.noisy[j] = _draw_side(likelihood.noise, likelihood.scale, rng, state.counts[j], True)
        state.explained[j] = likelihood.released[j]
    tally(state.noisy, state.explained, state.sums)


@njit
def tally(noisy, explained, sums):
    """Set `sums` (3,) from noisy counts h (J,) and explained draws s (J,)."""
    sums[:] = 0.0
    for j in range(len(noisy)):
        if noisy[j] > 0.0:
            sums[SUM] += noisy[j]
            sums[POSITIVE] += 1.0
        sums[TOTAL] += explained[j]


@njit
def sum_of_others(noisy, sums, a, b):
    """Return the sum of h^+ over all cells but a and b, without the digits that a difference would lose."""
    others = sums[SUM] - max(noisy[a], 0.0)
    if b != a:
        others -= max(noisy[b], 0.0)
    if others >= 1e-6 * sums[SUM]:
        return others
    others = 0.0
    for j in range(len(noisy)):
        if j != a and j != b:
            others += max(noisy[j], 0.0)
    return others


@njit
def log_shares(explained, h, others, positive, total, cells):
    """Return the part of log p(s | h) that depends on one cell's h; the others sum to `others`.

    `explained` is its s_j, `positive` how many of the others are positive, `total` M.
    """
    if positive == 0.0:
        if h <= 0.0:
            return -total * math.log(cells)
        return 0.0 if explained == total else -math.inf
    if h <= 0.0:
        return -math.inf if explained > 0.0 else -total * math.log(others)
    found = -total * math.log(others + h)
    return found + explained * math.log(h) if explained > 0.0 else found


class _Cell(NamedTuple):
    """What h_j is drawn given: c_j, s_j, S and positive ones of the others, M, J, the noise."""

    records: float
    explained: float
    others: float
    positive: float
    total: float
    cells: float
    noise: int
    scale: float


@log_height.register
def _log_hidden(curve: _Cell, at):
    """Integers are the floors of a real number."""
    h = math.floor(at) if curve.noise == GEOMETRIC else at
    value = log_shares(curve.explained, h, curve.others, curve.positive, curve.total, curve.cells)
    return value + log_noise(curve.noise, curve.scale, h - curve.records)


@njit
def _move(likelihood, rng, state, j):
    """Move h_j by slice sampling."""
    noisy, sums, scale = state.noisy, state.sums, likelihood.scale
    c, s, now = float(state.counts[j]), state.explained[j], noisy[j]
    others = sum_of_others(noisy, sums, j, j)
    positive = sums[POSITIVE] - (1.0 if now > 0.0 else 0.0)
    curve = _Cell(c, s, others, positive, sums[TOTAL], float(len(noisy)), likelihood.noise, scale)
    width = 2.0 * scale
    if s > 0.0:
        width = min(width, 3.0 * (c + scale) / math.sqrt(s))
    x = now
    if curve.noise == GEOMETRIC:
        width += 1.0
        x = now + rng.random()
    level = log_height(curve, x) - rng.standard_exponential()
    h, _ = draw_on_slice(rng, curve, x, level, width)
    noisy[j] = math.floor(h) if curve.noise == GEOMETRIC else h
    sums[SUM] = others + max(noisy[j], 0.0)
    sums[POSITIVE] = positive + (1.0 if noisy[j] > 0.0 else 0.0)


@njit
def _flip(likelihood, rng, state):
    """Offer to go between all counts clipped and not: every h_j anew from the noise, given who is positive.

    Towards some being positive, those with s_j > 0 are drawn so, and the others from the noise as it is.
    """
    noisy, explained, sums = state.noisy, state.explained, state.sums
    if sums[TOTAL] == 0.0:
        return  # the slices reach everything
    log_clipped, log_open = -sums[TOTAL] * math.log(len(noisy)), 0.0
    for j in range(len(noisy)):
        below, above = _log_sides(likelihood.noise, likelihood.scale, state.counts[j])
        log_clipped += below
        if explained[j] > 0.0:
            log_open += above
    if sums[POSITIVE] > 0.0:
        log_open -= sums[TOTAL] * math.log(sums[SUM])
        for j in range(len(noisy)):
            if explained[j] > 0.0:
                log_open += explained[j] * math.log(noisy[j])
        if -rng.standard_exponential() < log_clipped - log_open:
            for j in range(len(noisy)):
                noisy[j] = _draw_side(likelihood.noise, likelihood.scale, rng, state.counts[j], False)
            tally(noisy, explained, sums)
        return
    offer = np.empty(len(noisy))
    reached = 0.0
    for j in range(len(noisy)):
        # the noise as it is: a side by its probability, then a draw from that side
        above = explained[j] > 0.0
        if not above:
            below, _ = _log_sides(likelihood.noise, likelihood.scale, state.counts[j])
            above = rng.random() >= math.exp(below)
        offer[j] = _draw_side(likelihood.noise, likelihood.scale, rng, state.counts[j], above)
        reached += max(offer[j], 0.0)
        if explained[j] > 0.0:
            log_open += explained[j] * math.log(offer[j])
    log_open -= sums[TOTAL] * math.log(reached)
    if -rng.standard_exponential() < log_open - log_clipped:
        noisy[:] = offer
        tally(noisy, explained, sums)


@njit
def _log_sides(noise, scale, c):
    """Return log Pr(c + noise <= 0) and log Pr(c + noise > 0) for c >= 0."""
    if noise == GAUSSIAN:
        below = 0.5 * math.erfc(c / scale * math.sqrt(0.5))
        if below < 1e-290:
            below = 0.0
    elif noise == GEOMETRIC:
        below = math.exp(-c / scale) / (1.0 + math.exp(-1.0 / scale))
    else:
        below = 0.5 * math.exp(-c / scale)
    return math.log(below) if below > 0.0 else -math.inf, math.log1p(-below)


@njit
def _draw_side(noise, scale, rng, c, above):
    """Draw c + noise given that it is positive (`above`), or that it is not, for c >= 0."""
    if noise == GAUSSIAN:
        if above:
            return c + scale * draw_normal_within(rng, -c / scale, math.inf)
        return c + scale * draw_normal_within(rng, -math.inf, -c / scale)
    if noise == GEOMETRIC:
        if not above:
            return -math.floor(rng.standard_exponential() * scale)
        if c == 0:
            return 1.0 + math.floor(rng.standard_exponential() * scale)
        while True:
            e = math.floor(rng.standard_exponential() * scale) - math.floor(
                rng.standard_exponential() * scale
            )
            if c + e > 0.0:
                return c + e
    if not above:
        return -rng.standard_exponential() * scale
    while True:
        e = rng.standard_exponential() * scale
        if rng.random() < 0.5:
            e = -e
        if c + e > 0.0:
            return c + e


@njit
def _explain(likelihood, rng, state):
    """Draw how many of each cell's released draws the counts explain, the others being uniform."""
    noisy, explained, sums = state.noisy, state.explained, state.sums
    if likelihood.weight <= 0.0:
        return
    cells = float(len(noisy))
    for j in range(len(noisy)):
        r = int(likelihood.released[j])
        if r > 0:
            share = max(noisy[j], 0.0) / sums[SUM] if sums[POSITIVE] > 0.0 else 1.0 / cells
            share *= 1.0 - likelihood.weight
            explained[j] = rng.binomial(r, min(share / (share + likelihood.weight / cells), 1.0))
    tally(noisy, explained, sums)
