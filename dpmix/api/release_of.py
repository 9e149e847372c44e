"""The release that a fit is about, and whether the spec's mechanism is what it was made with."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmix.api.arguments import file_of
from dpmix.data.loading import load_stated_release, load_values, unprotected
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.mechanisms.curators.by_kind import stated
from dpmix.mechanisms.curators.private_groups import groups_of
from dpmix.mechanisms.laws.every import expect
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.mechanisms.log_moments.section import LogMomentsMechanism
from dpmix.mechanisms.posterior.law import PosteriorLaw
from dpmix.models.custom.section import CustomModel
from dpmix.release.column_units import taken, unit_text, units_in_words
from dpmix.release.release_file import is_tally, read_release
from dpmix.release.sanitized import Release
from dpmix.release.synthetic_files import beside
from dpmix.store.atomic import HDF5
from dpmix.synthesis.synthetic_table import load_synthetic, stated_synthetic

if TYPE_CHECKING:
    from dpmix.mechanisms.log_moments.curator import Meant
    from dpmix.spec import RunSpec

__all__ = ["check_mechanism", "find_release", "with_unit"]

_AGREEMENT = 1e-6  # noise is calibrated on a grid, a little above its formula


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
        if section is not None and replaced and not quiet:
            words = f"the release given takes the place of the spec's release section ({section.source})"
            print(f"dpmix: note: {words}", file=sys.stderr)
        return found, not replaced
    if section is not None and section.path is not None:
        file = section.file
        if file is not None and file.name.lower().endswith(HDF5) and file.is_file() and is_tally(file):
            tally = read_release(file, tallies=True)
            check_mechanism(spec, tally)
            return tally, True
        synthetic = load_synthetic(file) if file is not None and _is_csv(file) else None
        if synthetic is None and spec.mechanism is None and spec.synthesis is not None:
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
    if found.mechanism.released != "synthetic" or spec.synthesis is None:
        return
    generator = found.mechanism.made_by
    kind = "dirichlet_multinomial" if getattr(spec.synthesis, "discount", 0) < 0 else spec.synthesis.kind
    if generator not in (kind, "posterior_predictive"):
        raise SpecError(
            f"synthesis.kind: {spec.synthesis.kind}, but the records were drawn by {generator}; take it "
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
    _check_settings(mechanism, found)
    if law.released == "posterior":
        _check_posterior(mechanism, expect(law, PosteriorLaw))
        return
    requested = law.requested or {}
    for key in ("epsilon", "epsilon1", "epsilon2", "delta", "rho", "scale", "weight"):
        value = getattr(mechanism, key, None)
        if value is not None and key in requested and not _agree(value, requested[key]):
            raise SpecError(
                f"mechanism.{key}: {value:g}, but the release was made with {key} = {requested[key]:g}; "
                f"{advice}"
            )
    pairs = law.public_bounds
    several = mechanism.domain or ()
    if found.tally is not None and pairs and len(several) > 1 and pairs[0] in several:
        return  # a tally is of one of the columns that the spec is of, and its noise that of this one
    if mechanism.domain is not None and pairs is not None and mechanism.domain != pairs:
        raise SpecError(
            f"mechanism.domain: {_listed(mechanism.domain)}, but the release was made with {_listed(pairs)}; "
            f"{advice}"
        )
    domain = mechanism.domain or pairs
    own_noise = (
        getattr(mechanism, "scale", None) is not None or getattr(mechanism, "weight", None) is not None
    )
    if domain is None and law.on_domain and not own_noise and not law.statistic:
        raise SpecError(
            "mechanism.domain: missing; without it the noise that is stated cannot be compared with the "
            f"release's; {advice}"
        )
    weight: float | None = None
    if isinstance(mechanism, LogMomentsMechanism):
        from dpmix.mechanisms.log_moments import curator as log_moments

        own = expect(law, LogMomentsLaw)
        means = log_moments.meant(mechanism, own)
        _check_log_moments(means, own)
        scales = means.scale
    else:
        groups = groups_of(found.groups)
        meant, _ = stated(
            mechanism.model_copy(update={"domain": domain}),
            len(found.columns),
            found.n,
            groups,
            getattr(law, "categories", None) or (),
        )
        scales, weight = meant.scale, getattr(meant, "weight", None)
    noises = [("noise of scale", *each) for each in zip(scales, law.scale, strict=True)]
    actual_weight: float | None = getattr(law, "weight", None)
    if weight is not None and actual_weight is not None:
        noises.append(("weight", weight, actual_weight))
    for name, value, actual in noises:
        if not _agree(value, actual):
            raise SpecError(
                f"mechanism: means {name} {value:g}, but the release was made with {actual:g}; {advice}"
            )


def _check_settings(mechanism: Any, found: Release) -> None:
    """Refuse settings that are not those of the release."""
    for key in ("levels", "classes", "bounds", "trials", "bins", "draws", "noise", "n"):
        value = _plain(getattr(mechanism, key, None))
        actual = found.n if key == "n" else _plain(getattr(found.mechanism, key, None))
        if value is not None and actual is not None and value != actual:
            raise SpecError(
                f"mechanism.{key}: {value}, but the release was made with {actual}; take it out of the spec, "
                "or give the release it describes"
            )


def _check_log_moments(meant: Meant, made: LogMomentsLaw) -> None:
    """Refuse settings of compositions that are not those of the release."""
    thresholds = made.thresholds or (made.threshold,)
    for name, value, actual in (
        ("components", meant.components, made.components),
        ("threshold" if len(meant.thresholds) == 1 else "thresholds", meant.thresholds, thresholds),
        ("split", meant.parts, made.parts),
    ):
        if value is not None and value != actual:
            raise SpecError(
                f"mechanism.{name}: means {_plain(value)}, but the release was made with {_plain(actual)}; "
                "take it out of the spec, or give the release it describes"
            )


def _check_posterior(mechanism: Any, made: PosteriorLaw) -> None:
    """Refuse a spec that states another release of a posterior than the one that was made."""
    advice = "take it out of the spec, or give the release it describes"
    if tuple(mechanism.prior) != made.prior:
        stated, actual = (", ".join(f"{entry:g}" for entry in own) for own in (mechanism.prior, made.prior))
        raise SpecError(f"mechanism.prior: {stated}, but the release was made with {actual}; {advice}")
    exponential = mechanism.method is None or mechanism.method == "hellinger"
    calibration = mechanism.calibration if exponential else None
    sensitivity = made.sensitivity
    for key, value, kept in (
        ("method", mechanism.method, made.method),
        ("calibration", calibration, made.calibration),
        ("sensitivity", mechanism.sensitivity, sensitivity[0] if sensitivity else sensitivity),
    ):
        if value is not None and kept is not None and value != kept:
            raise SpecError(f"mechanism.{key}: {value}, but the release was made with {kept}; {advice}")
    requested = made.requested or {}
    for key in ("epsilon", "delta"):
        value = getattr(mechanism, key)
        if value is not None and key in requested and not _agree(value, requested[key]):
            raise SpecError(
                f"mechanism.{key}: {value:g}, but the release was made with {key} = {requested[key]:g}; "
                f"{advice}"
            )


def _plain(value: Any) -> Any:
    """Return a setting with lists for tuples, and numbers in pairs as floats."""
    if isinstance(value, list | tuple):
        return [[float(end) for end in item] if isinstance(item, list | tuple) else item for item in value]
    return value


def _agree(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_AGREEMENT)


def _listed(pairs: tuple[tuple[float, float], ...]) -> str:
    return ", ".join(f"[{lo:g}, {hi:g}]" for lo, hi in pairs)
