"""Moves of a learned base measure with all atoms along: each acceptance against its target's densities.

A move tells the adaptation of its step with which probability it is accepted. That has to be min(1, r), r the
ratio of prior densities of place and scale, times that of g0 for all atoms, times the Jacobian of carrying
these along, times what counts or release say: all by SciPy from what was proposed, with no draw to compare.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy import stats

from dpmix.kernels.learned_base import with_base
from dpmix.models.counts_mixture import mixture_sweep
from dpmix.models.counts_mixture.mixture_sweep import draw_random_measure
from dpmix.numerics import loops
from tests.helpers import counts_histograms as joint

EDGES = np.linspace(-1.0, 2.0, 4)  # of a width of 3


def largest_gap(moves: int = 60, seed: int = 1) -> tuple[float, int]:
    """Return the largest gap between an acceptance and what it has to be, and how many lie inside (0, 1)."""
    rng = np.random.default_rng([seed, moves])
    chain: Any = joint._chain(joint.MODEL, np.zeros(3), joint.MANY, rng)
    worst, inside = 0.0, 0
    for move in range(moves):
        found, meant = acceptance(chain, rng, along=move % 2 == 0)
        worst = max(worst, abs(found - meant))
        inside += 1e-6 < meant < 1.0
    return worst, inside


def acceptance(chain: Any, rng: np.random.Generator, *, along: bool) -> tuple[float, float]:
    """Draw a state, move its base measure, and return the acceptance and what it has to be."""
    of, state, work, source, learned = chain.model, chain._state, chain._work, chain._source, chain._learned
    (location,), (scale,) = learned.values[:] = joint.draw_base(rng, learned)
    state.floats[0], state.clusters[0] = rng.gamma(2.0) / 2.0, 0
    kernel = with_base(of.kernel, learned.values)
    atoms = draw_random_measure(of.channel, kernel, rng, state, chain._cells, work, float(joint.MANY))
    loops.mix(work.weights, work.rows, atoms, work.mixed)
    held = rng.multinomial(joint.MANY, work.mixed / work.mixed.sum())
    chain._latent[:] = work.counts[:] = held
    source.release.released[:] = z = held + rng.laplace(0.0, 0.8, 3)
    weights, theta = work.weights[:atoms].copy(), state.theta[:, :atoms].copy()
    learned.steps[:] = 0.0
    source.along[0] = int(along)
    twin = copy.deepcopy(rng)
    mixture_sweep.move_base_along(of.channel, kernel, learned, rng, state, chain._cells, work, atoms, True)
    source.along[0] = 0
    row, _, step = int(2.0 * twin.random()), twin.random(), twin.standard_normal()
    after = (location + step * learned.spread[0], scale) if row == 0 else (location, scale * np.exp(step))
    gone = theta.copy()
    gone[1] *= after[1] / scale
    gone[0] = after[0] + np.sqrt(after[1] / scale) * (theta[0] - location)
    ratio = log_prior(learned, *after) - log_prior(learned, location, scale)
    ratio += log_atoms(of.kernel, *after, gone) - log_atoms(of.kernel, location, scale, theta)
    ratio += 1.5 * atoms * np.log(after[1] / scale)
    if along:
        ratio += stats.laplace.logpdf(z, source.moved, 0.8).sum() - stats.laplace.logpdf(z, held, 0.8).sum()
    else:
        ratio += held @ (np.log(masses(weights, gone)) - np.log(masses(weights, theta)))
    return float(learned.steps[row]) + 0.4, float(np.exp(min(ratio, 0.0)))


def log_prior(learned: Any, location: float, scale: float) -> float:
    """Return the log density of place and of the scale's logarithm."""
    place = stats.norm.logpdf(location, learned.centre[0], learned.spread[0])
    rate = learned.rate[0]
    return float(place + stats.gamma.logpdf(scale, learned.shape, scale=1.0 / rate) + np.log(scale))


def log_atoms(kernel: Any, location: float, scale: float, theta: Any) -> float:
    """Return the log density of all atoms under a base measure of this place and scale."""
    means = stats.norm.logpdf(theta[0], location, np.sqrt(theta[1] / kernel.lam))
    return float(np.sum(means + stats.invgamma.logpdf(theta[1], kernel.a, scale=scale)))


def masses(weights: Any, theta: Any) -> Any:
    """Return the masses of the bins, those at the ends with the tails."""
    inner = stats.norm.cdf(EDGES[1:-1, None], theta[0], np.sqrt(theta[1]))
    return np.diff(np.vstack([np.zeros(theta.shape[1]), inner, np.ones(theta.shape[1])]), axis=0) @ weights
