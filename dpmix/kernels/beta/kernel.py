"""Beta kernel on a known interval with gamma priors on both parameters; theta = (a, b).

A latent value y stands as the logit of its place u = (y - lo) / width in the interval: beta draws with small
parameters round to 0 or 1, their logits do not. Parameters move in (log a, log b), by Langevin steps (MALA)
given latent values (Beraha, Favaro and Rao 2024, Appendix B, which takes the identity for our metric) and by
random walks where the latent values are integrated out. Both take their scale from the Fisher information at
the point they start from, and weigh the way back by that at the point proposed.

A base measure that is learned (`dpmix.kernels.learned_base`) has a place besides, around which components lie
the closer the narrower they are, as under a normal-inverse-gamma one: with t = a + b and p = a / t

    t ~ Gamma(a_shape + b_shape, rate),    p | t ~ Beta(a_shape + lam t m, b_shape + lam t (1 - m)),

m the place. At lam = 0 this is the base measure of independent gammas of one rate. What is learned are the
logit of the place and lam, which move on slices, and the rate, which is conjugate: the smaller, the narrower
components are. Components that are taken along keep (a + b) rate, and the distance of log a - log b from the
place in units of the root of the rate, which nearly takes them to themselves a priori: `carry` tells the rest
of the ratio.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels.kernel_functions import (
    draw_posterior,
    draw_prior,
    draw_record,
    log_prior,
    propose,
    tally,
    value,
)
from dpmix.kernels.learned_base import (
    LOCATION,
    SCALE,
    WEIGHT,
    carry,
    component_terms,
    draw_base_given,
    draw_weight,
    gather,
    with_base,
)
from dpmix.numerics.jit import njit
from dpmix.numerics.slices import draw_on_slice, log_height
from dpmix.numerics.special import digamma, log_beta, log_gamma_draw, trigamma

A, B = 0, 1

_LEAST_RATE = 1e-8  # clusters of some hundred thousandths of the interval
_LOWEST, _HIGHEST = -600.0, 50.0  # logarithms of lam
STEPS = 5  # Langevin steps a call
TARGET = 0.574  # acceptance rate that the step adapts to (Roberts and Rosenthal 1998)
LONGEST = 3.0  # drift at most so long in the metric, for starts far out (Roberts and Tweedie 1996)
_SMALLEST, _LARGEST = 1e-100, 1e100  # the base measure is cut here, far from where anything can be computed


class Beta(NamedTuple):
    """a ~ Gamma(a_shape, a_rate), b ~ Gamma(b_shape, b_rate), (y - lo) / width ~ Beta(a, b).

    See methods, section 4. The base measure is restricted to 1e-100 < a, b < 1e100. Under a `lam` above 0
    it is the one around a place above, which is given as a logit, and a_rate is b_rate; a cluster's mean
    varies around it by about the cluster's variance over `lam`.
    """

    a_shape: float
    a_rate: float
    b_shape: float
    b_rate: float
    lo: float
    width: float
    lam: float = 0.0
    place: float = 0.0

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a component's parameters."""
        return {"a": (), "b": ()}

    @property
    def constants(self) -> dict[str, float]:
        """What a chains file holds of the base measure."""
        names = ("base_a_shape", "base_a_rate", "base_b_shape", "base_b_rate")
        found = dict(zip(names, self[:4], strict=True))
        return {**found, "domain_lo": self.lo, "domain_hi": self.lo + self.width}

    @property
    def learned(self) -> tuple[str, str]:
        """Names of the location and the scale that may be learned."""
        return "place", "rate"

    @property
    def learned_values(self) -> NDArray[np.float64]:
        """Logit of the place and rate, shape (2, 1); none where each parameter has a rate of its own."""
        if self.a_rate != self.b_rate:
            return np.empty((2, 0))
        return np.array([[math.log(self.a_shape / self.b_shape)], [float(self.a_rate)]])

    @property
    def learned_constants(self) -> dict[str, float]:
        """What a chains file holds besides where these are learned."""
        return {"base_lambda": self.lam}

    @property
    def least_scale(self) -> float:
        """Least rate that is learned."""
        return _LEAST_RATE


