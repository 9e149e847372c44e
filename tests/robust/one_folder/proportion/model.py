"""The sampler: true categories given their answers, and the share given these."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.run.model_protocols import Parameter, ParametricChain, ParametricModel


class Proportion(ParametricModel):
    """The model given a release."""

    kind = "proportion"
    parameters = (Parameter("share"),)

    def __init__(self, a: float, b: float, answers: NDArray[np.float64], keep: float) -> None:
        self.a, self.b, self.keep = a, b, keep
        self.yes = int((answers == 1.0).sum())
        self.no = answers.size - self.yes
        self.coords: dict[str, NDArray[Any]] = {}
        self.constants = {"a": a, "b": b}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> ProportionChain:
        """Return a chain at the prior mean."""
        return ProportionChain(self, rng, {"share": np.array([self.a / (self.a + self.b)])})

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, NDArray[np.float64]]:
        """Draw shares."""
        return {"share": rng.beta(self.a, self.b, draws)}


class ProportionChain(ParametricChain):
    """One chain."""

    model: Proportion

    def sweep(self, count: int) -> None:
        """Draw how many answers are of the second category, and its share."""
        model, rng, (share,) = self.model, self.rng, self.state["share"]
        kept, lost = model.keep, 1.0 - model.keep
        for _ in range(count):
            true = rng.binomial(model.yes, kept * share / (kept * share + lost * (1.0 - share)))
            true += rng.binomial(model.no, lost * share / (lost * share + kept * (1.0 - share)))
            share = rng.beta(model.a + true, model.b + model.yes + model.no - true)
        self.state["share"][0] = share

    def record(self, row: int, out: Mapping[str, NDArray[np.float64]]) -> None:
        """Write the share."""
        out["share"][row] = self.state["share"][0]


def build(spec: Any, release: Any) -> Proportion:
    """Return the model of a spec and a release of one column of two categories."""
    odds = release.mechanism.odds
    return Proportion(spec.model.a, spec.model.b, release.values.ravel(), odds / (odds + 1.0))
