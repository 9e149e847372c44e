"""Advice before any data: closed forms, exact tables, lists of a command, and what is refused."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

import dpmix
from dpmix.advising import mixtures as informed
from dpmix.advising.advice import Advice, Row, _finding, draw, judged, needed_of, write
from dpmix.advising.population import QUANTITIES, cells_of, population_of
from dpmix.api.advise import laws_of
from dpmix.errors import PrivacyError, SpecError, UsageError
from dpmix.laws.every import Law, law_of
from dpmix.laws.transitions import information_of_outputs
from dpmix.models.counts_mixture.model import coins_of
from dpmix.models.linear_regression.regression_advice import Predictors
from dpmix.models.multinomial.meaning import expected_of_shares
from dpmix.privacy.accounting import Guarantee
from dpmix.spec import load_spec
from dpmix.spec.advise_section import BetaPopulation, LognormalPopulation
from dpmix.spec.fields import Positive
from dpmix.spec.kinds import MECHANISMS
from dpmix.spec.mechanism_section import MechanismSection
from dpmix.store.html import narrowed
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


def beta() -> Any:
    return population_of(BetaPopulation(kind="beta", a=5.0, b=2.0), (0.0, 1.0))


def law(kind: str, **keys: Any) -> Law:
    stated = {"kind": kind, "domain": [[0.0, 1.0]], "epsilon": 1.0} | keys
    spec = load_spec(SPEC | {"mechanism": stated})
    return laws_of(spec, (0.0, 1.0), [stated["epsilon"]], [1000], [kind], [])[0][3]


def told(which: Law, n: int = 1000) -> tuple[Any, Any, Any]:
    """Return the information, the shares of cells, and their middles."""
    edges = cells_of(beta(), which.blur, bounded=True)
    shares = beta().masses(edges)
    ends = np.concatenate([[0.0], edges, [1.0]])
    found = informed.information(which, edges, shares, n, (0.0, 1.0))
    return found, shares, 0.5 * (ends[1:] + ends[:-1])


KINDS = {
    "laplace": {},
    "gaussian": {"delta": 1e-6},
    "binomial": {"trials": 5},
    "square_wave": {"cells": 64},
    "wavelet": {"levels": 2},
    "perturbed_histogram": {"bins": 8},
    "smoothed_histogram": {"bins": 8, "draws": 200},
}


@pytest.mark.parametrize("kind", KINDS)
def test_information_is_that_of_a_law_of_sum_one(kind: str) -> None:
    found, shares, _ = told(law(kind, **KINDS[kind]))
    assert_allclose(found, found.T, rtol=1e-9, atol=1e-9 * abs(found).max())
    assert np.linalg.eigvalsh(found).min() > -1e-8 * abs(found).max()
    assert_allclose(shares.sum(), 1.0, rtol=1e-12)
    if kind not in ("perturbed_histogram", "smoothed_histogram", "wavelet"):
        assert_allclose(found @ shares, 1000.0, rtol=2e-3)  # n 1, since outputs have sum 1 whatever p


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_information_of_additive_noise_is_its_integral(kind: str) -> None:
    which = law(kind, **KINDS[kind])
    found, shares, middles = told(which)
    scale = which.scale[0]
    noise = stats.laplace if kind == "laplace" else stats.norm
    i, j = 2, len(middles) - 3

    z = np.linspace(-14.0 * scale, 1.0 + 14.0 * scale, 20_001)
    mixed = sum(share * noise.pdf(z, y, scale) for share, y in zip(shares, middles, strict=True))
    pair = noise.pdf(z, middles[i], scale) * noise.pdf(z, middles[j], scale)
    exact = np.trapezoid(pair / mixed, z)
    assert_allclose(found[i, j] / 1000, exact, rtol=5e-3)


def test_information_of_finite_outputs_is_exact() -> None:
    which = law("binomial", trials=5)
    found, shares, middles = told(which)
    p = 0.5 + which.weight * (middles - 0.5)  # type: ignore[attr-defined]
    table = stats.binom.pmf(np.arange(6)[:, None], 5, p[None, :])
    exact = 1000 * (table / (table @ shares)[:, None]).T @ table
    assert_allclose(found, exact, rtol=1e-3)
    wave = law("square_wave", cells=64)
    found, shares, middles = told(wave)
    assert isinstance(wave["reach"], int)
    cells = np.floor(64 * middles)
    outputs = np.arange(64 + 2 * wave["reach"])[:, None]
    near = (outputs >= cells) & (outputs <= cells + 2 * wave["reach"])
    table = np.where(near, np.e, 1.0)
    table /= table.sum(axis=0)
    exact = 1000 * (table / (table @ shares)[:, None]).T @ table
    assert_allclose(found, exact, rtol=0.05)  # but for cells of y across two of the wave's


def test_information_of_a_histogram_is_sampling_and_noise() -> None:
    """Noise of variance v: the shares of bins have covariance (diag p - p p') / n + v / n^2."""
    which = law("perturbed_histogram", bins=4)
    n, scale = 500, which.scale[0]
    edges = np.linspace(0.0, 1.0, 5)[1:-1]
    shares = beta().masses(edges)
    found = informed.information(which, edges, shares, n, (0.0, 1.0))
    covariance = (np.diag(shares) - np.outer(shares, shares)) / n + np.eye(4) * 2 * scale**2 / n**2
    assert_allclose(found, np.linalg.inv(covariance), rtol=1e-8)


def test_information_of_a_wavelet_is_its_integral() -> None:
    """One coefficient, on two cells: a density on the line."""
    which = law("wavelet", levels=0)
    scale, edges = which.scale[0], np.array([0.5])
    shares = beta().masses(edges)
    found = informed.information(which, edges, shares, 1, (0.0, 1.0))

    def integrand(z: float) -> float:
        one, other = stats.laplace.pdf(z, 1.0, scale), stats.laplace.pdf(z, -1.0, scale)
        return float(one * other / (shares[0] * one + shares[1] * other))

    exact = sum(integrate.quad(integrand, a, b)[0] for a, b in ((-40, -1), (-1, 1), (1, 40)))
    assert_allclose(found[0, 1], exact, rtol=0.02)


def test_coins_have_the_information_they_stand_for() -> None:
    found, shares, _ = told(law("laplace"))
    edges = cells_of(beta(), 1.0, bounded=True)
    rng = np.random.default_rng(3)
    some = rng.dirichlet(np.ones(len(shares)), size=200).T
    coins = coins_of(found, shares, edges, some, 0.0)
    throws = coins.counts[::2] + coins.counts[1::2]
    assert abs(coins.leans).max() <= 0.5 + 1e-12
    assert_allclose(coins.leans @ shares, 0.0, atol=1e-10)
    for other in some.T[:5]:
        d = other - shares
        assert_allclose(throws @ (coins.leans @ d) ** 2, d @ found @ d, rtol=1e-6)


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
    draws = stats.invwishart(12, psi).rvs(400_000, random_state=3)
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


class HalvesMechanism(MechanismSection):
    """Half of the records are told, by a coin that shows whether it is the upper half: a stranger's."""

    released = "records"
    on_domain = True
    statements = (("epsilon",),)
    kind: Literal["halves"]
    epsilon: Positive | None = None


class HalvesLaw(Law):
    capabilities = HalvesMechanism
    epsilon: float

    def information(self, places: Any, weights: Any, shares: Any, n: int) -> Any:
        upper = (places > 0.5) @ weights
        p = 1.0 / (1.0 + np.exp(-self.epsilon))
        told = (2.0 * p - 1.0) * upper + 1.0 - p
        return information_of_outputs(np.stack([1.0 - told, told]), shares, n)


class BareLaw(Law):
    capabilities = HalvesMechanism


class Halves:
    """What the curator would have."""

    @staticmethod
    def make(section: Any, records: Any) -> Any:
        stated = {"kind": "halves", "epsilon": section.epsilon, "domain": [list(p) for p in section.domain]}
        return SimpleNamespace(describe=lambda: stated, guarantee=Guarantee(section.epsilon, 0.0, None))


def test_a_mechanism_of_a_stranger_is_advised_once_its_law_has_information() -> None:
    spec = load_spec(SPEC | {"mechanism": {"kind": "laplace", "epsilon": 1.0}})
    before = {row[0] for row in laws_of(spec, (0.0, 1.0), [1.0], [1000], None, [])}
    local = {"laplace", "gaussian", "wavelet", "binomial", "square_wave"}
    assert before == local | {"perturbed_histogram"}
    MECHANISMS.add("halves", section=HalvesMechanism, law=HalvesLaw, curator=Halves)
    try:
        found = {row[0]: row[3] for row in laws_of(spec, (0.0, 1.0), [2.0], [1000], None, [])}
        assert set(found) == before | {"halves"}
        information, shares, middles = told(found["halves"], n=1000)
        p = 1.0 / (1.0 + math.exp(-2.0))
        upper = middles > 0.5
        told_upper = (2.0 * p - 1.0) * float(shares @ upper) + 1.0 - p
        move = upper / upper.sum() - ~upper / (~upper).sum()  # all of a mass from the lower half to the upper
        exact = 1000 * (2.0 * p - 1.0) ** 2 / (told_upper * (1.0 - told_upper))
        assert move @ information @ move == pytest.approx(exact, rel=0.02)
        MECHANISMS.add("halves", section=HalvesMechanism, law=BareLaw, curator=Halves)
        assert {row[0] for row in laws_of(spec, (0.0, 1.0), [1.0], [1000], None, [])} == before
        with pytest.raises(SpecError, match=r"mechanism\.kind: what halves tells of a density is not known"):
            laws_of(spec, (0.0, 1.0), [2.0], [1000], ["halves"], [])
    finally:
        MECHANISMS.drop("halves")


def rows_of(*values: tuple[str, float, int, float]) -> list[Row]:
    return [row_of(*value) for value in values]


def row_of(kind: str, epsilon: float, n: int, sd: float, trust: str = "local") -> Row:
    return Row(kind, trust, epsilon, 0.0, n, {"median": sd}, None, {"median": 0.9})


def test_what_is_needed_follows_the_rows() -> None:
    """sd = 100 / (epsilon sqrt n): exactly, within the rows and beyond them."""
    rows = rows_of(*(("laplace", e, n, 1e2 / (e * n**0.5)) for e, n in product((1.0, 2.0), (100, 10_000))))
    found = needed_of(rows, {"median": 2.0})
    assert_allclose(found[0].needed["n"], 2_500, rtol=1e-3)  # type: ignore[index,arg-type]
    assert found[0].needed["epsilon"] == pytest.approx(5.0)  # type: ignore[index]
    assert found[3].needed["epsilon"] == pytest.approx(0.5)  # type: ignore[index]
    assert all("at_most" not in row.needed for row in found)  # type: ignore[operator]
    assert needed_of(rows, {"median": 0.01})[0].needed["epsilon"] is None  # type: ignore[index]
    assert needed_of(rows, {"median": 0.11})[0].needed["n"] == pytest.approx(826_447, abs=1)  # type: ignore[index]
    assert needed_of(rows, {"median": 0.09})[0].needed["n"] is None  # type: ignore[index]
    assert needed_of(rows, {})[0].needed is None


def test_less_than_what_was_looked_at_may_do(tmp_path: Path) -> None:
    """The end of the search is no need: it is shown as a bound, and not rounded up."""
    rows = rows_of(
        *(("laplace", e, n, 1e2 / (e * n**0.5)) for e, n in product((1.0, 2.0), (10_000, 100_000)))
    )
    found = needed_of(rows, {"median": 50.0})
    assert found[0].needed == {"epsilon": 0.25, "n": 100, "at_most": ["epsilon", "n"]}
    assert found[0].to_json()["needed"]["at_most"] == ["epsilon", "n"]
    text = Advice(tuple(found), "a beta", {"median": 50.0}, (), "median").to_text()
    assert "<100" in text and "<0.25" in text and "110" not in text
    write(Advice(tuple(found), "a beta", {"median": 50.0}, (), "median"), tmp_path / "a.html", force=False)
    assert "&lt;0.25" in (tmp_path / "a.html").read_text()
    found = needed_of(rows, {"median": 3.0})  # 0.33 at n = 10,000
    assert found[0].needed == {"epsilon": pytest.approx(1 / 3), "n": 1112}
    few = rows_of(("laplace", 1.0, 10, 2.0), ("laplace", 1.0, 20, 1.0))
    assert needed_of(few, {"median": 100.0})[0].needed["n"] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("low", "high"), [(0.9, 1.1), (1.2, 6.0), (0.0216, 0.0216), (3.0, 4e4), (99.0, 101.0)]
)
def test_an_axis_has_numbers(low: float, high: float) -> None:
    found = Advice(tuple(rows_of(("a", 1.0, 10, low), ("a", 2.0, 10, high))), "a beta", {}, (), "median")
    axis = draw(found).axes[0].yaxis
    bottom, top = axis.get_view_interval()
    numbers = [float(label.get_text().replace(",", "")) for label in axis.get_ticklabels()]
    assert 3 <= len(numbers) <= 10
    assert all(bottom <= number <= top for number in numbers)
    assert not axis.get_minorticklocs().size


