"""The spec: what a run of dpmix is told, checked before anything runs.

``load_spec`` reads one, ``RunSpec`` holds it; one module a section. Nothing here imports numba, SciPy or
HDF5. Sections of mechanisms and models stand in their folders, and import what sections share from here:
what is listed below is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dpmix.mechanisms.gaussian.section import GaussianMechanism
    from dpmix.mechanisms.laplace.section import LaplaceMechanism
    from dpmix.mechanisms.none.section import NoMechanism
    from dpmix.spec.combinations import check_combination
    from dpmix.spec.data_section import DataSpec, ReleaseSpec
    from dpmix.spec.load import load_spec, with_sampler
    from dpmix.spec.mechanism_section import MechanismSpec
    from dpmix.spec.model_section import (
        BetaMixture,
        GammaPrior,
        ModelSpec,
        MultivariateNormalMixture,
        NIGBase,
        NormalMixture,
    )
    from dpmix.spec.run_spec import RunSpec
    from dpmix.spec.sampler_section import SamplerSpec
    from dpmix.spec.summary_section import SummarySpec

__all__ = [
    "BetaMixture",
    "DataSpec",
    "GammaPrior",
    "GaussianMechanism",
    "LaplaceMechanism",
    "MechanismSpec",
    "ModelSpec",
    "MultivariateNormalMixture",
    "NIGBase",
    "NoMechanism",
    "NormalMixture",
    "ReleaseSpec",
    "RunSpec",
    "SamplerSpec",
    "SummarySpec",
    "check_combination",
    "load_spec",
    "with_sampler",
]

_PLACES: Final = {
    "mechanisms.gaussian.section": ("GaussianMechanism",),
    "mechanisms.laplace.section": ("LaplaceMechanism",),
    "mechanisms.none.section": ("NoMechanism",),
    "spec.combinations": ("check_combination",),
    "spec.data_section": ("DataSpec", "ReleaseSpec"),
    "spec.load": ("load_spec", "with_sampler"),
    "spec.mechanism_section": ("MechanismSpec",),
    "spec.model_section": (
        "BetaMixture",
        "GammaPrior",
        "ModelSpec",
        "MultivariateNormalMixture",
        "NIGBase",
        "NormalMixture",
    ),
    "spec.run_spec": ("RunSpec",),
    "spec.sampler_section": ("SamplerSpec",),
    "spec.summary_section": ("SummarySpec",),
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"dpmix.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
