"""Deconvolution kernel density estimator, set beside the posterior as an estimate without a model.

A released value is Z = Y + U with U of known law, and phi_U is real and positive. With the empirical
characteristic function phi_Z of n released values,

    f(y; h) = 1/(2 pi) integral of exp(-i t y) phi_K(h t) phi_Z(t) / phi_U(t) dt

(Stefanski and Carroll 1990), with the kernel of Fourier transform phi_K(t) = (1 - t^2)^3 on [-1, 1], whose
second moment is 6. The support of phi_K is compact, so the integral exists for Laplace and for Gaussian
noise; without noise (phi_U = 1) this is an ordinary kernel density estimate. Frequencies are equally spaced:
phi_Z costs O(n x frequencies), whatever the grid, and memory does not grow with that product.

Sources
-------
- L. A. Stefanski and R. J. Carroll (1990), Deconvolving kernel density estimators, Statistics 21, 169-184.
- A. Delaigle and I. Gijbels (2002), Estimation of integrated squared density derivatives from a contaminated
  sample, Journal of the Royal Statistical Society B 64, 869-886 (pilot bandwidth).
- A. Delaigle and I. Gijbels (2004), Bootstrap bandwidth selection in kernel density estimation from a
  contaminated sample, Annals of the Institute of Statistical Mathematics 56, 19-47 (bandwidth).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from dpmix.errors import DataError
from dpmix.kernels.layout import Floats
from dpmix.laws.additive import Additive
from dpmix.laws.law_base import expect

if TYPE_CHECKING:
    from dpmix.run.chains_reader import Chains

FREQUENCIES: Final = 1024
_SECOND_MOMENT: Final = 6.0
_PERIOD: Final = 4.0
_POINTS: Final = 8 * FREQUENCIES
_CHUNK: Final = 1 << 15
_COLUMNS: Final = 256
_ROOTS, _WEIGHTS = np.polynomial.legendre.leggauss(128)
_NODES, _WEIGHTS = 0.5 * (1.0 + _ROOTS), 0.5 * _WEIGHTS


class Noise(NamedTuple):
    """The law of what a mechanism adds to a record.

    Parameters
    ----------
    kind : {"none", "laplace", "gaussian"}
        Its family.
    scale : float
        Scale of Laplace noise, standard deviation of Gaussian noise, both in the data's units.
    """

    kind: str
    scale: float = 0.0

    @property
    def variance(self) -> float:
        """Variance of the noise: twice the squared scale for Laplace."""
        return {"none": 0.0, "laplace": 2.0, "gaussian": 1.0}[self.kind] * self.scale**2

    def inverse(self, t: Floats) -> Floats:
        """Return 1 / phi_U at `t`, but at most e^300: 1 + (scale t)^2, exp((scale t)^2 / 2), or 1."""
        square = (self.scale * t) ** 2
        if self.kind == "laplace":
            return 1.0 + square
        return np.exp(np.minimum(0.5 * square, 300.0)) if self.kind == "gaussian" else np.ones_like(t)


class Baseline(NamedTuple):
    """An estimate: `values` at the grid, nonnegative, integrating to one over the line; its `bandwidth`."""

    values: Floats
    bandwidth: float


class Spectrum(NamedTuple):
    """Empirical characteristic function `phi` of n values about `centre`, at `t` = 0, step, 2 step, .."""

    t: Floats
    phi: NDArray[np.complex128]
    centre: float
    n: int


def kernel(t: Floats) -> Floats:
    """Fourier transform of the kernel, (1 - t^2)^3 on [-1, 1] and 0 elsewhere."""
    return np.maximum(1.0 - t * t, 0.0) ** 3


def spectrum(values: Floats, step: float) -> Spectrum:
    """Compute the empirical characteristic function at FREQUENCIES + 1 multiples of `step`.

    The centre is the mid-range. Powers come by multiplication, in chunks of records: O(n) memory.
    """
    centre = 0.5 * float(values.min() + values.max())
    total = np.zeros(FREQUENCIES + 1, dtype=np.complex128)
    for start in range(0, values.size, _CHUNK):
        factor = np.exp(1j * step * (values[start : start + _CHUNK] - centre))
        power = np.ones_like(factor)
        for k in range(FREQUENCIES + 1):
            total[k] += power.sum()
            power *= factor
    t = step * np.arange(FREQUENCIES + 1, dtype=np.float64)
    return Spectrum(t, total / values.size, centre, values.size)


def variance_term(h: float, n: int, noise: Noise, order: int = 0) -> float:
    """Return 1/(2 pi n h^(2 r + 1)) integral of t^(2 r) phi_K(t)^2 / phi_U(t/h)^2 dt with r = `order`.

    For r = 0 this is the integrated variance of f(.; h), up to a term at most R(f)/n.
    """
    inside = _NODES ** (2 * order) * (kernel(_NODES) * noise.inverse(_NODES / h)) ** 2
    return float(_WEIGHTS @ inside) / (math.pi * n * h ** (2 * order + 1))


def bootstrap_mise(h: float, t: Floats, power: Floats, n: int, noise: Noise) -> float:
    """Mean integrated squared error of f(.; h), up to a constant, if |phi_Y|^2 were `power` (MISE2*).

    Parameters
    ----------
    h : float
        Bandwidth.
    t, power : float64 arrays
        Equally spaced frequencies from 0, and the squared modulus of the characteristic function there.
    n : int
        Number of released values.
    noise : Noise
        Law of the noise.

    Returns
    -------
    float
        The variance term plus 1/(2 pi) integral of power (phi_K(h t)^2 - 2 phi_K(h t)) dt; adding the
        integral of f^2 gives the mean integrated squared error, to within (integral of f^2)/n.
    """
    smooth = kernel(h * t)
    return variance_term(h, n, noise) + _integral(t, power * (smooth * smooth - 2.0 * smooth))


def pilot_bandwidth(found: Spectrum, noise: Noise, variance: float, lowest: float, highest: float) -> float:
    """Choose the bandwidth g of the density that the bootstrap draws from.

    Of theta_r, the integral of the squared r-th derivative of f, the estimate with bandwidth g has to leading
    order the bias ``variance_term(g, r) - 6 g^2 theta_{r+1}``, which falls in g and has one root; there its
    square is smallest. Theta_4 is that of a normal density; it gives the bandwidth for theta_3, and the
    estimate of theta_3 gives that for theta_2, which is g (Delaigle and Gijbels 2002, two stages).

    Parameters
    ----------
    found : Spectrum
        Of the released values.
    noise : Noise
        Law of the noise.
    variance : float
        Variance of a record, for the normal reference.
    lowest, highest : float
        Between which to look.
    """
    theta = math.factorial(8) / ((2.0 * math.sqrt(variance)) ** 9 * math.factorial(4) * math.sqrt(math.pi))
    g = _unbiased(3, theta, found.n, noise, lowest, highest)
    smooth = kernel(g * found.t) * noise.inverse(found.t)
    theta = _integral(found.t, found.t**6 * (np.abs(found.phi) * smooth) ** 2)
    return _unbiased(2, theta, found.n, noise, lowest, highest)


def deconvolution_kde(released: Floats, noise: Noise, grid: Floats) -> Baseline:
    """Estimate the density of a record from released values.

    The bandwidth minimises `bootstrap_mise` with the density estimated at the pilot bandwidth. Negative parts
    are set to zero and the rest is divided by its integral over the whole line; farther from the mid-range
    than twice the range of the values (or 24 standard deviations of the noise, if more) the estimate is zero.
    Without noise it is an ordinary kernel density estimate with the same kernel.

    Parameters
    ----------
    released : float64 array
        Released values, in the data's units.
    noise : Noise
        What the mechanism added.
    grid : float64 array (points,)
        Where to evaluate.

    Raises
    ------
    DataError
        With fewer than two different values.
    """
    values = np.asarray(released, dtype=np.float64).ravel()
    if values.size < 2 or not np.ptp(values) > 0.0:
        raise DataError("summary.baseline: deconvolution_kde needs at least two different released values")
    unit = float(values.std(ddof=1))
    noise = noise._replace(scale=noise.scale / unit)
    width = max(float(np.ptp(values)) / unit, 12.0 * math.sqrt(noise.variance))
    step = 2.0 * math.pi / (_PERIOD * width)
    lowest, highest = 1.0 / (FREQUENCIES * step), 0.25 * width
    found = spectrum(values / unit, step)
    # a variance below its own standard error cannot be told from it
    variance = max(1.0 - noise.variance, min(1.0, math.sqrt(2.0 / values.size)))
    g = pilot_bandwidth(found, noise, variance, lowest, highest)
    power = (np.abs(found.phi) * kernel(g * found.t) * noise.inverse(found.t)) ** 2
    h = _minimiser(found.t, power, values.size, noise, lowest, highest)
    mass = positive_mass(found, noise, h)
    density = np.maximum(estimate(found, noise, h, grid / unit), 0.0) / (mass * unit)
    return Baseline(density, h * unit)


def kernel_estimate(chains: Chains, grid: Floats) -> tuple[Floats, float]:
    """Return the estimate from the released values of the column that was fitted, and its bandwidth.

    Raises
    ------
    DataError
        When the release does not have one.
    """
    law = chains.mechanism
    if not law.additive:
        raise DataError(
            "summary.baseline: deconvolution_kde is for one column released by laplace, gaussian or none, "
            f"not for {law.kind}"
        )
    if chains.tally is not None:
        raise DataError(
            "summary.baseline: deconvolution_kde is made of released values, and these chains are of a "
            "tally, which holds counts alone; leave it out"
        )
    if chains.observed.ndim > 1 and chains.observed.shape[1] > 1:
        raise DataError(
            "summary.baseline: deconvolution_kde is for one column, and these chains are of "
            f"{chains.observed.shape[1]}"
        )
    scale = float(chains.constants["noise_scale"]) if law.protects else 0.0
    return deconvolution_kde(chains.observed, Noise(expect(law, Additive).noise, scale), grid)


def estimate(found: Spectrum, noise: Noise, h: float, grid: Floats) -> Floats:
    """Return f(.; h) at `grid`, negative parts and all, and 0 beyond half a period from the centre."""
    coefficients = kernel(h * found.t) * noise.inverse(found.t) * found.phi
    used = h * found.t < 1.0
    t, coefficients = found.t[used], coefficients[used]
    coefficients[0] *= 0.5
    values = np.zeros(grid.size)
    (inside,) = np.nonzero(np.abs(grid - found.centre) <= math.pi / found.t[1])
    for part in np.array_split(inside, inside.size // _COLUMNS + 1):
        waves = np.exp(-1j * np.outer(grid[part] - found.centre, t))
        values[part] = (waves @ coefficients).real * (found.t[1] / math.pi)
    return values


def positive_mass(found: Spectrum, noise: Noise, h: float) -> float:
    """Integral of the positive part of f(.; h) over the line, from its values at 8 points a frequency."""
    coefficients = np.conj(kernel(h * found.t) * noise.inverse(found.t) * found.phi)
    return float(np.maximum(np.fft.irfft(coefficients, _POINTS), 0.0).sum())


def _integral(t: Floats, values: Floats) -> float:
    """1/(2 pi) integral over the line of an even function given at t = 0, step, .., beyond which it is 0."""
    return float(t[1] / math.pi * (values.sum() - 0.5 * values[0]))


def _unbiased(order: int, theta: float, n: int, noise: Noise, lowest: float, highest: float) -> float:
    """Where the estimate of theta_order has no bias, given theta_{order + 1}; the nearer end if nowhere."""

    def bias(log_h: float) -> float:
        h = math.exp(log_h)
        return variance_term(h, n, noise, order) - _SECOND_MOMENT * h * h * theta

    low, high = math.log(lowest), math.log(highest)
    if bias(low) <= 0.0:
        return lowest
    return highest if bias(high) >= 0.0 else math.exp(brentq(bias, low, high))


def _minimiser(t: Floats, power: Floats, n: int, noise: Noise, lowest: float, highest: float) -> float:
    """Global minimiser of `bootstrap_mise`: the best of 200 bandwidths, refined between its neighbours."""
    grid = np.linspace(math.log(lowest), math.log(highest), 200)

    def criterion(log_h: float) -> float:
        return bootstrap_mise(math.exp(log_h), t, power, n, noise)

    best = int(np.argmin([criterion(log_h) for log_h in grid]))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)])
    return math.exp(minimize_scalar(criterion, bounds=bounds, method="bounded", options={"xatol": 1e-8}).x)
