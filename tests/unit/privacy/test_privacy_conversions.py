"""Conversions between privacy notions against independent computations in many digits."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpmix.errors import PrivacyError
from dpmix.privacy.accounting import compose, sum_up
from dpmix.privacy.conversions import (
    classical_mu,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    laplace_epsilon,
    laplace_rho,
    response_epsilon,
    response_rho,
    rho_to_epsilon,
    rho_to_pure_bound,
)

epsilons = st.floats(1e-8, 1e3)
deltas = st.floats(-250, -0.01).map(lambda e: 10.0**e)


def exact_log_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """Balle and Wang's two terms, with enough digits that their difference is exact."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        first = mpmath.erfc((e / m - m / 2) / mpmath.sqrt(2)) / 2
        second = mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / mpmath.sqrt(2)) / 2
        return mpmath.log(first - second)


def renyi_of_laplace(epsilon: float, alpha: float) -> mpmath.mpf:
    """Divergence of order alpha between Laplace(0, 1) and Laplace(epsilon, 1), by quadrature."""
    with mpmath.workdps(30):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(alpha)

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(-a * abs(x) + (a - 1) * abs(x - e)) / 2

        total = mpmath.quad(integrand, [-mpmath.inf, 0, e, mpmath.inf])
        return mpmath.log(total) / (a - 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0, 18.8])
def test_laplace_zcdp_is_the_supremum_over_all_orders(epsilon: float) -> None:
    rho = laplace_rho(epsilon)
    ratios = [float(renyi_of_laplace(epsilon, a) / a) for a in (1.0001, 1.01, 1.5, 2.0, 5.0, 20.0)]
    assert max(ratios) <= rho
    assert ratios[0] == pytest.approx(rho, rel=1e-3)
    assert rho < 0.5 * epsilon**2  # that of any mechanism (Bun and Steinke 2016)


@given(epsilons)
def test_laplace_rho_is_exact_to_the_last_digits(epsilon: float) -> None:
    with mpmath.workdps(60):
        exact = mpmath.mpf(epsilon) - 1 + mpmath.exp(-mpmath.mpf(epsilon))
        assert abs(laplace_rho(epsilon) / exact - 1) < 1e-15


@given(st.floats(1e-16, 1e3))
def test_laplace_epsilon_inverts_and_never_exceeds(rho: float) -> None:
    epsilon = laplace_epsilon(rho)
    assert laplace_rho(epsilon) <= rho
    assert laplace_rho(epsilon * (1 + 1e-14)) > rho * (1 - 1e-15)
    assert epsilon >= rho_to_pure_bound(rho) * (1 - 1e-15)


def test_the_figures_of_methods_section_1() -> None:
    assert laplace_epsilon(17.8) == pytest.approx(18.8, abs=1e-6)
    assert rho_to_pure_bound(17.8) == pytest.approx(5.97, abs=0.005)
    for epsilon, delta, actual in ((10.0, 0.1, 0.41), (50.0, 0.1, 1.0)):
        mu = epsilon / math.sqrt(2 * math.log(1.25 / delta))
        assert gaussian_delta(epsilon, mu) == pytest.approx(actual, abs=0.005)


@settings(deadline=None, max_examples=150)
@given(st.one_of(st.just(0.0), st.floats(1e-6, 300.0)), st.floats(-4, 1.5).map(lambda e: 10.0**e))
def test_gaussian_delta_is_exact_in_the_far_tails_too(epsilon: float, mu: float) -> None:
    if epsilon / mu > 150:
        epsilon = 150 * mu
    exact = exact_log_delta(epsilon, mu)
    assert abs(gaussian_log_delta(epsilon, mu) - exact) < 1e-12 * max(1.0, abs(exact))


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 0.7), (1.0, 1.0), (3.0, 2.0)])
def test_gaussian_delta_is_the_hockey_stick_divergence(epsilon: float, mu: float) -> None:
    with mpmath.workdps(25):
        edge = mpmath.mpf(epsilon) / mu + mpmath.mpf(mu) / 2  # where the density ratio is e^epsilon

        def excess(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x, mu) - mpmath.exp(epsilon) * mpmath.npdf(x)

        total = mpmath.quad(excess, [edge, edge + 3, edge + 40])
    assert gaussian_delta(epsilon, mu) == pytest.approx(float(total), rel=1e-12)


