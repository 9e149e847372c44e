"""Figures of a comparison over runs, and of several columns at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.results.nodes import Note, ResultSection, Table, TableColumn
from dpmix.spec.days import day_text
from dpmix.synthesis.joint_utility import PairOfColumns

__all__ = ["LEGEND", "Jointly", "Spread", "joint_sections", "number", "spread", "spreads"]

# Figures of a comparison over runs, and how they are written


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spread:
    """A figure over independent runs.

    Parameters
    ----------
    values : ndarray of float64, shape (runs,)
    """

    values: Floats

    @property
    def mean(self) -> float:
        """Mean over runs."""
        return float(self.values.mean())

    @property
    def sd(self) -> float | None:
        """Standard deviation over runs, divided by runs - 1; None of one run."""
        return float(self.values.std(ddof=1)) if self.values.size > 1 else None

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Quartiles over runs."""
        low, middle, high = np.quantile(self.values, (0.25, 0.5, 0.75))
        return float(low), float(middle), float(high)

    def to_json(self, *, whole: bool = False) -> dict[str, Any]:
        """Return mean and sd, with `whole` also quartiles and the runs themselves."""
        found: dict[str, Any] = {"mean": self.mean, "sd": self.sd}
        if whole:
            found |= {"quartiles": list(self.quartiles), "values": self.values.tolist()}
        return found


def number(value: float | None, *, date: bool = False) -> str:
    """Write a figure in four digits, one of days since 1970 as its date, or a dash where there is none."""
    if value is None:
        return "-"
    if date:
        return day_text(value)
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


def spread(value: Spread | None, *, date: bool = False) -> str:
    """Write mean and standard deviation over runs, to two digits of the latter; that of a date in days."""
    if value is None:
        return "-"
    if date:
        return day_text(value.mean) + ("" if value.sd is None else f" +- {value.sd:.2g}")
    if not value.sd:
        return number(value.mean) + ("" if value.sd is None else " +- 0")
    places = max(0, 1 - math.floor(math.log10(value.sd)))
    if places > 8:
        return f"{value.mean:.3g} +- {value.sd:.2g}"
    return f"{value.mean:.{places}f} +- {value.sd:.{places}f}"


def spreads(runs: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """Return the figures of runs by name; one that a run lacks is left out."""
    return {
        name: Spread(np.array([run[name] for run in runs]))
        for name in runs[0]
        if all(name in run for run in runs)
    }


# What a comparison shows of several columns at a time: pairs, propensity scores, predictions


LEGEND = (
    "pairs: correlation of two columns of numbers, Cramer's V of two of labels, correlation ratio of one of "
    "each; pMSE ratio: how well a logistic regression tells synthetic from confidential records, 1 where "
    "they are as if drawn from these; below it, what trees trained on real records or on those of a kind "
    "predict of other confidential records, by R^2 of numbers and the share that is right of labels"
)
_WORDS = {"correlation": "r", "cramers_v": "V", "correlation_ratio": "eta"}
_SHOWN = 10  # pairs of a page's table

Row = tuple[str, Mapping[str, Spread], Floats, Mapping[str, Spread]]


class Jointly(NamedTuple):
    """What was measured of several columns.

    Parameters
    ----------
    columns : tuple of str
        Their names.
    pairs : tuple of PairOfColumns
    associations : ndarray of float64, shape (pairs,)
        Of the confidential records.
    baseline : dict of str to float
        Scores of trees that confidential records train.
    rows : sequence
        Of each kind its name, figures, associations by run (runs, pairs), and scores.
    """

    columns: tuple[str, ...]
    pairs: tuple[PairOfColumns, ...]
    associations: Floats
    baseline: Mapping[str, float]
    rows: Sequence[Row]


def joint_sections(found: Jointly) -> list[ResultSection]:
    """Return a section of pairs and one of predictions; none of one column."""
    if not found.pairs:
        return []
    return [_of_pairs(found), *_of_predictions(found)]


def _name(found: Jointly, place: int) -> str:
    pair = found.pairs[place]
    one, other = sorted((pair.one, pair.other))
    return f"{_WORDS[pair.measure]}({found.columns[one]}, {found.columns[other]})"


def _of_pairs(found: Jointly) -> ResultSection:
    """Say how far associations are off: the largest, their mean, and which pair is the worst."""
    kinds = [name for name, *_ in found.rows]
    off = [np.abs(pairs - found.associations).mean(axis=0) for _, _, pairs, _ in found.rows]
    worst = [int(np.argmax(own)) for own in off]
    columns = [
        TableColumn("", kinds_of(found, "association_max"), "max off", str),
        TableColumn("", kinds_of(found, "association_mean"), "mean off", str),
        TableColumn("", [_name(found, place) for place in worst], "worst pair", str, left=True),
        TableColumn("", [f"{found.associations[place]:.3f}" for place in worst], "confidential", str),
        TableColumn(
            "",
            [f"{row[2][:, place].mean():.3f}" for row, place in zip(found.rows, worst, strict=True)],
            "synthetic",
            str,
        ),
    ]
    table = Table("", kinds, columns)
    place = np.argsort(-np.abs(found.associations), kind="stable")[:_SHOWN]
    each = [
        TableColumn(
            "",
            [f"{found.associations[i]:.3f}", *(f"{row[2][:, i].mean():.3f}" for row in found.rows)],
            _name(found, int(i)),
            str,
        )
        for i in place
    ]
    note = "Associations of the pairs that go together most, means over runs."
    return ResultSection(
        "pairs of columns",
        title="Pairs of columns",
        text=[["Pairs of columns: how far their associations are off", table]],
        page=[table, Table("", ["confidential", *kinds], each), Note(note)],
    )


def kinds_of(found: Jointly, key: str) -> list[str]:
    """Return a figure of each kind in words."""
    return [spread(joint.get(key)) for _, joint, *_ in found.rows]


def _of_predictions(found: Jointly) -> list[ResultSection]:
    """Say how well records are told apart, and what trees predict that they train."""
    columns = []
    own = ["1" if any("pmse_ratio" in row[1] for row in found.rows) else "-"]
    if own != ["-"]:
        columns.append(TableColumn("", [*own, *kinds_of(found, "pmse_ratio")], "pMSE ratio", str))
    for name, score in found.baseline.items():
        scores = [number_of(row[3].get(name)) for row in found.rows]
        columns.append(TableColumn("", [f"{score:.3f}", *scores], name, str))
    if not columns:
        return []
    table = Table("", ["real", *(name for name, *_ in found.rows)], columns)
    words = "Told apart (pMSE ratio), and predictions of each column from the others"
    note = Note(f"{LEGEND[LEGEND.index('pMSE') :].capitalize()}. Of the first runs.")
    return [
        ResultSection(
            "predictions", title="Told apart and predicted", text=[[words, table]], page=[table, note]
        )
    ]


def number_of(found: Spread | None) -> str:
    """Write a score in three decimals, or a dash where there is none."""
    return number(None) if found is None else f"{found.mean:.3f}"
