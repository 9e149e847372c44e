"""Mechanisms by kind: their mathematics, their guarantee, and the release of confidential values.

A kind is a folder whose module `curator` has two functions, of a spec's section and of what is public of the
records: `make`, which calibrates the mechanism, and `stated`, which says by formula what a release made
elsewhere states and guarantees. What is asked of the section before, the law of the kind says. A third,
`meant`, is for kinds whose releases say more than a spec can: see `contradiction`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

from dpmix.errors import PrivacyError, SpecError
from dpmix.laws.every import Law, law_of
from dpmix.mechanisms.curators.mechanism import Mechanism, Pairs, PublicRecords
from dpmix.mechanisms.curators.private_groups import Groups
from dpmix.privacy.accounting import Guarantee
from dpmix.spec.kinds import MECHANISMS, kinds_that

__all__ = ["Groups", "Mechanism", "contradiction", "from_spec", "needs_n", "stated"]

_SETTINGS = ("levels", "classes", "bounds", "trials", "bins", "draws", "noise", "n")
_AGREEMENT = 1e-6  # noise is calibrated on a grid, a little above its formula


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
    """Return the calibrated mechanism of a spec's checked section ``mechanism``, with its public domain.

    The number of records n is for the global mechanisms; names of the columns, column 1, .. where left out,
    their public categories, where they have any, and groups whose sizes are private are for the kinds that
    know of them.

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

    The section states a scale, or a guarantee with its domain; or it is of the kind ``none``. Else as
    `from_spec`; the number of records is that of the spec where it is left out.

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
        "requested": spec.requested(),
        "stated": True,
    } | own
    return law_of(described), guarantee


def contradiction(
    spec: Any,
    made: Law,
    columns: int,
    n: int,
    groups: Groups | None = None,
    *,
    tallied: bool = False,
) -> str | None:
    """Say what of a section contradicts the law that a release of its kind states, or None.

    Settings are compared as they are, then what was asked for, bounds, and the noise that these mean: that of
    `stated`, or what the function `meant` of the kind's module `curator` makes of section and law, pairs of
    what is meant and what was made by key. Columns, records and groups are the release's; where it is
    `tallied` it is of one of the columns that the section may be of.

    Raises
    ------
    SpecError
        Where what the section means cannot be said.
    """
    for key in _SETTINGS:
        value = _plain(getattr(spec, key, None))
        actual = n if key == "n" else _plain(getattr(made, key, None))
        if value is not None and actual is not None and value != actual:
            return f"mechanism.{key}: {value}, but the release was made with {actual}"
    requested = made.requested or {}
    for key, value in spec.requested().items():
        if key in requested and not _agree(value, requested[key]):
            return f"mechanism.{key}: {value:g}, but the release was made with {key} = {requested[key]:g}"
    meant = getattr(_curator(spec.kind), "meant", None)
    if meant is not None:
        return _first_apart(spec, meant(spec, made))
    pairs, several = made.public_bounds, spec.domain or ()
    if tallied and pairs and len(several) > 1 and pairs[0] in several:
        return None  # its noise is that of its own column
    if spec.domain is not None and pairs is not None and spec.domain != pairs:
        own, other = _pairs_in_words(spec.domain), _pairs_in_words(pairs)
        return f"mechanism.domain: {own}, but the release was made with {other}"
    domain = spec.domain or pairs
    own_noise = any(getattr(spec, key, None) is not None for key in ("scale", "weight"))
    if domain is None and made.on_domain and not own_noise and not made.statistic:
        return (
            "mechanism.domain: missing; without it the noise that is stated cannot be compared with the "
            "release's"
        )
    known = getattr(made, "categories", None) or ()
    law, _ = stated(spec.model_copy(update={"domain": domain}), columns, n, groups, known)
    weights = [("weight", getattr(law, "weight", None), getattr(made, "weight", None))]
    scales = [("scale", *each) for each in zip(law.scale, made.scale, strict=True)]
    return _first_apart(spec, [*scales, *weights])


def _first_apart(spec: Any, pairs: Iterable[tuple[str, Any, Any]]) -> str | None:
    """Say the first of what is meant that is not what was made; numbers agree where they are close."""
    for key, value, actual in pairs:
        if value is None or actual is None:
            continue
        if isinstance(value, float):
            if not _agree(value, actual):
                what = "noise of scale" if key == "scale" else key
                return f"mechanism: means {what} {value:g}, but the release was made with {actual:g}"
        elif value != actual:
            means = "" if value == getattr(spec, key, None) else "means "
            own, other = _plain(value), _plain(actual)
            return f"mechanism.{key}: {means}{own}, but the release was made with {other}"
    return None


def _plain(value: Any) -> Any:
    """Return a setting with lists for tuples, and numbers in pairs as floats."""
    if isinstance(value, list | tuple):
        return [[float(end) for end in item] if isinstance(item, list | tuple) else item for item in value]
    return value


def _agree(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_AGREEMENT)


def _pairs_in_words(pairs: Pairs) -> str:
    return ", ".join(f"[{lo:.12g}, {hi:.12g}]" for lo, hi in pairs)


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
