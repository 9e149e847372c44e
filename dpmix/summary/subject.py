"""What a fit is of: columns with their units, records, groups, and the guarantee in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from dpmix.release.column_units import Unit, labelled, unit_of

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """What a fit is of.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns of the data, the response or class of a regression or classifier last.
    n : int
        Number of records.
    unit : str, mapping, or None
    groups : tuple of str
        Names of groups of the fit.
    short : str
        The guarantee in one sentence.
    """

    columns: tuple[str, ...] = ()
    n: int = 0
    unit: Unit = None
    groups: tuple[str, ...] = ()
    short: str = ""

    def parted(self, name: str) -> tuple[str, str]:
        """Return column and group of a name between brackets: "female,height", "female" or "height"."""
        for group in self.groups:
            if name == group or name.startswith(f"{group},"):
                return name[len(group) + 1 :], group
        return name, ""

    def about(self, name: str) -> str:
        """Return such a name in words: "height in female"."""
        column, group = self.parted(name)
        return f"{column} in {group}" if column and group else column or group

    def titled(self, column: str = "") -> str:
        """Return a column with its unit, "income (dollars)"; the only one where it is not named."""
        name = column or (self.columns[0] if len(self.columns) == 1 else "")
        return labelled(name or "value", unit_of(self.unit, name))

    def axis(self, column: str = "") -> str:
        """Return what stands at the axis of values of a column; it says so where no unit is stated."""
        name = column or (self.columns[0] if len(self.columns) == 1 else "")
        unit = unit_of(self.unit, name)
        return labelled(name or "value", unit) if unit else f"{name or 'value'}, in the data's units"

    @property
    def in_words(self) -> str:
        """Name the columns with their units."""
        named = [labelled(name, unit_of(self.unit, name)) for name in self.columns]
        return ", ".join(named)
