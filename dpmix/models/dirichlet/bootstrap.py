"""The parametric bootstrap of a release of compositions (Guo, Barrientos and Pena, Algorithm 2).

A draw takes noise from the release, such that what is left is a statistic that data can have; simulates a
database given the estimate from that; and is the estimate from the censored statistic of the simulated one.
Draws are independent. Where censoring leaves that statistic out of the range of uncensored ones there is no
estimate, and the draw is made anew. Of a release in two parts, noise is taken from each, and the means are
pooled. Scores that the threshold was chosen by are left out, and it is taken for fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.models.dirichlet.latent_records import Shapes, make_shapes
from dpmix.models.dirichlet.mean_logarithms import dirichlet_mle, release_generator, simulate_means
from dpmix.models.dirichlet.model import Composition, CompositionPart, parts_of
from dpmix.numerics.jit import njit
from dpmix.run.model_protocols import ParametricChain

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

# Draws of the statistic before noise, given its noisy value alone and that it is one that data can have.
#
# The target is prod_j exp(-|s_j - S_j| / b) on the range {s : sum_j exp(s_j) < 1} of the means of logarithms
# of compositions; S may lie anywhere, far outside the range too. Draws are independent and exact, by
# rejection from a product of one-dimensional laws whose tilt is chosen for this S:
#
# - The entry with the largest S_j, the last one here, is integrated out. With y the sum of exp(s_j) over the
#   others, it leaves them with the factor F(log(1 - y)), F its distribution function. As F is log-concave and
#   increases, and log(1 - y) is concave, log F(log(1 - y)) lies below its tangent at any y0.
# - Under the tangent, of slope -mu, the others are independent with log density -|s - S_j| / b - mu exp(s),
#   which is concave: these are drawn below a hull of tangents, one segment after the other (Gilks and Wild
#   1992), and kept with probability exp(log F - tangent) where y < 1.
# - y0 is where the mass below the tangents is smallest, which is a convex problem in mu, solved once.
#
# Without the tilt the share of draws in the range falls like exp(-distance / b).

Floats = NDArray[np.float64]

_DROPS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0])  # of the log density, where tangents touch
_TANGENTS = 2 * len(_DROPS)
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_FARTHEST = 40.0  # of log(1 - y0) in scales above S_d, and from 0
_FINEST = 2.0**-40  # statistics are released on a coarser grid


class RangeNoise(NamedTuple):
    """What draws of s are made from.

    Parameters
    ----------
    released : ndarray, shape (d,)
        S, the last entry being the largest.
    places : ndarray of int64, shape (d,)
        Where in the statistic each entry belongs.
    scale : float
        b, at least 2^-40.
    tilt : ndarray, shape (3,)
        y0, log F(log(1 - y0)) and mu.
    modes : ndarray, shape (d - 1,)
        Where the log density of each of the others is largest; hulls are in units of `scale` from there.
    counts : ndarray of int64, shape (d - 1,)
        Number of segments of each hull.
    hulls : ndarray, shape (d - 1, segments, 5)
        Of each segment its bounds, where it touches the log density, the height there and the slope.
    shares : ndarray, shape (d - 1, segments)
        Cumulative shares of the mass below the hull.
    """

    released: Floats
    places: NDArray[np.int64]
    scale: float
    tilt: Floats
    modes: Floats
    counts: NDArray[np.int64]
    hulls: Floats
    shares: Floats


def make_range_noise(released: Floats, scale: float) -> RangeNoise:
    """Prepare draws of s.

    Parameters
    ----------
    released : ndarray, shape (d,)
        S, finite.
    scale : float
        b > 0 of the Laplace noise; below 2^-40 it is taken to be that.
    """
    places = np.argsort(released, kind="stable")
    d = len(released)
    noise = RangeNoise(
        np.ascontiguousarray(released[places], dtype=np.float64),
        places.astype(np.int64),
        max(float(scale), _FINEST),
        np.zeros(3),
        np.zeros(d - 1),
        np.zeros(d - 1, dtype=np.int64),
        np.zeros((d - 1, _TANGENTS, 5)),
        np.zeros((d - 1, _TANGENTS)),
    )
    _tune(noise)
    return noise


@njit
def _log_below(released, scale, point):
    """Return log F(point), and its slope, of the Laplace distribution around `released`."""
    z = (point - released) / scale
    if z < 0.0:
        return z - math.log(2.0), 1.0 / scale
    half = 0.5 * math.exp(-z)
    return math.log1p(-half), half / (1.0 - half) / scale


@njit
def _height(u, gap, pull, scale):
    """Return the log density at `u`, and its slope: -|u - gap| - pull (exp(scale u) - 1)."""
    rise = math.expm1(scale * u)
    side = 1.0 if u < gap else -1.0
    return -abs(u - gap) - pull * rise, side - pull * scale * (rise + 1.0)


@njit
def _reach(drop, sign, gap, pull, scale, end):
    """Return where the log density has fallen by `drop` from u = 0 on one side; NaN where it ends before."""
    top = -gap
    width = 1.0
    while True:
        u = sign * width
        if u >= end:
            if _height(end, gap, pull, scale)[0] > top - drop:
                return math.nan
            width = end
            break
        if _height(u, gap, pull, scale)[0] <= top - drop:
            break
        width *= 2.0
    low, high = 0.0, width
    for _ in range(40):
        middle = 0.5 * (low + high)
        if _height(sign * middle, gap, pull, scale)[0] > top - drop:
            low = middle
        else:
            high = middle
    return sign * 0.5 * (low + high)


@njit
def _build_hull(released, scale, mu, hull, shares):
    """Set the hull of one entry; return its number of segments, the mode, and the log of the mass below."""
    mode = min(released, 0.0)
    if mu * scale * math.exp(mode) > 1.0:
        mode = min(mode, -math.log(mu * scale))
    pull = mu * math.exp(mode)
    gap = (released - mode) / scale
    end = -mode / scale
    count = 0
    for k in range(_TANGENTS):
        left = k < len(_DROPS)
        drop = _DROPS[len(_DROPS) - 1 - k] if left else _DROPS[k - len(_DROPS)]
        if drop == 0.0:
            # the slopes on both sides of the mode, which may be a kink
            point, height = 0.0, -gap
            slope = (1.0 if left or gap > 0.0 else -1.0) - pull * scale
            if not left and end <= 0.0:
                continue
        else:
            point = _reach(drop, -1.0 if left else 1.0, gap, pull, scale, end)
            if math.isnan(point):
                continue
            height, slope = _height(point, gap, pull, scale)
        if count > 0 and hull[count - 1, 4] - slope <= 1e-9 * max(1.0, abs(slope)):
            continue
        hull[count, 2], hull[count, 3], hull[count, 4] = point, height, slope
        count += 1
    hull[0, 0] = -math.inf
    for k in range(count - 1):
        reach = hull[k + 1, 3] - hull[k, 3] - hull[k + 1, 2] * hull[k + 1, 4] + hull[k, 2] * hull[k, 4]
        meet = reach / (hull[k, 4] - hull[k + 1, 4])
        hull[k, 1] = min(max(meet, hull[k, 2]), hull[k + 1, 2])
        hull[k + 1, 0] = hull[k, 1]
    hull[count - 1, 1] = end
    total = 0.0
    for k in range(count):
        low, high, point, height, slope = hull[k]
        if abs(slope) * (high - low) < 1e-12:
            mass = (high - low) * math.exp(height + gap)
        else:
            near = high if slope > 0.0 else low
            mass = math.exp(height + gap + slope * (near - point))
            mass *= -math.expm1(-abs(slope) * (high - low)) / abs(slope)
        total += mass
        shares[k] = total
    for k in range(count):
        shares[k] /= total
    return count, mode, math.log(total) - gap


@njit
def _log_tilt(released, scale, z):
    """Return log mu of the tangent where log(1 - y0) is `z` scales above `released`."""
    slope = _log_below(released, 1.0, released + z)[1]
    return math.log(slope / scale) - (released + scale * z)


@njit
def _touching(released, scale, log_mu, highest):
    """Return the z at most `highest` where the tangent has slope -mu: `_log_tilt` falls in z."""
    if log_mu >= -math.log(scale) - released:
        return min((-math.log(scale) - log_mu - released) / scale, highest)
    low, high = 0.0, highest
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _log_tilt(released, scale, middle) > log_mu:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@njit
def _tilt_by(noise, log_mu, highest):
    """Tilt by the tangent of this slope; return the log of the mass below it."""
    last = len(noise.released) - 1
    rest = noise.released[last] + noise.scale * _touching(noise.released[last], noise.scale, log_mu, highest)
    y = -math.expm1(min(rest, 0.0))
    value, slope = _log_below(noise.released[last], noise.scale, min(rest, 0.0))
    mu = slope * math.exp(-min(rest, 0.0))
    noise.tilt[0], noise.tilt[1], noise.tilt[2] = y, value, mu
    total, placed = value, y
    for j in range(last):
        count, mode, mass = _build_hull(noise.released[j], noise.scale, mu, noise.hulls[j], noise.shares[j])
        noise.counts[j], noise.modes[j] = count, mode
        total += mass
        placed -= math.exp(mode)
    return total + mu * placed


@njit
def _tune(noise):
    """Tilt by the tangent with the least mass below, by golden section in log mu."""
    center, scale = noise.released[len(noise.released) - 1], noise.scale
    highest = min(_FARTHEST, -center / scale)
    low = _log_tilt(center, scale, highest)
    high = _FARTHEST - math.log(scale)
    first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_first, at_second = _tilt_by(noise, first, highest), _tilt_by(noise, second, highest)
    for _ in range(50):
        if at_first <= at_second:
            high, second, at_second = second, first, at_first
            first = high - _GOLDEN * (high - low)
            at_first = _tilt_by(noise, first, highest)
        else:
            low, first, at_first = first, second, at_second
            second = low + _GOLDEN * (high - low)
            at_second = _tilt_by(noise, second, highest)
    _tilt_by(noise, first if at_first <= at_second else second, highest)


@njit
def _draw_entry(noise, rng, j):
    """Draw one of the others under the tilt."""
    hull, shares, scale = noise.hulls[j], noise.shares[j], noise.scale
    mode = noise.modes[j]
    gap = (noise.released[j] - mode) / scale
    pull = noise.tilt[2] * math.exp(mode)
    while True:
        pick = rng.random()
        k = 0
        while k < noise.counts[j] - 1 and pick > shares[k]:
            k += 1
        low, high, point, height, slope = hull[k]
        share = rng.random()
        span = abs(slope) * (high - low)
        if span < 1e-12:
            u = low + share * (high - low)
        elif slope > 0.0:
            u = high + math.log(share + (1.0 - share) * math.exp(-span)) / slope
        else:
            u = low + math.log(share + (1.0 - share) * math.exp(-span)) / slope
        fall = height + slope * (u - point) - _height(u, gap, pull, scale)[0]
        if rng.standard_exponential() >= fall:
            return mode + scale * u


@njit
def draw_statistic(noise, rng, out):
    """Draw s to `out` (d,); return how many points were proposed.

    Parameters
    ----------
    noise : RangeNoise
    rng : Generator
    out : ndarray, shape (d,)
    """
    last = len(noise.released) - 1
    y0, value, mu = noise.tilt
    tries = 0
    while True:
        tries += 1
        y = 0.0
        for j in range(last):
            s = _draw_entry(noise, rng, j)
            out[noise.places[j]] = s
            y += math.exp(s)
        if not y < 1.0:
            continue
        rest = math.log1p(-y)
        below = _log_below(noise.released[last], noise.scale, rest)[0]
        if rng.standard_exponential() < value - mu * (y - y0) - below:
            continue
        center, scale = noise.released[last], noise.scale
        if rest < center:
            s = rest - scale * rng.standard_exponential()
        else:
            share = rng.random() * math.exp(below)
            s = (
                center + scale * math.log(2.0 * share)
                if share < 0.5
                else (center - scale * math.log(2.0 * (1.0 - share)))
            )
        out[noise.places[last]] = s
        total = 0.0
        for j in range(last + 1):
            total += math.exp(out[j])
        if total < 1.0:  # rounding may put it on the edge
            return tries


_FEWEST, _MOST = 20, 200  # draws that a share is told from
_RECORDS = 2_000_000  # that these draws may simulate


class Refits(NamedTuple):
    """What refits are made from.

    Noise of the `first` part of records and of the `second`, the same again where there is one; `share` of
    records in the first; their number `size`; `floor`, log a; and room.
    """

    first: RangeNoise
    second: RangeNoise
    share: float
    size: int
    floor: float
    shapes: Shapes
    means: Floats
    other: Floats


def make_refits(parts: list[CompositionPart]) -> Refits:
    """Prepare draws from the parts of a release."""
    first, last = parts[0], parts[-1]
    size = sum(part.size for part in parts)
    d = len(first.released)
    return Refits(
        make_range_noise(first.released, first.scale),
        make_range_noise(last.released, last.scale),
        first.size / size,
        size,
        math.log(first.threshold),
        make_shapes(d),
        np.empty(d),
        np.empty(d),
    )


@njit
def draw_refits(refits, rng, alphas, most):
    """Draw rows of alphas (m, d), until all are or `most` refits were tried; return how many rows, and tries.

    Rows not drawn are NaN.
    """
    means, shapes = refits.means, refits.shapes
    tries = 0
    alphas[:] = math.nan
    drawn = 0
    while drawn < len(alphas) and tries < most:
        tries += 1
        draw_statistic(refits.first, rng, means)
        if refits.share < 1.0:
            draw_statistic(refits.second, rng, refits.other)
            for j in range(len(means)):
                means[j] = refits.share * means[j] + (1.0 - refits.share) * refits.other[j]
        if not dirichlet_mle(means, shapes.alpha):
            continue  # by rounding alone
        simulate_means(rng, shapes, refits.size, refits.floor, means)
        if dirichlet_mle(means, alphas[drawn]):
            drawn += 1
    return drawn, tries


def build(spec: RunSpec, release: Release) -> Bootstrap:
    """Return the model of a spec given a release; see `dpmix.api.task.build`."""
    return Bootstrap(release, parts_of(release))


class Bootstrap(Composition):
    """The bootstrap given noisy log moments: draws of the estimate of alpha, not of a posterior.

    The constant `bootstrap_redrawn` is the share of refits without an estimate, from draws made beforehand.

    Parameters
    ----------
    release : Release
    parts : list of Part

    Raises
    ------
    DataError
        When hardly any refit has an estimate.
    """

    def __init__(self, release: Release, parts: list[CompositionPart]) -> None:
        self.parts = parts
        trial = make_refits(parts)
        alphas = np.empty((max(_FEWEST, min(_MOST, _RECORDS // trial.size)), len(trial.means)))
        most = 10 * len(alphas)
        drawn, tries = draw_refits(trial, release_generator(release, "bootstrap"), alphas, most)
        if drawn == 0:
            raise DataError(
                f"the threshold {parts[0].threshold:g} censors so much that of {most} simulated databases "
                "none had a maximum likelihood estimate; use sampler.kind data_augmentation, or release with "
                "a smaller threshold"
            )
        super().__init__(release, {"bootstrap_redrawn": 1.0 - drawn / tries})

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> BootstrapChain:
        """Return a chain of independent draws."""
        return BootstrapChain(self, rng)


class BootstrapChain(ParametricChain):
    """Independent draws of the estimate; `acceptance_rate` is the share of refits so far that have one."""

    model: Bootstrap

    def __init__(self, model: Bootstrap, rng: Generator) -> None:
        self._refits = make_refits(model.parts)
        self._alpha = np.empty((1, model.components))
        self._made = np.zeros(2)  # refits with an estimate, and all
        super().__init__(model, rng, {"made": self._made})

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Draw an estimate, and a record given it."""
        self._made += draw_refits(self._refits, self.rng, self._alpha, 1_000_000)
        self.moves[:] = self._made
        self.model.write(row, out, self._alpha[0], self.rng)
