"""What a comparison of kinds of synthesis found, for the curator of the records alone."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.rounding import figure
from dpmix.privacy.accounting import Guarantee
from dpmix.release.sanitized import guarantee_in_words
from dpmix.results.as_text import aligned
from dpmix.synthesis.records import Column
from dpmix.synthesis.utility import DIRECTIONS, Figures

__all__ = [
    "Comparison",
    "Contender",
    "Density",
    "NOTICE",
    "Refusal",
    "Spread",
    "most_frequent",
    "number",
    "spread",
    "spreads",
    "tables",
]


# A comparison of kinds of synthesis as tables for a terminal.

WIDTH = 100
_CATEGORIES = 5


def tables(comparison: Comparison) -> str:
    """Return the comparison as text: who takes part, then a table for each column, a row a kind."""
    lines = [
        *_wrapped(comparison.notice),
        "",
        *_wrapped(
            f"{comparison.n} confidential records; {comparison.runs} independent synthetic data "
            f"set{'s' * (comparison.runs > 1)} of each kind, of which means are shown (+- standard deviation)"
        ),
        "",
        *_table(_field(comparison)),
    ]
    for index, column in enumerate(comparison.columns):
        if column.bounds is not None:
            low, high = column.bounds
            lines += ["", f"{column.name}, within [{low:g}, {high:g}]", *_table(_numbers(comparison, index))]
        else:
            lines += ["", *_labels(comparison, index)]
    lines += _together(comparison)
    if comparison.refused:
        lines += ["", "Not compared:"]
        for refusal in comparison.refused:
            lines += _wrapped(f"- {refusal.name}: {refusal.reason}", "  ")
    lines += ["", *_wrapped(_legend(comparison))]
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Write a figure in four digits, or a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


def spread(value: Spread | None) -> str:
    """Write mean and standard deviation over runs, to two digits of the latter."""
    if value is None:
        return "-"
    if not value.sd:
        return number(value.mean) + ("" if value.sd is None else " +- 0")
    places = max(0, 1 - math.floor(math.log10(value.sd)))
    if places > 8:
        return f"{value.mean:.3g} +- {value.sd:.2g}"
    return f"{value.mean:.{places}f} +- {value.sd:.{places}f}"


def most_frequent(comparison: Comparison, index: int, most: int) -> list[int]:
    """Return the places of a column's most frequent categories among those shown, in their own order."""
    shares = comparison.confidential.shares[index]
    assert shares is not None  # labels
    return sorted(int(place) for place in np.argsort(-shares, kind="stable")[:most])


def _field(comparison: Comparison) -> list[list[str]]:
    rows = [["", "records", "epsilon", "delta", "distinct", "repeats", "guarantee"]]
    distinct = comparison.confidential.joint["distinct"]
    rows.append(["confidential", str(comparison.n), "", "", number(distinct), "", "none"])
    for found in comparison.contenders:
        g = found.guarantee
        rows.append(
            [
                found.name,
                str(found.records),
                "-" if g.epsilon is None else figure(g.epsilon, 4),
                "-" if g.delta is None else figure(g.delta, 3),
                number(found.joint["distinct"].mean),
                f"{100 * found.joint['repeats'].mean:.1f}%",
                _briefly(found),
            ]
        )
    return rows


def _briefly(found: Contender) -> str:
    """Write the notion of privacy alone; the numbers stand beside it."""
    g = found.guarantee
    if g.epsilon == 0 and g.delta:
        return "(0, delta)-DP"
    if g.epsilon is not None:
        return "(epsilon, delta)-DP" if g.delta else "epsilon-DP"
    return found.guarantee_in_words


def _numbers(comparison: Comparison, index: int) -> list[list[str]]:
    names = ("mean", "sd", "q25", "q50", "q75")
    rows = [["", "W1", "W1/width", "mean", "sd", "25%", "50%", "75%"]]
    own = comparison.confidential.columns[index]
    rows.append(["confidential", "", "", *(number(own[name]) for name in names)])
    for found in comparison.contenders:
        figures = found.columns[index]
        rows.append(
            [
                found.name,
                spread(figures["w1"]),
                f"{figures['w1_scaled'].mean:.3g}",
                *(number(figures[name].mean) for name in names),
            ]
        )
    return rows


