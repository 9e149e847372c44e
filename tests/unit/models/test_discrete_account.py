"""What is said of the discrete model where the prior, and not the release, places records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import dpmix
from dpmix.api.calibrate import mechanism_of
from dpmix.laws.every import law_of
from dpmix.models.discrete.meaning import _runs, discrete_remarks
from dpmix.models.meaning_base import Unavailable
from dpmix.numerics.equal_cells import equal_edges
from dpmix.run.chains_reader import ChainSet
from dpmix.spec import load_spec
from dpmix.summary.check.check_result import Check
from dpmix.summary.headline import USABLE

COLUMN = {"name": "x", "domain": [0.0, 20.0]}
DRAWS = {"kind": "synthetic", "columns": [COLUMN], "bins": [21], "records": 100}


def told(law: dict[str, Any], n: int = 1000, concentration: float = 1.0) -> str:
    chains = SimpleNamespace(mechanism=law_of(law), n=n, constants={"concentration": concentration})
    remarks = discrete_remarks(cast(ChainSet, chains))
    assert all(remark.grave is False for remark in remarks)
    return " ".join(remark.text for remark in remarks)


NOISY = DRAWS | {"generator": "perturbed_histogram", "noise": "laplace", "scale": [2.0]}


def test_cells_whose_noise_is_a_share_of_the_records() -> None:
    text = told(NOISY)
    assert "of 21 cells, a standard deviation of 2.8 records in an empty one, comes to 5.9%" in text
    assert text.endswith("see what model.concentration: 10.5 gives.")
    assert told(NOISY, concentration=10.5).endswith("model.concentration: 1 gives.")
    assert told(NOISY, n=20_000) == ""
    # of many records a small share of them is more than the sampling error of their number
    assert "of 64 cells, a standard deviation of 2.8 records in an empty one, comes to 0.6% of" in told(
        NOISY | {"bins": [64]}, n=30_000
    )
    assert told(NOISY | {"bins": [64]}, n=36_000) == ""


@pytest.mark.parametrize(
    ("law", "sd"),
    [
        ({"kind": "perturbed_histogram", "bins": 25, "noise": "gaussian", "scale": [5.3]}, "5.3"),
        ({"kind": "smoothed_histogram", "bins": 25, "draws": 100, "weight": 0.25, "scale": []}, "13"),
        (DRAWS | {"generator": "smoothed_histogram", "weight": 0.25}, "15"),
        (DRAWS | {"generator": "dirichlet_multinomial", "concentration": 20.0}, "17"),
    ],
)
def test_all_releases_of_cells(law: dict[str, Any], sd: str) -> None:
    """By hand: of draws, the root of their number in an empty cell, over what a record adds to it."""
    domain = {} if law["kind"] == "synthetic" else {"domain": [[0.0, 20.0]]}
    assert f"a standard deviation of {sd} records in an empty one" in told(law | domain)


def test_new_values_of_an_urn_with_a_discount() -> None:
    urn = {
        "kind": "synthetic",
        "columns": [COLUMN],
        "generator": "pitman_yor",
        "records": 60,
        "concentration": 2.0,
    }
    assert told(urn | {"discount": 0.0}) == ""
    assert "up to 50% of the release" in told(urn | {"discount": 0.5})
    assert told(urn | {"discount": 0.5, "snap": [{"step": 1.0, "domain": [0.0, 20.0]}]}) == ""


def test_the_verdict_takes_it_in(tmp_path: Any) -> None:
    spec = {
        "data": {"column": "x", "domain": [0, 20]},
        "synthesis": {"kind": "perturbed_histogram", "snap": {"step": 1}, "epsilon": 1.0, "records": 200},
        "model": {"kind": "discrete"},
        "sampler": {"iterations": 300, "burn_in": 100, "chains": 2, "seed": 1},
    }
    release = dpmix.synthesize(spec, data={"x": [i % 7 for i in range(200)]}, quiet=True, yes=True)
    fit = dpmix.fit({key: spec[key] for key in ("model", "sampler")}, release, tmp_path / "c.h5", quiet=True)
    found = dpmix.summarize(fit, quiet=True)
    assert found.verdict.answer != USABLE
    assert any("of the records: whether so many are in cells" in text for text in found.warnings)


@pytest.mark.parametrize("bins", [21, 64, 128])
def test_the_check_goes_by_edges_that_the_chains_know(bins: int, tmp_path: Any) -> None:
    """A draw of P may have all of a bin at one place: taken for linear between points it is no replicate."""
    spec = {
        "data": {"column": "x", "domain": [0, 20]},
        "mechanism": {"kind": "perturbed_histogram", "bins": bins, "epsilon": 1.0},
        "model": {"kind": "discrete"},
        "sampler": {"iterations": 300, "burn_in": 100, "chains": 2, "seed": 1},
    }
    rng = np.random.default_rng(1)
    records = rng.gamma(4.0, 1.5, 200_000)
    release = mechanism_of(load_spec(spec, data={"x": records}), 1, records.size).simulate(
        records[:, None], ("x",), rng
    )[0]
    fit = dpmix.fit({key: spec[key] for key in ("model", "sampler")}, release, tmp_path / "c.h5", quiet=True)
    check = dpmix.summarize(fit, quiet=True).quantity(Check)
    assert check is not None and check.overall is not None and check.visible_from is not None
    assert check.overall > 0.05
    assert check.visible_from < 0.02
    assert len(check.entries) == min(bins, 64)


def test_files_without_the_edges_are_checked_by_those_that_they_have() -> None:
    def parameter(points: int) -> Any:
        return SimpleNamespace(dims=("grid",), coords={"grid": np.linspace(0.0, 20.0, points)})

    chains = cast(ChainSet, SimpleNamespace(attrs={}))
    runs, names = _runs(equal_edges((0.0, 20.0), 64), parameter(101), chains)
    assert runs.tolist() == [0, 16, 32, 48]
    assert names == ["[0, 5)", "[5, 10)", "[10, 15)", "[15, 20]"]
    with pytest.raises(Unavailable, match="fit again"):
        _runs(equal_edges((0.0, 20.0), 21), parameter(101), chains)
