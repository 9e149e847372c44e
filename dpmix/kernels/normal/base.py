"""The base measure of a normal kernel: stated, from the public bounds, or from the release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.kernels.base_of_spec import Fitted, SourcedKernel, bounds_of_base
from dpmix.kernels.learned_base import LearnedBase, learned_base
from dpmix.kernels.normal.kernel import NormalNIG
from dpmix.kernels.normal.section import NIG, NormalMixture, nig_from_bounds
from dpmix.kernels.normal.truncated_nig import NormalTruncatedNIG
from dpmix.spec.model_section import SCALE_SHAPE, WEIGHT_SHAPE

if TYPE_CHECKING:
    from dpmix.laws.every import EstimatedMoments
    from dpmix.release.sanitized import Release

LAMBDA = 0.25  # of an empirical base: the prior sd of a cluster's mean is then the sd of the values
_LEAST = 50.0  # the least sd is this part of the width of the bounds


def kernel_of(model: NormalMixture, given: Fitted) -> SourcedKernel:
    """Return the kernel of a spec's mixture.

    Raises
    ------
    SpecError
        When neither a base nor public bounds are stated.
    DataError
        When the release does not have the moments that an empirical base is computed from.
    """
    base, pair, seen = model.base, given.pairs[0], given.seen
    source, learns = "spec", model.learns()
    if base is None or model.base_from_bounds:
        made, source = nig_from_bounds(bounds_of_base(pair)), "bounds"
    elif base.empirical == "paper":
        made, source = _as_published(given.release, seen.z), "paper"
    elif base.empirical:
        moments = given.moments(0)
        truncated = base.kind == "truncated_nig"
        noise = float(seen.noise_scale) ** 2 if truncated else 0.0
        if moments.shows_spread:
            made, source = from_moments(moments, pair, noise), "release"
        elif truncated:
            raise DataError(
                "model.base.empirical: the noise hides the spread of the values, and truncated_nig has no "
                "other default; give mu0, lambda, a and b, or use kind: nig"
            )
        else:
            made, source = nig_from_bounds(bounds_of_base(pair, hidden=True)), "hidden"
            learns = getattr(base, "learn", None) is not False
    else:
        # checked to be there
        made = NIG(*(float(v or 0.0) for v in (base.mu0, base.lambda_, base.a, base.b)))
    if base is not None and base.kind == "truncated_nig":
        return SourcedKernel(NormalTruncatedNIG(*made, float(seen.noise_scale) ** 2), source)
    kernel = NormalNIG(*made)
    learned = learned_around(kernel, (made,), weighted=model.learns_weight) if learns else None
    return SourcedKernel(kernel, source, learned)


def learned_around(kernel: object, columns: Sequence[NIG], *, weighted: bool) -> LearnedBase:
    """Return the base measure as one whose location varies as much as a cluster's mean around it does.

    `weighted`: whether lambda is learned, too.
    """
    spread = np.array([column.mean_sd for column in columns])
    return learned_base(kernel, spread, SCALE_SHAPE, WEIGHT_SHAPE if weighted else 0.0)


def from_moments(moments: EstimatedMoments, pair: tuple[float, float] | None, noise: float = 0.0) -> NIG:
    """Return the base whose clusters have half the spread of the values: E sigma2 = V/4, plus the noise's."""
    mean, variance = moments.mean, moments.variance
    if pair is not None:
        width = pair[1] - pair[0]
        mean = min(max(mean, pair[0]), pair[1])
        variance = min(max(variance, (width / _LEAST) ** 2), 0.25 * width**2)
    expected = 0.25 * variance + noise
    return NIG(mean, LAMBDA if noise == 0.0 else expected / variance, 3.0, 2.0 * expected)


def _as_published(release: Release, z: NDArray[np.float64]) -> NIG:
    """Return mu0, lambda, a and b from the released values (Beraha, Favaro and Rao 2024, section 6).

    The prior mean of the variance is half that of the released values, its prior variance 1/2 in the data's
    own units, which suits values whose variance is near 1.
    """
    if not release.mechanism.additive:
        raise DataError(
            f"model.base.empirical: what {release.kind} releases is not on the scale of the data; "
            "use true, or leave out model.base"
        )
    half = float(np.var(z, ddof=1)) / 2.0 if len(z) > 1 else 0.0
    if not half > 0.0 or not math.isfinite(half):
        raise DataError(
            "model.base.empirical: the released values have no finite positive variance; "
            "give mu0, lambda, a and b"
        )
    return NIG(float(np.mean(z)), 0.1, 2.0 + 2.0 * half**2, half * (1.0 + 2.0 * half**2))
