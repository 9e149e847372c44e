"""`dpmix.fit`: from a release to chains; what a fit is, so that only the same goes on from its work."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dpmix._version import __version__
from dpmix.api.arguments import PathLike, file_of, whole_of
from dpmix.api.release_of import find_release
from dpmix.api.task import Task, of_wanted, parametric_task, pick_columns, picked, wanted_columns
from dpmix.columns.column_units import unit_text
from dpmix.errors import DataError, SpecError, UsageError, say
from dpmix.release.tallies import one_column, wide_grid
from dpmix.run.chains_file import with_edges
from dpmix.run.chains_reader import first_difference, read_chains
from dpmix.run.chains_writer import Finished, write_chains
from dpmix.run.draws_tables import DRAWS, draws_tables, to_inferencedata
from dpmix.run.progress import Watch, show_fit
from dpmix.run.runner import Run, available_cores, run, stop_on_signals
from dpmix.run.workspace import Workspace, workspace_of
from dpmix.spec import RunSpec, SpecSource, load_spec
from dpmix.spec.capabilities import counted
from dpmix.spec.combinations import check_combination
from dpmix.spec.kinds import AUTO
from dpmix.spec.load import overrides_of, with_sampler
from dpmix.spec.run_spec import of_analyst
from dpmix.store.atomic import check_output, check_suffix
from dpmix.store.frames import Tabulated

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.run.kept_quantities import Predictive
    from dpmix.store.frames import Frame


@dataclass(frozen=True)
class FitResult(Tabulated):
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
    written : bool
        False when `resume` found the file finished and left it as it is.
    """

    path: Path
    chains: tuple[int, ...]
    draws: int
    seconds: tuple[float, ...]
    written: bool = True

    def __fspath__(self) -> str:
        """Stand for the chains file wherever a path is asked for."""
        return str(self.path)

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """How many chains of how many draws, and in which file."""
        each = f"{self.draws:,} draw{'s' * (self.draws > 1)}"
        many = f"{len(self.chains)} chain{'s' * (len(self.chains) > 1)} of {each}"
        return f"Fit: {many}", [f"{self.path}, {sum(self.seconds):.3g} s of sampling"]

    def to_frame(self) -> Frame:
        """Return the draws, one row each: chain, draw, and the entries of variables that are not of records.

        Raises
        ------
        DataError
            When the file is no chains file any more.
        """
        return draws_tables(self.path)[DRAWS].frame()

    def to_inferencedata(self) -> Any:
        """Return the chains as the installed ArviZ takes them; see `dpmix.run.draws_tables.to_inferencedata`.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            With the dimensions `chain` and `draw` in `/posterior`.
        """
        return to_inferencedata(self.path)


