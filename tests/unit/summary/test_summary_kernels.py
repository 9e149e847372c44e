"""Summaries of truncated normal, beta and multivariate normal mixtures, against direct computation."""

from __future__ import annotations

import json
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import xarray
from scipy import integrate, special, stats

from dpmix.errors import DataError
from dpmix.kernels.beta.family import BetaGamma
from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.kernels.normal.family import TruncatedNormalInverseGamma
from dpmix.run.chains_reader import read_chains
from dpmix.spec.summary_section import SummarySpec
from dpmix.summary.density import (
    correlations,
    distance_from_prior,
    joint_distance,
    mean_density,
    posterior_density,
)
from dpmix.summary.fitted_columns import choose_grids
from dpmix.summary.headline import USABLE
from dpmix.summary.random_measures import Measures
from dpmix.summary.summary_of_chains import summarize_chains
from tests.helpers.chains_files import (
    BETA,
    NIW,
    TRUNCATED,
    states_of_beta,
    states_of_normals,
    states_of_truncated,
    write_kernel,
)

# mu0, lam, a, b, eta^2: moderate; eta^2 far above b/a; P(a, x) below the least double; hardly truncated
TRUNCATIONS = [
    (0.5, 0.1, 3.0, 3.0, 1.0),
    (0.0, 0.1, 3.0, 3.0, 400.0),
    (-2.0, 0.5, 900.0, 40.0, 4.0),
    (0.0, 2.0, 2.5, 50.0, 0.01),
    (1.0, 1000.0, 0.8, 2.0, 3.0),
]


def exact_truncated(case, power=None, y=None) -> float:
    """E[tau2^power], or the predictive density at y, by mpmath over t = log(tau2 / eta^2)."""
    mu0, lam, a, b, floor = (mpmath.mpf(v) for v in case)
    x = b / floor
    peak = mpmath.log(x / a) if x > a else mpmath.mpf(0)
    width = 1 / mpmath.sqrt(a)
    steps = [k * width for k in (-8, -3, 3, 8, 30, 100)] + [k / a for k in (1, 3, 10, 30, 60)]
    points = sorted({mpmath.mpf(0), peak, *(peak + step for step in steps if peak + step > 0)})
    points += [points[-1] + 50, mpmath.inf]

    def weight(t):
        return mpmath.exp(-a * (t - peak) - x * (mpmath.exp(-t) - mpmath.exp(-peak)))

    def value(t):
        if power is not None:
            return weight(t) * (floor * mpmath.exp(t)) ** power
        variance = floor * (mpmath.expm1(t) + mpmath.exp(t) / lam)
        return (
            weight(t) * mpmath.exp(-((y - mu0) ** 2) / (2 * variance)) / mpmath.sqrt(2 * mpmath.pi * variance)
        )

    return float(mpmath.quad(value, points) / mpmath.quad(weight, points))


@pytest.mark.parametrize("case", TRUNCATIONS)
def test_truncated_prior_predictive_against_mpmath(case):
    family = TruncatedNormalInverseGamma(*case)
    scale = np.sqrt(case[4] + case[3] / case[2])
    for y in case[0] + scale * np.array([0.0, 0.3, 2.0, 12.0]):
        assert family.predictive(np.array([y]))[0] == pytest.approx(
            exact_truncated(case, y=y), rel=1e-8, abs=1e-40
        )


@pytest.mark.parametrize("case", TRUNCATIONS)
def test_truncated_moments_and_draws(case):
    mu0, lam, a, b, floor = case
    family = TruncatedNormalInverseGamma(*case)
    draws = family.draw(np.random.default_rng(1), 40_000)
    tau2 = draws[1] ** 2 + floor
    assert (tau2 >= floor).all()
    # 1/tau2 is bounded, so that its mean has a standard error that is known
    inverse = 1.0 / tau2
    assert inverse.mean() == pytest.approx(exact_truncated(case, power=-1), abs=4 * inverse.std() / 200)
    standard = (draws[0] - mu0) / np.sqrt(tau2 / lam)
    assert [standard.mean(), standard.std()] == pytest.approx([0.0, 1.0], abs=0.02)
    assert np.corrcoef(np.abs(standard), inverse)[0, 1] == pytest.approx(0.0, abs=0.025)
    mean, variance = family.predictive_moments()
    assert mean == mu0
    if a <= 1.0:
        assert variance == np.inf
    else:
        expected = exact_truncated(case, power=1) * (1 + 1 / lam) - floor
        assert variance == pytest.approx(expected, rel=1e-8)


