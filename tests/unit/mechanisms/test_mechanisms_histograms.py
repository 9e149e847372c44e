"""Both histogram mechanisms: their guarantees by enumeration of all neighbouring counts and outputs."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.by_kind import from_spec, stated
from dpmix.mechanisms.perturbed_histogram.curator import SENSITIVITY, PerturbedHistogram
from dpmix.mechanisms.perturbed_histogram.section import PerturbedHistogramMechanism
from dpmix.mechanisms.smoothed_histogram.curator import SmoothedHistogram
from dpmix.mechanisms.smoothed_histogram.section import SmoothedHistogramMechanism
from dpmix.numerics.discrete_gaussian import log_pmf
from dpmix.privacy.conversions import discrete_gaussian_delta, gaussian_delta

DOMAIN = ((0.0, 4.0),)
NOISES = ["laplace", "geometric", "gaussian", "discrete_gaussian"]


def smoothed(n: int | None = None, domain: Any = DOMAIN, **keys: Any) -> SmoothedHistogram:
    made = from_spec(SmoothedHistogramMechanism(kind="smoothed_histogram", domain=domain, **keys), 1, n)
    assert isinstance(made, SmoothedHistogram)
    return made


def perturbed(n: int | None = None, domain: Any = DOMAIN, **keys: Any) -> PerturbedHistogram:
    made = from_spec(PerturbedHistogramMechanism(kind="perturbed_histogram", domain=domain, **keys), 1, n)
    assert isinstance(made, PerturbedHistogram)
    return made


def neighbours(n: int, bins: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs of counts of databases of n records that differ in one of them."""
    for counts in itertools.product(range(n + 1), repeat=bins):
        if sum(counts) != n:
            continue
        for i, j in itertools.permutations(range(bins), 2):
            if counts[i]:
                other = list(counts)
                other[i] -= 1
                other[j] += 1
                yield counts, tuple(other)


@pytest.mark.parametrize(("n", "bins", "draws"), [(1, 2, 1), (3, 3, 2), (4, 2, 3), (2, 4, 2), (5, 3, 1)])
@pytest.mark.parametrize("keys", [{"epsilon": 0.05}, {"epsilon": 2.0}, {"epsilon": 25.0}, {"weight": 0.4}])
def test_smoothed_epsilon_is_the_largest_log_ratio(
    n: int, bins: int, draws: int, keys: dict[str, float]
) -> None:
    made = smoothed(n, bins=bins, draws=draws, **keys)
    w = Fraction(made.weight)

    def chance(counts: tuple[int, ...], output: tuple[int, ...]) -> Fraction:
        found = Fraction(1)
        for j in output:
            found *= (1 - w) * Fraction(counts[j], n) + w / bins
        return found

    worst = max(
        chance(one, output) / chance(other, output)
        for one, other in neighbours(n, bins)
        for output in itertools.product(range(bins), repeat=draws)
    )
    recorded = made.guarantee.epsilon
    assert recorded is not None
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)
        assert exact <= mpmath.mpf(recorded)
        assert float(exact) == pytest.approx(recorded, rel=1e-15)
    assert made.guarantee.trust == "global"


@settings(deadline=None)
@given(st.floats(1e-4, 50.0), st.integers(1, 10**6), st.integers(1, 1000), st.integers(1, 10**5))
def test_smoothed_weights_are_the_smallest_that_do(asked: float, bins: int, draws: int, n: int) -> None:
    made = smoothed(n, bins=bins, draws=draws, epsilon=asked)
    assert made.guarantee.epsilon is not None
    assert made.guarantee.epsilon <= asked
    if made.weight < 1 - 1e-7:  # nearer to 1, doubles leave few digits to what is not uniform
        assert made.guarantee.epsilon > asked * (1 - 1e-8)
    with np.errstate(over="ignore"):
        assert made.weight == pytest.approx(bins / (bins + n * float(np.expm1(asked / draws))), rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "draws", "n", "bins"),
    [(0.1, 1, 3, 3), (3.0, 2, 3, 3), (12.0, 5, 3, 3), (2.0, 1, 1, 2), (9.0, 1, 4, 5)],
)
def test_smoothed_rho_is_the_supremum_over_all_orders(epsilon: float, draws: int, n: int, bins: int) -> None:
    made = smoothed(n, bins=bins, draws=draws, epsilon=epsilon)
    assert made.guarantee.rho is not None
    worst, order = 0.0, 1 + np.geomspace(1e-5, 1e3, 300)
    for one, other in neighbours(n, bins):
        p, q = ((1 - made.weight) * np.array(c) / n + made.weight / bins for c in (one, other))
        logs = (order[:, None] - 1) * (np.log(p) - np.log(q)) + np.log(p)
        divergence = draws * np.logaddexp.reduce(logs, axis=1) / (order - 1)
        worst = max(worst, float((divergence / order).max()))
    assert made.guarantee.rho * (1 - 1e-3) < worst < made.guarantee.rho * (1 + 1e-7)


