"""The table of scalars with their diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from dpmix.results.nodes import (
    ABSENT,
    Array,
    Block,
    Each,
    Items,
    Note,
    ResultSection,
    Table,
    TableColumn,
    Tile,
    figure,
)
from dpmix.spec.days import Day, day_text, placed
from dpmix.summary.dated import NONE, Dated
from dpmix.summary.remarks import ESS, LEARNT, RHAT
from dpmix.summary.row_labels import shown_name

if TYPE_CHECKING:
    from dpmix.summary.diagnostics import Scalar


def parameter_sections(
    parameters: Mapping[str, Scalar],
    per_second: Mapping[str, float | None],
    labels: Mapping[str, str],
    meaning: str,
    dated: Dated = NONE,
) -> tuple[ResultSection, ResultSection]:
    """Return the table, and effective sample sizes per second.

    Parameters
    ----------
    parameters : mapping of str to Scalar
    per_second : mapping of str to float or None
        Bulk effective sample size per second.
    labels : mapping of str to str
        What rows are of, such as "age = 30".
    meaning : str
        What the scalars are, in words, which may emphasize.
    dated : Dated
        Which of them are dates: these are written so, and JSON has the dates beside the numbers.
    """
    names, found = list(parameters), list(parameters.values())
    by_label = {shown_name(name, labels): value for name, value in parameters.items()}
    levels = list(found[0].quantiles)
    shown = [shown_name(name, labels) for name in names]
    columns = _columns(parameters, per_second, labels, dated)
    table = Table("parameter", names, columns, title="scalar", shown=shown)
    ends = np.asarray([[value.quantiles[level] for level in levels] for value in found])
    held = {
        "": table,
        "quantile": Array(("quantile",), [float(level) for level in levels]),
        "quantiles": Array(("parameter", "quantile"), ends),
    }
    days = "Dates are the nearest days; their sd is in days." if any(map(dated.is_date, names)) else ""
    notes = [f"{shown_name(name, labels)}: {value.note}" for name, value in parameters.items() if value.note]
    page: list[Block] = [table]
    page += [Items(notes, small=True)] if notes else []
    page += [days] if days else []
    page.append(Note(f"{meaning}{_learnt(found)}{_DIAGNOSTICS}"))
    return ResultSection(
        "parameters",
        Each(table, held),
        "Scalars and their diagnostics",
        text=[[table], *([[days]] if days else [])],
        page=page,
        tiles=[
            Tile("Largest R-hat", *_worst(by_label, lambda v: v.rhat, max, ".3f")),
            Tile("Smallest bulk ESS", *_worst(by_label, lambda v: v.ess_bulk, min, ",.0f")),
            Tile("Smallest tail ESS", *_worst(by_label, lambda v: v.ess_tail, min, ",.0f")),
        ],
    ), ResultSection("ess_per_second", Each(dict(per_second), ABSENT))


def _columns(
    parameters: Mapping[str, Scalar],
    per_second: Mapping[str, float | None],
    labels: Mapping[str, str],
    dated: Dated,
) -> list[TableColumn]:
    found = list(parameters.values())
    is_date = [dated.is_date(name) for name in parameters]
    first, *_, last = found[0].quantiles
    held = "json hdf5"

    def of(key: str) -> list[float | None]:
        return [getattr(value, key) for value in found]

    def low(key: str) -> list[bool]:
        return [value is not None and value < ESS for value in of(key)]

    stuck = [value.stuck_apart for value in found]
    rhat = ["∞" if apart else figure(value, ".3f") for value, apart in zip(of("rhat"), stuck, strict=True)]
    high = [apart or (value or 0.0) > RHAT for value, apart in zip(of("rhat"), stuck, strict=True)]

    def written(values: Iterable[float]) -> list[str]:
        return [
            placed(Day(value) if date else value, 0.25 * (scalar.quantiles[last] - scalar.quantiles[first]))
            for value, date, scalar in zip(values, is_date, found, strict=True)
        ]

    ends = [
        TableColumn.of_words(written(v.quantiles[end] for v in found), f"{100 * float(end):g}%")
        for end in (first, last)
    ]
    dates = [
        {"mean": day_text(v.mean), "quantiles": {p: day_text(x) for p, x in v.quantiles.items()}}
        if date
        else None
        for v, date in zip(found, is_date, strict=True)
    ]
    little = [_little(value) for value in found]
    return [
        TableColumn("mean", [value.mean for value in found], where=held),
        TableColumn.of_words(written(value.mean for value in found), "mean"),
        TableColumn("sd", of("sd"), "sd"),
        TableColumn("quantiles", [value.quantiles for value in found], where="json"),
        *ends,
        TableColumn("contraction", of("contraction"), "contraction", ".2f", bad=little, if_any=True),
        TableColumn("mcse", of("mcse"), "MCSE", ".2g", where="json hdf5 page"),
        TableColumn("rhat", of("rhat"), "R-hat", ".3f", where="json hdf5 text"),
        TableColumn.of_words(rhat, "R-hat", "page", bad=high),
        TableColumn("ess_bulk", of("ess_bulk"), "ESS bulk", ".0f", ",.0f", bad=low("ess_bulk")),
        TableColumn("ess_tail", of("ess_tail"), "ESS tail", ".0f", ",.0f", bad=low("ess_tail"), spare=True),
        TableColumn(
            "ess_per_second",
            [per_second[name] for name in parameters],
            "ESS/s",
            _rate,
            where="hdf5 text page",
            spare=True,
        ),
        TableColumn("note", of("note"), form=str, where=held),
        TableColumn("date", dates, where="json", optional=True),
        TableColumn("date", [d and d["mean"] for d in dates], form=str, where="hdf5", optional=True),
        TableColumn(
            "label", [labels.get(name) for name in parameters], form=str, where="json", optional=True
        ),
    ]


_DIAGNOSTICS = (
    "R-hat is rank-normalised and split; ESS is the effective sample size of all chains together, and ESS/s "
    "its bulk per second of sampling, summed over chains. MCSE is the Monte Carlo standard error of the mean."
)


def _rate(value: float) -> str:
    """Write a rate: three digits, or all of a large number."""
    return f"{value:{',.0f' if value >= 100 else '.3g'}}"


def _little(value: Scalar) -> bool:
    return value.contraction is not None and value.contraction < LEARNT and value.beside_prior != "moved"


def _learnt(found: Iterable[Scalar]) -> str:
    """Say what contraction is, where there is any."""
    if all(value.contraction is None for value in found):
        return ""
    return (
        "**contraction** is the share of the prior's spread that the release took away, 1 less the squared "
        f"ratio of interquartile ranges: below {LEARNT:g} the prior speaks, unless it piles up elsewhere; "
        "well below 0 release and prior may be in conflict. "
    )


def _worst(
    parameters: Mapping[str, Scalar],
    of: Callable[[Scalar], float | None],
    choose: Callable[..., str],
    form: str,
) -> tuple[str, str]:
    """Return the most worrying value of a diagnostic, and the scalar it belongs to."""
    found = {name: of(value) for name, value in parameters.items()}
    values = {name: float(value) for name, value in found.items() if value is not None}
    if not values:
        return "-", "not available"
    name = choose(values, key=values.__getitem__)
    return f"{values[name]:{form}}", name
