"""`dpmix.tally`: counts of a release in public cells, made where its parts lie."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.api.arguments import PathLike, check_outputs, files_of, whole_of
from dpmix.api.release_of import check_mechanism, with_unit
from dpmix.columns.cells import Counts
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.mechanisms.curators.by_kind import stated
from dpmix.release.release_file import is_tally, read_account, read_release, write_release
from dpmix.release.sanitized import Release
from dpmix.release.tallies import merged, one_column, tallied, wide_grid, without_tally
from dpmix.release.tally_parts import (
    Piece,
    TallyGrid,
    TallyPart,
    column_of,
    count,
    format_of,
    pieces_of,
    query,
    read_counts,
)
from dpmix.run.progress import show_work
from dpmix.spec import RunSpec, SpecSource, load_spec
from dpmix.spec.days import Day
from dpmix.spec.table_source import Dialect
from dpmix.store.atomic import check_copies, check_output, check_suffix

if TYPE_CHECKING:
    from dpmix.laws.every import Law

_NONE = np.zeros((0, 1))  # values


Width = float | Literal["auto"]


class _Known(NamedTuple):
    """What is known of a part before it is counted: its account, and a tally's counts or what to count."""

    name: str
    about: Release
    part: TallyPart | None


def tally(
    parts: PathLike | Sequence[PathLike],
    spec: SpecSource | None = None,
    output: PathLike | None = None,
    *,
    counts: PathLike | None = None,
    width: Width | None = None,
    overrides: Sequence[str] = (),
    jobs: int = 1,
    scheduler: str | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Release:
    """Count the parts of a release of one number a record in public cells, and add tallies up.

    The result depends neither on the order of the parts nor on who counts them.

    Parameters
    ----------
    parts : path or sequence of path
        Release files, tallies, CSV or Parquet files of released values.
    spec : dict, path or RunSpec, optional
        Needed for CSV and Parquet: its mechanism, and the column under ``release`` where there are several.
    output : path, optional
        Release file to write.
    counts : path, optional
        In place of parts, the result of the query of `tally_sql`: a CSV file with the header ``cell,count``.
    width : number or "auto", optional
        Width of the cells, in the data's units; where left out, that of the tallies among the parts, else
        ``sampler.width`` of the spec.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    jobs : int
        Number of processes.
    scheduler : str, optional
        Address of a Dask scheduler whose workers count, and see the files under the same names.
    force : bool
        Overwrite `output`.
    quiet : bool
        Show no progress.

    Returns
    -------
    Release
        With its `tally`, and without values.

    Raises
    ------
    SpecError, UsageError, DataError
        For parts that are no release of one number a record, that differ in mechanism or grid (the difference
        is named), without records, or with values that are missing or not finite.
    """
    check_outputs(output=output, counts=counts)
    parts = files_of(parts, "parts")
    checked = None if spec is None else load_spec(spec, overrides)
    _check_call(parts, checked, counts, jobs, scheduler)
    target = None if output is None else _target(output, parts, force)
    if counts is not None:
        assert checked is not None  # checked
        about, grid, _ = _of_spec(checked, width)
        found = tallied(about, _positive(read_counts(Path(counts), grid), grid, os.fspath(counts)))
    else:
        found = _counted(_known(parts, checked), checked, width, jobs, scheduler, quiet)
    if target is not None:
        write_release(target, found, force=force)
    return found


def tally_sql(spec: SpecSource, *, width: Width | None = None, overrides: Sequence[str] = ()) -> str:
    """Return the SQL query whose result `tally` reads: of the table ``release``, by literal edges.

    Raises
    ------
    SpecError
        When the spec does not say the mechanism, its public bounds and the column.
    """
    _, grid, column = _of_spec(load_spec(spec, overrides), width)
    if column is None:
        raise SpecError("release.column: missing; the query needs the name of the column of released values")
    return query(grid, column)


def plan(
    parts: PathLike | Sequence[PathLike],
    spec: SpecSource | None = None,
    *,
    counts: PathLike | None = None,
    width: Width | None = None,
    overrides: Sequence[str] = (),
    jobs: int = 1,
    scheduler: str | None = None,
) -> str:
    """Say what `tally` would do, after the checks that need no counting.

    Raises SpecError, UsageError and DataError as `tally`.
    """
    parts = files_of(parts, "parts")
    checked = None if spec is None else load_spec(spec, overrides)
    _check_call(parts, checked, counts, jobs, scheduler)
    if counts is not None:
        assert checked is not None  # checked
        _, grid, _ = _of_spec(checked, width)
        return f"read the counts of {_in_words(grid)} from {counts}"
    known = _known(parts, checked)
    grid = _grid(known, checked, width)
    pieces = sum(len(pieces_of(own.part)) for own in known if own.part is not None)
    added = sum(own.part is None for own in known)
    what = [f"count {pieces:,} piece{'s' * (pieces != 1)} of released values"] if pieces else []
    what += [f"add up {added:,} tall{'ies' if added > 1 else 'y'}"] if added else []
    where = f" on the Dask cluster at {scheduler}" if scheduler is not None else ""
    return f"{' and '.join(what)} in {_in_words(grid)}{where}"


def _in_words(grid: TallyGrid) -> str:
    cells = len(grid.edges) + 1
    return f"{cells:,} cells, the outputs" if grid.outputs else f"{cells:,} cells of width {grid.width:.6g}"


def _check_call(
    parts: Sequence[PathLike], spec: RunSpec | None, counts: PathLike | None, jobs: int, scheduler: str | None
) -> None:
    if counts is not None and parts:
        raise UsageError(
            "--counts: has the counts of all parts, so that none is counted; leave the parts out"
        )
    if counts is not None and (scheduler is not None or jobs != 1):
        raise UsageError(
            f"--{'jobs' if scheduler is None else 'scheduler'}: --counts has nothing to count; leave it out"
        )
    if counts is not None and spec is None:
        raise UsageError("SPEC: missing; --counts needs the spec that the query was made from")
    if counts is None and not parts:
        raise UsageError("PART: missing; name the files of the release, or --counts FILE")
    if scheduler is not None and jobs != 1:
        raise UsageError(
            "--jobs: is for processes of this machine, --scheduler for a cluster; give one of them"
        )
    if whole_of(jobs, "--jobs") < 1:
        raise UsageError(f"--jobs {jobs} must be at least 1")
    places = [os.path.realpath(part) for part in parts]
    for place, part in zip(places, parts, strict=True):
        if places.count(place) > 1:
            raise UsageError(f"{part} is named twice, and would be counted twice")
        if spec is not None and spec.data is not None and spec.data.holds(part):
            raise UsageError(
                f"{part} is the confidential file itself (data.path), and a tally is of released values; "
                "name what `dpmix privatize` wrote"
            )
    check_copies([Path(part) for part in parts])


def _target(output: PathLike, parts: Sequence[PathLike], force: bool) -> Path:
    final = check_output(os.fspath(output), force=force)
    check_suffix(os.fspath(output), "a tally", strict=True)
    if any(os.path.realpath(part) == os.fspath(final) for part in parts):
        raise UsageError(f"{output} is one of the parts; give another name for the tally")
    return final


def _known(parts: Sequence[PathLike], spec: RunSpec | None) -> list[_Known]:
    """Read what the parts say of themselves, or the spec of them, without their values."""
    columns = None if spec is None or spec.release is None else spec.release.columns
    found = []
    for path in map(Path, parts):
        kind, name = format_of(path), os.fspath(path)
        if not path.is_file():
            raise DataError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
        if kind == "hdf5":
            counted = is_tally(path)
            whole = read_release(path, tallies=True) if counted else read_account(path)[0]
            if spec is not None:
                check_mechanism(spec, whole)
            try:
                about, place = one_column(whole, columns)
            except (SpecError, DataError) as error:
                raise type(error)(f"{path}: {error}") from None
            if spec is not None:
                about = _with_bounds(about, spec)
            found.append(
                _Known(name, about, None if counted else TallyPart(os.path.abspath(path), kind, place))
            )
            continue
        if spec is None or spec.mechanism is None:
            what = "SPEC: missing" if spec is None else "mechanism: missing in SPEC"
            raise UsageError(f"{what}; {path} does not say how its values were released")
        about, column = _stated(spec)
        dialect = Dialect() if spec.release is None else spec.release.dialect
        name_of = column_of(path, kind, column, dialect)
        about = replace(about, columns=(name_of,), dates=(name_of,) if about.dates else ())
        part = TallyPart(os.path.abspath(path), kind, name_of, _written_as_dates(about), dialect)
        found.append(_Known(name, about, part))
    return found


def _stated(spec: RunSpec) -> tuple[Release, str | None]:
    """Return the account that a spec gives of one column released elsewhere, and its name if it has one."""
    assert spec.mechanism is not None  # the caller looks
    columns = None if spec.release is None else spec.release.columns
    if columns is not None and len(columns) != 1:
        raise SpecError(
            f"release.columns: a tally is of one column, and there are {', '.join(columns)}; name one"
        )
    section = spec.mechanism
    if section.released != "records" or not section.countable:
        raise SpecError(f"mechanism.kind: {without_tally(section)}")
    law, guarantee = stated(section, 1)
    column = None if columns is None else columns[0]
    about = Release(
        np.zeros((1, 1)),
        (column or "z",),
        law,
        guarantee.epsilon if law.protects else float("inf"),
        guarantee.delta,
        guarantee.rho,
        1,
        adjacency=guarantee.adjacency,
        trust=law.trust,
        private=law.protects,
        dates=(column or "z",) if isinstance((spec.mechanism.domain or ((0.0,),))[0][0], Day) else (),
    )
    return _with_bounds(about, spec), column


def _written_as_dates(about: Release) -> bool:
    """Whether released values are dates, and no outputs, in files other than those of dpmix."""
    return bool(about.dates) and about.mechanism.outputs is None


def _with_bounds(about: Release, spec: RunSpec) -> Release:
    """Return an account with unit and public bounds in its mechanism, the spec's where it had none."""
    about, law = with_unit(about, spec), about.mechanism
    domain = None if spec.mechanism is None else spec.mechanism.domain
    if law.domain or domain is None or len(domain) != 1:
        return about
    return replace(about, mechanism=law.updated(domain=[list(domain[0])]))


def _of_spec(spec: RunSpec, width: Width | None) -> tuple[Release, TallyGrid, str | None]:
    """Return account, grid and name of the column of a release that only a spec describes."""
    if spec.mechanism is None:
        raise SpecError("mechanism: missing; say how the values were released")
    about, column = _stated(spec)
    asked = width if width is not None else spec.sampler.width
    grid = _grid_for(about.mechanism, asked)
    return about, grid._replace(dates=_written_as_dates(about)), column


def _grid_for(law: Law, width: Width) -> TallyGrid:
    edges, actual = wide_grid(law, width)
    return TallyGrid(edges, law.outputs or 0, actual)


def _grid(known: Sequence[_Known], spec: RunSpec | None, width: Width | None) -> TallyGrid:
    """Return the grid of all parts: the one asked for, else that of a tally among them, else the default."""
    asked = width if width is not None else ("auto" if spec is None else spec.sampler.width)
    law = known[0].about.mechanism
    made = next((own.about.tally for own in known if own.about.tally is not None), None)
    if made is not None and asked == "auto" and width is None:
        return TallyGrid(made.edges, law.outputs or 0, made.width)
    return _grid_for(law, asked)


def _counted(
    known: Sequence[_Known],
    spec: RunSpec | None,
    width: Width | None,
    jobs: int,
    scheduler: str | None,
    quiet: bool,
) -> Release:
    grid = _grid(known, spec, width)
    empty = Counts(np.zeros(len(grid.edges) + 1, dtype=np.int64), grid.edges, grid.width)
    as_tallies = [
        (own.name, own.about if own.part is None else replace(own.about, values=_NONE, tally=empty))
        for own in known
    ]
    found = merged(as_tallies)  # differences are said before anything is counted
    _check_width(as_tallies[0], grid)
    pieces: list[Piece] = []
    owner: list[int] = []
    for place, own in enumerate(known):
        for piece in [] if own.part is None else pieces_of(own.part):
            pieces.append(piece._replace(label=own.name))
            owner.append(place)
    total = np.zeros(len(grid.edges) + 1, dtype=np.int64)
    records = np.zeros(len(known), dtype=np.int64)
    with show_work("pieces counted", len(pieces), quiet) as tell:
        for done, (which, counted) in enumerate(count(pieces, grid, jobs=jobs, scheduler=scheduler), 1):
            total += counted
            records[owner[which]] += counted.sum()
            tell(done)
    for own, n in zip(known, records.tolist(), strict=True):
        if own.part is not None and n == 0:
            raise DataError(f"{own.name}: there are no records (n = 0)")
    assert found.tally is not None  # of tallies
    return tallied(found, Counts(found.tally.counts + total, grid.edges, grid.width))


def _check_width(first: tuple[str, Release], grid: TallyGrid) -> None:
    """Refuse tallies of another grid than the one asked for."""
    name, release = first
    made = release.tally
    assert made is not None
    if not np.array_equal(made.edges, grid.edges):
        raise DataError(
            f"{name} has {len(made.edges) + 1:,} cells of width {made.width:.6g}, and the width asked for "
            f"makes {_in_words(grid)}; leave --width out, or tally the release again"
        )


def _positive(counts: NDArray[np.int64], grid: TallyGrid, name: str) -> Counts:
    if not counts.any():
        raise DataError(f"{name}: there are no records (n = 0)")
    return Counts(counts, grid.edges, grid.width)
