"""Files of releases.

The release file has `/release` with its values, and the account of how they were made; nothing else.
Synthetic records are written to one, too, or to a CSV file with that account beside it.
"""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpmix.columns.cells import Counts
from dpmix.columns.column_units import stated_unit, unit_from_text, unit_text
from dpmix.errors import DataError, UsageError, say
from dpmix.laws.every import Law, LawError, expect, law_of
from dpmix.laws.synthetic import SyntheticLaw
from dpmix.privacy.accounting import Adjacency
from dpmix.release.sanitized import Release
from dpmix.release.tallies import counts_problem, grid_of
from dpmix.spec.days import day_text
from dpmix.spec.limits import MOST_RECORDS
from dpmix.store import h5
from dpmix.store.atomic import check_output, fill, replacing
from dpmix.store.frames import Frame, Pieces, print_csv
from dpmix.store.tree import Node, Variable, write_tree

_NUMBERS = ("epsilon", "delta", "rho")
_TEXTS = ("adjacency", "trust", "dpmix_version", "created_at")
_FLAGS = ("private", "simulated")
_OPTIONAL = ("order", "proved", "ledger")
_WORDS = {"order": ("shuffled", "public"), "ledger": ("entered", "bypassed")}
SUFFIXES = (".csv", ".csv.gz", ".h5")

# The release file


def write_release(path: str | Path, release: Release, *, force: bool = False) -> None:
    """Write a release file, which appears complete or not at all.

    The attributes are on the group `/release`, and on the root for readers that look there; a number that
    does not apply is NaN.

    Raises
    ------
    UsageError
        When the file exists and `force` is not given.
    DataError
        When it cannot be written.
    """
    attrs: dict[str, h5.Attribute] = {
        "mechanism": json.dumps(release.mechanism.stated(), allow_nan=False),
        "n": release.n,
    }
    for name in _NUMBERS:
        value = getattr(release, name)
        attrs[name] = math.nan if value is None else float(value)
    for name in (*_TEXTS, *_FLAGS):
        attrs[name] = getattr(release, name)
    for name in _OPTIONAL:
        value = getattr(release, name)
        if value is not None:
            attrs[name] = value
    if release.dates:
        attrs["dates"] = json.dumps(list(release.dates))
    if release.unit:
        attrs["unit"] = unit_text(release.unit)
    if release.groups:
        attrs["groups"] = json.dumps({name: list(names) for name, names in release.groups.items()})
    variables = {"column": Variable(("column",), np.array(release.columns))}
    if release.tally is None:
        variables["values"] = Variable((release.mechanism.row, "column"), release.values)
    else:
        variables["counts"] = Variable(("cell",), release.tally.counts)
        variables["edges"] = Variable(("edge",), grid_of(release.tally))
        attrs["coarsened"] = release.tally.width
    for i, names in enumerate(release.labels):
        if names is not None:
            variables[f"labels_{i}"] = Variable((f"code_{i}",), np.array(names))
    write_tree(path, Node(attrs, {}, {"release": Node(attrs, variables)}), force=force)


def read_release(path: str | Path, *, tallies: bool = False) -> Release:
    """Read and check a release file; where `tallies` will do, one that has counts in place of values.

    Raises
    ------
    DataError
        When the file is missing, damaged, or not a release that this version understands; for a tally where
        none will do.
    """
    node = _node(path, tallies=tallies)
    attrs = node.attrs
    mechanism = _mechanism(path, _text(path, attrs, "mechanism"))
    columns = _columns(path, node)
    tally = None if "values" in node.variables else _tally(path, node, mechanism)
    values = np.zeros((0, 1)) if tally is not None else _values(path, node)
    labels = _labels(path, node, mechanism, columns)
    n = _records(path, attrs, mechanism, len(values)) if tally is None else tally.n
    release = _made(path, attrs, mechanism, values, n, columns, labels, tally)
    if tally is not None:
        return release
    problem = mechanism.problem(values, labels)
    if problem is not None:
        raise _bad(path, "values", problem)
    warning = mechanism.warning(values, release.n)
    if warning is not None:
        say(f"warning: {path}: {warning}")
    return release


