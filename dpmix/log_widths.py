"""How far one record can move the sum of the logarithms of censored compositions."""

from __future__ import annotations

import math

__all__ = ["exact_width", "paper_width"]


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
