"""What chains files hold of a state: the components of a mixture, or the parameters of a parametric model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.kernels.layout import Floats, Layout, find_layout, known_layouts
from dpmix.models.model_protocols import GROUP
from dpmix.numerics.in_words import figures

if TYPE_CHECKING:
    from dpmix.store.h5 import Group

__all__ = [
    "Floats",
    "Ints",
    "Layout",
    "Stored",
    "check_components",
    "figures",
    "layout_of",
    "same_parameters",
    "stored_parameters",
]

# What chains files hold of the components of a mixture, by kernel and base measure


Ints = NDArray[np.int64]


_ONLY_BASE = {"beta": "gamma", "multivariate_normal": "niw"}


def layout_of(path: Path, attrs: Mapping[str, Any], spec: Mapping[str, Any]) -> Layout:
    """Find the layout by the attributes `kernel` and `base`, or, without them, by the spec.

    Raises
    ------
    DataError
        When it is no mixture with a kernel and base measure that are known.
    """
    model = spec.get("model") or {}
    kind = str(model.get("kind", "mixture"))
    kernel = str(attrs.get("kernel") or model.get("kernel", "normal"))
    stated = (model.get("base") or {}).get("kind", "nig")
    base = str(attrs.get("base") or _ONLY_BASE.get(kernel, stated))
    layout = find_layout(kernel, base)
    if kind != "mixture" or layout is None:
        known = ", ".join(f"{k} with {b}" for k, b in known_layouts())
        raise DataError(
            f"{path} is of a {kind} with kernel {kernel} and base {base}; known are mixtures of {known}"
        )
    return layout


def check_components(
    path: Path,
    start: int,
    layout: Layout,
    n_clusters: Ints,
    weights: Floats,
    parameters: Mapping[str, Floats],
) -> None:
    """Refuse components that no sampler writes.

    Parameters
    ----------
    path : path
        File, for the message.
    start : int
        Number of the first state.
    layout : Layout
    n_clusters : int64 array (states,)
        Components that each state should have.
    weights : float64 array (states, components)
    parameters : mapping of str to float64 array (states, components, ..)

    Raises
    ------
    DataError
        Naming the draw and the component.
    """
    expected = np.arange(weights.shape[1])[None, :] < n_clusters[:, None]
    good = np.isfinite(weights) & (weights >= 0)
    for name, values in parameters.items():
        flat = values.reshape(*weights.shape, -1)
        good &= np.isfinite(flat).all(axis=-1)
        if name in layout.positive:
            size = np.diagonal(values, axis1=-2, axis2=-1) if name == "covariance" else flat
            good &= ((size > 0) | (layout.zero & (size == 0))).all(axis=-1)
    wrong = (expected & ~good) | (~expected & np.isfinite(weights))
    if wrong.any():
        state, component = np.argwhere(wrong)[0]
        raise DataError(
            f"{path} holds a bad component: draw {start + state}, component {component} of the posterior"
        )
    total = np.where(expected, weights, 0.0).sum(axis=1)
    if (total > 1.0 + 1e-9).any():
        raise DataError(
            f"{path} holds weights that sum to {total.max():g} at draw {start + int(total.argmax())}"
        )


# The parameters that the chains file of a parametric model holds


_ROLES = ("scalar", "shares", "curve", "density", "draw")


@dataclass(frozen=True)
class Stored:
    """A parameter of a file: dims and role as in `dpmix.models.model_protocols.Parameter`.

    Parameters
    ----------
    name : str
        Its dataset in `/posterior`.
    shape : tuple of int
        (chains, draws, ..).
    dims : tuple of str
        Names of its own dimensions.
    coords : mapping of str to array
        Their coordinates.
    role, title, column : str
        How it is summarized, what it is called there, and the column that it is about.
    """

    name: str
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    coords: Mapping[str, NDArray[Any]] = field(repr=False)
    role: str
    title: str
    column: str

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, where its first dimension is theirs; else empty."""
        return tuple(_in_words(self.coords[GROUP])) if self.dims[:1] == (GROUP,) else ()

    def labels(self) -> list[str]:
        """Names of its entries, in C order: `mean`, `quantile[0.25]`, `probability[red]`, `beta[1]`.

        A group goes first between the brackets, and then a column: `mean[height]`, `quantile[height,0.25]`,
        `quantile[female,height,0.25]`.
        """
        own = [self.column] if self.column else []
        names = [[group, *own] for group in self.groups] or [own]
        for dim in self.dims[bool(self.groups) :]:
            entries = _in_words(self.coords[dim])
            names = [[*name, entry] for name in names for entry in entries]
        return [f"{self.title}[{','.join(name)}]" if name else self.title for name in names]


def stored_parameters(path: Path, posterior: Group) -> tuple[Stored, ...]:
    """Read what parameters there are, without their draws.

    Raises
    ------
    DataError
        When there are none, or one is not described as they are.
    """
    found = []
    for name in posterior.names()[0]:
        data = posterior[name]
        if data.dims == (name,):
            continue
        attrs, dims, shape = data.attrs, data.dims, data.shape
        role = attrs.get("role")
        if dims[:2] != ("chain", "draw") or role not in _ROLES:
            raise DataError(f"{path} is not a chains file of dpmix: {name} is no parameter of a model")
        own = {dim: posterior[dim][()] for dim in dims[2:]}
        column = str(attrs.get("column", ""))
        title = str(attrs.get("title", name))
        found.append(Stored(name, shape, dims[2:], own, str(role), title, column))
    if not found or any(stored.shape[:2] != found[0].shape[:2] for stored in found):
        raise DataError(f"{path} is not a chains file of dpmix: it has no draws of parameters")
    return tuple(found)


def same_parameters(first: Sequence[Stored], other: Sequence[Stored]) -> bool:
    """Say whether two files hold the same parameters, with the same coordinates."""
    return len(first) == len(other) and all(
        (a.name, a.dims, a.role, a.title, a.column) == (b.name, b.dims, b.role, b.title, b.column)
        and all(np.array_equal(a.coords[dim], b.coords[dim]) for dim in a.dims)
        for a, b in zip(first, other, strict=True)
    )


def _in_words(values: NDArray[Any]) -> list[str]:
    """Write coordinates, numbers as `figures` does."""
    return figures(values) if values.dtype.kind in "fiu" else [str(value) for value in values]
