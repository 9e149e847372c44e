"""The discrete model: a Dirichlet or Pitman-Yor process given synthetic records, or a histogram's counts.

P ~ PY(d, alpha, P0), and the n confidential records are independent draws of P. Each draw is one P of the
posterior, of which functionals are kept, and one record drawn from it.

- Synthetic records of `pitman_yor`, drawn with the same d, alpha and P0, continue the sequence of the
  confidential ones: these are drawn given the released ones, and then P given them
  (`dpmix.models.discrete.continued_urn`, methods section 5). Draws are independent.
- Everything else depends on the records through their numbers c in cells, and d = 0. Synthetic records of
  `dirichlet_multinomial` whose prior counts are a = alpha P0(cell) continue the sequence likewise; else c is
  latent, see `dpmix.mechanisms.channels.count_likelihoods` and `dpmix.models.counts.latent_counts`, and draws
  follow a Markov chain: of pairs of cells at once (`latent: exact`), or record by record (`latent:
  metropolis`), each proposal being accepted with probability e^-eps at least where the release is eps-DP.
  Within a cell the model knows no more than the base measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import expect
from dpmix.laws.synthetic import SyntheticLaw
from dpmix.mechanisms.channels.count_likelihoods import (
    NOISES,
    HiddenCounts,
    PolyaDraws,
    SmoothedDraws,
    log_likelihood,
    released,
)
from dpmix.models.counts.latent_counts import (
    cell_prior,
    draw_shares,
    make_latent,
    start_counts,
    start_noisy,
    sweep_counts,
    sweep_records,
)
from dpmix.models.discrete import base_measures
from dpmix.models.discrete.base_measures import ATOMS, ColumnBase, Locations
from dpmix.models.discrete.continued_urn import ContinuedUrn
from dpmix.models.discrete.public_facts import (
    Public,
    bases_of,
    confidential,
    functional_columns,
    grids_of,
    public_of,
    vector_of,
)
from dpmix.models.discrete.random_measure import (
    FixedAtoms,
    FunctionalsPlan,
    LabelColumn,
    Measure,
    NumericColumn,
    default_tolerance,
    draw,
    fixed_atoms,
    plan,
)
from dpmix.models.discrete.section import DiscreteModel
from dpmix.models.latent_groups import of_groups, parameters_of_groups
from dpmix.run.model_protocols import GROUP, Parameter, ParametricChain, ParametricModel, safe_name

if TYPE_CHECKING:
    from dpmix.columns.cells import Cells, Grid
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]
Functional = NumericColumn | LabelColumn
_RARE = 1e-6  # probability of so many new values below which a grid cannot be what makes them
_MOST_ATOMS = 20_000  # of a finite base measure that are all held as atoms
_AGREEMENT = 1e-9  # of numbers that are the same but for rounding

# The model and its chains


def build(spec: RunSpec, release: Release) -> Discrete | DiscreteGroups:
    """Return the model of a spec given a release; see `dpmix.api.task.build`."""
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
    return DiscreteGroups(release, public, columns, law)


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
        return _prior_functionals(self.law, self.plan, self.places, kept, rng, draws)

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

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw P, and write its functionals and one record from it."""
        law, model = self.law(), self.model
        draw(self.rng, law, model.law.base, model.plan, model.law.fixed, self._row, self._record)
        _write_functionals(row, out, model.places, self._row, self._record)
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
    """A Markov chain over latent numbers of records in cells, of one group or of several, and draws of P."""

    def __init__(self, model: Discrete, rng: Generator, groups: int = 1) -> None:
        law = model.law
        assert law.likelihood is not None and law.cells is not None  # the model looks
        self._prior = cell_prior(law.concentration, law.cells, groups)
        counts = start_counts(rng, self._prior.shapes, law.likelihood.released, model.records)
        self._latent = make_latent(counts, model.by_record, isinstance(law.likelihood, HiddenCounts))
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
        ending = f"_{safe_name(column.name, number)}" if several else ""
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


def _write_functionals(
    row: int, out: Mapping[str, Floats], places: Mapping[str, tuple[int, int]], drawn: Floats, record: Floats
) -> None:
    """Write what was drawn of P, and a record from it, to place `row` of the arrays that are there."""
    for name, (start, stop) in places.items():
        if name not in out:
            continue
        if start < 0:
            out[name][row] = record[stop]
        else:
            out[name][row] = drawn[start:stop] if out[name].ndim > 1 else drawn[start]


