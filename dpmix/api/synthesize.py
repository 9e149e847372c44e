"""`dpmix.synthesize`: from confidential records, or from chains, to synthetic records."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmix.api.cautions import heed, of_ledger, of_synthesis
from dpmix.api.confidential import check_countable, marks_of, of_part, stated_release
from dpmix.api.spending import Entering, spending_of
from dpmix.errors import SpecError, UsageError
from dpmix.privacy.accounting import Guarantee
from dpmix.release.columns import Column
from dpmix.release.sanitized import Release, guarantee_in_words
from dpmix.release.synthetic_files import beside, check_synthetic_output, write_synthetic
from dpmix.run.progress import show_phase
from dpmix.spec import RunSpec, load_spec
from dpmix.spec.load import naming_ledger
from dpmix.spec.synthesis_section import SynthesisSection
from dpmix.spec.table_source import is_stream
from dpmix.synthesis.generator import Generator
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.instance import categories_instance, instance
from dpmix.synthesis.records import Records, column_of, columns_of, load_records
from dpmix.synthesis.urn_draws import DirichletMultinomial, PitmanYorRecords, distinct_counts

__all__ = ["planned", "steps", "synthesize"]


def synthesize(
    spec: Mapping[str, Any] | str | os.PathLike[str] | RunSpec,
    output: str | os.PathLike[str] | None = None,
    *,
    chains: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    overrides: Sequence[str] = (),
    force: bool = False,
    quiet: bool = False,
    ledger: str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    new_ledger: bool = False,
    no_ledger: bool = False,
    yes: bool = False,
    data: Any = None,
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
        When `output` exists and `force` is not given, or is the confidential file itself; when there are
        `chains` and a `ledger`.
    """
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
    checked = load_spec(spec, (*overrides, *naming_ledger(ledger, dataset)), data)
    if chains is not None:
        from dpmix.api.predictive import predictive_records

        return predictive_records(chains, output, spec=checked, force=force, quiet=quiet)
    section = section_of(checked)
    target = None if output is None else Path(output)
    if target is not None:
        final = check_synthetic_output(target, force=force)
        if checked.data is not None and final in [path.resolve() for path in checked.data.files]:
            raise UsageError(f"{output} is the confidential file itself; give another name")
    spending = spending_of(checked, () if target is None else (target, beside(target)), entering)
    n = _stated_n(checked)
    if n is not None and checked.data is not None:  # what cannot be met is said before data are read
        generator_of(section, _columns(checked), n)
    with show_phase("reading the data", quiet):
        records = load_records(checked)
    _check_n(n, records.n)
    generator = generator_of(section, records.columns, records.n)
    heed([*of_synthesis(generator), *of_ledger(spending)], checked, yes, quiet=quiet)
    guarantee = of_part(checked, generator.guarantee)
    if spending is not None:
        names = [column.name for column in records.columns]
        spending.reserve(generator.describe(), names, guarantee, marks_of(checked, records))
    bypassed = entering.said_of(checked)
    with show_phase("drawing records", quiet):
        release = generator.release(records)
    release = stated_release(checked, release, guarantee, "entered" if spending is not None else bypassed)
    if target is not None:
        write_synthetic(target, release, force=force)
    _tell(in_words(generator, guarantee), quiet)
    for column, count in zip(records.columns, records.clamped, strict=True):
        if count:
            outside = f"{count} of {records.n} values of {column.name} were outside the bounds"
            _tell(f"warning: {outside}, and clamped")
    for column, count in zip(records.columns, records.rounded, strict=False):
        if count:
            kind = f"had more than {column.digits} digits" if column.digits else "were no whole numbers"
            _tell(f"warning: {count} of {records.n} values of {column.name} {kind}, and were rounded")
    if release.simulated:
        entered = "" if checked.privacy is None else ", costs nothing and is entered in no ledger"
        _tell(
            f"the data are simulated and their synthesis is seeded: this release is not private{entered}",
            quiet,
        )
    if spending is not None:
        _tell(spending.finish(target), quiet)
    return release


def steps(spec: RunSpec, entering: Entering | None = None) -> list[str]:
    """Say what `synthesize` would do, without drawing or entering anything.

    What is said before a release is said on standard error.

    Raises
    ------
    SpecError, DataError, PrivacyError
        As `synthesize`.
    """
    spending = spending_of(spec, entering=entering)
    generator = planned(spec, counting=True)
    heed([*of_synthesis(generator), *of_ledger(spending)], spec, entering is not None and entering.yes)
    guarantee = of_part(spec, generator.guarantee)
    found = [f"release {in_words(generator, guarantee)}"]
    if spending is not None:
        return [*found, spending.plan(guarantee)]
    skipped = None if entering is None else entering.skipped(spec)
    return found if skipped is None else [*found, skipped]


def planned(spec: RunSpec, *, counting: bool = False) -> Generator:
    """Return the generator of a spec; data are read for their number alone, where the spec does not say it.

    Standard input is read for it where that is what it is for (`counting`).

    Raises
    ------
    SpecError, DataError, PrivacyError
        As `synthesize`.
    """
    section = section_of(spec)
    n = _stated_n(spec)
    if n is None and not counting:
        check_countable(spec, "synthesis.n")
    return generator_of(section, _columns(spec), load_records(spec).n if n is None else n)


def calibrated(spec: RunSpec, quiet: bool = False) -> dict[str, Any]:
    """Return what `dpmix calibrate` prints of the section ``synthesis``.

    Without ``data`` nothing confidential is read. With them, figures at the observed database stand beside
    the guarantee; they are the curator's alone, as is said on standard error.

    Parameters
    ----------
    spec : RunSpec
        Checked.
    quiet : bool
        Whether to keep remarks to oneself.

    Returns
    -------
    dict
        ``epsilon``, ``delta``, ``proved``, ``records`` and the other figures of the generator; with data the
        object ``curator_only``: ``delta_instance`` (or ``epsilon_instance`` where the guarantee is pure) and
        ``instance``.

    Raises
    ------
    SpecError, DataError, PrivacyError
        As `synthesize`.
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
            _tell(
                "note: the figures at the observed database (curator_only) depend on the confidential "
                "records: they are for the curator alone, belong into no release, and decide nothing",
                quiet,
            )
    for each in of_synthesis(generator):
        _tell(each.text, quiet)
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


def in_words(generator: Generator, guarantee: Guarantee | None = None) -> str:
    """Say what is drawn and what that guarantees: of these data where it is given, else of any."""
    total = generator.guarantee if guarantee is None else guarantee
    words = guarantee_in_words(total.epsilon, total.delta, total.rho, total.trust, total.adjacency)
    return f"{generator.said()}; {words}"


def section_of(spec: RunSpec) -> SynthesisSection:
    """Return the section ``synthesis``.

    Raises
    ------
    SpecError
        When there is none.
    """
    if spec.synthesis is None:
        raise SpecError(
            "synthesis: missing; say how records are to be drawn, such as {kind: pitman_yor, delta: 0.01}"
        )
    return spec.synthesis


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


def _tell(text: str, quiet: bool = False) -> None:
    if not quiet:
        print(f"dpmix: {text}", file=sys.stderr)
