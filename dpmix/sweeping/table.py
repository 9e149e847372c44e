"""The table of a sweep, one row a run: as CSV, as HDF5, and in brief for a terminal."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.results.as_text import aligned
from dpmix.store.atomic import write_bytes
from dpmix.store.tree import Node, Variable, write_tree

if TYPE_CHECKING:
    from dpmix.store.h5 import Attribute

Row = Mapping[str, Any]

TIMES = ("seconds", "ess_per_second_min")
"""Columns that differ from one time to the next."""

_LAST = ("message", *TIMES)
_BRIEF = ("hellinger", "ise", "ks", "w1", "acceptance", "rhat_max", "ess_bulk_min")
MOST_LINES = 40


def columns_of(rows: Sequence[Row]) -> list[str]:
    """Return all columns that rows have, in the order that they come up, messages and times last."""
    found = {key: None for row in rows for key in row}
    return [key for key in found if key not in _LAST] + [key for key in _LAST if key in found]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write the table as CSV; a cell without a value is empty.

    Raises
    ------
    DataError
        When it cannot be written.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns_of(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    write_bytes(path, text.getvalue().encode("utf-8"), force=True)


def write_hdf5(path: Path, rows: Sequence[Row], attrs: Mapping[str, Attribute]) -> None:
    """Write the table as HDF5: one variable a column, over the dimension ``run``.

    Columns of whole numbers are int64, of other numbers float64, NaN where there is no value; truth values
    are 0 and 1; others are text, empty where there is none.

    Raises
    ------
    DataError
        When it cannot be written.
    """
    variables = {}
    for key in columns_of(rows):
        values = [row.get(key) for row in rows]
        if all(type(value) is int and abs(value) < 2**63 for value in values):
            data: Any = np.array(values, dtype=np.int64)
        elif all(value is None or isinstance(value, (bool, int, float)) for value in values):
            data = np.array([math.nan if value is None else float(value) for value in values])
        else:
            data = np.array(["" if value is None else str(_cell(value)) for value in values])
        variables[key.replace("/", "_")] = Variable(("run",), data)
    write_tree(path, Node(attrs, variables), force=True)


def telling(rows: Sequence[Row], keys: Sequence[str]) -> list[str]:
    """Return those of `keys` that tell settings apart; a name of an entry stands for what the entry sets."""
    apart = [key for key in keys if len({repr(row.get(key)) for row in rows}) > 1]
    if "name" not in apart:
        return apart
    pairs = {key: {(row.get("name"), repr(row.get(key))) for row in rows} for key in apart}
    names = len({row.get("name") for row in rows})
    return [key for key in apart if key == "name" or len(pairs[key]) > names]


def means(rows: Sequence[Row], varied: Sequence[str]) -> str:
    """Write the means over replicates of what matters most, a line for each setting, for a terminal."""
    keys = telling(rows, ["name", *varied])
    errors = [key for key in columns_of(rows) if key.startswith("error[")]
    shown = [key for key in _BRIEF if any(row.get(key) is not None for row in rows)]
    if "hellinger" not in shown and "ks" not in shown:
        shown = errors[:4] + shown
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    lines = [[*keys, "runs", *shown]]
    for setting, members in list(groups.items())[:MOST_LINES]:
        fine = [row for row in members if row.get("status") == "finished"]
        count = str(len(fine)) if len(fine) == len(members) else f"{len(fine)} of {len(members)}"
        lines.append([*(_short(value) for value in setting), count, *(_mean(fine, key) for key in shown)])
    text = aligned(lines, left=())
    if len(groups) > MOST_LINES:
        text.append(f"and {len(groups) - MOST_LINES} more settings in the table")
    return "\n".join(text)


def _mean(rows: Sequence[Row], key: str) -> str:
    values = [row[key] for row in rows if row.get(key) is not None]
    return _short(sum(values) / len(values)) if values else "-"


def _short(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(value: Any) -> Any:
    """Return a value as CSV has it: numbers so that they are read back equal, truth values in words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
