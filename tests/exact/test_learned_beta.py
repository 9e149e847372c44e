"""Beta kernels whose place and rate are learned: exact posteriors, the joint law, laws of the prior."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from dpmix.kernels import Beta
from dpmix.kernels.beta.family import LearnedBeta
from dpmix.kernels.beta.kernel import prior_slopes_of
from dpmix.kernels.beta.section import LAMBDA
from dpmix.kernels.kernel_functions import log_prior
from dpmix.kernels.learned_base import LearnedBase, carry, draw_base_given, learned_base
from dpmix.models.counts_mixture.model import CountsMixture
from dpmix.numerics.mixing import PitmanYor
from dpmix.release.tallies import tally
from dpmix.summary.random_measures import Measures, draw_measures, settle_rest
from tests.exact.test_learned_base import LIMIT
from tests.helpers import samplers
from tests.helpers.seeds import rng_of
from tests.oracles.joint import Model, draw_latent, draw_release, draw_state, latent_values
from tests.oracles.kernels import Beta as Oracle
from tests.oracles.marginals import log_g
from tests.oracles.mc import batch_means, discrepancies
from tests.oracles.partitions import over_bases

Array = np.typing.NDArray[np.float64]

RATE, SPREAD, SHAPE, WEIGHT = 0.4, 1.5, 0.5, 2.0
BASE = (2.0, RATE, 2.0, RATE, -1.0, 3.0, LAMBDA, 0.0)
"""At the means of the priors, on [-1, 2]; the shape of lambda's is `WEIGHT`, where it is learned."""
BINOMIAL = ("binomial", (7, 0.8, -1.0, 3.0))
Z = np.array([0.0, 1.0, 1.0, 6.0])
ALPHA = 1.0


def learned(weight: float = 0.0) -> LearnedBase:
    return learned_base(Beta(*BASE), np.array([SPREAD]), SHAPE, weight)


def family(**changes: float) -> LearnedBeta:
    known = {"a_shape": 2.0, "b_shape": 2.0, "rate": RATE, "lam": LAMBDA, "spread": SPREAD, "shape": SHAPE}
    return LearnedBeta(**(known | {"lo": -1.0, "width": 3.0} | changes))


def base_of(place: float, rate: float, lam: float = LAMBDA) -> tuple[float, ...]:
    """The base measure at a place (its logit), a rate and a weight of the place."""
    return 2.0, rate, 2.0, rate, -1.0, 3.0, lam, place


@functools.cache
def exact(weight: float = 0.0) -> dict[str, Array]:
    """Posterior of the number of clusters, of who goes together, of place and rate, and of lambda if learned.

    Nodes of place, log rate and log lambda are even; those of components are quantiles of their law given
    these: of t by Gauss's rule, of p by that on its distribution function. With half as many nodes again of
    both, means of the base change by 0.014 at most, probabilities by 0.0004. Steps of log rate and log
    lambda are multiples of 0.3, so that few of their ratios differ, on which the quantiles of p depend.
    """
    x, t = np.linspace(-4.5, 4.5, 13), np.linspace(-22.0, 3.2, 43)
    s = np.linspace(-6.0, 2.1, 10) if weight else np.zeros(1)  # of lambda times its rate
    log_w = np.add.outer(np.add.outer(-0.5 * x**2, SHAPE * t - np.exp(t)), weight * s - np.exp(s))
    keep = log_w > log_w.max() - 18.0
    log_w = log_w[keep]
    grid = np.meshgrid(SPREAD * x, RATE / SHAPE * np.exp(t), LAMBDA * np.exp(s), indexing="ij")
    place, rate, lam = (part[keep] for part in grid)
    ratio = np.broadcast_to(np.rint(np.subtract.outer(-t, -s) / 0.3), keep.shape)[keep]
    _, first, back = np.unique(np.stack([place, ratio]), axis=1, return_index=True, return_inverse=True)
    u, v = special.roots_genlaguerre(8, 3.0)
    q, w = special.roots_legendre(16)
    total = u / rate[:, None]
    along = lam[:, None] * total
    shapes = 2.0 + along * special.expit(place)[:, None], 2.0 + along * special.expit(-place)[:, None]
    share = special.betaincinv(shapes[0][first, :, None], shapes[1][first, :, None], 0.5 + 0.5 * q)[back]
    theta = np.stack([total[..., None] * share, total[..., None] * (1.0 - share)]).reshape(2, rate.size, -1)
    log_weight = np.log(np.outer(v / v.sum(), 0.5 * w)).ravel()
    values, which = np.unique(Z, return_inverse=True)
    records = log_g(Oracle(BASE[:6]), BINOMIAL, values, theta)[which]

    def block(members: list[int]) -> Array:
        return special.logsumexp(records[members].sum(axis=0) + log_weight, axis=1)

    return over_bases(Z.size, ALPHA, log_w, block, functions(place, rate, *([lam] if weight else [])))