def test_truncated_draws_follow_the_distribution_in_the_far_tail():
    """t has density exp(-a t - x e^-t): the cdf by quadrature at its draws is uniform."""
    a, b, floor = 900.0, 40.0, 4.0
    family = TruncatedNormalInverseGamma(0.0, 1.0, a, b, floor)
    t = np.log1p(family.draw(np.random.default_rng(2), 5000)[1] ** 2 / floor)
    grid = np.linspace(0.0, 0.05, 20_001)
    pdf = np.exp(-a * grid - b / floor * np.expm1(-grid))
    cdf = integrate.cumulative_trapezoid(pdf, grid, initial=0.0)
    assert stats.kstest(np.interp(t, grid, cdf / cdf[-1]), "uniform").pvalue > 1e-3


def test_truncated_nodes_are_quantiles():
    family = TruncatedNormalInverseGamma(*TRUNCATIONS[0])
    nodes = family.nodes()
    mass = integrate.cumulative_trapezoid(family.predictive(nodes), nodes)[-1]
    assert (np.diff(nodes) > 0).all()
    assert mass == pytest.approx(1.0, abs=1e-3)


def test_beta_prior_predictive_against_quadrature():
    family = BETA

    def exact(u):
        (a, first), (b, second) = special.roots_genlaguerre(60, 1.0), special.roots_genlaguerre(60, 2.0)
        values = stats.beta.pdf(u, a[:, None] / 2.0, b / 1.5)  # Gamma(2, 2) and Gamma(3, 1.5)
        return first @ values @ second / (first.sum() * second.sum() * family.width)

    assert (family.a_shape, family.a_rate, family.b_shape, family.b_rate) == (2.0, 2.0, 3.0, 1.5)
    for u in (1e-3, 0.3, 0.8):
        y = family.lo + family.width * u
        assert family.predictive(np.array([y]))[0] == pytest.approx(exact(u), rel=1e-5)


@pytest.mark.parametrize("prior", [(2.0, 2.0, 3.0, 1.5), (0.5, 0.1, 0.5, 0.1), (40.0, 1.0, 2.0, 0.01)])
def test_beta_prior_predictive_is_the_mean_of_drawn_kernels(prior):
    family = BetaGamma(*prior, lo=2.0, width=4.0)
    y = np.array([2.2, 3.0, 4.0, 5.9])
    atoms = family.draw(np.random.default_rng(3), 20_000)
    values = family.densities(np.ones(20_000), atoms, y)
    error = values.std(axis=1 - 1) / np.sqrt(20_000)
    assert (np.abs(values.mean(axis=0) - family.predictive(y)) < 4.5 * error).all()
    logit = BetaGamma(*prior, lo=2.0, width=4.0, logit=True)
    nodes = logit.nodes()
    assert np.trapezoid(logit.predictive(nodes), nodes) == pytest.approx(1.0, abs=2e-3)
    means, variances = family.moments(atoms)
    mean, variance = family.predictive_moments()
    assert means.mean() == pytest.approx(mean, abs=4.5 * means.std() / np.sqrt(20_000))
    squares = variances + (means - mean) ** 2
    assert squares.mean() == pytest.approx(variance, abs=4.5 * squares.std() / np.sqrt(20_000))


