"""Which method releases a posterior where the spec leaves it out: that of least expected error.

The errors are means over all databases of n records (`dpmix.mechanisms.posterior.expected_errors`), so that
the choice depends on n, prior, epsilon and delta alone.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Literal

from dpmix.errors import PrivacyError
from dpmix.mechanisms.posterior.calibrations import SMALLEST_DELTA, calibrated, proved
from dpmix.mechanisms.posterior.certificate import can_be_certified, neighbours
from dpmix.mechanisms.posterior.expected_errors import noise_errors, some_databases
from dpmix.posteriors.hellinger_law import Posteriors, weight_bits

__all__ = ["ChosenMethod", "best", "choose"]


@dataclass(frozen=True)
class ChosenMethod:
    """What was chosen, and by which expected errors.

    Parameters
    ----------
    calibration : str or None
        Of method hellinger; None where geometric noise errs less.
    errors : dict
        Expected Hellinger distance between released and true posterior under ``hellinger``, None where it
        cannot be had or nothing is proved of it; and under ``geometric``.
    """

    calibration: Literal["certified", "proved"] | None
    errors: dict[str, float | None]


def best(prior: tuple[float, ...], n: int, delta: float) -> Literal["certified", "proved"]:
    """Return ``certified`` where a certificate can be computed, else ``proved``; no data decide it."""
    known = delta >= SMALLEST_DELTA and can_be_certified(Posteriors(prior, n))
    return "certified" if known else "proved"


def choose(prior: tuple[float, ...], n: int, epsilon: float, delta: float, scale: float) -> ChosenMethod:
    """Choose between method hellinger, at its best calibration, and geometric noise; ties go to the noise.

    Parameters
    ----------
    prior, n, epsilon, delta
        Public.
    scale : float
        Of the geometric noise that meets epsilon.
    """
    try:
        of = Posteriors(prior, n)
        weight_bits(epsilon, delta, of.size)
        calibration = best(prior, n, delta)
    except PrivacyError:  # beyond what method hellinger takes
        return ChosenMethod(None, {"hellinger": None})
    family = neighbours(of) if can_be_certified(of) else None
    if family is None:
        noise = float(noise_errors(of, scale, some_databases(of)).mean())
    else:
        rows = family.some()
        noise = family.mean_error(rows, noise_errors(of, scale, family.counts(rows)))
    own = math.inf
    with contextlib.suppress(PrivacyError):
        if calibration == "certified":
            own = calibrated(family, epsilon, delta).error  # type: ignore[arg-type]  # there is one
        else:
            own = proved(prior, n, epsilon, delta).error
    errors = {"hellinger": own if math.isfinite(own) else None, "geometric": noise}
    return ChosenMethod(None if noise <= own else calibration, errors)
