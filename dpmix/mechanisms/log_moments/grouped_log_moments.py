"""Noisy sums of logarithms of censored compositions in groups of private sizes (methods, section 16)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import Progress, PublicRecords
from dpmix.mechanisms.curators.neighbours import Loss, Pair, additive_loss, pairs_of_groups
from dpmix.mechanisms.curators.private_groups import Groups, sums_by_group, with_groups
from dpmix.mechanisms.log_moments.curator import BITS, Floats, Grouped, LogMoments, checked, grouped_sums
from dpmix.mechanisms.log_moments.section import LogMomentsMechanism
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.noise import AdditiveNoise, calibrated
from dpmix.release.sanitized import Release

__all__ = ["GroupedLogMoments"]

_UP = 1 + 16 * 2.0**-52


@dataclass(frozen=True, kw_only=True)
class GroupedLogMoments(LogMoments):
    """Release sizes of groups and sums of log max(x, a) - c over the records of each, with Laplace noise.

    One release of (kappa n_1, .., kappa n_(G-1), S_1, .., S_G), S_g the d sums of group g. Its exact L1
    sensitivity is `Grouped.width`: W(a) + k kappa, W(a) that of `LogMoments` and k = 1 for two groups, else
    2. Noise of one scale s = (W + k kappa)/eps is on all of it; the noisy sizes are divided by kappa after.
    Means are not released: they divide by sizes, which are private.

    The threshold is one for all groups, chosen on the whole table as `LogMoments` does: whether a record is
    censored does not depend on its group.

    Parameters
    ----------
    groups : Groups
        The public groups; values have their codes as last column.
    """

    kind: ClassVar[str] = "log_moments"

    @property
    def known(self) -> Groups:
        """The groups, which are given."""
        assert self.groups is not None  # else it is no such mechanism
        return self.groups

    @property
    def size(self) -> int:
        """Numbers in the release: G - 1 sizes, then d sums of each group."""
        return self.known.count - 1 + self.known.count * len(self.columns)

    def settings(self, threshold: float) -> Grouped:
        """Return centre, kappa and sensitivities at a threshold."""
        return grouped_sums(threshold, len(self.columns), self.known)

    def noise(self, part: int, threshold: float) -> AdditiveNoise:
        """Return the noise of kappa times the sizes, and of the sums, at a threshold."""
        d, found = len(self.columns), self.settings(threshold)
        # each logarithm is rounded to the grid, and each sum to a double
        rounding = 2 * d * (2.0**-BITS + 4 * abs(math.log(threshold)) * (self.n + 1) * 2.0**-52)
        sensitivity = found.width * _UP + rounding
        spread = 2 * self.n * (abs(math.log(threshold)) + found.kappa + 1.0)
        wide = found.paper * _UP if self.calibration == "paper" else sensitivity
        if self.calibration == "paper":
            return AdditiveNoise("laplace", wide / self.epsilon1, sensitivity, self.size, spread)
        return calibrated(
            "laplace", wide / self.epsilon1, sensitivity, self.epsilon1, block=self.size, spread=spread
        )

    def statistic(self, values: Floats, threshold: float) -> Floats:
        """Return the exact (sizes, sums), shape (G - 1 + G d,), as they are released but for noise.

        Parameters
        ----------
        values : ndarray, shape (n, d + 1)
            Compositions, and the codes of groups.
        threshold : float
            a.
        """
        shares, codes = self._parted(values)
        sizes = np.bincount(codes, minlength=self.known.count)[:-1].astype(np.float64)
        return np.concatenate([sizes, self._sums(shares, codes, threshold)])

    @property
    def guarantee(self) -> Guarantee:
        """What sizes, sums and choice cost together."""
        return with_groups(super().guarantee, self.known)

    def describe(self) -> dict[str, Any]:
        """Return what is public before anything is chosen, for JSON."""
        return super().describe() | {"groups": self.known.describe()}

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee, by threshold where several."""
        found: dict[str, list[Any]] = {
            name: [] for name in ("scale", "sensitivity", "sensitivity_paper", "kappa", "centre")
        }
        for a in self.thresholds:
            made = self.settings(a)
            for name, value in zip(
                found, (self._scales(a), made.width, made.paper, made.kappa, made.centre), strict=True
            ):
                found[name].append(value)
        own = {"n": self.n, "groups": self.known.describe(), "epsilon1": self.epsilon1}
        if len(self.thresholds) == 1:
            return own | {name: values[0] for name, values in found.items()}
        return own | {"epsilon2": self.epsilon2, "thresholds": list(self.thresholds)} | found

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        d, known = len(self.columns), self.known
        sums = f"on {d} sums of logarithms by {known.name} ({known.count} groups)"
        if len(self.thresholds) == 1:
            of_sizes, of_sums = self._scales(self.thresholds[0])
            return (
                f"Laplace noise of scale {of_sums:.4g} {sums}, censored at {self.thresholds[0]:g}, and of "
                f"scale {of_sizes:.4g} on the sizes of the groups"
            )
        return (
            f"Laplace noise (epsilon {self.epsilon1:g}) {sums}, censored at one of {len(self.thresholds)} "
            f"thresholds, and on the sizes of the groups, the threshold chosen with geometric noise "
            f"(epsilon {self.epsilon2:g})"
        )

    def check(self, values: Floats) -> None:
        """Refuse what are no compositions in groups; see `Mechanism`."""
        self._parted(values)

    def privatize(
        self, values: Floats, columns: Sequence[str], progress: Progress | None = None
    ) -> tuple[Release, tuple[int, ...]]:
        """Release sizes and sums; see `Mechanism`. `values` have the codes of groups as last column."""
        released = self._release(values, None)
        if progress is not None:
            progress(values.size)
        return released, (0,) * len(self.columns)

    def _parted(self, values: Floats) -> tuple[Floats, np.ndarray[Any, np.dtype[np.int64]]]:
        shares, codes = self.known.parted(values)
        return checked(shares, self.columns), codes

    def scales(self, threshold: float) -> Floats:
        """Return the scale of the noise of each released number at a threshold, shape (size,)."""
        sums = self.known.count * len(self.columns)
        return np.repeat(self._scales(threshold), (self.known.count - 1, sums))

    def _scales(self, threshold: float) -> list[float]:
        """Return the noise of sizes, and of sums."""
        scale = self.noise(0, threshold).scale
        return [scale / self.settings(threshold).kappa, scale]

    def _sums(self, shares: Floats, codes: np.ndarray[Any, np.dtype[np.int64]], threshold: float) -> Floats:
        centre = round(self.settings(threshold).centre * 2.0**BITS)
        logs = np.log(np.maximum(shares, threshold))
        whole = np.rint(logs * 2.0**BITS).astype(np.int64) - centre
        sums = sums_by_group(whole, codes, self.known.count)
        return np.array([float(total) for group in sums for total in group]) * 2.0**-BITS

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record changes its group; see `Mechanism`."""
        d, a = columns, self.thresholds[-1]
        u = self.settings(a).centre - float(np.log(a))
        parts = np.arange(1, d + 1)
        s = int(np.argmax(np.maximum(0.0, -parts * np.log(parts * a)) + (d - 2 * parts) * u)) + 1
        far, spread = np.zeros(d), np.zeros(d)
        far[:s], spread[d // 2 :] = 1.0 / s, 1.0 / (d - d // 2)
        yield from pairs_of_groups(self.known.name, n, far, np.eye(d)[0], spread)

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of sizes and sums at the threshold told, and of scores; see `Mechanism`."""

        def of_sums(y: Floats, threshold: float) -> Floats:
            first, second = (self.statistic(x, threshold) for x in (one, other))
            return additive_loss(first, second, self.scales(threshold), "laplace")(y)

        shares = [x[:, :-1] / x[:, :-1].sum(axis=1)[:, None] for x in (one, other)]
        return self._loss_at_threshold(shares, self.size, of_sums)

    def _release(self, values: Floats, rng: np.random.Generator | None) -> Release:
        shares, codes = self._parted(values)
        if len(shares) != self.n:
            raise PrivacyError(f"the guarantee is for {self.n} records, not {len(shares)}")
        threshold, scores = self._choose(shares, rng)
        found, noise = self.settings(threshold), self.noise(0, threshold)
        weighted = self.statistic(values, threshold)
        sizes = slice(self.known.count - 1)
        weighted[sizes] *= found.kappa
        noisy = noise.add(weighted) if rng is None else noise.simulate(weighted, rng)
        noisy[sizes] /= found.kappa
        chosen: dict[str, Any] = {
            "threshold": threshold,
            "scale": [noise.scale / found.kappa, noise.scale],
            "sensitivity": [noise.sensitivity],
            "kappa": found.kappa,
            "centre": found.centre,
        }
        if scores is not None:
            chosen["scores"] = scores
        return self.made(noisy[:, None], ("statistic",), self.n, private=rng is None, chosen=chosen)


def make(spec: LogMomentsMechanism, records: PublicRecords) -> LogMoments:
    """Return the mechanism of a spec; see `LogMoments.from_spec`."""
    assert records.n is not None  # checked
    return GroupedLogMoments.from_spec(spec, records.names, records.n, records.groups)
