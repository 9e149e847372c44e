"""Which mechanisms, kernels, base measures and samplers go together, and what to use instead of others."""

from __future__ import annotations

from typing import Any

from dpmix.errors import SpecError
from dpmix.spec.auto_sampler import AUTO, stands_for
from dpmix.spec.counts import counts_problem
from dpmix.spec.parametric_models import GROUP_MIXTURE_SAMPLER, PARAMETRIC, SPLIT_PRIORS

__all__ = ["check_combination", "combination_problem"]

MIXTURE_SAMPLERS = (
    "private_neal5",
    "private_slice",
    "blocked_gibbs",
    "neal2",
    "neal3",
    "neal8",
    "split_merge",
    "counts",
)
CONJUGATE_SAMPLERS = ("neal2", "neal3", "split_merge")
EXACT_SAMPLERS = (*CONJUGATE_SAMPLERS, "neal8", "counts")
GLOBAL_MECHANISMS = ("smoothed_histogram", "perturbed_histogram")
MIXTURE_MECHANISMS = ("laplace", "gaussian", "wavelet", "binomial", *GLOBAL_MECHANISMS, "none")
VECTOR_MECHANISMS = ("laplace", "gaussian", "none")
_GENERAL = "use neal8, private_slice or blocked_gibbs"

Problem = tuple[str, str]


def combination_problem(
    mechanism: str | None, spec: Any, *, grouped: bool | None = None, tallied: bool | None = None
) -> Problem | None:
    """Return key and sentence of the first thing in a spec that does not go with another, None if all do.

    Parameters
    ----------
    mechanism : str or None
        Kind of the mechanism that the release was made with; None where it is not known yet.
    spec : RunSpec
    grouped : bool or None
        Whether the release is of groups; None where that is not known yet.
    tallied : bool or None
        Whether it is a tally; None where that is not known yet.
    """
    if tallied and (spec.model is None or spec.model.kind != "mixture"):
        other = "" if spec.model is None else f", not {spec.model.kind}"
        return "model.kind", f"a tally holds counts of single numbers, which the model mixture takes{other}"
    if spec.sampler.kind == AUTO:
        kind = None if spec.model is None else spec.model.kind
        spec = _with_kind(spec, stands_for(kind, grouped=grouped, tallied=tallied))
    problem = _baseline_problem(mechanism, spec) or _exact_problem(spec.sampler)
    if problem is not None:
        return problem
    if spec.model is None:
        return _without_model(mechanism, spec.sampler)
    if spec.summary.truth is not None and spec.model.kind != "dirichlet":
        return "summary.truth", f"is for the model dirichlet, and not for {spec.model.kind}; leave it out"
    if spec.model.kind != "mixture":
        return _parametric_problem(mechanism, spec)
    on_counts = spec.sampler.kind == GROUP_MIXTURE_SAMPLER
    if on_counts and grouped is not False and mechanism in (None, *GLOBAL_MECHANISMS):
        pass  # what is known of the release allows groups
    elif spec.sampler.kind not in MIXTURE_SAMPLERS:
        of_groups = " but those of groups in a histogram" if on_counts else ""
        return (
            "sampler.kind",
            f"{spec.sampler.kind} is not for mixtures{of_groups}; use {_listed(MIXTURE_SAMPLERS)}",
        )
    if grouped:
        problem = _group_mixture_problem(spec)
        if problem is not None:
            return problem
    if mechanism is not None:
        problem = _mechanism_problem(mechanism, spec)
        if problem is not None:
            return problem
    if spec.sampler.kind == "counts":
        problem = counts_problem(mechanism, spec, tallied=tallied)
        if problem is not None:
            return problem
    problem = _base_problem(mechanism, spec)
    return problem if problem is not None or tallied else _stated_problem(mechanism, spec)


def _with_kind(spec: Any, kind: str) -> Any:
    """Return a spec as it would be with that sampler."""
    return spec.model_copy(update={"sampler": spec.sampler.model_copy(update={"kind": kind})})


def _exact_problem(sampler: Any) -> Problem | None:
    if sampler.latent == "metropolis" and sampler.kind in EXACT_SAMPLERS:
        return (
            "sampler.latent",
            f"metropolis is not for {sampler.kind}, which is exact; use private_slice or blocked_gibbs",
        )
    return None


