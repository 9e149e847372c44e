"""What is reported of compositions beside their scalars: densities of the shares, ellipsoids, censoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, betaln, digamma

from dpmix.errors import DataError, SpecError
from dpmix.kernels.layout import DEFAULT_POINTS
from dpmix.laws.every import expect
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.models.dirichlet.composition_results import (
    Censoring,
    ChosenThreshold,
    CompositionResults,
    Ellipsoid,
    Truth,
)
from dpmix.models.meaning_base import BAND_DRAWS, GriddedDensity
from dpmix.numerics.equal_cells import spread

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import ChainSet, NamedChains
    from dpmix.spec.summary_section import SummarySpec

MOST_DENSITIES = 32
"""Shares up to which the density of each is reported; of more, those of the largest mean."""
_DISTANCE_DRAWS = 2_000
_PRIOR_DRAWS = 4_000
_CENSORED_DRAWS = 1_000
_NODES = np.linspace(-30.0, 30.0, 1_201)  # in log(x / (1 - x))
_COVERAGE_DRAWS = 200_000
_PRIOR, _TRUTH = -4, -5  # streams of the generators derived from the chains' seed
_AT_ONCE = 1 << 22


def parameter_of(chains: NamedChains, name: str) -> Stored:
    """Return a parameter of the chains by name.

    Raises
    ------
    DataError
        When they hold none of that name.
    """
    for parameter in chains.parameters:
        if parameter.name == name:
            return parameter
    raise DataError(f"the chains of a model dirichlet hold no {name}")


def composition_of(
    chains: NamedChains, options: SummarySpec
) -> tuple[dict[str, CompositionResults], dict[str, GriddedDensity]]:
    """Summarize what is peculiar to compositions.

    Returns
    -------
    dict of str to Composition
        Ellipsoids, and what censoring does, by group; under "" where there are no groups.
    dict of str to GriddedDensity
        Predictive density of each share: Beta(alpha_j, A - alpha_j), A the sum of alpha, averaged over draws;
        under "GROUP,SHARE" where there are groups. Without a prior where that is made of the release.

    Raises
    ------
    SpecError
        When `summary.truth` or `summary.grid` is of another number of components.
    DataError
        When the chains do not hold what every method for compositions writes.
    """
    parameter = parameter_of(chains, "alpha")
    compositions: dict[str, CompositionResults] = {}
    densities: dict[str, GriddedDensity] = {}
    if parameter.groups and options.truth is not None:
        raise SpecError("summary.truth: is of one group; leave it out where the release is of several")
    for group in range(len(parameter.groups)) if parameter.groups else (None,):
        found, own = _of_group(chains, options, parameter, group)
        compositions[found.group] = found
        prefix = f"{found.group}," if found.group else ""
        densities |= {f"{prefix}{name}": density for name, density in own.items()}
    return compositions, densities


def _of_group(
    chains: NamedChains, options: SummarySpec, parameter: Stored, group: int | None
) -> tuple[CompositionResults, dict[str, GriddedDensity]]:
    """Summarize one group, or all records where there are no groups."""
    names = tuple(str(name) for name in parameter.coords[parameter.dims[-1]])
    alpha = chains.read(parameter, group=group).reshape(-1, len(names))
    means = alpha / alpha.sum(axis=1, keepdims=True)
    drawn = [chains.read(p) for p in _records(chains, names)]
    records = np.stack([d.ravel() if group is None else d[:, :, group].ravel() for d in drawn], axis=1)
    law = expect(chains.mechanism, LogMomentsLaw)
    if group is None:
        size, scale = max(zip(map(float, law.parts), law.scale, strict=True))
    else:
        sizes = chains.read(parameter_of(chains, "group_size"))
        size = max(float(sizes[:, :, group].mean()), 1.0)
        scale = law.scale[-1] / size
    ellipsoids = {
        "alpha": Ellipsoid.of(alpha, options.level),
        "mean": Ellipsoid.of(means, options.level, shares=True),
        "record": Ellipsoid.of(records, options.level, shares=True),
    }
    found = CompositionResults(
        components=names,
        sampler=chains.method,
        ellipsoids=ellipsoids,
        censoring=_censoring(chains, alpha, options.level, float(size), float(scale)),
        truth=_truth(chains, options, alpha, means, ellipsoids),
        group="" if group is None else parameter.groups[group],
        chosen=None
        if len(law.thresholds) < 2
        else ChosenThreshold(law.choice is not None, chains.constants.get("scores", 0) > 0),
    )
    chosen = np.sort(np.argsort(-means.mean(axis=0), kind="stable")[:MOST_DENSITIES])
    return found, _densities(chains, names, alpha, chosen.tolist(), options)


def _records(chains: NamedChains, names: Sequence[str]) -> list[Stored]:
    """Return the parameters that hold a record drawn from the predictive, a share each."""
    held = {p.column: p for p in chains.parameters if p.role == "draw" and p.title == "predictive"}
    if set(held) != set(names):
        raise DataError("the chains of a model dirichlet hold no predictive record of every share")
    return [held[name] for name in names]


def _densities(
    chains: NamedChains,
    names: Sequence[str],
    alpha: Floats,
    chosen: Sequence[int],
    options: SummarySpec,
) -> dict[str, GriddedDensity]:
    drawn = alpha[spread(len(alpha), BAND_DRAWS)]
    few = alpha[spread(len(alpha), _DISTANCE_DRAWS)]
    total, few_total = drawn.sum(axis=1), few.sum(axis=1)
    tails = [0.5 * (1.0 - options.level), 0.5 * (1.0 + options.level)]
    prior = _prior_draws(chains, len(names))
    found = {}
    for j in chosen:
        grid = _grid(options, j, len(names))
        mean, ends = np.empty(grid.size), np.empty((2, grid.size))
        step = max(1, _AT_ONCE // len(drawn))
        for start in range(0, grid.size, step):
            part = slice(start, start + step)
            at = _beta(grid[part], drawn[:, j], total - drawn[:, j])
            mean[part], ends[:, part] = at.mean(axis=0), np.quantile(at, tails, axis=0)
        prior_mean, apart = None, None
        if prior is not None:
            rest = prior.sum(axis=1) - prior[:, j]
            prior_mean = _beta(grid, prior[:, j], rest).mean(axis=0)
            apart = (_NODES, _at_nodes(few[:, j], few_total - few[:, j]), _at_nodes(prior[:, j], rest))
        found[names[j]] = GriddedDensity(grid, mean, ends[0], ends[1], prior_mean, apart)
    return found


def _grid(options: SummarySpec, number: int, count: int) -> Floats:
    """Return the grid of a share; points at 0 and 1, where densities may be infinite, are moved inside."""
    asked = options.grids()
    if len(asked) not in (0, 1, count):
        raise SpecError(
            f"summary.grid: has {len(asked)} grids, and the compositions have {count} components: give one "
            "[lo, hi, points] for each, or one for all"
        )
    lo, hi, points = (0.0, 1.0, DEFAULT_POINTS) if not asked else asked[number if len(asked) > 1 else 0]
    grid = np.linspace(lo, hi, points)
    half = 0.5 * min(grid[1] - grid[0], 1.0)
    grid[np.abs(grid) <= 1e-9], grid[np.abs(grid - 1.0) <= 1e-9] = half, 1.0 - half
    return grid


def _beta(grid: Floats, a: Floats, b: Floats) -> Floats:
    """Return densities of Beta(a, b), shape (draws, points); zero outside (0, 1)."""
    inside = (grid > 0.0) & (grid < 1.0)
    x = np.where(inside, grid, 0.5)
    logs = np.outer(a - 1.0, np.log(x)) + np.outer(b - 1.0, np.log1p(-x)) - betaln(a, b)[:, None]
    return np.asarray(np.exp(logs) * inside)


def _at_nodes(a: Floats, b: Floats) -> Floats:
    """Return the average of beta densities at nodes in log(x / (1 - x))."""
    below, above = -np.logaddexp(0.0, -_NODES), -np.logaddexp(0.0, _NODES)
    return np.asarray(
        np.exp(np.outer(a, below) + np.outer(b, above) - betaln(a, b)[:, None]).mean(axis=0), dtype=np.float64
    )


def _prior_draws(chains: ChainSet, d: int) -> Floats | None:
    """Draw alpha from the prior; None where it is made of the release, or the method has none."""
    prior = chains.stated("model").get("prior")
    if chains.method == "bootstrap" or not isinstance(prior, Mapping):
        return None
    rng = chains.generator(0, _PRIOR)
    drawn = rng.gamma(float(prior["shape"]), 1.0 / float(prior["rate"]), (_PRIOR_DRAWS, d))
    return np.maximum(drawn, 1e-12)


def prior_draws_of(chains: ChainSet, parameter: Stored) -> Floats | None:
    """Draw alpha, or the expected shares, from the prior; shape (draws, ..) of a parameter's entries."""
    if parameter.name not in ("alpha", "mean"):
        return None
    alpha = _prior_draws(chains, parameter.shape[-1])
    if alpha is None:
        return None
    found = alpha if parameter.name == "alpha" else alpha / alpha.sum(axis=1, keepdims=True)
    between = parameter.shape[2:-1]  # groups, of the same prior
    return np.broadcast_to(
        found.reshape(len(found), *(1 for _ in between), -1), (len(found), *between, found.shape[1])
    )


