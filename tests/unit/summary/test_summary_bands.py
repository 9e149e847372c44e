"""Bands come from draws of the random density for every sampler, and agree between samplers."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import dpmix
from dpmix.release.sanitized import Release
from dpmix.run.chains_reader import read_chains
from dpmix.summary.density import posterior_density

GRID = np.linspace(-8.0, 8.0, 9)
LEVEL = 0.9


@pytest.fixture(scope="module")
def density_of(tmp_path_factory):
    """The density that a sampler finds, by its kind."""
    folder = tmp_path_factory.mktemp("bands")
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(-4.0, 1.0, 20), rng.normal(3.0, 1.0, 20)]) + rng.laplace(0.0, 1.0, 40)
    release = Release(
        values=values[:, None],
        columns=("z",),
        mechanism={"kind": "laplace", "scale": [1.0], "domain": [[-10.0, 10.0]]},
        epsilon=20.0,
        delta=0.0,
        rho=None,
        n=40,
        private=False,
        simulated=True,
    )

    @functools.cache
    def found(kind):
        spec = {
            "model": {
                "kind": "mixture",
                "discount": 0.2,
                "base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0},
            },
            "sampler": {
                "kind": kind,
                "iterations": 41_000,
                "burn_in": 1_000,
                "thin": 4,
                "chains": 2,
                "seed": 3,
            },
        }
        path = folder / f"{kind}.h5"
        dpmix.fit(spec, release, path, quiet=True)
        return posterior_density(read_chains([path]), [GRID], LEVEL).density

    return found


BY_NIGHT = [pytest.param(kind, marks=pytest.mark.matrix) for kind in ("neal8", "private_neal5")]


@pytest.mark.parametrize("kind", BY_NIGHT)
def test_bands_of_marginal_samplers_are_those_of_the_slice(density_of, kind):
    slice_, other = density_of("private_slice"), density_of(kind)
    width = slice_.upper - slice_.lower
    # at least 1,000 effective draws: the standard error of a quantile is below 3% of the width
    for name in ("mean", "lower", "upper"):
        gap = np.abs(getattr(other, name) - getattr(slice_, name))
        assert np.all(gap < 0.12 * width), (name, gap / width)


@pytest.mark.parametrize("kind", ["private_slice", *BY_NIGHT])
def test_bands_are_far_wider_than_those_of_predictive_densities(density_of, kind):
    # mixing over theta alone, with weights at n_h / n, would leave out the weights' own uncertainty
    found = density_of(kind)
    peak = int(np.argmax(found.mean))
    assert found.upper[peak] - found.lower[peak] > 0.5 * found.mean[peak]
