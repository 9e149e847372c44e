"""Draws of parametric models in a chains file: named arrays of one shape each, with their own dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmix.run.chains_writer import Finished, Tables
from dpmix.store import h5

__all__ = ["Named"]

_STATS = ("acceptance_rate", "log_likelihood")
_NUMBERS = 1 << 16  # of one dataset in a chunk


class Described(Protocol):
    """What is said of a parameter; see `dpmix.models.model_protocols.Parameter`."""

    @property
    def name(self) -> str:
        """Its dataset."""

    @property
    def dims(self) -> tuple[str, ...]:
        """Its own dimensions."""

    @property
    def role(self) -> str:
        """How it is summarized."""

    @property
    def title(self) -> str:
        """What summaries call it; empty for its name."""

    @property
    def column(self) -> str:
        """The column that it is about; may be empty."""


@dataclass(frozen=True)
class Named:
    """Draws of a parametric model.

    Parameters
    ----------
    parameters : sequence of Described
        What each draw consists of. Role, title and column go into attributes of the datasets.
    coords : mapping of str to array
        Coordinates, numbers or text, of the parameters' own dimensions; no dimension has the name of a
        parameter.
    statistics : tuple of str
        Which of acceptance_rate and log_likelihood there are.
    """

    parameters: Sequence[Described]
    coords: Mapping[str, NDArray[Any]]
    statistics: tuple[str, ...] = _STATS

    def tables(self, root: h5.Group, segments: Sequence[Path], finished: Finished) -> Tables:
        """Make the datasets over chains and draws."""
        posterior, stats = root.group("posterior"), root.group("sample_stats")
        for group in (posterior, stats):
            group.coordinate("chain", np.asarray(finished.chains, dtype=np.int64))
            group.coordinate("draw", finished.draws)
        tables: dict[str, h5.Dataset] = {}
        for name in self.statistics:
            tables[name] = stats.dataset(name, dims=("chain", "draw"), dtype=np.float64)
        for dim in dict.fromkeys(dim for parameter in self.parameters for dim in parameter.dims):
            posterior.coordinate(dim, self.coords[dim])
        for parameter in self.parameters:
            shape = tuple(len(self.coords[dim]) for dim in parameter.dims)
            rows = max(1, min(finished.draws, _NUMBERS // max(1, math.prod(shape))))
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
