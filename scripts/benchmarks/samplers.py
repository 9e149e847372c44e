"""Every sampler at growing numbers of records: what a record costs in a sweep, and the floor beside it."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpmix
from benchmarks import worker
from benchmarks.cells import PLAIN, Cell
from benchmarks.table import figure, table
from dpmix.api import task
from dpmix.numerics.jit import njit
from dpmix.run.model_protocols import ParametricChain
from dpmix.spec import load_spec

__all__ = ["PARAMETRIC", "Parametric", "mixtures", "parametric", "samplers", "samplers_table"]

Result = dict[str, Any]
SIZES = (1_000, 10_000, 100_000)
PIECES = 5
EPSILON = 5.0
# names of benchmarks.cells, their settings, and what the table calls them
MIXTURES: tuple[tuple[str, str, str], ...] = (
    ("neal8", PLAIN, "neal8"),
    ("slice", PLAIN, "private_slice"),
    ("slice-metropolis", PLAIN, "private_slice, latent: metropolis"),
    ("blocked", PLAIN, "blocked_gibbs, truncation: 30"),
    ("blocked-metropolis", PLAIN, "blocked_gibbs, truncation: 30, latent: metropolis"),
    ("neal5", PLAIN, "private_neal5"),
    ("neal2", "truncated", "neal2"),
    ("neal3", "truncated", "neal3"),
    ("split_merge", "truncated", "split_merge"),
)
_WHERE = {PLAIN: "mixture, Laplace noise", "truncated": "mixture, Gaussian noise, truncated base"}


@dataclass(frozen=True)
class Parametric:
    """A sampler of a parametric model: its spec, and the random numbers that a record takes in a sweep."""

    model: str
    what: str
    spec: dict[str, Any]
    sampler: dict[str, Any]
    uniforms: int = 0
    normals: int = 0
    gammas: int = 0

    @property
    def name(self) -> str:
        """The sampler's settings, as a spec states them."""
        return ", ".join(
            str(value) if key == "kind" else f"{key}: {value}" for key, value in self.sampler.items()
        )


def _parametric() -> tuple[Parametric, ...]:
    bins = {
        "data": {"simulate": "beta_grid"},
        "mechanism": {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 20, "domain": [0.0, 1.0]},
    }
    counts = {
        "data": {"simulate": "naive_bayes"},
        "mechanism": {"kind": "noisy_counts", "epsilon": 1.0, "levels": [3] * 5, "classes": 5},
    }
    moments = {
        "data": {"simulate": "linear_regression"},
        "mechanism": {"kind": "clamped_moments", "epsilon": 1.0, "bounds": [[-20.0, 20.0]] * 3},
    }
    logs = {
        "data": {"simulate": "dirichlet", "alpha": [2.2, 3.3, 4.4, 5.5, 6.6]},
        "mechanism": {"kind": "log_moments", "epsilon": 1.0, "threshold": 0.01},
    }
    plain, soma = {"kind": "data_augmentation"}, {"kind": "soma"}
    by_record = plain | {"latent": "metropolis"}
    return (
        Parametric("discrete", "discrete, 20 noisy counts", bins, plain),
        Parametric("discrete", "discrete, 20 noisy counts", bins, by_record, uniforms=2),
        Parametric("naive_bayes", "naive Bayes, 5 features", counts, plain),
        Parametric("naive_bayes", "naive Bayes, 5 features", counts, by_record, uniforms=6),
        Parametric("naive_bayes", "naive Bayes, 5 features", counts, soma, uniforms=6),
        Parametric(
            "linear_regression", "regression, 2 predictors", moments, plain | {"joint": False}, normals=3
        ),
        Parametric(
            "linear_regression", "regression, 2 predictors", moments, plain | {"joint": True}, normals=3
        ),
        Parametric(
            "linear_regression", "regression, 2 predictors", moments, soma | {"joint": False}, normals=3
        ),
        Parametric("dirichlet", "compositions of 5 shares", logs, plain | {"joint": False}, gammas=5),
        Parametric("dirichlet", "compositions of 5 shares", logs, plain | {"joint": True}, gammas=5),
        Parametric("dirichlet", "compositions of 5 shares", logs, soma | {"joint": False}, gammas=5),
        Parametric("dirichlet", "compositions of 5 shares", logs, {"kind": "replicated"}),
        Parametric("dirichlet", "compositions of 5 shares", logs, {"kind": "abc"}, gammas=5),
        Parametric("dirichlet", "compositions of 5 shares", logs, {"kind": "bootstrap"}, gammas=5),
        Parametric("dirichlet", "compositions of 5 shares", logs, {"kind": "normal_approximation"}),
    )


PARAMETRIC = _parametric()


@njit
def _numbers(rng: Any, records: int, uniforms: int, normals: int, gammas: int) -> float:
    total = 0.0
    for _ in range(records):
        for _u in range(uniforms):
            total += rng.random()
        for _n in range(normals):
            total += rng.standard_normal()
        for _g in range(gammas):
            total += rng.standard_gamma(3.0)
    return total


