"""The runs of a sweep as a workflow of Snakemake, or as an array job of Slurm."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmix.errors import UsageError

_WILDCARD = re.compile(r"\{\s*[.\w]+\s*(,.*)?\}", re.DOTALL)
"""What Snakemake takes for a wildcard: a name between braces, maybe with a constraint."""

KINDS = {"snakemake": "Snakefile", "sbatch": "sweep.sbatch"}
"""What can be emitted, and the name of its file."""


@dataclass(frozen=True)
class Emission:
    """What is emitted.

    Parameters
    ----------
    runs : mapping of str to sequence of Path
        The names of the runs, and the files that each reads.
    spec : Path
        The spec of the sweep.
    sources : sequence of Path
        The files that all runs come from: that spec, and its base.
    overrides : sequence of str
        ``key=value`` each.
    folder : Path
        The folder of the sweep.
    threads : int
        Of each run.
    allow_code : bool
        Whether custom models may run.
    """

    runs: Mapping[str, Sequence[Path]]
    spec: Path
    sources: Sequence[Path]
    overrides: Sequence[str]
    folder: Path
    threads: int
    allow_code: bool

    @property
    def run(self) -> str:
        """The command of a run, without its name."""
        return self._command("sweep", *self._to_folder, "--threads", str(self.threads), *self._allow)

    @property
    def gather(self) -> str:
        """The command that gathers the table."""
        return self._command("sweep", *self._to_folder, "--gather")

    @property
    def warmup(self) -> str:
        """The command that compiles what the runs need."""
        return self._command("warmup", *self._allow)

    @property
    def _to_folder(self) -> tuple[str, ...]:
        return ("-o", str(self.folder), "--quiet")

    @property
    def _allow(self) -> tuple[str, ...]:
        return ("--allow-code",) if self.allow_code else ()

    def _command(self, verb: str, *options: str) -> str:
        settings = [part for override in self.overrides for part in ("--set", override)]
        return shlex.join([sys.executable, "-m", "dpmix", verb, str(self.spec), *settings, *options])


def emitted(kind: str, what: Emission) -> tuple[Path, str]:
    """Return the file to write, one of `KINDS`, and its text."""
    text = _snakemake if kind == "snakemake" else _sbatch
    return what.folder / KINDS[kind], text(what)


def _snakemake(what: Emission) -> str:
    listed = "\n".join(
        f"    {json.dumps(name)}: {json.dumps([_input(path, what.folder) for path in files])},"
        for name, files in what.runs.items()
    )
    sources = "\n".join(
        f"    {json.dumps(str(path))}: {json.dumps(hashlib.sha256(path.read_bytes()).hexdigest())},"
        for path in what.sources
    )
    shown = shlex.quote(str(what.folder / KINDS["snakemake"]))
    return f"""# Runs of a sweep, written by `dpmix sweep --emit snakemake`.
#   {what.warmup}
#   snakemake --snakefile {shown} --cores 4 --keep-going
# The first compiles what runs need, once for all of them. The state of a run stands in
# runs/NAME/chains.h5.partial, which is no declared output: a run that was killed goes on from it. Where runs
# failed, the table is written all the same.

import hashlib
from pathlib import Path

from snakemake.exceptions import WorkflowError

workdir: {json.dumps(str(what.folder))}

# Where the runs come from, and SHA-256 of these files.
SOURCES = {{
{sources}
}}
# The runs, and the files that each reads.
RUNS = {{
{listed}
}}

for source, digest in SOURCES.items():
    if hashlib.sha256(Path(source).read_bytes()).hexdigest() != digest:
        again = "write it anew with dpmix sweep and the same options, and --force"
        raise WorkflowError(f"{{source}} has changed since this workflow was written; {{again}}")


rule all:
    input:
        expand("runs/{{run}}/result.json", run=RUNS),  # also where a table is there without them
        "table.csv",


rule run:
    input:
        lambda wildcards: RUNS[wildcards.run],
    output:
        "runs/{{run}}/result.json",
    wildcard_constraints:
        run="[A-Za-z0-9._+=-]+",
    threads: {what.threads}
    retries: 1
    shell:
        {json.dumps(_braced(what.run) + " --run {wildcards.run:q}")}


rule gather:
    input:
        expand("runs/{{run}}/result.json", run=RUNS),
    output:
        "table.csv",
        "table.h5",
    localrule: True
    shell:
        {json.dumps(_braced(what.gather))}


onerror:
    shell({json.dumps(_braced(what.gather) + " || true")})
"""


def _input(path: Path, folder: Path) -> str:
    """Return an input file so that Snakemake finds no wildcard in it, for which it has no escape.

    Where there is one in the folders above, it goes by where it is from the workflow's.

    Raises
    ------
    UsageError
        Where there is one that is not above both.
    """
    if _WILDCARD.search(str(path)) is None:
        return str(path)
    near = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
    found = _WILDCARD.search(near)
    if found is not None:
        raise UsageError(
            f"--emit snakemake: {path} has {found.group()} in its name, which Snakemake takes for a "
            "wildcard; rename that folder or file, or emit sbatch"
        )
    return near


def _braced(command: str) -> str:
    """Return a command so that Snakemake finds no wildcards in it."""
    return command.replace("{", "{{").replace("}", "}}")


def _sbatch(what: Emission) -> str:
    script = shlex.quote(str(what.folder / KINDS["sbatch"]))
    listed = "\n".join(f"    {shlex.quote(name)}" for name in what.runs)
    output = str(what.folder).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f"""#!/usr/bin/env bash
# Runs of a sweep, written by `dpmix sweep --emit sbatch`; partition, time and memory are options of sbatch:
#   {what.warmup}
#   job=$(sbatch --parsable --time=01:00:00 --mem=2G {script})
#   sbatch --dependency=afterany:$job --wrap={shlex.quote(what.gather)}
# The first compiles what runs need, once for all of them. Two minutes before its time is over a task saves
# its state and asks to be queued again; the same job submitted again goes on with what was killed, and leaves
# what is finished as it is.
#SBATCH --job-name=dpmix-sweep
#SBATCH --array=0-{len(what.runs) - 1}
#SBATCH --cpus-per-task={what.threads}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
#SBATCH --output="{output}/slurm-%A_%a.log"
set -eu

runs=(
{listed}
)
child= stopped=no again=no
trap 'stopped=yes again=yes; kill -TERM "$child" 2>/dev/null || true' USR1 # time is nearly over
trap 'stopped=yes; kill -TERM "$child" 2>/dev/null || true' TERM INT       # cancelled or preempted
{what.run} --run "${{runs[$SLURM_ARRAY_TASK_ID]}}" &
child=$!
[ "$stopped" = no ] || kill -TERM "$child" 2>/dev/null || true # told before it was known whom to tell

status=0
wait "$child" || status=$?
while kill -0 "$child" 2>/dev/null; do # a signal ended the wait, and not the run
    wait "$child" || true
done
if [ "$stopped" = yes ]; then
    status=0
    wait "$child" || status=$? # which bash remembers
fi
if [ "$status" -eq 130 ] && [ "$again" = yes ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
fi
exit "$status"
"""
