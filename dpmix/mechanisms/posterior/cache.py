"""Certified calibrations that were found before, kept on disk: they depend on public numbers alone."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmix.mechanisms.posterior.certificate import Neighbours
from dpmix.mechanisms.posterior.search import Certified, search
from dpmix.posteriors.law import ROUNDING, weight_bits

__all__ = ["calibrated", "directory"]

_FORMAT = 1


def directory() -> Path:
    """Return the folder of calibrations: ``posterior`` in DPMIX_CACHE_DIR, or in the user's cache."""
    own = os.environ.get("DPMIX_CACHE_DIR")
    if own:
        return Path(own) / "posterior"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "dpmix" / "posterior"


def calibrated(family: Neighbours, epsilon: float, delta: float) -> Certified:
    """Return the certified calibration from disk, or search for it and keep it there.

    What is on disk counts only where its key is the same to the last digit: number of records, prior,
    epsilon, delta, the precision of weights and the digest of the tables that weights are computed from, so
    that a certificate is always of the weights that are drawn from. Where there is no cache to be read or
    written the search is repeated.

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
    path = directory() / f"{name}.json"
    found = _read(path, key, epsilon, delta)
    if found is None:
        found = search(family, epsilon, delta)
        _write(path, key, found)
    return found


def _read(path: Path, key: Mapping[str, Any], epsilon: float, delta: float) -> Certified | None:
    """Return what a file holds under this key, None where it holds anything else."""
    try:
        stored = json.loads(path.read_text("utf-8"))
        if stored["key"] != key:
            return None
        values = {name: stored["found"][name] for name in stored["found"]}
        found = Certified(**values)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    numbers = (found.gamma, found.exponent_scale, found.epsilon, found.delta, found.error)
    sound = all(isinstance(value, float) and math.isfinite(value) and value >= 0 for value in numbers)
    if not sound or found.gamma == 0 or found.exponent_scale == 0 or not isinstance(found.pairs, int):
        return None
    return found if found.epsilon <= epsilon and found.delta <= delta else None


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
