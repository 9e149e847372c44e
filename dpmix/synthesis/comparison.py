"""What a comparison of kinds of synthesis found, for the curator of the records alone, and how it is shown.

Each kind draws several data sets; a figure is shown by its mean and standard deviation over these runs.
Columns are compared one by one, numbers of all of them together, and all columns by pairs, by how well
records are told apart and by what they predict of one another.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.columns.column_units import Unit, labelled, unit_of
from dpmix.numerics.in_words import figure, guarantee_in_words
from dpmix.results.nodes import Block, Each, Items, Note, ResultSection, Table, TableColumn, Tree, Words
from dpmix.results.result import Result
from dpmix.spec.capabilities import counted
from dpmix.spec.days import Day, day_text
from dpmix.synthesis.utility import DIRECTIONS, Figures, PairOfColumns

if TYPE_CHECKING:
    from dpmix.privacy.accounting import Guarantee
    from dpmix.synthesis.records import Column as Recorded

_JOINT_LEGEND = (
    "pairs: correlation of two columns of numbers, Cramer's V of two of labels, correlation ratio of one of "
    "each, 0 where a column is constant; pMSE ratio: how well a logistic regression tells synthetic from "
    "confidential records, 1 where they are as if drawn from these; below it, what trees trained on real "
    "records or on those of a kind predict of other confidential records, by R^2 of numbers and the share "
    "that is right of labels"
)
_MEASURES = {"correlation": "r", "cramers_v": "V", "correlation_ratio": "eta"}
_PAIRS = 10  # of a page's table
_CATEGORIES = 5  # named on the terminal

Floats = NDArray[np.float64]

NOTICE = (
    "For the curator only: every figure here is computed from the confidential records without protection. "
    "No guarantee covers it, and it must not be released. A kind or a setting that is chosen by these "
    "figures depends on the records too, beyond the guarantee of the synthetic records."
)

# What was compared


@dataclass(frozen=True, eq=False)
class ComparedDensity:
    """Kernel estimate of a numeric column's confidential density, with what those of the runs share.

    Parameters
    ----------
    grid, confidential : ndarray of float64, shape (points,)
        In the data's units.
    bandwidth : float
        That of the confidential records, taken for all.
    """

    grid: Floats
    confidential: Floats
    bandwidth: float


@dataclass(frozen=True, eq=False)
class Contender:
    """One way of drawing synthetic records, and what its runs measured.

    Parameters
    ----------
    name : str
        Its kind, with settings where several of a kind take part.
    kind : str
        What draws: that of the generator.
    own : bool
        Whether it is the spec's own, rather than a rival.
    words : str
        What is drawn, in one clause.
    settings : dict
        All that is public of the generator.
    guarantee : Guarantee
        Of one run's records together.
    records : int
        Number of synthetic records of a run.
    joint : dict of str to Spread
        See `dpmix.synthesis.utility.Figures`.
    columns : tuple of dict of str to Spread
        Likewise, one per column.
    shares : tuple
        Of a column of labels shares by run, shape (runs, categories); None of numbers.
    densities : tuple
        Of a numeric column the kernel estimate of the first run; None of labels.
    pairs : ndarray of float64, shape (runs, pairs)
        Association of each pair of columns.
    predicted : dict of str to Spread
        Score of predictions of each column by trees that synthetic records train.
    """

    name: str
    kind: str
    own: bool
    words: str
    settings: dict[str, Any]
    guarantee: Guarantee
    records: int
    joint: Mapping[str, Spread]
    columns: tuple[Mapping[str, Spread], ...]
    shares: tuple[Floats | None, ...]
    densities: tuple[Floats | None, ...]
    pairs: Floats = field(default_factory=lambda: np.empty((0, 0)))
    predicted: Mapping[str, Spread] = field(default_factory=dict)

    @property
    def guarantee_in_words(self) -> str:
        """Return the guarantee in one clause."""
        g = self.guarantee
        return guarantee_in_words(g.epsilon, g.delta, g.rho, g.trust)


@dataclass(frozen=True)
class Refusal:
    """A rival that cannot meet the request, and why in one sentence."""

    name: str
    kind: str
    reason: str


Cells = Sequence[tuple[str, Callable[[Contender], str]]]
"""Heads of columns, and what they say of a kind."""


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Kinds of synthesis side by side; for the curator only.

    Parameters
    ----------
    columns : tuple of dpmix.synthesis.records.Column
        The columns.
    n : int
        Number of confidential records.
    simulated : bool
        Whether they are simulated.
    runs : int
        Independent synthetic data sets of each kind.
    confidential : Figures
        Of the confidential records.
    categories : tuple
        Of a column of labels those that shares are of, None of numbers.
    densities : tuple of ComparedDensity or None
        One per column, None of labels.
    contenders : tuple of Contender
        The spec's own first.
    refused : tuple of Refusal
        Rivals that did not take part.
    pairs : tuple of PairOfColumns
        Pairs of columns.
    associations : ndarray of float64, shape (pairs,)
        Those of the confidential records.
    baseline : dict of str to float
        Score of predictions of each column by trees that confidential records train.
    notes : tuple of str
        What is to be said beside.
    unit : str, mapping or None
        Of the numeric columns, as the spec states it.
    """

    columns: tuple[Recorded, ...]
    n: int
    simulated: bool
    runs: int
    confidential: Figures
    categories: tuple[tuple[str, ...] | None, ...]
    densities: tuple[ComparedDensity | None, ...]
    contenders: tuple[Contender, ...]
    refused: tuple[Refusal, ...]
    pairs: tuple[PairOfColumns, ...] = ()
    associations: Floats = field(default_factory=lambda: np.empty(0))
    baseline: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unit: Unit = None

    def __repr__(self) -> str:
        names = [contender.name for contender in self.contenders]
        return f"Comparison(n={self.n}, runs={self.runs}, kinds={names}, curator_only=True)"

    @property
    def notice(self) -> str:
        """Say for whom this is."""
        return NOTICE + (" The records here are simulated." if self.simulated else "")

    def unit_at(self, index: int) -> str:
        """Return the unit of a numeric column, days of dates; empty where none is stated."""
        column = self.columns[index]
        return "days" if column.date else unit_of(self.unit, column.name)

    @property
    def several(self) -> bool:
        """Whether there are several numeric columns, which are also compared together."""
        return sum(column.bounds is not None for column in self.columns) > 1

    @cached_property
    def tree(self) -> Tree:
        """The comparison: who takes part, then a table for each column, a row a kind."""
        held: dict[str, Any] = {
            "curator_only": True,
            "notice": self.notice,
            "simulated": self.simulated,
            "n": self.n,
            "runs": self.runs,
            "columns": [column.describe() for column in self.columns],
            "directions": DIRECTIONS if self.several else None,
            "confidential": {
                "distinct": int(self.confidential.joint["distinct"]),
                "columns": {
                    column.name: self._confidential(i, column) for i, column in enumerate(self.columns)
                },
                "pairs": [
                    self._pair(pair) | {"value": float(value)}
                    for pair, value in zip(self.pairs, self.associations, strict=True)
                ],
                "predicted": dict(self.baseline),
            },
            "kinds": [self._kind(contender) for contender in self.contenders],
            "refused": [dict(vars(refusal)) for refusal in self.refused],
            "notes": list(self.notes),
        }
        sets = counted(self.runs, "independent synthetic data set")
        how = "of which means are shown (+- standard deviation)"
        said = [Words(f"Note: {note}", "") for note in self.notes]
        refused = ["Not compared:", *(f"- {refusal.name}: {refusal.reason}" for refusal in self.refused)]
        sections = (
            *(ResultSection(key, Each(value)) for key, value in held.items()),
            ResultSection(
                "introduction",
                brief=[Words(self.notice, "")],
                text=[[Words(f"{self.n} confidential records; {sets} of each kind, {how}", "")]],
            ),
            self._field(),
            *(
                self._numbers(place) if column.bounds is not None else self._labels(place)
                for place, column in enumerate(self.columns)
            ),
            *self._together(),
            *([_of_pairs(self), *_of_predictions(self)] if self.pairs else []),
            ResultSection("said", title="Notes", text=[said] if said else []),
            ResultSection("left out", text=[refused] if self.refused else []),
            ResultSection("legend", text=[[Words(self._legend(), "")]]),
        )
        heading = "Synthetic data beside the confidential records"
        return Tree("For the curator only: synthetic data compared", heading, "", sections)

    def _table(self, own: Sequence[str] | None, columns: Cells) -> Table:
        """Return a table of a row a kind, after one of the confidential records where there is such."""
        names = [*(["confidential"] if own is not None else []), *(found.name for found in self.contenders)]
        shown = [
            TableColumn(
                "",
                [*([own[i]] if own is not None else []), *map(write, self.contenders)],
                label,
                str,
            )
            for i, (label, write) in enumerate(columns)
        ]
        return Table("", names, shown)

    def _field(self) -> ResultSection:
        """Say what takes part, with its guarantee."""
        distinct = number(self.confidential.joint["distinct"])
        cells: Cells = [
            ("records", lambda found: str(found.records)),
            ("epsilon", lambda found: _figure(found.guarantee.epsilon, 4)),
            ("delta", lambda found: _figure(found.guarantee.delta, 3)),
            ("distinct", lambda found: number(found.joint["distinct"].mean)),
            ("repeats", lambda found: f"{100 * found.joint['repeats'].mean:.1f}%"),
            ("guarantee", _briefly),
        ]
        own = [str(self.n), "", "", distinct, "", "none"]
        text, table = self._table(own, cells), self._table(own, cells[:-1])
        text = replace(text, columns=[*text.columns[:-1], replace(text.columns[-1], left=True)])
        words = [
            f"**{found.name}**: {found.words}. One data set is {found.guarantee_in_words}."
            for found in self.contenders
        ]
        note = (
            "**distinct** is the number of different records, and **repeats** the share of the synthetic "
            "records that are equal to a confidential one; both are means over runs."
        )
        page: list[Block] = [table, Items(words, small=True), Note(note)]
        return ResultSection("field", title="What is compared", text=[[text]], page=page)

    def _numbers(self, index: int) -> ResultSection:
        """Set the distributions of a numeric column side by side."""
        column, own = self.columns[index], self.confidential.columns[index]
        assert column.bounds is not None  # numbers
        low, high = (Day(end) for end in column.bounds) if column.date else column.bounds
        titles = {"mean": "mean", "sd": "sd", "q25": "25%", "q50": "50%", "q75": "75%"}

        def place(key: str) -> bool:
            return column.date and key not in ("w1", "sd")

        def cells(*written: str) -> Cells:
            def of(key: str) -> Callable[[Contender], str]:
                with_sd = key in written
                return lambda f: (
                    spread(f.columns[index][key], date=place(key))
                    if with_sd
                    else number(f.columns[index][key].mean, date=place(key))
                )

            return [
                ("W1", of("w1")),
                ("W1/width", lambda found: f"{found.columns[index]['w1_scaled'].mean:.3g}"),
                *((title, of(key)) for key, title in titles.items()),
            ]

        known = ["", "", *(number(own[key], date=place(key)) for key in titles)]
        text, page = self._table(known, cells("w1")), self._table(known, cells("w1", "mean", "sd"))
        unit = "" if column.date else self.unit_at(index)
        note = f"Means over runs{' ± standard deviations' if self.runs > 1 else ''}."
        return ResultSection(
            f"column/{index}",
            title=labelled(column.name, unit),
            text=[[f"{labelled(column.name, unit)}, within [{low:g}, {high:g}]", text]],
            page=[page, Note(f"{note} W1/width is W1 as a share of the width of the bounds.")],
        )

    def _labels(self, index: int) -> ResultSection:
        """Set the shares of a column's categories side by side."""
        column, names = self.columns[index], self.categories[index]
        known = self.confidential.shares[index]
        assert names is not None and known is not None  # labels
        chosen = most_frequent(self, index, _CATEGORIES)

        def variation(found: Contender) -> str:
            return spread(found.columns[index]["total_variation"])

        def share(found: Contender, place: int) -> str:
            shares = found.shares[index]
            assert shares is not None  # labels
            return _shares(shares[:, chosen].mean(axis=0).tolist())[place]

        heads = [*(textwrap.shorten(names[i], 14, placeholder="..") for i in chosen), "others"]
        cells: Cells = [(head, partial(share, place=place)) for place, head in enumerate(heads)]
        own = ["", *_shares([float(known[i]) for i in chosen])]
        text = self._table(own, [("TV", variation), *cells])
        return ResultSection(
            f"column/{index}",
            title=column.name,
            text=[[f"{column.name}: shares of categories", text]],
            page=[self._table(None, [("total variation", variation)])],
        )

    def _together(self) -> list[ResultSection]:
        """Set all columns together side by side, where there are several of a sort."""
        titles = {"sliced_w1": "sliced W1", "exact_w1": "exact W1", "total_variation": "TV of labels"}
        shown = [key for key in titles if any(key in found.joint for found in self.contenders)]
        if not shown:
            return []

        def written(found: Contender, key: str) -> str:
            return spread(found.joint.get(key))

        table = self._table(None, [(titles[key], partial(written, key=key)) for key in shown])
        note = [Note("Numbers are scaled by their bounds to [0, 1].")] if self.several else []
        words: list[Block] = ["All columns together, numbers scaled by their bounds", table]
        return [ResultSection("together", title="All columns together", text=[words], page=[table, *note])]

    def _legend(self) -> str:
        parts = ["repeats: share of the synthetic records that are equal to a confidential one"]
        if any(column.bounds is not None for column in self.columns):
            parts.append(
                "W1: 1-Wasserstein distance from the confidential records, in the data's units and as a "
                "share of the width of the bounds"
            )
        if self.several:
            parts.append(f"sliced W1: mean over {DIRECTIONS} fixed directions")
        if any("exact_w1" in found.joint for found in self.contenders):
            parts.append("exact W1: optimal transport, Euclidean cost")
        if any(column.bounds is None for column in self.columns):
            parts.append("TV: total variation distance of the shares")
        if self.pairs:
            parts.append(_JOINT_LEGEND)
        return "; ".join(parts) + "."

    def _confidential(self, index: int, column: Recorded) -> dict[str, Any]:
        names, density = self.categories[index], self.densities[index]
        if names is not None:
            shares = self.confidential.shares[index]
            assert shares is not None  # labels
            return {"shares": dict(zip(names, shares.tolist(), strict=True)), "others": _rest(shares)}
        assert density is not None  # numbers
        return dict(self.confidential.columns[index]) | {
            "density": {
                "grid": density.grid.tolist(),
                "values": density.confidential.tolist(),
                "bandwidth": density.bandwidth,
            }
        }

    def _kind(self, contender: Contender) -> dict[str, Any]:
        g = contender.guarantee
        return {
            "name": contender.name,
            "kind": contender.kind,
            "own": contender.own,
            "records": contender.records,
            "guarantee": {
                "epsilon": _finite(g.epsilon),
                "delta": _finite(g.delta),
                "rho": _finite(g.rho),
                "words": contender.guarantee_in_words,
            },
            "words": contender.words,
            "settings": contender.settings,
            "measures": {
                name: spread.to_json(whole=name.endswith("w1")) for name, spread in contender.joint.items()
            },
            "columns": {column.name: self._column(contender, i) for i, column in enumerate(self.columns)},
            "pairs": [
                self._pair(pair) | Spread(values).to_json()
                for pair, values in zip(self.pairs, contender.pairs.T, strict=True)
            ],
            "predicted": {name: found.to_json() for name, found in contender.predicted.items()},
        }

    def _pair(self, pair: PairOfColumns) -> dict[str, Any]:
        """Say which columns a pair is of, and what is measured of them."""
        names = sorted((pair.one, pair.other))
        return {"columns": [self.columns[i].name for i in names], "measure": pair.measure}

    def _column(self, contender: Contender, index: int) -> dict[str, Any]:
        found: dict[str, Any] = {
            name: spread.to_json(whole=name.startswith("w1"))
            for name, spread in contender.columns[index].items()
        }
        names, shares = self.categories[index], contender.shares[index]
        if names is not None and shares is not None:
            by_name = zip(names, shares.T, strict=True)
            found["shares"] = {name: Spread(values).to_json() for name, values in by_name}
            found["others"] = _rest(shares.mean(axis=0))
        density = contender.densities[index]
        if density is not None:
            found["density"] = density.tolist()
        return found


