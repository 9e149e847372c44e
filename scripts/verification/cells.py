"""Cases as a pool of processes runs them: each leaves its result in a file of its own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.verification.calibrate import calibrate
from scripts.verification.cases import Case

__all__ = ["Cell", "Size"]


@dataclass(frozen=True)
class Size:
    """How much is simulated."""

    replicates: int
    seed: int


@dataclass(frozen=True)
class Cell:
    """A case as the pool of processes runs it; its result is kept in a file of its own."""

    case: Case

    @property
    def name(self) -> str:
        """Name of the case."""
        return self.case.name

    @property
    def spec(self) -> str:
        """Model and release: cases of the same compile some of the same functions."""
        return f"{self.case.model} / {self.case.release}"

    overrides: tuple[str, ...] = ()

    def _path(self, folder: Path) -> Path:
        return folder / (re.sub(r"[^\w]+", "_", self.name) + ".json")

    def _settings(self, size: Size) -> dict[str, Any]:
        return json.loads(
            json.dumps([self.case.spec, self.case.thin, self.case.n, size.replicates, size.seed])
        )

    def finished(self, size: Size, folder: Path) -> dict[str, Any] | None:
        """Return the result where there is one with these settings."""
        path = self._path(folder)
        if not path.exists():
            return None
        try:
            known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            return None
        return known if known.get("settings") == self._settings(size) else None

    def run(self, size: Size, folder: Path) -> dict[str, Any]:
        """Calibrate, and write the result."""
        found = calibrate(self.case, size.replicates, size.seed) | {"settings": self._settings(size)}
        partial = self._path(folder).with_suffix(".partial")
        partial.write_text(json.dumps(found), encoding="utf-8")
        partial.replace(self._path(folder))
        return found
