"""The folder of a sweep: one folder a run, the releases of confidential data, and what was made of all.

Everything appears complete or not at all. A run is finished when its ``result.json`` is there; what it needs
to go on after it was killed is the workspace of its fit, beside the chains.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dpmix._version import __version__
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.models.custom.section import CustomModel
from dpmix.release.release_file import beside
from dpmix.run.chains_reader import first_difference
from dpmix.run.workspace import workspace_of
from dpmix.spec import RunSpec
from dpmix.spec.run_spec import of_analyst
from dpmix.store.atomic import reason, write_bytes

# Runs that stand under another name: names tell what varies, and a sweep may come to vary something else.

Identities = Mapping[str, Mapping[str, Any]]


def elsewhere(folder: Folder, identities: Identities) -> dict[str, RunFolder]:
    """Return the folders under other names of runs that have no work under their own.

    `identities` is what each run of the sweep is, by name, as `identity_of` says.
    """
    wanted = {_said(what): name for name, what in identities.items() if not folder.run(name).has_work}
    found: dict[str, RunFolder] = {}
    for other in _others(folder, identities) if wanted else ():
        try:
            what = other.identity()
        except DataError:
            continue
        name = None if what is None else wanted.get(_said(what))
        if name is not None:
            found.setdefault(name, other)
    return found


def adopt(folder: Folder, identities: Identities) -> None:
    """Give runs that stand under other names their own.

    Raises
    ------
    DataError
        When that cannot be done.
    UsageError
        When another process works on one of them.
    """
    for name, other in elsewhere(folder, identities).items():
        with other.alone():
            other.move(folder.run(name).path)


def of_no_run(folder: Folder, names: Mapping[str, Any]) -> int:
    """Return how many finished runs the folder holds that are none of the sweep's."""
    return sum(other.result.exists() for other in _others(folder, names))


def _others(folder: Folder, names: Mapping[str, Any]) -> Iterator[RunFolder]:
    runs: Path = folder.path / "runs"
    for path in sorted(runs.iterdir()) if runs.is_dir() else ():
        if path.name not in names and RunFolder(path).has_work:
            yield RunFolder(path)


def _said(identity: Mapping[str, Any]) -> str:
    return json.dumps(identity, sort_keys=True)


MARK = "sweep.json"
_LARGEST = sys.float_info.max
PATIENCE = 60.0  # seconds for a run that is stopping to save its state


def identity_of(spec: RunSpec) -> dict[str, Any]:
    """Say what a run is, without confidential data; runs that say the same have the same result.

    Of what it reads it holds a digest: of files of the analyst's side their contents, of confidential data
    the name of their release, which is there before the release itself is.

    Raises
    ------
    DataError
        When a file cannot be read.
    """
    resolved = spec.to_dict()
    contents = of_analyst(resolved) | {key: resolved[key] for key in ("release",) if key in resolved}
    reads = {key: _digest(path) for key, path in _public_files(spec)}
    if spec.data is not None and spec.data.simulate is None:
        del contents["data"]
        reads["data"] = _name_of_release(spec)
    return {"dpmix_version": __version__, "spec": json.loads(json.dumps(contents)), "reads": reads}


