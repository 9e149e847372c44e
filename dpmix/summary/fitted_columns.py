"""The columns of a fit: kernel and base measure of each, public bounds, and where densities are reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.errors import DataError
from dpmix.kernels.layout import DEFAULT_POINTS, Family, Floats, Layout, find_layout
from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.spec.days import placed

if TYPE_CHECKING:
    from dpmix.run.chains_reader import Chains


@dataclass(frozen=True)
class FittedColumn:
    """One column of the records.

    Parameters
    ----------
    name : str
        Its name; empty where there is only one.
    family : Family
        Its marginal kernel and base measure.
    atoms : callable
        Gives the column's atoms from those of all columns together.
    """

    name: str
    family: Family
    atoms: Callable[[Floats], Floats]

    def label(self, scalar: str) -> str:
        """Name of a scalar of this column: `mean`, or `mean[x]` where there are several columns."""
        return f"{scalar}[{self.name}]" if self.name else scalar


def family_of(chains: Chains) -> Family | NormalInverseWishart:
    """Return the kernel and base measure that the chains were run with.

    Raises
    ------
    DataError
        When a parameter of the base measure is out of range.
    """
    found: Family | NormalInverseWishart = _made(chains.layout, chains.constants, chains.arrays)
    return found


def family_on_line(kernel: str, base: str, constants: Mapping[str, float]) -> Family:
    """Return a kernel of one column with its base measure, whose parameters are among the constants.

    Raises
    ------
    DataError
        When they are not known.
    """
    found: Family = _made(find_layout(kernel, base), constants, {})
    return found


def _made(layout: Layout | None, constants: Mapping[str, float], arrays: Mapping[str, Floats]) -> Any:
    if layout is None or layout.family is None:
        raise DataError("the file is of a kernel or base measure that this version does not know")
    return layout.family(constants, arrays)


def columns_of(chains: Chains, family: Family | NormalInverseWishart) -> list[FittedColumn]:
    """Return the columns of the records, one with an empty name where there is only one."""
    if not isinstance(family, NormalInverseWishart):
        return [FittedColumn("", family, lambda atoms: atoms)]

    def picks(number: int) -> Callable[[Floats], Floats]:
        return lambda atoms: family.column_atoms(atoms, number)

    names = chains.columns
    return [FittedColumn(names[j], family.column(j), picks(j)) for j in range(family.size)]


# Where densities are reported, and what the series there are called


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
    if chains.mechanism.on_data_scale and chains.tally is None:
        values = chains.observed.reshape(len(chains.observed), -1)[:, number]
        if values.size and np.ptp(values) > 0:
            return np.linspace(values.min(), values.max(), DEFAULT_POINTS)
    raise DataError("no grid to report the density on: give --set 'summary.grid=[lo, hi, points]'")


def public_bounds(chains: Chains, number: int, count: int) -> tuple[float, float] | None:
    """Return the public bounds of one of `count` columns of the records; None where they are not known."""
    if chains.layout.kernel == "beta":
        return chains.constants["domain_lo"], chains.constants["domain_hi"]
    domain = chains.mechanism.domain or chains.stated("mechanism").get("domain")
    if count == 1 and "bounds" in chains.attrs:  # of the one column of several that is fitted
        domain = json.loads(str(chains.attrs["bounds"]))
    bounds = np.asarray(domain, dtype=np.float64).reshape(-1, 2) if domain is not None else np.empty((0, 2))
    # a domain of more columns is of a release of which some are fitted; older files do not say which
    if len(bounds) != count or not bounds[number, 0] < bounds[number, 1]:
        return None
    return float(bounds[number, 0]), float(bounds[number, 1])


def density_points(grid: Floats) -> Floats:
    """Points at a quarter, half and three quarters of the grid's range, where the density is monitored."""
    return np.linspace(grid[0], grid[-1], 5)[1:4]


def labels(points: Floats, column: str) -> list[str]:
    """Names of the densities of a column at `points`, with digits that say where on the grid they are."""
    prefix = f"{column}=" if column else ""
    step = float(np.ptp(points)) / 10.0
    return [f"density[{prefix}{placed(point, step)}]" for point in points.tolist()]
