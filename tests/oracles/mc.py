"""Monte Carlo standard errors by batch means, and comparison of a chain's draws with the exact posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.oracles.blocks import Table
from tests.oracles.niw import MultivariateNormal
from tests.oracles.partitions import Exact

Array = NDArray[np.float64]


def batch_means(values: Array, batches: int = 200) -> tuple[Array, Array]:
    """Mean and Monte Carlo standard error along the first axis, cut into `batches` of equal length."""
    length = len(values) // batches
    if length < 1:
        raise ValueError(f"{len(values)} draws are too few for {batches} batches")
    kept = np.asarray(values, float)[: length * batches]
    means = kept.reshape(batches, length, *kept.shape[1:]).mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches)


def discrepancies(values: Array, exact: Array, batches: int = 200) -> Array:
    """Gap to the exact value in standard errors; where no draw varies, 0 if equal to 1e-12, else infinite."""
    mean, error = batch_means(values, batches)
    gap = mean - np.asarray(exact, float)
    still = np.where(np.abs(gap) < 1e-12, 0.0, np.inf)
    return np.where(error > 0, gap / np.where(error > 0, error, 1.0), still)


def at_points(table: Table, draws: dict[str, Any]) -> Array:
    """Return the kernel's function of each component at ``table.y``, (draw, component, point)."""
    if isinstance(table.kernel, MultivariateNormal):
        theta = draws["mean"][:, :, None], draws["covariance"][:, :, None]
        return table.kernel.function(table.y, theta)
    theta = np.stack([draws[name][:, :, None] for name in table.kernel.names])
    return np.asarray(table.kernel.function(table.y, theta))


def random_density(draws: dict[str, Any], table: Table, discount: float) -> tuple[Array, Array]:
    """First two moments of f_P at ``table.y`` given each draw's weights and theta, (draw, point).

    The leftover weight w_0 is spread by PY(d, alpha + k d, G0), of which the moments are known.
    """
    weights = draws["weights"][:, :, None]
    kept = np.nansum(weights * at_points(table, draws), axis=1)
    left = 1.0 - np.nansum(draws["weights"], axis=1)[:, None]
    new = (draws["concentration"] + draws["n_clusters"] * discount)[:, None]
    prior = table.f1[0]
    rest = prior**2 + (1 - discount) / (new + 1) * (table.f2[0] - prior**2)
    return kept + left * prior, kept**2 + 2 * kept * left * prior + left**2 * rest


def of_first(table: Table, draws: dict[str, Any]) -> Array:
    """Return the summaries of the parameters of the first record's component, (draw, S)."""
    home = np.asarray(draws["allocations"])[:, 0]
    rows = np.arange(len(home))
    if isinstance(table.kernel, MultivariateNormal):
        return table.kernel.summaries((draws["mean"][rows, home], draws["covariance"][rows, home])).T
    return np.asarray(table.kernel.summaries([draws[name][rows, home] for name in table.kernel.names]).T)


def compare(
    draws: dict[str, Any], table: Table, exact: Exact, discount: float, batches: int = 200
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Gaps in standard errors: first P(k) and the posterior mean density, then everything else.

    `draws` are arrays by name as a chain hands them out. Without allocations there (global releases) neither
    co-clustering nor the parameters of the first record are compared.
    """
    density, square = random_density(draws, table, discount)
    ks = np.flatnonzero(exact.p_k > 1e-3)
    primary = {
        "P(k)": discrepancies(draws["n_clusters"][:, None] == ks, exact.p_k[ks], batches),
        "density": discrepancies(density, exact.density, batches),
    }
    secondary = {
        "density^2": discrepancies(square, exact.density_sd**2 + exact.density**2, batches),
        "concentration": discrepancies(draws["concentration"], np.array(exact.concentration), batches),
    }
    if "allocations" in draws:
        labels = np.asarray(draws["allocations"])
        n = table.n
        pairs = [(0, 1), (1, 2), (0, n - 1), (n - 2, n - 1)]
        cocluster = np.stack([labels[:, i] == labels[:, j] for i, j in pairs], axis=1)
        truth = np.array([exact.cocluster[p] for p in pairs])
        secondary["cocluster"] = discrepancies(cocluster, truth, batches)
        secondary["theta"] = discrepancies(of_first(table, draws), exact.theta_of_first, batches)
    if "log_likelihood" in draws and np.isfinite(exact.log_likelihood):
        truth = np.array(exact.log_likelihood)
        secondary["log likelihood"] = discrepancies(draws["log_likelihood"], truth, batches)
    return primary, secondary