def most_frequent(comparison: Comparison, index: int, most: int) -> list[int]:
    """Return the places of a column's most frequent categories among those shown, in their own order."""
    shares = comparison.confidential.shares[index]
    assert shares is not None  # labels
    return sorted(int(place) for place in np.argsort(-shares, kind="stable")[:most])


def _figure(value: float | None, digits: int) -> str:
    return "-" if value is None else figure(value, digits)


def _briefly(found: Contender) -> str:
    """Write the notion of privacy alone; the numbers stand beside it."""
    g = found.guarantee
    if g.epsilon == 0 and g.delta:
        return "(0, delta)-DP"
    if g.epsilon is not None:
        return "(epsilon, delta)-DP" if g.delta else "epsilon-DP"
    return found.guarantee_in_words


def _shares(shares: list[float]) -> list[str]:
    return [f"{share:.3f}" for share in (*shares, max(0.0, 1.0 - sum(shares)))]


def _rest(shares: Floats) -> float:
    """Return the share of the categories that are not shown."""
    return max(0.0, 1.0 - float(shares.sum()))


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


# Several columns at a time: pairs, propensity scores, predictions


def _name(found: Comparison, place: int) -> str:
    pair = found.pairs[place]
    one, other = sorted((pair.one, pair.other))
    return f"{_MEASURES[pair.measure]}({found.columns[one].name}, {found.columns[other].name})"


