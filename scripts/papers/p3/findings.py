"""The numbers that the findings of the paper on released posteriors are held against, as Markdown."""

from __future__ import annotations

from papers.p3 import figures
from papers.p3.cells import METHODS, Results, Size

__all__ = ["text"]

Row = tuple[str, str]

EXPECTED = {  # theorem, scale alone certified, Laplace of sensitivity 2 and 1, as derived independently
    650: (0.738, 0.30, 0.113, 0.058),
    1000: (0.433, 0.105, 0.091, 0.045),
    2000: (0.065, 0.032, 0.065, 0.033),
}


def text(results: Results, size: Size, done: list[str]) -> str:
    """Return a table of findings and the numbers that came out, for what was drawn."""
    rows: list[Row] = []
    if "fig1" in done:
        rows += _expected(results) + _crossings(results) + _ratios(results, size)
    if "fig2" in done:
        rows += _three(results, size)
    if "fig3" in done:
        rows += _priors(results)
    if "larger" in done:
        rows += _larger(results, size)
    head = (
        f"eps = 0.8, delta = 1e-8, {size.runs} runs of each method at each point; all counts and releases "
        "are simulated. Errors are expected Hellinger distances, by sums over all outputs or quadrature "
        "where that is possible, else means of runs.\n\n"
        "| what | numbers |\n|---|---|\n"
    )
    return head + "".join(f"| {what} | {numbers} |\n" for what, numbers in rows)


def _error(results: Results, of: str, n: int, method: str) -> float:
    result = results[figures.name(of, n, method)]
    return float(result["mean"] if result["exact"] is None else result["exact"])


def _expected(results: Results) -> list[Row]:
    rows = []
    for n, known in EXPECTED.items():
        methods = ("theorem", "scale", "laplace2", "laplace1", "certified", "geometric1")
        found = [_error(results, "two", n, method) for method in methods]
        apart = [results[figures.name("two", n, m)] for m in methods]
        far = max(abs(r["mean"] - r["exact"]) / max(r["se"], 1e-12) for r in apart)
        rows.append(
            (
                f"10% of {n}: theorem / scale certified / Laplace(2) / Laplace(1); certified; geometric(1)",
                f"{' / '.join(f'{e:.4f}' for e in found[:4])}; {found[4]:.4f}; {found[5]:.4f} (expected "
                f"{' / '.join(f'{e:g}' for e in known)}); means of runs within {far:.1f} standard errors",
            )
        )
    return rows


def _crossings(results: Results) -> list[Row]:
    rows = []
    for of, method, against in figures.PAIRS:
        found = results[figures.crossing_name(of, method, against)]
        ratios = {n: own / other for n, own, other in found["rows"]}
        last = max(ratios)
        first = "nowhere on the grid" if found["first"] is None else f"first at n = {found['first']:,}"
        beyond = [ratio for n, ratio in ratios.items() if n >= (found["first"] or 2000)]
        rows.append(
            (
                f"{figures.SHARES[of][0]:.0%} successes: {METHODS[method][0]} below {METHODS[against][0]}",
                f"{first}; ratio of errors from there (or 2000) on {min(beyond):.3f} to {max(beyond):.3f}, "
                f"{ratios[last]:.3f} at n = {last:,}",
            )
        )
    return rows


def _ratios(results: Results, size: Size) -> list[Row]:
    rows = []
    at = figures.points("two", size)
    certificates = [results[figures.name("two", n, "certified")]["mechanism"]["certificate"] for n in at]
    actual = [c["epsilon"] for c in certificates]
    rows.append(
        (
            "two categories, certified: actual delta at eps = 0.8; actual eps at delta = 1e-8",
            f"at most {max(c['delta'] for c in certificates):.2g}; {min(actual):.4f} to {max(actual):.4f}",
        )
    )
    theorem = {
        n: results[figures.name("two", n, "theorem")]["mechanism"]["certificate"] for n in at if n <= 2000
    }
    found = ", ".join(f"{n}: {c['epsilon']:.3f}" for n, c in theorem.items() if c)
    rows.append(("two categories, theorem: actual eps at delta = 1e-8", found))
    for method in figures.OF_TWO:
        errors = ", ".join(f"{_error(results, 'two', n, method):.4f}" for n in at)
        rows.append((f"10% successes, {METHODS[method][0]}: n = {', '.join(f'{n:,}' for n in at)}", errors))
    return rows


def _three(results: Results, size: Size) -> list[Row]:
    rows = []
    at = figures.points("three", size)
    for method in figures.OF_THREE:
        own = [n for n in at if method in figures.methods_at("three", n)]
        errors = ", ".join(f"{_error(results, 'three', n, method):.4f}" for n in own)
        rows.append(
            (f"three categories, {METHODS[method][0]}: n = {', '.join(f'{n:,}' for n in own)}", errors)
        )
    return rows


def _priors(results: Results) -> list[Row]:
    rows = []
    for method in figures.OF_THREE:
        found = [results[figures.prior_name(entry, method)] for entry in figures.PRIORS]
        means = ", ".join(f"{r['mean'] if r['exact'] is None else r['exact']:.4f}" for r in found)
        medians = ", ".join(f"{r['five'][2]:.3f}" for r in found)
        priors = ", ".join(map(str, figures.PRIORS))
        rows.append((f"(5, 5, 5), {METHODS[method][0]}: means; medians, a = {priors}", f"{means}; {medians}"))
    return rows


def _larger(results: Results, size: Size) -> list[Row]:
    rows = []
    for of, n in (("two", 1_000_000), ("three", 10_000), ("four", 2000), ("five", 300)):
        name = figures.name(of, n, "theorem")
        if name in results:
            own = results[name]
            rows.append(
                (
                    f"{of} categories, n = {n:,}, theorem: processor seconds to the first draw; "
                    "ms a draw after it",
                    f"{own['seconds_first']:.2f}; {1e3 * own['seconds_each']:.2f}",
                )
            )
    for of in ("four", "five"):
        at = figures.points(of, size)
        for method in figures.OF_MORE:
            errors = ", ".join(f"{_error(results, of, n, method):.4f}" for n in at)
            rows.append(
                (f"{of} categories, {METHODS[method][0]}: n = {', '.join(f'{n:,}' for n in at)}", errors)
            )
    return rows
