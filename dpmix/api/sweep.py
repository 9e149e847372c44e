"""`dpmix.sweep`: many runs from one spec, done or left to a cluster, and gathered to one table."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmix._version import __version__
from dpmix.api.arguments import PathLike, file_of, whole_of
from dpmix.api.calibrate import mechanism_of
from dpmix.api.confidential import marks_of, of_part
from dpmix.api.privatize import privatize, steps
from dpmix.api.spending import Entering, Spending, spending_of
from dpmix.data.loading import load_data
from dpmix.errors import (
    ConvergenceError,
    DataError,
    DpmixError,
    Interrupted,
    PrivacyError,
    SpecError,
    UsageError,
    say,
    truth_of,
)
from dpmix.models.custom.section import CustomModel
from dpmix.run.runner import available_cores, stop_on_signals
from dpmix.spec import RunSpec, load_spec
from dpmix.spec.load import naming_ledger, overrides_of
from dpmix.spec.sweep_spec import SweepSpec, load_sweep
from dpmix.spec.table_source import is_stream
from dpmix.store.atomic import reason, write_bytes
from dpmix.store.frames import Tabulated, frame_of_rows
from dpmix.sweeping.emit import KINDS, Emission, emitted
from dpmix.sweeping.folder import Folder, adopt, elsewhere, identity_of, of_no_run
from dpmix.sweeping.plan import Plan, Planned, check_ledger, make_plan, naming
from dpmix.sweeping.pool import Outcome, Pool, show_sweep
from dpmix.sweeping.table import columns_of, means, write_csv, write_hdf5

if TYPE_CHECKING:
    from dpmix.mechanisms.curators.by_kind import Mechanism
    from dpmix.store.frames import Frame

Source = Mapping[str, Any] | PathLike | SweepSpec
Row = dict[str, Any]

_ALL_ANEW = "--force to make all runs anew"
_NOTHING = "no run has confidential data: nothing is entered in the ledger"
_PAUSE = 0.2  # seconds between looks at the processes


@dataclass(frozen=True)
class SweepResult(Tabulated):
    """A sweep, as far as it is finished.

    Parameters
    ----------
    rows : tuple of dict
        One a run, in the order of the plan: parameters, `status` (finished, failed or missing), `message`,
        guarantee, diagnostics, scores, times.
    folder : Path
        The folder of the sweep.
    written : tuple of Path
        The tables and the figures.
    varied : tuple of str
        Keys of the spec that vary.
    codes : tuple of int
        Exit codes of the runs: 0 finished, 5 also for one that has not been run.
    """

    rows: tuple[Row, ...]
    folder: Path
    written: tuple[Path, ...]
    varied: tuple[str, ...]
    codes: tuple[int, ...]

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """How many runs there are, and where."""
        done = sum(row["status"] == "finished" for row in self.rows)
        return f"Sweep of {len(self.rows)} runs", [f"{done} finished; {self.folder}"]

    def to_frame(self) -> Frame:
        """Return the table, one row a run."""
        columns = columns_of(self.rows)
        return frame_of_rows([{key: row.get(key) for key in columns} for row in self.rows])

    def to_json(self) -> dict[str, Any]:
        """Return the table as strict JSON has it: `columns` and `rows`."""
        columns = columns_of(self.rows)
        return {"columns": columns, "rows": [{key: row.get(key) for key in columns} for row in self.rows]}

    def to_text(self) -> str:
        """Return the means over replicates, as text for a terminal."""
        return means(self.rows, self.varied)

    def check(self, *, convergence: bool = False) -> None:
        """Raise where not every run is finished; with `convergence` also where chains of one are doubtful.

        Raises
        ------
        SweepFailed
            With the exit code that all that failed have, else 5.
        ConvergenceError
            Naming the first run for which `summarize` with `require_convergence` would raise it.
        """
        if any(self.codes):
            raise SweepFailed(self)
        doubtful = [row for row in self.rows if row.get("not_converged")]
        if convergence and doubtful:
            many, first = f"{len(doubtful)} of {len(self.rows)}", doubtful[0]
            raise ConvergenceError(
                [
                    f"{many} runs may not have converged (not_converged in the table); the first is "
                    f"{first['run']}, with an R-hat of up to {float(first.get('rhat_max') or math.nan):.3g}"
                ],
                self,
            )


class SweepFailed(DpmixError):  # noqa: N818 - the base class says Error
    """Some runs of a sweep are not finished; the others are, and the table is written."""

    def __init__(self, result: SweepResult) -> None:
        bad = [row for row in result.rows if row["status"] != "finished"]
        first = bad[0]
        many = f"{len(bad)} of {len(result.rows)} runs are"
        words = f"{many if len(result.rows) > 1 else 'the run is'} not finished"
        super().__init__(f"{words}; {first['run']}: {first['message']}")
        codes = {code for code in result.codes if code}
        self.exit_code = codes.pop() if len(codes) == 1 else 5
        self.result = result


def sweep(
    spec: Source,
    output: PathLike,
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    threads: int = 1,
    force: bool = False,
    quiet: bool = False,
    allow_code: bool = False,
    ledger: PathLike | None = None,
    dataset: str | None = None,
    new_ledger: bool = False,
    yes: bool = False,
) -> SweepResult:
    """Do all runs of a sweep that are not finished, several at once, and gather what came out.

    Every run's spec is checked before any begins. Releases of confidential data are made first, one for all
    runs that privatize the same, each entered in the ledger; runs then see releases alone. A run that fails
    is noted, and costs the others nothing; the same call again goes on with what is not finished.

    Parameters
    ----------
    spec : dict, path or SweepSpec
        The spec of the sweep.
    output : path
        Folder of the sweep; one that a sweep made is gone on with.
    overrides : sequence of str
        ``key=value`` each, of the sweep or of its base spec.
    jobs : int, optional
        Number of processes; default: the cores this one may use, divided by `threads`.
    threads : int
        Threads of each run. Draws do not depend on it.
    force : bool
        Whether to make all runs anew; releases of confidential data stay.
    quiet : bool
        Whether to say nothing but warnings and failures.
    allow_code : bool
        Whether the Python file of a custom model may run.
    ledger, dataset, new_ledger, yes
        As in `dpmix.privatize`; without `yes` no release is made where a warning about one of them asks for
        it.

    Returns
    -------
    SweepResult
        Also where runs failed: `check` raises then.

    Raises
    ------
    SpecError, UsageError, DataError
        When the plan makes no sense, naming run and key; nothing was run then.
    PrivacyError
        When a guarantee cannot be met, or the budget does not cover all releases; nothing was drawn then.
    Interrupted
        On a signal to stop, with the state of all runs saved.
    """
    for name, value in (("--jobs", jobs), ("--threads", threads)):
        if value is not None and whole_of(value, name) < 1:
            raise UsageError(f"{name} {value} must be at least 1")
    settings = (*overrides_of(overrides), *naming_ledger(ledger, dataset))
    ready = prepare(
        spec, output, settings, force=force, advice=_ALL_ANEW, allow_code=allow_code, new_ledger=new_ledger
    )
    ready.folder.open()
    with ready.folder.alone():
        if force:
            for run in ready.plan.runs:
                ready.folder.run(run.name).clear()
        else:
            adopt(ready.folder, ready.identities)
        ready.make_releases(quiet, yes)
        left = [run for run in ready.plan.runs if ready.folder.run(run.name).row() is None]
        orders = [ready.order(run, threads, allow_code) for run in left]
        at_once = jobs or max(1, available_cores() // threads)
        _work(ready, orders, at_once, quiet)
        return _gathered(ready)


def _work(ready: Prepared, orders: Sequence[Mapping[str, Any]], jobs: int, quiet: bool) -> None:
    total = len(ready.plan.runs)
    if len(orders) < total:
        say(f"{total - len(orders)} of {total} runs are finished already", quiet)
    if not orders:
        return
    with stop_on_signals() as stop, show_sweep(total, total - len(orders), quiet) as board:
        pool = Pool(orders, jobs, kept=_compiled)
        pool.start()
        try:
            while pool.working:
                for outcome in pool.ended():
                    _note(ready.folder, outcome)
                    board.ended(outcome)
                board.show(pool.running())
                if stop.asked:
                    pool.stop()
                time.sleep(_PAUSE)
        except BaseException:
            pool.stop()
            raise
        for outcome in pool.ended():
            _note(ready.folder, outcome)
            board.ended(outcome)
        if stop.asked:
            raise Interrupted("interrupted; the state is saved: the same command goes on")


def _compiled() -> int:
    """Return how many compiled functions are kept."""
    from dpmix.api.warmup import kept_code  # late: it imports what fits and summaries need

    return len(kept_code())


def _note(folder: Folder, outcome: Outcome) -> None:
    """Note what failed where the table finds it."""
    if outcome.row is None and outcome.code != 130:
        try:
            folder.run(outcome.name).fail(outcome.message, outcome.code)
        except DataError as error:  # as where the disk is full, which the run met, too
            say(f"warning: run {outcome.name}: {outcome.message}; {error}")


def do_one(
    spec: Source,
    output: PathLike,
    name: str,
    *,
    overrides: Sequence[str] = (),
    threads: int = 1,
    allow_code: bool = False,
) -> Row:
    """Do one run of a sweep, or what is left of it, in this process; what emitted jobs call.

    Returns
    -------
    dict
        Its row of the table.

    Raises
    ------
    DpmixError
        As `sweep`, and when the run fails, which is noted for the table.
    Interrupted
        On a signal to stop, with the state saved.
    """
    from dpmix.api.sweep_run import do_run

    ready = prepare(spec, output, overrides, only=name, allow_code=allow_code)
    ready.folder.open()
    (run,) = ready.plan.runs
    try:
        return do_run(ready.order(run, threads, allow_code))
    except DpmixError as error:
        ready.folder.run(name).fail(str(error).splitlines()[0], error.exit_code)
        raise


def gather(spec: Source, output: PathLike, *, overrides: Sequence[str] = ()) -> SweepResult:
    """Write tables and figures of what is finished, and run nothing.

    Raises SpecError, UsageError and DataError as `sweep`.
    """
    ready = prepare(spec, output, overrides, calibrated=False)
    ready.folder.open()
    adopt(ready.folder, ready.identities)
    return _gathered(ready)


def emit(
    spec: Source,
    output: PathLike,
    kind: str,
    *,
    overrides: Sequence[str] = (),
    threads: int = 1,
    force: bool = False,
    quiet: bool = False,
    allow_code: bool = False,
    ledger: PathLike | None = None,
    dataset: str | None = None,
    new_ledger: bool = False,
    yes: bool = False,
) -> Path:
    """Write a workflow of Snakemake or an array job of Slurm for the runs of a sweep, and run none.

    Releases of confidential data are made here, so that the jobs see releases alone.

    Parameters
    ----------
    spec : path
        The spec of the sweep, which every job reads.
    output : path
        Folder of the sweep, where the file goes.
    kind : str
        ``snakemake`` or ``sbatch``.
    overrides, threads, quiet, allow_code, ledger, dataset, new_ledger, yes
        As `sweep`. Jobs are told the overrides, which must not name confidential data, and no ledger.
    force : bool
        Whether to replace a file of that name, and to clear the folders of runs that were others.

    Returns
    -------
    Path
        The file.

    Raises SpecError, UsageError, DataError and PrivacyError as `sweep`.
    """
    if kind not in KINDS:
        raise UsageError(f"--emit {kind}: unknown; one of {', '.join(KINDS)}")
    if not isinstance(spec, (str, os.PathLike)):
        raise UsageError("--emit: needs the spec of the sweep as a file, which every job reads")
    overrides = overrides_of(overrides)
    settings, advice = (*overrides, *naming_ledger(ledger, dataset)), "--force to make such runs anew"
    ready = prepare(
        spec, output, settings, renew=force, advice=advice, allow_code=allow_code, new_ledger=new_ledger
    )
    ready.check_overrides(overrides)
    from dpmix.api.register import registered_kinds  # late: numba

    strange = sorted({name for own in ready.specs.values() for name in registered_kinds(own)})
    if strange:
        raise UsageError(
            f"--emit: jobs run dpmix by its command, which does not know {', '.join(strange)}, that you "
            "registered; run the sweep from Python, without --emit"
        )
    ready.folder.open()
    with ready.folder.alone():
        runs = {name: ready.folder.reads(name, own) for name, own in ready.specs.items()}
        where, base = Path(os.path.abspath(spec)), load_sweep(spec, overrides).base
        sources = (where, base) if isinstance(base, Path) else (where,)
        what = Emission(runs, where, sources, overrides, ready.folder.path, threads, allow_code)
        path, text = emitted(kind, what)
        if path.exists() and not force:
            raise UsageError(f"{path} exists already; --force replaces it")
        for name in ready.changed:
            ready.folder.run(name).clear()
        adopt(ready.folder, ready.identities)
        ready.make_releases(quiet, yes)
        if kind == "snakemake":
            ready.folder.note_jobs(ready.specs)
        write_bytes(path, text.encode("utf-8"), force=True)
    return path


def plan(
    spec: Source,
    output: PathLike,
    *,
    overrides: Sequence[str] = (),
    force: bool = False,
    allow_code: bool = False,
    ledger: PathLike | None = None,
    dataset: str | None = None,
    new_ledger: bool = False,
    yes: bool = False,
) -> str:
    """Say which runs there are, which of them are finished, and what would be released, and do nothing.

    With `force` no run counts as finished, as `sweep` would make all anew.

    Raises SpecError, UsageError, DataError and PrivacyError as `sweep`.
    """
    settings = (*overrides_of(overrides), *naming_ledger(ledger, dataset))
    ready = prepare(
        spec, output, settings, force=force, advice=_ALL_ANEW, allow_code=allow_code, new_ledger=new_ledger
    )
    ready.heed(yes, aloud=True)
    renamed = {} if force else elsewhere(ready.folder, ready.identities)
    lines = []
    width = max(len(run.name) for run in ready.plan.runs)
    for run in ready.plan.runs:
        own = renamed.get(run.name, ready.folder.run(run.name))
        if force:
            state = "to do anew" if own.begun or own.result.exists() else "to do"
        else:
            state = "finished" if own.row() is not None else "begun" if own.begun else "to do"
        lines.append(f"{run.name.ljust(width)}  {state}")
    done = sum(line.endswith("  finished") for line in lines)
    lines.append(f"would do {len(lines) - done} of {len(lines)} runs in {ready.folder.path}")
    return "\n".join([*lines, *ready.release_plan()])


# What is checked before any run begins, and the releases of confidential data that a sweep makes


@dataclass(frozen=True)
class Prepared:
    """A sweep whose runs are checked.

    Parameters
    ----------
    plan : Plan
        Its runs, or the one that is to be done.
    specs : mapping of str to RunSpec
        Their specs by name.
    folder : Folder
    identities : mapping of str to mapping
        What each is, by name.
    force : bool
        Whether finished runs are done anew.
    changed : tuple of str
        Runs whose folders hold others, where that is allowed.
    new_ledger : bool
        Whether releases start the ledger.
    """

    plan: Plan
    specs: Mapping[str, RunSpec]
    folder: Folder
    identities: Mapping[str, Mapping[str, Any]]
    force: bool = False
    changed: tuple[str, ...] = ()
    new_ledger: bool = False

    def order(self, run: Planned, threads: int, allow_code: bool) -> dict[str, Any]:
        """Return what a process is told of a run, for JSON."""
        from dpmix.api.register import registered_modules  # late: numba

        return {
            "name": run.name,
            "label": run.label,
            "seed": run.seed,
            "contents": run.contents,
            "base": str(run.folder),
            "keys": list(self.plan.keys),
            "folder": str(self.folder.path),
            "threads": threads,
            "keep_chains": self.plan.keep_chains,
            "allow_code": truth_of(allow_code, "allow_code"),
            "registered": registered_modules(),
        }

    def make_releases(self, quiet: bool, yes: bool = False) -> None:
        """Make the releases of confidential data that are not there yet.

        Raises
        ------
        DataError, PrivacyError
            When one cannot be made or entered; before the first, when a warning asks for `yes` of any.
        """
        self.heed(yes)  # in silence: each release says it itself
        new, name = self.new_ledger, None
        for path, spec, _ in self._releases():
            if name is None:  # the first release may be entered without a name, and the others be, too
                name = self._spending(spec).name()
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise DataError(f"cannot write {path.parent}: {reason(error)}") from error
            privatize(spec, path, quiet=quiet, yes=yes, dataset=name, new_ledger=new)
            new = False
        if self._needs_no_ledger:
            say(_NOTHING, quiet)

    def heed(self, yes: bool, *, aloud: bool = False) -> None:
        """Look before the first release at what would stop any of them; say what they ask for, where wanted.

        Each is entered in a copy of the ledger, after those before it: a sweep whose second release is of
        another table, or of damaged data, or exceeds the budget, makes no first one.

        Raises
        ------
        PrivacyError, DataError, UsageError
            When a warning asks for `yes`, and as `privatize` before it draws; naming the file of the release.
        """
        book, name = None, None
        for path, spec, _ in self._releases():
            try:
                with contextlib.redirect_stderr(sys.stderr if aloud else io.StringIO()):
                    steps(spec, Entering(self.new_ledger, False, yes))
                if book is None or name is None:
                    spending = self._spending(spec)
                    book, name = spending.draft(), spending.name()
                named = load_spec(spec, naming_ledger(dataset=name))
                data = load_data(named)
                mechanism = mechanism_of(named, len(data.columns), len(data.values))
                mechanism.check(data.values)
                guarantee, marks = of_part(named, mechanism.guarantee), marks_of(named, data)
                self._spending(named, yes).enter(book, mechanism.describe(), data.columns, guarantee, marks)
            except (PrivacyError, DataError, UsageError) as error:
                raise type(error)(f"{path}: {error}") from None

    def check_overrides(self, overrides: Sequence[str]) -> None:
        """Check that what is set for all jobs, which others may read, does not name confidential data.

        Raises
        ------
        UsageError
            Naming the key, not its value.
        """
        sections = [self.specs[run.name].data for run in self.plan.runs if run.confidential]
        files = {path.name for data in sections if data is not None for path in data.files}
        for override in overrides:
            if any(name in override for name in files):
                raise UsageError(
                    f"--set {override.split('=')[0]}: stands in the jobs, which do not tell where "
                    "confidential data are; put it in the spec"
                )

    @property
    def _needs_no_ledger(self) -> bool:
        """Whether a ledger is named, and nothing is ever entered."""
        return not any(run.confidential for run in self.plan.runs) and any(
            spec.privacy is not None for spec in self.specs.values()
        )

    def release_plan(self) -> list[str]:
        """Say what would be released of confidential data, and what that would leave of the budget."""
        lines = []
        account = None
        for path, spec, mechanism in self._releases():
            spending = self._spending(spec)
            account = (account or spending.foresee()).allow(of_part(spec, mechanism.guarantee), spending.part)
            columns = (None if spec.data is None else spec.data.columns) or ("value",)
            lines.append(f"would release {mechanism.in_words(columns)} as {path}")
        if self._needs_no_ledger:
            lines.append(_NOTHING)
        return lines if account is None else [*lines, f"would leave {account.in_words()}"]

    def check_budget(self) -> None:
        """Check that the ledger's budget covers all releases that are still to be made, together.

        Raises
        ------
        PrivacyError
            When it does not, or there is none.
        DataError
            When the ledger is damaged.
        """
        account = None
        for _, spec, mechanism in self._releases():
            spending = self._spending(spec)
            if account is None:
                account = spending.foresee()
                if account.budget is None:
                    raise PrivacyError(
                        "privacy.budget: missing; a sweep over confidential data spends once for every "
                        "release, so say what they may cost together"
                    )
            account = account.allow(of_part(spec, mechanism.guarantee), spending.part)

    def _spending(self, spec: RunSpec, yes: bool = False) -> Spending:
        spending = spending_of(spec, entering=Entering(new=self.new_ledger, yes=yes))
        assert spending is not None  # a plan of confidential data has a ledger
        return spending

    def _releases(self) -> Iterator[tuple[Path, RunSpec, Mechanism]]:
        """Give each release of confidential data that a run to be done needs, and that is not there yet."""
        seen = set()
        for run in self.plan.runs:
            spec = self.specs[run.name]
            if spec.data is None or spec.data.simulate is not None:
                continue
            path = self.folder.release_of(spec)
            if path not in seen and _lacks(self.folder, run, path, self.force):
                seen.add(path)
                with naming(run.name):
                    mechanism = mechanism_of(spec)
                yield path, spec, mechanism


def prepare(
    source: Source,
    output: PathLike,
    overrides: Sequence[str] = (),
    *,
    only: str | None = None,
    force: bool = False,
    renew: bool = False,
    advice: str = "",
    allow_code: bool = False,
    calibrated: bool = True,
    new_ledger: bool = False,
) -> Prepared:
    """Make the plan of a sweep, and check all that can be checked before a run begins.

    Parameters
    ----------
    source : mapping, path or SweepSpec
    output : path
        The folder.
    overrides : sequence of str
        ``key=value`` each.
    only : str, optional
        The one run to look at.
    force : bool
        Whether all runs are done anew, so that the folder may hold others under the same names.
    renew : bool
        Whether it may, and such runs are done anew.
    advice : str
        What to do where it may not.
    allow_code : bool
        Whether custom models may run.
    calibrated : bool
        Whether mechanisms are calibrated and the budget is looked at, as a run needs.
    new_ledger : bool
        Whether releases of confidential data start the ledger.

    Raises
    ------
    SpecError, UsageError, DataError, PrivacyError
        Naming run and key.
    """
    where = file_of(output, "output", "folder")
    plan = make_plan(load_sweep(source, overrides))
    if only is not None:
        plan = replace(plan, runs=(plan.run(only),))
    folder = Folder(where)
    folder.check()
    specs: dict[str, RunSpec] = {}
    identities: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    changed: list[str] = []
    met: set[str] = set()
    for run in plan.runs:
        spec = specs[run.name] = run.spec(spends=False)
        spends = run.confidential and calibrated and only is None
        spends = spends and _lacks(folder, run, folder.release_of(spec), force)
        with naming(run.name):
            if spends:
                check_ledger(spec)
            _check_files(spec, confidential=spends)
            if isinstance(spec.model, CustomModel) and calibrated and not allow_code:
                raise UsageError(
                    "model.file: a custom model runs its Python file; read it, and give --allow-code"
                )
            if calibrated:
                _check_mechanism(spec, met)
        identity = identities[run.name] = identity_of(spec)
        same = names.setdefault(json.dumps(identity, sort_keys=True), run.name)
        if same != run.name:
            raise SpecError(f"list: {run.name} is the same run as {same}; take one of them out")
        if not force:
            try:
                folder.run(run.name).check(identity, advice)
            except SpecError:
                if not renew:
                    raise
                changed.append(run.name)
    ready = Prepared(plan, specs, folder, identities, force, tuple(changed), new_ledger)
    if calibrated and only is None:
        ready.check_budget()
    return ready


def _lacks(folder: Folder, run: Planned, release: Path, force: bool) -> bool:
    """Whether a run is still to be done, and its release is not there."""
    return not release.exists() and (force or folder.run(run.name).row() is None)


def _check_files(spec: RunSpec, *, confidential: bool) -> None:
    """Check that files are there: confidential ones where they are to be released, which runs do not read."""
    data = spec.data if confidential else None
    paths = [] if data is None else [("data.path", path) for path in data.paths]
    if spec.release is not None and spec.release.path is not None:
        paths += [("release.path", path) for path in spec.release.files]
    for key, path in paths:
        if is_stream(path):
            raise SpecError(f"{key}: - is read once, and a sweep makes several releases; name a file")
        if not path.is_file():
            raise DataError(f"{key}: {path}: {'not a file' if path.exists() else 'no such file'}")


def _check_mechanism(spec: RunSpec, met: set[str]) -> None:
    """Calibrate the mechanism for simulated data, once for all runs that have it."""
    if spec.data is None or spec.data.simulate is None or spec.mechanism is None:
        return
    contents = spec.to_dict()
    data = {key: value for key, value in contents["data"].items() if key != "seed"}
    said = json.dumps([data, contents["mechanism"]], sort_keys=True)
    if said not in met and spec.mechanism.protects:
        met.add(said)
        mechanism_of(spec)


# What came out of all runs


def _gathered(ready: Prepared) -> SweepResult:
    rows: list[Row] = []
    codes = []
    labelled = any(run.label for run in ready.plan.runs)
    for run in ready.plan.runs:
        own = ready.folder.run(run.name)
        found, failure = own.row(), own.failure()
        row: Row = {"run": run.name} | ({"name": run.label} if labelled else {})
        row |= run.values(ready.plan.keys) | {"seed": run.seed}
        if found is not None:
            row |= {"status": "finished", "message": ""} | _results(found)
            row["seed"] = found["seed"]
            codes.append(0)
        elif failure is not None:
            row |= {"status": "failed", "message": failure["message"]}
            codes.append(int(failure["code"]))
        else:
            row |= {"status": "missing", "message": "has not been run to its end"}
            codes.append(5)
        rows.append(row)
    written = [ready.folder.path / "table.csv", ready.folder.path / "table.h5"]
    write_csv(written[0], rows)
    attrs = {
        "dpmix_version": __version__,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "varied": json.dumps(list(ready.plan.varied)),
    }
    write_hdf5(written[1], rows, attrs)
    fine = [row for row in rows if row["status"] == "finished"]
    empty = sum("hellinger" in row and row["hellinger"] is None for row in fine)
    if empty:
        words = f"hellinger, ise, band_coverage are empty for {empty} of {len(rows)} runs: their summary.grid"
        say(f"warning: {words} is too narrow or too coarse for the true density")
    _say_more(ready, len(rows))
    drawn: list[Path] = []
    if fine:
        from dpmix.sweeping.figures import draw_figures, left_out  # late: matplotlib takes its time

        for words in left_out(fine, ready.plan.varied):
            say(f"note: {words}")
        drawn = draw_figures(fine, ready.plan.varied, ready.folder.path)
    for stem, kind in itertools.product(("error", "acceptance", "ess"), ("svg", "png")):
        path = ready.folder.path / f"{stem}.{kind}"
        if path not in drawn:  # of what was there before
            path.unlink(missing_ok=True)
    written += drawn
    return SweepResult(tuple(rows), ready.folder.path, tuple(written), ready.plan.varied, tuple(codes))


def _results(found: Row) -> Row:
    """Return the results in a row, without the settings of the sweep that the run was done for."""
    settings = RunSpec.model_fields
    return {
        key: value
        for key, value in found.items()
        if key not in ("run", "name") and key.split(".")[0] not in settings
    }


def _say_more(ready: Prepared, total: int) -> None:
    """Say what runs said, and which are of no run of the sweep."""
    notes = {run.name: ready.folder.run(run.name).note() for run in ready.plan.runs}
    said = {name: note for name, note in notes.items() if note}
    runs = ready.folder.path / "runs"
    if said:
        name, note = next(iter(said.items()))
        words = f"{len(said)} of {total} runs had something to say; {name}: {note.removeprefix('dpmix: ')}"
        say(f"note: {words} ({runs}/{name}/log.txt)")
    others = of_no_run(ready.folder, notes)
    if others:
        what = "1 finished run" if others == 1 else f"{others} finished runs"
        say(f"note: {runs} holds {what} that this sweep does not have")
