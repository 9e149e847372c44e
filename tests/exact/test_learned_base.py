"""Base measures whose location and scale are learned: exact posteriors, the joint law, laws of the prior."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

from dpmix.kernels import MultivariateNormal, NormalNIG
from dpmix.kernels import learned_base as learning
from dpmix.kernels.learned_base import LearnedBase, draw_base, draw_base_given, gather, learned_base
from dpmix.kernels.multivariate_normal.family import LearnedWishart, NormalInverseWishart
from dpmix.kernels.normal.family import LearnedNormal, NormalInverseGamma
from dpmix.models.counts_mixture.model import CountsMixture
from dpmix.numerics.mixing import PitmanYor
from dpmix.release.tallies import tally
from dpmix.summary.random_measures import Measures, draw_measures, settle_rest
from tests.helpers import samplers
from tests.helpers.seeds import rng_of
from tests.oracles.joint import Model, draw_latent, draw_release, draw_state, latent_values
from tests.oracles.mc import batch_means, discrepancies
from tests.oracles.partitions import over_bases

Array = NDArray[np.float64]

CENTRE, SPREAD, SHAPE, WEIGHT = (0.5, 0.3, 3.0, 2.0), 1.5, 0.5, 2.0
"""NIG at the means of the priors, sd of mu0, shapes of the gamma priors of b and of lambda."""
Z = np.array([-0.6, 0.4, 0.9, 3.5])
ALPHA = 1.0
FIXED = 1.590207551142282  # as drawn before any base measure was learned
LIMIT = 4.6  # standard errors by 200 batch means: passed with probability 8e-6


def learned(centre: tuple[float, ...] = CENTRE, weight: float = 0.0) -> LearnedBase:
    return learned_base(NormalNIG(*centre), np.array([SPREAD]), SHAPE, weight)


def grid() -> tuple[Array, Array, Array]:
    """Location, scale and log prior weight at nodes; the scale's are even in its logarithm."""
    _, lam, a, b = CENTRE
    x, w = special.roots_hermitenorm(31)
    t = np.linspace(-34.0, 4.0, 240)
    scale = b / SHAPE * np.exp(t)
    log_scale = SHAPE * t - np.exp(t)
    location = CENTRE[0] + SPREAD * x
    return (
        np.repeat(location, t.size),
        np.tile(scale, x.size),
        np.repeat(np.log(w), t.size) + np.tile(log_scale, x.size),
    )


def log_blocks_clean(
    location: Array, scale: Array, block: list[int], lam: float | Array = CENTRE[1]
) -> Array:
    """Log marginal likelihood of records without noise in a block, in closed form."""
    a = CENTRE[2]
    y = Z[block]
    n, mean = y.size, y.mean()
    rate = scale + 0.5 * ((y - mean) ** 2).sum() + 0.5 * lam * n / (lam + n) * (mean - location) ** 2
    return (
        special.gammaln(a + 0.5 * n)
        - special.gammaln(a)
        + 0.5 * np.log(lam / (lam + n))
        + a * np.log(scale)
        - (a + 0.5 * n) * np.log(rate)
        - 0.5 * n * np.log(2.0 * np.pi)
    )


def log_records_laplace(location: Array, scale: Array, noise: float) -> tuple[Array, Array]:
    """Log densities of each record under Laplace noise, (record, base, component), and log weights of these.

    Components are nodes of t = (mu - mu0) / sqrt(b) and r = sigma2 / b, by Gauss's rules.
    """
    _, lam, a, _ = CENTRE
    g, v = special.roots_genlaguerre(24, a - 1.0)
    x, w = special.roots_hermitenorm(31)
    r = np.repeat(1.0 / g, x.size)
    t = np.sqrt(r / lam) * np.tile(x, g.size)
    weight = np.repeat(v / v.sum(), x.size) * np.tile(w / w.sum(), g.size)
    seen = weight > 1e-12
    r, t, weight = r[seen], t[seen], weight[seen]
    mean = location[:, None] + np.sqrt(scale)[:, None] * t
    sd = np.sqrt(scale[:, None] * r)
    found = np.empty((Z.size, location.size, r.size))
    for i, z in enumerate(Z):
        gap, ratio = (z - mean) / sd, sd / noise
        near = 0.5 * ratio**2 - gap * ratio + special.log_ndtr(gap - ratio)
        far = 0.5 * ratio**2 + gap * ratio + special.log_ndtr(-gap - ratio)
        found[i] = np.logaddexp(near, far) - np.log(2.0 * noise)
    return found, np.log(weight)


