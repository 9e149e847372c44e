"""The release: sanitized values with the account of how they were made.

It is the only object that crosses from the confidential side to inference, and this module imports nothing of
either side.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from dpmix._version import __version__
from dpmix.columns.column_units import unit_of
from dpmix.laws.cell_laws import CellsLaw
from dpmix.laws.every import Law, law_of
from dpmix.numerics.in_words import guarantee_in_words, permits_verbatim
from dpmix.spec.data_section import digits_of
from dpmix.store.frames import FIRST, Frame, Pieces, Tabulated, dates_of, to_notebook

if TYPE_CHECKING:
    from dpmix.columns.cells import Counts
    from dpmix.columns.column_units import Unit
    from dpmix.laws.synthetic import SyntheticLaw

# What was released, as a table with the names that people know: labels, dates, bins, levels


_ROWS = 1 << 16
"""Records that are written at a time."""
Floats = NDArray[np.float64]
Dates = np.dtype[Any]


def row_noun(release: Release) -> str:
    """Return what the rows of the released values are called."""
    law = release.mechanism
    names = f"{law.row}s" if release.by_record else law.rows_name
    return names.removesuffix("s") if len(release.values) == 1 else names


def table_of(release: Release) -> Pieces:
    """Return what was released.

    Of records and draws: one column each, codes as their labels and days as dates. Of a tally: `cell`,
    `lower`, `upper`, `count`, where the outermost cells of days have no end; of a histogram's noisy counts:
    `lower`, `upper`, `count`, the group before them; of noisy counts by class: `feature`, `level`, `class`,
    `count`; of a posterior: `category`, `prior`, `posterior`; of another statistic: `entry`, `value`.
    """
    frame = _counts_of(release)
    if frame is not None:
        return Pieces.of(frame)
    values, labels, dates = release.values, _labels(release), _dates(release)
    whole = [bool((column == np.floor(column)).all()) for column in values.T]

    def pieces() -> Iterator[Frame]:
        for start in range(0, max(len(values), 1), _ROWS):
            some = values[start : start + _ROWS]
            yield Frame(
                {
                    name: _column(some[:, i], labels[i], dates[i], whole[i])
                    for i, name in enumerate(_unique(release.columns))
                }
            )

    return Pieces(_unique(release.columns), pieces, len(values))


def first_rows(release: Release, count: int) -> Frame:
    """Return the first rows of that table."""
    return next(table_of(release).pieces()).first(count)


def _column(values: Floats, names: tuple[str, ...] | None, dates: Dates | None, whole: bool) -> Any:
    if names is not None:
        return [names[int(code)] for code in values.tolist()]
    if dates is not None:
        return dates_of(values).astype(dates) if dates.kind == "M" else values
    return values.astype(np.int64) if whole and np.abs(values).max(initial=0.0) < 2.0**53 else values


def _labels(release: Release) -> tuple[tuple[str, ...] | None, ...]:
    law = release.mechanism
    if release.labels:
        return release.labels
    if law.released == "categories" and len(law["categories"]) == len(release.columns):
        return tuple(tuple(names) for names in law["categories"])
    return (None,) * len(release.columns)


def _dates(release: Release) -> list[Dates | None]:
    """Return what the days of each column of dates are written as: all alike, in whichever piece."""
    law = release.mechanism
    return [
        dates_of(days).dtype if (name in release.dates and law.on_data_scale) or name in law.dated else None
        for name, days in zip(release.columns, release.values.T, strict=True)
    ]


def _counts_of(release: Release) -> Frame | None:
    """Return the table of a release that is not of records or draws; None of one that is."""
    law = release.mechanism
    if release.tally is not None:
        dated = release.dates and law.outputs is None
        edges = dates_of(release.tally.edges) if dated else release.tally.edges
        ends = np.array(["NaT", "NaT"] if edges.dtype.kind == "M" else [-np.inf, np.inf], edges.dtype)
        return Frame(
            {
                "cell": np.arange(len(release.tally.counts)),
                "lower": np.concatenate([ends[:1], edges]),
                "upper": np.concatenate([edges, ends[1:]]),
                "count": release.tally.counts,
            }
        )
    values = release.values[:, 0]
    found = law.tabulated(values)
    if found is not None:
        dates = ("lower", "upper") if release.dates else ()
        return Frame(found | {name: dates_of(found[name]) for name in dates if name in found})
    if release.columns == ("statistic",) and not release.by_record:
        return Frame({"entry": np.arange(len(values)), "value": values})
    return None


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of columns, none of them twice."""
    found: list[str] = []
    for name in names:
        number, own = 2, name
        while own in found:
            own, number = f"{name}_{number}", number + 1
        found.append(own)
    return tuple(found)


