"""What chains of compositions mean: prior, replicates of log moments, joint regions, and what to expect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from dpmix.columns.dated import NONE, Dated
from dpmix.errors import SpecError
from dpmix.laws.additive import draw_noise
from dpmix.laws.every import Law, expect
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.models.dirichlet.composition_results import composition_remarks
from dpmix.models.dirichlet.compositions import composition_of, prior_draws_of
from dpmix.models.meaning_base import (
    Expected,
    Meaning,
    OwnAccount,
    ReplicatesOfGroups,
    StatisticReplicator,
    Unavailable,
    draws_of,
    logs_of,
    sds_of,
    sum_entries,
)
from dpmix.results.nodes import Remark

if TYPE_CHECKING:
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import NamedChains
    from dpmix.spec import RunSpec
    from dpmix.spec.summary_section import SummarySpec

Floats = NDArray[np.float64]

_DRAWS = 40_000  # of compositions, for what is expected
_SEED = 22
UNSEEN = (
    "Expected shares are read off mean logarithms as those of a Dirichlet distribution, and given one "
    "threshold nothing shows whether the records are of one: some with zeros, or of two kinds, give the same "
    "means and have other shares. A release of several candidate thresholds has scores, in which some of "
    "this shows."
)
"""There is an alpha for any means. Of 2,000 records each (epsilon = 5) of which 30% had a zero, that were
logistic normal, or of two kinds, in three releases each, 90% intervals of the three expected shares held them
in 1, 3 and none of nine, all with contractions of 1.00 and a p of 1.
"""

# Replicates of mean logarithms


class LogMomentsReplicator(StatisticReplicator):
    """Means of logarithms of censored compositions by part, and the noisy scores of candidate thresholds.

    There are as many means as parameters: these can nearly always be fitted. The scores, by which a threshold
    was chosen among several, say how many records each candidate is the first to leave uncensored, and are
    what a misfit shows in, whether they were fitted too (`data_augmentation`, `soma`) or left out.
    """

    what = "noisy mean logarithms"
    needed = ("alpha",)
    blind = (
        "The model has a parameter for each released mean, so that it fits nearly any records: a misfit does "
        "not show. A release of several candidate thresholds tells more."
    )

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.law: LogMomentsLaw = expect(chains.mechanism, LogMomentsLaw)
        self.components, self.parts = self.law.components, self.law.parts
        self.thresholds = np.array(self.law.thresholds, dtype=np.float64)
        choice = self.law.choice
        self.epsilon_of_scores = math.nan if choice is None else choice.epsilon
        self.scores = np.array(() if choice is None else choice.scores, dtype=np.float64)
        self.size = chains.n * self.components
        if choice is None:
            self.per = 1.0
        else:
            self.what = "noisy mean logarithms and scores of thresholds"
            self.unit, self.blind = "of all records in a score", ""

    @property
    def names(self) -> list[str]:
        """The component, and the part where there are two; the thresholds."""
        stated = self.law.columns
        titles = [*stated] if len(stated) == self.components else [str(j + 1) for j in range(self.components)]
        parts = [""] if len(self.parts) == 1 else [f" in part {k + 1}" for k in range(len(self.parts))]
        found = [f"log {title}{part}" for part in parts for title in titles]
        return found + [f"score of {a:g}" for a in self.thresholds[: self.scores.size]]

    def reduce(self, released: Floats) -> Floats:
        """Return means and scores."""
        return np.concatenate([released.ravel(), self.scores])

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw the means, without the scores."""
        return self.replicate(chain, state, rng)[: self.chains.observed.size]

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw compositions, censor them, and add noise to their mean logarithms and to the scores."""
        alpha, d = self.values["alpha"][chain, state], self.components
        floor, found = math.log(self.law.threshold), []
        left = np.zeros(self.scores.size)
        for size, scale in zip(self.parts, self.law.scale, strict=True):
            logs = draw_log_shares(alpha, size, rng)
            found.append(np.maximum(logs, floor).mean(axis=0) + draw_noise("laplace", scale, d, rng))
            left += self.uncensored(logs)
        return np.concatenate([*found, self.noisy_scores(left, rng)])

    def uncensored(self, logs: Floats) -> Floats:
        """Return how many records, logarithms (n, d), each scored threshold leaves uncensored."""
        candidates, least = self.thresholds[: self.scores.size], logs.min(axis=1)
        return np.array([(least >= math.log(a)).sum() for a in candidates], dtype=np.float64)

    def noisy_scores(self, left: Floats, rng: Generator) -> Floats:
        """Return how many records each candidate is the first to leave uncensored, with noise."""
        if not left.size:
            return left
        return np.diff(left, prepend=0.0) + draw_noise(
            "geometric", 2.0 / self.epsilon_of_scores, left.size, rng
        )


class GroupedLogMomentsReplicator(ReplicatesOfGroups, LogMomentsReplicator):
    """Noisy sizes and sums of logarithms of each group; scores of thresholds, of all records together."""

    what = "noisy sizes and sums of logarithms"
    unit = "of a logarithm of 1 in every record"

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.per = float(chains.n)  # of sizes, with scores or without
        if self.scores.size:
            self.what = "noisy sizes, sums of logarithms and scores of thresholds"
            self.unit = "of all records in a size or score, or of a logarithm of 1 in every record"

    @property
    def names(self) -> list[str]:
        """The sizes, the components by group, and the thresholds."""
        own = super().names
        return self.named(own[: self.components]) + own[self.components :]

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw compositions of each group, censor them, and add noise."""
        floor = math.log(self.law.threshold)
        sizes, sums = self.sizes(chain, state, rng), []
        left = np.zeros(self.scores.size)
        for group, size in enumerate(sizes.tolist()):
            logs = draw_log_shares(self.values["alpha"][chain, state, group], size, rng)
            sums.append(np.maximum(logs, floor).sum(axis=0))
            left += self.uncensored(logs)
        scores = self.noisy_scores(left, rng)
        return np.concatenate([self.noisy(sizes, sums, rng), scores])


