"""Two-sided geometric noise on integers, by OpenDP's exact sampler seeded by the operating system.

OpenDP adds in the integers' own type and saturates: 2^31 - 1 in place of anything above it, where Python's
int is asked for, which it takes for 32 bits. So 64 bits are asked for, and scale and integers are bounded
before anything is drawn, such that noise passes 2^53, up to which doubles hold every integer, with a
probability far below 2^-40.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError

LARGEST_SCALE = 1e12
"""Of the noise: beyond 2^52 then with a probability below exp(-4503) for each integer."""
LARGEST_VALUE = 2**52
"""Of an integer before noise."""


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
        if not 1e-12 < self.scale < LARGEST_SCALE:
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
            When the values are not such, or not counts of at most 2^52 records: before anything is drawn.
        """
        if values.dtype != np.int64 or values.shape != (self.size,):
            raise PrivacyError("geometric noise is added to whole numbers of the stated shape only")
        if not ((values >= -LARGEST_VALUE) & (values <= LARGEST_VALUE)).all():
            raise PrivacyError("geometric noise is added to whole numbers of at most 2^52 only")
        return np.array(self._measurement(values.tolist()), dtype=np.float64)

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
    domain = dp.vector_domain(dp.atom_domain(T="i64"), size=size)
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
