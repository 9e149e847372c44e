"""Noise and orders that are really private: drawn with the operating system's randomness.

Adding a floating-point draw to a float leaks (Mironov 2012). OpenDP adds, in exact arithmetic, a multiple of
2^k drawn from the discrete Laplace or Gaussian to the value rounded to a multiple of 2^k. Its own privacy map
accounts for that rounding, and what it reports is what is recorded.

OpenDP 0.16 takes NaN for 0, infinity for 1.8e308 and vectors of the wrong length without a word, so that
everything is checked here first. It adds in the integers' own type and saturates: 2^31 - 1 in place of
anything above it, where Python's int is asked for, which it takes for 32 bits. So 64 bits are asked for, and
scale and integers are bounded before anything is drawn, such that noise passes 2^53, up to which doubles hold
every integer, with a probability far below 2^-40.

A random order of rows is for releases record by record (methods, section 1, "Order"), whose guarantee is for
replacing a record in its place. Where a file is sorted, replacing one person moves all rows in between: d
columns sorted by one of them have an actual eps of eps (1 + (d - 1) n)/d. In a uniformly random order, drawn
apart from the values, neighbouring tables are neighbours in place again.
"""

from __future__ import annotations

import abc
import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.numerics import discrete_gaussian

if TYPE_CHECKING:
    from dpmix.privacy.exact import Source

Kind = Literal["laplace", "gaussian"]

BLOCK = 1024
"""Values are privatized in blocks of about this size, the last one padded: the privacy map depends on it."""
BITS = 50
"""The granularity is 2^k with k this many bits below the smaller of scale and sensitivity."""
LARGEST_SCALE = 1e12
"""Of noise on integers: beyond 2^52 then with a probability below exp(-4503) for each integer."""
LARGEST_VALUE = 2**52
"""Of an integer before noise."""
_KEYS = 1 << 22
"""Keys of rows that are drawn or compared at once."""

# Noise on numbers


@dataclass(frozen=True)
class AdditiveNoise:
    """Independent Laplace or Gaussian noise on each number of a sequence.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Distribution of the noise.
    scale : float
        Laplace scale, or Gaussian standard deviation, in the units of the values.
    sensitivity : float
        How far one record can move the numbers, in L1 norm for Laplace and L2 norm for Gaussian noise: of
        one number a record, the width of the public domain.
    block : int
        The numbers that one record moves all lie in one block of this size.
    spread : float, optional
        How far numbers may be apart at all; `sensitivity` where left out.
    """

    kind: Kind
    scale: float
    sensitivity: float
    block: int = BLOCK
    spread: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises
        ------
        PrivacyError
            When scale or sensitivity are not positive, or beyond what doubles can hold with its granularity.
        """
        for name in ("scale", "sensitivity"):
            value = getattr(self, name)
            if not 1e-290 < value < 1e290:
                raise PrivacyError(
                    f"the {name} of {self.kind} noise must lie between 1e-290 and 1e290, not be {value:g}"
                )
        if not 1e-60 < self.scale / self.sensitivity < 1e60:
            ratio = f"{self.scale:.3g} for a domain of width {self.sensitivity:.3g}"
            raise PrivacyError(f"{self.kind} noise of scale {ratio} is beyond what can be guaranteed")

    @property
    def granularity(self) -> int:
        """The k of the grid 2^k that noise and values live on; a function of public quantities alone."""
        return math.frexp(min(self.scale, self.sensitivity))[1] - 1 - BITS

    @property
    def grid(self) -> float:
        """Distance of the numbers that noise and values live on."""
        return 2.0**self.granularity

    @property
    def _measurement(self) -> Any:
        return _measurement(self.kind, self.scale, self.granularity, self.block)

    @property
    def loss(self) -> float:
        """What replacing one record costs, by the privacy map of the object that adds the noise.

        An epsilon of Laplace noise, a rho of Gaussian noise. The map is for a whole block, in which the
        record is.
        """
        return _loss(self.kind, self.scale, self.granularity, self.block, self.sensitivity)

    def add(
        self, values: NDArray[np.float64], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float64]:
        """Return the values with fresh noise from the operating system's randomness.

        Parameters
        ----------
        values : ndarray of float64, shape (n,)
            Finite; inside a public domain no wider than `sensitivity`, or `spread`.
        progress : callable, optional
            Called with the number of values done, after each block.

        Raises
        ------
        PrivacyError
            When the values are not such; nothing is said about which.
        """
        if values.dtype != np.float64 or values.ndim != 1 or not values.size:
            raise PrivacyError("noise is added to a column of floating-point numbers only")
        spread = self.sensitivity if self.spread is None else self.spread
        if not np.isfinite(values).all() or float(values.max()) - float(values.min()) > spread:
            raise PrivacyError("noise is added to finite values inside the public domain only")
        released = np.empty_like(values)
        block = np.full(self.block, values[0])
        for start in range(0, values.size, self.block):
            part = values[start : start + self.block]
            block[: part.size] = part
            noisy = self._measurement(block.tolist())
            if len(noisy) != self.block:
                raise PrivacyError("the noise library returned a vector of the wrong length")
            released[start : start + part.size] = noisy[: part.size]
            if progress is not None:
                progress(start + part.size)
        return released

    def simulate(self, values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the values with floating-point noise from a seeded generator: simulations only."""
        draw = rng.laplace if self.kind == "laplace" else rng.normal
        return np.asarray(values + draw(0.0, self.scale, values.shape), dtype=np.float64)