@njit
def log_sides(y):
    """Return (log u, log(1 - u)) of a logit."""
    rest = math.log1p(math.exp(-abs(y)))
    return min(y, 0.0) - rest, -max(y, 0.0) - rest


@njit
def _draw_parameter(rng, shape, rate):
    while True:
        found = math.exp(min(log_gamma_draw(rng, shape) - math.log(rate), 700.0))
        if _SMALLEST < found < _LARGEST:
            return found


@draw_prior.register
def _draw_prior(kernel: Beta, rng, theta, h):
    if kernel.lam > 0.0:
        _draw_around(kernel, rng, theta, h)
        return
    theta[A, h] = _draw_parameter(rng, kernel.a_shape, kernel.a_rate)
    theta[B, h] = _draw_parameter(rng, kernel.b_shape, kernel.b_rate)


@njit
def _draw_around(kernel, rng, theta, h):
    """Draw from a base measure that has a place."""
    while True:
        total = _draw_parameter(rng, kernel.a_shape + kernel.b_shape, kernel.a_rate)
        one, other = _around(kernel, total)
        left, right = log_sides(
            log_gamma_draw(rng, kernel.a_shape + one) - log_gamma_draw(rng, kernel.b_shape + other)
        )
        a, b = total * math.exp(left), total * math.exp(right)
        if a > _SMALLEST and b > _SMALLEST:
            theta[A, h], theta[B, h] = a, b
            return


@njit
def _around(kernel, total):
    """Return what the place adds to the shapes of p given t."""
    left, right = log_sides(kernel.place)
    return kernel.lam * total * math.exp(left), kernel.lam * total * math.exp(right)


@njit
def _log_around(kernel, a, b):
    """Return what the place adds to the log prior density of (log a, log b)."""
    one, other = _around(kernel, a + b)
    left, right = log_sides(math.log(a) - math.log(b))
    value = one * left + other * right - log_beta(kernel.a_shape + one, kernel.b_shape + other)
    return value + log_beta(kernel.a_shape, kernel.b_shape)


@njit
def _slopes_around(kernel, a, b):
    """Return the gradient of `_log_around` in (log a, log b)."""
    total = a + b
    one, other = _around(kernel, total)
    left, right = log_sides(math.log(a) - math.log(b))
    first, second = kernel.a_shape + one, kernel.b_shape + other
    of_total = one * (left - digamma(first)) + other * (right - digamma(second))
    of_total += (one + other) * digamma(first + second)
    share, rest = math.exp(left), math.exp(right)
    of_logit = one * rest - other * share
    return share * of_total + of_logit, rest * of_total - of_logit


@njit
def prior_slopes_of(kernel, a, b):
    """Return the gradient of the log prior density in (log a, log b), and a scale of its curvature (3)."""
    one, other = kernel.a_rate * a, kernel.b_rate * b
    slope_a, slope_b = kernel.a_shape - one, kernel.b_shape - other
    if kernel.lam > 0.0:
        more_a, more_b = _slopes_around(kernel, a, b)
        slope_a, slope_b = slope_a + more_a, slope_b + more_b
    aa, ab, bb = _prior_information(kernel, a, b)
    return slope_a, slope_b, aa, ab, bb


@tally.register
def _tally(kernel: Beta, theta, h, y, stats):
    left, right = log_sides(y)
    stats[A, h] += left
    stats[B, h] += right


@draw_record.register
def _draw_record(kernel: Beta, rng, theta, h):
    return log_gamma_draw(rng, theta[A, h]) - log_gamma_draw(rng, theta[B, h])


@value.register
def _value(kernel: Beta, y):
    if y < 0.0:
        odds = math.exp(y)
        return kernel.lo + kernel.width * (odds / (1.0 + odds))
    return kernel.lo + kernel.width / (1.0 + math.exp(-y))


@log_prior.register
def _log_prior(kernel: Beta, theta, h):
    """Coordinates (log a, log b), whose Jacobian is a b."""
    a, b = theta[A, h], theta[B, h]
    if not (_SMALLEST < a < _LARGEST and _SMALLEST < b < _LARGEST):
        return -math.inf
    value = (
        kernel.a_shape * math.log(a) - kernel.a_rate * a + kernel.b_shape * math.log(b) - kernel.b_rate * b
    )
    return value + _log_around(kernel, a, b) if kernel.lam > 0.0 else value


