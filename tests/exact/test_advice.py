"""Advice by information against fits to simulated releases: within 20%, and what simulation leaves open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dpmix
from dpmix.advising.population import QUANTITIES
from dpmix.api.advise import laws_of
from dpmix.spec import load_spec

POPULATION = {"kind": "beta", "a": 5.0, "b": 2.0}
NAMES = ("mean", "quantile[0.5]", "quantile[0.25]", "quantile[0.75]")


def spec_of(kind: str, epsilon: float) -> dict[str, Any]:
    mechanism: dict[str, Any] = {"kind": kind, "epsilon": epsilon, "domain": [0.0, 1.0]}
    mechanism |= {
        "gaussian": {"delta": 1e-6},
        "square_wave": {"cells": 64},
        "perturbed_histogram": {"bins": 32},
    }.get(kind, {})
    return {"mechanism": mechanism, "model": {"kind": "mixture"}}


def fitted(kind: str, epsilon: float, n: int, seed: int, tmp_path: Path) -> list[float]:
    """Return the posterior standard deviations of a fit to a simulated release, and the band's width."""
    spec = spec_of(kind, epsilon)
    law = laws_of(load_spec(spec), (0.0, 1.0), [epsilon], [n], [kind], [])[0][3]
    rng = np.random.default_rng([n, seed])
    y = rng.beta(5.0, 2.0, n)
    if law.trust == "global":
        histogram: Any = law
        z = histogram.draw_from_counts(np.histogram(y, histogram.edges())[0].astype(float), rng)
        spec["mechanism"]["n"] = n
    else:
        z = law.draw(y, law.scale[0] if law.scale else 0.0, rng)
    np.savetxt(tmp_path / "z.csv", z, header="z", comments="")
    spec["release"] = {"path": str(tmp_path / "z.csv"), "columns": ["z"]}
    spec["sampler"] = {"kind": "counts", "iterations": 1_500, "burn_in": 500, "chains": 1, "seed": seed}
    chains = tmp_path / "chains.h5"
    dpmix.fit(spec, output=chains, quiet=True, force=True)
    found = dpmix.summarize([chains]).to_json()
    density = found["density"]
    width = np.subtract(density["upper"], density["lower"])
    sds = [found["parameters"][name]["sd"] for name in NAMES]
    return [*sds, float(np.trapezoid(width, density["grid"]))]


MANY = 8  # releases, by which the error of their mean is known, too


def check(kind: str, epsilon: float, n: int, replicates: int, tmp_path: Path) -> None:
    asked = spec_of(kind, epsilon) | {"advise": {"population": POPULATION}}
    (row,) = dpmix.advise(asked, epsilon=epsilon, n=n, mechanism=kind, quiet=True).rows
    assert min(value for value in row.contraction.values() if value is not None) > 0.5
    fits = [fitted(kind, epsilon, n, seed, tmp_path) for seed in range(replicates)]
    expected = [*(row.sd[name] for name in QUANTITIES), row.band]
    mean = np.mean(fits, axis=0)
    error = np.zeros(len(mean))
    if replicates >= MANY:
        error = np.std(fits, axis=0, ddof=1) / replicates**0.5
        error[-1] = np.hypot(error[-1], 0.1 * mean[-1])  # advice of a band is a simulation with an error, too
    assert np.all(abs(expected - mean) <= 0.2 * mean + 2.5 * error), (expected, mean, error)


@pytest.mark.matrix
def test_advice_about_a_mean_under_gaussian_noise_is_closed_form() -> None:
    """The noise's standard deviation over the root of n, where it is far above the records'."""
    asked = spec_of("gaussian", 1.0) | {"advise": {"population": POPULATION}}
    (row,) = dpmix.advise(asked, epsilon=1.0, n=100_000, mechanism="gaussian", quiet=True).rows
    scale = float(dpmix.calibrate(spec_of("gaussian", 1.0), quiet=True)["scale"])
    assert_allclose(row.sd["mean"], (scale**2 + 10 / 392) ** 0.5 / 100_000**0.5, rtol=0.1)


@pytest.mark.matrix
def test_advice_is_what_fits_to_square_waves_have(tmp_path: Path) -> None:
    check("square_wave", 1.0, 10_000, 2, tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("n", [1_000, 10_000, 100_000])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("kind", ["laplace", "gaussian", "square_wave", "perturbed_histogram"])
def test_advice_is_what_fits_have(kind: str, epsilon: float, n: int, tmp_path: Path) -> None:
    check(kind, epsilon, n, MANY, tmp_path)
