"""Cases as a pool of processes runs them: each leaves its result in a file of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.papers.kept import KeptCell
from scripts.verification.calibrate import calibrate
from scripts.verification.cases import Case

__all__ = ["Cell", "Size"]


@dataclass(frozen=True)
class Size:
    """How much is simulated."""

    replicates: int
    seed: int
    commit: str = "unknown"  # noted with each result, which does not depend on it


@dataclass(frozen=True)
class Cell(KeptCell):
    """A case as the pool of processes runs it."""

    case: Case

    overrides: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the case."""
        return self.case.name

    @property
    def spec(self) -> str:
        """Model and release: cases of the same compile some of the same functions."""
        return f"{self.case.model} / {self.case.release}"

    def depends(self, size: Size) -> Any:
        """Return spec and settings."""
        return [self.case.spec, self.case.thin, self.case.n, size.replicates, size.seed]

    def compute(self, size: Size, folder: Path) -> dict[str, Any]:
        """Calibrate."""
        return {"commit": size.commit, **calibrate(self.case, size.replicates, size.seed)}
