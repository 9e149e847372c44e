"""How far an estimate is from the truth behind simulated records, and whether its intervals hold it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpmix.data import simulations
from dpmix.summary.density import Density, hellinger

if TYPE_CHECKING:
    from dpmix.summary.summary_result import Distribution, Summary

# The laws that simulated records come from: what estimates are compared with.

Floats = NDArray[np.float64]

_POINTS = 40_001
_DYADIC_POINTS = 400  # the rest has probability 0.9^400
_NAMED = re.compile(r"^(quantile|tail)\[([^\],]+)\]$")


@dataclass(frozen=True)
class TrueDistribution:
    """The distribution of a simulated record of one column.

    Parameters
    ----------
    name : str
        As `data.simulate`.
    at : float64 array (points,)
        Increasing places: of a fine grid, or those that have a probability.
    mass : float64 array (points,)
        Their probabilities, of a density those of cells around them.
    continuous : bool
        Whether there is a density.
    """

    name: str
    at: Floats
    mass: Floats
    continuous: bool

    @property
    def mean(self) -> float:
        """Mean of a record."""
        return float((self.at * self.mass).sum())  # BLAS rounds by its number of threads

    @property
    def sd(self) -> float:
        """Standard deviation of a record."""
        return math.sqrt(float(((self.at - self.mean) ** 2 * self.mass).sum()))

    def cdf(self, x: Floats) -> Floats:
        """Return the distribution function at `x` (g,)."""
        total = np.concatenate([[0.0], np.cumsum(self.mass)])
        if not self.continuous:
            return np.asarray(total[np.searchsorted(self.at, x, side="right")])
        middle = 0.5 * (self.at[1:] + self.at[:-1])
        edges = np.concatenate([self.at[:1], middle, self.at[-1:]])
        return np.asarray(np.interp(x, edges, total, left=0.0, right=1.0))

    def scalar(self, name: str) -> float | None:
        """Return what a summary's scalar of this name truly is; None where that is no matter of the law."""
        if name in ("mean", "sd"):
            return self.mean if name == "mean" else self.sd
        found = _NAMED.match(name)
        if found is None:
            return None
        kind, number = found[1], float(found[2])
        if kind == "tail":
            return float(1.0 - self.cdf(np.array([number]))[0])
        place = int(np.searchsorted(np.cumsum(self.mass), number))
        return float(self.at[min(place, len(self.at) - 1)])


_NORMALS = {"three_gaussians": simulations.THREE_GAUSSIANS, "waiting_times": simulations.WAITING_TIMES}
_BOUNDS = {"three_betas": (0.0, 1.0)} | {name: mixture.domain for name, mixture in _NORMALS.items()}


def density(name: str, x: Floats) -> Floats:
    """Return the density of a simulation of `dpmix.data.simulations` at `x` (g,), zero outside its bounds.

    Raises
    ------
    ValueError
        When there is no such simulation, or it has no density.
    """
    if name == "three_betas":
        return np.asarray(np.mean([stats.beta.pdf(x, a, b) for a, b in simulations.THREE_BETAS], axis=0))
    if name not in _NORMALS:
        raise ValueError(f"no density of {name!r}")
    parts, stated, (low, high) = _NORMALS[name]
    weights = np.full(len(parts), 1.0 / len(parts)) if stated is None else np.array(stated)
    laws = [stats.norm(mean, sd) for mean, sd in parts]
    mass = sum(w * (law.cdf(high) - law.cdf(low)) for w, law in zip(weights, laws, strict=True))
    values = sum(w * law.pdf(x) for w, law in zip(weights, laws, strict=True)) / mass
    return np.where((x >= low) & (x <= high), values, 0.0)


def truth_of(name: str) -> TrueDistribution | None:
    """Return the law of a simulation of one column, None of the others."""
    if name in _BOUNDS:
        at = np.linspace(*_BOUNDS[name], _POINTS)
        mass = density(name, at)
        mass[[0, -1]] *= 0.5
        return TrueDistribution(name, at, mass / mass.sum(), True)
    if name == "beta_grid":
        return TrueDistribution(name, *simulations.beta_grid_law(), False)
    if name == "dyadic_geometric":
        k = np.arange(1, _DYADIC_POINTS + 1)
        at = simulations.dyadic_midpoints(k)
        mass = np.asarray(simulations.DYADIC_SUCCESS * (1.0 - simulations.DYADIC_SUCCESS) ** (k - 1.0))
        order = np.argsort(at)
        return TrueDistribution(name, at[order], mass[order] / mass.sum(), False)
    return None


def known_parameters(name: str) -> dict[str, Floats]:
    """Return what the parameters of a parametric model truly are, by name, in the shape of a draw."""
    if name == "naive_bayes":
        shares, levels = simulations.five_classes_law()
        return {"p": shares} | {f"p_feature_{k + 1}": levels[k] for k in range(len(levels))}
    if name == "linear_regression":
        x_mean = np.array(simulations.REGRESSION_X)
        return {
            "beta": np.array(simulations.REGRESSION_BETA),
            "sigma2": np.array(simulations.REGRESSION_VARIANCE),
            "x_mean": x_mean,
            "x_cov": np.eye(len(x_mean)),
        }
    return {}


Row = dict[str, Any]

DENSITY_SCORES = ("hellinger", "ise", "band_coverage")
"""What a density is compared by; empty where the grid of the summary does not show the truth."""

