"""What is said of regressions alone: records beyond the public bounds, and where the prior expects them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.mechanisms.laws.every import expect
from dpmix.models.meaning_base import BEYOND, MOVED, OwnAccount, dated_of
from dpmix.release.dated import dates_or_figures
from dpmix.results.nodes import Remark, percent

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import NamedChains

_CURE = (
    "give model.prior_mean and model.prior_sd of variables rescaled to [-1, 1] and model.x_prior in the "
    "units of the data, or leave them out for priors that follow the bounds"
)

Pair = tuple[float, float]


def account_of(chains: NamedChains) -> OwnAccount:
    """Return what is said of a regression; truncated responses are never beyond their bounds."""
    bounds = _bounds(chains)
    model = chains.stated("model")
    truncated = model.get("response") == "truncated"
    stored = {parameter.name: parameter for parameter in chains.parameters}
    groups = stored["beta"].groups
    drawn: dict[str, Floats] = {
        name: np.concatenate(chains.read(stored[name]))  # the chains one after another
        for name in ("beta", "sigma2", "x_mean", "x_cov")
        if name in stored
    }
    beyond: dict[str, float] = {}
    latent: dict[str, tuple[str, str]] = {}
    remarks, cut = [], []
    in_latent = model.get("predictors") != "clamped"
    for place, group in enumerate(groups or ("",)):
        own = {name: values[:, place] if groups else values for name, values in drawn.items()}
        found = _shares_beyond(own, model, list(bounds.values()), truncated)
        for name, share in zip(bounds, found, strict=True):
            key, response = f"{group},{name}" if group else name, name == list(bounds)[-1]
            beyond[key] = share
            latent |= {key: (name, group)} if in_latent and not response else {}
            if share > BEYOND and response:
                cut.append(f"{percent(share)} of values of {name}{f' in {group}' if group else ''}")
            if share > BEYOND and (in_latent or response):
                remarks.append(_remark(name, share, bounds[name], group, response=response))
    of_predictions = [
        f"Under the fit {', '.join(cut)} lie beyond the public bounds and count as clamped to them, a Tobit "
        "model: means and intervals are of responses before that, and not of what is recorded."
    ]
    return OwnAccount(
        beyond,
        latent=latent,
        within=_within(chains, stored, model, bounds),
        bounds=bounds,
        cure=_CURE,
        remarks=remarks,
        of_predictions=of_predictions if cut else [],
    )


def _bounds(chains: NamedChains) -> dict[str, Pair]:
    """Return the public bounds by name of column, the response last."""
    law = expect(chains.mechanism, ClampedMomentsLaw)
    names = law.columns
    if len(set(names)) != len(law.bounds):
        names = (*(f"x{i + 1}" for i in range(len(law.bounds) - 1)), "y")
    dated = dated_of(chains)
    return {name: dated.pair(name, pair) or pair for name, pair in zip(names, law.bounds, strict=True)}


def _get(own: Mapping[str, Floats], model: Mapping[str, Any], name: str) -> Floats:
    """Return a parameter, drawn (draws, ..) or known (1, ..)."""
    return own[name] if name in own else np.asarray(model[name], dtype=np.float64)[None]


def _shares_beyond(
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
    elif model.get("predictors") == "clamped":
        found[-1] = _response_beyond(own, model, mean, cov, bounds)
    return found


_POINTS = 256
"""Fixed normal points, spread evenly, that stand for the latent predictors of records."""


def _response_beyond(
    own: Mapping[str, Floats], model: Mapping[str, Any], mean: Floats, cov: Floats, bounds: list[Pair]
) -> float:
    """Return the posterior mean of the share of responses beyond their bounds, clamped predictors given."""
    p, beta, root = mean.shape[1], own["beta"], np.linalg.cholesky(cov)
    step = 1.5  # to the root of x^(p + 1) = x + 1, whose powers spread multiples evenly
    for _ in range(60):
        step = (1.0 + step) ** (1.0 / (p + 1.0))
    points = ndtri((0.5 + np.outer(np.arange(1, _POINTS + 1), step ** -np.arange(1.0, p + 1.0))) % 1.0)
    (low, high), ends, total = bounds[-1], np.array(bounds[:-1]).T, 0.0
    sd = np.sqrt(_get(own, model, "sigma2"))
    for point in points:
        x = np.clip(mean + root @ point, *ends)
        at = beta[:, 0] + (beta[:, 1:] * x).sum(axis=1)
        total += float((ndtr((low - at) / sd) + ndtr((at - high) / sd)).mean())
    return total / _POINTS


def _within(
    chains: NamedChains, stored: Mapping[str, Stored], model: Mapping[str, Any], bounds: Mapping[str, Pair]
) -> dict[str, float]:
    """Return the prior probability that the mean of a record lies within the bounds, by column.

    Of a truncated response it is that of the normal law before it is cut.
    """
    drawn = {name: chains.prior(stored[name]) for name in ("beta", "x_mean") if name in stored}
    if stored["beta"].groups:  # whose priors are the same
        drawn = {name: None if values is None else values[:, 0] for name, values in drawn.items()}
    beta, mean = drawn["beta"], drawn.get("x_mean")
    if beta is None or (mean is None and model.get("x_mean") is None):
        return {}
    known = mean is None
    mean = np.asarray(model["x_mean"], dtype=np.float64)[None] if mean is None else mean
    names, laws = list(bounds), [beta[:, 0] + (beta[:, 1:] * mean).sum(axis=1)]
    if known:  # there is no prior of predictors
        names = names[-1:]
    else:
        laws = [*mean.T, *laws]
    return {
        name: float(((law >= bounds[name][0]) & (law <= bounds[name][1])).mean())
        for name, law in zip(names, laws, strict=True)
    }


def _remark(name: str, share: float, pair: Pair, group: str, *, response: bool) -> Remark:
    where = f" in {group}" if group else ""
    text = (
        f"Under the fit {percent(share)} of values of {name}{where} lie beyond the public bounds "
        f"[{', '.join(dates_or_figures(pair))}] and count as clamped to them"
    )
    if response:
        text += (
            ", a Tobit model: beta and prediction are of responses before that, prediction_clamped of what "
            "is recorded. Where no response can lie beyond, model.response: truncated has errors that stay "
            "within."
        )
    else:
        text += ": the line is one in values before that, whose normal law alone says where they lie"
        text += ", and not in the table's where it has none there." if share > MOVED else "."
    return Remark(text, convergence=False)
