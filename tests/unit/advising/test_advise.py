"""Advice before any data: closed forms, exact tables, lists of a command, and what is refused."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

import dpmix
from dpmix.advising import mixtures as informed
from dpmix.advising.advice import Advice, Row, _finding, draw, write
from dpmix.advising.population import QUANTITIES, population_of
from dpmix.errors import PrivacyError, SpecError, UsageError
from dpmix.laws.every import law_of
from dpmix.models.linear_regression.regression_advice import Predictors
from dpmix.models.multinomial.meaning import expected_of_shares
from dpmix.spec.advise_section import LognormalPopulation
from tests.helpers.specs import ROOT
from tests.unit.cli.test_cli import outcome

SPEC: dict[str, Any] = {
    "data": {"path": "is/not/there.csv", "columns": ["y"], "domain": [[0.0, 1.0]]},
    "advise": {"population": {"kind": "beta", "a": 5.0, "b": 2.0}},
}
COUNTS: dict[str, Any] = {
    "mechanism": {"kind": "noisy_counts", "levels": [2], "classes": 2, "epsilon": 1.0},
    "model": {"kind": "naive_bayes", "prior": 1.0},
}


def test_advice_about_proportions_is_closed_form() -> None:
    """Two classes, one feature: every count twice the noise; a Beta(1, 1) prior of variance 1/12."""
    n, epsilon = 10_000, 1.0
    row = dpmix.advise(COUNTS, epsilon=epsilon, n=n).rows[0]
    scale = 2.0 / epsilon
    variance = 0.25 / n + 2 * 2 * scale**2 / n**2
    assert_allclose(row.sd["p[1]"], (1 / (1 / variance + 12)) ** 0.5, rtol=1e-6)
    assert row.best and row.delta == 0.0 and row.band is None


def test_advice_about_responses_is_that_of_a_grid() -> None:
    """Two categories: the expected counts' likelihood by quadrature."""
    keys = {"kind": "randomized_response", "ratio": "3/1", "categories": [["a", "b"]]}
    which: Any = law_of(keys)
    n = 5_000
    found = expected_of_shares(which, n, np.ones(2))
    p = np.linspace(0.0, 1.0, 20_001)
    yes = (1 + 2 * p) / 4
    logs = n * (0.5 * np.log(yes) + 0.5 * np.log(1 - yes))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    sd = (weights @ (p - 0.5) ** 2) ** 0.5
    assert_allclose(found["p[a]"][0], sd, rtol=0.01)


def test_advice_about_alpha_is_fishers_information_without_noise() -> None:
    spec = {
        "mechanism": {"kind": "log_moments", "threshold": 1e-9, "components": 2, "epsilon": 1e6},
        "model": {"kind": "dirichlet", "prior": {"shape": 1.0, "rate": 0.1}},
    }
    n = 2_000
    row = dpmix.advise(spec, epsilon=1e6, n=n).rows[0]
    own = np.diag(special.polygamma(1, [10.0, 10.0])) - special.polygamma(1, 20.0)
    exact = np.linalg.inv(n * own + np.eye(2) * 0.01)
    assert_allclose(row.sd["alpha[1]"], exact[0, 0] ** 0.5, rtol=0.02)


def test_advice_about_a_regression_is_least_squares_without_noise() -> None:
    spec = {
        "mechanism": {"kind": "clamped_moments", "bounds": [[0.0, 10.0], [0.0, 100.0]], "epsilon": 1e6},
        "model": {
            "kind": "linear_regression", "sigma2": 25.0, "x_mean": [5.0], "x_cov": [[1.0]],
            "prior_sd": 100.0, "prior_mean": [0.0, 0.0],
        },
    }  # fmt: skip
    row = dpmix.advise(spec, epsilon=1e6, n=4_000).rows[0]
    assert_allclose(row.sd["beta[column 1]"], (25.0 / (4_000 * 1.0)) ** 0.5, rtol=0.05)