@functools.cache
def exact(channel: tuple[str, float]) -> dict[str, Array]:
    """Posterior of the number of clusters, of who goes together, of location and root of the scale."""
    location, scale, log_w = grid()
    keep = log_w > log_w.max() - 25.0
    location, scale, log_w = location[keep], scale[keep], log_w[keep]
    if channel[0] != "none":
        records, log_weight = log_records_laplace(location, scale, channel[1])

    def block(members: list[int]) -> Array:
        if channel[0] == "none":
            return log_blocks_clean(location, scale, members)
        return special.logsumexp(records[members].sum(axis=0) + log_weight, axis=1)

    return over_bases(Z.size, ALPHA, log_w, block, functions(location, scale))


def functions(location: Array, scale: Array) -> list[Array]:
    return [location, location**2, np.sqrt(scale), (scale < 0.2).astype(float)]


@functools.cache
def exact_weighted() -> dict[str, Array]:
    """That of records without noise where lambda is learned, with its moments besides."""
    location, scale, log_w = grid()
    keep = log_w > log_w.max() - 30.0
    u = np.linspace(-14.0, 3.0, 60)
    lam = np.exp(u) * CENTRE[1] / (WEIGHT - 1.0)
    location, scale, log_w = (np.repeat(x[keep], u.size) for x in (location, scale, log_w))
    log_w = log_w + np.tile(WEIGHT * u - np.exp(u), keep.sum())
    weight = np.tile(lam, keep.sum())
    also = log_w > log_w.max() - 30.0
    location, scale, log_w, weight = (x[also] for x in (location, scale, log_w, weight))

    def block(members: list[int]) -> Array:
        return log_blocks_clean(location, scale, members, weight)

    of = [*functions(location, scale), weight, np.exp(-10.0 * weight)]
    return over_bases(Z.size, ALPHA, log_w, block, of)


def found_by(draws: dict[str, Any]) -> dict[str, Array]:
    labels, base = draws["allocations"], draws["base"]
    return {
        "n_clusters": (draws["n_clusters"][:, None] == np.arange(1, Z.size + 1)).astype(float),
        "together": (labels[:, [0]] == labels[:, [1, 3]]).astype(float),
        "base": np.column_stack(functions(base[:, 0, 0], base[:, 1, 0]) + of_weight(base)),
    }


def of_weight(base: Array) -> list[Array]:
    if base.shape[1] == 2:
        return []
    weight = base[:, 2, 0]
    return [weight, np.exp(-10.0 * weight)]


CASES = [
    ("neal8", ("laplace", 0.8)),
    ("slice", ("laplace", 0.8)),
    ("blocked", ("laplace", 0.8)),
    ("neal5", ("laplace", 0.8)),
    ("neal8", ("none", 0.0)),
    ("neal2", ("none", 0.0)),
    ("neal3", ("none", 0.0)),
    ("split_merge", ("none", 0.0)),
]
RARE = {"neal8-none", "neal2-none", "neal3-none", "slice-laplace", "blocked-laplace", "neal5-laplace"}
"""At night: by day the joint law holds those under noise to account, and split_merge those without."""


@pytest.mark.parametrize(
    ("sampler", "channel"),
    [
        pytest.param(*case, marks=pytest.mark.matrix if f"{case[0]}-{case[1][0]}" in RARE else ())
        for case in CASES
    ],
)
def test_posterior_is_exact(sampler: str, channel: tuple[str, float]) -> None:
    truth = exact(channel)
    rng = rng_of("learned base", sampler, channel)
    model = Model(channel, CENTRE, 0.0, ALPHA)
    chain = samplers.chain(sampler, model, Z.copy(), rng, truncation=40, learned=learned())
    chain.advance(500)
    draws = chain.run(20_000, thin=1 if sampler == "blocked" else 4, allocations=True)
    for name, values in found_by(draws).items():
        gap = discrepancies(values, truth[name])
        assert np.max(np.abs(gap)) < LIMIT, (name, gap)
    _, error = batch_means(found_by(draws)["base"])
    assert error.max() < 0.1


