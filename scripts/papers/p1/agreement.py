"""How the chains of each cell agree: all of them, a summary by section, and what did not settle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from papers.agreement import ENOUGH, RHAT
from papers.p1.cells import Cell, Results

__all__ = ["NOT_RUN", "SECTIONS", "rows", "text"]

SECTIONS = {"normal": "4.1", "beta": "4.2", "gaussian": "4.3", "histogram": "C", "waiting": "6"}
"""Sections by the first part of the names of their cells."""
NOT_RUN = "not run"
_NEARLY = 1.05  # an R-hat below which chains are not apart, but short
_CAUSES = (  # the first whose text is in the name of a cell
    ("histogram/g90", "modes of this prior are apart by many records"),
    ("histogram", "all records are tied to 28 draws"),
    ("rate", "a prior against narrow kernels, and narrow peaks of the likelihood: chains stay apart"),
    ("labels", "of Neal 8, for its allocations; the density is settled by the sampler over counts"),
    ("", "slow moves of single records"),
)

Rows = Sequence[Mapping[str, Any]]


def rows(results: Results, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return a row for each cell and data set: its chains, and how they agree.

    `settled` is empty where a sampler runs for its own sake, over chains of a given length; `sampler` is "not
    run" of cells that have no result.
    """
    return [_row(cell, results.get(cell.name)) for cell in sorted(cells, key=lambda cell: cell.name)]


def _row(cell: Cell, result: dict[str, Any] | None) -> dict[str, Any]:
    place = {"cell": cell.name.rsplit("/", 1)[0], "data_set": cell.replicate + 1}
    posterior = bool(cell.settle)
    if result is None:
        empty = {"chains": 0, "sweeps": 0, "rhat": 0.0, "slowest": "", "ess": 0}
        status = {"settled": "no" if posterior else "", "processor_seconds": 0.0}
        return {**place, "sampler": NOT_RUN, **empty, **status}
    return {
        **place,
        "sampler": result["sampler"],
        "chains": result["chains"],
        "sweeps": result["sweeps"],
        "rhat": round(result["rhat"], 6),
        "slowest": result["slowest"],
        "ess": round(result["ess"]),
        "settled": ("yes" if result["settled"] else "no") if posterior else "",
        "processor_seconds": round(result["cpu"], 1),
    }


def text(found: Rows) -> str:
    """Return the summary of rows by section, and the reasons of what did not settle, as Markdown."""
    there = [row for row in found if row["sampler"] != NOT_RUN]
    lines = [
        "| section | posteriors run | data sets a cell | settled | largest R-hat, smallest ESS of these | "
        "sweeps of each chain | processor minutes, samplers' runs too |",
        "|---|---|---|---|---|---|---|",
    ]
    for first, section in SECTIONS.items():
        every = [row for row in there if row["cell"].startswith(f"{first}/")]
        own = [row for row in every if row["settled"]]
        wanted = [row for row in found if row["cell"].startswith(f"{first}/") and row["settled"]]
        if not own:
            lines.append(f"| {section} | 0 of {len(wanted)} | | | | | |")
            continue
        settled = [row for row in own if row["settled"] == "yes"]
        worst = ("", "")
        if settled:
            worst = f"{max(row['rhat'] for row in settled):.5f}", f"{min(row['ess'] for row in settled):,}"
        numbers = [
            f"{len(own)} of {len(wanted)}",
            _span(list(Counter(row["cell"] for row in own).values()), "d"),
            f"{len(settled)}",
            ", ".join(worst),
            _span([row["sweeps"] for row in own], ","),
            f"{sum(row['processor_seconds'] for row in every) / 60:.0f}",
        ]
        lines.append(f"| {section} | {' | '.join(numbers)} |")
    spent = sum(row["processor_seconds"] for row in there)
    number = f"{len(there):,}" if len(there) == len(found) else f"{len(there):,} of {len(found):,}"
    head = (
        f"Settled: R-hat below {RHAT} and an effective sample size of {ENOUGH:.0f} or more of mean, sd, "
        "quartiles, density at three points, number of clusters and log-likelihood, over four chains. "
        f"{number} runs are done; they took {spent / 60:.0f} minutes of processor time; "
        "[p1_cells.csv](reproduction/p1_cells.csv) has the R-hat of each"
        f"{'' if len(there) == len(found) else ', and those not run'}.\n\n"
    )
    return head + "\n".join(lines) + "\n" + _reasons(there)


def _cause(cell: str, rhat: float) -> str:
    if rhat < _NEARLY and "labels" not in cell:
        return "nearly settled: longer chains would do, which the time for all runs does not allow"
    return next(words for part, words in _CAUSES if part in cell)


def _reasons(found: Rows) -> str:
    left = [row for row in found if row["settled"] == "no"]
    if not left:
        return "\nEvery posterior that was run settled.\n"
    lines = [
        "",
        "Those that did not settle:",
        "",
        "| cell (data sets) | R-hat | slowest | ESS | sweeps | why |",
        "|---|---|---|---|---|---|",
    ]
    for cell in dict.fromkeys(row["cell"] for row in left):
        own = [row for row in left if row["cell"] == cell]
        numbers = [
            f"{cell} ({', '.join(str(row['data_set']) for row in own)})",
            _span([row["rhat"] for row in own], ".4f"),
            max(own, key=lambda row: float(row["rhat"]))["slowest"],
            _span([row["ess"] for row in own], ","),
            _span([row["sweeps"] for row in own], ","),
            _cause(cell, max(float(row["rhat"]) for row in own)),
        ]
        lines.append(f"| {' | '.join(numbers)} |")
    return "\n".join(lines) + "\n"


def _span(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"
