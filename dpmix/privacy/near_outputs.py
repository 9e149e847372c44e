"""Responses of whole numbers: an input has near outputs, each r times as likely as each other one.

k-ary randomized response and the square wave on a grid are of this kind (methods, section 13). With r = u/v a
rational number just below e^eps, near outputs have the weight u and the others the weight v, whole numbers:
two inputs have the ratio r, 1/r or 1 at any output, so that a response is log(r)-DP exactly. Whether one is
near is drawn by comparing its rational probability with random bits, as many as it takes, and which one
among equals by rejection: no floating-point number has a part in it.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.exact import Source, bernoulli, digits, integers, log1p, round_up

LARGEST_EPSILON = 500.0
"""Of one response: beyond it sums of weights leave the doubles that readers compute with."""
SMALLEST_EPSILON = 1e-8
"""Of one response: below it the ratio cannot be told from 1 in weights of this size."""
_CLOSE = 2**34  # eps over eps - log r, at least
_BITS = 64
_GAP = 1e-10  # of the largest Renyi divergence beside its order, relatively
_HALVED = 20_000  # intervals at most: at tiny losses all orders are about as good, and rho is a little more
_BLOCK = 1 << 20

Ints = NDArray[np.int64]


def ratio_below(epsilon: Fraction) -> Fraction:
    """Return a ratio r just below e^eps: eps - log r is above 0 and below 1e-9 eps.

    Its denominator is a power of two, as small as that takes, and its numerator has 64 digits in base two at
    most before zeros. e^eps is bounded from below: decimals of enough digits are rounded correctly, and more
    than they are off is taken away, with a share of 2^-40 of eps, so that log r rounded up is still below.

    Raises
    ------
    PrivacyError
        Where epsilon is so small that the ratio is 1, or too large.
    """
    if not epsilon >= Fraction(SMALLEST_EPSILON):
        raise PrivacyError(
            f"mechanism.epsilon: {float(epsilon):g} for one answer makes all answers equally likely, the "
            f"ratio of their chances being 1, so that nothing is released; ask for {SMALLEST_EPSILON:g} or "
            "more"
        )
    if epsilon > Fraction(LARGEST_EPSILON):
        raise PrivacyError(
            f"mechanism.epsilon: {float(epsilon):g} for one answer is beyond {LARGEST_EPSILON:g}, up to "
            "which it can be drawn and read; ask for less"
        )
    with localcontext(digits(400)):
        power = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        least = Fraction(power * (1 - Decimal(10) ** -390)) * (1 - epsilon / 2**40)
    v = 1
    while v * least * epsilon < _CLOSE:
        v *= 2
    u = math.floor(v * least)
    spare = max(u.bit_length() - _BITS, 0)
    return Fraction(u >> spare << spare, v)


@dataclass(frozen=True)
class NearOutputs:
    """A response with `near` outputs of weight u and `far` ones of weight v, ratio = u/v > 1.

    Parameters
    ----------
    near, far : int
        Numbers of outputs, whatever the input.
    ratio : Fraction
        In lowest terms.
    moved : int
        Most outputs that are near for one input and not for another.
    """

    near: int
    far: int
    ratio: Fraction
    moved: int

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises
        ------
        PrivacyError
            Where they make no response.
        """
        if not (self.near >= 1 and self.far >= 1 and self.ratio > 1 and 1 <= self.moved <= self.near):
            raise PrivacyError("a response has near outputs, others, and a ratio above 1")

    @property
    def total(self) -> int:
        """Sum of the weights, in units of 1/(total)."""
        return self.near * self.ratio.numerator + self.far * self.ratio.denominator

    def guarantee(self, columns: int) -> Guarantee:
        """Return that of as many independent responses of a record, exactly but for rounding up.

        Renyi divergences of independent responses add, and are the same for each.
        """
        with localcontext(digits()):
            each = log1p(Decimal(self.ratio.numerator - self.ratio.denominator) / self.ratio.denominator)
            loss = round_up(columns * each)
            one = round_up(each)
        rho = near_rho(one, float(Fraction(self.moved * self.ratio.denominator, self.total)))
        return Guarantee(loss, 0.0, math.nextafter(columns * rho, math.inf))

    def draw(self, inputs: Ints, source: Source) -> Ints:
        """Draw an output for each input (n,) from 0 to `far`.

        The near outputs of input i are i, .., i + near - 1, of near + far in all.
        """
        if inputs.size and not (int(inputs.min()) >= 0 and int(inputs.max()) <= self.far):
            raise PrivacyError("a response is to a whole number in its range only")
        found = np.empty(inputs.size, dtype=np.int64)
        chance = (self.near * self.ratio.numerator, self.total)
        for start in range(0, inputs.size, _BLOCK):
            part = inputs[start : start + _BLOCK]
            near = bernoulli(chance, part.size, source)
            count = int(np.count_nonzero(near))
            drawn = np.empty(part.size, dtype=np.int64)
            drawn[near] = part[near] + integers(self.near, count, source)
            other = integers(self.far, part.size - count, source)
            drawn[~near] = np.where(other < part[~near], other, other + self.near)
            found[start : start + part.size] = drawn
        return found


