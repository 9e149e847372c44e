"""From chains to records of the posterior predictive, with the guarantee that they inherit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.api.arguments import PathLike, check_outputs, files_of, whole_of
from dpmix.columns.cells import Column, Grid, bounds_in_words
from dpmix.columns.column_units import taken
from dpmix.columns.possible import Rule, holds, rules_of
from dpmix.errors import DataError, SpecError, UsageError, say
from dpmix.laws.every import Law, expect, law_of
from dpmix.laws.synthetic import SyntheticLaw, fields_of
from dpmix.release.release_file import check_synthetic_output, write_synthetic
from dpmix.release.sanitized import Release, public_columns
from dpmix.run.chains_reader import Chains, ChainSet, NamedChains, read_chains
from dpmix.spec import RunSpec, SpecSource, load_spec
from dpmix.spec.data_section import digits_of
from dpmix.spec.limits import MOST_RECORDS
from dpmix.summary.predicting import check_held, mixture_records, parametric_records
from dpmix.summary.row_labels import data_columns
from dpmix.summary.subject import is_private, is_simulated

if TYPE_CHECKING:
    from dpmix.spec.synthesis_section import ChainsSynthesis, SnapSpec, SynthesisSection

# As a spec wants them: on grids, of so many digits, and possible


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

    Its ``data.types`` (or ``release.types``), dates among its bounds, ``synthesis.snap`` and
    ``synthesis.ranges``. `described`: name, and what is known of bounds, categories and type, of each column;
    `numeric`: whether it is of numbers.

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
    found = Column(**fields_of(part))
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
    section: SynthesisSection | ChainsSynthesis, columns: tuple[Column, ...], numeric: Sequence[bool]
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
    """Draw so many records that are possible: of their law given that they are.

    `draw` takes a number of records and that of the batch, each independent of the others; not `again`, there
    is one batch, which holds all that there are.

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


# The records, with the guarantee that they inherit


Labels = tuple[tuple[str, ...] | None, ...]


