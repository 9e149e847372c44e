"""Densities of mixtures whose draws are kept at points of a grid, of one group or of several."""

from __future__ import annotations

import math

import numpy as np

from dpmix.store.chains_reader import NamedChains
from dpmix.store.stored import Stored
from dpmix.summary.density import Density
from dpmix.summary.families.base import Floats
from dpmix.summary.families.choose import family_on_line

__all__ = ["mixture_densities", "pointwise"]

_AT_ONCE = 1 << 24  # numbers read together


def pointwise(
    chains: NamedChains, parameter: Stored, level: float, group: int | None
) -> tuple[Floats, Floats, Floats]:
    """Return mean and equal-tailed pointwise band of a curve, over all draws, of one group of several."""
    size = max(1, _AT_ONCE // (chains.ids.size * chains.draws))
    tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)]
    means, ends = [], []
    for start in range(0, parameter.coords[parameter.dims[-1]].size, size):
        draws = chains.read(parameter, slice(start, start + size), group=group)
        flat = draws.reshape(-1, draws.shape[-1])
        means.append(flat.mean(axis=0))
        ends.append(np.quantile(flat, tails, axis=0))
    lower, upper = np.concatenate(ends, axis=1)
    return np.concatenate(means), lower, upper


def mixture_densities(chains: NamedChains, parameter: Stored, level: float) -> dict[str, Density]:
    """Return the density of a record of each group, under "" where there is only one, beside the prior's."""
    family = family_on_line(str(chains.attrs["kernel"]), str(chains.attrs["base"]), chains.constants)
    grid = np.asarray(parameter.coords[parameter.dims[-1]], dtype=np.float64)
    prior = family.predictive(grid)
    found: dict[str, Density] = {}
    for group, name in enumerate(parameter.groups) if parameter.groups else ((None, ""),):
        mean, lower, upper = pointwise(chains, parameter, level, group)
        distance = _distance(grid, mean, prior)
        found[name] = Density(grid, mean, lower, upper, prior, distance, group=name)
    return found


def _distance(grid: Floats, first: Floats, other: Floats) -> float:
    """Return about the Hellinger distance of two densities, what lies beyond the grid taken as one place."""
    inside = [min(float(np.trapezoid(density, grid)), 1.0) for density in (first, other)]
    affinity = float(np.trapezoid(np.sqrt(first * other), grid))
    affinity += math.sqrt((1.0 - inside[0]) * (1.0 - inside[1]))
    return math.sqrt(max(1.0 - affinity, 0.0))
