"""Draws of mixtures in a chains file: scalars, components of which each draw has its own number, allocations.

Components are padded with NaN to the largest number of any draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmix.run.chains_writer import COLUMNS, Finished, Tables, columns_of_shapes
from dpmix.run.record_quantities import make_recorded
from dpmix.store import h5

__all__ = ["Components"]

_SCALARS = {"n_clusters": np.int32, "concentration": np.float64}
_STATS = {"acceptance_rate": np.float64, "log_likelihood": np.float64}
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
        return _STATS | dict.fromkeys(self.stats, np.float64)

    def tables(self, root: h5.Group, segments: Sequence[Path], finished: Finished) -> Tables:
        """Make the datasets over chains and draws."""
        width = max(1, *(_most_components(segment) for segment in segments))
        posterior, stats = root.group("posterior"), root.group("sample_stats")
        for group in (posterior, stats):
            group.coordinate("chain", np.asarray(finished.chains, dtype=np.int64))
            group.coordinate("draw", finished.draws)
        if self.levels:  # first, as the headlines of whatever lists the variables in their order
            make_recorded(posterior, self.levels, self.columns)
        posterior.coordinate("component", width)
        tables: dict[str, h5.Dataset] = {}
        for group, kinds in ((posterior, _SCALARS), (stats, self._stats)):
            for name, dtype in kinds.items():
                tables[name] = group.dataset(name, dims=("chain", "draw"), dtype=dtype)
        rows = max(1, min(finished.draws, _CELLS // width))
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
                chunks=(1, max(1, min(finished.draws, _LABELS // m)), m),
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
            tables[name][row, at : at + size] = segment["base"][()][:, place].reshape(size, *shape)
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
