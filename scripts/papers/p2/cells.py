"""The cells of the paper on synthesis: repeated releases of one kind, and what each is measured by."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import dpmix
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from dpmix.summary.diagnostics import Scalar
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.records import Records, load_records
from papers.agreement import agreed
from papers.kept import CONFIGS as ALL
from papers.kept import SpecCell, work_prefix

__all__ = ["CONFIGS", "FULL", "QUICK", "Cell", "Results", "Size", "measures"]

CONFIGS = ALL / "p2"
FUNCTIONALS = ("mean", "quantile[0.25]", "quantile[0.5]", "quantile[0.75]", "tail[0.5]")
MEASURES = ("mean", "sd", "q25", "median", "q75")

Floats = NDArray[np.float64]
Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Size:
    """How much is computed.

    Parameters
    ----------
    sizes : tuple of int
        Numbers of confidential records of Figure 1.
    distances : int
        Runs of each point of Figure 1.
    runs : int
        Releases of each kind of Table 1.
    replicates : int
        Data sets of Table 2.
    rounds : tuple of int
        Draws of each of the two chains that a posterior of Table 2 is taken from, after 200 sweeps: the next
        ones are tried where the last did not settle.
    """

    sizes: tuple[int, ...]
    distances: int
    runs: int
    replicates: int
    rounds: tuple[int, ...]


QUICK = Size(sizes=tuple(500 * 2**k for k in range(8)), distances=20, runs=5, replicates=10, rounds=(500,))
FULL = Size(
    sizes=tuple(500 * 2**k for k in range(10)),
    distances=100,
    runs=20,
    replicates=60,
    rounds=(500, 2_000, 8_000),
)
_BURN_IN = 200


@dataclass(frozen=True)
class Cell(SpecCell):
    """Repeated releases.

    Parameters
    ----------
    name : str
        Unique, as ``fig1/n8000/delta0.05``.
    spec : str
        File in configs/p2.
    overrides : tuple of str
        ``key=value`` each, as ``--set``.
    job : str
        ``"distances"``: a data set each run, and W1 between it and its release. ``"utility"``: one data set,
        and what its releases keep of it. ``"downstream"``: a data set each run, and the posterior of its law
        given the release, which ``privatize`` makes where the overrides have a mechanism.
    runs : int
        Their number.
    keep : bool
        Whether the records of the first release are kept.
    rounds : tuple of int
        Of posteriors, as `Size` has them.
    """

    configs: ClassVar[Path] = CONFIGS
    name: str
    spec: str
    overrides: tuple[str, ...]
    job: str
    runs: int
    keep: bool = False
    rounds: tuple[int, ...] = ()

    def compute(self, size: Size, folder: Path) -> dict[str, Any]:
        """Do the job."""
        return {"distances": _distances, "utility": _utility, "downstream": _downstream}[self.job](
            self, folder
        )


def measures(values: Floats) -> dict[str, float]:
    """Return mean, standard deviation and quartiles of records (n,)."""
    found = [values.mean(), values.std(ddof=1), *np.quantile(values, [0.25, 0.5, 0.75])]
    return dict(zip(MEASURES, map(float, found), strict=True))


def _released(cell: Cell, *more: str) -> tuple[Records, Release]:
    """Draw one release by the section ``synthesis``, and return it with its confidential records."""
    spec = load_spec(CONFIGS / cell.spec, [*cell.overrides, *more])
    records = load_records(spec)
    assert spec.synthesis is not None  # every spec here has one
    return records, generator_of(spec.synthesis, records.columns, records.n).release(records)[0]


def _account(release: Release) -> dict[str, Any]:
    names = ("epsilon", "delta", "private", "simulated", "n")
    told = {name: getattr(release, name) for name in names}
    return told | {"mechanism": release.mechanism.stated(), "released": len(release.values)}


def _distances(cell: Cell, folder: Path) -> dict[str, Any]:
    found, release = [], None
    for run in range(cell.runs):
        records, release = _released(cell, f"data.seed={run + 1}")
        found.append(stats.wasserstein_distance(records.values[:, 0], release.values[:, 0]))
    assert release is not None  # at least one run
    return {"release": _account(release), "w1": found}


def _utility(cell: Cell, folder: Path) -> dict[str, Any]:
    records, release = _released(cell)
    spec = load_spec(CONFIGS / cell.spec, cell.overrides)
    assert spec.synthesis is not None
    generator = generator_of(spec.synthesis, records.columns, records.n)
    confidential = records.values[:, 0]
    rows = []
    for run in range(cell.runs):
        values = (release if run == 0 else generator.release(records)[0]).values[:, 0]
        w1 = stats.wasserstein_distance(confidential, values)
        rows.append({**measures(values), "w1": w1, "repeats": float(np.isin(values, confidential).mean())})
    own = {**measures(confidential), "n": records.n, "distinct": int(np.unique(confidential).size)}
    own["clamped"] = records.clamped[0]
    return {
        "release": _account(release),
        "confidential": own,
        "rows": rows,
        "records": release.values[:, 0].tolist() if cell.keep else None,
    }


def _downstream(cell: Cell, folder: Path) -> dict[str, Any]:
    spec, rows, account = CONFIGS / cell.spec, [], {}
    with tempfile.TemporaryDirectory(prefix=work_prefix(), dir=folder) as work:
        chains = Path(work) / "chains.h5"
        for run in range(cell.runs + 1):  # the first compiles, and is left out
            settings = [*cell.overrides, f"data.seed={max(run, 1)}"]
            if load_spec(spec, settings).mechanism is None:
                release = _released(cell, f"data.seed={max(run, 1)}")[1]
            else:
                release = dpmix.privatize(spec, overrides=settings, quiet=True, yes=True)
            seconds = 0.0
            for draws in cell.rounds:
                lengths = [f"sampler.iterations={_BURN_IN + draws}", f"sampler.burn_in={_BURN_IN}"]
                more = [*settings, *lengths, "sampler.chains=2"]
                dpmix.fit(spec, release, chains, overrides=more, jobs=1, force=True, quiet=True)
                summary = dpmix.summarize(chains)
                seconds += summary.seconds
                told = agreed({name: summary.parameters[name] for name in FUNCTIONALS})
                if told["settled"]:
                    break
            if run == 0:
                account = _account(release)
                continue
            rows.append(
                {
                    "seconds": seconds,
                    "draws": draws,
                    **told,
                    "parameters": {name: _interval(found) for name, found in summary.parameters.items()},
                }
            )
    return {"release": account, "rows": rows}


def _interval(found: Scalar) -> dict[str, float | None]:
    lower, _, upper = (found.quantiles[key] for key in sorted(found.quantiles, key=float))
    return {"mean": found.mean, "lower": lower, "upper": upper, "ess": found.ess_bulk}
