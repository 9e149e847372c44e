"""The cells of the paper on released posteriors: repeated releases given some counts, and their errors."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmix.api.calibrate import mechanism_of
from dpmix.mechanisms.posterior.curator import HellingerPosterior, sampler
from dpmix.mechanisms.posterior.released_posterior import PosteriorRelease
from dpmix.spec import load_spec
from papers.kept import CONFIGS as ALL
from papers.kept import SpecCell
from papers.p3.exact import by_scale, distances, expected, expected_of_law

__all__ = [
    "CONFIGS",
    "DELTA",
    "EPSILON",
    "FULL",
    "METHODS",
    "QUICK",
    "Cell",
    "Crossing",
    "Results",
    "Size",
    "counts_of",
    "spec_of",
    "truncated",
]

CONFIGS = ALL / "p3"
EPSILON, DELTA = 0.8, 1e-8
METHODS = {
    "theorem": ("exponential mechanism, theorem", f"delta: {DELTA}, calibration: theorem"),
    "scale": ("the same, largest certified scale", f"delta: {DELTA}, calibration: theorem"),
    "certified": ("exponential mechanism, certified", f"delta: {DELTA}, calibration: certified"),
    "laplace2": ("Laplace, sensitivity 2", "method: laplace, sensitivity: 2"),
    "truncated": ("Laplace, sensitivity 2, truncated in turn", "method: laplace, sensitivity: 2"),
    "laplace1": ("Laplace, sensitivity 1", "method: laplace, sensitivity: 1"),
    "geometric2": ("geometric, sensitivity 2", "method: geometric, sensitivity: 2"),
    "geometric1": ("geometric, sensitivity 1", "method: geometric, sensitivity: 1"),
}

Floats = NDArray[np.float64]
Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Size:
    """How much is computed.

    Parameters
    ----------
    runs : int
        Releases of each method at each point, at least 2.
    dense : bool
        Whether Figures 1 and 2 have all their points.
    largest : int
        Largest number of records.
    """

    runs: int
    dense: bool
    largest: int


QUICK = Size(runs=1000, dense=False, largest=100_000)
FULL = Size(runs=2000, dense=True, largest=1_000_000)


@dataclass(frozen=True)
class Cell(SpecCell):
    """Repeated releases of one posterior by one method, or where two methods cross.

    Parameters
    ----------
    name : str
        Unique, as ``two/n650/theorem``.
    spec : str
        File in configs/p3.
    overrides : tuple of str
        ``key=value`` each, as ``--set``.
    method : str
        Of `METHODS`.
    counts : tuple of int
        What the posterior is given.
    runs : int
        Number of releases.
    """

    configs: ClassVar[Path] = CONFIGS
    name: str
    spec: str
    overrides: tuple[str, ...]
    method: str
    counts: tuple[int, ...]
    runs: int

    def head(self) -> dict[str, Any]:
        """Return its spec, and the counts."""
        return super().head() | {"counts": self.counts}

    def compute(self, size: Size, folder: Path) -> dict[str, Any]:
        """Return the errors of simulated releases, and their expectation where all outputs can be summed."""
        before = time.process_time()
        made = mechanism_of(load_spec(CONFIGS / self.spec, list(self.overrides)))
        assert isinstance(made, PosteriorRelease)  # every spec here is one
        draw = _drawing(made, self)
        first = draw()
        ready = time.process_time()
        drawn = np.vstack([first, *(draw() for _ in range(self.runs - 1))])
        each = (time.process_time() - ready) / (self.runs - 1)
        errors = distances(made.prior, self.counts, drawn)
        about = made.describe()
        return {
            "guarantee": {"epsilon": made.guarantee.epsilon, "delta": made.guarantee.delta},
            "mechanism": {k: about.get(k) for k in ("gamma", "exponent_scale", "certificate", "scale")},
            "exact": _exact(made, self),
            "mean": float(errors.mean()),
            "se": float(errors.std(ddof=1) / np.sqrt(self.runs)),
            "five": np.quantile(errors, [0, 0.25, 0.5, 0.75, 1]).tolist(),
            "seconds_first": ready - before,
            "seconds_each": each,
        }


@dataclass(frozen=True)
class Crossing(Cell):
    """From which number of records a method has a smaller expected error than another.

    Parameters
    ----------
    against : str
        The other method.
    grid : tuple of int
        Numbers of records that are looked at; between two of them the first is found by bisection.
    shares : tuple of float
        Of the two categories.
    """

    against: str = ""
    grid: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()

    def compute(self, size: Size, folder: Path) -> dict[str, Any]:
        """Return the errors of both methods on the grid, and the first number at which the first wins."""

        def errors(n: int) -> list[float]:
            return [self._error(method, n) for method in (self.method, self.against)]

        rows = [[n, *errors(n)] for n in self.grid]
        first = next((i for i, (_, own, other) in enumerate(rows) if own < other), None)
        found = None if first is None else int(rows[first][0])
        if first:
            low, high = self.grid[first - 1] // 10, self.grid[first] // 10
            while high - low > 1:
                middle = (low + high) // 2
                own, other = errors(10 * middle)
                low, high = (low, middle) if own < other else (middle, high)
            found = 10 * high
        return {"rows": rows, "first": found}

    def _error(self, method: str, n: int) -> float:
        made = mechanism_of(load_spec(CONFIGS / self.spec, [spec_of(method, (1.0, 1.0), n)]))
        assert isinstance(made, PosteriorRelease)  # every spec here is one
        cell = Cell("", self.spec, (), method, counts_of(self.shares, n), 0)
        found = _exact(made, cell)
        assert found is not None  # two categories
        return found


def _drawing(made: PosteriorRelease, cell: Cell) -> Callable[[], Floats]:
    """Return what draws released counts, from a generator that is seeded by the name of the cell."""
    seed = int.from_bytes(hashlib.sha256(cell.name.encode()).digest()[:8], "little")
    rng = np.random.default_rng(seed)
    if isinstance(made, HellingerPosterior):
        law = by_scale(made) if cell.method == "scale" else made.law
        drawing = sampler(law, cell.counts)
        return lambda: np.array(drawing.draw(rng.bytes), dtype=np.float64)
    if cell.method == "truncated":
        return lambda: truncated(made.choose(cell.counts, rng)[1]["noisy_counts"], made.n)
    return lambda: made.choose(cell.counts, rng)[0]


def truncated(noisy: Sequence[float], n: int) -> Floats:
    """Return noisy counts cut one after the other to what is left of n; the last one takes the rest.

    That is a reading of the paper's post-processing ("when the sum of the noised parameters is greater than n
    we will truncate them so that they sum up to n"), which leaves the noise of the last count unused.
    """
    found, left = [], float(n)
    for value in noisy[:-1]:
        found.append(min(max(value, 0.0), left))
        left -= found[-1]
    return np.array([*found, left])


def _exact(made: PosteriorRelease, cell: Cell) -> float | None:
    if cell.method == "truncated":
        return None
    if cell.method == "scale":
        assert isinstance(made, HellingerPosterior)  # as its spec
        return expected_of_law(by_scale(made), cell.counts)
    return expected(made, cell.counts)


def counts_of(shares: Sequence[float], n: int) -> tuple[int, ...]:
    """Return whole counts with given shares of n records; the last category takes what is left."""
    first = [round(share * n) for share in itertools.islice(shares, len(shares) - 1)]
    return (*first, n - sum(first))


def spec_of(method: str, prior: Sequence[float], n: int) -> str:
    """Return the override that puts a method in the place of a spec's mechanism."""
    entries = ", ".join(f"{entry:g}" if entry % 1 else f"{entry:.1f}" for entry in prior)
    own = METHODS[method][1]
    return f"mechanism={{kind: posterior, prior: [{entries}], n: {n}, epsilon: {EPSILON}, {own}}}"
