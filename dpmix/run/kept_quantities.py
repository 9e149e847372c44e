"""What `fit` keeps beside its draws: quantities of a record, and groups that ArviZ knows.

`record_mean`, `record_sd` and `record_quantile` (over `quantile`) of the random density drawn for each saved
state; over `column` too where there are several. `mean` there is that of each component.

The groups are `posterior_predictive` and `log_likelihood`. Each has the variable `z`, as `observed_data` has
(`counts` in fits to a tally), over chain, draw and what that has: the coordinate `draw` holds the numbers of
the saved states that it is of, evenly spaced. Log likelihoods are over records alone; of more than 5,000 they
are `counts` over public cells, which the group's attributes tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.store import h5

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats

NAMES = ("record_mean", "record_sd", "record_quantile")
LEVEL = "quantile"


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

    def quantiles_of(self, number: int) -> dict[float, Floats]:
        """Return the quantiles (C, D) of one column by level."""
        return {level: self.quantile[:, :, number, i] for i, level in enumerate(self.levels)}


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


# The groups that ArviZ knows


NAME = "z"


@dataclass(frozen=True)
class Predictive:
    """One group.

    Parameters
    ----------
    group : str
        Its name.
    chains, states : int64 arrays
        Chain ids, and numbers of the saved states.
    values : float32 array (chains, states, ..)
        Or int64, of counts.
    cells : mapping, optional
        Where the values are of public cells: the ends of the inner ones and their width.
    """

    group: str
    chains: NDArray[np.int64]
    states: NDArray[np.int64]
    values: NDArray[np.float32] | NDArray[np.int64]
    cells: Mapping[str, float] | None = None


Predict = Callable[[Path, Callable[[], None]], Sequence[Predictive]]
"""Computes the groups from an unfinished chains file; calls its second argument between pieces of work."""


def write_predictive(root: h5.Group, groups: Sequence[Predictive]) -> None:
    """Add groups to an unfinished chains file."""
    data = root.group("observed_data")
    name = NAME if NAME in data else "counts"
    dims = data[name].dims
    for found in groups:
        group = root.group(found.group)
        group.coordinate("chain", found.chains)
        group.coordinate("draw", found.states)
        if found.cells is not None and name == NAME:  # of values
            group.set_attrs(found.cells)
            group.coordinate("cell", found.values.shape[2])
            group.dataset("counts", found.values, ("chain", "draw", "cell"), compression=1)
            continue
        own = dims[: found.values.ndim - 2]
        for dim in own:
            group.coordinate(dim, data[dim][()])
        group.dataset(name, found.values, ("chain", "draw", *own), compression=1)


def read_log_likelihood(rows: Sequence[tuple[Path, int]]) -> NDArray[np.float64] | None:
    """Read the log likelihoods of chains in rows of files, (chains, states, n); None where one has none.

    Chains of files that keep different numbers of states give as many as the one with the fewest.

    Raises
    ------
    DataError
        When they are not as `dpmix fit` wrote them.
    """
    parts = []
    for path, row in rows:
        with h5.reading(path) as root:
            if "log_likelihood" not in root or NAME not in root.group("log_likelihood"):
                return None
            table = root.group("log_likelihood")[NAME]
            if len(table.shape) != 3 or row >= table.shape[0]:
                raise DataError(f"{path} holds log likelihoods that are not as `dpmix fit` wrote them")
            parts.append(table.numbers((row,)))
    chosen = _evenly(parts)
    if len({part.shape for part in chosen}) > 1 or not len(chosen[0]):
        raise DataError(f"{rows[0][0]} and other files hold log likelihoods of different records")
    return np.stack(chosen)


def read_totals(
    rows: Sequence[tuple[Path, int]], draws: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Read the states at which log likelihoods are kept, and their sums; None where one has none.

    Both (chains, states), of chains with so many draws; those of files that keep different numbers of states
    give as many as the one with the fewest.

    Raises
    ------
    DataError
        When they are not as `dpmix fit` wrote them.
    """
    states, sums = [], []
    for path, row in rows:
        with h5.reading(path) as root:
            if "log_likelihood" not in root:
                return None
            group = root.group("log_likelihood")
            name = next((name for name in (NAME, "counts") if name in group), None)
            if name is None:
                return None
            table, at = group[name], np.asarray(group["draw"][()], dtype=np.int64)
            good = len(table.shape) == 3 and row < table.shape[0] and at.shape == (table.shape[1],)
            if not good or at.size == 0 or at.min() < 0 or at.max() >= draws:
                raise DataError(f"{path} holds log likelihoods that are not as `dpmix fit` wrote them")
            states.append(at)
            sums.append(table.numbers((row,)).sum(axis=1))
    return np.stack(_evenly(states)), np.stack(_evenly(sums))


def _evenly(parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return of each as many entries, evenly spaced, as the one with the fewest has."""
    fewest = min(map(len, parts))
    return [part[np.linspace(0, len(part) - 1, fewest).round().astype(int)] for part in parts]


# Which records a stated subsample has


def subsample_of(n: int, wanted: int) -> NDArray[np.int64]:
    """Return the places of so many of n records, all of them where there are no more.

    The same in all chains and processes: picked once and for all, whatever the seed and the values.
    """
    if wanted >= n:
        return np.arange(n, dtype=np.int64)
    return np.sort(np.random.default_rng(n).choice(n, wanted, replace=False)).astype(np.int64)
