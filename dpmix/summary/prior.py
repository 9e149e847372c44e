"""What the prior of a mixture means, what is reported under it, and where it keeps the spread up.

Power scaling takes log prior densities at saved states. Of a mixture the prior is that of what the chains
hold: the base measure's density at the parameters of each occupied cluster, and the concentration's where
that is random. Of base measures the density is

    log g0(theta) - E[log g0(theta) | G0],

with the expectation in closed form. The difference is what makes power scaling one of the base *measure*: the
measure whose density is g0^a / integral of g0^a has, to first order in a - 1, the log density
a log g0 - (a - 1) E[log g0]. Were the integral left out, each cluster would bring a factor that depends on
the units of the data, and scaling would change how many clusters there are. Where location and scale of the
base measure are learned their own prior density is added. What no cluster holds, and the prior of the
partition, are not scaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.kernels.beta.section import Gammas, beta_in_words
from dpmix.kernels.layout import Learned, centred_gamma
from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.kernels.normal.family import LearnedNormal, NormalInverseGamma
from dpmix.kernels.normal.section import NIG, prior_in_words
from dpmix.models.meaning_base import Unavailable, dated_of, meaning_of
from dpmix.run.chains_reader import Chains, ChainSet
from dpmix.spec.days import Day
from dpmix.summary.density import correlation_names, correlations, names_of, of_column, scalars_of
from dpmix.summary.fitted_columns import (
    FittedColumn,
    columns_of,
    density_points,
    family_of,
    family_on_line,
    public_bounds,
)
from dpmix.summary.random_measures import BLOCK, draw_prior

if TYPE_CHECKING:
    from dpmix.columns.dated import Dated
    from dpmix.kernels.layout import Family, Floats
    from dpmix.summary.quantities import Wanted

_SOURCES = {
    "bounds": "It follows the public bounds.",
    "release": "It was computed from the release, which so was used twice.",
    "hidden": "It follows the public bounds: the noise hides the spread that was to be read off the release.",
    "paper": "It was computed from the release, which so was used twice, by a recipe for data whose variance "
    "is near 1.",
}


def base_in_words(chains: ChainSet) -> str:
    """Say what the base measure of a mixture means, of kernels whose parameters have the units of the data.

    Returns
    -------
    str
        Sentences; empty for other models, and for chains of earlier versions with another kernel.
    """
    if isinstance(chains, Chains):
        kernel = chains.layout.kernel
        fitted = [(column.family, column.name) for column in columns_of(chains, family_of(chains))]
    else:  # its draws are arrays by name, as those of groups
        kernel = str(chains.attrs.get("kernel", ""))
        if not meaning_of(chains).mixes or not kernel:
            return ""
        fitted = [(family_on_line(kernel, str(chains.attrs["base"]), chains.constants), "")]
    dated = dated_of(chains)
    meant = [*(_normal(family, name, dated) for family, name in fitted), _beta(kernel, chains.constants)]
    sentences = [f"{words[0].upper()}{words[1:]}." for words in meant if words]
    source = _SOURCES.get(str(chains.attrs.get("base_from", "")), "")
    return " ".join([*sentences, *filter(None, [source])])


def _normal(family: object, name: str, dated: Dated) -> str:
    if not isinstance(family, NormalInverseGamma | LearnedNormal):
        return ""
    learned = isinstance(family, LearnedNormal)
    place = Day(family.mu0) if dated.is_curve(name) else family.mu0
    weighted = isinstance(family, LearnedNormal) and family.weight > 0.0
    base = NIG(place, family.lam, family.a, family.b)
    return prior_in_words(base, name, learned=learned, weighted=weighted)


def _beta(kernel: str, constants: Mapping[str, Any]) -> str:
    if kernel != "beta":
        return ""
    names = ("base_a_shape", "base_a_rate", "base_b_shape", "base_b_rate")
    learned, weighted = (f"base_{name}_shape" in constants for name in ("rate", "lambda"))
    return beta_in_words(Gammas(*(constants[name] for name in names)), learned=learned, weighted=weighted)


# What is reported of a mixture, under its prior: draws of P that no release has moved


DRAWS = 4_000
_STREAM = -6  # of the generators that a summary derives from the chains' seed


@dataclass(frozen=True)
class PriorDraws:
    """Draws from the prior.

    Parameters
    ----------
    series : mapping of str to float64 array (draws,)
        Of the reported quantities, by name; of some of them.
    within_bounds : mapping of str to float
        Probability that the mean of a record lies within the public bounds, by column, where these are known.
    """

    series: Mapping[str, Floats]
    within_bounds: Mapping[str, float]


def mixture_prior(
    chains: Chains, source: Family | NormalInverseWishart, grids: Sequence[Floats], wanted: Sequence[Wanted]
) -> PriorDraws:
    """Draw P from the prior of a mixture, and return the quantities that its summary reports of P.

    P ~ PY(d, alpha, G0) by stick-breaking (`dpmix.summary.random_measures`), alpha from its own prior, and so
    location and scale of G0 where they are learned. The
    same random numbers serve every fit of one seed, so that a change of units changes nothing.

    Parameters
    ----------
    chains : Chains
        For concentration, discount and bounds.
    source : Family or NormalInverseWishart
        The base measure.
    grids : sequence of float64 array
        Of the columns: densities are of the points that the posterior's are.
    wanted : sequence of Wanted
        As the posterior's.
    """
    rng = chains.generator(0, _STREAM)
    stated = chains.stated("model").get("concentration")
    if isinstance(stated, Mapping):
        alpha = rng.gamma(float(stated["shape"]), 1.0 / float(stated["rate"]), DRAWS)
        alpha = np.maximum(alpha, 1e-12)
    else:
        alpha = np.full(DRAWS, float(chains.concentration.flat[0]))
    drawn = draw_prior(source, alpha, chains.constants["discount"], rng)
    columns = columns_of(chains, source)
    series: dict[str, Floats] = {"concentration": alpha} if isinstance(stated, Mapping) else {}
    within = {}
    for number, (column, grid, want) in enumerate(zip(columns, grids, wanted, strict=True)):
        part, points = of_column(drawn, column), density_points(grid)
        found = scalars_of(part, column, want, points)
        series |= dict(zip(names_of(column, want, points), found, strict=True))
        bounds = public_bounds(chains, number, len(columns))
        if bounds is not None:
            within[column.name] = float(((found[0] >= bounds[0]) & (found[0] <= bounds[1])).mean())
    if isinstance(source, NormalInverseWishart):
        found = list(correlations(drawn, source).T)
        series |= dict(zip(correlation_names(columns), found, strict=True))
    return PriorDraws(series, within)


# Where the prior keeps the spread of the records up: a posterior that reaches below the prior's interval


PULL = 0.5
"""By how many of its own standard deviations the prior moves a posterior before it is said."""


def held_up(
    series: Mapping[str, Floats], prior: Mapping[str, Floats], names: Iterable[str], level: float
) -> list[str]:
    """Return the spreads that the prior holds up, whose interval begins below the prior's own.

    So it is where the public bounds are wide for the records, under a base measure that is not learned: the
    prior of a cluster's variance has next to no mass near 0, so that an interval ends where the prior does,
    and the true standard deviation may be below it. So may be the errors of a regression whose prior has a
    fixed scale, whose slopes are then too flat: of the sums that the noise admits those of larger errors have
    flatter lines. So may be its predictors, for slopes are covariances over their variances. The contraction
    does not show this, as most of the prior's spread may be gone by then.

    Parameters
    ----------
    series : mapping of str to float64 array
        Posterior draws.
    prior : mapping of str to float64 array (draws,)
        Prior draws.
    names : iterable of str
        Of standard deviations of records, or of variances of errors or predictors.
    level : float
        Of the intervals.
    """
    held = []
    for name in names:
        if name not in prior:
            continue
        least, floor = (float(np.quantile(draws[name], 0.5 * (1.0 - level))) for draws in (series, prior))
        if least < floor and pull(series[name], prior[name]) > PULL:
            held.append(name)
    return held


def sds_with_floor(columns: Sequence[FittedColumn]) -> list[str]:
    """Return the standard deviations of columns whose scale is not learned; else there is mass near 0."""
    return [column.label("sd") for column in columns if not isinstance(column.family, Learned)]


def pull(posterior: Floats, prior: Floats) -> float:
    """Return by how many of its standard deviations the prior moves the posterior of a positive quantity up.

    Exact for normal laws of the logarithm: with prior N(m0, s0^2) and posterior N(m, s^2) the release alone
    would give the mean m + s^2 (m - m0) / (s0^2 - s^2). Spreads are interquartile ranges. Infinite where the
    posterior is no narrower than the prior and below it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        low, centre, high = np.log(np.quantile(posterior, (0.25, 0.5, 0.75)))
        low_prior, centre_prior, high_prior = np.log(np.quantile(prior, (0.25, 0.5, 0.75)))
    s, s0 = (high - low) / 1.349, (high_prior - low_prior) / 1.349
    if not np.isfinite([s, s0, centre]).all() or s0 <= 0.0:
        return 0.0
    if s >= s0:
        return float(np.inf if centre < centre_prior else 0.0)
    return float(s * (centre_prior - centre) / (s0**2 - s**2))