def test_advice_about_a_line_in_clamped_predictors_is_least_squares_on_these() -> None:
    """Of predictors nearly all of which lie at either bound, 5 from the middle."""
    model = {
        "kind": "linear_regression",
        "sigma2": 25.0,
        "x_mean": [5.0],
        "x_cov": [[1e6]],
        "prior_sd": 100.0,
    }
    spec = {
        "mechanism": {"kind": "clamped_moments", "bounds": [[0.0, 10.0], [0.0, 100.0]], "epsilon": 1e6},
        "model": model | {"predictors": "clamped"},
    }
    row = dpmix.advise(spec, epsilon=1e6, n=4_000).rows[0]
    assert_allclose(row.sd["beta[column 1]"], (25.0 / (4_000 * 25.0)) ** 0.5, rtol=0.05)


def regressed(model: dict[str, Any], n: int = 4_000, epsilon: float = 1.0) -> Any:
    spec = {
        "data": {"columns": ["vote", "school", "income"], "path": "x.csv"},
        "mechanism": {"kind": "clamped_moments", "bounds": [[0, 1], [1, 7], [1, 24]], "epsilon": 1.0},
        "model": {"kind": "linear_regression"} | model,
    }
    return dpmix.advise(spec, epsilon=epsilon, n=n, quiet=True)


def test_a_regression_is_advised_by_its_own_prior_of_predictors() -> None:
    """Psi/(nu - p - 1) is what the covariance is expected to be; many degrees of freedom tell it."""
    stated = {"mu0": [0.5, 4.0], "lambda": 1e9, "nu": 1e9, "Psi": [[0.25e9, 1e8], [1e8, 2.5e9]]}
    (found,) = regressed({"x_prior": stated}).rows
    known = {"x_mean": [0.5, 4.0], "x_cov": [[0.25, 0.1], [0.1, 2.5]]}
    (exact,) = regressed(known).rows
    assert_allclose(list(found.sd.values()), list(exact.sd.values()), rtol=1e-3)
    narrow = {"nu": 13.0, "Psi": [[0.025, 0.0], [0.0, 0.25]]}  # 0.01 of the variance
    (rough,) = regressed({"x_prior": narrow}).rows
    assert rough.sd["beta[school]"] > 5.0 * exact.sd["beta[school]"]
    for freedom in (1.5, 3.5):  # no mean, and no variance
        (row,) = regressed({"x_prior": {"nu": freedom, "Psi": [[0.5, 0.0], [0.0, 5.0]]}}).rows
        assert all(map(math.isfinite, row.sd.values()))
    (aside,) = regressed({"x_prior": {"mu0": [0.5, 6.9], "Psi": [[1.0, 0.0], [0.0, 10.0]]}}).rows
    (middle,) = regressed({"x_prior": {"mu0": [0.5, 4.0], "Psi": [[1.0, 0.0], [0.0, 10.0]]}}).rows
    assert aside.sd["beta[school]"] > 1.2 * middle.sd["beta[school]"]  # half of it is cut
    with pytest.raises(SpecError, match=r"model\.x_prior\.mu0: has 1 entries"):
        regressed({"x_prior": {"mu0": [0.5]}})


def test_prior_covariances_are_those_of_an_inverse_wishart() -> None:
    psi = np.array([[1.0, 0.3], [0.3, 0.5]])
    found = Predictors(np.zeros(2), psi / 9.0, 0.16, 12.0).of_covariance()
    draws = stats.invwishart(12, psi).rvs(100_000, random_state=3)
    assert_allclose(found, np.cov(draws[:, [0, 1, 1], [0, 0, 1]].T), rtol=0.05)
    # each scale learned, of gamma laws of shape 1/2
    found = Predictors(np.zeros(2), np.diag([1.0, 0.5]) / 17.0, 0.16, 20.0, learned=True).of_covariance()
    draws = stats.invwishart(20, np.eye(2)).rvs(60_000, random_state=4)
    roots = np.sqrt([1.0, 0.5]) * np.random.default_rng(5).standard_normal((60_000, 2))
    draws = draws * roots[:, :, None] * roots[:, None]
    np.testing.assert_allclose(found, np.cov(draws[:, [0, 1, 1], [0, 0, 1]].T), rtol=0.05, atol=1e-4)


