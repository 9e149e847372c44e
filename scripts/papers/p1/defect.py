"""What a known defect of the paper's public code does, on its own largest example.

In that code (Neal 5, Neal 2 and the slice) the parameters of the first cluster are drawn from the prior in
every sweep, whatever its records. Here Neal 5 runs once as it should, and once with that defect planted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import dpmix
from dpmix.kernels import NormalNIG
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.numerics.mixing import PitmanYor
from dpmix.samplers import Algorithm, Chain
from papers import draw, truth
from papers.p1.cells import CONFIGS, Size

__all__ = ["compute"]

N, EPSILON = 1000, 5.0
BASE = (0.0, 0.1, 3.0, 3.0)  # mu0, lambda, a, b
GRID = np.linspace(-10.0, 10.0, 200)
LONGEST = 4_000  # sweeps: each goes through Python

Floats = NDArray[np.float64]


def compute(folder: Path, size: Size) -> dict[str, Any]:
    """Run Neal 5 with and without the defect, draw both, and return their distances and modes."""
    sweeps, target = min(size.sweeps, LONGEST), folder / "defect.json"
    if target.exists():
        known: dict[str, Any] = json.loads(target.read_text())
        if known["sweeps"] == sweeps:
            return known
    settings = [f"data.n={N}", "data.seed=1", f"mechanism.epsilon={EPSILON}"]
    release = dpmix.privatize(CONFIGS / "laplace_normal.yaml", overrides=settings, quiet=True)
    z, noise = release.values[:, 0].copy(), LaplaceNoise(float(release.scales[0]))
    found: dict[str, Any] = {"n": N, "epsilon": EPSILON, "sweeps": sweeps}
    for name, planted in (("as it should be", False), ("first cluster from the prior", True)):
        density = _density(z, noise, sweeps, planted)
        result = {"density": {"grid": GRID.tolist(), "mean": density.tolist()}}
        result["modes"] = truth.modes(result)
        result["hellinger_to_truth"] = truth.distance(result, "three_gaussians")
        found[name] = result
    target.write_text(json.dumps(found))
    title = f"Neal 5 with the defect of the public code, n = {N}, ε = {EPSILON:g}"
    with draw.panels(folder / "defect.png", 1, 1, title, (4.5, 2.6)) as (figure, axes):
        for number, name in enumerate(("as it should be", "first cluster from the prior")):
            draw.curve(axes[0, 0], found[name], name, number)
        draw.true_line(axes[0, 0], found[name], "three_gaussians")
        draw.legend(figure, axes[0, 0])
    return found


def _density(z: Floats, noise: LaplaceNoise, sweeps: int, planted: bool) -> Floats:
    """Return the mean predictive density of the second half of the sweeps, shape (g,)."""
    rng = np.random.default_rng(1)
    chain = Chain(z, noise, NormalNIG(*BASE), PitmanYor(1.0, 0.0), Algorithm("private_neal5"), rng)
    mu0, lam, a, b = BASE
    prior = stats.t.pdf(GRID, 2 * a, mu0, np.sqrt(b * (lam + 1.0) / (a * lam)))
    total = np.zeros_like(GRID)
    for sweep in range(sweeps):
        chain.advance(1)
        labels, theta = chain.allocations, chain.theta.copy()
        if planted:
            variance = b / rng.gamma(a)
            theta[:, 0] = rng.normal(mu0, np.sqrt(variance / lam)), variance
            chain.set_state(labels, theta, chain.concentration, chain.latent)
        if sweep >= sweeps // 2:
            shares = np.bincount(labels, minlength=theta.shape[1]) / (len(z) + 1.0)
            total += shares @ stats.norm.pdf(GRID, theta[0][:, None], np.sqrt(theta[1])[:, None])
            total += prior / (len(z) + 1.0)
    return total / (sweeps - sweeps // 2)
