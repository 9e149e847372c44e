"""The discrete model: a Dirichlet or Pitman-Yor process given synthetic records, or a histogram's counts.

Each draw is one P of the posterior (`dpmix.models.discrete.posterior_law`), of which functionals are kept,
and one record drawn from it. Given records that continue the urn of the confidential ones draws are
independent; else they follow a Markov chain over latent counts: of pairs of cells at once (`latent: exact`),
or record by record (`latent: metropolis`), each proposal being accepted with probability e^-eps at least
where the release is eps-DP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.models.counts.cell_counts import HiddenCounts, group_names, log_likelihood
from dpmix.models.counts.hidden_noise import start_noisy
from dpmix.models.counts.latent_counts import (
    Latent,
    cell_prior,
    draw_shares,
    group_prior,
    start_counts,
    sweep_counts,
    sweep_records,
)
from dpmix.models.discrete.posterior_law import (
    ProcessPosterior,
    posterior_of,
    prior_functionals,
    write_functionals,
)
from dpmix.models.discrete.public_facts import Public, functional_columns, public_of
from dpmix.models.discrete.random_measure import Column, LabelColumn, NumericColumn, draw, plan
from dpmix.models.discrete.section import DiscreteModel
from dpmix.models.latent_groups import parameters_of_groups
from dpmix.models.model_protocols import Parameter, ParametricChain, ParametricModel
from dpmix.release.sanitized import GROUP, Release
from dpmix.spec.run_spec import RunSpec

__all__ = ["Discrete", "DiscreteGroups", "build"]


# The discrete model of several groups given the histogram of them all: one P each, a priori independent.
#
# The group sizes are as private as all else: the numbers of records in the cells of all groups are latent
# (`dpmix.models.counts.latent_counts`), and given these the groups are as `dpmix.models.discrete.model` has
# them.

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
        (`dpmix.models.discrete.model`).
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


Functional = NumericColumn | LabelColumn


def build(spec: RunSpec, release: Release) -> Discrete | DiscreteGroups:
    """Return the model of a spec given a release; see `dpmix.api.parametric_task.build`."""
    assert isinstance(spec.model, DiscreteModel)  # the registry looks
    public = public_of(release)
    columns = functional_columns(spec.model, spec.summary, public)
    law = posterior_of(spec.model, release, public, columns)
    by_record = spec.sampler.latent == "metropolis"
    if by_record and law.likelihood is None:
        raise SpecError(
            "sampler.latent: metropolis moves latent records, and those behind this release are drawn "
            "independently; use latent: exact"
        )
    if not release.groups:
        return Discrete(release, public, columns, law, by_record)
    if by_record:
        raise SpecError(
            "sampler.latent: metropolis is not for a release of groups, whose sizes change with every "
            "record; use latent: exact"
        )
    return DiscreteGroups(release, columns, law, _parameters(public, columns))


class Discrete(ParametricModel):
    """The discrete model given a release.

    Parameters
    ----------
    release : Release
    public : Public
        What is public of it.
    columns : list
        What is wanted of each column.
    law : ProcessPosterior
        The posterior.
    by_record : bool
        Whether latent counts move record by record, by proposals; else by exact draws of pairs of cells.
    """

    kind = "discrete"

    def __init__(
        self,
        release: Release,
        public: Public,
        columns: list[Functional],
        law: ProcessPosterior,
        by_record: bool = False,
    ) -> None:
        self.law = law
        self.records = release.n
        self.plan = plan(columns)
        self.parameters, self.coords, self.places = _parameters(public, columns)
        self.constants = {"n": release.n, "concentration": law.concentration, "discount": law.discount}
        self.has_log_likelihood = law.exact_likelihood
        self.by_record = by_record
        if by_record and release.epsilon is not None and not release.delta:
            self.acceptance_bound = math.exp(-release.epsilon)

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw P from the process itself."""
        kept = {p.name: self.shape(p) for p in self.parameters if p.role in ("scalar", "shares")}
        return prior_functionals(self.law, self.plan, self.places, kept, rng, draws)

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> DiscreteChain:
        """Return a chain at its start."""
        return DiscreteChain(self, rng) if self.law.likelihood is None else LatentCountsChain(self, rng)