def _made(
    path: str | Path,
    attrs: Mapping[str, h5.Attribute],
    mechanism: Law,
    values: np.ndarray[Any, np.dtype[np.float64]],
    n: int,
    columns: tuple[str, ...],
    labels: tuple[tuple[str, ...] | None, ...] = (),
    tally: Counts | None = None,
) -> Release:
    """Return the release with the account that the attributes give of it, checked."""
    if mechanism.groups and attrs.get("adjacency") == Adjacency.REPLACEMENT:
        raise _bad(path, "adjacency", f"is {Adjacency.REPLACEMENT} alone, but the mechanism has groups")
    release = Release(
        labels=labels,
        values=values,
        columns=columns,
        mechanism=mechanism,
        epsilon=_number(path, attrs, "epsilon"),
        delta=_number(path, attrs, "delta"),
        rho=_number(path, attrs, "rho"),
        n=n,
        adjacency=_adjacency(path, attrs),
        trust=_trust(path, attrs, mechanism),
        private=_flag(path, attrs, "private"),
        simulated=_flag(path, attrs, "simulated"),
        created_at=_text(path, attrs, "created_at"),
        dpmix_version=_text(path, attrs, "dpmix_version"),
        order=_word(path, attrs, "order"),
        proved=_flag(path, attrs, "proved") if "proved" in attrs else None,
        ledger=_word(path, attrs, "ledger"),
        tally=tally,
        dates=_names(path, attrs, "dates"),
        unit=unit_from_text(_text(path, attrs, "unit")) if "unit" in attrs else None,
    )
    if not mechanism.protects and release.private:
        raise _bad(path, "private", "is true although the mechanism adds no noise")
    found = mechanism.disagreement(release.n, len(columns))
    if found is not None:
        raise _bad(path, "mechanism", found)
    return release


def is_release(path: str | Path) -> bool:
    """Whether a file is a release file, going by its groups.

    Raises
    ------
    DataError
        When it is no HDF5 file that can be read.
    """
    with h5.reading(path) as root:
        groups = root.names()[1]
    return "release" in groups and "posterior" not in groups


def states_itself(path: str | Path) -> bool:
    """Whether an HDF5 file says how its values were released, as release files and tallies do.

    Raises
    ------
    DataError
        When it is no HDF5 file that can be read.
    """
    with h5.reading(path) as root:
        return bool(_contents(root)) and "mechanism" in root.group("release").attrs


def is_tally(path: str | Path) -> bool:
    """Whether a file is a tally, going by what its release holds.

    Raises
    ------
    DataError
        When it is no HDF5 file that can be read.
    """
    with h5.reading(path) as root:
        names = _contents(root)
    return "counts" in names and "values" not in names


def _contents(root: h5.Group) -> tuple[str, ...]:
    """Return the names of what a release holds; none where the file has no release."""
    return root.group("release").names()[0] if "release" in root.names()[1] else ()


def _no_release(path: str | Path, root: h5.Group) -> DataError:
    """Say of an HDF5 file without a release what it is, and what would be right."""
    groups = root.names()[1]
    if "posterior" in groups:
        what = "holds chains, not a release"
    else:
        missing = "/release/values" if "release" in groups else "/release"
        what = f"is not a release file: it has no {missing}"
    return DataError(f"{path} {what}; give what `dpmix privatize`, `synthesize` or `tally` wrote")


