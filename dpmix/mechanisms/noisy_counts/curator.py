"""Noisy counts of every feature's levels within every class (methods, section 7; naive Bayes)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.laws.additive import noise_of_scale, noise_sd
from dpmix.mechanisms.curators.mechanism import (
    NoisyCells,
    Pair,
    PublicRecords,
    Stated,
    moved,
    pairs_of_groups,
)
from dpmix.mechanisms.curators.private_groups import by_groups, count_of, groups_stated, with_groups
from dpmix.mechanisms.curators.statistic import (
    Floats,
    NoisyStatistic,
    least_scale,
    noise_rho,
    of_discrete_gaussian,
    sigma_for,
)
from dpmix.privacy.accounting import Guarantee
from dpmix.spec.capabilities import counted

if TYPE_CHECKING:
    from dpmix.mechanisms.noisy_counts.section import NoisyCountsMechanism


@dataclass(frozen=True, kw_only=True)
class NoisyCounts(NoisyStatistic):
    """Release n_ij^k + noise: records of class i whose feature k is at level j, for each k, i and j.

    Replacing a record takes 1 from a count of every feature and adds 1 to another: the L1 sensitivity is 2 K
    for K features, and noise of scale 2 K/eps is eps-DP. Each of the 2 K changes costs, exactly,
    rho = e - 1 + exp(-e) under Laplace and at most e tanh(e/2) under two-sided geometric noise, e = 1/s.
    The L2 sensitivity is sqrt(2 K): discrete Gaussian noise of sigma s is K/s^2-zCDP, and (eps, delta)-DP as
    `dpmix.privacy.conversions` sums up.

    Entries stand by feature, then class, then level.

    With groups whose sizes are private the class is the pair (group, class), of code group * classes +
    class: a record that changes its group takes 1 from a count of every feature and adds 1 to another, as
    one that changes its class does. Sums of counts over levels say all that is said of the groups' sizes.

    Parameters
    ----------
    levels : tuple of int
        Number of levels of each feature.
    classes : int
        Number of classes.
    categories : tuple
        Public categories of each column, features first and the class last; None where levels are numbers.
    delta : float, optional
        At which the epsilon of discrete Gaussian noise is stated.
    """

    kind: ClassVar[str] = "noisy_counts"
    of_any_number = True
    levels: tuple[int, ...]
    classes: int
    categories: tuple[tuple[str, ...] | None, ...] = ()
    delta: float | None = None

    def random_records(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw records of nobody; see `Mechanism`."""
        sizes = (*self.levels, self.classes)
        return rng.integers(sizes, size=(n, len(sizes))).astype(np.float64)

    @property
    def sensitivity(self) -> float:
        """Two for each feature, in L1 norm; of discrete Gaussian noise the root of that, in L2 norm."""
        return sensitivity_of(self.noise, len(self.levels))

    @property
    def guarantee(self) -> Guarantee:
        """By the noise library's own privacy map; see `NoisyStatistic`."""
        if self.noise == "discrete_gaussian":
            found = of_discrete_gaussian(self.s, 2 * len(self.levels), self.delta, self.source.loss)
            return with_groups(found, self.groups)
        return super().guarantee

    @property
    def rho(self) -> float:
        """Total over the 2 K changes."""
        return noise_rho(self.noise, self.s, len(self.levels), 2.0**-40)

    @property
    def size(self) -> int:
        """Number of counts."""
        return self.cells * sum(self.levels)

    @property
    def cells(self) -> int:
        """Number of classes, or of pairs of group and class."""
        return self.classes * count_of(self.groups)

    @property
    def noisy_cells(self) -> NoisyCells | None:
        """Those of the feature with most levels, in which every record is counted once, and their noise."""
        cells = self.size // sum(self.levels) * max(self.levels)
        return cells, noise_sd(self.noise, self.s)

    def statistic(self, values: Floats) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Return the counts of codes, shape (size,); codes from 0 on, the class last before groups."""
        group: NDArray[np.int64] | int = 0
        if self.groups is not None:
            values, group = self.groups.parted(values)
        codes = values.astype(np.int64)
        label = group * self.classes + codes[:, -1]
        parts = [
            np.bincount(label * count + codes[:, k], minlength=self.cells * count)
            for k, count in enumerate(self.levels)
        ]
        return np.concatenate(parts), (0,) * values.shape[1]

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record changes all that it has; see `Mechanism`."""
        low, far = np.zeros(columns), np.array([*self.levels, self.classes], dtype=np.float64) - 1.0
        if self.groups is not None:
            yield from pairs_of_groups(self.groups.name, n, low, low, far)
        else:
            yield moved("a record changes class and every level", np.zeros((n, columns)), low, far)

    def own(self) -> dict[str, Any]:
        """Return levels, classes and categories."""
        pairs = zip(self.columns, self.categories, strict=False)
        known = {name: list(names) for name, names in pairs if names is not None}
        found: dict[str, Any] = {"levels": list(self.levels), "classes": self.classes}
        return found | ({"categories": known} if known else {}) | groups_stated(self.groups)

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        return super().figures() | groups_stated(self.groups)

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        return (
            f"{noise_of_scale(self.noise)} {self.s:.6g} on {self.size} counts of "
            f"{counted(len(self.levels), 'feature')} in {self.classes} classes{by_groups(self.groups)}"
        )


