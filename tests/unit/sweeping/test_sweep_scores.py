"""Sweeps: scores of a density are what they are on any grid that shows the truth, and empty on others."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpmix.summary.density import Density
from dpmix.sweeping.scores import DENSITY_SCORES, density, scores, truth_of


def scored(low: float, high: float, points: int) -> dict[str, Any]:
    """Return the scores of a density that is the true one, moved by 0.3, on a grid."""
    grid = np.linspace(low, high, points)
    mean = density("three_gaussians", grid - 0.3)
    values = dict.fromkeys((field.name for field in dataclasses.fields(Density)), mean)
    found = SimpleNamespace(**(values | {"grid": grid, "lower": mean - 0.01, "upper": mean + 0.01}))
    summary: Any = SimpleNamespace(
        densities={"": found}, distributions={}, composition=None, parameters={}, clustering=None
    )
    return scores(summary, "three_gaussians")


def test_scores_of_a_density_do_not_depend_on_the_grid_or_are_empty() -> None:
    law = truth_of("three_gaussians")
    assert law is not None
    wide = scored(*law.at[[0, -1]], 2001)
    assert 0.0 < wide["hellinger"] < 0.5 and 0.0 < wide["band_coverage"] < 1.0
    for grid in ((-10.0, 10.0, 101), (-20.0, 20.0, 401)):
        found = scored(*grid)
        for name in DENSITY_SCORES:
            assert found[name] == pytest.approx(wide[name], abs=0.04), (grid, name)
    for grid in ((-2.0, 2.0, 201), (-10.0, 10.0, 8)):
        assert scored(*grid) == dict.fromkeys(DENSITY_SCORES)
