"""A stranger adds a mechanism, a kernel and a sampler, each from one file by one registration.

Chains are held against the law of all partitions of the records, with the parameters integrated out by
quadrature: of what the files in `tests/robust/stranger` state, and of nothing that is theirs.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from dpmix.store import h5

ROOT = Path(__file__).parents[2]
Z = (-2.1, -0.4, 0.3, 1.9)
NIG = {"mu0": 0.2, "lambda": 0.4, "a": 3.0, "b": 1.5}
RUN = {"iterations": 12_000, "burn_in": 2_000, "chains": 2, "seed": 11, "auxiliary": 2}
PAIRLESS = (
    "beta does not go with a uniform_noise release: log_marginal is not registered for UniformNoise and Beta"
    "; of kernels it goes with "
)
UNTALLIED = "a uniform_noise release has no tally, for how likely its values are in cells is not known here"
UNADVISED = "mechanism.kind: what uniform_noise tells of a density is not known here; choose another"
Floats = NDArray[np.float64]


def normal(x: Floats | float, mean: Floats | float, sd: Floats | float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2.0 * math.pi)))


def under_uniform_noise() -> tuple[Floats, Floats, Floats]:
    """Return weights of the prior, means, and densities (n, nodes) under noise within 0.8, of a NIG base."""
    nodes, weights = np.polynomial.legendre.leggauss(160)
    log_variance = 2.0 + 6.5 * nodes  # variances from 0.011 to 4,900
    variance = np.exp(log_variance)
    a, b = NIG["a"], NIG["b"]
    density = np.exp(a * math.log(b) - special.gammaln(a) - a * log_variance - b / variance)
    t, by_t = np.polynomial.hermite_e.hermegauss(120)
    sd = np.sqrt(variance)[:, None]
    mean = NIG["mu0"] + sd / math.sqrt(NIG["lambda"]) * t
    prior = 6.5 * (weights * density)[:, None] * by_t / math.sqrt(2.0 * math.pi)
    g = [(special.ndtr((z + 0.8 - mean) / sd) - special.ndtr((z - 0.8 - mean) / sd)) / 1.6 for z in Z]
    return prior.ravel(), mean.ravel(), np.stack(g).reshape(len(Z), -1)


def under_gaussian_noise() -> tuple[Floats, Floats, Floats]:
    """Return the same of normals of sd 0.5 with means N(0.2, 1.5^2) under Gaussian noise of sd 0.7."""
    mean = np.linspace(-12.0, 12.0, 4001)
    prior = normal(mean, 0.2, 1.5) * (mean[1] - mean[0])
    return prior, mean, np.stack([normal(z, mean, math.hypot(0.5, 0.7)) for z in Z])


def under_uniform_noise_of_one_spread() -> tuple[Floats, Floats, Floats]:
    """Return the same of these normals under noise within 0.8."""
    mean = np.linspace(-12.0, 12.0, 4001)
    prior = normal(mean, 0.2, 1.5) * (mean[1] - mean[0])
    g = [(special.ndtr((z + 0.8 - mean) / 0.5) - special.ndtr((z - 0.8 - mean) / 0.5)) / 1.6 for z in Z]
    return prior, mean, np.stack(g)


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Yield the labels of all partitions, by order of appearance."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(n):
        found = [(*each, k) for each in found for k in range(max(each, default=-1) + 2)]
    yield from found


def posterior(parts: tuple[Floats, Floats, Floats]) -> tuple[dict[tuple[int, ...], float], float]:
    """Return the law of partitions at concentration 1, and the posterior mean of a record's mean."""
    prior, means, densities = parts
    assert prior.sum() == pytest.approx(1.0, abs=1e-6)
    centre, weight, records = float(prior @ means), {}, {}
    for labels in partitions(len(Z)):
        total, at = 1.0, centre
        for k in range(max(labels) + 1):
            members = [i for i, label in enumerate(labels) if label == k]
            each = prior * densities[members].prod(axis=0)
            total *= math.gamma(len(members)) * each.sum()
            at += len(members) * float(each @ means) / each.sum()
        weight[labels], records[labels] = total, at / (len(Z) + 1.0)
    scale = sum(weight.values())
    law = {labels: each / scale for labels, each in weight.items()}
    return law, sum(law[labels] * records[labels] for labels in law)


def likelihoods_of(
    state: dict[str, Any], parts: tuple[Floats, Floats, Floats], mechanism: dict[str, Any]
) -> Floats:
    """Return the densities of the released values (n,) under a saved state."""
    weights, (mean, sd), rest = np.array(state["weights"]), np.array(state["atoms"]), state["rest"][0]
    z = np.array(Z)[:, None]
    if "half_width" in mechanism:
        w = mechanism["half_width"]
        each = (special.ndtr((z + w - mean) / sd) - special.ndtr((z - w - mean) / sd)) / (2.0 * w)
    else:
        each = normal(z, mean, np.hypot(sd, mechanism["scale"]))
    return np.asarray(each @ weights + rest * (parts[2] @ parts[0]))


