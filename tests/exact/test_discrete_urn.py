"""The posterior given records that continue the urn: of the measure that the confidential records came from.

Its parts are held against enumeration, its moments against enumeration of all confidential records (or their
partitions) with the urn run forward, and ranks are uniform where P, x and z are simulated from the prior on.
About 150 figures are compared, each at 2e-6 or 5 standard errors.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmix.errors import DataError
from dpmix.models.discrete.continued_urn import ContinuedUrn, EachOccurs, dirichlet_multinomial, split
from dpmix.models.discrete.model import Discrete, build
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from tests.helpers.checks import LEVEL, SECONDARY
from tests.helpers.discrete_releases import COLOUR, LABEL, NUMBER
from tests.oracles import measures
from tests.oracles.urns import compositions, rising

Array = NDArray[np.float64]


def chi_square(drawn: Counter[tuple[int, ...]], exact: dict[tuple[int, ...], float]) -> float:
    """Return the p-value of the numbers drawn, rare outcomes put together."""
    assert not set(drawn) - set(exact)
    draws, total = sum(drawn.values()), sum(exact.values())
    rows = sorted((draws * p / total, drawn[key]) for key, p in exact.items())
    expected, found, rest = [], [], [0.0, 0.0]
    for mean, seen in rows:
        rest = [rest[0] + mean, rest[1] + seen]
        if rest[0] >= 8:
            expected.append(rest[0])
            found.append(rest[1])
            rest = [0.0, 0.0]
    expected[-1] += rest[0]
    found[-1] += rest[1]
    return float(stats.chisquare(found, expected).pvalue)


OCCURRING = {
    "whole": (7, [1.0, 3.0, 2.0, 0.4, 1.1], 3, 0.0),
    "whole, almost no room": (4, [5.0, 1.0, 2.0, 0.01], 3, 0.0),
    "whole, ties": (6, [1.0, 1.0, 1.0, 1.0, 0.7], 4, 0.0),
    "discount": (7, [0.7, 2.7, 1.7, 3.1], 3, 0.3),
    "discount, almost no room": (4, [0.2, 0.2, 2.2, 2.4], 3, 0.8),
    "discount, the largest forced": (6, [0.5, 6.5, 0.5, 0.1], 3, 0.5),
    "nothing forced": (5, [1.7, 0.3], 0, 0.5),
}


@pytest.mark.parametrize("case", OCCURRING)
@pytest.mark.parametrize("plain", [False, True])
def test_numbers_given_that_each_occurs_against_enumeration(case: str, plain: bool) -> None:
    n, shapes, count, d = OCCURRING[case]
    if plain and (d == 0.0 or count == n - 1):
        return  # by labels alone, or too seldom
    forced = np.arange(len(shapes)) < count
    exact = {
        c: math.prod(rising(a, k) / math.factorial(k) for a, k in zip(shapes, c, strict=True))
        for c in compositions(n, len(shapes))
        if all(c[:count])
    }
    numbers = EachOccurs(n, np.array(shapes), forced, d)
    if not numbers.whole:
        numbers.plain = plain
    rng = np.random.default_rng([1, plain, *case.encode()])
    drawn = Counter(tuple(map(int, numbers.draw(rng))) for _ in range(5_000))
    assert chi_square(drawn, exact) > LEVEL


def test_large_numbers_given_that_each_occurs() -> None:
    rng = np.random.default_rng(2)
    for n, k, d in ((10**6, 10**5, 0.0), (10**6, 2_000, 0.2), (10_500, 10_000, 0.0), (1_000_000, 3, 0.9)):
        ties = 1.0 + rng.poisson(0.5, k)
        numbers = EachOccurs(n, np.append(ties - d, 2.0 + d * k), np.append(np.full(k, True), False), d)
        drawn = numbers.draw(rng)
        assert drawn.sum() == n and drawn[:-1].min() >= 1 and drawn[-1] >= 0
    assert EachOccurs(3, np.array([1.0, 1.0, 1.0, 2.0]), np.arange(4) < 3, 0.0).draw(rng).tolist() == [
        1,
        1,
        1,
        0,
    ]
    with pytest.raises(
        DataError, match="^the release has 3 values that are shown as confidential ones, and says"
    ):
        EachOccurs(2, np.array([1.0, 1.0, 1.0, 2.0]), np.arange(4) < 3, 0.0)
    tiny = dirichlet_multinomial(rng, np.array([1e-5, 0.0, 1e-5]), 50)
    assert tiny[1] == 0 and tiny.sum() == 50


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Yield all partitions of n things as labels numbered by first appearance."""

    def grow(labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(labels) == n:
            yield labels
            return
        for label in range(max(labels, default=-1) + 2):
            yield from grow((*labels, label))

    return grow(())


def probability(labels: Sequence[int], d: float, theta: float) -> float:
    """Return the probability of a partition under PY(d, theta), term by term of its urn."""
    found, sizes = 1.0, Counter[int]()
    for i, label in enumerate(labels):
        new = theta + d * len(sizes)
        found *= (sizes[label] - d if sizes[label] else new) / (theta + i)
        sizes[label] += 1
    return found


@pytest.mark.parametrize(("d", "theta"), [(0.0, 0.7), (0.4, 1.3), (0.9, -0.2)])
def test_blocks_in_order_of_appearance_against_enumeration(d: float, theta: float) -> None:
    exact: Counter[tuple[int, ...]] = Counter()
    for labels in partitions(6):
        exact[tuple(np.bincount(labels))] += probability(labels, d, theta)
    rng = np.random.default_rng([3, int(10 * d)])
    drawn = Counter(tuple(map(int, split(rng, 6, d, theta))) for _ in range(6_000))
    assert chi_square(drawn, dict(exact)) > LEVEL
    assert len(split(rng, 0, d, theta)) == 0
    many = split(rng, 10**6, d, theta)
    assert many.sum() == 10**6 and many.min() >= 1


def released(
    column: dict[str, Any], values: Any, n: int, theta: float, d: float = 0.0, **more: Any
) -> Release:
    """Return released records of one column."""
    mechanism = {
        "kind": "synthetic", "generator": "pitman_yor", "columns": [column], "records": len(values),
        "requested": {}, "scale": [], "discount": d, "concentration": theta, "base": [more.pop("base", None)],
        "snap": [more.pop("snap", None)],
    }  # fmt: skip
    names = more.pop("labels", None)
    labels = () if names is None else (names,)
    table = np.asarray(values, dtype=np.float64)[:, None]
    return Release(table, (column["name"],), mechanism, 0.0, 0.1, None, n, trust="global", labels=labels)


def draws_of(model: Discrete, rng: np.random.Generator, draws: int, name: str = "tail") -> Array:
    """Return draws of a parameter, straight from a chain."""
    chain = model.make_chain(rng)
    sizes = {p.name: tuple(len(model.coords[dim]) for dim in p.dims) for p in model.parameters}
    out = {title: np.empty((draws, *shape)) for title, shape in sizes.items()}
    for t in range(draws):
        chain.record(t, out)
    return out[name]


def model_of(release: Release, tail: Sequence[float] | None = None) -> Discrete:
    """Return the model of a release."""
    asked = {} if tail is None else {"tail": list(tail)}
    return build(load_spec({"model": {"kind": "discrete", **asked}}), release)


def assert_moments(drawn: Array, mean: float, variance: float) -> None:
    """Hold mean and variance of draws against exact ones."""
    root = math.sqrt(len(drawn))
    assert abs(drawn.mean() - mean) < SECONDARY * drawn.std() / root, (drawn.mean(), mean)
    squares = (drawn - mean) ** 2
    assert abs(squares.mean() - variance) < SECONDARY * squares.std() / root, (squares.mean(), variance)


def mixed(weights: Array, means: Array, variances: Array) -> tuple[float, float]:
    """Return mean and variance of a mixture."""
    weights = weights / weights.sum()
    mean = float(weights @ means)
    return mean, float(weights @ (variances + means**2) - mean**2)


@pytest.mark.parametrize("shares", [(0.2, 0.5, 0.3), (0.6, 0.4)])
def test_a_finite_base_against_enumeration_of_all_records(shares: tuple[float, ...]) -> None:
    # x in all ways, z given x by the urn run forward, and P(first) given x a beta distribution
    theta, n, z = 1.7, 5, (0, 1, 0)
    base = np.array(shares)
    weights, means, variances = [], [], []
    for x in itertools.product(range(len(base)), repeat=n):
        seen, p = np.zeros(len(base)), 1.0
        for i, value in enumerate((*x, *z)):
            p *= (theta * base[value] + seen[value]) / (theta + i)
            seen[value] += 1.0
        a, total = theta * base[0] + x.count(0), theta + n
        weights.append(p)
        means.append(a / total)
        variances.append(a * (total - a) / (total**2 * (total + 1.0)))
    # new numbers move to the grid 0, 1, .., and the base is a histogram over the grid's cells
    count = len(base)
    column = {"name": "x", "domain": [-0.5, count - 0.5]}
    law = {"kind": "histogram", "edges": [i - 0.5 for i in range(count + 1)], "weights": list(shares)}
    grid = {"step": 1.0, "domain": [0.0, count - 1.0]}
    model = model_of(released(column, z, n, theta, base=law, snap=grid), [0.0])
    drawn = 1.0 - draws_of(model, np.random.default_rng(4), 12_000)[:, 0]
    assert_moments(drawn, *mixed(np.array(weights), np.array(means), np.array(variances)))


def exact_tail(
    pattern: Sequence[int], values: Sequence[float], n: int, d: float, theta: float, cut: float,
    wanted: Callable[[Sequence[int], int], bool] = lambda labels, n: True,
) -> tuple[float, float]:  # fmt: skip
    """Mean and variance of P(X > cut), uniform base on [0, 1], by all partitions of x and z together.

    `pattern` says which of z are equal, `values` are those of its blocks; `wanted` which partitions the
    release admits.
    """
    weights, means, variances = [], [], []
    for labels in partitions(n + len(pattern)):
        own = labels[n:]
        if any((own[i] == own[j]) != (pattern[i] == pattern[j]) for i in range(len(own)) for j in range(i)):
            continue
        if not wanted(labels, n):
            continue
        p = probability(labels, d, theta)
        sizes = Counter(labels[:n])
        where = {label: values[pattern[i]] for i, label in enumerate(own)}
        loose = [label for label in sizes if label not in where]
        for inside in itertools.product((0, 1), repeat=len(loose)):
            share = math.prod(1.0 - cut if one else cut for one in inside)
            above = dict(zip(loose, inside, strict=True)) | {k: v > cut for k, v in where.items()}
            weight = sum(sizes[label] - d for label in sizes if above[label])
            rest = theta + d * len(sizes)
            mean, variance = measures.moments(weight, theta + n, rest, 1.0 - cut, d)
            weights.append(p * share)
            means.append(mean)
            variances.append(variance)
    return mixed(np.array(weights), np.array(means), np.array(variances))


UNIT = {"name": "x", "domain": [0.0, 1.0]}


@pytest.mark.parametrize(
    ("d", "theta"), [(0.0, 1.5), pytest.param(0.3, 1.5, marks=pytest.mark.matrix), (0.7, -0.4)]
)
def test_numbers_against_enumeration_of_all_partitions(d: float, theta: float) -> None:
    pattern, values, n = (0, 1, 0), (0.15, 0.8), 5
    model = model_of(released(UNIT, [values[i] for i in pattern], n, theta, d), [0.1, 0.5])
    drawn = draws_of(model, np.random.default_rng([5, int(10 * d)]), 12_000)
    for at, cut in enumerate((0.1, 0.5)):
        assert_moments(drawn[:, at], *exact_tail(pattern, values, n, d, theta, cut))


def test_numbers_whose_grid_shows_which_are_new_against_enumeration() -> None:
    # 0.15 and 0.8 are no points of the grid, and 0.5 is: a new one
    pattern, values, n = (0, 1, 0, 2), (0.15, 0.8, 0.5), 4

    def wanted(labels: Sequence[int], n: int) -> bool:
        x, (first, second, _, new) = set(labels[:n]), labels[n:]
        return first in x and second in x and new not in x

    grid = {"step": 0.25, "domain": [0.0, 1.0]}
    model = model_of(released(UNIT, [values[i] for i in pattern], n, 1.5, snap=grid), [0.3])
    drawn = draws_of(model, np.random.default_rng(6), 12_000)[:, 0]
    assert_moments(drawn, *exact_tail(pattern, values, n, 0.0, 1.5, 0.3, wanted))
    assert len(model.law.fixed.values) == 2


@pytest.mark.parametrize("d", [0.0, 0.6])
def test_labels_that_show_which_are_new_against_enumeration(d: float) -> None:
    theta, n, z = 0.5, 4, (0, 1, 0, 2, 3)
    weights, means, variances = [], [], []
    for labels in partitions(n + len(z)):
        x, own = labels[:n], labels[n:]
        if own[0] != own[2] or len(set(own)) != 4 or {own[3], own[4]} & set(x) or not {*own[:2]} <= set(x):
            continue
        a = np.array([x.count(own[0]) - d, x.count(own[1]) - d])
        a = np.append(a, theta + n - a.sum())
        weights.append(probability(labels, d, theta))
        means.append(a / (theta + n))
        variances.append(a * (theta + n - a) / ((theta + n) ** 2 * (theta + n + 1)))
    release = released(LABEL, z, n, theta, d, labels=("ann", "bob", "new_category_1", "new_category_2"))
    model = model_of(release)
    assert model.coords["category"].tolist() == ["ann", "bob", "(any other)"]
    drawn = draws_of(model, np.random.default_rng([7, int(10 * d)]), 12_000, "probability")
    for j in range(3):
        own_moments = mixed(np.array(weights), np.array(means)[:, j], np.array(variances)[:, j])
        assert_moments(drawn[:, j], *own_moments)
    np.testing.assert_allclose(drawn.sum(1), 1.0, rtol=1e-12)


def ratio(theta: float, n: int, m: int) -> float:
    """Return the variance of P(A) over that of the measure that x and z share (methods, section 5)."""
    v = n * (theta + m + n) / ((theta + m + 1) * (theta + n) ** 2)
    return (theta + m + 1) * ((1 - v) / (theta + n + 1) + v)


def test_the_variance_is_that_of_what_the_confidential_records_came_from() -> None:
    theta, n, m = 2.0, 20, 10
    assert ratio(theta, n, m) == pytest.approx(1.83, abs=0.005)
    values = np.linspace(0.05, 0.95, m)  # half of them above 1/2, as of P0: the posterior mean is 1/2
    model = model_of(released(UNIT, values, n, theta), [0.5])
    drawn = draws_of(model, np.random.default_rng(8), 12_000)[:, 0]
    shared = 0.25 / (theta + m + 1.0)
    assert_moments(drawn, 0.5, ratio(theta, n, m) * shared)
    unequal = model_of(
        released(UNIT, values, n, theta), [0.2]
    )  # 8 of 10 above: (theta P0 + n mu)/(theta + n)
    mu = (theta * 0.8 + 8) / (theta + m)
    drawn = draws_of(unequal, np.random.default_rng(9), 12_000)[:, 0]
    assert abs(drawn.mean() - (theta * 0.8 + n * mu) / (theta + n)) < SECONDARY * drawn.std() / np.sqrt(
        12_000
    )


def continued(rng: np.random.Generator, x: Array, m: int, d: float, theta: float, new: Any) -> Array:
    """Continue the urn of x by m more draws, one after the other."""
    seen = list(x)
    for _ in range(m):
        values, counts = np.unique(seen, return_counts=True)
        weights = np.append(counts - d, theta + d * len(values))
        at = rng.choice(len(weights), p=weights / weights.sum())
        seen.append(values[at] if at < len(values) else new())
    return np.array(seen[len(x) :])


def ranks(kind: str, d: float, replicates: int = 300, shared: bool = False) -> Array:
    """Return the rank of P(A) among 19 posterior draws, from P by its sticks, x given P, and z given x on."""
    theta, n, m, cut = 2.0, 20, 10, 0.4
    rng = np.random.default_rng([10, int(10 * d), *kind.encode()])
    found = np.empty(replicates)
    for r in range(replicates):
        atoms, sticks = rng.random(3_000), measures.sticks(rng, theta, d, 3_000)
        x = rng.choice(atoms, n, p=sticks / sticks.sum())
        z = continued(rng, x, m, d, theta, rng.random)
        truth = float(sticks[atoms > cut].sum())
        fresh = ~np.isin(z, x)
        if kind == "grid":
            z[fresh] = np.round(10 * z[fresh]) / 10
            release = released(UNIT, z, n, theta, d, snap={"step": 0.1, "domain": [0.0, 1.0]})
        elif kind == "labels":  # of the value that was released first, or of all that were not
            values, codes = np.unique(z, return_inverse=True)
            names = tuple(f"new_category_{i + 1}" if v not in x else f"v{i}" for i, v in enumerate(values))
            release = released(LABEL, codes, n, theta, d, labels=names)
            old = values[np.isin(values, x)]
            truth = float(sticks[~np.isin(atoms, old)].sum())
        else:
            release = released(UNIT, z, n, theta, d)
        if shared:  # as if the released records were a sample of P
            a, b = theta * (1 - cut) + (z > cut).sum(), theta * cut + (z <= cut).sum()
            drawn = rng.beta(a, b, 19)
        elif kind == "labels":
            drawn = draws_of(model_of(release), rng, 19, "probability")[:, -1]
        else:
            drawn = draws_of(model_of(release, [cut]), rng, 19)[:, 0]
        found[r] = (drawn < truth).sum()
    return found


def uniform(found: Array) -> float:
    return float(stats.chisquare(np.bincount(found.astype(int), minlength=20)).pvalue)


@pytest.mark.parametrize(
    ("kind", "d"),
    [
        pytest.param("numbers", 0.0, marks=pytest.mark.matrix),
        ("numbers", 0.3),
        ("grid", 0.0),
        ("labels", 0.0),
        ("labels", 0.3),
    ],
)
def test_calibration_from_the_confidential_records_own_measure_on(kind: str, d: float) -> None:
    assert uniform(ranks(kind, d)) > 1e-4


def test_the_measure_that_x_and_z_share_does_not_calibrate() -> None:
    assert uniform(ranks("numbers", 0.0, 1_500, shared=True)) < 1e-6


def test_many_records_are_no_work() -> None:
    rng = np.random.default_rng(11)
    n, m = 10**6, 10**5
    values = np.append(rng.random(m // 2), rng.choice(rng.random(100), m // 2))
    for d in (0.0, 0.5):
        model = model_of(released(UNIT, values, n, 2.0, d), [0.5])
        assert 0.45 < draws_of(model, rng, 2)[:, 0].mean() < 0.55
        urn = model.law.urn
        assert urn is not None and urn.draw(rng).sum() == n


def test_what_a_release_cannot_have() -> None:
    # integers, of which the grid has every fifth: 5 and 10 may be old ones
    values = [5.0, 10.0, 10.0, 5.0, 5.0, 5.0, 10.0, 7.0, 8.0, 11.0]
    column = {"name": "x", "domain": [0.0, 20.0]}
    grid = {"step": 5.0, "domain": [0.0, 20.0]}
    with pytest.raises(
        DataError, match="^7 of 10 released records are on the grid synthesis.snap and the others"
    ):
        model_of(released(column, values, 1000, 0.5, snap=grid))
    with pytest.raises(
        DataError, match="^the release has 3 values that are shown as confidential ones, and says"
    ):
        draws_of(model_of(released(column, values[7:], 2, 0.5, snap=grid)), np.random.default_rng(0), 1)


def test_likelihoods_are_given_where_there_are_some() -> None:
    assert model_of(released(COLOUR, [0, 1, 1], 6, 2.0)).has_log_likelihood
    assert not model_of(released(NUMBER, [1.0, 2.0], 6, 2.0)).has_log_likelihood
    urn = ContinuedUrn(6, np.array([1.0, 2.0, 0.0]), np.full(3, 2 / 3), 2.0, 0.0, 2, closed=True)
    one, other = np.array([3, 2, 1, 0]), np.array([0, 0, 6, 0])
    for drawn, truth in (
        (one, (2 / 3 + 3) * (2 / 3 + 2) * (2 / 3 + 3)),
        (other, (2 / 3) * (2 / 3) * (5 / 3)),
    ):
        assert urn.log_likelihood(drawn) == pytest.approx(math.log(truth / (8 * 9 * 10)), rel=1e-12)
