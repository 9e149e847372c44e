"""The base measure of a beta kernel: stated, or the default."""

from __future__ import annotations

import numpy as np

from dpmix.errors import SpecError
from dpmix.kernels.base_of_spec import Fitted, SourcedKernel
from dpmix.kernels.beta.kernel import Beta
from dpmix.kernels.beta.section import PLACE_SPREAD, BetaMixture
from dpmix.kernels.learned_base import learned_base
from dpmix.spec.model_section import SCALE_SHAPE


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
    spread = np.array([PLACE_SPREAD])
    return SourcedKernel(
        kernel, source, learned_base(kernel, spread, SCALE_SHAPE) if model.learns() else None
    )