class DiscreteChain(ParametricChain):
    """Independent draws: of the confidential records by the urn, and of P given them."""

    model: Discrete
    _likelihood = 0.0

    def __init__(self, model: Discrete, rng: Generator, state: dict[str, NDArray[Any]] | None = None) -> None:
        super().__init__(model, rng, state or {})
        self._row = np.empty(int(model.plan.out[-1]))
        self._record = np.empty(len(model.plan.numeric))

    def sweep(self, count: int) -> None:
        """Do nothing: draws are independent."""

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw P, and write its functionals and one record from it."""
        law, model = self.law(), self.model
        draw(self.rng, law, model.law.base, model.plan, model.law.fixed, self._row, self._record)
        write_functionals(row, out, model.places, self._row, self._record)
        if "log_likelihood" in out:
            out["log_likelihood"][row] = self.log_likelihood()

    def law(self) -> Any:
        """Return the law of P given records drawn here, or given the state."""
        law, urn = self.model.law, self.model.law.urn
        assert urn is not None  # else counts are latent
        drawn = urn.draw(self.rng)
        if law.exact_likelihood:
            self._likelihood = urn.log_likelihood(drawn)
        return law.given(drawn[:-1]) if urn.closed else urn.measure(self.rng, drawn, law.measure)

    def log_likelihood(self) -> float:
        """Return the log likelihood of the release given the records, up to a constant."""
        return self._likelihood


class LatentCountsChain(DiscreteChain):
    """A Markov chain over latent numbers of records in cells, and draws of P given these."""

    def __init__(self, model: Discrete, rng: Generator) -> None:
        law = model.law
        assert law.likelihood is not None and law.cells is not None  # the model looks
        self._prior = cell_prior(law.concentration, law.cells)
        counts = start_counts(rng, self._prior.shapes, law.likelihood.released, model.records)
        hidden = len(counts) if isinstance(law.likelihood, HiddenCounts) else 0
        labels = np.repeat(np.arange(len(counts)), counts) if model.by_record else np.empty(0, dtype=np.int64)
        self._latent = Latent(counts, labels, np.zeros(hidden), np.zeros(hidden), np.zeros(3))
        super().__init__(model, rng, self._latent._asdict())
        start_noisy(law.likelihood, rng, self._latent)

    def sweep(self, count: int) -> None:
        """Move the latent counts, and what else is latent."""
        likelihood = self.model.law.likelihood
        if self.model.by_record:
            sweep_records(self._prior, likelihood, self.rng, self._latent, self.moves, count)
        else:
            sweep_counts(self._prior, likelihood, self.rng, self._latent, count)

    def law(self) -> Any:
        """Return the law of P given the latent counts."""
        return self.model.law.given(self._latent.counts)

    def log_likelihood(self) -> float:
        """Return the log likelihood of the release given the latent counts, up to a constant."""
        return float(log_likelihood(self.model.law.likelihood, self._latent.noisy, self._latent.counts))


def _parameters(
    public: Public, columns: list[Functional]
) -> tuple[tuple[Parameter, ...], dict[str, NDArray[Any]], dict[str, tuple[int, int]]]:
    """Return the parameters with their coordinates, and where each is in a row of results.

    A place (-1, i) is that of column i of the drawn record. With several columns names end in theirs.
    """
    found: list[Parameter] = []
    coords: dict[str, NDArray[Any]] = {}
    places: dict[str, tuple[int, int]] = {}
    at = 0
    for number, (column, functional) in enumerate(zip(public.columns, columns, strict=True)):
        several = len(columns) > 1
        ending = f"_{_safe(column.name, number)}" if several else ""
        about = column.name if several else ""
        if isinstance(functional, NumericColumn):
            dims = {
                "quantile": "level",
                "tail": f"threshold{ending}",
                "cdf_at": f"point{ending}",
                "cdf": f"grid{ending}",
            }
            coords["level"] = np.array(functional.quantiles)
            coords[dims["tail"]] = np.array(functional.tail)
            coords[dims["cdf_at"]] = np.array(functional.at)
            coords[dims["cdf"]] = functional.grid
        else:
            dims = {"probability": f"category{ending}"}
            coords[dims["probability"]] = np.array(public.names[number])
        roles = {"cdf": "curve", "probability": "shares"}
        for title, size in functional.entries.items():
            own = (dims[title],) if title in dims else ()
            shown = "cdf" if title == "cdf_at" else title
            found.append(Parameter(title + ending, own, roles.get(title, "scalar"), shown, about))
            places[title + ending] = (at, at + size)
            at += size
        found.append(Parameter(f"predictive{ending}", (), "draw", "predictive", about))
        places[f"predictive{ending}"] = (-1, number)
    return tuple(found), coords, places


def _safe(name: str, number: int) -> str:
    """Return a column's name as a file may hold it, where a slash would be a path."""
    return name if "/" not in name else f"{name.replace('/', '_')}_{number}"
