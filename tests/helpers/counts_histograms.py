"""The sampler on counts given a histogram: the joint law of all that is drawn must stay as the prior makes it.

Each restart draws a concentration, clusters, parameters, counts and a release from their prior, exactly. Sweeps
then alternate with fresh releases given the counts (Geweke 2004; restarts make the test exact). Compared with
other draws of the prior: number of clusters, concentration, mean of the records' parameters, counts.

``python -m tests.helpers.counts_histograms`` does that in the interpreter, then with faults planted in the
source, and prints the smallest p-value of each as JSON.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tests.helpers import counts
from tests.helpers.counts_moves import PACKAGE
from tests.oracles import histograms, joint
from tests.oracles.joint import Model

SOURCE = PACKAGE + "source"
COUPLING = "dpmix.models.histogram_mixture.sweep"
FAULTS = {
    "multinomial ratio dropped": (SOURCE, "log(max(work.mixed[j], LEAST))", "0.0"),
    "multinomial ratio counted twice": (
        SOURCE,
        "    return log_release(source.release, source.held.noisy, 0, counts, moved)\n",
        "    return log_release(source.release, source.held.noisy, 0, counts, moved) + log_ratio(\n"
        "        work.counts, work.mixed, work.proposed, work.terms)\n",
    ),
    "the way back weighed by the counts before": (
        SOURCE,
        "counts = source.moved if after else source.held.counts",
        "counts = source.held.counts",
    ),
    "records that follow by half": (COUPLING, "min(gap / before[j], 1.0)", "min(0.5 * gap / before[j], 1.0)"),
}
"""Module, text, and what is put in its place."""
MODEL = Model(("counts", (3, "laplace", 0.8, -1.0, 3.0)), (0.3, 0.25, 2.5, 1.5), 0.0, (2.0, 2.0))
DRAWN = Model(("smoothed", (3, 0.3, -1.0, 3.0)), (0.3, 0.25, 2.5, 1.5), 0.0, (2.0, 2.0), released=9)
N = 8


def p_value(model: Model, restarts: int, rounds: int, sweeps: int, seed: int = 1) -> float:
    """Smallest p-value of what is compared after so many rounds of sweeps and releases."""
    rng = np.random.default_rng([seed, restarts])
    found, prior = [], []
    chain: Any = None
    for _ in range(restarts):
        _, theta, alpha, sizes, y = _draw(rng, model)
        z = histograms.draw_release(rng, model.channel, y, model.released)
        if chain is None:
            chain = counts.histogram(model, z, N).make_chain(rng)
        _release(chain, model, z)
        state = chain._state
        state.clusters[0] = len(sizes)
        state.sizes[: len(sizes)] = sizes
        state.theta[:, : len(sizes)] = theta
        state.floats[0] = alpha
        chain._latent[:] = histograms.count(model.channel, y)
        chain.keep(10**9, 0)
        for turn in range(rounds):
            chain.proceed((turn + 1) * sweeps)
            held = np.repeat(np.arange(3), chain._latent)
            lo, width = model.channel[1][-2:]
            places = lo + width * (held + 0.5) / 3
            _release(chain, model, histograms.draw_release(rng, model.channel, places, model.released))
        k = int(state.clusters[0])
        found.append(_say(state.sizes[:k], state.theta[:, :k], state.floats[0], chain._latent))
    for _ in range(4 * restarts):
        _, theta, alpha, sizes, y = _draw(rng, model)
        prior.append(_say(sizes, theta, alpha, histograms.count(model.channel, y)))
    pairs = zip(np.array(found).T, np.array(prior).T, strict=True)
    return min(float(stats.ks_2samp(one, other).pvalue) for one, other in pairs)


def _draw(rng: np.random.Generator, model: Model) -> tuple[Any, ...]:
    labels, theta, alpha = joint.draw_state(rng, model, N)
    y = model.law.value(joint.draw_latent(rng, model, labels, theta, 1)[:, 0])
    return labels, theta, alpha, np.bincount(labels), y


def _release(chain: Any, model: Model, z: NDArray[np.float64]) -> None:
    """Put another release into the chain's source."""
    smoothed = model.channel[0] == "smoothed"
    chain._source.release.released[:] = histograms.count(model.channel, z) if smoothed else z


def _say(sizes: Any, theta: Any, alpha: float, held: Any) -> list[float]:
    mean = float(np.sum(sizes * theta[0]) / np.sum(sizes))
    spread = float(np.sum(sizes * np.log(theta[1])) / np.sum(sizes))
    return [len(sizes), alpha, mean, spread, *held.tolist(), float(np.sum(sizes**2))]


def plant(module: str, old: str, new: str) -> None:
    """Put a fault into a module's source, of which the interpreter takes the place."""
    target = importlib.import_module(module)
    with open(str(target.__file__), encoding="utf-8") as file:
        source = file.read()
    if source.count(old) != 1:
        raise ValueError(f"{module} does not have {old!r} once")
    exec(compile(source.replace(old, new), str(target.__file__), "exec"), target.__dict__)


def main(name: str = "", restarts: int = 150, rounds: int = 6) -> float:
    """Return the smallest p-value, of right moves or with a fault of that name."""
    if name:
        plant(*FAULTS[name])
    return p_value(MODEL, restarts, rounds, 1)


if __name__ == "__main__":
    import sys

    print(json.dumps(main(*sys.argv[1:2])))
