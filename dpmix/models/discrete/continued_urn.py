"""The confidential records given synthetic ones that continue their urn: exact, independent draws.

P ~ PY(d, theta, P0), the confidential x_1..x_n are independent draws of P, and the released z_1..z_m
continue the urn of x. Then (x, z) is one exchangeable sequence, x | z is the urn continued from z for n
more draws, and P depends on z through x alone (methods, section 5). With k distinct values of z, the j-th
m_j times in z::

    (c_1..c_k, c_new) ~ Dirichlet-multinomial(n; m_1 - d, .., m_k - d, theta + k d),

c_new is split into values of their own by the partition of PY(d, theta + k d), whose places are independent
draws of P0; and with n_j the numbers of the k' distinct values of **x** (those with c_j = 0 are none)::

    P | x = sum_j W_j delta_{x_j} + W_0 PY(d, theta + k' d, P0),
    (W_1.., W_0) ~ Dirichlet(n_1 - d, .., theta + k' d).

At d = 0 this holds for a discrete P0 too, where c_j has the weight theta P0(z_j) + m_j, and for values
merged by a fixed map. Where a release shows which values are new (`dpmix.models.discrete.model`), those get
no records of x, and the law of the others is conditioned on c_j >= 1: `EachOccurs`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.models.discrete.random_measure import Measure, draw_weights
from dpmix.numerics.jit import njit

# Dirichlet-multinomial numbers, also given that each of some categories occurs: exact, independent draws.
#
# Numbers c of n records have probabilities proportional to prod_j (a_j)_{c_j} / c_j!, the coefficients of (1
# - t)^-a_j. Of a category that must occur, c_j >= 1, the generating function is (1 - t)^-a - 1.
#
# **a whole (d = 0).** With u = 1/(1 - t), u^a - 1 = t (u + u^2 + .. + u^a): c_j - 1 is a number under a label
# i_j in 1..a_j in place of a_j, and the labels are uniform but for the coefficient of t^N in u^A, (A)_N / N!,
# where A = I + all other weights, I = sum i_j, and N = n - k. Labels are drawn with probabilities in
# proportion to r^{i_j}, and taken with probability (A)_N r^-I over its largest value; r is such that mean and
# mode agree. Then c is a Dirichlet-multinomial number of N records under the labels, plus 1.
#
# **Else (d > 0).** Plain rejection where it succeeds often. Else independent negative binomial numbers of the
# same a_j with a t at which their sum has mean n, conditioned on c_j >= 1 where it must be and on that sum:
# all but the one of the largest a are drawn, that one is what they leave of n, and this is taken with its
# probability over that of its mode.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_OFTEN = 0.2  # success of plain rejection from which on it is used


def dirichlet_multinomial(rng: Generator, shapes: Floats, n: int) -> Ints:
    """Draw the numbers of n records in categories of weights `shapes` (J,), 0 for those that cannot occur."""
    none = np.empty(0)
    weights = np.empty(len(shapes))
    draw_weights(rng, Measure(shapes, none, none, 0.0, np.empty((0, 1), dtype=np.int64), 0.0), weights, none)
    possible = np.flatnonzero(shapes > 0.0)  # the last takes what rounding leaves
    found = np.zeros(len(shapes), dtype=np.int64)
    found[possible] = rng.multinomial(n, weights[possible] / weights[possible].sum())
    return found


class EachOccurs:
    """Numbers of n records in categories, some of which must occur.

    Parameters
    ----------
    n : int
        Number of records.
    shapes : array (J,)
        Weights a_j; those of `forced` categories are whole numbers less `discount`.
    forced : array of bool (J,)
        Which must occur.
    discount : float

    Raises
    ------
    DataError
        When there are more forced categories than records.
    """

    def __init__(self, n: int, shapes: Floats, forced: NDArray[np.bool_], discount: float) -> None:
        self.n, self.shapes, self.forced = n, np.asarray(shapes, dtype=np.float64), forced
        self.count = int(forced.sum())
        if self.count > n:
            raise DataError(
                f"the release has {self.count} values that are shown as confidential ones, and says that "
                f"there were {n} records"
            )
        self.whole = discount == 0.0
        self.plain = False
        if not self.whole:
            self.plain = _occurrence(self.shapes, forced, n) > math.log(_OFTEN)

    def draw(self, rng: Generator) -> Ints:
        """Draw the numbers (J,)."""
        if self.n == self.count:
            return self.forced.astype(np.int64)
        if self.whole:
            return self._by_labels(rng)
        if self.plain:
            while True:
                found = dirichlet_multinomial(rng, self.shapes, self.n)
                if (found[self.forced] > 0).all():
                    return found
        return self._given_sum(rng)

    def _by_labels(self, rng: Generator) -> Ints:
        most, others, left = self.shapes[self.forced], self._others, self.n - self.count
        rate, top = self._label_law
        while True:
            labels = _labels(rng, most, rate)
            total = float(labels.sum())
            log = _log_rising(total + others, left) - rate * total - top
            if log >= 0.0 or rng.random() < math.exp(log):
                break
        shapes = self.shapes.copy()
        shapes[self.forced] = labels
        return dirichlet_multinomial(rng, shapes, left) + self.forced

    @cached_property
    def _others(self) -> float:
        return float(self.shapes[~self.forced].sum())

    @cached_property
    def _label_law(self) -> tuple[float, float]:
        """Return log r, and the largest log((A)_N r^-I), which grows with I while A + N > r A."""
        most, others, left = self.shapes[self.forced], self._others, self.n - self.count
        rate = _label_rate(most, others, left)
        low, high = float(self.count), float(most.sum())
        mode = min(max(math.ceil(left / math.expm1(rate) - others), low), high)
        return rate, _log_rising(mode + others, left) - rate * mode

    @cached_property
    def _t(self) -> float:
        return _tilt(self.shapes, self.forced, self.n)

    def _given_sum(self, rng: Generator) -> Ints:
        found = np.empty(len(self.shapes), dtype=np.int64)
        _fill_given_sum(rng, self.shapes, self.forced, self.n, self._t, found)
        return found


def _log_rising(a: float, count: float) -> float:
    return math.lgamma(a + count) - math.lgamma(a)


def _occurrence(shapes: Floats, forced: NDArray[np.bool_], n: int) -> float:
    """Return about log Pr(all forced ones occur): as if they were independent."""
    from scipy.special import gammaln  # late, as it is slow to import

    total, own = shapes.sum(), shapes[forced]
    rest = np.maximum(total - own, 1e-300)
    missing = gammaln(total) - gammaln(total + n) + gammaln(rest + n) - gammaln(rest)
    return float(np.log1p(-np.minimum(np.exp(missing), 1.0 - 1e-16)).sum())


def _label_rate(most: Floats, others: float, left: int) -> float:
    """Return log r, r = 1 + N / (mean sum of labels + other weights)."""
    values, times = np.unique(most, return_counts=True)
    low = math.log1p(left / (most.sum() + others))
    high = math.log1p(left / (len(most) + others))
    for _ in range(60):
        rate = 0.5 * (low + high)
        below = 1.0 / math.expm1(rate) - values / np.expm1(np.minimum(values * rate, 700.0))
        mean = float(times @ (values - below))
        if rate < math.log1p(left / (mean + others)):
            low = rate
        else:
            high = rate
    return 0.5 * (low + high)


def _labels(rng: Generator, most: Floats, rate: float) -> Floats:
    """Draw labels in 1..most_j with probabilities in proportion to exp(rate i)."""
    u = rng.random(len(most))
    below = np.floor(-np.log1p(u * np.expm1(-rate * most)) / rate)
    return np.asarray(most - np.minimum(below, most - 1.0), dtype=np.float64)


def _tilt(shapes: Floats, forced: NDArray[np.bool_], n: int) -> float:
    """Return t at which the mean of the sum is n, by bisection on log(t / (1 - t))."""
    low, high = -60.0, 60.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        odds, log_rest = math.exp(middle), -math.log1p(math.exp(middle))
        means = shapes * odds
        some = -np.expm1(shapes[forced] * log_rest)
        means[forced] /= some
        if means.sum() < n:
            low = middle
        else:
            high = middle
    return 1.0 / (1.0 + math.exp(-0.5 * (low + high)))


@njit
def _log_mass(a, t, c):
    return math.lgamma(a + c) - math.lgamma(c + 1.0) + c * math.log(t)


@njit
def _positive(rng, a, t, most):
    """Draw a negative binomial number given that it is positive; any above `most` where it is above."""
    none = math.exp(a * math.log1p(-t))
    if none < 0.5:
        while True:
            c = rng.poisson(rng.standard_gamma(a) * t / (1.0 - t))
            if c > 0:
                return c
    u = rng.random() * -math.expm1(a * math.log1p(-t))
    mass, c = a * t * none, 1
    while u >= mass and c <= most:
        u -= mass
        mass *= t * (a + c) / (c + 1.0)
        c += 1
    return c


@njit
def _fill_given_sum(rng, shapes, forced, n, t, out):
    """Draw numbers that sum to n; see the module."""
    last = np.argmax(shapes)
    a = shapes[last]
    least = 1 if forced[last] else 0
    mode = float(least)
    if a > 1.0:
        mode = max(mode, float(math.floor((a - 1.0) * t / (1.0 - t))))
    top = _log_mass(a, t, mode)
    while True:
        total = 0
        for j in range(len(shapes)):
            if j == last or shapes[j] <= 0.0:
                out[j] = 0
                continue
            if forced[j]:
                out[j] = _positive(rng, shapes[j], t, n)
            else:
                out[j] = rng.poisson(rng.standard_gamma(shapes[j]) * t / (1.0 - t))
            total += out[j]
            if total > n:
                break
        rest = n - total
        if rest >= least and rng.random() < math.exp(_log_mass(a, t, float(rest)) - top):
            out[last] = rest
            return


@dataclass(frozen=True, eq=False)
class ContinuedUrn:
    """The urn as the released records leave it.

    Parameters
    ----------
    n : int
        Number of confidential records.
    seen : array (J,)
        Number m_j of released records of each atom or cell.
    prior : array (J,)
        theta P0 of each; 0 under a base measure without atoms, and where d > 0.
    concentration, discount : float
        theta and d.
    distinct : int
        Number k of distinct released values, new ones among them.
    closed : bool
        Whether there are no values but the atoms or cells.
    old : bool
        Whether each value that was released is shown to be a confidential one; the new ones are not among the
        atoms.
    alike : bool
        Whether all values that are no atoms count as one, so that they need not be told apart.
    """

    n: int
    seen: Floats
    prior: Floats
    concentration: float
    discount: float
    distinct: int
    closed: bool = False
    old: bool = False
    alike: bool = False

    @property
    def left(self) -> float:
        """Weight of all values that are no atoms."""
        return 0.0 if self.closed else self.concentration + self.discount * self.distinct

    @property
    def known_likelihood(self) -> bool:
        """Whether released records have probabilities given x, and none is a value that P0 cannot have."""
        return self.closed and not self.old and bool((self.prior[self.seen > 0.0] > 0.0).all())

    @cached_property
    def _shapes(self) -> Floats:
        return np.append(self.prior + self.seen - self.discount * (self.seen > 0.0), self.left)

    @cached_property
    def _each_occurs(self) -> EachOccurs:
        forced = np.append(self.seen > 0.0, False)
        return EachOccurs(self.n, self._shapes, forced, self.discount)

    def draw(self, rng: Generator) -> Ints:
        """Draw the numbers of confidential records of each atom, and last of all other values: (J + 1,)."""
        return self._each_occurs.draw(rng) if self.old else dirichlet_multinomial(rng, self._shapes, self.n)

    def measure(self, rng: Generator, drawn: Ints, prior: Measure) -> Measure:
        """Return the law of P given the numbers `drawn`, those of values that are no atoms split here.

        A value that is no atom is a region of concentration -d, which is a single atom of the base measure.
        """
        d, counts, other = self.discount, drawn[:-1].astype(np.float64), int(drawn[-1])
        atoms = self.prior + np.where(counts > 0.0, counts - d, 0.0)
        rest = self.concentration + d * float(np.count_nonzero(counts))
        if self.alike:
            return prior._replace(atoms=np.append(atoms, rest + other))
        blocks = split(rng, other, d, self.left).astype(np.float64)
        rest += d * len(blocks)
        return prior._replace(
            atoms=atoms,
            regions=np.append(blocks - d, rest),
            concentration=np.append(np.full(len(blocks), -d), rest),
            cells=np.full((len(blocks) + 1, prior.cells.shape[1]), -1, dtype=np.int64),
        )

    def log_likelihood(self, drawn: Ints) -> float:
        """Return log p(z | x) where it is known: of prod_j (theta P0_j + c_j)_(m_j) / (theta + n)_m."""
        there = np.flatnonzero(self.seen)
        shapes, times = self.prior[there] + drawn[there], self.seen[there]
        total = float(self.prior.sum()) + self.n
        found = sum(map(math.lgamma, shapes + times)) - sum(map(math.lgamma, shapes))
        return float(found - math.lgamma(total + times.sum()) + math.lgamma(total))


@njit
def split(rng, count, d, concentration):
    """Draw the block sizes of `count` records under PY(d, concentration), in the order that they appear.

    The first block has 1 + Binomial(count - 1, V) records, V ~ Beta(1 - d, concentration + d), and what is
    left is a sequence of PY(d, concentration + d): O(number of blocks).
    """
    sizes = np.empty(64, dtype=np.int64)
    used, left, a = 0, count, concentration
    while left > 0:
        if d == 0.0:
            keep = math.exp(-rng.standard_exponential() / a)
            share = 1.0 - keep
        else:
            first = rng.standard_gamma(1.0 - d)
            rest = rng.standard_gamma(a + d)
            share = first / (first + rest)
        size = 1 if left == 1 else 1 + rng.binomial(left - 1, share)
        if used == len(sizes):
            wide = np.empty(2 * used, dtype=np.int64)
            wide[:used] = sizes
            sizes = wide
        sizes[used] = size
        used += 1
        left -= size
        a += d
    return sizes[:used]
