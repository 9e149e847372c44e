"""The random density, its bands and its distance from the prior, against exact values."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

import dpmix
from dpmix.kernels.beta.family import BetaGamma
from dpmix.kernels.normal.family import NormalInverseGamma
from dpmix.numerics.equal_cells import spread
from dpmix.run.chains_reader import read_chains
from dpmix.summary.density import (
    bands,
    distance_from_prior,
    hellinger,
    is_resolved,
    nodes_for,
    posterior_density,
    record_quantities,
)
from dpmix.summary.random_measures import MAX_STICKS, Measures, draw_measures, state_measures
from tests.helpers.chains_files import BASE, a_spec, states_of_mixture, states_without_data, write_chains
from tests.helpers.pages import short_page

pytestmark = pytest.mark.second_runs

POINTS = np.array([-6.0, -1.0, 0.0, 2.5, 9.0])


def measures_of(components: list[list[tuple[float, float, float]]]) -> Measures:
    """Finite mixtures from lists of (weight, mean, sd)."""
    flat = np.asarray([atom for draw in components for atom in draw], dtype=float)
    counts = np.asarray([len(draw) for draw in components])
    rest = np.asarray([1.0 - sum(atom[0] for atom in draw) for draw in components])
    return Measures(counts, flat[:, 0], flat[:, 1:].T, rest)


def moments_of_kernel(y: float) -> tuple[float, float]:
    """E f(y | theta) and E f(y | theta)^2 under the base measure, by quadrature over the variance.

    Given s2 the mean is N(mu0, s2 / lam); f^2 is a normal density of half the variance over 2 sqrt(pi s2).
    """

    def first(s2: float) -> float:
        scale = np.sqrt(s2 * (1.0 + 1.0 / BASE.lam))
        return float(stats.norm.pdf(y, BASE.mu0, scale) * stats.invgamma.pdf(s2, BASE.a, scale=BASE.b))

    def second(s2: float) -> float:
        scale = np.sqrt(s2 * (0.5 + 1.0 / BASE.lam))
        inner = stats.norm.pdf(y, BASE.mu0, scale) / (2.0 * np.sqrt(np.pi * s2))
        return float(inner * stats.invgamma.pdf(s2, BASE.a, scale=BASE.b))

    return (
        integrate.quad(first, 0, np.inf, epsabs=1e-13, limit=200)[0],
        integrate.quad(second, 0, np.inf, epsabs=1e-13, limit=200)[0],
    )


def test_prior_predictive_is_the_mean_of_the_kernel():
    for y in POINTS:
        assert BASE.predictive(np.array([y]))[0] == pytest.approx(moments_of_kernel(y)[0], rel=1e-8)


def test_moments_of_the_prior_predictive():
    mean, variance = BASE.predictive_moments()
    exact = integrate.quad(lambda y: y**2 * BASE.predictive(np.array([y]))[0], 0, np.inf, limit=200)[0]
    assert (mean, variance) == (BASE.mu0, pytest.approx(2.0 * exact, rel=1e-6))
    assert NormalInverseGamma(0.0, 1.0, 1.0, 1.0).predictive_moments()[1] == np.inf


@pytest.mark.parametrize(("concentration", "discount"), [(1.0, 0.0), (5.0, 0.0), (1.0, 0.3), (0.5, 0.5)])
def test_prior_draws_have_the_exact_mean_and_variance_of_the_random_density(concentration, discount):
    """Var f_P(y) = (1 - d) / (alpha + 1) Var f(y | theta) under PY(d, alpha, G0), at every y."""
    draws, rng = 10_000, np.random.default_rng(11)
    nothing = np.full((draws, 1), np.nan)
    states = state_measures(nothing, {"mean": nothing, "variance": nothing}, BASE)
    measures = draw_measures(states, np.full(draws, concentration), discount, BASE, rng)
    values = measures.densities(POINTS, BASE)
    for column, y in enumerate(POINTS):
        mean, square = moments_of_kernel(y)
        variance = (1.0 - discount) / (concentration + 1.0) * (square - mean**2)
        sample = values[:, column]
        assert sample.mean() == pytest.approx(mean, abs=4.0 * np.sqrt(variance / draws))
        error = np.sqrt(np.var((sample - sample.mean()) ** 2) / draws)
        assert sample.var() == pytest.approx(variance, abs=4.0 * error + 1e-3 * variance)


def test_leftover_mass_is_spread_given_the_partition():
    """With k = 2 clusters, w_0 is spread by PY(d, alpha + 2 d): the variance of its density follows."""
    draws, d, alpha, w = 10_000, 0.25, 1.5, (0.3, 0.2)
    states = measures_of([[(w[0], -3.0, 1.0), (w[1], 3.0, 0.5)]])
    states = Measures(
        np.full(draws, 2),
        np.tile(states.weights, draws),
        np.tile(states.atoms, draws),
        np.full(draws, 0.5),
    )
    drawn = draw_measures(states, np.full(draws, alpha), d, BASE, np.random.default_rng(3))
    assert np.bincount(
        np.repeat(np.arange(draws), drawn.counts), drawn.weights
    ) + drawn.rest == pytest.approx(1.0)
    values = drawn.densities(POINTS, BASE)
    known = w[0] * stats.norm.pdf(POINTS, -3, 1) + w[1] * stats.norm.pdf(POINTS, 3, 0.5)
    for column, y in enumerate(POINTS):
        mean, square = moments_of_kernel(y)
        variance = 0.25 * (1.0 - d) / (alpha + 2 * d + 1.0) * (square - mean**2)
        sample = values[:, column]
        assert sample.mean() == pytest.approx(known[column] + 0.5 * mean, abs=4.0 * np.sqrt(variance / draws))
        error = np.sqrt(np.var((sample - sample.mean()) ** 2) / draws)
        assert sample.var() == pytest.approx(variance, abs=4.0 * error + 1e-3 * variance)


def test_breaking_stops_at_the_stick_limit_and_keeps_the_mean_exact():
    nothing = np.full((50, 1), np.nan)
    states = state_measures(nothing, {"mean": nothing, "variance": nothing}, BASE)
    drawn = draw_measures(states, np.full(50, 1e6), 0.0, BASE, np.random.default_rng(0))
    assert (drawn.counts == MAX_STICKS).all()
    assert drawn.rest == pytest.approx(1.0, abs=1e-3)
    assert drawn.densities(POINTS, BASE).mean(axis=0) == pytest.approx(BASE.predictive(POINTS), rel=5e-3)


def test_states_without_leftover_mass_get_no_atoms():
    states = measures_of([[(0.7, 0.0, 1.0), (0.3, 2.0, 1.0)]])
    assert draw_measures(states, np.ones(1), 0.0, BASE, np.random.default_rng(0)) is states


def test_densities_and_totals_of_known_mixtures():
    measures = measures_of([[(0.5, 0.0, 1.0), (0.3, 2.0, 0.1)], [(1.0, -1.0, 2.0)], [(0.25, 4.0, 3.0)]])
    empty = Measures(
        np.array([0, *measures.counts, 0]),
        measures.weights,
        measures.atoms,
        np.array([1.0, *measures.rest, 1.0]),
    )
    base = BASE.predictive(POINTS)
    exact = np.stack(
        [
            base,
            0.5 * stats.norm.pdf(POINTS) + 0.3 * stats.norm.pdf(POINTS, 2, 0.1) + 0.2 * base,
            stats.norm.pdf(POINTS, -1, 2),
            0.25 * stats.norm.pdf(POINTS, 4, 3) + 0.75 * base,
            base,
        ]
    )
    assert empty.densities(POINTS, BASE) == pytest.approx(exact, rel=1e-13)
    assert empty.total(POINTS, BASE) == pytest.approx(exact.sum(axis=0), rel=1e-13)
    assert empty.take(np.array([1, 3])).densities(POINTS, BASE) == pytest.approx(exact[[1, 3]], rel=1e-13)


def test_densities_do_not_depend_on_the_block_size(monkeypatch):
    rng = np.random.default_rng(2)
    parts = states_of_mixture(40, rng)
    components = {name: parts[name] for name in ("mean", "variance")}
    states = state_measures(parts["weights"], components, BASE)
    whole, total = states.densities(POINTS, BASE), states.total(POINTS, BASE)
    monkeypatch.setattr("dpmix.summary.random_measures._BLOCK", 1)
    assert np.array_equal(states.densities(POINTS, BASE), whole)
    assert states.total(POINTS, BASE) == pytest.approx(total, rel=1e-12)


def test_moments_of_known_mixtures():
    measures = measures_of([[(0.5, 0.0, 1.0), (0.5, 2.0, 2.0)], [(0.4, 1.0, 1.0)]])
    mean, sd = measures.moments(BASE)
    assert mean == pytest.approx([1.0, 0.4])
    assert sd[0] == pytest.approx(np.sqrt(0.5 * (1 + 0) + 0.5 * (4 + 4) - 1.0))
    assert sd[1] == pytest.approx(
        np.sqrt(0.4 * 2.0 + 0.6 * (BASE.predictive_moments()[1] + BASE.mu0**2) - 0.16)
    )
    heavy = NormalInverseGamma(0.0, 1.0, 0.8, 1.0)  # no variance: the mass on no atom is left out
    assert measures.moments(heavy)[0] == pytest.approx([1.0, 1.0])
    assert measures.moments(heavy)[1][1] == pytest.approx(1.0)


def test_bands_cover_as_their_level_says():
    """Draws with one component N(m, 1), m ~ N(0, 1): f(0) = phi(m), whose quantiles are known."""
    m = np.random.default_rng(5).standard_normal(40_000)
    measures = Measures(
        np.ones(m.size, dtype=int), np.ones(m.size), np.stack([m, np.ones(m.size)]), np.zeros(m.size)
    )
    lower, upper = bands(measures, np.array([0.0]), 0.9, BASE)
    tails = np.abs(stats.norm.ppf([0.025, 0.525]))  # |m| is at its 95% and 5% quantiles
    assert [lower[0], upper[0]] == pytest.approx(stats.norm.pdf(tails), abs=0.003)


@pytest.mark.parametrize(
    ("first", "second"), [((0.0, 1.0), (0.0, 1.0)), ((0.0, 1.0), (1.0, 1.0)), ((0.0, 1.0), (2.0, 3.0))]
)
def test_hellinger_of_two_normals(first, second):
    (m1, s1), (m2, s2) = first, second
    nodes = np.linspace(-40, 40, 4001)
    affinity = np.sqrt(2 * s1 * s2 / (s1**2 + s2**2)) * np.exp(-0.25 * (m1 - m2) ** 2 / (s1**2 + s2**2))
    found = hellinger(nodes, stats.norm.pdf(nodes, m1, s1), stats.norm.pdf(nodes, m2, s2))
    assert found**2 == pytest.approx(1.0 - affinity, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (0.5, 0.002), (30.0, 0.1), (0.0, 50.0)])
def test_distance_over_the_whole_line_against_quadrature(mean, sd, scale):
    """Narrow, far and wide posteriors, in any unit: nothing depends on a grid of the user's."""
    base = NormalInverseGamma(0.0, 0.5, 3.0, 3.0 * scale**2)
    mean, sd = mean * scale, sd * scale
    measures = measures_of([[(1.0, mean, sd)]])
    found, bias = distance_from_prior([measures], base, np.random.default_rng(0))

    def integrand(t: float) -> float:
        y = mean + sd * t
        return float(np.sqrt(stats.norm.pdf(t) / sd * base.predictive(np.array([y]))[0]) * sd)

    affinity = integrate.quad(integrand, -60, 60, limit=2000, points=[-5, 0, 5], epsabs=1e-12)[0]
    assert found**2 == pytest.approx(1.0 - affinity, abs=2e-4)
    assert bias == 0.0


