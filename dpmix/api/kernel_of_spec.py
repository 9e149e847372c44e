"""The kernel of a mixture with its base measure, and the prior of the mixing measure, as a spec has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpmix.api.task import Constants, pairs_of
from dpmix.kernels import latent_columns
from dpmix.kernels.base_of_spec import Fitted, SourcedKernel
from dpmix.numerics.mixing import PitmanYor
from dpmix.spec.kinds import KERNELS
from dpmix.spec.model_section import GammaPrior, MixtureSection

if TYPE_CHECKING:
    from dpmix.kernels.learned_base import LearnedBase
    from dpmix.laws.every import Observation
    from dpmix.release.sanitized import Release
    from dpmix.spec import RunSpec


def kernel_of(spec: RunSpec, release: Release, seen: Observation, columns: Sequence[int]) -> SourcedKernel:
    """Return the kernel of a spec's mixture given a release (methods, section 15).

    Raises
    ------
    SpecError
        When neither a base nor public bounds are stated, or Psi is no covariance.
    DataError
        When the release does not have the moments that an empirical base is computed from.
    """
    model = spec.model
    assert isinstance(model, MixtureSection)  # the caller looks
    stated = pairs_of(spec, release)
    pairs = [stated[column] if column < len(stated) else None for column in columns]
    if KERNELS.has(model.name, "kernel"):  # one that is registered
        made = KERNELS.part(model.name, "kernel").of_spec(model, pairs[0])
        return SourcedKernel(made, "bounds" if model.base_from_bounds else "spec")
    found: SourcedKernel = KERNELS.part(model.name, "base").kernel_of(
        model, Fitted(release, seen, columns, pairs)
    )
    return found


def base_constants(kernel: Any, learned: LearnedBase | None = None) -> Constants:
    """Return what summaries need to know of the base measure, by name."""
    found: Constants = dict(kernel.constants)
    if learned is not None:
        place, scale = kernel.learned
        several = latent_columns(kernel) > 0
        found[f"base_{place}_sd"] = learned.spread if several else float(learned.spread[0])
        found[f"base_{scale}_shape"] = learned.shape
        if len(learned.weight):
            found["base_lambda_shape"] = float(learned.weight[0])
        found |= getattr(kernel, "learned_constants", {})
    return found


def base_shapes(kernel: Any, learned: LearnedBase | None) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of what chains files hold of a learned base measure for each draw."""
    if learned is None:
        return {}
    columns = latent_columns(kernel)
    found: dict[str, tuple[int, ...]] = {
        f"base_{name}": (columns,) if columns else () for name in kernel.learned
    }
    return found | ({"base_lambda": ()} if len(learned.weight) else {})


def mixing_of(model: MixtureSection) -> PitmanYor:
    """Return the prior of the mixing measure."""
    prior, discount = model.concentration, float(model.discount)
    if isinstance(prior, GammaPrior):
        return PitmanYor(1.0, discount, float(prior.shape), float(prior.rate))
    return PitmanYor(float(prior), discount)


def kernel_attrs(model: MixtureSection, source: str, learned: LearnedBase | None = None) -> dict[str, str]:
    """Return what chains files say of kernel and base measure, and of where the base is from."""
    base = model.base_name
    if learned is not None:
        base = f"learned_{base}{'_lambda' if len(learned.weight) else ''}"
    return {"kernel": model.name, "base": base, "base_from": source}
