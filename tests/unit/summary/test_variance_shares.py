"""Shares of sampling, privacy noise and prior: closed forms, limits, and the second runs behind them."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from scipy import special, stats

import dpmix
from dpmix.kernels.beta.family import BetaKernel, LearnedBeta
from dpmix.kernels.layout import Floats, find_layout, known_layouts
from dpmix.kernels.normal.family import LearnedNormal, NormalInverseGamma
from dpmix.models.discrete.meaning import clean_variance_of_mean
from dpmix.results.result import plain
from dpmix.run.chains_reader import read_chains
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.quantities import quantiles
from dpmix.summary.random_measures import Measures
from dpmix.summary.variance import (
    REPLICATES,
    Shares,
    VarianceShares,
    _base_of_betas,
    _cells,
    _Chain,
    _kernel,
    chosen_starts,
    clean_posteriors,
    mixture_shares,
    parametric_shares,
    runs_for,
    shares_of,
)
from tests.helpers.chains_files import (
    BETA,
    TRUNCATED,
    a_spec,
    states_of_mixture,
    states_of_normals,
    write_chains,
    write_kernel,
)
from tests.helpers.pages import short_page
from tests.unit.summary.test_sensitivity import PARTITIONS, Z, held, updated

pytestmark = pytest.mark.second_runs


def test_shares_are_the_stated_ones() -> None:
    assert shares_of(2.0, 8.0, 0.5) == Shares(0.1875, 0.5625, 0.25)
    assert shares_of(2.0, 8.0, 5.0) == Shares(0.75, 0.0, 0.25)
    assert shares_of(9.0, 8.0, 1.0) == Shares(0.0, 0.0, 1.0)  # a posterior wider than its prior
    assert shares_of(2.0, np.inf, 0.5) is None and shares_of(0.0, 8.0, 0.0) is None


def test_shares_are_said_in_one_line() -> None:
    parts = {"mean": Shares(0.2, 0.7, 0.1), "median": Shares(0.6, 0.3, 0.1), "density": None}
    found = VarianceShares({"": parts})
    assert found.in_words() == (
        "mean 20% sampling, 70% privacy noise, 10% prior; median 60% sampling, 30% privacy noise, 10% prior. "
        "More epsilon would help mean; more records would help median."
    )
    assert plain(found.section().data)["density"] is None
    assert VarianceShares({"": {"mean": Shares(0.1, 0.1, 0.8)}}).cure() == "The prior decides."
    wide = VarianceShares({"": {"mean": Shares(0.8, 0.1, 0.1), "density": shares_of(9.0, 8.0, 1.0)}})
    assert wide.cure() == (
        "More records would help mean; shares do not tell what would help density: the variance is no less "
        "than the prior's."
    )
    two = VarianceShares({"x": {"mean": Shares(0.8, 0.1, 0.1)}, "y": {"mean": None}})
    assert two.in_words().startswith("mean of x 80%")
    none = VarianceShares(reason="why")
    assert plain(none.section().data) == {"mean": None, "median": None, "density": None, "reason": "why"}
    assert none.in_words() == ""


# ---- a normal model of known variance, whose shares are known


def known(
    folder: Path, eta: float, *, kind: str = "gaussian", n: int = 400, unit: float = 1.0, draws: int = 2000
) -> Any:
    """Chains of one cluster: y ~ N(theta, 4), theta ~ N(0, 16), z ~ N(y, eta^2); and the exact variances.

    Of the posterior it is that of its draws; of 500 all are looked at.
    """
    rng = np.random.default_rng(1)
    s2, v0, a = 4.0, 16.0, 1e6
    base = NormalInverseGamma(0.0, s2 / v0, a, a * s2 * unit**2)
    z = rng.normal(1.0, np.sqrt(s2 + eta**2), n)
    precision = 1.0 / v0 + n / (s2 + eta**2)
    centre = z.sum() / (s2 + eta**2) / precision
    states = [
        {
            "n_clusters": np.ones(draws),
            "weights": np.full((draws, 1), 1.0 - 1e-12),
            "mean": unit * rng.normal(centre, precision**-0.5, (draws, 1)),
            "variance": np.full((draws, 1), s2 * unit**2),
            "concentration": np.full(draws, 1e-9),
        }
        for _ in range(2)
    ]
    bounds = [-10.0 * unit, 10.0 * unit]
    spec = a_spec(sampler__iterations=1000 + draws, model__concentration=1e-9)
    spec["mechanism"]["domain"] = bounds
    noise = {} if kind == "none" else {"scale": [eta * unit]}
    mechanism = {"kind": kind, "domain": [bounds], **noise}
    path = write_chains(
        folder / "c.h5",
        states,
        spec=spec,
        base=base,
        observed=z * unit,
        attrs={"mechanism": json.dumps(mechanism)},
        constants={"noise_scale": eta * unit},
    )
    variance = float(np.var([state["mean"] for state in states])) / unit**2
    return path, shares_of(variance, v0, 1.0 / (1.0 / v0 + n / s2))


def found_of(path: Path, unit: float = 1.0) -> VarianceShares:
    chains = read_chains([path])
    return mixture_shares(chains, family_of(chains), [unit * np.linspace(-8.0, 10.0, 200)], {}, {})


@pytest.mark.parametrize("eta", [0.5, 2.0, 8.0, 40.0, 100.0])
def test_shares_of_a_normal_mean_are_exact(tmp_path: Path, eta: float) -> None:
    path, exact = known(tmp_path, eta, draws=500)
    found = found_of(path).columns[""]
    for name in ("mean", "median"):
        part = found[name]
        assert part is not None
        for key in ("sampling", "privacy", "prior"):
            assert getattr(part, key) == pytest.approx(getattr(exact, key), rel=0.1, abs=0.07), (name, key)


def test_without_noise_there_is_no_privacy_and_with_much_only_the_prior(tmp_path: Path) -> None:
    for part in found_of(known(tmp_path, 0.0, kind="none")[0]).columns[""].values():
        assert part is not None and part.privacy == 0.0 and part.sampling > 0.98
    for part in found_of(known(tmp_path, 1e-6)[0]).columns[""].values():
        assert part is not None and part.privacy < 0.1
    for part in found_of(known(tmp_path, 3000.0)[0]).columns[""].values():
        assert part is not None and part.prior > 0.9


def test_units_do_not_matter(tmp_path: Path) -> None:
    one = found_of(known(tmp_path, 3.0)[0])
    assert found_of(known(tmp_path, 3.0, unit=1024.0)[0], 1024.0) == one
    assert found_of(known(tmp_path, 3.0, unit=2.0**-20)[0], 2.0**-20) == one


def test_many_records_cost_as_much_as_few(tmp_path: Path) -> None:
    """Beyond 20,000 the variance is scaled: at a million its share stays what it is."""
    path, exact = known(tmp_path, 2.0, n=1_000_000)
    part = found_of(path).columns[""]["mean"]
    assert part is not None and part.sampling == pytest.approx(exact.sampling, abs=0.07)


# ---- the second runs


def chain_of(
    family: Any, records: Floats, alpha: float, discount: float, replicates: int, places: int
) -> _Chain:
    """A run given these records, the same for all replicates."""
    kernel, rng = _kernel(family), np.random.default_rng(2)
    counts, values = _cells(_statistics(kernel, family, records))
    chain = _Chain(
        kernel,
        family,
        np.repeat(counts[None], replicates, axis=0),
        np.repeat(values[:, None], replicates, axis=1),
        np.full(replicates, alpha),
        discount,
        rng,
    )
    atoms = family.draw(rng, 1)
    chain.start([Measures(np.array([1]), np.ones(1), atoms, np.zeros(1))] * replicates, places)
    return chain


def _statistics(kernel: Any, family: Any, records: Floats) -> Floats:
    if isinstance(family, BetaKernel):
        u = (records - BETA.lo) / BETA.width
        return np.stack([np.log(u), np.log1p(-u), special.logit(u)])
    kernel.centre, kernel.scale = 0.3, 1.7  # any will do
    u = (records - 0.3) / 1.7
    return np.stack([u, u * u, u])


@pytest.mark.parametrize("discount", [0.0, 0.4])
def test_runs_agree_with_all_partitions_of_three_records(discount: float) -> None:
    base, alpha = NormalInverseGamma(0.5, 0.3, 3.0, 2.0), 0.8
    logs, means, counts = [], [], []
    for blocks in PARTITIONS:
        k = len(blocks)
        parts = [updated(base, Z[block]) for block in blocks]
        log = sum(part[1] for part in parts) + sum(np.log(alpha + j * discount) for j in range(1, k))
        log += sum(special.gammaln(len(b) - discount) - special.gammaln(1.0 - discount) for b in blocks)
        logs.append(log)
        weights = np.array([len(block) - discount for block in blocks])
        middle = np.array([part[0].mu0 for part in parts])
        means.append((weights @ middle + (alpha + k * discount) * base.mu0) / (alpha + 3.0))
        counts.append(k)
    p = special.softmax(logs)
    chain = chain_of(base, Z, alpha, discount, 64, 12 if discount == 0.0 else 150)  # whose tails are long
    clusters, centre = [], []
    for sweep in range(700):
        sizes, _ = chain._allocate()
        chain.sweep()
        if sweep >= 50:
            clusters.append((sizes > 0).sum(axis=1).mean())
            centre.append(((chain.weights * chain.atoms[0]).sum(axis=1) + chain.rest * base.mu0).mean())
    assert np.mean(clusters) == pytest.approx(float(p @ counts), abs=0.02)
    assert np.mean(centre) == pytest.approx(float(p @ means), abs=0.02)


LEARNED = LearnedBeta(2.0, 2.0, 0.2, 0.16, 1.8, 0.5, BETA.lo, BETA.width)
WEIGHTED = replace(LEARNED, weight=2.0)


def log_prior_of_learned(family: LearnedBeta, a: Any, b: Any) -> Any:
    """Of (log a, log b), with the rate integrated out in closed form, place and log lambda on a grid."""
    total, share = a + b, a / (a + b)
    scaled, found = total * LEARNED.rate / LEARNED.shape, np.zeros_like(a)
    logs = np.linspace(-5.0, 2.0, 12) if family.weight else np.zeros(1)
    for x, s in itertools.product(np.linspace(-4.0, 4.0, 25), logs):
        place, along = special.expit(LEARNED.spread * x), LEARNED.lam * np.exp(s) * total
        shapes = 2.0 + along * place, 2.0 + along * (1.0 - place)
        chance = np.exp(-0.5 * x * x + family.weight * s - np.exp(s))
        found += chance * stats.beta.pdf(share, *shapes) * share * (1.0 - share)
    return np.log(found) + stats.betaprime.logpdf(scaled, 4.0, LEARNED.shape) + np.log(scaled)


@pytest.mark.parametrize(
    "family", [TRUNCATED, BETA, LEARNED, WEIGHTED], ids=["truncated", "beta", "learned beta", "weighted beta"]
)
def test_metropolis_steps_keep_the_posterior_of_one_cluster(family: Any) -> None:
    """Against quadrature over both parameters, on a grid of their logarithms (of the mean: as it is)."""
    rng = np.random.default_rng(3)
    if family is not TRUNCATED:
        records = BETA.lo + BETA.width * rng.beta(4.0, 9.0, 25)
        first, second = np.exp(np.linspace(-1.5, 3.5, 300)), np.exp(np.linspace(-1.0, 4.5, 300))
        a, b = np.meshgrid(first, second, indexing="ij")
        u = (records - BETA.lo) / BETA.width
        logs = (
            stats.gamma.logpdf(a, 2.0, scale=0.5) + stats.gamma.logpdf(b, 3.0, scale=1 / 1.5) + np.log(a * b)
        )
        if isinstance(family, LearnedBeta):
            logs = log_prior_of_learned(family, a, b)
        logs += stats.beta.logpdf(u[:, None, None], a, b).sum(axis=0)
        both = (a, b)
    else:
        records = rng.normal(1.0, 0.8, 6)
        first, second = np.linspace(-3.0, 5.0, 300), np.exp(np.linspace(-4.0, 2.5, 300))
        m, sd = np.meshgrid(first, second, indexing="ij")
        whole = sd**2 + family.floor
        logs = stats.invgamma.logpdf(whole, family.a, scale=family.b)
        logs += stats.norm.logpdf(m, family.mu0, np.sqrt(whole / family.lam)) + 2.0 * np.log(sd)
        logs += stats.norm.logpdf(records[:, None, None], m, sd).sum(axis=0)
        both = (m, sd)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    chain = chain_of(family, records, 1e-12, 0.0, 64, 3)
    kept = []
    for sweep in range(500):
        chain.sweep()
        if sweep >= 100:
            taken = chain.weights.argmax(axis=1)
            kept.append(chain.atoms[:, np.arange(64), taken])
    for values, grid in zip(np.stack(kept, axis=1), both, strict=True):
        mean = float((p * grid).sum())
        sd = float(np.sqrt((p * (grid - mean) ** 2).sum()))
        assert values.mean() == pytest.approx(mean, abs=0.06 * sd)
        assert values.std() == pytest.approx(sd, rel=0.06)


@pytest.mark.parametrize("family", [LEARNED, WEIGHTED], ids=["lambda fixed", "lambda learned"])
def test_the_base_of_betas_is_drawn_given_their_components(family: LearnedBeta) -> None:
    """Place and lambda of narrow components far apart, against quadrature."""
    each, rng = np.array([[30.0, 400.0, 900.0], [80.0, 700.0, 100.0]]), np.random.default_rng(5)
    atoms, base = np.repeat(each[:, None], 300, axis=1), None
    kept = []
    for sweep in range(90):
        base = _base_of_betas(family, atoms, np.ones((300, 3), dtype=bool), base, rng)
        if sweep >= 30:
            kept.append(base[:, [0, -1], 0])
    total, share = each.sum(axis=0), each[0] / each.sum(axis=0)
    steps = np.linspace(-7.0, 2.0, 150) if family.weight else np.zeros(1)
    places, steps = np.meshgrid(np.linspace(-7.0, 7.0, 300), steps)
    logs = -0.5 * (places / family.spread) ** 2 + family.weight * steps - np.exp(steps)
    for t, p in zip(total, share, strict=True):
        along = family.lam * np.exp(steps) * t
        logs += stats.beta.logpdf(
            p, 2.0 + along * special.expit(places), 2.0 + along * special.expit(-places)
        )
    p = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    found, other = np.moveaxis(np.array(kept), 2, 0)
    for values, grid in ((found, places), (np.log(other / family.lam), steps))[: 2 if family.weight else 1]:
        mean = float((p * grid).sum())
        sd = float(np.sqrt((p * (grid - mean) ** 2).sum()))
        assert values.mean() == pytest.approx(mean, abs=0.05 * sd)
        assert values.std() == pytest.approx(sd, rel=0.05)


@pytest.mark.parametrize(
    ("kernel", "base"), [pair for pair in known_layouts() if pair[0] in ("normal", "beta")]
)
def test_there_are_runs_for_every_base_measure_of_one_column(kernel: str, base: str) -> None:
    """The default one, whose location and scale are learned, among them."""
    layout = find_layout(kernel, base)
    assert layout is not None and layout.family is not None
    assert runs_for(layout.family(dict.fromkeys(layout.scalars, 2.5), {}))


def test_a_run_of_two_clusters_knows_mean_and_median_as_samples_do() -> None:
    """2,000 records of two normals: the mean has variance s^2/n, the median less than that of the sample."""
    start = Measures(np.array([2]), np.array([0.3, 0.7]), np.array([[-3.0, 2.0], [0.6, 1.5]]), np.zeros(1))
    base, n = NormalInverseGamma(0.0, 0.16, 3.0, 8.0), 2000
    drawn, each = clean_posteriors([start] * 8, np.ones(8), 0.0, base, n, np.random.default_rng(4))
    parts = np.arange(8 * each).reshape(8, each)
    means = [drawn.take(part).moments(base)[0].var(ddof=1) for part in parts]
    total = 0.3 * 0.36 + 0.7 * 2.25 + 0.21 * 25.0
    assert np.mean(means) == pytest.approx(total / n, rel=0.15)
    medians = [quantiles(drawn.take(part), base, 0.5).var(ddof=1) for part in parts]
    x = np.linspace(-3.0, 3.0, 60_001)
    cdf = 0.3 * stats.norm.cdf(x, -3.0, 0.6) + 0.7 * stats.norm.cdf(x, 2.0, 1.5)
    at = x[np.searchsorted(cdf, 0.5)]
    height = 0.3 * stats.norm.pdf(at, -3.0, 0.6) + 0.7 * stats.norm.pdf(at, 2.0, 1.5)
    assert 0.4 < np.mean(medians) * 4.0 * n * height**2 < 1.1


def test_what_is_left_of_a_run_lies_where_its_own_base_measure_is() -> None:
    """The prior predictive is centred 10,000 beyond 29 narrow clusters, which leave a run few free places.

    Of the mean a run is to say no more than s^2/n; a leftover of 1e-3 at the prior predictive would be 10.
    """
    family, n = LearnedNormal(50_000.0, 0.16, 3.0, 2e8, 25_000.0, 0.5), 2000
    rng = np.random.default_rng(3)
    atoms = np.stack([40_000.0 + 10.0 * rng.standard_normal(29), np.full(29, 3.0)])
    start = Measures(np.array([29]), np.full(29, 1.0 / 29.0), atoms, np.zeros(1))
    drawn, each = clean_posteriors([start] * 8, np.full(8, 3.0), 0.0, family, n, rng)
    means = drawn.moments(family)[0].reshape(8, each)
    assert means.var(axis=1, ddof=1).mean() == pytest.approx((atoms[0].var() + 9.0) / n, rel=0.4)
    assert drawn.rest.max() == 0.0


def test_records_of_runs_are_of_components_that_have_some(tmp_path: Path) -> None:
    """300 records of N(0, 1) under a wide base measure, of which what is left of P alone has draws.

    Given records without noise the mean is that of (1 - W) y + W m, W ~ Beta(1, n), with m the mean of a
    Dirichlet process under G0, whose variance is half of Var(y | G0): a component of one record would add
    tau^2/n^2 to V for each such record.
    """
    n, tau2, draws = 300, 1e4, 400
    base = NormalInverseGamma(0.0, 1e-4, 1e6, 1e6)  # variance 1, mean's variance tau2
    rng = np.random.default_rng(6)
    states = [
        {
            "n_clusters": np.ones(draws),
            "weights": 1.0 - rng.beta(1.0, n, (draws, 1)),
            "mean": rng.normal(0.0, 0.1, (draws, 1)),
            "variance": np.ones((draws, 1)),
            "concentration": np.ones(draws),
        }
        for _ in range(2)
    ]
    spec = a_spec(sampler__iterations=1000 + draws, model__concentration=1.0)
    path = write_chains(tmp_path / "c.h5", states, spec=spec, base=base, observed=rng.normal(0.0, 2.0, n))
    chains = read_chains([path])
    drawn = {}

    def noted(starts: Any, *rest: Any) -> Any:
        drawn["starts"] = starts
        return clean_posteriors(starts, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpmix.summary.variance.clean_posteriors", noted)
        found = mixture_shares(chains, family_of(chains), [np.linspace(-10.0, 10.0, 200)], {}, {})
    assert all(start.counts == [1] and start.weights == [1.0] for start in drawn["starts"])
    exact = 1.0 / n + 2.0 / ((n + 1.0) * (n + 2.0)) * 0.5 * tau2
    clean = clean_posteriors(drawn["starts"], np.ones(REPLICATES), 0.0, base, n, np.random.default_rng(1))
    means = clean[0].moments(base)[0].reshape(REPLICATES, clean[1])
    assert means.var(axis=1, ddof=1).mean() == pytest.approx(exact, rel=0.4)
    assert found.columns[""]["mean"] is not None


# ---- in summaries


def test_shares_are_in_json_file_text_and_report(tmp_path: Path) -> None:
    states = [states_of_mixture(80, np.random.default_rng(5)) for _ in range(2)]
    path = write_chains(tmp_path / "c.h5", states)
    summary = dpmix.summarize(path, tmp_path / "s.h5")
    found = summary.to_json()["variance_shares"]
    assert list(found) == ["mean", "median", "density"]
    assert all(sum(part.values()) == pytest.approx(1.0) for part in found.values())
    assert "Share of the posterior variance: mean" in " ".join(summary.to_text().split())
    page = short_page(summary)
    assert "Where the uncertainty comes from" in page and "privacy noise" in page
    with xarray.open_datatree(tmp_path / "s.h5") as tree:
        group = tree["variance_shares"]
        assert group["privacy"].sel(quantity="median") == found["median"]["privacy"]
    assert dpmix.summarize(path).to_json()["variance_shares"] == found


def test_of_several_columns_each_has_its_own(tmp_path: Path) -> None:
    states = [states_of_normals(60, np.random.default_rng(6)) for _ in range(2)]
    summary = dpmix.summarize(write_kernel(tmp_path / "c.h5", "multivariate_normal", states))
    found = summary.to_json()["variance_shares"]
    assert list(found) == ["height", "weight/kg"] and found["height"]["mean"]["prior"] < 0.5
    assert "mean of weight/kg" in " ".join(summary.to_text().split())
    assert short_page(summary)


def test_a_prior_of_infinite_variance_has_no_shares_of_mean_and_median(tmp_path: Path) -> None:
    states = [states_of_mixture(60, np.random.default_rng(7)) for _ in range(2)]
    wide = replace(NormalInverseGamma(0.0, 0.1, 3.0, 3.0), a=0.9)
    found = dpmix.summarize(write_chains(tmp_path / "c.h5", states, base=wide)).to_json()["variance_shares"]
    assert found["mean"] is None and found["median"] is None and found["density"] is not None
    assert found["reason"] == "the prior's variance of the mean is infinite"


# ---- the discrete model


@pytest.mark.parametrize("alpha", [0.5, 30.0])
def test_the_mean_of_a_dirichlet_process_given_records_varies_as_said(alpha: float) -> None:
    """P of the prior stands for the posterior: records of it, then the mean of the process given them."""
    rng = np.random.default_rng(8)
    n, size, atoms = 20, 3000, 400
    sticks = rng.beta(1.0, alpha, (size, atoms))
    weights = sticks * np.cumprod(np.concatenate([np.ones((size, 1)), 1.0 - sticks[:, :-1]], axis=1), axis=1)
    weights /= weights.sum(axis=1, keepdims=True)
    places = rng.exponential(2.0, (size, atoms))
    mean = (weights * places).sum(axis=1)
    sd = np.sqrt((weights * places**2).sum(axis=1) - mean**2)
    found = clean_variance_of_mean(mean, sd, mean, sd, alpha, n)
    assert clean_variance_of_mean(mean + 1e12, sd, mean + 1e12, sd, alpha, n) == pytest.approx(
        found, rel=1e-3
    )
    variances = []
    for row in range(size):
        records = rng.choice(places[row], n, p=weights[row])
        # H has the moments of G0 = Exp(mean 2) and of the records
        first = (alpha * 2.0 + records.sum()) / (alpha + n)
        second = (alpha * 8.0 + (records**2).sum()) / (alpha + n)
        variances.append((second - first**2) / (alpha + n + 1.0))
    assert found == pytest.approx(np.mean(variances), abs=4.5 * np.std(variances) / np.sqrt(size))


def test_parametric_models_say_what_is_not_known() -> None:
    for model, why in (
        ("linear_regression", "no mean, median and density"),
        ("mixture", "no components"),
        ("discrete", "no mean and standard deviation"),
    ):
        found = parametric_shares(held({"alpha": np.ones(9)}, {"model": model}, constants={}))
        assert why in plain(found.section().data)["reason"] and plain(found.section().data)["mean"] is None


def test_states_under_which_the_median_varies_are_chosen_more_often_and_count_less() -> None:
    """One state in fifty has no records about the median: evenly chosen, forty may hold none, or three."""
    family = NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
    near = Measures(np.array([2]), np.full(2, 0.5), np.array([[-0.1, 0.1], [1.0, 1.0]]), np.zeros(1))
    gap = Measures(np.array([2]), np.full(2, 0.5), np.array([[-4.0, 4.0], [1.0, 1.0]]), np.zeros(1))
    starts = [gap if i % 50 == 7 else near for i in range(1000)]
    some, counting = chosen_starts(starts, family, 400)
    assert some.size == REPLICATES and counting.mean() == pytest.approx(1.0)
    apart = np.array([starts[i] is gap for i in some])
    assert apart.sum() > REPLICATES / 3
    assert (apart @ counting) / REPLICATES == pytest.approx(1.0 / 50.0, rel=0.1)
    alike, evenly = chosen_starts([near] * 1000, family, 400)
    assert np.diff(alike).tolist() == [25] * (REPLICATES - 1) and np.all(evenly == 1.0)
    with np.errstate(all="raise"):
        assert chosen_starts([near] * 3, family, 2)[0].max() == 2


def test_shares_of_the_median_hang_little_on_the_states_that_runs_start_at(tmp_path: Path) -> None:
    """Under one state in eight the records leave a gap about the median: its share varied by half."""
    shares = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        draws, n = 400, 200
        states = []
        for _ in range(2):
            wide = np.where(rng.random(draws) < 0.12, 2.5, 0.4)[:, None]
            share = rng.beta(n / 2, n / 2, (draws, 1))
            states.append(
                {
                    "n_clusters": np.full(draws, 2),
                    "weights": np.concatenate([share, 1.0 - share], axis=1),
                    "mean": np.concatenate([-wide, wide], axis=1) + rng.normal(0.0, 0.4, (draws, 1)),
                    "variance": np.full((draws, 2), 1.0),
                    "concentration": np.ones(draws),
                }
            )
        spec = a_spec(sampler__iterations=1000 + draws, model__concentration=1.0)
        path = write_chains(
            tmp_path / f"{seed}.h5", states, spec=spec, observed=rng.normal(0.0, 2.0, n), base=_UNIT
        )
        part = found_of(path).columns[""]["median"]
        assert part is not None
        shares.append(part.sampling)
    assert np.std(shares, ddof=1) < 0.22 * np.mean(shares)


_UNIT = NormalInverseGamma(0.0, 0.1, 50.0, 50.0)
