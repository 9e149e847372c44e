"""What a spec describes, in a few words a section."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from dpmix.numerics.in_words import permits_verbatim
from dpmix.numerics.in_words import stated as exact
from dpmix.spec.capabilities import counted
from dpmix.spec.combinations import auto_in_words, why_settled
from dpmix.spec.data_section import DigitsType, digits_of
from dpmix.spec.days import Day
from dpmix.spec.kinds import AUTO
from dpmix.spec.limits import ONE_COLUMN, SEVERAL_COLUMNS
from dpmix.spec.model_section import PREDICTORS_CURE, GammaPrior, MixtureSection
from dpmix.spec.synthesis_section import ChainsSynthesis

if TYPE_CHECKING:
    from dpmix.spec.advise_section import AdviseSpec
    from dpmix.spec.audit_section import AuditSpec
    from dpmix.spec.data_section import DataSpec
    from dpmix.spec.mechanism_section import MechanismSection
    from dpmix.spec.privacy_section import PrivacySpec
    from dpmix.spec.run_spec import RunSpec
    from dpmix.spec.synthesis_section import SynthesisSection

Pair = tuple[float, float]
Pairs = tuple[Pair, ...]
NARROW, WIDE = 0.25, 20.0
"""Widths of bins between which it matters which whole numbers they hold."""
ROUNDED = 0.1
"""Share of records that may well be rounded to where cells begin."""
MOST_ROUNDED = 0.5
"""Share that may be, where nothing but this says so: no summary follows synthetic records."""
COARSE = 8
"""Fewer cells are wider than what people round to."""
SPREAD, KEPT = 0.1, 0.95
"""The sd of a column as a share of its bounds, and the share of a correlation that bins should keep."""


def describe(spec: RunSpec) -> dict[str, str]:
    """Return one line per section that the spec has, keyed by the section's name."""
    lines: dict[str, str] = {}
    if spec.data is not None:
        lines["data"] = _data(spec.data)
    if spec.release is not None:
        columns = ", ".join(spec.release.columns or ("all columns",))
        lines["release"] = f"{columns} of {', '.join(map(str, spec.release.files)) or 'the release file'}"
    if spec.mechanism is not None:
        lines["mechanism"] = _mechanism(spec.mechanism, spec.groups is not None) + _by_groups(spec)
    if spec.synthesis is not None:
        lines["synthesis"] = _synthesis(spec.synthesis)
    if isinstance(spec.model, MixtureSection):
        domain = None if spec.mechanism is None else spec.mechanism.domain
        grouped = any(part is not None and part.group is not None for part in (spec.data, spec.release))
        lines["model"] = _mixture(spec.model, domain, grouped)
    elif spec.model is not None:
        lines["model"] = spec.model.in_words(spec)
    if spec.audit is not None:
        lines["audit"] = _audit(spec.audit)
    if spec.advise is not None:
        lines["advise"] = _advise(spec.advise)
    if spec.privacy is not None:
        lines["privacy"] = _privacy(spec.privacy)
    if spec.model is not None:
        sampler = spec.sampler
        why = why_settled(spec)
        kind = f"{sampler.kind}," if why is None else f"auto: {sampler.kind}, for {why};"
        kind = auto_in_words(spec) + ";" if sampler.kind == AUTO else kind
        lines["sampler"] = (
            f"{kind} {counted(sampler.chains, 'chain')} of {counted(sampler.iterations, 'sweep')} "
            f"({sampler.burn_in_sweeps} burn-in), {counted(sampler.draws * sampler.chains, 'draw')} kept"
        )
    return lines


def _audit(audit: AuditSpec) -> str:
    delta = f", delta = {exact(audit.delta)}" if audit.delta else ""
    program = "a program given in Python" if audit.command is None else " ".join(audit.command)
    tables = "made of public bounds" if audit.tables is None else " and ".join(map(str, audit.tables))
    return f"{program}, which claims epsilon = {exact(audit.epsilon)}{delta}; tables {tables}"


