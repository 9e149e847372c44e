"""The scan: every record in turn is offered a component given all others, by what an algorithm weighs.

An algorithm that draws the component of a record from weights states what is kept for a block of records
(`open_desk`, `lay_out`), what the record leaves behind (`leave`, and `close` where nobody is left), the
weights of the places it may go to (`weigh`), what becomes of an empty one that it takes (`furnish`), and what
it adds to the one it is in (`join`). Any other algorithm states its own `visit`.
"""

from __future__ import annotations

from dpmix.mechanisms.channels.all_channels import augment
from dpmix.numerics.jit import dispatch, inlined, njit
from dpmix.samplers.parameters import update_parameters
from dpmix.samplers.state import DONE, GROW, sort_by_size
from dpmix.samplers.sweeps import by_sweeps, move_concentration

__all__ = [
    "close",
    "furnish",
    "join",
    "lay_out",
    "leave",
    "open_desk",
    "reallocate",
    "room",
    "scan",
    "sweep_by_scan",
    "visit",
    "weigh",
]


@dispatch()
def room(algorithm):
    """Return how many records make a block, and how many slots it may need besides the occupied ones."""


@dispatch()
def open_desk(algorithm, state, kernel):
    """Return the arrays that a scan works with; its `weights` (S,) are by position."""


@dispatch()
def lay_out(algorithm, desk, state, channel, kernel, mixing, rng, start, stop):
    """Prepare the desk for the records start..stop."""


@dispatch()
def visit(algorithm, desk, state, channel, kernel, mixing, rng, i):
    """Move record i by a step that leaves its conditional distribution invariant."""


@dispatch()
def leave(algorithm, desk, state, kernel, i):
    """Take record i out of what is kept of its component, whose count is already without it."""


@dispatch()
def close(algorithm, desk, state, mixing, rng, i):
    """Move the component of record i, empty without it, behind the occupied ones."""


@dispatch()
def weigh(algorithm, desk, state, channel, kernel, mixing, i):
    """Set ``desk.weights`` to cumulative weights for record i, by position; return the last position."""


@dispatch()
def furnish(algorithm, desk, state, channel, kernel, mixing, rng, i, chosen):
    """Make the empty component that record i has chosen the first behind the occupied ones, and ready."""


@dispatch()
def join(algorithm, desk, state, kernel, i, h):
    """Add record i to what is kept of component h, whose count is already with it."""


@inlined
def _choose(rng, weights, last):
    """Draw a position by the cumulative weights up to `last`."""
    u = rng.random() * weights[last]
    chosen = 0
    while chosen < last and weights[chosen] <= u:
        chosen += 1
    return chosen


@inlined
def reallocate(algorithm, desk, state, channel, kernel, mixing, rng, i):
    """Draw the component of record i given all others."""
    now = state.now
    own = state.labels[i]
    state.counts[own] -= 1
    leave(algorithm, desk, state, kernel, i)
    if state.counts[own] == 0:
        now.occupied -= 1
        close(algorithm, desk, state, mixing, rng, i)
    last = weigh(algorithm, desk, state, channel, kernel, mixing, i)
    chosen = _choose(rng, desk.weights, last)
    if chosen >= now.occupied:
        furnish(algorithm, desk, state, channel, kernel, mixing, rng, i, chosen)
        chosen = now.occupied
        now.occupied += 1
    h = state.order[chosen]
    state.counts[h] += 1
    state.labels[i] = h
    join(algorithm, desk, state, kernel, i, h)


@njit
def scan(algorithm, state, channel, kernel, mixing, rng):
    """Visit every record in turn; GROW when slots run out, to go on from there."""
    now, n = state.now, len(state.labels)
    block, slots = room(algorithm)
    desk = open_desk(algorithm, state, kernel)
    while now.position < n:
        if now.occupied + slots > len(state.order):
            return GROW
        start = now.position
        stop = min(start + block, n)
        lay_out(algorithm, desk, state, channel, kernel, mixing, rng, start, stop)
        for i in range(start, stop):
            visit(algorithm, desk, state, channel, kernel, mixing, rng, i)
        now.position = stop
    now.position = 0
    return DONE


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if scan(algorithm, state, channel, kernel, mixing, rng) == GROW:
        return GROW
    sort_by_size(state)
    update_parameters(executor, state, state.z, channel, kernel, rng)
    augment(channel, kernel, rng, state.z, state.theta, state.labels, state.order, state.now.occupied)
    move_concentration(state, mixing, rng)
    return DONE


def sweep_by_scan(algorithm: type) -> None:
    """Let an algorithm sweep by a scan and moves of the parameters and the concentration."""
    by_sweeps(_sweep, algorithm)
