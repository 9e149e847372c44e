"""The discrete model of several groups given the histogram of them all: one P each, a priori independent.

The group sizes are as private as all else: the numbers of records in the cells of all groups are latent
(`dpmix.models.group_counts`), and given these the groups are as `dpmix.models.discrete` has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.models.base import ParametricChain, ParametricModel
from dpmix.models.cell_counts import log_likelihood
from dpmix.models.discrete_law import ProcessPosterior, prior_functionals
from dpmix.models.functionals import Column, draw, plan
from dpmix.models.group_counts import draw_shares, group_prior
from dpmix.models.grouped import parameters_of_groups
from dpmix.models.histogram_release import group_names
from dpmix.models.latent_counts import Latent, start_counts, sweep_counts
from dpmix.release import GROUP, Release

__all__ = ["DiscreteGroups"]

Floats = NDArray[np.float64]


class DiscreteGroups(ParametricModel):
    """The discrete model of groups given a histogram of them all.

    Parameters
    ----------
    release : Release
    columns : list
        What is wanted of the one column.
    law : ProcessPosterior
        Of each group, with the likelihood of the counts in all of them.
    described : tuple
        Parameters of one group with their coordinates and their places in a row of results
        (`dpmix.models.discrete`).
    """

    kind = "discrete"
    has_log_likelihood = True

    def __init__(
        self, release: Release, columns: list[Column], law: ProcessPosterior, described: Any
    ) -> None:
        parameters, coords, self.places = described
        self.law, self.records, self.plan = law, release.n, plan(columns)
        self.groups = group_names(release)
        kept = [parameter for parameter in parameters if parameter.role != "draw"]
        own = tuple(replace(parameter, dims=(GROUP, *parameter.dims)) for parameter in kept)
        self.parameters = (*own, *parameters_of_groups())
        self.coords = {GROUP: np.array(self.groups), **coords}
        self.constants = {"n": release.n, "concentration": law.concentration, "discount": 0.0}

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw P from the process itself, for all groups the same, and the shares of the groups."""
        own = [p for p in self.parameters if p.name in self.places and p.role in ("scalar", "shares")]
        shapes = {p.name: self.shape(p)[1:] for p in own}
        found = prior_functionals(self.law, self.plan, self.places, shapes, rng, draws)
        count = len(self.groups)
        of_groups = {name: np.repeat(values[:, None], count, axis=1) for name, values in found.items()}
        return {**of_groups, "group_share": rng.dirichlet(np.ones(count), draws)}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> GroupsChain:
        """Return a chain at its start."""
        return GroupsChain(self, rng)


class GroupsChain(ParametricChain):
    """A Markov chain over the numbers of records in all cells, and draws of each group's P given these."""

    model: DiscreteGroups

    def __init__(self, model: DiscreteGroups, rng: Generator) -> None:
        law = model.law
        assert law.likelihood is not None and law.cells is not None  # a histogram's counts are latent
        self._prior = group_prior(law.concentration, law.cells, len(model.groups))
        counts = start_counts(rng, self._prior.shapes, law.likelihood.released, model.records)
        none = np.zeros(0)
        self._latent = Latent(counts, none.astype(np.int64), none, none, np.zeros(3))
        self._row = np.empty(int(model.plan.out[-1]))
        self._record = np.empty(1)
        super().__init__(model, rng, {"counts": counts})

    def sweep(self, count: int) -> None:
        """Move records between cells, of one group or of two."""
        sweep_counts(self._prior, self.model.law.likelihood, self.rng, self._latent, count)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw P of each group, and write its functionals."""
        model, law = self.model, self.model.law
        table = self._latent.counts.reshape(len(model.groups), -1)
        for g, counts in enumerate(table):
            draw(self.rng, law.given(counts), law.base, model.plan, law.fixed, self._row, self._record)
            for name, (start, stop) in model.places.items():
                if start >= 0:  # not the drawn record
                    values = out[name]
                    values[row, g] = self._row[start:stop] if values.ndim > 2 else self._row[start]
        sizes = table.sum(axis=1)
        out["group_share"][row], out["group_size"][row] = draw_shares(self.rng, sizes), sizes
        out["log_likelihood"][row] = log_likelihood(law.likelihood, self._latent.noisy, self._latent.counts)
