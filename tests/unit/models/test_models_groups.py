"""Models given one release of several groups whose sizes are private: against all tables, and the joint law.

Comparisons with enumeration are in Monte Carlo standard errors of 200 batch means, all below 4.5: a right
sampler passes one with probability 7e-6, some 600 of them here.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmix import fit, summarize
from dpmix.api.predictive import predictive_records
from dpmix.errors import DataError, SpecError
from dpmix.kernels import Beta, NormalNIG
from dpmix.mechanisms.channels.count_likelihoods import NOISES, CountsWithNoise, SmoothedDraws
from dpmix.models.discrete.model import build as build_discrete
from dpmix.models.histogram_mixture.mixture_sweep import sticks_for
from dpmix.models.histogram_mixture.model import HistogramMixture, Quantities, write_functionals
from dpmix.models.naive_bayes.model import NaiveBayes
from dpmix.numerics.mixing import PitmanYor
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from dpmix.summary.summary_result import Summary
from tests.helpers.checks import params
from tests.helpers.pages import short_page
from tests.helpers.parametric import same_in_chunks
from tests.helpers.seeds import rng_of
from tests.oracles import databases, group_counts
from tests.oracles.mc import discrepancies

LIMIT, LEVEL = 4.5, 1e-5
NAMES = ("female", "male")
ADJACENCY = "replacement, private groups"


def histogram(
    released: Any, kind: dict[str, Any], n: int, groups: tuple[str, ...] = NAMES, bins: int = 3
) -> Release:
    """Return the release of a histogram of groups over [-1, 3]."""
    numbers = np.array(released, dtype=np.float64)
    mechanism: dict[str, Any] = {
        "bins": bins,
        "domain": [[-1.0, 3.0]],
        "requested": {"epsilon": 1.0},
        "groups": {"sex": list(groups)},
    }
    columns: tuple[str, ...] = ("x",)
    if kind["kind"] == "noisy":
        mechanism |= {"kind": "perturbed_histogram", "noise": kind["noise"], "scale": [kind["scale"]]}
        values = numbers[:, None]
    else:
        draws = int(numbers.sum())
        mechanism |= {"kind": "smoothed_histogram", "draws": draws, "weight": kind["weight"], "scale": []}
        cells = np.repeat(np.arange(len(numbers)), numbers.astype(int))
        values = np.stack([-1.0 + 4.0 * (cells % bins + 0.3) / bins, cells // bins], axis=1).astype(float)
        columns = ("x", "sex")
    return Release(values, columns, mechanism, 1.0, 0.0, None, n, adjacency=ADJACENCY, trust="global")


NOISY: dict[str, Any] = {"kind": "noisy", "noise": "laplace", "scale": 1.1}
GEOMETRIC: dict[str, Any] = {"kind": "noisy", "noise": "geometric", "scale": 1.1}
SMOOTHED: dict[str, Any] = {"kind": "smoothed", "weight": 0.2}
RELEASED = {"noisy": [1.6, -0.8, 0.4, 2.2, 0.3, -0.5], "smoothed": [2, 0, 1, 3, 0, 1]}


def worst(draws: NDArray[Any], exact: NDArray[Any]) -> float:
    """Return the largest gap in standard errors, over what is not certain."""
    exact = np.asarray(exact, dtype=float)
    return float(np.max(np.abs(discrepancies(np.asarray(draws, dtype=float), exact))))


def counts_of(chain: Any, draws: int, thin: int) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return the counts at each draw (draw, G m), and what the draws hold."""
    parts, counts = [], np.empty((draws, len(chain.state["counts"])))
    chain.keep(thin=thin, skip=300)
    chain.proceed(300)
    for t in range(draws):
        chain.proceed(chain.sweeps + thin)
        counts[t] = chain.state["counts"]
        if t % 500 == 499:
            parts.append(chain.take())
    return counts, {name: np.concatenate([part[name][1] for part in parts]) for name in parts[0]}


