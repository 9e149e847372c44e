"""From the spec of a parametric model and a release to the run that samples it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from dpmix.api.task import Constants, Task, make_run
from dpmix.errors import DataError
from dpmix.models.model_protocols import STATISTICS, ParametricModel
from dpmix.release.sanitized import Release
from dpmix.run.chains_writer import Named
from dpmix.spec import RunSpec
from dpmix.spec.kinds import MODELS

__all__ = ["build", "check_columns", "parametric_task", "task_of"]

# The parametric models by kind: their code, where their sections say what each goes with


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


# From the spec of a parametric model and a release to the run that samples it


_PRIOR, _LEAST_PRIOR = 4_000, 500  # draws from the prior
_PRIOR_NUMBERS = 1 << 22
_PRIOR_KEY = (0, 1)  # of the seed; those of chains have one number


def parametric_task(
    spec: RunSpec, release: Release, about: bool, chains: tuple[int, ...], *, allow_code: bool = False
) -> Task:
    """Turn spec and release into what the chains take, and into what their file says of them.

    Parameters
    ----------
    spec : RunSpec
        With a model that is no mixture.
    release : Release
    about : bool
        Whether the spec's `release` section is about this release.
    chains : tuple of int
        Ids of the chains.
    allow_code : bool
        Whether the Python file that a spec may name is to be run.

    Raises
    ------
    SpecError, DataError
        When spec or release do not allow the model.
    """
    check_columns(spec, release, about)
    return task_of(spec, release, build(spec, release, allow_code=allow_code), chains)


def task_of(spec: RunSpec, release: Release, model: ParametricModel, chains: tuple[int, ...]) -> Task:
    """Return the task of a model whose draws are arrays by name."""
    values = np.ascontiguousarray(release.values, dtype=np.float64)
    statistics = STATISTICS if model.has_log_likelihood else STATISTICS[:1]
    constants: Constants = {name: float(value) for name, value in model.constants.items()}
    constants["acceptance_bound"] = model.acceptance_bound
    rows = "obs" if release.by_record else "released"
    return Task(
        run=make_run(spec, model, chains),
        content=Named(model.parameters, model.coords, statistics),
        observed=values,
        dims=(rows, "column"),
        columns=release.columns,
        constants={name: value for name, value in constants.items() if not _is_nan(value)},
        attrs={"model": model.kind, **model.attrs},
        prior=lambda entropy: _prior(model, entropy),
    )


def _prior(model: ParametricModel, entropy: int) -> dict[str, NDArray[np.float64]]:
    """Draw from the model's prior, the same whichever chains a process runs."""
    entries = sum(math.prod(model.shape(parameter)) for parameter in model.parameters)
    draws = max(_LEAST_PRIOR, min(_PRIOR, _PRIOR_NUMBERS // max(entries, 1)))
    return model.prior_draws(Generator(PCG64(SeedSequence(entropy, spawn_key=_PRIOR_KEY))), draws)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def check_columns(spec: RunSpec, release: Release, about: bool) -> None:
    """Refuse a choice among the columns of a release: what a model is fitted to is the release as a whole."""
    wanted = spec.release.columns if spec.release is not None and about else None
    for name in wanted or ():
        if name not in release.columns:
            raise DataError(
                f"release.columns: the release has no column {name!r}; it has {', '.join(release.columns)}"
            )
    if wanted is not None and set(wanted) != set(release.columns):
        assert spec.model is not None  # the caller looks
        raise DataError(
            f"release.columns: {spec.model.kind} is fitted to all columns of a release "
            f"({', '.join(release.columns)}); leave it out"
        )
