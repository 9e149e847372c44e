"""Groups of one table whose sizes are private (methods, section 16): what their releases share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.privacy.accounting import Adjacency, Guarantee

_KEPT = 16  # bits of kappa, so that kappa times a whole number is exact
_CHUNK = 1 << 22  # numbers of up to 2^41 that a sum in 64 bits holds


@dataclass(frozen=True)
class Groups:
    """The groups of a table, which are public; who is in which, and how many are, is not.

    A record is a pair of group and values. Replacing it may take it from one group into another.

    Parameters
    ----------
    name : str
        Of the column of groups.
    names : tuple of str
        The groups, two or more, in the order of their codes 0, 1, ..
    """

    name: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check that there is something to tell apart."""
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            raise PrivacyError(f"{self.name} must have two groups or more, with different names")

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.names)

    @property
    def changes(self) -> int:
        """How many of the sizes of all groups but the last a record moves at most by changing its group.

        The last group's size is the public n less the others', and is not released.
        """
        return 1 if self.count == 2 else 2

    def describe(self) -> dict[str, list[str]]:
        """Return the public groups by the name of their column, for JSON."""
        return {self.name: list(self.names)}

    def parted(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the values (n, d) and the codes of groups, which stand last, of records (n, d + 1).

        Raises
        ------
        PrivacyError
            When a code is none; nothing is said about which.
        """
        if values.ndim != 2 or values.shape[1] < 2:
            raise PrivacyError(f"values beside the codes of {self.name}, which stand last, are needed")
        codes = values[:, -1]
        if not np.isin(codes, np.arange(self.count)).all():
            raise PrivacyError(f"{self.name} has codes other than those of its {self.count} groups")
        return np.ascontiguousarray(values[:, :-1]), codes.astype(np.int64)

    def kappa(self, width: float, entries: int) -> float:
        """Return by what sizes are multiplied beside sums, for noise of one scale on all: a public rule.

        With sums of `entries` numbers that are centred, and W = `width` the largest of ||f(x) - c|| + ||f(x')
        - c|| over pairs of records in L1 norm, the L1 sensitivity of (kappa sizes, sums) is W + k kappa, k =
        `changes`. A mean of a group is sum/size, so that its noise has a variance proportional to (1 +
        r^2/kappa^2) (W + k kappa)^2, r the mean's distance from the centre; W/(2 `entries`) is the most that
        this is on average over the entries. The least of that is at kappa^3 = r^2 W/k.
        """
        distance = width / (2 * entries)
        mantissa, exponent = math.frexp((distance**2 * width / self.changes) ** (1 / 3))
        return math.ldexp(round(mantissa * 2**_KEPT), exponent - _KEPT)


def with_groups(guarantee: Guarantee, groups: Groups | None) -> Guarantee:
    """Return a guarantee that holds for a record and its group, where there are groups, as one that does."""
    return guarantee if groups is None else replace(guarantee, adjacency=Adjacency.PRIVATE_GROUPS)


def count_of(groups: Groups | None) -> int:
    """Return how many groups there are, 1 where there are none."""
    return 1 if groups is None else groups.count


def groups_stated(groups: Groups | None) -> dict[str, Any]:
    """Return the public groups, for JSON; nothing where there are none."""
    return {} if groups is None else {"groups": groups.describe()}


def by_groups(groups: Groups | None) -> str:
    """Return " by sex (2 groups)"; nothing where there are none."""
    return "" if groups is None else f" by {groups.name} ({groups.count} groups)"


def groups_of(stated: Mapping[str, Any] | tuple[str, tuple[str, ...]] | None) -> Groups | None:
    """Return the groups that a spec, as a pair, or a description of a release, as a mapping, states."""
    if not stated:
        return None
    name, names = next(iter(stated.items())) if isinstance(stated, Mapping) else stated
    return Groups(str(name), tuple(str(group) for group in names))


def sizes_and_sums(
    table: NDArray[np.int64], codes: NDArray[np.int64], groups: Groups, unit: float
) -> NDArray[np.float64]:
    """Return the exact sizes of all groups but the last, and sums of entries within each, as doubles.

    Entries (n, entries) are whole numbers below 2^41 of which `unit` are 1; the result is (G - 1 + G
    entries,).
    """
    sizes = np.bincount(codes, minlength=groups.count)[:-1].astype(np.float64)
    sums = [exact_sums(table[codes == group]) for group in range(groups.count)]
    return np.concatenate([sizes, np.array([float(total) for group in sums for total in group]) / unit])


def exact_sums(table: NDArray[np.int64]) -> list[int]:
    """Return the exact sum of each column of whole numbers below 2^41, shape (n, entries)."""
    parts = [table[start : start + _CHUNK].sum(axis=0) for start in range(0, len(table), _CHUNK)]
    return [sum(int(part[j]) for part in parts) for j in range(table.shape[1])]
