"""The runs of a sweep as a workflow of Snakemake, or as an array job of Slurm."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["KINDS", "emitted"]

KINDS = {"snakemake": "Snakefile", "sbatch": "sweep.sbatch"}
"""What can be emitted, and the name of its file."""


def emitted(
    kind: str, names: Sequence[str], arguments: Sequence[str], folder: Path, threads: int
) -> tuple[Path, str]:
    """Return the file to write, and its text.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    names : sequence of str
        The runs.
    arguments : sequence of str
        What follows ``dpmix sweep`` for every one of them, paths absolute.
    folder : Path
        The folder of the sweep.
    threads : int
        Of each run.
    """
    command = shlex.join([sys.executable, "-m", "dpmix", "sweep", *arguments])
    text = _snakemake if kind == "snakemake" else _sbatch
    return folder / KINDS[kind], text(names, command, folder, threads)


def _snakemake(names: Sequence[str], command: str, folder: Path, threads: int) -> str:
    quoted = command.replace("{", "{{").replace("}", "}}")
    listed = "\n".join(f"    {json.dumps(name)}," for name in names)
    return f"""# Runs of a sweep, written by `dpmix sweep --emit snakemake`.
#   snakemake --snakefile {shlex.quote(str(folder / "Snakefile"))} --cores 4 --keep-going
# The state of a run stands in runs/NAME/chains.h5.partial, which is no declared output: a run that was killed
# goes on from it.

workdir: {json.dumps(str(folder))}

RUNS = [
{listed}
]


rule all:
    input:
        "table.csv",


rule run:
    output:
        "runs/{{run}}/result.json",
    wildcard_constraints:
        run="[A-Za-z0-9._+=-]+",
    threads: {threads}
    retries: 1
    shell:
        {json.dumps(quoted + " --run {wildcards.run:q}")}


rule gather:
    input:
        expand("runs/{{run}}/result.json", run=RUNS),
    output:
        "table.csv",
        "table.h5",
    localrule: True
    shell:
        {json.dumps(quoted + " --gather")}
"""


def _sbatch(names: Sequence[str], command: str, folder: Path, threads: int) -> str:
    script = shlex.quote(str(folder / KINDS["sbatch"]))
    listed = "\n".join(f"    {shlex.quote(name)}" for name in names)
    return f"""#!/usr/bin/env bash
# Runs of a sweep, written by `dpmix sweep --emit sbatch`; partition, time and memory are options of sbatch:
#   job=$(sbatch --parsable --time=01:00:00 --mem=2G {script})
#   sbatch --dependency=afterany:$job --wrap={shlex.quote(command + " --gather")}
# The same job submitted again goes on with what was killed, and leaves what is finished as it is.
#SBATCH --job-name=dpmix-sweep
#SBATCH --array=0-{len(names) - 1}
#SBATCH --cpus-per-task={threads}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120
#SBATCH --output={str(folder).replace("%", "%%")}/slurm-%A_%a.log
set -eu

runs=(
{listed}
)
exec {command} --run "${{runs[$SLURM_ARRAY_TASK_ID]}}"
"""
