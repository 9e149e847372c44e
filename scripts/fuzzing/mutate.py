"""Damage to texts, bytes, nested values and HDF5 files, from a seeded generator."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

__all__ = ["HOSTILE", "mutate_bytes", "mutate_hdf5", "mutate_text", "mutate_value"]

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    "",
    " ",
    "nan",
    "~",
    "-",
    "public",
    ".",
    "../..",
    "/dev/null",
    "é\u202e\x85",
    "x" * 3000,
    [],
    {},
    [[]],
    [None],
    [[1, 2], [3]],
    {"kind": "laplace"},
    {"": None},
    -1,
    0,
    1,
    2,
    0.5,
    -0.0,
    1e-320,
    1e308,
    10**30,
    float("inf"),
    float("-inf"),
    float("nan"),
    "2020-01-01",
    "1_000",
    "0x10",
    "1e3",
)

_YAML = (
    "&a *a",
    "*b",
    "!!python/object/apply:os.system [true]",
    "---\n",
    "%",
    "\t",
    "? ",
    "- ",
    ": ",
    "'",
    '"',
)
_YAML = (
    *_YAML,
    "{",
    "}",
    "[",
    "]",
    "|",
    ">",
    "#",
    "\x00",
    "\ufeff",
    "<<: *x\n",
    "\n",
    "!!binary x",
    "@",
    "`",
)
_CSV = (
    ",",
    ",,",
    '"',
    "\n",
    "\n\n",
    ";",
    "\x00",
    "\ufeff",
    "nan",
    "inf",
    "-",
    "1e999",
    "NA",
    "é",
    "\r",
    " ",
    "#",
)


def mutate_text(text: str, rng: random.Random, pieces: tuple[str, ...] = _YAML) -> str:
    """Return a text with one to four pieces inserted, doubled, moved or taken out."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(text))
        stop = min(len(text), start + rng.choice((1, 1, 3, 20, 200)))
        piece = rng.choice((rng.choice(pieces), text[start:stop], "", rng.choice(pieces) * 40))
        text = text[:start] + piece + text[rng.choice((start, stop)) :]
    return text


def mutate_csv(text: str, rng: random.Random) -> str:
    """Return a table with pieces of tables inserted, doubled or taken out."""
    return mutate_text(text, rng, _CSV)


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return bytes that are changed here and there, cut off, or put together anew."""
    damaged = bytearray(content)
    kind = rng.randrange(5)
    if kind == 0:
        return bytes(damaged[: rng.randrange(len(damaged) + 1)])
    for _ in range(rng.choice((1, 3, 30))):
        place = rng.randrange(max(1, len(damaged)))
        if kind == 1:
            damaged[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 2:
            damaged[place : place + rng.randint(1, 64)] = b""
        elif kind == 3:
            damaged[place:place] = rng.randbytes(rng.randint(1, 64))
        else:
            damaged[place : place + 8] = rng.choice((b"\xff" * 8, b"\x00" * 8, b"\x00\x00\x00\x80" * 2))
    return bytes(damaged)


def mutate_value(value: Any, rng: random.Random) -> Any:
    """Return nested lists and mappings with one to three entries replaced, renamed, taken out or added."""
    changed = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        places = list(_places(changed))
        if not places:
            return rng.choice(HOSTILE)
        holder, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind <= 2:
            holder[key] = copy.deepcopy(rng.choice(HOSTILE))
        elif kind == 3:
            del holder[key]
        elif isinstance(holder, dict):
            name = f"{key}{rng.choice('_sx0')}" if kind == 4 else rng.choice(("kind", "n", "epsilon", "path"))
            holder[name] = holder.pop(key) if kind == 4 else copy.deepcopy(rng.choice(HOSTILE))
        else:
            holder.insert(key, copy.deepcopy(holder[key]))
    return changed


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def mutate_hdf5(path: Path, rng: random.Random) -> None:
    """Damage a file in place: bytes, or names, types, shapes and values of what it holds."""
    if rng.random() < 0.4:
        path.write_bytes(mutate_bytes(path.read_bytes(), rng))
        return
    with h5py.File(path, "r+") as file:
        for _ in range(rng.randint(1, 2)):
            if rng.random() < 0.5:
                _mutate_attribute(file, rng)
            else:
                _mutate_object(file, rng)


def _objects(file: h5py.File) -> list[Any]:
    found: list[Any] = [file]
    file.visititems(lambda _, item: found.append(item))
    return found


def _mutate_attribute(file: h5py.File, rng: random.Random) -> None:
    held = [(item, name) for item in _objects(file) for name in item.attrs if not name.isupper()]
    if not held:
        return
    item, name = rng.choice(held)
    old = item.attrs[name]
    del item.attrs[name]
    if rng.random() < 0.2:
        return
    if isinstance(old, bytes | str) and rng.random() < 0.6:
        text = old.decode("utf-8", "replace") if isinstance(old, bytes) else old
        item.attrs[name] = mutate_text(text, rng).replace("\x00", "")
        return
    item.attrs[name] = rng.choice(
        (b"", b"\xff\xfe", "nan", -1, 0, 2.5, float("nan"), float("inf"), 2**62, True)
    )


def _mutate_object(file: h5py.File, rng: random.Random) -> None:
    held = [item for item in _objects(file) if item.name != "/"]
    if not held:
        return
    item = rng.choice(held)
    name, parent = item.name.rsplit("/", 1)[1], item.parent
    if isinstance(item, h5py.Group) or rng.random() < 0.2:
        if rng.random() < 0.5:
            other = name + rng.choice("_sx")
            if other not in parent:
                parent.move(name, other)
        else:
            del parent[name]
        return
    values = item[()] if item.shape is not None else np.zeros(())
    kept = dict(item.attrs)
    kind = rng.randrange(6)
    if kind == 0 and values.dtype.kind == "f" and values.size:
        flat = np.array(values)
        flat.ravel()[rng.randrange(values.size)] = rng.choice((np.nan, np.inf, -1e308, 1e-320, -1.0))
        item[...] = flat
        return
    if kind == 0 and values.dtype.kind in "iu" and values.size:
        flat = np.array(values)
        flat.ravel()[rng.randrange(values.size)] = rng.choice((-1, 0, 100, np.iinfo(values.dtype).max))
        item[...] = flat
        return
    other: Any = {
        1: values[..., :-1] if np.ndim(values) else values,
        2: np.asarray(values)[None],
        3: np.zeros(np.shape(values), dtype=np.float32),
        4: np.array(b"text"),
    }.get(kind, np.zeros((0,) * np.ndim(values)))
    del parent[name]
    made = parent.create_dataset(name, data=other)
    for key, attribute in kept.items():
        if not key.isupper():
            made.attrs[key] = attribute