def _public_files(spec: RunSpec) -> Iterator[tuple[str, Path]]:
    """Give the files that a fit reads, but for confidential ones, and the keys that name them."""
    files = () if spec.release is None else spec.release.files
    for number, path in enumerate(files):
        yield "release" if number == 0 else f"release {number + 1}", path
        if len(files) == 1 and beside(path).exists():
            yield "account", beside(path)
    if isinstance(spec.model, CustomModel):
        yield "model", spec.model.file


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; one that has not changed since it was read is not read again."""
    try:
        found = path.stat()
        return _digest_of(path, found.st_mtime_ns, found.st_size, found.st_ino)
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}") from error


@functools.lru_cache(maxsize=256)
def _digest_of(path: Path, *_version: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _name_of_release(spec: RunSpec) -> str:
    """Return the name of the release of confidential data: one for all runs that privatize the same."""
    own = spec.to_dict()
    said = json.dumps([own.get(section) for section in ("data", "mechanism")], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


_READ: Final = {
    "data": "data: {} holds a run of another release of confidential data",
    "release": "release.path: {} holds a run of other values than the file has now",
    "account": "release.path: {} holds a run of values with another account beside them",
    "model": "model.file: {} holds a run of other code than the file has now",
}


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.release = path / "release.h5"
        self.chains = path / "chains.h5"
        self.summary = path / "summary.h5"
        self.result = path / "result.json"
        self.log = path / "log.txt"
        self._failure = path / "failed.json"

    def failure(self) -> dict[str, Any] | None:
        """Return the `message` and exit `code` of a run that failed, else None.

        Raises
        ------
        DataError
            When the note is damaged.
        """
        found = _read_json(self._failure)
        if found is None:
            return None
        message, code = found.get("message"), found.get("code")
        if not isinstance(message, str) or type(code) is not int or not 0 < code < 256:
            raise _damaged(self._failure)
        return {"message": message, "code": code}

    def fail(self, message: str, code: int) -> None:
        """Note that the run failed, until it is begun again."""
        with contextlib.suppress(OSError):
            self.path.mkdir(parents=True, exist_ok=True)
        write_bytes(self._failure, json.dumps({"message": message, "code": code}).encode(), force=True)

    def row(self) -> dict[str, Any] | None:
        """Return the result of a finished run, else None.

        Raises
        ------
        DataError
            When it is damaged.
        """
        found = _read_json(self.result)
        if found is None:
            return None
        if found.get("run") != self.path.name or type(found.get("seed")) is not int:
            raise _damaged(self.result)
        if not all(_is_cell(key, value) for key, value in found.items()):
            raise _damaged(self.result)
        return dict(found)

    @property
    def begun(self) -> bool:
        """Whether there is work that a fit can go on with."""
        return workspace_of(self.chains).exists() or self.chains.exists()

    @property
    def has_work(self) -> bool:
        """Whether there is anything that would be taken for that of another run."""
        return self.begun or self.release.exists() or self.result.exists()

    def identity(self) -> dict[str, Any] | None:
        """Return what was said of the run when it was begun, as `identity_of` did, if there is work of it.

        Raises
        ------
        DataError
            When that is damaged.
        """
        return _read_json(self.path / "run.json") if self.has_work else None

    def check(self, identity: Mapping[str, Any], advice: str = "") -> None:
        """Refuse what is there of another run, naming the difference, with `advice` on what else to do.

        Raises
        ------
        SpecError
            When there is such.
        DataError
            When it is damaged.
        """
        found = self.identity()
        difference = None if found is None else first_difference(found, dict(identity))
        if difference is not None:
            key, old, new = difference
            what = key.removeprefix("reads.")
            if what != key and what in _READ:
                said = _READ[what].format(self.path)
            else:
                said = f"{key.removeprefix('spec.')}: {self.path} holds a run that has {old}, not {new}"
            raise SpecError(f"{said}; give another folder, or {advice or f'remove {self.path}'}")

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Make the folder, and note what is run there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {reason(error)}") from error
        self.check(identity)
        text = json.dumps(identity, indent=1)
        write_bytes(self.path / "run.json", text.encode(), force=True)
        self._failure.unlink(missing_ok=True)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from the run while the block runs, after waiting for one that is stopping.

        Raises
        ------
        UsageError
            When another process works on it.
        """
        with _locked(self.path / "lock", PATIENCE) as ours:
            if not ours:
                raise UsageError(f"another process is working on {self.path}")
            for leftover in self.path.glob(".*.partial"):  # of a process that was killed
                leftover.unlink(missing_ok=True)
            yield

    def note(self) -> str | None:
        """Return the first line of what was said while the run was done, if anything."""
        try:
            with self.log.open(encoding="utf-8", errors="replace") as file:
                return file.readline(1000).strip() or None
        except OSError:
            return None

    def move(self, to: Path) -> None:
        """Give the run another name, with its result, in place of a folder that holds no work.

        Raises
        ------
        DataError
            When that cannot be done, or the result is damaged.
        """
        try:
            row = self.row()
        except DataError:
            row = _read_json(self.result)
            if row is None or row.get("run") != to.name:  # as where this was broken off
                raise
        if row is not None:
            write_bytes(self.result, json.dumps(row | {"run": to.name}, indent=1).encode(), force=True)
        try:
            if to.exists():
                shutil.rmtree(to)
            self.path.rename(to)
        except OSError as error:
            raise DataError(f"cannot rename {self.path} to {to}: {reason(error)}") from error

    def drop_chains(self) -> None:
        """Remove chains, and the release that they are of."""
        for path in (self.chains, self.release):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.path, ignore_errors=True)