def table_gaps(tables: group_counts.Tables, counts: NDArray[Any]) -> float:
    """Return the largest gap of the frequencies of the likelier tables."""
    flat = tables.counts.reshape(len(tables.counts), -1)
    likely = np.flatnonzero(tables.probability > 5e-3)
    assert len(likely) > 15
    hits = (counts[:, None, :] == flat[likely][None]).all(-1)
    return worst(hits, tables.probability[likely])


DISCRETE = [(name, n) for name in ("laplace", "geometric", "smoothed") for n in (4, 6)]


@pytest.mark.parametrize(("name", "n"), params(DISCRETE, {("laplace", 4), ("smoothed", 6)}))
def test_discrete_is_that_of_all_tables(name: str, n: int) -> None:
    kind = {"laplace": NOISY, "geometric": GEOMETRIC, "smoothed": SMOOTHED}[name]
    released = np.array(RELEASED[kind["kind"]], dtype=float)
    released = np.rint(released) if kind is GEOMETRIC else released
    if n == 6:  # of two bins, the base measure uneven
        released, base = released[[0, 1, 3, 4]], [0.7, 0.3]
    else:
        base = [0.2, 0.5, 0.3]
    spec = load_spec({"model": {"kind": "discrete", "concentration": 1.7, "base": base}})
    release = histogram(released, kind, n, bins=len(base))
    model = build_discrete(spec, release)
    chain = model.make_chain(np.random.default_rng([5, n]))
    counts, draws = counts_of(chain, 10_000, 2)
    shapes = 1.7 * np.array(base)
    exact = group_counts.discrete(kind, released, n, 2, shapes)
    assert table_gaps(exact, counts) < LIMIT
    sizes = exact.mean(lambda c: sum(c))
    assert worst(draws["group_size"], sizes) < LIMIT
    assert worst(draws["group_share"], (1.0 + sizes) / (2.0 + n)) < LIMIT
    # Pr(X <= edge) of each group: the prior's shapes and its counts, on those of the size
    below = exact.mean(lambda c: (shapes[0] + c[0]) / (shapes.sum() + sum(c)))
    at = np.searchsorted(model.coords["grid"], -1.0 + 4.0 / len(base) - 1e-9)
    assert model.coords["grid"][at] == pytest.approx(-1.0 + 4.0 / len(base), abs=0.03)
    if len(base) == 2:  # an edge is a point of the grid
        assert worst(draws["cdf"][:, :, at], below) < LIMIT


def test_discrete_groups_have_names_and_resume() -> None:
    spec = load_spec({"model": {"kind": "discrete"}})
    model = build_discrete(spec, histogram(RELEASED["noisy"], NOISY, 40))
    draws = same_in_chunks(model, 30, 2, skip=5)
    assert draws["quantile"].shape == (30, 2, 3)
    assert draws["cdf"].shape == (30, 2, 101 + 2)  # the edges between three bins are points, too
    assert [p.dims[0] for p in model.parameters] == ["group"] * len(model.parameters)
    assert list(model.coords["group"]) == list(NAMES)
    assert (draws["group_size"].sum(axis=1) == 40).all()


COUNTS = [1.9, 0.4, -0.6, 1.2, 0.8, -0.2, 1.5, 0.3]


@pytest.mark.parametrize("offers", [None, 0, 2], ids=["counts", "records", "soma"])
def test_naive_bayes_is_that_of_all_databases(offers: int | None) -> None:
    mechanism = {
        "kind": "noisy_counts",
        "levels": [2],
        "classes": 2,
        "noise": "laplace",
        "scale": [1.5],
        "groups": {"sex": list(NAMES)},
    }
    values = np.array(COUNTS)[:, None]
    release = Release(values, ("count",), mechanism, 1.0, 0.0, None, 3, adjacency=ADJACENCY, trust="global")
    exact = databases.classes(values[:, 0], [2], 4, 1.5, 1.3, 3)
    model = NaiveBayes(release, 1.3, offers)
    draws = model.make_chain(np.random.default_rng(8)).run(10_000, thin=1 if offers is None else 3, skip=200)
    joint = (draws["group_share"][:, :, None] * draws["p"]).reshape(-1, 4)
    assert worst(joint, exact.p) < LIMIT
    assert worst(joint**2, exact.p_squared) < LIMIT
    np.testing.assert_allclose(draws["p"].sum(axis=2), 1.0)
    assert worst(draws["p_feature_1"].reshape(-1, 8), np.ravel(exact.levels[0])) < LIMIT
    sizes = ((4 * 1.3 + 3) * np.array(exact.p) - 1.3).reshape(2, 2).sum(axis=1)
    assert worst(draws["group_size"], sizes) < LIMIT
    same_in_chunks(model, 20, 2, skip=3)


