"""Quantiles, tails, distribution function and Gini coefficient of mixtures, against closed forms."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from scipy import integrate, optimize, special, stats

import dpmix
from dpmix.errors import DataError, SpecError
from dpmix.kernels.beta.family import BetaGamma
from dpmix.kernels.layout import Family, Floats
from dpmix.kernels.normal.family import NormalInverseGamma, TruncatedNormalInverseGamma
from dpmix.laws.additive import Noisy
from dpmix.laws.every import expect, law_of
from dpmix.numerics.in_words import figures
from dpmix.store.h5 import Group
from dpmix.summary.density import fullest_shares, posterior_density
from dpmix.summary.quantities import (
    HiddenPile,
    Wanted,
    cdf,
    gini,
    hidden_pile,
    most_piled,
    outside,
    quantiles,
)
from dpmix.summary.random_measures import Measures, draw_measures
from tests.helpers.chains_files import (
    BASE,
    a_spec,
    states_of_beta,
    states_of_mixture,
    states_of_normals,
    write_chains,
    write_kernel,
)

BETA = BetaGamma(2.0, 0.2, 2.0, 0.2, lo=-1.0, width=4.0)
TRUNCATED = TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0, 1.5**2)
LEVELS = (0.001, 0.25, 0.5, 0.75, 0.99)


def single(mean: float, sd: float) -> Measures:
    return Measures(np.array([1]), np.ones(1), np.array([[mean], [sd]]), np.zeros(1))


def several(draws: list[tuple[list[float], list[tuple[float, float]]]]) -> Measures:
    """Measures of these weights and atoms; what the weights leave is on the prior predictive."""
    weights = [weight for these, _ in draws for weight in these]
    atoms = np.array([atom for _, these in draws for atom in these]).reshape(-1, 2).T
    rest = np.array([1.0 - sum(these) for these, _ in draws])
    return Measures(np.array([len(these) for these, _ in draws]), np.array(weights), atoms, rest)


def test_one_normal_component_has_the_quantities_of_the_normal() -> None:
    measures, law = single(3.0, 0.5), stats.norm(3.0, 0.5)
    for level in LEVELS:
        assert quantiles(measures, BASE, level)[0] == pytest.approx(law.ppf(level), rel=1e-14)
    y = np.array([18.0])  # 30 standard deviations up: the tail keeps its digits
    assert cdf(measures, BASE, y, upper=True)[0] == pytest.approx(law.sf(18.0), rel=1e-10)
    assert cdf(measures, BASE, np.array([2.5]))[0] == pytest.approx(law.cdf(2.5), rel=1e-14)
    assert outside(measures, BASE, 2.0, 3.5)[0] == pytest.approx(law.cdf(2.0) + law.sf(3.5), rel=1e-13)


MIXTURES = several(
    [
        ([0.5, 0.5], [(-4.0, 0.1), (4.0, 0.1)]),  # nothing between, where the median is
        ([0.5 + 1e-9, 0.5 - 1e-9], [(-4.0, 0.01), (4.0, 0.01)]),
        ([0.999, 0.001], [(0.0, 1.0), (300.0, 1e-3)]),
        ([0.7, 0.2], [(1.0, 2.0), (-3.0, 0.5)]),  # and 0.1 on the prior predictive
        ([], []),
        ([0.2, 0.3, 0.5], [(0.0, 1e-6), (0.0, 1.0), (0.0, 50.0)]),
    ]
)


@pytest.mark.parametrize("level", LEVELS)
def test_quantiles_of_normal_mixtures_solve_for_their_level(level: float) -> None:
    found = quantiles(MIXTURES, BASE, level)
    scale = np.sqrt(BASE.b * (BASE.lam + 1.0) / (BASE.a * BASE.lam))
    prior = stats.t(2.0 * BASE.a, BASE.mu0, scale)
    start = 0
    for draw, (count, rest) in enumerate(zip(MIXTURES.counts, MIXTURES.rest, strict=True)):
        w, (m, s) = MIXTURES.weights[start : start + count], MIXTURES.atoms[:, start : start + count]
        start += count

        def whole(x: float, w: Floats = w, m: Floats = m, s: Floats = s, rest: float = float(rest)) -> float:
            return float((w * stats.norm.cdf(x, m, s)).sum() + rest * prior.cdf(x))

        assert whole(found[draw]) == pytest.approx(level, abs=1e-8)
        if not (draw == 0 and level == 0.5):  # where a whole interval has the median
            exact = optimize.brentq(lambda x, f=whole: f(x) - level, -1e3, 1e3, xtol=1e-13, rtol=1e-15)
            assert found[draw] == pytest.approx(exact, abs=1e-7)


def test_quantiles_of_beta_mixtures_of_extreme_shapes() -> None:
    measures = several(
        [
            ([1.0], [(0.05, 0.05)]),
            ([0.6, 0.4], [(2000.0, 3000.0), (1.5, 0.3)]),
            ([0.9], [(3.0, 8.0)]),
            ([0.5, 0.5], [(1e-3, 50.0), (50.0, 1e-3)]),
        ]
    )
    for level in (0.25, 0.5, 0.75):
        found = quantiles(measures, BETA, level)
        assert ((found >= BETA.lo) & (found <= BETA.lo + BETA.width)).all()
        # at 1e-10 of the width from an end, where a shape of 0.05 puts much mass, F is that much less exact
        assert cdf(measures, BETA, found)[:3] == pytest.approx(level, abs=1e-6)
    law = stats.beta(3.0, 8.0, loc=BETA.lo, scale=BETA.width)
    alone = several([([1.0], [(3.0, 8.0)])])
    assert quantiles(alone, BETA, 0.3)[0] == pytest.approx(law.ppf(0.3), rel=1e-8)
    y = np.array([2.999])
    assert cdf(alone, BETA, y, upper=True)[0] == pytest.approx(law.sf(2.999), rel=1e-10)


@pytest.mark.parametrize("family", [BASE, TRUNCATED, NormalInverseGamma(5.0, 0.16, 3.0, 8.0)])
def test_the_prior_predictive_is_integrated(family: Family) -> None:
    for y in (-0.9, 0.3, 2.5):
        exact = integrate.quad(lambda x: float(family.predictive(np.array([x]))[0]), -np.inf, y)[0]
        assert family.predictive_cdf(np.array([y]))[0] == pytest.approx(exact, abs=5e-4)
    assert family.predictive_cdf(np.array([np.inf]))[0] == pytest.approx(1.0)


def test_the_prior_predictive_of_beta_kernels_is_integrated() -> None:
    """Against the average of the kernels' distribution functions over quantiles of their shapes."""
    levels = (np.arange(400) + 0.5) / 400
    a, b = np.meshgrid(
        stats.gamma(BETA.a_shape, scale=1.0 / BETA.a_rate).ppf(levels),
        stats.gamma(BETA.b_shape, scale=1.0 / BETA.b_rate).ppf(levels),
    )
    for y in (-0.9, 0.3, 2.5):
        exact = stats.beta.cdf((y - BETA.lo) / BETA.width, a, b).mean()
        assert BETA.predictive_cdf(np.array([y]))[0] == pytest.approx(exact, abs=5e-4)
    ends = np.array([BETA.lo, BETA.lo + BETA.width])
    assert BETA.predictive_cdf(ends).tolist() == [0.0, 1.0]