def test_distance_is_zero_when_the_posterior_is_the_prior():
    nothing = np.full((10, 1), np.nan)
    states = state_measures(nothing, {"mean": nothing, "variance": nothing}, BASE)
    distance, bias = distance_from_prior([states, states], BASE, np.random.default_rng(0))
    assert distance == pytest.approx(0.0, abs=0.01)
    assert bias == 0.0


def test_bias_of_the_distance_is_what_monte_carlo_error_adds():
    """Few draws of components from the base measure: the mean density is the prior's, H^2 is all error."""
    rng, size = np.random.default_rng(8), 2000
    squares, biases = [], []
    for _ in range(12):
        batches = []
        for _ in range(8):
            ones = np.ones(size)
            batches.append(Measures(ones.astype(int), ones, BASE.draw(rng, size), 0.0 * ones))
        distance, bias = distance_from_prior(batches, BASE, rng)
        squares.append(distance**2)
        biases.append(bias)
    assert np.mean(squares) > 4e-5
    assert np.mean(biases) == pytest.approx(np.mean(squares), rel=0.2)


def test_nodes_increase_and_reach_both():
    nodes = nodes_for(measures_of([[(1.0, 500.0, 0.1)]]), BASE, np.random.default_rng(0))
    assert (np.diff(nodes) > 0).all()
    assert nodes[0] < -50
    assert nodes[-1] > 500.4


