"""Base measures that follow the public bounds or the spread beyond the noise (methods, section 15)."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

import dpmix
from dpmix.api.kernel_of_spec import kernel_of
from dpmix.api.task import observe
from dpmix.errors import DataError, SpecError
from dpmix.kernels import Beta, NormalNIG
from dpmix.kernels.multivariate_normal.section import niw_from_bounds
from dpmix.kernels.normal.section import NIG, nig_from_bounds
from dpmix.laws.every import EstimatedMoments
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from dpmix.spec.starters import starter
from tests.helpers.fits import small_release, small_spec

pytestmark = pytest.mark.second_runs

EARNINGS = (0.0, 2885.0)
MECHANISMS: list[dict[str, Any]] = [
    {"kind": "laplace", "epsilon": 3.0},
    {"kind": "gaussian", "rho": 2.0},
    {"kind": "binomial", "trials": 12, "epsilon": 4.0},
    {"kind": "wavelet", "levels": 4, "epsilon": 6.0},
    {"kind": "perturbed_histogram", "bins": 40, "epsilon": 1.0},
    {"kind": "perturbed_histogram", "bins": 40, "epsilon": 1.0, "noise": "geometric"},
    {"kind": "perturbed_histogram", "bins": 40, "rho": 0.3, "noise": "gaussian"},
    {"kind": "smoothed_histogram", "bins": 40, "draws": 400, "epsilon": 60.0},
]


def moments_of(release: Release, column: int, pair: tuple[float, float] | None) -> EstimatedMoments | None:
    return release.mechanism.moments(release.values, column, release.n, pair)


def _simulated(mechanism: dict[str, Any], y: np.ndarray[Any, Any], pair: Any, seed: int) -> Release:
    spec = load_spec({"mechanism": {**mechanism, "domain": list(pair)}})
    made = from_spec(spec.mechanism, 1, len(y))
    return made.simulate(y[:, None], ("y",), np.random.default_rng(seed))[0]


def _dollars(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return values like weekly earnings: skewed, mean 850 and sd 600 or so, at most 2885."""
    return np.minimum(np.random.default_rng(seed).gamma(1.8, 480.0, n), EARNINGS[1])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: "-".join(map(str, m.values())))
def test_the_moments_of_the_values_are_estimated_without_bias(mechanism: dict[str, Any]) -> None:
    y = _dollars(1500)
    found = []
    for seed in range(300):
        moments = moments_of(_simulated(mechanism, y, EARNINGS, seed), 0, EARNINGS)
        assert moments is not None
        found.append(moments)
    # the values are what they are: the estimates vary with the noise alone
    for estimates, truth, within in (
        (np.array([m.mean for m in found]), y.mean(), 0.0),
        (np.array([m.variance for m in found]), y.var(), (EARNINGS[1] / 32) ** 2 / 4),
    ):
        error = estimates.std(ddof=1) / math.sqrt(len(found))
        assert abs(estimates.mean() - truth) < 4.5 * error + within
    if mechanism["kind"] != "smoothed_histogram":  # whose draws are few, and vary little more than they say
        noise = np.array([m.variance for m in found]).std(ddof=1)
        assert noise < 1.15 * np.mean([m.error for m in found])


def test_the_error_of_the_variance_covers_sampling_and_noise() -> None:
    estimates, errors = [], []
    for seed in range(400):
        release = _simulated(MECHANISMS[0], _dollars(800, seed), EARNINGS, 1000 + seed)
        moments = moments_of(release, 0, None)  # additive noise needs no bounds
        assert moments is not None
        estimates.append(moments.variance)
        errors.append(moments.error)
    assert 0.9 < np.std(estimates) / np.mean(errors) < 1.1


def test_one_trial_tells_no_spread() -> None:
    release = _simulated({"kind": "binomial", "trials": 1, "epsilon": 1.0}, _dollars(50), EARNINGS, 1)
    assert moments_of(release, 0, EARNINGS) is None
    assert not EstimatedMoments(0.0, 1.0, math.inf).shows_spread


