"""What the first paper published beside what came out here, as Markdown: every number from the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers import draw, truth
from papers.p1 import agreement, beta, gaussian, histogram, normal, waiting
from papers.p1.cells import Results, Size, tag

__all__ = ["text"]

Row = tuple[str, str, str]
Number = Callable[[dict[str, Any]], float | None]
_HEAD = "| published | here | agrees |\n|---|---|---|\n"


def text(results: Results, size: Size, folder: Path, done: Sequence[str]) -> str:
    """Return the sections of those figures that are drawn."""
    parts = [f"### How the chains agree\n\n{agreement.text(results)}"]
    if {"fig1", "fig2", "fig9"} <= set(done):
        parts.append(
            _section("Section 4.1: three normals, Laplace noise, eps = 1, 2, 5, 10, 50", _normal(results))
        )
    if "fig10" in done:
        parts[-1] += _clustering(results)
    if "fig3" in done:
        title = (
            "Section 4.2: three betas, wavelet coefficients and Laplace, n = 250, eps = 2, 10, 50, 100, 250"
        )
        parts.append(f"### {title}\n\n{_beta(results)}")
    if {"fig4", "fig5", "fig13"} <= set(done):
        title = "Section 4.3: three normals, Gaussian noise, n = 250, eps = 5, 10, 25, 50"
        parts.append(_section(title, _gaussian(results)))
    if {"fig7", "fig8"} <= set(done):
        title = "Appendix C: smoothed histogram, n = 250, 28 draws, eps = 2, 10, 250"
        parts.append(f"### {title}\n\n{_histogram(results)}")
    if "fig6" in done:
        parts.append(_section("Section 6: simulated waiting times, n = 100, rho = 17.8", _waiting(results)))
    defect = folder / "defect.json"
    if defect.exists():
        parts.append(_defect(json.loads(defect.read_text())))
    return "\n".join(parts)


def _section(title: str, rows: Iterable[Row]) -> str:
    return f"### {title}\n\n{_HEAD}" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _list(values: Iterable[float | None], digits: int = 2) -> str:
    return ", ".join("–" if v is None else f"{v:.{digits}f}" for v in values)


def _middle(found: Iterable[dict[str, Any]], number: Number) -> float | None:
    """Return the median of a number over data sets."""
    known = [value for result in found if (value := number(result)) is not None]
    return float(np.median(known)) if known else None


def _between(values: Iterable[float], digits: int = 2) -> str:
    known = sorted(values)
    return f"{known[0]:.{digits}f} to {known[-1]:.{digits}f}"


def _apart(results: Results, first: str, second: str) -> list[float]:
    """Return the distances between the posterior means of two cells, one for each data set of both."""
    found = [
        (result, results.get(f"{second[:-1]}{result['replicate']}"))
        for result in draw.replicates(results, first)
    ]
    return [truth.apart(one, other) for one, other in found if other is not None]


def _modes(result: dict[str, Any]) -> float:
    return float(len(truth.modes(result)))


def _prior(result: dict[str, Any]) -> float:
    return float(result["hellinger"])


def _acceptance(result: dict[str, Any]) -> float | None:
    return None if result["acceptance"]["mean"] is None else float(result["acceptance"]["mean"])


def _normal(results: Results) -> list[Row]:
    def over(n: int, sampler: str, number: Number, digits: int = 2) -> str:
        cells = (draw.replicates(results, normal.name(n, e, sampler)) for e in normal.EPSILONS)
        return _list((_middle(found, number) for found in cells), digits)

    def away(result: dict[str, Any]) -> float:
        return truth.distance(result, normal.DATA)

    def each(key: str, n: int, digits: int) -> str:
        return "; ".join(
            f"{label} "
            + _list(
                (
                    float(np.median(v)) if (v := normal.values(results, n, e, sampler, key)) else None
                    for e in normal.EPSILONS
                ),
                digits,
            )
            for sampler, (label, _) in normal.SAMPLERS.items()
            if not (key == "acceptance" and sampler == "posterior")
        )

    places = [(n, e) for n in normal.SIZES for e in normal.EPSILONS]
    same = []
    for sampler in ("neal5", "neal5x5", "slice"):
        found = [
            h
            for n, e in places
            for h in _apart(results, normal.name(n, e, sampler), normal.name(n, e, "posterior"))
        ]
        runs = [r for n, e in places for r in draw.replicates(results, normal.name(n, e, sampler))]
        good = np.mean([r["rhat"] < 1.01 for r in runs])
        same.append(
            f"{normal.SAMPLERS[sampler][0]}: median {np.median(found):.3f}, largest {max(found):.2f}; R-hat up to "
            f"{max(r['rhat'] for r in runs):.2f}, below 1.01 in {good:.0%}"
        )
    kde = [
        truth.distance(results[normal.name(200, e, "posterior")], normal.DATA, "baseline")
        for e in normal.EPSILONS
    ]
    return [
        (
            "all samplers give the same density",
            "H of the posterior mean from the settled one, given the same release, and the sampler's own R-hat after "
            f"{results[normal.name(200, 5.0, 'neal5')]['sweeps']:,} sweeps. " + ". ".join(same),
            "yes, as far as chains of that length tell; the settled posterior needs none of them",
        ),
        (
            "poor density at eps = 1, 2 even at n = 1000",
            f"H to the truth {over(1000, 'posterior', away)}",
            "yes",
        ),
        (
            "reasonable at eps = 50 with n = 50",
            f"n = 50: H to the truth {over(50, 'posterior', away)}; modes {over(50, 'posterior', _modes, 0)}",
            "yes",
        ),
        (
            "distance to the prior goes to 0 with eps",
            "; ".join(f"n = {n}: {over(n, 'posterior', _prior)}" for n in normal.SIZES),
            "it falls, not to 0 at eps = 1",
        ),
        (
            "acceptance falls with eps, far above exp(-eps)",
            f"n = 200: {each('acceptance', 200, 2)}. exp(-eps): {_list(np.exp(-np.array(normal.EPSILONS)), 3)}. A "
            "normal kernel reaches beyond the bounds, so that here it is no theorem",
            "yes",
        ),
        (
            "ESS of Neal 5 falls with eps, that of the slice rises; Neal 5 is ahead at small eps",
            f"ESS of the number of clusters per 1,000 sweeps, n = 200: {each('ess_per_1000', 200, 0)}",
            "yes",
        ),
        (
            "the slice is about ten times faster at n = 1000",
            f"ms a sweep, measured on a busy machine: {each('sweep_ms', 1000, 2)}",
            "no: Algorithm 1 here proposes a component in O(1), whatever their number",
        ),
        (
            "the deconvolution KDE does poorly",
            f"n = 200, first data set: H to the truth {_list(kde)}, against "
            + _list(away(results[normal.name(200, e, "posterior")]) for e in normal.EPSILONS)
            + " of the posterior mean. This one has a correct bandwidth",
            "yes",
        ),
    ]


def _clustering(results: Results) -> str:
    lines = []
    for n in normal.SIZES:
        cells = [draw.replicates(results, normal.name(n, e, "labels")) for e in normal.EPSILONS]
        lines.append(f"n = {n}: {_list(_middle(c, lambda r: r['ari']['vi']) for c in cells)}")
    count = len(draw.replicates(results, normal.name(50, 1.0, "labels")))
    return (
        "\nFigure 10, adjusted Rand index of the point estimate (VI loss, Neal 8), medians over "
        f"{count} data set{'s' if count > 1 else ''}: {'; '.join(lines)}. Published: clustering fails at small eps; "
        "it does here.\n"
    )


def _beta(results: Results) -> str:
    def over(mechanism: str, sampler: str, number: Number, digits: int = 2) -> str:
        cells = (draw.replicates(results, beta.name(mechanism, e, sampler)) for e in beta.EPSILONS)
        return _list((_middle(found, number) for found in cells), digits)

    def away(result: dict[str, Any]) -> float:
        return truth.distance(result, beta.DATA)

    lines = [
        "| mechanism | prior | H to the truth | modes | mass within 0.05 of the ends (truth: 0.09) |",
        "|---|---|---|---|---|",
    ]
    for mechanism, label in beta.MECHANISMS.items():
        for sampler, prior in (("rate", "Gamma(2, rate 2)"), ("scale", "Gamma(2, scale 2)")):
            if beta.name(mechanism, beta.EPSILONS[0], sampler) not in results:
                continue
            lines.append(
                f"| {label} | {prior} | {over(mechanism, sampler, away)} | {over(mechanism, sampler, _modes, 0)} | "
                f"{over(mechanism, sampler, truth.edge_mass)} |"
            )
    accepted = "; ".join(
        f"{label} {over(mechanism, 'neal5', _acceptance, 3)}" for mechanism, label in beta.MECHANISMS.items()
    )
    scale = over("laplace", "scale", away)
    verdicts: list[Row] = [
        (
            "Laplace matches the truth from eps = 50",
            f"H {scale} under Gamma(2, scale 2); {over('laplace', 'rate', away)} under Gamma(2, rate 2)",
            "with the scale",
        ),
        (
            "wavelet, J = 2: mass at the ends, at best the middle mode",
            f"mass at the ends {over('paper2', 'scale', truth.edge_mass)} with the scale, at most "
            f"{over('paper2', 'scale', _modes, 0)} modes",
            "yes",
        ),
        (
            "J = 4 matches from eps = 50",
            f"H {over('paper4', 'scale', away)} with the scale",
            "with the scale, from 100",
        ),
        (
            "J = 6 fails everywhere, with low acceptance",
            f"H {over('paper6', 'scale', away)} with the scale; acceptance {over('paper6', 'neal5', _acceptance, 3)}",
            "acceptance yes; failure no",
        ),
        (
            "(not in the paper) the exact scale of the wavelet noise is 6.6 to 9.3 times smaller",
            f"first data set: H {over('exact4', 'scale', away)} at J = 4 with the scale",
            "",
        ),
    ]
    body = _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in verdicts)
    return "\n".join(lines) + f"\n\nAcceptance of Neal 5 (Figure 12): {accepted}.\n\n{body}"


def _gaussian(results: Results) -> list[Row]:
    def cells(noise: str, delta: float, sampler: str) -> list[list[dict[str, Any]]]:
        return [draw.replicates(results, gaussian.name(noise, e, delta, sampler)) for e in gaussian.EPSILONS]

    def over(noise: str, delta: float, sampler: str, number: Number, digits: int = 2) -> str:
        return _list((_middle(found, number) for found in cells(noise, delta, sampler)), digits)

    def away(result: dict[str, Any]) -> float:
        return truth.distance(result, gaussian.DATA)

    def far(first: str, second: str) -> list[float]:
        return [
            h
            for e in gaussian.EPSILONS
            for d in gaussian.DELTAS
            for h in _apart(
                results, gaussian.name("classical", e, d, first), gaussian.name("classical", e, d, second)
            )
        ]

    def worst(sampler: str) -> float:
        return max(
            float(r["rhat"]) for d in gaussian.DELTAS for c in cells("classical", d, sampler) for r in c
        )

    table = gaussian.table(results)

    def ess(sampler: str, delta: float) -> str:
        own = [r for r in table if (r["noise"], r["delta"], r["sampler"]) == ("classical", delta, sampler)]
        return _list(
            (
                float(np.median([r["ess_per_1000"] for r in own if r["epsilon"] == e]))
                for e in gaussian.EPSILONS
            ),
            0,
        )

    actual = {
        d: _list(
            (
                next(
                    r["actual_delta"]
                    for r in table
                    if (r["noise"], r["delta"], r["epsilon"]) == ("classical", d, e)
                )
                for e in gaussian.EPSILONS
            ),
            3,
        )
        for d in gaussian.DELTAS
    }
    return [
        (
            "Neal 2, Neal 3 and Neal 5 agree",
            f"H from the settled posterior of the same base, largest: Neal 2 {max(far('neal2', 'truncated')):.3f}, Neal 3 "
            f"{max(far('neal3', 'truncated')):.3f} (truncated base), Neal 5 {max(far('neal5', 'plain')):.3f} (plain); their "
            f"R-hat up to {worst('neal2'):.2f}, {worst('neal3'):.2f}, {worst('neal5'):.2f}. Between the two bases, which are "
            f"different priors, {_between(far('truncated', 'plain'))}",
            "yes",
        ),
        (
            "poor at the smallest eps and delta, excellent at 50",
            "H to the truth (settled, truncated base): "
            + "; ".join(f"delta = {d:g} {over('classical', d, 'truncated', away)}" for d in gaussian.DELTAS)
            + ". Actual delta of that noise: "
            + "; ".join(f"{actual[d]} for {d:g}" for d in gaussian.DELTAS),
            "yes, with noise that does not protect",
        ),
        (
            "(not in the paper) noise that does reach its delta",
            "; ".join(f"delta = {d:g} {over('analytic', d, 'truncated', away)}" for d in gaussian.DELTAS),
            "the density at eps = 50 is not excellent",
        ),
        (
            "ESS: Neal 3 > Neal 2 > Neal 5, and only that of Neal 5 falls with eps",
            "ESS of the number of clusters per 1,000 sweeps: "
            + "; ".join(
                f"delta = {d:g}: Neal 3 {ess('neal3', d)}, Neal 2 {ess('neal2', d)}, Neal 5 {ess('neal5', d)}"
                for d in gaussian.DELTAS
            ),
            "",
        ),
    ]


def _histogram(results: Results) -> str:
    def over(base: str, multiple: int, sampler: str, number: Number, digits: int = 2) -> str:
        cells = (draw.replicates(results, histogram.name(base, multiple, e, sampler)) for e in histogram.RUN)
        return _list((_middle(found, number) for found in cells), digits)

    def away(result: dict[str, Any]) -> float:
        return truth.distance(result, histogram.DATA)

    lines = [
        "| prior | L | weight of the uniform | H to the truth | modes | mass at the ends | acceptance of Neal 5 | H of "
        "Neal 5, slice from the longest chains |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for base, (shape, rate) in histogram.BASES.items():
        for multiple in histogram.MULTIPLES:
            own = [histogram.name(base, multiple, e, "posterior") for e in histogram.RUN]
            near = [
                _list(next(iter(_apart(results, name.replace("posterior", s), name)), None) for name in own)
                for s in ("neal5", "slice")
            ]
            lines.append(
                f"| Gamma({shape:g}, {rate:g}) | {multiple} | "
                f"{over(base, multiple, 'posterior', lambda r: r['mechanism']['weight'], 3)} | "
                f"{over(base, multiple, 'posterior', away)} | {over(base, multiple, 'posterior', _modes, 0)} | "
                f"{over(base, multiple, 'posterior', truth.edge_mass)} | "
                f"{over(base, multiple, 'neal5', _acceptance)} | {'; '.join(near)} |"
            )
    return "\n".join(lines) + "\n"


def _waiting(results: Results) -> list[Row]:
    table = waiting.table(results)

    def over(key: str, noise: str, samplers: Sequence[str] = waiting.SETTLED) -> str:
        own = [
            r[key]
            for r in table
            if r["mechanism"] == noise and r["sampler"] in samplers and r[key] is not None
        ]
        return f"{np.median(own):.3f}" if own else "–"

    noisy = [noise for noise in waiting.NOISES if noise != "none"]

    def all_of(key: str, noises: Sequence[str] = tuple(noisy)) -> str:
        return ", ".join(f"{waiting.NOISES[noise][0]} {over(key, noise)}" for noise in noises)

    same = [
        h
        for noise in noisy
        for sampler in waiting.RUN[noise]
        if sampler not in waiting.SETTLED
        for h in _apart(
            results,
            waiting.name(noise, sampler),
            waiting.name(noise, "truncated" if sampler == "neal2" else "posterior"),
        )
    ]
    return [
        (
            "all samplers give the same density",
            f"H of the posterior means of the paper's samplers from the settled one: {_between(same, 3)}",
            "yes",
        ),
        (
            "Gaussian and Laplace give nearly the posterior of the original data",
            f"H to the posterior without noise: {all_of('hellinger_to_no_noise')}; to the truth: "
            f"{all_of('hellinger_to_truth', tuple(waiting.NOISES))}. On these data, with a narrow first peak, noise of scale "
            "0.52 hides the second mode, which the records show",
            "in part; nearer with the exact Laplace scale",
        ),
        ("bands are wider", f"integrated width: {all_of('band_width', tuple(waiting.NOISES))}", "yes"),
        (
            "the deconvolution KDE overfits under Laplace",
            f"H to the truth of the KDE: {all_of('kde_hellinger_to_truth')}; its modes: {all_of('kde_modes')}",
            "no: it is smooth, with a correct bandwidth. The R package that the paper uses computes its Laplace bandwidth "
            "from the last value alone",
        ),
    ]


def _defect(found: dict[str, Any]) -> str:
    words = "; ".join(
        f"{name}: modes at {_list(result['modes'], 1)}, H to the truth {result['hellinger_to_truth']:.3f}"
        for name, result in found.items()
        if isinstance(result, dict)
    )
    return (
        f"### The public code's defect, planted in Neal 5\n\nn = {found['n']}, eps = {tag(found['epsilon'])}, "
        f"{found['sweeps']:,} sweeps: {words}.\n"
    )