class Folder:
    """The folder of a sweep."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if str(path) == "-":
            raise UsageError("- is no folder; name one for the runs of the sweep")
        self.path = Path(os.path.abspath(path))

    def open(self) -> None:
        """Make it, or take one that a sweep made.

        Raises
        ------
        UsageError
            When it holds something else.
        DataError
            When it cannot be made or written.
        """
        self.check()
        try:
            (self.path / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {reason(error)}") from error
        if not (self.path / MARK).exists():
            mark = json.dumps({"kind": "dpmix sweep", "dpmix_version": __version__})
            write_bytes(self.path / MARK, mark.encode(), force=True)

    def check(self) -> None:
        """Say before any work whether it can be the folder of a sweep.

        Raises UsageError and DataError as `open`.
        """
        if not self.path.exists():
            if not self.path.parent.is_dir():
                raise DataError(f"cannot make {self.path}: the directory {self.path.parent} does not exist")
            return
        if not self.path.is_dir():
            raise DataError(f"{self.path} is a file; name a folder for the runs of the sweep")
        if not (self.path / MARK).exists() and any(self.path.iterdir()):
            raise UsageError(f"{self.path} holds other files than those of a sweep; name another folder")

    def run(self, name: str) -> RunFolder:
        """Return the folder of a run."""
        return RunFolder(self.path / "runs" / name)

    def reads(self, name: str, spec: RunSpec) -> list[Path]:
        """Return the files that a run depends on: what it is, and what its fit reads."""
        found = [self._job(name), *(path for _, path in _public_files(spec))]
        return found if spec.data is None or spec.simulated else [*found, self.release_of(spec)]

    def note_jobs(self, specs: Mapping[str, RunSpec]) -> None:
        """Write what each run is to a file of its own, which is left alone where it says that already.

        Raises
        ------
        DataError
            When one cannot be written.
        """
        for name, spec in specs.items():
            path, text = self._job(name), json.dumps(identity_of(spec), indent=1).encode()
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists() and path.read_bytes() == text:
                    continue
            except OSError as error:
                raise DataError(f"cannot write {path}: {reason(error)}") from error
            write_bytes(path, text, force=True)

    def _job(self, name: str) -> Path:
        return self.path / "jobs" / f"{name}.json"

    def release_of(self, spec: RunSpec) -> Path:
        """Return the file of the release of confidential data: one for all runs that privatize the same."""
        return self.path / "releases" / f"{_name_of_release(spec)}.h5"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other sweeps from the folder while the block runs.

        Raises
        ------
        UsageError
            When there is one.
        """
        with _locked(self.path / "lock", 0.0) as ours:
            if not ours:
                raise UsageError(f"another dpmix sweep is working in {self.path}")
            yield


@contextlib.contextmanager
def _locked(path: Path, patience: float) -> Iterator[bool]:
    """Lock a file, and give whether that could be done in time."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise DataError(f"cannot write {path}: {reason(error)}") from error
    try:
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    yield False
                    return
                time.sleep(0.2)
            else:
                yield True
                return
    finally:
        os.close(handle)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _damaged(path) from error
    if not isinstance(found, dict):
        raise _damaged(path)
    return dict(found)


def _damaged(path: Path) -> DataError:
    return DataError(f"{path} is damaged; remove its folder to run it again")


def _is_cell(key: str, value: Any) -> bool:
    """Whether a value can stand in a column of the table: text in those of names and keys of specs alone."""
    if isinstance(value, str):
        return key in ("run", "name") or key.split(".")[0] in RunSpec.model_fields
    return value is None or (isinstance(value, (int, float)) and -_LARGEST <= value <= _LARGEST)
