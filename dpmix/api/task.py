"""From a spec and a release to what the samplers take."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.chains import Run
from dpmix.channels import GaussianNoise, LaplaceNoise, NoNoise
from dpmix.data import load_stated_release, unprotected
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.kernels import NormalNIG
from dpmix.mechanisms import stated
from dpmix.mixing import PitmanYor, truncation_error
from dpmix.release import Release
from dpmix.samplers import Algorithm
from dpmix.spec import GammaPrior, NormalMixture, RunSpec
from dpmix.store.release import read_release

__all__ = ["find_release", "make_task", "pick_column"]

TRUNCATION_TOLERANCE = 0.01  # expected number of records beyond a truncation
ALLOCATIONS_LIMIT = 5000  # records up to which allocations are stored unless the spec says otherwise
_LARGEST_TRUNCATION = 10_000  # that a spec may ask for
_AGREEMENT = 1e-6  # noise is calibrated on a grid, a little above its formula


def find_release(
    spec: RunSpec, release: Release | str | os.PathLike[str] | None, quiet: bool = False
) -> tuple[Release, bool]:
    """Return the release to fit, and whether the spec's `release` section is about it.

    A release that is given takes the place of one that the spec names, with its columns; where the spec's
    section names no path, its columns are those to take from the release that is given.

    Raises
    ------
    UsageError
        When there is no release.
    SpecError
        When the spec's mechanism is not what the release was made with.
    DataError
        When the release cannot be read.
    """
    section = spec.release
    if release is not None:
        found = release if isinstance(release, Release) else read_release(Path(release))
        _check_mechanism(spec, found)
        replaced = section is not None and section.path is not None
        if section is not None and replaced and not quiet:
            words = f"the release given takes the place of the spec's release section ({section.path})"
            print(f"dpmix: note: {words}", file=sys.stderr)
        return found, not replaced
    if section is not None and section.path is not None:
        return load_stated_release(spec), True
    if spec.mechanism is not None and spec.mechanism.kind == "none" and spec.data is not None:
        return unprotected(spec), section is not None
    raise UsageError("release: missing; give --release FILE, or name the sanitized values in the spec")


def _check_mechanism(spec: RunSpec, found: Release) -> None:
    """Refuse a spec whose mechanism contradicts the one that a release was made with."""
    mechanism = spec.mechanism
    if mechanism is None:
        return
    advice = "take it out of the spec, or give the release it describes"
    if mechanism.kind != found.kind:
        raise SpecError(
            f"mechanism.kind: {mechanism.kind}, but the release was made by {found.kind}; {advice}"
        )
    if found.kind == "none":
        return
    requested = found.mechanism.get("requested") or {}
    for key in ("epsilon", "delta", "rho", "scale"):
        value = getattr(mechanism, key, None)
        if value is not None and key in requested and not _agree(value, requested[key]):
            raise SpecError(
                f"mechanism.{key}: {value:g}, but the release was made with {key} = {requested[key]:g}; "
                f"{advice}"
            )
    bounds = found.mechanism.get("domain")
    pairs = None if bounds is None else tuple((float(lo), float(hi)) for lo, hi in bounds)
    if mechanism.domain is not None and pairs is not None and mechanism.domain != pairs:
        raise SpecError(
            f"mechanism.domain: {_listed(mechanism.domain)}, but the release was made with {_listed(pairs)}; "
            f"{advice}"
        )
    domain = mechanism.domain or pairs
    if domain is None and getattr(mechanism, "scale", None) is None:
        raise SpecError(
            "mechanism.domain: missing; without it the noise that is stated cannot be compared with the "
            f"release's; {advice}"
        )
    meant, _ = stated(mechanism.model_copy(update={"domain": domain}), len(found.columns))
    for value, actual in zip(meant["scale"], found.scales, strict=True):
        if not _agree(value, actual):
            raise SpecError(
                f"mechanism: means noise of scale {value:g}, but the release was made with {actual:g}; "
                f"{advice}"
            )


def _agree(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_AGREEMENT)


def _listed(pairs: tuple[tuple[float, float], ...]) -> str:
    return ", ".join(f"[{lo:g}, {hi:g}]" for lo, hi in pairs)


def pick_column(spec: RunSpec, release: Release, about: bool) -> int:
    """Return the position of the one column that the normal kernel is fitted to.

    Parameters
    ----------
    spec : RunSpec
    release : Release
    about : bool
        Whether the spec's `release` section is about this release.

    Raises
    ------
    DataError
        When there is no such column, or there are several.
    """
    wanted = spec.release.columns if spec.release is not None and about else None
    names = release.columns if wanted is None else wanted
    for name in names:
        if name not in release.columns:
            raise DataError(
                f"release.columns: the release has no column {name!r}; it has {', '.join(release.columns)}"
            )
    if len(names) != 1:
        key = "release" if about else "release=null --set release"
        advice = f"{key}.column={names[0]}" if wanted is None else f"{key}.columns=[{names[0]}]"
        raise DataError(
            f"model.kernel: normal is for one column, and there are {', '.join(names)}; "
            f"choose one with --set {advice}"
        )
    return release.columns.index(names[0])


def make_task(
    spec: RunSpec, release: Release, column: int, chains: tuple[int, ...]
) -> tuple[Run, dict[str, float]]:
    """Turn spec and release into what the samplers take, and into the constants that summaries need.

    Raises
    ------
    SpecError
        When the model is no mixture of normals, or a truncation leaves out too much.
    DataError
        When the release does not allow the model.
    """
    model = spec.model
    if not isinstance(model, NormalMixture):
        raise SpecError("model: not a mixture of normals; use {kind: mixture, kernel: normal}")
    z = np.ascontiguousarray(release.values[:, column])
    prior = model.concentration
    mixing = (
        PitmanYor(1.0, float(model.discount), float(prior.shape), float(prior.rate))
        if isinstance(prior, GammaPrior)
        else PitmanYor(float(prior), float(model.discount))
    )
    sampler = spec.sampler
    if sampler.kind == "blocked_gibbs":
        _check_truncation(mixing, sampler.truncation, len(z))
    store = sampler.store
    task = Run(
        z=z,
        channel=_channel(release, column),
        kernel=_kernel(model, z),
        mixing=mixing,
        algorithm=Algorithm(sampler.kind, sampler.auxiliary, sampler.truncation, sampler.latent),
        iterations=sampler.iterations,
        burn_in=sampler.burn_in_sweeps,
        thin=sampler.thin,
        entropy=0,
        chains=chains,
        allocations=len(z) <= ALLOCATIONS_LIMIT if store is None else "allocations" in store,
        observed=z,
        dims=("obs",),
    )
    constants = {
        f"base_{name}": value for name, value in zip(("mu0", "lambda", "a", "b"), task.kernel, strict=True)
    }
    constants["noise_scale"] = float(task.channel[0])
    constants["discount"] = mixing.discount
    constants["acceptance_bound"] = math.nan  # a kernel on the whole line has none (methods, section 4)
    return task, constants


def _channel(release: Release, column: int) -> LaplaceNoise | GaussianNoise | NoNoise:
    if release.kind == "none":
        return NoNoise()
    scale = float(release.scales[column])
    if release.kind == "laplace":
        return LaplaceNoise(scale)
    if release.kind == "gaussian":
        return GaussianNoise(scale)
    raise DataError(f"the release was made by {release.kind}, which no sampler of this version can fit")


def _kernel(model: NormalMixture, z: NDArray[np.float64]) -> NormalNIG:
    base = model.base
    if not base.empirical:
        given: Mapping[str, Any] = {"mu0": base.mu0, "lam": base.lambda_, "a": base.a, "b": base.b}
        return NormalNIG(**{name: float(value) for name, value in given.items()})
    # prior mean of the variance (Beraha, Favaro and Rao 2024, section 6), its prior variance being 1/2
    half = float(np.var(z, ddof=1)) / 2.0 if len(z) > 1 else 0.0
    if not half > 0.0 or not math.isfinite(half):
        raise DataError(
            "model.base.empirical: the released values have no finite positive variance; "
            "give mu0, lambda, a and b"
        )
    return NormalNIG(float(np.mean(z)), 0.1, 2.0 + 2.0 * half**2, half * (1.0 + 2.0 * half**2))


def _check_truncation(mixing: PitmanYor, truncation: int, n: int) -> None:
    """Refuse a truncation that leaves out too much, and name the smallest that does not."""
    error = truncation_error(mixing, truncation, n)
    if error <= TRUNCATION_TOLERANCE:
        return
    low, enough = truncation, _LARGEST_TRUNCATION
    if truncation_error(mixing, enough, n) > TRUNCATION_TOLERANCE:
        advice = "use private_slice or neal8"
    else:
        while low + 1 < enough:
            middle = (low + enough) // 2
            if truncation_error(mixing, middle, n) > TRUNCATION_TOLERANCE:
                low = middle
            else:
                enough = middle
        advice = f"use at least {enough}, or private_slice or neal8"
    raise SpecError(
        f"sampler.truncation: {truncation} leaves out an expected {error:.2g} of the {n} records "
        f"(at most {TRUNCATION_TOLERANCE:g} may be); {advice}, which do not truncate"
    )
