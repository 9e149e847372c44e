"""`dpmix.synthesize`: from confidential records, or chains, to synthetic ones; kinds of it side by side."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.api.arguments import PathLike, check_outputs, whole_of
from dpmix.api.cautions import of_release, of_synthetic_columns
from dpmix.api.confidential import check_apart, release_records, steps_of
from dpmix.api.spending import Entering, spending_of
from dpmix.columns.cells import Column
from dpmix.data.loading import check_countable, number_of_records
from dpmix.errors import PrivacyError, SpecError, UsageError, say
from dpmix.release.release_file import beside, check_synthetic_output, write_synthetic
from dpmix.run.progress import show_phase, show_work
from dpmix.spec import RunSpec, SpecSource, load_spec
from dpmix.spec.limits import MOST_RECORDS
from dpmix.spec.load import naming_ledger, overrides_of
from dpmix.spec.table_source import is_stream
from dpmix.store.atomic import check_output, check_page, write_bytes
from dpmix.synthesis.generator_choice import generator_of, section_of
from dpmix.synthesis.instance import categories_instance, instance
from dpmix.synthesis.records import Records, column_of, columns_of, load_records
from dpmix.synthesis.urn import DirichletMultinomial, PitmanYorRecords, distinct_counts

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.synthesis.comparison import Comparison
    from dpmix.synthesis.generator import Generator


def synthesize(
    spec: SpecSource,
    output: PathLike | None = None,
    *,
    chains: PathLike | Sequence[PathLike] | None = None,
    overrides: Sequence[str] = (),
    force: bool = False,
    quiet: bool = False,
    ledger: PathLike | None = None,
    dataset: str | None = None,
    new_ledger: bool = False,
    no_ledger: bool = False,
    yes: bool = False,
    data: Any = None,
    records: int | None = None,
) -> Release:
    """Draw synthetic records from the confidential data of a spec, under its section ``synthesis``.

    With `chains` they are drawn from the posterior predictive of a fit instead: see
    `dpmix.api.predictive.predictive_records`.

    What the guarantee rests on is drawn from the operating system's randomness and takes no seed. Simulated
    data are synthesized from ``data.seed``, and the release says that it is simulated and not private.

    Parameters
    ----------
    spec : dict, path or RunSpec
        With the sections ``data`` and ``synthesis``.
    output : path, optional
        File to write: csv or csv.gz, with the guarantee in ``<output>.json``, or h5.
    chains : path or sequence of path, optional
        Chains files to draw from, in place of data.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    force : bool
        Whether to overwrite.
    quiet : bool
        Say nothing but warnings on standard error.
    ledger : path, optional
        File to enter the release in before it is drawn, in place of ``privacy.ledger``; records from `chains`
        cost nothing, and are not entered.
    dataset, new_ledger, no_ledger, yes, data
        As in `dpmix.privatize`.
    records : int, optional
        With `chains`: number of records to draw, in place of ``synthesis.records``.

    Returns
    -------
    Release
        Of kind ``synthetic``: the records and their guarantee, everything that may leave the curator.

    Raises
    ------
    SpecError
        When the spec is not one, or lacks what is needed.
    DataError
        When the data are not clean, or `output` cannot be written.
    PrivacyError
        When the guarantee cannot be met, a warning asks for `yes`, or the ledger's budget is exceeded; when
        there is no such ledger, or it knows the data otherwise. Nothing is drawn or entered then.
    UsageError
        When `output` exists and `force` is not given, another process is writing it, or it is the
        confidential file itself; when there are `chains` and a `ledger`.
    """
    check_outputs(output=output, ledger=ledger)
    entering = Entering(new_ledger, no_ledger, yes)
    entering.check(ledger)
    named = {"--ledger": ledger, "--dataset": dataset, "--new-ledger": new_ledger or None}
    for name, given in named.items():
        if chains is not None and given is not None:
            raise UsageError(
                f"{name}: records drawn from chains cost nothing, so that there is nothing to enter"
            )
    if chains is not None and data is not None:
        raise UsageError("data: records drawn from chains are of no data; leave it out")
    checked = load_spec(spec, (*overrides_of(overrides), *naming_ledger(ledger, dataset)), data)
    if chains is not None:
        from dpmix.api.predictive import predictive_records

        return predictive_records(chains, output, spec=checked, records=records, force=force, quiet=quiet)
    if records is not None:
        raise UsageError(
            "records: goes with chains; records of the data are as many as synthesis.records says"
        )
    section = section_of(checked)
    target = None if output is None else Path(output)
    if output is not None:
        check_apart(checked, output, check_synthetic_output(Path(output), force=force))
    spending = spending_of(checked, () if target is None else (target, beside(target)), entering)
    n = _stated_n(checked)
    if n is not None and checked.data is not None:  # what cannot be met is said before data are read
        generator_of(section, _columns(checked), n)
    with show_phase("reading the data", quiet):
        table = load_records(checked)
    _check_n(n, table.n)
    generator = generator_of(section, table.columns, table.n)
    return release_records(
        checked,
        generator,
        table,
        generator.in_words(),
        also=of_synthetic_columns(checked, table.n),
        spending=spending,
        entering=entering,
        output=target,
        write=write_synthetic,
        force=force,
        drawing=show_phase("drawing records", quiet),
        seeded="synthesis",
        quiet=quiet,
    )


def steps(spec: RunSpec, entering: Entering | None = None) -> list[str]:
    """Say what `synthesize` would do, without drawing or entering anything.

    What is said before a release is said on standard error.

    Raises SpecError, DataError and PrivacyError as `synthesize`.
    """
    spending = spending_of(spec, entering=entering)
    generator = planned(spec, counting=True)
    words, also = f"release {generator.in_words()}", of_synthetic_columns(spec, generator.n)
    return steps_of(spec, generator, generator.n, words, also=also, spending=spending, entering=entering)


def planned(spec: RunSpec, *, counting: bool = False) -> Generator:
    """Return the generator of a spec; data are read for their number alone, where the spec does not say it.

    Standard input is read for it where that is what it is for (`counting`).

    Raises SpecError, DataError and PrivacyError as `synthesize`.
    """
    section = section_of(spec)
    n = _stated_n(spec)
    if n is None and not counting:
        check_countable(spec, "synthesis.n")
    return generator_of(section, _columns(spec), number_of_records(spec) if n is None else n)


def check_columns(spec: RunSpec) -> None:
    """Refuse what a spec's synthesis says of columns that it cannot be of, whatever their number of records.

    Raises SpecError as `synthesize`.
    """
    if spec.generator is None or spec.data is None:
        return
    try:
        generator_of(spec.generator, _columns(spec), _stated_n(spec) or MOST_RECORDS)
    except PrivacyError:  # which depends on their number
        return


def _stated_n(spec: RunSpec) -> int | None:
    """Return the number of confidential records, where the spec says it."""
    stated = section_of(spec).n
    if spec.data is None:
        if stated is None:
            raise SpecError("synthesis.n: missing; without data, say of how many confidential records")
        return stated
    return spec.data.n if stated is None else stated


def _check_n(stated: int | None, n: int) -> None:
    if stated is not None and stated != n:
        raise SpecError(f"synthesis.n: {stated}, but there are {n} records; leave it out, or correct it")


def _columns(spec: RunSpec) -> tuple[Column, ...]:
    if spec.data is not None and spec.data.simulate is not None:
        return (column_of(spec.data, 0, (spec.data.columns or ("value",))[0]),)
    if spec.data is None:  # for a first look at what a guarantee costs
        return (Column("value", (0.0, 1.0)),)
    return columns_of(spec.data)


# What `dpmix calibrate` says, and at the observed database the curator alone


def calibrated(spec: RunSpec, quiet: bool = False) -> dict[str, Any]:
    """Return what `dpmix calibrate` prints of the section ``synthesis`` of a checked spec.

    Figures of the generator; with data also ``curator_only``, the figures at the observed database, which are
    the curator's alone, as is said on standard error: ``delta_instance`` (or ``epsilon_instance`` where the
    guarantee is pure) and ``instance``. Without ``data`` nothing confidential is read.

    Raises SpecError, DataError and PrivacyError as `synthesize`.
    """
    records = None if spec.data is None or is_stream(spec.data.path) else load_records(spec)
    if records is None:
        generator = planned(spec)
    else:
        _check_n(_stated_n(spec), records.n)
        generator = generator_of(section_of(spec), records.columns, records.n)
    total = generator.guarantee
    found: dict[str, Any] = {"kind": generator.kind}
    found |= total.numbers() | generator.figures()
    if records is not None:
        own = at_instance(generator, records)
        if own:
            found["curator_only"] = own
            say(
                "note: the figures at the observed database (curator_only) depend on the confidential "
                "records: they are for the curator alone, belong into no release, and decide nothing",
                quiet,
            )
    for each in (*of_release(generator, generator.n), *of_synthetic_columns(spec, generator.n)):
        say(each.text, quiet)
    return found


def at_instance(generator: Generator, records: Records) -> dict[str, Any]:
    """Return the privacy loss at the observed database, of the kinds that have one; for the curator alone."""
    if isinstance(generator, PitmanYorRecords):
        epsilon = generator.requested.get("epsilon", 0.0)
        found = instance(
            distinct_counts(records.values),
            generator.discount,
            generator.concentration,
            generator.records,
            epsilon,
            rng=np.random.default_rng(0),  # simulates releases that nobody sees
        )
        return {"delta_instance": found.delta, "instance": dataclasses.asdict(found)}
    if isinstance(generator, DirichletMultinomial) and generator.possible is None:
        cells = generator.cells
        found = categories_instance(
            cells.counts(records.values), cells.count, generator.concentration, generator.records
        )
        return {"epsilon_instance": found.epsilon, "instance": dataclasses.asdict(found)}
    return {}


# Kinds of synthesis side by side, for the curator


def compare(
    spec: SpecSource,
    overrides: Sequence[str] = (),
    runs: int | None = None,
    report: PathLike | None = None,
    output: PathLike | None = None,
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
    check_outputs(output=output, report=report)
    from dpmix.synthesis.measured_kinds import compare_kinds, field_of  # late: what measures them is heavy

    checked = load_spec(spec, overrides)
    section = checked.generator
    if section is None:
        missing = "synthesis" if checked.synthesis is None else "synthesis.kind"
        raise SpecError(f"{missing}: missing; name the kind of synthesis to compare with its rivals")
    if runs is not None and whole_of(runs, "runs") < 1:
        raise UsageError(f"runs: {runs} must be at least 1")
    if output is not None and Path(output).suffix.lower() != ".json":
        raise UsageError(f"{output} must end in .json: a comparison is no release of synthetic records")
    _check_targets(checked, (output, report), force)
    if report is not None:
        check_page(report)
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


def _check_targets(spec: RunSpec, paths: Sequence[PathLike | None], force: bool) -> None:
    """Check before any work that writing destroys nothing unasked, and above all not the records."""
    taken: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        final = check_output(Path(path), force=force)
        check_apart(spec, path, final, " for the comparison")
        if final in taken:
            raise UsageError(f"{path} is named twice; give the report and the output names of their own")
        taken.add(final)
