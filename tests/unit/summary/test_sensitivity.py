"""Power scaling: against ArviZ, closed forms, an enumeration of partitions; what is flagged and what not."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from scipy import special, stats

import dpmix
from dpmix.errors import DataError
from dpmix.kernels.layout import Floats
from dpmix.kernels.normal.family import NormalInverseGamma
from dpmix.models.linear_regression.build import build
from dpmix.models.linear_regression.model import LinearRegression, draw_prior
from dpmix.models.meaning_base import Unavailable
from dpmix.results.result import plain
from dpmix.run.chains_file import Stored
from dpmix.run.chains_reader import NamedChains, read_chains
from dpmix.spec import load_spec
from dpmix.summary.prior import log_prior
from dpmix.summary.sensitivity import (
    SENSITIVE,
    Index,
    Sensitivity,
    power_scaling,
    sensitivity_of,
    sensitivity_remarks,
)
from tests.helpers.chains_files import BASE, BETA, NIW, TRUNCATED, a_spec, states_of_mixture, write_chains
from tests.helpers.pages import short_page
from tests.oracles.niw import log_with_learned_scales

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ announces things once a day
    from arviz_base import from_dict
    from arviz_stats import psense


# ---- indices


def normal_model(prior_sd: float, centre: float, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Draws (2, 8000) of theta ~ N(0, prior_sd^2) given a mean of `centre` with error 1/2; both logs."""
    precision = prior_sd**-2.0 + 4.0
    theta = rng.normal(4.0 * centre / precision, precision**-0.5, (2, 8000))
    return theta, stats.norm.logpdf(theta, 0.0, prior_sd), stats.norm.logpdf(centre, theta, 0.5)


def exact_index(prior_sd: float, centre: float, of_prior: bool, ends: tuple[float, float]) -> float:
    """The index by quadrature: power scaling of a normal prior or likelihood divides its variance."""
    x = np.linspace(*ends, 20_001)

    def cdf(power: float) -> Floats:
        prior, data = prior_sd**-2.0 * (power if of_prior else 1.0), 4.0 * (1.0 if of_prior else power)
        return stats.norm.cdf(x, data * centre / (prior + data), (prior + data) ** -0.5)

    def distance(p: Floats, q: Floats) -> float:
        middle = 0.5 * (p + q)
        both = special.rel_entr(p, middle) + special.rel_entr(q, middle)  # the linear terms cancel
        return float(np.sqrt(np.trapezoid(both, x) / np.log(2.0) / np.trapezoid(p + q, x)))

    total = 0.0
    for power in (0.99, 1.01):
        here, there = cdf(1.0), cdf(power)
        total += max(distance(here, there), distance(1.0 - here, 1.0 - there)) / abs(np.log2(power))
    return 0.5 * total


@pytest.mark.parametrize(("prior_sd", "centre"), [(1.0, 3.0), (1.0, 0.0), (0.5, 0.7), (30.0, 3.0)])
def test_indices_of_a_conjugate_model_are_exact(prior_sd: float, centre: float) -> None:
    theta, prior, likelihood = normal_model(prior_sd, centre, np.random.default_rng(4))
    ends = (float(theta.min()), float(theta.max()))
    for logs, of_prior in ((prior, True), (likelihood, False)):
        found = power_scaling(logs, {"theta": theta}).indices["theta"]
        assert found == pytest.approx(exact_index(prior_sd, centre, of_prior, ends), rel=0.05, abs=0.004)


def test_indices_are_those_of_arviz() -> None:
    theta, prior, likelihood = normal_model(1.0, 2.0, np.random.default_rng(5))
    tree = from_dict(
        {
            "posterior": {"theta": theta, "square": theta**2},
            "log_prior": {"theta": prior - 1000.0},
            "log_likelihood": {"z": likelihood[..., None]},
        }
    )
    series = {"theta": theta, "square": theta**2}
    for group, logs in (("prior", prior), ("likelihood", likelihood)):
        theirs = psense(tree, group=group)
        for name, index in power_scaling(logs, series).indices.items():
            assert index == pytest.approx(float(theirs[name]), rel=1e-6)


