"""What the first paper published beside what came out here, as Markdown: every number from the results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers import draw, truth
from papers.p1 import findings_beta, findings_gaussian, normal
from papers.p1.cells import Results, tag
from papers.p1.found import Number, Row, apart, in_list, modes, over, table_of

__all__ = ["text"]

_PAPERS = ("neal5", "neal5x5", "slice")


def text(results: Results, folder: Path, done: Sequence[str], agreed: str) -> str:
    """Return how the chains agree, and the sections whose runs are there, in part or all."""
    parts = [f"### How the chains agree\n\n{agreed}"]
    if {"fig1", "fig2", "fig9"} <= set(done):
        title = "### Section 4.1: three normals, Laplace noise, eps = 1, 2, 5, 10, 50"
        parts.append(f"{title}\n\n{table_of(_normal(results))}")
        if "fig10" in done:
            parts[-1] += _clustering(results)
    if any(name.startswith("beta/") for name in results):
        parts.append(findings_beta.betas(results))
    if {"fig4", "fig5", "fig13"} <= set(done):
        parts.append(findings_gaussian.gaussian_noise(results))
    if any(name.startswith("histogram/") for name in results):
        parts.append(findings_beta.histograms(results))
    if "fig6" in done:
        parts.append(findings_gaussian.waiting_times(results))
    defect = folder / "defect.json"
    if defect.exists():
        parts.append(_defect(json.loads(defect.read_text())))
    return "\n".join(parts)


def _normal(results: Results) -> list[Row]:
    def by_epsilon(n: int, sampler: str, number: Number, digits: int = 2) -> str:
        return over(results, [normal.name(n, e, sampler) for e in normal.EPSILONS], number, digits)

    def away(result: dict[str, Any]) -> float:
        return truth.distance(result, normal.DATA)

    def prior(result: dict[str, Any]) -> float:
        return float(result["hellinger"])

    kde = [results[normal.name(200, e, "posterior")] for e in normal.EPSILONS]
    return [
        (
            "all samplers give the same density",
            "H of a run's posterior mean from the settled one, given the same release, and the run's own "
            f"R-hat after {results[normal.name(200, 5.0, 'neal5')]['sweeps']:,} sweeps. "
            + ". ".join(_beside(results, sampler) for sampler in _PAPERS),
            "yes, as far as runs of that length tell",
        ),
        (
            "poor density at eps = 1, 2 even at n = 1000",
            f"H to the truth {by_epsilon(1000, 'posterior', away)}",
            "yes",
        ),
        (
            "reasonable at eps = 50 with n = 50",
            f"n = 50: H to the truth {by_epsilon(50, 'posterior', away)}; modes "
            f"{by_epsilon(50, 'posterior', modes, 0)}",
            "yes",
        ),
        (
            "distance to the prior goes to 0 with eps",
            "; ".join(f"n = {n}: {by_epsilon(n, 'posterior', prior)}" for n in normal.SIZES),
            "it falls, though not to 0 at eps = 1",
        ),
        (
            "acceptance falls with eps, far above exp(-eps)",
            f"n = 200: {_by_sampler(results, 'acceptance', 200, 2, _PAPERS)}. exp(-eps): "
            f"{in_list(np.exp(-np.array(normal.EPSILONS)), 3)}. A normal kernel reaches beyond the bounds, "
            "so that here it is no theorem",
            "yes",
        ),
        (
            "ESS of Neal 5 falls with eps, that of the slice rises; Neal 5 is ahead at small eps",
            "ESS of the number of clusters per 1,000 sweeps, n = 200: "
            + _by_sampler(results, "ess_per_1000", 200, 0, tuple(normal.SAMPLERS)),
            "yes",
        ),
        (
            "the slice is about ten times faster at n = 1000",
            "ms a sweep, measured on a busy machine: "
            + _by_sampler(results, "sweep_ms", 1000, 2, tuple(normal.SAMPLERS)),
            "no: Algorithm 1 here proposes a component in O(1), whatever their number",
        ),
        (
            "the deconvolution KDE does poorly",
            "n = 200, first data set: H to the truth "
            f"{in_list(truth.distance(r, normal.DATA, 'baseline') for r in kde)}, against "
            f"{in_list(map(away, kde))} of the posterior mean. This one has a correct bandwidth",
            "yes",
        ),
    ]


def _beside(results: Results, sampler: str) -> str:
    """Say how far the runs of a sampler end from the settled posteriors, and what their own R-hat is."""
    names = [(normal.name(n, e, sampler), normal.name(n, e, "posterior")) for n, e in _places()]
    far = [h for own, settled in names for h in apart(results, own, settled)]
    rhats = np.array([r["rhat"] for own, _ in names for r in draw.replicates(results, own)])
    return (
        f"{normal.SAMPLERS[sampler][0]}: median {np.median(far):.3f}, largest {max(far):.2f}; R-hat up to "
        f"{rhats.max():.2f}, below 1.01 in {(rhats < 1.01).mean():.0%}"
    )


def _places() -> list[tuple[int, float]]:
    return [(n, e) for n in normal.SIZES for e in normal.EPSILONS]


def _by_sampler(results: Results, key: str, n: int, digits: int, samplers: Sequence[str]) -> str:
    parts = []
    for sampler in samplers:
        each = (normal.values(results, n, e, sampler, key) for e in normal.EPSILONS)
        numbers = in_list((float(np.median(v)) if v else None for v in each), digits)
        parts.append(f"{normal.SAMPLERS[sampler][0]} {numbers}")
    return "; ".join(parts)


def _clustering(results: Results) -> str:
    lists = []
    for n in normal.SIZES:
        names = [normal.name(n, e, "labels") for e in normal.EPSILONS]
        lists.append(f"n = {n}: {over(results, names, lambda r: float(r['ari']['vi']))}")
    count = len(draw.replicates(results, normal.name(50, 1.0, "labels")))
    return (
        "\nFigure 10, adjusted Rand index of the point estimate (VI loss, Neal 8), medians over data sets "
        f"({count}): {'; '.join(lists)}. Published: clustering fails at small eps, and here.\n"
    )


def _defect(found: dict[str, Any]) -> str:
    words = "; ".join(
        f"{name}: modes at {in_list(result['modes'], 1)}, H to the truth {result['hellinger_to_truth']:.3f}"
        for name, result in found.items()
        if isinstance(result, dict)
    )
    where = f"n = {found['n']}, eps = {tag(found['epsilon'])}, {found['sweeps']:,} sweeps"
    return f"### The public code's defect, planted in Neal 5\n\n{where}: {words}.\n"
