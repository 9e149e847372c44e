"""The privacy loss at the database that is there: a diagnostic for its curator (methods, section 5).

Everything here depends on the confidential records. It goes to the curator's terminal, never into a release,
and decides nothing: not how many records are released, nor whether any are.

Of the n records n_j have the j-th of k values; a release has m_j copies of it and K distinct new values. Only
the n_j matter, and values with equal n_j are alike. One record of value a is replaced by one of value b; the
likelihood ratio L = p/p' of the release is, with b old or new,

    n_a >= 2, old:  (n_a-1-d+m_a)/(n_a-1-d) (n_b-d)/(n_b-d+m_b)
    n_a >= 2, new:  (n_a-1-d+m_a)/(n_a-1-d) (theta+d k)/(theta+d (k+K))
    n_a = 1,  old:  infinite if m_a > 0, else (theta+d (k+K-1))/(theta+d (k-1)) (n_b-d)/(n_b-d+m_b)
    n_a = 1,  new:  infinite if m_a > 0, else 1.

Forward, the delta of the paper's Theorem 1 is the largest P(L > e^eps) over a and b, and the smallest delta
with P <= e^eps P' + delta the largest E(1 - e^eps/L)_+. In the other direction, P' <= e^eps P + delta, b new
alone costs S = 1 - prod_i (theta+n-1+d+i)/(theta+n+i), the probability that a value of one record is
released, and no neighbour more than m/(theta+n+m-1); the two are equal at d = 0.

At d = 0 the ratio is largest for b new, and all is a sum over one beta-binomial. At d > 0 the draws are
simulated: the number from the prior mass theta + d k is beta-binomial, K the number of blocks of as many
records under PY(d, theta + d k), and the m_j Dirichlet-multinomial. Given m_a = 0 for n_a = 1 the urn is
that of the other n - 1 records with concentration theta + d, so that S is never simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmix.synthesis.instance_draws import InstanceUrn, Simulation, upper_bounds
from dpmix.synthesis.urn_guarantee import dm_epsilon, global_delta, rounded_up

__all__ = ["Instance", "categories_instance", "instance"]

Ints = NDArray[np.int64]

_WORK = 3e9  # nanoseconds, roughly
_MOST_DRAWS = 20_000
_FEWEST_DRAWS = 200


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Privacy loss at the observed database; confidential, and no ground for any decision.

    Parameters
    ----------
    epsilon : float
        That the deltas go with.
    delta : float
        One-sided: the paper's delta, the largest P(L > e^epsilon) over the neighbours of the database, for
        releases of the database itself. Says nothing of releases of a neighbour; see `reverse`.
    delta_upper : float
        Upper confidence bound on `delta`; `delta` itself where that is exact.
    exact : bool
        Whether all deltas are sums rather than estimates from draws.
    hockey_stick : float
        One-sided, as `delta`: the smallest delta with P(S) <= e^epsilon P'(S) + delta for all sets S of
        releases and all neighbours. The largest of several estimates where it is not exact.
    hockey_stick_upper : float
        Upper confidence bound on `hockey_stick`.
    reverse : float
        Upper bound on the smallest delta with P'(S) <= e^epsilon P(S) + delta: the other direction.
    reverse_lower : float
        Lower bound, without a confidence level: that of a neighbour with a value that no record here has.
    confidence : float
        Probability with which all three upper bounds hold together; 1 where nothing is estimated.
    draws : int
        Simulated releases behind the estimates; 0 where all is exact.
    """

    epsilon: float
    delta: float
    delta_upper: float
    exact: bool
    hockey_stick: float
    hockey_stick_upper: float
    reverse: float
    reverse_lower: float
    confidence: float
    draws: int


def instance(
    counts: Sequence[int] | Ints,
    discount: Fraction | float,
    concentration: Fraction | float,
    records: int,
    epsilon: float,
    *,
    rng: np.random.Generator,
    draws: int | None = None,
    confidence: float = 0.95,
) -> Instance:
    """Return the privacy loss of a Pitman-Yor release, 0 <= discount < 1, at the observed database.

    One-sided as far as `delta` and `hockey_stick` go; confidential; must never decide anything.

    Parameters
    ----------
    counts : sequence of int, shape (k,)
        Number of records of each value, all positive.
    discount, concentration : Fraction or float
        Parameters of the process; concentration above minus the discount.
    records : int
        Draws m, 1 at least.
    epsilon : float
        Not negative.
    rng : Generator
        For the simulation at discount > 0; what it yields is seen by the curator alone.
    draws : int, optional
        Number of simulated releases; left out, as many as take some seconds, 20,000 at most.
    confidence : float
        Of the upper bounds together.

    Raises
    ------
    ValueError
        When an argument is out of range.
    """
    sizes, numbers = np.unique(np.asarray(counts, dtype=np.int64), return_counts=True)
    if len(sizes) == 0 or sizes[0] < 1 or records < 1 or not epsilon >= 0 or not 0 < confidence < 1:
        raise ValueError("counts and records must be positive, epsilon not negative, confidence in (0, 1)")
    if not (0 <= discount < 1 and concentration > -discount):
        raise ValueError("the discount must be in [0, 1), the concentration above minus the discount")
    urn = InstanceUrn(sizes, numbers, float(discount), float(concentration), records, epsilon)
    bound = rounded_up(global_delta(urn.n, Fraction(concentration), records))
    if discount == 0:
        return _sums(urn, bound)
    return _simulated(urn, bound, rng, draws, confidence)


