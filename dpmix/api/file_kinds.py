"""What a file is, by what it holds; its name only tells tables and specs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmix.errors import DataError, SpecError
from dpmix.privacy.ledger import FORMAT
from dpmix.release.release_file import beside
from dpmix.run.workspace import SUFFIX, workspace_of
from dpmix.spec.load import read_contents
from dpmix.store import h5
from dpmix.store.atomic import reason

KINDS = {
    "release": "a release",
    "tally": "a tally",
    "chains": "chains",
    "interrupted": "an interrupted fit",
    "summary": "a summary",
    "contrast": "a comparison of two fits",
    "ledger": "a ledger",
    "synthetic": "synthetic records",
    "spec": "a spec",
    "sweep": "the spec of a sweep",
    "card": "a card",
}
"""Kinds of files, and what they are called."""
READ = "releases, tallies, chains, summaries, synthetic records, ledgers, specs and cards of dpmix"
_MOST = 64 << 20  # bytes of JSON that are read
_CARD = {"release", "privacy", "implementation"}


def kind_of(path: Path) -> str:
    """Return the kind of a file, a key of `KINDS`.

    Raises
    ------
    DataError
        When it is not there, a folder, or none of these; in one sentence.
    """
    if str(path) == "-":
        raise DataError("-: is no file; name one")
    if path.is_dir() and path.name.endswith(SUFFIX) and (path / "run.json").is_file():
        return "interrupted"
    if not os.path.lexists(path) and (workspace_of(path) / "run.json").is_file():
        return "interrupted"
    if path.is_dir():
        raise DataError(f"{path} is a folder; name one of the files in it")
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if not path.is_file():
        raise DataError(f"{path} is no ordinary file")
    try:
        with path.open("rb") as stream:
            head = stream.read(4096)
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}") from error
    name = path.name.lower()
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return _of_hdf5(path)
    if name.endswith((".csv", ".csv.gz")):
        return "synthetic"
    if head.lstrip().startswith(b"{"):
        return _of_json(path)
    if name.endswith((".yaml", ".yml")):
        return _of_yaml(path)
    empty = f"{path} is empty" if not head else f"{path} is no file that is known here"
    raise DataError(f"{empty}; show and export read {READ}")


def tree_kind(groups: Mapping[str, Any] | tuple[str, ...]) -> str | None:
    """Return the kind of an HDF5 file of a result by its groups; None where it is none."""
    if "contrast" in groups:
        return "contrast"
    known = ("parameters", "shares", "density", "expected_hellinger")
    return "summary" if any(name in groups for name in known) else None


def _of_hdf5(path: Path) -> str:
    with h5.reading(path) as root:
        groups = root.names()[1]
        if "posterior" in groups:
            return "chains"
        if "release" in groups:
            names = root.group("release").names()[0]
            return "tally" if "counts" in names and "values" not in names else "release"
        found = tree_kind(groups)
        if found is not None:
            return found
    raise DataError(f"{path} is an HDF5 file of another kind; show and export read {READ}")


def _of_json(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST:
            raise DataError(f"{path} is a JSON file too large to be one of dpmix")
        text = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}") from error
    if text.lstrip().startswith(b'{"format": "' + FORMAT.encode()):
        return "ledger"  # also one that is cut short, of which its reader says so
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{path} is a damaged JSON file, or none; show and export read {READ}") from None
    if isinstance(found, dict) and found.get("format") == FORMAT:
        return "ledger"
    if isinstance(found, dict) and {"mechanism", "guarantee"} <= set(found):
        own = path.with_name(path.name.removesuffix(".json"))
        if own != path and beside(own) == path:
            raise DataError(f"{path} is the account of synthetic records; show {own.name}, which it is of")
    if isinstance(found, dict) and "@context" in found:
        return "card"
    raise DataError(f"{path} is a JSON file of another kind; show and export read {READ}")


def _of_yaml(path: Path) -> str:
    try:
        found = read_contents(path)
    except SpecError as error:
        raise DataError(f"{error}") from None
    if isinstance(found, Mapping) and set(found) >= _CARD:
        return "card"
    return "sweep" if isinstance(found, Mapping) and "base" in found else "spec"
