"""Replicates of released statistics: records given a draw of the parameters, then the mechanism.

Of groups whose sizes are private (methods, section 16) a replicate draws sizes of the groups from their
shares, (n_1, .., n_G) ~ Multinomial(N, pi), records of each group given its own parameters, and then the
mechanism of all of them together: noisy sizes and sums of f less its centre, or noisy counts, or draws, of
(group, cell). N is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.mechanisms.laws.additive import draw_noise
from dpmix.mechanisms.laws.every import expect
from dpmix.mechanisms.laws.statistic_laws import HistogramLaw, SumsOfGroups
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.mechanisms.noisy_counts.law import NoisyCountsLaw
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.numerics.equal_cells import cell_of
from dpmix.release.sanitized import Release
from dpmix.summary.check.discrete_replicates import (
    DiscreteHistogram,
    DiscreteMarginals,
    cdf_of,
    cell_probabilities,
)
from dpmix.summary.check.replicators import OfBins, StatisticReplicator, Unavailable, has, stored_of

if TYPE_CHECKING:
    from dpmix.run.chains_reader import NamedChains

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class NoisyCountsReplicator(StatisticReplicator):
    """Counts of every feature's levels within every class: multinomial given the probabilities, and noise."""

    what = "noisy counts"
    unit = "of all records in a count"
    blind = "Whether features are independent within a class does not show: the counts do not tell."

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.law: NoisyCountsLaw = expect(chains.mechanism, NoisyCountsLaw)
        self.levels, self.classes = self.law.levels, self.law.classes
        self.size = 2 * self.classes * sum(self.levels)
        self.needed = ("p", *(f"p_feature_{k + 1}" for k in range(len(self.levels))))

    @property
    def names(self) -> list[str]:
        """The level of a feature and the class."""
        titles = self.law.columns
        if len(titles) != len(self.levels) + 1:
            titles = (*(f"feature_{k + 1}" for k in range(len(self.levels))), "class")
        known, places = self.law.categories or {}, []
        for name, count in zip(titles, (*self.levels, self.classes), strict=True):
            labels = known.get(name, ())
            places.append(labels if len(labels) == count else [str(i + 1) for i in range(count)])
        return [
            f"{title} = {level}, {titles[-1]} = {of_class}"
            for title, levels in zip(titles[:-1], places[:-1], strict=True)
            for of_class in places[-1]
            for level in levels
        ]

    def records(self, chain: int, state: int, rng: Generator) -> int | Ints:
        """Return the number of records, or draw those of groups."""
        return self.chains.n

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw the counts of classes, of levels within each, and the noise."""
        shares = sum_to_one(self.values["p"][chain, state])
        sizes = rng.multinomial(self.records(chain, state, rng), shares)
        parts = [
            rng.multinomial(sizes, sum_to_one(self.values[name][chain, state])).ravel()
            for name in self.needed[1:]
        ]
        counts = np.concatenate(parts).astype(np.float64)
        return counts + draw_noise(self.law.noise, self.law.scale[0], counts.size, rng)


class ClampedMomentsReplicator(StatisticReplicator):
    """Sums of products of variables clamped to their bounds and rescaled to [-1, 1], and Laplace noise."""

    what = "noisy moments"
    unit = "of the largest that all records could give"
    blind = (
        "The model has a parameter for each: only priors and bounds show, not errors or predictors that are "
        "not normal."
    )

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.law: ClampedMomentsLaw = expect(chains.mechanism, ClampedMomentsLaw)
        self.low, self.high = np.array(self.law.bounds, dtype=np.float64).T
        self.model = chains.stated("model")
        self.size = int(chains.n * self.low.size)
        self.needed = tuple(name for name in ("beta", "sigma2", "x_mean", "x_cov") if has(chains, name))
        for name in ("sigma2", "x_mean", "x_cov"):
            if not has(chains, name) and self.model.get(name) is None:
                raise Unavailable(f"the chains do not hold {name}")

    @property
    def names(self) -> list[str]:
        """The factors of each moment."""
        p = self.low.size - 1
        stated = self.law.columns
        titles = [*stated] if len(stated) == p + 1 else [*(f"x{i + 1}" for i in range(p)), "y"]
        words = ["1", *titles]
        return [words[j] if i == 0 else f"{words[i]} {words[j]}" for i, j in _factors(p + 1)]

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw records, clamp them, and sum their products."""
        sums = self.sums(chain, state, self.chains.n, rng)
        return sums + draw_noise("laplace", self.law.scale[0], sums.size, rng)

    def sums(self, chain: int, state: int | tuple[int, int], n: int, rng: Generator) -> Floats:
        """Draw n records of a state, or of a state and a group, and sum their products once clamped."""
        p = self.low.size - 1
        beta = np.asarray(self._get("beta", chain, state))
        root = np.linalg.cholesky(np.asarray(self._get("x_cov", chain, state)).reshape(p, p))
        x = np.asarray(self._get("x_mean", chain, state)).ravel() + rng.standard_normal((n, p)) @ root.T
        clamped = self.model.get("predictors") == "clamped"
        line = np.clip(x, self.low[:-1], self.high[:-1]) if clamped else x
        sd = math.sqrt(float(np.asarray(self._get("sigma2", chain, state)).ravel()[0]))
        y = self._response(beta[0] + line @ beta[1:], sd, rng)
        unit = np.clip(2.0 * (np.column_stack([x, y]) - self.low) / (self.high - self.low) - 1.0, -1.0, 1.0)
        table = np.column_stack([np.ones(n), unit])
        products = table.T @ table
        return np.array([products[i, j] for i, j in _factors(p + 1)])

    def _response(self, mean: Floats, sd: float, rng: Generator) -> Floats:
        """Draw responses; errors are truncated to the bounds where the model says so."""
        if self.model.get("response") != "truncated":
            return np.asarray(mean + sd * rng.standard_normal(mean.size))
        from dpmix.numerics.bounded_normal import truncated  # late: it is compiled

        normals = rng.standard_normal(mean.size)
        return truncated(mean, np.array(sd), self.low[-1], self.high[-1], normals)

    def _get(self, name: str, chain: int, state: int | tuple[int, int]) -> Any:
        """Return a parameter, drawn or known."""
        if name not in self.values:
            return self.model[name]
        place = state if isinstance(state, tuple) else (state,)
        return self.values[name][(chain, *place)]


