"""Oracles for the marginal kernel g(z | theta) of methods.md section 4 and for the law of y | z, theta.

Two independent routes to log g: `mp_log_g` (mpmath, 60 digits, the slow truth) and `log_g` (numpy,
vectorised, good to about 1e-11, for the quadrature of `partitions`). A channel is a pair ``(kind, scale)``:
``("laplace", s)``, ``("gaussian", sd)`` or ``("none", 0.0)``; the kernel is always N(mu, var).
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Array = NDArray[np.float64]
Channel = tuple[str, float]

DIGITS = 60


def mp_log_g(channel: Channel, z: float, mean: float, var: float) -> mp.mpf:
    """Log g(z | mean, var) to 50 digits, the arguments taken as the exact values of the doubles given."""
    kind, scale = channel
    with mp.workdps(DIGITS):
        x, v = mp.mpf(z) - mp.mpf(mean), mp.mpf(var)
        if kind != "laplace":
            total = v + mp.mpf(scale) ** 2
            return +(-(x**2) / (2 * total) - mp.log(2 * mp.pi * total) / 2)
        s, sd = mp.mpf(scale), mp.sqrt(v)
        tilt = v / (2 * s**2)
        left = mp.exp(tilt - x / s) * mp.erfc(-(x / sd - sd / s) / mp.sqrt(2)) / 2
        right = mp.exp(tilt + x / s) * mp.erfc((x / sd + sd / s) / mp.sqrt(2)) / 2
        return +mp.log((left + right) / (2 * s))


def mp_log_g_by_quadrature(channel: Channel, z: float, mean: float, var: float) -> mp.mpf:
    """Log of the integral of q(z | y) N(y | mean, var) dy by quadrature: the definition itself."""
    kind, scale = channel
    with mp.workdps(30):
        zz, m, sd, s = mp.mpf(z), mp.mpf(mean), mp.sqrt(mp.mpf(var)), mp.mpf(scale)

        def integrand(y: mp.mpf) -> mp.mpf:
            t = (zz - y) / s
            noise = (
                mp.exp(-abs(t)) / (2 * s)
                if kind == "laplace"
                else mp.exp(-(t**2) / 2) / (s * mp.sqrt(2 * mp.pi))
            )
            return noise * mp.exp(-(((y - m) / sd) ** 2) / 2) / (sd * mp.sqrt(2 * mp.pi))

        # cut at the kink, the kernel's bulk and the noise's bulk, so that every piece is smooth and well
        # scaled
        cuts = {zz, m}
        for k in (1, 4, 12, 40):
            cuts |= {m - k * sd, m + k * sd, zz - k * s, zz + k * s}
        # mp.quad stops at an absolute error, so the integrand is brought to the order of one
        top = max(integrand(zz), integrand(m))
        return +(mp.log(top) + mp.log(mp.quad(lambda y: integrand(y) / top, sorted(cuts))))


def log_g(channel: Channel, z: Array | float, mean: Array | float, var: Array | float) -> Array:
    """Log g(z | mean, var) in double precision, broadcast over its arguments."""
    kind, scale = channel
    x = np.asarray(z, dtype=float) - mean
    v = np.asarray(var, dtype=float)
    if kind != "laplace":
        total = v + scale**2
        return np.asarray(-0.5 * x * x / total - 0.5 * np.log(2 * np.pi * total))
    sd = np.sqrt(v)
    t, r = np.abs(x) / sd, sd / scale
    # beyond 10 sd the near side is the plain Laplace tail, written without cancelling squares; the far side
    # never overflows
    near = np.where(
        t - r > 10,
        np.log(2.0) + r * (0.5 * r - t) + special.log_ndtr(t - r),
        -0.5 * t * t + np.log(special.erfcx(np.maximum(r - t, -10.0) / np.sqrt(2))),
    )
    far = -0.5 * t * t + np.log(special.erfcx((r + t) / np.sqrt(2)))
    return np.asarray(np.logaddexp(near, far) - np.log(4 * scale))


def latent_cdf(channel: Channel, y: Array, z: float, mean: float, var: float) -> Array:
    """Distribution function of y | z, theta at the points `y`, by the table of methods.md section 4."""
    kind, scale = channel
    sd = np.sqrt(var)
    if kind == "gaussian":
        weight = var / (var + scale**2)
        return np.asarray(stats.norm.cdf(y, mean + weight * (z - mean), np.sqrt(weight) * scale))
    low, high = mean + var / scale, mean - var / scale
    log_w = np.array(
        [
            -(z - mean) / scale + special.log_ndtr((z - low) / sd),
            (z - mean) / scale + special.log_ndtr(-(z - high) / sd),
        ]
    )
    share = special.softmax(log_w)
    below = share[0] * np.exp(
        special.log_ndtr((np.minimum(y, z) - low) / sd) - special.log_ndtr((z - low) / sd)
    )
    above = share[1] * np.exp(
        special.log_ndtr(-(np.maximum(y, z) - high) / sd) - special.log_ndtr(-(z - high) / sd)
    )
    return np.where(y <= z, below, 1.0 - above)


def latent_cdf_by_quadrature(channel: Channel, y: float, z: float, mean: float, var: float) -> float:
    """The same by numerical integration of q(z | y) f(y | theta), for checking `latent_cdf` itself."""
    kind, scale = channel
    sd = np.sqrt(var)
    grid = np.linspace(min(mean, z) - 14 * sd, max(mean, z) + 14 * sd, 400_001)
    noise = stats.laplace if kind == "laplace" else stats.norm
    log_joint = noise.logpdf(z, grid, scale) + stats.norm.logpdf(grid, mean, sd)
    mass = np.exp(log_joint - log_joint.max())
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (mass[1:] + mass[:-1]))])
    return float(np.interp(y, grid, cumulative / cumulative[-1]))