def _node(path: str | Path, *, tallies: bool) -> Node:
    """Read what makes up the release, and nothing else of the file: no coordinates."""
    with h5.reading(path) as root:
        names = _contents(root)
        if "values" not in names and "counts" not in names:
            raise _no_release(path, root)
        group = root.group("release")
        if "values" not in names:
            if not tallies:
                raise DataError(
                    f"{path} is a tally, of counts in cells without any record's value; `dpmix fit` takes it "
                    "with sampler.kind: counts, and `dpmix tally` adds it to others"
                )
            if "edges" not in names:
                raise _bad(path, "edges", "are missing beside the counts")
            wanted = [name for name in names if name in ("counts", "edges", "column")]
            return Node(group.attrs, {name: Variable((), group[name][()]) for name in wanted})
        values = group["values"]
        if len(values.shape) != 2 or values.kind != "f" or 0 in values.shape:
            raise _bad(path, "values", "is not a table of numbers with records and columns")
        if values.shape[0] > MOST_RECORDS:
            raise _bad(path, "values", f"has {values.shape[0]:,} records; at most {MOST_RECORDS:,} are read")
        wanted = [name for name in names if name in ("values", "column") or name.startswith("labels_")]
        variables = {name: Variable((), group[name][()]) for name in wanted}
        return Node(group.attrs, variables)


def read_account(path: str | Path) -> tuple[Release, int]:
    """Read what a file says of a local release, without its values, of which there may be any number.

    Returns
    -------
    Release, int
        One record of zeros with the account of them all; and how many there are.

    Raises
    ------
    DataError
        As `read_release`; for a release of the whole sample.
    """
    with h5.reading(path) as root:
        names = _contents(root)
        if "values" not in names:
            raise _no_release(path, root)
        group = root.group("release")
        attrs, shape, kind = group.attrs, group["values"].shape, group["values"].kind
        column = group["column"][()] if "column" in names else np.zeros(0)
    if len(shape) != 2 or kind != "f" or 0 in shape:
        raise _bad(path, "values", "is not a table of numbers with records and columns")
    mechanism = _mechanism(path, _text(path, attrs, "mechanism"))
    if mechanism.trust != "local":
        raise DataError(f"{path} is a {mechanism.kind} release of the whole sample, which has no tally")
    _records(path, attrs, mechanism, shape[0])
    values = np.zeros((1, shape[1]))
    node = Node(attrs, {"values": Variable((), values), "column": Variable((), column)})
    return _made(path, attrs, mechanism, values, 1, _columns(path, node)), shape[0]


def _labels(
    path: str | Path, node: Node, mechanism: Law, columns: tuple[str, ...]
) -> tuple[tuple[str, ...] | None, ...]:
    """Return the labels of the codes of each column; empty where all columns are numbers."""
    if mechanism.released != "synthetic":
        return mechanism.labels
    law = expect(mechanism, SyntheticLaw)
    if [part.name for part in law.columns] != list(columns):
        raise _bad(path, "mechanism", "names other columns than the values have")
    found: list[tuple[str, ...] | None] = []
    for i, part in enumerate(law.columns):
        if part.bounds is not None:
            found.append(None)
            continue
        stored = node.variables.get(f"labels_{i}")
        if stored is None and part.categories is None and law.generator == "posterior_predictive":
            found.append(None)  # numbers without public bounds
            continue
        if stored is None or stored.data.dtype.kind != "U" or stored.data.ndim != 1:
            raise _bad(path, f"labels_{i}", "does not name the labels of its column")
        found.append(tuple(str(name) for name in stored.data))
    return tuple(found) if any(names is not None for names in found) else ()


def _records(path: str | Path, attrs: Mapping[str, h5.Attribute], law: Law, rows: int) -> int:
    n = attrs.get("n")
    if law.trust == "local":
        if n != rows:
            raise _bad(path, "n", f"is not the number of records, {rows}")
        return rows
    if isinstance(n, str) or n is None or np.ndim(n) != 0 or not (n >= 1 and float(n).is_integer()):
        raise _bad(path, "n", "is not a number of records")
    return int(n)