# The release: sanitized values with the account of how they were made


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, eq=False)
class Release(Tabulated):
    """Sanitized values and their guarantee.

    Parameters
    ----------
    values : ndarray of float64, shape (n, d)
        One row per record, one column per column of the data, in the units of the data; a wavelet's Haar
        coefficients, in (j, k) order; a binomial's count. Of a global release: its draws (k, 1), or the
        noisy counts of its bins (m, 1), or its synthetic records (m, d), with codes 0, 1, .. for labels.
    columns : tuple of str
        Names of the d columns.
    mechanism : Law
        The public half of the mechanism (`dpmix.laws.every`); what JSON holds of one is parsed.
    epsilon, delta, rho : float or None
        Total guarantee over a record's columns; None where it does not apply or is not known.
    n : int
        Number of confidential records.
    adjacency : str
        The neighbouring relation (`dpmix.privacy.accounting.Adjacency`): ``"replacement"``, of one record, n
        public; ``"replacement, public parts"``, of one record that stays in its part of a table; or
        ``"replacement, private groups"``, of one record and its group.
    trust : str
        Of the guarantee: ``"local"`` (each record by itself) or ``"global"``. Synthetic records drawn from a
        fit to a local release have that release's; whether rows are records says `by_record`.
    private : bool
        False when a simulation seed was used or no noise was added.
    simulated : bool
        Whether the records were simulated.
    created_at : str
        Time, ISO 8601 in UTC.
    dpmix_version : str
        The version that made it.
    labels : tuple
        For each column the labels that the codes in `values` stand for, None for numbers; empty where all
        columns are numbers.
    order : str or None
        Of local releases, ``"shuffled"`` or ``"public"`` (the order of the rows says nothing); None where
        there is no order of records, or it is not known.
    proved : bool or None
        Whether the guarantee is proved; None where that is not known, as of releases of earlier versions.
    ledger : str or None
        ``"entered"`` or ``"bypassed"``; None where none was configured.
    tally : Counts or None
        Of a release that is known by its counts in public cells alone; `values` are then (0, 1).
    dates : tuple of str
        Names of the columns of the data that are dates, in days since 1970-01-01.
    unit : str, mapping of str to str, or None
        Unit of all columns that are numbers, or by name of column of the data; None where none is stated.
    """

    values: NDArray[np.float64]
    columns: tuple[str, ...]
    mechanism: Law
    epsilon: float | None
    delta: float | None
    rho: float | None
    n: int
    adjacency: str = "replacement"
    trust: str = "local"
    private: bool = True
    simulated: bool = False
    created_at: str = field(default_factory=_now)
    dpmix_version: str = __version__
    labels: tuple[tuple[str, ...] | None, ...] = ()
    order: str | None = None
    proved: bool | None = None
    ledger: str | None = None
    tally: Counts | None = None
    dates: tuple[str, ...] = ()
    unit: Unit = None

    def __post_init__(self) -> None:
        """Check that shapes and names agree."""
        stated: Any = self.mechanism  # a law, or what JSON holds of one
        object.__setattr__(self, "mechanism", law_of(stated))
        if not self.dates:
            object.__setattr__(self, "dates", self.mechanism.dated)
        if self.values.ndim != 2 or self.values.dtype != np.float64:
            raise ValueError(f"values must be float64 (n, d), not {self.values.dtype} {self.values.shape}")
        if self.tally is not None and not (self.by_record and len(self.columns) == 1):
            raise ValueError("a tally is of one number a record")
        rows = self.n if self.by_record and self.tally is None else len(self.values)
        if self.tally is not None and rows:
            raise ValueError("a tally has no values")
        if self.values.shape != (rows, len(self.columns)) or self.n < 1:
            raise ValueError(f"values of shape {self.values.shape}, n = {self.n}, columns {self.columns}")
        if self.labels and len(self.labels) != len(self.columns):
            raise ValueError(f"labels of {len(self.labels)} columns for {len(self.columns)}")

    def __repr__(self) -> str:
        """Show everything but the values."""
        words = self.guarantee_in_words() if self.private else "not private"
        name = "Release" if self.tally is None else "Tally"
        return f"{name}(n={self.n}, columns={self.columns}, kind={self.kind!r}, {words})"

    @property
    def headline(self) -> tuple[str, list[str]]:
        """What it is, what was done, and what that guarantees."""
        name = "Release" if self.tally is None else "Tally"
        said = [f"Note: {text}." for text in self.cautions]
        return f"{name} of {self.n:,} record{'' if self.n == 1 else 's'}", [
            self.done(),
            self.guaranteed(),
            *said,
        ]

    @property
    def by_record(self) -> bool:
        """Whether each record was released by itself, so that rows are records."""
        return self.trust == "local" and self.mechanism.trust == "local"

    @property
    def is_raw(self) -> bool:
        """Whether the values are somebody's records as they are, which no notebook or terminal shows."""
        return not self.mechanism.protects and not self.simulated

    def done(self) -> str:
        """Say what was done to the records, and that noise on dates is measured in days."""
        return done_in_words(self.mechanism, self.n, dates=any(name in self.dates for name in self.columns))

    @property
    def cautions(self) -> tuple[str, ...]:
        """What is published as it is, and what a delta of 1/n or more permits, in a clause each."""
        return cautions_of(self.mechanism, self.n, self.delta)

    def guaranteed(self) -> str:
        """Say in one sentence what is guaranteed, or why nothing is."""
        words = self.guarantee_in_words()
        return guarantee_sentence(self.mechanism, words, private=self.private, simulated=self.simulated)

    def with_types(self, types: Mapping[str, Any] | None) -> Release:
        """Return it with what types of columns say of one released by cells: that it is of whole numbers."""
        law = self.mechanism
        name = law.get("column") or self.columns[0]
        known = not isinstance(law, CellsLaw) or law.whole_numbers
        if known or digits_of((types or {}).get(name)) != 0:
            return self
        return replace(self, mechanism=law.updated(whole_numbers=True))

    def to_frame(self) -> Frame:
        """Return what was released as a table, with labels, dates and bins (`released_table.table_of`)."""
        return table_of(self).frame()

    def _repr_html_(self) -> str:
        title, lines = self.headline
        if self.is_raw:
            return to_notebook(title, [*lines, "The records are not shown."])
        table = table_of(self)
        return to_notebook(title, lines, first_rows(self, FIRST), table.rows)

    @property
    def kind(self) -> str:
        """Kind of the mechanism."""
        return self.mechanism.kind

    @property
    def scales(self) -> tuple[float, ...]:
        """Noise scale of each column, or the one of all coefficients or counts; empty where there is none."""
        return self.mechanism.scale

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Name of the group's column and its public categories; empty where the release is of no groups."""
        return dict(self.mechanism.groups or {})

    def guarantee_in_words(self) -> str:
        """Say what is guaranteed, in one clause."""
        numbers = self.epsilon, self.delta, self.rho
        words = guarantee_in_words(*numbers, self.trust, self.adjacency, grouped=bool(self.groups))
        words = words if self.proved is not False else f"{words}; {self.mechanism.unproved}"
        return as_stated(words) if self.mechanism.elsewhere else words


