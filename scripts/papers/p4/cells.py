"""The cells of the paper on compositional data: repeated releases, and what each method makes of them."""

from __future__ import annotations

import contextlib
import io
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import dpmix
from dpmix.api.task import build
from dpmix.data.loading import load_data
from dpmix.models.dirichlet.alpha import gamma_prior, slice_alpha, whiten
from dpmix.models.dirichlet.composition_results import Ellipsoid
from dpmix.models.dirichlet.latent_records import make_shapes
from dpmix.models.dirichlet.mean_logarithms import dirichlet_mle, simulate_means
from dpmix.release.sanitized import Release
from dpmix.run.model_protocols import ParametricModel
from dpmix.spec import load_spec
from dpmix.spec.run_spec import RunSpec
from papers.agreement import agreed, scalars
from papers.kept import CONFIGS as ALL
from papers.kept import SpecCell

__all__ = [
    "CONFIGS",
    "FULL",
    "GROUPS",
    "METHODS",
    "QUICK",
    "Cell",
    "Results",
    "Size",
    "draws_of",
    "shares_of",
]

CONFIGS = ALL
METHODS: dict[str, tuple[str, str]] = {
    "MCMC p1": ("", "p1"),
    "Boots": ("", ""),
    "DPBoots": ("bootstrap", ""),
    **{f"DPMCMC {prior}": ("data_augmentation", prior) for prior in ("p1", "p3", "p4")},
    **{f"DPreMCMC {prior}": ("replicated", prior) for prior in ("p1", "p3", "p4")},
    **{f"DPABC {prior}": ("abc", prior) for prior in ("p1", "p2", "p3", "p4", "p5")},
    **{f"DPapprox {prior}": ("normal_approximation", prior) for prior in ("p1", "p3", "p4")},
}
"""Sampler and prior of each method by the paper's name; the first two have no sampler, and see the data."""
GROUPS = {
    key: tuple(name for name, (sampler, _) in METHODS.items() if sampler == kind)
    for key, kind in (
        ("open", ""),
        ("boots", "bootstrap"),
        ("mcmc", "data_augmentation"),
        ("remcmc", "replicated"),
        ("abc", "abc"),
        ("approx", "normal_approximation"),
    )
}
"""Methods that are run together."""
SPLIT = "mechanism.split=0.25"
_INDEPENDENT = ("bootstrap", "abc")
_UNCENSORED = -600.0  # the log of a threshold below which no share is
_REPEATS = 4  # slice moves a draw

Floats = NDArray[np.float64]
Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Size:
    """How much is computed.

    Parameters
    ----------
    runs : int
        Data sets of each kind of section 4.1.
    releases : int
        Releases of Table 2.
    rounds : tuple of int
        Sweeps of each of the two chains of a method, half of them burn-in: the next ones are tried where the
        last did not settle. DPreMCMC, which leaves the posterior, has the first alone.
    draws : int
        Of methods whose draws are independent.
    large : int
        How many of the alphas of section 4.1, the first ones, have 5000 records too.
    """

    runs: int
    releases: int
    rounds: tuple[int, ...]
    draws: int
    large: int


QUICK = Size(runs=2, releases=4, rounds=(600,), draws=100, large=3)
FULL = Size(runs=5, releases=8, rounds=(1_000, 4_000, 16_000, 64_000), draws=100, large=3)


