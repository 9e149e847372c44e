"""Releases of compositions that tests fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.mechanisms.log_moments.law import exact_width
from dpmix.release.sanitized import Release

__all__ = ["Choice", "grouped_release", "log_moments_release", "stated_groups", "stated_release"]

Floats = NDArray[np.float64]


class Choice(NamedTuple):
    """Thresholds, noisy scores that one was chosen by, and the epsilon of these."""

    thresholds: tuple[float, ...]
    scores: tuple[float, ...]
    epsilon: float

    def stated(self) -> dict[str, Any]:
        """Return what the law of a release says of it."""
        return {
            "thresholds": list(self.thresholds),
            "scores": list(self.scores),
            "epsilon2": self.epsilon,
        }

    def counts(self, logs: Floats) -> Floats:
        """Count the records, logarithms (d, .., n), that each threshold is the first to leave whole."""
        least = logs.min(axis=0)
        left = np.stack([(least >= np.log(a)).sum(axis=-1) for a in self.thresholds], axis=-1)
        return np.asarray(np.diff(left, prepend=0, axis=-1), dtype=np.float64)

    def noise(self, rng: np.random.Generator) -> Floats:
        """Draw two-sided geometric noise."""
        leave = 1.0 - np.exp(-self.epsilon / 2.0)
        both = rng.geometric(leave, (2, len(self.thresholds)))
        return np.asarray(both[0] - both[1], dtype=np.float64)


def stated_release(
    values: Sequence[float],
    sizes: Sequence[int],
    threshold: float,
    scales: Sequence[float],
    choice: Choice | None = None,
) -> Release:
    """Return a release of log_moments with these noisy means, one part after the other, and scores."""
    d = len(values) // len(sizes)
    mechanism = {
        "kind": "log_moments",
        "columns": [f"c{j + 1}" for j in range(d)],
        "components": d,
        "threshold": threshold,
        "parts": list(sizes),
        "scale": list(scales),
        **({} if choice is None else choice.stated()),
    }
    return Release(
        values=np.array(values, dtype=np.float64)[:, None],
        columns=("statistic",),
        mechanism=mechanism,
        epsilon=max(exact_width(threshold, d) / (n * b) for n, b in zip(sizes, scales, strict=True)),
        delta=0.0,
        rho=None,
        n=sum(sizes),
        adjacency="replacement",
        trust="global",
        private=False,
        simulated=True,
    )


def log_moments_release(
    alpha: Sequence[float], sizes: Sequence[int], threshold: float, epsilon: float, seed: int
) -> Release:
    """Return the release of compositions drawn given alpha, in parts of these sizes."""
    rng = np.random.default_rng(seed)
    values, scales = [], []
    for size in sizes:
        shares = rng.dirichlet(alpha, size)
        scales.append(exact_width(threshold, len(alpha)) / size / epsilon)
        means = np.log(np.maximum(shares, threshold)).mean(axis=0)
        values.extend(means + rng.laplace(0.0, scales[-1], len(alpha)))
    return stated_release(values, sizes, threshold, scales)


def grouped_release(
    alphas: Sequence[Sequence[float]],
    sizes: Sequence[int],
    threshold: float,
    epsilon: float,
    seed: int,
    *,
    kappa: float = 2.0,
) -> Release:
    """Return the release of compositions of groups of these sizes, which it does not tell, and alphas."""
    rng = np.random.default_rng(seed)
    centre, d = 0.5 * np.log(threshold), len(alphas[0])
    sensitivity = -d * np.log(threshold) + kappa * (1 if len(sizes) == 2 else 2)
    scales = sensitivity / epsilon / kappa, sensitivity / epsilon
    sums = [
        (np.log(np.maximum(rng.dirichlet(alpha, size), threshold)) - centre).sum(axis=0)
        for alpha, size in zip(alphas, sizes, strict=True)
    ]
    noisy_sizes = sizes[:-1] + rng.laplace(0.0, scales[0], len(sizes) - 1)
    noisy_sums = np.concatenate(sums) + rng.laplace(0.0, scales[1], len(sizes) * d)
    return stated_groups([*noisy_sizes, *noisy_sums], sum(sizes), len(sizes), threshold, scales, epsilon)


def stated_groups(
    values: Sequence[float],
    n: int,
    groups: int,
    threshold: float,
    scales: Sequence[float],
    epsilon: float = 1.0,
    choice: Choice | None = None,
) -> Release:
    """Return a release of log_moments of groups with these noisy sizes and sums, centred."""
    d = (len(values) - groups + 1) // groups
    mechanism = {
        "kind": "log_moments",
        "columns": [f"c{j + 1}" for j in range(d)],
        "components": d,
        "threshold": threshold,
        "parts": [n],
        "scale": list(scales),
        "noise": "laplace",
        "kappa": scales[1] / scales[0],
        "centre": 0.5 * float(np.log(threshold)),
        "groups": {"sex": [*"ABCDE"[:groups]]},
        **({} if choice is None else choice.stated()),
    }
    return Release(
        values=np.array(values, dtype=np.float64)[:, None],
        columns=("statistic",),
        mechanism=mechanism,
        epsilon=epsilon,
        delta=0.0,
        rho=None,
        n=n,
        adjacency="replacement, private groups",
        trust="global",
        private=False,
        simulated=True,
    )
