"""The guarantee of a released posterior, from its integer weights by enumeration and by certificate."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.posterior import calibrations
from dpmix.mechanisms.posterior.calibrations import certify, largest, search
from dpmix.mechanisms.posterior.certificate import MARGIN, Few, Two, divergences_of_pairs, neighbours
from dpmix.mechanisms.posterior.curator import Calibration, HellingerPosterior
from dpmix.mechanisms.posterior.section import PosteriorMechanism
from dpmix.posteriors.hellinger_law import ExponentialMechanism, Posteriors
from tests.oracles import posteriors as oracle

TWO = [
    ((1.0, 1.0), 1, 0.8, 1e-8),
    ((1.0, 1.0), 2, 3.0, 1e-3),
    ((0.5, 2.0), 7, 0.8, 1e-8),
    ((1.0, 1.0), 30, 0.8, 1e-8),
    ((1.0, 1.0), 30, 0.1, 0.02),
    ((0.1, 6.0), 30, 2.0, 1e-4),
    ((40.0, 40.0), 20, 0.5, 1e-6),
]
THREE = [
    ((1.0, 1.0, 1.0), 6, 0.8, 1e-8),
    ((1.0, 1.0, 1.0), 4, 0.3, 0.05),
    ((0.5, 1.0, 4.0), 5, 2.0, 1e-4),
]
LARGER = [
    ((1.0, 1.0), 60, 0.8, 1e-8),
    ((0.5, 2.0), 60, 0.2, 0.01),
    ((1.0, 3.0), 60, 4.0, 1e-10),
    ((1.0, 1.0, 1.0), 8, 0.8, 1e-8),
    ((0.5, 1.0, 4.0), 8, 2.0, 1e-4),
    ((1.0, 1.0, 1.0, 1.0), 5, 0.8, 1e-3),
]
CASES = [*TWO, *THREE, *(pytest.param(*case, marks=pytest.mark.matrix) for case in LARGER)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPMIX_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def made(
    prior: Any, n: int, epsilon: float, delta: float, calibration: Calibration = "certified"
) -> HellingerPosterior:
    return HellingerPosterior(prior=prior, n=n, epsilon=epsilon, delta=delta, calibration=calibration)


def kept() -> Path:
    """Return the folder of calibrations."""
    found = calibrations.directory()
    assert found is not None
    return found


def all_weights(law: ExponentialMechanism) -> dict[oracle.Counts, list[int]]:
    """Return the integer weights of every posterior (in lexical order) under every database."""
    every = oracle.databases(law.posteriors.n, law.posteriors.dimension)
    return {x: [int(w) for w in law.weights(x)] for x in every}


@pytest.mark.parametrize("calibration", ["certified", "theorem"])
@pytest.mark.parametrize(("prior", "n", "epsilon", "delta"), CASES)
def test_every_database_neighbour_and_posterior_meets_the_guarantee(
    prior: Any, n: int, epsilon: float, delta: float, calibration: Calibration
) -> None:
    mechanism = made(prior, n, epsilon, delta, calibration)
    weights = all_weights(mechanism.law)
    exact = oracle.largest_divergence(weights, epsilon)
    assert exact <= Fraction(delta)
    found = mechanism.certificate
    assert found is not None
    assert found.gamma == mechanism.gamma and found.exponent_scale == pytest.approx(mechanism.exponent_scale)
    assert exact <= Fraction(found.delta) <= exact + Fraction(4 * MARGIN)
    assert found.epsilon <= epsilon
    assert oracle.largest_divergence(weights, found.epsilon) <= Fraction(delta)
    if 0 < found.epsilon < epsilon * 0.99:  # then it is the least, to about a thousandth
        assert oracle.largest_divergence(weights, found.epsilon * 0.997) > Fraction(delta)
    d = len(prior)
    assert found.pairs == sum(len(list(oracle.neighbours(x))) for x in weights) // 2
    errors = [
        np.dot(own, [oracle.hellinger(prior, x, r) for r in weights]) / sum(own) for x, own in weights.items()
    ]
    assert found.error == pytest.approx(np.mean(errors), abs=1e-6)
    assert math.comb(n + d - 1, d - 1) == len(weights)


@pytest.mark.matrix
@pytest.mark.parametrize("calibration", ["certified", "theorem"])
@pytest.mark.parametrize(
    ("prior", "most"),
    [((1.0, 1.0), 60), ((0.5, 2.0), 60), ((1.0, 1.0, 1.0), 8), ((0.5, 1.0, 4.0), 8)],
    ids=["two", "two of different entries", "three", "three of different entries"],
)
def test_every_number_of_records_meets_the_guarantee(prior: Any, most: int, calibration: Calibration) -> None:
    for n in range(1, most + 1):
        for epsilon, delta in ((0.8, 1e-8), (0.2, 0.01), (3.0, 1e-4)):
            mechanism = made(prior, n, epsilon, delta, calibration)
            exact = oracle.largest_divergence(all_weights(mechanism.law), epsilon)
            found = mechanism.certificate
            assert found is not None
            assert exact <= Fraction(found.delta) <= min(exact + Fraction(4 * MARGIN), Fraction(delta)), n


@pytest.mark.parametrize(("prior", "n", "epsilon", "delta"), [TWO[2], TWO[3], THREE[0]])
def test_a_steeper_law_is_caught_by_enumeration_and_certificate(
    prior: Any, n: int, epsilon: float, delta: float
) -> None:
    right = made(prior, n, epsilon, delta).law
    family = neighbours(right.posteriors)
    assert family is not None
    for wrong in (
        dataclasses.replace(right, exponent=right.exponent * 1.3),
        dataclasses.replace(right, exponent=right.exponent * 1.3, bits=right.bits + 30),
    ):
        exact = oracle.largest_divergence(all_weights(wrong), epsilon)
        assert exact > Fraction(delta)
        found = certify(family, wrong, epsilon, delta)
        assert found.delta > delta and found.epsilon > epsilon
        assert exact <= Fraction(found.delta) <= exact + Fraction(4 * MARGIN)


def test_a_sensitivity_without_smoothing_is_caught() -> None:
    law = ExponentialMechanism(
        Posteriors((1.0, 1.0), 30), gamma=50.0, exponent=0.75, bits=60
    )  # S = LS: too sharp
    exact = oracle.largest_divergence(all_weights(law), 0.8)
    family = neighbours(law.posteriors)
    assert family is not None
    assert exact > Fraction(1, 10**8)
    assert certify(family, law, 0.8, 1e-8).delta >= exact


def test_a_law_that_rounds_too_coarsely_is_caught() -> None:
    right = made((1.0, 1.0), 30, 0.8, 1e-8).law
    coarse = dataclasses.replace(right, bits=6)
    exact = oracle.largest_divergence(all_weights(coarse), 0.8)
    assert exact > Fraction(1, 10**8)
    assert Two(coarse.posteriors).certified(coarse, 0.8)[0] >= exact


def test_the_theorem_is_refused_where_its_certificate_refutes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmix.mechanisms.posterior.curator.weight_bits", lambda *_: 5)
    with pytest.raises(PrivacyError, match=r"mechanism.calibration: theorem does not hold here"):
        made((1.0, 1.0), 60, 4.0, 1e-8, "theorem").describe()


@pytest.mark.parametrize(("prior", "n", "gamma"), [((1.0, 1.0), 400, 0.05), ((0.3, 2.0), 300, 0.01)])
def test_divergences_within_reach_are_those_of_all_posteriors(prior: Any, n: int, gamma: float) -> None:
    law = ExponentialMechanism(Posteriors(prior, n), gamma, 0.72, 61)
    family = Two(law.posteriors)
    weights = np.array([law.weights((c, n - c)) for c in range(n + 1)])
    p = weights / weights.sum(axis=1, keepdims=True)
    growth = math.exp(0.8)
    ahead = np.maximum(p[:-1] - growth * p[1:], 0).sum(axis=1)
    back = np.maximum(p[1:] - growth * p[:-1], 0).sum(axis=1)
    expected = np.append(np.maximum(ahead, back), 0.0)
    rows = np.arange(n + 1)
    deltas, errors = family.evaluate(law, 0.8, rows)
    np.testing.assert_allclose(deltas, expected, rtol=1e-9, atol=1e-14)
    others = np.array([[c, n - c] for c in range(n + 1)])
    distances = np.array([law.posteriors.hellinger((c, n - c), others) for c in range(n + 1)])
    np.testing.assert_allclose(errors, (p * distances).sum(axis=1), rtol=1e-9)
    apart = np.array([0, 3, 4, 50, 51, n - 1, n])
    some, _ = family.evaluate(law, 0.8, apart)
    np.testing.assert_array_equal(some, deltas[apart])
    if law.posteriors.exchangeable:
        np.testing.assert_allclose(deltas[:n], deltas[:n][::-1], rtol=1e-9, atol=1e-15)
    assert family.mean_error(rows[: family.every()[-1] + 1], errors[family.every()]) == pytest.approx(
        errors.mean()
    )


def test_orders_of_categories_stand_for_each_other() -> None:
    law = ExponentialMechanism(Posteriors((1.0, 1.0, 1.0), 9), 0.1, 0.7, 60)
    few = Few(law.posteriors)
    near = Few(Posteriors((1.0, 1.0, 1.0 + 1e-12), 9))  # no symmetry is taken from it
    assert len(few.own) < len(near.own) / 4
    one = few.certified(law, 0.8)
    other = near.certified(dataclasses.replace(law, posteriors=near.posteriors), 0.8)
    assert one[0] == pytest.approx(other[0], rel=1e-6)
    assert one[2] == pytest.approx(other[2], rel=1e-6)
    assert few.pairs == near.pairs == len(near._pairs)

    def alike(x: oracle.Counts, y: oracle.Counts) -> tuple[Any, ...]:
        orders = itertools.permutations(range(3))
        return min(tuple(sorted((tuple(x[i] for i in o), tuple(y[i] for i in o)))) for o in orders)

    listed = [tuple(row) for row in few.states[few.chosen].tolist()]
    held = {alike(listed[a], listed[b]) for a, b in few._pairs.tolist()}
    assert held == {alike(x, y) for x in oracle.databases(9, 3) for y in oracle.neighbours(x)}


def test_pairs_of_listed_posteriors_count_in_both_directions() -> None:
    rng = np.random.default_rng(3)
    weights = np.floor(rng.gamma(0.4, 1000.0, (4, 6)) + 1)
    pairs = np.array(list(itertools.permutations(range(4), 2)))
    found = divergences_of_pairs(weights, weights.sum(axis=1), pairs, math.exp(0.5))
    growth = oracle.exponential(0.5)
    rows = [[int(w) for w in row] for row in weights]
    ahead = [oracle.divergence(rows[x], rows[y], growth) for x, y in pairs.tolist()]
    back = [oracle.divergence(rows[y], rows[x], growth) for x, y in pairs.tolist()]
    assert any(abs(one - other) > Fraction(1, 10) for one, other in zip(ahead, back, strict=True))
    expected = [float(max(one, other)) for one, other in zip(ahead, back, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-14)


def test_expected_errors_are_those_of_the_methods() -> None:
    rows = np.array([65])
    theorem = made((1.0, 1.0), 650, 0.8, 1e-8, "theorem")
    family = Two(theorem.posteriors)
    assert family.evaluate(theorem.law, 0.8, rows)[1][0] == pytest.approx(0.738, abs=5e-4)
    by_scale = dataclasses.replace(theorem.law, exponent=0.4 * 1.9)
    assert family.evaluate(by_scale, 0.8, rows)[1][0] == pytest.approx(0.30, abs=5e-3)
    certified = made((1.0, 1.0), 650, 0.8, 1e-8)
    assert family.evaluate(certified.law, 0.8, rows)[1][0] < 0.06
    assert theorem.certificate is not None and 0.38 < theorem.certificate.epsilon < 0.43


def test_calibrations_are_kept_on_disk_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = made((1.0, 1.0), 12, 0.8, 1e-8).certificate
    (path,) = kept().iterdir()
    stored = json.loads(path.read_text("utf-8"))
    assert stored["found"] == dataclasses.asdict(first)
    assert stored["key"]["tables"] == Posteriors((1.0, 1.0), 12).digest
    monkeypatch.setattr(calibrations, "search", lambda *_: pytest.fail("searched again"))
    assert made((1.0, 1.0), 12, 0.8, 1e-8).certificate == first
    for other in ((13, 0.8, 1e-8), (12, 0.7, 1e-8), (12, 0.8, 1e-7)):
        with pytest.raises(pytest.fail.Exception):
            made((1.0, 1.0), *other).describe()
    with pytest.raises(pytest.fail.Exception):
        made((1.0, 1.0 + 1e-15), 12, 0.8, 1e-8).describe()


@pytest.mark.parametrize("damage", ["scale", "epsilon", "cut", "key", "tables", "number", "type", "list"])
def test_what_is_wrong_on_disk_is_not_believed(damage: str) -> None:
    family = neighbours(Posteriors((1.0, 1.0), 12))
    assert family is not None
    first = calibrations.calibrated(family, 0.8, 1e-8)
    folder = kept()
    (path,) = folder.iterdir()
    stored = json.loads(path.read_text("utf-8"))
    if damage != "epsilon":
        stored["found"]["exponent_scale"] = 3.0  # not private
    if damage == "key":
        stored["key"]["n"] = 11
    elif damage == "tables":
        stored["key"]["tables"] = "0" * 64
    elif damage == "epsilon":
        stored["found"]["epsilon"] = 0.1  # a claim that the law does not meet
    elif damage == "list":
        stored["found"] = []
    elif damage == "number":
        stored["found"]["gamma"] = -1.0
    elif damage == "type":
        stored["found"]["gamma"] = "0.1"
    text = json.dumps(stored)
    path.write_text(text[:-20] if damage == "cut" else text, "utf-8")
    assert calibrations.calibrated(family, 0.8, 1e-8) == first
    assert [p.name for p in folder.iterdir()] == [path.name]
    assert json.loads(path.read_text("utf-8"))["found"] == dataclasses.asdict(first)


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder", "utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert made((1.0, 1.0), 5, 0.8, 1e-8).certificate is not None


def test_calibrations_are_kept_under_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept() == tmp_path / "cache" / "dpmix" / "posterior"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kept() == tmp_path / ".cache" / "dpmix" / "posterior"
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # a user without a home
    assert calibrations.directory() is None
    assert made((1.0, 1.0), 5, 0.8, 1e-8).certificate is not None
    monkeypatch.setenv("DPMIX_CACHE_DIR", str(tmp_path / "own"))
    assert kept() == tmp_path / "own" / "posterior"


def test_several_processes_may_calibrate_at_once() -> None:
    family = neighbours(Posteriors((1.0, 1.0), 12))
    assert family is not None
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: calibrations.calibrated(family, 0.8, 1e-8), range(8)))
    assert len(set(found)) == 1
    (path,) = kept().iterdir()
    assert json.loads(path.read_text("utf-8"))["found"] == dataclasses.asdict(found[0])


def test_what_cannot_be_certified_is_refused() -> None:
    with pytest.raises(PrivacyError, match=r"calibration: certified is for two categories or few posteriors"):
        made((1.0, 1.0, 1.0), 500, 0.8, 1e-8)
    assert made((1.0, 1.0, 1.0), 500, 0.8, 1e-8, "theorem").certificate is None
    with pytest.raises(PrivacyError, match=r"mechanism.delta: a certificate resolves 1e-12, not 1e-13"):
        made((1.0, 1.0), 5, 0.8, 1e-13).describe()
    with pytest.raises(PrivacyError, match=r"mechanism.delta: method hellinger takes at least 1e-30, not 0"):
        made((1.0, 1.0), 5, 0.8, 0.0)
    with pytest.raises(PrivacyError, match=r"mechanism.epsilon: method hellinger takes at most 50, not 60"):
        made((1.0, 1.0), 5, 60.0, 1e-6)


@pytest.mark.parametrize(
    ("prior", "n", "delta", "expected"),
    [
        ((1.0, 2.0), 50, 1e-8, "certified"),
        ((1.0, 1.0), 50, 1e-20, "proved"),  # finer than a certificate resolves
        ((1.0, 1.0, 1.0), 6, 1e-8, "certified"),
        ((1.0, 1.0, 1.0), 97, 1e-8, "certified"),
        ((1.0, 1.0, 1.0), 98, 1e-8, "proved"),
        *(
            pytest.param(prior, n, 1e-8, "proved", marks=pytest.mark.matrix)
            for prior, n in (((1.0, 1.0, 2.0), 62), ((1.0, 1.0, 1.0), 10_000), ((1.0,) * 5, 300))
        ),
    ],
)
def test_a_certificate_is_the_default_where_it_can_be_computed(
    prior: Any, n: int, delta: float, expected: str
) -> None:
    spec = PosteriorMechanism(kind="posterior", method="hellinger", prior=prior, epsilon=0.8, delta=delta)
    found = from_spec(spec, 1, n, ("x",))
    assert isinstance(found, HellingerPosterior) and found.calibration == expected


@pytest.mark.parametrize("start", [0.01, 0.7, 3.0, 900.0])
def test_the_search_finds_the_largest_that_holds(start: float) -> None:
    found = largest(lambda x: x <= 2.5, 0.01, 900.0, start=start, tolerance=1e-3)
    assert found is not None and 2.5 / 1.001 <= found <= 2.5
    assert largest(lambda x: x <= 2000, 0.01, 900.0, start=start, tolerance=1e-3) == 900.0
    assert largest(lambda x: False, 0.01, 900.0, start=start, tolerance=1e-3) is None


def test_searching_again_finds_the_same() -> None:
    family = neighbours(Posteriors((1.0, 2.0), 40))
    assert family is not None
    assert search(family, 0.5, 1e-5) == search(family, 0.5, 1e-5)
