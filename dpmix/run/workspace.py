"""The work of a run that is not finished: draws in segments, and the last state of each chain.

It stands in a directory beside the output, ``<output>.partial``. ``run.json`` says what is being run,
``chain-K.NNNNNN.h5`` holds some draws of chain K in a row, and ``chain-K.state.h5`` its state after the last
of them. Each file appears complete or not at all, the draws before the state that follows them; draws that no
state follows are dropped. So a run that was killed goes on from its last states, with the draws that it would
have had. A state has the digest of itself and of all draws before it, so that compiled code is never given
another one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError, UsageError
from dpmix.store.atomic import reason, write_bytes
from dpmix.store.tree import Node, Variable, read, write_tree

SUFFIX = ".partial"
Draws = Mapping[str, tuple[tuple[str, ...], NDArray[Any]]]


def workspace_of(output: str | Path) -> Path:
    """Return the directory that a run for `output` keeps its work in."""
    path = Path(output)
    return path.with_name(path.name + SUFFIX)


class Workspace:
    """The directory of a run, locked while it is open: one process at a time works on an output."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digests: dict[int, list[str]] = {}  # of the segments of each chain

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path) -> Iterator[Workspace]:
        """Make the directory where it is not there, lock it, and drop half-written files.

        Raises
        ------
        UsageError
            When another process works on the same output.
        DataError
            When the directory cannot be made or written.
        """
        try:
            path.mkdir(exist_ok=True)
            lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR)
        except OSError as error:
            raise DataError(f"cannot write {path}: {reason(error)}") from error
        with _locked(lock, path):
            for leftover in path.glob(".*.partial"):
                leftover.unlink(missing_ok=True)
            yield cls(path)

    @classmethod
    @contextlib.contextmanager
    def looked_at(cls, path: Path) -> Iterator[Workspace]:
        """Give a directory that is there, and change nothing in it.

        Raises
        ------
        UsageError
            When another process works on the same output.
        DataError
            When it cannot be locked.
        """
        try:
            lock = os.open(path / "lock", os.O_RDONLY)
        except FileNotFoundError:  # nobody works there
            yield cls(path)
            return
        except OSError as error:
            raise DataError(f"cannot lock {path}: {reason(error)}") from error
        with _locked(lock, path):
            yield cls(path)

    @property
    def assembled(self) -> Path:
        """Where the finished file is put together."""
        return self.path / "assembled.h5"

    def manifest(self) -> dict[str, Any] | None:
        """Return what the run was said to be, or None for a new one.

        Raises
        ------
        DataError
            When the account of the run cannot be read.
        """
        path = self.path / "run.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._damage(path) from error
        if not isinstance(found, dict):
            raise self._damage(path)
        return found

    def start(self, manifest: Mapping[str, Any]) -> None:
        """Drop what is there, and note what is being run.

        Raises
        ------
        DataError
            When that cannot be written.
        """
        for old in (*self.path.glob("chain-*.h5"), self.assembled):
            old.unlink(missing_ok=True)
        write_bytes(self.path / "run.json", json.dumps(manifest, indent=1).encode(), force=True)

    def remove(self) -> None:
        """Drop the directory."""
        shutil.rmtree(self.path, ignore_errors=True)

    def segments(self, chain: int) -> list[Path]:
        """Return the files with the draws of a chain, in order."""
        return sorted(self.path.glob(f"chain-{chain}.[0-9]*.h5"))

    def add(self, chain: int, draws: Draws, snapshot: Mapping[str, Any], seconds: float) -> None:
        """Add to a chain its `draws` since the last time, and replace its state by the one after them.

        Draws are arrays by name, with the names of their dimensions; those along ``draw`` are perhaps empty.
        The snapshot has arrays by name, and the states of `generators`; seconds are those of sampling so far.

        Raises
        ------
        DataError
            When that cannot be written; the state before is kept.
        """
        digests = self._digests.setdefault(chain, [])
        if any(dims[:1] == ("draw",) and len(values) for dims, values in draws.values()):
            kept = Node(variables={name: Variable(*parts) for name, parts in draws.items()})
            segment = self.path / _segment(chain, len(digests))
            write_tree(segment, Node(groups={"draws": kept}))
            digests.append(_digest(segment))
        write_tree(self._state(chain), _state_node(snapshot, seconds, digests), force=True)

    def last(self, chain: int) -> tuple[dict[str, Any], float] | None:
        """Return the state of a chain and its seconds so far, or None for a chain that has none.

        Raises
        ------
        DataError
            When it cannot be read, or does not go with the draws that are there.
        """
        segments, path = self.segments(chain), self._state(chain)
        digests: list[str] = []
        found = None
        if path.exists():
            node = read(path)
            try:
                digests, found = _read_state(node)
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                raise self._damage(path) from error
        count = len(digests)
        if [segment.name for segment in segments[:count]] != [_segment(chain, i) for i in range(count)]:
            raise DataError(f"{self.path} lacks draws of chain {chain}; start over with --force")
        for segment, digest in zip(segments, digests, strict=False):
            if _digest(segment) != digest:
                raise self._damage(segment)
        for orphan in segments[count:]:
            orphan.unlink()
        self._digests[chain] = digests
        return found

    def _state(self, chain: int) -> Path:
        return self.path / f"chain-{chain}.state.h5"

    def _damage(self, path: Path) -> DataError:
        return DataError(f"{path} is damaged; start over with --force")