def test_names_of_axes_keep_to_their_panels() -> None:
    """Side by side, and below each other on telephones."""
    long = "alpha[female,personal_care_and_the_like]"
    rows = [Row("a", "local", 1.0, 0.0, n, {long: 1.0}, None, {long: 0.9}) for n in (10, 20)]
    figure = draw(Advice(tuple(rows), "a beta", {}, (), long))
    for change in (lambda figure: None, narrowed):
        change(figure)
        figure.canvas.draw()
        boxes = [axes.yaxis.label.get_window_extent() for axes in figure.axes if axes.get_ylabel()]
        boxes.sort(key=lambda box: float(box.y0))
        assert boxes[0].y0 >= 0.0 and boxes[-1].y1 <= figure.bbox.height
        assert all(lower.y1 < upper.y0 for lower, upper in pairwise(boxes))
    assert len(boxes) == 2


def test_best_is_least_at_each_epsilon_and_n() -> None:
    rows = judged(rows_of(("a", 1.0, 10, 2.0), ("b", 1.0, 10, 1.0), ("a", 2.0, 10, 0.1)), {})
    assert [row.best for row in rows] == [False, True, True]


def test_best_is_told_within_each_trust_model() -> None:
    """Who is not trusted with all records has no use for a global release that is better."""
    rows = [
        row_of("laplace", 1.0, 10, 2.0),
        row_of("wavelet", 1.0, 10, 1.0),
        row_of("all", 1.0, 10, 0.01, "global"),
    ]
    for target in ({}, {"median": 0.1}):
        assert [row.best for row in judged(rows, target)] == [False, True, True]
    found = Advice(tuple(judged(rows, {})), "a beta", {}, (), "median", {"median": "dollars"})
    said = (
        "Best at epsilon = 1, n = 10: wavelet of local releases, median to 1 dollars; "
        "all of global releases, median to 0.01 dollars."
    )
    assert _finding(found) == said
    assert said in found._repr_html_()
    text = " ".join(found.to_text().split())
    assert "laplace local 1 10 2 0.90 wavelet local 1 10 1 0.90 best all global 1 10 0.01 0.90 best" in text
    assert "global where a curator is trusted with all." in text and "Best: within its trust model." in text
    alone = Advice(tuple(judged(rows[:2], {})), "a beta", {}, (), "median").to_text()
    assert "Best:" not in alone and "curator" not in alone  # nothing to tell apart
    labels = [text.get_text() for text in draw(found).legends[0].get_texts()]
    assert labels == ["laplace (local)", "wavelet (local)", "all (global)"]


