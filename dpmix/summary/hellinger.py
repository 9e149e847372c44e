"""Hellinger distance between a posterior mean density and the prior predictive, over the whole line."""

from __future__ import annotations

import numpy as np

from dpmix.kernels.normal_family import levels_of_nodes
from dpmix.summary.families.family import Family, Floats
from dpmix.summary.random_measures import Measures, join

_LEVELS = 500
_SAMPLE = 20_000
_NEAR = 1e4


def hellinger(nodes: Floats, first: Floats, second: Floats) -> float:
    """Hellinger distance H, H^2 = 1 - integral of sqrt(f g), of two densities given at increasing `nodes`.

    The integral is the trapezoid's; the nodes must reach beyond all but a negligible mass of f or g.

    Returns
    -------
    float
        Between 0 (equal) and 1 (disjoint).
    """
    affinity = float(np.trapezoid(np.sqrt(first * second), nodes))
    return float(np.sqrt(max(0.0, 1.0 - affinity)))


def nodes_for(measures: Measures, family: Family, rng: np.random.Generator) -> Floats:
    """Points dense where the prior predictive or the mean of `measures` has mass, and far into both tails.

    Returns
    -------
    float64 array
        About a thousand increasing points: those of the prior predictive, and quantiles of the posterior at
        levels evenly spaced in logit, as far as a sample of 20,000 shows them.
    """
    parts = [family.nodes()]
    mass = measures.weights.sum()
    if mass > 0.0:
        chosen = rng.choice(measures.weights.size, size=_SAMPLE, p=measures.weights / mass)
        sample = family.sample(measures.atoms[:, chosen], rng)
        parts.append(np.quantile(sample, levels_of_nodes(_NEAR, _LEVELS)))
        spread = sample.max() - sample.min()
        parts.append(sample.min() - spread * np.linspace(0.5, 0.01, 20))
        parts.append(sample.max() + spread * np.linspace(0.01, 0.5, 20))
    return np.unique(np.concatenate(parts))


def distance_from_prior(
    batches: list[Measures], family: Family, rng: np.random.Generator
) -> tuple[float, float]:
    """Hellinger distance of the batches' mean density from the prior predictive, and its Monte Carlo bias.

    Parameters
    ----------
    batches : list of Measures
        Stretches of chains, long enough to be nearly independent of each other; at least one.
    family : Family
        Kernel and base measure.
    rng : numpy.random.Generator
        For the choice of nodes only.

    Returns
    -------
    distance : float
        H of the estimated mean density.
    bias : float
        What Monte Carlo error adds to H^2 on average where H is small: to second order the integral of
        Var(f) / (8 f), estimated from the spread of the batches; 0 with one batch.
    """
    sizes = np.asarray([batch.counts.size for batch in batches], dtype=np.float64)
    family = family.for_distance()
    nodes = nodes_for(join(batches), family, rng)
    each = np.stack([b.total(nodes, family) for b in batches]) / sizes[:, None]
    mean = (sizes @ each) / sizes.sum()
    distance = hellinger(nodes, mean, family.predictive(nodes))
    if len(batches) == 1:
        return distance, 0.0
    variance = each.var(axis=0, ddof=1) / len(batches)
    bias = float(np.trapezoid(variance / np.maximum(mean, 1e-300), nodes)) / 8.0
    return distance, bias