def draw_log_shares(alpha: Floats, size: int, rng: Generator) -> Floats:
    """Draw logarithms of compositions (size, d), which do not underflow where shares do."""
    logs = np.log(rng.standard_gamma(alpha + 1.0, (size, alpha.size)))
    logs -= rng.standard_exponential((size, alpha.size)) / alpha
    top = logs.max(axis=1, keepdims=True)
    return np.asarray(logs - top - np.log(np.exp(logs - top).sum(axis=1, keepdims=True)))


# What a release will tell


def _approximated(law: LogMomentsLaw, n: int, shape: float, rate: float, names: Sequence[str]) -> Expected:
    """Return those of alpha and of mean shares, at the prior mean of alpha.

    Derivatives of E log max(x, a) by alpha are its covariances with the scores log x_j - E log x_j.
    """
    d = law.components
    alpha = np.full(d, shape / rate)
    rng = np.random.default_rng(_SEED)
    logs = _log_dirichlet(alpha, rng)
    seen = np.maximum(logs, np.log(law.threshold))
    score = logs - (special.digamma(alpha) - special.digamma(alpha.sum()))
    centred = seen - seen.mean(axis=0)
    slopes, spread = centred.T @ score / len(logs), centred.T @ centred / len(logs)
    groups = law.group_names
    precision = np.eye(d) * (rate**2 / shape)
    if groups:
        size = n / len(groups)
        off = seen.mean(axis=0) - float(law.centre)
        noise = 2.0 * law.scale[1] ** 2 * np.eye(d) + 2.0 * law.scale[0] ** 2 * np.outer(off, off)
        told = slopes.T @ np.linalg.solve(spread / size + noise / size**2, slopes)
    else:
        told = np.zeros((d, d))
        for size, scale in zip(law.parts, law.scale, strict=True):
            told += slopes.T @ np.linalg.solve(spread / size + 2.0 * scale**2 * np.eye(d), slopes)
    after: Floats = np.asarray(np.linalg.inv(told + precision), dtype=np.float64)
    before: Floats = np.eye(d) * (shape / rate**2)
    share = alpha / alpha.sum()
    turn = (np.eye(d) - share[:, None]) / alpha.sum()
    found: Expected = {}
    for group in groups or ("",):
        head = f"{group}," if group else ""
        for what, matrix in (("alpha", np.eye(d)), ("mean", turn)):
            pairs = zip(sds_of(matrix, after), sds_of(matrix, before), strict=True)
            found |= {f"{what}[{head}{name}]": pair for name, pair in zip(names, pairs, strict=True)}
    return found


def _log_dirichlet(alpha: Floats, rng: np.random.Generator) -> Floats:
    """Draw logarithms of shares: of gammas of shape a + 1 times U^(1/a), so that none is log 0."""
    shape = (_DRAWS, len(alpha))
    logs = np.log(rng.standard_gamma(np.broadcast_to(alpha + 1.0, shape)))
    logs += np.log(1.0 - rng.random(shape)) / alpha
    return np.asarray(logs - special.logsumexp(logs, axis=1, keepdims=True))


class DirichletMeaning(Meaning):
    """Of compositions, whose shares have no units and are no dates."""

    prior_keys = "model.prior"
    contrasts_shares = True
    replicators = {"log_moments": LogMomentsReplicator}
    of_groups = {"log_moments": GroupedLogMomentsReplicator}
    advised = ("log_moments",)

    def log_prior(self) -> Floats:
        """Return that of alpha, independent gamma laws."""
        if self.chains.method == "bootstrap":
            raise Unavailable("a bootstrap has no prior")
        prior = self.chains.stated("model").get("prior")
        if not isinstance(prior, Mapping):
            raise Unavailable(f"the prior {prior} is made of the release, and its density is not kept")
        alpha = draws_of(self.chains, "alpha")
        shape, rate = float(prior["shape"]), float(prior["rate"])
        return sum_entries((shape - 1.0) * logs_of(alpha) - rate * alpha)

    def prior_draws(self, parameter: Stored) -> Floats | None:
        """Draw alpha, or the expected shares, from the prior."""
        return prior_draws_of(self.chains, parameter)

    def account(self, options: SummarySpec) -> OwnAccount:
        """Return densities of the shares, joint regions, and what lies below the threshold under the fit."""
        found, densities = composition_of(self.chains, options)
        below = {
            f"{group},{name}" if group else name: float(share)
            for group, composition in found.items()
            for name, share in zip(composition.components, composition.censoring.share, strict=True)
        }
        last = composition_remarks(list(found.values()), self.chains)
        if expect(self.chains.mechanism, LogMomentsLaw).choice is None:
            last.append(Remark(UNSEEN, convergence=False, grave=False))
        return OwnAccount(below, entries=True, last=last, densities=densities, own=found)

    def dated(self, columns: frozenset[str]) -> Dated:
        """Return none."""
        return NONE

    @staticmethod
    def expected(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
        """Return what is expected of alpha and of mean shares."""
        law = expect(law, LogMomentsLaw)
        if isinstance(model.prior, str):
            raise SpecError(
                f"model.prior: {model.prior} is made of the release, and there is none; advise with a gamma "
                "{shape, rate}"
            )
        named = () if spec.data is None else spec.data.columns or ()
        places = named if len(named) == law.components else [str(i + 1) for i in range(law.components)]
        return _approximated(
            law, n, float(model.prior.shape), float(model.prior.rate), [str(v) for v in places]
        )


MEANING = DirichletMeaning