def _advise(advise: AdviseSpec) -> str:
    population = advise.population
    of = "the prior predictive" if population is None else f"a {population.kind} population"
    wanted = ", ".join(f"{name} to {exact(sd)}" for name, sd in (advise.target or {}).items())
    return of + (f", which should tell {wanted}" if wanted else "")


def _by_groups(spec: RunSpec) -> str:
    """Say which groups are released together, if any."""
    if spec.groups is None:
        return ""
    name, names = spec.groups
    return f", of {len(names)} groups by {name} ({', '.join(names)}) whose sizes are private"


def _data(data: DataSpec) -> str:
    if data.simulate is not None:
        seed = "" if data.seed is None else f", seed {data.seed}"
        return f"{counted(data.n or 0, 'record')} of {data.simulate}{seed}, simulated"
    nowhere = data.path is None and data.held is None  # of what is not read
    place = "a file that is not named" if nowhere else ", ".join(map(str, data.source.parts))
    by = "" if data.group is None else f" by {data.group}"
    part = "" if data.part is None else f", a public part of {data.part.of}"
    return f"{', '.join(data.columns or ('all columns',))}{by} of {place}{part}"


def permitted(spec: RunSpec) -> list[str]:
    """Return what is to be said of the deltas that a spec asks for, of as many records as it states."""
    found = []
    for section in (spec.mechanism, spec.synthesis):
        n = getattr(section, "n", None) or (None if spec.data is None else spec.data.n)
        text = permits_verbatim(getattr(section, "delta", None), n)
        found += [f"{'note' if n is None else 'warning'}: {text}"] if text else []
    return found


def of_columns(spec: RunSpec, n: int | None = None) -> list[str]:
    """Return what is to be said, before anything is released, of columns whose values may be few.

    n is the number of records, where it is known.
    """
    return [*predictors_of_two(spec), *cells_of_whole_numbers(spec), *cells_of_rounded(spec, n)]


def of_synthetic_columns(spec: RunSpec, n: int | None = None) -> list[str]:
    """Return the same of columns whose records are drawn from cells, before anything is drawn."""
    return [
        *_draws_of_whole_numbers(spec),
        *cells_of_rounded(spec, n, synthetic=True),
        *_correlations_in_cells(spec, n),
    ]


class _InCells(NamedTuple):
    """A column of numbers that is released in equal cells.

    `integer` says whether values are whole numbers, None where there is no type; `what` is "bins" or "cells".
    """

    name: str
    integer: bool | None
    bounds: Pair
    what: str
    cells: int


def _in_cells(spec: RunSpec) -> Iterator[_InCells]:
    """Go through the columns that a mechanism has in equal cells."""
    mechanism, data = spec.mechanism, spec.data
    what = "bins" if hasattr(mechanism, "bins") else "cells"
    cells = getattr(mechanism, what, None)
    if mechanism is None or cells is None:
        return
    columns = () if data is None else data.columns or ()
    domain = mechanism.domain or ()
    names = columns if len(columns) == len(domain) else [f"column {i + 1}" for i in range(len(domain))]
    for name, pair in zip(names, domain, strict=True):
        yield _InCells(name, _integer(spec, name), pair, what, cells)


def _in_synthetic_cells(spec: RunSpec) -> Iterator[_InCells]:
    """Go through the columns of numbers that records are counted in bins of; points of a grid are no bins."""
    section, data = spec.generator, spec.data
    if section is None or data is None or not section.counts:
        return
    names, types, snap = data.columns or ("value",), data.types or {}, section.snap
    gridded = names if snap is not None and not isinstance(snap, Mapping) else tuple(snap or ())
    binned = [
        (name, pair)
        for i, name in enumerate(names)
        if (pair := data.bounds_of(i)) is not None and types.get(name) != "category" and name not in gridded
    ]
    bins: Any = getattr(section, "bins", None) or (ONE_COLUMN if len(binned) == 1 else SEVERAL_COLUMNS)
    counts = [bins] * len(binned) if isinstance(bins, int) else bins
    for (name, pair), cells in zip(binned, counts, strict=False):
        yield _InCells(name, _integer(spec, name), pair, "bins", cells)


