"""Which mechanisms, kernels, base measures and samplers go together, and what to use instead of others.

`combination_problem` asks what sections of the spec state of themselves (`dpmix.spec.capabilities`), and is
silent where the release is not known yet. `choose` is what ``sampler.kind: auto`` takes: counts where they
apply and win, else the model's own sampler.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from dpmix.errors import SpecError
from dpmix.spec.capabilities import Capabilities, listed
from dpmix.spec.kinds import AUTO, MODELS, capabilities_of, kinds_that, mixture_samplers, released_kinds
from dpmix.spec.limits import MOST_RECORDS
from dpmix.spec.model_section import MixtureSection, Problem, default_sampler

Of = type[Capabilities] | None
"""What the mechanism of a release can do; None where it is not known yet."""

FEW_RECORDS = 5_000
"""Records up to which allocations are kept unless the spec says otherwise, which counts knows nothing of."""
_COUNTS = "counts"
_WHY = {
    "model.discount": "counts is for a model.discount of 0",
    "sampler.width": "no width of cells for counts (sampler.width) follows from this mechanism",
    "mechanism.domain": "counts has cells over public bounds (mechanism.domain), which are not known",
}
"""Why auto does not take counts, by the key that would be refused; of others the sentence says it."""
_OTHERS = "use neal8, private_slice or blocked_gibbs"
_NO_OTHER = "no other sampler takes a tally"
_BASELINES = {"deconvolution_kde": "additive", "ems": "transitional"}
"""Baselines, and what a mechanism has to be for them."""
_MOST_CELLS = 1_000_000
"""Of all groups together, as of bins of one."""


def check_combination(
    mechanism: str,
    spec: Any,
    n: int | None = None,
    *,
    grouped: bool | None = None,
    tallied: bool | None = None,
) -> None:
    """Refuse a spec that does not go with the mechanism of a release of n records; see `combination_problem`.

    Raises
    ------
    SpecError
        Naming the key at fault and what to use instead.
    """
    problem = combination_problem(mechanism, spec, n, grouped=grouped, tallied=tallied)
    if problem is not None:
        raise SpecError(": ".join(problem))


def combination_problem(
    mechanism: str | None,
    spec: Any,
    n: int | None = None,
    *,
    grouped: bool | None = None,
    tallied: bool | None = None,
) -> Problem | None:
    """Return key and sentence of the first thing in a spec that does not go with another, None if all do.

    `mechanism` is the kind that the release was made with, and n the number of its records; `grouped` says
    whether it is of groups, and `tallied` whether it is a tally. Each is None where it is not known yet.
    """
    if tallied and not isinstance(spec.model, MixtureSection):
        other = "" if spec.model is None else f", not {spec.model.kind}"
        return "model.kind", f"a tally holds counts of single numbers, which the model mixture takes{other}"
    if spec.sampler.kind == AUTO:
        n = None  # auto goes by it
        kind = _stands_for(spec, grouped=grouped, tallied=tallied)
        spec = spec.model_copy(update={"sampler": spec.sampler.model_copy(update={"kind": kind})})
    of = None if mechanism is None else capabilities_of(mechanism)
    problem = _baseline_problem(mechanism, of, spec, tallied) or _latent_problem(spec.sampler, tallied)
    if problem is not None:
        return problem
    if spec.model is None:
        return _unhidden_problem(mechanism, of, spec.sampler)
    if spec.summary.truth is not None and not spec.model.compares_truth:
        known = " or ".join(models_that("compares_truth"))
        return "summary.truth", f"is for the model {known}, and not for {spec.model.kind}; leave it out"
    if not isinstance(spec.model, MixtureSection):
        return _parametric_problem(mechanism, of, spec)
    can = spec.sampler.can
    if can.of_groups and grouped is not False and (of is None or of.released == "histogram"):
        pass  # what is known of the release allows groups
    elif not can.mixtures:
        of_groups = " but those of groups in a histogram" if can.of_groups else ""
        return "sampler.kind", f"{can.kind} is not for mixtures{of_groups}; use {listed(mixture_samplers())}"
    return (
        (_group_mixture_problem(spec) if grouped else None)
        or (None if mechanism is None or of is None else _mechanism_problem(mechanism, of, spec))
        or (counts_problem(mechanism, of, spec, tallied=tallied) if can.on_counts else None)
        or _own_cells_problem(mechanism, of, spec.sampler.width)
        or _base_problem(mechanism, of, spec)
        or (None if tallied else _stated_problem(mechanism, of, spec))
        or _many_problem(spec.sampler, n)
    )


def _many_problem(sampler: Any, n: int | None) -> Problem | None:
    """Refuse what moves each of more records than there is room for."""
    if n is None or n <= MOST_RECORDS or sampler.can.on_counts or sampler.can.of_groups:
        return None
    return (
        "sampler.kind",
        f"{sampler.kind} moves each of {n} records, and {MOST_RECORDS} is the most; use counts",
    )


def _latent_problem(sampler: Any, tallied: bool | None) -> Problem | None:
    if sampler.latent != "metropolis":
        return None
    key = "sampler.latent"
    if tallied:
        return key, "metropolis moves single records, and a tally holds counts alone; leave it out"
    if not sampler.can.exact:
        return None
    return key, f"metropolis is not for {sampler.kind}, which is exact; use private_slice or blocked_gibbs"


def _parametric_problem(mechanism: str | None, of: Of, spec: Any) -> Problem | None:
    kind, sampler, model = spec.model.kind, spec.sampler, spec.model
    if sampler.kind not in model.samplers:
        what = "mixtures" if sampler.can.mixtures else "other models"
        return (
            "sampler.kind",
            f"{sampler.kind} is for {what}, and not for {kind}; use {listed(model.samplers)}, or leave it "
            "out",
        )
    if of is not None and not model.takes_release(of):
        return "model.kind", f"{kind} is not for a {mechanism} release; it takes {listed(taken_by(kind))}"
    problem: Problem | None = model.problem(spec)
    if problem is not None:
        return problem
    if sampler.store or sampler.subsample is not None:
        key = "sampler.store" if sampler.store else "sampler.subsample"
        return key, f"{kind} has no allocations; leave it out"
    for name in spec.summary.baselines:
        return "summary.baseline", f"{name} is for mixtures, and not for {kind}; leave it out"
    return None


def _group_mixture_problem(spec: Any) -> Problem | None:
    """Refuse what is not for a mixture of groups, whatever the mechanism."""
    if not spec.sampler.can.of_groups:
        why = "moves record by record, and of groups whose sizes are private counts move"
        if spec.sampler.kind == _COUNTS:
            why = "is for the histogram of one group, and not for groups whose sizes are private"
        other = default_sampler(spec.model, spec.sampler, grouped=True)
        return "sampler.kind", f"{spec.sampler.kind} {why}; use {other}, which moves counts, or leave it out"
    if not spec.model.in_cells:
        return (
            "model.kernel",
            f"{spec.model.kernel} is not for groups in a histogram, whose masses of bins are not known; "
            "use normal or beta",
        )
    if spec.sampler.latent == "metropolis":
        return (
            "sampler.latent",
            "metropolis moves record by record, and of groups whose sizes are private counts move; use "
            "latent: exact",
        )
    return None


def _baseline_problem(mechanism: str | None, of: Of, spec: Any, tallied: bool | None) -> Problem | None:
    """Refuse estimates without a model of what is not one column, released in a way that they take."""
    for name in spec.summary.baselines:
        if tallied and name == "deconvolution_kde":
            return (
                "summary.baseline",
                f"{name} is made of released values, and a tally holds counts alone; use ems, or none",
            )
        if of is not None and not getattr(of, _BASELINES[name]):
            return (
                "summary.baseline",
                f"{name} is for one column released by {listed(kinds_that(_BASELINES[name]))}, "
                f"not by {mechanism}; leave it out",
            )
        if spec.model is not None and getattr(spec.model, "several", False):
            return (
                "summary.baseline",
                f"{name} is for one column, and kernel {spec.model.kernel} is for several; leave it out",
            )
    return None


def _unhidden_problem(mechanism: str | None, of: Of, sampler: Any) -> Problem | None:
    """Refuse what moves hidden values where none are hidden."""
    if of is None or of.protects:
        return None
    if sampler.can.holds_records:
        return (
            "sampler.kind",
            f"{sampler.kind} needs a release with noise, and mechanism {mechanism} adds none; {_OTHERS}",
        )
    if sampler.latent == "metropolis":
        return (
            "sampler.latent",
            f"metropolis needs a release with noise, and mechanism {mechanism} adds none; use latent: exact",
        )
    return None


def _mechanism_problem(mechanism: str, of: type[Capabilities], spec: Any) -> Problem | None:
    sampler = spec.sampler
    if not spec.model.takes_release(of):
        return (
            "model.kind",
            f"mixture is not for a {mechanism} release; it takes {listed(taken_by('mixture'))}",
        )
    problem = _unhidden_problem(mechanism, of, sampler)
    if problem is not None:
        return problem
    if spec.model.several and not of.additive:
        if of.columns_each:
            return (
                "model.kernel",
                f"{spec.model.kernel} has no exact density of several columns under {mechanism}; use the "
                "kernel normal or beta on one column at a time, by release.columns",
            )
        return (
            "model.kernel",
            f"{spec.model.kernel} is for several columns, and {mechanism} releases one; "
            "use the kernel normal or beta",
        )
    if of.released == "histogram":
        if sampler.can.holds_records and sampler.auxiliary != 1:
            return (
                "sampler.auxiliary",
                f"{sampler.auxiliary} values per record are for releases of each record on its own; "
                f"{mechanism} takes 1",
            )
        if sampler.subsample is not None or (sampler.store and "allocations" in sampler.store):
            return (
                "sampler.store" if sampler.store else "sampler.subsample",
                f"allocations say nothing here, for {mechanism} releases nothing of single records; "
                "leave it out",
            )
    return None


def _base_problem(mechanism: str | None, of: Of, spec: Any) -> Problem | None:
    sampler, model = spec.sampler, spec.model
    truncated = getattr(model.base, "kind", None) == "truncated_nig"
    if truncated:
        if of is not None and not of.normal_noise:
            return "model.base.kind", f"truncated_nig is for Gaussian noise, not {mechanism}; use nig"
        if sampler.can.holds_records:
            return (
                "sampler.kind",
                f"{sampler.kind} needs base.kind: nig; under truncated_nig, where the released values are "
                "conjugate themselves, use neal2, neal3, neal8, split_merge, private_slice or blocked_gibbs",
            )
        if sampler.latent == "metropolis":
            return (
                "sampler.latent",
                "metropolis needs base.kind: nig; under truncated_nig nothing is latent, use latent: exact",
            )
    if sampler.can.conjugate:
        if not model.conjugate:
            return (
                "sampler.kind",
                f"{sampler.kind} is for the conjugate kernel normal, and not for {model.kernel}; {_OTHERS}",
            )
        if not truncated and of is not None and of.protects:
            advice = "set model.base.kind: truncated_nig, or " if of.normal_noise else ""
            what = f"{mechanism} with base nig" if of.normal_noise else mechanism
            return (
                "sampler.kind",
                f"{sampler.kind} needs released values with a conjugate prior, which they do not have under "
                f"{what}; {advice}{_OTHERS}",
            )
    return _columns_problem(spec)


def _stated_problem(mechanism: str | None, of: Of, spec: Any) -> Problem | None:
    """Refuse what the kernel or base measure needs and the mechanism, or the spec, does not say."""
    if of is None:
        return None
    if getattr(spec.model.base, "empirical", False) == "paper" and not of.additive:
        return (
            "model.base.empirical",
            f"what {mechanism} releases is not on the scale of the data; use true, or leave out model.base",
        )
    lacks_bounds = _lacks_bounds(of, spec)
    if spec.model.bounded and lacks_bounds:
        return (
            "mechanism.domain",
            f"missing; a {spec.model.kernel} kernel lives on the public bounds, give them here or in "
            "data.domain",
        )
    base = spec.model.base
    bounded = base is None or getattr(base, "from_bounds", False)
    if bounded and lacks_bounds:
        return (
            "model.base",
            "missing, and there are no public bounds that a prior could follow; give the base, or the bounds "
            "in mechanism.domain",
        )
    return None


def _lacks_bounds(of: type[Capabilities], spec: Any) -> bool:
    """Whether a spec leaves out public bounds that no release of its own will state."""
    in_file = spec.release is not None and spec.release.path is not None
    stated = spec.mechanism is not None and spec.mechanism.domain is not None
    return (not of.protects or in_file) and not stated


def _columns_problem(spec: Any) -> Problem | None:
    """Refuse a base measure of another dimension than the columns that the spec names."""
    if not spec.model.several or getattr(spec.model.base, "mu0", None) is None:
        return None
    d = len(spec.model.base.mu0)
    if d < 2:
        return (
            "model.base.mu0",
            f"has one entry, and {spec.model.kernel} is for two columns or more; use kernel: normal",
        )
    for section in (spec.release, spec.data):
        columns = None if section is None else section.columns
        if columns is not None:
            if len(columns) != d:
                count = f"{len(columns)} column{'s' * (len(columns) > 1)}"
                return "model.base.mu0", f"has {d} entries for {count} ({', '.join(columns)})"
            return None
    return None


def taken_by(model: str) -> tuple[str, ...]:
    """Return the kinds of release that a kind of model is fitted to."""
    section = MODELS.section(model)
    return tuple(kind for kind in released_kinds() if section.takes_release(capabilities_of(kind)))


def models_that(capability: str) -> tuple[str, ...]:
    """Return the kinds of model that have a capability, in alphabetical order."""
    return tuple(sorted(kind for kind in MODELS.names if getattr(MODELS.section(kind), capability)))


# The sampler on counts


def counts_problem(
    mechanism: str | None, of: Of, spec: Any, *, tallied: bool | None = None
) -> Problem | None:
    """Return key and sentence of the first thing that does not go with the sampler, None if all do.

    For mixtures; of a tally the cells are known. Else as `combination_problem`; `of` is what the mechanism
    can do.
    """
    model, sampler = spec.model, spec.sampler
    others, instead = (_NO_OTHER, "") if tallied else (_OTHERS, ", or neal8 or private_slice")
    if model.several:
        return (
            "sampler.kind",
            f"counts is for one number a record, and kernel {model.kernel} is for several columns; {others}",
        )
    if not model.in_cells:
        return "sampler.kind", f"counts knows no masses of cells under the kernel {model.kernel}; {others}"
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
        records = "give sampler.subsample, whose partition is drawn afterwards, or use neal8"
        return (
            "sampler.store",
            "counts knows of no single records, so that there are no allocations; leave it out"
            + {True: "", False: f", {records}", None: f", or, where the release is no tally, {records}"}[
                tallied
            ],
        )
    if tallied and sampler.subsample is not None:
        return "sampler.subsample", "is of single records, and a tally holds counts alone; leave it out"
    return None if tallied else _width_problem(mechanism, of, spec)


def _width_problem(mechanism: str | None, of: Of, spec: Any) -> Problem | None:
    if of is None:
        return None
    width = spec.sampler.width
    problem = _own_cells_problem(mechanism, of, width)
    if problem is not None or of.released == "histogram":
        return problem
    if not of.protects and width == "auto":
        return (
            "sampler.width",
            "must be a number for counts without noise, from which no width follows; cells cover "
            "mechanism.domain",
        )
    if _lacks_bounds(of, spec):
        return (
            "mechanism.domain",
            "missing; counts has cells over the public bounds, give them here or in data.domain",
        )
    return None


def _own_cells_problem(mechanism: str | None, of: Of, width: float | Literal["auto"]) -> Problem | None:
    """Refuse a width of cells where the release has cells of its own."""
    if of is None or width == "auto" or not (of.released == "histogram" or of.finite_outputs):
        return None
    what = "bins" if of.released == "histogram" else "outputs"
    return "sampler.width", f"{width:g} is not for {mechanism}, whose {what} are the cells; leave it out"


# Groups whose sizes are private


def groups_in(spec: Any) -> tuple[str, tuple[str, ...]] | None:
    """Return the name of the column of groups and the groups, of ``data``, else of ``release``."""
    for section in (spec.data, spec.release):
        if section is not None and section.group is not None:
            return section.group, section.groups
    return None


def group_problem(spec: Any) -> Problem | None:
    """Return key and sentence of the first thing that does not go with groups, None if all do."""
    stated = [
        (key, section)
        for key, section in (("data", spec.data), ("release", spec.release))
        if section is not None and section.group is not None
    ]
    if not stated:
        return None
    if len(stated) == 2 and (spec.data.group, spec.data.groups) != (spec.release.group, spec.release.groups):
        return "release.group", "differs from data.group, or in its categories; state the groups once"
    key, section = stated[0]
    mechanism = spec.mechanism
    if mechanism is None:
        if spec.synthesis is not None:
            return (
                f"{key}.group",
                "is not for synthesis; take the column into columns, with its categories, or release groups "
                f"by mechanism.kind {listed(kinds_that('grouped'))}",
            )
        if key == "release" and section.path is not None:
            return f"{key}.group", "needs a mechanism, which says how the groups were released"
        return None
    if not mechanism.grouped:
        return (
            f"{key}.group",
            f"{mechanism.kind} is not for groups whose sizes are private; use "
            f"{listed(kinds_that('grouped'))}, or leave it out",
        )
    if spec.synthesis is not None:
        return f"{key}.group", "is not for synthesis; leave that section, or the groups, out"
    problem: Problem | None = None if spec.model is None else spec.model.group_problem(spec)
    if problem is not None:
        return problem
    if getattr(mechanism, "split", None) is not None:
        return "mechanism.split", f"is not for groups whose sizes are private ({key}.group); leave it out"
    which, each = mechanism.cells_of_group()
    groups = len(section.groups)
    if groups * each > _MOST_CELLS:
        return (
            f"mechanism.{which}",
            f"in {groups} groups that is {groups * each:,} cells; at most {_MOST_CELLS:,} are released",
        )
    return None


# What auto takes


class ChosenSampler(NamedTuple):
    """A sampler, and why: one clause."""

    kind: str
    why: str


def _stands_for(spec: Any, *, grouped: bool | None, tallied: bool | None) -> str:
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
    """Return what auto takes for a release of n records.

    Parameters
    ----------
    spec : RunSpec
        With a model.
    mechanism : str or None
        Kind of the mechanism of the release; None where only the spec is known, which says none.
    cells : int, optional
        Cells that counts would work on; None where that is not known.
    grouped, tallied : bool
        Whether the release is of groups whose sizes are private, and whether it is a tally.
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
    of = None if mechanism is None else capabilities_of(mechanism)
    histogram = of is not None and of.released == "histogram"
    asks = _asks_for_records(spec, histogram)
    if asks is not None:
        return ChosenSampler(own, f"{asks} asks for single records, which counts does not keep")
    problem = counts_problem(mechanism, of, spec)
    if problem is not None:
        return ChosenSampler(own, _WHY.get(problem[0]) or problem[1].partition(";")[0])
    if histogram:
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


