"""Log prior densities at saved states, for power scaling.

Of a mixture the prior is that of what the chains hold: the base measure's density at the parameters of each
occupied cluster, and the concentration's where that is random. Of base measures the density is

    log g0(theta) - E[log g0(theta) | G0],

with the expectation in closed form. The difference is what makes power scaling one of the base *measure*: the
measure whose density is g0^a / integral of g0^a has, to first order in a - 1, the log density
a log g0 - (a - 1) E[log g0]. Were the integral left out, each cluster would bring a factor that depends on
the units of the data, and scaling would change how many clusters there are. Where location and scale of the
base measure are learned their own prior density is added. What no cluster holds, and the prior of the
partition, are not scaled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import special

from dpmix.kernels.beta_family import BetaGamma
from dpmix.kernels.learned_family import LearnedNormal, LearnedWishart
from dpmix.kernels.multivariate_family import NormalInverseWishart
from dpmix.kernels.normal_family import NormalInverseGamma, TruncatedNormalInverseGamma
from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.mechanisms.laws.every import expect
from dpmix.run.chains_reader import Chains, ChainSet, NamedChains
from dpmix.run.stored_parameters import Stored
from dpmix.summary.chains_account import spec_of
from dpmix.summary.check.replicators import Unavailable
from dpmix.summary.families.family import Family, Floats
from dpmix.summary.families.family_of_fit import family_of
from dpmix.summary.random_measures import BLOCK

__all__ = ["centred_log_density", "key_of_prior", "log_prior"]

_LEAST = 1e-300


def log_prior(chains: ChainSet) -> Floats:
    """Return the log prior density at each saved state, up to a constant, shape (chains, draws).

    Raises
    ------
    Unavailable
        Where the chains do not hold what the prior is of, or there is none.
    """
    if isinstance(chains, Chains):
        return _of_mixture(chains)
    assert isinstance(chains, NamedChains)  # the other kind
    model = str(chains.attrs.get("model", ""))
    makers = {
        "linear_regression": _of_regression,
        "naive_bayes": _of_naive_bayes,
        "multinomial": _of_multinomial,
        "dirichlet": _of_dirichlet,
    }
    if model not in makers:
        raise Unavailable(_WITHOUT.get(model, f"the model {model} does not give its prior's density"))
    found = makers[model](chains)
    if not np.isfinite(found).all():
        raise Unavailable("the prior has no density at some draw")
    return found


_WITHOUT = {
    "discrete": "the chains of the discrete model hold functionals of P, and not P, whose prior it is",
    "custom": "a custom model does not give its prior's density",
    "mixture": "the chains of a mixture of groups hold no components",
}
_KEYS = {
    "mixture": "model.base and model.concentration",
    "linear_regression": "model.prior_mean, prior_sd, sigma2_prior and x_prior",
    "naive_bayes": "model.prior",
    "multinomial": "model.prior",
    "dirichlet": "model.prior",
}


def key_of_prior(chains: ChainSet) -> str:
    """Return the keys of the spec that state the prior."""
    return _KEYS.get(str(chains.attrs.get("model", "mixture")), "the model's prior")


# ---- mixtures


def _of_mixture(chains: Chains) -> Floats:
    source = family_of(chains)
    out = np.zeros(chains.n_clusters.shape)
    for block in chains.blocks(BLOCK):
        there = np.isfinite(block.weights)
        rows = np.repeat(np.arange(len(there)), there.sum(axis=1))
        parts = {name: part[there] for name, part in block.parameters.items()}
        base = None if block.base is None else block.base[rows]
        each = centred_log_density(source, parts, base)
        sums: Floats = np.bincount(rows, each, minlength=len(there)).astype(np.float64)
        if isinstance(source, LearnedNormal | LearnedWishart):
            assert block.base is not None  # which such chains have
            sums = sums + source.log_base(block.base)
        out[block.chain, block.start : block.start + len(there)] = sums
    stated = (chains.spec.get("model") or {}).get("concentration")
    if isinstance(stated, Mapping):
        out += _gamma(chains.concentration, float(stated["shape"]), float(stated["rate"]))
    return out


def centred_log_density(
    source: Family | NormalInverseWishart, parameters: Mapping[str, Floats], base: Floats | None = None
) -> Floats:
    """Return log g0 of components as chains files hold them, less its mean under G0; shape (size,).

    Densities are of mean and variance (or covariance), or of the shapes a and b. `base` (size, 2, d):
    location and scale of a base measure that is learned. Components are then measured by it, which leaves
    the density as it is at the means of their priors.
    """
    if isinstance(source, LearnedNormal | LearnedWishart):
        assert base is not None  # which such chains have
        return centred_log_density(source.centre, source.relative(parameters, base))
    if isinstance(source, BetaGamma):
        a, b = (np.maximum(parameters[name], _LEAST) for name in ("a", "b"))
        return _gamma(a, source.a_shape, source.a_rate) + _gamma(b, source.b_shape, source.b_rate)
    if isinstance(source, NormalInverseWishart):
        return _wishart(source, parameters["mean"], parameters["covariance"])
    if not isinstance(source, NormalInverseGamma | TruncatedNormalInverseGamma):
        raise Unavailable(f"{type(source).__name__} does not give the density of the base measure")
    variance = np.maximum(parameters["variance"], _LEAST)
    log_mean, inverse = math.log(source.b) - float(special.digamma(source.a)), source.a
    if isinstance(source, TruncatedNormalInverseGamma):
        variance = variance + source.floor  # of a released value
        log_mean, inverse = source.prior_means()
    gap = source.lam * (parameters["mean"] - source.mu0) ** 2 / variance
    spread = -(source.a + 1.5) * (np.log(variance) - log_mean) - (source.b / variance - inverse)
    return np.asarray(spread - 0.5 * (gap - 1.0))


def _gamma(x: Floats, shape: float, rate: float) -> Floats:
    """Return the log density of Gamma(shape, rate) less its mean."""
    mean = float(special.digamma(shape)) - math.log(rate)
    return np.asarray((shape - 1.0) * (np.log(x) - mean) - (rate * x - shape))


def _wishart(source: NormalInverseWishart, mean: Floats, covariance: Floats) -> Floats:
    """Return the log density of the normal-inverse-Wishart less its mean."""
    d, nu = source.size, source.nu
    halves = special.digamma(0.5 * (nu - np.arange(d))).sum()
    log_mean = np.linalg.slogdet(source.psi)[1] - halves - d * math.log(2.0)
    logs = np.linalg.slogdet(covariance)[1]
    inverse = np.linalg.inv(covariance)
    trace = np.einsum("ij,kji->k", source.psi, inverse)
    gap = mean - source.mu0
    square = source.lam * np.einsum("ki,kij,kj->k", gap, inverse, gap)
    return np.asarray(-0.5 * (nu + d + 2.0) * (logs - log_mean) - 0.5 * (trace - nu * d) - 0.5 * (square - d))


# ---- parametric models, up to constants; of groups, all together


def _stored(chains: NamedChains, name: str) -> Stored | None:
    return next((parameter for parameter in chains.parameters if parameter.name == name), None)


def _read(chains: NamedChains, name: str) -> Floats:
    parameter = _stored(chains, name)
    if parameter is None:
        raise Unavailable(f"the chains do not hold {name}; fit again")
    return chains.read(parameter)


def _total(values: Floats) -> Floats:
    """Sum all but chains and draws."""
    return np.asarray(values.reshape(*values.shape[:2], -1).sum(axis=2))


def _logs(values: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(values, _LEAST)))


def _of_multinomial(chains: NamedChains) -> Floats:
    prior = np.asarray(json.loads(str(chains.attrs["prior"])), dtype=np.float64)
    return _total((prior - 1.0) * _logs(_read(chains, "p")))


def _of_naive_bayes(chains: NamedChains) -> Floats:
    prior = float(chains.constants["prior"])
    p = _read(chains, "p")
    if _stored(chains, "group_share") is not None:  # a priori classes and groups together are one Dirichlet
        p = p * _read(chains, "group_share")[..., None]
    out = _total(_logs(p))
    for parameter in chains.parameters:
        if parameter.name.startswith("p_feature_"):
            out = out + _total(_logs(chains.read(parameter)))
    return np.asarray((prior - 1.0) * out)


def _of_dirichlet(chains: NamedChains) -> Floats:
    if (chains.spec.get("sampler") or {}).get("kind") == "bootstrap":
        raise Unavailable("a bootstrap has no prior")
    prior = (chains.spec.get("model") or {}).get("prior")
    if not isinstance(prior, Mapping):
        raise Unavailable(f"the prior {prior} is made of the release, and its density is not kept")
    alpha = _read(chains, "alpha")
    shape, rate = float(prior["shape"]), float(prior["rate"])
    return _total((shape - 1.0) * _logs(alpha) - rate * alpha)


def _of_regression(chains: NamedChains) -> Floats:
    """Return that of the parameters of the rescaled variables, as the prior is stated."""
    from dpmix.models.linear_regression.latent_records import COV, MEAN, SD
    from dpmix.models.linear_regression.model import moments_law  # late: compiled code
    from dpmix.models.linear_regression.units import Units
    from dpmix.release.sanitized import Release

    if chains.attrs.get("prior_of") != "rescaled variables":
        raise Unavailable("an earlier version fitted these chains, under a prior in the units of the data")
    values = chains.observed.reshape(-1, 1)
    release = Release(
        values, ("statistic",), chains.mechanism, None, None, None, chains.n, trust="global", private=False
    )
    model: Any = spec_of(chains).model
    law = moments_law(model, release)
    units = Units.of(expect(chains.mechanism, ClampedMomentsLaw).bounds)
    beta = _read(chains, "beta")
    slopes = beta[..., 1:]
    intercept = (beta[..., 0] + slopes @ units.centre[:-1] - units.centre[-1]) / units.half[-1]
    rescaled = np.concatenate(
        [intercept[..., None], slopes * (units.half[:-1] / units.half[-1])], axis=-1
    ) - np.asarray(law.beta_mean)
    out = _total(-0.5 * np.asarray(law.beta_precision) * rescaled**2)
    if not law.known[SD]:
        variance = _read(chains, "sigma2") / units.scale(1.0, 2)
        out = out + _total(-(law.shape + 1.0) * np.log(variance) - law.scale / variance)
    if law.known[MEAN] and law.known[COV]:
        return out
    p = len(law.centre)
    stated = np.asarray(model.x_cov) if law.known[COV] else _read(chains, "x_cov")
    covariance = np.broadcast_to(stated / units.covariance(), (*beta.shape[:-1], p, p))
    inverse, logs = np.linalg.inv(covariance), np.linalg.slogdet(covariance)[1]
    if not law.known[MEAN]:
        gap = (_read(chains, "x_mean") - units.centre[:-1]) / units.half[:-1] - np.asarray(law.centre)
        square = np.einsum("...i,...ij,...j->...", gap, inverse, gap)
        out = out + _total(-0.5 * law.weight * square - 0.5 * logs)
    if not law.known[COV]:
        trace = np.einsum("ij,...ji->...", np.asarray(law.psi).reshape(p, p), inverse)
        out = out + _total(-0.5 * (law.freedom + p + 1.0) * logs - 0.5 * trace)
    return out
