"""Mechanisms by kind: their mathematics, their guarantee, and the release of confidential values.

A new mechanism is one file here with a class like `Laplace`, and one line in each of the two registers below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms import (
    binomial,
    clamped_moments,
    gaussian,
    laplace,
    log_moments,
    noisy_counts,
    perturbed_histogram,
    posterior,
    smoothed_histogram,
    wavelet,
)
from dpmix.mechanisms.base import LocalAdditive, Mechanism, Pairs
from dpmix.mechanisms.binomial import Binomial
from dpmix.mechanisms.clamped_moments import ClampedMoments
from dpmix.mechanisms.gaussian import Gaussian
from dpmix.mechanisms.laplace import Laplace
from dpmix.mechanisms.log_moments import LogMoments
from dpmix.mechanisms.noisy_counts import NoisyCounts
from dpmix.mechanisms.perturbed_histogram import PerturbedHistogram
from dpmix.mechanisms.posterior import PosteriorRelease
from dpmix.mechanisms.smoothed_histogram import SmoothedHistogram
from dpmix.mechanisms.wavelet import Wavelet
from dpmix.privacy.accounting import Guarantee

__all__ = [
    "Binomial",
    "ClampedMoments",
    "Gaussian",
    "Laplace",
    "LocalAdditive",
    "LogMoments",
    "Mechanism",
    "NoisyCounts",
    "PerturbedHistogram",
    "PosteriorRelease",
    "SmoothedHistogram",
    "Wavelet",
    "from_spec",
    "needs_n",
    "stated",
]

Stated = tuple[dict[str, Any], Guarantee]

_BY_KIND: dict[str, Callable[[Any, Pairs, int | None], Mechanism]] = {
    "laplace": lambda spec, domain, n: Laplace.from_spec(spec, domain),
    "gaussian": lambda spec, domain, n: Gaussian.from_spec(spec, domain),
    "wavelet": Wavelet.from_spec,
    "binomial": Binomial.from_spec,
    "smoothed_histogram": SmoothedHistogram.from_spec,
    "perturbed_histogram": PerturbedHistogram.from_spec,
}
_STATED: dict[str, Callable[[Any, int, int | None], Stated]] = {
    "laplace": lambda spec, columns, n: _additive(laplace.stated(spec, spec.domain, columns)),
    "gaussian": lambda spec, columns, n: _additive(gaussian.stated(spec, spec.domain, columns)),
    "wavelet": lambda spec, columns, n: wavelet.stated(spec),
    "binomial": lambda spec, columns, n: binomial.stated(spec),
    "smoothed_histogram": lambda spec, columns, n: smoothed_histogram.stated(spec, n),
    "perturbed_histogram": lambda spec, columns, n: perturbed_histogram.stated(spec),
    "noisy_counts": lambda spec, columns, n: noisy_counts.stated(spec),
    "clamped_moments": lambda spec, columns, n: clamped_moments.stated(spec),
    "log_moments": lambda spec, columns, n: log_moments.stated(spec, n),
    "posterior": lambda spec, columns, n: _stated_posterior(spec, n),
}
STATISTICS = ("noisy_counts", "clamped_moments", "log_moments")
"""Kinds that release a statistic of the whole sample, of several columns together."""
WHOLE = (*STATISTICS, "posterior")
"""Kinds that release something of the whole sample that has no bounds of its columns."""
_SEVERAL = ("laplace", "gaussian")
_KEYS = ("epsilon", "delta", "rho", "scale", "weight")


def needs_n(spec: Any) -> bool:
    """Whether the guarantee of a mechanism depends on the number of records, and the spec does not say it."""
    return spec.kind in ("smoothed_histogram", *WHOLE) and spec.n is None


def from_spec(
    spec: Any,
    columns: int,
    n: int | None = None,
    names: Sequence[str] = (),
    categories: Sequence[tuple[str, ...] | None] = (),
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
    given = getattr(spec, "n", None)
    if n is not None and given is not None and given != n:
        raise SpecError(f"mechanism.n: {given}, but there are {n} records; leave it out, or correct it")
    if spec.kind in WHOLE:
        records = given if n is None else n
        if records is None:
            raise SpecError(f"mechanism.n: missing; a release of {spec.kind} is of a known number of records")
        known = tuple(names) or tuple(f"column {i + 1}" for i in range(columns))
        if spec.kind == "posterior":
            return posterior.from_spec(spec, known, records, categories)
        if spec.kind == "noisy_counts":
            return NoisyCounts.from_spec(spec, known, records, categories)
        if spec.kind == "log_moments":
            return LogMoments.from_spec(spec, known, records)
        return ClampedMoments.from_spec(spec, known, records)
    if columns > 1 and spec.kind not in _SEVERAL:
        raise SpecError(
            f"data.columns: names {columns} columns, but {spec.kind} releases one; release each by a spec of "
            f"its own, or use mechanism.kind {' or '.join(_SEVERAL)}"
        )
    _check_domain(spec, columns)
    return _BY_KIND[spec.kind](spec, spec.domain, n)


def stated(spec: Any, columns: int, n: int | None = None) -> Stated:
    """Return description and guarantee of a release made elsewhere, as the analyst's spec states them.

    Parameters
    ----------
    spec : MechanismSpec
        A checked section: a scale, or a guarantee with its domain; or the kind ``none``.
    columns : int
        Number of columns of the release.
    n : int, optional
        Number of confidential records, where it is known; else that of the spec.

    Raises
    ------
    SpecError
        For kinds that are not here, for bounds that are not one pair per column, and where the bounds or the
        number of records are missing and needed.
    """
    if spec.kind == "none":
        return {"kind": "none"}, Guarantee(None, None, None)
    if spec.kind not in _STATED:
        raise SpecError(f"mechanism.kind: {spec.kind} cannot be fitted here; choose {' or '.join(_STATED)}")
    if spec.kind in STATISTICS or spec.kind == "posterior":
        pass  # bounds, where there are any, are its own
    elif spec.kind not in _SEVERAL:
        _check_domain(spec, 1)
    elif spec.domain is not None:
        _check_pairs(spec.domain, columns)
    own, guarantee = _STATED[spec.kind](spec, columns, n)
    return {
        "kind": spec.kind,
        "domain": None if spec.domain is None else [list(pair) for pair in spec.domain],
        "calibration": _calibration(spec),
        "requested": {k: getattr(spec, k) for k in _KEYS if getattr(spec, k, None) is not None},
        "stated": True,
    } | own, guarantee


def _stated_posterior(spec: Any, n: int | None) -> Stated:
    """Describe a released posterior as its mechanism does; a certificate is sought, or found where it was."""
    records = spec.n if n is None else n
    if records is None:
        raise SpecError("mechanism.n: missing; a posterior does not tell of how many records it is")
    made = posterior.from_spec(spec, ("parameter",), records)
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