@pytest.mark.parametrize(
    ("prior_sd", "centre", "says"),
    [(1.0, 3.0, "potential prior-data conflict"), (30.0, 3.0, "")],
)
def test_a_conflict_is_flagged_and_a_vague_prior_is_not(prior_sd: float, centre: float, says: str) -> None:
    theta, prior, likelihood = normal_model(prior_sd, centre, np.random.default_rng(6))
    of_prior = power_scaling(prior, {"theta": theta}, noise=True)
    of_likelihood = power_scaling(likelihood, {"theta": theta})
    found = Index(of_prior.indices["theta"], of_likelihood.indices["theta"], of_prior.noise["theta"])
    assert found.diagnosis == says
    assert (found.prior or 0.0) > 4.0 * (found.noise or 0.0) if says else (found.prior or 0.0) < SENSITIVE


def test_what_has_nothing_to_do_with_the_prior_is_below_the_noise() -> None:
    """Chains that move slowly: 2,000 draws, worth about 100, under a prior whose log density varies much."""
    rng = np.random.default_rng(7)

    def slow() -> Floats:
        steps = rng.standard_normal((4, 500))
        for t in range(1, 500):
            steps[:, t] = 0.9 * steps[:, t - 1] + np.sqrt(1 - 0.81) * steps[:, t]
        return steps

    above = sensitive = 0
    for _ in range(60):
        found = power_scaling(5.0 * slow(), {"x": slow()}, noise=True)
        above += (found.indices["x"] or 0.0) >= SENSITIVE
        sensitive += Index(found.indices["x"], None, found.noise["x"]).sensitive
    assert above > 40  # which would be warned of
    assert sensitive <= 9
    related = slow()
    found = power_scaling(5.0 * related, {"x": related + 0.1 * slow()}, noise=True)
    assert Index(found.indices["x"], None, found.noise["x"]).sensitive


def test_heavy_tailed_weights_are_refused() -> None:
    rng = np.random.default_rng(8)
    logs = 200.0 * np.log(rng.random((2, 1000)))  # weights u^-2, of which not even the mean exists
    with pytest.raises(Unavailable, match=r"Pareto k = .*, above 0.7"):
        power_scaling(logs, {"x": rng.standard_normal((2, 1000))})
    with pytest.raises(Unavailable, match="fewer than 100"):
        power_scaling(logs[:, :20], {"x": logs[:, :20]})
    assert power_scaling(np.ones((2, 100)), {"x": logs[:, :100]}).indices == {"x": 0.0}
    assert power_scaling(logs[:, :100] * 1e-3, {"x": np.ones((2, 100))}).indices == {"x": 0.0}


# ---- densities of base measures


def parameters_of(family: Any, size: int) -> tuple[dict[str, Floats], Floats]:
    """Draw components from G0, as chains files hold them, with SciPy's log densities up to a constant."""
    atoms = family.draw(np.random.default_rng(9), size)
    if family is BETA:
        logs = stats.gamma.logpdf(atoms[0], 2.0, scale=1 / 2.0)
        return dict(zip("ab", atoms, strict=True)), logs + stats.gamma.logpdf(atoms[1], 3.0, scale=1 / 1.5)
    if family is NIW:
        mean, covariance = family.split(atoms)
        law = stats.invwishart(family.nu, family.psi)
        logs = [
            law.logpdf(c) + stats.multivariate_normal.logpdf(m, family.mu0, c / family.lam)
            for m, c in zip(mean, covariance, strict=True)
        ]
        return {"mean": mean, "covariance": covariance}, np.array(logs)
    variance = atoms[1] ** 2
    whole = variance + (family.floor if family is TRUNCATED else 0.0)
    logs = stats.invgamma.logpdf(whole, family.a, scale=family.b)
    logs += stats.norm.logpdf(atoms[0], family.mu0, np.sqrt(whole / family.lam))
    return {"mean": atoms[0], "variance": variance}, logs


@pytest.mark.parametrize("family", [BASE, TRUNCATED, BETA, NIW], ids=["nig", "truncated", "beta", "niw"])
def test_base_densities_are_scipys_less_their_mean(family: Any) -> None:
    parameters, logs = parameters_of(family, 4000)
    found = family.centred_log_density(parameters)
    np.testing.assert_allclose(found - found[0], logs - logs[0], rtol=1e-6, atol=1e-6)
    assert abs(found.mean()) < 4.5 * found.std() / np.sqrt(found.size)


Z = np.array([-1.0, 0.2, 2.5])
PARTITIONS = [[[0], [1], [2]], [[0, 1], [2]], [[0, 2], [1]], [[1, 2], [0]], [[0, 1, 2]]]


