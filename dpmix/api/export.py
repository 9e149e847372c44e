"""`dpmix.export`: what a file holds as a table, CSV or Parquet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmix.api.arguments import PathLike, file_of
from dpmix.api.file_kinds import KINDS, kind_of
from dpmix.api.release_of import read_any
from dpmix.api.spending import show_ledger
from dpmix.errors import DataError, UsageError, say
from dpmix.release.release_file import read_release
from dpmix.release.sanitized import table_of
from dpmix.results.as_hdf5 import tables_in
from dpmix.run.draws_tables import draws_tables
from dpmix.store.frames import Pieces, check_frame_output, frame_of_rows, print_csv, write_pieces
from dpmix.store.tree import read

_FIRST = {"summary": "parameters"}  # of the tables of a kind the one that is taken where none is named


def export(
    file: PathLike, output: PathLike, *, table: str | None = None, force: bool = False, quiet: bool = False
) -> int:
    """Write what a file holds as one table.

    Parameters
    ----------
    file : path
        Of a release, tally, fit, summary or ledger, or synthetic records.
    output : path
        A .csv or .parquet file; - for CSV on standard output.
    table : str, optional
        Which of several tables: of chains ``draws`` (the default), ``components``, ``allocations``,
        ``sample_stats``; of a summary ``parameters`` (the default), ``density``, ..
    force : bool
        Whether an existing output may be replaced.
    quiet : bool
        Say nothing but warnings on standard error.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    UsageError
        When the output has another suffix, exists or is the file itself; for a table that is not there.
    DataError
        When the file cannot be read.
    """
    kind, name, found = planned(file, output, table=table, force=force)
    if str(output) == "-":
        print_csv(None, found)
    else:
        write_pieces(Path(output), found, force=force, private=kind == "ledger")
    what = f"{found.rows:,} row{'s' * (found.rows != 1)} of {name}"
    say(f"{what}{', for the curator alone' if kind == 'ledger' else ''}", quiet)
    return found.rows


def planned(
    file: PathLike, output: PathLike, *, table: str | None = None, force: bool = False
) -> tuple[str, str, Pieces]:
    """Return the kind of the file, name and contents of the table that `export` writes; as that raises."""
    path, target = file_of(file, "file"), file_of(output, "output")
    check_frame_output(target, force=force)
    if os.path.realpath(path) == os.path.realpath(target):
        raise UsageError(f"{target} is the file itself; give the table another name")
    kind, tables = tables_of(path)
    name = next(iter(tables)) if table is None else table
    if name not in tables:
        raise UsageError(f"--table: {path} ({kind}) has no table {table}; it has {', '.join(tables)}")
    return kind, name, tables[name]


def tables_of(path: Path) -> tuple[str, dict[str, Pieces]]:
    """Return the kind of a file and its tables by name, the one first that is taken where none is named.

    Raises
    ------
    DataError
        When it cannot be read, or has no tables.
    """
    kind = kind_of(path)
    if kind in ("release", "tally", "synthetic"):
        release = read_any(path) if kind == "synthetic" else read_release(path, tallies=True)
        if release.is_raw:
            say(f"warning: {path} holds confidential records as they are, and so does the table")
        return kind, {"counts" if kind == "tally" else "values": table_of(release)}
    if kind == "chains":
        return kind, draws_tables(path)
    if kind in ("summary", "contrast"):
        frames = tables_in(read(path))
        order = sorted(frames, key=lambda name: name != _FIRST.get(kind))
        found = {name: Pieces.of(frames[name]) for name in order}
        if not found:
            raise DataError(f"{path} is a summary without tables")
        return kind, found
    if kind == "ledger":
        return kind, {"entries": Pieces.of(frame_of_rows(ledger_rows(show_ledger(path))))}
    if kind == "interrupted":
        raise DataError(f"{path} is the work of a fit that is not finished; go on with `dpmix fit --resume`")
    raise DataError(f"{path} is {KINDS[kind]}, which is no table; {kind}s are shown by `dpmix show`")


_COLUMNS = (
    *("number", "time", "dataset", "part", "edition", "type", "mechanism", "columns", "groups"),
    *("epsilon", "delta", "rho", "adjacency", "trust", "proved", "finished", "file", "sha256"),
)


def ledger_rows(shown: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of what `dpmix.api.spending.show_ledger` gives, one row each, no keys or marks."""
    rows = []
    for dataset in shown["datasets"]:
        for entry in dataset["history"]:
            mechanism, output = entry.get("mechanism") or {}, entry.get("output") or {}
            level = entry.get("guarantee") or entry.get("budget") or {}
            row = {key: entry.get(key) for key in ("number", "time", "part", "edition", "type", "finished")}
            row |= {key: level.get(key) for key in ("epsilon", "delta", "rho", "trust")}
            adjacency = level.get("adjacency")
            row |= {
                "dataset": dataset["dataset"],
                "adjacency": None if adjacency is None else str(adjacency),
                "mechanism": mechanism.get("generator") or mechanism.get("kind"),
                "columns": ", ".join(mechanism.get("columns", ())) or None,
                "groups": ", ".join(mechanism.get("groups") or ()) or None,
                "proved": mechanism.get("proved"),
                "file": output.get("file"),
                "sha256": output.get("sha256"),
            }
            rows.append({key: row[key] for key in _COLUMNS})
    return sorted(rows, key=lambda row: row["number"])
