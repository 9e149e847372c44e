"""What a fit is, so that only the same fit goes on from its work; and what its output says of it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dpmix._version import __version__
from dpmix.api.task import Task
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.release.column_units import unit_text
from dpmix.release.sanitized import Release
from dpmix.run.chains_file import with_edges
from dpmix.run.chains_reader import read_chains
from dpmix.run.differences import first_difference
from dpmix.run.runner import Run
from dpmix.run.workspace import Workspace, workspace_of
from dpmix.spec import RunSpec

__all__ = ["attributes", "begin", "check_finished", "check_room", "kept_kind", "manifest_of"]


def manifest_of(spec: RunSpec, release: Release, task: Task) -> dict[str, Any]:
    """Say what a run is; runs that say the same draw the same."""
    return {
        "dpmix_version": __version__,
        "spec": yaml.safe_load(spec.for_analyst().to_yaml()),
        "mechanism": release.mechanism.stated(),
        "released_values": _digest(with_edges(task.observed, task.edges)),
        "chains": list(task.run.chains),
        "model.file": task.attrs.get("code_digest", ""),
        **_prior(task.attrs),
    }


def _prior(attrs: Mapping[str, Any]) -> dict[str, str]:
    """Say by which rule a prior was computed, where the spec does not state it in the data's units."""
    found = {}
    if attrs.get("base_from") in ("bounds", "release", "hidden"):
        found["model.base"] = "as it is computed now"
    if str(attrs.get("base", "")).startswith("learned_"):
        found["model.base"] = f"learned, {found.get('model.base', 'with the numbers given as its centre')}"
    if "prior_of" in attrs:
        found["model.prior_sd"] = f"of {attrs['prior_of']}"
    return found


def begin(
    workspace: Workspace,
    manifest: dict[str, Any],
    final: Path,
    *,
    resume: bool,
    force: bool,
    seed: int | None,
) -> tuple[int, bool]:
    """Start the run, or go on with it; return its entropy, and whether the output may be overwritten.

    Raises
    ------
    UsageError
        When there is an interrupted run and neither `resume` nor `force` is given, or the output exists.
    SpecError
        When the interrupted run is another one, naming the difference.
    DataError
        When its account is damaged.
    """
    found = workspace.manifest()
    if found is None or force:
        if resume and final.exists():
            raise UsageError(f"{final} is finished already; --force starts it over")
        entropy = seed if seed is not None else _fresh_entropy()
        workspace.start({**manifest, "entropy": str(entropy), "overwrite": force})
        return entropy, force
    if not resume:
        raise UsageError(
            f"{workspace.path} holds an interrupted run; go on with --resume, or start over with --force"
        )
    try:
        entropy, overwrite = int(found.pop("entropy")), bool(found.pop("overwrite"))
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"{workspace.path / 'run.json'} is damaged; start over with --force") from error
    if final.exists() and not overwrite:
        raise UsageError(f"{final} exists already; --force starts it over")
    _check_same(found, manifest, f"the interrupted run in {workspace.path}", "resume it as it was started")
    return entropy, overwrite


def kept_kind(output: Path) -> str | None:
    """Return the sampler of an interrupted or finished run, which goes on with it; None without one.

    What auto takes may change between versions: a run keeps what it was started with.
    """
    try:
        found = Workspace(workspace_of(output)).manifest()
        spec = read_chains([output]).spec if found is None and output.is_file() else (found or {})["spec"]
        kind = spec["sampler"]["kind"]
    except (DataError, KeyError, TypeError):  # which going on with it says
        return None
    return kind if isinstance(kind, str) and kind != "auto" else None


def check_finished(final: Path, manifest: dict[str, Any]) -> tuple[float, ...]:
    """Check that a finished file is what the run would make, and return the seconds of its chains.

    Raises
    ------
    SpecError
        When it is of another run, naming the difference.
    DataError
        When it is no chains file.
    """
    chains = read_chains([final])
    found = {
        "spec": chains.spec,
        "mechanism": chains.mechanism.stated(),
        "released_values": _digest(chains.all_released),
        "chains": chains.ids.tolist(),
        "model.file": str(chains.attrs.get("code_digest", "")),
        **_prior(chains.attrs),
    }
    wanted = {key: value for key, value in manifest.items() if key != "dpmix_version"}
    _check_same(found, wanted, f"the finished {final}", "give another output")
    return tuple(chains.seconds.tolist())


def _check_same(found: dict[str, Any], wanted: dict[str, Any], what: str, advice: str) -> None:
    """Refuse what differs from the run that is wanted, naming the difference."""
    difference = first_difference(found, wanted)
    if difference is None:
        return
    key, old, new = difference
    if key == "released_values":
        key, old, new = "release", "other released values", "those given now"
    if key == "model.file":
        old, new = "another text", "the one there is now"
    raise SpecError(
        f"{key.removeprefix('spec.')}: {what} has {old}, not {new}; {advice}, or start over with --force"
    )


def _digest(values: NDArray[np.float64]) -> str:
    return hashlib.sha256(np.ascontiguousarray(values, dtype=np.float64).data).hexdigest()


def _fresh_entropy() -> int:
    entropy = SeedSequence().entropy
    assert isinstance(entropy, int)  # a fresh one is
    return entropy


def check_room(folder: Path, run: Run) -> None:
    """Warn before hours of work when the disk cannot hold the draws, and once more the file made of them."""
    need = 2 * len(run.chains) * run.draws * run.model.bytes_per_draw
    free = shutil.disk_usage(folder).free
    if need > free:
        print(
            f"dpmix: warning: the draws may need {need / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are "
            "free; sampler.thin would save room, and sampler.store: [] where allocations are kept",
            file=sys.stderr,
        )


def attributes(
    spec: RunSpec, release: Release, task: Task, entropy: int, seconds: Sequence[float]
) -> dict[str, Any]:
    """Return the root attributes of a chains file: spec, seed, versions, columns, guarantee, wall seconds."""
    packages = ("numpy", "scipy", "numba", "h5py")
    versions = {name: importlib.metadata.version(name) for name in packages}
    versions["python"] = platform.python_version()
    return {
        "spec": spec.for_analyst().to_yaml(),
        "seed": str(entropy),
        "dpmix_version": __version__,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": json.dumps(versions),
        "seconds": np.asarray(seconds, dtype=np.float64),
        "mechanism": json.dumps(release.mechanism.stated()),
        **task.attrs,
        "columns": json.dumps(list(task.columns)),
        **({"dates": json.dumps(list(release.dates))} if release.dates else {}),
        **({"unit": unit_text(release.unit)} if release.unit else {}),
        "n": release.n,
        "trust": release.trust,
        "adjacency": release.adjacency,
        "private": release.private,
        "simulated": release.simulated,
        **{name: _number(getattr(release, name)) for name in ("epsilon", "delta", "rho")},
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
