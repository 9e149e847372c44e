"""What rows are called: by the columns of the data, never by where a file has the numbers of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dpmix
from dpmix.report.page import render
from dpmix.results.as_text import to_text
from tests.helpers.pages import short_page

COUNTS: dict[str, Any] = {
    "mechanism": {"kind": "noisy_counts", "levels": [2], "classes": 2, "n": 50, "epsilon": 2.0},
    "model": {"kind": "naive_bayes"},
}
MOMENTS: dict[str, Any] = {
    "mechanism": {"kind": "clamped_moments", "bounds": [[0, 4], [0, 2]], "n": 50, "epsilon": 10.0},
    "model": {"kind": "linear_regression", "predict": [[1.0]]},
}
HISTOGRAM: dict[str, Any] = {
    "mechanism": {"kind": "perturbed_histogram", "bins": 4, "n": 50, "domain": [0, 4], "epsilon": 2.0},
    "model": {"kind": "mixture"},
}
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "noisy_counts": (COUNTS, "20\n8\n5\n17\n", "probability of class = 1"),
    "clamped_moments": (MOMENTS, "1\n2\n20\n3\n18\n", "mean response at 1 = 1"),
    "perturbed_histogram": (HISTOGRAM, "20\n8\n5\n17\n", "median"),
}


@pytest.mark.parametrize("kind", CASES)
def test_the_column_of_a_file_of_statistics_is_none_of_the_data(kind: str, tmp_path: Path) -> None:
    parts, numbers, first = CASES[kind]
    (tmp_path / "z.csv").write_text(f"figures\n{numbers}")
    spec = parts | {
        "release": {"path": str(tmp_path / "z.csv"), "columns": ["figures"]},
        "sampler": {"iterations": 60, "burn_in": 20, "chains": 2, "seed": 1},
    }
    dpmix.fit(spec, None, tmp_path / "c.h5", quiet=True)
    summary = dpmix.summarize([tmp_path / "c.h5"])
    text = to_text(summary.tree)
    page = render(summary) if kind == "clamped_moments" else short_page(summary, drawn=True)
    assert text.startswith("50 records")
    assert first in text
    assert "figures" not in text + page.partition("release:")[0]
    if kind == "noisy_counts":
        assert "p_feature_1[feature_1 = 2 given class = 1]" in text
        assert {(one.column, one.class_column) for one in summary.by_class} == {("feature_1", "")}
    if kind == "perturbed_histogram":
        dpmix.synthesize(spec, tmp_path / "s.csv", chains=tmp_path / "c.h5", quiet=True)
        assert (tmp_path / "s.csv").read_text().startswith("value\n")
