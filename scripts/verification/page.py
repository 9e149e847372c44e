"""What came out, as a page and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scripts.verification.calibrate import DRAWS, p_values
from scripts.verification.cases import Case
from tests.oracles.ecdf import band

__all__ = ["LEVEL", "doubtful", "draw", "sections_of", "smallest", "write", "write_sections"]

LEVEL = 0.01
"""Family-wise level at which ranks are called not uniform."""
DOUBT = 0.01
"""Cases with a p-value so small are simulated again."""

Results = Mapping[str, Mapping[str, Any]]


def doubtful(results: Results) -> list[str]:
    """Return the names of cases that a second look is due to."""
    return [name for name, result in results.items() if min(p_values(result["ranks"]).values()) <= DOUBT]


def smallest(results: Results) -> tuple[float, int, int]:
    """Return the smallest p-value of all ranks, how many there are, and how many leave their 95% band."""
    found = [p for result in results.values() for p in p_values(result["ranks"]).values()]
    return min(found), len(found), sum(p <= 0.05 for p in found)


def sections_of(path: Path) -> dict[str, str]:
    """Return the sections of a page by their titles, headings of two signs; "" has what stands above."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    head, *parts = f"\n{text}".split("\n## ")
    titled = (part.partition("\n") for part in parts)
    return {"": head.strip("\n")} | {title: text.strip("\n") for title, _, text in titled}


def write_sections(path: Path, sections: Mapping[str, str]) -> None:
    """Write a page of such sections."""
    parts = [f"## {title}\n\n{text}" if title else text for title, text in sections.items()]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def write(
    path: Path,
    cases: Sequence[Case],
    results: Results,
    exact: Results,
    facts: Mapping[str, str],
    broken: Mapping[str, str] | None = None,
    again: Results | None = None,
) -> bool:
    """Write what a page says of these; return whether everything is as it should be.

    Its other sections stay as they are, where they are.

    Parameters
    ----------
    path : Path
    cases : sequence of Case
        In the order of the table.
    results : mapping
        Of each case, ``ranks``.
    exact : mapping
        Of each test, how it ended and what it compared.
    facts : mapping
        What is said of the run.
    broken : mapping, optional
        Cases that ended with an error, and what it said.
    again : mapping, optional
        Of the `doubtful` cases, ``ranks`` of another simulation.
    """
    least, many, outside = smallest(results)
    uniform = least > LEVEL / many
    second: list[str] = []
    if again:
        least_again, many_again, outside_again = smallest(again)
        uniform = uniform and least_again > LEVEL / many_again
        times = len(next(iter(next(iter(again.values()))["ranks"].values())))
        second = [
            "",
            f"Cases with a p-value of {DOUBT:g} or less ({len(again)}) were simulated again, with another",
            f"seed and {times} replicates: of {many_again} quantities {outside_again} leave their 95% band, "
            f"where {0.05 * many_again:.1f}",
            f"would be expected to; the smallest p-value is {least_again:.2g}, against "
            f"{LEVEL / many_again:.2g}.",
        ]
    failed = [name for name, test in exact.items() if test.get("outcome") == "failed"]
    verdict = "as uniform ranks would" if uniform else "**which is not as uniform ranks would**"
    found = "; ".join(f"{name} {value}" for name, value in facts.items())
    lines = [
        "Parameters and records are drawn from their joint law, the records released by the mechanism with",
        "seeded noise, and the chain of `dpmix fit` is run given the release: if mechanism, model and",
        f"sampler agree, the rank of a true value among {DRAWS} nearly independent draws is uniform (Talts",
        "et al. 2018). The p-value of a quantity is the level at which its ranks would just leave a",
        "simultaneous band for their distribution function (Säilynoja, Bürkner and Vehtari 2022). What",
        "approximates by design (replicated, abc, normal_approximation, bootstrap) is not in it.",
        "",
        f"Of {many} quantities {outside} leave their 95% band, where {0.05 * many:.1f} would be expected to;",
        f"the smallest p-value is {least:.2g}, against {LEVEL / many:.2g} for a family-wise level of "
        f"{LEVEL:.0%}: {verdict}.",
        *second,
        "",
        "![Ranks of every case](verification/ranks.png)",
        "",
        *_head(["model", "release", "sampler", "quantities", "outside 95%", "smallest p-value"], again),
    ]
    for case in cases:
        own = results[case.name]["ranks"]
        entries = [case.model, case.release, case.sampler, str(len(own)), *_worst(own)]
        if again:
            entries += _worst(again[case.name]["ranks"]) if case.name in again else ["", ""]
        lines.append(f"| {' | '.join(entries)} |")
    lines += [f"\n{name} ended with an error: {said}" for name, said in (broken or {}).items()]
    own_sections = {
        "": f"# Verification\n\nWhat `scripts/verify` found: {found}.",
        "Simulation-based calibration": "\n".join(lines),
        "Exact posteriors and joint laws": "\n".join(_exact(exact)),
    }
    write_sections(path, sections_of(path) | own_sections)
    return uniform and not failed and not broken


