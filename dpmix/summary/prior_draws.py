"""What is reported of a mixture, under its prior: draws of P that no release has moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpmix.kernels.learned_family import LearnedNormal, LearnedWishart
from dpmix.kernels.multivariate_family import NormalInverseWishart
from dpmix.run.chains_reader import Chains
from dpmix.summary.density import correlation_names, generator, names_of, of_column, scalars_of
from dpmix.summary.families.family import Family, Floats
from dpmix.summary.families.family_of_fit import columns_of
from dpmix.summary.grids import density_points, public_bounds
from dpmix.summary.quantities import Wanted
from dpmix.summary.random_measures import Measures, draw_measures
from dpmix.summary.several_columns import correlations

__all__ = ["PriorDraws", "mixture_prior"]

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