def functions(place: Array, rate: Array, *lam: Array) -> list[Array]:
    found = [place, place**2, np.sqrt(rate), np.clip(np.log(rate), -6.0, 0.0)]
    return [*found, *lam, *map(np.log, lam)]


@pytest.mark.parametrize(
    ("sampler", "weight"),
    [
        pytest.param("neal8", 0.0, marks=pytest.mark.matrix),
        ("neal8", WEIGHT),
        *(
            pytest.param(name, weight, marks=pytest.mark.matrix)
            for name in ("slice", "blocked", "neal5")
            for weight in (0.0, WEIGHT)
        ),
    ],
)
def test_posterior_is_exact(sampler: str, weight: float) -> None:
    truth, rng = exact(weight), rng_of("learned beta", sampler)
    model = Model(BINOMIAL, BASE, 0.0, ALPHA, "beta")
    chain = samplers.chain(sampler, model, Z.copy(), rng, truncation=40, learned=learned(weight))
    chain.advance(500)
    draws = chain.run(12_000, thin=1 if sampler == "blocked" else 5, allocations=True)
    labels, base = draws["allocations"], draws["base"]
    found = {
        "n_clusters": (draws["n_clusters"][:, None] == np.arange(1, Z.size + 1)).astype(float),
        "together": (labels[:, [0]] == labels[:, [1, 3]]).astype(float),
        "base": np.column_stack(functions(*base[:, :, 0].T)),
    }
    for name, values in found.items():
        gap = discrepancies(values, truth[name])
        assert np.max(np.abs(gap)) < LIMIT, (name, gap)
    _, error = batch_means(found["base"])
    assert error.max() < 0.12


@pytest.mark.parametrize(
    "sampler",
    [
        "neal8-3",
        *(
            pytest.param(name, marks=pytest.mark.matrix)
            for name in ("neal8", "slice", "neal5-4", "blocked", "slice-metropolis")
        ),
    ],
)
def test_joint_law_is_invariant(sampler: str, restarts: int = 400, n: int = 8) -> None:
    """P-values of the base measure and the first record's component under rounds of sweeps and releases.

    By day under the noise for which another test's code is compiled.
    """
    noise: Any = BINOMIAL if sampler == "neal8-3" else ("laplace", 0.6)
    model, start = Model(noise, BASE, 0.0, (2.0, 2.0), "beta"), learned(WEIGHT)
    rng, held = rng_of("joint law of a learned beta", sampler), samplers.latent_count(sampler)
    chain: Any = None
    rows = []
    for _ in range(restarts):
        place = SPREAD * rng.standard_normal()
        rate, lam = rng.gamma(SHAPE, RATE / SHAPE), rng.gamma(WEIGHT, LAMBDA / (WEIGHT - 1.0))
        here = Model(model.channel, base_of(place, rate, lam), 0.0, model.alpha, "beta")
        labels, theta, alpha = draw_state(rng, here, n)
        y = draw_latent(rng, here, labels, theta, max(held, 1))
        z = draw_release(rng, here, y)
        if chain is None:
            chain = samplers.chain(sampler, model, z.copy(), rng, truncation=40, learned=start)
        samplers.redraw(model, chain, z, y)
        values = np.array([[place], [rate], [lam]])
        chain.set_state(labels, theta, alpha, y if held else None, base=values)
        chain.advance(60 if sampler.startswith("blocked") else 0)
        for turn in range(4):
            if turn:
                labels, theta = chain.allocations, chain.theta
                y = latent_values(rng, here, chain, held, samplers.holds_more(model))
                samplers.redraw(model, chain, draw_release(rng, here, y), y)
                if sampler.startswith("neal5"):
                    chain.set_state(labels, theta, chain.concentration, y, base=chain.base)
            chain.advance(2)
        first, ((place,), (rate,), (lam,)) = chain.theta[:, chain.allocations[0]], chain.base
        total = first.sum()
        shapes = Oracle(base_of(place, rate, lam)).around(total)
        rows.append(
            {
                "rate": special.gammainc(SHAPE, SHAPE / RATE * rate),
                "place": special.ndtr(place / SPREAD),
                "lambda": special.gammainc(WEIGHT, (WEIGHT - 1.0) / LAMBDA * lam),
                "total": special.gammainc(4.0, rate * total),
                "share": special.betainc(*shapes, first[0] / total),
            }
        )
    p = {name: float(stats.kstest([row[name] for row in rows], "uniform").pvalue) for name in rows[0]}
    assert min(p.values()) > 1e-5, p


