"""Simulation-based calibration of a sampler (Talts et al. 2018; Modrák et al. 2023), as run by scripts/sbc.

Each replicate draws the mixture and a release from their joint law, runs a chain from the sampler's own
start, and ranks the true value of each quantity among the chain's. If the sampler is right the ranks are
uniform; their ECDF is held against a simultaneous 95% band. Only quantities that no labelling of the clusters
changes are ranked.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpmix.channels import log_marginal
from dpmix.kernels import NormalNIG
from tests import samplers
from tests.oracles.ecdf import band, p_value
from tests.oracles.joint import Model, draw_latent, draw_release, draw_state
from tests.oracles.kernels import prior_predictive_pdf

BASE = (0.0, 0.1, 3.0, 2.0)
CHANNELS = {"laplace": ("laplace", 1.0), "gaussian": ("gaussian", 1.0), "none": ("none", 0.0)}
POINTS = np.array([-4.0, 0.0, 4.0])
DRAWS = 99  # kept a chain, so that a rank is one of 100
# sweeps dropped, then between kept draws: nearly independent draws are what makes ranks uniform
SWEEPS = {
    "neal8": (300, 10),
    "slice": (500, 15),
    "slice-metropolis": (1500, 60),
    "blocked": (400, 10),
    "blocked-metropolis": (600, 20),
    "neal5": (1500, 60),
}


def sweeps_of(sampler: str) -> tuple[int, int]:
    """Sweeps before the first kept draw, and between kept draws."""
    return SWEEPS.get(sampler) or SWEEPS[sampler.split("-")[0]]


def quantities(model: Model, draws: dict[str, Any], z: Any) -> dict[str, Any]:
    """Values to rank, (draw,); the density is that of the drawn measure, its leftover mass spread as f0."""
    labels, rows = draws["allocations"], np.arange(len(draws["allocations"]))
    mean, var = draws["mean"], draws["variance"]
    left = 1.0 - np.nansum(draws["weights"], axis=1)
    out = {
        "clusters": draws["n_clusters"],
        "records with the first": (labels == labels[:, :1]).sum(axis=1),
        "mean of the first": mean[rows, labels[:, 0]],
        "variance of the first": var[rows, labels[:, 0]],
        "log likelihood": draws["log_likelihood"],
    }
    for y in POINTS:
        kernel = np.exp(-0.5 * (y - mean) ** 2 / var) / np.sqrt(2 * np.pi * var)
        density = np.nansum(draws["weights"] * kernel, axis=1) + left * prior_predictive_pdf(model.base, y)
        out[f"density at {y:g}"] = density
    if isinstance(model.alpha, tuple):
        out["concentration"] = draws["concentration"]
    return out


def truth(model: Model, channel: Any, n: int, rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """Draw the joint law: one state under the names of a chain's draws, and its release."""
    labels, theta, alpha = draw_state(rng, model, n)
    z = draw_release(rng, model, draw_latent(rng, model, labels, theta, 1))
    k = theta.shape[1]
    shares = rng.standard_gamma(np.append(np.bincount(labels) - model.discount, alpha + k * model.discount))
    kernel = NormalNIG(*model.base)
    log_lik = sum(log_marginal(channel, kernel, z[i], theta, labels[i]) for i in range(n))
    state = {
        "n_clusters": np.array([k]),
        "concentration": np.array([alpha]),
        "weights": (shares / shares.sum())[None, :k],
        "mean": theta[:1],
        "variance": theta[1:],
        "allocations": labels[None],
        "log_likelihood": np.array([log_lik]),
    }
    return state, z


def calibrate(sampler: str, model: Model, n: int, replicates: int, seed: int) -> dict[str, Any]:
    """Ranks 0..DRAWS of every quantity, ties broken at random, {name: (replicates,)}."""
    ranks: dict[str, list[int]] = {}
    burn_in, thin = sweeps_of(sampler)
    # every sampler and channel gets releases of its own, so that their results are independent
    entropy = [seed, *f"{sampler} {model.channel[0]}".encode()]
    for child in np.random.SeedSequence(entropy).spawn(replicates):
        rng = np.random.default_rng(child)
        channel = samplers.channel(model)
        state, z = truth(model, channel, n, rng)
        chain = samplers.chain(sampler, model, z, rng)
        chain.advance(burn_in)
        found = quantities(model, chain.run(DRAWS, thin=thin, allocations=True), z)
        for name, value in quantities(model, state, z).items():
            # sums of 30 logarithms in two orders differ in the last place: a tie is one to 1e-12
            below = np.sum(found[name] < value[0])
            ties = np.sum(found[name] == value[0])
            ranks.setdefault(name, []).append(int(below + rng.integers(0, ties + 1)))
    return {name: np.array(values) for name, values in ranks.items()}


