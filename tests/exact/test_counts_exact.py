"""The sampler on counts against the exact posterior of few records in coarse cells, for what it goes with.

All partitions of five or six records are enumerated, each block integrated over theta by quadrature of the
masses of its cells (`tests.helpers.counts.log_cells`). P(k), the mean density and its second moment, and the
concentration have to lie within `PRIMARY` Monte Carlo standard errors, by 200 batch means; with other seeds
some comparison of the 200 here would fail with a probability of about 0.02.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from tests.helpers import counts
from tests.oracles import cases
from tests.oracles.blocks import Table
from tests.oracles.joint import Model
from tests.oracles.mc import compare
from tests.oracles.partitions import Exact, posterior

DRAWS, THIN, BURN_IN = 20_000, 2, 300
PRIMARY = 4.5
EDGES = np.array([-3.5, -2.0, 0.0, 1.5, 4.0])
BETA = (2.0, 2.0, 2.0, 1.0, -1.0, 3.0)
BETA_EDGES = np.array([-1.0, -0.2, 0.5, 1.4, 2.0])
POINTS = np.array([-0.8, 0.1, 0.7, 1.8])
# channel, kernel, released values
RELEASES: dict[str, tuple[tuple[str, Any], str, np.ndarray]] = {
    "laplace": (("laplace", 0.7), "normal", cases.Z),
    "gaussian": (("gaussian", 0.8), "normal", cases.Z),
    "none": (("none", 0.0), "normal", cases.Z),
    "binomial": (("binomial", (8, 0.85, -2.0, 4.0)), "normal", np.array([0.0, 1.0, 4.0, 7.0, 8.0])),
    "square_wave": (
        ("square_wave", (11, 3, 6.0, -2.0, 4.0)),
        "normal",
        np.array([0.0, 3.0, 4.0, 8.0, 12.0, 16.0]),
    ),
    "laplace-beta": (("laplace", 0.6), "beta", np.array([-1.7, -0.6, 0.4, 1.6, 2.8])),
    "gaussian-beta": (("gaussian", 0.6), "beta", np.array([-1.7, -0.6, 0.4, 1.6, 2.6])),
    "none-beta": (("none", 0.0), "beta", np.array([-0.9, -0.5, 0.4, 1.6, 1.9])),
    "binomial-beta": (("binomial", (7, 0.8, -1.0, 3.0)), "beta", np.array([0.0, 1.0, 3.0, 6.0, 7.0])),
    "square_wave-beta": (
        ("square_wave", (9, 2, 8.0, -1.0, 3.0)),
        "beta",
        np.array([0.0, 2.0, 3.0, 7.0, 10.0, 12.0]),
    ),
}
FAST = ("laplace", "gaussian", "none")  # masses in closed form: twenty times the sweeps
CASES = [(name, alpha) for name in RELEASES for alpha in (1.0, cases.GAMMA)]


@functools.cache
def setting(name: str, alpha: float | tuple[float, float]) -> tuple[Model, Any, Table, Exact]:
    """Return model, counts, integrals and exact posterior of a case."""
    channel, kernel, z = RELEASES[name]
    normal = kernel == "normal"
    model = Model(channel, cases.BASE if normal else BETA, 0.0, alpha, kernel)
    edges = EDGES if normal else BETA_EDGES
    found = counts.counted(model, z, edges)
    where = z.astype(np.int64) if counts.outputs_of(model) else np.searchsorted(edges, z, side="right")
    table = counts.table(model, edges, where, cases.GRID if normal else POINTS)
    return model, found, table, posterior(table, 0.0, alpha)


def worst_gap(name: str, alpha: float | tuple[float, float], draws: int = DRAWS, seed: int = 0) -> float:
    """Largest gap to the exact posterior, in standard errors."""
    model, found, table, exact = setting(name, alpha)
    draws = draws if name in FAST else draws // 8
    chain = counts.mixture(model, found).make_chain(np.random.default_rng([2, seed, len(name)]))
    chain.keep(THIN, BURN_IN)
    chain.proceed(BURN_IN + THIN * draws)
    gaps = compare(counts.padded(chain), table, exact, 0.0)
    return max(float(np.max(np.abs(gap))) for group in gaps for gap in group.values())


@pytest.mark.parametrize(
    ("name", "alpha"),
    [pytest.param(*case, marks=() if case[0] == "laplace" else pytest.mark.matrix) for case in CASES],
)
def test_posterior_is_exact(name: str, alpha: float | tuple[float, float]) -> None:
    assert worst_gap(name, alpha) < PRIMARY