def test_smoothed_draws_have_their_law_and_say_nothing_within_a_bin() -> None:
    """Operating-system noise: false alarms below 1e-9 in all."""
    values = np.array([0.0, 0.9999, 1.0, 1.5, 1.999, 4.0, 7.0])[:, None]
    made = smoothed(7, bins=4, draws=40_000, weight=0.3)
    release, clamped = made.privatize(values, ("x",))
    assert clamped == (1,)
    bins = np.floor(release.values[:, 0]).astype(int)
    expected = 40_000 * (0.7 * np.array([2, 3, 0, 2]) / 7 + 0.3 / 4)
    assert stats.chisquare(np.bincount(bins, minlength=4), expected).pvalue > 2e-10
    for j in range(4):
        assert stats.kstest(release.values[bins == j, 0] - j, stats.uniform.cdf).pvalue > 2e-10
    assert not np.isin(values, release.values).any()
    assert (release.n, release.trust, release.values.shape) == (7, "global", (40_000, 1))
    law = release.mechanism
    assert law.stated() | {"bins": 4, "draws": 40_000, "weight": 0.3, "scale": []} == law
    np.testing.assert_array_equal(release.mechanism.edges(), [0, 1, 2, 3, 4])
    assert json.loads(json.dumps(release.mechanism.stated())) == release.mechanism


def test_smoothed_draws_stay_in_their_bin_where_doubles_are_sparse() -> None:
    made = smoothed(2, domain=((1.0, 1.0 + 2.0**-50),), bins=4, draws=500, weight=1e-9)
    release, _ = made.privatize(np.array([[1.0], [1.0 + 2.0**-52]]), ("x",))
    assert set(release.values[:, 0].tolist()) == {1.0, 1.0 + 2.0**-52}
    with pytest.raises(PrivacyError, match="5 cells"):
        smoothed(2, domain=((1.0, 1.0 + 2.0**-50),), bins=5, draws=5, weight=0.1).privatize(
            np.ones((2, 1)), ("x",)
        )


@pytest.mark.parametrize(("n", "bins"), [(1, 2), (3, 3), (2, 4)])
@pytest.mark.parametrize("keys", [{"epsilon": 0.5}, {"epsilon": 3.0}, {"rho": 0.7}, {"scale": 1.3}])
@pytest.mark.parametrize("noise", ["laplace", "geometric"])
def test_perturbed_epsilon_is_the_largest_log_ratio(
    noise: Any, keys: dict[str, float], n: int, bins: int
) -> None:
    """The log-ratio of these noises is piecewise linear in the output: whole numbers hold its maximum."""
    made = perturbed(n, bins=bins, noise=noise, **keys)
    worst = max(
        sum(abs(z - b) - abs(z - a) for z, a, b in zip(output, one, other, strict=True))
        for one, other in neighbours(n, bins)
        for output in itertools.product(range(-1, n + 2), repeat=bins)
    )
    recorded = made.guarantee.epsilon
    assert recorded is not None
    assert worst == 2
    assert Fraction(worst) / Fraction(made.s) <= Fraction(recorded)
    assert recorded == pytest.approx(worst / made.s, rel=1e-12)


def geometric_divergence(scale: float, order: float) -> mpmath.mpf:
    q = mpmath.exp(-1 / mpmath.mpf(scale))
    base = (1 - q) / (1 + q)
    # whole numbers up to 0 have ratio 1/q, those from 1 have ratio q
    total = base * ((1 / q) ** (order - 1) / (1 - q) + q ** (order - 1) * q / (1 - q))
    return mpmath.log(total) / (order - 1)


@pytest.mark.parametrize("scale", [0.1, 0.7, 3.0, 40.0])
def test_geometric_rho_is_the_supremum_over_all_orders(scale: float) -> None:
    rho = perturbed(3, bins=3, noise="geometric", scale=scale).guarantee.rho
    assert rho is not None
    with mpmath.workdps(40):
        orders = [mpmath.mpf("1.0000000001"), 1.2, 2, 4, 20, 200]
        ratios = [2 * geometric_divergence(scale, mpmath.mpf(order)) / order for order in orders]
        assert max(ratios) <= rho
        assert float(ratios[0]) == pytest.approx(rho, rel=1e-8)


