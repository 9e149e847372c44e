"""Releases of compositions that tests fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmix.log_widths import exact_width
from dpmix.release import Release

__all__ = ["log_moments_release", "stated_release"]

Floats = NDArray[np.float64]


def stated_release(
    values: Sequence[float], sizes: Sequence[int], threshold: float, scales: Sequence[float]
) -> Release:
    """Return a release of log_moments with these noisy means, one part after the other."""
    d = len(values) // len(sizes)
    mechanism = {
        "kind": "log_moments",
        "columns": [f"c{j + 1}" for j in range(d)],
        "components": d,
        "threshold": threshold,
        "parts": list(sizes),
        "scale": list(scales),
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
