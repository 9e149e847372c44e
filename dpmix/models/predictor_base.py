"""What predicts the last column of new records from the others, under every draw of a model's parameters.

Reported are the mean over these and an equal-tailed interval.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmix.columns.column_units import Categories
from dpmix.spec.model_section import LINE_GOES_ON

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import ChainSet, NamedChains

_BLOCK = 1 << 17
"""Numbers of a block, about, rows times quantities times draws: few enough for a processor's cache."""
_KNOWN = 1 << 16
"""Rows whose predictions are kept, as of features that take few values."""


@dataclass(frozen=True)
class Input:
    """A column that predictions are made from.

    Parameters
    ----------
    name : str
        Its name, as the release has it; its number from 1 on where the release does not say.
    categories : Categories or None
        What it may hold, and its codes; None for numbers.
    bounds : (float, float) or None
        Public bounds of a number, to which the records behind the release were clamped.
    date : bool
        Whether it holds dates, in days since 1970-01-01.
    """

    name: str
    categories: Categories | None = None
    bounds: tuple[float, float] | None = None
    date: bool = False


class Predictor(ABC):
    """Predictions by the draws of one model.

    Attributes
    ----------
    inputs : tuple of Input
        The columns that a record needs; of a release of groups that of groups is the last.
    columns : tuple of str
        Names of what is predicted: mean and interval of each quantity.
    level : float
        Posterior probability of the intervals.
    what : str
        What is predicted and what the interval is of, in words.
    used : tuple of Stored
        The parameters that predictions are made of.
    new : bool
        Whether intervals are of new records rather than of means.
    outside : str
        What becomes of values beyond the public bounds, in words.
    """

    inputs: tuple[Input, ...]
    columns: tuple[str, ...]
    what: str
    used: tuple[Stored, ...]
    new: bool = False
    outside: str = LINE_GOES_ON

    def __init__(self, level: float, draws: int) -> None:
        self.level = level
        self.draws = draws
        self._known: dict[bytes, Floats] = {}

    @abstractmethod
    def _draws_of(self, rows: Floats, *, new: bool) -> Floats:
        """Return what is predicted under each draw, or drawn of new records: (rows, quantities, draws)."""

    def predict(self, rows: Floats) -> Floats:
        """Return mean and interval of each quantity, shape (rows, 3 times quantities).

        Equal rows are computed once. What is said of a row depends on no other row and on no order.

        Parameters
        ----------
        rows : float64 array (rows, inputs)
            Numbers, and codes of categories.
        """
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        if len(self._known) > _KNOWN:
            self._known.clear()
        found = np.empty((len(distinct), len(self.columns)))
        keys = [row.tobytes() for row in distinct]
        new = [i for i, key in enumerate(keys) if key not in self._known]
        size = max(1, _BLOCK // (len(self.columns) // 3 * self.draws))
        for start in range(0, len(new), size):
            own = new[start : start + size]
            found[own] = self._figures(distinct[own])
        for i, key in enumerate(keys):
            if key in self._known:
                found[i] = self._known[key]
        self._known.update((keys[i], found[i].copy()) for i in new[:_KNOWN])
        return np.asarray(found[place.reshape(-1)])

    def _figures(self, rows: Floats) -> Floats:
        """Return mean, lower and upper end of each quantity."""
        with np.errstate(all="ignore"):  # of numbers so large that nothing can be predicted: the caller looks
            draws = self._draws_of(rows, new=False)
            mean = draws.mean(axis=2)
            if self.new:
                draws = self._draws_of(rows, new=True)
            ends = _interval(draws, self.level)
        return np.stack([mean, *ends], axis=2).reshape(len(draws), -1)


def _interval(draws: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the equal-tailed interval along the last axis, which is put in another order.

    Quantiles are interpolated as numpy does, by two partitions, which take a fifth of the time of its own.
    """
    last = draws.shape[-1] - 1
    lower, upper = ((0.5 * (1.0 + sign * level)) * last for sign in (-1.0, 1.0))
    first, second = int(lower), int(upper)
    draws.partition(first, axis=-1)
    low = _between(draws, first, lower - first)
    rest = draws[..., first:]
    rest.partition(second - first, axis=-1)
    return low, _between(rest, second - first, upper - second)


def _between(parted: Floats, place: int, share: float) -> Floats:
    """Return what is this share of the way from the element in its place to the next greater one."""
    here = parted[..., place].copy()
    above = parted[..., place + 1 :]
    if above.shape[-1] == 0 or share <= 0.0:
        return here
    return np.asarray(here + share * (above.min(axis=-1) - here))


# What predictors are made of


def parameter_of(chains: NamedChains, name: str, dims: int) -> Stored:
    """Return a parameter with so many dimensions, beside that of groups."""
    (found,) = [parameter for parameter in chains.parameters if parameter.name == name]
    if len(found.dims) - bool(found.groups) != dims:
        raise ValueError(name)
    return found


def draws_in_a_row(chains: NamedChains, parameter: Stored) -> Floats:
    """Return draws of a parameter (groups, draws, ..), those of all chains in a row; one group where none."""
    values = chains.read(parameter)
    values = values.reshape(-1, *values.shape[2:])
    return np.moveaxis(values, 1, 0) if parameter.groups else values[None]


def group_input(chains: ChainSet) -> list[Input]:
    """Return the column of groups, where the release is of groups."""
    groups = chains.mechanism.groups or {}
    return [Input(name, Categories(labels)) for name, labels in groups.items()]