def test_what_nobody_states_of_predictors_is_said() -> None:
    told = regressed({})
    (text,) = [text for text in told.warnings if "x_prior" in text]
    assert text.startswith("model.x_prior.Psi: learned, so that advice takes vote to have a standard")
    assert "vote to have a standard deviation of 0.1, school to have a standard deviation of 0.6" in text
    assert any(text.startswith("vote has bounds [0, 1]") for text in told.warnings)
    assert " ".join(text.split()) in " ".join(told.to_text().split())
    known = regressed({"x_cov": [[0.25, 0.0], [0.0, 2.5]], "predictors": "clamped"})
    assert not known.warnings
    (text,) = regressed({"predictors": "clamped"}).warnings
    assert "vote to be 0 or 1, half of the records each, school to have" in text


def test_a_predictor_of_two_values_is_told_as_a_difference_of_means() -> None:
    """A line in clamped predictors without noise: of each value half of the records."""
    model = {"predictors": "clamped", "sigma2": 4.0, "prior_sd": 100.0}
    (row,) = regressed(model, n=4_000, epsilon=1e6).rows
    assert_allclose(row.sd["beta[vote]"], (4 * 4.0 / 4_000) ** 0.5, rtol=0.15)


def test_truncated_errors_are_told_by_their_own_law() -> None:
    """An intercept alone, to speak of, without noise: Fisher's information of a truncated normal law."""
    sd, n = 12.0, 4_000
    model = {"response": "truncated", "sigma2": sd**2, "x_mean": [0.5, 4.0], "x_cov": [[1e-4, 0], [0, 1e-4]],
             "prior_sd": [100.0, 1e-6, 1e-6]}  # fmt: skip
    (row,) = regressed(model, n=n, epsilon=1e6).rows
    ends = 11.5 / sd
    spread = stats.truncnorm(-ends, ends).var()
    assert_allclose(row.sd["beta[intercept]"], sd / (n * spread) ** 0.5, rtol=0.05)


def test_dollars_and_microns_are_told_alike() -> None:
    """The statistics' advice scales with the units, exactly."""

    def slope(factor: float) -> float:
        bounds = [[0.0, 10.0], [0.0, 100.0 * factor]]
        spec = {"mechanism": {"kind": "clamped_moments", "bounds": bounds, "epsilon": 1.0}}
        return float(dpmix.advise(spec, epsilon=1.0, n=1_000).rows[0].sd["beta[column 1]"])

    assert_allclose(slope(1e6), 1e6 * slope(1.0), rtol=1e-9)


def test_groups_have_rows_of_their_own_names() -> None:
    found = dpmix.advise(ROOT / "configs" / "days_groups.yaml", epsilon=[1.0], n=[1e4])
    (row,) = found.rows
    assert row.sd["alpha[female,other]"] == row.sd["alpha[male,other]"]
    alone = dpmix.advise(ROOT / "configs" / "days_dirichlet.yaml", epsilon=[1.0], n=[1e4])
    assert row.sd["alpha[female,other]"] > alone.rows[0].sd["alpha[other]"]


def test_synthetic_records_are_tried_on_the_population() -> None:
    """A histogram without noise to speak of: a sample of n, and one of it of as many records."""
    spec = {
        "data": SPEC["data"] | {"categories": {"y": ["a", "b"]}, "domain": None},
        "synthesis": {"kind": "perturbed_histogram", "epsilon": 1.0, "records": 400},
    }
    spec["data"].pop("domain")
    (row,) = dpmix.advise(spec, epsilon=1e5, n=400).rows
    assert_allclose(row.sd["share"], (2 * 0.25 / 400) ** 0.5, rtol=0.35)
    assert row.trust == "global"


