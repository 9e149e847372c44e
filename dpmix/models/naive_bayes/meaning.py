"""What chains of naive Bayes mean: prior, replicates of what they are given, predictions, and what to expect.

The probability of each class given the features is p_c prod_k p_k[c, x_k] over its sum over classes.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.columns.column_units import Categories
from dpmix.laws.additive import draw_noise, noise_variance
from dpmix.laws.every import Law, expect
from dpmix.mechanisms.noisy_counts.law import NoisyCountsLaw
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.models.meaning_base import (
    Expected,
    Meaning,
    ReplicatesOfGroups,
    StatisticReplicator,
    Unavailable,
    draws_of,
    has,
    logs_of,
    names_of_columns,
    sum_entries,
    sum_to_one,
)
from dpmix.models.predictor_base import Input, Predictor, draws_in_a_row, group_input, parameter_of

if TYPE_CHECKING:
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import NamedChains
    from dpmix.spec import RunSpec
    from dpmix.spec.summary_section import SummarySpec

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Replicates of noisy counts


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
        titles, places = self.law.levels_by_column()
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


class GroupedCounts(ReplicatesOfGroups, NoisyCountsReplicator):
    """Counts of levels within every pair of group and class: classes are drawn within their group."""

    records = ReplicatesOfGroups.sizes

    @property
    def names(self) -> list[str]:
        """Group, level of a feature and class, as they are released: by feature, then group."""
        own, found, start = super().names, [], 0
        for count in self.levels:
            part = own[start : start + count * self.classes]
            found += [f"{group}: {entry}" for group in self.groups for entry in part]
            start += len(part)
        return found


# Replicates of randomized responses of several columns


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


# Predictions


class ClassPredictor(Predictor):
    """The probabilities of the classes."""

    def __init__(self, chains: NamedChains, options: SummarySpec) -> None:
        stored = parameter_of(chains, "p", 1)
        law = chains.mechanism
        if law.released == "categories":
            levels, names = expect(law, RandomizedResponseLaw).sizes[:-1], list(chains.columns)
        else:
            counts = expect(law, NoisyCountsLaw)
            levels, names = counts.levels, names_of_columns(counts, len(counts.levels) + 1)
        tables = [parameter_of(chains, f"p_feature_{k + 1}", 2) for k in range(len(levels))]
        self.used = (stored, *tables)
        p = draws_in_a_row(chains, stored)
        super().__init__(float(options.level), p.shape[1])
        labels = [str(label) for label in stored.coords[stored.dims[-1]]]
        self.columns = tuple(f"{name}[{label}]" for label in labels for name in ("p", "lower", "upper"))
        self._log_p = _log_shares(p.transpose(0, 2, 1))  # (groups, classes, draws)
        self._logs = [_log_shares(draws_in_a_row(chains, table).transpose(0, 3, 2, 1)) for table in tables]
        if any(logs.shape[1] != count for logs, count in zip(self._logs, levels, strict=True)):
            raise ValueError("levels")
        places = [table.coords[table.dims[-1]] for table in tables]
        own = [
            Input(name, Categories(map(str, place))) for name, place in zip(names[:-1], places, strict=True)
        ]
        self._group = group_input(chains)
        self.inputs = (*own, *self._group)
        of = f" of {names[-1]}" if names[-1] != str(len(names)) else ""
        self.what = (
            f"p is the probability of each class{of} given the features; lower and upper are its "
            f"{100 * self.level:g}% interval"
        )

    def _draws_of(self, rows: Floats, *, new: bool) -> Floats:
        codes = rows.astype(np.int64)
        group = codes[:, -1] if self._group else np.zeros(len(codes), dtype=np.int64)
        found = self._log_p[group]
        for k, logs in enumerate(self._logs):
            found += logs[group, codes[:, k]]
        found -= found.max(axis=1, keepdims=True)
        np.exp(found, out=found)
        found /= found.sum(axis=1, keepdims=True)
        return found


def _log_shares(values: NDArray[np.float64]) -> Floats:
    """Return logarithms; a probability that underflowed is taken for the smallest number that there is."""
    if (values < 0.0).any() or (values > 1.0 + 1e-9).any():
        raise ValueError("no probabilities")
    return np.log(np.maximum(np.ascontiguousarray(values), 5e-324))


# What a release will tell


def expected_of_counts(law: NoisyCountsLaw, n: int, prior: float) -> Expected:
    """Return those of classes and levels: noisy counts of classes and levels that are all as likely.

    Each of the K features counts every record of a class, in L_k noisy numbers of variance v: together they
    tell its size with variance v / sum_k (1 / L_k). A level's share q within a class of n_i records has
    q (1 - q) / n_i + v ((1 - q)^2 + q^2 (L - 1)) / n_i^2. Shares have the variance of their Dirichlet priors.
    """
    classes, v = law.classes, noise_variance(law.noise, law.scale[0])
    groups = law.group_names or ("",)
    size = n / len(groups)
    found: Expected = {}
    for group in groups:
        head = f"{group}," if group else ""
        p = 1.0 / classes
        told = v / sum(1.0 / levels for levels in law.levels)
        if classes > 1:
            both = _told(p * (1 - p) / size + told / size**2, p * (1 - p) / (classes * prior + 1.0))
            found |= {f"p[{head}{i + 1}]": both for i in range(classes)}
        for k, levels in enumerate(law.levels):
            q, own = 1.0 / levels, size / classes
            cells = v * ((1 - q) ** 2 + q * q * (levels - 1)) / own**2
            both = _told(q * (1 - q) / own + cells, q * (1 - q) / (levels * prior + 1.0))
            found[f"p_feature_{k + 1}[{group}]" if group else f"p_feature_{k + 1}"] = both
    return found


def expected_of_answers(law: RandomizedResponseLaw, n: int, prior: float) -> Expected:
    """Return those of classes and levels given randomized response to each column, the class last.

    Of a feature with L levels and I classes the pairs that are answered have chances (A_L x A_I) p, where
    A_K = 1 / (r + K - 1) + (r - 1) / (r + K - 1) 1[same]. There are as many of them as of p, so that its
    estimate is by the inverse; a quantity with gradient d has variance w'(diag g - g g')w / n, w = A^-T d.
    """
    classes = law.sizes[-1]
    found: Expected = {}
    p = 1.0 / classes
    for k, levels in enumerate(law.sizes[:-1]):
        q = 1.0 / levels
        g = np.full((levels, classes), q * p)  # even shares stay even
        own = np.zeros((levels, classes))
        own[:, 0] = -q / p
        own[0, 0] += 1.0 / p
        both = _told(_of_pairs(law, own, g) / n, q * (1 - q) / (levels * prior + 1.0))
        found[f"p_feature_{k + 1}"] = both
    shares = np.zeros((1, classes))
    shares[0, 0] = 1.0
    told = _of_pairs(law, shares, np.full((1, classes), p)) / n
    both = _told(told, p * (1 - p) / (classes * prior + 1.0))
    return {f"p[{name}]": both for name in law.categories[-1]} | found


def _of_pairs(law: RandomizedResponseLaw, gradient: Floats, g: Floats) -> float:
    """Return w'(diag g - g g')w for a gradient by pairs of levels and classes."""
    w = gradient
    for axis, size in enumerate(gradient.shape):
        if size > 1:
            slope = (law.odds - 1.0) / (law.odds + size - 1.0)
            total = w.sum(axis=axis, keepdims=True) / (law.odds + size - 1.0)
            w = (w - total) / slope
    return float((g * w * w).sum() - (g * w).sum() ** 2)


def _told(variance: float, before: float) -> tuple[float, float]:
    return float((1.0 / (1.0 / variance + 1.0 / before)) ** 0.5), float(before**0.5)


class NaiveBayesMeaning(Meaning):
    """Of naive Bayes."""

    prior_keys = "model.prior"
    replicators = {"noisy_counts": NoisyCountsReplicator, "categories": AnswersOfRecords}
    of_groups = {"noisy_counts": GroupedCounts}
    advised = ("noisy_counts", "categories")

    def log_prior(self) -> Floats:
        """Return that of all classes and levels, independent Dirichlet laws."""
        chains = self.chains
        prior = float(chains.constants["prior"])
        p = draws_of(chains, "p")
        if has(chains, "group_share"):  # a priori classes and groups together are one Dirichlet
            p = p * draws_of(chains, "group_share")[..., None]
        out = sum_entries(logs_of(p))
        for parameter in chains.parameters:
            if parameter.name.startswith("p_feature_"):
                out = out + sum_entries(logs_of(chains.read(parameter)))
        return np.asarray((prior - 1.0) * out)

    def pseudo_records(self, parameter: Stored) -> Floats | None:
        """Return those of the classes, and of a feature's levels within each."""
        if parameter.name != "p" and not parameter.name.startswith("p_feature_"):
            return None
        return np.full(parameter.shape[-1], float(self.chains.constants["prior"]))

    def predictor(self, options: SummarySpec) -> Predictor:
        """Return what predicts the class."""
        return ClassPredictor(self.chains, options)

    @staticmethod
    def expected(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
        """Return what is expected of classes and levels."""
        prior = float(model.prior)
        if law.released == "categories":
            return expected_of_answers(expect(law, RandomizedResponseLaw), n, prior)
        return expected_of_counts(expect(law, NoisyCountsLaw), n, prior)


MEANING = NaiveBayesMeaning