BASES = {"normal": (0.3, 0.25, 2.5, 1.5), "beta": (2.0, 2.0, 2.0, 1.0, -1.0, 3.0)}
GRID = np.array([-0.7, 0.4, 1.6])
WANTED = Quantities((0.25, 0.5, 0.75))


def likelihood_of(kind: dict[str, Any], released: Any, n: int) -> Any:
    """Return the tuple that the sampler takes."""
    released = np.array(released, dtype=float)
    if kind["kind"] == "smoothed":
        return SmoothedDraws(released, (1 - kind["weight"]) * len(released) / n, kind["weight"])
    return CountsWithNoise(released, NOISES[kind["noise"]], kind["scale"])


def mixture(
    kernel: str,
    kind: dict[str, Any],
    released: Any,
    n: int,
    bins: int,
    d: float,
    alpha: Any,
    groups: int = 2,
    wanted: Quantities = WANTED,
) -> HistogramMixture:
    """Return the mixture of groups over [-1, 3], or over [-1, 2] of a beta kernel."""
    law = NormalNIG(*BASES["normal"]) if kernel == "normal" else Beta(*BASES["beta"])
    mixing = PitmanYor(1.0, d, *alpha) if isinstance(alpha, tuple) else PitmanYor(alpha, d)
    edges = np.linspace(-1.0, PLACES[kernel][1] - 1.0, bins + 1)
    sticks = sticks_for(mixing, n)
    assert sticks is not None
    names = [f"group {g}" for g in range(groups)]
    likelihood = likelihood_of(kind, released, n)
    return HistogramMixture(likelihood, n, edges, names, law, mixing, sticks, GRID, wanted, {}, {})


PLACES = {"normal": (-1.0, 4.0), "beta": (-1.0, 3.0)}
CASES: list[Any] = [
    ("normal", "noisy", 0.0, (2.0, 2.0)),
    ("beta", "smoothed", 0.3, 1.0),
    ("normal", "smoothed", 0.0, 1.0),
    ("beta", "noisy", 0.0, (2.0, 2.0)),
]


@pytest.mark.parametrize(("kernel", "name", "d", "alpha"), params(CASES, set(CASES[:1])))
def test_mixture_is_that_of_all_tables_and_partitions(kernel: str, name: str, d: float, alpha: Any) -> None:
    kind = NOISY if name == "noisy" else SMOOTHED
    released, n = np.array(RELEASED[name], dtype=float), 4
    exact = group_counts.mixture(
        kind, released, n, 2, d, alpha, kernel, BASES[kernel], (3, *PLACES[kernel]), GRID
    )
    model = mixture(kernel, kind, released, n, 3, d, alpha, wanted=Quantities(()))
    chain = model.make_chain(rng_of("mixture", kernel, name, d, alpha))
    counts, draws = counts_of(chain, 20_000, 1)
    assert table_gaps(exact.tables, counts) < LIMIT
    sizes = draws["group_size"][:, :, None] == np.arange(n + 1)
    assert worst(sizes, exact.sizes) < LIMIT
    often = (
        exact.clusters > 1e-3
    )  # of what is rarer there may be no draw, and no error by which to judge that
    clusters = draws["n_clusters"][:, :, None] == np.arange(n + 1)
    assert worst(clusters[:, often], exact.clusters[often]) < LIMIT
    assert worst(draws["density"], exact.density) < LIMIT
    assert worst(draws["density"] ** 2, exact.density_squared) < LIMIT
    if isinstance(alpha, tuple):
        assert worst(draws["concentration"], exact.concentration) < LIMIT
    expected = exact.sizes @ np.arange(n + 1)
    assert worst(draws["group_share"], (1.0 + expected) / (2.0 + n)) < LIMIT


