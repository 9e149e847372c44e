"""The parametric models by kind: their code, where `spec.parametric_models` says what each goes with."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from dpmix.models.model_protocols import ParametricModel
from dpmix.release.sanitized import Release
from dpmix.spec.run_spec import RunSpec

__all__ = ["build"]

Builder = Callable[[RunSpec, Release], ParametricModel]

_MODULES: Final[dict[str, str]] = {
    "discrete": "dpmix.models.discrete.model",
    "dirichlet": "dpmix.models.dirichlet.build",
    "custom": "dpmix.models.custom.model",
    "linear_regression": "dpmix.models.linear_regression.build",
    "multinomial": "dpmix.models.multinomial.model",
    "naive_bayes": "dpmix.models.naive_bayes.model",
}
"""Module of each kind; its function `build` makes the model of a spec given a release."""


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
    module = import_module(_MODULES[spec.model.kind])
    if spec.model.kind == "custom":
        return cast(ParametricModel, module.build(spec, release, allow_code=allow_code))
    return cast(Builder, module.build)(spec, release)
