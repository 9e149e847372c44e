"""Simulated data of several columns: their law, their columns, and what they are refused with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.data import simulations
from dpmix.data.loading import load_data
from dpmix.errors import SpecError
from dpmix.spec import load_spec

COUNTS = {"kind": "noisy_counts", "levels": [3] * 5, "classes": 5, "epsilon": 2.0}
MOMENTS = {"kind": "clamped_moments", "bounds": [[-10, 10]] * 3, "epsilon": 2.0}


def data(name: str, n: int = 30, **more: Any) -> dict[str, Any]:
    return {"simulate": name, "n": n, "seed": 4, **more}


def test_classes_and_levels_have_the_probabilities_that_are_printed() -> None:
    n = 200_000
    values = simulations.naive_bayes(n, np.random.default_rng(1))
    shares, levels = simulations.five_classes_law()
    assert shares.sum() == pytest.approx(1.0) and levels.sum(axis=2) == pytest.approx(1.0)
    assert shares.round(3).tolist() == [0.097, 0.148, 0.145, 0.446, 0.163]
    codes = values.astype(int) - 1
    assert values.shape == (n, 6) and (codes + 1 == values).all()
    for k in range(5):
        found = np.bincount(codes[:, 5] * 3 + codes[:, k], minlength=15).reshape(5, 3) / n
        # 75 below 5 standard errors: with another seed a right law would fail with probability below 1e-4
        law = shares[:, None] * levels[k]
        assert (np.abs(found - law) < 5 * np.sqrt(law / n)).all()
    # independent within a class: the correlation of two features there is noise
    within = codes[codes[:, 5] == 3]
    assert np.abs(np.corrcoef(within[:, :5].T) - np.eye(5)).max() < 5 / np.sqrt(len(within))


def test_the_regression_has_its_coefficients() -> None:
    values = simulations.linear_regression(100_000, np.random.default_rng(2))
    x = np.column_stack([np.ones(len(values)), values[:, :2]])
    found, (squares,), *_ = np.linalg.lstsq(x, values[:, 2], rcond=None)
    assert found == pytest.approx(simulations.REGRESSION_BETA, abs=0.03)
    assert squares / len(values) == pytest.approx(simulations.REGRESSION_VARIANCE, rel=0.03)
    assert values[:, :2].mean(axis=0) == pytest.approx(simulations.REGRESSION_X, abs=0.02)
    assert np.cov(values[:, :2].T) == pytest.approx(np.eye(2), abs=0.03)


@pytest.mark.parametrize(
    ("name", "mechanism", "columns"),
    [("naive_bayes", COUNTS, "x1 x2 x3 x4 x5 y"), ("linear_regression", MOMENTS, "x1 x2 y")],
)
def test_releases_name_the_columns_and_are_marked(
    name: str, mechanism: dict[str, Any], columns: str, capsys: Any
) -> None:
    spec = {"data": data(name), "mechanism": mechanism}
    one, two = dpmix.privatize(spec), dpmix.privatize(spec)
    np.testing.assert_array_equal(one.values, two.values)
    assert one.simulated and not one.private and one.n == 30
    assert one.mechanism["columns"] == columns.split()
    assert dpmix.calibrate(spec)["epsilon"] == one.epsilon
    named = [f"c{i}" for i in range(len(columns.split()))]
    assert load_data(load_spec(spec | {"data": data(name, columns=named)})).columns == tuple(named)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"data": data("naive_bayes", columns=["a", "b"])},
            "data.columns: naive_bayes has 6 columns; name them all, or leave this out",
        ),
        (
            {"data": data("three_gaussians"), "mechanism": COUNTS},
            "data.simulate: three_gaussians has no levels and classes; take naive_bayes",
        ),
        (
            {"data": data("naive_bayes"), "mechanism": COUNTS | {"levels": [3, 3]}},
            "mechanism.levels: has 2 entries, but data.columns names 6 columns",
        ),
        (
            {
                "data": data("naive_bayes", columns=[*"abcdey"], categories={"y": [1, 2, 3, 4, 5]}),
                "mechanism": COUNTS,
            },
            "data.categories: naive_bayes has whole numbers from 1 on; leave them out",
        ),
        (
            {"data": data("linear_regression"), "mechanism": MOMENTS | {"bounds": [[-1, 1]]}},
            "mechanism.bounds: 1 pairs for 3 columns",
        ),
        (
            {
                "data": data("three_gaussians", columns=["a", "b"], domain=[[-9, 9], [-9, 9]]),
                "mechanism": {"kind": "laplace", "scale": 1},
            },
            "data.columns: three_gaussians has one column",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(spec: dict[str, Any], wanted: str) -> None:
    with pytest.raises(SpecError) as caught:
        dpmix.privatize(spec)
    assert str(caught.value).startswith(wanted)
