"""What several noisy answers about one record cost together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dpmix.errors import PrivacyError
from dpmix.privacy.conversions import laplace_rho
from dpmix.privacy.gaussian_cost import gaussian_epsilon


@dataclass(frozen=True)
class LaplaceEvent:
    """Laplace noise whose privacy map gives `epsilon`."""

    epsilon: float


@dataclass(frozen=True)
class GaussianEvent:
    """Gaussian noise whose privacy map gives `rho`; its (eps, delta) follow from mu = sqrt(2 rho)."""

    rho: float


class Adjacency(StrEnum):
    """Which databases a guarantee is for: its neighbouring relation (methods, sections 0, 1 and 16).

    In all of them one person's record is replaced by any other.
    """

    REPLACEMENT = "replacement"
    """One record of a table, whose number of records n is public."""
    PUBLIC_PARTS = "replacement, public parts"
    """One record of a table whose parts are public: it stays in its part, and each part's n is public."""
    PRIVATE_GROUPS = "replacement, private groups"
    """One record of a table, its group included: n is public, and the sizes of the groups are not."""


@dataclass(frozen=True)
class Guarantee:
    """A guarantee for the replacement of one record.

    Parameters
    ----------
    epsilon, delta, rho : float or None
        None where the notion does not apply.
    trust : str
        ``"local"`` or ``"global"``.
    adjacency : Adjacency
        The neighbouring relation, without which the numbers mean nothing.
    proved : bool
        Whether there is a proof of it, in writing or by enumeration (docs/privacy.md).
    gaussian : bool
        Whether it is that of Gaussian noise alone, of mu = sqrt(2 rho).

    Raises
    ------
    PrivacyError
        For a neighbouring relation that is none of those.
    """

    epsilon: float | None
    delta: float | None
    rho: float | None
    trust: str = "local"
    adjacency: Adjacency = Adjacency.REPLACEMENT
    gaussian: bool = field(default=False, compare=False)
    proved: bool = True

    def __post_init__(self) -> None:
        """Take a relation as it is written in files."""
        try:
            object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        except ValueError:
            known = " or ".join(Adjacency)
            raise PrivacyError(f"adjacency is {self.adjacency!s:.40}, and not {known}") from None

    def numbers(self) -> dict[str, Any]:
        """Return those of epsilon, delta and rho that apply, and whether they are proved."""
        found = {name: getattr(self, name) for name in ("epsilon", "delta", "rho")}
        stated = {name: value for name, value in found.items() if value is not None}
        return stated | {"proved": self.proved} if stated else {}

    def of_public_part(self) -> Guarantee:
        """Return what a release of one part of a table guarantees where the parts are public."""
        return replace(self, adjacency=Adjacency.PUBLIC_PARTS)


def in_parallel(parts: Sequence[Guarantee]) -> Guarantee:
    """Return what releases of different parts of one table guarantee together: the largest of each number.

    It holds where the parts are public alone. Where a replaced record may change part, the parts' guarantees
    imply nothing about the pair: the published sizes turn from (200, 200) to (199, 201) with certainty
    (methods, section 1).

    Raises
    ------
    PrivacyError
        When a guarantee is not for public parts, or there is none.
    """
    if not parts:
        raise PrivacyError("there is nothing to compose")
    for each in parts:
        if each.adjacency != Adjacency.PUBLIC_PARTS:
            raise PrivacyError(
                f"guarantees for {each.adjacency} state nothing together for two parts of one table: a "
                "record may change part, and the parts' sizes are published"
            )

    def largest(name: str) -> float | None:
        found = [getattr(each, name) for each in parts]
        return None if any(value is None for value in found) else max(found)

    trust = "local" if all(each.trust == "local" for each in parts) else "global"
    epsilon = largest("epsilon")
    delta = None if epsilon is None else max(each.delta or 0.0 for each in parts)
    proved = all(each.proved for each in parts)
    return Guarantee(epsilon, delta, largest("rho"), trust, Adjacency.PUBLIC_PARTS, proved=proved)


def weakest(relations: Iterable[Adjacency]) -> Adjacency:
    """Return the relation for which guarantees of one and the same table hold together, by addition.

    The neighbours under public parts are some of those under the others, which hold for them too; private
    groups are the same neighbours as replacement, of records that include their group.
    """
    found = set(relations)
    for each in (Adjacency.PUBLIC_PARTS, Adjacency.PRIVATE_GROUPS):
        if each in found:
            return each
    return Adjacency.REPLACEMENT


@dataclass(frozen=True)
class Spent:
    """What was released of one table, and of public parts of it.

    Parameters
    ----------
    whole : tuple of Guarantee
        Of releases of all records, in order.
    parts : mapping of str to tuple of Guarantee
        Of releases of each part, in order; no record is in two parts.
    """

    whole: tuple[Guarantee, ...] = ()
    parts: Mapping[str, tuple[Guarantee, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that the parts' guarantees are for public parts, and the whole's are not.

        Raises
        ------
        PrivacyError
            When they compose to nothing.
        """
        for name, spent in self.parts.items():
            for each in spent:
                if each.adjacency != Adjacency.PUBLIC_PARTS:
                    raise PrivacyError(
                        f"a guarantee for {each.adjacency} is none for {name}, a part of a table, together "
                        "with its other parts: a record may change part, and the parts' sizes are published"
                    )
        if any(each.adjacency == Adjacency.PUBLIC_PARTS for each in self.whole):
            raise PrivacyError("a guarantee for public parts is none for a whole table: name its part")

    def adding(self, more: Guarantee, part: str | None = None) -> Spent:
        """Return it after one more release, of the whole or of a part.

        Raises
        ------
        PrivacyError
            When its guarantee does not compose with the others.
        """
        if part is None:
            return replace(self, whole=(*self.whole, more))
        return replace(self, parts={**self.parts, part: (*self.parts.get(part, ()), more)})

    def lines(self) -> tuple[tuple[Guarantee, ...], ...]:
        """Return what a record may be in: the releases of the whole with those of one part, for each part."""
        return tuple((*self.whole, *part) for part in self.parts.values()) or (self.whole,)

    def line(self, part: str | None) -> tuple[Guarantee, ...]:
        """Return the releases that a record of one part is in; without one, those of the whole."""
        return self.whole if part is None else (*self.whole, *self.parts.get(part, ()))

    @property
    def releases(self) -> int:
        """Number of all releases."""
        return len(self.whole) + sum(map(len, self.parts.values()))


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
        return Guarantee(None, None, rho, trust, gaussian=not pure)
    return Guarantee(_up(gaussian_epsilon(_up(math.sqrt(2 * rho)), delta)), delta, rho, trust, gaussian=True)


def _up(value: float) -> float:
    """Allow for the last few units that a formula in floating point may lose."""
    return value * (1 + 4 * 2.0**-52)
