"""What its chains mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.models.meaning_base import Expected, Meaning, StatisticReplicator, draws_of

Floats = NDArray[np.float64]


class Yeses(StatisticReplicator):
    """The number of answers of the second category."""

    what = "the number of answers"
    needed = ("share",)
    size = 1

    @property
    def names(self) -> list[str]:
        """The one."""
        return ["yes"]

    def reduce(self, released: Floats) -> Floats:
        """Count them."""
        return np.array([released.sum()])

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw their number."""
        share = float(self.values["share"][chain, state])
        chances = self.law.chances(np.array([1.0 - share, share]))  # type: ignore[attr-defined]
        return np.array([float(rng.binomial(self.chains.n, chances[1]))])

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw the answers."""
        yes = int(self.replicate(chain, state, rng)[0])
        return (np.arange(self.chains.n) < yes).astype(np.float64)[:, None]


class ProportionMeaning(Meaning):
    """Of the model."""

    prior_keys = "model.a and model.b"
    replicators = {"categories": Yeses}
    advised = ("categories",)

    def log_prior(self) -> Floats:
        """Return that of the share."""
        a, b = (float(self.chains.constants[name]) for name in "ab")
        share = draws_of(self.chains, "share")
        return np.asarray((a - 1.0) * np.log(share) + (b - 1.0) * np.log1p(-share))

    @staticmethod
    def expected(law: Any, model: Any, n: int, spec: Any) -> Expected:
        """Return standard deviations at the prior mean."""
        total = model.a + model.b
        mean, before = model.a / total, model.a * model.b / (total**2 * (total + 1.0))
        slope = (law.odds - 1.0) / (law.odds + 1.0)
        g = float(law.chances(np.array([1.0 - mean, mean]))[1])
        told = g * (1.0 - g) / (n * slope**2)
        return {"share": ((1.0 / (1.0 / told + 1.0 / before)) ** 0.5, before**0.5)}


MEANING = ProportionMeaning
