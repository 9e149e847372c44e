"""Category probabilities given a released posterior or randomized responses, the mechanism accounted for.

p ~ Dirichlet(prior), and the counts c of n records are multinomial.

**A released posterior** has a law given c (`dpmix.models.multinomial.release_law`). With p integrated out c
has finitely many values. Where they can be listed, draws are independent; else they follow a Markov chain
over c: by the moves of `dpmix.models.counts.latent_counts` under noise on the counts, by the exchange
algorithm under the exponential mechanism, whose normalizers are then never computed. Given c, p is
Dirichlet(prior + c).

**Randomized responses** (methods, section 13). With N_j of n answers the category j, the likelihood is the
product over j of ((1 + (r - 1) p_j)/(r + K - 1))^N_j: counts are sufficient, and a sweep costs the same for
any n. A chain moves the split of two categories' common share at a time, by slices of its logit, under which
a priori it is beta and two factors of the likelihood change. This mixes whether the answers say much or next
to nothing. The true counts are drawn for each saved state: of the N_j answers
Binomial(N_j, (r - 1) p_j/(1 + (r - 1) p_j)) are true for being true, and the others have categories by p,
whatever they say.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.laws.every import expect
from dpmix.mechanisms.channels.count_likelihoods import NOISES, CountsWithNoise
from dpmix.mechanisms.posterior.law import PosteriorLaw
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.models.counts.latent_counts import cell_prior, make_latent, sweep_counts
from dpmix.models.multinomial.release_law import KnownRelease, ListedCounts, known_of, listed, sweep_exchange
from dpmix.models.multinomial.section import MultinomialModel, of_one_column
from dpmix.numerics.jit import njit
from dpmix.posteriors.hellinger_law import weight
from dpmix.posteriors.simulated_draws import apart, draw_released, rate_at, tables_of
from dpmix.run.model_protocols import Parameter, ParametricChain, ParametricModel

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]

_LEAST = 1e-300  # of a share
_STEPS = 200  # widths that a slice is stepped out to each side, at most


def build(spec: RunSpec, release: Release) -> Multinomial | Responses:
    """Return the model of a spec given a release; see `dpmix.api.task.build`."""
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


class CategoryShares(ParametricModel):
    """Shares p of the categories of one column, and the counts of n records in them.

    Parameters
    ----------
    n : int
        Number of records.
    prior : ndarray (K,)
        Of the Dirichlet.
    names : ndarray (K,)
        Of the categories.
    """

    kind = "multinomial"
    parameters = (
        Parameter("p", ("category",), "shares"),
        Parameter("count", ("category",)),
        Parameter("predictive", (), "draw"),
    )

    def __init__(self, n: int, prior: Floats, names: NDArray[Any]) -> None:
        self.n, self.prior = n, prior
        self.coords = {"category": names}
        self.constants = {"n": n}
        self.attrs = {"prior": json.dumps(prior.tolist())}

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw p from its Dirichlet distribution, and counts given p."""
        p = rng.dirichlet(self.prior, draws)
        return {"p": p, "count": rng.multinomial(self.n, p).astype(np.float64)}


def _draw_category(rng: Generator, p: Floats) -> int:
    """Draw a record given shares p (K,)."""
    ends = np.cumsum(p)
    found = np.searchsorted(ends, rng.random() * ends[-1], side="right")
    return min(int(found), p.size - 1)


# Given a released posterior, by accounting for the mechanism that released it


class Multinomial(CategoryShares):
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

    def __init__(self, release: Release, prior: Floats | None = None, list_counts: bool = True) -> None:
        self.known: KnownRelease = known_of(release)
        prior = self.known.prior if prior is None else prior
        names, size = expect(release.mechanism, PosteriorLaw).categories or (), prior.size
        places = np.array(names) if len(names) == size else np.arange(1, size + 1)
        super().__init__(release.n, prior, places)
        self.listed: ListedCounts | None = listed(self.prior, self.known) if list_counts else None
        self.has_log_likelihood = self.listed is not None or self.known.law is None

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> MultinomialChain:
        """Return a chain at its start."""
        if self.listed is not None:
            return ListedChain(self, rng, {})
        return NoisyChain(self, rng) if self.known.law is None else ExchangeChain(self, rng)


class MultinomialChain(ParametricChain):
    """What the chains share: counts that were drawn become one draw of the probabilities."""

    model: Multinomial

    def write(self, row: int, out: Mapping[str, Floats], counts: NDArray[np.int64]) -> None:
        """Draw p given the counts (d,), and a record; write them."""
        p = self.rng.dirichlet(self.model.prior + counts)
        out["p"][row] = p
        out["count"][row] = counts
        out["predictive"][row] = _draw_category(self.rng, p)


