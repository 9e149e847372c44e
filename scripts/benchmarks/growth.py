"""How the cost of a sweep grows with what is set of a sampler or a release; what a second thread gains."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import dpmix
from benchmarks import floor
from benchmarks.cells import BASE, WIDTH
from benchmarks.settings import build
from benchmarks.table import figure, table
from dpmix.data.simulations import three_gaussians
from dpmix.kernels import MultivariateNormal, NormalNIG
from dpmix.mechanisms.channels.rows import GaussianRows
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.numerics.mixing import PitmanYor
from dpmix.samplers import Algorithm, Chain

__all__ = ["GROWING", "Growing", "grow", "growth_table", "threads", "threads_text"]

Result = dict[str, Any]
N = 1_000
PIECES = 5


def _plain(n: int, algorithm: Algorithm) -> Chain:
    z = three_gaussians(n, np.random.default_rng(1))[:, 0] + np.random.default_rng(2).laplace(0.0, 4.0, n)
    kernel, rng = NormalNIG(*BASE), np.random.default_rng(3)
    return Chain(z, LaplaceNoise(WIDTH / 5.0), kernel, PitmanYor(1.0, 0.0), algorithm, rng)


def _other(setting: str, epsilon: float, algorithm: Algorithm) -> Chain:
    return Chain(*build(setting, epsilon, N), PitmanYor(1.0, 0.0), algorithm, np.random.default_rng(3))


def _columns(d: int) -> Chain:
    rng = np.random.default_rng(1)
    y = rng.choice([-4.0, 4.0], N)[:, None] / np.sqrt(np.arange(1.0, d + 1.0)) + rng.standard_normal((N, d))
    kernel = MultivariateNormal(np.zeros(d), 0.1, d + 3.0, 2.0 * np.eye(d))
    rows = GaussianRows(y + rng.standard_normal((N, d)), np.ones(d))
    return Chain(np.arange(float(N)), rows, kernel, PitmanYor(1.0, 0.0), Algorithm("neal8"), rng)


@dataclass(frozen=True)
class Growing:
    """What grows, its values, the chain of N records, and what its floor counts.

    `densities` names a loop of `benchmarks.floor`; `in_play` gives the components whose densities a record is
    offered, of the mean number of clusters and the value.
    """

    what: str
    values: tuple[int, ...]
    make: Callable[[int], Chain]
    densities: str = "normal"
    in_play: Callable[[float, int], float] = lambda clusters, value: clusters + 2.0


GROWING: dict[str, Growing] = {
    "neal8, normal": Growing(
        "auxiliary m",
        (1, 2, 4, 8, 16),
        lambda m: _plain(N, Algorithm("neal8", auxiliary=m)),
        "laplace",
        lambda clusters, m: clusters + m,
    ),
    "private_neal5, normal": Growing(
        "auxiliary m",
        (1, 2, 4, 8, 16),
        lambda m: _plain(N, Algorithm("private_neal5", auxiliary=m)),
        "held",
        lambda clusters, m: float(m),
    ),
    "blocked_gibbs, normal": Growing(
        "truncation",
        (15, 30, 60, 120),
        lambda m: _plain(N, Algorithm("blocked_gibbs", truncation=m)),
        "laplace",
        lambda clusters, m: float(m),
    ),
    "neal8, beta, wavelet": Growing(
        "levels J", (1, 2, 3, 4, 5, 6), lambda levels: _other(f"wavelet-{levels}", 50.0, Algorithm("neal8"))
    ),
    "private_neal5, beta, wavelet": Growing(
        "levels J",
        (1, 2, 3, 4, 5, 6),
        lambda levels: _other(f"wavelet-{levels}", 50.0, Algorithm("private_neal5")),
        "held",
        lambda clusters, levels: 1.0,
    ),
    "neal8, beta, binomial": Growing(
        "trials M", (10, 20, 40, 80), lambda trials: _other(f"binomial-{trials}", 5.0, Algorithm("neal8"))
    ),
    "neal8, multivariate_normal": Growing("columns d", (2, 3, 4, 6, 8), _columns),
}


def _per_update(chain: Chain, seconds: float) -> tuple[float, float]:
    """Return the least processor seconds of a record-update, and the mean number of clusters."""
    chain.advance(3)  # loads compiled code
    done, begin = 1, time.process_time()
    while time.process_time() - begin < seconds / 2:  # burns in, and learns how many sweeps are a piece
        start = time.process_time()
        chain.advance(done)
        if time.process_time() - start < seconds / (2 * PIECES):
            done *= 2
    found, clusters = [], []
    for _ in range(PIECES):
        start = time.process_time()
        chain.advance(done)
        found.append((time.process_time() - start) / (done * len(chain.z)))
        clusters.append(chain.n_clusters)
    return min(found), float(np.mean(clusters))


def grow(seconds: float, few: bool = False) -> list[Result]:
    """Measure a sweep at every value of all that grows; with `few` at two values of the first."""
    results = []
    for name in tuple(GROWING)[:1] if few else GROWING:
        case = GROWING[name]
        values = case.values
        times, clusters, floors = [], [], []
        for value in values[:2] if few else values:
            spent, mean = _per_update(case.make(value), seconds)
            times.append(spent)
            clusters.append(mean)
            floors.append(floor.at(case.densities, case.in_play(mean, value)))
        x, y = np.log(values[: len(times)]), np.log(times)
        results.append(
            {
                "name": name,
                "what": case.what,
                "floors": floors,
                "values": list(values[: len(times)]),
                "times": times,
                "clusters": clusters,
                "growth": float(np.polyfit(x, y, 1)[0]),
            }
        )
    return results


def growth_table(results: list[Result]) -> list[str]:
    """Return the lines of the table."""
    rows = []
    for r in results:
        points = ", ".join(
            f"{value}: {figure(1e9 * spent, 3)}" for value, spent in zip(r["values"], r["times"], strict=True)
        )
        ends = " – ".join(figure(r["floors"][end], 3) for end in (0, -1))
        clusters = figure(float(np.mean(r["clusters"])))
        rows.append([r["name"], r["what"], points, f"{r['growth']:.2f}", ends, clusters])
    head = ["sampler, kernel, release", "grows", "ns a record-update at each value", "exponent"]
    return table([*head, "floor, ns: first – last", "clusters"], rows)


def threads(seconds: float) -> Result:
    """Measure two chains one after the other, and side by side."""
    spec: dict[str, Any] = {
        "data": {"simulate": "three_gaussians", "n": N, "seed": 1, "domain": [[-10.0, 10.0]]},
        "mechanism": {"kind": "laplace", "epsilon": 5.0},
        "model": {"base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}},
        "sampler": {"kind": "neal8", "chains": 2, "seed": 1, "store": []},
    }
    sweeps = max(200, int(seconds * 20_000))
    spec["sampler"] |= {"iterations": sweeps, "burn_in": sweeps // 2}
    release = dpmix.privatize(spec, quiet=True)
    found: Result = {"sweeps": sweeps}
    with TemporaryDirectory() as folder:
        for turn, jobs in enumerate((1, 1, 2, 1, 2)):  # the first loads compiled code
            wall, cpu = time.perf_counter(), time.process_time()
            dpmix.fit(spec, release, Path(folder) / f"{turn}.h5", jobs=jobs, quiet=True)
            spent = time.perf_counter() - wall, time.process_time() - cpu
            found[str(jobs)] = min(found.get(str(jobs), spent), spent) if turn else spent
    return found


def threads_text(found: Result) -> str:
    """Say what the second thread gains."""
    (wall, cpu), (wall_2, cpu_2) = found["1"], found["2"]
    what = f"Two chains of {found['sweeps']:,} sweeps of `neal8` with n = {N:,}"
    had = f"{cpu / wall:.1f} and {cpu_2 / wall_2:.1f} of the machine's processors were to be had"
    return (
        f"{what} take {cpu:.1f} s of processor time one after the other, on one thread, and {cpu_2:.1f} s"
        f" side by side, on two. By the clock on the wall that was {wall:.1f} s and {wall_2:.1f} s, while"
        f" {had}."
    )
