"""Records of a posterior predictive as a spec wants them: on grids, of so many digits, and possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.mechanisms.laws.synthetic import PublicColumn
from dpmix.release.columns import Column
from dpmix.release.lattice import Grid
from dpmix.release.possible import Rule, holds, rules_of
from dpmix.spec import RunSpec
from dpmix.spec.column_types import digits_of
from dpmix.spec.synthesis_section import SnapSpec, SynthesisSection

__all__ = ["Shape", "drawn", "shape_of"]

Floats = NDArray[np.float64]

_ROUNDS = 60
_FEWEST = 1000
_MOST = 5_000_000  # records of one round


@dataclass(frozen=True)
class Shape:
    """What a spec says of the columns of records that are drawn from a posterior.

    Parameters
    ----------
    columns : tuple of Column
    grids : tuple of Grid or None
        Where the numbers of each column are moved to.
    rules : tuple of Rule
        What is possible of records, after that.
    ranges : tuple of dict
        The same for JSON.
    """

    columns: tuple[Column, ...]
    grids: tuple[Grid | None, ...]
    rules: tuple[Rule, ...] = ()
    ranges: tuple[dict[str, Any], ...] = ()

    def shaped(self, values: Floats) -> Floats:
        """Move numbers to their grids, or round them to their digits; they may stay beyond the bounds."""
        found = values.copy()
        for i, (column, grid) in enumerate(zip(self.columns, self.grids, strict=True)):
            if grid is not None:
                found[:, i] = grid.nearest(found[:, i])
            elif column.digits is not None:
                found[:, i] = np.round(found[:, i], column.digits) + 0.0
        return found

    def described(self) -> dict[str, Any]:
        """Return what is said of it beside the columns, for JSON."""
        snaps = [None if grid is None else grid.describe() for grid in self.grids]
        return ({"snap": snaps} if any(snaps) else {}) | ({"ranges": list(self.ranges)} if self.rules else {})


def shape_of(spec: RunSpec | None, described: Sequence[Mapping[str, Any]], numeric: Sequence[bool]) -> Shape:
    """Return what a spec says of columns that chains describe.

    Parameters
    ----------
    spec : RunSpec or None
        Its ``data.types`` (or ``release.types``), dates among its bounds, ``synthesis.snap`` and
        ``synthesis.ranges`` are used.
    described : sequence of mapping
        Name, and what is known of bounds, categories and type, of each column.
    numeric : sequence of bool
        Whether a column is of numbers.

    Raises
    ------
    SpecError
        When it speaks of columns that are not there, or of labels as of numbers.
    """
    columns = tuple(_column(spec, part, number) for part, number in zip(described, numeric, strict=True))
    section = None if spec is None else spec.synthesis
    if section is None:
        return Shape(columns, (None,) * len(columns))
    grids = _grids(section, columns, numeric)
    if not section.ranges:
        return Shape(columns, grids)
    rules = rules_of(section.ranges, columns, grids, numbers=True)
    return Shape(columns, grids, rules, tuple(rule.stated() for rule in section.ranges))


def _column(spec: RunSpec | None, part: Mapping[str, Any], number: bool) -> Column:
    name = str(part["name"])
    found = Column.described(PublicColumn.model_validate(dict(part)))
    sections = () if spec is None else (spec.data, spec.release)
    for section in sections:
        if section is None:
            continue
        kind = (section.types or {}).get(name)
        if kind is not None and kind != "category" and not number:
            raise SpecError(
                f"data.types.{name}: is of numbers, and the chains have labels there; leave it out"
            )
        if kind == "category" and number:
            raise SpecError(
                f"data.types.{name}: category, but the chains have numbers there; give integer or digits"
            )
        if number and digits_of(kind) is not None:
            found = replace(found, digits=digits_of(kind))
        if number and name in section.dates:
            found = replace(found, date=True, digits=0)
        if number and found.bounds is None and name in (section.columns or ()):
            found = replace(found, bounds=section.bounds_of((section.columns or ()).index(name)))
    return found


def _grids(
    section: SynthesisSection, columns: tuple[Column, ...], numeric: Sequence[bool]
) -> tuple[Grid | None, ...]:
    """Return the grid of each column, None where it has none."""
    snap = section.snap
    names = [column.name for column, number in zip(columns, numeric, strict=True) if number]
    if isinstance(snap, Mapping):
        for name in snap:
            if name not in names:
                known = ", ".join(names) or "none"
                raise SpecError(f"synthesis.snap.{name}: no column of numbers; the chains have {known}")
    found: list[Grid | None] = []
    for column in columns:
        own: SnapSpec | None = snap.get(column.name) if isinstance(snap, Mapping) else snap
        if own is None or column.name not in names:
            found.append(None)
            continue
        pair = own.domain or column.bounds
        if pair is None:
            raise SpecError(
                f"synthesis.snap.domain: missing for {column.name}, of which the chains know no bounds; give "
                "the first and the last grid point"
            )
        grid = Grid(own.step, pair)
        if column.digits is not None and not Grid(float(f"1e-{column.digits}"), (0.0, 1.0)).holds(grid):
            raise SpecError(
                f"synthesis.snap: has points that data.types.{column.name} does not admit; take a step and a "
                "domain of such numbers, or leave snap out"
            )
        found.append(grid)
    return tuple(found)


def drawn(shape: Shape, draw: Callable[[int, int], Floats], records: int, *, again: bool) -> Floats:
    """Draw records until as many are possible: of their law given that they are.

    Parameters
    ----------
    shape : Shape
    draw : callable
        Of a number of records and of the batch, each independent of the others.
    records : int
        How many are wanted.
    again : bool
        Whether there are more batches than one, which then holds all that there are.

    Raises
    ------
    SpecError
        When too few are possible.
    """
    kept: list[Floats] = []
    have, tried, wanted = 0, 0, records
    for batch in range(_ROUNDS):
        values = shape.shaped(draw(wanted, batch))
        possible = values[holds(shape.rules, values)]
        kept.append(possible)
        have, tried = have + len(possible), tried + len(values)
        if have >= records:
            return np.concatenate(kept)[:records]
        if not again or (not have and tried >= 100 * _FEWEST):
            break
        rate = max(have, 1) / tried
        wanted = int(min(_MOST, max(_FEWEST, 1.2 * (records - have) / rate)))
    held = "the chains hold" if not again else "of"
    raise SpecError(
        f"synthesis.ranges: {held} {tried} records of the posterior predictive{', of which' * (not again)} "
        f"{have} are possible, and {records} are wanted; correct the ranges, or ask for fewer records"
    )