def test_gini_of_a_clamped_normal_and_of_a_beta() -> None:
    for mean, sd, low, high in ((3.0, 1.0, 0.0, 10.0), (1.0, 4.0, 0.0, 8.0), (5.0, 0.2, 2.0, 9.0)):
        survival = stats.norm(mean, sd).sf
        one = low + integrate.quad(survival, low, high)[0]
        two = low + integrate.quad(lambda y, s=survival: s(y) ** 2, low, high)[0]
        assert gini(single(mean, sd), BASE, low, high)[0] == pytest.approx(1.0 - two / one, abs=1e-6)
    unit = BetaGamma(2.0, 0.2, 2.0, 0.2, lo=0.0, width=1.0)
    uniform = several([([1.0], [(1.0, 1.0)])])
    assert gini(uniform, unit, 0.0, 1.0)[0] == pytest.approx(1.0 / 3.0, abs=1e-9)
    assert gini(single(-50.0, 1.0), BASE, 0.0, 10.0)[0] == 0.0  # all at 0


@pytest.mark.parametrize("share", [0.1, 3e-3, 1e-3, 1e-5, 1e-9])
def test_gini_where_records_take_a_small_part_of_the_bounds(share: float) -> None:
    """A normal has sd/(sqrt(pi) mean), and a beta a ratio of beta functions."""
    sd = 1e6 * share
    for mean in (5e5, 0.27e6, 0.27e6 + 0.3 * sd, 768_912.3):
        if mean > 9.0 * sd:
            found = gini(single(mean, sd), BASE, 0.0, 1e7)[0]
            assert found == pytest.approx(sd / (math.sqrt(math.pi) * mean), rel=1e-6)
    two = several([([0.5, 0.5], [(2e5, sd), (8e5, sd)])])
    if share < 0.01:  # the two do not overlap
        exact = (6e5 / 4.0 + sd / math.sqrt(math.pi) / 2.0) / 5e5
        assert gini(two, BASE, 0.0, 1e7)[0] == pytest.approx(exact, rel=1e-6)
    beta = several([([1.0], [(2.0 / share, 6.0 / share)])])
    a, b, unit = 2.0 / share, 6.0 / share, BetaGamma(2.0, 0.2, 2.0, 0.2, lo=0.0, width=4.0)
    if share > 1e-7:
        log = special.betaln(2.0 * a, 2.0 * b) - 2.0 * special.betaln(a, b)
        assert gini(beta, unit, 0.0, 4.0)[0] == pytest.approx(2.0 / a * math.exp(log), rel=1e-5)


