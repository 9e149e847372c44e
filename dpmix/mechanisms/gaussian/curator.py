"""The Gaussian mechanism on each record (methods, sections 1 and 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import LocalAdditive, PublicRecords, Stated, width
from dpmix.privacy.accounting import Guarantee, compose
from dpmix.privacy.conversions import classical_mu, gaussian_mu
from dpmix.privacy.noise import Kind, calibrated

if TYPE_CHECKING:
    from dpmix.mechanisms.gaussian.section import GaussianMechanism


@dataclass(frozen=True)
class Gaussian(LocalAdditive):
    """Release y_l + N(0, eta_l^2) for each of the d columns l of each record.

    With D_l the width of column l and mu^2 = sum_l (D_l/eta_l)^2, it is exactly (mu^2/2)-zCDP, and
    (eps, delta)-DP iff Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) <= delta (Balle and Wang 2018).
    The columns share equally: eta_l = sqrt(d) D_l/mu.
    """

    kind: ClassVar[Kind] = "gaussian"


def make(spec: GaussianMechanism, records: PublicRecords) -> Gaussian:
    """Calibrate to a spec's (epsilon, delta), rho or scale, never exceeding what was asked.

    Raises
    ------
    PrivacyError
        When it cannot be met, and for the classical calibration beyond epsilon = 1.
    """
    domain, requested = spec.domain, spec.requested()
    assert domain is not None  # checked
    if spec.scale is not None:
        return Gaussian(domain, (spec.scale,) * len(domain), "scale", requested)
    calibration = spec.calibration if spec.rho is None else "exact"
    mu = _mu(spec)
    root = math.sqrt(len(domain))
    for _ in range(60):
        share = 0.5 * mu * mu / len(domain)
        noises = [calibrated("gaussian", root * width(p) / mu, width(p), share) for p in domain]
        made = Gaussian(domain, tuple(n.scale for n in noises), calibration, requested, spec.delta)
        if made.guarantee.within(requested):
            return made
        mu *= 1 - 1e-15
    raise PrivacyError(f"no Gaussian noise meets {requested}")


def stated(spec: GaussianMechanism, records: PublicRecords) -> Stated:
    """Return scales of a release made elsewhere, and its guarantee by formula.

    Without public bounds a scale alone gives no guarantee.
    """
    domain, columns = spec.domain, records.columns
    if spec.scale is not None:
        scale = (spec.scale,) * columns
        if domain is None:
            return {"scale": list(scale)}, Guarantee(None, None, None)
    else:
        assert domain is not None  # the spec requires it
        scale = tuple(math.sqrt(columns) * width(pair) / _mu(spec) for pair in domain)
    losses = [0.5 * (width(pair) / s) ** 2 for pair, s in zip(domain, scale, strict=True)]
    return {"scale": list(scale)}, compose("gaussian", losses, delta=spec.delta)


def _mu(spec: GaussianMechanism) -> float:
    if spec.rho is not None:
        return math.sqrt(2 * spec.rho)
    assert spec.epsilon is not None and spec.delta is not None  # the spec states one of the three
    if spec.calibration == "classical":
        return classical_mu(spec.epsilon, spec.delta)
    return gaussian_mu(spec.epsilon, spec.delta)
