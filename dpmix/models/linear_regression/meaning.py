"""What chains of a linear regression mean: prior, replicates, predictions, and what lies beyond bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpmix.columns.dated import Dated, dates_or_figures
from dpmix.laws.additive import draw_noise
from dpmix.laws.every import Law, expect
from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.models.linear_regression.regression_advice import expected_of_line, predictors_taken
from dpmix.models.meaning_base import (
    BEYOND,
    MOVED,
    Expected,
    Meaning,
    OwnAccount,
    Pair,
    ReplicatesOfGroups,
    StatisticReplicator,
    Unavailable,
    dated_of,
    draws_of,
    has,
    names_of_columns,
    sum_entries,
)
from dpmix.models.predictor_base import Input, Predictor, draws_in_a_row, group_input, parameter_of
from dpmix.numerics.in_words import brief, plainly
from dpmix.release.sanitized import Release
from dpmix.results.nodes import Remark, percent
from dpmix.spec.model_section import TAKEN_AS_CLAMPED

if TYPE_CHECKING:
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import NamedChains
    from dpmix.spec import RunSpec
    from dpmix.spec.summary_section import SummarySpec

Floats = NDArray[np.float64]

_STREAM = -16  # of the random numbers of predictions

# Replicates of clamped moments


class ClampedMomentsReplicator(StatisticReplicator):
    """Sums of products of variables clamped to their bounds and rescaled to [-1, 1], and Laplace noise."""

    what = "noisy moments"
    unit = "of the largest that all records could give"
    blind = (
        "The model has a parameter for each released moment: only priors and bounds show, not errors or "
        "predictors that are not normal."
    )

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.law: ClampedMomentsLaw = expect(chains.mechanism, ClampedMomentsLaw)
        self.low, self.high = np.array(self.law.bounds, dtype=np.float64).T
        self.model = chains.stated("model")
        self.size = int(chains.n * self.low.size)
        self.needed = tuple(name for name in ("beta", "sigma2", "x_mean", "x_cov") if has(chains, name))
        for name in ("sigma2", "x_mean", "x_cov"):
            if not has(chains, name) and self.model.get(name) is None:
                raise Unavailable(f"the chains do not hold {name}")

    @property
    def names(self) -> list[str]:
        """The factors of each moment."""
        p = self.low.size - 1
        stated = self.law.columns
        titles = [*stated] if len(stated) == p + 1 else [*(f"x{i + 1}" for i in range(p)), "y"]
        words = ["1", *titles]
        return [words[j] if i == 0 else f"{words[i]} {words[j]}" for i, j in _factors(p + 1)]

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw records, clamp them, and sum their products."""
        sums = self.sums(chain, state, self.chains.n, rng)
        return sums + draw_noise("laplace", self.law.scale[0], sums.size, rng)

    def sums(self, chain: int, state: int | tuple[int, int], n: int, rng: Generator) -> Floats:
        """Draw n records of a state, or of a state and a group, and sum their products once clamped."""
        p = self.low.size - 1
        beta = np.asarray(self._get("beta", chain, state))
        root = np.linalg.cholesky(np.asarray(self._get("x_cov", chain, state)).reshape(p, p))
        x = np.asarray(self._get("x_mean", chain, state)).ravel() + rng.standard_normal((n, p)) @ root.T
        clamped = self.model.get("predictors") == "clamped"
        line = np.clip(x, self.low[:-1], self.high[:-1]) if clamped else x
        sd = math.sqrt(float(np.asarray(self._get("sigma2", chain, state)).ravel()[0]))
        y = self._response(beta[0] + line @ beta[1:], sd, rng)
        unit = np.clip(2.0 * (np.column_stack([x, y]) - self.low) / (self.high - self.low) - 1.0, -1.0, 1.0)
        table = np.column_stack([np.ones(n), unit])
        products = table.T @ table
        return np.array([products[i, j] for i, j in _factors(p + 1)])

    def _response(self, mean: Floats, sd: float, rng: Generator) -> Floats:
        """Draw responses; errors are truncated to the bounds where the model says so."""
        if self.model.get("response") != "truncated":
            return np.asarray(mean + sd * rng.standard_normal(mean.size))
        from dpmix.numerics.bounded_normal import truncated  # late: it is compiled

        normals = rng.standard_normal(mean.size)
        return truncated(mean, np.array(sd), self.low[-1], self.high[-1], normals)

    def _get(self, name: str, chain: int, state: int | tuple[int, int]) -> Any:
        """Return a parameter, drawn or known."""
        if name not in self.values:
            return self.model[name]
        place = state if isinstance(state, tuple) else (state,)
        return self.values[name][(chain, *place)]


