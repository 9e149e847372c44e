"""The binomial mechanism: its guarantee by enumeration of outputs in exact rationals."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.binomial.curator import Binomial
from dpmix.mechanisms.binomial.section import BinomialMechanism
from dpmix.mechanisms.curators.by_kind import from_spec, stated

DOMAIN = ((-1.0, 3.0),)
GRID = np.array([-1.0, -1 + 2.0**-40, -0.3, 0.0, 1.0, 2.5, 3 - 2.0**-40, 3.0])


def binomial(domain: Any = DOMAIN, **keys: Any) -> Binomial:
    made = from_spec(BinomialMechanism(kind="binomial", domain=domain, **keys), 1)
    assert isinstance(made, Binomial)
    return made


def law(p: Fraction, trials: int) -> list[Fraction]:
    return [math.comb(trials, z) * p**z * (1 - p) ** (trials - z) for z in range(trials + 1)]


def log(ratio: Fraction) -> mpmath.mpf:
    return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


@pytest.mark.parametrize("trials", [1, 2, 5, 20])
@pytest.mark.parametrize("keys", [{"epsilon": 0.01}, {"epsilon": 1.0}, {"epsilon": 30.0}, {"weight": 0.7}])
def test_epsilon_is_the_largest_log_ratio_over_values_and_outputs(
    trials: int, keys: dict[str, float]
) -> None:
    made = binomial(trials=trials, **keys)
    recorded = made.guarantee.epsilon
    assert recorded is not None
    with mpmath.workdps(60):
        laws = [law(Fraction(*p), trials) for p in made.probabilities(GRID)]
        worst = max(
            log(one[z] / other[z])
            for one, other in itertools.permutations(laws, 2)
            for z in range(trials + 1)
        )
        assert worst <= mpmath.mpf(recorded)
        assert float(worst) == pytest.approx(recorded, rel=1e-15)


@pytest.mark.parametrize(("trials", "epsilon"), [(1, 0.1), (3, 2.0), (8, 12.0)])
def test_rho_is_the_supremum_over_all_orders(trials: int, epsilon: float) -> None:
    made = binomial(trials=trials, epsilon=epsilon)
    assert made.guarantee.rho is not None
    with mpmath.workdps(40):
        low, high = (law(Fraction(*p), trials) for p in made.probabilities(np.array([-1.0, 3.0])))
        pairs = [(mpmath.mpf(p.numerator) / p.denominator, mpmath.mpf(q.numerator) / q.denominator)
                 for p, q in zip(low, high, strict=True)]  # fmt: skip
        ratios = []
        for order in (mpmath.mpf("1.000001"), 1.1, 1.5, 2, 3, 10, 100):
            total = mpmath.fsum(p * (p / q) ** (mpmath.mpf(order) - 1) for p, q in pairs)
            ratios.append(mpmath.log(total) / (mpmath.mpf(order) - 1) / order)
        assert max(ratios) <= made.guarantee.rho
        divergence = mpmath.fsum(p * mpmath.log(p / q) for p, q in pairs)
        assert float(divergence) == pytest.approx(made.guarantee.rho, rel=1e-14)


@settings(deadline=None)
@given(st.floats(1e-8, 200.0), st.integers(1, 100_000))
def test_the_recorded_guarantee_reaches_and_never_exceeds_the_request(asked: float, trials: int) -> None:
    made = binomial(trials=trials, epsilon=asked)
    assert made.guarantee.epsilon is not None
    assert made.guarantee.epsilon <= asked
    if asked / trials < 20:  # beyond, 1 - weight has few digits
        assert made.guarantee.epsilon > asked * (1 - 1e-8)
    assert made.weight == pytest.approx(math.tanh(asked / (2 * trials)), rel=1e-12)


def test_probabilities_are_exact_for_awkward_numbers() -> None:
    made = binomial(((0.1, 0.7),), trials=3, weight=0.3)
    values = np.array([0.1, 0.2, 0.3, 0.7])
    for value, (top, bottom) in zip(values.tolist(), made.probabilities(values), strict=True):
        u = (Fraction(value) - Fraction(0.1)) / (Fraction(0.7) - Fraction(0.1))
        assert Fraction(top, bottom) == Fraction(1, 2) + Fraction(0.3) * (u - Fraction(1, 2))


def test_released_counts_have_their_law() -> None:
    """Operating-system noise: false alarm below 1e-9."""
    made = binomial(trials=5, weight=0.6, order="public")
    values = np.repeat([[-1.0], [0.5], [3.0], [9.0]], 5000, axis=0)
    release, clamped = made.privatize(values, ("x",))
    assert clamped == (5000,)
    for part, p in zip(release.values.reshape(4, 5000), (0.2, 0.425, 0.8, 0.8), strict=True):
        expected = 5000 * stats.binom.pmf(range(6), 5, p)
        seen = np.bincount(part.astype(int), minlength=6)
        assert stats.chi2.sf(float(((seen - expected) ** 2 / expected).sum()), 5) > 1e-10
    assert release.mechanism.stated() | {"trials": 5, "weight": 0.6, "scale": []} == release.mechanism
    assert json.loads(json.dumps(release.mechanism.stated())) == release.mechanism
    assert (release.n, release.trust, release.columns, release.scales) == (20000, "local", ("x",), ())
    assert (release.epsilon, release.rho) == (made.guarantee.epsilon, made.guarantee.rho)


def test_simulations_are_reproducible_and_not_private() -> None:
    made = binomial(trials=9, epsilon=1.0)
    one, two = (made.simulate(GRID[:, None], ("x",), np.random.default_rng(4))[0] for _ in range(2))
    np.testing.assert_array_equal(one.values, two.values)
    assert (one.private, one.simulated) == (False, True)


def test_a_release_made_elsewhere_is_taken_at_its_word() -> None:
    for keys in ({"epsilon": 2.0}, {"weight": 0.25}):
        spec = BinomialMechanism(kind="binomial", domain=DOMAIN, trials=4, **keys)
        found, guarantee = stated(spec, 1)
        made = binomial(trials=4, **keys)
        assert (found["weight"], found["trials"], found["scale"]) == (made.weight, 4, [])
        assert (found["requested"], found["stated"]) == (keys, True)
        assert guarantee == made.guarantee


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(PrivacyError, match="leaves nothing to release"):
        binomial(trials=1, epsilon=1e-305)
    with pytest.raises(ValueError, match="binomial releases one column"):
        binomial(((0.0, 1.0), (0.0, 1.0)), trials=1, epsilon=1.0)
    with pytest.raises(SpecError, match=r"mechanism\.domain: missing"):
        stated(BinomialMechanism(kind="binomial", trials=1, epsilon=1.0), 1)
