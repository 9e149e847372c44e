"""What was released, as a table with the names that people know: labels, dates, bins, levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.mechanisms.laws.synthetic import SyntheticLaw
from dpmix.mechanisms.noisy_counts.law import NoisyCountsLaw
from dpmix.mechanisms.perturbed_histogram.law import PerturbedHistogramLaw
from dpmix.mechanisms.posterior.law import PosteriorLaw
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
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
    return f"{law.row}s" if release.by_record else law.rows_name


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
    if isinstance(law, RandomizedResponseLaw) and len(law.categories) == len(release.columns):
        return law.categories
    return (None,) * len(release.columns)


def _dates(release: Release) -> tuple[Callable[[Floats], Any] | None, ...]:
    """Return for each column of dates how its days are written: all alike, whichever piece they stand in."""
    law, found = release.mechanism, list[Callable[[Floats], Any] | None]()
    drawn = {part.name for part in law.columns if part.date} if isinstance(law, SyntheticLaw) else set()
    for i, name in enumerate(release.columns):
        if not (name in release.dates and law.on_data_scale) and name not in drawn:
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
    counts: Any = values.astype(np.int64) if (values == np.floor(values)).all() else values
    if isinstance(law, PerturbedHistogramLaw):
        dated = _days if release.dates else np.asarray
        edges, groups = law.edges(), law.group_names or (None,)
        found: dict[str, Any] = {}
        if law.groups:
            found[next(iter(law.groups))] = [name for name in law.group_names for _ in range(law.bins)]
        ends = {
            "lower": dated(np.tile(edges[:-1], len(groups))),
            "upper": dated(np.tile(edges[1:], len(groups))),
        }
        return Frame({**found, **ends, "count": counts})
    if isinstance(law, NoisyCountsLaw):
        return _by_class(law, counts)
    if isinstance(law, PosteriorLaw):
        names = law.categories or tuple(str(i + 1) for i in range(len(law.prior)))
        return Frame({"category": names, "prior": np.asarray(law.prior), "posterior": release.values[:, 0]})
    if release.columns == ("statistic",) and not release.by_record:
        return Frame({"entry": np.arange(len(values)), "value": values})
    return None


def _days(days: Floats) -> Any:
    return dates_of(days)


def _by_class(law: NoisyCountsLaw, counts: Any) -> Frame:
    """Return noisy counts with what they are of; they stand by feature, group, class, level."""
    sizes = (*law.levels, law.classes)
    titles = law.columns
    if len(titles) != len(sizes):
        titles = (*(f"feature_{k + 1}" for k in range(len(law.levels))), "class")
    names = [_levels(law, title, size) for title, size in zip(titles, sizes, strict=True)]
    groups = law.group_names or (None,)
    rows = [
        (group, title, level, of_class)
        for title, levels in zip(titles[:-1], names[:-1], strict=True)
        for group in groups
        for of_class in names[-1]
        for level in levels
    ]
    found: dict[str, Any] = {} if not law.groups else {next(iter(law.groups)): [row[0] for row in rows]}
    found |= {"feature": [row[1] for row in rows], "level": [row[2] for row in rows]}
    return Frame({**found, _other(titles[-1]): [row[3] for row in rows], "count": counts})


def _other(title: str) -> str:
    return "class" if title in ("feature", "level", "count") else title


def _levels(law: NoisyCountsLaw, title: str, size: int) -> tuple[str, ...]:
    stated = (law.categories or {}).get(title, ())
    return tuple(stated) if len(stated) == size else tuple(str(number + 1) for number in range(size))


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of columns, none of them twice."""
    found: list[str] = []
    for name in names:
        number, own = 2, name
        while own in found:
            own, number = f"{name}_{number}", number + 1
        found.append(own)
    return tuple(found)
