"""Files of synthetic records: CSV with the guarantee beside it, or a release file that holds both."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmix.errors import DataError, UsageError
from dpmix.release.column_units import stated_unit
from dpmix.release.release_file import write_release
from dpmix.spec.days import day_text
from dpmix.store.atomic import check_output, fill, replacing

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release

__all__ = ["account", "beside", "check_synthetic_output", "read_account", "write_synthetic"]

SUFFIXES = (".csv", ".csv.gz", ".h5")


def beside(path: str | Path) -> Path:
    """Return the file with the guarantee of a CSV file of synthetic records, ``<path>.json``."""
    return Path(f"{path}.json")


def check_synthetic_output(path: str | Path, *, force: bool = False) -> Path:
    """Say before any work whether synthetic records may be written; return the resolved path.

    Raises
    ------
    UsageError
        When the suffix is none of csv, csv.gz and h5, or a file exists and `force` is not given.
    DataError
        When its directory does not exist.
    """
    name = str(path).lower()
    if not name.endswith(SUFFIXES):
        raise UsageError(f"{path}: synthetic records are written as {', '.join(SUFFIXES)}; choose one")
    if not name.endswith(".h5"):
        check_output(beside(path), force=force)
    return check_output(path, force=force)


def write_synthetic(path: str | Path, release: Release, *, force: bool = False) -> None:
    """Write synthetic records with their guarantee, which is there before the records are.

    A csv or csv.gz file has the guarantee in `beside`, an h5 file holds both. Records that are overwritten go
    before their guarantee does: none ever stand beside another one's.

    Raises
    ------
    UsageError, DataError
        As `check_synthetic_output`, and when a file cannot be written.
    """
    check_synthetic_output(path, force=force)
    if str(path).lower().endswith(".h5"):
        write_release(path, release, force=force)
        return
    text = _table(release).encode("utf-8")
    if str(path).lower().endswith(".gz"):
        text = gzip.compress(text, mtime=0)
    said = (json.dumps(account(release), indent=2) + "\n").encode("utf-8")
    with replacing(path, force=force) as records:
        fill(records, text, path)
        with replacing(beside(path), force=force) as aside:
            fill(aside, said, beside(path))
            if force:
                Path(path).resolve().unlink(missing_ok=True)


def account(release: Release) -> dict[str, Any]:
    """Return what is stated of a release beside its values, for strict JSON."""
    infinite = release.epsilon is not None and release.epsilon == float("inf")
    words, why = release.guarantee_in_words(), getattr(release.mechanism, "post_processing", None)
    return {
        "guarantee": words if why is None else f"{words}; {why}",
        **({"cautions": list(release.cautions)} if release.cautions else {}),
        "epsilon": None if infinite else release.epsilon,
        "delta": release.delta,
        "rho": release.rho,
        "adjacency": release.adjacency,
        "proved": release.proved,
        "trust": release.trust,
        "n": release.n,
        "private": release.private,
        "simulated": release.simulated,
        **({} if release.ledger is None else {"ledger": release.ledger}),
        **stated_unit(release.unit),
        "mechanism": release.mechanism.stated(),
        "created_at": release.created_at,
        "dpmix_version": release.dpmix_version,
    }


def read_account(path: Path) -> dict[str, Any] | None:
    """Return what `beside` says of a CSV file of synthetic records, None where there is no such file.

    Raises
    ------
    DataError
        When it is there and cannot be read.
    """
    aside = beside(path)
    if not aside.is_file():
        return None
    try:
        found = json.loads(aside.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{aside} is not the account of synthetic records: it cannot be read") from error
    if not isinstance(found, dict):
        raise DataError(f"{aside} is not the account of synthetic records: it is no JSON object")
    return found


def _table(release: Release) -> str:
    """Return the records as CSV: labels as text, days as dates, numbers with their digits or in short."""
    labels = release.labels or (None,) * len(release.columns)
    columns = []
    stated = getattr(release.mechanism, "columns", ())
    dates = {column.name for column in stated if column.date}
    digits = {column.name: column.digits for column in stated if column.digits}
    for i, names in enumerate(labels):
        part = release.values[:, i]
        if names is None and release.columns[i] in dates:
            columns.append([day_text(day) for day in part.tolist()])
        elif names is None and release.columns[i] in digits:
            columns.append([f"{number:.{digits[release.columns[i]]}f}" for number in part.tolist()])
        elif names is None:
            columns.append([_short(number) for number in part.tolist()])
        else:
            columns.append([names[code] for code in part.astype(int).tolist()])
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(release.columns)
    writer.writerows(zip(*columns, strict=True))
    return stream.getvalue()


def _short(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
