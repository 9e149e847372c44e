"""Urns in whole numbers: their law against the enumeration of all releases, and the size of their numbers.

The laws are tested by chi-square with about 50 p-values above 1e-8 each, at fixed seeds: family-wise error
below 1e-6.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpmix.privacy.exact import Source
from dpmix.synthesis import urn
from dpmix.synthesis.urn import draw_categories, draw_urn
from tests.oracles import urns

LEVEL = 1e-8
DATABASES: list[urns.Data] = [("a",), ("a", "b", "a"), ("b", "a", "a", "c", "b", "a")]
PARAMETERS = [
    ("0", "1"),
    ("0", "7/3"),
    ("1/4", "-1/5"),
    ("1/2", "-49/100"),
    ("1/2", "0"),
    ("2/3", "3/7"),
    ("9/10", "4"),
]


def repeated(draw: Callable[[], urns.Sequence], times: int) -> Counter[urns.Sequence]:
    return Counter(draw() for _ in range(times))


def p_value(seen: Counter[urns.Sequence], law: urns.Law) -> float:
    """Chi-square of sequences against their law, rare ones together; 0 for an impossible one."""
    assert sum(law.values()) == 1
    if not set(seen) <= set(law):
        return 0.0
    total = sum(seen.values())
    cells = sorted(((float(mass) * total, seen[drawn]) for drawn, mass in law.items()), reverse=True)
    expected, observed = [np.array(part, dtype=float) for part in zip(*cells, strict=True)]
    often = expected >= 10
    if expected[~often].sum() > 0:
        expected = np.append(expected[often], expected[~often].sum())
        observed = np.append(observed[often], observed[~often].sum())
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def draw_old_and_new(data: urns.Data, d: Fraction, theta: Fraction, m: int, source: Source) -> urns.Sequence:
    first = np.array([data.index(value) == i for i, value in enumerate(data)])
    drawn = draw_urn(len(data), first, theta, d, m, source)
    sequence = tuple(data[s] if s < len(data) else urns.New(int(s) - len(data)) for s in drawn.source)
    assert drawn.new == urns.sum_new(sequence)
    return sequence


def at_once(
    data: urns.Data, d: Fraction, theta: Fraction, m: int, times: int, seed: int
) -> Counter[urns.Sequence]:
    rng = np.random.default_rng(seed)
    return repeated(lambda: draw_old_and_new(data, d, theta, m, rng.bytes), times)


@pytest.fixture
def big(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers of any size, from the start."""
    monkeypatch.setattr(urn, "_LIMIT", 0)


@pytest.mark.parametrize(("d", "theta"), PARAMETERS)
@pytest.mark.parametrize("data", DATABASES)
def test_sequences_have_their_law(data: urns.Data, d: str, theta: str) -> None:
    law = urns.law_of(data, Fraction(d), Fraction(theta), 3)
    assert p_value(at_once(data, Fraction(d), Fraction(theta), 3, 4000, 1), law) > LEVEL


@pytest.mark.usefixtures("big")
@pytest.mark.parametrize(("d", "theta"), [PARAMETERS[i] for i in (1, 3, 4, 5)])
@pytest.mark.parametrize("data", DATABASES[1:])
def test_sequences_have_their_law_in_big_numbers(data: urns.Data, d: str, theta: str) -> None:
    law = urns.law_of(data, Fraction(d), Fraction(theta), 3)
    assert p_value(at_once(data, Fraction(d), Fraction(theta), 3, 4000, 2), law) > LEVEL


def test_weights_of_thirty_digits() -> None:
    """Of their own accord in big numbers, and near to parameters with few digits."""
    data, tiny = DATABASES[2], Fraction(1, 10**30 + 57)
    law = urns.law_of(data, Fraction(1, 4) + tiny, Fraction(-1, 5) + tiny, 3)
    assert (len(data) * tiny.denominator) > urn._LIMIT
    assert p_value(at_once(data, Fraction(1, 4) + tiny, Fraction(-1, 5) + tiny, 3, 4000, 3), law) > LEVEL


@pytest.mark.parametrize(
    ("data", "a", "limit"),
    [
        ((0,), "1/3", 2**62),
        ((0, 2, 0), "7/2", 2**62),
        ((2, 1, 1, 1, 0), "5", 2**62),
        ((0, 2, 0), "1/3", 0),
        ((2, 1, 1, 1, 0), "7/2", 0),
    ],
)
def test_categories_have_their_law(
    data: tuple[int, ...], a: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urn, "_LIMIT", limit)
    rng = np.random.default_rng(4)
    law = urns.dirichlet_multinomial_law(data, Fraction(a), 4, 3)

    def draw() -> urns.Sequence:
        return tuple(draw_categories(np.array(data), 4, Fraction(a), 3, rng.bytes).tolist())

    assert p_value(repeated(draw, 4000), law) > LEVEL