def predictive_records(
    chains: PathLike | Sequence[PathLike],
    output: PathLike | None = None,
    *,
    spec: SpecSource | None = None,
    overrides: Sequence[str] = (),
    records: int | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Release:
    """Draw synthetic records from the posterior predictive of a fit.

    They are computed from a release and nothing else: whatever it guarantees holds for them too, and they
    cost nothing beyond it. The generator is seeded by the chains' own seed, so that the same chains give the
    same records.

    Parameters
    ----------
    chains : path, what `fit` returned, or sequence of them
        Files of `dpmix fit`, of one spec.
    output : path, optional
        File to write: csv or csv.gz, with the guarantee in ``<output>.json``, or h5.
    spec : dict, path or RunSpec, optional
        ``synthesis.records`` is used, where that is a number, and what it says of columns: ``data.types``,
        dates among the bounds, ``synthesis.snap`` and ``synthesis.ranges``.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    records : int, optional
        Number of records, in place of the spec's; where neither says one, as many as there are confidential
        records, of a parametric model at most one each saved draw.
    force : bool
        Whether to overwrite.
    quiet : bool
        Say nothing but warnings on standard error.

    Returns
    -------
    Release
        Of kind ``synthetic`` and generator ``posterior_predictive``, with the guarantee of the release that
        the chains were fitted to.

    Raises
    ------
    UsageError
        When `output` exists and `force` is not given, or is one of the chains; for a bad `records`.
    SpecError
        When a parametric model's chains hold fewer records than are asked for, or the spec is not one.
    DataError
        When a file is no finished chains file, or files do not belong together.
    """
    if spec is None and overrides:
        raise UsageError("overrides: there is no spec to override; give records, or a spec")
    checked = None if spec is None else load_spec(spec, overrides)
    found, wanted = planned(chains, output, spec=checked, records=records, force=force)
    release = _release(found, wanted, checked)
    if output is not None:
        write_synthetic(Path(output), release, force=force)
    count = len(release.values)
    drawn = f"{count} record{'' if count == 1 else 's'} of the posterior predictive"
    say(f"{drawn}; {release.guarantee_in_words()}; {_law(release).post_processing}", quiet)
    for part, outside in _outside(release):
        verb = "lies" if outside == 1 else "lie"
        bounds = f"[{', '.join(bounds_in_words(part))}], where the model goes on"
        say(f"{outside} of {count} values of {part['name']} {verb} outside {bounds}", quiet)
    if not release.private:
        say(f"warning: these records are not private: {_why(release)}")
    return release


def planned(
    chains: PathLike | Sequence[PathLike],
    output: PathLike | None = None,
    *,
    spec: RunSpec | None = None,
    records: int | None = None,
    force: bool = False,
) -> tuple[Chains | NamedChains, int]:
    """Return the chains that records are drawn from and how many, after all checks but those of drawing.

    Raises UsageError, SpecError and DataError as `predictive_records`.
    """
    check_outputs(output=output)
    paths = files_of(chains, "chains")
    wanted = _wanted(records, spec)
    if output is not None:
        final = check_synthetic_output(Path(output), force=force)
        if any(final == Path(path).resolve() for path in paths):
            raise UsageError(f"{output} is one of the chains files; give the records another name")
    found = read_chains(paths)
    _check_columns(spec, data_columns(found))
    if found.mechanism.groups:
        (group,) = found.mechanism.groups
        raise DataError(
            f"synthesize --chains: the chains are of a release of groups by {group}, of which no records are "
            "drawn; take each group's parameters from the chains file"
        )
    if isinstance(found, NamedChains):
        return found, check_held(found, wanted)
    if wanted is None and found.n > MOST_RECORDS:
        raise UsageError(
            f"records: the chains are of a release of {found.n:,} records, and at most {MOST_RECORDS:,} are "
            "drawn; say how many (--records)"
        )
    return found, found.n if wanted is None else wanted


def _check_columns(spec: RunSpec | None, held: tuple[str, ...]) -> None:
    """Refuse the spec of another table: one that names columns of which the chains have none."""
    for key in ("release", "data"):
        stated = getattr(getattr(spec, key, None), "columns", None)
        if stated and held:
            if not {*stated} & {*held}:
                raise SpecError(
                    f"{key}.columns: {', '.join(stated)}, but the chains are of {', '.join(held)}; give the "
                    "spec that they were fitted with"
                )
            return


def _wanted(records: int | None, spec: RunSpec | None) -> int | None:
    if records is not None:
        wanted = whole_of(records, "records")
        if not 1 <= wanted <= MOST_RECORDS:
            raise UsageError(f"records: {wanted} must be from 1 to {MOST_RECORDS:,}")
        return wanted
    stated = None if spec is None or spec.synthesis is None else spec.synthesis.records
    return stated if isinstance(stated, int) else None


def _release(chains: Chains | NamedChains, records: int, spec: RunSpec | None) -> Release:
    """Draw the records, and say what they inherit."""
    if isinstance(chains, NamedChains):
        held = chains
        restricted = spec is not None and spec.synthesis is not None and bool(spec.synthesis.ranges)
        values, names = parametric_records(held, None if restricted else records)
        described, labels = _columns(chains, names, values.shape[1])
        _check_codes(values, described, labels)
        shape = shape_of(spec, described, [known is None for known in labels])
        values = drawn(shape, lambda *_: values, records, again=False)
    else:
        mixture, first = chains, mixture_records(chains, records)
        described, labels = _columns(chains, data_columns(chains), first.shape[1])
        shape = shape_of(spec, described, [known is None for known in labels])

        def draw(count: int, batch: int) -> NDArray[np.float64]:
            return mixture_records(mixture, count, batch) if batch else first

        values = drawn(shape, draw, records, again=True)
    described = [
        part | {key: stated for key, stated in column.describe().items() if key in ("date", "type")}
        for part, column in zip(described, shape.columns, strict=True)
    ]
    source = chains.mechanism
    epsilon, delta, rho = (_number(chains.attrs.get(name)) for name in ("epsilon", "delta", "rho"))
    adjacency = str(chains.attrs.get("adjacency", "replacement"))
    trust = str(chains.attrs.get("trust", "local"))
    mechanism = {
        "kind": "synthetic",
        "generator": "posterior_predictive",
        "columns": described,
        "records": records,
        "requested": {},
        "scale": [],
        "source": {k: v for k, v in source.stated().items() if k != "granularity"} | {"trust": trust},
        "post_processing": _in_words(source),
    } | shape.described()
    named = tuple(str(part["name"]) for part in described)
    return Release(
        values=values,
        columns=named,
        mechanism=law_of(mechanism),
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        n=chains.n,
        trust=trust,
        adjacency=adjacency,
        private=is_private(chains.attrs) and source.protects,
        simulated=is_simulated(chains.attrs),
        proved=_proved(chains),
        labels=labels if any(names is not None for names in labels) else (),
        unit=taken(chains.unit, named),
    )


def _proved(chains: ChainSet) -> bool | None:
    """Whether the guarantee of the release is proved; None where chains of earlier versions do not say."""
    stated = chains.attrs.get("proved")
    if chains.mechanism.unproved is not None:
        return False
    return bool(stated) if stated in (0, 1) else None


def _in_words(source: Law) -> str:
    """Say what was post-processed, and at what cost."""
    if not source.protects:
        return "post-processing of a fit to the records themselves, without noise: nothing is guaranteed"
    return (
        f"post-processing of the {source.made_by} release that the chains were fitted to: costs nothing "
        "beyond the release"
    )


def _columns(chains: ChainSet, names: tuple[str, ...], width: int) -> tuple[list[dict[str, Any]], Labels]:
    """Return what is public of each column, and the labels that its codes stand for."""
    source = chains.mechanism
    described = source.stated()["columns"] if source.released == "synthetic" else []
    if len(described) == width:
        return described, tuple(_labels(chains, part, width) for part in described)
    if source.released == "posterior" and width == 1:
        part: dict[str, Any] = {"name": names[0] or "category"}
        labels = _labels(chains, part, width)
        return [{**part, "categories": list(labels or ())}], (labels,)
    names = names if all(names) else data_columns(chains)
    if len(names) != width:  # the coefficients of one column
        names = (source.data_column,)
    found: list[dict[str, Any]] = [{"name": name} for name in names]
    if width == 1 and source.domain is not None and len(source.domain) == 1:
        found[0]["domain"] = list(source.domain[0])
    return found, (None,) * width


def _labels(chains: ChainSet, part: Mapping[str, Any], width: int) -> tuple[str, ...] | None:
    """Return the labels of one column of a synthetic release: public ones, or those that the fit names."""
    if "domain" in part:
        return None
    if "categories" in part:
        return tuple(map(str, part["categories"]))
    assert isinstance(chains, NamedChains)  # mixtures are of numbers
    name = part["name"] if width > 1 else ""
    for parameter in chains.parameters:
        if parameter.role == "shares" and parameter.column == name:
            return tuple(map(str, parameter.coords[parameter.dims[0]]))
    raise DataError(f"the chains do not name the labels of {part['name']}")


def _check_codes(values: NDArray[np.float64], described: Sequence[Mapping[str, Any]], labels: Labels) -> None:
    for part, names, column in zip(described, labels, values.T, strict=True):
        if names is not None and not np.isin(column, np.arange(len(names))).all():
            raise DataError(f"the chains hold a record whose {part['name']} is no code of its labels")


def _outside(release: Release) -> list[tuple[dict[str, Any], int]]:
    """Count the values of each column of numbers that lie outside its public bounds."""
    found = []
    for part, column in zip(public_columns(release), release.values.T, strict=True):
        if "domain" in part:
            low, high = part["domain"]
            count = int(((column < low) | (column > high)).sum())
            if count:
                found.append((part, count))
    return found


def _law(release: Release) -> SyntheticLaw:
    return expect(release.mechanism, SyntheticLaw)


def _why(release: Release) -> str:
    origin = _law(release).origin
    if origin is not None and not origin.protects:
        return "the chains were fitted to the confidential records themselves"
    if release.simulated:
        return "the data behind the chains are simulated, and their noise is seeded"
    return "the release behind the chains says that it is not"


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(float(value)) else float(value)