def updated(base: NormalInverseGamma, z: Floats) -> tuple[NormalInverseGamma, float]:
    """Base measure given records, and their log marginal density."""
    n, mean = z.size, z.mean()
    lam, a = base.lam + n, base.a + 0.5 * n
    b = base.b + 0.5 * ((z - mean) ** 2).sum() + 0.5 * base.lam * n * (mean - base.mu0) ** 2 / lam
    log = special.gammaln(a) - special.gammaln(base.a) + base.a * np.log(base.b) - a * np.log(b)
    log += 0.5 * np.log(base.lam / lam) - 0.5 * n * np.log(2.0 * np.pi)
    return NormalInverseGamma((base.lam * base.mu0 + n * mean) / lam, lam, a, b), float(log)


def posterior_of(base: NormalInverseGamma, z: Floats) -> tuple[Floats, float, float]:
    """Probabilities of partitions of three records, E[clusters], E[mean of the first one's cluster]."""
    logs, clusters, means = [], [], []
    for blocks in PARTITIONS:
        parts = [updated(base, z[block]) for block in blocks]
        logs.append(
            sum(log + special.gammaln(len(block)) for (_, log), block in zip(parts, blocks, strict=True))
        )
        clusters.append(len(blocks))
        means.append(next(g.mu0 for (g, _), block in zip(parts, blocks, strict=True) if 0 in block))
    p = special.softmax(logs)
    return p, float(p @ clusters), float(p @ means)


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_weights_are_those_of_a_base_measure_raised_to_a_power(unit: float) -> None:
    """All partitions of three records, under bases whose density is g0^t over its integral: again NIG.

    The derivatives at t = 1 of what is expected are covariances with the log density, in any unit.
    """
    z = Z * unit
    base = NormalInverseGamma(3.0 * unit, 0.3, 3.0, 2.0 * unit**2)
    slopes = [0.0, 0.0]
    for t, sign in ((1.001, 500.0), (0.999, -500.0)):
        scaled = NormalInverseGamma(base.mu0, t * base.lam, t * (base.a + 1.5) - 1.5, t * base.b)
        _, clusters, mean = posterior_of(scaled, z)
        slopes = [slopes[0] + sign * clusters, slopes[1] + sign * mean]
    rng = np.random.default_rng(10)
    p, _, _ = posterior_of(base, z)
    logs, clusters_drawn, means_drawn = [], [], []
    for blocks, count in zip(PARTITIONS, rng.multinomial(400_000, p), strict=True):
        total = np.zeros(count)
        for block in blocks:
            law, _ = updated(base, z[block])
            mean, sd = law.draw(rng, count)
            total += base.centred_log_density({"mean": mean, "variance": sd**2})
            if 0 in block:
                means_drawn.append(mean)
        logs.append(total)
        clusters_drawn.append(np.full(count, float(len(blocks))))
    lp = np.concatenate(logs)
    for drawn, slope in zip((clusters_drawn, means_drawn), slopes, strict=True):
        values = np.concatenate(drawn)
        products = (values - values.mean()) * (lp - lp.mean())
        assert products.mean() == pytest.approx(slope, abs=4.5 * products.std() / np.sqrt(lp.size))
        assert abs(slope) > 20.0 * products.std() / np.sqrt(lp.size)  # so that the test says something


# ---- mixtures


def one_cluster(folder: Path, lam: float, name: str = "c.h5") -> Path:
    """A file of one cluster of known variance 4, records with mean 5, and a mean ~ N(0, 4/lam)."""
    rng = np.random.default_rng(11)
    a, s2, n, eta2 = 1e6, 4.0, 100, 16.0
    base = NormalInverseGamma(0.0, lam, a, a * s2)
    z = rng.normal(5.0, np.sqrt(s2 + eta2), n)
    precision = lam / s2 + n / (s2 + eta2)
    centre = z.sum() / (s2 + eta2) / precision
    states = []
    for _ in range(2):
        mean = rng.normal(centre, precision**-0.5, (1000, 1))
        states.append(
            {
                "n_clusters": np.ones(1000),
                "weights": np.full((1000, 1), 1.0 - 1e-12),
                "mean": mean,
                "variance": np.full((1000, 1), s2),
                "concentration": np.full(1000, 1e-9),
            }
        )
    attrs = {"mechanism": json.dumps({"kind": "gaussian", "scale": [4.0], "domain": [[-10.0, 10.0]]})}
    path = write_chains(
        folder / name,
        states,
        spec=a_spec(sampler__iterations=2000, model__concentration=1e-9),
        base=base,
        observed=z,
        attrs=attrs,
    )
    logs = np.stack([stats.norm.logpdf(z, state["mean"], np.sqrt(s2 + eta2)) for state in states])
    add_log_likelihood(path, logs)
    return path