def test_spread_is_even_and_ends_with_the_last():
    assert spread(5, 9).tolist() == [0, 1, 2, 3, 4]
    assert spread(10, 4).tolist() == [2, 4, 7, 9]
    assert spread(10, 1).tolist() == [9]
    chosen = spread(100_000, 2_500)
    assert chosen.size == 2_500
    assert set(np.diff(chosen)) == {40}


def test_posterior_mean_of_a_file_is_the_mean_of_its_mixtures(tmp_path):
    rng = np.random.default_rng(4)
    chains = [states_of_mixture(1500, rng), states_of_mixture(1500, rng)]
    path = write_chains(tmp_path / "c.h5", chains)
    grid = np.linspace(-12, 12, 300)
    result = posterior_density(read_chains([path]), [grid], 0.95)
    exact = np.zeros(grid.size)
    for chain in chains:
        for w, m, v in zip(chain["weights"], chain["mean"], chain["variance"], strict=True):
            k = np.isfinite(w)
            exact += (w[k] * stats.norm.pdf(grid[:, None], m[k], np.sqrt(v[k]))).sum(axis=1)
            exact += (1.0 - w[k].sum()) * stats.t.pdf(
                grid, 2 * BASE.a, BASE.mu0, np.sqrt(BASE.b * (1 + 1 / BASE.lam) / BASE.a)
            )
    density = result.density
    assert density.mean == pytest.approx(exact / 3000, rel=1e-10)
    assert (density.lower <= density.mean).all()
    assert (density.mean <= density.upper).all()
    assert np.trapezoid(density.mean, grid) == pytest.approx(1.0, abs=0.01)
    # draws of P with their leftover spread have that same mean, within Monte Carlo error
    for name, values in result.series.items():
        if name.startswith("density["):
            y = float(name[8:-1])
            error = values.std() / np.sqrt(values.size)
            assert values.mean() == pytest.approx(np.interp(y, grid, density.mean), abs=4 * error + 1e-4)
    assert list(result.series) == ["mean", "sd", "density[-6]", "density[0]", "density[6]"]


