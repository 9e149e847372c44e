"""The sampler on counts for the tests: its chains for an oracle's model, its draws as other chains give them.

`log_cells` has the masses of cells by routes of their own: differences of distribution functions that SciPy
computes for normal kernels, Gauss-Legendre sums of the oracle's densities for beta kernels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpmix.columns.cells import Counts
from dpmix.mechanisms.channels.count_likelihoods import NOISES, CountsWithNoise, SmoothedDraws
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.models.counts_mixture.model import CountsChain, CountsMixture
from dpmix.models.counts_mixture.source import HistogramCounts
from dpmix.numerics.mixing import PitmanYor
from dpmix.release.tallies import tally
from tests.helpers import samplers
from tests.oracles import histograms, kernels
from tests.oracles.blocks import Table, all_blocks, tabulate
from tests.oracles.joint import Model, marginal_cdf
from tests.oracles.marginals import log_g, mean_of_normal_cdf

Array = NDArray[np.float64]


def mixture(model: Model, counts: Counts | HistogramCounts) -> CountsMixture:
    """Return dpmix's model of an oracle's model given counts."""
    shape, rate = model.alpha if isinstance(model.alpha, tuple) else (0.0, 0.0)
    alpha = shape / rate if isinstance(model.alpha, tuple) else model.alpha
    mixing = PitmanYor(alpha, model.discount, shape, rate)
    return CountsMixture(counts, samplers.channel(model), samplers.kernel(model), mixing)


def outputs_of(model: Model) -> int:
    """Return the number of outputs of a release, 0 where they are not finite."""
    kind, own = model.channel
    if kind == "binomial":
        return int(own[0]) + 1
    return int(own[0] + 2 * own[1]) if kind == "square_wave" else 0


def histogram(model: Model, z: Array, n: int) -> CountsMixture:
    """Return dpmix's model of an oracle's model given a histogram of n records."""
    kind, (bins, *rest) = model.channel
    lo, width = rest[-2:]
    edges = np.linspace(lo, lo + width, bins + 1)
    release: Any
    if kind == "smoothed":
        weight = float(rest[0])
        seen = histograms.count(model.channel, z).astype(float)
        release = SmoothedDraws(seen, (1.0 - weight) * bins / n, weight)
    else:
        release = CountsWithNoise(np.array(z, dtype=float), NOISES[rest[0]], float(rest[1]))
    found = mixture(replace(model, channel=("none", 0.0)), HistogramCounts(release, n, edges))
    assert isinstance(found.channel, NoNoise)
    return found


def counted(model: Model, z: Array, edges: Array) -> Counts:
    """Return the counts of a release: in cells between `edges`, or of the outputs where they are finite."""
    if outputs_of(model):
        return tally(z, np.arange(1.0, outputs_of(model)) - 0.5, 0.0)
    return tally(z, edges, float(np.min(np.diff(edges))))


def padded(chain: CountsChain) -> dict[str, Array]:
    """Take a chain's draws as arrays (draw, component), filled up with NaN."""
    draws = {name: values for name, (_, values) in chain.take().items()}
    sizes = np.diff(draws["first"])
    inside = np.arange(sizes.max()) < sizes[:, None]
    found = {name: draws[name] for name in ("n_clusters", "concentration")}
    names = chain.model.kernel.parameters
    for name, flat in zip(("weights", *names), (draws["weights"], *draws["theta"]), strict=True):
        found[name] = np.full(inside.shape, np.nan)
        found[name][inside] = flat
    return found


def log_cells(model: Model, edges: Array, theta: Array) -> Array:
    """Log masses of all cells, (cell, node), at parameters (2, node)."""
    if outputs_of(model):
        return log_g(model.law, model.channel, np.arange(float(outputs_of(model))), theta)
    if model.kernel == "normal":
        below = np.stack([marginal_cdf(model.channel, edge, *theta) for edge in edges])
        return _log_differences(below)
    lo, width = model.base[4:6]
    if model.channel[0] == "none":
        return _log_differences(np.stack([special.betainc(*theta, (edge - lo) / width) for edge in edges]))
    scale = float(model.channel[1])
    if model.channel[0] == "gaussian":
        below = [mean_of_normal_cdf((edge - lo) / width, scale / width, *theta) for edge in edges]
        return _log_differences(np.stack(below))
    ends = np.concatenate([[edges[0] - 40.0 * scale], edges, [edges[-1] + 40.0 * scale]])
    node, weight = special.roots_legendre(14)
    rows = []
    for left, right in zip(ends[:-1], ends[1:], strict=True):
        cuts = np.unique(
            np.concatenate([np.linspace(left, right, 4), np.clip([lo, lo + width], left, right)])
        )
        total: Any = 0.0
        for a, b in zip(cuts[:-1], cuts[1:], strict=True):
            z = 0.5 * (a + b) + 0.5 * (b - a) * node
            total = total + 0.5 * (b - a) * weight @ np.exp(log_g(model.law, model.channel, z, theta))
        rows.append(np.log(total))
    return np.stack(rows)


def _log_differences(below: Array) -> Array:
    steps = np.diff(
        np.concatenate([np.zeros((1, below.shape[1])), below, np.ones((1, below.shape[1]))], axis=0), axis=0
    )
    return np.asarray(np.log(np.maximum(steps, 1e-300)))


def table(
    model: Model, edges: Array, cells: NDArray[np.int64], points: Array, resolution: float = 1.0
) -> Table:
    """Integrals over theta of every block of records that lie in these cells."""
    law = kernels.kernel(model.kernel, model.base)
    theta, log_prior = law.nodes(len(cells), resolution)
    records = log_cells(model, edges, theta)[cells]
    return tabulate(law, points, records, theta, log_prior, all_blocks(len(cells)))
