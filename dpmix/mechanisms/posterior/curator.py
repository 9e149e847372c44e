"""The private release of a conjugate posterior that a spec asks for, and its method (methods, section 6).

Where the spec leaves the method out it is that of least expected error. The errors are means over all
databases of n records (`dpmix.mechanisms.posterior.calibrations`), so that the choice depends on n, prior,
epsilon and delta alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.posterior.calibrations import (
    SMALLEST_DELTA,
    calibrated,
    noise_errors,
    proved,
    some_databases,
)
from dpmix.mechanisms.posterior.certificate import can_be_certified, neighbours
from dpmix.mechanisms.posterior.released_posterior import (
    GeometricPosterior,
    LaplacePosterior,
    PosteriorRelease,
)
from dpmix.posteriors.hellinger_law import Posteriors, weight_bits

if TYPE_CHECKING:
    from dpmix.mechanisms.curators.mechanism import PublicRecords, Stated
    from dpmix.mechanisms.posterior.law import PosteriorLaw
    from dpmix.mechanisms.posterior.section import PosteriorMechanism

__all__ = ["choose", "from_spec", "make", "meant", "stated"]


def from_spec(
    spec: PosteriorMechanism,
    columns: Sequence[str],
    n: int,
    categories: Sequence[tuple[str, ...] | None] = (),
) -> PosteriorRelease:
    """Return the calibrated release of a posterior.

    Where the spec leaves the method out and has a delta, the one of least expected error is taken (`choose`);
    without a delta geometric noise.

    Parameters
    ----------
    spec : PosteriorMechanism
        Checked.
    columns : sequence of str
        Name of the one column.
    n : int
        Number of confidential records.
    categories : sequence of tuple of str or None
        Its public categories, where they are known.

    Raises
    ------
    SpecError
        When prior, categories and columns do not go together.
    PrivacyError
        When the guarantee cannot be met.
    """
    if len(columns) != 1:
        raise SpecError(
            f"data.columns: names {len(columns)} columns, but posterior releases the counts of one"
        )
    names = categories[0] if categories and categories[0] is not None else ()
    if names and len(names) != len(spec.prior):
        raise SpecError(
            f"mechanism.prior: has {len(spec.prior)} entries, but data.categories lists {len(names)}; give "
            "one entry for each category"
        )
    assert spec.epsilon is not None  # the spec requires it
    public: dict[str, Any] = {"prior": spec.prior, "n": n, "categories": names}
    sensitivity = spec.sensitivity or (1 if len(spec.prior) == 2 else 2)
    if spec.noisy:
        of = LaplacePosterior if spec.method == "laplace" else GeometricPosterior
        return of.calibrated(spec.epsilon, sensitivity, **public)
    # numba: half a second
    from dpmix.mechanisms.posterior.exponential import HellingerPosterior

    assert spec.delta is not None  # the spec requires it
    calibration: Any = spec.calibration
    if spec.method is None and calibration is None:
        noisy = GeometricPosterior.calibrated(spec.epsilon, sensitivity, spec.delta, **public)
        found = choose(spec.prior, n, spec.epsilon, spec.delta, noisy.s)
        if found.calibration is None:
            return dataclasses.replace(noisy, choice=found.errors)
        public["choice"], calibration = found.errors, found.calibration
    return HellingerPosterior(
        **public,
        requested={"epsilon": spec.epsilon, "delta": spec.delta},
        epsilon=spec.epsilon,
        delta=spec.delta,
        calibration=calibration or _best(spec.prior, n, spec.delta),
    )


def make(spec: PosteriorMechanism, records: PublicRecords) -> PosteriorRelease:
    """Return the mechanism of a spec; see `from_spec`."""
    assert records.n is not None  # checked
    return from_spec(spec, records.names, records.n, records.categories)


def stated(spec: PosteriorMechanism, records: PublicRecords) -> Stated:
    """Describe a released posterior as its mechanism does; a certificate is sought, or found where it was.

    Raises
    ------
    SpecError
        When the number of records is missing.
    """
    n = spec.n if records.n is None else records.n
    if n is None:
        raise SpecError("mechanism.n: missing; a posterior does not tell of how many records it is")
    made = from_spec(spec, ("parameter",), n)
    return made.describe(), made.guarantee


def meant(spec: PosteriorMechanism, made: PosteriorLaw) -> list[tuple[str, Any, Any]]:
    """Return what a spec states of a released posterior, beside what was made, by key."""
    exponential = spec.method in (None, "hellinger")
    return [
        ("prior", tuple(spec.prior), made.prior),
        ("method", spec.method, made.method),
        ("calibration", spec.calibration if exponential else None, made.calibration),
        ("sensitivity", None if spec.sensitivity is None else (spec.sensitivity,), made.sensitivity),
    ]


# Where the spec leaves the method out


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


def _best(prior: tuple[float, ...], n: int, delta: float) -> Literal["certified", "proved"]:
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
        calibration = _best(prior, n, delta)
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
