"""The release that a fit is about, and whether the spec's mechanism is what it was made with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmix.api.arguments import PathLike, file_of
from dpmix.columns.column_units import Categories, taken, unit_text, units_in_words
from dpmix.data.loading import coded, dated, listed_of, load_data
from dpmix.data.missing import Missing
from dpmix.data.tables import holds_text, load_mixed, load_table, load_text
from dpmix.errors import DataError, SpecError, UsageError, say
from dpmix.laws.every import law_of, law_type
from dpmix.mechanisms.curators.by_kind import contradiction, stated
from dpmix.mechanisms.curators.private_groups import Groups, groups_of
from dpmix.models.custom.section import CustomModel
from dpmix.release.release_file import beside, read_release, states_itself
from dpmix.release.sanitized import Release
from dpmix.spec.data_section import digits_of
from dpmix.spec.table_source import TableFiles, is_stream
from dpmix.store.atomic import HDF5
from dpmix.synthesis.synthetic_table import load_synthetic, stated_synthetic

if TYPE_CHECKING:
    from dpmix.spec import RunSpec
    from dpmix.spec.data_section import ReleaseSpec


def find_release(
    spec: RunSpec, release: Release | PathLike | None, quiet: bool = False
) -> tuple[Release, bool]:
    """Return the release to fit, and whether the spec's `release` section is about it.

    A release that is given takes the place of one that the spec names, with its columns; where the spec's
    section names no path, its columns are those to take from the release that is given.

    Raises
    ------
    UsageError
        When there is no release.
    SpecError
        When the spec's mechanism is not what the release was made with.
    DataError
        When the release cannot be read.
    """
    found, about = _found(spec, release, quiet)
    return with_types(with_unit(found, spec), spec) if about else found, about


def with_unit(found: Release, spec: RunSpec) -> Release:
    """Return a release with the unit that the spec's ``release`` or ``data`` states, where it has none.

    Raises
    ------
    SpecError
        When ``release.unit`` is another than the release's own.
    """
    stated = None if spec.release is None else spec.release.unit
    if found.unit is not None:
        own = taken(found.unit, spec.release.columns) if spec.release and spec.release.columns else found.unit
        if stated is not None and unit_text(stated) not in (unit_text(found.unit), unit_text(own)):
            raise SpecError(
                f"release.unit: {units_in_words(stated)}, but the release states "
                f"{units_in_words(found.unit)}; take it out of the spec, or give the release it describes"
            )
        return found
    unit = stated or (None if spec.data is None else spec.data.unit)
    return found if unit is None else replace(found, unit=unit)


def with_types(found: Release, spec: RunSpec) -> Release:
    """Return a histogram's release with what ``release.types`` or ``data.types`` states of its values.

    Raises
    ------
    SpecError
        When it is of whole numbers, and the type is another.
    """
    for key, section in (("release", spec.release), ("data", spec.data)):
        types = None if section is None else section.types
        if types is None:
            continue
        name, whole = found.mechanism.get("column") or found.columns[0], found.mechanism.get("whole_numbers")
        if whole and digits_of(types.get(name, "integer")) != 0:
            raise SpecError(
                f"{key}.types.{name}: is another than integer, but the release is of whole numbers; take it "
                "out of the spec, or give the release it describes"
            )
        found = found.with_types(types)
    return found


def _found(spec: RunSpec, release: Release | PathLike | None, quiet: bool) -> tuple[Release, bool]:
    """Return what `find_release` does, with the unit that the release itself states."""
    section = spec.release
    if release is not None:
        found = release if isinstance(release, Release) else read_any(file_of(release, "release"))
        _check_synthesis(spec, found)
        check_mechanism(spec, found)
        replaced = section is not None and section.path is not None
        if section is not None and replaced:
            words = f"the release given takes the place of the spec's release section ({section.source})"
            say(f"note: {words}", quiet)
        return found, not replaced
    if section is not None and section.path is not None:
        file = section.file
        if file is not None and file.name.lower().endswith(HDF5) and file.is_file() and states_itself(file):
            found = read_release(file, tallies=True)
            _check_synthesis(spec, found)
            check_mechanism(spec, found)
            return found, True
        synthetic = load_synthetic(file) if file is not None and _is_csv(file) else None
        if synthetic is None and spec.mechanism is None and spec.generator is not None:
            synthetic = stated_synthetic(spec)
        if synthetic is not None:
            _check_synthesis(spec, synthetic)
            return synthetic, True
        if spec.mechanism is None and isinstance(spec.model, CustomModel):
            return load_values(spec), True
        return load_stated_release(spec), True
    if spec.mechanism is not None and not spec.mechanism.protects and spec.data is not None:
        return unprotected(spec), section is not None
    raise UsageError("release: missing; give --release FILE, or name the sanitized values in the spec")


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith((".csv", ".csv.gz"))


def read_any(path: Path) -> Release:
    """Read a release file, or a CSV file of synthetic records with the account beside it."""
    if not _is_csv(path):
        return read_release(path, tallies=True)
    found = load_synthetic(path)
    if found is None:
        raise DataError(
            f"{path} has no account beside it ({beside(path).name}); give a release file, or name the table "
            "under release in the spec and state how it was made"
        )
    return found


def _check_synthesis(spec: RunSpec, found: Release) -> None:
    """Refuse a spec whose synthesis is of another kind than the generator of the release."""
    if found.mechanism.released != "synthetic" or spec.generator is None:
        return
    generator = found.mechanism.made_by
    kind = "dirichlet_multinomial" if getattr(spec.generator, "discount", 0) < 0 else spec.generator.kind
    if generator not in (kind, "posterior_predictive"):
        raise SpecError(
            f"synthesis.kind: {spec.generator.kind}, but the records were drawn by {generator}; take it "
            "out of the spec, or give the release it describes"
        )


def check_mechanism(spec: RunSpec, found: Release) -> None:
    """Refuse a spec whose mechanism contradicts the one that a release was made with."""
    mechanism = spec.mechanism
    if mechanism is None:
        return
    advice = "take it out of the spec, or give the release it describes"
    if spec.groups is not None and dict([spec.groups]) != found.groups:
        made = (
            "; ".join(f"{name} ({', '.join(names)})" for name, names in found.groups.items()) or "no groups"
        )
        key = "data" if spec.data is not None and spec.data.group is not None else "release"
        raise SpecError(
            f"{key}.group: {spec.groups[0]} ({', '.join(spec.groups[1])}), but the release is of {made}; "
            f"{advice}"
        )
    if mechanism.kind != found.kind:
        raise SpecError(
            f"mechanism.kind: {mechanism.kind}, but the release was made by {found.kind}; {advice}"
        )
    law = found.mechanism
    if not law.protects:
        return
    said = contradiction(
        mechanism, law, len(found.columns), found.n, groups_of(found.groups), tallied=found.tally is not None
    )
    if said is not None:
        raise SpecError(f"{said}; {advice}")


# Values that were sanitized elsewhere, and records as they are


def load_stated_release(spec: RunSpec) -> Release:
    """Read the sanitized values of the section ``release``, made elsewhere by the stated mechanism.

    The guarantee is what the spec states, by formula; nothing here vouches for how the noise was drawn.

    Raises
    ------
    SpecError
        When ``release`` or ``mechanism`` is missing, or the mechanism does not say how much noise there is,
        or of how many records a histogram is.
    DataError
        For what `load_table` refuses, and values that cannot come from the mechanism.
    """
    if spec.release is None or spec.release.path is None:
        key = "release" if spec.release is None else "release.path"
        raise SpecError(f"{key}: missing; give --release FILE, or name the sanitized values here")
    if spec.mechanism is None:
        raise SpecError("mechanism: missing; say which noise the values under release carry")
    path = spec.release.source
    law = law_type(spec.mechanism.kind)
    n = getattr(spec.mechanism, "n", None)
    if law.trust == "global" and n is None:
        raise SpecError(
            f"mechanism.n: missing; a {spec.mechanism.kind} release does not tell of how many confidential "
            "records it is"
        )
    groups = groups_of(spec.groups)
    labels: tuple[tuple[str, ...] | None, ...] = ()
    if groups is not None and law.released == "histogram" and not law.counts_bins:
        values, names, labels = _load_draws(spec.release.source, spec.release.columns, groups)
    elif law.released == "categories":
        values, names = _load_answers(spec, spec.release)
    else:
        values, names = load_table(spec.release.source, spec.release.columns, public=True)
    listed = listed_of(spec, names) if law.columns_each and not law.on_domain and law.protects else ()
    mechanism, guarantee = stated(spec.mechanism, len(names), n, groups, listed)
    if listed:
        labels = tuple(listed)
    problem = mechanism.problem(values)
    if problem is not None:
        raise DataError(f"{path} {problem}")
    warning = None if n is None else mechanism.warning(values, n)
    if warning is not None:
        say(f"warning: {path}: {warning}")
    return Release(
        values=values,
        columns=names,
        mechanism=mechanism,
        epsilon=guarantee.epsilon if mechanism.protects else float("inf"),
        delta=guarantee.delta,
        rho=guarantee.rho,
        n=len(values) if n is None else n,
        adjacency=guarantee.adjacency,
        trust=law.trust,
        private=mechanism.protects,
        labels=labels,
        dates=dated(spec.release, spec.data),
    )


def load_values(spec: RunSpec) -> Release:
    """Read the values of the section ``release``, made elsewhere by a mechanism that only the model knows.

    Nothing is known of their guarantee. The number of confidential records is the model's ``n``.

    Raises
    ------
    SpecError
        When the model's ``n`` is missing.
    DataError
        For what `load_table` refuses.
    """
    assert spec.release is not None and spec.release.path is not None and spec.model is not None
    n = (spec.model.model_extra or {}).get("n")
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise SpecError(f"model.n: {n} must be a whole number of at least 1")
    if n is None:
        raise SpecError(
            "model.n: missing; say of how many confidential records the release is, or give its mechanism"
        )
    values, names = load_table(spec.release.source, spec.release.columns, public=True)
    return Release(
        values=values,
        columns=names,
        mechanism=law_of({"kind": "elsewhere", "scale": []}),
        epsilon=None,
        delta=None,
        rho=None,
        n=n,
        trust="global",
        dates=dated(spec.release, spec.data),
    )


def unprotected(spec: RunSpec) -> Release:
    """Return the records of ``data`` as they are, for a non-private posterior to compare with.

    The release says that it is not private: kind ``none``, epsilon infinite. It must not leave the curator.

    Raises SpecError and DataError as `load_data`.
    """
    if spec.data is not None and is_stream(spec.data.path):
        raise SpecError("data.path: - is for what is released of the data; name their file for a fit of them")
    data = load_data(spec)
    return Release(
        values=data.values,
        columns=data.columns,
        mechanism=law_of({"kind": "none"}),
        epsilon=float("inf"),
        delta=None,
        rho=None,
        n=len(data.values),
        private=False,
        simulated=data.simulated,
        dates=dated(spec.data),
    )


def _load_answers(spec: RunSpec, section: ReleaseSpec) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return released categories as codes from 0 on, whether codes or labels are written.

    A column of codes alone is one of codes, whatever the labels.

    Raises
    ------
    DataError
        For what `load_table` and `load_text` refuse, and cells that are neither or may be both.
    """
    source, columns = section.source, section.columns
    try:
        values, names = load_table(source, columns, public=True)
    except DataError as error:
        if columns is None and section.categories is not None and holds_text(source):
            raise DataError(f"{error}; labels are read of columns that release.columns names") from None
        listed = listed_of(spec, columns or ())
        if columns is None or None in listed or not holds_text(source):
            raise
        labels = {name: known or () for name, known in zip(columns, listed, strict=True)}
        texts = load_text(source, columns, public=True, missing=Missing(listed=labels))
        cells = zip(texts, columns, strict=True)
        return np.column_stack([_answers(column, name, labels[name]) for column, name in cells]), columns
    for column, name, known in zip(values.T, names, listed_of(spec, names), strict=True):
        if known is not None and ((column != np.floor(column)) | (column < 0) | (column >= len(known))).any():
            column[:] = _answers([repr(value) for value in column.tolist()], name, known)
    return values, names