def fit(
    spec: SpecSource,
    release: Release | PathLike | None = None,
    output: PathLike = "chains.h5",
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    chain_id: int | None = None,
    chains: int | None = None,
    jobs: int | None = None,
    force: bool = False,
    quiet: bool = False,
    allow_code: bool = False,
    watch: Watch | None = None,
) -> FitResult:
    """Sample the posterior of a spec's model given a release, and write the chains.

    Parameters
    ----------
    spec : dict, path or RunSpec
        With a `model` section.
    release : Release or path, optional
        The release; it takes the place of one that the spec's `release` section names. Without either, and
        with mechanism `none`, the records under `data` are fitted as they are.
    output : path
        Chains file to write. Work in progress stands beside it, in ``<output>.partial``.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    resume : bool
        Go on with an interrupted run, with the draws it would have had; without one, start it. A run that
        is finished is left as it is.
    chain_id : int, optional
        Run only this chain of the spec, which must have a seed.
    chains : int, optional
        Number of chains, in place of `sampler.chains`.
    jobs : int, optional
        Number of threads; default: the cores this process may use. The draws do not depend on it.
    force : bool
        Overwrite `output`, and drop an interrupted run.
    quiet : bool
        Show no progress.
    allow_code : bool
        Whether the Python file of a custom model may run.
    watch : Watch, optional
        Shown the progress, in place of a terminal.

    Raises
    ------
    SpecError, UsageError, DataError
        When the spec, the release or the output do not allow the run.
    SamplerError
        When a chain fails.
    Interrupted
        On a signal to stop in the main thread, with the state saved.
    """
    file_of(output, "output")
    job, final = _prepare(
        spec, release, output, overrides, resume, chain_id, chains, jobs, force, quiet, allow_code
    )
    assert final is not None  # as there is an output
    folder, manifest = workspace_of(final), manifest_of(job.spec, job.release, job.task)
    spent = _finished(final, manifest, resume)
    if spent is not None:
        return FitResult(Path(output), job.task.run.chains, job.task.run.draws, spent, written=False)
    if job.why is not None:
        say(f"sampler: {job.spec.sampler.kind}, for {job.why}", quiet)
    seed = job.spec.sampler.seed
    with stop_on_signals() as stop, Workspace.open(folder) as workspace:
        entropy, overwrite = begin(workspace, manifest, final, resume=resume, force=force, seed=seed)
        task = replace(job.task.run, entropy=entropy)
        check_room(folder, task)
        with show_fit(quiet) if watch is None else nullcontext(watch) as shown:
            seconds = run(task, workspace, jobs or available_cores(), stop, shown)
            with shown.phase(f"writing {output}"):
                finished = Finished.of(
                    job.task,
                    chains=task.chains,
                    draws=task.draws,
                    seconds=seconds,
                    attrs=attributes(job.spec, job.release, job.task, entropy, seconds),
                    prior=job.task.prior(entropy),
                    predict=_predict,
                )
                write_chains(final, workspace, finished, force=overwrite, check=stop.check)
        workspace.remove()
    return FitResult(Path(output), task.chains, task.draws, tuple(seconds))


def _predict(path: Path, check: Callable[[], None]) -> Sequence[Predictive]:
    """Return what is kept for checks of the finished draws (`dpmix.summary.check.loo`)."""
    from dpmix.summary.check.loo import predictive_of  # late: SciPy takes its time

    return predictive_of(path, check)


def plan(
    spec: SpecSource,
    release: Release | PathLike | None = None,
    output: PathLike | None = None,
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    chain_id: int | None = None,
    chains: int | None = None,
    force: bool = False,
    allow_code: bool = False,
) -> str:
    """Say what `fit` would do, after the same checks of spec, release and output.

    Raises SpecError, UsageError and DataError as `fit`.
    """
    going_on = ""
    job, final = _prepare(
        spec, release, output, overrides, resume, chain_id, chains, None, force, False, allow_code
    )
    if final is not None:
        manifest = manifest_of(job.spec, job.release, job.task)
        if _finished(final, manifest, resume) is not None:
            return f"leave {output} as it is, which is finished"
        folder = workspace_of(final)
        if folder.exists():
            with Workspace.looked_at(folder) as workspace:
                if begun(workspace, manifest, final, resume=resume, force=force) is not None:
                    going_on = f"go on with the interrupted run in {folder}: "
    run = job.task.run
    ids = ", ".join(str(chain) for chain in run.chains)
    why = "" if job.why is None else f"; auto takes {job.spec.sampler.kind}, for {job.why}"
    kept = f", {job.task.kept}" if job.task.kept else ""
    return (
        f"{going_on}sample {counted(run.iterations, 'sweep')} of {job.spec.sampler.kind} given "
        f"{_counted(job.release, job.task)} (chains {ids}), and keep {counted(run.draws, 'draw')} of each"
        f"{kept}{why}"
    )


def _counted(release: Release, task: Task) -> str:
    """Say how much was released, such as "64 draws of 272 records"."""
    if release.tally is not None:
        return f"{release.n:,} released values by their counts in {len(release.tally.counts):,} cells"
    rows, width = len(task.observed), task.observed[0].size
    if not release.by_record:
        names = release.mechanism.rows_name
        return f"{rows} {names.removesuffix('s') if rows == 1 else names} of {counted(release.n, 'record')}"
    if width == 1:
        return counted(rows, "released value")
    return f"{counted(rows, 'record')} of {width} released numbers each"


# What is checked before anything is sampled


