"""Summaries of regressions: what lies beyond the bounds, clamped predictions, priors that make no sense."""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import dpmix
from dpmix.errors import SpecError
from dpmix.models.linear_regression.meaning import _cut_off, _remark
from dpmix.models.meaning_base import MOVED, meaning_of
from dpmix.report.parametric_page import line_draws
from dpmix.run.chains_reader import NamedChains, read_chains
from dpmix.spec.describe import rows_outside
from dpmix.spec.load import load_spec
from dpmix.spec.model_section import TAKEN_AS_CLAMPED
from dpmix.summary.quantities import Beyond
from dpmix.summary.summary_result import Summary
from tests.helpers.pages import undrawn

BOUNDS = [[-3.0, 4.0], [-5.0, 3.0], [-4.0, 4.0]]  # 45% of the responses lie below
SPEC: dict[str, Any] = {
    "data": {"simulate": "linear_regression", "n": 200, "seed": 1},
    "mechanism": {"kind": "clamped_moments", "bounds": BOUNDS, "epsilon": 20.0},
    "model": {"kind": "linear_regression", "predict": [[1.0, -1.0], [2.0, 0.5]]},
    "sampler": {"iterations": 700, "burn_in": 300, "chains": 2, "seed": 1},
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("regression") / "release.h5"
    dpmix.privatize(SPEC, path)
    return path


def fitted(release: Path, output: Path, sampler: dict[str, Any] | None = None, **model: Any) -> NamedChains:
    spec = {**SPEC, "model": SPEC["model"] | model, "sampler": SPEC["sampler"] | (sampler or {})}
    dpmix.fit(spec, release=release, output=output)
    chains = read_chains([output])
    assert isinstance(chains, NamedChains)
    return chains


CLAMPED_AT = [[1.0, -1.0], [9.0, -9.0], [4.0, -5.0]]


@pytest.fixture(scope="module")
def clamped(release: Path) -> Path:
    """Chains of a line in predictors as the table holds them."""
    path = release.parent / "clamped.h5"
    fitted(release, path, predictors="clamped", predict=CLAMPED_AT)
    return path


def draws_of(chains: NamedChains) -> dict[str, Any]:
    found = {parameter.name: chains.read(parameter) for parameter in chains.parameters}
    return {name: values.reshape(-1, *values.shape[2:]) for name, values in found.items()}


@pytest.mark.parametrize(("share", "grave"), [(0.02, None), (MOVED, None), (0.031, False), (0.5, False)])
def test_clamped_responses_are_a_reason_for_care(share: float, grave: bool | None) -> None:
    """Of those beyond the bounds a normal law speaks, which skewed errors or predictors do not have."""
    told = _remark("y", share, (0.0, 1.0), "", response=True)
    assert told.grave is grave
    assert ("slopes and predictions follow it" in told.text) == (grave is False)
    assert _remark("x", share, (0.0, 1.0), "", response=False).grave is None  # which `Beyond` says


@pytest.mark.parametrize(("share", "told"), [(0.02, False), (MOVED, False), (0.031, True), (0.9, True)])
def test_truncated_responses_are_a_reason_for_care(share: float, told: bool) -> None:
    """What the bounds leave of a normal law need not be that of a table whose errors are skewed."""
    found = _cut_off("y", share, (0.0, 1.0), "north")
    assert [remark.grave for remark in found] == [False] * told
    assert all("[0, 1] cut off" in remark.text and "of y in north" in remark.text for remark in found)


def test_rows_to_predict_beyond_the_bounds_are_told(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the rows of the spec in the words of `dpmix predict`, before a fit and after."""
    chains = fitted(release, tmp_path / "c.h5", {"iterations": 20, "burn_in": 10}, predict=CLAMPED_AT)
    (tmp_path / "at.csv").write_text("x1,x2\n1,-1\n9,-9\n4,-5\n")
    told = [
        f"1 of 3 values of {name} lie outside [{ends}], to which the records behind the release were "
        "clamped: they are taken as they are, and the line goes on"
        for name, ends in (("x1", "-3, 4"), ("x2", "-5, 3"))
    ]
    capsys.readouterr()
    dpmix.predict(tmp_path / "c.h5", tmp_path / "at.csv", quiet=True)
    notes = [line for line in capsys.readouterr().err.splitlines() if "note: " in line]
    assert notes == [f"dpmix: note: {text}" for text in told]
    remarks = meaning_of(chains).account(chains.run_spec.summary).remarks
    assert [each.text for each in remarks if "outside" in each.text] == [
        f"Of model.predict {text}." for text in told
    ]
    stated = load_spec({**SPEC, "model": {**SPEC["model"], "predict": CLAMPED_AT}})
    assert rows_outside(stated) == [f"note: of model.predict {text}" for text in told]
    assert rows_outside(load_spec(SPEC)) == []
    clamped = {**SPEC["model"], "predict": CLAMPED_AT, "predictors": "clamped"}
    assert rows_outside(load_spec({**SPEC, "model": clamped}))[0].endswith(": " + TAKEN_AS_CLAMPED)


def test_what_lies_beyond_the_bounds_is_told(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains = fitted(release, tmp_path / "c.h5")
    draws, rng = draws_of(chains), np.random.default_rng(2)
    summary = dpmix.summarize([tmp_path / "c.h5"], tmp_path / "s.h5", report=tmp_path / "s.html")
    content = summary.to_json()
    # a record of every draw, a hundred times
    beyond = np.zeros(3)
    x_root = np.linalg.cholesky(draws["x_cov"])
    for _ in range(100):
        x = draws["x_mean"] + np.einsum("dij,dj->di", x_root, rng.normal(size=draws["x_mean"].shape))
        y = draws["beta"][:, 0] + (draws["beta"][:, 1:] * x).sum(axis=1)
        y += np.sqrt(draws["sigma2"]) * rng.normal(size=len(y))
        record = np.column_stack([x, y])
        beyond += ((record < np.array(BOUNDS)[:, 0]) | (record > np.array(BOUNDS)[:, 1])).mean(axis=0) / 100
    found = content["beyond_bounds"]
    assert list(found) == ["x1", "x2", "y"] and found["y"] > 0.2
    np.testing.assert_allclose(list(found.values()), beyond, atol=0.006)
    with h5py.File(tmp_path / "s.h5") as file:
        np.testing.assert_array_equal(file["beyond_bounds/share"][()], list(found.values()))
    (told,) = [text for text in content["warnings"] if "of values of y lie beyond the public bounds" in text]
    assert "bounds [-4, 4] and count" in told and told in content["verdict"]["reasons"]
    chains = read_chains([tmp_path / "c.h5"])
    said = meaning_of(chains).account(chains.run_spec.summary).of_predictions
    assert "of values of y lie beyond the public bounds and count as clamped" in said[-1]
    with monkeypatch.context() as patch:  # were these draws of truncated errors, so much would be cut off
        law = chains.stated("model") | {"response": "truncated"}
        patch.setattr(NamedChains, "stated", lambda *_: law)
        account = meaning_of(chains).account(chains.run_spec.summary)
    assert account.beyond["y"] == 0.0
    (doubt,) = [each for each in account.remarks if each.grave is False]
    assert f"cut off {100 * found['y']:.0f}% of the normal law of y" in doubt.text
    assert doubt.text in account.of_predictions
    assert "beyond the public bounds, under the fit: x1" in " ".join(summary.to_text().split())
    page = (tmp_path / "s.html").read_text(encoding="utf-8")
    assert "Records beyond the public bounds" in page and "prediction[x1 = 2, x2 = 0.5]" in page
    # lines over each predictor, the other in the middle of its bounds, and slopes beside the prior's
    assert isinstance(summary, Summary)
    at, lines = line_draws(summary, 0)
    assert (at[0], at[-1]) == (-3.0, 4.0)
    middle = draws["beta"][:, 0] - draws["beta"][:, 2]
    np.testing.assert_allclose(lines[:, -1], middle + 4.0 * draws["beta"][:, 1])
    alts = [html.unescape(alt) for alt in re.findall(r'aria-label="([^"]*)"', page)]
    slope = content["parameters"]["beta[x1]"]["mean"]
    assert alts[0].startswith(f"y {'rises' if slope > 0 else 'falls'} with x1: slope {slope:.2f}"[:18])
    assert sum(alt.startswith("Coefficients beside the prior: ") for alt in alts) == 2  # in two forms
    ends = list(summary.parameters["beta[x1]"].prior or ())
    assert ends[0] < ends[1] < ends[2]
    assert not any(alt.startswith("Density") for alt in alts)
    # the mean of clamped responses, by draws of them
    for row, at in enumerate(SPEC["model"]["predict"]):
        mean = draws["beta"][:, 0] + draws["beta"][:, 1:] @ np.array(at)
        noise = np.sqrt(draws["sigma2"])[:, None] * rng.normal(size=(len(mean), 400))
        clamped = np.clip(mean[:, None] + noise, -4.0, 4.0).mean()
        figures = content["parameters"][f"prediction_clamped[{row}]"]
        assert figures["mean"] == pytest.approx(clamped, abs=0.02)
        assert figures["label"] == content["parameters"][f"prediction[{row}]"]["label"]
        assert figures["contraction"] is not None


def test_a_column_that_is_called_as_the_intercept_has_pictures_by_its_number(tmp_path: Path) -> None:
    columns = ["intercept", "x2", "y"]
    table = dict(zip(columns, np.random.default_rng(1).normal(size=(3, 200)), strict=True))
    spec = {"data": {"columns": columns}, "mechanism": SPEC["mechanism"]}
    release = dpmix.privatize(spec, tmp_path / "r.h5", data=table, quiet=True)
    analyst = {"model": {"kind": "linear_regression"}, "sampler": SPEC["sampler"]}
    dpmix.fit(analyst, release, tmp_path / "c.h5")
    with undrawn():
        summary = dpmix.summarize(tmp_path / "c.h5", report=tmp_path / "s.html")
    beta = [name for name in summary.to_json()["parameters"] if name.startswith("beta")]
    assert beta == ["beta[intercept]", "beta[1]", "beta[2]"]
    page = html.unescape((tmp_path / "s.html").read_text(encoding="utf-8"))
    assert "Mean y by predictor 1, with the other predictors" in page


@pytest.mark.matrix
def test_truncated_errors_stay_within_the_bounds_and_say_so(release: Path, tmp_path: Path) -> None:
    fitted(release, tmp_path / "c.h5", {"iterations": 150, "burn_in": 50}, response="truncated")
    summary = dpmix.summarize([tmp_path / "c.h5"])
    content = summary.to_json()
    assert content["beyond_bounds"]["y"] == 0.0 and content["beyond_bounds"]["x1"] > 0.0
    assert "beta is not the slope of the mean response" in content["prior"]
    assert content["check"]["overall"] is not None
    assert not any("values of y lie beyond" in text for text in content["warnings"])
    chains = read_chains([tmp_path / "c.h5"])
    assert isinstance(chains, NamedChains)
    said = meaning_of(chains).account(chains.run_spec.summary).of_predictions
    assert not any("of values of y" in text for text in said)
    rows = content["parameters"]
    assert rows["prediction[0]"]["mean"] == rows["prediction_clamped[0]"]["mean"]
    # how much of the normal law is cut off is told and doubted, by records of every draw
    draws, rng = draws_of(chains), np.random.default_rng(2)
    x = np.einsum(
        "dij,kdj->kdi", np.linalg.cholesky(draws["x_cov"]), rng.normal(size=(200, len(draws["beta"]), 2))
    )
    y = draws["beta"][:, 0] + (draws["beta"][:, 1:] * (draws["x_mean"] + x)).sum(axis=2)
    y += np.sqrt(draws["sigma2"]) * rng.normal(size=y.shape)
    (told,) = [text for text in said if "cut off" in text]
    found = re.search(r"bounds \[-4, 4\] cut off (\d+)% of the normal law of y:", told)
    assert found and float(found[1]) == pytest.approx(100 * (np.abs(y) > 4.0).mean(), abs=1.0)
    assert told in content["warnings"] and told in content["verdict"]["reasons"]


@pytest.mark.matrix
def test_a_line_in_clamped_predictors_is_told_and_predicted_from(clamped: Path, tmp_path: Path) -> None:
    chains = read_chains([clamped])
    assert isinstance(chains, NamedChains)
    content = dpmix.summarize([clamped]).to_json()
    assert "as the table holds them" in content["prior"]
    draws, rng, bounds = draws_of(chains), np.random.default_rng(2), np.array(BOUNDS)
    beyond, root = np.zeros(3), np.linalg.cholesky(draws["x_cov"])
    for _ in range(100):
        x = draws["x_mean"] + np.einsum("dij,dj->di", root, rng.normal(size=draws["x_mean"].shape))
        y = draws["beta"][:, 0] + (draws["beta"][:, 1:] * np.clip(x, *bounds[:-1].T)).sum(axis=1)
        record = np.column_stack([x, y + np.sqrt(draws["sigma2"]) * rng.normal(size=len(y))])
        beyond += ((record < bounds[:, 0]) | (record > bounds[:, 1])).mean(axis=0) / 100
    np.testing.assert_allclose(list(content["beyond_bounds"].values()), beyond, atol=0.006)
    # beyond the bounds a value counts as the nearer one: in the fit, and in predictions of a table
    np.testing.assert_allclose(
        draws["prediction"][:, 0], draws["beta"] @ np.array([1.0, 1.0, -1.0]), atol=1e-10
    )
    np.testing.assert_array_equal(draws["prediction"][:, 1], draws["prediction"][:, 2])
    (tmp_path / "at.csv").write_text("x1,x2\n1,-1\n9,-9\n4,-5\n")
    found = dpmix.predict(clamped, tmp_path / "at.csv", quiet=True)
    np.testing.assert_allclose(found["mean"], draws["prediction"].mean(axis=0), atol=1e-10)


def test_a_prior_that_holds_the_errors_up_is_told(release: Path, tmp_path: Path) -> None:
    fitted(release, tmp_path / "held.h5", sigma2_prior={"a": 20.0, "b": 400.0})
    (said,) = [
        text for text in dpmix.summarize([tmp_path / "held.h5"]).warnings if "holds up sigma2 (" in text
    ]
    assert "the prior's at 1" in said and "leave out model.sigma2_prior.b" in said
    fitted(release, tmp_path / "learned.h5", sigma2_prior={"a": 20.0})
    assert not any("holds up" in text for text in dpmix.summarize([tmp_path / "learned.h5"]).warnings)


def stated(
    folder: Path, epsilon: float, x_cov: list[list[float]], slopes: list[float], about: float = 0.1
) -> dict[str, Any]:
    """Return a spec of moments of 1,000 records, predictors about 0.1 or so on [-1, 1]; their noise is 0."""
    n = 1000
    b, x_mean = np.array(slopes), np.full(len(slopes), about)
    middle = np.concatenate([x_mean, [0.05 + b @ x_mean]])
    turn = np.vstack([np.eye(len(b)), b])
    spread = turn @ np.array(x_cov) @ turn.T
    spread[-1, -1] += 0.08**2
    moments = n * np.block(
        [[np.ones((1, 1)), middle[None]], [middle[:, None], spread + np.outer(middle, middle)]]
    )
    q = len(middle)
    places = [*((i, q) for i in range(q + 1)), *((i, j) for i in range(q) for j in range(i, q) if j)]
    (folder / "r.csv").write_text("value\n" + "".join(f"{float(moments[place])!r}\n" for place in places))
    return {
        "release": {"path": str(folder / "r.csv"), "columns": ["value"]},
        "mechanism": {"kind": "clamped_moments", "bounds": [[-1.0, 1.0]] * q, "n": n, "epsilon": epsilon},
        "model": {"kind": "linear_regression"},
        "sampler": {"iterations": 1500, "burn_in": 500, "chains": 2, "seed": 1},
    }


@pytest.mark.parametrize(
    ("epsilon", "x_cov", "slopes", "x_prior", "held"),
    [
        (4.0, [[0.04**2]], [0.9], {"Psi": [[0.16]]}, ["x_cov[1,1]"]),
        (4.0, [[0.25**2]], [0.9], {"Psi": [[0.16]]}, []),
        pytest.param(4.0, [[0.04**2]], [0.9], {"Psi": [[4 * 0.04**2]]}, [], marks=pytest.mark.matrix),
        pytest.param(4.0, [[0.04**2]], [0.9], {}, [], marks=pytest.mark.matrix),
        (  # each varies by much, and one beside the other by little
            16.0,
            [[0.0625, 0.0618], [0.0618, 0.0625]],
            [0.8, 0.0],
            {"Psi": [[0.16, 0.0], [0.0, 0.16]]},
            ["x_cov[1,1]", "x_cov[2,2]"],
        ),
    ],
)
def test_a_prior_that_holds_predictors_up_is_told_and_doubted(
    tmp_path: Path,
    epsilon: float,
    x_cov: list[list[float]],
    slopes: list[float],
    x_prior: dict[str, Any],
    held: list[str],
) -> None:
    """Bounds that are wide for a predictor: the prior of its variance flattens the slope."""
    spec = stated(tmp_path, epsilon, x_cov, slopes)
    spec["model"]["x_prior"] = x_prior
    dpmix.fit(spec, output=tmp_path / "c.h5", quiet=True)
    summary = dpmix.summarize([tmp_path / "c.h5"])
    assert isinstance(summary, Summary)
    assert [name for name, scalar in summary.parameters.items() if scalar.held_up] == held
    said = [text for text in summary.warnings if text.startswith("The prior holds up")]
    doubts = [text for text in summary.verdict.reasons if text.startswith("The prior holds up")]
    assert len(said) == len(doubts) == bool(held)
    if held:
        assert f"holds up {' and '.join(held)}: the predictor, or what of it other" in said[0]
        assert "; leave out model.x_prior.Psi for scales that are learned, or state a smaller" in doubts[0]
        assert summary.verdict.answer != "usable"
    # what is told is so: the interval falls short of the slope where the predictor is held up
    assert (max(summary.parameters["beta[1]"].quantiles.values()) < slopes[0]) == bool(held)


@pytest.mark.parametrize(
    ("sd", "slope", "prior_sd", "told"),
    [
        (0.05, 5.0, 1.0, True),
        pytest.param(0.05, 5.0, 8.0, False, marks=pytest.mark.matrix),
        (0.25, 0.9, 1.0, False),
        (0.05, 5.0, "learned", False),
        pytest.param(0.25, 0.9, "learned", False, marks=pytest.mark.matrix),
        (0.0125, 20.0, "learned", True),
    ],
)
def test_a_prior_that_ends_the_interval_of_a_slope_is_told_and_doubted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    sd: float,
    slope: float,
    prior_sd: float | str,
    told: bool,
) -> None:
    """Five prior sds away, its contraction is 0.6 and more, R-hat 1.00, and the interval ends below.

    Under the default it holds such a slope, and ends below one that is steeper, of which nothing is told.
    """
    spec = stated(tmp_path, 8.0 if slope < 10.0 else 2.0, [[sd**2]], [slope], 0.0)
    spec["model"]["prior_sd"] = prior_sd
    dpmix.fit(spec, output=tmp_path / "c.h5", quiet=True)
    summary = dpmix.summarize([tmp_path / "c.h5"])
    assert isinstance(summary, Summary)
    low, _, high = summary.parameters["beta[1]"].quantiles.values()
    said = "The prior, as well as the release, says how far beta[1] reaches: under "
    said += "Cauchy priors 4 times as wide" if prior_sd == "learned" else "a model.prior_sd 2 times as large"
    assert (low < slope < high) == (not told)
    assert any(text.startswith(said) for text in summary.warnings) == told
    assert summary.verdict.reasons[0].startswith(said) == told
    assert summary.verdict.answer == ("with care" if told else "usable")
    if told:  # what a wider prior would give is told by weighing: it is on the way to the slope
        end = summary.verdict.reasons[0].partition(" in the place of ")[0].rpartition(" ")[2]
        assert float(end) > high
    (tmp_path / "at.csv").write_text("1\n0.5\n")
    capsys.readouterr()
    dpmix.predict(tmp_path / "c.h5", tmp_path / "at.csv", quiet=True)
    assert (said in capsys.readouterr().err) == told


def test_a_run_under_normal_priors_is_not_gone_on_with_under_others(release: Path, tmp_path: Path) -> None:
    """As where none was stated, which earlier versions took for a prior_sd of 1."""
    chains = fitted(release, tmp_path / "c.h5", prior_sd=1.0)
    assert chains.attrs["beta_scale"] == "fixed"
    with pytest.raises(SpecError) as caught:
        dpmix.fit(SPEC, release=release, output=tmp_path / "c.h5", resume=True)
    assert str(caught.value).startswith("model.prior_sd: the finished ")
    assert "has 1, not learned; give another output" in str(caught.value)
    stated = {**SPEC, "model": SPEC["model"] | {"prior_sd": 1}}
    assert not dpmix.fit(stated, release=release, output=tmp_path / "c.h5", resume=True).written


@pytest.mark.matrix
def test_truncated_errors_about_a_line_in_clamped_predictors(release: Path, tmp_path: Path) -> None:
    rows = [[9.0, -9.0], [4.0, -5.0]]
    short = {"iterations": 150, "burn_in": 50}
    chains = fitted(
        release, tmp_path / "c.h5", short, response="truncated", predictors="clamped", predict=rows
    )
    content = dpmix.summarize([tmp_path / "c.h5"]).to_json()
    assert content["beyond_bounds"]["y"] == 0.0 and content["check"]["overall"] is not None
    assert "beta is not the slope of the mean response" in content["prior"]
    assert "as the table holds them: x_mean and x_cov are of latent values" in content["prior"]
    draws = draws_of(chains)
    np.testing.assert_array_equal(draws["prediction"][:, 0], draws["prediction"][:, 1])
    (tmp_path / "at.csv").write_text("x1,x2\n9,-9\n4,-5\n")
    found = dpmix.predict(tmp_path / "c.h5", tmp_path / "at.csv", quiet=True)
    np.testing.assert_allclose(found["mean"], draws["prediction"].mean(axis=0), atol=1e-10)


@pytest.mark.matrix
def test_beyond_the_bounds_a_value_counts_as_the_nearer_one(
    clamped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "at.csv").write_text("x1,x2\n9,-9\n")
    capsys.readouterr()
    dpmix.predict(clamped, tmp_path / "at.csv", quiet=True)
    told = capsys.readouterr().err
    assert "1 of 1 values of x1 lie outside [-3, 4]" in told
    assert "so are these, as model.predictors: clamped has it" in told and "goes on" not in told


def test_more_sweeps_are_not_recommended_under_a_prior_that_makes_no_sense(
    release: Path, tmp_path: Path
) -> None:
    fitted(release, tmp_path / "c.h5", prior_sd=1e4)
    summary = dpmix.summarize([tmp_path / "c.h5"])
    text = " ".join(summary.warnings)
    assert "A priori the mean of a record of y lies within the public bounds [-4, 4] with probability" in text
    assert "give model.prior_mean and model.prior_sd of variables rescaled" in text
    assert "times as many sweeps" not in text
    assert "of a record of x1" not in text  # whose prior follows the bounds


def test_a_predictor_of_0_and_1_on_these_bounds_is_said_to_spoil_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(8)
    x = (rng.random(300) < 0.4).astype(float)
    table = {"x": x, "y": 20.0 + 10.0 * x + 5.0 * rng.normal(size=300)}
    spec = {
        "data": {"path": "none.csv", "columns": ["x", "y"]},
        "mechanism": {"kind": "clamped_moments", "bounds": [[0.0, 1.0], [0.0, 60.0]], "epsilon": 8.0},
        "model": {"kind": "linear_regression"},
        "sampler": SPEC["sampler"],
    }
    dpmix.privatize(spec, tmp_path / "r.h5", data=table)
    assert "note: x has bounds [0, 1]: where its values are 0 and 1 alone" in capsys.readouterr().err
    dpmix.fit(spec, release=tmp_path / "r.h5", output=tmp_path / "c.h5")
    summary = dpmix.summarize([tmp_path / "c.h5"])
    assert isinstance(summary, Summary)
    assert summary.beyond_bounds["x"] > 0.2
    assert summary.verdict.answer != "usable"
    assert any(
        "slopes and predictions are of these latent values" in text for text in summary.verdict.reasons
    )
    assert "not of the table's where it has none there; take model.predictors: clamped" in " ".join(
        summary.to_text().split()
    )
    assert any(
        "alone says where they lie, and not in the table's where it" in text for text in summary.warnings
    )
    # and with predictions
    (tmp_path / "at.csv").write_text("x\n0\n1\n")
    capsys.readouterr()
    dpmix.predict(tmp_path / "c.h5", tmp_path / "at.csv", quiet=True)
    assert (
        "not of the table's where it has none there; take model.predictors: clamped"
        in capsys.readouterr().err
    )
    # the share is that of a line in the values as they count, where the spec says so: nothing is amiss
    chains = read_chains([tmp_path / "c.h5"])
    assert isinstance(chains, NamedChains)
    model = {**chains.spec["model"], "predictors": "clamped"}
    changed = dataclasses.replace(chains, spec={**chains.spec, "model": model})
    line = meaning_of(changed).account(chains.run_spec.summary)
    assert line.beyond["x"] == summary.beyond_bounds["x"]
    assert Beyond.of(line).moved == []
    assert not any("values of x" in remark.text for remark in line.remarks)
