"""What base measures are made of: what a spec states, public bounds, or a release (methods, section 15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpmix.errors import DataError, SpecError
from dpmix.kernels.learned_base import LearnedBase

if TYPE_CHECKING:
    from dpmix.laws.every import EstimatedMoments, Observation
    from dpmix.release.sanitized import Release

Pair = tuple[float, float]


class SourcedKernel(NamedTuple):
    """A kernel, and where its base measure is from.

    ``"spec"``, ``"bounds"``, ``"release"`` (used twice), ``"hidden"`` (from the bounds, as the noise hides
    the spread that was to be read off the release), or ``"paper"``. `learned`: what is learned of it, if
    anything.
    """

    kernel: Any
    source: str
    learned: LearnedBase | None = None


class Fitted(NamedTuple):
    """What a kernel is fitted to: columns of a release, with the public bounds that each has."""

    release: Release
    seen: Observation
    columns: Sequence[int]
    pairs: Sequence[Pair | None]

    def moments(self, place: int) -> EstimatedMoments:
        """Return the moments of the values of one of the columns, as the release tells them.

        Raises
        ------
        DataError
            When it does not tell their spread.
        """
        release = self.release
        found = release.mechanism.moments(release.values, self.columns[place], release.n, self.pairs[place])
        if found is None:
            raise DataError(
                f"model.base.empirical: what this {release.kind} releases does not tell the spread of the "
                "values; leave out model.base, or give mu0, lambda, a and b"
            )
        return found


def bounds_of_base(pair: Pair | None, *, hidden: bool = False) -> Pair:
    """Return the public bounds that a base measure follows: by default, or as noise has `hidden` a spread.

    Raises
    ------
    SpecError, or DataError of what is `hidden`
        Where there are no bounds.
    """
    if pair is not None:
        return pair
    remedy = "give the base, or the bounds in mechanism.domain"
    if hidden:
        raise DataError(
            "model.base.empirical: the noise hides the spread of the values, and there are no public bounds "
            f"that a prior could follow instead; {remedy}"
        )
    raise SpecError(
        f"model.base: missing, and there are no public bounds that a prior could follow; {remedy}"
    )
