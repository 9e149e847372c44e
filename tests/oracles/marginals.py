"""Log g(z | theta) for every kernel and channel of one column, by routes of their own; releases drawn.

Channels are pairs: ``("laplace", s)``, ``("gaussian", sd)``, ``("none", 0.0)``, ``("wavelet", (J, s, lo,
width))``, ``("binomial", (M, w, lo, width))``,
``("square_wave", (M, k, r, lo, width))``. The release of n records is an array (n,), for the wavelet (n,
2^(J+1) - 1) in the order (0,0), (1,0), (1,1), (2,0), ..; under ``none`` it is the latent value in the
kernel's coordinate.
"""

from __future__ import annotations

import functools
from typing import Any

import mpmath as mp
import numpy as np
from numpy.typing import NDArray
from scipy import special

from tests.oracles.kernels import Beta
from tests.oracles.log_g import log_g as log_g_normal

Array = NDArray[np.float64]
Channel = tuple[str, Any]


def haar(levels: int) -> Array:
    """Values psi_jk of the Haar functions, j = 0..levels, on the 2^(levels+1) dyadic cells, (jk, cell)."""
    cells = 2 ** (levels + 1)
    middle = (np.arange(cells) + 0.5) / cells
    rows = []
    for j in range(levels + 1):
        for k in range(2**j):
            u = 2**j * middle - k
            rows.append(2 ** (j / 2) * (((u >= 0) & (u < 0.5)) * 1.0 - ((u >= 0.5) & (u < 1))))
    return np.array(rows)


def cell_edges(cells: int, lo: float, width: float) -> Array:
    """Inner edges of equal cells."""
    return lo + width * np.arange(1, cells) / cells


def log_cell_density(channel: Channel, z: Array) -> Array:
    """Log q(z_i | cell) of wavelet releases (n, jk), (n, cell)."""
    levels, scale, _, _ = channel[1]
    gaps = np.abs(np.asarray(z)[:, :, None] - haar(levels)).sum(axis=1)
    return np.asarray(-gaps / scale - z.shape[1] * np.log(2 * scale))


def square_table(channel: Channel) -> Array:
    """Pr(output j | cell i) of the square wave, (output, cell), from its definition."""
    cells, reach, ratio, _, _ = channel[1]
    weights = np.ones((cells + 2 * reach, cells))
    for cell in range(cells):
        for output in range(cell, cell + 2 * reach + 1):
            weights[output, cell] = ratio
    return np.asarray(weights / weights.sum(axis=0))


def success(channel: Channel, y: Array) -> Array:
    """Probability of success of the binomial mechanism at y, which is clamped to the domain."""
    _, w, lo, width = channel[1]
    return np.asarray(0.5 + w * (np.clip((y - lo) / width, 0.0, 1.0) - 0.5))


@functools.cache
def _bernstein_inverse(degree: int) -> Any:
    """Inverse of the matrix of Bernstein polynomials (without their binomials) at Chebyshev points."""
    with mp.workdps(50):
        points = [(1 - mp.cos(mp.pi * (2 * i + 1) / (2 * degree + 2))) / 2 for i in range(degree + 1)]
        rows = [[u**j * (1 - u) ** (degree - j) for j in range(degree + 1)] for u in points]
        return points, mp.inverse(mp.matrix(rows))


@functools.cache
def _bernstein_of_normal(z: float, sd: float, degree: int = 40) -> Array:
    """Return c with N(z | u, sd^2) = sum_j c_j u^j (1 - u)^(degree - j) on [0, 1], by interpolation."""
    points, inverse = _bernstein_inverse(degree)
    with mp.workdps(50):
        values = mp.matrix([mp.npdf(mp.mpf(z), u, mp.mpf(sd)) for u in points])
        return np.array([float(c) for c in inverse * values])


def mean_of_normal_cdf(edge: float, sd: float, a: Array, b: Array, degree: int = 40) -> Array:
    """Mean of Phi((edge - u) / sd) under Beta(a, b): the distribution function under Gaussian noise."""
    points, inverse = _bernstein_inverse(degree)
    with mp.workdps(50):
        values = mp.matrix([mp.ncdf((mp.mpf(edge) - u) / mp.mpf(sd)) for u in points])
        c = np.array([float(x) for x in inverse * values])
    return _mean_of_bernstein(c, a, b)


def _mean_of_bernstein(c: Array, a: Array, b: Array) -> Array:
    """Mean of sum_j c_j u^j (1 - u)^(N - j) under Beta(a, b)."""
    top = len(c) - 1
    whole = special.betaln(a, b)
    terms = np.array([np.exp(special.betaln(a + j, b + top - j) - whole) for j in range(len(c))])
    return np.asarray(np.tensordot(c, terms, 1))


def _below(x: float, scale: float, a: Array, b: Array) -> Array:
    """Integral over u < x of exp(-(x - u) / scale) Beta(u | a, b) by a series of incomplete betas.

    exp(u / scale) is expanded in powers of u; the incomplete betas follow from each other downwards.
    """
    if x <= 0.0:
        return np.zeros_like(a)
    last = int(40 + 5 / scale)
    end = min(x, 1.0)
    incomplete = special.betainc(a + last, b, end)
    total = np.zeros_like(a)
    for k in range(last, -1, -1):
        log_c = (
            special.gammaln(a + k) - special.gammaln(a) + special.gammaln(a + b) - special.gammaln(a + b + k)
            - k * np.log(scale) - special.gammaln(k + 1) - x / scale
        )  # fmt: skip
        total += np.exp(log_c) * incomplete
        if k > 0 and end < 1.0:
            step = (a + k - 1) * np.log(end) + b * np.log1p(-end) - np.log(a + k - 1)
            incomplete = incomplete + np.exp(step - special.betaln(a + k - 1, b))
    return total


