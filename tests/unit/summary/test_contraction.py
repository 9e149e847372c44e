"""Draws from priors against closed forms, contraction, and what is said of priors that speak or make no
sense.

Interquartile ranges of 4,000 draws are compared within 4.5 of their standard errors, about 25 of them.
"""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from numpy.typing import NDArray
from scipy import integrate, stats

import dpmix
from dpmix.kernels.normal.family import NormalInverseGamma
from dpmix.models.dirichlet import compositions
from dpmix.models.discrete.model import build as build_discrete
from dpmix.models.multinomial.model import Multinomial
from dpmix.models.naive_bayes.model import NaiveBayes
from dpmix.run.chains_file import Stored
from dpmix.run.chains_reader import read_chains
from dpmix.spec import load_spec
from dpmix.summary.diagnostics import beside_prior, contraction, describe
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.prior import PriorDraws, mixture_prior
from dpmix.summary.quantities import Wanted
from dpmix.summary.remarks import convergence_remarks, learning_remarks, prior_remarks
from dpmix.summary.summary_result import Acceptance
from tests.helpers.chains_files import BASE, a_spec, states_of_mixture, write_chains
from tests.helpers.discrete_releases import COLOUR, NUMBER, counts, pitman_yor
from tests.helpers.pages import short_page
from tests.unit.models.test_models_multinomial import hellinger
from tests.unit.models.test_models_naive_bayes import released

Floats = NDArray[np.float64]
ERRORS = 4.5
LEVELS = (0.25, 0.75)


def assert_range(draws: Floats, law: Any) -> None:
    """Hold the interquartile range of draws against that of a law, in standard errors of its ends."""
    ends = law.ppf(LEVELS)
    errors = np.sqrt(0.1875 / draws.size) / law.pdf(ends)
    found = np.quantile(draws, LEVELS)
    assert (np.abs(found - ends) < ERRORS * errors).all(), (found, ends)


def test_contraction_is_of_interquartile_ranges() -> None:
    law = stats.norm()
    prior = law.ppf((np.arange(10_000) + 0.5) / 10_000)
    assert contraction(0.5 * prior + 3.0, prior) == pytest.approx(0.75)
    assert contraction(2.0 * prior, prior) == pytest.approx(-3.0)
    assert contraction(np.ones((2, 9)), prior) == 1.0
    # infinite variances do not matter, and nothing is said without a prior that varies
    assert contraction(prior, stats.cauchy().ppf((np.arange(10_000) + 0.5) / 10_000)) == pytest.approx(
        0.545, abs=0.001
    )
    assert contraction(prior, np.ones(50)) is None
    assert contraction(prior, None) is None
    assert contraction(prior, np.full(50, np.inf)) is None
    assert describe(prior.reshape(4, -1), 0.9, prior).contraction == 0.0
    assert describe(prior.reshape(4, -1), 0.9).contraction is None


# ---- priors of mixtures


def prior_of(path: Path, wanted: Wanted | None = None) -> PriorDraws:
    chains = read_chains([path])
    grid = np.linspace(-10.0, 10.0, 9)
    return mixture_prior(chains, family_of(chains), [grid], [wanted or Wanted((0.5,), (2.0,))])


def a_file(folder: Path, **changes: Any) -> Path:
    states = [states_of_mixture(20, np.random.default_rng(0)) for _ in range(2)]
    constants = {"discount": changes.pop("discount", 0.0)}
    alpha = changes.pop("alpha", 1.0)
    states = [state | {"concentration": np.full(20, float(alpha))} for state in states]
    spec = a_spec(sampler__iterations=1020, **changes)
    return write_chains(folder / "c.h5", states, spec=spec, constants=constants)


def test_one_cluster_a_priori_has_the_law_of_its_parameters(tmp_path: Path) -> None:
    """With concentration next to nothing P is one atom: mean, median and sd are those of G0."""
    found = prior_of(a_file(tmp_path, alpha=1e-9)).series
    mean = stats.t(2.0 * BASE.a, BASE.mu0, np.sqrt(BASE.b / (BASE.a * BASE.lam)))
    assert_range(found["mean"], mean)
    assert_range(found["quantile[0.5]"], mean)
    precision = stats.gamma(BASE.a, scale=1.0 / BASE.b)
    assert_range(found["sd"] ** -2.0, precision)


@functools.cache
def mean_power(k: int) -> float:
    """Mean under the base measure of the k-th power of a component's mass above 2."""
    shape = stats.gamma(BASE.a, scale=1.0 / BASE.b)

    def inner(mean: float, precision: float) -> float:
        sd = precision**-0.5
        law = stats.norm.pdf(mean, BASE.mu0, sd / np.sqrt(BASE.lam))
        return float(stats.norm.sf(2.0, mean, sd) ** k * law * shape.pdf(precision))

    return float(integrate.dblquad(inner, 0.02, 6.0, -40.0, 40.0, epsabs=1e-4)[0])


