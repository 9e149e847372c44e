"""Two-sided geometric noise on integers, by OpenDP's exact sampler seeded by the operating system."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError

_LARGEST = 2.0**53


@dataclass(frozen=True)
class GeometricNoise:
    """Independent noise with Pr(x) proportional to exp(-|x|/scale) on each of several integers.

    Parameters
    ----------
    scale : float
        Of the noise; its parameter is exp(-1/scale).
    sensitivity : int
        How far one record can move the integers, in L1 norm.
    size : int
        How many integers there are.
    """

    scale: float
    sensitivity: int
    size: int

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises
        ------
        PrivacyError
            When the scale is beyond what integers in doubles can hold.
        """
        if not 1e-12 < self.scale < 1e12:
            raise PrivacyError(
                f"the scale of geometric noise must lie between 1e-12 and 1e12, not be {self.scale:g}"
            )

    @property
    def _measurement(self) -> Any:
        return _measurement(self.scale, self.size)

    @functools.cached_property
    def epsilon(self) -> float:
        """What replacing one record costs, by the privacy map of the object that adds the noise."""
        return float(self._measurement.map(self.sensitivity))

    def add(self, values: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return integers, shape (size,), with fresh noise from the operating system's randomness.

        Raises
        ------
        PrivacyError
            When the values are not such, or a noisy one is beyond 2^53.
        """
        if values.dtype != np.int64 or values.shape != (self.size,):
            raise PrivacyError("geometric noise is added to whole numbers of the stated shape only")
        noisy = self._measurement(values.tolist())
        if len(noisy) != self.size or max(map(abs, noisy)) > _LARGEST:
            raise PrivacyError("the noise library returned what doubles cannot hold")
        return np.array(noisy, dtype=np.float64)

    def simulate(self, values: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the values with noise from a seeded generator: simulations only."""
        success = -math.expm1(-1 / self.scale)
        both = rng.geometric(success, (2, values.size))
        return np.asarray(values + (both[0] - both[1]), dtype=np.float64)


@functools.lru_cache(maxsize=64)
def _measurement(scale: float, size: int) -> Any:
    """Return the noise library's object, which takes a millisecond to make."""
    import opendp.prelude as dp  # half a second, and only real releases need it

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int), size=size)
    return dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
