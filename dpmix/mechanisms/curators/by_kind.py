"""Mechanisms by kind: their mathematics, their guarantee, and the release of confidential values.

A new mechanism is one file here with a class like `Laplace`, and one line in each of the two registers below.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.mechanism import Mechanism, Pairs
from dpmix.mechanisms.curators.private_groups import Groups
from dpmix.mechanisms.laws.every import Law, law_of
from dpmix.privacy.accounting import Guarantee
from dpmix.spec.grouping import GROUPED

__all__ = ["STATISTICS", "WHOLE", "Groups", "Mechanism", "from_spec", "needs_n", "stated"]

Stated = tuple[dict[str, Any], Guarantee]

# how a kind's module makes its mechanism, and what it makes of an analyst's statement; a command imports the
# modules of the kinds that it meets
_BY_KIND: dict[str, Callable[[Any, Any, Pairs, int | None, Groups | None], Mechanism]] = {
    "laplace": lambda of, spec, domain, n, groups: of.Laplace.from_spec(spec, domain),
    "gaussian": lambda of, spec, domain, n, groups: of.Gaussian.from_spec(spec, domain),
    "wavelet": lambda of, spec, domain, n, groups: of.Wavelet.from_spec(spec, domain, n),
    "binomial": lambda of, spec, domain, n, groups: of.Binomial.from_spec(spec, domain, n),
    "smoothed_histogram": lambda of, spec, domain, n, groups: of.SmoothedHistogram.from_spec(
        spec, domain, n, groups
    ),
    "perturbed_histogram": lambda of, spec, domain, n, groups: of.PerturbedHistogram.from_spec(
        spec, domain, n, groups
    ),
}
_STATED: dict[str, Callable[[Any, Any, int, int | None, Groups | None], Stated]] = {
    "laplace": lambda of, spec, columns, n, groups: _additive(of.stated(spec, spec.domain, columns)),
    "gaussian": lambda of, spec, columns, n, groups: _additive(of.stated(spec, spec.domain, columns)),
    "wavelet": lambda of, spec, columns, n, groups: of.stated(spec),
    "binomial": lambda of, spec, columns, n, groups: of.stated(spec),
    "smoothed_histogram": lambda of, spec, columns, n, groups: of.stated(spec, n, groups),
    "perturbed_histogram": lambda of, spec, columns, n, groups: of.stated(spec, groups),
    "noisy_counts": lambda of, spec, columns, n, groups: of.stated(spec, groups),
    "clamped_moments": lambda of, spec, columns, n, groups: of.stated(spec, groups),
    "log_moments": lambda of, spec, columns, n, groups: of.stated(spec, n, groups),
    "posterior": lambda of, spec, columns, n, groups: _stated_posterior(of, spec, n),
}
STATISTICS = ("noisy_counts", "clamped_moments", "log_moments")
"""Kinds that release a statistic of the whole sample, of several columns together."""
WHOLE = (*STATISTICS, "posterior")
"""Kinds that release something of the whole sample that has no bounds of its columns."""
_SEVERAL = ("laplace", "gaussian")
_KEYS = ("epsilon", "delta", "rho", "scale", "weight")


_GROUPED = {"log_moments": "grouped_log_moments", "clamped_moments": "grouped_moments"}
"""Module of a kind's folder with what releases it of groups, where the kind's own does not."""


def _module(kind: str) -> Any:
    return import_module(f"dpmix.mechanisms.{kind}.curator")


def needs_n(spec: Any) -> bool:
    """Whether the guarantee of a mechanism depends on the number of records, and the spec does not say it."""
    return spec.kind in ("smoothed_histogram", *WHOLE) and spec.n is None


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
        Groups whose sizes are private, for the kinds of `dpmix.spec.grouping.GROUPED`.

    Raises
    ------
    PrivacyError
        For the kind ``none``, and for guarantees that cannot be met.
    SpecError
        For kinds that are not here, bounds that are missing or not one pair per column, several columns where
        the kind releases one, and a number of records that is missing or another than ``mechanism.n``.
    """
    if spec.kind == "none":
        raise PrivacyError(
            "mechanism.kind: none adds no noise, so that there is nothing to release; "
            "choose " + " or ".join((*_BY_KIND, *WHOLE))
        )
    if spec.kind not in _BY_KIND and spec.kind not in WHOLE:
        known_kinds = " or ".join((*_BY_KIND, *WHOLE))
        raise SpecError(f"mechanism.kind: {spec.kind} cannot be applied here; choose {known_kinds}")
    _check_groups(spec.kind, groups)
    given = getattr(spec, "n", None)
    if n is not None and given is not None and given != n:
        raise SpecError(f"mechanism.n: {given}, but there are {n} records; leave it out, or correct it")
    if spec.kind in WHOLE:
        records = given if n is None else n
        if records is None:
            raise SpecError(f"mechanism.n: missing; a release of {spec.kind} is of a known number of records")
        known = tuple(names) or tuple(f"column {i + 1}" for i in range(columns))
        return _of_whole(spec, known, records, categories, groups)
    if columns > 1 and spec.kind not in _SEVERAL:
        raise SpecError(
            f"data.columns: names {columns} columns, but {spec.kind} releases one; release each by a spec of "
            f"its own, or use mechanism.kind {' or '.join(_SEVERAL)}"
        )
    _check_domain(spec, columns)
    made: Any = _BY_KIND[spec.kind](_module(spec.kind), spec, spec.domain, n, groups)
    order = getattr(spec, "order", None)  # of rows, which local releases alone have
    ordered: Mechanism = made if order is None else dataclasses.replace(made, order=order)
    return ordered


