"""The sampler on counts given a histogram: the joint law of all must stay as the prior makes it.

Each restart draws a concentration, clusters, parameters, counts and a release from their prior, exactly.
Sweeps then alternate with fresh releases given the counts (Geweke 2004; restarts make the test exact).
Compared with other draws of the prior: number of clusters, concentration, records' parameters, counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpmix.models.counts.cell_counts import log_likelihood
from dpmix.models.counts_mixture import loops, sweep
from dpmix.models.counts_mixture.state import draw_random_measure
from tests.helpers import counts
from tests.oracles import histograms, joint
from tests.oracles.joint import Model

MODEL = Model(("counts", (3, "laplace", 0.8, -1.0, 3.0)), (0.3, 0.25, 2.5, 1.5), 0.0, (2.0, 2.0))
DRAWN = Model(("smoothed", (3, 0.3, -1.0, 3.0)), (0.3, 0.25, 2.5, 1.5), 0.0, (2.0, 2.0), released=9)
N = 8
MANY = 40  # of moves that take counts along


def p_value(model: Model, restarts: int, rounds: int, sweeps: int, seed: int = 1) -> float:
    """Smallest p-value of what is compared after so many rounds of sweeps and releases."""
    rng = np.random.default_rng([seed, restarts])
    found, prior = [], []
    chain: Any = None
    for _ in range(restarts):
        _, theta, alpha, sizes, y = _draw(rng, model)
        z = histograms.draw_release(rng, model.channel, y, model.released)
        if chain is None:
            chain = counts.histogram(model, z, N).make_chain(rng)
        _release(chain, model, z)
        state = chain._state
        state.clusters[0] = len(sizes)
        state.sizes[: len(sizes)] = sizes
        state.theta[:, : len(sizes)] = theta
        state.floats[0] = alpha
        chain._latent[:] = histograms.count(model.channel, y)
        chain.keep(10**9, 0)
        for turn in range(rounds):
            chain.proceed((turn + 1) * sweeps)
            _release_anew(chain, model, rng)
        k = int(state.clusters[0])
        found.append(_say(state.sizes[:k], state.theta[:, :k], state.floats[0], chain._latent))
    for _ in range(4 * restarts):
        _, theta, alpha, sizes, y = _draw(rng, model)
        prior.append(_say(sizes, theta, alpha, histograms.count(model.channel, y)))
    pairs = zip(np.array(found).T, np.array(prior).T, strict=True)
    return min(float(stats.ks_2samp(one, other).pvalue) for one, other in pairs)


def p_value_along(model: Model, restarts: int, rounds: int, seed: int = 1) -> float:
    """Smallest p-value where P moves with the counts along, and nothing else but the release.

    Compared are the log likelihood of the release given the counts, how far these are from their means,
    counts, masses of the bins and the number of atoms of some weight.
    """
    rng = np.random.default_rng([seed, restarts])
    chain = counts.histogram(model, np.zeros(model.released or 3), MANY).make_chain(rng)
    found = [_along(chain, model, rng, rounds) for _ in range(restarts)]
    prior = [_along(chain, model, rng, 0) for _ in range(4 * restarts)]
    pairs = zip(np.array(found).T, np.array(prior).T, strict=True)
    return min(float(stats.ks_2samp(one, other).pvalue) for one, other in pairs)


def _along(chain: Any, model: Model, rng: np.random.Generator, rounds: int) -> list[float]:
    """Draw P, counts and a release from their prior, and move P and the release so many times."""
    of, state, work, cells = chain.model, chain._state, chain._work, chain._cells
    assert isinstance(model.alpha, tuple)
    state.floats[0] = rng.gamma(model.alpha[0]) / model.alpha[1]
    state.clusters[0] = 0
    atoms = draw_random_measure(of.channel, of.kernel, rng, state, cells, work, float(MANY))
    loops.mix(work.weights, work.rows, atoms, work.mixed)
    chain._latent[:] = rng.multinomial(MANY, work.mixed / work.mixed.sum())
    _release_anew(chain, model, rng)
    for turn in range(rounds):
        if turn:
            _release_anew(chain, model, rng)
        chain._source.along[0] = 1
        atoms = sweep._move_measure(
            of.channel, of.kernel, rng, state, cells, work, atoms, float(MANY), 0.0, 3
        )
        chain._source.along[0] = 0
    held, mass = chain._latent, work.mixed
    fit = log_likelihood(chain._source.release, mass, held)
    apart = float(np.sum((held - MANY * mass) ** 2 / np.maximum(MANY * mass, 1e-3)))
    return [fit, apart, *held.tolist(), *mass.tolist(), float(np.sum(work.weights[:atoms] > 0.05))]


def _release_anew(chain: Any, model: Model, rng: np.random.Generator) -> None:
    """Draw a release given the counts."""
    lo, width = model.channel[1][-2:]
    places = lo + width * (np.repeat(np.arange(3), chain._latent) + 0.5) / 3
    _release(chain, model, histograms.draw_release(rng, model.channel, places, model.released))


def _draw(rng: np.random.Generator, model: Model) -> tuple[Any, ...]:
    labels, theta, alpha = joint.draw_state(rng, model, N)
    y = model.law.value(joint.draw_latent(rng, model, labels, theta, 1)[:, 0])
    return labels, theta, alpha, np.bincount(labels), y


def _release(chain: Any, model: Model, z: NDArray[np.float64]) -> None:
    """Put another release into the chain's source."""
    smoothed = model.channel[0] == "smoothed"
    chain._source.release.released[:] = histograms.count(model.channel, z) if smoothed else z


def _say(sizes: Any, theta: Any, alpha: float, held: Any) -> list[float]:
    mean = float(np.sum(sizes * theta[0]) / np.sum(sizes))
    spread = float(np.sum(sizes * np.log(theta[1])) / np.sum(sizes))
    return [len(sizes), alpha, mean, spread, *held.tolist(), float(np.sum(sizes**2))]
