"""Measure one cell in a process of its own, so that the peak of its memory is its own.

Reads a cell as JSON from the command line and prints what it measured as JSON. Compiled code is loaded, by a
small chain of the same types, before anything is timed.
"""

from __future__ import annotations

import functools
import json
import math
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import floor
from benchmarks.cells import ALGORITHMS, BASE, LARGE, PLAIN, POINTS, WIDTH, Cell
from benchmarks.settings import build
from dpmix.data.simulations import three_gaussians
from dpmix.kernels import NormalNIG
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.numerics.mixing import PitmanYor
from dpmix.run.model_protocols import Arrays
from dpmix.samplers import Algorithm, Chain

__all__ = ["main", "measure"]

BURN, BARE = (
    0.2,
    0.2,
)  # shares of the time for burn-in and for sweeps that save nothing; the rest is for saved draws
PIECE = 0.05  # seconds between looks at the clock
LEVELS = 40  # sweeps over which open components are counted
NEVER = 2**62
WARM_THREADS = 70_000  # records that are worked in blocks

Floats = NDArray[np.float64]


def _build(cell: Cell, n: int, seed: int, pool: ThreadPoolExecutor | None) -> Chain:
    algorithm = Algorithm(**ALGORITHMS[cell.sampler])
    rng = np.random.default_rng(seed)
    if cell.setting != PLAIN:
        return Chain(*build(cell.setting, cell.epsilon or 0.0, n), PitmanYor(1.0, 0.0), algorithm, rng, pool)
    z = three_gaussians(n, np.random.default_rng(1))[:, 0].copy()
    channel: Any = NoNoise()
    if cell.epsilon is not None:
        scale = WIDTH / cell.epsilon
        z += np.random.default_rng(2).laplace(0.0, scale, n)
        channel = LaplaceNoise(scale)
    return Chain(z, channel, NormalNIG(*BASE), PitmanYor(1.0, 0.0), algorithm, rng, pool)


def _series(draws: Arrays) -> Floats:
    """Return number of clusters and density of Y at POINTS in each saved draw, shape (1 + points, draws).

    The weight that no component holds is spread by the prior predictive density.
    """
    mu0, lam, a, b = BASE
    where, of, weights = np.array(POINTS)[:, None], draws["first"][1][:-1], draws["weights"][1]
    mean, variance = draws["theta"][1]
    terms = np.exp(-0.5 * (where - mean) ** 2 / variance) / np.sqrt(2.0 * np.pi * variance)
    inside: Floats = np.add.reduceat(weights * terms, of, axis=1)
    left = 1.0 - np.add.reduceat(weights, of)
    scale = math.sqrt(b * (lam + 1.0) / (a * lam))  # Student's t with 2 a degrees of freedom
    log_height = math.lgamma(a + 0.5) - math.lgamma(a) - 0.5 * math.log(2.0 * a * math.pi) - math.log(scale)
    prior = np.exp(log_height - (a + 0.5) * np.log1p(((where - mu0) / scale) ** 2 / (2.0 * a)))
    return np.vstack([draws["n_clusters"][1], inside + left * prior])


def _keep(kept: list[Floats], plain: bool, draws: Arrays) -> None:
    kept.append(_series(draws) if plain else draws["n_clusters"][1][None].astype(float))


class Spent:
    """Sweeps done and seconds spent on them, on the wall and on the processors."""

    def __init__(self) -> None:
        self.sweeps, self.wall, self.cpu = 0, 0.0, 0.0

    def spend(
        self, chain: Chain, seconds: float, sweeps: int = 0, taken: Callable[[Arrays], None] | None = None
    ) -> None:
        """Sweep for `seconds`, or exactly `sweeps` times where given; save draws where `taken` wants them."""
        chain.keep(thin=1, skip=0 if taken else NEVER)
        done, piece, start = 0, 1, self.wall
        while done < sweeps if sweeps else done == 0 or self.wall - start < seconds:
            size = min(piece, sweeps - done) if sweeps else piece
            wall, cpu = time.perf_counter(), time.process_time()
            chain.proceed(done + size)
            took = time.perf_counter() - wall
            self.wall += took
            self.cpu += time.process_time() - cpu
            done += size
            if taken:
                taken(chain.take())
            if took < PIECE:
                piece *= 2
        self.sweeps += done


def _in_play(cell: Cell, chain: Chain, clusters: float) -> float:
    """Mean number of components whose densities a record asks for when it is allocated."""
    algorithm = Algorithm(**ALGORITHMS[cell.sampler])
    if algorithm.kind == "neal8":
        return clusters + algorithm.auxiliary
    if algorithm.kind in ("neal2", "neal3", "split_merge"):
        return clusters + 1.0
    if algorithm.kind == "private_neal5":
        return 1.0
    if algorithm.kind == "blocked_gibbs":
        return float(algorithm.truncation)
    sizes = []
    for _ in range(3 if cell.n == LARGE else LEVELS):
        chain.advance(1)
        sizes.append(float(chain._state.level.mean()))  # scratch of the last sweep; no part of the interface
    return float(np.mean(sizes))


