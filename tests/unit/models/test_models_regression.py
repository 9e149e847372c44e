"""Linear regression given clamped moments: against weighed draws from the prior, the joint law, and itself.

Comparisons with weighed draws are in standard errors of the difference, all below 4.5: with other seeds than
the fixed ones a right sampler would fail one of about 100 with probability below 0.001. The p-values of the
joint law are compared with 1e-5, about 100 of them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmix.errors import SpecError
from dpmix.models.linear_regression.build import build
from dpmix.models.linear_regression.joint import (
    ACCEPTED,
    LEARNING,
    MADE,
    Surrogate,
    _draw_moment_step,
    _log_density_of_moments,
    _MomentLine,
    coordinates,
    log_prior,
    map_of,
    pack,
    unpack,
)
from dpmix.models.linear_regression.latent_records import fill
from dpmix.models.linear_regression.model import LinearRegression, RegressionChain
from dpmix.models.sum_augmentation import recount
from dpmix.numerics.bounded_normal import share_above
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from tests.helpers.parametric import interpreted, same_in_chunks
from tests.oracles import databases
from tests.oracles.databases import Line
from tests.oracles.mc import batch_means
from tests.oracles.niw import log_with_learned_scales

LIMIT, LEVEL = 4.5, 1e-5
SAMPLERS = {"plain": (False, 0), "joint": (True, 0), "soma": (False, 2), "soma, joint": (True, 2)}
# bounds that clamp many values, and noise that leaves something to learn
BOUNDS = np.array([[-1.5, 1.0], [-1.0, 2.0], [-2.0, 2.5]])
FREE = Line(
    BOUNDS, 1.0, 0.55, mu0=np.array([0.2, 0.4]), psi=np.array([[2.0, 0.5], [0.5, 1.5]]), weight=1.5, nu=6.0
)
KNOWN = Line(
    BOUNDS, 0.8, 0.55, sigma2=0.8, x_mean=np.array([0.1, 0.3]), x_cov=np.array([[1.0, 0.4], [0.4, 0.7]])
)
HALF = Line(BOUNDS, 0.6, 0.7, x_mean=np.array([0.1, 0.3]), psi=np.array([[2.0, 0.5], [0.5, 1.5]]), nu=6.0)
OTHER = Line(BOUNDS, 0.6, 0.7, mu0=np.array([0.2, 0.4]), x_cov=np.array([[1.0, 0.4], [0.4, 0.7]]))
LEARNED = dataclasses.replace(FREE, learned=True, b=0.25 * 2.25**2)  # the default's
OF_BOUNDS = np.diag((0.4 * np.array([1.25, 1.5])) ** 2)  # squares of a fifth of the predictors' widths
SCALES = dataclasses.replace(LEARNED, psi=OF_BOUNDS, psi_learned=True)
CAUCHY = dataclasses.replace(SCALES, sd=1.0, beta_learned=True)
PRIORS = {
    "free": FREE,
    "known": KNOWN,
    "mean known": HALF,
    "covariance known": OTHER,
    "learned": LEARNED,
    "scales learned": SCALES,
    "scales learned, mean known": dataclasses.replace(HALF, psi=OF_BOUNDS, psi_learned=True),
    "scales learned, errors known": dataclasses.replace(SCALES, sigma2=0.8),
    "coefficients learned": CAUCHY,
    "coefficients learned, else known": dataclasses.replace(KNOWN, sd=1.0, beta_learned=True),
}
WEIGHED = ("free", "known", "learned", "scales learned", "coefficients learned")


def by_night(priors: Iterable[str], by_day: Callable[[str, str], bool]) -> list[Any]:
    """Return priors with samplers, those but for `free` and `by_day` for the night: one code has them all."""
    cases = [(prior, sampler) for prior in priors for sampler in SAMPLERS]
    return [
        pytest.param(*case, marks=() if case[0] == "free" or by_day(*case) else pytest.mark.matrix)
        for case in cases
    ]


ALL_LEARNED = "coefficients learned"
"""Of which errors and predictors have learned scales as well."""


def settings(line: Line) -> dict[str, Any]:
    """Return the model section of an oracle's prior."""
    found: dict[str, Any] = {"kind": "linear_regression"}
    found["prior_sd"] = "learned" if line.beta_learned else line.sd
    if line.truncated:
        found["response"] = "truncated"
    if line.clamped_predictors:
        found["predictors"] = "clamped"
    if line.sigma2 is not None:
        found["sigma2"] = line.sigma2
    else:
        found["sigma2_prior"] = {"a": line.a, "b": "learned" if line.learned else line.b}
    prior: dict[str, Any] = {"lambda": line.weight, "nu": line.nu}
    for key, value in (("x_mean", line.x_mean), ("x_cov", line.x_cov)):
        if value is not None:
            found[key] = value.tolist()
    if line.x_mean is None or line.x_cov is None:
        prior |= {} if line.mu0 is None else {"mu0": line.mu0.tolist()}
        psi = "learned" if line.psi_learned else None if line.psi is None else line.psi.tolist()
        found["x_prior"] = prior | ({} if psi is None else {"Psi": psi})
    return found