def check_levels(
    spec: NoisyCountsMechanism, columns: Sequence[str], categories: Sequence[tuple[str, ...] | None]
) -> None:
    """Check that levels and classes go with columns and categories.

    Raises
    ------
    SpecError
        Naming the first that does not.
    """
    if len(columns) != len(spec.levels) + 1:
        raise SpecError(
            f"mechanism.levels: has {len(spec.levels)} entries, but data.columns names {len(columns)} "
            "columns; give one for each feature, the class being the last column"
        )
    sizes = (*spec.levels, spec.classes)
    for i, (name, names) in enumerate(zip(columns, categories, strict=False)):
        if names is not None and len(names) != sizes[i]:
            key = "classes" if i == len(spec.levels) else "levels"
            raise SpecError(
                f"mechanism.{key}: {sizes[i]} of {name}, but data.categories lists {len(names)}; correct one"
            )


def sensitivity_of(noise: str, features: int) -> float:
    """Return how far a record moves the counts of some features, in the norm of the noise, rounded up."""
    if noise == "discrete_gaussian":
        return math.nextafter(math.sqrt(2.0 * features), math.inf)
    return 2.0 * features


def formula_scale(spec: NoisyCountsMechanism) -> float:
    """Return the scale of a spec's noise, in real numbers.

    Raises
    ------
    PrivacyError
        When it cannot be met.
    """
    if spec.noise == "discrete_gaussian":
        return sigma_for(spec, 2 * len(spec.levels))
    if spec.scale is not None:
        return spec.scale
    assert spec.epsilon is not None  # the spec states one of the two
    return 2.0 * len(spec.levels) / spec.epsilon


def make(spec: NoisyCountsMechanism, records: PublicRecords) -> NoisyCounts:
    """Calibrate to what a spec states; the recorded guarantee never exceeds what was asked.

    Raises
    ------
    SpecError
        When levels, classes and categories do not go with the columns.
    PrivacyError
        When the guarantee cannot be met.
    """
    check_levels(spec, records.names, records.categories)
    n = records.n
    assert n is not None  # checked
    requested = spec.requested()

    def scaled(scale: float) -> NoisyCounts:
        return NoisyCounts(
            columns=records.names,
            s=scale,
            calibration="scale" if spec.scale is not None else "exact",
            requested=requested,
            n=n,
            noise=spec.noise,
            levels=spec.levels,
            classes=spec.classes,
            categories=tuple(records.categories),
            groups=records.groups,
            delta=spec.delta,
        )

    if spec.scale is not None:
        return scaled(spec.scale)
    return least_scale(scaled, formula_scale(spec), requested, spec.noise)


def stated(spec: NoisyCountsMechanism, records: PublicRecords) -> Stated:
    """Return what is known of a release made elsewhere, and its guarantee by formula."""
    features, groups = len(spec.levels), records.groups
    scale = formula_scale(spec)
    own = {
        "levels": list(spec.levels),
        "classes": spec.classes,
        "noise": spec.noise,
        "scale": [scale],
        "sensitivity": [sensitivity_of(spec.noise, features)],
    } | groups_stated(groups)
    if spec.noise == "discrete_gaussian":
        guarantee = of_discrete_gaussian(scale, 2 * features, spec.delta)
    else:
        guarantee = Guarantee(2 * features / scale, 0.0, noise_rho(spec.noise, scale, features), "global")
    return own, with_groups(guarantee, groups)
