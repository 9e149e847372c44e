"""Privacy loss at one database against the enumeration of all its neighbours and their releases.

Estimates are compared with exact values in units of the binomial standard error, or less: a right one is off
by 5.5 with probability 4e-8 in one comparison, and there are about 700 of these, at fixed seeds.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmix.synthesis.instance import (
    InstanceUrn,
    Simulation,
    beta_binomial_tail,
    categories_instance,
    fill_new,
    instance,
    upper_bounds,
)
from dpmix.synthesis.urn_guarantee import global_delta
from tests.oracles import urns

# of e^epsilon; no likelihood ratio of a small database equals one of them
RATIOS = (Fraction(10_007, 10_000), Fraction(13_007, 10_000), Fraction(30_011, 10_000))
DATABASES = [data for n in range(1, 6) for data in urns.databases(n)]
LIMIT = 5.5
law = functools.cache(urns.law_of)


def counts_of(data: urns.Data) -> list[int]:
    return list(Counter(data).values())


def exact(data: urns.Data, d: Fraction, theta: Fraction, m: int, ratio: Fraction) -> tuple[Fraction, ...]:
    """Largest P(L > e^eps), and hockey-stick divergence forward and in reverse, over all neighbours."""
    p = law(data, d, theta, m)
    laws = [law(other, d, theta, m) for other in urns.open_neighbours(data)]
    return (
        max(urns.excess(p, q, ratio) for q in laws),
        max(urns.hockey_stick(p, q, ratio) for q in laws),
        max(urns.hockey_stick(q, p, ratio) for q in laws),
    )


@pytest.mark.parametrize("theta", [Fraction(1, 2), Fraction(6)])
@pytest.mark.parametrize("m", [1, 3])
def test_discount_zero_is_a_sum(m: int, theta: Fraction) -> None:
    for data in DATABASES:
        for ratio in RATIOS:
            found = instance(counts_of(data), 0, theta, m, math.log(ratio), rng=np.random.default_rng(1))
            delta, forward, reverse = exact(data, Fraction(0), theta, m, ratio)
            assert found.exact and found.draws == 0 and found.confidence == 1
            assert found.delta == found.delta_upper == pytest.approx(float(delta), rel=1e-12, abs=1e-15)
            assert found.hockey_stick == pytest.approx(float(forward), rel=1e-10, abs=1e-15)
            assert found.hockey_stick_upper == found.hockey_stick
            assert found.reverse == found.reverse_lower == pytest.approx(float(reverse), rel=1e-12)


def test_likelihood_ratios_are_those_of_the_enumeration() -> None:
    """The formulas that the simulation rests on, for every release of every pair of neighbours."""
    m = 3
    for d, theta in (
        (Fraction(0), Fraction(2)),
        (Fraction(1, 3), Fraction(-1, 4)),
        (Fraction(3, 4), Fraction(2)),
    ):
        for data in DATABASES[:11]:
            p, counts, k = law(data, d, theta, m), Counter(data), len(set(data))
            for other in urns.open_neighbours(data):
                (a,), (b,) = Counter(data) - Counter(other), Counter(other) - Counter(data)
                q = law(other, d, theta, m)
                for drawn, mass in p.items():
                    r = urns.released(drawn, a, b)
                    if counts[a] == 1 and r.first:
                        assert drawn not in q
                        continue
                    if counts[a] > 1:
                        ratio = (counts[a] - 1 - d + r.first) / (counts[a] - 1 - d)
                        by_new = (theta + d * k) / (theta + d * (k + r.new))
                    else:
                        ratio = (theta + d * (k + r.new - 1)) / (theta + d * (k - 1)) if b in counts else 1
                        by_new = 1
                    by_old = (counts[b] - d) / (counts[b] - d + r.second) if b in counts else by_new
                    assert mass / q[drawn] == ratio * by_old


@pytest.mark.parametrize(("d", "theta"), [("1/4", "-1/5"), ("1/2", "1"), ("9/10", "4")])
def test_simulated_pairs_have_their_exact_values(d: str, theta: str) -> None:
    """Each pair of classes, each case and both directions; about 600 comparisons."""
    m, draws, discount, strength, ratio = 3, 4000, Fraction(d), Fraction(theta), RATIOS[1]
    rng = np.random.default_rng(7)
    for data in [data for data in DATABASES if len(data) in (3, 5)]:
        by_count = {count: [v for v, c in Counter(data).items() if c == count] for count in counts_of(data)}
        sizes = np.array(sorted(by_count))
        numbers = np.array([len(by_count[size]) for size in sizes])
        urn = InstanceUrn(sizes, numbers, float(discount), float(strength), m, math.log(ratio))
        singular = urns.singular_mass(len(data), discount, strength, m)
        assert urn.singular() == pytest.approx(float(singular), rel=1e-13)
        simulation = Simulation(urn, np.flatnonzero(sizes > 1))
        simulation.run(rng, draws)
        p = law(data, discount, strength, m)

        def replaced(a: str, b: str, data: urns.Data = data) -> urns.Law:
            place = data.index(a)
            return law((*data[:place], b, *data[place + 1 :]), discount, strength, m)

        def check(tally: tuple[float, float], q: urns.Law, off: Fraction, p: urns.Law = p) -> None:
            wanted = [
                float((figure(p, q, ratio) - off) / (1 - off)) for figure in (urns.excess, urns.hockey_stick)
            ]
            error = math.sqrt(wanted[0] * (1 - wanted[0]) / draws) + 1e-9
            assert abs(tally[0] / draws - wanted[0]) < LIMIT * error
            assert abs(tally[1] / draws - wanted[1]) < LIMIT * error

        for j, size in enumerate(sizes):
            others = {
                i: [b for b in by_count[other] if b != by_count[size][0]] for i, other in enumerate(sizes)
            }
            a = by_count[size][0]
            if size == 1:
                for i, values in others.items():
                    if values:
                        tally = simulation.single.count[0, i], simulation.single.total[0, i]
                        check(tally, replaced(a, values[0]), singular)
                continue
            row = int(np.flatnonzero(simulation.kept == j)[0])
            check(
                (simulation.fresh.count[row, 0], simulation.fresh.total[row, 0]),
                replaced(a, "u"),
                Fraction(0),
            )
            for i, values in others.items():
                if values:
                    pairs = simulation.twins if i == j else simulation.pairs
                    column = 0 if i == j else i
                    tally = pairs.count[row, column], pairs.total[row, column]
                    check(tally, replaced(a, values[0]), Fraction(0))
            column = int(np.flatnonzero(simulation.several == j)[0])
            back = simulation.back.count[0, column], simulation.back.total[0, column]
            check(back, p, singular, replaced(a, "u"))


@pytest.mark.parametrize(("d", "theta"), [("1/4", "-1/5"), ("1/2", "3")])
def test_bounds_hold_and_are_worth_something(d: str, theta: str) -> None:
    """24 databases, three epsilons; a figure's bound fails with probability 0.001/3 at most in each."""
    m, discount, strength = 3, Fraction(d), Fraction(theta)
    rng = np.random.default_rng(11)
    for data in DATABASES:
        stated = float(global_delta(len(data), strength, m))
        for ratio in RATIOS:
            found = instance(
                counts_of(data), discount, strength, m, math.log(ratio), rng=rng, draws=3000, confidence=0.999
            )
            delta, forward, reverse = (float(x) for x in exact(data, discount, strength, m, ratio))
            tiny = 1e-12
            assert delta <= found.delta_upper + tiny and forward <= found.hockey_stick_upper + tiny
            assert found.reverse_lower - tiny <= reverse <= found.reverse + tiny
            assert max(found.hockey_stick_upper, found.reverse) <= max(stated, tiny) * (1 + tiny)
            assert abs(found.delta - delta) < 0.05 and abs(found.hockey_stick - forward) < 0.05
            assert found.delta_upper - found.delta < 0.08 and found.reverse - reverse < 0.25
            if len(data) == 1:
                assert found.exact and found.delta == pytest.approx(delta)


