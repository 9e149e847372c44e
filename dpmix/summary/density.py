"""The posterior of the random density: mean, bands, moments, and distance from the prior's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.store.chains_reader import Chains
from dpmix.summary.hellinger import distance_from_prior
from dpmix.summary.measures import Measures, draw_measures, join, state_measures
from dpmix.summary.prior import Floats, NormalInverseGamma

BAND_DRAWS = 10_000
DISTANCE_DRAWS = 4_000
DEFAULT_POINTS = 200
_BLOCK = 2048
_COLUMNS = 256


@dataclass(frozen=True)
class Density:
    """The density of a record Y, in the data's units.

    Parameters
    ----------
    grid : float64 array (points,)
        Where it is evaluated.
    mean : float64 array (points,)
        Posterior mean, which is the posterior predictive density.
    lower, upper : float64 arrays (points,)
        Equal-tailed pointwise band of the random density.
    prior : float64 array (points,)
        Prior predictive density.
    hellinger_from_prior : float
        Hellinger distance between `mean` and `prior` over the whole line.
    baseline : float64 array (points,), optional
        Deconvolution kernel density estimate (`dpmix.summary.deconvolution`), where it was asked for.
    baseline_bandwidth : float, optional
        Its bandwidth.
    """

    grid: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    prior: Floats
    hellinger_from_prior: float
    baseline: Floats | None = None
    baseline_bandwidth: float | None = None


@dataclass(frozen=True)
class DensityPosterior:
    """What one pass over the components of all chains gives.

    Parameters
    ----------
    density : Density
        Mean from all saved states; bands from `band_draws` evenly spaced ones.
    hellinger_bias : float
        What Monte Carlo error adds to the square of `density.hellinger_from_prior`, on average.
    series : mapping of str to float64 array (C, D)
        Scalars of the random density at each saved state: `mean` and `sd` of a record, and the density at
        three points (keys such as `density[3.5]`).
    band_draws : int
        Number of draws behind the bands.
    """

    density: Density
    hellinger_bias: float
    series: Mapping[str, Floats]
    band_draws: int


def base_measure(chains: Chains) -> NormalInverseGamma:
    """Return the base measure that the chains were run with.

    Raises
    ------
    DataError
        When the fit is no mixture of normals with a normal-inverse-gamma base measure.
    """
    model = chains.spec.get("model") or {}
    asked = (
        model.get("kind", "mixture"),
        model.get("kernel", "normal"),
        (model.get("base") or {}).get("kind", "nig"),
    )
    if asked != ("mixture", "normal", "nig"):
        raise DataError(
            "summarize knows mixtures with kernel normal and base nig, and these chains are of a "
            f"{asked[0]} with kernel {asked[1]} and base {asked[2]}"
        )
    c = chains.constants
    return NormalInverseGamma(c["base_mu0"], c["base_lambda"], c["base_a"], c["base_b"])


def choose_grid(chains: Chains, grid: tuple[float, float, int] | None) -> Floats:
    """Return the grid asked for, or a default one.

    The default is the public domain widened by a tenth of its width on each side, with 200 points; without a
    domain it is the range of the released values.

    Raises
    ------
    DataError
        When there is neither a grid nor anything to take one from.
    """
    if grid is not None:
        return np.linspace(float(grid[0]), float(grid[1]), int(grid[2]))
    domain = chains.mechanism.get("domain") or (chains.spec.get("mechanism") or {}).get("domain")
    bounds = np.asarray(domain, dtype=np.float64).ravel() if domain is not None else np.empty(0)
    if bounds.size == 2 and bounds[0] < bounds[1]:
        margin = 0.1 * (bounds[1] - bounds[0])
        return np.linspace(bounds[0] - margin, bounds[1] + margin, DEFAULT_POINTS)
    if chains.observed.size and np.ptp(chains.observed) > 0:
        return np.linspace(chains.observed.min(), chains.observed.max(), DEFAULT_POINTS)
    raise DataError("no grid to report the density on: give --set 'summary.grid=[lo, hi, points]'")


def density_points(grid: Floats) -> Floats:
    """Points at a quarter, half and three quarters of the grid's range, where the density is monitored."""
    return np.linspace(grid[0], grid[-1], 5)[1:4]


