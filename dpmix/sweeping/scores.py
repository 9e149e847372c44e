"""How far an estimate is from the truth behind simulated records, and whether its intervals hold it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.summary.density import Density
from dpmix.summary.hellinger import hellinger
from dpmix.summary.result import Distribution, Summary
from dpmix.sweeping.truth import TrueDistribution, density, known_parameters, truth_of

__all__ = ["DENSITY_SCORES", "diagnostics", "scores"]

Floats = NDArray[np.float64]
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
