"""`dpmix.fit`: from a release to chains."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.random import SeedSequence
from numpy.typing import NDArray

import dpmix
from dpmix.chains import Run, available_cores, run
from dpmix.channels import GaussianNoise, LaplaceNoise, NoNoise
from dpmix.data import load_stated_release, unprotected
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.kernels import NormalNIG, parameter_names
from dpmix.mixing import PitmanYor, truncation_error
from dpmix.progress import show_chains
from dpmix.release import Release
from dpmix.samplers import Algorithm
from dpmix.spec import GammaPrior, NormalMixture, RunSpec, check_combination, load_spec
from dpmix.store.atomic import check_output
from dpmix.store.chains import Finished, Workspace, workspace_of, write_chains
from dpmix.store.differences import first_difference
from dpmix.store.release import read_release

__all__ = ["FitResult", "fit"]

TRUNCATION_TOLERANCE = 0.01  # expected number of records beyond a truncation
ALLOCATIONS_LIMIT = 5000  # records up to which allocations are stored unless the spec says otherwise
_LARGEST_TRUNCATION = 100_000


@dataclass(frozen=True)
class FitResult:
    """A finished fit.

    Parameters
    ----------
    path : Path
        The chains file.
    chains : tuple of int
        Ids of its chains.
    draws : int
        Saved draws of each.
    seconds : tuple of float
        Wall seconds of sampling of each.
    """

    path: Path
    chains: tuple[int, ...]
    draws: int
    seconds: tuple[float, ...]


def fit(
    spec: Mapping[str, Any] | str | os.PathLike[str] | RunSpec,
    release: Release | str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] = "chains.h5",
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    chain_id: int | None = None,
    chains: int | None = None,
    jobs: int | None = None,
    force: bool = False,
    quiet: bool = False,
) -> FitResult:
    """Sample the posterior of a spec's model given a release, and write the chains.

    Parameters
    ----------
    spec : dict, path or RunSpec
        With a `model` section.
    release : Release or path, optional
        The release; else the values named by the spec's `release` section.
    output : path
        Chains file to write. Work in progress stands beside it, in ``<output>.partial``.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    resume : bool
        Go on with an interrupted run, with the draws it would have had; without one, start it.
    chain_id : int, optional
        Run only this chain of the spec, which must have a seed.
    chains : int, optional
        Number of chains, in place of `sampler.chains`.
    jobs : int, optional
        Number of threads; default: the cores this process may use.
    force : bool
        Overwrite `output`, and drop an interrupted run.
    quiet : bool
        Show no progress.

    Returns
    -------
    FitResult

    Raises
    ------
    SpecError, UsageError, DataError
        When the spec, the release or the output do not allow the run.
    SamplerError
        When a chain fails.
    Interrupted
        On SIGINT or SIGTERM, with the state saved.
    """
    extra = [] if chains is None else [f"sampler.chains={chains}"]
    checked = load_spec(spec, [*overrides, *extra])
    if checked.model is None:
        raise SpecError("model: missing; say which model to fit, such as {kind: mixture}")
    ids = _chain_ids(checked, chain_id)
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs} must be at least 1")
    final = check_output(output, force=force or resume)
    source = _release(checked, release)
    check_combination(source.kind, checked)
    z, column = _column(checked, source)
    task, constants = _task(checked, source, z, column, ids)
    manifest = _manifest(checked, source, z, task)
    folder = workspace_of(final)
    if resume and final.exists() and not folder.exists():
        raise UsageError(f"{output} is finished already; --force starts it over")
    with Workspace.open(folder) as workspace:
        entropy = _begin(workspace, manifest, resume=resume, force=force, seeded=checked.sampler.seed is not None)
        task = Run(**{**task.__dict__, "entropy": entropy})
        _check_room(folder, task)
        with show_chains(quiet) as watch:
            seconds = run(task, workspace, jobs or available_cores(), watch)
        finished = Finished(
            chains=ids,
            seconds=seconds,
            parameters=parameter_names(task.kernel),
            observed=z,
            constants=constants,
            attrs=_attributes(checked, source, entropy),
        )
        write_chains(final, workspace, finished, force=force or resume)
        workspace.remove()
    return FitResult(Path(output), ids, checked.sampler.draws, tuple(seconds))


def _chain_ids(spec: RunSpec, chain_id: int | None) -> tuple[int, ...]:
    if chain_id is None:
        return tuple(range(spec.sampler.chains))
    if not 0 <= chain_id < spec.sampler.chains:
        raise UsageError(
            f"--chain-id {chain_id}: the spec has chains 0 to {spec.sampler.chains - 1} (sampler.chains)"
        )
    if spec.sampler.seed is None:
        raise UsageError("--chain-id needs sampler.seed in the spec: processes of one run share its seed")
    return (chain_id,)


def _release(spec: RunSpec, release: Release | str | os.PathLike[str] | None) -> Release:
    if isinstance(release, Release):
        found = release
    elif release is not None:
        found = read_release(Path(release))
    elif spec.release is not None and spec.release.path is not None:
        return load_stated_release(spec)
    elif spec.mechanism is not None and spec.mechanism.kind == "none" and spec.data is not None:
        return unprotected(spec)
    else:
        raise UsageError("release: missing; give --release FILE, or name the sanitized values in the spec")
    if spec.mechanism is not None and spec.mechanism.kind != found.kind:
        raise SpecError(
            f"mechanism.kind: {spec.mechanism.kind}, but the release was made by {found.kind}; "
            "take the section out, or give the release it describes"
        )
    return found


def _column(spec: RunSpec, release: Release) -> tuple[NDArray[np.float64], int]:
    """Return the one column that the normal kernel is fitted to."""
    wanted = spec.release.columns if spec.release is not None else None
    names = release.columns if wanted is None else wanted
    for name in names:
        if name not in release.columns:
            raise DataError(f"release.columns: the release has no column {name!r}; it has {', '.join(release.columns)}")
    if len(names) != 1:
        raise DataError(
            f"model.kernel: normal is for one column, and the release has {', '.join(release.columns)}; "
            f"choose one with --set release.column={release.columns[0]}"
        )
    column = release.columns.index(names[0])
    return np.ascontiguousarray(release.values[:, column]), column


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
        return NormalNIG(float(base.mu0), float(base.lambda_), float(base.a), float(base.b))
    half = float(np.var(z, ddof=1)) / 2.0  # prior mean of the variance (P1, section 6), its prior variance being 1/2
    if not half > 0.0 or not math.isfinite(half):
        raise DataError("model.base.empirical: the released values are all equal; give mu0, lambda, a and b")
    return NormalNIG(float(np.mean(z)), 0.1, 2.0 + 2.0 * half**2, half * (1.0 + 2.0 * half**2))


def _task(
    spec: RunSpec, release: Release, z: NDArray[np.float64], column: int, ids: tuple[int, ...]
) -> tuple[Run, dict[str, float]]:
    """Turn the spec into what the samplers take, and into the constants that summaries need."""
    model = spec.model
    if not isinstance(model, NormalMixture):
        raise SpecError("model: not a mixture of normals; use {kind: mixture, kernel: normal}")
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
        burn_in=int(sampler.burn_in or 0),
        thin=sampler.thin,
        entropy=0,
        chains=ids,
        allocations=len(z) <= ALLOCATIONS_LIMIT if store is None else "allocations" in store,
    )
    constants = {f"base_{name}": value for name, value in zip(("mu0", "lambda", "a", "b"), task.kernel, strict=True)}
    constants["noise_scale"] = float(task.channel[0])
    constants["discount"] = mixing.discount
    constants["acceptance_bound"] = math.nan  # a kernel on the whole line has none (methods, section 4)
    return task, constants


def _check_truncation(mixing: PitmanYor, truncation: int, n: int) -> None:
    """Refuse a truncation that leaves out too much, and name one that does not."""
    error = truncation_error(mixing, truncation, n)
    if error <= TRUNCATION_TOLERANCE:
        return
    enough = truncation
    while enough < _LARGEST_TRUNCATION and truncation_error(mixing, enough, n) > TRUNCATION_TOLERANCE:
        enough *= 2
    low = enough // 2
    while low + 1 < enough:
        middle = (low + enough) // 2
        if truncation_error(mixing, middle, n) > TRUNCATION_TOLERANCE:
            low = middle
        else:
            enough = middle
    advice = f"use at least {enough}, or" if enough < _LARGEST_TRUNCATION else "no practical one is enough:"
    raise SpecError(
        f"sampler.truncation: {truncation} leaves out an expected {error:.2g} of the {n} records "
        f"(at most {TRUNCATION_TOLERANCE:g}); {advice} private_slice or neal8, which do not truncate"
    )


def _manifest(spec: RunSpec, release: Release, z: NDArray[np.float64], task: Run) -> dict[str, Any]:
    """Say what a run is, so that only the same run goes on from its work."""
    return {
        "dpmix_version": dpmix.__version__,
        "spec": yaml.safe_load(spec.for_analyst().to_yaml()),
        "mechanism": release.mechanism,
        "released_values": hashlib.sha256(z.tobytes()).hexdigest(),
        "chains": list(task.chains),
    }


def _begin(workspace: Workspace, manifest: dict[str, Any], *, resume: bool, force: bool, seeded: bool) -> int:
    """Start the run, or go on with it; return its entropy."""
    found = workspace.manifest()
    if found is not None and resume:
        entropy = int(found.pop("entropy"))
        difference = first_difference(found, json.loads(json.dumps(manifest)))
        if difference is not None:
            key, old, new = difference
            raise SpecError(
                f"{key.removeprefix('spec.')}: the interrupted run in {workspace.path} has {old}, not {new}; "
                "resume it with what it was started with, or start over with --force"
            )
        return entropy
    if found is not None and not force:
        raise UsageError(
            f"{workspace.path} holds an interrupted run; go on with --resume, or start over with --force"
        )
    entropy = int(manifest["spec"]["sampler"]["seed"]) if seeded else int(SeedSequence().entropy)  # type: ignore[arg-type]
    workspace.start({**manifest, "entropy": str(entropy)})
    return entropy


def _check_room(folder: Path, task: Run) -> None:
    """Warn before hours of work when the disk cannot hold the draws."""
    draws = len(task.chains) * ((task.iterations - task.burn_in) // task.thin)
    need = draws * (400 + (2 * len(task.z) if task.allocations else 0))
    free = shutil.disk_usage(folder).free
    if need > free:
        print(
            f"dpmix: warning: the draws may need {need / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free; "
            "consider sampler.thin or sampler.store: []",
            file=sys.stderr,
        )


def _attributes(spec: RunSpec, release: Release, entropy: int) -> dict[str, Any]:
    packages = ("numpy", "scipy", "numba", "h5py")
    versions = {name: importlib.metadata.version(name) for name in packages}
    versions["python"] = platform.python_version()
    number = {None: math.nan}
    return {
        "spec": spec.for_analyst().to_yaml(),
        "seed": str(entropy),
        "dpmix_version": dpmix.__version__,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": json.dumps(versions),
        "mechanism": json.dumps(release.mechanism),
        "trust": release.trust,
        "epsilon": number.get(release.epsilon, release.epsilon),
        "delta": number.get(release.delta, release.delta),
        "rho": number.get(release.rho, release.rho),
        "private": release.private,
        "simulated": release.simulated,
    }
