"""The comparison as an HTML page for the curator: one file, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmix.columns.column_units import labelled
from dpmix.results.as_html import sections
from dpmix.spec.capabilities import counted
from dpmix.store.html import COLOURS, GREY, INK, STYLES, captioned, drawing, on_dates, page
from dpmix.synthesis.comparison import Comparison, Spread, most_frequent
from dpmix.synthesis.utility import DIRECTIONS

_BARS = 12
_LETTERS = 40
_APART = 20.0
_HIGHEST = 2.0


def render(comparison: Comparison) -> str:
    """Return the comparison as one HTML page, with its mark for whom it is at the top.

    Pictures are SVG in data URIs; all text that comes from a file is escaped. The same comparison always
    gives the same page.
    """
    pictures = {
        f"column/{index}": _numbers(comparison, index) if column.bounds else _labels(comparison, index)
        for index, column in enumerate(comparison.columns)
    }
    pictures["together"] = _together(comparison)
    tree = comparison.tree
    return page(f"{tree.name} - dpmix", [_head(comparison), *sections(tree, pictures)[1:]])


def density_figure(comparison: Comparison, index: int) -> Figure:
    """Kernel estimates of a numeric column: the confidential records, and one run of each kind."""
    density = comparison.densities[index]
    assert density is not None  # numbers
    with drawing((7.2, 3.2 + 0.18 * ((len(comparison.contenders) + 2) // 2))) as (figure, axes):
        handles: list[Artist] = [axes.fill_between(density.grid, density.confidential, color=GREY, lw=0)]
        axes.plot(density.grid, density.confidential, color=INK, lw=1.0)
        top = density.confidential.max()
        most = _HIGHEST * top
        for place, found in enumerate(comparison.contenders):
            heights = found.densities[index]
            assert heights is not None  # numbers
            top = max(top, heights.max())
            handles += axes.plot(density.grid, heights, color=_colour(place), ls=_style(place), lw=1.5)
        bounds = comparison.columns[index].bounds
        assert bounds is not None  # numbers
        axes.set(xlim=bounds, ylim=(0.0, 1.05 * min(top, most)), ylabel="density")
        column, unit = comparison.columns[index], comparison.unit_at(index)
        if column.date:
            axes.set_xlabel(_plain(column.name))
            on_dates(axes)
        else:
            axes.set_xlabel(_plain(labelled(column.name, unit)) + ("" if unit else ", in the data's units"))
        labels = ["confidential records", *(_plain(found.name) for found in comparison.contenders)]
        figure.legend(handles, labels, loc="outside upper left", ncols=2, handlelength=2.6)
    return figure


def boxes_figure(comparison: Comparison, spreads: list[Spread | None], label: str) -> Figure:
    """Box plots over runs of one distance, a row a kind; a kind without it has an empty row."""
    rows = np.arange(len(spreads))
    middles = [found.quartiles[1] for found in spreads if found is not None]
    lowest = min(float(found.values.min()) for found in spreads if found is not None)
    logarithmic = lowest > 0 and max(middles) > _APART * min(middles)
    with drawing((7.2, 0.9 + 0.36 * rows.size)) as (figure, axes):
        for row, found in zip(rows, spreads, strict=True):
            if found is None:
                continue
            _draw_box(axes, int(row), found)
        axes.set_yticks(rows, [_plain(found.name) for found in comparison.contenders])
        axes.set(ylim=(rows.size - 0.5, -0.5), xlabel=label + ", logarithmic scale" * logarithmic)
        if logarithmic:
            axes.set_xscale("log")
        else:
            axes.set_xlim(left=0.0)
    return figure


def _draw_box(axes: Axes, row: int, found: Spread) -> None:
    """Draw a box plot (matplotlib names its orientation differently in its versions)."""
    low, middle, high = found.quartiles
    reach = 1.5 * (high - low)
    inside = found.values[(found.values >= low - reach) & (found.values <= high + reach)]
    outside = found.values[(found.values < low - reach) | (found.values > high + reach)]
    left, right = float(inside.min()), float(inside.max())
    axes.barh(row, high - low, left=low, height=0.6, color=_colour(row), alpha=0.45, lw=0)
    axes.hlines([row, row], [left, high], [low, right], color=INK, lw=0.8)
    axes.vlines([left, right], row - 0.12, row + 0.12, color=INK, lw=0.8)
    axes.vlines(middle, row - 0.3, row + 0.3, color=INK, lw=1.8)
    axes.plot(outside, np.full(outside.size, row), ".", color=INK, markersize=4)


def shares_figure(comparison: Comparison, index: int) -> Figure:
    """Bars of the shares of the most frequent categories: the confidential ones, and each kind's mean."""
    names, known = comparison.categories[index], comparison.confidential.shares[index]
    assert names is not None and known is not None  # labels
    chosen = most_frequent(comparison, index, _BARS)
    bars = [("confidential records", "#8C8C8C", known[chosen], None)]
    for place, found in enumerate(comparison.contenders):
        shares = found.shares[index]
        assert shares is not None  # labels
        runs = shares[:, chosen]
        errors = runs.std(axis=0, ddof=1) if len(runs) > 1 else None
        bars.append((_plain(found.name), _colour(place), runs.mean(axis=0), errors))
    thick = 0.84 / len(bars)
    rows = np.arange(len(chosen))
    with drawing((7.2, 1.0 + 0.15 * len(bars) * (len(chosen) + 1))) as (figure, axes):
        handles: list[Any] = [  # containers of artists, which legends take as well
            axes.barh(
                rows + (place - (len(bars) - 1) / 2) * thick,
                heights,
                height=thick,
                color=colour,
                xerr=errors,
                error_kw={"lw": 0.8, "ecolor": INK},
            )
            for place, (_, colour, heights, errors) in enumerate(bars)
        ]
        axes.set_yticks(rows, [_plain(names[place]) for place in chosen])
        axes.set(xlim=(0.0, None), ylim=(len(chosen) - 0.5, -0.5))
        axes.set_xlabel(f"share of each category of {_plain(comparison.columns[index].name)}")
        labels = [name for name, *_ in bars]
        figure.legend(handles, labels, loc="outside upper left", ncols=2)
    return figure


