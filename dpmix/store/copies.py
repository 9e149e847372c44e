"""Files that are copies of each other, whatever they are called: what they hold would count twice."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from pathlib import Path

from dpmix.errors import DataError
from dpmix.store.atomic import reason

_START = 1 << 16  # bytes that tell most files of one size apart


def check_copies(paths: Sequence[Path]) -> None:
    """Refuse files of which one has the bytes of another; those that are no files are left to who reads them.

    Files of different sizes are not opened, and of others no more is read than tells them apart.

    Raises
    ------
    DataError
        Naming both, and for a file that cannot be read.
    """
    sizes: dict[int, list[Path]] = {}
    for path in paths if len(paths) > 1 else ():
        if path.is_file():
            sizes.setdefault(path.stat().st_size, []).append(path)
    alike: dict[tuple[int, bytes], list[Path]] = {}
    for size, several in sizes.items():
        for path in several if size and len(several) > 1 else ():
            try:
                with path.open("rb") as file:
                    before = alike.setdefault((size, file.read(_START)), [])
                twin = next((other for other in before if filecmp.cmp(path, other, shallow=False)), None)
            except OSError as error:
                raise DataError(f"cannot read {path}: {reason(error)}") from error
            if twin is not None:
                raise DataError(
                    f"{path} is a copy of {twin}, and its records would count twice; name one of them, or "
                    "join the files where they hold other records"
                )
            before.append(path)
