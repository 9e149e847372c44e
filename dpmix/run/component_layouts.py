"""What chains files hold of the components of a mixture, by kernel and base measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    """

    kernel: str
    base: str
    parameters: tuple[str, ...]
    positive: tuple[str, ...]
    scalars: tuple[str, ...]
    arrays: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    zero: bool = False


_NIG = ("base_mu0", "base_lambda", "base_a", "base_b")
_NORMAL = ("mean", "variance")
_GAMMA = ("base_a_shape", "base_a_rate", "base_b_shape", "base_b_rate", "domain_lo", "domain_hi")
LAYOUTS = {
    (layout.kernel, layout.base): layout
    for layout in (
        Layout("normal", "nig", _NORMAL, ("variance",), _NIG),
        Layout(
            "normal",
            "learned_nig",
            _NORMAL,
            ("variance",),
            (*_NIG, "base_mu0_sd", "base_b_shape"),
            learned=("base_mu0", "base_b"),
        ),
        Layout("normal", "truncated_nig", _NORMAL, ("variance",), (*_NIG, "noise_scale"), zero=True),
        Layout("beta", "gamma", ("a", "b"), ("a", "b"), _GAMMA),
        Layout(
            "multivariate_normal",
            "niw",
            ("mean", "covariance"),
            ("covariance",),
            ("base_lambda", "base_nu"),
            ("base_mu0", "base_Psi"),
        ),
        Layout(
            "multivariate_normal",
            "learned_niw",
            ("mean", "covariance"),
            ("covariance",),
            ("base_lambda", "base_nu", "base_psi_shape"),
            ("base_mu0", "base_Psi", "base_mu0_sd"),
            learned=("base_mu0", "base_psi"),
        ),
    )
}
"""The layouts that are known, by kernel and base measure."""
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
    if kind != "mixture" or (kernel, base) not in LAYOUTS:
        known = ", ".join(f"{k} with {b}" for k, b in LAYOUTS)
        raise DataError(
            f"{path} is of a {kind} with kernel {kernel} and base {base}; known are mixtures of {known}"
        )
    return LAYOUTS[kernel, base]


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