@dataclass(frozen=True)
class _Job:
    spec: RunSpec
    release: Release
    task: Task
    why: str | None  # auto takes this sampler


def _finished(final: Path, manifest: dict[str, Any], resume: bool) -> tuple[float, ...] | None:
    """Return the seconds of a finished run that is to be gone on with; None where there is none."""
    if resume and final.exists() and not workspace_of(final).exists():
        return check_finished(final, manifest)
    return None


def _prepare(
    spec: SpecSource,
    release: Release | PathLike | None,
    output: PathLike | None,
    overrides: Sequence[str],
    resume: bool,
    chain_id: int | None,
    chains: int | None,
    jobs: int | None,
    force: bool,
    quiet: bool,
    allow_code: bool,
) -> tuple[_Job, Path | None]:
    """Make all checks but those of work that is there; return the output with links resolved, too."""
    before = None  # the sampler of a run that is gone on with
    if output is not None and resume:
        if force:
            raise UsageError("--resume goes on with a run, --force starts it over; give one of them")
        before = kept_kind(Path(output))
    extra = [] if chains is None else [f"sampler.chains={chains}"]
    checked = load_spec(spec, [*overrides_of(overrides), *extra])
    if checked.model is None:
        raise SpecError("model: missing; say which model to fit, such as {kind: mixture}")
    ids = _chain_ids(checked, chain_id)
    if jobs is not None and whole_of(jobs, "--jobs") < 1:
        raise UsageError(f"--jobs {jobs} must be at least 1")
    source, about = find_release(checked, release, quiet)
    grouped = bool(source.groups)
    checked, why = _with_sampler(checked, source, about, before)
    assert checked.model is not None  # as before
    known = _known(checked, source)
    check_combination(source.kind, known, source.n, grouped=grouped, tallied=source.tally is not None)
    if checked.model.kind == "mixture":
        from dpmix.api.mixture_task import (  # late: other fits read no mixture
            group_mixture_task,
            mixture_task,
        )

        if grouped:
            task = group_mixture_task(checked, source, about, ids)
        else:
            source, columns = picked(source, pick_columns(checked, source, about))
            task = mixture_task(checked, source, columns, ids)
    else:
        source = of_wanted(checked, source, about)
        task = parametric_task(checked, source, about, ids, allow_code=allow_code)
    final = None if output is None else check_output(Path(output), force=force or resume)
    if output is not None:
        check_suffix(output, "a chains file")
    if isinstance(release, (str, os.PathLike)) and final == Path(release).resolve():
        raise UsageError(f"{output} is the release itself; give another name for the chains")
    return _Job(checked, source, task, why), final


def _known(spec: RunSpec, release: Release) -> RunSpec:
    """Return a spec to look at beside its release: whatever bounds this states are known."""
    if spec.release is None or release.mechanism.public_bounds is None:
        return spec
    return spec.model_copy(update={"release": spec.release.model_copy(update={"path": None})})


def _with_sampler(
    spec: RunSpec, release: Release, about: bool, before: str | None
) -> tuple[RunSpec, str | None]:
    """Return the spec with the sampler that auto takes for the release, and why; None where it names one."""
    if before is not None and spec.sampler.kind == AUTO:
        return load_spec(spec, [f"sampler.kind={before}"]), "the run was started with it"
    tally = release.tally
    if tally is not None and not release.mechanism.protects and spec.sampler.width == "auto":
        spec = load_spec(spec, [f"sampler.width={tally.width!r}"])  # which does not follow from the mechanism
    if tally is not None:  # what is refused of counts is refused as of a tally
        check_combination(release.kind, spec, release.n, grouped=bool(release.groups), tallied=True)
    cells, grouped = _cells(spec, release, about), bool(release.groups)
    known = _known(spec, release)
    chosen, why = with_sampler(
        known, release.kind, release.n, cells=cells, grouped=grouped, tallied=tally is not None
    )
    return (spec if chosen is known else load_spec(spec, [f"sampler.kind={chosen.sampler.kind}"])), why