DRAWN = 1.0
"""By how many of its own standard deviations the prior draws a correlation towards 0 before it is said."""


def drawn_in(series: Mapping[str, Floats], prior: Mapping[str, Floats]) -> list[str]:
    """Return the correlations of columns that the prior draws towards 0 by more than `DRAWN`.

    Clusters are round a priori, whatever scales are learned: where the noise is not small beside the records,
    and they lie along a line, the posterior is nearer to 0 than the release, and intervals miss to that side.
    The contraction does not show it. Reckoned as in `pull`, for normal laws of Fisher's z = artanh r.

    Parameters
    ----------
    series : mapping of str to float64 array
        Posterior draws; of correlations those whose name begins so.
    prior : mapping of str to float64 array (draws,)
        Prior draws.
    """
    found = []
    for name, draws in series.items():
        if not name.startswith("correlation[") or name not in prior:
            continue
        low, centre, high = _z_quartiles(draws)
        low_prior, centre_prior, high_prior = _z_quartiles(prior[name])
        s, s0 = high - low, high_prior - low_prior
        if not s < s0:  # nothing was learnt, as the contraction says
            continue
        by = s / 1.349 * (centre_prior - centre) / ((s0**2 - s**2) / 1.349**2)
        if abs(by) > DRAWN and abs(centre) > abs(centre_prior):
            found.append(name)
    return found


