"""Chains files with posteriors that are known exactly, written through the HDF5 layer, without a sampler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dpmix.kernels.beta.family import BetaGamma
from dpmix.kernels.layout import Floats
from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.kernels.normal.family import NormalInverseGamma, TruncatedNormalInverseGamma
from dpmix.store.h5 import create

PARAMETERS = ("mean", "variance", "a", "b", "covariance")
BASE = NormalInverseGamma(0.0, 0.1, 3.0, 3.0)


def a_spec(**changes: Any) -> dict[str, Any]:
    """A small spec; `changes` are dotted keys with two underscores, such as sampler__chains=2."""
    spec: dict[str, Any] = {
        "mechanism": {"kind": "laplace", "epsilon": 5.0, "domain": [-10.0, 10.0]},
        "model": {
            "kind": "mixture",
            "kernel": "normal",
            "base": {"kind": "nig", "mu0": BASE.mu0, "lambda": BASE.lam, "a": BASE.a, "b": BASE.b},
            "concentration": 1.0,
            "discount": 0.0,
        },
        "sampler": {"kind": "neal8", "iterations": 2000, "burn_in": 1000, "chains": 2, "seed": 1},
    }
    for key, value in changes.items():
        section, name = key.split("__")
        spec.setdefault(section, {})[name] = value
    return spec


def states_without_data(draws: int) -> dict[str, Floats]:
    """No records: no clusters, and P is a draw from its prior."""
    return {
        "n_clusters": np.zeros(draws),
        "weights": np.full((draws, 1), np.nan),
        "mean": np.full((draws, 1), np.nan),
        "variance": np.full((draws, 1), np.nan),
    }


def states_of_mixture(
    draws: int,
    rng: np.random.Generator,
    *,
    centres: tuple[float, ...] = (-5.0, 0.0, 5.0),
    n: int = 200,
    alpha: float = 1.0,
    extra: float = 0.5,
) -> dict[str, Floats]:
    """Independent draws with one component near each centre, and a Poisson number of small others."""
    most = len(centres) + 12
    out = {name: np.full((draws, most), np.nan) for name in ("weights", "mean", "variance")}
    clusters = np.empty(draws)
    for draw in range(draws):
        more = min(int(rng.poisson(extra)), 12)
        k = len(centres) + more
        sizes = np.concatenate([np.full(len(centres), (n - more) / max(len(centres), 1)), np.ones(more)])
        out["weights"][draw, :k] = rng.dirichlet([*sizes, alpha])[:k]
        mean, sd = BASE.draw(rng, more)
        out["mean"][draw, :k] = [*(c + 0.15 * rng.standard_normal() for c in centres), *mean]
        out["variance"][draw, :k] = [*(1.0 / rng.gamma(60, 1 / 60, len(centres))), *sd**2]
        clusters[draw] = k
    return {"n_clusters": clusters, **out}


def write_chains(
    path: Path,
    chains: list[dict[str, Floats]],
    *,
    spec: dict[str, Any] | None = None,
    ids: list[int] | None = None,
    base: NormalInverseGamma = BASE,
    observed: Floats | None = None,
    attrs: dict[str, Any] | None = None,
    constants: dict[str, Any] | None = None,
    columns: tuple[str, ...] = (),
) -> Path:
    """Write one chains file.

    A chain may add concentration, log_likelihood, acceptance_rate and allocations to its states. Constants of
    None are left out, and arrays are over column, column2.
    """
    draws = chains[0]["n_clusters"].size
    spec = spec or a_spec(sampler__iterations=1000 + draws, sampler__chains=len(chains))
    z = np.linspace(-12.0, 12.0, 200) if observed is None else observed
    with create(path, force=True) as root:
        root.set_attrs(
            {
                "spec": yaml.safe_dump(spec),
                "seed": "20241107",
                "dpmix_version": "0.1.0",
                "created_at": "2026-01-02T03:04:05+00:00",
                "versions": json.dumps({"numpy": "2.0", "numba": "0.60"}),
                "mechanism": json.dumps({"kind": "laplace", "scale": [4.0], "domain": [[-10.0, 10.0]]}),
                "epsilon": 5.0,
                "delta": 0.0,
                "rho": float("nan"),
                "private": True,
                "simulated": False,
                **(attrs or {}),
            }
        )
        posterior, stats = root.group("posterior"), root.group("sample_stats")
        width = max(chain["weights"].shape[1] for chain in chains)
        for group in (posterior, stats):
            group.coordinate(
                "chain", np.asarray(ids if ids is not None else range(len(chains)), dtype=np.int64)
            )
            group.coordinate("draw", draws)
        posterior.coordinate("component", width)
        posterior.dataset(
            "n_clusters", np.stack([c["n_clusters"] for c in chains]).astype(np.int32), ("chain", "draw")
        )
        alpha = np.stack([c.get("concentration", np.ones(draws)) for c in chains])
        posterior.dataset("concentration", alpha, ("chain", "draw"))
        for name in ("weights", *(p for p in PARAMETERS if p in chains[0])):
            extra = chains[0][name].shape[2:]
            padded = np.full((len(chains), draws, width, *extra), np.nan)
            for row, chain in enumerate(chains):
                padded[row, :, : chain[name].shape[1]] = chain[name]
            dims = ("chain", "draw", "component", "column", "column2")[: padded.ndim]
            for dim, size in zip(dims[3:], extra, strict=True):
                if dim not in posterior:
                    posterior.coordinate(dim, size)
            posterior.dataset(name, padded, dims)
        if "allocations" in chains[0]:
            labels = np.stack([chain["allocations"] for chain in chains]).astype(np.int16)
            posterior.coordinate("obs", labels.shape[2])
            posterior.dataset("allocations", labels, ("chain", "draw", "obs"))
        for name in ("acceptance_rate", "log_likelihood"):
            values = np.stack([c.get(name, np.full(draws, np.nan)) for c in chains])
            stats.dataset(name, values, ("chain", "draw"))
        data = root.group("observed_data")
        data.coordinate("obs", len(z))
        if z.ndim == 2:
            data.coordinate("column", np.asarray(columns) if columns else z.shape[1])
        data.dataset("z", z, ("obs", "column")[: z.ndim])
        constant = root.group("constant_data")
        constant.coordinate(
            "chain", np.asarray(ids if ids is not None else range(len(chains)), dtype=np.int64)
        )
        constant.dataset("seconds", np.full(len(chains), 2.0), ("chain",))
        values = {"base_mu0": base.mu0, "base_lambda": base.lam, "base_a": base.a, "base_b": base.b}
        values |= {"noise_scale": 4.0, "discount": 0.0, "acceptance_bound": float("nan"), **(constants or {})}
        for name, value in values.items():
            if value is None:
                continue
            dims = ("column", "column2")[: np.ndim(value)]
            for dim, size in zip(dims, np.shape(value), strict=True):
                if dim not in constant:
                    constant.coordinate(dim, size)
            constant.dataset(name, value, dims)
    return path


TRUNCATED = TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0, 1.5**2)
BETA = BetaGamma(2.0, 2.0, 3.0, 1.5, lo=-1.0, width=4.0)
NIW = NormalInverseWishart(np.zeros(2), 0.1, 5.0, np.array([[3.0, 0.5], [0.5, 2.0]]))


def _states(draws: int, rng: np.random.Generator, k: int) -> tuple[dict[str, Floats], Any]:
    """Weights of k components, the last of which is there in about half of the states; and where they are."""
    counts = k - rng.integers(0, 2, draws)
    weights = rng.dirichlet([20.0] * k + [1.0], draws)[:, :k]
    there = np.arange(k) < counts[:, None]
    return {"n_clusters": counts.astype(float), "weights": np.where(there, weights, np.nan)}, there


def states_of_beta(draws: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Beta components near Beta(5, 50), Beta(50, 50), Beta(50, 5)."""
    out, there = _states(draws, rng, 3)
    for name, centres in (("a", [5.0, 50.0, 50.0]), ("b", [50.0, 50.0, 5.0])):
        out[name] = np.where(there, centres * rng.gamma(50.0, 1 / 50.0, (draws, 3)), np.nan)
    return out