def categories_instance(counts: Sequence[int] | Ints, categories: int, a: Fraction, records: int) -> Instance:
    """Return the privacy loss of a Dirichlet-multinomial release at the observed database: pure epsilon.

    That is log(1 + m/(a + max(0, n_min - 1))), n_min over all categories, 0 where one is empty: it holds in
    both directions, for this database and its neighbours. Confidential; must never decide anything.

    Parameters
    ----------
    counts : sequence of int
        Number of records of each category; empty ones may be left out.
    categories : int
        Number of public categories K.
    a : Fraction
        Prior count of each.
    records : int
        Draws m.
    """
    found = [int(count) for count in counts if count > 0]
    if not found or len(found) > categories or records < 1:
        raise ValueError("there must be records, no more values than categories, and draws")
    least = min(found) if len(found) == categories else 0
    epsilon = dm_epsilon(Fraction(a) + max(0, least - 1), records) if categories > 1 else 0.0
    return _exact(epsilon, 0.0, 0.0, 0.0)


def _exact(epsilon: float, delta: float, hockey_stick: float, reverse: float) -> Instance:
    return Instance(
        epsilon=epsilon,
        delta=delta,
        delta_upper=delta,
        exact=True,
        hockey_stick=hockey_stick,
        hockey_stick_upper=hockey_stick,
        reverse=reverse,
        reverse_lower=reverse,
        confidence=1.0,
        draws=0,
    )


def _sums(urn: InstanceUrn, bound: float) -> Instance:
    """Discount 0: the largest over classes, each a sum; the other direction is the global delta."""
    forward = [(bound, bound) if size == 1 else urn.replaced(int(size)) for size in urn.sizes]
    return _exact(urn.epsilon, max(f[0] for f in forward), max(f[1] for f in forward), bound)


def _simulated(
    urn: InstanceUrn, bound: float, rng: np.random.Generator, draws: int | None, confidence: float
) -> Instance:
    """Estimate from draws where there is no closed form, and bounds over all pairs of classes."""
    singular = urn.singular()
    several = np.flatnonzero(urn.sizes > 1)
    caps = np.array([urn.replaced(int(urn.sizes[j])) for j in several]).reshape(-1, 2)
    floor = singular if urn.single else 0.0
    # what can at most be as large as the singular part is not simulated
    candidates = np.flatnonzero(caps[:, 0] > floor)
    kept, caps = several[candidates], caps[candidates]
    simulation = Simulation(urn, kept)
    comparisons = simulation.comparisons
    if comparisons == 0:
        return _exact(urn.epsilon, singular, singular, singular)
    if draws is None:
        draws = int(min(max(_WORK / simulation.cost(), _FEWEST_DRAWS), _MOST_DRAWS))
    simulation.run(rng, draws)
    level = (1 - confidence) / (3 * comparisons)

    found, upper = [np.array([floor, floor])], [np.array([floor, floor])]
    if len(kept):
        best = simulation.best_of_pairs()
        found.append(np.minimum(best / draws, caps).max(axis=0))
        upper.append(np.minimum(upper_bounds(best, draws, level), caps).max(axis=0))
    if len(simulation.single_cases):
        best = np.array([[simulation.single.count.max(), simulation.single.total.max()]])
        found.append(singular + (1 - singular) * best[0] / draws)
        upper.append(singular + (1 - singular) * upper_bounds(best, draws, level)[0])
    delta, hockey_stick = np.max(found, axis=0)
    delta_upper, hockey_stick_upper = np.max(upper, axis=0)

    # the other direction: by an old value at most what that value's own copies tell, by a new one simulated
    reverse = singular
    old = urn.sizes if urn.k > 1 else urn.sizes[:0]
    reverse = max([reverse, *(urn.replaced(int(size) + 1)[1] for size in old)])
    if len(several):
        most = np.array([[0.0, simulation.back.total.max()]])
        reverse = max(reverse, singular + (1 - singular) * float(upper_bounds(most, draws, level)[0, 1]))
    return Instance(
        epsilon=urn.epsilon,
        delta=float(delta),
        delta_upper=float(delta_upper),
        exact=False,
        hockey_stick=min(float(hockey_stick), bound),
        hockey_stick_upper=min(float(hockey_stick_upper), bound),
        reverse=min(reverse, bound),
        reverse_lower=singular,
        confidence=confidence,
        draws=draws,
    )