def simulate(rng: np.random.Generator, model: HistogramMixture, chain: Any, kind: dict[str, Any]) -> None:
    """Draw state and release from the joint law: groups, clusters, records, counts, noise."""
    groups, bins = len(model.groups), len(model.edges) + 1
    state = chain._groups
    shares = rng.dirichlet(np.ones(groups))
    for g, size in enumerate(rng.multinomial(model.n, shares)):
        alpha = rng.gamma(model.mixing.shape) / model.mixing.rate
        members: list[int] = []
        for i in range(size):
            weights = np.array([*members, alpha]) / (i + alpha)
            h = int(rng.choice(len(weights), p=weights))
            members = (
                [*members, 1] if h == len(members) else [*members[:h], members[h] + 1, *members[h + 1 :]]
            )
        k = len(members)
        counts = np.zeros(bins, dtype=np.int64)
        for h, number in enumerate(members):
            mu0, lam, a, b = BASES["normal"]
            variance = b / rng.gamma(a)
            mean = rng.normal(mu0, np.sqrt(variance / lam))
            state.theta[g, :, h] = mean, variance
            y = rng.normal(mean, np.sqrt(variance), number)
            counts += np.bincount(np.searchsorted(model.edges, y, side="right"), minlength=bins)
        state.members[g, :k], state.clusters[g], state.concentration[g] = members, k, alpha
        state.counts[g * bins : (g + 1) * bins] = counts
    model.likelihood.released[:] = state.counts + rng.laplace(0.0, kind["scale"], groups * bins)


def statistics(chain: Any) -> list[float]:
    """Return numbers that tell of all parts of the state, with the release."""
    state, released = chain._groups, chain.model.likelihood.released
    bins = len(chain.model.edges) + 1
    k = state.clusters
    sizes = state.counts.reshape(-1, bins).sum(axis=1)
    heavy = [float(state.theta[g, 0, np.argmax(state.members[g, : k[g]])]) if k[g] else 0.0 for g in range(2)]
    spread = [float(np.log(state.theta[g, 1, : k[g]]).sum()) for g in range(2)]
    gap = float(np.abs(released - state.counts).sum())
    return [
        *sizes,
        *state.counts[:3],
        *k,
        *state.concentration,
        *heavy,
        *spread,
        gap,
        float(state.members[0, : k[0]].max(initial=0)),
    ]


def joint_p_values(restarts: int, sweeps: int, seed: int) -> NDArray[np.float64]:
    """Sweep from draws of the joint law, and compare where that leads with as many draws left alone."""
    kind = NOISY | {"scale": 2.0}
    model = mixture("normal", kind, np.zeros(8), 25, 4, 0.0, (2.0, 2.0))
    rng = np.random.default_rng(seed)
    chain = model.make_chain(rng)
    moved, fresh = [], []
    for turn in range(2 * restarts):
        simulate(rng, model, chain, kind)
        if turn < restarts:
            chain.sweep(sweeps)
        (moved if turn < restarts else fresh).append(statistics(chain))
    one, other = np.array(moved), np.array(fresh)
    return np.array([stats.ks_2samp(one[:, i], other[:, i]).pvalue for i in range(one.shape[1])])


def test_joint_law_is_invariant_under_sweeps_of_a_mixture() -> None:
    assert joint_p_values(1500, 3, 11).min() > LEVEL


def test_a_mixture_goes_on_bit_for_bit_through_its_ladder() -> None:
    released = [900.3, 200.1, 40.9, 120.2, 700.0, 38.5]
    draws = same_in_chunks(mixture("normal", NOISY, released, 2000, 3, 0.0, (2.0, 2.0)), 25, 2, skip=40)
    assert (draws["group_size"].sum(axis=1) == 2000).all()
    assert np.unique(draws["record_mean"]).size == 50


