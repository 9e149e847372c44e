"""Priors of the parameters of a Dirichlet distribution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["AlphaPrior", "gamma_prior"]

Floats = NDArray[np.float64]


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