def test_the_default_means_the_same_in_all_units() -> None:
    base = nig_from_bounds((10.0, 30.0))
    assert base == NIG(20.0, 0.16, 3.0, 8.0)
    assert base.cluster_sd == pytest.approx(2.0)
    assert base.mean_sd == pytest.approx(5.0)
    rng = np.random.default_rng(1)
    variance = base.b / rng.gamma(base.a, size=200_000)
    y = rng.normal(base.mu0 + np.sqrt(variance / base.lam) * rng.standard_normal(200_000), np.sqrt(variance))
    assert y.std() == pytest.approx(base.record_sd, rel=0.02)
    microns = nig_from_bounds((1e-5, 3e-5))
    assert microns.record_sd == pytest.approx(base.record_sd * 1e-6)
    several = niw_from_bounds([(10.0, 30.0), (0.0, 1e6), (-1.0, 1.0)])
    for number, pair in enumerate([(10.0, 30.0), (0.0, 1e6), (-1.0, 1.0)]):
        assert several.column(number) == pytest.approx(nig_from_bounds(pair))
    # the inverse-Wishart's diagonal really has that law
    draws = stats.invwishart(several.nu, np.diag(several.psi)).rvs(20_000, random_state=2)[:, 1, 1]
    expected = stats.invgamma(3.0, scale=nig_from_bounds((0.0, 1e6)).b)
    assert stats.kstest(draws, expected.cdf).pvalue > 1e-4


def _kernel(base: Any, release: Release, mechanism: Any = None, **model: Any) -> Any:
    spec = load_spec({"model": {**({} if base is None else {"base": base}), **model}})
    return kernel_of(spec, release, observe(spec, release, [0]), [0])


def test_what_is_left_out_follows_the_bounds() -> None:
    release = small_release()
    found = _kernel(None, release)
    assert found[:2] == (NormalNIG(0.0, 0.16, 3.0, 8.0), "bounds")
    assert found.learned.centre == found.kernel.mu0 and found.learned.spread == pytest.approx(5.0)
    assert found.learned.shape == 0.5 and 0.5 / found.learned.rate == pytest.approx(8.0)
    binomial = _simulated({"kind": "binomial", "trials": 9, "epsilon": 4.0}, _dollars(50), EARNINGS, 1)
    beta = _kernel(None, binomial, kernel="beta")
    assert beta[:2] == (Beta(2.0, 0.2, 2.0, 0.2, 0.0, 2885.0, 0.16, 0.0), "bounds")
    assert (beta.learned.centre, beta.learned.spread, beta.learned.shape) == (0.0, 1.8, 0.5)
    assert 0.5 / beta.learned.rate == pytest.approx(0.2)
    unbounded = dataclasses.replace(release, mechanism={**release.mechanism, "domain": None})
    with pytest.raises(SpecError, match="model.base: missing, and there are no public bounds"):
        _kernel(None, unbounded)


def test_a_base_is_learned_where_the_spec_says_so() -> None:
    release = small_release()
    numbers = {"mu0": 1.0, "lambda": 0.25, "a": 5.0, "b": 4.0}
    kernel, source, learned = _kernel(numbers, release)
    assert (kernel, source, learned) == (NormalNIG(1.0, 0.25, 5.0, 4.0), "spec", None)
    kernel, source, learned = _kernel({**numbers, "learn": True}, release)
    assert (kernel, source) == (NormalNIG(1.0, 0.25, 5.0, 4.0), "spec")
    assert learned.centre == 1.0 and 0.5 / learned.rate == pytest.approx(4.0)
    assert learned.spread == pytest.approx(2.0)  # that of a cluster's mean about mu0
    fixed = _kernel({"learn": False}, release)
    assert fixed == (NormalNIG(0.0, 0.16, 3.0, 8.0), "bounds", None)
    assert _kernel({"learn": True}, release).learned.spread == pytest.approx(5.0)
    for base, lam in ((None, 0.16), ({"learn": "all"}, 0.16), ({**numbers, "learn": "all"}, 0.25)):
        learned = _kernel(base, release).learned  # whose 1 / lambda has the mean 1 / lam
        assert learned.weight == pytest.approx([2.0, 1.0 / lam]) and learned.values[2] == lam
    for base in ({"learn": True}, {**numbers, "learn": True}):
        assert _kernel(base, release).learned.weight.size == 0
    for base, key in (
        ({**numbers, "a": 1.0, "learn": True}, "model.base.a: 1 must be above 1 where the base is learned"),
        ({"empirical": True, "learn": True}, "model.base.learn: the base measure is computed"),
        ({"learn": "yes"}, "model.base.learn: must be true, false or all, not"),
        ({"kind": "truncated_nig", **numbers, "learn": True}, "learn"),
        ({"mu0": 1.0, "learn": True}, "model.base.lambda: missing"),
    ):
        with pytest.raises(SpecError, match=key):
            _kernel(base, release)


