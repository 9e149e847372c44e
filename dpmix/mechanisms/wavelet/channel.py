"""Releases whose density depends on a record's cell alone: the Haar wavelet (methods, sections 2 and 4).

The channel holds the density of every record's release for each of the C cells, scaled to a maximum of 1 a
record. Given y the noise is one look-up, and g a dot product of a record's row and the kernel's masses of the
cells. The end cells reach to the ends of the kernel's support.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import draw_within, fill_masses
from dpmix.kernels.beta.kernel import Beta
from dpmix.kernels.intervals import fill_log_masses
from dpmix.kernels.normal.kernel import NormalNIG
from dpmix.mechanisms.channels.channel_functions import (
    cell_of,
    draw_latent,
    draw_start,
    fill_marginal,
    hides,
    log_constant,
    log_marginal,
    noise_density,
    noise_variance,
)
from dpmix.numerics.jit import njit
from dpmix.numerics.loops import dot

__all__ = ["WaveletCells", "cell_of", "wavelet_cells"]

_SMALLEST = 1e-305  # in place of marginal densities that underflow
_LOWEST = -740.0  # logs of densities beside a row's largest; eps-DP keeps them above -eps


class WaveletCells(NamedTuple):
    """Cells between `edges` (C - 1,) of [lo, hi], in data units.

    density (n, C): of record i's release given the cell, beside the largest of its row; constant: the sum of
    the logs of these largest; start (n,): the cell that a record starts in; spread: mean variance of a record
    given its release under a uniform law, a scale for proposals.
    """

    edges: Any
    density: Any
    constant: float
    start: Any
    spread: float
    lo: float
    hi: float


def wavelet_cells(values: NDArray[np.float64], edges: NDArray[np.float64], scale: float) -> WaveletCells:
    """Return the channel of a Haar wavelet release of cells with these edges, Laplace noise of one scale.

    The released coefficients (n, 2^(J+1) - 1) stand by level j = 0..J and within it by k = 0..2^j - 1, the
    edges (2^(J+1) + 1,) in the units of the data.

    Raises
    ------
    ValueError
        When the number of columns is not 2^(J+1) - 1 for some J >= 0, or not that of the cells less one.
    """
    values = np.asarray(values, dtype=np.float64)
    lo, hi = float(edges[0]), float(edges[-1])
    records, columns = values.shape
    cells = columns + 1
    if columns < 1 or cells & columns:
        raise ValueError(f"a wavelet release has 2^(J+1) - 1 columns, not {columns}")
    if len(edges) != cells + 1:
        raise ValueError(f"{columns} coefficients are of {cells} cells, not of {len(edges) - 1}")
    # a coefficient's log density beside that at 0 counts for the cells below it only
    logs = np.zeros((records, 1))
    first = 0
    while first < columns:
        width = logs.shape[1]
        released = values[:, first : first + width]
        height = math.sqrt(width)  # 2^(j/2)
        below = np.empty((records, 2 * width))
        below[:, 0::2] = logs + (np.abs(released) - np.abs(released - height)) / scale
        below[:, 1::2] = logs + (np.abs(released) - np.abs(released + height)) / scale
        logs = below
        first += width
    top = np.max(logs, axis=1)
    constant = math.fsum(top) - math.fsum(np.abs(values).ravel()) / scale
    constant -= records * columns * math.log(2.0 * scale)
    density = np.exp(np.maximum(logs - top[:, None], _LOWEST))
    finest = values[:, cells // 2 - 1 :]
    largest = np.argmax(np.abs(finest), axis=1)
    start = 2.0 * largest + (finest[np.arange(records), largest] < 0.0)
    share = density / np.sum(density, axis=1, keepdims=True)
    middle = (np.arange(cells) + 0.5) / cells
    variance = share @ middle**2 - (share @ middle) ** 2 + 1.0 / (12.0 * cells * cells)
    spread = float(np.mean(variance)) * (hi - lo) ** 2 if records else (hi - lo) ** 2 / 12.0
    return WaveletCells(edges[1:-1].copy(), np.ascontiguousarray(density), constant, start, spread, lo, hi)


@noise_density.register
def _noise_density(channel: WaveletCells, z, y):
    return channel.density[int(z), cell_of(channel, y)]


@noise_variance.register
def _noise_variance(channel: WaveletCells):
    return channel.spread


@hides.register
def _hides(channel: WaveletCells):
    return True


@log_constant.register
def _log_constant(channel: WaveletCells):
    return channel.constant


def _log_marginal(channel, kernel, z, theta, h):
    row = channel.density[int(z)]
    logs = np.empty(len(row))
    fill_log_masses(kernel, theta, h, channel.edges, logs)
    top = -math.inf
    for c in range(len(row)):
        logs[c] += math.log(row[c])
        top = max(top, logs[c])
    if top == -math.inf:
        return top
    total = 0.0
    for c in range(len(row)):
        total += math.exp(logs[c] - top)
    return top + math.log(total)


def _fill_marginal(channel, kernel, theta, h, z, start, stop, out):
    masses = np.empty(channel.density.shape[1])
    fill_masses(kernel, theta, h, channel.edges, masses)
    for i in range(start, stop):
        out[i - start] = max(dot(channel.density[int(z[i])], masses), _SMALLEST)


def _draw_latent(channel, kernel, rng, z, theta, h):
    row = channel.density[int(z)]
    last = len(row) - 1
    weights = np.empty(last + 1)
    fill_log_masses(kernel, theta, h, channel.edges, weights)
    for c in range(last + 1):
        weights[c] += math.log(row[c])
    top = np.max(weights)
    total = 0.0
    for c in range(last + 1):
        total += math.exp(weights[c] - top)
        weights[c] = total
    u = rng.random() * total
    c = 0
    while c < last and weights[c] <= u:
        c += 1
    low = channel.edges[c - 1] if c > 0 else -math.inf
    high = channel.edges[c] if c < last else math.inf
    return draw_within(kernel, rng, theta, h, low, high)


for _kernel in (NormalNIG, Beta):
    log_marginal.register(_log_marginal, WaveletCells, _kernel)
    fill_marginal.register(_fill_marginal, WaveletCells, _kernel)
    draw_latent.register(_draw_latent, WaveletCells, _kernel)


@njit
def _start_place(channel, rng, z):
    """Draw a point of the record's starting cell: its distances from lo and from hi, in cells, above 0."""
    share = 1.0 - rng.random()
    if share == 1.0:
        share = 0.5
    c = channel.start[int(z)]
    return c + share, len(channel.edges) + 1 - c - share


@draw_start.register
def _draw_start_normal(channel: WaveletCells, kernel: NormalNIG, rng, z):
    below, above = _start_place(channel, rng, z)
    return channel.lo + (channel.hi - channel.lo) * (below / (below + above))


@draw_start.register
def _draw_start_beta(channel: WaveletCells, kernel: Beta, rng, z):
    below, above = _start_place(channel, rng, z)
    return math.log(below / above)
