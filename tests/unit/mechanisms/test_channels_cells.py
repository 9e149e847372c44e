"""The wavelet channel: densities against products of Laplace densities, g, draws of latent values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from dpmix.kernels import NormalNIG
from dpmix.kernels.beta.kernel import Beta
from dpmix.mechanisms.channels.channel_functions import (
    cell_of,
    draw_latent,
    draw_start,
    fill_marginal,
    hides,
    log_constant,
    log_marginal,
    noise_density,
    noise_variance,
)
from dpmix.mechanisms.wavelet.channel import WaveletCells, wavelet_cells
from dpmix.numerics.equal_cells import equal_edges
from tests.helpers.parametric import interpreted

LO, HI = -1.0, 5.0
NORMAL = NormalNIG(0.0, 0.1, 3.0, 3.0)
BETA = Beta(2.0, 2.0, 2.0, 2.0, LO, HI - LO)
LAWS = {
    "normal": (NORMAL, 1.3, 4.0, stats.norm(1.3, 2.0)),
    "beta": (BETA, 0.6, 2.5, stats.beta(0.6, 2.5, loc=LO, scale=HI - LO)),
}
LEVEL = 1e-5  # of each of the 8 tests of draws; seeds fixed


def haar(y: float, levels: int) -> np.ndarray:
    """Return all coefficients of y, straight from the definition (methods, section 2)."""
    x = min(max((y - LO) / (HI - LO), 0.0), np.nextafter(1.0, 0.0))
    found = []
    for j in range(levels + 1):
        for k in range(2**j):
            u = 2**j * x - k
            found.append(2 ** (j / 2) * (float(0 <= u < 0.5) - float(0.5 <= u < 1)))
    return np.array(found)


def released(levels: int, scale: float, n: int = 7) -> tuple[np.ndarray, WaveletCells]:
    rng = np.random.default_rng(levels)
    rows = [haar(y, levels) for y in rng.uniform(LO, HI, n)]
    values = np.array(rows) + rng.laplace(0.0, scale, (n, 2 ** (levels + 1) - 1))
    return values, wavelet_cells(values, equal_edges((LO, HI), values.shape[1] + 1), scale)


@pytest.mark.parametrize("levels", [0, 1, 2, 4])
@pytest.mark.parametrize("scale", [0.4, 7.0])
def test_density_is_the_product_of_laplace_densities(levels, scale):
    """Exactly, once the row's maximum is put back; the maxima add up to the constant."""
    values, cells = released(levels, scale)
    count = 2 ** (levels + 1)
    tops = []
    for i, row in enumerate(values):
        points = LO + (HI - LO) * (np.arange(count) + 0.3) / count
        exact = [np.sum(stats.laplace.logpdf(row, haar(y, levels), scale)) for y in points]
        relative = [math.log(noise_density(cells, float(i), y)) for y in points]
        assert max(relative) == 0.0
        assert np.array(relative) + max(exact) == pytest.approx(np.array(exact), abs=1e-11)
        tops.append(max(exact))
    assert log_constant(cells) == pytest.approx(sum(tops), rel=1e-13)
    assert hides(cells)
    assert 0 < noise_variance(cells) <= (HI - LO) ** 2 / 4


def test_cells_end_where_the_wavelets_change_sign():
    _, cells = released(2, 1.0)
    for c, edge in enumerate(cells.edges):
        assert cell_of(cells, edge) == c + 1
        assert cell_of(cells, np.nextafter(edge, -np.inf)) == c
    assert [cell_of(cells, y) for y in (-np.inf, -3.0, LO, HI, 1e300, np.inf)] == [0, 0, 0, 7, 7, 7]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("levels", [0, 3, 6])
