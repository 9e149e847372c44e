"""What laws tell of a population: their Fisher information against integrals, tables and closed forms."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from dpmix.advising import mixtures as informed
from dpmix.advising.population import cells_of, population_of
from dpmix.api.advise import laws_of
from dpmix.errors import SpecError
from dpmix.laws.every import Law
from dpmix.laws.transitions import information_of_outputs
from dpmix.models.counts_mixture.model import coins_of
from dpmix.privacy.accounting import Guarantee
from dpmix.spec import load_spec
from dpmix.spec.advise_section import BetaPopulation
from dpmix.spec.fields import Positive
from dpmix.spec.kinds import MECHANISMS
from dpmix.spec.mechanism_section import MechanismSection
from tests.unit.advising.test_advise import SPEC


def beta() -> Any:
    return population_of(BetaPopulation(kind="beta", a=5.0, b=2.0), (0.0, 1.0))


def law(kind: str, **keys: Any) -> Law:
    stated = {"kind": kind, "domain": [[0.0, 1.0]], "epsilon": 1.0} | keys
    spec = load_spec(SPEC | {"mechanism": stated})
    return laws_of(spec, (0.0, 1.0), [stated["epsilon"]], [1000], [kind], [])[0][3]


def told(which: Law, n: int = 1000) -> tuple[Any, Any, Any]:
    """Return the information, the shares of cells, and their middles."""
    edges = cells_of(beta(), which.blur, bounded=True)
    shares = beta().masses(edges)
    ends = np.concatenate([[0.0], edges, [1.0]])
    found = informed.information(which, edges, shares, n, (0.0, 1.0))
    return found, shares, 0.5 * (ends[1:] + ends[:-1])


KINDS = {
    "laplace": {},
    "gaussian": {"delta": 1e-6},
    "binomial": {"trials": 5},
    "square_wave": {"cells": 64},
    "wavelet": {"levels": 2},
    "perturbed_histogram": {"bins": 8},
    "smoothed_histogram": {"bins": 8, "draws": 200},
}


@pytest.mark.parametrize("kind", KINDS)
def test_information_is_that_of_a_law_of_sum_one(kind: str) -> None:
    found, shares, _ = told(law(kind, **KINDS[kind]))
    assert_allclose(found, found.T, rtol=1e-9, atol=1e-9 * abs(found).max())
    assert np.linalg.eigvalsh(found).min() > -1e-8 * abs(found).max()
    assert_allclose(shares.sum(), 1.0, rtol=1e-12)
    if kind not in ("perturbed_histogram", "smoothed_histogram", "wavelet"):
        assert_allclose(found @ shares, 1000.0, rtol=2e-3)  # n 1, since outputs have sum 1 whatever p


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_information_of_additive_noise_is_its_integral(kind: str) -> None:
    which = law(kind, **KINDS[kind])
    found, shares, middles = told(which)
    scale = which.scale[0]
    noise = stats.laplace if kind == "laplace" else stats.norm
    i, j = 2, len(middles) - 3

    z = np.linspace(-14.0 * scale, 1.0 + 14.0 * scale, 20_001)
    mixed = sum(share * noise.pdf(z, y, scale) for share, y in zip(shares, middles, strict=True))
    pair = noise.pdf(z, middles[i], scale) * noise.pdf(z, middles[j], scale)
    exact = np.trapezoid(pair / mixed, z)
    assert_allclose(found[i, j] / 1000, exact, rtol=5e-3)


def test_information_of_finite_outputs_is_exact() -> None:
    which = law("binomial", trials=5)
    found, shares, middles = told(which)
    p = 0.5 + which.weight * (middles - 0.5)  # type: ignore[attr-defined]
    table = stats.binom.pmf(np.arange(6)[:, None], 5, p[None, :])
    exact = 1000 * (table / (table @ shares)[:, None]).T @ table
    assert_allclose(found, exact, rtol=1e-3)
    wave = law("square_wave", cells=64)
    found, shares, middles = told(wave)
    assert isinstance(wave["reach"], int)
    cells = np.floor(64 * middles)
    outputs = np.arange(64 + 2 * wave["reach"])[:, None]
    near = (outputs >= cells) & (outputs <= cells + 2 * wave["reach"])
    table = np.where(near, np.e, 1.0)
    table /= table.sum(axis=0)
    exact = 1000 * (table / (table @ shares)[:, None]).T @ table
    assert_allclose(found, exact, rtol=0.05)  # but for cells of y across two of the wave's


def test_information_of_a_histogram_is_sampling_and_noise() -> None:
    """Noise of variance v: the shares of bins have covariance (diag p - p p') / n + v / n^2."""
    which = law("perturbed_histogram", bins=4)
    n, scale = 500, which.scale[0]
    edges = np.linspace(0.0, 1.0, 5)[1:-1]
    shares = beta().masses(edges)
    found = informed.information(which, edges, shares, n, (0.0, 1.0))
    covariance = (np.diag(shares) - np.outer(shares, shares)) / n + np.eye(4) * 2 * scale**2 / n**2
    assert_allclose(found, np.linalg.inv(covariance), rtol=1e-8)


def test_information_of_a_wavelet_is_its_integral() -> None:
    """One coefficient, on two cells: a density on the line."""
    which = law("wavelet", levels=0)
    scale, edges = which.scale[0], np.array([0.5])
    shares = beta().masses(edges)
    found = informed.information(which, edges, shares, 1, (0.0, 1.0))

    def integrand(z: float) -> float:
        one, other = stats.laplace.pdf(z, 1.0, scale), stats.laplace.pdf(z, -1.0, scale)
        return float(one * other / (shares[0] * one + shares[1] * other))

    exact = sum(integrate.quad(integrand, a, b)[0] for a, b in ((-40, -1), (-1, 1), (1, 40)))
    assert_allclose(found[0, 1], exact, rtol=0.02)


def test_coins_have_the_information_they_stand_for() -> None:
    found, shares, _ = told(law("laplace"))
    edges = cells_of(beta(), 1.0, bounded=True)
    rng = np.random.default_rng(3)
    some = rng.dirichlet(np.ones(len(shares)), size=200).T
    coins = coins_of(found, shares, edges, some, 0.0)
    throws = coins.counts[::2] + coins.counts[1::2]
    assert abs(coins.leans).max() <= 0.5 + 1e-12
    assert_allclose(coins.leans @ shares, 0.0, atol=1e-10)
    for other in some.T[:5]:
        d = other - shares
        assert_allclose(throws @ (coins.leans @ d) ** 2, d @ found @ d, rtol=1e-6)


class HalvesMechanism(MechanismSection):
    """Half of the records are told, by a coin that shows whether it is the upper half: a stranger's."""

    released = "records"
    on_domain = True
    statements = (("epsilon",),)
    kind: Literal["halves"]
    epsilon: Positive | None = None


class HalvesLaw(Law):
    capabilities = HalvesMechanism
    epsilon: float

    def information(self, places: Any, weights: Any, shares: Any, n: int) -> Any:
        upper = (places > 0.5) @ weights
        p = 1.0 / (1.0 + np.exp(-self.epsilon))
        told = (2.0 * p - 1.0) * upper + 1.0 - p
        return information_of_outputs(np.stack([1.0 - told, told]), shares, n)


class BareLaw(Law):
    capabilities = HalvesMechanism


class Halves:
    """What the curator would have."""

    @staticmethod
    def make(section: Any, records: Any) -> Any:
        stated = {"kind": "halves", "epsilon": section.epsilon, "domain": [list(p) for p in section.domain]}
        return SimpleNamespace(describe=lambda: stated, guarantee=Guarantee(section.epsilon, 0.0, None))


def test_a_mechanism_of_a_stranger_is_advised_once_its_law_has_information() -> None:
    spec = load_spec(SPEC | {"mechanism": {"kind": "laplace", "epsilon": 1.0}})
    before = {row[0] for row in laws_of(spec, (0.0, 1.0), [1.0], [1000], None, [])}
    local = {"laplace", "gaussian", "wavelet", "binomial", "square_wave"}
    assert before == local | {"perturbed_histogram"}
    MECHANISMS.add("halves", section=HalvesMechanism, law=HalvesLaw, curator=Halves)
    try:
        found = {row[0]: row[3] for row in laws_of(spec, (0.0, 1.0), [2.0], [1000], None, [])}
        assert set(found) == before | {"halves"}
        information, shares, middles = told(found["halves"], n=1000)
        p = 1.0 / (1.0 + math.exp(-2.0))
        upper = middles > 0.5
        told_upper = (2.0 * p - 1.0) * float(shares @ upper) + 1.0 - p
        move = upper / upper.sum() - ~upper / (~upper).sum()  # all of a mass from the lower half to the upper
        exact = 1000 * (2.0 * p - 1.0) ** 2 / (told_upper * (1.0 - told_upper))
        assert move @ information @ move == pytest.approx(exact, rel=0.02)
        MECHANISMS.add("halves", section=HalvesMechanism, law=BareLaw, curator=Halves)
        assert {row[0] for row in laws_of(spec, (0.0, 1.0), [1.0], [1000], None, [])} == before
        with pytest.raises(SpecError, match=r"mechanism\.kind: what halves tells of a density is not known"):
            laws_of(spec, (0.0, 1.0), [2.0], [1000], ["halves"], [])
    finally:
        MECHANISMS.drop("halves")
