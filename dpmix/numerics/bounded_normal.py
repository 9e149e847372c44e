"""Normal variables clamped or truncated to [-1, 1]: masses, quantiles and means, accurate however far away.

With a = (-1 - mean) / sd and b = (1 - mean) / sd the mass within is Phi(b) - Phi(a). Where both are on one
side of 0, all is told beside the tail at the nearer, by erfcx, so that nothing underflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.jit import njit
from dpmix.numerics.special import erfcx

Floats = NDArray[np.float64]

_ROOT_2 = math.sqrt(2.0)
_ROOT_2_PI = math.sqrt(2.0 / math.pi)
_PER_ROOT_2_PI = 1.0 / math.sqrt(2.0 * math.pi)
NEAR = 0.425  # of 1/2: probabilities whose quantiles have an expansion about 0
_FAR = 5.0  # standard deviations, from which on quantiles are found by Newton steps from the exponential's


@njit
def upper_tail(t):
    """Return the probability that a standard normal exceeds t."""
    tail = 0.5 * erfcx(abs(t) / _ROOT_2) * math.exp(-0.5 * t * t)
    return tail if t > 0.0 else 1.0 - tail


@njit
def _left(a, t):
    """Return the share of the upper tail at a >= 0 that is left at t >= a."""
    return erfcx(t / _ROOT_2) / erfcx(a / _ROOT_2) * math.exp(-0.5 * (t - a) * (t + a))


@njit
def log_mass(mean, sd):
    """Return the log of the mass within [-1, 1]."""
    a, b = (-1.0 - mean) / sd, (1.0 - mean) / sd
    if b < 0.0:
        a, b = -b, -a
    if a <= 0.0:
        return math.log(1.0 - upper_tail(-a) - upper_tail(b))
    return math.log(0.5 * erfcx(a / _ROOT_2) * (1.0 - _left(a, b))) - 0.5 * a * a


@njit
def share_above(value, mean, sd):
    """Return the share of the mass within [-1, 1] that lies above a value there."""
    a, b, t = (-1.0 - mean) / sd, (1.0 - mean) / sd, (value - mean) / sd
    if b < 0.0:
        rest = _left(-b, -a)
        return 1.0 - (_left(-b, -t) - rest) / (1.0 - rest)
    if a > 0.0:
        rest = _left(a, b)
        return (_left(a, t) - rest) / (1.0 - rest)
    rest = upper_tail(b)
    return (upper_tail(t) - rest) / (1.0 - upper_tail(-a) - rest)


@njit
def value_at(share, mean, sd):
    """Return the value within [-1, 1] above which lies a share of the mass there: undoes `share_above`."""
    a, b = (-1.0 - mean) / sd, (1.0 - mean) / sd
    if b < 0.0:
        t = -_exceeded(1.0 - share, -b, -a)
    elif a > 0.0:
        t = _exceeded(share, a, b)
    else:
        above, below = upper_tail(b), upper_tail(-a)
        mass = 1.0 - above - below
        high, low = above + share * mass, below + (1.0 - share) * mass
        t = -lower_quantile(high) if high < low else lower_quantile(low)
    return min(max(mean + sd * t, -1.0), 1.0)


@njit
def _exceeded(share, a, b):
    """Return the t of [a, b], a >= 0, above which lies a share of the mass there."""
    rest = _left(a, b)
    left = rest + share * (1.0 - rest)
    if not left > 0.0:
        return b
    if a < _FAR:
        return -lower_quantile(upper_tail(a) * left)
    # Newton steps come from above, for the log of the tail is concave and falls faster than the square
    wanted = math.log(left)
    start = math.log(erfcx(a / _ROOT_2))
    gap = -2.0 * wanted / (a + math.sqrt(a * a - 2.0 * wanted))
    for _ in range(30):
        tail = erfcx((a + gap) / _ROOT_2)
        step = (math.log(tail) - start - 0.5 * gap * (2.0 * a + gap) - wanted) * tail / _ROOT_2_PI
        gap += step
        if abs(step) < 1e-15 * (gap + 1.0 / a):
            break
    return a + gap


@njit
def lower_quantile(p):
    """Return the t below which a standard normal lies with probability p (Wichura 1988, AS 241)."""
    q = p - 0.5
    if abs(q) <= NEAR:
        return quantile_near(q)
    tail = p if q < 0.0 else 1.0 - p
    if not tail > 0.0:
        return -math.inf if q < 0.0 else math.inf
    far = quantile_beyond(math.log(tail))
    return -far if q < 0.0 else far


@njit
def quantile_near(q):
    """Return the t below which a standard normal lies with probability 1/2 + q, |q| <= `NEAR`, by AS 241."""
    r = 0.180625 - q * q
    num = 2.5090809287301226727e3 * r + 3.3430575583588128105e4
    num = (num * r + 6.7265770927008700853e4) * r + 4.5921953931549871457e4
    num = (num * r + 1.3731693765509461125e4) * r + 1.9715909503065514427e3
    num = (num * r + 1.3314166789178437745e2) * r + 3.3871328727963666080e0
    den = 5.2264952788528545610e3 * r + 2.8729085735721942674e4
    den = (den * r + 3.9307895800092710610e4) * r + 2.1213794301586595867e4
    den = (den * r + 5.3941960214247511077e3) * r + 6.8718700749205790830e2
    den = (den * r + 4.2313330701600911252e1) * r + 1.0
    return q * num / den


@njit
def quantile_beyond(log_tail):
    """Return the t > 0 above which a standard normal lies with a probability of this logarithm, by AS 241.

    It is below 1/2 - `NEAR`, to 1e-15 or so of t.
    """
    r = math.sqrt(-log_tail)
    if r <= 5.0:
        r -= 1.6
        num = 7.74545014278341407640e-4 * r + 2.27238449892691845833e-2
        num = (num * r + 2.41780725177450611770e-1) * r + 1.27045825245236838258e0
        num = (num * r + 3.64784832476320460504e0) * r + 5.76949722146069140550e0
        num = (num * r + 4.63033784615654529590e0) * r + 1.42343711074968357734e0
        den = 1.05075007164441684324e-9 * r + 5.47593808499534494600e-4
        den = (den * r + 1.51986665636164571966e-2) * r + 1.48103976427480074590e-1
        den = (den * r + 6.89767334985100004550e-1) * r + 1.67638483018380384940e0
        den = (den * r + 2.05319162663775882187e0) * r + 1.0
    else:
        r -= 5.0
        num = 2.01033439929228813265e-7 * r + 2.71155556874348757815e-5
        num = (num * r + 1.24266094738807843860e-3) * r + 2.65321895265761230930e-2
        num = (num * r + 2.96560571828504891230e-1) * r + 1.78482653991729133580e0
        num = (num * r + 5.46378491116411436990e0) * r + 6.65790464350110377720e0
        den = 2.04426310338993978564e-15 * r + 1.42151175831644588870e-7
        den = (den * r + 1.84631831751005468180e-5) * r + 7.86869131145613259100e-4
        den = (den * r + 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1
        den = (den * r + 5.99832206555887937690e-1) * r + 1.0
    return num / den


@njit
def _truncated_mean(mean, sd):
    """Return the mean of what is truncated to [-1, 1]."""
    a, b = (-1.0 - mean) / sd, (1.0 - mean) / sd
    side = 1.0
    if b < 0.0:
        a, b, side, mean = -b, -a, -1.0, -mean
    width = b - a
    if width < 1e-3 and width * max(abs(a), abs(b)) < 1e-3:  # nearly uniform: its density's slope is all
        return -side * 0.5 * (a + b) * width / 6.0
    if a > 0.0:  # told from the nearer end
        fall = math.exp(-0.5 * width * (a + b))
        mass = erfcx(a / _ROOT_2) - fall * erfcx(b / _ROOT_2)
        found = -1.0 + sd * (_ROOT_2_PI * (1.0 - fall) / mass - a)
    else:
        mass = 1.0 - upper_tail(-a) - upper_tail(b)
        found = mean + sd * _PER_ROOT_2_PI * (math.exp(-0.5 * a * a) - math.exp(-0.5 * b * b)) / mass
    return side * min(max(found, -1.0), 1.0)


@njit
def _clamped_mean(mean, sd):
    """Return the mean of what is clamped to [-1, 1]."""
    a, b = (-1.0 - mean) / sd, (1.0 - mean) / sd
    # E max(t - a, 0) - E max(t - b, 0), of a standard normal t
    return -1.0 + sd * (_excess(a) - _excess(b))


@njit
def _excess(t):
    """Return the mean of what a standard normal exceeds t by, 0 where it does not."""
    density = _PER_ROOT_2_PI * math.exp(-0.5 * t * t)
    return density - t * upper_tail(t)


@njit
def _fill_truncated_means(means, sds, out):
    for i in range(len(out)):
        out[i] = _truncated_mean(means[i], sds[i])


@njit
def _fill_clamped_means(means, sds, out):
    for i in range(len(out)):
        out[i] = min(max(_clamped_mean(means[i], sds[i]), -1.0), 1.0)


@njit
def _fill_truncated(means, sds, normals, out):
    for i in range(len(out)):
        out[i] = value_at(upper_tail(normals[i]), means[i], sds[i])


def truncated_means(means: Floats, sds: Floats, low: float, high: float) -> Floats:
    """Return the means of normal variables truncated to [low, high], of the shape of `means`."""
    return _on_unit(_fill_truncated_means, low, high, means, sds)


def clamped_means(means: Floats, sds: Floats, low: float, high: float) -> Floats:
    """Return the means of normal variables clamped to [low, high], of the shape of `means`."""
    return _on_unit(_fill_clamped_means, low, high, means, sds)


def truncated(means: Floats, sds: Floats, low: float, high: float, normals: Floats) -> Floats:
    """Return normal variables truncated to [low, high], made of standard normals, of the shape of `means`."""
    return _on_unit(_fill_truncated, low, high, means, sds, normals)


def _on_unit(
    fill: Callable[..., None], low: float, high: float, means: Floats, sds: Floats, *more: Floats
) -> Floats:
    """Fill an array by what works on [-1, 1], and take it back to [low, high]."""
    half = 0.5 * (high - low)
    centre, out = low + half, np.empty(means.size)
    rest = [np.broadcast_to(values, means.shape).ravel() for values in (sds / half, *more)]
    fill(((means - centre) / half).ravel(), *rest, out)
    return (centre + half * out).reshape(means.shape)