@pytest.mark.parametrize("scale", [0.1, 0.7, 3.0, 40.0])
def test_laplace_rho_is_two_divergences_of_a_count(scale: float) -> None:
    rho = perturbed(3, bins=3, scale=scale).guarantee.rho
    e = mpmath.mpf(1) / mpmath.mpf(scale)
    one = mpmath.quad(lambda x: mpmath.exp(-abs(x)) / 2 * (abs(x - e) - abs(x)), [-40, 0, e, e + 40])
    assert rho == pytest.approx(2 * float(one), rel=1e-10)


@settings(deadline=None, max_examples=25)
@given(st.floats(1e-3, 50.0), st.sampled_from([1, 2, 7, 3000]))
def test_perturbed_guarantees_reach_and_never_exceed_the_request(asked: float, bins: int) -> None:
    for noise, keys in (
        ("laplace", {"epsilon": asked}),
        ("laplace", {"rho": asked}),
        ("geometric", {"epsilon": asked}),
        ("geometric", {"rho": asked}),
        ("gaussian", {"rho": asked}),
        ("gaussian", {"epsilon": asked, "delta": 1e-5}),
        ("discrete_gaussian", {"rho": asked}),
        ("discrete_gaussian", {"epsilon": asked, "delta": 1e-5}),
    ):
        total = perturbed(bins=bins, noise=noise, **keys).guarantee
        for name, value in keys.items():
            assert value * (1 - 1e-7) < getattr(total, name) <= value, noise


def test_gaussian_counts_have_the_l2_sensitivity_of_neighbours() -> None:
    largest = max(math.dist(one, other) for one, other in neighbours(3, 3))
    assert largest <= SENSITIVITY["gaussian"] <= largest * (1 + 1e-15)
    made = perturbed(bins=5, noise="gaussian", epsilon=2.0, delta=1e-4)
    assert gaussian_delta(2.0, math.sqrt(2) / made.s) == pytest.approx(1e-4, rel=1e-7)
    assert made.guarantee.rho == pytest.approx(1 / made.s**2, rel=1e-9)


def test_discrete_gaussian_counts_state_the_discrete_sum() -> None:
    made = perturbed(bins=5, noise="discrete_gaussian", epsilon=2.0, delta=1e-4)
    assert discrete_gaussian_delta(2.0, made.s, 2) == pytest.approx(1e-4, rel=1e-7)
    assert made.guarantee.rho == pytest.approx(1 / made.s**2, rel=1e-9)
    assert not made.guarantee.gaussian
    spec = PerturbedHistogramMechanism(
        kind="perturbed_histogram", domain=DOMAIN, bins=5, noise="discrete_gaussian", epsilon=2.0, delta=1e-4
    )
    own, total = stated(spec, 1, 9)
    assert own["scale"] == [pytest.approx(made.s, rel=1e-9)]
    assert total.epsilon == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_noisy_counts_are_the_counts_with_their_noise(noise: Any) -> None:
    """Operating-system noise: false alarms below 1e-9 in all."""
    values = np.concatenate([[0.0, 4.0, 9.0, -1.0], np.full(50, 1.0)])[:, None]
    exact, clamped = perturbed(bins=4, noise=noise, scale=1e-3).privatize(values, ("x",))
    np.testing.assert_allclose(exact.values[:, 0], [2, 50, 0, 2], atol=0.05)
    assert clamped == (2,)
    made = perturbed(54, bins=4000, noise=noise, rho=0.3)
    release, _ = made.privatize(values, ("x",))
    extra = release.values[:, 0] - np.bincount([0, 3999, 3999, 0] + 50 * [1000], minlength=4000)
    if noise == "geometric":
        assert (extra == np.floor(extra)).all()
        law = stats.dlaplace(1 / made.s)
        cells = np.clip(extra, -6, 6).astype(int) + 6
        expected = law.pmf(np.arange(-6, 7))
        expected[[0, -1]] = law.cdf(-6), law.sf(5)
        assert stats.chisquare(np.bincount(cells, minlength=13), 4000 * expected).pvalue > 1e-10
    elif noise == "discrete_gaussian":
        assert (extra == np.floor(extra)).all()
        cells = np.clip(extra, -4, 4).astype(int) + 4
        chances = np.exp(log_pmf(np.arange(-60, 61.0), made.s))
        expected = np.array([chances[:57].sum(), *chances[57:64], chances[64:].sum()])
        assert stats.chisquare(np.bincount(cells, minlength=9), 4000 * expected).pvalue > 1e-10
    else:
        law = stats.laplace if noise == "laplace" else stats.norm
        assert stats.kstest(extra, law(0, made.s).cdf).pvalue > 1e-10
    assert (release.n, release.trust, release.scales) == (54, "global", (made.s,))
    assert release.mechanism.stated() | {"bins": 4000, "noise": noise, "scale": [made.s]} == release.mechanism
    assert json.loads(json.dumps(release.mechanism.stated())) == release.mechanism
    for name in ("epsilon", "delta", "rho"):
        assert getattr(release, name) == getattr(made.guarantee, name)


