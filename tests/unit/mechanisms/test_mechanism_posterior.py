"""Distances between conjugate posteriors, their sensitivities, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from dpmix.errors import PrivacyError, SpecError
from dpmix.posteriors import hellinger_law
from dpmix.posteriors.hellinger_law import (
    ROUNDING,
    ExponentialMechanism,
    Posteriors,
    checked_counts,
    states,
    theorem_gamma,
    weight_bits,
)
from tests.helpers.specs import message
from tests.oracles import posteriors as oracle

PRIORS: list[tuple[float, ...]] = [(1.0, 1.0), (0.5, 3.0), (1e-3, 40.0), (1.0, 1.0, 1.0), (0.2, 5.0, 1.0)]


def law(
    prior: tuple[float, ...], n: int, gamma: float, exponent: float = 0.4, bits: int = 60
) -> ExponentialMechanism:
    return ExponentialMechanism(Posteriors(prior, n), gamma, exponent, bits)


@pytest.mark.parametrize(("a", "b"), [((2.0, 3.5), (4.0, 1.5)), ((1.0, 11.0), (2.0, 10.0))])
def test_the_distance_of_beta_posteriors_is_their_hellinger_distance(a: Any, b: Any) -> None:
    one, other = stats.beta(*a), stats.beta(*b)
    overlap, _ = integrate.quad(lambda p: math.sqrt(one.pdf(p) * other.pdf(p)), 0, 1, epsabs=1e-12)
    prior = tuple(min(x, y) for x, y in zip(a, b, strict=True))
    counts, others = (tuple(round(x - p) for x, p in zip(c, prior, strict=True)) for c in (a, b))
    found = Posteriors(prior, sum(counts)).hellinger(counts, others)[0]
    assert found == pytest.approx(math.sqrt(1 - overlap), abs=1e-9)


def test_the_distance_of_dirichlet_posteriors_is_their_hellinger_distance() -> None:
    prior, counts, others = (1.0, 1.5, 2.0), (3, 1, 2), (1, 1, 4)
    one, other = (stats.dirichlet(np.add(prior, c)) for c in (counts, others))

    def root(q: float, p: float) -> float:
        at = np.array([p, q, 1 - p - q])
        return math.sqrt(one.pdf(at / at.sum()) * other.pdf(at / at.sum()))

    overlap, _ = integrate.dblquad(root, 0, 1, 0, lambda p: 1 - p, epsabs=1e-8)
    found = Posteriors(prior, 6).hellinger(counts, others)[0]
    assert found == pytest.approx(math.sqrt(1 - overlap), abs=1e-6)


@pytest.mark.parametrize("prior", PRIORS)
def test_tables_give_the_distances_of_all_posteriors(prior: tuple[float, ...]) -> None:
    of = Posteriors(prior, 7)
    every = oracle.databases(7, len(prior))
    assert [tuple(row) for row in states(7, len(prior)).tolist()] == every
    assert of.size == len(every)
    for x in every:
        expected = [oracle.hellinger(prior, x, r) for r in every]
        np.testing.assert_allclose(of.hellinger(x, every), expected, atol=2e-7, rtol=0)
        apart = of.apart(x)
        total = [sum(int(apart[i, k]) for i, k in enumerate(r)) for r in every]
        own = [hellinger_law.distance(t, of.unit) for t in total]
        np.testing.assert_allclose(own, of.hellinger(x, every), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("prior", "n", "x"),
    [
        ((1.0, 1.0), 1_000_000, 500_000),
        ((1.0, 1.0), 1_000_000, 3),
        ((0.01, 2e6), 100_000, 70_000),
        ((1e9, 1e9), 40, 20),
        ((1e-6, 1.0), 1_000_000, 500_000),
        ((20.0, 1e4), 300_000, 290_000),
    ],
)
def test_what_arithmetic_loses_of_a_distance_is_less_than_sensitivities_are_rounded_up(
    prior: tuple[float, float], n: int, x: int
) -> None:
    of = Posteriors(prior, n)
    with mpmath.workdps(60):
        for r in {x - 1, x + 1, x + 2, max(x - 1000, 0), min(x + 1000, n)}:
            exact = mpmath.mpf(0)
            for p, c, k in ((prior[0], x, r), (prior[1], n - x, n - r)):
                low, high = mpmath.mpf(p) + c, mpmath.mpf(p) + k
                exact += (mpmath.loggamma(low) + mpmath.loggamma(high)) / 2
                exact -= mpmath.loggamma((low + high) / 2)
            exact = mpmath.sqrt(-mpmath.expm1(-exact))
            found = of.hellinger((x, n - x), (r, n - r))[0]
            assert abs(found / exact - 1) < (ROUNDING - 1) / 4


def test_exponentials_of_sums_and_products_alone_are_accurate() -> None:
    rng = np.random.default_rng(1)
    with mpmath.workdps(40):
        for x in [0.0, 1e-300, *np.exp(rng.uniform(-30, 6.5, 400)), 0.5, 39.9, 40.0, 699.0]:
            assert abs(hellinger_law.exp_minus(float(x)) / mpmath.exp(-mpmath.mpf(float(x))) - 1) < 2.0**-48
            if x:
                exact = -mpmath.expm1(-mpmath.mpf(float(x)))
                assert abs(hellinger_law.one_minus_exp_minus(float(x)) / exact - 1) < 2.0**-48
    for function in (
        hellinger_law.exp_minus,
        hellinger_law.one_minus_exp_minus,
    ):  # compiled or not, to the last bit
        plain = getattr(function, "py_func", function)
        assert all(function(x) == plain(x) for x in np.exp(rng.uniform(-30, 6.5, 2000)).tolist())
    assert hellinger_law.exp_minus(701.0) == hellinger_law.one_minus_exp_minus(0.0) == 0.0
    assert hellinger_law.one_minus_exp_minus(40.0) == 1.0


@pytest.mark.parametrize(("prior", "n"), [(PRIORS[0], 9), (PRIORS[1], 9), (PRIORS[3], 5), (PRIORS[4], 4)])
def test_local_sensitivity_needs_no_maximum_over_candidates(prior: tuple[float, ...], n: int) -> None:
    steep = law(prior, n, gamma=200.0)  # of databases farther away nothing is left
    for x in oracle.databases(n, len(prior)):
        assert steep.smooth_sensitivity(x) == pytest.approx(oracle.local_sensitivity(prior, x), abs=1e-7)


@pytest.mark.parametrize("gamma", [0.01, 0.2, 1.5])
@pytest.mark.parametrize(
    ("prior", "n"),
    [
        (PRIORS[0], 11),
        (PRIORS[2], 8),
        ((40.0, 1e-3), 8),
        (PRIORS[3], 6),
        (PRIORS[4], 6),
        ((1.0, 0.3, 2.0, 0.1), 4),
        (PRIORS[3], 1),
    ],
)
def test_smooth_sensitivity_is_the_maximum_over_databases(
    prior: tuple[float, ...], n: int, gamma: float
) -> None:
    made = law(prior, n, gamma)
    for x in oracle.databases(n, len(prior)):
        expected = oracle.smooth_sensitivity(prior, x, gamma)
        assert made.smooth_sensitivity(x) == pytest.approx(expected, rel=1e-6)


def test_smooth_sensitivity_is_smooth_and_above_the_local_one_for_many_records() -> None:
    of = Posteriors((0.7, 1.0, 1.3), 3000)
    made, steep = ExponentialMechanism(of, 0.03, 0.4, 60), ExponentialMechanism(of, 200.0, 0.4, 60)
    rng = np.random.default_rng(5)
    for x in rng.multinomial(3000, [0.01, 0.3, 0.69], 10).tolist():
        here = made.smooth_sensitivity(x)
        assert here >= steep.smooth_sensitivity(x)
        for y in oracle.neighbours(tuple(x)):
            assert here <= made.smooth_sensitivity(y) * math.exp(0.03) * (1 + 1e-9)


@pytest.mark.parametrize("prior", [PRIORS[1], PRIORS[4]])
def test_weights_are_those_of_the_formula(prior: tuple[float, ...]) -> None:
    made = law(prior, 6, gamma=0.1, exponent=0.7)
    every = oracle.databases(6, len(prior))
    for x in every:
        rate = 0.7 / (oracle.smooth_sensitivity(prior, x, 0.1) * ROUNDING)
        expected = [2.0**60 * math.exp(-rate * oracle.hellinger(prior, x, r)) for r in every]
        found = made.weights(x)
        assert (found == np.floor(found)).all()
        assert found[every.index(x)] == 2.0**60
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_theorem_counts_all_posteriors() -> None:
    expected = math.log(1 - 0.8 / (2 * math.log(1e-8 / (2 * 651))))
    assert theorem_gamma(0.8, 1e-8, Posteriors((1.0, 1.0), 650).size) == pytest.approx(expected, rel=1e-12)
    assert Posteriors((1.0, 1.0, 1.0), 650).size == 651 * 652 // 2


def test_rounding_weights_down_moves_less_than_delta_allows() -> None:
    for epsilon, delta, size in ((0.8, 1e-8, 651), (10.0, 1e-12, 10**9), (0.01, 0.5, 2)):
        bits = weight_bits(epsilon, delta, size)
        assert size * 2.0**-bits * (1 + math.exp(epsilon)) < 2.0**-20 * delta


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([3, -1], "must not be negative"),
        ([1.5, 0.5], "must be whole numbers"),
        ([math.nan, 2], "must be whole numbers"),
        ([1, 2], "must sum to the number of records, 2"),
        ([1, 1, 0], "one number for each of the 2 entries of the prior"),
        (["1", "1"], "must be whole numbers"),
    ],
)
def test_counts_that_are_none_are_refused(counts: list[Any], said: str) -> None:
    with pytest.raises(PrivacyError, match=said):
        checked_counts(counts, 2, 2)


def test_counts_that_are_some_are_taken() -> None:
    assert checked_counts(np.array([2.0, 0.0]), 2, 2) == checked_counts([2, 0], 2, 2) == (2, 0)


@pytest.mark.parametrize(
    ("prior", "n", "said"),
    [
        ((1.0, 0.0), 5, "above 0 and at most 1e9, not 0"),
        ((1.0, -2.0), 5, "above 0 and at most 1e9, not -2"),
        ((1.0, math.nan), 5, "above 0"),
        ((1.0, 2e9), 5, "at most 1e9"),
        ((1.0,), 5, "at least two entries"),
        ((1.0, 1.0), 0, "1 to 1000000 records, not 0"),
        ((1e9, 1e9, 1.0), 10**5, "under this prior are too close to be told apart"),
        ((1.0, 1.0), 10**8, "1 to 1000000 records"),
    ],
)
def test_priors_and_numbers_of_records_that_are_none_are_refused(prior: Any, n: int, said: str) -> None:
    with pytest.raises(PrivacyError, match=said):
        Posteriors(prior, n).table.sum()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"delta": None, "method": "hellinger"},
            "mechanism.delta: missing beside epsilon; method hellinger takes (epsilon, delta)",
        ),
        (
            {"delta": None, "calibration": "proved"},
            "mechanism.delta: missing beside epsilon; method hellinger",
        ),
        ({"calibration": "exact"}, "mechanism.calibration: "),
        ({"delta": 0}, "mechanism.delta: 0 must be greater than 0"),
        ({"prior": [1, 0]}, "mechanism.prior[1]: 0 must be greater than 0"),
        ({"prior": [1]}, "mechanism.prior"),
        ({"sensitivity": 2}, "mechanism.sensitivity: is for method laplace or geometric; leave it out"),
        ({"method": "laplace"}, "mechanism.delta: method laplace has none"),
        (
            {"method": "laplace", "delta": None, "calibration": "theorem"},
            "mechanism.calibration: is for method hellinger, and not for laplace; leave it out",
        ),
        (
            {"method": "geometric", "delta": None, "prior": [1, 1, 1], "sensitivity": 1},
            "mechanism.sensitivity: 1 is for two categories, of which one count says all; use 2",
        ),
        ({"domain": [0, 1]}, "mechanism.domain: is not for a posterior of categories; leave it out"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], said: str) -> None:
    section = {"kind": "posterior", "prior": [1, 1], "epsilon": 0.8, "delta": 1e-8} | given
    section = {key: value for key, value in section.items() if value is not None}
    assert message(source={"mechanism": section}).startswith(said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"column": "x", "categories": ["a", "b", "c"]}, "mechanism.prior: has 2 entries, but"),
        ({"column": "x"}, "data.categories: missing; list the public categories of the column"),
        ({"columns": ["x", "y"]}, "data.columns: a posterior is of one named column of categories"),
    ],
)
def test_columns_that_no_posterior_is_of_are_refused_by_the_spec(data: dict[str, Any], said: str) -> None:
    section = {"kind": "posterior", "prior": [1, 1], "epsilon": 0.8, "delta": 1e-8}
    assert message(source={"data": {"path": "x.csv", **data}, "mechanism": section}).startswith(said)


def test_prior_and_categories_have_to_agree() -> None:
    from dpmix.mechanisms.curators.by_kind import from_spec
    from dpmix.mechanisms.posterior.section import PosteriorMechanism

    spec = PosteriorMechanism(kind="posterior", prior=(1.0, 1.0), epsilon=1.0, delta=1e-6)
    with pytest.raises(SpecError, match=r"mechanism.prior: has 2 entries, but data.categories lists 3"):
        from_spec(spec, 1, 10, ("x",), (("a", "b", "c"),))
    with pytest.raises(SpecError, match=r"data.columns: names 2 columns"):
        from_spec(spec, 2, 10, ("x", "y"))
    with pytest.raises(SpecError, match=r"mechanism.n: missing"):
        from_spec(spec, 1, None, ("x",))
