"""What concerns several columns together: correlations, distance from the prior, the density of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmix.kernels.multivariate_family import NormalInverseWishart
from dpmix.summary.families.family import Floats
from dpmix.summary.grids import spread
from dpmix.summary.random_measures import Measures, join

POINTS = 61
_SAMPLE = 4_000
_STATES = 1_000
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Joint:
    """Posterior mean density of two columns together.

    Parameters
    ----------
    columns : tuple of str
        Their names.
    grids : tuple of float64 arrays (points,)
        Where it is evaluated.
    mean : float64 array (points of the first, points of the second)
        From at most 1,000 evenly spaced states.
    """

    columns: tuple[str, str]
    grids: tuple[Floats, Floats]
    mean: Floats


def mean_density(measures: Measures, family: NormalInverseWishart, y: Floats) -> Floats:
    """Mean density of the draws at points `y` (points, d), their leftover mass on the prior predictive."""
    out = measures.rest.sum() * np.exp(family.log_predictive(y))
    size = max(1, _BLOCK // max(1, len(y)))
    for start in range(0, measures.weights.size, size):
        inside = slice(start, start + size)
        out += family.densities(measures.weights[inside], measures.atoms[:, inside], y).sum(axis=0)
    return np.asarray(out / measures.counts.size)


def joint_density(
    states: Measures, family: NormalInverseWishart, names: tuple[str, str], grids: tuple[Floats, Floats]
) -> Joint:
    """Evaluate the posterior mean density of two columns on a grid over the ranges of `grids`."""
    axes = tuple(np.linspace(grid[0], grid[-1], POINTS) for grid in grids)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    chosen = states.take(spread(states.counts.size, _STATES))
    return Joint(names, (axes[0], axes[1]), mean_density(chosen, family, points).reshape(POINTS, POINTS))


def joint_distance(
    batches: list[Measures], family: NormalInverseWishart, rng: np.random.Generator
) -> tuple[float, float]:
    """Hellinger distance of the mean density f of all columns from the prior predictive g, by Monte Carlo.

    With x drawn from (f + g) / 2, 1 - H^2 is the mean of sqrt(f g) / ((f + g) / 2), which is between 0 and 1;
    4,000 points are drawn, half from each. Where f = g the estimate has no error.

    Parameters
    ----------
    batches : list of Measures
        Stretches of chains; each is thinned evenly, to at most 1,000 states in all.
    family : NormalInverseWishart
    rng : numpy.random.Generator
        Source of the points.

    Returns
    -------
    distance, bias : float
        As in `dpmix.summary.hellinger.distance_from_prior`.
    """
    most = max(1, _STATES // len(batches))
    batches = [batch.take(spread(batch.counts.size, most)) for batch in batches]
    whole = join(batches)
    points = family.draw_predictive(rng, _SAMPLE)
    half = _SAMPLE // 2
    owner = np.repeat(np.arange(whole.counts.size), whole.counts)
    # a state, then one of its atoms or what lies on none
    shares = np.concatenate([whole.weights, whole.rest])
    chosen = rng.choice(shares.size, size=half, p=shares / shares.sum())
    drawn = chosen[chosen < owner.size]
    points[: drawn.size] = family.sample(whole.atoms[:, drawn], rng)
    each = np.stack([mean_density(batch, family, points) for batch in batches])
    sizes = np.asarray([batch.counts.size for batch in batches], dtype=np.float64)
    mean, prior = (sizes @ each) / sizes.sum(), np.exp(family.log_predictive(points))
    middle = 0.5 * (mean + prior)
    square = 1.0 - float(np.mean(np.sqrt(mean * prior) / middle))
    distance = float(np.sqrt(max(square, 0.0)))
    if len(batches) == 1:
        return distance, 0.0
    variance = each.var(axis=0, ddof=1) / len(batches)
    return distance, float(np.mean(variance / np.maximum(mean, 1e-300) / middle)) / 8.0


def correlations(measures: Measures, family: NormalInverseWishart) -> Floats:
    """Correlations of the columns of a record under each draw, pairs (0, 1), (0, 2), .. (1, 2), ..

    Mass on no atom is left out: it is little, and the prior predictive may have no variance.

    Returns
    -------
    float64 array (D, d (d - 1) / 2)
        0 where a draw has no atom.
    """
    d = family.size
    owner = np.repeat(np.arange(measures.counts.size), measures.counts)

    def sums(values: Floats) -> Floats:
        total = np.bincount(owner, measures.weights * values, minlength=measures.counts.size)
        return np.asarray(total, dtype=np.float64)

    mass = np.maximum(sums(np.ones(owner.size)), 1e-300)
    means = [sums(measures.atoms[j]) / mass for j in range(d)]

    def covariance(j: int, k: int) -> Floats:
        about = measures.atoms[j] * measures.atoms[k] + measures.atoms[d + j * d + k]
        return np.asarray(sums(about) / mass - means[j] * means[k])

    variances = [np.maximum(covariance(j, j), 1e-300) for j in range(d)]
    pairs = [
        covariance(j, k) / np.sqrt(variances[j] * variances[k]) for j in range(d) for k in range(j + 1, d)
    ]
    return np.stack(pairs, axis=1)
