"""The kernel of a mixture with its base measure: stated, from the public bounds, or from the release.

And the prior of the mixing measure, as the spec has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.api.task import Constants, pairs_of
from dpmix.errors import DataError, SpecError
from dpmix.kernels import Beta, MultivariateNormal, NormalNIG, NormalTruncatedNIG
from dpmix.kernels.beta import LAMBDA
from dpmix.kernels.learned_base import LearnedBase, learned_base
from dpmix.numerics.mixing import PitmanYor
from dpmix.spec.kinds import KERNELS
from dpmix.spec.model_section import (
    NIG,
    NIW,
    PLACE_SPREAD,
    SCALE_SHAPE,
    BetaMixture,
    GammaPrior,
    MixtureSection,
    MultivariateNormalMixture,
    NormalMixture,
    gammas_of,
    nig_from_bounds,
    niw_from_bounds,
)

if TYPE_CHECKING:
    from dpmix.mechanisms.laws.every import EstimatedMoments, Observation
    from dpmix.release.sanitized import Release
    from dpmix.spec import RunSpec

Kernel = NormalNIG | NormalTruncatedNIG | Beta | MultivariateNormal
Pairs = Sequence[tuple[float, float] | None]

_LAMBDA = 0.25  # of an empirical base: the prior sd of a cluster's mean is then the sd of the values
_BASES = {"beta": "gamma", "multivariate_normal": "niw"}  # base measures that have no choice of kind
_LEAST = 50.0  # the least sd is this part of the width of the bounds


class SourcedKernel(NamedTuple):
    """A kernel, and where its base measure is from.

    ``"spec"``, ``"bounds"``, ``"release"`` (used twice), ``"hidden"`` (from the bounds, as the noise hides
    the spread that was to be read off the release), or ``"paper"``. `learned`: what is learned of it, if
    anything.
    """

    kernel: Kernel
    source: str
    learned: LearnedBase | None = None


def kernel_of(spec: RunSpec, release: Release, seen: Observation, columns: Sequence[int]) -> SourcedKernel:
    """Return the kernel of a spec's mixture given a release (methods, section 15).

    Raises
    ------
    SpecError
        When neither a base nor public bounds are stated, or Psi is no covariance.
    DataError
        When the release does not have the moments that an empirical base is computed from.
    """
    model = spec.model
    assert isinstance(model, MixtureSection)  # the caller looks
    stated = pairs_of(spec, release)
    pairs: Pairs = [stated[column] if column < len(stated) else None for column in columns]
    if KERNELS.has(model.name, "kernel"):
        made = KERNELS.part(model.name, "kernel").of_spec(model, pairs[0])
        return SourcedKernel(made, "spec" if getattr(model, "base", None) is not None else "bounds")
    if isinstance(model, BetaMixture):
        return _beta(model, pairs)
    if isinstance(model, MultivariateNormalMixture):
        return _multivariate(model, release, columns, pairs)
    assert isinstance(model, NormalMixture)  # there is no other
    return _normal(model, release, seen, columns[0], pairs[0])


def _beta(model: BetaMixture, pairs: Pairs) -> SourcedKernel:
    if pairs[0] is None:
        raise SpecError("mechanism.domain: missing; a beta kernel lives on the public bounds")
    lo, hi = pairs[0]
    base, given = model.base, gammas_of(model)
    kernel = Beta(given.a_shape, given.a_rate, given.b_shape, given.b_rate, lo, hi - lo)
    source = "bounds" if base is None or base.from_bounds else "spec"
    learns = base is None or bool(base.learn)
    spread = np.array([PLACE_SPREAD])
    return SourcedKernel(kernel, source, learned_base(kernel, spread, SCALE_SHAPE) if learns else None)


def _normal(
    model: NormalMixture, release: Release, seen: Observation, column: int, pair: tuple[float, float] | None
) -> SourcedKernel:
    base = model.base
    source = "spec"
    learns = base is None or bool(getattr(base, "learn", False))
    if base is None or getattr(base, "from_bounds", False):
        made, source = nig_from_bounds(_bounds(pair)), "bounds"
    elif base.empirical == "paper":
        made, source = _as_published(release, seen.z), "paper"
    elif base.empirical:
        moments = _moments(release, column, pair)
        truncated = base.kind == "truncated_nig"
        noise = float(seen.noise_scale) ** 2 if truncated else 0.0
        if moments.shows_spread:
            made, source = _from_moments(moments, pair, noise), "release"
        elif truncated:
            raise DataError(
                "model.base.empirical: the noise hides the spread of the values, and truncated_nig has no "
                "other default; give mu0, lambda, a and b, or use kind: nig"
            )
        else:
            made, source = nig_from_bounds(_hidden(pair)), "hidden"
            learns = getattr(base, "learn", None) is not False
    else:
        # checked to be there
        made = NIG(*(float(v or 0.0) for v in (base.mu0, base.lambda_, base.a, base.b)))
    if base is not None and base.kind == "truncated_nig":
        return SourcedKernel(NormalTruncatedNIG(*made, float(seen.noise_scale) ** 2), source)
    kernel = NormalNIG(*made)
    return SourcedKernel(kernel, source, _learned(kernel, (made,)) if learns else None)


def _multivariate(
    model: MultivariateNormalMixture, release: Release, columns: Sequence[int], pairs: Pairs
) -> SourcedKernel:
    base = model.base
    if base is not None and not base.empirical and not base.from_bounds:
        psi = np.array(base.Psi, dtype=np.float64)
        if not np.linalg.eigvalsh(psi).min() > 0.0:
            raise SpecError("model.base.Psi: must be positive definite")
        centre = np.array(base.mu0, dtype=np.float64)
        assert base.lambda_ is not None and base.nu is not None  # checked to be there
        kernel = MultivariateNormal(centre, float(base.lambda_), float(base.nu), psi)
        niw = NIW(tuple(base.mu0 or ()), kernel.lam, kernel.nu, tuple(np.diagonal(psi).tolist()))
        return SourcedKernel(kernel, "spec", _learned(kernel, _columns(niw)) if base.learn else None)
    d = float(len(columns))
    learns = base is None or base.learn is not False
    if base is None or not base.empirical:
        found, source = niw_from_bounds([_bounds(pair) for pair in pairs]), "bounds"
    else:
        moments = [_moments(release, c, pair) for c, pair in zip(columns, pairs, strict=True)]
        if all(each.shows_spread for each in moments):
            parts = [_from_moments(m, pair) for m, pair in zip(moments, pairs, strict=True)]
            mu0, psi = np.array([p.mu0 for p in parts]), np.diag([2.0 * p.b for p in parts])
            return SourcedKernel(MultivariateNormal(mu0, _LAMBDA, d + 5.0, psi), "release")
        found, source = niw_from_bounds([_hidden(pair) for pair in pairs]), "hidden"
    kernel = MultivariateNormal(np.array(found.mu0), found.lam, found.nu, np.diag(found.psi))
    return SourcedKernel(kernel, source, _learned(kernel, _columns(found)) if learns else None)


def _columns(base: NIW) -> list[NIG]:
    return [base.column(number) for number in range(len(base.mu0))]


def _learned(kernel: NormalNIG | MultivariateNormal, columns: Sequence[NIG]) -> LearnedBase:
    """Return the base measure as one whose location varies as much as a cluster's mean around it does."""
    return learned_base(kernel, np.array([column.mean_sd for column in columns]), SCALE_SHAPE)


