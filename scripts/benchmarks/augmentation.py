"""Data augmentation for noisy statistics: record-updates, mixing and SOMA; scripts/benchmark --augmentation.

Every figure is of processor time in this one process, in which the functions were compiled before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.table import figure, growth, table
from dpmix.data import simulations
from dpmix.models.linear_regression.build import build as build_regression
from dpmix.models.naive_bayes.model import build as build_naive_bayes
from dpmix.numerics.jit import njit
from dpmix.numerics.streams import fill_normals, fill_uniforms, make_words, seed
from dpmix.release.sanitized import Release
from dpmix.run.model_protocols import ParametricChain
from dpmix.spec import load_spec

__all__ = ["Cell", "cells", "measure", "page", "run", "select"]

SAMPLERS: dict[str, dict[str, dict[str, Any]]] = {
    "linear_regression": {
        "plain": {"joint": False},
        "joint": {"joint": True},
        "soma": {"kind": "soma", "joint": False},
        "soma-joint": {"kind": "soma", "joint": True},
    },
    "naive_bayes": {"counts": {}, "plain": {"latent": "metropolis"}, "soma": {"kind": "soma"}},
}
SIZES, EPSILONS, GROWTH = (10, 100, 1_000), (0.1, 1.0, 10.0), (100, 1_000, 10_000, 100_000, 1_000_000)
BOUND, PREDICTORS, LEVELS, CLASSES = 10.0, 2, (3,) * 5, 5
PAPER_SENSITIVITY = float(PREDICTORS**2 + 3 * PREDICTORS + 3)
# of public R code at n = 100 and eps = 1: nanoseconds a record-update (of regression: hand-tuned) and the
# larger effective sample size per second of beta
PUBLISHED = {"linear_regression": 6_300.0, "naive_bayes": 8_000.0}
PUBLISHED_SPEED = {"linear_regression": 15.0}
NUMBERS = {"linear_regression": PREDICTORS + 1, "naive_bayes": len(LEVELS) + 1}  # random, for a record
REPEATS, LEARN = 15, 3_000
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """One measurement; of mixing, or (grows) of time alone."""

    model: str
    sampler: str
    n: int
    epsilon: float
    grows: bool = False

    @property
    def name(self) -> str:
        """What `select` looks at."""
        kind = "growth" if self.grows else "mixing"
        return f"{self.model}/{self.sampler}/eps{self.epsilon:g}/n{self.n}/{kind}"


def cells() -> list[Cell]:
    """Return every cell, in the order of the tables."""
    found = []
    for model, samplers in SAMPLERS.items():
        found += [Cell(model, name, n, eps) for n in SIZES for eps in EPSILONS for name in samplers]
        found += [Cell(model, name, n, 1.0, grows=True) for name in samplers for n in GROWTH]
    return found


def select(patterns: list[str]) -> list[Cell]:
    """Return the cells whose names contain one of `patterns` as whole parts; all without patterns.

    Raises
    ------
    ValueError
        When no cell matches a pattern.
    """
    for pattern in patterns:
        if not any(f"/{pattern}/" in f"/{cell.name}/" for cell in cells()):
            raise ValueError(f"no cell matches {pattern!r}; names are like {cells()[0].name}")
    return [
        cell for cell in cells() if not patterns or any(f"/{part}/" in f"/{cell.name}/" for part in patterns)
    ]


def _regression(n: int, epsilon: float, sampler: dict[str, Any]) -> Any:
    records = simulations.linear_regression(n, np.random.default_rng(1))
    units = np.clip(records / BOUND, -1.0, 1.0)
    design, y = np.column_stack([np.ones(n), units[:, :PREDICTORS]]), units[:, PREDICTORS]
    upper = (design.T @ design)[np.triu_indices(PREDICTORS + 1)][1:]
    sums = np.concatenate([design.T @ y, [y @ y], upper])
    scale = PAPER_SENSITIVITY / epsilon
    values = sums + np.random.default_rng(2).laplace(0.0, scale, len(sums))
    bounds = [[-BOUND, BOUND]] * (PREDICTORS + 1)
    mechanism = {"kind": "clamped_moments", "bounds": bounds, "noise": "laplace", "scale": [scale]}
    known = {"sigma2": 2.0, "x_mean": [0.9, -1.17], "x_cov": [[1.0, 0.0], [0.0, 1.0]]}
    model = {"kind": "linear_regression", "prior_sd": [0.2, 2.0, 2.0], **known}
    spec = load_spec({"model": model, "sampler": sampler})
    return build_regression(spec, _release(values, mechanism, epsilon, n))


def _naive_bayes(n: int, epsilon: float, sampler: dict[str, Any]) -> Any:
    records = simulations.naive_bayes(n, np.random.default_rng(1)).astype(int) - 1
    scale = 2.0 * len(LEVELS) / epsilon
    tables = []
    for k, count in enumerate(LEVELS):
        table = np.zeros((CLASSES, count))
        np.add.at(table, (records[:, -1], records[:, k]), 1.0)
        tables.append(table.ravel())
    sums = np.concatenate(tables)
    values = sums + np.random.default_rng(2).laplace(0.0, scale, len(sums))
    mechanism = {
        "kind": "noisy_counts",
        "levels": list(LEVELS),
        "classes": CLASSES,
        "noise": "laplace",
        "scale": [scale],
    }
    spec = load_spec({"model": {"kind": "naive_bayes"}, "sampler": sampler})
    return build_naive_bayes(spec, _release(values, mechanism, epsilon, n))


def _release(values: Floats, mechanism: dict[str, Any], epsilon: float, n: int) -> Release:
    return Release(values.reshape(-1, 1), ("value",), mechanism, epsilon, 0.0, None, n, trust="global")


BUILD: dict[str, Callable[[int, float, dict[str, Any]], Any]] = {
    "linear_regression": _regression,
    "naive_bayes": _naive_bayes,
}


def _timed(work: Callable[[int], Any], count: int) -> float:
    start = time.process_time()
    work(count)
    return time.process_time() - start


@njit
def _fill(words: Any, out: Any, normal: bool, times: int) -> None:
    for _ in range(times):
        if normal:
            fill_normals(words, out, len(out))
        else:
            fill_uniforms(words, out, len(out))


def _floor(model: str) -> float:
    """Return nanoseconds that a record's random numbers take alone: normals, or uniforms."""
    words, out, normal = make_words(), np.zeros(64), model == "linear_regression"
    seed(np.random.default_rng(1), words)
    _fill(words, out, normal, 1)
    best = min(_timed(lambda times: _fill(words, out, normal, times), 2_000) for _ in range(REPEATS))
    return 1e9 * best / (2_000 * len(out)) * NUMBERS[model]


