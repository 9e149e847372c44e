"""Distances and statistics between confidential and synthetic records, against independent calculations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from dpmix.synthesis import utility
from dpmix.synthesis.measured_kinds import CELLS, bandwidth_of, density_of, grid_of_cells
from dpmix.synthesis.records import Column, Records
from dpmix.synthesis.utility import (
    DIRECTIONS,
    SortedRows,
    Yardstick,
    transport,
    wasserstein,
)

SIZES = ((1, 1), (1, 7), (5, 3), (6, 4), (40, 40), (101, 37), (250, 1000))


def programme(cost: np.ndarray) -> float:
    """Least cost of moving equal masses on rows to equal masses on columns, by a dense linear programme."""
    n, m = cost.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    margins = np.concatenate((np.full(n, 1 / n), np.full(m, 1 / m)))
    solved = linprog(cost.ravel(), A_eq=np.vstack((rows, columns)), b_eq=margins, method="highs")
    assert solved.status == 0
    return solved.fun


def sliced(first: np.ndarray, second: np.ndarray) -> float:
    """Mean of W1 over projections on the fixed directions."""
    turned = utility.directions(first.shape[1], DIRECTIONS)
    return np.mean([wasserstein(np.sort(first @ way), np.sort(second @ way)) for way in turned])


def records_of(columns: tuple[Column, ...], *values, labels=None) -> Records:
    found = np.column_stack([np.asarray(v, dtype=np.float64) for v in values])
    return Records(columns, found, labels or (None,) * len(columns), (0,) * len(columns))


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_w1_of_one_number_is_scipys(n, m):
    rng = np.random.default_rng(n * m)
    for first, second in (
        (rng.normal(size=n), rng.standard_t(2, size=m)),
        (rng.integers(4, size=n) * 1.0, rng.integers(3, size=m) * 1.0),  # ties within and between
    ):
        got = wasserstein(np.sort(first), np.sort(second))
        assert got == pytest.approx(stats.wasserstein_distance(first, second), rel=1e-12, abs=1e-14)
        assert wasserstein(np.sort(second), np.sort(first)) == pytest.approx(got, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(("n", "m"), SIZES[:5])
def test_w1_of_one_number_is_the_cost_of_a_linear_programme(n, m):
    rng = np.random.default_rng(100 + n * m)
    first, second = rng.random(n), rng.random(m) ** 2
    cost = np.abs(first[:, None] - second)
    assert wasserstein(np.sort(first), np.sort(second)) == pytest.approx(programme(cost), abs=1e-9)


def test_w1_by_hand():
    assert wasserstein(np.array([0.0]), np.array([0.0, 1.0])) == 0.5
    assert wasserstein(np.array([0.0, 0.0, 3.0]), np.array([0.0, 3.0])) == pytest.approx(0.5)


@pytest.mark.parametrize(("n", "m"), ((1, 4), (4, 4), (6, 4), (7, 5), (30, 20)))
@pytest.mark.parametrize("assigned", (0, 1000))
def test_exact_transport_is_a_linear_programme(n, m, assigned, monkeypatch):
    monkeypatch.setattr(utility, "ASSIGNED", assigned)
    rng = np.random.default_rng(n + m)
    first, second = rng.random((n, 2)), rng.random((m, 2)) * 0.5
    cost = np.hypot(first[:, 0][:, None] - second[:, 0], first[:, 1][:, None] - second[:, 1])
    assert transport(first, second) == pytest.approx(programme(cost), abs=1e-9)


def test_exact_transport_is_the_best_permutation():
    rng = np.random.default_rng(5)
    first, second = rng.random((5, 3)), rng.random((5, 3))
    costs = (
        np.mean([math.dist(first[i], second[j]) for i, j in enumerate(order)])
        for order in itertools.permutations(range(5))
    )
    assert transport(first, second) == pytest.approx(min(costs), rel=1e-12)


def test_exact_transport_is_left_out_where_it_is_long():
    rng = np.random.default_rng(6)
    assert transport(rng.random((1009, 2)), rng.random((997, 2))) is None


def test_sliced_w1_is_w1_in_one_dimension():
    rng = np.random.default_rng(7)
    first, second = rng.random((30, 1)), rng.random((21, 1))
    exact = stats.wasserstein_distance(first[:, 0], second[:, 0])
    assert transport(first, second) == pytest.approx(exact, rel=1e-9)


def test_distances_of_a_shift():
    points = np.random.default_rng(8).random((60, 2))
    shifted = points + (0.3, 0.4)
    assert transport(points, shifted) == pytest.approx(0.5, rel=1e-12)
    # the mean of |cos| over the circle is 2/pi; evenly spaced directions have it to O(count^-2)
    assert sliced(points, shifted) == pytest.approx(0.5 * 2 / math.pi, rel=1e-3)
    cube = np.random.default_rng(9).random((20, 3))
    # in space it is 1/2, and its mean over 50 directions has the standard error 0.5 sqrt(1/12 / 50) of that
    assert sliced(cube, cube + (0.0, 0.0, 1.0)) == pytest.approx(0.5, abs=4 * 0.041)


def test_directions_are_unit_vectors_and_fixed():
    for dimensions in (2, 5):
        found = utility.directions(dimensions, 50)
        assert found.shape == (50, dimensions)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
        np.testing.assert_array_equal(found, utility.directions(dimensions, 50))


@pytest.mark.parametrize("columns", (1, 2, 3))
def test_records_are_looked_up_whole(columns):
    rng = np.random.default_rng(columns)
    known = rng.integers(-2, 3, size=(12, columns)) * 0.5 + 0.0
    asked = rng.integers(-3, 4, size=(400, columns)) * 0.5 + 0.0
    rows = SortedRows(known)
    there = {tuple(row) for row in known.tolist()}
    expected = [tuple(row) in there for row in asked.tolist()]
    assert 0 < sum(expected) < 400
    np.testing.assert_array_equal(rows.holds(asked), expected)
    assert rows.distinct == len(there)
    assert SortedRows(asked).distinct == len({tuple(row) for row in asked.tolist()})


def test_measures_of_numbers():
    rng = np.random.default_rng(10)
    known, drawn = rng.uniform(2, 6, 50), rng.uniform(3, 5, 31)
    drawn[:4] = known[:4]
    drawn[4] = drawn[5]
    yardstick = Yardstick(records_of((Column("x", (2.0, 6.0)),), known))
    joint, (figures,), shares = yardstick.measure(drawn[:, None], (None,))
    distance = stats.wasserstein_distance(known, drawn)
    assert figures["w1"] == pytest.approx(distance, rel=1e-12)
    assert figures["w1_scaled"] == pytest.approx(distance / 4, rel=1e-12)
    assert figures["mean"] == pytest.approx(sum(drawn) / 31)
    assert figures["sd"] == pytest.approx(np.sqrt(np.mean((drawn - drawn.mean()) ** 2)))
    assert [figures[q] for q in ("q25", "q50", "q75")] == pytest.approx(np.percentile(drawn, (25, 50, 75)))
    assert joint == {"distinct": 30.0, "repeats": pytest.approx(4 / 31)}
    assert shares == (None,)
    own = yardstick.confidential
    assert own.joint == {"distinct": 50.0}
    assert own.columns[0]["mean"] == pytest.approx(known.mean())


@pytest.mark.parametrize("kept", (0, utility._KEPT))
def test_several_columns_are_compared_on_their_bounds(kept, monkeypatch):
    monkeypatch.setattr(utility, "_KEPT", kept)
    rng = np.random.default_rng(11)
    columns = (Column("x", (0.0, 10.0)), Column("c", None, ("a", "b")), Column("y", (-1.0, 0.0)))
    known = records_of(
        columns,
        10 * rng.random(20),
        rng.integers(2, size=20),
        -rng.random(20),
        labels=(None, ("a", "b"), None),
    )
    drawn = np.column_stack((10 * rng.random(15), np.ones(15), -rng.random(15)))
    joint = Yardstick(known).measure(drawn, known.labels).joint
    first, second = ((v[:, [0, 2]] - (0.0, -1.0)) / (10.0, 1.0) for v in (known.values, drawn))
    assert joint["sliced_w1"] == pytest.approx(sliced(first, second), rel=1e-12)
    assert joint["exact_w1"] == pytest.approx(transport(first, second), rel=1e-12)
    assert "total_variation" not in joint  # one column of labels is by itself


def test_free_labels_are_matched_by_their_text():
    known = records_of(
        (
            Column(
                "word",
            ),
        ),
        [0, 0, 1, 2],
        labels=(("ant", "bee", "cat"),),
    )
    codes = np.array([0.0, 0.0, 1.0, 2.0, 1.0])
    yardstick = Yardstick(known)
    joint, (figures,), (shares,) = yardstick.measure(codes[:, None], (("cat", "ant", "new_category_1"),))
    # synthetic shares: ant 2/5, bee 0, cat 2/5, new 1/5 against 1/2, 1/4, 1/4
    assert figures["total_variation"] == pytest.approx((0.1 + 0.25 + 0.15 + 0.2) / 2)
    assert joint == {"distinct": 3.0, "repeats": pytest.approx(0.8)}
    np.testing.assert_allclose(shares, [0.4, 0.0, 0.4])
    assert yardstick.shown(0) == ("ant", "bee", "cat")


def test_several_columns_of_labels_are_compared_together():
    columns = (Column("a", None, ("0", "1")), Column("b", None, ("0", "1")))
    known = records_of(columns, [0, 0, 1, 1], [0, 0, 1, 1], labels=(("0", "1"), ("0", "1")))
    crossed = np.array([[0.0, 1.0], [1.0, 0.0]])
    joint, columns_, _ = Yardstick(known).measure(crossed, known.labels)
    assert [figures["total_variation"] for figures in columns_] == [0.0, 0.0]  # margins agree
    assert joint["total_variation"] == 1.0  # pairs do not
    assert joint["repeats"] == 0.0


def test_only_the_most_frequent_categories_are_shown(monkeypatch):
    monkeypatch.setattr(utility, "SHOWN", 2)
    known = records_of(
        (
            Column(
                "word",
            ),
        ),
        [0, 1, 1, 2, 2, 2],
        labels=(("ant", "bee", "cat"),),
    )
    yardstick = Yardstick(known)
    assert yardstick.shown(0) == ("bee", "cat")
    np.testing.assert_allclose(yardstick.confidential.shares[0], [1 / 3, 1 / 2])
    _, (figures,), (shares,) = yardstick.measure(np.zeros((3, 1)), known.labels)
    assert figures["total_variation"] == pytest.approx(5 / 6)  # over all categories
    np.testing.assert_allclose(shares, [0.0, 0.0])


def test_density_is_a_reflected_kernel_estimate():
    rng = np.random.default_rng(12)
    bounds, h = (1.0, 6.0), 0.2
    values = np.clip(rng.normal(1.3, 0.4, 400), *bounds)
    grid = grid_of_cells(bounds)
    expected = np.zeros(CELLS)
    for mirror in (values, 2 * bounds[0] - values, 2 * bounds[1] - values):
        expected += stats.norm.pdf(grid[:, None], mirror, h).sum(axis=1) / 400
    found = density_of(values, bounds, h)
    assert found.mean() * 5.0 == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(found, expected, atol=0.003 * expected.max())  # counted in cells


def test_bandwidth_is_silvermans_but_not_too_narrow():
    values = np.random.default_rng(13).normal(0.0, 1.0, 500)
    expected = 0.9 * min(values.std(), stats.iqr(values) / 1.34) * 500**-0.2
    assert bandwidth_of(values, (-5.0, 5.0)) == pytest.approx(expected)
    assert bandwidth_of(np.zeros(9), (-5.0, 5.0)) == 0.1
