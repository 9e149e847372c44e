"""Replicates of randomized responses of several columns, given naive Bayes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.mechanisms.laws.every import expect
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.run.chains_reader import NamedChains
from dpmix.summary.check.replicators import Unavailable
from dpmix.summary.check.statistic_check import StatisticReplicator
from dpmix.summary.check.statistic_replicates import sum_to_one

__all__ = ["AnswersOfRecords"]

Floats = NDArray[np.float64]

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
        self.per = float(chains.n)
        last = len(self.sizes) - 1
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
    def size(self) -> int:
        """Numbers drawn for one replicate."""
        return int(self.chains.n * len(self.sizes))

    @property
    def needed(self) -> tuple[str, ...]:
        """Probabilities of classes, and of levels in each."""
        return ("p", *(f"p_feature_{k + 1}" for k in range(len(self.sizes) - 1)))

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
