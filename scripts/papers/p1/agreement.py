"""How the chains of each cell agree: all of them, a summary by section, and what did not settle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from papers.agreement import ENOUGH, RHAT
from papers.p1.cells import Results

__all__ = ["SECTIONS", "rows", "settling", "text"]

SECTIONS = {"normal": "4.1", "beta": "4.2", "gaussian": "4.3", "histogram": "C", "waiting": "6"}
"""Sections by the first part of the names of their cells."""
_CAUSES = (
    ("g90", "the prior's modes are apart by many records, and Neal 8 moves one at a time"),
    ("histogram", "the records move one at a time, and all of them are tied to 28 draws"),
    (
        "rate",
        "a prior against narrow kernels, and narrow peaks in the likelihood: chains stay in modes apart",
    ),
    ("labels", "Neal 8, for its allocations; the density is settled by the sampler over counts"),
    ("", "slow moves of single records"),
)


def settling(result: Mapping[str, Any]) -> bool:
    """Say whether a result is of a posterior that was to settle, rather than the run of a sampler."""
    return int(result["chains"]) > 2


def rows(results: Results) -> list[dict[str, Any]]:
    """Return a row for each cell and data set: its chains, and how they agree."""
    return [
        {
            "cell": result["name"].rsplit("/", 1)[0],
            "data_set": result["replicate"] + 1,
            "sampler": result["sampler"],
            "chains": result["chains"],
            "sweeps": result["sweeps"],
            "rhat": round(result["rhat"], 4),
            "slowest": result["slowest"],
            "ess": round(result["ess"]),
            "settled": ("yes" if result["settled"] else "no") if settling(result) else "",
            "processor_seconds": round(result["cpu"], 1),
        }
        for result in results.values()
    ]


def text(results: Results) -> str:
    """Return the summary by section, and the reasons of what did not settle, as Markdown."""
    lines = [
        "| section | posteriors | data sets a cell | settled | largest R-hat, smallest ESS of these | "
        "sweeps of each chain | processor minutes, samplers' runs too |",
        "|---|---|---|---|---|---|---|",
    ]
    for first, section in SECTIONS.items():
        every = [r for name, r in results.items() if name.startswith(first + "/")]
        own = [r for r in every if settling(r)]
        if not own:
            continue
        settled = [r for r in own if r["settled"]]
        worst = ("", "")
        if settled:
            worst = f"{max(r['rhat'] for r in settled):.4f}", f"{min(r['ess'] for r in settled):,.0f}"
        numbers = [
            f"{len(own)}",
            _span(list(Counter(r["name"].rsplit("/", 1)[0] for r in own).values()), "d"),
            f"{len(settled)}",
            ", ".join(worst),
            _span([r["sweeps"] for r in own], ","),
            f"{sum(r['cpu'] for r in every) / 60:.0f}",
        ]
        lines.append(f"| {section} | {' | '.join(numbers)} |")
    spent = sum(r["cpu"] for r in results.values())
    head = (
        f"Settled: R-hat below {RHAT} and an effective sample size of {ENOUGH:.0f} or more of mean, sd, "
        "quartiles, density at three points, number of clusters and log-likelihood, over four chains. All "
        f"{len(results):,} runs took {spent / 60:.0f} minutes of processor time; "
        "[p1_cells.csv](reproduction/p1_cells.csv) has the R-hat of each.\n\n"
    )
    return head + "\n".join(lines) + "\n" + _reasons(results)


def _reasons(results: Results) -> str:
    left = [r for r in results.values() if settling(r) and not r["settled"]]
    if not left:
        return "\nEvery posterior settled.\n"
    lines = [
        "",
        "Those that did not settle, by cause:",
        "",
        "| cells (data sets) | R-hat | slowest | ESS | sweeps | why |",
        "|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[dict[str, Any]]] = {}
    for r in left:
        groups.setdefault(r["name"].rsplit("/", 1)[0], []).append(r)
    for cell, own in groups.items():
        why = next(words for part, words in _CAUSES if part in cell)
        slow = max(own, key=lambda r: float(r["rhat"]))
        span = _span([r["rhat"] for r in own], ".3f")
        lines.append(
            f"| {cell} ({', '.join(str(r['replicate'] + 1) for r in own)}) | {span} | {slow['slowest']} | "
            f"{_span([r['ess'] for r in own], '.0f')} | {_span([r['sweeps'] for r in own], ',')} | {why} |"
        )
    return "\n".join(lines) + "\n"


def _span(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"
