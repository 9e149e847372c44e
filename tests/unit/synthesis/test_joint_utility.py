"""Pairs of columns, propensity scores and predictions, against independent calculations."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats.contingency import association as of_table

from dpmix.api.synthesize import compare
from dpmix.synthesis.comparison_page import render
from dpmix.synthesis.records import Column
from dpmix.synthesis.utility import NEEDS, JointYardstick, association, pmse

COLUMNS = (Column("x", (0.0, 1.0)), Column("c", None, ("p", "q", "r")), Column("y", (0.0, 1.0)))


def table_of(n: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = rng.beta(2 + codes, 3)
    return np.column_stack([x, codes, 0.5 * x + 0.5 * rng.random(n)])


def test_associations_are_the_textbooks() -> None:
    values = table_of(500)
    x, codes, y = values.T
    assert association(x, y, "correlation") == pytest.approx(np.corrcoef(x, y)[0, 1])
    halves = (x > 0.5).astype(float)
    counts = np.array([[int(((halves == a) & (codes == b)).sum()) for b in range(3)] for a in range(2)])
    cramer = of_table(counts, method="cramer")
    assert association(halves, codes, "cramers_v") == pytest.approx(cramer)
    assert association(halves * 3000, codes * 2000, "cramers_v") == pytest.approx(cramer)  # a sparse table
    groups = [x[codes == b] for b in range(3)]
    between = sum(len(g) * (g.mean() - x.mean()) ** 2 for g in groups)
    expected = np.sqrt(between / ((x - x.mean()) ** 2).sum())
    assert association(x, codes, "correlation_ratio") == pytest.approx(expected)
    constant = np.zeros(500)
    for measure in ("correlation", "cramers_v", "correlation_ratio"):
        assert association(constant, codes, measure) == 0.0


def test_pmse_of_a_saturated_model_is_by_hand() -> None:
    label = np.array([0.0] * 6 + [1.0] * 4 + [0.0] * 2 + [1.0] * 13)
    synthetic = np.arange(25) >= 10
    share = 15 / 25
    fitted = np.where(label == 0, 2 / 8, 13 / 17)
    found, expected = pmse(np.column_stack([np.ones(25), label]), synthetic)
    assert found == pytest.approx(((fitted - share) ** 2).mean(), rel=1e-6)
    assert expected == pytest.approx(1 * (1 - share) ** 2 * share / 25)
    # columns that depend on others, and constant ones, are of no account
    again = pmse(np.column_stack([np.ones(25), label, 1 - label, np.zeros(25)]), synthetic)
    assert again == pytest.approx((found, expected), rel=1e-6)


def test_the_ratio_of_pmse_is_one_of_records_drawn_from_the_confidential_ones() -> None:
    values, rng = table_of(2000), np.random.default_rng(4)
    yardstick = JointYardstick(COLUMNS, values)
    ratios = [
        yardstick.told_apart(values[rng.integers(0, 2000, size)])["pmse_ratio"]
        for size in (2000, 700)
        for _ in range(60)
    ]
    for part in (ratios[:60], ratios[60:]):
        assert abs(np.mean(part) - 1) < 4 * np.std(part) / np.sqrt(60)
    fresh = [
        JointYardstick(COLUMNS, table_of(1000, seed)).told_apart(table_of(1000, -seed % 997))["pmse_ratio"]
        for seed in range(2, 42)
    ]
    assert abs(np.mean(fresh) - 2) < 4 * np.std(fresh) / np.sqrt(40)  # of records drawn anew it is 1/(1 - c)
    torn = np.column_stack([rng.permutation(part) for part in values.T])
    assert yardstick.told_apart(torn)["pmse_ratio"] > 10  # only the products of pairs tell
    assert yardstick.told_apart(values[:30]) == {}


def test_trees_that_torn_records_train_predict_nothing() -> None:
    pytest.importorskip("sklearn")
    values, rng = table_of(2000), np.random.default_rng(5)
    yardstick = JointYardstick(COLUMNS, values)
    real, same = yardstick.baseline, yardstick.predictions(table_of(2000, 9))
    torn = yardstick.predictions(np.column_stack([rng.permutation(part) for part in values.T]))
    assert set(real) == set(same) == set(torn) == {"x", "c", "y"}
    for name in real:
        assert abs(real[name] - same[name]) < 0.08
    assert real["y"] > 0.2 > 0.05 > torn["y"]
    assert yardstick.predictions(values[:1]).keys() == real.keys()  # one record trains, too


def spec_of(folder: Path) -> dict[str, Any]:
    rows = ["x,c,y", *(f"{x:.6f},{'pqr'[int(c)]},{y:.6f}" for x, c, y in table_of(1500))]
    (folder / "t.csv").write_text("\n".join(rows) + "\n")
    return {
        "data": {
            "path": str(folder / "t.csv"),
            "columns": ["x", "c", "y"],
            "domain": {"x": [0, 1], "y": [0, 1]},
            "categories": {"c": ["p", "q", "r"]},
        },
        "synthesis": {"kind": "perturbed_histogram", "epsilon": 5, "bins": 4, "delta": 0.01},
    }


@pytest.mark.parametrize("there", [True, False], ids=["with scikit-learn", "without"])
def test_a_comparison_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    if there:
        pytest.importorskip("sklearn")
    else:
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name == "sklearn" else find(name)
        )
    found = compare(spec_of(tmp_path), runs=6)
    content, text, page = found.to_json(), found.to_text(), render(found)
    assert [pair["columns"] for pair in content["confidential"]["pairs"]] == [
        ["x", "c"],
        ["x", "y"],
        ["c", "y"],
    ]
    assert [pair["measure"] for pair in content["kinds"][0]["pairs"]] == [
        "correlation_ratio",
        "correlation",
        "correlation_ratio",
    ]
    known = np.array([pair["value"] for pair in content["confidential"]["pairs"]])
    own = found.contenders[0]
    assert own.pairs.shape == (6, 3)
    np.testing.assert_allclose(own.joint["association_max"].values, np.abs(own.pairs - known).max(axis=1))
    np.testing.assert_allclose(own.joint["association_mean"].values, np.abs(own.pairs - known).mean(axis=1))
    assert own.joint["pmse_ratio"].values.shape == (5,)  # of the first runs
    assert "pmse_ratio" not in found.contenders[1].joint  # of fifteen records
    assert "Pairs of columns: how far their associations are off" in text and "pMSE ratio" in text
    assert "Pairs of columns" in page and "pMSE ratio" in page and "R^2 of numbers" in page
    assert content["curator_only"] is True and text.startswith("For the curator only")
    notes = [note for note in content["notes"] if not note.endswith("verbatim") and "republishes" not in note]
    if there:
        assert set(content["confidential"]["predicted"]) == {"x", "c", "y"}
        assert set(content["kinds"][0]["predicted"]) == {"x", "c", "y"}
        assert notes == []
    else:
        assert content["confidential"]["predicted"] == content["kinds"][0]["predicted"] == {}
        assert notes == [f"train on synthetic, test on real: left out, as {NEEDS}"]
        assert "scikit-learn is not installed" in " ".join(text.split())


def test_one_column_has_no_pairs(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    spec["data"] |= {"columns": ["x"], "domain": [0, 1], "categories": None}
    found = compare(spec, runs=1)
    assert found.pairs == () and found.to_json()["confidential"]["pairs"] == []
    assert "Pairs of columns" not in found.to_text()
