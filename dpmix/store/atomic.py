"""Files that appear complete or not at all: checks before the work, atomic renames after it."""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpmix.errors import DataError, UsageError, truth_of

HDF5 = (".h5", ".hdf5", ".nc")
"""How names of HDF5 files end."""
PAGE = (".html", ".htm")
"""How names of HTML pages end."""
_OTHER_FORMATS = (
    *(".csv", ".csv.gz", ".gz", ".json", *PAGE, ".npy", ".parquet", ".txt", ".yaml", ".yml"),
    *(".pdf", ".png", ".svg"),
)
_LEDGER = b'{"format": "dpmix ledger"'
"""How `dpmix.privacy.ledger.Book.to_text` begins."""


@contextlib.contextmanager
def replacing(path: str | Path, *, force: bool = False, ledger: bool = False) -> Iterator[Path]:
    """Give a temporary name in the directory of `path`; at the end of the block what is there becomes `path`.

    When the block raises, the temporary file is removed and `path` is as before. `ledger` is that of
    `check_output`.

    Raises UsageError and DataError as `publish`.
    """
    final = check_output(path, force=force, ledger=ledger)
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(6)}.partial")
    try:
        yield temporary
        publish(temporary, final, force=force, ledger=ledger)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def claimed(path: str | Path | None) -> Iterator[None]:
    """Keep other processes that claim `path` from it while the block runs; None is nobody's.

    What makes an output at a cost claims it before the cost: of several that were started at once one pays.
    A process that is killed gives its claim back; the empty file that it leaves keeps nobody away.

    Raises
    ------
    UsageError
        When another process holds it.
    DataError
        When it cannot be claimed.
    """
    if path is None:
        yield
        return
    final = Path(os.path.realpath(path))
    claim = final.with_name(f".{final.name}.claim.partial")
    handle = _claim(claim, path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # as in a folder that was made read-only meanwhile
            claim.unlink()  # before it is given back, so that it is not taken from another
        os.close(handle)


def _claim(claim: Path, path: str | Path) -> int:
    """Return the handle of a locked file."""
    try:
        return lock_now(claim, 0o600)
    except BlockingIOError:
        busy = f"another process is writing {path}; give another name, or wait for it"
        raise UsageError(f"{busy}; nothing was drawn or spent") from None
    except OSError as error:
        raise DataError(f"cannot write {path}: {reason(error)}") from error


def lock_now(lock: Path, mode: int) -> int:
    """Return the handle of a file that is locked by this process, made with a mode where it is not there.

    Raises
    ------
    BlockingIOError
        When another process holds it.
    OSError
        When it cannot be made or locked.
    """
    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, mode)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                return handle
        except FileNotFoundError:
            pass  # somebody removed it between our two steps
        except OSError:
            os.close(handle)
            raise
        os.close(handle)


def write_bytes(path: str | Path, data: bytes, *, force: bool = False) -> None:
    """Write a small file (a report, a table) through `replacing`.

    Raises UsageError and DataError as `publish`.
    """
    with replacing(path, force=force) as temporary:
        fill(temporary, data, path)


def fill(temporary: Path, data: bytes, path: str | Path) -> None:
    """Write what is to become `path` to a temporary file, and bring it to the disk.

    Raises
    ------
    DataError
        When the file system refuses.
    """
    try:
        temporary.write_bytes(data)
        fsync(temporary)
    except OSError as error:
        raise DataError(f"cannot write {path}: {reason(error)}") from error


def publish(work_path: str | Path, path: str | Path, *, force: bool = False, ledger: bool = False) -> None:
    """Bring a closed work file to the disk and give it its final name (same directory) in one step.

    Raises
    ------
    UsageError
        When `path` exists and `force` is not given.
    DataError
        When the file system refuses.
    """
    source, final = Path(work_path), check_output(path, force=force, ledger=ledger)
    try:
        fsync(source)
        if force:
            os.replace(source, final)
        else:
            _rename_new(source, final)
        if os.name == "posix":
            fsync(final.parent)
    except FileExistsError as error:
        raise UsageError(_exists(final)) from error
    except OSError as error:
        raise DataError(f"cannot write {path}: {reason(error)}") from error