def test_marginal_is_the_mixture_over_cells(law, levels):
    kernel, first, second, truth = LAWS[law]
    values, cells = released(levels, 2.0)
    theta = np.array([[first], [second]])
    rows = np.arange(len(values), dtype=float)
    bounds = [-np.inf, *cells.edges, np.inf]
    masses = np.where(truth.cdf(bounds[:-1]) < 0.5, np.diff(truth.cdf(bounds)), -np.diff(truth.sf(bounds)))
    exact = np.array([np.dot(row, masses) for row in cells.density])
    out = np.empty(4)
    fill_marginal(cells, kernel, theta, 0, rows, 2, 6, out)
    assert out == pytest.approx(exact[2:6], rel=1e-12)
    logs = [log_marginal(cells, kernel, z, theta, 0) for z in rows]
    assert logs == pytest.approx(list(np.log(exact)), abs=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_densities_of_one_coefficient_integrate_to_one(law):
    """J = 0: a release is one number, and its density under the model is a density."""
    kernel, first, second, _ = LAWS[law]
    theta = np.array([[first], [second]])

    def density(z: float) -> float:
        cells = wavelet_cells(np.array([[z]]), equal_edges((LO, HI), 2), 0.8)
        return math.exp(log_marginal(cells, kernel, 0.0, theta, 0) + log_constant(cells))

    pieces = [integrate.quad(density, *ends)[0] for ends in ((-40, -1), (-1, 0), (0, 1), (1, 40))]
    assert sum(pieces) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_densities_of_three_coefficients_integrate_to_one(law):
    """J = 1, by Gauss-Legendre between the kinks of the Laplace densities."""
    kernel, first, second, _ = LAWS[law]
    theta = np.array([[first], [second]])
    root = math.sqrt(2.0)
    t, w = np.polynomial.legendre.leggauss(6)
    axes = []
    for kinks in ((-1, 1), (-root, 0, root), (-root, 0, root)):
        ends = [-22, -10, -5, *kinks, 5, 10, 22]
        pairs = list(zip(ends[:-1], ends[1:], strict=True))
        axes.append(
            (
                np.concatenate([(a + b) / 2 + (b - a) / 2 * t for a, b in pairs]),
                np.concatenate([(b - a) / 2 * w for a, b in pairs]),
            )
        )
    values = np.stack([g.ravel() for g in np.meshgrid(*(a[0] for a in axes), indexing="ij")], axis=1)
    weights = np.prod([g.ravel() for g in np.meshgrid(*(a[1] for a in axes), indexing="ij")], axis=0)
    cells = wavelet_cells(values, equal_edges((LO, HI), 4), 0.9)
    out = np.empty(len(values))
    fill_marginal(cells, kernel, theta, 0, np.arange(len(values), dtype=float), 0, len(values), out)
    # the row maxima, from their definition
    heights = np.array([haar(LO + (HI - LO) * (c + 0.5) / 4, 1) for c in range(4)])
    logs = [stats.laplace.logpdf(values, row, 0.9).sum(axis=1) for row in heights]
    assert np.sum(weights * out * np.exp(np.max(logs, axis=0))) == pytest.approx(1.0, abs=1e-5)


def test_marginals_survive_components_far_from_everything():
    values, cells = released(4, 0.05)
    rows = np.arange(len(values), dtype=float)
    out = np.empty(len(rows))
    for kernel, first, second in (
        (NORMAL, 900.0, 1e-4),
        (NORMAL, 2.01, 1e-8),
        (BETA, 1e5, 1e5),
        (BETA, 1e-3, 1e4),
    ):
        theta = np.array([[first], [second]])
        fill_marginal(cells, kernel, theta, 0, rows, 0, len(rows), out)
        logs = np.array([log_marginal(cells, kernel, z, theta, 0) for z in rows])
        assert np.all(np.isfinite(logs)) and np.all(out > 0)
        assert np.log(out[out > 1e-280]) == pytest.approx(logs[out > 1e-280], abs=1e-9)
    narrow = wavelet_cells(
        10.0 * values, equal_edges((LO, HI), 32), 0.05
    )  # ratios beyond the range of doubles
    assert np.all(np.isfinite(np.log(narrow.density)))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("levels", [0, 3])
def test_latent_value_is_drawn_exactly(law, levels):
    kernel, first, second, truth = LAWS[law]
    _, cells = released(levels, 1.1)
    theta = np.array([[0.0, first], [1.0, second]])
    rng = np.random.default_rng(levels + 10)
    y = np.array([draw_latent(cells, kernel, rng, 3.0, theta, 1) for _ in range(4000)])
    if law == "beta":
        y = LO + (HI - LO) * special.expit(y)
    bounds = np.array([-np.inf, *cells.edges, np.inf])
    share = cells.density[3] * np.diff(truth.cdf(bounds))
    cdf = np.concatenate([[0.0], np.cumsum(share)]) / np.sum(share)
    c = np.searchsorted(cells.edges, y, side="right")
    inside = (truth.cdf(y) - truth.cdf(bounds[c])) / np.diff(truth.cdf(bounds))[c]
    assert stats.kstest(cdf[c] + inside * (cdf[c + 1] - cdf[c]), "uniform").pvalue > LEVEL
    found = np.bincount(c, minlength=len(share))
    assert stats.chisquare(found, share / np.sum(share) * len(y)).pvalue > LEVEL


def test_chains_start_in_the_cell_of_the_largest_coefficient_of_the_finest_level():
    values = np.array(
        [
            [50.0, 0.0, 0.0, 0.1, -0.2, 3.0, -0.4],
            [50.0, 9.0, 9.0, 0.1, -0.2, 0.3, -4.0],
            [-50.0, 9.0, 9.0, -1.1, -0.2, 0.3, -0.4],
        ]
    )
    cells = wavelet_cells(values, equal_edges((LO, HI), 8), 1.0)
    rng = np.random.default_rng(0)
    for row, cell in enumerate((4, 7, 1)):
        low, high = LO + (HI - LO) * cell / 8, LO + (HI - LO) * (cell + 1) / 8
        normal = np.array([draw_start(cells, NORMAL, rng, float(row)) for _ in range(2000)])
        logits = np.array([draw_start(cells, BETA, rng, float(row)) for _ in range(2000)])
        for y in (normal, LO + (HI - LO) * special.expit(logits)):
            assert np.all((y >= low) & (y <= high))
            assert stats.kstest(y, stats.uniform(low, high - low).cdf).pvalue > LEVEL


def test_a_release_that_is_no_binary_tree_is_refused():
    for columns in (0, 2, 4, 6):
        with pytest.raises(ValueError, match=f"not {columns}"):
            wavelet_cells(np.zeros((3, columns)), equal_edges((LO, HI), columns + 1), 1.0)


def test_cells_that_are_not_those_of_the_coefficients_are_refused():
    with pytest.raises(ValueError, match="1 coefficients are of 2 cells, not of 8"):
        wavelet_cells(np.zeros((3, 1)), equal_edges((LO, HI), 8), 1.0)


def numbers() -> list[float]:
    """Return some of everything, for the comparison with the interpreter."""
    values, cells = released(3, 1.0)
    rng = np.random.default_rng(1)
    out = np.empty(len(values))
    rows = np.arange(len(values), dtype=float)
    found: list[float] = []
    for kernel, first, second, _ in LAWS.values():
        theta = np.array([[first], [second]])
        fill_marginal(cells, kernel, theta, 0, rows, 0, len(rows), out)
        found += [*out, *(log_marginal(cells, kernel, z, theta, 0) for z in rows)]
        found += [draw_latent(cells, kernel, rng, z, theta, 0) for z in rows]
        found += [draw_start(cells, kernel, rng, z) for z in rows]
        found += [noise_density(cells, z, 1.7) for z in rows]
    return found


def test_the_interpreter_gives_the_same_numbers():
    other = interpreted(__name__, "[float(v) for v in numbers()]")
    assert numbers() == pytest.approx(other, rel=1e-12)
