"""The release check: p-values by brute force, laws of replicates against closed forms and quadrature."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from dpmix.kernels.normal.family import NormalInverseGamma
from dpmix.laws.additive import draw_noise, mean_of_laplace
from dpmix.laws.every import law_of
from dpmix.mechanisms.clamped_moments.curator import factors
from dpmix.mechanisms.wavelet.law import haar
from dpmix.models.dirichlet.meaning import LogMomentsReplicator, draw_log_shares
from dpmix.models.discrete.meaning import DiscreteMarginals, cell_probabilities
from dpmix.models.linear_regression.meaning import ClampedMomentsReplicator
from dpmix.models.meaning_base import Unavailable
from dpmix.models.multinomial.meaning import ReleasedPosterior
from dpmix.models.naive_bayes.meaning import NoisyCountsReplicator
from dpmix.run.chains_reader import Chains, read_chains
from dpmix.summary.check import mixture_replicates, release_check
from dpmix.summary.check.mixture_replicates import cell_masses, mixture_replicator
from dpmix.summary.check.rank_comparison import compare, places, two_sided
from dpmix.summary.check.record_likelihoods import log_likelihoods
from dpmix.summary.check.release_check import _in_words, check_release
from dpmix.summary.random_measures import Measures
from tests.helpers.chains_files import (
    BASE,
    Floats,
    a_spec,
    states_of_beta,
    states_of_normals,
    write_chains,
    write_kernel,
)
from tests.oracles import marginals

MEANS, SDS, WEIGHTS = np.array([-3.0, 2.0]), np.array([0.8, 1.5]), np.array([0.4, 0.6])


def two_components(draws: int) -> dict[str, Floats]:
    """States that all have the same P, with no mass left over."""
    return {
        "n_clusters": np.full(draws, 2.0),
        "weights": np.tile(WEIGHTS, (draws, 1)),
        "mean": np.tile(MEANS, (draws, 1)),
        "variance": np.tile(SDS**2, (draws, 1)),
    }


def fixed(
    path: Path, mechanism: dict[str, Any], observed: Floats, draws: int = 200, **constants: Any
) -> Chains:
    """Chains of `two_components` given a release."""
    n = len(observed)
    attrs = {"mechanism": json.dumps(mechanism), "n": n}
    if mechanism["kind"].endswith("histogram"):
        attrs |= {"trust": "global", "n": 500}
    spec = a_spec(sampler__iterations=1000 + draws, sampler__chains=1)
    found = read_chains(
        [
            write_chains(
                path / "c.h5",
                [two_components(draws)],
                spec=spec,
                observed=observed,
                attrs=attrs,
                constants=constants,
            )
        ]
    )
    assert isinstance(found, Chains)
    return found


def released_cdf(kind: str, scale: float, x: float) -> float:
    """Pr(z <= x) under `two_components`, by quadrature over the noise."""
    law = {"laplace": stats.laplace, "gaussian": stats.norm}[kind](scale=scale)

    def inside(e: float) -> float:
        return float(law.pdf(e) * (WEIGHTS * stats.norm.cdf((x - e - MEANS) / SDS)).sum())

    return sum(integrate.quad(inside, a, b, limit=200)[0] for a, b in ((-80.0, 0.0), (0.0, 80.0)))


def test_distances_leave_each_row_out() -> None:
    rng = np.random.default_rng(0)
    observed, replicates = rng.normal(size=4), rng.normal(size=(30, 4)) ** 3
    found = compare(observed, replicates)
    everything = np.vstack([observed, replicates])
    for row in range(31):
        others = np.delete(everything, row, axis=0)
        exact = np.abs(everything[row] - others.mean(axis=0)) / others.std(axis=0, ddof=1)
        np.testing.assert_allclose(found.distances[row], exact, rtol=1e-9)
    largest = found.distances.max(axis=1)
    assert found.p() == (largest >= largest[0]).sum() / 31
    below, above = (replicates <= observed).sum(0), (replicates >= observed).sum(0)
    np.testing.assert_allclose(
        two_sided(observed, replicates), np.minimum(1, 2 * (1 + np.minimum(below, above)) / 31)
    )


def test_entries_that_never_vary_count_only_where_they_differ() -> None:
    replicates = np.column_stack([np.full(50, 7.0), np.arange(50.0)])
    assert compare(np.array([7.0, 25.0]), replicates).p() > 0.5
    assert compare(np.array([7.5, 25.0]), replicates).p() == pytest.approx(1 / 51)


@pytest.mark.parametrize("shape", ["normal", "heavy", "whole"])
def test_p_is_uniform_where_the_release_is_one_more_replicate(shape: str) -> None:
    """It holds whatever the law of the entries: correlated, of heavy tails, or of few values."""
    rng = np.random.default_rng(3)
    values = []
    for _ in range(800):
        table = rng.normal(size=(40, 6)).cumsum(axis=1)
        if shape == "heavy":
            table = rng.standard_t(1.5, (40, 6)) + table
        if shape == "whole":
            table = np.round(table)
        values.append(compare(table[0], table[1:]).p())
    for level in (0.025, 0.1, 0.3, 0.6):
        share = np.mean(np.array(values) <= level)
        assert share < level + 3.5 * np.sqrt(level * (1 - level) / 800)
        if shape != "whole":
            assert share > level - 0.025 - 3.5 * np.sqrt(level * (1 - level) / 800)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_replicates_have_the_distribution_function_of_the_model(tmp_path: Path, kind: str) -> None:
    chains = fixed(
        tmp_path, {"kind": kind, "scale": [2.0], "domain": [[-3, 3]]}, np.zeros(500), noise_scale=2.0
    )
    curve = check_release(chains).curves[""]
    for at in (5, 50, 95):
        exact = released_cdf(kind, 2.0, float(curve.grid[at]))
        # 200 replicates of 500 records
        assert abs(curve.mean[at] - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 100_000)


def test_replicates_under_binomial_noise_have_the_probabilities_of_the_model(tmp_path: Path) -> None:
    mechanism = {"kind": "binomial", "scale": [], "trials": 5, "weight": 0.6, "domain": [[-4.0, 4.0]]}
    chains = fixed(tmp_path, mechanism, np.zeros(500))
    replicator = mixture_replicator(chains)
    wanted = places(chains, 200)
    replicator.prepare(wanted)
    drawn = np.concatenate([values for _, _, values in replicator.draws(wanted)])

    def inside(y: float, k: int) -> float:
        p = 0.5 + 0.6 * (np.clip((y + 4.0) / 8.0, 0.0, 1.0) - 0.5)
        return float(stats.binom.pmf(k, 5, p) * (WEIGHTS * stats.norm.pdf(y, MEANS, SDS)).sum())

    for k in range(6):
        parts = ((-15.0, -4.0), (-4.0, 0.0), (0.0, 4.0), (4.0, 15.0))
        exact = sum(integrate.quad(inside, a, b, args=(k,))[0] for a, b in parts)
        assert abs((drawn == k).mean() - exact) < 4.5 * np.sqrt(exact * (1 - exact) / drawn.size)


def test_noise_has_the_law_of_its_mechanism() -> None:
    rng = np.random.default_rng(4)
    r, size = np.exp(-1 / 1.7), 200_000
    whole = draw_noise("geometric", 1.7, size, rng)
    for e in (-3, -1, 0, 2):
        exact = (1 - r) / (1 + r) * r ** abs(e)
        assert abs((whole == e).mean() - exact) < 4.5 * np.sqrt(exact / size)
    assert stats.kstest(draw_noise("laplace", 1.7, size, rng), stats.laplace(scale=1.7).cdf).pvalue > 1e-4
    assert stats.kstest(draw_noise("gaussian", 1.7, size, rng), stats.norm(scale=1.7).cdf).pvalue > 1e-4
    means = mean_of_laplace(3, 1.7, size, rng)
    sums = draw_noise("laplace", 1.7, (size, 3), rng).mean(axis=1)
    assert stats.ks_2samp(means, sums).pvalue > 1e-4


def test_the_basis_of_a_wavelet_is_the_haar_functions() -> None:
    law = law_of({"kind": "wavelet", "levels": 3, "scale": [1.5], "domain": [[-6.0, 6.0]]})
    np.testing.assert_allclose(law.basis(), marginals.haar(3).T, rtol=1e-15)


def test_wavelets_are_compared_by_the_distribution_function_at_their_edges(tmp_path: Path) -> None:
    """Without noise it is exact; and a replicate drawn as a whole has the law of one drawn by counts."""
    mechanism = {"kind": "wavelet", "levels": 2, "scale": [1.5], "domain": [[-6.0, 6.0]]}
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 8, 300)
    chains = fixed(tmp_path, mechanism, haar(cells, 2))
    replicator = mixture_replicator(chains)
    shares = np.cumsum(np.bincount(cells, minlength=8))[:-1] / 300
    np.testing.assert_allclose(replicator.reduce(haar(cells, 2)), shares, atol=1e-12)
    wanted = places(chains, 200)
    replicator.prepare(wanted)
    short = np.stack([v for _, _, v in replicator.draws(wanted)])
    whole = np.stack([replicator.reduce(v) for _, _, v in replicator.draws(wanted, whole=True)])
    edges = np.linspace(-6.0, 6.0, 9)[1:-1]
    exact = (WEIGHTS * stats.norm.cdf((edges[:, None] - MEANS) / SDS)).sum(axis=1)
    for table in (short, whole):
        assert (np.abs(table.mean(axis=0) - exact) < 4.5 * table.std(axis=0) / np.sqrt(200)).all()
    ratio = short.var(axis=0) / whole.var(axis=0)
    assert ((ratio > 0.6) & (ratio < 1.6)).all()
    assert check_release(chains).statistic == "distribution function"


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "geometric"])
def test_histograms_are_replicated_with_their_noise(tmp_path: Path, noise: str) -> None:
    mechanism = {
        "kind": "perturbed_histogram",
        "bins": 4,
        "noise": noise,
        "scale": [3.0],
        "domain": [[-6.0, 6.0]],
    }
    edges = np.array([-3.0, 0.0, 3.0])
    below = (WEIGHTS * stats.norm.cdf((edges[:, None] - MEANS) / SDS)).sum(axis=1)
    shares = np.diff(np.concatenate([[0.0], below, [1.0]]))
    chains = fixed(tmp_path, mechanism, 500 * shares)
    replicator = mixture_replicator(chains)
    wanted = places(chains, 200)
    replicator.prepare(wanted)
    table = np.stack([v for _, _, v in replicator.draws(wanted)])
    r = np.exp(-1 / 3.0)
    variance = {"laplace": 18.0, "gaussian": 9.0, "geometric": 2 * r / (1 - r) ** 2}[noise]
    total = 500 * shares * (1 - shares) + variance
    assert (np.abs(table.mean(axis=0) - 500 * shares) < 4.5 * np.sqrt(total / 200)).all()
    assert (np.abs(table.var(axis=0) / total - 1) < 0.45).all()
    good, bad = check_release(chains), check_release(fixed(tmp_path, mechanism, 500 * shares[::-1]))
    assert good.overall is not None and good.overall > 0.9
    assert bad.suspect and len(bad.entries) == 4 == len(bad.p)  # type: ignore[arg-type]


def test_smoothed_histograms_are_replicated_by_their_draws(tmp_path: Path) -> None:
    mechanism = {
        "kind": "smoothed_histogram",
        "scale": [],
        "bins": 4,
        "draws": 60,
        "weight": 0.3,
        "domain": [[-6.0, 6.0]],
    }
    chains = fixed(tmp_path, mechanism, np.linspace(-5.9, 5.9, 60))
    replicator = mixture_replicator(chains)
    wanted = places(chains, 200)
    replicator.prepare(wanted)
    table = np.stack([replicator.reduce(v) for _, _, v in replicator.draws(wanted, whole=True)])
    edges = np.array([-3.0, 0.0, 3.0])
    below = (WEIGHTS * stats.norm.cdf((edges[:, None] - MEANS) / SDS)).sum(axis=1)
    shares = 0.7 * np.diff(np.concatenate([[0.0], below, [1.0]])) + 0.3 / 4
    assert (table.sum(axis=1) == 60).all()
    assert (np.abs(table.mean(axis=0) - 60 * shares) < 4.5 * table.std(axis=0) / np.sqrt(200)).all()


def stub(
    mechanism: dict[str, Any], n: int, observed: Floats, parameters: dict[str, Floats], **more: Any
) -> Any:
    """Chains of one draw."""
    stored = [SimpleNamespace(name=name) for name in parameters]
    return SimpleNamespace(
        mechanism=law_of(mechanism),
        n=n,
        observed=observed,
        stated=lambda section: more.get("spec", {}).get(section, {}),
        parameters=stored,
        read=lambda stored: parameters[stored.name][None, None],
    )


def table_of(replicator: Any, size: int = 400) -> Floats:
    replicator.prepare([(0, np.array([0]))])
    rng = np.random.default_rng(7)
    return np.stack([replicator.replicate(0, 0, rng) for _ in range(size)])


def near(table: Floats, exact: Floats) -> bool:
    return bool((np.abs(table.mean(axis=0) - exact) < 4.5 * table.std(axis=0) / np.sqrt(len(table))).all())


def test_noisy_counts_are_replicated_by_feature_class_and_level() -> None:
    mechanism = {"kind": "noisy_counts", "levels": [2, 3], "classes": 2, "noise": "laplace", "scale": [2.0]}
    p, first = np.array([0.3, 0.7]), np.array([[0.2, 0.8], [0.5, 0.5]])
    second = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    found = NoisyCountsReplicator(
        stub(mechanism, 100, np.zeros(10), {"p": p, "p_feature_1": first, "p_feature_2": second})
    )
    exact = 100 * np.concatenate([(p[:, None] * first).ravel(), (p[:, None] * second).ravel()])
    table = table_of(found)
    assert near(table, exact)
    assert (np.abs(table.var(axis=0) / (exact * (1 - exact / 100) + 8.0) - 1) < 0.35).all()
    assert found.names[0] == "feature_1 = 1, class = 1" and len(found.names) == 10


def test_clamped_moments_are_those_of_the_mechanism() -> None:
    """Bounds cut a good part of the records; sums against quadrature over x and y."""
    bounds = [[0.0, 2.0], [-1.0, 3.0]]
    mechanism = {"kind": "clamped_moments", "bounds": bounds, "noise": "laplace", "scale": [1.0]}
    parameters = {"beta": np.array([0.5, 1.0]), "sigma2": np.array(1.44), "x_mean": np.array([1.0])}
    spec = {"model": {"x_cov": [[0.64]]}}
    found = ClampedMomentsReplicator(stub(mechanism, 50, np.zeros(5), parameters, spec=spec))
    nodes, weights = np.polynomial.hermite_e.hermegauss(180)
    weights = weights / weights.sum()
    x = 1.0 + 0.8 * nodes
    exact = np.zeros(5)
    for (at, wx), (e, wy) in product(zip(x, weights, strict=True), zip(nodes, weights, strict=True)):
        u = np.clip(at - 1.0, -1, 1)
        v = np.clip((0.5 + at + 1.2 * e + 1.0) / 2.0 - 1.0, -1, 1)
        row = np.array([1.0, u, v])
        exact += wx * wy * np.array([row[i] * row[j] for i, j in factors(2)])
    assert near(table_of(found), 50 * exact)
    assert found.names == ["y", "x1 y", "y y", "x1", "x1 x1"]


def test_log_moments_are_replicated_with_the_scores_of_their_thresholds() -> None:
    alpha = np.array([0.6, 2.0, 1.2])
    mechanism = {
        "kind": "log_moments",
        "components": 3,
        "parts": [40, 60],
        "scale": [0.05, 0.02],
        "threshold": 0.05,
        "thresholds": [0.2, 0.05],
        "epsilon2": 0.5,
        "scores": [3.0, 20.0],
    }
    found = LogMomentsReplicator(stub(mechanism, 100, np.zeros((6, 1)), {"alpha": alpha}))
    assert found.reduce(np.zeros((6, 1))).size == 8 and found.names[-1] == "score of 0.05"
    exact = []
    for j in range(3):
        law = stats.beta(alpha[j], alpha.sum() - alpha[j])
        rest = integrate.quad(lambda x, law=law: np.log(x) * law.pdf(x), 0.05, 1.0)[0]
        exact.append(np.log(0.05) * law.cdf(0.05) + rest)
    records = np.exp(draw_log_shares(alpha, 400_000, np.random.default_rng(1)))
    np.testing.assert_allclose(records.mean(axis=0), alpha / alpha.sum(), atol=3e-3)
    least = records.min(axis=1)
    scores = 100 * np.array([(least >= 0.2).mean(), ((least >= 0.05) & (least < 0.2)).mean()])
    table = table_of(found, 1000)
    assert near(table, np.concatenate([exact, exact, scores]))
    r = np.exp(-0.5 / 2)  # the parameter of the noise on scores, as the mechanism has it
    spread = scores * (1 - scores / 100) + 2 * r / (1 - r) ** 2
    assert (np.abs(table[:, -2:].var(axis=0) / spread - 1) < 0.25).all()
    own = np.array([0.05, 0.02])[:, None] ** 2 * 2.0  # of the means
    assert (table[:, :6].var(axis=0).reshape(2, 3) > 0.8 * own).all()


def test_masses_between_points_follow_a_distribution_function() -> None:
    grid, cdf = np.linspace(0, 1, 5), np.array([0.1, 0.2, 0.6, 0.9, 1.0])
    np.testing.assert_allclose(cell_probabilities(grid, cdf, np.array([0.0, 0.5, 1.0])), [0.6, 0.4])
    np.testing.assert_allclose(cell_probabilities(grid, cdf, np.array([0.0, 0.125, 1.0])), [0.15, 0.85])


def test_cell_masses_keep_their_digits_in_both_tails() -> None:
    measure = Measures(np.array([1]), np.ones(1), np.array([[0.0], [1.0]]), np.zeros(1))
    edges = np.array([-30.0, -20.0, 20.0, 30.0])
    found = cell_masses(measure, BASE, edges)[0]
    assert found[1] == pytest.approx(stats.norm.cdf(-20.0), rel=1e-8)
    assert found[3] == pytest.approx(stats.norm.sf(20.0), rel=1e-8)
    assert found.sum() == pytest.approx(1.0)


def test_log_likelihoods_of_laplace_noise_are_those_of_quadrature() -> None:
    laplace = law_of({"kind": "laplace", "scale": [1.0]})
    for mean, sd, scale in product((0.0, 3.0), (0.05, 1.0, 30.0), (0.5, 4.0)):
        for z in (-7.0, 0.1, 25.0):
            points = sorted({z, mean, mean - 8 * sd, mean + 8 * sd})

            def inside(
                y: float, z: float = z, mean: float = mean, sd: float = sd, scale: float = scale
            ) -> float:
                return float(stats.laplace.pdf(z, y, scale) * stats.norm.pdf(y, mean, sd))

            parts = zip([mean - 40 * sd, *points], [*points, mean + 40 * sd], strict=True)
            exact = sum(integrate.quad(inside, min(a, b), max(a, b), limit=200)[0] for a, b in parts if a < b)
            found = laplace.log_marginal(np.array([z]), np.array(mean), np.array(sd), scale)
            assert found[0] == pytest.approx(np.log(exact), abs=1e-6)


def test_log_likelihoods_add_components_and_what_is_left_over(tmp_path: Path) -> None:
    z = np.linspace(-12.0, 12.0, 30)
    mechanism = {"kind": "gaussian", "scale": [1.0], "domain": [[-10, 10]]}
    states = two_components(120)
    states["weights"] = states["weights"] * 0.9
    path = write_chains(
        tmp_path / "c.h5",
        [states],
        spec=a_spec(sampler__iterations=1120, sampler__chains=1),
        observed=z,
        attrs={"mechanism": json.dumps(mechanism)},
        constants={"noise_scale": 1.0},
    )
    chains = read_chains([path])
    found = log_likelihoods(chains, places(chains, 50))
    assert found.shape == (1, 50, 30) and (found == found[:, :1]).all()
    wide = np.sqrt(SDS**2 + 1.0)
    parts = (0.9 * WEIGHTS * stats.norm.pdf(z[:, None], MEANS, wide)).sum(axis=1)
    prior = NormalInverseGamma(BASE.mu0, BASE.lam, BASE.a, BASE.b)
    y = np.linspace(-80.0, 80.0, 40_001)
    g0 = integrate.simpson(prior.predictive(y)[None] * stats.norm.pdf(z[:, None] - y[None]), x=y, axis=1)
    np.testing.assert_allclose(found[0, 0], np.log(parts + 0.1 * g0), atol=0.003)


def test_log_likelihoods_by_cells_are_those_of_quadrature(tmp_path: Path) -> None:
    z = np.array([0.0, 2.0, 5.0])
    mechanism = {"kind": "binomial", "scale": [], "trials": 5, "weight": 0.6, "domain": [[-4.0, 4.0]]}
    chains = fixed(tmp_path, mechanism, z, draws=120)
    found = log_likelihoods(chains, places(chains, 3))[0, 0]

    def inside(y: float, k: float) -> float:
        p = 0.5 + 0.6 * (np.clip((y + 4.0) / 8.0, 0.0, 1.0) - 0.5)
        return float(stats.binom.pmf(k, 5, p) * (WEIGHTS * stats.norm.pdf(y, MEANS, SDS)).sum())

    for value, k in zip(found, z, strict=True):
        parts = ((-20.0, -4.0), (-4.0, 0.0), (0.0, 4.0), (4.0, 20.0))
        exact = sum(integrate.quad(inside, a, b, args=(k,))[0] for a, b in parts)
        assert value == pytest.approx(np.log(exact), abs=2e-6)
    mechanism = {"kind": "wavelet", "levels": 1, "scale": [1.5], "domain": [[-6.0, 6.0]]}
    z = np.random.default_rng(2).normal(size=(4, 3))
    chains = fixed(tmp_path, mechanism, z, draws=120)
    found = log_likelihoods(chains, places(chains, 3))[0, 0]
    below = (WEIGHTS * stats.norm.cdf((np.array([-3.0, 0.0, 3.0])[:, None] - MEANS) / SDS)).sum(axis=1)
    masses = np.diff(np.concatenate([[0.0], below, [1.0]]))
    given = stats.laplace.pdf(z[:, None, :], haar(np.arange(4), 1)[None], 1.5).prod(axis=2)
    np.testing.assert_allclose(found, np.log(given @ masses), rtol=1e-10)


def test_square_waves_are_replicated_and_weighed_by_their_table(tmp_path: Path) -> None:
    mechanism = {
        "kind": "square_wave",
        "cells": 6,
        "reach": 1,
        "ratio": "9/2",
        "scale": [],
        "domain": [[-4.0, 4.0]],
    }
    chains = fixed(tmp_path, mechanism, np.tile(np.arange(8.0), 60))
    edges = np.linspace(-4.0, 4.0, 7)[1:-1]
    below = (WEIGHTS * stats.norm.cdf((edges[:, None] - MEANS) / SDS)).sum(axis=1)
    masses = np.diff(np.concatenate([[0.0], below, [1.0]]))
    table = np.array([[4.5 if c <= j <= c + 2 else 1.0 for c in range(6)] for j in range(8)]) / (3 * 4.5 + 5)
    exact = table @ masses
    found = log_likelihoods(chains, places(chains, 3))[0, 0]
    np.testing.assert_allclose(found[:8], np.log(exact), rtol=1e-10)
    replicator = mixture_replicator(chains)
    wanted = places(chains, 200)
    replicator.prepare(wanted)
    drawn = np.concatenate([values.ravel() for _, _, values in replicator.draws(wanted)])
    for output in range(8):
        error = np.sqrt(exact[output] * (1 - exact[output]) / drawn.size)
        assert abs((drawn == output).mean() - exact[output]) < 4.5 * error


def test_several_columns_and_beta_kernels_are_checked(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = write_kernel(tmp_path / "m.h5", "multivariate", [states_of_normals(150, rng)])
    chains = read_chains([path])
    found = check_release(chains)
    assert (
        set(found.curves) == {"height", "weight/kg"}
        and found.entries[-1].name == "correlation[height,weight/kg]"
    )
    assert isinstance(found.p, list) and len(found.p) == len(found.entries)
    logs = log_likelihoods(chains, places(chains, 2))
    assert np.isfinite(logs).all()
    path = write_kernel(tmp_path / "b.h5", "beta", [states_of_beta(150, rng)], constants={"noise_scale": 1.5})
    chains = read_chains([path])
    assert isinstance(chains, Chains)
    assert check_release(chains).overall is not None
    # against quadrature of one state's own mixture
    states = next(iter(chains.blocks(1)))
    there = np.isfinite(states.weights[0])
    a, b, w = (v[0][there] for v in (states.parameters["a"], states.parameters["b"], states.weights))
    low, wide = chains.constants["domain_lo"], chains.constants["domain_hi"] - chains.constants["domain_lo"]
    z = chains.observed[:3]
    found_first = log_likelihoods(chains, [(0, np.array([0]))])[0, 0, :3]
    u = (np.arange(200_000) + 0.5) / 200_000
    density = (w[:, None] * stats.beta.pdf(u, a[:, None], b[:, None])).sum(axis=0)
    exact = [(density * stats.norm.pdf(v, low + wide * u, 1.5)).mean() for v in z]
    rest = 1.0 - w.sum()  # on the prior predictive
    assert (np.exp(found_first) >= np.array(exact) * 0.999).all()
    assert (np.exp(found_first) <= np.array(exact) * 1.001 + rest * stats.norm.pdf(0, 0, 1.5)).all()


def test_piles_are_in_their_column() -> None:
    piles = {("height", 163.8): 1.0, ("height", 170.0): 0.9, ("weight/kg", 27.23): 0.59}
    share, words = _in_words(piles)
    assert share == 1.0
    assert words.endswith(
        "from about 59% of them (at weight/kg = 27.23); at height = 163.80 the noise hides any."
    )


def test_what_does_not_factorize_is_said(tmp_path: Path) -> None:
    mechanism = {
        "kind": "perturbed_histogram",
        "bins": 4,
        "noise": "laplace",
        "scale": [3.0],
        "domain": [[-6.0, 6.0]],
    }
    chains = fixed(tmp_path, mechanism, np.full(4, 125.0))
    with pytest.raises(Unavailable, match="perturbed_histogram does not factorize"):
        log_likelihoods(chains, places(chains, 3))
    grouped = mechanism | {"groups": {"sex": ["a", "b"]}}
    reason = check_release(fixed(tmp_path, grouped, np.full(8, 62.0))).reason
    assert "groups" in reason


def many_records(n: int = 300_000) -> Floats:
    """Draw records under `two_components`."""
    rng = np.random.default_rng(5)
    which = rng.random(n) < WEIGHTS[0]
    return np.where(which, rng.normal(MEANS[0], SDS[0], n), rng.normal(MEANS[1], SDS[1], n))


def test_many_records_are_checked_by_their_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As their tally is: ten million would take minutes to draw one by one."""
    few = mixture_replicates.draw_records

    def draw(measure: Any, source: Any, n: int, rng: np.random.Generator) -> Floats:
        assert n <= 5_000
        return few(measure, source, n, rng)

    monkeypatch.setattr(mixture_replicates, "draw_records", draw)
    mechanism = {"kind": "laplace", "scale": [2.0], "domain": [[-10, 10]]}
    y = many_records()
    z = y + np.random.default_rng(6).laplace(0.0, 2.0, y.size)
    found = check_release(fixed(tmp_path, mechanism, z, noise_scale=2.0))
    assert found.replicates == 200 and found.overall is not None and found.overall > 0.02
    assert check_release(fixed(tmp_path, mechanism, 1.01 * z, noise_scale=2.0)).suspect


