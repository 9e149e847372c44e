"""Category probabilities given a released posterior, by accounting for the mechanism that released it.

p ~ Dirichlet(prior), the counts c of n records are multinomial, and the release has a law given c
(`dpmix.models.multinomial.release_law`). With p integrated out c has finitely many values. Where they can be
listed, draws are independent; else they follow a Markov chain over c: by the moves of
`dpmix.models.counts.latent_counts` under noise on the counts, by the exchange algorithm
(`dpmix.models.multinomial.loops`) under the exponential
mechanism, whose normalizers are then never computed. Given c, p is Dirichlet(prior + c).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.mechanisms.laws.every import expect
from dpmix.mechanisms.posterior.law import PosteriorLaw
from dpmix.models.counts.cell_counts import NOISES, CountsWithNoise
from dpmix.models.counts.latent_counts import Latent, cell_prior, sweep_counts
from dpmix.models.model_protocols import Parameter, ParametricChain, ParametricModel
from dpmix.models.multinomial.loops import sweep_exchange
from dpmix.models.multinomial.release_law import KnownRelease, ListedCounts, known_of, listed
from dpmix.models.multinomial.responses import Responses, responses_of
from dpmix.models.multinomial.section import MultinomialModel
from dpmix.posteriors.simulated_draws import apart, draw_released, rate_at, tables_of
from dpmix.posteriors.weight_loops import weight
from dpmix.release.sanitized import Release
from dpmix.spec.run_spec import RunSpec

__all__ = ["Multinomial", "build"]

Floats = NDArray[np.float64]


def build(spec: RunSpec, release: Release) -> Multinomial | Responses:
    """Return the model of a spec given a release; see `dpmix.models.registry.build`."""
    assert isinstance(spec.model, MultinomialModel)  # the registry looks
    if spec.sampler.latent == "metropolis":
        raise SpecError(
            "sampler.latent: metropolis is for latent records, and multinomial has latent counts, which are "
            "drawn exactly or moved together; use latent: exact"
        )
    stated = spec.model.prior
    if release.mechanism.released == "categories":
        return responses_of(release, stated)
    categories = len(release.values)
    if stated is not None and len(stated) != categories:
        raise SpecError(
            f"model.prior: has {len(stated)} entries, but the release is of {categories} categories; give "
            "one for each, or leave it out for the mechanism's own"
        )
    return Multinomial(release, None if stated is None else np.array(stated, dtype=np.float64))


class Multinomial(ParametricModel):
    """Category probabilities given a released posterior.

    Parameters
    ----------
    release : Release
        Of kind ``posterior``.
    prior : ndarray (d,) or None
        Of the Dirichlet; None for the mechanism's own, which stays in its law in any case.
    list_counts : bool
        Whether counts are listed where they can be.
    """

    kind = "multinomial"

    def __init__(self, release: Release, prior: Floats | None = None, list_counts: bool = True) -> None:
        self.known: KnownRelease = known_of(release)
        self.prior: Floats = self.known.prior if prior is None else prior
        self.listed: ListedCounts | None = listed(self.prior, self.known) if list_counts else None
        self.coords = {"category": _categories(release, self.prior.size)}
        self.parameters = (
            Parameter("p", ("category",), "shares"),
            Parameter("count", ("category",)),
            Parameter("predictive", (), "draw"),
        )
        self.constants = {"n": release.n}
        self.attrs = {"prior": json.dumps(self.prior.tolist())}
        self.has_log_likelihood = self.listed is not None or self.known.law is None

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw p from its Dirichlet distribution, and counts given p."""
        p = rng.dirichlet(self.prior, draws)
        return {"p": p, "count": rng.multinomial(self.known.n, p).astype(np.float64)}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> MultinomialChain:
        """Return a chain at its start."""
        if self.listed is not None:
            return ListedChain(self, rng, {})
        return NoisyChain(self, rng) if self.known.law is None else ExchangeChain(self, rng)


def _categories(release: Release, d: int) -> NDArray[Any]:
    """Return the names of the categories where the release tells them, else 1, 2, .."""
    names = expect(release.mechanism, PosteriorLaw).categories or ()
    return np.array(names) if len(names) == d else np.arange(1, d + 1)


class MultinomialChain(ParametricChain):
    """What the chains share: counts that were drawn become one draw of the probabilities."""

    model: Multinomial

    def write(self, row: int, out: Mapping[str, Floats], counts: NDArray[np.int64]) -> None:
        """Draw p given the counts (d,), and a record; write them."""
        p = self.rng.dirichlet(self.model.prior + counts)
        ends = np.cumsum(p)
        out["p"][row] = p
        out["count"][row] = counts
        found = np.searchsorted(ends, self.rng.random() * ends[-1], side="right")
        out["predictive"][row] = min(int(found), p.size - 1)


class ListedChain(MultinomialChain):
    """Independent draws of the counts from their posterior."""

    def sweep(self, count: int) -> None:
        """Do nothing: draws are independent."""

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw counts, and probabilities given them."""
        assert self.model.listed is not None  # the model looks
        counts, out["log_likelihood"][row] = self.model.listed.draw(self.rng)
        self.write(row, out, counts)


class NoisyChain(MultinomialChain):
    """A Markov chain over the counts under noise on each of them."""

    def __init__(self, model: Multinomial, rng: Generator) -> None:
        known = model.known
        assert known.noisy is not None  # of the methods with noise
        self._likelihood = CountsWithNoise(known.noisy, NOISES[known.noise], known.scale)
        self._prior = cell_prior(float(model.prior.sum()), model.prior)
        weights = rng.standard_gamma(model.prior + np.maximum(known.noisy, 0.0))
        counts = rng.multinomial(known.n, weights / weights.sum()).astype(np.int64)
        none = np.zeros(0)
        self._latent = Latent(counts, np.zeros(0, dtype=np.int64), none, none.copy(), np.zeros(3))
        super().__init__(model, rng, {"counts": counts})

    def sweep(self, count: int) -> None:
        """Move records between pairs of categories."""
        sweep_counts(self._prior, self._likelihood, self.rng, self._latent, count)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw probabilities given the counts."""
        counts = self._latent.counts
        out["log_likelihood"][row] = (
            -np.abs(self._likelihood.released - counts).sum() / self._likelihood.scale
        )
        self.write(row, out, counts)


class ExchangeChain(MultinomialChain):
    """A Markov chain over the counts under the exponential mechanism of three categories or more.

    It starts at a posterior drawn by the mechanism as if the released one were true, where that can be.
    """

    def __init__(self, model: Multinomial, rng: Generator) -> None:
        assert model.known.law is not None  # the model looks
        self._law = tables_of(model.known.law)
        self._released = model.known.released.astype(np.int64)
        counts = np.empty_like(self._released)
        draw_released(self._law, self._released, rate_at(self._law, self._released), rng, counts)
        rate = np.array([rate_at(self._law, counts)])
        if not weight(apart(self._law, counts, self._released), self._law.unit, rate[0], self._law.top) > 0.0:
            counts[:], rate[0] = self._released, rate_at(self._law, self._released)
        super().__init__(model, rng, {"counts": counts, "rate": rate})

    def sweep(self, count: int) -> None:
        """Offer moves between pairs of categories."""
        state = self.state
        sweep_exchange(
            self._law,
            self.model.prior,
            self._released,
            self.rng,
            state["counts"],
            state["rate"],
            self.moves,
            count,
        )

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw probabilities given the counts."""
        self.write(row, out, self.state["counts"])
