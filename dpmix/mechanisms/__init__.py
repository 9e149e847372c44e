"""Mechanisms by kind: their mathematics, their guarantee, and the release of confidential values.

A new mechanism is one file here with a class like `Laplace`, and one line in each of the two registers below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms import gaussian, laplace
from dpmix.mechanisms.base import LocalAdditive, Mechanism, Pairs
from dpmix.mechanisms.gaussian import Gaussian
from dpmix.mechanisms.laplace import Laplace
from dpmix.privacy.accounting import Guarantee

__all__ = ["Gaussian", "Laplace", "LocalAdditive", "Mechanism", "from_spec", "stated"]

_BY_KIND: dict[str, Callable[[Any, Pairs], LocalAdditive]] = {
    "laplace": Laplace.from_spec,
    "gaussian": Gaussian.from_spec,
}
_STATED: dict[str, Callable[[Any, Pairs | None, int], tuple[tuple[float, ...], Guarantee]]] = {
    "laplace": laplace.stated,
    "gaussian": gaussian.stated,
}


def from_spec(spec: Any, columns: int) -> LocalAdditive:
    """Return the calibrated mechanism of a spec's section ``mechanism``.

    Parameters
    ----------
    spec : MechanismSpec
        A checked section, with its public domain.
    columns : int
        Number of columns to be released.

    Raises
    ------
    PrivacyError
        For the kind ``none``, and for guarantees that cannot be met.
    SpecError
        For kinds that are not here, and for bounds that are missing or not one pair per column.
    """
    if spec.kind == "none":
        raise PrivacyError(
            "mechanism.kind: none adds no noise, so that there is nothing to release; "
            "choose " + " or ".join(_BY_KIND)
        )
    if spec.kind not in _BY_KIND:
        raise SpecError(f"mechanism.kind: {spec.kind} cannot be applied here; choose {' or '.join(_BY_KIND)}")
    if spec.domain is None:
        raise SpecError(
            "mechanism.domain: missing; give the public bounds here or in data.domain "
            "(they are never read off the data)"
        )
    _check_pairs(spec.domain, columns)
    return _BY_KIND[spec.kind](spec, spec.domain)


def stated(spec: Any, columns: int) -> tuple[dict[str, Any], Guarantee]:
    """Return description and guarantee of a release made elsewhere, as the analyst's spec states them.

    Parameters
    ----------
    spec : MechanismSpec
        A checked section: a scale, or a guarantee with its domain; or the kind ``none``.
    columns : int
        Number of columns of the release.

    Raises
    ------
    SpecError
        For kinds that are not here, and for bounds that are not one pair per column.
    """
    if spec.kind == "none":
        return {"kind": "none"}, Guarantee(None, None, None)
    if spec.kind not in _STATED:
        raise SpecError(f"mechanism.kind: {spec.kind} cannot be fitted here; choose {' or '.join(_STATED)}")
    if spec.domain is not None:
        _check_pairs(spec.domain, columns)
    scale, guarantee = _STATED[spec.kind](spec, spec.domain, columns)
    names = ("epsilon", "delta", "rho", "scale")
    return {
        "kind": spec.kind,
        "scale": list(scale),
        "domain": None if spec.domain is None else [list(pair) for pair in spec.domain],
        "calibration": _calibration(spec),
        "requested": {k: getattr(spec, k) for k in names if getattr(spec, k, None) is not None},
        "stated": True,
    }, guarantee


def _calibration(spec: Any) -> str:
    if spec.scale is not None:
        return "scale"
    return "exact" if spec.kind == "gaussian" and spec.rho is not None else str(spec.calibration)


def _check_pairs(domain: Pairs, columns: int) -> None:
    if len(domain) != columns:
        raise SpecError(
            f"mechanism.domain: {len(domain)} pairs of bounds for {columns} columns; give one pair per column"
        )
