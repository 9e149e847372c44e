"""`dpmix.advise`: which mechanism, epsilon and n a wanted precision takes, before any data."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.advising.advice import DOUBTFUL, Advice, Row, judged, needed_of
from dpmix.advising.mixtures import Found, MixtureAdvice, knows
from dpmix.advising.population import (
    BAND,
    EPSILONS,
    QUANTITIES,
    RECORDS,
    Population,
    by_group,
    check_kind,
    check_kinds,
    check_target,
    density_kinds,
    epsilons_of,
    needs_in_words,
    needs_of,
    population_of,
    prior_predictive,
    quantities_of,
    records_of,
    target_of,
)
from dpmix.api.advise_statistics import advise_statistic, is_statistic
from dpmix.api.arguments import PathLike, file_of, whole_of
from dpmix.api.kernel_of_spec import base_constants, kernel_attrs, kernel_of, mixing_of
from dpmix.columns.column_units import unit_of
from dpmix.columns.possible import Rule, holds
from dpmix.errors import PrivacyError, SpecError, UsageError
from dpmix.kernels import Beta, NormalNIG
from dpmix.kernels.layout import DEFAULT_POINTS
from dpmix.laws.every import EstimatedMoments, Law, law_of, law_type
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.curators.private_groups import groups_of
from dpmix.numerics.in_words import all_of, figures
from dpmix.results.nodes import percent
from dpmix.run.progress import show_work
from dpmix.spec import RunSpec, SpecSource, load_spec
from dpmix.spec.advise_section import BetaPopulation
from dpmix.spec.capabilities import listed
from dpmix.spec.kinds import KERNELS, MECHANISMS
from dpmix.spec.model_section import MixtureSection
from dpmix.store.atomic import check_output
from dpmix.summary.fitted_columns import family_on_line
from dpmix.synthesis.generator_choice import generator_of, section_of
from dpmix.synthesis.records import Column, Records, columns_of
from dpmix.synthesis.urn import PitmanYorRecords

if TYPE_CHECKING:
    from dpmix.columns.cells import Grid

__all__ = ["EPSILONS", "RECORDS", "advise", "laws_of"]

Floats = NDArray[np.float64]
Pair = tuple[float, float]

# The laws of releases that advice is about, calibrated as releases are, from public quantities alone


_DELTA = 1e-6


def laws_of(
    spec: RunSpec,
    pair: Pair,
    epsilons: list[float],
    records: list[int],
    kinds: list[str] | None,
    warnings: list[str],
) -> list[tuple[str, float, int, Law, float]]:
    """Return the law of each row, with its delta."""
    own = _own_of(spec, kinds)
    wanted = kinds if kinds is not None else _offered(spec, own)[0]
    for kind in wanted:
        check_kind(kind, own)
        if not knows(law_type(kind)):
            raise SpecError(
                f"mechanism.kind: what {kind} tells of a density is not known here; choose another"
            )
        if not _by_epsilon(kind):
            raise SpecError(
                f"mechanism.kind: {kind} is not calibrated by epsilon, which advice goes by; choose another"
            )
        if spec.groups is not None and not MECHANISMS.section(kind).grouped:
            others = [each for each in density_kinds() if MECHANISMS.section(each).grouped]
            raise UsageError(
                f"--mechanism: {kind} is not for groups whose sizes are private; use {listed(tuple(others))}"
            )
    found = []
    for kind in dict.fromkeys(wanted):
        for epsilon in epsilons:
            for n in records:
                try:
                    law, delta = _law(spec, kind, own, pair, epsilon, n)
                except PrivacyError as error:
                    if kinds is not None or kind == own:
                        raise
                    warnings.append(f"{kind} is left out at epsilon = {epsilon:g}: {error}")
                    break
                found.append((kind, epsilon, n, law, delta))
    return found


def _own_of(spec: RunSpec, kinds: list[str] | None = None) -> str | None:
    """Return the spec's own mechanism; what is not protected is compared with what would be."""
    if spec.mechanism is None or (kinds is None and not spec.mechanism.protects):
        return None
    return str(spec.mechanism.kind)


