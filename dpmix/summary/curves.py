"""What is reported of the distribution of a record: densities, distribution functions, categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.columns.dated import NONE, Dated
from dpmix.numerics.in_words import plainly
from dpmix.results.nodes import Array, Each, ResultSection, Tile, by_name
from dpmix.spec.days import Day, placed

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.summary.density import Density, Joint

_CATEGORIES = 5  # named on the terminal
NOT_RESOLVED = "narrower than the gaps of its grid of {} points, or beyond it; give summary.grid"


@dataclass(frozen=True)
class Distribution:
    """The random distribution of a column's records, with an equal-tailed pointwise band.

    Parameters
    ----------
    at : float64 array (points,) or tuple of str
        Where the distribution function is evaluated, or the categories that `mean` are the probabilities of.
    mean, lower, upper : float64 arrays (points,)
        Posterior mean, and the ends of the band.
    column, group : str
        The column and the group of records that it is of; empty where there is only one.
    """

    at: Floats | tuple[str, ...]
    mean: Floats
    lower: Floats
    upper: Floats
    column: str = ""
    group: str = ""

    @property
    def name(self) -> str:
        """Its key among others: group and column, as between the brackets of scalars."""
        return ",".join(part for part in (self.group, self.column) if part)

    @property
    def about(self) -> str:
        """What it is of, to go on with: empty, or " of COLUMN in GROUP"."""
        of_column = f" of {self.column}" if self.column else ""
        return f"{of_column} in {self.group}" if self.group else of_column

    @property
    def is_numeric(self) -> bool:
        """Whether it is a distribution function of numbers."""
        return not isinstance(self.at, tuple)

    def data(self) -> dict[str, Any]:
        """Return what is held of it."""
        dim = "grid" if self.is_numeric else "category"
        place = Array((dim,), self.at)
        held = {"grid": place} if self.is_numeric else {"categories": Each(place), dim: Each(hdf5=place)}
        return held | {name: Array((dim,), getattr(self, name)) for name in ("mean", "lower", "upper")}

    def listed(self, what: str) -> str:
        """Name the most probable categories."""
        first = np.argsort(-self.mean, kind="stable")[:_CATEGORIES]
        named = ", ".join(
            f"{self.at[i]} {self.mean[i]:.3g} ({self.lower[i]:.3g} to {self.upper[i]:.3g})" for i in first
        )
        more = len(self.at) - len(first)
        return f"{what}: {named}{f', and {more} more' if more else ''}"


def density_sections(
    densities: Mapping[str, Density],
    hellinger: float | None,
    joint: Joint | None,
    level: float,
    dated: Dated = NONE,
) -> list[ResultSection]:
    """Return the densities of columns, and what concerns several together.

    Parameters
    ----------
    densities : mapping of str to Density
        By column, or group; under "" where there is only one.
    hellinger : float or None
        Distance from the prior of all columns together.
    joint : Joint or None
    level : float
        Of the bands.
    dated : Dated
        Which columns are dates.
    """
    tiles = []
    if hellinger is not None:
        note = "0 where the release says nothing"
        tiles = [Tile("Hellinger distance from the prior", f"{hellinger:.2f}", note)]
    dates = {name: dated.is_curve("" if found.group else name) for name, found in densities.items()}
    data = by_name({name: _density(found, date=dates[name]) for name, found in densities.items()})
    brief = [_in_words(found, name, level, date=dates[name]) for name, found in densities.items()]
    found = [ResultSection("density", data or None, "Density", brief, tiles=tiles)]
    if hellinger is not None and densities and "" not in densities:
        together = f"All columns together: Hellinger distance from the prior {hellinger:.2f}"
        found.append(ResultSection("joint", _joint(list(densities), hellinger, joint), brief=[together]))
    return found


def distribution_section(
    found: Mapping[str, Distribution], level: float, *, shares: bool, interval: str
) -> ResultSection:
    """Return the distributions of columns; of numbers the table of scalars says enough on a terminal.

    Parameters
    ----------
    found : mapping of str to Distribution
        By group and column, under "" where there is only one.
    level : float
        Of the bands.
    shares : bool
        Whether they are expected shares of compositions.
    interval : str
        What the bands are.
    """
    what = "Expected shares E[x]" if shares else "Categories"
    return ResultSection(
        "distribution",
        by_name({name: one.data() for name, one in found.items()}),
        "Expected shares" if shares else "Distribution of a record",
        brief=[
            one.listed(f"{what}{one.about}, with {100 * level:g}% {interval}")
            for one in found.values()
            if not one.is_numeric
        ],
    )


def _density(found: Density, *, date: bool) -> dict[str, Any]:
    names = ("grid", "mean", "lower", "upper", "prior")
    data: dict[str, Any] = {name: Array(("grid",), getattr(found, name)) for name in names}
    if found.baseline is not None:
        data["baseline"] = Array(("grid",), found.baseline)
        if found.baseline_bandwidth is not None:
            data["baseline_bandwidth"] = found.baseline_bandwidth
        data["baselines"] = {name: Array(("grid",), values) for name, values in found.baselines.items()}
    return (
        data | {"hellinger_from_prior": found.hellinger_from_prior} | ({"date": Each(True)} if date else {})
    )


def _in_words(found: Density, column: str, level: float, *, date: bool) -> str:
    about = f" in {found.group}" if found.group else f" of {column}" if column else ""
    distance = found.hellinger_from_prior
    apart = "" if distance is None else f"; Hellinger distance from the prior {distance:.2f}"
    if not found.resolved:
        return f"Density{about}: {NOT_RESOLVED.format(len(found.grid))}{apart}"
    peak = int(np.argmax(found.mean))
    place, step = found.grid[peak], float(np.ptp(found.grid)) / 100.0
    place = Day(place) if date else float(place)
    at = plainly(placed(place, step))
    return (
        f"Density{about}: highest at {at} ({found.mean[peak]:.3g}, {100 * level:g}% band "
        f"{found.lower[peak]:.3g} to {found.upper[peak]:.3g}){apart}"
    )


def _joint(columns: list[str], hellinger: float, joint: Joint | None) -> dict[str, Any]:
    data = {"columns": Array(("columns",), columns), "hellinger_from_prior": hellinger}
    if joint is None:
        return data
    first, second = (Array((dim,), grid) for dim, grid in zip(("first", "second"), joint.grids, strict=True))
    place = {"grids": Each([first, second]), "first": Each(hdf5=first), "second": Each(hdf5=second)}
    return data | place | {"mean": Array(("first", "second"), joint.mean)}
