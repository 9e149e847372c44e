"""What a spec states of noisy mean logarithms of compositions: thresholds, parts, epsilons, scales."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from dpmix.errors import SpecError
from dpmix.laws import Law
from dpmix.log_widths import centre_of, centred_width, exact_width, paper_width
from dpmix.mechanisms.groups import Groups, groups_of, with_groups
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.conversions import laplace_rho, response_rho
from dpmix.spec.mechanism import LogMomentsMechanism

__all__ = ["Grouped", "epsilons_of", "grouped_sums", "meant", "sizes_of", "stated", "thresholds_of"]

BITS = 30
"""Logarithms are rounded to multiples of 2^-BITS, so that their sums are exact."""
_SHARE_OF_CHOICE = 0.1  # of epsilon, for choosing the threshold


class Grouped(NamedTuple):
    """The sums of log max(x, a) - c of groups, at one threshold a (methods, section 16).

    A record that stays in its group moves the sums by `exact_width` W at most. One that changes its group
    takes f(x) - c from the sums of one and adds f(x') - c to those of another: by the centre c of
    `centre_of` that is W at most, too, and two records attain it, so that c makes the second case no worse
    than the first. Sizes times kappa, of all groups but the last, add kappa for each that changes.
    """

    centre: float
    kappa: float
    width: float
    """The exact L1 sensitivity of (kappa sizes, sums)."""
    paper: float
    """The same with d |log a| in place of W."""


@functools.cache
def grouped_sums(threshold: float, parts: int, groups: Groups) -> Grouped:
    """Return centre, kappa and sensitivities, kappa by the public rule of `Groups.kappa`."""
    centre = round(centre_of(threshold, parts) * 2.0**BITS) * 2.0**-BITS
    apart = 2 * centred_width(threshold, parts, centre)
    kappa = groups.kappa(apart, parts)
    paper = max(apart, paper_width(threshold, parts))
    sizes = groups.changes * kappa
    return Grouped(centre, kappa, max(exact_width(threshold, parts), apart) + sizes, paper + sizes)


def thresholds_of(spec: LogMomentsMechanism) -> tuple[float, ...]:
    """Return the candidate thresholds of a spec, which decrease."""
    if spec.thresholds is None:
        assert spec.threshold is not None  # the spec has one of the two
        return (spec.threshold,)
    return spec.thresholds


def epsilons_of(spec: LogMomentsMechanism) -> tuple[float, float]:
    """Return epsilon1 and epsilon2 of a spec; of a total a tenth goes to the choice among thresholds."""
    several = spec.thresholds is not None and len(spec.thresholds) > 1
    if spec.epsilon is not None:
        share = _SHARE_OF_CHOICE if several else 0.0
        first = spec.epsilon * (1 - share)
        return first, spec.epsilon - first
    assert spec.epsilon1 is not None  # the spec states one of the two
    return spec.epsilon1, spec.epsilon2 or 0.0


def sizes_of(spec: LogMomentsMechanism, n: int) -> tuple[int, ...]:
    """Return the number of records of each part.

    Raises
    ------
    SpecError
        When a part would be empty, or the sizes are of another number of records.
    """
    if spec.split is None:
        return (n,)
    if isinstance(spec.split, tuple):
        if sum(spec.split) != n:
            raise SpecError(
                f"mechanism.split: {list(spec.split)} has {sum(spec.split)} records, but there are {n}"
            )
        return spec.split
    first = round(spec.split * n)
    if not 0 < first < n:
        raise SpecError(f"mechanism.split: {spec.split:g} of {n} records leaves a part empty")
    return first, n - first


def stated(
    spec: LogMomentsMechanism, n: int | None, groups: Groups | None = None
) -> tuple[dict[str, Any], Guarantee]:
    """Return what is known of a release made elsewhere, and its guarantee by formula.

    Raises
    ------
    SpecError
        When the threshold that was used, the number of parts or of records is missing.
    """
    thresholds = thresholds_of(spec)
    if len(thresholds) > 1:
        raise SpecError(
            "mechanism.threshold: missing; say which of the thresholds the release was censored at"
        )
    if spec.components is None:
        raise SpecError("mechanism.components: missing; say how many parts a composition has")
    records = spec.n if n is None else n
    if records is None:
        raise SpecError("mechanism.n: missing; the noise of log_moments depends on the number of records")
    first, second = epsilons_of(spec)
    sizes = sizes_of(spec, records)
    own: dict[str, Any] = {
        "components": spec.components,
        "threshold": thresholds[0],
        "thresholds": list(thresholds),
        "parts": list(sizes),
    }
    if groups is None:
        exact, paper = (of(thresholds[0], spec.components) for of in (exact_width, paper_width))
    else:
        found = grouped_sums(thresholds[0], spec.components, groups)
        exact, paper = found.width, found.paper
        own |= {"groups": groups.describe(), "kappa": found.kappa, "centre": found.centre}
    wide = paper if spec.calibration == "paper" else exact
    own["scale"] = _scales(wide / first, sizes, own.get("kappa"))
    epsilon = first * exact / wide
    rho = laplace_rho(epsilon) + (2 * response_rho(second / 2) if second else 0.0)
    return own, with_groups(Guarantee(epsilon + second, 0.0, rho, "global"), groups)


def _scales(scale: float, sizes: Sequence[int], kappa: float | None) -> list[float]:
    """Return the noise of means, by part, of a sum's scale; or that of groups' sizes and of their sums."""
    return [scale / size for size in sizes] if kappa is None else [scale / kappa, scale]


def meant(spec: LogMomentsMechanism, made: Law) -> dict[str, Any]:
    """Return thresholds, sizes and scales that a spec means, at the threshold that a release chose.

    Parameters
    ----------
    spec : LogMomentsMechanism
    made : Law
        Of the release.

    Raises
    ------
    SpecError
        When the parts have other sizes than the spec's records.
    """
    sizes, (first, _) = sizes_of(spec, sum(made["parts"])), epsilons_of(spec)
    threshold, parts, groups = (
        float(made["threshold"]),
        int(made["components"]),
        groups_of(made.get("groups")),
    )
    kappa = None
    if groups is None:
        exact, paper = exact_width(threshold, parts), paper_width(threshold, parts)
    else:
        _, kappa, exact, paper = grouped_sums(threshold, parts, groups)
    wide = paper if spec.calibration == "paper" else exact
    return {
        "components": spec.components,
        "thresholds": list(thresholds_of(spec)),
        "parts": list(sizes),
        "scale": _scales(wide / first, sizes, kappa),
    }