@pytest.mark.parametrize("kernel", BASES)
def test_functionals_are_those_of_the_mixture(kernel: str) -> None:
    law = NormalNIG(*BASES["normal"]) if kernel == "normal" else Beta(*BASES["beta"])
    weights = np.array([0.5, 0.3, 0.2])
    theta = (
        np.array([[0.1, 1.5, -0.6], [0.3, 0.02, 1.0]])
        if kernel == "normal"
        else np.array([[2.0, 0.6, 9.0], [5.0, 0.8, 3.0]])
    )
    parts = [
        stats.norm(a, np.sqrt(b)) if kernel == "normal" else stats.beta(a, b, -1.0, 3.0) for a, b in theta.T
    ]
    points = np.linspace(-0.9, 1.9, 7)
    row, cdf, density = np.zeros(7), np.zeros(7), np.zeros(7)
    quantiles, marks = np.array([0.001, 0.5, 0.99]), np.array([-0.2, 2.5])
    write_functionals(law, theta, weights, 3, points, quantiles, marks, row, cdf, density)
    mean = sum(w * part.mean() for w, part in zip(weights, parts, strict=True))
    square = sum(w * (part.var() + part.mean() ** 2) for w, part in zip(weights, parts, strict=True))
    np.testing.assert_allclose(row[:2], [mean, np.sqrt(square - mean**2)], rtol=1e-12)
    for q, y in zip(quantiles, row[2:5], strict=True):
        assert sum(w * part.cdf(y) for w, part in zip(weights, parts, strict=True)) == pytest.approx(
            q, rel=1e-9
        )
    np.testing.assert_allclose(
        row[5:], sum(w * p.cdf(marks) for w, p in zip(weights, parts, strict=True)), rtol=1e-10
    )
    np.testing.assert_allclose(
        cdf, sum(w * p.cdf(points) for w, p in zip(weights, parts, strict=True)), rtol=1e-10
    )
    np.testing.assert_allclose(
        density, sum(w * p.pdf(points) for w, p in zip(weights, parts, strict=True)), rtol=1e-10
    )


def test_draws_from_the_prior_of_a_mixture_are_of_its_process() -> None:
    """Var P(A) = E 1/(1 + alpha) (E F^2 - (E F)^2), F the kernel's mass of A, integrated over G0."""
    model = mixture("normal", NOISY, np.zeros(6), 200, 3, 0.0, (2.0, 2.0), wanted=Quantities((0.5,), (2.0,)))
    found = model.prior_draws(np.random.default_rng(8), 3000)
    assert set(found) == {
        "record_mean",
        "record_sd",
        "record_quantile",
        "record_tail",
        "concentration",
        "group_share",
    }
    assert all(values.shape[:2] == (3000, 2) for values in found.values())
    assert stats.kstest(found["concentration"][:, 0], stats.gamma(2.0, scale=0.5).cdf).pvalue > LEVEL
    assert stats.kstest(found["group_share"][:, 0], "uniform").pvalue > LEVEL
    mu0, lam, a, b = BASES["normal"]
    level = (np.arange(200) + 0.5) / 200
    sd = (b / stats.gamma(a).ppf(level))[:, None] ** 0.5
    mean = mu0 + sd / np.sqrt(lam) * stats.norm.ppf(level)
    above = stats.norm.sf(2.0, mean, sd)
    shared = float((1.0 / (1.0 + stats.gamma(2.0, scale=0.5).ppf(level))).mean())
    variance = shared * above.var()
    tail = found["record_tail"][:, 0, 0]
    assert abs(tail.mean() - above.mean()) < LIMIT * np.sqrt(variance / 3000)
    assert tail.var() == pytest.approx(variance, rel=0.1)
    np.testing.assert_array_equal(found["record_quantile"][:, 0, 0] <= 2.0, tail <= 0.5)
    middle = found["record_mean"][:, 0]
    assert abs(middle.mean() - mu0) < LIMIT * middle.std() / np.sqrt(3000)
    assert middle.var() == pytest.approx(shared * b / (lam * (a - 1.0)), rel=0.25)


