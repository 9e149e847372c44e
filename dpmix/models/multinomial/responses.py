"""Shares of categories given randomized responses (methods, section 13).

With p ~ Dirichlet(prior) and N_j of n answers the category j, the likelihood is the product over j of
((1 + (r - 1) p_j)/(r + K - 1))^N_j: counts are sufficient, and a sweep costs the same for any n. A chain
moves the split of two categories' common share at a time, by slices of its logit, under which a priori it is
beta and two factors of the likelihood change. This mixes whether the answers say much or next to nothing. The
true counts are drawn for each saved state: of the N_j answers Binomial(N_j, (r - 1) p_j/(1 + (r - 1) p_j))
are true for being true, and the others have categories by p, whatever they say.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from concurrent.futures import Executor

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.mechanisms.laws.every import expect
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.models.model_protocols import Parameter, ParametricChain, ParametricModel
from dpmix.numerics.jit import njit
from dpmix.release.sanitized import Release

__all__ = ["Responses", "responses_of", "sweep_shares"]

Floats = NDArray[np.float64]

_LEAST = 1e-300  # of a share
_STEPS = 200  # widths that a slice is stepped out to each side, at most


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
        raise DataError(
            f"model.kind: multinomial is for one column, and there are {', '.join(release.columns)}; choose "
            f"one with --set release.columns=[{release.columns[0]}], or use naive_bayes for all"
        )
    size = law.sizes[0]
    if prior is not None and len(prior) != size:
        raise SpecError(
            f"model.prior: has {len(prior)} entries, but the release is of {size} categories; give one for "
            "each, or leave it out for 1 each"
        )
    return Responses(release, np.ones(size) if prior is None else np.array(prior, dtype=np.float64))


class Responses(ParametricModel):
    """Shares of the categories of one column given randomized responses.

    Parameters
    ----------
    release : Release
        Of kind ``randomized_response``, of one column.
    prior : ndarray (K,)
        Of the Dirichlet.
    """

    kind = "multinomial"
    has_log_likelihood = True

    def __init__(self, release: Release, prior: Floats) -> None:
        law = expect(release.mechanism, RandomizedResponseLaw)
        self.prior, self.n, self.odds = prior, release.n, law.odds
        self.answers = np.bincount(release.values[:, 0].astype(np.int64), minlength=prior.size)
        self.coords = {"category": np.array(law.categories[0])}
        self.parameters = (
            Parameter("p", ("category",), "shares"),
            Parameter("count", ("category",)),
            Parameter("predictive", (), "draw"),
        )
        self.constants = {"n": release.n}
        self.attrs = {"prior": json.dumps(prior.tolist())}

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw p from its Dirichlet distribution, and counts given p."""
        p = rng.dirichlet(self.prior, draws)
        return {"p": p, "count": rng.multinomial(self.n, p).astype(np.float64)}

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
        sweep_shares(self.rng, self.state["p"], model.prior, model.answers, model.odds, count)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write the shares, true counts given them, and a record."""
        model, p = self.model, self.state["p"]
        gain = (model.odds - 1.0) * p
        right = self.rng.binomial(model.answers, gain / (1.0 + gain))
        out["p"][row] = p
        out["count"][row] = right + self.rng.multinomial(model.n - right.sum(), p)
        ends = np.cumsum(p)
        found = np.searchsorted(ends, self.rng.random() * ends[-1], side="right")
        out["predictive"][row] = min(int(found), p.size - 1)
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
def sweep_shares(rng, p, prior, answers, odds, sweeps):
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
