"""The finished chains file, put together from the segments of a run, a few draws at a time.

What the draws of a model are in it (`Content`): arrays by name of a parametric model; of a mixture scalars,
components, padded with NaN to the largest number of any draw, and allocations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.run.kept_quantities import Derive, Predict, fill_recorded, make_recorded, write_predictive
from dpmix.store import h5
from dpmix.store.atomic import publish

if TYPE_CHECKING:
    from dpmix.run.model_protocols import Parameter
    from dpmix.run.workspace import Workspace

COLUMNS = ("column", "column2")  # dimensions of vectors and matrices over the columns of the data
Tables = Mapping[str, h5.Dataset]


@dataclass(frozen=True, kw_only=True)
class Written:
    """What is written of a fit to its chains file, whatever the chains.

    Parameters
    ----------
    content : Content
        What the draws are.
    observed : array
        The released values.
    dims : tuple of str
        Names of its dimensions: obs, column, released.
    constants : mapping of str to number or array
        What goes to `constant_data`, for summaries: numbers, vectors over the columns, and matrices.
    derive : callable, optional
        Computes the quantities of a record that `content` has made room for (`dpmix.run.kept_quantities`).
    edges : array, optional
        Of a tally, whose counts `observed` then holds: all edges of its cells.
    """

    content: Content
    observed: NDArray[np.float64]
    dims: tuple[str, ...]
    constants: Mapping[str, float | NDArray[np.float64]]
    derive: Derive | None = None
    edges: NDArray[np.float64] | None = None


@dataclass(frozen=True, kw_only=True)
class Finished(Written):
    """What a finished chains file holds beside the draws.

    Parameters
    ----------
    chains : sequence of int
        Chain ids.
    draws : int
        Saved draws of each.
    seconds : sequence of float
        Wall seconds of sampling of each chain.
    attrs : mapping
        Root attributes.
    prior : mapping of str to array (draws, ..)
        Draws of parameters from the prior, with the dimensions of those in `/posterior`; may be empty.
    predict : callable, optional
        Computes replicates of the release and log likelihoods of its records (`dpmix.run.kept_quantities`).
    """

    chains: Sequence[int]
    draws: int
    seconds: Sequence[float]
    attrs: Mapping[str, h5.Attribute]
    prior: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    predict: Predict | None = None

    @classmethod
    def of(cls, written: Written, **more: Any) -> Finished:
        """Return what was known of a fit before, with what else its file holds."""
        return cls(**{each.name: getattr(written, each.name) for each in fields(Written)}, **more)


def write_chains(
    path: str | Path,
    workspace: Workspace,
    finished: Finished,
    *,
    force: bool = False,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Write the chains file from the segments of a finished run; memory does not grow with the draws.

    The file is put together in the workspace, in whose directory it is, and gets its name in one step.
    `check` is called between pieces of work, and may raise to break it off.

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
        posterior, stats = root.group("posterior"), root.group("sample_stats")
        for group in (posterior, stats):
            group.coordinate("chain", np.asarray(finished.chains, dtype=np.int64))
            group.coordinate("draw", finished.draws)
        everything = [segment for of_chain in segments for segment in of_chain]
        tables = finished.content.tables(posterior, stats, everything, finished.draws)
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


# Draws of parametric models in a chains file: named arrays of one shape each, with their own dimensions


_STATS = ("acceptance_rate", "log_likelihood")
_NUMBERS = 1 << 16  # of one dataset in a chunk


@dataclass(frozen=True)
class Named:
    """Draws of a parametric model.

    Parameters
    ----------
    parameters : sequence of Parameter
        What each draw consists of. Role, title and column go into attributes of the datasets.
    coords : mapping of str to array
        Coordinates, numbers or text, of the parameters' own dimensions; no dimension has the name of a
        parameter.
    statistics : tuple of str
        Which of acceptance_rate and log_likelihood there are.
    """

    parameters: Sequence[Parameter]
    coords: Mapping[str, NDArray[Any]]
    statistics: tuple[str, ...] = _STATS

    def tables(self, posterior: h5.Group, stats: h5.Group, segments: Sequence[Path], draws: int) -> Tables:
        """Make the datasets over (chain, draw, ..) of `/posterior` and `/sample_stats` of a new file."""
        tables = {
            name: stats.dataset(name, dims=("chain", "draw"), dtype=np.float64) for name in self.statistics
        }
        for dim in dict.fromkeys(dim for parameter in self.parameters for dim in parameter.dims):
            posterior.coordinate(dim, self.coords[dim])
        for parameter in self.parameters:
            shape = tuple(len(self.coords[dim]) for dim in parameter.dims)
            rows = max(1, min(draws, _NUMBERS // max(1, math.prod(shape))))
            tables[parameter.name] = posterior.dataset(
                parameter.name,
                dims=("chain", "draw", *parameter.dims),
                dtype=np.float64,
                compression=1,
                chunks=(1, rows, *shape),
                attrs={
                    "role": parameter.role,
                    "title": parameter.title or parameter.name,
                    **({"column": parameter.column} if parameter.column else {}),
                },
            )
        return tables

    def copy(self, segment: h5.Group, tables: Tables, row: int, at: int, check: Callable[[], None]) -> None:
        """Copy the draws of a segment to a row of the tables, from draw `at` on."""
        for name, table in tables.items():
            source = segment[name]
            size = source.shape[0]
            step = max(1, _NUMBERS // max(1, math.prod(source.shape[1:])))
            for low in range(0, size, step):
                check()
                high = min(low + step, size)
                table[row, at + low : at + high] = source[low:high]


# Draws of mixtures in a chains file: scalars, components of which each draw has its own number, allocations


_SCALARS = {"n_clusters": np.int32, "concentration": np.float64}
_OWN_STATS = {"acceptance_rate": np.float64, "log_likelihood": np.float64}
_CELLS = 1 << 16  # numbers of one table in a chunk
_LABELS = 1 << 17


@dataclass(frozen=True)
class Components:
    """Draws of a mixture.

    Parameters
    ----------
    parameters : mapping of str to tuple of int
        Names and shapes of the components' parameters.
    kept : int64 array (m,)
        Places of the records that allocations are of.
    levels : tuple of float
        Levels of the quantiles of a record that room is made for, with its mean and sd; none for none of
        them.
    columns : tuple of str
        Names of the columns.
    stats : tuple of str
        More numbers of each draw, kept in `/sample_stats`.
    base : mapping of str to tuple of int
        Names and shapes of location and scale of a learned base measure; empty of others.
    """

    parameters: Mapping[str, tuple[int, ...]]
    kept: NDArray[np.int64]
    levels: tuple[float, ...] = ()
    columns: tuple[str, ...] = ()
    stats: tuple[str, ...] = ()
    base: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def _stats(self) -> dict[str, type[np.float64]]:
        return _OWN_STATS | dict.fromkeys(self.stats, np.float64)

    def tables(self, posterior: h5.Group, stats: h5.Group, segments: Sequence[Path], draws: int) -> Tables:
        """Make those of `Named.tables`, of components as many as any of the segments has."""
        width = max(1, *(_most_components(segment) for segment in segments))
        if self.levels:  # first, as the headlines of whatever lists the variables in their order
            make_recorded(posterior, self.levels, self.columns)
        posterior.coordinate("component", width)
        tables: dict[str, h5.Dataset] = {}
        for group, kinds in ((posterior, _SCALARS), (stats, self._stats)):
            for name, dtype in kinds.items():
                tables[name] = group.dataset(name, dims=("chain", "draw"), dtype=dtype)
        rows = max(1, min(draws, _CELLS // width))
        columns_of_shapes(posterior, [*self.parameters.values(), *self.base.values()])
        for name, shape in self.base.items():
            dims = ("chain", "draw", *COLUMNS[: len(shape)])
            tables[name] = posterior.dataset(name, dims=dims, dtype=np.float64)
        for name, shape in {"weights": (), **self.parameters}.items():
            tables[name] = posterior.dataset(
                name,
                dims=("chain", "draw", "component", *COLUMNS[: len(shape)]),
                dtype=np.float64,
                compression=1,
                chunks=(1, rows, width, *shape),
            )
        labels = _label_type(segments[0])
        if labels is not None:
            m = len(self.kept)
            posterior.coordinate("obs", self.kept)
            tables["allocations"] = posterior.dataset(
                "allocations",
                dims=("chain", "draw", "obs"),
                dtype=labels,
                compression=1,
                chunks=(1, max(1, min(draws, _LABELS // m)), m),
            )
        return tables

    def copy(self, segment: h5.Group, tables: Tables, row: int, at: int, check: Callable[[], None]) -> None:
        """Copy the draws of a segment to a row of the tables, from draw `at` on."""
        width = tables["weights"].shape[2]
        first = segment["first"][()]
        size = len(first) - 1
        for name in (*_SCALARS, *self._stats):
            tables[name][row, at : at + size] = segment[name][()]
        for place, (name, shape) in enumerate(self.base.items()):
            base = segment["base"][()][:, place]
            tables[name][row, at : at + size] = base if shape else base[:, 0]
        step = max(1, _CELLS // width)
        for low in range(0, size, step):
            check()
            high = min(low + step, size)
            start, stop = int(first[low]), int(first[high])
            mask = np.arange(width) < np.diff(first[low : high + 1])[:, None]
            values = {"weights": segment["weights"][start:stop]}
            theta, entry = segment["theta"][:, start:stop], 0
            for name, shape in self.parameters.items():
                size_of = math.prod(shape)
                values[name] = theta[entry : entry + size_of].T.reshape(-1, *shape)
                entry += size_of
            for name, flat in values.items():
                table = np.full((*mask.shape, *flat.shape[1:]), np.nan)
                table[mask] = flat
                tables[name][row, at + low : at + high] = table
        if "allocations" in tables:
            step = max(1, _LABELS // segment["allocations"].shape[1])
            for low in range(0, size, step):
                check()
                high = min(low + step, size)
                tables["allocations"][row, at + low : at + high] = segment["allocations"][low:high]


def _most_components(segment: Path) -> int:
    with h5.reading(segment) as root:
        return int(root.group("draws")["n_clusters"][()].max())


def _label_type(segment: Path) -> np.dtype[np.signedinteger] | None:
    """Return the type of allocations, None where they are not kept."""
    with h5.reading(segment) as root:
        kept = root.group("draws")
        return kept["allocations"][:1].dtype if "allocations" in kept else None


Content = Named | Components
"""What the draws of a model are in a chains file."""
