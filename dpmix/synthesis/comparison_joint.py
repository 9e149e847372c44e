"""What a comparison shows of several columns at a time: pairs, propensity scores, predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.results.nodes import Note, ResultSection, Table, TableColumn
from dpmix.synthesis.joint_utility import PairOfColumns
from dpmix.synthesis.spreads import Spread, number, spread

__all__ = ["LEGEND", "Jointly", "joint_sections"]

Floats = NDArray[np.float64]

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