def _bounds(pair: tuple[float, float] | None) -> tuple[float, float]:
    if pair is None:
        raise SpecError(
            "model.base: missing, and there are no public bounds that a prior could follow; give the base, "
            "or the bounds in mechanism.domain"
        )
    return pair


def _hidden(pair: tuple[float, float] | None) -> tuple[float, float]:
    if pair is None:
        raise DataError(
            "model.base.empirical: the noise hides the spread of the values, and there are no public bounds "
            "that a prior could follow instead; give the base, or the bounds in mechanism.domain"
        )
    return pair


def _moments(release: Release, column: int, pair: tuple[float, float] | None) -> EstimatedMoments:
    found = release.mechanism.moments(release.values, column, release.n, pair)
    if found is None:
        raise DataError(
            f"model.base.empirical: what this {release.kind} releases does not tell the spread of the "
            "values; leave out model.base, or give mu0, lambda, a and b"
        )
    return found


def _from_moments(moments: EstimatedMoments, pair: tuple[float, float] | None, noise: float = 0.0) -> NIG:
    """Return the base whose clusters have half the spread of the values: E sigma2 = V/4, plus the noise's."""
    mean, variance = moments.mean, moments.variance
    if pair is not None:
        width = pair[1] - pair[0]
        mean = min(max(mean, pair[0]), pair[1])
        variance = min(max(variance, (width / _LEAST) ** 2), 0.25 * width**2)
    expected = 0.25 * variance + noise
    return NIG(mean, _LAMBDA if noise == 0.0 else expected / variance, 3.0, 2.0 * expected)


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