def add_log_likelihood(path: Path, logs: Floats, states: Any = None) -> None:
    """Add the group that `fit` writes, at all states or at some."""
    with h5py.File(path, "a") as root:
        group = root.create_group("log_likelihood")
        group["draw"] = np.arange(logs.shape[1]) if states is None else states
        group["z"] = logs.astype(np.float32)


def test_a_prior_against_the_release_is_warned_of_and_a_vague_one_not(tmp_path: Path) -> None:
    strong = dpmix.summarize(one_cluster(tmp_path, 5.0))
    (text,) = [text for text in strong.warnings if "power scaling" in text]
    assert text.startswith("Prior and release both move") and "mean (" in text and "model.base" in text
    found = strong.to_json()["prior_sensitivity"]
    assert found["parameters"]["mean"]["diagnosis"] == "potential prior-data conflict"
    assert found["reason"] is None and found["pareto_k"]["prior"] < 0.7
    assert "Sensitivity to the prior" in short_page(strong)
    vague = dpmix.summarize(one_cluster(tmp_path, 1e-3, "v.h5"))
    assert not any("power scaling" in text for text in vague.warnings)
    row = vague.to_json()["prior_sensitivity"]["parameters"]["mean"]
    assert row["prior"] < SENSITIVE < row["likelihood"] and row["diagnosis"] is None


def test_what_old_files_lack_is_said(tmp_path: Path) -> None:
    states = [states_of_mixture(80, np.random.default_rng(12)) for _ in range(2)]
    path = write_chains(tmp_path / "c.h5", states)
    summary = dpmix.summarize(path, tmp_path / "s.h5")
    found = summary.to_json()["prior_sensitivity"]
    assert found["reason"] == {"likelihood": "the chains file keeps no log likelihoods of the records"}
    assert all(row["likelihood"] is None for row in found["parameters"].values())
    assert found["parameters"]["mean"]["prior"] is not None
    with xarray.open_datatree(tmp_path / "s.h5") as tree:
        group = tree["prior_sensitivity"]
        assert group["prior"].sel(parameter="mean") == found["parameters"]["mean"]["prior"]
        assert np.isnan(group["likelihood"]).all()
    few = write_chains(tmp_path / "f.h5", [states_of_mixture(20, np.random.default_rng(12))])
    found = dpmix.summarize(few).to_json()["prior_sensitivity"]
    assert found["parameters"] is None and "fewer than 100" in found["reason"]["prior"]


def test_kept_log_likelihoods_of_several_files_stand_at_their_states(tmp_path: Path) -> None:
    rng = np.random.default_rng(16)
    paths, tables = [], []
    for number, kept in enumerate((40, 25)):
        path = write_chains(tmp_path / f"{number}.h5", [states_of_mixture(80, rng)], ids=[number])
        states = np.sort(rng.choice(80, kept, replace=False))
        logs = rng.standard_normal((1, kept, 7))
        add_log_likelihood(path, logs, states)
        paths.append(path)
        tables.append(dict(zip(states.tolist(), logs[0].sum(axis=1), strict=True)))
    found = read_chains(paths).kept_log_likelihoods
    assert found is not None and found[0].shape == found[1].shape == (2, 25)
    for states, sums, table in zip(*found, tables, strict=True):
        assert sums == pytest.approx([table[state] for state in states.tolist()], abs=1e-5)
    with h5py.File(paths[1], "a") as root:
        root["log_likelihood/draw"][0] = 80  # there are 80
    with pytest.raises(DataError, match="not as `dpmix fit` wrote them"):
        _ = read_chains(paths).kept_log_likelihoods


# ---- parametric models


class Held(NamedChains):
    """Chains whose draws are in memory."""

    tally = None

    def read(self, parameter: Stored, entries: slice = slice(None), *, group: int | None = None) -> Floats:
        """Return the draws."""
        return self.__dict__["held"][parameter.name]