@njit
def _information(a, b):
    """Return the Fisher information of (log a, log b) in one value: entries (a, a), (a, b), (b, b)."""
    both = trigamma(a + b)
    own_a = 1.0 + a * a * trigamma(a + 1.0)  # a^2 trigamma(a), which would overflow
    own_b = 1.0 + b * b * trigamma(b + 1.0)
    return own_a - a * a * both, -a * b * both, own_b - b * b * both


@njit
def _prior_information(kernel, a, b):
    """Return a scale of the prior's curvature in (log a, log b): half of what it is plus half of its mean.

    Entries (a, a), (a, b), (b, b); a place adds that of p given t, of log a - log b.
    """
    around = kernel.lam * a * (b / (a + b))
    aa = 0.5 * (kernel.a_shape + kernel.a_rate * a) + around
    return aa, -around, 0.5 * (kernel.b_shape + kernel.b_rate * b) + around


@njit
def _log_posterior(kernel, count, stats, h, a, b):
    """Return the log posterior density of (log a, log b) up to a constant, and its gradient."""
    sum_a, sum_b = stats[A, h], stats[B, h]
    value = kernel.a_shape * math.log(a) + kernel.b_shape * math.log(b)
    value += a * (sum_a - kernel.a_rate) + b * (sum_b - kernel.b_rate) - count * log_beta(a, b)
    both = count * digamma(a + b)
    # a digamma(a) = a digamma(a + 1) - 1
    slope_a = kernel.a_shape + count * (1.0 - a * digamma(a + 1.0)) + a * (both + sum_a - kernel.a_rate)
    slope_b = kernel.b_shape + count * (1.0 - b * digamma(b + 1.0)) + b * (both + sum_b - kernel.b_rate)
    if kernel.lam > 0.0:
        more_a, more_b = _slopes_around(kernel, a, b)
        return value + _log_around(kernel, a, b), slope_a + more_a, slope_b + more_b
    return value, slope_a, slope_b


@njit
def _langevin(kernel, count, stats, h, a, b, step):
    """Return log posterior, drift (2) and metric (aa, ab, bb) of a Langevin step from (a, b)."""
    value, slope_a, slope_b = _log_posterior(kernel, count, stats, h, a, b)
    aa, ab, bb = _information(a, b)
    prior_a, prior_ab, prior_b = _prior_information(kernel, a, b)
    aa, ab, bb = count * aa + prior_a, count * ab + prior_ab, count * bb + prior_b
    determinant = aa * bb - ab * ab
    drift_a = (bb * slope_a - ab * slope_b) / determinant
    drift_b = (aa * slope_b - ab * slope_a) / determinant
    length = step * math.sqrt(max(drift_a * slope_a + drift_b * slope_b, 0.0))
    scale = step if length <= LONGEST else step * LONGEST / length
    return value, scale * drift_a, scale * drift_b, aa, ab, bb


@njit
def _gaussian_step(rng, aa, ab, bb):
    """Draw a normal vector with precision matrix (aa, ab; ab, bb)."""
    root = math.sqrt(bb)
    e = rng.standard_normal() / math.sqrt(aa - ab * ab / bb)
    return e, rng.standard_normal() / root - ab / bb * e


@njit
def _log_gaussian(x, y, aa, ab, bb):
    """Return the log density of a normal vector with precision matrix (aa, ab; ab, bb), times 2 pi."""
    return 0.5 * math.log(aa * bb - ab * ab) - 0.5 * (aa * x * x + 2.0 * ab * x * y + bb * y * y)


@njit
def _adapt(tuning, acceptance):
    """Robbins-Monro on the log of the step."""
    tuning.adaptations += 1.0
    gain = (tuning.adaptations + 5.0) ** -0.6
    step = tuning.step * math.exp(gain * (acceptance - TARGET))
    tuning.step = min(max(step, 1e-6), 2.0)