def test_chains_and_stretches_do_not_share_random_numbers(tmp_path):
    """Chains in the same states still get draws of their own for the mass that no cluster holds."""
    chain = states_without_data(2100)
    spec = a_spec(sampler__iterations=3100)
    path = write_chains(tmp_path / "c.h5", [chain, chain], spec=spec)
    mean = posterior_density(read_chains([path]), [POINTS], 0.9).series["mean"]
    assert (mean[0] != mean[1]).all()
    assert np.unique(mean).size == mean.size


def test_bands_of_a_file_without_data_are_the_priors(tmp_path):
    """Without records P is a draw of its prior: the band at a point is that of prior draws made here."""
    draws = 4000
    spec = a_spec(sampler__iterations=1000 + draws, sampler__chains=1, model__concentration=2.0)
    chain = states_without_data(draws) | {"concentration": np.full(draws, 2.0)}
    path = write_chains(tmp_path / "c.h5", [chain], spec=spec)
    result = posterior_density(read_chains([path]), [POINTS], 0.8)
    rng = np.random.default_rng(99)
    reference = np.empty((draws, POINTS.size))
    for draw in range(draws):  # 60 sticks leave (2/3)^60 of the mass
        sticks = rng.beta(1.0, 2.0, 60)
        weights = sticks * np.cumprod([1.0, *(1.0 - sticks[:-1])])
        variance = 3.0 / rng.gamma(3.0, size=60)
        mean = np.sqrt(variance / 0.1) * rng.standard_normal(60)
        reference[draw] = (weights * stats.norm.pdf(POINTS[:, None], mean, np.sqrt(variance))).sum(axis=1)
    for column in range(POINTS.size):
        low = np.mean(reference[:, column] < result.density.lower[column])
        high = np.mean(reference[:, column] > result.density.upper[column])
        assert [low, high] == pytest.approx([0.1, 0.1], abs=4 * np.sqrt(2 * 0.1 * 0.9 / draws))


