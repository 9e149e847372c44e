"""Run many cases in workers that may die, and list those that dpmix did not answer as it should."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.connection import Connection, wait
from pathlib import Path

from fuzzing.case import Outcome, run_case
from fuzzing.files import prepare
from fuzzing.targets import TARGETS

_MEMORY = 12 << 30  # bytes of address space, of which compiled code and libraries reserve most


def main() -> int:
    """Run the command line; 1 where a case failed."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="in all")
    parser.add_argument("--first", type=int, default=0, help="number of the first case of each target")
    parser.add_argument("--only", nargs="+", choices=sorted(TARGETS), default=sorted(TARGETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=60.0, help="that a case may take")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dpmix-fuzz-base-") as name:
        base = Path(name)
        prepare(base)
        numbers = range(options.first, options.first + options.cases)
        cases = [(target, number) for number in numbers for target in options.only]
        found = _run(base, cases[: options.cases], options)
    codes = Counter((outcome.target, outcome.code) for outcome in found)
    for (target, code), count in sorted(codes.items(), key=str):
        print(f"{target:<10} exit {code!s:<5}{count:>7}")
    faults = [outcome for outcome in found if outcome.fault]
    print(f"\n{len(found)} cases, {len(faults)} not answered as they should be")
    return 1 if faults else 0


def _run(base: Path, cases: list[tuple[str, int]], options: argparse.Namespace) -> list[Outcome]:
    found: list[Outcome] = []
    waiting = list(reversed(cases))
    workers = [_Worker(base, options.seed) for _ in range(max(1, options.jobs))]
    shown = time.monotonic()
    while waiting or any(worker.case for worker in workers):
        for worker in workers:
            if worker.case is None and waiting:
                worker.give(waiting.pop())
        busy = [worker for worker in workers if worker.case is not None]
        wait([worker.pipe for worker in busy], timeout=1.0)
        for worker in busy:
            outcome = worker.look(options.seconds)
            if outcome is not None:
                found.append(outcome)
                _tell(outcome)
        if sys.stderr.isatty() or time.monotonic() - shown > 30:
            shown = time.monotonic()
            bad = sum(bool(outcome.fault) for outcome in found)
            print(f"{len(found)} of {len(cases)}, {bad} faults", end="\n", file=sys.stderr)
    for worker in workers:
        worker.stop()
    return found


def _tell(outcome: Outcome) -> None:
    """Print a case that was not answered as it should be."""
    if outcome.fault:
        print(f"{outcome.target} {outcome.number}: {outcome.fault}\n  {outcome.command}")
        print(f"  {outcome.said[:400].rstrip()}", flush=True)


class _Worker:
    """A process that runs one case at a time, and is replaced when it dies."""

    def __init__(self, base: Path, seed: int) -> None:
        self._base, self._seed = base, seed
        self.case: tuple[str, int] | None = None
        self._since = 0.0
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, self._base, self._seed))
        self._process.start()
        other.close()

    def give(self, case: tuple[str, int]) -> None:
        self.case, self._since = case, time.monotonic()
        self.pipe.send(case)

    def look(self, seconds: float) -> Outcome | None:
        assert self.case is not None  # only busy ones are looked at
        case = self.case
        try:
            if self.pipe.poll():
                outcome: Outcome = self.pipe.recv()
                self.case = None
                return outcome
        except EOFError:
            self._process.join()
            outcome = Outcome(*case, None, f"the process died ({self._process.exitcode})")
        else:
            if time.monotonic() - self._since < seconds:
                return None
            outcome = Outcome(*case, None, f"took more than {seconds:g} s")
        self.stop()
        self.case = None
        self._start()
        return outcome

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _work(pipe: Connection, base: Path, seed: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    while True:
        try:
            target, number = pipe.recv()
        except EOFError:  # whom it works for is gone
            return
        try:
            pipe.send(run_case(base, target, number, seed))
        except BaseException as error:
            pipe.send(Outcome(target, number, None, f"raised {type(error).__name__}: {error}"))


if __name__ == "__main__":
    sys.exit(main())
