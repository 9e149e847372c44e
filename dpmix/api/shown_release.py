"""What is shown of a release, a tally, or synthetic records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmix.mechanisms.laws.synthetic import SyntheticLaw
from dpmix.release.column_units import unit_of
from dpmix.release.released_table import first_rows, row_noun
from dpmix.release.sanitized import Release
from dpmix.results.nodes import Each, ResultSection, Table, TableColumn, Words
from dpmix.spec.days import day_text
from dpmix.store.frames import Frame

__all__ = ["SHOWN", "fact", "sections_of_release", "table_of_frame"]

SHOWN = 5
"""Released rows that are shown."""
_CATEGORIES = 8  # that are listed
_WIDTH = 12


def fact(key: str, data: Any, words: str = "", label: str | None = None) -> ResultSection:
    """Return a section of one line, such as "guarantee:  ..", and of nothing in text without words."""
    name = f"{label or key}:"
    line = [Words(f"{name:<{_WIDTH}}{words}", " " * _WIDTH)] if words else []
    return ResultSection(key, data, brief=line)


def table_of_frame(frame: Frame, dim: str = "row") -> Table:
    """Return a frame as a table of a result, cells as CSV has them, and numbers in JSON as numbers."""
    rows = [str(i + 1) for i in range(len(frame))]
    cells = dict(zip(frame.columns, frame.cells(), strict=True))
    columns = [
        TableColumn(name, values, name, _brief, where="text page", left=not _is_numeric(frame, name))
        for name, values in cells.items()
    ]
    return Table(dim, rows, columns)


def _is_numeric(frame: Frame, name: str) -> bool:
    return hasattr(frame.columns[name], "dtype")


def _brief(cell: str) -> str:
    try:
        return f"{float(cell):.6g}" if len(cell) > 9 else cell
    except ValueError:
        return cell if len(cell) <= 40 else f"{cell[:37]}..."


def sections_of_release(path: Path, release: Release) -> list[ResultSection]:
    """Return what is said of a release: what it is, its guarantee, mechanism, columns, and first values."""
    law, tally = release.mechanism, release.tally
    what, of_whom = (
        ("a release", f" by {law.kind}") if tally is None else ("a tally", f" of a {law.kind} release")
    )
    if law.released == "synthetic":
        what, of_whom = "synthetic records", f", drawn by {law.made_by}"
    columns = columns_of(release)
    rows, width = release.values.shape
    found = [
        ResultSection("about", what, brief=[f"{path}: {what}{of_whom}"]),
        fact("guarantee", release.guaranteed(), release.guaranteed()),
        fact("done", law.done(release.n), law.done(release.n), "mechanism"),
        fact(
            "n",
            release.n,
            f"{release.n:,} confidential {'record' if release.n == 1 else 'records'}",
            "records",
        ),
        fact("columns", columns, "; ".join(map(_column_in_words, columns))),
    ]
    groups = {name: list(names) for name, names in release.groups.items()}
    grouped = "; ".join(f"{name} ({_listed(names)})" for name, names in groups.items())
    found.append(
        fact("groups", groups, f"{grouped}; how many records each has is private" if grouped else "")
    )
    if tally is None:
        noun = row_noun(release)
        each = f" of {width} columns" if width > 1 else ""
        found.append(fact("shape", [rows, width], f"{rows:,} {noun}{each}", "released"))
    else:
        cells, inside = len(tally.counts), f"cells of width {tally.width:.6g}" if tally.width else "outputs"
        found.append(fact("shape", [cells, 1], f"counts in {cells:,} {inside}", "released"))
        found.append(ResultSection("coarsened", tally.width))
    found += _states(release)
    if release.is_raw:
        found.append(
            fact("first", None, "the confidential records as they are, which are not shown", "values")
        )
        return found
    frame = first_rows(release, SHOWN)
    found.append(ResultSection("first", Each(frame.rows()), text=[[table_of_frame(frame)]]))
    return found


def _states(release: Release) -> list[ResultSection]:
    """Return what else is stated."""
    order = {"shuffled": "rows are shuffled", "public": "the order of the rows is public"}
    ledger = {
        "entered": "entered in the curator's ledger",
        "bypassed": "entered in no ledger, though there is one",
    }
    proved = {True: "the guarantee is proved", False: "the guarantee is not proved"}
    words = [
        order.get(release.order or "", ""),
        "" if release.proved is None else proved[release.proved],
        ledger.get(release.ledger or "", ""),
        f"dpmix {release.dpmix_version}, {release.created_at}",
    ]
    numbers = {name: _finite(getattr(release, name)) for name in ("epsilon", "delta", "rho")}
    plain = {name: getattr(release, name) for name in ("adjacency", "trust", "private", "simulated")}
    plain |= {
        name: getattr(release, name) for name in ("order", "proved", "ledger", "created_at", "dpmix_version")
    }
    unit = release.unit
    plain |= {"unit": dict(unit) if isinstance(unit, Mapping) else unit} if unit else {}
    return [
        fact("stated", None, "; ".join(filter(None, words)), "made"),
        *(ResultSection(name, value) for name, value in {**numbers, **plain}.items()),
        ResultSection("mechanism", release.mechanism.stated()),
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def columns_of(release: Release) -> list[dict[str, Any]]:
    """Return the columns of the data behind a release, each with what is public of it."""
    law = release.mechanism
    if isinstance(law, SyntheticLaw):
        return [
            {"name": part.name}
            | ({} if part.domain is None else {"domain": list(part.domain)})
            | ({"date": True} if part.date else {})
            | ({} if part.categories is None else {"categories": list(part.categories)})
            | _in_units(release, part.name, numeric=part.categories is None)
            for part in law.columns
        ]
    names = [str(name) for name in law.get("columns") or ()]
    if not names:
        names = [str(law["column"])] if isinstance(law.get("column"), str) else list(release.columns)
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
        if name in release.dates:
            own["date"] = True
        found.append(own | _in_units(release, name, numeric="categories" not in own))
    return found


def _in_units(release: Release, name: str, *, numeric: bool) -> dict[str, str]:
    """Return the unit of a column, where one is stated."""
    unit = unit_of(release.unit, name) if numeric else ""
    return {"unit": unit} if unit else {}


def _column_in_words(column: Mapping[str, Any]) -> str:
    unit = f" {column['unit']}" if "unit" in column else ""
    if "domain" in column:
        write = day_text if column.get("date") else lambda value: f"{value:.12g}"
        low, high = (write(float(end)) for end in column["domain"])
        return f"{column['name']} in [{low}, {high}]{unit}"
    if "categories" in column:
        return f"{column['name']} ({_listed(column['categories'])})"
    return f"{column['name']}{f' in{unit}' if unit else ''}"


def _listed(names: list[str]) -> str:
    more = len(names) - _CATEGORIES
    return ", ".join(names[:_CATEGORIES]) + (f", and {more} more" if more > 0 else "")
