"""What two files of one run share, whatever the time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

__all__ = ["contents", "differences"]

_TIMES = ("created_at", "seconds", "ess_per_second", "ess_per_second_min")


def contents(path: Path) -> dict[str, Any]:
    """Return every dataset and root attribute of an HDF5 file that does not tell the time."""
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and name.rsplit("/", 1)[-1] not in _TIMES:
            found[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(visit)
        return found | {f"@{key}": file.attrs[key] for key in file.attrs if key not in _TIMES}


def differences(one: Path, other: Path) -> list[str]:
    """Name what differs between two files of one kind: HDF5, JSON, or others by their bytes."""
    if one.suffix == ".h5":
        mine, theirs = contents(one), contents(other)
    elif one.suffix == ".json":
        mine, theirs = (
            {k: repr(v) for k, v in json.loads(path.read_text()).items() if k not in _TIMES}
            for path in (one, other)
        )
    else:
        mine, theirs = {"bytes": one.read_bytes()}, {"bytes": other.read_bytes()}
    return [
        name
        for name in sorted({*mine, *theirs})
        if name not in mine
        or name not in theirs
        or np.asarray(mine[name]).tobytes() != np.asarray(theirs[name]).tobytes()
    ]
