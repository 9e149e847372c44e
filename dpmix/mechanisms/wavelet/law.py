"""The law of a record's Haar coefficients with Laplace noise (methods, section 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field, field_validator

from dpmix.laws.additive import draw_noise, mean_of_laplace
from dpmix.laws.cell_laws import CellsLaw
from dpmix.laws.law_base import (
    EstimatedMoments,
    Floats,
    Ints,
    Labels,
    Observation,
    OneScale,
    Says,
    Whole,
    each_of,
    moments_of_cells,
    moments_of_records,
    of_scale,
)
from dpmix.laws.transitions import TableLikelihood
from dpmix.mechanisms.wavelet.section import WaveletMechanism
from dpmix.numerics.equal_cells import cell_of
from dpmix.spec.capabilities import counted

MOST_LEVELS = 24
_DRAWS = 40_000
_PIECE = 4_000


class WaveletLaw(CellsLaw):
    """2^(J+1) - 1 Haar coefficients of a record, in (j, k) order, each with Laplace noise of scale s."""

    capabilities = WaveletMechanism
    unpictured = "noisy wavelet coefficients"
    levels: Annotated[Whole, Field(ge=0), Says("does not state its levels, a whole number of at least 0")]
    scale: OneScale
    column: str = "value"

    @field_validator("levels")
    @classmethod
    def _not_too_many(cls, value: int) -> int:
        if value > MOST_LEVELS:
            raise ValueError(f"states more than {MOST_LEVELS} levels")
        return value

    @property
    def cells(self) -> int:
        """Number of the finest cells."""
        return int(2 ** (self.levels + 1))

    @property
    def data_column(self) -> str:
        """Name of the column."""
        return self.column

    def width(self, columns: int) -> int:
        """Return the number of coefficients."""
        return self.cells - 1

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say whether there are other coefficients than the levels give."""
        if values.shape[1] == self.width(1):
            return None
        return (
            f"has {counted(values.shape[1], 'column')}, but a wavelet release of levels {self.levels} has "
            f"{self.width(1)}: one for each coefficient (j, k)"
        )

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return the numbers of rows of coefficients; see `Law`."""
        from dpmix.mechanisms.wavelet.channel import wavelet_cells

        channel = wavelet_cells(values, self.edges(), self.scale[0])
        return Observation(
            np.arange(len(values), dtype=np.float64), channel, values, ("obs", "column"), self.scale[0]
        )

    def basis(self) -> Floats:
        """Return the Haar coefficients of each dyadic cell, in (j, k) order; see `Law`."""
        return haar(np.arange(self.cells), self.levels)

    def draw(self, latent: Floats, scale: float | Floats, rng: Generator) -> Floats:
        """Draw noisy coefficients (n, 2^(J+1) - 1); see `Law`."""
        rows = self.basis()[cell_of(latent, self.edges())]
        return rows + draw_noise("laplace", self.scale[0], rows.shape, rng)

    def draw_mean_noise(self, n: int, size: int, rng: Generator) -> Floats:
        """Draw means of Laplace noise; see `Law`."""
        return mean_of_laplace(n, self.scale[0], size, rng)

    def cell_likelihood(self, values: Floats, scale: float) -> TableLikelihood:
        """Return the densities of coefficients given each of the finest cells, which are exact; see `Law`."""
        heights, own = self.basis(), self.scale[0]
        logs = np.empty((len(values), len(heights)))
        for cell, height in enumerate(heights):
            logs[:, cell] = -np.abs(values - height).sum(axis=1) / own
        logs -= heights.shape[1] * math.log(2.0 * own)
        return TableLikelihood.of_logs(self.edges()[1:-1], logs)

    def information(self, places: Floats, weights: Floats, shares: Floats, n: int) -> Floats:
        """Return the information by that about the masses of the finest cells; see `Law`."""
        finest = cell_of(places.ravel(), self.edges()).reshape(places.shape)
        spread = np.zeros((self.cells, len(shares)))
        for k in range(places.shape[1]):
            np.add.at(spread, (finest[:, k], np.arange(len(shares))), weights[k])
        return np.asarray(n * (spread.T @ self._information_of_one(spread @ shares) @ spread))

    def _information_of_one(self, shares: Floats) -> Floats:
        """Return the information about the masses of the finest cells, of one record.

        Averages over drawn coefficients, always the same ones, of E L L'/(p'L)^2, L the densities by cell.
        """
        size, scale = self.cells, self.scale[0]
        waves = self.basis().T
        rng = np.random.default_rng(13)
        total = np.zeros((size, size))
        shares = np.maximum(shares, 0.0) / shares.sum()
        for _ in range(_DRAWS // _PIECE):
            cells = rng.choice(size, _PIECE, p=shares)
            z = waves[:, cells].T + rng.laplace(0.0, scale, (_PIECE, size - 1))
            logs = np.zeros((_PIECE, size))
            place = 0
            for j in range(self.levels + 1):
                length = size >> (j + 1)
                height = 2.0 ** (0.5 * j)
                own = z[:, place : place + 2**j]
                still = np.abs(own)
                up, down = (still - np.abs(own - height)) / scale, (still - np.abs(own + height)) / scale
                logs += np.repeat(np.stack([up, down], axis=2).reshape(_PIECE, -1), length, axis=1)
                place += 2**j
            likely = np.exp(logs - logs.max(axis=1, keepdims=True))
            likely /= (likely @ shares)[:, None]
            total += likely.T @ likely
        return np.asarray(total / _DRAWS)

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        return (
            f"{each_of(n).capitalize()} was released on its own as its Haar wavelet coefficients up to level "
            f"{self.levels}, with Laplace noise{of_scale(self.scale)} added to each of them."
        )

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return the moments by y and y^2, averaged over the finest cells, as sums of Haar coefficients."""
        first, second = moments_of_cells(self.cells)

        def estimate(f: Floats) -> Floats:
            total = np.full(len(values), float(np.mean(f)))
            place = 0
            for j in range(self.levels + 1):
                halves = f.reshape(2**j, 2, -1).sum(axis=2)
                loadings = 2.0 ** (0.5 * j) * (halves[:, 0] - halves[:, 1]) / self.cells
                total += values[:, place : place + 2**j] @ loadings
                place += 2**j
            return total

        lo, hi = self.domain[0] if pair is None else pair
        return moments_of_records(estimate(first), estimate(second)).moved(lo, hi - lo)


def haar(cells: Ints, levels: int) -> Floats:
    """Return the Haar coefficients (n, 2^(levels+1) - 1), in (j, k) order, of dyadic cells (n,) from 0 on."""
    found = np.zeros((len(cells), 2 ** (levels + 1) - 1))
    rows = np.arange(len(cells))
    for j in range(levels + 1):
        halves = cells >> (levels - j)
        height = math.sqrt(2.0**j)
        found[rows, 2**j - 1 + (halves >> 1)] = np.where(halves & 1, -height, height)
    return found


LAW = WaveletLaw
