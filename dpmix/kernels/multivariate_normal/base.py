"""The base measure of a multivariate normal kernel: stated, from the public bounds, or from the release."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.kernels.base_of_spec import Fitted, SourcedKernel, bounds_of_base
from dpmix.kernels.multivariate_normal.kernel import MultivariateNormal
from dpmix.kernels.multivariate_normal.section import NIW, MultivariateNormalMixture, niw_from_bounds
from dpmix.kernels.normal.base import LAMBDA, from_moments, learned_around


def kernel_of(model: MultivariateNormalMixture, given: Fitted) -> SourcedKernel:
    """Return the kernel of a spec's mixture.

    Raises
    ------
    SpecError
        When neither a base nor public bounds are stated, or Psi is no covariance.
    DataError
        When the release does not have the moments that an empirical base is computed from.
    """
    base, pairs = model.base, given.pairs
    if base is not None and not base.empirical and not base.from_bounds:
        psi = np.array(base.Psi, dtype=np.float64)
        if not np.linalg.eigvalsh(psi).min() > 0.0:
            raise SpecError("model.base.Psi: must be positive definite")
        return _sourced(base.numbers(), psi, "spec", model, learns=model.learns())
    learns = base is None or base.learn is not False
    if base is None or not base.empirical:
        found, source = niw_from_bounds([bounds_of_base(pair) for pair in pairs]), "bounds"
    else:
        moments = [given.moments(place) for place in range(len(pairs))]
        if all(each.shows_spread for each in moments):
            parts = [from_moments(m, pair) for m, pair in zip(moments, pairs, strict=True)]
            mu0, psi = np.array([p.mu0 for p in parts]), np.diag([2.0 * p.b for p in parts])
            return SourcedKernel(MultivariateNormal(mu0, LAMBDA, len(pairs) + 5.0, psi), "release")
        found, source = niw_from_bounds([bounds_of_base(pair, hidden=True) for pair in pairs]), "hidden"
    return _sourced(found, np.diag(found.psi), source, model, learns=learns)


def _sourced(
    base: NIW, psi: NDArray[np.float64], source: str, model: MultivariateNormalMixture, *, learns: bool
) -> SourcedKernel:
    kernel = MultivariateNormal(np.array(base.mu0, dtype=np.float64), float(base.lam), float(base.nu), psi)
    columns = [base.column(number) for number in range(len(base.mu0))]
    learned = learned_around(kernel, columns, weighted=model.learns_weight) if learns else None
    return SourcedKernel(kernel, source, learned)
