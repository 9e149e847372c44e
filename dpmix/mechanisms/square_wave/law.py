"""The law of an output near a record's cell (methods, section 13)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Self

import numpy as np
from numpy.random import Generator
from pydantic import Field, model_validator

from dpmix.laws.law_base import (
    EstimatedMoments,
    Floats,
    Ints,
    Labels,
    Law,
    Observation,
    Pair,
    Pictured,
    Ratio,
    Says,
    Scales,
    Whole,
    each_of,
    first,
    fraction_of,
    moments_of_records,
)
from dpmix.laws.transitions import Transition, information_of_outputs
from dpmix.mechanisms.square_wave.section import SquareWaveMechanism
from dpmix.numerics.equal_cells import cell_of, equal_edges

MOST_CELLS = 100_000


class SquareWaveLaw(Law):
    """One of M + 2k outputs for each number of a record, those near its cell r times as likely each."""

    capabilities = SquareWaveMechanism
    clamps = True
    pictured = Pictured(
        "released outputs, noise included",
        "the released outputs at the cells that they stand for, some beyond the bounds: they carry the "
        "mechanism's noise, which is even but for what is near a record",
        "released outputs",
    )
    cells: Annotated[
        Whole, Field(ge=2, le=MOST_CELLS), Says(f"does not state its cells, from 2 to {MOST_CELLS}")
    ]
    reach: Annotated[Whole, Field(ge=0), Says("does not state its reach, a whole number of at least 0")]
    ratio: Ratio
    domain: Annotated[tuple[Pair, ...], Field(min_length=1), Says("does not state its bounds, one pair each")]
    scale: Scales = ()

    @model_validator(mode="after")
    def _near(self) -> Self:
        if 2 * self.reach >= self.cells:
            raise ValueError("states a reach of half its cells or more")
        return self

    @property
    def odds(self) -> float:
        """The ratio r, as the nearest double."""
        return float(fraction_of(self.ratio))

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.cells + 2 * self.reach)

    @property
    def total(self) -> float:
        """W = (2k + 1) r + M - 1, by which weights r and 1 are divided."""
        return (2 * self.reach + 1) * self.odds + (self.cells - 1)

    def disagreement(self, n: int, columns: int) -> str | None:
        """Say whether there are bounds of another number of columns."""
        if len(self.domain) != columns:
            return f"has {len(self.domain)} pairs of bounds for {columns} columns"
        return None

    def edges(self) -> Floats:
        """Return the edges of the cells of the first column, in the units of the data."""
        return equal_edges(self.domain[0], self.cells)

    def of_columns(self, columns: Sequence[int]) -> Self:
        """Return the law of some columns."""
        return self.updated(domain=[list(self.domain[column]) for column in columns])

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say which value is no output."""
        bad = (values != np.floor(values)) | (values < 0) | (values >= self.outputs)
        return first(bad.any(axis=1), f"is no output from 0 to {self.outputs - 1} of a square wave", "record")

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return outputs of one column; see `Law`."""
        from dpmix.mechanisms.square_wave.channel import square_wave

        z = np.ascontiguousarray(values[:, 0])
        channel = square_wave(self.cells, self.reach, self.odds, *self.domain[columns[0]])
        return Observation(z, channel, z, ("obs",), math.nan)

    def draw(self, latent: Floats, scale: float | Floats, rng: Generator) -> Floats:
        """Draw outputs; see `Law`. Of one column, the first."""
        cells = cell_of(latent, equal_edges(self.domain[0], self.cells))
        near = 2 * self.reach + 1
        is_near = rng.random(cells.shape) * self.total < near * self.odds
        close = cells + rng.integers(near, size=cells.shape)
        other = rng.integers(self.cells - 1, size=cells.shape)
        return np.where(is_near, close, np.where(other < cells, other, other + near)).astype(np.float64)

    def transition(self, cells: Floats, edges: Floats, chosen: Ints, scale: float) -> Transition:
        """Return the transition of cells; see `Law`."""
        return WindowTransition(self.cells, self.reach, self.odds, len(cells) - 1, chosen)

    def cell_likelihood(self, values: Floats, scale: float) -> WindowLikelihood:
        """Return what is near each output; see `Law`."""
        return WindowLikelihood(self, values.ravel().astype(np.int64))

    def information(self, places: Floats, weights: Floats, shares: Floats, n: int) -> Floats:
        """Return the information of outputs; see `Law`."""
        lo, hi = self.domain[0]
        near = np.arange(self.outputs)[:, None]
        table = np.zeros((self.outputs, len(places)))
        for k, weight in enumerate(weights):
            at = np.clip(np.floor((places[:, k] - lo) / (hi - lo) * self.cells), 0, self.cells - 1)[None, :]
            table += weight * np.where((near >= at) & (near <= at + 2 * self.reach), self.odds, 1.0)
        return information_of_outputs(table / self.total, shares, n)

    @property
    def blur(self) -> float:
        """Half the width of the cells near an output, one of them at least."""
        lo, hi = self.domain[0]
        return (hi - lo) * max(self.reach, 1) / self.cells

    @property
    def step(self) -> float:
        """Width of a cell."""
        lo, hi = self.domain[0]
        return (hi - lo) / self.cells

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        near = f"one of the {2 * self.reach + 1} around" if self.reach else "that of"
        return (
            f"{each_of(n).capitalize()} was released on its own as one of {self.outputs} outputs of a square "
            f"wave over {self.cells} cells of the domain: {near} its own cell is {self.odds:.4g} times as "
            f"likely {'each ' * bool(self.reach)}as any other."
        )

    def places(self, released: Floats, column: int = 0) -> Floats:
        """Return the middle of the cell that an output stands for, in the units of the data.

        The k first and last outputs stand for cells beyond the bounds.
        """
        low, high = self.domain[column]
        return np.asarray(low + (high - low) * ((released - self.reach + 0.5) / self.cells))

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return the moments by a line and a parabola in the output, right on average for every cell.

        With x = output - k, the sums of 1, x and x^2 over the near outputs i - k, .., i + k of cell i, here
        called x, are K, K i and K (i^2 + k(k + 1)/3), K = 2k + 1. Hence E x = s_1 + g i and
        E x^2 = s_2 + g (i^2 + k(k + 1)/3), with s_p the sum of x^p over all outputs by W and g = (r - 1) K/W.
        They are solved for i and i^2; the means of y and y^2 over a cell are (i + 1/2)/M and
        (i^2 + i + 1/3)/M^2.
        """
        x = values[:, column] - self.reach
        k, m, gain = self.reach, self.cells, (self.odds - 1.0) * (2 * self.reach + 1) / self.total
        ends = np.arange(-k, m + k, dtype=np.float64)
        s1, s2 = (float(np.sum(ends**power)) / self.total for power in (1, 2))
        i = (x - s1) / gain
        square = (x * x - s2) / gain - k * (k + 1) / 3.0
        u = (i + 0.5) / m
        v = (square + i + 1.0 / 3.0) / (m * m)
        lo, hi = self.domain[column] if pair is None else pair
        return moments_of_records(u, v).moved(lo, hi - lo)