@pytest.mark.parametrize("noise", NOISES)
def test_simulated_counts_are_reproducible_and_not_private(noise: Any) -> None:
    made = perturbed(bins=3000, noise=noise, scale=2.0)
    one, two = (made.simulate(np.ones((9, 1)), ("x",), np.random.default_rng(4))[0] for _ in range(2))
    np.testing.assert_array_equal(one.values, two.values)
    assert (one.private, one.simulated) == (False, True)
    law = {"laplace": stats.laplace(0, 2), "gaussian": stats.norm(0, 2), "geometric": stats.dlaplace(0.5)}
    law["discrete_gaussian"] = law["gaussian"]  # to nine digits
    noises = np.delete(one.values[:, 0], 750)
    assert noises.std() == pytest.approx(law[noise].std(), rel=0.1)


def test_simulated_draws_are_reproducible_and_not_private() -> None:
    made = smoothed(9, bins=4, draws=50, epsilon=2.0)
    one, two = (made.simulate(np.ones((9, 1)), ("x",), np.random.default_rng(4))[0] for _ in range(2))
    np.testing.assert_array_equal(one.values, two.values)
    assert (one.private, one.simulated, one.n) == (False, True, 9)


def test_releases_made_elsewhere_are_taken_at_their_word() -> None:
    for noise, keys in itertools.product(NOISES, ({"rho": 0.5}, {"scale": 3.0})):
        spec = PerturbedHistogramMechanism(
            kind="perturbed_histogram", domain=DOMAIN, bins=4, noise=noise, n=9, **keys
        )
        found, guarantee = stated(spec, 1)
        made = perturbed(bins=4, noise=noise, **keys)
        assert found["scale"] == pytest.approx([made.s], rel=1e-9)
        assert {"bins": 4, "noise": noise, "requested": keys}.items() <= found.stated().items()
        for name in ("epsilon", "rho"):
            wanted = getattr(made.guarantee, name)
            assert getattr(guarantee, name) == (wanted and pytest.approx(wanted, rel=1e-9))
    spec2 = SmoothedHistogramMechanism(kind="smoothed_histogram", domain=DOMAIN, bins=4, draws=3, epsilon=1.0)
    made2 = smoothed(9, bins=4, draws=3, epsilon=1.0)
    found, guarantee = stated(spec2, 1, 9)
    assert (found["weight"], guarantee) == (made2.weight, made2.guarantee)
    with pytest.raises(SpecError, match=r"mechanism\.n: missing"):
        stated(spec2, 1)


def test_what_makes_no_sense_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"mechanism\.n: missing"):
        smoothed(bins=4, draws=3, epsilon=1.0)
    for make, keys in ((SmoothedHistogramMechanism, {"draws": 3}), (PerturbedHistogramMechanism, {})):
        kind = make.model_fields["kind"].annotation.__args__[0]
        spec = make(kind=kind, domain=DOMAIN, bins=4, epsilon=1.0, n=9, **keys)
        with pytest.raises(SpecError, match=r"mechanism\.n: 9, but there are 10 records"):
            from_spec(spec, 1, 10)
    with pytest.raises(SpecError, match="names 2 columns, but perturbed_histogram releases one"):
        from_spec(PerturbedHistogramMechanism(kind="perturbed_histogram", domain=DOMAIN, bins=4, rho=1.0), 2)
    with pytest.raises(PrivacyError, match="for 10 records, not 2"):
        smoothed(10, bins=4, draws=3, epsilon=1.0).privatize(np.ones((2, 1)), ("x",))
    with pytest.raises(PrivacyError, match="for 10 records, not 2"):
        perturbed(10, bins=4, epsilon=1.0).privatize(np.ones((2, 1)), ("x",))
    for keys, message in (
        ({"epsilon": 1.0, "noise": "gaussian"}, "missing beside epsilon"),
        ({"epsilon": 1.0, "delta": 0.1}, "laplace noise has none"),
        ({"epsilon": 1.0, "delta": 0.1, "noise": "geometric"}, "geometric noise has none"),
        (
            {"epsilon": 1.0, "noise": "discrete_gaussian"},
            "discrete gaussian noise takes .epsilon, delta. or rho",
        ),
        ({"epsilon": 1.0, "domain": ((0.0, 1.0), (0.0, 1.0))}, "releases one column"),
    ):
        with pytest.raises(ValueError, match=message):
            perturbed(bins=4, **keys)
    with pytest.raises(PrivacyError, match="between 1e-12 and 1e12"):
        _ = perturbed(bins=4, noise="geometric", scale=1e13).guarantee
    assert smoothed(3, bins=4, draws=2, weight=1.0).guarantee.epsilon == 0.0
