"""Tighter sums, by privacy loss distributions (Google's `dp-accounting`, an optional extra).

A pair of distributions dominates a mechanism when no pair of neighbours is easier to tell apart; products of
dominating pairs dominate the composition, also where what is released is chosen in view of what came out
before (Zhu, Dong and Wang 2022, Theorem 10). Three pairs are taken, each for what it is known to dominate:

- Gaussian noise alone, of whatever number of coordinates: N(0, 1) and N(mu, 1), mu = sqrt(2 rho). With noise
  of one standard deviation in all directions only the length of the shift counts (Balle and Wang 2018), and
  several answers compose to the root of the sum of the squares, so that all such releases together are one
  pair at the sum of their rhos. (It is the pair from which each release's own delta is stated; that the noise
  lies on a grid of 2^-50 of its scale is in rho, as the noise library accounts for it.)
- a pure epsilon: randomized response of that epsilon, which dominates every epsilon-DP mechanism (Kairouz,
  Oh and Viswanath 2015, Theorem 3.2). For Laplace noise it says more than need be: the pair of one Laplace
  number is smaller, but that it dominates a shift spread over several numbers is not proved here.
- (epsilon, delta): the pair of the same theorem with mass delta on a loss of infinity.

What has no such pair is refused by name: a rho that is not that of Gaussian noise alone.

The parameters of each release, its guarantee among them, are taken to be fixed before the first. Where they
are chosen by what came out before, this composition is not proved, in contrast to sums (Rogers et al. 2016):
that is why ``pld`` has to be chosen before the first release of a data set.

Losses are rounded up to a grid and tails counted as infinite; what the convolution may lose in floating point
is added to delta.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dpmix.errors import PrivacyError
from dpmix.privacy.accounting import Guarantee

__all__ = ["check_known", "loss_epsilon"]

_CELLS = 40_000
"""About how many cells the distribution of all losses together may have on either side."""
_FINEST = 1e-5
_LARGEST = 500.0
"""Sums of epsilons beyond which nothing is gained: the sums are stated as they are."""
_NUMERICAL = 1e-11
"""By how much a delta that comes out of a convolution in doubles may be off, and more."""


def check_known(more: Guarantee, name: str) -> None:
    """Check that the loss of a release is known.

    Raises
    ------
    PrivacyError
        When it is not, naming its mechanism.
    """
    library()
    if more.epsilon is None and not more.gaussian:
        raise PrivacyError(
            f"privacy.accountant: pld does not know the privacy loss of {name} under rho alone; ask for "
            "epsilon, or take sums"
        )


def loss_epsilon(spent: Sequence[Guarantee], delta: float) -> float | None:
    """Return an epsilon for which all releases together are (epsilon, delta)-DP; None where none is known.

    Parameters
    ----------
    spent : sequence of Guarantee
        Of the same data set.
    delta : float
        0 at least, below 1.

    Raises
    ------
    PrivacyError
        When the library is not installed.
    """
    rho = math.fsum(g.rho for g in spent if g.gaussian and g.rho is not None)
    others = [g for g in spent if not g.gaussian]
    if any(g.epsilon is None for g in others) or not delta > 2 * _NUMERICAL:
        return None
    counts = Counter((float(g.epsilon or 0.0), float(g.delta or 0.0)) for g in others)
    return _epsilon(tuple(sorted(counts.items())), rho, delta)


@functools.lru_cache(maxsize=256)
def _epsilon(counts: tuple[tuple[tuple[float, float], int], ...], rho: float, delta: float) -> float | None:
    of = library()
    mu = math.sqrt(2 * rho) * (1 + 1e-12)
    pure = sum(epsilon * count for (epsilon, _), count in counts)
    widest = pure + rho + mu * 12
    if not 0 < widest <= _LARGEST:
        return 0.0 if widest == 0 and not any(d for (_, d), _ in counts) else None
    # losses are rounded up once a release: the finer, the more releases there are
    step = max(_FINEST, widest / _CELLS)
    total = None
    parts = []
    for (epsilon, lost), count in counts:
        one = of.pld.from_privacy_parameters(of.common.DifferentialPrivacyParameters(epsilon, lost), step)
        parts.append(one.self_compose(count))
    if mu:
        parts.append(of.pld.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=step))
    for part in parts:
        total = part if total is None else total.compose(part)
    assert total is not None  # widest is positive
    found = float(total.get_epsilon_for_delta(delta - _NUMERICAL))
    return found * (1 + 1e-9) if math.isfinite(found) else None


class _Library:
    """The two modules of the library that are used."""

    def __init__(self) -> None:
        self.pld: Any = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
        self.common: Any = importlib.import_module("dp_accounting.pld.common")


@functools.cache
def library() -> _Library:
    """Return the library.

    Raises
    ------
    PrivacyError
        When it is not installed.
    """
    try:
        return _Library()
    except ImportError:
        raise PrivacyError(
            "privacy.accountant: pld needs the package dp-accounting (pip install 'dpmix[pld]'), which is "
            "not installed; take sums"
        ) from None