class LogMomentsReplicator(StatisticReplicator):
    """Means of logarithms of censored compositions by part, and the noisy scores of candidate thresholds.

    There are as many means as parameters: these can nearly always be fitted. The scores, by which a threshold
    was chosen among several, say how many records each candidate is the first to leave uncensored, and are
    what a misfit shows in, whether they were fitted too (`data_augmentation`, `soma`) or left out.
    """

    what = "noisy mean logarithms"
    needed = ("alpha",)
    blind = (
        "The model has a parameter for each, so that it fits nearly any records: a misfit does not show. A "
        "release of several candidate thresholds tells more."
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


class ReleasedPosterior(StatisticReplicator):
    """Counts of categories: with their noise, or as the released posterior has them."""

    what = "counts of categories"
    unit = "of all records in a count"
    blind = "The model has a probability for each: only the prior shows."
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


def stored_categories(chains: NamedChains) -> list[str]:
    """Return the names of the categories that a model's `p` is of."""
    stored = stored_of(chains, "p")
    return [str(place) for place in stored.coords[stored.dims[0]]]


def draw_log_shares(alpha: Floats, size: int, rng: Generator) -> Floats:
    """Draw logarithms of compositions (size, d), which do not underflow where shares do."""
    logs = np.log(rng.standard_gamma(alpha + 1.0, (size, alpha.size)))
    logs -= rng.standard_exponential((size, alpha.size)) / alpha
    top = logs.max(axis=1, keepdims=True)
    return np.asarray(logs - top - np.log(np.exp(logs - top).sum(axis=1, keepdims=True)))


def _factors(q: int) -> list[tuple[int, int]]:
    """Return the factors of each moment as columns of (1, x_1, .., x_p, y), p = q - 1."""
    return [*((i, q) for i in range(q + 1)), *((i, j) for i in range(q) for j in range(i, q) if j > 0)]


def sum_to_one(shares: Floats) -> Floats:
    """Return shares whose sums over the last axis are 1, once more."""
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


class Answers(StatisticReplicator):
    """Numbers of answers of each category, by randomized response of one column."""

    what = "numbers of answers"
    unit = "of all records in a count"
    blind = "The model has a probability for each: only the prior shows."
    needed = ("p",)

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.response: RandomizedResponseLaw = expect(chains.mechanism, RandomizedResponseLaw)
        if chains.model != "multinomial":
            raise Unavailable("randomized responses are replicated for the model multinomial alone")
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


# Replicates of randomized responses of several columns, given naive Bayes


_MOST = 1_000  # entries, beyond which pairs of features are left out


class AnswersOfRecords(StatisticReplicator):
    """Numbers of records by their answers in two columns: each feature with the class, and two features.

    Answers tell, unlike counts by class, whether features are independent within a class: were they not,
    pairs of features would leave their replicates. Of very many categories only pairs with the class count.
    """

    what = "numbers of answers in pairs of columns"
    unit = "of all records in a count"

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.response: RandomizedResponseLaw = expect(chains.mechanism, RandomizedResponseLaw)
        self.sizes = self.response.sizes
        last = len(self.sizes) - 1
        self.size = int(chains.n * len(self.sizes))
        self.needed = ("p", *(f"p_feature_{k + 1}" for k in range(last)))
        if last < 1 or chains.observed.ndim != 2 or chains.observed.shape[1] != last + 1:
            raise Unavailable("the chains do not hold answers of features and a class")
        every = list(combinations(range(last + 1), 2))
        many = sum(self.sizes[a] * self.sizes[b] for a, b in every) > _MOST
        self.pairs = [pair for pair in every if pair[1] == last or not many]
        if many:
            self.blind = (
                "Whether features are independent within a class is not looked at, for many categories."
            )

    @property
    def names(self) -> list[str]:
        """Both columns with their categories."""
        titles, categories = self.chains.columns, self.response.categories
        return [
            f"{titles[a]} = {one}, {titles[b]} = {other}"
            for a, b in self.pairs
            for one in categories[a]
            for other in categories[b]
        ]

    def reduce(self, released: Floats) -> Floats:
        """Return the numbers of records by their answers in each pair of columns."""
        codes = released.astype(np.int64)
        return np.concatenate(
            [
                np.bincount(
                    codes[:, a] * self.sizes[b] + codes[:, b], minlength=self.sizes[a] * self.sizes[b]
                )
                for a, b in self.pairs
            ]
        ).astype(np.float64)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw answers, and count them."""
        return self.reduce(self._answers(chain, state, rng))

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw the answers (n, columns), in random order."""
        return rng.permutation(self._answers(chain, state, rng), axis=0)

    def _answers(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw true classes and, given these, the answers of each column by itself."""
        classes = self.sizes[-1]
        true = rng.multinomial(self.chains.n, sum_to_one(self.values["p"][chain, state]))
        out = np.empty((self.chains.n, len(self.sizes)))
        chances = [
            self.response.chances(sum_to_one(self.values[name][chain, state])) for name in self.needed[1:]
        ]
        chances.append(self.response.chances(np.eye(classes)))
        stops = np.cumsum(true)
        for c in range(classes):
            rows = slice(stops[c] - true[c], stops[c])
            for column, table in enumerate(chances):
                cdf = np.cumsum(table[c])
                drawn = np.searchsorted(cdf / cdf[-1], rng.random(true[c]), side="right")
                out[rows, column] = np.minimum(drawn, self.sizes[column] - 1)
        return out


# Replicates of releases of groups


_SHARE = "group_share"
_BINS = "bin_probability"


class _Grouped(StatisticReplicator):
    """What all of them share: it goes before the class of the same release without groups."""

    def prepare(self, wanted: Sequence[tuple[int, Ints]]) -> None:
        """Read what one group needs, and the shares of the groups."""
        super().prepare(wanted)
        self.values[_SHARE] = self.chains.read(stored_of(self.chains, _SHARE))

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups."""
        return self.law.group_names

    def sizes(self, chain: int, state: int, rng: Generator) -> Ints:
        """Draw the sizes of the groups."""
        return rng.multinomial(self.chains.n, sum_to_one(self.values[_SHARE][chain, state]))

    def noisy(self, sizes: Ints, sums: Sequence[Floats], rng: Generator) -> Floats:
        """Return what is released of sizes, and of sums (entries,) of each group less n_g centres."""
        law = expect(self.law, SumsOfGroups)
        of_sizes, of_sums = law.scale
        centre = np.asarray(law.centre, dtype=np.float64)
        whole = np.concatenate([own - size * centre for own, size in zip(sums, sizes.tolist(), strict=True)])
        return np.concatenate(
            [
                sizes[:-1] + draw_noise("laplace", of_sizes, sizes.size - 1, rng),
                whole + draw_noise("laplace", of_sums, whole.size, rng),
            ]
        )

    def named(self, entries: Sequence[str]) -> list[str]:
        """Return the names of sizes, and of the entries of each group."""
        sizes = [f"size of {group}" for group in self.groups[:-1]]
        return sizes + [f"{group}: {entry}" for group in self.groups for entry in entries]


class GroupedCounts(_Grouped, NoisyCountsReplicator):
    """Counts of levels within every pair of group and class: classes are drawn within their group."""

    records = _Grouped.sizes

    @property
    def names(self) -> list[str]:
        """Group, level of a feature and class, as they are released: by feature, then group."""
        own, found, start = super().names, [], 0
        for count in self.levels:
            part = own[start : start + count * self.classes]
            found += [f"{group}: {entry}" for group in self.groups for entry in part]
            start += len(part)
        return found


class GroupedMomentsReplicator(_Grouped, ClampedMomentsReplicator):
    """Noisy sizes, and sums of products of clamped and rescaled variables of each group."""

    what = "noisy sizes and moments"

    @property
    def names(self) -> list[str]:
        """The sizes, and the factors of each moment by group."""
        return self.named(super().names)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw records of each group, clamp them, and sum their products."""
        sizes = self.sizes(chain, state, rng)
        sums = [self.sums(chain, (state, group), size, rng) for group, size in enumerate(sizes.tolist())]
        return self.noisy(sizes, sums, rng)


class GroupedLogMomentsReplicator(_Grouped, LogMomentsReplicator):
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


class GroupedHistogram(_Grouped, OfBins):
    """Noisy counts, or numbers of draws, of the bins of each group.

    Parameters
    ----------
    chains : NamedChains
        Of mixtures, which hold the probabilities of the bins; or of the discrete model, whose distribution
        function has the edges of the bins among its points.
    """

    law: HistogramLaw

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.tell_bins(chains)
        self._cdf = cdf_of(chains) if chains.model == "discrete" else None
        self.needed = (_BINS if self._cdf is None else self._cdf.name,)
        self.size = int(2 * self.edges.size * len(self.groups))

    @property
    def names(self) -> list[str]:
        """Group and bin."""
        return [f"{group}: {own}" for group in self.groups for own in self.bins]

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw counts of records in all cells, and what is released of them."""
        drawn = self.values[self.needed[0]][chain, state]
        if self._cdf is not None:
            grid = self._cdf.coords[self._cdf.dims[-1]]
            drawn = np.stack([cell_probabilities(grid, own, self.edges) for own in drawn])
        counts = rng.multinomial(self.sizes(chain, state, rng), sum_to_one(drawn))
        return self.law.draw_from_counts(counts.ravel().astype(np.float64), rng)

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """As `replicate`; draws are placed in their bins, beside the code of their group."""
        found = self.replicate(chain, state, rng)
        if not self.of_draws:
            return found
        cells = rng.permutation(np.repeat(np.arange(found.size), found.astype(np.int64)))
        codes, bins = np.divmod(cells, self.edges.size - 1)
        left, right = self.edges[bins], self.edges[bins + 1]
        return np.column_stack([left + rng.random(bins.size) * (right - left), codes])

    def reduce(self, released: Floats) -> Floats:
        """Return the entries of the bins."""
        if not self.of_draws:
            return released.ravel()
        bins = self.edges.size - 1
        cells = cell_of(released[:, 0], self.edges) + bins * released[:, 1].astype(np.int64)
        return np.bincount(cells, minlength=bins * len(self.groups)).astype(np.float64)


# Which release of which model is drawn anew by which


_OF_GROUPS: dict[str, Callable[[NamedChains], StatisticReplicator]] = {
    "noisy_counts": GroupedCounts,
    "clamped_moments": GroupedMomentsReplicator,
    "log_moments": GroupedLogMomentsReplicator,
    "histogram": GroupedHistogram,
}
_MAKERS: dict[tuple[str, str], Callable[[NamedChains], StatisticReplicator]] = {
    ("noisy_counts", "naive_bayes"): NoisyCountsReplicator,
    ("clamped_moments", "linear_regression"): ClampedMomentsReplicator,
    ("log_moments", "dirichlet"): LogMomentsReplicator,
    ("posterior", "multinomial"): ReleasedPosterior,
    ("categories", "multinomial"): Answers,
    ("categories", "naive_bayes"): AnswersOfRecords,
    ("histogram", "discrete"): DiscreteHistogram,
    ("synthetic", "discrete"): DiscreteMarginals,
}


def parametric_replicator(chains: NamedChains) -> StatisticReplicator:
    """Return what draws replicates of the release that a parametric model was fitted to.

    Raises
    ------
    Unavailable
        Where the release is not replicated.
    """
    law, model = chains.mechanism, chains.model
    made, what = _MAKERS.get((law.released, model)), "releases"
    if law.groups:
        made, what = (None if model == "custom" else _OF_GROUPS.get(law.released)), "releases of groups"
    elif model == "custom":
        raise Unavailable("a custom model does not say how its release is made")
    if made is None:
        raise Unavailable(f"{what} by {law.kind} are not replicated for the model {model}")
    return made(chains)
