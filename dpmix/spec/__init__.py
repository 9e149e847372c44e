"""The spec: what a run of dpmix is told, checked before anything runs.

``load_spec`` reads one, ``RunSpec`` holds it; one module a section. Nothing here imports numba, SciPy or
HDF5.
"""

from __future__ import annotations

from dpmix.spec.combinations import check_combination
from dpmix.spec.data_section import DataSpec, ReleaseSpec
from dpmix.spec.load import load_spec, with_sampler
from dpmix.spec.mechanism_section import GaussianMechanism, LaplaceMechanism, MechanismSpec, NoMechanism
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
from dpmix.spec.schema import schema
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
    "schema",
    "with_sampler",
]
