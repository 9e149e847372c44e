"""A fit of beta kernels by default, from its file on: the base measure of each draw is there, and read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import dpmix
from dpmix.errors import DataError
from dpmix.kernels.beta.family import BetaGamma, LearnedBeta
from dpmix.run.chains_reader import read_chains
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.prior import base_in_words
from tests.helpers.fits import combined_spec, release_by


def fitted(path: Path, iterations: int = 400, **model: Any) -> Path:
    spec = combined_spec("binomial", "beta", "neal8")
    spec["model"] = {"kernel": "beta", **model}
    spec["sampler"] |= {"iterations": iterations, "burn_in": 100, "thin": 3, "chains": 2}
    dpmix.fit(spec, release_by("binomial", 40), path, quiet=True)
    return path


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fitted(tmp_path_factory.mktemp("default") / "a.h5")


def test_a_default_fit_has_its_base_in_its_file_and_a_fixed_one_none(default: Path, tmp_path: Path) -> None:
    fixed = fitted(tmp_path / "b.h5", 115, base={"learn": False})
    some = fitted(tmp_path / "c.h5", 115, base={"learn": True})
    with h5py.File(default) as file:
        drawn = [file[f"posterior/base_{name}"][()] for name in ("place", "rate", "lambda")]
        assert all(values.shape == (2, 100) and np.ptp(values) > 0.1 for values in drawn)
        assert drawn[1].min() > 0.0 and drawn[2].min() > 0.0
        constants = file["constant_data"]
        assert (constants["base_rate_shape"][()], constants["base_lambda_shape"][()]) == (0.5, 2.0)
        assert constants["base_lambda"][()] == 0.16
    with h5py.File(some) as file:
        assert "base_rate" in file["posterior"] and "base_lambda" not in file["posterior"]
    with h5py.File(fixed) as file:
        assert "base_rate" not in file["posterior"]
    chains = read_chains([default])
    assert (chains.attrs["base"], chains.attrs["base_from"]) == ("learned_gamma_lambda", "bounds")
    assert chains.base is not None and np.array_equal(chains.base[:, :, 2, 0], drawn[2])
    known = LearnedBeta(2.0, 2.0, 0.2, 0.16, 1.8, 0.5, -10.0, 20.0)
    assert family_of(chains) == replace(known, weight=2.0)
    assert family_of(read_chains([some])) == known
    assert family_of(read_chains([fixed])) == BetaGamma(2.0, 0.2, 2.0, 0.2, -10.0, 20.0)
    for other in (fixed, some):
        with pytest.raises(DataError, match="differs from .* in model.base"):
            read_chains([default, other])


def test_a_summary_of_a_default_fit_says_what_is_learned(default: Path) -> None:
    words = "around a place in them, with an a + b of about 20 or more, place, scale and how far apart"
    assert words in base_in_words(read_chains([default]))
    found = dpmix.summarize([default])
    stated = found.to_json()
    assert stated["parameters"]["sd"]["contraction"] is not None
    assert stated["prior_sensitivity"]["parameters"]["sd"]["prior"] > 0.0
    shares = stated["variance_shares"]["mean"]
    assert shares["sampling"] + shares["privacy"] + shares["prior"] == pytest.approx(1.0)
    assert not any("holds up" in warning for warning in found.warnings)
    density, grid = stated["density"], np.array(stated["density"]["grid"])
    assert np.trapezoid(density["prior"], grid) == pytest.approx(1.0, abs=0.1)
    assert np.trapezoid(density["mean"], grid) == pytest.approx(1.0, abs=0.05)