UNIFORM = {"kind": "uniform_noise", "half_width": 0.8, "domain": [-3.0, 3.0]}
KNOWN_SPREAD = {
    "kernel": "known_spread",
    "within": 0.5,
    "base": {"mu0": 0.2, "sd": 1.5},
    "concentration": 1.0,
}
CASES: dict[str, tuple[list[str], dict[str, Any], Callable[[], tuple[Floats, Floats, Floats]]]] = {
    "all at once": (
        ["uniform_noise", "pair", "restaurant"],
        {"mechanism": UNIFORM, "model": KNOWN_SPREAD, "sampler": {"kind": "restaurant", **RUN}},
        under_uniform_noise_of_one_spread,
    ),
    "mechanism and sampler": (
        ["uniform_noise", "restaurant"],
        {
            "mechanism": UNIFORM,
            "model": {"kernel": "normal", "base": NIG, "concentration": 1.0},
            "sampler": {"kind": "restaurant", **RUN},
        },
        under_uniform_noise,
    ),
    "kernel": (
        ["known_spread"],
        {
            "mechanism": {"kind": "gaussian", "scale": 0.7, "domain": [-3.0, 3.0]},
            "model": KNOWN_SPREAD,
            "sampler": {"kind": "neal8", **RUN},
        },
        under_gaussian_noise,
    ),
}
"""What is registered, the spec, and the exact law of the released values; each but the first at night."""


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python beside a folder for what is registered: in this process it would meet all tests."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case == "all at once" else pytest.mark.matrix) for case in CASES]
)
def test_what_a_stranger_adds_is_fitted_to_the_exact_posterior(case: str, tmp_path: Path) -> None:
    modules, spec, parts = CASES[case]
    (tmp_path / "y.csv").write_text("y\n" + "\n".join(str(z) for z in Z) + "\n")
    (tmp_path / "z.csv").write_text("z\n" + "\n".join(str(z) for z in Z) + "\n")
    stated = spec | {"release": {"path": str(tmp_path / "z.csv"), "column": "z"}}
    done = run(
        ["-m", "tests.robust.stranger", str(tmp_path), ",".join(modules), json.dumps(stated)], tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    law, mean = posterior(parts())
    with h5.reading(tmp_path / "chains.h5") as file:
        kept = file["posterior/allocations"][:].reshape(-1, len(Z))
    rows, counts = np.unique(kept, axis=0, return_counts=True)
    seen = dict.fromkeys(law, 0.0)
    for row, count in zip(rows, counts, strict=True):
        order = {label: k for k, label in enumerate(dict.fromkeys(row.tolist()))}
        seen[tuple(order[label] for label in row.tolist())] += count / len(kept)
    assert 0.5 * sum(abs(seen[each] - law[each]) for each in law) < 0.025
    found = json.loads((tmp_path / "found.json").read_text())
    said = found["summary"]["parameters"]["mean"]
    assert abs(said["mean"] - mean) < 5.0 * said["mcse"]
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<html" in page and "The histogram shows the released values, which carry the mechanism" in page
    check = found["summary"]["check"]  # of releases drawn anew by the law
    assert check["replicates"] == 200 and 0.0 < check["p"] <= 1.0
    with h5.reading(tmp_path / "chains.h5") as file:
        assert file["log_likelihood/z"].shape[-1] == len(Z)
    for state, logs in zip(found["likelihoods"]["states"], found["likelihoods"]["logs"], strict=True):
        exact = likelihoods_of(state, parts(), spec["mechanism"])
        np.testing.assert_allclose(logs, np.log(exact), atol=0.05)  # draws stand for the base measure
    assert found["kind"] == spec["mechanism"]["kind"] and len(found["values"]) == len(Z)
    if "uniform_noise" in modules:
        known = "NormalNIG or KnownSpread" if "pair" in modules else "NormalNIG"
        of_file, of_table = f"{tmp_path / 'release.h5'}: {UNTALLIED}", f"mechanism.kind: {UNTALLIED}"
        refused = [f"model.kernel: {PAIRLESS}{known}", UNADVISED, of_file, of_table]
        assert list(found["refused"]) == refused
        assert found["words"].startswith("uniform noise with half_width = 0.8 over [-3, 3]")
        assert found["guarantee"] == [None, None, None]
        assert all(min(abs(z - y) for y in Z) <= 0.8 for z in found["values"])
        assert "in the cells at the ends" not in " ".join(found["summary"]["warnings"])
