"""Approximate Bayesian computation: simulated databases whose release comes close to the one there is.

alpha is drawn from the prior, a database given it, its statistic and noise; alpha is kept where the simulated
release is within a tolerance of the given one, in Euclidean distance. The tolerance is the quantile of the
distances of simulations made beforehand that leaves the share `sampler.keep` (Pritchard et al. 1999, as Guo,
Barrientos and Pena have it), the same for all chains: every saved draw is then a draw of its own, from about
1 / keep simulations. Burn-in and thinning drop sweeps that do nothing.

Any prior will do that can be drawn from. p2 draws refits of the bootstrap to the first part of the release;
p5 goes on with a chain of data augmentation given the first part, under the prior p1, one sweep for each
simulation. With these, and with p3 and p4, the release is that of the second part. A stated gamma prior
takes both parts, in a distance where each counts by its share of the records. Distances are of means: scores
that the threshold was chosen by are left out, and it is taken for fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.models.dirichlet.alpha import AlphaPrior, gamma_prior, joint_pays, prior_of
from dpmix.models.dirichlet.augmentation import Augmented, AugmentedDirichlet
from dpmix.models.dirichlet.bootstrap import draw_refits, make_refits
from dpmix.models.dirichlet.latent_records import Shapes, make_shapes
from dpmix.models.dirichlet.mean_logarithms import release_generator, simulate_means
from dpmix.models.dirichlet.model import Composition, CompositionPart, parts_of, settings_of, used_parts
from dpmix.numerics.jit import njit
from dpmix.run.model_protocols import ParametricChain

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]

_TOGETHER = 8  # draws from the prior at a time
_FEWEST = 1000  # simulations that the tolerance is told from
_KEPT = 50  # or so many that are within it
_BURN_IN = 1000  # sweeps of the chain given the first part
_RANGE = (1e-250, 1e15)  # of alpha, where margins are drawn beyond doubles
_VAGUE = (1.0, 0.1)  # shape and rate of p1


class KnownParts(NamedTuple):
    """A release of P parts to come close to, and room for another.

    released (P, d); sizes (P,), of parts; scales (P,), of their noise; weights (P,), of their squared
    distances; floor: log a.
    """

    released: Any
    sizes: Any
    scales: Any
    weights: Any
    floor: float
    shapes: Shapes
    means: Any


def _make_known(parts: list[CompositionPart]) -> KnownParts:
    """Return the release of some parts, to simulate by."""
    sizes = np.array([part.size for part in parts])
    d = len(parts[0].released)
    return KnownParts(
        np.array([part.released for part in parts]),
        sizes,
        np.array([part.scale for part in parts]),
        sizes / sizes.sum(),
        math.log(parts[0].threshold),
        make_shapes(d),
        np.empty(d),
    )


@njit
def simulate(known, rng, alphas, tolerance, distances):
    """Simulate a release for each row of alphas (m, d) until one is within `tolerance`; return how many.

    The distances (m,) of those are set; the last one says whether it is within the tolerance.
    """
    for i in range(len(alphas)):
        known.shapes.alpha[:] = alphas[i]
        total = 0.0
        for part in range(len(known.sizes)):
            simulate_means(rng, known.shapes, known.sizes[part], known.floor, known.means)
            for j in range(len(known.means)):
                noise = rng.standard_exponential() - rng.standard_exponential()
                gap = known.means[j] + known.scales[part] * noise - known.released[part, j]
                total += known.weights[part] * gap * gap
        distances[i] = math.sqrt(total)
        if distances[i] <= tolerance:
            return i + 1
    return len(alphas)


# Draws from a prior of alpha, by what has a `state`


class Margins:
    """Draws from gamma margins with a Gaussian copula."""

    def __init__(self, prior: AlphaPrior) -> None:
        self.state: dict[str, NDArray[Any]] = {}
        self._prior = prior
        self._joined = bool(prior.precision.any())

    def draw(self, rng: Generator, alphas: Floats) -> None:
        """Set rows of alphas (m, d) to draws."""
        prior = self._prior
        if self._joined:
            from scipy.special import gammaincinv, ndtr  # late, as it is slow to import

            scores = rng.standard_normal(alphas.shape) @ prior.root.T
            draws = gammaincinv(prior.shape, ndtr(scores))
        else:
            draws = rng.standard_gamma(prior.shape, alphas.shape)
        alphas[:] = np.clip(draws / prior.rate, *_RANGE)


class FirstRefits:
    """Refits of the bootstrap to the first part (p2)."""

    def __init__(self, parts: list[CompositionPart]) -> None:
        self.state: dict[str, NDArray[Any]] = {}
        self._refits = make_refits(parts[:1])

    def draw(self, rng: Generator, alphas: Floats) -> None:
        """Set rows of alphas (m, d) to draws."""
        drawn, tries = draw_refits(self._refits, rng, alphas, 1000 * len(alphas))
        if drawn < len(alphas):
            raise DataError(
                f"model.prior: p2 draws refits of simulated databases, and of {tries} only {drawn} had a "
                "maximum likelihood estimate; use a gamma {shape, rate}, or release with a smaller threshold"
            )


class FirstPosterior:
    """States of a chain given the first part (p5)."""

    def __init__(self, release: Release, parts: list[CompositionPart], rng: Generator) -> None:
        prior = gamma_prior(*_VAGUE, len(parts[0].released))
        model = Augmented(release, parts[:1], prior, None, joint_pays(parts[:1], prior))
        self._chain: AugmentedDirichlet = model.make_chain(rng)
        self._chain.keep(thin=1, skip=_BURN_IN)
        self._chain.proceed(_BURN_IN)
        self.state = self._chain.state

    def draw(self, rng: Generator, alphas: Floats) -> None:
        """Set rows of alphas (m, d) to draws; `rng` is the one that the chain was made with."""
        for row in alphas:
            self._chain.sweep(1)
            row[:] = self._chain.shapes.alpha


def build(spec: RunSpec, release: Release) -> Simulated:
    """Return the model of a spec given a release; see `dpmix.api.task.build`."""
    used = used_parts(spec, release)
    prior = settings_of(spec).prior
    law = prior_of(spec, release) if prior not in ("p2", "p5") else None
    return Simulated(release, used, law, str(prior), spec.sampler.keep)


class Simulated(Composition):
    """Compositions given noisy log moments, by simulation.

    Of the constants, `abc_kept` is the share of simulations to be kept, and `abc_tolerance` the distance
    within which they are.

    Parameters
    ----------
    release : Release
    used : list of Part
        What simulations are to come close to.
    prior : AlphaPrior or None
    name : str
        Which prior to draw from where `prior` is None: ``"p2"`` or ``"p5"``.
    keep : float
    """

    def __init__(
        self, release: Release, used: list[CompositionPart], prior: AlphaPrior | None, name: str, keep: float
    ) -> None:
        self.used, self.prior, self.name, self.release = used, prior, name, release
        self.tolerance = math.inf if keep >= 1.0 else self._tolerance(keep)
        told = {} if keep >= 1.0 else {"abc_tolerance": self.tolerance}
        super().__init__(release, {"abc_kept": keep, **told})

    def source(self, rng: Generator) -> Margins | FirstRefits | FirstPosterior:
        """Return what draws from the prior."""
        if self.prior is not None:
            return Margins(self.prior)
        parts = parts_of(self.release)
        return FirstRefits(parts) if self.name == "p2" else FirstPosterior(self.release, parts, rng)

    def _tolerance(self, keep: float) -> float:
        rng = release_generator(self.release, "tolerance")
        alphas = np.empty((max(_FEWEST, math.ceil(_KEPT / keep)), self.used[0].released.size))
        self.source(rng).draw(rng, alphas)
        distances = np.empty(len(alphas))
        simulate(_make_known(self.used), rng, alphas, -1.0, distances)
        return float(np.quantile(distances, keep))

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> SimulatedChain:
        """Return a chain at its start."""
        return SimulatedChain(self, rng)


class SimulatedChain(ParametricChain):
    """Draws that are kept; `acceptance_rate` is the share of simulations kept so far."""

    model: Simulated

    def __init__(self, model: Simulated, rng: Generator) -> None:
        self._source = model.source(rng)
        self._known = _make_known(model.used)
        self._alphas = np.empty((_TOGETHER, model.components))
        self._distances = np.empty(_TOGETHER)
        self._made = np.zeros(2)  # simulations kept, and all
        super().__init__(model, rng, {"made": self._made, **self._source.state})

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Simulate until one is kept, and draw a record given its alpha."""
        while True:
            self._source.draw(self.rng, self._alphas)
            done = simulate(self._known, self.rng, self._alphas, self.model.tolerance, self._distances)
            self._made[1] += done
            if self._distances[done - 1] <= self.model.tolerance:
                self._made[0] += 1.0
                self.moves[:] = self._made
                self.model.write(row, out, self._alphas[done - 1], self.rng)
                return
