"""How numbers of the first paper's cells are put together: medians over data sets, in lists by epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from papers import draw, truth
from papers.p1.cells import Results

__all__ = [
    "Number",
    "Row",
    "acceptance",
    "apart",
    "between",
    "in_list",
    "modes",
    "over",
    "table_of",
]

_MISSING = "–"
Row = tuple[str, str, str]
Number = Callable[[dict[str, Any]], float | None]


def table_of(rows: Iterable[Row]) -> str:
    """Return what is published, what came out here, and whether these agree, as Markdown.

    Nothing is said of rows whose runs are not all there.
    """
    lines = "".join(
        f"| {published} | {here} | {'' if _MISSING in here else agrees} |\n"
        for published, here, agrees in rows
    )
    return f"| published | here | agrees |\n|---|---|---|\n{lines}"


def in_list(values: Iterable[float | None], digits: int = 2) -> str:
    """Return numbers with commas between."""
    return ", ".join(_MISSING if v is None else f"{v:z.{digits}f}" for v in values)


def between(values: Iterable[float], digits: int = 2) -> str:
    """Return the smallest and the largest."""
    known = sorted(values)
    return f"{known[0]:.{digits}f} to {known[-1]:.{digits}f}"


def _middle(found: Iterable[dict[str, Any]], number: Number) -> float | None:
    """Return the median of a number over data sets."""
    known = [value for result in found if (value := number(result)) is not None]
    return float(np.median(known)) if known else None


def over(results: Results, names: Sequence[str], number: Number, digits: int = 2) -> str:
    """Return the medians of a number for some cells, each named by its first data set."""
    return in_list((_middle(draw.replicates(results, name), number) for name in names), digits)


def apart(results: Results, first: str, second: str) -> list[float]:
    """Return the distances between the posterior means of two cells, one for each data set of both."""
    pairs = [
        (one, results.get(f"{second[:-1]}{one['replicate']}")) for one in draw.replicates(results, first)
    ]
    return [truth.apart(one, other) for one, other in pairs if other is not None]


def modes(result: dict[str, Any]) -> float:
    """Return the number of modes of the posterior mean."""
    return float(len(truth.modes(result)))


def acceptance(result: dict[str, Any]) -> float | None:
    """Return the mean acceptance rate, None where nothing is proposed."""
    return None if result["acceptance"]["mean"] is None else float(result["acceptance"]["mean"])
