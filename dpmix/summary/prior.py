"""What the prior of a mixture means, what is reported under it, and where it keeps the spread up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmix.kernels.learned_family import LearnedNormal, LearnedWishart
from dpmix.kernels.multivariate_family import NormalInverseWishart
from dpmix.kernels.normal_family import NormalInverseGamma
from dpmix.results.nodes import Remark
from dpmix.run.chains_reader import Chains, NamedChains
from dpmix.spec.days import Day
from dpmix.spec.default_priors import NIG, prior_in_words
from dpmix.summary.dated import Dated, dated_of
from dpmix.summary.density import correlation_names, correlations, names_of, of_column, scalars_of
from dpmix.summary.families.family import Family, Floats
from dpmix.summary.families.family_of_fit import FittedColumn, columns_of, family_of, family_on_line
from dpmix.summary.grids import density_points, public_bounds
from dpmix.summary.quantities import Wanted
from dpmix.summary.random_measures import Measures, draw_measures, generator

__all__ = ["PULL", "PriorDraws", "floor_remarks", "mixture_prior", "prior_of", "prior_on_line", "pull"]

_SOURCES = {
    "bounds": "It follows the public bounds.",
    "release": "It was computed from the release, which so was used twice.",
    "hidden": "It follows the public bounds: the noise hides the spread that was to be read off the release.",
    "paper": "It was computed from the release, which so was used twice, by a recipe for data whose variance "
    "is near 1.",
}


def prior_of(chains: Chains) -> str:
    """Say what the base measure means, for the kernels whose parameters have the units of the data.

    Returns
    -------
    str
        Sentences; empty for chains of earlier versions with another kernel.
    """
    dated = dated_of(chains)
    meant = [
        *(_normal(column.family, column.name, dated) for column in columns_of(chains, family_of(chains))),
        _beta(chains.layout.kernel, chains.constants),
    ]
    return _sentences(meant, chains.attrs)


def prior_on_line(chains: NamedChains) -> str:
    """Say what the base measure of a mixture means whose draws are arrays by name, as those of groups.

    Returns
    -------
    str
        Sentences; empty for other models.
    """
    kernel = str(chains.attrs.get("kernel", ""))
    if chains.attrs.get("model") != "mixture" or not kernel:
        return ""
    family = family_on_line(kernel, str(chains.attrs["base"]), chains.constants)
    return _sentences([_normal(family, "", dated_of(chains)), _beta(kernel, chains.constants)], chains.attrs)


def _normal(family: object, name: str, dated: Dated) -> str:
    if not isinstance(family, NormalInverseGamma | LearnedNormal):
        return ""
    learned = isinstance(family, LearnedNormal)
    place = Day(family.mu0) if dated.is_curve(name) else family.mu0
    return prior_in_words(NIG(place, family.lam, family.a, family.b), name, learned=learned)


def _beta(kernel: str, constants: Mapping[str, Any]) -> str:
    if kernel != "beta":
        return ""
    names = ("base_a_shape", "base_a_rate", "base_b_shape", "base_b_rate")
    shapes = "a ~ Gamma({:g}, {:g}) and b ~ Gamma({:g}, {:g})".format(*(constants[name] for name in names))
    return f"a priori a cluster is Beta(a, b) on the bounds, {shapes}"


def _sentences(meant: Iterable[str], attrs: Mapping[str, Any]) -> str:
    sentences = [f"{words[0].upper()}{words[1:]}." for words in meant if words]
    source = _SOURCES.get(str(attrs.get("base_from", "")))
    return " ".join([*sentences, *([] if source is None else [source])])


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
    rng = generator(chains, 0, _STREAM)
    stated = (chains.spec.get("model") or {}).get("concentration")
    if isinstance(stated, Mapping):
        alpha = rng.gamma(float(stated["shape"]), 1.0 / float(stated["rate"]), DRAWS)
        alpha = np.maximum(alpha, 1e-12)
    else:
        alpha = np.full(DRAWS, float(chains.concentration.flat[0]))
    nothing = source.draw(rng, 1)[:, :0]
    empty = Measures(np.zeros(DRAWS, dtype=np.int64), np.empty(0), nothing, np.ones(DRAWS))
    base = source.draw_base(rng, DRAWS) if isinstance(source, LearnedNormal | LearnedWishart) else None
    drawn = draw_measures(empty, alpha, chains.constants["discount"], source, rng, base)
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


def floor_remarks(
    series: Mapping[str, Floats], prior: Mapping[str, Floats], columns: Sequence[FittedColumn], level: float
) -> list[Remark]:
    """Say where the interval of a standard deviation begins below the prior's own, and the prior pulls at it.

    So it is where the public bounds are wide for the records, under a base measure that is not learned: the
    inverse-gamma prior of a cluster's variance has next to no mass near 0, so that an interval ends where the
    prior does, and the true standard deviation may be below it. The contraction does not show this, as most
    of the prior's spread may be gone by then.

    Parameters
    ----------
    series : mapping of str to float64 array
        Posterior draws.
    prior : mapping of str to float64 array (draws,)
        Prior draws.
    columns : sequence of Column
        Of the records.
    level : float
        Of the intervals.
    """
    held = []
    for column in columns:
        name = column.label("sd")
        if name not in prior or isinstance(column.family, LearnedNormal):
            continue  # a learned scale has mass near 0
        least, floor = (float(np.quantile(draws[name], 0.5 * (1.0 - level))) for draws in (series, prior))
        if least < floor and pull(series[name], prior[name]) > PULL:
            held.append(f"{name} (its interval begins at {least:.3g}, the prior's at {floor:.3g})")
    if not held:
        return []
    text = (
        f"The prior holds up {' and '.join(held)}: the records may vary less than the interval says, as "
        "they do where public bounds are wide for them; tighter bounds, or a model.base of smaller clusters, "
        "would let the interval go lower."
    )
    return [Remark(text, convergence=False)]


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
