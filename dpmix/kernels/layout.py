"""What chains files hold of the components of a mixture, and the family that summaries read them by.

A kernel has two halves: `kernels/NAME.py`, which is compiled, and `kernels/NAME_family.py`, which is not and
has one `Layout` for each base measure: names in files with the family behind them. What reads draws and
compiles nothing, as `dpmix predict`, starts without numba for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Layout", "add_layout", "find_layout", "known_layouts"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """Names in a chains file.

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
        Makes the `dpmix.summary.families.family.Family`, or that of several columns, of these scalars and
        arrays; of a registered kernel `dpmix.register` is told it.
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


_FAMILIES: Final = {
    "normal": ("normal_family", "learned_family"),
    "beta": ("beta_family",),
    "multivariate_normal": ("multivariate_family", "learned_family"),
}
_ADDED: dict[tuple[str, str], Layout] = {}


def add_layout(layout: Layout) -> None:
    """Add the layout of a kernel that is registered, or replace what it had."""
    _ADDED[layout.kernel, layout.base] = layout


def find_layout(kernel: str, base: str) -> Layout | None:
    """Return the layout of a kernel with a base measure; None where it is not known."""
    for module in _FAMILIES.get(kernel, ()):
        for layout in import_module(f"dpmix.kernels.{module}").LAYOUTS:
            if (layout.kernel, layout.base) == (kernel, base):
                found: Layout = layout
                return found
    return _ADDED.get((kernel, base))


def known_layouts() -> list[tuple[str, str]]:
    """Return every kernel and base measure that are known, for messages."""
    modules = dict.fromkeys(name for names in _FAMILIES.values() for name in names)
    ours = [each for name in modules for each in import_module(f"dpmix.kernels.{name}").LAYOUTS]
    return [(layout.kernel, layout.base) for layout in ours] + list(_ADDED)