class WindowTransition:
    """From masses of cells to outputs: (1 + (r - 1) A_j)/W, A_j the mass near output j.

    A_j is a difference of the distribution function, which for records uniform in their cells is linear
    between the edges of these, so that nothing needs a matrix.

    Parameters
    ----------
    cells : int
        M' of the law, which may be another number than that of the estimate.
    reach : int
        Its k.
    odds : float
        Its r.
    count : int
        Number M of equal cells that records are uniform in.
    chosen : int64 array (B,)
        The outputs.
    """

    def __init__(self, cells: int, reach: int, odds: float, count: int, chosen: Ints) -> None:
        self._gain, self._total = odds - 1.0, (2 * reach + 1) * odds + cells - 1
        self._count, self._chosen = count, chosen
        self._own = np.linspace(0.0, 1.0, count + 1)
        self._edges = np.linspace(0.0, 1.0, cells + 1)
        self._first = np.maximum(chosen - 2 * reach, 0)  # cells of the law near an output, from .. to
        self._last = np.minimum(chosen, cells - 1) + 1

    def forward(self, masses: Floats) -> Floats:
        """Return probabilities; see `Transition`."""
        below = np.interp(self._edges, self._own, np.concatenate([[0.0], np.cumsum(masses)]))
        near = below[self._last] - below[self._first]
        return np.asarray((masses.sum() + self._gain * near) / self._total)

    def backward(self, weights: Floats) -> Floats:
        """Return expected weights; see `Transition`."""
        steps = np.bincount(self._first, weights, len(self._edges))
        steps -= np.bincount(self._last, weights, len(self._edges))
        near = np.cumsum(steps)[:-1]  # over the outputs near each cell of the law
        whole = np.concatenate([[0.0], np.cumsum(near)]) / len(near)
        mean = np.diff(np.interp(self._own, self._edges, whole)) * self._count
        return np.asarray((weights.sum() + self._gain * mean) / self._total)


class WindowLikelihood:
    """Likelihoods of outputs: (1 + (r - 1) A)/W, A the mass of the cells near each.

    Parameters
    ----------
    law : SquareWaveLaw
    outputs : int64 array (n,)
    """

    def __init__(self, law: SquareWaveLaw, outputs: Ints) -> None:
        self.edges = equal_edges(law.domain[0], law.cells)[1:-1]
        self._gain, self._total = law.odds - 1.0, law.total
        self._first = np.maximum(outputs - 2 * law.reach, 0)
        self._last = np.minimum(outputs, law.cells - 1)

    def logs(self, masses: Iterable[Floats]) -> Floats:
        """Return log likelihoods; see `dpmix.laws.transitions.CellLikelihood`."""
        found = []
        for each in masses:
            below = np.concatenate([[0.0], np.cumsum(each[0])])
            near = below[self._last + 1] - below[self._first]
            found.append(np.log((1.0 + self._gain * near) / self._total))
        return np.stack(found)


LAW = SquareWaveLaw