def released(line: Line, values: Any, n: int, epsilon: float | None = None, **own: Any) -> Release:
    mechanism = {
        "kind": "clamped_moments",
        "noise": "laplace",
        "bounds": line.bounds.tolist(),
        "scale": [line.scale],
    }
    column = np.array(values, dtype=float).reshape(-1, 1)
    return Release(column, ("moment",), mechanism | own, epsilon, 0.0, None, n, trust="global")


def make(line: Line, values: Any, n: int, joint: bool, offers: int, **more: Any) -> LinearRegression:
    sampler = {"kind": "soma", "offers": offers} if offers else {}
    spec = load_spec({"model": settings(line) | more, "sampler": sampler | {"joint": joint}})
    return build(spec, released(line, values, n))


def theta(draws: dict[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in draws.items() if name in ("beta", "sigma2", "x_mean", "x_cov")}


@functools.cache
def exact(name: str) -> tuple[Any, dict[str, tuple[float, float]]]:
    rng = np.random.default_rng([3, len(name)])
    line = PRIORS[name]
    _, records = line.draw(rng, 1, 3)
    values = line.release(rng, records)[0]
    return values, databases.weighed(line, values, 3, rng, 40_000, 25)


def compare(model: LinearRegression, seed: list[int], thin: int, means: dict[str, Any]) -> None:
    chain = model.make_chain(np.random.default_rng(seed))
    found = databases.functions(theta(chain.run(20_000, thin=thin, skip=1000)))
    for name, column in found.items():
        mean, error = batch_means(column)
        wanted, slack = means[name]
        assert slack < 0.03 and error < 0.05, name
        assert abs(mean - wanted) < LIMIT * np.hypot(error, slack), name


@pytest.mark.parametrize(
    ("prior", "sampler"),
    by_night(WEIGHED, lambda prior, sampler: sampler == "joint" and prior in ("known", ALL_LEARNED)),
)
def test_posterior_is_that_of_weighed_databases(prior: str, sampler: str) -> None:
    values, means = exact(prior)
    model = make(PRIORS[prior], values, 3, *SAMPLERS[sampler])
    compare(model, [2, len(prior), len(sampler)], 12 if "learned" in prior else 3, means)


def test_soma_tries_some_of_many_records_before_it_weighs_all() -> None:
    line, n, rng = dataclasses.replace(KNOWN, scale=5.5), 24, np.random.default_rng(5)
    values = np.array([4.0, 8.0, 4.0, 12.0, 4.0, -3.0, 14.0, 2.0, 9.0])
    means = databases.weighed(line, values, n, rng, 10_000, 10)
    compare(make(line, values, n, False, n), [3], 4, means)


def of_prior(model: Any, point: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return (beta, sigma2, x_mean, the lower half of x_cov) at coordinates."""
    unpack(model, point, values)
    q = len(model.columns)
    p = q - 1
    root = values[q + 1 + p :].reshape(p, p)
    cov = (root @ root.T)[np.tril_indices(p)]
    return np.concatenate([values[:q], [values[q] ** 2], values[q + 1 : q + 1 + p], cov])


@pytest.mark.parametrize("name", ["free", "learned", "scales learned", "coefficients learned"])
def test_prior_of_coordinates_has_their_jacobian(name: str) -> None:
    learned = "learned" in name
    chain: Any = make(PRIORS[name], np.arange(9.0), 6, True, 0).make_chain(np.random.default_rng(6))
    model, values, rng = chain.law, chain.theta.values, np.random.default_rng(7)
    gaps, p = [], FREE.p
    for _ in range(5):
        point = 0.6 * rng.standard_normal(coordinates(model))
        step = 1e-5 * np.eye(len(point))
        ends = [of_prior(model, point + h, values) - of_prior(model, point - h, values) for h in step]
        wanted = np.linalg.slogdet(np.array(ends) / 2e-5)[1]
        natural = of_prior(model, point, values)
        again = np.empty(len(point))
        pack(model, values, again)
        np.testing.assert_allclose(again, point, rtol=1e-12)
        beta, sigma2, mean, low = np.split(natural, [p + 1, p + 2, 2 * p + 2])
        cov = np.zeros((p, p))
        cov[np.tril_indices(p)] = low
        cov = cov + np.tril(cov, -1).T
        of_beta = stats.cauchy if name == "coefficients learned" else stats.norm
        wanted += of_beta.logpdf(beta, model.beta_mean, np.array(model.beta_precision) ** -0.5).sum()
        if learned:
            wanted += stats.betaprime.logpdf(sigma2[0], 0.5, model.shape, scale=2.0 * model.scale)
        else:
            wanted += stats.invgamma.logpdf(sigma2[0], model.shape, scale=model.scale)
        wanted += stats.multivariate_normal.logpdf(mean, model.centre, cov / model.weight)
        if name in ("scales learned", "coefficients learned"):
            wanted += log_with_learned_scales(cov, model.freedom, np.diag(np.reshape(model.psi, (p, p))))
        else:
            wanted += stats.invwishart.logpdf(cov, model.freedom, np.reshape(model.psi, (p, p)))
        gaps.append(log_prior(model, values, np.empty((p, p))) - wanted)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-6)  # equal but for the constant


PLACES = [*((i, 3) for i in range(4)), *((i, j) for i in range(3) for j in range(i, 3) if j)]
"""Places of what is released in second moments of (1, x, y)."""


def moments_of(model: Any, values: np.ndarray, places: list[tuple[int, int]]) -> np.ndarray:
    """Return second moments of (1, x, y) under the parameters."""
    turn = np.empty((len(model.columns) + 1,) * 2)
    map_of(model, values, turn, False)
    return np.array([(turn @ turn.T)[place] for place in places])


@pytest.mark.parametrize("name", ["scales learned", "scales learned, errors known", "mean known"])
def test_lines_are_straight_in_the_moments_and_have_their_jacobian(name: str) -> None:
    rng = np.random.default_rng(8)
    chain: Any = make(PRIORS[name], np.arange(9.0), 6, True, 0).make_chain(rng)
    model, values, k = chain.law, chain.theta.values, coordinates(chain.law)
    q = len(model.columns)
    unpack(model, 0.4 * rng.standard_normal(k), values)
    ones = np.column_stack([np.ones(9), rng.standard_normal((9, q))])
    standard, inverse = ones.T @ ones, np.empty((q - 1, q - 1))
    middle, step, offer, root, turn = (np.empty((q + 1, q + 1)) for _ in range(5))
    map_of(model, values, root, False)
    middle[:] = root @ root.T
    _draw_moment_step(model, rng, 0.05, step)
    room = np.empty((3, q + 1, q + 1)), np.empty(len(model.released)), inverse
    surrogate = Surrogate(model, values, standard, np.empty((0, 2 * q)), *room)
    line = _MomentLine(surrogate, middle, step, offer, root)
    places = list(zip(*np.nonzero(step), strict=True))
    found, gaps = moments_of(model, values, places), []
    for at in (0.0, -0.3, 0.2):
        gap = _log_density_of_moments(line, at) - log_prior(model, values, inverse)
        wanted = found + at * step[np.nonzero(step)]
        np.testing.assert_allclose(moments_of(model, values, places), wanted, atol=1e-12)
        map_of(model, values, turn, True)
        sums = turn @ standard @ turn.T
        level = np.abs(model.released - [sums[place] for place in PLACES]).sum()
        point, other, slopes = np.empty(k), values.copy(), []
        pack(model, values, point)
        for h in 1e-5 * np.eye(k)[: len(places)]:
            ends = []
            for there in (point + h, point - h):
                unpack(model, there, other)
                ends.append(moments_of(model, other, places))
            slopes.append((ends[0] - ends[1]) / 2e-5)
        gaps.append(gap + model.rate * level + np.linalg.slogdet(np.array(slopes))[1])
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-6)
    assert _log_density_of_moments(line, 1e6) == _log_density_of_moments(line, -1e6) == -np.inf


def test_draws_of_the_prior_have_the_law_of_learned_coefficients() -> None:
    model = make(CAUCHY, np.zeros(9), 4, False, 0, prior_mean=[0.5, -1.0, 2.0])
    drawn = CAUCHY.rescaled(model.prior_draws(np.random.default_rng(7), 4000))[:, :3]
    for column, centre in zip(drawn.T, (0.5, -1.0, 2.0), strict=True):
        assert stats.kstest(column, stats.cauchy(centre).cdf).pvalue > LEVEL
    bent = np.arctan(drawn - [0.5, -1.0, 2.0])  # bounded, for a correlation
    assert np.abs(np.corrcoef(bent.T) - np.eye(3)).max() < 4.5 / 4000**0.5


@pytest.mark.parametrize("p", [1, 2])
def test_draws_of_the_prior_have_the_law_of_learned_scales(p: int) -> None:
    """Given its scale a variance is that over a chi-square, and its scale the mean times another."""
    line = dataclasses.replace(
        SCALES, bounds=BOUNDS[2 - p :], mu0=np.zeros(p), psi=OF_BOUNDS[2 - p :, 2 - p :]
    )
    model = make(line, np.zeros(5 if p == 1 else 9), 4, False, 0)
    drawn = model.prior_draws(np.random.default_rng(p), 4000)["x_cov"]
    freedom = line.nu - p + 1.0
    for i in range(p):
        law = stats.f(1.0, freedom, scale=line.psi[i, i] / freedom)  # type: ignore[index]
        assert stats.kstest(drawn[:, i, i], law.cdf).pvalue > LEVEL
    if p == 2:  # a correlation does not depend on scales
        corr = drawn[:, 0, 1] / np.sqrt(drawn[:, 0, 0] * drawn[:, 1, 1])
        half = 0.5 * (line.nu - 1.0)
        assert stats.kstest(0.5 + 0.5 * corr, stats.beta(half, half).cdf).pvalue > LEVEL
        wanted = databases.functions(line.draw(np.random.default_rng(5), 20_000, 1)[0])
        for name, column in databases.functions(
            theta(model.prior_draws(np.random.default_rng(6), 4000))
        ).items():
            assert stats.ks_2samp(column, wanted[name]).pvalue > LEVEL, name


def joint_p_values(
    line: Line,
    joint: bool,
    offers: int,
    n: int,
    restarts: int,
    *,
    alone: Callable[[RegressionChain], None] | None = None,
) -> dict[str, float]:
    """Restart from the joint law; sweep and redraw the release in turn; compare with fresh draws of it.

    Sweeps are those of the chain, or what moves `alone` in their place.
    """
    rng = np.random.default_rng(11)
    start, data = line.draw(rng, restarts, n)
    fresh, _ = line.draw(rng, 20 * restarts, 1)
    size = databases.moments(np.zeros((1, 1, 3))).shape[-1]
    model = make(line, np.zeros(size), n, joint, offers)
    chain = model.make_chain(rng)
    assert isinstance(chain, RegressionChain)
    p = line.p
    states, (centre, half) = line.rescaled(start), line.frame
    rows: list[dict[str, Any]] = []
    for i in range(restarts):
        values = chain.theta.values
        values[:] = states[i]
        chain.records[:, : p + 1] = (data[i] - centre) / half
        chain.records[:, p + 1 :] = line.units(data[i])
        for _ in range(4):
            model.law.released[:] = line.release(rng, centre + half * chain.records[:, : p + 1])
            recount(chain.law, chain.records, chain.tally)
            if alone is None:
                chain.sweep(2)
            else:
                alone(chain)
        if alone is None:
            out = chain.run(1)
        else:
            out = {each.name: np.empty((1, *model.shape(each))) for each in model.parameters}
            chain.record(0, out)
        now = theta({name: column[0] for name, column in out.items()})
        taken = chain.records[:, p + 1 : -1] if line.clamped_predictors else chain.records[:, :p]
        mean = values[0] + taken @ values[1 : p + 1]
        noise = (chain.records[:, p] - mean) / values[p + 1]
        if line.truncated:  # then normal as well
            at = zip(chain.records[:, p], mean, strict=True)
            shares = np.array([share_above(y, middle, values[p + 1]) for y, middle in at])
            noise = stats.norm.isf(shares.clip(1e-15, 1.0 - 1e-15))
        rows.append(now | {"noise": noise})
    found = databases.functions(
        {name: np.array([row[name] for row in rows]) for name in rows[0] if name != "noise"}
    )
    wanted = databases.functions(fresh)
    values_of = {
        name: float(stats.ks_2samp(column, wanted[name]).pvalue)
        for name, column in found.items()
        if not name.endswith("^2")
    }
    noises = np.array([row["noise"] for row in rows])
    sums = (noises**2).sum(axis=1)
    return values_of | {"noise": float(stats.kstest(sums, stats.chi2(n).cdf).pvalue)}


@pytest.mark.parametrize(
    ("prior", "sampler"),
    by_night(
        PRIORS,
        lambda prior, sampler: sampler == "soma, joint" or (prior, sampler) == (ALL_LEARNED, "plain"),
    ),
)
def test_joint_law_is_invariant(prior: str, sampler: str) -> None:
    joint, offers = SAMPLERS[sampler]
    values = joint_p_values(PRIORS[prior], joint, 3 * offers, 8, 700)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sums_kept_are_those_of_the_records(sampler: str) -> None:
    joint, offers = SAMPLERS[sampler]
    values = FREE.release(np.random.default_rng(1), FREE.draw(np.random.default_rng(2), 1, 20)[1])[0]
    chain = make(FREE, values, 20, joint, offers).make_chain(np.random.default_rng(3))
    assert isinstance(chain, RegressionChain)
    chain.keep(thin=1, skip=0)
    chain.proceed(64 * 20 - 1)  # the next sweep would take them from scratch
    units = chain.records[:, 3:].copy()
    centre, half = FREE.frame
    records = centre + half * chain.records[:, :3]
    np.testing.assert_allclose(units, FREE.units(records), atol=1e-13)
    wanted = values - databases.moments(FREE.units(records))
    np.testing.assert_allclose(chain.tally.sums, wanted, atol=1e-11)
    assert chain.tally.level[0] == pytest.approx(np.abs(wanted).sum())
    fill(chain.law, chain.records[0])
    np.testing.assert_array_equal(chain.records[0, 3:], units[0])


def test_draws_do_not_depend_on_chunks_or_on_being_restored() -> None:
    model = make(FREE, np.arange(9.0), 6, True, 0, predict=[[0.0, 0.0], [1.0, -1.0]])
    whole = same_in_chunks(model, 60, 2, 31)
    mean = whole["beta"][:, 0] + whole["beta"][:, 1] - whole["beta"][:, 2]
    np.testing.assert_allclose(whole["prediction"][:, 1], mean)
    spread = (whole["predictive"] - whole["prediction"]) / np.sqrt(whole["sigma2"])[:, None]
    assert stats.kstest(spread.ravel(), stats.norm.cdf).pvalue > LEVEL


def test_the_joint_move_learns_in_burn_in_alone() -> None:
    chain = make(FREE, np.arange(9.0), 6, True, 0).make_chain(np.random.default_rng(3))
    assert isinstance(chain, RegressionChain)
    chain.keep(thin=2, skip=30)
    kept = []
    for until in (20, 30, 44, 61):
        chain.proceed(until)
        kept.append(np.delete(chain.theta.learnt, [ACCEPTED, MADE, LEARNING]))
    assert (kept[0] != kept[1]).any()
    np.testing.assert_array_equal(kept[2], kept[1])
    np.testing.assert_array_equal(kept[3], kept[1])


def test_predictors_start_within_their_bounds() -> None:
    model = make(FREE, np.arange(9.0), 6, True, 0)
    starts = []
    for seed in range(60):
        chain = model.make_chain(np.random.default_rng(seed))
        assert isinstance(chain, RegressionChain)
        starts.append(chain.theta.values[3:5])
    found = np.abs(starts)
    assert found.max() == 1.0  # some draws of the prior are beyond, and moved
    assert np.unique(found).size > 10
    known = make(KNOWN, np.arange(9.0), 6, True, 0).make_chain(np.random.default_rng(1))
    assert isinstance(known, RegressionChain)
    np.testing.assert_array_equal(known.theta.values[3:5], known.model.start[3:5])


def test_names_and_defaults_follow_from_the_release() -> None:
    spec = load_spec({"model": {"kind": "linear_regression"}})
    model = build(spec, released(FREE, np.zeros(9), 5, epsilon=2.0, columns=["age", "size", "pay"]))
    assert model.coords["coefficient"].tolist() == ["intercept", "age", "size"]
    assert model.acceptance_bound == np.exp(-2.0)
    assert [parameter.name for parameter in model.parameters] == ["beta", "sigma2", "x_mean", "x_cov"]
    # on variables rescaled to [-1, 1], whatever the bounds
    assert model.law.beta_mean == (0.0,) * 3 and model.law.beta_precision == (1.0,) * 3
    assert model.law.beta_learned
    assert (model.law.shape, model.law.scale, model.law.learned) == (3.0, 0.25, True)
    assert model.law.centre == (0.0, 0.0) and (model.law.weight, model.law.freedom) == (0.16, 7.0)
    assert model.law.psi == pytest.approx(np.diag([0.16, 0.16]).ravel()) and model.law.psi_learned
    low, high = BOUNDS.T
    assert model.constants["sigma2_b"] == pytest.approx((0.25 * (high - low)[2]) ** 2)
    assert "slopes 0 +- 1.8 on age, 0 +- 1.5 on size" in model.attrs["prior"]
    assert not make(OTHER, np.zeros(9), 5, True, 0).law.psi_learned
    known = make(KNOWN, np.zeros(9), 5, True, 0)
    assert [parameter.name for parameter in known.parameters] == ["beta"]


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"x_mean": [1.0]}, "model.x_mean: has 1 entries, but the release is of 2 predictors; give 2"),
        (
            {"prior_sd": [1.0, 2.0]},
            "model.prior_sd: has 2 entries, but the release is of 2 predictors and",
        ),
        ({"prior_sd": "wide"}, 'model.prior_sd: must be a number, a list of numbers or learned, not "wide"'),
        ({"x_cov": [[1.0, 2.0], [2.0, 1.0]]}, "model.x_cov: must be positive definite"),
        ({"x_cov": [[1.0, 0.0]]}, "model.x_cov: must be square: 1 rows of 1 numbers"),
        ({"predict": [[1.0, 2.0], [1.0]]}, "model.predict: row 2 has 1 entries, but the release is of 2"),
        ({"sigma2": 1.0, "sigma2_prior": {"a": 4.0}}, "model.sigma2_prior: is for an unknown sigma2"),
        ({"x_prior": {"Psi": "fixed"}}, 'model.x_prior.Psi: must be a list of rows or learned, not "fixed"'),
        ({"x_prior": {"nu": 0.5}}, "model.x_prior.nu: 0.5 must be greater than 1"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(more: dict[str, Any], wanted: str) -> None:
    with pytest.raises(SpecError) as caught:
        build(load_spec({"model": {"kind": "linear_regression"} | more}), released(FREE, np.zeros(9), 5))
    assert str(caught.value).startswith(wanted)


def short_run(sampler: str) -> list[float]:
    """Return a few draws, which do not depend on what runs the source."""
    joint, offers = SAMPLERS[sampler]
    chain = make(FREE, np.linspace(-2.0, 4.0, 9), 6, joint, offers).make_chain(np.random.default_rng(3))
    draws = chain.run(3, skip=12)
    return np.concatenate([draws[name].ravel() for name in ("beta", "sigma2", "x_mean", "x_cov")]).tolist()


def test_the_interpreter_draws_what_compiled_code_draws() -> None:
    lines = interpreted(__name__, "[short_run(s) for s in SAMPLERS]")
    for sampler, found in zip(SAMPLERS, lines, strict=True):
        np.testing.assert_allclose(found, short_run(sampler), rtol=1e-7, err_msg=sampler)
