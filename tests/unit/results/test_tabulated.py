"""Results in Python: one line, a table that no name breaks out of, a DataFrame, and what ArviZ takes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.api.fit import FitResult
from dpmix.errors import UsageError
from dpmix.run import draws_tables
from dpmix.run.draws_tables import to_inferencedata
from dpmix.store import frames
from dpmix.store.frames import Frame, frame_of_rows, to_notebook
from dpmix.summary.predicting import Predictions
from tests.helpers.chains_files import states_of_mixture, write_chains
from tests.helpers.seeds import rng_of
from tests.helpers.shown_files import HOSTILE, a_release, write_regression


def test_names_and_labels_are_escaped_in_pages() -> None:
    frame = Frame({HOSTILE: [HOSTILE, None], "x": np.array([1.23456789, np.nan])})
    page = to_notebook(HOSTILE, [HOSTILE], frame)
    assert "<script" not in page and page.count("&lt;script&gt;") == 4
    assert "1.23457" in page and "1.23456789" not in page


def test_few_rows_and_columns_are_shown() -> None:
    page = to_notebook("t", [], Frame({f"c{i}": np.arange(100) for i in range(15)}))
    assert page.count("<tr>") == 21 and "80 more rows" in page and "3 more columns" in page


def test_rows_become_columns_of_one_type() -> None:
    frame = frame_of_rows([{"a": 1, "b": None, "q": {"0.5": 2.0}, "n": 2**70}, {"a": 2, "b": "x", "n": 1}])
    assert list(frame.columns) == ["a", "b", "q[0.5]", "n"]
    assert frame.columns["a"].dtype == np.int64  # type: ignore[union-attr]
    assert frame.columns["b"] == [None, "x"]
    assert np.isnan(frame.columns["q[0.5]"][1])  # type: ignore[arg-type]


def test_a_release_as_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    law = {"kind": "randomized_response", "ratio": "3/1", "categories": [["a", "b"], ["no", "yes"]]}
    frame = a_release([[0, 1], [1, 0]], ["town", "vote"], law).to_dataframe()
    pandas.testing.assert_frame_equal(frame, pandas.DataFrame({"town": ["a", "b"], "vote": ["yes", "no"]}))
    dates = a_release([18628.0, 18629.0], ["day"], dates=("day",)).to_dataframe()["day"]
    assert dates.dt.year.tolist() == [2021, 2021]


def test_without_pandas_or_xarray_one_sentence_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    def absent(name: str, *_: object) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(frames.importlib, "import_module", absent)
    with pytest.raises(UsageError, match=r"to_dataframe needs pandas.*dpmix\[tables\]"):
        a_release([[1.0]], ["x"]).to_dataframe()
    write_regression(tmp_path / "c.h5")
    with pytest.raises(UsageError, match=r"to_inferencedata needs xarray.*dpmix\[arviz\]"):
        to_inferencedata(tmp_path / "c.h5")


def test_summaries_have_a_line_a_table_and_frames(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    write_regression(tmp_path / "c.h5", name=HOSTILE)
    summary = dpmix.summarize(tmp_path / "c.h5")
    assert repr(summary).startswith("<Summary: parameters (4)") and "warning" in repr(summary)
    assert "<script" not in summary._repr_html_() and "<table>" in summary._repr_html_()
    frame = summary.to_dataframe()
    assert frame["name"].tolist() == list(summary.parameters)
    assert frame["quantiles[0.975]"].tolist() == [v.quantiles["0.975"] for v in summary.parameters.values()]
    with pytest.raises(KeyError, match="parameters"):
        summary.to_dataframe("nonsense")


def test_calibrations_hide_what_is_the_curators() -> None:
    mechanism = {"kind": "laplace", "epsilon": 1.0, "domain": [0, 10]}
    found = dpmix.calibrate({"mechanism": mechanism}, quiet=True)
    assert isinstance(found, dict) and "scale" in found._repr_html_()
    assert "epsilon" in found.to_frame().columns["name"]
    found["curator_only"] = {"delta_instance": 0.123456}
    assert "0.123456" not in found._repr_html_() and "not shown" in found._repr_html_()


def test_predictions_as_a_table() -> None:
    found = Predictions(("mean", "lower"), np.array([[1.0, 0.5], [2.0, 1.5]]), 0.95, "the mean", ("a = 1",))
    assert found.to_frame().rows() == [{"mean": 1.0, "lower": 0.5}, {"mean": 2.0, "lower": 1.5}]
    assert "<th" in found._repr_html_()


def fitted(path: Path, draws: int) -> FitResult:
    return FitResult(path, (0, 1), draws, (1.0, 1.0))


def test_arviz_reads_fits(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    import arviz_stats

    held = write_regression(tmp_path / "n.h5", draws=50)
    found = fitted(tmp_path / "n.h5", 50).to_inferencedata()
    assert found.posterior["beta"].dims == ("chain", "draw", "coefficient")
    np.testing.assert_array_equal(found.posterior["beta"].values, held["beta"])
    assert found.posterior["coefficient"].values.tolist() == ["intercept", "age"]
    table = arviz_stats.summary(found, var_names=["beta", "sigma2"])
    assert float(table.loc["beta[age]", "mean"]) == pytest.approx(held["beta"][:, :, 1].mean(), abs=0.01)
    rng = rng_of("arviz")
    write_chains(tmp_path / "c.h5", [states_of_mixture(30, rng), states_of_mixture(30, rng)])
    found = fitted(tmp_path / "c.h5", 30).to_inferencedata()
    assert dict(found.posterior["n_clusters"].sizes) == {"chain": 2, "draw": 30}
    arviz_stats.rhat(found, var_names=["n_clusters"])
    frame = fitted(tmp_path / "c.h5", 30).to_dataframe()
    assert frame.shape[0] == 60 and list(frame.columns[:3]) == ["chain", "draw", "n_clusters"]


def test_the_installed_arviz_decides_what_it_is_given(tmp_path: Path, monkeypatch: Any) -> None:
    xarray = pytest.importorskip("xarray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz")
    write_regression(tmp_path / "n.h5")
    found = to_inferencedata(tmp_path / "n.h5")
    kind = getattr(arviz, "InferenceData", xarray.DataTree)
    assert isinstance(found, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "sigma2" in arviz.summary(found, var_names=["sigma2"]).index
    monkeypatch.setattr(draws_tables.importlib.metadata, "version", lambda name: "1.0.0")
    assert isinstance(to_inferencedata(tmp_path / "n.h5"), xarray.DataTree)
