"""The same source run by the interpreter (NUMBA_DISABLE_JIT=1) gives the same draws as when compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import samplers
from tests.helpers.seeds import rng_of
from tests.oracles.joint import Model

BASE = (0.0, 0.2, 3.0, 2.0)
CHANNELS = {"laplace": ("laplace", 0.9), "gaussian": ("gaussian", 0.9), "none": ("none", 0.0)}
# records, draws, discount, concentration; more records than fit one block of the samplers' scratch arrays
RUNS: dict[str, tuple[int, int, float, float | tuple[float, float]]] = {
    "dirichlet": (14, 12, 0.0, 1.0),
    "pitman-yor": (14, 12, 0.3, (2.0, 1.0)),
    "dirichlet-gamma": (14, 12, 0.0, (2.0, 1.0)),
    "blocks": (600, 2, 0.0, 1.0),
}
# other kernels and releases, each with one sampler: model, release, records where the release does not tell
GRID = np.linspace(-3.5, 3.5, 14)
OTHERS: dict[str, tuple[str, Model, np.ndarray]] = {
    "neal2, truncated": (
        "neal2",
        Model(("gaussian", 0.9), (*BASE, 0.81), 0.3, (2.0, 1.0), "truncated"),
        GRID,
    ),
    "neal3, truncated": ("neal3", Model(("gaussian", 0.9), (*BASE, 0.81), 0.0, 1.0, "truncated"), GRID),
    "split_merge, none": ("split_merge", Model(("none", 0.0), BASE, 0.3, 1.0), GRID),
    "neal8, binomial": (
        "neal8",
        Model(("binomial", (6, 0.8, -4.0, 8.0)), BASE, 0.0, 1.0),
        np.arange(14.0) % 7,
    ),
}
CASES = [
    (sampler, channel, run)
    for sampler in samplers.SAMPLERS
    for channel in CHANNELS
    for run in RUNS
    if channel != "none" or sampler not in samplers.NOISY
]


def is_later(sampler: str, channel: str, run: str) -> bool:
    """Whether a case is for the night: by day one sampler has all runs, each other the richest."""
    return samplers.is_later(sampler, channel) or (
        run != "pitman-yor" and (sampler, channel) != ("neal8", "laplace")
    )


def draw(sampler: str, channel: str, run: str) -> dict[str, np.ndarray]:
    """Run a short chain."""
    n, draws, discount, alpha = RUNS[run]
    z = 3.0 * np.random.default_rng(5).standard_normal(n)
    model = Model(CHANNELS[channel], BASE, discount, alpha)
    rng = rng_of("interpreted", sampler, channel, run)
    chain = samplers.chain(sampler, model, z, rng, truncation=40)
    return chain.run(draws, thin=2, allocations=True)


def draw_other(name: str) -> dict[str, np.ndarray]:
    """Run a short chain of one of `OTHERS`."""
    sampler, model, z = OTHERS[name]
    rng = rng_of("interpreted", name)
    return samplers.chain(sampler, model, z, rng, truncation=20, n=14).run(8, thin=2, allocations=True)


@pytest.fixture(scope="session")  # tests of a module may be run among those of others
def interpreted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, np.ndarray]:
    """The chains of the chosen cases of this file, from a process in which numba compiles nothing."""
    target = tmp_path_factory.mktemp("jit") / "draws.npz"
    own = [item for item in request.session.items if item.path == Path(__file__)]
    names = [item.callspec.id for item in own if isinstance(item, pytest.Function)]
    subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.robust.test_jit_disabled", str(target), *names],
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    with np.load(target) as stored:
        return dict(stored)


@pytest.mark.parametrize(
    ("sampler", "channel", "run"),
    [
        pytest.param(*case, id="-".join(case), marks=pytest.mark.matrix if is_later(*case) else ())
        for case in CASES
    ],
)
def test_compiled_draws_equal_interpreted(
    sampler: str, channel: str, run: str, interpreted: dict[str, np.ndarray]
) -> None:
    compiled = draw(sampler, channel, run)
    assert set(compiled) >= {"n_clusters", "concentration", "weights", "mean", "variance", "log_likelihood"}
    assert_equal(compiled, interpreted, f"{sampler}/{channel}/{run}")


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c, marks=pytest.mark.matrix if c != "neal2, truncated" else ()) for c in OTHERS],
)
def test_compiled_draws_of_other_kernels_equal_interpreted(
    case: str, interpreted: dict[str, np.ndarray]
) -> None:
    assert_equal(draw_other(case), interpreted, case)


def assert_equal(compiled: dict[str, np.ndarray], interpreted: dict[str, np.ndarray], case: str) -> None:
    for name, values in compiled.items():
        other = interpreted[f"{case}/{name}"]
        if values.dtype.kind in "iu":
            np.testing.assert_array_equal(values, other, err_msg=name)
        else:
            np.testing.assert_allclose(values, other, rtol=1e-9, atol=1e-300, err_msg=name)


if __name__ == "__main__":
    import numba

    assert numba.config.DISABLE_JIT
    chosen = set(sys.argv[2:])
    found = {
        f"{'/'.join(case)}/{name}": values
        for case in CASES
        if "-".join(case) in chosen
        for name, values in draw(*case).items()
    }
    found |= {
        f"{case}/{name}": values
        for case in OTHERS
        if case in chosen
        for name, values in draw_other(case).items()
    }
    np.savez(sys.argv[1], **found)
