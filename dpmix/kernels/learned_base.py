"""Base measures whose place and scale are learned with the mixture (methods, section 15).

Of column l the base measure has a location mu0_l and a scale b_l (NIG: b; NIW: the diagonal of Psi) that all
components share, with priors of their own:

    mu0_l ~ N(centre_l, spread_l^2),    b_l ~ Gamma(shape, rate_l).

Given the components both are conjugate (Richardson and Green 1997; Rasmussen 2000). Components measured from
mu0 in units of the root of b, t = (mu - mu0) / sqrt(b) and r = sigma2 / b, do not depend on either a priori:
a move of mu0 or b that takes the components along has the ratio of its own priors alone to pay, and that of
the likelihoods.

So is lambda of normal kernels, the weight of the location, where it is learned: its Gamma(s, rate) becomes
Gamma(s + k d / 2, rate + sum_h (mu_h - mu0)' C_h^-1 (mu_h - mu0) / 2) given k components of d columns. Under
rate = (s - 1) / lambda0 the mean of 1 / lambda is 1 / lambda0, so that means vary a priori as with lambda0
fixed. Narrow components far apart then say that components lie far apart for their width; under a fixed
lambda they are made wider instead.

Other kernels have what stands for these, as the beta kernel the logit of a place, and a rate; what is not
conjugate they draw in their own way, and what a move adds to the ratio `carry` tells.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.numerics.jit import dispatch, njit

LOCATION, SCALE = 0, 1  # rows of the values, and which of the two a move is of
WEIGHT = 2  # row of lambda, the same in each column, where it is learned
_ADAPTED = 2  # place in the steps, after those of location and scale
_TARGET = 0.4  # acceptance of moves of one number
_SMALLEST, _LARGEST = -9.0, 2.0  # logarithms of steps
_TINY = 1e-290

Floats = NDArray[np.float64]


class LearnedBase(NamedTuple):
    """Location and scale of the base measure as a chain has them, and their prior; d columns.

    Of beta kernels these are the logit of the place, and the rate.

    values (2, d): mu0 and b, changed in place, (3, d) with lambda where it is learned; centre, spread, rate
    (d,) and shape, as above, where `rate` is empty where the base measure stays what it is; steps (3,):
    logarithms of the steps of moves that take components along, of location and scale, and how often they
    were adapted; weight (2,): shape and rate of lambda's prior, empty where it is not learned.
    """

    values: Any
    centre: Any
    spread: Any
    shape: float
    rate: Any
    steps: Any
    weight: Any

    @property
    def learns(self) -> bool:
        """Whether location and scale move."""
        return len(self.rate) > 0

    def own(self) -> LearnedBase:
        """Return the same for a chain of its own, whose values may change."""
        return self._replace(values=self.values.copy(), steps=self.steps.copy())


def fixed_base() -> LearnedBase:
    """Return a base measure that stays what it is: nothing is learned of it."""
    none = np.empty(0)
    return LearnedBase(np.empty((2, 0)), none, none, 1.0, none, np.zeros(3), none)


def learned_base(kernel: Any, spread: Floats, shape: float, weight: float = 0.0) -> LearnedBase:
    """Return the base measure of a kernel as the centre of one that is learned.

    Parameters
    ----------
    kernel : NamedTuple
        Of the base measure at the means of both priors; its `learned_values` (2, d) are location and scale.
    spread : float64 array (d,)
        Prior standard deviations of the locations.
    shape : float
        Of the gamma priors of the scales.
    weight : float, optional
        Shape s > 1 of lambda's gamma prior, under which the mean of 1 / lambda is the kernel's; 0 where
        lambda stays what it is.
    """
    values = getattr(kernel, "learned_values", np.empty(0))
    if not values.size:
        raise TypeError(f"the base measure of {type(kernel).__name__} is not learned")
    prior = np.empty(0)
    if weight:
        prior = np.array([weight, (weight - 1.0) / kernel.lam])
        values = np.vstack([values, np.full(values.shape[-1], float(kernel.lam))])
    return LearnedBase(
        values,
        values[LOCATION].copy(),
        np.asarray(spread, dtype=np.float64).reshape(-1),
        float(shape),
        shape / values[SCALE],
        np.array([-1.0, 0.0, 0.0]),
        prior,
    )


@dispatch()
def with_base(kernel, values):
    """Return the kernel with the base measure of these values (2, d), itself where there are none."""


@dispatch()
def gather(kernel, theta, h, sums):
    """Add a component's precision to ``sums[:d]``, (d, d), and precision times mean to ``sums[d]``."""


@dispatch()
def gap_square(kernel, theta, h):
    """Return the square of a component's gap from the location, in units of its own spread."""


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


@njit
def draw_weight(rng, learned, terms, squares):
    """Draw lambda given so many gaps of components' means, by columns, and the sum of their squares."""
    drawn = rng.standard_gamma(learned.weight[0] + 0.5 * terms) / (learned.weight[1] + 0.5 * squares)
    for j in range(learned.values.shape[1]):
        learned.values[WEIGHT, j] = max(drawn, _TINY)


def draw_conjugate(kernel, rng, learned, theta, slots):
    """Draw as `draw_base_given`, for kernels whose location, scale and lambda are conjugate."""
    d = learned.values.shape[1]
    sums = np.zeros((d + 1, d))
    for h in slots:
        gather(kernel, theta, h, sums)
    draw_base(kernel, rng, learned, sums, len(slots))
    if len(learned.weight) > 0:
        now, squares = with_base(kernel, learned.values), 0.0
        for h in slots:
            squares += gap_square(now, theta, h)
        draw_weight(rng, learned, len(slots) * d, squares)


def own_base(kernel: Any, rng: Generator, learned: LearnedBase | None) -> LearnedBase:
    """Return the base measure of one chain, from its prior where it is learned: chains start apart."""
    own = (learned or fixed_base()).own()
    if own.learns:
        d = own.values.shape[1]
        draw_base(kernel, rng, own, np.zeros((d + 1, d)), 0)
        if len(own.weight):
            draw_weight(rng, own, 0, 0.0)
        own.values[SCALE] = np.maximum(own.values[SCALE], getattr(kernel, "least_scale", 0.0))
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