@settings(deadline=None)
@given(st.floats(1e-4, 100.0), deltas)
def test_gaussian_inverses_lie_on_the_boundary(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_log_delta(epsilon, mu) <= math.log(delta)
    assert gaussian_log_delta(epsilon, mu * (1 + 1e-10)) > math.log(delta)
    again = gaussian_epsilon(mu, delta)
    assert again <= epsilon * (1 + 1e-9) + 1e-12
    assert gaussian_log_delta(again, mu) <= math.log(delta)


@settings(deadline=None, max_examples=60)
@given(st.floats(1e-3, 50.0), st.floats(-60, -0.01).map(lambda e: 10.0**e))
def test_gaussian_inverses_are_on_the_safe_side_exactly(epsilon: float, delta: float) -> None:
    """By Balle and Wang's theorem in 60 digits, not by our own figures of delta."""
    mu = gaussian_mu(epsilon, delta)
    with mpmath.workdps(60):
        target = mpmath.log(mpmath.mpf(delta))
        assert exact_log_delta(epsilon, mu) <= target
        again = gaussian_epsilon(mu, delta)
        assert again == 0.0 or exact_log_delta(again, mu) <= target


@given(st.floats(1e-3, 1.0), st.floats(1e-12, 0.5))
def test_the_classical_calibration_is_safe_up_to_one(epsilon: float, delta: float) -> None:
    assert gaussian_delta(epsilon, classical_mu(epsilon, delta)) <= delta


def test_the_classical_calibration_is_refused_beyond_one() -> None:
    with pytest.raises(PrivacyError, match=r"epsilon <= 1 only.*actual delta is 0\.406"):
        classical_mu(10.0, 0.1)


@settings(deadline=None)
@given(st.floats(1e-6, 100.0), st.floats(1e-12, 0.5))
def test_rho_to_epsilon_lies_between_the_exact_gaussian_and_the_simple_bound(
    rho: float, delta: float
) -> None:
    epsilon = rho_to_epsilon(rho, delta)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert epsilon >= gaussian_epsilon(math.sqrt(2 * rho), delta) * (1 - 1e-9)


@settings(deadline=None, max_examples=40)
@given(st.floats(-30, 2).map(lambda e: 10.0**e), deltas)
@example(1e-10, 1e-6)  # the terms of the bound nearly cancel
def test_rho_to_epsilon_is_never_below_the_least_over_orders(rho: float, delta: float) -> None:
    with mpmath.workdps(40):
        r, inverse = mpmath.mpf(rho), -mpmath.log(mpmath.mpf(delta))

        def bound(log_excess: mpmath.mpf) -> mpmath.mpf:
            excess = mpmath.exp(log_excess)
            left = inverse - mpmath.log1p(excess)
            return (1 + excess) * r + left / excess + log_excess - mpmath.log1p(excess)

        low, high = (mpmath.log(inverse / r) / 2 + end for end in (-5, 5))
        for _ in range(80):  # of its one minimum a third of the interval is left out each time
            third = (high - low) / 3
            if bound(low + third) < bound(high - third):
                high -= third
            else:
                low += third
        least = min(bound(low), r + 2 * mpmath.sqrt(r * inverse))
        found = mpmath.mpf(rho_to_epsilon(rho, delta))
        assert found >= least
        assert found <= max(least, 0) * (1 + 1e-6) + 1e-14 * mpmath.sqrt(r * inverse)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_parameters_that_are_none_are_refused(value: float) -> None:
    for function in (laplace_rho, laplace_epsilon, rho_to_pure_bound):
        with pytest.raises(PrivacyError, match="positive"):
            function(value)
    with pytest.raises(PrivacyError, match="between 0 and 1"):
        gaussian_mu(1.0, value if value != 0.0 else 1.0)
    with pytest.raises(PrivacyError, match="mu"):
        gaussian_delta(1.0, value)
    if not value > 0 or math.isinf(value):
        with pytest.raises(PrivacyError):
            gaussian_mu(value, 1e-5)


def test_composition_adds() -> None:
    laplace = compose("laplace", [0.5, 1.5])
    assert (laplace.epsilon, laplace.delta) == (2.0, 0.0)
    assert laplace.rho == pytest.approx(laplace_rho(0.5) + laplace_rho(1.5), rel=1e-14)
    gaussian = compose("gaussian", [0.3, 0.2], delta=1e-6)
    assert gaussian.rho == pytest.approx(0.5)
    assert gaussian.epsilon == pytest.approx(gaussian_epsilon(1.0, 1e-6))
    with pytest.raises(PrivacyError, match="nothing"):
        compose("laplace", [])


@given(st.lists(st.floats(0, 1e10), min_size=1, max_size=6))
def test_sums_are_rounded_up(values: list[float]) -> None:
    with mpmath.workdps(400):
        exact = mpmath.fsum(mpmath.mpf(v) for v in values)
        assert sum_up(values) >= exact
        assert sum_up(values) <= exact * (1 + mpmath.mpf(2) ** -51) + mpmath.mpf(2) ** -1074


def renyi_of_response(epsilon: float, order: mpmath.mpf) -> mpmath.mpf:
    p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
    total = p * (p / (1 - p)) ** (order - 1) + (1 - p) * ((1 - p) / p) ** (order - 1)
    return mpmath.log(total) / (order - 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0, 18.8])
def test_randomized_response_zcdp_is_the_supremum_over_all_orders(epsilon: float) -> None:
    rho = response_rho(epsilon)
    with mpmath.workdps(40):
        orders = [mpmath.mpf(10) ** k + 1 for k in (-12, -3, -1, 0, 1, 2, 3)]
        ratios = [float(renyi_of_response(epsilon, order) / order) for order in orders]
    assert max(ratios) <= rho * (1 + 1e-15)
    assert ratios[0] == pytest.approx(rho, rel=1e-9)
    assert rho < 0.5 * epsilon**2  # that of any mechanism (Bun and Steinke 2016)


@given(st.floats(1e-12, 1e3))
def test_response_epsilon_inverts_and_never_exceeds(rho: float) -> None:
    epsilon = response_epsilon(rho)
    assert rho * (1 - 1e-14) <= response_rho(epsilon) <= rho


def test_gaussian_noise_at_an_epsilon_beyond_all_reason() -> None:
    """Where delta underflows mu is that of the loss's mean, mu^2/2 = epsilon, and no formula breaks off."""
    for epsilon in (1e100, 1e160, 1e200, 1e300):
        assert math.isclose(gaussian_mu(epsilon, 1e-6), math.sqrt(2 * epsilon), rel_tol=1e-12)