def test_gini_of_draws_that_differ() -> None:
    """Each draw has intervals of its own, whatever the others are."""
    parts = [
        ([0.3, 0.7], [(1.0, 0.01), (7.0, 2.0)]),
        ([1.0], [(5.0, 1e-4)]),
        ([0.6, 0.4], [(2.0, 1.0), (2.1, 3.0)]),
    ]
    together = gini(several(parts), BASE, 0.0, 10.0)
    for (weights, atoms), found in zip(parts, together, strict=True):
        own = several([(weights, atoms)])
        assert gini(own, BASE, 0.0, 10.0)[0] == pytest.approx(found, rel=1e-12)

        def survival(y: float, own: Measures = own) -> float:
            return float(cdf(own, BASE, np.array([y]), upper=True)[0])

        ends = [mean + k * sd for mean, sd in atoms for k in (-6, -1, 0, 1, 6)]
        cuts = sorted({0.0, 10.0, *np.clip(ends, 0.0, 10.0).tolist()})
        first, second = (
            sum(integrate.quad(f, *pair)[0] for pair in itertools.pairwise(cuts))
            for f in (survival, lambda y, s=survival: s(y) * (1.0 - s(y)))
        )
        assert found == pytest.approx(second / first, rel=1e-6)


def test_quantities_against_records_drawn_from_p() -> None:
    """P with its sticks: what is computed is what a million records from it show."""
    rng = np.random.default_rng(8)
    states = several([([0.4, 0.3], [(-2.0, 0.5), (3.0, 1.0)])] * 2)
    measures = draw_measures(states, np.full(2, 3.0), 0.2, BASE, rng).take(np.array([0]))
    size = 1_000_000
    weights = np.append(measures.weights, measures.rest)
    chosen = rng.choice(weights.size, size, p=weights / weights.sum())
    new = chosen == weights.size - 1
    atoms = np.empty((2, size))
    atoms[:, ~new] = measures.atoms[:, chosen[~new]]
    atoms[:, new] = BASE.draw(rng, int(new.sum()))
    records = np.sort(BASE.sample(atoms, rng))
    for level in (0.05, 0.5, 0.9):
        x = quantiles(measures, BASE, level)[0]
        assert np.searchsorted(records, x) / size == pytest.approx(level, abs=0.0025)
    assert (records > 2.0).mean() == pytest.approx(
        cdf(measures, BASE, np.full(1, 2.0), upper=True)[0], abs=0.0025
    )
    cut = np.clip(records, 0.0, 4.0)
    spread = (2.0 * np.arange(1, size + 1) - size - 1.0) @ cut / (size * cut.sum())
    assert gini(measures, BASE, 0.0, 4.0)[0] == pytest.approx(spread, abs=0.004)


def test_numbers_are_named_with_the_digits_that_they_have() -> None:
    assert figures((0.25, 0.5, 20.0)) == ["0.25", "0.5", "20"]
    assert figures((1234567.0, 20.0)) == ["1234567", "20"]
    assert figures((1.0 / 3.0,)) == ["0.333333"]
    assert figures((1.0 / 3.0, 1.0 / 3.0 + 1e-9)) == ["0.333333333", "0.333333334"]


# ---- from chains files


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    states = [states_of_mixture(300, rng) for _ in range(2)]
    return write_chains(tmp_path_factory.mktemp("chains") / "c.h5", states)


