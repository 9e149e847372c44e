"""What stands at the head of a summary: what it is of, median and mean, and whether it can be used."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmix.columns.column_units import unit_of
from dpmix.results.nodes import Answer, Array, Each, Figure, ResultSection
from dpmix.spec.days import Day
from dpmix.summary.check.check_result import SUSPECT, Check
from dpmix.summary.diagnostics import LEARNT, RHAT
from dpmix.summary.remarks import cells_doubt, floor_doubt, is_headline

if TYPE_CHECKING:
    from dpmix.results.nodes import Remark
    from dpmix.summary.diagnostics import Scalar
    from dpmix.summary.quantities import Beyond, CellShares
    from dpmix.summary.shape import ShapeContraction
    from dpmix.summary.subject import Subject

# Whether what is reported can be used: one of three answers, by a stated rule, with its reasons


USABLE, WITH_CARE, NOT_YET = "usable", "with care", "not yet"
WELL_LEARNT = 0.5
"""Contraction from which on the release, more than the prior, speaks."""
ALSO_JUDGED = frozenset(("alpha",))
"""Titles whose contraction counts beside those of headlines.

Where noise hides how far apart compositions lie, the prior of alpha says it, and expected shares follow.
"""
FAR = 1.05
"""R-hat above which the chains have not met."""


@dataclass(frozen=True)
class Verdict:
    """The answer, and what speaks for or against more, the gravest first."""

    answer: str
    reasons: tuple[str, ...]

    def section(self) -> ResultSection:
        """Return what is reported of it; words stand in the head of text and pages."""
        reasons = Array(("reason",), list(self.reasons))
        return ResultSection("verdict", {"answer": self.answer, "reasons": Each(list(self.reasons), reasons)})


def verdict_of(
    parameters: Mapping[str, Scalar],
    check: Check,
    beyond: Beyond | None = None,
    cells: CellShares | None = None,
    shape: ShapeContraction | None = None,
    remarks: Iterable[Remark] = (),
    *,
    bootstrap: bool = False,
) -> Verdict:
    """Return whether results can be used.

    "usable" where the contraction of every headline figure (moments, quantiles, tails, correlations of
    columns, coefficients, predictions, shares; the alpha of compositions, too) is 0.5 or more, and so that of
    the shape at every quantile, the prior holds no standard deviation, errors or predictors up, draws no
    correlation towards 0 and ends no coefficient's interval (which warnings say), the release check passes,
    R-hat is below 1.01, a regression has no more than 3% of a predictor or of a clamped response beyond its
    bounds and of a truncated one's normal law cut off, a mixture given values with noise so many records, and
    a release of cells no more than 1% of records beyond its bounds, a fifth in its outermost cells, half in
    one and none that pile up in a cell, nor cells that begin at round numbers where rounding would show, and
    no figure that depends on where in their cells records lie; "not yet" where the contraction of mean or
    median is below 0.1, the check's p below 0.01, R-hat above 1.05, more than a tenth of the records
    beyond the bounds where the prior alone says how far, or of a regression's predictor, or more than half in
    the outermost cells, or nine tenths in one; else "with care",
    and so where contraction, check or R-hat is not known. A warning that an approximation is one of these
    says so itself (`Remark.grave`).

    Parameters
    ----------
    parameters : mapping of str to Scalar
        With their contractions, None where there is none; these are left out.
    check : Check
        Its p-value is that of all entries together.
    beyond : Beyond, optional
        Shares beyond the bounds.
    cells : CellShares, optional
        Of a release of cells.
    shape : ShapeContraction, optional
        Of models with quantiles.
    remarks : iterable of Remark
        All warnings.
    bootstrap : bool
        Whether the draws are of a bootstrap, which has no prior.
    """
    grave, doubts = cells_doubt(beyond, cells)
    for remark in remarks:
        if remark.grave is not None:
            (grave if remark.grave else doubts).append(remark.text)
    doubts += floor_doubt(parameters)
    told: dict[str, list[str]] = {NOT_YET: grave, WITH_CARE: doubts, USABLE: []}
    of_contraction = _of_contraction(parameters, shape, bootstrap)
    for answer, reason in (of_contraction, _of_check(check), _of_chains(parameters)):
        told[answer].append(reason)
    if grave:
        return Verdict(NOT_YET, (*grave, *doubts))
    return Verdict(WITH_CARE, tuple(doubts)) if doubts else Verdict(USABLE, tuple(told[USABLE]))


def _of_contraction(
    parameters: Mapping[str, Scalar], shape: ShapeContraction | None, bootstrap: bool
) -> tuple[str, str]:
    """Return what the contractions alone let be answered, and why; so do the two that follow."""
    known = {
        name: scalar.contraction
        for name, scalar in parameters.items()
        if (is_headline(name) or name.partition("[")[0] in ALSO_JUDGED) and scalar.contraction is not None
    }
    if bootstrap:
        return WITH_CARE, "A bootstrap has no prior, beside which to say what the release taught."
    if not known:
        return WITH_CARE, "How much the release taught beyond the prior is not known."
    moved = {name for name in known if parameters[name].beside_prior == "moved"}

    def worst_of(weak: Iterable[str]) -> str:
        return min(weak, key=lambda name: (name in moved, known[name]))

    central = [name for name, value in known.items() if _is_central(name) and value < LEARNT]
    if central:
        worst = worst_of(central)
        if worst in moved:
            return NOT_YET, _overruled(worst, known[worst], LEARNT)
        return NOT_YET, (
            f"The release says next to nothing about {worst}: it took away {_share(known[worst])} of the "
            f"prior's spread (contraction; at least {LEARNT:g} is wanted)."
        )
    few = _below(known, WELL_LEARNT)
    if few:
        worst = worst_of(few)
        more = f", and below that for {len(few) - 1} more" if len(few) > 1 else ""
        if worst in moved:
            return WITH_CARE, _overruled(worst, known[worst], WELL_LEARNT, more)
        return WITH_CARE, (
            f"The prior has a say in {worst}: the release took away {_share(known[worst])} of its spread "
            f"(contraction; {WELL_LEARNT:g} or more is wanted{more})."
        )
    shapeless = {} if shape is None else _below(shape.contractions, WELL_LEARNT)
    if shapeless:
        worst = min(shapeless, key=shapeless.__getitem__)
        more = f", and below that for {len(shapeless) - 1} more" if len(shapeless) > 1 else ""
        return WITH_CARE, (
            "The release tells mean and sd, and the prior has a say in the shape between: of the prior's "
            f"variance of ({worst} - mean)/sd the release took away {_share(shapeless[worst])} "
            f"({WELL_LEARNT:g} or more is wanted{more})."
        )
    worst = min(known, key=known.__getitem__)
    return USABLE, (
        f"The release, not the prior, speaks: the least contraction is {known[worst]:.2f}, of {worst}."
    )


def _below(contractions: Mapping[str, float], wanted: float) -> dict[str, float]:
    return {name: value for name, value in contractions.items() if value < wanted}


def _overruled(name: str, value: float, wanted: float, more: str = "") -> str:
    """Say of a figure far from where the prior piles up that its contraction is low all the same."""
    return (
        f"The release overruled the prior in {name}, and moved it beyond the prior's quartiles (contraction "
        f"{value:.2f}; {wanted:g} or more is wanted{more})."
    )


def _of_check(check: Check) -> tuple[str, str]:
    if check.overall is None:
        why = f": {check.reason}" if check.reason else ""
        return WITH_CARE, f"The release could not be checked against the fit{why}."
    told = f"the fitted model would release (check, p = {check.overall:.2g})."
    if check.overall < SUSPECT:
        return NOT_YET, f"The release is unlike what {told}"
    return USABLE, f"The release is what {told} {check.blind}".strip()


def _of_chains(parameters: Mapping[str, Scalar]) -> tuple[str, str]:
    stuck = [name for name, scalar in parameters.items() if scalar.stuck_apart]
    if stuck:
        return NOT_YET, f"The chains are stuck, each at a value of its own, in {stuck[0]}."
    known = {name: scalar.rhat for name, scalar in parameters.items() if scalar.rhat is not None}
    if not known:
        return WITH_CARE, "Whether the chains agree is not known: R-hat needs two chains, and draws enough."
    worst, value = max(known.items(), key=lambda each: each[1])
    told = max((rhat for name, rhat in known.items() if is_headline(name)), default=value)
    met = f" Of the headline quantities it is at most {told:.4f}." if told < RHAT <= value else ""
    if value > FAR:
        return NOT_YET, f"The chains do not agree yet: R-hat is {value:.4f} for {worst}; run longer.{met}"
    if value >= RHAT:
        return WITH_CARE, (
            f"The chains agree only roughly: R-hat is {value:.4f} for {worst} (below {RHAT} is wanted).{met}"
        )
    return USABLE, f"The chains agree: R-hat is at most {value:.4f}."


def _is_central(name: str) -> bool:
    """Whether a scalar is a mean or a median of records."""
    title, _, entries = name.rstrip("]").partition("[")
    return title == "mean" or (title == "quantile" and entries.rpartition(",")[2] == "0.5")


def _share(contraction: float) -> str:
    return "nothing" if contraction <= 0.0 else f"{math.floor(100 * contraction)}%"


# The head itself: what it is of, median and mean with intervals, the verdict


_MOST = 12  # figures at the head
_SIGNIFICANT = 2  # digits of an interval's width that its ends keep


def amount(value: float, spread: float) -> str:
    """Write a number with as many digits as its uncertainty leaves: 3,412 for 3412.3 give or take 200.

    Parameters
    ----------
    value : float
        A `Day` is written as its date.
    spread : float
        Width of its interval.
    """
    if isinstance(value, Day):
        return str(value)
    if not (math.isfinite(value) and math.isfinite(spread)) or spread <= 0.0:
        return f"{value:,.6g}"
    place = math.floor(math.log10(spread)) - (_SIGNIFICANT - 1)
    if not -9 <= place <= 12:
        digits = math.floor(math.log10(abs(value))) - place if value else 0  # behind the first
        return f"{value:.{min(max(digits, 0), 15)}e}"
    rounded = round(value, -place)
    return f"{rounded + 0.0:,.{max(0, -place)}f}"


def answer_of(
    parameters: Mapping[str, Scalar],
    labels: Mapping[str, str],
    subject: Subject,
    verdict: Verdict,
    *,
    shares: bool,
    dates: Collection[str] = (),
) -> Answer:
    """Return the head of a summary.

    Parameters
    ----------
    parameters : mapping of str to Scalar
    labels : mapping of str to str
        What parameters are of, by name.
    subject : Subject
    verdict : Verdict
    shares : bool
        Whether means are of shares of compositions, which have no unit.
    dates : collection of str
        Names of the columns that are dates.
    """
    figures = _moments(parameters, subject, shares) or _others(parameters, labels, subject, dates)
    return Answer(
        of=subject.in_words,
        records=subject.n,
        guarantee=subject.short,
        verdict=verdict.answer,
        reasons=verdict.reasons,
        figures=figures,
        badge=_badge(parameters),
    )


def _figure(name: str, scalar: Scalar, unit: str = "") -> Figure:
    low, *_, high = scalar.quantiles.values()
    width = high - low
    return Figure(name, amount(scalar.mean, width), amount(low, width), amount(high, width), unit)


def _moments(parameters: Mapping[str, Scalar], subject: Subject, shares: bool) -> tuple[Figure, ...]:
    """Return median and mean of each column, in each group; none of models without."""
    found: list[Figure] = []
    for name in parameters:
        title, bracket, rest = name.partition("[")
        if title != "mean":
            continue
        entries = rest.removesuffix("]")
        column, group = subject.parted(entries)
        unit = "" if shares else unit_of(subject.unit, column or "".join(subject.columns[:1]))
        about = f" of {column}" if column else ""
        about += f" in {group}" if group else ""
        median = parameters.get(f"quantile[{f'{entries},' if bracket else ''}0.5]")
        if median is not None:
            found.append(_figure(f"median{about}", median, unit))
        found.append(_figure(f"mean{about}", parameters[name], unit))
    return tuple(found[: 2 * _MOST])


def _others(
    parameters: Mapping[str, Scalar], labels: Mapping[str, str], subject: Subject, dates: Collection[str]
) -> tuple[Figure, ...]:
    """Return slopes and predictions, or shares, of models without moments."""
    found = []
    for name in filter(is_headline, parameters):
        title, _, entry = name.removesuffix("]").partition("[")
        label = labels.get(name, entry)
        unit = ""
        if title == "beta":
            column, group = subject.parted(entry)
            response = subject.columns[-1] if subject.columns else ""
            units = ["day" if key in dates else unit_of(subject.unit, key) for key in (response, column)]
            units[0] += "s" * (response in dates)
            if column == "intercept":
                continue
            if column in subject.columns:  # those of other models have no column
                label = f"slope on {column}{f' in {group}' if group else ''}"
            else:
                label = labels.get(name, name)
            by = "per" if column in dates else "/"  # units are as stated: dollars / years
            unit = f"{units[0]} {by} {units[1]}" if all(units) and units[0] != units[1] else ""
        elif title == "prediction":
            label = f"mean {subject.columns[-1] if subject.columns else 'response'} at {label}"
            unit = unit_of(subject.unit, subject.columns[-1]) if subject.columns else ""
        elif title == "E":
            label = f"expected share of {subject.about(name.removesuffix(']').removeprefix('E[x]['))}"
        elif title in ("p", "probability"):
            label = f"probability of {label}"
        else:
            continue
        found.append(_figure(label, parameters[name], unit))
    return tuple(found[:_MOST])


def _badge(parameters: Mapping[str, Scalar]) -> str:
    """Say R-hat and effective sample size in one line."""
    rhats = [s.rhat for s in parameters.values() if s.rhat is not None]
    sizes = [x for s in parameters.values() for x in (s.ess_bulk, s.ess_tail) if x is not None]
    if any(scalar.stuck_apart for scalar in parameters.values()):
        return "chains are stuck"
    parts: Sequence[str] = [f"R-hat {max(rhats):.3f}"] if rhats else []
    parts = [*parts, f"ESS {min(sizes):,.0f}"] if sizes else parts
    return ", ".join(parts) or "no diagnostics"
