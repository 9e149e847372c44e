"""Intervals of released posteriors, as they are and with the mechanism accounted for: docs/posterior.md.

``.venv/bin/python scripts/released.py [PICTURE.png]`` prints the table there, by sums over all counts and all
releases (no simulation), and draws its picture.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from scipy import stats

from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.posterior.curator import HellingerPosterior
from dpmix.mechanisms.posterior.section import PosteriorMechanism
from dpmix.store.html import _STYLE, BLUE, GREEN, ORANGE, picture

MECHANISMS: dict[str, dict[str, Any]] = {
    "hellinger, epsilon = 0.8": {"epsilon": 0.8, "delta": 1e-8, "method": "hellinger"},
    "geometric, epsilon = 0.8": {"epsilon": 0.8, "method": "geometric"},
    "geometric, epsilon = 0.2": {"epsilon": 0.2, "method": "geometric"},
}
SIZES = (30, 100, 300, 1000)
PANELS = (("hellinger, epsilon = 0.8", 100, 60), ("geometric, epsilon = 0.2", 100, 60))
GRID = np.linspace(0.0, 1.0, 4001)


def laws(n: int, stated: dict[str, Any]) -> np.ndarray:
    """Return the probabilities of all releases (column) given all counts (row), prior Beta(1, 1)."""
    spec = PosteriorMechanism(kind="posterior", prior=(1.0, 1.0), **stated)
    made: Any = from_spec(spec, 1, n, ("x",))
    counts = np.arange(n + 1)
    if isinstance(made, HellingerPosterior):
        weights = np.array([made.law.weights((c, n - c)) for c in counts.tolist()])
        return weights / weights.sum(axis=1, keepdims=True)
    ratio = np.exp(-1 / made.s)
    found = (1 - ratio) / (1 + ratio) * ratio ** np.abs(counts[:, None] - counts)
    found[:, 0], found[:, n] = ratio**counts / (1 + ratio), ratio ** (n - counts) / (1 + ratio)
    return found


def row(n: int, stated: dict[str, Any]) -> tuple[float, float, float]:
    """Return coverage and length of the released 95% interval, and its length once all is accounted for."""
    law, counts = laws(n, stated), np.arange(n + 1)
    given = law / law.sum(axis=0)  # counts are uniform under Beta(1, 1)
    beta = stats.beta(1 + counts, 1 + n - counts)
    low, high = beta.ppf(0.025), beta.ppf(0.975)
    each = stats.beta(1 + counts[:, None], 1 + n - counts[:, None])
    inside = (given * (each.cdf(high) - each.cdf(low))).sum(axis=0)
    mixed = given.T @ each.cdf(GRID)
    ends = [np.array([np.interp(tail, curve, GRID) for curve in mixed]) for tail in (0.025, 0.975)]
    often = law.mean(axis=0)
    return float(often @ inside), float(often @ (high - low)), float(often @ (ends[1] - ends[0]))


def draw() -> Figure:
    """Draw released posteriors beside what they say once the mechanism is accounted for."""
    with rc_context(_STYLE):
        figure = Figure(figsize=(8.4, 3.0), layout="constrained")
        for axes, (name, n, r) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
            law, counts = laws(n, MECHANISMS[name]), np.arange(n + 1)
            given = law[:, r] / law[:, r].sum()
            grid = GRID[1:-1]
            accounted = given @ stats.beta(1 + counts[:, None], 1 + n - counts[:, None]).pdf(grid)
            axes.axhline(1.0, color=ORANGE, lw=1.4, ls=(0, (5, 2)), label="prior")
            axes.plot(grid, accounted, color=GREEN, lw=1.6, ls="-.", label="mechanism accounted for")
            axes.plot(
                grid, stats.beta(1 + r, 1 + n - r).pdf(grid), color=BLUE, lw=1.8, label="released posterior"
            )
            axes.set(xlim=(0, 1), ylim=(0, None), xlabel="probability", title=f"{name}, {r} of {n} released")
            axes.title.set_fontsize(9)
        figure.axes[0].set_ylabel("density")
        figure.axes[0].legend(loc="upper left")
    return figure


if __name__ == "__main__":
    print("| method | n | coverage of the released 95% interval | its length | length, accounted for |")
    print("|---|---|---|---|---|")
    for name, stated in MECHANISMS.items():
        for n in SIZES:
            coverage, length, accounted = row(n, stated)
            print(f"| {name} | {n} | {coverage:.2f} | {length:.3f} | {accounted:.3f} |", flush=True)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_bytes(picture(draw(), "png"))
