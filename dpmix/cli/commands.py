"""The command line: a few lines a command, over the functions that ``import dpmix`` offers.

Data go to standard output, everything else to standard error. Heavy modules are imported when a command needs
them, so that ``dpmix --help`` and a mistake in a spec answer at once.
"""

from __future__ import annotations

import csv
import gc
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from dpmix.cli.file_commands import app as ledger_app
from dpmix.cli.file_commands import card, export, predict, show, tally
from dpmix.cli.options import (
    AllowCode,
    Chains,
    Dataset,
    Debug,
    DryRun,
    Force,
    Json,
    Ledger,
    NewLedger,
    NoLedger,
    Quiet,
    Set,
    Spec,
    Threads,
    Version,
    Yes,
    add_examples,
    argument,
    check_files,
    check_suffix,
    checked_spec,
    emit,
    flag,
    option,
    output_option,
    overview,
    print_plan,
)
from dpmix.errors import ConvergenceError, DataError, UsageError, say
from dpmix.numerics.in_words import printable
from dpmix.run.exit_codes import end, heed_signals, interrupted, messages, run

if TYPE_CHECKING:
    from dpmix.spec import RunSpec


class _Interruptible(TyperGroup):
    """Commands that say what was saved when they are interrupted, which Typer would not pass on."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            return interrupted(stop)


app = typer.Typer(
    name="dpmix",
    cls=_Interruptible,
    help="Differentially private releases of data, and Bayesian mixture models fitted to them.",
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(ledger_app, name="ledger")


@app.callback()
def _root(context: typer.Context, version: Version = False, debug: Debug = False) -> None:
    if context.invoked_subcommand is None:
        emit(overview(context.command))


@app.command()
def privatize(
    spec: Spec,
    output: Annotated[Path, output_option("Release file to write (HDF5: .h5, .hdf5 or .nc).")],
    ledger: Ledger = None,
    dataset: Dataset = None,
    new_ledger: NewLedger = False,
    no_ledger: NoLedger = False,
    yes: Yes = False,
    set_: Set = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Curator: add noise to the confidential data, and write the release with its guarantee."""
    _check_ledger_options(ledger, new_ledger, no_ledger)
    checked = checked_spec(spec, set_, ledger, dataset)
    sources = checked.data.paths if checked.data else ()
    if checked.data is None or checked.mechanism is None:
        missing = "data" if checked.data is None else "mechanism"
        raise UsageError(f"{missing}: missing; privatize needs this section in {spec}")
    check_files([spec, *sources], [output], force)
    check_suffix(output, "a release", strict=True)
    if dry_run:
        from dpmix.api.privatize import steps
        from dpmix.api.spending import Entering

        planned = steps(checked, Entering(new_ledger, no_ledger, yes))
        return print_plan(checked, ("data", "mechanism"), *planned, f"write {output}")
    import dpmix

    dpmix.privatize(
        checked, output, force=force, quiet=quiet, new_ledger=new_ledger, no_ledger=no_ledger, yes=yes
    )
    say(f"wrote {output}", quiet)


def _check_ledger_options(ledger: Path | None, new_ledger: bool, no_ledger: bool) -> None:
    """Check that options do not ask for an entry and for none, before the spec is read with them."""
    if no_ledger:
        from dpmix.api.spending import Entering

        Entering(new_ledger, no_ledger).check(ledger)