def _integer(spec: RunSpec, name: str) -> bool | None:
    """Return whether values of a column are whole numbers, None where it has no type."""
    kind = None if spec.data is None else (spec.data.types or {}).get(name)
    return None if kind is None else digits_of(kind) == 0


def round_cells(low: float, high: float, cells: int, *, whole: bool = False) -> Pair | None:
    """Return where equal cells begin and end that begin at multiples of their width, which is round.

    None of others. Round are 1, 2, 2.5 and 5 times a power of ten: what people round to, or parts of it. Of
    `whole` numbers a cell begins with the first one that it holds: 20 cells of [-0.5, 99.5], of [0, 99] or
    of [0, 100] at 0, 5, 10, ..
    """
    pairs = [(low, high), (float(math.ceil(low)), float(math.floor(high) + 1))]
    for start, end in pairs if whole else pairs[:1]:
        width = (end - start) / cells
        leading = width / 10.0 ** math.floor(math.log10(width))
        is_round = any(math.isclose(leading, each, rel_tol=1e-9) for each in (1.0, 2.0, 2.5, 5.0, 10.0))
        if is_round and abs(start / width - round(start / width)) <= 1e-9 * max(abs(start / width), 1.0):
            return start, end
    return None


def cells_of_rounded(spec: RunSpec, n: int | None = None, *, synthetic: bool = False) -> list[str]:
    """Return what is to be said of cells that begin at round numbers, which records may be rounded to.

    A fit takes records to lie in the middle of their cell, about, and `synthetic` records fill theirs evenly.
    A tenth of them rounded moves the mean by a twentieth of a cell, which is hidden where the records, n, are
    few; of synthetic ones half of them.
    """
    n = spec.data.n if n is None and spec.data is not None else n
    share, of = (MOST_ROUNDED, "synthetic records") if synthetic else (ROUNDED, "a fit")
    found = []
    for name, integer, (low, high), what, cells in (_in_synthetic_cells if synthetic else _in_cells)(spec):
        if isinstance(low, Day) or cells < COARSE:
            continue
        ends = round_cells(low, high, cells, whole=bool(integer))
        if ends is None:
            continue
        width = (ends[1] - ends[0]) / cells
        shift = max(width - bool(integer), 0.0) / 2.0
        if not shift or (n is not None and share * shift * math.sqrt(n) < (high - low) / 6.0):
            continue
        pair = f"[{ends[0] - width / 2.0:.12g}, {ends[1] + width / 2.0:.12g}]"
        better = f"{{{name}: {pair}}}" if synthetic else pair
        cure = f"; data.domain: {better} in {counted(cells + 1, 'bin')} has them in the middle"
        if synthetic:
            cure += f", and synthesis.ranges: [{{{name}: [{low:.12g}, {high:.12g}]}}] keeps records within"
        found.append(
            f"note: where values of {name} are rounded to {width:g}, they lie where {what} begin, and mean "
            f"and quantiles of {of} are too high by up to {shift:g}" + (cure if what == "bins" else "")
        )
    return found


def cells_of_whole_numbers(spec: RunSpec) -> list[str]:
    """Return what is to be said of bins or cells that do not hold as many whole numbers each, in the middle.

    A fit takes records to lie anywhere in theirs, unless the type of the column is integer and each of them
    holds a whole number. Of a column without a type this is said where its bounds are whole numbers, or days,
    ten or more apart. Of wide bins it matters little, nor of narrow ones.
    """
    found = []
    for name, integer, (low, high), what, bins in _in_cells(spec):
        width = (high - low) / bins
        even = width % 1.0 == 0.0 and low % 1.0 == 0.5
        matters = NARROW <= width <= WIDE and not even
        if not (matters and (_whole(low, high) if integer is None else integer)):
            continue
        first, last = math.ceil(low), math.floor(high)
        number = last - first + 1
        # as a fit takes them where the type is stated (`CellsLaw.edges`)
        inner = (math.ceil(low + (high - low) * (i / bins)) - 0.5 for i in range(1, bins))
        known = all(one < other for one, other in pairwise([low, *inner, high]))
        if number < 2 or (known and integer is not None):
            continue
        held = (each for each in range(1, min(number, 2 * int(WIDE)) + 1) if number % each == 0)
        equal = number // min(held, key=lambda each: abs(math.log(each / width)))
        unit = "days" if isinstance(low, Day) else "numbers"
        if known:
            cure = f"data.types: {{{name}: integer}} lets fits know"
        elif what == "bins" and unit == "numbers":
            cure = f"data.domain: [{first - 0.5:.1f}, {last + 0.5:.1f}] in {counted(equal, 'bin')} does"
        else:
            cure = f"fewer {what if what == 'bins' else 'mechanism.levels'}, with one of these in each, do"
        begin, then = ("note: where values of", ",") if integer is None else ("warning: values of", ":")
        found.append(
            f"{begin} {name} are whole {unit}{then} {what} of {width:g} do not hold as many of them each, "
            f"and mean, sd and quantiles of a fit are off by up to {min(width, 1.0) / 2.0:g}; {cure}"
        )
    return found