@functools.lru_cache(maxsize=64)
def _measurement(kind: Kind, scale: float, granularity: int, block: int) -> Any:
    """Return the noise library's object, which takes a millisecond to make."""
    domains, measurements, metrics = _library()
    domain = domains.vector_domain(domains.atom_domain(T=float, nan=False), size=block)
    if kind == "laplace":
        return measurements.make_laplace(domain, metrics.l1_distance(T=float), scale=scale, k=granularity)
    return measurements.make_gaussian(domain, metrics.l2_distance(T=float), scale=scale, k=granularity)


@functools.lru_cache(maxsize=1024)
def _loss(kind: Kind, scale: float, granularity: int, block: int, sensitivity: float) -> float:
    """Return what the library's privacy map gives, which takes half a millisecond."""
    return float(_measurement(kind, scale, granularity, block).map(sensitivity))


def calibrated(
    kind: Kind,
    scale: float,
    sensitivity: float,
    loss: float,
    *,
    block: int = BLOCK,
    spread: float | None = None,
) -> AdditiveNoise:
    """Return noise whose privacy map does not exceed `loss`: an epsilon of Laplace, a rho of Gaussian noise.

    `scale` is the one that would do in exact arithmetic. Granularity costs a little more, so that the scale
    used is larger by a relative 1e-12 or so; all else is as in `AdditiveNoise`.

    Raises
    ------
    PrivacyError
        When no scale nearby reaches it.
    """
    for attempt in range(60):
        noise = AdditiveNoise(kind, scale * (1 + (2.0**attempt - 1) * 2.0**-52), sensitivity, block, spread)
        if noise.loss <= loss:
            return noise
    name = "epsilon" if kind == "laplace" else "rho"
    raise PrivacyError(f"no {kind} noise meets {name} = {loss:g} for a sensitivity of {sensitivity:g}")


def _library() -> tuple[ModuleType, ModuleType, ModuleType]:
    """Import domains, measurements and metrics of the noise library, which only real releases need.

    Its prelude would also import scikit-learn, where that is installed: a second, for nothing.
    """
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    return domains, measurements, metrics


# Noise on integers