def _censoring(chains: ChainSet, alpha: Floats, level: float, size: float, scale: float) -> Censoring:
    """Say how many entries are censored under the fit, and what that and the noise do to the means.

    `size` and `scale` are the records behind a mean, and the scale of the noise on it.
    """
    law = expect(chains.mechanism, LogMomentsLaw)
    threshold = law.threshold
    some = alpha[spread(len(alpha), _CENSORED_DRAWS)]
    rest = some.sum(axis=1, keepdims=True) - some
    shares = betainc(some, rest, threshold)
    tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)]
    mean, variance = censored_moments(some, threshold)
    bias = np.maximum(mean - (digamma(some) - digamma(some.sum(axis=1, keepdims=True))), 0.0)
    lower, upper = np.quantile(shares, tails, axis=0)
    whole = None
    if law.scores is not None and threshold in law.thresholds:
        noisy = sum(law.scores[: law.thresholds.index(threshold) + 1]) / sum(law.parts)
        whole = float(min(1.0, max(0.0, noisy)))
    return Censoring(
        threshold=threshold,
        share=shares.mean(axis=0),
        lower=lower,
        upper=upper,
        bias=bias.mean(axis=0),
        size=size,
        noise_sd=np.sqrt(2.0) * scale,
        sampling_sd=np.sqrt(variance.mean(axis=0) / size),
        uncensored_records=whole,
    )