@draw_posterior.register
def _draw_posterior(kernel: Beta, rng, count, stats, h, theta, tuning):
    a, b = theta[A, h], theta[B, h]
    for _ in range(STEPS):
        step = tuning.step
        spread = math.sqrt(2.0 * step)
        here, drift_a, drift_b, aa, ab, bb = _langevin(kernel, count, stats, h, a, b, step)
        e, f = _gaussian_step(rng, aa, ab, bb)
        move_a, move_b = drift_a + spread * e, drift_b + spread * f
        log_a, log_b = math.log(a) + move_a, math.log(b) + move_b
        acceptance = 0.0
        if max(abs(log_a), abs(log_b)) < -math.log(_SMALLEST):
            new_a, new_b = math.exp(log_a), math.exp(log_b)
            there, back_a, back_b, aa_back, ab_back, bb_back = _langevin(
                kernel, count, stats, h, new_a, new_b, step
            )
            e_back, f_back = -(move_a + back_a) / spread, -(move_b + back_b) / spread
            ratio = there - here + _log_gaussian(e_back, f_back, aa_back, ab_back, bb_back)
            ratio -= _log_gaussian(e, f, aa, ab, bb)
            if not math.isnan(ratio):
                acceptance = math.exp(min(ratio, 0.0))
            if rng.random() < acceptance:
                a, b = new_a, new_b
        if tuning.adapting == 1.0:
            _adapt(tuning, acceptance)
    theta[A, h], theta[B, h] = a, b


@njit
def _walk_information(kernel, a, b, count, spread):
    """Return a scale of the information on (log a, log b) in `count` values under noise: (aa, ab, bb).

    What mean and variance of the noisy values tell of those of y, and the Fisher information of y itself to
    the extent that the noise leaves its logarithms.
    """
    total = a + b
    mean, rest = a / total, b / total
    variance = mean * rest / (total + 1.0)
    noise = spread / (kernel.width * kernel.width)
    share = variance / (variance + noise) if noise > 0.0 else 1.0
    by_mean = mean * rest * (total + 1.0) * share  # of log a - log b
    by_variance = 0.5 * (share * total / (total + 1.0)) ** 2  # of log(a + b)
    both = digamma(total)
    left, right = math.exp(digamma(a) - both), math.exp(digamma(b) - both)
    sd = math.sqrt(noise)
    kept = share * share * left * right / ((left + sd) * (right + sd)) if noise > 0.0 else 1.0
    aa, ab, bb = _information(a, b)
    lost = 1.0 - kept
    prior_a, prior_ab, prior_b = _prior_information(kernel, a, b)
    return (
        count * (kept * aa + lost * (by_mean + mean * mean * by_variance)) + prior_a,
        count * (kept * ab + lost * (mean * rest * by_variance - by_mean)) + prior_ab,
        count * (kept * bb + lost * (by_mean + rest * rest * by_variance)) + prior_b,
    )


@propose.register
def _propose(kernel: Beta, rng, theta, h, count, spread, proposal):
    factor = 1.7 * math.exp(1.4 * (rng.random() - 0.5))
    a, b = theta[A, h], theta[B, h]
    aa, ab, bb = _walk_information(kernel, a, b, count, spread)
    e, f = _gaussian_step(rng, aa, ab, bb)
    log_a, log_b = math.log(a) + factor * e, math.log(b) + factor * f
    if max(abs(log_a), abs(log_b)) >= -math.log(_SMALLEST):
        proposal[A, h], proposal[B, h] = a, b
        return -math.inf
    proposal[A, h], proposal[B, h] = math.exp(log_a), math.exp(log_b)
    aa_back, ab_back, bb_back = _walk_information(kernel, proposal[A, h], proposal[B, h], count, spread)
    ratio = _log_gaussian(e, f, aa_back, ab_back, bb_back) - _log_gaussian(e, f, aa, ab, bb)
    return ratio + log_prior(kernel, proposal, h) - log_prior(kernel, theta, h)


# What is learned of the base measure


@with_base.register
def _with_beta(kernel: Beta, values):
    if values.shape[1] == 0:
        return kernel
    rate = values[SCALE, 0]
    shapes = kernel.a_shape, kernel.b_shape
    lam = values[WEIGHT, 0] if values.shape[0] > WEIGHT else kernel.lam
    return Beta(shapes[0], rate, shapes[1], rate, kernel.lo, kernel.width, lam, values[LOCATION, 0])


