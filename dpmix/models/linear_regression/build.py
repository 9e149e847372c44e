"""Which linear regression a spec asks for, given a release: of one table, or of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmix.laws.every import expect
from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.models.linear_regression.conjugate_draws import Units
from dpmix.models.linear_regression.groups import GroupedRegression
from dpmix.models.linear_regression.latent_records import farthest_change
from dpmix.models.linear_regression.model import LinearRegression, check_widths, moments_law, start_values
from dpmix.models.linear_regression.section import LinearRegressionModel
from dpmix.models.sum_augmentation import default_offers

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec


def build(spec: RunSpec, release: Release) -> LinearRegression | GroupedRegression:
    """Return the model of a spec given a release; see `dpmix.api.task.build`."""
    assert isinstance(spec.model, LinearRegressionModel)  # the registry looks
    bounds = expect(release.mechanism, ClampedMomentsLaw).bounds
    p = len(bounds) - 1
    check_widths(spec.model, p)
    law = moments_law(spec.model, release)
    units = Units.of(bounds)
    start = start_values(spec.model, units)
    offers = 0
    if spec.sampler.algorithm == "soma":
        bound = farthest_change(p + 1) * law.rate
        offers = spec.sampler.offers or default_offers(release.n, bound)
    rows = units.rescaled(np.array(spec.model.predict or np.zeros((0, p)), dtype=np.float64))
    alone = LinearRegression(release, law, start, rows, offers, spec.sampler.joint)
    return GroupedRegression(release, alone) if release.groups else alone
