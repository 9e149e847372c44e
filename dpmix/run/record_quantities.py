"""Quantities of a record that `fit` keeps with the chains of a mixture, first of all in `/posterior`.

`record_mean`, `record_sd` and `record_quantile` (over `quantile`) of the random density drawn for each saved
state; over `column` too where there are several. `mean` there is that of each component.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmix.errors import DataError
from dpmix.run.stored_parameters import Floats
from dpmix.store import h5

__all__ = ["Derive", "Recorded", "RecordedColumn", "fill_recorded", "make_recorded", "read_recorded"]

NAMES = ("record_mean", "record_sd", "record_quantile")
LEVEL = "quantile"


@dataclass(frozen=True)
class RecordedColumn:
    """The quantities of one column: mean, sd (C, D), and quantiles (C, D) by level."""

    mean: Floats
    sd: Floats
    quantiles: Mapping[float, Floats]


@dataclass(frozen=True)
class Recorded:
    """The quantities of all columns.

    Parameters
    ----------
    levels : tuple of float
        Of the quantiles.
    mean, sd : float64 arrays (C, D, columns)
    quantile : float64 array (C, D, columns, levels)
    """

    levels: tuple[float, ...]
    mean: Floats
    sd: Floats
    quantile: Floats

    def of_column(self, number: int) -> RecordedColumn:
        """Return those of one column."""
        by_level = {level: self.quantile[:, :, number, i] for i, level in enumerate(self.levels)}
        return RecordedColumn(self.mean[:, :, number], self.sd[:, :, number], by_level)


Derive = Callable[[Path, Callable[[], None]], Recorded]
"""Computes the quantities from an unfinished chains file; calls its second argument between its blocks."""


def make_recorded(posterior: h5.Group, levels: Sequence[float], columns: Sequence[str]) -> None:
    """Make the datasets, of one column or of several with these names, empty as yet."""
    if len(columns) > 1:
        posterior.coordinate("column", np.asarray(columns))
    posterior.coordinate(LEVEL, np.asarray(levels, dtype=np.float64))
    dims = ("chain", "draw", *(("column",) if len(columns) > 1 else ()))
    for name in NAMES:
        posterior.dataset(name, dims=(*dims, LEVEL) if name == NAMES[2] else dims, dtype=np.float64)


def fill_recorded(posterior: h5.Group, found: Recorded) -> None:
    """Write the quantities into their datasets."""
    for name, values in zip(NAMES, (found.mean, found.sd, found.quantile), strict=True):
        table = posterior[name]
        table[...] = values.reshape(table.shape)


def read_recorded(rows: Sequence[tuple[Path, int]], draws: int, columns: int) -> Recorded | None:
    """Read the quantities of chains in rows of files; None where a file has none, as of earlier versions.

    Raises
    ------
    DataError
        When they are not as `dpmix fit` wrote them.
    """
    levels: tuple[float, ...] = ()
    parts: list[list[Floats]] = []
    for path, row in rows:
        with h5.reading(path) as root:
            posterior = root.group("posterior")
            if not all(name in posterior for name in NAMES):
                return None
            there = tuple(float(level) for level in posterior[LEVEL].numbers())
            if parts and there != levels:
                raise DataError(f"{path} differs from {rows[0][0]} in the levels of {NAMES[2]}")
            levels = there
            shapes = ((draws, columns), (draws, columns), (draws, columns, len(levels)))
            parts.append([])
            for name, shape in zip(NAMES, shapes, strict=True):
                found = posterior[name].numbers((row,))
                if found.size != int(np.prod(shape)) or not np.isfinite(found).all():
                    raise DataError(f"{path} holds a {name} that is not as `dpmix fit` wrote it")
                parts[-1].append(found.reshape(shape))
    mean, sd, quantile = (np.stack(of_chains) for of_chains in zip(*parts, strict=True))
    return Recorded(levels, mean, sd, quantile)
