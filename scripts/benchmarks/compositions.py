"""Compositions given noisy mean logarithms: every method, and growing n; scripts/benchmark --compositions.

Every figure is of processor time in this one process, in which the functions were compiled before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.log_widths import exact_width
from dpmix.models.base import ParametricChain, ParametricModel
from dpmix.models.dirichlet import build
from dpmix.release import Release
from dpmix.spec import load_spec

__all__ = ["Cell", "cells", "measure", "run", "tables"]

Floats = NDArray[np.float64]
ALPHA = np.array([2.2, 3.3, 4.4, 5.5, 6.6])
THRESHOLD = 0.01
BURN = 500  # sweeps
MOST_MIXED = 10_000  # records beyond which sweeps are measured, and not how they mix
REPEATS = 5
METHODS: dict[str, dict[str, Any]] = {
    "DPMCMC, joint": {"kind": "data_augmentation"},
    "DPMCMC, plain": {"kind": "data_augmentation", "joint": False},
    "DPMCMC, soma": {"kind": "soma", "offers": 50},
    "DPreMCMC": {"kind": "replicated"},
    "DPABC": {"kind": "abc"},
    "DPBoots": {"kind": "bootstrap"},
    "DPapprox": {"kind": "normal_approximation"},
}
INDEPENDENT = ("DPABC", "DPBoots")
PUBLISHED = {"DPMCMC, plain": 1.0, "DPreMCMC": 1.0 / 6.2, "DPABC": 1.0 / 60.3}
"""Time over that of DPMCMC with n = 5000 (Guo, Barrientos and Pena, section 4.1)."""
SIZES, LARGE, EPSILONS = 5_000, (1_000, 10_000, 100_000, 1_000_000), (0.25, 1.5, 10.0)


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    method: str
    n: int
    epsilon: float


def cells() -> Iterator[Cell]:
    """Every cell, in the order of the tables."""
    for epsilon in EPSILONS:
        for method in METHODS:
            yield Cell(method, SIZES, epsilon)
    for n in LARGE:
        yield Cell("DPMCMC, joint", n, 1.5)


def _model(cell: Cell) -> ParametricModel:
    """Return the model of a release of simulated compositions."""
    rng, d = np.random.default_rng([1, cell.n]), len(ALPHA)
    means = np.log(np.maximum(rng.dirichlet(ALPHA, cell.n), THRESHOLD)).mean(axis=0)
    scale = exact_width(THRESHOLD, d) / cell.n / cell.epsilon
    values = (means + rng.laplace(0.0, scale, d)).reshape(-1, 1)
    mechanism = {
        "kind": "log_moments",
        "columns": [f"c{j + 1}" for j in range(d)],
        "components": d,
        "threshold": THRESHOLD,
        "parts": [cell.n],
        "scale": [scale],
    }
    release = Release(values, ("statistic",), mechanism, cell.epsilon, 0.0, None, cell.n, trust="global")
    spec = load_spec({"model": {"kind": "dirichlet"}, "sampler": METHODS[cell.method]})
    return build(spec, release)


def _timed(chain: ParametricChain, until: int) -> float:
    start = time.process_time()
    chain.proceed(until)
    return time.process_time() - start


def _ess(draws: Floats) -> float:
    """Return the least bulk effective sample size over the entries of alpha (chains, draws, d)."""
    from arviz_stats.base import array

    statistics: Any = array.array_stats
    return min(float(np.asarray(statistics.ess(draws[:, :, j])).item()) for j in range(draws.shape[2]))


def measure(cell: Cell, seconds: float) -> dict[str, Any]:
    """Measure two chains, one after the other, in about `seconds`."""
    start = time.process_time()
    model = _model(cell)
    prepared = time.process_time() - start
    independent = cell.method in INDEPENDENT
    skip, first = 0 if independent else BURN, model.make_chain(np.random.default_rng(7))
    first.keep(1, 0 if independent else 2**62)
    first.proceed(10)
    done, piece, each = 10, 1, 0.0
    while each < seconds / (8 * REPEATS) and piece < 4000:
        piece *= 2
        each = _timed(first, done + piece)
        done += piece
    pieces = [each]
    for _ in range(REPEATS - 1):
        pieces.append(_timed(first, done + piece))
        done += piece
    sweep = min(pieces) / piece
    result = {
        "method": cell.method,
        "n": cell.n,
        "epsilon": cell.epsilon,
        "prepared": prepared,
        "sweep": sweep,
    }
    if cell.n > MOST_MIXED:
        return result
    total = int(min(max(0.4 * seconds / sweep, 200), 50_000))
    draws, spent = [], 0.0
    for k in (0, 1):
        chain = model.make_chain(np.random.default_rng([7, k]))
        chain.keep(1, skip)
        chain.proceed(skip)
        spent += _timed(chain, skip + total)
        found = {name: values for name, (_, values) in chain.take().items()}
        draws.append(found["alpha"])
    ess = _ess(np.stack(draws))
    alpha = np.concatenate(draws)
    return result | {
        "draw": spent / (2 * total),
        "draws": 2 * total,
        "ess": ess,
        "ess_per_second": ess / spent,
        "off": float(np.max(np.abs(alpha.mean(axis=0) / ALPHA - 1.0))),
    }


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def tables(results: list[dict[str, Any]]) -> str:
    """Return a table of the methods, and one of growing n, in Markdown."""
    head = ["eps", "method", "us a draw", "over plain DPMCMC", "published", "ESS of alpha, a draw", "ESS/s"]
    head += ["1000 effective draws, s", "largest error of a mean of alpha, %"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    rows = [row for row in results if row["n"] == SIZES]
    plain = {row["epsilon"]: row["draw"] for row in rows if row["method"] == "DPMCMC, plain"}
    for row in rows:
        published = PUBLISHED.get(row["method"])
        ratio = row["draw"] / plain.get(row["epsilon"], np.nan)
        entries = [f"{row['epsilon']:g}", row["method"], _number(1e6 * row["draw"]), _number(ratio)]
        entries += ["–" if published is None else _number(published), _number(row["ess"] / row["draws"])]
        entries += [_number(row["ess_per_second"]), _number(row["prepared"] + 1000.0 / row["ess_per_second"])]
        lines.append("| " + " | ".join([*entries, _number(100.0 * row["off"])]) + " |")
    head = ["n", "ms a sweep", "ns a sweep, a record", "ESS/s"]
    lines += ["", "| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    for row in results:
        if row["n"] == SIZES:
            continue
        entries = [f"{row['n']:,}", _number(1e3 * row["sweep"]), _number(1e9 * row["sweep"] / row["n"])]
        lines.append("| " + " | ".join([*entries, _number(row.get("ess_per_second", np.nan))]) + " |")
    return "\n".join(lines) + "\n"


def run(seconds: float) -> list[dict[str, Any]]:
    """Measure all cells, after a first run of each method that compiles it."""
    for method in METHODS:
        measure(Cell(method, 100, 1.5), 0.01)
    results = []
    for cell in cells():
        result = measure(cell, seconds)
        results.append(result)
        ess = f", ESS/s {result['ess_per_second']:.3g}" if "ess" in result else ""
        print(f"{cell}: {1e6 * result['sweep']:.0f} us a sweep{ess}", file=sys.stderr, flush=True)
    return results
