"""The release that a fit is about, and whether the spec's mechanism is what it was made with."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpmix.api.arguments import file_of
from dpmix.data.loading import load_stated_release, load_values, unprotected
from dpmix.errors import DataError, SpecError, UsageError, say
from dpmix.mechanisms.curators.by_kind import contradiction
from dpmix.mechanisms.curators.private_groups import groups_of
from dpmix.models.custom.section import CustomModel
from dpmix.release.column_units import taken, unit_text, units_in_words
from dpmix.release.release_file import beside, is_tally, read_release
from dpmix.release.sanitized import Release
from dpmix.store.atomic import HDF5
from dpmix.synthesis.synthetic_table import load_synthetic, stated_synthetic

if TYPE_CHECKING:
    from dpmix.spec import RunSpec


def find_release(
    spec: RunSpec, release: Release | str | os.PathLike[str] | None, quiet: bool = False
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
    return with_unit(found, spec) if about else found, about


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


def _found(
    spec: RunSpec, release: Release | str | os.PathLike[str] | None, quiet: bool
) -> tuple[Release, bool]:
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
        if file is not None and file.name.lower().endswith(HDF5) and file.is_file() and is_tally(file):
            tally = read_release(file, tallies=True)
            check_mechanism(spec, tally)
            return tally, True
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
