"""What the release check shows of fits: planted misfits, right models, and what chains files keep."""

from __future__ import annotations

import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import arviz_stats
import numpy as np
import pytest
import xarray

import dpmix
import elsewhere
from dpmix.errors import SpecError
from dpmix.release.sanitized import Release
from dpmix.run.chains_reader import read_chains
from dpmix.summary.check import loo
from dpmix.summary.check.rank_comparison import places
from dpmix.summary.check.release_check import check_release
from tests.helpers.chains_files import Floats
from tests.helpers.fits import release_by, small_release, small_spec
from tests.helpers.pages import undrawn

DAYS = elsewhere.folder() / "atus2019_female.csv"


def laplace(y: Floats, bounds: tuple[float, float], epsilon: float, rng: np.random.Generator) -> Release:
    scale = (bounds[1] - bounds[0]) / epsilon
    z = y + rng.laplace(0.0, scale, y.size)
    mechanism = {
        "kind": "laplace",
        "scale": [scale],
        "domain": [list(bounds)],
        "calibration": "exact",
        "requested": {"epsilon": epsilon},
    }
    return Release(z[:, None], ("y",), mechanism, epsilon, 0.0, None, y.size)


def checked(spec: dict[str, Any], release: Release | Path, path: Path) -> Any:
    dpmix.fit(spec, release, path, quiet=True, force=True)
    with undrawn():
        return dpmix.summarize(path, report=path.with_suffix(".html"), force=True)


def warned(summary: Any) -> bool:
    return any("unlike those that the fitted model gives" in text for text in summary.warnings)


def test_a_prior_in_other_units_shows(tmp_path: Path) -> None:
    """Earnings in dollars under the paper's empirical base; and under the base that follows the bounds."""
    rng = np.random.default_rng(1)
    y = np.minimum(rng.lognormal(6.4, 0.75, 2000), 2885.0)
    release = laplace(y, (0.0, 2885.0), 3.0, rng)
    sampler = {"kind": "neal8", "iterations": 200, "burn_in": 50, "chains": 1, "seed": 1}
    bad = checked(
        {"model": {"kind": "mixture", "base": {"empirical": "paper"}}, "sampler": sampler},
        release,
        tmp_path / "a.h5",
    )
    assert bad.parameters["sd"].mean > 1.5 * y.std()  # confidently wrong
    assert bad.parameters["sd"].sd < 50.0
    assert bad.check.p < 0.01 and warned(bad)
    assert "Release check" in (tmp_path / "a.html").read_text()
    found = bad.to_json()["check"]["distribution"]
    outside = (np.array(found["observed"]) < found["lower"]) | (np.array(found["observed"]) > found["upper"])
    assert outside.mean() > 0.5  # as the picture shows
    good = checked({"model": {"kind": "mixture"}, "sampler": sampler}, release, tmp_path / "b.h5")
    assert good.check.p > 0.01 and not warned(good)
    assert abs(good.parameters["sd"].mean - y.std()) < 150.0


def regression(prior: dict[str, Any], path: Path) -> dict[str, Any]:
    return {
        "data": {"path": str(path), "columns": ["age", "school", "income"]},
        "mechanism": {"kind": "clamped_moments", "bounds": [[15, 75], [0, 20], [0, 100_000]], "epsilon": 3.0},
        "model": {"kind": "linear_regression", **prior},
        "sampler": {"iterations": 300, "burn_in": 100, "chains": 1, "seed": 1},
    }


