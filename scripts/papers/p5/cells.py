"""The cells of the paper on data augmentation: repeated releases at one epsilon, and their posteriors."""

from __future__ import annotations

import contextlib
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
from numpy.typing import NDArray

import dpmix
from dpmix.api.calibrate import mechanism_of
from dpmix.data.loading import load_data
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from papers.agreement import agreed, scalars
from papers.kept import CONFIGS as ALL
from papers.kept import SpecCell, work_prefix

__all__ = ["CONFIGS", "EPSILONS", "FULL", "LEVEL", "QUICK", "Cell", "Results", "Size"]

CONFIGS = ALL
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
LEVEL = 0.9  # of the intervals of Table 1
_NOISE = 20_221  # with the number of the run, the seed of the noise on a data set that is held fixed

Floats = NDArray[np.float64]
Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Size:
    """How much is computed.

    Parameters
    ----------
    releases : int
        Releases of one data set at each epsilon, of Figures 1 and 2.
    replicates : int
        Data sets at each epsilon, of Table 1.
    real : int
        Releases of the real data at each epsilon.
    rounds : tuple of int
        Sweeps of each of the two chains that a posterior is taken from, half of them burn-in: the next ones
        are tried where the last did not settle. Chains of Algorithm 1, whose acceptance is looked at, have
        the first.
    """

    releases: int
    replicates: int
    real: int
    rounds: tuple[int, ...]


QUICK = Size(releases=10, replicates=20, real=2, rounds=(2_000,))
FULL = Size(releases=20, replicates=100, real=5, rounds=(2_000, 8_000, 32_000))


@dataclass(frozen=True)
class Cell(SpecCell):
    """Repeated releases, and a chain given each.

    Parameters
    ----------
    name : str
        Unique, as ``fig1/eps0.1``.
    spec : str
        File in configs.
    overrides : tuple of str
        ``key=value`` each, as ``--set``.
    job : str
        ``"releases"``: of one data set, with other noise each time. ``"replicates"``: of a data set each.
        ``"real"``: of confidential records, with noise that takes no seed.
    runs : int
        Their number.
    rounds : tuple of int
        Sweeps of each chain, half of them burn-in, in the order in which they are tried.
    keep : tuple of str
        Parameters of which means and intervals are kept.
    """

    configs: ClassVar[Path] = CONFIGS
    name: str
    spec: str
    overrides: tuple[str, ...]
    job: str
    runs: int
    rounds: tuple[int, ...]
    keep: tuple[str, ...]

    def compute(self, size: Size, folder: Path) -> dict[str, Any]:
        """Fit each release, and keep what is asked for."""
        rows, release = [], None
        quiet = contextlib.redirect_stderr(io.StringIO())  # how many values were clamped
        with tempfile.TemporaryDirectory(prefix=work_prefix(), dir=folder) as work, quiet:
            for run in range(self.runs):
                release = self._release(run)
                rows.append(self._fitted(release, run, Path(work) / "chains.h5"))
        assert release is not None  # at least one run
        told = {name: getattr(release, name) for name in ("epsilon", "private", "simulated", "n")}
        return {"release": told | {"mechanism": release.mechanism.stated()}, "rows": rows}

    def _release(self, run: int) -> Release:
        if self.job != "releases":
            more = [f"data.seed={run + 1}"] if self.job == "replicates" else []
            return dpmix.privatize(
                CONFIGS / self.spec, overrides=[*self.overrides, *more], quiet=True, yes=True
            )
        spec = load_spec(CONFIGS / self.spec, self.overrides)
        data = load_data(spec)
        assert data.simulated
        mechanism = mechanism_of(spec, len(data.columns), len(data.values))
        return mechanism.simulate(data.values, data.columns, np.random.default_rng((_NOISE, run)))[0]

    def _fitted(self, release: Release, run: int, chains: Path) -> dict[str, Any]:
        """Return what is known of the parameters, from the first chains that agree or the longest."""
        path, spent = CONFIGS / self.spec, 0.0
        for sweeps in self.rounds:
            settings = [
                *self.overrides,
                f"sampler.iterations={sweeps}",
                f"sampler.burn_in={sweeps // 2}",
                "sampler.chains=2",
                f"sampler.seed={run + 1}",
            ]
            done = dpmix.fit(path, release, chains, overrides=settings, jobs=1, force=True, quiet=True)
            spent += sum(done.seconds)
            with h5py.File(chains) as file:
                draws = {name: np.asarray(file[f"posterior/{name}"]) for name in self.keep}
                rates: Floats = np.asarray(file["sample_stats/acceptance_rate"])
            told = agreed({key: s for name, d in draws.items() for key, s in scalars(name, d).items()})
            if told["settled"]:
                break
        found: dict[str, Any] = {"seconds": spent, "sweeps": sweeps, **told, "parameters": {}}
        ends = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
        for name, each in draws.items():
            pooled = each.reshape(-1, *each.shape[2:])
            lower, upper = np.quantile(pooled, ends, axis=0)
            summary = {"mean": pooled.mean(axis=0), "sd": pooled.std(axis=0), "lower": lower, "upper": upper}
            found["parameters"][name] = {key: value.tolist() for key, value in summary.items()}
        if np.isfinite(rates).all():
            found["acceptance"] = {"mean": float(rates.mean()), "least": float(rates.min())}
        return found