def _draws_of_whole_numbers(spec: RunSpec) -> list[str]:
    """Return what is to be said of synthetic records whose bins are filled evenly, without a type.

    It is said of the columns and bins that `cells_of_whole_numbers` speaks of, but for dates: these are
    drawn as whole days.
    """
    found = []
    for name, integer, (low, high), _, bins in _in_synthetic_cells(spec):
        width = (high - low) / bins
        if integer is not None or isinstance(low, Day) or not _whole(low, high):
            continue
        if NARROW <= width <= WIDE:
            found.append(
                f"note: where values of {name} are whole numbers, draws from bins of {width:g} are not, and "
                f"mean and quantiles of synthetic records are off by up to {min(width, 1.0) / 2.0:g}; "
                f"data.types: {{{name}: integer}} has whole numbers drawn"
            )
    return found


def _correlations_in_cells(spec: RunSpec, n: int | None = None) -> list[str]:
    """Return what is to be said of the correlation of two columns whose bins are filled evenly.

    Draws of a column of sd s in bins of width w have the variance s^2 + w^2/6, a twelfth of w^2 for where in
    its bin a record is and one for where its draw is (Sheppard's correction); covariances stay. Of whole
    numbers w^2 - 1 stands for w^2. Nothing is said where so few records, n, hide it.
    """
    n = spec.data.n if n is None and spec.data is not None else n
    kept: dict[str, float] = {}
    for name, integer, (low, high), _, cells in _in_synthetic_cells(spec):
        step = (1.0 if integer or isinstance(low, Day) else 0.0) / float(high - low)
        kept[name] = (1.0 + max(cells**-2.0 - step**2, 0.0) / (6.0 * SPREAD**2)) ** -0.5
    worst = sorted(kept, key=kept.__getitem__)[:2]
    share = math.prod(kept[name] for name in worst)
    if len(worst) < 2 or share >= KEPT or (n is not None and (1.0 - share) * math.sqrt(n) < 1.0):
        return []
    return [
        "note: draws fill bins evenly, and how columns go together within bins is lost: where the standard "
        f"deviations of {worst[0]} and {worst[1]} are a tenth of their bounds, the correlation of their "
        f"draws is {share:.0%} of theirs, whatever epsilon is; more bins keep more of it, under more noise"
    ]


def _whole(low: float, high: float) -> bool:
    """Whether bounds are whole numbers, or days, so far apart that values may be such."""
    return low % 1.0 == 0.0 and high % 1.0 == 0.0 and high - low >= 10.0


def predictors_of_two(spec: RunSpec) -> list[str]:
    """Return what is to be said of a regression's predictors whose public bounds may be all their values."""
    model = spec.model
    if model is not None and (
        model.kind != "linear_regression" or getattr(model, "predictors", "") == "clamped"
    ):
        return []
    data = spec.data
    types = {} if data is None else data.types or {}
    found = []
    for name, low, high in bounds_of_two(spec).values():
        where = f"{'as' if types.get(name) else 'where'} its values are {low:g} and {high:g} alone"
        found.append(
            f"note: {name} has bounds [{low:g}, {high:g}]: {where}, slopes and predictions of a regression "
            f"on it are not of these values; {PREDICTORS_CURE}"
        )
    return found