def _trust(path: str | Path, attrs: Mapping[str, h5.Attribute], law: Law) -> str:
    trust = _text(path, attrs, "trust")
    if trust not in ("local", "global"):
        raise _bad(path, "trust", "is neither local nor global")
    if law.trust == "global" and trust != "global" and not law.of_local:
        raise _bad(path, "trust", f"is local, but a {law.kind} is of the whole sample")
    return trust


def _bad(path: str | Path, name: str, problem: str) -> DataError:
    return DataError(f"{path} is not a valid release file: {name} {problem}")


def _number(path: str | Path, attrs: Mapping[str, h5.Attribute], name: str) -> float | None:
    value = attrs.get(name)
    if isinstance(value, str) or value is None or np.ndim(value) != 0:
        raise _bad(path, name, "is missing or not a number")
    number = float(value)
    if math.isnan(number):
        return None
    if number < 0 or (name == "delta" and number >= 1):
        raise _bad(path, name, f"is {number:g}, which is out of range")
    return number


def _text(path: str | Path, attrs: Mapping[str, h5.Attribute], name: str) -> str:
    value = attrs.get(name)
    if not isinstance(value, str) or not value:
        raise _bad(path, name, "is missing or not text")
    return value


def _word(path: str | Path, attrs: Mapping[str, h5.Attribute], name: str) -> str | None:
    if name not in attrs:
        return None
    value = _text(path, attrs, name)
    if value not in _WORDS[name]:
        raise _bad(path, name, f"is neither {' nor '.join(_WORDS[name])}")
    return value


def _names(path: str | Path, attrs: Mapping[str, h5.Attribute], name: str) -> tuple[str, ...]:
    """Return a JSON list of names; none where there is no such attribute."""
    if name not in attrs:
        return ()
    try:
        found = json.loads(_text(path, attrs, name))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise _bad(path, name, "is no JSON list of names")
    return tuple(found)


def _adjacency(path: str | Path, attrs: Mapping[str, h5.Attribute]) -> str:
    value = _text(path, attrs, "adjacency")
    try:
        return str(Adjacency(value))
    except ValueError:
        raise _bad(path, "adjacency", f"is none of {'; '.join(Adjacency)}") from None


def _flag(path: str | Path, attrs: Mapping[str, h5.Attribute], name: str) -> bool:
    value = attrs.get(name)
    if value is None or isinstance(value, str) or np.ndim(value) != 0 or value not in (0, 1):
        raise _bad(path, name, "is missing or neither 0 nor 1")
    return bool(value)


def _mechanism(path: str | Path, text: str) -> Law:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _bad(path, "mechanism", "is not JSON") from error
    try:
        return law_of(found if isinstance(found, dict) else {})
    except LawError as error:
        raise _bad(path, "mechanism", str(error)) from None


def _values(path: str | Path, node: Node) -> np.ndarray[Any, np.dtype[np.float64]]:
    values = node["values"]
    if not np.isfinite(values).all():
        raise _bad(path, "values", "holds numbers that are not finite")
    return np.ascontiguousarray(values, dtype=np.float64)


def _columns(path: str | Path, node: Node) -> tuple[str, ...]:
    names = node.variables.get("column")
    width = node["values"].shape[1] if "values" in node.variables else 1
    if names is None or names.data.dtype.kind != "U" or names.data.shape != (width,):
        raise _bad(path, "column", "does not name every column")
    return tuple(str(name) for name in names.data)


def _tally(path: str | Path, node: Node, law: Law) -> Counts:
    counts, edges, width = node["counts"], node["edges"], _number(path, node.attrs, "coarsened")
    if edges.dtype.kind != "f" or edges.ndim != 1:
        raise _bad(path, "edges", "are no numbers")
    stated = node.attrs.get("n")
    n = int(stated) if isinstance(stated, int | np.integer) else 0
    problem = counts_problem(counts, edges, -1.0 if width is None else width, law, n)
    if problem is not None:
        raise DataError(f"{path} is not a valid tally: {problem}")
    return Counts(counts.astype(np.int64), np.ascontiguousarray(edges[1:-1], dtype=np.float64), width or 0.0)


