"""Packed text that is unpacked as far as its size on the disk makes plausible."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dpmix.errors import DataError
from dpmix.limits import MOST_PER_BYTE_OF_TEXT, ROOM_OF_TEXT

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["open_packed"]

_BLOCK = 1 << 16


def open_packed(path: Path, encoding: str) -> IO[str]:
    """Open a gzip file of text, line ends as they are.

    Raises
    ------
    DataError
        While it is read, when it unpacks to more than `MOST_PER_BYTE_OF_TEXT` times what was read of it.
    OSError, EOFError, zlib.error
        When it cannot be read, or is damaged.
    """
    return io.TextIOWrapper(io.BufferedReader(_Unpacked(path), _BLOCK), encoding=encoding, newline="")


class _Unpacked(io.RawIOBase):
    """The bytes that a gzip file unpacks to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._packed = path.open("rb")
        self._bytes = gzip.GzipFile(fileobj=self._packed)
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        size = self._bytes.readinto(buffer)
        self._count += size
        if self._count > max(ROOM_OF_TEXT, MOST_PER_BYTE_OF_TEXT * self._packed.tell()):
            raise DataError(
                f"{self._path} unpacks to more than {MOST_PER_BYTE_OF_TEXT} times its size, as no table of "
                "numbers does; unpack it and give the .csv file, if that is what you want to read"
            )
        return size

    def close(self) -> None:
        if not self.closed:
            self._bytes.close()
            self._packed.close()
        super().close()