def test_bounds_cover_as_often_as_they_say() -> None:
    """With 80 draws each and 50 % confidence, in 200 runs: fewer than 100 + 5 sd miss any of three."""
    data, d, theta, m, ratio = ("a", "a", "a", "b", "c"), Fraction(1, 2), Fraction(1), 4, RATIOS[0]
    delta, forward, reverse = (float(x) for x in exact(data, d, theta, m, ratio))
    missed = 0
    for seed in range(200):
        found = instance(
            [3, 1, 1], d, theta, m, math.log(ratio), rng=np.random.default_rng(seed), draws=80, confidence=0.5
        )
        missed += found.delta_upper < delta or found.hockey_stick_upper < forward or found.reverse < reverse
    assert missed < 100 + 5 * 7


def test_the_level_is_shared_among_all_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair of counts that is simulated forward, and in reverse each count that a new value replaces."""
    levels = []

    def recorded(best: np.ndarray, draws: int, level: float) -> np.ndarray:
        levels.append(level)
        return upper_bounds(best, draws, level)

    monkeypatch.setattr("dpmix.synthesis.instance.upper_bounds", recorded)
    data = ("a", "a", "a", "b", "b", "c", "c", "d", "e")
    counts = Counter(data)
    cases = set()
    for other in urns.open_neighbours(data):
        (a,), (b,) = Counter(data) - Counter(other), Counter(other) - Counter(data)
        cases |= {(counts[a], counts[b])} if (counts[a], counts[b]) != (1, 0) else set()
        cases |= {("back", counts[a])} if counts[a] > 1 else set()
    assert len(cases) == 12
    rng = np.random.default_rng(1)
    instance(list(counts.values()), 0.25, 1, 3, 0.001, rng=rng, draws=100, confidence=0.9)
    assert levels == pytest.approx([0.1 / (3 * 12)] * 3)


def test_upper_bounds_by_their_definition() -> None:
    level, draws = 1e-4, 500
    count, total = np.array([0.0, 7.0, 499.0, 500.0]), np.array([0.0, 3.5, 250.0, 500.0])
    found = upper_bounds(np.stack([count, total], axis=1), draws, level)
    for share, c in zip(found[:3, 0], count, strict=False):
        assert stats.binom.cdf(c, draws, share) == pytest.approx(level, rel=1e-6)
    assert found[3].tolist() == [1, 1]
    for bound, mean in zip(found[:3, 1], total[:3] / draws, strict=True):
        divergence = stats.entropy([mean, 1 - mean], [bound, 1 - bound])
        assert math.exp(-draws * divergence) == pytest.approx(level, rel=1e-6)
        assert bound > mean


@pytest.mark.parametrize(
    ("m", "r", "rest", "start"),
    [
        (1, 1.0, 0.25, 1),
        (7, 1.5, 0.2, 3),
        (50, 2.0, 0.1, 50),
        (400, 3.25, 900.0, 0),
        (400, 3.25, 900.0, 25),
        (1000, 40.0, 2000.5, 3),
        (1000, 40.0, 2000.5, 150),
        (600, 5.0, 1e8, 2),
        (200, 2e6, 1.0, 190),
    ],
)
def test_beta_binomial_sums_are_scipys(m: int, r: float, rest: float, start: int) -> None:
    half = r - 1 + 0.25
    bar = half + start - 0.3
    tail, weighted = beta_binomial_tail(m, r, rest, start, half, bar)
    i = np.arange(start, m + 1)
    mass = stats.betabinom.pmf(i, m, r, rest)
    with mpmath.workdps(40):
        one = [
            mpmath.binomial(m, int(j)) * mpmath.beta(j + r, m - j + rest) / mpmath.beta(r, rest) for j in i
        ]
        wanted = mpmath.fsum(one)
        wanted_sum = mpmath.fsum(p * max(0, 1 - bar / (half + int(j))) for p, j in zip(one, i, strict=True))
    assert tail == pytest.approx(float(wanted), rel=1e-11)
    assert weighted == pytest.approx(float(wanted_sum), rel=1e-11)
    assert tail == pytest.approx(float(mass.sum()), rel=1e-4 if rest >= 1e8 else 1e-7)


def test_thresholds_of_the_papers_corollary() -> None:
    """t(r) = floor((r-1)(e^eps - 1)) + 1; SciPy's survival function."""
    n, m, theta, epsilon = 200, 150, 10.0, 0.3
    counts = [1, 1, 2, 5, 30, 61, 100]
    tails = [
        stats.betabinom.sf(math.floor((r - 1) * math.expm1(epsilon)), m, r, theta + n - r) for r in counts
    ]
    found = instance(counts, 0, 10, m, epsilon, rng=np.random.default_rng(1))
    assert sum(counts) == n
    assert found.delta == pytest.approx(max(tails), rel=1e-9)
    without = instance([r for r in counts if r > 1] + [2], 0, 10, m, epsilon, rng=np.random.default_rng(1))
    assert without.hockey_stick < found.hockey_stick == found.reverse == without.reverse