@dataclass(frozen=True)
class WholeNoise(abc.ABC):
    """Independent noise on each of several integers.

    Parameters
    ----------
    scale : float
        Of the noise.
    sensitivity : float
        How far one record can move the integers, in the norm of the noise.
    size : int
        How many integers there are.
    """

    scale: float
    sensitivity: float
    size: int
    name: ClassVar[str]
    grid: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises
        ------
        PrivacyError
            When the scale is beyond what integers in doubles can hold.
        """
        if not 1e-12 < self.scale < LARGEST_SCALE:
            raise PrivacyError(
                f"the scale of {self.name} noise must lie between 1e-12 and 1e12, not be {self.scale:g}"
            )

    @property
    def _measurement(self) -> Any:
        return _measurement_of_whole(self.name, self.scale, self.size)

    @functools.cached_property
    def loss(self) -> float:
        """What replacing one record costs, by the privacy map of the object that adds the noise."""
        return float(self._measurement.map(self.sensitivity))

    def add(self, values: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return integers, shape (size,), with fresh noise from the operating system's randomness.

        Raises
        ------
        PrivacyError
            When the values are not such, or not counts of at most 2^52 records: before anything is drawn.
        """
        if values.dtype != np.int64 or values.shape != (self.size,):
            raise PrivacyError(f"{self.name} noise is added to whole numbers of the stated shape only")
        if not ((values >= -LARGEST_VALUE) & (values <= LARGEST_VALUE)).all():
            raise PrivacyError(f"{self.name} noise is added to whole numbers of at most 2^52 only")
        return np.array(self._measurement(values.tolist()), dtype=np.float64)

    @abc.abstractmethod
    def simulate(self, values: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the values with noise from a seeded generator: simulations only."""


@dataclass(frozen=True)
class GeometricNoise(WholeNoise):
    """Two-sided geometric noise, Pr(x) proportional to exp(-|x|/scale), of parameter exp(-1/scale).

    The sensitivity is a whole number, in L1 norm, and the loss an epsilon.
    """

    name = "geometric"

    def simulate(self, values: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the values with noise from a seeded generator; see `WholeNoise`."""
        success = -math.expm1(-1 / self.scale)
        both = rng.geometric(success, (2, values.size))
        return np.asarray(values + (both[0] - both[1]), dtype=np.float64)


@dataclass(frozen=True)
class DiscreteGaussianNoise(WholeNoise):
    """Discrete Gaussian noise, Pr(x) proportional to exp(-x^2/(2 scale^2)).

    The sensitivity is in L2 norm, and the loss a rho: sensitivity^2 / (2 scale^2).
    """

    name = "discrete Gaussian"

    def simulate(self, values: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the values with noise from a seeded generator; see `WholeNoise`."""
        return np.asarray(values + discrete_gaussian.draw(self.scale, values.size, rng), dtype=np.float64)


@functools.lru_cache(maxsize=64)
def _measurement_of_whole(name: str, scale: float, size: int) -> Any:
    """Return the noise library's object, which takes a millisecond to make."""
    domains, measurements, metrics = _library()
    domain = domains.vector_domain(domains.atom_domain(T="i64"), size=size)
    if name == "geometric":
        return measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=scale)
    return measurements.make_gaussian(domain, metrics.l2_distance(T=float), scale=scale)


# Values with noise, and rows in the order of their release


def noise_of(
    name: str, scale: float, sensitivity: float, size: int, spread: float
) -> AdditiveNoise | WholeNoise:
    """Return noise on `size` numbers together, no further apart than `spread`; of a kind by its name."""
    if name == "geometric":
        return GeometricNoise(scale, int(sensitivity), size)
    if name == "discrete_gaussian":
        return DiscreteGaussianNoise(scale, sensitivity, size)
    return AdditiveNoise("gaussian" if name == "gaussian" else "laplace", scale, sensitivity, size, spread)


def noisy(
    noise: AdditiveNoise | WholeNoise,
    values: NDArray[Any],
    rng: np.random.Generator | None,
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """Return values (n,) with noise of their own: the operating system's, or for simulations `rng`'s."""
    kind = np.int64 if isinstance(noise, WholeNoise) else np.float64
    given: NDArray[Any] = values.astype(kind, copy=False)
    if rng is not None:
        return noise.simulate(given, rng)
    return noise.add(given) if isinstance(noise, WholeNoise) else noise.add(given, progress)


def released_order(
    order: str, n: int, rng: np.random.Generator | None
) -> tuple[str, NDArray[np.int64] | slice]:
    """Return what a release of records says of their order, and which of n rows stand where in it.

    Simulated records stay as they are, in an order that says nothing.
    """
    if rng is not None:
        return "public", slice(None)
    return order, random_order(n) if order == "shuffled" else slice(None)


def random_order(n: int, source: Source = os.urandom) -> NDArray[np.int64]:
    """Return a uniformly random permutation of 0 .. n - 1.

    It sorts independent keys of 64 random bits, drawn anew until all differ: of distinct keys every order is
    equally likely. At n = 10^8 two are equal with a probability of 3e-4. Keys and permutation take 16 n
    bytes.
    """
    keys = np.empty(n, dtype=np.uint64)
    while True:
        for start in range(0, n, _KEYS):
            part = keys[start : start + _KEYS]
            part[:] = np.frombuffer(source(8 * len(part)), dtype=np.uint64)
        order = np.argsort(keys)
        if not _has_ties(keys, order):
            return order


def _has_ties(keys: NDArray[np.uint64], order: NDArray[np.int64]) -> bool:
    for start in range(0, len(order) - 1, _KEYS):
        part = keys[order[start : start + _KEYS + 1]]
        if (part[1:] == part[:-1]).any():
            return True
    return False