def _log_g_beta(kernel: Beta, channel: Channel, z: float, theta: Array) -> Array:
    kind, parameters = channel
    lo, width = kernel.base[4:6]
    a, b = theta
    if kind == "none":
        return kernel.log_pdf_of_latent(z, theta)
    if kind == "laplace":
        x, s = (z - lo) / width, parameters / width
        return np.asarray(np.log(_below(x, s, a, b) + _below(1 - x, s, b, a)) - np.log(2 * parameters))
    if kind == "gaussian":
        c = _bernstein_of_normal((z - lo) / width, parameters / width)
        return np.asarray(np.log(_mean_of_bernstein(c, a, b)) - np.log(width))
    trials, w, low, domain = parameters
    if (low, domain) != (lo, width):
        raise ValueError("the binomial mechanism and the beta kernel share a domain")
    # (p0 (1-u) + p1 u)^z ((1-p0) (1-u) + (1-p1) u)^(M-z): coefficients of a product of polynomials
    p0, p1 = 0.5 - 0.5 * w, 0.5 + 0.5 * w
    c = np.ones(1)
    for factor in [(p0, p1)] * int(z) + [(1 - p0, 1 - p1)] * (trials - int(z)):
        c = np.convolve(c, factor)
    return np.asarray(np.log(_mean_of_bernstein(c, a, b)) + np.log(special.comb(trials, z)))


def _log_g_binomial_normal(channel: Channel, z: float, theta: Array) -> Array:
    """Gauss-Legendre within the domain and 10 sd of the mean; values beyond the domain are clamped to it."""
    trials, w, lo, width = channel[1]
    mean, sd = theta[0], np.sqrt(theta[1])
    low, high = np.clip(mean - 10 * sd, lo, lo + width), np.clip(mean + 10 * sd, lo, lo + width)
    total = np.zeros_like(mean)
    for node, weight in zip(*special.roots_legendre(80), strict=True):
        y = 0.5 * (low + high) + 0.5 * (high - low) * node
        p = success(channel, y)
        density = np.exp(-0.5 * ((y - mean) / sd) ** 2) / (np.sqrt(2 * np.pi) * sd)
        total += 0.5 * (high - low) * weight * density * p**z * (1 - p) ** (trials - z)
    p0, p1 = 0.5 - 0.5 * w, 0.5 + 0.5 * w
    total += special.ndtr((lo - mean) / sd) * p0**z * (1 - p0) ** (trials - z)
    total += special.ndtr((mean - lo - width) / sd) * p1**z * (1 - p1) ** (trials - z)
    return np.asarray(np.log(total) + np.log(special.comb(trials, z)))


def log_g(kernel: Any, channel: Channel, z: Array, theta: Array) -> Array:
    """Log g(z_i | theta) of every record at every parameter, (n, G)."""
    kind = channel[0]
    if kind == "wavelet":
        levels, _, lo, width = channel[1]
        log_q = log_cell_density(channel, z)
        top = log_q.max(axis=1, keepdims=True)
        masses = kernel.masses(theta, cell_edges(2 ** (levels + 1), lo, width))
        return np.asarray(np.log(np.exp(log_q - top) @ masses) + top)
    if kind == "square_wave":
        cells, _, _, lo, width = channel[1]
        masses = kernel.masses(theta, cell_edges(cells, lo, width))
        return np.asarray(np.log(square_table(channel)[np.asarray(z, dtype=int)] @ masses))
    if isinstance(kernel, Beta):
        return np.stack([_log_g_beta(kernel, channel, float(zi), theta) for zi in z])
    if kind == "binomial":
        return np.stack([_log_g_binomial_normal(channel, float(zi), theta) for zi in z])
    return np.stack([log_g_normal(channel, float(zi), theta[0], theta[1]) for zi in z])


def draw_release(rng: np.random.Generator, kernel: Any, channel: Channel, latent: Array) -> Array:
    """Draw the release of n latent values, (n,) or (n, jk)."""
    kind, parameters = channel
    if kind == "none":
        return latent.copy()
    y = kernel.value(latent)
    if kind == "laplace":
        return np.asarray(y + rng.laplace(0.0, parameters, y.shape))
    if kind == "gaussian":
        return np.asarray(y + parameters * rng.standard_normal(y.shape))
    if kind == "binomial":
        return np.asarray(rng.binomial(parameters[0], success(channel, y)), dtype=float)
    if kind == "square_wave":
        cells, lo, width = parameters[0], *parameters[3:]
        cell = np.clip(np.floor((y - lo) / width * cells), 0, cells - 1).astype(int)
        below = np.cumsum(square_table(channel), axis=0)[:, cell]
        return np.asarray((rng.random(len(y)) >= below).sum(axis=0), dtype=float)
    levels, scale, lo, width = parameters
    cells = 2 ** (levels + 1)
    cell = np.clip(np.floor((y - lo) / width * cells), 0, cells - 1).astype(int)
    signal = haar(levels)[:, cell].T
    return np.asarray(signal + rng.laplace(0.0, scale, signal.shape))