def test_needs_are_of_one_mechanism_whatever_the_trust_model() -> None:
    rows = [
        row_of(kind, 1.0, n, sd / n**0.5, trust)
        for kind, trust, sd in (("laplace", "local", 100.0), ("all", "global", 1.0))
        for n in (100, 10_000)
    ]
    found = needed_of(rows, {"median": 0.1})
    needed: Any = [row.needed["n"] for row in found]  # type: ignore[index]
    assert_allclose(needed, [1_000_000, 1_000_000, 100, 100], atol=1)


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


def wide(*, target: dict[str, float], unit: str = "dollars") -> Advice:
    sd = dict.fromkeys(QUANTITIES, 12_345.0)
    rows = tuple(
        Row(kind, trust, 1.0, 0.0, 10**9, sd, 0.5, {"mean": 0.9}, False, {"epsilon": 3.0, "n": 10**9})
        for kind, trust in (("square_wave", "local"), ("perturbed_histogram", "global"))
    )
    return Advice(rows, "a beta", target, (), next(iter(target)), dict.fromkeys(QUANTITIES, unit))


def test_what_stands_below_a_table_is_of_its_columns(tmp_path: Path) -> None:
    """The band and the contraction give way in a terminal, and so do their words; a page has all."""
    advice = wide(target={"quantile[0.75]": 500.0})
    text = advice.to_text()
    table = text.split("\n\n")[1].splitlines()
    assert max(map(len, text.splitlines())) <= 96
    assert "quantile[0.75]" in table[0] and "band" not in table[0] and "contraction" not in table[0]
    assert "Band:" not in text and "Contraction:" not in text
    shown = wide(target={"band": 0.1}).to_text()
    assert "band" in shown.split("\n\n")[1].splitlines()[0]
    assert "Band: integral of the density's bands." in shown
    write(advice, tmp_path / "advice.html", force=False)
    page = (tmp_path / "advice.html").read_text()
    assert "Band: integral" in page and "Contraction: the least" in page
    assert "standard deviations in dollars for a beta" in page and "quantile[0.75] to 500 dollars." in page


def test_figures_have_the_unit_of_their_column() -> None:
    advice = wide(target={"median": 500.0, "band": 0.1})
    text = advice.to_text()
    assert text.startswith(
        "Expected posterior standard deviations in dollars for a beta; no record was read."
    )
    assert "Wanted: median to 500 dollars, band to 0.1." in text
    assert "in dollars" in advice._repr_html_()
    assert draw(wide(target={"band": 0.1})).axes[0].get_ylabel() == "width of the bands"
    shares = Advice((row_of("a", 1.0, 10, 0.5),), "a beta", {}, (), "median")
    assert " in " not in shares.to_text().splitlines()[0]


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
