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
merged by a fixed map. Where a release shows which values are new (`dpmix.models.discrete_shown`), those get
no records of x, and the law of the others is conditioned on c_j >= 1: `dpmix.models.discrete_old`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix._jit import njit
from dpmix.models.discrete_old import EachOccurs, dirichlet_multinomial
from dpmix.models.process import Measure

__all__ = ["Urn", "split"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Urn:
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