def test_beta_densities_are_in_the_units_of_the_data():
    atoms = np.array([[0.3, 5.0], [2.0, 50.0]])
    y = np.array([1.0, 2.0, 2.5, 5.9, 6.0, 7.0])
    exact = stats.beta.pdf(y[1:4], atoms[0][:, None], atoms[1][:, None], loc=2.0, scale=4.0)
    found = BetaGamma(2.0, 2.0, 2.0, 2.0, 2.0, 4.0).densities(np.array([1.0, 1.0]), atoms, y)
    assert found[:, 2:4] == pytest.approx(exact[:, 1:], rel=1e-12)
    assert (found[:, [0, 1, 4, 5]] == 0.0).all()


def test_beta_grid_keeps_away_from_the_ends():
    grid = BETA.inside(np.linspace(BETA.lo, BETA.lo + BETA.width, 5))
    assert grid == pytest.approx(BETA.lo + BETA.width * np.array([0.125, 0.25, 0.5, 0.75, 0.875]))
    inner = np.linspace(BETA.lo + 0.1, BETA.lo + 0.2, 4)
    assert BETA.inside(inner) == pytest.approx(inner)


@pytest.mark.parametrize(("a", "b"), [(5.0, 50.0), (0.05, 0.1), (400.0, 300.0)])
def test_beta_distance_against_quadrature(a, b):
    """Shapes far below one, with their mass at the ends, and narrow ones."""
    ones = np.ones(1)
    measures = Measures(np.array([1]), ones, np.array([[a], [b]]), np.zeros(1))
    found, _ = distance_from_prior([measures], BETA, np.random.default_rng(0))
    logit = BetaGamma(BETA.a_shape, BETA.a_rate, BETA.b_shape, BETA.b_rate, BETA.lo, BETA.width, logit=True)
    t = np.sinh(np.linspace(-8.0, 8.0, 6001))
    kernel = logit.densities(ones, measures.atoms, t)[0]
    affinity = np.trapezoid(np.sqrt(kernel * logit.predictive(t)), t)
    assert np.trapezoid(kernel, t) == pytest.approx(1.0, abs=1e-5)
    assert found**2 == pytest.approx(1.0 - affinity, abs=2e-3)


def test_inverse_wishart_draws_have_their_moments():
    atoms = NIW.draw(np.random.default_rng(4), 60_000)
    mean, covariance = NIW.split(atoms)
    expected = NIW.psi / (NIW.nu - 3.0)
    error = covariance.std(axis=0) / np.sqrt(60_000)
    assert (np.abs(covariance.mean(axis=0) - expected) < 5.0 * error).all()
    # the mean given the covariance: standardised by its factor it is standard normal over sqrt(lam)
    root = np.linalg.cholesky(covariance)
    standard = np.linalg.solve(root, (mean - NIW.mu0)[:, :, None])[:, :, 0] * np.sqrt(NIW.lam)
    assert np.cov(standard.T) == pytest.approx(np.eye(2), abs=0.03)
    # each column is normal-inverse-gamma
    for column in range(2):
        family = NIW.column(column)
        shape = stats.kstest(covariance[:5000, column, column], stats.invgamma(family.a, scale=family.b).cdf)
        assert shape.pvalue > 1e-3


def test_multivariate_prior_predictive_is_the_mean_of_drawn_kernels():
    y = np.array([[0.0, 0.0], [1.0, -1.0], [3.0, 4.0]])
    values = NIW.densities(np.ones(40_000), NIW.draw(np.random.default_rng(5), 40_000), y)
    error = values.std(axis=0) / 200.0
    assert (np.abs(values.mean(axis=0) - np.exp(NIW.log_predictive(y))) < 4.5 * error).all()


def test_multivariate_densities_against_scipy():
    rng = np.random.default_rng(6)
    family = NormalInverseWishart(np.zeros(3), 0.2, 6.0, np.eye(3))
    atoms, y = family.draw(rng, 5), rng.standard_normal((4, 3))
    mean, covariance = family.split(atoms)
    exact = [stats.multivariate_normal(m, c).pdf(y) for m, c in zip(mean, covariance, strict=True)]
    assert family.densities(np.arange(1.0, 6.0), atoms, y) == pytest.approx(
        np.arange(1.0, 6.0)[:, None] * exact, rel=1e-9
    )


