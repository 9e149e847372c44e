"""What is public of the records that a mechanism releases, beside the section of a spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dpmix.mechanisms.curators.private_groups import Groups
from dpmix.privacy.accounting import Guarantee

__all__ = ["PublicRecords", "Stated"]

Stated = tuple[dict[str, Any], Guarantee]
"""What a kind's own part of a law states of a release made elsewhere, and its guarantee by formula."""


class PublicRecords(NamedTuple):
    """What is public of the records.

    Parameters
    ----------
    columns : int
        Number of columns.
    n : int or None
        Number of records; None where it is not known, or the mechanism's own.
    names : tuple of str
        Names of the columns, where they are known.
    categories : sequence of tuple of str or None
        Public categories of each column, where it has any.
    groups : Groups or None
        Groups whose sizes are private.
    """

    columns: int
    n: int | None = None
    names: tuple[str, ...] = ()
    categories: Sequence[tuple[str, ...] | None] = ()
    groups: Groups | None = None
