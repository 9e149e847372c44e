"""Runs that stand under another name: names tell what varies, and a sweep may come to vary something else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpmix.errors import DataError
from dpmix.sweeping.folder import Folder, RunFolder

__all__ = ["adopt", "elsewhere", "of_no_run"]

Identities = Mapping[str, Mapping[str, Any]]


def elsewhere(folder: Folder, identities: Identities) -> dict[str, RunFolder]:
    """Return the folders under other names of runs that have no work under their own.

    Parameters
    ----------
    folder : Folder
        Of a sweep.
    identities : mapping of str to mapping
        What each of its runs is, by name, as `dpmix.sweeping.folder.identity_of` says.
    """
    wanted = {_said(what): name for name, what in identities.items() if not folder.run(name).has_work}
    found: dict[str, RunFolder] = {}
    for other in _others(folder, identities) if wanted else ():
        try:
            what = other.identity()
        except DataError:
            continue
        name = None if what is None else wanted.get(_said(what))
        if name is not None:
            found.setdefault(name, other)
    return found


def adopt(folder: Folder, identities: Identities) -> None:
    """Give runs that stand under other names their own.

    Raises
    ------
    DataError
        When that cannot be done.
    UsageError
        When another process works on one of them.
    """
    for name, other in elsewhere(folder, identities).items():
        with other.alone():
            other.move(folder.run(name).path)


def of_no_run(folder: Folder, names: Mapping[str, Any]) -> int:
    """Return how many finished runs the folder holds that are none of the sweep's."""
    return sum(other.result.exists() for other in _others(folder, names))


def _others(folder: Folder, names: Mapping[str, Any]) -> Iterator[RunFolder]:
    runs: Path = folder.path / "runs"
    for path in sorted(runs.iterdir()) if runs.is_dir() else ():
        if path.name not in names and RunFolder(path).has_work:
            yield RunFolder(path)


def _said(identity: Mapping[str, Any]) -> str:
    return json.dumps(identity, sort_keys=True)
