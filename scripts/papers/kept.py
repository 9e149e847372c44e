"""Results in files of their own, found again where nothing that they depend on has changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from abc import ABC, abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import dpmix

__all__ = ["CONFIGS", "ROOT", "KeptCell", "SpecCell", "clear_work", "tag", "work_prefix"]

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"


class KeptCell(ABC):
    """A cell of `papers.pool`, of a `name` that is unique."""

    name: str

    @abstractmethod
    def depends(self, size: Any) -> Any:
        """Return everything that the result depends on but the version, for JSON."""

    @abstractmethod
    def compute(self, size: Any, folder: Path) -> dict[str, Any]:
        """Return the result; what is needed only for it may stand in `folder`, as ``.work-*``.

        Raises
        ------
        DpmixError
            As the verbs of dpmix.
        """

    def head(self) -> dict[str, Any]:
        """Return what the result says of the cell beside its name."""
        return {}

    def path(self, folder: Path) -> Path:
        """Return the file of the result."""
        return folder / "cells" / (re.sub(r"[^\w.=+-]+", "-", self.name) + ".json")

    def key(self, size: Any) -> str:
        """Digest of everything that the result depends on."""
        text = json.dumps(self.depends(size))
        return f"{dpmix.__version__} {hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def finished(self, size: Any, folder: Path) -> dict[str, Any] | None:
        """Return the result that was computed with these settings, else None."""
        try:
            found = json.loads(self.path(folder).read_text())
        except (FileNotFoundError, ValueError):
            return None
        return dict(found) if found.get("key") == self.key(size) else None

    def run(self, size: Any, folder: Path) -> dict[str, Any]:
        """Compute the result, write it to `folder` and return it, with its seconds.

        Raises
        ------
        DpmixError
            As `compute`.
        """
        start, before = time.perf_counter(), time.process_time()
        folder.mkdir(parents=True, exist_ok=True)
        found = self.head() | self.compute(size, folder)
        elapsed = time.perf_counter() - start
        spent = {"elapsed": elapsed, "cpu": time.process_time() - before}
        result = {"key": self.key(size), "name": self.name, **found, **spent}
        target = self.path(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(target, json.dumps(_rounded(result)))
        return result


class SpecCell(KeptCell):
    """A cell of a spec in `configs` with `overrides`: a dataclass, all of whose fields count."""

    configs: ClassVar[Path]
    spec: str
    overrides: tuple[str, ...]

    def depends(self, size: Any) -> Any:
        """Return the spec, and all fields."""
        return [(self.configs / self.spec).read_text(), asdict(self)]  # type: ignore[call-overload]

    def head(self) -> dict[str, Any]:
        """Return its spec and what is changed there."""
        where = (self.configs / self.spec).relative_to(ROOT)
        return {"spec": where.as_posix(), "overrides": self.overrides}


def work_prefix() -> str:
    """Return what names of folders of this process begin with, which hold what a cell needs while it runs."""
    return f".work-{os.getpid()}-"


def clear_work(folder: Path) -> None:
    """Remove such folders of processes that are no more: another command may be at work in this one."""
    for work in folder.glob(".work-*"):
        process = int(work.name.split("-")[1])
        try:
            os.kill(process, 0)  # asks whether it is there
        except ProcessLookupError:
            shutil.rmtree(work, ignore_errors=True)
        except PermissionError:
            continue  # somebody else's
        if process == os.getpid():
            shutil.rmtree(work, ignore_errors=True)


def tag(value: float) -> str:
    """Return a number as names of cells have it."""
    return f"{value:g}"


def _rounded(value: Any) -> Any:
    """Round numbers to seven digits, at any depth."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if np.isfinite(value) else None
    return value


def _write(path: Path, text: str) -> None:
    """Write a file so that it is whole or not there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text)
    os.replace(draft, path)
