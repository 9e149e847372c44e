"""What the sampler on counts goes with, and what ``sampler.kind: auto`` takes: counts where they win."""

from __future__ import annotations

from typing import Any, NamedTuple

from dpmix.spec.capabilities import Capabilities, listed
from dpmix.spec.kinds import AUTO, capabilities_of, kinds_that
from dpmix.spec.model_section import MixtureSection, default_sampler

__all__ = ["FEW_RECORDS", "ChosenSampler", "auto_in_words", "choose", "counts_problem", "stands_for"]

# What the sampler on counts goes with


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


# What ``sampler.kind: auto`` takes: counts where it applies and wins, else the model's own sampler


FEW_RECORDS = 5_000
"""Records up to which allocations are kept unless the spec says otherwise, which counts knows nothing of."""
_COUNTS = "counts"


class ChosenSampler(NamedTuple):
    """A sampler, and why: one clause."""

    kind: str
    why: str


def stands_for(spec: Any, *, grouped: bool | None, tallied: bool | None) -> str:
    """Return a kind that auto may take, whatever the release: what goes with it goes with auto."""
    if isinstance(spec.model, MixtureSection) and tallied:
        return _COUNTS
    return default_sampler(spec.model, spec.sampler, grouped=bool(grouped))


def choose(
    spec: Any,
    mechanism: str | None,
    n: int,
    *,
    cells: int | None = None,
    grouped: bool = False,
    tallied: bool = False,
) -> ChosenSampler:
    """Return what auto takes for a release.

    Parameters
    ----------
    spec : RunSpec
        With a model.
    mechanism : str or None
        Kind of the mechanism of the release; None where only the spec is known, which says none.
    n : int
        Number of records.
    cells : int, optional
        Cells that counts would work on; None where that is not known.
    grouped : bool
        Whether the release is of groups whose sizes are private.
    tallied : bool
        Whether it is a tally.
    """
    model = spec.model
    own = default_sampler(model, spec.sampler, grouped=grouped)
    reason = model.own_sampler(spec.sampler)[1]
    if not isinstance(model, MixtureSection):
        return ChosenSampler(own, reason or f"the one that {model.kind} has by itself")
    if grouped:
        return ChosenSampler(own, "the sizes of the groups are private")
    if tallied:
        return ChosenSampler(_COUNTS, "the release is a tally")
    if reason:
        return ChosenSampler(own, reason)
    asks = _asks_for_records(spec)
    if asks is not None:
        return ChosenSampler(own, f"{asks} asks for single records, which counts does not keep")
    of = None if mechanism is None else capabilities_of(mechanism)
    problem = counts_problem(mechanism, of, spec)
    if problem is not None:
        return ChosenSampler(own, f"counts does not go with this {problem[0]}")
    if of is not None and of.released == "histogram":
        return ChosenSampler(_COUNTS, "a histogram says nothing of single records")
    if n <= FEW_RECORDS and spec.sampler.store is None:
        return ChosenSampler(own, f"there are at most {FEW_RECORDS:,} records, whose allocations are kept")
    if cells is not None and cells > n:
        return ChosenSampler(own, f"there are more cells ({cells:,}) than records ({n:,})")
    if n <= FEW_RECORDS:
        return ChosenSampler(_COUNTS, "no allocations are kept (sampler.store)")
    return ChosenSampler(
        _COUNTS, f"there are more than {FEW_RECORDS:,} records, and its sweeps cost the same for any"
    )


def why_settled(spec: Any) -> str | None:
    """Say why a kind that a spec does not name is not its model's first; None where it is, or is named."""
    if "kind" in spec.sampler.model_fields_set or spec.sampler.kind == AUTO:
        return None
    return spec.model.own_sampler(spec.sampler)[1] or None


def _asks_for_records(spec: Any) -> str | None:
    if spec.sampler.store:
        return "sampler.store"
    if spec.sampler.subsample is not None:
        return "sampler.subsample"
    return "summary.coclustering" if spec.summary.coclustering else None


def auto_in_words(spec: Any) -> str:
    """Say what auto will take, as far as a spec tells."""
    mechanism = None if spec.mechanism is None else spec.mechanism.kind
    n = None if spec.data is None else spec.data.n
    n = getattr(spec.mechanism, "n", None) or n
    if n is not None:
        found = choose(spec, mechanism, n, grouped=bool(spec.grouped))
        return f"auto: {found.kind}, for {found.why}"
    few, many = (
        choose(spec, mechanism, size, grouped=bool(spec.grouped)) for size in (FEW_RECORDS, FEW_RECORDS + 1)
    )
    if few.kind == many.kind:
        tally = "" if few.kind == _COUNTS or spec.grouped else " (counts given a tally)"
        return f"auto: {few.kind}{tally}, for {few.why}"
    return f"auto: {many.kind} above {FEW_RECORDS:,} records and given a tally, else {few.kind}"