@pytest.mark.parametrize("rest", [0.0, 0.4])
def test_joint_distance_against_a_sum_over_a_fine_grid(rest):
    mean, covariance = np.array([[0.5, -0.5]]), np.array([[[0.1, 0.06], [0.06, 0.1]]])
    atoms = NIW.atoms({"mean": mean, "covariance": covariance})
    measures = Measures(np.array([1]), np.array([1.0 - rest]), atoms, np.array([rest]))
    found, _ = joint_distance([measures], NIW, np.random.default_rng(7))
    axis = np.linspace(-40, 40, 1601)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    product = np.sqrt(mean_density(measures, NIW, points) * np.exp(NIW.log_predictive(points)))
    # the terms are between 0 and 1, so that the standard error of 4,000 is below 0.008
    assert found**2 == pytest.approx(1.0 - product.sum() * (axis[1] - axis[0]) ** 2, abs=0.02)


def test_joint_distance_of_the_prior_from_itself():
    nothing = Measures(np.zeros(4, dtype=int), np.empty(0), np.empty((6, 0)), np.ones(4))
    assert joint_distance([nothing, nothing], NIW, np.random.default_rng(7)) == (
        pytest.approx(0.0, abs=1e-6),
        0.0,
    )


def test_correlations_of_known_mixtures():
    mean = np.array([[0.0, 0.0], [2.0, 2.0], [-1.0, 5.0]])
    covariance = np.array([np.eye(2), np.eye(2), [[1.0, -0.8], [-0.8, 4.0]]])
    measures = Measures(
        np.array([2, 1]),
        np.array([0.5, 0.5, 1.0]),
        NIW.atoms({"mean": mean, "covariance": covariance}),
        np.zeros(2),
    )
    assert correlations(measures, NIW)[:, 0] == pytest.approx([1.0 / 2.0, -0.8 / 2.0])
    place = np.array([1.7e12, -9.2e9])  # nothing is lost far from 0
    moved = replace(measures, atoms=NIW.atoms({"mean": mean + place, "covariance": covariance}))
    family = replace(NIW, mu0=NIW.mu0 + place)
    assert correlations(moved, family)[:, 0] == pytest.approx([1.0 / 2.0, -0.8 / 2.0])


def direct(chain, grid, kernel, prior) -> np.ndarray:
    """The mean of the mixtures of a chain, state by state."""
    total = np.zeros(len(grid))
    for state in range(chain["n_clusters"].size):
        weights = chain["weights"][state]
        there = np.isfinite(weights)
        total += sum(weights[h] * kernel(state, h) for h in np.flatnonzero(there))
        total += (1.0 - weights[there].sum()) * prior
    return total / chain["n_clusters"].size


def test_posterior_mean_of_a_beta_file(tmp_path):
    chain = states_of_beta(150, np.random.default_rng(8))
    chains = read_chains([write_kernel(tmp_path / "c.h5", "beta", [chain])])
    (grid,) = choose_grids(chains, [])
    assert (grid.size, grid[0] > BETA.lo, grid[-1] < BETA.lo + BETA.width) == (200, True, True)
    density = posterior_density(chains, [grid], 0.9).density
    exact = direct(
        chain,
        grid,
        lambda s, h: stats.beta.pdf(grid, chain["a"][s, h], chain["b"][s, h], loc=BETA.lo, scale=BETA.width),
        BETA.predictive(grid),
    )
    assert density.mean == pytest.approx(exact, rel=1e-9)
    assert np.trapezoid(density.mean, grid) == pytest.approx(1.0, abs=0.02)
    assert ((density.lower <= density.mean) & (density.mean <= density.upper)).all()


