"""What a spec states of noisy mean logarithms of compositions: thresholds, parts, epsilons, scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpmix.errors import SpecError
from dpmix.log_widths import exact_width, paper_width
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.conversions import laplace_rho, response_rho
from dpmix.spec.mechanism import LogMomentsMechanism

__all__ = ["epsilons_of", "meant", "sizes_of", "stated", "thresholds_of"]

_SHARE_OF_CHOICE = 0.1  # of epsilon, for choosing the threshold


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


def stated(spec: LogMomentsMechanism, n: int | None) -> tuple[dict[str, Any], Guarantee]:
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
    make = paper_width if spec.calibration == "paper" else exact_width
    exact = exact_width(thresholds[0], spec.components)
    wide = make(thresholds[0], spec.components)
    own = {
        "components": spec.components,
        "threshold": thresholds[0],
        "thresholds": list(thresholds),
        "parts": list(sizes),
        "scale": [wide / size / first for size in sizes],
    }
    epsilon = first * exact / wide
    rho = laplace_rho(epsilon) + (2 * response_rho(second / 2) if second else 0.0)
    return own, Guarantee(epsilon + second, 0.0, rho, "global")


def meant(spec: LogMomentsMechanism, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return thresholds, sizes and scales that a spec means, at the threshold that a release chose.

    Parameters
    ----------
    spec : LogMomentsMechanism
    made : mapping
        Description of the release.

    Raises
    ------
    SpecError
        When the parts have other sizes than the spec's records.
    """
    sizes, (first, _) = sizes_of(spec, sum(made["parts"])), epsilons_of(spec)
    make = paper_width if spec.calibration == "paper" else exact_width
    wide = make(float(made["threshold"]), int(made["components"]))
    return {
        "components": spec.components,
        "thresholds": list(thresholds_of(spec)),
        "parts": list(sizes),
        "scale": [wide / size / first for size in sizes],
    }
