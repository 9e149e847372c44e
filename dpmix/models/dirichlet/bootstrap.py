"""The parametric bootstrap of a release of compositions (Guo, Barrientos and Pena, Algorithm 2).

A draw takes noise from the release, such that what is left is a statistic that data can have; simulates a
database given the estimate from that; and is the estimate from the censored statistic of the simulated one.
Draws are independent. Where censoring leaves that statistic out of the range of uncensored ones there is no
estimate, and the draw is made anew. Of a release in two parts, noise is taken from each, and the means are
pooled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix._jit import njit
from dpmix.errors import DataError
from dpmix.models.base import ParametricChain
from dpmix.models.dirichlet.frame import Composition, Part, parts_of
from dpmix.models.dirichlet.law import Shapes, make_shapes
from dpmix.models.dirichlet.mle import dirichlet_mle
from dpmix.models.dirichlet.range_noise import RangeNoise, draw_statistic, make_range_noise
from dpmix.models.dirichlet.seeds import release_generator
from dpmix.models.dirichlet.simulated import simulate_means
from dpmix.release import Release
from dpmix.spec.run import RunSpec

__all__ = ["Bootstrap", "Refits", "build", "draw_refits", "make_refits"]

Floats = NDArray[np.float64]

_FEWEST, _MOST = 20, 200  # draws that a share is told from
_RECORDS = 2_000_000  # that these draws may simulate


class Refits(NamedTuple):
    """What refits are made from.

    Noise of the `first` part of records and of the `second`, the same again where there is one; `share` of
    records in the first; their number `size`; `floor`, log a; and room.
    """

    first: RangeNoise
    second: RangeNoise
    share: float
    size: int
    floor: float
    shapes: Shapes
    means: Floats
    other: Floats


def make_refits(parts: list[Part]) -> Refits:
    """Prepare draws from the parts of a release."""
    first, last = parts[0], parts[-1]
    size = sum(part.size for part in parts)
    d = len(first.released)
    return Refits(
        make_range_noise(first.released, first.scale),
        make_range_noise(last.released, last.scale),
        first.size / size,
        size,
        math.log(first.threshold),
        make_shapes(d),
        np.empty(d),
        np.empty(d),
    )


@njit
def draw_refits(refits, rng, alphas, most):
    """Draw rows of alphas (m, d), until all are or `most` refits were tried; return how many rows, and tries.

    Rows not drawn are NaN.
    """
    means, shapes = refits.means, refits.shapes
    tries = 0
    alphas[:] = math.nan
    drawn = 0
    while drawn < len(alphas) and tries < most:
        tries += 1
        draw_statistic(refits.first, rng, means)
        if refits.share < 1.0:
            draw_statistic(refits.second, rng, refits.other)
            for j in range(len(means)):
                means[j] = refits.share * means[j] + (1.0 - refits.share) * refits.other[j]
        if not dirichlet_mle(means, shapes.alpha):
            continue  # by rounding alone
        simulate_means(rng, shapes, refits.size, refits.floor, means)
        if dirichlet_mle(means, alphas[drawn]):
            drawn += 1
    return drawn, tries


def build(spec: RunSpec, release: Release) -> Bootstrap:
    """Return the model of a spec given a release; see `dpmix.models.registry.build`."""
    return Bootstrap(release, parts_of(release))


class Bootstrap(Composition):
    """The bootstrap given noisy log moments: draws of the estimate of alpha, not of a posterior.

    The constant `bootstrap_redrawn` is the share of refits without an estimate, from draws made beforehand.

    Parameters
    ----------
    release : Release
    parts : list of Part

    Raises
    ------
    DataError
        When hardly any refit has an estimate.
    """

    def __init__(self, release: Release, parts: list[Part]) -> None:
        self.parts = parts
        trial = make_refits(parts)
        alphas = np.empty((max(_FEWEST, min(_MOST, _RECORDS // trial.size)), len(trial.means)))
        most = 10 * len(alphas)
        drawn, tries = draw_refits(trial, release_generator(release, "bootstrap"), alphas, most)
        if drawn == 0:
            raise DataError(
                f"the threshold {parts[0].threshold:g} censors so much that of {most} simulated databases "
                "none had a maximum likelihood estimate; use sampler.kind data_augmentation, or release with "
                "a smaller threshold"
            )
        super().__init__(release, {"bootstrap_redrawn": 1.0 - drawn / tries})

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> BootstrapChain:
        """Return a chain of independent draws."""
        return BootstrapChain(self, rng)


class BootstrapChain(ParametricChain):
    """Independent draws of the estimate; `acceptance_rate` is the share of refits so far that have one."""

    model: Bootstrap

    def __init__(self, model: Bootstrap, rng: Generator) -> None:
        self._refits = make_refits(model.parts)
        self._alpha = np.empty((1, model.components))
        self._made = np.zeros(2)  # refits with an estimate, and all
        super().__init__(model, rng, {"made": self._made})

    def sweep(self, count: int) -> None:
        """Do nothing: draws are independent."""

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw an estimate, and a record given it."""
        self._made += draw_refits(self._refits, self.rng, self._alpha, 1_000_000)
        self.moves[:] = self._made
        self.model.write(row, out, self._alpha[0], self.rng)