def test_a_prior_of_beta_kernels_that_holds_the_sd_up_is_told_and_doubted(tmp_path):
    chain = states_of_beta(150, np.random.default_rng(8))
    narrow = dict(chain)
    for name in ("a", "b"):  # an sd of about 0.05 on bounds 4 apart, where the prior's begins near 0.3
        drawn = np.random.default_rng(9).gamma(5.0, 160.0, chain[name].shape)
        narrow[name] = np.where(np.isfinite(chain[name]), drawn, np.nan)
    narrow["weights"] = chain["weights"] / np.nansum(chain["weights"], axis=-1, keepdims=True)
    for states, held in ((chain, False), (narrow, True)):
        path = write_kernel(tmp_path / "c.h5", "beta", [states] * 2)
        summary = summarize_chains(read_chains([path]), SummarySpec())
        assert summary.parameters["sd"].held_up == held
        assert [name for name, scalar in summary.parameters.items() if scalar.held_up] == ["sd"] * held
        assert any(text.startswith("The prior holds up sd (") for text in summary.warnings) == held
        doubts = [text for text in summary.verdict.reasons if text.startswith("The prior holds up sd: ")]
        assert len(doubts) == held
        assert not held or summary.verdict.answer != USABLE


def test_posterior_mean_of_a_truncated_file(tmp_path):
    chain = states_of_truncated(150, np.random.default_rng(9))
    chain["variance"][3, 0] = 0.0  # what tau2 - eta^2 may round to
    chains = read_chains([write_kernel(tmp_path / "c.h5", "truncated", [chain])])
    grid = np.linspace(-9.7, 10.1, 57)
    density = posterior_density(chains, [grid], 0.9).density
    chain["variance"][3, 0] = 1e-16 * TRUNCATED.floor

    def kernel(s, h):
        return stats.norm.pdf(grid, chain["mean"][s, h], np.sqrt(chain["variance"][s, h]))

    assert density.mean == pytest.approx(direct(chain, grid, kernel, TRUNCATED.predictive(grid)), rel=1e-9)
    assert density.prior == pytest.approx(TRUNCATED.predictive(grid))


@pytest.fixture(scope="module")
def planar(tmp_path_factory):
    rng = np.random.default_rng(10)
    states = [states_of_normals(200, rng) for _ in range(2)]
    return states, write_kernel(tmp_path_factory.mktemp("m") / "c.h5", "multivariate_normal", states)


def test_marginal_densities_of_a_multivariate_file(planar):
    states, path = planar
    chains = read_chains([path])
    assert chains.columns == ("height", "weight/kg")
    grids = choose_grids(chains, [])
    assert [(g[0], g[-1]) for g in grids] == [(-12.0, 12.0), (-6.0, 6.0)]
    result = posterior_density(chains, grids, 0.9)
    for j, (name, density) in enumerate(result.densities.items()):
        assert name == chains.columns[j]
        exact = [
            direct(
                chain,
                grids[j],
                lambda s, h, chain=chain, j=j: stats.norm.pdf(
                    grids[j], chain["mean"][s, h, j], np.sqrt(chain["covariance"][s, h, j, j])
                ),
                NIW.column(j).predictive(grids[j]),
            )
            for chain in states
        ]
        assert density.mean == pytest.approx(np.mean(exact, axis=0), rel=1e-9)
        assert ((density.lower <= density.mean) & (density.mean <= density.upper)).all()
    x, y = result.joint.grids
    exact = sum(
        direct(
            chain,
            [0],
            lambda s, h, chain=chain: stats.multivariate_normal(
                chain["mean"][s, h], chain["covariance"][s, h]
            ).pdf([x[30], y[20]]),
            np.exp(NIW.log_predictive(np.array([[x[30], y[20]]]))),
        )[0]
        for chain in states
    )
    assert result.joint.mean[30, 20] == pytest.approx(exact / 2, rel=1e-9)
    margin = np.trapezoid(result.joint.mean, y, axis=1)
    assert margin == pytest.approx(np.interp(x, grids[0], result.densities["height"].mean), abs=0.01)


