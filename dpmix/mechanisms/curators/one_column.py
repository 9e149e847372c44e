"""What the mechanisms of one column, with values on a public domain, share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import (
    BEYOND,
    Floats,
    Mechanism,
    Pair,
    Pairs,
    Seeded,
    clamp,
    pairs_of_groups,
)
from dpmix.mechanisms.curators.private_groups import groups_stated
from dpmix.numerics.equal_cells import cell_of, equal_edges
from dpmix.privacy.noise import released_order

if TYPE_CHECKING:
    from dpmix.mechanisms.curators.private_groups import Groups
    from dpmix.release.sanitized import Release


@dataclass(frozen=True, kw_only=True)
class OneColumn(Mechanism):
    """A mechanism that releases one column.

    Parameters
    ----------
    domain : tuple of one (lo, hi)
        Public bounds.
    calibration : str
        How noise or weight were found.
    requested : dict
        What was asked for, such as ``{"epsilon": 5.0}``.
    groups : Groups, optional
        Groups whose sizes are private; values have their codes as last column then. For histograms alone.
    """

    kind: ClassVar[str]
    domain: Pairs
    calibration: str
    requested: dict[str, float] = field(default_factory=dict)
    groups: Groups | None = None

    def __post_init__(self) -> None:
        """Check that there is one pair of finite bounds."""
        if len(self.domain) != 1:
            raise PrivacyError(f"{self.kind} releases one column, not {len(self.domain)}")
        check_bounds(self.domain)

    def _describe(self, **own: Any) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "domain": [list(pair) for pair in self.domain],
            "calibration": self.calibration,
            "requested": dict(self.requested),
            **groups_stated(self.groups),
        } | own

    def _clamp(self, values: Floats) -> tuple[Floats, tuple[int, ...]]:
        """Return the values in the domain, shape (n,), and how many were outside."""
        bounded, outside = clamp(self.kind, self.domain, values)
        return np.ascontiguousarray(bounded[:, 0]), outside

    def _cells(self, values: Floats, bins: int) -> tuple[NDArray[np.int64], tuple[int, ...]]:
        """Return the cell of each record, a bin or group * bins + bin, and how many values were outside."""
        groups: NDArray[np.int64] | int = 0
        if self.groups is not None:
            values, groups = self.groups.parted(values)
        bounded, outside = self._clamp(values)
        return groups * bins + cell_of(bounded, checked_edges(self.kind, self.domain[0], bins)), outside

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record goes far, or changes its group; see `Mechanism`."""
        if self.groups is None:
            yield from super().neighbours(columns, n)
            return
        low, high = np.array(self.domain, dtype=np.float64).T
        beyond = BEYOND * (high - low)
        yield from pairs_of_groups(self.groups.name, n, low, low - beyond, high + beyond)

    def _release(
        self, values: Floats, columns: Sequence[str], n: int, rng: Seeded, order: str | None = None
    ) -> Release:
        single = values.shape[1] == 1
        return self.made(
            values,
            columns if single else self.names(columns[0]),
            n,
            private=rng is None,
            chosen={"column": columns[0]},
            labels=() if single or self.groups is None else (None, self.groups.names),
            order=order,
        )

    def names(self, column: str) -> tuple[str, ...]:
        """Return the names of the columns of the release."""
        return (column,)


@dataclass(frozen=True, kw_only=True)
class LocalOneColumn(OneColumn):
    """A mechanism that releases each record of one column by itself.

    Parameters
    ----------
    order : str
        ``"shuffled"``: rows are released in random order; ``"public"``: in their own, which says nothing.
    """

    order: str = "shuffled"

    def _rows(self, values: Floats, rng: Seeded) -> tuple[Floats, tuple[int, ...], str]:
        """Return values in the domain as they are released, how many were outside, and their order."""
        bounded, outside = self._clamp(values)
        order, rows = released_order(self.order, len(bounded), rng)
        return bounded[rows], outside, order


def check_bounds(domain: Pairs) -> None:
    """Refuse bounds that are not finite, as far as they are apart, or of which the lower one is not first."""
    for low, high in domain:
        if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
            raise PrivacyError(f"the bounds [{low:g}, {high:g}] must be finite, the lower one first")


def checked_edges(kind: str, pair: tuple[float, float], cells: int) -> Floats:
    """Return the edges of equal cells.

    Raises
    ------
    PrivacyError
        When there are more cells than doubles between the bounds.
    """
    edges = equal_edges(pair, cells)
    if not (np.diff(edges) > 0).all():
        raise PrivacyError(
            f"{kind} on [{pair[0]:.17g}, {pair[1]:.17g}] cannot have {cells} cells: they would be narrower "
            "than the numbers there; take fewer"
        )
    return edges