# ---- far from 0 for the spread of the records


FAR = 9_192_631_772.5


def exact_moments(weights, means, sds, rest=0.0, of_rest=(0.0, 0.0)):
    """Mean and sd of a mixture of normals and the rest in fractions, which lose nothing."""
    parts = [
        (Fraction(float(w)), Fraction(float(m)), Fraction(float(s)) ** 2)
        for w, m, s in zip(weights, means, sds, strict=True)
    ]
    parts.append((Fraction(rest), Fraction(of_rest[0]), Fraction(of_rest[1])))
    mass = sum(w for w, _, _ in parts)
    mean = sum(w * m for w, m, _ in parts) / mass
    return mean, math.sqrt(sum(w * (v + (m - mean) ** 2) for w, m, v in parts) / mass)


def test_moments_keep_their_digits_far_from_zero():
    """In hertz, on bounds 5 wide: squares about 0 would be 1e20, whose last digit is 16,384."""
    base = NormalInverseGamma(FAR, 0.16, 3.0, 0.5)
    means, sds = FAR + np.array([-0.25, 0.5, 1.25]), np.array([0.25, 0.5, 0.125])
    measures = measures_of([list(zip([0.5, 0.25, 0.125], means, sds, strict=True))])
    mean, sd = measures.moments(base)
    exact = exact_moments([0.5, 0.25, 0.125], means, sds, 0.125, base.predictive_moments())
    assert float(Fraction(float(mean[0])) - exact[0]) == pytest.approx(0.0, abs=4e-6)
    assert sd[0] == pytest.approx(exact[1], rel=1e-6)
    # where nothing lies at the prior predictive, as it has no variance
    mean, sd = measures.moments(NormalInverseGamma(FAR, 0.16, 0.9, 0.5))
    assert sd[0] == pytest.approx(exact_moments([0.5, 0.25, 0.125], means, sds)[1], rel=1e-6)


def test_moments_of_beta_kernels_keep_their_digits_far_from_zero():
    near, far = (BetaGamma(2.0, 0.5, 2.0, 0.5, lo=low, width=60.0) for low in (0.0, 1.7e12))
    atoms = near.draw(np.random.default_rng(4), 12)
    measures = Measures(np.array([5, 7]), np.full(12, 1.0 / 8.0), atoms, np.array([3.0 / 8.0, 1.0 / 8.0]))
    (mean, sd), (far_mean, far_sd) = measures.moments(near), measures.moments(far)
    assert far_sd == pytest.approx(sd, rel=1e-4)
    assert far_mean - 1.7e12 == pytest.approx(mean, abs=1e-2)