def test_the_prior_density_is_that_of_total_and_share() -> None:
    """Its constants, its gradient, and what carrying along multiplies it by, by SciPy and by differences."""
    place, rate, lam = 0.7, 0.05, 0.03
    kernel = Beta(*base_of(place, rate, lam))

    def density(log_a: float, log_b: float, kernel: Beta = kernel) -> float:
        return float(log_prior(kernel, np.exp([[log_a], [log_b]]), 0))

    def truth(log_a: float, log_b: float, place: float = place, rate: float = rate) -> float:
        total, share = np.exp(log_a) + np.exp(log_b), special.expit(log_a - log_b)
        shapes = Oracle(base_of(place, rate, lam)).around(total)
        law = stats.gamma(4.0, scale=1.0 / rate).logpdf(total) + stats.beta(*shapes).logpdf(share)
        return float(law + np.log(total) + np.log(share) + np.log1p(-share))

    points = [(2.0, 1.0), (4.5, 4.0), (-2.0, 3.0), (7.0, 6.2)]
    offset = density(*points[0]) - truth(*points[0])
    for x, y in points:
        assert density(x, y) - truth(x, y) == pytest.approx(offset, abs=1e-9)
        step = 1e-5
        by_a = (density(x + step, y) - density(x - step, y)) / (2.0 * step)
        by_b = (density(x, y + step) - density(x, y - step)) / (2.0 * step)
        assert prior_slopes_of(kernel, np.exp(x), np.exp(y))[:2] == pytest.approx((by_a, by_b), rel=1e-5)
        theta, values = np.exp([[x], [y]]), np.array([[place], [rate], [lam]])
        found = carry(kernel, theta, 0, 0, 0.3, 1.7, values)
        (new_x,), (new_y,) = np.log(theta)
        assert new_x - new_y == pytest.approx(place + 0.3 + np.sqrt(1.7) * (x - y - place))
        assert theta.sum() * 1.7 == pytest.approx(np.exp(x) + np.exp(y))
        meant = truth(new_x, new_y, place + 0.3, 1.7 * rate) - truth(x, y) + 0.5 * np.log(1.7)
        assert found == pytest.approx(meant, abs=1e-9)


