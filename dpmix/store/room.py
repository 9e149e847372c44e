"""How much a file may unpack to, by its size on the disk."""

from __future__ import annotations

import math
from typing import Any

from dpmix.errors import DataError
from dpmix.limits import MOST_PER_BYTE, MOST_VALUES, ROOM

__all__ = ["Room"]


class Room:
    """What a file that is read may unpack to.

    Places that were never written take no room in a file, and are read as any number of fill values.

    Parameters
    ----------
    name : str
        The file.
    size : int
        Its bytes.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size = name, size
        self._seen: set[str] = set()
        self._total = 0

    def check(self, raw: Any, whole: bool) -> None:
        """Refuse, before it is read, a dataset that what is stored of it cannot unpack to.

        Parameters
        ----------
        raw : h5py.Dataset
        whole : bool
            Whether it is to be read as a whole.

        Raises
        ------
        DataError
            Naming the file and the dataset; also when it has too many values to read as a whole, when all
            datasets together are more than the file can hold, and for values of varying length.
        """
        count = math.prod(raw.shape or ())
        if whole and count > MOST_VALUES:
            raise DataError(
                f"{self._name} has {count:,} values in {raw.name}; at most {MOST_VALUES:,} are read"
            )
        if raw.name in self._seen:
            return
        if raw.dtype.kind == "O":
            raise DataError(f"{self._name} has values of varying length in {raw.name}, which are not read")
        size, stored = count * raw.dtype.itemsize, min(raw.id.get_storage_size(), self._size)
        self._total += size
        for held, bytes_ in ((size, stored), (self._total, self._size)):
            if held > ROOM + MOST_PER_BYTE * bytes_:
                raise DataError(
                    f"{self._name} is damaged: {raw.name} has {count:,} values, more than its {stored:,} "
                    f"bytes in this file of {self._size:,} can hold"
                )
        self._seen.add(raw.name)
