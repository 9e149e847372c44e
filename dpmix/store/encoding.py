"""How arrays and strings look inside a file: characters of UTF-8, no booleans, chunk shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_CHUNK_BYTES = 1 << 18


def utf8(length: int) -> np.dtype[Any]:
    """Return the type of UTF-8 strings of `length` bytes (the metadata is what h5py goes by)."""
    return np.dtype(f"S{length}", metadata={"h5py_encoding": "utf-8"})


def encode(array: Array) -> Array:
    """Return the array as it is stored: booleans as int8, strings as fixed-length UTF-8.

    Raises
    ------
    TypeError
        For objects, dates, complex numbers and other types without a place in the files.
    """
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind == "U":
        data = np.char.encode(array, "utf-8")
        return data.astype(utf8(max(1, data.dtype.itemsize)))
    if array.dtype.kind not in "iuf":
        raise TypeError(f"arrays of {array.dtype} cannot be stored")
    return array


def characters(strings: Array) -> Array:
    """Return fixed-length strings as their characters, along one more dimension, the last."""
    length = strings.dtype.itemsize
    found = np.frombuffer(strings.tobytes(), dtype="S1").reshape(*strings.shape, length)
    return found.astype(utf8(1))


def joined(found: Array) -> Array:
    """Return characters as the strings that they are along the last dimension."""
    length = found.shape[-1]
    if not length:
        return np.zeros(found.shape[:-1], dtype="S1")
    return np.ascontiguousarray(found).view(f"S{length}").reshape(found.shape[:-1])


def decode(array: Array) -> Array:
    """Return stored strings as `str`, other arrays as they are."""
    if array.dtype.kind == "S":
        return np.asarray(np.char.decode(array, "utf-8"))
    return array


def chunk_shape(shape: tuple[int, ...], limit: tuple[int | None, ...], itemsize: int) -> tuple[int, ...]:
    """Return a chunk of about 256 KB that runs along the last dimensions (`None` in `limit`: resizable)."""
    room = max(1, _CHUNK_BYTES // max(1, itemsize))
    chunk = [1] * len(shape)
    for axis in reversed(range(len(shape))):
        chunk[axis] = max(1, min(room, shape[axis] if limit[axis] is not None else max(shape[axis], 128)))
        room = max(1, room // chunk[axis])
    return tuple(chunk)