def _cells(spec: RunSpec, release: Release, about: bool) -> int | None:
    """Return how many cells counts would work on; None where that does not follow."""
    if release.tally is not None or not release.by_record:
        return None
    names = wanted_columns(spec, about)
    domain = None if spec.mechanism is None else spec.mechanism.domain
    try:
        own, place = one_column(release, names)
        law = own.mechanism
        if not law.domain and domain is not None and place < len(domain):
            law = law.updated(domain=[list(domain[place])])
        return len(wide_grid(law, spec.sampler.width)[0]) + 1
    except (SpecError, DataError):
        return None


def _chain_ids(spec: RunSpec, chain_id: int | None) -> tuple[int, ...]:
    if chain_id is None:
        return tuple(range(spec.sampler.chains))
    chain_id = whole_of(chain_id, "--chain-id")
    if not 0 <= chain_id < spec.sampler.chains:
        raise UsageError(
            f"--chain-id {chain_id}: the spec has chains 0 to {spec.sampler.chains - 1} (sampler.chains)"
        )
    if spec.sampler.seed is None:
        raise UsageError("sampler.seed: missing; --chain-id needs it, for processes of one run share it")
    return (chain_id,)


def check_room(folder: Path, run: Run) -> None:
    """Warn before hours of work when the disk cannot hold the draws, and once more the file made of them."""
    need = 2 * len(run.chains) * run.draws * run.model.bytes_per_draw
    free = shutil.disk_usage(folder).free
    if need > free:
        say(
            f"warning: the draws may need {need / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free; "
            "sampler.thin would save room, and sampler.store: [] where allocations are kept"
        )


# What a fit is, by which an interrupted or finished one is told from another


def manifest_of(spec: RunSpec, release: Release, task: Task) -> dict[str, Any]:
    """Say what a run is; runs that say the same draw the same."""
    return {
        "dpmix_version": __version__,
        "spec": yaml.safe_load(spec.for_analyst().to_yaml()),
        "mechanism": release.mechanism.stated(),
        "released_values": _digest(with_edges(task.observed, task.edges)),
        "chains": list(task.run.chains),
        "model.file": task.attrs.get("code_digest", ""),
        **_prior_rules(task.attrs),
    }


def _prior_rules(attrs: Mapping[str, Any]) -> dict[str, str]:
    """Say by which rule a prior was computed, where the spec does not state it in the data's units."""
    found = {}
    if attrs.get("base_from") in ("bounds", "release", "hidden"):
        found["model.base"] = "as it is computed now"
    base = str(attrs.get("base", ""))
    if base.startswith("learned_"):
        how = "learned with its lambda" if base.endswith("_lambda") else "learned"
        found["model.base"] = f"{how}, {found.get('model.base', 'with the numbers given as its centre')}"
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
    known = begun(workspace, manifest, final, resume=resume, force=force)
    if known is not None:
        return known
    entropy = seed if seed is not None else _fresh_entropy()
    workspace.start({**manifest, "entropy": str(entropy), "overwrite": force})
    return entropy, force


def begun(
    workspace: Workspace, manifest: dict[str, Any], final: Path, *, resume: bool, force: bool
) -> tuple[int, bool] | None:
    """Return entropy and overwriting of the run that is gone on with, None where it starts; see `begin`."""
    found = workspace.manifest()
    if found is None or force:
        if resume and final.exists():
            raise UsageError(f"{final} is finished already; --force starts it over")
        return None
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
        **_prior_rules(chains.attrs),
    }
    wanted = {key: value for key, value in manifest.items() if key != "dpmix_version"}
    _check_same(found, wanted, f"the finished {final}", "give another output")
    return tuple(chains.seconds.tolist())


def _check_same(found: dict[str, Any], wanted: dict[str, Any], what: str, advice: str) -> None:
    """Refuse what differs from the run that is wanted, naming the difference; sections of others do not."""
    if isinstance(found.get("spec"), dict):
        found = found | {"spec": of_analyst(found["spec"])}
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


# What the chains file says of it


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
        **({} if release.proved is None else {"proved": release.proved}),
        **{name: _number(getattr(release, name)) for name in ("epsilon", "delta", "rho")},
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
