"""Advice about releases of statistics and of categories, which parametric models are fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.advising.advice import Row
from dpmix.advising.statistics import (
    Expected,
    Predictors,
    dirichlet,
    multinomial,
    naive_bayes,
    randomized_bayes,
    regression,
)
from dpmix.api.calibrate import columns_of, public_of
from dpmix.errors import SpecError
from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.curators.private_groups import groups_of
from dpmix.mechanisms.laws.every import Law, expect, law_of
from dpmix.mechanisms.log_moments.curator import epsilons_of
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.mechanisms.log_moments.section import LogMomentsMechanism
from dpmix.mechanisms.noisy_counts.law import NoisyCountsLaw
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.models.linear_regression.conjugate_draws import Units
from dpmix.models.linear_regression.model import check_widths
from dpmix.spec import RunSpec, load_spec
from dpmix.spec.capabilities import listed
from dpmix.spec.describe import bounds_of_two, predictors_of_two
from dpmix.spec.kinds import MODELS
from dpmix.spec.model_section import ERRORS_SCALE, ERRORS_SHAPE, niw_from_bounds

if TYPE_CHECKING:
    from dpmix.spec.mechanism_section import MechanismSection

_OF_TWO = 25.0
"""Variance, on [-1, 1], of a latent predictor of which nearly all lies at its bounds."""


def is_statistic(section: MechanismSection | None) -> bool:
    """Whether a mechanism releases what a parametric model is fitted to."""
    return section is not None and bool(_models_for(section))


def _models_for(section: MechanismSection) -> tuple[str, ...]:
    """Return the models that advice is known for given what a mechanism releases."""
    return tuple(model for released, model in _EXPECTED if released == section.released)


def advise_statistic(
    spec: RunSpec, epsilons: list[float], records: list[int], warnings: list[str]
) -> tuple[list[Row], str]:
    """Return rows of the spec's own mechanism, and the reference in words.

    Raises
    ------
    SpecError
        For a model that is not the mechanism's, a population, and what cannot be advised.
    """
    section = spec.mechanism
    assert section is not None  # the caller looked
    wanted = _models_for(section)
    model: Any = spec.model
    if model is None:
        model = MODELS.section(wanted[0]).model_validate({"kind": wanted[0]})
    if model.kind not in wanted:
        raise SpecError(
            f"model.kind: {model.kind} given a {section.kind} release cannot be advised; use {listed(wanted)}"
        )
    if spec.advise is not None and spec.advise.population is not None:
        raise SpecError(
            f"advise.population: is for the density of a column; advice about {section.kind} is at the prior "
            "means of the model, so leave it out"
        )
    warnings += _of_predictors(spec, model)
    rows = []
    for epsilon in epsilons:
        for n in records:
            law, delta = _law(spec, section, epsilon, n)
            found = _EXPECTED[section.released, model.kind](law, model, n, spec)
            rows.append(
                Row(
                    section.kind,
                    law.trust,
                    epsilon,
                    delta,
                    n,
                    {name: after for name, (after, _) in found.items()},
                    None,
                    {name: 1.0 - (after / before) ** 2 for name, (after, before) in found.items()},
                )
            )
    words = f"a {model.kind.replace('_', ' ')} at the means of its priors"
    several: tuple[float, ...] = getattr(section, "thresholds", None) or ()
    if len(several) > 1:
        words += f", censored at {several[-1]:g}, the smallest threshold that may be chosen"
    if spec.groups is not None:
        words += f", the same in {len(spec.groups[1])} groups of equal size"
    return rows, words


def _law(spec: RunSpec, section: MechanismSection, epsilon: float, n: int) -> tuple[Law, float]:
    stated: dict[str, Any] = section.model_dump(by_alias=True, exclude_none=True)
    delta = stated.get("delta")
    for key in {key for statement in section.statements for key in statement} | {"n", "order"}:
        stated.pop(key, None)
    if isinstance(stated.get("split"), list | tuple):
        share = stated["split"][0] / sum(stated["split"])
        stated["split"] = share
    stated["epsilon"] = epsilon
    several = stated.pop("thresholds", None)
    if several is not None:  # which is chosen is up to the data
        if len(several) > 1:
            whole = load_spec({"mechanism": stated | {"thresholds": several}}).mechanism
            stated["epsilon1"] = epsilons_of(whole)[0] if isinstance(whole, LogMomentsMechanism) else epsilon
            del stated["epsilon"]
        stated["threshold"] = several[-1]
    if stated.get("noise") == "discrete_gaussian":
        stated["delta"] = 1e-6 if delta is None else delta
    made = load_spec({"mechanism": stated}).mechanism
    assert made is not None  # just stated
    named = spec.data.columns if spec.data is not None else None
    count = len(named) if named is not None else columns_of(made)
    names, categories = public_of(spec)
    mechanism = from_spec(
        made, count, n, names if len(names) == count else (), categories, groups_of(spec.groups)
    )
    public, figures = mechanism.describe(), mechanism.figures()
    if several is not None or "threshold" in stated:  # a release says them once one is chosen
        scale = figures["scale"]
        public |= {"threshold": stated["threshold"], "scale": scale if isinstance(scale, list) else [scale]}
    public |= {key: figures[key] for key in ("kappa", "centre") if key in figures and key not in public}
    return law_of(public), float(mechanism.guarantee.delta or 0.0)


def _named(spec: RunSpec) -> tuple[str, ...]:
    return () if spec.data is None else spec.data.columns or ()


def _of_counts(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
    return naive_bayes(expect(law, NoisyCountsLaw), n, float(model.prior), _named(spec))


def _of_answers(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
    return randomized_bayes(expect(law, RandomizedResponseLaw), n, float(model.prior))


def _of_categories(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
    """Return what is expected of the shares of one column."""
    law = expect(law, RandomizedResponseLaw)
    if len(law.sizes) != 1:
        raise SpecError(
            f"data.columns: advice is about one column of categories, and there are {len(law.sizes)}; "
            f"name one, and divide epsilon by {len(law.sizes)}, as a release of all does"
        )
    prior = np.ones(law.sizes[0]) if model.prior is None else np.array(model.prior, dtype=np.float64)
    if len(prior) != law.sizes[0]:
        raise SpecError(f"model.prior: has {len(prior)} entries for {law.sizes[0]} categories")
    return multinomial(law, n, prior)


def _of_compositions(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
    law = expect(law, LogMomentsLaw)
    if isinstance(model.prior, str):
        raise SpecError(
            f"model.prior: {model.prior} is made of the release, and there is none; advise with a gamma "
            "{shape, rate}"
        )
    named = _named(spec)
    places = named if len(named) == law.components else [str(i + 1) for i in range(law.components)]
    return dirichlet(law, n, float(model.prior.shape), float(model.prior.rate), [str(v) for v in places])


def _of_regression(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
    """Return what is expected of a regression whose priors are those of the model, rescaled."""
    law = expect(law, ClampedMomentsLaw)
    units, p = Units.of(law.bounds), len(law.bounds) - 1
    check_widths(model, p)
    beta, sd = (
        np.broadcast_to(np.asarray(value, dtype=np.float64), (p + 1,))
        for value in (model.prior_mean, model.prior_sd)
    )
    square = float(units.half[-1]) ** 2
    a, b = model.sigma2_prior.a, model.sigma2_prior.b
    scale = ERRORS_SCALE if b == "learned" else float(b) / square
    mean = scale / (a - 1.0) if a > 1.0 else scale / ERRORS_SHAPE
    errors = (mean, mean**2 / (a - 2.0) if a > 2.0 else mean**2)
    if b == "learned":  # the scale: its square is three times that of its mean
        errors = (mean, mean**2 * (3.0 * (a - 1.0) / (a - 2.0) - 1.0) if a > 2.0 else 3.0 * mean**2)
    if model.sigma2 is not None:
        errors = (float(model.sigma2) / square, 0.0)
    origin = units.coefficients(np.zeros((1, p + 1)))[0]
    turn = units.coefficients(np.eye(p + 1)).T - origin[:, None]
    own = [str(name) for name in law.columns]
    places = own[:p] if len(set(own[:p])) == p and len(own) == p + 1 else [str(i + 1) for i in range(p)]
    return regression(
        law,
        n,
        beta,
        sd,
        errors,
        _predictors(model, units, bounds_of_two(spec)),
        turn,
        ["intercept", *places],
        clamped=model.predictors == "clamped",
        truncated=model.response == "truncated",
    )


def _predictors(model: Any, units: Units, two: Container[int]) -> Predictors:
    """Return predictors at the means of their priors, rescaled; those of `two` values at their bounds.

    These are of a line in clamped predictors whose covariance nobody states, half of the records at each.
    """
    prior, p = model.x_prior, len(units.half) - 1
    default = niw_from_bounds([(-1.0, 1.0)] * p)
    freedom = default.nu if prior.nu is None else float(prior.nu)
    known = model.x_mean if model.x_mean is not None else prior.mu0
    mean = np.array(default.mu0) if known is None else units.rescaled(np.array(known))
    weight = math.inf if model.x_mean is not None else float(prior.lambda_)
    if model.x_cov is not None:
        return Predictors(mean, np.array(model.x_cov) / units.covariance(), weight, math.inf)
    psi = np.diag(default.psi) if prior.Psi is None else np.array(prior.Psi) / units.covariance()
    spare = freedom - p - 1.0
    covariance = psi / (spare if spare > 0.0 else freedom)  # the harmonic mean where there is no other
    if prior.Psi is None and model.predictors == "clamped":
        own = np.sqrt([_OF_TWO / covariance[i, i] if i in two else 1.0 for i in range(p)])
        covariance = covariance * np.outer(own, own)
    return Predictors(mean, covariance, weight, freedom)


def _of_predictors(spec: RunSpec, model: Any) -> list[str]:
    """Say what a regression's predictors are taken to be where nobody states how they vary."""
    assert spec.mechanism is not None  # the caller looked
    if model.kind != "linear_regression":
        return []
    found = [text.removeprefix("note: ") for text in predictors_of_two(spec)]
    if model.x_cov is not None or model.x_prior.Psi is not None:
        return found
    pairs = getattr(spec.mechanism, "bounds", None) or spec.mechanism.domain or ()
    units, two, named = Units.of(pairs), bounds_of_two(spec), _named(spec)
    found_of = _predictors(model, units, two).covariance * units.covariance()
    names = named if len(named) == len(pairs) else [f"predictor {i + 1}" for i in range(len(pairs))]
    taken = [
        f"{name} to be {pairs[i][0]:g} or {pairs[i][1]:g}, half of the records each"
        if i in two and model.predictors == "clamped"
        else f"{name} to have a standard deviation of {found_of[i, i] ** 0.5:.3g}"
        for i, name in enumerate(names[:-1])
    ]
    return [
        *found,
        f"model.x_prior.Psi: left out, so that advice takes {', '.join(taken)}; slopes are told the better "
        "the more a predictor varies: state Psi, or model.x_cov, by what is public of it",
    ]


_EXPECTED: Mapping[tuple[str, str], Callable[[Law, Any, int, RunSpec], Expected]] = {
    ("noisy_counts", "naive_bayes"): _of_counts,
    ("clamped_moments", "linear_regression"): _of_regression,
    ("log_moments", "dirichlet"): _of_compositions,
    ("categories", "multinomial"): _of_categories,
    ("categories", "naive_bayes"): _of_answers,
}
"""By what is released, and the model."""
