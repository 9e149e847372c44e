"""Certified calibrations that were found before, kept on disk: they depend on public numbers alone."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmix.mechanisms.posterior.certificate import Neighbours
from dpmix.mechanisms.posterior.search import Certified, search, verified
from dpmix.posteriors.law import ROUNDING, weight_bits

__all__ = ["calibrated", "directory"]

_FORMAT = 1


def directory() -> Path | None:
    """Return the folder of calibrations: ``posterior`` in DPMIX_CACHE_DIR, or in the user's cache.

    None where there is neither: relative paths are ignored, as XDG has it, and a user may have no home.
    """
    own = os.environ.get("DPMIX_CACHE_DIR")
    if own:
        return Path(own) / "posterior"
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if not base.is_absolute():
        base = Path(os.path.expanduser("~")) / ".cache"
    return base / "dpmix" / "posterior" if base.is_absolute() else None


def calibrated(family: Neighbours, epsilon: float, delta: float) -> Certified:
    """Return the certified calibration from disk, or search for it and keep it there.

    The disk only says where to look: the pair (gamma, scale) that is read there, under a key of number of
    records, prior, epsilon, delta, precision of weights and tables, is certified again over all neighbouring
    databases. So a certificate is always of the weights that are drawn from, whoever wrote the file and by
    whatever version. Where there is no cache to be read or written, or it is wrong, the search is repeated.

    Raises
    ------
    PrivacyError
        As `search`.
    """
    of = family.posteriors
    key = {
        "format": _FORMAT,
        "n": of.n,
        "prior": [float(entry).hex() for entry in of.prior],
        "epsilon": float(epsilon).hex(),
        "delta": float(delta).hex(),
        "bits": weight_bits(epsilon, delta, of.size),
        "rounding": ROUNDING.hex(),
        "tables": of.digest,
    }
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
    folder = directory()
    if folder is None:
        return search(family, epsilon, delta)
    path = folder / f"{name}.json"
    stored = _read(path, key)
    found = None if stored is None else verified(family, *stored, epsilon, delta)
    if found is None:
        found = search(family, epsilon, delta)
        _write(path, key, found)
    return found


def _read(path: Path, key: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Return gamma, scale and actual epsilon of a file under this key, None where it holds anything else."""
    try:
        stored = json.loads(path.read_text("utf-8"))
        if stored["key"] != key:
            return None
        gamma, scale, actual = (stored["found"][name] for name in ("gamma", "exponent_scale", "epsilon"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not all(isinstance(value, float) for value in (gamma, scale, actual)):
        return None
    return gamma, scale, actual


def _write(path: Path, key: Mapping[str, Any], found: Certified) -> None:
    """Write a file that appears complete or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            temporary.write_text(json.dumps({"key": key, "found": dataclasses.asdict(found)}), "utf-8")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