def _offered(spec: RunSpec, own: str | None) -> tuple[list[str], list[str]]:
    """Return the mechanisms to compare where none are named, and those that would have to be stated.

    Those of one column that epsilon calibrates, of either trust model, and the spec's own; of groups those
    that release groups.
    """
    column = [
        kind
        for kind in density_kinds()
        if MECHANISMS.section(kind).on_domain
        and (spec.groups is None or MECHANISMS.section(kind).grouped)
        and _by_epsilon(kind)
        and knows(law_type(kind))
    ]
    found = [kind for kind in column if not needs_of(kind)]
    if own is not None and own not in found:
        found.append(own)
    return found, [kind for kind in column if kind not in found]


def _by_epsilon(kind: str) -> bool:
    return any("epsilon" in statement for statement in MECHANISMS.section(kind).statements)


def _law(spec: RunSpec, kind: str, own: str | None, pair: Pair, epsilon: float, n: int) -> tuple[Law, float]:
    """Return the law of a mechanism at an epsilon, as `privatize` calibrates it, and its delta."""
    section = MECHANISMS.section(kind)
    stated: dict[str, Any] = {"kind": kind, **section.assumed}
    if kind == own and spec.mechanism is not None:
        stated = spec.mechanism.model_dump(by_alias=True, exclude_none=True)
    delta = stated.get("delta")
    for key in {key for statement in section.statements for key in statement} | {"domain", "n", "order"}:
        stated.pop(key, None)
    if stated.get("calibration") in ("paper", "classical"):
        stated.pop("calibration")
    stated |= {"epsilon": epsilon, "domain": [list(pair)]}
    if ("epsilon",) not in section.statements or stated.get("noise") in ("gaussian", "discrete_gaussian"):
        stated["delta"] = _DELTA if delta is None else delta
    made = load_spec({"mechanism": stated}).mechanism
    assert made is not None  # just stated
    groups = groups_of(spec.groups) if section.grouped else None
    calibrated = from_spec(made, 1, n, (), (), groups)
    return law_of(calibrated.describe()), float(calibrated.guarantee.delta or 0.0)


# The verb


_IN_UNITS = ("mean", "median", "quantile")  # what is in the unit of its column
_MOST_ROWS = 2_000
_MOST_RECORDS = 10**12
_SHARE = 0.01  # of the population beyond the bounds
_FINEST = 2e-4  # of the bounds' width, below which cells of y are coarse


