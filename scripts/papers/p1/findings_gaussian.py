"""Sections 4.3 and 6, normals: what was published beside what came out here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from papers import draw, truth
from papers.p1 import gaussian, waiting
from papers.p1.cells import Results
from papers.p1.found import Number, apart, between, in_list, over, table_of

__all__ = ["gaussian_noise", "waiting_times"]

_PLACES = [(e, d) for d in gaussian.DELTAS for e in gaussian.EPSILONS]


def gaussian_noise(results: Results) -> str:
    """Return section 4.3."""

    def by_epsilon(noise: str, delta: float, sampler: str, number: Number) -> str:
        return over(results, [gaussian.name(noise, e, delta, sampler) for e in gaussian.EPSILONS], number)

    def away(result: dict[str, Any]) -> float:
        return truth.distance(result, gaussian.DATA)

    def far(first: str, second: str) -> list[float]:
        pairs = [[gaussian.name("classical", e, d, s) for s in (first, second)] for e, d in _PLACES]
        return [h for pair in pairs for h in apart(results, *pair)]

    def worst(sampler: str) -> float:
        names = [gaussian.name("classical", e, d, sampler) for e, d in _PLACES]
        return max(float(r["rhat"]) for name in names for r in draw.replicates(results, name))

    def by_delta(noise: str) -> str:
        return "; ".join(f"delta = {d:g} {by_epsilon(noise, d, 'truncated', away)}" for d in gaussian.DELTAS)

    table = [row for row in gaussian.table(results) if row["noise"] == "classical"]

    def medians(sampler: str, delta: float, key: str, digits: int) -> str:
        own = [r for r in table if r["sampler"] == sampler and r["delta"] == delta]
        each = ([r[key] for r in own if r["epsilon"] == e] for e in gaussian.EPSILONS)
        return in_list((float(np.median(values)) for values in each), digits)

    effective = "; ".join(
        f"delta = {d:g}: "
        + ", ".join(
            f"{label} {medians(sampler, d, 'ess_per_1000', 0)}"
            for sampler, label in (("neal3", "Neal 3"), ("neal2", "Neal 2"), ("neal5", "Neal 5"))
        )
        for d in gaussian.DELTAS
    )
    actual = "; ".join(f"{medians('truncated', d, 'actual_delta', 3)} for {d:g}" for d in gaussian.DELTAS)
    rows = [
        (
            "Neal 2, Neal 3 and Neal 5 agree",
            "H from the settled posterior under the same base, largest: Neal 2 "
            f"{max(far('neal2', 'truncated')):.3f}, Neal 3 {max(far('neal3', 'truncated')):.3f} (truncated "
            f"base), Neal 5 {max(far('neal5', 'plain')):.3f} (plain); their R-hat up to "
            f"{worst('neal2'):.2f}, "
            f"{worst('neal3'):.2f}, {worst('neal5'):.2f}. Between the two bases, which are different priors, "
            f"{between(far('truncated', 'plain'))}",
            "yes",
        ),
        (
            "poor at the smallest eps and delta, excellent at 50",
            f"H to the truth (truncated base): {by_delta('classical')}. Actual delta of that noise: {actual}",
            "yes, with noise that does not protect",
        ),
        (
            "(not in the paper) noise that does reach its delta",
            f"H to the truth: {by_delta('analytic')}",
            "the density at eps = 50 is not excellent",
        ),
        (
            "ESS: Neal 3 > Neal 2 > Neal 5, and only that of Neal 5 falls with eps",
            f"ESS of the number of clusters per 1,000 sweeps: {effective}",
            "Neal 5 is last and falls: yes; Neal 3 over Neal 2: no",
        ),
    ]
    title = "### Section 4.3: three normals, Gaussian noise, n = 250, eps = 5, 10, 25, 50"
    return f"{title}\n\n{table_of(rows)}"


def waiting_times(results: Results) -> str:
    """Return section 6."""
    table = waiting.table(results)
    noisy = [noise for noise in waiting.NOISES if noise != "none"]

    def of(key: str, noises: Sequence[str], digits: int = 2) -> str:
        parts = []
        for noise in noises:
            own = [r[key] for r in table if (r["mechanism"], r["sampler"]) == (noise, "posterior")]
            parts.append(f"{waiting.NOISES[noise][0]} {np.median(own):.{digits}f}")
        return ", ".join(parts)

    settled = {"neal5": "posterior", "slice": "posterior", "neal2": "truncated"}
    same = [
        h
        for noise in noisy
        for sampler in waiting.RUN[noise]
        if sampler in settled
        for h in apart(results, waiting.name(noise, sampler), waiting.name(noise, settled[sampler]))
    ]
    rows = [
        (
            "all samplers give the same density",
            f"H of the posterior means of the paper's samplers from the settled one: {between(same, 3)}",
            "yes",
        ),
        (
            "Gaussian and Laplace give nearly the posterior of the original data",
            f"H to the posterior without noise: {of('hellinger_to_no_noise', noisy)}; to the truth: "
            f"{of('hellinger_to_truth', tuple(waiting.NOISES))}",
            "in part; nearer with the exact Laplace scale, which is a third of the paper's",
        ),
        ("bands are wider", f"integrated width: {of('band_width', tuple(waiting.NOISES))}", "yes"),
        (
            "the deconvolution KDE overfits under Laplace",
            f"its H to the truth: {of('kde_hellinger_to_truth', noisy)}; its modes: "
            f"{of('kde_modes', noisy, 0)}",
            "no: it is smooth, with a correct bandwidth. The R package that the paper uses computes its "
            "Laplace bandwidth from the last value alone",
        ),
    ]
    title = "### Section 6: simulated waiting times, n = 100, rho = 17.8"
    return f"{title}\n\n{table_of(rows)}"
