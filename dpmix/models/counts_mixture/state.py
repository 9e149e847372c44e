"""What a chain holds from sweep to sweep, and its room to work.

The state is a partition of the records into clusters with parameters, without saying which record is where.
Given it the mixing measure P has a known law (Pitman 1996; methods, section 4): the clusters' weights and the
mass left over are Dirichlet, and the mass left over is spread by a process of its own. It is broken into
sticks until less than `TAIL` of a record is expected beyond, which then lie on one atom; so n times the mass
left over is below `TAIL` in every sweep, whatever the concentration, and nothing depends on an order of
sticks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import theta_rows
from dpmix.kernels.kernel_functions import draw_prior
from dpmix.models.counts_mixture.masses import fill_rows
from dpmix.models.counts_mixture.source import FixedCounts, LatentCounts
from dpmix.numerics.jit import njit
from dpmix.numerics.mixing import PitmanYor, draw_measure, initial_concentration

__all__ = [
    "ACCEPTED",
    "CONCENTRATION",
    "FIXED",
    "LEFT_OVER",
    "LOG_LIKELIHOOD",
    "MOST",
    "PROPOSED",
    "TAIL",
    "CountsMixtureState",
    "Work",
    "draw_random_measure",
    "make_state",
    "make_work",
    "start",
    "widened",
]

TAIL = 1e-3  # records expected on what is not broken into sticks
MOST = 12  # atoms that move together
CONCENTRATION, LOG_LIKELIHOOD, LEFT_OVER, ACCEPTED, PROPOSED = 0, 1, 2, 3, 4  # state.floats
_FIRST_ATOMS = 8  # at most so many clusters to start from
_FIRST_RECORDS = 1000
FIXED = FixedCounts()

Floats = NDArray[np.float64]


class CountsMixtureState(NamedTuple):
    """Kept from sweep to sweep, changed in place, with room for H clusters.

    clusters (1,): how many there are, k; sizes (H,) of the first k; theta (P, H), beyond k scratch; floats:
    the scalars named above, the last two since the last saved draw; damping (6,): what Langevin steps of the
    heavy atoms together, of one and of two atoms adapt, in logarithms, and those that take counts along.
    """

    clusters: Any
    sizes: Any
    theta: Any
    floats: Any
    damping: Any


class Work(NamedTuple):
    """Scratch of a sweep, over H atoms and B cells.

    counts, roots (B,): of the cells, to the power of a ladder, and their square roots; weights (H,), rows
    (H, 3, B): masses and derivatives of the atoms, sloped (H,): whether these are set; mixed (B,): sum_h w_h
    G_hc; proposed, terms (B,); weights_at (H,), theta_at (P, H), rows_at (MOST, 3, B): of a proposal; basis
    (D + 2, B), metric, metric_at (D, D), vectors (8, D) with D = 3 MOST; chosen, numbers (H,); source: where
    the counts come from (`dpmix.models.counts_mixture.source`), pulls (B,) its scratch.
    """

    counts: Any
    roots: Any
    weights: Any
    rows: Any
    sloped: Any
    mixed: Any
    proposed: Any
    terms: Any
    weights_at: Any
    theta_at: Any
    rows_at: Any
    sloped_at: Any
    basis: Any
    metric: Any
    metric_at: Any
    vectors: Any
    chosen: Any
    numbers: Any
    source: Any
    pulls: Any


def make_state(kernel: Any, room: int) -> CountsMixtureState:
    """Return a state with no clusters."""
    return CountsMixtureState(
        np.zeros(1, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.ones((theta_rows(kernel), room)),
        np.zeros(5),
        np.zeros(6),
    )


def make_work(kernel: Any, room: int, cells: int, source: FixedCounts | LatentCounts = FIXED) -> Work:
    """Return room for so many atoms and cells."""
    size = 3 * MOST
    return Work(
        counts=np.zeros(cells),
        roots=np.zeros(cells),
        weights=np.zeros(room),
        rows=np.zeros((room, 3, cells)),
        sloped=np.zeros(room, dtype=np.bool_),
        mixed=np.ones(cells),
        proposed=np.ones(cells),
        terms=np.zeros(cells),
        weights_at=np.zeros(room),
        theta_at=np.ones((theta_rows(kernel), room)),
        rows_at=np.zeros((MOST, 3, cells)),
        sloped_at=np.zeros(MOST, dtype=np.bool_),
        basis=np.zeros((size + 2, cells)),
        metric=np.zeros((size, size)),
        metric_at=np.zeros((size, size)),
        vectors=np.zeros((8, size)),
        chosen=np.zeros(room, dtype=np.int64),
        numbers=np.zeros(room, dtype=np.int64),
        source=source,
        pulls=np.zeros(cells),
    )


def widened(state: CountsMixtureState, kernel: Any) -> CountsMixtureState:
    """Return the same state with twice the room."""
    old = len(state.sizes)
    wider = make_state(kernel, 2 * old)
    wider.clusters[:], wider.floats[:], wider.damping[:] = state.clusters, state.floats, state.damping
    wider.sizes[:old] = state.sizes
    wider.theta[:, :old] = state.theta
    return wider


def start(
    kernel: Any, mixing: PitmanYor, rng: np.random.Generator, n: int, state: CountsMixtureState
) -> None:
    """Start from clusters of about one size with parameters from the base measure: chains start apart."""
    k = int(rng.integers(1, _FIRST_ATOMS + 1))
    state.clusters[0] = k
    state.sizes[:k] = np.maximum(rng.multinomial(min(n, _FIRST_RECORDS), np.full(k, 1.0 / k)), 1)
    state.floats[CONCENTRATION] = initial_concentration(mixing)
    _draw_parameters(kernel, rng, state.theta, k)


@njit
def _draw_parameters(kernel, rng, theta, k):
    for h in range(k):
        draw_prior(kernel, rng, theta, h)


@njit
def draw_random_measure(channel, kernel, rng, state, cells, work, total):
    """Draw P given the clusters: weights, parameters and masses; return the number of atoms.

    The masses of the clusters are set already. `total` is the number of records.
    """
    k, alpha = state.clusters[0], state.floats[CONCENTRATION]
    weights, room = work.weights, len(work.weights)
    left = draw_measure(rng, alpha, 0.0, state.sizes, k, weights)
    atoms = k
    while atoms < room - 1:
        more = left * total > TAIL
        share = rng.beta(1.0, alpha) if more else 1.0
        weights[atoms] = left * share
        left *= 1.0 - share
        draw_prior(kernel, rng, state.theta, atoms)
        work.sloped[atoms] = fill_rows(channel, kernel, state.theta, atoms, cells, work.rows[atoms])
        atoms += 1
        if not more:
            break
    weights[atoms - 1] += left  # nothing, but where there is no room
    state.floats[LEFT_OVER] = total * weights[atoms - 1]
    return atoms
