"""Noisy mean logarithms of compositions: sensitivity, choice of the threshold, parts, refusals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import dlaplace

from dpmix.errors import DataError, SpecError
from dpmix.mechanisms.curators.by_kind import from_spec, stated
from dpmix.mechanisms.log_moments.curator import LogMoments, chosen_threshold, mean_logs, sums_rho
from dpmix.mechanisms.log_moments.law import exact_width, paper_width
from dpmix.mechanisms.log_moments.section import LogMomentsMechanism
from dpmix.release.release_file import read_release, write_release

SHARES = np.array([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.02, 0.0, 0.98]])


def made(n: int = 4, **own: Any) -> LogMoments:
    spec = LogMomentsMechanism(kind="log_moments", **own)
    found = from_spec(spec, 3, n, ("a", "b", "c"))
    assert isinstance(found, LogMoments)
    return found


@pytest.mark.parametrize("parts", [2, 3, 4, 5, 6])
def test_the_sensitivity_is_exact(parts: int) -> None:
    rng = np.random.default_rng(parts)
    corners = [
        np.isin(np.arange(parts), chosen) / size
        for size in range(1, parts + 1)
        for chosen in itertools.combinations(range(parts), size)
    ]
    points = np.vstack([corners, rng.dirichlet(np.full(parts, 0.3), 200)])
    for threshold in (0.001, 0.05, 1 / parts, 0.3, 0.45, 0.7):
        logs = np.log(np.maximum(points, threshold))
        apart = np.abs(logs[:, None] - logs[None]).sum(axis=2).max()
        wide = exact_width(threshold, parts)
        assert apart == pytest.approx(wide, abs=1e-12)
        assert wide <= paper_width(threshold, parts) * (1 + 1e-12)
        for scale in (0.1, 2.0, 50.0):
            moves = np.abs(logs[:, None] - logs[None]) / scale
            seen = (moves + np.expm1(-moves)).sum(axis=2).max()
            rho = sums_rho(threshold, parts, None, scale, wide / scale)
            assert seen * (1 - 1e-9) <= rho <= 1.35 * seen

    # a search over pairs of compositions comes as near, and never beyond
    for threshold in (0.05, 1 / parts, 1.4 / parts):

        def gap(both: np.ndarray, threshold: float = threshold) -> float:
            one, other = (softmax(half) for half in both.reshape(2, parts))
            apart = np.log(np.maximum(one, threshold)) - np.log(np.maximum(other, threshold))
            return -float(np.abs(apart).sum())

        starts = rng.normal(0, 2, (3, 2 * parts))
        best = max(-minimize(gap, start, method="Powell", options={"maxiter": 30}).fun for start in starts)
        wide = exact_width(threshold, parts)
        assert 0.85 * wide <= best <= wide * (1 + 1e-9)


def test_the_example_of_the_methods() -> None:
    assert exact_width(0.1, 5) == pytest.approx(6.83, abs=0.01)
    assert paper_width(0.1, 5) == pytest.approx(11.51, abs=0.01)


def test_means_are_of_censored_logarithms() -> None:
    expected = np.log(np.maximum(SHARES, 0.05)).mean(axis=0)
    np.testing.assert_allclose(mean_logs(SHARES, 0.05), expected, atol=2**-31)


def test_the_recorded_guarantee_is_what_was_asked() -> None:
    assert made(threshold=0.01, epsilon=2.0).guarantee.epsilon == pytest.approx(2.0)
    for own in (
        {"threshold": 0.01, "epsilon": 2.0},
        {"threshold": 0.01, "epsilon": 2.0, "split": 0.25, "n": 4},
        {"thresholds": (0.1, 0.01), "epsilon": 2.0},
        {"thresholds": (0.1, 0.01), "epsilon1": 1.5, "epsilon2": 0.5},
    ):
        epsilon = made(**own).guarantee.epsilon
        assert epsilon is not None
        assert 2.0 * (1 - 1e-9) <= epsilon <= 2.0
    for epsilon in (4.377320138851512, 0.3, 1.1):  # losses of noises are doubles, their sum is rounded up
        each = made(thresholds=(0.1, 0.01), epsilon=epsilon)
        losses = max(Fraction(each.noise(0, a).loss) for a in each.thresholds) + Fraction(each.choice.loss)
        assert losses <= Fraction(each.guarantee.epsilon) <= Fraction(epsilon)
    two = from_spec(  # of two parts the paper's sensitivity is the exact one
        LogMomentsMechanism(kind="log_moments", threshold=0.1, epsilon=1.0, calibration="paper"), 2, 60
    )
    assert 1 - 1e-6 < two.guarantee.epsilon <= 1
    paper = made(threshold=0.01, epsilon=2.0, calibration="paper")
    assert paper.guarantee.epsilon == pytest.approx(2 * exact_width(0.01, 3) / paper_width(0.01, 3))


def test_noise_of_a_part_is_scaled_by_its_own_size() -> None:
    halves = made(n=40, threshold=0.01, epsilon=1.0, split=0.25)
    assert halves.sizes == (10, 30)
    wide = exact_width(0.01, 3)
    assert halves.noise(0, 0.01).scale == pytest.approx(wide / 10)
    assert halves.noise(1, 0.01).scale == pytest.approx(wide / 30)
    values = np.tile(SHARES, (10, 1))
    rng = np.random.default_rng(0)
    release, _ = halves.simulate(values, ("a", "b", "c"), rng)
    assert release.values.shape == (6, 1)
    assert release.mechanism["parts"] == [10, 30]
    many = made(n=40, threshold=0.01, epsilon=1e7, split=0.25)
    release, _ = many.simulate(values, ("a", "b", "c"), rng)
    both = (release.values[:3, 0] * 10 + release.values[3:, 0] * 30) / 40
    np.testing.assert_allclose(both, mean_logs(values, 0.01), atol=1e-5)


def test_the_threshold_is_chosen_by_the_rule() -> None:
    # g is the smallest integer with P(noise >= g) <= 0.025
    for epsilon in (0.05, 0.3, 2.0, 20.0):
        g = next(g for g in itertools.count() if dlaplace.sf(g - 1, epsilon / 2) <= 0.025)
        n = 10_000
        just = 0.99 * n - g
        assert chosen_threshold(np.array([math.ceil(just), 5000.0]), n, epsilon) == 0
        assert chosen_threshold(np.array([math.ceil(just) - 1, 5000.0]), n, epsilon) == 1
        step = 0.01 * n + g
        assert chosen_threshold(np.array([10.0, step, step - 1]), n, epsilon) == 1
        assert chosen_threshold(np.array([10.0, step - 1, step]), n, epsilon) == 2
        assert chosen_threshold(np.array([10.0, step - 1, step - 1]), n, epsilon) == 0


def test_scores_move_by_two_at_most() -> None:
    thresholds = (0.3, 0.1, 0.01)
    rng = np.random.default_rng(1)

    def scores(shares: np.ndarray) -> np.ndarray:
        counts = [(shares.min(axis=1) >= a).sum() for a in thresholds]
        return np.diff(counts, prepend=0)

    base = rng.dirichlet(np.full(3, 0.5), 20)
    for other in [*rng.dirichlet(np.full(3, 0.5), 60), np.full(3, 1 / 3), np.array([1.0, 0, 0])]:
        changed = base.copy()
        changed[0] = other
        assert np.abs(scores(base) - scores(changed)).sum() <= 2


def test_releases_are_read_back_and_checked(tmp_path: Path) -> None:
    several = made(thresholds=(0.1, 0.01), epsilon=2.0, split=0.5)
    release, _ = several.privatize(SHARES, ("a", "b", "c"))
    write_release(tmp_path / "r.h5", release)
    back = read_release(tmp_path / "r.h5")
    assert back.mechanism == release.mechanism
    assert back.mechanism["threshold"] in (0.1, 0.01)
    assert len(back.mechanism["scores"]) == 2
    assert np.array_equal(back.values, release.values)


def test_statements_of_releases_made_elsewhere() -> None:
    spec = LogMomentsMechanism(kind="log_moments", threshold=0.05, epsilon=1.0, n=50, components=3)
    own, total = stated(spec, 1, 50)
    assert own["scale"] == [pytest.approx(exact_width(0.05, 3) / 50)]
    assert total.epsilon == pytest.approx(1.0)
    with pytest.raises(SpecError, match=r"mechanism\.components: missing"):
        stated(LogMomentsMechanism(kind="log_moments", threshold=0.05, epsilon=1.0), 1, 50)
    with pytest.raises(SpecError, match=r"mechanism\.threshold: missing"):
        stated(LogMomentsMechanism(kind="log_moments", thresholds=(0.1, 0.05), epsilon=1.0), 1, 50)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[0.5, 0.5, -1e-9], [1, 0, 0]], "'c' has a share in record 1 that is negative"),
        ([[0.5, 0.5, 0.0], [0.6, 0.5, 0.0]], "record 2 do not sum to 1 within 1e-06"),
        ([[0.5, np.nan, 0.5], [1, 0, 0]], "'b' has a share in record 1 that is negative or no number"),
    ],
)
def test_what_is_no_composition_is_refused(values: list[list[float]], words: str) -> None:
    with pytest.raises(DataError, match=words):
        made(n=2, threshold=0.01, epsilon=1.0).privatize(np.array(values), ("a", "b", "c"))


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(SpecError, match="a composition has two or more"):
        from_spec(LogMomentsMechanism(kind="log_moments", threshold=0.1, epsilon=1.0), 1, 5)
    with pytest.raises(SpecError, match="epsilon2: is for choosing"):
        made(threshold=0.1, epsilon1=1.0, epsilon2=0.1)
    with pytest.raises(SpecError, match="leaves a part empty"):
        made(threshold=0.1, epsilon=1.0, split=0.01)
