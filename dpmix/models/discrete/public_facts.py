"""What is public of a release that the discrete model is fitted to: columns, cells, base measure.

A release of synthetic records describes its columns; one of histogram counts has one numeric column with
equal cells over its bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.columns.cells import NEW_LABEL, Cells, Column, Grid
from dpmix.errors import SpecError
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import expect
from dpmix.laws.synthetic import SyntheticLaw
from dpmix.models.discrete import base_measures
from dpmix.models.discrete.random_measure import GRID_POINTS, LabelColumn, NumericColumn

if TYPE_CHECKING:
    from dpmix.models.discrete.base_measures import ColumnBase
    from dpmix.models.discrete.section import DiscreteModel
    from dpmix.release.sanitized import Release
    from dpmix.spec.summary_section import SummarySpec

OTHER = "(any other)"
"""Name of all labels together that were not released as confidential ones, of a column of free labels."""
_NEW = re.compile(re.escape(NEW_LABEL) + r"[1-9]\d*")
_SUM = 1e-6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Public:
    """What is public of a release.

    Parameters
    ----------
    columns : tuple of Column
    names : tuple
        For each column the labels that codes stand for, in their order; None for numbers. Of free labels
        those of confidential records, and `OTHER`.
    cells : Cells or None
        Cells that the records were counted in; None where there were none.
    """

    columns: tuple[Column, ...]
    names: tuple[tuple[str, ...] | None, ...]
    cells: Cells | None


def public_of(release: Release) -> Public:
    """Return columns and cells of a release.

    Raises
    ------
    SpecError
        When records were drawn from a posterior.
    """
    if release.mechanism.released == "synthetic":
        law = expect(release.mechanism, SyntheticLaw)
        if law.generator == "posterior_predictive":
            raise SpecError(
                "model.kind: discrete is not for records drawn from a posterior, which say no more than the "
                "release that the posterior is of: fit that one"
            )
        if law.ranges:
            raise SpecError(
                "model.kind: discrete does not know the law of records that synthesis.ranges hold of; fit "
                "records released without ranges, or the noisy counts of a mechanism.kind perturbed_histogram"
            )
        columns = law.columns
        labels = release.labels or (None,) * len(columns)
        names = tuple(
            (*filter(confidential, known or ()), OTHER) if column.free else column.categories
            for column, known in zip(columns, labels, strict=True)
        )
        return Public(columns, names, law.cells if law.counted else None)
    histogram = expect(release.mechanism, HistogramLaw)
    column = Column(release.columns[0], histogram.domain[0])
    edges = tuple(histogram.edges().tolist())
    return Public((column,), (None,), Cells((column,), (histogram.bins,), (None,), edges))


def confidential(label: str) -> bool:
    """Return whether a released label is one of confidential records, and not made up for a new value."""
    return _NEW.fullmatch(label) is None


def grids_of(release: Release, count: int) -> tuple[Grid | None, ...]:
    """Return the grid that new numbers of each column were moved to, where there is one."""
    snaps = release.mechanism.get("snap") or (None,) * count
    return tuple(None if account is None else Grid.described(account) for account in snaps)


def functional_columns(
    model: DiscreteModel, wanted: SummarySpec, public: Public
) -> list[NumericColumn | LabelColumn]:
    """Return what is wanted of each column: its quantiles, thresholds and points, or its labels.

    Raises
    ------
    SpecError
        When thresholds are given twice, are of no column, of labels, or beyond the bounds; when a Gini
        coefficient is wanted of numbers that may be negative.
    """
    numeric = [column.name for column in public.columns if column.bounds is not None]
    if model.tail is not None and wanted.tails is not None:
        raise SpecError("model.tail: is another name of summary.tails; give one of them")
    key = "summary.tails" if model.tail is None else "model.tail"
    tails = _by_column(wanted.tails if model.tail is None else model.tail, numeric, key)
    points = _by_column(wanted.cdf, numeric, "summary.cdf")
    found: list[NumericColumn | LabelColumn] = []
    for number, (column, names) in enumerate(zip(public.columns, public.names, strict=True)):
        if column.bounds is None:
            found.append(LabelColumn(np.arange(len(names or ()), dtype=np.int64)))
            continue
        low, high = column.bounds
        asked = tails.get(column.name)
        if asked is None:
            asked = tuple(low + share * (high - low) for share in (0.25, 0.5, 0.75))
        above = _within(asked, column.name, (low, high), key)
        below = _within(points.get(column.name, ()), column.name, (low, high), "summary.cdf")
        if wanted.gini and low < 0.0:
            raise SpecError(
                f"summary.gini: the public bounds [{low:g}, {high:g}] of {column.name} admit negative "
                "values, of which there is no Gini coefficient; leave it out"
            )
        edges = _edges_of(public.cells, number)
        found.append(NumericColumn(low, high, above, wanted.levels, below, bool(wanted.gini), edges))
    return found


def _edges_of(cells: Cells | None, number: int) -> tuple[float, ...]:
    """Return edges of a column's cells, every so many where there are more than of the grid's own points."""
    if cells is None or cells.grids[number] is not None:  # numbers on a grid are at its points
        return ()
    edges = cells.edges(number)
    return tuple(edges[:: -(-edges.size // GRID_POINTS)].tolist())


def _within(points: Iterable[float], name: str, bounds: tuple[float, float], key: str) -> tuple[float, ...]:
    """Return points in increasing order, none of them below the lower bound or at the upper one."""
    low, high = bounds
    for point in points:
        if not low <= point < high:
            raise SpecError(f"{key}: {point:g} is outside the bounds [{low:g}, {high:g}] of {name}")
    return tuple(sorted({float(point) for point in points}))


def vector_of(base: Any, count: int, what: str) -> Floats | None:
    """Return base probabilities that are given one by one, None where they are not.

    Raises
    ------
    SpecError
        When there are not `count`, or they do not sum to 1.
    """
    if not isinstance(base, tuple):
        return None
    if len(base) != count:
        raise SpecError(f"model.base: has {len(base)} entries for {count} {what}; give one each")
    if abs(sum(base) - 1.0) > _SUM:
        raise SpecError(f"model.base: sums to {sum(base):g}; probabilities sum to 1")
    return np.array(base, dtype=np.float64)


def bases_of(given: Any, public: Public, grids: tuple[Grid | None, ...]) -> list[ColumnBase]:
    """Return the base measure of each column: as `given` for numbers, else uniform.

    Parameters
    ----------
    given : distribution, mapping of str to distribution, sequence, or None
        Of all numeric columns, by name, or one for each column; a distribution is a mapping or a section of
        the spec with its `kind`.
    public : Public
    grids : tuple of Grid or None
        Where numbers are on a grid.

    Raises
    ------
    SpecError
        When a distribution is of no numeric column, or beyond its bounds.
    """
    numeric = [column.name for column in public.columns if column.bounds is not None]
    if given is not None and not numeric:
        raise SpecError("model.base: is for numeric columns, and there are none; give probabilities")
    wanted = _by_column(given, numeric, "model.base")
    found = []
    for column, names, grid in zip(public.columns, public.names, grids, strict=True):
        if column.free:  # new labels are none of those released
            found.append(base_measures.atoms([float(len(names or ()) - 1)], [1.0]))
        elif column.bounds is None:
            count = len(column.categories or ())
            found.append(base_measures.atoms(np.arange(count, dtype=np.float64), np.ones(count)))
        else:
            base = _distribution(wanted.get(column.name), column)
            found.append(base if grid is None else base_measures.snapped(base, grid.points, grid.edges[1:-1]))
    return found


def _by_column(given: Any, names: list[str], key: str) -> dict[str, Any]:
    """Return what is given for each column; something without names is for all of them.

    A list of thresholds is of one column only.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping) and "kind" not in given:
        for name in given:
            if name not in names:
                listed = ", ".join(names) or "none"
                raise SpecError(f"{key}: there is no numeric column {name!r}; it has {listed}")
        return dict(given)
    if isinstance(given, tuple) and len(names) != 1:
        raise SpecError(
            f"{key}: there are {len(names)} numeric columns ({', '.join(names)}); give a mapping by name"
            if names
            else f"{key}: there is no numeric column; leave it out"
        )
    return dict.fromkeys(names, given)


def _distribution(given: Any, column: Column) -> ColumnBase:
    assert column.bounds is not None  # numeric
    low, high = column.bounds
    settings = given if isinstance(given, Mapping) else {} if given is None else given.model_dump()
    kind = settings.get("kind", "uniform")
    if kind == "beta" and not float(settings["a"]) == float(settings["b"]) == 1.0:
        return base_measures.beta(float(settings["a"]), float(settings["b"]), low, high)
    if kind == "histogram":
        edges = [float(edge) for edge in settings["edges"]]
        if edges[0] < low or edges[-1] > high:
            raise SpecError(f"model.base.edges: reach beyond the bounds [{low:g}, {high:g}] of {column.name}")
        return base_measures.histogram(edges, [float(weight) for weight in settings["weights"]])
    return base_measures.uniform(low, high)
