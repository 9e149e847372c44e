"""The bands of simulation-based calibration, and a quick calibration."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from tests import sbc
from tests.oracles.ecdf import band, coverage, p_value


@pytest.mark.parametrize(("n", "points"), [(50, 20), (200, 100)])
def test_band_covers_uniform_ranks(n: int, points: int) -> None:
    gamma, low, high = band(0.95, n, points)
    rng = np.random.default_rng(1)
    counts = np.cumsum(rng.multinomial(n, np.full(points, 1 / points), size=20_000), axis=1)[:, :-1]
    inside = np.mean(np.all((counts >= low) & (counts <= high), axis=1))
    truth = coverage(gamma, n, points)
    assert truth == pytest.approx(0.95, abs=0.01)
    assert inside == pytest.approx(truth, abs=4 * np.sqrt(0.05 * 0.95 / 20_000))


def test_p_values_of_uniform_ranks_are_uniform_and_of_others_small() -> None:
    rng = np.random.default_rng(2)
    uniform = [p_value(rng.integers(0, 50, 120), 50) for _ in range(400)]
    assert stats.kstest(uniform, "uniform", alternative="greater").pvalue > 1e-4
    assert 0.3 < np.mean(uniform) < 0.7
    assert p_value(np.minimum(rng.integers(0, 50, 120), rng.integers(0, 50, 120)), 50) < 1e-6
    overconfident = np.where(rng.random(120) < 0.5, rng.integers(0, 10, 120), rng.integers(40, 50, 120))
    assert p_value(overconfident, 50) < 1e-6


def test_quick_calibration(capsys: pytest.CaptureFixture[str]) -> None:
    assert sbc.main(["neal8", "--quick"]) == 0
    line = json.loads(capsys.readouterr().out.splitlines()[0])
    assert line["sampler"] == "neal8"
    assert len(line["p_values"]) == 9
