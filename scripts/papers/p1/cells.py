"""A cell: one release, fits until their chains agree, and one summary, from a spec in configs/p1."""

from __future__ import annotations

import contextlib
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import dpmix
from dpmix.spec import load_spec
from papers.agreement import ENOUGH, agreed
from papers.kept import CONFIGS as ALL
from papers.kept import SpecCell, tag, work_prefix

__all__ = ["CONFIGS", "FULL", "QUICK", "Cell", "Results", "Size", "tag"]

CONFIGS = ALL / "p1"
CLUSTERING_DRAWS = 250  # saved draws of a chain that an estimate of the partition is made from
_FUTILE = 2.0  # times the longest chains: what would need more than that is left unsettled
_SETTLED_CHAINS = 4

Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Size:
    """How much is computed.

    Parameters
    ----------
    sweeps, chains : int
        Of a run that shows a sampler: half of the sweeps are burn-in.
    rounds : tuple of int
        Sweeps of each of the four chains that a posterior is taken from, half of them burn-in: the next ones
        are tried where the last did not settle.
    replicates : int
        Data sets of each cell, at least 1.
    draws : int
        The largest number of draws that a chain saves.
    """

    sweeps: int
    chains: int
    rounds: tuple[int, ...]
    replicates: int
    draws: int


FULL = Size(
    sweeps=5_000,
    chains=2,
    rounds=(2_000, 4_000, 8_000, 16_000, 24_000, 48_000, 72_000),
    replicates=5,
    draws=1_000,
)
QUICK = Size(sweeps=2_000, chains=2, rounds=(2_000,), replicates=1, draws=1_000)


@dataclass(frozen=True)
class Cell(SpecCell):
    """One release, and its posterior or the run of a sampler.

    Parameters
    ----------
    name : str
        Unique, as ``normal/n200/eps5/neal5/r0``.
    spec : str
        File in configs/p1.
    overrides : tuple of str
        ``key=value`` each, as ``--set``.
    settle : int
        Longest chains, in sweeps, by which a posterior is to settle; 0 for the run of a sampler, whose length
        is given and whose mixing is what is looked at.
    replicate : int
        Number of its data set, from 0.
    clustering : bool
        Whether the partition is estimated and compared with the truth.
    baseline : bool
        Whether the deconvolution kernel estimate is computed.
    released : bool
        Whether the released values are kept.
    """

    configs: ClassVar[Path] = CONFIGS
    name: str
    spec: str
    overrides: tuple[str, ...]
    settle: int = 0
    replicate: int = 0
    clustering: bool = False
    baseline: bool = False
    released: bool = False

    def lengths(self, size: Size) -> tuple[int, ...]:
        """Return the sweeps of each chain, in the order in which they are tried."""
        if not self.settle:
            return (size.sweeps,)
        return tuple(s for s in size.rounds if s <= self.settle) or size.rounds[:1]

    def next_length(self, size: Size, last: dict[str, Any]) -> int | None:
        """Return the sweeps by which chains may settle; None where they did, or none allowed would."""
        longer = [s for s in self.lengths(size) if s > last["sweeps"]]
        if last["settled"] or not longer:
            return None
        needed = last["sweeps"] * ENOUGH / max(last["ess"], 1.0)
        if needed > _FUTILE * longer[-1]:
            return None
        return next((s for s in longer if s >= needed), longer[-1])

    def settings(self, size: Size, sweeps: int) -> list[str]:
        """Return all overrides of the spec, for chains of so many sweeps."""
        kept = sweeps - sweeps // 2
        draws = CLUSTERING_DRAWS if self.clustering else size.draws
        return [
            *self.overrides,
            f"data.seed={1 + self.replicate}",
            f"sampler.seed={1 + self.replicate}",
            f"sampler.iterations={sweeps}",
            f"sampler.burn_in={sweeps // 2}",
            f"sampler.chains={_SETTLED_CHAINS if self.settle else size.chains}",
            f"sampler.thin={max(1, kept // draws)}",
            "sampler.store=[allocations]" if self.clustering else "sampler.store=[]",
            "summary.baseline=deconvolution_kde" if self.baseline else "summary.baseline=null",
        ]

    def depends(self, size: Size) -> Any:
        """Return the spec, and what is changed there: of the lengths the first and the last.

        Those between are steps on the way: what has settled by others is as good.
        """
        lengths = self.lengths(size)
        settings = [self.settings(size, sweeps) for sweeps in (lengths[0], lengths[-1])]
        return [(CONFIGS / self.spec).read_text(), settings, self.released]

    def compute(self, size: Size, folder: Path) -> dict[str, Any]:
        """Privatize, then fit and summarize until the chains agree or the longest are done."""
        spec, tried = CONFIGS / self.spec, []
        settings = self.settings(size, self.lengths(size)[0])
        checked = load_spec(spec, settings)
        said = io.StringIO()
        with (
            tempfile.TemporaryDirectory(prefix=work_prefix(), dir=folder) as work,
            contextlib.redirect_stderr(said),
        ):
            release = None
            if getattr(checked.mechanism, "kind", None) != "none":
                release = Path(work) / "release.h5"
                made = dpmix.privatize(spec, release, overrides=settings, quiet=True, yes=True)
                assert made.simulated and not made.private
            chains = Path(work) / "chains.h5"
            sweeps: int | None = self.lengths(size)[0]
            while sweeps is not None:
                settings = self.settings(size, sweeps)
                dpmix.fit(spec, release, chains, overrides=settings, jobs=1, quiet=True, force=True)
                summary = dpmix.summarize(chains)
                tried.append({"sweeps": sweeps, **agreed(summary.parameters)})
                sweeps = self.next_length(size, tried[-1])
        guarantee = {k: getattr(made, k) for k in ("epsilon", "delta", "rho")} if release else None
        told = {"overrides": settings, "simulated": True, "private": False, "guarantee": guarantee}
        warnings = said.getvalue().splitlines()
        sampler = {"sampler": _sampler(settings), "chains": checked.sampler.chains, **tried[-1]}
        more = {"tried": tried, "replicate": self.replicate}
        return told | sampler | more | _summarized(self, summary, warnings)


def _sampler(settings: list[str]) -> str:
    found = [text.split("=", 1)[1] for text in settings if text.startswith("sampler.kind=")]
    return found[-1] if found else ""


def _summarized(cell: Cell, summary: Any, said: list[str]) -> dict[str, Any]:
    """Return what is kept of a summary."""
    contents = summary.to_json()
    clustering, clusters = contents["clustering"], contents["parameters"]["n_clusters"]
    return {
        "mechanism": {k: v for k, v in summary.provenance.mechanism.stated().items() if k != "granularity"},
        "warnings": said + contents["warnings"],
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
