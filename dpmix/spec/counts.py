"""What the sampler on counts goes with."""

from __future__ import annotations

from typing import Any

__all__ = ["COUNTED", "counts_problem"]

COUNTED = ("laplace", "gaussian", "binomial", "none")
"""Mechanisms whose releases are counted: one number a record, in cells or of finitely many outputs."""
_OUTPUTS = ("binomial",)
_OTHERS = "use neal8, private_slice or blocked_gibbs"


def counts_problem(
    mechanism: str | None, spec: Any, *, tallied: bool | None = None
) -> tuple[str, str] | None:
    """Return key and sentence of the first thing that does not go with the sampler, None if all do.

    Parameters
    ----------
    mechanism : str or None
        Kind of the mechanism of the release; None where it is not known yet.
    spec : RunSpec
        Of a mixture.
    tallied : bool or None
        Whether the release is a tally, whose cells are known; None where that is not known yet.
    """
    model, sampler = spec.model, spec.sampler
    if model.kernel == "multivariate_normal":
        return (
            "sampler.kind",
            "counts is for one number a record, and kernel multivariate_normal is for several columns; "
            + _OTHERS,
        )
    if mechanism is not None and mechanism not in COUNTED:
        listed = ", ".join(COUNTED[:-1]) + " or " + COUNTED[-1]
        return (
            "sampler.kind",
            f"counts is for one number a record released by {listed}, and not for {mechanism}; {_OTHERS}",
        )
    if getattr(model.base, "kind", None) == "truncated_nig":
        return "sampler.kind", f"counts needs base.kind: nig, and not truncated_nig; {_OTHERS}"
    if model.discount > 0:
        return (
            "model.discount",
            f"{model.discount:g} is not for counts, which draws the mixing measure out: at a discount above "
            "0 it has too many components of too much weight; use 0, or neal8 or private_slice",
        )
    if sampler.subsample is not None or sampler.store:
        return (
            "sampler.store" if sampler.store else "sampler.subsample",
            "counts knows of no single records, so that there are no allocations; leave it out, or use neal8",
        )
    return None if tallied else _width_problem(mechanism, spec)


def _width_problem(mechanism: str | None, spec: Any) -> tuple[str, str] | None:
    width = spec.sampler.width
    if mechanism in _OUTPUTS and width != "auto":
        return "sampler.width", f"{width:g} is not for {mechanism}, whose outputs are the cells; leave it out"
    if mechanism == "none" and width == "auto":
        return (
            "sampler.width",
            "must be a number for counts without noise, from which no width follows; cells cover "
            "mechanism.domain",
        )
    in_file = spec.release is not None and spec.release.path is not None
    stated = spec.mechanism is not None and spec.mechanism.domain is not None
    if (mechanism == "none" or (mechanism is not None and in_file)) and not stated:
        return (
            "mechanism.domain",
            "missing; counts has cells over the public bounds, give them here or in data.domain",
        )
    return None
