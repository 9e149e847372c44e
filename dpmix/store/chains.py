"""The finished chains file, put together from the segments of a run, a few draws at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.store import h5
from dpmix.store.atomic import publish
from dpmix.store.workspace import Workspace

__all__ = ["Finished", "write_chains"]

_SCALARS = {"n_clusters": np.int32, "concentration": np.float64}
_STATS = {"acceptance_rate": np.float64, "log_likelihood": np.float64}
COLUMNS = ("column", "column2")  # dimensions of vectors and matrices over the columns of the data
_CELLS = 1 << 16  # numbers of one table in a chunk
_LABELS = 1 << 17


@dataclass(frozen=True)
class Finished:
    """What a finished chains file holds beside the draws.

    Parameters
    ----------
    chains : sequence of int
        Chain ids.
    draws : int
        Saved draws of each.
    seconds : sequence of float
        Wall seconds of sampling of each chain.
    parameters : mapping of str to tuple of int
        Names and shapes of the components' parameters.
    observed : array
        The released values.
    dims : tuple of str
        Names of its dimensions: obs, column, released.
    constants : mapping of str to number or array
        What goes to `constant_data`: numbers, vectors over the columns, and matrices.
    attrs : mapping
        Root attributes.
    """

    chains: Sequence[int]
    draws: int
    seconds: Sequence[float]
    parameters: Mapping[str, tuple[int, ...]]
    observed: NDArray[np.float64]
    dims: tuple[str, ...]
    constants: Mapping[str, float | NDArray[np.float64]]
    attrs: Mapping[str, h5.Attribute]


def write_chains(
    path: str | Path,
    workspace: Workspace,
    finished: Finished,
    *,
    force: bool = False,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Write the chains file from the segments of a finished run; memory does not grow with the draws.

    The file is put together in the workspace, and gets its name in one step.

    Parameters
    ----------
    path : path
        The chains file, in the directory of the workspace.
    workspace : Workspace
    finished : Finished
    force : bool
        Whether to overwrite.
    check : callable
        Called between pieces of work; may raise to break it off.

    Raises
    ------
    UsageError
        When the file exists and `force` is not given.
    DataError
        When the file cannot be written, or draws are missing.
    """
    width = max(_width(workspace, chain, finished.draws) for chain in finished.chains)
    with h5.work(workspace.assembled) as root:
        root.set_attrs(finished.attrs)
        targets = _tables(root, finished, width, _label_type(workspace, finished.chains[0]))
        for row, chain in enumerate(finished.chains):
            at = 0
            for segment in workspace.segments(chain):
                at = _copy(segment, targets, row, at, finished.parameters, width, check)
        observed = root.group("observed_data")
        for dim, size in zip(finished.dims, finished.observed.shape, strict=True):
            observed.coordinate(dim, size)
        observed.dataset("z", finished.observed, finished.dims)
        constants = root.group("constant_data")
        constants.coordinate("chain", np.asarray(finished.chains, dtype=np.int64))
        constants.dataset("seconds", np.asarray(finished.seconds, dtype=np.float64), ("chain",))
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in finished.constants.items()}
        _columns(constants, [value.shape for value in arrays.values()])
        for name, value in arrays.items():
            constants.dataset(name, value, COLUMNS[: value.ndim])
    check()
    publish(workspace.assembled, path, force=force)


def _columns(group: h5.Group, shapes: Iterable[tuple[int, ...]]) -> None:
    """Make the dimensions over columns that vectors and matrices of these shapes need."""
    sizes = {dim: size for shape in shapes for dim, size in zip(COLUMNS, shape, strict=False)}
    for dim, size in sizes.items():
        group.coordinate(dim, size)


def _width(workspace: Workspace, chain: int, draws: int) -> int:
    """Return the largest number of components of a chain, and check that its draws are all there."""
    found, width = 0, 1
    for path in workspace.segments(chain):
        with h5.reading(path) as root:
            counts = root.group("draws")["n_clusters"][()]
        found += len(counts)
        width = max(width, int(counts.max()))
    if found != draws:
        raise DataError(
            f"{workspace.path} has {found} of {draws} draws of chain {chain}; start over with --force"
        )
    return width


def _label_type(workspace: Workspace, chain: int) -> np.dtype[np.signedinteger] | None:
    """Return the type of allocations, None where they are not kept."""
    with h5.reading(workspace.segments(chain)[0]) as root:
        kept = root.group("draws")
        return kept["allocations"][:1].dtype if "allocations" in kept else None


def _tables(
    root: h5.Group, finished: Finished, width: int, labels: np.dtype[np.signedinteger] | None
) -> dict[str, h5.Dataset]:
    """Make the datasets over chains and draws."""
    posterior, stats = root.group("posterior"), root.group("sample_stats")
    for group in (posterior, stats):
        group.coordinate("chain", np.asarray(finished.chains, dtype=np.int64))
        group.coordinate("draw", finished.draws)
    posterior.coordinate("component", width)
    tables: dict[str, h5.Dataset] = {}
    for group, kinds in ((posterior, _SCALARS), (stats, _STATS)):
        for name, dtype in kinds.items():
            tables[name] = group.dataset(name, dims=("chain", "draw"), dtype=dtype)
    rows = max(1, min(finished.draws, _CELLS // width))
    _columns(posterior, finished.parameters.values())
    for name, shape in {"weights": (), **finished.parameters}.items():
        tables[name] = posterior.dataset(
            name,
            dims=("chain", "draw", "component", *COLUMNS[: len(shape)]),
            dtype=np.float64,
            compression=1,
            chunks=(1, rows, width, *shape),
        )
    if labels is not None:
        n = len(finished.observed)
        posterior.coordinate("obs", n)
        tables["allocations"] = posterior.dataset(
            "allocations",
            dims=("chain", "draw", "obs"),
            dtype=labels,
            compression=1,
            chunks=(1, max(1, min(finished.draws, _LABELS // n)), n),
        )
    return tables


def _copy(
    path: Path,
    tables: Mapping[str, h5.Dataset],
    row: int,
    at: int,
    parameters: Mapping[str, tuple[int, ...]],
    width: int,
    check: Callable[[], None],
) -> int:
    """Copy the draws of a segment to a row of the tables, from draw `at` on; return the draw after."""
    with h5.reading(path) as root:
        kept = root.group("draws")
        first = kept["first"][()]
        size = len(first) - 1
        for name in (*_SCALARS, *_STATS):
            tables[name][row, at : at + size] = kept[name][()]
        step = max(1, _CELLS // width)
        for low in range(0, size, step):
            check()
            high = min(low + step, size)
            start, stop = int(first[low]), int(first[high])
            mask = np.arange(width) < np.diff(first[low : high + 1])[:, None]
            values = {"weights": kept["weights"][start:stop]}
            theta, entry = kept["theta"][:, start:stop], 0
            for name, shape in parameters.items():
                size_of = math.prod(shape)
                values[name] = theta[entry : entry + size_of].T.reshape(-1, *shape)
                entry += size_of
            for name, flat in values.items():
                table = np.full((*mask.shape, *flat.shape[1:]), np.nan)
                table[mask] = flat
                tables[name][row, at + low : at + high] = table
        if "allocations" in tables:
            step = max(1, _LABELS // kept["allocations"].shape[1])
            for low in range(0, size, step):
                check()
                high = min(low + step, size)
                tables["allocations"][row, at + low : at + high] = kept["allocations"][low:high]
    return at + size
