"""The finished chains file, put together from the segments of a run, a few draws at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.run.predictive_groups import Predict, write_predictive
from dpmix.run.record_quantities import Derive, fill_recorded
from dpmix.run.workspace import Workspace
from dpmix.store import h5
from dpmix.store.atomic import publish

__all__ = ["COLUMNS", "Content", "Finished", "Tables", "columns_of_shapes", "write_chains"]

COLUMNS = ("column", "column2")  # dimensions of vectors and matrices over the columns of the data
Tables = Mapping[str, h5.Dataset]


class Content(Protocol):
    """What the draws of a model are in a chains file: `store.ragged` for mixtures, else `store.named`."""

    def tables(self, root: h5.Group, segments: Sequence[Path], finished: Finished) -> Tables:
        """Make `/posterior` and `/sample_stats` with their datasets over (chain, draw, ..).

        Parameters
        ----------
        root : Group
            Of the new file.
        segments : sequence of Path
            The segments of all chains.
        finished : Finished
        """

    def copy(self, segment: h5.Group, tables: Tables, row: int, at: int, check: Callable[[], None]) -> None:
        """Copy the draws of a segment to a row of the tables, from draw `at` on."""


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
    content : Content
        What the draws are.
    observed : array
        The released values.
    dims : tuple of str
        Names of its dimensions: obs, column, released.
    constants : mapping of str to number or array
        What goes to `constant_data`: numbers, vectors over the columns, and matrices.
    attrs : mapping
        Root attributes.
    derive : callable, optional
        Computes the quantities of a record that `content` has made room for (`dpmix.run.record_quantities`).
    prior : mapping of str to array (draws, ..)
        Draws of parameters from the prior, with the dimensions of those in `/posterior`; may be empty.
    predict : callable, optional
        Computes replicates of the release and log likelihoods of its records (`dpmix.run.predictive_groups`).
    edges : array, optional
        Of a tally, whose counts `observed` then holds: all edges of its cells.
    """

    chains: Sequence[int]
    draws: int
    seconds: Sequence[float]
    content: Content
    observed: NDArray[np.float64]
    dims: tuple[str, ...]
    constants: Mapping[str, float | NDArray[np.float64]]
    attrs: Mapping[str, h5.Attribute]
    derive: Derive | None = None
    prior: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    predict: Predict | None = None
    edges: NDArray[np.float64] | None = None


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
    segments = [workspace.segments(chain) for chain in finished.chains]
    sizes = [[_draws(segment) for segment in of_chain] for of_chain in segments]
    for chain, counts in zip(finished.chains, sizes, strict=True):
        if sum(counts) != finished.draws:
            raise DataError(
                f"{workspace.path} has {sum(counts)} of {finished.draws} draws of chain {chain}; "
                "start over with --force"
            )
    with h5.work(workspace.assembled) as root:
        root.set_attrs(finished.attrs)
        everything = [segment for of_chain in segments for segment in of_chain]
        tables = finished.content.tables(root, everything, finished)
        for row, (of_chain, counts) in enumerate(zip(segments, sizes, strict=True)):
            at = 0
            for segment, size in zip(of_chain, counts, strict=True):
                with h5.reading(segment) as kept:
                    finished.content.copy(kept.group("draws"), tables, row, at, check)
                at += size
        observed = root.group("observed_data")
        for dim, size in zip(finished.dims, finished.observed.shape, strict=True):
            observed.coordinate(dim, size)
        if finished.edges is None:
            observed.dataset("z", finished.observed, finished.dims)
        else:
            observed.coordinate("edge", len(finished.edges))
            observed.dataset("counts", finished.observed.astype(np.int64), finished.dims)
            observed.dataset("edges", finished.edges, ("edge",))
        constants = root.group("constant_data")
        constants.coordinate("chain", np.asarray(finished.chains, dtype=np.int64))
        constants.dataset("seconds", np.asarray(finished.seconds, dtype=np.float64), ("chain",))
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in finished.constants.items()}
        columns_of_shapes(constants, [value.shape for value in arrays.values()])
        for name, value in arrays.items():
            constants.dataset(name, value, COLUMNS[: value.ndim])
        if finished.prior:
            _write_prior(root, tables, finished.prior)
        if finished.derive is not None:
            check()
            root.flush()  # what there is so far is then a whole file, for whoever reads it
            fill_recorded(root.group("posterior"), finished.derive(workspace.assembled, check))
        if finished.predict is not None:
            check()
            root.flush()
            write_predictive(root, finished.predict(workspace.assembled, check))
    check()
    publish(workspace.assembled, path, force=force)


def _write_prior(root: h5.Group, tables: Tables, draws: Mapping[str, NDArray[np.float64]]) -> None:
    """Write `/prior`: one chain of draws of parameters that have the same names in `/posterior`."""
    prior, posterior = root.group("prior"), root.group("posterior")
    prior.coordinate("chain", 1)
    prior.coordinate("draw", len(next(iter(draws.values()))))
    dims = {name: tables[name].dims[2:] for name in draws}
    for dim in dict.fromkeys(dim for own in dims.values() for dim in own):
        prior.coordinate(dim, posterior[dim][()])
    for name, values in draws.items():
        prior.dataset(name, values[None], ("chain", "draw", *dims[name]), compression=1)


def columns_of_shapes(group: h5.Group, shapes: Iterable[tuple[int, ...]]) -> None:
    """Make the dimensions over columns that vectors and matrices of these shapes need."""
    sizes = {dim: size for shape in shapes for dim, size in zip(COLUMNS, shape, strict=False)}
    for dim, size in sizes.items():
        if dim not in group:
            group.coordinate(dim, size)


def _draws(segment: Path) -> int:
    """Count the draws of a segment."""
    with h5.reading(segment) as root:
        return int(root.group("draws")["acceptance_rate"].shape[0])