def plot(ranks: dict[str, Any], title: str, path: Path) -> None:
    """Draw the ECDF differences of all quantities over their simultaneous 95% band."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams.update({"svg.hashsalt": "dpmix", "svg.fonttype": "none"})
    points, n = DRAWS + 1, len(next(iter(ranks.values())))
    _, low, high = band(0.95, n, points)
    z = np.arange(1, points) / points
    figure, axes = plt.subplots(3, 3, figsize=(8.5, 6.2), sharex=True, sharey=True, layout="constrained")
    for axis, (name, values) in zip(axes.flat, ranks.items(), strict=False):
        counts = np.cumsum(np.bincount(values, minlength=points))[:-1]
        axis.fill_between(z, low / n - z, high / n - z, color="#c6dbef", linewidth=0)
        axis.axhline(0.0, color="#6b7280", linewidth=0.6)
        axis.step(z, counts / n - z, where="mid", color="#b2182b", linewidth=1.1)
        axis.set_title(f"{name}  (p = {p_value(values, points):.2g})", fontsize=9)
        axis.tick_params(labelsize=8)
    for axis in axes.flat[len(ranks) :]:
        axis.set_visible(False)
    figure.suptitle(title, fontsize=11)
    figure.supxlabel("rank of the true value", fontsize=9)
    figure.supylabel("ECDF difference", fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    # a tenth of a point is finer than any screen; the paths are most of the file
    path.write_text(re.sub(r"(\d+\.\d)\d+", r"\1", path.read_text(encoding="utf-8")), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; exit 1 if a rank distribution is not uniform at a family-wise 1% level."""
    parser = argparse.ArgumentParser(prog="scripts/sbc", description="Calibration of samplers by simulation.")
    parser.add_argument("sampler", choices=[*samplers.SAMPLERS, "all"])
    parser.add_argument("--channel", choices=[*CHANNELS, "all"], default="laplace")
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="50 replicates of 12 records")
    parser.add_argument("--records", type=int, default=30)
    parser.add_argument("--discount", type=float, default=0.2)
    parser.add_argument("--concentration", type=float, help="fixed; default: a Gamma(2, 2) prior")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plots", type=Path, help="folder for one picture a sampler and channel")
    options = parser.parse_args(arguments)
    replicates, n = (50, 12) if options.quick else (options.replicates, options.records)
    alpha = options.concentration or (2.0, 2.0)
    results = []
    for channel in CHANNELS if options.channel == "all" else [options.channel]:
        for sampler in samplers.SAMPLERS if options.sampler == "all" else [options.sampler]:
            if channel == "none" and sampler in samplers.NOISY:
                continue
            start = time.perf_counter()
            model = Model(CHANNELS[channel], BASE, options.discount, alpha)
            ranks = calibrate(sampler, model, n, replicates, options.seed)
            p_values = {name: p_value(values, DRAWS + 1) for name, values in ranks.items()}
            result = {
                "sampler": sampler,
                "channel": channel,
                "records": n,
                "replicates": replicates,
                "seconds": round(time.perf_counter() - start, 1),
                "p_values": {name: float(f"{p:.3g}") for name, p in p_values.items()},
                "inside_95_band": sum(p > 0.05 for p in p_values.values()),
            }
            results.append(result)
            print(json.dumps(result), flush=True)
            if options.plots:
                options.plots.mkdir(parents=True, exist_ok=True)
                title = f"{sampler}, {channel}: {replicates} replicates of {n} records"
                plot(ranks, title, options.plots / f"sbc_{sampler}_{channel}.svg")
    smallest = [p for result in results for p in result["p_values"].values()]
    if not smallest:
        print(f"{options.sampler} needs noise, and channel none has none", file=sys.stderr)
        return 2
    uniform = min(smallest) > 0.01 / len(smallest)
    verdict = "uniform" if uniform else "NOT uniform"
    print(f"smallest of {len(smallest)} p-values: {min(smallest):.2g}: {verdict}")
    return 0 if uniform else 1


if __name__ == "__main__":
    sys.exit(main())
