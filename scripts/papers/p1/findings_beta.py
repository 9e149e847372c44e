"""Section 4.2 and Appendix C, three betas: what was published beside what came out here."""

from __future__ import annotations

from typing import Any

from papers import truth
from papers.p1 import beta, histogram
from papers.p1.cells import Results
from papers.p1.found import Number, Row, acceptance, apart, in_list, modes, over, table_of

__all__ = ["betas", "histograms"]

_PRIORS = (("rate", "Gamma(2, rate 2)"), ("scale", "Gamma(2, scale 2)"))


def _away(result: dict[str, Any]) -> float:
    return truth.distance(result, beta.DATA)


def betas(results: Results) -> str:
    """Return section 4.2."""

    def by_epsilon(mechanism: str, sampler: str, number: Number, digits: int = 2) -> str:
        return over(results, [beta.name(mechanism, e, sampler) for e in beta.EPSILONS], number, digits)

    lines = [
        "| mechanism | prior | H to the truth | modes | mass within 0.05 of the ends (truth: 0.09) |",
        "|---|---|---|---|---|",
    ]
    for mechanism, label in beta.MECHANISMS.items():
        for sampler, prior in _PRIORS:
            if not any(beta.name(mechanism, e, sampler) in results for e in beta.EPSILONS):
                continue
            numbers = [
                by_epsilon(mechanism, sampler, _away),
                by_epsilon(mechanism, sampler, modes, 0),
                by_epsilon(mechanism, sampler, truth.edge_mass),
            ]
            lines.append(f"| {label} | {prior} | {' | '.join(numbers)} |")
    accepted = "; ".join(
        f"{label} {by_epsilon(mechanism, 'neal5', acceptance, 3)}"
        for mechanism, label in beta.MECHANISMS.items()
        if any(beta.name(mechanism, e, "neal5") in results for e in beta.EPSILONS)
    )
    verdicts: list[Row] = [
        (
            "Laplace matches the truth from eps = 50",
            f"H {by_epsilon('laplace', 'scale', _away)} under Gamma(2, scale 2), "
            f"{by_epsilon('laplace', 'rate', _away)} under Gamma(2, rate 2)",
            "with the scale",
        ),
        (
            "wavelet, J = 2: mass at the ends, at best the middle mode",
            f"with the scale: mass at the ends {by_epsilon('paper2', 'scale', truth.edge_mass)}, modes "
            f"{by_epsilon('paper2', 'scale', modes, 0)}",
            "yes",
        ),
        (
            "J = 4 matches from eps = 50",
            f"H {by_epsilon('paper4', 'scale', _away)} with the scale",
            "with the scale, from 100",
        ),
        (
            "J = 6 fails everywhere, with low acceptance",
            f"H {by_epsilon('paper6', 'scale', _away)} with the scale; acceptance "
            f"{by_epsilon('paper6', 'neal5', acceptance, 3)}",
            "acceptance yes; failure no",
        ),
        (
            "(not in the paper) the exact scale of the wavelet noise is 6.6 to 9.3 times smaller",
            f"J = 4, first data set: H {by_epsilon('exact4', 'scale', _away)} with the scale",
            "",
        ),
    ]
    title = (
        "### Section 4.2: three betas, wavelet coefficients and Laplace, n = 250, eps = 2, 10, 50, 100, 250"
    )
    table = "\n".join(lines)
    return f"{title}\n\n{table}\n\nAcceptance of Neal 5 (Figure 12): {accepted}.\n\n{table_of(verdicts)}"


def histograms(results: Results) -> str:
    """Return Appendix C."""
    lines = [
        "| prior | L | weight of the uniform | H to the truth | modes | mass at the ends "
        "| acceptance of Neal 5 | H of Neal 5; slice from the longest chains |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for base, (shape, rate) in histogram.BASES.items():
        for multiple in histogram.MULTIPLES:
            settled, marginal, conditional = (
                [histogram.name(base, multiple, e, sampler) for e in histogram.RUN]
                for sampler in ("posterior", "neal5", "slice")
            )
            near = [
                in_list(next(iter(apart(results, *pair)), None) for pair in zip(run, settled, strict=True))
                for run in (marginal, conditional)
            ]
            numbers = [
                over(results, settled, lambda r: float(r["mechanism"]["weight"]), 3),
                over(results, settled, _away),
                over(results, settled, modes, 0),
                over(results, settled, truth.edge_mass),
                over(results, marginal, acceptance),
                "; ".join(near),
            ]
            shown = ["" if set(number) <= set("–, ;") else number for number in numbers]
            lines.append(f"| Gamma({shape:g}, {rate:g}) | {multiple} | {' | '.join(shown)} |")
    title = "### Appendix C: smoothed histogram, n = 250, 28 draws, eps = 2, 10, 250"
    return f"{title}\n\n" + "\n".join(lines) + "\n"
