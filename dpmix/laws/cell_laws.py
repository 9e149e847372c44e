"""Laws of one column of which only equal cells matter: histograms of all records, wavelets of each.

A histogram has its counts with noise, or numbers of draws made of them (methods, section 3). Whole
numbers may fill cells unevenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from pydantic import Field, Strict

from dpmix.laws.law_base import Floats, Law, Observation, OnePair, Says, Whole
from dpmix.numerics.equal_cells import equal_edges, halfway


class CellsLaw(Law):
    """A release that depends on a record through which of equal cells of the public bounds it lies in.

    Where the values of the column are `whole_numbers`, as its curator says beforehand, a cell is what it
    holds of them.
    """

    clamps = True
    cell_name: ClassVar[str] = "cell"
    domain: OnePair
    whole_numbers: Annotated[
        bool, Strict(), Says("does not state whether values are whole numbers, true or false")
    ] = False

    @property
    def cells(self) -> int:
        """Number of the cells."""
        raise NotImplementedError

    def cell_edges(self) -> Floats:
        """Return the edges of the cells, in the units of the data."""
        return equal_edges(self.domain[0], self.cells)

    def edges(self) -> Floats:
        """Return the edges between which a fit takes the records of a cell to lie.

        These are the cells' own. Whole numbers stand for all that rounds to them, so that inner edges are
        halfway between the last one of a cell and the first of the next: of cells of 1.25 from 0 on, 1.5,
        2.5, 3.5, 4.5, 6.5. Where a cell holds none they are the cells' own all the same (`uneven`).
        """
        return self._halfway() if self.whole_numbers and not self.uneven else self.cell_edges()

    @property
    def uneven(self) -> bool:
        """Whether values are whole numbers, and a cell holds none of them."""
        return self.whole_numbers and not (np.diff(self._halfway()) > 0.0).all()

    def _halfway(self) -> Floats:
        return halfway(self.cell_edges())


class HistogramLaw(CellsLaw):
    """A release that depends on the records through their counts in equal bins, in each group if any."""

    cell_name = "bin"
    bins: Annotated[Whole, Field(ge=1), Says("does not state its bins, a whole number of at least 1")]

    @property
    def cells(self) -> int:
        """Number of the bins."""
        return self.bins

    @property
    def noise_scale(self) -> float:
        """Scale of the noise on counts; NaN where draws are released."""
        raise NotImplementedError

    def likelihood(self, values: Floats, n: int) -> Any:
        """Return the log-likelihoods of the numbers of n records in the bins, given what was released.

        With m bins in each of G groups there are G m cells, that of bin j in group g being g m + j
        (`dpmix.mechanisms.channels.count_likelihoods`).
        """
        raise NotImplementedError

    def channel(self, values: Floats, n: int) -> Any:
        """Return the compiled channel of released values (rows, 1) of n records, of one group."""
        raise NotImplementedError

    def draw_from_counts(self, counts: Floats, rng: Generator) -> Floats:
        """Draw what is released of counts (bins,), in floating point: noisy counts, or numbers of draws."""
        raise NotImplementedError

    def covariance(self, shares: Floats, n: int) -> tuple[float, Floats]:
        """Return what the bins' shares are multiplied by in what is released, and its covariance."""
        raise NotImplementedError

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return the numbers of the records; see `Law`."""
        channel, column = self.channel(values, n), values[:, 0]
        return Observation(np.arange(n, dtype=np.float64), channel, column, ("released",), self.noise_scale)
