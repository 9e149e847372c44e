"""Error, acceptance and effective sample size of a sweep against epsilon, or what else varies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from dpmix.spec.capabilities import counted
from dpmix.store.atomic import write_bytes
from dpmix.store.html import INK, drawings, line_style, picture
from dpmix.sweeping.table import columns_of, telling

Row = Mapping[str, Any]

EPSILON = "mechanism.epsilon"
MOST_PANELS, MOST_LINES = 4, 12
_TITLES = {
    "hellinger": "Hellinger distance from the truth",
    "ise": "integrated squared error",
    "ks": "largest error of the distribution function",
    "w1": "Wasserstein distance from the truth",
    "acceptance": "acceptance rate",
    "ess_bulk_min": "least bulk ESS",
    "ess_per_second_min": "least bulk ESS per second",
}


def across(rows: Sequence[Row], varied: Sequence[str]) -> str | None:
    """Return the column that figures have on their horizontal axis.

    Epsilon where it varies: as asked for, else as released. Else what varies and has numbers, throughout if
    there is such; None where nothing does.
    """
    found = [key for key in (EPSILON, "epsilon", *varied) if len(_places(rows, key)) > 1]
    whole = [key for key in found if all(_is_number(row.get(key)) for row in rows)]
    return next((key for key in found if key in (EPSILON, "epsilon", *whole)), found[0] if found else None)


def draw_figures(rows: Sequence[Row], varied: Sequence[str], folder: Path) -> list[Path]:
    """Draw what the rows of finished runs have, as SVG and PNG: ``error``, ``acceptance`` and ``ess``.

    Points are means over replicates, bars reach one standard error of them up and down; a dashed line is the
    bound e^-epsilon below which acceptance cannot fall. Settings beyond twelve are left to the table, and the
    figures say so.

    Returns
    -------
    list of Path
        The files; none where nothing varies that has numbers.

    Raises
    ------
    DataError
        When one cannot be written.
    """
    key = across(rows, varied)
    if key is None:
        return []
    lines = _settings(rows, varied, key)
    columns = [name for name in columns_of(rows) if any(_is_number(row.get(name)) for row in rows)]
    errors = [name for name in columns if name in ("hellinger", "ise", "ks", "w1")][:2]
    if not errors:
        errors = [name for name in columns if name.startswith("error[")][:MOST_PANELS]
    wanted: dict[str, list[str]] = {
        "error": errors,
        "acceptance": [name for name in ("acceptance",) if name in columns],
        "ess": [name for name in ("ess_bulk_min", "ess_per_second_min") if name in columns],
    }
    written = []
    for stem, panels in wanted.items():
        if not panels:
            continue
        for kind, data in _drawn(lines, key, panels).items():
            path = folder / f"{stem}.{kind}"
            write_bytes(path, data, force=True)
            written.append(path)
    return written


def left_out(rows: Sequence[Row], varied: Sequence[str]) -> list[str]:
    """Say which settings `draw_figures` leaves to the table."""
    key = across(rows, varied)
    if key is None:
        return []
    more = len(_settings(rows, varied, key)) - MOST_LINES
    found = [f"figures show the first settings; {more} more in the table alone"] if more > 0 else []
    without = sum(_at(row, key) is None for row in rows)
    if without:
        what = f"{without} of {len(rows)} runs have no number there, and are in the table alone"
        found.append(f"figures are against {key}; {what}")
    return found


def _settings(rows: Sequence[Row], varied: Sequence[str], key: str) -> dict[str, list[Row]]:
    """Return the rows that are drawn by the lines that they are on."""
    drawn = [row for row in rows if _at(row, key) is not None]
    keys = [name for name in ("name", *varied) if name != key]
    if key == "epsilon":  # what it was computed from does not tell lines apart
        for name in [name for name in keys if name.startswith("mechanism.")]:
            others = [key for key in keys if key != name]
            if all(_is_number(row.get(name)) for row in drawn) and _given(drawn, others, name):
                keys = others
    return _lines(drawn, keys)


def _given(rows: Sequence[Row], keys: Sequence[str], name: str) -> bool:
    """Whether epsilon as released and `keys` tell what `name` is."""
    found: dict[tuple[Any, ...], set[Any]] = {}
    for row in rows:
        found.setdefault((_at(row, "epsilon"), *(repr(row.get(key)) for key in keys)), set()).add(row[name])
    return all(len(values) == 1 for values in found.values())


def _at(row: Row, key: str) -> float | None:
    """Return where a row is on the axis; epsilon as released is a little beside what was asked for."""
    value = row.get(key)
    if not _is_number(value):
        return None
    return float(f"{value:.6g}") if key == "epsilon" else float(value)  # type: ignore[arg-type]


def _places(rows: Sequence[Row], key: str) -> list[float]:
    return sorted({at for row in rows if (at := _at(row, key)) is not None})


def _lines(rows: Sequence[Row], keys: Sequence[str]) -> dict[str, list[Row]]:
    """Return rows by what a line stands for: a setting of all that varies but the horizontal axis."""
    apart = telling(rows, keys)
    found: dict[str, list[Row]] = {}
    for row in rows:
        parts = [
            str(row.get(key)) if isinstance(row.get(key), str) else f"{key.rsplit('.', 1)[-1]} {row.get(key)}"
            for key in apart
        ]
        found.setdefault(", ".join(parts), []).append(row)
    return found


def _drawn(lines: Mapping[str, list[Row]], key: str, panels: Sequence[str]) -> dict[str, bytes]:
    width = max(4.6, 3.6 * len(panels))
    with drawings((width, 3.2 + 0.2 * (len(lines) > 4)), len(panels)) as (figure, axes):
        for place, (panel, name) in enumerate(zip(axes, panels, strict=True)):
            for number, (label, rows) in enumerate(list(lines.items())[:MOST_LINES]):
                _line(panel, rows, key, name, label if place == 0 else "", number)
            if name == "acceptance":
                _bound(panel, lines, key, place == 0)
            _settle(panel, [row for rows in lines.values() for row in rows], key, name)
        handles, labels = axes[0].get_legend_handles_labels()
        if any(labels):
            figure.legend(handles, labels, loc="outside upper left", ncols=min(4, max(1, len(labels))))
        if len(lines) > MOST_LINES:
            more = counted(len(lines) - MOST_LINES, "more setting")
            figure.supxlabel(f"and {more} in the table", fontsize="medium", x=0.99, ha="right")
        return {kind: picture(figure, kind) for kind in ("svg", "png")}


def _line(axes: Axes, rows: Sequence[Row], key: str, name: str, label: str, number: int) -> None:
    places = _places([row for row in rows if _is_number(row.get(name))], key)
    if not places:
        return
    groups = [
        np.array([row[name] for row in rows if _at(row, key) == at and _is_number(row.get(name))])
        for at in places
    ]
    bars = [group.std(ddof=1) / math.sqrt(group.size) if group.size > 1 else 0.0 for group in groups]
    axes.errorbar(
        places,
        [group.mean() for group in groups],
        bars if any(bars) else None,
        ms=4,
        lw=1.4,
        capsize=2,
        label=label,
        **line_style(number, marked=True),
    )


def _bound(axes: Axes, lines: Mapping[str, list[Row]], key: str, named: bool) -> None:
    """Draw the bound of the acceptance, where every run has one and it depends on the axis alone."""
    found: dict[float, set[float]] = {}
    for rows in lines.values():
        for row in rows:
            at = _at(row, key)
            if _is_number(row.get("acceptance_bound")) and at is not None:
                found.setdefault(at, set()).add(round(row["acceptance_bound"], 6))
    if not found or any(len(bounds) > 1 for bounds in found.values()):
        return
    places = sorted(found)
    heights = [next(iter(found[at])) for at in places]
    axes.plot(
        places, heights, color=INK, ls=(0, (5, 2)), lw=1.0, label="bound exp(-epsilon)" if named else ""
    )


def _settle(axes: Axes, rows: Sequence[Row], key: str, name: str) -> None:
    places = _places(rows, key)
    if places[0] > 0 and places[-1] / places[0] >= 8:
        axes.set_xscale("log")
    if len(places) <= 10:
        axes.set_xticks(places, [f"{at:g}" for at in places])
        axes.minorticks_off()
    axes.margins(y=0.08)
    axes.set_ylim(0.0, 1.03 if name == "acceptance" else None)
    axes.set_xlabel("epsilon" if key in (EPSILON, "epsilon") else key)
    axes.set_ylabel(_TITLES.get(name, name.replace("error[", "error of ").rstrip("]")))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