def held(draws: dict[str, Floats], attrs: dict[str, Any], **more: Any) -> Held:
    """Return chains (1, draws) of parameters by name."""
    found = object.__new__(Held)
    stored = tuple(
        Stored(name, values[None].shape, (), "scalar", name, "", {}) for name, values in draws.items()
    )
    arrays = {name: values[None] for name, values in draws.items()}
    found.__dict__.update({"attrs": attrs, "parameters": stored, "held": arrays, "spec": {}, **more})
    return found


def same_up_to_a_constant(found: Floats, logs: Floats) -> None:
    np.testing.assert_allclose(found[0] - found[0, 0], logs - logs[0], rtol=1e-7, atol=1e-7)


def test_priors_of_probabilities_are_dirichlet() -> None:
    rng = np.random.default_rng(13)
    p = rng.dirichlet([2.0, 1.0, 4.0], 30)
    chains = held({"p": p}, {"model": "multinomial", "prior": "[2.0, 0.5, 3.0]"})
    same_up_to_a_constant(log_prior(chains), stats.dirichlet([2.0, 0.5, 3.0]).logpdf(p.T))
    levels = rng.dirichlet([1.0, 2.0], (30, 3))
    chains = held({"p": p, "p_feature_1": levels}, {"model": "naive_bayes"}, constants={"prior": 2.5})
    logs = stats.dirichlet([2.5] * 3).logpdf(p.T)
    logs += sum(stats.dirichlet([2.5] * 2).logpdf(levels[:, i].T) for i in range(3))
    same_up_to_a_constant(log_prior(chains), logs)
    share = rng.dirichlet([5.0, 2.0], 30)  # of groups: joint probabilities of group and class
    within = np.stack([p, p[::-1]], axis=1)
    chains = held({"p": within, "group_share": share}, {"model": "naive_bayes"}, constants={"prior": 2.5})
    joint = (within * share[:, :, None]).reshape(30, -1)
    same_up_to_a_constant(log_prior(chains), stats.dirichlet([2.5] * 6).logpdf(joint.T))


def test_the_prior_of_a_dirichlet_is_gamma() -> None:
    alpha = np.random.default_rng(14).gamma(2.0, 3.0, (30, 3))
    spec = {"model": {"prior": {"shape": 1.5, "rate": 0.2}}}
    chains = held({"alpha": alpha}, {"model": "dirichlet"}, spec=spec)
    logs = stats.gamma.logpdf(alpha, 1.5, scale=5.0).sum(axis=1)
    same_up_to_a_constant(log_prior(chains), logs)
    for changed, why in (
        ({"model": {"prior": "p4"}}, "made of the release"),
        ({**spec, "sampler": {"kind": "bootstrap"}}, "a bootstrap has no prior"),
    ):
        with pytest.raises(Unavailable, match=why):
            log_prior(held({"alpha": alpha}, {"model": "dirichlet"}, spec=changed))


SCALES_OF_PRIOR = ("beta_scale", "sigma2_scale", "x_cov_scale")


