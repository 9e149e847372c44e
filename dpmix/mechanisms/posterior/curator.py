"""Private release of a conjugate posterior of category probabilities (methods, section 6)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dpmix.errors import SpecError
from dpmix.mechanisms.curators.mechanism import PublicRecords, Stated
from dpmix.mechanisms.posterior.noise_on_counts import GeometricPosterior, LaplacePosterior, NoisyPosterior
from dpmix.mechanisms.posterior.released_posterior import PosteriorRelease
from dpmix.mechanisms.posterior.section import PosteriorMechanism

__all__ = ["GeometricPosterior", "LaplacePosterior", "NoisyPosterior", "PosteriorRelease", "from_spec"]


def from_spec(
    spec: PosteriorMechanism,
    columns: Sequence[str],
    n: int,
    categories: Sequence[tuple[str, ...] | None] = (),
) -> PosteriorRelease:
    """Return the calibrated release of a posterior.

    Where the spec leaves the method out and has a delta, the one of least expected error is taken
    (`dpmix.mechanisms.posterior.method_choice`); without a delta geometric noise.

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
    from dpmix.mechanisms.posterior.method_choice import best, choose

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
        calibration=calibration or best(spec.prior, n, spec.delta),
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
