"""The floor: a record-update's random draws and special functions in a bare loop.

Per record two uniforms, and per component in play one density: with Laplace noise one exp and two erfc,
without noise or with latent values held in the state one exp; a held latent value costs a normal, a uniform
and two exp besides. All are library functions called one value at a time, erfc on [-0.8, 0.8] where it is
three times as fast as in its tails.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from dpmix.numerics.jit import njit

__all__ = ["FEW", "MANY", "Floor", "at", "between", "measure"]

FEW, MANY = 1, 11  # components in play; the cost is linear in between and beyond
RECORDS = 50_000
REPEATS = 7

Floor = tuple[float, float]  # nanoseconds a record with FEW and MANY components


@njit
def _laplace(rng: Any, records: int, components: int) -> float:
    total = 0.0
    for _ in range(records):
        z = 1.2 * rng.random() - 0.6
        total += rng.random()
        for h in range(components):
            t = z + 1e-3 * h
            total += math.exp(-t * t) * (math.erfc(t - 0.1) + math.erfc(t + 0.1))
    return total


@njit
def _normal(rng: Any, records: int, components: int) -> float:
    total = 0.0
    for _ in range(records):
        z = 20.0 * rng.random() - 10.0
        total += rng.random()
        for h in range(components):
            t = z - h
            total += math.exp(-0.5 * t * t)
    return total


@njit
def _held(rng: Any, records: int, components: int) -> float:
    total = 0.0
    for _ in range(records):
        z = 20.0 * rng.random() - 10.0
        total += rng.random()
        y = rng.standard_normal()
        total += math.exp(-abs(z - y)) + rng.random() * math.exp(-abs(z + y))
        for h in range(components):
            t = y - h
            total += math.exp(-0.5 * t * t)
    return total


LOOPS: dict[str, Callable[[Generator, int, int], float]] = {
    "laplace": _laplace,
    "normal": _normal,
    "held": _held,
}


def _nanoseconds(loop: Callable[[Generator, int, int], float], components: int) -> float:
    rng = np.random.default_rng(0)
    loop(rng, 10, components)
    times = []
    for _ in range(REPEATS):
        start = time.thread_time_ns()
        loop(rng, RECORDS, components)
        times.append((time.thread_time_ns() - start) / RECORDS)
    return statistics.median(times)


def measure(densities: str) -> Floor:
    """Return processor nanoseconds a record with FEW and MANY components; `densities` is a key of LOOPS."""
    return _nanoseconds(LOOPS[densities], FEW), _nanoseconds(LOOPS[densities], MANY)


def between(found: Floor, components: float) -> float:
    """Return the floor with so many components in play."""
    few, many = found
    return few + (many - few) * (components - FEW) / (MANY - FEW)


def at(densities: str, components: float) -> float:
    """Measure the floor with so many components in play, in processor nanoseconds a record."""
    return between(measure(densities), components)