def test_long_sequences_have_the_law_of_their_counts() -> None:
    """300 draws: copies of a value are beta-binomial, draws of new values too; sources refilled often."""
    counts, d, theta, m = (5, 1, 1, 3), Fraction(1, 3), Fraction(5, 2), 300
    data = [j for j, count in enumerate(counts) for _ in range(count)]
    n, k = len(data), len(counts)
    first = np.array([data.index(j) == i for i, j in enumerate(data)])
    rng = np.random.default_rng(6)
    found = np.array([draw_urn(n, first, theta, d, m, rng.bytes).source for _ in range(2000)])
    weights = [(found >= n, theta + k * d)]
    for j, count in enumerate(counts):
        weights.append((np.isin(found, np.flatnonzero(np.array(data) == j)), count - d))
    for chosen, weight in weights:
        law = stats.betabinom(m, float(weight), float(theta + n - weight))
        edges = np.unique(law.ppf(np.linspace(0, 1, 21)[1:-1]))
        cdf = np.concatenate([[0], law.cdf(edges), [1]])
        seen = np.bincount(np.searchsorted(edges, chosen.sum(axis=1)), minlength=len(edges) + 1)
        assert stats.chisquare(seen, 2000 * np.diff(cdf)).pvalue > LEVEL


@pytest.mark.parametrize("words", [1, 3])
def test_running_out_of_random_words_changes_nothing(words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urn, "_WORDS", words)
    data = DATABASES[1]
    law = urns.law_of(data, Fraction(1, 4), Fraction(-1, 5), 4)
    rng = np.random.default_rng(8)

    def draw() -> urns.Sequence:
        return draw_old_and_new(data, Fraction(1, 4), Fraction(-1, 5), 4, rng.bytes)

    assert p_value(repeated(draw, 4000), law) > LEVEL


@pytest.mark.parametrize(("d", "theta"), [("0", "10"), ("0.5", "-0.25"), ("0.123456", "1234.5678")])
def test_a_million_records_and_a_million_draws(d: str, theta: str) -> None:
    n = m = 1_000_000
    rng = np.random.default_rng(9)
    values = rng.integers(0, 50_000, n)
    first = np.zeros(n, dtype=np.bool_)
    first[np.unique(values, return_index=True)[1]] = True
    start = time.process_time()
    drawn = draw_urn(n, first, Fraction(theta), Fraction(d), m, rng.bytes)
    assert time.process_time() - start < 20  # compiling included; a second or less without
    k, mass = int(first.sum()), float(Fraction(theta) + first.sum() * Fraction(d))
    of_new = (drawn.source >= n).sum()
    law = stats.betabinom(m, mass, float(Fraction(theta)) + n - mass)
    assert abs(of_new - law.mean()) < 6 * law.std()
    assert drawn.source.min() >= 0
    fresh = drawn.source[drawn.source >= n] - n
    if len(fresh):
        _, appearance = np.unique(fresh, return_index=True)
        assert drawn.new == len(appearance) and (np.diff(appearance) > 0).all()
    old = np.bincount(values[drawn.source[drawn.source < n]], minlength=50_000)
    counts = np.bincount(values, minlength=50_000)
    kept = counts > 0
    share = (counts[kept] - float(Fraction(d))) / (n - k * float(Fraction(d)))
    # Dirichlet-multinomial given the number of old ones: variance of each about (1 + m/n) times a Poisson's
    statistic = ((old[kept] - old.sum() * share) ** 2 / (old.sum() * share)).sum()
    spread = 1 + old.sum() / (n - k * float(Fraction(d)))
    assert abs(statistic / (kept.sum() * spread) - 1) < 0.1


def test_arguments_out_of_range_are_refused() -> None:
    one = np.array([True])
    for theta, d in (
        (Fraction(0), Fraction(0)),
        (Fraction(-1, 2), Fraction(1, 2)),
        (Fraction(1), Fraction(1)),
    ):
        with pytest.raises(ValueError, match="concentration > -discount"):
            draw_urn(1, one, theta, d, 1, np.random.default_rng(0).bytes)
    with pytest.raises(ValueError, match="positive concentration"):
        draw_categories(np.array([0]), 1, Fraction(0), 1, np.random.default_rng(0).bytes)
