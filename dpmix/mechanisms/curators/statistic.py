"""What mechanisms that add noise to a statistic of the whole sample share."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import (
    HALF_NOISE,
    Loss,
    Mechanism,
    Pairs,
    Progress,
    Released,
    Seeded,
    additive_loss,
)
from dpmix.mechanisms.curators.private_groups import Groups, with_groups
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.conversions import (
    discrete_gaussian_epsilon,
    discrete_gaussian_sigma,
    laplace_rho,
    response_rho,
)
from dpmix.privacy.noise import AdditiveNoise, WholeNoise, noise_of, noisy

if TYPE_CHECKING:
    from dpmix.mechanisms.noisy_counts.section import Noise, NoisyCountsMechanism
    from dpmix.mechanisms.perturbed_histogram.section import PerturbedHistogramMechanism

Floats = NDArray[np.float64]
M = TypeVar("M", bound=Mechanism)

ROUNDED_UP = 1 + 8 * 2.0**-52
"""Covers what a formula in floating point may lose."""


@dataclass(frozen=True, kw_only=True)
class NoisyStatistic(Mechanism):
    """Release T + noise, T a vector of which one record moves at most `sensitivity` in L1 norm.

    Independent Laplace, or two-sided geometric, noise of scale s on every entry is eps-DP with
    eps = sensitivity/s. (Counts may have discrete Gaussian noise; `dpmix.mechanisms.noisy_counts.curator`.)

    Parameters
    ----------
    columns : tuple of str
        Names of the columns that the statistic is of.
    s : float
        Scale of the noise.
    calibration : str
        How the scale was found.
    requested : dict
        What was asked for, such as ``{"epsilon": 1.0}``.
    n : int
        Number of confidential records.
    groups : Groups, optional
        Groups whose sizes are private; values have their codes as last column then.
    """

    kind: ClassVar[str]
    columns: tuple[str, ...]
    s: float
    calibration: str
    requested: Mapping[str, float] = field(default_factory=dict)
    n: int
    noise: Noise = "laplace"
    domain: Pairs = ()
    groups: Groups | None = None

    @property
    @abc.abstractmethod
    def sensitivity(self) -> float:
        """L1 sensitivity of the statistic."""

    @property
    @abc.abstractmethod
    def rho(self) -> float:
        """A zCDP parameter that holds, rounded up."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of entries of the statistic."""

    @abc.abstractmethod
    def statistic(self, values: Floats) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Return the statistic, shape (size,), and how many values of each column were clamped."""

    @abc.abstractmethod
    def own(self) -> dict[str, Any]:
        """Return what is public of this kind alone, for JSON."""

    @property
    def source(self) -> AdditiveNoise | WholeNoise:
        """The noise of all entries together."""
        return noise_of(self.noise, self.s, self.sensitivity, self.size, 4.0 * self.n + 4.0)

    @property
    def weights(self) -> Floats:
        """What each number is multiplied by before noise of one scale is added, and divided by after."""
        return np.ones(self.size)

    @property
    def scales(self) -> Floats:
        """Scale of the noise of each released number, shape (size,)."""
        return np.asarray(self.s / self.weights)

    @property
    def guarantee(self) -> Guarantee:
        """Epsilon by the noise library's own privacy map, and rho."""
        return with_groups(Guarantee(self.source.loss, 0.0, self.rho, "global"), self.groups)

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "noise": self.noise,
            "scale": [self.s],
            "sensitivity": [self.sensitivity],
            "calibration": self.calibration,
            "requested": dict(self.requested),
            "granularity": [self.source.grid],
            "domain": None,
        } | self.own()

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        return {"scale": self.s, "sensitivity": self.sensitivity, "size": self.size, "n": self.n}

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        width = len(self.columns) + (self.groups is not None)
        if values.shape != (self.n, width) or not np.isfinite(values).all():
            raise PrivacyError(f"{self.kind} takes finite values of {self.n} records and {width} columns")
        found, clamped = self.statistic(values)
        told = noisy(self.source, found * self.weights, rng) / self.weights
        return self.made(told[:, None], ("statistic",), self.n, private=rng is None), clamped

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of noise on the statistic; see `Mechanism`."""
        first, second = (self.statistic(x)[0].astype(float) for x in (one, other))
        return additive_loss(first, second, self.scales, self.noise)

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise; see `Mechanism`."""
        return HALF_NOISE, replace(self, s=self.s / 2)


def least_scale(
    make: Callable[[float], M], formula: float, requested: Mapping[str, float], noise: str = ""
) -> M:
    """Return what `make` gives for the smallest scale near a formula's whose guarantee is within `requested`.

    The formula is in real numbers; rounding makes it too small by a few units in the last place.

    Raises
    ------
    PrivacyError
        When no scale nearby reaches it, naming the `noise`.
    """
    for attempt in range(60):
        made = make(formula * (1 + (2.0**attempt - 1) * 2.0**-52))
        if made.guarantee.within(requested):
            return made
    asked = ", ".join(f"{name} = {value:g}" for name, value in requested.items())
    raise PrivacyError(f"no {noise + ' ' * bool(noise)}noise meets {asked}")


# What noise on counts costs, and discrete Gaussian noise as mechanisms state and calibrate it


def noise_rho(noise: str, scale: float, features: int = 1, granularity: float = 0.0) -> float:
    """Return the zCDP of Laplace or geometric noise on the counts of some features, rounded up.

    Rounding to a grid may add `granularity` to a change.
    """
    each = (1 + granularity) / scale
    return 2 * features * (response_rho(each) if noise == "geometric" else laplace_rho(each)) * ROUNDED_UP


def of_discrete_gaussian(
    sigma: float, moved: int, delta: float | None, rho: float | None = None
) -> Guarantee:
    """Return rho and, at a delta, epsilon of noise on counts of which a record moves `moved` by one.

    Rho is by the noise library's own privacy map; by formula where left out, of noise drawn elsewhere.
    """
    if rho is None:
        rho = moved / (2 * sigma * sigma) * ROUNDED_UP
    if delta is None:
        return Guarantee(None, None, rho, "global")
    return Guarantee(discrete_gaussian_epsilon(sigma, moved, delta), delta, rho, "global")


def sigma_for(spec: PerturbedHistogramMechanism | NoisyCountsMechanism, moved: int) -> float:
    """Return the sigma that a spec asks for, by its scale, its rho or its (epsilon, delta).

    Raises
    ------
    PrivacyError
        When it cannot be met.
    """
    if spec.scale is not None:
        return spec.scale
    if spec.rho is not None:
        return math.sqrt(0.5 * moved / spec.rho)
    assert spec.epsilon is not None and spec.delta is not None  # the spec states one of the three
    return discrete_gaussian_sigma(spec.epsilon, spec.delta, moved)