@contextlib.contextmanager
def _locked(handle: int, path: Path) -> Iterator[None]:
    """Hold the lock of a directory, whose file is open, and close that."""
    busy = UsageError(
        f"another dpmix fit is writing {path.name.removesuffix(SUFFIX)}; give each process its own output"
    )
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = os.path.samestat(os.fstat(handle), os.stat(path / "lock"))
        except BlockingIOError as error:
            raise busy from error
        except FileNotFoundError:
            ours = False
        except OSError as error:
            raise DataError(f"cannot lock {path}: {reason(error)}") from error
        if not ours:  # another process finished, and dropped the directory, between our two steps
            raise busy
        yield
    finally:
        os.close(handle)


def _segment(chain: int, number: int) -> str:
    return f"chain-{chain}.{number:06d}.h5"


def _digest(path: Path) -> str:
    """Return the digest of a file.

    Raises
    ------
    DataError
        When it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}") from error


def _state_node(snapshot: Mapping[str, Any], seconds: float, digests: Sequence[str]) -> Node:
    arrays = {name: value for name, value in snapshot.items() if isinstance(value, np.ndarray)}
    attrs: dict[str, str | float] = {
        "shapes": json.dumps({name: value.shape for name, value in arrays.items()}),
        "generators": json.dumps([_plain(state) for state in snapshot["generators"]]),
        "seconds": float(seconds),
        "segments": json.dumps(list(digests)),
    }
    return Node(
        attrs={**attrs, "digest": _sum(attrs, arrays)},
        variables={
            name: Variable((f"{name}_",), value.ravel()) for name, value in arrays.items() if value.size
        },
    )


def _read_state(node: Node) -> tuple[list[str], tuple[dict[str, Any], float]]:
    """Return the digests of a chain's segments, its snapshot and its seconds.

    Raises
    ------
    KeyError, ValueError, TypeError, AttributeError
        When it is not as it was written.
    """
    shapes = json.loads(str(node.attrs["shapes"]))
    empty: NDArray[np.float64] = np.empty(0)
    snapshot: dict[str, Any] = {
        name: np.reshape(node[name] if name in node.variables else empty, shape)
        for name, shape in shapes.items()
    }
    if node.attrs["digest"] != _sum(node.attrs, snapshot):
        raise ValueError("the digest is another one")
    snapshot["generators"] = [_lively(state) for state in json.loads(str(node.attrs["generators"]))]
    return json.loads(str(node.attrs["segments"])), (snapshot, float(node.attrs["seconds"]))


def _sum(attrs: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the digest of a state: of its arrays' names and bytes, and of what else it says."""
    found = hashlib.sha256()
    for name in ("shapes", "generators", "seconds", "segments"):
        found.update(f"{attrs[name]}\n".encode())
    for name in sorted(arrays):
        found.update(f"{name}\n".encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()


def _plain(state: Any) -> Any:
    """Return a generator's state with its 128-bit numbers as text."""
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    return {"integer": str(state)} if isinstance(state, int) else state


def _lively(state: Any) -> Any:
    if isinstance(state, dict):
        if set(state) == {"integer"}:
            return int(state["integer"])
        return {key: _lively(value) for key, value in state.items()}
    return state
