"""Calibrate every sampler by simulation, and hold it against exact posteriors; see scripts/verify."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripts.papers.pool import compute
from scripts.verification.cases import all_cases, covering
from scripts.verification.cells import Cell, Size
from scripts.verification.exact import FILES, QUICK, ROOT, run_exact
from scripts.verification.page import LEVEL, doubtful, draw, smallest, write

AGAIN = 4  # times the replicates where a second look is due


def commit() -> str:
    """Return the commit of the checkout, and whether files differ from it."""
    try:
        found = subprocess.run(
            ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; exit 1 where ranks are not uniform or a comparison fails."""
    parser = argparse.ArgumentParser(
        prog="scripts/verify",
        description="Simulation-based calibration and comparisons with exact posteriors, of every sampler.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few cases that have everything once, and fewer replicates"
    )
    parser.add_argument("--only", metavar="TEXT", help="cases whose name holds this; nothing else is run")
    parser.add_argument("--list", action="store_true", help="list the names of the cases, and end")
    parser.add_argument("--replicates", type=int, help="of each case; 200, with --quick 60")
    parser.add_argument("--no-matrix", action="store_true", help="leave out tests that are marked matrix")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, help="page to write; docs/verification.md, with --only none")
    parser.add_argument(
        "--work", type=Path, help="folder of results, which are not computed again; else one that is removed"
    )
    options = parser.parse_args(arguments)
    cases = all_cases()
    if options.only:
        cases = [case for case in cases if options.only in case.name]
        if not cases:
            parser.error(f"--only {options.only}: no case has that in its name; --list lists them")
    elif options.quick:
        cases = covering(cases)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    size = Size(options.replicates or (60 if options.quick else 200), options.seed, commit())
    exact: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        few = covering(cases)  # first, so that everything has been seen when little was run
        order = few + [case for case in cases if case not in few]
        results, failed = compute([Cell(case) for case in order], size, folder, options.jobs)
        cases = [case for case in cases if case.name in results]
        more = replace(size, replicates=AGAIN * size.replicates, seed=size.seed + 1)
        second = [Cell(case) for case in cases if case.name in doubtful(results)]
        again, failed_again = compute(second, more, folder / "again", options.jobs)
        failed |= failed_again
        if not options.only:
            files = QUICK if options.quick else FILES
            exact = run_exact(files, folder, size.commit, matrix=False)
        if not (options.only or options.quick or options.no_matrix):
            rest = run_exact(FILES, folder, size.commit, matrix=True)
            exact = {key: exact[key] | rest[key] for key in exact}
    if not results:
        return 1
    for found, when in ((results, ""), (again, ", again")) if options.only else ():
        for name, result in found.items():
            least, many, outside = smallest({name: result})
            beyond = f"{outside} outside their 95% band"
            print(f"{name}{when}: {many} quantities, {beyond}, smallest p-value {least:.2g}")
    output = options.output or (None if options.only else ROOT / "docs" / "verification.md")
    if output is None:
        judged = [smallest(found) for found in (results, again) if found]
        return int(bool(failed) or any(least <= LEVEL / many for least, many, _ in judged))
    (output.parent / "verification").mkdir(parents=True, exist_ok=True)
    draw(output.parent / "verification" / "ranks.png", cases, results)
    facts = _facts(size, [*results.values(), *again.values()], exact)
    right = write(output, cases, results, exact.get("tests", {}), facts, failed, again)
    print(f"wrote {output}: {'all as it should be' if right else 'NOT as it should be'}")
    return int(not right)


def _facts(size: Size, results: Sequence[Mapping[str, Any]], exact: Mapping[str, Any]) -> dict[str, str]:
    """Say of what commit, how many and how long."""
    hours = sum(float(result["seconds"]) for result in results) / 3600
    facts = {
        "commit": _counted([str(result["commit"]) for result in results], "simulations"),
        "cases": f"{len({result['name'] for result in results})} of {len(all_cases())}",
        "replicates of each": str(size.replicates),
        "seed": str(size.seed),
        "calibration took": f"{hours:.2g} hours of one core",
    }
    if exact:
        files = exact["commit"]
        left_out = "" if any(name.endswith(".matrix") for name in files) else ", but those marked matrix"
        facts["tests of the suite"] = f"at commit {_counted(list(files.values()), 'files')}{left_out}"
    return facts


def _counted(commits: list[str], noun: str) -> str:
    counts = Counter(commits).most_common()
    return ", ".join(name if len(counts) == 1 else f"{name} ({many} {noun})" for name, many in counts)


if __name__ == "__main__":
    sys.exit(main())