def test_a_base_of_beta_kernels_is_learned_where_the_spec_says_so() -> None:
    release = small_release()
    numbers = {"a_shape": 3.0, "a_rate": 0.5, "b_shape": 1.5, "b_rate": 0.5}
    stated = Beta(3.0, 0.5, 1.5, 0.5, -10.0, 20.0)
    assert _kernel(numbers, release, kernel="beta") == (stated, "spec", None)
    kernel, source, learned = _kernel({**numbers, "learn": True}, release, kernel="beta")
    assert (kernel, source) == (stated._replace(lam=0.16, place=np.log(2.0)), "spec")
    assert learned.centre == pytest.approx(np.log(2.0)) and 0.5 / learned.rate == pytest.approx(0.5)
    fixed = _kernel({"learn": False}, release, kernel="beta")
    assert fixed == (Beta(2.0, 0.2, 2.0, 0.2, -10.0, 20.0), "bounds", None)
    assert _kernel({"learn": True}, release, kernel="beta").learned.spread == pytest.approx(1.8)
    for base in (None, {"learn": "all"}, {**numbers, "learn": "all"}):
        learned = _kernel(base, release, kernel="beta").learned
        assert learned.weight == pytest.approx([2.0, 1.0 / 0.16]) and learned.values[2] == 0.16
    for base in ({"learn": True}, {**numbers, "learn": True}):
        assert _kernel(base, release, kernel="beta").learned.weight.size == 0
    for base, text in (
        (
            {**numbers, "b_rate": 0.4, "learn": True},
            "model.base.b_rate: 0.4 must be a_rate .0.5. where the base is learned",
        ),
        ({"a_shape": 1.0, "learn": True}, "model.base.a_rate: missing"),
        ({}, "model.base.a_shape: missing"),
        ({"learn": "yes"}, "model.base.learn: must be true, false or all, not"),
    ):
        with pytest.raises(SpecError, match=text):
            _kernel(base, release, kernel="beta")
    with pytest.raises(SpecError, match="model.base.learn: true is not for groups whose sizes are private"):
        load_spec(
            {
                "data": {"group": "g", "categories": {"g": ["a", "b"]}, "columns": ["x"], "path": "x.csv"},
                "mechanism": {"kind": "perturbed_histogram", "bins": 4, "epsilon": 1.0, "domain": [0, 1]},
                "model": {"kernel": "beta", "base": {"learn": True}},
            }
        )


def test_groups_have_the_fixed_base_and_refuse_a_learned_one() -> None:
    from dpmix.api.mixture_task import group_mixture_task

    release = small_release()
    spec = load_spec({"model": {"base": {"learn": True}}})
    with pytest.raises(SpecError, match="model.base.learn: true is not for a release of groups"):
        group_mixture_task(spec, release, False, (0,))


def test_an_empirical_base_is_in_units_of_the_spread_beyond_the_noise() -> None:
    for factor in (1e-6, 1.0, 1e6):
        pair = (0.0, 2885.0 * factor)
        release = _simulated(MECHANISMS[0], _dollars(3000) * factor, pair, 3)
        kernel, source, learned = _kernel({"empirical": True}, release)
        assert learned is None
        moments = moments_of(release, 0, pair)
        assert source == "release" and moments is not None
        assert kernel.a == 3.0 and kernel.lam == 0.25
        assert kernel.b / 2.0 == pytest.approx(moments.variance / 4.0)
        assert math.sqrt(kernel.b / 2.0 / kernel.lam) == pytest.approx(600 * factor, rel=0.2)
    paper, source, _ = _kernel({"empirical": "paper"}, release)
    assert source == "paper" and paper.a > 1e10  # the recipe that fixes the variance of the variance in units
    half = release.values.var(ddof=1) / 2
    assert paper.a == pytest.approx(2 + 2 * half**2)


def test_noise_that_hides_the_spread_leaves_the_bounds() -> None:
    release = _simulated({"kind": "laplace", "epsilon": 0.05}, _dollars(200), EARNINGS, 4)
    kernel, source, learned = _kernel({"empirical": True}, release)
    assert learned is not None and learned.weight.size == 2  # as where it is left out
    assert source == "hidden" and kernel == NormalNIG(*nig_from_bounds(EARNINGS))
    unbounded = dataclasses.replace(release, mechanism={**release.mechanism, "domain": None})
    with pytest.raises(DataError, match="the noise hides the spread"):
        _kernel({"empirical": True}, unbounded)
    noisy = _simulated({"kind": "gaussian", "rho": 1e-4}, _dollars(200), EARNINGS, 4)
    with pytest.raises(DataError, match="truncated_nig has no other default"):
        _kernel({"kind": "truncated_nig", "empirical": True}, noisy)


def test_a_truncated_base_adds_the_noise() -> None:
    release = _simulated({"kind": "gaussian", "rho": 20.0}, _dollars(3000), EARNINGS, 5)
    kernel, source, _ = _kernel({"kind": "truncated_nig", "empirical": True}, release)
    moments = moments_of(release, 0, EARNINGS)
    assert source == "release" and moments is not None
    assert kernel.b / 2.0 == pytest.approx(moments.variance / 4.0 + release.scales[0] ** 2)
    assert kernel.b / 2.0 / kernel.lam == pytest.approx(moments.variance)


