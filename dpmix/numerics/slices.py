"""Slice sampling (Neal 2003): of a number, stepping out and shrinking, and of a vector, within a box.

What is sampled is a curve: a NamedTuple with an implementation of `log_height`. The log height of the slice
is that of the present point less an exponential variable.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.numerics.jit import dispatch, njit

WIDTH = 4.0  # of the first box
_LEAST = 1e-13  # width below which an interval that has shrunk holds nothing but the present point


@dispatch()
def log_height(curve, x):
    """Return the log density at `x`, up to a constant; inf where `x` stands for the present point itself."""


@njit
def draw_on_slice(rng, curve, x, level, width, least=-math.inf, most=math.inf, steps=math.inf):
    """Draw a point of the slice above `level` that holds the present point `x`, from [least, most].

    The first interval, of `width`, is placed at random about `x`, and its ends step out by as much until they
    are off the slice (Neal 2003, Figures 3 and 5). Where there is a limit of `steps`, they are shared out
    between the ends at random, and an end whose steps are done may be on the slice.

    Returns
    -------
    point, log_height : float
        The log height of a point that is not `x`; `x` and `level` where nothing else was found.
    """
    low = x - width * rng.random()
    high = low + width
    below = above = steps
    if steps < math.inf:
        below = math.floor((steps + 1.0) * rng.random())
        above = steps - below
    while below > 0.0 and low > least and log_height(curve, low) > level:
        low -= width
        below -= 1.0
    while above > 0.0 and high < most and log_height(curve, high) > level:
        high += width
        above -= 1.0
    low, high = max(low, least), min(high, most)
    while True:
        y = low + (high - low) * rng.random()
        if y == x or high - low < _LEAST:
            return x, level
        found = log_height(curve, y)
        if found > level:
            return y, found
        if y < x:
            low = y
        else:
            high = y


@njit
def draw_in_box(rng, curve, point, root, repeats):
    """Move `point` (d,) by multivariate slice sampling, `repeats` times.

    A box around the present point, placed at random, shrinks towards it until a point drawn within is on the
    slice (Neal 2003, Figure 8). Its edges are along the columns of `root` (d, d), `WIDTH` of them long.
    """
    d = len(point)
    offered, low, high, step = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    now = log_height(curve, point)
    for _ in range(repeats):
        level = now - rng.standard_exponential()
        for j in range(d):
            low[j] = -WIDTH * rng.random()
            high[j] = low[j] + WIDTH
        while True:
            widest = 0.0
            for j in range(d):
                step[j] = low[j] + (high[j] - low[j]) * rng.random()
                widest = max(widest, high[j] - low[j])
            for j in range(d):
                offered[j] = point[j]
                for k in range(j + 1):
                    offered[j] += root[j, k] * step[k]
            found = log_height(curve, offered)
            if found >= level:
                point[:] = offered
                now = found
                break
            if widest < 1e-14:
                break
            for j in range(d):
                if step[j] < 0.0:
                    low[j] = step[j]
                else:
                    high[j] = step[j]