SYNTHESIS: dict[str, Any] = {
    "data": {"path": "x.csv", "columns": ["income", "food"], "unit": "francs",
             "domain": {"income": [0, 5000], "food": [0, 2500]}},
    "synthesis": {"kind": "perturbed_histogram", "bins": [20, 20], "epsilon": 1.0},
}  # fmt: skip


def test_ranges_hold_of_the_population_that_synthesis_is_tried_on() -> None:
    """Of many records and fine bins hardly any error is left, as without ranges."""
    ranges = [{"when": {"income": [0, 1000]}, "food": [0, 1000]}]
    stated = SYNTHESIS | {"synthesis": SYNTHESIS["synthesis"] | {"ranges": ranges, "records": 50_000}}
    found = dpmix.advise(stated, epsilon=50.0, n=50_000, quiet=True)
    assert found.rows[0].sd["mean[income]"] < 10.0 and found.rows[0].sd["median[food]"] < 10.0
    assert "as far as synthesis.ranges have them possible" in found.population
    assert "errors in francs for columns" in found.to_text()
    narrow = [{"income": [4990, 5000], "food": [0, 1]}]
    stated = SYNTHESIS | {"synthesis": SYNTHESIS["synthesis"] | {"ranges": narrow}}
    with pytest.raises(SpecError, match=r"synthesis\.ranges: of columns .* less than 0\.1% are possible"):
        dpmix.advise(stated, epsilon=1.0, n=1_000, quiet=True)


@pytest.mark.parametrize(
    "synthesis",
    [
        {"kind": "dirichlet_multinomial", "bins": 8, "records": 200},
        {"kind": "smoothed_histogram", "bins": 8, "records": 200},
        {"kind": "pitman_yor", "concentration": 1e5, "records": 200, "delta": 0.5},
    ],
)
def test_what_ignores_the_data_is_no_good_advice(synthesis: dict[str, Any], tmp_path: Path) -> None:
    """Records drawn of the generator's own uniform law, which is not that of the population."""
    stated = SPEC | {"synthesis": synthesis, "advise": None}
    found = dpmix.advise(stated, epsilon=[0.001, 8.0], n=2_000, quiet=True)
    first, last = found.rows
    if synthesis["kind"] == "pitman_yor":  # whose records epsilon does not change
        assert first.sd == last.sd
        stated = stated | {"synthesis": synthesis | {"concentration": 1.0}}
        (last,) = dpmix.advise(stated, epsilon=1.0, n=2_000, quiet=True).rows
    assert first.sd["mean"] > 0.15 > 3.0 * last.sd["mean"]  # 1/2 - 2/7 away
    assert found.population == "Beta(2, 5) on [0, 1]"
    (text,) = [text for text in found.warnings if "without a look at the data" in text]
    assert text.endswith("state advise.population by what is public")
    write(found, tmp_path / "advice.html", force=False)
    page = (tmp_path / "advice.html").read_text()
    assert "root mean square error of synthetic records in median" in page and "posterior sd" not in page
    assert draw(found).axes[0].get_ylabel() == "rms error of median"


def test_the_page_of_synthetic_records_speaks_of_no_prior() -> None:
    found = dpmix.advise(SYNTHESIS, epsilon=1.0, n=1_000, quiet=True)
    assert not found.warnings
    assert "prior" not in found._repr_html_() and "posterior" not in found._repr_html_()


def test_coefficients_have_their_units() -> None:
    spec = {
        "data": {"path": "x.csv", "columns": ["when", "age", "income"],
                 "unit": {"age": "years", "income": "dollars"},
                 "domain": {"when": ["2020-01-01", "2024-12-31"], "age": [0, 100], "income": [0, 9]}},
        "mechanism": {"kind": "clamped_moments", "epsilon": 1.0},
    }  # fmt: skip
    found = dpmix.advise(spec, epsilon=1.0, n=1_000, quiet=True)
    units = {name: found.unit_of(name) for name in found.rows[0].sd}
    assert units == {
        "beta[intercept]": "dollars", "beta[when]": "dollars per day", "beta[age]": "dollars per years",
    }  # fmt: skip
    text = found.to_text()  # headings stand on several lines
    assert "beta[intercept]" in text and "(dollars)" in text and "deviations for a" in text
    label = " ".join(draw(found).axes[0].get_ylabel().split())
    assert label == f"posterior sd of {found.quantity} ({units[found.quantity]})"