@pytest.mark.parametrize("scale", ["learned", "stated", "of an earlier version"])
@pytest.mark.parametrize("known", [(), ("sigma2", "x_mean"), ("x_cov",), ("x_mean", "x_cov")])
def test_the_prior_of_a_regression_is_of_rescaled_variables(known: tuple[str, ...], scale: str) -> None:
    stated = {"sigma2": 4e6, "x_mean": [40.0, 12.0], "x_cov": [[100.0, 3.0], [3.0, 9.0]]}
    model = {
        "kind": "linear_regression",
        "prior_mean": [0.1, 0.2, -0.3],
        "prior_sd": "learned" if scale == "learned" else [1.0, 0.5, 2.0],
        **{key: stated[key] for key in known},
    }
    if scale == "stated" and "sigma2" not in known:
        model["sigma2_prior"] = {"b": 1e8}
    if "x_cov" not in known:
        model["x_prior"] = {"nu": 5.5} | ({"Psi": [[90.0, 6.0], [6.0, 8.0]]} if scale == "stated" else {})
    bounds = [[15.0, 75.0], [0.0, 20.0], [0.0, 1e5]]
    spec = load_spec(
        {
            "data": {"path": "t.csv", "columns": ["age", "school", "income"]},
            "mechanism": {"kind": "clamped_moments", "bounds": bounds, "epsilon": 1.0},
            "model": model,
        }
    )
    from dpmix.release.sanitized import Release

    mechanism = {
        "kind": "clamped_moments",
        "bounds": bounds,
        "noise": "laplace",
        "scale": [9.0],
        "columns": ["age", "school", "income"],
    }
    release = Release(np.zeros((9, 1)), ("statistic",), mechanism, 1.0, 0.0, None, 50, trust="global")
    regression = build(spec, release)
    assert isinstance(regression, LinearRegression)
    law, rng = regression.law, np.random.default_rng(15)
    saved = np.zeros((12, len(regression.start)))
    for row in saved:
        row[:] = regression.start
        draw_prior(law, rng, row)
    out = {p.name: np.empty((12, *regression.shape(p))) for p in regression.parameters}
    regression.write(slice(None), out, saved)
    if scale == "learned":
        logs = stats.cauchy.logpdf(saved[:, :3], [0.1, 0.2, -0.3]).sum(axis=1)
    else:
        logs = stats.norm.logpdf(saved[:, :3], [0.1, 0.2, -0.3], [1.0, 0.5, 2.0]).sum(axis=1)
    if "sigma2" not in known:
        if scale == "learned":
            logs += stats.betaprime.logpdf(saved[:, 3] ** 2, 0.5, law.shape, scale=2.0 * law.scale)
        else:
            logs += stats.invgamma.logpdf(saved[:, 3] ** 2, law.shape, scale=law.scale)
    roots = saved[:, 6:].reshape(12, 2, 2)
    for i, covariance in enumerate(roots @ roots.transpose(0, 2, 1)):
        if "x_mean" not in known:
            logs[i] += stats.multivariate_normal.logpdf(saved[i, 4:6], law.centre, covariance / law.weight)
        if "x_cov" not in known and scale == "learned":
            logs[i] += log_with_learned_scales(covariance, 5.5, np.array([0.16, 0.16]))
        elif "x_cov" not in known:
            logs[i] += stats.invwishart.logpdf(covariance, law.freedom, np.reshape(law.psi, (2, 2)))
    attrs = {
        "model": "linear_regression",
        "prior_of": "rescaled variables",
        **({} if scale == "of an earlier version" else {k: regression.attrs[k] for k in SCALES_OF_PRIOR}),
        "spec": spec.to_yaml(),
        "mechanism": json.dumps(mechanism),
        "trust": "global",
        "n": 50,
    }
    chains = held(out, attrs, observed=np.zeros(9), constants={})
    same_up_to_a_constant(log_prior(chains), logs)
    del attrs["prior_of"]
    with pytest.raises(Unavailable, match="an earlier version"):
        log_prior(held(out, attrs, observed=np.zeros(9), constants={}))


def test_models_without_a_density_say_so() -> None:
    for model, why in (("discrete", "functionals of P"), ("custom", "custom"), ("mixture", "no components")):
        chains = held({"mean": np.ones(9)}, {"model": model, "mechanism": '{"kind": "none"}'})
        found = sensitivity_of(_with_draws(chains), {})
        assert (
            why in found.no_prior and not found.indices and plain(found.section().data)["parameters"] is None
        )
        assert sensitivity_remarks(found, chains) == []


@pytest.mark.parametrize(
    ("model", "words"),
    [("dirichlet", "model.prior says what"), ("mixture", "model.base and model.concentration say what")],
)
def test_one_key_says_and_several_say(model: str, words: str) -> None:
    chains = held({"mean": np.ones(9)}, {"model": model, "mechanism": '{"kind": "none"}'})
    for of_release in (0.01, 0.9):  # the prior alone, and a conflict
        (remark,) = sensitivity_remarks(Sensitivity({"mean": Index(0.9, of_release, 0.0)}), chains)
        assert (words in remark.text) == (of_release > 0.1)
    (remark,) = sensitivity_remarks(Sensitivity({"mean": Index(0.9, None, 0.0)}), chains)
    assert words in remark.text


def test_files_that_somebody_changed_have_a_reason() -> None:
    mechanism = {
        "kind": "posterior",
        "prior": [1.0] * 3,
        "n": 9,
        "method": "laplace",
        "scale": [1.0],
        "stated": True,
    }
    for prior in ("{", "[1.0]", "null"):
        chains = held({"p": np.full((200, 3), 1 / 3)}, {"model": "multinomial", "prior": prior})
        chains.__dict__["attrs"]["mechanism"] = json.dumps(mechanism)
        found = sensitivity_of(_with_draws(chains), {})
        assert plain(found.section().data)["parameters"] is None


def _with_draws(chains: Held) -> Held:
    chains.__dict__.update(ids=np.array([0]), acceptance=np.ones((1, 9)))
    return chains
