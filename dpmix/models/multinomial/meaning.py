"""What chains of the multinomial model mean: prior, replicates of what they are given, what to expect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.laws.additive import draw_noise
from dpmix.laws.every import Law, expect
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.models.meaning_base import (
    Expected,
    Meaning,
    StatisticReplicator,
    Unavailable,
    draws_of,
    logs_of,
    stored_of,
    sum_entries,
    sum_to_one,
)
from dpmix.release.sanitized import Release

if TYPE_CHECKING:
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import NamedChains
    from dpmix.spec import RunSpec

Floats = NDArray[np.float64]


def stored_categories(chains: NamedChains) -> list[str]:
    """Return the names of the categories that a model's `p` is of."""
    stored = stored_of(chains, "p")
    return [str(place) for place in stored.coords[stored.dims[0]]]


class ReleasedPosterior(StatisticReplicator):
    """Counts of categories: with their noise, or as the released posterior has them."""

    what = "counts of categories"
    unit = "of all records in a count"
    blind = "The model has a probability for each released count: only the prior shows."
    needed = ("p",)

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        from dpmix.errors import PrivacyError
        from dpmix.models.multinomial.release_law import known_of

        values = chains.observed.reshape(len(chains.observed), -1)
        release = Release(values, ("parameter",), self.law, None, None, None, chains.n, trust="global")
        try:
            self.known = known_of(release)
            if self.known.law is not None:  # whether its outcomes can be listed
                self._law_weights(np.eye(1, self.known.prior.size, dtype=np.int64)[0] * chains.n)
        except (DataError, PrivacyError) as error:
            raise Unavailable("the outcomes of the mechanism are too many to list") from error
        self.size = 1 if self.known.law is None else int(self.known.law.posteriors.size)

    def _law_weights(self, counts: NDArray[np.int64]) -> Floats:
        assert self.known.law is not None  # the caller looks
        return np.asarray(self.known.law.weights(counts.tolist()))

    @property
    def names(self) -> list[str]:
        """The categories; of two with noise the first alone."""
        places = stored_categories(self.chains)
        return places[:1] if self.known.noisy is not None and self.known.noisy.size == 1 else places

    def reduce(self, released: Floats) -> Floats:
        """Return the counts, with their noise where it is told."""
        return np.asarray(self.known.released if self.known.noisy is None else self.known.noisy)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw counts, and what is released of them."""
        known = self.known
        counts = rng.multinomial(known.n, sum_to_one(self.values["p"][chain, state]))
        if known.law is None:
            assert known.noisy is not None  # of the methods with noise
            return counts[: known.noisy.size] + draw_noise(known.noise, known.scale, known.noisy.size, rng)
        from dpmix.posteriors.hellinger_law import states

        weights = np.cumsum(self._law_weights(counts))
        place = int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))
        if counts.size == 2:
            return np.array([place, known.n - place], dtype=np.float64)
        return np.asarray(states(known.n, counts.size)[place], dtype=np.float64)

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Return the parameters of the posterior that is released."""
        from dpmix.posteriors.simulated_draws import settled

        found = self.replicate(chain, state, rng)
        counts = found if self.known.noisy is None else settled(found, self.known.n)
        return np.asarray(self.known.prior + counts)[:, None]


class Answers(StatisticReplicator):
    """Numbers of answers of each category, by randomized response of one column."""

    what = "numbers of answers"
    unit = "of all records in a count"
    blind = "The model has a probability for each released count: only the prior shows."
    needed = ("p",)

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.response: RandomizedResponseLaw = expect(chains.mechanism, RandomizedResponseLaw)
        self.size = self.response.sizes[0]

    @property
    def names(self) -> list[str]:
        """The categories."""
        return stored_categories(self.chains)

    def reduce(self, released: Floats) -> Floats:
        """Return the number of answers of each category."""
        return np.bincount(released.ravel().astype(np.int64), minlength=self.size).astype(np.float64)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw numbers of answers."""
        chances = self.response.chances(self.values["p"][chain, state])
        return rng.multinomial(self.chains.n, chances / chances.sum()).astype(np.float64)

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw the answers themselves (n, 1), in random order."""
        counts = self.replicate(chain, state, rng).astype(np.int64)
        return rng.permutation(np.repeat(np.arange(self.size, dtype=np.float64), counts))[:, None]


def expected_of_shares(law: RandomizedResponseLaw, n: int, prior: Floats) -> Expected:
    """Return those of the shares of categories, at the means of their prior.

    Answers have chances g = (1 + (r - 1) p) / (r + K - 1): information n ((r - 1) / (r + K - 1))^2 diag(1/g)
    about p, of sum 1, plus that of a normal prior with the Dirichlet's covariance.
    """
    total = float(prior.sum())
    p, k = prior / total, len(prior)
    before = (np.diag(p) - np.outer(p, p)) / (total + 1.0)
    slope = (law.odds - 1.0) / (law.odds + k - 1.0)
    told = n * slope**2 * np.diag(1.0 / law.chances(p))
    basis = np.vstack([np.eye(k - 1), -np.ones(k - 1)])
    precision = basis.T @ told @ basis + np.linalg.inv(before[:-1, :-1])
    after = basis @ np.linalg.inv(precision) @ basis.T
    return {
        f"p[{name}]": (float(after[i, i] ** 0.5), float(before[i, i] ** 0.5))
        for i, name in enumerate(law.categories[0])
    }


class MultinomialMeaning(Meaning):
    """Of the multinomial model."""

    prior_keys = "model.prior"
    replicators = {"posterior": ReleasedPosterior, "categories": Answers}
    advised = ("categories",)

    def log_prior(self) -> Floats:
        """Return that of the shares, a Dirichlet law."""
        return sum_entries((self._prior - 1.0) * logs_of(draws_of(self.chains, "p")))

    def pseudo_records(self, parameter: Stored) -> Floats | None:
        """Return those of the shares."""
        return self._prior if parameter.name == "p" else None

    @property
    def _prior(self) -> Floats:
        return np.asarray(json.loads(str(self.chains.attrs["prior"])), dtype=np.float64)

    @staticmethod
    def expected(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
        """Return what is expected of the shares of one column."""
        law = expect(law, RandomizedResponseLaw)
        if len(law.sizes) != 1:
            raise SpecError(
                f"data.columns: advice is about one column of categories, and there are {len(law.sizes)}; "
                f"name one, and divide epsilon by {len(law.sizes)}, as a release of all does"
            )
        prior = np.ones(law.sizes[0]) if model.prior is None else np.array(model.prior, dtype=np.float64)
        if len(prior) != law.sizes[0]:
            raise SpecError(f"model.prior: has {len(prior)} entries for {law.sizes[0]} categories")
        return expected_of_shares(law, n, prior)


MEANING = MultinomialMeaning
