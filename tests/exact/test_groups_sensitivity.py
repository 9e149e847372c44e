"""Groups whose sizes are private: exact sensitivities and laws, by enumeration (methods, section 16)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from dpmix.mechanisms.clamped_moments.curator import GroupedMoments, exact_sensitivity, factors
from dpmix.mechanisms.clamped_moments.section import ClampedMomentsMechanism
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.curators.private_groups import Groups
from dpmix.mechanisms.log_moments.curator import GroupedLogMoments
from dpmix.mechanisms.log_moments.law import centre_of, centred_width, exact_width
from dpmix.mechanisms.log_moments.section import LogMomentsMechanism
from dpmix.mechanisms.noisy_counts.section import NoisyCountsMechanism
from dpmix.mechanisms.perturbed_histogram.section import PerturbedHistogramMechanism
from dpmix.mechanisms.smoothed_histogram.curator import draw_cells, smoothed_guarantee, weight_of
from dpmix.mechanisms.smoothed_histogram.section import SmoothedHistogramMechanism

TWO, THREE = Groups("sex", ("f", "m")), Groups("site", ("a", "b", "c"))


def logs(d: int, a: float, groups: Groups, n: int = 1, **own: Any) -> GroupedLogMoments:
    spec = LogMomentsMechanism.model_validate(
        {"kind": "log_moments", "threshold": a, **(own or {"epsilon": 1.0})}
    )
    made = from_spec(spec, d, n, tuple(f"x{j}" for j in range(d)), groups=groups)
    assert isinstance(made, GroupedLogMoments)
    return made


def products(p: int, groups: Groups, n: int = 1, **own: Any) -> GroupedMoments:
    bounds = ((-1.0, 1.0),) * (p + 1)
    spec = ClampedMomentsMechanism(kind="clamped_moments", bounds=bounds, **(own or {"epsilon": 1.0}))
    made = from_spec(spec, p + 1, n, tuple(f"x{j}" for j in range(p + 1)), groups=groups)
    assert isinstance(made, GroupedMoments)
    return made


def simplex(d: int, steps: int = 12) -> np.ndarray:
    """Return all compositions of multiples of 1/steps: equal parts are among them."""
    whole = [c for c in itertools.product(range(steps + 1), repeat=d - 1) if sum(c) <= steps]
    return np.array([(*c, steps - sum(c)) for c in whole]) / steps


def records_of(points: np.ndarray, groups: int) -> np.ndarray:
    return np.vstack([np.column_stack([points, np.full(len(points), g)]) for g in range(groups)])


def weighted(statistics: np.ndarray, kappa: float, groups: Groups) -> np.ndarray:
    found = statistics.copy()
    found[:, : groups.count - 1] *= kappa
    return found


def split(rows: np.ndarray, gaps: np.ndarray) -> tuple[float, float]:
    """Return the largest distance of two records of one group, and of two of different groups."""
    same = rows[:, -1][:, None] == rows[:, -1][None, :]
    return float(gaps[same].max()), float(gaps[~same].max())


def largest_rho(vectors: np.ndarray, scale: float) -> float:
    """Return the largest sum of Kullback-Leibler divergences of Laplace noise over all pairs of records."""
    worst = 0.0
    for vector in vectors:
        moves = np.abs(vectors - vector) / scale
        worst = max(worst, float((moves + np.expm1(-moves)).sum(axis=1).max()))
    return worst


@pytest.mark.parametrize("groups", [TWO, THREE])
@pytest.mark.parametrize(
    ("d", "a"), [(2, 0.02), (2, 0.6), (3, 0.001), (3, 0.1), (3, 0.45), (4, 0.02), (4, 0.3)]
)
def test_the_sensitivity_of_sums_of_logarithms_is_exact(d: int, a: float, groups: Groups) -> None:
    made = logs(d, a, groups)
    found = made.settings(a)
    rows = records_of(simplex(d), groups.count)
    vectors = weighted(np.array([made.statistic(row[None, :], a) for row in rows]), found.kappa, groups)
    same, different = split(rows, cdist(vectors, vectors, "cityblock"))
    # within a group as ever; between groups the sums move no more than that, and each size that changes adds
    assert same == pytest.approx(exact_width(a, d), abs=1e-7)
    assert different == pytest.approx(exact_width(a, d) + groups.changes * found.kappa, abs=1e-7)
    assert different == pytest.approx(found.width, abs=1e-7)
    noise = made.noise(0, a)
    assert different <= noise.sensitivity <= different + 1e-6
    assert noise.scale >= different  # for epsilon = 1
    rho, seen = made.guarantee.rho, largest_rho(vectors, noise.scale)
    assert rho is not None
    assert seen <= rho <= 1.25 * seen
    # what is said without the sizes, or for one size of two, is too little, and would be seen here
    assert different > found.width - 0.5 * found.kappa


@pytest.mark.parametrize("d", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("a", [0.001, 0.05, 0.15, 0.4, 0.9])
def test_no_centre_is_better_and_none_needs_to_be(d: int, a: float) -> None:
    best = centre_of(a, d)
    assert math.log(a) <= best <= math.log(a) / 2 + 1e-12
    assert 2 * centred_width(a, d, best) == pytest.approx(exact_width(a, d), rel=1e-12)
    rng = np.random.default_rng(d)
    points = np.vstack([rng.dirichlet(np.full(d, shape), 4000) for shape in (0.1, 0.5, 2.0, 20.0)])
    points = np.vstack([points, np.eye(d), np.tril(np.ones((d, d))) / np.arange(1, d + 1)[:, None]])
    tops = np.log(np.maximum(points, a))
    for u in np.linspace(0, -math.log(a) / 2, 9):
        c = math.log(a) + u
        seen = np.abs(tops - c).sum(axis=1).max()
        assert seen == pytest.approx(centred_width(a, d, c), rel=1e-12)  # attained at equal parts
        assert seen >= centred_width(a, d, best) - 1e-12


@pytest.mark.parametrize("groups", [TWO, THREE])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_sensitivity_of_moments_of_groups_is_exact(p: int, groups: Groups) -> None:
    made = products(p, groups)
    found, q = made.widths, p + 1
    points = np.array(list(itertools.product(np.linspace(-1, 1, 9 if p < 3 else 5), repeat=q)))
    rows = records_of(points, groups.count)
    vectors = weighted(np.array([made.statistic(row[None, :])[0] for row in rows]), found.kappa, groups)
    same, different = split(rows, cdist(vectors, vectors, "cityblock"))
    assert same <= exact_sensitivity(p) * (1 + 1e-12)
    assert different == pytest.approx(q * (q + 1) + groups.changes * found.kappa, rel=1e-9)
    assert different <= made.sensitivity <= different * (1 + 1e-9)
    assert different > found.exact - 0.5 * found.kappa
    rho, seen = made.guarantee.rho, largest_rho(vectors, made.s)
    assert rho is not None
    assert seen <= rho <= 1.25 * seen
    for c in np.linspace(0, 1.5, 16):  # no other centre of squares does with less
        centre = np.array([c if i == j else 0.0 for i, j in factors(q)])
        z = np.column_stack([np.ones(len(points)), points])
        entries = np.column_stack([z[:, i] * z[:, j] for i, j in factors(q)])
        assert np.abs(entries - centre).sum(axis=1).max() >= q * (q + 1) / 2 - 1e-12


def test_kappa_makes_noise_in_means_least() -> None:
    made = logs(3, 0.01, THREE)
    found, k = made.settings(0.01), 2
    width, r = exact_width(0.01, 3), exact_width(0.01, 3) / 6

    def variance(kappa: float) -> float:
        return (1 + r**2 / kappa**2) * (width + k * kappa) ** 2

    assert all(variance(found.kappa) <= variance(found.kappa * f) + 1e-9 for f in (0.9, 0.99, 1.01, 1.1))
    assert (found.kappa * 2**40).is_integer()


@pytest.mark.parametrize("groups", [TWO, THREE])
def test_counts_of_groups_move_as_counts_of_classes_do(groups: Groups) -> None:
    spec = NoisyCountsMechanism(kind="noisy_counts", levels=(2, 3), classes=2, epsilon=1.0)
    counting: Any = from_spec(spec, 3, 1, ("a", "b", "y"), groups=groups)
    cells = itertools.product(range(2), range(3), range(2), range(groups.count))
    rows = np.array(list(cells), dtype=np.float64)
    vectors = np.array([counting.statistic(row[None, :])[0] for row in rows])
    assert vectors.shape[1] == counting.size == groups.count * 2 * 5
    assert cdist(vectors, vectors, "cityblock").max() == counting.sensitivity == 4
    row = np.array([[1.0, 2.0, 1.0, groups.count - 1.0]])  # the last class of the last group, as documented
    place = np.nonzero(counting.statistic(row)[0])[0].tolist()
    g, i = groups.count - 1, 1
    assert place == [(g * 2 + i) * 2 + 1, groups.count * 2 * 2 + (g * 2 + i) * 3 + 2]
    histogram: Any = from_spec(
        PerturbedHistogramMechanism(kind="perturbed_histogram", bins=3, epsilon=1.0, domain=((0.0, 3.0),)),
        1,
        groups=groups,
    )
    rows = np.array(list(itertools.product((-1.0, 0.5, 1.5, 2.5), range(groups.count))))
    vectors = np.array([histogram._counts(row[None, :])[0] for row in rows])
    assert vectors.shape[1] == histogram.cells == 3 * groups.count
    assert cdist(vectors, vectors, "cityblock").max() == 2
    assert cdist(vectors, vectors).max() == pytest.approx(math.sqrt(2))
    assert np.nonzero(histogram._counts(np.array([[1.5, 1.0]]))[0])[0].tolist() == [1 * 3 + 1]


def law(counts: tuple[int, ...], weight: Fraction) -> list[Fraction]:
    """Return the exact probability of each cell."""
    n, cells = sum(counts), len(counts)
    return [(1 - weight) * Fraction(c, n) + weight / cells for c in counts]


def worst_ratio(n: int, cells: int, draws: int, weight: Fraction) -> Fraction:
    """Return the largest ratio of probabilities of any releases of neighbours, all of them enumerated."""
    worst = Fraction(0)
    for counts in itertools.product(range(n + 1), repeat=cells):
        if sum(counts) != n:
            continue
        for source, target in itertools.permutations(range(cells), 2):
            if not counts[source]:
                continue
            other = list(counts)
            other[source] -= 1
            other[target] += 1
            one, two = law(counts, weight), law(tuple(other), weight)
            for drawn in itertools.product(range(cells), repeat=draws):
                ratio = math.prod((one[c] for c in drawn), start=Fraction(1)) / math.prod(
                    (two[c] for c in drawn), start=Fraction(1)
                )
                worst = max(worst, ratio)
    return worst


@pytest.mark.parametrize(("groups", "bins", "n", "draws"), [(2, 2, 3, 2), (3, 1, 4, 2), (2, 1, 5, 3)])
def test_draws_of_groups_and_bins_keep_epsilon_exactly(groups: int, bins: int, n: int, draws: int) -> None:
    spec = SmoothedHistogramMechanism(kind="smoothed_histogram", bins=bins, draws=draws, epsilon=1.0, n=n)
    weight, _ = weight_of(spec, n, groups)
    worst = worst_ratio(n, groups * bins, draws, Fraction(weight))
    assert math.exp(1.0 - 1e-9) <= worst <= math.exp(1.0) * (1 + 1e-15)
    stated = smoothed_guarantee(groups * bins, draws, n, weight).epsilon
    assert stated is not None
    assert worst <= math.exp(stated) * (1 + 1e-15)
    too_small, _ = weight_of(spec, n, 1)  # of the bins alone, without the groups
    assert worst_ratio(n, groups * bins, draws, Fraction(too_small)) > math.exp(1.0) * 1.1


def test_draws_have_the_law_that_is_enumerated() -> None:
    spec = SmoothedHistogramMechanism(
        kind="smoothed_histogram", bins=2, draws=60_000, weight=0.3, n=5, domain=((0.0, 2.0),)
    )
    made: Any = from_spec(spec, 1, 5, groups=TWO)
    table = np.array([[0.5, 0], [0.5, 1], [1.5, 1], [9.0, 1], [0.2, 1]])
    release, clamped = made.simulate(table, ("x",), np.random.default_rng(3))
    assert clamped == (1,)
    assert release.columns == ("x", "sex")
    assert release.labels == (None, ("f", "m"))
    cell = release.values[:, 1] * 2 + (release.values[:, 0] >= 1)
    seen = np.bincount(cell.astype(int), minlength=4) / 60_000
    np.testing.assert_allclose(seen, [float(p) for p in law((1, 0, 2, 2), Fraction(3, 10))], atol=0.008)
    direct = draw_cells(np.array([0, 2, 3, 3, 2]), 4, 0.3, 60_000, np.random.default_rng(4).bytes)
    np.testing.assert_allclose(np.bincount(direct, minlength=4) / 60_000, seen, atol=0.012)


def test_geometric_counts_of_groups_keep_epsilon_cell_by_cell() -> None:
    made: Any = from_spec(
        PerturbedHistogramMechanism(
            kind="perturbed_histogram", bins=2, epsilon=1.0, noise="geometric", domain=((0.0, 2.0),)
        ),
        1,
        groups=TWO,
    )
    rows = np.array(list(itertools.product((0.5, 1.5), (0.0, 1.0))))
    worst = 0.0
    for one, other in itertools.permutations(range(4), 2):
        a, b = (made._counts(rows[[i]])[0] for i in (one, other))
        for outcome in itertools.product(range(-2, 4), repeat=4):
            loss = (np.abs(outcome - b) - np.abs(outcome - a)).sum() / made.s
            worst = max(worst, float(loss))
    assert worst == pytest.approx(1.0, rel=1e-9)
    assert worst <= made.guarantee.epsilon * (1 + 1e-12)
