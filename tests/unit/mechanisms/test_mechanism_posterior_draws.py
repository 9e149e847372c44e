"""Exact draws of posteriors against the probabilities of their integer weights, and releases of them."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import dpmix
from dpmix.errors import DataError, PrivacyError, SpecError
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.posterior import curator
from dpmix.mechanisms.posterior.curator import Listed, Shells, exact_sums, sampler
from dpmix.mechanisms.posterior.released_posterior import NoisyPosterior, PosteriorRelease
from dpmix.mechanisms.posterior.section import PosteriorMechanism
from dpmix.posteriors.hellinger_law import ExponentialMechanism, Posteriors, theorem_gamma, weight_bits
from dpmix.posteriors.simulated_draws import nearest_counts
from dpmix.privacy.exact import below
from dpmix.release.release_file import read_release
from tests.helpers.laws import mechanism_problem, value_problem
from tests.helpers.seeds import rng_of
from tests.oracles import posteriors as oracle

LEVEL = 1e-6  # of every test of draws; some twenty of them

SMALL: list[tuple[tuple[float, ...], tuple[int, ...], float, float]] = [
    ((1.0, 1.0), (2, 10), 0.1, 0.5),
    ((0.5, 3.0), (0, 12), 0.02, 1.4),
    ((1.0, 1.0, 1.0), (1, 1, 5), 0.1, 2.0),
    ((0.5, 2.0, 1.0), (0, 6, 1), 1.0, 0.3),
    ((1.0, 1.0, 1.0, 1.0), (0, 0, 2, 2), 0.2, 1.0),
    ((300.0, 300.0, 300.0), (3, 2, 2), 0.01, 0.5),
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPMIX_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def law(
    prior: tuple[float, ...], n: int, gamma: float, exponent: float, bits: int = 70
) -> ExponentialMechanism:
    return ExponentialMechanism(Posteriors(prior, n), gamma, exponent, bits)


def fits(drawn: list[Any], probabilities: dict[Any, float]) -> float:
    """Return the p-value of a chi-square test, outcomes with less than 8 expected put together."""
    seen = Counter(drawn)
    assert set(seen) <= {value for value, p in probabilities.items() if p > 0}
    found, expected, rest, rest_expected = [], [], 0.0, 0.0
    for value, p in probabilities.items():
        if p * len(drawn) < 8:
            rest, rest_expected = rest + seen[value], rest_expected + p * len(drawn)
        else:
            found.append(float(seen[value]))
            expected.append(p * len(drawn))
    if rest_expected > 1e-6:
        found.append(rest)
        expected.append(rest_expected)
    if len(found) == 1:
        return 1.0
    scale = sum(found) / sum(expected)
    return float(stats.chisquare(found, np.array(expected) * scale).pvalue)


def probabilities(made: ExponentialMechanism, counts: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    weights = [int(w) for w in made.weights(counts)]
    every = oracle.databases(made.posteriors.n, made.posteriors.dimension)
    return {x: float(Fraction(w, sum(weights))) for x, w in zip(every, weights, strict=True)}


@pytest.mark.parametrize("how", [Listed, Shells])
@pytest.mark.parametrize(("prior", "counts", "gamma", "exponent"), SMALL)
def test_draws_have_the_probabilities_of_the_weights(
    prior: Any, counts: Any, gamma: float, exponent: float, how: Any
) -> None:
    made = law(prior, sum(counts), gamma, exponent)
    source = rng_of("weights", prior, counts, gamma, exponent).bytes
    drawing = how(made, counts)
    drawn = [drawing.draw(source) for _ in range(3000)]
    assert fits(drawn, probabilities(made, counts)) > LEVEL


@pytest.mark.parametrize(("prior", "counts", "gamma", "exponent"), SMALL)
def test_the_envelope_is_the_sum_of_its_layers_and_above_the_weights(
    prior: Any, counts: Any, gamma: float, exponent: float
) -> None:
    for finer in (1.0, 20.0):
        made = law(prior, sum(counts), gamma, exponent * finer)
        drawing = Shells(made, counts)
        weights = dict(
            zip(oracle.databases(sum(counts), len(counts)), made.weights(counts).tolist(), strict=True)
        )
        heights = [a - b for a, b in itertools.pairwise(drawing.tops)]
        volumes = [0] * len(heights)
        for x, weight in weights.items():
            free = np.array([x[i] for i in drawing.free])
            inside = ((free >= drawing.lows.T) & (free <= drawing.highs.T)).all(axis=1)
            envelope = drawing.tops[-1] + sum(h for h, own in zip(heights, inside, strict=True) if own)
            shell = drawing._shell(x)
            assert envelope == drawing.tops[shell] >= weight
            assert drawing.weight(sum(int(drawing.apart[i, r]) for i, r in enumerate(x))) == weight
            assert inside.tolist() == [j >= shell for j in range(len(heights))]
        for box in range(len(heights)):
            sides = [
                range(a, b + 1) for a, b in zip(drawing.lows[:, box], drawing.highs[:, box], strict=True)
            ]
            volumes[box] = len(list(itertools.product(*sides)))
        masses = [v * h for v, h in zip(volumes, heights, strict=True)]
        masses.append(made.posteriors.size * drawing.tops[-1])
        assert drawing.ends == list(itertools.accumulate(masses))


class Scripted:
    """Takes the place of random integers: every one in turn of the first, stated ones of the others."""

    def __init__(self, *values: int) -> None:
        self.values, self.bounds = list(values), []

    def __call__(self, bound: int, source: Any) -> int:
        self.bounds.append(bound)
        return self.values.pop(0)


def test_listed_posteriors_have_as_many_integers_as_their_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    for prior, counts in (((1.0, 1.0), (2, 7)), ((1.0, 1.0, 1.0), (1, 3, 2))):
        made = law(prior, sum(counts), 0.1, 0.5, bits=4)
        drawing, seen = Listed(made, counts), Counter()
        for value in range(drawing.total):
            monkeypatch.setattr(curator, "below", Scripted(value))
            seen[drawing.draw(np.random.bytes)] += 1
        weights = zip(oracle.databases(sum(counts), len(counts)), made.weights(counts), strict=True)
        assert dict(seen) == {x: w for x, w in weights if w}


def test_many_listed_posteriors_are_found_by_their_cumulative_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = law((1.0, 1.0), 9000, 1e-4, 0.4)  # a third of the largest weight far away: every block counts
    drawing = Listed(made, (6000, 3000))
    ends = list(itertools.accumulate(map(int, made.weights((6000, 3000)).tolist())))
    assert drawing.total == ends[-1] and len(drawing.ends) == 3
    rng = np.random.default_rng(8)
    places = [int(drawing.total * u) for u in rng.random(200)]
    places += [
        end + step for end in (*drawing.ends, *ends[::500]) for step in (-1, 0) if end + step < ends[-1]
    ]
    for place in places:
        monkeypatch.setattr(curator, "below", Scripted(place))
        expected = bisect.bisect_right(ends, place)
        assert drawing.draw(np.random.bytes) == (expected, 9000 - expected)


def test_layers_have_as_many_integers_as_their_mass_and_points_as_their_weight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = (1, 3, 2)
    made = law((1.0, 1.0, 1.0), 6, 0.1, 0.5, bits=4)
    drawing, seen = Shells(made, counts), Counter()
    for value in range(drawing.ends[-1]):
        monkeypatch.setattr(curator, "below", Scripted(value))
        monkeypatch.setattr(curator, "_any", lambda *_: (9, 9, 9))
        try:
            drawing._propose(np.random.bytes)
            seen["all"] += 1
        except IndexError:  # a box asks for its counts next
            seen["boxes"] += 1
    assert seen["all"] == 28 * drawing.tops[-1] and seen.total() == drawing.ends[-1]
    for x, weight in zip(oracle.databases(6, 3), made.weights(counts).tolist(), strict=True):
        bound = drawing.tops[drawing._shell(x)]
        kept = 0
        for value in range(bound):
            monkeypatch.setattr(drawing, "_propose", _once(x))
            monkeypatch.setattr(curator, "below", Scripted(value))
            with contextlib.suppress(StopIteration):
                kept += drawing.draw(np.random.bytes) == x
        assert kept == weight


def _once(x: tuple[int, ...]) -> Any:
    """Propose x, and nothing afterwards."""
    left = [x]

    def propose(source: Any) -> tuple[int, ...]:
        if not left:
            raise StopIteration
        return left.pop()

    return propose


@pytest.mark.parametrize("d", [2, 3, 4])
def test_any_counts_are_equally_likely(d: int) -> None:
    source = np.random.default_rng(d).bytes
    every = oracle.databases(5, d)
    drawn = [curator._any(5, d, source) for _ in range(3000)]
    assert fits(drawn, dict.fromkeys(every, 1 / len(every))) > LEVEL


def test_an_envelope_that_is_too_low_is_noticed() -> None:
    drawing = Shells(law((1.0, 1.0, 1.0), 9, 0.1, 2.0), (2, 3, 4))
    drawing.tops = [top // 2 for top in drawing.tops]
    with pytest.raises(PrivacyError, match="does not hold"):
        for _ in range(200):
            drawing.draw(np.random.default_rng(3).bytes)


def test_a_draw_that_is_off_by_one_is_caught() -> None:
    made = law((1.0, 1.0), 12, 0.1, 0.5)
    drawing = Listed(made, (2, 10))
    source = np.random.default_rng(1).bytes
    drawn = [drawing.draw(source) for _ in range(3000)]
    moved = [(min(a + 1, 12), max(b - 1, 0)) for a, b in drawn]
    assert fits(drawn, probabilities(made, (2, 10))) > LEVEL > fits(moved, probabilities(made, (2, 10)))


@pytest.mark.parametrize("counts", [(20, 25, 35), (0, 2, 78)])
def test_draws_of_many_posteriors_are_those_of_all_of_them_listed(counts: tuple[int, ...]) -> None:
    made = law((1.0, 0.5, 1.0), 80, 0.1, 0.7)
    exact = probabilities(made, counts)
    every = list(exact)
    far = np.round(made.posteriors.hellinger(counts, every) * 40).astype(int)
    classes: dict[tuple[int, bool], float] = {}
    of = {x: (int(f), x[0] <= counts[0]) for x, f in zip(every, far, strict=True)}
    for x, p in exact.items():
        classes[of[x]] = classes.get(of[x], 0.0) + p
    source, drawing = np.random.default_rng(11).bytes, Shells(made, counts)
    assert fits([of[drawing.draw(source)] for _ in range(5000)], classes) > LEVEL


def test_two_categories_draw_alike_by_shells_and_listed() -> None:
    made = law((1.0, 1.0), 20_000, 0.014, 0.4, 67)
    counts = (9000, 11_000)
    weights = made.weights(counts)
    near = np.arange(8900, 9100)
    share = weights / weights.sum()
    exact = {int(r): float(share[r]) for r in near} | {-1: 1 - float(share[near].sum())}
    for how in (Listed, Shells):
        source, drawing = np.random.default_rng(2).bytes, how(made, counts)
        drawn = [drawing.draw(source)[0] for _ in range(3000)]
        assert fits([r if r in exact else -1 for r in drawn], exact) > LEVEL


@pytest.mark.parametrize(
    ("prior", "counts"),
    [
        ((1.0, 1.0), (100_000, 900_000)),
        ((1.0,) * 3, (2000, 3000, 5000)),
        ((1.0,) * 4, (200, 300, 500, 1000)),
        ((1.0,) * 5, (30, 60, 60, 70, 80)),
        ((1.0,) * 5, (0, 0, 0, 0, 300)),
        ((500.0,) * 4, (0, 0, 0, 2000)),
        ((1.0,) * 10, (0, 0, 1, 5, 10, 20, 64, 100, 300, 500)),
    ],
    ids=lambda value: str(len(value)),
)
def test_large_tables_are_drawn_from(prior: Any, counts: Any) -> None:
    of = Posteriors(prior, sum(counts))
    gamma = theorem_gamma(0.8, 1e-8, of.size)
    for exponent in (0.4, 40.0):  # the theorem's, and one that stays near the truth
        drawing = sampler(ExponentialMechanism(of, gamma, exponent, weight_bits(0.8, 1e-8, of.size)), counts)
        source = np.random.default_rng(4).bytes
        for _ in range(5):
            found = drawing.draw(source)
            assert len(found) == len(prior) and sum(found) == sum(counts) and min(found) >= 0


def test_sums_of_weights_are_exact() -> None:
    rng = np.random.default_rng(0)
    weights = np.floor(np.ldexp(rng.random(9000), rng.integers(-30, 150, 9000)))
    expected = [sum(map(int, weights[i : i + 4096])) for i in range(0, 9000, 4096)]
    assert exact_sums(weights) == expected


@pytest.mark.parametrize("bound", [1, 2, 5, 8, 200])
def test_integers_below_a_bound_are_equally_likely(bound: int) -> None:
    seen: Counter[int] = Counter()
    for byte in range(256):  # every first byte; what is rejected asks for another
        asked = []

        def source(size: int, byte: int = byte, asked: list[int] = asked) -> bytes:
            asked.append(size)
            if len(asked) > 1:
                raise StopIteration
            return bytes([byte] * size)

        try:
            seen[below(bound, source)] += 1
        except StopIteration:
            assert bound not in (1, 2, 8)
    assert sorted(seen) == list(range(bound))
    assert len(set(seen.values())) == 1


def test_integers_below_a_large_bound_are_uniform() -> None:
    source = np.random.default_rng(6).bytes
    bound = 3 * 10**40
    drawn = np.array([below(bound, source) / bound for _ in range(4000)])
    assert stats.kstest(drawn, "uniform").pvalue > LEVEL


def release_of(prior: Any = (1.0, 1.0), n: int = 20, **own: Any) -> PosteriorRelease:
    own = {"epsilon": 0.8, "method": "hellinger"} | own
    if own["method"] == "hellinger":
        own = {"delta": 1e-8} | own
    found = from_spec(PosteriorMechanism(kind="posterior", prior=prior, **own), 1, n, ("x",))
    assert isinstance(found, PosteriorRelease)
    return found


def test_a_release_is_the_prior_plus_drawn_counts() -> None:
    made = release_of((0.5, 2.0), 12)
    release = made.release_of_counts([4, 8])
    assert release.values.shape == (2, 1) and release.private and not release.simulated
    counts = release.values[:, 0] - (0.5, 2.0)
    assert counts.sum() == 12 and (counts == np.floor(counts)).all() and (counts >= 0).all()
    assert (release.epsilon, release.delta, release.rho, release.trust) == (0.8, 1e-8, None, "global")
    told = release.mechanism
    assert json.loads(json.dumps(told.stated())) == told
    assert told["certificate"]["epsilon"] <= 0.8 and told["certificate"]["delta"] <= 1e-8
    assert mechanism_problem(told) is None and value_problem(told, release.values) is None
    again = [made.release_of_counts([4, 8], np.random.default_rng(5)) for _ in range(2)]
    assert (again[0].values == again[1].values).all()
    assert again[0].simulated and not again[0].private
    with pytest.raises(PrivacyError, match="must sum to the number of records, 12"):
        made.release_of_counts([4, 9])
    with pytest.raises(PrivacyError, match="12 records of one column, each of 2 categories"):
        made.privatize(np.full((12, 1), 2.0), ("x",))


def test_real_draws_have_the_probabilities_of_the_weights() -> None:
    made = release_of((1.0, 1.0), 6)
    drawn = [tuple((made.release_of_counts([2, 4]).values[:, 0] - 1).tolist()) for _ in range(800)]
    assert fits(drawn, probabilities(made.law, (2, 4))) > LEVEL  # type: ignore[attr-defined]  # hellinger's


@pytest.mark.parametrize("method", ["laplace", "geometric"])
@pytest.mark.parametrize(
    ("prior", "sensitivity", "scale", "epsilon"),
    [((1.0, 1.0), None, 1.25, 0.8), ((1.0, 1.0), 2, 2.5, 0.4), ((1.0, 2.0, 3.0), None, 2.5, 0.8)],
)
def test_noise_on_counts_costs_what_is_recorded(
    method: str, prior: Any, sensitivity: int | None, scale: float, epsilon: float
) -> None:
    made = release_of(prior, 30, method=method, sensitivity=sensitivity)
    assert isinstance(made, NoisyPosterior)
    total = made.guarantee
    assert total.epsilon == pytest.approx(epsilon, rel=1e-9) and total.delta == 0.0
    assert total.rho is not None and 0 < total.rho <= epsilon * np.tanh(epsilon / 2) * (1 + 1e-9)
    assert made.figures()["scale"] == pytest.approx(scale, rel=1e-9)
    counts = [30] + [0] * (len(prior) - 1)
    rng = np.random.default_rng(3)
    for release in [made.release_of_counts(counts) for _ in range(10)]:
        assert mechanism_problem(release.mechanism) is None
        assert value_problem(release.mechanism, release.values) is None
    own = np.array(counts)[: made.noisy_size]
    noise = [abs(np.array(made.choose(tuple(counts), rng)[1]["noisy_counts"]) - own) for _ in range(4000)]
    expected = scale if method == "laplace" else 1 / np.sinh(1 / scale)
    assert np.mean(noise) == pytest.approx(expected, rel=0.1)


def test_expected_errors_of_noise_are_those_of_the_methods() -> None:
    for sensitivity, expected in ((2, 0.113), (1, 0.058)):
        made = release_of((1.0, 1.0), 650, method="laplace", sensitivity=sensitivity)
        assert isinstance(made, NoisyPosterior)
        rng = np.random.default_rng(sensitivity)
        drawn = [tuple(made.choose((65, 585), rng)[0]) for _ in range(4000)]
        errors = [oracle.hellinger((1.0, 1.0), (65, 585), found) for found in drawn]
        assert np.mean(errors) == pytest.approx(expected, rel=0.06)


def test_the_nearest_counts_are_the_nearest() -> None:
    rng = np.random.default_rng(9)
    for noisy in [*rng.normal(3, 6, (12, 4)), np.array([-5.0, -7.0, -6.0]), np.array([0.0, 10.0, 0.0])]:
        found = nearest_counts(noisy, 10)
        assert found.sum() == pytest.approx(10) and (found >= 0).all()
        expected = optimize.minimize(
            lambda x, noisy=noisy: ((x - noisy) ** 2).sum(),
            np.full(noisy.size, 10 / noisy.size),
            bounds=[(0, None)] * noisy.size,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 10},
            tol=1e-12,
        )
        np.testing.assert_allclose(found, expected.x, atol=1e-4)


def test_a_column_of_categories_is_released_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x\n" + "no\n" * 14 + "yes\n" * 6, "utf-8")
    mechanism = {"kind": "posterior", "method": "hellinger", "prior": [1, 1], "epsilon": 0.8, "delta": 1e-8}
    data = {"path": str(tmp_path / "d.csv"), "column": "x", "categories": ["yes", "no"]}
    spec: dict[str, Any] = {"data": data, "mechanism": mechanism}
    for i, own in enumerate(
        (
            {},
            {"calibration": "theorem"},
            {"calibration": "proved"},
            {"method": "laplace", "delta": None},
            {"method": "geometric", "delta": None},
        )
    ):
        section = {key: value for key, value in (mechanism | own).items() if value is not None}
        release = dpmix.privatize(spec | {"mechanism": section}, tmp_path / f"{i}.h5")
        back = read_release(tmp_path / f"{i}.h5")
        assert back.mechanism == release.mechanism and (back.values == release.values).all()
        assert back.mechanism["categories"] == ["yes", "no"] and back.n == 20
        found = dpmix.calibrate(spec | {"mechanism": section})
        assert found["n"] == 20 and found["epsilon"] == release.epsilon
        assert found["proved"] is release.proved is back.proved is (own.get("calibration") != "theorem")
        if "method" not in own:
            assert found["exponent_scale"] == release.mechanism["exponent_scale"]
            assert found["certificate"]["delta"] <= 1e-8
    without = {"mechanism": mechanism | {"n": 20}}
    assert dpmix.calibrate(without)["gamma"] == dpmix.calibrate(spec)["gamma"]
    with pytest.raises(DataError, match="none of data.categories"):
        dpmix.privatize(spec | {"data": data | {"categories": ["yes", "maybe"]}})
    with pytest.raises(SpecError, match=r"data.categories: missing; list the public categories"):
        dpmix.privatize(spec | {"data": {k: v for k, v in data.items() if k != "categories"}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prior": [1.0]}, "does not state its prior"),
        ({"prior": [1.0, 0.0]}, "does not state its prior"),
        ({"n": 0}, "number of records n"),
        ({"gamma": None}, "does not state its gamma"),
        ({"exponent_scale": 0.0}, "does not state its exponent_scale"),
        ({"method": "gauss"}, "does not state its method"),
        ({"method": "laplace"}, "does not state one noise scale"),
        ({"method": "laplace", "scale": [1.0]}, "does not list its noisy counts"),
        (
            {"method": "geometric", "scale": [1.0], "noisy_counts": [2.5]},
            "lists noisy counts that are not whole",
        ),
    ],
)
def test_descriptions_that_lack_something_are_refused(change: dict[str, Any], said: str) -> None:
    told = release_of((1.0, 1.0), 4).describe()
    assert mechanism_problem(told) is None
    problem = mechanism_problem(told | change)
    assert problem is not None and said in problem


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([3.0, 3.0, 1.0], "not one number for each of the 2 entries"),
        ([3.0, 4.0], "is not the prior plus counts of 4 records"),
        ([0.0, 6.0], "is not the prior plus counts of 4 records"),
        ([2.5, 3.5], "whole counts"),
    ],
)
def test_values_that_are_no_posterior_are_refused(values: list[float], said: str) -> None:
    told = release_of((1.0, 1.0), 4).describe()
    assert value_problem(told, np.array([[2.0], [4.0]])) is None
    problem = value_problem(told, np.array(values)[:, None])
    assert problem is not None and said in problem
