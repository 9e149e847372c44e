"""A comparison of kinds of synthesis as tables for a terminal."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from dpmix.figures import figure
from dpmix.synthesis.utility import DIRECTIONS

if TYPE_CHECKING:
    from dpmix.synthesis.comparison import Comparison, Contender, Spread

__all__ = ["most_frequent", "number", "spread", "tables"]

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
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i == 0 or rows[0][i].startswith("guarantee") else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
