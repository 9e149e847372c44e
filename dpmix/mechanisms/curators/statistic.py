"""What mechanisms that add noise to a statistic of the whole sample share."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import HALF_NOISE, Loss, Mechanism, Pairs, Progress, additive_loss
from dpmix.mechanisms.curators.private_groups import Groups, with_groups
from dpmix.privacy.accounting import Guarantee, LaplaceEvent
from dpmix.privacy.conversions import (
    discrete_gaussian_epsilon,
    discrete_gaussian_sigma,
    laplace_rho,
    response_rho,
)
from dpmix.privacy.noise import AdditiveNoise, DiscreteGaussianNoise, GeometricNoise, WholeNoise

if TYPE_CHECKING:
    from dpmix.mechanisms.noisy_counts.section import NoisyCountsMechanism
    from dpmix.mechanisms.perturbed_histogram.section import PerturbedHistogramMechanism
    from dpmix.release.sanitized import Release

Floats = NDArray[np.float64]
Noise = Literal["laplace", "geometric", "discrete_gaussian"]

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
        if self.noise == "geometric":
            return GeometricNoise(self.s, int(self.sensitivity), self.size)
        return AdditiveNoise("laplace", self.s, self.sensitivity, self.size, 4.0 * self.n + 4.0)

    @property
    def scales(self) -> Floats:
        """Scale of the noise of each released number, shape (size,)."""
        return np.full(self.size, self.s)

    @property
    def guarantee(self) -> Guarantee:
        """Epsilon by the noise library's own privacy map, and rho."""
        noise = self.source
        if isinstance(noise, WholeNoise):
            return with_groups(Guarantee(noise.loss, 0.0, self.rho, "global"), self.groups)
        event = noise.event()
        assert isinstance(event, LaplaceEvent)  # its noise is
        return with_groups(Guarantee(event.epsilon, 0.0, self.rho, "global"), self.groups)

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        noise = self.source
        grid = 1.0 if isinstance(noise, WholeNoise) else 2.0**noise.granularity
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "noise": self.noise,
            "scale": [self.s],
            "sensitivity": [self.sensitivity],
            "calibration": self.calibration,
            "requested": dict(self.requested),
            "granularity": [grid],
            "domain": None,
        } | self.own()

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        return {"scale": self.s, "sensitivity": self.sensitivity, "size": self.size, "n": self.n}

    def privatize(
        self, values: Floats, columns: Sequence[str], progress: Progress | None = None
    ) -> tuple[Release, tuple[int, ...]]:
        """Release the statistic; see `Mechanism`."""
        found, clamped = self._checked(values)
        noise = self.source
        noisy = noise.add(self._weighted(found))
        if progress is not None:
            progress(values.size)
        return self._release(self._told(noisy), private=True), clamped

    def simulate(
        self, values: Floats, columns: Sequence[str], rng: np.random.Generator
    ) -> tuple[Release, tuple[int, ...]]:
        """Release the statistic of simulated values with seeded noise; see `Mechanism`."""
        found, clamped = self._checked(values)
        noisy = self.source.simulate(self._weighted(found), rng)
        return self._release(self._told(noisy), private=False), clamped

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of noise on the statistic; see `Mechanism`."""
        first, second = (self.statistic(x)[0].astype(float) for x in (one, other))
        return additive_loss(first, second, self.scales, self.noise)

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise; see `Mechanism`."""
        return HALF_NOISE, replace(self, s=self.s / 2)

    def _checked(self, values: Floats) -> tuple[NDArray[Any], tuple[int, ...]]:
        width = len(self.columns) + (self.groups is not None)
        if values.shape != (self.n, width) or not np.isfinite(values).all():
            raise PrivacyError(f"{self.kind} takes finite values of {self.n} records and {width} columns")
        found, clamped = self.statistic(values)
        wanted = np.float64 if self.noise == "laplace" else np.int64
        return found.astype(wanted), clamped

    def _weighted(self, found: NDArray[Any]) -> NDArray[Any]:
        """Return what one scale of noise is right for, of a statistic."""
        return found

    def _told(self, noisy: Floats) -> Floats:
        """Return the noisy statistic of what `_weighted` gave."""
        return noisy

    def _release(self, noisy: Floats, *, private: bool) -> Release:
        return self.made(np.ascontiguousarray(noisy[:, None]), ("statistic",), self.n, private=private)


def calibrated_scale(make: Any, sensitivity: float, epsilon: float) -> Any:
    """Return what `make` gives for the smallest scale nearby whose privacy map does not exceed `epsilon`.

    Parameters
    ----------
    make : callable
        From a scale to a mechanism.
    sensitivity : float
        In L1 norm.
    epsilon : float
        Asked for.

    Raises
    ------
    PrivacyError
        When no scale nearby reaches it.
    """
    return least_scale(make, sensitivity / epsilon, {"epsilon": epsilon}, "")


def least_scale(make: Any, formula: float, requested: Mapping[str, float], noise: str) -> Any:
    """Return what `make` gives for the smallest scale near a formula's whose guarantee is within `requested`.

    Parameters
    ----------
    make : callable
        From a scale to a mechanism.
    formula : float
        The scale in real numbers, which rounding makes too small by a few units in the last place.
    requested : mapping
        What is asked for: epsilon, delta, rho.
    noise : str
        What the noise is called in an error.

    Raises
    ------
    PrivacyError
        When no scale nearby reaches it.
    """
    for attempt in range(60):
        made = make(formula * (1 + (2.0**attempt - 1) * 2.0**-52))
        total = made.guarantee
        if all((getattr(total, name) or 0.0) <= value for name, value in requested.items()):
            return made
    asked = ", ".join(f"{name} = {value:g}" for name, value in requested.items())
    raise PrivacyError(f"no {noise + ' ' * bool(noise)}noise meets {asked}")


# What noise on counts costs, and discrete Gaussian noise as mechanisms state and calibrate it


def noise_rho(noise: str, scale: float, features: int = 1, granularity: float = 0.0) -> float:
    """Return the zCDP of noise on the counts of some features, rounded up.

    Parameters
    ----------
    noise : {"laplace", "geometric"}
        Distribution of the noise.
    scale : float
        Its scale.
    features : int
        Number of features K.
    granularity : float
        By how much rounding to a grid may add to a change.
    """
    each = (1 + granularity) / scale
    return 2 * features * (response_rho(each) if noise == "geometric" else laplace_rho(each)) * ROUNDED_UP


def of_discrete_gaussian(noise: DiscreteGaussianNoise, moved: int, delta: float | None) -> Guarantee:
    """Return rho by the noise library's own privacy map, and epsilon at a delta where one is wanted.

    Parameters
    ----------
    noise : DiscreteGaussianNoise
    moved : int
        How many counts a replaced record moves by one.
    delta : float or None
    """
    return _guarantee(noise.scale, noise.rho, moved, delta)


def stated_discrete_gaussian(sigma: float, moved: int, delta: float | None) -> Guarantee:
    """Return the guarantee of noise drawn elsewhere, by formula."""
    return _guarantee(sigma, moved / (2 * sigma * sigma) * ROUNDED_UP, moved, delta)


def _guarantee(sigma: float, rho: float, moved: int, delta: float | None) -> Guarantee:
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
    assert spec.epsilon is not None  # the spec states one of the three
    assert spec.delta is not None
    return discrete_gaussian_sigma(spec.epsilon, spec.delta, moved)