SPEC: dict[str, Any] = {
    "model": {"kind": "mixture", "base": {"mu0": 0.3, "lambda": 0.25, "a": 2.5, "b": 1.5}},
    "sampler": {"iterations": 60, "burn_in": 20, "chains": 2, "seed": 4},
}


def test_a_mixture_of_groups_is_fitted_and_reported(tmp_path: Path) -> None:
    release = histogram([60.2, 11.7, 3.9, 20.5, 41.0, 9.6], NOISY, 150)
    out = tmp_path / "c.h5"
    fit(SPEC, release, out, quiet=True)
    summary = summarize(out, tmp_path / "s.h5")
    assert isinstance(summary, Summary)
    rows = [f"{row}[{name}]" for row in ("mean", "sd") for name in NAMES]
    rows += [f"quantile[{name},{level}]" for name in NAMES for level in ("0.25", "0.5", "0.75")]
    rows += [
        f"{row}[{name}]"
        for row in ("group_share", "group_size", "n_clusters", "concentration")
        for name in NAMES
    ]
    assert list(summary.parameters) == [*rows, "log_likelihood"]
    found = summary.to_json()
    assert list(found["density"]) == list(found["distribution"]) == list(NAMES)
    for name in (f"{row}[{group}]" for row in ("mean", "sd", "quantile") for group in NAMES):
        own = [row for row in found["parameters"] if row.startswith(name.rstrip("]"))]
        assert all(found["parameters"][row]["contraction"] is not None for row in own)
    check = found["check"]
    assert 0.0 < check["overall"] <= 1.0 and len(check["p"]) == 6
    assert check["entries"][3]["name"] == "male: [-1, 0.333333)"
    with h5py.File(out) as file:
        replicates, masses = file["posterior_predictive/z"][()], file["posterior/bin_probability"][()]
        assert replicates.shape == (2, 40, 6, 1)
        np.testing.assert_allclose(masses.sum(axis=-1), 1.0)
        assert abs(replicates.sum(axis=(2, 3)).mean() - 150.0) < 30.0
    assert "joint" not in found
    density = found["density"]["female"]
    assert np.trapezoid(density["mean"], density["grid"]) > 0.5
    assert 0.0 < density["hellinger_from_prior"] < 1.0
    assert summary.provenance.spec.count("data_augmentation") == 1
    assert "Density in male: highest at" in summary.to_text()
    page = short_page(summary)
    assert "Density of a record in female" in page
    assert "over their sum" in page
    with pytest.raises(DataError, match="of groups by sex, of which no records"):
        predictive_records(out, records=5)


def test_a_mixture_of_groups_has_a_prior_from_the_bounds_and_the_quantities_asked_for(tmp_path: Path) -> None:
    release = histogram([60.2, 11.7, 3.9, 20.5, 41.0, 9.6], NOISY, 150)
    (low, high), name = release.mechanism["domain"][0], release.columns[0]
    middle = 0.5 * (low + high)
    spec = {
        "model": {"kind": "mixture"},
        "sampler": SPEC["sampler"],
        "summary": {"quantiles": [0.9, 0.1], "tails": {name: [middle]}, "cdf": [low, middle]},
    }
    out = tmp_path / "c.h5"
    fit(spec, release, out, quiet=True)
    summary = summarize(out)
    assert isinstance(summary, Summary)
    rows = [f"quantile[{g},{level}]" for g in NAMES for level in ("0.1", "0.9")]
    rows += [f"tail[{g},{middle:g}]" for g in NAMES]
    rows += [f"cdf[{g},{point:g}]" for g in NAMES for point in (low, middle)]
    assert [row for row in summary.parameters if row.startswith(("quantile", "tail", "cdf"))] == rows
    assert list(summary.to_json()["shape_contraction"]) == rows[: 2 * len(NAMES)]
    for g in NAMES:
        tail, below = summary.series[f"tail[{g},{middle:g}]"], summary.series[f"cdf[{g},{middle:g}]"]
        np.testing.assert_allclose(tail + below, 1.0)
        under = summary.series[f"quantile[{g},0.1]"] <= middle
        assert (under == (below >= 0.1)).all()
    width = high - low
    assert f"a cluster's mean is {middle:.4g} +- {width / 4:.3g}" in summary.prior
    assert "follows the public bounds" in summary.prior
    assert "follows the public bounds" in " ".join(summary.to_text().split())


