"""What several noisy answers about one record cost together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpmix.errors import PrivacyError
from dpmix.privacy.conversions import laplace_rho
from dpmix.privacy.gaussian import gaussian_epsilon


@dataclass(frozen=True)
class LaplaceEvent:
    """Laplace noise whose privacy map gives `epsilon`."""

    epsilon: float


@dataclass(frozen=True)
class GaussianEvent:
    """Gaussian noise whose privacy map gives `rho`; its (eps, delta) follow from mu = sqrt(2 rho)."""

    rho: float


@dataclass(frozen=True)
class Guarantee:
    """A guarantee for the replacement of one record.

    Parameters
    ----------
    epsilon, delta, rho : float or None
        None where the notion does not apply.
    trust : str
        ``"local"`` or ``"global"``.
    adjacency : str
        ``"replacement"``.
    """

    epsilon: float | None
    delta: float | None
    rho: float | None
    trust: str = "local"
    adjacency: str = "replacement"


def sum_up(values: Iterable[float]) -> float:
    """Return the exact sum of floats, rounded up."""
    exact = sum((Fraction(v) for v in values), Fraction(0))
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def compose(
    events: Sequence[LaplaceEvent | GaussianEvent], *, delta: float | None = None, trust: str = "local"
) -> Guarantee:
    """Return the total of several independent noisy answers about the same record (sequential composition).

    Laplace alone: epsilon and rho add. Gaussian alone: rho adds, and (epsilon, `delta`) is Balle and Wang's
    at mu = sqrt(2 rho), which is exact for them together. Both together: rho adds, no epsilon is stated.

    Parameters
    ----------
    events : sequence of LaplaceEvent or GaussianEvent
        At least one.
    delta : float, optional
        Where Gaussian noise is to be stated as (epsilon, delta).
    trust : str
        Passed on to the guarantee.

    Raises
    ------
    PrivacyError
        For an event of any other type, by name, or none at all.
    """
    if not events:
        raise PrivacyError("there is nothing to compose")
    for event in events:
        if not isinstance(event, LaplaceEvent | GaussianEvent):
            raise PrivacyError(f"no composition rule is known for {type(event).__name__}")
    losses = [_up(laplace_rho(e.epsilon)) if isinstance(e, LaplaceEvent) else e.rho for e in events]
    rho = sum_up(losses)
    pure = [e.epsilon for e in events if isinstance(e, LaplaceEvent)]
    if len(pure) == len(events):
        return Guarantee(sum_up(pure), 0.0, rho, trust)
    if pure or delta is None:
        return Guarantee(None, None, rho, trust)
    return Guarantee(_up(gaussian_epsilon(_up(math.sqrt(2 * rho)), delta)), delta, rho, trust)


def _up(value: float) -> float:
    """Allow for the last few units that a formula in floating point may lose."""
    return value * (1 + 4 * 2.0**-52)
