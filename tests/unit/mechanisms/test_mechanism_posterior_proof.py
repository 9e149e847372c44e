"""The proved calibration of a released posterior: the steps of the proof, and what is claimed, enumerated."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import dpmix
from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.posterior import calibrations
from dpmix.mechanisms.posterior.calibrations import Proof, proved
from dpmix.mechanisms.posterior.certificate import neighbours
from dpmix.mechanisms.posterior.curator import HellingerPosterior, choose
from dpmix.mechanisms.posterior.released_posterior import PosteriorRelease
from dpmix.mechanisms.posterior.section import PosteriorMechanism
from dpmix.posteriors import hellinger_law
from dpmix.posteriors.hellinger_law import (
    ROUNDING,
    ExponentialMechanism,
    Posteriors,
    theorem_gamma,
    weight_bits,
)
from dpmix.posteriors.simulated_draws import distances
from dpmix.release.release_file import read_release
from tests.oracles import posteriors as oracle

FAMILIES = [
    ((1.0, 1.0), 7),
    ((0.3, 4.0), 6),
    ((1.0, 1.0, 1.0), 5),
    ((0.5, 1.0, 4.0), 4),
    ((0.2, 0.2, 0.2), 4),
    ((1.0, 1.0, 1.0, 1.0), 3),
]
LAWS = [
    (scale, gamma, epsilon)
    for epsilon in (0.5, 3.0, 12.0)
    for scale in (0.3, 0.75, 0.97)
    for gamma in (0.02, 0.2, 1.0)
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMIX_CACHE_DIR", str(tmp_path / "cache"))


def integer_weights(law: ExponentialMechanism) -> dict[oracle.Counts, list[int]]:
    """Return the weights that are drawn from, of every posterior under every database."""
    every = oracle.databases(law.posteriors.n, law.posteriors.dimension)
    return {x: [int(w) for w in law.weights(x).tolist()] for x in every}


def exact(prior: Any, n: int, gamma: float, exponent: float) -> dict[oracle.Counts, tuple[float, Any, Any]]:
    """Return S, h = H/S and the probabilities of every database, by definition and without any rounding."""
    every = oracle.databases(n, len(prior))
    found = {}
    for x in every:
        smooth = oracle.smooth_sensitivity(prior, x, gamma)
        h = np.array([oracle.hellinger(prior, x, r) for r in every]) / smooth
        weights = np.exp(-exponent * h)
        found[x] = smooth, h, weights / weights.sum()
    return found


# the proof


@pytest.mark.parametrize(("prior", "n"), FAMILIES)
def test_every_step_of_the_proof(prior: Any, n: int) -> None:
    """Distances, losses and tails, for all neighbours, as in docs/posterior-mechanism.md."""
    for scale, gamma, epsilon in LAWS:
        a = scale * epsilon / 2
        laws = exact(prior, n, gamma, a)
        size = len(laws)
        for x, (smooth, h, p) in laws.items():
            for depth in (0.5, 2.0, 5.0, 9.0):
                assert p[h > depth].sum() <= size * math.exp(-a * depth)
            assert a * float(p @ h) <= math.log(size) * (1 + 1e-12)  # entropy
            for y in oracle.neighbours(x):
                other, h_other, q = laws[y]
                least = min(smooth, other)
                assert np.abs(smooth * h - other * h_other).max() <= least * (1 + 1e-9)
                assert abs(math.log(smooth / other)) <= gamma * (1 + 1e-9)
                loss = np.log(p) - np.log(q)
                if smooth >= other:
                    bound = 2 * a + a * math.expm1(gamma) * h
                else:
                    bound = np.full(size, 2 * a + math.expm1(gamma) * math.log(size))
                assert (loss <= bound + 1e-9).all()


@pytest.mark.parametrize(("prior", "n"), FAMILIES)
def test_no_neighbours_exceed_what_is_proved_of_any_law(prior: Any, n: int) -> None:
    """Hockey-stick divergences of the whole numbers that are drawn from, over all pairs, both directions."""
    of, delta = Posteriors(prior, n), 0.01
    for scale, gamma, epsilon in LAWS:
        exponent = scale * epsilon / 2
        claim = Proof(of, delta).epsilon(gamma, exponent)
        assert claim >= scale * epsilon + math.expm1(gamma) * math.log(of.size / delta)
        if claim > 40:
            continue
        weights = integer_weights(
            ExponentialMechanism(of, gamma, exponent, weight_bits(claim, delta, of.size))
        )
        assert oracle.largest_divergence(weights, claim) <= delta


@pytest.mark.parametrize(
    ("prior", "n", "epsilon", "delta"),
    [
        ((1.0, 1.0), 12, 1.0, 1e-3),
        ((0.3, 4.0), 8, 3.0, 0.05),
        ((1.0, 1.0, 1.0), 6, 0.8, 1e-8),
        ((0.5, 1.0, 4.0), 5, 8.0, 0.2),
        ((1.0, 1.0, 1.0, 1.0), 3, 2.0, 1e-4),
    ],
)
def test_a_proved_release_meets_what_it_states(prior: Any, n: int, epsilon: float, delta: float) -> None:
    made = HellingerPosterior(prior=prior, n=n, epsilon=epsilon, delta=delta, calibration="proved")
    c, gamma = made.exponent_scale, made.gamma
    assert c * epsilon + math.expm1(gamma) * math.log(made.posteriors.size / delta) <= epsilon
    assert (made.law.gamma, made.law.exponent) == (gamma, pytest.approx(c * epsilon / 2, rel=1e-12))
    assert oracle.largest_divergence(integer_weights(made.law), epsilon) <= delta
    assert made.guarantee.proved and (made.guarantee.epsilon, made.guarantee.delta) == (epsilon, delta)
    assert made.proof is not None and epsilon * (1 - 1e-9) <= made.proof.epsilon <= epsilon
    assert made.certificate is not None and made.certificate.delta <= delta  # they are few: it takes no time


def test_the_inequality_is_that_of_the_methods() -> None:
    """Section 14: c eps + (e^gamma - 1) log(|R|/delta) <= eps, which P3's gamma meets at c = 1/2."""
    of, epsilon, delta = Posteriors((1.0, 1.0, 1.0), 60), 5.0, 1e-3
    assert of.size == 1891
    found = Proof(of, delta)
    for c in (0.1, 0.5, 0.75, 0.99):
        gamma = math.log1p((1 - c) * epsilon / math.log(1891 / delta))
        assert found.gamma(epsilon, c) == pytest.approx(gamma, rel=1e-5)
        assert found.gamma(epsilon, c) < gamma
        assert found.epsilon(found.gamma(epsilon, c), c * epsilon / 2) <= epsilon
    own = theorem_gamma(epsilon, delta, of.size)
    half = Proof(of, delta / 2)
    assert half.epsilon(own, epsilon / 4) == pytest.approx(epsilon, rel=1e-6)
    assert half.epsilon(own, epsilon / 2) == pytest.approx(1.5 * epsilon, rel=1e-6)


