"""The folder of data that do not ship: what DPMIX_DATA names, else `shared/data` beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["folder"]

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def folder() -> Path:
    """Return it, whether it is there or not."""
    return Path(os.environ.get("DPMIX_DATA") or _BESIDE).resolve()
