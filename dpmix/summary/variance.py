"""Where the uncertainty of a quantity comes from: sampling, privacy noise, the prior.

With V the variance of the posterior given the release, V0 that of the prior, and E V_clean the variance that
the posterior would have given records without noise, expected over the posterior,

    prior = min(1, V / V0),  sampling = (1 - prior) min(1, E V_clean / V),  privacy = the rest.

E V_clean is from second runs on replicated noise-free releases: for a few saved states n records are drawn
from the density of the state, and the same prior is fitted to them as they are (`dpmix.summary.clean_run`),
the concentration held at the state's. Of several columns each is fitted by itself. Of more than 20,000
records so many are drawn, and the variance, which falls as 1/n, is scaled. A release without noise is its
own.

The density's variances are means over the fitted density of the variances at its points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmix.kernels.learned_family import LearnedNormal
from dpmix.kernels.multivariate_family import NormalInverseWishart
from dpmix.kernels.normal_family import NormalInverseGamma
from dpmix.results.nodes import ABSENT, Each, ResultSection, Table, TableColumn, by_name
from dpmix.run.chains_reader import Chains, NamedChains
from dpmix.summary.check.replicators import places
from dpmix.summary.clean_run import clean_posteriors, runs_for
from dpmix.summary.density import of_column
from dpmix.summary.families.family import Family, Floats
from dpmix.summary.families.family_of_fit import FittedColumn, columns_of
from dpmix.summary.grids import spread
from dpmix.summary.quantities import quantiles
from dpmix.summary.random_measures import Measures, draw_measures, generator, join, states_at

__all__ = [
    "QUANTITIES",
    "Shares",
    "VarianceShares",
    "clean_variance_of_mean",
    "mixture_shares",
    "parametric_shares",
    "shares_of",
]

# The shares of a posterior variance: sampling, privacy noise, prior


QUANTITIES = ("mean", "median", "density")


@dataclass(frozen=True)
class Shares:
    """Shares of the posterior variance of one quantity, which sum to one."""

    sampling: float
    privacy: float
    prior: float

    @property
    def largest(self) -> str:
        """Name of the largest."""
        return max(("sampling", "privacy", "prior"), key=lambda name: float(getattr(self, name)))


@dataclass(frozen=True)
class VarianceShares:
    """Shares of mean, median and density.

    Parameters
    ----------
    columns : mapping of str to mapping of str to Shares or None
        By column, under "" where there is only one, and by quantity; empty where there are none.
    reason : str
        Why some are missing; empty where none is.
    """

    columns: Mapping[str, Mapping[str, Shares | None]] = field(default_factory=dict)
    reason: str = ""

    def section(self) -> ResultSection:
        """Return what is reported of them."""
        held: dict[str, Any] = {
            name: {key: None if part is None else dict(vars(part)) for key, part in parts.items()}
            for name, parts in self.columns.items()
        }
        held = by_name(held) or dict.fromkeys(QUANTITIES)
        rows = {
            f"{column},{quantity}" if column else quantity: part
            for column, parts in self.columns.items()
            for quantity, part in parts.items()
            if part is not None
        }
        names = ("sampling", "privacy", "prior")
        columns = [TableColumn(name, [getattr(part, name) for part in rows.values()]) for name in names]
        words = self.in_words()
        return ResultSection(
            "variance_shares",
            Each(
                held | ({"reason": self.reason} if self.reason else {}),
                Table("quantity", list(rows), columns) if words else ABSENT,
            ),
            "Where the uncertainty comes from",
            text=[[f"Share of the posterior variance: {words}"]] if words else (),
            page=[f"Not known: {self.reason}."] if self.reason and not words else (),
        )

    def named(self) -> dict[str, Shares]:
        """Return those that are there, by name such as "mean" or "mean of height"."""
        return {
            f"{quantity} of {column}" if column else quantity: part
            for column, parts in self.columns.items()
            for quantity, part in parts.items()
            if part is not None
        }

    def in_words(self) -> str:
        """Say it in one line; empty where there is nothing to say."""
        named = self.named()
        if not named:
            return ""
        figures = "; ".join(
            f"{name} {_percent(part.sampling)} sampling, {_percent(part.privacy)} privacy noise, "
            f"{_percent(part.prior)} prior"
            for name, part in named.items()
        )
        return f"{figures}. {self.cure()}"

    def cure(self) -> str:
        """Say what would help, by the largest shares."""
        named = self.named()
        parts = []
        for source, words in _CURES.items():
            about = [name for name, part in named.items() if part.largest == source]
            if about:
                parts.append(words.format("" if len(about) == len(named) else f" {_listed(about)}"))
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."


_CURES = {
    "privacy": "more epsilon would help{}",
    "sampling": "more records would help{}",
    "prior": "the prior decides{}",
}


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def shares_of(variance: float, prior: float, clean: float) -> Shares | None:
    """Return the shares of a posterior variance V, given V0 and E V_clean; None where V0 is infinite, or V 0.

    Parameters
    ----------
    variance, prior, clean : float
        V, V0 and E V_clean.
    """
    if not np.isfinite(prior) or not prior > 0.0 or not variance > 0.0:
        return None
    of_prior = min(1.0, variance / prior)
    sampling = (1.0 - of_prior) * min(1.0, clean / variance)
    return Shares(sampling, max(0.0, 1.0 - of_prior - sampling), of_prior)


# Where the uncertainty of a quantity comes from: sampling, privacy noise, the prior


RECORDS = 20_000
REPLICATES = 8
_STATES = 1_000
_POINTS = 40
_ATOMS = 20_000
_PRIOR = 4_000


def parametric_shares(chains: NamedChains) -> VarianceShares:
    """Return the shares of a parametric model, or why there are none.

    Of the discrete model that of the mean, whose variance given n records follows from their mean and sd.
    """
    model = str(chains.attrs.get("model", ""))
    if model == "mixture":
        return VarianceShares(reason="the chains of a mixture of groups hold no components to fit again")
    if model == "discrete":
        return _discrete_shares(chains)
    return VarianceShares(reason=f"the model {model} has no mean, median and density of one number a record")


def _discrete_shares(chains: NamedChains) -> VarianceShares:
    held = {(p.title, p.column): p for p in chains.parameters if p.role == "scalar" and not p.groups}
    columns = [column for title, column in held if title == "mean" and ("sd", column) in held]
    if not columns:
        return VarianceShares(reason="the chains hold no mean and standard deviation of one number a record")
    if chains.constants.get("discount", 0.0) > 0.0:
        return VarianceShares(reason="under a discount the variance given clean records has no closed form")
    found: dict[str, dict[str, Shares | None]] = {}
    for column in columns:
        of_mean, of_sd = held["mean", column], held["sd", column]
        before, before_sd = chains.prior(of_mean), chains.prior(of_sd)
        if before is None or before_sd is None:
            return VarianceShares(reason="the chains file keeps no draws from the prior; fit again")
        mean, sd = chains.read(of_mean), chains.read(of_sd)
        concentration = float(chains.constants["concentration"])
        clean = clean_variance_of_mean(mean, sd, before, before_sd, concentration, chains.n)
        share = shares_of(float(np.var(mean, ddof=1)), float(np.var(before, ddof=1)), clean)
        found[column] = {"mean": share, "median": None, "density": None}
    return VarianceShares(found, "of the discrete model the mean's alone is known, in closed form")


def clean_variance_of_mean(
    mean: Floats, sd: Floats, prior_mean: Floats, prior_sd: Floats, concentration: float, n: int
) -> float:
    """Return E V_clean of the mean of P ~ DP(alpha, G0) given n records of P, expected over the posterior.

    Given records the mean of P has the variance of H = (alpha G0 + sum of them) / (alpha + n) over
    alpha + n + 1. Of H both moments are expected given P.

    Parameters
    ----------
    mean, sd : float64 arrays
        Of records under draws of P from the posterior.
    prior_mean, prior_sd : float64 arrays (draws,)
        The same from the prior, which tell the moments of G0.
    concentration : float
        alpha.
    n : int
    """
    weight = n / (n + concentration)
    base = float(prior_mean.mean())
    base_square = float((prior_sd**2 + prior_mean**2).mean())
    square = weight * (sd**2 + mean**2) + (1.0 - weight) * base_square
    first = (weight * mean + (1.0 - weight) * base) ** 2 + weight**2 * sd**2 / n
    return float((square - first).mean() / (concentration + n + 1.0))


def mixture_shares(
    chains: Chains,
    source: Family | NormalInverseWishart,
    grids: Sequence[Floats],
    series: Mapping[str, Floats],
    prior: Mapping[str, Floats],
) -> VarianceShares:
    """Return the shares of each column's mean, median and density.

    Parameters
    ----------
    chains : Chains
    source : Family or NormalInverseWishart
    grids : sequence of float64 array
        Of the columns' densities.
    series : mapping of str to float64 array (C, D)
        Draws of what is reported.
    prior : mapping of str to float64 array
        Draws of the same from the prior.
    """
    if chains.draws * len(chains.ids) < 20:
        return VarianceShares(reason=f"{chains.draws} saved draws are too few for variances")
    columns = columns_of(chains, source)
    if chains.mechanism.protects and not all(runs_for(column.family) for column in columns):
        return VarianceShares(
            reason=f"fits to noise-free replicates are not known of the kernel {chains.layout.kernel}"
        )
    wanted = places(chains, _STATES)
    states = states_at(chains, source, wanted, spread_rest=True)
    order = [(chain, state) for chain, numbers in wanted for state in numbers.tolist()]
    some = [order[i] for i in spread(len(order), REPLICATES)]
    found: dict[str, dict[str, Shares | None]] = {}
    infinite = False
    for number, (column, grid) in enumerate(zip(columns, grids, strict=True)):
        points = grid[spread(grid.size, _POINTS)]
        # drawn at all states, and at a few where replicates come from
        all_states = of_column(join([states[place] for place in order]), column)
        few = [of_column(states[place], column) for place in some]
        alpha = np.array([chains.concentration[place] for place in some])
        rng = generator(chains, -2, -1 - number)
        before = _prior_variances(chains, column, points, prior, rng)
        weights = all_states.densities(points, column.family).mean(axis=0)
        weights /= weights.sum()
        now = _Variances.of(all_states, column, points, weights, series)
        clean = None if chains.mechanism.protects else now
        if clean is None:
            records = min(chains.n, RECORDS)
            drawn, each = clean_posteriors(
                few, alpha, chains.constants["discount"], column.family, records, rng
            )
            parts = np.arange(REPLICATES * each)[: drawn.counts.size].reshape(-1, each)
            runs = [_Variances.of(drawn.take(part), column, points, weights, {}) for part in parts]
            clean = _Variances.mean_of(runs, records / chains.n)
        infinite |= not np.isfinite(before.mean)
        before_density = float(weights @ before.density)
        found[column.name] = {
            "mean": shares_of(now.mean, before.mean, clean.mean),
            "median": shares_of(now.median, before.median, clean.median),
            "density": shares_of(
                float(weights @ now.density), before_density, float(weights @ clean.density)
            ),
        }
    reason = "the prior's variance of the mean is infinite" if infinite else ""
    return VarianceShares(found, reason)


@dataclass(frozen=True)
class _Variances:
    """Variances of mean and median, and of the density at points (points,)."""

    mean: float
    median: float
    density: Floats

    @classmethod
    def of(
        cls,
        drawn: Measures,
        column: FittedColumn,
        points: Floats,
        weights: Floats,
        series: Mapping[str, Floats],
    ) -> _Variances:
        """Return those of draws of P; of the scalars all draws where `series` has them."""
        family = column.family
        name = f"quantile[{column.name},0.5]" if column.name else "quantile[0.5]"
        mean = series.get(column.label("mean"))
        median = series.get(name)
        return cls(
            float(np.var(drawn.moments(family)[0] if mean is None else mean, ddof=1)),
            float(np.var(quantiles(drawn, family, 0.5) if median is None else median, ddof=1)),
            drawn.densities(points, family).var(axis=0, ddof=1),
        )

    @classmethod
    def mean_of(cls, parts: Sequence[_Variances], factor: float) -> _Variances:
        """Return means over replicates, times a factor."""
        return cls(
            factor * float(np.mean([part.mean for part in parts])),
            factor * float(np.mean([part.median for part in parts])),
            factor * np.mean([part.density for part in parts], axis=0),
        )


def _prior_variances(
    chains: Chains,
    column: FittedColumn,
    points: Floats,
    prior: Mapping[str, Floats],
    rng: np.random.Generator,
) -> _Variances:
    """Return those of P ~ PY(d, alpha, G0): Var of E(g | theta) is E[(1 - d)/(1 + alpha)] Var g under G0."""
    family = column.family
    alpha = prior.get("concentration", np.atleast_1d(chains.concentration.ravel()[0]))
    discount = float(chains.constants["discount"])
    factor = float(np.mean((1.0 - discount) / (1.0 + alpha)))
    if isinstance(family, LearnedNormal):
        return _learned_variances(family, column, factor, alpha, discount, points, prior, rng)
    atoms = family.draw(rng, _ATOMS)
    density = factor * family.densities(np.ones(_ATOMS), atoms, points).var(axis=0)
    if not np.isfinite(family.predictive_moments()[1]):
        return _Variances(np.inf, np.inf, density)
    name = f"quantile[{column.name},0.5]" if column.name else "quantile[0.5]"
    median = prior.get(name)
    if median is None:
        nothing = atoms[:, :0]
        empty = Measures(np.zeros(_PRIOR, dtype=np.int64), np.empty(0), nothing, np.ones(_PRIOR))
        drawn = draw_measures(empty, np.resize(alpha, _PRIOR), discount, family, rng)
        median = quantiles(drawn, family, 0.5)
    if isinstance(family, NormalInverseGamma):  # whose tails are heavy
        of_means = family.b / ((family.a - 1.0) * family.lam)
    else:
        of_means = float(family.moments(atoms)[0].var())
    return _Variances(factor * of_means, float(np.var(median)), density)


def _learned_variances(
    family: LearnedNormal,
    column: FittedColumn,
    factor: float,
    alpha: Floats,
    discount: float,
    points: Floats,
    prior: Mapping[str, Floats],
    rng: np.random.Generator,
) -> _Variances:
    """Return those where location and scale are learned: of E(g | base) there is a variance besides.

    That is the covariance of g at two components of one base measure, by pairs of draws.
    """
    base = family.draw_base(rng, _ATOMS)
    first, second = (
        family.densities(np.ones(_ATOMS), family.draw_given(rng, base), points) for _ in range(2)
    )
    between = np.mean((first - first.mean(axis=0)) * (second - second.mean(axis=0)), axis=0)
    density = factor * first.var(axis=0) + (1.0 - factor) * np.maximum(between, 0.0)
    of_mean = factor * family.b / ((family.a - 1.0) * family.lam) + family.spread**2
    median = prior.get(f"quantile[{column.name},0.5]" if column.name else "quantile[0.5]")
    if median is None:
        empty = Measures(np.zeros(_PRIOR, dtype=np.int64), np.empty(0), np.empty((2, 0)), np.ones(_PRIOR))
        base = family.draw_base(rng, _PRIOR)
        drawn = draw_measures(empty, np.resize(alpha, _PRIOR), discount, family, rng, base)
        median = quantiles(drawn, family, 0.5)
    return _Variances(of_mean, float(np.var(median)), density)
