"""What summaries read a kernel with its base measure G0 by: its names in chains files, and its family.

A kernel's `family.py`, which is not compiled, has one `Layout` for each base measure: names in files with the
`Family` behind them, which has densities, distribution functions and the prior predictive. What reads draws
and compiles nothing, as `dpmix predict`, starts without numba for it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DEFAULT_POINTS: Final = 200
"""Points of a grid of densities that nobody states."""


class Family(Protocol):
    """A kernel on the line with its base measure; everything is in the data's units.

    Atoms are arrays of shape (parameters, size), whose rows are the family's own.
    """

    def atoms(self, parameters: Mapping[str, Floats]) -> Floats:
        """Return atoms from components as chains files hold them, each array of shape (size,)."""

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` independent atoms from G0."""

    def densities(self, weights: Floats, atoms: Floats, y: Floats) -> Floats:
        """Return each atom's weight times its kernel's density at each y, shape (size, y.size)."""

    def moments(self, atoms: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the variance of a record under each atom, shapes (size,)."""

    def sample(self, atoms: Floats, rng: np.random.Generator) -> Floats:
        """Draw one record from each atom's kernel, shape (size,)."""

    def predictive(self, y: Floats) -> Floats:
        """Prior predictive density of one record: the integral of the kernel's density over G0.

        It is the mean of the random density under a Dirichlet- or Pitman-Yor-process prior, whatever the
        concentration and the discount.
        """

    def cdf(self, atoms: Floats, y: Floats, *, upper: bool = False) -> Floats:
        """Return Pr(Y <= y) under each atom at its own y, or Pr(Y > y) with its digits; shapes (size,)."""

    def quantile_bounds(self, atoms: Floats, level: float) -> tuple[Floats, Floats]:
        """Return values between which each atom's quantile lies, shapes (size,); equal where it is known."""

    def predictive_cdf(self, y: Floats) -> Floats:
        """Pr(Y <= y) of one record under the prior predictive, to about 1e-3 of the smaller tail."""

    def predictive_moments(self) -> tuple[float, float]:
        """Return mean and variance of a record under the prior predictive; the latter may be infinite."""

    def nodes(self) -> Floats:
        """Return increasing points dense where the prior predictive has mass, and far into both tails."""

    def inside(self, grid: Floats) -> Floats:
        """Return the points where densities are reported for the grid that was asked for."""

    def for_distance(self) -> Family:
        """Return the family in the coordinate in which distances are integrated numerically."""


class Learned(ABC):
    """A base measure whose location and scale are learned: a saved state has values of its own.

    These are `base` (2, d): of normal kernels mu0 and b, or the diagonal of Psi, with lambda in a third row
    where it is learned; of a beta kernel the logit of the place, the rate, and lambda likewise.
    """

    @abstractmethod
    def draw_base(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw locations and scales from their priors, shape (size, 2, d)."""

    @abstractmethod
    def draw_given(self, rng: np.random.Generator, base: Floats) -> Floats:
        """Draw an atom from each of the base measures (size, 2, d)."""

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw atoms that share no location and scale."""
        return self.draw_given(rng, self.draw_base(rng, size))

    @abstractmethod
    def rest_atoms(self, base: Floats, nodes: int) -> tuple[Floats, Floats]:
        """Return weights (nodes,) and atoms (.., size nodes) like a record of an unseen component."""

    @abstractmethod
    def log_base(self, base: Floats) -> Floats:
        """Return the log prior density of location and scale (.., 2, d), up to a constant; shape (..,)."""


LEAST: Final = 1e-300
"""What a positive parameter is at least, where its logarithm is taken."""


def centred_gamma(x: Floats, shape: float, rate: float) -> Floats:
    """Return the log density of Gamma(shape, rate) at each x less its mean under it."""
    from scipy import special  # late: SciPy takes its time

    mean = float(special.digamma(shape)) - math.log(rate)
    return np.asarray((shape - 1.0) * (np.log(x) - mean) - (rate * x - shape))


def log_density_of_base(base: Floats, centre: Floats, spread: Floats, shape: float, mean: Floats) -> Floats:
    """Return the log prior density of locations and scales (.., 2, d), up to a constant; shape (..,)."""
    gap = (base[..., 0, :] - centre) / spread
    scale = base[..., 1, :] / mean
    return np.asarray((-0.5 * gap**2 + (shape - 1.0) * np.log(scale) - shape * scale).sum(axis=-1))


def weights_of(base: Floats, lam: float) -> Floats:
    """Return lambda of base measures (size, 2 or 3, d), shape (size, 1); `lam` where it is fixed."""
    return base[:, 2, :1] if base.shape[1] > 2 else np.full((len(base), 1), lam)


def draw_weights(rng: np.random.Generator, shape: float, lam: float, size: int) -> Floats:
    """Draw lambda from its prior, Gamma(shape, (shape - 1) / lam), under which E(1 / lambda) = 1 / lam."""
    return np.maximum(rng.gamma(shape, lam / (shape - 1.0), size), 1e-290)


def log_density_of_weights(base: Floats, shape: float, lam: float) -> Floats:
    """Return the log prior density of lambda (.., 3, d), up to a constant; 0 where it is fixed."""
    if not shape:
        return np.zeros(base.shape[:-2])
    scaled = base[..., 2, 0] * (shape - 1.0) / lam
    return np.asarray((shape - 1.0) * np.log(scaled) - scaled)


@dataclass(frozen=True)
class Layout:
    """Names in a chains file, and the family behind them.

    Parameters
    ----------
    kernel, base : str
        Kernel and base measure of the mixture.
    parameters : tuple of str
        Datasets of `/posterior` over (chain, draw, component, ..).
    positive : tuple of str
        Those that must be positive (the diagonal of a `covariance`).
    scalars, arrays : tuple of str
        What `/constant_data` must hold of the base measure.
    learned : tuple of str
        Datasets of `/posterior` over (chain, draw, ..) of location and scale of a base measure that is
        learned.
    zero : bool
        Whether a variance may also be zero: under a truncated base it is a difference, which may round to it.
    family : callable
        Makes the `Family`, or that of several columns, of these scalars and arrays; of a registered kernel
        `dpmix.register` is told it.
    """

    kernel: str
    base: str
    parameters: tuple[str, ...]
    positive: tuple[str, ...]
    scalars: tuple[str, ...]
    arrays: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    zero: bool = False
    family: Callable[[Mapping[str, float], Mapping[str, Floats]], Any] | None = None


# The layouts by kernel and base measure: of the folders beside this file, and those that are registered


_FOLDERS: Final = tuple(found.name for found in iter_modules([str(Path(__file__).parent)]) if found.ispkg)
_ADDED: dict[tuple[str, str], Layout] = {}


def add_layout(layout: Layout) -> None:
    """Add the layout of a kernel that is registered, or replace what it had."""
    _ADDED[layout.kernel, layout.base] = layout


def _shipped(kernel: str) -> tuple[Layout, ...]:
    found: tuple[Layout, ...] = import_module(f"dpmix.kernels.{kernel}.family").LAYOUTS
    return found


def find_layout(kernel: str, base: str) -> Layout | None:
    """Return the layout of a kernel with a base measure; None where it is not known."""
    own = _shipped(kernel) if kernel in _FOLDERS else ()
    return next((layout for layout in own if layout.base == base), _ADDED.get((kernel, base)))


def known_layouts() -> list[tuple[str, str]]:
    """Return every kernel and base measure that are known, for messages."""
    ours = [(layout.kernel, layout.base) for kernel in _FOLDERS for layout in _shipped(kernel)]
    return ours + list(_ADDED)
