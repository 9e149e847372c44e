"""How much less of alpha a release tells than the records, which says where joint moves pay.

With x the records and T the sums of max(log x, log a), both draws of a plain sweep are those of a Gibbs
sampler: alpha given x, x given alpha and the release. Its slowest direction has an autocorrelation of
1 - I_r / I_x, the least over directions (Liu 1994), where I_x and I_r are the information on alpha in the
records and in the release, and the prior's in both:

    I_x = n V,    I_r = n C (W + 2 s^2 / n)^-1 C'    (a sum over parts),

V the covariance of log x, C that of log x with max(log x, log a), W of the latter, and s the scale of the
noise on T. They are taken at an alpha that the release tells, so that the same release gives the same number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmix.models.dirichlet.frame import Part
from dpmix.models.dirichlet.mle import dirichlet_mle
from dpmix.models.dirichlet.priors import AlphaPrior
from dpmix.models.dirichlet.start import possible

__all__ = ["joint_pays", "tie"]

Floats = NDArray[np.float64]

PAYS = 9.0  # ties from which joint moves pay, as measured: docs/compositions.md
_DRAWN = 4000  # records that covariances are taken of


def joint_pays(parts: list[Part], prior: AlphaPrior) -> bool:
    """Return whether joint moves of alpha and the records give more effective draws for their time."""
    return tie(parts, prior) > PAYS


def tie(parts: list[Part], prior: AlphaPrior) -> float:
    """Return the largest ratio of I_x to I_r over directions, less one: 0 where the release tells it all."""
    means = [possible(part.released, np.log(part.threshold)) for part in parts]
    sizes = np.array([part.size for part in parts], dtype=np.float64)
    alpha = np.ones(len(parts[0].released))
    dirichlet_mle(np.average(means, axis=0, weights=sizes), alpha)
    alpha = np.clip(alpha, 1e-2, 1e4)
    d, rng = len(alpha), np.random.default_rng(0)
    logs = (
        np.log(rng.standard_gamma(alpha + 1.0, (_DRAWN, d))) - rng.standard_exponential((_DRAWN, d)) / alpha
    )
    logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
    kept = np.maximum(logs, np.log(parts[0].threshold))
    both = np.cov(logs.T, kept.T)
    told = whole = np.diag(prior.rate**2 / prior.shape)
    for part in parts:
        noise = 2.0 * part.size * part.scale**2
        cross = both[:d, d:]
        told = told + part.size * cross @ np.linalg.solve(both[d:, d:] + noise * np.eye(d), cross.T)
        whole = whole + part.size * both[:d, :d]
    return float(np.linalg.eigvals(np.linalg.solve(told, whole)).real.max() - 1.0)