def test_the_example_of_the_methods() -> None:
    """Section 14, at the counts (12, 18, 30): scale 1, unproved, .072; scale 1/2 .225; c = .75 .133."""
    of, epsilon, delta = Posteriors((1.0, 1.0, 1.0), 60), 5.0, 1e-3
    own = theorem_gamma(epsilon, delta, of.size)
    wanted = {(1.0, own): 0.072, (0.5, own): 0.225, (0.75, Proof(of, delta).gamma(epsilon, 0.75)): 0.133}
    for (scale, gamma), expected in wanted.items():
        law = ExponentialMechanism(of, gamma, scale * epsilon / 2, weight_bits(epsilon, delta, of.size))
        weights = law.weights((12, 18, 30))
        every = np.array(oracle.databases(60, 3))
        far = of.hellinger((12, 18, 30), every)
        assert float(weights @ far / weights.sum()) == pytest.approx(expected, abs=2e-3)


# rounding


@pytest.mark.parametrize("prior", [(1.0, 1.0), (1e-6, 3.0, 0.4), (1e9, 1.0, 500.0)])
def test_steps_of_the_tables_are_as_exact_as_is_counted_on(prior: Any) -> None:
    of = Posteriors(prior, 40)
    with mpmath.workdps(60):
        for entry, row in zip(of.prior, of.table, strict=True):
            logs = [mpmath.loggamma(mpmath.mpf(entry) + mpmath.mpf(k) / 2) for k in range(81)]
            steps = [b - a for a, b in itertools.pairwise(logs)]
            found = [mpmath.ldexp(int(b) - int(a), -of.bits) for a, b in itertools.pairwise(row)]
            off = [f - s for f, s in zip(found, steps, strict=True)]
            mean = sum(off) / len(off)
            most = float(max(abs(o - mean) for o in off))
            assert most <= 2 * (math.ldexp(0.5, -of.bits) + of.inexact)


def coarse(of: Posteriors, bits: int) -> Posteriors:
    """Return the same posteriors with fewer bits in their tables, so that rounding shows."""
    made = Posteriors(of.prior, of.n)
    table = np.zeros_like(of.table)
    steps = [np.rint(np.ldexp(hellinger_law._half_steps(entry, of.n), bits)) for entry in of.prior]
    np.cumsum(np.array(steps, dtype=np.int64), axis=1, out=table[:, 1:])
    made.__dict__["_made"] = (table, bits)
    return made