@pytest.mark.parametrize(("alpha", "discount"), [(0.5, 0.0), (6.0, 0.0), (1.0, 0.4)])
def test_tails_of_p_vary_as_a_process_does(tmp_path: Path, alpha: float, discount: float) -> None:
    """Var P(A) = (1 - d)/(1 + alpha) (E F^2 - (E F)^2), F the kernel's mass of A, integrated over G0."""
    found = prior_of(a_file(tmp_path, alpha=alpha, discount=discount)).series["tail[2]"]
    first, second = mean_power(1), mean_power(2)
    factor = (1.0 - discount) / (1.0 + alpha)
    variance = factor * (second - first**2)
    assert found.mean() == pytest.approx(first, abs=ERRORS * np.sqrt(variance / found.size) + 2e-4)
    assert found.var() == pytest.approx(variance, rel=0.1)


def test_a_gamma_prior_of_the_concentration_is_drawn(tmp_path: Path) -> None:
    found = prior_of(a_file(tmp_path, model__concentration={"shape": 2.0, "rate": 0.5})).series
    assert_range(found["concentration"], stats.gamma(2.0, scale=2.0))


def test_a_change_of_units_changes_no_contraction(tmp_path: Path) -> None:
    """The same fit in units 128 times as small: a power of two, so that numbers are rounded alike."""
    found = []
    for scale in (1.0, 128.0):
        rng = np.random.default_rng(5)
        states = [states_of_mixture(60, rng) for _ in range(2)]
        for state in states:
            state["mean"] *= scale
            state["variance"] *= scale**2
        base = NormalInverseGamma(BASE.mu0, BASE.lam, BASE.a, BASE.b * scale**2)
        lo, hi = -10.0 * scale, 10.0 * scale
        mechanism = json.dumps({"kind": "laplace", "scale": [4.0 * scale], "domain": [[lo, hi]]})
        spec = a_spec(sampler__iterations=1060)
        spec["mechanism"]["domain"] = [lo, hi]
        spec["summary"] = {"tails": [3.0 * scale], "cdf": [3.0 * scale]}
        observed = scale * np.linspace(-12.0, 12.0, 200)
        path = write_chains(
            tmp_path / f"{scale:g}.h5",
            states,
            spec=spec,
            base=base,
            observed=observed,
            attrs={"mechanism": mechanism},
        )
        found.append(dpmix.summarize(path))
    one, other = found
    for (name, first), (there, second) in zip(one.parameters.items(), other.parameters.items(), strict=True):
        assert name.partition("[")[0] == there.partition("[")[0]
        if first.contraction is None:
            assert second.contraction is None
        else:
            assert first.contraction == pytest.approx(second.contraction, rel=1e-9)
    assert one.parameters["mean"].contraction == pytest.approx(0.98, abs=0.02)
    shape = one.to_json()["shape_contraction"]
    assert other.to_json()["shape_contraction"] == pytest.approx(shape, rel=1e-9)
    assert one.beyond_bounds[""] == pytest.approx(other.beyond_bounds[""], rel=1e-9)


def test_contraction_stands_in_json_file_table_and_report(tmp_path: Path) -> None:
    summary = dpmix.summarize(a_file(tmp_path), tmp_path / "s.h5")
    found = {name: value["contraction"] for name, value in summary.to_json()["parameters"].items()}
    assert found["n_clusters"] is None
    assert 0.5 < found["mean"] < 1.0
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        table = tree["parameters"].to_dataset()
        assert float(table["contraction"].sel(parameter="mean")) == found["mean"]
        assert np.isnan(float(table["contraction"].sel(parameter="n_clusters")))
    row = next(line for line in summary.to_text().splitlines() if line.startswith("mean "))
    assert f"{found['mean']:.2f}" in row.split()
    assert ">contraction</th>" in short_page(summary)


# ---- priors of parametric models


def test_priors_of_naive_bayes_and_multinomial_are_beta() -> None:
    rng = np.random.default_rng(2)
    model = NaiveBayes(released([0.0] * 15, [2, 3], 3, 30), 2.0, None)
    found = model.prior_draws(rng, 4000)
    assert {name: values.shape for name, values in found.items()} == {
        "p": (4000, 3), "p_feature_1": (4000, 3, 2), "p_feature_2": (4000, 3, 3)
    }  # fmt: skip
    assert_range(found["p"][:, 1], stats.beta(2.0, 4.0))
    assert_range(found["p_feature_1"][:, 2, 0], stats.beta(2.0, 2.0))
    assert_range(found["p_feature_2"][:, 0, 2], stats.beta(2.0, 4.0))
    drawn = Multinomial(hellinger((1.0, 2.0), (6, 4)), np.array([3.0, 1.5])).prior_draws(rng, 4000)
    assert_range(drawn["p"][:, 0], stats.beta(3.0, 1.5))
    law = stats.betabinom(10, 3.0, 1.5)
    seen = np.bincount(drawn["count"][:, 0].astype(int), minlength=11) / 4000
    assert np.abs(seen - law.pmf(np.arange(11))).max() < ERRORS * np.sqrt(0.25 / 4000)
    assert (drawn["count"].sum(axis=1) == 10.0).all()


