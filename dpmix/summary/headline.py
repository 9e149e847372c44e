"""What stands at the head of a summary: what it is of, median and mean with intervals, the verdict."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from dpmix.release.column_units import unit_of
from dpmix.results.nodes import Answer, Figure
from dpmix.spec.days import Day
from dpmix.summary.diagnostics import Scalar
from dpmix.summary.remarks import is_headline
from dpmix.summary.subject import Subject
from dpmix.summary.verdict import Verdict

__all__ = ["amount", "answer_of"]

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
        return f"{value:.4g}"
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
            unit = f"{units[0]} per {units[1]}" if all(units) and units[0] != units[1] else ""
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