def _of_whole(
    spec: Any,
    names: tuple[str, ...],
    n: int,
    categories: Sequence[tuple[str, ...] | None],
    groups: Groups | None,
) -> Mechanism:
    of = _module(spec.kind)
    made: Mechanism
    if spec.kind == "posterior":
        made = of.from_spec(spec, names, n, categories)
    elif spec.kind == "noisy_counts":
        made = of.NoisyCounts.from_spec(spec, names, n, categories, groups)
    elif groups is not None:
        of = import_module(f"dpmix.mechanisms.{spec.kind}.{_GROUPED[spec.kind]}")
        grouped = of.GroupedLogMoments if spec.kind == "log_moments" else of.GroupedMoments
        made = grouped.from_spec(spec, names, n, groups)
    elif spec.kind == "log_moments":
        made = of.LogMoments.from_spec(spec, names, n)
    else:
        made = of.ClampedMoments.from_spec(spec, names, n)
    return made


def _check_groups(kind: str, groups: Groups | None) -> None:
    if groups is not None and kind not in GROUPED:
        raise SpecError(
            f"data.group: {kind} is not for groups whose sizes are private; use {' or '.join(GROUPED)}"
        )


def stated(
    spec: Any, columns: int, n: int | None = None, groups: Groups | None = None
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

    Raises
    ------
    SpecError
        For kinds that are not here, for bounds that are not one pair per column, and where the bounds or the
        number of records are missing and needed.
    """
    if spec.kind == "none":
        return law_of({"kind": "none"}), Guarantee(None, None, None)
    _check_groups(spec.kind, groups)
    if spec.kind not in _STATED:
        raise SpecError(f"mechanism.kind: {spec.kind} cannot be fitted here; choose {' or '.join(_STATED)}")
    if spec.kind in STATISTICS or spec.kind == "posterior":
        pass  # bounds, where there are any, are its own
    elif spec.kind not in _SEVERAL:
        _check_domain(spec, 1)
    elif spec.domain is not None:
        _check_pairs(spec.domain, columns)
    own, guarantee = _STATED[spec.kind](_module(spec.kind), spec, columns, n, groups)
    described = {
        "kind": spec.kind,
        "domain": None if spec.domain is None else [list(pair) for pair in spec.domain],
        "calibration": _calibration(spec),
        "requested": {k: getattr(spec, k) for k in _KEYS if getattr(spec, k, None) is not None},
        "stated": True,
    } | own
    return law_of(described), guarantee


def _stated_posterior(of: Any, spec: Any, n: int | None) -> Stated:
    """Describe a released posterior as its mechanism does; a certificate is sought, or found where it was."""
    records = spec.n if n is None else n
    if records is None:
        raise SpecError("mechanism.n: missing; a posterior does not tell of how many records it is")
    made = of.from_spec(spec, ("parameter",), records)
    return made.describe(), made.guarantee


def _additive(found: tuple[tuple[float, ...], Guarantee]) -> Stated:
    return {"scale": list(found[0])}, found[1]


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
