"""Langevin steps that take latent counts along, against enumeration, and draws of all that is light.

In the interpreter, where faults can be planted.

Gaps are in standard errors by 100 batch means, the largest of 12: with other seeds right steps would fail
with a probability of about 0.001. Draws of a smoothed histogram, whose information goes with the counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.counts_langevin import FAULTS
from tests.helpers.counts_light import FAULTS as LIGHT

DRAWS, RIGHT, WRONG = 5_000, 4.5, 6.0


def _gap(fault: str) -> float:
    return _printed("tests.helpers.counts_langevin", fault, str(DRAWS))


def _printed(*arguments: str) -> float:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    return float(done.stdout)


def test_steps_leave_the_posterior_as_it_is() -> None:
    assert _gap("") < RIGHT


@pytest.mark.matrix
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_way_back_is_found(fault: str) -> None:
    assert _gap(fault) > WRONG


def test_what_is_light_has_the_prior_where_nothing_is_known() -> None:
    """Six p-values: one below 1e-5 by mistake with a probability of 1e-4."""
    assert _printed("tests.helpers.counts_light", "") > 1e-5


@pytest.mark.matrix
@pytest.mark.parametrize("fault", LIGHT)
def test_a_wrong_draw_of_what_is_light_is_found(fault: str) -> None:
    assert _printed("tests.helpers.counts_light", fault) < 1e-4
