"""Masses of released cells under beta kernels by sums over pieces, against forty digits and the old way."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from numpy.testing import assert_allclose

from dpmix.kernels import Beta
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.mechanisms.square_wave.channel import square_wave
from dpmix.models.counts_mixture.masses import (
    NO_PIECES,
    can_sum,
    cells_for,
    fill_rows,
    make_cells,
    pieces_between,
)
from dpmix.models.counts_mixture.model import Coins, InformedMixture
from dpmix.numerics.mixing import PitmanYor

KERNEL = Beta(2.0, 0.2, 2.0, 0.2, -1.0, 3.0)  # on [-1, 2]
SHAPES = [
    (5.0, 2.0),
    (0.05, 3.0),
    (0.4, 0.7),
    (1.0, 1.0),
    (30.0, 12.0),
    (190.0, 150.0),
    (2.0, 0.01),
    (1.2, 40.0),
]


def masses(cells: Any, channel: Any, theta: tuple[float, float], count: int) -> np.ndarray:
    rows = np.zeros((3, count))
    fill_rows(channel, KERNEL, np.array(theta)[:, None], 0, cells, rows)
    return rows[0]


def below(a: float, b: float, x: float) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


@pytest.mark.parametrize("theta", SHAPES)
def test_outputs_of_a_square_wave(theta: tuple[float, float]) -> None:
    """Asymmetric shapes, so that a mirrored end or window shows."""
    size, reach, odds = 96, 7, 3.5
    channel, outputs = square_wave(size, reach, odds, -1.0, 2.0), np.arange(0.0, size + 2.0 * reach, 3.0)
    cells = cells_for(channel, KERNEL, np.zeros(0), outputs)
    assert can_sum(*theta, cells.pieces)
    found = masses(cells, channel, theta, len(outputs))
    with mp.workdps(40):
        total = (2 * reach + 1) * odds + size - 1
        for j, value in zip(outputs, found, strict=True):
            low, high = max(j - 2 * reach, 0), min(j, size - 1) + 1
            near = below(*theta, mp.mpf(high) / size) - below(*theta, mp.mpf(low) / size)
            assert abs(float(mp.mpf(float(value)) * total / (1 + (odds - 1) * near) - 1)) < 2e-12, j
    tails = cells._replace(pieces=NO_PIECES)
    assert_allclose(found, masses(tails, channel, theta, len(outputs)), rtol=1e-11)


@pytest.mark.parametrize("theta", [(2.0, 400.0), (60.0, 5000.0), (3000.0, 2000.0), (0.9, 300.0)])
def test_narrow_components_are_summed_too(theta: tuple[float, float]) -> None:
    """Down to one and a half cells; the end piece of a steep one is a series of positive terms."""
    size = 1024
    channel, outputs = square_wave(size, 2, 50.0, -1.0, 2.0), np.arange(0.0, size + 4.0)
    cells = cells_for(channel, KERNEL, np.zeros(0), outputs)
    assert can_sum(*theta, cells.pieces)
    found = masses(cells, channel, theta, len(outputs))
    tails = masses(cells._replace(pieces=NO_PIECES), channel, theta, len(outputs))
    total = 5 * 50.0 + size - 1
    assert_allclose(found * total - 1.0, tails * total - 1.0, rtol=0, atol=49.0 * 3e-12)
    with mp.workdps(40):
        for j in (0, 1, 5):
            near = below(*theta, mp.mpf(j + 1) / size) - below(*theta, mp.mpf(max(j - 4, 0)) / size)
            assert abs(float(mp.mpf(float(found[j])) * total / (1 + 49 * near) - 1)) < 2e-12, j


@pytest.mark.parametrize(
    "theta", [(0.05, 3.0), (0.4, 0.7), (1.0, 1.0), (5.0, 2.0), (12.0, 0.07), (30.0, 12.0)]
)
def test_cells_that_coins_lean_on(theta: tuple[float, float]) -> None:
    """Uneven cells, the end ones a millionth of the bounds; to a millionth of a millionth of the whole."""
    places = np.array([1e-6, 1 / 24, 0.1, 0.1003, 0.5, 0.7, 0.99, 1.0 - 1e-6])
    cells = make_cells(-1.0 + 3.0 * places, np.zeros(0), pieces=pieces_between(places))
    assert can_sum(*theta, cells.pieces)
    found = masses(cells, NoNoise(), theta, len(places) + 1)
    with mp.workdps(40):
        ends = [mp.mpf(0), *(mp.mpf(float(place)) for place in places), mp.mpf(1)]
        exact = [below(*theta, high) - below(*theta, low) for low, high in itertools.pairwise(ends)]
    assert_allclose(found, np.array([float(mass) for mass in exact]), rtol=0, atol=2e-12)
    chain = InformedMixture(
        Coins(np.zeros((1, 3)), np.ones(2), np.array([0.0, 1.0])), None, KERNEL, PitmanYor(1.0, 0.0)
    )
    assert len(chain.cells(np.array([0.0, 1.0]), np.zeros(0)).pieces.cuts)


@pytest.mark.parametrize("theta", [(5.0, 2.0), (0.4, 0.7), (1.2, 40.0)])
@pytest.mark.parametrize("scale", [0.36, 6.0])
def test_cells_under_laplace_noise(scale: float, theta: tuple[float, float]) -> None:
    """Uneven edges, as where empty cells are joined; the integral of f times the chance of the cell."""
    edges = np.array([-1.0, -0.7, -0.66, 0.1, 0.2, 1.1, 1.9])
    channel = LaplaceNoise(scale)
    cells = cells_for(channel, KERNEL, edges, np.zeros(0))
    assert can_sum(*theta, cells.pieces)
    found = masses(cells, channel, theta, len(edges) + 1)
    assert found.sum() == pytest.approx(1.0, abs=1e-13)
    a, b = theta
    with mp.workdps(25):
        s = mp.mpf(scale) / 3
        ends = [(mp.mpf(float(edge)) + 1) / 3 for edge in edges]

        def at_most(z: Any, y: Any) -> Any:
            return 1 - mp.exp((y - z) / s) / 2 if z > y else mp.exp((z - y) / s) / 2

        for c in (0, 2, 3, 6, 7):  # the end cells, narrow and wide ones

            def chance(y: Any, c: int = c) -> Any:
                upper = at_most(ends[c], y) if c < len(ends) else 1
                return upper - (at_most(ends[c - 1], y) if c > 0 else 0)

            inside = [x for x in ends[max(c - 1, 0) : c + 1] if 0 < x < 1]
            parts = sorted({mp.mpf(0), mp.mpf(1) / 50, mp.mpf(1) / 2, *inside, mp.mpf(1)})
            whole = mp.quad(lambda y: y ** (a - 1) * (1 - y) ** (b - 1) * chance(y), parts)
            assert abs(float(mp.mpf(float(found[c])) * mp.beta(a, b) / whole - 1)) < 2e-12, c
    tails = cells._replace(pieces=NO_PIECES)
    assert_allclose(found, masses(tails, channel, theta, len(edges) + 1), rtol=1e-10)


@pytest.mark.matrix
@pytest.mark.parametrize("theta", [(5.0, 2.0), (0.4, 0.7), (1.2, 40.0)])
def test_cells_under_gaussian_noise(theta: tuple[float, float]) -> None:
    sd, edges = 0.9, np.array([-4.0, -1.3, -1.0, 0.2, 0.4, 2.0, 5.5])
    channel = GaussianNoise(sd)
    cells = cells_for(channel, KERNEL, edges, np.zeros(0))
    assert can_sum(*theta, cells.pieces)
    found = masses(cells, channel, theta, len(edges) + 1)
    assert found.sum() == pytest.approx(1.0, abs=1e-13)
    a, b = theta
    with mp.workdps(25):
        ends = [(mp.mpf(float(edge)) + 1) / 3 for edge in edges]

        def chance(y: Any, c: int) -> Any:
            upper = mp.ncdf((ends[c] - y) * 3 / sd) if c < len(ends) else mp.mpf(1)
            return upper - (mp.ncdf((ends[c - 1] - y) * 3 / sd) if c > 0 else 0)

        for c in (0, 2, 4, 7):
            parts = [mp.mpf(0), mp.mpf(1) / 50, mp.mpf(1) / 2, mp.mpf(1)]
            whole = mp.quad(lambda y, c=c: y ** (a - 1) * (1 - y) ** (b - 1) * chance(y, c), parts)
            assert abs(float(mp.mpf(float(found[c])) * mp.beta(a, b) / whole - 1)) < 1e-11, c
    tails = cells._replace(pieces=NO_PIECES)
    assert_allclose(found, masses(tails, channel, theta, len(edges) + 1), rtol=1e-9)


def test_what_is_narrow_or_hardly_hidden_keeps_its_tails() -> None:
    channel = square_wave(64, 5, 2.0, -1.0, 2.0)
    pieces = cells_for(channel, KERNEL, np.zeros(0), np.arange(74.0)).pieces
    assert not can_sum(1200.0, 900.0, pieces)
    assert not can_sum(0.5, 500.0, pieces)
    edges = np.linspace(-1.0, 2.0, 9)
    for scale, outside in ((0.2, edges), (1.0, np.append(edges, 2.5))):
        assert cells_for(LaplaceNoise(scale), KERNEL, outside, np.zeros(0)).pieces is NO_PIECES
    assert not can_sum(5.0, 2.0, NO_PIECES)