def test_a_large_release_without_cells_is_checked_by_fewer_replicates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_check, "_NUMBERS", 5e6)
    y = many_records(50_000)
    found = check_release(fixed(tmp_path, {"kind": "none"}, y))
    assert found.replicates == 100 and found.overall is not None and found.overall > 0.02
    assert check_release(fixed(tmp_path, {"kind": "none"}, 1.02 * y)).suspect


def test_synthetic_records_are_replicated_through_their_generator() -> None:
    """Shares of a Dirichlet-multinomial given records drawn from P, and of noisy counts on a grid."""
    p = np.array([0.2, 0.5, 0.3])
    mechanism = {
        "kind": "synthetic",
        "generator": "dirichlet_multinomial",
        "columns": [{"name": "x", "categories": ["a", "b", "c"]}],
        "bins": [3],
        "concentration": 4.0,
    }
    chains = stub(mechanism, 50, np.zeros((30, 1)), {"probability": p})
    label = {"title": "probability", "role": "shares", "column": "", "dims": ("category",)}
    vars(chains.parameters[0]).update(label, coords={"category": np.array(["a", "b", "c"])})
    chains.attrs = {}
    table = table_of(DiscreteMarginals(chains), 2000)
    exact = (50 * p + 4.0) / 62.0
    assert near(table, exact)
    # the law of total variance: urn given counts, counts given P
    total = exact * (1 - exact) / 30 * (1 + 29 / 63) + (1 - 1 / 30) * 62 / 63 * 50 * p * (1 - p) / 62**2
    assert (np.abs(table.var(axis=0) / total - 1) < 0.15).all()
    step = np.array([0.0, 0.5, 1.0])
    np.testing.assert_allclose(
        cell_probabilities(step, np.array([0.3, 0.4, 1.0]), step + 0.25, steps=True), [0.4, 0.6]
    )


def test_released_posteriors_are_replicated_with_their_noise() -> None:
    mechanism = {
        "kind": "posterior",
        "method": "geometric",
        "noise": "geometric",
        "prior": [1.0, 1.0, 1.0],
        "n": 40,
        "scale": [2.0],
        "noisy_counts": [10, 12, 17],
    }
    p = np.array([0.2, 0.5, 0.3])
    chains = stub(mechanism, 40, np.array([[11.0], [13.0], [18.0]]), {"p": p})
    vars(chains.parameters[0]).update(dims=("category",), coords={"category": np.arange(1, 4)})
    found = ReleasedPosterior(chains)
    table = table_of(found, 1000)
    r = np.exp(-0.5)
    assert near(table, 40 * p)
    assert (np.abs(table.var(axis=0) / (40 * p * (1 - p) + 2 * r / (1 - r) ** 2) - 1) < 0.2).all()
    np.testing.assert_array_equal(found.reduce(chains.observed), [10, 12, 17])
    whole = found.whole(0, 0, np.random.default_rng(1))
    assert whole.shape == (3, 1) and whole.sum() == pytest.approx(43.0) and (whole >= 1.0).all()