class GroupedMomentsReplicator(ReplicatesOfGroups, ClampedMomentsReplicator):
    """Noisy sizes, and sums of products of clamped and rescaled variables of each group."""

    what = "noisy sizes and moments"

    @property
    def names(self) -> list[str]:
        """The sizes, and the factors of each moment by group."""
        return self.named(super().names)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw records of each group, clamp them, and sum their products."""
        sizes = self.sizes(chain, state, rng)
        sums = [self.sums(chain, (state, group), size, rng) for group, size in enumerate(sizes.tolist())]
        return self.noisy(sizes, sums, rng)


def _factors(q: int) -> list[tuple[int, int]]:
    """Return the factors of each moment as columns of (1, x_1, .., x_p, y), p = q - 1."""
    return [*((i, q) for i in range(q + 1)), *((i, j) for i in range(q) for j in range(i, q) if j > 0)]


# Predictions


def responses(
    beta: Floats,
    sigma2: Floats,
    x: Floats,
    normals: Floats | None = None,
    truncated: tuple[float, float] | None = None,
) -> Floats:
    """Return the response at predictors under each draw of a regression's parameters.

    Parameters
    ----------
    beta : float64 array (q, draws)
        Coefficients in the units of the data, the intercept first.
    sigma2 : float64 array (draws,)
        Variance of the errors.
    x : float64 array (rows, q - 1)
        Predictors in the units of the data, within or beyond the public bounds: the line goes on.
    normals : float64 array (draws,), optional
        A standard normal for each draw: the response of a new record, its error included. Without, the mean
        response.
    truncated : (float, float), optional
        Bounds of the response, within which errors are truncated. The mean is then not on the line.

    Returns
    -------
    float64 array (rows, draws)
    """
    found = np.repeat(beta[:1], len(x), axis=0)
    for j in range(x.shape[1]):  # one by one: the same for any number of rows at once
        found += beta[1 + j] * x[:, j, None]
    sd = np.sqrt(sigma2)
    if truncated is None:
        return found if normals is None else found + sd * normals
    from dpmix.numerics import bounded_normal  # late: compiled code

    sds = np.broadcast_to(sd, found.shape)
    if normals is None:
        return np.asarray(bounded_normal.truncated_means(found, sds, *truncated))
    return np.asarray(bounded_normal.truncated(found, sds, *truncated, np.broadcast_to(normals, found.shape)))


class ResponsePredictor(Predictor):
    """The response of a regression."""

    columns = ("mean", "lower", "upper")

    def __init__(self, chains: NamedChains, options: SummarySpec) -> None:
        stored, model = parameter_of(chains, "beta", 1), chains.stated("model")
        beta = draws_in_a_row(chains, stored)
        super().__init__(float(options.level), beta.shape[1])
        self._beta = np.ascontiguousarray(beta.transpose(0, 2, 1))
        q = self._beta.shape[1]
        self.used = (stored,)
        known = model.get("sigma2")
        if known is None:
            self.used = (stored, parameter_of(chains, "sigma2", 0))
            self._sigma2 = draws_in_a_row(chains, self.used[1])
        else:
            self._sigma2 = np.full((len(beta), self.draws), float(known))
        self.new = options.interval == "record"
        # each stratum of the normal distribution once: their order alone is random, and the same for all rows
        order = chains.generator(0, _STREAM).permutation(self.draws)
        self._normals = ndtri((order + 0.5) / self.draws)
        law = expect(chains.mechanism, ClampedMomentsLaw)
        bounds = law.bounds
        self._truncated = bounds[-1] if model.get("response") == "truncated" else None
        # beyond their bounds values count as the nearer one where the line is in clamped predictors
        self._ends = np.array(bounds[:-1]).T if model.get("predictors") == "clamped" else None
        if self._ends is not None:
            self.outside = TAKEN_AS_CLAMPED
        names = names_of_columns(law, q)
        if len(bounds) != q:
            raise ValueError("bounds")
        dated = dated_of(chains)
        own = [
            Input(name, None, dated.pair(name, pair), dated.is_curve(name))
            for name, pair in zip(names[:-1], bounds[:-1], strict=True)
        ]
        self._group = group_input(chains)
        self.inputs = (*own, *self._group)
        of = f" of {names[-1]}" if names[-1] != str(q) else ""
        interval = "the response of a new record" if self.new else "the mean response"
        self.what = (
            f"mean is the mean response{of} in the units of the data; lower and upper are the "
            f"{100 * self.level:g}% interval of {interval}"
        )

    def _draws_of(self, rows: Floats, *, new: bool) -> Floats:
        normals = self._normals if new else None
        if self._ends is not None:
            own = rows[:, : self._ends.shape[1]]
            rows = np.column_stack([np.clip(own, *self._ends), rows[:, own.shape[1] :]])
        if not self._group:
            return responses(self._beta[0], self._sigma2[0], rows, normals, self._truncated)[:, None]
        found = np.empty((len(rows), self.draws))
        for group in range(len(self._beta)):
            own = rows[:, -1] == group
            found[own] = responses(
                self._beta[group], self._sigma2[group], rows[own, :-1], normals, self._truncated
            )
        return found[:, None]


# Records beyond the public bounds, and where the prior expects them


_CURE = (
    "give model.prior_mean and model.prior_sd of variables rescaled to [-1, 1] and model.x_prior in the "
    "units of the data, or leave them out for priors that follow the bounds"
)


def account_of(chains: NamedChains, level: float) -> OwnAccount:
    """Return what is said of a regression; truncated responses are never beyond their bounds.

    `level` is the posterior probability of the intervals.
    """
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
    stated: Any = chains.run_spec.model
    outside = stated.rows_outside(list(bounds.values())[:-1], list(bounds)[:-1])
    rows = [Remark(f"Of model.predict {text}.", convergence=False) for text in outside]
    remarks: list[Remark] = []
    cut: list[str] = []
    doubts: list[Remark] = []
    in_latent = model.get("predictors") != "clamped"
    for place, group in enumerate(groups or ("",)):
        own = {name: values[:, place] if groups else values for name, values in drawn.items()}
        found = _shares_beyond(own, model, list(bounds.values()))
        for name, share in zip(bounds, found, strict=True):
            key, response = f"{group},{name}" if group else name, name == list(bounds)[-1]
            if response and truncated:
                beyond[key] = 0.0
                doubts += _cut_off(name, share, bounds[name], group)
                continue
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
    of_prior = _held_in(chains, stored["beta"], drawn["beta"], level)
    doubts += [Remark(text, convergence=False, grave=False) for text in of_prior]
    return OwnAccount(
        beyond,
        latent=latent,
        within=_within(chains, stored, model, bounds),
        bounds=bounds,
        cure=_CURE,
        remarks=[*remarks, *doubts, *rows],
        of_predictions=[*(of_predictions if cut else []), *(doubt.text for doubt in doubts)],
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


def _shares_beyond(own: Mapping[str, Floats], model: Mapping[str, Any], bounds: list[Pair]) -> list[float]:
    """Return the posterior mean of the share of each column's latent values beyond its bounds.

    Of a response with truncated errors it is what the bounds cut off of the normal law.
    """
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
    if model.get("predictors") == "clamped":
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
        f"[{', '.join(plainly(end, '') for end in dates_or_figures(pair))}] and count as clamped to them"
    )
    if response:
        text += (
            ", a Tobit model: beta and prediction are of responses before that, prediction_clamped of what "
            "is recorded. Where no response can lie beyond, model.response: truncated has errors that stay "
            "within."
        )
        if share > MOVED:
            text += " The normal law alone says where they lie, and slopes and predictions follow it."
    else:
        text += ": the line is one in values before that, whose normal law alone says where they lie"
        text += ", and not in the table's where it has none there." if share > MOVED else "."
    return Remark(text, convergence=False, grave=False if response and share > MOVED else None)


def _cut_off(name: str, share: float, pair: Pair, group: str) -> list[Remark]:
    """Say where a truncated response is of a normal law of which the bounds cut off much."""
    if share <= MOVED:
        return []
    text = (
        f"Under the fit the public bounds [{', '.join(plainly(end, '') for end in dates_or_figures(pair))}] "
        f"cut off {percent(share)} of the normal law of {name}{f' in {group}' if group else ''}: how its "
        "values lie within is said by what is left of that law alone, and slopes and predictions follow it, "
        "also where the table's are skewed in another way."
    )
    return [Remark(text, convergence=False, grave=False)]


# Where the prior of the coefficients, and not the release, ends their intervals


_WIDER, _WIDER_CAUCHY = 2.0, 4.0
"""By how much the prior sds of the coefficients are multiplied to see what follows, or Cauchy scales."""
_FARTHER = 1.0
"""Posterior standard deviations by which an end of an interval then moves, from which on it is said."""


def rescaled_coefficients(beta: Floats, bounds: Any) -> Floats:
    """Return coefficients (.., q), the intercept first, of variables rescaled to [-1, 1] by their bounds."""
    low, high = np.array(bounds, dtype=np.float64).T
    half = 0.5 * (high - low)
    centre, slopes = low + half, beta[..., 1:]
    intercept = (beta[..., 0] + slopes @ centre[:-1] - centre[-1]) / half[-1]
    return np.concatenate([intercept[..., None], slopes * (half[:-1] / half[-1])], axis=-1)


def _held_in(chains: NamedChains, stored: Stored, beta: Floats, level: float) -> list[str]:
    """Say which coefficients' intervals the prior ends: under a wider one they would reach elsewhere.

    A slope is told by little where a predictor varies little beside its bounds, and a prior of light tails
    then says how steep it may be: with R-hat 1.00, and a contraction that looks well. Draws (draws, .., q)
    are weighed by the ratio of the wider prior to that of the fit.
    """
    if chains.attrs.get("prior_of") != "rescaled variables":  # an earlier version's prior
        return []
    stated: Any = chains.run_spec.model
    learned = chains.attrs.get("beta_scale") == "learned"  # earlier versions fixed it where none was stated
    wider = _WIDER_CAUCHY if learned else _WIDER
    rescaled = rescaled_coefficients(beta, expect(chains.mechanism, ClampedMomentsLaw).bounds)
    centre, scale = map(np.array, stated.coefficients(rescaled.shape[-1]))
    with np.errstate(over="ignore", invalid="ignore"):  # of priors that are absurdly narrow
        squares = ((rescaled - centre) / scale) ** 2
        if learned:
            ratios = np.log1p(squares) - np.log1p(wider**-2 * squares)
        else:
            ratios = 0.5 * (1.0 - wider**-2) * squares
        logs = ratios.sum(axis=-1)  # of each group by itself
        weights = np.broadcast_to(np.exp(logs - logs.max(axis=0))[..., None], beta.shape)
    names, tails = stored.labels(), (0.5 * (1.0 - level), 0.5 * (1.0 + level))
    found = []
    for name, draws, own in zip(
        names, beta.reshape(-1, len(names)).T, weights.reshape(-1, len(names)).T, strict=True
    ):
        sd = float(np.subtract(*np.quantile(draws, (0.75, 0.25)))) / 1.349
        here, there = (_weighted_quantiles(draws, by, tails) for by in (np.ones(draws.size), own))
        moved = float(np.abs(there - here).max())
        if moved > _FARTHER * sd > 0.0:
            slope = not name.endswith("intercept]")
            found.append((slope, moved / sd, name, here.tolist(), there.tolist()))
    if not found:
        return []
    *_, name, before, after = max(found)
    others = len(found) - 1
    more = f" ({others} more coefficient{' moves' if others == 1 else 's move'}, too)" if others else ""
    prior = (
        f"Cauchy priors {wider:g} times as wide" if learned else f"a model.prior_sd {wider:g} times as large"
    )
    cure = "by model.prior_sd" if learned else "or fit again with a larger prior_sd"
    return [
        f"The prior, as well as the release, says how far {name} reaches: under {prior} its interval would "
        f"be about {_ends(after)} in the place of {_ends(before)}{more}; state what is believed of the "
        f"coefficients, {cure}."
    ]


def _weighted_quantiles(draws: Floats, weights: Floats, levels: tuple[float, ...]) -> Floats:
    order = np.argsort(draws)
    below = np.cumsum(weights[order]) - 0.5 * weights[order]
    return np.asarray(np.interp(np.array(levels) * weights.sum(), below, draws[order]))


def _ends(pair: list[float]) -> str:
    return " to ".join(brief(end, 3) for end in pair)


def own_variances(covariance: Floats) -> Floats:
    """Return what each predictor varies by, given the others, on the diagonals of (.., p, p), and NaN beside.

    A slope is of this: where the prior holds it up, slopes are too flat, and those of predictors that go
    together too near to each other.
    """
    inverse = np.linalg.inv(covariance)
    found = np.full(covariance.shape, np.nan)
    for j in range(covariance.shape[-1]):
        found[..., j, j] = 1.0 / inverse[..., j, j]
    return found


class RegressionMeaning(Meaning):
    """Of linear regressions."""

    prior_keys = "model.prior_mean, prior_sd, sigma2_prior and x_prior"
    replicators = {"clamped_moments": ClampedMomentsReplicator}
    of_groups = {"clamped_moments": GroupedMomentsReplicator}
    advised = ("clamped_moments",)

    def log_prior(self) -> Floats:
        """Return that of the parameters of the rescaled variables, as the prior is stated."""
        from dpmix.models.linear_regression.conjugate_draws import Units
        from dpmix.models.linear_regression.latent_records import COV, MEAN, SD
        from dpmix.models.linear_regression.model import moments_law  # late: compiled code

        chains = self.chains
        if chains.attrs.get("prior_of") != "rescaled variables":
            raise Unavailable(
                "an earlier version fitted these chains, under a prior in the units of the data"
            )
        values = chains.observed.reshape(-1, 1)
        release = Release(
            values,
            ("statistic",),
            chains.mechanism,
            None,
            None,
            None,
            chains.n,
            trust="global",
            private=False,
        )
        model: Any = chains.run_spec.model
        law = moments_law(model, release)
        bounds = expect(chains.mechanism, ClampedMomentsLaw).bounds
        units, beta = Units.of(bounds), draws_of(chains, "beta")
        rescaled = rescaled_coefficients(beta, bounds) - np.asarray(law.beta_mean)
        squares = np.asarray(law.beta_precision) * rescaled**2
        learned = chains.attrs.get("beta_scale") == "learned"  # not by earlier versions, whatever was stated
        out = sum_entries(-np.log1p(squares) if learned else -0.5 * squares)
        if not law.known[SD]:
            variance = draws_of(chains, "sigma2") / units.variance(1.0)
            if (
                chains.attrs.get("sigma2_scale") == "learned"
            ):  # earlier versions fixed it where none was stated
                each = -0.5 * np.log(variance) - (law.shape + 0.5) * np.log1p(0.5 * variance / law.scale)
            else:
                each = -(law.shape + 1.0) * np.log(variance) - law.scale / variance
            out = out + sum_entries(each)
        if law.known[MEAN] and law.known[COV]:
            return out
        p = len(law.centre)
        stated = np.asarray(model.x_cov) if law.known[COV] else draws_of(chains, "x_cov")
        covariance = np.broadcast_to(stated / units.covariance(), (*beta.shape[:-1], p, p))
        inverse, logs = np.linalg.inv(covariance), np.linalg.slogdet(covariance)[1]
        if not law.known[MEAN]:
            gap = (draws_of(chains, "x_mean") - units.centre[:-1]) / units.half[:-1] - np.asarray(law.centre)
            square = np.einsum("...i,...ij,...j->...", gap, inverse, gap)
            out = out + sum_entries(-0.5 * law.weight * square - 0.5 * logs)
        if not law.known[COV]:
            psi = np.asarray(law.psi).reshape(p, p)
            if chains.attrs.get("x_cov_scale") == "learned":
                each = np.log1p(psi.diagonal() * np.diagonal(inverse, axis1=-2, axis2=-1))
                weighed = (law.freedom + 1.0) * each.sum(axis=-1)
            else:
                weighed = np.einsum("ij,...ji->...", psi, inverse)
            out = out + sum_entries(-0.5 * (law.freedom + p + 1.0) * logs - 0.5 * weighed)
        return out

    def floors(self) -> tuple[str, ...]:
        """Return the predictors' covariance and the variance of the errors, those whose scale is fixed."""
        attrs = self.chains.attrs  # earlier versions, which do not say, fixed both where nothing was stated
        return tuple(name for name in ("sigma2", "x_cov") if attrs.get(f"{name}_scale") != "learned")

    def spreads(self, name: str, values: Floats) -> Floats:
        """Return variances of errors as they are, and of covariances (.., p, p) `own_variances`."""
        return own_variances(values) if name == "x_cov" else values

    def predictor(self, options: SummarySpec) -> Predictor:
        """Return what predicts the response."""
        return ResponsePredictor(self.chains, options)

    def account(self, options: SummarySpec) -> OwnAccount:
        """Return the shares of values beyond the public bounds, under the fit, and what follows."""
        return account_of(self.chains, float(options.level))

    def dated(self, columns: frozenset[str]) -> Dated:
        """Return whether the response is a date, of which predictions are."""
        stated: Any = self.chains.mechanism.get("columns") or self.chains.columns
        return Dated(columns, response=bool(stated) and stated[-1] in columns)

    @staticmethod
    def expected(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
        """Return what is expected of the coefficients, whose priors are those of the model, rescaled."""
        return expected_of_line(law, model, n, spec)

    @staticmethod
    def taken(spec: RunSpec, model: Any) -> list[str]:
        """Say what predictors are taken to be where nobody states how they vary."""
        return predictors_taken(spec, model)


MEANING = RegressionMeaning
