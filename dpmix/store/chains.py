"""Writing chains: segments while they run, and the finished file made of them.

A run keeps its work in a directory beside the output, ``<output>.partial``: ``run.json`` says what is being run,
and each chain adds segments, files that hold some of its draws in a row and the state of the chain after them.
A segment appears complete or not at all, so that a run that was killed goes on from its last segment with the
draws it would have had. The finished file is put together from the segments, a few draws at a time, appears
under its name in one step, and the directory goes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError, UsageError
from dpmix.store import h5
from dpmix.store.atomic import reason, write_bytes
from dpmix.store.tree import Node, Variable, read, write_tree

__all__ = ["Finished", "Workspace", "workspace_of", "write_chains"]

_DRAWS = ("n_clusters", "concentration", "acceptance_rate", "log_likelihood", "allocations")
_SCALARS = {"n_clusters": np.int32, "concentration": np.float64}
_STATS = {"acceptance_rate": np.float64, "log_likelihood": np.float64}
_ROWS = 256  # draws copied at a time


def workspace_of(output: str | Path) -> Path:
    """Return the directory that a run for `output` keeps its work in."""
    path = Path(output)
    return path.with_name(path.name + ".partial")


class Workspace:
    """The directory of a run, locked while it is open: one process at a time works on an output."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path) -> Iterator[Workspace]:
        """Make the directory where it is not there, and lock it.

        Raises
        ------
        UsageError
            When another process works on the same output.
        DataError
            When the directory cannot be made.
        """
        try:
            path.mkdir(parents=False, exist_ok=True)
            lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR)
        except OSError as error:
            raise DataError(f"cannot write {path}: {reason(error)}") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another dpmix fit is writing {path.name.removesuffix('.partial')}; "
                    "give each process its own output"
                ) from error
            yield cls(path)
        finally:
            os.close(lock)

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
            raise DataError(f"{path} is damaged; start over with --force") from error
        if not isinstance(found, dict):
            raise DataError(f"{path} is damaged; start over with --force")
        return found

    def start(self, manifest: Mapping[str, Any]) -> None:
        """Drop what is there, and note what is being run."""
        for segment in self.path.glob("chain-*.h5"):
            segment.unlink()
        write_bytes(self.path / "run.json", json.dumps(manifest, indent=1).encode(), force=True)

    def remove(self) -> None:
        """Drop the directory."""
        shutil.rmtree(self.path, ignore_errors=True)

    def segments(self, chain: int) -> list[Path]:
        """Return the segments of a chain, in order."""
        return sorted(self.path.glob(f"chain-{chain}.*.h5"))

    def add(self, chain: int, draws: Any, snapshot: Mapping[str, Any], seconds: float) -> None:
        """Add the next segment of a chain: its `draws` since the last one, and its state after them."""
        arrays = {name: Variable((name,), np.ravel(value)) for name, value in _arrays(snapshot).items()}
        shapes = {name: list(value.shape) for name, value in _arrays(snapshot).items()}
        state = Node(
            attrs={
                "shapes": json.dumps(shapes),
                "generators": json.dumps([_plain(state) for state in snapshot["generators"]]),
                "seconds": float(seconds),
            },
            variables={name: variable for name, variable in arrays.items() if variable.data.size},
        )
        fields = draws._asdict()
        saved = {
            name: Variable(("draw", "obs")[: np.ndim(fields[name])], fields[name])
            for name in _DRAWS
            if name != "allocations" or len(fields[name])
        }
        saved["first"] = Variable(("edge",), fields["first"])
        saved["weights"] = Variable(("component",), fields["weights"])
        saved["theta"] = Variable(("parameter", "component"), fields["theta"])
        keep = {name: variable for name, variable in saved.items() if variable.data.size}
        node = Node(groups={"draws": Node(variables=keep), "state": state})
        write_tree(self.path / f"chain-{chain}.{len(self.segments(chain)):06d}.h5", node)

    def last(self, chain: int) -> tuple[dict[str, Any], float] | None:
        """Return the state after the last segment of a chain and its seconds so far, or None for a new chain."""
        segments = self.segments(chain)
        if not segments:
            return None
        state = read(segments[-1]).groups["state"]
        shapes = json.loads(str(state.attrs["shapes"]))
        snapshot: dict[str, Any] = {
            name: np.reshape(state[name] if name in state.variables else np.empty(0), shape)
            for name, shape in shapes.items()
        }
        snapshot["generators"] = [_lively(text) for text in json.loads(str(state.attrs["generators"]))]
        return snapshot, float(state.attrs["seconds"])  # type: ignore[arg-type]  # a number, as written


