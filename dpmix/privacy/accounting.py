"""Guarantees, for which neighbours they are, and what several of them come to together.

Noisy answers about one record compose by `compose`, releases of parts of one table by `in_parallel`; `Spent`
has all releases of a table and of its parts. What those cost by sums is in `dpmix.privacy.budget`; here is
what they cost by privacy loss distributions (Google's `dp-accounting`, an optional extra), which is less.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, Literal

from dpmix.errors import PrivacyError
from dpmix.privacy.conversions import gaussian_epsilon, laplace_rho

_CELLS = 40_000
"""About how many cells the distribution of all losses together may have on either side."""
_FINEST = 1e-5
_LARGEST = 500.0
"""Sums of epsilons beyond which nothing is gained: the sums are stated as they are."""
_NUMERICAL = 1e-11
"""By how much a delta that comes out of a convolution in doubles may be off, and more."""

# Guarantees, and noisy answers about one record


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

    def within(self, requested: Mapping[str, float]) -> bool:
        """Whether none of its numbers exceeds one that was asked for, by name."""
        return all((getattr(self, name) or 0.0) <= value for name, value in requested.items())

    def of_public_part(self) -> Guarantee:
        """Return what a release of one part of a table guarantees where the parts are public."""
        return replace(self, adjacency=Adjacency.PUBLIC_PARTS)


def sum_up(values: Iterable[float]) -> float:
    """Return the exact sum of floats, rounded up."""
    exact = sum((Fraction(v) for v in values), Fraction(0))
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def compose(
    kind: Literal["laplace", "gaussian"],
    losses: Sequence[float],
    *,
    delta: float | None = None,
    trust: str = "local",
) -> Guarantee:
    """Return the total of independent noisy answers about the same record (sequential composition).

    The losses of Laplace noise are epsilons, which add, as do their rhos. Those of Gaussian noise are rhos,
    which add, and (epsilon, `delta`), where it is wanted, is Balle and Wang's at mu = sqrt(2 rho), which is
    exact for them together.

    Raises
    ------
    PrivacyError
        For no answer at all.
    """
    if not losses:
        raise PrivacyError("there is nothing to compose")
    if kind == "laplace":
        return Guarantee(sum_up(losses), 0.0, sum_up(_up(laplace_rho(loss)) for loss in losses), trust)
    rho = sum_up(losses)
    if delta is None:
        return Guarantee(None, None, rho, trust, gaussian=True)
    return Guarantee(_up(gaussian_epsilon(_up(math.sqrt(2 * rho)), delta)), delta, rho, trust, gaussian=True)


def _up(value: float) -> float:
    """Allow for the last few units that a formula in floating point may lose."""
    return value * (1 + 4 * 2.0**-52)


# Releases of one table and of its parts


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

    trust = "local" if all(each.trust == "local" for each in parts) else "global"
    epsilon, rho = (largest(parts, name) for name in ("epsilon", "rho"))
    delta = None if epsilon is None else max(each.delta or 0.0 for each in parts)
    proved = all(each.proved for each in parts)
    return Guarantee(epsilon, delta, rho, trust, Adjacency.PUBLIC_PARTS, proved=proved)


def largest(parts: Iterable[Any], name: str) -> float | None:
    """Return the largest of a number of some guarantees or sums; None where one does not have it."""
    found = [getattr(each, name) for each in parts]
    return None if any(value is None for value in found) else max(found)


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


# Privacy loss distributions


def check_known(more: Guarantee, name: str) -> None:
    """Check that the loss of a release is known.

    Raises
    ------
    PrivacyError
        When it is not, naming its mechanism.
    """
    _library()
    if more.epsilon is None and not more.gaussian:
        raise PrivacyError(
            f"privacy.accountant: pld does not know the privacy loss of {name} under rho alone; ask for "
            "epsilon, or take sums"
        )


def loss_epsilon(spent: Sequence[Guarantee], delta: float) -> float | None:
    """Return an epsilon for which all releases of a data set together are (epsilon, delta)-DP.

    None where none is known.

    Raises
    ------
    PrivacyError
        When the library is not installed.
    """
    rho = math.fsum(g.rho for g in spent if g.gaussian and g.rho is not None)
    others = [g for g in spent if not g.gaussian]
    if any(g.epsilon is None for g in others) or not delta > 2 * _NUMERICAL:
        return None
    if any((g.delta or 0.0) >= delta for g in others):  # so much of its losses is infinite
        return None
    counts = Counter((float(g.epsilon or 0.0), float(g.delta or 0.0)) for g in others)
    return _epsilon(tuple(sorted(counts.items())), rho, delta)


@functools.lru_cache(maxsize=256)
def _epsilon(counts: tuple[tuple[tuple[float, float], int], ...], rho: float, delta: float) -> float | None:
    loss, common = _library()
    mu = math.sqrt(2 * rho) * (1 + 1e-12)
    pure = sum(epsilon * count for (epsilon, _), count in counts)
    widest = pure + rho + mu * 12
    if not 0 < widest <= _LARGEST:
        return 0.0 if widest == 0 and not any(d for (_, d), _ in counts) else None
    # losses are rounded up once a release: the finer, the more releases there are
    step = max(_FINEST, widest / _CELLS)
    parts = []
    for (epsilon, lost), count in counts:
        one = loss.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, lost), step)
        parts.append(one.self_compose(count))
    if mu:
        parts.append(loss.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=step))
    total = functools.reduce(lambda one, other: one.compose(other), parts)  # some: widest is positive
    found = float(total.get_epsilon_for_delta(delta - _NUMERICAL))
    return found * (1 + 1e-9) if math.isfinite(found) else None


@functools.cache
def _library() -> tuple[Any, Any]:
    """Return the two modules of the library that are used: of privacy loss distributions, and common.

    Raises
    ------
    PrivacyError
        When it is not installed.
    """
    try:
        names = ("privacy_loss_distribution", "common")
        loss, common = (importlib.import_module(f"dp_accounting.pld.{name}") for name in names)
    except ImportError:
        raise PrivacyError(
            "privacy.accountant: pld needs the package dp-accounting (pip install 'dpmix[pld]'), which is "
            "not installed; take sums"
        ) from None
    return loss, common
