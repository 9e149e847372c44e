"""Base measures whose place and scale are learned with the mixture (methods, section 15).

Of column l the base measure has a location mu0_l and a scale b_l (NIG: b; NIW: the diagonal of Psi) that all
components share, with priors of their own:

    mu0_l ~ N(centre_l, spread_l^2),    b_l ~ Gamma(shape, rate_l).

Given the components both are conjugate (Richardson and Green 1997; Rasmussen 2000). Components measured from
mu0 in units of the root of b, t = (mu - mu0) / sqrt(b) and r = sigma2 / b, do not depend on either a priori:
a move of mu0 or b that takes the components along has the ratio of its own priors alone to pay, and that of
the likelihoods.

Of a beta kernel the location is the logit of the place around which components lie, and the scale the rate of
a + b: the smaller, the narrower components are (`dpmix.kernels.beta`). The rate is conjugate, the place moves
on a slice. There components that are taken along keep (a + b) rate, and the distance of log a - log b from
the place in units of the root of the rate, which nearly takes them to themselves a priori: the rest of the
ratio is told by `carry`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.kernels.beta import LAMBDA, A, B, Beta, log_sides
from dpmix.kernels.kernel_functions import log_prior
from dpmix.kernels.multivariate import MultivariateNormal
from dpmix.kernels.normal import MEAN, VARIANCE, NormalNIG
from dpmix.kernels.truncated_nig import NormalTruncatedNIG
from dpmix.numerics.factors import cholesky, solve_lower
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.slices import draw_on_slice, log_height
from dpmix.numerics.special import log_beta

LOCATION, SCALE = 0, 1  # rows of the values, and which of the two a move is of
_ADAPTED = 2  # place in the steps, after those of location and scale
_TARGET = 0.4  # acceptance of moves of one number
_SMALLEST, _LARGEST = -9.0, 2.0  # logarithms of steps
_TINY = 1e-290
_LEAST_RATE = 1e-8  # of beta kernels: clusters of some hundred thousandths of the interval

Floats = NDArray[np.float64]


class LearnedBase(NamedTuple):
    """Location and scale of the base measure as a chain has them, and their prior; d columns.

    Of beta kernels these are the logit of the place, and the rate.

    values (2, d): mu0 and b, changed in place; centre, spread, rate (d,) and shape, as above, where `rate` is
    empty where the base measure stays what it is; steps (3,): logarithms of the steps of moves that take
    components along, of location and scale, and how often they were adapted.
    """

    values: Any
    centre: Any
    spread: Any
    shape: float
    rate: Any
    steps: Any

    @property
    def learns(self) -> bool:
        """Whether location and scale move."""
        return len(self.rate) > 0

    def own(self) -> LearnedBase:
        """Return the same for a chain of its own, whose values may change."""
        return self._replace(values=self.values.copy(), steps=self.steps.copy())


def _numbers(kernel: Any) -> Floats:
    """Return location and scale of a kernel's base measure, (2, d); of kernels without these, none."""
    if isinstance(kernel, NormalNIG):
        return np.array([[float(kernel.mu0)], [float(kernel.b)]])
    if isinstance(kernel, MultivariateNormal):
        return np.array([kernel.mu0, np.diagonal(kernel.psi)], dtype=np.float64)
    if isinstance(kernel, Beta) and kernel.a_rate == kernel.b_rate:
        return np.array([[math.log(kernel.a_shape / kernel.b_shape)], [float(kernel.a_rate)]])
    return np.empty((2, 0))


def fixed_base(kernel: Any) -> LearnedBase:
    """Return the base measure of a kernel as one that stays what it is."""
    none = np.empty(0)
    values = np.empty((2, 0)) if isinstance(kernel, Beta) else _numbers(kernel)
    return LearnedBase(values, none, none, 1.0, none, np.zeros(3))


def learned_base(kernel: Any, spread: Floats, shape: float) -> LearnedBase:
    """Return the base measure of a kernel as the centre of one that is learned.

    Parameters
    ----------
    kernel : NormalNIG, MultivariateNormal or Beta
        Of the base measure at the means of both priors; Psi diagonal, and of a beta kernel one rate.
    spread : float64 array (d,)
        Prior standard deviations of the locations.
    shape : float
        Of the gamma priors of the scales.
    """
    values = _numbers(kernel)
    if not values.size:
        raise TypeError(f"the base measure of {type(kernel).__name__} is not learned")
    return LearnedBase(
        values,
        values[LOCATION].copy(),
        np.asarray(spread, dtype=np.float64).reshape(-1),
        float(shape),
        shape / values[SCALE],
        np.array([-1.0, 0.0, 0.0]),
    )


@dispatch()
def with_base(kernel, values):
    """Return the kernel with the base measure of these values."""


