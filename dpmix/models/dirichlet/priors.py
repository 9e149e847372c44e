"""Priors of the parameters of a Dirichlet distribution, stated or taken from the first part of a release.

p1: independent gammas, stated. From refits of the bootstrap to the first part (Guo, Barrientos and Pena,
section 3.3.1): p3, independent gammas fitted to them by maximum likelihood, and p4, the same joined by a
Gaussian copula with the correlation of their normal scores. p2, the refits themselves, and p5, the posterior
given the first part, are draws without a density, for `dpmix.models.dirichlet.abc`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.models.dirichlet.bootstrap import draw_refits, make_refits
from dpmix.models.dirichlet.mle import gamma_mle
from dpmix.models.dirichlet.model import parts_of, settings_of
from dpmix.models.dirichlet.simulated_statistic import release_generator
from dpmix.release.sanitized import Release
from dpmix.spec.model_section import GammaPrior
from dpmix.spec.run_spec import RunSpec

__all__ = ["AlphaPrior", "elicited", "gamma_prior", "prior_of"]

Floats = NDArray[np.float64]

_FEWEST, _MOST = 1000, 4000  # refits that a prior is fitted to
_RECORDS = 20_000_000  # that these may simulate, beyond the fewest
_TRIES = 100  # times as many refits are tried
_RIDGE = 1e-6


class AlphaPrior(NamedTuple):
    """Gamma margins of the entries of alpha, joined by a Gaussian copula.

    Parameters
    ----------
    shape, rate : ndarray, shape (d,)
        Of the gamma margins.
    precision : ndarray, shape (d, d)
        The inverse R^-1 of the copula's correlation matrix, less the identity; zeros where the entries are
        independent. With z_j = Phi^-1(F_j(alpha_j)), the log density is the sum of the gammas' and of
        -z' precision z / 2, up to a constant.
    root : ndarray, shape (d, d)
        The lower Cholesky factor L of R, so that z = L u has correlation R for standard normal u.
    """

    shape: Floats
    rate: Floats
    precision: Floats
    root: Floats


def gamma_prior(shape: float, rate: float, parts: int) -> AlphaPrior:
    """Return independent gamma priors, the same for each of `parts` entries (p1)."""
    return AlphaPrior(
        np.full(parts, float(shape)), np.full(parts, float(rate)), np.zeros((parts, parts)), np.eye(parts)
    )


def elicited(alphas: Floats, joined: bool) -> AlphaPrior:
    """Fit gamma margins to draws of alpha (m, d), and a Gaussian copula where they are `joined` (p4)."""
    m, d = alphas.shape
    fits = np.array([gamma_mle(column) for column in alphas.T])
    correlation = np.eye(d)
    if joined:
        from scipy.special import ndtri  # late: importing them takes longer than all else that a fit imports
        from scipy.stats import rankdata

        scores = ndtri(rankdata(alphas, axis=0) / (m + 1))
        correlation = (1.0 - _RIDGE) * np.corrcoef(scores, rowvar=False) + _RIDGE * np.eye(d)
    precision = np.linalg.inv(correlation) - np.eye(d) if joined else np.zeros((d, d))
    return AlphaPrior(
        fits[:, 0].copy(),
        fits[:, 1].copy(),
        precision,
        np.asarray(np.linalg.cholesky(correlation), dtype=np.float64),
    )


def prior_of(spec: RunSpec, release: Release) -> AlphaPrior:
    """Return the prior of a spec that has a density: gamma, p3 or p4; p3 and p4 from the first of two parts.

    Refits are drawn by a generator that the release alone seeds: all chains have the same prior.

    Raises
    ------
    DataError
        When hardly any refit has an estimate.
    """
    prior = settings_of(spec).prior
    parts = parts_of(release)
    if isinstance(prior, GammaPrior):
        return gamma_prior(prior.shape, prior.rate, len(parts[0].released))
    assert prior in ("p3", "p4") and len(parts) == 2  # the spec and `used_parts` look
    refits = make_refits(parts[:1])
    alphas = np.empty((max(_FEWEST, min(_MOST, _RECORDS // refits.size)), len(refits.means)))
    drawn, tries = draw_refits(refits, release_generator(release, "prior"), alphas, _TRIES * len(alphas))
    if drawn < len(alphas):
        raise DataError(
            f"model.prior: {prior} is fitted to refits of simulated databases, and of {tries} only {drawn} "
            f"had a maximum likelihood estimate at the threshold {parts[0].threshold:g}; use a gamma "
            "{shape, rate}, or release with a smaller threshold"
        )
    return elicited(alphas, prior == "p4")
