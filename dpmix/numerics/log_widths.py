"""How far one record can move the sum of the logarithms of censored compositions."""

from __future__ import annotations

import math

__all__ = ["centre_of", "centred_width", "exact_width", "paper_width"]


def exact_width(threshold: float, parts: int) -> float:
    """Return how far one record can move the sum of log max(x, a) in L1 norm (methods, section 8).

    Parameters
    ----------
    threshold : float
        a, between 0 and 1.
    parts : int
        Number of parts d of a composition, at least 2.
    """

    def side(count: int) -> float:
        return max(0.0, -count * math.log(count * threshold))

    return max(side(s) + side(t) for s in range(1, parts) for t in range(1, parts - s + 1))


def paper_width(threshold: float, parts: int) -> float:
    """Return d |log a|, valid and larger (Guo, Barrientos and Pena, section 3.1)."""
    return parts * abs(math.log(threshold))


def centre_of(threshold: float, parts: int) -> float:
    """Return the centre c from which sum_j |log max(x_j, a) - c| is the least far at most.

    See methods, section 16.

    With u = c - log a in [0, |log a|/2] the largest over compositions x is
    D(u) = max over 1 <= s <= d of g(s) + (d - 2 s) u, g(s) = -s log(s a): with y_j = log max(x_j, a) - log a,
    sum |y_j - u| is the largest over sets S of sum_S y - u |S| + u (d - |S|), the most that sum_S y can be is
    g(s) for some s <= |S| parts that are equal (the logarithm is concave) and the others 0, and there
    sum |y_j - u| is no less; S empty gives d u, which S of one part exceeds. g is concave, so that the least
    of D is where the lines next to s = d/2 cross: at u = (g(d/2 + 1) - g(d/2 - 1))/4 for even d, at half of
    g((d + 1)/2) - g((d - 1)/2) for odd d, or 0 where that is negative. There 2 D is `exact_width`, which it
    is never below: a record that changes its group moves the two groups' sums of log max(x_j, a) - c no
    more than one that changes its values moves the sums of its own group.

    Parameters
    ----------
    threshold : float
        a, between 0 and 1.
    parts : int
        Number of parts d of a composition, at least 2.
    """

    def g(count: int) -> float:
        return -count * math.log(count * threshold) if count else 0.0

    half, odd = divmod(parts, 2)
    slope = (g(half + 1) - g(half)) / 2 if odd else (g(half + 1) - g(half - 1)) / 4
    return math.log(threshold) + max(0.0, slope)


def centred_width(threshold: float, parts: int, centre: float) -> float:
    """Return the largest of sum_j |log max(x_j, a) - c| over compositions x, at c of `centre_of` or below.

    Parameters
    ----------
    threshold, parts
        As in `centre_of`.
    centre : float
        c, from log a to log(a)/2.
    """
    u = centre - math.log(threshold)
    return max(max(0.0, -s * math.log(s * threshold)) + (parts - 2 * s) * u for s in range(1, parts + 1))
