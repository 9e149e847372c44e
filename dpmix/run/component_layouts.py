"""What chains files hold of the components of a mixture, by kernel and base measure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.kernels.layout import Floats, Layout, find_layout, known_layouts

__all__ = ["Floats", "Ints", "Layout", "check_components", "layout_of"]

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
