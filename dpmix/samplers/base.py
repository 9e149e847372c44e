"""One sweep of an algorithm, and the loop over sweeps that every algorithm shares."""

from __future__ import annotations

from dpmix._jit import dispatch, njit
from dpmix.mixing import draw_concentration
from dpmix.samplers.record import record
from dpmix.samplers.state import ACCEPTED, ADAPTING, CONCENTRATION, DONE, OCCUPIED, PROPOSED

__all__ = ["FULL", "STEP", "move_concentration", "run", "sweep"]

FULL = 2  # what `run` returns when the output has no room for a draw
# plan, an integer array: sweeps done, sweeps between saved draws, sweeps before the first, draws saved in
# the output, whether the last sweep has still to be saved
STEP, THIN, SKIP, SAVED, PENDING = 0, 1, 2, 3, 4


@dispatch(on=2)
def sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    """Move the state by one sweep that leaves the posterior invariant; DONE, or GROW to be called again."""


@njit
def move_concentration(state, mixing, rng):
    """Move the concentration given the present partition."""
    alpha, k = state.floats[CONCENTRATION], state.ints[OCCUPIED]
    state.floats[CONCENTRATION] = draw_concentration(rng, mixing, alpha, len(state.labels), k)


@njit
def run(algorithm, executor, state, channel, kernel, mixing, rng, output, plan, until):
    """Sweep until plan[STEP] is `until`, saving every plan[THIN]-th state after the first plan[SKIP].

    Return DONE; or GROW or FULL, after which the caller makes room and calls again: the draws are the same.
    """
    while plan[STEP] < until or plan[PENDING] == 1:
        if plan[PENDING] == 0:
            state.tuning[ADAPTING] = 1.0 if plan[STEP] < plan[SKIP] else 0.0
            status = sweep(algorithm, executor, state, channel, kernel, mixing, rng)
            if status != DONE:
                return status
            plan[STEP] += 1
            if plan[STEP] > plan[SKIP] and (plan[STEP] - plan[SKIP]) % plan[THIN] == 0:
                plan[PENDING] = 1
        if plan[PENDING] == 1:
            if plan[SAVED] == len(output.n_clusters):
                return FULL
            if not record(state, channel, kernel, mixing, rng, output, plan[SAVED]):
                return FULL
            plan[SAVED] += 1
            plan[PENDING] = 0
            state.floats[ACCEPTED] = 0.0
            state.floats[PROPOSED] = 0.0
    return DONE


run_plain = getattr(run, "py_func", run)  # the same loop in plain Python, over sweeps that run on threads