@gather.register
def _gather_beta(kernel: Beta, theta, h, sums):
    sums[0, 0] += theta[A, h] + theta[B, h]


@carry.register
def _carry_beta(kernel: Beta, theta, h, column, shift, factor, values):
    centre, a, b = values[LOCATION, 0], theta[A, h], theta[B, h]
    root, shapes = math.sqrt(factor), kernel.a_shape + kernel.b_shape
    before = log_prior(with_base(kernel, values), theta, h)
    moved = values.copy()
    moved[LOCATION, 0] += shift
    moved[SCALE, 0] *= factor
    left, right = log_sides(centre + shift + root * (math.log(a) - math.log(b) - centre))
    theta[A, h] = (a + b) / factor * math.exp(left)
    theta[B, h] = (a + b) / factor * math.exp(right)
    if moved[SCALE, 0] < _LEAST_RATE or not (theta[A, h] > 0.0 and theta[B, h] > 0.0):
        return -math.inf
    after = log_prior(with_base(kernel, moved), theta, h)
    return after - before + (shapes + 0.5) * math.log(factor)


@component_terms.register
def _terms_beta(kernel: Beta):
    return kernel.a_shape + kernel.b_shape, 1.0, 0.0


class BaseCurve(NamedTuple):
    """The log density of one number of a beta kernel's base measure, given components and the others.

    `row`: LOCATION, of the logit of the place, or WEIGHT, of the logarithm of lam.
    """

    kernel: Any
    learned: Any
    theta: Any
    slots: Any
    row: int


@log_height.register
def _log_height(curve: BaseCurve, x):
    kernel, learned = curve.kernel, curve.learned
    lam, place = kernel.lam, kernel.place
    if curve.row == WEIGHT:
        lam = math.exp(x)
        value = learned.weight[0] * x - learned.weight[1] * lam
    else:
        place = x
        gap = (x - learned.centre[0]) / learned.spread[0]
        value = -0.5 * gap * gap
    left, right = log_sides(place)
    share, rest = lam * math.exp(left), lam * math.exp(right)
    for h in curve.slots:
        a, b = curve.theta[A, h], curve.theta[B, h]
        one, other = (a + b) * share, (a + b) * rest
        left, right = log_sides(math.log(a) - math.log(b))
        value += one * left + other * right - log_beta(kernel.a_shape + one, kernel.b_shape + other)
    return value


@draw_base_given.register
def _draw_base_of_beta(kernel: Beta, rng, learned, theta, slots):
    """Draw the rate, which t alone tells of, and given p and t the place, and lam, each on a slice."""
    total = 0.0
    for h in slots:
        total += theta[A, h] + theta[B, h]
    shape = learned.shape + len(slots) * (kernel.a_shape + kernel.b_shape)
    values, spread = learned.values, learned.spread[0]
    values[SCALE, 0] = max(rng.standard_gamma(shape) / (learned.rate[0] + total), _LEAST_RATE)
    weighted = len(learned.weight) > 0
    if len(slots) == 0:
        values[LOCATION, 0] = learned.centre[0] + spread * rng.standard_normal()
        if weighted:
            draw_weight(rng, learned, 0, 0.0)
        return
    curve = BaseCurve(with_base(kernel, values), learned, theta, slots, LOCATION)
    x = values[LOCATION, 0]
    level = log_height(curve, x) - rng.standard_exponential()
    width = spread / math.sqrt(1.0 + curve.kernel.lam * total)  # near to how far it may go
    values[LOCATION, 0] = draw_on_slice(rng, curve, x, level, 3.0 * width)[0]
    if weighted:
        curve = BaseCurve(with_base(kernel, values), learned, theta, slots, WEIGHT)
        x = math.log(values[WEIGHT, 0])
        level = log_height(curve, x) - rng.standard_exponential()
        values[WEIGHT, 0] = math.exp(draw_on_slice(rng, curve, x, level, 2.0, _LOWEST, _HIGHEST)[0])
