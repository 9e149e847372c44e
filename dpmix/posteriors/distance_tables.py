"""Hellinger distances between Dirichlet posteriors of equally many records, from tables of log gamma."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError

__all__ = ["LARGEST_N", "Posteriors", "checked_counts"]

Integers = NDArray[np.int64]

LARGEST_N = 1_000_000
_LARGEST_PRIOR = 1e9
_FINEST = 2**16  # units between neighbours, at least: rounding to units loses less than 2^-15 of them
_ASYMPTOTIC = 32.0


@dataclass(frozen=True)
class Posteriors:
    """Every posterior Dir(prior + c) that counts c of n records can give (methods, section 6).

    Two of them have parameters a and b with the same sum, of which the gamma functions cancel:

        1 - H^2 = prod_i Gamma((a_i + b_i)/2) / sqrt(Gamma(a_i) Gamma(b_i)) = exp(-sum_i h_i(c_i, r_i)).

    With T_i(k) = log Gamma(prior_i + k/2), k = 0, .., 2 n, 2 h_i(c, r) is T_i(2c) + T_i(2r) - 2 T_i(c + r),
    a second difference: anything affine in k may be added to T_i. The tables hold T_i in fixed point, with
    T_i(0) = T_i(2n) = 0 but for rounding; differences are exact, and all that follows starts from integers.

    Parameters
    ----------
    prior : tuple of float
        Parameters of the Dirichlet prior, at least two.
    n : int
        Number of records.
    """

    prior: tuple[float, ...]
    n: int

    def __post_init__(self) -> None:
        """Check prior and number of records.

        Raises
        ------
        PrivacyError
            When an entry of the prior is not between 0 and 1e9, or there are too many records, or none.
        """
        if len(self.prior) < 2:
            raise PrivacyError("a posterior needs a prior of at least two entries")
        for entry in self.prior:
            if not 0 < entry <= _LARGEST_PRIOR:
                raise PrivacyError(f"the entries of the prior must be above 0 and at most 1e9, not {entry:g}")
        if not 1 <= self.n <= LARGEST_N:
            raise PrivacyError(f"a posterior is released of 1 to {LARGEST_N} records, not {self.n}")

    @property
    def dimension(self) -> int:
        """Number of categories d."""
        return len(self.prior)

    @property
    def size(self) -> int:
        """Number of posteriors, C(n + d - 1, d - 1)."""
        return math.comb(self.n + self.dimension - 1, self.dimension - 1)

    @property
    def exchangeable(self) -> bool:
        """Whether all entries of the prior are equal."""
        return len(set(self.prior)) == 1

    @functools.cached_property
    def _made(self) -> tuple[Integers, int]:
        steps = [_half_steps(entry, self.n) for entry in self.prior]
        depth = max(float(np.abs(np.cumsum(row)).max()) for row in steps)
        bits = 60 - math.ceil(math.log2(self.dimension * depth))  # all that is apart stays below 2^61
        table = np.zeros((self.dimension, 2 * self.n + 1), dtype=np.int64)
        for row, own in zip(table, steps, strict=True):
            np.cumsum(np.rint(np.ldexp(own, bits)).astype(np.int64), out=row[1:])
        least = np.sort((table[:, 0:-2:2] + table[:, 2::2] - 2 * table[:, 1::2]).min(axis=1))
        if least[:2].sum() < _FINEST:
            raise PrivacyError(
                f"posteriors of {self.n} records under this prior are too close to be told apart"
            )
        return table, bits

    @property
    def bits(self) -> int:
        """2^bits units of the tables are one."""
        return self._made[1]

    @property
    def inexact(self) -> float:
        """How far a step of the tables may be off before it is rounded to units; see `_half_steps`.

        Sums of at most 33 logarithms with relative errors below 2^-51 each. Those of x over the centre are
        below 42; those of the recurrence add up to log(1 + 1/(2 entry)) + log(33) at most.
        """
        return math.ldexp(64 * (8 + math.log1p(0.5 / min(self.prior))), -53)

    @property
    def table(self) -> Integers:
        """T_i(k) of `2^bits` units to one, shape (d, 2 n + 1)."""
        return self._made[0]

    @property
    def unit(self) -> float:
        """What one unit of `apart` is worth, a power of two: h = unit times the integer."""
        return math.ldexp(1.0, -self._made[1] - 1)

    @functools.cached_property
    def digest(self) -> str:
        """Digest of the tables: logarithms may differ in the last place from one machine to another."""
        found = hashlib.sha256(f"{self._made[1]}".encode())
        found.update(np.ascontiguousarray(self.table).astype("<i8").tobytes())
        return found.hexdigest()

    @functools.cached_property
    def steps(self) -> Integers:
        """2 h_i(v, v + 1), v = 0, .., n - 1, shape (d, n): what one record costs, decreasing in v."""
        found: Integers = self.table[:, 0:-2:2] + self.table[:, 2::2] - 2 * self.table[:, 1::2]
        return found

    def apart(self, counts: Sequence[int]) -> Integers:
        """Return 2 h_i(counts_i, r), r = 0, .., n, in units, shape (d, n + 1); none is negative.

        Parameters
        ----------
        counts : sequence of int
            Of the d categories, n in all.
        """
        found = np.empty((self.dimension, self.n + 1), dtype=np.int64)
        for i, (row, c) in enumerate(zip(self.table, counts, strict=True)):
            found[i] = row[2 * c] + row[::2] - 2 * row[c : c + self.n + 1]
        return np.maximum(found, 0)

    def hellinger(self, counts: Sequence[int], others: Sequence[int] | Integers) -> NDArray[np.float64]:
        """Return H between the posterior of counts and those of others, shape (d,) or (rows, d)."""
        rows = np.atleast_2d(np.asarray(others, dtype=np.int64))
        own = np.asarray(counts, dtype=np.int64)
        total = np.zeros(len(rows), dtype=np.int64)
        for row, c, r in zip(self.table, own, rows.T, strict=True):
            total += np.maximum(row[2 * c] + row[2 * r] - 2 * row[c + r], 0)
        found: NDArray[np.float64] = np.sqrt(-np.expm1(-self.unit * total))
        return found


def _half_steps(entry: float, n: int) -> NDArray[np.float64]:
    """Return log Gamma(x + 1/2) - log Gamma(x), x = entry + k/2 for k = 0, .., 2 n - 1, less their mean.

    By the asymptotic series of Gamma(x + 1/2)/Gamma(x); what is below 32 is moved up by the recurrence first.
    """
    centre = entry + n
    places = np.arange(2 * n) / 2
    x = entry + places
    logs = np.log1p((places - n) / centre) if n < entry else np.log(x / centre)
    moved = np.zeros(2 * n)
    for _ in range(int(_ASYMPTOTIC)):
        low = x < _ASYMPTOTIC
        if not low.any():
            break
        moved[low] -= np.log1p(0.5 / x[low])
        x[low] += 1.0
        logs[low] = np.log(x[low] / centre)
    y = 1 / (x * x)
    series = -(1 / 8 - y * (1 / 192 - y * (1 / 640 - y * 17 / 14336))) / x
    found: NDArray[np.float64] = 0.5 * logs + moved + series
    found -= found.mean()
    return found


def checked_counts(counts: Sequence[float] | NDArray[np.generic], dimension: int, n: int) -> tuple[int, ...]:
    """Return counts as integers.

    Parameters
    ----------
    counts : sequence
        Of the categories.
    dimension : int
        Number of categories.
    n : int
        Number of records.

    Raises
    ------
    PrivacyError
        When they are not as many as the categories, not whole, negative, or do not sum to n.
    """
    values = np.asarray(counts)
    if values.shape != (dimension,):
        raise PrivacyError(f"the counts must be one number for each of the {dimension} entries of the prior")
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all() or (values != np.floor(values)).any():
        raise PrivacyError("the counts must be whole numbers")
    if (values < 0).any():
        raise PrivacyError("the counts must not be negative")
    found = tuple(int(value) for value in values)
    if sum(found) != n:
        raise PrivacyError(f"the counts must sum to the number of records, {n}")
    return found