def check_output(path: str | Path, *, force: bool = False, ledger: bool = False) -> Path:
    """Say before any work is done whether `path` may be written; return it with symbolic links resolved.

    A ledger of releases is not replaced, whatever `force` says, but by itself with new entries (`ledger`).

    Raises
    ------
    UsageError
        When `path` exists and `force` is not given, is a ledger, or is - for standard output.
    DataError
        When `path` is a directory or a device, or its directory does not exist or may not be written.
    """
    if str(path) == "-":
        raise UsageError("- is no file to write, and nothing is written to standard output; name one")
    final = Path(os.path.realpath(path))
    if final.is_dir():
        raise DataError(f"cannot write {path}: it is a directory")
    if final.exists() and not final.is_file():
        raise DataError(f"cannot write {path}: it is no ordinary file, and would be replaced")
    if not final.parent.is_dir():
        raise DataError(f"cannot write {path}: the directory {final.parent} does not exist")
    if not os.access(final.parent, os.W_OK | os.X_OK):
        raise DataError(f"cannot write {path}: {os.strerror(13)}")
    if final.exists() and not truth_of(force, "force"):
        raise UsageError(_exists(Path(path)))
    if not ledger and _is_ledger(final):
        raise UsageError(f"{path} is a ledger of releases, which nothing replaces; give another name")
    return final


def check_suffix(path: str | os.PathLike[str], what: str, *, strict: bool = False) -> None:
    """Say before any work is done that a name promises another format than HDF5.

    `what` is to be written there, such as "a release"; where it is `strict` the name must end as those of
    HDF5 files do.

    Raises
    ------
    UsageError
        Naming the suffixes that do.
    """
    name = os.path.basename(path).lower()
    if name.endswith(HDF5) or name == "-":  # which `check_output` refuses
        return
    if strict or name.endswith(_OTHER_FORMATS):
        raise UsageError(f"{path}: {what} is an HDF5 file; give it a name that ends in {' or '.join(HDF5)}")


def check_page(path: str | os.PathLike[str]) -> None:
    """Say before any work is done that a name promises another format than a page has.

    Raises
    ------
    UsageError
        Naming the suffixes that do.
    """
    name = os.path.basename(path).lower()
    if name.endswith((*HDF5, *_OTHER_FORMATS)) and not name.endswith(PAGE):
        raise UsageError(f"{path}: a report is an HTML page; give it a name that ends in {' or '.join(PAGE)}")


def _is_ledger(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_LEDGER)) == _LEDGER
    except OSError:
        return False


def fsync(path: Path) -> None:
    """Bring a file or a directory's entries to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def reason(error: BaseException) -> str:
    """Return the operating system's or the library's reason for a failure, in one line."""
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return os.strerror(error.errno) if error.errno else error.strerror
    return str(error).strip("'\"").splitlines()[0] if str(error) else type(error).__name__


def _rename_new(source: Path, final: Path) -> None:
    """Rename without ever replacing: a hard link fails where the name is taken."""
    try:
        os.link(source, final)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: check_output has looked just before
        os.replace(source, final)
    else:
        source.unlink()


def _exists(path: Path) -> str:
    return f"{path} exists already; give another name, or --force to overwrite it"


# Files that are copies of each other, whatever they are called: what they hold would count twice

_START = 1 << 16  # bytes that tell most files of one size apart


def check_copies(paths: Sequence[Path]) -> None:
    """Refuse files of which one has the bytes of another; those that are no files are left to who reads them.

    Files of different sizes are not opened, and of others no more is read than tells them apart.

    Raises
    ------
    DataError
        Naming both, and for a file that cannot be read.
    """
    sizes: dict[int, list[Path]] = {}
    for path in paths if len(paths) > 1 else ():
        if path.is_file():
            sizes.setdefault(path.stat().st_size, []).append(path)
    alike: dict[tuple[int, bytes], list[Path]] = {}
    for size, several in sizes.items():
        for path in several if size and len(several) > 1 else ():
            try:
                with path.open("rb") as file:
                    before = alike.setdefault((size, file.read(_START)), [])
                twin = next((other for other in before if filecmp.cmp(path, other, shallow=False)), None)
            except OSError as error:
                raise DataError(f"cannot read {path}: {reason(error)}") from error
            if twin is not None:
                raise DataError(
                    f"{path} is a copy of {twin}, and its records would count twice; name one of them, or "
                    "join the files where they hold other records"
                )
            before.append(path)