def test_rows_are_named_and_agree_with_each_other(chains: Path) -> None:
    wanted = ["summary.tails=[2, 20]", "summary.cdf=[2]", "summary.quantiles=[0.5, 0.9]"]
    summary = dpmix.summarize(chains, overrides=wanted)
    names = ["mean", "sd", "quantile[0.5]", "quantile[0.9]", "tail[2]", "tail[20]", "cdf[2]"]
    assert list(summary.parameters)[:7] == names
    np.testing.assert_allclose(summary.series["tail[2]"] + summary.series["cdf[2]"], 1.0, atol=1e-12)
    assert (summary.series["quantile[0.5]"] < summary.series["quantile[0.9]"]).all()
    # where the tail above 2 is above 0.1, the 90% quantile is above 2
    higher = summary.series["quantile[0.9]"] > 2.0
    assert np.array_equal(higher, summary.series["tail[2]"] > 0.1)
    found = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert set(found["shape_contraction"]) == {f"quantile[{level}]" for level in (0.25, 0.5, 0.75, 0.9)}
    assert found["parameters"]["tail[20]"]["mean"] > 0.0
    assert 0.0 < found["beyond_bounds"] < 0.01


def test_several_columns_are_asked_for_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    spec = a_spec(sampler__iterations=1060)
    del spec["mechanism"]  # bounds are the release's, of both columns
    states = [states_of_normals(60, rng) for _ in range(2)]
    path = write_kernel(tmp_path / "c.h5", "normals", states, spec=spec)
    summary = dpmix.summarize(path, overrides=["summary.tails={height: [3]}"])
    assert {"quantile[height,0.5]", "quantile[weight/kg,0.5]", "tail[height,3]"} <= set(summary.parameters)
    assert set(summary.to_json()["beyond_bounds"]) == {"height", "weight/kg"}
    shape = {f"quantile[{name},{level}]" for name in ("height", "weight/kg") for level in (0.25, 0.5, 0.75)}
    assert set(summary.to_json()["shape_contraction"]) == shape
    for override, said in (
        ("summary.tails=[3]", r"give a mapping by name, such as \{height: \[3\]\}"),
        ("summary.cdf={breadth: [3]}", "there is no column 'breadth'; it has height, weight/kg"),
        ("summary.gini=true", r"the public bounds \[-10, 10\] of height admit negative values"),
    ):
        with pytest.raises(SpecError, match=said):
            dpmix.summarize(path, overrides=[override])


def test_the_only_column_is_asked_for_by_name_too(chains: Path) -> None:
    named = dpmix.summarize(chains, overrides=["summary.tails={x1: [3]}"])
    assert (
        named.parameters["tail[3]"]
        == dpmix.summarize(chains, overrides=["summary.tails=[3]"]).parameters["tail[3]"]
    )


def test_what_is_refused_of_one_column(chains: Path) -> None:
    for override, said in (
        ("summary.gini=true", r"^summary\.gini: the public bounds \[-10, 10\] admit negative values"),
        ("summary.tails={x: [3]}", "there is no column 'x'; it has x1"),
        ("summary.quantiles=[0, 0.5]", r"summary\.quantiles"),
        ("summary.quantiles=[]", r"summary\.quantiles"),
        ("summary.tails=[a]", r"summary\.tails"),
    ):
        with pytest.raises(SpecError, match=said):
            dpmix.summarize(chains, overrides=[override])