@dispatch()
def gather(kernel, theta, h, sums):
    """Add a component's precision to ``sums[:d]``, (d, d), and precision times mean to ``sums[d]``."""


@dispatch()
def carry(kernel, theta, h, column, shift, factor, values):
    """Take a component along: a column's location moved by `shift`, its scale multiplied by `factor`.

    `values` are those before. Return the logarithm of the factor of its prior density, with the Jacobian.
    """


@dispatch()
def component_terms(kernel):
    """Return what a component adds to a scale's shape, its weight in the rate, and that of its precision."""


@dispatch()
def draw_base_given(kernel, rng, learned, theta, slots):
    """Draw location and scale given the components theta[:, h] of all h in `slots`."""


@with_base.register
def _with_nig(kernel: NormalNIG, values):
    return NormalNIG(values[LOCATION, 0], kernel.lam, kernel.a, values[SCALE, 0])


@gather.register
def _gather_nig(kernel: NormalNIG, theta, h, sums):
    precision = 1.0 / theta[VARIANCE, h]
    sums[0, 0] += precision
    sums[1, 0] += precision * theta[MEAN, h]


@carry.register
def _carry_nig(kernel: NormalNIG, theta, h, column, shift, factor, values):
    centre = values[LOCATION, 0]
    theta[VARIANCE, h] *= factor
    theta[MEAN, h] = centre + shift + math.sqrt(factor) * (theta[MEAN, h] - centre)
    return 0.0


@component_terms.register
def _terms_nig(kernel: NormalNIG):
    return kernel.a, 1.0, kernel.lam


@with_base.register
def _with_niw(kernel: MultivariateNormal, values):
    d = values.shape[1]
    mu0, psi = np.empty(d), np.zeros((d, d))
    for i in range(d):
        mu0[i] = values[LOCATION, i]
        for j in range(d):  # what is learned is its diagonal
            psi[i, j] = values[SCALE, i] if i == j else kernel.psi[i, j]
    return MultivariateNormal(mu0, kernel.lam, kernel.nu, psi)


@gather.register
def _gather_niw(kernel: MultivariateNormal, theta, h, sums):
    d = len(kernel.mu0)
    factor = np.zeros((d, d))
    cholesky(theta[d:, h].copy().reshape(d, d), factor)
    columns = np.zeros((d, d))  # row i solves factor x = unit vector i
    for i in range(d):
        columns[i, i] = 1.0
        solve_lower(factor, columns[i])
    for i in range(d):
        for j in range(d):
            entry = 0.0
            for r in range(d):
                entry += columns[i, r] * columns[j, r]
            sums[i, j] += entry
            sums[d, i] += entry * theta[j, h]


@carry.register
def _carry_niw(kernel: MultivariateNormal, theta, h, column, shift, factor, values):
    d = len(kernel.mu0)
    centre, root = values[LOCATION, column], math.sqrt(factor)
    theta[column, h] = centre + shift + root * (theta[column, h] - centre)
    for i in range(d):
        theta[d + column * d + i, h] *= root
        theta[d + i * d + column, h] *= root
    return 0.0


@component_terms.register
def _terms_niw(kernel: MultivariateNormal):
    return 0.5 * kernel.nu, 0.5, kernel.lam


@with_base.register
def _with_beta(kernel: Beta, values):
    if values.shape[1] == 0:
        return kernel
    rate = values[SCALE, 0]
    shapes = kernel.a_shape, kernel.b_shape
    return Beta(shapes[0], rate, shapes[1], rate, kernel.lo, kernel.width, LAMBDA, values[LOCATION, 0])


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


def _with_same(kernel, values):
    return kernel


def _gather_nothing(kernel, theta, h, sums):
    """Do nothing: the base measure stays what it is."""


def _carry_nothing(kernel, theta, h, column, shift, factor, values):
    """Do nothing: the base measure stays what it is."""
    return 0.0


def _no_terms(kernel):
    return 0.0, 0.0, 0.0


def _draw_nothing(kernel, rng, learned, theta, slots):
    """Do nothing: the base measure stays what it is."""


def keep_fixed(kernel: type) -> None:
    """Register a class of kernels of whose base measure nothing is learned."""
    with_base.register(_with_same, kernel)
    gather.register(_gather_nothing, kernel)
    carry.register(_carry_nothing, kernel)
    component_terms.register(_no_terms, kernel)
    draw_base_given.register(_draw_nothing, kernel)


keep_fixed(NormalTruncatedNIG)