@pytest.mark.parametrize(("prior", "n"), FAMILIES)
@pytest.mark.parametrize("bits", [12, 14, 20])
def test_what_rounding_costs_is_charged(prior: Any, n: int, bits: int) -> None:
    """Tables of 12 to 20 bits: differences of distances stay below `wide` S, and ratios of S below `more`."""
    of = coarse(Posteriors(prior, n), bits)
    try:
        wide, more = Proof(of, 0.01).apart
    except PrivacyError:
        assert bits < 20
        return
    every = oracle.databases(n, len(prior))
    law = ExponentialMechanism(of, 0.3, 1.0, 60)
    smooth = {x: 1 / law.rate(x) for x in every}
    far = {x: of.hellinger(x, np.array(every)) for x in every}
    worst = 0.0
    for x in every:
        for y in oracle.neighbours(x):
            worst = max(worst, float(np.abs(far[x] - far[y]).max()) / min(smooth[x], smooth[y]))
            assert abs(math.log(smooth[x] / smooth[y])) <= law.gamma + more
    assert worst <= wide
    assert worst * ROUNDING > 0.9  # the sensitivity is attained


def test_tables_that_do_not_tell_neighbours_apart_prove_nothing() -> None:
    with pytest.raises(PrivacyError, match="too close to be told apart by calibration: proved"):
        _ = Proof(coarse(Posteriors((1.0, 1.0, 1.0), 6), 8), 0.01).apart
    for epsilon, delta in ((1e-12, 1e-3), (1e-4, 1e-30)):
        made = Proof(Posteriors((1.0, 1.0, 1.0), 6), delta)
        assert all(
            made.epsilon(gamma, 0.5 * epsilon / 2) <= epsilon
            for gamma in [made.gamma(epsilon, 0.5)]
            if gamma > 0
        )
    with pytest.raises(
        PrivacyError, match=r"mechanism.calibration: proved meets epsilon = 1e-12 .* no scale"
    ):
        proved((1.0, 1.0, 1.0), 6, 1e-12, 1e-3)


# expected errors, and the choice


def test_expected_errors_by_chains_are_those_by_enumeration() -> None:
    of = Posteriors((1.0, 2.0, 0.5), 30)
    family = neighbours(of)
    assert family is not None
    rows = calibrations.some_databases(of)
    assert rows.shape == (96, 3) and (rows.sum(axis=1) == 30).all() and (rows >= 0).all()
    shares = stats.kstest(rows[:, 0] / 30, stats.beta(1, 2).cdf)
    assert shares.pvalue > 1e-4
    for exponent, gamma in ((0.4, 0.05), (4.0, 0.05), (15.0, 0.3)):
        law = ExponentialMechanism(of, gamma, exponent, 60)
        found = calibrations.mean_errors(law, rows)
        every = np.array(oracle.databases(30, 3))
        wanted = []
        for row in rows.tolist():
            weights, far = law.weights(row), of.hellinger(row, every)
            wanted.append(float(weights @ far / weights.sum()))
        assert found == pytest.approx(np.mean(wanted), rel=0.04, abs=1e-3)
        exactly = [
            float(law.weights(x) @ of.hellinger(x, every) / law.weights(x).sum()) for x in every.tolist()
        ]
        assert family.error(law) == pytest.approx(np.mean(exactly), rel=1e-9)


@pytest.mark.parametrize("prior", [(1.0, 2.0), (1.0, 2.0, 0.5)])
def test_expected_errors_of_noise_are_those_by_summation(prior: Any) -> None:
    """One count, or three, with noise of parameter q; the nearest posterior; its Hellinger distance."""
    n, q = 6, math.exp(-1 / 0.7)
    of = Posteriors(prior, n)
    rows = np.array([(2, 4), (0, 6)] if len(prior) == 2 else [(2, 1, 3), (6, 0, 0)])
    found = calibrations.noise_errors(of, 0.7, rows)
    reach = range(-14, 15) if len(prior) == 2 else range(-9, 10)
    for row, value in zip(rows.tolist(), found, strict=True):
        total = 0.0
        for noise in itertools.product(reach, repeat=1 if len(prior) == 2 else 3):
            p = math.prod((1 - q) / (1 + q) * q ** abs(k) for k in noise)
            noisy = [c + k for c, k in zip(row, noise, strict=False)]
            if len(prior) == 2:
                first = min(max(noisy[0], 0), n)
                kept = [first, n - first]
            else:
                low, high = min(noisy) - n, max(noisy)  # the shift with sum max(noisy - shift, 0) = n
                for _ in range(60):
                    middle = (low + high) / 2
                    if sum(max(v - middle, 0) for v in noisy) > n:
                        low = middle
                    else:
                        high = middle
                kept = [max(v - low, 0) for v in noisy]
            total += p * oracle.hellinger(prior, tuple(row), tuple(kept))  # type: ignore[arg-type]
        assert value == pytest.approx(total, rel=0.03)