def _labels(comparison: Comparison, index: int) -> list[str]:
    names, known = comparison.categories[index], comparison.confidential.shares[index]
    assert names is not None and known is not None  # labels
    chosen = most_frequent(comparison, index, _CATEGORIES)
    rows = [["", "TV", *(textwrap.shorten(names[i], 14, placeholder="..") for i in chosen), "others"]]
    rows.append(["confidential", "", *_shares([float(known[i]) for i in chosen])])
    for found in comparison.contenders:
        shares = found.shares[index]
        assert shares is not None  # labels
        means = [float(shares[:, i].mean()) for i in chosen]
        rows.append([found.name, spread(found.columns[index]["total_variation"]), *_shares(means)])
    return [f"{comparison.columns[index].name}: shares of categories", *_table(rows)]


def _shares(shares: list[float]) -> list[str]:
    return [f"{share:.3f}" for share in (*shares, max(0.0, 1.0 - sum(shares)))]


def _together(comparison: Comparison) -> list[str]:
    """Return the table of all columns together, where there are several of a sort."""
    titles = {"sliced_w1": "sliced W1", "exact_w1": "exact W1", "total_variation": "TV of labels"}
    shown = [key for key in titles if any(key in found.joint for found in comparison.contenders)]
    if not shown:
        return []
    rows = [["", *(titles[key] for key in shown)]]
    rows += [
        [found.name, *(spread(found.joint.get(key)) for key in shown)] for found in comparison.contenders
    ]
    return ["", "All columns together, numbers scaled by their bounds", *_table(rows)]


def _legend(comparison: Comparison) -> str:
    parts = ["repeats: share of the synthetic records that are equal to a confidential one"]
    if any(column.bounds is not None for column in comparison.columns):
        parts.append(
            "W1: 1-Wasserstein distance from the confidential records, in the data's units and as a share of "
            "the width of the bounds"
        )
    if comparison.several:
        parts.append(f"sliced W1: mean over {DIRECTIONS} fixed directions")
    if any("exact_w1" in found.joint for found in comparison.contenders):
        parts.append("exact W1: optimal transport, Euclidean cost")
    if any(column.bounds is None for column in comparison.columns):
        parts.append("TV: total variation distance of the shares")
    return "; ".join(parts) + "."


def _table(rows: list[list[str]]) -> list[str]:
    """Align a table: names to the left, all else to the right, but for a last column of words."""
    words = [i for i, head in enumerate(rows[0]) if head.startswith("guarantee")]
    return [line.rstrip() for line in aligned(rows, [0, *words])]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


Floats = NDArray[np.float64]

NOTICE = (
    "For the curator only: every figure here is computed from the confidential records without protection. "
    "No guarantee covers it, and it must not be released. A kind or a setting that is chosen by these "
    "figures depends on the records too, beyond the guarantee of the synthetic records."
)


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


@dataclass(frozen=True, eq=False)
class Density:
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


@dataclass(frozen=True, eq=False)
class Comparison:
    """Kinds of synthesis side by side; for the curator only.

    Parameters
    ----------
    columns : tuple of Column
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
    densities : tuple of Density or None
        One per column, None of labels.
    contenders : tuple of Contender
        The spec's own first.
    refused : tuple of Refusal
        Rivals that did not take part.
    """

    columns: tuple[Column, ...]
    n: int
    simulated: bool
    runs: int
    confidential: Figures
    categories: tuple[tuple[str, ...] | None, ...]
    densities: tuple[Density | None, ...]
    contenders: tuple[Contender, ...]
    refused: tuple[Refusal, ...]

    def __repr__(self) -> str:
        names = [contender.name for contender in self.contenders]
        return f"Comparison(n={self.n}, runs={self.runs}, kinds={names}, curator_only=True)"

    @property
    def notice(self) -> str:
        """Say for whom this is."""
        return NOTICE + (" The records here are simulated." if self.simulated else "")

    @property
    def several(self) -> bool:
        """Whether there are several numeric columns, which are also compared together."""
        return sum(column.bounds is not None for column in self.columns) > 1

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as lists, dicts and numbers that strict JSON can hold."""
        return {
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
            },
            "kinds": [self._kind(contender) for contender in self.contenders],
            "refused": [
                {"name": refusal.name, "kind": refusal.kind, "reason": refusal.reason}
                for refusal in self.refused
            ],
        }

    def to_text(self) -> str:
        """Return the comparison as tables for a terminal."""
        return tables(self)

    def _confidential(self, index: int, column: Column) -> dict[str, Any]:
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
        }

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


def spreads(runs: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """Return the figures of runs by name; one that a run lacks is left out."""
    return {
        name: Spread(np.array([run[name] for run in runs]))
        for name in runs[0]
        if all(name in run for run in runs)
    }


def _rest(shares: Floats) -> float:
    """Return the share of the categories that are not shown."""
    return max(0.0, 1.0 - float(shares.sum()))


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