def _arrays(snapshot: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    return {name: value for name, value in snapshot.items() if isinstance(value, np.ndarray)}


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


@dataclass(frozen=True)
class Finished:
    """What a finished chains file holds beside the draws.

    Parameters
    ----------
    chains : sequence of int
        Chain ids.
    seconds : sequence of float
        Wall seconds of sampling of each chain.
    parameters : tuple of str
        Names of the components' parameters.
    observed : (n,) array
        The released values.
    constants : mapping of str to float
        What goes to `constant_data`.
    attrs : mapping
        Root attributes.
    """

    chains: Sequence[int]
    seconds: Sequence[float]
    parameters: tuple[str, ...]
    observed: NDArray[np.float64]
    constants: Mapping[str, float]
    attrs: Mapping[str, h5.Attribute]


def write_chains(path: str | Path, workspace: Workspace, finished: Finished, *, force: bool = False) -> None:
    """Write the chains file from the segments of a finished run; memory does not grow with the draws.

    Raises
    ------
    UsageError, DataError
        As `dpmix.store.h5.create`.
    """
    sizes = {chain: _sizes(workspace.segments(chain)) for chain in finished.chains}
    draws = min(sum(size for size, _ in sizes[chain]) for chain in finished.chains)
    width = max(width for chain in finished.chains for _, width in sizes[chain])
    chains = len(finished.chains)
    with h5.create(path, force=force) as root:
        root.set_attrs(finished.attrs)
        posterior, stats = root.group("posterior"), root.group("sample_stats")
        for group in (posterior, stats):
            group.coordinate("chain", np.asarray(finished.chains, dtype=np.int64))
            group.coordinate("draw", draws)
        posterior.coordinate("component", width)
        targets: dict[str, h5.Dataset] = {}
        for group, kinds in ((posterior, _SCALARS), (stats, _STATS)):
            for name, dtype in kinds.items():
                targets[name] = group.dataset(name, dims=("chain", "draw"), dtype=dtype)
        rows = max(1, min(draws, 65536 // max(1, width)))
        for name in ("weights", *finished.parameters):
            dims = ("chain", "draw", "component")
            targets[name] = posterior.dataset(
                name, dims=dims, dtype=np.float64, compression=1, chunks=(1, rows, width)
            )
        with h5.reading(workspace.segments(finished.chains[0])[0]) as segment:
            kept = segment.group("draws")
            if "allocations" in kept:
                kind = kept["allocations"][:1].dtype
                n = len(finished.observed)
                posterior.coordinate("obs", n)
                targets["allocations"] = posterior.dataset(
                    "allocations",
                    dims=("chain", "draw", "obs"),
                    dtype=kind,
                    compression=1,
                    chunks=(1, max(1, min(draws, 131072 // n)), n),
                )
        for row in range(chains):
            _copy(workspace.segments(finished.chains[row]), targets, row, finished.parameters, width)
        observed = root.group("observed_data")
        observed.coordinate("obs", len(finished.observed))
        observed.dataset("z", finished.observed, ("obs",))
        constants = root.group("constant_data")
        constants.coordinate("chain", np.asarray(finished.chains, dtype=np.int64))
        constants.dataset("seconds", np.asarray(finished.seconds, dtype=np.float64), ("chain",))
        for name, value in finished.constants.items():
            constants.dataset(name, np.float64(value))


def _sizes(segments: Sequence[Path]) -> list[tuple[int, int]]:
    """Return draws and largest number of components of each segment."""
    found = []
    for path in segments:
        with h5.reading(path) as root:
            kept = root.group("draws")
            counts = kept["n_clusters"][()] if "n_clusters" in kept else np.zeros(0, dtype=int)
        found.append((len(counts), int(counts.max(initial=1))))
    return found


def _copy(
    segments: Sequence[Path], targets: Mapping[str, h5.Dataset], row: int, parameters: tuple[str, ...], width: int
) -> None:
    """Copy the draws of one chain into row `row` of the datasets."""
    at = 0
    for path in segments:
        with h5.reading(path) as root:
            kept = root.group("draws")
            if "n_clusters" not in kept:
                continue
            first = kept["first"][()]
            size = len(first) - 1
            for name in targets:
                if name in kept and name not in ("weights", "allocations"):
                    targets[name][row, at : at + size] = kept[name][()]
            step = max(1, min(_ROWS * 64 // width, size)) if "allocations" not in targets else _ROWS
            for low in range(0, size, step):
                high = min(low + step, size)
                start, stop = int(first[low]), int(first[high])
                mask = np.arange(width) < np.diff(first[low : high + 1])[:, None]
                values = {"weights": kept["weights"][start:stop]}
                theta = kept["theta"][:, start:stop]
                values.update(zip(parameters, theta, strict=True))
                for name, flat in values.items():
                    table = np.full(mask.shape, np.nan)
                    table[mask] = flat
                    targets[name][row, at + low : at + high] = table
                if "allocations" in targets:
                    targets["allocations"][row, at + low : at + high] = kept["allocations"][low:high]
            at += size