def test_a_regression_that_returns_its_prior_shows(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    age = rng.uniform(20, 70, 1000)
    income = np.maximum(0, 5000 + 600 * (age - 20) + 9000 * rng.standard_normal(1000))
    school = rng.uniform(8, 18, 1000)  # two predictors, as where a regression is compiled for others
    table, header = tmp_path / "t.csv", "age,school,income"
    np.savetxt(table, np.column_stack([age, school, income]), delimiter=",", header=header, comments="")
    spec = regression({"prior_mean": 0.0, "prior_sd": 2e-5}, table)
    release = dpmix.privatize(spec, quiet=True)
    bad = checked(spec, release, tmp_path / "c.h5")
    assert abs(bad.parameters["beta[age]"].mean) < 60.0  # dollars a year of age, where it is 600
    assert bad.check.overall < 0.01 and warned(bad)
    worst = {entry.name: entry for entry in bad.check.entries}["age income"]
    assert worst.observed > worst.upper
    assert isinstance(bad.to_json()["check"]["p"], list)
    with pytest.raises(SpecError, match="clamped_moments does not factorize over records"):
        dpmix.summarize(tmp_path / "c.h5", overrides=["summary.loo=true"])


def days(x: Floats, path: Path, epsilon: float) -> Any:
    np.savetxt(path / "d.csv", x, delimiter=",", header="a,b,c", comments="")
    spec = {
        "data": {"path": str(path / "d.csv"), "columns": ["a", "b", "c"]},
        "mechanism": {"kind": "log_moments", "thresholds": [0.1, 0.01, 0.001, 0.0001], "epsilon": epsilon},
        "model": {"kind": "dirichlet", "prior": {"shape": 1.0, "rate": 0.1}},
        "sampler": {"iterations": 400, "burn_in": 150, "chains": 1, "seed": 1},
    }
    return checked(spec, dpmix.privatize(spec, quiet=True), path / "c.h5")


def test_compositions_of_two_kinds_show_in_the_scores_of_thresholds(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    half = rng.random(2000) < 0.5
    mixed = np.where(half[:, None], rng.dirichlet([30, 3, 60], 2000), rng.dirichlet([1, 0.3, 1], 2000))
    bad = days(mixed, tmp_path, 3.0)
    assert bad.check.overall < 0.01 and warned(bad)
    entries = {entry.name: entry for entry in bad.check.entries}
    assert entries["score of 0.01"].p < 0.01
    assert all(entries[f"log {name}"].p > 0.05 for name in "abc")  # the means fit, as they nearly always do
    good = days(rng.dirichlet([4, 2, 6], 2000), tmp_path, 3.0)
    assert good.check.overall > 0.01 and not warned(good)


@pytest.mark.skipif(not DAYS.exists(), reason="the time use survey is not here")
def test_a_dirichlet_does_not_fit_real_days(tmp_path: Path) -> None:
    table = np.loadtxt(DAYS, delimiter=",", skiprows=1)
    found = days(table / table.sum(axis=1, keepdims=True), tmp_path, 40.0)
    assert found.check.overall < 0.01 and warned(found)


def test_right_models_are_seldom_suspected(tmp_path: Path) -> None:
    """Records from the prior of the model: p is conservative, since the model was fitted to the release."""
    rng = np.random.default_rng(9)
    values = []
    for turn in range(8):
        sd = np.sqrt(3.0 / rng.gamma(3.0, size=40))
        mean = sd / np.sqrt(0.1) * rng.standard_normal(40)
        sticks = rng.beta(1.0, 1.0, 40)
        weights = sticks * np.append(1.0, np.cumprod(1.0 - sticks[:-1]))
        which = rng.choice(40, 150, p=weights / weights.sum())
        y = rng.normal(mean[which], sd[which])
        release = laplace(y, (-10.0, 10.0), 5.0, rng)
        spec = small_spec(iterations=200, burn_in=100, thin=1, chains=1, seed=turn)
        dpmix.fit(spec, release, tmp_path / "c.h5", quiet=True, force=True)
        p = check_release(read_chains([tmp_path / "c.h5"])).p
        assert isinstance(p, float)
        values.append(p)
    assert min(values) > 0.01
    assert 0.3 < np.mean(values) < 0.95


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fit") / "c.h5"
    dpmix.fit(small_spec(iterations=320, thin=1), small_release(), path, quiet=True)
    return path


def test_chains_keep_replicates_and_log_likelihoods(fitted: Path) -> None:
    with xarray.open_datatree(fitted, engine="h5netcdf") as tree:
        z, logs = tree["posterior_predictive"]["z"], tree["log_likelihood"]["z"]
        assert z.dims == ("chain", "draw", "obs") and z.shape == (2, 100, 40)
        assert logs.dims == ("chain", "draw", "obs") and logs.shape == (2, 300, 40)
        assert int(z["draw"][-1]) == 299
        assert tree["observed_data"]["z"].dims == ("obs",)
        assert np.isfinite(logs).all()
        # the sum is the chain's own log likelihood less what allocations know: both near each other
        total = logs.sum("obs").values
        assert abs(total.mean() - tree["sample_stats"]["log_likelihood"].values.mean()) < 40.0


def test_the_same_seed_keeps_the_same(fitted: Path, tmp_path: Path) -> None:
    dpmix.fit(small_spec(iterations=320, thin=1), small_release(), tmp_path / "c.h5", quiet=True)
    with (
        xarray.open_datatree(fitted, engine="h5netcdf") as one,
        xarray.open_datatree(tmp_path / "c.h5", engine="h5netcdf") as other,
    ):
        for group in ("posterior_predictive", "log_likelihood"):
            np.testing.assert_array_equal(one[group]["z"], other[group]["z"])


def told(paths: list[Path]) -> dict[str, Any]:
    """Return all that a summary says but for seconds."""
    found = dpmix.summarize(paths, overrides=["summary.loo=true"]).to_json()
    return {name: value for name, value in found.items() if "second" not in name}


CASES = {
    "laplace": lambda: (small_spec(iterations=620, thin=1), small_release()),
    "counts": lambda: (small_spec(kind="counts", store=[], iterations=620, thin=1), small_release()),
    "wavelet": lambda: (small_spec(iterations=620, thin=1), release_by("wavelet")),
}
BY_DAY = [(False, "counts"), (True, "laplace")]


@pytest.mark.parametrize(
    ("earlier", "case"),
    [
        pytest.param(*case, id=f"{'of earlier versions' if case[0] else 'now'}-{case[1]}", marks=marks)
        for case in product([False, True], CASES)
        for marks in [() if case in BY_DAY else pytest.mark.matrix]
    ],
)
def test_chains_run_apart_keep_and_say_the_same_as_together(
    case: str, earlier: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, release = CASES[case]()
    files = [tmp_path / f"{i}.h5" for i in range(2)]
    dpmix.fit(spec, release, tmp_path / "c.h5", quiet=True)
    with monkeypatch.context() as patch:
        if earlier:  # what was kept was shared by the chains of the file
            patch.setattr(loo, "places", lambda chains, most, _: places(chains, most))
        for i, path in enumerate(files):
            dpmix.fit(spec, release, path, quiet=True, chain_id=i)
    whole = told([tmp_path / "c.h5"])
    assert whole["loo"] and any(
        row["likelihood"] for row in whole["prior_sensitivity"]["parameters"].values()
    )
    assert json.dumps(told(files)) == json.dumps(whole)
    with xarray.open_datatree(tmp_path / "c.h5", engine="h5netcdf") as tree:
        for i, path in enumerate(files):
            with xarray.open_datatree(path, engine="h5netcdf") as part:
                for group in () if earlier else ("posterior_predictive", "log_likelihood"):
                    np.testing.assert_array_equal(part[group]["z"][0], tree[group]["z"][i])


def test_arviz_reads_them_and_loo_is_its_own(fitted: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its own refactoring on import
        import arviz
    data = arviz.from_netcdf(str(fitted))
    exact = arviz_stats.loo(data, pointwise=True, reff=1.0)
    found = dpmix.summarize(fitted, overrides=["summary.loo=true"]).to_json()["loo"]
    assert list(found) == ["elpd", "se", "p_loo", "pareto_k_max"]
    assert found["elpd"] == pytest.approx(float(exact.elpd), rel=1e-3)
    assert found["se"] == pytest.approx(float(exact.se), rel=1e-3)
    assert found["p_loo"] == pytest.approx(float(exact.p), abs=0.1)
    assert found["pareto_k_max"] == pytest.approx(float(np.max(exact.pareto_k)), abs=0.15)


@pytest.mark.parametrize("kind", [pytest.param("perturbed_histogram", marks=pytest.mark.matrix), "wavelet"])
def test_what_is_kept_of_other_releases(kind: str, tmp_path: Path) -> None:
    spec = small_spec(iterations=140, thin=1, chains=1)
    release = release_by(kind)
    dpmix.fit(spec, release, tmp_path / "c.h5", quiet=True)
    summary = dpmix.summarize(tmp_path / "c.h5", tmp_path / "s.h5")
    assert summary.check.overall is not None
    with xarray.open_datatree(tmp_path / "c.h5", engine="h5netcdf") as tree:
        shape = tree["observed_data"]["z"].shape
        assert tree["posterior_predictive"]["z"].shape == (1, 120, *shape)
        assert ("log_likelihood" in tree) == (kind == "wavelet")
        if kind == "wavelet":
            assert tree["log_likelihood"]["z"].dims == ("chain", "draw", "obs")
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        assert float(tree["check"]["overall"]) == summary.check.overall
    if kind == "perturbed_histogram":
        with pytest.raises(SpecError, match="does not factorize"):
            dpmix.summarize(tmp_path / "c.h5", overrides=["summary.loo=true"])
