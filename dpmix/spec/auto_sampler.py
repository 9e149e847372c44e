"""What ``sampler.kind: auto`` takes: counts where it applies and wins, else the model's own sampler."""

from __future__ import annotations

from typing import Any, NamedTuple

from dpmix.spec.counts import counts_problem
from dpmix.spec.kinds import AUTO, capabilities_of
from dpmix.spec.model_section import MixtureSection, default_sampler

__all__ = ["FEW_RECORDS", "ChosenSampler", "auto_in_words", "choose", "stands_for", "why_settled"]

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