def test_the_distances_of_rows() -> None:
    a, b = np.array([[1.5, 2.0, 4.0], [3.0, 3.0, 1.0]]), np.array([[2.5, 1.0, 4.0], [3.0, 3.0, 1.0]])
    assert distances(a, b)[0] == pytest.approx(oracle.hellinger((0.5, 1.0, 4.0), (1, 1, 0), (2, 0, 0)))  # type: ignore[arg-type]
    assert distances(a, b)[1] == pytest.approx(0.0, abs=1e-7)


def spec_of(**keys: Any) -> PosteriorMechanism:
    return PosteriorMechanism.model_validate({"kind": "posterior", "epsilon": 3.0} | keys)


def made_of(n: int, **keys: Any) -> PosteriorRelease:
    found = from_spec(spec_of(**keys), 1, n, ("x",))
    assert isinstance(found, PosteriorRelease)
    return found


def test_a_method_left_out_is_the_one_that_errs_less() -> None:
    noisy = made_of(12, prior=[1, 1], delta=1e-3)
    told = noisy.describe()
    assert told["method"] == "geometric" and noisy.guarantee.delta == 0.0
    assert told["requested"] == {"epsilon": 3.0, "delta": 1e-3}
    assert told["choice"]["geometric"] <= told["choice"]["hellinger"]
    assert "method geometric chosen by expected error" in noisy.in_words(["x"])
    own = made_of(3, prior=[1, 1, 1], delta=0.4)
    told = own.describe()
    assert told["method"] == "hellinger" and told["calibration"] == "certified"
    assert told["choice"]["hellinger"] < told["choice"]["geometric"]
    assert told["choice"]["hellinger"] == pytest.approx(told["certificate"]["error"])
    assert "method hellinger chosen by expected error" in own.in_words(["x"])
    for keys, method in (
        ({"prior": [1, 1, 1]}, "geometric"),
        ({"prior": [1, 1, 1], "sensitivity": 2}, "geometric"),
        ({"prior": [1, 1, 1], "method": "hellinger", "delta": 1e-3}, "hellinger"),
        ({"prior": [1, 1], "calibration": "theorem", "delta": 1e-3}, "hellinger"),
        ({"prior": [1, 1], "delta": 1e-3, "epsilon": 60.0}, "geometric"),  # more than hellinger takes
    ):
        made = made_of(5, **keys)
        assert made.method == method
        assert ("choice" in made.figures()) is ("epsilon" in keys)


def test_the_choice_does_not_depend_on_data_or_chance() -> None:
    first = choose((1.0, 1.0, 1.0), 40, 3.0, 1e-6, 2 / 3)
    calibrations.proved.cache_clear()
    assert first == choose((1.0, 1.0, 1.0), 40, 3.0, 1e-6, 2 / 3)
    assert first.calibration is None and set(first.errors) == {"hellinger", "geometric"}


# what is said of it


def test_the_theorem_is_stated_as_not_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.csv").write_text("x\n" + "a\nb\nc\n" * 40, "utf-8")
    data = {"path": str(tmp_path / "d.csv"), "column": "x", "categories": ["a", "b", "c"]}
    said = "the published calibration is not proved for three or more categories"
    for calibration, holds in (("theorem", False), (None, True), ("proved", True)):
        mechanism: dict[str, Any] = {"kind": "posterior", "method": "hellinger", "prior": [1, 1, 1]}
        mechanism |= {"epsilon": 2.0, "delta": 1e-4}
        if calibration is not None:
            mechanism["calibration"] = calibration
        spec = {"data": data, "mechanism": mechanism}
        spec["privacy"] = {"ledger": str(tmp_path / f"{calibration}.json"), "dataset": "people"}
        path = tmp_path / f"{calibration}.h5"
        release = dpmix.privatize(spec, path, new_ledger=True)
        err = capsys.readouterr().err
        assert release.mechanism["calibration"] == (calibration or "proved")
        assert release.proved is read_release(path).proved is holds
        assert dpmix.calibrate(spec, quiet=True)["proved"] is holds
        entries = json.loads((tmp_path / f"{calibration}.json").read_text())["entries"]
        (spend,) = [e for e in entries if e["type"] == "spend"]
        assert spend["mechanism"]["proved"] is holds
        words = [err, release.guarantee_in_words(), dpmix.summarize(path).guarantee]
        assert all((said in text) is not holds for text in words), words
