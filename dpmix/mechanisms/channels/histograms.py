"""Releases of a histogram of the whole sample (methods, section 3), seen from the release.

The release depends on the records through the numbers c_j of them in m equal bins of the domain alone; the
end bins reach to the ends of the kernel's support. The log-likelihood is a sum of terms l_j(c_j), so that
moving one record changes two of them. The channel holds what is not known: the bin of each record, given
which a record's density is the mass of its bin, and their counts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import draw_within, fill_masses, value
from dpmix.kernels.beta.kernel import Beta
from dpmix.kernels.normal.kernel import NormalNIG
from dpmix.mechanisms.channels.channel_functions import (
    augment,
    draw_latent,
    draw_start,
    fill_marginal,
    hides,
    log_constant,
    log_marginal,
    noise_variance,
    settle,
)
from dpmix.mechanisms.channels.count_likelihoods import CountsWithNoise, SmoothedDraws, log_count
from dpmix.numerics.jit import njit


class HistogramBins(NamedTuple):
    """A release of the histogram of all records, of which it is known how likely their counts make it.

    likelihood: of the numbers of records in the bins (`dpmix.mechanisms.channels.count_likelihoods`); edges
    (m - 1,) between the bins; bins (n,) and counts (m,) of the records, as far as they are known.
    """

    likelihood: Any
    lo: float
    width: float
    edges: Any
    bins: Any
    counts: Any

    @property
    def augmented(self) -> tuple[str, ...]:
        """Names of the fields that a chain moves."""
        return ("bins", "counts")


def histogram_bins(
    likelihood: CountsWithNoise | SmoothedDraws, n: int, edges: NDArray[np.float64]
) -> HistogramBins:
    """Return the channel of a histogram of n records; edges (m + 1,) of the bins."""
    inner = np.ascontiguousarray(edges[1:-1], dtype=np.float64)
    bins, counts = np.zeros(n, dtype=np.int64), np.zeros(len(edges) - 1, dtype=np.int64)
    return HistogramBins(likelihood, float(edges[0]), float(edges[-1] - edges[0]), inner, bins, counts)


@njit
def bin_of(channel, y):
    """Return the bin of a value in the data's units."""
    low, high = 0, len(channel.edges)
    while low < high:
        middle = (low + high) // 2
        if y >= channel.edges[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def log_count_of(channel, j, c):
    """Return the log-likelihood of `c` records in bin j, up to a constant."""
    return log_count(channel.likelihood, channel.edges[:0], j, c)  # no noisy counts are latent


@njit
def _gain(channel, j):
    """Return l_j(c_j + 1) - l_j(c_j)."""
    c = channel.counts[j]
    return log_count_of(channel, j, c + 1) - log_count_of(channel, j, c)


def _hides(channel):
    return True


def _noise_variance(channel):
    step = channel.width / len(channel.counts)
    return step * step


def _log_constant(channel):
    """Return NaN: the density of such a release given the allocations has no closed form."""
    return math.nan


def _log_marginal(channel, kernel, z, theta, h):
    """Return the log mass of the bin of record z."""
    masses = np.empty(len(channel.counts))
    fill_masses(kernel, theta, h, channel.edges, masses)
    return math.log(max(masses[channel.bins[int(z)]], 1e-300))


def _fill_marginal(channel, kernel, theta, h, z, start, stop, out):
    masses = np.empty(len(channel.counts))
    fill_masses(kernel, theta, h, channel.edges, masses)
    for i in range(start, stop):
        out[i - start] = masses[channel.bins[int(z[i])]]


def _draw_latent(channel, kernel, rng, z, theta, h):
    j = channel.bins[int(z)]
    low = channel.edges[j - 1] if j > 0 else -np.inf
    high = channel.edges[j] if j < len(channel.edges) else np.inf
    return draw_within(kernel, rng, theta, h, low, high)


@njit
def _start_bin(channel, rng):
    """Draw a bin with probability proportional to the released count, negative ones taken as next to none."""
    released = channel.likelihood.released
    total = 0.0
    for j in range(len(released)):
        total += max(released[j], 0.01)
    u = rng.random() * total
    for j in range(len(released)):
        u -= max(released[j], 0.01)
        if u < 0.0:
            return j
    return len(released) - 1


def _draw_start_normal(channel, kernel, rng, z):
    return channel.lo + channel.width * (_start_bin(channel, rng) + rng.random()) / len(channel.counts)


def _draw_start_beta(channel, kernel, rng, z):
    u = (_start_bin(channel, rng) + min(max(rng.random(), 1e-12), 1.0 - 1e-12)) / len(channel.counts)
    return math.log(u) - math.log1p(-u)


def _settle(channel, kernel, rng, values):
    channel.counts[:] = 0
    for i in range(len(channel.bins)):
        channel.bins[i] = bin_of(channel, value(kernel, values[i]))
        channel.counts[channel.bins[i]] += 1


def _augment(channel, kernel, rng, z, theta, labels, order, k):
    """Draw the bin of every record given all others, the release, and its component's parameters.

    Pr(bin j) is proportional to F_j(theta) exp(l_j(c_j + 1) - l_j(c_j)), c_j without the record.
    """
    m = len(channel.counts)
    masses = np.empty((theta.shape[1], m))
    for j in range(k):
        fill_masses(kernel, theta, order[j], channel.edges, masses[order[j]])
    gains = np.empty(m)
    for j in range(m):
        gains[j] = _gain(channel, j)
    top = np.max(gains)
    factors = np.exp(gains - top)
    weights = np.empty(m)
    for i in range(len(labels)):
        mass = masses[labels[i]]
        old = channel.bins[i]
        channel.counts[old] -= 1
        gains[old] = _gain(channel, old)
        factors[old] = math.exp(gains[old] - top)
        total = 0.0
        for j in range(m):
            total += mass[j] * factors[j]
            weights[j] = total
        if not (1e-250 < total < 1e250):
            for j in range(m):
                gains[j] = _gain(channel, j)
            top = np.max(gains + np.log(np.maximum(mass, 1e-300)))
            total = 0.0
            for j in range(m):
                factors[j] = math.exp(min(gains[j] - top, 600.0))
                total += mass[j] * factors[j]
                weights[j] = total
        u = rng.random() * total
        new = 0
        while new < m - 1 and weights[new] <= u:
            new += 1
        channel.bins[i] = new
        channel.counts[new] += 1
        gains[new] = _gain(channel, new)
        factors[new] = math.exp(min(gains[new] - top, 600.0))


hides.register(_hides, HistogramBins)
noise_variance.register(_noise_variance, HistogramBins)
log_constant.register(_log_constant, HistogramBins)
for _kernel, _draw_start in ((NormalNIG, _draw_start_normal), (Beta, _draw_start_beta)):
    log_marginal.register(_log_marginal, HistogramBins, _kernel)
    fill_marginal.register(_fill_marginal, HistogramBins, _kernel)
    draw_latent.register(_draw_latent, HistogramBins, _kernel)
    draw_start.register(_draw_start, HistogramBins, _kernel)
    settle.register(_settle, HistogramBins, _kernel)
    augment.register(_augment, HistogramBins, _kernel)
