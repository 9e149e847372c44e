"""What was released, as a table with the names that people know: labels, dates, bins, levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.store.frames import Frame, Pieces, dates_of

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release

__all__ = ["first_rows", "row_noun", "table_of"]

_ROWS = 1 << 16
"""Records that are written at a time."""
Floats = NDArray[np.float64]


def row_noun(release: Release) -> str:
    """Return what the rows of the released values are called."""
    law = release.mechanism
    return law.rows_name if release.trust == "global" else f"{law.row}s"


def table_of(release: Release) -> Pieces:
    """Return what was released.

    Of records and draws: one column each, codes as their labels and days as dates. Of a tally: `cell`,
    `lower`, `upper`, `count`; of a histogram's noisy counts: `lower`, `upper`, `count`, the group before
    them; of noisy counts by class: `feature`, `level`, `class`, `count`; of a posterior: `category`, `prior`,
    `posterior`; of another statistic: `entry`, `value`.
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


def _column(
    values: Floats, names: tuple[str, ...] | None, date: Callable[[Floats], Any] | None, whole: bool
) -> Any:
    if names is not None:
        return [names[int(code)] for code in values.tolist()]
    if date is not None:
        return date(values)
    return values.astype(np.int64) if whole and np.abs(values).max(initial=0.0) < 2.0**53 else values


def _labels(release: Release) -> tuple[tuple[str, ...] | None, ...]:
    law = release.mechanism
    if release.labels:
        return release.labels
    if law.released == "categories" and len(law["categories"]) == len(release.columns):
        return tuple(tuple(names) for names in law["categories"])
    return (None,) * len(release.columns)


def _dates(release: Release) -> tuple[Callable[[Floats], Any] | None, ...]:
    """Return for each column of dates how its days are written: all alike, whichever piece they stand in."""
    law, found = release.mechanism, list[Callable[[Floats], Any] | None]()
    for i, name in enumerate(release.columns):
        if not (name in release.dates and law.on_data_scale) and name not in law.dated:
            found.append(None)
            continue
        kind = dates_of(release.values[:, i]).dtype
        found.append(_as_days if kind.kind != "M" else partial(_as_dates, kind))
    return tuple(found)


def _as_dates(kind: Any, days: Floats) -> Any:
    return dates_of(days).astype(kind)


def _as_days(days: Floats) -> Floats:
    return days


def _counts_of(release: Release) -> Frame | None:
    """Return the table of a release that is not of records or draws; None of one that is."""
    law = release.mechanism
    if release.tally is not None:
        edges = release.tally.edges
        return Frame(
            {
                "cell": np.arange(len(release.tally.counts)),
                "lower": np.concatenate([[-np.inf], edges]),
                "upper": np.concatenate([edges, [np.inf]]),
                "count": release.tally.counts,
            }
        )
    values = release.values[:, 0]
    found = law.tabulated(values)
    if found is not None:
        dates = ("lower", "upper") if release.dates else ()
        return Frame(found | {name: dates_of(found[name]) for name in dates if name in found})
    if release.columns == ("statistic",) and release.trust == "global":
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