@njit
def draw_base(kernel, rng, learned, sums, count):
    """Draw location and scale given `count` components summed up by `gather`; with none, from the prior."""
    d = learned.values.shape[1]
    own_shape, weight, precisions = component_terms(kernel)
    shape = learned.shape + count * own_shape
    for j in range(d):
        rate = learned.rate[j] + weight * sums[j, j]
        learned.values[SCALE, j] = max(rng.standard_gamma(shape) / rate, _TINY)
    for i in range(d):  # one column given the others
        own = 1.0 / (learned.spread[i] * learned.spread[i])
        precision = own + precisions * sums[i, i]
        total = own * learned.centre[i] + precisions * sums[d, i]
        for j in range(d):
            if j != i:
                total -= precisions * sums[i, j] * learned.values[LOCATION, j]
        learned.values[LOCATION, i] = total / precision + rng.standard_normal() / math.sqrt(precision)


def _draw_conjugate(kernel, rng, learned, theta, slots):
    d = learned.values.shape[1]
    sums = np.zeros((d + 1, d))
    for h in slots:
        gather(kernel, theta, h, sums)
    draw_base(kernel, rng, learned, sums, len(slots))


draw_base_given.register(_draw_conjugate, NormalNIG)
draw_base_given.register(_draw_conjugate, MultivariateNormal)


class PlaceCurve(NamedTuple):
    """The log density of the place of a beta kernel's base measure, given components."""

    kernel: Any
    theta: Any
    slots: Any
    centre: float
    spread: float


@log_height.register
def _log_height(curve: PlaceCurve, x):
    gap = (x - curve.centre) / curve.spread
    value, kernel = -0.5 * gap * gap, curve.kernel
    left, right = log_sides(x)
    share, rest = math.exp(left), math.exp(right)
    for h in curve.slots:
        a, b = curve.theta[A, h], curve.theta[B, h]
        along = LAMBDA * (a + b)
        one, other = along * share, along * rest
        left, right = log_sides(math.log(a) - math.log(b))
        value += one * left + other * right - log_beta(kernel.a_shape + one, kernel.b_shape + other)
    return value


@draw_base_given.register
def _draw_base_of_beta(kernel: Beta, rng, learned, theta, slots):
    """Draw the rate, which t alone tells of, and the place given p and t, on a slice."""
    total = 0.0
    for h in slots:
        total += theta[A, h] + theta[B, h]
    shape = learned.shape + len(slots) * (kernel.a_shape + kernel.b_shape)
    learned.values[SCALE, 0] = max(rng.standard_gamma(shape) / (learned.rate[0] + total), _LEAST_RATE)
    centre, spread = learned.centre[0], learned.spread[0]
    if len(slots) == 0:
        learned.values[LOCATION, 0] = centre + spread * rng.standard_normal()
        return
    curve = PlaceCurve(kernel, theta, slots, centre, spread)
    x = learned.values[LOCATION, 0]
    level = log_height(curve, x) - rng.standard_exponential()
    width = spread / math.sqrt(1.0 + LAMBDA * total)  # near to how far it may go
    learned.values[LOCATION, 0] = draw_on_slice(rng, curve, x, level, 3.0 * width)[0]


def own_base(kernel: Any, rng: Generator, learned: LearnedBase | None) -> LearnedBase:
    """Return the base measure of one chain, from its prior where it is learned: chains start apart."""
    own = (learned or fixed_base(kernel)).own()
    if own.learns:
        d = own.values.shape[1]
        draw_base(kernel, rng, own, np.zeros((d + 1, d)), 0)
        if isinstance(kernel, Beta):
            own.values[SCALE] = np.maximum(own.values[SCALE], _LEAST_RATE)
    return own


@njit
def log_base_ratio(learned, column, shift, factor):
    """Return the log prior ratio of a move of one column's location by `shift` and scale by `factor`.

    The scale's is of its logarithm.
    """
    scale = learned.values[SCALE, column]
    gap = learned.values[LOCATION, column] - learned.centre[column]
    variance = learned.spread[column] * learned.spread[column]
    ratio = learned.shape * math.log(factor) - learned.rate[column] * scale * (factor - 1.0)
    return ratio - 0.5 * ((gap + shift) * (gap + shift) - gap * gap) / variance


@njit
def propose_base(rng, learned, row, column):
    """Return by how much a move of a column's location (row LOCATION) shifts it, or multiplies its scale."""
    step = math.exp(learned.steps[row]) * rng.standard_normal()
    if row == LOCATION:
        return step * learned.spread[column], 1.0
    return 0.0, math.exp(min(max(step, -50.0), 50.0))


@njit
def take_base(learned, column, shift, factor):
    """Move one column's location and scale."""
    learned.values[LOCATION, column] += shift
    learned.values[SCALE, column] = max(learned.values[SCALE, column] * factor, _TINY)


@njit
def adapt_step(learned, row, acceptance):
    """Bring a step nearer to the acceptance that is aimed at; less so the later."""
    learned.steps[_ADAPTED] += 1.0
    moved = learned.steps[row] + (acceptance - _TARGET) / math.sqrt(learned.steps[_ADAPTED])
    learned.steps[row] = min(max(moved, _SMALLEST), _LARGEST)