@pytest.mark.parametrize(
    "sampler",
    ["split_merge", *(pytest.param(s, marks=pytest.mark.matrix) for s in ("neal8", "neal2", "neal3"))],
)
def test_posterior_with_a_learned_weight_is_exact(sampler: str) -> None:
    truth = exact_weighted()
    rng = rng_of("learned weight", sampler)
    start = learned(weight=WEIGHT)
    chain = samplers.chain(sampler, Model(("none", 0.0), CENTRE, 0.0, ALPHA), Z.copy(), rng, learned=start)
    chain.advance(500)
    draws = chain.run(20_000, thin=4, allocations=True)
    for name, values in found_by(draws).items():
        gap = discrepancies(values, truth[name])
        assert np.max(np.abs(gap)) < LIMIT, (name, gap)


def joint_p_values(sampler: str, model: Model, start: LearnedBase, n: int, restarts: int) -> dict[str, float]:
    """P-values of location, scale and the first record's component under rounds of sweeps and releases."""
    rng = rng_of("joint law of a learned base", sampler, model)
    several = model.kernel == "multivariate"
    held = samplers.latent_count(sampler)
    d = start.values.shape[1]
    chain: Any = None
    rows = []
    for _ in range(restarts):
        location = start.centre + start.spread * rng.standard_normal(d)
        scale = rng.gamma(start.shape, 1.0 / start.rate)
        lam = rng.gamma(start.weight[0]) / start.weight[1] if len(start.weight) else model.base[1]
        own = (
            (tuple(location), lam, model.base[2], np.diag(scale))
            if several
            else (float(location[0]), lam, model.base[2], float(scale[0]))
        )
        here = Model(model.channel, own, model.discount, model.alpha, model.kernel)
        labels, theta, alpha = draw_state(rng, here, n)
        y = draw_latent(rng, here, labels, theta, max(held, 1))
        z = draw_release(rng, here, y)
        if chain is None:
            chain = samplers.chain(sampler, model, z.copy(), rng, truncation=40, learned=start)
        more = samplers.holds_more(model)
        samplers.redraw(model, chain, z, y)
        base = np.stack([location, scale, np.full(d, lam)][: len(start.values)])
        chain.set_state(labels, theta, alpha, y if held or more else None, base=base)
        chain.advance(60 if sampler.startswith("blocked") else 0)
        for turn in range(4):
            if turn:
                labels, theta = chain.allocations, chain.theta
                y = latent_values(rng, here, chain, held, more)
                samplers.redraw(model, chain, draw_release(rng, here, y), y)
                if sampler.startswith(("neal2", "neal5")):
                    chain.set_state(labels, theta, chain.concentration, y if held else None, base=chain.base)
            chain.advance(2)
        first = chain.theta[:, chain.allocations[0]]
        base = chain.base
        variance = first[d] if several else first[1]
        shape = 0.5 * (model.base[2] - d + 1.0) if several else model.base[2]
        ratio = base[1, 0] / variance * (0.5 if several else 1.0)
        row = {
            "scale": special.gammainc(start.shape, start.rate[-1] * base[1, -1]),
            "location": special.ndtr((base[0, -1] - start.centre[-1]) / start.spread[-1]),
            "variance": special.gammainc(shape, ratio),
            "mean": special.ndtr(
                (first[0] - base[0, 0]) / np.sqrt(variance / (base[2, 0] if len(base) > 2 else lam))
            ),
        }
        if len(base) > 2:
            row["weight"] = special.gammainc(start.weight[0], start.weight[1] * base[2, -1])
        rows.append(row)
    return {name: float(stats.kstest([row[name] for row in rows], "uniform").pvalue) for name in rows[0]}


# a fixed weight is one step less: by day with one sampler
@pytest.mark.parametrize(
    ("sampler", "weight"),
    [
        pytest.param(
            sampler,
            weight,
            id=f"{sampler}-{name} weight",
            marks=() if sampler in by_day else pytest.mark.matrix,
        )
        for name, weight, by_day in (
            ("fixed", 0.0, ("neal8-3",)),
            ("learned", WEIGHT, ("neal8-3", "slice", "blocked", "neal5-4")),
        )
        for sampler in ("neal8-3", "slice", "blocked", "neal5-4", "slice-metropolis")
    ],
)
def test_joint_law_is_invariant(sampler: str, weight: float) -> None:
    model = Model(("laplace", 1.2), CENTRE, 0.0, (2.0, 2.0))
    p = joint_p_values(sampler, model, learned(weight=weight), 8, 500)
    assert min(p.values()) > 1e-5, p


