"""Draws of a Dirichlet or Pitman-Yor posterior: closed forms, brute force, and functionals by definition.

All p-values, about 60, are held against 2e-6; gaps in standard errors against 5.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmix.models.discrete import base_measures as lo
from dpmix.models.discrete.random_measure import (
    LabelColumn,
    Measure,
    NumericColumn,
    default_tolerance,
    draw,
    draw_weights,
    fixed_atoms,
    pick,
    plan,
    stick_breaking,
)
from tests.helpers.checks import LEVEL, SECONDARY
from tests.oracles import measures

Array = NDArray[np.float64]
COLUMN = NumericColumn(0.0, 2.0, (0.31, 1.0, 1.7))
VALUES = np.array([0.0, 0.31, 0.4, 1.0, 1.55, 2.0])
COUNTS = np.array([3.0, 1.0, 1.0, 2.0, 5.0, 1.0])
BASES = {
    "uniform": (lo.uniform(0.0, 2.0), lambda rng, m: 2 * rng.random(m)),
    "beta": (lo.beta(0.4, 2.0, 0.0, 2.0), lambda rng, m: 2 * rng.beta(0.4, 2.0, m)),
    "histogram": (
        lo.histogram([0.0, 0.5, 1.5, 2.0], [1.0, 0.0, 3.0]),
        lambda rng, m: np.where(rng.random(m) < 0.25, 0.5 * rng.random(m), 1.5 + 0.5 * rng.random(m)),
    ),
}


def posterior(alpha: float, d: float, base: lo.ColumnBase, tolerance: float | None = None) -> tuple[Any, ...]:
    """Return what `draw` takes for a sample of one column."""
    left = alpha + d * len(VALUES)
    own = default_tolerance(alpha, COUNTS.sum()) if tolerance is None else tolerance
    measure = Measure(COUNTS - d, np.array([left]), np.array([left]), d, np.full((1, 1), -1), own)
    fixed = fixed_atoms([COLUMN], VALUES[:, None])
    return measure, lo.locations([base], [None]), plan([COLUMN]), fixed


def sample(rng: Any, law: tuple[Any, ...], draws: int) -> tuple[Array, Array]:
    """Return rows of functionals, and records."""
    rows, records = np.empty((draws, law[2].out[-1])), np.empty((draws, len(law[2].numeric)))
    for t in range(draws):
        draw(rng, *law, rows[t], records[t])
    return rows, records


@pytest.mark.parametrize("alpha", [0.3, 4.0, 300.0])
def test_probabilities_have_their_beta_distribution(alpha: float) -> None:
    law = posterior(alpha, 0.0, BASES["uniform"][0])
    rows, records = sample(np.random.default_rng([1, int(alpha)]), law, 3_000)
    total = alpha + COUNTS.sum()
    for at, threshold in enumerate(COLUMN.tail):
        above = COUNTS[np.greater(VALUES, threshold)].sum() + alpha * (1 - threshold / 2)
        assert stats.kstest(rows[:, 5 + at], stats.beta(above, total - above).cdf).pvalue > LEVEL
    cdf = rows[:, 8:]
    upto = COUNTS[np.less_equal(VALUES, COLUMN.grid[50])].sum() + alpha * 0.5
    assert stats.kstest(cdf[:, 50], stats.beta(upto, total - upto).cdf).pvalue > LEVEL
    ratio = cdf[:, 20] / cdf[:, 50]
    first = COUNTS[np.less_equal(VALUES, COLUMN.grid[20])].sum() + alpha * 0.2
    assert stats.kstest(ratio, stats.beta(first, upto - first).cdf).pvalue > LEVEL
    np.testing.assert_allclose(cdf[:, -1], 1.0, rtol=1e-12)
    # records drawn from P are draws from the predictive
    old = np.array([(records[:, 0] == value).mean() for value in VALUES])
    share = COUNTS / total
    assert np.abs((old - share) / np.sqrt(share * (1 - share) / len(records))).max() < SECONDARY


@pytest.mark.parametrize("d", [0.0, 0.25, 0.7])
@pytest.mark.parametrize("tolerance", [None, 10.0])
def test_probabilities_have_their_moments(d: float, tolerance: float | None) -> None:
    # at a tolerance of 10 no stick is drawn: the first two moments hold all the same, where 1 / s^2 is whole
    alpha = 3.5 if d == 0.25 else 3.8 if d == 0.7 else 5.0  # alpha + 6 d = 5, 8, 5
    law = posterior(alpha, d, BASES["uniform"][0], tolerance)
    rows, _ = sample(np.random.default_rng([2, int(10 * d)]), law, 4_000)
    left = alpha + d * len(VALUES)
    assert (1 + left) / (1 - d) == pytest.approx(round((1 + left) / (1 - d)))
    for at, threshold in enumerate(COLUMN.tail):
        above = np.greater(VALUES, threshold)
        inside, total = (COUNTS - d)[above].sum(), (COUNTS - d).sum() + left
        mean, variance = measures.moments(inside, total, left, 1 - threshold / 2, d)
        x = rows[:, 5 + at]
        assert abs(x.mean() - mean) < SECONDARY * x.std() / np.sqrt(len(x))
        squares = (x - mean) ** 2
        assert abs(squares.mean() - variance) < SECONDARY * squares.std() / np.sqrt(len(x))


@pytest.mark.parametrize(
    ("d", "base"), [(0.0, "uniform"), (0.4, "uniform"), (0.0, "beta"), (0.3, "histogram")]
)
def test_functionals_against_brute_force(d: float, base: str) -> None:
    own, new = BASES[base]
    rows, _ = sample(np.random.default_rng(3), posterior(6.0, d, own), 2_000)
    rng = np.random.default_rng(4)
    brute = []
    for _ in range(1_500):
        atoms = measures.posterior_draw(rng, VALUES, COUNTS, 6.0, d, lambda m: new(rng, m), 3_000)
        found = measures.functionals(*atoms, COLUMN.quantiles, COLUMN.tail, COLUMN.grid[[30]])
        brute.append(np.concatenate(list(found.values())))
    ours = np.column_stack([rows[:, :8], rows[:, 8 + 30]])
    p_values = [stats.ks_2samp(a, b).pvalue for a, b in zip(ours.T, np.array(brute).T, strict=True)]
    assert min(p_values) > LEVEL


def test_functionals_are_those_of_the_atoms() -> None:
    # fixed atoms alone, with ties, at grid points and at both ends; weights found from the generator
    rng = np.random.default_rng(5)
    values = np.concatenate(
        [np.repeat([0.0, 0.02, 0.31, 1.0, 2.0], 3), rng.choice(COLUMN.grid, 20), 2 * rng.random(40)]
    )
    column = NumericColumn(0.0, 2.0, (0.0, 0.31, 1.0), (0.0, 0.1, 0.5, 0.9, 1.0))
    shapes = 0.3 + rng.random(len(values))
    none = np.zeros(0)
    measure = Measure(shapes, none, none, 0.0, np.zeros((0, 1), dtype=np.int64), 0.01)
    law = (measure, lo.locations([BASES["uniform"][0]], [None]), plan([column]))
    fixed = fixed_atoms([column], values[:, None])
    for seed in range(20):
        row, record = np.empty(law[2].out[-1]), np.empty(1)
        draw(np.random.default_rng(seed), *law, fixed, row, record)
        weights = np.empty(len(values))
        draw_weights(np.random.default_rng(seed), measure, weights, np.empty(0))
        truth = measures.functionals(values, weights, [0.1, 0.5, 0.9], column.tail, column.grid)
        np.testing.assert_allclose(row[:2], np.concatenate([truth["mean"], truth["sd"]]), rtol=1e-11)
        np.testing.assert_array_equal(row[3:6], truth["quantile"])
        assert row[2] == values.min() and row[6] == values.max()
        np.testing.assert_allclose(
            row[7:], np.concatenate([truth["tail"], truth["cdf"]]), rtol=1e-11, atol=1e-14
        )
        assert record[0] in values


@pytest.mark.parametrize("base", BASES)
def test_cells_hold_a_process_each(base: str) -> None:
    own, _ = BASES[base]
    edges = np.linspace(0.0, 2.0, 5)
    prior = 3.0 * own.masses(edges)
    counts = np.array([4.0, 0.0, 2.0, 1.0])
    counts[prior == 0.0] = 0.0
    none = np.zeros(0)
    measure = Measure(none, prior + counts, prior, 0.0, np.arange(4)[:, None], 1e-6)
    law = (
        measure,
        lo.locations([own], [edges]),
        plan([COLUMN]),
        fixed_atoms([COLUMN], np.zeros((0, 1))),
    )
    rows, records = sample(np.random.default_rng(6), law, 2_000)
    rng = np.random.default_rng(7)
    cell_masses = rng.dirichlet(np.maximum(prior + counts, 1e-300), 20_000)
    for at, threshold in enumerate(COLUMN.tail):
        j = int(threshold / 0.5)
        above = 3.0 * (own.below(edges[[j + 1]])[0] - own.below(np.array([threshold]))[0])
        rest = max(prior[j] - above, 0.0)
        share = rng.beta(above, rest, 20_000) if min(above, rest) > 0 else float(above > 0)
        truth = cell_masses[:, j + 1 :].sum(1) + cell_masses[:, j] * share
        # masses below the tolerance may have become 0
        assert stats.ks_2samp(np.round(rows[:, 5 + at], 3), np.round(truth, 3)).pvalue > LEVEL
    seen = np.bincount(np.minimum((records[:, 0] / 0.5).astype(int), 3), minlength=4)
    share = (prior + counts) / (prior + counts).sum()
    assert (seen[share == 0] == 0).all()
    assert stats.chisquare(seen[share > 0], share[share > 0] * seen.sum()).pvalue > LEVEL


@pytest.mark.parametrize("base", BASES)
def test_locations_within_cells(base: str) -> None:
    own, _ = BASES[base]
    edges = np.array([0.0, 0.3, 1.7, 2.0])
    tables, rng = lo.locations([own], [edges]), np.random.default_rng(9)
    for cell in (-1, 0, 1, 2):
        low, high = (0.0, 2.0) if cell < 0 else edges[cell : cell + 2]
        x = np.array([lo.draw_location(tables, rng, 0, cell) for _ in range(2_000)])
        start, stop = (0.0, 1.0) if cell < 0 else own.below(np.array([low, high]))
        assert low <= x.min() and x.max() <= high
        pit = (own.below(x) - start) / (stop - start)
        assert stats.kstest(pit, "uniform").pvalue > LEVEL


def test_snapped_base_and_products_of_cells() -> None:
    grid = np.array([0.0, 1.0, 2.0])
    own = lo.snapped(lo.histogram([0.0, 0.5, 2.0], [1.0, 3.0]), grid, np.array([0.5, 1.5]))
    np.testing.assert_allclose(own.masses(None), [0.25, 0.5, 0.25])
    codes = lo.atoms([0.0, 1.0], [1.0, 3.0])
    found = lo.cell_probabilities([codes, lo.uniform(0.0, 1.0)], [None, np.array([0.0, 0.2, 1.0])])
    np.testing.assert_allclose(found, [0.05, 0.2, 0.15, 0.6])
    tables, rng = lo.locations([own, codes], [None, None]), np.random.default_rng(11)
    drawn = np.array([[lo.draw_location(tables, rng, i, -1) for i in range(2)] for _ in range(4_000)])
    for column, base in enumerate((own, codes)):
        seen = np.array([(drawn[:, column] == point).sum() for point in base.points])
        assert stats.chisquare(seen, base.masses(None) * len(drawn)).pvalue > LEVEL
    assert lo.draw_location(tables, rng, 1, 1) == 1.0


def test_two_columns_of_a_record_come_from_one_atom() -> None:
    labels = LabelColumn(np.array([0, 1, 0, 2]))  # the last code: any other label
    columns = [COLUMN, labels]
    values = np.array([[0.1, 0.0], [1.9, 1.0], [1.2, 2.0]])
    counts = np.array([5.0, 4.0, 3.0])
    measure = Measure(counts, np.array([2.0]), np.array([2.0]), 0.0, np.full((1, 2), -1), 0.01)
    bases = lo.locations([BASES["uniform"][0], lo.atoms([3.0], [1.0])], [None, None])
    law = (measure, bases, plan(columns), fixed_atoms(columns, values))
    rows, records = sample(np.random.default_rng(12), law, 3_000)
    shares = rows[:, law[2].out[1] :]
    np.testing.assert_allclose(shares.sum(1), 1.0, rtol=1e-12)
    for slot, inside in enumerate((8.0, 4.0, 2.0)):
        assert stats.kstest(shares[:, slot], stats.beta(inside, 14.0 - inside).cdf).pvalue > LEVEL
    new = records[:, 1] == 3.0
    pairs = {tuple(row) for row in records[~new]}
    assert pairs == {tuple(row) for row in values}
    assert stats.kstest(records[new, 0], stats.uniform(0.0, 2.0).cdf).pvalue > LEVEL


def test_weights_of_tiny_shapes_sum_to_one() -> None:
    shapes, none = np.full(6, 1e-4), np.zeros(0)
    measure = Measure(shapes, none, none, 0.0, np.zeros((0, 1), dtype=np.int64), 0.01)
    rng, weights = np.random.default_rng(13), np.empty(6)
    largest = np.zeros(6)
    for _ in range(1_200):
        draw_weights(rng, measure, weights, none)
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
        largest[np.argmax(weights)] += 1
    assert stats.chisquare(largest).pvalue > LEVEL


def test_sticks_sum_to_their_region_and_end_at_the_tolerance() -> None:
    none = np.zeros(0)
    for d, a in ((0.0, 50.0), (0.6, 3.0)):
        measure = Measure(none, np.array([a, a]), np.array([a, a]), d, np.full((2, 1), -1), 0.01)
        masses = np.array([0.7, 0.3])
        weights, homes = stick_breaking(np.random.default_rng(14), measure, masses)
        np.testing.assert_allclose(np.bincount(homes, weights), masses, rtol=1e-12)
        equal = weights[homes == 0][-1]
        parts = int((weights[homes == 0] == equal).sum())
        sticks = (homes == 0).sum() - parts
        spread = (1 - d) / (1 + a + d * sticks)
        assert parts == round(1 / spread)
        assert 0.0 < parts * equal * np.sqrt(spread) <= 0.01 * np.sqrt(0.7)
        assert pick(np.random.default_rng(1), none, weights) < len(weights)


@pytest.mark.parametrize(("d", "a"), [(0.0, 0.7), (0.0, 6.0), (0.4, 2.0), (0.8, 1.5)])
def test_sums_of_powers_of_sticks(d: float, a: float) -> None:
    # the chance that two, or three, draws of P' are the same value
    measure = Measure(np.zeros(0), np.array([a]), np.array([a]), d, np.full((1, 1), -1), 0.003)
    rng, masses = np.random.default_rng(16), np.ones(1)
    weights = [stick_breaking(rng, measure, masses)[0] for _ in range(4_000)]
    pair = (1 - d) / (1 + a)
    for power, truth in ((2, pair), (3, pair * (2 - d) / (2 + a))):
        sums = np.array([(w**power).sum() for w in weights])
        assert abs(sums.mean() - truth) < SECONDARY * sums.std() / np.sqrt(len(sums))


def draws() -> dict[str, Array]:
    """A few draws of every kind, to be compared with the interpreter's."""
    found = {}
    for base in BASES:
        for d in (0.0, 0.4):
            rows, records = sample(np.random.default_rng(15), posterior(2.0, d, BASES[base][0]), 5)
            found |= {f"{base} {d} rows": rows, f"{base} {d} records": records}
    return found


def test_compiled_draws_equal_interpreted(tmp_path: Path) -> None:
    target = tmp_path / "draws.npz"
    subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.exact.test_discrete_process", str(target)],
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    with np.load(target) as stored:
        for name, values in draws().items():
            np.testing.assert_allclose(values, stored[name], rtol=1e-9, err_msg=name)


if __name__ == "__main__":
    np.savez(sys.argv[1], **draws())