def censored_moments(alpha: Floats, threshold: float) -> tuple[Floats, Floats]:
    """Return mean and variance of log max(x_j, a) for x ~ Dirichlet(alpha), by quadrature.

    With G(t) = Pr(log x_j > t): the mean is log a + integral of G over (log a, 0), and the second moment of
    log max(x_j, a) - log a is 2 times that of (t - log a) G(t).

    Parameters
    ----------
    alpha : ndarray, shape (draws, d)
    threshold : float
        a, between 0 and 1.

    Returns
    -------
    mean, variance : ndarrays, shape (draws, d)
    """
    low = np.log(threshold)
    # panels that halve towards 0, where few shares are
    edges = low * np.concatenate([1.0 - np.arange(20) / 20.0, 0.05 * 0.5 ** np.arange(1, 12), [0.0]])
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = 0.5 * np.diff(edges)
    t = (edges[:-1, None] + half[:, None] * (nodes + 1.0)).ravel()
    w = (half[:, None] * weights).ravel()
    a, b = alpha, alpha.sum(axis=1, keepdims=True) - alpha
    first, second = np.zeros_like(alpha), np.zeros_like(alpha)
    for point, weight in zip(t, w, strict=True):
        # Pr(x > e^t) by the other tail, which keeps its digits
        above = betainc(b, a, -np.expm1(point))
        first += weight * above
        second += weight * 2.0 * (point - low) * above
    return low + first, np.maximum(second - first**2, 0.0)


def _truth(
    chains: ChainSet,
    options: SummarySpec,
    alpha: Floats,
    means: Floats,
    ellipsoids: Mapping[str, Ellipsoid],
) -> Truth | None:
    """Compare with the alpha of a simulation."""
    if options.truth is None:
        return None
    truth = np.asarray(options.truth, dtype=np.float64)
    d = alpha.shape[1]
    if truth.size != d:
        raise SpecError(f"summary.truth: has {truth.size} entries, but the compositions have {d} components")
    mean = truth / truth.sum()
    rng, size = chains.generator(0, _TRUTH), _AT_ONCE // (8 * d) + 1
    inside = [
        ellipsoids["record"].holds(rng.dirichlet(truth, size)) for _ in range(max(1, _COVERAGE_DRAWS // size))
    ]
    return Truth(
        alpha=truth,
        squared_error_alpha=float(((alpha - truth) ** 2).sum(axis=1).mean()),
        squared_error_mean=float(((means - mean) ** 2).sum(axis=1).mean()),
        covers_alpha=bool(ellipsoids["alpha"].holds(truth[None])[0]),
        covers_mean=bool(ellipsoids["mean"].holds(mean[None])[0]),
        record_coverage=float(np.concatenate(inside).mean()),
    )