def _z_quartiles(correlation: Floats) -> tuple[float, float, float]:
    """Return the quartiles of Fisher's z."""
    most = 1.0 - 1e-12
    low, centre, high = np.arctanh(np.clip(np.quantile(correlation, (0.25, 0.5, 0.75)), -most, most))
    return float(low), float(centre), float(high)


# Log prior densities, up to constants


def log_prior(chains: ChainSet) -> Floats:
    """Return the log prior density at each saved state, up to a constant, shape (chains, draws).

    Raises
    ------
    Unavailable
        Where the chains do not hold what the prior is of, or there is none.
    """
    if isinstance(chains, Chains):
        return _of_mixture(chains)
    found = meaning_of(chains).log_prior()
    if not np.isfinite(found).all():
        raise Unavailable("the prior has no density at some draw")
    return found


def _of_mixture(chains: Chains) -> Floats:
    source = family_of(chains)
    density = getattr(source, "centred_log_density", None)
    if density is None:
        raise Unavailable(f"{type(source).__name__} does not give the density of the base measure")
    out = np.zeros(chains.n_clusters.shape)
    for block in chains.blocks(BLOCK):
        there = np.isfinite(block.weights)
        rows = np.repeat(np.arange(len(there)), there.sum(axis=1))
        parts = {name: part[there] for name, part in block.parameters.items()}
        base = None if block.base is None else block.base[rows]
        each = density(parts, base)
        sums: Floats = np.bincount(rows, each, minlength=len(there)).astype(np.float64)
        if isinstance(source, Learned):
            assert block.base is not None  # which such chains have
            sums = sums + source.log_base(block.base)
        out[block.chain, block.start : block.start + len(there)] = sums
    stated = chains.stated("model").get("concentration")
    if isinstance(stated, Mapping):
        out += centred_gamma(chains.concentration, float(stated["shape"]), float(stated["rate"]))
    return out
