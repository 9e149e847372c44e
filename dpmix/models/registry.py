"""The parametric models by kind: their code, where their sections say what each goes with."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from dpmix.models.model_protocols import ParametricModel
from dpmix.release.sanitized import Release
from dpmix.spec.kinds import MODELS
from dpmix.spec.run_spec import RunSpec

__all__ = ["build"]

Builder = Callable[[RunSpec, Release], ParametricModel]


def build(spec: RunSpec, release: Release, *, allow_code: bool = False) -> ParametricModel:
    """Return the model of a spec given a release that it goes with.

    Parameters
    ----------
    spec : RunSpec
    release : Release
    allow_code : bool
        Whether the Python file that a spec may name is to be run.

    Raises
    ------
    SpecError
        When the model's settings do not go with the release.
    DataError
        When the release holds what the model cannot have made.
    """
    assert spec.model is not None  # the caller looks
    made = MODELS.part(spec.model.kind, spec.model.maker).build
    if spec.model.kind == "custom":
        return cast(ParametricModel, made(spec, release, allow_code=allow_code))
    return cast(Builder, made)(spec, release)