@dataclass(frozen=True)
class Cell(SpecCell):
    """Some methods, given repeated releases of data of one kind.

    Parameters
    ----------
    name : str
        Unique, as ``alpha3/n1000/eps0.5/abc``.
    spec : str
        File in configs.
    overrides : tuple of str
        ``key=value`` each, as ``--set``.
    methods : tuple of str
        Of `METHODS`.
    runs : int
        Data sets where these are simulated, else releases of the one.
    rounds : tuple of int
    draws : int
        As `Size` has them.
    """

    configs: ClassVar[Path] = CONFIGS
    name: str
    spec: str
    overrides: tuple[str, ...]
    methods: tuple[str, ...]
    runs: int
    rounds: tuple[int, ...]
    draws: int

    def compute(self, size: Size, folder: Path) -> dict[str, Any]:
        """Give every method the same releases, and keep what came out."""
        rows = []
        with contextlib.redirect_stderr(io.StringIO()):  # which threshold was chosen
            for run in range(self.runs):
                releases: dict[bool, Release] = {}
                rows.append({method: self._row(method, run, releases) for method in self.methods})
        return {"simulated": load_data(self._spec("", 0)).simulated, "rows": rows}

    def _settings(self, prior: str, run: int) -> list[str]:
        """Return what is changed of the spec for a prior and a run."""
        split = [] if prior in ("", "p1") else [SPLIT]
        seed = [f"data.seed={run + 1}"] if "compositions" in self.spec else []
        return [*self.overrides, *split, *seed]

    def _spec(self, prior: str, run: int) -> RunSpec:
        return load_spec(CONFIGS / self.spec, self._settings(prior, run))

    def _row(self, method: str, run: int, releases: dict[bool, Release]) -> dict[str, Any]:
        """Return what is kept of one method, given the releases made so far of these data."""
        sampler, prior = METHODS[method]
        rng = np.random.default_rng((run, list(METHODS).index(method)))
        if not sampler:
            values = load_data(self._spec("", run)).values
            return self._kept(draws_of(method, values, self.rounds[0], rng), values[:0], {})
        settings, split = self._settings(prior, run), prior not in ("", "p1")
        if split not in releases:
            releases[split] = dpmix.privatize(CONFIGS / self.spec, overrides=settings, quiet=True, yes=True)
        own = [f"sampler.kind={sampler}", *([f"model.prior={prior}"] if split else [])]
        spec, release = load_spec(CONFIGS / self.spec, [*settings, *own]), releases[split]
        start = time.process_time()
        model = build(spec, release)
        assert isinstance(model, ParametricModel)
        names = ["alpha", *(p.name for p in model.parameters if p.title == "predictive")]
        told: dict[str, Any] = {"threshold": release.mechanism["threshold"]}
        if sampler in _INDEPENDENT:
            drawn = model.make_chain(rng).run(self.draws, 1, 0)
            found = {name: drawn[name] for name in names}
        else:
            for sweeps in self.rounds[:1] if sampler == "replicated" else self.rounds:
                found, agreement = _two_chains(model, rng, sweeps, names)
                told |= {"sweeps": sweeps, **agreement}
                if agreement["settled"]:
                    break
        told["seconds"] = time.process_time() - start
        records = np.stack([found[name] for name in names[1:]], axis=1)
        return self._kept(found["alpha"], records, told)

    def _kept(self, alpha: Floats, records: Floats, told: dict[str, Any]) -> dict[str, Any]:
        """Return what is kept of the draws of alpha (m, d) and of predictive records (m, d)."""
        truth = load_spec(CONFIGS / self.spec, self.overrides).summary.truth
        shares = alpha / alpha.sum(axis=1, keepdims=True)
        kept = {**told, "alpha": alpha.mean(axis=0).tolist(), "mean": shares.mean(axis=0).tolist()}
        if truth is None:
            return {**kept, "shares": shares[:: max(1, len(shares) // 400)].tolist()}
        true = np.array(truth)
        kept["error_alpha"] = float(((alpha - true) ** 2).sum(axis=1).mean())
        kept["error_mean"] = float(((shares - true / true.sum()) ** 2).sum(axis=1).mean())
        if len(records):
            new = np.random.default_rng(1).dirichlet(true, 20_000)
            kept["coverage"] = float(Ellipsoid.of(records, 0.95, shares=True).holds(new).mean())
        return kept


def _two_chains(
    model: ParametricModel, rng: np.random.Generator, sweeps: int, names: list[str]
) -> tuple[dict[str, Floats], dict[str, Any]]:
    """Return the draws of two chains after each other, and how these agree on the logarithms of alpha."""
    each = [model.make_chain(chain).run(sweeps - sweeps // 2, 1, sweeps // 2) for chain in rng.spawn(2)]
    agreement = agreed(scalars("alpha", np.log(np.stack([found["alpha"] for found in each]))))
    return {name: np.concatenate([found[name] for found in each]) for name in names}, agreement


def draws_of(method: str, values: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Return draws (m, d) of alpha given the confidential data: of the posterior (MCMC p1), or of Boots."""
    n, d = values.shape
    means = np.log(np.maximum(values, 1e-300)).mean(axis=0)
    shapes, found = make_shapes(d), np.empty((draws, d))
    assert dirichlet_mle(means, shapes.alpha)
    if method == "Boots":
        simulated = np.empty(d)
        for row in found:
            simulate_means(rng, shapes, n, _UNCENSORED, simulated)
            dirichlet_mle(simulated, row)
        return found
    prior, root, alpha = gamma_prior(1.0, 0.1, d), np.empty((d, d)), shapes.alpha.copy()
    whiten(alpha, n, prior, root)
    for row in found:
        slice_alpha(rng, alpha, n, n * means, prior, root, _REPEATS)
        row[:] = alpha
    return found


def shares_of(result: dict[str, Any], method: str) -> list[Floats]:
    """Return the draws of E[x | alpha] of a method, an array (m, d) for each run."""
    return [np.array(row[method]["shares"]) for row in result["rows"]]