@app.command()
def fit(
    spec: Spec,
    output: Annotated[Path, output_option("Chains file to write (HDF5).")],
    release: Annotated[
        Path | None, option("--release", "FILE", "Release file; else the spec's release section.")
    ] = None,
    resume: Annotated[bool, flag("--resume", "Continue an interrupted run.")] = False,
    chain_id: Annotated[int | None, option("--chain-id", "K", "Run only chain K of the spec.", min=0)] = None,
    chains: Annotated[
        int | None, option("--chains", "N", "Number of chains, for sampler.chains.", min=1)
    ] = None,
    jobs: Threads = None,
    allow_code: AllowCode = False,
    set_: Set = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Analyst: sample the posterior of the model given the release."""
    checked = checked_spec(spec, set_)
    if checked.model is None:
        raise UsageError(f"model: missing; fit needs this section in {spec}")
    sources = (release,) if release else checked.release.files if checked.release else ()
    if not sources:
        unprotected = checked.mechanism is not None and not checked.mechanism.protects
        if checked.data is None or not unprotected:
            raise UsageError(f"give --release FILE, or a release section in {spec} with a path")
        sources = checked.data.paths
    check_files([spec, *sources], [output], force or resume)
    check_suffix(output, "a chains file")
    if dry_run:
        from dpmix.api.fit import plan

        step = plan(
            checked,
            release,
            output,
            resume=resume,
            chain_id=chain_id,
            chains=chains,
            force=force,
            allow_code=allow_code,
        )
        steps = (step,) if step.startswith("leave ") else (step, f"write {output}")
        return print_plan(checked, ("mechanism", "model", "sampler"), *steps)
    import dpmix

    result = dpmix.fit(
        checked,
        release=release,
        output=output,
        resume=resume,
        chain_id=chain_id,
        chains=chains,
        jobs=jobs,
        force=force,
        quiet=quiet,
        allow_code=allow_code,
    )
    say(f"wrote {output}" if result.written else f"{output} is finished already", quiet)


@app.command()
def summarize(
    chains: Chains,
    output: Annotated[Path | None, output_option("Summary file to write (HDF5).")] = None,
    as_json: Annotated[bool, flag("--json", "Print the summary as one JSON object.")] = False,
    report: Annotated[Path | None, option("--report", "FILE", "HTML page to write, with plots.")] = None,
    require_convergence: Annotated[
        bool, flag("--require-convergence", "Exit with 5 if the chains have not converged.")
    ] = False,
    contrast: Annotated[
        bool,
        flag(
            "--contrast",
            "Compare two groups of the one release behind a chains file, or two fits, A and B.",
        ),
    ] = False,
    margin: Annotated[
        float | None,
        option(
            "--margin",
            "M",
            "With --contrast: difference up to which shares count as equal; 0.01 where left out, and 0 "
            "for groups of a model that has none.",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        option(
            "--groups",
            "A,B",
            "With --contrast of one chains file: the two groups, where the release has more; a name with a "
            "comma stands between double quotes.",
        ),
    ] = None,
    public_groups: Annotated[
        bool,
        flag(
            "--public-groups",
            "With --contrast: who is in which group is public and fixed, so that the joint guarantee is "
            "the larger of the two; without, none is stated.",
        ),
    ] = False,
    set_: Set = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Merge chains, and report density, clusters and diagnostics; or compare two fits."""
    for name, given in (
        ("--margin", margin is not None),
        ("--public-groups", public_groups),
        ("--groups", groups is not None),
    ):
        if given and not contrast:
            raise UsageError(f"{name}: goes with --contrast")
    outputs = [path for path in (output, report) if path is not None]
    check_files(chains, outputs, force)
    if output is not None:
        check_suffix(output, "a summary")
    options: dict[str, Any] = {"overrides": tuple(set_ or ()), "report": report, "force": force}
    if contrast:
        options |= {"margin": margin, "public_groups": public_groups}
        options |= {"groups": None if groups is None else _names_in(groups)}
    if dry_run:
        from dpmix.api import contrast as of_contrast
        from dpmix.api import summarize as of_summary

        if contrast:
            of_contrast.planned(chains, output, **options)
        else:
            of_summary.planned(chains, output, require_convergence=require_convergence, **options)
        names = ", ".join(str(path) for path in outputs) or "nothing"
        return emit(f"would read {', '.join(str(path) for path in chains)}\nwould write {names}")
    import dpmix

    doubt: ConvergenceError | None = None
    options |= {"require_convergence": require_convergence, "quiet": quiet}
    summary: Any
    try:
        summary = (dpmix.contrast if contrast else dpmix.summarize)(chains, output, **options)
    except ConvergenceError as error:  # everything is computed and written all the same
        doubt, summary = error, error.result
    emit(json.dumps(summary.to_json()) if as_json else summary.to_text())
    for path in outputs:
        say(f"wrote {path}", quiet)
    if doubt is not None:
        raise doubt


def _names_in(words: str) -> list[str]:
    """Return the names of a list with commas, as a line of CSV holds them."""
    return [name.strip() for line in csv.reader([words], skipinitialspace=True) for name in line]


@app.command()
def sweep(
    spec: Annotated[Path, argument("SWEEP", "Spec of the sweep (YAML).")],
    output: Annotated[
        Path, option("--output -o", "FOLDER", "Folder of the sweep; what is finished there is not run again.")
    ],
    jobs: Annotated[
        int | None, option("--jobs -j", "N", "Runs at once; by default as there are cores.", min=1)
    ] = None,
    threads: Annotated[
        int | None, option("--threads", "N", "Threads of each run; by default 1.", min=1)
    ] = None,
    workflow: Annotated[
        str | None,
        option(
            "--emit",
            "KIND",
            "Run nothing; write a Snakemake workflow (snakemake) or a Slurm array job (sbatch).",
        ),
    ] = None,
    run: Annotated[str | None, option("--run", "NAME", "Do this run alone; what emitted jobs call.")] = None,
    gather: Annotated[
        bool, flag("--gather", "Run nothing; write table and figures of what is finished.")
    ] = False,
    require_convergence: Annotated[
        bool,
        flag(
            "--require-convergence",
            "Exit with 5 if chains of any run have not converged; the table is written all the same.",
        ),
    ] = False,
    allow_code: AllowCode = False,
    as_json: Annotated[bool, flag("--json", "Print the table as one JSON object.")] = False,
    set_: Annotated[
        list[str] | None,
        option(
            "--set",
            "KEY=VALUE",
            "Override a key of the sweep (replicates=2), or of the base spec; repeatable.",
        ),
    ] = None,
    ledger: Ledger = None,
    dataset: Dataset = None,
    new_ledger: NewLedger = False,
    yes: Yes = False,
    force: Annotated[bool, flag("--force -f", "Make all runs anew; with --emit, replace the file.")] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Check every run's spec, list the runs, do nothing.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Do many runs from one spec: privatize, fit and summarize each, and gather one table."""
    given = [
        name
        for name, is_given in (
            ("--emit", workflow),
            ("--run", run),
            ("--gather", gather),
            ("--dry-run", dry_run),
        )
        if is_given
    ]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]}: give one of them")
    for name, is_given, elsewhere in (  # where an option would be ignored
        ("--jobs", jobs is not None, ("--emit", "--run", "--gather", "--dry-run")),
        ("--threads", threads is not None, ("--gather", "--dry-run")),
        ("--require-convergence", require_convergence, ("--emit", "--run", "--dry-run")),
        ("--allow-code", allow_code, ("--gather",)),
        ("--json", as_json, ("--emit", "--run", "--dry-run")),
        ("--force", force, ("--run", "--gather")),
    ):
        if is_given and given and given[0] in elsewhere:
            raise UsageError(f"{name}: does not go with {given[0]}")
    entering: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "new_ledger": new_ledger, "yes": yes}
    for name, value in entering.items():
        if value and (run or gather):
            option = name.replace("_", "-")
            raise UsageError(f"--{option}: {given[0]} spends nothing, so leave it out")
    from dpmix.api import sweep as verbs

    options: dict[str, Any] = {"overrides": tuple(set_ or ())}
    if dry_run:
        emit(verbs.plan(spec, output, force=force, allow_code=allow_code, **entering, **options))
        return
    if gather:
        found = verbs.gather(spec, output, **options)
    else:
        options |= {"threads": threads or 1, "allow_code": allow_code}
        if run is not None:
            verbs.do_one(spec, output, run, **options)
            return
        options |= {"force": force, "quiet": quiet, **entering}
        if workflow is not None:
            say(f"wrote {verbs.emit(spec, output, workflow, **options)}", quiet)
            return
        found = verbs.sweep(spec, output, jobs=jobs, **options)
    if as_json:
        emit(json.dumps(found.to_json(), allow_nan=False))
    elif not quiet:
        emit(found.to_text())
    for path in found.written:
        say(f"wrote {path}", quiet)
    found.check(convergence=require_convergence)


