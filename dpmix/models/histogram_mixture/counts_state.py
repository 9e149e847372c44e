"""What a chain of `dpmix.models.histogram_mixture` holds, and draws of the mixing measure given it.

Of each group a partition of its records into clusters with parameters, without saying which record is where,
and the number of records in each bin. Given these P has a known law (Pitman 1996; methods, section 4): the
clusters' weights and the mass left over are Dirichlet, and the mass left over is spread by a process of its
own. It is broken into sticks until less than `TAIL` of a record is expected beyond, which then lie on one
atom.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import theta_rows
from dpmix.kernels.kernel_functions import draw_prior
from dpmix.numerics.jit import njit
from dpmix.numerics.mixing import PitmanYor, draw_measure, initial_concentration, truncation_error

__all__ = ["TAIL", "GroupsState", "draw_random_measure", "make_groups", "sticks_for"]

TAIL = 1e-3  # records expected on what is not broken into sticks
_FEWEST = 32  # components that there is room for, at least
MOST_STICKS = 512

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class GroupsState(NamedTuple):
    """The state, all changed in place.

    counts (G m,) of the bins, group by group; clusters (G,) k; members (G, K) records of the first k
    components; theta (G, parameters, K), those beyond the first k are scratch; concentration (G,); age (1,)
    sweeps done.
    """

    counts: Any
    clusters: Any
    members: Any
    theta: Any
    concentration: Any
    age: Any


def sticks_for(mixing: PitmanYor, n: int) -> int | None:
    """Return how many sticks leave less than `TAIL` of n records expected; None above `MOST_STICKS`."""
    low, high = 1, MOST_STICKS
    if truncation_error(mixing, high, n) > TAIL:
        return None
    while low + 1 < high:
        middle = (low + high) // 2
        if truncation_error(mixing, middle, n) > TAIL:
            low = middle
        else:
            high = middle
    return high


def make_groups(kernel: Any, mixing: PitmanYor, counts: Ints, groups: int, sticks: int) -> GroupsState:
    """Return a state with these counts (G m,), no clusters yet, and room for twice as many as `sticks`."""
    room = max(_FEWEST, 2 * sticks)
    return GroupsState(
        counts,
        np.zeros(groups, dtype=np.int64),
        np.zeros((groups, room), dtype=np.int64),
        np.zeros((groups, theta_rows(kernel), room)),
        np.full(groups, initial_concentration(mixing)),
        np.zeros(1, dtype=np.int64),
    )


@njit
def draw_random_measure(kernel, mixing, rng, state, g, total, weights):
    """Draw P of group g given its clusters: weights and `theta`; return the number of atoms.

    `total` is the number of records of all groups together.
    """
    k, alpha, d = state.clusters[g], state.concentration[g], mixing.discount
    room = len(weights)
    left = draw_measure(rng, alpha, d, state.members[g], k, weights)
    strength, atoms = alpha + k * d, k
    while left * total > TAIL and atoms < room - 1:
        share = rng.beta(1.0 - d, strength + (atoms - k + 1) * d)
        weights[atoms] = left * share
        left *= 1.0 - share
        draw_prior(kernel, rng, state.theta[g], atoms)
        atoms += 1
    if atoms == room:
        weights[room - 1] += left
        return room
    weights[atoms] = left
    draw_prior(kernel, rng, state.theta[g], atoms)
    return atoms + 1