def _answers(texts: Sequence[str], name: str, labels: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the codes of released categories, written as their labels or as codes."""
    known, codes = Categories(labels), Categories(map(str, range(len(labels))))  # "1.0" is one, too
    if any(known.code(text) not in (-1, code) for code, text in enumerate(codes.labels)):
        raise DataError(
            f"column {name!r} has categories that are numbers ({', '.join(labels[:8])}), which are not told "
            f"from codes; give codes from 0 to {len(labels) - 1}"
        )
    found = np.array([max(known.code(text), codes.code(text)) for text in texts], dtype=np.float64)
    if (found < 0).any():
        raise DataError(
            f"column {name!r} has a cell in record {int(np.argmin(found)) + 1} that is none of its "
            f"categories; it may hold {', '.join(labels[:20])}, or codes from 0 to {len(labels) - 1}"
        )
    return found


def _load_draws(
    source: TableFiles, columns: Sequence[str] | None, groups: Groups
) -> tuple[NDArray[np.float64], tuple[str, ...], tuple[tuple[str, ...] | None, ...]]:
    """Return draws of a histogram of groups with the codes of their groups, names, and labels of codes.

    Raises
    ------
    SpecError
        When the column of the draws is not named.
    DataError
        For what `load_mixed` refuses, and groups that are none.
    """
    if columns is None or len(columns) != 1:
        raise SpecError("release.columns: must name the one column of the draws, without that of the groups")
    numbers, texts = load_mixed(source, columns, [groups.name], public=True)
    codes = coded(texts[groups.name], groups.name, groups.names)
    return np.column_stack([*numbers.values(), codes]), (*columns, groups.name), (None, groups.names)
