"""The wavelet mechanism: its sensitivity by enumeration of all pairs of cells, and what it releases."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.by_kind import from_spec, stated
from dpmix.mechanisms.wavelet.curator import Wavelet, haar, haar_rho, haar_sensitivity, paper_sensitivity
from dpmix.mechanisms.wavelet.section import WaveletMechanism
from dpmix.privacy.conversions import laplace_rho

UNIT = ((0.0, 1.0),)


def wavelet(domain: Any = UNIT, **keys: Any) -> Wavelet:
    made = from_spec(WaveletMechanism(kind="wavelet", domain=domain, **keys), 1)
    assert isinstance(made, Wavelet)
    return made


def psi(y: float, levels: int) -> list[float]:
    """The coefficients of y in [0, 1) by their definition."""
    found = []
    for j in range(levels + 1):
        for k in range(2**j):
            u = 2**j * y - k
            found.append(2 ** (j / 2) * ((0 <= u < 0.5) - (0.5 <= u < 1)))
    return found


def all_coefficients(levels: int) -> np.ndarray:
    cells = 2 ** (levels + 1)
    return np.array([psi((c + 0.5) / cells, levels) for c in range(cells)])


@pytest.mark.parametrize("levels", range(7))
def test_the_sensitivity_is_exact_over_all_pairs_of_cells(levels: int) -> None:
    distances = cdist(all_coefficients(levels), all_coefficients(levels), "cityblock")
    closed = 2 * (2 ** ((levels + 1) / 2) - 1) / (math.sqrt(2) - 1)
    assert distances.max() == pytest.approx(closed, rel=1e-13)
    assert closed * (1 - 1e-15) <= haar_sensitivity(levels) <= closed * (1 + 1e-14)
    doubles = haar(np.arange(2 ** (levels + 1)), levels)
    assert cdist(doubles, doubles, "cityblock").max() <= haar_sensitivity(levels) * (1 + 1e-15)
    assert paper_sensitivity(levels) > haar_sensitivity(levels)


@pytest.mark.parametrize("levels", range(6))
@pytest.mark.parametrize("scale", [0.05, 1.0, 7.0, 300.0])
def test_rho_is_the_largest_over_all_pairs_of_cells(levels: int, scale: float) -> None:
    rows = all_coefficients(levels)
    found = 0.0
    for one in rows:
        changed = np.abs(rows - one) / scale
        costs = [sum(laplace_rho(float(e)) for e in row if e > 0) for row in changed]
        found = max(found, *costs)
    assert found <= haar_rho(levels, scale) <= found * (1 + 1e-13)


def test_coefficients_follow_their_definition_at_cells_edges_and_ends() -> None:
    for levels in range(5):
        cells = 2 ** (levels + 1)
        for place in (0.0, 0.25, 0.999):
            want = [psi((c + place) / cells, levels) for c in range(cells)]
            np.testing.assert_allclose(haar(np.arange(cells), levels), want, rtol=1e-15)


@settings(deadline=None, max_examples=30)
@given(st.floats(1e-3, 100.0), st.integers(0, 9))
def test_the_recorded_guarantee_reaches_and_never_exceeds_the_request(asked: float, levels: int) -> None:
    for name in ("epsilon", "rho"):
        made = wavelet(levels=levels, **{name: asked})
        assert asked * (1 - 1e-8) < getattr(made.guarantee, name) <= asked
        paper = wavelet(levels=levels, calibration="paper", **{name: asked})
        assert getattr(paper.guarantee, name) < asked
        assert paper.guarantee.epsilon == pytest.approx(haar_sensitivity(levels) / paper.s, rel=1e-9)


def test_the_paper_is_that_much_too_noisy() -> None:
    ratios = [
        wavelet(levels=j, epsilon=2.0, calibration="paper").s / wavelet(levels=j, epsilon=2.0).s
        for j in range(2, 7)
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert (ratios[0], ratios[-1]) == (pytest.approx(9.28, abs=0.01), pytest.approx(6.58, abs=0.01))
    figures = wavelet(levels=4, epsilon=2.0, calibration="paper").figures()
    assert figures["epsilon_requested"] == 2.0
    assert figures["sensitivity_paper"] / figures["scale"] == pytest.approx(2.0)


def test_released_numbers_are_the_coefficients_of_the_clamped_values() -> None:
    values = np.array([[-3.0], [-1.0], [0.0], [2.999], [3.0], [5.0]])
    made = wavelet(((-1.0, 3.0),), levels=3, scale=1e-5, order="public")
    release, clamped = made.privatize(values, ("x",))
    assert clamped == (2,)
    want = [psi(u, 3) for u in (0.0, 0.0, 0.25, 0.9999, 0.9999, 0.9999)]
    np.testing.assert_allclose(release.values, want, atol=2e-3)
    assert release.columns[:4] == ("x_0_0", "x_1_0", "x_1_1", "x_2_0")
    assert (release.n, release.trust, release.private, len(release.columns)) == (6, "local", True, 15)
    assert (release.mechanism["levels"], release.mechanism["column"]) == (3, "x")
    assert release.scales == (1e-5,)
    np.testing.assert_allclose(release.mechanism.edges(), np.linspace(-1.0, 3.0, 17))
    assert json.loads(json.dumps(release.mechanism.stated())) == release.mechanism
    assert "clamp" not in json.dumps(release.mechanism.stated())
    assert (release.epsilon, release.rho) == (made.guarantee.epsilon, made.guarantee.rho)


def test_every_coefficient_has_its_own_noise_of_the_stated_scale() -> None:
    """Operating-system noise: false alarms below 1e-9 in all."""
    made = wavelet(levels=2, epsilon=3.0)
    done: list[int] = []
    release, _ = made.privatize(np.full((3000, 1), 0.3), ("x",), done.append)
    noise = release.values - np.array(psi(0.3, 2))
    for column in noise.T:
        assert stats.kstest(column, stats.laplace(0, made.s).cdf).pvalue > 1e-11
    assert np.abs(np.corrcoef(noise.T) - np.eye(7)).max() < 7 / math.sqrt(3000)
    assert done == sorted(done)
    assert done[-1] == 3000


def test_one_record_lies_in_one_block_of_the_noise() -> None:
    for levels in (0, 3, 9, 10, 12):
        width = 2 ** (levels + 1) - 1
        assert wavelet(levels=levels, epsilon=1.0).noise.block % width == 0


def test_simulations_are_reproducible_and_not_private() -> None:
    made = wavelet(levels=2, epsilon=1.0)
    one, two = (made.simulate(np.full((5, 1), 0.3), ("x",), np.random.default_rng(4))[0] for _ in range(2))
    np.testing.assert_array_equal(one.values, two.values)
    assert (one.private, one.simulated, one.mechanism["granularity"]) == (False, True, None)


@pytest.mark.parametrize("keys", [{"epsilon": 2.0}, {"rho": 2.0}, {"scale": 2.0}])
def test_a_release_made_elsewhere_is_taken_at_its_word(keys: dict[str, float]) -> None:
    spec = WaveletMechanism(kind="wavelet", domain=UNIT, levels=3, **keys)
    found, guarantee = stated(spec, 15)
    made = from_spec(spec, 1)
    assert found["scale"] == pytest.approx([made.s], rel=1e-9)  # type: ignore[attr-defined]
    assert {"levels": 3, "stated": True, "requested": keys}.items() <= found.stated().items()
    for name in ("epsilon", "rho"):
        assert getattr(guarantee, name) == pytest.approx(getattr(made.guarantee, name), rel=1e-9)


def test_what_makes_no_sense_is_refused_by_name() -> None:
    two = ((0.0, 1.0), (0.0, 2.0))
    with pytest.raises(ValueError, match="wavelet releases one column"):
        wavelet(two, levels=2, epsilon=1.0)
    spec = WaveletMechanism(kind="wavelet", domain=UNIT, levels=2, epsilon=1.0)
    with pytest.raises(SpecError, match="names 2 columns, but wavelet releases one"):
        from_spec(spec, 2)
    with pytest.raises(SpecError, match=r"mechanism\.domain: missing"):
        from_spec(WaveletMechanism(kind="wavelet", levels=2, epsilon=1.0), 1)
    with pytest.raises(ValueError, match="paper is a way of reaching epsilon or rho"):
        wavelet(levels=2, scale=1.0, calibration="paper")
    narrow = wavelet(((1e16, 1e16 + 4),), levels=3, epsilon=1.0)
    with pytest.raises(PrivacyError, match="16 cells: they would be narrower"):
        narrow.privatize(np.full((2, 1), 1e16), ("x",))
    with pytest.raises(PrivacyError, match="take mechanism.levels below 12"):
        wavelet(levels=12, epsilon=1.0).privatize(np.zeros((40_000, 1)), ("x",))
    with pytest.raises(PrivacyError, match="finite"):
        wavelet(levels=2, epsilon=1.0).privatize(np.array([[0.1], [np.nan]]), ("x",))