def _ess(series: Floats) -> tuple[float | None, float | None]:
    """Bulk effective sample size and R-hat of a series (chains, draws)."""
    from arviz_stats.base import array  # late: its memory is not the sampler's

    statistics: Any = array.array_stats
    if series.shape[1] < 50 or np.ptp(series) == 0.0:
        return None, None
    ess = float(np.asarray(statistics.ess(series, method="bulk")).item())
    rhat = float(np.asarray(statistics.rhat(series, method="rank")).item())
    return (ess if math.isfinite(ess) else None), (rhat if math.isfinite(rhat) else None)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024.0 if sys.platform == "linux" else 2.0**20
    )


def measure(cell: Cell, seconds: float) -> dict[str, Any]:
    """Measure `cell` in about `seconds`: two chains one after the other, or one where n is LARGE."""
    pool = ThreadPoolExecutor(cell.threads) if cell.threads > 1 else None
    warm = _build(cell, WARM_THREADS if cell.n == LARGE else min(cell.n, 100), 0, pool)
    Spent().spend(warm, 0.0, 3)
    Spent().spend(warm, 0.0, 3, lambda draws: None)
    start_mb = _peak_mb()
    large = cell.n == LARGE
    bare, saved = Spent(), Spent()
    clusters: list[Floats] = []
    densities: list[Floats] = []
    share = seconds / (1 if large else 2)
    floors = []
    for seed in (11,) if large else (11, 12):
        chain = _build(cell, cell.n, seed, pool)
        Spent().spend(chain, BURN * share)
        bare.spend(chain, (1.0 - BURN if large else BARE) * share)
        if large:
            clusters.append(np.array([float(chain.n_clusters)]))
        else:
            kept: list[Floats] = []
            draws = clusters[0].size if clusters else 0  # as many as the first chain's
            saved.spend(
                chain,
                (1.0 - BURN - BARE) * share,
                draws,
                functools.partial(_keep, kept, cell.setting == PLAIN),
            )
            table = np.concatenate(kept, axis=1)
            clusters.append(table[0])
            densities.append(table[1:])
        floors.append(floor.measure(_kind_of_density(cell)))
    peak_mb = _peak_mb()
    update = 1e9 * bare.wall / (bare.sweeps * cell.n)
    cpu_update = 1e9 * bare.cpu / (bare.sweeps * cell.n)
    result: dict[str, Any] = {
        **cell.to_json(),
        "name": cell.name,
        "nanoseconds": update,
        "cpu_nanoseconds": cpu_update,
        "sweeps_per_second": bare.sweeps / bare.wall,
        "clusters": float(np.mean(clusters)),
        "peak_mb": peak_mb,
        "start_mb": start_mb,
        "cpu_over_wall": (bare.cpu + saved.cpu) / (bare.wall + saved.wall),
    }
    in_play = _in_play(cell, chain, float(np.mean(clusters)))
    few, many = np.mean(floors, axis=0)
    at = floor.between((few, many), in_play)
    result |= {
        "in_play": in_play,
        "densities": _kind_of_density(cell),
        "floor": float(at),
        "floor_few": float(few),
        "floor_many": float(many),
        "over_floor": cpu_update / float(at),
    }
    if not large:
        series = {"clusters": np.stack(clusters)}
        for p, point in enumerate(POINTS if cell.setting == PLAIN else ()):
            series[f"density_{point:g}"] = np.stack([values[p] for values in densities])
        result["saved_draws"] = saved.sweeps
        result["saved_nanoseconds"] = 1e9 * saved.wall / (saved.sweeps * cell.n)
        result["ess"], result["ess_per_second"], result["rhat"] = {}, {}, {}
        spent = saved.wall if cell.setting == PLAIN else saved.cpu  # one thread: what the sampler had
        for name, values in series.items():
            ess, rhat = _ess(values)
            result["ess"][name], result["rhat"][name] = ess, rhat
            result["ess_per_second"][name] = None if ess is None else ess / spent
        published, reached = cell.published, result["ess_per_second"]["clusters"]
        result["published"] = published
        result["over_published"] = reached / published if published and reached is not None else None
    if pool:
        pool.shutdown()
    return result


def _kind_of_density(cell: Cell) -> str:
    if cell.epsilon is None:
        return "normal"
    held = ALGORITHMS[cell.sampler].get("latent") == "metropolis" or cell.sampler == "neal5"
    if held:
        return "held"
    return "laplace" if cell.setting == PLAIN else "normal"


def main() -> None:
    """Measure the cell that the command line gives as JSON, in the seconds it gives (0: compile only)."""
    cell = Cell(**json.loads(sys.argv[1]))
    print(json.dumps(measure(cell, float(sys.argv[2]))))


if __name__ == "__main__":
    main()
