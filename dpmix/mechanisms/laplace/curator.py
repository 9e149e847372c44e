"""The Laplace mechanism on each record (methods, sections 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import LocalAdditive, PublicRecords, Stated, width
from dpmix.privacy.accounting import Guarantee, compose
from dpmix.privacy.conversions import laplace_epsilon, positive, rho_to_pure_bound
from dpmix.privacy.noise import Kind, calibrated

if TYPE_CHECKING:
    from dpmix.mechanisms.laplace.section import LaplaceMechanism


@dataclass(frozen=True)
class Laplace(LocalAdditive):
    """Release y_l + Laplace(s_l) for each of the d columns l of each record.

    With D_l the width of column l, it is eps-DP with eps = sum_l D_l/s_l, and rho-zCDP with
    rho = sum_l (eps_l - 1 + e^-eps_l), eps_l = D_l/s_l, both exactly. Epsilon (or rho) is shared equally:
    s_l = d D_l/eps.
    """

    kind: ClassVar[Kind] = "laplace"


def make(spec: LaplaceMechanism, records: PublicRecords) -> Laplace:
    """Calibrate to a spec's epsilon, rho or scale; the recorded guarantee never exceeds what was asked.

    Raises
    ------
    PrivacyError
        When it cannot be met.
    """
    domain, requested = spec.domain, spec.requested()
    assert domain is not None  # checked
    if spec.scale is not None:
        return Laplace(domain, (spec.scale,) * len(domain), "scale", requested)
    share = _epsilon_of_each(spec, len(domain))
    ((name, asked),) = requested.items()
    for _ in range(60):
        noises = [calibrated("laplace", width(p) / share, width(p), share) for p in domain]
        made = Laplace(domain, tuple(n.scale for n in noises), spec.calibration, requested)
        if made.guarantee.within(requested):
            return made
        share *= 1 - 4e-16  # the sum over columns, or rho, was rounded above what was asked
    raise PrivacyError(f"no Laplace noise meets {name} = {asked:g}")


def stated(spec: LaplaceMechanism, records: PublicRecords) -> Stated:
    """Return scales of a release made elsewhere, and its guarantee by formula.

    Without public bounds a scale alone gives no guarantee.
    """
    domain, columns = spec.domain, records.columns
    if spec.scale is not None:
        scale = (spec.scale,) * columns
        if domain is None:
            return {"scale": list(scale)}, Guarantee(None, None, None)
        losses = [width(pair) / s for pair, s in zip(domain, scale, strict=True)]
    else:
        assert domain is not None  # the spec requires it
        each = _epsilon_of_each(spec, columns)
        losses = [each] * columns
        scale = tuple(width(pair) / each for pair in domain)
    return {"scale": list(scale)}, compose("laplace", losses)


def _epsilon_of_each(spec: LaplaceMechanism, columns: int) -> float:
    if spec.epsilon is not None:
        return positive("mechanism.epsilon", spec.epsilon) / columns
    assert spec.rho is not None  # the spec states one of the three
    if spec.calibration == "paper":
        return rho_to_pure_bound(spec.rho) / columns
    return laplace_epsilon(spec.rho / columns)
