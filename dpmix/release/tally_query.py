"""The SQL query that tallies a release where it lies, and its result as a CSV table of cells.

It compares with literal edges, as `numpy.searchsorted` does: a value on an edge is in the cell above it; no
arithmetic of an engine decides. Rows that have no finite number, or no output of the mechanism, have the cell
-1, so that none is left out in silence.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.release.tally_parts import TallyGrid
from dpmix.store.atomic import reason

__all__ = ["TABLE", "query", "read_counts"]

TABLE = "release"
_NONE = -1
_LARGEST = 1.7976931348623157e308
_HEADER = ["cell", "count"]
_MOST_BYTES = 1 << 30


def query(grid: TallyGrid, column: str) -> str:
    """Return the query, of the table `release`; its result has a row for each cell that is not empty.

    Cells are found in two steps, blocks of cells first: about as many comparisons as twice the root of their
    number, in an expression that nests twice, which every engine takes.
    """
    z = '"' + column.replace('"', '""') + '"'
    if grid.outputs:
        arms = [f"      WHEN {z} = {k} THEN {k}" for k in range(grid.outputs)]
        arms.append(f"      ELSE {_NONE}")
    else:
        largest = _literal(_LARGEST)
        arms = [
            f"      WHEN {z} IS NULL THEN {_NONE}",
            f"      WHEN NOT ({z} >= -{largest} AND {z} <= {largest}) THEN {_NONE}",
            *_blocks(grid.edges, z),
        ]
    lines = [
        "SELECT cell, COUNT(*) AS count",
        "FROM (",
        "  SELECT",
        "    CASE",
        *arms,
        "    END AS cell",
        f"  FROM {TABLE}",
        ") AS cells",
        "GROUP BY cell",
        "ORDER BY cell",
    ]
    return "\n".join(lines)


def _blocks(edges: NDArray[np.float64], z: str) -> list[str]:
    size = max(2, math.isqrt(len(edges)))
    lines = []
    for start in range(0, len(edges), size):
        block = edges[start : start + size]
        inner = " ".join(f"WHEN {z} < {_literal(e)} THEN {start + i}" for i, e in enumerate(block[:-1]))
        last = start + len(block) - 1
        found = f"CASE {inner} ELSE {last} END" if inner else str(last)
        lines.append(f"      WHEN {z} < {_literal(block[-1])} THEN {found}")
    return [*lines, f"      ELSE {len(edges)}"]


def _literal(value: float) -> str:
    """Return a number as an approximate literal, which is read back to the same double."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def read_counts(path: Path, grid: TallyGrid) -> NDArray[np.int64]:
    """Return the counts (cells,) of a query's result, a CSV table with the header ``cell,count``.

    Raises
    ------
    DataError
        Naming the line that is not as the query makes it; when rows of the release had no number.
    """
    counts = np.zeros(len(grid.edges) + 1, dtype=np.int64)
    seen = set()
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise DataError(f"{path} is larger than the counts of all cells can be")
        with path.open(encoding="utf-8-sig", newline="") as text:
            rows = csv.reader(text)
            header = [name.strip() for name in next(rows, [])]
            if header != _HEADER:
                raise DataError(
                    f"{path}: the header must be cell,count, as the query of --sql names its columns"
                )
            for row in rows:
                if not row:
                    continue
                cell, count = _row(path, rows.line_num, row)
                if cell == _NONE and count:
                    what = "no number of the mechanism's outputs" if grid.outputs else "missing or not finite"
                    raise DataError(f"{path}: {count:,} values are {what} (cell {_NONE})")
                if cell in seen:
                    raise DataError(f"{path}: line {rows.line_num}: cell {cell} is there twice")
                if cell != _NONE and not 0 <= cell < len(counts):
                    raise DataError(
                        f"{path}: line {rows.line_num}: there is no cell {cell}; cells of this grid are 0 to "
                        f"{len(counts) - 1:,}"
                    )
                seen.add(cell)
                if cell != _NONE:
                    counts[cell] = count
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {reason(error)}") from error
    return counts


def _row(path: Path, line: int, row: list[str]) -> tuple[int, int]:
    try:
        cell, count = (int(text.strip()) for text in row)
        if not 0 <= count < 2**62:
            raise ValueError
    except ValueError:
        raise DataError(
            f"{path}: line {line}: must be the number of a cell and a whole count from 0"
        ) from None
    return cell, count
