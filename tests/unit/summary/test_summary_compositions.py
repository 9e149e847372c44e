"""What is reported of compositions, against closed forms; each warning where it belongs."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import h5py
import numpy as np
import pytest
from scipy import integrate, special, stats

import dpmix
from dpmix.models.dirichlet.composition_results import (
    Censoring,
    CompositionResults,
    Ellipsoid,
    composition_remarks,
)
from dpmix.models.dirichlet.compositions import censored_moments
from dpmix.models.dirichlet.meaning import UNSEEN
from dpmix.results.nodes import Remark
from dpmix.run.chains_reader import ChainSet

NAMES = ("care", "food", "rest")


@pytest.mark.parametrize("threshold", [1e-4, 0.05, 0.4])
def test_censored_moments_are_those_of_quadrature(threshold: float) -> None:
    alpha = np.array([[0.5, 2.0, 7.5], [30.0, 1.2, 4.0]])
    mean, variance = censored_moments(alpha, threshold)
    for row, found, spread in zip(alpha, mean, variance, strict=True):
        for j, a in enumerate(row):
            law = stats.beta(a, row.sum() - a)

            def moment(power: int, law: Any = law) -> float:
                # over u = log x
                above = integrate.quad(
                    lambda u: u**power * math.exp(u) * law.pdf(math.exp(u)),
                    math.log(threshold),
                    0.0,
                    limit=200,
                )[0]
                return float(above + math.log(threshold) ** power * law.cdf(threshold))

            assert found[j] == pytest.approx(moment(1), abs=2e-6)
            assert spread[j] == pytest.approx(moment(2) - moment(1) ** 2, rel=1e-3, abs=2e-6)


def test_an_ellipsoid_holds_its_share_of_draws() -> None:
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal(
        [1.0, 2.0, 3.0], [[2.0, 0.9, 0.0], [0.9, 1.0, 0.1], [0.0, 0.1, 0.5]], 40_000
    )
    found = Ellipsoid.of(draws, 0.9)
    assert found.radius == pytest.approx(math.sqrt(stats.chi2(3).ppf(0.9)), rel=0.01)
    assert found.holds(draws).mean() == pytest.approx(0.9, abs=1e-3)
    shares = rng.dirichlet([40.0, 50.0, 60.0], 40_000)
    found = Ellipsoid.of(shares, 0.95, shares=True)
    assert found.radius == pytest.approx(math.sqrt(stats.chi2(2).ppf(0.95)), rel=0.03)
    assert found.holds(np.array([[0.25, 0.35, 0.4]])).all()
    assert not found.holds(np.array([[0.1, 0.1, 0.8]])).any()


def test_a_summary_has_shares_densities_censoring_and_truth(tmp_path: Path) -> None:
    truth = [6.0, 1.5, 9.0]
    spec: dict[str, Any] = {
        "data": {"simulate": "dirichlet", "alpha": truth, "n": 60, "seed": 1, "columns": list(NAMES)},
        "mechanism": {"kind": "log_moments", "threshold": 0.05, "epsilon": 5.0},
        "model": {"kind": "dirichlet"},
        "sampler": {"kind": "bootstrap", "iterations": 400, "burn_in": 0, "chains": 2, "seed": 1},
        "summary": {"grid": [0.0, 1.0, 21], "truth": truth},
    }
    release = dpmix.privatize(spec, quiet=True)
    dpmix.fit(spec, release, tmp_path / "c.h5", quiet=True, jobs=1)
    rng = np.random.default_rng(2)
    alpha = np.array(truth) * np.exp(
        0.1 * rng.standard_normal((800, 1)) + 0.02 * rng.standard_normal((800, 3))
    )
    with h5py.File(tmp_path / "c.h5", "r+") as file:
        file["posterior/alpha"][...] = alpha.reshape(2, 400, 3)
        file["posterior/mean"][...] = (alpha / alpha.sum(axis=1, keepdims=True)).reshape(2, 400, 3)
    found = dpmix.summarize(tmp_path / "c.h5").to_json()
    shares = alpha / alpha.sum(axis=1, keepdims=True)
    assert found["distribution"]["mean"] == pytest.approx(shares.mean(axis=0))
    assert found["parameters"]["E[x][food]"]["mean"] == pytest.approx(shares[:, 1].mean())
    rest = alpha.sum(axis=1, keepdims=True) - alpha
    censoring = found["composition"]["censoring"]
    assert censoring["share"] == pytest.approx(special.betainc(alpha, rest, 0.05).mean(axis=0))
    wide = np.sqrt(2.0) * release.mechanism["scale"][0]
    assert censoring["noise_sd"] == pytest.approx(wide)
    mean = censored_moments(alpha, 0.05)[0]
    bias = mean - special.digamma(alpha) + special.digamma(alpha.sum(axis=1, keepdims=True))
    assert censoring["bias"] == pytest.approx(bias.mean(axis=0), abs=1e-6)
    assert min(censoring["bias"]) >= 0.0
    density = found["density"]["food"]
    at = np.array(density["grid"])[1:-1]
    expected = stats.beta.pdf(at[:, None], alpha[:, 1], rest[:, 1]).mean(axis=1)
    assert density["mean"][1:-1] == pytest.approx(expected)
    assert density["prior"] is None  # a bootstrap has none
    told = found["composition"]["truth"]
    assert told["squared_error_alpha"] == pytest.approx(((alpha - truth) ** 2).sum(axis=1).mean())
    center = np.array(truth) / sum(truth)
    assert told["squared_error_mean"] == pytest.approx(((shares - center) ** 2).sum(axis=1).mean())
    assert told["covers_alpha"]
    assert told["covers_mean"]
    assert 0.8 < told["record_coverage"] <= 1.0
    assert UNSEEN in found["warnings"]
    assert UNSEEN in found["verdict"]["reasons"]


@pytest.mark.parametrize(
    ("sampler", "used"), [("data_augmentation", True), ("normal_approximation", False), ("bootstrap", False)]
)
def test_a_summary_says_whether_the_scores_of_thresholds_were_used(
    sampler: str, used: bool, tmp_path: Path
) -> None:
    spec: dict[str, Any] = {
        "data": {
            "simulate": "dirichlet",
            "alpha": [6.0, 1.5, 9.0],
            "n": 60,
            "seed": 1,
            "columns": list(NAMES),
        },
        "mechanism": {"kind": "log_moments", "thresholds": [0.05, 0.01], "epsilon": 5.0},
        "model": {"kind": "dirichlet"},
        "sampler": {"kind": sampler, "iterations": 60, "burn_in": 20, "chains": 1, "seed": 1},
    }
    dpmix.fit(spec, dpmix.privatize(spec, quiet=True), tmp_path / "c.h5", quiet=True, jobs=1)
    found = dpmix.summarize(tmp_path / "c.h5")
    words = "Given all that was released" if used else "as if the threshold had been fixed: the scores"
    assert words in " ".join(found.to_text().split())
    assert found.to_json()["composition"]["scores_used"] is used
    assert UNSEEN not in found.warnings  # the check looks at scores, whether they were fitted or not


def remarks(sampler: str = "data_augmentation", **own: Any) -> str:
    """Return the warnings of a fit that is fine, but for what is changed, as one text."""
    return "\n".join(remark.text for remark in all_remarks(sampler, **own))


def all_remarks(
    sampler: str = "data_augmentation",
    *,
    n: int = 800,
    epsilon: float = 2.0,
    means: tuple[float, ...] = (-1.0, -2.5, -0.7),
    constants: dict[str, float] | None = None,
    **censoring: Any,
) -> list[Remark]:
    plain: dict[str, Any] = {
        "threshold": 0.01,
        "share": np.array([0.0, 0.02, 0.0]),
        "lower": np.zeros(3),
        "upper": np.full(3, 0.1),
        "bias": np.array([0.0, 0.004, 0.0]),
        "size": 400.0,
        "noise_sd": 0.01,
        "sampling_sd": np.array([0.01, 0.02, 0.01]),
        "uncensored_records": None,
    }
    found = CompositionResults(NAMES, sampler, {}, Censoring(**{**plain, **censoring}), None)
    chains = SimpleNamespace(
        constants=constants or {}, attrs={"epsilon": epsilon}, observed=np.array(means)[:, None], n=n
    )
    return composition_remarks([found], cast(ChainSet, chains))


def test_a_fit_that_is_fine_has_no_warning() -> None:
    assert remarks() == ""
    assert remarks("bootstrap", constants={"bootstrap_redrawn": 0.01}) == ""
    assert remarks("abc", n=5000, constants={"abc_tolerance": 0.05}) == ""


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"share": np.array([0.0, 0.7, 0.0])}, "Most entries of food (70%) are below the threshold 0.01"),
        (
            {"noise_sd": 0.05},
            "The noise on the mean logarithm of care (5), food (2.5) and rest (5) is the larger",
        ),
        ({"n": 5000, "epsilon": 0.5}, "Proceed with caution: n = 5000 is large and epsilon = 0.5 is below 1"),
        ({"sampler": "replicated"}, "replicated is an approximation that is recommended for large n"),
        (
            {"sampler": "abc", "n": 5000, "epsilon": 0.5},
            "abc is an approximation that is recommended for large n",
        ),
        ({"means": (-0.1, -2.0, -0.3)}, "larger than those of any compositions without censoring"),
        ({"means": (-1.0, 0.1, -0.7)}, "larger than those of any compositions without censoring"),
        ({"means": (-1.0, -5.0, -0.7)}, "is below log 0.01, the least that a censored mean can be"),
        (
            {"sampler": "bootstrap", "bias": np.array([0, 0.05, 0])},
            "moves the mean logarithm of food (2.2) by more",
        ),
        (
            {"sampler": "bootstrap", "uncensored_records": 0.6},
            "about 60% of the records have no censored entry",
        ),
        (
            {"sampler": "bootstrap", "constants": {"bootstrap_redrawn": 0.4}},
            "40% of the refits had no maximum",
        ),
        (
            {"sampler": "abc", "n": 5000, "constants": {"abc_tolerance": 1.0}},
            "abc keeps simulations within 1 of",
        ),
    ],
)
def test_what_makes_results_unreliable_is_said(own: dict[str, Any], words: str) -> None:
    assert words in remarks(**own)


@pytest.mark.parametrize(
    ("own", "grave"),
    [
        ({"sampler": "replicated"}, False),
        ({"sampler": "abc", "n": 5000, "constants": {"abc_tolerance": 1.0}}, False),
        ({"n": 5000, "epsilon": 0.5}, None),
        ({"noise_sd": 0.05}, None),
    ],
)
def test_an_approximation_that_is_off_tells_the_verdict(own: dict[str, Any], grave: bool | None) -> None:
    assert [remark.grave for remark in all_remarks(**own)] == [grave]


def test_methods_that_account_for_censoring_are_not_warned_of_its_bias() -> None:
    assert remarks(bias=np.array([0.0, 0.05, 0.0]), uncensored_records=0.6) == ""


def test_pseudo_records_that_ran_off_are_told() -> None:
    """Against the alpha that the released means are of."""
    fit = np.array([4.0, 1.3, 5.0])
    means = special.digamma(fit) - special.digamma(fit.sum()) + np.array([0.0, 0.004, 0.0])

    def told(alpha: np.ndarray, sampler: str = "replicated", count: int = 5) -> bool:
        ellipsoids = {"alpha": Ellipsoid(alpha, np.eye(3), 1.0, 0.95)}
        censoring = Censoring(0.01, *np.zeros((3, 3)), means - means, 400.0, 0.01, np.full(3, 0.02), None)
        found = CompositionResults(NAMES, sampler, ellipsoids, censoring, None)
        constants = {"pseudo_records": count, "n1": 400, "n2": 400}
        chains = SimpleNamespace(
            constants=constants, attrs={"epsilon": 2.0}, observed=np.tile(means, 2)[:, None], n=800
        )
        found_all = composition_remarks([found], cast(ChainSet, chains))
        graves = [r.grave for r in found_all if "drawn alpha away from the release" in r.text]
        assert all(graves)
        return bool(graves)

    assert not told(fit)
    assert told(fit * 100.0)
    assert not told(fit * 100.0, sampler="data_augmentation")
    assert told(np.array([4.0, 0.9, 5.0]))
    assert not told(np.array([4.0, 1.25, 5.0]), count=400)
