"""What a released posterior says of the counts behind it, by the law of the mechanism that released it.

The n records of d categories have counts c, with Dirichlet-multinomial probabilities under the prior; the
mechanism releases the posterior of counts r with a probability that depends on c:

- method hellinger: w(r | c)/Z(c), the integer weights of `dpmix.posteriors.hellinger_law` over their sum, for
  gamma and exponent that the release states, whether certified or by the theorem. w(r | c) has the prior that
  the mechanism used in it, whatever prior the analyst has.
- methods laplace and geometric: the noise. The release holds the noisy counts themselves, of which r is a
  function. For two categories r says the same where they are missing: a count c of at least 0 is clipped to 0
  with a probability proportional to exp(-c/s), as is the density of noise that takes it there.

Where there are few enough counts their posterior is computed, and draws are independent.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError, PrivacyError
from dpmix.laws.every import expect
from dpmix.mechanisms.posterior.law import PosteriorLaw
from dpmix.numerics.jit import njit
from dpmix.posteriors.hellinger_law import (
    LISTED,
    ExponentialMechanism,
    Posteriors,
    folded,
    row_of_two,
    states,
    weight,
)
from dpmix.posteriors.simulated_draws import apart, draw_released, rate_at, tables_of

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_STATES = 4096
"""Counts of three categories or more whose normalizers are all computed: the square of it in weights."""
AT_ONCE = 1e8
"""Weights of two categories that are summed before the first draw; beyond it normalizers are bounded."""
_GROWTH = 1.15  # of steps between weights that bound a sum


class KnownRelease(NamedTuple):
    """What is known of a release.

    Parameters
    ----------
    prior : ndarray (d,)
        The mechanism's.
    n : int
        Number of records.
    released : ndarray (d,)
        Counts of the released posterior.
    law : ExponentialMechanism or None
        Of method hellinger.
    noisy : ndarray (1,) or (d,) or None
        Noisy counts of the other methods.
    scale, noise : float, str
        Of their noise, ``"laplace"`` or ``"geometric"``.
    """

    prior: Floats
    n: int
    released: Floats
    law: ExponentialMechanism | None
    noisy: Floats | None
    scale: float
    noise: str


def known_of(release: Release) -> KnownRelease:
    """Return what is known of a release of kind ``posterior``.

    Raises
    ------
    DataError
        When its law cannot be computed.
    """
    stated = expect(release.mechanism, PosteriorLaw)
    prior: Floats = np.array(stated.prior, dtype=np.float64)
    released: Floats = release.values[:, 0] - prior
    noise = stated.noise or "laplace"
    if stated.method == "hellinger":
        try:
            law = exponential_mechanism_of(stated)
        except PrivacyError as error:
            raise DataError(f"the release cannot be of this mechanism: {error}") from error
        return KnownRelease(prior, release.n, np.rint(released), law, None, 0.0, noise)
    if stated.noisy_counts is not None:
        noisy = np.array(stated.noisy_counts, dtype=np.float64)
    elif prior.size == 2:
        noisy = released[:1]
    else:
        raise DataError(
            "the release is of three categories or more and does not hold its noisy counts, which the "
            "nearest posterior does not tell; fit the release file that dpmix privatize writes"
        )
    return KnownRelease(prior, release.n, released, None, noisy, stated.scale[0], noise)


def exponential_mechanism_of(law: PosteriorLaw) -> ExponentialMechanism:
    """Return the law that a release of method hellinger states.

    Raises
    ------
    PrivacyError
        When there can be none of this prior and number of records.
    """
    exponent = float(law.exponent_scale) * law.epsilon / 2
    return ExponentialMechanism(Posteriors(law.prior, law.n), float(law.gamma), exponent, law.bits)


def log_prior(prior: Floats, counts: Integers) -> Floats:
    """Return the log probabilities of counts (k, d) under the Dirichlet-multinomial, up to a constant."""
    from scipy.special import gammaln  # late, as it is slow to import

    found: Floats = (gammaln(prior + counts) - gammaln(counts + 1.0)).sum(axis=-1)
    return found


class ListedCounts:
    """The posterior of all counts, listed, and independent draws from it.

    Parameters
    ----------
    prior : ndarray (d,)
        The analyst's.
    counts : ndarray of int64 (k, d)
        All that there can be.
    log_likelihood : ndarray (k,)
        Of each.
    """

    def __init__(self, prior: Floats, counts: Integers, log_likelihood: Floats) -> None:
        self.counts = counts
        self.log_likelihood = log_likelihood
        log = log_prior(prior, counts) + log_likelihood
        self.probability: Floats = np.exp(log - log.max())
        self.probability /= self.probability.sum()
        self._ends = np.cumsum(self.probability)

    def _place(self, rng: Generator) -> int:
        found = int(np.searchsorted(self._ends, rng.random() * self._ends[-1], side="right"))
        return min(found, self._ends.size - 1)

    def draw(self, rng: Generator) -> tuple[Integers, float]:
        """Return counts (d,), and the log likelihood of the release given them."""
        place = self._place(rng)
        return self.counts[place], float(self.log_likelihood[place])


class TwoCounts(ListedCounts):
    """Likewise of two categories under method hellinger.

    Where the sums Z(c) would take too long before the first draw, a lower bound stands in their place, and a
    draw is accepted with the bound over Z(c), which is then computed: exact all the same.

    Parameters
    ----------
    prior : ndarray (2,)
        The analyst's.
    law : ExponentialMechanism
    released : int
        Count of the first category of the released posterior.
    budget : float
        Weights to be summed before the first draw, at most about.
    """

    def __init__(
        self, prior: Floats, law: ExponentialMechanism, released: int, budget: float = AT_ONCE
    ) -> None:
        of = law.posteriors
        self._law = (folded(of), of.unit, law.rates, law.top)
        table, unit, rates, top = self._law
        weights = log_weights_of_two(table, unit, released, rates, top)
        places = np.flatnonzero(np.isfinite(weights))
        totals, self.complete = totals_of_two(table, unit, places, rates, top, budget)
        self._totals: Floats = totals
        counts = np.stack([places, of.n - places], axis=1)
        super().__init__(prior, counts, weights[places] - np.log(totals))

    def draw(self, rng: Generator) -> tuple[Integers, float]:
        """Return counts (2,), and the log likelihood of the release given them."""
        if self.complete:
            return super().draw(rng)
        table, unit, rates, top = self._law
        while True:
            place = self._place(rng)
            c = int(self.counts[place, 0])
            total = float(total_of_two(table, unit, c, rates[c], top))
            share = float(self._totals[place]) / total
            if rng.random() < share:
                return self.counts[place], float(self.log_likelihood[place]) + math.log(share)


def listed(prior: Floats, known: KnownRelease) -> ListedCounts | None:
    """Return the posterior of all counts; None where there are too many of them.

    Parameters
    ----------
    prior : ndarray (d,)
        The analyst's.
    known : Known
    """
    d, n = prior.size, known.n
    size = math.comb(n + d - 1, d - 1)
    if known.law is not None:
        if d == 2:
            return TwoCounts(prior, known.law, int(known.released[0]))
        if size > MOST_STATES:
            return None
        counts, tables = states(n, d), tables_of(known.law)
        totals, rates = totals_of_states(tables, counts)
        seen = log_weights_of_states(tables, counts, known.released.astype(np.int64), rates)
        keep = np.isfinite(seen)
        return ListedCounts(prior, counts[keep], seen[keep] - np.log(totals[keep]))
    assert known.noisy is not None  # of these methods they are known
    if d == 2:
        first = np.arange(n + 1)
        counts = np.stack([first, n - first], axis=1)
    elif size <= LISTED:
        counts = states(n, d)
    else:
        return None
    apart = np.abs(counts[:, : known.noisy.size] - known.noisy).sum(axis=1)
    return ListedCounts(prior, counts, -apart / known.scale)


# Compiled loops


@njit
def log_weights_of_two(table, unit, released, rates, top):
    """Return log w(r | c) of two categories for c = 0, .., n, shape (n + 1,); -inf where it is 0.

    table (2 n + 1,) is U(k) = T_1(k) + T_2(2 n - k) (`dpmix.posteriors.hellinger_law.folded`), released is r.
    """
    found = np.empty(rates.size)
    for c in range(rates.size):
        units = table[2 * c] + table[2 * released] - 2 * table[c + released]
        own = weight(units, unit, rates[c], top)
        found[c] = math.log(own) if own > 0.0 else -math.inf
    return found


@njit
def total_of_two(table, unit, c, rate, top):
    """Return Z(c) of two categories."""
    total: float = row_of_two(table, unit, c, rate, top, np.empty((table.size + 1) // 2))[3]
    return total


@njit
def totals_of_two(table, unit, places, rates, top, budget):
    """Return Z(c) of two categories for c in `places` (k,), and whether the sums kept within the budget.

    Where they come to more than `budget` weights, the totals are lower bounds (`_lower_total`) instead.
    """
    found = np.empty(places.size)
    scratch = np.empty((table.size + 1) // 2)
    work = 0.0
    for x in range(places.size):
        c = places[x]
        first, last, _, found[x], _ = row_of_two(table, unit, c, rates[c], top, scratch)
        work += last - first
        if work > budget:
            break
    if work <= budget:
        return found, True
    for x in range(places.size):
        found[x] = _lower_total(table, unit, places[x], rates[places[x]], top)
    return found, False


@njit
def _lower_total(table, unit, c, rate, top):
    """Return a lower bound of Z(c) within some per cent: weights fall on both sides, by growing steps."""
    n = (table.size - 1) // 2
    total = top
    for side in (-1, 1):
        room = c if side < 0 else n - c
        done = 0
        while done < room:
            here = min(max(done + 1, int(done * _GROWTH)), room)
            r = c + side * here
            own = weight(table[2 * c] + table[2 * r] - 2 * table[c + r], unit, rate, top)
            if own <= 0.0:
                break
            total += own * (here - done)
            done = here
    return total * (1.0 - 1e-9)


@njit
def totals_of_states(law, states):
    """Return Z(c) and the rate of all counts of three categories or more, each of shape (k,).

    `law` is a `dpmix.posteriors.simulated_draws.DrawTables`, states (k, d) all counts.
    """
    count = states.shape[0]
    totals, rates = np.empty(count), np.empty(count)
    for x in range(count):
        rates[x] = rate_at(law, states[x])
        total = 0.0
        for r in range(count):
            total += weight(apart(law, states[x], states[r]), law.unit, rates[x], law.top)
        totals[x] = total
    return totals, rates


@njit
def log_weights_of_states(law, states, released, rates):
    """Return log w(r | c) of all counts c of three categories or more, shape (k,); -inf where it is 0."""
    found = np.empty(states.shape[0])
    for x in range(states.shape[0]):
        own = weight(apart(law, states[x], released), law.unit, rates[x], law.top)
        found[x] = math.log(own) if own > 0.0 else -math.inf
    return found


@njit
def _log_prior(prior, counts):
    """Return the log Dirichlet-multinomial probability of counts (d,), up to a constant."""
    total = 0.0
    for i in range(counts.size):
        total += math.lgamma(prior[i] + counts[i]) - math.lgamma(counts[i] + 1.0)
    return total


@njit
def sweep_exchange(law, prior, released, rng, counts, rate, moves, sweeps):
    """Move the counts by the exchange algorithm (Murray, Ghahramani and MacKay 2006).

    An offer c' from q(c' | c) is accepted with probability

        p(c') w(r | c') q(c | c') w(s | c) / (p(c) w(r | c) q(c' | c) w(s | c')),

    where s is a further posterior, drawn given c': it brings in the normalizers Z, which cancel. A sweep has
    one offer drawn by the mechanism itself as if r were true, q(c' | c) = w(c' | r)/Z(r), and one for every
    category that moves records from one to another, their number uniform in logarithms.

    Parameters
    ----------
    law : Tables
    prior : ndarray (d,)
        Parameters of the Dirichlet prior.
    released : ndarray of int64 (d,)
        Counts r of the released posterior.
    rng : Generator
    counts : ndarray of int64 (d,)
        c, changed in place.
    rate : ndarray (1,)
        Factor of the distance in the exponent at c, changed in place.
    moves : ndarray (2,)
        Accepted and made; added to.
    sweeps : int
    """
    d = counts.size
    n = law.steps.shape[1]
    other, drawn = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    span = math.log(n + 1.0)
    around = rate_at(law, released)
    for move in range(sweeps * (d + 1)):
        moves[1] += 1.0
        gain = 0.0
        if move % (d + 1) == 0:
            ahead = draw_released(law, released, around, rng, other)
            back = weight(apart(law, released, counts), law.unit, around, law.top)
            if back <= 0.0:
                continue
            gain = math.log(back) - math.log(ahead)
        else:
            i, j = int(rng.random() * d), int(rng.random() * (d - 1))
            j += 1 if j >= i else 0
            m = int(math.exp(rng.random() * span))
            if counts[i] < m:
                continue
            other[:] = counts
            other[i] -= m
            other[j] += m
        offered = rate_at(law, other)
        theirs = weight(apart(law, other, released), law.unit, offered, law.top)
        if theirs <= 0.0:
            continue
        own = weight(apart(law, counts, released), law.unit, rate[0], law.top)
        gain += math.log(theirs) - math.log(own) + _log_prior(prior, other) - _log_prior(prior, counts)
        at_other = draw_released(law, other, offered, rng, drawn)
        at_own = weight(apart(law, counts, drawn), law.unit, rate[0], law.top)
        if at_own <= 0.0:
            continue
        gain += math.log(at_own) - math.log(at_other)
        if -rng.standard_exponential() < gain:
            counts[:] = other
            rate[0] = offered
            moves[0] += 1.0
