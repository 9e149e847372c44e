"""A model of the user's own given an objective perturbation, where what a record adds depends on the release.

Records x ~ N(mu, 1) with mu ~ N(0, 2^2); released is the t at which sum tanh(x_i - t) = t + b with Laplace
noise b, the minimum of a convex objective with a random linear term. Comparisons of means are in standard
errors of 200 batch means, all below 4.5; the p-values of the joint law are compared with 1e-5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dpmix.models.custom.model import Custom, CustomChain, UserCode, build
from dpmix.models.sum_augmentation import recount
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from tests.oracles.mc import batch_means

LIMIT, LEVEL = 4.5, 1e-5
SCALE = 1.2
SAMPLERS = ["data_augmentation", "soma"]
LOCATION = """
import math
from typing import NamedTuple

class Model(NamedTuple):
    scale: float

PARAMETERS = {"mu": 0}
WIDTH = 1
SIZE = 2

def draw_prior(model, rng, theta):
    theta[0] = rng.normal(0.0, 2.0)

def draw_record(model, rng, theta, record):
    record[0] = rng.normal(theta[0], 1.0)

def draw_theta(model, rng, theta, records):
    precision = len(records) + 0.25
    theta[0] = rng.normal(records.sum() / precision, 1.0 / math.sqrt(precision))

def statistic(model, released, record, out):
    gradient = math.tanh(record[0] - released[0])
    out[0] = gradient
    out[1] = 1.0 - gradient * gradient

def log_release(model, released, sums):
    return math.log(sums[1] + 1.0) - abs(sums[0] - released[0]) / model.scale
"""


@pytest.fixture(autouse=True)
def _untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the trial of the file, which compiles every function once more."""
    monkeypatch.setattr(UserCode, "try_out", lambda *_: None)


def make(folder: Path, sampler: str, n: int, released: float = 0.0) -> Custom:
    file = folder / "location.py"
    file.write_text(LOCATION)
    spec = {
        "model": {"kind": "custom", "file": str(file), "scale": SCALE, "n": n},
        "sampler": {"kind": sampler},
    }
    release = Release(np.array([[released]]), ("t",), {"kind": "none"}, None, None, None, n, trust="global")
    return build(load_spec(spec), release, allow_code=True)


def chain_of(model: Custom, seed: int) -> CustomChain:
    chain = model.make_chain(np.random.default_rng(seed))
    assert isinstance(chain, CustomChain)
    return chain


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_posterior_is_that_of_quadrature(sampler: str, tmp_path: Path) -> None:
    t = 0.9
    x = np.linspace(-12.0, 12.0, 481)
    one, other = np.meshgrid(x, x)
    gradient = np.tanh(one - t) + np.tanh(other - t) - t
    curvature = 3.0 - np.tanh(one - t) ** 2 - np.tanh(other - t) ** 2
    level = np.exp(-np.abs(gradient) / SCALE) * curvature
    weights = np.array([d @ level @ d for d in stats.norm.pdf(x, x[:, None], 1.0)]) * stats.norm.pdf(x, 0, 2)
    weights /= weights.sum()
    draws = chain_of(make(tmp_path, sampler, 2, t), 3).run(20_000, thin=2, skip=100)["mu"]
    for function in (lambda mu: mu, lambda mu: mu**2, lambda mu: np.tanh(3 * (mu - 0.5))):
        mean, error = batch_means(function(draws))
        assert error < 0.1
        assert abs(mean - weights @ function(x)) < LIMIT * error


def released_of(rng: np.random.Generator, x: Any) -> float:
    noise = rng.laplace(0.0, SCALE)
    width = len(x) + abs(noise) + 1.0
    return float(brentq(lambda t: np.tanh(x - t).sum() - t - noise, -width, width))


@pytest.mark.parametrize(
    "sampler",
    [pytest.param(s, marks=pytest.mark.matrix if s == "soma" else ()) for s in SAMPLERS],
)
def test_joint_law_is_invariant(sampler: str, tmp_path: Path) -> None:
    n, rng = 6, np.random.default_rng(5)
    chain = chain_of(make(tmp_path, sampler, n), 7)
    released, found = chain.law.released, []
    for _ in range(1500):
        chain.theta[0] = rng.normal(0.0, 2.0)
        chain.records[:, 0] = rng.normal(chain.theta[0], 1.0, n)
        for _ in range(4):
            released.flags.writeable = True
            released[0] = released_of(rng, chain.records[:, 0])
            released.flags.writeable = False  # as compiled code has it
            recount(chain.law, chain.records, chain.tally)
            chain.sweep(2)
        x = chain.records[:, 0] - chain.theta[0]
        found.append((chain.theta[0], x.sum() / np.sqrt(n), (x**2).sum()))
    laws = (stats.norm(0.0, 2.0), stats.norm(), stats.chi2(n))
    for values, law in zip(np.array(found).T, laws, strict=True):
        assert stats.kstest(values, law.cdf).pvalue > LEVEL


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sums_kept_are_those_of_the_records_and_runs_can_be_cut(sampler: str, tmp_path: Path) -> None:
    model = make(tmp_path, sampler, 9, 0.4)
    chain = chain_of(model, 3)
    chain.keep(thin=1, skip=0)
    chain.proceed(51)
    gradient = np.tanh(chain.records[:, 0] - 0.4)
    wanted = [gradient.sum(), (1.0 - gradient**2).sum()]
    np.testing.assert_allclose(chain.tally.sums, wanted, atol=1e-12)
    level = np.log(wanted[1] + 1.0) - abs(wanted[0] - 0.4) / SCALE
    assert chain.tally.level[0] == pytest.approx(level)
    whole = chain_of(model, 3).run(60, thin=2)["mu"]
    chain, parts = chain_of(model, 3), []
    chain.keep(thin=2, skip=0)
    while chain.sweeps < 120:
        chain.proceed(min(chain.sweeps + 7, 120))
        parts.append(chain.take()["mu"][1])
        snapshot = chain.snapshot()
        chain = chain_of(model, 9)
        chain.restore(snapshot)
    np.testing.assert_array_equal(np.concatenate(parts), whole)
