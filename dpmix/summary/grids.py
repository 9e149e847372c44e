"""Where densities are reported, and what the series there are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmix.errors import DataError
from dpmix.spec.days import placed
from dpmix.summary.families.family_of_fit import columns_of, family_of

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_reader import Chains

DEFAULT_POINTS = 200
Grid = tuple[float, float, int]


def choose_grids(chains: Chains, asked: Sequence[Grid]) -> list[Floats]:
    """Return the grid of each column: the one asked for, or a default one.

    The default is the public domain, with 200 points; widened by a tenth of its width on each side where the
    kernel is on the whole line. Without a domain it is the range of the released values. Where densities may
    be infinite, at the ends of the domain of a beta kernel, a point is moved half a step inside.

    Parameters
    ----------
    chains : Chains
    asked : sequence of (lo, hi, points)
        None, one for every column, or one for each.

    Raises
    ------
    DataError
        When there is neither a grid nor anything to take one from, or there are not as many as columns.
    """
    columns = columns_of(chains, family_of(chains))
    triples = _per_column(asked, len(columns))
    return [
        column.family.inside(_grid(chains, number, len(columns), triple))
        for number, (column, triple) in enumerate(zip(columns, triples, strict=True))
    ]


def _per_column(asked: Sequence[Grid], count: int) -> Sequence[Grid | None]:
    if len(asked) == 0:
        return [None] * count
    if len(asked) == 1:
        return [asked[0]] * count
    if len(asked) != count:
        raise DataError(
            f"summary.grid has {len(asked)} grids, and the chains are of {count} "
            f"{'column' if count == 1 else 'columns'}: give one [lo, hi, points] for each, or one for all"
        )
    return asked


def _grid(chains: Chains, number: int, count: int, triple: Grid | None) -> Floats:
    if triple is not None:
        return np.linspace(float(triple[0]), float(triple[1]), int(triple[2]))
    if chains.layout.kernel == "beta":
        return np.linspace(chains.constants["domain_lo"], chains.constants["domain_hi"], DEFAULT_POINTS)
    bounds = public_bounds(chains, number, count)
    if bounds is not None:
        low, high = bounds
        margin = 0.1 * (high - low)
        return np.linspace(low - margin, high + margin, DEFAULT_POINTS)
    values = on_the_scale_of_data(chains)
    if values is not None:
        values = values.reshape(values.shape[0], -1)[:, number]
        if values.size and np.ptp(values) > 0:
            return np.linspace(values.min(), values.max(), DEFAULT_POINTS)
    raise DataError("no grid to report the density on: give --set 'summary.grid=[lo, hi, points]'")


def public_bounds(chains: Chains, number: int, count: int) -> tuple[float, float] | None:
    """Return the public bounds of one of `count` columns of the records; None where they are not known."""
    if chains.layout.kernel == "beta":
        return chains.constants["domain_lo"], chains.constants["domain_hi"]
    domain = chains.mechanism.domain or (chains.spec.get("mechanism") or {}).get("domain")
    if count == 1 and "bounds" in chains.attrs:  # of the one column of several that is fitted
        domain = json.loads(str(chains.attrs["bounds"]))
    bounds = np.asarray(domain, dtype=np.float64).reshape(-1, 2) if domain is not None else np.empty((0, 2))
    # a domain of more columns is of a release of which some are fitted; older files do not say which
    if len(bounds) != count or not bounds[number, 0] < bounds[number, 1]:
        return None
    return float(bounds[number, 0]), float(bounds[number, 1])


def on_the_scale_of_data(chains: Chains) -> Floats | None:
    """Return the released values where each is about one of the data's, else None."""
    return chains.observed if chains.mechanism.on_data_scale and chains.tally is None else None


def density_points(grid: Floats) -> Floats:
    """Points at a quarter, half and three quarters of the grid's range, where the density is monitored."""
    return np.linspace(grid[0], grid[-1], 5)[1:4]


def labels(points: Floats, column: str) -> list[str]:
    """Names of the densities of a column at `points`, with digits that say where on the grid they are."""
    prefix = f"{column}=" if column else ""
    step = float(np.ptp(points)) / 10.0
    return [f"density[{prefix}{placed(point, step)}]" for point in points.tolist()]
