"""From a spec and a release to the run that samples it: what all models share, and the parametric ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.run.chains_writer import Named, Written
from dpmix.run.model_protocols import STATISTICS, ParametricModel, Samples
from dpmix.run.runner import Run
from dpmix.spec.kinds import MODELS

if TYPE_CHECKING:
    from dpmix.laws.every import Observation
    from dpmix.release.sanitized import Release
    from dpmix.spec import RunSpec

Floats = NDArray[np.float64]
Constants = dict[str, float | NDArray[np.float64]]
_PRIOR, _LEAST_PRIOR = 4_000, 500  # draws from the prior
_PRIOR_NUMBERS = 1 << 22  # in memory
_PRIOR_KEY = (0, 1)  # of the seed; those of chains have one number


@dataclass(frozen=True, kw_only=True)
class Task(Written):
    """A fit that is ready to run.

    Parameters
    ----------
    run : Run
        The model and its chains, without the seed.
    columns : tuple of str
        Names of the columns that are fitted.
    attrs : mapping of str to str
        What the chains file says of the model.
    kept : str
        What is kept of each draw, in words; may be empty.
    prior : callable
        Draws the model's parameters from their prior, given the seed of all chains.
    """

    run: Run
    columns: tuple[str, ...]
    attrs: Mapping[str, str]
    kept: str = ""
    prior: Callable[[int], Mapping[str, NDArray[np.float64]]] = field(default=lambda entropy: {})


def make_run(spec: RunSpec, model: Samples, chains: tuple[int, ...]) -> Run:
    """Return the run of a model by the spec's sampler, without its seed."""
    sampler = spec.sampler
    return Run(model, sampler.iterations, sampler.burn_in_sweeps, sampler.thin, 0, chains)


# The run of a parametric model, built by the code that its section names


def parametric_task(
    spec: RunSpec, release: Release, about: bool, chains: tuple[int, ...], *, allow_code: bool = False
) -> Task:
    """Turn spec and release into what the chains of these ids take, and into what their file says of them.

    `about`: whether the spec's `release` section is about this release.

    Raises SpecError and DataError as `build`, and for a choice among the columns of the release.
    """
    check_columns(spec, release, about)
    return task_of(spec, release, build(spec, release, allow_code=allow_code), chains)


def build(spec: RunSpec, release: Release, *, allow_code: bool = False) -> ParametricModel:
    """Return the model of a spec given a release that it goes with.

    `allow_code`: whether the Python file that the spec of a custom model names may run.

    Raises
    ------
    SpecError
        When the model's settings do not go with the release.
    DataError
        When the release holds what the model cannot have made.
    """
    assert spec.model is not None  # the caller looks
    made = MODELS.part(spec.model.kind, spec.model.maker).build
    options = {"allow_code": allow_code} if spec.model.kind == "custom" else {}
    return cast(ParametricModel, made(spec, release, **options))


def task_of(spec: RunSpec, release: Release, model: ParametricModel, chains: tuple[int, ...]) -> Task:
    """Return the task of a model whose draws are arrays by name."""
    values = np.ascontiguousarray(release.values, dtype=np.float64)
    statistics = STATISTICS if model.has_log_likelihood else STATISTICS[:1]
    constants = {name: float(value) for name, value in model.constants.items()}
    constants["acceptance_bound"] = float(model.acceptance_bound)
    rows = "obs" if release.by_record else "released"
    return Task(
        run=make_run(spec, model, chains),
        content=Named(model.parameters, model.coords, statistics),
        observed=values,
        dims=(rows, "column"),
        columns=release.columns,
        constants={name: value for name, value in constants.items() if not math.isnan(value)},
        attrs={"model": model.kind, **model.attrs},
        prior=lambda entropy: _prior_draws(model, entropy),
    )


