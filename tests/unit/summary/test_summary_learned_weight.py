"""Fits that learn lambda besides place and scale, from their files on: it is of each draw, and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import dpmix
from dpmix.errors import DataError
from dpmix.kernels.normal.family import LearnedNormal
from dpmix.run.chains_reader import read_chains
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.prior import base_in_words
from tests.helpers.fits import combined_spec, release_by


def fitted(path: Path, kernel: str = "normal", noise: str = "laplace", **base: Any) -> Path:
    spec = combined_spec(noise, "nig" if kernel == "normal" else kernel, "neal8")
    spec["model"] = {"kernel": kernel, "base": base}
    spec["sampler"] |= {"iterations": 400, "burn_in": 100, "thin": 3, "chains": 2}
    dpmix.fit(spec, release_by(noise, 40, 2 if kernel == "multivariate_normal" else 1), path, quiet=True)
    return path


def test_lambda_is_in_the_file_where_it_is_learned_alone(tmp_path: Path) -> None:
    every, some = fitted(tmp_path / "a.h5", learn="all"), fitted(tmp_path / "b.h5", learn=True)
    with h5py.File(every) as file:
        drawn = file["posterior/base_lambda"][()]
        assert drawn.shape == (2, 100) and (drawn > 0.0).all() and np.ptp(np.log(drawn)) > 0.5
        assert file["constant_data/base_lambda_shape"][()] == 2.0
        assert file["constant_data/base_lambda"][()] == 0.16
    with h5py.File(some) as file:
        assert "base_lambda" not in file["posterior"]
    chains, before = read_chains([every]), read_chains([some])
    assert (chains.attrs["base"], before.attrs["base"]) == ("learned_nig_lambda", "learned_nig")
    known = family_of(before)
    assert isinstance(known, LearnedNormal) and known.weight == 0.0
    assert family_of(chains) == LearnedNormal(known.mu0, 0.16, 3.0, known.b, known.spread, 0.5, 2.0)
    assert chains.base is not None and np.array_equal(chains.base[:, :, 2, 0], drawn)
    with pytest.raises(DataError, match=r"differs from .* in model\.base"):
        read_chains([every, some])
    found = dpmix.summarize([every])
    assert "place, scale and how far apart learned with them" in base_in_words(chains)
    stated = found.to_json()
    assert stated["parameters"]["sd"]["contraction"] is not None
    assert stated["prior_sensitivity"]["parameters"]["sd"]["prior"] > 0.0
    shares = stated["variance_shares"]["mean"]
    assert shares["sampling"] + shares["privacy"] + shares["prior"] == pytest.approx(1.0)
    density, grid = stated["density"], np.array(stated["density"]["grid"])
    assert np.trapezoid(density["prior"], grid) == pytest.approx(1.0, abs=0.1)
    assert np.trapezoid(density["mean"], grid) == pytest.approx(1.0, abs=0.05)


def test_several_columns_share_one_lambda(tmp_path: Path) -> None:
    path = fitted(tmp_path / "a.h5", "multivariate_normal", "gaussian", learn="all")
    with h5py.File(path) as file:
        drawn = file["posterior/base_lambda"][()]
        assert drawn.shape == (2, 100) and file["posterior/base_psi"].shape[:2] == (2, 100)
    chains = read_chains([path])
    assert chains.base is not None and chains.base.shape[2] == 3
    assert np.array_equal(chains.base[:, :, 2, -1], drawn)
    stated = dpmix.summarize([path]).to_json()
    assert all(row["contraction"] is not None for name, row in stated["parameters"].items() if "sd" in name)
