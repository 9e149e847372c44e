"""Mechanisms by kind: their mathematics, their guarantee, and the release of confidential values.

A kind is a folder whose module `curator` has two functions, of a spec's section and of what is public of the
records: `make`, which calibrates the mechanism, and `stated`, which says by formula what a release made
elsewhere states and guarantees. What is asked of the section before, the law of the kind says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.mechanism import Mechanism, Pairs, PublicRecords
from dpmix.mechanisms.curators.private_groups import Groups
from dpmix.mechanisms.laws.every import Law, law_of
from dpmix.privacy.accounting import Guarantee
from dpmix.spec.kinds import MECHANISMS, kinds_that

__all__ = ["Groups", "Mechanism", "from_spec", "needs_n", "stated"]

_KEYS = ("epsilon", "delta", "rho", "scale", "weight")


def _curator(kind: str) -> Any:
    """Return what has the functions `make` and `stated` of a kind."""
    return MECHANISMS.part(kind, "curator")


def _listed(capability: str = "protects") -> str:
    """Return the kinds that have a capability, for messages."""
    kinds = [kind for kind in kinds_that(capability) if MECHANISMS.section(kind).protects]
    if capability == "columns_each":  # asked for numbers, which have bounds
        kinds = [kind for kind in kinds if MECHANISMS.section(kind).on_domain]
    return " or ".join(kinds)


def needs_n(spec: Any) -> bool:
    """Whether the guarantee of a mechanism depends on the number of records, and the spec does not say it."""
    return bool(spec.of_known_number) and spec.n is None


def from_spec(
    spec: Any,
    columns: int,
    n: int | None = None,
    names: Sequence[str] = (),
    categories: Sequence[tuple[str, ...] | None] = (),
    groups: Groups | None = None,
) -> Mechanism:
    """Return the calibrated mechanism of a spec's section ``mechanism``.

    Parameters
    ----------
    spec : MechanismSpec
        A checked section, with its public domain.
    columns : int
        Number of columns to be released.
    n : int, optional
        Number of confidential records, for the global mechanisms.
    names : sequence of str
        Names of the columns; column 1, .. where left out.
    categories : sequence of tuple of str or None
        Public categories of each column, where it has any.
    groups : Groups, optional
        Groups whose sizes are private, for the kinds whose law is grouped.

    Raises
    ------
    PrivacyError
        For the kind ``none``, and for guarantees that cannot be met.
    SpecError
        For kinds that are not here, bounds that are missing or not one pair per column, several columns where
        the kind releases one, and a number of records that is missing or another than ``mechanism.n``.
    """
    _check_kind(spec, "applied")
    if not spec.protects:
        raise PrivacyError(
            f"mechanism.kind: {spec.kind} adds no noise, so that there is nothing to release; choose "
            f"{_listed()}"
        )
    _check_groups(spec, groups)
    given = getattr(spec, "n", None)
    if n is not None and given is not None and given != n:
        raise SpecError(f"mechanism.n: {given}, but there are {n} records; leave it out, or correct it")
    records = PublicRecords(columns, n, tuple(names), tuple(categories), groups)
    if spec.on_domain:
        if columns > 1 and not spec.columns_each:
            raise SpecError(
                f"data.columns: names {columns} columns, but {spec.kind} releases one; release each by a "
                f"spec of its own, or use mechanism.kind {_listed('columns_each')}"
            )
        _check_domain(spec, columns)
    elif spec.trust == "global":
        number = given if n is None else n
        if number is None:
            raise SpecError(f"mechanism.n: missing; a release of {spec.kind} is of a known number of records")
        known = records.names or tuple(f"column {i + 1}" for i in range(columns))
        records = records._replace(n=number, names=known)
    made: Any = _curator(spec.kind).make(spec, records)
    order = getattr(spec, "order", None)  # of rows, which local releases alone have
    ordered: Mechanism = made if order is None else dataclasses.replace(made, order=order)
    return ordered


def _check_kind(spec: Any, done: str) -> None:
    if spec.kind not in MECHANISMS:
        raise SpecError(f"mechanism.kind: {spec.kind} cannot be {done} here; choose {_listed()}")


def _check_groups(spec: Any, groups: Groups | None) -> None:
    if groups is not None and not spec.grouped:
        raise SpecError(
            f"data.group: {spec.kind} is not for groups whose sizes are private; use {_listed('grouped')}"
        )


def stated(
    spec: Any,
    columns: int,
    n: int | None = None,
    groups: Groups | None = None,
    categories: Sequence[tuple[str, ...] | None] = (),
) -> tuple[Law, Guarantee]:
    """Return description and guarantee of a release made elsewhere, as the analyst's spec states them.

    Parameters
    ----------
    spec : MechanismSpec
        A checked section: a scale, or a guarantee with its domain; or the kind ``none``.
    columns : int
        Number of columns of the release.
    n : int, optional
        Number of confidential records, where it is known; else that of the spec.
    groups : Groups, optional
        Groups whose sizes are private.
    categories : sequence of tuple of str or None
        Public categories of each column, where it has any.

    Raises
    ------
    SpecError
        For kinds that are not here, for bounds that are not one pair per column, and where the bounds or the
        number of records are missing and needed.
    """
    _check_kind(spec, "fitted")
    if not spec.protects:
        return law_of({"kind": spec.kind}), Guarantee(None, None, None)
    _check_groups(spec, groups)
    if spec.additive:
        if spec.domain is not None:
            _check_pairs(spec.domain, columns)
    elif spec.on_domain:  # bounds of the others, where there are any, are their own
        _check_domain(spec, columns if spec.columns_each else 1)
    own, guarantee = _curator(spec.kind).stated(
        spec, PublicRecords(columns, n, categories=categories, groups=groups)
    )
    described = {
        "kind": spec.kind,
        "domain": None if spec.domain is None else [list(pair) for pair in spec.domain],
        "calibration": _calibration(spec),
        "requested": {k: getattr(spec, k) for k in _KEYS if getattr(spec, k, None) is not None},
        "stated": True,
    } | own
    return law_of(described), guarantee


def _calibration(spec: Any) -> str:
    for key in ("scale", "weight"):
        if getattr(spec, key, None) is not None:
            return key
    return (
        "exact" if spec.kind == "gaussian" and spec.rho is not None else getattr(spec, "calibration", "exact")
    )


def _check_domain(spec: Any, columns: int) -> None:
    if spec.domain is None:
        raise SpecError(
            "mechanism.domain: missing; give the public bounds here or in data.domain "
            "(they are never read off the data)"
        )
    _check_pairs(spec.domain, columns)


def _check_pairs(domain: Pairs, columns: int) -> None:
    if len(domain) != columns:
        raise SpecError(
            f"mechanism.domain: {len(domain)} pairs of bounds for {columns} columns; give one pair per column"
        )