def test_a_summary_of_records_far_from_zero_is_that_of_the_same_near_it(tmp_path):
    """All but the place: mean, sd, what `fit` would keep, and the shares with their runs without noise."""
    found = []
    for place in (0.0, FAR):
        states = [states_of_mixture(80, np.random.default_rng(5)) for _ in range(2)]
        for chain in states:
            chain["mean"] = chain["mean"] + place
        bounds = [place - 10.0, place + 10.0]
        spec = a_spec(sampler__iterations=1080, sampler__chains=2)
        spec["mechanism"]["domain"] = bounds
        path = write_chains(
            tmp_path / f"{place:g}.h5",
            states,
            spec=spec,
            base=replace(BASE, mu0=BASE.mu0 + place),
            observed=place + np.linspace(-12.0, 12.0, 200),
            attrs={"mechanism": json.dumps({"kind": "laplace", "scale": [4.0], "domain": [bounds]})},
        )
        kept = record_quantities(path, [0.5], lambda: None)
        found.append((dpmix.summarize(path), kept.mean - place, kept.sd))
    (near, *kept_near), (far, *kept_far) = found
    near_rows, far_rows = ({row["parameter"]: row for row in one.rows()} for one in (near, far))
    assert far_rows["sd"]["mean"] == pytest.approx(near_rows["sd"]["mean"], rel=1e-5)
    assert far_rows["mean"]["mean"] - FAR == pytest.approx(near_rows["mean"]["mean"], abs=1e-5)
    assert far_rows["mean"]["sd"] == pytest.approx(near_rows["mean"]["sd"], rel=1e-4)
    assert kept_far[0] == pytest.approx(kept_near[0], abs=1e-5)
    assert kept_far[1] == pytest.approx(kept_near[1], rel=1e-4)
    shares = [one.to_json()["variance_shares"]["mean"] for one in (near, far)]
    assert shares[1] == pytest.approx(shares[0], abs=0.02)


# ---- spikes far narrower than the gap of two nodes, or of two points of the grid


def test_a_distance_of_spikes_is_not_that_of_equal_densities():
    """All mass at two places with an sd of 1e-9: the affinity is 0.3 sqrt(.7 phi-integral), all but 0."""
    spikes = [[(0.7, 0.5 + 1e-9 * i, 1e-9), (0.3, 2.0, 1e-6)] for i in range(8)]
    batches = [measures_of(spikes), measures_of(spikes)]
    assert distance_from_prior(batches, BASE, np.random.default_rng(1))[0] == pytest.approx(1.0, abs=0.005)
    # half of it is like the prior: H^2 = 1 - sqrt(1/2) but for what is within the spike
    half = [measures_of([[(0.5, 0.5, 1e-9)]]), measures_of([[(0.5, 0.5, 1e-9)]])]
    distance = distance_from_prior(half, BASE, np.random.default_rng(2))[0]
    assert distance**2 == pytest.approx(1.0 - math.sqrt(0.5), abs=0.03)


def test_a_column_that_is_constant_is_said_to_be_narrower_than_its_grid(tmp_path):
    states = [states_of_mixture(60, np.random.default_rng(8)) for _ in range(2)]
    for chain in states:
        chain["mean"] = np.where(np.isfinite(chain["mean"]), 3.0, np.nan)
        chain["variance"] = np.where(np.isfinite(chain["variance"]), 1e-20, np.nan)
        chain["weights"] = chain["weights"] / np.nansum(chain["weights"], axis=1, keepdims=True)
    for kind in ("none", "laplace"):
        noise = {} if kind == "none" else {"scale": [4.0]}
        attrs = {"mechanism": json.dumps({"kind": kind, "domain": [[-10.0, 10.0]], **noise})}
        summary = dpmix.summarize(write_chains(tmp_path / f"{kind}.h5", states, attrs=attrs))
        shares = summary.to_json()["variance_shares"]
        assert shares["density"] is None and shares["reason"] == "the grid does not show the density"
        assert shares["mean"] is not None
        text = " ".join(summary.to_text().split())
        assert "Density: narrower than the gaps of its grid of 200 points, or beyond it" in text
        assert summary.to_json()["density"]["hellinger_from_prior"] > 0.98
        assert "almost nothing" not in text
        assert "narrower than the gaps of its grid of 200 points" in short_page(summary, drawn=kind == "none")


def test_a_grid_shows_a_density_down_to_steps_of_about_its_sd():
    grid = np.linspace(-5.0, 5.0, 101)
    for sd, shown in ((0.1, True), (0.05, True), (0.02, False), (1e-6, False)):
        measures = measures_of([[(1.0, 0.03, sd)]])
        density = measures.densities(grid, BASE)[0]
        assert is_resolved(grid, density, measures, BASE) is shown
    part = grid[:60]  # so it does where only a part is asked for
    measures = measures_of([[(1.0, 0.0, 1.0)]])
    assert is_resolved(part, measures.densities(part, BASE)[0], measures, BASE)
    beyond = np.linspace(100.0, 105.0, 50)
    assert not is_resolved(beyond, measures.densities(beyond, BASE)[0], measures, BASE)
