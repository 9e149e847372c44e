"""A fit of beta kernels by default, from its file on: place and rate of each draw are there, and read."""

from __future__ import annotations

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


def fitted(path: Path, **model: Any) -> Path:
    spec = combined_spec("wavelet", "beta", "neal8")
    spec["model"] = {"kernel": "beta", **model}
    spec["sampler"] |= {"iterations": 400, "burn_in": 100, "thin": 3, "chains": 2}
    dpmix.fit(spec, release_by("wavelet", 40), path, quiet=True)
    return path


def test_a_default_fit_has_place_and_rate_in_its_file_and_a_fixed_one_none(tmp_path: Path) -> None:
    default, fixed = fitted(tmp_path / "a.h5"), fitted(tmp_path / "b.h5", base={"learn": False})
    with h5py.File(default) as file:
        rate, place = (file[f"posterior/{name}"][()] for name in ("base_rate", "base_place"))
        assert rate.shape == place.shape == (2, 100) and (rate > 0.0).all() and np.ptp(place) > 0.1
        assert file["constant_data/base_rate_shape"][()] == 0.5
    with h5py.File(fixed) as file:
        assert "base_rate" not in file["posterior"]
    attrs = read_chains([default]).attrs
    assert (attrs["base"], attrs["base_from"]) == ("learned_gamma", "bounds")
    assert family_of(read_chains([default])) == LearnedBeta(2.0, 2.0, 0.2, 0.16, 1.8, 0.5, -10.0, 20.0)
    assert family_of(read_chains([fixed])) == BetaGamma(2.0, 0.2, 2.0, 0.2, -10.0, 20.0)
    with pytest.raises(DataError, match="differs from .* in model.base"):
        read_chains([default, fixed])


def test_a_summary_of_a_default_fit_says_what_is_learned(tmp_path: Path) -> None:
    path = fitted(tmp_path / "a.h5")
    assert "around a place in them, with an a + b of about 20 or more, place and" in base_in_words(
        read_chains([path])
    )
    found = dpmix.summarize([path])
    stated = found.to_json()
    assert stated["parameters"]["sd"]["contraction"] is not None
    assert stated["prior_sensitivity"]["parameters"]["sd"]["prior"] > 0.0
    shares = stated["variance_shares"]["mean"]
    assert shares["sampling"] + shares["privacy"] + shares["prior"] == pytest.approx(1.0)
    assert not any("holds up" in warning for warning in found.warnings)
    density, grid = stated["density"], np.array(stated["density"]["grid"])
    assert np.trapezoid(density["prior"], grid) == pytest.approx(1.0, abs=0.1)
    assert np.trapezoid(density["mean"], grid) == pytest.approx(1.0, abs=0.05)