def _head(titles: list[str], again: Results | None) -> list[str]:
    """Return the first two lines of the table."""
    titles = [*titles, "again: outside 95%", "smallest"] if again else titles
    return [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]


def _worst(ranks: dict[str, list[int]]) -> list[str]:
    """Return how many quantities leave their band, and the smallest p-value, as entries of a table."""
    found = p_values(ranks)
    worst = min(found, key=lambda name: found[name])
    return [str(sum(p <= 0.05 for p in found.values())), f"{found[worst]:.2g} ({worst})"]


def _exact(exact: Results) -> list[str]:
    """Return the table of the suite's comparisons, a row for each test function."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for name, test in exact.items():
        if "gap" in test or "minus log10 p" in test or test.get("outcome") == "failed":
            groups.setdefault(name.split("[")[0].removeprefix("tests/"), []).append(test)
    failed = sum(test.get("outcome") == "failed" for tests in groups.values() for test in tests)
    lines = [
        "Long runs against posteriors that are enumerated or integrated numerically, with gaps in Monte",
        "Carlo standard errors, and joint-distribution tests (Geweke 2004) by exact restarts, with p-values;",
        "every combination that a test has is a case. What a test allows is in its file.",
        "",
        f"{sum(map(len, groups.values()))} cases, {failed} failed.",
        "",
        "| test | cases | failed | comparisons | largest gap | p-values | smallest |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, tests in sorted(groups.items()):
        gaps, logs = _of(tests, "gap"), _of(tests, "minus log10 p")
        lines.append(
            f"| `{name}` | {len(tests)} | {sum(t.get('outcome') == 'failed' for t in tests)} | "
            f"{sum(t.get('gaps', 0) for t in tests) or ''} | {f'{max(gaps):.1f}' if gaps else ''} | "
            f"{sum(t.get('minus log10 ps', 0) for t in tests) or ''} | "
            f"{f'{10 ** -max(logs):.2g}' if logs else ''} |"
        )
    return lines


def _of(tests: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    return [test[key] for test in tests if key in test]


def draw(path: Path, cases: Sequence[Case], results: Results) -> None:
    """Draw the ECDF of all ranks of each model over the simultaneous 95% band of one."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    points = DRAWS + 1
    models: dict[str, list[list[int]]] = {}
    for case in cases:
        title = case.model.split(",")[0] if not case.model.startswith("mixture") else case.model
        models.setdefault(title, []).extend(results[case.name]["ranks"].values())
    columns = 3
    rows = -(-len(models) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(9, 2.4 * rows), sharex=True, squeeze=False, layout="constrained"
    )
    z = np.arange(1, points) / points
    for axis, (title, ranks) in zip(axes.flat, models.items(), strict=False):
        n = len(ranks[0])
        _, low, high = band(0.95, n, points)
        axis.fill_between(z, low / n - z, high / n - z, color="#c6dbef", linewidth=0)
        axis.axhline(0.0, color="#6b7280", linewidth=0.6)
        for values in ranks:
            counts = np.cumsum(np.bincount(values, minlength=points))[:-1]
            axis.step(z, counts / n - z, where="mid", color="#b2182b", linewidth=0.5, alpha=0.35)
        axis.set_title(f"{title} ({len(ranks)} quantities)", fontsize=9)
        axis.tick_params(labelsize=8)
    for axis in axes.flat[len(models) :]:
        axis.set_visible(False)
    figure.supxlabel("rank of the true value, over 100", fontsize=9)
    figure.supylabel("ECDF less uniform", fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)