_LEAST_MASS = 0.999  # of the truth between the ends of the grid
_MOST_COARSE = 0.02  # error of the trapezoid rule for its integral


def diagnostics(summary: Summary) -> Row:
    """Return how the chains went: acceptance, the worst R-hat and effective sample sizes, warnings."""
    scalars = list(summary.parameters.values())
    return {
        "chains": int(summary.chain_ids.size),
        "draws": int(next(iter(summary.series.values())).shape[1]) if summary.series else 0,
        "acceptance": summary.acceptance.mean,
        "acceptance_bound": summary.acceptance.bound,
        "rhat_max": _extreme(max, (scalar.rhat for scalar in scalars)),
        "ess_bulk_min": _extreme(min, (scalar.ess_bulk for scalar in scalars)),
        "ess_tail_min": _extreme(min, (scalar.ess_tail for scalar in scalars)),
        "warnings": len(summary.remarks),
        "not_converged": len(summary.failures),
    }


def scores(summary: Summary, simulation: str | None) -> Row:
    """Return how far a summary is from the truth.

    Parameters
    ----------
    summary : Summary
        Of a fit to a simulation.
    simulation : str or None
        `data.simulate`; None where the truth, if any, is what the summary was told (`summary.truth`).

    Returns
    -------
    dict of str to number
        Of a density ``hellinger`` (distance of the posterior mean from the truth), ``ise`` (integral of the
        squared difference, over the grid) and ``band_coverage`` (share of the true distribution where the
        band holds the true density), each None where the grid holds less than 99.9% of the true distribution
        or is so coarse that the trapezoid rule is wrong about it by more than 2%; of a distribution function
        ``ks`` (largest difference), ``w1``
        (Wasserstein distance) and ``cdf_coverage``. For every group of scalars whose truth is known, such as
        ``beta``, ``error[beta]`` (root mean square of posterior mean minus truth) and ``coverage[beta]``
        (share of the intervals that hold the truth).
    """
    found: Row = {}
    law = None if simulation is None else truth_of(simulation)
    if law is not None:
        if law.continuous and "" in summary.densities:
            found |= _density_scores(summary.densities[""], law)
        curve = summary.distributions.get("")
        if curve is not None and curve.is_numeric:
            found |= _distribution_scores(curve, law)
    if summary.composition is not None and summary.composition.truth is not None:
        told = summary.composition.truth
        found |= {
            "error[alpha]": math.sqrt(told.squared_error_alpha / told.alpha.size),
            "coverage[alpha]": float(told.covers_alpha),
            "error[mean]": math.sqrt(told.squared_error_mean / told.alpha.size),
            "coverage[mean]": float(told.covers_mean),
            "coverage[record]": told.record_coverage,
        }
        return found
    groups: dict[str, list[tuple[float, bool]]] = {}
    for name, truth in _truths(summary.parameters, law, simulation):
        scalar = summary.parameters[name]
        ends = list(scalar.quantiles.values())
        held = bool(ends[0] <= truth <= ends[-1])
        groups.setdefault(name.split("[")[0], []).append((scalar.mean - truth, held))
    for group, pairs in groups.items():
        errors, held_all = zip(*pairs, strict=True)
        found[f"error[{group}]"] = math.sqrt(sum(error**2 for error in errors) / len(errors))
        found[f"coverage[{group}]"] = sum(held_all) / len(held_all)
    return found


def _truths(
    parameters: Mapping[str, Any], law: TrueDistribution | None, simulation: str | None
) -> Iterator[tuple[str, float]]:
    """Give the scalars whose truth is known, and what it is."""
    if law is not None:
        for name in parameters:
            truth = law.scalar(name)
            if truth is not None:
                yield name, truth
        return
    known = {} if simulation is None else known_parameters(simulation)
    for group, values in known.items():
        own = [name for name in parameters if name.split("[")[0] == group]
        if len(own) == values.size:  # all entries, which stand in C order
            yield from zip(own, np.ravel(values).tolist(), strict=True)


def _density_scores(found: Density, law: TrueDistribution) -> Row:
    """Return the scores of a density, each None where the grid is too narrow or too coarse to tell."""
    truth = density(law.name, found.grid)
    low, high = law.cdf(found.grid[[0, -1]])
    mass = float(np.trapezoid(truth, found.grid))
    if high - low < _LEAST_MASS or abs(mass - 1.0) > _MOST_COARSE:
        return dict.fromkeys(DENSITY_SCORES)
    held = (found.lower <= truth) & (truth <= found.upper)
    values = (
        hellinger(found.grid, np.clip(found.mean, 0.0, None), truth),
        float(np.trapezoid((found.mean - truth) ** 2, found.grid)),
        float(np.trapezoid(truth * held, found.grid)) / mass,
    )
    return dict(zip(DENSITY_SCORES, values, strict=True))


def _distribution_scores(found: Distribution, law: TrueDistribution) -> Row:
    at = np.asarray(found.at, dtype=np.float64)
    truth = law.cdf(at)
    held = (found.lower <= truth) & (truth <= found.upper)
    return {
        "ks": float(np.abs(found.mean - truth).max()),
        "w1": float(np.trapezoid(np.abs(found.mean - truth), at)),
        "cdf_coverage": float(held.mean()),
    }


def _extreme(choose: Any, values: Iterator[float | None]) -> float | None:
    """Return the largest or least of the values that exist."""
    kept = [value for value in values if value is not None and not math.isnan(value)]
    return float(choose(kept)) if kept else None
