"""Square-wave releases: output j has probability (1 + (r - 1) A_j)/W (methods, section 13).

A_j is the mass near output j: in the cells j - 2k, .., j of the domain, those that there are, the end
cells reaching to the ends of the kernel's support. So g needs the mass of one interval, and a draw of y falls
into it, below or above, each exactly, with no regard to the cells within. Where many outputs are asked
for, their masses are sums over windows of the cells' masses, made of sums from both ends of blocks as long as
a window, without a difference in which digits would cancel.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.kernels import draw_within, fill_masses
from dpmix.kernels.beta.kernel import Beta
from dpmix.kernels.normal.kernel import NormalNIG
from dpmix.mechanisms.channels.channel_functions import (
    cell_of,
    draw_latent,
    draw_start,
    fill_marginal,
    hides_records,
    log_marginal,
    noise_density,
    noise_variance,
)
from dpmix.numerics.equal_cells import equal_edges
from dpmix.numerics.jit import njit

_MANY = 8  # outputs asked for, beyond this share of the cells masses of all are summed up


class SquareWaveNoise(NamedTuple):
    """Outputs 0, .., M + 2 reach - 1 of cells between `edges` (M - 1,) of [lo, hi], in data units.

    odds: r; total: W = (2 reach + 1) r + M - 1; spread: variance of an unbiased estimate of a record amid the
    domain, a scale for proposals.
    """

    edges: Any
    reach: float
    odds: float
    total: float
    spread: float
    lo: float
    hi: float


def square_wave(cells: int, reach: int, odds: float, lo: float, hi: float) -> SquareWaveNoise:
    """Return the channel of a square wave over `cells` M >= 2 with 0 <= `reach` < M/2 and ratio `odds` > 1.

    Raises
    ------
    ValueError
        When these are out of range.
    """
    if not (cells >= 2 and 0 <= 2 * reach < cells and 1.0 < odds < math.inf):
        raise ValueError(f"no square wave has {cells} cells, a reach of {reach} and a ratio of {odds:g}")
    edges = np.ascontiguousarray(equal_edges((lo, hi), cells)[1:-1])
    near = 2 * reach + 1
    total = near * odds + (cells - 1)
    places = np.arange(-reach, cells + reach) - 0.5 * (cells - 1)
    chance = np.where(np.abs(places) <= reach + 0.25, odds, 1.0)
    variance = float(np.sum(chance * places**2) / np.sum(chance))
    gain = (odds - 1.0) * near / total
    spread = min(variance / (gain * cells) ** 2, 4.0) * (hi - lo) ** 2
    return SquareWaveNoise(
        edges, float(reach), float(odds), float(total), float(spread), float(lo), float(hi)
    )


@njit
def _window(channel, z):
    """Return the first and the last cell near an output."""
    last = len(channel.edges)
    j, reach = int(z), int(channel.reach)
    return max(j - 2 * reach, 0), min(j, last)


@njit
def _ends(channel, z):
    """Return the ends of what is near an output, infinite where that has the end cells."""
    a, b = _window(channel, z)
    low = channel.edges[a - 1] if a > 0 else -math.inf
    high = channel.edges[b] if b < len(channel.edges) else math.inf
    return low, high


@njit
def _parts(kernel, theta, h, low, high):
    """Return the masses below, near and above, each to full precision."""
    if low == -math.inf and high == math.inf:
        return 0.0, 1.0, 0.0
    masses = np.empty(3)
    if low == -math.inf or high == math.inf:
        edge = np.array([high if low == -math.inf else low])
        fill_masses(kernel, theta, h, edge, masses[:2])
        if low == -math.inf:
            return 0.0, masses[0], masses[1]
        return masses[0], masses[1], 0.0
    edges = np.array([low, high])
    fill_masses(kernel, theta, h, edges, masses)
    return masses[0], masses[1], masses[2]


@noise_density.register
def _noise_density(channel: SquareWaveNoise, z, y):
    a, b = _window(channel, z)
    c = cell_of(channel, y)
    return (channel.odds if a <= c <= b else 1.0) / channel.total


@noise_variance.register
def _noise_variance(channel: SquareWaveNoise):
    return channel.spread


hides_records(SquareWaveNoise)


@njit
def window_sums(masses, reach, out):
    """Set ``out[j]`` to the sum of masses (M,) over j - 2 reach, .., j, for M + 2 reach outputs j.

    Sums from the left and from the right within blocks of 2 reach + 1 cells; a window is the end of one block
    and the start of the next.
    """
    cells, near = len(masses), 2 * reach + 1
    if reach == 0:
        out[:] = masses
        return
    from_left, from_right = np.empty(cells), np.empty(cells)
    for first in range(0, cells, near):
        stop, left, right = min(first + near, cells), 0.0, 0.0
        for c in range(first, stop):
            left += masses[c]
            from_left[c] = left
        for c in range(stop - 1, first - 1, -1):
            right += masses[c]
            from_right[c] = right
    for j in range(near):
        out[j] = from_left[j]
    for first in range(1, cells):
        out[first + 2 * reach] = from_right[first]
    for block in range(near, cells, near):  # windows that reach into it from the block before
        for last in range(block, min(block + near - 1, cells)):
            out[last] += from_left[last]
    # windows beyond the last cell that begin in the block before its
    begun = (cells - 1) // near * near
    for first in range(max(cells - 2 * reach, 1), begun):
        out[first + 2 * reach] += from_left[cells - 1]


def _log_marginal(channel, kernel, z, theta, h):
    low, high = _ends(channel, z)
    _, near, _ = _parts(kernel, theta, h, low, high)
    return math.log((1.0 + (channel.odds - 1.0) * near) / channel.total)


def _fill_marginal(channel, kernel, theta, h, z, start, stop, out):
    cells, reach = len(channel.edges) + 1, int(channel.reach)
    found = np.full(cells + 2 * reach, -1.0)
    if _MANY * (stop - start) > cells:
        masses = np.empty(cells)
        fill_masses(kernel, theta, h, channel.edges, masses)
        window_sums(masses, reach, found)
        for i in range(start, stop):
            out[i - start] = (1.0 + (channel.odds - 1.0) * found[int(z[i])]) / channel.total
        return
    for i in range(start, stop):
        j = int(z[i])
        if found[j] < 0.0:
            low, high = _ends(channel, z[i])
            _, near, _ = _parts(kernel, theta, h, low, high)
            found[j] = (1.0 + (channel.odds - 1.0) * near) / channel.total
        out[i - start] = found[j]


def _draw_latent(channel, kernel, rng, z, theta, h):
    low, high = _ends(channel, z)
    below, near, above = _parts(kernel, theta, h, low, high)
    near *= channel.odds
    u = rng.random() * (below + near + above)
    if u < near:
        return draw_within(kernel, rng, theta, h, low, high)
    if u < near + below:
        return draw_within(kernel, rng, theta, h, -math.inf, low)
    if above > 0.0:
        return draw_within(kernel, rng, theta, h, high, math.inf)
    return draw_within(kernel, rng, theta, h, low, high)


for _kernel in (NormalNIG, Beta):
    log_marginal.register(_log_marginal, SquareWaveNoise, _kernel)
    fill_marginal.register(_fill_marginal, SquareWaveNoise, _kernel)
    draw_latent.register(_draw_latent, SquareWaveNoise, _kernel)


@njit
def _start_place(channel, rng, z):
    """Draw a point near an output: its distances from lo and from hi, in cells, above 0."""
    a, b = _window(channel, z)
    place = a + (b + 1 - a) * (1e-9 + (1.0 - 2e-9) * rng.random())
    return place, len(channel.edges) + 1 - place


@draw_start.register
def _draw_start_normal(channel: SquareWaveNoise, kernel: NormalNIG, rng, z):
    below, above = _start_place(channel, rng, z)
    return channel.lo + (channel.hi - channel.lo) * (below / (below + above))


@draw_start.register
def _draw_start_beta(channel: SquareWaveNoise, kernel: Beta, rng, z):
    below, above = _start_place(channel, rng, z)
    return math.log(below / above)