def _of_pairs(found: Comparison) -> ResultSection:
    """Say how far associations are off: the largest, their mean, and which pair is the worst."""
    kinds = [kind.name for kind in found.contenders]
    off = [np.abs(kind.pairs - found.associations).mean(axis=0) for kind in found.contenders]
    worst = [int(np.argmax(own)) for own in off]
    columns = [
        TableColumn("", _of_kinds(found, "association_max"), "max off", str),
        TableColumn("", _of_kinds(found, "association_mean"), "mean off", str),
        TableColumn("", [_name(found, place) for place in worst], "worst pair", str, left=True),
        TableColumn("", [f"{found.associations[place]:.3f}" for place in worst], "confidential", str),
        TableColumn("", [_means(found, place)[kind] for kind, place in enumerate(worst)], "synthetic", str),
    ]
    table = Table("", kinds, columns)
    place = np.argsort(-np.abs(found.associations), kind="stable")[:_PAIRS]
    each = [
        TableColumn("", [f"{found.associations[i]:.3f}", *_means(found, i)], _name(found, int(i)), str)
        for i in place
    ]
    note = "Associations of the pairs that go together most, means over runs."
    return ResultSection(
        "pairs of columns",
        title="Pairs of columns",
        text=[["Pairs of columns: how far their associations are off", table]],
        page=[table, Table("", ["confidential", *kinds], each), Note(note)],
    )


