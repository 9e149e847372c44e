"""A cell: one release, one fit and one summary, from a spec in configs/p1 with overrides."""

from __future__ import annotations

import contextlib
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import dpmix
from dpmix.spec import load_spec
from reproduction.kept import SpecCell

__all__ = [
    "CONFIGS",
    "FULL",
    "QUICK",
    "Cell",
    "Results",
    "Size",
    "tag",
]

CONFIGS = Path(__file__).resolve().parents[2] / "configs" / "p1"
LONGEST = 100_000  # sweeps of a chain in the paper
CLUSTERING_DRAWS = 250  # saved draws of a chain that an estimate of the partition is made from

Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Size:
    """How much is computed: sweeps of a chain (half of them burn-in), chains, replicates of Figures 2 and 10.

    `draws` is the largest number of draws that a chain saves; `every` whether side experiments run in all
    cells, rather than in those that the findings name.
    """

    sweeps: int
    chains: int
    replicates: int
    draws: int
    every: bool

    def overrides(self, clustering: bool, sweeps: int) -> tuple[str, ...]:
        """Return the lengths of the chains, and whether they save allocations, as for --set."""
        kept = sweeps - sweeps // 2
        draws = CLUSTERING_DRAWS if clustering else self.draws
        return (
            f"sampler.iterations={sweeps}",
            f"sampler.burn_in={sweeps // 2}",
            f"sampler.chains={self.chains}",
            f"sampler.thin={max(1, kept // draws)}",
            "sampler.store=[allocations]" if clustering else "sampler.store=[]",
        )


FULL = Size(sweeps=LONGEST, chains=2, replicates=20, draws=10_000, every=True)
QUICK = Size(sweeps=2_000, chains=2, replicates=1, draws=1_000, every=False)


@dataclass(frozen=True)
class Cell(SpecCell):
    """One run.

    Parameters
    ----------
    name : str
        Unique, as ``normal/n200/eps5/neal5/r0``.
    spec : str
        File in configs/p1.
    overrides : tuple of str
        ``key=value`` each, as ``--set``.
    clustering : bool
        Whether the partition is estimated and compared with the truth.
    baseline : bool
        Whether the deconvolution kernel estimate is computed.
    released : bool
        Whether the released values are kept.
    longer : int
        How many times longer its chains are than others, where these are shorter than the paper's: beta
        kernels take long to leave the prior.
    """

    configs: ClassVar[Path] = CONFIGS
    name: str
    spec: str
    overrides: tuple[str, ...]
    clustering: bool = False
    baseline: bool = False
    released: bool = False
    longer: int = 1

    def sweeps(self, size: Size) -> int:
        """Return the sweeps of each chain, never more than the paper's unless asked for."""
        return max(size.sweeps, min(self.longer * size.sweeps, LONGEST))

    def settings(self, size: Size) -> list[str]:
        """Return all overrides of the spec."""
        more = ["summary.baseline=deconvolution_kde"] if self.baseline else ["summary.baseline=null"]
        return [*self.overrides, *size.overrides(self.clustering, self.sweeps(size)), *more]

    def depends(self, size: Size) -> Any:
        """Return the spec, and what is changed there."""
        return [(CONFIGS / self.spec).read_text(), self.settings(size), self.released]

    def compute(self, size: Size, folder: Path) -> dict[str, Any]:
        """Privatize, fit and summarize."""
        return _computed(self, size, folder)


def tag(value: float) -> str:
    """Return a number as names of cells have it."""
    return f"{value:g}"


def _computed(cell: Cell, size: Size, folder: Path) -> dict[str, Any]:
    spec, settings = CONFIGS / cell.spec, cell.settings(size)
    checked = load_spec(spec, settings)
    said = io.StringIO()
    with tempfile.TemporaryDirectory(prefix=".work-", dir=folder) as work, contextlib.redirect_stderr(said):
        release = None
        if getattr(checked.mechanism, "kind", None) != "none":
            release = Path(work) / "release.h5"
            made = dpmix.privatize(spec, release, overrides=settings, quiet=True, yes=True)
            assert made.simulated and not made.private
        chains = Path(work) / "chains.h5"
        dpmix.fit(spec, release, chains, overrides=settings, jobs=1, quiet=True)
        summary = dpmix.summarize(chains)
    contents = summary.to_json()
    clustering, clusters = contents["clustering"], contents["parameters"]["n_clusters"]
    return {
        "overrides": settings,
        "simulated": True,
        "private": False,
        "mechanism": {k: v for k, v in summary.provenance.mechanism.stated().items() if k != "granularity"},
        "guarantee": {name: getattr(made, name) for name in ("epsilon", "delta", "rho")} if release else None,
        "warnings": said.getvalue().splitlines() + contents["warnings"],
        "sweeps": cell.sweeps(size),
        "chains": size.chains,
        "density": contents["density"],
        "hellinger": summary.hellinger,
        "n_clusters": contents["n_clusters"],
        "clusters_mean": clusters["mean"],
        "clusters_ess": clusters["ess_bulk"],
        "clusters_rhat": clusters["rhat"],
        "acceptance": contents["acceptance"],
        "seconds": summary.seconds,
        "ari": None
        if clustering is None
        else {"vi": clustering["ari"], "mean": clustering["ari_posterior_mean"]},
        "released": summary.released.ravel().tolist() if cell.released else None,
    }