def _head(comparison: Comparison) -> str:
    text = comparison.notice.removeprefix("For the curator only: ")
    box = (
        '<div class="box warning" role="note"><strong>For the curator only</strong>'
        f"<p>{escape(text[0].upper() + text[1:])}</p></div>"
    )
    refused = ""
    if comparison.refused:
        items = "".join(
            f"<li><b>{escape(refusal.name)}</b>: {escape(refusal.reason)}</li>"
            for refusal in comparison.refused
        )
        refused = f'<div class="box" role="note"><strong>Not compared</strong><ul>{items}</ul></div>'
    runs = counted(comparison.runs, "independent synthetic data set")
    return (
        "<h1>Synthetic data beside the confidential records</h1>\n"
        f"{box}\n"
        f'<p class="lead">{comparison.n} confidential records, and {runs} of each kind, drawn for this page '
        f"and dropped.</p>\n{refused}"
    )


def _numbers(comparison: Comparison, index: int) -> list[str]:
    name, density = comparison.columns[index].name, comparison.densities[index]
    unit, own_units = comparison.unit_at(index), "the data's units"
    assert density is not None  # numbers
    distances = [found.columns[index]["w1"] for found in comparison.contenders]
    overlay = captioned(
        density_figure(comparison, index),
        f"Densities of {name}: confidential records, and one run of each kind; the nearest by W1 is "
        f"{_nearest(distances, comparison)}",
        "Kernel estimates of the confidential records and of the first run of each kind, all with the "
        f"bandwidth of the confidential records ({density.bandwidth:.3g}) and reflected at the bounds. Lines "
        "are cut off at twice the height of the confidential estimate.",
    )
    boxes = captioned(
        boxes_figure(comparison, [*distances], labelled("W1", unit)),
        f"W1 of {name} by kind: {_medians(distances, comparison)}",
        "1-Wasserstein distance between the confidential records and each run, in "
        f"{unit or own_units}. Boxes "
        "hold the middle half of the runs; whiskers reach up to 1.5 times their length further.",
    )
    return [overlay, boxes]


def _labels(comparison: Comparison, index: int) -> list[str]:
    name, names = comparison.columns[index].name, comparison.categories[index]
    known = comparison.confidential.shares[index]
    assert names is not None and known is not None  # labels
    chosen = most_frequent(comparison, index, _BARS)
    left = 1.0 - float(known[chosen].sum())
    caption = "Shares of the confidential records, and means over runs"
    caption += " with their standard deviations." if comparison.runs > 1 else "."
    if len(chosen) < len(names):
        caption += (
            f" Shown are the {len(chosen)} most frequent categories; others hold {100 * left:.1f}% of the "
            "confidential records."
        )
    variations = [found.columns[index]["total_variation"] for found in comparison.contenders]
    boxes = captioned(
        boxes_figure(comparison, list(variations), "total variation distance"),
        f"Total variation distance of {name} by kind: {_medians(variations, comparison)}",
        "Total variation distance between the shares of the confidential records and of each run, over all "
        "categories.",
    )
    bars = captioned(
        shares_figure(comparison, index),
        f"Shares of the categories of {name}; the nearest to the confidential ones is "
        f"{_nearest(variations, comparison)}",
        caption,
    )
    return [bars, boxes]


def _together(comparison: Comparison) -> list[str]:
    titles = {
        "sliced_w1": ("Sliced W1", f"the mean of W1 over projections on {DIRECTIONS} fixed directions"),
        "exact_w1": ("Exact W1", "optimal transport at Euclidean cost"),
        "total_variation": ("Total variation", "that of the shares of whole tuples of labels"),
    }
    measured = {key: [found.joint.get(key) for found in comparison.contenders] for key in titles}
    return [
        captioned(
            boxes_figure(comparison, measured[key], title),
            f"{title} by kind: {_medians(measured[key], comparison)}",
            f"{title}: {what}.",
        )
        for key, (title, what) in titles.items()
        if any(found is not None for found in measured[key])
    ]


def _medians(spreads: Sequence[Spread | None], comparison: Comparison) -> str:
    """Name the median over runs of each kind, the smallest first."""
    return ", ".join(f"{name} {middle:.3g}" for middle, name in _ordered(spreads, comparison))


def _nearest(spreads: Sequence[Spread | None], comparison: Comparison) -> str:
    """Name the kind with the smallest median."""
    return _ordered(spreads, comparison)[0][1]


def _ordered(spreads: Sequence[Spread | None], comparison: Comparison) -> list[tuple[float, str]]:
    return sorted(
        (one.quartiles[1], contender.name)
        for one, contender in zip(spreads, comparison.contenders, strict=True)
        if one is not None
    )


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _style(place: int) -> str:
    return STYLES[place % len(STYLES)]


def _plain(name: str) -> str:
    """Shorten a name, and keep matplotlib from reading mathematics in it."""
    short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
    return short.replace("$", r"\$")
