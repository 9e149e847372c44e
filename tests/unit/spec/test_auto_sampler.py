"""``sampler.kind: auto``: counts where it applies and wins by measurement, else the model's own sampler."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dpmix
from dpmix.api.fit import plan
from dpmix.errors import SpecError
from dpmix.mechanisms.laws.every import law_of
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from dpmix.spec.auto_sampler import auto_in_words, choose
from dpmix.spec.describe import describe

BASE = {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}
LAPLACE = {"kind": "laplace", "epsilon": 5.0, "domain": [-10.0, 10.0]}
RUN = {"iterations": 4, "burn_in": 2, "chains": 1, "seed": 1}


def spec_of(mechanism: Any = LAPLACE, sampler: Any = None, **model: Any) -> dict[str, Any]:
    """Return a spec without a sampler's kind."""
    return {
        "mechanism": dict(mechanism),
        "model": {"kind": "mixture", "base": BASE} | model,
        "sampler": RUN | (sampler or {}),
    }


@pytest.mark.parametrize(
    ("n", "cells", "changed", "kind", "why"),
    [
        (5_000, 322, {}, "neal8", "at most 5,000"),
        (5_001, 322, {}, "counts", "more than 5,000"),
        (5_001, 5_002, {}, "neal8", "more cells (5,002) than records (5,001)"),
        (1_000, 322, {"store": []}, "counts", "sampler.store"),
        (1_000, 3_202, {"store": []}, "neal8", "more cells"),
        (10**9, 322, {"store": ["allocations"]}, "neal8", "sampler.store asks"),
        (10**9, 322, {"subsample": 10}, "neal8", "sampler.subsample asks"),
    ],
)
def test_what_auto_takes_and_why(n: int, cells: int, changed: dict[str, Any], kind: str, why: str) -> None:
    found = choose(load_spec(spec_of(sampler=changed)), "laplace", n, cells=cells)
    assert (found.kind, why in found.why) == (kind, True)


def test_what_counts_does_not_go_with_is_left_to_others() -> None:
    many = 10**6
    for changed in (
        {"discount": 0.3},
        {"base": {"kind": "truncated_nig", "mu0": 0, "lambda": 1, "a": 3, "b": 3}},
    ):
        mechanism = {"kind": "gaussian", "scale": 1.0, "domain": [-10.0, 10.0]}
        assert choose(load_spec(spec_of(mechanism, **changed)), "gaussian", many).kind == "neal8"
    wavelet = {"kind": "wavelet", "epsilon": 2.0, "levels": 2, "domain": [0, 1]}
    assert choose(load_spec(spec_of(wavelet)), "wavelet", many).kind == "neal8"
    none = {"kind": "none", "domain": [-10.0, 10.0]}
    assert choose(load_spec(spec_of(none)), "none", many).kind == "neal8"  # no width follows
    assert choose(load_spec(spec_of(none, {"width": 0.1})), "none", many).kind == "counts"
    records = load_spec(spec_of() | {"summary": {"coclustering": True}})
    assert choose(records, "laplace", many).kind == "neal8"
    assert choose(records, "laplace", many, tallied=True).kind == "counts"
    assert choose(load_spec(spec_of()), "laplace", many, grouped=True).kind == "data_augmentation"


def test_histograms_take_counts_where_counts_takes_histograms() -> None:
    from dpmix.spec.kinds import kinds_that

    for kind, draws in (("smoothed_histogram", {"draws": 20}), ("perturbed_histogram", {})):
        mechanism = {"kind": kind, "epsilon": 1.0, "bins": 8, "n": 100, "domain": [0, 1]} | draws
        found = choose(load_spec(spec_of(mechanism)), kind, 100)
        assert found.kind == ("counts" if kind in kinds_that("countable") else "neal8")


def test_other_models_have_their_own_at_once() -> None:
    counts = {"kind": "noisy_counts", "epsilon": 1.0, "levels": [2], "classes": 2, "n": 10}
    for sampler in ({}, {"kind": "auto"}):
        spec = load_spec({"mechanism": counts, "model": {"kind": "naive_bayes"}, "sampler": sampler})
        assert spec.sampler.kind == "data_augmentation"
    again = load_spec(spec, ["model={kind: mixture}", "mechanism=null"])
    assert again.sampler.kind == "auto"


def test_the_resolved_spec_keeps_auto_and_what_does_not_go_with_it_is_refused() -> None:
    spec = load_spec(spec_of())
    assert spec.sampler.kind == "auto" and yaml.safe_load(spec.to_yaml())["sampler"]["kind"] == "auto"
    assert load_spec(yaml.safe_load(spec.to_yaml())) == spec
    with pytest.raises(SpecError, match=r"sampler\.latent: metropolis"):
        load_spec(spec_of(sampler={"latent": "metropolis"}))
    with pytest.raises(ValueError, match="not settled"):
        _ = spec.sampler.algorithm


def test_validate_says_which_as_far_as_it_is_known() -> None:
    assert auto_in_words(load_spec(spec_of())) == (
        "auto: counts above 5,000 records and given a tally, else neal8"
    )
    assert "auto: counts above" in describe(load_spec(spec_of()))["sampler"]
    data = {"data": {"simulate": "three_gaussians", "n": 200, "seed": 1, "domain": [[-10, 10]]}}
    assert auto_in_words(load_spec(spec_of() | data)).startswith("auto: neal8, for there are at most 5,000")
    asks = load_spec(spec_of(sampler={"subsample": 5}))
    assert auto_in_words(asks).startswith("auto: neal8 (counts given a tally), for sampler.subsample")


def release(n: int) -> Release:
    """Return a release of n records."""
    law: Any = {"kind": "laplace", "scale": [4.0], "domain": [[-10.0, 10.0]]}
    z = np.random.default_rng(1).laplace(0.0, 4.0, (n, 1))
    return Release(z, ("z",), law_of(law), 5.0, 0.0, None, n)


def test_fit_says_which_and_why_and_the_chains_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is gone on with keeps its sampler, whatever auto takes now."""
    spec = spec_of()
    path = tmp_path / "c.h5"
    dpmix.fit(spec, release(40), path)
    assert "dpmix: sampler: neal8, for there are at most 5,000 records" in capsys.readouterr().err
    from dpmix.run.chains_reader import read_chains

    assert read_chains([path]).spec["sampler"]["kind"] == "neal8"
    words = plan(spec, release(5_001))
    assert "sweeps of counts" in words and "auto takes counts, for there are more than 5,000" in words
    assert not capsys.readouterr().err
    named = spec_of(sampler={"kind": "neal8", "store": []})
    dpmix.fit(named, release(40), tmp_path / "named.h5", force=True)
    assert "sampler:" not in capsys.readouterr().err
    auto = spec_of(sampler={"store": []})
    assert "sweeps of neal8" in plan(auto, release(40))  # 322 cells
    again = dpmix.fit(auto, release(40), tmp_path / "named.h5", resume=True)
    assert not again.written