def _asks_for_records(spec: Any, histogram: bool) -> str | None:
    if spec.sampler.store:
        return "sampler.store"
    if spec.sampler.subsample is not None:
        return "sampler.subsample"
    # of a histogram it is that of its bins
    return "summary.coclustering" if spec.summary.coclustering and not histogram else None


def auto_in_words(spec: Any) -> str:
    """Say what auto will take, as far as a spec tells."""
    mechanism = None if spec.mechanism is None else spec.mechanism.kind
    if spec.n is not None:
        found = choose(spec, mechanism, spec.n, grouped=bool(spec.grouped))
        return f"auto: {found.kind}, for {found.why}"
    few, many = (
        choose(spec, mechanism, size, grouped=bool(spec.grouped)) for size in (FEW_RECORDS, FEW_RECORDS + 1)
    )
    if few.kind == many.kind:
        of = None if mechanism is None else capabilities_of(mechanism)
        taken = few.kind != _COUNTS and isinstance(spec.model, MixtureSection) and not spec.grouped
        taken = taken and counts_problem(mechanism, of, spec, tallied=True) is None
        tally = " (counts given a tally)" if taken else ""
        return f"auto: {few.kind}{tally}, for {few.why}"
    return f"auto: {many.kind} above {FEW_RECORDS:,} records and given a tally, else {few.kind}"
