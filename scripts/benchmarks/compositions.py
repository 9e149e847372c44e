"""Compositions given noisy mean logarithms: methods, joint moves, many records (--compositions).

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

from benchmarks.table import table
from dpmix.mechanisms.log_moments.law import exact_width
from dpmix.models.dirichlet.alpha import prior_of, tie
from dpmix.models.dirichlet.augmentation import Augmented
from dpmix.models.dirichlet.build import build
from dpmix.models.dirichlet.model import parts_of
from dpmix.release.sanitized import Release
from dpmix.run.model_protocols import ParametricChain, ParametricModel
from dpmix.spec import load_spec

__all__ = ["Cell", "cells", "measure", "run", "select", "tables"]

Floats = NDArray[np.float64]
ALPHA = np.array([2.2, 3.3, 4.4, 5.5, 6.6])
THRESHOLD = 0.01
BURN = 500  # sweeps
REPEATS = 5
METHODS: dict[str, dict[str, Any]] = {
    "DPMCMC": {"kind": "data_augmentation"},
    "DPMCMC, joint": {"kind": "data_augmentation"},
    "DPMCMC, plain": {"kind": "data_augmentation", "joint": False},
    "DPMCMC, soma": {"kind": "soma", "offers": 50},
    "DPreMCMC": {"kind": "replicated"},
    "DPABC": {"kind": "abc"},
    "DPBoots": {"kind": "bootstrap"},
    "DPapprox": {"kind": "normal_approximation"},
}
"""The first with joint moves where they pay, the second and third with and without them everywhere."""
INDEPENDENT = ("DPABC", "DPBoots")
PUBLISHED = {"DPMCMC, plain": 1.0, "DPreMCMC": 1.0 / 6.2, "DPABC": 1.0 / 60.3}
"""Time over that of DPMCMC with n = 5000 (Guo, Barrientos and Pena, section 4.1)."""
N, EPSILONS = 5_000, (0.25, 1.5, 10.0)
JOINT = {"sizes": (100, 1_000, 5_000), "epsilons": (0.25, 1.0, 3.0, 10.0)}
LARGE = (1_000, N, 100_000, 1_000_000)
GROWING = ("DPMCMC", "DPreMCMC", "DPABC", "DPBoots", "DPapprox")
WANTED = 1_000  # effective draws


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    method: str
    n: int
    epsilon: float

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.method}/n{self.n}/eps{self.epsilon:g}"


def cells() -> Iterator[Cell]:
    """Every cell, in the order of the tables."""
    found = [Cell(method, N, epsilon) for epsilon in EPSILONS for method in METHODS]
    for epsilon in JOINT["epsilons"]:
        for n in JOINT["sizes"]:
            found += [Cell(method, int(n), epsilon) for method in ("DPMCMC, plain", "DPMCMC, joint")]
    found += [Cell(method, n, 1.5) for n in LARGE for method in GROWING]
    yield from dict.fromkeys(found)


def select(parts: list[str]) -> list[Cell]:
    """Return the cells whose names, such as ``DPMCMC, plain/n5000/eps1.5``, hold one of the parts.

    Raises
    ------
    ValueError
        Where there are none.
    """
    found = [cell for cell in cells() if any(part in cell.name for part in parts)]
    if not found:
        raise ValueError(
            f"--cells: nothing is called {' or '.join(parts)}; names are as {next(cells()).name}"
        )
    return found


def _model(cell: Cell) -> tuple[ParametricModel, float]:
    """Return the model of a release of simulated compositions, and its tie."""
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
    parts, prior = parts_of(release), prior_of(spec, release)
    if cell.method == "DPMCMC, joint":
        return Augmented(release, parts, prior, None, True), tie(parts, prior)[0]
    return build(spec, release), tie(parts, prior)[0]


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
    model, tied = _model(cell)
    independent = cell.method in INDEPENDENT
    skip, first = 0 if independent else BURN, model.make_chain(np.random.default_rng(7))
    prepared = time.process_time() - start
    first.keep(1, 0 if independent else 2**62)
    first.proceed(2)
    done, piece = 2, 1
    each = _timed(first, 3)
    done += piece
    while each < seconds / (8 * REPEATS) and piece < 4000:
        piece *= 2
        each = _timed(first, done + piece)
        done += piece
    pieces = [each]
    for _ in range(REPEATS - 1):
        pieces.append(_timed(first, done + piece))
        done += piece
    sweep = min(pieces) / piece
    total = int(min(max(0.4 * seconds / sweep, 20 if independent else 100), 50_000))
    draws, spent = [], 0.0
    for k in (0, 1):
        chain = model.make_chain(np.random.default_rng([7, k]))
        chain.keep(1, skip)
        chain.proceed(skip)
        spent += _timed(chain, skip + total)
        found = {name: values for name, (_, values) in chain.take().items()}
        draws.append(found["alpha"])
    alpha = np.concatenate(draws)
    ess = float(len(alpha)) if independent else _ess(np.stack(draws))
    return {
        "method": cell.method,
        "n": cell.n,
        "epsilon": cell.epsilon,
        "tie": tied,
        "prepared": prepared + skip * sweep,
        "sweep": sweep,
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


def _seconds(row: dict[str, Any]) -> str:
    """Return seconds for `WANTED` effective draws, what goes before them included."""
    return _number(row["prepared"] + WANTED / row["ess_per_second"])


def tables(results: list[dict[str, Any]]) -> str:
    """Return tables of the methods, of joint moves and of growing n, in Markdown."""
    found = {(row["method"], row["n"], row["epsilon"]): row for row in results}
    head = ["eps", "method", "us a sweep", "us a draw", "over plain DPMCMC", "published", "ESS a draw"]
    head += ["ESS/s", f"{WANTED} effective draws, s", "largest error of a mean of alpha, %"]
    rows = []
    for row in results:
        if row["n"] != N or row["epsilon"] not in EPSILONS:
            continue
        plain = found.get(("DPMCMC, plain", N, row["epsilon"]), {}).get("draw", np.nan)
        entries = [
            f"{row['epsilon']:g}",
            row["method"],
            _number(1e6 * row["sweep"]),
            _number(1e6 * row["draw"]),
        ]
        entries += [_number(row["draw"] / plain), _number(PUBLISHED.get(row["method"], np.nan))]
        entries += [_number(row["ess"] / row["draws"]), _number(row["ess_per_second"]), _seconds(row)]
        rows.append([*entries, _number(100.0 * row["off"])])
    text = table(head, rows)
    rows = []
    for epsilon in JOINT["epsilons"]:
        for n in JOINT["sizes"]:
            pair = [found.get((method, n, epsilon)) for method in ("DPMCMC, plain", "DPMCMC, joint")]
            if pair[0] is None or pair[1] is None:
                continue
            speeds = [row["ess_per_second"] for row in pair if row]
            entries = [f"{epsilon:g}", f"{n:,}", _number(pair[0]["tie"])]
            entries += [_number(1e6 * row["draw"]) for row in pair if row] + [
                _number(speed) for speed in speeds
            ]
            rows.append([*entries, _number(speeds[1] / speeds[0])])
    head = ["eps", "n", "tie", "us a draw, plain", "joint", "ESS/s, plain", "joint", "joint over plain"]
    text += ["", *table(head, rows)]
    rows = []
    for n in LARGE:
        for method in GROWING:
            grown = found.get((method, n, 1.5))
            if grown is not None:
                entries = [
                    f"{n:,}",
                    method,
                    _number(1e3 * grown["draw"]),
                    _number(grown["ess"] / grown["draws"]),
                ]
                rows.append([*entries, _seconds(grown), _number(100.0 * grown["off"])])
    head = ["n", "method", "ms a draw", "ESS a draw", f"{WANTED} effective draws, s"]
    return "\n".join([*text, "", *table([*head, "largest error of a mean of alpha, %"], rows), ""])


def run(seconds: float, which: list[Cell] | None = None) -> list[dict[str, Any]]:
    """Measure cells, all where none are given, after a first run of each method that compiles it."""
    chosen = list(cells()) if which is None else which
    for method in METHODS:
        if any(cell.method == method for cell in chosen):
            measure(Cell(method, 100, 1.5), 0.01)
    results = []
    for cell in chosen:
        result = measure(cell, seconds)
        results.append(result)
        speed = f"{1e6 * result['sweep']:.0f} us a sweep, ESS/s {result['ess_per_second']:.3g}"
        print(f"{cell.name}: {speed}", file=sys.stderr, flush=True)
    return results
