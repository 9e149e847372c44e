"""Noisy second moments of groups whose sizes are private (methods, section 16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmix.mechanisms.clamped_moments.curator import ClampedMoments, GroupedWidths, grouped_widths
from dpmix.mechanisms.clamped_moments.section import ClampedMomentsMechanism
from dpmix.mechanisms.curators.mechanism import PublicRecords
from dpmix.mechanisms.curators.neighbours import BEYOND, Pair, pairs_of_groups
from dpmix.mechanisms.curators.private_groups import Groups, sums_by_group
from dpmix.mechanisms.curators.statistic import ROUNDED_UP, Floats
from dpmix.privacy.noise import AdditiveNoise

__all__ = ["GroupedMoments"]


@dataclass(frozen=True, kw_only=True)
class GroupedMoments(ClampedMoments):
    """Release sizes of groups and sums of centred products over the records of each, with Laplace noise.

    One release of (kappa n_1, .., kappa n_(G-1), S_1, .., S_G), S_g the sums over group g of the entries of
    `ClampedMoments` less their centres; see `grouped_widths` for centres and exact sensitivity. The entry
    that `ClampedMoments` omits, a sum of ones, is here the size. Noise of one scale is on all of it; the
    noisy sizes are divided by kappa after.

    Values have the codes of groups as last column.
    """

    kind: ClassVar[str] = "clamped_moments"

    @property
    def known(self) -> Groups:
        """The groups, which are given."""
        assert self.groups is not None  # else it is no such mechanism
        return self.groups

    @property
    def widths(self) -> GroupedWidths:
        """Centres, kappa and sensitivities."""
        return grouped_widths(len(self.domain) - 1, self.known)

    @property
    def sensitivity(self) -> float:
        """The exact one of (kappa sizes, sums), and what rounding sums to doubles may add."""
        return self.widths.exact * ROUNDED_UP + 2 * self.size * self.n * 2.0**-52

    @property
    def size(self) -> int:
        """Numbers in the release: G - 1 sizes, then the entries of each group."""
        return self.known.count - 1 + self.known.count * len(self.widths.centre)

    @property
    def source(self) -> AdditiveNoise:
        """The noise of kappa times the sizes, and of the sums."""
        spread = 2.0 * (2.0 + self.widths.kappa) * (self.n + 1)
        return AdditiveNoise("laplace", self.s, self.sensitivity, self.size, spread)

    @property
    def scales(self) -> Floats:
        """Scale of the noise of each released number, shape (size,)."""
        found = np.full(self.size, self.s)
        found[: self.known.count - 1] /= self.widths.kappa
        return found

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record changes its group; see `Mechanism`."""
        low, high = np.array(self.domain, dtype=np.float64).T
        beyond = BEYOND * (high - low)
        yield from pairs_of_groups(self.known.name, n, high, low - beyond, high + beyond)

    def statistic(self, values: Floats) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Return the exact (sizes, sums), shape (size,), as they are released but for noise."""
        records, codes = self.known.parted(values)
        whole, unit, clamped = self._products(records)
        centre = np.array([round(c * unit) for c in self.widths.centre], dtype=np.int64)
        sums = sums_by_group(whole - centre, codes, self.known.count)
        sizes = np.bincount(codes, minlength=self.known.count)[:-1].astype(np.float64)
        return np.concatenate([sizes, np.array([float(s) for group in sums for s in group]) / unit]), clamped

    def own(self) -> dict[str, Any]:
        """Return bounds, groups, their weight and the centres."""
        found = self.widths
        return super().own() | {
            "groups": self.known.describe(),
            "kappa": found.kappa,
            "centre": list(found.centre),
            "scale": [self.s / found.kappa, self.s],
        }

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee; scales of sizes, and of sums."""
        found = self.widths
        return super().figures() | {
            "scale": [self.s / found.kappa, self.s],
            "sensitivity_paper": found.paper,
            "kappa": found.kappa,
            "groups": self.known.describe(),
        }

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        known = self.known
        return (
            f"Laplace noise of scale {self.s:.6g} on {len(self.widths.centre)} sums of centred products of "
            f"{', '.join(self.columns)}, clamped to their bounds and rescaled to [-1, 1], by {known.name} "
            f"({known.count} groups), and of scale {self.s / self.widths.kappa:.6g} on the groups' sizes"
        )

    def _weighted(self, found: NDArray[Any]) -> NDArray[Any]:
        weighted = found.astype(np.float64)
        weighted[: self.known.count - 1] *= self.widths.kappa
        return weighted

    def _told(self, noisy: Floats) -> Floats:
        told = noisy.copy()
        told[: self.known.count - 1] /= self.widths.kappa
        return told


def make(spec: ClampedMomentsMechanism, records: PublicRecords) -> ClampedMoments:
    """Return the mechanism of a spec; see `ClampedMoments.from_spec`."""
    assert records.n is not None  # checked
    return GroupedMoments.from_spec(spec, records.names, records.n, records.groups)