def test_a_notebook_gives_arrays() -> None:
    plain = dpmix.advise(COUNTS, epsilon=[1, 2], n=[100, 200], quiet=True).to_json()
    for epsilon, n in (
        (np.array([1, 2]), np.array([100, 200])),
        ((1, 2), range(100, 300, 100)),
        (np.array([1, 2], np.float32), np.array([[100.0, 200.0]])),
    ):
        assert dpmix.advise(COUNTS, epsilon=epsilon, n=n, quiet=True).to_json() == plain
    for one in (np.int64(100), np.array(100), np.float32(100)):
        (row,) = dpmix.advise(COUNTS, epsilon=np.int64(1), n=one, quiet=True).rows
        assert row.n == 100 and row.epsilon == 1.0
    for wrong, words in (
        ({"epsilon": "1,2"}, "--epsilon: 1,2 must be a positive number"),
        ({"n": object()}, "--n: must be a number or a list of numbers, not object"),
        ({"n": np.array([])}, "--n: names none"),
        ({"n": [1e3 + 0.5]}, "--n: 1000.5 must be a whole number"),
        ({"mechanism": []}, "--mechanism: names none"),
    ):
        with pytest.raises(UsageError, match=words):
            dpmix.advise(COUNTS, **wrong)  # type: ignore[arg-type]


def test_the_file_of_the_data_need_not_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = COUNTS | {"data": {"columns": ["a", "b"], "categories": {"a": [0, 1], "b": [0, 1]}}}
    assert dpmix.advise(spec, epsilon=1.0, n=100, quiet=True).to_json()[0]["n"] == 100
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps(spec))
    assert outcome(capsys, "advise", str(path), "--n", "100", "--epsilon", "1")[0] == 0
    assert outcome(capsys, "advise", str(path), "--set", "model.prior=2", "--n", "100")[0] == 0
    code, out, _ = outcome(capsys, "advise", str(path), "--dry-run")
    assert code == 0 and "of a file that is not named" in out
    for command in (["validate", str(path)], ["privatize", str(path), "-o", str(tmp_path / "r.h5")]):
        code, _, err = outcome(capsys, *command)
        assert code == 2 and "data.path: missing" in err


LOCAL = ["laplace", "gaussian", "wavelet", "binomial", "square_wave"]


@pytest.fixture
def no_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_rows(self: Any, rows: Any, jobs: int, done: Any) -> list[informed.Found]:
        sd = dict.fromkeys(QUANTITIES, 0.5)
        return [informed.Found(sd, 0.25, dict.fromkeys(QUANTITIES, 0.9)) for _ in rows]

    monkeypatch.setattr(informed.MixtureAdvice, "of_rows", of_rows)


@pytest.mark.usefixtures("no_sampling")
def test_all_of_one_column_are_compared_where_nobody_names_some() -> None:
    found = dpmix.advise(SPEC, epsilon=1.0, n=1_000, quiet=True)
    assert [(row.mechanism, row.trust) for row in found] == [
        *((kind, "local") for kind in LOCAL),
        ("perturbed_histogram", "global"),
    ]
    text = found.to_text().replace("\n  ", " ")
    assert (
        "Not compared: smoothed_histogram needs bins and draws; state them in the spec's mechanism, of "
        "that kind." in text
    )
    own = SPEC | {"mechanism": {"kind": "smoothed_histogram", "bins": 8, "draws": 125, "epsilon": 1.0}}
    found = dpmix.advise(own, epsilon=1.0, n=1_000, quiet=True)
    assert [row.mechanism for row in found] == [*LOCAL, "perturbed_histogram", "smoothed_histogram"]
    assert found.rows[-1].trust == "global" and "Not compared" not in found.to_text()
    named = dpmix.advise(SPEC, epsilon=1.0, n=1_000, mechanism="laplace", quiet=True)
    assert "Not compared" not in named.to_text()


