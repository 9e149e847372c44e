"""Tallies: releases of one number a record as their counts in public cells.

Where records are exchangeable the release is its counts (methods, section 12), and counts of parts add: a
release too large for one machine is tallied where it lies. A tally is a release without values; grid,
mechanism and number of records go with its counts, and nothing else about them can be added up.

Cells follow from public quantities alone: bounds, noise and width, never from the values. Half-open inner
cells [e_i, e_(i+1)) of one width h, one cell on each side to infinity; where outputs are finite the cells are
the outputs. The likelihood is the same for a grid in which neighbours without records are put together, for
masses add, which is what the chains work on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmix.columns.cells import Counts
from dpmix.columns.column_units import taken
from dpmix.errors import DataError, SpecError

if TYPE_CHECKING:
    from dpmix.laws.every import Law
    from dpmix.release.sanitized import Release

Floats = NDArray[np.float64]

_PIECE = 1 << 20
_REACH = 8.0  # standard deviations of Gaussian noise covered by inner cells
_MOST = 10_000_000  # cells
_NO_VALUES = np.zeros((0, 1))
_SHARED = ("simulated", "private", "epsilon", "delta", "rho", "adjacency", "trust", "columns", "unit")
_FOLLOWS = ("granularity", "scale", "sensitivity")
"""What a mechanism states that follows from the rest of it."""
_MADE = ("stated", "column", "granularity", "sensitivity", "requested", "calibration")
"""What only a release's own file knows of how it was made, or another file's spec states in its place."""
_ROUNDING = 1e-9  # relative; of scales and levels by formula against those of the noise as it was drawn
_OUTPUTS = "whose outputs are the cells"

# Public cells, and counts in them


MOST = 2**62
"""Records below which sums of counts stay within int64."""


def default_width(kind: str, scale: float, lo: float, hi: float) -> float:
    """Return the width of `width: auto` (methods, section 12): fine beside the noise and the domain.

    Raises
    ------
    ValueError
        Where there is no noise that it could follow.
    """
    parts = {"laplace": 32.0, "gaussian": 4.0}
    if kind not in parts:
        raise ValueError(f"no width follows from {kind}")
    return min(scale / parts[kind], (hi - lo) / 64.0)


def edges_of(kind: str, scale: float, lo: float, hi: float, width: float, *, bounded: bool) -> Floats:
    """Return the finite edges of the cells; lo and hi are among them, so that the width may be a little less.

    Inner cells cover under Laplace noise the domain where the kernel is `bounded` to it (beyond it the noise
    factorises), else half its width more on each side; under Gaussian noise 8 standard deviations more;
    without noise the domain.

    Raises
    ------
    ValueError
        For more cells than can be worked with.
    """
    if not 0.0 < width < math.inf:
        raise ValueError(f"a width of {width:g} makes no cells")
    inner = math.ceil((hi - lo) / width * (1.0 - 1e-12))
    beyond = {"laplace": 0.0 if bounded else 0.5 * (hi - lo), "gaussian": _REACH * scale}.get(kind, 0.0)
    if not inner + 2.0 * beyond / width < _MOST:
        raise ValueError(f"a width of {width:g} makes more than {_MOST:,} cells")
    outer = math.ceil(beyond * inner / (hi - lo) * (1.0 - 1e-12))
    places = np.arange(-outer, inner + outer + 1) / inner
    edges = lo + (hi - lo) * places
    edges[outer], edges[outer + inner] = lo, hi
    return np.asarray(edges, dtype=np.float64)


def tally(values: Floats, edges: Floats, width: float) -> Counts:
    """Count values (n,) in the cells between `edges`, in pieces.

    Raises
    ------
    ValueError
        For no values, and for such that are not finite.
    """
    if len(values) == 0:
        raise ValueError("there are no values")
    counts = np.zeros(len(edges) + 1, dtype=np.int64)
    for start in range(0, len(values), _PIECE):
        piece = values[start : start + _PIECE]
        if not np.isfinite(piece).all():
            raise ValueError("a value is not finite")
        counts += np.bincount(np.searchsorted(edges, piece, side="right"), minlength=len(counts))
    return Counts(counts, edges, width)


def output_edges(outputs: int) -> Floats:
    """Return the edges between the outputs 0, 1, .., outputs - 1: .5, 1.5, .."""
    return np.arange(outputs - 1, dtype=np.float64) + np.float64(0.5)


def count_outputs(values: Floats, outputs: int) -> Counts:
    """Count values (n,) that are outputs 0 .. outputs - 1.

    Raises
    ------
    ValueError
        For no values, and for such that are no output.
    """
    if not ((values >= 0) & (values < outputs) & (values == np.floor(values))).all():
        raise ValueError(f"a value is no output 0 .. {outputs - 1}")
    return tally(values, output_edges(outputs), 0.0)


# Tallies of releases


def wide_grid(law: Law, width: float | Literal["auto"]) -> tuple[Floats, float]:
    """Return the finite edges of a tally's cells, and their width: 0 where outputs are finite.

    It is the wide grid, which serves every kernel, with the public bounds among its edges.

    Raises
    ------
    SpecError
        For a mechanism whose releases are not counted, without public bounds, or without a width where none
        follows; for a width that makes no cells, or too many, or of outputs.
    """
    outputs = law.outputs
    if outputs is not None:
        if width != "auto":
            raise SpecError(f"--width {width:g}: is not for {law.kind}, {_OUTPUTS}; leave it out")
        return output_edges(outputs), 0.0
    if not (law.additive and law.countable):
        raise SpecError(f"mechanism.kind: {without_tally(law)}")
    if not law.domain:
        raise SpecError("mechanism.domain: missing; cells follow from the public bounds, give them in SPEC")
    (lo, hi), scale = law.domain[0], law.scale[0] if law.scale else 0.0
    if width == "auto" and not law.protects:
        raise SpecError("--width: missing; no width follows from mechanism none, give a number")
    try:
        wanted = default_width(law.kind, scale, lo, hi) if width == "auto" else float(width)
        edges = edges_of(law.kind, scale, lo, hi, wanted, bounded=False)
    except ValueError as error:
        raise SpecError(f"--width: {error}; give a larger one, or leave it out") from None
    return edges, float(edges[1] - edges[0])


def grid_of(tally: Counts) -> Floats:
    """Return all edges of a tally, the infinite ones at the ends included, as its file has them."""
    return np.concatenate([[-np.inf], tally.edges, [np.inf]])


def check_room(n: int) -> None:
    """Refuse more records than a tally holds.

    Raises
    ------
    DataError
    """
    if n >= MOST:
        raise DataError(f"there are {n:,} records, and a tally holds at most {MOST - 1:,}")


def tallied(about: Release, counts: Counts) -> Release:
    """Return a tally of a release, with the account of how that was made."""
    return replace(about, values=_NO_VALUES, n=counts.n, tally=counts)


def one_column(release: Release, columns: Sequence[str] | None) -> tuple[Release, int]:
    """Return one column of a release with the account of it, and which it is.

    The guarantee stays that of the whole record.

    Raises
    ------
    SpecError
        When several columns are wanted, or none is named of several.
    DataError
        When there is no such column.
    """
    law = release.mechanism
    if law.outputs is None and not (law.additive and law.countable):
        raise DataError(without_tally(law))
    names = release.columns if columns is None else tuple(columns)
    if len(names) != 1:
        raise SpecError(
            f"release.column: a tally is of one column, and there are {', '.join(names)}; name one in SPEC"
        )
    if names[0] not in release.columns:
        raise DataError(
            f"release.column: the release has no column {names[0]!r}; it has {', '.join(release.columns)}"
        )
    place = release.columns.index(names[0])
    if len(release.columns) > 1:
        if not law.columns_each:
            raise DataError(f"a {law.kind} release is not one number a record, and has no tally")
        changed: dict[str, Any] = {}
        if law.scale:
            changed["scale"] = [law.scale[place]]
        if law.domain:
            changed["domain"] = [list(law.domain[place])]
        law = law.updated(**changed)
    own = np.ascontiguousarray(release.values[:, [place]])
    return replace(
        release, columns=names, mechanism=law, values=own, labels=(), unit=taken(release.unit, names)
    ), place


def without_tally(made: Any) -> str:
    """Say why releases by a mechanism, a law or a section of the spec, are not counted."""
    if made.released == "records" and made.names_columns:  # one in several numbers names columns of its own
        return f"a {made.kind} release has no tally, for how likely its values are in cells is not known here"
    if made.released == "categories":
        return f"a {made.kind} release is of categories, whose answers `dpmix fit` counts, and has no tally"
    return f"a {made.kind} release is not one number a record, and has no tally"


def merged(parts: Sequence[tuple[str, Release]]) -> Release:
    """Add tallies up; the result does not depend on their order.

    Where a spec states how one was released, the sum is as that spec states it.

    Parameters
    ----------
    parts : sequence of (name, tally)

    Raises
    ------
    DataError
        When two differ in mechanism, guarantee or grid, naming the first difference.
    """
    parts = sorted(parts, key=lambda part: not part[1].mechanism.elsewhere)
    name, first = parts[0]
    for other_name, other in parts[1:]:
        found = difference(first, other)
        if found is not None:
            raise DataError(f"{other_name} differs from {name} in {found}")
    check_room(sum(part.n for _, part in parts))
    counts = np.asarray(np.sum([_counts(part).counts for _, part in parts], axis=0, dtype=np.int64))
    own = [part for _, part in parts]
    return replace(
        first,
        n=max(int(counts.sum()), 1),  # of parts that are still to be counted there are none
        tally=replace(_counts(first), counts=counts),
        order=_agreed([part.order for part in own]),
        proved=False if any(part.proved is False for part in own) else _agreed([p.proved for p in own]),
        ledger="bypassed" if any(p.ledger == "bypassed" for p in own) else _agreed([p.ledger for p in own]),
        created_at=max(part.created_at for part in own),
        dpmix_version=max(part.dpmix_version for part in own),
    )


def difference(first: Release, other: Release) -> str | None:
    """Say in what two tallies differ that cannot be added up, with both values; None where in nothing.

    Where a spec states how one of them was released, it says nothing of what only the other's file knows, and
    its numbers follow from formulas.
    """
    law, beside = first.mechanism.stated(), other.mechanism.stated()
    rounding = 0.0
    if first.mechanism.elsewhere != other.mechanism.elsewhere:
        law, beside = ({key: own[key] for key in own if key not in _MADE} for own in (law, beside))
        rounding = _ROUNDING
    if (first.simulated, first.private) == (other.simulated, other.private):  # else noise differs by that
        for key, mine, theirs in _leaves(law, beside, "mechanism", rounding):
            return f"{key} ({_shown(theirs)} against {_shown(mine)})"
    for key in _SHARED:
        mine, theirs = getattr(first, key), getattr(other, key)
        if not _alike(mine, theirs, rounding):
            return f"{key} ({_shown(theirs)} against {_shown(mine)})"
    own, others = _counts(first), _counts(other)
    if len(own.counts) != len(others.counts) or not np.array_equal(own.edges, others.edges):
        one, two = (
            f"{len(c.counts):,} cells of width {c.width:.6g} between {c.edges[0]:.6g} and {c.edges[-1]:.6g}"
            for c in (others, own)
        )
        return f"the grid ({one} against {two})"
    return None


def counts_problem(counts: NDArray[Any], edges: Floats, width: float, law: Law, n: int) -> str | None:
    """Say why arrays of a file are no tally: which of them, and what is wrong; None where they are.

    Edges (cells + 1,) have the infinite ones, `width` is the attribute ``coarsened``, and n is stated.
    """
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or counts.size < 2 or (counts < 0).any():
        return "counts are no numbers of records in two cells or more"
    if counts.astype(np.float64).sum() >= MOST or int(counts.sum()) != n or n < 1:
        return f"counts do not add up to n, {n:,}"
    if edges.shape != (counts.size + 1,) or edges[0] != -np.inf or edges[-1] != np.inf:
        return "edges do not run from -inf to inf around the counts"
    inner = edges[1:-1]
    if not np.isfinite(inner).all() or not (np.diff(inner) > 0).all():
        return "edges do not increase"
    if law.outputs is not None:
        if width != 0.0 or not np.array_equal(inner, output_edges(law.outputs)):
            return f"edges are not those of the {law.outputs} outputs of {law.kind}"
        return None
    if not (law.additive and law.countable):
        return f"mechanism is {law.kind}, which has no tally"
    if not law.domain:
        return "mechanism states no domain, which the cells follow from"
    if not (0.0 < width < np.inf) or inner.size < 2:
        return "coarsened is no width of a cell"
    reach = float(np.abs(inner[[0, -1]]).max())
    if np.abs(np.diff(inner) - width).max() > 1e-9 * width + 8.0 * np.spacing(reach):
        return f"edges are not a width of {width:g} apart"
    if not np.isin(law.domain[0], inner).all():
        return "edges do not have the public bounds among them"
    return None


def _counts(release: Release) -> Counts:
    assert release.tally is not None  # the caller has tallies
    return release.tally


def _agreed(values: Sequence[Any]) -> Any:
    return values[0] if all(value == values[0] for value in values) else None


def _alike(mine: Any, theirs: Any, rounding: float) -> bool:
    """Whether two values are equal, their numbers up to rounding."""
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        return all(_alike(one, two, rounding) for one, two in zip(mine, theirs, strict=True))
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=rounding)
    return bool(mine == theirs)


def _leaves(mine: Any, theirs: Any, key: str, rounding: float) -> list[tuple[str, Any, Any]]:
    """Return the leaves in which two descriptions differ, what others follow from first.

    The order of keys does not matter.
    """
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        names = sorted({*mine, *theirs}, key=lambda name: (name != "kind", name in _FOLLOWS, name))
        return [
            leaf
            for name in names
            for leaf in _leaves(mine.get(name), theirs.get(name), f"{key}.{name}", rounding)
        ]
    return [] if _alike(mine, theirs, rounding) else [(key, mine, theirs)]


def _shown(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
