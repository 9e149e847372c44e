"""The sampler on counts beside `neal8`: effective draws a second of each quantity, and how many times more.

The data of Beraha, Favaro and Rao (2024), section 4.1; two chains of each that start apart, both samplers in
one process one after the other. Seconds are of processor time after burn-in, every sweep saved.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.cells import ALGORITHMS, BASE, WIDTH
from benchmarks.table import figure, span, table
from dpmix.data.simulations import three_gaussians
from dpmix.kernels import NormalNIG
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.models.counts_mixture.model import CountsMixture
from dpmix.numerics.mixing import PitmanYor
from dpmix.release.tallies import default_width, edges_of, tally
from dpmix.run.model_protocols import Arrays
from dpmix.samplers import Algorithm, Chain
from dpmix.summary.diagnostics import describe

__all__ = ["CASES", "FEW", "TARGET", "versus", "versus_table"]

Floats = NDArray[np.float64]
Result = dict[str, Any]

CASES = ((1_000, 5.0), (1_000, 50.0), (5_000, 5.0), (5_000, 50.0))
FEW = ((200, 5.0),)
TARGET = 10.0  # times as many effective draws a second
_POINTS = (-7.5, -5.0, 0.0, 2.5, 5.0)
_LEVELS = (0.25, 0.5, 0.75)
_BURN = 0.3  # of the seconds of a chain
_PIECE = 50
_GRID = np.linspace(-16.0, 16.0, 161)


def versus(
    seconds: float, cases: tuple[tuple[int, float], ...] = CASES, work: Path | None = None
) -> list[Result]:
    """Measure both samplers in each case, two chains of `seconds` each.

    work: file of cases, one a line, which are not measured again where they were of as many seconds.
    """
    results = []
    lines = work.read_text("utf-8").splitlines() if work is not None and work.exists() else []
    kept = {(row["n"], row["epsilon"], row["seconds"]): row for row in map(json.loads, lines)}
    for n, epsilon in cases:
        if (n, epsilon, seconds) in kept:
            results.append(kept[n, epsilon, seconds])
            continue
        scale = WIDTH / epsilon
        z = three_gaussians(n, np.random.default_rng(1))[:, 0].copy()
        z += np.random.default_rng(2).laplace(0.0, scale, n)
        parts = LaplaceNoise(scale), NormalNIG(*BASE), PitmanYor(1.0, 0.0)
        width = default_width("laplace", scale, -10.0, 10.0)
        edges = edges_of("laplace", scale, -10.0, 10.0, width, bounded=False)
        model = CountsMixture(tally(z, edges, width), *parts)
        row: Result = {"n": n, "epsilon": epsilon, "seconds": seconds}
        for sampler in ("neal8", "counts"):
            chains = []
            for seed in (11, 12):
                rng = np.random.default_rng(seed)
                plain = Algorithm(**ALGORITHMS["neal8"])
                chain = model.make_chain(rng) if sampler == "counts" else Chain(z, *parts, plain, rng)
                chains.append(_run(chain, seconds))
            row[sampler] = _told(chains)
        row["times"] = {
            name: row["counts"]["ess"][name] / row["neal8"]["ess"][name] for name in row["neal8"]["ess"]
        }
        results.append(row)
        if work is not None:
            with work.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        worst = min(row["times"], key=lambda name: row["times"][name])
        print(
            f"versus: n = {n:,}, eps = {epsilon:g}: {row['times'][worst]:.2g} times ({worst}) to "
            f"{max(row['times'].values()):.3g} times",
            file=sys.stderr,
            flush=True,
        )
    return results


def _run(chain: Any, seconds: float) -> tuple[float, int, dict[str, Floats]]:
    """Return seconds and number of saved sweeps, and the draws of each quantity."""
    adapting = 300 if seconds > 1.0 else 30
    chain.keep(1, adapting)
    chain.proceed(adapting)
    start, done = time.process_time(), adapting
    while time.process_time() - start < _BURN * seconds:
        chain.proceed(done := done + _PIECE)
        chain.take()
    start, saved, spent = time.process_time(), 0, 0.0
    kept: list[dict[str, Floats]] = []
    while spent < (1.0 - _BURN) * seconds:
        before = time.process_time()
        chain.proceed(done := done + _PIECE)
        drawn = chain.take()
        spent += time.process_time() - before
        saved += _PIECE
        kept.append(_series(drawn))
    return spent, saved, {name: np.concatenate([part[name] for part in kept]) for name in kept[0]}


def _series(drawn: Arrays) -> dict[str, Floats]:
    """Return each quantity of saved draws, of the mass that components hold."""
    values = {name: found for name, (_, found) in drawn.items()}
    first, weights, (mean, variance) = values["first"], values["weights"], values["theta"]
    starts, sd = first[:-1], np.sqrt(variance)
    mass = np.add.reduceat(weights, starts)
    found = {
        "clusters": np.asarray(values["n_clusters"], dtype=np.float64),
        "log-likelihood": np.asarray(values["log_likelihood"], dtype=np.float64),
        "mean": np.add.reduceat(weights * mean, starts) / mass,
    }
    for point in _POINTS:
        terms = np.exp(-0.5 * ((point - mean) / sd) ** 2) / sd
        found[f"density at {point:g}"] = np.add.reduceat(weights * terms, starts) / mass
    below = np.add.reduceat(weights * ndtr((_GRID[:, None] - mean) / sd), starts, axis=1) / mass
    for level in _LEVELS:
        found[f"quantile {level:g}"] = np.array([np.interp(level, b, _GRID) for b in below.T])
    return found


def _told(chains: list[tuple[float, int, dict[str, Floats]]]) -> Result:
    """Return milliseconds a sweep, effective draws a second, and the largest R-hat."""
    spent, saved = sum(c[0] for c in chains), sum(c[1] for c in chains)
    length = min(c[1] for c in chains)
    ess, rhat = {}, 0.0
    for name in chains[0][2]:
        told = describe(np.stack([c[2][name][:length] for c in chains]), 0.95)
        share = length * len(chains) / saved
        ess[name] = max(told.ess_bulk or 1.0, 1.0) / (spent * share)
        rhat = max(rhat, told.rhat or 0.0)
    return {"ms": 1e3 * spent / saved, "ess": ess, "rhat": rhat}


def versus_table(results: list[Result]) -> list[str]:
    """Return the lines of the table: times as many by quantity, and whether all reach the target."""
    groups = {
        "clusters": ["clusters"],
        "log-likelihood": ["log-likelihood"],
        "density": [f"density at {point:g}" for point in _POINTS],
        "quartiles": [f"quantile {level:g}" for level in _LEVELS],
        "mean": ["mean"],
    }
    rows = []
    for row in results:
        times = row["times"]
        for what in ("neal8", "counts"):
            told = row[what]
            each = [span([told["ess"][name] for name in names]) for names in groups.values()]
            rows.append(
                [
                    f"{row['n']:,}, {row['epsilon']:g}",
                    f"`{what}`",
                    figure(told["ms"], 2),
                    f"{told['rhat']:.2f}",
                    *each,
                    "",
                ]
            )
        factors = [span([times[name] for name in names]) for names in groups.values()]
        least = min(times, key=lambda name: times[name])
        reached = "all" if times[least] >= TARGET else f"{figure(times[least], 2)} ({least})"
        rows.append(["", "times as many", "", "", *factors, reached])
    head = ["n, eps", "sampler", "ms a sweep", "largest R-hat", *groups, f"least, where below {TARGET:g}"]
    return table(head, rows)
