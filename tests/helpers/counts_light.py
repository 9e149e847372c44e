"""The draw of the concentration and of all that is light, by itself: where cells say nothing the prior stays.

``python -m tests.helpers.counts_light FAULT`` plants one (none where it is empty), runs it in the
interpreter, and prints the smallest p-value.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import stats

SOURCE = "models/counts_mixture/atom_moves.py"
FAULTS = {
    "sticks without their lengths": (SOURCE, "mixing.rate - math.log(left)", "mixing.rate"),
    "one stick too many": (
        SOURCE,
        "standard_gamma(mixing.shape + sticks)",
        "standard_gamma(mixing.shape + sticks + 1)",
    ),
    "old atoms kept": (SOURCE, "1 if h >= atoms else 0", "1 if h >= sticks else 0"),
}
"""File, text, and what is put in its place."""
SHAPE, RATE, TOTAL, TAIL = 3.0, 2.0, 300.0, 1e-3


def p_value(restarts: int, moves: int, seed: int = 1) -> float:
    """Smallest p-value of the concentration and of what is seen of the atoms, after some moves."""
    from dpmix.kernels import NormalNIG
    from dpmix.mechanisms.laplace.channel import LaplaceNoise
    from dpmix.models.counts_mixture import masses
    from dpmix.models.counts_mixture.atom_moves import redraw_light
    from dpmix.models.counts_mixture.mixture_sweep import make_work
    from dpmix.numerics import loops
    from dpmix.numerics.mixing import PitmanYor

    rng = np.random.default_rng([seed, moves])
    kernel, channel, room = NormalNIG(0.0, 0.2, 3.0, 2.0), LaplaceNoise(1.0), 200
    mixing = PitmanYor(1.0, 0.0, SHAPE, RATE)
    cells = masses.make_cells(np.array([0.5]), np.zeros(0))
    work = make_work(kernel, room, 2)  # counts of zero
    theta = np.ones((2, room))
    found, prior = [], []
    for restart in range(4 * restarts):
        alpha = rng.gamma(SHAPE) / RATE
        atoms, left = 0, 1.0
        while left > 0.0:
            share = rng.beta(1.0, alpha) if left * TOTAL > TAIL and atoms < room - 1 else 1.0
            work.weights[atoms], left = left * share, left * (1.0 - share)
            variance = kernel.b / rng.gamma(kernel.a)
            theta[0, atoms] = np.sqrt(variance / kernel.lam) * rng.standard_normal()
            theta[1, atoms] = variance
            work.sloped[atoms] = masses.fill_rows(channel, kernel, theta, atoms, cells, work.rows[atoms])
            atoms += 1
        if restart >= restarts:
            prior.append(_say(work.weights[:atoms], theta, alpha))
            continue
        loops.mix(work.weights, work.rows, atoms, work.mixed)
        for _ in range(moves):
            atoms, alpha = redraw_light(
                channel, kernel, mixing, rng, theta, cells, work, atoms, TOTAL, TAIL, alpha
            )
        loops.mix(work.weights, work.rows, atoms, work.proposed)
        whole = float(np.sum(work.weights[:atoms]))
        if not (np.allclose(work.proposed, work.mixed, rtol=1e-9, atol=0.0) and abs(whole - 1.0) < 1e-9):
            return 0.0
        found.append(_say(work.weights[:atoms], theta, alpha))
    pairs = zip(np.array(found).T, np.array(prior).T, strict=True)
    return min(float(stats.ks_2samp(one, other).pvalue) for one, other in pairs)


def _say(weights: Any, theta: Any, alpha: float) -> list[float]:
    heavy = int(np.argmax(weights))
    return [
        alpha,
        float(len(weights)),
        float(np.sum(weights**2)),
        float(np.sum(weights > 0.01)),
        float(theta[0, heavy]),
        float(theta[1, heavy]),
    ]


def main(fault: str, restarts: int = 400, moves: int = 4) -> float:
    """Return the smallest p-value, with a fault of that name."""
    from tests.helpers.counts_faults import plant

    if fault:
        plant(*FAULTS[fault])
    return p_value(restarts, moves)


if __name__ == "__main__":
    print(main(sys.argv[1]))
