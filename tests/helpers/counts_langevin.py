"""Langevin steps with latent counts along, by themselves, against enumeration of the counts.

One atom of weight 1 and n records in 4 bins: a state is the atom's mean and variance and the counts c, whose
law is G0 times Mult(c; masses of the bins) times the release's. Its moments are sums over all c of integrals
over the parameters, by SciPy and NumPy alone. Steps have no damping, so that they are long, and the release
says much: slopes and information on the way back are then far from those on the way there.

``python -m tests.helpers.counts_langevin FAULT DRAWS`` plants one (none where it is empty) and prints the
largest gap.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tests.oracles.joint import Model
from tests.oracles.mc import batch_means

RECORDS, EDGES = 12, np.linspace(-1.0, 3.0, 5)
BASE = (0.3, 0.25, 2.5, 1.5)  # mu0, lam, a, b
MODEL = Model(("smoothed", (4, 0.02, -1.0, 4.0)), BASE, 0.0, 1.0, released=12)
RELEASED = np.array([-0.5, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 1.1, 1.2, 1.3, 1.4, 2.5])
SOURCE = "models/counts_mixture/source.py"
FAULTS = {
    "slopes of the counts before": (
        SOURCE,
        "    counts = source.moved if after else source.held.counts\n",
        "    counts = source.held.counts\n",
    ),
    "metric without the information": (
        SOURCE,
        "        factor[j] = n * root\n",
        "        factor[j] = n * root * (0.7 if after else 1.0)\n",
    ),
}

Array = NDArray[np.float64]


def exact() -> tuple[Array, Array]:
    """Return E[mean, mean^2, log variance, its square] and E[c, c^2] by bins."""
    mu0, lam, a, b = BASE
    log_variance = np.linspace(-6.0, 6.0, 241)[:, None]
    variance = np.exp(log_variance)
    # a normal's own places, wide enough for every variance
    mean = mu0 + np.sqrt(variance / lam) * np.linspace(-6.0, 6.0, 401)
    weight = -a * log_variance - b / variance - 0.5 * lam * (mean - mu0) ** 2 / variance
    steps = np.sqrt(variance / lam)  # of the places
    weight = np.exp(weight) / np.sqrt(variance) * steps
    inner = special.ndtr((EDGES[1:-1, None, None] - mean) / np.sqrt(variance))
    below = np.concatenate([np.zeros((1, *mean.shape)), inner, np.ones((1, *mean.shape))])
    masses = np.diff(below, axis=0)
    log_masses = np.log(np.maximum(masses, 1e-300))
    sums, whole = np.zeros(12), 0.0
    bins, weight_of_uniform = MODEL.channel[1][:2]
    seen = np.histogram(RELEASED, EDGES)[0]
    for c in itertools.product(range(RECORDS + 1), repeat=3):
        if sum(c) > RECORDS:
            continue
        held = np.array([*c, RECORDS - sum(c)])
        density = (1.0 - weight_of_uniform) * held / RECORDS + weight_of_uniform / bins
        fit = float(np.sum(seen * np.log(density)))
        log_law = special.gammaln(RECORDS + 1.0) - special.gammaln(held + 1.0).sum() + fit
        each = weight * np.exp(log_law + np.tensordot(held, log_masses, 1))
        total = float(each.sum())
        parts = [mean, mean**2, log_variance, log_variance**2]
        sums[:4] += [float((each * part).sum()) for part in parts]
        sums[4:] += total * np.concatenate([held, held**2])
        whole += total
    return sums[:4] / whole, sums[4:] / whole


def largest_gap(draws: int, seed: int = 1) -> float:
    """Largest gap of the chain's moments to the exact ones, in standard errors by batch means."""
    found = _walk(draws, seed)
    means, counts = exact()
    average, error = batch_means(found, 100)
    return float(np.max(np.abs(average - np.concatenate([means, counts])) / error))


def _walk(draws: int, seed: int) -> Array:
    from dpmix.models.counts_mixture.atom_moves import langevin
    from dpmix.models.counts_mixture.masses import fill_rows
    from dpmix.models.counts_mixture.source import renew
    from dpmix.numerics.jit import njit
    from dpmix.numerics.loops import mix
    from tests.helpers import counts

    @njit
    def go(channel: Any, kernel: Any, rng: Any, theta: Any, cells: Any, work: Any, found: Any) -> None:
        held = work.source.held.counts
        for row in found:
            for _ in range(2):
                work.source.along[0] = 1
                work.chosen[0] = 0
                langevin(channel, kernel, rng, theta, cells, work, 1, 0.5, 0.1)
                work.source.along[0] = 0
            renew(work.source, rng, work, 1.0)
            row[0], row[1] = theta[0, 0], theta[0, 0] ** 2
            row[2] = np.log(theta[1, 0])
            row[3] = row[2] * row[2]
            for j in range(4):
                row[4 + j], row[8 + j] = held[j], held[j] * held[j]

    rng = np.random.default_rng([seed, draws])
    chain = counts.histogram(MODEL, RELEASED, RECORDS).make_chain(rng)
    of, work, theta = chain.model, chain._work, chain._state.theta
    theta[:, 0] = 0.8, 1.0
    work.weights[0] = 1.0
    work.sloped[0] = fill_rows(of.channel, of.kernel, theta, 0, chain._cells, work.rows[0])
    mix(work.weights, work.rows, 1, work.mixed)
    renew(work.source, rng, work, 1.0)
    found = np.zeros((draws, 12))
    go(of.channel, of.kernel, rng, theta, chain._cells, work, found)
    return found


def main(fault: str, draws: int) -> float:
    """Return the largest gap given a smoothed histogram, with a fault of that name, or none."""
    from tests.helpers.counts_faults import plant

    if fault:
        plant(*FAULTS[fault])
    return largest_gap(draws)


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2])))