def test_a_prior_that_holds_the_sd_of_a_group_up_is_told_and_doubted(tmp_path: Path) -> None:
    """All records of both groups are in the middle bin, under a base of clusters twice as wide."""
    release = histogram([0.4, 71.0, -1.2, 0.7, 80.3, 0.1], NOISY, 150)
    model = {"kind": "mixture", "base": {"mu0": 1.0, "lambda": 1.0, "a": 9.0, "b": 30.0}}
    fit(SPEC | {"model": model}, release, tmp_path / "c.h5", quiet=True)
    summary = summarize(tmp_path / "c.h5")
    assert isinstance(summary, Summary)
    held = [name for name, scalar in summary.parameters.items() if scalar.held_up]
    assert held == [f"sd[{name}]" for name in NAMES]
    (remark,) = [text for text in summary.warnings if text.startswith("The prior holds up")]
    assert all(f"{name} (its interval begins at" in remark for name in held)
    (doubt,) = [text for text in summary.verdict.reasons if text.startswith("The prior holds up")]
    assert f"{held[0]} (and 1 more)" in doubt


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("sampler.kind=neal8", "sampler.kind: neal8 moves record by record.*use data_augmentation"),
        ("sampler.kind=private_slice", "sampler.kind: private_slice moves record by record"),
        (
            "sampler={kind: data_augmentation, latent: metropolis}",
            "sampler.latent: metropolis moves record by record",
        ),
        ("model.discount=0.6", "model.discount: so large that"),
        ("summary.grid=[[0, 1, 5], [0, 1, 5]]", "summary.grid: has 2 grids for the one column"),
        ("model.base={empirical: true}", "model.base.empirical: a release of groups does not tell"),
        ("summary.gini=true", "summary.gini: is not for mixtures of groups"),
        ("summary.tails={height: [1]}", "summary.tails: there is no column 'height'; it has "),
        ("sampler.store=[allocations]", "sampler.store: allocations say nothing here"),
    ],
)
def test_what_is_not_for_mixtures_of_groups(override: str, sentence: str, tmp_path: Path) -> None:
    release = histogram(RELEASED["noisy"], NOISY, 40)
    with pytest.raises(SpecError, match=sentence):
        fit(SPEC, release, tmp_path / "c.h5", overrides=[override], quiet=True)


def test_the_sampler_on_counts_is_for_groups_alone(tmp_path: Path) -> None:
    release = histogram(RELEASED["noisy"][:3], NOISY, 40)
    alone = release.mechanism.stated()
    del alone["groups"]
    release = dataclasses.replace(release, mechanism=alone)
    with pytest.raises(SpecError, match="data_augmentation is not for mixtures but those of groups"):
        fit(SPEC, release, tmp_path / "c.h5", overrides=["sampler.kind=data_augmentation"], quiet=True)
    with pytest.raises(SpecError, match="sampler.kind: data_augmentation is not for mixtures"):
        load_spec(SPEC | {"mechanism": {"kind": "laplace", "epsilon": 1}}, ["sampler.kind=data_augmentation"])


def test_records_of_groups_do_not_move_one_by_one() -> None:
    spec = load_spec({"model": {"kind": "discrete"}, "sampler": {"latent": "metropolis"}})
    with pytest.raises(SpecError, match="sampler.latent: metropolis is not for a release of groups"):
        build_discrete(spec, histogram(RELEASED["noisy"], NOISY, 40))
