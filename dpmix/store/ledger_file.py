"""The ledger's file: one JSON document that appears whole or not at all, written by one process at a time.

Beside `ledger.json` stands `ledger.json.lock`. Whoever adds an entry holds a lock on it (fcntl, so that it is
given back however a process ends), writes the whole document to a temporary file, brings it to the disk, and
renames it. After that the lock file notes how many entries there are, and the digest of the last: a ledger
that is found with fewer, or gone altogether, was put back or removed, and is refused.

A ledger is started only where that is asked for: a path that is mistyped, or a spec that is copied elsewhere,
would else start a fresh one beside a budget that is spent. Only its owner may read it: it holds the key of
the fingerprints (`dpmix.privacy.fingerprint`).
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from dpmix.errors import DataError, PrivacyError, UsageError
from dpmix.privacy.ledger import Book
from dpmix.store.atomic import lock_now, reason, replacing

MAX_BYTES = 64 << 20
PATIENCE = 60.0
"""Seconds that one process waits for others."""
_NOTE = re.compile(rb"\0*|\d{0,12}|\d{12} [0-9a-f]{0,64}\n?")
"""What stands in a lock file: the note of the last entry, one cut short, or nothing yet."""


def ledger_path(path: str | os.PathLike[str]) -> Path:
    """Return where a ledger is, symbolic links resolved, after checking that it may be one.

    Raises
    ------
    DataError
        When the path leads to no file, or to one with two names.
    """
    if str(path) == "-":
        raise DataError("-: is no file, so no ledger")
    final = Path(os.path.realpath(path))
    if os.path.islink(path) and not final.exists():
        raise DataError(f"{path}: is a link that leads nowhere; a ledger is not started behind one")
    if final.is_dir():
        raise DataError(f"{path}: is a directory, not a ledger")
    if not final.parent.is_dir():
        raise DataError(f"{path}: cannot be a ledger: the directory {final.parent} does not exist")
    if final.exists():
        if not final.is_file():
            raise DataError(f"{path}: is no ordinary file, so no ledger")
        if final.stat().st_nlink > 1:
            raise DataError(
                f"{path}: is one file with two names (hard links); entries made under one would not be seen "
                "under the other"
            )
    return final


def lock_of(path: Path) -> Path:
    """Return the lock file of a ledger."""
    return path.with_name(path.name + ".lock")


def check_start(path: str | os.PathLike[str], new: bool) -> None:
    """Check that a ledger is there, or that it is not where a new one is asked for.

    Raises
    ------
    PrivacyError
        When it is not there, and no new one is asked for.
    UsageError
        When it is there, and a new one is asked for.
    """
    if new and os.path.exists(path):
        raise UsageError(f"--new-ledger: {path} is there already; leave that out to enter releases in it")
    if not new and not os.path.lexists(path):
        seal = _seal(lock_of(Path(os.path.realpath(path))))
        known = (
            "" if seal is None else f", though {lock_of(Path(path)).name} beside it counts {seal[0]} entries"
        )
        raise PrivacyError(
            f"{path}: there is no such ledger{known}; correct the path or put it back, or start one by "
            "--new-ledger"
        )


def read_ledger(path: str | os.PathLike[str]) -> Book:
    """Read and check a ledger; one that is not there is empty.

    Raises
    ------
    DataError
        When it is no ledger, damaged, changed, shorter than it was, or cannot be read.
    """
    final = ledger_path(path)
    seal = _seal(lock_of(final))  # before the ledger: it never runs ahead
    return _read(final, path, seal)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a ledger that is there and may not be written.

    Raises
    ------
    DataError
    """
    final = ledger_path(path)
    if final.exists() and not os.access(final, os.W_OK):
        raise DataError(f"{path}: cannot be written: {os.strerror(13)}")