def test_a_multivariate_summary_is_written_by_column(planar, tmp_path):
    summary = summarize_chains(read_chains([planar[1]]), SummarySpec())
    found = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert list(found["density"]) == ["height", "weight/kg"]
    for density in found["density"].values():
        assert list(density) == ["grid", "mean", "lower", "upper", "prior", "hellinger_from_prior"]
    joint = found["joint"]
    assert joint["columns"] == ["height", "weight/kg"]
    assert (
        joint["hellinger_from_prior"]
        >= max(d["hellinger_from_prior"] for d in found["density"].values()) - 0.02
    )
    assert {"mean[height]", "sd[weight/kg]", "density[height=0]", "correlation[height,weight/kg]"} <= set(
        found["parameters"]
    )
    summary.write(tmp_path / "s.h5", {"level": 0.95})
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        assert tree["density/height"]["mean"].values.tolist() == found["density"]["height"]["mean"]
        assert tree["density/weight_kg"]["prior"].values.tolist() == found["density"]["weight/kg"]["prior"]
        assert tree["joint"]["mean"].values.tolist() == joint["mean"]
        assert float(tree["joint"]["hellinger_from_prior"]) == joint["hellinger_from_prior"]


def test_a_correlation_that_the_prior_draws_towards_0_is_told_of(planar, monkeypatch):
    name = "correlation[height,weight/kg]"
    for drawn in ([], [name]):
        monkeypatch.setattr(
            "dpmix.summary.summary_of_chains.drawn_in", lambda series, prior, found=drawn: found
        )
        summary = summarize_chains(read_chains([planar[1]]), SummarySpec())
        assert summary.parameters[name].held_up is bool(drawn)
        assert any("towards 0" in remark.text for remark in summary.remarks) is bool(drawn)


def test_one_grid_for_all_columns_or_one_for_each(planar):
    chains = read_chains([planar[1]])
    assert [g.size for g in choose_grids(chains, SummarySpec(grid=[0, 1, 5]).grids())] == [5, 5]
    each = SummarySpec(grid=[[0, 1, 5], [2, 3, 7]])
    assert [g[-1] for g in choose_grids(chains, each.grids())] == [1.0, 3.0]
    three = SummarySpec(grid=[[0, 1, 5]] * 3)
    with pytest.raises(DataError, match=r"summary\.grid has 3 grids, and the chains are of 2 columns"):
        choose_grids(chains, three.grids())


def test_the_baseline_is_refused_for_several_columns(planar):
    with pytest.raises(DataError, match=r"summary\.baseline: .* one column, and these chains are of 2"):
        summarize_chains(read_chains([planar[1]]), SummarySpec(baseline="deconvolution_kde"))


@pytest.mark.parametrize(
    ("kind", "name", "index", "value"),
    [
        ("beta", "a", (2, 0), 0.0),
        ("beta", "b", (2, 0), np.nan),
        ("truncated", "variance", (2, 0), -1e-3),
        ("multivariate_normal", "covariance", (2, 0, 1, 1), 0.0),
        ("multivariate_normal", "mean", (2, 0, 1), np.inf),
    ],
)
def test_bad_components_are_named(tmp_path, kind, name, index, value):
    make = {
        "beta": states_of_beta,
        "truncated": states_of_truncated,
        "multivariate_normal": states_of_normals,
    }[kind]
    chain = make(20, np.random.default_rng(11))
    chain[name][index] = value
    chains = read_chains([write_kernel(tmp_path / "c.h5", kind, [chain])])
    with pytest.raises(DataError, match="bad component: draw 2, component 0"):
        list(chains.blocks(7))


def test_constants_that_are_missing_are_named(tmp_path):
    chain = states_of_beta(20, np.random.default_rng(12))
    path = write_kernel(tmp_path / "c.h5", "beta", [chain], constants={"domain_hi": None})
    with pytest.raises(DataError, match="no finite constant_data/domain_hi"):
        read_chains([path])