# Files of synthetic records


def beside(path: str | Path) -> Path:
    """Return the file with the guarantee of a CSV file of synthetic records, ``<path>.json``."""
    return Path(f"{path}.json")


def check_synthetic_output(path: str | Path, *, force: bool = False) -> Path:
    """Say before any work whether synthetic records may be written; return the resolved path.

    Raises
    ------
    UsageError
        When the suffix is none of csv, csv.gz and h5, or a file exists and `force` is not given.
    DataError
        When its directory does not exist.
    """
    name = str(path).lower()
    if not name.endswith(SUFFIXES):
        raise UsageError(f"{path}: synthetic records are written as {', '.join(SUFFIXES)}; choose one")
    if not name.endswith(".h5"):
        check_output(beside(path), force=force)
    return check_output(path, force=force)


def write_synthetic(path: str | Path, release: Release, *, force: bool = False) -> None:
    """Write synthetic records with their guarantee, which is there before the records are.

    A csv or csv.gz file has the guarantee in `beside`, an h5 file holds both. Records that are overwritten go
    before their guarantee does: none ever stand beside another one's.

    Raises
    ------
    UsageError, DataError
        As `check_synthetic_output`, and when a file cannot be written.
    """
    check_synthetic_output(path, force=force)
    if str(path).lower().endswith(".h5"):
        write_release(path, release, force=force)
        return
    text = _table(release).encode("utf-8")
    if str(path).lower().endswith(".gz"):
        text = gzip.compress(text, mtime=0)
    said = (json.dumps(account(release), indent=2) + "\n").encode("utf-8")
    with replacing(path, force=force) as records:
        fill(records, text, path)
        with replacing(beside(path), force=force) as aside:
            fill(aside, said, beside(path))
            if force:
                Path(path).resolve().unlink(missing_ok=True)


def account(release: Release) -> dict[str, Any]:
    """Return what is stated of a release beside its values, for strict JSON."""
    infinite = release.epsilon is not None and release.epsilon == float("inf")
    words, why = release.guarantee_in_words(), getattr(release.mechanism, "post_processing", None)
    return {
        "guarantee": words if why is None else f"{words}; {why}",
        **({"cautions": list(release.cautions)} if release.cautions else {}),
        "epsilon": None if infinite else release.epsilon,
        "delta": release.delta,
        "rho": release.rho,
        "adjacency": release.adjacency,
        "proved": release.proved,
        "trust": release.trust,
        "n": release.n,
        "private": release.private,
        "simulated": release.simulated,
        **({} if release.ledger is None else {"ledger": release.ledger}),
        **stated_unit(release.unit),
        "mechanism": release.mechanism.stated(),
        "created_at": release.created_at,
        "dpmix_version": release.dpmix_version,
    }


def _table(release: Release) -> str:
    """Return the records as CSV: labels as text, days as dates, numbers with their digits or in short."""
    stated = {column.name: column for column in getattr(release.mechanism, "columns", ())}
    columns: dict[str, Any] = {}
    labels = release.labels or (None,) * len(release.columns)
    for name, names, part in zip(release.columns, labels, release.values.T, strict=True):
        column = stated.get(name)
        if names is not None:
            columns[name] = [names[code] for code in part.astype(int).tolist()]
        elif column is not None and column.date:
            columns[name] = [day_text(day) for day in part.tolist()]
        elif column is not None and column.digits:
            columns[name] = [f"{number:.{column.digits}f}" for number in part.tolist()]
        else:
            columns[name] = part
    stream = io.StringIO(newline="")
    print_csv(stream, Pieces.of(Frame(columns)))
    return stream.getvalue()