def advise(
    spec: SpecSource,
    overrides: Sequence[str] = (),
    *,
    epsilon: Sequence[float] | float | None = None,
    n: Sequence[float] | float | None = None,
    mechanism: Sequence[str] | str | None = None,
    report: PathLike | None = None,
    jobs: int | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Advice:
    """Return what releases would tell of a public population, for each mechanism, epsilon and n.

    No record is read: ``data.path`` is never opened, need not exist, and may be left out.

    Parameters
    ----------
    spec : dict, path or RunSpec
        With public bounds or categories, and a model where that is not the default mixture. ``advise`` has
        the population, and the precision that is wanted.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    epsilon : sequence of float
        0.5, 1, 2 and 4 where left out.
    n : sequence of int
        1,000, 10,000 and 100,000 where left out.
    mechanism : sequence of str
        Where left out all for one column that epsilon calibrates, local and global, and the spec's own; of
        other models that alone.
    report : path, optional
        Page (.html) or picture (.svg, .png) to write.
    jobs : int, optional
        Threads; the number of cores where left out.
    force : bool
        Overwrite a report that is there.
    quiet : bool
        Show no progress.

    Raises
    ------
    SpecError
        When the spec lacks what is needed, or asks for what cannot be advised.
    UsageError
        For a list that makes no sense, and a report of another kind.
    PrivacyError
        When a mechanism that was asked for cannot give an epsilon.
    """
    checked = load_spec(spec, overrides, unread=True)
    epsilons, records = epsilons_of(epsilon), records_of(n)
    target_file = checked_report(report, force)
    kinds = _kinds_of(mechanism)
    if jobs is not None and whole_of(jobs, "--jobs") < 1:
        raise UsageError(f"--jobs {jobs} must be at least 1")
    section = checked.advise
    target = target_of(None if section is None else section.target)
    more_epsilons, more_records = _around(epsilons, records, bool(target))
    if len(more_epsilons) * len(more_records) > _MOST_ROWS:
        raise UsageError(f"--epsilon, --n: more than {_MOST_ROWS:,} rows a mechanism; give fewer")
    warnings: list[str] = []
    left_out = ""
    if is_statistic(checked.mechanism):
        _own_alone(checked, kinds)
        rows, population = advise_statistic(checked, more_epsilons, more_records, warnings)
    elif checked.mechanism is None and checked.generator is not None:
        rows, population = _advise_synthesis(checked, more_epsilons, more_records, kinds, warnings)
    else:
        _check_bounded(checked)
        check_target(target, quantities_of(checked))
        rows, population = _of_mixture(
            checked, more_epsilons, more_records, kinds, jobs or os.cpu_count() or 1, quiet, warnings
        )
        if kinds is None:
            unstated = _offered(checked, _own_of(checked))[1]
            left_out = " ".join(f"Not compared: {needs_in_words(kind)}." for kind in unstated)
    known = [*(rows[0].sd if rows else QUANTITIES), *([BAND] if rows and rows[0].band is not None else [])]
    check_target(target, known)
    rows = [row for row in needed_of(rows, target) if row.epsilon in epsilons and row.n in records]
    rows = judged(rows, target)
    doubtful = sum(row.least is not None and row.least < DOUBTFUL for row in rows)
    if doubtful:
        few = "one row has" if doubtful == 1 else f"{doubtful} of {len(rows)} rows have"
        warnings.append(
            f"{few} a contraction below {DOUBTFUL:g}: there the prior speaks, and figures are rough"
        )
    if min(records) < 100:
        warnings.append("below 100 records figures by information are rough: posteriors are far from normal")
    quantity = next(iter(target), QUANTITIES[1] if QUANTITIES[1] in known else known[0])
    found = Advice(
        tuple(rows), population, target, tuple(warnings), quantity, _units(checked, known), left_out
    )
    if target_file is not None:
        from dpmix.advising.advice import write

        write(found, target_file, force=force)
    return found


def plan(
    spec: RunSpec,
    *,
    epsilon: Sequence[float] | float | None = None,
    n: Sequence[float] | float | None = None,
    mechanism: Sequence[str] | str | None = None,
    report: PathLike | None = None,
    force: bool = False,
) -> str:
    """Do the checks of `advise` that take no computing, and return what would be done, in words.

    The checks are of options, report, population, bounds and laws.

    Raises SpecError, UsageError and PrivacyError as `advise`.
    """
    checked_report(report, force)
    epsilons, records = epsilons_of(epsilon), records_of(n)
    kinds = _kinds_of(mechanism)
    if is_statistic(spec.mechanism):
        _own_alone(spec, kinds)
    elif spec.mechanism is not None or spec.generator is None:
        _check_bounded(spec)
        pair = _pair_of(spec)
        _model_of(spec)
        if spec.advise is not None and spec.advise.population is not None:
            population_of(spec.advise.population, pair)
        laws_of(spec, pair, epsilons, records, kinds, [])
    sizes = all_of([f"{size:,}" for size in records]) + (" records" if records[-1] > 1 else " record")
    named = all_of(figures(epsilons))
    return f"work out how precise releases of {sizes} are at epsilon {named}, and read no data"


def _kinds_of(given: Sequence[str] | str | None) -> list[str] | None:
    """Return the mechanisms that are asked for; None where none are named."""
    if given is None or isinstance(given, str):
        return None if given is None else [given]
    if not isinstance(given, Iterable):
        raise UsageError(f"--mechanism: must be a name or a list of names, not {type(given).__name__}")
    found = list(map(str, given))
    check_kinds(found)
    return found


def _units(spec: RunSpec, quantities: Iterable[str]) -> dict[str, str]:
    """Return the units of quantities, those of a column or of coefficients; without those that have none."""
    data = spec.data
    names = () if data is None else data.columns or ()
    if data is None or not names:
        return {}
    own = {name: "days" if name in data.dates else unit_of(data.unit, name) for name in names}
    in_units = () if is_statistic(spec.mechanism) else _IN_UNITS  # of compositions means are shares
    found = {}
    for quantity in quantities:
        what, _, rest = quantity.partition("[")
        rest = rest.removesuffix("]")
        if what in in_units:
            found[quantity] = own.get(rest.partition(",")[0], "") if len(names) > 1 else own[names[0]]
        elif what == "beta":
            response, each = own[names[-1]], own.get(rest.rpartition(",")[2], "")
            found[quantity] = response if rest.endswith("intercept") else _slope(response, each)
    return {quantity: unit for quantity, unit in found.items() if unit}


def _slope(response: str, predictor: str) -> str:
    """Return the unit of a slope; none of two of the same, which is a number, or of one that is not known."""
    if not (response and predictor) or response == predictor:
        return ""
    return f"{response} per {'day' if predictor == 'days' else predictor}"


def _around(epsilons: list[float], records: list[int], wanted: bool) -> tuple[list[float], list[int]]:
    """Return more epsilons and numbers of records to look at, where what is wanted takes slopes."""
    if wanted and len(epsilons) == 1:
        epsilons = [0.5 * epsilons[0], epsilons[0], 2.0 * epsilons[0]]
    if wanted and len(records) == 1:
        records = [records[0], min(10 * records[0], _MOST_RECORDS)]
    return epsilons, sorted(set(records))


def checked_report(report: PathLike | None, force: bool) -> Path | None:
    """Return the file that a report goes to, None where there is none.

    Raises
    ------
    UsageError
        When its name has another ending than a page's or a picture's, or it is there already.
    """
    if report is None:
        return None
    path, suffixes = file_of(report, "report"), (".html", ".htm", ".svg", ".png")
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"--report {path}: a page is a .html file, a picture .svg or .png; change the name")
    check_output(path, force=force)
    return path