def _sweep_seconds(chain: ParametricChain, seconds: float) -> float:
    """Return the least processor time a sweep of several pieces, nothing saved."""
    piece = 1
    while _timed(chain.sweep, piece) < seconds / (2 * REPEATS):
        piece *= 2
    repeats = REPEATS if piece > 1 else 3
    return min(_timed(chain.sweep, piece) for _ in range(repeats)) / piece


def _ess(draws: list[Floats]) -> float:
    """Return the least bulk effective sample size over the entries of a parameter, of all chains together."""
    from arviz_stats.base import array

    statistics: Any = array.array_stats
    rows = np.stack([values.reshape(len(values), -1) for values in draws])
    return min(float(np.asarray(statistics.ess(rows[:, :, i])).item()) for i in range(rows.shape[2]))


def measure(cell: Cell, seconds: float) -> dict[str, Any]:
    """Measure two chains, one after the other, in about `seconds`; or how long a sweep takes, where it grows.

    Sampling of mixing follows a burn-in of a quarter as many sweeps, or of so many that the joint move
    has learnt.
    """
    model = BUILD[cell.model](cell.n, cell.epsilon, SAMPLERS[cell.model][cell.sampler])
    chains = [model.make_chain(np.random.default_rng([7, k])) for k in (0, 1)]
    chain = chains[0]
    chain.keep(1, 2**62)  # burning in: the joint move learns
    chain.proceed(300 if cell.n <= SIZES[-1] or cell.sampler == "counts" else 3)
    sweep = _sweep_seconds(chain, 0.2 * seconds)
    offers = getattr(model, "offers", 0) or cell.n
    result: dict[str, Any] = {"cell": cell.name, "n": cell.n, "sweep": sweep, "offers": offers}
    result |= {"nanoseconds": 1e9 * sweep / offers, "sweeps_per_second": 1.0 / sweep}
    if cell.grows:
        return result
    total = max(int(0.4 * seconds / sweep), 200)
    skip = max(total // 4, min(LEARN, int(seconds / sweep)))
    draws, rates, spent = [], [], 0.0
    for each in chains:
        each.keep(1, skip)
        each.proceed(skip)
        spent += _timed(each.proceed, skip + total)
        taken = each.take()
        draws.append(taken["beta" if "beta" in taken else "p"][1])
        rates.append(float(np.mean(taken["acceptance_rate"][1])))
    ess = _ess(draws)
    return result | {
        "saved_sweep": spent / (2 * total),
        "draws": 2 * total,
        "acceptance": float(np.mean(rates)),
        "ess": ess,
        "ess_per_second": ess / spent,
    }


def run(seconds: float, chosen: list[Cell] | None = None) -> list[dict[str, Any]]:
    """Measure cells, by default all, after a first run of each sampler that compiles it."""
    chosen = cells() if chosen is None else chosen
    for model, sampler in dict.fromkeys((cell.model, cell.sampler) for cell in chosen):
        measure(Cell(model, sampler, 10, 1.0), 0.01)
    floors = {model: _floor(model) for model in dict.fromkeys(cell.model for cell in chosen)}
    results = []
    for number, cell in enumerate(chosen, 1):
        result = measure(cell, seconds) | {"floor": floors[cell.model]}
        results.append(result)
        speed = f", ESS {result['ess_per_second']:.3g}/s" if "ess" in result else ""
        print(
            f"[{number}/{len(chosen)}] {cell.name}: {result['nanoseconds']:.0f} ns a record-update{speed}",
            file=sys.stderr,
            flush=True,
        )
    return results


QUICK = "**A quick run**: effective sample sizes are rough.\n"
NOTES = """\
Written by `scripts/benchmark --augmentation` on {date}, on {cpu} ({cores} cores, {system}), Python {python},
{named}.
The load average was {before} before and {after} after: other programs slow the processor down, up to twice.

Data of Ju, Awan, Gong and Rao (2022): section 5, two predictors, all but beta known, noise of the scale that
their code uses ({sensitivity:g} / eps); and section 4, five classes and five features of three levels.

*ns a record-update* is the least time of a sweep that saves nothing, draws of the parameters included, over
its offers. The *floor* is that of a record's random numbers alone. *us a draw* is a sweep whose draw is
saved. *ESS* is the bulk effective sample size of two chains together, the least over the entries of beta or
of the class probabilities p, and *ESS/s* that per second of one processor, burn-in left out. Where ESS is
below about 100 both are rough.
"""


def _mixing(model: str, rows: list[tuple[Cell, dict[str, Any]]]) -> list[str]:
    lines = []
    for cell, result in rows:
        counts = cell.sampler == "counts"
        line = [f"{cell.n:,}", f"{cell.epsilon:g}", cell.sampler]
        line += ["–" if counts else figure(result["nanoseconds"], 3), figure(1e6 * result["saved_sweep"], 3)]
        line += ["–" if counts else f"{result['acceptance']:.3f}", f"{np.exp(-cell.epsilon):.3f}"]
        lines.append([*line, figure(result["ess"], 3), figure(result["ess_per_second"], 3)])
    of = "beta" if model == "linear_regression" else "p"
    head = ["n", "eps", "sampler", "ns a record-update", "us a draw", "accepted", "e^-eps"]
    return table([*head, f"ESS of {of}", "ESS/s"], lines)


def _growth(model: str, rows: list[tuple[Cell, dict[str, Any]]]) -> list[str]:
    lines = []
    for sampler in SAMPLERS[model]:
        own = {cell.n: result for cell, result in rows if cell.sampler == sampler}
        if own:
            times = [figure(1e6 * own[n]["sweep"], 3) if n in own else "–" for n in GROWTH]
            large = growth([result for n, result in own.items() if n >= 1_000])
            lines.append([sampler, *times, figure(large)])
    return table(["sampler", *(f"n = {n:,}" for n in GROWTH), "exponent from 1,000 on"], lines)


def page(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    where = report["machine"]
    named = ", ".join(f"{name} {value}" for name, value in where["versions"].items())
    loads = {"before": where["load"][0], "after": report["load_after"][0]}
    notes = NOTES.format(sensitivity=PAPER_SENSITIVITY, named=named, **loads, **where)
    lines = ["# Benchmarks of data augmentation", "", notes, *([QUICK] if report["quick"] else [])]
    known = {cell.name: cell for cell in cells()}
    for model in SAMPLERS:
        rows = [(known[row["cell"]], row) for row in report["cells"]]
        own = [row for row in rows if row[0].model == model]
        mixing, grows = [row for row in own if not row[0].grows], [row for row in own if row[0].grows]
        if not own:
            continue
        published = f"public R code takes {PUBLISHED[model]:,.0f} ns a record-update at n = 100, eps = 1"
        if model in PUBLISHED_SPEED:
            published += f", with an ESS/s of beta of at most {PUBLISHED_SPEED[model]:g}"
        lines += [f"## {model}", "", f"Floor: {own[0][1]['floor']:.1f} ns a record; {published}.", ""]
        lines += [*_mixing(model, mixing), ""] if mixing else []
        lines += ["Microseconds a sweep at eps = 1:", "", *_growth(model, grows), ""] if grows else []
    return "\n".join(lines)
