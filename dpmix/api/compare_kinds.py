"""What `dpmix synthesize --compare` does: kinds of synthesis side by side, for the curator."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpmix.errors import SpecError, UsageError
from dpmix.run.progress import show_phase, show_work
from dpmix.spec import RunSpec, load_spec
from dpmix.store.atomic import check_output, write_bytes
from dpmix.synthesis.comparison import Comparison
from dpmix.synthesis.measured_kinds import compare_kinds, field_of
from dpmix.synthesis.records import load_records


def compare(
    spec: Mapping[str, Any] | str | os.PathLike[str] | RunSpec,
    overrides: Sequence[str] = (),
    runs: int | None = None,
    report: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    quiet: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Set the synthesis of a spec beside its rivals, by synthetic data sets that are measured and dropped.

    The result is computed from the confidential records without protection. It is for their curator alone,
    and says so wherever it is written.

    Parameters
    ----------
    spec : dict, path or RunSpec
        With the sections ``data`` and ``synthesis``, whose ``rivals`` say with what to compare: with all
        other kinds where they are left out.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    runs : int, optional
        Independent data sets of each kind, in place of ``synthesis.runs``.
    report : path, optional
        HTML page to write, with pictures.
    output : path, optional
        JSON file to write. Nothing is written when anything fails.
    force : bool
        Whether `report` and `output` may be overwritten.
    quiet : bool
        Whether to show no progress on a terminal.
    progress : callable, optional
        Called with (data sets done, data sets in all), in place of the terminal.

    Returns
    -------
    Comparison
        With ``to_text()`` and ``to_json()``.

    Raises
    ------
    SpecError
        When the spec is not one, or lacks what is needed.
    DataError
        When the data cannot be read, or a file cannot be written.
    PrivacyError
        When the spec's own synthesis cannot meet its request; a rival that cannot is listed as refused.
    UsageError
        When a file exists and `force` is not given, is the confidential file itself or is named twice, when
        `output` does not end in .json, or there is no run.
    """
    checked = load_spec(spec, overrides)
    section = checked.synthesis
    if section is None:
        raise SpecError("synthesis: missing; name the kind of synthesis to compare with its rivals")
    if runs is not None and runs < 1:
        raise UsageError(f"runs: {runs} must be at least 1")
    if output is not None and Path(output).suffix.lower() != ".json":
        raise UsageError(f"{output} must end in .json: a comparison is no release of synthetic records")
    _check_targets(checked, (output, report), force)
    with show_phase("reading the data", quiet):
        records = load_records(checked)
    field = field_of(section, records.columns, records.n)
    count = section.runs if runs is None else runs
    with show_work("drawing and measuring", len(field.generators) * count, quiet, progress) as tell:
        found = compare_kinds(field, records, count, lambda done, _: tell(done))
    found = replace(found, unit=None if checked.data is None else checked.data.unit)
    pages: list[tuple[Path, str]] = []
    if report is not None:
        from dpmix.synthesis.comparison_page import render  # late: matplotlib takes its time

        pages.append((Path(report), render(found)))
    if output is not None:
        pages.append((Path(output), json.dumps(found.to_json(), indent=1) + "\n"))
    for path, text in pages:
        write_bytes(path, text.encode(), force=force)
    return found


def _check_targets(spec: RunSpec, paths: Sequence[str | os.PathLike[str] | None], force: bool) -> None:
    """Check before any work that writing destroys nothing unasked, and above all not the records."""
    sources = () if spec.data is None else tuple(path.resolve() for path in spec.data.files)
    taken: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        final = check_output(Path(path), force=force)
        if final in sources:
            raise UsageError(f"{path} is the confidential file itself; give another name for the comparison")
        if final in taken:
            raise UsageError(f"{path} is named twice; give the report and the output names of their own")
        taken.add(final)
