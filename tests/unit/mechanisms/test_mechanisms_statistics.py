"""Noisy statistics of the whole sample: their sensitivities, sums, guarantees and refusals."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dpmix.data.loading import load_data
from dpmix.errors import DataError, PrivacyError, SpecError
from dpmix.mechanisms.clamped_moments.curator import (
    ClampedMoments,
    exact_sensitivity,
    factors,
    moments_rho,
    paper_sensitivity,
)
from dpmix.mechanisms.clamped_moments.section import ClampedMomentsMechanism
from dpmix.mechanisms.curators.by_kind import from_spec, stated
from dpmix.mechanisms.noisy_counts.curator import NoisyCounts
from dpmix.mechanisms.noisy_counts.section import NoisyCountsMechanism
from dpmix.mechanisms.perturbed_histogram.section import PerturbedHistogramMechanism
from dpmix.mechanisms.smoothed_histogram.section import SmoothedHistogramMechanism
from dpmix.privacy.conversions import discrete_gaussian_delta
from dpmix.release.release_file import read_release, write_release
from dpmix.spec.run_spec import RunSpec
from tests.helpers.laws import mechanism_problem, value_problem


def moments(table: np.ndarray) -> np.ndarray:
    """Return the statistic of rescaled rows, by its definition."""
    design = np.hstack([np.ones((len(table), 1)), table[:, :-1]])
    response = table[:, -1]
    squares = design.T @ design
    upper = squares[np.triu_indices(design.shape[1])][1:]
    return np.concatenate([design.T @ response, [response @ response], upper])


def counting(noise: str = "laplace", n: int = 6, **own: Any) -> NoisyCounts:
    spec = NoisyCountsMechanism(kind="noisy_counts", levels=(2, 3), classes=2, noise=noise, **own)
    made = from_spec(spec, 3, n, ("a", "b", "y"))
    assert isinstance(made, NoisyCounts)
    return made


def moving(p: int = 2, n: int = 5, **own: Any) -> ClampedMoments:
    bounds = tuple((-1.0 - i, 2.0 + i) for i in range(p + 1))
    spec = ClampedMomentsMechanism(kind="clamped_moments", bounds=bounds, **own)
    made = from_spec(spec, p + 1, n, tuple(f"x{i}" for i in range(p)) + ("y",))
    assert isinstance(made, ClampedMoments)
    return made


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
def test_the_sensitivity_of_moments_is_exact(p: int) -> None:
    rng = np.random.default_rng(p)

    def apart(both: np.ndarray) -> float:
        one, other = np.clip(both, -1, 1).reshape(2, 1, p + 1)
        return -float(np.abs(moments(one) - moments(other)).sum())

    # the largest is attained where |entries| are 1 or one common value, by sign patterns: search those
    best = 0.0
    grid = np.linspace(-1, 1, 401)
    ones = np.ones(p + 1)
    for t in grid:
        best = max(best, -apart(np.concatenate([ones, np.full(p + 1, t)])))
    for start in rng.uniform(-1, 1, (4, 2 * p + 2)):
        found = minimize(
            apart, start, method="Powell", options={"maxiter": 4000, "xtol": 1e-8, "ftol": 1e-12}
        )
        best = max(best, -found.fun)
    assert best <= exact_sensitivity(p) * (1 + 1e-9)
    assert best >= exact_sensitivity(p) * (1 - 1e-4)
    assert paper_sensitivity(p) > exact_sensitivity(p)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.3, 5.0, 200.0])
def test_rho_of_moments_holds_for_all_pairs_and_is_near_the_largest(p: int, scale: float) -> None:
    rng = np.random.default_rng(p)
    grid = np.array(list(itertools.product(np.linspace(-1, 1, 9 if p < 3 else 5), repeat=p + 1)))
    entries = np.array([moments(row[None, :]) for row in np.vstack([grid, rng.uniform(-1, 1, (300, p + 1))])])
    worst = 0.0
    for one in entries:
        moves = np.abs(entries - one) / scale
        worst = max(worst, float((moves + np.expm1(-moves)).sum(axis=1).max()))
    rho = moments_rho(p, None, scale)
    assert worst <= rho <= 1.25 * worst
    assert moving(p, scale=scale).guarantee.rho == pytest.approx(rho, rel=1e-8)


def test_moments_are_the_sums_of_products_in_order() -> None:
    made = moving(p=3, n=40, epsilon=1.0)
    rng = np.random.default_rng(0)
    low, high = np.array(made.domain).T
    unit = rng.integers(-(2**20), 2**20 + 1, (40, 4)) / 2**20
    found, clamped = made.statistic(low + (unit + 1) / 2 * (high - low))
    assert clamped == (0, 0, 0, 0)
    np.testing.assert_allclose(found, moments(unit), rtol=0, atol=1e-9)
    outside, clamped = made.statistic(np.full((40, 4), 99.0))
    assert clamped == (40, 40, 40, 40)
    np.testing.assert_array_equal(outside, np.full(made.size, 40.0))
    assert len(factors(4)) == made.size == 4 + 1 + 9


def test_counts_are_by_feature_then_class_then_level() -> None:
    made = counting(epsilon=1.0)
    codes = np.array([[0, 2, 1], [1, 0, 0], [1, 2, 1], [0, 0, 0], [1, 1, 1], [1, 2, 1]], dtype=np.float64)
    found, _ = made.statistic(codes)
    expected = [
        [((codes[:, k] == j) & (codes[:, 2] == i)).sum() for i in range(2) for j in range(levels)]
        for k, levels in enumerate((2, 3))
    ]
    assert found.tolist() == list(itertools.chain(*expected))


def test_replacing_a_record_moves_counts_by_the_sensitivity_at_most() -> None:
    made = counting(n=1, epsilon=1.0)
    rows = [np.array([row], dtype=np.float64) for row in itertools.product(range(2), range(3), range(2))]
    gaps = [np.abs(made.statistic(a)[0] - made.statistic(b)[0]).sum() for a in rows for b in rows]
    assert max(gaps) == made.sensitivity == 4.0


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.5])
def test_the_recorded_guarantee_is_what_was_asked(noise: str, epsilon: float) -> None:
    for made in (counting(noise, epsilon=epsilon), moving(epsilon=epsilon)):
        total = made.guarantee
        assert total.epsilon is not None
        assert epsilon * (1 - 1e-6) <= total.epsilon <= epsilon
        assert (total.delta, total.trust) == (0.0, "global")
        assert total.rho is not None
        assert 0 < total.rho <= epsilon * np.tanh(epsilon / 2) * (1 + 1e-9)


def test_one_feature_and_one_bin_are_said_as_one() -> None:
    assert "on 4 counts of 1 feature in 2 classes" in from_spec(
        NoisyCountsMechanism(kind="noisy_counts", levels=(2,), classes=2, epsilon=1.0), 2, 6, ("a", "y")
    ).in_words(("a", "y"))
    for kind in (
        PerturbedHistogramMechanism(kind="perturbed_histogram", bins=1, epsilon=1.0, domain=(0, 1)),
        SmoothedHistogramMechanism(kind="smoothed_histogram", bins=1, draws=1, epsilon=1.0, domain=(0, 1)),
    ):
        assert "in 1 bin" in (words := from_spec(kind, 1, 6).in_words(("a",))) and "1 bins" not in words


def test_the_papers_calibration_is_noisier_and_says_so() -> None:
    made = moving(epsilon=1.0, calibration="paper")
    assert made.s == pytest.approx(13.0)
    assert made.guarantee.epsilon == pytest.approx(9.375 / 13)
    assert made.figures()["sensitivity_paper"] == 13.0
    assert moving(scale=2.0).guarantee.epsilon == pytest.approx(9.375 / 2)


def test_discrete_gaussian_counts_cost_what_two_counts_a_feature_do() -> None:
    """L2 sensitivity sqrt(2 K): neighbours move 2 K counts by one."""
    rows = [np.array([row], dtype=np.float64) for row in itertools.product(range(2), range(3), range(2))]
    made = counting("discrete_gaussian", n=1, rho=0.3)
    gaps = [np.linalg.norm(made.statistic(a)[0] - made.statistic(b)[0]) for a in rows for b in rows]
    assert max(gaps) <= made.sensitivity <= max(gaps) * (1 + 1e-15)
    assert 0.3 * (1 - 1e-9) <= made.guarantee.rho <= 0.3
    assert (made.guarantee.epsilon, made.guarantee.gaussian) == (None, False)
    asked = counting("discrete_gaussian", n=1, epsilon=1.5, delta=1e-5)
    assert discrete_gaussian_delta(1.5, asked.s, 4) == pytest.approx(1e-5, rel=1e-7)
    assert 1.5 * (1 - 1e-9) <= asked.guarantee.epsilon <= 1.5
    assert asked.guarantee.rho == pytest.approx(2 / asked.s**2)
    spec = NoisyCountsMechanism(
        kind="noisy_counts", levels=(2, 3), classes=2, noise="discrete_gaussian", scale=3.0, delta=None
    )
    own, total = stated(spec, 3, 9)
    assert (own["sensitivity"], own["scale"]) == ([pytest.approx(2.0)], [3.0])
    assert total.rho == pytest.approx(2 / 9)
    for keys, message in (
        ({"noise": "discrete_gaussian", "epsilon": 1.0}, "missing beside epsilon"),
        ({"rho": 1.0}, "laplace noise takes epsilon or scale"),
        ({"noise": "geometric", "epsilon": 1.0, "delta": 0.1}, "geometric noise has none"),
    ):
        with pytest.raises(ValueError, match=message):
            NoisyCountsMechanism(kind="noisy_counts", levels=(2,), classes=2, **keys)


@pytest.mark.parametrize("noise", ["laplace", "geometric", "discrete_gaussian"])
def test_noise_has_the_stated_scale(noise: str) -> None:
    made = counting(noise, n=4, scale=3.0)
    codes = np.zeros((4, 3))
    truth, _ = made.statistic(codes)
    rng = np.random.default_rng(3)
    seeded = np.array([made.simulate(codes, made.columns, rng)[0].values[:, 0] for _ in range(4000)])
    real = np.array([made.privatize(codes, made.columns)[0].values[:, 0] for _ in range(60)])
    for drawn, tolerance in ((seeded, 0.05), (real, 0.3)):
        mean = np.sqrt(2 / np.pi) if noise == "discrete_gaussian" else 1.0  # of |noise| / 3
        assert np.abs(np.abs(drawn - truth).mean() / (3.0 * mean) - 1) < tolerance
    if noise != "laplace":
        assert (real == np.floor(real)).all()


def test_releases_are_read_back(tmp_path: Path) -> None:
    for name, made, values in (
        ("counts", counting(epsilon=1.0), np.zeros((6, 3))),
        ("moments", moving(epsilon=1.0), np.zeros((5, 3))),
    ):
        release, _ = made.privatize(values, made.columns)
        write_release(tmp_path / f"{name}.h5", release)
        back = read_release(tmp_path / f"{name}.h5")
        assert back.mechanism == release.mechanism
        assert np.array_equal(back.values, release.values)
        assert (back.n, back.trust, back.epsilon) == (len(values), "global", release.epsilon)
        assert mechanism_problem(back.mechanism) is None
        problem = value_problem(back.mechanism, back.values[:-1])
        assert problem is not None
        assert "numbers, but" in problem


def test_statements_of_releases_made_elsewhere() -> None:
    spec = NoisyCountsMechanism(kind="noisy_counts", levels=(2, 3), classes=2, epsilon=2.0, n=9)
    own, total = stated(spec, 1, 9)
    assert own["scale"] == [2.0]
    assert total.epsilon == 2.0
    moment = ClampedMomentsMechanism(kind="clamped_moments", bounds=((0, 1), (0, 2)), epsilon=2.0)
    own, total = stated(moment, 1, 9)
    assert own["scale"] == [pytest.approx(16 / 6)]
    assert own["bounds"] == [[0.0, 1.0], [0.0, 2.0]]


def codes_of(tmp_path: Path, text: str, **data: Any) -> np.ndarray:
    (tmp_path / "d.csv").write_text(text)
    spec = RunSpec.model_validate(
        {
            "data": {"path": str(tmp_path / "d.csv"), "columns": ["a", "y"], **data},
            "mechanism": {"kind": "noisy_counts", "levels": [3], "classes": 2, "epsilon": 1},
        }
    )
    return load_data(spec).values


def test_levels_are_numbers_from_one_or_public_categories(tmp_path: Path) -> None:
    assert codes_of(tmp_path, "a,y\n1,2\n3,1\n").tolist() == [[0, 1], [2, 0]]
    categories = {"a": ["lo", "mid", "hi"], "y": [0, 1]}
    found = codes_of(tmp_path, "a,y\nhi,0\nlo,1.0\n", categories=categories)
    assert found.tolist() == [[2, 0], [0, 1]]
    with pytest.raises(DataError, match="'a' has a value in record 2 that is none of its 3 levels"):
        codes_of(tmp_path, "a,y\n1,2\n4,1\n")
    with pytest.raises(DataError, match="'y' has a value in record 1 that is none of data.categories"):
        codes_of(tmp_path, "a,y\nhi,7\nlo,1\n", categories=categories)
    with pytest.raises(SpecError, match=r"data\.domain: is not for levels"):
        codes_of(tmp_path, "a,y\n1,2\n", domain=[[0, 1], [0, 1]])


def test_what_does_not_go_together_is_refused() -> None:
    spec = NoisyCountsMechanism(kind="noisy_counts", levels=(2, 3), classes=2, epsilon=1.0)
    with pytest.raises(SpecError, match="levels: has 2 entries, but data.columns names 2"):
        from_spec(spec, 2, 5, ("a", "y"))
    with pytest.raises(SpecError, match="classes: 2 of y, but data.categories lists 3"):
        from_spec(spec, 3, 5, ("a", "b", "y"), (None, None, ("u", "v", "w")))
    with pytest.raises(SpecError, match=r"mechanism\.n: missing"):
        from_spec(spec, 3)
    moment = ClampedMomentsMechanism(kind="clamped_moments", bounds=((0, 1), (0, 2)), epsilon=1.0)
    with pytest.raises(SpecError, match="bounds: 2 pairs for 3 columns"):
        from_spec(moment, 3, 5, ("a", "b", "y"))
    with pytest.raises(PrivacyError, match="takes finite values"):
        moving(epsilon=1.0).privatize(np.full((5, 3), np.nan), ("x0", "x1", "y"))