def _prior_draws(model: ParametricModel, entropy: int) -> dict[str, NDArray[np.float64]]:
    """Draw from the model's prior, the same whichever chains a process runs."""
    entries = sum(math.prod(model.shape(parameter)) for parameter in model.parameters)
    draws = max(_LEAST_PRIOR, min(_PRIOR, _PRIOR_NUMBERS // max(entries, 1)))
    return model.prior_draws(Generator(PCG64(SeedSequence(entropy, spawn_key=_PRIOR_KEY))), draws)


# The columns that are fitted


def wanted_columns(spec: RunSpec, about: bool) -> tuple[str, ...] | None:
    """Return the columns that the spec names; None without any, and where it is not `about` this release."""
    return spec.release.columns if spec.release is not None and about else None


def _known_columns(spec: RunSpec, release: Release, about: bool) -> tuple[str, ...] | None:
    """Return the columns that the spec names, all of which the release must have."""
    wanted = wanted_columns(spec, about)
    for name in wanted or ():
        if name not in release.columns:
            raise DataError(
                f"release.columns: the release has no column {name!r}; it has {', '.join(release.columns)}"
            )
    return wanted


def check_columns(spec: RunSpec, release: Release, about: bool) -> None:
    """Refuse a choice among the columns of a release: what a model is fitted to is the release as a whole."""
    wanted = _known_columns(spec, release, about)
    if wanted is not None and set(wanted) != set(release.columns):
        assert spec.model is not None  # the caller looks
        raise DataError(
            f"release.columns: {spec.model.kind} is fitted to all columns of a release "
            f"({', '.join(release.columns)}); leave it out"
        )


def pick_columns(spec: RunSpec, release: Release, about: bool) -> list[int]:
    """Return the positions of the columns that the kernel is fitted to; `about` as in `parametric_task`.

    Raises
    ------
    DataError
        When there is no such column, or there are too many or too few for the kernel.
    """
    if not release.mechanism.columns_each:
        return list(range(len(release.columns)))
    wanted = _known_columns(spec, release, about)
    names = release.columns if wanted is None else wanted
    kernel = getattr(spec.model, "kernel", "normal")
    if getattr(spec.model, "several", False):
        centre = getattr(getattr(spec.model, "base", None), "mu0", None)
        dimension = len(names) if centre is None else len(centre)
        if len(names) < 2:
            raise DataError(
                f"model.kernel: {kernel} is for two columns or more, and there is {names[0]}; use "
                "kernel: normal"
            )
        if len(names) != dimension:
            raise DataError(
                f"model.base.mu0: has {dimension} entries for {len(names)} released columns "
                f"({', '.join(names)}); choose as many with release.columns"
            )
    elif len(names) != 1:
        key = "release" if about else "release=null --set release"
        advice = f"{key}.column={names[0]}" if wanted is None else f"{key}.columns=[{names[0]}]"
        raise DataError(
            f"model.kernel: {kernel} is for one column, and there are {', '.join(names)}; "
            f"choose one with --set {advice}"
        )
    return [release.columns.index(name) for name in names]


def picked(release: Release, columns: list[int]) -> tuple[Release, list[int]]:
    """Return a release of the columns that are fitted, and their positions in it.

    Of additive noise the whole release stands, of which the law tells each column's noise by its position.
    """
    law = release.mechanism
    if law.additive or not law.columns_each or columns == list(range(len(release.columns))):
        return release, columns
    found = dataclasses.replace(
        release,
        values=np.ascontiguousarray(release.values[:, columns]),
        columns=tuple(release.columns[column] for column in columns),
        mechanism=law.of_columns(columns),
        labels=tuple(release.labels[column] for column in columns) if release.labels else (),
    )
    return found, list(range(len(columns)))


def of_wanted(spec: RunSpec, release: Release, about: bool) -> Release:
    """Return a release of the columns that the spec names, where each column is a release of its own.

    Names that the release does not have are left to those who check them.
    """
    wanted = wanted_columns(spec, about)
    if wanted is None or not set(wanted) <= set(release.columns):
        return release
    return picked(release, [release.columns.index(name) for name in wanted])[0]


# What the samplers take of a release: the value or row of each record, the channel, and public bounds


def observe(spec: RunSpec, release: Release, columns: list[int]) -> Observation:
    """Return what the samplers take of a release.

    Raises
    ------
    SpecError
        When the public bounds are missing where the kernel needs them.
    DataError
        When the release does not allow the model.
    """
    kernel, law = getattr(spec.model, "kernel", "normal"), release.mechanism
    every = columns == list(range(release.values.shape[1]))  # then nothing is copied
    values = np.ascontiguousarray(release.values if every else release.values[:, columns])
    seen = law.observe(values, release.n, columns, rows=getattr(spec.model, "several", False))
    if not law.protects and kernel == "beta":
        return seen._replace(z=_logits(seen.z, *bounds_of(spec, release)))
    base = getattr(spec.model, "base", None)
    if law.normal_noise and getattr(base, "kind", None) == "truncated_nig":
        return seen._replace(channel=NoNoise())  # the noise is in the kernel's variance
    return seen


def bounds_of(spec: RunSpec, release: Release, column: int = 0) -> tuple[float, float]:
    """Return the public bounds of a column of a release.

    Raises
    ------
    SpecError
        When neither the release nor the spec states them.
    """
    pairs = pairs_of(spec, release)
    if column >= len(pairs):
        raise SpecError("mechanism.domain: missing; this release and kernel need the public bounds")
    return pairs[column]


def pairs_of(spec: RunSpec, release: Release) -> list[tuple[float, float]]:
    """Return the public bounds of each column of a release, as it or the spec states them; else none."""
    pairs = release.mechanism.domain or (None if spec.mechanism is None else spec.mechanism.domain)
    return [(float(lo), float(hi)) for lo, hi in pairs or ()]


def _logits(y: Floats, lo: float, hi: float) -> Floats:
    """Return the logits of places in (lo, hi), the coordinate of the beta kernel."""
    if not ((y > lo) & (y < hi)).all():
        bad = y[~((y > lo) & (y < hi))][0]
        raise DataError(
            f"a record of {bad:g} is not inside the domain ({lo:g}, {hi:g}), where alone the beta kernel has "
            "a density; widen the domain"
        )
    return np.ascontiguousarray(np.log(y - lo) - np.log(hi - y))