app.command()(predict)
app.command()(tally)
app.command()(card)
app.command()(show)
app.command()(export)


@app.command()
def advise(
    spec: Spec,
    epsilon: Annotated[str | None, option("--epsilon", "LIST", "Epsilons: 0.5,1,2,4 where left out.")] = None,
    n: Annotated[str | None, option("--n", "LIST", "Numbers of records: 1e3,1e4,1e5 where left out.")] = None,
    mechanism: Annotated[
        str | None,
        option(
            "--mechanism",
            "LIST",
            "Kinds: where left out the spec's own and all of one column that epsilon calibrates.",
        ),
    ] = None,
    as_json: Annotated[bool, flag("--json", "Print the rows as a JSON list.")] = False,
    report: Annotated[
        Path | None, option("--report", "FILE", "Page (.html) or picture (.svg, .png) to write.")
    ] = None,
    jobs: Threads = None,
    set_: Set = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Both: say before any data are read how precise releases will be, and which mechanism to take."""
    epsilons, sizes = _numbers_in("--epsilon", epsilon), _numbers_in("--n", n)
    kinds = None if mechanism is None else [name.strip() for name in mechanism.split(",") if name.strip()]
    checked = checked_spec(spec, set_, unread=True)
    check_files([spec], [path for path in (report,) if path is not None], force)
    _check_advised(checked, epsilons, sizes, kinds)
    from dpmix.api import advise as api

    if dry_run:
        step = api.plan(checked, epsilon=epsilons, n=sizes, mechanism=kinds, report=report, force=force)
        return print_plan(checked, ("data", "mechanism", "model"), step, f"write {report or 'nothing'}")
    found = api.advise(
        checked,
        epsilon=epsilons,
        n=sizes,
        mechanism=kinds,
        report=report,
        jobs=jobs,
        force=force,
        quiet=quiet,
    )
    emit(json.dumps(found.to_json()) if as_json else found.to_text())
    if as_json:  # the text has them
        for text in found.warnings:
            say(text)
    if report is not None:
        say(f"wrote {report}", quiet)


def _check_advised(
    spec: RunSpec, epsilons: list[float] | None, sizes: list[float] | None, kinds: list[str] | None
) -> None:
    """Refuse what makes no sense before the heavy imports."""
    from dpmix.advising.population import (
        check_kind,
        check_kinds,
        check_target,
        epsilons_of,
        quantities_of,
        records_of,
        target_of,
    )

    epsilons_of(epsilons)
    records_of(sizes)
    check_kinds(kinds)
    model, mechanism = spec.model, spec.mechanism
    dense = mechanism is None or mechanism.released in ("records", "histogram")
    if dense and spec.generator is None and (model is None or model.kind == "mixture"):
        for kind in kinds or ():
            check_kind(kind, None if mechanism is None else mechanism.kind)
        if spec.advise is not None:
            check_target(target_of(spec.advise.target), quantities_of(spec))


def _numbers_in(name: str, words: str | None) -> list[float] | None:
    """Return the numbers of a list with commas, 1e4 among them."""
    if words is None:
        return None
    found = []
    for word in words.split(","):
        try:
            found.append(float(word))
        except ValueError:
            raise UsageError(
                f"{name}: {word.strip()[:40] or 'nothing'} is no number; give a list such as 1e3,1e4"
            ) from None
    return found


@app.command()
def synthesize(
    spec: Spec,
    output: Annotated[
        Path | None,
        output_option("Synthetic records to write: csv or csv.gz, with the guarantee in FILE.json, or h5."),
    ] = None,
    chains: Annotated[
        list[Path] | None,
        option(
            "--chains",
            "FILE",
            "Analyst: draw from the posterior predictive of these chains instead; repeatable.",
        ),
    ] = None,
    records: Annotated[
        int | None,
        option("--records", "N", "With --chains: number of records, for synthesis.records.", min=1),
    ] = None,
    compare: Annotated[
        bool, flag("--compare", "Curator: set kinds of synthesis side by side, and release nothing.")
    ] = False,
    runs: Annotated[int | None, option("--runs", "R", "With --compare: runs of each kind.", min=1)] = None,
    as_json: Annotated[bool, flag("--json", "With --compare: print one JSON object.")] = False,
    report: Annotated[Path | None, option("--report", "FILE", "With --compare: HTML page to write.")] = None,
    ledger: Ledger = None,
    dataset: Dataset = None,
    new_ledger: NewLedger = False,
    no_ledger: NoLedger = False,
    yes: Yes = False,
    set_: Set = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Release synthetic records: curator from the data, analyst with --chains from a fit."""
    entries = {"--ledger": ledger, "--dataset": dataset, "--new-ledger": new_ledger or None}
    for name, asked in entries.items():
        if asked is not None and (compare or chains):
            raise UsageError(
                f"{name}: {'--compare' if compare else '--chains'} spends nothing, so leave it out"
            )
    _check_ledger_options(ledger, new_ledger, no_ledger)
    checked = checked_spec(spec, set_, ledger, dataset)
    if compare and chains:
        raise UsageError("--compare is for the curator, --chains for the analyst; give one of them")
    if yes and (compare or chains):
        raise UsageError(f"--yes: {'--compare' if compare else '--chains'} asks for none, so leave it out")
    for name, given in (("--runs", runs), ("--json", as_json or None), ("--report", report)):
        if given is not None and not compare:
            raise UsageError(f"{name}: goes with --compare")
    if records is not None and not chains:
        raise UsageError("--records: goes with --chains; the spec's synthesis.records says it of the data's")
    if output is None and not compare:
        raise UsageError("--output FILE: missing; name the file of the synthetic records")
    sources = checked.data.paths if checked.data and not chains else ()
    outputs = [path for path in (output, report) if path is not None]
    check_files([spec, *sources, *(chains or [])], outputs, force)
    if report is not None:
        from dpmix.store.atomic import check_page

        check_page(report)
    import dpmix

    if compare:
        from dpmix.api.synthesize import compare as compare_kinds

        if dry_run:
            return print_plan(
                checked, ("data", "synthesis"), "compare kinds of synthesis, and release nothing"
            )
        found = compare_kinds(checked, runs=runs, report=report, output=output, force=force, quiet=quiet)
        emit(json.dumps(found.to_json()) if as_json else found.to_text())
        for path in outputs:
            say(f"wrote {path}, for the curator alone", quiet)
        return
    assert output is not None  # checked above
    if dry_run and chains:
        from dpmix.api import predictive

        _, wanted = predictive.planned(chains, output, spec=checked, records=records, force=force)
        names = ", ".join(str(path) for path in chains)
        what = f"{wanted:,} {'record' if wanted == 1 else 'records'} of the posterior predictive of {names}"
        return emit(f"would draw {what}\nwould write {output}")
    if dry_run:
        from dpmix.api.spending import Entering
        from dpmix.api.synthesize import steps

        planned = steps(checked, Entering(new_ledger, no_ledger, yes))
        return print_plan(checked, ("data", "synthesis"), *planned, f"write {output}")
    dpmix.synthesize(
        checked,
        output,
        chains=chains or None,
        records=records,
        force=force,
        quiet=quiet,
        new_ledger=new_ledger,
        no_ledger=no_ledger,
        yes=yes,
    )
    say(f"wrote {output}", quiet)


@app.command()
def calibrate(
    spec: Spec, set_: Set = None, quiet: Quiet = False, debug: Debug = False, version: Version = False
) -> None:
    """Print what the guarantee costs, as JSON: the scale of the noise, and what it guarantees exactly."""
    checked = checked_spec(spec, set_)
    import dpmix
    from dpmix.run.progress import show_phase

    with show_phase("calibrating", quiet):
        found = dpmix.calibrate(checked, quiet=quiet)
    emit(json.dumps(found, indent=2))


@app.command()
def warmup(
    spec: Spec,
    release: Annotated[
        Path | None, option("--release", "FILE", "Release file; else one of made-up records.")
    ] = None,
    allow_code: AllowCode = False,
    set_: Set = None,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Compile what fitting a spec, or the runs of a sweep, needs and keep it: later fits start at once."""
    from dpmix.spec.sweep_spec import is_sweep

    several = is_sweep(spec)
    checked = spec if several else checked_spec(spec, set_)
    check_files([spec, release], [], False)
    import dpmix

    overrides = tuple(set_ or ()) if several else ()
    found = dpmix.warmup(checked, release, overrides=overrides, allow_code=allow_code, quiet=quiet)
    say(found.in_words(), quiet)


@app.command()
def audit(
    spec: Spec,
    runs: Annotated[
        int | None,
        option("--runs", "N", "Releases of each of two databases: 10000, of a command 1000.", min=200),
    ] = None,
    confidence: Annotated[
        float, option("--confidence", "P", "That the lower bound holds.", show_default=True)
    ] = 0.999,
    strict: Annotated[bool, flag("--strict", "Fail where the audit is weak, too (exit 4).")] = False,
    allow_code: Annotated[bool, flag("--allow-code", "Run the command of the spec's section audit.")] = False,
    as_json: Json = False,
    set_: Set = None,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Curator: bound from below what a mechanism gives away, by many releases of made-up neighbours."""
    checked = checked_spec(spec, set_)
    from dpmix.api.audit import DisprovedError, WeakError
    from dpmix.api.audit import audit as run_audit

    found = run_audit(checked, runs=runs, confidence=confidence, allow_code=allow_code, quiet=quiet)
    emit(json.dumps(found.to_json()) if as_json else found.to_text())
    if not found.consistent:
        raise DisprovedError(found)
    if strict and found.weak:
        raise WeakError(found)


@app.command()
def validate(
    spec: Spec, set_: Set = None, quiet: Quiet = False, debug: Debug = False, version: Version = False
) -> None:
    """Check a spec, of a run or of a sweep, without running it, and say what it describes."""
    from dpmix.spec.sweep_spec import is_sweep, load_sweep

    if is_sweep(spec):
        from dpmix.sweeping.plan import make_plan

        runs = make_plan(load_sweep(spec, set_ or ())).runs
        for run_ in runs:
            run_.spec()
        if not quiet:
            emit(f"{spec}: ok, a sweep of {len(runs)} run{'s' * (len(runs) > 1)}")
        return
    checked = checked_spec(spec, set_)
    if checked.generator is not None:
        from dpmix.api.synthesize import check_columns

        check_columns(checked)
    if not quiet:
        from dpmix.spec.describe import describe, of_columns, of_synthetic_columns, permitted, rows_outside

        emit(f"{spec}: ok")
        for section, text in describe(checked).items():
            emit(f"  {section + ':':<11}{printable(text, '')}")
        of_them = (*of_columns(checked), *of_synthetic_columns(checked), *rows_outside(checked))
        for text in (*permitted(checked), *of_them):
            say(text, quiet)


@app.command()
def schema(
    of_sweeps: Annotated[bool, flag("--sweep", "That of specs of dpmix sweep.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Print the JSON Schema of specs, for editors."""
    from dpmix.spec.schema import schema as of_spec
    from dpmix.spec.schema import sweep_schema

    found = sweep_schema() if of_sweeps else of_spec()
    emit(json.dumps(found, indent=2))


@app.command()
def init(
    kind: Annotated[
        str | None, argument("[KIND]", "What to start from; all are listed where it is left out.")
    ] = None,
    output: Annotated[
        Path | None,
        option("--output -o", "FOLDER", "Folder to write to, where a spec goes with other files."),
    ] = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Print a commented spec to start from, or write it with the files it names; without KIND, list all."""
    from dpmix.spec.starters import listed, starter, starter_files

    if kind is None:
        if output is not None or force or dry_run:
            raise UsageError(
                "KIND: missing; --output, --force and --dry-run go with one (dpmix init lists all)"
            )
        return emit(listed())
    if output is None:
        text = starter(kind).rstrip("\n")
        return emit("would write to standard output" if dry_run else text)
    from dpmix.store.atomic import check_output, write_bytes

    if str(output) == "-":
        raise UsageError("- is no folder; leave --output out to print the spec")
    found = starter_files(kind)
    if not output.is_dir():
        raise DataError(
            f"cannot write into {output}: {'not a folder' if output.exists() else 'no such folder'}"
        )
    for name in found:
        check_output(output / name, force=force)
    if dry_run:
        return emit("\n".join(f"would write {output / name}" for name in found))
    for name, text in found.items():
        write_bytes(output / name, text.encode("utf-8"), force=force)
        say(f"wrote {output / name}", quiet)


add_examples(app)


def main() -> None:
    """Run the command line of this process."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # none sees a spec, nor is looked for
    gc.set_threshold(100_000)  # modules are many objects that stay, and were looked through again and again
    heed_signals()
    sys.stderr = messages(sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    end(run(app, sys.argv[1:]))
