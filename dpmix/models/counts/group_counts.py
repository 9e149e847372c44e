"""Priors of the numbers of records in the cells of several groups, whose sizes are private.

See methods, section 16.

A record is a pair (g, x): g ~ Categorical(pi), pi ~ Dirichlet(1, .., 1), and x in one of m cells by the
probabilities of its group. With pi integrated out the sizes n_g are uniform over all that sum to N, whatever
else is known of the groups, so that the counts c_gj of cell g m + j have the prior

    p(c) proportional to prod_g n_g! prod_j p_gj^c_gj / c_gj!        given the probabilities (`GroupMasses`),
    p(c) proportional to prod_g n_g! Gamma(alpha) / Gamma(alpha + n_g)
                         prod_j Gamma(alpha p_j + c_gj) / (Gamma(alpha p_j) c_gj!)

with those of each group integrated out (`GroupPrior`). They are moved by `dpmix.models.counts.latent_counts`:
between any two cells, of one group or of two.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.models.counts.latent_counts import EXACT, log_across, log_records, move_across, take_sizes
from dpmix.numerics.jit import njit

__all__ = ["GroupMasses", "GroupPrior", "draw_shares", "group_masses", "group_prior"]


class GroupPrior(NamedTuple):
    """Dirichlet priors of the cell probabilities within groups.

    shapes (J,) alpha p_j, the same in each group; active: the cells with p_j > 0; group (J,) of each cell;
    sizes (G,) n_g, taken from the counts as a sweep begins; concentration alpha; exact as in
    `dpmix.models.counts.latent_counts.CellPrior`.
    """

    shapes: Any
    active: Any
    group: Any
    sizes: Any
    concentration: float
    exact: int


class GroupMasses(NamedTuple):
    """Known cell probabilities within groups: logs (J,) log p_gj; the rest as in `GroupPrior`.

    tempered (1,) is a power of the whole prior, 1 but for a chain that looks for its start.
    """

    logs: Any
    active: Any
    group: Any
    sizes: Any
    tempered: Any
    exact: int


def group_prior(
    concentration: float, probabilities: NDArray[np.float64], groups: int, exact: int = EXACT
) -> GroupPrior:
    """Return the prior of `groups` groups with the base measure `probabilities` (m,) in each."""
    share = np.asarray(probabilities, dtype=np.float64) / np.sum(probabilities)
    shapes = np.tile(concentration * share, groups)
    active = np.flatnonzero(shapes > 0.0).astype(np.int64)
    return GroupPrior(shapes, active, *_layout(groups, len(share)), float(concentration), exact)


def group_masses(groups: int, cells: int, exact: int = EXACT) -> GroupMasses:
    """Return room for the probabilities of `cells` cells in each of `groups` groups."""
    active = np.arange(groups * cells)
    return GroupMasses(np.zeros(groups * cells), active, *_layout(groups, cells), np.ones(1), exact)


def _layout(groups: int, cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.repeat(np.arange(groups), cells), np.zeros(groups, dtype=np.int64)


@njit
def _log_size(prior, n):
    """Return the log weight of a group of n records, besides those of its cells."""
    return math.lgamma(n + 1.0) - math.lgamma(prior.concentration + n)


@log_records.register
def _log_records_prior(prior: GroupPrior, j, x):
    return math.lgamma(prior.shapes[j] + x) - math.lgamma(x + 1.0)


@log_across.register
def _log_across_prior(prior: GroupPrior, a, b, step):
    g, h = prior.group[a], prior.group[b]
    if g == h:
        return 0.0
    return _log_size(prior, prior.sizes[g] + step) + _log_size(prior, prior.sizes[h] - step)


@log_records.register
def _log_records_masses(prior: GroupMasses, j, x):
    return prior.tempered[0] * (x * prior.logs[j] - math.lgamma(x + 1.0))


@log_across.register
def _log_across_masses(prior: GroupMasses, a, b, step):
    g, h = prior.group[a], prior.group[b]
    if g == h:
        return 0.0
    value = math.lgamma(prior.sizes[g] + step + 1.0) + math.lgamma(prior.sizes[h] - step + 1.0)
    return prior.tempered[0] * value


def _move_across(prior, a, b, step):
    prior.sizes[prior.group[a]] += step
    prior.sizes[prior.group[b]] -= step


def _take_sizes(prior, counts):
    prior.sizes[:] = 0
    for j in range(len(counts)):
        prior.sizes[prior.group[j]] += counts[j]


for _prior in (GroupPrior, GroupMasses):
    move_across.register(_move_across, _prior)
    take_sizes.register(_take_sizes, _prior)


def draw_shares(rng: Generator, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw pi (G,) given the sizes of the groups."""
    return rng.dirichlet(1.0 + sizes)