def posterior_density(chains: Chains, grid: Floats, level: float) -> DensityPosterior:
    """Go once through the components of all chains.

    For each saved state one P is drawn (`dpmix.summary.measures`), its leftover mass w_0 from a generator
    derived from the chains' seed, so that the same files always give the same result. The mean uses w_0 times
    the prior predictive, its exact mean. Methods, section 4, "Reported".

    Parameters
    ----------
    chains : Chains
        What `read_chains` gives.
    grid : float64 array (points,)
        Increasing points.
    level : float
        Pointwise probability of the band.
    """
    base, discount = base_measure(chains), chains.constants["discount"]
    points = density_points(grid)
    shape = chains.n_clusters.shape
    names = ["mean", "sd", *_labels(points)]
    series = {name: np.empty(shape) for name in names}
    wanted = spread(shape[1], max(1, BAND_DRAWS // shape[0]))
    total = np.zeros(grid.size)
    kept: list[Measures] = []
    states: list[tuple[int, Measures]] = []
    for block in chains.blocks(_BLOCK):
        rows = slice(block.start, block.start + block.weights.shape[0])
        state = state_measures(block.weights, block.means, block.variances)
        total += state.total(grid, base)
        rng = _generator(chains, int(chains.ids[block.chain]), block.start)
        drawn = draw_measures(state, chains.concentration[block.chain, rows], discount, base, rng)
        series["mean"][block.chain, rows], series["sd"][block.chain, rows] = drawn.moments(base)
        at_points = drawn.densities(points, base)
        for column, name in enumerate(names[2:]):
            series[name][block.chain, rows] = at_points[:, column]
        chosen = wanted[(wanted >= rows.start) & (wanted < rows.stop)] - rows.start
        kept.append(drawn.take(chosen))
        states.append((block.chain, state.take(chosen)))
    lower, upper = bands(join(kept), grid, level, base)
    distance, bias = distance_from_prior(_batches(states), base, _generator(chains, -1, 0))
    density = Density(grid, total / chains.n_clusters.size, lower, upper, base.predictive(grid), distance)
    return DensityPosterior(density, bias, series, wanted.size * shape[0])


def bands(measures: Measures, grid: Floats, level: float, base: NormalInverseGamma) -> tuple[Floats, Floats]:
    """Equal-tailed pointwise band of the densities of `measures`, shapes (points,)."""
    tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)]
    parts = [
        np.quantile(measures.densities(grid[start : start + _COLUMNS], base), tails, axis=0)
        for start in range(0, grid.size, _COLUMNS)
    ]
    lower, upper = np.concatenate(parts, axis=1)
    return lower, upper


def spread(size: int, most: int) -> NDArray[np.int64]:
    """At most `most` evenly spaced numbers out of 0 .. size - 1, the last one included."""
    if size <= most:
        return np.arange(size)
    return size - 1 - ((np.arange(most, dtype=np.int64) * size) // most)[::-1]


def _labels(points: Floats) -> list[str]:
    """Names of the densities at `points`, with as many digits as tell them apart."""
    for digits in range(4, 18):
        names = [f"density[{point:.{digits}g}]" for point in points]
        if len(set(names)) == len(names):
            break
    return names


def _batches(states: list[tuple[int, Measures]]) -> list[Measures]:
    """Four consecutive stretches of each chain (fewer where it is short), at most DISTANCE_DRAWS in all."""
    batches: list[Measures] = []
    chains = sorted({chain for chain, _ in states})
    for number in chains:
        whole = join([part for chain, part in states if chain == number])
        whole = whole.take(spread(whole.counts.size, max(1, DISTANCE_DRAWS // len(chains))))
        parts = np.array_split(np.arange(whole.counts.size), 4)
        batches.extend(whole.take(part) for part in parts if part.size)
    return batches


def _generator(chains: Chains, chain_id: int, start: int) -> np.random.Generator:
    """Return a generator that depends on the chains' seed, the chain's id and the first state only."""
    digest = hashlib.sha256(f"dpmix summary {chains.attrs['seed']} {chain_id} {start}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))
