"""What is measured: one cell a sampler, mechanism, number of records and number of threads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = [
    "ALGORITHMS",
    "BASE",
    "LARGE",
    "PLAIN",
    "POINTS",
    "PUBLISHED",
    "SAMPLERS",
    "WIDTH",
    "Cell",
    "cells",
    "select",
    "tiny",
]

# arguments of dpmix.samplers.Algorithm
SAMPLERS: dict[str, dict[str, Any]] = {
    "neal8": {"kind": "neal8", "auxiliary": 1},
    "neal8-3": {"kind": "neal8", "auxiliary": 3},
    "slice": {"kind": "private_slice"},
    "slice-metropolis": {"kind": "private_slice", "latent": "metropolis"},
    "blocked": {"kind": "blocked_gibbs", "truncation": 30},
    "blocked-metropolis": {"kind": "blocked_gibbs", "truncation": 30, "latent": "metropolis"},
    "neal5": {"kind": "private_neal5", "auxiliary": 1},
}
CONJUGATE: dict[str, dict[str, Any]] = {
    "neal2": {"kind": "neal2"},
    "neal3": {"kind": "neal3"},
    "split_merge": {"kind": "split_merge"},
}
ALGORITHMS = {**SAMPLERS, **CONJUGATE}
PLAIN = "normal"  # the setting of a normal kernel under Laplace noise, or without noise
# setting, its epsilon, samplers, numbers of records
OTHERS: tuple[tuple[str, float, tuple[str, ...], tuple[int, ...]], ...] = (
    ("truncated", 5.0, ("neal2", "neal3", "split_merge", "neal8", "slice"), (200, 1_000)),
    ("truncated", 50.0, ("neal2", "neal3", "split_merge", "neal8", "slice"), (200, 1_000)),
    ("beta", 50.0, ("neal8", "slice", "slice-metropolis", "neal5"), (200, 1_000)),
    ("wavelet-2", 50.0, ("neal8", "neal5"), (200, 1_000)),
    ("wavelet-4", 50.0, ("neal8", "slice", "slice-metropolis", "neal5"), (200, 1_000)),
    ("wavelet-6", 50.0, ("neal8", "neal5"), (200, 1_000)),
    ("binomial-20", 5.0, ("neal8", "neal5"), (200, 1_000)),
    ("smoothed", 5.0, ("neal8", "slice", "slice-metropolis", "neal5"), (200, 1_000, 5_000)),
    ("pairs-gaussian", 0.0, ("neal8", "slice"), (200, 1_000)),
    ("pairs-laplace", 0.0, ("neal8", "slice"), (200, 1_000)),
)
WITHOUT_NOISE = ("neal8", "slice", "blocked")
SIZES = (200, 1_000, 5_000)
LARGE = 1_000_000
EPSILONS = (5.0, 50.0)
WIDTH = 20.0  # of the bounds [-10, 10]: the Laplace scale is WIDTH / epsilon
BASE = (0.0, 0.1, 3.0, 3.0)  # mu0, lambda, a, b
POINTS = (-5.0, 0.0, 2.5)  # where the density of Y is followed: at two modes and between modes

# Bulk ESS per second of the number of clusters of the fastest published code on these data, by (epsilon, n),
# measured on a machine of this kind: the C++ of Beraha, Favaro and Rao (2024), the better of its samplers;
# without noise (epsilon None) the best public C++ sampler of mixtures.
PUBLISHED: dict[tuple[float | None, int], float] = {
    (5.0, 200): 42.0,
    (50.0, 200): 110.0,
    (5.0, 1_000): 7.0,
    (50.0, 1_000): 9.0,
    (5.0, 5_000): 0.1,
    (50.0, 5_000): 2.0,
    (None, 200): 900.0,
    (None, 1_000): 160.0,
}
# The same authors' code under Gaussian noise, their section 4.3, by sampler, epsilon and n.
PUBLISHED_GAUSSIAN: dict[tuple[str, float, int], float] = {
    ("neal2", 5.0, 200): 214.0,
    ("neal2", 50.0, 200): 267.0,
    ("neal2", 5.0, 1_000): 5.0,
    ("neal2", 50.0, 1_000): 17.0,
    ("neal3", 5.0, 200): 71.0,
    ("neal3", 50.0, 200): 41.0,
    ("neal3", 5.0, 1_000): 2.6,
    ("neal3", 50.0, 1_000): 1.7,
    ("split_merge", 5.0, 200): 30.0,
    ("split_merge", 50.0, 200): 18.0,
}


@dataclass(frozen=True)
class Cell:
    """One measurement; `epsilon` is None without noise."""

    sampler: str
    epsilon: float | None
    n: int
    threads: int = 1
    setting: str = PLAIN

    @property
    def mechanism(self) -> str:
        """The mechanism in words."""
        return "none" if self.epsilon is None else f"eps {self.epsilon:g}"

    @property
    def name(self) -> str:
        """What --cells is matched against, as in ``slice/eps5/n1000``."""
        name = f"{self.sampler}/{self.mechanism.replace(' ', '')}/n{self.n}"
        if self.setting != PLAIN:
            name = f"{self.setting}/{name}"
        return f"{name}/threads{self.threads}" if self.threads > 1 else name

    @property
    def published(self) -> float | None:
        """ESS per second of the number of clusters of published code, where it is known."""
        if self.setting == "truncated":
            return PUBLISHED_GAUSSIAN.get((self.sampler, self.epsilon or 0.0, self.n))
        return PUBLISHED.get((self.epsilon, self.n)) if self.setting == PLAIN else None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return asdict(self)


def cells() -> list[Cell]:
    """Every cell, in the order of the table."""
    chosen = [Cell(sampler, eps, n) for eps in EPSILONS for n in SIZES for sampler in SAMPLERS]
    chosen += [Cell(sampler, None, n) for n in SIZES for sampler in WITHOUT_NOISE]
    for eps in EPSILONS:
        chosen += [Cell("slice", eps, LARGE), Cell("slice", eps, LARGE, 2), Cell("neal8", eps, LARGE)]
    chosen += [
        Cell(sampler, eps, n, setting=setting)
        for setting, eps, samplers, sizes in OTHERS
        for n in sizes
        for sampler in samplers
    ]
    return chosen


def tiny() -> list[Cell]:
    """Two cells that take no time, to see that everything works."""
    return [Cell("neal8", 5.0, 60), Cell("neal3", 5.0, 60, setting="truncated")]


def select(patterns: list[str]) -> list[Cell]:
    """Return the cells whose names contain one of `patterns` as whole parts; all without patterns.

    Raises
    ------
    ValueError
        When no cell matches a pattern.
    """
    if not patterns:
        return cells()
    chosen: list[Cell] = []
    for pattern in patterns:
        if pattern == "tiny":
            found = tiny()
        else:
            found = [cell for cell in cells() if f"/{pattern.strip('/')}/" in f"/{cell.name}/"]
        if not found:
            raise ValueError(f"no cell matches {pattern!r}; names are like {cells()[0].name}")
        chosen += [cell for cell in found if cell not in chosen]
    return chosen
