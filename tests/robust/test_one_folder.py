"""A parametric model is a folder and its line of `spec/kinds.py`: fitted, checked, advised on from these."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
import dpmix.models
from dpmix.errors import DataError
from dpmix.spec.kinds import MODELS
from dpmix.summary.summary_result import Summary

FOLDER = str(Path(__file__).parent / "one_folder")
A, B, YES, NO = 2.0, 3.0, 70, 130


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Path]]:
    folder = tmp_path_factory.mktemp("proportion")
    (folder / "t.csv").write_text("vote\n" + "no\n" * NO + "yes\n" * YES, encoding="utf-8")
    spec = {
        "data": {"path": str(folder / "t.csv"), "columns": ["vote"], "categories": {"vote": ["no", "yes"]}},
        "mechanism": {"kind": "randomized_response", "epsilon": 1.5},
        "model": {"kind": "proportion", "a": A, "b": B},
        "sampler": {"iterations": 12_000, "burn_in": 2_000, "chains": 2, "seed": 1},
    }
    dpmix.models.__path__.append(FOLDER)  # the folder lies there
    MODELS.add("proportion")  # its line
    try:
        dpmix.fit(
            spec, dpmix.privatize(spec, folder / "r.h5", quiet=True), folder / "c.h5", quiet=True, jobs=1
        )
        yield spec, folder
    finally:
        MODELS.drop("proportion")
        dpmix.models.__path__.remove(FOLDER)
        for name in [name for name in sys.modules if name.startswith("dpmix.models.proportion")]:
            del sys.modules[name]


def test_its_posterior_is_exact_and_everything_is_said_of_it(fitted: tuple[dict[str, Any], Path]) -> None:
    _, folder = fitted
    summary = dpmix.summarize([folder / "c.h5"])
    assert isinstance(summary, Summary)
    yes, share = int(summary.released.sum()), (np.arange(20_000) + 0.5) / 20_000
    keep = np.exp(1.5) / (np.exp(1.5) + 1.0)
    chance = keep * share + (1.0 - keep) * (1.0 - share)
    logs = yes * np.log(chance) + (YES + NO - yes) * np.log1p(-chance)
    logs += (A - 1.0) * np.log(share) + (B - 1.0) * np.log1p(-share)
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    mean = float(weights @ share)
    scalar = summary.parameters["share"]
    assert scalar.mcse is not None and abs(scalar.mean - mean) < 4.5 * scalar.mcse
    assert scalar.sd == pytest.approx(float(weights @ (share - mean) ** 2) ** 0.5, rel=0.05)
    assert scalar.contraction is not None and scalar.contraction > 0.0
    assert [entry.name for entry in summary.check.entries] == ["yes"]
    assert summary.check.overall is not None and summary.check.overall > 0.1
    assert summary.sensitivity.indices["share"].prior is not None
    assert "model.a and model.b" in summary.to_text() or not summary.sensitivity.indices["share"].sensitive
    assert "the model proportion has no mean, median" in str(summary.variance_shares.reason)


def test_what_its_folder_leaves_out_is_said_in_a_sentence(fitted: tuple[dict[str, Any], Path]) -> None:
    _, folder = fitted
    (folder / "at.csv").write_text("age\n3\n", encoding="utf-8")
    with pytest.raises(DataError, match="is of model proportion, which predicts no column from others"):
        dpmix.predict(folder / "c.h5", folder / "at.csv", quiet=True)


def test_it_is_advised_on(fitted: tuple[dict[str, Any], Path]) -> None:
    spec, _ = fitted
    found = dpmix.advise(spec, epsilon=[1.5], n=[200], quiet=True)
    (row,) = found.rows
    assert row.sd["share"] == pytest.approx(0.06, abs=0.02)