def base_constants(kernel: Kernel, learned: LearnedBase | None = None) -> Constants:
    """Return what summaries need to know of the base measure, by name."""
    own: Constants | None = getattr(kernel, "constants", None)  # of kernels that are registered
    if own is not None:
        return own
    if learned is not None and isinstance(kernel, Beta):
        spread = float(learned.spread[0])
        known = {"base_place_sd": spread, "base_rate_shape": learned.shape, "base_lambda": LAMBDA}
        return {**base_constants(kernel), **known}
    if learned is not None:
        several = isinstance(kernel, MultivariateNormal)
        spread = learned.spread if several else float(learned.spread[0])
        shape = "base_psi_shape" if several else "base_b_shape"
        return {**base_constants(kernel), "base_mu0_sd": spread, shape: learned.shape}
    if isinstance(kernel, Beta):
        names = ("base_a_shape", "base_a_rate", "base_b_shape", "base_b_rate")
        found: Constants = dict(zip(names, kernel, strict=False))
        return {**found, "domain_lo": kernel.lo, "domain_hi": kernel.lo + kernel.width}
    if isinstance(kernel, MultivariateNormal):
        names = ("base_mu0", "base_lambda", "base_nu", "base_Psi")
        return dict(zip(names, kernel, strict=True))
    return dict(zip(("base_mu0", "base_lambda", "base_a", "base_b"), kernel[:4], strict=True))


def mixing_of(model: MixtureSection) -> PitmanYor:
    """Return the prior of the mixing measure."""
    prior, discount = model.concentration, float(model.discount)
    if isinstance(prior, GammaPrior):
        return PitmanYor(1.0, discount, float(prior.shape), float(prior.rate))
    return PitmanYor(float(prior), discount)


def base_shapes(kernel: object, learned: LearnedBase | None) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of what chains files hold of a learned base measure for each draw."""
    if learned is None:
        return {}
    if isinstance(kernel, MultivariateNormal):
        d = len(learned.spread)
        return {"base_mu0": (d,), "base_psi": (d,)}
    if isinstance(kernel, Beta):
        return {"base_place": (), "base_rate": ()}
    return {"base_mu0": (), "base_b": ()}


def kernel_attrs(model: MixtureSection, source: str, *, learned: bool = False) -> dict[str, str]:
    """Return what chains files say of kernel and base measure, and of where the base is from."""
    name = model.name
    if KERNELS.has(name, "layout"):
        return {"kernel": name, "base": KERNELS.part(name, "layout").base, "base_from": source}
    base = _BASES.get(name) or str(getattr(getattr(model, "base", None), "kind", "nig"))
    base = f"learned_{base}" if learned else base
    return {"kernel": name, "base": base, "base_from": source}