def draw_columns(
    responses: Sequence[NearOutputs],
    inputs: Ints,
    source: Source,
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """Return independent responses to inputs (n, d), column by column; `progress` counts them."""
    released = np.empty(inputs.shape)
    for column, response in enumerate(responses):
        released[:, column] = response.draw(np.ascontiguousarray(inputs[:, column]), source)
        if progress is not None:
            progress(len(inputs) * (column + 1))
    return released


@functools.lru_cache(maxsize=1024)
def near_rho(loss: float, share: float) -> float:
    """Return the rho of two inputs that swap the probabilities r s and s of some outputs, rounded up.

    It is the largest D_alpha/alpha over alpha > 1. With L = `loss` = log r and s = `share`, all other outputs
    being as likely for one as for the other, exp((alpha - 1) D_alpha) = 1 + s (r^(alpha - 1) - 1)
    (r - r^(1 - alpha)). Its log g is convex and 0 at order 1, so that on an interval it stays below its
    chord: orders are halved until no interval can hold more than the best order found, to a relative 1e-10.
    Where most of the weight moves that is order 1, the Kullback-Leibler divergence; where little does, an
    order in between.
    """

    def divergence(order: float) -> float:
        if order == 1.0:
            return share * loss * math.expm1(loss)
        up = (order - 1.0) * loss
        log_up = up + math.log(-math.expm1(-up))
        log_term = math.log(share) + log_up + loss + math.log(-math.expm1(-order * loss))
        excess = math.log1p(math.exp(log_term)) if log_term < 30.0 else log_term + math.exp(-log_term)
        return excess / (order - 1.0)

    def bound(a: float, b: float) -> float:
        first, last = divergence(a) * (a - 1.0), divergence(b) * (b - 1.0)
        slope = (last - first) / (b - a)
        if a == 1.0:
            return slope
        start = first - slope * a
        orders = [a, b]
        root = start * start + slope * start
        if root > 0.0:
            orders += [(-start + sign * math.sqrt(root)) / slope for sign in (-1.0, 1.0)]
        return max((first + slope * (x - a)) / (x * (x - 1.0)) for x in orders if a <= x <= b)

    best = divergence(1.0)
    top = 1.0 + loss / best
    heap = [(-bound(1.0, top), 1.0, top)]
    for _ in range(_HALVED):
        highest, a, b = heap[0]
        if -highest <= best * (1.0 + _GAP) or not a < 0.5 * (a + b) < b:
            break
        heapq.heappop(heap)
        middle = 0.5 * (a + b)
        best = max(best, divergence(middle) / middle)
        for part in ((a, middle), (middle, b)):
            heapq.heappush(heap, (-bound(*part), *part))
    return math.nextafter(max(best, -heap[0][0]) * (1.0 + 1e-12), math.inf)