class ListedChain(MultinomialChain):
    """Independent draws of the counts from their posterior."""

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
        self._latent = make_latent(counts)
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
        known, state = (
            (self._law, self.model.prior, self._released),
            (self.state["counts"], self.state["rate"]),
        )
        sweep_exchange(*known, self.rng, *state, self.moves, count)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw probabilities given the counts."""
        self.write(row, out, self.state["counts"])


# Given randomized responses


def responses_of(release: Release, prior: tuple[float, ...] | None) -> Responses:
    """Return the model of a release of one column.

    Raises
    ------
    DataError
        For several columns.
    SpecError
        For a prior of other categories.
    """
    law = expect(release.mechanism, RandomizedResponseLaw)
    if len(law.sizes) != 1:
        raise DataError(f"model.kind: {of_one_column(release.columns)}")
    size = law.sizes[0]
    if prior is not None and len(prior) != size:
        raise SpecError(
            f"model.prior: has {len(prior)} entries, but the release is of {size} categories; give one for "
            "each, or leave it out for 1 each"
        )
    return Responses(release, np.ones(size) if prior is None else np.array(prior, dtype=np.float64))


class Responses(CategoryShares):
    """Shares of the categories of one column given randomized responses.

    Parameters
    ----------
    release : Release
        Of kind ``randomized_response``, of one column.
    prior : ndarray (K,)
        Of the Dirichlet.
    """

    has_log_likelihood = True

    def __init__(self, release: Release, prior: Floats) -> None:
        law = expect(release.mechanism, RandomizedResponseLaw)
        super().__init__(release.n, prior, np.array(law.categories[0]))
        self.odds = law.odds
        self.answers = np.bincount(release.values[:, 0].astype(np.int64), minlength=prior.size)

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> ResponsesChain:
        """Return a chain at its start."""
        return ResponsesChain(self, rng)


class ResponsesChain(ParametricChain):
    """A Markov chain over the shares."""

    model: Responses

    def __init__(self, model: Responses, rng: Generator) -> None:
        p = np.maximum(rng.dirichlet(model.prior), _LEAST)
        super().__init__(model, rng, {"p": p / p.sum()})

    def sweep(self, count: int) -> None:
        """Move the split of pairs of shares."""
        model = self.model
        _sweep_shares(self.rng, self.state["p"], model.prior, model.answers, model.odds, count)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write the shares, true counts given them, and a record."""
        model, p = self.model, self.state["p"]
        gain = (model.odds - 1.0) * p
        right = self.rng.binomial(model.answers, gain / (1.0 + gain))
        out["p"][row] = p
        out["count"][row] = right + self.rng.multinomial(model.n - right.sum(), p)
        out["predictive"][row] = _draw_category(self.rng, p)
        total = model.n * math.log(model.odds + p.size - 1.0)
        out["log_likelihood"][row] = float(model.answers @ np.log1p(gain)) - total


@njit
def _log_split(place, total, a, b, first, second, gain):
    """Return the log density of the logit of a split of `total`: beta prior (a, b), answers first, second."""
    log_u = -math.log1p(math.exp(-place)) if place > 0.0 else place - math.log1p(math.exp(place))
    log_v = log_u - place
    found = a * log_u + b * log_v
    found += first * math.log1p(gain * total * math.exp(log_u))
    return found + second * math.log1p(gain * total * math.exp(log_v))


@njit
def _sweep_shares(rng, p, prior, answers, odds, sweeps):
    """Move splits of pairs of shares `p` (K,), 2 K a sweep, each by a slice of its logit (Neal 2003)."""
    size, gain = len(p), odds - 1.0
    for _ in range(sweeps):
        for _ in range(2 * size):
            i = int(rng.random() * size)
            j = int(rng.random() * (size - 1))
            j += 1 if j >= i else 0
            total = p[i] + p[j]
            a, b, first, second = prior[i], prior[j], answers[i], answers[j]
            place = math.log(p[i]) - math.log(p[j])
            level = _log_split(place, total, a, b, first, second, gain) - rng.standard_exponential()
            width = 1.0 + 1.0 / min(a, b)
            low = place - width * rng.random()
            high = low + width
            left = int(rng.random() * _STEPS)
            right = _STEPS - 1 - left
            while left > 0 and _log_split(low, total, a, b, first, second, gain) > level:
                low -= width
                left -= 1
            while right > 0 and _log_split(high, total, a, b, first, second, gain) > level:
                high += width
                right -= 1
            while True:
                found = low + (high - low) * rng.random()
                if _log_split(found, total, a, b, first, second, gain) >= level or high - low < 1e-14:
                    break
                if found < place:
                    low = found
                else:
                    high = found
            share = 1.0 / (1.0 + math.exp(-found)) if found > -700.0 else math.exp(found)
            rest = 1.0 / (1.0 + math.exp(found)) if found < 700.0 else math.exp(-found)
            p[i], p[j] = max(total * share, _LEAST), max(total * rest, _LEAST)
        whole = np.sum(p)
        for k in range(size):
            p[k] /= whole