def _parametric_problem(mechanism: str | None, spec: Any) -> Problem | None:
    kind, sampler = spec.model.kind, spec.sampler
    known = PARAMETRIC[kind]
    if sampler.kind not in known.samplers:
        what = "mixtures" if sampler.kind in MIXTURE_SAMPLERS else "other models"
        return (
            "sampler.kind",
            f"{sampler.kind} is for {what}, and not for {kind}; use {_listed(known.samplers)}, or leave it "
            "out",
        )
    if mechanism is not None and mechanism not in known.mechanisms:
        return (
            "model.kind",
            f"{kind} is not for a {mechanism} release; it takes {_listed(known.mechanisms)}",
        )
    if kind == "dirichlet":
        problem = _prior_problem(spec)
        if problem is not None:
            return problem
    if sampler.store or sampler.subsample is not None:
        key = "sampler.store" if sampler.store else "sampler.subsample"
        return key, f"{kind} has no allocations; leave it out"
    if spec.summary.baseline is not None:
        return (
            "summary.baseline",
            f"{spec.summary.baseline} is for mixtures, and not for {kind}; leave it out",
        )
    return None


def _group_mixture_problem(spec: Any) -> Problem | None:
    """Refuse what is not for a mixture of groups, whatever the mechanism."""
    if spec.sampler.kind != GROUP_MIXTURE_SAMPLER:
        return (
            "sampler.kind",
            f"{spec.sampler.kind} moves record by record, and of groups whose sizes are private counts move; "
            f"use {GROUP_MIXTURE_SAMPLER}, or leave it out",
        )
    if spec.sampler.latent == "metropolis":
        return (
            "sampler.latent",
            "metropolis moves record by record, and of groups whose sizes are private counts move; use "
            "latent: exact",
        )
    return None


def _prior_problem(spec: Any) -> Problem | None:
    """Refuse a prior of compositions that a sampler has no use for, or the release no part for."""
    prior, sampler, mechanism = spec.model.prior, spec.sampler.kind, spec.mechanism
    if not isinstance(prior, str):
        return None
    known = SPLIT_PRIORS[sampler]
    if not known:
        return "model.prior", f"{prior} is not for {sampler}, which has no prior; leave it out"
    if prior not in known:
        others = [kind for kind, priors in SPLIT_PRIORS.items() if prior in priors]
        return (
            "model.prior",
            f"{prior} is draws, not a density, and {sampler} needs a density; use {_listed(known)}, a gamma "
            f"{{shape, rate}}, or sampler.kind: {_listed(tuple(others))}",
        )
    if mechanism is not None and mechanism.kind == "log_moments" and mechanism.split is None:
        return (
            "model.prior",
            f"{prior} takes the first of two parts of a release, and mechanism.split is missing; give it, "
            "or use a gamma {shape, rate}",
        )
    return None


def _baseline_problem(mechanism: str | None, spec: Any) -> Problem | None:
    """Refuse a deconvolution estimate of what is not one column with noise added to it."""
    if spec.summary.baseline is None:
        return None
    if mechanism is not None and mechanism not in VECTOR_MECHANISMS:
        return (
            "summary.baseline",
            f"{spec.summary.baseline} is for one column released by {_listed(VECTOR_MECHANISMS)}, "
            f"not by {mechanism}; leave it out",
        )
    if spec.model is not None and getattr(spec.model, "kernel", None) == "multivariate_normal":
        return (
            "summary.baseline",
            f"{spec.summary.baseline} is for one column, and kernel multivariate_normal is for several; "
            "leave it out",
        )
    return None


def _without_model(mechanism: str | None, sampler: Any) -> Problem | None:
    return _unhidden_problem(sampler) if mechanism == "none" else None


def _unhidden_problem(sampler: Any) -> Problem | None:
    if sampler.kind == "private_neal5":
        return (
            "sampler.kind",
            f"private_neal5 needs a release with noise, and mechanism none adds none; {_GENERAL}",
        )
    if sampler.latent == "metropolis":
        return (
            "sampler.latent",
            "metropolis needs a release with noise, and mechanism none adds none; use latent: exact",
        )
    return None


def _mechanism_problem(mechanism: str, spec: Any) -> Problem | None:
    sampler = spec.sampler
    if mechanism not in MIXTURE_MECHANISMS:
        return (
            "model.kind",
            f"mixture is not for a {mechanism} release; it takes {_listed(MIXTURE_MECHANISMS)}",
        )
    if mechanism == "none":
        problem = _unhidden_problem(sampler)
        if problem is not None:
            return problem
    if spec.model.kernel == "multivariate_normal" and mechanism not in VECTOR_MECHANISMS:
        return (
            "model.kernel",
            f"multivariate_normal is for several columns, and {mechanism} releases one; "
            "use the kernel normal or beta",
        )
    if mechanism in GLOBAL_MECHANISMS:
        if sampler.kind == "private_neal5" and sampler.auxiliary != 1:
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


