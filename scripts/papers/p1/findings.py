"""The numbers that the published findings are held against, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from papers import truth
from papers.p1 import beta, defect, gaussian, histogram, normal, waiting
from papers.p1.cells import Results, Size, tag

__all__ = ["text"]

Row = tuple[str, str]


def text(results: Results, size: Size, folder: Path) -> str:
    """Return a table of findings and the numbers that came out."""
    rows = [
        *_normal(results),
        *_beta(results),
        *_gaussian(results),
        *_histogram(results),
        *_waiting(results),
        *_defect(folder, size),
    ]
    head = (
        f"Chains of {size.sweeps:,} sweeps (half burn-in), {size.chains} each; Figures 2 and 10 over "
        f"{size.replicates} and {max(size.replicates, 3)} replicates. H is the Hellinger distance. "
        "Data and noise are simulated and seeded: nothing here is private.\n\n| what | numbers |\n|---|---|\n"
    )
    return head + "".join(f"| {what} | {numbers} |\n" for what, numbers in rows)


def _list(values: Iterable[float | None], digits: int = 2) -> str:
    return ", ".join("–" if v is None else f"{v:.{digits}f}" for v in values)


def _apart(results: Results, names: Sequence[str]) -> float:
    """Return the largest Hellinger distance between the posterior means of some cells."""
    densities = [results[name]["density"] for name in names]
    x = np.array(densities[0]["grid"])
    overlaps = [
        np.trapezoid(np.sqrt(np.array(p["mean"]) * np.array(q["mean"])), x)
        / np.sqrt(np.trapezoid(p["mean"], x) * np.trapezoid(q["mean"], x))
        for p, q in combinations(densities, 2)
    ]
    return float(np.sqrt(max(0.0, 1.0 - min(overlaps))))


def _medians(results: Results, n: int, sampler: str, key: str, digits: int = 2) -> str:
    found = [normal.values(results, n, e, sampler, key) for e in normal.EPSILONS]
    return _list((float(np.median(v)) if v else None for v in found), digits)


def _normal(results: Results) -> list[Row]:
    apart = {
        (n, e): _apart(results, [normal.name(n, e, s) for s in normal.SAMPLERS])
        for n in normal.SIZES
        for e in normal.EPSILONS
    }
    worst = max(apart, key=lambda key: apart[key])
    rows = [
        (
            "4.1, largest H between two samplers' posterior means, 20 cells",
            f"{apart[worst]:.3f} (n = {worst[0]}, eps = {tag(worst[1])}); "
            f"median {np.median(list(apart.values())):.3f}",
        )
    ]
    for n in normal.SIZES:
        modes = [len(truth.modes(results[normal.name(n, e, "neal8")])) for e in normal.EPSILONS]
        rows.append(
            (
                f"4.1, n = {n}, eps = 1, 2, 5, 10, 50: H to the truth; modes (Neal 8)",
                f"{_list(normal.distances(results, n, 'neal8'))}; {', '.join(map(str, modes))}",
            )
        )
    kde = [
        truth.distance(results[normal.name(200, e, "neal5")], normal.DATA, "baseline")
        for e in normal.EPSILONS
    ]
    rows.append(("4.1, n = 200: H to the truth of the deconvolution KDE", _list(kde)))
    for n in (200, 1000):
        prior = [results[normal.name(n, e, "neal8")]["hellinger"] for e in normal.EPSILONS]
        rows.append((f"4.1, n = {n}: H to the prior", _list(prior)))
        for key, what, digits in (
            ("acceptance", "acceptance", 2),
            ("ess_per_1000", "ESS of clusters per 1000 sweeps", 1),
            ("sweep_ms", "ms a sweep", 3),
        ):
            for sampler, (label, _) in normal.SAMPLERS.items():
                rows.append((f"4.1, n = {n}: {what}, {label}", _medians(results, n, sampler, key, digits)))
    for n in normal.SIZES:
        means = []
        for e in normal.EPSILONS:
            prefix = normal.name(n, e, "slice")[:-1]
            labels = [r["ari"]["vi"] for name, r in results.items() if name.startswith(prefix) and r["ari"]]
            means.append(float(np.median(labels)))
        rows.append((f"4.1, n = {n}: median ARI of the point estimate", _list(means)))
    return rows


def _beta(results: Results) -> list[Row]:
    rows = []
    for mechanism, label in beta.MECHANISMS.items():
        for sampler in ("neal5", "scale"):
            if beta.name(mechanism, 2.0, sampler) not in results:
                continue
            found = [results[beta.name(mechanism, e, sampler)] for e in beta.EPSILONS]
            modes = ["/".join(f"{m:.2f}" for m in truth.modes(r)) or "none" for r in found]
            what = f"4.2, {label}, {beta.SAMPLERS[sampler][0]}, eps = 2, 10, 50, 100, 250"
            away, edges = (_list(f(r) for r in found) for f in (_to_truth, truth.edge_mass))
            rows += [
                (f"{what}: H to the truth; mass within 0.05 of the ends", f"{away}; {edges}"),
                (
                    f"{what}: modes; acceptance",
                    "; ".join((", ".join(modes), _list((r["acceptance"]["mean"] for r in found), 3))),
                ),
            ]
        beside = [e for e in beta.EPSILONS if beta.name(mechanism, e, "neal8") in results]
        if beside:
            exact = [results[beta.name(mechanism, e, "neal8")] for e in beside]
            apart = [
                _apart(results, [beta.name(mechanism, e, s) for s in ("neal5", "neal8")]) for e in beside
            ]
            rows.append(
                (
                    f"4.2, {label}, eps = {', '.join(map(tag, beside))}: "
                    "H to the truth of Neal 8; H between both",
                    f"{_list(map(_to_truth, exact))}; {_list(apart)}",
                )
            )
    return rows


def _to_truth(result: dict[str, Any]) -> float:
    return truth.distance(result, beta.DATA)


def _gaussian(results: Results) -> list[Row]:
    table = gaussian.table(results)
    rows = []
    for samplers, what in (
        (("neal2", "neal3", "neal8t"), "truncated base"),
        (("neal5", "neal8"), "plain base"),
    ):
        apart = [
            _apart(results, [gaussian.name("classical", e, d, s) for s in samplers])
            for e in gaussian.EPSILONS
            for d in gaussian.DELTAS
        ]
        rows.append((f"4.3, classical, largest H of {', '.join(samplers)} ({what})", f"{max(apart):.3f}"))
    across = [
        _apart(results, [gaussian.name("classical", e, d, s) for s in ("neal8t", "neal8")])
        for e in gaussian.EPSILONS
        for d in gaussian.DELTAS
    ]
    rows.append(
        (
            "4.3, classical, H between the two bases",
            f"{min(across):.3f} to {max(across):.3f}",
        )
    )
    for noise in gaussian.NOISES:
        for delta in gaussian.DELTAS:
            chosen = [r for r in table if (r["noise"], r["delta"]) == (noise, delta)]
            if not chosen:
                continue
            first = [r for r in chosen if r["sampler"] == "neal3"]
            rows.append(
                (
                    f"4.3, {noise}, delta = {tag(delta)}, eps = 5, 10, 25, 50: "
                    "sd; actual delta; H to the truth (Neal 3)",
                    f"{_list(r['scale'] for r in first)}; {_list((r['actual_delta'] for r in first), 3)}; "
                    f"{_list(r['hellinger_to_truth'] for r in first)}",
                )
            )
            for sampler in gaussian.SAMPLERS:
                mine = [r for r in chosen if r["sampler"] == sampler]
                rows.append(
                    (
                        f"4.3, {noise}, delta = {tag(delta)}: ESS per 1000 sweeps; mean clusters, {sampler}",
                        f"{_list((r['ess_per_1000'] for r in mine), 0)}; "
                        f"{_list((r['clusters_mean'] for r in mine), 1)}",
                    )
                )
    return rows


def _histogram(results: Results) -> list[Row]:
    table, rows = histogram.table(results), []
    for base in dict.fromkeys(row["base"] for row in table):
        for multiple in histogram.MULTIPLES:
            for sampler in ("neal5", "slice"):
                mine = [r for r in table if (r["base"], r["L"], r["sampler"]) == (base, multiple, sampler)]
                if sampler == "neal5":
                    rows.append(
                        (
                            f"C, base {base}, L = {multiple}, "
                            f"eps = {', '.join(tag(r['epsilon']) for r in mine)}: weight",
                            _list(r["weight"] for r in mine),
                        )
                    )
                rows.append(
                    (
                        f"C, base {base}, L = {multiple}, {sampler}: "
                        "H to the truth; mass at the ends; acceptance; ESS",
                        f"{_list(r['hellinger_to_truth'] for r in mine)}; "
                        f"{_list(r['edge_mass'] for r in mine)}; "
                        f"{_list(r['acceptance'] for r in mine)}; {_list((r['ess'] for r in mine), 0)}",
                    )
                )
    return rows


def _waiting(results: Results) -> list[Row]:
    return [
        (
            f"6, {row['mechanism']}, {row['sampler']}: "
            "scale; H to the truth, to no noise; width of the band; modes",
            f"{row['scale']:.3f}; {row['hellinger_to_truth']:.3f}, {row['hellinger_to_no_noise']:.3f}; "
            f"{row['band_width']:.2f}; {row['modes']}" + _baseline(row),
        )
        for row in waiting.table(results)
    ]


def _baseline(row: dict[str, Any]) -> str:
    if row["kde_modes"] is None:
        return ""
    found = f"{row['kde_modes']} modes, bandwidth {row['kde_bandwidth']:.3f}"
    return f"; KDE: H {row['kde_hellinger_to_truth']:.3f}, {found}"


def _defect(folder: Path, size: Size) -> list[Row]:
    found = defect.compute(folder, size)
    return [
        (
            f"defect, n = 1000, eps = 5, {name}: modes; H to the truth",
            f"{_list(result['modes'], 1)}; {result['hellinger_to_truth']:.3f}",
        )
        for name, result in found.items()
        if isinstance(result, dict)
    ]