def _timed(work: Callable[..., Any], *arguments: Any) -> float:
    start = time.process_time()
    work(*arguments)
    return time.process_time() - start


def _floor(case: Parametric, records: int = 100_000) -> float | None:
    """Return nanoseconds that a record's random numbers take alone."""
    if not case.uniforms + case.normals + case.gammas:
        return None
    numbers = np.random.default_rng(1), records, case.uniforms, case.normals, case.gammas
    _numbers(numbers[0], 10, *numbers[2:])
    return 1e9 * min(_timed(_numbers, *numbers) for _ in range(PIECES)) / records


def _offers(model: Any, n: int) -> int:
    """Return how many records a sweep updates: all, a block of them, or so many offers of one to all."""
    blocks = getattr(getattr(model, "plan", None), "block", None)
    return int(np.sum(blocks)) if blocks is not None else getattr(model, "offers", 0) or n


def _sweep(case: Parametric, n: int, seconds: float) -> tuple[float, int]:
    """Return the least processor seconds of a sweep whose draw is saved, after a burn-in, and its offers."""
    spec = case.spec | {
        "data": case.spec["data"] | {"n": n, "seed": 1},
        "model": {"kind": case.model},
        "sampler": case.sampler | {"iterations": 2, "burn_in": 1},
    }
    release = dpmix.privatize(spec, quiet=True)
    model = task.build(load_spec(spec), release)
    chain = model.make_chain(np.random.default_rng(1))
    assert isinstance(chain, ParametricChain)
    chain.keep(1, 20)
    chain.proceed(20)  # loads compiled code
    done, piece, found = 20, 1, math.inf
    while found < seconds / PIECES or found == math.inf:
        found = _timed(chain.proceed, done + piece)
        done += piece
        chain.take()
        piece = piece if found >= seconds / PIECES else 2 * piece
    pieces = [found]
    for _ in range(PIECES - 1):
        pieces.append(_timed(chain.proceed, done + piece))
        done += piece
        chain.take()
    return min(pieces) / piece, _offers(model, n)


def mixtures(seconds: float, sizes: tuple[int, ...]) -> list[Result]:
    """Measure the samplers of mixtures."""
    results = []
    for sampler, setting, name in MIXTURES:
        found = [
            worker.measure(Cell(sampler, EPSILON, n, setting=setting), seconds * (1.0 + n / 25_000.0))
            for n in sizes
        ]
        results.append(
            {
                "what": _WHERE[setting],
                "name": name,
                "sizes": list(sizes),
                "sweeps": [1e-9 * each["cpu_nanoseconds"] * n for each, n in zip(found, sizes, strict=True)],
                "each": [each["cpu_nanoseconds"] for each in found],
                "floor": found[-1]["floor"],
            }
        )
        _say(results[-1])
    return results


def parametric(seconds: float, sizes: tuple[int, ...], few: bool = False) -> list[Result]:
    """Measure the samplers of parametric models; with `few` the first and the last."""
    results = []
    for case in (PARAMETRIC[0], PARAMETRIC[-1]) if few else PARAMETRIC:
        found = [_sweep(case, n, seconds) for n in sizes]
        results.append(
            {
                "what": case.what,
                "name": case.name,
                "sizes": list(sizes),
                "sweeps": [spent for spent, _ in found],
                "each": [1e9 * spent / offers for spent, offers in found],
                "floor": _floor(case),
            }
        )
        _say(results[-1])
    return results


def _say(result: Result) -> None:
    each = ", ".join(figure(value, 3) for value in result["each"])
    print(f"{result['what']}, {result['name']}: {each} ns a record", file=sys.stderr, flush=True)


def samplers(seconds: float, few: bool = False) -> list[Result]:
    """Measure every sampler; with `few` some, at the smallest size."""
    if few:
        return parametric(seconds, SIZES[:1], few)
    return mixtures(seconds, SIZES) + parametric(seconds, SIZES)


def samplers_table(results: list[Result]) -> list[str]:
    """Return the lines of the table."""
    rows = []
    for r in results:
        each = dict(zip(r["sizes"], r["each"], strict=True))
        row = [r["what"], f"`{r['name']}`", *(figure(each.get(n), 3) for n in SIZES)]
        last = [(math.log(n), math.log(spent)) for n, spent in zip(r["sizes"], r["sweeps"], strict=True)][-2:]
        grows = (last[1][1] - last[0][1]) / (last[1][0] - last[0][0]) if len(last) > 1 else None
        over = None if r["floor"] is None else r["each"][-1] / r["floor"]
        rows.append([*row, "–" if grows is None else f"{grows:.2f}", figure(r["floor"], 3), figure(over)])
    sizes = [f"n = {n:,}" for n in SIZES]
    return table(["model, release", "sampler", *sizes, "exponent in n", "floor", "times the floor"], rows)
