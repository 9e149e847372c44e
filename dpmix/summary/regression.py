"""What is said of regressions alone: records beyond the public bounds, and a prior that makes no sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr

from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.mechanisms.laws.every import expect
from dpmix.results.nodes import Remark, percent
from dpmix.run.chains_reader import NamedChains
from dpmix.run.stored_parameters import Stored
from dpmix.summary.beyond import BEYOND
from dpmix.summary.dated import dated_of
from dpmix.summary.families.family import Floats
from dpmix.summary.remarks import prior_remarks

__all__ = ["RegressionAccount", "regression_account"]

KIND = "linear_regression"
_CURE = (
    "give model.prior_mean and model.prior_sd of variables rescaled to [-1, 1] and model.x_prior in the "
    "units of the data, or leave them out for priors that follow the bounds"
)

Pair = tuple[float, float]


@dataclass(frozen=True)
class RegressionAccount:
    """What is said of a regression.

    Parameters
    ----------
    beyond : mapping of str to float
        Posterior mean of the share of latent values beyond the public bounds, by column, as in
        `dpmix.summary.summary_result.Summary.beyond_bounds`; of groups as ``group,column``. Truncated
        responses have 0.
    absurd : list of Remark
        Where the prior expects the mean of a record beyond the bounds.
    remarks : list of Remark
        About shares beyond the bounds.
    """

    beyond: Mapping[str, float] = field(default_factory=dict)
    absurd: list[Remark] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)


def regression_account(chains: NamedChains) -> RegressionAccount:
    """Return what is said of a regression; of other models nothing."""
    if chains.attrs.get("model") != KIND:
        return RegressionAccount()
    bounds = _bounds(chains)
    model: dict[str, Any] = dict(chains.spec.get("model") or {})
    truncated = model.get("response") == "truncated"
    stored = {parameter.name: parameter for parameter in chains.parameters}
    groups = stored["beta"].groups
    drawn: dict[str, Floats] = {
        name: _drawn(chains, stored[name]) for name in ("beta", "sigma2", "x_mean", "x_cov") if name in stored
    }
    beyond: dict[str, float] = {}
    remarks = []
    for place, group in enumerate(groups or ("",)):
        own = {name: values[:, place] if groups else values for name, values in drawn.items()}
        found = _shares(own, model, list(bounds.values()), truncated)
        for name, share in zip(bounds, found, strict=True):
            beyond[f"{group},{name}" if group else name] = share
            if share > BEYOND:
                remarks.append(_remark(name, share, bounds[name], group, response=name == list(bounds)[-1]))
    absurd = prior_remarks(_within(chains, stored, model, bounds), bounds, _CURE)
    return RegressionAccount(beyond, absurd, remarks)


def _bounds(chains: NamedChains) -> dict[str, Pair]:
    """Return the public bounds by name of column, the response last."""
    law = expect(chains.mechanism, ClampedMomentsLaw)
    names = law.columns
    if len(set(names)) != len(law.bounds):
        names = (*(f"x{i + 1}" for i in range(len(law.bounds) - 1)), "y")
    dated = dated_of(chains)
    return {name: dated.pair(name, pair) or pair for name, pair in zip(names, law.bounds, strict=True)}


def _drawn(chains: NamedChains, parameter: Stored) -> Floats:
    """Return the draws of all chains together, (draws, ..)."""
    values = chains.read(parameter)
    return values.reshape(-1, *values.shape[2:])


def _get(own: Mapping[str, Floats], model: Mapping[str, Any], name: str) -> Floats:
    """Return a parameter, drawn (draws, ..) or known (1, ..)."""
    return own[name] if name in own else np.asarray(model[name], dtype=np.float64)[None]


def _shares(
    own: Mapping[str, Floats], model: Mapping[str, Any], bounds: list[Pair], truncated: bool
) -> list[float]:
    """Return the posterior mean of the share of each column's latent values beyond its bounds."""
    mean, cov = _get(own, model, "x_mean"), _get(own, model, "x_cov")
    slopes = own["beta"][:, 1:]
    at = own["beta"][:, 0] + (slopes * mean).sum(axis=1)
    spread = np.einsum("di,dij,dj->d", slopes, np.broadcast_to(cov, (len(slopes), *cov.shape[1:])), slopes)
    laws = [(mean[:, j], cov[:, j, j]) for j in range(mean.shape[1])]
    found = []
    for (centre, variance), (low, high) in zip(
        [*laws, (at, spread + _get(own, model, "sigma2"))], bounds, strict=True
    ):
        sd = np.sqrt(variance)
        found.append(float((ndtr((low - centre) / sd) + ndtr((centre - high) / sd)).mean()))
    if truncated:
        found[-1] = 0.0
    return found


def _within(
    chains: NamedChains, stored: Mapping[str, Stored], model: Mapping[str, Any], bounds: Mapping[str, Pair]
) -> dict[str, float]:
    """Return the prior probability that the mean of a record lies within the bounds, by column.

    Of a truncated response it is that of the normal law before it is cut.
    """
    drawn = {name: chains.prior(stored[name]) for name in ("beta", "x_mean") if name in stored}
    beta = drawn["beta"]
    if beta is None:
        return {}
    groups = bool(stored["beta"].groups)  # whose priors are the same
    beta = beta[:, 0] if groups else beta
    mean = drawn.get("x_mean")
    if mean is not None:
        mean = mean[:, 0] if groups else mean
    elif model.get("x_mean") is None:
        return {}
    else:
        mean = np.asarray(model["x_mean"], dtype=np.float64)[None]
    laws = [*(mean.T if "x_mean" in drawn else [None] * mean.shape[1])]
    laws.append(beta[:, 0] + (beta[:, 1:] * mean).sum(axis=1))
    return {
        name: float(((law >= low) & (law <= high)).mean())
        for (name, (low, high)), law in zip(bounds.items(), laws, strict=True)
        if law is not None
    }


def _remark(name: str, share: float, pair: Pair, group: str, *, response: bool) -> Remark:
    where = f" in {group}" if group else ""
    text = (
        f"Under the fit {percent(share)} of values of {name}{where} lie beyond the public bounds "
        f"[{pair[0]:.6g}, {pair[1]:.6g}] and count as clamped to them"
    )
    if response:
        text += (
            ", a Tobit model: beta and prediction are of responses before that, prediction_clamped of what "
            "is recorded. Where no response can lie beyond, model.response: truncated has errors that stay "
            "within."
        )
    else:
        text += ": the line is one in values before that, whose normal law alone says where they lie."
    return Remark(text, convergence=False)
