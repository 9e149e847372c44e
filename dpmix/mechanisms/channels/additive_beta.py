"""Beta kernel convolved with Laplace or Gaussian noise, for the channels of both.

Everything is in the logit l of u, in which the density of Beta(a, b) is u^a (1 - u)^b / B(a, b), smooth and
with exponential tails whatever a and b are, and in units of the interval, of which `below` is the distance of
the release from the lower end and `above` that from the upper one.

One integral at a time: the product with a one-sided exponential in u has a single mode, with a bell curve at
most two. An integral is a march from a mode outwards by panels of 16 Gauss-Legendre nodes, each so long that
the logarithm of the integrand varies by about ten, until the integrand is e^-38 of its top.

`log_marginal` integrates anew for every release. `fill_marginal` lays out panels in the logit of u once a
call. With Laplace noise it interpolates: the integrals over u < z and u > z go from panel to panel by
recursions of positive terms (g is e^{-z/s} L(z) + e^{z/s} R(z), both scaled at the panel), and within a
panel g is a Chebyshev series through its values at 16 nodes. With Gaussian noise it sums over the nodes of
those panels that matter to z. Over a and b from 0.01 to 1e4 and noise from 1e-3 to 1e3 of the interval the
relative error is below 1e-11 in `log_marginal` and 3e-9 in `fill_marginal`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import chebyshev

from dpmix.mechanisms.channels.channel_functions import log_marginal
from dpmix.numerics.jit import njit
from dpmix.numerics.special import exp, log_beta

# the noise's logarithm: -(z - u)/scale, -(u - z)/scale, or -(z - u)^2 / (2 scale^2)
LEFT, RIGHT, BELL = 1, -1, 0
FARTHEST = 745.0
MOST_PANELS = 1000
_DROP = 38.0
_VARIATION = 10.0
_POLES = 4.0  # the logarithms have poles at +-i pi: panels near 0 are no longer than this
# how much the log density may vary in a panel, how long it may be near 0, how wide in units of the noise, and
# how long while the noise still sees the end: interpolation asks for less than integration
_LAPLACE = (5.0, 2.5, 2.0, 1.25)
_GAUSSIAN = (12.0, 4.0, 1.5, 2.0)
_REACH = 27.0
FEW = 2  # so many releases are integrated one by one

_N = 16  # nodes a panel, by Gauss and Legendre or by Chebyshev
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_N)
_LOG_WEIGHTS = np.log(_WEIGHTS)
_CHEBYSHEV = np.cos(np.pi * (2 * np.arange(_N)[::-1] + 1) / (2 * _N))  # ascending
_SERIES = np.linalg.inv(chebyshev.chebvander(_CHEBYSHEV, _N - 1))  # from values at the nodes to coefficients
_PRIMITIVES = chebyshev.chebint(np.eye(_N), lbnd=-1, axis=0)
_TOTAL = chebyshev.chebval(1.0, _PRIMITIVES) @ _SERIES  # to the integral from -1 to 1
_SERIES_T = np.ascontiguousarray(_SERIES.T)
_INTEGRATE_T = np.ascontiguousarray(  # to integrals from -1 to each node
    (chebyshev.chebval(_CHEBYSHEV, _PRIMITIVES).T @ _SERIES).T
)

# One integral at a time, in logarithms


@njit
def sides(y):
    """Return u, 1 - u, log u, log(1 - u) at logit y."""
    odds = math.exp(-abs(y))
    rest = math.log1p(odds)
    small = odds / (1.0 + odds)
    large = 1.0 / (1.0 + odds)
    if y < 0.0:
        return small, large, y - rest, -rest
    return large, small, -rest, -y - rest


@njit
def _gap(below, above, u, v):
    """Return z - u without cancellation near either end."""
    return below - u if u < 0.5 else v - above


@njit
def exponent(kind, a, b, below, above, scale, y):
    """Return the log of u^a (1 - u)^b times the noise at logit y, its slope and its curvature."""
    u, v, log_u, log_v = sides(y)
    gap = _gap(below, above, u, v)
    if kind == BELL:
        t = gap / scale
        noise = -0.5 * t * t
        pull = t / scale
        bend = -1.0 / (scale * scale)
    else:
        noise = -kind * gap / scale
        pull = kind / scale
        bend = 0.0
    uv = u * v
    slope = a * v - b * u + uv * pull
    curvature = uv * (-(a + b) + (v - u) * pull + uv * bend)
    return a * log_u + b * log_v + noise, slope, curvature


@njit
def advance(kind, a, b, below, above, scale, y, end, variation, poles):
    """Return the end of a panel that starts at y towards `end`, in which the exponent varies little."""
    start, slope, curvature = exponent(kind, a, b, below, above, scale, y)
    direction = 1.0 if end > y else -1.0
    length = poles + 0.125 * poles * abs(y) if y * direction >= 0.0 else max(poles, 0.5 * abs(y))
    length = min(length, abs(end - y))
    steep = max(abs(slope) / variation, math.sqrt(0.5 * abs(curvature) / variation))
    if steep * length > 1.0:
        length = 1.0 / steep
    while True:
        stop = end if length >= abs(end - y) else y + direction * length
        if stop == y:
            stop = np.nextafter(y, end)
        value, slope, _ = exponent(kind, a, b, below, above, scale, stop)
        if abs(value - start) <= variation and abs(slope) * length <= 2.0 * variation:
            return stop, value
        if length < 1e-13 * (1.0 + abs(y)):
            return stop, value
        length *= 0.5


@njit
def mode(kind, a, b, below, above, scale, low, high):
    """Return where the slope changes sign between logits `low` and `high`, within 1e-6 or so."""
    _, first, _ = exponent(kind, a, b, below, above, scale, low)
    rising = first > 0.0
    for _ in range(32):
        middle = 0.5 * (low + high)
        _, slope, _ = exponent(kind, a, b, below, above, scale, middle)
        if (slope > 0.0) == rising:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@njit
def reach(kind, a, b, below, above, scale, y, end, drop):
    """Return where, from y towards `end`, the integrand has fallen to e^-drop of what it is at y."""
    top, _, _ = exponent(kind, a, b, below, above, scale, y)
    while True:
        y, value = advance(kind, a, b, below, above, scale, y, end, 0.25 * _VARIATION, _POLES)
        if value < top - drop:
            return y


@njit
def _march(kind, a, b, below, above, scale, y, end, top):
    """Return the integral of exp(exponent - top) from y towards `end`."""
    total = 0.0
    while y != end:
        stop, value = advance(kind, a, b, below, above, scale, y, end, _VARIATION, _POLES)
        centre = 0.5 * (y + stop)
        half = 0.5 * abs(stop - y)
        panel = 0.0
        for j in range(len(_NODES)):
            height, _, _ = exponent(kind, a, b, below, above, scale, centre + half * _NODES[j])
            panel += _WEIGHTS[j] * math.exp(height - top)
        total += half * panel
        if value < top - _DROP:
            break
        y = stop
    return total


@njit
def log_one_sided(kind, a, b, below, above, scale):
    """Return the log integral over u < z (LEFT) or u > z (RIGHT), of u in (0, 1)."""
    low, high = -math.inf, math.inf
    peak = mode(kind, a, b, below, above, scale, -FARTHEST, FARTHEST)
    if below > 0.0 and above > 0.0:
        at = math.log(below) - math.log(above)
        if kind == LEFT:
            high = at
            peak = min(peak, at)
        else:
            low = at
            peak = max(peak, at)
    top, _, _ = exponent(kind, a, b, below, above, scale, peak)
    total = _march(kind, a, b, below, above, scale, peak, low, top)
    return top + math.log(total + _march(kind, a, b, below, above, scale, peak, high, top))


@njit
def _turns(a, b, below, scale):
    """Return the places (logits) in which the slope under a bell curve, over u (1 - u), has an extremum."""
    # slope(u) = a - (a + b) u + u (1 - u)(z - u) / scale^2, a cubic in u; its derivative times scale^2
    one = -2.0 * (1.0 + below)
    zero = below - (a + b) * scale * scale
    inside = one * one - 12.0 * zero
    if inside <= 0.0:
        return -FARTHEST, FARTHEST
    larger = (-one + math.copysign(math.sqrt(inside), -one)) / 6.0
    smaller = zero / (3.0 * larger) if larger != 0.0 else 0.0
    first, second = min(larger, smaller), max(larger, smaller)
    left = math.log(first) - math.log1p(-first) if 0.0 < first < 1.0 else -FARTHEST
    right = math.log(second) - math.log1p(-second) if 0.0 < second < 1.0 else FARTHEST
    return left, max(left, right)


@njit
def bell_modes(a, b, below, above, scale):
    """Return the first mode (logit), the trough and the second mode; the latter two infinite where absent."""
    left, right = _turns(a, b, below, scale)
    _, slope_left, _ = exponent(BELL, a, b, below, above, scale, left)
    _, slope_right, _ = exponent(BELL, a, b, below, above, scale, right)
    if left > -FARTHEST and right < FARTHEST and slope_left < 0.0 < slope_right:
        return (
            mode(BELL, a, b, below, above, scale, -FARTHEST, left),
            mode(BELL, a, b, below, above, scale, left, right),
            mode(BELL, a, b, below, above, scale, right, FARTHEST),
        )
    return mode(BELL, a, b, below, above, scale, -FARTHEST, FARTHEST), math.inf, math.inf


@njit
def _log_bell(a, b, below, above, scale):
    """Return the log integral against the bell curve: from each mode to the trough between, and outwards."""
    first, trough, last = bell_modes(a, b, below, above, scale)
    top, _, _ = exponent(BELL, a, b, below, above, scale, first)
    if last < math.inf:
        other, _, _ = exponent(BELL, a, b, below, above, scale, last)
        top = max(top, other)
    total = _march(BELL, a, b, below, above, scale, first, -math.inf, top)
    total += _march(BELL, a, b, below, above, scale, first, trough, top)
    if last < math.inf:
        total += _march(BELL, a, b, below, above, scale, last, trough, top)
        total += _march(BELL, a, b, below, above, scale, last, math.inf, top)
    return top + math.log(total)


@njit
def log_integral(laplace, a, b, below, above, scale):
    """Return the log of the integral over (0, 1) of u^(a-1) (1-u)^(b-1) times the noise at z - u.

    The noise is exp(-|z - u| / scale) where `laplace`, else exp(-(z - u)^2 / (2 scale^2)).
    """
    if not laplace:
        return _log_bell(a, b, below, above, scale)
    if below <= 0.0:
        return log_one_sided(RIGHT, a, b, below, above, scale)
    if above <= 0.0:
        return log_one_sided(LEFT, a, b, below, above, scale)
    left = log_one_sided(LEFT, a, b, below, above, scale)
    right = log_one_sided(RIGHT, a, b, below, above, scale)
    high = max(left, right)
    return high + math.log1p(math.exp(min(left, right) - high))


# Many releases at once: panels on which a beta density is a polynomial, and convolutions computed on them


@njit
def _farthest(a, b, y, end, wide, long):
    """Return `end`, or what comes before it: where u is `wide` away from that at y, or as far as is smooth.

    Towards an end the density and the noise are exp(-c e^-|y|), which wants panels no longer than `long`
    until its exponent is small.
    """
    u, v, _, _ = sides(y)
    small = min(u, v)
    side = 1.0 if end > y else -1.0
    if small * (max(a, b) + 10.0 / wide) > 0.1:
        end = side * min(side * end, side * y + long)
    if (v if side > 0.0 else u) <= wide:
        return end
    if side > 0.0:
        return min(end, math.log(u + wide) - math.log(v - wide))
    return max(end, math.log(u - wide) - math.log(v + wide))


@njit
def _outwards(a, b, y, end, wide, long, variation, poles, found):
    """Write the ends of panels from y to `end` into `found`; return how many, all but the last counted."""
    count = 0
    while y != end and count < len(found):
        at = _farthest(a, b, y, end, wide, long)
        y, _ = advance(BELL, a, b, 0.0, 1.0, math.inf, y, at, variation, poles)
        found[count] = y
        count += 1
    return count


@njit
def _lay(a, b, low, high, wide, long, variation, poles):
    """Return the edges of panels from logit `low` to `high`; more than MOST_PANELS of them are cut short."""
    start = min(max(0.0, low), high)
    left = np.empty(MOST_PANELS)
    right = np.empty(MOST_PANELS)
    below = _outwards(a, b, start, low, wide, long, variation, poles, left)
    above = _outwards(a, b, start, high, wide, long, variation, poles, right)
    edges = np.empty(below + above + 1)
    for k in range(below):
        edges[k] = left[below - 1 - k]
    edges[below] = start
    edges[below + 1 :] = right[:above]
    return edges


@njit
def laplace_panels(a, b, scale):
    """Return edges of panels outside which the density adds nothing to any z under Laplace noise.

    What lies further out than the density tilted by exp(-u/scale) reaches, and by exp(u/scale), does not.
    """
    first = mode(RIGHT, a, b, 0.0, 1.0, scale, -FARTHEST, FARTHEST)
    last = mode(LEFT, a, b, 1.0, 0.0, scale, -FARTHEST, FARTHEST)
    low = reach(RIGHT, a, b, 0.0, 1.0, scale, first, -math.inf, _REACH)
    high = reach(LEFT, a, b, 1.0, 0.0, scale, last, math.inf, _REACH)
    variation, poles, wide, long = _LAPLACE
    return _lay(a, b, low, high, wide * scale, long, variation, poles)


@njit
def bell_panels(a, b, below_low, above_low, below_high, above_high, scale):
    """Return edges of panels outside which nothing is added to any z between two, under Gaussian noise."""
    first, _, _ = bell_modes(a, b, below_low, above_low, scale)
    low = reach(BELL, a, b, below_low, above_low, scale, first, -math.inf, _REACH)
    one, _, other = bell_modes(a, b, below_high, above_high, scale)
    last = other if other < math.inf else one
    high = reach(BELL, a, b, below_high, above_high, scale, last, math.inf, _REACH)
    variation, poles, wide, long = _GAUSSIAN
    return _lay(a, b, low, high, wide * scale, long, variation, poles)


@njit
def _rest(odds):
    """Return log(1 + odds) for 0 <= odds <= 1 to 4e-16: 2 artanh(odds / (2 + odds)), as a series."""
    t = odds / (2.0 + odds)
    w = t * t
    w2 = w * w
    w4 = w2 * w2
    low = (
        (1.0 + w / 3.0)
        + w2 * (1.0 / 5.0 + w / 7.0)
        + w4 * ((1.0 / 9.0 + w / 11.0) + w2 * (1.0 / 13.0 + w / 15.0))
    )
    high = (1.0 / 17.0 + w / 19.0) + w2 * (1.0 / 21.0 + w / 23.0) + w4 * ((1.0 / 25.0 + w / 27.0) + w2 / 29.0)
    return 2.0 * t * (low + (w4 * w4) * high)


@njit
def _spread(a, b, constant, start, stop, nodes, log_density, small):
    """Set the log density of the logit and the smaller of u and 1 - u at the nodes of a panel.

    Return whether it is u that is smaller; no panel has 0 inside. Branch-free so that it vectorises.
    """
    centre = 0.5 * (start + stop)
    half = 0.5 * (stop - start)
    lower = centre < 0.0
    own = a if lower else b
    for j in range(_N):
        y = abs(centre + half * nodes[j])
        odds = exp(-y)
        small[j] = odds / (1.0 + odds)
        log_density[j] = -own * y - (a + b) * _rest(odds) - constant
    return lower


@njit
def _spread_panel(a, b, constant, scale, start, stop, weight, growth):
    """Set `weight` to the density (times half the panel), `growth` to e^{(u - centre)/scale}.

    Return how far the centre lies from both ends, in units of the noise.
    """
    half = 0.5 * (stop - start)
    lower = _spread(a, b, constant, start, stop, _CHEBYSHEV, weight, growth)
    u, v, _, _ = sides(0.5 * (start + stop))
    start_u, start_v, _, _ = sides(start)
    stop_u, stop_v, _, _ = sides(stop)
    rate = (1.0 if lower else -1.0) / scale
    middle = u if lower else v
    for j in range(_N):
        weight[j] = half * exp(weight[j])
        growth[j] = exp((growth[j] - middle) * rate)
    if lower:
        return (u - start_u) / scale, (stop_u - u) / scale
    return (start_v - v) / scale, (v - stop_v) / scale


@njit
def _fit_panel(weight, growth, before, after, sign, series, work):
    """Set `series` to the Chebyshev series of the convolution in a panel.

    `before` is the integral over what lies below the panel, `after` over what lies above, both as seen from
    its centre; the former counts `sign` times.
    """
    work[:] = 0.0
    for i in range(_N):
        up = weight[i] * growth[i]
        down = weight[i] / growth[i]
        after += _TOTAL[i] * down
        for j in range(_N):
            work[0, j] += _INTEGRATE_T[i, j] * up
            work[1, j] += _INTEGRATE_T[i, j] * down
    series[:] = 0.0
    for j in range(_N):
        height = sign * (before + work[0, j]) / growth[j] + (after - work[1, j]) * growth[j]
        for k in range(_N):
            series[k] += _SERIES_T[j, k] * height


@njit
def _evaluate(series, x):
    """Return a Chebyshev series at x: even and odd terms by Clenshaw's recurrence in T_2(x)."""
    t = 2.0 * x * x - 1.0
    twice = 2.0 * t
    even = even_next = odd = odd_next = 0.0
    for k in range(_N // 2 - 1, 0, -1):
        even, even_next = series[2 * k] + twice * even - even_next, even
        odd, odd_next = series[2 * k + 1] + twice * odd - odd_next, odd
    # T_{2k+1} = x V_k(t) with V_0 = 1, V_1 = 2 t - 1, so that the odd part ends with V_1 - 2 t V_0 = -1
    return series[0] + t * even - even_next + x * (series[1] + (twice - 1.0) * odd - odd_next)


@njit
def fill_laplace(a, b, lo, width, scale, edges, z, start, stop, out, sign=1.0):
    """Set ``out[i - start]`` to the density of z[i] under Laplace noise, `scale` of the interval.

    With a `sign` of -1 what lies below z counts negatively: the density's derivative times the scale.
    """
    count = len(edges) - 1
    constant = log_beta(a, b)
    weight = np.empty((count, _N))
    growth = np.empty((count, _N))
    near = np.empty(count)  # decay from the centre of a panel to its lower end
    far = np.empty(count)  # and to its upper end
    before = np.empty(count)
    after = np.empty(count + 1)
    seen = 0.0
    for k in range(count):
        to_start, to_stop = _spread_panel(a, b, constant, scale, edges[k], edges[k + 1], weight[k], growth[k])
        near[k] = exp(-to_start)
        far[k] = exp(-to_stop)
        before[k] = seen * near[k]
        total = 0.0
        for j in range(_N):
            total += _TOTAL[j] * weight[k, j] * growth[k, j]
        seen = (before[k] + total) * far[k]
    after[count] = 0.0
    for k in range(count - 1, -1, -1):
        total = 0.0
        for j in range(_N):
            total += _TOTAL[j] * weight[k, j] / growth[k, j]
        after[k] = (after[k + 1] * far[k] + total) * near[k]
    height = 0.5 / (scale * width)
    series = np.empty((count, _N))
    fitted = np.zeros(count, dtype=np.bool_)
    work = np.empty((2, _N))
    low_u, _, _, _ = sides(edges[0])
    _, high_v, _, _ = sides(edges[count])
    for i in range(start, stop):
        u = (z[i] - lo) / width
        v = (lo + width - z[i]) / width
        if u <= low_u:
            out[i - start] = height * after[0] * exp((u - low_u) / scale)
            continue
        if v <= high_v:
            out[i - start] = sign * height * seen * exp((v - high_v) / scale)
            continue
        at = math.log(u / v)
        first = 0
        last = count - 1
        while first < last:
            middle = (first + last + 1) // 2
            if edges[middle] <= at:
                first = middle
            else:
                last = middle - 1
        if not fitted[first]:
            _fit_panel(
                weight[first],
                growth[first],
                before[first],
                after[first + 1] * far[first],
                sign,
                series[first],
                work,
            )
            fitted[first] = True
        x = (2.0 * at - edges[first] - edges[first + 1]) / (edges[first + 1] - edges[first])
        out[i - start] = height * _evaluate(series[first], x)


@njit
def fill_bell(a, b, lo, width, scale, edges, z, start, stop, out):
    """Set ``out[i - start]`` to the density of z[i] under Gaussian noise of sd `scale` (of the interval)."""
    count = len(edges) - 1
    constant = log_beta(a, b) + math.log(scale * width) + 0.5 * math.log(2.0 * math.pi)
    place = np.empty((count, _N))  # u, in units of the noise
    height = np.empty((count, _N))
    top = np.empty(count)
    ends = np.empty(count + 1)
    inverse = 1.0 / scale
    for k in range(count):
        lower = _spread(a, b, constant, edges[k], edges[k + 1], _NODES, height[k], place[k])
        half = 0.5 * (edges[k + 1] - edges[k])
        top[k] = -math.inf
        for j in range(_N):
            place[k, j] = (place[k, j] if lower else 1.0 - place[k, j]) * inverse
            height[k, j] += math.log(half) + _LOG_WEIGHTS[j]
            top[k] = max(top[k], height[k, j])
    for k in range(count + 1):
        ends[k] = sides(edges[k])[0] * inverse
    bound = np.empty(count)
    total = np.empty(_N)
    for i in range(start, stop):
        at = (z[i] - lo) / width * inverse
        best = -math.inf
        for k in range(count):
            gap = max(max(ends[k] - at, at - ends[k + 1]), 0.0)
            bound[k] = top[k] - 0.5 * gap * gap
            middle = at - place[k, _N // 2]
            best = max(best, height[k, _N // 2] - 0.5 * middle * middle)
        total[:] = 0.0
        for k in range(count):
            if bound[k] > best - _REACH:
                for j in range(_N):  # by nodes, since sums within a panel would not vectorise
                    gap = at - place[k, j]
                    total[j] += exp(height[k, j] - 0.5 * gap * gap)
        out[i - start] = np.sum(total)


# What both channels do for a beta kernel, whose interval is their unit


@njit
def uniform_logit(rng):
    """Draw a start: uniform on the interval (Beraha, Favaro and Rao 2024, Appendix B)."""
    while True:
        u = rng.random()
        if u > 0.0:
            return math.log(u) - math.log1p(-u)


@njit
def below_and_above(kernel, z):
    """Return how far a release is from the lower end, and from the upper one."""
    return (z - kernel.lo) / kernel.width, (kernel.lo + kernel.width - z) / kernel.width


@njit
def can_fill(panels):
    """Whether there are panels, and all that it takes."""
    return 1 < len(panels) <= MOST_PANELS


@njit
def fill_one_by_one(channel, kernel, theta, h, z, start, stop, out):
    """Fill as `fill_marginal`, by an integral for each release."""
    for i in range(start, stop):
        out[i - start] = exp(log_marginal(channel, kernel, z[i], theta, h))