def _own_alone(spec: RunSpec, kinds: list[str] | None) -> None:
    assert spec.mechanism is not None  # the caller looked
    others = [kind for kind in kinds or () if kind != spec.mechanism.kind]
    if others:
        raise UsageError(
            f"--mechanism: {others[0]} releases another thing than {spec.mechanism.kind}, and cannot be set "
            "beside it; leave it out"
        )


def _of_mixture(
    spec: RunSpec,
    epsilons: list[float],
    records: list[int],
    kinds: list[str] | None,
    jobs: int,
    quiet: bool,
    warnings: list[str],
) -> tuple[list[Row], str]:
    pair = _pair_of(spec)
    model = _model_of(spec)
    section = None if spec.advise is None else spec.advise.population
    public = None if section is None else population_of(section, pair)
    problem = _problem(spec, model, pair, public)
    public = problem.population
    if public.beyond > _SHARE:
        warnings.append(
            f"advise.population: a share of {public.beyond:.2g} lies beyond the bounds [{pair[0]:g}, "
            f"{pair[1]:g}], where records are cut; wider bounds cost precision, narrower ones the tails"
        )
    laws = laws_of(spec, pair, epsilons, records, kinds, warnings)
    groups = () if spec.groups is None else spec.groups[1]
    share = max(1, len(groups))
    rows = [(law, max(1, n // share)) for _, _, n, law, _ in laws]
    with show_work("advising", len(rows), quiet) as tell:
        found = problem.of_rows(rows, jobs, tell)
    made = [
        Row(kind, law.trust, epsilon, delta, n, *_by_group(each, groups))
        for (kind, epsilon, n, law, delta), each in zip(laws, found, strict=True)
    ]
    finest = _FINEST * (pair[1] - pair[0])
    if any(min(each.sd.values()) < finest for each in found):
        warnings.append(
            f"standard deviations below {finest:.3g}, {_FINEST:g} of the bounds' width, are too fine for the "
            "cells of advice: fits may do better"
        )
    words = public.name
    if groups:
        words += f", the same in {len(groups)} groups of equal size"
    return made, words


def _by_group(found: Found, groups: Sequence[str]) -> tuple[Mapping[str, float], Any, Mapping[str, Any]]:
    """Return figures by group where there are groups, the same for each."""
    if not groups:
        return found.sd, found.band, found.contraction

    def named(values: Mapping[str, Any]) -> dict[str, Any]:
        return {by_group(name, group): value for group in groups for name, value in values.items()}

    return named(found.sd), found.band, named(found.contraction)


def _check_bounded(spec: RunSpec) -> None:
    """Refuse a mechanism that releases neither a statistic known here nor a column with public bounds."""
    own = spec.mechanism
    if own is not None and own.protects and not own.on_domain:
        raise SpecError(
            f"mechanism.kind: {own.kind} cannot be advised; choose one for a column with public bounds, or "
            "noisy_counts, clamped_moments, log_moments or randomized_response"
        )


def _pair_of(spec: RunSpec) -> Pair:
    pairs = spec.mechanism.domain if spec.mechanism is not None else None
    pairs = pairs or (None if spec.data is None else spec.data.pairs)
    names = None if spec.data is None else spec.data.columns
    if pairs is None:
        raise SpecError("data.domain: missing; advice is about a column with public bounds; give [lo, hi]")
    if len(pairs) != 1 or (names is not None and len(names) > 1):
        count = max(len(pairs), len(names or ()))
        raise SpecError(
            f"data.columns: advice is about one column, and there are {count}; name one with its own bounds, "
            f"and divide epsilon by {count}, as a release of all does"
        )
    return pairs[0][0], pairs[0][1]  # of dates a `Day` each, which is told as a date


def _model_of(spec: RunSpec) -> MixtureSection:
    if spec.model is None:
        default: MixtureSection = KERNELS.section("normal").model_validate({"kind": "mixture"})
        return default
    if not isinstance(spec.model, MixtureSection):
        raise SpecError(
            f"model.kind: {spec.model.kind} given "
            f"{'no release' if spec.mechanism is None else 'a ' + spec.mechanism.kind + ' release'} cannot "
            "be advised; use mixture, or a model of noisy_counts, clamped_moments, log_moments or "
            "randomized_response"
        )
    if spec.model.several:
        raise SpecError("model.kernel: multivariate_normal cannot be advised; use normal for one column")
    if spec.model.discount > 0.0:
        raise SpecError("model.discount: a discount above 0 cannot be advised; set it to 0")
    return spec.model


def _problem(spec: RunSpec, model: MixtureSection, pair: Pair, public: Population | None) -> MixtureAdvice:
    """Return model and population, the prior predictive where none is stated."""
    base = getattr(model, "base", None)
    if getattr(base, "kind", None) == "truncated_nig" or getattr(base, "empirical", False) == "paper":
        raise SpecError(
            "model.base: one that knows the noise or the release cannot be advised; leave it out for one "
            "that follows the public bounds"
        )
    if getattr(base, "empirical", False) and public is None:
        raise SpecError(
            "model.base.empirical: is made of the release, and there is none; give advise.population, whose "
            "moments then stand for it, or leave model.base out"
        )
    mean, variance = (0.0, 0.0) if public is None else public.moments()
    seen = SimpleNamespace(noise_scale=math.nan, z=np.empty(0))
    known = SimpleNamespace(
        domain=[pair], additive=True, moments=lambda *_: EstimatedMoments(mean, variance, 0.0)
    )
    release: Any = SimpleNamespace(mechanism=known, values=np.empty((0, 1)), n=0, kind="population")
    stand_in: Any = seen
    kernel, source, learned = kernel_of(spec.model_copy(update={"model": model}), release, stand_in, [0])
    if not isinstance(kernel, NormalNIG | Beta):
        raise SpecError(f"model.kernel: {model.name} cannot be advised; use normal or beta")
    attrs = kernel_attrs(model, source, learned)
    constants: Any = base_constants(kernel, learned)
    family = family_on_line(attrs["kernel"], attrs["base"], constants)
    population = prior_predictive(family, pair) if public is None else public
    return MixtureAdvice(
        kernel, learned, mixing_of(model), family, population, _grid(spec, family, pair), spec.summary.level
    )


def _grid(spec: RunSpec, family: Any, pair: Pair) -> Any:
    """Return the grid of summaries; see `dpmix.summary.fitted_columns.choose_grids`."""
    asked, (lo, hi) = spec.summary.grids(), pair
    margin = 0.0 if bool(getattr(spec.model, "bounded", False)) else 0.1 * (hi - lo)
    low, high, points = asked[0] if asked else (lo - margin, hi + margin, DEFAULT_POINTS)
    return family.inside(np.linspace(float(low), float(high), int(points)))


# Synthetic records: how far off the population they will be, by generators at work on it


_RUNS = 40
_NUMBERS = 20_000_000  # that one row may draw
_SEED = 23
_BETA = BetaPopulation(kind="beta", a=2.0, b=5.0)  # of numbers on their bounds, where no population is stated
_IGNORED = 0.1  # share of synthetic records that ignore the data, above which it is said
_POINTS = 2**23  # numbers that truth is computed from
_LEAST_POSSIBLE = 1e-3
_QUANTILES = {"median": 0.5, "quantile[0.25]": 0.25, "quantile[0.75]": 0.75}


def _advise_synthesis(
    spec: RunSpec, epsilons: list[float], records: list[int], kinds: list[str] | None, warnings: list[str]
) -> tuple[list[Row], str]:
    """Return rows of the spec's own synthesis, and the population in words.

    What stands for a posterior's standard deviation is the root mean square error of a quantity among the
    synthetic records about the population's, over releases of samples that are drawn from it: that of
    `_tried_on`.

    Raises
    ------
    SpecError
        For free labels, of which nothing is public.
    UsageError
        For other kinds than the spec's, and so many records that it would take long.
    """
    section = section_of(spec)
    others = [kind for kind in kinds or () if kind != section.kind]
    if others:
        raise UsageError(
            f"--mechanism: advice about synthesis is about the spec's own kind, {section.kind}; name another "
            "in synthesis.kind"
        )
    columns = columns_of(spec.data)
    for column in columns:
        if column.free:
            raise SpecError(
                f"data.categories: missing for {column.name}; nothing is public of its labels that advice "
                "could be about"
            )
    public = None if spec.advise is None else spec.advise.population
    if public is not None and (len(columns) > 1 or columns[0].bounds is None):
        raise SpecError("advise.population: is for one column of numbers; leave it out")
    if max(records) * len(columns) * _RUNS > _NUMBERS * _RUNS // 4:
        limit = _NUMBERS // (4 * len(columns))
        raise UsageError(f"--n: advice about synthesis draws samples; give at most {limit:,} records")
    tried: _Tried | None = None
    rows, shares = [], {}
    for epsilon in epsilons:
        for n in records:
            asked = section.model_copy(update={"epsilon": epsilon, "n": n})
            generator = generator_of(asked, columns, n)
            if tried is None:
                tried = _tried_on(
                    columns, public, () if generator.possible is None else generator.possible.rules
                )
            shares[epsilon, n] = _ignored(generator, n)
            spent = generator.guarantee
            sd = _errors(generator, tried, n)
            rows.append(Row(section.kind, spent.trust, epsilon, float(spent.delta or 0.0), n, sd, None, {}))
    assert tried is not None  # no list is empty
    (epsilon, n), most = max(shares.items(), key=lambda item: item[1])
    if most > _IGNORED:
        remedy = ""
        if public is None and len(columns) == 1 and columns[0].bounds is not None:
            remedy = "; state advise.population by what is public"
        warnings.append(
            f"{percent(most)} of the synthetic records at epsilon = {epsilon:g}, n = {n:,} are drawn without "
            f"a look at the data, so that errors there are those of the population that is tried{remedy}"
        )
    return rows, tried.name


def _ignored(generator: Any, n: int) -> float:
    """Return about what share of synthetic records looks at no record; 0 where noise on counts protects."""
    if isinstance(generator, PitmanYorRecords):
        distinct = (
            n if any(column.bounds is not None for column in generator.columns) else 1
        )  # numbers, about
        return float(
            (generator.concentration + distinct * generator.discount) / (generator.concentration + n)
        )
    return generator.uniform_share or 0.0


class _Tried(NamedTuple):
    """The law of records that synthesis is tried on.

    Parameters
    ----------
    name : str
        In words.
    columns : tuple of Column
    laws : list
        Of each column, from uniform numbers in [0, 1) to its values.
    rules : tuple of Rule
        What holds of records.
    truth : dict
        What is true of each quantity: a number, or the shares of categories.
    """

    name: str
    columns: tuple[Column, ...]
    laws: list[Callable[[Floats], Floats]]
    rules: tuple[Rule, ...]
    truth: dict[str, Any]

    def made(self, uniform: Floats) -> Floats:
        """Return the possible ones among records made of uniform numbers (m, d)."""
        values = np.column_stack([law(uniform[:, i]) for i, law in enumerate(self.laws)])
        return values[holds(self.rules, values)] if self.rules else values

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw n records."""
        found = np.empty((0, len(self.laws)))
        while len(found) < n:
            found = np.concatenate([found, self.made(rng.random((n, len(self.laws))))])
        return found[:n]

    def told(self, values: Floats) -> dict[str, Any]:
        """Return what records say of each quantity."""
        found: dict[str, Any] = {}
        for i, column in enumerate(self.columns):
            own = values[:, i]
            if column.bounds is None:
                count = len(column.categories or ())
                of: dict[str, Any] = {"share": np.bincount(own.astype(np.int64), minlength=count) / len(own)}
            else:
                at = np.quantile(own, list(_QUANTILES.values()))
                of = {"mean": own.mean(), **dict(zip(_QUANTILES, at, strict=True))}
            found |= {
                (name if len(self.columns) == 1 else by_group(name, column.name)): value
                for name, value in of.items()
            }
        return found


def _tried_on(columns: tuple[Column, ...], public: Any, rules: tuple[Rule, ...]) -> _Tried:
    """Return the law of records: of a public population, or else of columns that are skewed.

    Generators mix records with uniform ones, and draw uniformly within bins: a uniform population would
    hide both. Where ranges are stated it is the law given that they hold.

    Raises
    ------
    SpecError
        When hardly any record is possible.
    """
    from scipy.stats import qmc

    laws: list[Callable[[Floats], Floats]] = []
    for column in columns:
        if column.bounds is None:
            weights = 1.0 / np.arange(1, len(column.categories or ()) + 1)
            laws.append(partial(_category, np.cumsum(weights / weights.sum())))
        else:
            section = _BETA if public is None else public
            laws.append(partial(_number, population_of(section, column.bounds), column.lattice))
    numbers = [column.bounds for column in columns if column.bounds is not None]
    words = [f"numbers Beta({_BETA.a:g}, {_BETA.b:g}) on their bounds"] * bool(numbers)
    words += ["the k-th category 1/k times as likely as the first"] * (len(numbers) < len(columns))
    name = f"columns that are independent, {' and '.join(words)}"
    if len(columns) == 1:
        section = _BETA if public is None else public
        name = population_of(section, numbers[0]).name if numbers else f"a column, {words[0]}"
    if rules:
        name += ", as far as synthesis.ranges have them possible"
    tried = _Tried(name, columns, laws, rules, {})
    size = min(20, int(math.log2(_POINTS / len(columns))))
    made = tried.made(qmc.Sobol(len(columns), seed=_SEED).random_base2(size))
    if len(made) < _LEAST_POSSIBLE * 2**size:
        raise SpecError(
            f"synthesis.ranges: of {name.partition(', as far')[0]} less than {_LEAST_POSSIBLE:.1%} are "
            "possible, too few to try synthesis on; give wider ranges"
        )
    return tried._replace(truth=tried.told(made))


def _category(steps: Floats, uniform: Floats) -> Floats:
    return np.minimum(np.searchsorted(steps, uniform, side="right"), len(steps) - 1).astype(np.float64)


def _number(population: Population, lattice: Grid | None, uniform: Floats) -> Floats:
    values = population.quantiles(uniform)
    return values if lattice is None else lattice.nearest(values)


def _errors(generator: Any, tried: _Tried, n: int) -> dict[str, float]:
    """Return root mean square errors by quantity."""
    columns = tried.columns
    squares: dict[str, list[float]] = {}
    for run in range(max(4, min(_RUNS, _NUMBERS // (n * len(columns))))):
        rng = np.random.default_rng([_SEED, run])
        values = tried.draw(rng, n)
        labels = tuple(column.categories for column in columns)
        records = Records(columns, values, labels, (0,) * len(columns), rng=rng)
        made, _ = generator.draw(records, rng)
        for name, value in tried.told(made).items():
            squares.setdefault(name, []).append(float(np.mean((value - tried.truth[name]) ** 2)))
    return {name: math.sqrt(float(np.mean(errors))) for name, errors in squares.items()}