@pytest.mark.parametrize("spread", [2.0, 0.02])
def test_the_starter_of_a_truncated_base_fits_whatever_is_released(spread: float) -> None:
    """Its numbers are stated, as its comment has them: from the release they were refused under its noise."""
    contents = yaml.safe_load(starter("truncated_nig"))
    (low, high), rho = contents["data"]["domain"], contents["mechanism"]["rho"]
    values = np.clip(np.random.default_rng(11).normal(4.0, spread, 300), low, high)
    release = _simulated(contents["mechanism"], values, (low, high), 4)
    kernel = _kernel(contents["model"]["base"], release)[0]
    width, variance = high - low, (high - low) ** 2 / (2.0 * rho)
    assert variance == pytest.approx(kernel.floor)
    assert kernel.mu0 == 0.5 * (low + high)
    assert kernel.lam == pytest.approx(0.16 + 16.0 * variance / width**2)
    assert kernel.b == pytest.approx(width**2 / 50.0 + 2.0 * variance)


def test_several_columns_have_each_their_own_scale() -> None:
    rng = np.random.default_rng(6)
    y = np.column_stack([_dollars(2000), rng.normal(2.0, 0.1, 2000)])
    spec = load_spec({"mechanism": {"kind": "laplace", "epsilon": 40.0, "domain": [[0, 2885], [1, 3]]}})
    release = from_spec(spec.mechanism, 2).simulate(y, ("w", "x"), rng)[0]
    for base, source in ((None, "bounds"), ({"empirical": True}, "release")):
        model = {"kernel": "multivariate_normal", **({} if base is None else {"base": base})}
        fitted = load_spec({"model": model})
        found = kernel_of(fitted, release, observe(fitted, release, [0, 1]), [0, 1])
        assert found.source == source
        sds = np.sqrt(np.diag(found.kernel.psi) / (found.kernel.nu - 3.0))
        assert sds == pytest.approx([288.5, 0.2] if base is None else [300.0, 0.05], rel=0.25)


@pytest.mark.slow
@pytest.mark.matrix
def test_dollars_are_fitted_by_the_default_as_minutes_are(tmp_path: Path) -> None:
    """The recipe of the paper reports far too much spread, with small intervals; the defaults do not."""
    y = _dollars(3000, 7)
    release = _simulated({"kind": "laplace", "epsilon": 3.0}, y, EARNINGS, 9)
    found = {}
    for name, base in (
        ("default", None),
        ("release", {"empirical": True}),
        ("paper", {"empirical": "paper"}),
    ):
        spec = small_spec(iterations=260, burn_in=160, chains=1)
        spec["model"] = {} if base is None else {"base": base}
        dpmix.fit(spec, release, tmp_path / f"{name}.h5", quiet=True)
        found[name] = dpmix.summarize([tmp_path / f"{name}.h5"])
    for name in ("default", "release"):
        sd = found[name].parameters["sd"]
        assert abs(sd.mean - y.std()) < 4.0 * sd.sd
        assert sd.sd < 0.25 * y.std()
    off = found["paper"].parameters["sd"]
    assert off.mean - y.std() > 4.0 * off.sd
    assert "follows the public bounds" in found["default"].to_text()
    assert "used twice" in found["release"].prior
    shares = found["default"].to_json()["variance_shares"]["mean"]
    assert sum(shares.values()) == pytest.approx(1.0) and shares["privacy"] > shares["sampling"] > 0.0
    assert (
        found["default"].to_json()["prior"].startswith("A priori clusters lie around a place of 1442 +- 721")
    )


def test_old_files_that_name_no_rule_are_read_as_they_were() -> None:
    """What `empirical: true` was is `empirical: paper` now, and no run is resumed under another rule."""
    from dpmix.api.fit import _prepare, manifest_of

    release = small_release()
    spec = small_spec() | {"model": {"base": {"empirical": True}}}
    job = _prepare(spec, release, None, (), False, None, None, None, False, True, False)[0]
    assert manifest_of(job.spec, release, job.task)["model.base"] == "as it is computed now"
    stated = _prepare(small_spec(), release, None, (), False, None, None, None, False, True, False)[0]
    assert "model.base" not in manifest_of(stated.spec, release, stated.task)
    said = []
    for base in (None, {"learn": "all"}, {"learn": True}):  # as it was where it was left out
        spec = small_spec() | {"model": {} if base is None else {"base": base}}
        job = _prepare(spec, release, None, (), False, None, None, None, False, True, False)[0]
        said.append(manifest_of(job.spec, release, job.task)["model.base"])
    assert said[0] == said[1] == "learned with its lambda, as it is computed now"
    assert said[2] == "learned, as it is computed now"