def _means(found: Comparison, place: int) -> list[str]:
    """Return the mean association of a pair in the runs of each kind, in words."""
    return [f"{kind.pairs[:, place].mean():.3f}" for kind in found.contenders]


def _of_kinds(found: Comparison, key: str) -> list[str]:
    """Return a figure of each kind in words."""
    return [spread(kind.joint.get(key)) for kind in found.contenders]


def _of_predictions(found: Comparison) -> list[ResultSection]:
    """Say how well records are told apart, and what trees predict that they train."""
    columns = []
    own = ["1" if any("pmse_ratio" in kind.joint for kind in found.contenders) else "-"]
    if own != ["-"]:
        columns.append(TableColumn("", [*own, *_of_kinds(found, "pmse_ratio")], "pMSE ratio", str))
    for name, score in found.baseline.items():
        scores = [_score(kind.predicted.get(name)) for kind in found.contenders]
        columns.append(TableColumn("", [f"{score:.3f}", *scores], name, str))
    if not columns:
        return []
    table = Table("", ["real", *(kind.name for kind in found.contenders)], columns)
    words = "Told apart (pMSE ratio), and predictions of each column from the others"
    note = Note(f"{_JOINT_LEGEND[_JOINT_LEGEND.index('pMSE') :]}. Of the first runs.")
    return [
        ResultSection(
            "predictions", title="Told apart and predicted", text=[[words, table]], page=[table, note]
        )
    ]


def _score(found: Spread | None) -> str:
    """Write a score in three decimals, or a dash where there is none."""
    return number(None) if found is None else f"{found.mean:.3f}"


# Figures over runs, and how they are written


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