def _prior_functionals(
    law: ProcessPosterior,
    plan: FunctionalsPlan,
    places: Mapping[str, tuple[int, int]],
    shapes: Mapping[str, tuple[int, ...]],
    rng: Generator,
    draws: int,
) -> dict[str, Floats]:
    """Draw P before any release; return those of its functionals that have a shape, (draws, ..) each."""
    out = {name: np.empty((draws, *shape)) for name, shape in shapes.items()}
    drawn, record = np.empty(int(plan.out[-1])), np.empty(len(plan.numeric))
    for row in range(draws):
        draw(rng, law.prior, law.base, plan, law.prior_fixed, drawn, record)
        _write_functionals(row, out, places, drawn, record)
    return out


# Several groups


class DiscreteGroups(Discrete):
    """The discrete model of groups given a histogram of them all: one P each, a priori independent.

    The sizes of groups are as private as all else: the numbers of records in the cells of all groups are
    latent (`dpmix.models.counts.latent_counts`), and given these each group is as in the model of one. Its
    `law` is of each group, with the likelihood of the counts in all of them.
    """

    def __init__(
        self, release: Release, public: Public, columns: list[Functional], law: ProcessPosterior
    ) -> None:
        super().__init__(release, public, columns, law)
        self.groups = release.mechanism.group_names
        kept = [parameter for parameter in self.parameters if parameter.role != "draw"]
        self.parameters = (*of_groups(kept), *parameters_of_groups())
        self.coords = {GROUP: np.array(self.groups), **self.coords}

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw P from the process itself, for all groups the same, and the shares of the groups."""
        own = [p for p in self.parameters if p.name in self.places and p.role in ("scalar", "shares")]
        shapes = {p.name: self.shape(p)[1:] for p in own}
        found = _prior_functionals(self.law, self.plan, self.places, shapes, rng, draws)
        count = len(self.groups)
        each = {name: np.repeat(values[:, None], count, axis=1) for name, values in found.items()}
        return {**each, "group_share": rng.dirichlet(np.ones(count), draws)}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> GroupsChain:
        """Return a chain at its start."""
        return GroupsChain(self, rng)


class GroupsChain(LatentCountsChain):
    """A Markov chain over the numbers of records in all cells, and draws of each group's P given these."""

    model: DiscreteGroups

    def __init__(self, model: DiscreteGroups, rng: Generator) -> None:
        super().__init__(model, rng, len(model.groups))
        self.state = {"counts": self._latent.counts}  # nothing else is latent

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw P of each group, and write its functionals."""
        model, law = self.model, self.model.law
        table = self._latent.counts.reshape(len(model.groups), -1)
        own = {name: out[name][row] for name in model.places if name in out}  # not the drawn record
        for g, counts in enumerate(table):
            draw(self.rng, law.given(counts), law.base, model.plan, law.fixed, self._row, self._record)
            _write_functionals(g, own, model.places, self._row, self._record)
        sizes = table.sum(axis=1)
        out["group_share"][row], out["group_size"][row] = draw_shares(self.rng, sizes), sizes
        out["log_likelihood"][row] = self.log_likelihood()


# The posterior


@dataclass(frozen=True)
class ProcessPosterior:
    """The law of P given the release, or given latent counts.

    Parameters
    ----------
    measure : Measure
        With the prior alone; what is known of the confidential records is added to it.
    base : Locations
        Base measures of the columns.
    fixed : FixedAtoms
        Fixed atoms of the measure.
    prior, prior_fixed : Measure, FixedAtoms
        P before any release, and its fixed atoms.
    concentration, discount : float
        alpha and d.
    exact_likelihood : bool
        Whether the likelihood of a draw is known.
    likelihood : NamedTuple, optional
        Of latent counts (`dpmix.mechanisms.channels.count_likelihoods`); None where there is an urn.
    cells : array (J,)
        Base probabilities of the cells, where counts are latent.
    urn : Urn, optional
        Of the confidential records, where these are drawn given the release.
    """

    measure: Measure
    base: Locations
    fixed: FixedAtoms
    prior: Measure
    prior_fixed: FixedAtoms
    concentration: float
    discount: float
    exact_likelihood: bool
    likelihood: Any = None
    cells: Floats | None = None
    urn: ContinuedUrn | None = None

    def given(self, counts: NDArray[Any]) -> Measure:
        """Return the law of P given counts (J,) in the cells."""
        atoms, regions = self.measure.atoms, self.measure.regions
        if len(atoms):
            return self.measure._replace(atoms=atoms + counts)
        return self.measure._replace(regions=regions + counts)


def posterior_of(
    model: DiscreteModel, release: Release, public: Public, columns: Sequence[Functional]
) -> ProcessPosterior:
    """Return the posterior given a release.

    Raises
    ------
    SpecError
        When the posterior has no form that is known, or settings do not go with the release.
    """
    own = release.mechanism
    if own.made_by == "pitman_yor":
        return _given_sample(model, release, expect(own, SyntheticLaw), public, columns)
    return _given_cells(model, release, public, columns)


def _given_sample(
    model: DiscreteModel,
    release: Release,
    synthesis: SyntheticLaw,
    public: Public,
    columns: Sequence[Functional],
) -> ProcessPosterior:
    """Return the posterior given records of the process itself."""
    alpha, d = float(synthesis.concentration), float(synthesis.discount)
    for key, value, own in (
        ("concentration", model.concentration, alpha),
        ("discount", model.discount, d),
    ):
        if value is not None and float(value) != own:
            raise SpecError(_other_prior(key, f"{value:g}", f"{own:g}"))
    own_grids = grids_of(release, len(public.columns))
    grids, values, distinct, old = told_apart(release, public, own_grids, alpha)
    stated = synthesis.base or [None] * len(public.columns)
    own_base = {c.name: base for c, base in zip(public.columns, stated, strict=True) if c.bounds is not None}
    bases = bases_of(own_base or None, public, grids)
    if model.base is not None:
        asked = _asked_bases(model.base, public, own_grids)
        if not _same_bases(asked, bases_of(own_base or None, public, own_grids)):
            raise SpecError(_other_prior("base", "another", "the one that the release states"))
    finite = all(base.kind == ATOMS for base in bases)
    merged = any(grid is not None for grid in own_grids) and all(
        column.bounds is None or grid is not None
        for column, grid in zip(public.columns, own_grids, strict=True)
    )
    free = any(column.free for column in public.columns)
    if d > 0.0 and (finite or merged) and not free:
        raise SpecError(
            f"model.kind: discrete has no known posterior for records drawn with discount {d:g} whose new "
            "values are categories or points of a grid, where several may be one; synthesize with discount "
            "0, or without synthesis.snap and data.types"
        )
    points, sizes = np.unique(values, axis=0, return_counts=True)
    seen: Floats = sizes.astype(np.float64)
    prior: Floats = np.zeros(len(points))
    tolerance = default_tolerance(alpha, float(len(release.values)))
    support = math.prod(len(base.points) for base in bases) if finite else 0
    alike = free and len(bases) == 1
    closed = finite and not alike and d == 0.0 and support <= _MOST_ATOMS
    if closed:
        places, shares = _product(bases)
        points, seen, prior = _merged(points, seen, places, alpha * shares)
    urn = ContinuedUrn(release.n, seen, prior, alpha, d, distinct, closed, old, alike)
    if alike:  # all labels that were not released are one atom
        points = np.concatenate([points, bases[0].points[:, None]])
    measure = Measure(prior, np.empty(0), np.empty(0), d, _nowhere(len(bases)), tolerance)
    fixed = fixed_atoms(columns, points)
    edges: list[Floats | None] = [None] * len(bases)
    base = base_measures.locations(bases, edges)
    one, everywhere = np.ones(1), np.full((1, len(bases)), -1, dtype=np.int64)
    before = Measure(np.empty(0), one, np.array([alpha]), d, everywhere, default_tolerance(alpha, 0.0))
    none = fixed_atoms(columns, np.empty((0, len(bases))))
    return ProcessPosterior(measure, base, fixed, before, none, alpha, d, urn.known_likelihood, urn=urn)


def _other_prior(key: str, value: str, own: str) -> str:
    return (
        f"model.{key}: {value}, but the records were drawn with {own}; under another prior the posterior "
        "given draws of pitman_yor is not known: leave it out, or fit a release of counts in cells"
    )


def _asked_bases(given: Any, public: Public, grids: Any) -> list[ColumnBase]:
    """Return the base measure that the spec gives for a release without cells."""
    column, grid = public.columns[0], grids[0]
    if not isinstance(given, tuple):
        return bases_of(given, public, grids)
    if len(public.columns) == 1 and column.categories is not None:
        codes = np.arange(len(column.categories), dtype=np.float64)
        vector = vector_of(given, len(codes), "categories")
    elif len(public.columns) == 1 and grid is not None:
        codes = grid.points
        vector = vector_of(given, len(codes), "points of the grid")
    else:
        raise SpecError(
            "model.base: probabilities are for cells or the categories of one column, and these records have "
            "neither; give a distribution such as {kind: uniform}"
        )
    assert vector is not None  # a tuple was given
    return [base_measures.atoms(codes, vector)]


def _same_bases(first: list[ColumnBase], other: list[ColumnBase]) -> bool:
    return all(
        a.kind == b.kind
        and (a.a, a.b) == (b.a, b.b)
        and a.points.shape == b.points.shape
        and np.allclose(a.points, b.points, rtol=_AGREEMENT, atol=0.0)
        and np.allclose(a.cumulative, b.cumulative, rtol=0.0, atol=_AGREEMENT)
        for a, b in zip(first, other, strict=True)
    )


def _product(bases: list[ColumnBase]) -> tuple[Floats, Floats]:
    """Return the atoms (J, D) of a product of finite base measures, and their probabilities (J,)."""
    places = np.meshgrid(*(base.points for base in bases), indexing="ij")
    points = np.stack([place.ravel() for place in places], axis=1)
    return points, base_measures.cell_probabilities(bases, [None] * len(bases))


def _merged(values: Floats, counts: Floats, points: Floats, prior: Floats) -> tuple[Floats, Floats, Floats]:
    """Return all atoms, how often each was seen, and their prior Dirichlet parameters."""
    rows = np.concatenate([values, points])
    merged, where = np.unique(rows, axis=0, return_inverse=True)
    where = where.ravel()
    seen = np.bincount(where[: len(values)], counts, minlength=len(merged))
    weights = np.bincount(where[len(values) :], prior, minlength=len(merged))
    there = seen + weights > 0.0
    found = (merged[there], seen[there], weights[there])
    return found[0].astype(np.float64), found[1].astype(np.float64), found[2].astype(np.float64)


def _given_cells(
    model: DiscreteModel, release: Release, public: Public, columns: Sequence[Functional]
) -> ProcessPosterior:
    """Return the posterior given a release that depends on the numbers of records in cells."""
    cells, own = public.cells, release.mechanism
    synthesis = expect(own, SyntheticLaw) if own.released == "synthetic" else None
    assert cells is not None  # every such release has them
    if model.discount:
        raise SpecError(
            f"model.discount: {model.discount:g}; given counts in cells only a Dirichlet process is known, "
            "take discount 0"
        )
    vector = vector_of(model.base, cells.count, "cells")
    bases = bases_of(None if vector is not None else model.base, public, cells.grids)
    edges = [None if base.kind == ATOMS else cells.edges(i) for i, base in enumerate(bases)]
    if vector is None and model.base is None:
        vector = np.full(cells.count, 1.0 / cells.count)
    shares = vector if vector is not None else base_measures.cell_probabilities(bases, edges)
    shares = np.asarray(shares / shares.sum(), dtype=np.float64)
    polya = synthesis is not None and synthesis.generator == "dirichlet_multinomial"
    alpha = float(model.concentration if model.concentration is not None else 1.0)
    if synthesis is not None and polya and model.concentration is None:
        alpha = float(synthesis.concentration) * cells.count
    prior = alpha * shares
    places = np.stack(np.unravel_index(np.arange(cells.count), cells.shape), axis=1).astype(np.int64)
    tolerance = default_tolerance(alpha, float(release.n))
    base = base_measures.locations(bases, edges)
    finite = all(one.kind == ATOMS for one in bases)
    if finite:
        points = np.stack([bases[i].points[places[:, i]] for i in range(len(bases))], axis=1)
        measure = Measure(prior, np.empty(0), np.empty(0), 0.0, _nowhere(len(bases)), tolerance)
    else:
        points = np.empty((0, len(bases)))
        measure = Measure(np.empty(0), prior, prior.copy(), 0.0, places, tolerance)
    fixed = fixed_atoms(columns, points)
    law = partial(ProcessPosterior, measure, base, fixed, measure, fixed, alpha, 0.0)
    if synthesis is None:
        return law(True, expect(own, HistogramLaw).likelihood(release.values, release.n), shares)
    drawn = released(cells.of_values(release.values), cells.count)
    if polya and np.allclose(prior, float(synthesis.concentration), rtol=_AGREEMENT, atol=0.0):
        urn = ContinuedUrn(release.n, drawn, prior, alpha, 0.0, len(prior), closed=True)
        return law(urn.known_likelihood, urn=urn)
    likelihood = _likelihood(synthesis, release.n, cells, drawn)
    return law(not isinstance(likelihood, HiddenCounts), likelihood, shares)


def _likelihood(synthesis: SyntheticLaw, n: int, cells: Cells, drawn: Floats) -> Any:
    """Return the log-likelihoods of the counts, given synthetic records."""
    kind = synthesis.generator
    if kind == "dirichlet_multinomial":
        return PolyaDraws(drawn, float(synthesis.concentration))
    if kind == "smoothed_histogram" and not synthesis.noise:
        weight = float(synthesis.weight)
        return SmoothedDraws(drawn, (1.0 - weight) * cells.count / n, weight)
    noise, scale = NOISES[str(synthesis.noise)], synthesis.scale[0]
    weight = float(synthesis.weight) if kind == "smoothed_histogram" else 0.0
    return HiddenCounts(drawn, noise, scale, weight)


def _nowhere(columns: int) -> NDArray[np.int64]:
    return np.empty((0, columns), dtype=np.int64)


# Which released synthetic records show that they are new ones, or old ones


def told_apart(
    release: Release, public: Public, grids: Sequence[Grid | None], concentration: float
) -> tuple[tuple[Grid | None, ...], Floats, int, bool]:
    """Return what a release of synthetic records shows of old and new ones.

    Free labels: what was made up is called `new_category_1`, .. (A confidential label of that form is taken
    for a new one.) Numbers moved to a public grid: where some released values lie off it, the confidential
    records are not on it, and under a base measure without atoms those on it are new. Where all released
    values are on the grid the confidential ones are taken to be on it, and nothing is shown.

    Parameters
    ----------
    release : Release
    public : Public
    grids : sequence of Grid or None
        That new numbers of each column were moved to.
    concentration : float

    Returns
    -------
    grids : tuple of Grid or None
        Those that the confidential records are on.
    values : array (r, D)
        The released records that may be confidential values, with codes as in `public.names`.
    distinct : int
        Number of distinct released records, new ones among them.
    shown : bool
        Whether all of `values` are values of confidential records.

    Raises
    ------
    DataError
        When more records are on a grid than new ones can be.
    """
    values = np.array(release.values, dtype=np.float64)
    distinct = len(np.unique(values, axis=0))
    new = np.zeros(len(values), dtype=bool)
    free = [i for i, column in enumerate(public.columns) if column.free]
    for i in free:
        known = (release.labels[i] if release.labels else None) or ()
        old = np.array([confidential(label) for label in known], dtype=bool)
        codes = values[:, i].astype(np.int64)
        new |= ~old[codes]
        values[:, i] = (np.cumsum(old) - 1)[codes]
    kept = list(grids)
    on_all = np.ones(len(values), dtype=bool)
    for i, grid in enumerate(grids):
        if grid is None:
            continue
        on = values[:, i] == grid.nearest(values[:, i])
        if not on.all():
            kept[i] = None
            on_all &= on
    off = any(grid is not mine for grid, mine in zip(grids, kept, strict=True))
    if off and not free:
        _check_rare(int(on_all.sum()), len(values), release.n, concentration)
        new |= on_all
    shown = off or bool(free)
    return tuple(kept), values[~new], distinct, shown


def _check_rare(on: int, records: int, n: int, concentration: float) -> None:
    """Refuse a grid that some confidential records are on, and others are not."""
    from scipy.stats import betabinom  # late, as it is slow to import

    if on and concentration > 0.0 and betabinom.sf(on - 1, records, concentration, n) < _RARE:
        raise DataError(
            f"{on} of {records} released records are on the grid synthesis.snap and the others are not, more "
            "than new ones can be: which of them are confidential values is not known; release records "
            "without synthesis.snap, or with a grid that all confidential records are on"
        )