def of_two_columns(noise: str, weight: float = 0.0) -> tuple[Model, LearnedBase]:
    psi = np.diag([2.0, 5.0])
    base = ((0.5, -1.0), 0.4, 7.0, psi)
    kernel = MultivariateNormal(np.array(base[0]), 0.4, 7.0, psi)
    start = learned_base(kernel, np.array([1.5, 0.7]), 0.8, weight)
    return Model((noise, (1.2, 0.8)), base, 0.0, 1.0, "multivariate"), start


# what is learned has nothing to do with the noise: by day that of another test's compiled code
@pytest.mark.parametrize(
    "weight",
    [
        pytest.param(0.0, marks=pytest.mark.matrix, id="fixed weight"),
        pytest.param(WEIGHT, id="learned weight"),
    ],
)
@pytest.mark.parametrize("noise", ["gaussian", pytest.param("laplace", marks=pytest.mark.matrix)])
def test_joint_law_of_several_columns_is_invariant(noise: str, weight: float) -> None:
    """By 1,200 restarts, which a wrong sign of what one column tells of another's location needs to show."""
    p = joint_p_values("neal8-3", *of_two_columns(noise, weight), 8, 1200)
    assert min(p.values()) > 1e-5, p


def test_without_components_the_base_is_drawn_from_its_prior() -> None:
    """Also the two closed forms of what components add, by densities on a grid."""
    rng, start = np.random.default_rng(1), learned().own()
    kernel, sums = NormalNIG(*CENTRE), np.zeros((2, 1))
    drawn = np.array([(draw_base(kernel, rng, start, sums, 0), start.values.copy())[1] for _ in range(4000)])
    assert stats.kstest(drawn[:, 0, 0], stats.norm(CENTRE[0], SPREAD).cdf).pvalue > 1e-4
    assert stats.kstest(drawn[:, 1, 0], stats.gamma(SHAPE, scale=CENTRE[3] / SHAPE).cdf).pvalue > 1e-4
    theta = np.array([[0.2, 1.4, -2.0], [0.5, 0.1, 2.0]])
    for h in range(3):
        gather(kernel, theta, h, sums)
    drawn = np.array([(draw_base(kernel, rng, start, sums, 3), start.values.copy())[1] for _ in range(4000)])

    def scale(b: float) -> float:
        prior = stats.gamma(SHAPE, scale=CENTRE[3] / SHAPE).logpdf(b)
        return float(np.exp(prior + stats.invgamma(CENTRE[2], scale=b).logpdf(theta[1]).sum()))

    def location(m: float) -> float:
        own = stats.norm(m, np.sqrt(theta[1] / CENTRE[1])).logpdf(theta[0]).sum()
        return float(np.exp(stats.norm(CENTRE[0], SPREAD).logpdf(m) + own))

    for values, density, low, high in (
        (drawn[:, 1, 0], scale, 1e-9, 20.0),
        (drawn[:, 0, 0], location, -9.0, 9.0),
    ):
        whole = integrate.quad(density, low, high, limit=200)[0]
        mean = integrate.quad(lambda x, f=density: x * f(x), low, high, limit=200)[0] / whole
        assert abs(values.mean() - mean) < 5.0 * values.std() / np.sqrt(4000)


