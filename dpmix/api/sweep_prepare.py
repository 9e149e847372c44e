"""What is checked of a sweep before any run begins, and the releases of confidential data that it makes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmix.api.arguments import file_of
from dpmix.api.calibrate import mechanism_of
from dpmix.api.confidential import marks_of, of_part
from dpmix.api.privatize import privatize, steps
from dpmix.api.spending import Entering, Spending, spending_of
from dpmix.data.loading import load_data
from dpmix.errors import DataError, DpmixError, PrivacyError, SpecError, UsageError, say, truth_of
from dpmix.models.custom.section import CustomModel
from dpmix.spec import RunSpec, load_spec
from dpmix.spec.load import naming_ledger
from dpmix.spec.sweep_spec import SweepSpec, load_sweep
from dpmix.spec.table_source import is_stream
from dpmix.store.atomic import reason
from dpmix.sweeping.folder import Folder, identity_of
from dpmix.sweeping.plan import Plan, Planned, check_ledger, make_plan

if TYPE_CHECKING:
    from dpmix.mechanisms.curators.by_kind import Mechanism

_NOTHING = "no run has confidential data: nothing is entered in the ledger"


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
                with _naming(run):
                    mechanism = mechanism_of(spec)
                yield path, spec, mechanism


class _naming:  # noqa: N801 - reads as what it does
    """Put the name of a run before errors of the block."""

    def __init__(self, run: Planned) -> None:
        self._run = run

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, DpmixError):
            raise type(error)(f"run {self._run.name}: {str(error).splitlines()[0]}") from None


def prepare(
    source: Mapping[str, Any] | str | os.PathLike[str] | SweepSpec,
    output: str | os.PathLike[str],
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
        with _naming(run):
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