def states_of_truncated(draws: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Normal components near -5, 0 and 5."""
    out, there = _states(draws, rng, 3)
    out["mean"] = np.where(there, [-5.0, 0.0, 5.0] + 0.2 * rng.standard_normal((draws, 3)), np.nan)
    out["variance"] = np.where(there, rng.gamma(3.0, 1 / 3.0, (draws, 3)), np.nan)
    return out


def states_of_normals(draws: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Two bivariate normal components near (-3, -1), correlated, and (3, 2)."""
    out, there = _states(draws, rng, 2)
    centres = np.array([[-3.0, -1.0], [3.0, 2.0]])
    covariances = np.array([[[2.0, 0.8], [0.8, 0.5]], [[1.0, 0.0], [0.0, 0.3]]])
    scale = rng.gamma(50.0, 1 / 50.0, (draws, 2))[:, :, None, None]
    out["mean"] = np.where(there[:, :, None], centres + 0.2 * rng.standard_normal((draws, 2, 2)), np.nan)
    out["covariance"] = np.where(there[:, :, None, None], covariances * scale, np.nan)
    return out


def write_kernel(path: Path, kind: str, chains: list[dict[str, Floats]], **options: Any) -> Path:
    """Write a chains file of kernel beta, multivariate_normal, or normal with the truncated base."""
    nig = {f"base_{name}": None for name in ("mu0", "lambda", "a", "b")}
    domain = [[-10.0, 10.0]]
    mechanism: dict[str, Any] = {"kind": "gaussian", "scale": [1.5], "domain": domain}
    if kind == "truncated":
        kernel, base, constants = "normal", "truncated_nig", {"noise_scale": 1.5}
    elif kind == "beta":
        kernel, base = "beta", "gamma"
        names = ("a_shape", "a_rate", "b_shape", "b_rate")
        constants = nig | {f"base_{name}": getattr(BETA, name) for name in names}
        constants |= {"domain_lo": BETA.lo, "domain_hi": BETA.lo + BETA.width}
        mechanism["domain"] = [[BETA.lo, BETA.lo + BETA.width]]
    else:
        kernel, base = "multivariate_normal", "niw"
        constants = nig | {
            "base_mu0": NIW.mu0,
            "base_lambda": NIW.lam,
            "base_nu": NIW.nu,
            "base_Psi": NIW.psi,
        }
        constants |= {"noise_scale": np.array([1.5, 1.0])}
        mechanism = {"kind": "gaussian", "scale": [1.5, 1.0], "domain": [[-10.0, 10.0], [-5.0, 5.0]]}
        options.setdefault("columns", ("height", "weight/kg"))
        z = np.random.default_rng(0).normal([0.0, 0.5], [4.0, 2.5], (200, 2))
        options.setdefault("observed", z)
    constants |= options.pop("constants", {})
    attrs = {"kernel": kernel, "base": base, "mechanism": json.dumps(mechanism), **options.pop("attrs", {})}
    return write_chains(path, chains, attrs=attrs, constants=constants, **options)
