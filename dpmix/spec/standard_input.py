"""Standard input in the place of a confidential file: ``data.path: "-"``."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import IO

from dpmix.errors import DataError

__all__ = ["STREAM", "StandardInput", "is_stream"]

STREAM = "-"
"""What a spec writes for standard input."""


class StandardInput:
    """A CSV table on standard input, which can be read once; it is kept while it is looked at twice.

    It has what the readers of tables ask of a path.
    """

    name = "standard input.csv"

    def __init__(self) -> None:
        self._bytes: bytes | None = None

    def __str__(self) -> str:
        return "standard input"

    def exists(self) -> bool:
        """Whether it is there: always."""
        return True

    def is_dir(self) -> bool:
        """Whether it is a folder: never."""
        return False

    def is_file(self) -> bool:
        """Whether it can be read as one."""
        return True

    def open(self, encoding: str = "utf-8-sig") -> IO[str]:
        """Return its text from the beginning.

        Raises
        ------
        DataError
            When there is no standard input.
        """
        if self._bytes is None:
            if sys.stdin is None or sys.stdin.closed:
                raise DataError("data.path: - is standard input, and there is none")
            binary = getattr(sys.stdin, "buffer", None)
            self._bytes = sys.stdin.read().encode(encoding) if binary is None else binary.read()
        return io.TextIOWrapper(io.BytesIO(self._bytes), encoding=encoding, newline="")


def is_stream(path: object) -> bool:
    """Whether a path of a spec stands for standard input."""
    return isinstance(path, str | Path) and str(path) == STREAM
