"""Advice about releases of statistics and of categories, which parametric models are fitted to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpmix.advising.advice import Row
from dpmix.api.calibrate import columns_of, public_of
from dpmix.errors import SpecError
from dpmix.laws.every import Law, law_of
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.curators.private_groups import groups_of
from dpmix.mechanisms.log_moments.curator import epsilons_of
from dpmix.mechanisms.log_moments.section import LogMomentsMechanism
from dpmix.spec import RunSpec, load_spec
from dpmix.spec.capabilities import listed
from dpmix.spec.kinds import MODELS

if TYPE_CHECKING:
    from dpmix.spec.mechanism_section import MechanismSection


def is_statistic(section: MechanismSection | None) -> bool:
    """Whether a mechanism releases what a parametric model is fitted to."""
    return section is not None and bool(_models_for(section))


def _models_for(section: MechanismSection) -> tuple[str, ...]:
    """Return the models that advice is known for given what a mechanism releases."""
    return tuple(kind for kind in MODELS.names if section.released in MODELS.part(kind, "meaning").advised)


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
    meaning = MODELS.part(model.kind, "meaning")
    warnings += meaning.taken(spec, model)
    rows = []
    for epsilon in epsilons:
        for n in records:
            law, delta = _law(spec, section, epsilon, n)
            found = meaning.expected(law, model, n, spec)
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