def rows_outside(spec: RunSpec) -> list[str]:
    """Return what is to be said of rows to predict that lie outside of the predictors' public bounds."""
    rows_outside_of = getattr(spec.model, "rows_outside", None)
    if rows_outside_of is None:
        return []
    names, bounds = _names_and_bounds(spec)
    return [f"note: of model.predict {text}" for text in rows_outside_of(bounds[:-1], names[:-1])]


def bounds_of_two(spec: RunSpec) -> dict[int, tuple[str, float, float]]:
    """Return name and bounds of clamped moments' predictors, by number, where these may be all their values.

    These are two whole numbers, one apart, of a column that has no digits after the decimal point for all
    that is stated; nothing is known of others.
    """
    types = {} if spec.data is None else spec.data.types or {}
    names, bounds = _names_and_bounds(spec)
    return {
        number: (name, low, high)
        for number, (name, (low, high)) in enumerate(list(zip(names, bounds, strict=True))[:-1])
        if not (isinstance(low, Day) or isinstance(types.get(name), DigitsType))
        and low % 1.0 == 0.0
        and high - low == 1.0
    }


def _names_and_bounds(spec: RunSpec) -> tuple[Sequence[str], Pairs]:
    """Return names and bounds of the columns of clamped moments, the response last; none of others."""
    mechanism, data = spec.mechanism, spec.data
    if mechanism is None or mechanism.released != "clamped_moments":
        return (), ()
    bounds = getattr(mechanism, "bounds", None) or mechanism.domain or ()
    columns = () if data is None else data.columns or ()
    names = columns if len(columns) == len(bounds) else [f"predictor {i + 1}" for i in range(len(bounds))]
    return names, bounds


def _privacy(privacy: PrivacySpec) -> str:
    place = "no ledger named" if privacy.ledger is None else f"ledger {privacy.ledger}"
    budget = privacy.budget
    name = "unnamed data" if privacy.dataset is None else f"data set {privacy.dataset}"
    if privacy.accountant is not None:
        place += f", added up by {privacy.accountant}"
    if budget is None:
        return f"{name} in {place}"
    given = {key: getattr(budget, key) for key in ("epsilon", "delta", "rho")}
    stated = ", ".join(f"{key} = {exact(value)}" for key, value in given.items() if value is not None)
    return f"{name} in {place}, budget {stated}"


def _mechanism(mechanism: MechanismSection, grouped: bool) -> str:
    if not mechanism.protects:
        return f"{mechanism.kind}, values are not protected"
    stated = ", ".join(f"{key} = {exact(value)}" for key, value in mechanism.requested().items())
    bounds = ", ".join(f"[{lo:.12g}, {hi:.12g}]" for lo, hi in mechanism.domain or ())
    return f"{mechanism.done(grouped)} with {stated}" + (f" over {bounds}" if bounds else "")


def _synthesis(synthesis: SynthesisSection | ChainsSynthesis) -> str:
    if isinstance(synthesis, ChainsSynthesis):
        count = "" if synthesis.records == "auto" else f"{synthesis.records} "
        return f"{count}records of the posterior predictive (dpmix synthesize --chains)"
    records = (
        "as many records as are private" if synthesis.records == "auto" else f"{synthesis.records} records"
    )
    given = {key: getattr(synthesis, key) for key in ("epsilon", "delta")}
    stated = ", ".join(f"{key} = {exact(value)}" for key, value in given.items() if value is not None)
    return f"{records} by {synthesis.kind}" + (f", {stated}" if stated else "")


def _mixture(model: MixtureSection, domain: Pairs | None, grouped: bool) -> str:
    process = "Dirichlet-process" if model.discount == 0 else f"Pitman-Yor (discount {model.discount:g})"
    alpha = model.concentration
    concentration = (
        f"Gamma({alpha.shape:g}, {alpha.rate:g})" if isinstance(alpha, GammaPrior) else f"{alpha:g}"
    )
    words: Any = model.base_in_words  # of a registered kernel, which does without groups
    base = words(domain, grouped=True) if grouped else words(domain)
    return f"{process} mixture of {model.plural}, concentration {concentration}, {base}"