def test_beta_kernels_stay_within_their_bounds_and_have_a_gini(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpmix.kernels.beta.family._RULE", 30)  # the prior need not be exact
    rng = np.random.default_rng(3)
    states = [states_of_beta(80, rng) for _ in range(2)]
    constants = {"domain_lo": 0.0, "domain_hi": 4.0}
    mechanism = json.dumps({"kind": "gaussian", "scale": [1.5], "domain": [[0.0, 4.0]]})
    attrs = {"mechanism": mechanism}
    spec = a_spec(sampler__iterations=1080, mechanism__domain=[0.0, 4.0])
    path = write_kernel(tmp_path / "c.h5", "beta", states, spec=spec, constants=constants, attrs=attrs)
    summary = dpmix.summarize(path, overrides=["summary.gini=true"])
    assert "beyond_bounds" not in summary.to_json()
    assert (summary.series["quantile[0.25]"] > 0.0).all()
    assert 0.0 < summary.parameters["gini"].mean < 1.0


def test_the_share_beyond_the_bounds_is_that_of_the_mixtures(tmp_path: Path) -> None:
    """Exactly the average over states, leftover mass on the prior predictive; and what is said of it."""
    states: dict[str, Any] = {
        "n_clusters": np.full(40, 2.0),
        "weights": np.tile([0.7, 0.25], (40, 1)),
        "mean": np.tile([0.0, 9.0], (40, 1)),
        "variance": np.tile([1.0, 4.0], (40, 1)),
    }
    spec = a_spec(sampler__iterations=1040, sampler__chains=1)
    path = write_chains(tmp_path / "c.h5", [states], spec=spec)
    prior = stats.t(2.0 * BASE.a, BASE.mu0, np.sqrt(BASE.b * (BASE.lam + 1.0) / (BASE.a * BASE.lam)))
    exact = 0.25 * (stats.norm.sf(0.5) + stats.norm.cdf(-9.5)) + 0.05 * 2.0 * prior.sf(10.0)
    exact += 0.7 * 2.0 * stats.norm.sf(10.0)
    summary = dpmix.summarize(path, tmp_path / "s.h5")
    assert summary.to_json()["beyond_bounds"] == pytest.approx(exact, rel=1e-9)
    (text,) = [text for text in summary.warnings if "beyond the public bounds" in text]
    assert text.startswith(
        "Under the fit 7.8% of records lie beyond the public bounds [-10, 10]: values were cut"
    )
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        assert float(tree["beyond_bounds"]["share"][0]) == pytest.approx(exact, rel=1e-9)
    wavelet = json.dumps({"kind": "wavelet", "levels": 1, "scale": [1.0], "domain": [[-10.0, 10.0]]})
    summary = dpmix.summarize(
        write_chains(tmp_path / "w.h5", [states], spec=spec, attrs={"mechanism": wavelet})
    )
    assert any("count as cut to the bounds" in text for text in summary.warnings)
    assert "lie beyond the public bounds: how far" in summary.verdict.reasons[0]
    histogram = json.dumps(
        {
            "kind": "perturbed_histogram",
            "bins": 4,
            "noise": "laplace",
            "scale": [2.0],
            "domain": [[-10.0, 10.0]],
        }
    )
    window = json.dumps(
        {
            "kind": "square_wave",
            "cells": 4,
            "reach": 1,
            "ratio": "8/1",
            "domain": [[-10.0, 10.0]],
        }
    )
    outer = 0.25 * (stats.norm.sf(-2.0) + stats.norm.cdf(-7.0)) + 0.05 * 2.0 * prior.sf(5.0)
    outer += 0.7 * 2.0 * stats.norm.sf(5.0)
    fullest = 0.7 * 0.5 + 0.05 * (prior.cdf(5.0) - prior.cdf(0.0))  # the cell above 0, about half of each
    for law in (wavelet, window, histogram):  # of the same four cells, each
        path = write_chains(tmp_path / f"{len(law)}.h5", [states], spec=spec, attrs={"mechanism": law})
        found = dpmix.summarize(path, tmp_path / "sh.h5", force=True).to_json()
        assert found["cell_shares"]["outer"] == pytest.approx(outer, rel=1e-9)
        assert found["cell_shares"]["fullest"] == pytest.approx(fullest, abs=0.06)
    with xarray.open_datatree(tmp_path / "sh.h5", engine="h5netcdf") as tree:
        assert float(tree["cell_shares"]["outer"][0]) == pytest.approx(outer, rel=1e-9)


@pytest.mark.parametrize("cells", [1, 2, 3, 16, 1000, 2**20])
def test_the_fullest_of_many_cells_is_found_without_looking_at_all(cells: int) -> None:
    edges = np.linspace(-8.0, 8.0, cells + 1)[1:-1]
    calls = []

    def below(edge: float) -> float:
        calls.append(edge)
        return float(0.7 * stats.norm.cdf(edge, 0.31, 1e-7) + 0.3 * stats.norm.cdf(edge, -2.0, 1.0))

    law = np.diff([0.0, *(below(edge) for edge in edges[:1001]), 1.0]) if cells <= 1000 else None
    calls.clear()
    found, piled = fullest_shares(edges, below)
    if law is not None:
        assert found == pytest.approx(law.max(), abs=1e-15)
    assert found >= 0.7
    assert len(calls) <= 4 * np.log2(2 * cells)
    assert piled == (found if cells > 2 else 0.0)  # where there are two or three, all are as full
    flat, piled = fullest_shares(edges, lambda edge: (edge + 8.0) / 16.0)
    assert 1 / cells - 1e-12 <= flat <= max(1 / cells, 0.01) + 1e-12
    assert piled == 0.0


def test_a_pile_is_found_beside_a_fuller_cell() -> None:
    """More than a tenth in a cell, and three times as many as in those beside it; not at a smooth mode."""

    def of(*shares: float) -> tuple[float, float]:
        edges, below = np.arange(1.0, len(shares)), np.cumsum(shares)
        found = fullest_shares(edges, lambda edge: float(below[round(edge) - 1]))
        assert found[1] == pytest.approx(most_piled(shares))  # of groups, whose shares are all there
        return found

    assert of(0.05, 0.2, 0.25, 0.2, 0.05, 0.2, 0.05) == pytest.approx((0.25, 0.2))
    assert of(0.05, 0.2, 0.25, 0.2, 0.05, 0.13, 0.12) == pytest.approx((0.25, 0.0))
    assert of(0.2, 0.05, 0.25, 0.25, 0.25) == pytest.approx((0.25, 0.2))  # the first has one beside it
    assert of(0.25, 0.25, 0.25, 0.05, 0.2) == pytest.approx((0.25, 0.2))
    assert of(0.02, 0.095, 0.02, *[0.0865] * 10) == pytest.approx((0.095, 0.0))


@pytest.mark.parametrize(("noise", "square"), [("laplace", 20.0), ("gaussian", 2.0)])
def test_noise_hides_an_sd_up_to_two_standard_errors_of_the_variance(noise: str, square: float) -> None:
    """Of 400 values of y + noise, y at one value: the variance of z less that of the noise, over releases."""
    law = expect(law_of({"kind": noise, "scale": [3.0]}), Noisy)
    rng = np.random.default_rng(8)
    told = law.draw(np.zeros((20_000, 400)), 3.0, rng).var(axis=1) - law.variance_of_unit * 9.0
    assert law.hidden_sd(400.0, 3.0) ** 2 == pytest.approx(2.0 * told.std(), rel=0.03)
    assert law.hidden_sd(400.0, 3.0) ** 2 == pytest.approx(2.0 * 9.0 * math.sqrt(square / 400.0))


def test_a_group_that_noise_hides_the_width_of() -> None:
    """Narrow for its share, and standing out; at any place, and not where a column is smooth."""
    law = expect(law_of({"kind": "laplace", "scale": [5.0]}), Noisy)

    def found(n: int, *parts: tuple[float, float, float]) -> HiddenPile | None:
        def below(place: float) -> float:
            return float(sum(w * stats.norm.cdf(place, mean, sd) for w, mean, sd in parts))

        return hidden_pile(0.0, 100.0, below, lambda share: law.hidden_sd(n * share, 5.0), 5.0)

    wide = (0.55, 38.0, 14.0)
    pile = found(2_000, wide, (0.45, 40.0, 1.5))
    assert pile is not None
    assert pile.place == pytest.approx(40.0, abs=0.5)
    assert pile.reach == pytest.approx(law.hidden_sd(0.4 * 2_000, 5.0))
    exact = 0.45 * (1.0 - 2.0 * stats.norm.sf(pile.reach / 1.5))
    exact += 0.55 * float(np.diff(stats.norm.cdf(40.0 + np.array([-1, 1]) * pile.reach, 38.0, 14.0))[0])
    assert pile.share == pytest.approx(exact, abs=0.005)
    assert found(200_000, wide, (0.45, 40.0, 1.5)) is None  # so many tell an sd of 1.5
    assert found(2_000, wide, (0.45, 40.0, 5.0)) is None
    assert found(2_000, (1.0, 38.0, 14.0)) is None
    assert found(2_000, (0.5, 25.0, 6.0), (0.5, 65.0, 8.0)) is None
    assert found(2_000, (0.95, 38.0, 14.0), (0.05, 40.0, 0.5)) is None  # fewer than a tenth
    all_there = found(2_000, (1.0, 3.0, 0.5))
    assert all_there is not None
    assert all_there.share > 0.95


@pytest.mark.parametrize(("scale", "said"), [(1.5, True), (0.2, False), (4.0, False)])
def test_a_hidden_width_is_a_doubt(scale: float, said: bool, tmp_path: Path) -> None:
    """Two groups of sd 1: little noise tells that; of noise wider than the records the shape is asked."""
    states = states_of_mixture(60, np.random.default_rng(4), centres=(-5.0, 5.0), n=400, extra=0.0)
    path = write_chains(
        tmp_path / "c.h5",
        [states, states],
        observed=np.linspace(-8.0, 8.0, 400),
        constants={"noise_scale": scale},
        attrs={"mechanism": json.dumps({"kind": "laplace", "scale": [scale], "domain": [[-10.0, 10.0]]})},
    )
    found = dpmix.summarize(path, quiet=True)
    reasons = [
        each for each in found.verdict.reasons if "hardly tells them from records at one value" in each
    ]
    assert bool(reasons) == said
    if said:
        assert found.verdict.answer != "usable"
        words = (
            r"Under the fit (39|4\d)% of records lie within 1\.[234] of -?(4\.9|5\b).*noise of scale 1\.5 "
        )
        assert re.match(words, reasons[0]), reasons


# ---- what fit keeps


def with_recorded(path: Path, mean: Floats, sd: Floats, quantile: Floats) -> Path:
    """Add what a fit keeps to a file of 2 chains."""
    with h5py.File(path, "r+") as file:
        posterior = Group(file["posterior"])
        posterior.coordinate("quantile", np.array([0.25, 0.5, 0.75]))
        posterior.dataset("record_mean", mean, ("chain", "draw"))
        posterior.dataset("record_sd", sd, ("chain", "draw"))
        posterior.dataset("record_quantile", quantile, ("chain", "draw", "quantile"))
    return path


def test_quantiles_that_fit_kept_are_not_solved_for(tmp_path: Path) -> None:
    """Mean and sd are computed all the same: earlier versions lost their digits far from 0."""
    rng = np.random.default_rng(4)
    states = [states_of_mixture(50, rng) for _ in range(2)]
    kept = rng.normal(size=(2, 50)), rng.gamma(3.0, size=(2, 50)), rng.normal(size=(2, 50, 3))
    path = with_recorded(write_chains(tmp_path / "c.h5", states), *kept)
    before = dpmix.summarize(write_chains(tmp_path / "without.h5", states)).series
    summary = dpmix.summarize(path, overrides=["summary.quantiles=[0.1, 0.5]"])
    assert all(np.array_equal(summary.series[name], before[name]) for name in ("mean", "sd"))
    assert np.array_equal(summary.series["quantile[0.5]"], kept[2][:, :, 1])
    assert "quantile[0.1]" in summary.series  # solved for
    assert "quantile[0.25]" not in summary.series
    # one of two files with it: all is computed anew
    spec = a_spec(sampler__iterations=1050)
    old = write_chains(tmp_path / "old.h5", [states[1]], spec=spec, ids=[1])
    new = write_chains(tmp_path / "new.h5", [states[0]], spec=spec, ids=[0])
    fresh = dpmix.summarize([old, new]).series["quantile[0.5]"]
    with_recorded(new, kept[0][:1], kept[1][:1], kept[2][:1])
    assert np.array_equal(dpmix.summarize([new, old]).series["quantile[0.5]"], fresh)


def test_damaged_quantities_are_refused(tmp_path: Path) -> None:
    states = [states_of_mixture(20, np.random.default_rng(5)) for _ in range(2)]
    mean = np.zeros((2, 20))
    mean[1, 3] = np.nan
    path = write_chains(tmp_path / "c.h5", states)
    with_recorded(path, mean, np.ones((2, 20)), np.zeros((2, 20, 3)))
    with pytest.raises(DataError, match=r"c\.h5 holds a record_mean that is not as `dpmix fit` wrote it"):
        dpmix.summarize(path)


def test_the_wanted_quantities_of_a_pass_over_components(chains: Path) -> None:
    from dpmix.run.chains_reader import read_chains

    grid = np.linspace(-10.0, 10.0, 9)
    alone = posterior_density(read_chains([chains]), [grid], 0.9)
    assert "quantile[0.5]" not in alone.series
    more = posterior_density(read_chains([chains]), [grid], 0.9, [Wanted(quantiles=(0.5,), cdf=(0.0,))])
    assert np.array_equal(more.series["mean"], alone.series["mean"])
    # the median is below 0 where more than half is
    assert np.array_equal(more.series["quantile[0.5]"] < 0.0, more.series["cdf[0]"] > 0.5)
