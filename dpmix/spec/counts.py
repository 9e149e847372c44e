"""What the sampler on counts goes with."""

from __future__ import annotations

from typing import Any

from dpmix.spec.capabilities import Capabilities, listed
from dpmix.spec.kinds import kinds_that

__all__ = ["counts_problem"]

_OTHERS = "use neal8, private_slice or blocked_gibbs"
_NO_OTHER = "no other sampler takes a tally"


def counts_problem(
    mechanism: str | None, of: type[Capabilities] | None, spec: Any, *, tallied: bool | None = None
) -> tuple[str, str] | None:
    """Return key and sentence of the first thing that does not go with the sampler, None if all do.

    Parameters
    ----------
    mechanism : str or None
        Kind of the mechanism of the release; None where it is not known yet.
    of : type of Capabilities or None
        What that mechanism can do.
    spec : RunSpec
        Of a mixture.
    tallied : bool or None
        Whether the release is a tally, whose cells are known; None where that is not known yet.
    """
    model, sampler = spec.model, spec.sampler
    others, instead = (_NO_OTHER, "") if tallied else (_OTHERS, ", or neal8 or private_slice")
    if model.several:
        return (
            "sampler.kind",
            f"counts is for one number a record, and kernel {model.kernel} is for several columns; {others}",
        )
    if not model.in_cells:
        return (
            "sampler.kind",
            f"counts knows no masses of cells under the kernel {model.kernel}; {others}",
        )
    if of is not None and not of.countable:
        return (
            "sampler.kind",
            "counts is for one number a record, or a histogram of all, released by "
            f"{listed(kinds_that('countable'))}, and not for {mechanism}; {others}",
        )
    if getattr(model.base, "kind", None) == "truncated_nig":
        return "sampler.kind", f"counts needs base.kind: nig, and not truncated_nig; {others}"
    if model.discount > 0:
        return (
            "model.discount",
            f"{model.discount:g} is not for counts, which draws the mixing measure out: at a discount above "
            f"0 it has too many components of too much weight; use 0{instead}",
        )
    if sampler.store:
        return (
            "sampler.store",
            "counts knows of no single records, so that there are no allocations; leave it out"
            + (
                ""
                if tallied
                else ", give sampler.subsample, whose partition is drawn afterwards, or use neal8"
            ),
        )
    if tallied and sampler.subsample is not None:
        return "sampler.subsample", "is of single records, and a tally holds counts alone; leave it out"
    return None if tallied else _width_problem(mechanism, of, spec)


def _width_problem(mechanism: str | None, of: type[Capabilities] | None, spec: Any) -> tuple[str, str] | None:
    if of is None:
        return None
    width = spec.sampler.width
    if of.released == "histogram":
        if width == "auto":
            return None
        return "sampler.width", f"{width:g} is not for {mechanism}, whose bins are the cells; leave it out"
    if of.finite_outputs and width != "auto":
        return "sampler.width", f"{width:g} is not for {mechanism}, whose outputs are the cells; leave it out"
    if not of.protects and width == "auto":
        return (
            "sampler.width",
            "must be a number for counts without noise, from which no width follows; cells cover "
            "mechanism.domain",
        )
    in_file = spec.release is not None and spec.release.path is not None
    stated = spec.mechanism is not None and spec.mechanism.domain is not None
    if (not of.protects or in_file) and not stated:
        return (
            "mechanism.domain",
            "missing; counts has cells over the public bounds, give them here or in data.domain",
        )
    return None
