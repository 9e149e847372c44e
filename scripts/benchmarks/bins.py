"""Histogram releases: the samplers that move records beside the one on counts, through the public face.

Three normals of Beraha, Favaro and Rao (2024), section 4.1, in 16 bins of [-10, 10] at epsilon = 1, under the
default prior; four chains each that start apart, one after the other. Seconds are of processor time, those of
the sweeps after burn-in.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dpmix
from benchmarks.table import figure, span, table

__all__ = ["CASES", "FEW", "Binned", "bins", "bins_table"]

Result = dict[str, Any]
CHAINS = 4
_BURN = 0.3  # of the sweeps of a chain
_SHORT = 20  # sweeps of the run that compiles, and of the one that is timed first
_POINTS = [-5.0, 0.0, 2.5, 5.0]
_RECORDS = ("neal8", "private_slice")


@dataclass(frozen=True)
class Binned:
    """A release of n records and the samplers that fit it."""

    n: int
    samplers: tuple[str, ...] = ("counts",)
    bins: int = 16
    draws: int | None = None  # of a smoothed histogram
    epsilon: float = 1.0

    @property
    def name(self) -> str:
        """What the table calls the release."""
        kind = "perturbed" if self.draws is None else f"smoothed, {self.draws:,} draws"
        return f"{kind}, {self.bins} bins, eps = {self.epsilon:g}"

    def spec(self) -> dict[str, Any]:
        """Return the spec of release and fit."""
        mechanism: dict[str, Any] = {"epsilon": self.epsilon, "bins": self.bins, "domain": [-10.0, 10.0]}
        if self.draws is None:
            mechanism["kind"] = "perturbed_histogram"
        else:
            mechanism |= {"kind": "smoothed_histogram", "draws": self.draws}
        return {
            "data": {"simulate": "three_gaussians", "n": self.n, "seed": 1},
            "mechanism": mechanism,
            "model": {"kernel": "normal"},
            "summary": {"tails": _POINTS},
        }


CASES = (
    Binned(1_000, ("counts", *_RECORDS)),
    Binned(20_000, ("counts", *_RECORDS)),
    Binned(1_000, ("counts", *_RECORDS), draws=200),
    Binned(20_000, ("counts", *_RECORDS), draws=1_000),
    Binned(1_000_000),
    Binned(1_000_000, bins=64),
    Binned(1_000_000, epsilon=0.001),
    Binned(1_000_000, draws=1_000),
    Binned(1_000_000, bins=32, draws=100_000),
)
FEW = (Binned(200, ("counts", "neal8")),)


def bins(seconds: float, cases: tuple[Binned, ...] = CASES) -> list[Result]:
    """Fit each release by each of its samplers, four chains of `seconds` each."""
    results: list[Result] = []
    with TemporaryDirectory() as name:
        for number, case in enumerate(cases):
            folder = Path(name) / str(number)
            folder.mkdir()
            release = folder / "release.h5"
            dpmix.privatize(case.spec(), output=release, quiet=True, yes=True)
            for sampler in case.samplers:
                row = {"release": case.name, "n": case.n, "sampler": sampler}
                row |= _fit(case, sampler, release, seconds, folder / sampler)
                results.append(row)
                print(f"bins: {json.dumps(row)}", file=sys.stderr, flush=True)
    return results


def _fit(case: Binned, sampler: str, release: Path, seconds: float, stem: Path) -> Result:
    """Return milliseconds a sweep, the largest R-hat, and effective draws a second of each quantity."""

    def run(sweeps: int) -> tuple[float, Path]:
        chains = stem.with_name(f"{sampler}_{sweeps}.h5")
        spec = case.spec() | {
            "sampler": {
                "kind": sampler,
                "iterations": sweeps,
                "burn_in": int(_BURN * sweeps),
                "chains": CHAINS,
                "seed": 3,
            }
        }
        start = time.process_time()
        dpmix.fit(spec, release=release, output=chains, jobs=1, quiet=True, force=True)
        return time.process_time() - start, chains

    run(_SHORT)  # compiles
    first = run(_SHORT)[0]
    sweep = max((run(6 * _SHORT)[0] - first) / (5 * _SHORT * CHAINS), 1e-6)
    sweeps = max(10 * _SHORT, int(seconds / sweep))
    spent, chains = run(sweeps)
    # what a fit costs beside its sweeps is in that of a few
    sampling = (spent - first) * (1.0 - _BURN)
    found = dpmix.summarize(chains, quiet=True).to_dict()["parameters"]
    told = {name: row for name, row in found.items() if row.get("rhat") is not None}
    ess = {name: row["ess_bulk"] for name, row in told.items()}
    return {
        "ms": 1e3 * (spent - first) / (sweeps * CHAINS),
        "sweeps": sweeps,
        "seconds": sampling,
        "rhat": max(row["rhat"] for row in told.values()),
        "slowest": max(told, key=lambda name: told[name]["rhat"]),
        "least": min(ess.values()),
        "ess": {name: value / sampling for name, value in ess.items()},
    }


def bins_table(results: list[Result]) -> list[str]:
    """Return the lines of the table: effective draws a second of each quantity, and how the chains agree."""
    rows = []
    for r in results:
        ess = r["ess"]
        groups = [
            [ess[name] for name in ess if name.startswith(start)]
            for start in ("mean", "sd", "quantile", "density", "tail", "n_clusters")
        ]
        rows.append(
            [
                r["release"],
                f"{r['n']:,}",
                f"`{r['sampler']}`",
                figure(r["ms"], 2),
                *(span(group) for group in groups),
                f"{r['rhat']:.3f} ({r['slowest']})",
                f"{r['least']:,.0f} in {figure(r['seconds'], 2)} s",
            ]
        )
    quantities = ["mean", "sd", "quartiles", "density", "tails", "clusters"]
    head = ["release", "n", "sampler", "ms a sweep", *quantities]
    return table([*head, "largest R-hat", "fewest effective draws"], rows)