def discrete_prior(release: Any, **model: Any) -> dict[str, Floats]:
    spec = {"model": {"kind": "discrete", **model}, "summary": {"tails": [2.0], "cdf": [6.0]}}
    if release.columns == ("colour",):
        del spec["summary"]
    return build_discrete(load_spec(spec), release).prior_draws(np.random.default_rng(3), 4000)


def test_priors_of_discrete_models_are_those_of_the_process() -> None:
    """P(A) ~ Beta(alpha P0(A), alpha (1 - P0(A))), whatever the release is, and is not moved by it."""
    found = discrete_prior(counts(), concentration=3.0)  # uniform on [0, 8]
    assert set(found) == {"mean", "sd", "quantile", "tail", "cdf_at"}
    assert_range(found["tail"][:, 0], stats.beta(2.25, 0.75))
    assert_range(found["cdf_at"][:, 0], stats.beta(2.25, 0.75))
    assert found["mean"].mean() == pytest.approx(4.0, abs=ERRORS * np.sqrt(64 / 12 / 4 / 4000))
    found = discrete_prior(pitman_yor([NUMBER]))  # concentration 2, uniform on [0, 10]
    assert_range(found["tail"][:, 0], stats.beta(1.6, 0.4))
    found = discrete_prior(pitman_yor([COLOUR]))
    assert_range(found["probability"][:, 1], stats.beta(2.0 / 3.0, 4.0 / 3.0))


def test_priors_of_compositions_are_gamma_and_beta(tmp_path: Path) -> None:
    chains = read_chains([a_file(tmp_path)])
    spec = {"model": {"kind": "dirichlet", "prior": {"shape": 1.5, "rate": 0.1}}}
    stated = type(chains)(**{**vars(chains), "spec": spec})
    for name, law in (("alpha", stats.gamma(1.5, scale=10.0)), ("mean", stats.beta(1.5, 4.5))):
        stored = Stored(name, (2, 20, 2, 4), ("group", "component"), {}, "scalar", name, "")
        found = compositions.prior_draws_of(stated, stored)
        assert found is not None
        assert found.shape == (4000, 2, 4)  # the same for each of two groups
        assert_range(found[:, 1, 2], law)


# ---- what is said


def scalars(**series: tuple[float, float]) -> dict[str, Any]:
    """Scalars whose posterior and prior are normal with these standard deviations."""
    rng = np.random.default_rng(9)
    unit = stats.norm().ppf((np.arange(4000) + 0.5) / 4000)
    mixed = rng.permutation(unit).reshape(4, 1000)
    return {name: describe(mixed * after, 0.95, unit * before) for name, (after, before) in series.items()}


def test_one_line_says_of_what_the_prior_speaks() -> None:
    found = scalars(mean=(0.5, 1.0), sd=(0.99, 1.0), concentration=(1.0, 1.0))
    found |= {"tail[20]": scalars(x=(2.0, 1.0))["x"], "density[3]": scalars(x=(1.0, 1.0))["x"]}
    (remark,) = learning_remarks(found)
    assert remark.text == (
        "The prior, not the release, speaks about sd (0.02): in brackets the contraction, the share of the "
        "prior's spread that the release took away. The posterior is wider than the prior for tail[20] (-3) "
        "(contraction): release and prior are in conflict there; look at the prior."
    )
    assert not remark.convergence
    assert learning_remarks(scalars(mean=(0.5, 1.0))) == []
    assert learning_remarks({"mean": describe(np.random.default_rng(1).normal(size=(2, 50)), 0.9)}) == []
    # sd (0.02) above is as likely wider as not: Monte Carlo error is no conflict
    assert "wider" not in learning_remarks(scalars(mean=(1.02, 1.0)))[0].text
    many = {f"quantile[0.{i}]": scalars(x=(1.0, 1.0))["x"] for i in range(1, 10)}
    assert "and 3 more: in brackets" in learning_remarks(many)[0].text


