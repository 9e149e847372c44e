"""From the section ``synthesis`` of a spec to a generator that meets what is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpmix.columns.cells import Cells, Column, Grid, bounds_in_words
from dpmix.columns.possible import possible_of
from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.mechanism import PublicRecords
from dpmix.mechanisms.perturbed_histogram.curator import PerturbedHistogram
from dpmix.mechanisms.perturbed_histogram.curator import make as counts_of
from dpmix.mechanisms.perturbed_histogram.section import PerturbedHistogramMechanism
from dpmix.mechanisms.smoothed_histogram.curator import weight_of
from dpmix.mechanisms.smoothed_histogram.section import SmoothedHistogramMechanism
from dpmix.privacy.exact import digits, expm1, round_up
from dpmix.spec.limits import MOST_RECORDS
from dpmix.spec.synthesis_section import (
    DirichletMultinomialSynthesis,
    PerturbedHistogramSynthesis,
    PitmanYorSynthesis,
    SmoothedHistogramSynthesis,
    SynthesisSection,
)
from dpmix.synthesis.histogram_draws import PerturbedSynthesis, SmoothedSynthesis
from dpmix.synthesis.urn import DirichletMultinomial, NewValues, PitmanYorRecords, accepted
from dpmix.synthesis.urn_guarantee import dm_concentration, dm_offers, dm_records, largest_records, offers

if TYPE_CHECKING:
    from dpmix.spec import RunSpec
    from dpmix.synthesis.generator import Generator

_MOST_POINTS = 100_000_000
_LEAST_POSSIBLE = 1e-3
"""Share of the base measure at least that ranges leave possible: new values are drawn until they are."""


def written(number: float) -> Fraction:
    """Return a number of a spec as the decimal that it is written as."""
    return Fraction(repr(number))


def generator_of(section: SynthesisSection, columns: Sequence[Column], n: int) -> Generator:
    """Return the generator of a spec's section ``synthesis``, which meets the guarantee that is asked for.

    Raises
    ------
    PrivacyError
        When the guarantee cannot be met; the message says what could be.
    SpecError
        When something is missing for the kind, or does not go with the columns.
    """
    columns = tuple(columns)
    if isinstance(section, PitmanYorSynthesis):
        if section.discount < 0:
            return _negative_discount(section, columns, n)
        return _pitman_yor(section, columns, n)
    if isinstance(section, DirichletMultinomialSynthesis):
        prior = None if section.concentration is None else written(section.concentration)
        return _dirichlet_multinomial(section, _cells(section, columns), prior, n, "concentration")
    if isinstance(section, PerturbedHistogramSynthesis):
        cells = _cells(section, columns)
        return PerturbedSynthesis(
            columns=columns,
            n=n,
            records=n if section.records == "auto" else section.records,
            requested=_requested(section),
            cells=cells,
            noise=_noise(section, section.noise, cells, n),
            **_ranges(section, cells),
        )
    assert isinstance(section, SmoothedHistogramSynthesis)  # the only kind left
    return _smoothed(section, columns, n)


def _ranges(section: SynthesisSection, cells: Cells) -> dict[str, Any]:
    """Return what a generator over cells holds of ranges."""
    if not section.ranges:
        return {}
    stated = tuple(rule.stated() for rule in section.ranges)
    return {"ranges": stated, "possible": possible_of(section.ranges, cells)}


def _requested(section: SynthesisSection) -> dict[str, float]:
    return {k: v for k in ("epsilon", "delta") if (v := getattr(section, k)) is not None}


def _pitman_yor(section: PitmanYorSynthesis, columns: tuple[Column, ...], n: int) -> PitmanYorRecords:
    assert section.concentration is not None  # settled by the spec
    theta, records = written(section.concentration), section.records
    if section.delta is None:
        if section.epsilon is not None or records == "auto":
            raise SpecError(
                "synthesis.delta: missing; pitman_yor republishes records verbatim, and is (0, delta)-DP "
                "with a delta of about records/n whatever epsilon is"
            )
    else:
        delta = written(section.delta)
        most = largest_records(n, theta, delta)
        wanted = 1 if records == "auto" else records
        if most < wanted:
            raise PrivacyError(_too_many(n, theta, delta, wanted, auto=records == "auto"))
        records = min(most, MOST_RECORDS) if records == "auto" else records
    made: list[NewValues] = []
    for column, grid in zip(columns, _grids(section, columns), strict=True):
        base = _of_column("base", section.base, column, columns)
        _check_within("base.edges", _ends(base), column)
        made.append(NewValues(column, base, column.lattice if grid is None else grid))
    return PitmanYorRecords(
        columns=columns,
        n=n,
        records=int(records),
        requested=_requested(section),
        concentration=theta,
        discount=written(section.discount),
        new_values=tuple(made),
        **_ranges_of_new(section, columns, tuple(made)),
    )


def _ranges_of_new(
    section: SynthesisSection, columns: tuple[Column, ...], new_values: tuple[NewValues, ...]
) -> dict[str, Any]:
    """Return what a generator without cells holds of ranges: the possible part of the space of new values."""
    if not section.ranges:
        return {}
    shape = tuple(1 if c.categories is None else len(c.categories) for c in columns)
    space = Cells(columns, shape, (None,) * len(columns))
    possible = possible_of(section.ranges, space, [new.grid for new in new_values])
    assert possible is not None  # ranges are there
    if accepted(new_values, possible) < _LEAST_POSSIBLE:
        raise SpecError(
            f"synthesis.ranges: of new values less than {_LEAST_POSSIBLE:.1%} are possible; state a "
            "synthesis.base that keeps to the ranges, or wider ones"
        )
    return {"ranges": tuple(rule.stated() for rule in section.ranges), "possible": possible}


def _too_many(n: int, theta: Fraction, delta: Fraction, wanted: int, *, auto: bool) -> str:
    could = offers(n, theta, delta, wanted)
    ways = []
    if could.records is not None:
        ways.append(f"records: {could.records}")
    if could.delta is not None:
        ways.append(f"delta: {could.delta}")
    if could.concentration is not None:
        ways.append(f"concentration: {could.concentration:f}")
    what = "not one synthetic record" if auto else f"{wanted} synthetic record{'s' * (wanted > 1)}"
    verb = "meets" if auto else f"{'do' if wanted > 1 else 'does'} not meet"
    return (
        f"synthesis.{'delta' if auto else 'records'}: {what} of {n} {verb} delta = {float(delta):g} at "
        f"concentration {float(theta):g}; possible: {' or '.join(ways)}"
    )


def _negative_discount(
    section: PitmanYorSynthesis, columns: tuple[Column, ...], n: int
) -> DirichletMultinomial:
    cells = _cells(section, columns)
    a = -written(section.discount)
    if section.concentration is not None and written(section.concentration) != cells.count * a:
        raise SpecError(
            f"synthesis.concentration: {section.concentration:g} must be {float(cells.count * a):g}, the "
            f"{cells.count} categories times -discount; or leave it out"
        )
    return _dirichlet_multinomial(section, cells, a, n, "discount")


def _dirichlet_multinomial(
    section: SynthesisSection, cells: Cells, a: Fraction | None, n: int, key: str
) -> DirichletMultinomial:
    records = section.records
    if section.epsilon is None:
        if a is None or records == "auto":
            missing = "concentration" if a is None else "records"
            raise SpecError(f"synthesis.epsilon: missing; without it give synthesis.{missing}")
    elif a is None:
        if records == "auto":
            records = balanced(n, cells.count, section.epsilon)
        a = Fraction(_least_count(section.epsilon, int(records)))
    else:
        epsilon = written(section.epsilon)
        most = dm_records(a, epsilon)
        wanted = 1 if records == "auto" else records
        if most < wanted:
            could = dm_offers(a, epsilon, wanted)
            fewer = "" if could.records is None else f"records: {could.records} or "
            count = f"{'-' * (key == 'discount')}{could.concentration:f}"
            raise PrivacyError(
                f"synthesis.{'epsilon' if records == 'auto' else 'records'}: {wanted} synthetic "
                f"record{'s' * (wanted > 1)} with prior count {float(a):g} of each category cost more than "
                f"epsilon = {section.epsilon:g}; possible: {fewer}epsilon: {could.epsilon} or {key}: {count}"
            )
        records = min(most, MOST_RECORDS) if records == "auto" else records
    assert a is not None  # given, or found
    return DirichletMultinomial(
        columns=cells.columns,
        n=n,
        records=int(records),
        requested=_requested(section),
        cells=cells,
        concentration=a,
        **_ranges(section, cells),
    )


def balanced(n: int, cells: int, epsilon: float) -> int:
    """Return a number m of draws, from 1 to n, each of which costs: bias is balanced against sampling error.

    The share of a release that is uniform for privacy's sake, by a prior count of m/(e^eps - 1) in each of K
    cells or by smoothing, is about K m/(n (e^eps - 1)), and the sampling error m^(-1/2): they are of the same
    size at m = (n (e^eps - 1)/K)^(2/3).
    """
    room = (math.log(n / cells) + (epsilon if epsilon > 30 else math.log(math.expm1(epsilon)))) * 2 / 3
    return n if room > math.log(n) else max(1, math.floor(math.exp(room)))


def _least_count(epsilon: float, records: int) -> float:
    try:
        return dm_concentration(written(epsilon), records)
    except ValueError:
        raise PrivacyError(
            f"synthesis.epsilon: {epsilon:g} is beyond what a prior count can give; ask for more"
        ) from None


def _noise(section: SynthesisSection, noise: str, cells: Cells, n: int) -> PerturbedHistogram:
    if section.epsilon is None:
        raise SpecError(f"synthesis.epsilon: missing; the noise of a {section.kind} is calibrated to it")
    if noise == "gaussian" and section.delta is None:
        raise SpecError("synthesis.delta: missing beside epsilon; gaussian noise takes both")
    request = {
        "kind": "perturbed_histogram",
        "noise": noise,
        "bins": cells.count,
        "n": n,
        "domain": [[0.0, 1.0]],
        "epsilon": section.epsilon,
        "delta": section.delta if noise == "gaussian" else None,
    }
    return counts_of(PerturbedHistogramMechanism.model_validate(request), PublicRecords(1, n))


def _smoothed(section: SmoothedHistogramSynthesis, columns: tuple[Column, ...], n: int) -> SmoothedSynthesis:
    cells = _cells(section, columns)
    if section.epsilon is None:
        raise SpecError("synthesis.epsilon: missing; the smoothing is calibrated to it")
    if section.delta is not None:
        records = n if section.records == "auto" else section.records
        noise = _noise(section, "gaussian", cells, n)
        weight = section.weight
        if weight is None:
            weight = _weight_of_one_draw(section.epsilon, cells.count, n)
    else:
        if section.weight is not None:
            raise SpecError(
                "synthesis.weight: follows from epsilon where the counts carry no noise; leave it out"
            )
        records = balanced(n, cells.count, section.epsilon) if section.records == "auto" else section.records
        noise = None
        weight, _ = weight_of(
            SmoothedHistogramMechanism.model_validate(
                {
                    "kind": "smoothed_histogram",
                    "bins": cells.count,
                    "draws": records,
                    "epsilon": section.epsilon,
                    "n": n,
                }
            ),
            n,
        )
    return SmoothedSynthesis(
        columns=columns,
        n=n,
        records=records,
        requested=_requested(section),
        cells=cells,
        weight=weight,
        noise=noise,
        **_ranges(section, cells),
    )


def _weight_of_one_draw(epsilon: float, bins: int, n: int) -> float:
    """Return the weight that would make one draw without noise eps-DP: J/(J + n (e^eps - 1))."""
    with localcontext(digits()):
        return min(1.0, round_up(bins / (bins + n * expm1(min(Decimal(epsilon), Decimal(700))))))


def _cells(section: Any, columns: tuple[Column, ...]) -> Cells:
    return Cells.of(columns, section.bins, _grids(section, columns))


def _grids(section: SynthesisSection, columns: tuple[Column, ...]) -> tuple[Grid | None, ...]:
    """Return the grid of each column, None where it has none.

    Raises
    ------
    SpecError
        When a grid is for no numeric column, leaves the bounds, or has too many points.
    """
    found: list[Grid | None] = []
    for column in columns:
        snap = _of_column("snap", section.snap, column, columns)
        if snap is None or column.bounds is None:
            found.append(None)
            continue
        grid = Grid(snap.step, column.bounds if snap.domain is None else snap.domain)
        _check_within("snap.domain", grid.domain, column)
        if grid.count > _MOST_POINTS:
            raise SpecError(
                f"synthesis.snap.step: {grid.step:g} gives {column.name} more than {_MOST_POINTS} points; "
                "take a larger one"
            )
        if column.lattice is not None and not column.lattice.holds(grid):
            raise SpecError(
                f"synthesis.snap: has points that data.types.{column.name} does not admit; take a step and a "
                "domain of such numbers, or leave snap out"
            )
        found.append(grid)
    return tuple(found)


def _of_column(key: str, given: Any, column: Column, columns: tuple[Column, ...]) -> Any:
    """Return what a section says of a column, where it speaks of all numeric ones or names them."""
    numeric = [c.name for c in columns if c.bounds is not None]
    if given is not None and not numeric:
        raise SpecError(f"synthesis.{key}: is for numeric columns, which have a data.domain; leave it out")
    if not isinstance(given, Mapping):
        return given
    for name in given:
        if name not in numeric:
            raise SpecError(
                f"synthesis.{key}.{name}: no numeric column of data.columns; name one of {', '.join(numeric)}"
            )
    return given.get(column.name)


def _check_within(key: str, pair: tuple[float, float] | None, column: Column) -> None:
    """Refuse a base measure or a grid that leaves the bounds."""
    if pair is None or column.bounds is None:
        return
    low, high = column.bounds
    if not (low <= pair[0] and pair[1] <= high):
        given, bounds = (
            ", ".join(bounds_in_words({"domain": ends, "date": column.date}))
            for ends in (pair, column.bounds)
        )
        raise SpecError(f"synthesis.{key}: [{given}] of {column.name} must lie within its bounds [{bounds}]")


def _ends(base: Any) -> tuple[float, float] | None:
    edges = getattr(base, "edges", None)
    return None if edges is None else (edges[0], edges[-1])


def section_of(spec: RunSpec) -> SynthesisSection:
    """Return the section ``synthesis``.

    Raises
    ------
    SpecError
        When there is none, or one for chains alone.
    """
    if spec.generator is None:
        such = "say how records are to be drawn, such as {kind: pitman_yor, delta: 0.01}"
        if spec.synthesis is None:
            raise SpecError(f"synthesis: missing; {such}")
        raise SpecError(f"synthesis.kind: missing; {such} (without one records are drawn from --chains)")
    return spec.generator
