"""Missing values of confidential tables, and what stands for them (`data.missing`).

Records are imputed one by one, from public constants: a mean of the column would make one record move the
others, and a record left out would make the published number of records depend on what one person left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import say
from dpmix.spec.data_section import CATEGORY, LABEL
from dpmix.spec.table_source import MARKS

Floats = NDArray[np.float64]


class Missing:
    """What stands for missing values, and how many were met.

    Parameters
    ----------
    stand : mapping of str to float or str
        For each column that may have missing values the number, or label, that stands for one; `CATEGORY` for
        a category of their own.
    listed : mapping of str to sequence
        Public categories of columns: a mark among them is that category, and no missing value.
    whole : bool
        Whether a record with any missing value is replaced as a whole, as a composition has to be.
    """

    def __init__(
        self,
        stand: Mapping[str, Any] | None = None,
        listed: Mapping[str, Sequence[Any]] | None = None,
        whole: bool = False,
    ) -> None:
        self.stand = dict(stand or {})
        self.whole = whole
        self._listed = {
            name: MARKS.intersection(map(str, names)) - {""} for name, names in (listed or {}).items()
        }
        self.met: Counter[str] = Counter()
        self._holes: dict[str, list[int]] = defaultdict(list)
        self._shares: dict[str, Floats] = {}  # of incomplete records that were replaced as a whole

    def marks(self, name: str, text: str) -> bool:
        """Whether a cell of a column, without spaces around it, is a missing value."""
        return text in MARKS and text not in self._listed.get(name, ())

    def label(self, name: str, row: int) -> str:
        """Return the label that stands for the missing value of a row, and count it."""
        value = self.stand[name]
        self.met[name] += 1
        self._holes[name].append(row)
        return LABEL if value == CATEGORY else str(value)

    def fill(self, values: Floats, names: Sequence[str]) -> None:
        """Put numbers (n, d) in the place of NaN, in columns that may have missing values, and count them."""
        places = [i for i, name in enumerate(names) if name in self.stand]
        gone = np.isnan(values[:, places])
        if not gone.any():
            return
        if self.whole:
            rows = gone.any(axis=1)
            for i in places:
                self._holes[names[i]] += np.flatnonzero(rows).tolist()
                self._shares[names[i]] = values[rows, i]
                values[rows, i] = float(self.stand[names[i]])
            self.met[""] += int(rows.sum())
            return
        for i, holes in zip(places, gone.T, strict=True):
            values[holes, i] = float(self.stand[names[i]])
            self.met[names[i]] += int(holes.sum())
            self._holes[names[i]] += np.flatnonzero(holes).tolist()

    def as_read(self, table: Mapping[str, Floats | Sequence[str]]) -> dict[str, Floats | Sequence[str]]:
        """Return a table as it was read, its missing values NaN or empty: the same whatever stands for them.

        Columns are by name, filled in: float64 arrays (n,), or tuples of n texts.
        """
        found = dict(table)
        for name, rows in self._holes.items():
            column = found[name]
            if isinstance(column, np.ndarray):
                found[name] = column = column.copy()
                column[rows] = self._shares.get(name, np.nan)
            else:
                gone = set(rows)
                found[name] = tuple("" if row in gone else text for row, text in enumerate(column))
        return found

    def tell(self) -> None:
        """Say on standard error, to the curator, how many were met: in no release."""
        for name, count in self.met.items():
            if not count:
                continue
            if not name:
                text = (
                    f"{count} incomplete record{'s are' if count > 1 else ' is'} taken as data.missing says"
                )
            else:
                value = self.stand[name]
                shown = f"the category {LABEL}" if value == CATEGORY else f"{value}"
                text = f"{count} missing value{'s' * (count > 1)} of {name} taken as {shown}"
            say(f"note: {text}")