def test_a_posterior_away_from_where_the_prior_piles_up_is_no_conflict() -> None:
    """A prior Beta(0.9, 0.1), as of Pr(Y > 0) under a Dirichlet process: its quartiles are 0.93 and 1."""
    rng = np.random.default_rng(4)
    prior = rng.beta(0.9, 0.1, 4000)
    away = describe(rng.normal(0.645, 0.06, (2, 1000)), 0.95, prior)
    assert away.contraction is not None and away.contraction < 0.1 and away.beside_prior == "moved"
    assert learning_remarks({"tail[0]": away}) == []
    there = describe(rng.permutation(prior).reshape(4, 1000), 0.95, prior)  # nothing was learnt
    assert (
        there.beside_prior == "" and "The prior, not the release" in learning_remarks({"p[a]": there})[0].text
    )
    # a prior that is narrow and elsewhere: the posterior is wider all over
    far = describe(rng.normal(5.0, 2.0, (2, 1000)), 0.95, rng.normal(0.0, 1.0, 4000))
    assert far.beside_prior == "wider" and "in conflict" in learning_remarks({"mean": far})[0].text


def test_monte_carlo_error_is_seldom_called_a_conflict() -> None:
    """Posterior and prior alike, the former of 100 effective draws: never in 400, where half are wider."""
    rng = np.random.default_rng(5)
    found = [beside_prior(rng.standard_normal(100), rng.standard_normal(500), 100.0) for _ in range(400)]
    assert "wider" not in found


def chain_of(iterations: int) -> Any:
    class Chains:
        ids = np.arange(4)
        planned = 4
        stated = {"sampler": {"chains": 4, "iterations": iterations}}.__getitem__
        draws = 1000

    return Chains()


def slow(length: int, correlation: float, seed: int = 3) -> Floats:
    rng = np.random.default_rng(seed)
    out = rng.standard_normal((4, length))
    for t in range(1, length):
        out[:, t] = correlation * out[:, t - 1] + np.sqrt(1.0 - correlation**2) * out[:, t]
    return out


def test_longer_chains_are_asked_for_once_and_with_a_number() -> None:
    """The number is right: chains as much longer have the effective size that was missing."""
    none = Acceptance(None, None)
    short = {"mean": describe(slow(1000, 0.98), 0.95), "sd": describe(slow(1000, 0.9, 4), 0.95)}
    remarks = convergence_remarks(short, none, chain_of(2000))
    (remark,) = [r for r in remarks if "sweeps" in r.text]
    assert remark.convergence
    times = int(remark.text.split("about ")[1].split(" times")[0])
    assert f"(sampler.iterations: {2000 * times})" in remark.text
    assert 6 <= times <= 60
    long = describe(slow(1000 * times, 0.98), 0.95)
    assert long.ess_bulk is not None and 250 < long.ess_bulk < 2500
    few = {"mean": replace(short["mean"], rhat=1.0, ess_bulk=52.0, ess_tail=130.0)}
    assert convergence_remarks(few, none, chain_of(2000))[0].text == (
        "Bulk ESS is below 400 for mean (52); tail ESS is below 400 for mean (130): run about 8 times as "
        "many sweeps (sampler.iterations: 16000)."
    )
    apart = {"mean": describe(slow(1000, 0.0) + [[0.0], [0.0], [0.0], [9.0]], 0.95)}
    text = convergence_remarks(apart, none, chain_of(2000))[0].text
    assert "run at least 70 times as many sweeps (sampler.iterations: 140000), or another sampler" in text
    crawling = {"mean": replace(apart["mean"], rhat=3.0)}
    assert "more than 100 times as many sweeps" in convergence_remarks(crawling, none, chain_of(2000))[0].text
    (absurd,) = [r.text for r in convergence_remarks(short, none, chain_of(2000), absurd=True)]
    assert "more sweeps would not mend that" in absurd
    assert "sampler.iterations" not in absurd


def test_a_prior_of_another_scale_is_named_and_no_sweeps_recommended(tmp_path: Path) -> None:
    """A prior of values near 100,000 on bounds [-10, 10]: it never expects a mean within them."""
    rng = np.random.default_rng(6)
    states = [states_of_mixture(30, rng) for _ in range(2)]
    base = NormalInverseGamma(1e5, 1.0, 30.0, 30.0)
    summary = dpmix.summarize(write_chains(tmp_path / "c.h5", states, base=base))
    (text,) = [text for text in summary.warnings if text.startswith("A priori")]
    assert "the public bounds [-10, 10] with probability below 0.001" in text
    assert text not in summary.failures
    assert not any("sampler.iterations" in text for text in summary.warnings)
    assert any("stands in the way" in text for text in summary.failures)
    assert prior_remarks({"": 0.02}, {"": (0.0, 1.0)}) == []
    (remark,) = prior_remarks({"x": 0.004}, {"x": (0.0, 1.0)})
    assert "mean of a record of x lies within the public bounds [0, 1] with probability 0.004" in remark.text
