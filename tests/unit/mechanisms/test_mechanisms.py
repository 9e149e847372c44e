"""Mechanisms: their exact guarantee, the total over columns, clamping, and what they put in a release."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.by_kind import from_spec, stated
from dpmix.mechanisms.curators.mechanism import LocalAdditive, width
from dpmix.mechanisms.gaussian.section import GaussianMechanism
from dpmix.mechanisms.laplace.section import LaplaceMechanism
from dpmix.mechanisms.none.section import NoMechanism
from dpmix.privacy.conversions import gaussian_delta, laplace_rho

ONE = ((1.0, 6.0),)
THREE = ((1.0, 6.0), (0.0, 100.0), (0.1, 0.3))


def laplace(domain: Any = ONE, **keys: Any) -> LocalAdditive:
    return from_spec(LaplaceMechanism(kind="laplace", domain=domain, **keys), len(domain))


def gaussian(domain: Any = ONE, **keys: Any) -> LocalAdditive:
    return from_spec(GaussianMechanism(kind="gaussian", domain=domain, **keys), len(domain))


def hockey_stick(epsilon: float, density: Any, shift: float) -> float:
    """Divergence of order e^epsilon between a noise density and its shift, by quadrature."""
    with mpmath.workdps(20):
        points = [-60, -20, -5, 0, shift, shift + 5, shift + 20, shift + 60]
        total = mpmath.quad(
            lambda x: max(mpmath.mpf(0), density(x) - mpmath.exp(epsilon) * density(x - shift)),
            sorted({float(p) for p in points} | {shift / 2 - epsilon / shift}),
        )
        return float(total)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
def test_laplace_has_no_delta_at_its_epsilon_and_some_below(epsilon: float) -> None:
    mechanism = laplace(epsilon=epsilon)
    recorded = mechanism.guarantee.epsilon
    assert recorded is not None
    assert epsilon * (1 - 1e-9) < recorded <= epsilon
    shift = 5.0 / mechanism.scale[0]
    assert hockey_stick(recorded, lambda x: mpmath.exp(-abs(x)) / 2, shift) == pytest.approx(0, abs=1e-9)
    assert hockey_stick(0.9 * recorded, lambda x: mpmath.exp(-abs(x)) / 2, shift) > 1e-3 * epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (1.0, 0.01), (5.0, 1e-3)])
def test_gaussian_attains_its_delta(epsilon: float, delta: float) -> None:
    mechanism = gaussian(epsilon=epsilon, delta=delta)
    recorded = mechanism.guarantee.epsilon
    assert recorded is not None
    assert epsilon * (1 - 1e-9) < recorded <= epsilon
    assert mechanism.guarantee.delta == delta
    mu = 5.0 / mechanism.scale[0]
    assert hockey_stick(recorded, mpmath.npdf, mu) == pytest.approx(delta, rel=1e-6)


@settings(deadline=None, max_examples=25)
@given(st.floats(1e-3, 50.0), st.sampled_from([ONE, THREE]))
def test_the_recorded_total_never_exceeds_the_request(asked: float, domain: Any) -> None:
    for name, mechanism in (
        ("epsilon", laplace(domain, epsilon=asked)),
        ("rho", laplace(domain, rho=asked)),
        ("rho", gaussian(domain, rho=asked)),
        ("epsilon", gaussian(domain, epsilon=asked, delta=1e-6)),
    ):
        recorded = getattr(mechanism.guarantee, name)
        assert asked * (1 - 1e-8) < recorded <= asked


def test_several_columns_share_equally_and_the_total_is_stated() -> None:
    mechanism = laplace(THREE, epsilon=1.5)
    assert mechanism.scale == pytest.approx([10.0, 200.0, 0.4], rel=1e-9)
    losses = [w / s for w, s in zip((5.0, 100.0, 0.2), mechanism.scale, strict=True)]
    assert mechanism.guarantee.epsilon == pytest.approx(math.fsum(losses), rel=1e-9)
    assert mechanism.guarantee.rho == pytest.approx(3 * laplace_rho(0.5), rel=1e-9)

    normal = gaussian(THREE, epsilon=1.5, delta=1e-5)
    mu = math.sqrt(sum((w / s) ** 2 for w, s in zip((5.0, 100.0, 0.2), normal.scale, strict=True)))
    assert gaussian_delta(1.5, mu) == pytest.approx(1e-5, rel=1e-8)
    assert normal.guarantee.rho == pytest.approx(mu * mu / 2, rel=1e-9)
    one = gaussian(((0.0, math.sqrt(3.0)),), epsilon=1.5, delta=1e-5)
    assert normal.scale[0] == pytest.approx(5.0 * one.scale[0], rel=1e-9)


def test_a_stated_scale_gives_the_sum_over_columns() -> None:
    mechanism = laplace(((0.0, 2.0), (0.0, 6.0)), scale=4.0)
    assert mechanism.scale == (4.0, 4.0)
    assert mechanism.guarantee.epsilon == pytest.approx(2.0, rel=1e-9)
    normal = gaussian(((0.0, 3.0), (0.0, 4.0)), scale=5.0)
    assert normal.guarantee.rho == pytest.approx(0.5, rel=1e-9)
    assert (normal.guarantee.epsilon, normal.guarantee.delta) == (None, None)


def test_the_paper_and_classical_calibrations_are_noisier_and_say_what_they_really_give() -> None:
    exact, paper = laplace(rho=17.8), laplace(rho=17.8, calibration="paper")
    assert paper.scale[0] / exact.scale[0] == pytest.approx(3.15, abs=0.01)
    assert paper.guarantee.epsilon == pytest.approx(math.sqrt(35.6))
    assert paper.guarantee.rho == pytest.approx(laplace_rho(math.sqrt(35.6)))
    analytic, classical = (
        gaussian(epsilon=0.5, delta=1e-5, calibration=c) for c in ("analytic", "classical")
    )
    assert classical.scale[0] == pytest.approx(5.0 * math.sqrt(2 * math.log(1.25e5)) / 0.5)
    assert classical.scale[0] > analytic.scale[0]
    assert classical.guarantee.epsilon is not None
    assert classical.guarantee.epsilon < 0.5


@pytest.mark.parametrize("make", [laplace, gaussian])
def test_the_released_noise_follows_the_stated_scale_in_every_column(make: Any) -> None:
    mechanism = make(THREE, rho=2.0)
    values = np.tile([[2.0, 50.0, 0.2]], (4000, 1))
    release, clamped = mechanism.privatize(values, ("a", "b", "c"))
    assert clamped == (0, 0, 0)
    law = stats.laplace if mechanism.kind == "laplace" else stats.norm
    for column in range(3):
        noise = release.values[:, column] - values[:, column]
        assert stats.kstest(noise, law(0, mechanism.scale[column]).cdf).pvalue > 1e-6
    assert np.abs(np.corrcoef(release.values.T) - np.eye(3)).max() < 0.1


def test_values_outside_are_clamped_and_counted_for_the_curator_alone() -> None:
    values = np.array([[0.0], [1.0], [6.0], [9.0], [-1e300]])
    mechanism = laplace(epsilon=5e6, order="public")
    release, clamped = mechanism.privatize(values, ("x",))
    assert clamped == (3,)
    np.testing.assert_allclose(release.values[:, 0], [1.0, 1.0, 6.0, 6.0, 1.0], atol=1e-4)
    assert "clamp" not in json.dumps(release.mechanism.stated())
    assert not [name for name in vars(release) if "clamp" in name or "outside" in name]


def test_the_release_says_how_it_was_made() -> None:
    mechanism = laplace(epsilon=5.0)
    done: list[int] = []
    release, _ = mechanism.privatize(np.full((3, 1), 2.0), ("x",), done.append)
    assert (release.n, release.columns, release.private, release.simulated) == (3, ("x",), True, False)
    assert (release.adjacency, release.trust) == ("replacement", "local")
    assert release.epsilon == mechanism.guarantee.epsilon
    assert release.delta == 0.0
    assert release.scales == mechanism.scale
    assert json.loads(json.dumps(release.mechanism.stated())) == release.mechanism
    assert release.mechanism["requested"] == {"epsilon": 5.0}
    assert release.mechanism["domain"] == [[1.0, 6.0]]
    assert done[-1] == 3
    assert "2." not in repr(release)[:12]
    with pytest.raises(ValueError, match="values"):
        type(release)(**{**vars(release), "n": 4})


def test_simulated_releases_are_reproducible_and_not_private() -> None:
    mechanism = gaussian(rho=1.0)
    draws = [mechanism.simulate(np.full((50, 1), 2.0), ("x",), np.random.default_rng(1))[0] for _ in range(2)]
    np.testing.assert_array_equal(draws[0].values, draws[1].values)
    assert (draws[0].private, draws[0].simulated) == (False, True)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_never_reach_the_noise(bad: float) -> None:
    with pytest.raises(PrivacyError, match="finite"):
        laplace(epsilon=1.0).privatize(np.array([[2.0], [bad]]), ("x",))
    with pytest.raises(PrivacyError, match="columns"):
        laplace(epsilon=1.0).privatize(np.zeros((2, 2)), ("x", "y"))


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_widths_are_rounded_up(low: float, extent: float) -> None:
    high = low + extent
    if high > low:
        with mpmath.workdps(60):
            exact = mpmath.mpf(high) - mpmath.mpf(low)
            assert exact <= width((low, high)) <= exact * (1 + mpmath.mpf(2) ** -51)


@pytest.mark.parametrize(
    "pair", [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (-1.7e308, 1.7e308)]
)
def test_bounds_that_are_none_are_refused(pair: tuple[float, float]) -> None:
    with pytest.raises(PrivacyError, match="bounds"):
        width(pair)


def test_kinds_and_bounds_are_refused_by_name() -> None:
    with pytest.raises(PrivacyError, match="none adds no noise"):
        from_spec(NoMechanism(kind="none"), 1)
    with pytest.raises(SpecError, match="unheard_of cannot be applied"):
        from_spec(SimpleNamespace(kind="unheard_of"), 1)
    with pytest.raises(SpecError, match=r"mechanism\.domain: missing"):
        from_spec(LaplaceMechanism(kind="laplace", epsilon=1.0), 1)
    with pytest.raises(SpecError, match="1 pairs of bounds for 2 columns"):
        from_spec(LaplaceMechanism(kind="laplace", epsilon=1.0, domain=ONE), 2)


@pytest.mark.parametrize(
    "keys", [{"epsilon": 2.0}, {"rho": 2.0}, {"scale": 2.0}, {"rho": 2.0, "calibration": "paper"}]
)
@pytest.mark.parametrize("domain", [ONE, THREE])
def test_a_release_made_elsewhere_is_taken_at_its_word(keys: dict[str, Any], domain: Any) -> None:
    spec = LaplaceMechanism(kind="laplace", domain=domain, **keys)
    found, guarantee = stated(spec, len(domain))
    made = from_spec(spec, len(domain))
    assert found["scale"] == pytest.approx(list(made.scale), rel=1e-9)
    assert guarantee.epsilon == pytest.approx(made.guarantee.epsilon, rel=1e-9)
    assert guarantee.rho == pytest.approx(made.guarantee.rho, rel=1e-9)


def test_a_gaussian_release_made_elsewhere_and_a_scale_without_bounds() -> None:
    spec = GaussianMechanism(kind="gaussian", domain=THREE, epsilon=1.0, delta=1e-4)
    found, guarantee = stated(spec, 3)
    assert found["scale"] == pytest.approx(list(from_spec(spec, 3).scale), rel=1e-9)
    assert guarantee.epsilon == pytest.approx(1.0, rel=1e-9)
    for kind, make in (("laplace", LaplaceMechanism), ("gaussian", GaussianMechanism)):
        found, guarantee = stated(make(kind=kind, scale=2.0), 2)
        assert found["scale"] == [2.0, 2.0]
        assert (guarantee.epsilon, guarantee.rho) == (None, None)
    assert stated(NoMechanism(kind="none"), 1)[0] == {"kind": "none"}
    with pytest.raises(SpecError, match="unheard_of cannot be fitted"):
        stated(SimpleNamespace(kind="unheard_of"), 1)