def test_lambda_is_drawn_from_its_conditional_law() -> None:
    """Its density on a grid: the prior times the components' means given place and variances."""
    rng, start = np.random.default_rng(11), learned(weight=WEIGHT).own()
    theta = np.array([[0.2, 1.4, -2.0], [0.5, 0.1, 2.0]])
    grid_of = np.exp(np.linspace(-14.0, 4.0, 4000))
    prior = stats.gamma(WEIGHT, scale=CENTRE[1] / (WEIGHT - 1.0))
    kernel, found, levels = NormalNIG(*CENTRE), [], []
    for _ in range(3000):
        draw_base_given(kernel, rng, start, theta, np.arange(3))
        place, lam = start.values[0, 0], start.values[2, 0]
        squares = ((theta[0] - place) ** 2 / theta[1]).sum()
        found.append(lam)
        levels.append(special.gammainc(WEIGHT + 1.5, lam * ((WEIGHT - 1.0) / CENTRE[1] + 0.5 * squares)))
    law = prior.logpdf(grid_of) + 1.5 * np.log(grid_of) - 0.5 * grid_of * squares  # at the last place
    chance = np.cumsum(np.exp(law - law.max()) * grid_of)
    assert levels[-1] == pytest.approx(np.interp(found[-1], grid_of, chance / chance[-1]), abs=5e-3)
    assert stats.kstest(levels, "uniform").pvalue > 1e-4
    model, wide = of_two_columns("gaussian", WEIGHT)
    wide, kernel = wide.own(), MultivariateNormal(np.array([0.5, -1.0]), 0.4, 7.0, np.diag([2.0, 5.0]))
    covariance = np.array([[1.0, 0.4], [0.4, 0.5]])
    two = np.column_stack([[0.3, 1.0, *covariance.ravel()], [2.0, -1.5, *covariance.ravel()]])
    levels = []
    for _ in range(3000):
        draw_base_given(kernel, rng, wide, two, np.arange(2))
        gap = two[:2] - wide.values[0][:, None]
        squares = (gap * np.linalg.solve(covariance, gap)).sum()
        levels.append(special.gammainc(WEIGHT + 2.0, wide.values[2, 0] * (wide.weight[1] + 0.5 * squares)))
    assert wide.values[2, 0] == wide.values[2, 1] and stats.kstest(levels, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("weight", [0.0, WEIGHT, 1.5])
def test_the_prior_predictive_has_what_is_learned_integrated_out(weight: float) -> None:
    family = LearnedNormal(*CENTRE, SPREAD, SHAPE, weight)
    rng = np.random.default_rng(2)
    y = family.sample(family.draw(rng, 200_000), rng)
    edges = np.array([-6.0, -2.0, 0.0, 0.5, 1.0, 3.0, 9.0])
    below = np.array([(y < edge).mean() for edge in edges])
    assert family.predictive_cdf(edges) == pytest.approx(below, abs=5e-3)
    fine = np.sinh(np.linspace(-14.0, 14.0, 60_001))
    assert np.trapezoid(family.predictive(fine), fine) == pytest.approx(1.0, abs=1e-3)
    assert family.predictive_moments()[1] == pytest.approx(
        SPREAD**2 + CENTRE[3] / 2.0 * (1.0 + 1.0 / CENTRE[1])
    )


def test_unseen_components_are_of_the_states_own_base() -> None:
    """What lies on no component is Student's t at the state's location and scale, of one or two columns."""
    family = LearnedNormal(*CENTRE, SPREAD, SHAPE)
    base = np.array([[[-1.0], [0.3]], [[2.0], [4.0]]])
    empty = Measures(np.zeros(2, dtype=np.int64), np.empty(0), np.empty((2, 0)), np.array([0.25, 1.0]))
    settled = settle_rest(empty, family, base)
    assert settled.counts.tolist() == [8, 8] and not settled.rest.any()
    y = np.linspace(-4.0, 5.0, 31)
    found = settled.densities(y, family)
    for row, (rest, (mu0, b)) in enumerate(zip((0.25, 1.0), base[:, :, 0], strict=True)):
        scale = np.sqrt(b * (CENTRE[1] + 1.0) / (CENTRE[2] * CENTRE[1]))
        truth = rest * stats.t(2.0 * CENTRE[2], loc=mu0, scale=scale).pdf(y)
        assert found[row] == pytest.approx(truth, abs=2e-3 * truth.max())
    psi = np.diag([2.0, 5.0])
    wide = LearnedWishart(np.zeros(2), 0.4, 7.0, psi, np.array([1.5, 0.7]), 0.8)
    bases = np.array([[[1.0, -1.0], [2.0, 0.5]]])
    weights, atoms = wide.rest_atoms(bases, 12)
    points = np.array([[1.0, -1.0], [2.5, -0.5], [0.0, -2.0]])
    mixed = wide.densities(weights, atoms, points).sum(axis=0)
    root = np.diag(bases[0, 1]) * 1.4 / (0.4 * 6.0)
    truth = stats.multivariate_t(loc=bases[0, 0], shape=root, df=6.0).pdf(points)
    assert mixed == pytest.approx(truth, rel=0.01)


def test_measures_drawn_from_the_prior_vary_as_base_and_process_do() -> None:
    """Var of the mean of P: E[1 / (1 + alpha)] Var of a component's mean given the base, and Var of mu0."""
    family = LearnedNormal(*CENTRE, SPREAD, SHAPE)
    rng, draws, alpha = np.random.default_rng(7), 20_000, 1.5
    empty = Measures(np.zeros(draws, dtype=np.int64), np.empty(0), np.empty((2, 0)), np.ones(draws))
    base = family.draw_base(rng, draws)
    drawn = draw_measures(empty, np.full(draws, alpha), 0.0, family, rng, base)
    assert not drawn.rest.any()
    means = drawn.moments(family)[0]
    truth = CENTRE[3] / 2.0 / CENTRE[1] / (1.0 + alpha) + SPREAD**2
    assert means.mean() == pytest.approx(CENTRE[0], abs=0.06)
    assert means.var() == pytest.approx(truth, rel=0.08)
    assert (means - base[:, 0, 0]).var() == pytest.approx(truth - SPREAD**2, rel=0.12)


@pytest.mark.parametrize("weight", [0.0, WEIGHT])
def test_densities_of_components_are_those_of_their_own_base(weight: float) -> None:
    family, rng = LearnedNormal(*CENTRE, SPREAD, SHAPE, weight), np.random.default_rng(8)
    base = family.draw_base(rng, 5)
    mean, sd = family.draw_given(rng, base)
    parts = {"mean": mean, "variance": sd**2}
    each = [
        NormalInverseGamma(
            float(row[0]), float(row[2]) if weight else CENTRE[1], CENTRE[2], float(row[1])
        ).centred_log_density({name: values[[i]] for name, values in parts.items()})[0]
        for i, row in enumerate(base[:, :, 0])
    ]
    assert family.centred_log_density(parts, base) == pytest.approx(np.array(each))
    law = stats.gamma(SHAPE, scale=CENTRE[3] / SHAPE).logpdf(base[:, 1, 0])
    law += stats.norm(CENTRE[0], SPREAD).logpdf(base[:, 0, 0])
    if weight:
        law += stats.gamma(weight, scale=CENTRE[1] / (weight - 1.0)).logpdf(base[:, 2, 0])
    assert np.ptp(family.log_base(base) - law) == pytest.approx(0.0, abs=1e-9)
    wide = LearnedWishart(np.zeros(2), 0.4, 7.0, np.diag([2.0, 5.0]), np.array([1.5, 0.7]), 0.8, weight)
    bases = wide.draw_base(rng, 3)
    means, covariances = wide.split(wide.draw_given(rng, bases))
    each = [
        NormalInverseWishart(
            bases[i, 0], float(bases[i, 2, 0]) if weight else 0.4, 7.0, np.diag(bases[i, 1])
        ).centred_log_density({"mean": means[[i]], "covariance": covariances[[i]]})[0]
        for i in range(3)
    ]
    found = wide.centred_log_density({"mean": means, "covariance": covariances}, bases)
    assert found == pytest.approx(np.array(each))


@pytest.mark.parametrize("weight", [0.0, WEIGHT])
def test_counts_agree_with_records(weight: float) -> None:
    """Counts in narrow cells of records under Laplace noise, beside the samplers of records."""
    rng = np.random.default_rng(3)
    z = rng.normal(1.0, 0.4, 60) + rng.laplace(0.0, 0.8, 60)
    model, mixing = Model(("laplace", 0.8), CENTRE, 0.0, (2.0, 2.0)), PitmanYor(1.0, 0.0, 2.0, 2.0)
    chain = samplers.chain(
        "neal8-3", model, z, rng_of("counts beside records"), learned=learned(weight=weight)
    )
    chain.keep(1, 2000)
    chain.proceed(22_000)
    edges = np.arange(-12.0, 14.0, 0.05)
    counts = tally(z, edges, 0.05)
    start = learned(weight=weight)
    other = CountsMixture(counts, samplers.channel(model), NormalNIG(*CENTRE), mixing, start)
    run = other.make_chain(rng_of("records beside counts"))
    run.keep(1, 2000)
    run.proceed(14_000)
    one, two = ({name: values for name, (_, values) in each.take().items()} for each in (chain, run))
    for pick in (
        lambda base: base[:, 0, 0],
        lambda base: np.log(base[:, 1, 0]),
        lambda base: base[:, 1, 0] < 0.05,
        lambda base: np.log(base[:, -1, 0]),  # lambda, where it is learned
    ):
        (a, b), (c, d) = (batch_means(pick(base).astype(float)) for base in (one["base"], two["base"]))
        assert abs(a - c) < 4.5 * np.hypot(b, d) + 0.01
    (a, b), (c, d) = (batch_means(np.asarray(k, float)) for k in (one["n_clusters"], two["n_clusters"]))
    assert abs(a - c) < 4.5 * np.hypot(b, d)


@pytest.mark.parametrize(
    "kind", ["neal8-3", "blocked", pytest.param("neal3", marks=pytest.mark.matrix), "counts"]
)
def test_a_chain_goes_on_bit_for_bit(kind: str) -> None:
    """Location, scale, lambda and the steps of moves are part of what is kept, also while burning in."""
    model = Model(("none", 0.0) if kind == "neal3" else ("laplace", 0.8), CENTRE, 0.0, (2.0, 2.0))
    start = learned(weight=WEIGHT)
    counts = tally(np.repeat(Z, 10), np.arange(-12.0, 14.0, 0.05), 0.05)
    mixing = PitmanYor(1.0, 0.0, 2.0, 2.0)

    def make(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        if kind != "counts":
            return samplers.chain(kind, model, np.repeat(Z, 10), rng, truncation=40, learned=start)
        made = CountsMixture(counts, samplers.channel(model), NormalNIG(*CENTRE), mixing, start)
        return made.make_chain(rng)

    whole, first, second = make(1), make(1), make(2)
    for chain in (whole, first):
        chain.keep(1, 12)
    whole.proceed(40)
    first.proceed(7)
    second.keep(1, 12)
    second.restore(first.snapshot())
    second.proceed(40)
    one, other = ({name: values for name, (_, values) in chain.take().items()} for chain in (whole, second))
    assert one["base"].shape == (28, 3, 1) and len(set(one["base"][:, 2, 0])) == 28
    for name in ("base", "weights", "theta", "concentration"):
        np.testing.assert_array_equal(one[name], other[name])


def test_a_fixed_base_keeps_nothing_and_draws_what_it_drew() -> None:
    model = Model(("laplace", 0.8), CENTRE, 0.0, 1.0)
    chain = samplers.chain("neal8-3", model, Z.copy(), np.random.default_rng(5))
    draws = chain.run(40, allocations=True)
    assert "base" not in draws and chain.kernel == NormalNIG(*CENTRE)
    assert draws["mean"][39, 0] == pytest.approx(FIXED, abs=1e-15)


@pytest.mark.parametrize("bug", ["shape", "jacobian"])
def test_planted_bugs_are_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A component's shape forgotten; a scale's ratio without its Jacobian: in plain Python, few sweeps."""
    start = learned().own()
    if bug == "shape":
        theta = np.array([[0.2, 1.4, -2.0], [0.5, 0.1, 2.0]])
        sums = np.zeros((2, 1))
        for h in range(3):
            gather(NormalNIG(*CENTRE), theta, h, sums)
        rng = np.random.default_rng(4)
        right, wrong = (
            np.array(
                [
                    (draw_base(NormalNIG(*CENTRE), rng, start, sums, k), start.values[1, 0])[1]
                    for _ in range(800)
                ]
            )
            for k in (3, 0)
        )
        assert stats.ks_2samp(right, wrong).pvalue < 1e-10
        return
    ratio = learning.log_base_ratio(start, 0, 0.0, 2.0)
    b = start.values[1, 0]
    law = stats.gamma(SHAPE, scale=CENTRE[3] / SHAPE)
    assert ratio == pytest.approx(law.logpdf(2.0 * b) - law.logpdf(b) + np.log(2.0))
    moved = learning.log_base_ratio(start, 0, 0.7, 1.0)
    around = stats.norm(CENTRE[0], SPREAD)
    assert moved == pytest.approx(around.logpdf(start.values[0, 0] + 0.7) - around.logpdf(start.values[0, 0]))
