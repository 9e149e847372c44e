"""A file that HDF5 writes to without ever seeing an error.

When the disk is full HDF5 cannot close a file any more, and takes the process down in the end. So it is given
a file object that keeps the first error, and from then on what cannot be written in memory, until its owner
looks at the error and gives the file up.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

__all__ = ["Sink"]


class Sink(io.RawIOBase):
    """A new file at `path`, an older one replaced; `error` is the first that writing met, or None.

    Raises
    ------
    OSError
        When it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.error: OSError | None = None
        self._file = path.open("w+b", buffering=0)
        self._at = 0
        self._kept: list[tuple[int, bytes]] = []

    def __repr__(self) -> str:
        """Name the file within HDF5, which takes ASCII only."""
        return f"sink-{id(self)}"

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._end()}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """Return the offset."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read what was written, whether it reached the disk or not."""
        view = memoryview(buffer).cast("B")
        self._file.seek(self._at)
        done = 0
        while done < len(view):
            count = self._file.readinto(view[done:])
            if not count:
                break
            done += count
        for start, data in self._kept:
            low, high = max(start, self._at), min(start + len(data), self._at + len(view))
            if low < high:
                view[low - self._at : high - self._at] = data[low - start : high - start]
                done = max(done, high - self._at)
        self._at += done
        return done

    def write(self, data: Any) -> int:
        """Write, or keep what cannot be written."""
        view = memoryview(data).cast("B")
        done = 0
        if self.error is None:
            try:
                self._file.seek(self._at)
                while done < len(view):
                    done += self._file.write(view[done:])
            except OSError as error:
                self.error = error
        if done < len(view):
            self._kept.append((self._at + done, bytes(view[done:])))
        self._at += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length of the file."""
        length = self._at if size is None else size
        if self.error is None:
            try:
                self._file.truncate(length)
            except OSError as error:
                self.error = error
        return length

    def flush(self) -> None:
        """Do nothing: nothing is buffered here."""

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            self.error = self.error or error
        super().close()

    def _end(self) -> int:
        return max([self._file.seek(0, io.SEEK_END), *(start + len(data) for start, data in self._kept)])