def _base_problem(mechanism: str | None, spec: Any) -> Problem | None:
    sampler, model = spec.sampler, spec.model
    normal = model.kernel == "normal"
    truncated = normal and getattr(model.base, "kind", None) == "truncated_nig"
    if truncated:
        if mechanism not in (None, "gaussian"):
            return (
                "model.base.kind",
                f"truncated_nig is for Gaussian noise, not {mechanism}; use nig",
            )
        if sampler.kind == "private_neal5":
            return (
                "sampler.kind",
                "private_neal5 needs base.kind: nig; under truncated_nig, where the released values are "
                "conjugate themselves, use neal2, neal3, neal8, split_merge, private_slice or blocked_gibbs",
            )
        if sampler.latent == "metropolis":
            return (
                "sampler.latent",
                "metropolis needs base.kind: nig; under truncated_nig nothing is latent, use latent: exact",
            )
    if sampler.kind in CONJUGATE_SAMPLERS:
        if not normal:
            return (
                "sampler.kind",
                f"{sampler.kind} is for the conjugate kernel normal, and not for {model.kernel}; {_GENERAL}",
            )
        if not truncated and mechanism not in (None, "none"):
            advice = "set model.base.kind: truncated_nig, or " if mechanism == "gaussian" else ""
            what = "gaussian with base nig" if mechanism == "gaussian" else mechanism
            return (
                "sampler.kind",
                f"{sampler.kind} needs released values with a conjugate prior, which they do not have under "
                f"{what}; {advice}{_GENERAL}",
            )
    return _columns_problem(spec)


def _stated_problem(mechanism: str | None, spec: Any) -> Problem | None:
    """Refuse what the kernel or base measure needs and the mechanism, or the spec, does not say."""
    if mechanism is None:
        return None
    if getattr(spec.model.base, "empirical", False) == "paper" and mechanism not in VECTOR_MECHANISMS:
        return (
            "model.base.empirical",
            f"what {mechanism} releases is not on the scale of the data; use true, or leave out model.base",
        )
    in_file = spec.release is not None and spec.release.path is not None
    stated = spec.mechanism is not None and spec.mechanism.domain is not None
    if spec.model.kernel == "beta" and (mechanism == "none" or in_file) and not stated:
        return (
            "mechanism.domain",
            "missing; a beta kernel lives on the public bounds, give them here or in data.domain",
        )
    if spec.model.base is None and (mechanism == "none" or in_file) and not stated:
        return (
            "model.base",
            "missing, and there are no public bounds that a prior could follow; give the base, or the bounds "
            "in mechanism.domain",
        )
    return None


def _columns_problem(spec: Any) -> Problem | None:
    """Refuse a base measure of another dimension than the columns that the spec names."""
    if spec.model.kernel != "multivariate_normal":
        return None
    if spec.model.base is None or spec.model.base.mu0 is None:
        return None
    d = len(spec.model.base.mu0)
    if d < 2:
        return (
            "model.base.mu0",
            "has one entry, and multivariate_normal is for two columns or more; use kernel: normal",
        )
    for section in (spec.release, spec.data):
        columns = None if section is None else section.columns
        if columns is not None:
            if len(columns) != d:
                count = f"{len(columns)} column{'s' * (len(columns) > 1)}"
                return "model.base.mu0", f"has {d} entries for {count} ({', '.join(columns)})"
            return None
    return None


def check_combination(
    mechanism: str, spec: Any, *, grouped: bool | None = None, tallied: bool | None = None
) -> None:
    """Refuse a spec that does not go with the mechanism of a release.

    Parameters
    ----------
    mechanism : str
        The kind that the release was made with, which may be known from its file only.
    spec : RunSpec
        The spec that is to be fitted to it.
    grouped : bool or None
        Whether the release is of groups; None where that is not said.
    tallied : bool or None
        Whether it is a tally; None where that is not said.

    Raises
    ------
    SpecError
        Naming the key at fault and what to use instead.
    """
    problem = combination_problem(mechanism, spec, grouped=grouped, tallied=tallied)
    if problem is not None:
        raise SpecError(": ".join(problem))


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]