def done_in_words(law: Law, n: int, *, dates: bool) -> str:
    """Say what was done to n records, of which some columns may be dates, whose noise is in days."""
    words = law.done(n)
    if isinstance(law, CellsLaw) and law.whole_numbers:
        unit = "days" if dates else "numbers"
        words += f" Values are whole {unit}, and a {law.cell_name} is those that it holds."
    return f"{words} On dates the scale is in days." if dates and law.additive and law.scale else words


def cautions_of(law: Law, n: int, delta: float | None) -> tuple[str, ...]:
    """Return what `Release.cautions` says, of a release of n records."""
    return tuple(filter(None, (law.republishes(n, delta), permits_verbatim(delta, n))))


def as_stated(words: str) -> str:
    """Say after a guarantee in words that it is no more than what a spec states of somebody else's noise."""
    return f"{words}, as the spec states of a release made elsewhere"


def guarantee_sentence(law: Law, words: str, *, private: bool, simulated: bool) -> str:
    """Say in one sentence what a release guarantees, `words`, or why nothing is."""
    if not (law.origin or law).guarantees:
        return "Nothing is guaranteed: no noise was added, or nobody stated which."
    if simulated:
        return f"{words}; but the data are simulated, so this release itself protects nobody."
    if not private:
        return f"{words}; but its noise can be reproduced from a seed, so it protects nobody."
    return f"{words[:1].upper()}{words[1:]}."


# What is public of the columns of the data behind a release


def public_columns(release: Release) -> list[dict[str, Any]]:
    """Return the columns of the data behind a release, each with what is public of it, for JSON.

    These are `name`, `domain` (days where `date` is true), `type`, `categories` and `unit`, where they apply.
    """
    law = release.mechanism
    if law.released == "synthetic":
        return [
            column.describe() | _in_units(release, column.name, numeric=column.categories is None)
            for column in cast("SyntheticLaw", law).columns
        ]
    names = [str(name) for name in law.get("columns") or ()]
    if not names:
        one = law.get("column")
        names = [one] if isinstance(one, str) and one else list(release.columns)
    names = [name for name in names if name not in release.groups]
    bounds, listed = law.public_bounds or (), law.get("categories") or ()
    found = []
    for i, name in enumerate(names):
        own: dict[str, Any] = {"name": name}
        if len(bounds) == len(names):
            own["domain"] = list(bounds[i])
        if isinstance(listed, Mapping) and name in listed:
            own["categories"] = list(listed[name])
        elif (
            isinstance(listed, list | tuple)
            and len(listed) == len(names)
            and isinstance(listed[i], list | tuple)
        ):
            own["categories"] = list(listed[i])
        elif len(names) == 1 and listed and all(isinstance(label, str) for label in listed):
            own["categories"] = list(listed)
        if name in release.dates:
            own["date"] = True
        if law.get("whole_numbers"):
            own["type"] = "integer"
        found.append(own | _in_units(release, name, numeric="categories" not in own))
    return found


def _in_units(release: Release, name: str, *, numeric: bool) -> dict[str, str]:
    """Return the unit of a column, where one is stated."""
    unit = unit_of(release.unit, name) if numeric else ""
    return {"unit": unit} if unit else {}
