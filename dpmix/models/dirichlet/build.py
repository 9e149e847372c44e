"""Compositions with a Dirichlet distribution given noisy means of their censored logarithms.

Every method gives draws of alpha in the same form (`dpmix.models.dirichlet.model`):

    augmentation    data augmentation over a latent database, exact (data_augmentation, soma)
    grouped         the same of several groups whose sizes are private (data_augmentation, soma)
    replicated      the same over a few pseudo-records that stand for all, an approximation (replicated)
    bootstrap       refits to simulated databases (bootstrap)
    abc             simulated databases that come close to the release (abc)
    normal          a normal approximation of the statistic's law (normal_approximation)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from dpmix.errors import SpecError
from dpmix.run.model_protocols import ParametricModel

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

_MODULES: Final[dict[str, str]] = {
    "data_augmentation": "augmentation",
    "soma": "augmentation",
    "replicated": "replicated",
    "bootstrap": "bootstrap",
    "abc": "abc",
    "normal_approximation": "normal_approximation",
}
"""Module of each sampler; its function `build` makes the model of a spec given a release."""


def build(spec: RunSpec, release: Release) -> ParametricModel:
    """Return the model of a spec given a release; see `dpmix.api.task.build`.

    Raises
    ------
    SpecError
        For a release of groups and a sampler that takes none.
    """
    name = _MODULES[spec.sampler.algorithm]
    if release.groups:
        if name != "augmentation":
            raise SpecError(
                f"sampler.kind: {spec.sampler.algorithm} takes no release of groups whose sizes are private; "
                "use data_augmentation or soma"
            )
        name = "groups"
    module = import_module(f"dpmix.models.dirichlet.{name}")
    return cast(ParametricModel, module.build(spec, release))
