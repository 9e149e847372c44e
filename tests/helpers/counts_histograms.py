"""The sampler on counts given a histogram: the joint law of all must stay as the prior makes it.

Each restart draws a concentration, clusters, parameters, counts and a release from their prior, exactly.
Sweeps then alternate with fresh releases given the counts (Geweke 2004; restarts make the test exact).
Compared with other draws of the prior: number of clusters, concentration, records' parameters, counts; place
and scale of the base measure, which is learned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpmix.kernels import NormalNIG
from dpmix.kernels.learned_base import LearnedBase, learned_base, with_base
from dpmix.mechanisms.channels.count_likelihoods import log_likelihood
from dpmix.models.counts_mixture import mixture_sweep
from dpmix.models.counts_mixture.mixture_sweep import draw_random_measure
from dpmix.numerics import loops
from tests.helpers import counts
from tests.oracles import histograms, joint
from tests.oracles.joint import Model

MODEL = Model(("counts", (3, "laplace", 0.8, -1.0, 3.0)), (0.3, 0.25, 2.5, 1.5), 0.0, (2.0, 2.0))
DRAWN = Model(("smoothed", (3, 0.3, -1.0, 3.0)), (0.3, 0.25, 2.5, 1.5), 0.0, (2.0, 2.0), released=9)
N = 8
MANY = 40  # of moves that take counts along
SPREAD, SHAPE = 1.2, 2.5  # of the priors of the base measure's place and scale


def p_value(model: Model, restarts: int, rounds: int, sweeps: int, seed: int = 1) -> float:
    """Smallest p-value of what is compared after so many rounds of sweeps and releases."""
    rng = np.random.default_rng([seed, restarts])
    found, prior = [], []
    chain: Any = None
    for _ in range(restarts):
        base, theta, alpha, sizes, y = _draw(rng, model)
        z = histograms.draw_release(rng, model.channel, y, model.released)
        if chain is None:
            chain = _chain(model, z, N, rng)
        _release(chain, model, z)
        state = chain._state
        chain._learned.values[:] = base
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
        base = chain._learned.values
        found.append(_say(base, state.sizes[:k], state.theta[:, :k], state.floats[0], chain._latent))
    for _ in range(4 * restarts):
        base, theta, alpha, sizes, y = _draw(rng, model)
        prior.append(_say(base, sizes, theta, alpha, histograms.count(model.channel, y)))
    pairs = zip(np.array(found).T, np.array(prior).T, strict=True)
    return min(float(stats.ks_2samp(one, other).pvalue) for one, other in pairs)


def p_value_along(model: Model, restarts: int, rounds: int, seed: int = 1) -> float:
    """Smallest p-value where P moves with the counts along, and nothing else but the release.

    Compared are the log likelihood of the release given the counts, how far these are from their means,
    counts, masses of the bins, the number of atoms of some weight, concentration, and place and scale of the
    base measure.
    """
    rng = np.random.default_rng([seed, restarts])
    chain = _chain(model, np.zeros(model.released or 3), MANY, rng)
    found = [_along(chain, model, rng, rounds) for _ in range(restarts)]
    prior = [_along(chain, model, rng, 0) for _ in range(4 * restarts)]
    pairs = zip(np.array(found).T, np.array(prior).T, strict=True)
    return min(float(stats.ks_2samp(one, other).pvalue) for one, other in pairs)


def _along(chain: Any, model: Model, rng: np.random.Generator, rounds: int) -> list[float]:
    """Draw P, counts and a release from their prior, and move P and the release so many times."""
    of, state, work, cells = chain.model, chain._state, chain._work, chain._cells
    assert isinstance(model.alpha, tuple)
    learned = chain._learned
    learned.values[:] = draw_base(rng, learned)
    state.floats[0] = rng.gamma(model.alpha[0]) / model.alpha[1]
    state.clusters[0] = 0
    kernel = with_base(of.kernel, learned.values)
    atoms = draw_random_measure(of.channel, kernel, rng, state, cells, work, float(MANY))
    loops.mix(work.weights, work.rows, atoms, work.mixed)
    chain._latent[:] = rng.multinomial(MANY, work.mixed / work.mixed.sum())
    _release_anew(chain, model, rng)
    for turn in range(rounds):
        if turn:
            _release_anew(chain, model, rng)
        chain._source.along[0] = 1
        parts = of.channel, of.kernel, learned, of.mixing, rng, state, cells, work
        atoms = mixture_sweep._move_rounds(*parts, atoms, float(MANY), 0.0, 3, 1, True)
        chain._source.along[0] = 0
    held, mass = chain._latent, work.mixed
    fit = log_likelihood(chain._source.release, mass, held)
    apart = float(np.sum((held - MANY * mass) ** 2 / np.maximum(MANY * mass, 1e-3)))
    heavy = float(np.sum(work.weights[:atoms] > 0.05))
    return [fit, apart, *held.tolist(), *mass.tolist(), heavy, state.floats[0], *learned.values[:, 0]]


def _chain(model: Model, z: NDArray[np.float64], n: int, rng: np.random.Generator) -> Any:
    """Return a chain of a base measure that is learned."""
    learned = learned_base(NormalNIG(*model.base), np.array([SPREAD]), SHAPE)
    return replace(counts.histogram(model, z, n), learned=learned).make_chain(rng)


def draw_base(rng: np.random.Generator, learned: LearnedBase) -> NDArray[np.float64]:
    """Draw location and scale from their prior, (2, 1)."""
    location = learned.centre + learned.spread * rng.standard_normal(1)
    return np.stack([location, rng.gamma(learned.shape, 1.0 / learned.rate)])


def _release_anew(chain: Any, model: Model, rng: np.random.Generator) -> None:
    """Draw a release given the counts."""
    lo, width = model.channel[1][-2:]
    places = lo + width * (np.repeat(np.arange(3), chain._latent) + 0.5) / 3
    _release(chain, model, histograms.draw_release(rng, model.channel, places, model.released))


def _draw(rng: np.random.Generator, model: Model) -> tuple[Any, ...]:
    base = draw_base(rng, learned_base(NormalNIG(*model.base), np.array([SPREAD]), SHAPE))
    now = replace(model, base=(float(base[0, 0]), *model.base[1:3], float(base[1, 0])))
    labels, theta, alpha = joint.draw_state(rng, now, N)
    y = now.law.value(joint.draw_latent(rng, now, labels, theta, 1)[:, 0])
    return base, theta, alpha, np.bincount(labels), y


def _release(chain: Any, model: Model, z: NDArray[np.float64]) -> None:
    """Put another release into the chain's source."""
    smoothed = model.channel[0] == "smoothed"
    chain._source.release.released[:] = histograms.count(model.channel, z) if smoothed else z


def _say(base: Any, sizes: Any, theta: Any, alpha: float, held: Any) -> list[float]:
    mean = float(np.sum(sizes * theta[0]) / np.sum(sizes))
    spread = float(np.sum(sizes * np.log(theta[1])) / np.sum(sizes))
    squares = float(np.sum(sizes**2))
    return [len(sizes), alpha, mean, spread, *held.tolist(), squares, *base[:, 0]]