@pytest.mark.parametrize(("d", "theta", "size"), [(0.25, 40.0, 300), (0.7, 1.0, 60), (0.01, 0.3, 2000)])
def test_numbers_of_new_values_have_their_law(d: float, theta: float, size: int) -> None:
    """20,000 draws; false alarm 1e-6 each."""
    chance = np.zeros(size + 2)
    chance[0] = 1.0
    blocks = np.arange(size + 2)
    for i in range(size):
        new = np.minimum((theta + blocks * d) / (theta + i), 1.0)
        chance[1:] = chance[1:] * (1 - new[1:]) + chance[:-1] * new[:-1]
        chance[0] *= 1 - new[0]
    found = np.empty(20_000, dtype=np.int64)
    fill_new(np.random.default_rng(3), d, theta, np.full(20_000, size), found)
    seen = np.bincount(found, minlength=size + 2)
    keep = 20_000 * chance > 20
    expected = np.append(20_000 * chance[keep], 20_000 * chance[~keep].sum())
    observed = np.append(seen[keep], seen[~keep].sum())
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert keep.sum() >= 5
    assert stats.chi2.sf(statistic, keep.sum()) > 1e-6


def test_a_large_database_in_seconds() -> None:
    """100,000 records of 10,000 values; a discount that is nearly zero must give what zero gives exactly."""
    rng = np.random.default_rng(5)
    weights = 1 / np.arange(1, 10_001)
    extra = rng.choice(10_000, 90_000, p=weights / weights.sum())
    counts = np.bincount(np.concatenate([np.arange(10_000), extra]))
    for epsilon in (0.1, 1.0):
        sums = instance(counts, 0, 50, 20_000, epsilon, rng=rng)
        drawn = instance(counts, 1e-9, 50, 20_000, epsilon, rng=rng, draws=1500)
        assert sums.exact and not drawn.exact and drawn.draws == 1500
        assert drawn.delta == pytest.approx(sums.delta, abs=0.05)
        assert sums.delta <= drawn.delta_upper <= sums.delta + 0.05
        assert drawn.hockey_stick == pytest.approx(sums.hockey_stick, abs=0.01)
        assert drawn.reverse == pytest.approx(sums.reverse, rel=1e-4)
    half = instance(counts, 0.5, 50, 20_000, 1.0, rng=rng, draws=1000)
    assert half.reverse_lower <= half.reverse <= sums.reverse
    again = [instance(counts, 0.5, 50, 50, 1.0, rng=np.random.default_rng(2), draws=1000) for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize("a", [Fraction(1, 3), Fraction(2)])
@pytest.mark.parametrize("counts", [(3,), (1, 3), (2, 2), (4, 0, 0), (1, 1, 2), (2, 3, 0), (2, 2, 3)])
def test_categories_have_a_pure_epsilon_at_each_database(counts: tuple[int, ...], a: Fraction) -> None:
    m, k = 3, len(counts)
    data = tuple(j for j, count in enumerate(counts) for _ in range(count))
    p = law(data, -a, k * a, m)
    largest = Fraction(1)
    for other in urns.neighbours(data, tuple(range(k))):
        q = law(other, -a, k * a, m)
        largest = max([largest, *(p[z] / q[z] for z in p), *(q[z] / p[z] for z in p)])
    found = categories_instance(counts, k, a, m)
    assert found.epsilon == pytest.approx(math.log(largest), rel=1e-14)
    assert (found.delta, found.delta_upper, found.reverse, found.exact) == (0, 0, 0, True)
    assert categories_instance([c for c in counts if c], k, a, m) == found


def test_arguments_out_of_range_are_refused() -> None:
    rng = np.random.default_rng(0)
    for counts, d, theta, m, epsilon in (
        ([], 0, 1, 1, 1),
        ([0, 2], 0, 1, 1, 1),
        ([2], 1, 1, 1, 1),
        ([2], -0.5, 1, 1, 1),
        ([2], 0.5, -0.5, 1, 1),
        ([2], 0, 1, 0, 1),
        ([2], 0, 1, 1, -1),
    ):
        with pytest.raises(ValueError, match="must be"):
            instance(counts, d, theta, m, epsilon, rng=rng)
    with pytest.raises(ValueError, match="no more values"):
        categories_instance([1, 1, 1], 2, Fraction(1), 1)
