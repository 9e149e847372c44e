"""The share of records beyond the public bounds, under the fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpmix.results.nodes import Each, ResultSection, Table, TableColumn, Tile, by_name, percent

__all__ = ["BEYOND", "Beyond"]

BEYOND = 0.01
"""Share of records beyond the bounds from which on it is said."""


@dataclass(frozen=True)
class Beyond:
    """Shares of latent records beyond the public bounds.

    Parameters
    ----------
    shares : mapping of str to float
        By column, under "" where there is only one; of compositions, of the entries below the threshold, by
        component.
    bounds : mapping of str to pair or None
        The bounds of a mixture's columns, for its warning; empty for other models, which have their own.
    entries : bool
        Whether they are of entries of compositions, of which more is said elsewhere.
    """

    shares: Mapping[str, float]
    bounds: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    entries: bool = False

    def section(self) -> ResultSection:
        """Return what is reported of it."""
        names = list(self.shares)
        data = Each(
            by_name(self.shares), Table("column", names, [TableColumn("share", list(self.shares.values()))])
        )
        if self.entries:
            return ResultSection("beyond_bounds", data)
        listed = ", ".join(f"{name} {percent(share)}" for name, share in self.shares.items() if name)
        notes = {
            name: f"under the fit{f', of {name}' if name else ''}; warned of above {percent(BEYOND)}"
            for name in names
        }
        return ResultSection(
            "beyond_bounds",
            data,
            brief=[f"Latent records beyond the public bounds, under the fit: {listed}"] if listed else (),
            tiles=[
                Tile("Records beyond the public bounds", percent(share), notes[name])
                for name, share in self.shares.items()
            ],
        )
