"""The deconvolution kernel density estimate set beside the posterior."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import xarray
from scipy.integrate import quad
from scipy.stats import norm

import dpmix
from dpmix.errors import DataError, SpecError
from dpmix.spec import load_spec
from dpmix.spec.combinations import check_combination
from dpmix.summary.deconvolution import (
    Noise,
    bootstrap_mise,
    deconvolution_kde,
    estimate,
    kernel,
    pilot_bandwidth,
    spectrum,
    variance_term,
)
from tests.helpers.chains_files import a_spec, states_of_mixture, write_chains
from tests.helpers.pages import short_page

LAPLACE, GAUSSIAN, NONE = Noise("laplace", 2.0), Noise("gaussian", 0.8), Noise("none")
BY_NAME = pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN, NONE], ids=lambda noise: noise.kind)
WIDE = np.linspace(-400.0, 400.0, 40_001)
NEAR = np.linspace(-10.0, 10.0, 41)
CENTRES, SDS = np.array([-6.0, 3.0]), np.array([2.0, 2.0])


def draw(rng, n, noise):
    half = rng.integers(2, size=n)
    y = rng.normal(CENTRES[half], SDS[half])
    if noise.kind == "none":
        return y
    return y + {"laplace": rng.laplace, "gaussian": rng.normal}[noise.kind](0.0, noise.scale, n)


def truth(grid):
    return 0.5 * norm.pdf(grid[:, None], CENTRES, SDS).sum(axis=1)


def squared_error(values, grid):
    return np.trapezoid((values - truth(grid)) ** 2, grid)


def inverted(z, noise, h, y):
    """f(y; h) from its definition, one adaptive integral a point."""

    def integrand(t):
        phi_u = {
            "laplace": 1.0 / (1.0 + noise.scale**2 * t**2),
            "gaussian": math.exp(-0.5 * noise.scale**2 * t**2),
            "none": 1.0,
        }[noise.kind]
        return (1.0 - (h * t) ** 2) ** 3 * np.cos(t * (z - y)).mean() / phi_u

    return quad(integrand, 0.0, 1.0 / h, limit=500, epsabs=1e-11)[0] / math.pi


@BY_NAME
def test_against_inversion_by_adaptive_quadrature(noise):
    z = draw(np.random.default_rng(1), 30, noise)
    found = deconvolution_kde(z, noise, NEAR)
    direct = np.array([inverted(z, noise, found.bandwidth, y) for y in NEAR])
    line = np.linspace(-60.0, 60.0, 601)
    mass = np.trapezoid(np.maximum([inverted(z, noise, found.bandwidth, y) for y in line], 0.0), line)
    assert mass > 1.0
    np.testing.assert_allclose(found.values, np.maximum(direct, 0.0) / mass, atol=1e-3 * direct.max())
    periodic = estimate(spectrum(z, 2.0 * math.pi / 400.0), noise, found.bandwidth, NEAR)
    np.testing.assert_allclose(periodic, direct, atol=1e-6 * direct.max())


@BY_NAME
@pytest.mark.parametrize("n", [2, 3, 10, 100, 1000])
def test_a_density(noise, n):
    z = draw(np.random.default_rng(n), n, noise)
    found = deconvolution_kde(z, noise, WIDE)
    assert np.isfinite(found.values).all()
    assert (found.values >= 0.0).all()
    assert np.trapezoid(found.values, WIDE) == pytest.approx(1.0, abs=1e-3)
    assert 0.0 < found.bandwidth < 40.0


@pytest.mark.parametrize("n", [2, 5, 50])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_gaussian_noise_of_any_size_gives_finite_values(n, scale):
    z = np.random.default_rng(n).normal(0.0, math.hypot(1.0, scale), n)
    found = deconvolution_kde(z, Noise("gaussian", scale), WIDE)
    assert np.isfinite(found.values).all()
    assert found.bandwidth > 0.0


@BY_NAME
def test_the_unit_and_the_origin_do_not_matter(noise):
    z = draw(np.random.default_rng(2), 200, noise)
    found = deconvolution_kde(z, noise, NEAR)
    moved = deconvolution_kde(1e4 * z + 5e5, noise._replace(scale=1e4 * noise.scale), 1e4 * NEAR + 5e5)
    assert moved.bandwidth == pytest.approx(1e4 * found.bandwidth, rel=1e-4)
    np.testing.assert_allclose(1e4 * moved.values, found.values, atol=1e-4 * found.values.max())


@BY_NAME
def test_the_bandwidth_minimises_its_criterion(noise):
    z = draw(np.random.default_rng(3), 500, noise)
    unit = z.std(ddof=1)
    found = spectrum(z, 2.0 * math.pi / 300.0)
    variance = max(unit**2 - noise.variance, unit**2 * math.sqrt(2.0 / z.size))
    g = pilot_bandwidth(found, noise, variance, 0.06, 20.0)
    power = (np.abs(found.phi) * kernel(g * found.t) * noise.inverse(found.t)) ** 2
    bandwidths = np.geomspace(0.1, 10.0, 4001)
    criterion = [bootstrap_mise(h, found.t, power, z.size, noise) for h in bandwidths]
    best = bandwidths[int(np.argmin(criterion))]
    assert deconvolution_kde(z, noise, NEAR).bandwidth == pytest.approx(best, rel=2e-3)


@BY_NAME
def test_the_pilot_bandwidth_leaves_no_bias(noise):
    z = draw(np.random.default_rng(4), 500, noise)
    found = spectrum(z, 2.0 * math.pi / 300.0)
    g = pilot_bandwidth(found, noise, 20.0, 0.06, 20.0)
    theta4 = quad(lambda t: t**8 * math.exp(-20.0 * t * t), 0.0, np.inf)[0] / math.pi
    steps = np.geomspace(0.06, 20.0, 20_001)
    first = [(variance_term(h, 500, noise, 3) - 6.0 * h * h * theta4) ** 2 for h in steps]
    smooth = kernel(steps[int(np.argmin(first))] * found.t) * noise.inverse(found.t)
    theta3 = np.trapezoid(found.t**6 * (np.abs(found.phi) * smooth) ** 2, found.t) / math.pi
    second = [(variance_term(h, 500, noise, 2) - 6.0 * h * h * theta3) ** 2 for h in steps]
    assert g == pytest.approx(steps[int(np.argmin(second))], rel=2e-3)


@BY_NAME
@pytest.mark.parametrize("order", [0, 3])
def test_the_variance_term_against_adaptive_quadrature(noise, order):
    def integrand(t):
        inverse = {
            "laplace": 1.0 + (noise.scale * t / 0.4) ** 2,
            "gaussian": math.exp(0.5 * (noise.scale * t / 0.4) ** 2),
            "none": 1.0,
        }[noise.kind]
        return t ** (2 * order) * ((1.0 - t * t) ** 3 * inverse) ** 2

    expected = quad(integrand, -1.0, 1.0, epsrel=1e-12)[0] / (2.0 * math.pi * 70 * 0.4 ** (2 * order + 1))
    assert variance_term(0.4, 70, noise, order) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("noise", [Noise("laplace", 0.7), Noise("gaussian", 0.5)], ids=lambda n: n.kind)
@pytest.mark.parametrize("h", [0.25, 0.5])
def test_the_criterion_is_the_mean_integrated_squared_error(noise, h):
    """A standard normal density: formula against 200 samples of 50, to within 4 standard errors."""
    rng, n, grid = np.random.default_rng(5), 50, np.linspace(-30.0, 30.0, 601)
    noises = {"laplace": rng.laplace, "gaussian": rng.normal}[noise.kind]
    errors = []
    for _ in range(200):
        z = rng.standard_normal(n) + noises(0.0, noise.scale, n)
        found = estimate(spectrum(z, 2.0 * math.pi / 80.0), noise, h, grid)
        errors.append(np.trapezoid((found - norm.pdf(grid)) ** 2, grid))
    t = np.linspace(0.0, 30.0, 30_001)
    power = np.exp(-t * t)
    roughness = 0.5 / math.sqrt(math.pi)
    dropped = np.trapezoid(power * kernel(h * t) ** 2, t) / (math.pi * n)
    expected = bootstrap_mise(h, t, power, n, noise) + roughness - dropped
    error = np.std(errors) / math.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(expected, abs=4.0 * error)
    assert error < 0.1 * expected


def test_far_better_than_ignoring_the_noise_and_better_with_more_records():
    rng, grid = np.random.default_rng(6), np.linspace(-30.0, 30.0, 3001)
    means = []
    for n in (100, 1000, 10_000):
        samples = [draw(rng, n, LAPLACE) for _ in range(8)]
        means.append(
            np.mean([squared_error(deconvolution_kde(z, LAPLACE, grid).values, grid) for z in samples])
        )
        if n == 1000:
            naive = [squared_error(deconvolution_kde(z, NONE, grid).values, grid) for z in samples]
    assert means[0] > 1.5 * means[1] > 2.0 * means[2]
    assert np.mean(naive) > 3.0 * means[1]


def test_without_noise_it_is_an_ordinary_kernel_estimate():
    z = draw(np.random.default_rng(7), 2000, NONE)
    assert squared_error(deconvolution_kde(z, NONE, WIDE).values, WIDE) < 0.002


@pytest.mark.parametrize("z", [[1.0], [2.0, 2.0, 2.0]])
def test_too_few_values_are_refused(z):
    with pytest.raises(DataError, match="at least two different released values"):
        deconvolution_kde(np.array(z), LAPLACE, NEAR)


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    rng = np.random.default_rng(8)
    states = [states_of_mixture(60, rng) for _ in range(2)]
    y = rng.choice([-5.0, 0.0, 5.0], 400) + rng.normal(0.0, 1.0, 400)
    attrs = {"mechanism": json.dumps({"kind": "laplace", "scale": [1.0], "domain": [[-10.0, 10.0]]})}
    observed = y + rng.laplace(0.0, 1.0, 400)
    path = tmp_path_factory.mktemp("d") / "c.h5"
    return write_chains(path, states, observed=observed, attrs=attrs, constants={"noise_scale": 1.0})


ASKED = ["summary.baseline=deconvolution_kde"]


def test_in_json_and_hdf5_when_asked(chains, tmp_path):
    summary = dpmix.summarize(chains, tmp_path / "s.h5", overrides=ASKED)
    found = json.loads(json.dumps(summary.to_json(), allow_nan=False))["density"]
    expected = deconvolution_kde(summary.released, Noise("laplace", 1.0), summary.density.grid)
    assert found["baseline"] == expected.values.tolist()
    assert found["baseline_bandwidth"] == expected.bandwidth
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        assert tree["density"]["baseline"].values.tolist() == found["baseline"]
        assert float(tree["density"]["baseline_bandwidth"]) == found["baseline_bandwidth"]


def test_nowhere_when_not_asked(chains, tmp_path):
    summary = dpmix.summarize(chains, tmp_path / "s.h5")
    assert not [key for key in summary.to_json()["density"] if "baseline" in key]
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        assert "baseline" not in tree["density"]
    assert "deconvol" not in short_page(summary, drawn=True)


def test_in_the_report_when_asked(chains):
    text = short_page(dpmix.summarize(chains, overrides=ASKED), drawn=True)
    assert "deconvolution estimate" in text
    assert "it has no band" in text


def test_mechanisms_it_is_not_for_are_named(tmp_path):
    states = [states_of_mixture(20, np.random.default_rng(9))]
    spec = a_spec(sampler__iterations=1020, sampler__chains=1)
    for kind, fits in (("gaussian", True), ("none", True), ("wavelet", False)):
        own = {"levels": 2, "domain": [[0.0, 1.0]]} if kind == "wavelet" else {}
        attrs = {"mechanism": json.dumps({"kind": kind, "scale": [1.0], **own})}
        path = write_chains(tmp_path / f"{kind}.h5", states, spec=spec, attrs=attrs)
        if fits:
            density = dpmix.summarize(path, overrides=ASKED).density
            assert density.baseline is not None
            assert density.baseline_bandwidth > 0.0
        else:
            with pytest.raises(DataError, match="summary.baseline: .* not for wavelet"):
                dpmix.summarize(path, overrides=ASKED)


@pytest.mark.parametrize(
    ("mechanism", "model", "words"),
    [
        ({"kind": "wavelet", "epsilon": 5.0, "levels": 3}, {"kernel": "beta"}, "not by wavelet"),
        ({"kind": "binomial", "epsilon": 5.0, "trials": 8}, {"kernel": "beta"}, "not by binomial"),
        (
            {"kind": "smoothed_histogram", "epsilon": 5.0, "bins": 9, "draws": 5},
            {},
            "not by smoothed_histogram",
        ),
        ({"kind": "perturbed_histogram", "epsilon": 5.0, "bins": 9}, {}, "not by perturbed_histogram"),
        ({"kind": "gaussian", "scale": 1.0}, {"kernel": "multivariate_normal"}, "kernel multivariate_normal"),
    ],
)
def test_a_spec_that_asks_for_it_in_vain_is_refused(mechanism, model, words):
    asked = {"model": model, "summary": {"baseline": "deconvolution_kde"}}
    with pytest.raises(SpecError) as caught:
        check_combination(mechanism["kind"], load_spec(asked))
    assert str(caught.value).startswith("summary.baseline: deconvolution_kde is for one column")
    assert words in str(caught.value)


def test_a_spec_of_the_interface_may_ask_for_it():
    asked = {"mechanism": {"kind": "laplace", "scale": 2.0}, "summary": {"baseline": "deconvolution_kde"}}
    assert load_spec(asked).summary.baseline == "deconvolution_kde"
    with pytest.raises(SpecError, match=r"summary\.baseline: .* not by wavelet"):
        load_spec(
            asked | {"mechanism": {"kind": "wavelet", "epsilon": 5.0, "levels": 3, "domain": [0.0, 1.0]}}
        )


def naive_estimate(z: np.ndarray, scale: float, grid: np.ndarray) -> np.ndarray:
    """What is often computed instead: clipped, not renormalised, its bandwidth from the last value alone.

    All else is ours, the pilot bandwidth too; a single value has |phi_Z| = 1 at every frequency.
    """
    noise, found = Noise("laplace", scale), spectrum(z, 2.0 * math.pi / 400.0)
    last = spectrum(z[-1:], 2.0 * math.pi / 400.0)
    g = pilot_bandwidth(found, noise, z.var() - noise.variance, 0.1, 40.0)
    power = (np.abs(last.phi) * kernel(g * last.t) * noise.inverse(last.t)) ** 2
    steps = np.geomspace(0.1, 40.0, 500)
    h = steps[int(np.argmin([bootstrap_mise(h, last.t, power, z.size, noise) for h in steps]))]
    return np.maximum(estimate(found, noise, float(h), grid), 0.0)


def test_several_times_better_than_the_bandwidth_of_the_last_value_alone():
    """On an equal footing: n = 1000, Laplace noise of scale 2, the same samples, kernel and grid."""
    rng, grid = np.random.default_rng(21), np.linspace(-30.0, 30.0, 3001)
    ours, naive = [], []
    for _ in range(10):
        z = draw(rng, 1000, LAPLACE)
        ours.append(squared_error(deconvolution_kde(z, LAPLACE, grid).values, grid))
        naive.append(squared_error(naive_estimate(z, 2.0, grid), grid))
    assert np.mean(naive) > 3.0 * np.mean(ours)
    assert (np.array(naive) > np.array(ours)).all()


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=lambda noise: noise.kind)
def test_clipping_is_made_up_for(noise):
    """With few values much is clipped; what is left still integrates to one, and is nowhere negative."""
    rng, grid = np.random.default_rng(22), np.linspace(-300.0, 300.0, 60_001)
    for n in (30, 300):
        found = deconvolution_kde(draw(rng, n, noise), noise, grid)
        raw = estimate(spectrum(draw(rng, n, noise), 2 * math.pi / 400.0), noise, found.bandwidth, grid)
        assert (raw < 0).any()
        assert (found.values >= 0.0).all()
        assert np.trapezoid(found.values, grid) == pytest.approx(1.0, abs=2e-3)