@pytest.mark.parametrize("weight", [0.0, WEIGHT])
def test_a_base_is_drawn_given_components(weight: float) -> None:
    """Place and rate, and lambda where it is learned, by quadrature; of narrow components far apart, too."""
    rng, start = np.random.default_rng(1), learned(weight).own()
    theta = np.array([[3.0, 40.0, 90.0], [8.0, 70.0, 10.0]])
    drawn = np.empty((4000, 3 if weight else 2))
    for row in drawn:
        for _ in range(3 if weight else 1):  # place and lambda are drawn in turn
            draw_base_given(Beta(*BASE), rng, start, theta, np.arange(3))
        row[:] = start.values[:, 0]
    total, share = theta.sum(axis=0), theta[0] / theta.sum(axis=0)
    law = stats.gamma(SHAPE + 12.0, scale=1.0 / (SHAPE / RATE + total.sum()))
    assert stats.kstest(drawn[:, 1], law.cdf).pvalue > 1e-4
    steps = np.linspace(-9.0, 3.0, 161) if weight else np.zeros(1)
    places, lam = (part.ravel() for part in np.meshgrid(np.linspace(-8.0, 8.0, 401), LAMBDA * np.exp(steps)))
    logs = stats.norm(0.0, SPREAD).logpdf(places)
    if weight:  # of log lambda
        logs += weight * np.log(lam) - (weight - 1.0) / LAMBDA * lam
    for t, p in zip(total, share, strict=True):
        shapes = 2.0 + lam * t * special.expit(places), 2.0 + lam * t * special.expit(-places)
        logs += stats.beta(*shapes).logpdf(p)
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    truth = [weights @ places, weights @ places**2]
    found = [drawn[:, 0], drawn[:, 0] ** 2]
    if weight:
        truth += [weights @ lam, weights @ np.log(lam), weights @ (places * lam)]
        found += [drawn[:, 2], np.log(drawn[:, 2]), drawn[:, 0] * drawn[:, 2]]
    gaps = discrepancies(np.column_stack(found), truth)
    assert np.abs(gaps).max() < LIMIT
    none = np.arange(0)
    drawn = np.array(
        [
            (draw_base_given(Beta(*BASE), rng, start, theta, none), start.values[:, 0].copy())[1]
            for _ in range(4000)
        ]
    )
    laws = [stats.norm(0.0, SPREAD), stats.gamma(SHAPE, scale=RATE / SHAPE)]
    laws += [stats.gamma(weight, scale=LAMBDA / (weight - 1.0))] if weight else []
    for values, law in zip(drawn.T, laws, strict=True):
        assert stats.kstest(values, law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("weight", [pytest.param(0.0, marks=pytest.mark.matrix), WEIGHT])
def test_the_prior_predictive_has_the_base_integrated_out(weight: float) -> None:
    known, rng = family(weight=weight), np.random.default_rng(2)
    y = known.sample(known.draw(rng, 200_000), rng)
    edges = np.array([-0.95, -0.6, 0.0, 0.5, 1.1, 1.8])
    below = np.array([(y < edge).mean() for edge in edges])
    assert known.predictive_cdf(edges) == pytest.approx(below, abs=5e-3)
    logit = known.for_distance()
    fine = np.linspace(-400.0, 400.0, 4_001)
    assert np.trapezoid(logit.predictive(fine), fine) == pytest.approx(1.0, abs=2e-3)
    mean, variance = known.predictive_moments()
    assert mean == pytest.approx(0.5, abs=1e-9) and variance == pytest.approx(y.var(), rel=0.02)


def test_unseen_components_are_of_the_states_own_base() -> None:
    """A record of one, given place and rate, by its distribution function, of narrow ones too."""
    known, rng = family(), np.random.default_rng(3)
    base = np.array(
        [
            *([[-1.5], [0.01], [0.16]], [[0.4], [0.3], [0.7]]),
            *([[1.0], [3.0], [0.01]], [[-3.0], [1e-5], [0.16]]),
        ]
    )
    empty = Measures.unseen(4, 2)
    settled = settle_rest(empty, known, base)
    assert settled.counts.tolist() == [8] * 4 and not settled.rest.any()
    for row in range(4):
        y = known.sample(known.draw_given(rng, np.repeat(base[[row]], 100_000, axis=0)), rng)
        one = settled.take(np.array([row]))
        mean, sd = one.moments(known)
        assert mean[0] == pytest.approx(y.mean(), abs=0.02 * y.std())
        assert sd[0] == pytest.approx(y.std(), rel=0.02)
        for level in (0.05, 0.3, 0.7, 0.95):
            at = np.quantile(y, level)
            assert one.weights @ known.cdf(one.atoms, np.full(8, at)) == pytest.approx(level, abs=0.025)


@pytest.mark.parametrize("weight", [0.0, WEIGHT])
def test_measures_drawn_from_the_prior_vary_as_base_and_process_do(weight: float) -> None:
    """Var of the mean of P: E[1 / (1 + alpha)] of what is within a base measure, and all that is between."""
    known, rng, draws, alpha = family(weight=weight), np.random.default_rng(7), 20_000, 1.5
    base = known.draw_base(rng, draws)
    drawn = draw_measures(Measures.unseen(draws, 2), np.full(draws, alpha), 0.0, known, rng, base)
    means = drawn.moments(known)[0]
    first, second = (known.moments(known.draw_given(rng, base))[0] for _ in range(2))
    between = float(np.cov(first, second)[0, 1])
    truth = (first.var() - between) / (1.0 + alpha) + between
    assert means.mean() == pytest.approx(0.5, abs=0.02) and means.var() == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize("weight", [0.0, WEIGHT])
def test_densities_of_components_are_less_their_means(weight: float) -> None:
    """By SciPy, in t and p given t: the mean of each is its entropy, but for the sign."""
    known, rng = family(weight=weight), np.random.default_rng(8)
    base = known.draw_base(rng, 5)
    a, b = known.draw_given(rng, base)
    found = known.centred_log_density({"a": a, "b": b}, base)
    for i, row in enumerate(base[:, :, 0]):
        of_total = stats.gamma(4.0, scale=1.0 / row[1])
        of_share = stats.beta(*Oracle(base_of(*row)).around(a[i] + b[i]))
        meant = of_total.logpdf(a[i] + b[i]) + of_total.entropy()
        meant += of_share.logpdf(a[i] / (a[i] + b[i])) + of_share.entropy()
        assert found[i] == pytest.approx(meant, rel=1e-6, abs=1e-6)
    law = stats.gamma(SHAPE, scale=RATE / SHAPE).logpdf(base[:, 1, 0])
    law += stats.norm(0.0, SPREAD).logpdf(base[:, 0, 0])
    if weight:
        law += stats.gamma(weight, scale=LAMBDA / (weight - 1.0)).logpdf(base[:, 2, 0])
    assert np.ptp(known.log_base(base) - law) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.matrix  # by day counts of records under a normal kernel agree with these
def test_counts_agree_with_records() -> None:
    """Counts of answers beside the samplers of records, on a narrow column."""
    rng = np.random.default_rng(3)
    y = rng.normal(0.2, 0.1, 60)
    z = y + rng.laplace(0.0, 0.3, 60)
    model, mixing = Model(("laplace", 0.3), BASE, 0.0, (2.0, 2.0), "beta"), PitmanYor(1.0, 0.0, 2.0, 2.0)
    start = learned(WEIGHT)
    chain = samplers.chain("neal8-3", model, z, rng_of("beta counts beside records"), learned=start)
    chain.keep(1, 1000)
    chain.proceed(4_000)
    counts = tally(z, np.arange(-1.0, 2.0 + 1e-9, 0.06), 0.06)
    other = CountsMixture(counts, samplers.channel(model), Beta(*BASE), mixing, start)
    run = other.make_chain(rng_of("beta records beside counts"))
    run.keep(1, 1000)
    run.proceed(3_000)
    one, two = ({name: values for name, (_, values) in each.take().items()} for each in (chain, run))
    for pick in (
        lambda base: base[:, 0, 0],
        *(lambda base, row=row: np.log(base[:, row, 0]) for row in (1, 2)),
    ):
        (a, b), (c, d) = (batch_means(pick(base).astype(float)) for base in (one["base"], two["base"]))
        assert abs(a - c) < 4.5 * np.hypot(b, d) + 0.02
    (a, b), (c, d) = (batch_means(np.asarray(k, float)) for k in (one["n_clusters"], two["n_clusters"]))
    assert abs(a - c) < 4.5 * np.hypot(b, d)


@pytest.mark.parametrize(
    "kind", ["neal8-3", *(pytest.param(kind, marks=pytest.mark.matrix) for kind in ("blocked", "counts"))]
)
def test_a_chain_goes_on_bit_for_bit(kind: str) -> None:
    """Place, rate, lambda and the steps of their moves are part of what is kept, also while burning in."""
    noise: Any = BINOMIAL if kind == "neal8-3" else ("laplace", 0.6)
    model, start = Model(noise, BASE, 0.0, (2.0, 2.0), "beta"), learned(WEIGHT)
    z = np.repeat([0.0, 3.0, 4.0, 6.0] if kind == "neal8-3" else [-0.6, 0.3, 0.4, 1.5], 10)
    counts, mixing = tally(z, np.arange(-1.0, 2.0 + 1e-9, 0.03), 0.03), PitmanYor(1.0, 0.0, 2.0, 2.0)

    def make(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        if kind != "counts":
            return samplers.chain(kind, model, z.copy(), rng, truncation=40, learned=start)
        return CountsMixture(counts, samplers.channel(model), Beta(*BASE), mixing, start).make_chain(rng)

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
