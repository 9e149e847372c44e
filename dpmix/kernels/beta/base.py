"""The base measure of a beta kernel: stated, or the default."""

from __future__ import annotations

import numpy as np

from dpmix.errors import SpecError
from dpmix.kernels.base_of_spec import Fitted, SourcedKernel
from dpmix.kernels.beta.kernel import Beta
from dpmix.kernels.beta.section import LAMBDA, PLACE_SPREAD, BetaMixture
from dpmix.kernels.learned_base import LOCATION, learned_base
from dpmix.spec.model_section import SCALE_SHAPE, WEIGHT_SHAPE


def kernel_of(model: BetaMixture, given: Fitted) -> SourcedKernel:
    """Return the kernel of a spec's mixture.

    Raises
    ------
    SpecError
        When there are no public bounds.
    """
    if given.pairs[0] is None:
        raise SpecError("mechanism.domain: missing; a beta kernel lives on the public bounds")
    lo, hi = given.pairs[0]
    kernel = Beta(*model.gammas, lo, hi - lo)
    source = "bounds" if model.base_from_bounds else "spec"
    if not model.learns():
        return SourcedKernel(kernel, source)
    kernel = kernel._replace(lam=LAMBDA, place=float(kernel.learned_values[LOCATION, 0]))
    weight = WEIGHT_SHAPE if model.learns_weight else 0.0
    return SourcedKernel(kernel, source, learned_base(kernel, np.array([PLACE_SPREAD]), SCALE_SHAPE, weight))
