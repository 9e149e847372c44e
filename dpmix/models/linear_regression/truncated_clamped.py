"""Linear regression with truncated errors about a line in clamped predictors: both of the other two.

Given x~, clamped, the response has its line in these and the density of
`dpmix.models.linear_regression.truncated`; x is as in `dpmix.models.linear_regression.clamped_predictors`,
and scaled with its law, too. All moves are those of truncated errors, which go by what the line is in.
"""

from __future__ import annotations

from dpmix.models.linear_regression.clamped_predictors import (
    ClampedPredictorMoments,
    scale_with_laws,
    set_scaled,
)
from dpmix.models.linear_regression.joint import ACTIVE, approximate, carry, register_given_sums
from dpmix.models.linear_regression.latent_records import clip, offer_block
from dpmix.models.linear_regression.ridge import log_truncation
from dpmix.models.linear_regression.truncated import TruncatedMoments, line_in, mean_of
from dpmix.models.sum_augmentation import draw_record, draw_theta, log_change, recount, replace
from dpmix.numerics.bounded_normal import share_above, value_at


class TruncatedClampedMoments(TruncatedMoments, ClampedPredictorMoments):  # type: ignore[misc]  # one layout
    """What `Moments` holds, of a model of responses within their bounds and a line in clamped predictors."""

    __slots__ = ()


_SHARED = (recount, log_change, replace, draw_record, offer_block, carry, approximate, log_truncation)
for function in _SHARED:
    function.register(function.registered[(TruncatedMoments,)], TruncatedClampedMoments, compiled=False)
_draw_line_and_law = draw_theta.registered[(TruncatedMoments,)]


register_given_sums(TruncatedClampedMoments)


@line_in.register
def _line_in(model: TruncatedClampedMoments):
    return len(model.columns)


@set_scaled.register
def _set_scaled(model: TruncatedClampedMoments, values, record, i, centre, by, out):
    q = len(model.columns)
    out[:] = record
    out[i] = centre + by * (record[i] - centre)
    out[q + i] = clip(out[i])
    if out[q + i] != record[q + i]:
        share = share_above(record[q - 1], mean_of(model, values, record), values[q])
        out[q - 1] = value_at(share, mean_of(model, values, out), values[q])
        out[2 * q - 1] = out[q - 1]


@draw_theta.register
def _draw_theta(model: TruncatedClampedMoments, rng, theta, records, tally):
    _draw_line_and_law(model, rng, theta, records, tally)
    if theta.learnt[ACTIVE] > 0.0:
        scale_with_laws(model, rng, theta, records, tally)