@contextlib.contextmanager
def changing(path: str | os.PathLike[str], new: bool | None = None) -> Iterator[Book]:
    """Give the ledger while nobody else has it; at the end of the block what was added is on the disk.

    When the block raises, the ledger is as before. `new`: whether it is to be started, or there; either where
    left out.

    Raises
    ------
    DataError
        As `read_ledger`, and when it cannot be locked or written.
    PrivacyError, UsageError
        As `check_start`.
    """
    if new is not None:
        check_start(path, new)
    final = ledger_path(path)
    with _locked(lock_of(final), path) as handle:
        final = ledger_path(path)
        if new is not None:
            check_start(path, new)  # somebody may have started one meanwhile
        check_writable(path)
        ours = re.compile(rf"\.{re.escape(final.name)}\.[0-9a-f]{{12}}\.partial")  # not of NAME.2
        for leftover in filter(lambda found: ours.fullmatch(found.name), final.parent.glob(".*.partial")):
            leftover.unlink(missing_ok=True)
        note = os.pread(handle, 200, 0)
        if not _NOTE.fullmatch(note):
            raise DataError(
                f"{path}: cannot be locked by {lock_of(final).name}, which is another file; give the ledger "
                "another name, or remove that file if it was the ledger's and is damaged"
            )
        book = _read(final, path, _sealed(note))
        before = len(book.entries)
        yield book
        if len(book.entries) == before:
            return
        _write(final, path, book.to_text())
        with contextlib.suppress(OSError):  # the entries are safe; the note is one more check
            os.pwrite(handle, f"{len(book.entries):012d} {book.head}\n".encode(), 0)
            os.fsync(handle)


def _write(final: Path, path: str | os.PathLike[str], text: str) -> None:
    data = text.encode()
    if len(data) > MAX_BYTES:
        raise DataError(f"{path}: is full ({MAX_BYTES:,} bytes); go on with a new ledger and less budget")
    with replacing(final, force=True, ledger=True) as temporary:
        try:
            with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(data)
        except OSError as error:
            raise DataError(f"{path}: cannot be written: {reason(error)}") from error


def _read(final: Path, path: str | os.PathLike[str], seal: tuple[int, str] | None) -> Book:
    """Return the entries, none where there is no file yet."""
    try:
        with final.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if seal is not None:
            raise DataError(
                f"{path}: is missing, though {lock_of(final).name} beside it counts {seal[0]} entries; put "
                "it back, or remove that file too to start a new ledger"
            ) from None
        return Book()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {reason(error)}") from error
    if len(data) > MAX_BYTES:
        raise DataError(f"{path}: is larger than {MAX_BYTES:,} bytes, which no ledger is")
    try:
        book = Book.parse(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise DataError(f"{path}: is no ledger: it is not text") from None
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    if seal is not None:
        count, head = seal
        if len(book.entries) < count or book.entries[count - 1]["digest"] != head:
            raise DataError(
                f"{path}: is not the ledger that {lock_of(final).name} beside it knows, which has {count} "
                "entries: an older or another one was put in its place; bring the right one back"
            )
    return book


def _seal(lock: Path) -> tuple[int, str] | None:
    try:
        with lock.open("rb") as file:
            return _sealed(file.read(200))
    except OSError:
        return None


def _sealed(data: bytes) -> tuple[int, str] | None:
    """Return number and digest of the last entry, or None where there is no whole note of them."""
    count, _, head = data.decode("ascii", "replace").rstrip("\n").partition(" ")
    if not (count.isascii() and count.isdigit() and len(head) == 64 and data.endswith(b"\n")):
        return None
    return (int(count), head) if int(count) > 0 else None


@contextlib.contextmanager
def _locked(lock: Path, path: str | os.PathLike[str]) -> Iterator[int]:
    """Hold the lock, and give its handle."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            handle = lock_now(lock, 0o666)
            break
        except BlockingIOError:
            if time.monotonic() > end:
                raise DataError(f"{path}: is held by another process for more than {PATIENCE:g} s") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be locked by {lock.name}: {reason(error)}") from error
        time.sleep(0.01)
    try:
        yield handle
    finally:
        os.close(handle)