@pytest.mark.usefixtures("no_sampling")
def test_of_groups_those_are_compared_that_release_groups() -> None:
    data = SPEC["data"] | {"group": "sex", "categories": {"sex": ["f", "m"]}}
    found = dpmix.advise(SPEC | {"data": data}, epsilon=1.0, n=1_000, quiet=True)
    assert [row.mechanism for row in found] == ["perturbed_histogram"]
    assert "Not compared: smoothed_histogram" in found.to_text()
    with pytest.raises(
        UsageError, match=r"--mechanism: laplace is not for groups .*; use smoothed_histogram"
    ):
        dpmix.advise(SPEC | {"data": data}, epsilon=1.0, n=1_000, mechanism="laplace", quiet=True)


@pytest.mark.parametrize(
    ("kind", "keys", "trust"),
    [
        ("noisy_counts", {"levels": [2], "classes": 2}, "global"),
        ("randomized_response", {"categories": [["a", "b"]]}, "local"),
    ],
)
def test_statistics_and_answers_say_their_trust_model(kind: str, keys: dict[str, Any], trust: str) -> None:
    data = {"data": {"path": "x.csv", "columns": ["c"], "categories": {"c": ["a", "b"]}}}
    stated: dict[str, Any] = {"mechanism": {"kind": kind, "epsilon": 1.0} | keys}
    if kind == "randomized_response":
        stated = data | {"mechanism": {"kind": kind, "epsilon": 1.0}, "model": {"kind": "multinomial"}}
    (row,) = dpmix.advise(stated, epsilon=1.0, n=1_000, quiet=True).rows
    assert row.trust == trust and row.to_json()["trust"] == trust


@pytest.mark.usefixtures("no_sampling")
def test_of_dates_it_tells_dates_and_days() -> None:
    spec = {
        "data": {"path": "x.csv", "columns": ["when"], "domain": ["2020-01-01", "2024-12-31"]},
        "advise": {"population": {"kind": "normal", "mean": 18_900, "sd": 400}, "target": {"median": 20}},
    }
    found = dpmix.advise(spec, epsilon=1.0, n=1_000, quiet=True)
    text = found.to_text().replace("\n  ", " ")
    assert "standard deviations in days for N(2021-09-30, 400^2); no record" in text
    assert "Wanted: median to 20 days." in text
    assert "beyond the bounds [2020-01-01, 2024-12-31]" in text
    pieces = {"kind": "histogram", "edges": [18_300, 18_400, 18_900], "weights": [1, 2]}
    told = dpmix.advise(spec | {"advise": {"population": pieces}}, epsilon=1.0, n=1_000, quiet=True)
    assert told.population == "a public histogram of 2 pieces on [2020-02-08, 2021-09-30]"


def test_lognormal_populations_are_stated_in_three_ways() -> None:
    one = LognormalPopulation(kind="lognormal", median=np.exp(2.0), sigma=0.5)
    mean = float(np.exp(2.125))
    sd = mean * float(np.expm1(0.25)) ** 0.5
    other = LognormalPopulation(kind="lognormal", mean=mean, sd=sd)
    assert_allclose(one.logarithm, other.logarithm, rtol=1e-12)
    where = population_of(one, (0.0, 10.0))
    exact = stats.lognorm(0.5, scale=np.exp(2.0))
    assert_allclose(where.beyond, exact.sf(10.0), rtol=1e-12)
    assert_allclose(where.below(np.array([5.0, 10.0])), [exact.cdf(5.0), 1.0])


@pytest.mark.parametrize(
    ("change", "options", "error", "words"),
    [
        ({}, {"epsilon": [0.0]}, UsageError, "--epsilon: 0.0 must be a positive number"),
        ({}, {"n": [10.5]}, UsageError, "--n: 10.5 must be a whole number"),
        ({}, {"mechanism": ["laplas"]}, UsageError, "--mechanism: laplas is no mechanism"),
        ({}, {"mechanism": ["none"]}, UsageError, "none takes no epsilon"),
        ({}, {"mechanism": ["smoothed_histogram"]}, UsageError, "needs bins and draws"),
        ({}, {"mechanism": ["square_wave"], "epsilon": 1e-12}, PrivacyError, "epsilon"),
        ({}, {"report": "x.pdf"}, UsageError, "--report x.pdf"),
        ({"data": {"path": "x.csv", "columns": ["y"]}}, {}, SpecError, "data.domain: missing"),
        (
            {"data": {"path": "x.csv", "columns": ["y", "z"], "domain": [[0, 1], [0, 1]]}},
            {}, SpecError, "data.columns: advice is about one column, and there are 2",
        ),
        ({"model": {"kind": "mixture", "discount": 0.2}}, {}, SpecError, "model.discount"),
        (
            {"advise": {"target": {"medan": 1.0}}}, {}, SpecError,
            'advise.target.medan: no quantity of this spec; did you mean "median"?',
        ),
        ({"advise": None, "model": {"kind": "mixture", "base": {"empirical": True}}}, {}, SpecError,
         "model.base.empirical"),
        (
            {"mechanism": {"kind": "posterior", "epsilon": 1.0, "prior": [1, 1], "n": 50},
             "data": {"path": "x.csv", "column": "y", "categories": ["a", "b"]}, "advise": None},
            {}, SpecError, "mechanism.kind: posterior cannot be advised",
        ),
        (COUNTS | {"data": None}, {}, SpecError, "advise.population: is for the density"),
        (COUNTS | {"data": None, "advise": {"target": {"p[9]": 1.0}}}, {}, SpecError, "advise.target.p[9]"),
        (
            COUNTS | {"data": None, "advise": None}, {"mechanism": ["laplace"]}, UsageError,
            "releases another thing",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_advised_is_refused_by_name(
    change: dict[str, Any], options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words.replace("[", r"\[").replace("]", r"\]")):
        dpmix.advise(
            {k: v for k, v in (SPEC | change).items() if v is not None},
            **{"epsilon": 1.0, "n": 1_000} | options,
        )


def test_a_command_refuses_before_anything_heavy(tmp_path: Path) -> None:
    """No row is computed, nor anything imported that compiles: an answer in a moment."""
    spec = tmp_path / "spec.yaml"
    spec.write_text(json.dumps(SPEC | {"advise": {"target": {"medan": 1.0}}}))
    words = {
        "advise.target.medan": [],
        "--epsilon: 0.0": ["--epsilon", "0"],
        "--n: 0.5": ["--n", "0.5"],
        "--mechanism: laplas": ["--mechanism", "laplas"],
    }
    told = (
        "import sys; from dpmix.cli.commands import main; sys.argv = ['dpmix', 'advise', *{!r}]\n"
        "try: main()\nfinally: print([n for n in ('numba', 'scipy') if n in sys.modules])"
    )
    for message, options in words.items():
        code = told.format([str(spec), *options])
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stdout.strip() == "[]"


SLOW = """
import signal, sys, time
from types import SimpleNamespace
from dpmix.advising import mixtures
from dpmix.models.counts_mixture.model import InformedMixture

class Chain:
    sweeps = 0
    def keep(self, thin, skip):
        pass
    def proceed(self, until):
        hear = signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGINT, signal.SIGTERM}})
        sys.stdout.write("sweeping\\n")
        sys.stdout.flush()
        time.sleep(0.01 * (until - self.sweeps))  # as compiled code, by which signals wait
        signal.pthread_sigmask(signal.SIG_SETMASK, hear)
        self.sweeps = until

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background have it ignored
mixtures.MixtureAdvice._prior_ranges = lambda self: None
mixtures.MixtureAdvice._told = lambda *args: (SimpleNamespace(leans=[0.0], thrown=lambda noise: None), [])
InformedMixture.make_chain = lambda *args: Chain()
InformedMixture.__post_init__ = lambda self: None
if {rows_at_once}:
    first = mixtures.MixtureAdvice._of
    def of(self, law, n, *rest):
        return mixtures.Found({{}}, 0.0) if n == 1000 else first(self, law, n, *rest)
    mixtures.MixtureAdvice._of = of
asked = "--mechanism laplace --epsilon 1 --n 1e3,1e4,1e5,1e6 --jobs 2"
sys.argv = ["dpmix", "advise", {spec!r}, *asked.split()]
from dpmix.cli.commands import main
main()
"""
"""Chains that take 9 s each: of the first row, for which the others wait, or of two rows at once."""


@pytest.mark.parametrize(("name", "rows_at_once"), [("SIGINT", False), ("SIGTERM", True)])
def test_one_signal_ends_it(name: str, rows_at_once: bool, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(json.dumps(SPEC))
    code = SLOW.format(rows_at_once=rows_at_once, spec=str(spec))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline().startswith("sweeping")
    process.send_signal(signal.Signals[name])
    begin = time.monotonic()
    _, err = process.communicate(timeout=240)
    assert (process.returncode, err) == (130, "dpmix: interrupted\n")
    assert time.monotonic() - begin < 5.0


def test_a_notebook_has_it_as_a_table() -> None:
    rows = (
        Row("laplace", "local", 1.0, 0.0, 1000, {"mean": 0.5, "median": 0.25}, 0.1, {"mean": 0.9}, best=True),
        Row("gaussian", "local", 1.0, 1e-6, 1000, {"mean": 0.75, "median": 0.5}, 0.2, {}),
    )
    found = Advice(rows, "<a> beta", {}, (), "median", {"median": "dollars"})
    frame = found.to_frame()
    assert list(frame.columns["sd[mean]"]) == [0.5, 0.75] and list(frame.columns["n"]) == [1000, 1000]
    shown = found._repr_html_()
    assert "gaussian" in shown and "&lt;a&gt; beta" in shown and "<a>" not in shown
    assert list(frame.columns["trust"]) == ["local", "local"] and '<th scope="col">trust</th>' in shown
    assert _finding(found) == (
        "Best at epsilon = 1, n = 1,000: laplace of local releases, median to 0.25 dollars."
    )
    drawn = draw(found)
    assert drawn.axes[0].get_ylabel() == "posterior sd of median (dollars)"


def test_the_command_prints_the_list_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(json.dumps(COUNTS | {"advise": {"target": {"p[1]": 0.001}}}))
    picture = tmp_path / "advice.png"
    code, out, err = outcome(
        capsys,
        "advise",
        str(spec),
        "--epsilon",
        "0.5,1",
        "--n",
        "1e3,1e4",
        "--json",
        "--report",
        str(picture),
    )
    assert code == 0, err
    rows = json.loads(out)
    assert [(row["epsilon"], row["n"]) for row in rows] == [(0.5, 1e3), (0.5, 1e4), (1, 1e3), (1, 1e4)]
    assert set(rows[0]) == {
        "mechanism", "trust", "epsilon", "delta", "n", "sd", "band", "best", "contraction", "needed",
    }  # fmt: skip
    assert set(rows[0]["needed"]) == {"epsilon", "n"}
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert outcome(capsys, "advise", str(spec), "--report", str(picture))[0] == 2  # is there already
    assert outcome(capsys, "advise", str(spec), "--epsilon", "1,x")[0] == 2
    assert outcome(capsys, "advise", str(spec), "--n", "0")[0] == 2
    page = tmp_path / "advice.html"
    assert outcome(capsys, "advise", str(spec), "--report", str(page), "--quiet")[0] == 0
    assert "<svg" in page.read_text() or "data:image/svg" in page.read_text()
